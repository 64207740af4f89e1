//! What there is to say about a property of one trace, in words.

use crate::kinds::{PropertyTold, PropertyVerdict};
use crate::lattice::Explored;
use crate::undecided::Why;
use portent_order::Model;
use portent_spec::Bound;
use portent_trace::{Event, Op, Trace};

/// What is told of a property that could not be looked at.
pub(super) fn refused(bound: &Bound, model: Model, sentence: String) -> PropertyTold {
    PropertyTold {
        name: bound.property.name.clone(),
        text: bound.property.text.clone(),
        model,
        verdict: PropertyVerdict::Incomplete,
        sentence,
        notes: Vec::new(),
        runs: None,
        cuts: None,
        explored: Explored::default(),
    }
}

pub(super) fn plural(count: u128, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A number in groups of three.
fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What came of exploring.
pub(super) fn tell(
    trace: &Trace,
    bound: &Bound,
    model: Model,
    is_broken: bool,
    explored: Explored,
    counts: Option<(Option<u128>, u64)>,
    unknown: Option<String>,
) -> PropertyTold {
    let examined = plural(explored.cuts.into(), "cut");
    let verdict = match (is_broken, explored.is_complete(), &unknown) {
        (true, ..) => PropertyVerdict::Broken,
        (false, false, _) => PropertyVerdict::Incomplete,
        (false, true, Some(_)) => PropertyVerdict::Unknown,
        (false, true, None) => PropertyVerdict::Holds,
    };
    let runs = counts.and_then(|(runs, _)| runs);
    let cuts = counts.map(|(_, cuts)| cuts);
    let sentence = match verdict {
        PropertyVerdict::Holds => {
            let all = match runs.filter(|_| cuts.is_some()) {
                Some(1) => "the only reordering".to_owned(),
                Some(runs) => format!("all {} reorderings", grouped(runs)),
                None => "all reorderings".to_owned(),
            };
            let which = match model {
                Model::Reads => "in which every read but a thread's last one keeps its writer",
                _ => "of this run",
            };
            let cuts = cuts.filter(|_| runs.is_some());
            let cuts = cuts.map_or_else(String::new, |cuts| format!("{}, ", plural(cuts.into(), "cut")));
            format!("holds in {all} {which} ({cuts}{examined} examined)")
        }
        PropertyVerdict::Broken if explored.is_complete() => format!("can be broken ({examined} examined)"),
        PropertyVerdict::Broken => format!("can be broken ({examined} examined, not all there are)"),
        PropertyVerdict::Incomplete => {
            let level = explored.incomplete_from.or(explored.stopped.map(|(_, level)| level)).unwrap_or(0);
            let dropped = plural(explored.dropped.into(), "cut");
            let stopped = match explored.stopped {
                Some((Why::Interrupted, level)) => format!(", interrupted at level {}", grouped(level.into())),
                Some((_, level)) => format!(", out of time at level {}", grouped(level.into())),
                None => String::new(),
            };
            let level = grouped(level.into());
            format!(
                "no violation found, incomplete from level {level}, {dropped} dropped{stopped} ({examined} examined)"
            )
        }
        PropertyVerdict::Unknown => {
            let about = unknown.as_deref().filter(|names| !names.is_empty());
            let about = about.map_or_else(|| "a value".to_owned(), |names| format!("the value of {names}"));
            format!("not broken as far as values are known, but {about} is not known somewhere ({examined} examined)")
        }
    };
    let mut notes = Vec::new();
    let assumed: Vec<&str> = bound.assumed().map(|watched| watched.name.as_str()).collect();
    if !assumed.is_empty() {
        let names = assumed.join(", ");
        notes.push(format!(
            "{names}: taken to start at 0, as nothing in the trace tells; `initial NAME = VALUE` settles it"
        ));
    }
    for watched in &bound.watched {
        if let Some(write) = watched.valueless {
            let thread = trace.names().thread(trace.thread(write));
            let event = trace.input_index(write);
            let place = trace.names().location(trace.event(write).loc);
            notes.push(format!(
                "{}: the write by {thread} at {place} (event {event}) carries no value, so it is not known after it",
                watched.name
            ));
        }
    }
    if verdict == PropertyVerdict::Unknown && model == Model::Reads {
        for watched in bound.watched.iter().filter(|watched| watched.valueless.is_none()) {
            let updates = |event: Event| matches!(event.op, Op::Update(x, _) if x == watched.variable);
            if trace.events().any(updates) {
                notes.push(format!(
                    "{}: what an update writes is not known where it sees another write than in the recorded run",
                    watched.name
                ));
            }
        }
    }
    if explored.visible == 0 {
        notes.push("it sees no event of this trace".into());
    }
    PropertyTold {
        name: bound.property.name.clone(),
        text: bound.property.text.clone(),
        model,
        verdict,
        sentence,
        notes,
        runs,
        cuts,
        explored,
    }
}
