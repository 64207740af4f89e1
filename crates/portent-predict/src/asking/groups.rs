//! Instances of one finding, gathered: how many there are, what holds of all of them, and one that can be shown.

use super::key::Key;
use crate::bug::BugKind;
use portent_order::{Goal, Schedule};
use rustc_hash::FxHashMap;

/// What is worth knowing about all instances of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// A happens-before detector that watched the recorded run would have stayed silent (races).
    pub beyond_hb: bool,
    /// The two accesses are ordered by nothing but relaxed atomics (races).
    pub relaxed_only: bool,
    /// The other value is equal to the one that was read (nondeterminism).
    pub same_value: bool,
    /// Both accesses hold a common lock: the order is open, but not by accident (nondeterminism).
    pub under_lock: bool,
    /// A branch of the recorded run must go the other way first.
    pub needs_other_branch: bool,
}

impl Flags {
    /// The names of the flags that are set.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [
            ("beyond_hb", self.beyond_hb),
            ("relaxed_only", self.relaxed_only),
            ("same_value", self.same_value),
            ("under_lock", self.under_lock),
            ("needs_other_branch", self.needs_other_branch),
        ]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
    }
    /// What holds of both.
    pub(crate) fn and(self, other: Flags) -> Flags {
        Flags {
            beyond_hb: self.beyond_hb && other.beyond_hb,
            relaxed_only: self.relaxed_only && other.relaxed_only,
            same_value: self.same_value && other.same_value,
            under_lock: self.under_lock && other.under_lock,
            needs_other_branch: self.needs_other_branch && other.needs_other_branch,
        }
    }
}

/// How many instances of a group are asked about after its first feasible one.
pub(super) const ENOUGH: u32 = 64;

/// The feasible instances of a group.
pub(crate) struct Group {
    pub(crate) instances: u64,
    pub(crate) exact: bool,
    pub(crate) flags: Flags,
    pub(crate) goal: Goal,
    /// Checked. `None` where an earlier window has a witness already.
    pub(crate) witness: Option<Schedule>,
    pub(crate) asked_since: u32,
}

impl Group {
    pub(crate) fn new(goal: Goal, flags: Flags, witness: Option<Schedule>) -> Self {
        Group { instances: 1, exact: true, flags, goal, witness, asked_since: 0 }
    }
    /// Adds the instances of a later window.
    pub(crate) fn absorb(&mut self, later: Group) {
        self.instances += later.instances;
        self.exact &= later.exact;
        self.flags = self.flags.and(later.flags);
        self.witness = self.witness.take().or(later.witness);
    }
}

/// Feasible instances that a sweep of the engine found, without witnesses, by group.
#[derive(Default)]
pub(crate) struct Gathered(pub(super) FxHashMap<Key, Group>);

impl Gathered {
    /// Whether a group has enough instances already; if so, its count becomes a lower bound.
    pub(crate) fn has_enough(&mut self, key: &Key) -> bool {
        match self.0.get_mut(key) {
            Some(group) if group.instances > u64::from(ENOUGH) => {
                group.exact = false;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn add(&mut self, key: Key, goal: Goal, flags: Flags) {
        match self.0.entry(key) {
            std::collections::hash_map::Entry::Occupied(mut group) => {
                let group = group.get_mut();
                if goal < group.goal {
                    group.goal = goal.clone();
                }
                group.absorb(Group::new(goal, flags, None));
            }
            std::collections::hash_map::Entry::Vacant(slot) => drop(slot.insert(Group::new(goal, flags, None))),
        }
    }
}

/// What one window, or one pass, answered.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) groups: FxHashMap<Key, Group>,
    /// Candidates that were asked about without an answer.
    pub(crate) undecided: Vec<Goal>,
    /// Candidates done with, by kind.
    pub(crate) done: [u64; BugKind::ALL.len()],
    /// Of these, not asked about because their group has enough.
    pub(crate) spared: u64,
    /// Witnesses that the checker refused: errors of the engine.
    pub(crate) rejected: Vec<String>,
}
