//! The classical shapes of tests/programs/shapes: how many runs it takes until the bug of each is seen, and that the twin without
//! it is proved complete, with so many behaviours.

use crate::{PORTENT, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run};
use portent_testing::parallel::each;
use portent_testing::programs::directory;
use portent_testing::scratch::Scratch;
use serde_json::Value;

/// A program with a bug, and its twin without, which is built with `-DFIXED`.
struct Shape {
    file: &'static str,
    arguments: &'static [&'static str],
    /// What the twin is called with.
    twins_arguments: &'static [&'static str],
    bug: Within,
    twin: Complete,
}

/// The bug is seen within so many runs.
struct Within(u32);

/// All behaviours of the fixed twin are run: so many.
struct Complete(u64);

/// Both with the same argument, or none.
const fn shape(file: &'static str, arguments: &'static [&'static str], bug: Within, twin: Complete) -> Shape {
    Shape { file, arguments, twins_arguments: arguments, bug, twin }
}

const SHAPES: [Shape; 19] = [
    shape("account", &[], Within(2), Complete(6)),
    shape("lazy", &[], Within(6), Complete(2)),
    shape("token_ring", &[], Within(2), Complete(1)),
    shape("bounded_buffer", &[], Within(20), Complete(48)),
    shape("queue", &[], Within(22), Complete(11)),
    shape("stack", &[], Within(3), Complete(6)),
    shape("reorder", &["3"], Within(7), Complete(2)),
    shape("reorder", &["5"], Within(7), Complete(2)),
    shape("reorder", &["10"], Within(7), Complete(2)),
    shape("reorder", &["20"], Within(7), Complete(2)),
    shape("twostage", &["2"], Within(3), Complete(2)),
    shape("twostage", &["8"], Within(7), Complete(16)),
    // All of its behaviours would be 2 to the power of 50.
    Shape { twins_arguments: &["10"], ..shape("twostage", &["100"], Within(5), Complete(32)) },
    shape("work_stealing", &[], Within(16), Complete(23)),
    shape("chase_lev", &[], Within(13), Complete(11)),
    shape("aba_stack", &[], Within(42), Complete(83)),
    shape("philosophers", &[], Within(2), Complete(1)),
    shape("peterson", &[], Within(7), Complete(16)),
    // Five preemptions.
    Shape { twins_arguments: &["1"], ..shape("safe_stack", &[], Within(1500), Complete(49)) },
];

/// Builds a shape, and checks it.
fn check(shape: &Shape, flags: &[&str], arguments: &[&str], options: &[String]) -> Result<(Finished, Value), String> {
    let scratch = Scratch::new();
    let mut command = PORTENT.command();
    let source = directory().join("shapes").join(shape.file).with_extension("c");
    command.args(["cc", "-O1", "-g"]).args(flags).arg(source).args(["-o", shape.file]);
    let built = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    if !built.exited_with(0) {
        return Err(built.describe());
    }
    let mut command = PORTENT.command();
    command.args(["check", "--stats", "--json", "report.json"]).args(options).arg("--");
    command.arg(format!("./{}", shape.file)).args(arguments);
    let checked = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    let report = std::fs::read(scratch.path("report.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let report = report.ok_or_else(|| checked.describe())?;
    Ok((checked, report))
}

/// Checks it with at most so many runs: after how many the bug was seen.
fn first_failure(shape: &Shape, runs: u32) -> Result<Option<u64>, String> {
    // Time is no limit: a busy machine makes as many runs as a quiet one.
    let options = ["--runs", &runs.to_string(), "--budget", "280"].map(str::to_owned);
    let (checked, report) = check(shape, &[], shape.arguments, &options)?;
    let first = report["stats"]["first_failure"].as_u64();
    if checked.code() != Some(i32::from(first.is_some())) {
        return Err(checked.describe());
    }
    Ok(first)
}

#[test]
fn the_bugs_of_classical_shapes_are_seen_within_so_many_runs() {
    if left_out("shapes") {
        return;
    }
    each(&SHAPES, name, |shape| {
        let Within(runs) = shape.bug;
        match first_failure(shape, runs)? {
            Some(first) if first <= runs.into() => Ok(()),
            other => Err(format!("not seen within {runs} runs: {other:?}")),
        }
    });
}

#[test]
fn the_fixed_twins_of_classical_shapes_are_proved_complete() {
    if left_out("twins of shapes") {
        return;
    }
    each(&SHAPES, name, |shape| {
        let options = ["--budget", "20"].map(str::to_owned);
        let (checked, report) = check(shape, &["-DFIXED"], shape.twins_arguments, &options)?;
        if !checked.exited_with(0) {
            return Err(checked.describe());
        }
        let explored = &report["explored"];
        let complete = explored["complete"].as_bool().filter(|complete| *complete);
        let Complete(behaviours) = shape.twin;
        match complete.and(explored["behaviours"].as_u64()) {
            Some(all) if all == behaviours => Ok(()),
            _ => Err(format!("{explored}")),
        }
    });
}

/// With a gate that lets two of three sit down, nobody starves: a semaphore.
#[test]
fn philosophers_with_a_gate_do_not_wait_for_ever() {
    if left_out("a gate") {
        return;
    }
    let gate = shape("philosophers", &[], Within(2), Complete(1));
    let (checked, report) =
        check(&gate, &["-DGATE"], &[], &["--budget".into(), "20".into()]).unwrap_or_else(|error| panic!("{error}"));
    assert!(checked.exited_with(0), "{}", checked.describe());
    assert_eq!((&report["explored"]["complete"], &report["explored"]["behaviours"]), (&true.into(), &1.into()));
}

fn name(shape: &Shape) -> String {
    std::iter::once(&shape.file).chain(shape.arguments).copied().collect::<Vec<_>>().join(" ")
}

/// Runs to the first failure by strategy, mean and worst over seeds; where there was none, so many count as were made.
#[test]
#[ignore = "takes minutes: a table for comparison, cargo test -p portent --test native strategies -- --ignored --nocapture"]
fn strategies_compared() {
    const MOST: u64 = 400;
    const SEEDS: u64 = 5;
    println!(
        "{:16} {:>16} {:>16} {:>16}   mean / worst of {SEEDS} seeds, {MOST} at most",
        "", "explore", "random", "pct"
    );
    for shape in &SHAPES {
        let mut row = format!("{:16}", name(shape));
        for strategy in ["explore", "random", "pct"] {
            let mut firsts = Vec::new();
            for seed in 0..SEEDS {
                let most = MOST.to_string();
                let seed = seed.to_string();
                let options = ["--strategy", strategy, "--seed", &seed, "--runs", &most].map(str::to_owned);
                let (_, report) =
                    check(shape, &[], shape.arguments, &options).unwrap_or_else(|error| panic!("{error}"));
                firsts.push(report["stats"]["first_failure"].as_u64().unwrap_or(MOST));
            }
            let mean = firsts.iter().sum::<u64>() as f64 / SEEDS as f64;
            row += &format!(" {:>16}", format!("{mean:.1} / {}", firsts.iter().max().unwrap_or(&MOST)));
        }
        println!("{row}");
    }
}
