//! Predictions against what is known to be true: the corpus and the oracle, in every model, nothing false and nothing
//! missed.

use portent_order::{Goal, Kind, Model, Writer, brute};
use portent_predict::{Control, Evidence, Options, Prediction, predict};
use portent_trace::generate::{TinyShape, tiny, tiny_std};
use portent_trace::{EventId, Trace};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

type Tuples = BTreeSet<Vec<i64>>;

/// What predict needs of a corpus file; `portent-order` checks the rest.
#[derive(Deserialize)]
struct Case {
    trace: String,
    answers: BTreeMap<String, BTreeMap<String, Tuples>>,
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

/// The input events of a goal, as the corpus writes them.
fn tuple(trace: &Trace, goal: &Goal) -> Vec<i64> {
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

fn predicted(trace: &Trace, model: Model, window: usize, jobs: usize) -> Prediction {
    let options = Options { model, window, jobs, ..Options::default() };
    predict(trace, &options, &Control::default())
}

/// Findings by kind, and the same from the places that reports show.
fn answers(trace: &Trace, prediction: &Prediction) -> BTreeMap<&'static str, Tuples> {
    let mut all: BTreeMap<&'static str, Tuples> = Kind::ALL.into_iter().map(|k| (kind_key(k), Tuples::new())).collect();
    for finding in prediction.findings.iter().filter(|f| f.evidence == Evidence::Predicted) {
        let goal = finding.goal().unwrap();
        let from_goal = tuple(trace, &goal);
        let mut shown: Vec<i64> = finding.places().iter().map(|p| p.event.map_or(-1, i64::from)).collect();
        match goal {
            Goal::Nondeterminism { .. } => drop(shown.remove(1)),
            Goal::FinalValue { .. } => drop(shown.drain(..2)),
            Goal::LostWakeup { .. } => shown.reverse(),
            _ => {}
        }
        assert_eq!(shown, from_goal, "{goal:?}");
        assert!(all.get_mut(kind_key(goal.kind())).unwrap().insert(from_goal), "found twice: {goal:?}");
    }
    all
}

#[test]
fn every_trace_of_the_corpus_gets_exactly_the_findings_it_lists() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    assert!(files.len() >= 60);
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let case: Case = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let trace = Trace::from_std(&case.trace).unwrap();
        for model in Model::ALL {
            let prediction = predicted(&trace, model, Options::WINDOW, 1);
            assert_eq!(prediction.errors, [] as [String; 0], "{name}");
            assert_eq!(prediction.incomplete, [], "{name}");
            let expected: BTreeMap<&str, Tuples> =
                case.answers[model.name()].iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
            assert_eq!(answers(&trace, &prediction), expected, "{name} in {model}");
        }
    }
}

/// Every feasible candidate by brute force.
fn truth(trace: &Trace, model: Model) -> BTreeMap<&'static str, Tuples> {
    let feasible = |kind| {
        let goals = brute::candidates(trace, kind).into_iter().filter(|g| brute::decide(trace, model, g).is_some());
        goals.map(|goal| tuple(trace, &goal)).collect()
    };
    Kind::ALL.into_iter().map(|kind| (kind_key(kind), feasible(kind))).collect()
}

#[test]
fn random_traces_get_exactly_the_findings_that_brute_force_finds() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    for seed in 0..6_000u64 {
        let shape = &shapes[seed as usize % shapes.len()];
        let trace = tiny(seed, shape);
        let model = Model::ALL[seed as usize / shapes.len() % Model::ALL.len()];
        let prediction = predicted(&trace, model, Options::WINDOW, 1);
        let story = || format!("seed {seed} in {model}\n{}", tiny_std(seed, shape));
        assert_eq!(prediction.errors, [] as [String; 0], "{}", story());
        assert_eq!(prediction.incomplete, [], "{}", story());
        assert_eq!(answers(&trace, &prediction), truth(&trace, model), "{}", story());
        // Every event has its own location, so every finding is one instance, and has its own id.
        assert!(prediction.findings.iter().all(|f| f.evidence == Evidence::Observed || f.instances == 1));
        let ids: BTreeSet<&str> = prediction.findings.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids.len(), prediction.findings.len(), "{}", story());
    }
}
