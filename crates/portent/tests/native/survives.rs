//! What a recording survives, and what the command says about programs it cannot record.

use crate::build::{Builder, Built, build, portent, unsupported};
use crate::check::LIMIT;
use crate::program::Program;
use crate::run::{kill, run, skipped};
use crate::scratch_directory;
use crate::trace;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn endless() -> Built {
    build(&Program::named("special/endless.c"), Builder::Portent).unwrap()
}

fn valid(trace: &Path) -> trace::Contents {
    let outcome = run(portent().arg("validate").arg(trace), trace.parent().unwrap(), "", LIMIT);
    assert!(outcome.exited_with(0), "{}", outcome.describe());
    trace::read(trace).unwrap()
}

#[test]
fn killing_the_program_with_signal_9_leaves_a_valid_trace() {
    if let Some(why) = unsupported() {
        return skipped("kill -9", &why);
    }
    let (built, directory) = (endless(), scratch_directory());
    let trace = directory.path().join("killed.portent");
    let mut command = portent();
    command.arg("record").arg("-o").arg(&trace).arg("--").arg(&built.binary);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    kill(line.trim());
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "record ends as the program did, not by {status}");
    let contents = valid(&trace);
    assert_eq!(contents.threads(), 2);
    assert!(contents.events.len() > 1000, "only {} events", contents.events.len());
}

/// A file system of a few megabytes, mounted until it is dropped.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    fn new(size: &str) -> Result<Self, String> {
        let directory = scratch_directory();
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "portent-test"])
            .arg(directory.path())
            .output()
            .map_err(|error| format!("mount: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(Self { directory }) } else { Err(said) }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.directory.path()).status();
    }
}

#[test]
fn a_full_disk_under_the_recording_is_said_and_the_trace_is_valid_up_to_there() {
    if let Some(why) = unsupported() {
        return skipped("full disk", &why);
    }
    let disk = match SmallDisk::new("4m") {
        Ok(disk) => disk,
        Err(why) => return skipped("full disk", &format!("no small file system can be mounted here: {why}")),
    };
    let directory = scratch_directory();
    let trace = directory.path().join("full.portent");
    // About ten million events, of which the disk holds a small part.
    let mut command = portent();
    command.env("TMPDIR", disk.directory.path()).arg("record").arg("-o").arg(&trace).arg("--");
    let outcome = run(command.arg(&endless().binary).arg("1000000"), directory.path(), "", LIMIT);
    assert!(outcome.exited_with(0), "the program itself needs no disk\n{}", outcome.describe());
    assert!(outcome.out().ends_with("counted 2000000\n"), "{}", outcome.describe());
    let said = outcome.stderr.to_lowercase();
    assert!(said.contains("full") || said.contains("space"), "{}", outcome.describe());
    let contents = valid(&trace);
    assert!(contents.events.len() > 10_000, "only {} events", contents.events.len());
    assert_eq!(std::fs::read_dir(disk.directory.path()).unwrap().count(), 0, "temporary files are left behind");
}

#[test]
fn a_full_disk_under_the_trace_is_said() {
    if let Some(why) = unsupported() {
        return skipped("full disk under the trace", &why);
    }
    let disk = match SmallDisk::new("16k") {
        Ok(disk) => disk,
        Err(why) => return skipped("full disk under the trace", &format!("nothing can be mounted here: {why}")),
    };
    let directory = scratch_directory();
    let trace = disk.directory.path().join("full.portent");
    let built = build(&Program::named("stress_table.c"), Builder::Portent).unwrap();
    let mut command = portent();
    command.arg("record").arg("-o").arg(&trace).arg("--").arg(&built.binary).arg("300");
    let outcome = run(&mut command, directory.path(), "", LIMIT);
    assert!(outcome.out().contains("left 700"), "{}", outcome.describe());
    assert!(!outcome.exited_with(0), "there is no trace: that is no success\n{}", outcome.describe());
    let said = outcome.stderr.to_lowercase();
    assert!(said.contains("full.portent") && said.contains("space"), "{}", outcome.describe());
    assert!(!said.contains("panicked"), "{}", outcome.describe());
}

#[test]
fn what_cannot_be_started_is_said_with_status_3() {
    if let Some(why) = unsupported() {
        return skipped("programs that cannot be started", &why);
    }
    let directory = scratch_directory();
    std::fs::write(directory.path().join("text"), "no program\n").unwrap();
    for program in ["./absent", "./text", "no-such-command-anywhere", "/"] {
        let outcome = run(portent().args(["record", "--", program]), directory.path(), "", LIMIT);
        assert!(outcome.exited_with(3), "{}", outcome.describe());
        assert!(outcome.stderr.contains(program.trim_start_matches("./")), "{}", outcome.describe());
    }
}

#[test]
fn recording_from_another_directory_by_search_path_and_to_the_default_place_works() {
    if let Some(why) = unsupported() {
        return skipped("search path", &why);
    }
    let program = Program::named("thread_join.c");
    let (built, directory) = (build(&program, Builder::Portent).unwrap(), scratch_directory());
    let path = format!("{}:/usr/bin:/bin", built.binary.parent().unwrap().display());
    let outcome = run(portent().env("PATH", path).args(["record", "--", "thread_join"]), directory.path(), "", LIMIT);
    assert!(outcome.exited_with(0), "{}", outcome.describe());
    assert_eq!(valid(&directory.path().join("thread_join.portent")).threads(), 5);
}
