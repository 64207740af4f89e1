//! Branches that go the other way, against the programs they came from: little programs, run once for a trace that has
//! the other side of every branch, and executed under every schedule that takes it.

use portent_order::engine::{Engine, View};
use portent_order::{Goal, Kind, Model, brute};
use portent_testing::goals::engine_agrees;
use portent_trace::generate::{Did, Little, LittleMachine};
use portent_trace::{EventId, Op, Trace};
use std::collections::HashSet;

/// Positions of threads, and whether each can go on, in every state that schedules reach in which threads do these things.
fn all_states(program: &Little, did: &[Vec<(EventId, Option<Did>)>]) -> Vec<(Vec<usize>, Vec<bool>)> {
    let mut reached = Vec::new();
    let mut seen = HashSet::new();
    let mut work = vec![(LittleMachine::new(program), vec![0; did.len()])];
    while let Some((machine, position)) = work.pop() {
        if !seen.insert((position.clone(), machine.state())) {
            continue;
        }
        let mut able = vec![false; did.len()];
        for t in 0..did.len() {
            let Some(&(_, expected)) = did[t].get(position[t]) else { continue };
            let only = if let Some(Did::Branch(taken)) = expected { Some(taken) } else { None };
            let mut machine = machine.clone();
            if machine.step(t, only).is_none() {
                continue;
            }
            able[t] = true;
            let mut position = position.clone();
            position[t] += 1;
            work.push((machine, position));
        }
        reached.push((position, able));
    }
    reached
}

#[test]
fn what_lies_behind_the_other_side_is_what_programs_do_there() {
    // Another number for a shorter or a longer run: PORTENT_PROGRAMS=1000.
    let programs = std::env::var("PORTENT_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let (mut sides, mut feasible, mut infeasible) = (0u64, 0u64, 0u64);
    for seed in 1..=programs {
        let program = Little::new(seed);
        let (text, run) = program.run(seed);
        if run.len() > 14 {
            continue;
        }
        let trace = Trace::from_std(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let Some(symbols) = trace.symbols() else { continue };
        for branch in trace.events().filter(|event| event.op == Op::Branch) {
            let Some(side) = symbols.side(branch.id) else { continue };
            // Where another thread holds a lock of the side for good, there is nothing to tell.
            let Some(other) = trace.other_side(branch.id, side, trace.len()) else { continue };
            let flipped = &other.trace;
            sides += 1;
            // What each thread does now: what it did, or what the other side says.
            let mut done = vec![Vec::new(); trace.threads() - 1];
            run.iter().for_each(|&(t, did)| done[t].push(did));
            let mut did: Vec<Vec<(EventId, Option<Did>)>> = vec![Vec::new(); trace.threads() - 1];
            for event in flipped.events().filter(|e| e.thread.index() > 0 && !matches!(e.op, Op::Receive(_))) {
                let t = event.thread.index() - 1;
                let expected = match done[t].get(did[t].len()).copied() {
                    Some(Did::Branch(taken)) if event.id == branch.id => Some(Did::Branch(!taken)),
                    known if event.id.index() < other.first => known,
                    _ => None,
                };
                did[t].push((event.id, expected));
            }
            let states = all_states(&program, &did);
            let view = View::whole(flipped, Model::Values);
            let mut engine = Engine::new(&view);
            for goal in brute::candidates(flipped, Kind::Race) {
                let Goal::Race { first, second } = goal else { unreachable!("races are races") };
                if second.index() < other.first {
                    continue;
                }
                let story = format_args!("seed {seed}, {:?}\n{text}", branch.id);
                let next = |(position, able): &(Vec<usize>, Vec<bool>), event: EventId| {
                    let t = flipped.thread(event).index().wrapping_sub(1);
                    did.get(t).and_then(|did| did.get(position[t])).is_some_and(|&(e, _)| e == event) && able[t]
                };
                let truth = states.iter().any(|state| next(state, first) && next(state, second));
                if seed.is_multiple_of(10) {
                    let by_brute = brute::decide(flipped, Model::Values, &goal);
                    assert_eq!(by_brute.is_some(), truth, "wrong oracle: {goal:?}, {story}");
                }
                engine_agrees(&mut engine, flipped, Model::Values, &goal, truth, &story);
                if truth { feasible += 1 } else { infeasible += 1 }
            }
        }
    }
    println!("{sides} sides, {feasible} races behind them, {infeasible} that are none");
    assert!(sides * 5 > programs && feasible * 20 > sides && infeasible * 10 > sides);
}
