//! Whose allocated memory is: the variable, member or container through which the program reaches it.
//!
//! Who owns a block may turn out after its first accesses, so an owner is no part of an object's name, which findings of
//! several runs are compared by: it is what people are told instead.

use super::kinds::own_parts;
use super::text::{Inside, Plus};
use super::{Object, ObjectName};
use crate::error::Problem;
use crate::names::{Names, ObjectClass};
use crate::short::is_librarys_own;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// How memory is reached from what owns it. The numbers are part of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Through {
    /// As `owner[3].balance` or `owner->balance`.
    Pointer = 0,
    /// As one of the elements of a container, nobody knows which: `balance of an element of owner`.
    Element = 1,
    /// As the characters of a string.
    Text = 2,
    /// As something that only the container's own code knows.
    Inside = 3,
}

impl Through {
    pub(crate) fn from_code(code: u32) -> Option<Through> {
        [Through::Pointer, Through::Element, Through::Text, Through::Inside]
            .into_iter()
            .find(|through| *through as u32 == code)
    }
}

/// What a block is called by who owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned<'a> {
    /// The owner: `bank.accounts`.
    pub owner: &'a str,
    /// What stands behind everything that is told about it: ` in main()`.
    pub behind: &'a str,
    /// How the program gets from the owner to the block.
    pub through: Through,
    /// Whether the block has room for several of its type.
    pub several: bool,
}

impl Owned<'_> {
    /// A part of the block, without what stands behind everything.
    pub fn part(&self, path: &str, offset: u64) -> String {
        OwnedPart { owned: *self, path, offset }.to_string()
    }
}

struct OwnedPart<'a> {
    owned: Owned<'a>,
    path: &'a str,
    offset: u64,
}

impl Display for OwnedPart<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Owned { owner, through, several, .. } = self.owned;
        let (path, inside) = self.path.find("._vptr").map_or_else(|| own_parts(self.path), |at| self.path.split_at(at));
        let (inside, plus) = (Inside(inside), Plus(self.offset));
        match through {
            Through::Text if path.is_empty() => write!(f, "{owner}[{}]", self.offset),
            Through::Inside => write!(f, "{owner} (inside)"),
            Through::Element => {
                // Which element of its block it is says nothing about its place in the container.
                let member =
                    path.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(path, |(_, rest)| rest);
                match member.strip_prefix('.') {
                    Some(member) => write!(f, "{member}{plus}{inside} of an element of {owner}"),
                    None => write!(f, "an element of {owner}{inside}"),
                }
            }
            _ => match path.strip_prefix('.') {
                Some(member) => write!(f, "{owner}->{member}{plus}{inside}"),
                None if path.starts_with('[') => write!(f, "{owner}{path}{plus}{inside}"),
                None => {
                    let star = if several { "" } else { "*" };
                    match self.offset {
                        0 => write!(f, "{star}{owner}{inside}"),
                        offset => write!(f, "byte {offset} of {star}{owner}{inside}"),
                    }
                }
            },
        }
    }
}

/// An owner in numbers, as it is kept in memory and in files: words, but for the object, which is counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedOwner {
    pub(crate) object: u32,
    pub(crate) owner: u32,
    pub(crate) behind: u32,
    pub(crate) through: Through,
    pub(crate) several: bool,
}

/// All owners, in the order in which they were found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    all: Vec<PackedOwner>,
    of: FxHashMap<u32, u32>,
}

impl Owners {
    pub(crate) fn all(&self) -> &[PackedOwner] {
        &self.all
    }
    /// The first owner that an object is given stays.
    pub(crate) fn add(&mut self, owner: PackedOwner) {
        self.of.entry(owner.object).or_insert(self.all.len() as u32);
        self.all.push(owner);
    }
}

impl Names {
    /// Says who owns the block that a name is part of.
    pub fn own(&mut self, class: ObjectClass, id: u32, owned: &Owned<'_>) -> Result<(), Problem> {
        let Some(object) = self.object_number(class, id) else { return Ok(()) };
        let objects = self.objects_mut();
        let (owner, behind) = (objects.word(owned.owner.as_bytes())?, objects.word(owned.behind.as_bytes())?);
        let &Owned { through, several, .. } = owned;
        objects.owners.add(PackedOwner { object, owner, behind, through, several });
        Ok(())
    }

    fn object_number(&self, class: ObjectClass, id: u32) -> Option<u32> {
        let name = self.objects().names(class).get(id as usize)?;
        Some(name.object).filter(|&object| object > 0)
    }

    /// What people are told that an object is: by its owner, if that is known, or else its name; unless that is an address, or
    /// the name of what a library or the runtime keeps to itself.
    pub fn called(&self, class: ObjectClass, id: u32) -> Cow<'_, str> {
        if class == ObjectClass::None {
            return Cow::Borrowed("");
        }
        let nameless = |what: &str| Cow::Owned(format!("{what} (number {})", id + 1));
        match self.object(class, id).object {
            Object::Heap { .. } => {
                let name = self.object(class, id);
                self.by_owner(class, id, &name).map_or_else(|| self.name(class, id).into(), Cow::Owned)
            }
            Object::Stack { local: Some(local), .. } if is_librarys_own(local.function) => {
                nameless("a library's local")
            }
            Object::Module { name, .. } if is_runtime(name) => nameless("memory without a name"),
            // Where in a library it is says nothing to anybody but those who built it.
            Object::Module { name, .. } if name.contains(".so") => nameless(&format!("data of {name}")),
            // Which function of it is called, the line says.
            Object::Global { name } if name.starts_with(VTABLE) => {
                Cow::Owned(format!("virtual table of {}", &name[VTABLE.len()..]))
            }
            Object::Memory { address: 4096.. } | Object::Unnamed { .. } => nameless("memory without a name"),
            _ => self.name(class, id).into(),
        }
    }

    /// The same of the whole block that memory was allocated as.
    pub fn called_whole(&self, class: ObjectClass, id: u32) -> Cow<'_, str> {
        match self.object(class, id).object {
            object @ Object::Heap { .. } => {
                let whole = ObjectName::of(object);
                self.by_owner(class, id, &whole).unwrap_or_else(|| self.describe(&whole)).into()
            }
            _ => self.called(class, id),
        }
    }

    /// What part of a block is called by who owns that. `id` is any of its parts.
    fn by_owner(&self, class: ObjectClass, id: u32, name: &ObjectName<'_>) -> Option<String> {
        let owners = &self.objects().owners;
        if owners.all.is_empty() {
            return None;
        }
        let packed = owners.all[*owners.of.get(&self.object_number(class, id)?)? as usize];
        let word = |word: u32| self.objects().words().get(word as usize);
        let PackedOwner { through, several, .. } = packed;
        let owned = Owned { owner: word(packed.owner), behind: word(packed.behind), through, several };
        Some(format!("{}{}{}", owned.part(name.path, name.offset), owned.behind, name.apart.len_only()))
    }
}

/// What demanglers call the table of the virtual functions of a class.
const VTABLE: &str = "vtable for ";

/// Whether a module is Portent's own, of which nobody is told.
fn is_runtime(module: &str) -> bool {
    module.starts_with("libportent_runtime")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LocId;

    #[test]
    fn memory_is_called_by_who_owns_it() {
        let owned = |through, several| Owned { owner: "bank.accounts", behind: " in main()", through, several };
        let (pointer, element) = (Through::Pointer, Through::Element);
        for (through, several, path, offset, expected) in [
            (pointer, true, "[3].balance", 0, "bank.accounts[3].balance"),
            (pointer, true, "[3]", 2, "bank.accounts[3]+2"),
            (pointer, true, "", 64, "byte 64 of bank.accounts"),
            (pointer, true, "", 0, "bank.accounts"),
            (pointer, false, ".limit", 0, "bank.accounts->limit"),
            (pointer, false, ".log._M_impl._M_start", 0, "bank.accounts->log (begin)"),
            (pointer, false, "", 0, "*bank.accounts"),
            (pointer, false, "", 8, "byte 8 of *bank.accounts"),
            (element, false, ".second.hits", 0, "second.hits of an element of bank.accounts"),
            (element, true, "[7].hits", 0, "hits of an element of bank.accounts"),
            (element, true, "[7]", 0, "an element of bank.accounts"),
            (Through::Text, false, "", 5, "bank.accounts[5]"),
            (Through::Inside, true, "[2]", 0, "bank.accounts (inside)"),
        ] {
            assert_eq!(owned(through, several).part(path, offset), expected);
        }
        let mut names = Names::default();
        let table = ObjectName { offset: 32, ..ObjectName::of(Object::Global { name: "vtable for Display" }) };
        let table = names.intern_object(ObjectClass::Variable, &table).unwrap();
        assert_eq!(names.called(ObjectClass::Variable, table), "virtual table of Display");
        let library = names.intern_object(
            ObjectClass::Lock,
            &ObjectName::of(Object::Module { name: "libstdc++.so.6", offset: 2_193_224 }),
        );
        let library = names.called(ObjectClass::Lock, library.unwrap());
        assert_eq!(library, "data of libstdc++.so.6 (number 1)");
        let object = Object::Heap { type_name: Some("Account[]"), site: LocId::from_bits(0), ordinal: 1 };
        let name = ObjectName { path: "[3].balance", ..ObjectName::of(object) };
        let balance = names.intern_object(ObjectClass::Variable, &name).unwrap();
        let lock = ObjectName { path: "[3].lock", ..name };
        let lock = names.intern_object(ObjectClass::Lock, &lock).unwrap();
        assert_eq!(names.called(ObjectClass::Variable, balance), names.name(ObjectClass::Variable, balance));
        names.own(ObjectClass::Variable, balance, &owned(pointer, true)).unwrap();
        assert_eq!(names.called_whole(ObjectClass::Variable, balance), "bank.accounts in main()");
        assert_eq!(names.called(ObjectClass::Variable, balance), "bank.accounts[3].balance in main()");
        assert_eq!(names.called(ObjectClass::Lock, lock), "bank.accounts[3].lock in main()", "it is in the same block");
    }
}
