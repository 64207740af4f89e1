//! A program that can be run under a plan, and what a run of it gives back.

use portent_order::Schedule;
use portent_trace::{EventId, Op, ThreadId, Trace};
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;

/// A program that can be run under a plan, wherever its runs come from.
///
/// What the search relies on:
/// - a thread has the same number in every run in which it does: that must follow from the histories of the threads that start it;
/// - what a thread does next is a function of its local history (where it is not, the search notices, and proves nothing);
/// - a run goes on until no thread can go on, or says that it did not ([`End::Cut`]).
pub trait Subject {
    /// How running it can fail.
    type Error;
    /// Runs it once.
    ///
    /// # Errors
    /// When it could not be run. How the program itself failed is in the run.
    fn run(&mut self, plan: &Plan) -> Result<Run, Self::Error>;

    /// Is told before each question how far the search is, and may end it.
    fn goes_on(&mut self, _so_far: SoFar) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoFar {
    /// Runs that were made.
    pub runs: usize,
    /// Behaviours among them.
    pub behaviours: usize,
    /// Questions that were asked.
    pub questions: u64,
    /// Alternatives that were not looked at yet: questions that are left.
    pub left: usize,
    /// Whether it may still end in a proof.
    pub provable: bool,
}

/// Who runs when.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The run whose events `schedule` is about: its number among all that were made, from 0; `None` for the first of all.
    pub like: Option<usize>,
    /// What is to happen first, in the threads and kernel events of that run.
    pub schedule: Schedule,
    /// The same in whole operations: the numbers of threads, each of which executes its next operation. The last one is the
    /// operation that is to have another outcome, and is not in `schedule`.
    pub turns: Vec<usize>,
    /// What each of these operations is to learn: of a wait with a time limit it may be a choice whether it was woken. Empty where nobody
    /// knows.
    pub seen: Vec<Seen>,
    /// What chance starts from after that.
    pub seed: u64,
}

/// What a thread is about to do, as far as its history determines it. What the numbers mean is the subject's business: they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operation {
    /// Where in the code.
    pub place: u64,
    /// What kind of operation.
    pub kind: u32,
    /// On which object.
    pub object: u64,
    /// What it writes, or the like.
    pub operand: i64,
}

/// What a thread learnt from an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Seen {
    /// Nothing: it happened.
    Nothing,
    /// This value.
    Value(i64),
    /// That what it tried happened: a lock was free, and is taken; a semaphore was not at zero; it was woken in time.
    Taken,
    /// That it could not: another thread held the lock, the semaphore was at zero, nobody woke it in time.
    Busy,
}

/// What a thread can learn from an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observes {
    /// Nothing.
    Nothing,
    /// A value; whether it then writes.
    Value(Writes),
    /// Whether what it tries, or waits for with a time limit, happens: it takes a lock, takes one from a semaphore, is woken.
    Try,
    /// Whether it is woken or wakes by itself. It may also do neither, for ever.
    Wakes,
}

/// Whether an operation that reads also writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writes {
    /// A read.
    Never,
    /// An update.
    Always,
    /// A compare-exchange: if it sees this.
    If(i64),
}

/// An operation that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was done.
    pub operation: Operation,
    /// What can be learnt from it.
    pub observes: Observes,
    /// What was.
    pub seen: Seen,
    /// The kernel event that it is, the decisive one if there are several.
    pub event: EventId,
}

/// What a thread did in a run.
#[derive(Clone, Debug)]
pub struct History {
    /// The thread in the trace.
    pub thread: ThreadId,
    /// Its operations.
    pub steps: Vec<Step>,
    /// And then.
    pub end: End,
    /// An event without which the thread does not exist: its fork, if it executed no event.
    pub born: Option<EventId>,
}

/// How a thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is done.
    Done,
    /// It failed here, and does nothing any more.
    Failed(Operation),
    /// It stands before an operation that cannot happen.
    Waits {
        /// The operation; `None` where only `op` is known of it.
        operation: Option<Operation>,
        /// What it observes.
        observes: Observes,
        /// What it would be in the trace; `None` if nothing that the trace has could let it go on (a join of a thread that has
        /// not ended).
        op: Option<Op>,
    },
    /// It was stopped: nobody knows what it would do.
    Cut,
}

/// A run of a program.
#[derive(Debug)]
pub struct Run {
    /// What happened.
    pub trace: Trace,
    /// What each thread did, by its number; `None` for those that do not exist in it.
    pub threads: Vec<Option<History>>,
    /// It has so many operations that nobody wants to look at it, and nothing is learnt from it.
    pub too_long: bool,
    /// Whether the plan was followed to its end.
    pub followed: bool,
    /// Iterations of loops that change nothing and leave their thread as it was, wherever one begins with them. Where threads waited
    /// in them, they went round once, or as often as was planned.
    pub spins: Vec<Vec<(Operation, Seen)>>,
    /// Events of reads in several parts, of which no other outcome is looked for: if one of them could have one, nothing is proven.
    pub in_parts: Vec<EventId>,
    /// Why what else could happen is not known exactly: operations of the run that the engine keeps as they were observed.
    pub inexact: Vec<String>,
}

impl Run {
    /// The plan that leads along a schedule of this run, which was made as this one of all.
    pub fn plan(&self, made: usize, schedule: Schedule, seed: u64) -> Plan {
        let turns = self.turns(&schedule);
        let mut done = vec![0; self.threads.len()];
        let mut seen = |&thread: &usize| {
            let at = done[thread];
            done[thread] += 1;
            Some(self.threads[thread].as_ref()?.steps.get(at)?.seen)
        };
        let seen = turns.iter().filter_map(&mut seen).collect();
        Plan { like: Some(made), schedule, turns, seen, seed }
    }

    /// A schedule of its trace in whole operations: the numbers of threads, each of which executes its next operation.
    pub fn turns(&self, schedule: &Schedule) -> Vec<usize> {
        let mut number: FxHashMap<EventId, usize> = FxHashMap::default();
        for (thread, history) in self.threads.iter().enumerate() {
            let steps = history.iter().flat_map(|history| &history.steps);
            number.extend(steps.map(|step| (self.begins(step.event), thread)));
        }
        let mut program: Vec<Vec<EventId>> = vec![Vec::new(); self.trace.threads()];
        for event in self.trace.events() {
            program[event.thread.index()].push(event.id);
        }
        let mut position = vec![0; program.len()];
        let mut turns = Vec::new();
        for thread in schedule.steps(&self.trace).map(|thread| thread.index()) {
            turns.extend(program[thread].get(position[thread]).and_then(|event| number.get(event)).copied());
            position[thread] += 1;
        }
        turns
    }

    /// The first event of an operation: an access in several parts is executed as a whole where its first part is.
    fn begins(&self, event: EventId) -> EventId {
        let is_access = |event: EventId| self.trace.op(event).variable().is_some();
        if !is_access(event) {
            return event;
        }
        let mut parts = self.trace.lowered(self.trace.input_index(event)).map(EventId::new);
        let own = |&part: &EventId| is_access(part) && self.trace.thread(part) == self.trace.thread(event);
        parts.find(own).unwrap_or(event)
    }
}
