//! Races of the observed order itself: what a happens-before detector reports, as findings.

use crate::combine::sort_and_name;
use crate::facts::Facts;
use crate::finding::{BugKind, Evidence, Finding, Flags, Role, event_place};
use crate::hb;
use crate::key::Key;
use crate::predict::{Prediction, Stats};
use portent_order::Model;
use portent_trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Races of the observed order that nothing but relaxed atomics orders, where no race was predicted.
pub(crate) fn relaxed_races(facts: &Facts<'_>, model: Model, known: &[Finding]) -> Vec<Finding> {
    let keys: BTreeSet<Key> = known.iter().filter_map(|f| f.goal.as_ref()).map(|goal| Key::of(facts, goal)).collect();
    let mut races = grouped(facts.trace, Some(model), |report| hb::ordered_by_relaxed_atomics(facts.trace, report));
    races.retain(|(key, _)| !keys.contains(key));
    races.into_iter().map(|(_, finding)| finding).collect()
}

/// What a detector reports, grouped.
fn grouped(
    trace: &Trace,
    model: Option<Model>,
    detector: impl FnOnce(&mut dyn FnMut(hb::Unordered)),
) -> Vec<(Key, Finding)> {
    let mut groups: BTreeMap<Key, Finding> = BTreeMap::new();
    detector(&mut |race| {
        let flags = Flags { relaxed_only: race.relaxed_only, ..Flags::default() };
        let group = groups.entry(Key::race(trace, race.first, race.second));
        let finding = group.or_insert_with(|| {
            let places =
                vec![event_place(trace, Role::First, race.first), event_place(trace, Role::Second, race.second)];
            Finding {
                id: String::new(),
                kind: BugKind::Race,
                form: None,
                evidence: Evidence::Observed,
                model,
                object: places[0].object.clone(),
                places,
                instances: 0,
                instances_exact: true,
                flags,
                witness_type: None,
                pattern: None,
                goal: None,
                witness: None,
                property: None,
                other_branch: None,
            }
        });
        finding.instances += 1;
        finding.flags = finding.flags.and(flags);
    });
    // A detector does not keep every access: it does not claim to count every pair.
    groups.values_mut().for_each(|finding| finding.instances_exact = false);
    groups.into_iter().collect()
}

/// The races that a happens-before detector reports on the observed order, for comparison.
pub fn by_happens_before(trace: &Trace) -> Prediction {
    let started = Instant::now();
    let mut findings: Vec<Finding> =
        grouped(trace, None, |report| hb::detect(trace, report)).into_iter().map(|(_, race)| race).collect();
    sort_and_name(trace, &mut findings);
    let stats = Stats { time: started.elapsed(), ..Stats::default() };
    Prediction { findings, stats, ..Prediction::default() }
}
