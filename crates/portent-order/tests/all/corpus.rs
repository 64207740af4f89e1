//! Runs every trace of `tests/corpus` through every engine: each goal the trace poses, in each model, must get the
//! answer the file gives, and each witness must pass the checker.
//!
//! A file lists in `[answers.MODEL]` every feasible goal of every kind; all other candidates are infeasible. What it
//! says in `[[expect]]` and its siblings was known beforehand, from a paper or by hand, and must agree. To add a trace,
//! write the file without `[answers]` and run with `PORTENT_BLESS=1`; then read what was added.

use portent_order::brute::{self, WitnessType};
use portent_order::{Goal, Kind, Model, Verdict, Writer, check, engine};
use portent_trace::{EventId, Op, Trace};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Engine = fn(&Trace, Model, &Goal) -> Verdict;

/// Every engine there is. New ones are added here and nowhere else.
const ENGINES: &[(&str, Engine)] = &[("brute", by_brute_force), ("order", engine::decide)];

fn by_brute_force(trace: &Trace, model: Model, goal: &Goal) -> Verdict {
    brute::decide(trace, model, goal).map_or(Verdict::Infeasible, Verdict::Feasible)
}

/// A goal by the numbers of its input events: race (first, second), nondeterminism (read, challenger or -1), final
/// (challenger), atomicity (first, remote, second), deadlock (acquires), lost wake-up (notify, wake).
type Tuple = Vec<i64>;
type Answers = BTreeMap<String, Vec<Tuple>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[allow(dead_code)]
    source: String,
    #[allow(dead_code)]
    story: Option<String>,
    /// How printed algorithms differ from the truth.
    #[serde(default)]
    #[allow(dead_code)]
    history: Vec<String>,
    /// Which defect of a paper the trace shows.
    #[allow(dead_code)]
    defect: Option<String>,
    trace: String,
    /// No reordering gets stuck before every thread has ended.
    deadlock_free: Option<bool>,
    /// Every thread releases its locks in the reverse order of taking them.
    nested: Option<bool>,
    #[serde(default)]
    expect: Vec<Expect>,
    #[serde(default)]
    expect_none: Vec<ExpectNone>,
    #[serde(default)]
    expect_exactly: Vec<ExpectExactly>,
    #[serde(default)]
    witness_type: Vec<ExpectType>,
    lattice: Option<Lattice>,
    #[serde(default)]
    answers: BTreeMap<String, Answers>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    model: String,
    kind: String,
    events: Tuple,
    feasible: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectNone {
    model: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectExactly {
    model: String,
    kind: String,
    feasible: Vec<Tuple>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectType {
    read: i64,
    challenger: i64,
    shape: String,
    feasible: bool,
}

/// Counts in the `reads` model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lattice {
    /// Complete reorderings.
    runs: usize,
    /// Different position vectors on them.
    cuts: usize,
    /// Reorderings, complete or not.
    prefixes: usize,
    /// The complete reorderings.
    complete: Option<Vec<Vec<i64>>>,
}

const MARK: &str = "\n# Every feasible goal; all other candidates are infeasible.\n";

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    assert!(files.len() >= 60, "the corpus has only {} files", files.len());
    files
}

fn kind_key(kind: Kind) -> &'static str {
    match kind {
        Kind::Race => "race",
        Kind::Nondeterminism => "nondeterminism",
        Kind::FinalValue => "final",
        Kind::Atomicity => "atomicity",
        Kind::Deadlock => "deadlock",
        Kind::LostWakeup => "lost_wakeup",
    }
}

fn tuple(trace: &Trace, goal: &Goal) -> Tuple {
    let input = |event: EventId| i64::from(trace.input_index(event));
    match goal {
        Goal::Race { first, second } => vec![input(*first), input(*second)],
        Goal::Nondeterminism { read, challenger: Writer::Init } => vec![input(*read), -1],
        Goal::Nondeterminism { read, challenger: Writer::Event(c) } => vec![input(*read), input(*c)],
        Goal::FinalValue { challenger, .. } => vec![input(*challenger)],
        Goal::Atomicity { first, remote, second } => vec![input(*first), input(*remote), input(*second)],
        Goal::Deadlock { waiting } => waiting.iter().map(|&e| input(e)).collect(),
        Goal::LostWakeup { pairing } => {
            let pairing = trace.pairings()[pairing.index()];
            vec![input(pairing.notify), input(pairing.wake)]
        }
    }
}

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

fn run(path: &Path) {
    let case: Case = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|e| panic!("{e}"));
    let trace = Trace::from_std(&case.trace).unwrap_or_else(|e| panic!("{e}"));
    if std::env::var_os("PORTENT_BLESS").is_some() {
        bless(path, &trace);
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
    if let Some(lattice) = case.lattice {
        let runs = brute::complete_runs(&trace, Model::Reads);
        let found = (runs.len(), brute::count_cuts(&trace, Model::Reads), brute::count_prefixes(&trace, Model::Reads));
        if let Some(complete) = lattice.complete {
            let runs = runs.iter().map(|run| run.iter().map(|&e| i64::from(trace.input_index(e))).collect());
            assert_eq!(runs.collect::<Vec<Vec<i64>>>(), complete, "complete runs");
        }
        assert_eq!(found, (lattice.runs, lattice.cuts, lattice.prefixes), "runs, cuts, prefixes");
    }
}

#[test]
fn every_engine_gives_the_expected_answer_on_every_trace_of_the_corpus() {
    let mut failed = Vec::new();
    for path in corpus() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if let Err(panic) = std::panic::catch_unwind(|| run(&path)) {
            let why = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "see above".into());
            failed.push(format!("{name}: {why}"));
        }
    }
    assert!(failed.is_empty(), "{} of the corpus failed:\n{}", failed.len(), failed.join("\n"));
}
