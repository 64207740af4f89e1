//! Running the commands of a page.

use crate::page::{Action, Command, Page, missing};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command as Process, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No command of the guide takes longer, on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs pages, with one place for Portent's runtime.
pub(crate) struct Runner {
    cache: TempDir,
    compiler: bool,
}

impl Runner {
    /// Looks for a compiler.
    pub(crate) fn new() -> Runner {
        Runner { cache: TempDir::new().expect("there is a temporary directory"), compiler: there_is("gcc") }
    }

    /// Runs a page; how many commands that were.
    pub(crate) fn run(&self, page: &Page) -> Result<usize, String> {
        let builds =
            |action: &Action| matches!(action, Action::Commands { commands, .. } if commands.iter().any(builds));
        if !self.compiler && page.actions.iter().any(builds) {
            eprintln!("SKIPPED: {}: no gcc on this machine", page.name);
            return Ok(0);
        }
        let place = TempDir::new().expect("there is a temporary directory");
        let mut ran = 0;
        for action in &page.actions {
            match action {
                Action::File { name, text } => {
                    let path = place.path().join(name);
                    let folder = path.parent().expect("a file is in a directory");
                    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text)).expect("can write");
                }
                Action::Commands { needs, commands } => {
                    if let Some(tool) = needs.iter().find(|tool| !there_is(tool)) {
                        eprintln!("SKIPPED: {}: {} commands need {tool}", page.name, commands.len());
                        continue;
                    }
                    for command in commands {
                        self.try_one(command, place.path())?;
                        ran += 1;
                    }
                }
            }
        }
        Ok(ran)
    }

    fn try_one(&self, command: &Command, place: &Path) -> Result<(), String> {
        let started = Instant::now();
        let (status, printed) = self.execute(&command.text, place);
        if std::env::var_os("PORTENT_GUIDE_SHOW").is_some() {
            eprintln!("$ {} ({:.1} s)\n{printed}", command.text, started.elapsed().as_secs_f64());
        }
        let told = |what: String| {
            let Command { line, text, .. } = command;
            Err(format!("line {line}: `{text}` {what}; it printed\n{printed}"))
        };
        match status {
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

    /// Runs a command as a shell would; its status, unless it took too long, and all that it printed.
    fn execute(&self, text: &str, place: &Path) -> (Option<ExitStatus>, String) {
        let portent = Path::new(env!("CARGO_BIN_EXE_portent")).parent().expect("it is in a directory").to_owned();
        let search = std::env::var_os("PATH").unwrap_or_default();
        let search = std::env::join_paths(std::iter::once(portent).chain(std::env::split_paths(&search)));
        // A file instead of pipes: both streams in their order, and nobody has to read them meanwhile.
        let output = self.cache.path().join("printed");
        let file = File::create(&output).expect("can write");
        let errors = file.try_clone().expect("a file can be shared");
        let mut child = Process::new("bash")
            .args(["-c", text])
            .current_dir(place)
            .env("PATH", search.expect("the search path has no odd characters"))
            .env("PORTENT_CACHE", self.cache.path().join("runtime"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        let deadline = Instant::now() + LIMIT;
        let mut status = child.try_wait().expect("a child can be waited for");
        while status.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            status = child.try_wait().expect("a child can be waited for");
        }
        if status.is_none() {
            child.kill().and_then(|()| child.wait()).expect("a child can be stopped");
        }
        let printed = std::fs::read(&output).expect("what was written can be read");
        (status, String::from_utf8_lossy(&printed).into_owned())
    }
}

/// Whether a command needs a compiler.
fn builds(command: &Command) -> bool {
    ["portent cc", "portent c++", "gcc", "make", "cmake", "meson"].iter().any(|tool| command.text.contains(tool))
}

fn there_is(tool: &str) -> bool {
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).any(|folder| folder.join(tool).is_file())
}
