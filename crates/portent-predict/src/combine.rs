//! The answers of windows put together: groups, findings, and where reads may read from.

use crate::ask::{Group, Outcome};
use crate::bug::{Bug, BugKind, Nondeterminism};
use crate::facts::Facts;
use crate::finding::{Evidence, Finding, Incomplete, MayRead, Status, Why, Witness, bug, whereabouts};
use crate::key::{Key, name_findings};
use crate::predict::Prediction;
use portent_order::Model;
use portent_order::engine::Tiers;
use portent_trace::{LocId, Trace};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Puts the windows' outcomes together, in order.
pub(crate) fn merge(
    gathered: BTreeMap<usize, (Outcome, Tiers)>,
    prediction: &mut Prediction,
) -> (FxHashMap<Key, Group>, [u64; 4]) {
    /// Undecided candidates are listed one by one up to this many of a kind.
    const LISTED: usize = 100;
    let mut groups: FxHashMap<Key, Group> = FxHashMap::default();
    let mut done = [0; 4];
    let mut more = [0u64; 4];
    let mut listed = [0usize; 4];
    for (_, (outcome, tiers)) in gathered {
        prediction.stats.tiers.add(&tiers);
        prediction.stats.spared += outcome.spared;
        prediction.errors.extend(outcome.rejected);
        done.iter_mut().zip(outcome.done).for_each(|(all, one)| *all += one);
        for undecided in outcome.undecided {
            let k = undecided.kind as usize;
            listed[k] += 1;
            if listed[k] > LISTED {
                more[k] += 1;
                continue;
            }
            prediction.incomplete.push(undecided);
        }
        for (key, group) in outcome.groups {
            match groups.entry(key) {
                std::collections::hash_map::Entry::Occupied(mut earlier) => earlier.get_mut().absorb(group),
                std::collections::hash_map::Entry::Vacant(slot) => drop(slot.insert(group)),
            }
        }
    }
    for kind in BugKind::ALL.into_iter().filter(|&kind| more[kind as usize] > 0) {
        let what = format!("more {} candidates that were asked about without an answer", kind.name());
        let count = more[kind as usize];
        prediction.incomplete.push(Incomplete {
            kind,
            status: Status::Undecided,
            events: None,
            count,
            groups: false,
            at_least: false,
            why: Why::Budget,
            what,
        });
    }
    (groups, done)
}

/// Groups as findings, without ids.
pub(crate) fn findings(
    facts: &Facts<'_>,
    model: Model,
    groups: FxHashMap<Key, Group>,
    incomplete: &mut Vec<Incomplete>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, group) in groups {
        let Group { instances, exact, flags, goal, witness, .. } = group;
        let Some(schedule) = witness else {
            // The window that was to make it ran out of budget, or its witness was refused, which is said elsewhere.
            incomplete.push(Incomplete {
                count: instances,
                at_least: !exact,
                what: format!("{} that is feasible, but whose witness was not made", BugKind::of(&goal).name()),
                ..whereabouts(facts, &goal, Status::Undecided, Why::Budget)
            });
            continue;
        };
        let bug = bug(facts, model, &goal, &schedule);
        let schedule = crate::whole::kept_whole(facts, model, &goal, schedule);
        let steps = facts.steps.convert(facts.trace, &goal, &schedule);
        let mut objects: Vec<&str> = bug.places().into_iter().map(|place| place.object.as_str()).collect();
        objects.dedup();
        found.push(Finding {
            id: String::new(),
            evidence: Evidence::Predicted,
            model: Some(model),
            object: objects.join(", "),
            instances,
            instances_exact: exact,
            flags,
            witness: Some(Witness { schedule, steps }),
            other_branch: None,
            bug,
        });
    }
    found
}

/// In the order of the reports, with ids.
pub(crate) fn sort_and_name(trace: &Trace, findings: &mut [Finding]) {
    findings.sort_by_cached_key(|finding| {
        let events: Vec<Option<u32>> = finding.places().iter().map(|place| place.event).collect();
        (finding.bug.form(), finding.flags.needs_other_branch, events, finding.object.clone())
    });
    name_findings(trace, findings);
}

/// For each read location, where its values come from and could come from.
pub(crate) fn may_read(findings: &[Finding]) -> Vec<MayRead> {
    let mut from: BTreeMap<LocId, (BTreeSet<LocId>, bool)> = BTreeMap::new();
    for finding in findings {
        let Bug::Nondeterminism(
            Nondeterminism::Read { read, writer, challenger, .. }
            | Nondeterminism::FinalValue { end: read, writer, challenger, .. },
        ) = &finding.bug
        else {
            continue;
        };
        let Some(read) = read.location else { continue };
        let (locations, initial) = from.entry(read).or_default();
        for source in [writer, challenger] {
            match source.location {
                Some(location) => drop(locations.insert(location)),
                None => *initial = true,
            }
        }
    }
    let rows = from.into_iter();
    rows.map(|(read, (from, initial))| MayRead { read, from: from.into_iter().collect(), initial }).collect()
}
