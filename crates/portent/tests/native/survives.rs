//! What a recording survives, and what the command says about programs it cannot record.

use crate::{PORTENT, build, left_out};
use portent_testing::command::{LIMIT, NOTHING, kill, run};
use portent_testing::programs::{Builder, Built, Contents, Program, read};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn endless() -> Built {
    build(&Program::named("special/endless.c"), Builder::Portent).unwrap()
}

fn valid(trace: &Path) -> Contents {
    let finished = run(PORTENT.command().arg("validate").arg(trace), trace.parent().unwrap(), NOTHING, LIMIT);
    assert!(finished.exited_with(0), "{}", finished.describe());
    read(trace).unwrap()
}

#[test]
fn killing_the_program_with_signal_9_leaves_a_valid_trace() {
    if left_out("kill -9") {
        return;
    }
    let (built, scratch) = (endless(), Scratch::new());
    let trace = scratch.path("killed.portent");
    let mut command = PORTENT.command();
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
pub(crate) struct SmallDisk {
    scratch: Scratch,
}

impl SmallDisk {
    pub(crate) fn new(size: &str) -> Result<Self, String> {
        let scratch = Scratch::new();
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "portent-test"])
            .arg(scratch.directory())
            .output()
            .map_err(|error| format!("mount: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(Self { scratch }) } else { Err(said) }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.scratch.directory()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.scratch.directory()).status();
    }
}

#[test]
fn a_full_disk_under_the_recording_is_said_and_the_trace_is_valid_up_to_there() {
    if left_out("full disk") {
        return;
    }
    let disk = match SmallDisk::new("4m") {
        Ok(disk) => disk,
        Err(why) => return skipped("full disk", &format!("no small file system can be mounted here: {why}")),
    };
    let scratch = Scratch::new();
    let trace = scratch.path("full.portent");
    // About ten million events, of which the disk holds a small part.
    let mut command = PORTENT.command();
    command.env("TMPDIR", disk.scratch.directory()).arg("record").arg("-o").arg(&trace).arg("--");
    let finished = run(command.arg(&endless().binary).arg("1000000"), scratch.directory(), NOTHING, LIMIT);
    assert!(finished.exited_with(0), "the program itself needs no disk\n{}", finished.describe());
    assert!(finished.out().ends_with("counted 2000000\n"), "{}", finished.describe());
    let said = finished.stderr.to_lowercase();
    assert!(said.contains("full") || said.contains("space"), "{}", finished.describe());
    let contents = valid(&trace);
    assert!(contents.events.len() > 10_000, "only {} events", contents.events.len());
    assert_eq!(disk.scratch.names(), [""; 0], "temporary files are left behind");
}

#[test]
fn a_full_disk_under_the_trace_is_said() {
    if left_out("full disk under the trace") {
        return;
    }
    let disk = match SmallDisk::new("16k") {
        Ok(disk) => disk,
        Err(why) => return skipped("full disk under the trace", &format!("nothing can be mounted here: {why}")),
    };
    let scratch = Scratch::new();
    let trace = disk.scratch.path("full.portent");
    let built = build(&Program::named("stress_table.c"), Builder::Portent).unwrap();
    let mut command = PORTENT.command();
    // The recording is kept.
    command.env("TMPDIR", scratch.directory());
    command.arg("record").arg("-o").arg(&trace).arg("--").arg(&built.binary).arg("300");
    let finished = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    assert!(finished.out().contains("left 700"), "{}", finished.describe());
    assert!(!finished.exited_with(0), "there is no trace: that is no success\n{}", finished.describe());
    let said = finished.stderr.to_lowercase();
    assert!(said.contains("full.portent") && said.contains("space"), "{}", finished.describe());
    let mut command = PORTENT.command();
    command.env("TMPDIR", scratch.directory()).arg("recover");
    let recovered = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    assert!(
        recovered.exited_with(0) && recovered.out().starts_with("stress_table.recovered-1.portent"),
        "{}",
        recovered.describe()
    );
    valid(&scratch.path("stress_table.recovered-1.portent"));
    assert!(!said.contains("panicked"), "{}", finished.describe());
}

#[test]
fn what_cannot_be_started_is_said_with_status_3() {
    if left_out("programs that cannot be started") {
        return;
    }
    let scratch = Scratch::new();
    scratch.write("text", "no program\n");
    for program in ["./absent", "./text", "no-such-command-anywhere", "/"] {
        let finished = run(PORTENT.command().args(["record", "--", program]), scratch.directory(), NOTHING, LIMIT);
        assert!(finished.exited_with(3), "{}", finished.describe());
        assert!(finished.stderr.contains(program.trim_start_matches("./")), "{}", finished.describe());
    }
}

#[test]
fn recording_from_another_directory_by_search_path_and_to_the_default_place_works() {
    if left_out("search path") {
        return;
    }
    let program = Program::named("thread_join.c");
    let (built, scratch) = (build(&program, Builder::Portent).unwrap(), Scratch::new());
    let path = format!("{}:/usr/bin:/bin", built.binary.parent().unwrap().display());
    let finished = run(
        PORTENT.command().env("PATH", path).args(["record", "--", "thread_join"]),
        scratch.directory(),
        NOTHING,
        LIMIT,
    );
    assert!(finished.exited_with(0), "{}", finished.describe());
    assert_eq!(valid(&scratch.path("thread_join.portent")).threads(), 5);
}
