//! Which instances are one finding, and what it is called: both by source locations.

use crate::bug::{Form, Place};
use crate::facts::Facts;
use crate::finding::Finding;
use portent_order::{Goal, Writer};
use portent_trace::{EventId, Trace};
use std::collections::HashSet;

/// The source locations of an instance: instances with the same key are one finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    form: Form,
    head: [u64; 3],
    /// The rest of long cycles.
    more: Vec<u64>,
}

const INIT: u64 = u64::MAX;
const FINAL: u64 = 1 << 40;

impl Key {
    /// The key of a goal.
    pub(crate) fn of(facts: &Facts<'_>, goal: &Goal) -> Key {
        let trace = facts.trace;
        let at = |e: EventId| u64::from(trace.event(e).loc.to_bits());
        let by = |w: Writer| match w {
            Writer::Init => INIT,
            Writer::Event(e) => at(e),
        };
        let key = |form, head| Key { form, head, more: Vec::new() };
        match goal {
            Goal::Race { first, second } => Key::race(trace, *first, *second),
            Goal::Nondeterminism { read, challenger } => {
                key(Form::Nondeterminism, [at(*read), by(facts.saw(*read)), by(*challenger)])
            }
            Goal::FinalValue { variable, challenger } => {
                let last = facts.last_write(*variable).map_or(INIT, at);
                key(Form::Nondeterminism, [FINAL + variable.index() as u64, last, at(*challenger)])
            }
            Goal::Atomicity { first, remote, second } => key(Form::Atomicity, [at(*first), at(*remote), at(*second)]),
            Goal::Deadlock { waiting } => {
                let mut places: Vec<u64> = waiting.iter().map(|&e| at(e)).collect();
                rotate_to_least(&mut places);
                let head = std::array::from_fn(|i| places.get(i).copied().unwrap_or(INIT));
                let more = places.split_off(places.len().min(3));
                Key { form: Form::Cycle, head, more }
            }
            Goal::LostWakeup { pairing } => {
                let pairing = trace.pairings()[pairing.index()];
                let head = [at(pairing.wake), at(pairing.notify), at(pairing.sleep)];
                Key { form: Form::LostWakeup, head, more: Vec::new() }
            }
        }
    }
    /// The key of a race.
    pub(crate) fn race(trace: &Trace, first: EventId, second: EventId) -> Key {
        let at = |e: EventId| u64::from(trace.event(e).loc.to_bits());
        let (a, b) = (at(first), at(second));
        Key { form: Form::Race, head: [a.min(b), a.max(b), INIT], more: Vec::new() }
    }
}

/// Starts a cycle at its least rotation.
pub(crate) fn rotate_to_least<T: Ord + Clone>(cycle: &mut [T]) {
    let rotated = |by: usize| cycle[by..].iter().chain(&cycle[..by]);
    let least = (0..cycle.len()).min_by(|&a, &b| rotated(a).cmp(rotated(b))).unwrap_or(0);
    cycle.rotate_left(least);
}

/// The text of one place that its finding's id is made of: what stays the same from run to run.
fn stable_text(trace: &Trace, place: &Place) -> String {
    match place.location {
        Some(loc) => {
            let location = trace.names().location(loc);
            format!("{location}\u{1f}{}", location.function.unwrap_or(""))
        }
        None => format!("{}\u{1f}{}", place.op, place.object),
    }
}

/// Gives every finding its id; findings must be in their final order.
pub(crate) fn name_findings(trace: &Trace, findings: &mut [Finding]) {
    let mut taken: HashSet<String> = HashSet::new();
    for finding in findings {
        let mut texts: Vec<String> = finding.places().into_iter().map(|place| stable_text(trace, place)).collect();
        match finding.bug.form() {
            Form::Race => texts.sort(),
            Form::Cycle => rotate_to_least(&mut texts),
            _ => {}
        }
        texts.extend(finding.bug.violated().map(|violated| violated.name.clone()));
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for text in std::iter::once(finding.bug.form().name()).chain(texts.iter().map(String::as_str)) {
            for byte in text.bytes().chain([0x1e]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        let digits = format!("{hash:016x}");
        let mut id =
            (6..=16).map(|n| format!("{}-{}", finding.kind().name(), &digits[..n])).find(|id| !taken.contains(id));
        // Sixteen digits taken: locations that look the same in text.
        for again in 2.. {
            if id.is_some() {
                break;
            }
            id = Some(format!("{}-{digits}-{again}", finding.kind().name())).filter(|id| !taken.contains(id));
        }
        finding.id = id.unwrap_or_default();
        taken.insert(finding.id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Evidence, Flags};
    use crate::race;
    use portent_order::Model;

    fn race(trace: &Trace, a: usize, b: usize) -> Finding {
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
            bug: race::bug(trace, EventId::new(a), EventId::new(b)),
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

    #[test]
    fn findings_that_look_the_same_still_have_different_ids() {
        let trace = Trace::from_std("T1|w(x)|a\nT2|w(x)|b\n").unwrap();
        let mut findings = [(); 20].map(|()| race(&trace, 0, 1));
        name_findings(&trace, &mut findings);
        let ids: HashSet<&str> = findings.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids.len(), 20);
    }

    #[test]
    fn cycles_are_grouped_whatever_event_comes_first() {
        let mut cycle = [3, 1, 2];
        rotate_to_least(&mut cycle);
        assert_eq!(cycle, [1, 2, 3]);
        let mut twice = [2, 1, 1];
        rotate_to_least(&mut twice);
        assert_eq!(twice, [1, 1, 2]);
    }
}
