//! Sections of a definitions chunk that version 2 added: what names stand for, and call stacks.
//!
//! Names come first, as in version 1, each with its text. An object section then holds objects, and a section of object
//! names says which object, and which part of it, each of the names of a class is. Both, like stacks, follow each other
//! without gaps. Everything that they refer to is defined before.

use super::column::{self, Cursor};
use super::definitions::BadDefinitions;
use crate::error::TraceError;
use crate::ids::{LocId, StackId};
use crate::names::{Names, ObjectClass};
use crate::objects::{Apart, ApartBy, PackedName, PackedObject, PackedOwner, Pointee, Through};
use crate::stacks::Frame;

/// Section of texts that objects are made of.
pub(super) const WORDS: u8 = 129;
/// Section of objects.
pub(super) const OBJECTS: u8 = 130;
/// Section of what the names of a class stand for.
pub(super) const OBJECT_NAMES: u8 = 131;
/// Section of call stacks.
pub(super) const STACKS: u8 = 132;
/// Section of what pointers pointed to.
pub(super) const POINTEES: u8 = 133;
/// Section of who owns allocated memory.
pub(super) const OWNERS: u8 = 134;

/// The most that one section holds.
const SECTION: usize = 1 << 16;

/// What was written already.
#[derive(Default)]
pub(super) struct Written {
    objects: usize,
    names: [usize; ObjectClass::ALL.len()],
    stacks: usize,
    pointees: usize,
    owners: usize,
}

impl Written {
    /// Whether `names` has something new.
    pub(super) fn is_behind(&self, names: &Names) -> bool {
        self.objects < names.objects().all().len()
            || self.stacks < names.stacks().len()
            || self.pointees < names.objects().pointees.all().len()
            || self.owners < names.objects().owners.all().len()
            || ObjectClass::ALL
                .iter()
                .zip(self.names)
                .any(|(&class, names_of)| names_of < names.objects().names(class).len())
    }

    /// Hands out everything new, section by section.
    pub(super) fn write_new(
        &mut self,
        names: &Names,
        mut emit: impl FnMut(&[u8]) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let objects = names.objects();
        for part in objects.all()[self.objects..].chunks(SECTION) {
            let mut section = head(&[OBJECTS], self.objects, part.len());
            put(&mut section, part, |object| object.kind);
            for field in 0..4 {
                put(&mut section, part, |object| object.fields[field]);
            }
            self.objects += part.len();
            emit(&section)?;
        }
        for (&class, written) in ObjectClass::ALL.iter().zip(&mut self.names) {
            for part in objects.names(class)[*written..].chunks(SECTION) {
                let mut section = head(&[OBJECT_NAMES, class as u8], *written, part.len());
                put(&mut section, part, |name| name.object);
                put(&mut section, part, |name| name.path);
                put(&mut section, part, |name| name.offset as u32);
                put(&mut section, part, |name| (name.offset >> 32) as u32);
                let apart: Vec<(u32, u64, Apart)> = part.iter().map(|&name| by_number(objects.apart(name))).collect();
                put(&mut section, &apart, |(by, ..)| *by);
                put(&mut section, &apart, |(_, number, _)| *number as u32);
                put(&mut section, &apart, |(_, number, _)| (*number >> 32) as u32);
                put(&mut section, &apart, |(.., apart)| apart.len);
                put(&mut section, &apart, |(.., apart)| apart.again);
                *written += part.len();
                emit(&section)?;
            }
        }
        let stacks: Vec<StackId> = names.stacks().ids().skip(self.stacks).collect();
        for part in stacks.chunks(SECTION) {
            let mut section = head(&[STACKS], self.stacks, part.len());
            put(&mut section, part, |&stack| StackId::to_column(names.stacks().parent(stack)));
            put(&mut section, part, |&stack| names.stacks().frame(stack).function);
            put(&mut section, part, |&stack| names.stacks().frame(stack).call.to_bits());
            self.stacks += part.len();
            emit(&section)?;
        }
        for part in objects.pointees.all()[self.pointees..].chunks(SECTION) {
            let mut section = head(&[POINTEES], self.pointees, part.len());
            put(&mut section, part, |pointee| pointee.variable);
            put(&mut section, part, |pointee| pointee.value as u32);
            put(&mut section, part, |pointee| (pointee.value >> 32) as u32);
            put(&mut section, part, |pointee| pointee.word);
            self.pointees += part.len();
            emit(&section)?;
        }
        for part in objects.owners.all()[self.owners..].chunks(SECTION) {
            let mut section = head(&[OWNERS], self.owners, part.len());
            put(&mut section, part, |owner| owner.object);
            put(&mut section, part, |owner| owner.owner);
            put(&mut section, part, |owner| owner.behind);
            put(&mut section, part, |owner| owner.through as u32);
            put(&mut section, part, |owner| owner.several.into());
            self.owners += part.len();
            emit(&section)?;
        }
        Ok(())
    }
}

fn head(tag: &[u8], first: usize, count: usize) -> Vec<u8> {
    let mut section = tag.to_vec();
    section.extend((first as u32).to_le_bytes());
    section.extend((count as u32).to_le_bytes());
    section
}

fn put<T>(section: &mut Vec<u8>, part: &[T], number: impl Fn(&T) -> u32) {
    column::write(&part.iter().map(number).collect::<Vec<u32>>(), true, section);
}

fn by_number(apart: Apart) -> (u32, u64, Apart) {
    match apart.by {
        ApartBy::Nothing => (0, 0, apart),
        ApartBy::Address(address) => (1, address, apart),
        ApartBy::Nth(n) => (2, n, apart),
    }
}

/// The columns of a section.
fn columns<const N: usize>(cursor: &mut Cursor<'_>, count: usize) -> Result<[Vec<u32>; N], BadDefinitions> {
    let mut columns = [const { Vec::new() }; N];
    for column in &mut columns {
        cursor.column(count, column)?;
    }
    Ok(columns)
}

/// The count of a section, which must continue `known` ones to at most `limit`.
fn count(cursor: &mut Cursor<'_>, known: usize, limit: usize) -> Result<usize, BadDefinitions> {
    let first = cursor.u32()? as usize;
    let count = cursor.u32()? as usize;
    if first != known {
        return Err("what it defines does not continue what was defined before".into());
    }
    if count > SECTION || first + count > limit {
        return Err("it claims more objects or stacks than there can be".into());
    }
    Ok(count)
}

pub(super) fn read_objects(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<(), BadDefinitions> {
    // Every object has a name, which is defined before.
    let names_of_all = ObjectClass::ALL.iter().map(|&class| names.count(class)).sum();
    let first = names.objects().all().len();
    let count = count(cursor, first, names_of_all)?;
    let [kinds, a, b, c, d] = columns(cursor, count)?;
    for i in 0..count {
        let object = PackedObject { kind: kinds[i], fields: [a[i], b[i], c[i], d[i]] };
        if !object.is_defined(names) {
            return Err("an object is of an unknown kind, or made of what is not defined".into());
        }
        if names.objects_mut().intern(object) as usize != first + i {
            return Err("it defines an object twice".into());
        }
    }
    Ok(())
}

pub(super) fn read_names(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<(), BadDefinitions> {
    let class = ObjectClass::from_code(cursor.byte()?).ok_or("a class of names is not known here")?;
    let first = names.objects().names(class).len();
    let count = count(cursor, first, names.count(class))?;
    let [objects, paths, lows, highs, by, by_lows, by_highs, lens, agains] = columns(cursor, count)?;
    let (all, words) = (names.objects().all().len(), names.objects().words().len());
    for i in 0..count {
        if objects[i] as usize > all || paths[i] as usize > words {
            return Err("a name is made of an object or a word that is not defined".into());
        }
        let number = u64::from(by_lows[i]) | u64::from(by_highs[i]) << 32;
        let by = match by[i] {
            0 => ApartBy::Nothing,
            1 => ApartBy::Address(number),
            2 => ApartBy::Nth(number),
            _ => return Err("names are told apart in an unknown way".into()),
        };
        let offset = u64::from(lows[i]) | u64::from(highs[i]) << 32;
        let apart = Apart { by, len: lens[i], again: agains[i] };
        let name = PackedName::new(objects[i], paths[i], offset);
        names.objects_mut().describe(class, (first + i) as u32, name, apart);
    }
    Ok(())
}

pub(super) fn read_stacks(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<(), BadDefinitions> {
    let first = names.stacks().len();
    let count = count(cursor, first, StackId::LIMIT)?;
    let [parents, functions, calls] = columns(cursor, count)?;
    for i in 0..count {
        // A parent, counted from 1, is a stack before this one, so there are no circles.
        if parents[i] as usize > first + i {
            return Err("a stack is called from one that is not defined".into());
        }
        let call = LocId::from_bits(calls[i]);
        let is_place = call.table_index().is_none_or(|entry| entry < names.location_table().len());
        if functions[i] as usize >= names.count(ObjectClass::Function) || !is_place {
            return Err("a stack has a function or a location that is not defined".into());
        }
        let frame = Frame { function: functions[i], call };
        let parent = StackId::from_column(parents[i]);
        let id = names.stacks_mut().intern(parent, frame).map_err(BadDefinitions::Name)?;
        if id.index() != first + i {
            return Err("it defines a stack twice".into());
        }
    }
    Ok(())
}

pub(super) fn read_pointees(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<(), BadDefinitions> {
    let first = names.objects().pointees.all().len();
    let count = count(cursor, first, u32::MAX as usize)?;
    let [variables, lows, highs, words] = columns(cursor, count)?;
    let (known, named) = (names.count(ObjectClass::Variable), names.objects().words().len());
    for i in 0..count {
        if variables[i] as usize >= known || words[i] as usize >= named {
            return Err("a pointer is a variable, or points to something, that is not defined".into());
        }
        let value = (u64::from(lows[i]) | u64::from(highs[i]) << 32) as i64;
        names.objects_mut().pointees.add(Pointee { variable: variables[i], value, word: words[i] });
    }
    Ok(())
}

pub(super) fn read_owners(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<(), BadDefinitions> {
    let first = names.objects().owners.all().len();
    let count = count(cursor, first, u32::MAX as usize)?;
    let [objects, owners, behind, through, several] = columns(cursor, count)?;
    let (known, words) = (names.objects().all().len(), names.objects().words().len());
    for i in 0..count {
        let is_object = (1..=known).contains(&(objects[i] as usize));
        let through = Through::from_code(through[i]).filter(|_| several[i] <= 1);
        let (Some(through), true) = (through, is_object && (owners[i].max(behind[i]) as usize) < words) else {
            return Err("memory has an owner in an unknown way, or one that is not defined".into());
        };
        let (object, owner, behind, several) = (objects[i], owners[i], behind[i], several[i] == 1);
        names.objects_mut().owners.add(PackedOwner { object, owner, behind, through, several });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::portent::bits::SLACK;
    use crate::format::portent::definitions;
    use crate::format::portent::frame::Version;
    use crate::objects::{Object, ObjectName};

    /// Two threads, two functions, two locations, one word and one object.
    fn names() -> Names {
        let mut names = Names::default();
        for name in ["a", "b"] {
            names.intern(ObjectClass::Thread, name.as_bytes()).unwrap();
            names.intern(ObjectClass::Function, name.as_bytes()).unwrap();
            names.intern_location(name.as_bytes()).unwrap();
        }
        names.intern_object(ObjectClass::Variable, &ObjectName::of(Object::Global { name: "g" })).unwrap();
        names.intern(ObjectClass::Variable, b"v").unwrap();
        names
    }

    /// What is said about a section with these numbers, column by column.
    fn fault(version: Version, tag: &[u8], first: usize, columns: &[&[u32]]) -> Option<String> {
        let mut payload = head(tag, first, columns[0].len());
        columns.iter().for_each(|column| column::write(column, true, &mut payload));
        payload.extend([0; SLACK]);
        match definitions::read(&payload, &mut names(), version) {
            Ok(()) => None,
            Err(BadDefinitions::Form(fault)) => Some(fault.into()),
            Err(BadDefinitions::Name(problem)) => Some(problem.to_string()),
        }
    }

    #[test]
    fn only_stacks_that_were_called_from_earlier_ones_are_let_in() {
        let stacks = |first, columns: &[&[u32]]| fault(Version::Two, &[STACKS], first, columns);
        assert_eq!(stacks(0, &[&[0, 1, 1], &[0, 1, 0], &[0, 1, 1 << 31]]), None);
        for (first, columns, expected) in [
            (0, [[0, 2], [0, 1], [0, 0]], "a stack is called from one that is not defined"),
            (0, [[1, 0], [0, 1], [0, 0]], "a stack is called from one that is not defined"),
            (0, [[0, u32::MAX], [0, 1], [0, 0]], "a stack is called from one that is not defined"),
            (0, [[0, 1], [0, 2], [0, 0]], "a stack has a function or a location that is not defined"),
            (0, [[0, 1], [0, 1], [0, 2]], "a stack has a function or a location that is not defined"),
            (0, [[0, 0], [1, 1], [0, 0]], "it defines a stack twice"),
            (1, [[0, 1], [0, 1], [0, 0]], "what it defines does not continue what was defined before"),
        ] {
            let found = stacks(first, &columns.each_ref().map(|column| &column[..]));
            assert_eq!(found.as_deref(), Some(expected), "{columns:?}");
        }
        assert!(fault(Version::One, &[STACKS], 0, &[&[0], &[0], &[0]]).is_some(), "version 1 has none");
    }

    #[test]
    fn only_pointers_to_what_is_defined_are_let_in() {
        let pointees =
            |columns: [u32; 4]| fault(Version::Two, &[POINTEES], 0, &columns.each_ref().map(std::slice::from_ref));
        assert_eq!(pointees([1, 5, 1 << 31, 0]), None);
        let said = "a pointer is a variable, or points to something, that is not defined";
        assert_eq!((pointees([2, 0, 0, 0]).as_deref(), pointees([0, 0, 0, 1]).as_deref()), (Some(said), Some(said)));
    }

    #[test]
    fn only_owners_that_are_defined_are_let_in() {
        let owners =
            |columns: [u32; 5]| fault(Version::Two, &[OWNERS], 0, &columns.each_ref().map(std::slice::from_ref));
        assert_eq!(owners([1, 0, 0, 3, 1]), None);
        let said = Some("memory has an owner in an unknown way, or one that is not defined");
        for wrong in
            [[0, 0, 0, 0, 0], [2, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 4, 0], [1, 0, 0, 0, 2]]
        {
            assert_eq!(owners(wrong).as_deref(), said, "{wrong:?}");
        }
    }

    #[test]
    fn a_claimed_count_is_not_believed() {
        for (tag, known) in [(&[STACKS][..], 0u32), (&[OBJECTS], 1), (&[OBJECT_NAMES, 1], 1)] {
            for claimed in [1 << 17, u32::MAX] {
                let mut payload = tag.to_vec();
                payload.extend(known.to_le_bytes());
                payload.extend(claimed.to_le_bytes());
                payload.extend([0; 5 * 9 + SLACK]);
                let read = definitions::read(&payload, &mut names(), Version::Two);
                let more = "it claims more objects or stacks than there can be";
                assert!(matches!(read, Err(BadDefinitions::Form(fault)) if fault == more), "{tag:?}, {claimed}");
            }
        }
    }

    #[test]
    fn only_objects_made_of_what_is_defined_are_let_in() {
        let object =
            |object: [u32; 5]| fault(Version::Two, &[OBJECTS], 1, &object.each_ref().map(std::slice::from_ref));
        let numbered = 1 << 31;
        for fine in [
            [2, 0, numbered | 7, 3, 0],
            [2, 1, 1, 3, 0],
            [3, 1, 0, 0, 0],
            [3, 1, 1, 1, 0],
            [4, 9, 9, 0, 0],
            [6, 1, 0, 0, 0],
            [7, 9, 9, 9, 9],
            [9, 77, 1, 1, 1],
            [9, 77, 0, 0, 0],
            [10, 0, 9, 9, 0],
        ] {
            assert_eq!(object(fine), None, "{fine:?}");
        }
        for bad in [
            [0, 0, 0, 0, 0],
            [10, 1, 0, 0, 0],
            [10, 0, 0, 0, 1],
            [11, 0, 0, 0, 0],
            [1, 1, 0, 0, 0],
            [1, 0, 1, 0, 0],
            [2, 2, 0, 1, 0],
            [2, 0, 2, 1, 0],
            [2, 0, 0, 1, 1],
            [3, 2, 0, 0, 0],
            [3, 0, 1, 0, 0],
            [3, 0, 1, 2, 0],
            [4, 0, 0, 1, 0],
            [6, 2, 0, 0, 0],
            [8, 0, 0, 0, 0],
            [9, 0, 2, 0, 0],
            [9, 0, 0, 2, 0],
            [9, 0, 0, 1, 2],
            [9, 0, 0, 0, 1],
        ] {
            let said = "an object is of an unknown kind, or made of what is not defined";
            assert_eq!(object(bad).as_deref(), Some(said), "{bad:?}");
        }
        assert_eq!(object([1, 0, 0, 0, 0]).as_deref(), Some("it defines an object twice"));
    }

    #[test]
    fn only_names_made_of_what_is_defined_are_let_in() {
        let name = |object, path, by| {
            let columns = [object, path, 5, 0, by, 0, 0, 0, 0];
            fault(Version::Two, &[OBJECT_NAMES, 1], 1, &columns.each_ref().map(std::slice::from_ref))
        };
        assert_eq!((name(0, 0, 0), name(1, 1, 2)), (None, None));
        let said = "a name is made of an object or a word that is not defined";
        assert_eq!((name(2, 0, 0).as_deref(), name(1, 2, 0).as_deref()), (Some(said), Some(said)));
        assert_eq!(name(1, 1, 3).as_deref(), Some("names are told apart in an unknown way"));
    }
}
