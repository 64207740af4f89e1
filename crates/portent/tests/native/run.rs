//! Running a command with a time limit, and what came out of it.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a command left behind.
pub(crate) struct Outcome {
    /// `None`: it was killed because its time was up.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// The command line, for reports.
    pub(crate) command: String,
}

impl Outcome {
    /// How it ended, in words.
    pub(crate) fn ending(&self) -> String {
        match self.status {
            None => "did not end in time".into(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit {code}"),
                (_, Some(signal)) => format!("signal {signal}"),
                _ => status.to_string(),
            },
        }
    }
    pub(crate) fn exited_with(&self, code: i32) -> bool {
        self.status.and_then(|status| status.code()) == Some(code)
    }
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
    /// Everything about it, shortened: for the report of a failure.
    pub(crate) fn describe(&self) -> String {
        format!(
            "$ {}\n--- {}\n--- standard output\n{}\n--- standard error\n{}",
            self.command,
            self.ending(),
            shortened(&self.out()),
            shortened(&self.stderr)
        )
    }
}

fn shortened(text: &str) -> String {
    const MOST: usize = 1500;
    if text.len() <= MOST {
        return text.trim_end().to_owned();
    }
    let cut = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    format!("{} […] {}", &text[..cut(MOST / 2)], text[cut(text.len() - MOST / 2)..].trim_end())
}

/// Runs a command in a directory with this standard input. Output goes to files there, so that neither a full pipe nor a
/// grandchild that keeps one open can block the test.
pub(crate) fn run(command: &mut Command, directory: &Path, stdin: &str, limit: Duration) -> Outcome {
    let path = |what: &str| directory.join(format!(".{what}"));
    std::fs::write(path("stdin"), stdin).expect("a scratch directory can be written");
    let line = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let mut child = command
        .current_dir(directory)
        .stdin(File::open(path("stdin")).expect("it was just written"))
        .stdout(File::create(path("stdout")).expect("a scratch directory can be written"))
        .stderr(File::create(path("stderr")).expect("a scratch directory can be written"))
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            break Some(status);
        }
        if Instant::now() >= end {
            kill(&format!("-{}", child.id()));
            child.wait().expect("the child is ours");
            break None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    Outcome {
        status,
        stdout: std::fs::read(path("stdout")).unwrap_or_default(),
        stderr: String::from_utf8_lossy(&std::fs::read(path("stderr")).unwrap_or_default()).into_owned(),
        command: line,
    }
}

/// Sends SIGKILL to a process, or to a process group if the number is negative.
pub(crate) fn kill(process: &str) {
    let _ = Command::new("kill").args(["-9", "--", process]).stderr(Stdio::null()).status();
}

/// Says on standard error that a test checks nothing here, past the harness, which would keep it to itself.
pub(crate) fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {test}: {why}");
}
