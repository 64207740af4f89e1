//! What findings are called: by kind and source locations, so that the same bug has the same id in every run.

use crate::asking::rotate_to_least;
use crate::bug::{Form, Place};
use crate::finding::{Finding, id};
use portent_trace::Trace;
use std::collections::HashSet;

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
            Form::Race | Form::PossibleUseAfterFree | Form::PossibleDoubleFree | Form::PossiblyDestroyedInUse => {
                texts.sort()
            }
            Form::Cycle => rotate_to_least(&mut texts),
            _ => {}
        }
        texts.extend(finding.bug.violated().map(|violated| violated.name.clone()));
        let form = finding.bug.form().name();
        let texts = std::iter::once(form).chain(texts.iter().map(String::as_str));
        finding.id = id(finding.kind(), texts, |id| taken.contains(id));
        taken.insert(finding.id.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::Flags;
    use crate::finding::Evidence;
    use crate::kinds::{Bug, race_places};
    use portent_order::Model;
    use portent_trace::EventId;

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

    #[test]
    fn findings_that_look_the_same_still_have_different_ids() {
        let trace = Trace::from_std("T1|w(x)|a\nT2|w(x)|b\n").unwrap();
        let mut findings = [(); 20].map(|()| race(&trace, 0, 1));
        name_findings(&trace, &mut findings);
        let ids: HashSet<&str> = findings.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids.len(), 20);
    }
}
