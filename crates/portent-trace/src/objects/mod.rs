//! What names of a trace stand for, in parts: the global and its member, the heap object and where it was allocated, the
//! thread whose stack it is.
//!
//! Whoever names an object says what it is ([`ObjectName`]); `text` is the only module that makes a text of it, and whoever
//! wants to know where an object comes from asks for the parts instead of taking the text to pieces. Names of traces that
//! have nothing but text, as STD text has, are [`Object::Named`] and cost nothing here.
//!
//! | module | what it knows |
//! |---|---|
//! | `text` | what an object is called; the only place where names are made, and the only one where text is searched |
//! | `table` | objects, interned beside the names of a trace |
//! | `kinds` | which objects are the same to whoever wrote the program |
//! | `pointees` | what variables that hold addresses pointed to |
//! | `owners` | through which variable the program reaches allocated memory |

mod kinds;
mod owners;
mod pointees;
mod table;
mod text;

pub(crate) use kinds::base_name;
pub use kinds::{own_parts, own_path};
pub(crate) use owners::PackedOwner;
pub use owners::{Owned, Through};
pub(crate) use pointees::Pointee;
pub(crate) use table::{Objects, PackedName, PackedObject};
pub(crate) use text::byte_range_text;
pub use text::{site_text, which_of};

use crate::ids::{LocId, LockId, ThreadId};

/// Something that keeps its identity: a global variable, one allocation, a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Object<'a> {
    /// Nothing is known but this text.
    Named(&'a str),
    /// A global variable.
    Global {
        /// Its qualified name.
        name: &'a str,
    },
    /// Memory that was allocated.
    Heap {
        /// The type of what was allocated, where it is known.
        type_name: Option<&'a str>,
        /// Where it was allocated.
        site: LocId,
        /// Which of the allocations made there, counted from 1.
        ordinal: u32,
    },
    /// The stack of a thread, or a variable on it.
    Stack {
        /// Whose stack.
        thread: ThreadId,
        /// The function and the name of the variable, where they are known; without them, offsets count from where the
        /// stack begins to grow, which is the same in every run.
        local: Option<Local<'a>>,
    },
    /// Memory of a module in which no symbol is known.
    Module {
        /// The module's file, without its directory.
        name: &'a str,
        /// Where in it.
        offset: u64,
    },
    /// Memory that nobody is known to own.
    Memory {
        /// Where it is.
        address: u64,
    },
    /// A lock or the like in memory that belongs to a module which is no longer there.
    Unnamed {
        /// Where it is.
        address: u64,
    },
    /// What an access of no bytes touches.
    Nothing {
        /// Who made it.
        thread: ThreadId,
    },
    /// What a message through a channel is: the channel's address, and which message.
    Message {
        /// The channel.
        channel: u64,
        /// The message.
        number: u64,
    },
    /// The order in which a lock was handed from thread to thread.
    Handover {
        /// The lock.
        lock: LockId,
    },
    /// A thread of a recorded program.
    Thread {
        /// Its number in the recording.
        number: u32,
        /// The name that the program gave it.
        name: Option<&'a str>,
        /// Where it was started.
        start: Option<LocId>,
    },
}

/// A variable on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Local<'a> {
    /// The function that declares it.
    pub function: &'a str,
    /// Its name; empty for what has none, or of which debug information does not tell it.
    pub name: &'a str,
}

/// What a name stands for: an object, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectName<'a> {
    /// The object.
    pub object: Object<'a>,
    /// Members and indices on the way to the part, such as `[2].balance`; empty where the object itself is meant.
    pub path: &'a str,
    /// How many bytes behind the beginning of that.
    pub offset: u64,
    /// What tells it from others that would be called the same.
    pub apart: Apart,
}

/// What tells objects apart that would be called the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Apart {
    /// Where it is, or which of several it is.
    pub by: ApartBy,
    /// How many bytes it has; 0 where that is not needed.
    pub len: u32,
    /// Which of those that were in the same place one after the other, counted from 1; 0 where that is not needed.
    pub again: u32,
}

/// The first thing that tells objects apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApartBy {
    /// None is needed.
    #[default]
    Nothing,
    /// The address.
    Address(u64),
    /// Which of the objects of that name, counted from 1.
    Nth(u64),
}

impl Apart {
    /// Without what tells objects apart that their owners tell apart already.
    pub(crate) fn len_only(self) -> Apart {
        Apart { by: ApartBy::Nothing, ..self }
    }
}

impl<'a> ObjectName<'a> {
    /// A whole object.
    pub fn of(object: Object<'a>) -> Self {
        ObjectName { object, path: "", offset: 0, apart: Apart::default() }
    }
    /// Bytes of an object from an offset on.
    pub fn at(object: Object<'a>, offset: u64) -> Self {
        ObjectName { offset, ..Self::of(object) }
    }
}
