//! Attachments: optional chunks, which say something about the trace as a whole and which readers of events pass over.
//!
//! What is longer than a chunk goes into several of the same kind, which follow each other in the file's order. Finding
//! them reads chunk headers or the index, never definitions or events.

use super::frame::{FILE_HEADER, Kind, check_file_header};
use super::map::{self, Input};
use crate::error::{Position, Problem, TraceError};
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// The kind of attachment that says how a trace was recorded: a JSON document (docs/src/reference/trace-format.md).
pub const RECORDING: u8 = 128;
/// The kind of attachment that holds the formulas of a symbolic trace ([`crate::symbolic::Formulas::to_text`]).
pub const FORMULAS: u8 = 129;
/// Kinds of attachments begin here.
pub(super) const FIRST_KIND: u8 = 128;

/// The attachments of a `.portent` file, by kind. Those that are damaged, or lie behind damage, are left out.
pub fn attachments<R: Read + Seek>(input: R) -> Result<BTreeMap<u8, Vec<u8>>, TraceError> {
    let mut input = Input::new(input)?;
    let mut header = [0; FILE_HEADER];
    if input.read_at(0, &mut header)? < FILE_HEADER {
        return Err(TraceError::whole(Problem::Empty));
    }
    check_file_header(&header).map_err(|problem| TraceError::at(Position::Byte(0), problem))?;
    find(&mut input, |_| true)
}

/// The attachments of the kinds that are wanted, of an input whose header is known to be good.
pub(super) fn find<R: Read + Seek>(
    input: &mut Input<R>,
    wanted: impl Fn(u8) -> bool,
) -> Result<BTreeMap<u8, Vec<u8>>, TraceError> {
    let mut found: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    let mut damaged = Vec::new();
    for offset in map::optional_chunks(input)? {
        let Ok(header) = input.header(offset)? else { continue };
        let Kind::Optional(kind) = header.kind else { continue };
        if !wanted(kind) {
            continue;
        }
        match input.read_payload(offset, header) {
            Ok(()) => found.entry(kind).or_default().extend(&input.payload[..header.raw as usize]),
            Err(TraceError { problem: Problem::Io(error), .. }) => return Err(error.into()),
            Err(_) => damaged.push(kind),
        }
    }
    // Half an attachment is none.
    found.retain(|kind, _| !damaged.contains(kind));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{PortentReader, PortentWriter};
    use crate::input::{InputBatch, InputEvent, InputOp, InputSource};
    use crate::{LocId, Names, ObjectClass, ThreadId, WriteOrder};
    use std::io::Cursor;

    fn file(long: &[u8], close: bool) -> Vec<u8> {
        let mut names = Names::default();
        names.intern(ObjectClass::Thread, b"T0").unwrap();
        names.intern(ObjectClass::Variable, b"x").unwrap();
        let mut batch = InputBatch::default();
        let op = InputOp::Write(WriteOrder::Plain);
        let event = InputEvent { thread: ThreadId::new(0), op, object: 0, value: None, loc: LocId::from_bits(0) };
        batch.push(InputEvent { loc: LocId::from_number(7).unwrap(), ..event });
        let mut bytes = Vec::new();
        let mut writer = PortentWriter::new(&mut bytes).unwrap();
        writer.attach(130, b"first").unwrap();
        writer.write(&names, &batch).unwrap();
        writer.attach(RECORDING, long).unwrap();
        writer.write(&names, &batch).unwrap();
        if close {
            writer.finish().unwrap();
        }
        bytes
    }

    fn events(bytes: &[u8]) -> usize {
        let mut reader = PortentReader::open(Cursor::new(bytes), false).unwrap();
        let (mut batch, mut events) = (InputBatch::default(), 0);
        while reader.next_batch(&mut batch).unwrap() {
            events += batch.len();
        }
        events
    }

    #[test]
    fn attachments_of_any_length_come_back_and_do_not_disturb_events() {
        // Longer than a chunk can be, and not compressible beyond what a chunk may be.
        let mut state = 1u32;
        let mut byte = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 24) as u8 & 15
        };
        let long: Vec<u8> = (0..40 << 20).map(|_| byte()).collect();
        let bytes = file(&long, true);
        let found = attachments(Cursor::new(&bytes)).unwrap();
        assert_eq!(found[&130], b"first");
        assert!(found[&RECORDING] == long);
        assert_eq!(events(&bytes), 2);
    }

    #[test]
    fn a_file_that_was_not_closed_still_has_its_attachments() {
        let bytes = file(b"how it was recorded", false);
        assert_eq!(attachments(Cursor::new(&bytes)).unwrap()[&RECORDING], b"how it was recorded");
        let empty = file(b"", true);
        assert_eq!(attachments(Cursor::new(&empty)).unwrap()[&RECORDING], b"");
    }

    #[test]
    fn damage_anywhere_is_no_panic_and_no_half_attachment() {
        let bytes = file(b"how it was recorded", true);
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x41;
            if let Ok(found) = attachments(Cursor::new(&bytes)) {
                assert!(found.get(&RECORDING).is_none_or(|whole| whole == b"how it was recorded"), "{at}");
            }
        }
    }
}
