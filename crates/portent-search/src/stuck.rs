//! States of a run's reorderings in which nothing can go on, though not every thread is done: deadlocks of every kind.
//!
//! Whether threads wait for each other follows from where they are: which locks each holds there, which tokens it has sent. So
//! all combinations of places at which threads can wait are gone through, and the engine is asked only about those in which
//! everybody waits. That is exact, and meant for small runs.

use crate::subject::{End, Observes, Run};
use portent_order::engine::{Effort, Engine};
use portent_order::{At, Divergence, Outcome, Schedule, Verdict};
use portent_trace::{EventId, LockId, Mode, Op, ThreadId};
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
        Some(End::Waits { .. } | End::Cut) => Waits::ForEver,
    };
    points.push(Point { event: None, waits, holds, steps });
    points
}

/// Leaves out places at which a thread waits for what no place of any other can keep from it, until there are none: in most programs
/// nobody waits with a lock in hand, and nothing is left to combine.
fn leave_out_hopeless(run: &Run, points: &mut [Vec<Point>]) {
    loop {
        let hopeless = |(thread, at): &(usize, usize)| {
            let others = |other: usize| points[other].iter().filter(move |_| other != *thread);
            match points[*thread][*at].waits {
                Waits::No | Waits::ForEver => false,
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

/// Whether everybody waits, and somebody for something.
fn is_stuck(run: &Run, state: &[&Point]) -> bool {
    let waits = |(thread, point): (usize, &&Point)| match point.waits {
        Waits::No | Waits::ForEver => true,
        Waits::Lock(lock, mode) => {
            state.iter().enumerate().any(|(other, point)| other != thread && point.keeps(lock, mode))
        }
        Waits::Token => {
            let Some(Op::Receive(token)) = point.event.map(|event| run.trace.op(event)) else { return false };
            // Sent if its thread is behind it.
            !run.trace.senders(token).iter().all(|&send| state[run.trace.thread(send).index()].is_behind(send))
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
    engine.diverges(&Divergence { meanwhile, ..Divergence::new(first, Outcome::Any) }, effort)
}

fn cut(run: &Run, state: &[&Point]) -> Vec<usize> {
    run.threads
        .iter()
        .map(|history| history.as_ref().map_or(0, |history| state[history.thread.index()].steps))
        .collect()
}
