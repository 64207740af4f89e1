//! What the format tests share: reading and writing whole traces in memory.

use portent_trace::format::{Dialect, PortentReader, PortentWriter, StdReader, StdWriter};
use portent_trace::{
    Apart, ApartBy, Frame, InputBatch, InputEvent, InputOp, InputSource, Layout, LocId, Local, LockId, Names, Object,
    ObjectClass, ObjectName, StackId, ThreadId, TraceError, WriteOrder,
};
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
    to_portent_in(names, events, &[], chunk_events)
}

/// The same for events with call stacks; those beyond the end of `stacks` have none.
pub(crate) fn to_portent_in(
    names: &Names,
    events: &[InputEvent],
    stacks: &[Option<StackId>],
    chunk_events: usize,
) -> Vec<u8> {
    let out = Shared::default();
    let mut writer = PortentWriter::new(out.clone()).unwrap().with_chunk_events(chunk_events);
    let mut stacks = stacks.iter().copied().chain(std::iter::repeat(None));
    for part in events.chunks(100) {
        let mut batch = InputBatch::default();
        part.iter().zip(&mut stacks).for_each(|(&event, stack)| batch.push_in(event, stack));
        writer.write(names, &batch).unwrap();
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
    let (events, _, result) = drain_with_stacks(source);
    (events, result)
}

type Drained = (Vec<InputEvent>, Vec<Option<StackId>>, Result<(), TraceError>);

fn drain_with_stacks(source: &mut dyn InputSource) -> Drained {
    let mut batch = InputBatch::default();
    let (mut events, mut stacks) = (Vec::new(), Vec::new());
    loop {
        match source.next_batch(&mut batch) {
            Ok(true) => {
                assert!(!batch.is_empty());
                events.extend(batch.iter());
                stacks.extend((0..batch.len()).map(|i| batch.stack(i)));
            }
            Ok(false) => return (events, stacks, Ok(())),
            Err(error) => return (events, stacks, Err(error)),
        }
    }
}

pub(crate) struct Read {
    pub(crate) names: Names,
    pub(crate) events: Vec<InputEvent>,
    pub(crate) stacks: Vec<Option<StackId>>,
    pub(crate) missing: Option<String>,
    pub(crate) expected: Option<u64>,
}

pub(crate) fn from_portent_with(bytes: &[u8], salvage: bool) -> Result<Read, TraceError> {
    let mut reader = PortentReader::open(Cursor::new(bytes), salvage)?;
    let (events, stacks, result) = drain_with_stacks(&mut reader);
    result?;
    let (missing, expected) = (reader.missing(), reader.expected_events());
    Ok(Read { names: reader.take_names(), events, stacks, missing, expected })
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
        all.extend((0..names.count(class) as u32).map(|id| format!("{:?}", names.object(class, id))));
    }
    all.extend(names.stacks().ids().map(|id| format!("{:?}", names.stacks().frames(id).collect::<Vec<_>>())));
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

/// What a recorder would write: every kind of object, and call stacks.
pub(crate) struct Recorded {
    pub(crate) names: Names,
    pub(crate) events: Vec<InputEvent>,
    pub(crate) stacks: Vec<Option<StackId>>,
}

/// The small trace again, as if a recorder had made it.
pub(crate) fn small_recorded() -> Recorded {
    let (mut names, mut events) = from_std(&small_std());
    let start = names.intern_location_in("bank.c:3", "main").unwrap();
    let worker = Object::Thread { number: 7, name: Some("worker é"), start: Some(start) };
    let recorded = names.intern_object(ObjectClass::Thread, &ObjectName::of(worker)).unwrap();
    let stacks = call_stacks(&mut names, start);
    let (main, thread) = (ThreadId::new(0), ThreadId::new(recorded as usize));
    events.push(InputEvent { thread: main, op: InputOp::Fork, object: recorded, value: None, loc: start });
    let objects = every_object(&mut names, start);
    for (i, object) in objects.into_iter().enumerate() {
        let op = InputOp::Write(WriteOrder::Plain);
        events.push(InputEvent { thread, op, object, value: Some(i as i64), loc: LocId::from_bits(0) });
    }
    for op in [InputOp::Call, InputOp::Return] {
        events.push(InputEvent { thread, op, object: 1, value: None, loc: start });
    }
    let stacks = (0..events.len()).map(|i| stacks[i % 7 * (i / 5 % 2)]).collect();
    Recorded { names, events, stacks }
}

/// No stack, and three calls deep, in two ways.
fn call_stacks(names: &mut Names, call: LocId) -> [Option<StackId>; 7] {
    let functions =
        ["main", "transfer(long)", "log"].map(|name| names.intern(ObjectClass::Function, name.as_bytes()).unwrap());
    let mut all = [None; 7];
    for i in 1..all.len() {
        let frame = Frame { function: functions[(i / 2) % 3], call: LocId::from_number(i as u64).unwrap_or(call) };
        let frame = if i == 1 { Frame { call, ..frame } } else { frame };
        all[i] = Some(names.stacks_mut().intern(all[i / 2], frame).unwrap());
    }
    all
}

/// Variables that are every kind of object.
fn every_object(names: &mut Names, site: LocId) -> Vec<u32> {
    let thread = ThreadId::new(1);
    let heap = Object::Heap { type_name: Some("Node"), site, ordinal: 3 };
    let local = Some(Local { function: "transfer", name: "amount" });
    let apart = Apart { by: ApartBy::Address(0x7fff_0000_1234), len: 8, again: 2 };
    let all = [
        ObjectName { path: "[2].balance", ..ObjectName::of(Object::Global { name: "bank::accounts" }) },
        ObjectName { path: ".next", ..ObjectName::of(heap) },
        ObjectName::at(heap, 1 << 33),
        ObjectName::at(Object::Heap { type_name: None, site, ordinal: 1 }, 8),
        ObjectName::at(Object::Stack { thread, local: None }, 2912),
        ObjectName::of(Object::Stack { thread, local }),
        ObjectName::of(Object::Memory { address: 0x7fff_0000_1234 }),
        ObjectName::of(Object::Module { name: "libm.so.6", offset: 1 << 33 }),
        ObjectName { apart, ..ObjectName::of(Object::Unnamed { address: 16 }) },
        ObjectName::of(Object::Nothing { thread }),
        ObjectName::of(Object::Message { channel: 1 << 40, number: 1 << 41 }),
        ObjectName::of(Object::Handover { lock: LockId::new(0) }),
    ];
    all.iter().map(|name| names.intern_object(ObjectClass::Variable, name).unwrap()).collect()
}
