//! What findings are called: by kind and places, so that the same bug has the same id in every run.
//!
//! Where the trace knows what stands in the source, a place is its function, the text of its line and the kind of object: an
//! id survives other lines above it, other directories and other options of the compiler. Of other traces a place is the
//! text of its location.

use crate::asking::rotate_to_least;
use crate::bug::{Form, Place};
use crate::finding::{Finding, id};
use portent_trace::{Location, Trace};
use std::collections::{HashMap, HashSet};

/// The ids of findings, of one prediction or of several: findings at the same places have the same id in all of them, and others
/// have another, even where the source says the same in two places.
#[derive(Debug, Default)]
pub struct FindingNames {
    /// By form and places as this program has them, and which of those that look the same there.
    known: HashMap<(Vec<String>, usize), String>,
    taken: HashSet<String>,
}

impl FindingNames {
    /// Gives every finding of a prediction its id; they must be in their final order.
    pub fn name(&mut self, trace: &Trace, findings: &mut [Finding]) {
        let mut alike: HashMap<Vec<String>, usize> = HashMap::new();
        for finding in findings {
            let here = texts(trace, finding, location_text);
            let before = alike.entry(here.clone()).or_default();
            let key = (here, *before);
            *before += 1;
            let FindingNames { known, taken } = self;
            let new = || {
                let stable = texts(trace, finding, stable_text);
                let id = id(finding.kind(), stable.iter().map(String::as_str), |id| taken.contains(id));
                taken.insert(id.clone());
                id
            };
            finding.id = known.entry(key).or_insert_with(new).clone();
        }
    }
}

/// Gives every finding its id; findings must be in their final order.
pub(crate) fn name_findings(trace: &Trace, findings: &mut [Finding]) {
    FindingNames::default().name(trace, findings);
}

/// The form of a finding, and its places as `text` tells them, however they are turned.
fn texts(trace: &Trace, finding: &Finding, text: impl Fn(&Location<'_>) -> String) -> Vec<String> {
    let location = |place: &Place| place.location.map(|loc| trace.names().location(loc));
    let places = finding.places();
    // What has no place of its own is called by its object, and the names of some objects have line numbers in them. The
    // places that have one say which kind of object it is, if the trace knows that.
    let told = places.iter().any(|place| location(place).is_some_and(|at| at.source.is_some()));
    let of_place = |place: &&Place| match location(place) {
        Some(at) => text(&at),
        None if told => place.op.to_owned(),
        None => format!("{}\u{1f}{}", place.op, place.object),
    };
    let mut texts: Vec<String> = places.iter().map(of_place).collect();
    match finding.bug.form() {
        Form::Race | Form::PossibleUseAfterFree | Form::PossibleDoubleFree | Form::PossiblyDestroyedInUse => {
            texts.sort();
        }
        Form::Cycle => rotate_to_least(&mut texts),
        _ => {}
    }
    texts.insert(0, finding.bug.form().name().to_owned());
    texts.extend(finding.bug.violated().map(|violated| violated.name.clone()));
    texts
}

/// What of a place stays the same from build to build.
fn stable_text(location: &Location<'_>) -> String {
    match location.identity() {
        Some(line) => format!("{line}\u{1f}{}", location.object.unwrap_or_default()),
        None => location_text(location),
    }
}

/// What of a place stays the same from run to run.
fn location_text(location: &Location<'_>) -> String {
    let function = location.function.unwrap_or_default();
    match location.object {
        Some(object) => format!("{location}\u{1f}{function}\u{1f}{object}"),
        None => format!("{location}\u{1f}{function}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::Flags;
    use crate::finding::Evidence;
    use crate::kinds::{Bug, race_places};
    use portent_order::Model;
    use portent_trace::{EventId, EventList, InputEvent, InputOp, Names, ObjectClass, ThreadId, WriteOrder};

    fn race(trace: &Trace, a: usize, b: usize) -> Finding {
        let [first, second] = race_places(trace, EventId::new(a), EventId::new(b));
        Finding {
            id: String::new(),
            evidence: Evidence::Predicted,
            model: Some(Model::Reads),
            object: "x".into(),
            instances: 1,
            instances_exact: true,
            flags: Flags::default(),
            witness: None,
            other_branch: None,
            bug: Bug::Race { first, second, frees: None },
        }
    }

    #[test]
    fn an_id_depends_on_the_locations_and_not_on_the_order_of_a_race() {
        let one = Trace::from_std("T1|w(x)|a.c:1\nT2|w(x)|b.c:2\n").unwrap();
        let other = Trace::from_std("T7|w(y)|b.c:2\nT9|w(y)|a.c:1\nT9|w(y)|a.c:3\n").unwrap();
        let mut findings = [race(&one, 0, 1)];
        name_findings(&one, &mut findings);
        let mut again = [race(&other, 0, 1), race(&other, 0, 2)];
        name_findings(&other, &mut again);
        assert_eq!(findings[0].id, again[0].id);
        assert_ne!(again[0].id, again[1].id);
        assert_eq!(findings[0].id.len(), "race-".len() + 6);
    }

    /// A write of each of two threads at lines that hold `source`.
    fn traced(lines: [&str; 2], directory: &str, source: &str) -> Trace {
        let mut names = Names::default();
        let x = names.intern(ObjectClass::Variable, b"x").unwrap();
        let mut events = Vec::new();
        for (thread, line) in lines.into_iter().enumerate() {
            let text = format!("{directory}bank.cpp:{line}");
            let place = names.intern_source_location(&text, "deposit(int)", source).unwrap();
            let loc = names.intern_location_about(place, "accounts[]").unwrap();
            names.intern(ObjectClass::Thread, format!("T{thread}").as_bytes()).unwrap();
            let (thread, op) = (ThreadId::new(thread), InputOp::Write(WriteOrder::Plain));
            events.push(InputEvent { thread, op, object: x, value: None, loc });
        }
        Trace::from_input(&mut EventList::of(&names, &events)).unwrap()
    }

    fn named(names: &mut FindingNames, trace: &Trace) -> String {
        let mut findings = [race(trace, 0, 1)];
        names.name(trace, &mut findings);
        findings[0].id.clone()
    }

    #[test]
    fn an_id_depends_on_what_stands_in_the_line_where_that_is_known() {
        let alone = |lines, directory, source| named(&mut FindingNames::default(), &traced(lines, directory, source));
        let here = alone(["9", "9"], "", "balance += n;");
        assert_eq!(here, alone(["12", "12"], "/home/ada/", "balance += n;"), "lines were added, and it was moved");
        assert_ne!(here, alone(["9", "9"], "", "balance -= n;"));
    }

    #[test]
    fn two_places_that_say_the_same_are_two_findings_in_every_run() {
        let mut names = FindingNames::default();
        let [one, other] = [["9", "9"], ["14", "14"]].map(|lines| traced(lines, "", "++n;"));
        let ids = [named(&mut names, &one), named(&mut names, &other)];
        assert_ne!(ids[0], ids[1]);
        assert_eq!([named(&mut names, &one), named(&mut names, &other)], ids);
    }

    #[test]
    fn findings_that_look_the_same_still_have_different_ids() {
        let trace = Trace::from_std("T1|w(x)|a\nT2|w(x)|b\n").unwrap();
        let mut findings = [(); 20].map(|()| race(&trace, 0, 1));
        name_findings(&trace, &mut findings);
        let ids: HashSet<&str> = findings.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids.len(), 20);
    }
}
