//! The oracle and the checker against each other: nothing but the definition of an interleaving stands between them.
//!
//! Every interleaving of every choice of thread prefixes is shown to the checker, whatever rule it breaks. A goal is
//! feasible by the oracle if and only if the checker accepts one of them. The two share no code, so a rule that one of
//! them forgot or invented shows here.

use portent_order::{Checker, Goal, Kind, Model, Schedule, Writer, brute, check};
use portent_testing::goals::candidates;
use portent_testing::traces::Shapes;
use portent_trace::generate::{TinyShape, tiny};
use portent_trace::{EventId, ThreadId, Trace};

/// Threads and events of a trace whose interleavings are all looked at. Deadlocks and waits need more events than other
/// goals, and make do with two threads.
fn limits(shape: &TinyShape) -> (usize, usize) {
    if shape.lock_heavy || shape.conditions { (2, 13) } else { (3, 7) }
}

/// Every interleaving of every choice of thread prefixes, the empty one included.
fn interleavings(trace: &Trace) -> Vec<Schedule> {
    fn extend(left: &mut [usize], path: &mut Vec<ThreadId>, all: &mut Vec<Schedule>) {
        all.push(path.iter().copied().collect());
        for thread in 0..left.len() {
            if left[thread] > 0 {
                left[thread] -= 1;
                path.push(ThreadId::new(thread));
                extend(left, path, all);
                path.pop();
                left[thread] += 1;
            }
        }
    }
    let mut left = vec![0; trace.threads()];
    trace.events().for_each(|event| left[event.thread.index()] += 1);
    let mut all = Vec::new();
    extend(&mut left, &mut Vec::new(), &mut all);
    all
}

#[test]
fn a_goal_is_feasible_exactly_if_the_checker_accepts_some_interleaving() {
    let shapes = Shapes::all().map(|shape| {
        let (threads, events) = limits(&shape);
        TinyShape { threads: threads as u32, events: events as u32, ..shape }
    });
    let mut traces = 0;
    let mut counts = [[0u32; 2]; Kind::ALL.len()];
    for tiny in shapes.traces(0..15_000) {
        let trace = &tiny.trace;
        let (threads, events) = limits(&tiny.shape);
        if trace.threads() > threads || trace.len() > events {
            continue;
        }
        traces += 1;
        let schedules = interleavings(trace);
        let checker = Checker::new(trace);
        for (k, kind) in Kind::ALL.into_iter().enumerate() {
            for goal in brute::candidates(trace, kind) {
                for model in Model::ALL {
                    let oracle = brute::decide(trace, model, &goal);
                    let accepted = schedules.iter().find(|schedule| checker.check(model, &goal, schedule).is_ok());
                    assert_eq!(
                        oracle.is_some(),
                        accepted.is_some(),
                        "{goal:?} in {model}: the oracle says {oracle:?}, the checker accepts {accepted:?}: {tiny}"
                    );
                    counts[k][usize::from(accepted.is_some())] += 1;
                }
            }
        }
    }
    assert!(traces >= 2_000, "only {traces} traces were small enough");
    for (kind, [no, yes]) in Kind::ALL.into_iter().zip(counts) {
        println!("{}: {yes} feasible, {no} not", kind.name());
        assert!(yes > 0 && no > 0, "{}: only one answer occurs ({yes} feasible, {no} not)", kind.name());
    }
}

fn trace(text: &str) -> Trace {
    Trace::from_std(&text.replace(' ', "\n")).unwrap()
}

/// A schedule by the numbers of its threads.
fn schedule(threads: &[usize]) -> Schedule {
    threads.iter().map(|&thread| ThreadId::new(thread)).collect()
}

fn race(first: usize, second: usize) -> Goal {
    Goal::Race { first: EventId::new(first), second: EventId::new(second) }
}

/// Why a schedule is rejected: the step and the reason.
fn rejection(trace: &Trace, model: Model, goal: &Goal, threads: &[usize]) -> String {
    check(trace, model, goal, &schedule(threads)).expect_err("no witness").to_string()
}

#[test]
fn a_witness_with_a_step_dropped_repeated_or_swapped_is_rejected_with_the_reason() {
    // T2 takes the lock only after T1 let go of it; the accesses of y are unprotected.
    let trace = trace("T1|acq(l) T1|w(x) T1|rel(l) T1|w(y) T2|acq(l) T2|rel(l) T2|w(y)");
    let (goal, model) = (race(3, 6), Model::Reads);
    check(&trace, model, &goal, &schedule(&[0, 0, 0, 1, 1])).unwrap();
    assert_eq!(rejection(&trace, model, &goal, &[0, 0, 1, 1]), "step 2: the lock is held by another thread");
    assert_eq!(rejection(&trace, model, &goal, &[0, 0, 1, 0, 1]), "step 2: the lock is held by another thread");
    assert_eq!(rejection(&trace, model, &goal, &[0, 0, 0, 1]), "step 4: the two are not both next");
    assert_eq!(rejection(&trace, model, &goal, &[0, 0, 0, 0, 1, 1]), "step 6: the two are not both next");
    assert_eq!(rejection(&trace, model, &goal, &[0, 0, 0, 1, 1, 1, 1]), "step 6: the thread has no further event");
    assert_eq!(rejection(&trace, model, &goal, &[0, 0, 0, 1, 1, 9]), "step 5: the thread has no further event");
}

#[test]
fn a_witness_must_keep_what_reads_saw_unless_the_model_lets_go_of_it() {
    let trace = trace("T1|w(x) T2|r(x) T2|w(y) T1|w(y)");
    let goal = race(2, 3);
    check(&trace, Model::Reads, &goal, &schedule(&[0, 1])).unwrap();
    assert_eq!(rejection(&trace, Model::Reads, &goal, &[1, 0]), "step 0: it would read another write");
    check(&trace, Model::Sync, &goal, &schedule(&[1, 0])).unwrap();
}

#[test]
fn forked_threads_wait_for_their_fork() {
    let trace = trace("T1|branch T1|fork(T2) T1|w(x) T2|w(x)");
    // The fork became a token: T2 first receives it.
    let goal = race(2, 4);
    check(&trace, Model::Sync, &goal, &schedule(&[0, 0, 1])).unwrap();
    assert_eq!(rejection(&trace, Model::Sync, &goal, &[1, 0, 0]), "step 0: its token is not sent");
}

#[test]
fn events_that_make_no_goal_are_rejected_before_the_schedule_is_looked_at() {
    let trace = trace("T1|w(x) T2|r(x) T2|r(y) T1|u(y) T2|u(y) T1|r(x)");
    let any = [0];
    let why = |goal: Goal| rejection(&trace, Model::Sync, &goal, &any);
    assert_eq!(why(race(1, 5)), "step 0: not a goal: the two do not conflict");
    assert_eq!(why(race(0, 5)), "step 0: not a goal: the two do not conflict");
    assert_eq!(why(race(3, 4)), "step 0: not a goal: both are atomic");
    let reads = |read: usize, challenger| Goal::Nondeterminism { read: EventId::new(read), challenger };
    assert_eq!(why(reads(0, Writer::Init)), "step 0: not a goal: the event does not read");
    assert_eq!(why(reads(1, Writer::Event(EventId::new(0)))), "step 0: not a goal: that is what it saw");
    assert_eq!(why(reads(1, Writer::Event(EventId::new(3)))), "step 0: not a goal: no write it could see");
    let atomicity = Goal::Atomicity { first: EventId::new(0), remote: EventId::new(1), second: EventId::new(5) };
    assert!(why(atomicity).starts_with("step 0: not a goal: "));
    let deadlock = Goal::Deadlock { waiting: vec![EventId::new(0), EventId::new(1)] };
    assert_eq!(why(deadlock), "step 0: not a goal: not all are acquires");
    let alone = Goal::Deadlock { waiting: vec![EventId::new(0)] };
    assert_eq!(why(alone), "step 0: not a goal: not a cycle of distinct threads");
}

#[test]
fn every_changed_witness_is_a_witness_again_or_rejected_at_a_step_it_has() {
    // Swapping two neighbours may well give another witness; the oracle's answer for its goal stays the judge.
    let (mut accepted, mut rejected) = (0, 0);
    for seed in 0..300 {
        let trace = tiny(seed, &TinyShape::EVERYTHING);
        let checker = Checker::new(&trace);
        for goal in candidates(&trace) {
            let Some(witness) = brute::decide(&trace, Model::Reads, &goal) else { continue };
            let steps: Vec<ThreadId> = witness.steps(&trace).collect();
            for at in 0..steps.len() {
                let mut swapped = steps.clone();
                swapped.swap(at, (at + 1) % steps.len());
                let dropped = steps.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, &thread)| thread);
                let repeated = steps[..=at].iter().chain(&steps[at..]).copied();
                for changed in [swapped.into_iter().collect(), dropped.collect(), repeated.collect::<Schedule>()] {
                    match checker.check(Model::Reads, &goal, &changed) {
                        Ok(()) => accepted += 1,
                        Err(why) => {
                            assert!(why.step <= changed.len() && !why.why.is_empty(), "{why}");
                            rejected += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(rejected > accepted && accepted > 0, "{accepted} accepted, {rejected} rejected");
}

#[test]
fn what_the_observed_order_reaches_is_checked_all_at_once_as_one_by_one() {
    let (mut reached, mut refused) = (0, 0);
    for seed in 0..2_000 {
        let trace = tiny(seed, &TinyShape::EVERYTHING);
        let checker = Checker::new(&trace);
        let goals = brute::candidates(&trace, Kind::Atomicity);
        for model in Model::ALL {
            for (goal, verdict) in goals.iter().zip(checker.check_observed(model, &goals)) {
                let Goal::Atomicity { second, .. } = *goal else { continue };
                let observed: Schedule = trace.events().take(second.index() + 1).map(|event| event.thread).collect();
                assert_eq!(verdict.is_ok(), checker.check(model, goal, &observed).is_ok(), "{goal:?} of seed {seed}");
                if verdict.is_ok() { reached += 1 } else { refused += 1 }
            }
        }
        let others = brute::candidates(&trace, Kind::Race);
        assert!(checker.check_observed(Model::Sync, &others).iter().all(Result::is_err), "only violations");
    }
    assert!(reached > 20 && refused > 20, "{reached} reached, {refused} refused");
}
