//! What the oracle and the trace itself say of goals.

use portent_order::engine::{Effort, Engine};
use portent_order::{Goal, Kind, Model, Writer, brute, check};
use portent_order::{Schedule, Verdict};
use portent_trace::{Op, Trace, VarId};
use std::fmt::Display;

/// Every goal of every kind that a trace poses.
pub fn candidates(trace: &Trace) -> impl Iterator<Item = Goal> {
    Kind::ALL.into_iter().flat_map(|kind| brute::candidates(trace, kind))
}

/// The feasible ones of some goals, by the oracle, in order.
pub fn feasible(trace: &Trace, model: Model, goals: impl IntoIterator<Item = Goal>) -> Vec<Goal> {
    let goals = goals.into_iter().filter(|goal| brute::decide(trace, model, goal).is_some());
    let mut goals: Vec<Goal> = goals.collect();
    goals.sort();
    goals
}

/// The witness of an engine, which must be one; `None` where the goal is infeasible. An engine that does not know fails.
pub fn witness(trace: &Trace, model: Model, goal: &Goal, verdict: Verdict, story: &dyn Display) -> Option<Schedule> {
    match verdict {
        Verdict::Feasible(witness) => {
            let checked = check(trace, model, goal, &witness);
            checked.unwrap_or_else(|why| panic!("the witness is none: {why}: {goal:?} in {model}, {story}"));
            Some(witness)
        }
        Verdict::Infeasible => None,
        Verdict::Unknown(why) => panic!("unknown ({why}): {goal:?} in {model}, {story}"),
    }
}

/// Holds the engine to the truth about a goal, and its witness to the checker.
pub fn engine_agrees(engine: &mut Engine, trace: &Trace, model: Model, goal: &Goal, truth: bool, story: &dyn Display) {
    let found = witness(trace, model, goal, engine.decide(goal, Effort::default()), story).is_some();
    assert!(truth || !found, "the engine found what cannot happen: {goal:?} in {model}, {story}");
    assert!(found || !truth, "the engine missed it: {goal:?} in {model}, {story}");
}

/// Whether the oracle reaches a goal; its witness must be one.
pub fn oracle_reaches(trace: &Trace, model: Model, goal: &Goal, story: &dyn Display) -> bool {
    let found = brute::decide(trace, model, goal);
    if let Some(witness) = &found {
        let checked = check(trace, model, goal, witness);
        checked.unwrap_or_else(|why| panic!("the oracle's witness is none: {why}: {goal:?} in {model}, {story}"));
    }
    found.is_some()
}

/// Whether the read of a goal would see, or the variable end with, the value it had in the trace, as far as that is recorded.
/// `values` wants another.
pub fn is_of_the_same_value(trace: &Trace, goal: &Goal) -> bool {
    let accesses = |x: VarId| trace.events().filter(move |event| event.op.variable() == Some(x));
    let written = |x: VarId, writer: Writer| match writer {
        Writer::Event(write) => trace.value(write),
        // The value before the first write, where a read recorded it.
        Writer::Init => accesses(x).take_while(|e| !e.op.writes()).find_map(|e| e.value),
    };
    match *goal {
        Goal::Nondeterminism { read, challenger } => {
            let Some(x) = trace.op(read).variable() else { return false };
            let before = accesses(x).take_while(|e| e.id < read).filter(|e| e.op.writes()).last();
            let saw = written(x, before.map_or(Writer::Init, |e| Writer::Event(e.id)));
            // What an update recorded is what it wrote.
            let expected = if matches!(trace.op(read), Op::Update(..)) { saw } else { trace.value(read) };
            expected.is_some() && expected == written(x, challenger)
        }
        Goal::FinalValue { variable, challenger } => {
            let last = accesses(variable).rfind(|e| e.op.writes());
            last.and_then(|e| e.value) == trace.value(challenger)
        }
        _ => false,
    }
}
