//! The payload of a definitions chunk: names added since the chunk before, locations, byte ranges of variables.
//!
//! A payload is a sequence of sections. A name section holds consecutive names of one class; the number of its first
//! name must be the number of names so far, so a lost chunk cannot shift names silently.

use super::column::{self, Cursor, Fault};
use super::frame::MAX_PAYLOAD;
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
}

impl Written {
    /// Whether `names` has something new.
    pub(super) fn is_behind(&self, names: &Names) -> bool {
        self.names[0] < names.location_table().len()
            || ObjectClass::ALL.iter().any(|&class| self.names[class as usize] < names.count(class))
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
        let variables = self.names[ObjectClass::Variable as usize];
        let ranged: Vec<(u32, ByteRange)> =
            (self.ranges..variables).filter_map(|v| Some((v as u32, names.range(v as u32)?))).collect();
        self.ranges = variables;
        for part in ranged.chunks(1 << 16) {
            section.clear();
            write_ranges(part, &mut section);
            emit(&section)?;
        }
        Ok(())
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
pub(super) fn read(padded: &[u8], names: &mut Names) -> Result<(), BadDefinitions> {
    let mut cursor = Cursor::new(padded);
    while !cursor.is_at_end() {
        match cursor.byte()? {
            RANGES => read_ranges(&mut cursor, names)?,
            LOCATIONS => read_names(&mut cursor, None, names)?,
            code => match ObjectClass::from_code(code) {
                Some(class) => read_names(&mut cursor, Some(class), names)?,
                None => return Err("a class of names is not known here".into()),
            },
        }
    }
    Ok(())
}

fn read_names(cursor: &mut Cursor<'_>, class: Option<ObjectClass>, names: &mut Names) -> Result<(), BadDefinitions> {
    let first = cursor.u32()? as usize;
    let count = cursor.u32()? as usize;
    let text_len = cursor.u32()? as usize;
    let known = class.map_or(names.location_table().len(), |class| names.count(class));
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
        let id = match class {
            Some(class) => names.intern(class, name).map_err(BadDefinitions::Name)? as usize,
            None => {
                let loc = names.intern_location_entry(name).map_err(BadDefinitions::Name)?;
                loc.table_index().unwrap_or(usize::MAX)
            }
        };
        if id != first + i {
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
