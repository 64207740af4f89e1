//! Loops that only look: the search, which leaves rounds of them out, held against every state of programs with such loops.

use crate::little::machine::{Choice, Comparison, Condition, Instruction, Little, Next, Place, Value, World};
use crate::little::runner::{RunOn, Runner};
use portent_order::engine::Effort;
use portent_order::{Goal, Schedule, Verdict};
use portent_search::{End, Operation, Options, Plan, Subject, Visit, explore, stuck_cuts};
use portent_testing::dice::Dice;
use portent_testing::parallel::each_seed;
use portent_trace::{Event, Mode};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

/// Programs that need more are too large.
const MOST_RUNS: usize = 400;

/// What can happen to a program, whatever the histories of its threads.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    failures: BTreeSet<(usize, Operation)>,
    /// What a variable can hold when every thread is done or has failed.
    finals: BTreeSet<(usize, i64)>,
    /// What threads want to do that cannot go on, or that spin: of a loop, its first operation.
    hangs: BTreeSet<Vec<Option<Operation>>>,
}

/// By visiting every state: without any rule for loops. `None` if there are more than `most`.
fn truth(program: &Little, most: usize) -> Option<Facts> {
    let start = ((0..program.code.len()).map(|thread| program.start(thread)).collect(), program.world());
    let mut numbers: HashMap<(Vec<Place>, World), usize> = HashMap::from([(start.clone(), 0)]);
    let (mut states, mut edges) = (vec![start], Vec::new());
    let mut facts = Facts::default();
    while edges.len() < states.len() {
        let (places, mut world): (Vec<Place>, World) = states[edges.len()].clone();
        for (thread, place) in places.iter().enumerate() {
            world.done[thread] = world.started[thread] && program.next(thread, place) == Next::Done;
            if world.started[thread] && program.next(thread, place) == Next::Failed {
                facts.failures.insert((thread, program.operation(thread, place).expect("it fails there")));
            }
        }
        let mut next = Vec::new();
        for thread in 0..places.len() {
            let mut after = (places.clone(), world.clone());
            let Some(seen) = after.1.step(program, thread, &places[thread], Choice::default()) else { continue };
            after.0[thread] = program.after(thread, &places[thread], seen);
            let number = *numbers.entry(after.clone()).or_insert(states.len());
            if number == states.len() {
                states.push(after);
            }
            next.push((thread, number));
        }
        let finished = |thread: usize| matches!(program.next(thread, &places[thread]), Next::Done | Next::Failed);
        if (0..places.len()).all(|thread| finished(thread) || !world.started[thread]) {
            facts.finals.extend(world.variables.iter().copied().enumerate());
        }
        edges.push(next);
        if states.len() > most {
            return None;
        }
    }
    for states_of in ends(&edges) {
        facts.hangs.extend(hang(program, &states, &edges, &states_of));
    }
    Some(facts)
}

/// Sets of states that lead to each other and nowhere else.
fn ends(edges: &[Vec<(usize, usize)>]) -> Vec<BTreeSet<usize>> {
    let reach = |from: usize| {
        let (mut seen, mut work) = (BTreeSet::from([from]), vec![from]);
        while let Some(state) = work.pop() {
            work.extend(edges[state].iter().map(|&(_, to)| to).filter(|&to| seen.insert(to)));
        }
        seen
    };
    // Whoever goes on from a state, as long as it leads to a state that does not lead back, comes to such a set.
    let (mut found, mut looked_at) = (Vec::new(), BTreeSet::new());
    for state in (0..edges.len()).rev() {
        if looked_at.contains(&state) {
            continue;
        }
        let reached = reach(state);
        if reached.iter().all(|&other| reach(other).contains(&state)) {
            looked_at.extend(reached.iter().copied());
            found.push(reached);
        } else {
            looked_at.insert(state);
        }
    }
    found
}

/// What the threads want there; `None` if all are done.
fn hang(
    program: &Little,
    states: &[(Vec<Place>, World)],
    edges: &[Vec<(usize, usize)>],
    set: &BTreeSet<usize>,
) -> Option<Vec<Option<Operation>>> {
    let any = *set.first()?;
    let mut wants: BTreeMap<usize, BTreeSet<Operation>> = BTreeMap::new();
    for &state in set {
        for &(thread, _) in &edges[state] {
            wants.entry(thread).or_default().extend(program.operation(thread, &states[state].0[thread]));
        }
    }
    let (places, world) = &states[any];
    let want = |thread: usize| match (wants.get(&thread), program.next(thread, &places[thread])) {
        (Some(spins), _) => spins.first().copied(),
        (None, Next::Does(_)) if world.started[thread] => program.operation(thread, &places[thread]),
        _ => None,
    };
    let all: Vec<Option<Operation>> = (0..places.len()).map(want).collect();
    all.iter().any(Option::is_some).then_some(all)
}

/// What a search finds, how many behaviours, and whether it is certain that these are all hangs.
fn found(program: &Little, run_on: RunOn, story: &dyn Fn() -> String) -> Option<(Facts, usize, bool)> {
    let mut runner = Runner::new(program, run_on);
    let mut facts = Facts::default();
    let mut stuck = Vec::new();
    let explored =
        explore(&mut runner, &Options { runs: MOST_RUNS, ..Options::default() }, &mut |visit: Visit<'_, '_, '_>| {
            let run = visit.run;
            if visit.is_over {
                let cuts =
                    stuck_cuts(run, visit.spins, visit.engine, 100_000, Effort::default()).expect("few combinations");
                stuck.extend(cuts.into_values().map(|stuck| {
                    let plan = |schedule: Schedule| run.plan(visit.made, schedule, 0);
                    (stuck.spins, stuck.schedules.into_iter().map(plan).collect::<Vec<Plan>>())
                }));
                return ControlFlow::Continue(());
            }
            for (thread, history) in run.threads.iter().enumerate() {
                if let Some(End::Failed(operation)) = history.as_ref().map(|history| history.end) {
                    facts.failures.insert((thread, operation));
                }
            }
            if run.threads.iter().flatten().all(|history| matches!(history.end, End::Done | End::Failed(_))) {
                for event in run.trace.events().filter(|event| event.op.writes()) {
                    let variable = event.op.variable().expect("it writes");
                    let goal = Goal::FinalValue { variable, challenger: event.id };
                    let is_write = |e: &Event| e.op.writes() && e.op.variable() == Some(variable);
                    let last = run.trace.events().rfind(is_write);
                    let mut holds = || matches!(visit.engine.decide(&goal, Effort::default()), Verdict::Feasible(_));
                    if last.is_some_and(|last| last.id == event.id) || holds() {
                        facts.finals.insert((variable.index(), event.value.expect("values are known")));
                    }
                }
            }
            ControlFlow::Continue(())
        });
    let explored = explored.unwrap_or_else(|never| match never {});
    if explored.runs == MOST_RUNS {
        return None;
    }
    assert!(explored.is_complete(), "not complete: {:?}: {}", explored.incomplete, story());
    let mut certain = true;
    for (spins, plans) in stuck {
        let mut run = |plan: &Plan| {
            let run = runner.run(plan).unwrap_or_else(|never| match never {});
            let steps: usize = run.threads.iter().flatten().map(|history| history.steps.len()).sum();
            steps <= plan.turns.len()
        };
        let hangs = plans.iter().filter(|plan| run(plan)).count() > 0;
        assert!(hangs || spins, "no deadlock: {}", story());
        certain &= hangs;
    }
    facts.hangs = runner.hangs;
    Some((facts, explored.behaviours, certain))
}

fn compare(program: &Little, run_on: RunOn, most: usize, story: &dyn Fn() -> String) -> Option<(Facts, usize, bool)> {
    let truth = truth(program, most)?;
    let (mut found, behaviours, certain) = found(program, run_on, story)?;
    if !certain {
        let invented: Vec<_> = found.hangs.difference(&truth.hangs).collect();
        assert!(invented.is_empty(), "{invented:?}: {}", story());
        found.hangs.clone_from(&truth.hangs);
    }
    assert_eq!(found, truth, "{}", story());
    Some((found, behaviours, certain))
}

fn write(variable: usize, value: i64) -> Instruction {
    Instruction::Write { variable, value: Value::Number(value), atomic: true }
}

fn read(variable: usize, register: usize) -> Instruction {
    Instruction::Read { variable, register, atomic: true }
}

fn equal(register: usize, number: i64) -> Condition {
    Condition(Comparison::Equal, register, number)
}

/// Fails unless a register holds a number.
fn assert_equal(register: usize, number: i64) -> Instruction {
    Instruction::Assert(equal(register, number), equal(register, number))
}

fn program_of(code: Vec<Vec<Instruction>>, variables: usize, locks: usize) -> Little {
    let started = (0..code.len()).collect();
    Little { code, variables, locks, started, ..Little::default() }
}

/// The side of Peterson's lock; wrong if the turn is given away first.
fn side(own: usize, other: usize, wrong: bool) -> Vec<Instruction> {
    let (turn, inside) = (2, 3);
    let mut body = vec![write(own, 1), write(turn, other as i64)];
    if wrong {
        body.reverse();
    }
    body.extend([
        read(other, 0),
        read(turn, 1),
        Instruction::Unless(Condition(Comparison::Other, 0, 0), 6),
        Instruction::Unless(equal(1, own as i64), 2),
        Instruction::Add { variable: inside, number: 1, register: 2 },
        assert_equal(2, 0),
        Instruction::Add { variable: inside, number: -1, register: 2 },
        write(own, 0),
    ]);
    body
}

#[test]
fn known_loops_have_so_many_behaviours_and_hang_or_not() {
    let until = |variable: usize, value: i64| [read(variable, 0), Instruction::Unless(equal(0, value), 0)];
    let flag = {
        let waits =
            [&until(1, 1)[..], &[Instruction::Read { variable: 0, register: 1, atomic: false }, assert_equal(1, 1)]];
        program_of(vec![vec![write(0, 1), write(1, 1)], waits.concat()], 2, 0)
    };
    let lock = {
        let exchange = Instruction::CompareExchange {
            variable: 0,
            expected: Value::Number(0),
            new: Value::Number(1),
            register: 0,
        };
        let adds = [Instruction::Read { variable: 1, register: 1, atomic: false }, {
            Instruction::Write { variable: 1, value: Value::Register(1, 1), atomic: false }
        }];
        let body = [&[exchange, Instruction::Unless(equal(0, 0), 0)][..], &adds, &[write(0, 0)]].concat();
        program_of(vec![body.clone(), body], 2, 0)
    };
    let livelock = {
        let body = |waits: usize, gives: usize| [&until(waits, 1)[..], &[write(gives, 1)]].concat();
        program_of(vec![body(0, 1), body(1, 0)], 2, 0)
    };
    let toggles = {
        let waits = [&until(0, 1)[..], &[write(1, 1)]].concat();
        program_of(vec![vec![write(0, 1), write(0, 0)], waits], 2, 0)
    };
    let try_lock = {
        let tries = Instruction::Try { lock: 0, mode: Mode::Exclusive, register: 0 };
        let adds = [read(0, 1), Instruction::Write { variable: 0, value: Value::Register(1, 1), atomic: true }];
        let ends = [Instruction::Unlock(0, Mode::Exclusive)];
        let body = [&[tries, Instruction::Unless(equal(0, 1), 0)][..], &adds, &ends].concat();
        program_of(vec![body.clone(), body], 1, 1)
    };
    let peterson = program_of(vec![side(0, 1, false), side(1, 0, false)], 4, 0);
    let wrong = program_of(vec![side(0, 1, true), side(1, 0, true)], 4, 0);
    // Seen at once, or after one round; the same for whoever is second; nobody goes on; seen, missed, or missed and spun.
    for (name, program, behaviours, fails, hangs) in [
        ("flag", &flag, Some(2), false, false),
        ("lock", &lock, Some(4), false, false),
        ("try lock", &try_lock, None, false, false),
        ("livelock", &livelock, Some(1), false, true),
        ("toggles", &toggles, Some(3), false, true),
        ("Peterson", &peterson, None, false, false),
        ("Peterson, wrong", &wrong, None, true, false),
    ] {
        for run_on in [RunOn::Stay, RunOn::Random] {
            let (facts, seen, certain) = compare(program, run_on, 10_000, &|| name.into()).expect("few states");
            println!("{name}: {seen} behaviours");
            assert!(certain || name.starts_with("Peterson"), "{name}");
            assert!(behaviours.is_none_or(|behaviours| behaviours == seen), "{name}: {seen}");
            assert_eq!((!facts.failures.is_empty(), !facts.hangs.is_empty()), (fails, hangs), "{name}: {facts:?}");
        }
    }
}

/// Threads that write, wait for values in loops, and take locks in loops.
fn random(seed: u64) -> Little {
    let mut dice = Dice::new(seed);
    let (variables, locks) = (dice.one_of(&[1, 2, 2]), 1);
    let threads = dice.one_of(&[2, 2, 3]);
    let code = (0..threads).map(|_| {
        let mut body = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let (variable, at) = (dice.below(variables), body.len());
            match dice.below(10) {
                0..=3 => body.push(write(variable, dice.one_of(&[0, 1, 1, 2]))),
                4 | 5 => {
                    let how = dice.one_of(&[Comparison::Equal, Comparison::Other, Comparison::More]);
                    body.extend([read(variable, 0), Instruction::Unless(Condition(how, 0, dice.one_of(&[0, 1])), at)]);
                }
                6 => {
                    let second = dice.below(variables);
                    body.extend([read(variable, 0), read(second, 1)]);
                    body.extend([Instruction::Unless(Condition(Comparison::Other, 0, 1), at + 4)]);
                    body.push(Instruction::Unless(equal(1, dice.one_of(&[0, 1])), at));
                }
                7 => {
                    let (expected, new) = (Value::Number(0), Value::Number(1));
                    body.push(Instruction::CompareExchange { variable, expected, new, register: 0 });
                    body.push(Instruction::Unless(equal(0, 0), at));
                    if dice.percent(70) {
                        body.push(write(variable, 0));
                    }
                }
                8 => {
                    body.push(Instruction::Try { lock: 0, mode: Mode::Exclusive, register: 0 });
                    body.push(Instruction::Unless(equal(0, 1), at));
                    body.push(write(variable, dice.one_of(&[1, 2])));
                    body.push(Instruction::Unlock(0, Mode::Exclusive));
                }
                _ => {
                    body.push(read(variable, 1));
                    let (one, other) = (equal(1, 0), equal(1, dice.one_of(&[1, 2])));
                    body.push(Instruction::Assert(one, other));
                }
            }
        }
        body
    });
    program_of(code.collect(), variables, locks)
}

fn run(programs: u64, first_seed: u64) {
    let counts = each_seed(first_seed..first_seed + programs, |seed| {
        let program = random(seed);
        let run_on = if seed % 2 == 0 { RunOn::Stay } else { RunOn::Random };
        let (facts, seen, certain) =
            compare(&program, run_on, 3_000, &|| format!("seed {seed}, {run_on:?}\n{program:#?}"))?;
        Some([1, seen, facts.failures.len(), facts.hangs.len(), usize::from(certain)])
    });
    let all = counts.iter().flatten().fold([0; 5], |all, one| [0, 1, 2, 3, 4].map(|at| all[at] + one[at]));
    println!("programs, behaviours, failures, hangs, programs of which all hangs are known: {all:?}");
    assert!(all[4] * 10 > all[0] * 8, "{all:?}");
    assert!(all[0] as u64 * 10 > programs * 9 && all[2] > 0 && all[3] > 0, "{all:?}");
}

#[test]
fn what_goes_wrong_in_random_programs_with_loops_that_only_look_is_found() {
    run(4_000, 1);
}
