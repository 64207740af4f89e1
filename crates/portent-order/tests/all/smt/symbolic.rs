//! The engine against the solver on symbolic traces.

use super::formulas::Encoding;
use super::{Asked, goals, seeds};
use portent_order::Model;
use portent_trace::Trace;
use portent_trace::generate::{Config, Generator};

/// As without formulas, but for what this encoding leaves out.
fn config(seed: u64) -> Config {
    let plain = Config::default();
    Config {
        reads: 0.5,
        updates: if seed.is_multiple_of(2) { 0.1 } else { 0.0 },
        symbolic: true,
        read_branches: Some(if seed.is_multiple_of(2) { 0.3 } else { 0.6 }),
        unguarded: 0.4,
        guarded: 0.6,
        nesting: 2,
        waits: if seed.is_multiple_of(3) { 0.0 } else { 0.05 },
        values: plain.values,
        branches: plain.branches,
        hand_over_hand: plain.hand_over_hand,
        shared: plain.shared,
        busy: plain.busy,
        tokens: plain.tokens,
        token_events: plain.token_events,
        ..super::config(seed)
    }
}

#[test]
fn engine_and_smt_solver_agree_on_symbolic_traces() {
    let seeds = seeds(60);
    let mut asked = Asked::default();
    for seed in 1..=seeds {
        let mut generator = Generator::new(config(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let trace = Trace::from_input(&mut generator).unwrap();
        let encoding = Encoding::new(&trace);
        let goals: Vec<_> = goals(&trace).into_iter().map(|goal| (goal.clone(), encoding.goal(&goal))).collect();
        asked.compare(&trace, Model::Values, encoding.constraints(), &goals, &format!("symbolic seed {seed}"));
    }
    if seeds > 0 {
        asked.finish(10 * seeds as usize);
    }
}
