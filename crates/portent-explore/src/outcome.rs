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
    /// Every thread that could not move, if nobody could.
    pub deadlock: Option<Vec<Stuck>>,
    /// What the threads of the schedule's goal were about to do when the schedule was done.
    pub at_goal: Option<Vec<AtGoal>>,
    /// Where the schedule could not be followed.
    pub not_followed: Option<NotFollowed>,
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
}

/// A thread that cannot move, where nobody can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its number.
    pub thread: u32,
    /// Whether it waits to be notified.
    pub asleep: bool,
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
        /// Where it stands.
        place: String,
    },
}

/// Signals by which people and systems end programs: hang-up, interrupt, quit, terminate.
const ASKED_TO_END: [i32; 4] = [1, 2, 3, 15];

impl Outcome {
    /// A run that ended by itself, of which nothing else is to be told.
    pub fn ended(end: End) -> Outcome {
        Outcome {
            end,
            timed_out: false,
            assertion: None,
            crash: None,
            deadlock: None,
            at_goal: None,
            not_followed: None,
        }
    }

    /// How the program failed, in sentences; nothing if it did not.
    pub fn failures(&self) -> Vec<String> {
        let mut failed = Vec::new();
        if self.timed_out {
            failed.push("the program did not end in time and was stopped".into());
        }
        failed.extend(self.assertion.iter().map(|text| format!("assertion failed: {text}")));
        failed.extend(self.deadlock.iter().flatten().map(|stuck| stuck.sentence.clone()));
        if let (Some(crash), []) = (&self.crash, &failed[..]) {
            failed.push(format!("signal {} at {}", crash.signal, crash.place));
        }
        failed
    }

    /// The signal by which somebody else ended it, if so.
    pub fn interrupted_by(&self) -> Option<i32> {
        match self.end {
            End::Signal(signal) if ASKED_TO_END.contains(&signal) => Some(signal),
            _ => None,
        }
    }

    /// How this run failed where another did not fail so, in a sentence.
    pub fn failed_unlike(&self, other: &Outcome) -> Option<String> {
        if self.timed_out {
            return Some("the program did not end: it was stopped".into());
        }
        if self.deadlock.is_some() {
            let new = other.deadlock.is_none();
            return new.then(|| "the program came to a deadlock: nobody could move".into());
        }
        if let Some(failed) = &self.assertion {
            let new = other.assertion.as_ref() != Some(failed);
            return new.then(|| format!("assertion failed: {failed}"));
        }
        if self.end == other.end {
            return None;
        }
        Some(match self.end {
            End::Signal(signal) => {
                let place = self.crash.as_ref().map(|crash| format!(" at {}", crash.place)).unwrap_or_default();
                format!("the program was ended by signal {signal}{}{place}", signal_name(signal))
            }
            End::Status(status) => format!("the program exited with status {status}"),
        })
    }
}

/// A signal's name behind its number.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic error)",
        11 => " (segmentation fault)",
        _ => "",
    }
}

impl NotFollowed {
    /// In words.
    pub(crate) fn sentence(&self) -> String {
        let NotFollowed { step, thread, why } = self;
        match why {
            WhyNotFollowed::NoThread => format!("T{thread} does not exist at step {step}"),
            WhyNotFollowed::Ended { left } => format!("T{thread} has ended, {left} events before step {step} is done"),
            WhyNotFollowed::NotPossible { place } => {
                format!("what T{thread} is about to do at {place} is not possible at step {step}")
            }
        }
    }
}
