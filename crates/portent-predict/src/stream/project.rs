//! Far instances in `reads`, without a window: the observed order of just the events that the goal needs.
//!
//! A violation of atomicity that happened is shown by the observed order up to its last event ([`observed`]). For races
//! and deadlocks ([`project`]), what must have happened before the goal's events (in `reads`: their causal past), kept in observed order, gives every
//! kept read its writer and every token its send. Only a lock that stays held by a thread that stops early can stand in
//! the way, or a goal that wants another order than the observed one. So this is a guess that costs two passes over the
//! trace for all instances together, and the checker decides.

use super::past::Past;
use crate::facts::Facts;
use portent_order::{Goal, Model, Schedule};
use portent_trace::EventId;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// How much of the observed order schedules share.
const SHARED: usize = 1 << 18;

/// The violations among these goals that happened, with the observed order up to their last event, checked.
pub(super) fn observed(facts: &Facts<'_>, model: Model, mut goals: Vec<Goal>) -> Vec<(Goal, Schedule)> {
    let end = |goal: &Goal| match *goal {
        Goal::Atomicity { first, remote, second } if first < remote && remote < second => Some(second.index() + 1),
        _ => None,
    };
    goals.retain(|goal| end(goal).is_some());
    goals.sort_by_key(end);
    let verdicts = facts.checker.check_observed(model, &goals);
    let mut begin = (0, Arc::new(Schedule::default()));
    let mut found = Vec::new();
    for (goal, verdict) in goals.into_iter().zip(verdicts) {
        let (Some(end), Ok(())) = (end(&goal), verdict) else { continue };
        let threads = |range: Range<usize>| range.map(|i| facts.trace.thread(EventId::new(i)));
        while end - begin.0 > SHARED {
            let to = begin.0 + SHARED;
            let mut longer = Schedule::default();
            begin.1.runs().into_iter().for_each(|run| longer.push_run(run.thread, run.steps));
            threads(begin.0..to).for_each(|thread| longer.push(thread));
            begin = (to, Arc::new(longer));
        }
        let mut schedule = Schedule::after(begin.1.clone());
        threads(begin.0..end).for_each(|thread| schedule.push(thread));
        found.push((goal, schedule));
    }
    found
}

/// Schedules for these goals that the checker accepts; `None` where the guess is wrong.
pub(super) fn project(
    facts: &Facts<'_>,
    model: Model,
    goals: &[Goal],
    stop: &dyn Fn() -> bool,
) -> Vec<Option<Schedule>> {
    let trace = facts.trace;
    let mut cuts = vec![vec![0u32; trace.threads()]; goals.len()];
    // Events that come next at the end.
    let mut at: FxHashMap<EventId, Vec<usize>> = FxHashMap::default();
    for (g, goal) in goals.iter().enumerate() {
        let mut note = |event: EventId| at.entry(event).or_default().push(g);
        match goal {
            Goal::Race { first, second } => [first, second].into_iter().for_each(|&e| note(e)),
            Goal::Deadlock { waiting } => waiting.iter().for_each(|&e| note(e)),
            _ => {}
        }
    }
    let Some(end) = at.keys().copied().max() else { return vec![None; goals.len()] };
    // In `values`, reads that see the same write are a good guess, too.
    let past_of = if model == Model::Sync { Model::Sync } else { Model::Reads };
    let mut past = Past::new(trace, past_of);
    for event in (0..=end.index()).map(|i| trace.event(EventId::new(i))) {
        let t = event.thread.index();
        for &g in at.get(&event.id).into_iter().flatten() {
            let cut = past.share(t);
            cuts[g].iter_mut().zip(cut.iter()).for_each(|(a, b)| *a = (*a).max(*b));
            cuts[g][t] = cuts[g][t].max(past.position(t));
        }
        past.arrive(event);
        past.leave(event);
    }
    let schedule = |(goal, cut): (&Goal, Vec<u32>)| {
        if stop() || cut.iter().all(|&count| count == 0) {
            return None;
        }
        let last = |t: usize| {
            cut[t].checked_sub(1).map(|at| facts.steps.program(portent_trace::ThreadId::new(t))[at as usize])
        };
        let lasts: Vec<Option<EventId>> = (0..cut.len()).map(last).collect();
        let end = lasts.iter().flatten().max().map_or(0, |last| last.index() + 1);
        let events = (0..end).map(EventId::new).map(|event| (event, trace.thread(event)));
        let kept = events.filter(|(event, t)| lasts[t.index()].is_some_and(|last| *event <= last));
        let schedule: Schedule = kept.map(|(_, t)| t).collect();
        facts.checker.check(model, goal, &schedule).is_ok().then_some(schedule)
    };
    goals.iter().zip(cuts).map(schedule).collect()
}
