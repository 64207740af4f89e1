//! Far instances in `reads`, without a window: the observed order of just the events that the goal needs.
//!
//! A violation of atomicity that happened is shown by the observed order up to its last event ([`observed`]). For races
//! and deadlocks ([`project`]), what must have happened before the goal's events (in `reads`: their causal past), kept in observed order, gives every
//! kept read its writer and every token its send. Only a lock that stays held by a thread that stops early can stand in
//! the way, or a goal that wants another order than the observed one. So this is a guess that costs two passes over the
//! trace for all instances together, and the checker decides.

use crate::facts::Facts;
use portent_order::{Goal, Model, Schedule};
use portent_trace::EventId;
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
