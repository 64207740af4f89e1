//! Symbolic traces against the programs they came from: little programs, run once for a trace with formulas, and executed
//! under every schedule for the truth. What the oracle makes of the formulas must be that, and the engine must agree.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Checker, Goal, Kind, Model, Verdict, Writer, brute, check};
use portent_testing::goals::{candidates, engine_agrees, is_of_the_same_value, oracle_reaches};
use portent_trace::generate::{Did, Little, LittleMachine};
use portent_trace::symbolic::{ExprId, Node, Operator};
use portent_trace::{EventId, Op, Trace, VarId};
use std::collections::{BTreeSet, HashMap};

/// What each thread but the main one did in the recorded run, as events of the trace.
type Recorded = Vec<Vec<(EventId, Did)>>;

/// A state of the program that some schedule reaches: how far each thread is, who wrote each variable last, what it
/// holds, and who holds which lock.
struct Reached {
    position: Vec<usize>,
    last: Vec<EventId>,
    holds: Vec<i64>,
    holders: Vec<Option<usize>>,
    /// What can happen next, by whom, and the state after it.
    next: Vec<(usize, EventId, usize)>,
    /// The events that can still happen from here, as bits.
    future: u64,
}

impl Reached {
    fn is_able(&self, t: usize) -> bool {
        self.next.iter().any(|&(able, ..)| able == t)
    }
}

/// Every state in which every thread has done what it did in the run, as far as it has come.
fn all_states(program: &Little, did: &Recorded) -> Vec<Reached> {
    let mut reached: Vec<Reached> = Vec::new();
    let mut known = HashMap::new();
    let variables = program.variables();
    let main: Vec<EventId> = (0..variables).map(EventId::new).collect();
    let mut machines = vec![LittleMachine::new(program)];
    let start = |position: Vec<usize>, last: Vec<EventId>, machine: &LittleMachine| Reached {
        position,
        last,
        holds: (0..variables).map(|x| machine.holds(x)).collect(),
        holders: (0..program.locks()).map(|lock| machine.holder(lock)).collect(),
        next: Vec::new(),
        future: 0,
    };
    reached.push(start(vec![0; did.len()], main, &machines[0]));
    let mut at = 0;
    while at < reached.len() {
        for t in 0..did.len() {
            let Some(&(event, expected)) = did[t].get(reached[at].position[t]) else { continue };
            let only = if let Did::Branch(taken) = expected { Some(taken) } else { None };
            let mut machine = machines[at].clone();
            let Some(done) = machine.step(t, only) else { continue };
            let (mut position, mut last) = (reached[at].position.clone(), reached[at].last.clone());
            position[t] += 1;
            if let Did::Write(x, _) | Did::Update(x, ..) = done {
                last[x] = event;
            }
            let key = (position.clone(), last.clone(), machine.state());
            let after = *known.entry(key).or_insert_with(|| {
                reached.push(start(position, last, &machine));
                machines.push(machine);
                reached.len() - 1
            });
            reached[at].next.push((t, event, after));
        }
        at += 1;
    }
    // States come in the order of how many events lead to them.
    for at in (0..reached.len()).rev() {
        let bits = reached[at].next.iter().map(|&(_, event, after)| 1u64 << event.index() | reached[after].future);
        reached[at].future = bits.fold(0, |all, bits| all | bits);
    }
    reached
}

/// Whether the program, run in every way, does what the goal wants.
fn truth(trace: &Trace, states: &[Reached], did: &Recorded, goal: &Goal) -> bool {
    let thread = |event: EventId| trace.thread(event).index() - 1;
    // The main thread only starts the others, and is done before they are.
    let is_main = |event: EventId| trace.thread(event).index() == 0;
    let rank = |event: EventId| did[thread(event)].iter().position(|&(e, _)| e == event);
    let did_what = |event: EventId| did[thread(event)].iter().find(|(e, _)| *e == event).map(|&(_, did)| did);
    let is_at = |s: &Reached, event: EventId| rank(event) == Some(s.position[thread(event)]);
    let is_done = |s: &Reached, event: EventId| rank(event).is_some_and(|rank| rank < s.position[thread(event)]);
    let is_next = |s: &Reached, event: EventId| !is_main(event) && s.next.iter().any(|&(_, next, _)| next == event);
    match *goal {
        Goal::Race { first, second } => states.iter().any(|s| is_next(s, first) && is_next(s, second)),
        Goal::Nondeterminism { read, challenger } => {
            let Writer::Event(c) = challenger else { return false };
            let expected = match did_what(read) {
                Some(Did::Read(_, seen) | Did::Update(_, seen, _)) => seen,
                other => unreachable!("a read reads: {other:?}"),
            };
            let x = trace.op(read).variable().unwrap().index();
            states.iter().any(|s| is_next(s, read) && s.last[x] == c && s.holds[x] != expected)
        }
        Goal::FinalValue { variable, challenger } => {
            let x = variable.index();
            let mut writes = trace.events().filter(|e| e.op.writes() && e.op.variable() == Some(variable));
            let ended = writes.next_back().and_then(|e| e.value);
            let complete = |s: &Reached| did.iter().zip(&s.position).all(|(did, &at)| at == did.len());
            states.iter().any(|s| complete(s) && s.last[x] == challenger && Some(s.holds[x]) != ended)
        }
        Goal::Atomicity { first, remote, second } => {
            if [first, remote, second].into_iter().any(is_main) {
                return false;
            }
            let between = |s: &Reached| is_done(s, first) && !is_done(s, second);
            let goes_on = |after: usize| states[after].future >> second.index() & 1 == 1;
            let after_remote = |s: &Reached| s.next.iter().any(|&(_, e, after)| e == remote && goes_on(after));
            states.iter().any(|s| between(s) && after_remote(s))
        }
        Goal::Deadlock { ref waiting } => {
            let is_held_by_next = |s: &Reached, i: usize| {
                let Some(Did::Acquire(lock)) = did_what(waiting[i]) else { unreachable!("an acquire acquires") };
                s.holders[lock] == Some(thread(waiting[(i + 1) % waiting.len()]))
            };
            states.iter().any(|s| (0..waiting.len()).all(|i| is_at(s, waiting[i]) && is_held_by_next(s, i)))
        }
        Goal::LostUpdate { .. } | Goal::Stuck { .. } => unreachable!("not of this list of kinds"),
        Goal::LostWakeup { pairing } => {
            let pairing = trace.pairings()[pairing.index()];
            // One that would take another branch now, or divide by zero, does not wait for anybody.
            let waits = |s: &Reached, t: usize| match did[t].get(s.position[t]) {
                Some((_, Did::Acquire(_) | Did::Wake)) => !s.is_able(t),
                next => next.is_none(),
            };
            let over = |s: &Reached| (0..did.len()).all(|t| waits(s, t));
            states.iter().any(|s| is_at(s, pairing.wake) && is_done(s, pairing.notify) && over(s))
        }
    }
}

/// Whether an event is an update that divides.
fn updates_by_dividing(trace: &Trace, event: EventId) -> bool {
    let symbols = trace.symbols().unwrap();
    let mut work: Vec<ExprId> = symbols.written(event).into_iter().collect();
    while let Some(expr) = work.pop() {
        match symbols.dag().node(expr) {
            Node::Apply(Operator::Div, _) => return matches!(trace.op(event), Op::Update(..)),
            Node::Apply(_, operands) => work.extend(operands),
            _ => {}
        }
    }
    false
}

/// Asks the engine for every end that complete runs of the program have, and for some that they do not; how many of each.
fn ask_about_ends(
    trace: &Trace,
    states: &[Reached],
    did: &Recorded,
    engine: &mut Engine<'_, '_>,
    story: &str,
) -> [u64; 2] {
    let variables: Vec<VarId> = (0..trace.variables()).map(VarId::new).collect();
    let complete = states.iter().filter(|s| did.iter().zip(&s.position).all(|(did, &at)| at == did.len()));
    let ends: BTreeSet<&Vec<i64>> = complete.map(|s| &s.holds).collect();
    let shifted = ends.iter().take(2).map(|end| end.iter().map(|value| value.wrapping_add(1)).collect());
    let observed: Vec<i64> = variables
        .iter()
        .map(|&x| trace.events().rfind(|e| e.op.writes() && e.op.variable() == Some(x)).unwrap().value.unwrap())
        .collect();
    let wanted: Vec<Vec<i64>> = ends.iter().take(3).map(|&end| end.clone()).chain(shifted).collect();
    let mut counts = [0; 2];
    let mut ask = |truth: bool, is_bad: &mut dyn FnMut(&[i64]) -> bool| {
        let mut known = |values: &[Option<i64>]| {
            let values: Option<Vec<i64>> = values.iter().copied().collect();
            is_bad(&values.unwrap_or_else(|| panic!("every value is known: {story}")))
        };
        match engine.decide_final(&variables, &mut known, Effort::default()) {
            Verdict::Feasible(schedule) => {
                assert!(truth, "the engine found an end that cannot be: {story}");
                let numbers = Checker::new(trace).numbers(&schedule).unwrap_or_else(|why| panic!("{why}: {story}"));
                let last = |x: &VarId| {
                    let written =
                        numbers.iter().rfind(|n| trace.op(n.event).variable() == Some(*x) && n.written.is_some());
                    written.unwrap().written.unwrap()
                };
                assert!(is_bad(&variables.iter().map(last).collect::<Vec<_>>()), "another end: {story}");
            }
            Verdict::Infeasible => assert!(!truth, "the engine missed an end: {story}"),
            Verdict::Unknown(why) => panic!("unknown ({why}): {story}"),
        }
        counts[usize::from(truth)] += 1;
    };
    for wanted in wanted {
        ask(ends.contains(&wanted), &mut |values| values == wanted);
    }
    ask(ends.iter().any(|end| **end != observed), &mut |values| values != observed);
    counts
}

/// Longer runs have too many reorderings.
const LONGEST: usize = 15;

fn run(programs: u64, first_seed: u64, program_of: impl Fn(u64) -> Little) {
    let mut counts = [[0u64; 2]; Kind::ALL.len()];
    let (mut by_reads, mut more, mut fewer) = (0u64, 0u64, 0u64);
    let mut ending = [0u64; 2];
    for seed in first_seed..first_seed + programs {
        let program = program_of(seed);
        let (text, run) = program.run(seed);
        let trace = Trace::from_std(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        if run.len() > LONGEST {
            continue;
        }
        let mut did: Recorded = vec![Vec::new(); trace.threads() - 1];
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
        let ends = ask_about_ends(&trace, &states, &did, &mut engine, &format!("seed {seed}\n{text}"));
        ending.iter_mut().zip(ends).for_each(|(all, one)| *all += one);
        for (k, kind) in Kind::ALL.into_iter().enumerate() {
            for goal in brute::candidates(&trace, kind) {
                let story = format_args!("seed {seed}, {goal:?}\n{text}");
                // Running the program is the truth; the oracle, much slower, is held to it in every tenth.
                let feasible = truth(&trace, &states, &did, &goal);
                if seed.is_multiple_of(10) {
                    let by_oracle = oracle_reaches(&trace, Model::Values, &goal, &story);
                    assert_eq!(by_oracle, feasible, "wrong oracle: {story}");
                }
                engine_agrees(&mut engine, &trace, Model::Values, &goal, feasible, &story);
                counts[k][usize::from(feasible)] += 1;
                if seed.is_multiple_of(10) && brute::decide(&trace, Model::Reads, &goal).is_some() {
                    by_reads += 1;
                    // What `reads` finds, `values` finds, but for what an event of the goal itself would read: the value it
                    // had, or one that it cannot divide by.
                    let excepted = match goal {
                        Goal::Race { first, second } => [first, second].iter().any(|&e| updates_by_dividing(&trace, e)),
                        Goal::Nondeterminism { read, .. } => {
                            updates_by_dividing(&trace, read) || is_of_the_same_value(&trace, &goal)
                        }
                        Goal::FinalValue { .. } => is_of_the_same_value(&trace, &goal),
                        Goal::Atomicity { remote, second, .. } => {
                            [remote, second].iter().any(|&e| updates_by_dividing(&trace, e))
                        }
                        Goal::Deadlock { .. }
                        | Goal::LostWakeup { .. }
                        | Goal::LostUpdate { .. }
                        | Goal::Stuck { .. } => false,
                    };
                    assert!(feasible || excepted, "only `reads` finds it: {story}");
                    fewer += u64::from(!feasible);
                } else if seed.is_multiple_of(10) {
                    more += u64::from(feasible);
                }
            }
        }
    }
    for (kind, [no, yes]) in Kind::ALL.into_iter().zip(counts) {
        println!("{}: {yes} feasible, {no} not", kind.name());
    }
    println!("ends: {} feasible, {} not", ending[1], ending[0]);
    println!("{by_reads} that `reads` finds, {fewer} of them only it, {more} that it does not");
    for [no, yes] in counts.into_iter().chain([ending]) {
        assert!(yes * 100 > no && no * 100 > yes, "hardly any goal is feasible, or infeasible: {yes} and {no}");
    }
    assert!(more * 10 > programs / 10 && fewer * 2 < by_reads, "{by_reads}, {more} more, {fewer} fewer");
}

#[test]
fn what_formulas_say_is_what_programs_do() {
    // Another number for a shorter or a longer run: PORTENT_PROGRAMS=1000.
    let programs = std::env::var("PORTENT_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    run(programs, 1, Little::new);
}

/// A careful program asks before it divides: what the arm that it does not take would divide by is of no importance.
#[test]
fn what_formulas_with_choices_say_is_what_programs_do() {
    run(6_000, 1 << 20, Little::choosing);
}

/// The same with gaps: what some writes write is not told, so arms that are not taken are not known.
#[test]
fn what_is_not_known_of_an_arm_that_is_not_taken_changes_nothing() {
    let mut feasible = [0u64; 2];
    for seed in 0..3_000u64 {
        let (text, run) = Little::choosing(seed).run(seed);
        if run.len() > 12 {
            continue;
        }
        let mut kept = String::new();
        let mut write = false;
        for (at, line) in text.lines().enumerate() {
            // Formulas of writes follow their event.
            let forgotten = write && line.starts_with("#!=") && (seed ^ at as u64).is_multiple_of(3);
            write = line.contains("|w(");
            if !forgotten {
                kept.push_str(&format!("{line}\n"));
            }
        }
        let trace = Trace::from_std(&kept).unwrap();
        let view = View::whole(&trace, Model::Values);
        let mut engine = Engine::new(&view);
        let story = format_args!("seed {seed}\n{kept}");
        for goal in candidates(&trace) {
            let truth = oracle_reaches(&trace, Model::Values, &goal, &story);
            engine_agrees(&mut engine, &trace, Model::Values, &goal, truth, &story);
            feasible[usize::from(truth)] += 1;
        }
    }
    assert!(feasible.iter().all(|&count| count > 1_000), "{feasible:?}");
}

#[test]
fn a_race_behind_an_if_whose_other_arm_is_unknown_is_found() {
    // What T2 first reads is not recorded; T3 uses it only where x is 0.
    let text = "T1|w(x)|1|1\nT3|r(y)|2\nT3|r(x)|3|1\nT3|branch|4\n#!= (gt (if (ne r1 0) 5 r0) 3)\nT3|w(z)|5|1\nT2|w(z)|6|2\n\
                T2|w(y)|7|9\n";
    let trace = Trace::from_std(text).unwrap();
    let write = |x: &str| -> Vec<EventId> {
        let of_x = |e: &portent_trace::Event| e.op.writes() && trace.variable_name(e.op.variable().unwrap()) == x;
        trace.events().filter(of_x).map(|e| e.id).collect()
    };
    let goal = Goal::Race { first: write("z")[0], second: write("z")[1] };
    let witness = brute::decide(&trace, Model::Values, &goal).expect("the oracle finds it");
    check(&trace, Model::Values, &goal, &witness).unwrap();
    let view = View::whole(&trace, Model::Values);
    assert!(matches!(Engine::new(&view).decide(&goal, Effort::default()), Verdict::Feasible(_)));
}

#[test]
fn a_formula_may_name_an_update_of_an_initial_value_that_was_read() {
    let trace =
        Trace::from_std("T3|r(z)|1|0\nT1|u(z)|2|1\n#!= (add r0 1)\nT2|r(z)|3|1\nT2|branch|4\n#!= (eq r0 1)\n").unwrap();
    let mut found = 0;
    for goal in candidates(&trace) {
        let by_brute = brute::decide(&trace, Model::Values, &goal);
        for view in std::iter::once(View::whole(&trace, Model::Values)).chain(View::windows(&trace, Model::Values, 2)) {
            if let Verdict::Feasible(witness) = Engine::new(&view).decide(&goal, Effort::default()) {
                assert!(by_brute.is_some(), "{goal:?}");
                check(&trace, Model::Values, &goal, &witness).unwrap();
            }
        }
        let view = View::whole(&trace, Model::Values);
        let by_engine = Engine::new(&view).decide(&goal, Effort::default());
        assert_eq!(matches!(by_engine, Verdict::Feasible(_)), by_brute.is_some(), "{goal:?}");
        found += usize::from(by_brute.is_some());
    }
    assert!(found > 0);
}

#[test]
#[ignore = "a nightly-style run: a million programs"]
fn what_formulas_say_is_what_a_million_programs_do() {
    run(1_000_000, 1 << 32, Little::new);
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
