//! The order engine against the oracle, both ways, on random small traces: nothing false, nothing missed.
//!
//! The bounded run is part of every test run; `cargo test --release -- --ignored` does a million traces.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Verdict, Writer, brute, check};
use portent_trace::generate::{TinyShape, tiny, tiny_std};
use portent_trace::{EventId, Op, Trace};

#[derive(Default, Debug)]
struct Count {
    goals: u64,
    feasible: u64,
}

/// Every goal of a trace, in a model, by both.
fn compare(seed: u64, shape: &TinyShape, trace: &Trace, model: Model, kind: Kind, count: &mut Count) {
    let view = View::whole(trace, model);
    let mut engine = Engine::new(&view);
    for goal in brute::candidates(trace, kind) {
        let truth = brute::decide(trace, model, &goal);
        let story = || format!("seed {seed}, {shape:?}, {model}, {goal:?}\n{}", tiny_std(seed, shape));
        if let Some(witness) = &truth {
            check(trace, model, &goal, witness).unwrap_or_else(|why| panic!("oracle's witness: {why}\n{}", story()));
        }
        match engine.decide(&goal, Effort::default()) {
            Verdict::Feasible(witness) => {
                check(trace, model, &goal, &witness)
                    .unwrap_or_else(|why| panic!("engine's witness: {why}\n{}", story()));
                assert!(truth.is_some(), "the engine found what cannot happen: {}", story());
            }
            Verdict::Infeasible => assert!(truth.is_none(), "the engine missed {truth:?}: {}", story()),
            Verdict::Unknown(why) => panic!("unknown ({why}): {}", story()),
        }
        count.goals += 1;
        count.feasible += u64::from(truth.is_some());
    }
}

/// The shapes that pose goals of a kind; all of them where any shape does.
fn shapes(kind: Kind) -> Vec<TinyShape> {
    let poses = |shape: &TinyShape| match kind {
        Kind::Race | Kind::Nondeterminism | Kind::FinalValue => true,
        Kind::Atomicity => shape.blocks,
        Kind::Deadlock => shape.lock_heavy,
        Kind::LostWakeup => shape.conditions,
    };
    TinyShape::all().filter(poses).collect()
}

fn run(traces: u64, first_seed: u64) {
    for model in Model::ALL {
        for kind in Kind::ALL {
            let shapes = shapes(kind);
            let mut count = Count::default();
            for i in 0..traces {
                let shape = &shapes[(i % shapes.len() as u64) as usize];
                let seed = first_seed + i;
                compare(seed, shape, &tiny(seed, shape), model, kind, &mut count);
            }
            println!("{model:5} {kind:?}: {traces} traces, {} goals, {} feasible", count.goals, count.feasible);
            assert!(count.feasible * 100 > count.goals, "hardly any goal is feasible: {count:?}");
            assert!(count.feasible * 100 < count.goals * 99, "hardly any goal is infeasible: {count:?}");
        }
    }
}

#[test]
fn engine_and_oracle_agree_on_every_goal_of_random_traces() {
    run(20_000, 1);
}

#[test]
#[ignore = "a nightly-style run: a million traces per model and kind, about an hour"]
fn engine_and_oracle_agree_on_a_million_traces() {
    run(1_000_000, 1 << 32);
}

/// The sweep over all reads answers exactly what the questions answer one by one.
#[test]
fn answering_all_reads_at_once_agrees_with_the_oracle() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    for seed in 0..20_000u64 {
        let shape = &shapes[(seed % shapes.len() as u64) as usize];
        let trace = tiny(seed, shape);
        for model in Model::ALL {
            let goals = brute::candidates(&trace, Kind::Nondeterminism);
            let view = View::whole(&trace, model);
            let mut found = Vec::new();
            let effort = Effort::default();
            let answered =
                Engine::new(&view).answer_reads(EventId::new(0), effort, &|| false, &mut |read, challenger, yes| {
                    assert_eq!(yes, Some(true));
                    found.push(Goal::Nondeterminism { read, challenger });
                });
            found.sort();
            let from = EventId::new(trace.len() / 2);
            let mut later = Vec::new();
            let fewer = Engine::new(&view).answer_reads(from, effort, &|| false, &mut |read, challenger, _| {
                later.push(Goal::Nondeterminism { read, challenger });
            });
            later.sort();
            let is_later = |goal: &&Goal| match goal {
                Goal::Nondeterminism { read, challenger: Writer::Event(c) } => (*read).max(*c) >= from,
                Goal::Nondeterminism { read, .. } => *read >= from,
                _ => false,
            };
            assert_eq!(later, found.iter().filter(is_later).cloned().collect::<Vec<_>>(), "seed {seed}, {model}");
            assert_eq!(fewer.questions, goals.iter().filter(is_later).count() as u64, "seed {seed}, {model}");
            assert_eq!(answered.questions, goals.len() as u64);
            let mut truth: Vec<Goal> =
                goals.into_iter().filter(|g| brute::decide(&trace, model, g).is_some()).collect();
            truth.sort();
            assert_eq!(found, truth, "seed {seed}, {model}\n{}", tiny_std(seed, shape));
        }
    }
}

#[test]
fn answering_all_final_values_at_once_agrees_with_the_oracle() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    for seed in 0..20_000u64 {
        let shape = &shapes[(seed % shapes.len() as u64) as usize];
        let trace = tiny(seed, shape);
        for model in Model::ALL {
            let view = View::whole(&trace, model);
            let mut found = Vec::new();
            let done = Engine::new(&view).answer_finals(Effort::default(), &|| false, &mut |challenger, yes| {
                assert_eq!(yes, Some(true));
                let variable = trace.op(challenger).variable().unwrap();
                found.push(Goal::FinalValue { variable, challenger });
            });
            assert!(done);
            found.sort();
            let goals = brute::candidates(&trace, Kind::FinalValue).into_iter();
            let mut truth: Vec<Goal> = goals.filter(|g| brute::decide(&trace, model, g).is_some()).collect();
            truth.sort();
            assert_eq!(found, truth, "seed {seed}, {model}\n{}", tiny_std(seed, shape));
        }
    }
}

#[test]
fn answering_all_races_at_once_agrees_with_the_oracle() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    for seed in 0..20_000u64 {
        let shape = &shapes[(seed % shapes.len() as u64) as usize];
        let trace = tiny(seed, shape);
        for model in Model::ALL {
            let view = View::whole(&trace, model);
            let from = EventId::new(if seed % 2 == 0 { 0 } else { trace.len() / 2 });
            let mut found = Vec::new();
            let mut engine = Engine::new(&view);
            let all = |_: EventId, _: EventId| true;
            let done =
                engine.answer_races(from, Effort::default(), &|| false, &mut { all }, &mut |first, second, yes| {
                    assert_eq!(yes, Some(true));
                    found.push(Goal::Race { first, second });
                });
            assert!(done);
            found.sort();
            let goals = brute::candidates(&trace, Kind::Race).into_iter();
            let mut truth: Vec<Goal> = goals
                .filter(|g| matches!(g, Goal::Race { second, .. } if *second >= from))
                .filter(|g| brute::decide(&trace, model, g).is_some())
                .collect();
            truth.sort();
            assert_eq!(found, truth, "seed {seed}, {model}\n{}", tiny_std(seed, shape));
        }
    }
}

#[test]
fn answering_all_atomicity_violations_at_once_agrees_with_the_oracle() {
    let shapes: Vec<TinyShape> = TinyShape::all().filter(|shape| shape.blocks).collect();
    for seed in 0..20_000u64 {
        let shape = &shapes[(seed % shapes.len() as u64) as usize];
        let trace = tiny(seed, shape);
        let mut open = vec![None; trace.threads()];
        let blocks: Vec<Option<u32>> = trace
            .events()
            .map(|event| {
                match event.op {
                    Op::Begin(_) => open[event.thread.index()] = Some(event.id.index() as u32),
                    Op::End(_) => open[event.thread.index()] = None,
                    _ => {}
                }
                open[event.thread.index()]
            })
            .collect();
        for model in Model::ALL {
            let view = View::whole(&trace, model);
            let from = EventId::new(if seed % 2 == 0 { 0 } else { trace.len() / 2 });
            let mut found = Vec::new();
            let done = Engine::new(&view).answer_atomicity(
                from,
                &|event| blocks[event.index()],
                Effort::default(),
                &|| false,
                &mut |_| true,
                &mut |(first, remote, second), yes| {
                    assert_eq!(yes, Some(true));
                    found.push(Goal::Atomicity { first, remote, second });
                },
            );
            assert!(done);
            found.sort();
            let goals = brute::candidates(&trace, Kind::Atomicity).into_iter();
            let mut truth: Vec<Goal> = goals
                .filter(|g| matches!(g, Goal::Atomicity { remote, second, .. } if *remote.max(second) >= from))
                .filter(|g| brute::decide(&trace, model, g).is_some())
                .collect();
            truth.sort();
            assert_eq!(found, truth, "seed {seed}, {model}\n{}", tiny_std(seed, shape));
        }
    }
}

/// A goal is only ever asked of a trace that poses it; the engine must not fall over when it is cut into windows.
#[test]
fn windows_are_sound() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    for seed in 0..3_000u64 {
        let shape = &shapes[(seed % shapes.len() as u64) as usize];
        let trace = tiny(seed, shape);
        for model in Model::ALL {
            for view in View::windows(&trace, model, 6) {
                let span = view.span();
                let mut engine = Engine::new(&view);
                for kind in Kind::ALL {
                    for goal in brute::candidates(&trace, kind) {
                        if let Verdict::Feasible(witness) = engine.decide(&goal, Effort::default()) {
                            check(&trace, model, &goal, &witness).unwrap_or_else(|why| {
                                panic!("{why}: {goal:?} in {model}, window {span:?}\n{}", tiny_std(seed, shape))
                            });
                        }
                    }
                }
            }
        }
    }
}
