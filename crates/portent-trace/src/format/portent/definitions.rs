//! The payload of a definitions chunk: names added since the chunk before, locations, byte ranges of variables, and, next
//! door, what names stand for and call stacks.
//!
//! A payload is a sequence of sections. A name section holds consecutive names of one class; the number of its first
//! name must be the number of names so far, so a lost chunk cannot shift names silently.

use super::column::{self, Cursor, Fault};
use super::described::{self, OBJECT_NAMES, OBJECTS, OWNERS, POINTEES, STACKS, WORDS};
use super::frame::{MAX_PAYLOAD, Version};
use crate::error::{Problem, TraceError};
use crate::names::{ByteRange, NameTable, Names, ObjectClass};

/// Section of the location table.
const LOCATIONS: u8 = 0;
/// Section of byte ranges of variables.
const RANGES: u8 = 128;

/// A section is closed when its text is longer than this.
const SECTION_TEXT: usize = 256 * 1024;
/// The longest name that is written: a section with it still fits a chunk.
const MAX_NAME: usize = 4 << 20;

/// Which names were written already.
#[derive(Default)]
pub(super) struct Written {
    /// Per class, and in place 0 the locations.
    names: [usize; ObjectClass::ALL.len() + 1],
    ranges: usize,
    words: usize,
    described: described::Written,
}

impl Written {
    /// Whether `names` has something new.
    pub(super) fn is_behind(&self, names: &Names) -> bool {
        self.names[0] < names.location_table().len()
            || ObjectClass::ALL.iter().any(|&class| self.names[class as usize] < names.count(class))
            || self.described.is_behind(names)
    }

    /// Hands out everything new, section by section.
    pub(super) fn write_new(
        &mut self,
        names: &Names,
        mut emit: impl FnMut(&[u8]) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let classes = ObjectClass::ALL.iter().map(|&class| (class as u8, names.table(class)));
        let mut section = Vec::new();
        for (tag, table) in classes.chain([(LOCATIONS, names.location_table())]) {
            let written = &mut self.names[tag as usize];
            while *written < table.len() {
                section.clear();
                *written = write_names(tag, table, *written, &mut section)?;
                emit(&section)?;
            }
        }
        while self.words < names.objects().words().len() {
            section.clear();
            self.words = write_names(WORDS, names.objects().words(), self.words, &mut section)?;
            emit(&section)?;
        }
        let variables = self.names[ObjectClass::Variable as usize];
        let ranged: Vec<(u32, ByteRange)> =
            (self.ranges..variables).filter_map(|v| Some((v as u32, names.range(v as u32)?))).collect();
        self.ranges = variables;
        for part in ranged.chunks(1 << 16) {
            section.clear();
            write_ranges(part, &mut section);
            emit(&section)?;
        }
        self.described.write_new(names, emit)
    }
}

/// Writes names from number `first` on until the section is long enough; the number of the first name left.
fn write_names(tag: u8, table: &NameTable, first: usize, out: &mut Vec<u8>) -> Result<usize, TraceError> {
    let (mut lengths, mut text, mut next) = (Vec::new(), String::new(), first);
    while next < table.len() && text.len() < SECTION_TEXT {
        let name = table.get(next);
        if name.len() > MAX_NAME {
            return Err(TraceError::whole(Problem::NameTooLong { limit: MAX_NAME }));
        }
        lengths.push(name.len() as u32);
        text.push_str(name);
        next += 1;
    }
    out.push(tag);
    for number in [first, lengths.len(), text.len()] {
        out.extend((number as u32).to_le_bytes());
    }
    column::write(&lengths, false, out);
    out.extend(text.as_bytes());
    Ok(next)
}

fn write_ranges(ranges: &[(u32, ByteRange)], out: &mut Vec<u8>) {
    out.push(RANGES);
    out.extend((ranges.len() as u32).to_le_bytes());
    let mut put = |part: &dyn Fn(&(u32, ByteRange)) -> u32| {
        column::write(&ranges.iter().map(part).collect::<Vec<u32>>(), true, out);
    };
    put(&|(variable, _)| *variable);
    put(&|(_, range)| range.region);
    put(&|(_, range)| range.start as u32);
    put(&|(_, range)| (range.start >> 32) as u32);
    put(&|(_, range)| range.len);
}

/// What is wrong with definitions: their form, or a name.
pub(super) enum BadDefinitions {
    Form(Fault),
    Name(Problem),
}

impl From<Fault> for BadDefinitions {
    fn from(fault: Fault) -> Self {
        Self::Form(fault)
    }
}

/// Adds the definitions of a payload, followed by slack, to `names`.
pub(super) fn read(padded: &[u8], names: &mut Names, version: Version) -> Result<(), BadDefinitions> {
    let mut cursor = Cursor::new(padded);
    while !cursor.is_at_end() {
        match (cursor.byte()?, version) {
            (RANGES, _) => read_ranges(&mut cursor, names)?,
            (LOCATIONS, _) => read_names(&mut cursor, Table::Locations, names)?,
            (WORDS, Version::Two) => read_names(&mut cursor, Table::Words, names)?,
            (OBJECTS, Version::Two) => described::read_objects(&mut cursor, names)?,
            (OBJECT_NAMES, Version::Two) => described::read_names(&mut cursor, names)?,
            (POINTEES, Version::Two) => described::read_pointees(&mut cursor, names)?,
            (OWNERS, Version::Two) => described::read_owners(&mut cursor, names)?,
            (STACKS, Version::Two) => described::read_stacks(&mut cursor, names)?,
            (code, _) => match ObjectClass::from_code(code) {
                Some(class) => read_names(&mut cursor, Table::Class(class), names)?,
                None => return Err("a class of names is not known here".into()),
            },
        }
    }
    Ok(())
}

/// A table that names are added to.
#[derive(Clone, Copy)]
enum Table {
    Locations,
    Words,
    Class(ObjectClass),
}

impl Table {
    fn len(self, names: &Names) -> usize {
        match self {
            Table::Locations => names.location_table().len(),
            Table::Words => names.objects().words().len(),
            Table::Class(class) => names.count(class),
        }
    }
    /// Adds a name; its number.
    fn add(self, names: &mut Names, name: &[u8]) -> Result<usize, Problem> {
        Ok(match self {
            Table::Locations => names.intern_location_entry(name)?.table_index().unwrap_or(usize::MAX),
            Table::Words => names.objects_mut().word(name)? as usize,
            Table::Class(class) => names.intern(class, name)? as usize,
        })
    }
}

fn read_names(cursor: &mut Cursor<'_>, table: Table, names: &mut Names) -> Result<(), BadDefinitions> {
    let first = cursor.u32()? as usize;
    let count = cursor.u32()? as usize;
    let text_len = cursor.u32()? as usize;
    let known = table.len(names);
    if first != known {
        return Err("its names do not continue the ones before".into());
    }
    // Only one name of a class can be empty, so this bounds the count by the size of the payload.
    if text_len > MAX_PAYLOAD || count > text_len + 1 {
        return Err("it claims more names than it has text for".into());
    }
    let mut lengths = Vec::new();
    cursor.column(count, &mut lengths)?;
    let mut text = cursor.take(text_len)?;
    for (i, &len) in lengths.iter().enumerate() {
        let (name, rest) = text.split_at_checked(len as usize).ok_or("its names are longer than its text")?;
        text = rest;
        if table.add(names, name).map_err(BadDefinitions::Name)? != first + i {
            return Err("it defines a name twice".into());
        }
    }
    if text.is_empty() { Ok(()) } else { Err("it has more text than names".into()) }
}

fn read_ranges(cursor: &mut Cursor<'_>, names: &mut Names) -> Result<(), BadDefinitions> {
    let count = cursor.u32()? as usize;
    if count > names.count(ObjectClass::Variable) {
        return Err("it has more byte ranges than there are variables".into());
    }
    let mut columns: [Vec<u32>; 5] = Default::default();
    for column in &mut columns {
        cursor.column(count, column)?;
    }
    let [variables, regions, lows, highs, lens] = columns;
    for i in 0..count {
        let start = u64::from(lows[i]) | u64::from(highs[i]) << 32;
        let range = ByteRange { region: regions[i], start, len: lens[i] };
        if range.len == 0 || start.checked_add(u64::from(range.len)).is_none() {
            return Err("a byte range is empty or too long".into());
        }
        if variables[i] as usize >= names.count(ObjectClass::Variable) {
            return Err("a byte range belongs to a variable that is not defined".into());
        }
        names.set_range(variables[i], range).map_err(BadDefinitions::Name)?;
    }
    Ok(())
}
