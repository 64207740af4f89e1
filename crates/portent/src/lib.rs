//! The `portent` command as a library: everything below it returns data and errors, this crate prints them and exits.
//!
//! One module per command in `commands`; the command line itself is defined once, in `args`. Results go to
//! standard output, everything else to standard error, and what the exit status says is [`ExitCode`].

#![forbid(unsafe_code)]

mod args;
mod commands;
mod exit;
mod failure;
mod figures;
mod reports;
mod terminal;
mod traces;

pub use exit::ExitCode;
pub use failure::Failure;

use args::{Arguments, Command};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use commands::knobs::Knobs;
use std::ffi::OsString;

/// Runs the command line `arguments`, the first of which is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match parse(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nowhere left to complain when even this cannot be written.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::NothingFound,
                _ => ExitCode::BadInput,
            };
        }
    };
    let done = match arguments.command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Gen(args) => commands::generate::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
        Command::Check(_) => Err(not_built("check")),
        Command::Record(_) => Err(not_built("record")),
        Command::Replay(_) => Err(not_built("replay")),
        Command::Cc(_) => Err(not_built("cc")),
        Command::Cxx(_) => Err(not_built("c++")),
    };
    done.unwrap_or_else(|failure| failure.report())
}

/// Parses a command line; the settings of `gen` show their defaults.
fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command().mut_subcommand("gen", |gen_command| {
        Knobs::defaults().into_iter().fold(gen_command, |command, (knob, default)| {
            command.mut_arg(knob, |arg| {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                if default.is_empty() { arg } else { arg.help(format!("{help} [default: {default}]")) }
            })
        })
    });
    let matches = command.try_get_matches_from_mut(arguments)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn not_built(command: &str) -> Failure {
    Failure::usage(
        format!("portent {command} is not built yet"),
        "today portent works on traces: `portent gen` makes one, `portent validate`, `portent stats`, \
         `portent convert` and `portent predict` take one in STD text or .portent; `portent demo` shows them all",
    )
}
