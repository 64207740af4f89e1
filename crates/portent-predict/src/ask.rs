//! Asking: one engine, one window, and what came out of it.
//!
//! Once a group of source locations has a feasible instance, only so many more of its instances are asked about: the
//! count is then a lower bound, and says so. The limit is per window, so that results do not depend on which window is
//! examined first.

use crate::bug::BugKind;
use crate::facts::Facts;
use crate::finding::{Flags, Incomplete, Status, Why, whereabouts};
use crate::key::Key;
use crate::sweep::{Known, Open, Stop};
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Model, Schedule, Verdict};
use rustc_hash::FxHashMap;

/// How many instances of a group are asked about after its first feasible one.
pub(crate) const ENOUGH: u32 = 64;

/// The feasible instances of a group.
pub(crate) struct Group {
    pub(crate) instances: u64,
    pub(crate) exact: bool,
    pub(crate) flags: Flags,
    pub(crate) goal: Goal,
    /// Checked. `None` where an earlier window has a witness already.
    pub(crate) witness: Option<Schedule>,
    asked_since: u32,
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
pub(crate) struct Gathered(FxHashMap<Key, Group>);

impl Gathered {
    /// Whether the group of a candidate has enough instances already; if so, its count becomes a lower bound.
    pub(crate) fn has_enough(&mut self, facts: &Facts<'_>, goal: &Goal) -> bool {
        match self.0.get_mut(&Key::of(facts, goal)) {
            Some(group) if group.instances > u64::from(ENOUGH) => {
                group.exact = false;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn add(&mut self, facts: &Facts<'_>, goal: Goal, flags: Flags) {
        match self.0.entry(Key::of(facts, &goal)) {
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

/// What one window gave.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) groups: FxHashMap<Key, Group>,
    pub(crate) undecided: Vec<Incomplete>,
    /// Candidates done with, by kind.
    pub(crate) done: [u64; 4],
    /// Of these, not asked about because their group has enough.
    pub(crate) spared: u64,
    /// Witnesses that the checker refused: errors of the engine.
    pub(crate) rejected: Vec<String>,
}

pub(crate) struct Asker<'a, 'v, 't> {
    pub(crate) facts: &'a Facts<'t>,
    pub(crate) view: &'v View<'t>,
    pub(crate) engine: &'a mut Engine<'v, 't>,
    pub(crate) model: Model,
    pub(crate) effort: Effort,
    pub(crate) stop: &'a Stop<'a>,
    pub(crate) outcome: &'a mut Outcome,
    /// Groups that have a witness, and the number of this window.
    pub(crate) known: &'a Known,
    pub(crate) window: usize,
    /// What is worth asking.
    pub(crate) open: &'a Open,
}

impl Asker<'_, '_, '_> {
    /// Whether to stop asking, and why.
    pub(crate) fn stopped(&self) -> Option<Why> {
        self.stop.why()
    }

    /// Counts a candidate that needs no engine to see that it is impossible.
    pub(crate) fn dismiss(&mut self, kind: BugKind) {
        self.outcome.done[kind as usize] += 1;
    }

    /// Decides a candidate. `flags` is only asked for feasible ones.
    pub(crate) fn ask(&mut self, goal: Goal, flags: impl FnOnce(&Goal) -> Flags) {
        let kind = BugKind::of(&goal);
        let key = Key::of(self.facts, &goal);
        self.outcome.done[kind as usize] += 1;
        if let Some(group) = self.outcome.groups.get_mut(&key) {
            if group.asked_since >= ENOUGH {
                group.exact = false;
                self.outcome.spared += 1;
                return;
            }
            group.asked_since += 1;
        }
        match self.engine.decide(&goal, self.effort) {
            Verdict::Feasible(witness) => match self.outcome.groups.get_mut(&key) {
                Some(group) => {
                    group.instances += 1;
                    group.flags = group.flags.and(flags(&goal));
                }
                None => {
                    // A witness that an earlier window has too would not be shown.
                    let claimed = self.known.claim(&key, self.window);
                    if !claimed || self.passes(&goal, &witness) {
                        let flags = flags(&goal);
                        self.outcome.groups.insert(key, Group::new(goal, flags, claimed.then_some(witness)));
                    }
                }
            },
            Verdict::Infeasible => {}
            Verdict::Unknown(_) => self.undecided(&goal),
        }
    }

    /// Keeps what a sweep found, with a witness for each group: that of its first instance, unless an earlier window has one.
    pub(crate) fn keep(&mut self, gathered: Gathered) {
        let mut groups: Vec<(Key, Group)> = gathered.0.into_iter().collect();
        groups.sort_by(|a, b| a.1.goal.cmp(&b.1.goal));
        for (key, mut group) in groups {
            if self.known.claim(&key, self.window) {
                // By an engine of its own: which windows make witnesses depends on timing, and what the window's engine
                // learns must not.
                match Engine::new(self.view).decide(&group.goal, self.effort) {
                    Verdict::Feasible(witness) if self.passes(&group.goal, &witness) => group.witness = Some(witness),
                    Verdict::Feasible(_) => continue,
                    Verdict::Infeasible => {
                        self.outcome.rejected.push(format!("{:?} is feasible and then it is not", group.goal));
                        continue;
                    }
                    Verdict::Unknown(_) => {
                        self.undecided(&group.goal);
                        continue;
                    }
                }
            }
            self.outcome.groups.insert(key, group);
        }
    }

    /// Counts candidates that a sweep has done with; those that it did not even look at were settled by clocks.
    pub(crate) fn swept(&mut self, kind: BugKind, candidates: u128, examined: u64) {
        let candidates = u64::try_from(candidates).unwrap_or(u64::MAX);
        self.outcome.done[kind as usize] += candidates;
        self.engine.note_filtered(candidates.saturating_sub(examined));
    }

    /// Whether the checker accepts a witness.
    pub(crate) fn passes(&mut self, goal: &Goal, witness: &Schedule) -> bool {
        match self.facts.checker.check(self.model, goal, witness) {
            Ok(()) => true,
            Err(why) => {
                self.outcome.rejected.push(format!("witness of {goal:?} in {}: {why}", self.model));
                false
            }
        }
    }

    /// Notes a candidate that was not decided.
    pub(crate) fn undecided(&mut self, goal: &Goal) {
        self.outcome.undecided.push(whereabouts(self.facts, goal, Status::Undecided, Why::Budget));
    }
}
