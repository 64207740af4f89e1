//! What the format tests share: reading and writing whole traces in memory.
#![allow(dead_code)]

use portent_trace::format::{Dialect, PortentReader, PortentWriter, StdReader, StdWriter};
use portent_trace::{InputBatch, InputEvent, InputSource, Layout, Names, ObjectClass, TraceError};
use std::io::Cursor;

pub(crate) fn batch_of(events: &[InputEvent]) -> InputBatch {
    let mut batch = InputBatch::default();
    events.iter().for_each(|&event| batch.push(event));
    batch
}

/// An output that can be looked at while a writer owns it.
#[derive(Clone, Default)]
pub(crate) struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn to_portent(names: &Names, events: &[InputEvent], chunk_events: usize) -> Vec<u8> {
    let out = Shared::default();
    let mut writer = PortentWriter::new(out.clone()).unwrap().with_chunk_events(chunk_events);
    for part in events.chunks(100) {
        writer.write(names, &batch_of(part)).unwrap();
    }
    // Names without events are kept too.
    writer.write(names, &InputBatch::default()).unwrap();
    assert!(writer.finish().unwrap().is_empty());
    out.bytes()
}

pub(crate) fn to_std(names: &Names, events: &[InputEvent]) -> String {
    let out = Shared::default();
    let mut writer = StdWriter::new(out.clone(), Dialect::Portent, Layout::of(names).unwrap());
    writer.write(names, &batch_of(events)).unwrap();
    writer.finish().unwrap();
    String::from_utf8(out.bytes()).unwrap()
}

/// All events of a source, up to its end or its error.
pub(crate) fn drain(source: &mut dyn InputSource) -> (Vec<InputEvent>, Result<(), TraceError>) {
    let mut batch = InputBatch::default();
    let mut events = Vec::new();
    loop {
        match source.next_batch(&mut batch) {
            Ok(true) => {
                assert!(!batch.is_empty());
                events.extend(batch.iter());
            }
            Ok(false) => return (events, Ok(())),
            Err(error) => return (events, Err(error)),
        }
    }
}

pub(crate) struct Read {
    pub(crate) names: Names,
    pub(crate) events: Vec<InputEvent>,
    pub(crate) missing: Option<String>,
    pub(crate) expected: Option<u64>,
}

pub(crate) fn from_portent_with(bytes: &[u8], salvage: bool) -> Result<Read, TraceError> {
    let mut reader = PortentReader::open(Cursor::new(bytes), salvage)?;
    let (events, result) = drain(&mut reader);
    result?;
    let (missing, expected) = (reader.missing(), reader.expected_events());
    Ok(Read { names: reader.take_names(), events, missing, expected })
}

pub(crate) fn from_portent(bytes: &[u8]) -> Result<Read, TraceError> {
    from_portent_with(bytes, false)
}

pub(crate) fn from_std(text: &str) -> (Names, Vec<InputEvent>) {
    let mut reader = StdReader::new(text.as_bytes());
    let (events, result) = drain(&mut reader);
    result.unwrap();
    (reader.take_names(), events)
}

/// Everything names hold, for comparison.
pub(crate) fn contents(names: &Names) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for class in ObjectClass::ALL {
        all.extend(names.table(class).iter().map(|name| format!("{class:?} {name}")));
    }
    all.extend(names.location_table().iter().map(|name| format!("location {name}")));
    all.extend((0..names.count(ObjectClass::Variable) as u32).map(|v| format!("range {:?}", names.range(v))));
    all
}

/// The text of the small trace behind the golden files and the damage tests: many operations, threads and values.
pub(crate) fn small_std() -> String {
    let mut text = String::from(
        "main|semi(s)|1|2\nmain|fork(worker é)|bank.c:3\nmain|begin(transfer)|bank.c:9\nmain|w(x)|bank.c:10|-1\n\
         worker é|acq(l)|7\nworker é|u.ar(x)|8|9223372036854775807\nworker é|rel(l)|9\nmain|r.acq(x)|bank.c:11\n\
         main|end(transfer)|\nmain|branch|\nworker é|slp(c)|1\nmain|ntf(c)|2\nworker é|wak(c)|3\nmain|post(s)|4\n",
    );
    for i in 0..30 {
        let thread = if i / 3 % 2 == 0 { "main" } else { "worker é" };
        text.push_str(&format!("{thread}|w(x{})|{}|{}\n", i % 4, i % 5 + 20, i * i));
    }
    text
}
