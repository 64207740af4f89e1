//! A command with a time limit, and what came of it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// No recording, replay or search of a test takes longer on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(300);

/// The command `portent` under test, which only the tests of its own package are told of:
/// `Portent::new(env!("CARGO_BIN_EXE_portent"), env!("CARGO_TARGET_TMPDIR"))`.
#[derive(Clone, Copy, Debug)]
pub struct Portent {
    /// The program.
    pub program: &'static str,
    /// A directory that stays from run to run.
    pub folder: &'static str,
}

impl Portent {
    /// The command, and a directory that stays from run to run.
    pub const fn new(program: &'static str, folder: &'static str) -> Self {
        Self { program, folder }
    }
    /// The command without arguments: no colours, as wide as it likes, and with a cache that tests share.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command
            .env("NO_COLOR", "1")
            .env("PORTENT_CACHE", self.cache())
            .env("PORTENT_STATE", self.cache().join("state"));
        command.env_remove("COLUMNS").env_remove("PORTENT_CC").env_remove("PORTENT_CXX");
        command
    }
    /// Where the runtime is unpacked.
    pub fn cache(&self) -> PathBuf {
        Path::new(self.folder).join("cache")
    }
}

/// What a command reads.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A file with this text.
    File(&'a [u8]),
    /// A pipe through which this text comes.
    Pipe(&'a [u8]),
}

/// Nothing.
pub const NOTHING: Input<'static> = Input::File(b"");

/// What a command left behind.
#[derive(Debug)]
pub struct Finished {
    /// `None`: it was killed because its time was up.
    pub status: Option<ExitStatus>,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it said.
    pub stderr: String,
    /// The command line, for reports.
    pub command: String,
}

impl Finished {
    /// How it ended, in words.
    pub fn ending(&self) -> String {
        match self.status {
            None => "did not end in time".into(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit {code}"),
                (_, Some(signal)) => format!("signal {signal}"),
                _ => status.to_string(),
            },
        }
    }
    /// Its exit status, if it has one.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }
    /// Whether it ended with this exit status.
    pub fn exited_with(&self, code: i32) -> bool {
        self.code() == Some(code)
    }
    /// What it printed, as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
    /// What it printed, and then what it said.
    pub fn told(&self) -> String {
        self.out() + &self.stderr
    }
    /// Everything about it, shortened: for the report of a failure.
    pub fn describe(&self) -> String {
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

/// Runs a command in a directory. Output goes to files, so that neither a full pipe nor a grandchild that keeps one open can
/// block the test; what is still running when the time is up is killed, with all its children.
pub fn run(command: &mut Command, directory: &Path, input: Input<'_>, limit: Duration) -> Finished {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let (stdout, stderr) = (file(b""), file(b""));
    command.stdin(match input {
        Input::File(text) => Stdio::from(file(text)),
        Input::Pipe(_) => Stdio::piped(),
    });
    command.stdout(shared(&stdout)).stderr(shared(&stderr)).current_dir(directory).process_group(0);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    let group = format!("-{}", child.id());
    let (ended, end) = channel::<()>();
    let status = std::thread::scope(|scope| {
        let killed = scope.spawn(move || {
            let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                kill(&group);
            }
            late
        });
        if let (Some(mut pipe), Input::Pipe(text)) = (child.stdin.take(), input) {
            // Who does not read it all need not.
            scope.spawn(move || pipe.write_all(text));
        }
        let status = child.wait().expect("the child is ours");
        drop(ended);
        (!killed.join().expect("waiting does not panic")).then_some(status)
    });
    let stderr = String::from_utf8_lossy(&contents(&stderr)).into_owned();
    Finished { status, stdout: contents(&stdout), stderr, command: line }
}

/// A file without a name that is to be read from its beginning.
fn file(text: &[u8]) -> File {
    let file = tempfile::tempfile().expect("there is room for temporary files");
    file.write_all_at(text, 0).expect("there is room for temporary files");
    file
}

fn shared(file: &File) -> File {
    file.try_clone().expect("a file can be shared")
}

/// All that is in a file, wherever those who write to it are.
fn contents(file: &File) -> Vec<u8> {
    let length = file.metadata().expect("it is open").len();
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).expect("files that are written to only grow");
    bytes
}

/// Sends SIGKILL to a process, or to a process group if the number is negative.
pub fn kill(process: &str) {
    let _ = Command::new("kill").args(["-9", "--", process]).stderr(Stdio::null()).status();
}

/// Whether a tool is on the search path.
pub fn there_is(tool: &str) -> bool {
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).any(|folder| folder.join(tool).is_file())
}

#[test]
fn a_command_reads_and_ends_or_is_killed() {
    let here = std::env::temp_dir();
    for input in [Input::File(b"hello"), Input::Pipe(b"hello")] {
        let cat = run(Command::new("sh").args(["-c", "cat; echo no >&2; exit 3"]), &here, input, LIMIT);
        assert_eq!((cat.code(), cat.told().as_str()), (Some(3), "hellono\n"), "{}", cat.describe());
    }
    let late = run(Command::new("sh").args(["-c", "sleep 1000 & wait"]), &here, NOTHING, Duration::from_millis(50));
    assert_eq!(late.ending(), "did not end in time");
}
