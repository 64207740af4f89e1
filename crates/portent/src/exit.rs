//! Exit statuses: part of the contract with scripts.

/// What the exit status of `portent` says.
///
/// A number never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// Done, and nothing was found. Also a `replay` that does not show its finding.
    NothingFound = 0,
    /// Something was found. Also a `replay` that shows its finding.
    Findings = 1,
    /// Bad usage, bad input, a malformed trace, or a command that is not built yet.
    BadInput = 2,
    /// The program to record or replay could not be started.
    NotStarted = 3,
    /// With `--strict`: nothing was found, but the search was incomplete.
    Incomplete = 4,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}

/// The statuses as the help pages list them.
pub(crate) const HELP: &str = "\
Exit status:
  0  nothing found; the command did its work
  1  findings
  2  bad usage, bad input, a malformed trace, or a command that is not built yet
  3  the program could not be started
  4  with --strict: nothing found, but the search was incomplete";
