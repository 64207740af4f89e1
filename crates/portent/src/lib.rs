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
mod interrupt;
mod reaction;
mod reports;
#[cfg(target_os = "linux")]
mod runs;
mod search;
#[cfg(target_os = "linux")]
mod searches;
mod terminal;
mod traces;

pub use exit::ExitCode;
pub use failure::Failure;

use args::{Arguments, Command};
use clap::FromArgMatches;
use clap::error::ErrorKind;
use portent_native::build::compiler::Language;
use std::ffi::OsString;

/// Runs the command line `arguments`, the first of which is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // A write beyond the limit for files is to fail, and to be told; it would end this process. What it starts is not affected: a handler
    // does not outlive `exec`.
    #[cfg(target_os = "linux")]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::new(false.into()));
    if let Some((language, arguments)) = commands::cc::arguments(&arguments) {
        return commands::cc::run(language, arguments).unwrap_or_else(|failure| failure.report());
    }
    let words = arguments.clone();
    let arguments = match parse(arguments) {
        Ok(arguments) => {
            warn_of_misplaced(&words, &arguments.command);
            arguments
        }
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
        #[cfg(target_os = "linux")]
        Command::Demo(args) => commands::demo::run(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Demo(_) => {
            Err(Failure::usage("programs can be recorded on Linux only", "try it there; traces can be examined here"))
        }
        Command::Validate(args) => commands::validate::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Gen(args) => commands::generate::run(&args),
        Command::Predict(args) => commands::predict::run(&args),
        #[cfg(target_os = "linux")]
        Command::Check(args) => commands::check::run(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Check(_) => {
            Err(Failure::usage("programs can be checked on Linux only", "check there; traces can be examined here"))
        }
        #[cfg(target_os = "linux")]
        Command::Watch(args) => commands::watch::run(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Watch(_) => {
            Err(Failure::usage("programs can be watched on Linux only", "watch there; traces can be examined here"))
        }
        #[cfg(target_os = "linux")]
        Command::Record(args) => commands::record::run(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Record(_) => {
            Err(Failure::usage("programs can be recorded on Linux only", "record there; traces can be examined here"))
        }
        #[cfg(target_os = "linux")]
        Command::Replay(args) => commands::replay::run(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Replay(_) => {
            Err(Failure::usage("programs can be replayed on Linux only", "replay there; traces can be examined here"))
        }
        #[cfg(target_os = "linux")]
        Command::Recover(args) => commands::recover::run(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Recover(_) => {
            Err(Failure::usage("programs can be recorded on Linux only", "there is nothing to recover here"))
        }
        Command::Spec(args) => commands::spec::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
        Command::Cc(args) => commands::cc::run(Language::C, &args.arguments),
        Command::Cxx(args) => commands::cc::run(Language::Cxx, &args.arguments),
    };
    done.unwrap_or_else(|failure| failure.report())
}

/// Says so where an option of Portent's stands behind the program, which then gets it. Behind `--` everybody knows.
fn warn_of_misplaced(words: &[OsString], command: &Command) {
    let (name, program) = match command {
        Command::Check(args) => ("check", &args.program),
        Command::Record(args) => ("record", &args.program),
        Command::Watch(args) => ("watch", &args.program),
        _ => return,
    };
    let before = words.len().saturating_sub(program.len() + 1);
    if words.get(before).is_some_and(|word| word == "--") {
        return;
    }
    let line = command_line();
    let Some(known) = line.find_subcommand(name) else { return };
    let is_ours = |word: &str| {
        let option = word.strip_prefix("--")?.split('=').next()?;
        known.get_arguments().any(|one| one.get_long() == Some(option)).then(|| format!("--{option}"))
    };
    if let Some(option) = program.iter().skip(1).find_map(|word| is_ours(word.to_str()?)) {
        let text = format!("{option} stands behind the program, which gets it; `portent {name}` takes no note of it");
        terminal::message("warning", &text);
        let shown = program[0].to_string_lossy();
        let help = format!(
            "for portent: `portent {name} {option} … -- {shown} …`; `--` before the program says that this is meant"
        );
        terminal::message("help", &help);
    }
}

/// The command line as clap knows it: what help, manual pages, completions and the reference are made from.
pub fn command_line() -> clap::Command {
    args::command_line()
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command_line();
    let matches = command.try_get_matches_from_mut(arguments)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}
