//! From one run of a program to all of its behaviours: which run to make next, and the proof that there is none left.
//!
//! Predict, run, let it run on, look at the new run, until nothing new is left (docs/src/internals/exploration.md). Every run shows a
//! behaviour that none before it showed. When the search ends by itself, every failure, deadlock, race and final value of the
//! program, for its input and under sequential consistency, is in a run that was made or can be predicted from one.
//!
//! # Words
//! - A thread's *local history* is the sequence of its operations with their outcomes. Threads are deterministic: the history
//!   says what comes next.
//! - An *outcome* is what a thread learns from an operation: the value that it read, whether a try took the lock. Writes,
//!   acquires and releases have none: who was first at a lock is no part of a behaviour.
//! - A *cut* is one local history per thread; a *behaviour* is the cut of a run that went on until nothing could go on. A run
//!   *covers* a cut if each history of it is a prefix of that thread's history in the run.
//! - A *goal* is an operation of a run and another outcome. It is *closed* when no cut of the run that could lead there is
//!   uncovered: for good, since runs only become more.
//!
//! A program is anything that can be run under a plan: [`Subject`].

#![forbid(unsafe_code)]

mod bits;
mod goals;
mod histories;
mod rivals;
mod search;
mod shelf;
mod spins;
mod stuck;
mod subject;
mod written;

pub use search::{Explored, Incomplete, Options, Visit, explore, resume};
pub use spins::Spins;
pub use stuck::{Stuck, stuck_cuts};
pub use subject::{End, History, Observes, Operation, Plan, Run, Seen, SoFar, Step, Subject, Writes};
