//! Where a run can leave a trace: an operation that could have another outcome than it had (docs/src/internals/exploration.md).
//!
//! Not a bug, and so no [`crate::Goal`]: it is what exploration asks, in order to make the run that nobody has seen yet.
//!
//! # Words
//! A *divergence cut* is a cut of a trace (a prefix of each thread) that a reordering reaches in which every executed event has
//! the outcome that it had, and one thread's next operation, which could now have the outcome that is asked for. The schedule of a
//! witness ends there: the operation itself is not part of it, since in the trace it did something else, or never happened.

use crate::goal::Writer;
use portent_trace::{EventId, Op, ThreadId};

/// The operation that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// An event of the trace.
    Event(EventId),
    /// What a thread still wanted to do where the trace ends.
    End(ThreadId, Op),
}

/// What the operation is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A read or update sees this value, whoever wrote it. The value of INIT is what the reads that saw it recorded.
    Sees(i64),
    /// A read or update sees this write.
    SeesWrite(Writer),
    /// A lock is free, so that a try takes it and an acquire goes on; a token has been sent; a semaphore is not at zero; or a notify can have
    /// ended a wait on a condition, whether it was to end so in the trace or not.
    Goes,
    /// Another thread holds the lock, or the semaphore is at zero, so that a try fails; or no notify need have ended a wait on a condition,
    /// so that it can time out.
    Fails,
    /// Anything: all that is wanted is that it is next.
    Any,
}

/// "Can this operation have that outcome, in a cut that contains one event of each of these lists, while others are next?"
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Divergence {
    /// The operation.
    pub at: At,
    /// Its outcome.
    pub outcome: Outcome,
    /// Of each list, at least one event has happened.
    pub contain_one_of: Vec<Vec<EventId>>,
    /// What other threads are next at, whatever its outcome would be.
    pub meanwhile: Vec<At>,
}

impl Divergence {
    /// Without anything that the cut must contain.
    pub fn new(at: At, outcome: Outcome) -> Self {
        Divergence { at, outcome, contain_one_of: Vec::new(), meanwhile: Vec::new() }
    }
}
