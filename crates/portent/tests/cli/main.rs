//! The command as users meet it: what it prints, where, and its exit status.

mod convert;
mod errors;
mod generate;
mod help;
mod inspect;
mod predict;
#[cfg(target_os = "linux")]
mod record;
mod spec;
mod streams;

use portent_testing::command::{Finished, Input, LIMIT, Portent, run};
use portent_testing::scratch::Scratch;
use std::process::Command;

const PORTENT: Portent = Portent::new(env!("CARGO_BIN_EXE_portent"), env!("CARGO_TARGET_TMPDIR"));

/// A run of a bank with two locks, stopped in the middle.
const BANK: &str = "\
main|fork(A)|bank.c:1
main|fork(B)|bank.c:2
A|begin(deposit)|bank.c:10
A|acq(l)|bank.c:11
A|acq(m)|bank.c:12
A|r(balance)|bank.c:13|0
A|w(balance)|bank.c:14|5
A|rel(m)|bank.c:15
B|busy(l)|bank.c:20
A|rel(l)|bank.c:16
A|end(deposit)|bank.c:17
B|acq(l)|bank.c:21
B|u(hits)|bank.c:22|1
B|r.acq(balance)|bank.c:23|5
B|begin(audit)|bank.c:24
";

/// Lines of the command in a directory of its own, so that every path it prints is a short relative one.
trait Session {
    /// The command with the words of a line.
    fn portent(&self, line: &str) -> Command;
    /// Runs a command line.
    fn run(&self, line: &str, stdin: &[u8]) -> Finished;
    /// Runs a command line and shows all that a user and a script would see of it.
    fn session(&self, line: &str) -> String {
        self.session_with(line, "")
    }
    fn session_with(&self, line: &str, stdin: impl AsRef<[u8]>) -> String {
        let finished = self.run(line, stdin.as_ref());
        let mut text = format!("$ portent {line}\n{}", finished.out());
        if !finished.stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", finished.stderr));
        }
        text.push_str(&format!("--- {}\n", finished.ending()));
        text
    }
    /// The exit status of a command line.
    fn status(&self, line: &str) -> Option<i32> {
        self.run(line, b"").code()
    }
    /// Runs a command line that must succeed; its standard output.
    fn ok(&self, line: &str) -> String {
        let finished = self.run(line, b"");
        assert!(finished.exited_with(0), "{}", finished.describe());
        finished.out()
    }
}

impl Session for Scratch {
    fn portent(&self, line: &str) -> Command {
        let mut command = PORTENT.command();
        command.current_dir(self.directory()).args(line.split_whitespace());
        command
    }
    fn run(&self, line: &str, stdin: &[u8]) -> Finished {
        run(&mut self.portent(line), self.directory(), Input::Pipe(stdin), LIMIT)
    }
}
