//! Races of the observed order itself: what a happens-before detector reports, as findings.

use crate::bug::Bug;
use crate::combine::sort_and_name;
use crate::facts::Facts;
use crate::finding::{Evidence, Finding, Flags};
use crate::hb;
use crate::key::Key;
use crate::predict::{Prediction, Stats};
use crate::race;
use portent_order::Model;
use portent_trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Races of the observed order that nothing but relaxed atomics orders, where no race was predicted.
pub(crate) fn relaxed_races(facts: &Facts<'_>, model: Model, known: &[Finding]) -> Vec<Finding> {
    let trace = facts.trace;
    let keys: BTreeSet<Key> = known.iter().filter_map(Finding::goal).map(|goal| Key::of(facts, &goal)).collect();
    let races = hb::ordered_by_relaxed_atomics(trace).into_iter();
    let unknown = races.filter(|(race, _)| !keys.contains(&Key::race(trace, race.first, race.second)));
    unknown.map(|(race, instances)| observed(trace, Some(model), race, instances)).collect()
}

/// A race of the observed order as a finding.
fn observed(trace: &Trace, model: Option<Model>, race: hb::Unordered, instances: u64) -> Finding {
    let [first, second] = race::places(trace, race.first, race.second);
    Finding {
        id: String::new(),
        evidence: Evidence::Observed,
        model,
        object: first.object.clone(),
        instances,
        // A detector does not keep every access: it does not claim to count every pair.
        instances_exact: false,
        flags: Flags { relaxed_only: race.relaxed_only, ..Flags::default() },
        witness: None,
        other_branch: None,
        bug: Bug::Race { first, second },
    }
}

/// The races that a happens-before detector reports on the observed order, for comparison.
pub fn by_happens_before(trace: &Trace) -> Prediction {
    let started = Instant::now();
    let mut groups: BTreeMap<Key, Finding> = BTreeMap::new();
    hb::detect(trace, |race| {
        let group = groups.entry(Key::race(trace, race.first, race.second));
        let finding = group.or_insert_with(|| observed(trace, None, race, 0));
        finding.instances += 1;
        finding.flags.relaxed_only &= race.relaxed_only;
    });
    let mut findings: Vec<Finding> = groups.into_values().collect();
    sort_and_name(trace, &mut findings);
    let stats = Stats { time: started.elapsed(), ..Stats::default() };
    Prediction { findings, stats, ..Prediction::default() }
}
