//! A way to break a property: replayed by the checker, judged by the definition of the property, and explained.

use super::telling::plural;
use crate::bug::{Place, Role};
use crate::facts::Facts;
use crate::kinds::Violated;
use crate::lattice::Broken;
use portent_order::{Executed, Model, Writer};
use portent_spec::{Assume, Bound, InitialFrom, Ruling, evaluate_changed};
use portent_trace::{Event, EventId, Trace};

/// An event of a run that breaks a property, with the value it has there.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub(super) event: Event,
    /// If it reads another write than in the trace: which.
    pub(super) changed: Option<Writer>,
}

/// What a property's definition says of a run.
fn judged(bound: &Bound, run: &[Done], complete: bool, assume: Assume) -> Ruling {
    let events: Vec<Event> = run.iter().map(|done| done.event).collect();
    evaluate_changed(bound, &events, &|at| run[at].changed.is_some(), complete, assume)
}

/// Replays a way by the checker and judges it by the reference semantics.
pub(super) fn checked(facts: &Facts<'_>, bound: &Bound, model: Model, way: &Broken) -> Result<Vec<Done>, String> {
    let trace = facts.trace;
    let executed = facts.checker.replay_for_property(model, &way.schedule).map_err(|why| why.to_string())?;
    let unknown = |writer: EventId| executed.iter().any(|done| done.event == writer && done.changed.is_some());
    let done = |&Executed { event, changed }: &Executed| {
        let mut event = trace.event(event);
        match changed {
            None => {}
            // Not what it recorded: what the variable holds, or, for an update, nobody knows what.
            _ if event.op.writes() => event.value = None,
            Some(Writer::Event(writer)) if unknown(writer) => event.value = None,
            Some(Writer::Event(writer)) => {
                event.value = trace.value(writer).or_else(|| bound.written(&trace.event(writer)));
            }
            Some(Writer::Init) => {
                let watched = bound.watched.iter().find(|watched| Some(watched.variable) == event.op.variable());
                event.value = watched.map(|watched| watched.initial);
            }
        }
        Done { event, changed }
    };
    let mut run: Vec<Done> = executed.iter().map(done).collect();
    if model == Model::Values {
        let numbers = facts.checker.numbers(&way.schedule).map_err(|why| why.to_string())?;
        let mut numbers = numbers.iter().peekable();
        for Done { event, .. } in &mut run {
            if let Some(numbers) = numbers.next_if(|numbers| numbers.event == event.id) {
                event.value = if event.op.writes() { numbers.written } else { numbers.read };
            }
        }
    }
    let complete = run.len() == trace.len() && run.iter().all(|done| done.changed.is_none());
    let expected = if way.event.is_some() { run.len() - 1 } else { run.len() };
    match judged(bound, &run, complete, Assume::Zero) {
        Ruling::Broken(at) if at == expected && run.get(at).map(|done| done.event.id) == way.event => Ok(run),
        other => Err(format!("by definition, {other:?}")),
    }
}

/// Which values, at which step, in which thread.
pub(super) fn explain(trace: &Trace, bound: &Bound, way: &Broken, run: &[Done]) -> Violated {
    let names = trace.names();
    let who = |event: &Event| names.thread(event.thread).to_owned();
    let what = |event: &Event| {
        let place = Place::of_event(trace, Role::Violation, event.id);
        let value = event.value.map_or_else(String::new, |value| format!(" = {value}"));
        format!("{} {}{value}", place.op, place.object).trim_end().to_owned()
    };
    // What each variable holds, and since when; before the last event and after it.
    let mut holds: Vec<(Option<i64>, Option<Event>)> =
        bound.watched.iter().map(|watched| (Some(watched.initial), None)).collect();
    let state = |holds: &[(Option<i64>, Option<Event>)]| {
        let each = bound.watched.iter().zip(holds).map(|(watched, (value, since))| {
            let value = value.map_or_else(|| "?".to_owned(), |value| value.to_string());
            let since = match (since, watched.from) {
                (Some(event), _) => format!("{} at {}", who(event), names.location(event.loc)),
                (None, InitialFrom::Assumed) => "assumed to start so".to_owned(),
                (None, _) => "as it started".to_owned(),
            };
            format!("{} = {value} ({since})", watched.name)
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let seen: Vec<&Done> = run.iter().filter(|done| bound.sees(&done.event)).collect();
    let mut before = state(&holds);
    for Done { event, changed } in &seen {
        before = state(&holds);
        if event.op.writes()
            && let Some(slot) = bound.watched.iter().position(|w| Some(w.variable) == event.op.variable())
        {
            holds[slot] = (bound.written(event).filter(|_| changed.is_none()), Some(*event));
        }
    }
    let seen: Vec<&Event> = seen.into_iter().map(|done| &done.event).collect();
    let mut text = match (way.event, seen.last()) {
        (Some(_), Some(last)) => {
            let step = format!("Step {} of this order", run.len());
            format!("{step}, {}'s {} at {}, breaks it.", who(last), what(last), names.location(last.loc))
        }
        _ => format!("The end of this complete order, after {}, breaks it.", plural(run.len() as u128, "step")),
    };
    if !bound.watched.is_empty() {
        if way.event.is_some() {
            text.push_str(&format!(" Before it: {before}. After it: {}.", state(&holds)));
        } else {
            text.push_str(&format!(" At the end: {}.", state(&holds)));
        }
    }
    const LAST: usize = 6;
    let saw: Vec<&Event> = seen.iter().rev().take(LAST).rev().copied().collect();
    let mut told: Vec<String> = saw.iter().map(|event| format!("{} {}", who(event), what(event))).collect();
    if way.event.is_none() {
        told.push("end".into());
    }
    let more = if seen.len() > LAST { "… → " } else { "" };
    text.push_str(&format!(" What it saw: {more}{}.", told.join(" → ")));
    for Done { event, changed } in run {
        let Some(writer) = changed else { continue };
        let sees = match writer {
            Writer::Init => "the initial value".to_owned(),
            Writer::Event(writer) => {
                let writer = trace.event(*writer);
                format!("what {} wrote at {}", who(&writer), names.location(writer.loc))
            }
        };
        let place = Place::of_event(trace, Role::Violation, event.id);
        let what = format!("{}'s {} {} at {}", who(event), place.op, place.object, names.location(event.loc));
        text.push_str(&format!(
            " {what} sees {sees}, not what it saw in the recorded run: {} stops there, as what it does next is not known.",
            who(event)
        ));
    }
    let complete = way.event.is_none();
    let assumes: Vec<String> = match judged(bound, run, complete, Assume::Nothing) {
        Ruling::Broken(_) => Vec::new(),
        _ => bound.assumed().map(|watched| watched.name.clone()).collect(),
    };
    if !assumes.is_empty() {
        text.push_str(&format!(" This rests on {} starting at 0, which the trace does not show.", assumes.join(", ")));
    }
    let saw: Vec<EventId> = saw.iter().map(|event| event.id).collect();
    let declared = bound.watched.iter().filter(|watched| watched.from == InitialFrom::Declared);
    let initial: String = declared.map(|one| format!("initial \"{}\" = {};\n", one.name, one.initial)).collect();
    let (name, says) = (bound.property.name.clone(), bound.property.text.clone());
    let source = format!("{initial}property {name}: {says}\n");
    Violated { name, text: says, explanation: text, source, saw, assumes }
}
