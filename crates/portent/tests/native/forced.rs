//! Bugs that hardly ever happen natively, made to happen every time by a schedule of a few lines.

use crate::build::{Builder, build, portent, unsupported};
use crate::check::{LIMIT, record};
use crate::program::Program;
use crate::run::{Outcome, run, skipped};
use crate::scratch_directory;
use crate::trace::{Contents, read};

/// Records a program, makes a schedule out of what is in the trace, and replays that 100 times.
fn forced(file: &str, schedule: impl Fn(&Contents) -> String) -> Outcome {
    let program = Program::named(file);
    let (built, directory) = (build(&program, Builder::Portent).unwrap(), scratch_directory());
    let recorded = record(&program, &built, directory.path(), &[]).unwrap_or_else(|error| panic!("{error}"));
    let text = schedule(&read(&recorded.trace).unwrap());
    std::fs::write(directory.path().join("schedule"), &text).unwrap();
    let mut command = portent();
    command.arg("replay").arg(&recorded.trace).args(["--schedule", "schedule", "--times", "100"]);
    let mut outcome = run(&mut command, directory.path(), "", 2 * LIMIT);
    outcome.command = format!("{}\n--- schedule\n{text}", outcome.command);
    outcome
}

#[test]
fn a_lost_update_happens_100_times_of_100() {
    if let Some(why) = unsupported() {
        return skipped("lost update", &why);
    }
    let outcome = forced("bug_lost_update.c", |trace| {
        // Both threads have read 0; now both are about to write 1.
        format!(
            "# main starts both\nT0 {}\n# each reads\nT1 {}\nT2 {}\ngoal race T1 T2\n",
            trace.before("T0", "join", "T1*", 0),
            trace.before("T1", "w", "counter*", 0),
            trace.before("T2", "w", "counter*", 0),
        )
    });
    assert!(outcome.exited_with(1), "a replay that shows its goal ends with status 1\n{}", outcome.describe());
    let lost = outcome.out().lines().filter(|line| *line == "counter 1").count();
    assert_eq!(lost, 100, "{}", outcome.describe());
}

#[test]
fn a_deadlock_of_two_locks_happens_100_times_of_100() {
    if let Some(why) = unsupported() {
        return skipped("AB-BA deadlock", &why);
    }
    let outcome = forced("bug_abba.c", |trace| {
        format!(
            "T0 {}\n# each has its first lock\nT1 {}\nT2 {}\ngoal deadlock T1 T2\n",
            trace.before("T0", "join", "T1*", 0),
            trace.before("T1", "acq", "*", 1),
            trace.before("T2", "acq", "*", 1),
        )
    });
    assert!(outcome.exited_with(1), "a replay that shows its goal ends with status 1\n{}", outcome.describe());
    let all = format!("{}{}", outcome.out(), outcome.stderr);
    assert!(all.contains("100 of 100") || all.contains("100/100"), "{}", outcome.describe());
    assert!(!all.contains("110 90"), "one of the runs came to its end\n{}", outcome.describe());
}

/// The outcome follows from the order alone, without a goal.
#[test]
fn the_unfinished_thing_is_seen_and_the_balance_goes_negative_when_the_schedule_says_so() {
    if let Some(why) = unsupported() {
        return skipped("publication and check-then-act", &why);
    }
    let outcome = forced("bug_publication.c", |trace| {
        let published = trace.before("T1", "w.sc", "published*", 0) + 1;
        let reader = trace.count("T2");
        format!("T0 {}\nT1 {published}\nT2 {reader}\n", trace.before("T0", "join", "T1*", 0))
    });
    assert_eq!(outcome.out().lines().filter(|line| *line == "saw 7").count(), 100, "{}", outcome.describe());

    let outcome = forced("bug_check_then_act.c", |trace| {
        // In the recorded run, whoever comes second sees too little: take the length of the first's check for both.
        let first = if trace.count("T1") >= trace.count("T2") { "T1" } else { "T2" };
        let checked = trace.before(first, "rel", "lock*", 0) + 1;
        format!("T0 {}\nT1 {checked}\nT2 {checked}\n", trace.before("T0", "join", "T1*", 0))
    });
    assert_eq!(outcome.out().lines().filter(|line| *line == "balance -50").count(), 100, "{}", outcome.describe());
}

#[test]
fn a_schedule_that_cannot_be_followed_is_pointed_out() {
    if let Some(why) = unsupported() {
        return skipped("schedules that cannot be followed", &why);
    }
    let outcome = forced("bug_abba.c", |trace| {
        // T2 cannot go beyond its first lock, which T1 has by then.
        let (main, inside) = (trace.before("T0", "join", "T1*", 0), trace.before("T1", "rel", "*", 0));
        format!("T0 {main}\nT1 {inside}\nT2 {}\n", trace.count("T2"))
    });
    let all = format!("{}{}", outcome.out(), outcome.stderr).to_lowercase();
    assert!(all.contains("diverge") && all.contains("t2"), "{}", outcome.describe());
    assert!(all.contains("bug_abba.c:"), "it should say where\n{}", outcome.describe());
}
