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
fn told(trace: &Trace) -> Vec<(Option<i64>, Vec<i64>, Vec<String>)> {
    let Some(symbols) = trace.symbols() else { return Vec::new() };
    let tell = |event: EventId| {
        let value = |expr| symbols.dag().evaluate(expr, &|read| Some(i64::from(read) * 3));
        let written = symbols.written(event).and_then(value);
        let side = symbols.side(event).unwrap_or_default().iter().map(|side| {
            let at = trace.names().location(side.loc).to_string();
            let object = side.op.variable().map(|x| trace.variable_name(x).into_owned());
            format!("{} {object:?} at {at} = {:?}", side.op.name(), side.written.and_then(value))
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
        "event 1: bad formula: a read that it depends on has no recorded value"
    );
    assert_eq!(
        why("T1|r(x)|1|0\nT1|w(x)|2|0\n#!= (div 1 r0)\n"),
        "event 1: bad formula: it has no value: it divides by zero, or casts what does not fit"
    );
    assert_eq!(
        why("T1|acq(l)|1\n#!= 1\n"),
        "event 0: bad formula: its event is not one access or branch for the engines"
    );
    assert_eq!(why("T1|r(x)|1|1\n#!= 1\n"), "event 0: bad formula: expected a write, an update or a branch");
    assert_eq!(why("#!= 1\nT1|r(x)|1|1\n"), "line 1: bad formula: no event comes before it");
    assert_eq!(why("T1|w(x)|1|1\n#!= (add 1\n"), "line 2: bad formula: expected an expression or ), found the end");
    assert!(Trace::from_std("#!/usr/bin/env portent\nT1|w(x)|1|1\n").unwrap().symbols().is_none());
}

#[test]
fn a_formula_may_name_reads_without_a_value_in_an_arm_that_is_not_taken() {
    let trace = |condition: &str| {
        Trace::from_std(&format!("T1|r(x)|1\nT1|r(y)|2|0\nT1|w(z)|3|7\n#!= (if {condition} (add r0 (div 1 r1)) 7)\n"))
    };
    assert!(trace("(ne r1 0)").unwrap().symbols().is_some());
    assert!(trace("(eq r1 0)").unwrap_err().to_string().contains("has no recorded value"));
    assert!(trace("(eq r0 0)").unwrap_err().to_string().contains("has no recorded value"));
}

#[test]
fn an_update_reads_the_initial_value_that_reads_saw() {
    let refused = |text: &str| Trace::from_std(text).is_err();
    let update = "T1|u(z)|2|1\n#!= (add r0 1)\n";
    assert!(!refused(&format!("T3|r(z)|1|0\n{update}")));
    assert!(!refused(&format!("T3|r(z)|1|0\nT2|r(z)|1\nT2|r(z)|1|0\n{update}")));
    assert!(refused(update), "nobody knows what it read");
    assert!(refused(&format!("T3|r(z)|1|5\n{update}")), "it would have written 6");
    assert!(refused(&format!("T3|r(z)|1|0\nT2|r(z)|1|1\n{update}")), "they do not agree");
    assert!(refused(&format!("T3|r(z)|1|0\nT2|w(z)|1\n{update}")), "the write between them has no value");
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

#[test]
fn formulas_that_grow_with_the_thread_are_read_in_linear_time() {
    // Every write is the sum of all reads so far: evaluated one by one, they would be half a billion operations.
    let mut text = String::from("#!: s 0\n");
    for i in 0..30_000 {
        text.push_str(&format!("T1|r(x)|1|1\n#!: s (add $s r{i})\nT1|w(y)|2|{}\n#!= $s\n", i + 1));
    }
    let trace = Trace::from_std(&text).unwrap();
    assert_eq!(trace.len(), 60_000);
    assert!(trace.symbols().unwrap().written(EventId::new(59_999)).is_some());
}
