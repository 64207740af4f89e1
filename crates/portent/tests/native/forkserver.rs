//! Runs that a fork server makes: the same as runs that are started, event for event; and what must not go wrong with them.

use crate::check::arguments;
use crate::{PORTENT, build, left_out};
use portent_explore::{Plan, Program as _, Run};
use portent_native::record::NativeProgram;
use portent_native::run::examine;
use portent_native::run::launch::Invocation;
use portent_testing::command::{Finished, LIMIT, NOTHING, run, there_is};
use portent_testing::parallel::each;
use portent_testing::programs::{Builder, Program};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use portent_trace::ObjectClass;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What happened in a run, in words: for each event who did what to what, with which value, where.
fn events(run: &Run) -> Vec<String> {
    let names = &run.names;
    let told = |event: &portent_trace::InputEvent| {
        let object = match event.op.class() {
            ObjectClass::None => String::new(),
            class => names.name(class, event.object).to_string(),
        };
        let (thread, place) = (names.thread(event.thread), names.location(event.loc));
        format!("{thread} {} {object} {:?} {place}", event.op.text(), event.value)
    };
    run.events.iter().map(told).collect()
}

/// The first difference between two runs of a program.
fn difference(a: &Run, b: &Run) -> Option<String> {
    let (one, other) = (events(a), events(b));
    let at = one.iter().zip(&other).position(|(a, b)| a != b);
    if let Some(at) = at {
        return Some(format!("event {at}: {} / {}", one[at], other[at]));
    }
    if one.len() != other.len() {
        return Some(format!("{} / {} events", one.len(), other.len()));
    }
    (a.outcome != b.outcome).then(|| format!("{:?} / {:?}", a.outcome, b.outcome))
}

fn native(binary: &Path, words: &[String], directory: &Path) -> NativeProgram {
    let nature = examine::examine(binary).unwrap();
    let name = binary.file_name().unwrap().to_owned();
    let words = std::iter::once(name).chain(words.iter().map(Into::into)).collect();
    let mut invocation = Invocation::here(binary.to_owned(), words).unwrap();
    invocation.directory = directory.to_owned();
    NativeProgram::new(invocation, nature)
}

#[test]
fn every_program_does_the_same_whether_it_is_started_or_made_by_a_fork_server() {
    if left_out("fork server") {
        return;
    }
    let programs: Vec<Program> = Program::all().into_iter().filter(|program| program.instrumented).collect();
    each(
        &programs,
        |program| program.name.clone(),
        |program| {
            let (built, scratch) = (build(program, Builder::Portent)?, Scratch::new());
            scratch.write("stdin", &program.stdin);
            let mut started = native(&built.binary, &arguments(program, &built), scratch.directory());
            started.invocation.input = Some(scratch.path("stdin"));
            let plan = Plan { silent: true, limit: Some(LIMIT), ..Plan::default() };
            let failed = |error: portent_explore::Error| error.to_string();
            let recorded = started.run(&plan).map_err(failed)?;
            let schedule = recorded.schedule();
            let again = Plan { like: Some(&recorded), schedule: Some(&schedule), ..plan };
            let copies = started.clone().for_many_runs();
            let server = copies.server.clone().expect("it is for many runs");
            for _ in 0..2 {
                let copied = copies.run(&again).map_err(failed)?;
                if let Some(why) = server.unused() {
                    return Err(format!("no fork server: {why}"));
                }
                let replayed = started.run(&again).map_err(failed)?;
                if let Some(what) = difference(&replayed, &copied) {
                    // What is different every time is not the server's doing.
                    let once_more = started.run(&again).map_err(failed)?;
                    match difference(&replayed, &once_more) {
                        Some(_) => println!("{}: replays differ from each other: {what}", program.name),
                        None => return Err(format!("started / made by the server: {what}")),
                    }
                }
            }
            assert_eq!(server.runs(), 2);
            Ok(())
        },
    );
}

/// The program that brings bad luck, in a directory of its own, and what a check of it leaves.
struct BadLuck {
    scratch: Scratch,
    binary: PathBuf,
}

impl BadLuck {
    fn new() -> BadLuck {
        let built = build(&Program::named("special/bad_luck.c"), Builder::Portent).unwrap();
        let scratch = Scratch::new();
        // Its own: one of the tests replaces it.
        let binary = scratch.path("bad_luck");
        std::fs::copy(&built.binary, &binary).unwrap();
        std::fs::create_dir(scratch.path("temporary")).unwrap();
        BadLuck { scratch, binary }
    }

    fn command(&self, options: &[&str], mode: &str) -> Command {
        let mut command = PORTENT.command();
        command.env("TMPDIR", self.scratch.path("temporary"));
        command.arg("check").args(options).arg("--").arg(&self.binary).arg(mode);
        command
    }

    /// A check of it. No process and no temporary file is left behind.
    fn check(&self, options: &[&str], mode: &str) -> Finished {
        let finished = run(&mut self.command(options, mode), self.scratch.directory(), NOTHING, LIMIT);
        self.nothing_is_left(&finished);
        finished
    }

    fn nothing_is_left(&self, finished: &Finished) {
        let temporary = self.scratch.path("temporary");
        let files: Vec<_> = std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(files.is_empty(), "{files:?} are left\n{}", finished.describe());
        let processes = processes_with(temporary.as_os_str().as_bytes());
        assert!(processes.is_empty(), "processes {processes:?} are left\n{}", finished.describe());
    }

    /// Whether runs of it come from a fork server, and if not, why.
    fn server(&self, mode: &str) -> Result<u64, String> {
        let mut program = native(&self.binary, &[mode.to_owned()], self.scratch.directory()).for_many_runs();
        self.scratch.write("stdin", "input");
        program.invocation.input = Some(self.scratch.path("stdin"));
        let plan = Plan { silent: true, limit: Some(LIMIT), ..Plan::default() };
        let recorded = program.run(&plan).unwrap();
        let schedule = recorded.schedule();
        let again = Plan { like: Some(&recorded), schedule: Some(&schedule), ..plan };
        for _ in 0..3 {
            let run = program.run(&again).unwrap();
            assert_eq!(difference(&recorded, &run), None, "{mode}");
        }
        let server = program.server.unwrap();
        server.unused().map_or_else(|| Ok(server.runs()), Err)
    }
}

/// Processes that have this text in their environment.
fn processes_with(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(text.len()).any(|part| part == text) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn a_clean_program_is_run_by_the_server_and_leaves_nothing() {
    if left_out("fork server, a clean program") {
        return;
    }
    let lucky = BadLuck::new();
    assert_eq!(lucky.server(""), Ok(3));
    assert_eq!(lucky.server("orphan"), Ok(3), "a copy has the parent that a program which is started has");
    let finished = lucky.check(&[], "");
    assert!(finished.exited_with(0), "{}", finished.describe());
}

#[test]
fn what_libraries_do_before_the_program_begins_keeps_it_from_being_copied_and_changes_nothing() {
    if left_out("fork server, early constructors") {
        return;
    }
    for (mode, why) in [
        ("early-thread", "threads"),
        ("early-file", "opens a file"),
        ("early-output", "printed"),
        ("early-number", "number"),
        ("early-memory", "shared memory"),
        ("early-input", "read before"),
    ] {
        let luck = BadLuck::new();
        let unused = luck.server(mode).unwrap_err();
        assert!(unused.contains(why), "{mode}: {unused}");
        let finished = luck.check(&["--verbose", "--stdin", "stdin"], mode);
        assert!(finished.exited_with(0), "{}", finished.describe());
        assert!(finished.stderr.contains(&unused), "{}", finished.describe());
    }
}

#[test]
fn a_server_that_crashes_before_the_program_begins_is_done_without() {
    if left_out("fork server, a crash") {
        return;
    }
    let luck = BadLuck::new();
    let finished = luck.check(&[], "early-crash");
    assert!(finished.exited_with(0), "{}", finished.describe());
    assert!(luck.scratch.path("again").exists(), "nothing crashed\n{}", finished.describe());
}

#[test]
fn programs_that_fork_and_daemons_are_checked_and_nothing_of_them_stays() {
    if left_out("fork server, programs that fork") {
        return;
    }
    for mode in ["forks", "daemon"] {
        let luck = BadLuck::new();
        let finished = luck.check(&["--tries", "6"], mode);
        assert!(finished.exited_with(0), "{}", finished.describe());
    }
}

#[test]
fn threads_that_nobody_ends_end_with_their_run() {
    if left_out("fork server, threads that stay") {
        return;
    }
    let luck = BadLuck::new();
    let finished = luck.check(&["--tries", "6"], "leaks-threads");
    assert!(finished.exited_with(0), "{}", finished.describe());
}

#[test]
fn a_run_that_never_ends_is_stopped_and_told() {
    if left_out("fork server, a run without end") {
        return;
    }
    let luck = BadLuck::new();
    let finished = luck.check(&["--timeout", "1", "--tries", "10"], "never-ends");
    assert!(finished.exited_with(1), "{}", finished.describe());
    assert!(finished.out().contains("did not end"), "{}", finished.describe());
}

#[test]
fn a_program_that_asks_for_its_terminal_sees_the_same_in_every_run() {
    if left_out("fork server, a terminal") {
        return;
    }
    let luck = BadLuck::new();
    let finished = luck.check(&["--same-output"], "terminal");
    assert!(finished.exited_with(0), "{}", finished.describe());
    if !there_is("script") {
        return skipped("fork server, a terminal", "there is no `script` to have one");
    }
    let check = luck.command(&["--same-output"], "terminal");
    let words: Vec<_> = std::iter::once(check.get_program()).chain(check.get_args()).collect();
    let line = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TMPDIR", luck.scratch.path("temporary"));
    command.env("NO_COLOR", "1").env("PORTENT_CACHE", PORTENT.cache());
    let finished = run(&mut command, luck.scratch.directory(), NOTHING, LIMIT);
    luck.nothing_is_left(&finished);
    assert!(finished.exited_with(0), "{}", finished.describe());
    assert!(finished.out().contains("a terminal: yes, in the foreground: yes"), "{}", finished.describe());
}

#[test]
fn a_program_that_asks_for_its_cores_is_told_all_of_them_although_it_stays_on_one() {
    if left_out("fork server, cores") {
        return;
    }
    // Run by hand, it is told what the recorded run is told; copies are compared with that.
    assert_eq!(BadLuck::new().server("cores"), Ok(3));
}

#[test]
fn a_program_that_is_built_anew_while_it_is_checked_is_started_and_that_is_said() {
    if left_out("fork server, a program that is built anew") {
        return;
    }
    let luck = BadLuck::new();
    let unused = luck.server("rebuilt").unwrap_err();
    assert!(unused.contains("built anew"), "{unused}");
    let finished = luck.check(&["--tries", "4"], "rebuilt");
    assert!(finished.exited_with(0), "{}", finished.describe());
    let said = finished.stderr.lines().filter(|line| line.contains("built anew")).count();
    assert_eq!(said, 1, "{}", finished.describe());
}

#[test]
fn when_the_check_is_killed_its_server_goes_too() {
    if left_out("fork server of a check that is killed") {
        return;
    }
    let luck = BadLuck::new();
    let mut check = luck.command(&["--timeout", "30"], "never-ends");
    let mut child = check.current_dir(luck.scratch.directory()).spawn().unwrap();
    let temporary = luck.scratch.path("temporary");
    let there = || processes_with(temporary.as_os_str().as_bytes());
    // The check, its server and the run that never ends.
    while there().len() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it is over");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The run has no parent any more, as when it had been started. The server sees that nobody gives it orders.
    while there().len() > 1 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    there().iter().for_each(|process| portent_testing::command::kill(process));
}
