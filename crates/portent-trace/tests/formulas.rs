//! Formulas in STD text and in `.portent` files, there and back.

use portent_trace::format::{Dialect, FORMULAS, PortentReader, PortentWriter, StdReader, StdWriter, TraceSink};
use portent_trace::generate::Little;
use portent_trace::{EventId, InputBatch, InputSource, Layout, Trace};
use std::io::Cursor;

/// Every event of a source to a sink, with the formulas, as `convert` does it.
fn copy(source: &mut dyn InputSource, sink: &mut dyn TraceSink) {
    let mut batch = InputBatch::default();
    while source.next_batch(&mut batch).unwrap() {
        sink.write(source.names(), &batch).unwrap();
    }
    if let Some(formulas) = source.take_formulas().unwrap() {
        sink.attach(FORMULAS, formulas.to_text().as_bytes()).unwrap();
    }
}

/// What the formulas of a trace come out as, event by event.
fn told(trace: &Trace) -> Vec<(Option<i64>, Vec<i64>)> {
    let Some(symbols) = trace.symbols() else { return Vec::new() };
    let tell = |event: EventId| {
        let written = symbols.written(event).and_then(|e| symbols.dag().evaluate(e, &|read| Some(i64::from(read) * 3)));
        (written, symbols.guards(event).iter().map(|&(_, value)| value).collect())
    };
    (0..trace.len()).map(|e| tell(EventId::new(e))).collect()
}

#[test]
fn formulas_survive_every_conversion() {
    let mut with_some = 0;
    for seed in 0..200 {
        let (text, _) = Little::new(seed).run(seed);
        let trace = Trace::from_std(&text).unwrap();
        let mut bytes = Vec::new();
        let mut writer = PortentWriter::new(&mut bytes).unwrap();
        copy(&mut StdReader::new(text.as_bytes()), &mut writer);
        writer.finish().unwrap();
        let mut reader = PortentReader::open(Cursor::new(&bytes), false).unwrap();
        let binary = Trace::from_input(&mut reader).unwrap();
        assert_eq!(told(&trace), told(&binary), "seed {seed}");
        let mut back = Vec::new();
        let mut writer = StdWriter::new(&mut back, Dialect::Portent, Layout::default());
        copy(&mut PortentReader::open(Cursor::new(&bytes), false).unwrap(), &mut writer);
        writer.finish().unwrap();
        let again = Trace::from_std(std::str::from_utf8(&back).unwrap()).unwrap();
        assert_eq!(told(&trace), told(&again), "seed {seed}");
        with_some += usize::from(trace.symbols().is_some());
    }
    assert!(with_some > 150, "{with_some}");
}

#[test]
fn rapid_knows_no_formulas_and_the_writer_says_so() {
    let mut out = Vec::new();
    let mut writer = StdWriter::new(&mut out, Dialect::Rapid, Layout::default());
    let text = "T1|w(x)|1|4\n#!= (add 2 2)\n";
    copy(&mut StdReader::new(text.as_bytes()), &mut writer);
    let notes = writer.finish().unwrap();
    assert!(notes.iter().any(|note| note.contains("formulas dropped")), "{notes:?}");
    assert!(!String::from_utf8(out).unwrap().contains('#'));
}

#[test]
fn formulas_that_contradict_the_trace_are_refused_with_their_event() {
    let why = |text: &str| Trace::from_std(text).unwrap_err().to_string();
    assert_eq!(why("T1|w(x)|1|5\n#!= (add 2 2)\n"), "event 0: bad formula: the event did not write its value");
    assert_eq!(
        why("T1|r(x)|1|5\nT1|w(x)|2|5\n#!= r1\n"),
        "event 1: bad formula: it names a read that the thread has not made"
    );
    assert_eq!(
        why("T1|r(x)|1\nT1|branch|2\n#!= (gt r0 2)\n"),
        "event 1: bad formula: it has no value: a read it names has none, or it divides by zero"
    );
    assert_eq!(
        why("T1|acq(l)|1\n#!= 1\n"),
        "event 0: bad formula: its event is not one access or branch for the engines"
    );
    assert_eq!(why("T1|r(x)|1|1\n#!= 1\n"), "event 0: bad formula: expected a write, an update or a branch");
    assert_eq!(why("#!= 1\nT1|r(x)|1|1\n"), "line 1: bad formula: no event stands before it");
    assert_eq!(why("T1|w(x)|1|1\n#!= (add 1\n"), "line 2: bad formula: expected an expression or ), found the end");
    assert!(Trace::from_std("#!/usr/bin/env portent\nT1|w(x)|1|1\n").unwrap().symbols().is_none());
}
