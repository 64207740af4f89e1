//! The independent checker: replays a schedule against the rules of docs/src/internals/semantics.md §2 and §3, one step at a time.
//!
//! No finding leaves Portent without passing it, so it is short, linear, and shares no code with the engines, not even
//! reads-from or lock ownership: it works both out for itself from the trace. What reads may see is [`ReadRule`]'s to define,
//! and implemented here once more.

mod asleep;
mod divergence;
mod goals;
mod replay;
mod values;

use crate::goal::{Goal, Model, Schedule, Writer};
use crate::read_rule::{ReadRule, Recorded};
use portent_trace::{EventId, Op, Trace, VarId};
use replay::Replay;

/// Why a schedule is no witness: the step (from 0; the length of the schedule for its end) and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Where in the schedule.
    pub step: u64,
    /// What is wrong there.
    pub why: String,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "step {}: {}", self.step, self.why)
    }
}

impl std::error::Error for Rejected {}

/// Checks one schedule; see [`Checker`] for many schedules of one trace.
pub fn check(trace: &Trace, model: Model, goal: &Goal, witness: &Schedule) -> Result<(), Rejected> {
    Checker::new(trace).check(model, goal, witness)
}

/// What an access reads and writes in a reordering, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The access.
    pub event: EventId,
    /// What it reads.
    pub read: Option<i64>,
    /// What it writes.
    pub written: Option<i64>,
}

/// An event of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The event.
    pub event: EventId,
    /// If it reads, and sees another write than in the trace: which. It is the last of its thread.
    pub changed: Option<Writer>,
}

/// What the checker knows of a trace before it sees a schedule.
pub struct Checker<'t> {
    trace: &'t Trace,
    /// The events of each thread, in program order.
    program: Vec<Vec<EventId>>,
    /// The write before each access of its variable: what it saw, if it reads.
    saw: Vec<Writer>,
    /// The last write of each variable.
    last: Vec<Writer>,
    /// What variables held before their first write, as reads of it recorded; `None` if they differ or recorded nothing.
    before: Vec<Option<i64>>,
    recorded: Recorded,
}

impl<'t> Checker<'t> {
    /// Prepares to check schedules of a trace.
    pub fn new(trace: &'t Trace) -> Self {
        let mut program = vec![Vec::new(); trace.threads()];
        let mut saw = Vec::with_capacity(trace.len());
        let mut last = vec![Writer::Init; trace.variables()];
        let mut before = vec![(None, false); trace.variables()];
        let formulas = trace.symbols().is_some();
        let mut recorded = if formulas { Recorded::Formulas } else { Recorded::Values };
        for event in trace.events() {
            if event.op == Op::Branch && !formulas {
                recorded = Recorded::Branches;
            }
            if let (Op::Read(x, _), Some(value)) = (event.op, event.value)
                && last[x.index()] == Writer::Init
            {
                let (known, differs) = &mut before[x.index()];
                *differs |= known.replace(value).is_some_and(|other| other != value);
            }
            program[event.thread.index()].push(event.id);
            saw.push(event.op.variable().map_or(Writer::Init, |x| last[x.index()]));
            if let (true, Some(x)) = (event.op.writes(), event.op.variable()) {
                last[x.index()] = Writer::Event(event.id);
            }
        }
        let before = before.into_iter().map(|(value, differs)| value.filter(|_| !differs)).collect();
        Checker { trace, program, saw, last, before, recorded }
    }

    /// Whether `witness` is a reordering of the trace in `model` that reaches `goal`.
    pub fn check(&self, model: Model, goal: &Goal, witness: &Schedule) -> Result<(), Rejected> {
        self.is_a_goal(goal).map_err(|why| Rejected { step: 0, why: format!("not a goal: {why}") })?;
        let mut replay = Replay::new(self, self.rule(model));
        let mut step = 0;
        for thread in witness.steps() {
            replay.execute(thread, Some(goal), step).map_err(|why| Rejected { step, why })?;
            step += 1;
        }
        replay.reached(goal).map_err(|why| Rejected { step, why })
    }

    /// Whether the observed order, up to their last event, reaches each of these goals: one replay for all. Only violations
    /// of atomicity can be reached so and still be news; everything else is refused.
    pub fn check_observed(&self, model: Model, goals: &[Goal]) -> Vec<Result<(), Rejected>> {
        let mut replay = Replay::new(self, self.rule(model));
        let ends = goals.iter().filter_map(|goal| match goal {
            Goal::Atomicity { second, .. } => Some(second.index() + 1),
            _ => None,
        });
        let end = ends.max().unwrap_or(0).min(self.trace.len());
        let mut step = 0;
        let mut failed = None;
        for event in (0..end).map(EventId::new) {
            let next = replay.next(self.trace.thread(event)) == Some(event);
            let done =
                ensure(next, "not the next event").and_then(|()| replay.execute(self.trace.thread(event), None, step));
            failed = done.err().map(|why| Rejected { step, why });
            step += 1;
            if failed.is_some() {
                break;
            }
        }
        let reached = |goal: &Goal| {
            if let Some(failed) = &failed {
                return Err(failed.clone());
            }
            let refuse = |why: String| Rejected { step, why };
            self.is_a_goal(goal).map_err(|why| refuse(format!("not a goal: {why}")))?;
            let Goal::Atomicity { first, remote, second } = *goal else { return Err(refuse("not asked here".into())) };
            // Each event was executed at the step of its number.
            ensure(first < remote && remote < second, "the remote access is not between the two").map_err(refuse)
        };
        goals.iter().map(reached).collect()
    }

    /// The events that a schedule executes, if it is a reordering of the trace in `model` in which no read is free.
    pub fn replay(&self, model: Model, schedule: &Schedule) -> Result<Vec<EventId>, Rejected> {
        let mut replay = Replay::new(self, self.rule(model));
        let mut events = Vec::new();
        for thread in schedule.steps() {
            let step = events.len() as u64;
            events.extend((thread.index() < self.program.len()).then(|| replay.next(thread)).flatten());
            replay.execute(thread, None, step).map_err(|why| Rejected { step, why })?;
        }
        Ok(events)
    }

    /// The events that a schedule executes, if it is a reordering of the trace in `model` for a property: the last
    /// executed read of each thread is free, if the rule frees last reads. What an update then writes no kept read may see.
    pub fn replay_for_property(&self, model: Model, schedule: &Schedule) -> Result<Vec<Executed>, Rejected> {
        let rule = self.rule(model);
        let mut replay = Replay { last_reads_free: rule.frees_last_reads(), ..Replay::new(self, rule) };
        let mut executed = Vec::new();
        for (step, thread) in (0..).zip(schedule.steps()) {
            let event = (thread.index() < self.program.len()).then(|| replay.next(thread)).flatten();
            let sees = event.and_then(|event| self.trace.op(event).variable()).map(|x| replay.memory[x.index()]);
            replay.execute(thread, None, step).map_err(|why| Rejected { step, why })?;
            let changed = sees.filter(|_| replay.stopped[thread.index()]);
            executed.extend(event.map(|event| Executed { event, changed }));
        }
        Ok(executed)
    }

    /// What the accesses of a reordering in `values` read and write, in its order.
    pub fn numbers(&self, schedule: &Schedule) -> Result<Vec<Numbers>, Rejected> {
        let mut replay = Replay::new(self, self.rule(Model::Values));
        let mut all = Vec::new();
        for (step, thread) in (0..).zip(schedule.steps()) {
            let next = (thread.index() < self.program.len()).then(|| replay.next(thread)).flatten();
            let access = next.and_then(|event| Some((event, self.trace.op(event), self.trace.op(event).variable()?)));
            let known =
                |replay: &Replay<'_, '_>, x: VarId| replay.content(x).filter(|_| !replay.tainted_variables[x.index()]);
            let read = access.filter(|(_, op, _)| op.reads()).and_then(|(.., x)| known(&replay, x));
            replay.execute(thread, None, step).map_err(|why| Rejected { step, why })?;
            if let Some((event, op, x)) = access {
                let written = if op.writes() { known(&replay, x) } else { None };
                all.push(Numbers { event, read, written });
            }
        }
        Ok(all)
    }

    fn rule(&self, model: Model) -> ReadRule {
        model.read_rule(self.recorded)
    }
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
