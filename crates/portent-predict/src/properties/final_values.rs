//! Properties on final values in the model `values`: which complete runs end badly though every branch goes the same way.
//!
//! The lattice knows nothing of values that change. The order engine does: it looks for a complete order after which the
//! variables of the property hold what the property forbids.

use crate::facts::Facts;
use crate::lattice::Broken;
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Model, Verdict};
use portent_spec::{Assume, Bound, Ruling, evaluate};
use portent_trace::{Event, EventId, VarId};

/// Longer traces are not put into one window.
const LONGEST: usize = 10_000;

/// What came of looking.
pub(super) enum Ending {
    /// This run breaks the property.
    Bad(Broken),
    /// No complete run does.
    Good,
    /// Not decided.
    Open(String),
    /// Not a question for the engine.
    Unasked,
}

/// Looks for a complete run whose end breaks a property.
pub(super) fn look(facts: &Facts<'_>, bound: &Bound, effort: Effort) -> Ending {
    let trace = facts.trace;
    if !bound.property.is_about_final_values() {
        return Ending::Unasked;
    }
    if trace.len() > LONGEST {
        return Ending::Open(format!("the trace has more than {LONGEST} events"));
    }
    let variables: Vec<VarId> = bound.watched.iter().map(|watched| watched.variable).collect();
    // The end, as far as the property can see: one write of each variable that is written at all.
    let writes: Vec<Option<EventId>> = variables.iter().map(|&x| facts.last_write(x)).collect();
    let mut is_bad = |values: &[Option<i64>]| {
        if writes.iter().zip(values).any(|(write, value)| write.is_some() && value.is_none()) {
            return false;
        }
        let written = |(write, value): (&Option<EventId>, &Option<i64>)| {
            write.map(|write| Event { value: *value, ..trace.event(write) })
        };
        let end: Vec<Event> = writes.iter().zip(values).filter_map(written).collect();
        matches!(evaluate(bound, &end, true, Assume::Zero), Ruling::Broken(_))
    };
    let view = View::whole(trace, Model::Values);
    match Engine::new(&view).decide_final(&variables, &mut is_bad, effort) {
        Verdict::Feasible(schedule) => match facts.checker.replay(Model::Values, &schedule) {
            Ok(events) => Ending::Bad(Broken { event: None, schedule, events, deviation: 1 }),
            Err(why) => Ending::Open(format!("internal: {why}")),
        },
        Verdict::Infeasible => Ending::Good,
        Verdict::Unknown(why) => Ending::Open(why.to_string()),
    }
}
