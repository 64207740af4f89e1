//! The order engine against the oracle, both ways, on random small traces: nothing false, nothing missed.
//!
//! The bounded run is part of every test run; `cargo test --release -- --ignored` does a million traces.

use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Kind, Model, Verdict, Writer, brute, check};
use portent_testing::goals::{engine_agrees, feasible, oracle_reaches};
use portent_testing::traces::{Shapes, TinyTrace};
use portent_trace::generate::TinyShape;
use portent_trace::{EventId, Op, Trace};

#[derive(Default, Debug)]
struct Count {
    goals: u64,
    feasible: u64,
}

/// Every goal of a trace, in a model, by both.
fn compare(tiny: &TinyTrace, model: Model, kind: Kind, count: &mut Count) {
    let trace = &tiny.trace;
    let view = View::whole(trace, model);
    let mut engine = Engine::new(&view);
    for goal in brute::candidates(trace, kind) {
        let truth = oracle_reaches(trace, model, &goal, tiny);
        engine_agrees(&mut engine, trace, model, &goal, truth, tiny);
        count.goals += 1;
        count.feasible += u64::from(truth);
    }
}

/// The shapes that pose goals of a kind; all of them where any shape does.
fn shapes(kind: Kind) -> Shapes {
    Shapes::that(|shape| match kind {
        Kind::Race | Kind::Nondeterminism | Kind::FinalValue => true,
        Kind::Atomicity => shape.blocks,
        Kind::Deadlock => shape.lock_heavy,
        Kind::LostWakeup => shape.conditions,
        Kind::LostUpdate | Kind::Stuck => true,
    })
}

fn run(traces: u64, first_seed: u64) {
    for model in Model::ALL {
        for kind in Kind::ALL {
            let mut count = Count::default();
            for tiny in shapes(kind).traces(first_seed..first_seed + traces) {
                compare(&tiny, model, kind, &mut count);
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

/// Traces with values, half of them with branches: `values` must find more than `reads`, and less than `sync`.
#[test]
fn engine_and_oracle_agree_on_traces_where_values_matter() {
    values(20_000, 1 << 20);
}

#[test]
#[ignore = "a nightly-style run: a million traces per kind, about half an hour"]
fn engine_and_oracle_agree_on_a_million_traces_where_values_matter() {
    values(1_000_000, 1 << 33);
}

fn values(traces: u64, first_seed: u64) {
    for kind in Kind::ALL {
        let mut count = Count::default();
        let (mut gained, mut lost) = (0, 0);
        for tiny in shapes(kind).filter(|shape| shape.values).traces(first_seed..first_seed + traces) {
            let (seed, trace) = (tiny.seed, &tiny.trace);
            // Every shape, in a tenth of its turns.
            compare(&tiny, Model::Values, kind, &mut count);
            if tiny.round.is_multiple_of(10) {
                for goal in brute::candidates(trace, kind) {
                    let [reads, values, sync] = [Model::Reads, Model::Values, Model::Sync]
                        .map(|model| brute::decide(trace, model, &goal).is_some());
                    gained += u64::from(values && !reads);
                    lost += u64::from(reads && !values);
                    // A changed value depends on what it is.
                    let monotone = !matches!(kind, Kind::Nondeterminism | Kind::FinalValue);
                    assert!(!monotone || (reads <= values && values <= sync), "seed {seed} {goal:?}");
                }
            }
        }
        println!("{kind:?}: {count:?}; in a tenth, {gained} more than `reads`, {lost} fewer");
        assert!(gained > 0, "{kind:?}: `values` finds nothing that `reads` does not");
    }
}

#[test]
#[ignore = "a nightly-style run: a million traces per model and kind, about an hour"]
fn engine_and_oracle_agree_on_a_million_traces() {
    run(1_000_000, 1 << 32);
}

/// 20,000 traces of the shapes that pose goals of a kind, in all models.
fn for_each_trace(kind: Kind, test: impl Fn(&Trace, Model, &TinyTrace)) {
    for tiny in shapes(kind).traces(0..20_000) {
        for model in Model::ALL {
            test(&tiny.trace, model, &tiny);
        }
    }
}

/// Threads that meet at a barrier and a latch, with locks in hand, in every model.
#[test]
fn engine_and_oracle_agree_where_threads_gather() {
    let gatherings: Shapes = std::iter::once(TinyShape::GATHERINGS).collect();
    for model in Model::ALL {
        for kind in [Kind::Race, Kind::FinalValue, Kind::Stuck] {
            let mut count = Count::default();
            for tiny in gatherings.traces(0..20_000) {
                compare(&tiny, model, kind, &mut count);
            }
            println!("{model:5} {kind:?}: {count:?}");
            assert!(count.feasible > 100 && count.feasible < count.goals, "{count:?}");
        }
    }
    let rounds = |tiny: TinyTrace| tiny.trace.events().filter(|e| matches!(e.op, Op::Receive(_))).count();
    assert!(gatherings.traces(0..1_000).map(rounds).sum::<usize>() > 300, "hardly anybody meets");
}

/// The sweep over all reads answers exactly what the questions answer one by one, also from the middle on.
#[test]
fn answering_all_reads_at_once_agrees_with_the_oracle() {
    for_each_trace(Kind::Nondeterminism, |trace, model, tiny| {
        let goals = brute::candidates(trace, Kind::Nondeterminism);
        let view = View::whole(trace, model);
        for from in [0, trace.len() / 2].map(EventId::new) {
            let mut found = Vec::new();
            let mut engine = Engine::new(&view);
            let answered = engine.answer_reads(from, Effort::default(), &|| false, &mut |read, challenger, yes| {
                assert_eq!(yes, Some(true));
                found.push(Goal::Nondeterminism { read, challenger });
            });
            found.sort();
            let counts = |goal: &&Goal| match goal {
                Goal::Nondeterminism { read, challenger: Writer::Event(c) } => (*read).max(*c) >= from,
                Goal::Nondeterminism { read, .. } => *read >= from,
                _ => false,
            };
            assert_eq!(answered.questions, goals.iter().filter(counts).count() as u64, "{tiny}, {model}");
            assert_eq!(found, feasible(trace, model, goals.iter().filter(counts).cloned()), "{tiny}, {model}");
        }
    });
}

#[test]
fn answering_all_final_values_at_once_agrees_with_the_oracle() {
    for_each_trace(Kind::FinalValue, |trace, model, tiny| {
        let view = View::whole(trace, model);
        let mut found = Vec::new();
        let finished = Engine::new(&view).answer_finals(Effort::default(), &|| false, &mut |challenger, yes| {
            assert_eq!(yes, Some(true));
            let variable = trace.op(challenger).variable().unwrap();
            found.push(Goal::FinalValue { variable, challenger });
        });
        assert!(finished);
        found.sort();
        assert_eq!(found, feasible(trace, model, brute::candidates(trace, Kind::FinalValue)), "{tiny}, {model}");
    });
}

#[test]
fn answering_all_races_at_once_agrees_with_the_oracle() {
    for_each_trace(Kind::Race, |trace, model, tiny| {
        let view = View::whole(trace, model);
        for from in [0, trace.len() / 2].map(EventId::new) {
            let mut found = Vec::new();
            let mut engine = Engine::new(&view);
            let finished =
                engine.answer_races(from, Effort::default(), &|| false, &mut |_, _| true, &mut |first, second, yes| {
                    assert_eq!(yes, Some(true));
                    found.push(Goal::Race { first, second });
                });
            assert!(finished);
            found.sort();
            let goals = brute::candidates(trace, Kind::Race).into_iter();
            let counted = goals.filter(|goal| matches!(goal, Goal::Race { second, .. } if *second >= from));
            assert_eq!(found, feasible(trace, model, counted), "{tiny}, {model}");
        }
    });
}

#[test]
fn answering_all_atomicity_violations_at_once_agrees_with_the_oracle() {
    for_each_trace(Kind::Atomicity, |trace, model, tiny| {
        let mut open = vec![None; trace.threads()];
        let blocks = trace.events().map(|event| {
            match event.op {
                Op::Begin(_) => open[event.thread.index()] = Some(event.id.index() as u32),
                Op::End(_) => open[event.thread.index()] = None,
                _ => {}
            }
            open[event.thread.index()]
        });
        let blocks: Vec<Option<u32>> = blocks.collect();
        let view = View::whole(trace, model);
        for from in [0, trace.len() / 2].map(EventId::new) {
            let mut found = Vec::new();
            let finished = Engine::new(&view).answer_atomicity(
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
            assert!(finished);
            found.sort();
            let goals = brute::candidates(trace, Kind::Atomicity).into_iter();
            let counts =
                |goal: &Goal| matches!(goal, Goal::Atomicity { remote, second, .. } if *remote.max(second) >= from);
            assert_eq!(found, feasible(trace, model, goals.filter(counts)), "{tiny}, {model}");
        }
    });
}

/// A goal is only ever asked of a trace that poses it; the engine must not fall over when it is cut into windows.
#[test]
fn windows_are_sound() {
    for tiny in Shapes::all().traces(0..3_000) {
        let trace = &tiny.trace;
        for model in Model::ALL {
            for view in View::windows(trace, model, 6) {
                let span = view.span();
                let mut engine = Engine::new(&view);
                for kind in Kind::ALL {
                    for goal in brute::candidates(trace, kind) {
                        if let Verdict::Feasible(witness) = engine.decide(&goal, Effort::default()) {
                            check(trace, model, &goal, &witness)
                                .unwrap_or_else(|why| panic!("{why}: {goal:?} in {model}, window {span:?}, {tiny}"));
                        }
                    }
                }
            }
        }
    }
}
