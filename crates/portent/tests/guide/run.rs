//! Running the commands of a page.

use crate::PORTENT;
use crate::page::{Action, Command, Page, missing};
use portent_testing::command::{Finished, LIMIT, NOTHING, run, there_is};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command as Process;
use std::time::Instant;

/// Runs pages.
pub(crate) struct Runner {
    compiler: bool,
}

impl Runner {
    /// Looks for a compiler.
    pub(crate) fn new() -> Runner {
        Runner { compiler: there_is("gcc") }
    }

    /// Runs a page; how many commands that were.
    pub(crate) fn run(&self, page: &Page) -> Result<usize, String> {
        let builds =
            |action: &Action| matches!(action, Action::Commands { commands, .. } if commands.iter().any(builds));
        if !self.compiler && page.actions.iter().any(builds) {
            skipped(&page.name, "no gcc on this machine");
            return Ok(0);
        }
        let scratch = Scratch::new();
        let mut ran = 0;
        for action in &page.actions {
            match action {
                Action::File { name, text } => scratch.write(name, text),
                Action::Commands { needs, commands } => {
                    if let Some(tool) = needs.iter().find(|tool| !there_is(tool)) {
                        skipped(&page.name, &format!("{} commands need {tool}", commands.len()));
                        continue;
                    }
                    for command in commands {
                        try_one(command, scratch.directory())?;
                        ran += 1;
                    }
                }
            }
        }
        Ok(ran)
    }
}

fn try_one(command: &Command, directory: &Path) -> Result<(), String> {
    let started = Instant::now();
    let finished = execute(&command.text, directory);
    let printed = finished.out();
    if std::env::var_os("PORTENT_GUIDE_SHOW").is_some() {
        eprintln!("$ {} ({:.1} s)\n{printed}", command.text, started.elapsed().as_secs_f64());
    }
    let told = |what: String| {
        let Command { line, text, .. } = command;
        Err(format!("line {line}: `{text}` {what}; it printed\n{printed}"))
    };
    match finished.status {
        None => return told(format!("did not end in {} s", LIMIT.as_secs())),
        // As shells tell of signals.
        Some(status) => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            if code != command.status {
                return told(format!("exits with {code}, not with {}", command.status));
            }
        }
    }
    match missing(&command.shown, &printed) {
        Some(line) => told(format!("does not print, at its place, `{line}`")),
        None => Ok(()),
    }
}

/// Runs a command as a shell would, both streams in their order.
fn execute(text: &str, directory: &Path) -> Finished {
    let portent = Path::new(PORTENT.program).parent().expect("it is in a directory").to_owned();
    let search = std::env::var_os("PATH").unwrap_or_default();
    let search = std::env::join_paths(std::iter::once(portent).chain(std::env::split_paths(&search)));
    let mut shell = Process::new("bash");
    shell.args(["-c", &format!("exec 2>&1; {text}")]);
    shell.env("PATH", search.expect("the search path has no odd characters"));
    shell.env("PORTENT_CACHE", PORTENT.cache()).env("NO_COLOR", "1");
    run(&mut shell, directory, NOTHING, LIMIT)
}

/// Whether a command needs a compiler.
fn builds(command: &Command) -> bool {
    ["portent cc", "portent c++", "gcc", "make", "cmake", "meson"].iter().any(|tool| command.text.contains(tool))
}
