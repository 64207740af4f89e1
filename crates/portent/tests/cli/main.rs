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

use std::path::{Path, PathBuf};
use tempfile::TempDir;

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

/// A directory to run the command in, so that every path it prints is a short relative one.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }
    fn with(name: &str, contents: impl AsRef<[u8]>) -> Self {
        Self::new().and(name, contents)
    }
    fn and(self, name: &str, contents: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path(name), contents).unwrap();
        self
    }
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn command(&self, line: &str) -> assert_cmd::Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("portent");
        command.current_dir(self.dir.path()).env_remove("COLUMNS").env("NO_COLOR", "1");
        command.args(line.split_whitespace());
        command
    }
    /// Runs a command line and shows all that a user and a script would see of it.
    fn session(&self, line: &str) -> String {
        self.session_with(line, "")
    }
    fn session_with(&self, line: &str, stdin: impl Into<Vec<u8>>) -> String {
        let output = self.command(line).write_stdin(stdin).output().unwrap();
        let mut text = format!("$ portent {line}\n{}", String::from_utf8(output.stdout).unwrap());
        if !output.stderr.is_empty() {
            text.push_str(&format!("--- stderr\n{}", String::from_utf8(output.stderr).unwrap()));
        }
        match output.status.code() {
            Some(code) => text.push_str(&format!("--- exit {code}\n")),
            None => text.push_str(&format!("--- {}\n", output.status)),
        }
        text
    }
    /// Runs a command line that must succeed; its standard output.
    fn ok(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
