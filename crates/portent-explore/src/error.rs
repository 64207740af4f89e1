//! Why a program could not be run.

use portent_trace::TraceError;

/// A program that could not be built, run or replayed: what is wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A recording, a trace or a file of a session could not be read or written.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// It cannot be done as it was asked for.
    #[error("{message}")]
    Refused {
        /// What is wrong.
        message: String,
        /// What to do instead.
        help: String,
    },
    /// A program, or the compiler, could not be started.
    #[error("{message}")]
    NotStarted {
        /// What did not start, and why.
        message: String,
        /// What to do about it.
        help: String,
    },
}

impl Error {
    /// Something that cannot be done as it was asked for.
    pub fn refused(message: impl Into<String>, help: impl Into<String>) -> Self {
        Error::Refused { message: message.into(), help: help.into() }
    }

    /// A program that did not start.
    pub fn not_started(message: impl Into<String>, help: impl Into<String>) -> Self {
        Error::NotStarted { message: message.into(), help: help.into() }
    }
}
