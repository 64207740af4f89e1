//! The sync-preserving sweep against its definition, by enumeration: nothing false, nothing missed, in both models.

use portent_order::{Checker, Goal, Kind, Model, brute};
use portent_predict::sync_preserving::{Sweep, Wanted, sweep};
use portent_testing::traces::with_places;
use portent_trace::generate::{TinyShape, tiny_std};
use portent_trace::{EventId, Mode, Op, SemId, Trace};
use std::collections::{BTreeSet, HashSet};

/// A state: position of each thread, last write of each variable, for each wait whether it was notified.
type State = (Vec<usize>, Vec<Option<EventId>>, Vec<bool>);

/// Sync-preserving reorderings, by definition: those of docs/src/internals/semantics.md §2 in which conflicting critical sections of different
/// threads on one lock come in the observed order, and a failed try sees its holder: of the scopes that conflicted with
/// it in the observed order, the one acquired first.
struct Definition<'t> {
    trace: &'t Trace,
    model: Model,
    program: Vec<Vec<EventId>>,
    saw: Vec<Option<EventId>>,
    /// For each failed try, the acquire and the release of its holder.
    holder: Vec<Option<(EventId, Option<EventId>)>>,
    cycles: Vec<Vec<EventId>>,
}

impl<'t> Definition<'t> {
    fn new(trace: &'t Trace, model: Model) -> Self {
        let mut program = vec![Vec::new(); trace.threads()];
        let (mut saw, mut last) = (Vec::new(), vec![None; trace.variables()]);
        for event in trace.events() {
            program[event.thread.index()].push(event.id);
            saw.push(event.op.variable().and_then(|x| last[x.index()]));
            if let (Some(x), true) = (event.op.variable(), event.op.writes()) {
                last[x.index()] = Some(event.id);
            }
        }
        let cycles = brute::candidates(trace, Kind::Deadlock).into_iter().map(|goal| match goal {
            Goal::Deadlock { waiting } => waiting,
            _ => unreachable!(),
        });
        let cycles = cycles.collect();
        let mut all = Definition { trace, model, program, saw, holder: Vec::new(), cycles };
        all.holder = trace.events().map(|event| all.holder_of(event.id)).collect();
        all
    }

    fn release_of(&self, acquire: EventId) -> Option<EventId> {
        let Op::Acquire(lock, mode) = self.trace.op(acquire) else { return None };
        let own = &self.program[self.trace.thread(acquire).index()];
        own.iter().copied().find(|&e| e > acquire && self.trace.op(e) == Op::Release(lock, mode))
    }

    fn holder_of(&self, busy: EventId) -> Option<(EventId, Option<EventId>)> {
        let Op::Busy(lock, mode) = self.trace.op(busy) else { return None };
        let conflicts = |m: Mode| m.conflicts_with(mode);
        let acquires = (0..busy.index()).map(EventId::new).filter(|&e| {
            matches!(self.trace.op(e), Op::Acquire(l, m) if l == lock && conflicts(m))
                && self.trace.thread(e) != self.trace.thread(busy)
        });
        acquires.map(|e| (e, self.release_of(e))).find(|(_, release)| release.is_none_or(|r| r > busy))
    }

    fn done(&self, state: &State, event: EventId) -> bool {
        let t = self.trace.thread(event).index();
        self.program[t][..state.0[t]].contains(&event)
    }

    fn enabled(&self, state: &State, event: EventId) -> bool {
        let trace = self.trace;
        let thread = trace.thread(event);
        if self.model == Model::Reads
            && let (Some(x), true) = (trace.op(event).variable(), trace.op(event).reads())
            && state.1[x.index()] != self.saw[event.index()]
        {
            return false;
        }
        match trace.op(event) {
            Op::Acquire(lock, mode) => (0..trace.len()).map(EventId::new).all(|other| match trace.op(other) {
                Op::Acquire(l, m) if l == lock && m.conflicts_with(mode) && trace.thread(other) != thread => {
                    let open = self.done(state, other) && !self.release_of(other).is_some_and(|r| self.done(state, r));
                    let out_of_order = other > event && self.done(state, other);
                    !open && !out_of_order
                }
                _ => true,
            }),
            Op::Busy(..) => self.holder[event.index()].is_some_and(|(acquire, release)| {
                self.done(state, acquire) && !release.is_some_and(|r| self.done(state, r))
            }),
            Op::Receive(token) => trace.senders(token).iter().all(|&send| self.done(state, send)),
            Op::Wake(c) => match trace.pairing_of_wake(event) {
                Some(k) => state.2[k.index()],
                // Where a notify could have woken it, all that was done to the condition stays where it was.
                None if self.could_be_woken(event) => trace.events().all(|other| match other.op {
                    Op::Sleep(d) | Op::Notify(d, _) | Op::Wake(d) if d == c && other.id != event => {
                        self.done(state, other.id) == (other.id < event)
                    }
                    _ => true,
                }),
                None => true,
            },
            Op::Wait(s) => self.served(s, event).is_none_or(|post| self.done(state, post)),
            Op::Empty(s) => trace.events().all(|other| match other.op {
                Op::Post(r) | Op::Wait(r) if r == s => self.done(state, other.id) == (other.id < event),
                _ => true,
            }),
            _ => true,
        }
    }

    /// Whether a notify came while the thread slept who then woke by itself.
    fn could_be_woken(&self, wake: EventId) -> bool {
        let Op::Wake(c) = self.trace.op(wake) else { return false };
        let earlier = || self.trace.events().filter(|event| event.id < wake);
        let own = |event: &portent_trace::Event| event.op == Op::Sleep(c) && event.thread == self.trace.thread(wake);
        let slept = earlier().rfind(own).map(|event| event.id);
        earlier().any(|event| matches!(event.op, Op::Notify(d, _) if d == c) && Some(event.id) > slept)
    }

    /// The post that let a wait through, first come, first served.
    fn served(&self, semaphore: SemId, wait: EventId) -> Option<EventId> {
        let all = |op: Op| self.trace.events().filter(move |event| event.op == op).map(|event| event.id);
        let earlier = all(Op::Wait(semaphore)).filter(|&other| other < wait).count() as u64;
        let number = earlier.checked_sub(self.trace.initial_count(semaphore))?;
        all(Op::Post(semaphore)).nth(number as usize)
    }

    fn goals(&self) -> BTreeSet<Goal> {
        let trace = self.trace;
        let start: State =
            (vec![0; self.program.len()], vec![None; trace.variables()], vec![false; trace.pairings().len()]);
        let mut seen = HashSet::from([start.clone()]);
        let mut stack = vec![start];
        let mut goals = BTreeSet::new();
        while let Some(state) = stack.pop() {
            let next: Vec<EventId> =
                self.program.iter().zip(&state.0).filter_map(|(events, &at)| events.get(at).copied()).collect();
            for &first in &next {
                for &second in next.iter().filter(|&&second| second > first) {
                    let (a, b) = (trace.op(first), trace.op(second));
                    if a.conflicts_with(b) && !(a.is_atomic() && b.is_atomic()) {
                        goals.insert(Goal::Race { first, second });
                    }
                }
            }
            let at_cycle = self.cycles.iter().filter(|waiting| waiting.iter().all(|e| next.contains(e)));
            goals.extend(at_cycle.map(|waiting| Goal::Deadlock { waiting: waiting.clone() }));
            for event in next.into_iter().filter(|&event| self.enabled(&state, event)) {
                let mut after = state.clone();
                after.0[trace.thread(event).index()] += 1;
                if let (Some(x), true, Model::Reads) =
                    (trace.op(event).variable(), trace.op(event).writes(), self.model)
                {
                    after.1[x.index()] = Some(event);
                }
                for &k in trace.woken_by(event) {
                    after.2[k.index()] = self.done(&state, trace.pairings()[k.index()].sleep);
                }
                if seen.insert(after.clone()) {
                    stack.push(after);
                }
            }
        }
        goals
    }
}

fn swept(trace: &Trace, model: Model) -> Sweep {
    sweep(trace, &Wanted { model, races: true, deadlocks: true, known: &|_| false, stop: &|| false })
}

/// What a goal is called: its events, or their locations if those are grouped.
fn name(trace: &Trace, goal: &Goal) -> (bool, Vec<u32>) {
    let at = |e: &EventId| trace.event(*e).loc.to_bits();
    match goal {
        Goal::Race { first, second } => {
            let (a, b) = (at(first), at(second));
            (false, vec![a.min(b), a.max(b)])
        }
        Goal::Deadlock { waiting } => {
            let places: Vec<u32> = waiting.iter().map(at).collect();
            let rotations = (0..places.len()).map(|by| [&places[by..], &places[..by]].concat());
            (true, rotations.min().unwrap_or_default())
        }
        _ => unreachable!(),
    }
}

/// The same trace with so few source locations that each has many events.
fn with_few_locations(std: &str, seed: u64) -> String {
    with_places(std, |i, _| ((i as u64).wrapping_mul(seed | 1).wrapping_add(seed >> 3) % 3).to_string())
}

#[derive(Debug, Default)]
struct Tally {
    races: usize,
    deadlocks: usize,
    infeasible: usize,
    beyond: usize,
}

fn compare(std: &str, model: Model, tally: &mut Tally) {
    let trace = Trace::from_std(std).unwrap();
    let truth = Definition::new(&trace, model).goals();
    let sweep = swept(&trace, model);
    assert!(sweep.complete);
    let checker = Checker::new(&trace);
    let mut names = BTreeSet::new();
    for (goal, witness) in &sweep.found {
        assert!(truth.contains(goal), "{goal:?} is not sync-preserving in {model}\n{std}");
        checker.check(model, goal, witness).unwrap_or_else(|why| panic!("{goal:?} in {model}: {why}\n{std}"));
        assert!(names.insert(name(&trace, goal)), "{goal:?}: found twice\n{std}");
    }
    let expected: BTreeSet<_> = truth.iter().map(|goal| name(&trace, goal)).collect();
    assert_eq!(names, expected, "in {model}\n{std}");
    tally.races += names.iter().filter(|(deadlock, _)| !deadlock).count();
    tally.deadlocks += names.iter().filter(|(deadlock, _)| *deadlock).count();
    for kind in [Kind::Race, Kind::Deadlock] {
        for goal in brute::candidates(&trace, kind) {
            if !truth.contains(&goal) {
                tally.infeasible += 1;
            }
        }
    }
}

#[test]
fn exactly_the_sync_preserving_races_and_deadlocks_are_found() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    let mut tally = Tally::default();
    for seed in 0..24_000u64 {
        let shape = &shapes[seed as usize % shapes.len()];
        let model = if seed / shapes.len() as u64 % 4 == 3 { Model::Sync } else { Model::Reads };
        let std = tiny_std(seed, shape);
        // A location for every event, or three for all: the sweep finds one race per pair of locations.
        let few = seed / shapes.len() as u64 % 2 == 1;
        compare(&if few { with_few_locations(&std, seed) } else { std }, model, &mut tally);
    }
    assert!(tally.races > 20_000 && tally.deadlocks > 300 && tally.infeasible > 6_000, "{tally:?}");
}

#[test]
fn longer_traces_with_more_locks_agree_too() {
    let locks = TinyShape { name: "longer", events: 24, locks: 3, variables: 3, ..TinyShape::PLAIN };
    let shapes = [
        locks.clone(),
        TinyShape { open_scopes: true, hand_over_hand: true, ..locks.clone() },
        TinyShape { lock_heavy: true, threads: 4, ..locks.clone() },
        TinyShape { shared_locks: true, busy: true, open_scopes: true, ..locks.clone() },
        TinyShape { fork_join: true, tokens: true, updates: true, ..locks.clone() },
        TinyShape { conditions: true, wait_heavy: true, ..locks.clone() },
        TinyShape { events: 24, locks: 3, ..TinyShape::EVERYTHING },
    ];
    let mut tally = Tally::default();
    for seed in 0..14_000u64 {
        let std = tiny_std(seed, &shapes[seed as usize % shapes.len()]);
        let few = seed / shapes.len() as u64 % 2 == 1;
        compare(&if few { with_few_locations(&std, seed) } else { std }, Model::Reads, &mut tally);
    }
    assert!(tally.races > 20_000 && tally.deadlocks > 400 && tally.infeasible > 10_000, "{tally:?}");
}

#[test]
fn what_is_found_is_feasible_by_brute_force_and_some_races_need_swapped_sections() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    let mut tally = Tally::default();
    for seed in 0..3_000u64 {
        let trace = Trace::from_std(&tiny_std(seed ^ 0xabcd, &shapes[seed as usize % shapes.len()])).unwrap();
        let found: BTreeSet<Goal> = swept(&trace, Model::Reads).found.into_iter().map(|(goal, _)| goal).collect();
        for kind in [Kind::Race, Kind::Deadlock] {
            for goal in brute::candidates(&trace, kind) {
                match (found.contains(&goal), brute::decide(&trace, Model::Reads, &goal).is_some()) {
                    (true, feasible) => assert!(feasible, "seed {seed}: {goal:?}"),
                    (false, feasible) => tally.beyond += usize::from(feasible),
                }
            }
        }
    }
    assert!(tally.beyond > 20, "{tally:?}");
}

#[test]
fn a_witness_keeps_the_observed_order_before_the_race() {
    // Nothing before the race is needed for it; leaving it out would only surprise.
    let mut std = String::new();
    for i in 0..200 {
        std += &format!("T{}|acq(l)|1\nT{}|w(y)|2\nT{}|rel(l)|3\n", i % 3, i % 3, i % 3);
    }
    std += "T1|w(x)|4\nT2|w(x)|5\n";
    let trace = Trace::from_std(&std).unwrap();
    let sweep = swept(&trace, Model::Reads);
    let [(Goal::Race { .. }, witness)] = sweep.found.as_slice() else { panic!("{:?}", sweep.found.len()) };
    assert!(witness.len() > 590, "{}", witness.len());
    assert!(witness.split().0 > 590, "{:?}", witness.split());
}

#[test]
fn more_locations_than_lists_are_said_to_be_incomplete() {
    let mut std = String::new();
    for i in 0..100 {
        std += &format!("T1|acq(l)|a\nT1|rel(l)|b\nT1|w(x)|{i}\n");
    }
    std += "T2|w(x)|last\n";
    let trace = Trace::from_std(&std).unwrap();
    let sweep = swept(&trace, Model::Reads);
    assert!(!sweep.complete);
    // Sixty-four have a list of their own; of the others the first hides the rest.
    assert_eq!(sweep.found.len(), 65);
    let checker = Checker::new(&trace);
    assert!(sweep.found.iter().all(|(goal, witness)| checker.check(Model::Reads, goal, witness).is_ok()));
}

#[test]
fn what_is_known_is_not_found_again_and_a_stop_is_a_stop() {
    let trace = Trace::from_std("T1|w(x)|1\nT2|w(x)|2\nT1|w(y)|3\nT2|w(y)|4\n").unwrap();
    let first = |goal: &Goal| matches!(goal, Goal::Race { first, .. } if first.index() == 0);
    let wanted = Wanted { model: Model::Reads, races: true, deadlocks: true, known: &first, stop: &|| false };
    let found: Vec<Goal> = sweep(&trace, &wanted).found.into_iter().map(|(goal, _)| goal).collect();
    assert_eq!(found, [Goal::Race { first: EventId::new(2), second: EventId::new(3) }]);
    let stopped = sweep(&trace, &Wanted { stop: &|| true, ..wanted });
    assert!(stopped.found.is_empty() && !stopped.complete);
}
