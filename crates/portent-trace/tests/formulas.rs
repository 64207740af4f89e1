//! Formulas in STD text and in `.portent` files, there and back.

use portent_trace::format::{Dialect, FORMULAS, PortentReader, PortentWriter, StdReader, StdWriter, TraceSink};
use portent_trace::generate::{Config, Generator, Little, PRESETS};
use portent_trace::symbolic::Formulas;
use portent_trace::{EventId, InputBatch, InputSource, Layout, Op, Trace};
use std::collections::HashMap;
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

fn generated(config: &Config) -> Trace {
    Trace::from_input(&mut Generator::new(config.clone()).unwrap()).unwrap_or_else(|why| panic!("{why}\n{config:?}"))
}

/// Small presets of every shape, and configurations with updates and atomics.
fn symbolic_configs() -> Vec<Config> {
    let presets = PRESETS.iter().filter_map(|(name, _)| Config::preset(name)).filter(|config| config.events < 20_000);
    let free = (0..20).map(|seed| Config {
        seed,
        events: 300 + 40 * seed,
        updates: 0.1,
        atomic: 0.1,
        branches: if seed % 2 == 0 { 0.1 } else { 0.0 },
        truncated: seed % 3 == 0,
        ..Config::default()
    });
    presets.chain(free).map(|config| Config { symbolic: true, ..config }).collect()
}

/// Every formula of a generated trace, evaluated on what its thread is recorded to have read, comes out as recorded.
#[test]
fn generated_formulas_say_what_the_trace_recorded() {
    let (mut branches, mut reads, mut depend, mut holds_otherwise, mut writes) = (0, 0, 0, 0, 0);
    for config in symbolic_configs() {
        let trace = generated(&config);
        let symbols = trace.symbols().expect("it is symbolic");
        let mut seen: HashMap<_, Vec<Option<i64>>> = HashMap::new();
        let mut memory = HashMap::new();
        for event in trace.events() {
            let seen = seen.entry(event.thread).or_default();
            match event.op {
                Op::Read(x, _) => {
                    assert_eq!(event.value.unwrap(), memory.get(&x).copied().unwrap_or(0), "{config:?}");
                    seen.push(event.value);
                    reads += 1;
                }
                Op::Update(x, _) => seen.push(memory.get(&x).copied()),
                _ => {}
            }
            let evaluate = |expr| symbols.dag().evaluate(expr, &|read| seen.get(read as usize).copied().flatten());
            if let Op::Write(x, _) | Op::Update(x, _) = event.op {
                let written = symbols.written(event.id).expect("every write has a formula");
                assert_eq!(evaluate(written), event.value, "{config:?}");
                assert!((0..256).contains(&event.value.unwrap()), "{config:?}");
                memory.insert(x, event.value.unwrap());
                writes += 1;
                depend += usize::from(!symbols.dag().reads(written).is_empty());
            }
            if event.op == Op::Branch {
                let &[(condition, outcome)] = symbols.guards(event.id) else { panic!("a branch has one condition") };
                assert_eq!(evaluate(condition), Some(outcome), "{config:?}");
                branches += 1;
                let constant = symbols.dag().reads(condition).is_empty();
                let same = |value: i64| symbols.dag().evaluate(condition, &|_| Some(value)) == Some(outcome);
                holds_otherwise += usize::from(!constant && (0..256).filter(|value| same(*value)).count() > 10);
            }
        }
    }
    assert!(branches * 5 > reads && branches < reads, "{branches} branches, {reads} reads");
    assert!(depend * 2 > writes && depend < writes, "{depend} of {writes} depend on reads");
    assert!(holds_otherwise * 2 > branches, "{holds_otherwise} of {branches} conditions leave a choice");
}

#[test]
fn a_generated_symbolic_trace_has_a_branch_after_three_of_ten_reads() {
    let config = Config { events: 50_000, symbolic: true, ..Config::default() };
    let trace = generated(&config);
    let count = |is: fn(&Op) -> bool| trace.events().filter(|event| is(&event.op)).count() as f64;
    let share = count(|op| *op == Op::Branch) / count(|op| matches!(op, Op::Read(..)));
    assert!((0.27..0.33).contains(&share), "{share}");
    let without = generated(&Config { read_branches: Some(0.0), ..config });
    assert!(without.events().all(|event| event.op != Op::Branch));
}

#[test]
fn generated_formulas_survive_every_conversion_and_are_the_same_every_time() {
    for config in symbolic_configs() {
        let mut bytes = Vec::new();
        let mut writer = PortentWriter::new(&mut bytes).unwrap();
        copy(&mut Generator::new(config.clone()).unwrap(), &mut writer);
        writer.finish().unwrap();
        let binary = Trace::from_input(&mut PortentReader::open(Cursor::new(&bytes), false).unwrap()).unwrap();
        let mut text = Vec::new();
        let mut writer = StdWriter::new(&mut text, Dialect::Portent, Layout::default());
        copy(&mut PortentReader::open(Cursor::new(&bytes), false).unwrap(), &mut writer);
        writer.finish().unwrap();
        let text = Trace::from_std(std::str::from_utf8(&text).unwrap()).unwrap();
        let trace = generated(&config);
        assert_eq!(told(&trace), told(&binary), "{config:?}");
        assert_eq!(told(&trace), told(&text), "{config:?}");
    }
}

/// Whoever takes formulas out with every batch gets all of them, and never holds more than a batch's.
#[test]
fn formulas_can_be_taken_batch_by_batch() {
    let config = Config { events: 50_000, symbolic: true, ..Config::default() };
    let whole = generated(&config);
    let mut source = Generator::new(config).unwrap();
    let (mut batch, mut text, mut most) = (InputBatch::default(), String::new(), 0);
    while source.next_batch(&mut batch).unwrap() {
        let formulas = source.take_formulas().unwrap().expect("every batch has some");
        most = most.max(formulas.dag.len());
        text.push_str(&formulas.to_text());
    }
    assert!(most < 3 * InputBatch::TARGET, "{most}");
    let all = Formulas::from_text(text.as_bytes()).unwrap();
    let symbols = whole.symbols().unwrap();
    let expected = (0..whole.len())
        .filter(|&e| symbols.written(EventId::new(e)).is_some() || !symbols.guards(EventId::new(e)).is_empty());
    assert_eq!(all.of.len(), expected.count());
    let by_hundreds = |read: u32| Some(i64::from(read % 256));
    for &(input, _, expr) in &all.of {
        let event = whole.lowered(input).map(EventId::new).next_back().unwrap();
        let same = symbols.written(event).or(symbols.guards(event).first().map(|guard| guard.0)).unwrap();
        assert_eq!(all.dag.evaluate(expr, &by_hundreds), symbols.dag().evaluate(same, &by_hundreds), "event {input}");
    }
}
