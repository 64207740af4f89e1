//! Recording and replaying native programs, end to end: every program below tests/programs, and what a recording must
//! survive. What is expected of a program stands in its own comments; tests/programs/README.md says how.

mod build;
mod check;
mod forced;
mod program;
mod run;
mod survives;
mod trace;

use build::{Builder, build, unsupported};
use check::{natively, record_and_replay};
use program::Program;
use run::skipped;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

/// Does something with each item, on all cores; panics at the end with everything that went wrong.
fn for_each<T: Sync>(items: &[T], name: impl Fn(&T) -> String + Sync, work: impl Fn(&T) -> Result<(), String> + Sync) {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = work(item) {
                        failures.lock().unwrap().push(format!("=== {}: {error}\n", name(item)));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    assert!(failures.is_empty(), "{} of {} failed\n{}", failures.len(), items.len(), failures.concat());
}

fn scratch_directory() -> TempDir {
    TempDir::with_prefix("portent-test-").expect("there is room for temporary files")
}

fn builder(program: &Program) -> Builder {
    if program.instrumented { Builder::Portent } else { Builder::Plain }
}

#[test]
fn every_program_records_as_its_comment_says_and_replays_event_for_event() {
    if let Some(why) = unsupported() {
        return skipped("every program", &why);
    }
    for_each(
        &Program::all(),
        |program| program.name.clone(),
        |program| {
            let (built, directory) = (build(program, builder(program))?, scratch_directory());
            record_and_replay(program, &built, directory.path(), &[])
        },
    );
}

#[test]
#[ignore = "takes minutes; the stress programs do the same, shorter"]
fn every_program_records_and_replays_under_other_schedules() {
    if let Some(why) = unsupported() {
        return skipped("every program, other schedules", &why);
    }
    let schedules = [("random", "1"), ("random", "2"), ("random", "3"), ("pct", "1"), ("rr", "1")];
    let programs = Program::all();
    let runs: Vec<_> = programs.iter().flat_map(|program| schedules.map(|schedule| (program, schedule))).collect();
    for_each(
        &runs,
        |(program, (policy, seed))| format!("{} --sched {policy} --seed {seed}", program.name),
        |(program, (policy, seed))| {
            let (built, directory) = (build(program, builder(program))?, scratch_directory());
            record_and_replay(program, &built, directory.path(), &["--sched", policy, "--seed", seed])
        },
    );
}

#[test]
#[ignore = "checks the programs themselves, which rarely change"]
fn every_program_does_natively_what_its_comment_says() {
    if let Some(why) = unsupported() {
        return skipped("every program, natively", &why);
    }
    for_each(
        &Program::all(),
        |program| program.name.clone(),
        |program| {
            let (built, directory) = (build(program, Builder::Plain)?, scratch_directory());
            natively(program, &built, directory.path())
        },
    );
}

/// A binary that gcc linked against its own libtsan knows nothing of Portent and works all the same.
#[test]
fn binaries_that_gcc_linked_with_its_own_sanitizer_record_and_replay_unmodified() {
    if let Some(why) = unsupported() {
        return skipped("binaries of gcc -fsanitize=thread", &why);
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
    for_each(
        &files,
        |file| (*file).to_owned(),
        |file| {
            let program = Program::named(file);
            let (built, directory) = (build(&program, Builder::ThreadSanitizer)?, scratch_directory());
            record_and_replay(&program, &built, directory.path(), &[])
        },
    );
}

/// Programs that mix everything, with tens of thousands of events.
const STRESS: [&str; 3] = ["stress_bank.c", "stress_pipeline.cpp", "stress_table.c"];

#[test]
fn stress_programs_recorded_under_50_random_seeds_validate_and_replay() {
    if let Some(why) = unsupported() {
        return skipped("50 random seeds", &why);
    }
    let runs: Vec<_> = (1..=50).flat_map(|seed| STRESS.map(|file| (seed, "random", file))).collect();
    under_policies(&runs);
}

#[test]
fn stress_programs_validate_and_replay_under_every_other_policy() {
    if let Some(why) = unsupported() {
        return skipped("policies rr and pct", &why);
    }
    let policies = [(1, "rr"), (1, "pct"), (2, "pct"), (3, "pct"), (4, "pct")];
    let runs: Vec<_> = policies.iter().flat_map(|&(seed, policy)| STRESS.map(|file| (seed, policy, file))).collect();
    under_policies(&runs);
}

fn under_policies(runs: &[(u64, &str, &str)]) {
    for_each(
        runs,
        |(seed, policy, file)| format!("{file} --sched {policy} --seed {seed}"),
        |(seed, policy, file)| {
            let program = Program::named(file);
            let (built, directory) = (build(&program, Builder::Portent)?, scratch_directory());
            record_and_replay(&program, &built, directory.path(), &["--sched", policy, "--seed", &seed.to_string()])
        },
    );
}

#[test]
fn other_seeds_make_other_runs_and_the_same_seed_the_same() {
    if let Some(why) = unsupported() {
        return skipped("seeds", &why);
    }
    let program = Program::named(STRESS[0]);
    let built = build(&program, Builder::Portent).unwrap();
    let events = |seed: &str| {
        let directory = scratch_directory();
        let options = ["--sched", "random", "--seed", seed];
        let recorded = check::record(&program, &built, directory.path(), &options).unwrap();
        trace::read(&recorded.trace).unwrap().events
    };
    let first = events("7");
    assert!(first == events("7"), "seed 7 made two different runs");
    assert!(first != events("8"), "seeds 7 and 8 made the same run");
}
