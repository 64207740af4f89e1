//! What programs write: kept for every run of a check, shown while they run; and the descriptors that they inherit.

use crate::{PORTENT, build, left_out};
use portent_explore::{Outcome, Plan, Program as _};
use portent_native::record::NativeProgram;
use portent_native::run::examine;
use portent_native::run::launch::Invocation;
use portent_testing::command::{LIMIT, NOTHING, run};
use portent_testing::programs::{Builder, Program};
use portent_testing::scratch::Scratch;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn writes() -> PathBuf {
    build(&Program::named("special/writes.c"), Builder::Portent).unwrap().binary
}

/// A silent run with this argument, and one that is like it.
fn twice(argument: &str, limit: Duration) -> [Outcome; 2] {
    let binary = writes();
    let nature = examine::examine(&binary).unwrap();
    let invocation = Invocation::here(binary, vec!["writes".into(), argument.into()]).unwrap();
    let program = NativeProgram::new(invocation, nature);
    let plan = Plan { silent: true, limit: Some(limit), ..Plan::default() };
    let first = program.run(&plan).unwrap();
    let schedule = first.schedule();
    let second = program.run(&Plan { like: Some(&first), schedule: Some(&schedule), ..plan }).unwrap();
    [first.outcome, second.outcome]
}

#[test]
fn what_a_run_writes_is_kept_in_the_recorded_run_and_in_its_replay() {
    if left_out("output is kept") {
        return;
    }
    let [recorded, replayed] = twice("", LIMIT);
    assert_eq!(recorded.not_followed, None);
    assert!(recorded.output.stdout.starts_with(b"out of ") && recorded.output.stdout.ends_with(b"last\n"));
    assert_eq!(recorded.output.stderr, b"err\n");
    assert!(recorded.output.whole);
    assert_eq!(replayed.output, recorded.output);
}

#[test]
fn of_what_a_run_writes_a_megabyte_is_kept_and_the_rest_is_not_called_whole() {
    if left_out("much output") {
        return;
    }
    for outcome in twice("much", LIMIT) {
        assert_eq!(outcome.output.stdout.len(), 1 << 20);
        assert!(!outcome.output.whole);
        assert_eq!(outcome.output.stderr, b"err\n");
    }
}

#[test]
fn a_program_that_prints_without_end_is_stopped_in_time() {
    if left_out("endless output") {
        return;
    }
    let started = Instant::now();
    for outcome in twice("flood", Duration::from_millis(500)) {
        assert!(outcome.timed_out);
        assert_eq!((outcome.output.stdout.len(), outcome.output.whole), (1 << 20, false));
    }
    assert!(started.elapsed() < Duration::from_secs(120));
}

fn check(binary: &Path, scratch: &Scratch, words: &[&str]) -> Command {
    let mut command = PORTENT.command();
    command.current_dir(scratch.directory()).args(["check", "--"]).arg(binary).args(words);
    command
}

#[test]
fn a_wrong_exit_status_is_told_with_what_the_program_says_instead() {
    if left_out("what a failing test prints") {
        return;
    }
    let binary = build(&Program::named("special/own_test.c"), Builder::Portent).unwrap().binary;
    let scratch = Scratch::new();
    let finished = run(&mut check(&binary, &scratch, &[]), scratch.directory(), NOTHING, LIMIT);
    assert!(finished.exited_with(1), "{}", finished.describe());
    let told = finished.out().split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "exits with status 1, and prints `FAIL: looked before it was ready` instead of `PASS`";
    assert!(told.contains(expected), "{}", finished.describe());
}

#[test]
fn check_shows_what_the_recorded_run_writes_and_only_that() {
    if left_out("check shows output") {
        return;
    }
    let scratch = Scratch::new();
    let finished = run(&mut check(&writes(), &scratch, &[]), scratch.directory(), NOTHING, LIMIT);
    assert!(finished.exited_with(0), "{}", finished.describe());
    assert!(finished.out().starts_with("out of ") && finished.out().contains("\nlast\n"), "{}", finished.describe());
    assert_eq!(finished.stderr.matches("err\n").count(), 1, "{}", finished.describe());
    let finished = run(&mut check(&writes(), &scratch, &["much"]), scratch.directory(), NOTHING, LIMIT);
    let lines = finished.out().lines().filter(|line| line.starts_with("xxx")).count();
    assert_eq!(lines, 30_000, "nothing that is not kept is lost to the user");
}

#[test]
fn check_shows_output_while_the_program_runs() {
    if left_out("live output") {
        return;
    }
    let scratch = Scratch::new();
    let mut command = check(&writes(), &scratch, &["waits"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("portent starts");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The program now waits for its input to end: it has not ended.
    assert!(lines.next().unwrap().unwrap().starts_with("out of "));
    assert_eq!(child.try_wait().unwrap(), None);
    drop(child.stdin.take());
    assert_eq!(lines.next().unwrap().unwrap(), "last");
    assert!(lines.all(|line| line.is_ok()));
    assert!(child.wait().unwrap().success());
}

#[test]
fn nobody_reading_what_a_checked_program_writes_does_not_matter() {
    if left_out("closed output") {
        return;
    }
    let scratch = Scratch::new();
    let mut command = check(&writes(), &scratch, &["much"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let told = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(child.wait().unwrap().code().is_some(), "{told}");
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn descriptors_of_the_shell_do_not_shift_replays() {
    if left_out("inherited descriptors") {
        return;
    }
    let (binary, scratch) = (writes(), Scratch::new());
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.env("PORTENT_CACHE", PORTENT.cache()).env("PORTENT", PORTENT.program).env("WRITES", &binary);
        run(command.arg("-c").arg(line), scratch.directory(), NOTHING, LIMIT)
    };
    for [record, replay] in [["3</dev/null", ""], ["", "3</dev/null 4</dev/null"], ["4</dev/null", "3</dev/null"]] {
        let recorded = shell(&format!("\"$PORTENT\" record -o run.portent -- \"$WRITES\" {record}"));
        assert!(recorded.exited_with(0), "{}", recorded.describe());
        let expected = if record.starts_with('3') { "out of 4\n" } else { "out of 3\n" };
        assert!(recorded.out().starts_with(expected), "{}", recorded.describe());
        let replayed = shell(&format!("\"$PORTENT\" replay run.portent {replay}"));
        assert!(replayed.exited_with(0), "recorded with {record:?}\n{}", replayed.describe());
        assert!(replayed.out().starts_with(expected), "{}", replayed.describe());
    }
}
