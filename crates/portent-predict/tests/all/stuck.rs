//! Deadlocks that are neither a cycle of locks nor a lost wake-up: what is told of programs, once each; and on random traces, that what
//! the oracle knows to be stuck is told in one form or another.

use portent_order::{Goal, Kind, Model, brute, check};
use portent_predict::{BugKind, Control, Form, Options, predict};
use portent_testing::traces::Shapes;
use portent_trace::{Op, Trace};

fn options(model: Model, window: usize) -> Options {
    Options { kinds: vec![BugKind::Deadlock], model, window, stuck: true, ..Options::default() }
}

/// The deadlocks of a program's run, each as its form and the lines at which threads wait. In every model, with windows or without.
fn deadlocks(text: &str) -> Vec<(&'static str, Vec<u32>)> {
    let trace = Trace::from_std(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let found = |model, window| {
        let prediction = predict(&trace, &options(model, window), &Control::default());
        assert_eq!(prediction.errors, [] as [String; 0], "{text}");
        assert_eq!(prediction.incomplete, [], "{text}");
        let told = prediction.findings.iter().map(|finding| {
            let places = finding.places();
            let lines = places.iter().map(|place| trace.names().location(place.location.unwrap()).number.unwrap());
            (finding.bug.form().name(), lines.collect::<Vec<u32>>())
        });
        told.collect::<Vec<_>>()
    };
    let one = found(Model::Reads, Options::WINDOW);
    for (model, window) in [(Model::Sync, Options::WINDOW), (Model::Values, Options::WINDOW), (Model::Reads, 3)] {
        assert_eq!(found(model, window), one, "{model}, window {window}\n{text}");
    }
    one
}

fn program(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| line.split_whitespace()).map(|event| format!("{event}\n")).collect()
}

#[test]
fn a_join_under_a_lock_that_the_thread_needs() {
    let text = ["M|fork(T)|1", "T|acq(l)|10 T|rel(l)|11", "M|acq(l)|2 M|join(T)|3 M|rel(l)|4"];
    assert_eq!(deadlocks(&program(&text)), [("stuck", vec![10, 3])]);
    let fixed = ["M|fork(T)|1", "T|acq(l)|10 T|rel(l)|11", "M|acq(l)|2 M|rel(l)|4 M|join(T)|3"];
    assert_eq!(deadlocks(&program(&fixed)), []);
}

#[test]
fn two_permits_that_are_taken_one_by_one() {
    let take = |t: &str| format!("{t}|semw(s)|1 {t}|semw(s)|2 {t}|post(s)|3 {t}|post(s)|4");
    assert_eq!(deadlocks(&program(&["M|semi(s)|9|2", &take("T"), &take("U")])), [("stuck", vec![2, 2])]);
    assert_eq!(deadlocks(&program(&["M|semi(s)|9|3", &take("T"), &take("U")])), []);
}

#[test]
fn a_wait_at_a_semaphore_under_a_lock() {
    let text = ["T|acq(l)|1 T|rel(l)|2 T|post(s)|3", "U|acq(l)|4 U|semw(s)|5 U|rel(l)|6"];
    assert_eq!(deadlocks(&program(&text)), [("stuck", vec![1, 5])]);
    let fixed = ["T|acq(l)|1 T|rel(l)|2 T|post(s)|3", "U|semw(s)|5 U|acq(l)|4 U|rel(l)|6"];
    assert_eq!(deadlocks(&program(&fixed)), []);
}

#[test]
fn who_waits_for_a_cycle_of_locks_is_not_told_once_more() {
    let take = |t: &str, one: &str, two: &str, line: u32| {
        format!(
            "{t}|acq({one})|{line} {t}|acq({two})|{} {t}|rel({two})|{} {t}|rel({one})|{}",
            line + 1,
            line + 2,
            line + 3
        )
    };
    let (t, u) = (take("T", "a", "b", 10), take("U", "b", "a", 20));
    let text = ["M|fork(T)|1 M|fork(U)|2", &t, &u, "M|join(T)|3 M|join(U)|4"];
    assert_eq!(deadlocks(&program(&text)), [("cycle", vec![11, 21])]);
}

/// Wherever the oracle gets a random trace stuck, a deadlock of some form is told; and every one that is told passes the checker.
#[test]
fn traces_that_get_stuck_have_a_deadlock() {
    let shapes = Shapes::that(|shape| shape.bare_waits || shape.semaphores || shape.conditions || shape.lock_heavy);
    let (mut stuck, mut only_so) = (0, 0);
    for tiny in shapes.traces(0..6_000) {
        let trace = &tiny.trace;
        let model = Model::ALL[tiny.seed as usize % 3];
        let is_feasible = |goal: &Goal| brute::decide(trace, model, goal).is_some();
        let truth = brute::candidates(trace, Kind::Stuck).iter().any(is_feasible);
        let prediction = predict(trace, &options(model, Options::WINDOW), &Control::default());
        assert_eq!((prediction.errors.as_slice(), prediction.incomplete.as_slice()), (&[][..], &[][..]), "{tiny}");
        let mut forms = Vec::new();
        for finding in &prediction.findings {
            let goal = finding.bug.goal().expect("a goal");
            check(trace, model, &goal, &finding.witness.as_ref().expect("a witness").schedule).expect("a witness");
            forms.push(finding.bug.form());
            if finding.bug.form() == Form::Stuck {
                let Goal::Stuck { waiting } = goal else { panic!("{goal:?}") };
                let waits = |op: Op| matches!(op, Op::Acquire(..) | Op::Receive(_) | Op::Wait(_) | Op::Wake(_));
                assert!(waits(trace.op(waiting)) && !finding.places().is_empty(), "{tiny}");
            }
        }
        // A cycle of locks need not be all of it; and threads may go on around it.
        assert!(!truth || !forms.is_empty(), "nothing is told: {tiny} in {model}");
        assert!(truth || !forms.contains(&Form::Stuck), "nobody gets stuck: {tiny} in {model}");
        stuck += u32::from(truth);
        only_so += u32::from(!forms.is_empty() && forms.iter().all(|form| *form == Form::Stuck));
    }
    println!("{stuck} traces get stuck, {only_so} only otherwise than in cycles of locks and lost wake-ups");
    assert!(stuck > 500 && only_so > 50, "{stuck} {only_so}");
}
