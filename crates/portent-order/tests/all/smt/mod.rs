//! The order engine against an SMT solver, on traces too long for the oracle (50 to 300 events): without formulas here, with
//! formulas in `symbolic`.
//!
//! Needs `z3` on PATH; where there is none, the tests say that they were skipped.

mod formulas;
mod models;
mod order;
mod symbolic;

use models::{constraints, goal_formula};
use order::facts;
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Verdict, brute, check};
use portent_testing::skipped;
use portent_trace::Trace;
use portent_trace::generate::{Config, Generator, Start};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The answers of the solver, line by line; `None` where there is none.
fn z3(script: &str) -> Option<Vec<String>> {
    let mut child = Command::new("z3").arg("-in").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take()?.write_all(script.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    // On a busy machine its time may be up while it still reads a formula: it says so, and then `unknown`.
    let said = String::from_utf8_lossy(&output.stdout);
    Some(said.lines().filter(|line| !line.ends_with(": canceled\")")).map(str::to_owned).collect())
}

/// Traces of 50 to 300 events in many styles; no updates, whose freedom in atomicity goals this encoding leaves out.
fn config(seed: u64) -> Config {
    let pick = |salt: u64, most: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (salt * 7 % 50)) % most;
    Config {
        seed,
        events: 50 + pick(1, if seed.is_multiple_of(5) { 250 } else { 100 }),
        threads: 2 + pick(2, 4) as u32,
        variables: 4 + pick(3, 12) as u32,
        locks: 1 + pick(4, 4) as u32,
        blocks: 4,
        block_share: 0.5,
        truncated: seed.is_multiple_of(2),
        start: if seed.is_multiple_of(3) { Start::Unforked } else { Start::Flat },
        quantum: 1 + pick(5, 8) as u32,
        reads: 0.4,
        updates: 0.0,
        values: 0.9,
        branches: if seed.is_multiple_of(3) { 0.1 } else { 0.0 },
        local: 0.1,
        unguarded: 0.3,
        guarded: 0.7,
        section: 2,
        nesting: 3,
        hand_over_hand: if seed.is_multiple_of(4) { 0.5 } else { 0.0 },
        shared: if seed.is_multiple_of(3) { 0.4 } else { 0.0 },
        busy: if seed.is_multiple_of(7) { 0.05 } else { 0.0 },
        conditions: (seed % 3) as u32,
        waits: if seed.is_multiple_of(3) { 0.0 } else { 0.1 },
        tokens: (seed % 4) as u32,
        token_events: if seed.is_multiple_of(4) { 0.0 } else { 0.05 },
        semaphores: if seed % 5 < 2 { 1 + (seed % 2) as u32 } else { 0 },
        semaphore_events: if seed % 5 < 2 { 0.08 } else { 0.0 },
        ..Config::default()
    }
}

/// Some goals of every kind but lost wake-ups, evenly picked.
fn goals(trace: &Trace) -> Vec<Goal> {
    let most = if trace.len() > 160 { 3 } else { 8 };
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::LostWakeup);
    let some = |kind| {
        let candidates = brute::candidates(trace, kind);
        let step = (candidates.len() / most).max(1);
        candidates.into_iter().step_by(step).take(most)
    };
    kinds.flat_map(some).collect()
}

/// How often the engine and the solver were asked.
#[derive(Debug, Default)]
struct Asked {
    queries: usize,
    feasible: usize,
    /// Not by the solver, in its time.
    unanswered: usize,
    /// Not by the engine, with its effort.
    unsettled: usize,
}

impl Asked {
    /// Asks both about all goals: the solver with constraints, and a formula for each goal.
    fn compare(&mut self, trace: &Trace, model: Model, constraints: String, goals: &[(Goal, String)], story: &str) {
        let mut script = constraints;
        for (_, formula) in goals {
            let _ = writeln!(script, "(push)\n(assert {formula})\n(check-sat)\n(pop)");
        }
        let answers = z3(&script).unwrap();
        assert_eq!(answers.len(), goals.len(), "{story}: {answers:?}");
        let view = View::whole(trace, model);
        let mut engine = Engine::new(&view);
        for ((goal, _), answer) in goals.iter().zip(answers) {
            let verdict = engine.decide(goal, Effort::default());
            if let Verdict::Feasible(witness) = &verdict {
                check(trace, model, goal, witness).unwrap_or_else(|why| panic!("{story}, {model}, {goal:?}: {why}"));
            }
            self.queries += 1;
            match answer.as_str() {
                "sat" | "unsat" if matches!(verdict, Verdict::Unknown(_)) => self.unsettled += 1,
                "sat" => {
                    self.feasible += 1;
                    let found = matches!(verdict, Verdict::Feasible(_));
                    assert!(found, "{story}, {model}, {goal:?}: missed ({verdict:?})");
                }
                "unsat" => assert_eq!(verdict, Verdict::Infeasible, "{story}, {model}, {goal:?}"),
                "unknown" => self.unanswered += 1,
                other => panic!("{story}, {model}, {goal:?}: {other}"),
            }
        }
    }

    fn finish(&self, least: usize) {
        let Asked { queries, feasible, unanswered, unsettled } = *self;
        println!(
            "{queries} queries, {feasible} feasible, {unanswered} that z3 did not answer in time, {unsettled} that the \
             engine did not settle"
        );
        assert!(queries > least && unanswered * 10 < queries && unsettled * 100 < queries);
        assert!(feasible * 10 > queries && feasible * 10 < queries * 9, "{feasible} of {queries} feasible");
    }
}

/// How many seeds to try; none, loudly, without a solver.
fn seeds(usually: u64) -> u64 {
    if z3("(check-sat)\n").is_none() {
        skipped("the engine against an SMT solver", "no z3 on PATH (install the package z3)");
        return 0;
    }
    // More seeds for a longer run: PORTENT_SMT_SEEDS=1000.
    std::env::var("PORTENT_SMT_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(usually)
}

#[test]
fn engine_and_smt_solver_agree_on_mid_size_traces() {
    let seeds = seeds(60);
    let mut asked = Asked::default();
    for seed in 1..=seeds {
        let mut generator = Generator::new(config(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let trace = Trace::from_input(&mut generator).unwrap();
        let f = facts(&trace);
        for model in Model::ALL {
            let asks = |goal: Goal| (goal.clone(), goal_formula(&trace, model, &f, &goal));
            let goals: Vec<_> = goals(&trace).into_iter().map(asks).collect();
            asked.compare(&trace, model, constraints(&trace, model, &f), &goals, &format!("seed {seed}"));
        }
    }
    if seeds > 0 {
        asked.finish(30 * seeds as usize);
        assert_eq!(asked.unsettled, 0, "without formulas the engine settles all of these");
    }
}
