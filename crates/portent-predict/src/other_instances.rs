//! Other instances of a finding: the same places of the source, executed another time.
//!
//! A finding stands for a group, and has the schedule of its first feasible instance. Where a replay of that does not show it,
//! another one may: the last time round the loop, say. What is looked at is, for each thread of the goal, the first, the last and
//! the middle time that it comes to the same places; each combination is decided like the first, and checked.
//!
//! What this does not do: look at every instance, or at traces that are too long to be asked about as a whole.

use crate::answers::findings;
use crate::asking::Group;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::kinds;
use crate::request::Options;
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Verdict};
use portent_trace::{EventId, Op, ThreadId, Trace};
use rustc_hash::FxHashMap;
use std::time::Instant;

/// At most so many other instances of a predicted finding, each with a schedule that reaches it, decided until `deadline`.
pub fn other_instances(trace: &Trace, finding: &Finding, most: usize, deadline: Instant) -> Vec<Finding> {
    let (Some(goal), Some(model)) = (finding.goal(), finding.model) else { return Vec::new() };
    if finding.other_branch.is_some() || trace.len() > Options::WINDOW || most == 0 {
        return Vec::new();
    }
    let facts = Facts::new(trace);
    let (key, flags) = (kinds::key(&facts, &goal), finding.flags);
    let view = View::whole(trace, model);
    let effort = Effort { deadline: Some(deadline), ..Effort::default() };
    let mut found: Vec<Finding> = Vec::new();
    for other in candidates(trace, &goal) {
        if found.len() >= most || Instant::now() >= deadline {
            break;
        }
        if kinds::key(&facts, &other) != key {
            continue;
        }
        let Verdict::Feasible(schedule) = Engine::new(&view).decide(&other, effort) else { continue };
        if facts.checker.check(model, &other, &schedule).is_err() {
            continue;
        }
        let group = Group::new(other, flags, Some(schedule));
        let made = findings(&facts, model, FxHashMap::from_iter([(key.clone(), group)]), &mut Vec::new(), &|| {
            Instant::now() >= deadline
        });
        found.extend(made.into_iter().map(|made| Finding { id: finding.id.clone(), ..made }));
    }
    found
}

/// The goal with the events of each of its threads taken from another time that the thread comes to the same places.
fn candidates(trace: &Trace, goal: &Goal) -> Vec<Goal> {
    let events = events(goal);
    let mut threads: Vec<ThreadId> = Vec::new();
    for &event in &events {
        if !threads.contains(&trace.thread(event)) {
            threads.push(trace.thread(event));
        }
    }
    // For each thread, the events that stand for its own ones: as they are, the last time, the middle time, the first time.
    let times: Vec<Vec<Vec<EventId>>> = threads
        .iter()
        .map(|&thread| {
            let own: Vec<EventId> = events.iter().copied().filter(|&event| trace.thread(event) == thread).collect();
            let alike: Vec<Vec<EventId>> = own.iter().map(|&event| alike(trace, event)).collect();
            let rounds = alike.iter().map(Vec::len).min().unwrap_or(0);
            let mut times = vec![own];
            for round in [rounds.saturating_sub(1), rounds / 2, 0] {
                let time: Vec<EventId> = alike.iter().filter_map(|events| events.get(round).copied()).collect();
                if time.len() == alike.len() && !times.contains(&time) {
                    times.push(time);
                }
            }
            times
        })
        .collect();
    let mut found: Vec<Goal> = Vec::new();
    let total: usize = times.iter().map(Vec::len).product();
    for mut number in 1..total {
        let mut chosen: FxHashMap<EventId, EventId> = FxHashMap::default();
        for of_thread in &times {
            let time = &of_thread[number % of_thread.len()];
            number /= of_thread.len();
            chosen.extend(of_thread[0].iter().copied().zip(time.iter().copied()));
        }
        let other = with(goal, |event| chosen.get(&event).copied().unwrap_or(event));
        if other != *goal && !found.contains(&other) {
            found.push(other);
        }
    }
    found
}

/// The events of a goal that can be others.
fn events(goal: &Goal) -> Vec<EventId> {
    match goal {
        Goal::Race { first, second } => vec![*first, *second],
        Goal::LostUpdate { first, read, remote, second } => vec![*first, *read, *remote, *second],
        Goal::Atomicity { first, remote, second } => vec![*first, *remote, *second],
        Goal::Deadlock { waiting } => waiting.clone(),
        Goal::Nondeterminism { read, .. } => vec![*read],
        Goal::FinalValue { .. } | Goal::LostWakeup { .. } | Goal::Stuck { .. } => Vec::new(),
    }
}

/// The goal about other events.
fn with(goal: &Goal, other: impl Fn(EventId) -> EventId) -> Goal {
    match goal {
        Goal::Race { first, second } => {
            let (a, b) = (other(*first), other(*second));
            Goal::Race { first: a.min(b), second: a.max(b) }
        }
        Goal::LostUpdate { first, read, remote, second } => Goal::LostUpdate {
            first: other(*first),
            read: other(*read),
            remote: other(*remote),
            second: other(*second),
        },
        Goal::Atomicity { first, remote, second } => {
            Goal::Atomicity { first: other(*first), remote: other(*remote), second: other(*second) }
        }
        Goal::Deadlock { waiting } => {
            let mut waiting: Vec<EventId> = waiting.iter().map(|&event| other(event)).collect();
            // A cycle starts at its lowest event.
            let lowest = (0..waiting.len()).min_by_key(|&at| waiting[at]).unwrap_or(0);
            waiting.rotate_left(lowest);
            Goal::Deadlock { waiting }
        }
        Goal::Nondeterminism { read, challenger } => {
            Goal::Nondeterminism { read: other(*read), challenger: *challenger }
        }
        Goal::FinalValue { .. } | Goal::LostWakeup { .. } | Goal::Stuck { .. } => goal.clone(),
    }
}

/// All events of a thread that do the same at the same place, in order.
fn alike(trace: &Trace, event: EventId) -> Vec<EventId> {
    let told = trace.event(event);
    let same = |op: Op| std::mem::discriminant(&op) == std::mem::discriminant(&told.op);
    let alike = trace.events().filter(|other| {
        other.thread == told.thread && other.loc == told.loc && other.tries == told.tries && same(other.op)
    });
    alike.map(|other| other.id).collect()
}
