//! Bugs that hardly ever happen natively, made to happen every time by a schedule of a few lines.

use crate::check::record;
use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run};
use portent_testing::programs::{Builder, Contents, Program, read};
use portent_testing::scratch::Scratch;
use std::path::PathBuf;

/// A recorded program and a schedule for it.
struct Forced {
    scratch: Scratch,
    trace: PathBuf,
    text: String,
}

impl Forced {
    /// Records a program and makes a schedule out of what is in the trace.
    fn new(file: &str, schedule: impl Fn(&Contents) -> String) -> Forced {
        let program = Program::named(file);
        let (built, scratch) = (build(&program, Builder::Portent).unwrap(), Scratch::new());
        let recorded = record(&program, &built, scratch.directory(), &[]).unwrap_or_else(|error| panic!("{error}"));
        let text = schedule(&read(&recorded.trace).unwrap());
        scratch.write("schedule", &text);
        Forced { scratch, trace: recorded.trace, text }
    }

    /// Replays it. The program's own output is there only if it is replayed once.
    fn replay(&self, times: u32) -> Finished {
        let mut command = PORTENT.command();
        command.arg("replay").arg(&self.trace).args(["--schedule", "schedule", "--times", &times.to_string()]);
        let mut finished = run(&mut command, self.scratch.directory(), NOTHING, LIMIT);
        finished.command = format!("{}\n--- schedule\n{}", finished.command, self.text);
        finished
    }

    /// The goal is seen every time.
    fn shows(&self, times: u32) {
        let finished = self.replay(times);
        assert!(finished.exited_with(1), "a replay that shows its goal ends with status 1\n{}", finished.describe());
        assert!(finished.out().contains(&format!("shown in {times} of {times} replays")), "{}", finished.describe());
    }

    /// The program prints this every time.
    fn prints(&self, line: &str, times: u32) {
        for _ in 0..times {
            let finished = self.replay(1);
            assert!(finished.out().lines().any(|printed| printed == line), "expected {line}\n{}", finished.describe());
        }
    }
}

#[test]
fn a_lost_update_happens_100_times_of_100() {
    if left_out("lost update") {
        return;
    }
    let forced = Forced::new("bug_lost_update.c", |trace| {
        // Both threads have read 0; now both are about to write 1.
        format!(
            "# main starts both\nT0 {}\n# each reads\nT1 {}\nT2 {}\ngoal race T1 T2\n",
            trace.before("T0", "join", "T1*", 0),
            trace.before("T1", "w", "counter*", 0),
            trace.before("T2", "w", "counter*", 0),
        )
    });
    forced.shows(100);
    forced.prints("counter 1", 20);
}

#[test]
fn a_deadlock_of_two_locks_happens_100_times_of_100() {
    if left_out("AB-BA deadlock") {
        return;
    }
    let forced = Forced::new("bug_abba.c", |trace| {
        format!(
            "T0 {}\n# each has its first lock\nT1 {}\nT2 {}\ngoal deadlock T1 T2\n",
            trace.before("T0", "join", "T1*", 0),
            trace.before("T1", "acq", "*", 1),
            trace.before("T2", "acq", "*", 1),
        )
    });
    forced.shows(100);
    let once = forced.replay(1);
    assert!(!once.out().contains("110 90"), "the program came to its end\n{}", once.describe());
    assert!(once.out().contains("accounts[0].lock") && once.out().contains("accounts[1].lock"), "{}", once.describe());
}

/// The outcome follows from the order alone, without a goal.
#[test]
fn the_unfinished_thing_is_seen_and_the_balance_goes_negative_when_the_schedule_says_so() {
    if left_out("publication and check-then-act") {
        return;
    }
    let forced = Forced::new("bug_publication.c", |trace| {
        let published = trace.before("T1", "w.sc", "published*", 0) + 1;
        let reader = trace.count("T2");
        format!("T0 {}\nT1 {published}\nT2 {reader}\n", trace.before("T0", "join", "T1*", 0))
    });
    forced.prints("saw 7", 20);

    let forced = Forced::new("bug_check_then_act.c", |trace| {
        // In the recorded run, whoever comes second sees too little: take the length of the first's check for both.
        let first = if trace.count("T1") >= trace.count("T2") { "T1" } else { "T2" };
        let checked = trace.before(first, "rel", "lock*", 0) + 1;
        format!("T0 {}\nT1 {checked}\nT2 {checked}\n", trace.before("T0", "join", "T1*", 0))
    });
    forced.prints("balance -50", 20);
}

#[test]
fn a_schedule_that_cannot_be_followed_is_pointed_out() {
    if left_out("schedules that cannot be followed") {
        return;
    }
    let forced = Forced::new("bug_abba.c", |trace| {
        // T2 cannot go beyond its first lock, which T1 has by then.
        let (main, inside) = (trace.before("T0", "join", "T1*", 0), trace.before("T1", "rel", "*", 0));
        format!("T0 {main}\nT1 {inside}\nT2 {}\n", trace.count("T2"))
    });
    let finished = forced.replay(1);
    assert!(finished.out().contains("diverged") && finished.out().contains("T2"), "{}", finished.describe());
    assert!(finished.out().contains("bug_abba.c:"), "it should say where\n{}", finished.describe());
}

/// Wherever the schedule ends and the program goes its own way: what the plan served does not come again, and what it did
/// not get to is not lost.
#[test]
fn signals_of_the_program_itself_are_handled_once() {
    if left_out("signals handled once") {
        return;
    }
    for length in (1..60).step_by(4) {
        let forced = Forced::new("signal_self.c", |trace| {
            // The first so many events of the recorded run.
            trace.events.iter().take(length).map(|event| format!("T{} 1\n", event.thread.index())).collect()
        });
        forced.prints("handled 3 of 3", 1);
    }
}

#[test]
fn a_race_behind_a_semaphore_is_confirmed() {
    if left_out("race behind a semaphore") {
        return;
    }
    let built = build(&Program::named("bug_semaphore.c"), Builder::Portent).unwrap();
    let scratch = Scratch::new();
    let mut command = PORTENT.command();
    command.args(["check", "--kind", "race", "--"]).arg(&built.binary);
    let finished = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    assert!(finished.exited_with(1), "a race is found\n{}", finished.describe());
    let told = |line: &str| line.starts_with("✗ data race on shared ") && line.ends_with(" 3 of 3 replays");
    assert!(finished.out().lines().any(told), "{}", finished.describe());
}
