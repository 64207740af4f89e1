//! The independent checker: replays a schedule against the rules of docs/src/internals/semantics.md §2 and §3, one step at a time.
//!
//! No finding leaves Portent without passing it, so it is short, linear, and shares no code with the engines, not even
//! reads-from or lock ownership: it works both out for itself from the trace. What reads may see is [`ReadRule`]'s to define,
//! and implemented here once more.

mod asleep;
mod divergence;
mod goals;
mod observed;
mod replay;
mod values;

use crate::goal::{Goal, Model, Schedule, Writer};
use crate::read_rule::{ReadRule, Recorded};
use observed::Observed;
use portent_trace::{EventId, Op, Trace, VarId};
use replay::Replay;
use std::sync::OnceLock;

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

/// Whether a run that follows a witness comes to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesOn {
    /// It has come there before the end of the witness.
    WasThere,
    /// It can go on to it.
    GetsThere,
    /// It does not, in the observed order.
    DoesNot,
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
    /// What the observed order does, and how far it goes where formulas are executed; worked out when first needed.
    observed: OnceLock<Observed>,
    by_formulas: OnceLock<(usize, Option<String>)>,
}

impl<'t> Checker<'t> {
    /// Prepares to check schedules of a trace.
    pub fn new(trace: &'t Trace) -> Self {
        Self::until(trace, &|| false).unwrap_or_else(|| unreachable!("nobody stops"))
    }

    /// The same; `None` if told to stop.
    pub fn until(trace: &'t Trace, stop: &dyn Fn() -> bool) -> Option<Self> {
        let mut program = vec![Vec::new(); trace.threads()];
        let mut saw = Vec::with_capacity(trace.len());
        let mut last = vec![Writer::Init; trace.variables()];
        let mut before = vec![(None, false); trace.variables()];
        let formulas = trace.symbols().is_some();
        let mut recorded = if formulas { Recorded::Formulas } else { Recorded::Values };
        for event in trace.events() {
            if event.id.index() & 0xffff == 0xffff && stop() {
                return None;
            }
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
        Some(Checker {
            trace,
            program,
            saw,
            last,
            before,
            recorded,
            observed: OnceLock::new(),
            by_formulas: OnceLock::new(),
        })
    }

    /// Whether `witness` is a reordering of the trace in `model` that reaches `goal`.
    ///
    /// What it has in common with the observed order is not executed again.
    pub fn check(&self, model: Model, goal: &Goal, witness: &Schedule) -> Result<(), Rejected> {
        let rule = self.rule(model);
        self.check_from(rule, goal, witness, self.common(rule, goal, witness))
    }

    /// How much of a witness need not be executed.
    fn common(&self, rule: ReadRule, goal: &Goal, witness: &Schedule) -> usize {
        let mut begin = witness.split().0;
        // The goal changes what this read does, and formulas what anything does.
        if let Goal::Nondeterminism { read, .. } = goal {
            begin = begin.min(read.index());
        }
        if begin == 0 || rule == ReadRule::SameFormulas {
            return 0;
        }
        begin.min(self.observed_until(rule).0)
    }

    /// The same, every step of it executed: what [`Checker::check`] is held against.
    pub fn check_step_by_step(&self, model: Model, goal: &Goal, witness: &Schedule) -> Result<(), Rejected> {
        self.check_from(self.rule(model), goal, witness, 0)
    }

    fn check_from(&self, rule: ReadRule, goal: &Goal, witness: &Schedule, begin: usize) -> Result<(), Rejected> {
        self.is_a_goal(goal).map_err(|why| Rejected { step: 0, why: format!("not a goal: {why}") })?;
        let replay = self.replayed(rule, goal, witness, begin)?;
        replay.reached(goal).map_err(|why| Rejected { step: witness.len(), why })
    }

    /// What is so after a witness, of which the first `begin` steps are those of the observed order and need not be executed.
    fn replayed(
        &self,
        rule: ReadRule,
        goal: &Goal,
        witness: &Schedule,
        begin: usize,
    ) -> Result<Replay<'_, 't>, Rejected> {
        let mut replay = Replay::after(self, rule, goal, begin);
        let mut step = begin as u64;
        for thread in witness.steps_from(self.trace, begin) {
            replay.execute(thread, Some(goal), step).map_err(|why| Rejected { step, why })?;
            step += 1;
        }
        ensure(step == witness.len(), "the trace has no further event").map_err(|why| Rejected { step, why })?;
        Ok(replay)
    }

    /// Whether a witness that the checker accepts has come to an event, or can go on to it in the observed order, leaving out what cannot
    /// happen any more and the thread of the goal's read; kept reads see the write that they saw, whatever the model, unless it is `sync`.
    /// `None` if it is no witness.
    pub fn goes_on(&self, model: Model, goal: &Goal, witness: &Schedule, to: EventId) -> Option<GoesOn> {
        let rule = self.rule(model);
        let mut replay = self.replayed(rule, goal, witness, self.common(rule, goal, witness)).ok()?;
        let is_done = |replay: &Replay<'_, '_>, event: EventId| {
            replay.next(self.trace.thread(event)).is_none_or(|next| next > event)
        };
        if is_done(&replay, to) {
            return Some(GoesOn::WasThere);
        }
        replay.rule = if model == Model::Sync { rule } else { ReadRule::ObservedWrite };
        let mut waits = vec![false; self.program.len()];
        if let Goal::Nondeterminism { read, .. } = goal {
            waits[self.trace.thread(*read).index()] = true;
        }
        // Before that, everything has happened, or its thread makes way for good.
        for event in (witness.split().0.min(to.index())..=to.index()).map(EventId::new) {
            let thread = self.trace.thread(event);
            if !waits[thread.index()] && !is_done(&replay, event) {
                let step = witness.len() + event.index() as u64;
                waits[thread.index()] = replay.execute(thread, None, step).is_err();
            }
        }
        Some(if is_done(&replay, to) { GoesOn::GetsThere } else { GoesOn::DoesNot })
    }

    /// Whether the observed order, up to their last event, reaches each of these goals. Only violations of atomicity can be
    /// reached so and still be news; everything else is refused.
    pub fn check_observed(&self, model: Model, goals: &[Goal]) -> Vec<Result<(), Rejected>> {
        if goals.is_empty() {
            return Vec::new();
        }
        let (until, stopped) = self.observed_until(self.rule(model));
        let reached = |goal: &Goal| {
            let refuse = |why: String| Rejected { step: 0, why };
            self.is_a_goal(goal).map_err(|why| refuse(format!("not a goal: {why}")))?;
            let Goal::Atomicity { first, remote, second } = *goal else { return Err(refuse("not asked here".into())) };
            if let Some(stopped) = stopped.as_ref().filter(|_| second.index() >= until) {
                return Err(stopped.clone());
            }
            // Each event was executed at the step of its number.
            ensure(first < remote && remote < second, "the remote access is not between the two").map_err(refuse)
        };
        goals.iter().map(reached).collect()
    }

    /// The events that a schedule executes, if it is a reordering of the trace in `model` in which no read is free.
    pub fn replay(&self, model: Model, schedule: &Schedule) -> Result<Vec<EventId>, Rejected> {
        let mut replay = Replay::new(self, self.rule(model));
        let mut events = Vec::new();
        for thread in schedule.steps(self.trace) {
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
        let mut replay = Replay::new(self, rule);
        replay.last_reads_free = rule.frees_last_reads();
        let mut executed = Vec::new();
        for (step, thread) in (0..).zip(schedule.steps(self.trace)) {
            let event = (thread.index() < self.program.len()).then(|| replay.next(thread)).flatten();
            let sees = event.and_then(|event| self.trace.op(event).variable()).map(|x| replay.memory(x));
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
        for (step, thread) in (0..).zip(schedule.steps(self.trace)) {
            let next = (thread.index() < self.program.len()).then(|| replay.next(thread)).flatten();
            let access = next.and_then(|event| Some((event, self.trace.op(event), self.trace.op(event).variable()?)));
            let known = |replay: &Replay<'_, '_>, x: VarId| {
                replay.content(x).filter(|_| !replay.tainted_variables.contains(&x.index()))
            };
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
