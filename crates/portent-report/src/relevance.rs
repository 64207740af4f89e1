//! Which events matter to a finding: its own, the locks around them, what its reads saw, how the threads came to be, and
//! where the breaking order switches.

use crate::circumstances::Held;
use crate::report::{Story, ToldTrace};
use portent_predict::Role;
use portent_trace::{EventId, LockId, Meaning, Op, ThreadId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// How far locks are looked for, in events of a thread.
const REACH: usize = 4_000;
/// Locks that order two events by accident, at most so many of them.
const HIDING: usize = 2;
/// Switches that are shown, the last ones.
const SWITCHES: usize = 3;

/// Why an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relevance {
    /// It is one of the finding's own.
    Goal(Role),
    /// A read of the finding sees it, in one of the orders.
    Writer,
    /// It takes or gives back a lock that is involved.
    Lock,
    /// It starts a thread that is involved.
    Fork,
    /// Threads that are involved meet there.
    Meeting,
    /// The breaking order switches threads before or after it.
    Switch,
    /// It is a branch that goes the other way, or a read that decides it.
    Branch,
}

/// The events that matter to a failure, in the run that failed: where it failed, what decided, and the last switches of the
/// threads that are involved.
fn events_of_failure(run: &ToldTrace, story: &Story) -> BTreeMap<EventId, Relevance> {
    let trace = &*run.trace;
    let mut found: BTreeMap<EventId, Relevance> = BTreeMap::new();
    // What decides is told as that, also where it is the operation that fails.
    for &(role, event) in story.goals.iter().rev() {
        found.entry(event).or_insert(Relevance::Goal(role));
    }
    for &(_, event) in story.goals.iter().filter(|(_, event)| trace.op(*event).reads()) {
        let saw = run.circumstances.of(event).saw;
        if let Some(writer) = saw.filter(|&writer| trace.thread(writer) != trace.thread(event)) {
            found.entry(writer).or_insert(Relevance::Writer);
        }
    }
    let threads: BTreeSet<ThreadId> = found.keys().map(|&event| trace.thread(event)).collect();
    let Some((&last, _)) = found.last_key_value() else { return found };
    // Entering and leaving functions says nothing that a place does not say.
    let telling = |event: EventId| {
        !matches!(trace.op(event), Op::Begin(_) | Op::End(_) | Op::Branch | Op::Fence(_))
            && run.lookup.is_performed(trace, event)
    };
    let mut switches = 0;
    let mut later: Option<EventId> = None;
    for event in (last.index().saturating_sub(REACH)..=last.index()).rev().map(EventId::new).filter(|&e| telling(e)) {
        let Some(next) = later.replace(event) else { continue };
        let involved = [event, next].map(|side| threads.contains(&trace.thread(side)));
        if trace.thread(event) != trace.thread(next) && involved != [false, false] {
            for (side, involved) in [event, next].into_iter().zip(involved) {
                if involved {
                    found.entry(side).or_insert(Relevance::Switch);
                }
            }
            switches += 1;
        }
        if switches == SWITCHES {
            break;
        }
    }
    found
}

/// The events that matter. `tail` is the breaking order after its beginning, which is as observed.
pub(crate) fn relevant_events(run: &ToldTrace, story: &Story, tail: &[EventId]) -> BTreeMap<EventId, Relevance> {
    if story.finding.bug.failure().is_some() {
        return events_of_failure(run, story);
    }
    let trace = &*run.trace;
    let goals: Vec<EventId> = story.goals.iter().map(|(_, event)| *event).collect();
    let threads: BTreeSet<ThreadId> = goals.iter().map(|&event| trace.thread(event)).collect();
    let mut found: BTreeMap<EventId, Relevance> =
        story.goals.iter().map(|&(role, event)| (event, Relevance::Goal(role))).collect();
    let mut add = |event: EventId, relevance: Relevance| {
        found.entry(event).or_insert(relevance);
    };
    if let Some(violated) = story.finding.bug.violated() {
        violated.saw.iter().for_each(|&event| add(event, Relevance::Writer));
    }
    if let Some(other) = &story.finding.other_branch {
        add(other.branch, Relevance::Branch);
        other.reads.iter().for_each(|decisive| add(decisive.read, Relevance::Branch));
    }
    for &goal in &goals {
        let circumstance = run.circumstances.of(goal);
        if trace.op(goal).reads() {
            circumstance.saw.into_iter().for_each(|writer| add(writer, Relevance::Writer));
        }
        for Held { lock, since, .. } in circumstance.held {
            add(since, Relevance::Lock);
            after(run, goal, |op| matches!(op, Op::Release(l, _) if l == lock))
                .into_iter()
                .for_each(|release| add(release, Relevance::Lock));
        }
    }
    for event in hiding_locks(run, &goals) {
        add(event, Relevance::Lock);
    }
    for &thread in &threads {
        run.lookup.fork_of(trace, thread).into_iter().for_each(|fork| add(fork, Relevance::Fork));
    }
    for event in meetings(run, &goals, &threads).into_iter().chain(goals.iter().flat_map(|&goal| let_go(run, goal))) {
        add(event, Relevance::Meeting);
    }
    let involved = |event: EventId| threads.contains(&trace.thread(event));
    let switch =
        |pair: &&[EventId]| trace.thread(pair[0]) != trace.thread(pair[1]) && (involved(pair[0]) || involved(pair[1]));
    let shown = |event: &&EventId| involved(**event) && run.lookup.is_performed(trace, **event);
    // What comes after the last of the finding's events is not what breaks it.
    let end = match tail.iter().rposition(|event| goals.contains(event)) {
        Some(last) if goals.iter().all(|goal| tail.contains(goal)) => last + 1,
        _ => tail.len(),
    };
    for pair in tail[..end].windows(2).rev().filter(switch).take(SWITCHES) {
        pair.iter().filter(shown).for_each(|&event| add(event, Relevance::Switch));
    }
    found
}

/// The first event of the same thread after this one that does something, within reach.
fn after(run: &ToldTrace, event: EventId, does: impl Fn(Op) -> bool) -> Option<EventId> {
    let program = run.lookup.program(run.trace.thread(event));
    let at = run.lookup.place(&run.trace, event) + 1;
    program.get(at..)?.iter().copied().take(REACH).find(|&e| does(run.trace.op(e)))
}

/// The last event of the same thread before this one that does something, within reach.
fn before(run: &ToldTrace, event: EventId, does: impl Fn(Op) -> bool) -> Option<EventId> {
    let program = run.lookup.program(run.trace.thread(event));
    let at = run.lookup.place(&run.trace, event);
    program.get(..at)?.iter().rev().copied().take(REACH).find(|&e| does(run.trace.op(e)))
}

/// Scopes of locks that, in the observed order, one thread left after its event before another entered them on the way
/// to its own: what happens-before takes for an order.
fn hiding_locks(run: &ToldTrace, goals: &[EventId]) -> Vec<EventId> {
    let trace = &*run.trace;
    let mut events = Vec::new();
    for (&a, &b) in goals.iter().flat_map(|a| goals.iter().map(move |b| (a, b))) {
        if a >= b || trace.thread(a) == trace.thread(b) || trace.op(a).variable().is_none() {
            continue;
        }
        let mut released: FxHashMap<LockId, EventId> = FxHashMap::default();
        let program = run.lookup.program(trace.thread(a));
        let from = run.lookup.place(trace, a) + 1;
        for &event in program[from.min(program.len())..].iter().take(REACH).take_while(|&&event| event < b) {
            if let Op::Release(lock, _) = trace.op(event) {
                released.entry(lock).or_insert(event);
            }
        }
        let program = run.lookup.program(trace.thread(b));
        let to = run.lookup.place(trace, b);
        let mut seen: BTreeSet<LockId> = BTreeSet::new();
        for &event in program[..to].iter().rev().take(REACH).take_while(|&&event| event > a) {
            let Op::Acquire(lock, _) = trace.op(event) else { continue };
            let Some(&release) = released.get(&lock).filter(|&&release| release < event) else { continue };
            if seen.len() < HIDING && seen.insert(lock) {
                events.extend([release, event]);
                events.extend(before(run, release, |op| matches!(op, Op::Acquire(l, _) if l == lock)));
                events.extend(after(run, event, |op| matches!(op, Op::Release(l, _) if l == lock)));
            }
        }
    }
    events
}

/// What a thread last waited for on the way to an event, if it was a post or the like: that, and the wait.
fn let_go(run: &ToldTrace, goal: EventId) -> Vec<EventId> {
    let trace = &*run.trace;
    let waits = |op: Op| match op {
        Op::Receive(k) => matches!(trace.meaning(k), Meaning::Latch(_) | Meaning::Once(_)),
        Op::Wait(_) => true,
        _ => false,
    };
    let Some(wait) = before(run, goal, waits) else { return Vec::new() };
    let is_other = |other: EventId| trace.thread(other) != trace.thread(wait);
    let other = match trace.op(wait) {
        Op::Receive(k) => trace.senders(k).iter().copied().find(|&send| is_other(send)),
        _ => last_post(run, wait),
    };
    other.map_or_else(Vec::new, |send| vec![send, wait])
}

/// The last post of another thread that may have let a wait through, as far back as is looked.
fn last_post(run: &ToldTrace, wait: EventId) -> Option<EventId> {
    let trace = &*run.trace;
    let Op::Wait(semaphore) = trace.op(wait) else { return None };
    let mut earlier = (wait.index().saturating_sub(REACH)..wait.index()).rev().map(EventId::new);
    earlier.find(|&event| trace.op(event) == Op::Post(semaphore) && trace.thread(event) != trace.thread(wait))
}

/// Joins and other tokens between threads that are involved, between the finding's events in the observed order.
fn meetings(run: &ToldTrace, goals: &[EventId], threads: &BTreeSet<ThreadId>) -> Vec<EventId> {
    let trace = &*run.trace;
    let (Some(&first), Some(&last)) = (goals.iter().min(), goals.iter().max()) else { return Vec::new() };
    let mut events = Vec::new();
    let from = first.index().max(last.index().saturating_sub(REACH));
    for event in (from..last.index()).rev().map(EventId::new).filter(|&e| threads.contains(&trace.thread(e))) {
        let from_involved =
            |send: &EventId| threads.contains(&trace.thread(*send)) && trace.thread(*send) != trace.thread(event);
        let sent = match trace.op(event) {
            Op::Receive(k) if trace.meaning(k) != Meaning::Fork(trace.thread(event)) => {
                trace.senders(k).iter().copied().find(from_involved)
            }
            Op::Wait(_) => last_post(run, event).filter(from_involved),
            _ => None,
        };
        if let Some(send) = sent {
            events.extend([send, event]);
        }
        if events.len() >= 4 {
            break;
        }
    }
    events
}
