//! The two orders of a finding, event by event: what was observed, and what breaks.
//!
//! A witness begins with the observed order up to its window; that part is not expanded. Of very long orders only the end
//! is, and of the rest the events that matter.

use crate::relevance::{Relevance, relevant_events};
use crate::report::{Story, ToldTrace};
use portent_order::{Checker, Model, Numbers, Schedule};
use portent_predict::{Bug, Deadlock};
use portent_trace::{EventId, Op, Trace, VarId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Events of an order that are expanded.
const LONGEST: usize = 20_000;

/// Where an event stands at the end of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It happened.
    Done,
    /// It is about to happen.
    Next,
    /// It waits for what another thread holds.
    Waits,
    /// It never happens.
    Never,
}

/// One order of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// Events that matter before those that are expanded, with their places in the order.
    pub(crate) lead: Vec<(u64, EventId)>,
    /// How many events come before those that are expanded.
    pub(crate) before: u64,
    /// The events, one after the other.
    pub(crate) events: Vec<EventId>,
    /// What is about to happen at the end.
    pub(crate) pending: Vec<(EventId, State)>,
}

impl Sequence {
    /// The last write of a variable before `event` (or before the end), if it is known.
    pub(crate) fn last_write(&self, trace: &Trace, variable: VarId, before: Option<EventId>) -> Option<EventId> {
        let end = before.and_then(|event| self.events.iter().position(|&e| e == event)).unwrap_or(self.events.len());
        let writes = |event: &EventId| {
            let op = trace.op(*event);
            op.writes() && op.variable() == Some(variable)
        };
        self.events[..end].iter().rev().copied().find(writes)
    }
}

/// Both orders of a finding, and what matters in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    pub(crate) observed: Sequence,
    /// Without events if the finding was observed.
    pub(crate) breaking: Sequence,
    pub(crate) relevant: BTreeMap<EventId, Relevance>,
    /// What the goal's reads see in the breaking order, where that is known and no longer what they saw.
    pub(crate) sees: BTreeMap<EventId, Option<EventId>>,
    /// By formulas: what accesses read or, if they write, write in the breaking order.
    pub(crate) computed: Option<FxHashMap<EventId, Option<i64>>>,
    /// Where a replay showed it: what accesses had there, if it is not what they had in the run; by input event.
    pub(crate) replayed: Option<BTreeMap<u32, Option<i64>>>,
}

impl Scene {
    /// Sets the scene of a finding.
    pub(crate) fn of(run: &ToldTrace, story: &Story) -> Scene {
        let trace = &*run.trace;
        // The trace of a failure is the run that failed: its own order is what breaks, whatever schedule led to it.
        let witness = story.finding.witness.as_ref().filter(|_| story.finding.bug.failure().is_none());
        let witness = witness.map(|witness| &witness.schedule);
        let (begin, tail) = witness.map_or((0, Vec::new()), |schedule| expand(run, schedule));
        let mut scene = Scene { relevant: relevant_events(run, story, &tail), ..Scene::default() };
        if witness.is_some() {
            scene.add_what_reads_see(run, story, begin, &tail);
            scene.computed = witness.and_then(|schedule| computed(trace, story, schedule));
            let seen = story.replayed.as_ref().filter(|replayed| replayed.hits > 0);
            scene.replayed = seen.map(|replayed| replayed.values.clone());
        }
        let last = scene.relevant.keys().next_back().map_or(begin, |last| last.index() + 1);
        // The other side of a branch was not observed.
        let last = last.min(story.finding.other_branch.as_ref().map_or(usize::MAX, |other| other.first));
        let first = if witness.is_some() { begin.min(last) } else { 0 };
        let first = first.max(last.saturating_sub(LONGEST));
        scene.observed = Sequence {
            lead: scene.relevant.range(..EventId::new(first)).map(|(&e, _)| (e.index() as u64, e)).collect(),
            before: first as u64,
            events: (first..last).map(EventId::new).collect(),
            pending: Vec::new(),
        };
        if witness.is_some() {
            let dropped = tail.len().saturating_sub(LONGEST);
            let mut lead: Vec<(u64, EventId)> =
                scene.relevant.range(..EventId::new(begin)).map(|(&e, _)| (e.index() as u64, e)).collect();
            let gone = tail[..dropped].iter().enumerate().filter(|(_, event)| scene.relevant.contains_key(event));
            lead.extend(gone.map(|(at, &event)| ((begin + at) as u64, event)));
            scene.breaking = Sequence {
                lead,
                before: (begin + dropped) as u64,
                events: tail[dropped..].to_vec(),
                pending: pending(story),
            };
        }
        scene
    }

    /// The writers that the goal's reads see in the breaking order, and those that a broken property saw.
    fn add_what_reads_see(&mut self, run: &ToldTrace, story: &Story, begin: usize, tail: &[EventId]) {
        let trace = &*run.trace;
        let order = Sequence { events: tail.to_vec(), ..Sequence::default() };
        let watched = story.finding.bug.violated().into_iter().flat_map(|violated| violated.saw.iter().copied());
        let watched = story.goals.iter().map(|(_, event)| *event).chain(watched);
        for event in watched.filter(|event| trace.op(*event).reads()) {
            let Some(variable) = trace.op(event).variable() else { continue };
            if !tail.contains(&event) {
                continue;
            }
            let early = || {
                let writes = |e: &EventId| trace.op(*e).writes() && trace.op(*e).variable() == Some(variable);
                (0..begin).rev().map(EventId::new).find(writes)
            };
            let seen = order.last_write(trace, variable, Some(event)).or_else(early);
            if seen != run.circumstances.of(event).saw {
                self.sees.insert(event, seen);
                if let Some(writer) = seen {
                    self.relevant.entry(writer).or_insert(Relevance::Writer);
                }
            }
        }
    }

    /// By a replay, or by formulas: events that read or write something else in the breaking order than in the run, and what.
    pub(crate) fn changed(&self, trace: &Trace) -> impl Iterator<Item = (EventId, Option<i64>)> {
        let computed = self.computed.iter().filter(|_| self.replayed.is_none()).flatten();
        let seen = self.replayed.iter().flatten().filter_map(|(&input, &value)| {
            let events = trace.lowered(input);
            (events.len() == 1).then(|| (EventId::new(events.start), value))
        });
        let changed = computed.map(|(&event, &value)| (event, value)).chain(seen);
        let mut changed: Vec<_> = changed.filter(|&(event, value)| trace.value(event) != value).collect();
        changed.sort_unstable();
        changed.into_iter()
    }

    /// The value of an event in the breaking order, where it is known.
    pub(crate) fn breaking_value(&self, trace: &Trace, event: EventId) -> Option<i64> {
        let input = trace.input_index(event);
        if let Some(seen) = &self.replayed
            && trace.lowered(input).len() == 1
        {
            return seen.get(&input).copied().unwrap_or_else(|| trace.value(event));
        }
        if let Some(computed) = &self.computed {
            return computed.get(&event).copied().flatten();
        }
        match (self.sees.get(&event), trace.op(event)) {
            // What it would write is computed from what it reads.
            (Some(_), Op::Update(..)) => None,
            (Some(writer), _) => writer.and_then(|writer| trace.value(writer)),
            (None, _) => trace.value(event),
        }
    }
}

/// What accesses read or write in a witness, where formulas tell.
fn computed(trace: &Trace, story: &Story, schedule: &Schedule) -> Option<FxHashMap<EventId, Option<i64>>> {
    trace.symbols().filter(|_| story.finding.model == Some(Model::Values))?;
    let numbers = Checker::new(trace).numbers(schedule).ok()?;
    let value = |n: &Numbers| if trace.op(n.event).writes() { n.written } else { n.read };
    Some(numbers.iter().map(|numbers| (numbers.event, value(numbers))).collect())
}

/// How many events of the observed order a schedule begins with, and its events after them.
fn expand(run: &ToldTrace, schedule: &Schedule) -> (usize, Vec<EventId>) {
    let (begin, runs) = schedule.split();
    let mut position: Vec<usize> = run
        .trace
        .thread_ids()
        .map(|thread| run.lookup.program(thread).partition_point(|event| event.index() < begin))
        .collect();
    let mut events = Vec::with_capacity(runs.iter().map(|run| run.steps as usize).sum());
    for step in runs {
        let program = run.lookup.program(step.thread);
        let at = &mut position[step.thread.index()];
        let end = (*at + step.steps as usize).min(program.len());
        events.extend_from_slice(&program[(*at).min(end)..end]);
        *at = end;
    }
    (begin, events)
}

/// What is about to happen at the end of the breaking order.
fn pending(story: &Story) -> Vec<(EventId, State)> {
    let state = match &story.finding.bug {
        Bug::Race { .. } => State::Next,
        Bug::Deadlock(Deadlock::Cycle { .. } | Deadlock::Stuck { .. }) => State::Waits,
        Bug::Deadlock(Deadlock::LostWakeup { waiting, .. }) => {
            return waiting.kernel.into_iter().map(|wake| (wake, State::Never)).collect();
        }
        // All of their events happen.
        Bug::Atomicity { .. }
        | Bug::LostUpdate { .. }
        | Bug::Nondeterminism(_)
        | Bug::Property { .. }
        | Bug::Failure(_) => return Vec::new(),
    };
    story.goals.iter().map(|&(_, event)| (event, state)).collect()
}
