//! What an audit found to be lost in silence: bugs that a window cuts in two, each with the default options and with
//! windows in which nothing of them fits.

use portent_order::Model;
use portent_predict::{BugKind, Control, Evidence, Options, predict};
use portent_trace::Trace;

/// A trace in which lines may be repeated: `6000 * T1|r(x)|1`.
fn trace(lines: &str) -> Trace {
    let mut text = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (times, line) = match line.split_once(" * ") {
            Some((times, line)) => (times.parse().unwrap(), line),
            None => (1, line),
        };
        text.push_str(&format!("{line}\n").repeat(times));
    }
    Trace::from_std(&text).unwrap()
}

/// Finds exactly these places, and leaves nothing open.
#[track_caller]
fn finds(lines: &str, kind: BugKind, models: &[Model], expected: &[&str]) {
    let trace = trace(lines);
    for &model in models {
        for window in [Options::window_for(&trace, model), 8, 100_000] {
            let options = Options { kinds: vec![kind], model, window, ..Options::default() };
            let prediction = predict(&trace, &options, &Control::default());
            assert_eq!(prediction.errors, [] as [String; 0]);
            let places = |finding: &portent_predict::Finding| {
                let names = finding.places().into_iter().map(|place| match place.location {
                    Some(loc) => trace.names().location(loc).to_string(),
                    None => place.op.to_owned(),
                });
                names.collect::<Vec<_>>().join(" ")
            };
            let predicted = prediction.findings.iter().filter(|finding| finding.evidence == Evidence::Predicted);
            let mut found: Vec<String> = predicted.map(places).collect();
            found.sort();
            assert_eq!(found, expected, "in {model} with windows of {window} events");
            assert_eq!(prediction.incomplete, [], "in {model} with windows of {window} events");
        }
    }
}

#[test]
fn a_race_whose_lock_is_taken_far_away() {
    let lines = "T1|r(v2)|a:1
        T2|acq(L1)|a:2
        T2|r(v2)|a:3
        T2|acq(L2)|a:4
        6000 * T2|w(pT2)|pad:1
        T2|w(v0)|a:5
        T2|rel(L1)|a:6
        6000 * T1|w(pT1)|pad:1
        T0|acq(L1)|a:7
        T0|rel(L1)|a:8
        T0|r(v0)|a:9";
    finds(lines, BugKind::Race, &Model::ALL, &["a:5 a:9"]);
}

#[test]
fn an_atomicity_violation_whose_lock_is_taken_far_away() {
    let lines = "T2|acq(L1)|a:2
        6000 * T2|r(pT2)|pad:1
        T2|begin(b)|a:0
        T2|w(v0)|a:5
        T2|w(v0)|a:6
        T2|end(b)|a:0
        T2|rel(L1)|a:7
        6000 * T1|r(pT1)|pad:1
        T0|acq(L1)|a:8
        T0|rel(L1)|a:9
        T0|w(v0)|a:10";
    finds(lines, BugKind::Atomicity, &Model::ALL, &["a:5 a:10 a:6"]);
}

#[test]
fn a_deadlock_behind_a_lock_that_is_taken_far_away() {
    let lines = "T2|acq(L1)|a:2
        6000 * T2|r(pT2)|pad:1
        T2|acq(A)|a:3
        T2|acq(B)|a:4
        T2|rel(B)|a:5
        T2|rel(A)|a:6
        T2|rel(L1)|a:7
        6000 * T1|r(pT1)|pad:1
        T0|acq(L1)|a:8
        T0|rel(L1)|a:9
        T0|acq(B)|a:10
        T0|acq(A)|a:11
        T0|rel(A)|a:12
        T0|rel(B)|a:13";
    finds(lines, BugKind::Deadlock, &Model::ALL, &["a:4 a:11"]);
}

#[test]
fn a_read_that_could_see_a_write_far_away() {
    let lines = "T0|acq(L0)|a:1
        T0|r(v0)|a:2|0
        T0|rel(L0)|a:3
        4500 * T2|r(q)|pad:1
        T1|acq(L0)|a:4
        T1|w(v0)|a:5|1
        6000 * T1|r(q)|pad:2
        T1|rel(L0)|a:6
        T1|r(q)|pad:3";
    finds(lines, BugKind::Nondeterminism, &Model::ALL, &["a:2 initial a:5"]);
}

#[test]
fn a_race_behind_a_failed_try_whose_holder_comes_far_later() {
    let lines = "T0|w(x)|a:1
        T0|acq(l2)|a:2
        T2|busy(l2)|a:3
        T2|w(x)|a:4
        T0|rel(l2)|a:5
        12000 * T3|r(q)|pad:1
        T1|acq(l2)|a:6
        T1|rel(l2)|a:7";
    finds(lines, BugKind::Race, &Model::ALL, &["a:1 a:4"]);
}

#[test]
fn races_behind_the_other_side_of_a_branch_far_from_what_makes_it_go_there() {
    let lines = "T2|r(y)|a:1|0
        T2|branch|a:2
        #!= (lt r0 1)
        #!else w(z)|a:7|5
        1500 * T3|r(q)|pad:1|0
        T1|w(y)|a:3|1
        #!= 1
        T1|w(z)|a:4|1
        #!= 1";
    finds(lines, BugKind::Race, &[Model::Values], &["a:1 a:3", "a:4 a:7"]);
}

#[test]
fn a_race_of_nine_events_and_a_window_of_eight() {
    let lines = "T1|r(v2)|1
        T2|acq(L1)|2
        T2|r(v2)|3
        T2|acq(L2)|4
        T2|w(v0)|5
        T2|rel(L1)|6
        T0|acq(L1)|7
        T0|rel(L1)|8
        T0|r(v0)|9";
    finds(lines, BugKind::Race, &Model::ALL, &["5 9"]);
}

#[test]
fn a_changed_read_of_nine_events_and_a_window_of_eight() {
    let lines = "T0|acq(L0)|1
        T0|r(v0)|2
        T0|rel(L0)|3
        T1|acq(L0)|4
        T1|r(v0)|5
        T1|acq(L1)|6
        T1|w(v0)|7
        T1|rel(L1)|8
        T1|rel(L0)|9";
    finds(lines, BugKind::Nondeterminism, &[Model::Reads, Model::Sync], &["2 initial 7"]);
}
