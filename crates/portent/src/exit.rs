//! Exit statuses: part of the contract with scripts.

/// What the exit status of `portent` says.
///
/// A number never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitCode {
    /// Done, and no failure was found. Also a `replay` that does not show its finding.
    NothingFound,
    /// A failure was found. Also a `replay` that shows its finding.
    Findings,
    /// Bad usage, bad input, a malformed trace, or something that this build cannot do.
    BadInput,
    /// The program to record or replay could not be started.
    NotStarted,
    /// With `--strict`: no failure was found, but the search was incomplete.
    Incomplete,
    /// `record`: what the recorded program ended with.
    Program(u8),
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(match code {
            ExitCode::NothingFound => 0,
            ExitCode::Findings => 1,
            ExitCode::BadInput => 2,
            ExitCode::NotStarted => 3,
            ExitCode::Incomplete => 4,
            ExitCode::Program(status) => status,
        })
    }
}

/// The statuses as the help pages list them.
pub(crate) const HELP: &str = "\
Exit status:
  0  no failure found (observations do not count); the command did its work
  1  failures found
  2  bad usage, bad input, a malformed trace, or something that this build cannot do
  3  the program could not be started
  4  with --strict: no failure found, but the search was incomplete";
