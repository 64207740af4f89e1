//! `replay --debugger gdb` stops in the program's own code, and stepping from there works.

use crate::{PORTENT, left_out};
use portent_testing::command::{Finished, Input, LIMIT, NOTHING, run};
use portent_testing::programs;
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::process::Command;

/// A program that was built without optimisation and checked.
struct Checked {
    scratch: Scratch,
    source: String,
}

impl Checked {
    /// `None` if something is missing here, which is said.
    fn new(test: &str, program: &str) -> Option<Checked> {
        if left_out(test) {
            return None;
        }
        if Command::new("gdb").arg("--version").output().is_err() {
            skipped(test, "no gdb in PATH");
            return None;
        }
        let scratch = Scratch::new();
        let path = programs::directory().join("special").join(program);
        let source = std::fs::read_to_string(&path).unwrap();
        let mut build = PORTENT.command();
        let compiler = if program.ends_with(".cpp") { "c++" } else { "cc" };
        build.args([compiler, "-O0", "-g", "-pthread", "-o", "debugged"]).arg(&path);
        let built = run(&mut build, scratch.directory(), NOTHING, LIMIT);
        assert!(built.exited_with(0), "{}", built.describe());
        let mut check = PORTENT.command();
        check.args(["check", "--json", "found.json", "--", "./debugged"]);
        let checked = run(&mut check, scratch.directory(), NOTHING, LIMIT);
        assert!(checked.exited_with(1), "{}", checked.describe());
        Some(Checked { scratch, source })
    }

    /// The line that ends with a comment.
    fn line(&self, tag: &str) -> usize {
        let comment = format!("// {tag}");
        self.source.lines().position(|line| line.ends_with(&comment)).unwrap() + 1
    }

    /// The first finding whose id begins so.
    fn finding(&self, kind: &str) -> String {
        let text = std::fs::read_to_string(self.scratch.path("found.json")).unwrap();
        let start = text.find(&format!("\"{kind}-")).unwrap_or_else(|| panic!("no {kind} in {text}")) + 1;
        text[start..].split('"').next().unwrap().to_owned()
    }

    /// What gdb says when it is told these commands at the stop.
    fn debug(&self, finding: &str, commands: &[&str]) -> Finished {
        let input = commands.join("\n") + "\n";
        let mut replay = PORTENT.command();
        replay.args(["replay", "debugged.portent", "--findings", "found.json", "--finding", finding]);
        replay.args(["--debugger", "gdb"]);
        run(&mut replay, self.scratch.directory(), Input::File(input.as_bytes()), LIMIT)
    }
}

/// What was said between two marks.
fn part(said: &Finished, from: &str, to: &str) -> String {
    let out = said.out();
    let rest = out.split(from).nth(1).unwrap_or_else(|| panic!("{from} was not reached\n{}", said.describe()));
    // gdb breaks long lines before the place.
    rest.split(to).next().unwrap_or_default().replace("\n    at ", " at ")
}

#[test]
fn gdb_stops_at_the_operation_that_decides() {
    let Some(checked) = Checked::new("gdb at what decides", "debugged.c") else { return };
    let said =
        checked.debug(&checked.finding("failure"), &["printf \"--first\\n\"", "backtrace", "printf \"--end\\n\""]);
    let first = part(&said, "--first", "--end");
    let line = checked.line("finds out");
    assert!(first.contains("#0") && first.contains("in main () at "), "{}", said.describe());
    assert!(first.contains(&format!("debugged.c:{line}")), "{}", said.describe());
    assert!(!first.contains("inside/"), "nothing of the runtime is in the way\n{}", said.describe());
}

#[test]
fn gdb_stops_in_a_thread_that_is_about_to_race_and_steps_from_there() {
    let Some(checked) = Checked::new("gdb at a race", "debugged.c") else { return };
    let commands = [
        "printf \"--first\\n\"",
        "backtrace",
        "printf \"--next\\n\"",
        "next",
        "printf \"--finish\\n\"",
        "finish",
        "printf \"--all\\n\"",
        "thread apply all backtrace",
    ];
    let said = checked.debug(&checked.finding("race"), &commands);
    let [reads, writes, calls] = ["reads", "writes", "calls"].map(|tag| checked.line(tag));
    let first = part(&said, "--first", "--next");
    assert!(first.contains("in add (amount=1)") && first.contains("in deposit (which="), "{}", said.describe());
    assert!(!first.contains("inside/"), "nothing of the runtime is in the way\n{}", said.describe());
    let at = [reads, writes].into_iter().find(|line| first.contains(&format!("debugged.c:{line}")));
    let at = at.unwrap_or_else(|| panic!("{}", said.describe()));
    let next = part(&said, "--next", "--finish");
    assert!(next.contains(&format!("{}\t", at + 1)), "next goes to the next line\n{}", said.describe());
    let finish = part(&said, "--finish", "--all");
    let back = [calls, calls + 1].iter().any(|line| finish.contains(&format!("debugged.c:{line}")));
    // From the last line of the function, `next` has already gone back.
    assert!(back || at == writes, "finish goes back to the caller\n{}", said.describe());
    let all = part(&said, "--all", "A debugging session");
    assert!(all.matches("deposit (which=").count() >= 1, "the other thread is in the program\n{}", said.describe());
}

#[test]
fn gdb_shows_where_a_thread_of_a_deadlock_waits() {
    let Some(checked) = Checked::new("gdb at a deadlock", "debugged_deadlock.c") else { return };
    let said = checked.debug(&checked.finding("deadlock"), &["printf \"--first\\n\"", "frame"]);
    let out = said.out();
    let first = out.split("--first").nth(1).unwrap_or_else(|| panic!("{}", said.describe()));
    let waits = [checked.line("waits for b"), checked.line("waits for a")];
    assert!(waits.iter().any(|line| first.contains(&format!("debugged_deadlock.c:{line}"))), "{}", said.describe());
}

#[test]
fn next_goes_to_the_next_line_of_the_program_out_of_what_a_library_does_for_it() {
    let Some(checked) = Checked::new("gdb in a library", "debugged_vector.cpp") else { return };
    let commands = ["printf \"--first\\n\"", "frame", "printf \"--next\\n\"", "next", "printf \"--end\\n\""];
    let said = checked.debug(&checked.finding("race"), &commands);
    let [reads, writes, behind] = ["reads", "writes", "behind"].map(|tag| checked.line(tag));
    let first = part(&said, "--first", "--next");
    let at = [reads, writes].into_iter().find(|line| first.contains(&format!("debugged_vector.cpp:{line}")));
    let at = at.unwrap_or_else(|| panic!("it stops in the user's frame\n{}", said.describe()));
    let next = part(&said, "--next", "--end");
    let wanted = if at == reads { behind } else { writes + 1 };
    // The lock is given back at the end of the function, of which gdb says the line where it was made.
    let is_there = next.contains(&format!("{wanted}\t")) || at == writes && next.contains(&format!("{}\t", writes - 1));
    assert!(is_there, "next goes to the next line\n{}", said.describe());
}
