//! Questions and answers: models, goals, schedules and verdicts (docs/src/internals/semantics.md §2 and §3).

use portent_trace::{EventId, PairingId, ThreadId, Trace, VarId};
use std::fmt;

/// What a read in a reordering must see, as the user chooses it; [`crate::ReadRule`] says what that means for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Model {
    /// Anything: may predict what the program cannot do.
    Sync,
    /// The write it saw in the trace, except for the reads that the goal itself changes.
    Reads,
    /// Anything, as long as no branch that is taken can tell the difference.
    Values,
}

impl Model {
    /// Every model.
    pub const ALL: [Model; 3] = [Model::Sync, Model::Reads, Model::Values];
    /// The model's name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Model::Sync => "sync",
            Model::Reads => "reads",
            Model::Values => "values",
        }
    }
}

/// Where a read's value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Writer {
    /// The implicit initial write, before everything.
    Init,
    /// A write or update of the trace.
    Event(EventId),
}

/// The kinds of goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Kind {
    Race,
    Nondeterminism,
    FinalValue,
    Atomicity,
    Deadlock,
    LostWakeup,
    LostUpdate,
    Stuck,
}

impl Kind {
    /// Every kind of which each candidate that is feasible is a bug or an observation by itself: all but lost updates, which also need
    /// evidence that what was written follows from what was read, and stuck threads, of whom many can be in one deadlock.
    pub const ALL: [Kind; 6] =
        [Kind::Race, Kind::Nondeterminism, Kind::FinalValue, Kind::Atomicity, Kind::Deadlock, Kind::LostWakeup];
    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Race => "race",
            Kind::Nondeterminism => "nondeterminism",
            Kind::FinalValue => "final value",
            Kind::Atomicity => "atomicity",
            Kind::Deadlock => "deadlock",
            Kind::LostWakeup => "lost wake-up",
            Kind::LostUpdate => "lost update",
            Kind::Stuck => "stuck",
        }
    }
}

/// What a reordering should reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Goal {
    /// Two conflicting accesses, not both atomic, are both next at the same time.
    Race {
        /// The access that comes first in the trace.
        first: EventId,
        /// The other.
        second: EventId,
    },
    /// A read executes, last of its thread, when the last write of its variable is another than the one it saw.
    Nondeterminism {
        /// The read (or update).
        read: EventId,
        /// What it could see.
        challenger: Writer,
    },
    /// After a complete reordering, the last write of a variable is another than in the trace.
    FinalValue {
        /// The variable.
        variable: VarId,
        /// The write that could be last.
        challenger: EventId,
    },
    /// `first`, `remote` and `second` execute in this order, though `first` and `second` are in one atomic block and
    /// `remote`, of another thread, conflicts with both.
    Atomicity {
        /// Earlier access in the block.
        first: EventId,
        /// Access of the other thread.
        remote: EventId,
        /// Later access in the block.
        second: EventId,
    },
    /// Each acquire is next and waits for a lock that the thread of the one after it (cyclically) holds.
    Deadlock {
        /// The acquires, each waiting on the next.
        waiting: Vec<EventId>,
    },
    /// A notify runs before the sleep it should end, and nothing else can happen.
    LostWakeup {
        /// The wait that is never ended.
        pairing: PairingId,
    },
    /// A thread is next at an event that cannot happen, and every other thread has ended or waits, too: nobody can ever go on.
    Stuck {
        /// What it waits to do: to take a lock, to receive a token, to pass a semaphore, or to be woken by a notify.
        waiting: EventId,
    },
    /// `first`, `remote` and `second` execute in this order: a thread reads a variable and then writes it, neither accessing it
    /// in between, and so does another thread, whose write comes between the two and is overwritten.
    ///
    /// What the other thread reads is free, as what a remote update reads in [`Goal::Atomicity`] is: the two are one update in
    /// two steps. If it is not what the model's rule asks for, the thread goes on only until it has released the locks that it
    /// held at its write.
    LostUpdate {
        /// The read of the thread that overwrites.
        first: EventId,
        /// What the other thread reads before its write; the write itself if that is an update.
        read: EventId,
        /// The write that is lost.
        remote: EventId,
        /// The write that overwrites it.
        second: EventId,
    },
}

impl Goal {
    /// The kind of the goal.
    pub fn kind(&self) -> Kind {
        match self {
            Goal::Race { .. } => Kind::Race,
            Goal::Nondeterminism { .. } => Kind::Nondeterminism,
            Goal::FinalValue { .. } => Kind::FinalValue,
            Goal::Atomicity { .. } => Kind::Atomicity,
            Goal::Deadlock { .. } => Kind::Deadlock,
            Goal::LostWakeup { .. } => Kind::LostWakeup,
            Goal::LostUpdate { .. } => Kind::LostUpdate,
            Goal::Stuck { .. } => Kind::Stuck,
        }
    }
}

/// A thread running for a number of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    /// Who runs.
    pub thread: ThreadId,
    /// How many kernel events it executes.
    pub steps: u32,
}

/// A reordering: which thread executes its next event, step by step, in run-length form relative to the observed order.
///
/// It may begin with the observed order: that is one number, however far it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    observed: usize,
    stretches: Vec<Stretch>,
}

impl Schedule {
    /// The first so many events of a trace, in their order.
    pub fn as_observed(events: usize) -> Self {
        Schedule { observed: events, stretches: Vec::new() }
    }
    /// Appends one event of `thread`.
    pub fn push(&mut self, thread: ThreadId) {
        match self.stretches.last_mut() {
            Some(stretch) if stretch.thread == thread && stretch.steps < u32::MAX => stretch.steps += 1,
            _ => self.stretches.push(Stretch { thread, steps: 1 }),
        }
    }
    /// Appends so many events of `thread`.
    pub fn run(&mut self, thread: ThreadId, steps: u32) {
        match self.stretches.last_mut() {
            _ if steps == 0 => {}
            Some(stretch) if stretch.thread == thread && stretch.steps <= u32::MAX - steps => stretch.steps += steps,
            _ => self.stretches.push(Stretch { thread, steps }),
        }
    }
    /// How many events of the observed order it begins with, and who executes how many after them.
    pub fn split(&self) -> (usize, &[Stretch]) {
        (self.observed, &self.stretches)
    }
    /// How many events are executed.
    pub fn len(&self) -> u64 {
        self.observed as u64 + self.stretches.iter().map(|stretch| u64::from(stretch.steps)).sum::<u64>()
    }
    /// Whether nothing is executed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The thread of each step, in the trace that it is a schedule of.
    pub fn steps(&self, trace: &Trace) -> impl Iterator<Item = ThreadId> {
        self.steps_from(trace, 0)
    }
    /// The same without the first `done` steps, at most as many as are as observed.
    pub fn steps_from(&self, trace: &Trace, done: usize) -> impl Iterator<Item = ThreadId> {
        let observed = done..self.observed.min(trace.len());
        let rest =
            self.stretches.iter().flat_map(|stretch| std::iter::repeat_n(stretch.thread, stretch.steps as usize));
        observed.map(|event| trace.thread(EventId::new(event))).chain(rest)
    }
}

impl FromIterator<ThreadId> for Schedule {
    fn from_iter<I: IntoIterator<Item = ThreadId>>(threads: I) -> Self {
        let mut schedule = Schedule::default();
        threads.into_iter().for_each(|thread| schedule.push(thread));
        schedule
    }
}

/// The answer to "can some reordering reach this goal?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, by this schedule.
    Feasible(Schedule),
    /// No reordering does.
    Infeasible,
    /// Not decided.
    Unknown(Unknown),
}

/// Why a question was not decided: what it would have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unknown {
    /// More events: some that it is about are not among those that the engine was given.
    Window,
    /// More conflicts of the search, or decisions that cost as much, than the effort for one question.
    Conflicts,
    /// More time: the deadline passed.
    Deadline,
    /// A better search: it proposed an order that it had ruled out already. A defect, should it ever happen.
    Stalled,
    /// Values: the question is about what variables hold, and the trace does not say enough about that.
    Values,
}

impl Unknown {
    /// What ran out, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Unknown::Window => "window",
            Unknown::Conflicts | Unknown::Deadline | Unknown::Stalled => "budget",
            Unknown::Values => "values",
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_observed_is_a_number() {
        let trace = Trace::from_std("A|w(x)|1\nA|w(x)|2\nB|w(x)|3\nA|w(x)|4\n").unwrap();
        let mut schedule = Schedule::as_observed(3);
        [1, 1, 0].map(ThreadId::new).into_iter().for_each(|thread| schedule.push(thread));
        let stretch = |thread, steps| Stretch { thread: ThreadId::new(thread), steps };
        assert_eq!(schedule.split(), (3, &[stretch(1, 2), stretch(0, 1)][..]));
        let steps = |done| schedule.steps_from(&trace, done).map(|thread| thread.index()).collect::<Vec<_>>();
        assert_eq!((steps(0), steps(2), steps(3)), (vec![0, 0, 1, 1, 1, 0], vec![1, 1, 1, 0], vec![1, 1, 0]));
        assert_eq!(schedule.steps(&trace).count() as u64, schedule.len());
    }

    #[test]
    fn schedules_are_run_length_coded() {
        let trace = Trace::from_std("A|w(x)|1\nB|w(x)|2\n").unwrap();
        let threads = [0, 0, 1, 1, 1, 0].map(ThreadId::new);
        let schedule: Schedule = threads.into_iter().collect();
        assert_eq!((schedule.split().1.len(), schedule.len()), (3, 6));
        assert_eq!(schedule.steps(&trace).collect::<Vec<_>>(), threads);
    }
}
