//! States of a run's reorderings in which nothing can go on, though not every thread is done: deadlocks of every kind.
//!
//! Whether threads wait for each other follows from where they are: which locks each holds there, which tokens it has sent, what
//! semaphores count. Only whether who sleeps on a condition has been woken follows from the order, and the engine is asked for that. So all
//! combinations of places at which threads can wait are gone through, and the engine is asked about those in which everybody
//! waits. That is exact, and meant for small runs.

use crate::spins::Spins;
use crate::subject::{End, History, Observes, Operation, Run, Seen, Step};
use portent_order::engine::{Effort, Engine};
use portent_order::{At, Divergence, Outcome, Schedule, Verdict};
use portent_trace::{Event, EventId, LockId, Mode, Op, SemId, ThreadId, VarId};
use std::collections::{BTreeMap, BTreeSet};

/// A place at which a thread can stay for ever.
#[derive(Clone)]
struct Point {
    /// Where; `None` for the end of the thread.
    event: Option<EventId>,
    /// What it waits for.
    waits: Waits,
    /// The locks that it holds.
    holds: Vec<(LockId, Mode)>,
    /// What it must see to stay there, if it spins.
    sees: Vec<(VarId, i64)>,
    /// How many operations it has done.
    steps: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Lock(LockId, Mode),
    /// The event is a receive.
    Token,
    Semaphore(SemId),
    /// To be woken.
    Notify,
    /// In a loop that only looks, as long as this is what it sees, if that is known.
    Spin(Option<Seen>),
    /// For something that no reordering gives.
    ForEver,
    /// For nothing: it is done, or has failed.
    No,
}

/// A cut in which nothing can go on.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// Ways to get there.
    pub schedules: Vec<Schedule>,
    /// Whether threads spin. Then there is a way for each of them by itself to see what it has seen; whether all that they look at stays
    /// as it is shows when the ways are run.
    pub spins: bool,
}

/// The cuts, as numbers of operations by thread, of all reorderings of a run that are stuck, though some thread still waits, and how
/// to get there. `None` if there are more than `most` combinations to look at, or the engine did not decide one.
pub fn stuck_cuts(
    run: &Run,
    spins: &Spins,
    engine: &mut Engine<'_, '_>,
    most: usize,
    effort: Effort,
) -> Option<BTreeMap<Vec<usize>, Stuck>> {
    let mut points: Vec<Vec<Point>> =
        (0..run.trace.threads()).map(|thread| points(run, spins, ThreadId::new(thread))).collect();
    leave_out_hopeless(run, &mut points);
    if points.iter().any(Vec::is_empty) {
        // Somebody can always go on.
        return Some(BTreeMap::new());
    }
    let combinations = points.iter().try_fold(1usize, |all, points| all.checked_mul(points.len().max(1)))?;
    if combinations > most {
        return None;
    }
    // The end first: what comes later can then be looked at with the fewest left.
    points.iter_mut().for_each(|points| points.reverse());
    let mut stuck = BTreeMap::new();
    let mut chosen = vec![0; points.len()];
    loop {
        let state: Vec<&Point> = points.iter().zip(&chosen).map(|(points, &at)| &points[at]).collect();
        if is_stuck(run, &state) {
            match reaches(run, engine, &state, effort) {
                Some(Stuck { schedules, .. }) if schedules.is_empty() => {}
                Some(found) => drop(stuck.insert(cut(run, &state), found)),
                None => return None,
            }
        }
        let Some(next) = (0..chosen.len()).find(|&thread| chosen[thread] + 1 < points[thread].len()) else {
            return Some(stuck);
        };
        chosen[next] += 1;
        chosen[..next].fill(0);
    }
}

/// The places at which a thread of the trace can stay.
fn points(run: &Run, spins: &Spins, thread: ThreadId) -> Vec<Point> {
    let history = run.threads.iter().flatten().find(|history| history.thread == thread);
    let mut tries = BTreeSet::new();
    let mut done = BTreeSet::new();
    for step in history.iter().flat_map(|history| &history.steps) {
        done.insert(step.event);
        if step.observes == Observes::Try {
            tries.insert(step.event);
        }
    }
    let (mut holds, mut points, mut steps) = (Vec::new(), Vec::new(), 0);
    for event in run.trace.events().filter(|event| event.thread == thread) {
        let waits = match event.op {
            Op::Acquire(lock, mode) if !tries.contains(&event.id) => Some(Waits::Lock(lock, mode)),
            Op::Receive(_) => Some(Waits::Token),
            Op::Wait(semaphore) if !tries.contains(&event.id) => Some(Waits::Semaphore(semaphore)),
            Op::Wake(_) if !tries.contains(&event.id) => Some(Waits::Notify),
            _ => None,
        };
        let spins = done.contains(&event.id).then(|| spins_at(run, history, spins, steps)).flatten();
        let waits = waits.map(|waits| (waits, Vec::new())).or(spins);
        let point = |(waits, sees)| Point { event: Some(event.id), waits, holds: holds.clone(), sees, steps };
        points.extend(waits.map(point));
        match event.op {
            Op::Acquire(lock, mode) => holds.push((lock, mode)),
            Op::Release(lock, mode) => holds.retain(|held| *held != (lock, mode)),
            _ => {}
        }
        steps += usize::from(done.contains(&event.id));
    }
    let (spinning, sees) = spins_at(run, history, spins, steps).unwrap_or((Waits::Spin(None), Vec::new()));
    let waits = match history.map(|history| history.end) {
        None | Some(End::Done | End::Failed(_)) => Waits::No,
        Some(End::Waits { observes: Observes::Nothing, op: Some(Op::Acquire(lock, mode)), .. }) => {
            Waits::Lock(lock, mode)
        }
        Some(End::Waits { observes: Observes::Nothing, op: Some(Op::Wait(semaphore)), .. }) => {
            Waits::Semaphore(semaphore)
        }
        Some(End::Waits { observes: Observes::Nothing | Observes::Wakes, op: Some(Op::Wake(_)), .. }) => Waits::Notify,
        Some(End::Waits { observes: Observes::Value(_) | Observes::Try, .. }) => spinning,
        Some(End::Waits { .. } | End::Cut) => Waits::ForEver,
    };
    points.push(Point { event: None, waits, holds, sees, steps });
    points
}

/// Leaves out places at which a thread waits for what no place of any other can keep from it, until there are none: in most programs
/// nobody waits with a lock in hand, and nothing is left to combine.
fn leave_out_hopeless(run: &Run, points: &mut [Vec<Point>]) {
    loop {
        let hopeless = |(thread, at): &(usize, usize)| {
            let others = |other: usize| points[other].iter().filter(move |_| other != *thread);
            match points[*thread][*at].waits {
                Waits::No | Waits::ForEver | Waits::Spin(_) | Waits::Notify => false,
                Waits::Semaphore(semaphore) => {
                    let least = |other: usize| {
                        let all = if other == *thread { &points[other][*at..=*at] } else { &points[other][..] };
                        let all = all.iter().map(|point| moves(run, ThreadId::new(other), point, semaphore));
                        all.min().unwrap_or(0)
                    };
                    initial(run, semaphore) + (0..points.len()).map(least).sum::<i64>() > 0
                }
                Waits::Lock(lock, mode) => !(0..points.len()).flat_map(others).any(|point| point.keeps(lock, mode)),
                Waits::Token => {
                    let event = points[*thread][*at].event;
                    let Some(Op::Receive(token)) = event.map(|event| run.trace.op(event)) else { return true };
                    let unsent = |&send: &EventId| {
                        points[run.trace.thread(send).index()].iter().any(|point| !point.is_behind(send))
                    };
                    !run.trace.senders(token).iter().any(unsent)
                }
            }
        };
        let all = points.iter().enumerate().flat_map(|(thread, points)| (0..points.len()).map(move |at| (thread, at)));
        let found: Vec<(usize, usize)> = all.filter(hopeless).collect();
        if found.is_empty() {
            return;
        }
        for (thread, at) in found.into_iter().rev() {
            points[thread].remove(at);
        }
    }
}

impl Point {
    /// Whether whoever stays here keeps a lock from others.
    fn keeps(&self, lock: LockId, mode: Mode) -> bool {
        self.holds.iter().any(|&(held, how)| held == lock && how.conflicts_with(mode))
    }

    /// Whether whoever stays here has done something of its own.
    fn is_behind(&self, event: EventId) -> bool {
        self.event.is_none_or(|at| event < at)
    }
}

/// Whether the thread can spin after so many operations, and what it then sees.
fn spins_at(run: &Run, history: Option<&History>, spins: &Spins, steps: usize) -> Option<(Waits, Vec<(VarId, i64)>)> {
    let history = history?;
    let operation: Operation = history.operation(steps)?;
    let (seen, length) = spins.sees(&history.steps[..steps], operation)?;
    let look = |step: &Step| match step.seen {
        Seen::Value(value) => Some((run.trace.op(step.event).variable()?, value)),
        _ => None,
    };
    let sees = history.steps[steps - length..steps].iter().filter_map(look).collect();
    Some((Waits::Spin(Some(seen)), sees))
}

/// Whether everybody waits, and somebody for something.
fn is_stuck(run: &Run, state: &[&Point]) -> bool {
    let waits = |(thread, point): (usize, &&Point)| match point.waits {
        Waits::No | Waits::ForEver | Waits::Spin(_) | Waits::Notify => true,
        Waits::Semaphore(semaphore) => {
            let moved =
                state.iter().enumerate().map(|(other, point)| moves(run, ThreadId::new(other), point, semaphore));
            initial(run, semaphore) + moved.sum::<i64>() == 0
        }
        Waits::Lock(lock, mode) => {
            state.iter().enumerate().any(|(other, point)| other != thread && point.keeps(lock, mode))
        }
        Waits::Token => {
            let Some(Op::Receive(token)) = point.event.map(|event| run.trace.op(event)) else { return false };
            // Sent if its thread is behind it.
            !run.trace.senders(token).iter().all(|&send| state[run.trace.thread(send).index()].is_behind(send))
        }
    };
    state.iter().any(|point| point.waits != Waits::No) && state.iter().enumerate().all(waits) && agree(run, state)
}

/// What a semaphore counts at first.
fn initial(run: &Run, semaphore: SemId) -> i64 {
    i64::try_from(run.trace.initial_count(semaphore)).unwrap_or(i64::MAX / 2)
}

/// By how much a thread has moved a semaphore where it stays.
fn moves(run: &Run, thread: ThreadId, point: &Point, semaphore: SemId) -> i64 {
    let is_done = |event: &Event| event.thread == thread && point.is_behind(event.id);
    let move_of = |event: Event| match event.op {
        Op::Post(other) if other == semaphore => 1,
        Op::Wait(other) if other == semaphore => -1,
        _ => 0,
    };
    run.trace.events().filter(is_done).map(move_of).sum()
}

/// Whether those who spin can see what they see at the same time: every variable holds one value, and what some thread wrote last.
fn agree(run: &Run, state: &[&Point]) -> bool {
    let mut values: BTreeMap<VarId, i64> = BTreeMap::new();
    let mut sees = state.iter().flat_map(|point| &point.sees);
    sees.all(|&(x, value)| *values.entry(x).or_insert(value) == value)
        && values.into_iter().all(|(x, value)| can_hold(run, state, x, value))
}

fn can_hold(run: &Run, state: &[&Point], x: VarId, value: i64) -> bool {
    let mut last: BTreeMap<ThreadId, Option<i64>> = BTreeMap::new();
    for event in run.trace.events().filter(|event| event.op.writes() && event.op.variable() == Some(x)) {
        if state[event.thread.index()].event.is_none_or(|point| event.id < point) {
            last.insert(event.thread, event.value);
        }
    }
    // Where nobody has written, it is what it was.
    last.is_empty() || last.values().any(|&written| written.is_none_or(|written| written == value))
}

/// Which reorderings lead there: none if that cannot be, `None` if the engine did not decide it.
fn reaches(run: &Run, engine: &mut Engine<'_, '_>, state: &[&Point], effort: Effort) -> Option<Stuck> {
    debug_assert_eq!(state.len(), run.trace.threads());
    let at = |(thread, point): (usize, &&Point)| match point.event {
        // A thread that is not there yet stands before its first event anyway.
        Some(event) => At::Event(event),
        None => At::End(ThreadId::new(thread), pending(run, ThreadId::new(thread))),
    };
    let all: Vec<At> = state.iter().enumerate().map(at).collect();
    let spins = |thread: &usize| matches!(state[*thread].waits, Waits::Spin(_));
    let spinning: Vec<usize> = (0..state.len()).filter(spins).collect();
    let spins = !spinning.is_empty();
    let asked = if spins { spinning } else { vec![state.len().checked_sub(1)?] };
    let sleeps = |(_, point): &(usize, &&Point)| point.waits == Waits::Notify;
    let asleep: Vec<ThreadId> =
        state.iter().enumerate().filter(sleeps).map(|(thread, _)| ThreadId::new(thread)).collect();
    let mut schedules = Vec::new();
    for thread in asked {
        let outcome = match state[thread].waits {
            Waits::Spin(Some(Seen::Value(value))) => Outcome::Sees(value),
            Waits::Spin(Some(Seen::Busy)) => Outcome::Fails,
            _ => Outcome::Any,
        };
        let mut meanwhile = all.clone();
        let first = meanwhile.swap_remove(thread);
        let question = Divergence { meanwhile, asleep: asleep.clone(), ..Divergence::new(first, outcome) };
        match engine.diverges(&question, effort) {
            Verdict::Feasible(schedule) => schedules.push(schedule),
            Verdict::Infeasible => return Some(Stuck { schedules: Vec::new(), spins }),
            Verdict::Unknown(_) => return None,
        }
    }
    Some(Stuck { schedules, spins })
}

/// What a thread still wants to do where the run ends.
fn pending(run: &Run, thread: ThreadId) -> Op {
    match run.threads.iter().flatten().find(|history| history.thread == thread).map(|history| history.end) {
        Some(End::Waits { op: Some(op), .. }) => op,
        _ => Op::Branch,
    }
}

fn cut(run: &Run, state: &[&Point]) -> Vec<usize> {
    run.threads
        .iter()
        .map(|history| history.as_ref().map_or(0, |history| state[history.thread.index()].steps))
        .collect()
}
