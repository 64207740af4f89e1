//! Recording and replaying native programs, end to end: every program below tests/programs, and what a recording must
//! survive. What is expected of a program stands in its own comments; tests/programs/README.md says how.

mod annotations;
mod by_itself;
mod cc;
mod check;
mod complete;
mod demo;
mod faults;
mod forced;
mod forkserver;
mod gdb;
mod identity;
mod names;
mod order;
mod output;
mod same_values;
mod scope;
mod searching;
mod shapes;
mod stacks;
mod survives;
mod trees;
mod twins;
mod watch;

use check::{natively, record_and_replay};
use portent_testing::command::Portent;
use portent_testing::parallel::each;
use portent_testing::programs::{self, Builder, Built, Program};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;

const PORTENT: Portent = Portent::new(env!("CARGO_BIN_EXE_portent"), env!("CARGO_TARGET_TMPDIR"));

/// Whether a test has to be left out here, said aloud.
fn left_out(test: &str) -> bool {
    let why = programs::unsupported();
    why.inspect(|why| skipped(test, why)).is_some()
}

fn build(program: &Program, builder: Builder) -> Result<Built, String> {
    programs::build(program, builder, PORTENT)
}

fn builder(program: &Program) -> Builder {
    if program.instrumented { Builder::Portent } else { Builder::Plain }
}

#[test]
fn every_program_records_as_its_comment_says_and_replays_event_for_event() {
    if left_out("every program") {
        return;
    }
    each(
        &Program::all(),
        |program| program.name.clone(),
        |program| {
            let (built, scratch) = (build(program, builder(program))?, Scratch::new());
            record_and_replay(program, &built, scratch.directory(), &[])
        },
    );
}

#[test]
#[ignore = "takes minutes; the stress programs do the same, shorter"]
fn every_program_records_and_replays_under_other_schedules() {
    if left_out("every program, other schedules") {
        return;
    }
    let schedules = [("random", "1"), ("random", "2"), ("random", "3"), ("pct", "1"), ("rr", "1")];
    let programs = Program::all();
    let runs: Vec<_> = programs.iter().flat_map(|program| schedules.map(|schedule| (program, schedule))).collect();
    each(
        &runs,
        |(program, (policy, seed))| format!("{} --sched {policy} --seed {seed}", program.name),
        |(program, (policy, seed))| {
            let (built, scratch) = (build(program, builder(program))?, Scratch::new());
            record_and_replay(program, &built, scratch.directory(), &["--sched", policy, "--seed", seed])
        },
    );
}

#[test]
#[ignore = "checks the programs themselves, which rarely change"]
fn every_program_does_natively_what_its_comment_says() {
    if left_out("every program, natively") {
        return;
    }
    each(
        &Program::all(),
        |program| program.name.clone(),
        |program| {
            let (built, scratch) = (build(program, Builder::Plain)?, Scratch::new());
            natively(program, &built, scratch.directory())
        },
    );
}

/// A binary that gcc linked against its own libtsan knows nothing of Portent and works all the same.
#[test]
fn binaries_that_gcc_linked_with_its_own_sanitizer_record_and_replay_unmodified() {
    if left_out("binaries of gcc -fsanitize=thread") {
        return;
    }
    let files = [
        "mutex_normal.c",
        "cond_queue.c",
        "cond_clockwait.c",
        "libc_memory.c",
        "process_spawn.c",
        "cxx_condition.cpp",
        "cxx_static_local.cpp",
        "signal_raise.c",
        "fail_deadlock.c",
        "names.c",
    ];
    each(
        &files,
        |file| (*file).to_owned(),
        |file| {
            let program = Program::named(file);
            let (built, scratch) = (build(&program, Builder::ThreadSanitizer)?, Scratch::new());
            record_and_replay(&program, &built, scratch.directory(), &[])
        },
    );
}

/// Programs that mix everything, with tens of thousands of events.
const STRESS: [&str; 3] = ["stress_bank.c", "stress_pipeline.cpp", "stress_table.c"];

#[test]
fn stress_programs_recorded_under_50_random_seeds_validate_and_replay() {
    if left_out("50 random seeds") {
        return;
    }
    let runs: Vec<_> = (1..=50).flat_map(|seed| STRESS.map(|file| (seed, "random", file))).collect();
    under_policies(&runs);
}

#[test]
fn stress_programs_validate_and_replay_under_every_other_policy() {
    if left_out("policies rr and pct") {
        return;
    }
    let policies = [(1, "rr"), (1, "pct"), (2, "pct"), (3, "pct"), (4, "pct")];
    let runs: Vec<_> = policies.iter().flat_map(|&(seed, policy)| STRESS.map(|file| (seed, policy, file))).collect();
    under_policies(&runs);
}

fn under_policies(runs: &[(u64, &str, &str)]) {
    each(
        runs,
        |(seed, policy, file)| format!("{file} --sched {policy} --seed {seed}"),
        |(seed, policy, file)| {
            let program = Program::named(file);
            let (built, scratch) = (build(&program, Builder::Portent)?, Scratch::new());
            record_and_replay(&program, &built, scratch.directory(), &["--sched", policy, "--seed", &seed.to_string()])
        },
    );
}

#[test]
fn other_seeds_make_other_runs_and_the_same_seed_the_same() {
    if left_out("seeds") {
        return;
    }
    let program = Program::named(STRESS[0]);
    let built = build(&program, Builder::Portent).unwrap();
    let events = |seed: &str| {
        let scratch = Scratch::new();
        let options = ["--sched", "random", "--seed", seed];
        let recorded = check::record(&program, &built, scratch.directory(), &options).unwrap();
        programs::read(&recorded.trace).unwrap().events
    };
    let first = events("7");
    assert!(first == events("7"), "seed 7 made two different runs");
    assert!(first != events("8"), "seeds 7 and 8 made the same run");
}
