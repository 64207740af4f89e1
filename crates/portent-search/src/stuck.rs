//! States of a run's reorderings in which nothing can go on, though not every thread is done: deadlocks of every kind.
//!
//! Whether threads wait for each other follows from where they are: which locks each holds there, which tokens it has sent, what semaphores count; but for
//! those that sleep on a condition, of whom the engine is asked whether a notify can have woken them. So
//! all combinations of places at which threads can wait are gone through, and the engine is asked only about those in which
//! everybody waits. That is exact, and meant for small runs.

use crate::subject::{End, Observes, Run};
use portent_order::engine::{Effort, Engine};
use portent_order::{At, Divergence, Outcome, Schedule, Verdict};
use portent_trace::{Event, EventId, LockId, Mode, Op, SemId, ThreadId};
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
    /// How many operations it has done.
    steps: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Lock(LockId, Mode),
    /// The event is a receive.
    Token,
    Semaphore(SemId),
    /// To be woken: whether it is follows from the order, not from where threads are.
    Notify,
    /// For something that no reordering gives.
    ForEver,
    /// For nothing: it is done, or has failed.
    No,
}

/// The cuts, as numbers of operations by thread, of all reorderings of a run that are stuck, though some thread still waits, and how
/// to get there. `None` if there are more than `most` combinations to look at, or the engine did not decide one.
pub fn stuck_cuts(
    run: &Run,
    engine: &mut Engine<'_, '_>,
    most: usize,
    effort: Effort,
) -> Option<BTreeMap<Vec<usize>, Schedule>> {
    let mut points: Vec<Vec<Point>> =
        (0..run.trace.threads()).map(|thread| points(run, ThreadId::new(thread))).collect();
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
                Verdict::Feasible(schedule) => drop(stuck.insert(cut(run, &state), schedule)),
                Verdict::Infeasible => {}
                Verdict::Unknown(_) => return None,
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
fn points(run: &Run, thread: ThreadId) -> Vec<Point> {
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
            Op::Wake(_) if !tries.contains(&event.id) && run.trace.pairing_of_wake(event.id).is_some() => {
                Some(Waits::Notify)
            }
            _ => None,
        };
        points.extend(waits.map(|waits| Point { event: Some(event.id), waits, holds: holds.clone(), steps }));
        match event.op {
            Op::Acquire(lock, mode) => holds.push((lock, mode)),
            Op::Release(lock, mode) => holds.retain(|held| *held != (lock, mode)),
            _ => {}
        }
        steps += usize::from(done.contains(&event.id));
    }
    let waits = match history.map(|history| history.end) {
        None | Some(End::Done | End::Failed(_)) => Waits::No,
        Some(End::Waits { op: Some(Op::Acquire(lock, mode)), .. }) => Waits::Lock(lock, mode),
        Some(End::Waits { op: Some(Op::Wait(semaphore)), .. }) => Waits::Semaphore(semaphore),
        Some(End::Waits { op: Some(Op::Wake(_)), .. }) => Waits::Notify,
        Some(End::Waits { .. } | End::Cut) => Waits::ForEver,
    };
    points.push(Point { event: None, waits, holds, steps });
    points
}

/// Whether everybody waits, and somebody for something.
fn is_stuck(run: &Run, state: &[&Point]) -> bool {
    let waits = |(thread, point): (usize, &&Point)| match point.waits {
        Waits::No | Waits::ForEver | Waits::Notify => true,
        Waits::Semaphore(semaphore) => count(run, state, semaphore) == 0,
        Waits::Lock(lock, mode) => state.iter().enumerate().any(|(other, point)| {
            other != thread && point.holds.iter().any(|&(held, how)| held == lock && how.conflicts_with(mode))
        }),
        Waits::Token => {
            let Some(Op::Receive(token)) = point.event.map(|event| run.trace.op(event)) else { return false };
            // Sent if its thread is behind it.
            !run.trace
                .senders(token)
                .iter()
                .all(|&send| state[run.trace.thread(send).index()].event.is_none_or(|event| send < event))
        }
    };
    state.iter().any(|point| point.waits != Waits::No) && state.iter().enumerate().all(waits)
}

/// Whether a reordering leads there.
fn reaches(run: &Run, engine: &mut Engine<'_, '_>, state: &[&Point], effort: Effort) -> Verdict {
    let at = |(thread, point): (usize, &&Point)| match point.event {
        // A thread that is not there yet stands before its first event anyway.
        Some(event) => At::Event(event),
        None => At::End(ThreadId::new(thread), Op::Branch),
    };
    let mut meanwhile: Vec<At> = state.iter().enumerate().map(at).collect();
    let Some(first) = meanwhile.pop() else { return Verdict::Infeasible };
    debug_assert_eq!(state.len(), run.trace.threads());
    let asleep = state.iter().enumerate().filter(|(_, point)| point.waits == Waits::Notify);
    let asleep = asleep.map(|(thread, _)| ThreadId::new(thread)).collect();
    engine.diverges(&Divergence { meanwhile, asleep, ..Divergence::new(first, Outcome::Any) }, effort)
}

/// What a semaphore counts with the threads at these places.
fn count(run: &Run, state: &[&Point], semaphore: SemId) -> i64 {
    let is_done = |event: &Event| state[event.thread.index()].event.is_none_or(|at| event.id < at);
    let moves = run.trace.events().filter(is_done).map(|event| match event.op {
        Op::Post(s) if s == semaphore => 1,
        Op::Wait(s) if s == semaphore => -1,
        _ => 0,
    });
    i64::try_from(run.trace.initial_count(semaphore)).unwrap_or(i64::MAX / 2) + moves.sum::<i64>()
}

fn cut(run: &Run, state: &[&Point]) -> Vec<usize> {
    run.threads
        .iter()
        .map(|history| history.as_ref().map_or(0, |history| state[history.thread.index()].steps))
        .collect()
}
