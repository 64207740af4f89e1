//! `--spec`: property files on their way to the lattice, and its picture.

use crate::args::PredictArgs;
use crate::failure::Failure;
use crate::traces::is_standard;
use portent_order::{Checker, Model};
use portent_predict::lattice::{draw::Drawing, draw::MOST_NODES, whole_seen};
use portent_predict::{BugKind, Prediction};
use portent_spec::{Bound, Diagnostic, PropertyFile, Scope, parse};
use portent_trace::{Event, EventId, Trace, TraceError};
use std::collections::BTreeMap;
use std::path::Path;

/// A property file, read but not yet tied to a trace.
#[derive(Clone)]
pub(crate) struct Spec {
    name: String,
    source: String,
    file: PropertyFile,
}

const HELP: &str = "the language of properties is described in the guide, under `Properties`";

impl Spec {
    /// Reads and parses a file.
    pub(crate) fn read(path: &Path) -> Result<Spec, Failure> {
        let name = path.display().to_string();
        let source =
            std::fs::read_to_string(path).map_err(|error| Failure::Trace(TraceError::whole(error).in_input(&name)))?;
        Self::parse(name, source)
    }

    /// Parses text that has a name.
    pub(crate) fn parse(name: String, source: String) -> Result<Spec, Failure> {
        let file = parse(&source).map_err(|wrong| failure(&[wrong], &name, &source))?;
        if file.properties.is_empty() {
            let help = "a property is a line such as `property positive: always x > 0`";
            return Err(Failure::usage(format!("{name}: it contains no property"), help));
        }
        Ok(Spec { name, source, file })
    }

    /// The properties, about the names of a trace.
    pub(crate) fn bind(&self, trace: &Trace, declared: &BTreeMap<String, String>) -> Result<Vec<Bound>, Failure> {
        let mut scope = Scope::of(trace);
        scope.declared.clone_from(declared);
        Bound::all(&self.file, &scope).map_err(|wrong| failure(&wrong, &self.name, &self.source))
    }
}

fn failure(wrong: &[Diagnostic], name: &str, source: &str) -> Failure {
    let text: Vec<String> = wrong.iter().map(|wrong| wrong.render(name, source)).collect();
    Failure::usage(text.join("\n").trim_end().to_owned(), HELP)
}

/// Adds what came of properties to what else was predicted.
pub(crate) fn merge(prediction: &mut Prediction, properties: Prediction) {
    prediction.findings.extend(properties.findings);
    prediction.incomplete.extend(properties.incomplete);
    prediction.properties.extend(properties.properties);
    prediction.errors.extend(properties.errors);
    prediction.partial = prediction.partial.or(properties.partial);
    prediction.stats.time += properties.stats.time;
}

/// Draws the lattice where that was asked for: as the property that is violated sees it, or the only one there is.
pub(crate) fn draw(
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

fn save(path: Option<&Path>, make: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if is_standard(path) {
        return crate::commands::print(&make());
    }
    std::fs::write(path, make())
        .map_err(|error| Failure::Trace(TraceError::whole(error).in_input(&path.display().to_string())))
}
