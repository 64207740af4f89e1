//! The engine against the solver on symbolic traces.

use super::formulas::Encoding;
use super::{Asked, goals, seeds};
use portent_order::Model;
use portent_trace::Trace;
use portent_trace::generate::{Config, Generator, Start};

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
        reads: 0.5,
        updates: if seed.is_multiple_of(2) { 0.1 } else { 0.0 },
        symbolic: true,
        read_branches: Some(if seed.is_multiple_of(2) { 0.3 } else { 0.6 }),
        local: 0.1,
        unguarded: 0.4,
        guarded: 0.6,
        section: 2,
        nesting: 2,
        conditions: (seed % 3) as u32,
        waits: if seed.is_multiple_of(3) { 0.0 } else { 0.05 },
        ..Config::default()
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
