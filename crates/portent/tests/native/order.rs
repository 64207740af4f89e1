//! What the system orders, and what it does not: messages and signals do, sleeps and time-outs do not.

use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run};
use portent_testing::parallel::each;
use portent_testing::programs::{Builder, Program};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::path::Path;

/// What orders main and the other thread of `order_edges`.
const EDGES: [&str; 16] = [
    "pipe",
    "socketpair",
    "readers",
    "close",
    "stream",
    "eventfd",
    "connect",
    "listen",
    "sigaction",
    "kill",
    "pthread_kill",
    "sigqueue",
    "setitimer",
    "timer",
    "sigwait",
    "atfork",
];

fn portent(words: &[&str], binary: &Path, arguments: &[&str], scratch: &Scratch) -> Finished {
    let mut command = PORTENT.command();
    command.args(words).arg("--").arg(binary).args(arguments);
    run(&mut command, scratch.directory(), NOTHING, LIMIT)
}

#[test]
fn what_only_the_system_orders_does_not_race_and_its_racy_twin_does() {
    if left_out("order by the system") {
        return;
    }
    let built = build(&Program::named("special/order_edges.c"), Builder::Portent).unwrap();
    each(
        &EDGES,
        |edge| (*edge).to_owned(),
        |edge| {
            let scratch = Scratch::new();
            let ordered = portent(&["check", "--kind", "race"], &built.binary, &[edge], &scratch);
            let racy = portent(&["check", "--kind", "race"], &built.binary, &[edge, "race"], &scratch);
            if !ordered.exited_with(0) || !ordered.out().starts_with("done\n") {
                return Err(format!("there is no race\n{}", ordered.describe()));
            }
            let found = racy.exited_with(1) && racy.out().contains("data race on data");
            if found { Ok(()) } else { Err(format!("there is a race\n{}", racy.describe())) }
        },
    );
}

/// What `ended_in_use` ends.
const ENDED: [&str; 8] = ["mutex", "freed", "condition", "rwlock", "spin", "barrier", "semaphore", "descriptor"];

#[test]
fn what_could_be_ended_while_it_is_used_is_predicted_from_a_run_in_which_it_is_not() {
    if left_out("objects that end") {
        return;
    }
    let built = build(&Program::named("special/ended_in_use.c"), Builder::Portent).unwrap();
    each(
        &ENDED,
        |what| (*what).to_owned(),
        |what| {
            let scratch = Scratch::new();
            let predicted = |arguments: &[&str]| {
                let recorded = portent(&["record", "-o", "run.portent"], &built.binary, arguments, &scratch);
                let mut command = PORTENT.command();
                command.args(["predict", "run.portent", "--kind", "race", "--json", "found.json"]);
                let predicted = run(&mut command, scratch.directory(), NOTHING, LIMIT);
                (recorded.describe(), predicted)
            };
            let (recorded, ordered) = predicted(&[what]);
            if !ordered.exited_with(0) {
                return Err(format!("it is ended after its last use\n{recorded}\n{}", ordered.describe()));
            }
            let (recorded, early) = predicted(&[what, "early"]);
            let form = if *what == "freed" { "use_after_free" } else { "destroyed_in_use" };
            let json = std::fs::read_to_string(scratch.path("found.json")).unwrap_or_default();
            let found = early.exited_with(1) && json.contains(&format!("\"form\": \"{form}\""));
            if found { Ok(()) } else { Err(format!("nothing orders them\n{recorded}\n{}", early.describe())) }
        },
    );
}

#[test]
fn a_sleep_and_a_time_out_may_be_over_before_the_others_are_done() {
    if left_out("early sleepers") {
        return;
    }
    let built = build(&Program::named("special/bug_sleep.c"), Builder::Portent).unwrap();
    let scratch = Scratch::new();
    for how in ["sleep", "wait"] {
        let usual = portent(&["record"], &built.binary, &[how], &scratch);
        assert!(usual.exited_with(0), "by default, time passes when nothing else happens\n{}", usual.describe());
        for policy in ["random", "pct", "rr"] {
            let failing = (1..=40).find(|seed: &u32| {
                let seed = seed.to_string();
                let words = ["record", "-o", "run.portent", "--sched", policy, "--seed", &seed];
                let finished = portent(&words, &built.binary, &[how], &scratch);
                assert!(finished.exited_with(0) || finished.exited_with(7), "{}", finished.describe());
                finished.exited_with(7)
            });
            assert!(failing.is_some(), "{how} never ended early under --sched {policy}");
            // The run that failed is repeated as it was.
            let mut command = PORTENT.command();
            let replayed = run(command.args(["replay", "run.portent"]), scratch.directory(), NOTHING, LIMIT);
            assert!(replayed.exited_with(0), "{how} under --sched {policy}\n{}", replayed.describe());
            assert!(replayed.out().starts_with("too early\n"), "{}", replayed.describe());
        }
    }
}

#[test]
fn what_orders_the_threads_of_an_openmp_team_is_understood() {
    if left_out("OpenMP") {
        return;
    }
    let built = match build(&Program::named("special/openmp.c"), Builder::Portent) {
        Ok(built) => built,
        Err(why) => return skipped("OpenMP", &why),
    };
    let scratch = Scratch::new();
    for way in ["regions", "barriers", "locks"] {
        let finished = portent(&["check", "--kind", "race,deadlock"], &built.binary, &[way], &scratch);
        assert!(finished.exited_with(0) && !finished.out().contains("data race"), "{way}\n{}", finished.describe());
    }
    let racy = portent(&["check", "--kind", "race"], &built.binary, &["racy"], &scratch);
    assert!(racy.exited_with(1) && racy.out().contains("data race on sum"), "{}", racy.describe());
}
