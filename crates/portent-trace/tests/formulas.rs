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
fn told(trace: &Trace) -> Vec<(Option<i64>, Vec<i64>, Vec<String>)> {
    let Some(symbols) = trace.symbols() else { return Vec::new() };
    let tell = |event: EventId| {
        let value = |expr| symbols.dag().evaluate(expr, &|read| Some(i64::from(read) * 3));
        let written = symbols.written(event).and_then(value);
        let side = symbols.side(event).unwrap_or_default().iter().map(|side| {
            let at = trace.names().location(side.loc).to_string();
            format!("{:?} at {at} = {:?}", side.op, side.written.and_then(value))
        });
        (written, symbols.guards(event).iter().map(|&(_, value)| value).collect(), side.collect())
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

#[test]
fn another_side_is_tied_to_its_branch_or_refused() {
    let head = "T1|acq(l)|1\nT1|r(x)|2|5\nT1|branch|3\n";
    let text =
        format!("{head}#!= (gt r0 2)\n#!else r(y)|9\n#!else w(z)|10|= (add r0 r1)\n#!else u(z)\n#!else rel(l)|11\n");
    let trace = Trace::from_std(&text).unwrap();
    let side = trace.symbols().unwrap().side(EventId::new(2)).unwrap();
    let at: Vec<String> = side.iter().map(|event| trace.names().location(event.loc).to_string()).collect();
    assert_eq!(at, ["9", "10", "3", "11"], "without a place of its own, an event stands where its branch does");
    assert_eq!(side.iter().map(|event| event.written.is_some()).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(trace.variables(), 3, "nobody else accesses y and z");

    let why = |rest: &str| Trace::from_std(&format!("{head}{rest}")).unwrap_err().to_string();
    let truth = "#!= (gt r0 2)\n";
    assert_eq!(
        why("#!else r(y)|9\n"),
        "event 2: bad formula: a branch with another side needs a condition that is true or false"
    );
    assert_eq!(
        why(&format!("{truth}#!else w(y)|9|= r2\n")),
        "event 2: bad formula: the other side names a read that the thread has not made"
    );
    assert!(why(&format!("{truth}#!else acq(l)|9\n")).contains("takes a lock that the thread holds"));
    assert!(why(&format!("{truth}#!else rel(m)|9\n")).contains("gives back one that it does not"));
    assert!(
        why(&format!("{truth}#!else fork(T2)|9\n")).contains("another side has accesses, acq, rel, acqs and rels only")
    );
    assert!(why(&format!("{truth}#!else r(y)|9|4\n")).contains("only a write or an update"));
    assert!(why(&format!("{truth}#!else frob(y)|9\n")).contains("unknown operation"));
    assert_eq!(why("T1|w(x)|4|1\n#!else r(y)|9\n"), "event 3: bad formula: only a branch has another side");
}

#[test]
fn a_trace_with_the_other_side_keeps_what_does_not_depend_on_the_old_one() {
    let text = "M|fork(A)|1\nM|fork(B)|2\nA|r(x)|3|0\nA|branch|4\n#!= (eq r0 0)\n#!else w(z)|5|= 7\nA|w(y)|6|1\n#!= 1\n\
                A|snd(k)|7\nB|r(y)|8|1\nB|w(v)|9|2\n#!= (add r0 1)\nB|w(u)|10|2\nB|w(u)|11|3\n#!= 3\nM|rcv(k)|12\nM|w(x)|13|1\n";
    let trace = Trace::from_std(text).unwrap();
    let branch = trace.events().find(|event| event.op == portent_trace::Op::Branch).unwrap();
    let side = trace.symbols().unwrap().side(branch.id).unwrap();
    let other = trace.other_side(branch.id, side, trace.len()).unwrap();
    let shown = |event: portent_trace::Event| {
        let at = other.trace.names().location(event.loc).to_string();
        format!("{}:{at}={:?}", other.trace.names().thread(event.thread), event.value)
    };
    let events: Vec<String> = other.trace.events().map(shown).collect();
    // B read what A no longer writes: it goes on as far as formulas tell how. M cannot receive what A no longer sends.
    let expected = [
        "M:1=None",
        "M:2=None",
        "A:3=None",
        "A:3=Some(0)",
        "A:4=None",
        "B:8=None",
        "B:8=None",
        "B:9=Some(2)",
        "A:5=None",
    ];
    assert_eq!(events, expected);
    assert_eq!(other.first, 8);
    let symbols = other.trace.symbols().unwrap();
    assert_eq!(symbols.guards(branch.id)[0].1, 0, "the branch goes the other way");
    let written = symbols.written(EventId::new(8)).unwrap();
    assert_eq!(symbols.dag().evaluate(written, &|_| None), Some(7));
}
