//! What must hold of the readers for any bytes whatsoever: they never panic, and what they accept survives being written
//! and read again. Fuzz targets and the replay of their findings share this file.

use portent_trace::format::{Dialect, PortentReader, PortentWriter, StdReader, StdWriter};
use portent_trace::{
    Batch, InputBatch, InputEvent, InputSource, Layout, Lowering, Names, ObjectClass, StackId, TraceError,
};
use std::io::Cursor;

/// The events of a source, with the names of what they name, and the names.
struct Contents {
    events: Vec<InputEvent>,
    stacks: Vec<Option<StackId>>,
    names: Names,
}

/// Reads, and lowers for as long as the trace is well-formed.
fn read(source: &mut dyn InputSource) -> Result<Contents, TraceError> {
    let mut lowering = Layout::of(source.names()).ok().map(Lowering::new);
    let (mut batch, mut kernel) = (InputBatch::default(), Batch::default());
    let (mut events, mut stacks) = (Vec::new(), Vec::new());
    while source.next_batch(&mut batch)? {
        events.extend(batch.iter());
        stacks.extend((0..batch.len()).map(|i| batch.stack(i)));
        if let Some(pass) = &mut lowering
            && pass.lower(source.names(), &batch, &mut kernel).is_err()
        {
            lowering = None;
        }
    }
    source.progress();
    source.missing();
    Ok(Contents { events, stacks, names: source.take_names() })
}

fn batch_of(contents: &Contents) -> InputBatch {
    let mut batch = InputBatch::default();
    contents.events.iter().zip(&contents.stacks).for_each(|(&event, &stack)| batch.push_in(event, stack));
    batch
}

/// An event in words, so that traces with differently numbered names can be compared.
fn in_words(contents: &Contents) -> Vec<String> {
    let names = &contents.names;
    let words = |event: &InputEvent| {
        let object = match names.count(event.op.class()) {
            0 => "",
            _ => names.name(event.op.class(), event.object),
        };
        let place = names.location(event.loc);
        format!("{:?} {:?} {object:?} {:?} {:?}", names.thread(event.thread), event.op, place, event.value)
    };
    contents.events.iter().map(words).collect()
}

/// Bytes as STD text: if they parse, writing and reading gives the same events.
pub(crate) fn std_text(bytes: &[u8]) {
    let Ok(contents) = read(&mut StdReader::new(bytes)) else { return };
    let mut text = Vec::new();
    let mut writer = StdWriter::new(&mut text, Dialect::Portent, Layout::default());
    writer.write(&contents.names, &batch_of(&contents)).expect("writing to memory works");
    let notes = writer.finish().expect("writing to memory works");
    let again = read(&mut StdReader::new(&text[..])).expect("what was written is read");
    if notes.is_empty() {
        assert_eq!(in_words(&again), in_words(&contents));
    } else {
        assert_eq!(again.events.len(), contents.events.len());
    }
}

/// Bytes as a `.portent` file, as they are and with their checksums repaired: few changes get past those otherwise.
pub(crate) fn portent_file(bytes: &[u8]) {
    as_portent(bytes);
    as_portent(&with_checksums(bytes));
}

/// The same bytes, with every checksum of a `.portent` file (docs/src/reference/trace-format.md) made right, as far as its chunks can
/// be followed.
fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    fn seal(bytes: &mut [u8], covered: usize) {
        if bytes.len() >= covered + 4 {
            let crc = crc32fast::hash(&bytes[..covered]);
            bytes[covered..covered + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
    let mut file = bytes.to_vec();
    seal(&mut file, 12);
    let mut at = 16;
    while file.get(at..at + 36).is_some_and(|header| header.starts_with(b"PtCk")) {
        let stored = u32::from_le_bytes([file[at + 12], file[at + 13], file[at + 14], file[at + 15]]) as usize;
        let end = (at + 36).saturating_add(stored).min(file.len());
        let crc = crc32fast::hash(&file[at + 36..end]);
        file[at + 28..at + 32].copy_from_slice(&crc.to_le_bytes());
        seal(&mut file[at..], 32);
        at = end;
    }
    let trailer = file.len().saturating_sub(32).max(at);
    if let Some(trailer) = file.get_mut(trailer..) {
        seal(trailer, 28);
    }
    file
}

/// With and without salvage: if all of it is read, writing and reading gives the same.
fn as_portent(bytes: &[u8]) {
    for salvage in [true, false] {
        let Ok(mut reader) = PortentReader::open(Cursor::new(bytes), salvage) else { continue };
        let result = read(&mut reader);
        let Ok(contents) = result else { continue };
        if reader.missing().is_some() {
            continue;
        }
        let mut file = Vec::new();
        let mut writer = PortentWriter::new(&mut file).expect("writing to memory works");
        writer.write(&contents.names, &batch_of(&contents)).expect("what was read can be written");
        writer.finish().expect("writing to memory works");
        let mut reader = PortentReader::open(Cursor::new(&file[..]), false).expect("what was written is opened");
        let again = read(&mut reader).expect("what was written is read");
        assert_eq!(again.events, contents.events);
        assert_eq!(in_words(&again), in_words(&contents));
        assert_eq!(again.stacks, contents.stacks);
        assert_eq!(described(&again.names), described(&contents.names));
    }
}

/// What every name stands for, and every stack.
fn described(names: &Names) -> Vec<String> {
    let objects = ObjectClass::ALL
        .into_iter()
        .flat_map(|class| (0..names.count(class) as u32).map(move |id| format!("{:?}", names.object(class, id))));
    let stacks =
        names.stacks().ids().map(|id| format!("{:?} {:?}", names.stacks().parent(id), names.stacks().frame(id)));
    objects.chain(stacks).collect()
}
