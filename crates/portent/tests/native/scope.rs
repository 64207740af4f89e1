//! What counts as giving way, and what a report says that it does not cover.

use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run};
use portent_testing::programs::{Builder, Program};
use portent_testing::scratch::Scratch;

fn check(program: &str, options: &[&str], arguments: &[&str]) -> Finished {
    let built = build(&Program::named(program), Builder::Portent).unwrap();
    let scratch = Scratch::new();
    let mut command = PORTENT.command();
    command.arg("check").args(options).arg("--").arg(&built.binary).args(arguments);
    run(&mut command, scratch.directory(), NOTHING, LIMIT)
}

#[test]
fn nobody_waits_at_a_try_or_where_there_is_a_time_limit() {
    if left_out("tries") {
        return;
    }
    for way in ["scoped", "timed"] {
        let found = check("special/gives_way.cpp", &["--observations", "--model", "sync"], &[way]);
        assert!(found.exited_with(0) && !found.out().contains("deadlock"), "{way}\n{}", found.describe());
    }
    let found = check("special/gives_way.cpp", &[], &["nested"]);
    assert!(found.exited_with(1) && found.out().contains("deadlock"), "{}", found.describe());
}

#[test]
fn sleeping_ends_a_block_that_nobody_declared() {
    if left_out("sleeping ends a block") {
        return;
    }
    let asleep = check("special/gives_way.cpp", &["--kind", "atomicity"], &["sleep"]);
    assert!(asleep.exited_with(0), "{}", asleep.describe());
    let awake = check("special/gives_way.cpp", &["--kind", "atomicity"], &["awake"]);
    assert!(awake.exited_with(1) && awake.out().contains("atomicity violation"), "{}", awake.describe());
}

#[test]
fn what_comes_from_outside_is_said_with_its_line() {
    if left_out("what comes from outside") {
        return;
    }
    let source = Program::named("special/outside.c");
    let text = std::fs::read_to_string(&source.source).unwrap();
    let line = |mark: &str| 1 + text.lines().position(|line| line.ends_with(mark)).unwrap();
    let clock = check("special/outside.c", &[], &["clock"]);
    assert!(clock.exited_with(0) && clock.out().contains("not covered: reads the clock at "), "{}", clock.describe());
    assert!(clock.out().contains(&format!("outside.c:{}", line("// the time"))), "{}", clock.describe());
    let network = check("special/outside.c", &[], &["network"]);
    assert!(network.out().contains("receives from the network at "), "{}", network.describe());
    assert!(network.out().contains(&format!("outside.c:{}", line("// received here"))), "{}", network.describe());
    let inside = check("special/outside.c", &[], &["inside"]);
    assert!(inside.exited_with(0) && !inside.out().contains("network"), "{}", inside.describe());
}

/// What a replay showed is told with the values of that replay, not with those of the recorded run.
#[test]
fn what_was_replayed_is_told_with_the_values_that_it_had() {
    if left_out("values of a replay") {
        return;
    }
    let found = check("special/gives_way.cpp", &["--kind", "atomicity"], &["awake"]);
    let text = found.out();
    let seen = text.split("seen as").nth(1).unwrap_or_else(|| panic!("{}", found.describe()));
    let written = |text: &str| -> Vec<String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let values = words.windows(4).filter(|four| four[0] == "writes" && four[2] == "=");
        values.map(|four| four[3].trim_end_matches([';', ',']).to_owned()).collect()
    };
    let (shown, seen) = (written(text.split("seen as").next().unwrap()), written(seen));
    assert!(
        !seen.is_empty() && seen.iter().all(|value| shown.contains(value)),
        "{shown:?} {seen:?}\n{}",
        found.describe()
    );
}

#[test]
fn a_thread_that_takes_signals_makes_no_hang_of_a_schedule_that_cannot_be() {
    if left_out("a thread that takes signals") {
        return;
    }
    let finished = check("special/signal_thread.c", &["--observations"], &[]);
    assert!(finished.exited_with(0), "{}", finished.describe());
    assert!(!finished.out().contains("hang"), "{}", finished.describe());
}
