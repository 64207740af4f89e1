//! Predictions against what is known to be true: the corpus and the oracle, in every model, nothing false and nothing
//! missed.

use portent_order::{Goal, Kind, Model, brute};
use portent_predict::{BugKind, Control, Evidence, Finding, Form, Options, Prediction, predict};
use portent_testing::corpus::{cases, kind_key, tuple};
use portent_testing::goals::feasible;
use portent_testing::traces::Shapes;
use portent_trace::Trace;
use std::collections::{BTreeMap, BTreeSet};

type Tuples = BTreeSet<Vec<i64>>;

fn predicted(trace: &Trace, model: Model, window: usize, jobs: usize) -> Prediction {
    let options = Options { model, window, jobs, ..Options::default() };
    predict(trace, &options, &Control::default())
}

/// Findings by kind, and the same from the places that reports show.
fn answers(trace: &Trace, prediction: &Prediction) -> BTreeMap<&'static str, Tuples> {
    let mut all: BTreeMap<&'static str, Tuples> = Kind::ALL.into_iter().map(|k| (kind_key(k), Tuples::new())).collect();
    // Lost updates need more than a feasible goal, and of stuck threads many are one deadlock: they have tests of their own.
    let others = |f: &Finding| f.kind() == BugKind::LostUpdate || f.bug.form() == Form::Stuck;
    let counts = |f: &&Finding| f.evidence == Evidence::Predicted && !others(f);
    for finding in prediction.findings.iter().filter(counts) {
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
    for case in cases() {
        let (name, trace) = (&case.name, case.trace());
        for model in Model::ALL {
            let prediction = predicted(&trace, model, Options::WINDOW, 1);
            assert_eq!(prediction.errors, [] as [String; 0], "{name}");
            assert_eq!(prediction.incomplete, [], "{name}");
            let expected: BTreeMap<&str, Tuples> =
                case.answers[model.name()].iter().map(|(k, v)| (k.as_str(), v.iter().cloned().collect())).collect();
            assert_eq!(answers(&trace, &prediction), expected, "{name} in {model}");
        }
    }
}

/// Every feasible candidate by brute force.
fn truth(trace: &Trace, model: Model) -> BTreeMap<&'static str, Tuples> {
    let of_kind =
        |kind| feasible(trace, model, brute::candidates(trace, kind)).iter().map(|g| tuple(trace, g)).collect();
    Kind::ALL.into_iter().map(|kind| (kind_key(kind), of_kind(kind))).collect()
}

#[test]
fn random_traces_get_exactly_the_findings_that_brute_force_finds() {
    for tiny in Shapes::all().traces(0..6_000) {
        let (trace, model) = (&tiny.trace, tiny.model());
        let prediction = predicted(trace, model, Options::WINDOW, 1);
        assert_eq!(prediction.errors, [] as [String; 0], "{tiny} in {model}");
        assert_eq!(prediction.incomplete, [], "{tiny} in {model}");
        assert_eq!(answers(trace, &prediction), truth(trace, model), "{tiny} in {model}");
        // Every event has its own location, so every finding is one instance, and has its own id.
        assert!(prediction.findings.iter().all(|f| f.evidence == Evidence::Observed || f.instances == 1));
        let ids: BTreeSet<&str> = prediction.findings.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids.len(), prediction.findings.len(), "{tiny} in {model}");
    }
}
