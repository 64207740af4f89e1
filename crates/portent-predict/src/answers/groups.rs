//! Answers put together: first groups, then findings.

use super::undecided::undecided;
use super::whole::kept_whole;
use crate::asking::{Group, Key};
use crate::bug::BugKind;
use crate::examination::Examination;
use crate::facts::Facts;
use crate::finding::{Evidence, Finding, Witness};
use crate::kinds;
use crate::undecided::{Incomplete, Status, Why};
use portent_order::Model;
use rustc_hash::FxHashMap;

/// Puts the answers of all windows and passes together, in order: groups, and how many candidates of each kind are done with.
pub(crate) fn merge(examination: &mut Examination<'_, '_>) -> (FxHashMap<Key, Group>, [u64; BugKind::ALL.len()]) {
    /// Undecided candidates are listed one by one up to this many of a kind.
    const LISTED: usize = 100;
    let mut groups: FxHashMap<Key, Group> = FxHashMap::default();
    let mut done = [0; BugKind::ALL.len()];
    let mut more = [0u64; BugKind::ALL.len()];
    let mut listed = [0usize; BugKind::ALL.len()];
    let facts = examination.facts;
    for (answers, tiers) in examination.take_answers() {
        let prediction = &mut examination.prediction;
        prediction.stats.tiers.add(&tiers);
        prediction.stats.spared += answers.spared;
        prediction.errors.extend(answers.rejected);
        done.iter_mut().zip(answers.done).for_each(|(all, one)| *all += one);
        for goal in answers.undecided {
            let k = BugKind::of(&goal) as usize;
            listed[k] += 1;
            if listed[k] > LISTED {
                more[k] += 1;
                continue;
            }
            prediction.incomplete.push(undecided(facts, &goal, Why::Budget));
        }
        for (key, group) in answers.groups {
            match groups.entry(key) {
                std::collections::hash_map::Entry::Occupied(mut earlier) => earlier.get_mut().absorb(group),
                std::collections::hash_map::Entry::Vacant(slot) => drop(slot.insert(group)),
            }
        }
    }
    for kind in BugKind::ALL.into_iter().filter(|&kind| more[kind as usize] > 0) {
        let what = format!("more {} candidates that were asked about without an answer", kind.name());
        let entry = Incomplete::many(kind, Status::Undecided, more[kind as usize], Why::Budget, what);
        examination.prediction.incomplete.push(entry);
    }
    (groups, done)
}

/// Groups as findings, without ids. When told to stop, their witnesses stay as they are.
pub(crate) fn findings(
    facts: &Facts<'_>,
    model: Model,
    groups: FxHashMap<Key, Group>,
    incomplete: &mut Vec<Incomplete>,
    stop: &dyn Fn() -> bool,
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
                ..undecided(facts, &goal, Why::Budget)
            });
            continue;
        };
        let bug = kinds::bug(facts, model, &goal, &schedule);
        let schedule = kept_whole(facts, model, &goal, schedule, stop);
        let steps = facts.steps.convert_in(facts.trace, facts.whole(), &goal, &schedule);
        let mut objects: Vec<&str> = bug.places().into_iter().map(|place| place.object.as_str()).collect();
        // What others do is no object.
        objects.retain(|object| !object.is_empty());
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
