//! `portent watch`: what is told while a program runs, and that the report is that of its trace.

use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run};
use portent_testing::programs::{Builder, Built, Program};
use portent_testing::scratch::Scratch;

fn serves() -> Built {
    build(&Program::named("special/serves.c"), Builder::Portent).unwrap()
}

fn portent(scratch: &Scratch, arguments: &[&str], program: &[&str]) -> Finished {
    let mut command = PORTENT.command();
    command.args(arguments);
    if !program.is_empty() {
        command.arg("--").args(program);
    }
    run(&mut command, scratch.directory(), NOTHING, LIMIT)
}

/// The lines that are told as soon as something is found.
fn found(finished: &Finished) -> Vec<&str> {
    finished.stderr.lines().filter_map(|line| line.strip_prefix("found: ")).collect()
}

#[test]
fn a_program_that_never_ends_is_stopped_by_what_it_does_and_its_race_can_be_replayed() {
    if left_out("watch") {
        return;
    }
    let (built, scratch) = (serves(), Scratch::new());
    let binary = built.binary.to_str().unwrap();
    let watched =
        portent(&scratch, &["watch", "--kind", "race", "--on-violation", "stop", "-o", "run.portent"], &[binary]);
    assert!(watched.exited_with(1), "{}", watched.describe());
    let told = found(&watched);
    assert!(!told.is_empty() && told.iter().all(|line| line.contains("data race on rare")), "{}", watched.describe());
    assert!(watched.out().contains("data race on rare"), "{}", watched.describe());
    assert!(!watched.stderr.contains("not above"), "{}", watched.describe());
    assert!(watched.stderr.contains("SIGTERM ended the program"), "{}", watched.describe());
    let id = told[0].split(' ').next().unwrap();
    let replayed = portent(&scratch, &["replay", "run.portent", "--finding", id, "--timeout", "3"], &[]);
    assert!(replayed.exited_with(1), "{}", replayed.describe());
}

#[test]
fn the_report_is_that_of_the_trace() {
    if left_out("watch and predict") {
        return;
    }
    let (built, scratch) = (serves(), Scratch::new());
    let binary = built.binary.to_str().unwrap();
    for lag in ["spill", "sample"] {
        let output = format!("{lag}.portent");
        let arguments = ["watch", "--lag", lag, "-o", &output, "--json", "watched.json"];
        let watched = portent(&scratch, &arguments, &[binary, "300"]);
        assert!(watched.exited_with(1) && watched.out().contains("served 900"), "{}", watched.describe());
        let predicted = portent(&scratch, &["predict", &output, "--json", "predicted.json"], &[]);
        assert!(predicted.exited_with(1), "{}", predicted.describe());
        let part = |file: &str| {
            let text = scratch.read(file);
            let from = text.find("\"findings\"").unwrap();
            // The command that replays a finding names the file of the findings where that is not beside the trace.
            text[from..].replace(" --findings predicted.json", "")
        };
        assert_eq!(part("watched.json"), part("predicted.json"));
    }
}

#[test]
fn a_command_is_run_for_each_finding_and_a_clean_run_leaves_nothing() {
    if left_out("watch and commands") {
        return;
    }
    let (built, scratch) = (serves(), Scratch::new());
    let binary = built.binary.to_str().unwrap();
    let action = "exec=echo \"$PORTENT_FINDING $PORTENT_WHAT\" >> told; kill $PORTENT_PID";
    let watched = portent(&scratch, &["watch", "--kind", "race", "--keep", "--on-violation", action], &[binary]);
    assert!(watched.exited_with(1), "{}", watched.describe());
    let told = scratch.read("told");
    assert!(told.starts_with("race-") && told.contains("data race on rare"), "{told}");

    let clean = Scratch::new();
    let watched = portent(&clean, &["watch", "--kind", "deadlock"], &[binary, "20"]);
    assert!(watched.exited_with(0), "{}", watched.describe());
    assert_eq!(clean.names(), [] as [String; 0], "{}", watched.describe());
    let watched = portent(&clean, &["watch", "--on-violation", "signal=NOPE"], &[binary, "20"]);
    assert!(watched.exited_with(2) && watched.stderr.contains("there is no signal NOPE"), "{}", watched.describe());
    let watched = portent(&clean, &["watch"], &["/bin/true"]);
    assert!(watched.exited_with(2), "{}", watched.describe());
}

#[test]
fn a_property_is_told_when_the_run_shows_that_it_can_be_broken() {
    if left_out("watch and properties") {
        return;
    }
    let scratch = Scratch::with("few.spec", "property few: always served < 5\n");
    let built = serves();
    let binary = built.binary.to_str().unwrap();
    // It ends by itself only long after it is stopped.
    let arguments = ["watch", "--spec", "few.spec", "--kind", "property", "--on-violation", "stop"];
    let watched = portent(&scratch, &arguments, &[binary, "100000"]);
    assert!(watched.exited_with(1), "{}", watched.describe());
    assert!(found(&watched).iter().any(|line| line.contains("few")), "{}", watched.describe());
    assert!(watched.out().contains("few"), "{}", watched.describe());
}
