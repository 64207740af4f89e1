//! Where nothing is proven, and that this is said.

use crate::little::generate::{Profile, program};
use crate::little::machine::{Comparison, Condition, Instruction, Little, Value};
use crate::little::runner::{RunOn, Runner};
use portent_search::{Explored, Incomplete, Options, explore};
use std::ops::ControlFlow;

fn search(runner: &mut Runner<'_>, options: &Options) -> Explored {
    explore(runner, options, &mut |_| ControlFlow::Continue(())).unwrap_or_else(|never| match never {})
}

/// Two threads that count, each in two steps.
fn counters(threads: usize) -> Little {
    let body = vec![
        Instruction::Read { variable: 0, register: 0, atomic: false },
        Instruction::Write { variable: 0, value: Value::Register(0, 1), atomic: false },
    ];
    Little { code: vec![body; threads], variables: 1, locks: 0, started: (0..threads).collect(), ..Little::default() }
}

#[test]
fn two_counters_have_three_behaviours() {
    let program = counters(2);
    let mut runner = Runner::new(&program, RunOn::Stay);
    let explored = search(&mut runner, &Options::default());
    assert!(explored.is_complete());
    // Either is first, or none sees the other.
    assert_eq!((explored.runs, explored.behaviours, runner.runs), (3, 3, 3));
}

#[test]
fn a_budget_leaves_questions() {
    let program = counters(3);
    let explored = search(&mut Runner::new(&program, RunOn::Stay), &Options { runs: 4, ..Options::default() });
    assert_eq!(explored.runs, 4);
    assert!(matches!(explored.incomplete.first(), Some(Incomplete::Budget(left)) if *left > 0), "{explored:?}");
    let stopped =
        explore(&mut Runner::new(&program, RunOn::Stay), &Options::default(), &mut |_| ControlFlow::Break(()));
    assert!(!stopped.unwrap_or_else(|never| match never {}).is_complete());
}

#[test]
fn goals_without_room_prove_nothing() {
    let program = counters(3);
    let explored = search(&mut Runner::new(&program, RunOn::Stay), &Options { goals: 2, ..Options::default() });
    assert!(matches!(explored.incomplete.first(), Some(Incomplete::Budget(left)) if *left > 0), "{explored:?}");
}

#[test]
fn a_program_that_changes_between_runs_proves_nothing() {
    let mut noticed = 0;
    for seed in 0..200 {
        let program = program(seed, Profile::Mixed, 7);
        let mut runner = Runner { breaks_at: Some(2), ..Runner::new(&program, RunOn::Stay) };
        let explored = search(&mut runner, &Options::default());
        assert!(explored.is_complete() == (runner.runs == 1), "seed {seed}: {explored:?}");
        let not = |why: &Incomplete| matches!(why, Incomplete::NotDeterministic(_));
        noticed += usize::from(explored.incomplete.iter().any(not));
    }
    assert!(noticed > 50, "{noticed}");
}

#[test]
fn an_endless_loop_is_stopped_and_proves_nothing() {
    let wait = vec![
        Instruction::Read { variable: 0, register: 0, atomic: true },
        Instruction::Write { variable: 1, value: Value::Number(1), atomic: true },
        Instruction::Unless(Condition(Comparison::Other, 0, 0), 0),
    ];
    let program = Little { code: vec![wait], variables: 2, locks: 0, started: vec![0], ..Little::default() };
    let explored = search(&mut Runner::new(&program, RunOn::Stay), &Options { runs: 5, ..Options::default() });
    assert!(explored.incomplete.contains(&Incomplete::Stopped), "{explored:?}");
}
