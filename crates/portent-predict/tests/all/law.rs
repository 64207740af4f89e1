//! The law: for every kind, model, window and budget, every true goal of the whole trace is reported or covered by an
//! entry of `incomplete`; and nothing false is reported.
//!
//! Every event of these traces has a location of its own, so groups are single goals and each can be looked for.

use portent_order::{Goal, Model};
use portent_predict::{BugKind, Control, Evidence, Finding, Form, Incomplete, Options, Prediction, predict};
use portent_testing::goals::{candidates, feasible};
use portent_testing::parallel::each_seed;
use portent_testing::traces::{Shapes, to_std, with_places};
use portent_trace::Trace;
use portent_trace::generate::{Config, Generator, TinyShape, tiny};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::Duration;

type Goals = BTreeSet<Goal>;

fn predicted(trace: &Trace, options: &Options) -> Prediction {
    let prediction = predict(trace, options, &Control::default());
    assert_eq!(prediction.errors, [] as [String; 0]);
    prediction
}

fn found(prediction: &Prediction) -> Goals {
    let predicted = prediction.findings.iter().filter(|finding| finding.evidence == Evidence::Predicted);
    // Lost updates need more than a feasible goal, and of stuck threads many are one deadlock: they have tests of their own.
    let others = |finding: &Finding| finding.kind() == BugKind::LostUpdate || finding.bug.form() == Form::Stuck;
    let counts = |finding: &&Finding| !others(finding);
    predicted.filter(counts).filter_map(|finding| finding.goal()).collect()
}

/// Whether an entry counts places of stuck threads, which are no goals here.
fn is_of_stuck(entry: &Incomplete) -> bool {
    entry.what.starts_with("places where threads could wait for ever")
}

/// How many of the true goals were found, and how many of the others `incomplete` covers: all of them, or the law is broken.
fn holds(truth: &Goals, prediction: &Prediction, story: &dyn Fn() -> String) -> (usize, usize) {
    let found = found(prediction);
    for goal in &found {
        assert!(truth.contains(goal), "{goal:?} is reported and cannot happen\n{}", story());
    }
    let open: Goals = prediction.open.iter().cloned().collect();
    for kind in BugKind::ALL {
        // What is counted is what is listed, unless there may be more.
        let entries = prediction.incomplete.iter().filter(|entry| entry.kind == kind && !is_of_stuck(entry));
        let counted: u64 = entries.clone().map(|entry| entry.count).sum();
        let listed = open.iter().filter(|goal| BugKind::of(goal) == kind).count() as u64;
        assert!(
            counted == listed || entries.clone().any(|entry| entry.at_least),
            "{kind:?}: {counted} of {listed}\n{}",
            story()
        );
    }
    let mut covered = 0;
    for goal in truth.difference(&found) {
        let entries = prediction.incomplete.iter();
        let mut entries = entries.filter(|entry| entry.kind == BugKind::of(goal) && !is_of_stuck(entry));
        let all = entries.any(|entry| entry.at_least);
        assert!(all || open.contains(goal), "{goal:?} can happen; it is neither reported nor counted\n{}", story());
        covered += 1;
    }
    (found.len(), covered)
}

#[test]
fn what_brute_force_reaches_in_tiny_traces_is_reported_or_counted() {
    let shapes = Shapes::all();
    let covered = each_seed(0..6_000, |seed| {
        let tiny = shapes.tiny(seed);
        let (trace, model) = (&tiny.trace, tiny.model());
        let truth: Goals = feasible(trace, model, candidates(trace)).into_iter().collect();
        let mut covered = 0;
        for (window, reach) in [(2, 3), (2, 6), (4, 9), (2, 1_000)] {
            if trace.len() <= window {
                continue;
            }
            let story = || format!("{model}, window {window}, reach {reach}, {tiny}");
            let options = Options { model, window, reach, ..Options::default() };
            let prediction = predicted(trace, &options);
            covered += holds(&truth, &prediction, &story).1;
            // Enough reach for everything: nothing stays open.
            assert!(reach < 1_000 || prediction.incomplete.is_empty(), "{:?}\n{}", prediction.incomplete, story());
        }
        covered
    });
    let covered: usize = covered.into_iter().sum();
    assert!(covered > 1_000, "the law was put to the test {covered} times only");
}

/// Traces of 20 to 400 events with every operation.
fn everything(seed: u64) -> (String, Trace) {
    if seed.is_multiple_of(2) {
        let shapes: Vec<TinyShape> = TinyShape::all().collect();
        let shape = &shapes[seed as usize / 2 % shapes.len()];
        let events = 20 + (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 % 381;
        let shape = TinyShape { events, threads: shape.threads + 2, variables: shape.variables * 3, ..shape.clone() };
        return (format!("seed {seed}, {shape:?}"), tiny(seed, &shape));
    }
    let step = |n: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(n as u32 * 7 % 64);
    let pick = |n: u64, from: u64, to: u64| from + step(n) % (to - from + 1);
    let share = |n: u64| (step(n) % 100) as f64 / 100.0;
    let config = Config {
        seed,
        events: pick(1, 90, 400),
        threads: pick(2, 2, 6) as u32,
        variables: pick(3, 2, 12) as u32,
        locks: pick(4, 1, 6) as u32,
        blocks: pick(5, 0, 12),
        truncated: step(6) % 2 == 0,
        quantum: pick(7, 1, 8) as u32,
        updates: 0.1 * share(8),
        atomic: 0.3 * share(9),
        values: if step(10) % 3 == 0 { 0.0 } else { 1.0 },
        unguarded: 0.5 * share(11),
        nesting: pick(12, 1, 3) as u32,
        ordered_locks: step(13) % 2 == 0,
        hand_over_hand: 0.3 * share(14),
        reentrant: 0.1 * share(15),
        shared: 0.3 * share(16),
        busy: if step(17) % 2 == 0 { 0.0 } else { 0.1 },
        conditions: pick(18, 1, 2) as u32,
        waits: 0.1 * share(19),
        semaphores: pick(20, 1, 2) as u32,
        semaphore_events: 0.05,
        tokens: pick(21, 1, 2) as u32,
        token_events: 0.03,
        ..Config::default()
    };
    let story = format!("{config:?}");
    // Each event at a place of its own.
    let text = with_places(&to_std(&mut Generator::new(config).unwrap()), |line, _| (line + 1).to_string());
    (story, Trace::from_std(&text).unwrap())
}

/// How many traces there are of `everything`.
const EVERYTHING: usize = 150;

/// One of these, and what it shows in one window.
struct Whole {
    story: String,
    trace: Trace,
    model: Model,
    truth: Goals,
    /// Nothing stayed open.
    complete: bool,
}

/// The trace of a seed, which several tests look at, predicted once.
fn whole(seed: u64) -> &'static Whole {
    static ALL: [OnceLock<Whole>; EVERYTHING] = [const { OnceLock::new() }; EVERYTHING];
    ALL[seed as usize].get_or_init(|| {
        let (story, trace) = everything(seed);
        let model = Model::ALL[seed as usize % 3];
        let prediction = predicted(&trace, &Options { model, window: 1 << 20, ..Options::default() });
        Whole { story, trace, model, truth: found(&prediction), complete: prediction.incomplete.is_empty() }
    })
}

#[test]
fn what_the_whole_trace_shows_is_reported_or_counted_whatever_the_window() {
    let counts = each_seed(0..EVERYTHING as u64, |seed| {
        let Whole { story, trace, model, truth, complete } = whole(seed);
        let (model, mut found_in_all, mut covered_in_all) = (*model, 0, 0);
        if !complete {
            return (0, 0);
        }
        for (at, window) in [8, 20, 50, 100].into_iter().enumerate().filter(|(_, window)| *window < trace.len()) {
            let reach = [10, 40, 120, Options::REACH][(seed as usize + at) % 4];
            let story = || format!("{story} in {model}, window {window}, reach {reach}");
            let prediction = predicted(trace, &Options { model, window, reach, ..Options::default() });
            let (found, covered) = holds(truth, &prediction, &story);
            if reach == Options::REACH {
                found_in_all += found;
                covered_in_all += covered;
            }
        }
        (found_in_all, covered_in_all)
    });
    let found: usize = counts.iter().map(|(found, _)| found).sum();
    let covered: usize = counts.iter().map(|(_, covered)| covered).sum();
    // Fewer than one in a hundred true goals may stay undecided.
    println!("{covered} of {} true goals stay undecided", found + covered);
    assert!(found > 1_000 && covered * 100 < found, "{covered} beside {found}");
}

#[test]
fn a_budget_that_runs_out_leaves_nothing_uncounted() {
    each_seed(0..30, |seed| {
        let Whole { story, trace, model, truth, .. } = whole(seed);
        let model = *model;
        for micros in [0, 300, 3_000] {
            let budget = Some(Duration::from_micros(micros));
            for window in [8, 1 << 20] {
                let story = || format!("{story} in {model}, window {window}, {micros} µs");
                let prediction = predicted(trace, &Options { model, window, budget, ..Options::default() });
                if window < trace.len() {
                    holds(truth, &prediction, &story);
                } else {
                    let left = truth.len().saturating_sub(found(&prediction).len()) as u64;
                    let counted: u64 = prediction.incomplete.iter().map(|entry| entry.count).sum();
                    assert!(left <= counted, "{left} lost, {counted} counted\n{}", story());
                }
            }
        }
    });
}
