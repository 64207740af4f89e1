//! Why a command could not do its work, and how that is told: `error: …`, then `help: …`.

use crate::exit::ExitCode;
use crate::terminal;
use portent_trace::{Problem, TraceError};
use std::io::ErrorKind;

/// A command that could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A trace could not be read or written.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// The command line asks for something that does not exist.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do instead.
        help: String,
    },
    /// Results could not be written to standard output.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    /// A truncated trace, where a whole one was asked for.
    #[error("{input}: {missing}")]
    Truncated {
        /// Which input.
        input: String,
        /// What it lost, and where.
        missing: String,
    },
}

impl Failure {
    /// Wrong use of the command line.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: help.into() }
    }

    /// Whether the reader of our output went away, as `head` does: that is no error.
    fn is_broken_pipe(&self) -> bool {
        let error = match self {
            Failure::Output(error) => error,
            Failure::Trace(TraceError { problem: Problem::Io(error), .. }) => error,
            _ => return false,
        };
        error.kind() == ErrorKind::BrokenPipe
    }

    fn help(&self) -> Option<String> {
        match self {
            Failure::Trace(error) => error.help().map(str::to_owned),
            Failure::Usage { help, .. } => Some(help.clone()),
            Failure::Output(_) => None,
            Failure::Truncated { .. } => {
                Some("what is there is intact: `portent convert IN OUT` keeps it, `portent stats` describes it".into())
            }
        }
    }

    /// Tells the user, and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        if self.is_broken_pipe() {
            return ExitCode::NothingFound;
        }
        terminal::message("error", &self.to_string());
        if let Some(help) = self.help() {
            terminal::message("help", &help);
        }
        ExitCode::BadInput
    }
}
