//! Bugs behind branches that did not go that way in the recorded run.

use portent_order::Model;
use portent_predict::{BugKind, Control, Finding, Options, Prediction, Why, predict};
use portent_trace::generate::{Config, Generator};
use portent_trace::{EventId, Trace};
use std::time::Duration;

/// Recipe's Fig. 1 with its red statements: what T2 does if y > z does not hold.
const FIG1: &str = "\
main|w(x)|0|0
main|w(y)|0|0
main|w(z)|0|2
main|fork(T1)|0
main|fork(T2)|0
T1|w(y)|1|3
#!= 3
T1|w(x)|2|1
#!= 1
T1|w(y)|3|5
#!= 5
T2|r(y)|4|5
T2|r(z)|4|2
T2|branch|4
#!= (gt r0 r1)
#!else r(x)|7
T2|r(x)|5|1
";

fn find(text: &str, model: Model) -> (Trace, Prediction) {
    let trace = Trace::from_std(text).unwrap();
    let options = Options { model, ..Options::default() };
    let found = predict(&trace, &options, &Control::default());
    assert_eq!(found.errors, Vec::<String>::new());
    (trace, found)
}

/// The findings that need another branch, as kind and places.
fn behind(text: &str) -> Vec<String> {
    let (trace, found) = find(text, Model::Values);
    let tell = |finding: &Finding| {
        let at = |loc| trace.names().location(loc).to_string();
        let places: Vec<String> = finding.places().iter().filter_map(|place| place.location.map(at)).collect();
        format!("{} {}", finding.kind().name(), places.join(" "))
    };
    let mut told: Vec<String> = found.findings.iter().filter(|f| f.flags.needs_other_branch).map(tell).collect();
    told.sort();
    told
}

#[test]
fn recipe_finds_the_race_behind_the_negated_branch() {
    let (trace, found) = find(FIG1, Model::Values);
    let races: Vec<&Finding> = found.findings.iter().filter(|f| f.kind() == BugKind::Race && f.object == "x").collect();
    let [plain, negated] = races[..] else { panic!("{races:#?}") };
    assert!(plain.other_branch.is_none(), "2/5 needs no other branch");
    let other = negated.other_branch.as_ref().unwrap();
    assert!(negated.flags.needs_other_branch && negated.flags.beyond_hb && !other.outcome && other.seen.is_none());
    assert_eq!(trace.input_index(other.branch), 10);
    let told: Vec<_> = other.reads.iter().map(|read| (trace.input_index(read.read), read.was, read.is)).collect();
    assert_eq!(told, [(8, Some(5), Some(0)), (9, Some(2), Some(2))], "y = 0 takes it");
    let location = |at: usize| trace.names().location(negated.places()[at].location.unwrap()).to_string();
    assert_eq!((location(0), location(1)), ("2".into(), "7".into()));
    assert_eq!(negated.places()[1].event, None, "nothing that was recorded");
    let witness = negated.witness.as_ref().unwrap();
    portent_order::check(&other.trace, Model::Values, &negated.goal().unwrap(), &witness.schedule).unwrap();
}

#[test]
fn recipe_finds_it_behind_the_loop_too() {
    let text = "main|w(x)|0|0\nmain|w(y)|0|0\nmain|fork(T1)|0\nmain|fork(T2)|0\nT1|w(y)|4|3\n#!= (add (add 0 1) 2)\n\
                T1|w(x)|5|1\n#!= 1\nT1|w(y)|6|5\n#!= 5\nT2|r(y)|7|5\nT2|branch|7\n#!= (gt r0 2)\n#!else r(x)|10\nT2|r(x)|8|1\n";
    assert_eq!(behind(text), ["race 5 10"]);
}

#[test]
fn races_by_relaxed_atomics_stand_beside_it() {
    let relaxed =
        format!("{FIG1}T1|w(d)|20|1\nT1|w.rlx(f)|21|1\nT2|r.rlx(f)|22|1\nT2|branch|22\n#!= (eq r3 1)\nT2|r(d)|23|1\n");
    let (_, found) = find(&relaxed, Model::Values);
    assert!(found.findings.iter().any(|finding| finding.flags.needs_other_branch));
    assert!(found.findings.iter().any(|finding| finding.flags.relaxed_only));
}

#[test]
fn other_models_do_not_look_behind_branches() {
    for model in [Model::Reads, Model::Sync] {
        assert!(find(FIG1, model).1.findings.iter().all(|finding| !finding.flags.needs_other_branch));
    }
}

#[test]
fn what_no_value_can_bring_about_is_not_reported() {
    // y is 3 and 5 and never less than 2 once T2 has started.
    let early = FIG1.replace("main|w(y)|0|0", "main|w(y)|0|9");
    assert_eq!(behind(&early), Vec::<String>::new());
    // Without its condition nobody knows what takes a branch the other way.
    let untold = FIG1.replace("#!= (gt r0 r1)\n#!else r(x)|7\n", "");
    assert_eq!(behind(&untold), Vec::<String>::new());
    // A lock that both hold.
    let locked = FIG1
        .replace("T1|w(x)|2|1\n#!= 1\n", "T1|acq(l)|2\nT1|w(x)|2|1\n#!= 1\nT1|rel(l)|2\n")
        .replace("#!else r(x)|7\n", "#!else acq(l)|6\n#!else r(x)|7\n#!else rel(l)|8\n");
    assert_eq!(behind(&locked), Vec::<String>::new());
}

#[test]
fn deadlocks_and_torn_blocks_behind_a_branch_are_found() {
    let deadlock = "\
T1|acq(a)|1
T1|acq(b)|2
T1|w(y)|3|1
#!= 1
T1|rel(b)|4
T1|rel(a)|5
T2|acq(b)|6
T2|r(z)|7|0
T2|branch|8
#!= (eq r0 0)
#!else acq(a)|9
#!else rel(a)|10
T2|rel(b)|11
T3|w(z)|12|1
#!= 1
";
    assert_eq!(behind(deadlock), ["deadlock 2 9"]);
    let torn = "\
T1|begin(b)|1
T1|r(x)|2|0
T1|r(z)|3|0
T1|branch|4
#!= (eq r1 0)
#!else w(x)|5|= (add r0 1)
T1|end(b)|6
T3|w(z)|7|1
#!= 1
T2|w(x)|8|5
#!= 5
";
    assert_eq!(behind(torn), ["atomicity 2 8 5", "race 8 5"]);
}

/// Two threads run the same code; only B goes into the branch.
const TWICE: &str = "\
main|w(flag)|1|0
main|w(x)|2|0
main|fork(A)|3
main|fork(B)|4
A|r(flag)|10|0
A|branch|11
#!= (eq r0 1)
A|w(done)|20|1
#!= 1
main|w(flag)|6|1
#!= 1
main|w(x)|7|1
#!= 1
main|snd(m)|8
B|rcv(m)|9
B|r(flag)|10|1
B|branch|11
#!= (eq r0 1)
B|r(x)|12|1
B|w(y)|13|2
#!= (add r1 1)
B|w(y)|14|3
#!= (add r0 2)
C|w(flag)|30|1
#!= 1
C|w(x)|31|4
#!= 4
";

#[test]
fn a_side_that_was_seen_elsewhere_is_taken_over() {
    let (trace, found) = find(TWICE, Model::Values);
    let behind: Vec<&Finding> = found.findings.iter().filter(|f| f.flags.needs_other_branch).collect();
    let line =
        |finding: &Finding, at: usize| trace.names().location(finding.places()[at].location.unwrap()).to_string();
    let mut told: Vec<(String, String)> = behind.iter().map(|f| (line(f, 0), line(f, 1))).collect();
    told.sort();
    // A in the branch: its read of x with main's write, and its writes of y with B's. (12/31 is a race without it.)
    let expected = [("13", "13"), ("13", "14"), ("14", "14"), ("7", "12")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(told, expected);
    let first = behind.iter().find(|f| line(f, 0) == "7").unwrap().other_branch.as_ref().unwrap();
    assert_eq!(trace.names().thread(trace.thread(first.branch)), "A");
    assert_eq!(first.seen, Some(trace.input_index(EventId::new(trace.len() - 6))), "B's branch showed it");
    assert!(first.outcome);
}

#[test]
fn places_that_are_about_several_things_are_not_taken_over() {
    // Line 12 reads whatever B's pointer says.
    let moving = TWICE.replace("C|w(flag)|30|1", "C|r(other)|12|0\nC|w(flag)|30|1");
    assert!(behind(&moving).iter().all(|told| !told.contains("12")), "{:?}", behind(&moving));
    let addressed = TWICE.replace("B|r(x)|12|1\n", "B|r(x)|12|1\n#!@ (add 1000 r0)\n");
    assert!(behind(&addressed).iter().all(|told| !told.contains("12")), "{:?}", behind(&addressed));
}

#[test]
fn branches_that_are_not_tried_are_counted() {
    let mut text = String::from("main|w(z)|0|0\n#!= 0\n");
    for i in 0..20 {
        text.push_str(&format!("main|fork(T{i})|1\n"));
        text.push_str(&format!("T{i}|r(z)|2|0\nT{i}|branch|3\n#!= (eq r0 0)\n#!else w(z)|4|= 1\n"));
    }
    let (_, found) = find(&text, Model::Values);
    let left: Vec<_> = found.incomplete.iter().filter(|entry| entry.why == Why::Branches).map(|e| e.count).collect();
    // For races, deadlocks and atomicity.
    assert_eq!(left, [12; 3]);
}

#[test]
fn without_time_every_branch_is_left_and_that_is_said() {
    let trace = Trace::from_std(FIG1).unwrap();
    let options = Options { model: Model::Values, budget: Some(Duration::ZERO), ..Options::default() };
    let found = predict(&trace, &options, &Control::default());
    let left: Vec<_> = found.incomplete.iter().filter(|entry| entry.why == Why::Branches).map(|e| e.count).collect();
    assert_eq!((left, found.partial), (vec![1; 3], Some(Why::Budget)));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let config = Config { symbolic: true, events: 400, threads: 4, variables: 12, unguarded: 0.2, ..Config::default() };
    let trace = Trace::from_input(&mut Generator::new(config).unwrap()).unwrap();
    let found = [1, 4].map(|jobs| {
        let options = Options { model: Model::Values, jobs, window: 200, ..Options::default() };
        let found = predict(&trace, &options, &Control::default());
        let told = |f: &Finding| (f.id.clone(), f.instances, f.witness.as_ref().map(|witness| witness.steps.clone()));
        (found.findings.iter().map(told).collect::<Vec<_>>(), found.incomplete)
    });
    assert_eq!(found[0], found[1]);
    assert!(found[0].0.len() > 10, "{}", found[0].0.len());
}
