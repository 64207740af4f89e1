//! Grouping, flags, determinism, and what happens when time runs out.

use portent_order::{Model, check};
use portent_predict::{
    BugKind, Control, Evidence, Finding, Form, Limit, Options, Prediction, Why, WitnessType, by_happens_before, predict,
};
use portent_trace::Trace;
use portent_trace::generate::{Config, Generator};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn only(kind: BugKind) -> Options {
    Options { kinds: vec![kind], ..Options::default() }
}

fn run(std: &str, options: &Options) -> Prediction {
    let prediction = predict(&Trace::from_std(std).unwrap(), options, &Control::default());
    assert_eq!(prediction.errors, [] as [String; 0]);
    prediction
}

fn flags(finding: &Finding) -> Vec<&'static str> {
    finding.flags.names().collect()
}

#[test]
fn races_at_the_same_pair_of_locations_are_one_finding() {
    let text = "T1|w(x)|a.c:1\nT1|w(y)|a.c:1\nT2|w(x)|b.c:2\nT2|w(y)|b.c:2\n";
    let found = run(text, &only(BugKind::Race)).findings;
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].instances, found[0].instances_exact), (2, true));
    assert_eq!(found[0].places().iter().map(|p| p.event.unwrap()).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn a_race_that_lock_order_hides_is_beyond_happens_before() {
    let text = "T1|w(x)|1\nT1|acq(l)|2\nT1|rel(l)|3\nT2|acq(l)|4\nT2|rel(l)|5\nT2|w(x)|6\n";
    let found = run(text, &only(BugKind::Race)).findings;
    assert_eq!(flags(&found[0]), ["beyond_hb"]);
    assert!(by_happens_before(&Trace::from_std(text).unwrap()).findings.is_empty());
    let found = run("T1|w(x)|1\nT2|w(x)|2\n", &only(BugKind::Race)).findings;
    assert_eq!(flags(&found[0]), [] as [&str; 0]);
}

#[test]
fn a_relaxed_flag_is_reported_as_observed_without_a_witness() {
    let text = "T1|w(x)|1\nT1|w.rlx(f)|2\nT2|r.rlx(f)|3\nT2|r(x)|4\n";
    let found = run(text, &only(BugKind::Race)).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(flags(&found[0]), ["relaxed_only"]);
    assert!(found[0].evidence == Evidence::Observed && found[0].witness.is_none());
}

#[test]
fn the_three_shapes_of_nondeterminism_are_told_apart() {
    let shapes = |text: &str| {
        let found = run(text, &only(BugKind::Nondeterminism)).findings;
        let reads = found.into_iter().filter(|f| f.places()[0].event.is_some());
        reads.map(|f| (f.places()[2].event, f.bug.witness_type().unwrap())).collect::<Vec<_>>()
    };
    // The read can see INIT, and the write comes later.
    assert_eq!(shapes("T1|w(x)\nT2|r(x)\n"), [(None, WitnessType::ReadBeforeWrite)]);
    assert!(shapes("T2|w(x)\nT2|r(x)\nT3|w(x)\n").contains(&(Some(2), WitnessType::Overwritten)));
    // The writer must first read y = INIT, which the reader's thread has overwritten by then.
    let without = shapes("T1|r(y)\nT1|w(x)\nT2|w(y)\nT2|r(x)\n");
    assert!(without.contains(&(None, WitnessType::WithoutWrite)), "{without:?}");
}

#[test]
fn equal_values_and_common_locks_are_flagged() {
    let text =
        "T1|acq(l)\nT1|w(x)|1|7\nT1|rel(l)\nT3|acq(l)\nT3|w(x)|2|7\nT3|rel(l)\nT2|acq(l)\nT2|r(x)|3|7\nT2|rel(l)\n";
    let found = run(text, &only(BugKind::Nondeterminism)).findings;
    let other = found.iter().find(|f| f.places()[0].event == Some(7) && f.places()[2].event == Some(1)).unwrap();
    assert_eq!(flags(other), ["same_value", "under_lock"]);
}

#[test]
fn each_read_location_lists_where_its_values_may_come_from() {
    let trace = Trace::from_std("T1|w(x)|1\nT2|w(x)|2\nT3|r(x)|3\n").unwrap();
    let prediction = predict(&trace, &only(BugKind::Nondeterminism), &Control::default());
    let text: Vec<String> =
        prediction.may_read[0].from.iter().map(|l| trace.names().location(*l).to_string()).collect();
    assert_eq!(
        (prediction.may_read.len(), text, prediction.may_read[0].initial),
        (1, vec!["1".into(), "2".into()], true)
    );
}

#[test]
fn the_five_patterns_are_named() {
    let pattern = |a, f, b| {
        let text = format!("T1|begin(b)\nT1|{a}(x)\nT1|{b}(x)\nT1|end(b)\nT2|{f}(x)\n");
        let options = Options { model: Model::Sync, ..only(BugKind::Atomicity) };
        run(&text, &options).findings.first().and_then(|f| Some(f.bug.pattern()?.name()))
    };
    assert_eq!(pattern("w", "r", "w"), Some("WRW"));
    assert_eq!(pattern("r", "w", "r"), Some("RWR"));
    assert_eq!(pattern("r", "w", "w"), Some("RWW"));
    assert_eq!(pattern("w", "w", "r"), Some("WWR"));
    assert_eq!(pattern("w", "w", "w"), Some("WWW"));
    assert_eq!(pattern("r", "r", "w"), None);
}

#[test]
fn a_cycle_of_three_starts_at_its_lowest_event_and_each_waits_on_the_next() {
    let nest = |t: &str, a: &str, b: &str| format!("{t}|acq({a})\n{t}|acq({b})\n{t}|rel({b})\n{t}|rel({a})\n");
    let text = nest("T1", "a", "b") + &nest("T2", "c", "a") + &nest("T3", "b", "c");
    let found = run(&text, &only(BugKind::Deadlock)).findings;
    assert_eq!(found.len(), 1);
    let places: Vec<_> = found[0].places().iter().map(|p| (p.event.unwrap(), p.object.as_str())).collect();
    assert_eq!(places, [(1, "b"), (9, "c"), (5, "a")]);
    assert_eq!(found[0].bug.form(), Form::Cycle);
}

#[test]
fn races_are_counted_exactly_and_triples_up_to_a_bound() {
    let writes: String = (0..40).map(|i| format!("T{}|w(x)|a.c:{}\n", i % 2, i % 2)).collect();
    let text = format!("T0|begin(b)|a.c:9\n{writes}");
    let races = run(&text, &only(BugKind::Race)).findings;
    assert_eq!(races.iter().map(|f| (f.instances, f.instances_exact)).collect::<Vec<_>>(), [(400, true)]);
    let triples = run(&text, &only(BugKind::Atomicity)).findings;
    assert_eq!(triples.len(), 1);
    assert!((65..100).contains(&triples[0].instances) && !triples[0].instances_exact, "{}", triples[0].instances);
}

fn busy_trace() -> Trace {
    let config = Config { events: 6_000, threads: 5, variables: 60, locks: 4, ..Config::default() };
    Trace::from_input(&mut Generator::new(config).unwrap()).unwrap()
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let trace = busy_trace();
    let shown = |jobs| {
        let options =
            Options { window: 500, jobs, kinds: vec![BugKind::Race, BugKind::Deadlock], ..Options::default() };
        let found = predict(&trace, &options, &Control::default());
        assert_eq!(found.errors, [] as [String; 0]);
        format!("{:?} {:?} {:?}", found.findings, found.incomplete, found.stats.tiers)
    };
    let one = shown(1);
    assert!(one.contains("Race"), "a trace without findings shows nothing");
    assert_eq!(one, shown(3));
}

#[test]
fn every_witness_passes_the_checker_on_a_larger_trace() {
    let trace = busy_trace();
    let options = Options { window: 400, kinds: vec![BugKind::Race, BugKind::Atomicity], ..Options::default() };
    for finding in predict(&trace, &options, &Control::default()).findings {
        let (Some(goal), Some(witness)) = (&finding.goal(), &finding.witness) else { continue };
        check(&trace, Model::Reads, goal, &witness.schedule).unwrap();
    }
}

#[test]
fn an_interruption_and_an_empty_budget_say_what_was_not_examined() {
    let trace = Trace::from_std("T1|w(x)|1\nT2|w(x)|2\nT3|r(x)|3\n").unwrap();
    static STOPPED: AtomicBool = AtomicBool::new(true);
    let control = Control { interrupt: Some(&STOPPED), progress: None };
    let found = predict(&trace, &only(BugKind::Race), &control);
    assert_eq!(found.partial, Some(Why::Interrupted));
    assert_eq!((found.incomplete[0].why, found.incomplete[0].count), (Why::Interrupted, 3));
    let options = Options { budget: Some(Duration::ZERO), ..only(BugKind::Race) };
    let found = predict(&trace, &options, &Control::default());
    assert_eq!(found.partial, Some(Why::Budget));
    assert_eq!((found.incomplete[0].why, found.incomplete[0].count), (Why::Budget, 3));
}

#[test]
fn a_group_that_stays_undecided_says_what_there_was_not_enough_of() {
    let trace = busy_trace();
    let limits = |options: &Options| -> Vec<Limit> {
        let incomplete = predict(&trace, options, &Control::default()).incomplete;
        assert!(incomplete.iter().all(|entry| entry.why.name() == "window"), "{incomplete:?}");
        incomplete
            .iter()
            .filter_map(|entry| if let Why::Window(limit) = entry.why { Some(limit) } else { None })
            .collect()
    };
    let generous = Options { window: 400, ..Options::default() };
    assert_eq!(limits(&generous), []);
    assert!(limits(&Options { reach: 20, ..generous.clone() }).contains(&Limit::Reach));
    assert!(limits(&Options { conflicts: 0, ..generous }).contains(&Limit::Effort));
}
