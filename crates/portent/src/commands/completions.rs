//! `portent completions`: a script that completes commands and options in a shell.

use super::print_as_it_is;
use crate::args::{self, CompletionsArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;

/// Prints the script for the shell.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command_line(), "portent", &mut script);
    print_as_it_is(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::NothingFound)
}
