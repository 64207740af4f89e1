//! Beyond the windows: what the sweep over the whole trace finds, added to the groups that windows found.

use crate::ask::Group;
use crate::facts::Facts;
use crate::finding::{BugKind, Flags};
use crate::hb;
use crate::key::Key;
use crate::left::spans;
use crate::predict::{Options, Stop};
use crate::syncp::{Wanted, sweep};
use portent_order::Goal;
use portent_trace::EventId;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// What the sweep added.
#[derive(Default)]
pub(crate) struct Far {
    /// Candidates of each kind that fit in no window and were found all the same.
    pub(crate) found: [u64; 4],
    /// Witnesses that the checker refused.
    pub(crate) refused: Vec<String>,
}

/// Adds sync-preserving races and deadlocks at locations where the windows have no witness.
pub(crate) fn add(facts: &Facts<'_>, options: &Options, stop: &Stop<'_>, groups: &mut FxHashMap<Key, Group>) -> Far {
    let mut far = Far::default();
    let has = |kind| options.kinds.contains(&kind);
    let (races, deadlocks) = (has(BugKind::Race), has(BugKind::Deadlock));
    if !races && !deadlocks {
        return far;
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
    let windows = spans(facts.trace.len(), options.window);
    for (goal, witness) in found {
        if stopped() {
            break;
        }
        if let Err(why) = facts.checker.check(options.model, &goal, &witness) {
            far.refused.push(format!("sync-preserving witness of {goal:?} in {}: {why}", options.model));
            continue;
        }
        far.found[BugKind::of(&goal) as usize] += u64::from(!fits(&windows, &goal));
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
    far
}

/// Whether one of the windows contains all events of a goal.
fn fits(windows: &[Range<usize>], goal: &Goal) -> bool {
    let events: &[EventId] = match goal {
        Goal::Race { first, second } => &[*first, *second],
        Goal::Deadlock { waiting } => waiting,
        _ => return true,
    };
    let (first, last) = (events.iter().min(), events.iter().max());
    let (Some(first), Some(last)) = (first, last) else { return true };
    let best = windows[..windows.partition_point(|window| window.start <= first.index())].last();
    best.is_some_and(|window| last.index() < window.end)
}
