//! `portent recover`: traces of recordings whose recorder was ended before it could write them.

use crate::args::RecoverArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::{count, counted};
use crate::{reports, terminal};
use portent_native::record::run_of;
use portent_native::run::owner::{self, Stale};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Lists what there is, and makes traces of it in the current directory.
pub(crate) fn run(args: &RecoverArgs) -> Result<ExitCode, Failure> {
    let all = owner::stale();
    if all.is_empty() {
        terminal::message("note", "no recording was left behind");
    }
    let mut failed = None;
    for one in &all {
        let what = format!("`{}`, {}", reports::words(&one.invocation.arguments), ago(one.age));
        if args.list {
            super::print(&format!("{what}: {}\n", one.directory.display()))?;
            continue;
        }
        if args.discard {
            one.remove().map_err(|error| removing(one, &error))?;
            super::print(&format!("{what}: removed\n"))?;
            continue;
        }
        match recovered(one) {
            Ok((path, events)) => {
                super::print(&format!("{}: {} of {what}\n", path.display(), counted(events, "event")))?;
                one.remove().map_err(|error| removing(one, &error))?;
            }
            // The others may be whole.
            Err(failure) => {
                terminal::message("warning", &format!("{what}: {failure}"));
                failed = Some(failure);
            }
        }
    }
    failed.map_or(Ok(ExitCode::NothingFound), Err)
}

/// Says that there is something to recover, if so.
pub(crate) fn tell() {
    let all = owner::stale();
    if !all.is_empty() {
        let recordings = counted(all.len() as u64, "recording");
        let text = format!("{recordings} of a portent that was ended: `portent recover` makes traces of what is there");
        terminal::message("note", &text);
    }
}

fn recovered(one: &Stale) -> Result<(PathBuf, u64), Failure> {
    let run = run_of(&one.log()?, &one.invocation)?;
    let path = place(&one.invocation.program);
    run.save(&path)?;
    Ok((path, run.events.len() as u64))
}

/// A name that is free here.
fn place(program: &Path) -> PathBuf {
    let name = |number: u64| {
        let mut name = program.file_name().map_or_else(|| OsString::from("program"), OsString::from);
        name.push(format!(".recovered-{number}.portent"));
        PathBuf::from(name)
    };
    (1..).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(0))
}

fn removing(one: &Stale, error: &std::io::Error) -> Failure {
    Failure::usage(format!("{}: {error}", one.directory.display()), "remove the directory yourself")
}

fn ago(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / 60, "minute"),
        7200..172_800 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    format!("{} {unit}{} ago", count(number), if number == 1 { "" } else { "s" })
}
