//! What is written to a `.portent` file is read back, whatever it is.

use crate::common::*;
use portent_trace::format::{PortentReader, PortentWriter};
use portent_trace::stats::{StackStats, Stats};
use portent_trace::{
    ByteRange, Frame, InputBatch, InputEvent, InputOp, InputSource, LocId, Names, Object, ObjectClass, ObjectName,
    StackId, ThreadId, Trace, WriteOrder,
};
use proptest::prelude::*;
use std::io::Cursor;

const OBJECTS: u32 = 6;
const LOCATIONS: u32 = 5;

/// Names that every event below can refer to: `OBJECTS` of each class.
fn names(texts: &[String], ranges: bool) -> Names {
    let mut names = Names::default();
    for class in ObjectClass::ALL {
        for i in 0..OBJECTS {
            let name = format!("{}{i}", texts[i as usize % texts.len()]);
            if ranges && class == ObjectClass::Variable && i % 3 != 2 {
                let range = ByteRange { region: i / 3, start: u64::MAX / 2 + u64::from(i) * 4, len: 8 };
                names.intern_range(name.as_bytes(), range).unwrap();
            } else {
                names.intern(class, name.as_bytes()).unwrap();
            }
        }
    }
    for i in 0..LOCATIONS {
        match i % 2 {
            0 => names.intern_location_in(&format!("dir/{}.c:{i}", texts[0]), &texts[texts.len() - 1]).unwrap(),
            _ => names.intern_location(format!("place {i}").as_bytes()).unwrap(),
        };
    }
    names
}

fn value() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        3 => Just(None),
        3 => (-3i64..3).prop_map(Some),
        1 => any::<i64>().prop_map(Some),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX)].prop_map(Some),
    ]
}

fn event() -> impl Strategy<Value = InputEvent> {
    let ops: Vec<InputOp> = InputOp::all().collect();
    let loc = prop_oneof![
        (0..LOCATIONS as usize).prop_map(|entry| LocId::from_index(entry).unwrap()),
        (0..4u64).prop_map(|number| LocId::from_number(number).unwrap()),
        (0..=u64::from(LocId::MAX)).prop_map(|number| LocId::from_number(number).unwrap()),
    ];
    (0..OBJECTS as usize, prop::sample::select(ops), 0..OBJECTS, value(), loc).prop_map(
        |(thread, op, object, value, loc)| InputEvent {
            thread: ThreadId::new(thread),
            op,
            object: if op.class() == ObjectClass::None { 0 } else { object },
            value,
            loc,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_events_and_names_come_back_from_portent(
        events in prop::collection::vec(event(), 0..400),
        texts in prop::collection::vec("\\PC{0,12}", 1..4),
        ranges in any::<bool>(),
        chunk in 1usize..300,
    ) {
        let names = names(&texts, ranges);
        let bytes = to_portent(&names, &events, chunk);
        let read = from_portent(&bytes).unwrap();
        prop_assert_eq!(&read.events, &events);
        prop_assert_eq!(contents(&read.names), contents(&names));
        prop_assert_eq!((read.missing, read.expected), (None, Some(events.len() as u64)));
        prop_assert_eq!(to_portent(&read.names, &read.events, chunk), bytes);
    }

    #[test]
    fn std_to_portent_to_std_keeps_every_letter(
        events in prop::collection::vec(event(), 1..200),
        texts in prop::collection::vec("[a-zé漢(). ]{0,6}x", 1..4),
        chunk in 1usize..100,
    ) {
        let mut names = names(&texts, false);
        // Functions have no place in STD text.
        for i in 0..LOCATIONS {
            names.intern_location(format!("at {i}").as_bytes()).unwrap();
        }
        let moved: Vec<InputEvent> = events
            .iter()
            .map(|event| match event.loc.table_index() {
                Some(entry) => InputEvent { loc: LocId::from_index(entry + LOCATIONS as usize).unwrap(), ..*event },
                None => *event,
            })
            .collect();
        let text = to_std(&names, &moved);
        let (names, events) = from_std(&text);
        let read = from_portent(&to_portent(&names, &events, chunk)).unwrap();
        prop_assert_eq!(to_std(&read.names, &read.events), text);
    }

    #[test]
    fn reading_can_start_at_any_event(
        events in prop::collection::vec(event(), 1..200),
        chunk in 1usize..100,
        start in 0usize..220,
    ) {
        let names = names(&["n".into()], false);
        let bytes = to_portent(&names, &events, chunk);
        let mut reader = PortentReader::open(Cursor::new(&bytes), false).unwrap();
        drain(&mut reader).1.unwrap();
        reader.seek_to_event(start as u64).unwrap();
        let mut batch = InputBatch::default();
        if reader.next_batch(&mut batch).unwrap() {
            prop_assert_eq!(batch.first, start as u64);
            prop_assert_eq!(batch.get(0), events[start]);
        }
        reader.seek_to_event(start as u64).unwrap();
        let (found, result) = drain(&mut reader);
        result.unwrap();
        prop_assert_eq!(&found[..], &events[start.min(events.len())..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_stacks_of_any_events_come_back_from_portent(
        events in prop::collection::vec(event(), 0..300),
        chosen in prop::collection::vec(0usize..8, 0..300),
        calls in prop::collection::vec((0usize..9, 0..OBJECTS, 0..=u64::from(LocId::MAX)), 7),
        chunk in 1usize..200,
    ) {
        let mut names = names(&["n".into()], false);
        let mut known = vec![None];
        for (parent, function, call) in calls {
            let frame = Frame { function, call: LocId::from_number(call).unwrap() };
            known.push(Some(names.stacks_mut().intern(known[parent % known.len()], frame).unwrap()));
        }
        let stacks: Vec<Option<StackId>> = chosen.into_iter().map(|i| known[i]).take(events.len()).collect();
        let bytes = to_portent_in(&names, &events, &stacks, chunk);
        let read = from_portent(&bytes).unwrap();
        prop_assert_eq!(&read.events, &events);
        prop_assert_eq!(&read.stacks[..stacks.len()], &stacks[..]);
        prop_assert!(read.stacks[stacks.len()..].iter().all(Option::is_none));
        prop_assert_eq!(contents(&read.names), contents(&names));
    }
}

#[test]
fn what_objects_are_comes_back_from_portent_whenever_it_was_said() {
    let Recorded { names, events, stacks } = small_recorded();
    for chunk in [1, 7, 1000] {
        let read = from_portent(&to_portent_in(&names, &events, &stacks, chunk)).unwrap();
        assert_eq!(contents(&read.names), contents(&names));
        assert_eq!((read.events, read.stacks), (events.clone(), stacks.clone()));
    }
    let out = Shared::default();
    let mut writer = PortentWriter::new(out.clone()).unwrap();
    let mut growing = Names::default();
    for i in 0..200_000u64 {
        let global = ObjectName { path: ".x", ..ObjectName::at(Object::Global { name: "g" }, i) };
        growing.intern_object(ObjectClass::Variable, &global).unwrap();
        growing.intern(ObjectClass::Lock, format!("l{i}").as_bytes()).unwrap();
        if i % 50_000 == 49_999 {
            writer.write(&growing, &InputBatch::default()).unwrap();
        }
    }
    writer.finish().unwrap();
    let read = from_portent(&out.bytes()).unwrap();
    assert!(contents(&read.names) == contents(&growing));
}

/// Programs call and return: the stack of most events need not be told.
#[test]
fn stacks_that_follow_calls_and_returns_take_little_room() {
    let mut names = Names::default();
    names.intern(ObjectClass::Thread, b"T").unwrap();
    names.intern(ObjectClass::Variable, b"x").unwrap();
    let functions: Vec<u32> =
        (0..20).map(|f| names.intern(ObjectClass::Function, format!("f{f}").as_bytes()).unwrap()).collect();
    let (mut events, mut stacks, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let thread = ThreadId::new(0);
    let event = |op, object| InputEvent { thread, op, object, value: None, loc: LocId::from_number(9).unwrap() };
    for i in 0..100_000u64 {
        let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        match noise % 10 {
            0 if open.len() < 12 => {
                let function = functions[noise as usize / 10 % 20];
                let frame = Frame { function, call: LocId::from_number(noise / 200 % 3).unwrap() };
                let stack = names.stacks_mut().intern(open.last().copied(), frame).unwrap();
                open.push(stack);
                events.push(event(InputOp::Call, function));
                stacks.push(Some(stack));
            }
            1 if !open.is_empty() => {
                events.push(event(InputOp::Return, 0));
                stacks.push(open.pop());
            }
            _ => {
                events.push(event(InputOp::Write(WriteOrder::Plain), 0));
                stacks.push(open.last().copied());
            }
        }
    }
    let (with, without) = (to_portent_in(&names, &events, &stacks, 65_536), to_portent(&names, &events, 65_536));
    let read = from_portent(&with).unwrap();
    assert_eq!((read.events.len(), read.stacks), (events.len(), stacks));
    let more = with.len() - without.len();
    assert!(more < 35_000, "{more} bytes for {} events", events.len());
}

#[test]
fn stacks_are_counted_where_there_are_any() {
    let counted = |stacks: &[Option<StackId>], names: &Names, events: &[InputEvent]| {
        let bytes = to_portent_in(names, events, stacks, 3);
        let mut reader = PortentReader::open(Cursor::new(&bytes), false).unwrap();
        Stats::collect(&mut reader, |_| {}).unwrap().stacks
    };
    let (mut names, events) = from_std("T1|call(f)|1\nT1|call(f)|2\nT1|w(x)|3\nT1|ret(f)|4\nT1|ret(f)|5\n");
    assert_eq!(counted(&[], &names, &events), None);
    let frame = |line| Frame { function: 0, call: LocId::from_number(line).unwrap() };
    let outer = names.stacks_mut().intern(None, frame(1)).unwrap();
    let inner = names.stacks_mut().intern(Some(outer), frame(2)).unwrap();
    let stacks = [Some(outer), Some(inner), Some(inner), Some(inner)];
    assert_eq!(counted(&stacks, &names, &events), Some(StackStats { count: 2, deepest: 2, events: 4 }));
}

#[test]
fn a_trace_knows_the_stacks_of_its_events() {
    let mut names = Names::default();
    names.intern(ObjectClass::Function, b"main").unwrap();
    let frame = Frame { function: 0, call: LocId::from_number(1).unwrap() };
    let stack = names.stacks_mut().intern(None, frame).unwrap();
    let (std_names, events) = from_std("T1|fork(T2)|1\nT1|acq(l)|2\nT1|acq(l)|3\nT1|rel(l)|4\nT1|w(x)|5\n");
    for class in [ObjectClass::Thread, ObjectClass::Lock, ObjectClass::Variable] {
        for name in std_names.table(class).iter() {
            names.intern(class, name.as_bytes()).unwrap();
        }
    }
    let bytes = to_portent_in(&names, &events, &[None, None, Some(stack), None, Some(stack)], 2);
    let mut reader = PortentReader::open(Cursor::new(&bytes), false).unwrap();
    let trace = Trace::from_input(&mut reader).unwrap();
    let stacks: Vec<_> = trace.events().map(|event| (trace.input_index(event.id), trace.stack(event.id))).collect();
    assert_eq!(stacks, [(0, None), (1, None), (4, Some(stack))]);
    assert_eq!(trace.names().stacks().frames(stack).collect::<Vec<_>>(), [frame]);
}

#[test]
fn long_traces_take_few_bytes_per_event_and_come_back() {
    let mut names = Names::default();
    for i in 0..50 {
        names.intern(ObjectClass::Thread, format!("T{i}").as_bytes()).unwrap();
        names.intern(ObjectClass::Variable, format!("v{i}").as_bytes()).unwrap();
    }
    let ops: Vec<InputOp> = InputOp::all().filter(|op| op.is_access()).collect();
    let events: Vec<InputEvent> = (0..200_000u64)
        .map(|i| {
            let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            InputEvent {
                thread: ThreadId::new((noise >> 60) as usize),
                op: ops[(noise >> 50) as usize % ops.len()],
                object: (noise >> 40) as u32 % 50,
                value: (i % 3 != 0).then_some((noise >> 54) as i64),
                loc: LocId::from_number(i).unwrap(),
            }
        })
        .collect();
    let bytes = to_portent(&names, &events, 65_536);
    assert!(bytes.len() < 6 * events.len(), "{} bytes", bytes.len());
    assert_eq!(from_portent(&bytes).unwrap().events, events);
}

#[test]
fn batches_are_small_and_know_their_chunk() {
    let (names, events) = from_std(&"T|w(x)|1\n".repeat(20_000));
    let bytes = to_portent(&names, &events, 65_536);
    let mut reader = PortentReader::open(Cursor::new(&bytes), false).unwrap();
    let mut batch = InputBatch::default();
    let mut seen = 0;
    while reader.next_batch(&mut batch).unwrap() {
        assert_eq!(batch.first, seen);
        assert!(batch.len() <= InputBatch::TARGET);
        assert!(batch.position(0).to_string().contains("chunk at byte"), "{}", batch.position(0));
        seen += batch.len() as u64;
    }
    assert_eq!(seen, 20_000);
}
