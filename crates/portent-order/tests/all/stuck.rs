//! Stuck threads: engine, oracle and checker on random small traces, with threads that still wait for something where the trace ends.
//! Nothing false, nothing missed; one engine answers all questions about a trace.

use portent_order::engine::{Engine, View, decide};
use portent_order::{Goal, Kind, Model, Verdict, brute, check};
use portent_testing::dice::Dice;
use portent_testing::goals::{engine_agrees, oracle_reaches};
use portent_testing::traces::{Shapes, TinyTrace};
use portent_trace::generate::TinyShape;
use portent_trace::{CondId, EventId, Mode, Op, SemId, ThreadId, Trace};

#[derive(Default, Debug)]
struct Count {
    goals: u64,
    feasible: u64,
    /// By what the thread waits for: locks, tokens, semaphores, notifies.
    by_operation: [u64; 4],
    with_pending: u64,
    searched: u64,
}

/// What some threads of a trace might wait for at its end; what they sleep on, they wait for anyway.
fn pending(trace: &Trace, dice: &mut Dice) -> Vec<(ThreadId, Op)> {
    let mut all = Vec::new();
    for thread in (0..trace.threads()).map(ThreadId::new) {
        if trace.pending(thread).is_some() || dice.below(3) > 0 {
            continue;
        }
        let lock = trace.lock_ids().nth(dice.below(trace.locks().max(1)));
        let receive = trace.events().filter(|e| matches!(e.op, Op::Receive(_))).nth(dice.below(3));
        let mode = if dice.below(3) == 0 { Mode::Shared } else { Mode::Exclusive };
        let op = match (dice.below(4), lock, receive) {
            (0 | 1, Some(lock), _) => Op::Acquire(lock, mode),
            (2, _, Some(receive)) => receive.op,
            _ if trace.semaphores() > 0 => Op::Wait(SemId::new(dice.below(trace.semaphores()))),
            _ => continue,
        };
        all.push((thread, op));
    }
    all
}

fn compare(tiny: &TinyTrace, trace: &Trace, model: Model, count: &mut Count) {
    let view = View::whole(trace, model);
    let mut engine = Engine::new(&view);
    let with_pending = trace.thread_ids().any(|thread| trace.pending(thread).is_some());
    for goal in brute::candidates(trace, Kind::Stuck) {
        let truth = oracle_reaches(trace, model, &goal, tiny);
        engine_agrees(&mut engine, trace, model, &goal, truth, tiny);
        let Goal::Stuck { waiting } = goal else { unreachable!("asked for") };
        let operation = match trace.op(waiting) {
            Op::Acquire(..) => 0,
            Op::Receive(_) => 1,
            Op::Wait(_) => 2,
            _ => 3,
        };
        count.goals += 1;
        count.feasible += u64::from(truth);
        count.by_operation[operation] += u64::from(truth);
        count.with_pending += u64::from(truth && with_pending);
    }
    count.searched += engine.tiers().searched;
}

fn run(traces: u64, first_seed: u64) {
    for model in Model::ALL {
        let mut count = Count::default();
        let waits = Shapes::that(|shape| shape.conditions || shape.bare_waits || shape.semaphores || shape.lock_heavy);
        let all = Shapes::all();
        let gatherings: Shapes = std::iter::once(TinyShape::GATHERINGS).collect();
        let seeds = |share: u64| first_seed..first_seed + traces / share;
        for tiny in all.traces(seeds(2)).chain(waits.traces(seeds(4))).chain(gatherings.traces(seeds(4))) {
            let mut dice = Dice::new(tiny.seed);
            let pending = if dice.below(2) == 0 { pending(&tiny.trace, &mut dice) } else { Vec::new() };
            let trace = tiny.trace.clone().with_pending(pending);
            compare(&tiny, &trace, model, &mut count);
        }
        println!("{model}: {traces} traces, {count:?}");
        assert!(count.feasible * 50 > count.goals && count.feasible * 2 < count.goals, "{count:?}");
        assert!(count.by_operation.iter().all(|&feasible| feasible > traces / 200), "{count:?}");
        assert!(count.with_pending > traces / 100 && count.searched > traces / 20, "{count:?}");
    }
}

#[test]
fn engine_and_oracle_agree_on_who_gets_stuck_in_random_traces() {
    run(20_000, 11);
}

#[test]
#[ignore = "a nightly-style run: a million traces per model, about half an hour"]
fn engine_and_oracle_agree_on_who_gets_stuck_in_a_million_traces() {
    run(1_000_000, 1 << 35);
}

/// Whether the last of these events, as the trace has them, can get stuck; by all who can tell, in every model.
fn gets_stuck(trace: &Trace, waiting: usize) -> bool {
    let goal = Goal::Stuck { waiting: EventId::new(waiting) };
    let by = Model::ALL.map(|model| {
        let truth = brute::decide(trace, model, &goal);
        match decide(trace, model, &goal) {
            Verdict::Feasible(witness) => check(trace, model, &goal, &witness).expect("a witness"),
            verdict => assert!(truth.is_none() && verdict == Verdict::Infeasible, "{verdict:?}"),
        }
        truth.is_some()
    });
    assert!(by.iter().all(|&one| one == by[0]), "{by:?}");
    by[0]
}

/// A thread is joined under a lock that it needs.
#[test]
fn a_join_under_a_lock() {
    let text = "M|fork(T)\nT|acq(l)\nT|rel(l)\nM|acq(l)\nM|join(T)\nM|rel(l)\n";
    let trace = Trace::from_std(text).expect("a trace");
    let join = trace.events().rfind(|e| matches!(e.op, Op::Receive(_))).expect("a join");
    assert!(gets_stuck(&trace, join.id.index()));
    let fixed = Trace::from_std("M|fork(T)\nT|acq(l)\nT|rel(l)\nM|acq(l)\nM|rel(l)\nM|join(T)\n").expect("a trace");
    assert!(brute::candidates(&fixed, Kind::Stuck).iter().all(|goal| {
        let Goal::Stuck { waiting } = goal else { return false };
        !gets_stuck(&fixed, waiting.index())
    }));
}

/// Who sleeps at the end waits there, and must not be what a notify can have woken: it would go on, and nobody knows how.
#[test]
fn who_sleeps_at_the_end_counts() {
    let text = "T|slp(c)\nU|slp(d)\nV|ntf(c)\nT|wak(c)\n";
    let trace = Trace::from_std(text).expect("a trace");
    assert_eq!(trace.pending(ThreadId::new(1)), Some(Op::Wake(CondId::new(1))));
    assert_eq!(trace.pending(ThreadId::new(0)), None);
    assert!(gets_stuck(&trace, 3));
    // If the notify always finds the other one asleep, that one may be woken instead.
    let woken = Trace::from_std("U|slp(c)\nU|fork(V)\nT|slp(c)\nV|ntf(c)\nT|wak(c)\n").expect("a trace");
    let wake = woken.events().find(|e| matches!(e.op, Op::Wake(_))).expect("a wake");
    assert!(!gets_stuck(&woken, wake.id.index()));
}
