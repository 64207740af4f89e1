//! Objects of the program that end: mutexes, conditions, semaphores and the like that are destroyed or freed, while
//! somebody uses them or before somebody does.
//!
//! Whether an object was destroyed is read off the object, as with everything else about it: the C library marks mutexes and
//! conditions; in the others a word that nothing uses is marked here. So an object that is made anew in the same place, by
//! whatever means, is a new one. A spin lock has no room for a mark.

use crate::log::{fault, note, op};
use crate::state::{Life, Thread, Wait};
use crate::{access, init, record, sched};
use std::ops::Range;

/// In place of something that nothing uses: the object was destroyed.
const DESTROYED: u64 = 0xDE57_0BED_0B1E_C7ED;

/// Notes that memory or an object was used wrongly: by whom is known, `other` is the other one concerned, plus one.
pub fn fault_told(kind: u64, address: usize, pc: usize, other: u32, text: &[&str]) {
    let numbers = [kind, address as u64, pc as u64, u64::from(other)];
    let mut parts: [&[u8]; 6] = [&[]; 6];
    // SAFETY: numbers are readable as bytes.
    parts[0] = unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(&numbers)) };
    for (part, text) in parts[1..].iter_mut().zip(text) {
        *part = text.as_bytes();
    }
    record::note(note::FAULT, &parts);
}

/// What a thread waits for, if that is an object which ends where its memory does.
fn waits_for(wait: Wait) -> Option<(usize, &'static str)> {
    match wait {
        Wait::Mutex(at) => Some((at, "mutex")),
        Wait::Spin(at) => Some((at, "spin lock")),
        Wait::RwRead(at) | Wait::RwReadBehind(at) | Wait::RwWrite(at) => Some((at, "read-write lock")),
        Wait::AnnotatedRead(at) | Wait::AnnotatedWrite(at) => Some((at, "lock")),
        Wait::Condition(at) => Some((at, "condition")),
        Wait::Semaphore(at) => Some((at, "semaphore")),
        Wait::Barrier(at) => Some((at, "barrier")),
        // A futex is an address and nothing else: waking it after its memory is gone is how C++ and Rust use it.
        _ => None,
    }
}

/// A thread that cannot go on because of an object in some memory: who, at which object, of which kind.
fn stuck_on(me: &Thread, memory: Range<usize>) -> Option<(u32, usize, &'static str)> {
    // SAFETY: the holder of the token looks at threads that wait.
    let scheduler = unsafe { &*sched::peek() };
    scheduler.living().filter(|one| one.id != me.id && one.life == Life::Waiting).find_map(|one| {
        let (at, what) = waits_for(one.pending.wait).filter(|(at, _)| memory.contains(at))?;
        (!scheduler.allows(one, &one.pending)).then_some((one.id, at, what))
    })
}

/// Memory is being freed.
#[inline]
pub fn freed(me: &Thread, block: usize, size: usize, pc: usize) {
    if let Some((waiter, at, what)) = stuck_on(me, block..block.saturating_add(size)) {
        let text = ["freed while a thread waits for the ", what, " in it"];
        fault_told(fault::DESTROYED_IN_USE, at, pc, waiter + 1, &text);
    }
}

/// The thread that holds an object, by its kernel's number.
pub fn holder(tid: i32) -> u32 {
    // SAFETY: the holder of the token looks at threads of the table.
    let found = unsafe { (*sched::peek()).living().find(|one| one.tid as i32 == tid) };
    found.map_or(0, |one| one.id + 1)
}

/// An object is about to be destroyed: a write of it, see [`about_to_use`].
pub fn about_to_destroy(me: &mut Thread, at: usize, pc: usize) {
    if !init::is_in_module(at) {
        access::turn(me, op::WRITE, at, 1, pc);
        record::access(me, op::WRITE, at, 1, None, pc);
    }
}

/// An object is being destroyed, held by a thread (plus one; 0: nobody knows who) or waited for by whoever is. What the
/// destroying thread holds itself keeps nobody waiting, and the C library says so.
pub fn destroyed(me: &Thread, at: usize, what: &str, held: Option<u32>, pc: usize) {
    if let Some(holder) = held.filter(|&holder| holder != me.id + 1) {
        fault_told(fault::DESTROYED_IN_USE, at, pc, holder, &["destroyed while the ", what, " is held"]);
    } else if let Some((waiter, ..)) = stuck_on(me, at..at + 1) {
        fault_told(fault::DESTROYED_IN_USE, at, pc, waiter + 1, &["destroyed while a thread waits for the ", what]);
    }
    record::numbers(note::DESTROY, &[at as u64, pc as u64]);
}

/// An object is about to be used. Where its memory can end before the program does, that is a read of it: what destroys or
/// frees it writes it, so that the two are found to be in no order. To take a lock is none, as it is given back later.
#[inline]
pub fn about_to_use(me: &mut Thread, at: usize, pc: usize) {
    if !init::is_in_module(at) {
        access::turn(me, op::READ, at, 1, pc);
        // The C library changes the object as it likes: its value means nothing.
        record::access(me, op::READ, at, 1, None, pc);
    }
}

/// An object that was destroyed is used.
#[cold]
pub fn used_after(at: usize, what: &str, pc: usize) {
    fault_told(fault::USED_AFTER_DESTROY, at, pc, 0, &["the ", what, " was destroyed"]);
}

/// The word of an object in which its end is marked.
#[derive(Clone, Copy)]
pub struct Mark(pub usize);

impl Mark {
    fn word(self, at: usize) -> *mut u64 {
        (at + self.0) as *mut u64
    }
    /// Whether the object was destroyed.
    #[inline]
    pub fn is_set(self, at: usize) -> bool {
        // SAFETY: the program's object, as large as the C library says.
        unsafe { self.word(at).read_unaligned() == DESTROYED }
    }
    /// The object was destroyed.
    pub fn set(self, at: usize) {
        // SAFETY: as above; it is not an object any more.
        unsafe { self.word(at).write_unaligned(DESTROYED) };
    }
    /// The object is made anew, by a function that leaves this word alone.
    pub fn clear(self, at: usize) {
        if self.is_set(at) {
            // SAFETY: as above.
            unsafe { self.word(at).write_unaligned(0) };
        }
    }
}
