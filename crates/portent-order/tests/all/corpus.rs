//! Runs every trace of `tests/corpus` through every engine: each goal the trace poses, in each model, must get the
//! answer the file gives, and each witness must pass the checker.
//!
//! To add a trace, write the file without `[answers]` and run with `PORTENT_BLESS=1`; then read what was added.

use portent_order::brute::{self, WitnessType};
use portent_order::{Goal, Kind, Model, Verdict, Writer, check, engine};
use portent_testing::corpus::{Answers, Case, Expect, ExpectExactly, ExpectNone, cases, kind_key, tuple};
use portent_testing::parallel::each;
use portent_trace::{EventId, Op, Trace};
use std::path::Path;

type Engine = fn(&Trace, Model, &Goal) -> Verdict;

/// Every engine there is. New ones are added here and nowhere else.
const ENGINES: &[(&str, Engine)] = &[("brute", by_brute_force), ("order", engine::decide)];

fn by_brute_force(trace: &Trace, model: Model, goal: &Goal) -> Verdict {
    brute::decide(trace, model, goal).map_or(Verdict::Infeasible, Verdict::Feasible)
}

const MARK: &str = "\n# Every feasible goal; all other candidates are infeasible.\n";

/// What an engine answers to every candidate of the trace.
fn answers(name: &str, engine: Engine, trace: &Trace, model: Model) -> Answers {
    let mut all = Answers::new();
    for kind in Kind::ALL {
        let feasible = all.entry(kind_key(kind).to_owned()).or_default();
        for goal in brute::candidates(trace, kind) {
            match engine(trace, model, &goal) {
                Verdict::Feasible(witness) => {
                    check(trace, model, &goal, &witness)
                        .unwrap_or_else(|why| panic!("{name}: witness of {goal:?} in {model}: {why}"));
                    feasible.push(tuple(trace, &goal));
                }
                Verdict::Infeasible => {}
                Verdict::Unknown(why) => panic!("{name}: {goal:?} in {model}: unknown: {why}"),
            }
        }
    }
    all
}

fn bless(path: &Path, trace: &Trace) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut text = text.split(MARK).next().unwrap().to_owned();
    text.push_str(MARK);
    for model in Model::ALL {
        text.push_str(&format!("[answers.{model}]\n"));
        for (kind, feasible) in answers(ENGINES[0].0, ENGINES[0].1, trace, model) {
            text.push_str(&format!("{kind} = {feasible:?}\n"));
        }
    }
    std::fs::write(path, text).unwrap();
}

fn nested(trace: &Trace) -> bool {
    trace.thread_ids().all(|thread| {
        let mut held = Vec::new();
        trace.events().filter(|e| e.thread == thread).all(|e| match e.op {
            Op::Acquire(lock, mode) => {
                held.push((lock, mode));
                true
            }
            Op::Release(lock, mode) => held.pop() == Some((lock, mode)),
            _ => true,
        })
    })
}

fn run(case: &Case) {
    let trace = case.trace();
    if std::env::var_os("PORTENT_BLESS").is_some() {
        bless(&case.path, &trace);
        return;
    }
    for model in Model::ALL {
        let expected = case.answers.get(model.name()).expect("answers for every model; see PORTENT_BLESS");
        for &(name, engine) in ENGINES {
            assert_eq!(&answers(name, engine, &trace, model), expected, "{name} in {model}");
        }
    }
    let answers_of = |model: &str, kind: &str| &case.answers[model][kind];
    for expect in &case.expect {
        let Expect { model, kind, events, feasible } = expect;
        let kinds = Kind::ALL.into_iter().find(|k| kind_key(*k) == kind).unwrap();
        let posed = brute::candidates(&trace, kinds).iter().any(|goal| &tuple(&trace, goal) == events);
        assert!(posed || !feasible, "{kind} {events:?} is not a question this trace poses");
        assert_eq!(answers_of(model, kind).contains(events), *feasible, "{model} {kind} {events:?}");
    }
    for ExpectNone { model, kind } in &case.expect_none {
        assert!(answers_of(model, kind).is_empty(), "{model} {kind}");
    }
    for ExpectExactly { model, kind, feasible } in &case.expect_exactly {
        assert_eq!(answers_of(model, kind), feasible, "{model} {kind}");
    }
    let event = |input: i64| EventId::new(trace.lowered(input as u32).last().expect("an event of the kernel"));
    for expect in &case.witness_type {
        let challenger = if expect.challenger < 0 { Writer::Init } else { Writer::Event(event(expect.challenger)) };
        let shape = match expect.shape.as_str() {
            "c-r-w" => WitnessType::ReadBeforeWrite,
            "w-c-r" => WitnessType::Overwritten,
            "c-r" => WitnessType::WithoutWrite,
            other => panic!("unknown shape {other}"),
        };
        let found = brute::has_witness_type(&trace, Model::Reads, event(expect.read), challenger, shape);
        assert_eq!(
            found, expect.feasible,
            "type {} of read {}, challenger {}",
            expect.shape, expect.read, expect.challenger
        );
    }
    if let Some(free) = case.deadlock_free {
        assert_eq!(!brute::gets_stuck(&trace, Model::Sync), free, "deadlock_free");
    }
    if let Some(expected) = case.nested {
        assert_eq!(nested(&trace), expected, "nested");
    }
    if let Some(lattice) = &case.lattice {
        let runs = brute::complete_runs(&trace, Model::Reads);
        let found = (runs.len(), brute::count_cuts(&trace, Model::Reads), brute::count_prefixes(&trace, Model::Reads));
        if let Some(complete) = &lattice.complete {
            let runs = runs.iter().map(|run| run.iter().map(|&e| i64::from(trace.input_index(e))).collect());
            assert_eq!(&runs.collect::<Vec<Vec<i64>>>(), complete, "complete runs");
        }
        assert_eq!(found, (lattice.runs, lattice.cuts, lattice.prefixes), "runs, cuts, prefixes");
    }
}

#[test]
fn every_engine_gives_the_expected_answer_on_every_trace_of_the_corpus() {
    let holds = |case: &Case| {
        std::panic::catch_unwind(|| run(case))
            .map_err(|panic| panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "see above".into()))
    };
    each(&cases(), |case| case.name.clone(), holds);
}
