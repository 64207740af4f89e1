//! Instances at any distance, in `sync`: only what is left after a lock-free cut is searched (SEMANTICS §4).
//!
//! For a cut that is closed under must-order, leaves no lock held and stops before the goal's events, every state that
//! reaches the goal can be reached from the cut: what the cut has beyond that state belongs to other threads and only
//! adds finished sections. So the question is about the few events between the last such cut below what the goal needs
//! and the first positions above it at which the other threads hold no lock. The answer is exact.
//!
//! Not used for traces with failed tries (their holders must be beside them), nor for lost wake-ups.

use super::past::{Cut, Past};
use crate::facts::Facts;
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Schedule, Verdict};
use portent_trace::{EventId, Op, ThreadId};
use std::sync::Arc;

/// How many events may be left after the cut.
const LEFT: u32 = 20_000;
/// How far to look for a moment without locks.
const REACH: u32 = 20_000;

/// The answer about an instance.
pub(super) enum Decided {
    Feasible(Schedule),
    Infeasible,
    /// Too much is left after the cut, or the engine's budget ran out.
    Unknown,
}

/// Positions of threads as they change along the trace.
struct Pasts {
    /// For each thread, positions from which on a cut holds.
    threads: Vec<Vec<(u32, Cut)>>,
}

impl Pasts {
    fn of(facts: &Facts<'_>, mut past: Past<'_>) -> Self {
        let trace = facts.trace;
        let mut threads: Vec<Vec<(u32, Cut)>> = vec![Vec::new(); trace.threads()];
        for event in trace.events() {
            let t = event.thread.index();
            if past.arrive(event) {
                let now = (past.position(t), past.share(t));
                threads[t].push(now);
            }
            past.leave(event);
        }
        Pasts { threads }
    }
    /// What must have happened before the first `count` events of a thread, these included.
    fn join(&self, cut: &mut [u32], thread: usize, count: u32) {
        let list = &self.threads[thread];
        let known = list.partition_point(|(from, _)| *from < count);
        if let Some((_, past)) = known.checked_sub(1).map(|at| &list[at]) {
            cut.iter_mut()
                .zip(past.iter())
                .enumerate()
                .filter(|(t, _)| *t != thread)
                .for_each(|(_, (a, b))| *a = (*a).max(*b));
        }
        cut[thread] = cut[thread].max(count);
    }
}

pub(super) struct Cuts<'a, 't> {
    facts: &'a Facts<'t>,
    must: Pasts,
    /// The same with sleeps before the notifies that ended them.
    closed: Pasts,
}

impl<'a, 't> Cuts<'a, 't> {
    /// `None` if the trace has failed tries.
    pub(super) fn new(facts: &'a Facts<'t>) -> Option<Self> {
        let trace = facts.trace;
        if trace.events().any(|event| matches!(event.op, Op::Busy(..))) {
            return None;
        }
        let must = Pasts::of(facts, Past::new(trace, portent_order::Model::Sync));
        let closed = Pasts::of(facts, Past::for_cuts(trace));
        Some(Cuts { facts, must, closed })
    }

    fn program(&self, thread: usize) -> &[EventId] {
        self.facts.steps.program(ThreadId::new(thread))
    }
    /// The thread of an event and its position there.
    fn place(&self, event: EventId) -> (usize, u32) {
        let thread = self.facts.trace.thread(event).index();
        (thread, self.program(thread).partition_point(|&e| e < event) as u32)
    }
    /// Whether a thread holds no lock after that many events.
    fn is_free(&self, thread: usize, count: u32) -> bool {
        let program = self.program(thread);
        match program.get(count as usize) {
            Some(&next) => self.facts.held(next).is_empty(),
            None => program.last().is_none_or(|&last| match self.facts.trace.op(last) {
                Op::Acquire(..) => false,
                Op::Release(..) => self.facts.held(last).len() == 1,
                _ => self.facts.held(last).is_empty(),
            }),
        }
    }
    fn last_free(&self, thread: usize, count: u32) -> Option<u32> {
        (count.saturating_sub(REACH)..=count).rev().find(|&at| self.is_free(thread, at))
    }

    /// The last closed cut without locks below `high`.
    fn lower(&self, high: &[u32]) -> Option<Vec<u32>> {
        let mut cut = high.to_vec();
        for (t, at) in cut.iter_mut().enumerate() {
            *at = self.last_free(t, *at)?;
        }
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for t in 0..cut.len() {
                while cut[t] > 0 {
                    let mut needs = vec![0; cut.len()];
                    self.closed.join(&mut needs, t, cut[t]);
                    if needs.iter().zip(&cut).all(|(need, has)| need <= has) {
                        break;
                    }
                    changed = true;
                    // What it needs came with the last arrival: nothing above that will do.
                    let list = &self.closed.threads[t];
                    let arrival = list.partition_point(|(from, _)| *from < cut[t]).checked_sub(1).map(|at| list[at].0);
                    cut[t] = self.last_free(t, arrival.unwrap_or(cut[t] - 1).min(cut[t] - 1))?;
                }
            }
        }
        Some(cut)
    }

    /// Closed positions above `needs` at which other threads than the goal's hold no lock.
    fn upper(&self, mut needs: Vec<u32>, stopped: &[usize]) -> Vec<u32> {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for t in 0..needs.len() {
                let end = self.program(t).len() as u32;
                let mut to = needs[t];
                if !stopped.contains(&t) {
                    let limit = end.min(to.saturating_add(REACH));
                    to = (to..=limit).find(|&at| self.is_free(t, at)).unwrap_or(limit);
                }
                let before = needs.clone();
                self.must.join(&mut needs, t, to);
                changed |= before != needs;
            }
        }
        needs
    }

    /// Whether an instance can happen.
    pub(super) fn decide(&self, goal: &Goal, effort: Effort) -> Decided {
        let threads = self.facts.trace.threads();
        // What must have happened, what must not, and what the engine must see.
        let (mut needs, mut low) = (vec![0; threads], vec![0; threads]);
        let mut seen: Vec<(usize, u32)> = Vec::new();
        let stops: Vec<EventId> = match goal {
            Goal::Race { first, second } => vec![*first, *second],
            Goal::Deadlock { waiting } => waiting.clone(),
            Goal::Atomicity { .. } => Vec::new(),
            _ => return Decided::Unknown,
        };
        for &event in &stops {
            let (t, at) = self.place(event);
            self.must.join(&mut needs, t, at);
            seen.push((t, at));
        }
        low.copy_from_slice(&needs);
        if let Goal::Atomicity { first, remote, second } = *goal {
            let ((t, e1), (u, f), (_, e2)) = (self.place(first), self.place(remote), self.place(second));
            self.must.join(&mut needs, u, f + 1);
            if needs[t] > e2 {
                return Decided::Infeasible;
            }
            self.must.join(&mut needs, t, e2);
            let mut before = vec![0; threads];
            self.must.join(&mut before, t, e1 + 1);
            if before[u] > f {
                return Decided::Infeasible;
            }
            self.must.join(&mut low, t, e1);
            self.must.join(&mut low, u, f);
            (low[t], low[u]) = (e1, f);
            seen.extend([(t, e2), (u, f)]);
        } else if seen.iter().any(|&(t, at)| needs[t] > at) {
            return Decided::Infeasible;
        }
        let stopped: Vec<usize> = match goal {
            Goal::Atomicity { first, .. } => vec![self.place(*first).0],
            _ => seen.iter().map(|(t, _)| *t).collect(),
        };
        let Some(cut) = self.lower(&low) else { return Decided::Unknown };
        let mut to = self.upper(needs, &stopped);
        seen.iter().for_each(|&(t, at)| to[t] = to[t].max(at + 1));
        let left: u32 = cut.iter().zip(&to).map(|(from, to)| to.saturating_sub(*from)).fold(0, u32::saturating_add);
        if left > LEFT {
            return Decided::Unknown;
        }
        let ranges =
            (0..threads).flat_map(|t| self.program(t)[cut[t] as usize..to[t].max(cut[t]) as usize].iter().copied());
        let mut events: Vec<EventId> = ranges.collect();
        events.sort_unstable();
        let view = View::after_cut(self.facts.trace, events);
        match Engine::new(&view).decide(goal, effort) {
            Verdict::Feasible(rest) => Decided::Feasible(self.whole(&cut, &rest)),
            Verdict::Infeasible => Decided::Infeasible,
            Verdict::Unknown(_) => Decided::Unknown,
        }
    }

    /// The observed order up to the cut, and then the rest.
    fn whole(&self, cut: &[u32], rest: &Schedule) -> Schedule {
        let ends: Vec<Option<EventId>> = cut
            .iter()
            .enumerate()
            .map(|(t, &count)| count.checked_sub(1).map(|last| self.program(t)[last as usize]))
            .collect();
        let end = ends.iter().flatten().max().map_or(0, |last| last.index() + 1);
        let trace = self.facts.trace;
        let threads = (0..end).map(EventId::new).map(|event| (event, trace.thread(event)));
        let begin: Schedule =
            threads.filter(|(event, t)| ends[t.index()].is_some_and(|last| *event <= last)).map(|(_, t)| t).collect();
        let mut whole = Schedule::after(Arc::new(begin));
        rest.steps().for_each(|thread| whole.push(thread));
        whole
    }
}
