//! Beyond the windows: what the sweep over the whole trace finds, added to the groups that windows found.

use crate::ask::Group;
use crate::facts::Facts;
use crate::finding::{BugKind, Flags};
use crate::hb;
use crate::key::Key;
use crate::predict::{Options, Stop};
use crate::syncp::{Wanted, sweep};
use portent_order::Goal;
use portent_trace::EventId;
use rustc_hash::FxHashMap;

/// Adds sync-preserving races and deadlocks at locations where the windows have no witness; tells the witnesses that the
/// checker refused.
pub(crate) fn add(
    facts: &Facts<'_>,
    options: &Options,
    stop: &Stop<'_>,
    groups: &mut FxHashMap<Key, Group>,
) -> Vec<String> {
    let has = |kind| options.kinds.contains(&kind);
    let (races, deadlocks) = (has(BugKind::Race), has(BugKind::Deadlock));
    if !races && !deadlocks {
        return Vec::new();
    }
    let known = |goal: &Goal| groups.get(&Key::of(facts, goal)).is_some_and(|group| group.witness.is_some());
    let stopped = || stop.why().is_some();
    let wanted = Wanted { model: options.model, races, deadlocks, known: &known, stop: &stopped };
    let found = sweep(facts.trace, &wanted).found;
    let pairs = found.iter().filter_map(|(goal, _)| match goal {
        Goal::Race { first, second } => Some((*first, *second)),
        _ => None,
    });
    let pairs: Vec<(EventId, EventId)> = pairs.collect();
    let ordered = hb::ordered(facts.trace, &pairs);
    let mut refused = Vec::new();
    for (goal, witness) in found {
        if stopped() {
            break;
        }
        if let Err(why) = facts.checker.check(options.model, &goal, &witness) {
            refused.push(format!("sync-preserving witness of {goal:?} in {}: {why}", options.model));
            continue;
        }
        let beyond_hb = match &goal {
            Goal::Race { first, second } => ordered.contains(&(*first, *second)),
            _ => false,
        };
        let key = Key::of(facts, &goal);
        let mut group = Group::new(goal, Flags { beyond_hb, ..Flags::default() }, Some(witness));
        // There is one instance at least; nobody counted the others.
        group.exact = false;
        match groups.entry(key) {
            std::collections::hash_map::Entry::Occupied(mut without_witness) => {
                let known = without_witness.get_mut();
                (known.goal, known.witness, known.exact) = (group.goal, group.witness, false);
            }
            std::collections::hash_map::Entry::Vacant(slot) => drop(slot.insert(group)),
        }
    }
    refused
}
