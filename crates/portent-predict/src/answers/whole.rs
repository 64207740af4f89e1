//! Wide accesses in witnesses, kept in one piece where that reaches the goal as well.
//!
//! Engines know an access that others overlap as one event for each part (docs/src/internals/semantics.md §1), and may let other threads run
//! between two of them, or stop there. No program can be stopped there, and steps count whole accesses. So each access that
//! a witness tears is put together: its parts where the last one is, or where the first one is; one of which only some parts
//! were executed is left out, or executed to its end. What is proposed so must pass the checker, or the witness stays.
//!
//! Missed: goals that need a torn access, and witnesses with more than [`TRIES`] proposals to make.

use crate::facts::Facts;
use portent_order::{Goal, Model, Schedule};
use portent_trace::EventId;
use std::collections::{BTreeMap, BTreeSet};

/// Proposals for one witness: each costs a run of the checker.
const TRIES: usize = 24;
/// Longer witnesses stay as they are.
const LONGEST: usize = 100_000;

/// The same witness, or one for the same goal that tears fewer accesses.
pub(super) fn kept_whole(
    facts: &Facts<'_>,
    model: Model,
    goal: &Goal,
    witness: Schedule,
    stop: &dyn Fn() -> bool,
) -> Schedule {
    if !facts.steps.has_wide() || witness.len() > LONGEST as u64 || stop() {
        return witness;
    }
    let goals = goal_inputs(facts, goal);
    let mut order = events(facts, &witness);
    let mut best = witness;
    let (mut tries, mut given_up) = (0, BTreeSet::new());
    while tries < TRIES && !stop() {
        let Some((input, at)) = torn(facts, &order, &goals).into_iter().find(|(input, _)| !given_up.contains(input))
        else {
            break;
        };
        let mut mended = false;
        for proposal in proposals(facts, &order, input, &at, goals.contains(&input)) {
            tries += 1;
            let schedule: Schedule = proposal.iter().map(|&event| facts.trace.thread(event)).collect();
            if facts.checker.check(model, goal, &schedule).is_ok() {
                (order, best, mended) = (proposal, schedule, true);
                break;
            }
        }
        if !mended {
            given_up.insert(input);
        }
    }
    best
}

/// The input events of a goal's own events.
fn goal_inputs(facts: &Facts<'_>, goal: &Goal) -> BTreeSet<u32> {
    let events: Vec<EventId> = match goal {
        Goal::Race { first, second } => vec![*first, *second],
        Goal::Nondeterminism { read, .. } => vec![*read],
        Goal::Atomicity { first, remote, second } => vec![*first, *remote, *second],
        Goal::LostUpdate { first, read, remote, second } => vec![*first, *read, *remote, *second],
        Goal::FinalValue { .. } | Goal::Deadlock { .. } | Goal::LostWakeup { .. } | Goal::Stuck { .. } => Vec::new(),
    };
    events.into_iter().map(|event| facts.trace.input_index(event)).collect()
}

fn events(facts: &Facts<'_>, witness: &Schedule) -> Vec<EventId> {
    let mut position = vec![0; facts.trace.threads()];
    let mut order = Vec::new();
    for thread in witness.steps(facts.trace) {
        order.extend(facts.steps.program(thread).get(position[thread.index()]));
        position[thread.index()] += 1;
    }
    order
}

/// The parts of an access, if it has several.
fn parts(facts: &Facts<'_>, event: EventId) -> Option<Vec<EventId>> {
    facts.trace.op(event).variable()?;
    let all = facts.trace.lowered(facts.trace.input_index(event)).map(EventId::new);
    let accesses: Vec<EventId> = all.filter(|&part| facts.trace.op(part).variable().is_some()).collect();
    (accesses.len() > 1).then_some(accesses)
}

/// Accesses whose parts are apart, or, where they are not the goal's, not all there; and where their parts are.
fn torn(facts: &Facts<'_>, order: &[EventId], goals: &BTreeSet<u32>) -> BTreeMap<u32, Vec<usize>> {
    let mut wide: BTreeMap<u32, (usize, Vec<usize>)> = BTreeMap::new();
    for (at, &event) in order.iter().enumerate() {
        if let Some(parts) = parts(facts, event) {
            let entry = wide.entry(facts.trace.input_index(event)).or_insert((parts.len(), Vec::new()));
            entry.1.push(at);
        }
    }
    let apart = |at: &[usize]| at.windows(2).any(|pair| pair[1] != pair[0] + 1);
    wide.retain(|input, (parts, at)| apart(at) || (at.len() < *parts && !goals.contains(input)));
    wide.into_iter().map(|(input, (_, at))| (input, at)).collect()
}

/// Orders in which an access is in one piece, the least change first.
fn proposals(facts: &Facts<'_>, order: &[EventId], input: u32, at: &[usize], is_goal: bool) -> Vec<Vec<EventId>> {
    let Some(whole) = parts(facts, order[at[0]]) else { return Vec::new() };
    let executed: Vec<EventId> = at.iter().map(|&position| order[position]).collect();
    // All parts in the place of one of them, or nowhere.
    let put = |pieces: &[EventId], place: Option<usize>| {
        let mut proposal = Vec::with_capacity(order.len() + pieces.len());
        for (position, &event) in order.iter().enumerate() {
            if Some(position) == place {
                proposal.extend_from_slice(pieces);
            }
            if !at.contains(&position) {
                proposal.push(event);
            }
        }
        proposal
    };
    debug_assert!(executed.iter().all(|&event| facts.trace.input_index(event) == input));
    let (first, last) = (at.first().copied(), at.last().copied());
    if is_goal || executed.len() == whole.len() {
        vec![put(&executed, last), put(&executed, first)]
    } else {
        vec![put(&[], None), put(&whole, last), put(&whole, first)]
    }
}
