//! What is written to a `.portent` file is read back, whatever it is.

mod common;

use common::*;
use portent_trace::format::PortentReader;
use portent_trace::{ByteRange, InputBatch, InputEvent, InputOp, InputSource, LocId, Names, ObjectClass, ThreadId};
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
