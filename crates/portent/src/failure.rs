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
    /// A program, or the compiler, could not be started.
    #[error("{message}")]
    NotStarted {
        /// What did not start, and why.
        message: String,
        /// What to do about it.
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

impl From<portent_explore::Error> for Failure {
    fn from(error: portent_explore::Error) -> Self {
        use portent_explore::Error;
        match error {
            Error::Trace(error) => Failure::Trace(error),
            Error::Refused { message, help } => Failure::Usage { message, help },
            Error::NotStarted { message, help } => Failure::NotStarted { message, help },
        }
    }
}

impl Failure {
    /// Wrong use of the command line.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: help.into() }
    }

    /// A program that did not start.
    pub(crate) fn not_started(message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::NotStarted { message: message.into(), help: help.into() }
    }

    /// Whether the reader of our output went away, as `head` does: that is no error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        let error = match self {
            Failure::Output(error) => error,
            Failure::Trace(TraceError { problem: Problem::Io(error), .. }) => error,
            _ => return false,
        };
        error.kind() == ErrorKind::BrokenPipe
    }

    fn help(&self) -> Option<String> {
        match self {
            Failure::Trace(error) => Some(error.help().unwrap_or_else(|| advice(&error.problem)).to_owned()),
            Failure::Usage { help, .. } | Failure::NotStarted { help, .. } => Some(help.clone()),
            Failure::Output(error) => Some(advice_on(error).unwrap_or("can it be written to?").to_owned()),
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
        match self {
            Failure::NotStarted { .. } => ExitCode::NotStarted,
            _ => ExitCode::BadInput,
        }
    }
}

/// What to do on the command line about problems that speak for themselves.
fn advice(problem: &Problem) -> &'static str {
    match problem {
        Problem::Io(error) if advice_on(error).is_some() => advice_on(error).unwrap_or_default(),
        Problem::Directory => "name a file in it; `portent validate` takes several",
        Problem::Empty => "`portent gen` makes a trace to try things on",
        Problem::UnknownFormat(_) => {
            "give the file one of these endings, or name the format of an output with --format"
        }
        Problem::BadUtf8 => "names are text in UTF-8: convert the file, for example with `iconv -t UTF-8`",
        Problem::LineTooLong { .. } => "the file has lines that are not events: is it a trace?",
        Problem::WriteOnly(_) => "keep the trace in .portent or .std as well",
        Problem::BadValue { .. } => "the fourth field is the value that was read or written: leave it out if unknown",
        _ => "`portent COMMAND --help` says what the command takes",
    }
}

/// The same about what the system refuses.
fn advice_on(error: &std::io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::NotFound => "is the path right? `-` stands for standard input and output",
        ErrorKind::PermissionDenied => "you do not have permission to read or write there",
        ErrorKind::StorageFull => "the disk is full: make room there, or name a place on another one",
        ErrorKind::FileTooLarge => "a limit for the size of files is reached: see `ulimit -f`",
        ErrorKind::QuotaExceeded => "your quota is used up: make room, or name a place on another disk",
        ErrorKind::ReadOnlyFilesystem => "nothing can be written there: name a place on another file system",
        ErrorKind::NotConnected => "a pipe needs somebody who reads it",
        _ => return None,
    })
}
