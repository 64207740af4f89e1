//! How a run of a program ended, in terms that all front ends share.

use portent_trace::InputOp;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How a run ended, and what was seen at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the process ended.
    pub end: End,
    /// It ran for too long and was stopped.
    pub timed_out: bool,
    /// What an assertion that failed said.
    pub assertion: Option<String>,
    /// The signal of its own making that ended it.
    pub crash: Option<Crash>,
    /// The exception that nobody caught, where that is why it ended.
    pub thrown: Option<Thrown>,
    /// The threads that ran to their ends, as far as that was recorded.
    pub ended: Vec<u32>,
    /// Every thread that could not move, if nobody could.
    pub deadlock: Option<Vec<Stuck>>,
    /// Threads that failed before others had gone on as far as they could ([`Plan::parks`](crate::Plan::parks)), in order.
    pub parked: Vec<Parked>,
    /// The others that had not ended then, and could not go on.
    pub left: Vec<Stuck>,
    /// Where threads waited in loops that only look, in order.
    pub spins: Vec<Spin>,
    /// What variables held before the first write, where that is known and nobody had read it: their numbers, and the values.
    pub initial: Vec<(u32, i64)>,
    /// Atomic updates whose results the program does not look at: their numbers among the events, in order, and what they do.
    pub unused: Vec<(u32, Counting)>,
    /// What tells variables from others in all runs of the program in which their threads do the same, by their numbers; empty where
    /// only their names do.
    pub identities: Vec<u64>,
    /// What the threads of the schedule's goal were about to do when the schedule was done.
    pub at_goal: Option<Vec<AtGoal>>,
    /// Where the schedule could not be followed.
    pub not_followed: Option<NotFollowed>,
    /// What the program did to memory and objects that were no longer its own, whether or not it survived that; in order.
    pub faults: Vec<Fault>,
    /// What it wrote, as far as that was kept.
    pub output: Output,
    /// What the recorder could not see or understand, in sentences: what is found in this run may be wrong because of it.
    pub warnings: Vec<String>,
    /// Whether waits on conditions could end by themselves.
    pub spurious: bool,
    /// Whether handlers of signals ran. A run that is like this one gets its signals where this one got them, which is only right
    /// where it follows a schedule that was predicted from this one.
    pub signals: bool,
    /// Whether the front end itself was asked to end while it ran, and passed that on; or whether nobody knows who ended it.
    pub asked_to_end: bool,
    /// Where its recording is cut short, although the program went on: after so many events. Nothing is known of what came then.
    pub cut: Option<u64>,
}

/// A thread that waits in a loop that only looks at things, until one of them changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spin {
    /// Whose.
    pub thread: u32,
    /// Events of the thread before it waits.
    pub events: u64,
    /// The last so many of them are an iteration; the iteration before it is the same.
    pub iteration: u64,
    /// How that is known.
    pub kind: SpinKind,
    /// Where.
    pub place: String,
}

/// What an update does whose result nobody looks at. Updates of one kind come to the same in whatever order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Adds or subtracts.
    Adds,
    /// Sets bits.
    Sets,
    /// Clears bits.
    Clears,
    /// Flips bits.
    Flips,
}

/// What is known of a loop that only looks at things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinKind {
    /// An iteration leaves the thread as it was.
    Waits,
    /// Whether it does is not known: there is nothing but plain reads.
    Plain,
    /// It does not, as was seen when nobody else could go on.
    Counts,
}

/// Memory or an object of the program used wrongly: seen exactly, in every run, whether or not it crashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was done.
    pub kind: FaultKind,
    /// Who did it, when, and where.
    pub at: Moment,
    /// What it was done to, in the words of the source as far as possible: `heap(list.c:31)#2`, `lock`.
    pub object: String,
    /// A few words more where there is something to say: `8 bytes, 16 bytes into a block of 32`.
    pub detail: String,
    /// Where the memory was allocated, or the object made.
    pub made: Option<Moment>,
    /// Where it was freed, destroyed or closed.
    pub ended: Option<Moment>,
}

/// What was done to memory or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// An access to memory that was freed.
    UseAfterFree,
    /// Memory freed a second time.
    DoubleFree,
    /// Memory freed by what does not belong to how it was allocated (`new[]` by `delete`), or what is no block at all.
    BadFree,
    /// A mutex, condition, barrier, semaphore destroyed or freed while somebody holds it or waits on it.
    DestroyedInUse,
    /// One of these used after it was destroyed or freed.
    UsedAfterDestroy,
    /// A descriptor used by one thread after another closed it, or closed while one uses it.
    ClosedInUse,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Whose.
    pub thread: u32,
    /// The event's number in the run: the event itself, or the next one that would have been recorded.
    pub event: u32,
    /// Where.
    pub place: String,
}

/// What a run wrote, as far as it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// To standard output.
    pub stdout: Vec<u8>,
    /// To standard error.
    pub stderr: Vec<u8>,
    /// Whether that is all of it; if not, it is not compared.
    pub whole: bool,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// A signal that a program brought upon itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Its number.
    pub signal: i32,
    /// Where in the program.
    pub place: String,
    /// Whose; `None` where that is not known.
    pub thread: Option<u32>,
    /// The address that could not be accessed, for signals that have one.
    pub address: Option<u64>,
}

/// An exception that nobody caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thrown {
    /// Whose.
    pub thread: u32,
    /// Where it was thrown.
    pub place: String,
    /// Its type, as the source writes it.
    pub type_name: String,
}

/// A thread that failed while the program went on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Its number.
    pub thread: u32,
    /// How many events there were.
    pub events: u32,
    /// Where.
    pub place: String,
}

/// A thread that cannot move, where nobody can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its number.
    pub thread: u32,
    /// Whether it waits to be notified.
    pub asleep: bool,
    /// It waits in a loop, which it never leaves.
    pub spins: bool,
    /// What it is about to do, and the number of what it waits for; as far as that is known.
    pub waits: Option<(InputOp, Option<u32>)>,
    /// Where it waits.
    pub place: String,
    /// What it waits for and who holds that, in a sentence.
    pub sentence: String,
}

/// What a thread of a schedule's goal is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtGoal {
    /// Its number.
    pub thread: u32,
    /// What it is about to do; `None` for what is no event.
    pub op: Option<InputOp>,
    /// The memory that an access is about, in numbers that mean the same for every thread of the run.
    pub memory: Range<u64>,
    /// What that is called, where it has a name of its own.
    pub object: Option<String>,
    /// Where.
    pub place: String,
    /// Whether it can go on.
    pub enabled: bool,
}

/// Where and why a schedule could not be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFollowed {
    /// The step of the schedule, from 0.
    pub step: u64,
    /// Whose step it is.
    pub thread: u32,
    /// What is wrong with it.
    pub why: WhyNotFollowed,
}

/// Why a step of a schedule cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNotFollowed {
    /// There is no such thread yet.
    NoThread,
    /// The thread has ended, so many events before the step is done.
    Ended {
        /// Events of the step that are left.
        left: u64,
    },
    /// What the thread is about to do is not possible now.
    NotPossible {
        /// What it is about to do; `None` for what is no event.
        op: Option<InputOp>,
        /// On what, where that has a name.
        object: Option<String>,
        /// Where it stands.
        place: String,
    },
}

/// Signals by which people end programs: hang-up, interrupt, quit, terminate.
const ASKED_TO_END: [i32; 4] = [1, 2, 3, 15];

impl Outcome {
    /// A run that ended by itself, of which nothing else is to be told.
    pub fn ended(end: End) -> Outcome {
        Outcome {
            end,
            timed_out: false,
            assertion: None,
            crash: None,
            thrown: None,
            ended: Vec::new(),
            deadlock: None,
            parked: Vec::new(),
            left: Vec::new(),
            spins: Vec::new(),
            initial: Vec::new(),
            unused: Vec::new(),
            identities: Vec::new(),
            at_goal: None,
            not_followed: None,
            faults: Vec::new(),
            output: Output::default(),
            warnings: Vec::new(),
            spurious: false,
            signals: false,
            asked_to_end: false,
            cut: None,
        }
    }

    /// The signal by which the user ended it, if so. Whatever else ends a program by a signal is a failure.
    pub fn interrupted_by(&self) -> Option<i32> {
        match self.end {
            End::Signal(signal) if self.asked_to_end && ASKED_TO_END.contains(&signal) => Some(signal),
            _ => None,
        }
    }
}

impl NotFollowed {
    /// In words.
    pub(crate) fn sentence(&self) -> String {
        let NotFollowed { step, thread, why } = self;
        match why {
            WhyNotFollowed::NoThread => format!("T{thread} does not exist at step {step}"),
            WhyNotFollowed::Ended { left } => format!("T{thread} has ended, {left} events before step {step} is done"),
            WhyNotFollowed::NotPossible { op, object, place } => {
                let object = object.as_deref().unwrap_or("something");
                let doing = match op {
                    Some(InputOp::Acquire | InputOp::TryAcquire | InputOp::AcquireAll) => {
                        format!("waits for lock {object}")
                    }
                    Some(InputOp::AcquireShared | InputOp::TryAcquireShared) => format!("waits to share lock {object}"),
                    Some(InputOp::Join) => format!("waits for {object} to end"),
                    Some(InputOp::Wake) => format!("waits to be notified on {object}"),
                    Some(InputOp::SemaphoreWait) => format!("waits for a post of semaphore {object}"),
                    Some(InputOp::Depart) => format!("waits for the others at barrier {object}"),
                    Some(op) => format!("cannot execute {}({object})", op.text()),
                    None => "cannot go on".to_owned(),
                };
                format!("at step {step} T{thread} {doing} at {place}")
            }
        }
    }
}
