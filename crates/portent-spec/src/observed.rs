//! Whether a run, as it was observed, breaks a property, and where.

use crate::{Bound, Compiled, Diagnostic, Judgement, Monitor, Scope, parse};
use portent_trace::Trace;

/// How the observed order of a trace breaks the property that `source` states, if it does. Only a run that is
/// `complete` can break one at its end.
///
/// # Errors
/// What is wrong with the property, if it does not fit the trace.
pub fn broken_by(trace: &Trace, source: &str, complete: bool) -> Result<Option<String>, String> {
    let first = |wrong: &[Diagnostic]| wrong.first().map(ToString::to_string).unwrap_or_default();
    let file = parse(source).map_err(|wrong| first(&[wrong]))?;
    for bound in Bound::all(&file, &Scope::of(trace)).map_err(|wrong| first(&wrong))? {
        let name = &bound.property.name;
        let mut monitor = Compiled::new(&bound).map_err(|why| why.to_string())?;
        let mut state = vec![0; monitor.words()];
        monitor.start(&mut state);
        let mut values: Vec<String> = bound.watched.iter().map(|watched| watched.initial.to_string()).collect();
        let told = |values: &[String]| {
            let each = bound.watched.iter().zip(values).map(|(watched, value)| format!("{} = {value}", watched.name));
            each.collect::<Vec<_>>().join(", ")
        };
        for event in trace.events() {
            let Some(letter) = monitor.letter(&event) else { continue };
            let before = told(&values);
            if let Some(slot) = bound.watched.iter().position(|w| Some(w.variable) == event.op.variable())
                && event.op.writes()
            {
                values[slot] = bound.written(&event).map_or_else(|| "?".into(), |value| value.to_string());
            }
            if monitor.step(&mut state, letter) == Judgement::Bad {
                let (names, at) = (trace.names(), trace.names().location(event.loc));
                let object = event.op.variable().map(|x| format!(" {}", trace.variable_name(x))).unwrap_or_default();
                let (who, what) = (names.thread(event.thread), event.op.name());
                let values =
                    if values.is_empty() { String::new() } else { format!(": {}, after {before}", told(&values)) };
                return Ok(Some(format!("{name} is broken by {who}: {what}{object} at {at}{values}")));
            }
        }
        if complete && monitor.cares_about_end() && monitor.finish(&state) == Judgement::Bad {
            let values = if values.is_empty() { String::new() } else { format!(": {}", told(&values)) };
            return Ok(Some(format!("{name} is broken at the end{values}")));
        }
    }
    Ok(None)
}
