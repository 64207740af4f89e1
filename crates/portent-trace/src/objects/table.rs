//! Objects, interned: a few numbers for each name that has parts, nothing for those that have none.
//!
//! A name keeps its text in the [`NameTable`](crate::NameTable) of its class; what it stands for is kept beside it, under the
//! same number. Variables of one object share the object.

use super::owners::Owners;
use super::pointees::Pointees;
use super::text::Described;
use super::{Apart, ApartBy, Local, Object, ObjectName};
use crate::error::Problem;
use crate::ids::{LocId, LockId, ThreadId};
use crate::names::{ByteRange, NameTable, Names, ObjectClass};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// An object in numbers, as it is kept in memory and in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PackedObject {
    pub(crate) kind: u32,
    /// What they are depends on the kind; those that it has no use for are 0. Words are counted from 1 where there may be
    /// none, and addresses take two fields, the low half first.
    pub(crate) fields: [u32; 4],
}

/// Kinds of [`PackedObject`], part of the file format.
mod kind {
    pub(super) const GLOBAL: u32 = 1;
    pub(super) const HEAP: u32 = 2;
    pub(super) const STACK: u32 = 3;
    pub(super) const MEMORY: u32 = 4;
    pub(super) const UNNAMED: u32 = 5;
    pub(super) const NOTHING: u32 = 6;
    pub(super) const MESSAGE: u32 = 7;
    pub(super) const HANDOVER: u32 = 8;
    pub(super) const THREAD: u32 = 9;
    pub(super) const MODULE: u32 = 10;
}

/// A name in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedName {
    /// The number of the object, from 1; 0 for a name that is nothing but text.
    pub(crate) object: u32,
    /// The word that is the path, from 1; 0 if there is none.
    pub(crate) path: u32,
    /// The entry in the table of what tells names apart, from 1; 0 if there is none. Few names need one.
    apart: u32,
    pub(crate) offset: u64,
}

/// What the names of a trace stand for.
#[derive(Clone, Default)]
pub(crate) struct Objects {
    /// Texts that objects are made of: names of globals, paths, types.
    words: NameTable,
    objects: Vec<PackedObject>,
    index: HashTable<u32>,
    apart: Vec<Apart>,
    /// By class and number; shorter than the table of names where the last ones are nothing but text.
    names: [Vec<PackedName>; ObjectClass::ALL.len()],
    /// Objects in memory that are called the same, and which of them is in which region, counted from 1. Not in files: only
    /// who names memory needs it.
    namesakes: FxHashMap<String, FxHashMap<u32, u64>>,
    pub(crate) pointees: Pointees,
    pub(crate) owners: Owners,
}

impl PackedName {
    pub(crate) fn new(object: u32, path: u32, offset: u64) -> Self {
        Self { object, path, apart: 0, offset }
    }
}

fn low_high(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}
fn joined(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Objects {
    pub(crate) fn words(&self) -> &NameTable {
        &self.words
    }
    pub(crate) fn all(&self) -> &[PackedObject] {
        &self.objects
    }
    /// What names of a class stand for, as far as any does.
    pub(crate) fn names(&self, class: ObjectClass) -> &[PackedName] {
        &self.names[class as usize - 1]
    }
    pub(crate) fn apart(&self, name: PackedName) -> Apart {
        name.apart.checked_sub(1).map_or_else(Apart::default, |entry| self.apart[entry as usize])
    }

    pub(crate) fn word(&mut self, text: &[u8]) -> Result<u32, Problem> {
        self.words.intern(text, "word", u32::MAX as usize - 1)
    }
    fn optional_word(&mut self, text: Option<&str>) -> Result<u32, Problem> {
        text.map_or(Ok(0), |text| Ok(self.word(text.as_bytes())? + 1))
    }
    fn word_text(&self, number_from_1: u32) -> Option<&str> {
        number_from_1.checked_sub(1).map(|word| self.words.get(word as usize))
    }

    /// The number of an object.
    pub(crate) fn intern(&mut self, object: PackedObject) -> u32 {
        let Self { objects, index, .. } = self;
        let hash = |object: &PackedObject| FxBuildHasher.hash_one(object);
        let found = index.find(hash(&object), |&other| objects[other as usize] == object);
        found.copied().unwrap_or_else(|| {
            let number = objects.len() as u32;
            objects.push(object);
            index.insert_unique(hash(&object), number, |&other| hash(&objects[other as usize]));
            number
        })
    }

    /// Says what a name of a class, the last of its table, stands for.
    pub(crate) fn describe(&mut self, class: ObjectClass, id: u32, name: PackedName, apart: Apart) {
        let mut name = name;
        if apart != Apart::default() {
            self.apart.push(apart);
            name.apart = self.apart.len() as u32;
        }
        let names = &mut self.names[class as usize - 1];
        names.resize(id as usize, PackedName::default());
        names.push(name);
    }

    fn pack_name(&mut self, name: &ObjectName<'_>) -> Result<PackedName, Problem> {
        let object = self.pack(&name.object)?;
        let object = self.intern(object) + 1;
        let path = Some(name.path).filter(|path| !path.is_empty());
        Ok(PackedName::new(object, self.optional_word(path)?, name.offset))
    }

    fn pack(&mut self, object: &Object<'_>) -> Result<PackedObject, Problem> {
        let (kind, fields) = match *object {
            Object::Named(_) => (0, [0; 4]),
            Object::Global { name } => (kind::GLOBAL, [self.word(name.as_bytes())?, 0, 0, 0]),
            Object::Heap { type_name, site, ordinal } => {
                (kind::HEAP, [self.optional_word(type_name)?, site.to_bits(), ordinal, 0])
            }
            Object::Stack { thread, local } => {
                let function = self.optional_word(local.map(|local| local.function))?;
                let name = self.optional_word(local.map(|local| local.name))?;
                (kind::STACK, [thread.0, function, name, 0])
            }
            Object::Module { name, offset } => {
                let [low, high] = low_high(offset);
                (kind::MODULE, [self.word(name.as_bytes())?, low, high, 0])
            }
            Object::Memory { address } => {
                let [low, high] = low_high(address);
                (kind::MEMORY, [low, high, 0, 0])
            }
            Object::Unnamed { address } => {
                let [low, high] = low_high(address);
                (kind::UNNAMED, [low, high, 0, 0])
            }
            Object::Nothing { thread } => (kind::NOTHING, [thread.0, 0, 0, 0]),
            Object::Message { channel, number } => {
                let ([a, b], [c, d]) = (low_high(channel), low_high(number));
                (kind::MESSAGE, [a, b, c, d])
            }
            Object::Handover { lock } => (kind::HANDOVER, [lock.0, 0, 0, 0]),
            Object::Thread { number, name, start } => {
                let (started, start) = start.map_or((0, 0), |start| (1, start.to_bits()));
                (kind::THREAD, [number, self.optional_word(name)?, started, start])
            }
        };
        Ok(PackedObject { kind, fields })
    }

    fn unpack(&self, object: PackedObject) -> Object<'_> {
        let [a, b, c, d] = object.fields;
        match object.kind {
            kind::GLOBAL => Object::Global { name: self.words.get(a as usize) },
            kind::HEAP => Object::Heap { type_name: self.word_text(a), site: LocId(b), ordinal: c },
            kind::STACK => {
                let local = self.word_text(b).zip(self.word_text(c));
                Object::Stack { thread: ThreadId(a), local: local.map(|(function, name)| Local { function, name }) }
            }
            kind::MODULE => Object::Module { name: self.words.get(a as usize), offset: joined(b, c) },
            kind::MEMORY => Object::Memory { address: joined(a, b) },
            kind::UNNAMED => Object::Unnamed { address: joined(a, b) },
            kind::NOTHING => Object::Nothing { thread: ThreadId(a) },
            kind::MESSAGE => Object::Message { channel: joined(a, b), number: joined(c, d) },
            kind::HANDOVER => Object::Handover { lock: LockId(a) },
            kind::THREAD => {
                let start = (c != 0).then_some(LocId(d));
                Object::Thread { number: a, name: self.word_text(b), start }
            }
            kind => unreachable!("objects of kind {kind} are never let in"),
        }
    }

    fn name(&self, class: ObjectClass, id: u32) -> Option<ObjectName<'_>> {
        let name = *self.names(class).get(id as usize).filter(|name| name.object > 0)?;
        let object = self.unpack(self.objects[name.object as usize - 1]);
        let path = self.word_text(name.path).unwrap_or_default();
        Some(ObjectName { object, path, offset: name.offset, apart: self.apart(name) })
    }
}

impl PackedObject {
    /// Whether it is an object all of whose parts `names` has.
    pub(crate) fn is_defined(&self, names: &Names) -> bool {
        let PackedObject { kind, fields: [a, b, c, d] } = *self;
        let words = names.objects().words.len();
        let word = |number: u32| (number as usize) < words;
        let optional_word = |number: u32| number as usize <= words;
        let thread = |number: u32| (number as usize) < names.count(ObjectClass::Thread);
        let place = |bits: u32| LocId(bits).table_index().is_none_or(|entry| entry < names.location_table().len());
        match kind {
            kind::GLOBAL => word(a) && [b, c, d] == [0; 3],
            kind::MODULE => word(a) && d == 0,
            kind::HEAP => optional_word(a) && place(b) && d == 0,
            kind::STACK => thread(a) && optional_word(b) && optional_word(c) && (b == 0) == (c == 0) && d == 0,
            kind::MEMORY | kind::UNNAMED => [c, d] == [0; 2],
            kind::NOTHING => thread(a) && [b, c, d] == [0; 3],
            kind::MESSAGE => true,
            kind::HANDOVER => (a as usize) < names.count(ObjectClass::Lock) && [b, c, d] == [0; 3],
            kind::THREAD => optional_word(b) && c <= 1 && if c == 1 { place(d) } else { d == 0 },
            _ => false,
        }
    }
}

/// Naming objects by what they are.
impl Names {
    /// What a name stands for.
    pub fn object(&self, class: ObjectClass, id: u32) -> ObjectName<'_> {
        self.objects().name(class, id).unwrap_or_else(|| ObjectName::of(Object::Named(self.name(class, id))))
    }
    /// What an object is called.
    pub fn describe(&self, name: &ObjectName<'_>) -> String {
        Described { names: self, name }.to_string()
    }
    fn known_object(&self, class: ObjectClass, name: &ObjectName<'_>) -> Option<u32> {
        self.table(class).lookup(self.describe(name).as_bytes())
    }

    /// Like [`Names::intern`], by what the object is.
    ///
    /// What a name stands for is decided when it is first used.
    pub fn intern_object(&mut self, class: ObjectClass, name: &ObjectName<'_>) -> Result<u32, Problem> {
        let (text, known) = (self.describe(name), self.count(class));
        let id = self.intern(class, text.as_bytes())?;
        if id as usize == known && !matches!(name.object, Object::Named(_)) {
            let packed = self.objects_mut().pack_name(name)?;
            self.objects_mut().describe(class, id, packed, name.apart);
        }
        Ok(id)
    }

    /// A new object: if others of its class have its name, it says which of them it is.
    pub fn new_object(&mut self, class: ObjectClass, name: ObjectName<'_>) -> Result<u32, Problem> {
        let mut name = name;
        for n in 2.. {
            if self.known_object(class, &name).is_none() {
                break;
            }
            name.apart.by = ApartBy::Nth(n);
        }
        self.intern_object(class, &name)
    }

    /// The `n`-th object in the place of a known one, counted from 1: a semaphore that was initialised again.
    pub fn intern_again(&mut self, class: ObjectClass, first: u32, n: u32) -> Result<u32, Problem> {
        let name = self.object(class, first);
        let apart = Apart { again: n, ..name.apart };
        let (text, known) = (self.describe(&ObjectName { apart, ..name }), self.count(class));
        let id = self.intern(class, text.as_bytes())?;
        let packed = self.objects().names(class).get(first as usize).copied();
        if let Some(packed) = packed.filter(|packed| id as usize == known && packed.object > 0) {
            self.objects_mut().describe(class, id, PackedName { apart: 0, ..packed }, apart);
        }
        Ok(id)
    }

    /// Like [`Names::intern_range`], by what the memory is and where: objects of one name are counted, and where another
    /// range has the name, it says how long or where this one is.
    pub fn intern_memory(&mut self, name: ObjectName<'_>, range: ByteRange) -> Result<u32, Problem> {
        let mut name = name;
        let whole = self.describe(&ObjectName::of(name.object));
        let namesakes = self.objects_mut().namesakes.entry(whole).or_default();
        let next = namesakes.len() as u64 + 1;
        let which = *namesakes.entry(range.region).or_insert(next);
        if which > 1 {
            name.apart.by = ApartBy::Nth(which);
        }
        let by = name.apart.by;
        if let Some(taken) = self.known_object(ObjectClass::Variable, &name) {
            let other = self.range(taken);
            let same_start = other.is_some_and(|other| (other.region, other.start) == (range.region, range.start));
            name.apart = match same_start {
                true => Apart { by, len: range.len, again: 0 },
                false => Apart { by: ApartBy::Address(range.start), ..Apart::default() },
            };
            if self.known_object(ObjectClass::Variable, &name).is_some() {
                name.apart = Apart { by: ApartBy::Address(range.start), len: range.len, again: 0 };
            }
            if self.known_object(ObjectClass::Variable, &name).is_some() {
                // Memory that belonged to somebody else before; the number of the region is new.
                name.apart.again = range.region;
            }
        }
        let id = self.intern_object(ObjectClass::Variable, &name)?;
        self.set_range(id, range)?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(name: &str) -> ObjectName<'_> {
        ObjectName::of(Object::Global { name })
    }

    #[test]
    fn names_give_back_what_they_stand_for_and_share_objects() {
        let mut names = Names::default();
        names.intern(ObjectClass::Thread, b"main").unwrap();
        let site = names.intern_location(b"a.c:1").unwrap();
        names.intern(ObjectClass::Variable, b"plain").unwrap();
        let heap = Object::Heap { type_name: Some("Node"), site, ordinal: 2 };
        let thread = ThreadId::new(0);
        let local = Object::Stack { thread, local: Some(Local { function: "f", name: "x" }) };
        let member = ObjectName { path: "[1].next", ..ObjectName::at(heap, 4) };
        let apart = Apart { by: ApartBy::Address(1 << 40), len: 8, again: 1 };
        let all = [
            ObjectName::at(heap, 1 << 40),
            member,
            global("g"),
            ObjectName::of(local),
            ObjectName::at(Object::Stack { thread, local: None }, 3),
            ObjectName::of(Object::Memory { address: u64::MAX }),
            ObjectName::of(Object::Module { name: "libm.so.6", offset: 1 << 40 }),
            ObjectName { apart, ..ObjectName::of(Object::Unnamed { address: 1 << 33 }) },
            ObjectName::of(Object::Nothing { thread }),
            ObjectName::of(Object::Message { channel: 1 << 50, number: 1 << 51 }),
            ObjectName::of(Object::Thread { number: 3, name: Some("w"), start: Some(site) }),
            ObjectName::of(Object::Thread { number: 4, name: None, start: None }),
        ];
        for (i, name) in all.iter().enumerate() {
            assert_eq!(names.intern_object(ObjectClass::Variable, name).unwrap(), i as u32 + 1);
            assert_eq!(names.intern_object(ObjectClass::Variable, name).unwrap(), i as u32 + 1, "known by now");
        }
        names.intern(ObjectClass::Variable, b"plain too").unwrap();
        assert_eq!(names.object(ObjectClass::Variable, 0), ObjectName::of(Object::Named("plain")));
        assert_eq!(names.object(ObjectClass::Variable, 13), ObjectName::of(Object::Named("plain too")));
        for (i, name) in all.iter().enumerate() {
            assert_eq!(names.object(ObjectClass::Variable, i as u32 + 1), *name);
        }
        assert_eq!(names.objects().all().len(), all.len() - 1, "two names are parts of one object");
        assert!(names.objects().all().iter().all(|object| object.is_defined(&names)));
    }

    #[test]
    fn what_a_name_stands_for_is_decided_when_it_is_first_used() {
        let mut names = Names::default();
        names.intern(ObjectClass::Lock, b"m").unwrap();
        assert_eq!(names.intern_object(ObjectClass::Lock, &global("m")).unwrap(), 0);
        assert_eq!(names.object(ObjectClass::Lock, 0).object, Object::Named("m"));
        assert!(names.objects().all().is_empty());
    }

    #[test]
    fn objects_of_one_name_are_told_apart() {
        let mut names = Names::default();
        let lock = ObjectClass::Lock;
        let ids: Vec<u32> = (0..3).map(|_| names.new_object(lock, global("m")).unwrap()).collect();
        assert_eq!(names.table(lock).iter().collect::<Vec<_>>(), ["m", "m (second)", "m (third)"]);
        let again = names.intern_again(lock, ids[1], 2).unwrap();
        assert_eq!(names.name(lock, again), "m (second)#2");
        assert_eq!(names.object(lock, again).apart, Apart { by: ApartBy::Nth(2), len: 0, again: 2 });
        let plain = names.intern(lock, b"p").unwrap();
        let again = names.intern_again(lock, plain, 3).unwrap();
        assert_eq!(names.object(lock, again), ObjectName::of(Object::Named("p#3")));
    }

    #[test]
    fn ranges_of_one_name_are_told_apart() {
        let mut names = Names::default();
        let range = |region, start, len| ByteRange { region, start, len };
        for (range, expected) in [
            (range(1, 0, 4), "x"),
            (range(1, 0, 8), "x:8"),
            (range(2, 0, 4), "x (second)"),
            (range(2, 0, 8), "x (second):8"),
            (range(3, 0, 4), "x (third)"),
            (range(2, 8, 8), "x (at byte 8)"),
            (range(2, 16, 8), "x (at byte 16)"),
        ] {
            let id = names.intern_memory(global("x"), range).unwrap();
            assert_eq!(names.name(ObjectClass::Variable, id), expected);
            assert_eq!(
                (names.range(id), names.object(ObjectClass::Variable, id).object),
                (Some(range), global("x").object)
            );
        }
    }
}
