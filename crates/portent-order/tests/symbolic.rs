//! Symbolic traces against the programs they came from: little programs, run once for a trace with formulas, and executed
//! under every schedule for the truth. What the oracle makes of the formulas must be that, and the engine must agree.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Verdict, Writer, brute, check};
use portent_trace::generate::{Did, Little, LittleMachine};
use portent_trace::{EventId, Op, Trace};
use std::collections::HashSet;

/// A state of the program that some schedule reaches: how far each thread is, who wrote each variable last, and what it
/// holds.
struct Reached {
    position: Vec<usize>,
    /// Threads that can make their next step.
    able: Vec<bool>,
    last: Vec<EventId>,
    holds: Vec<i64>,
}

/// Every state in which every thread has done what it did in the run, as far as it has come.
fn all_states(program: &Little, did: &[Vec<(EventId, Did)>]) -> Vec<Reached> {
    let mut reached = Vec::new();
    let mut seen = HashSet::new();
    let variables = program.variables();
    let main: Vec<EventId> = (0..variables).map(EventId::new).collect();
    let mut work = vec![(LittleMachine::new(program), vec![0; did.len()], main)];
    while let Some((machine, position, last)) = work.pop() {
        if !seen.insert((position.clone(), last.clone(), machine.state())) {
            continue;
        }
        let mut able = vec![false; did.len()];
        for t in 0..did.len() {
            let Some(&(event, expected)) = did[t].get(position[t]) else { continue };
            let only = if let Did::Branch(taken) = expected { Some(taken) } else { None };
            let mut machine = machine.clone();
            let Some(done) = machine.step(t, only) else { continue };
            able[t] = true;
            let (mut position, mut last) = (position.clone(), last.clone());
            position[t] += 1;
            if let Did::Write(x, _) | Did::Update(x, ..) = done {
                last[x] = event;
            }
            work.push((machine, position, last));
        }
        let holds = (0..variables).map(|x| machine.holds(x)).collect();
        reached.push(Reached { position, able, last, holds });
    }
    reached
}

/// Whether some state of the program is what the goal wants; `None` for kinds that this does not tell.
fn truth(trace: &Trace, states: &[Reached], did: &[Vec<(EventId, Did)>], goal: &Goal) -> Option<bool> {
    let next = |state: &Reached, event: EventId| {
        let t = trace.thread(event).index().wrapping_sub(1);
        did.get(t).and_then(|did| did.get(state.position[t])).is_some_and(|&(e, _)| e == event) && state.able[t]
    };
    let variable = |event: EventId| trace.op(event).variable().unwrap().index();
    Some(match *goal {
        Goal::Race { first, second } => states.iter().any(|s| next(s, first) && next(s, second)),
        Goal::Nondeterminism { read, challenger } => {
            let Writer::Event(c) = challenger else { return Some(false) };
            let expected = did.iter().flatten().find(|(e, _)| *e == read).map(|(_, did)| match *did {
                Did::Read(_, seen) | Did::Update(_, seen, _) => seen,
                _ => unreachable!("a read reads"),
            });
            let x = variable(read);
            states.iter().any(|s| next(s, read) && s.last[x] == c && Some(s.holds[x]) != expected)
        }
        Goal::FinalValue { variable, challenger } => {
            let x = variable.index();
            let mut writes = trace.events().filter(|e| e.op.writes() && e.op.variable() == Some(variable));
            let ended = writes.next_back().and_then(|e| e.value);
            let complete = |s: &Reached| did.iter().zip(&s.position).all(|(did, &at)| at == did.len());
            states.iter().any(|s| complete(s) && s.last[x] == challenger && Some(s.holds[x]) != ended)
        }
        _ => return None,
    })
}

fn run(programs: u64, first_seed: u64) {
    let mut counts = [[0u64; 2]; Kind::ALL.len()];
    let (mut more, mut fewer) = (0u64, 0u64);
    for seed in first_seed..first_seed + programs {
        let program = Little::new(seed);
        let (text, run) = program.run(seed);
        let trace = Trace::from_std(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        if run.len() > 14 {
            continue;
        }
        let mut did: Vec<Vec<(EventId, Did)>> = vec![Vec::new(); trace.threads() - 1];
        let mut kernel: Vec<_> = trace
            .thread_ids()
            .skip(1)
            .map(|t| trace.events().filter(move |e| e.thread == t && !matches!(e.op, Op::Receive(_))).map(|e| e.id))
            .collect();
        for &(t, done) in &run {
            did[t].push((kernel[t].next().unwrap(), done));
        }
        let states = all_states(&program, &did);
        let view = View::whole(&trace, Model::Values);
        let mut engine = Engine::new(&view);
        for (k, kind) in Kind::ALL.into_iter().enumerate() {
            for goal in brute::candidates(&trace, kind) {
                let story = || format!("seed {seed}, {goal:?}\n{text}");
                let truth = truth(&trace, &states, &did, &goal);
                // Running the program is the truth; the oracle, much slower, is held to it in every tenth.
                let feasible = match truth {
                    Some(truth) if !seed.is_multiple_of(10) => truth,
                    _ => {
                        let by_brute = brute::decide(&trace, Model::Values, &goal);
                        assert!(truth.is_none_or(|truth| by_brute.is_some() == truth), "wrong oracle: {}", story());
                        if let Some(witness) = &by_brute {
                            check(&trace, Model::Values, &goal, witness)
                                .unwrap_or_else(|why| panic!("{why}: {}", story()));
                        }
                        by_brute.is_some()
                    }
                };
                match engine.decide(&goal, Effort::default()) {
                    Verdict::Feasible(witness) => {
                        check(&trace, Model::Values, &goal, &witness)
                            .unwrap_or_else(|why| panic!("engine's witness: {why}: {}", story()));
                        assert!(feasible, "the engine found what cannot happen: {}", story());
                    }
                    Verdict::Infeasible => assert!(!feasible, "the engine missed it: {}", story()),
                    Verdict::Unknown(why) => panic!("unknown ({why}): {}", story()),
                }
                counts[k][usize::from(feasible)] += 1;
                if kind == Kind::Race && seed.is_multiple_of(10) {
                    let by_reads = brute::decide(&trace, Model::Reads, &goal).is_some();
                    more += u64::from(feasible && !by_reads);
                    fewer += u64::from(!feasible && by_reads);
                }
            }
        }
    }
    for (kind, [no, yes]) in Kind::ALL.into_iter().zip(counts) {
        println!("{}: {yes} feasible, {no} not", kind.name());
    }
    println!("races: {more} that `reads` does not find, {fewer} that only it finds");
    for [no, yes] in &counts[..3] {
        assert!(yes * 100 > *no && no * 100 > *yes, "hardly any goal is feasible, or infeasible: {yes} and {no}");
    }
    // Only an update that would divide by what it reads next, and that is 0 now, races in `reads` and not here.
    assert!(more * 10 > programs / 10 && fewer * 20 < more, "{more} more, {fewer} fewer");
}

#[test]
fn what_formulas_say_is_what_programs_do() {
    // Another number for a shorter or a longer run: PORTENT_PROGRAMS=1000.
    let programs = std::env::var("PORTENT_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    run(programs, 1);
}

#[test]
#[ignore = "a nightly-style run: a million programs"]
fn what_formulas_say_is_what_a_million_programs_do() {
    run(1_000_000, 1 << 32);
}

/// Windows know what was read before them, and the sweep over all races answers what the questions answer one by one.
#[test]
fn windows_of_symbolic_traces_are_sound_and_sweeps_agree() {
    let mut feasible = 0;
    for seed in 0..2_000 {
        let (text, _) = Little::new(seed).run(seed + 7);
        let trace = Trace::from_std(&text).unwrap();
        for view in View::windows(&trace, Model::Values, 6) {
            let mut engine = Engine::new(&view);
            for kind in Kind::ALL {
                for goal in brute::candidates(&trace, kind) {
                    if let Verdict::Feasible(witness) = engine.decide(&goal, Effort::default()) {
                        feasible += 1;
                        check(&trace, Model::Values, &goal, &witness)
                            .unwrap_or_else(|why| panic!("{why}: seed {seed}, {goal:?}, {:?}\n{text}", view.span()));
                    }
                }
            }
        }
        let view = View::whole(&trace, Model::Values);
        let mut engine = Engine::new(&view);
        let mut swept = Vec::new();
        engine.answer_races(
            EventId::new(0),
            Effort::default(),
            &|| false,
            &mut |_, _| true,
            &mut |first, second, yes| {
                assert_eq!(yes, Some(true));
                swept.push(Goal::Race { first, second });
            },
        );
        engine.answer_reads(EventId::new(0), Effort::default(), &|| false, &mut |read, challenger, yes| {
            assert_eq!(yes, Some(true));
            swept.push(Goal::Nondeterminism { read, challenger });
        });
        swept.sort();
        let mut one_by_one: Vec<Goal> = [Kind::Race, Kind::Nondeterminism]
            .into_iter()
            .flat_map(|kind| brute::candidates(&trace, kind))
            .filter(|goal| matches!(engine.decide(goal, Effort::default()), Verdict::Feasible(_)))
            .collect();
        one_by_one.sort();
        assert_eq!(swept, one_by_one, "seed {seed}\n{text}");
    }
    assert!(feasible > 1_000, "{feasible}");
}
