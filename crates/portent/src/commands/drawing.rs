//! Pictures of the lattice that properties are checked on, where `portent predict` is asked for them.

use crate::args::PredictArgs;
use crate::failure::Failure;
use crate::terminal::print;
use crate::traces::is_standard;
use portent_order::{Checker, Model};
use portent_predict::lattice::{draw::Drawing, draw::MOST_NODES, whole_seen};
use portent_predict::{BugKind, Prediction};
use portent_spec::Bound;
use portent_trace::{Event, EventId, Trace, TraceError};
use std::path::Path;

/// Draws the lattice where that was asked for: as the property that is violated sees it, or the only one there is.
pub(super) fn draw(
    args: &PredictArgs,
    trace: &Trace,
    properties: &[Bound],
    model: Model,
    prediction: &Prediction,
) -> Result<(), Failure> {
    if args.dot.is_none() && args.svg.is_none() {
        return Ok(());
    }
    let violation = prediction.findings.iter().find(|finding| finding.kind() == BugKind::Property);
    let model = violation.and_then(|finding| finding.model).unwrap_or(model);
    let about = violation.and_then(|finding| finding.bug.violated());
    let drawn = match about {
        Some(violated) => properties.iter().find(|bound| bound.property.name == violated.name),
        None => properties.first().filter(|_| properties.len() == 1),
    };
    let sees = |event: &Event| drawn.is_some_and(|bound| bound.sees(event));
    // States with the same positions are one node, so there may be a few more of them.
    let whole = whole_seen(trace, model, &sees, 4 * MOST_NODES);
    let Some(whole) = whole.filter(|whole| whole.nodes.len() <= MOST_NODES) else {
        return Err(Failure::usage(
            format!("the lattice of this trace has more than {MOST_NODES} cuts: too many to draw"),
            "leave out --dot and --svg, or cut the trace down to the events that matter",
        ));
    };
    let schedule = violation.and_then(|finding| finding.witness.as_ref()).map(|witness| &witness.schedule);
    let executed = schedule.and_then(|schedule| Checker::new(trace).replay_for_property(model, schedule).ok());
    let events: Option<Vec<EventId>> = executed.map(|all| all.into_iter().map(|done| done.event).collect());
    let runs = whole.runs.map_or_else(|| "more runs than can be counted".into(), |runs| format!("{runs} runs"));
    let about = about.map(|property| format!("{}: ", property.name)).unwrap_or_default();
    let title = format!("{about}{runs}, {} cuts ({model})", whole.cuts());
    let drawing = Drawing::new(trace, &whole, &title, events.as_deref());
    save(args.dot.as_deref(), || drawing.dot())?;
    save(args.svg.as_deref(), || drawing.svg())
}

pub(super) fn save(path: Option<&Path>, make: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if is_standard(path) {
        return Ok(print(&make())?);
    }
    std::fs::write(path, make())
        .map_err(|error| Failure::Trace(TraceError::whole(error).in_input(&path.display().to_string())))
}
