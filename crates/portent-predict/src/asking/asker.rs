//! Asking about candidates, one by one or in sweeps of the engine.
//!
//! Once a group of source locations has a feasible instance, only so many more of its instances are asked about: the
//! count is then a lower bound, and says so. The limit is per window, so that results do not depend on which window is
//! examined first.

use super::groups::{Answers, ENOUGH, Flags, Gathered, Group};
use super::key::Key;
use super::open::{Open, Settled};
use crate::bug::BugKind;
use crate::facts::Facts;
use crate::request::Stop;
use crate::undecided::Why;
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Model, Schedule, Verdict};

/// One engine on one window, and what came out of it.
pub(crate) struct Asker<'a, 'v, 't> {
    pub(crate) facts: &'a Facts<'t>,
    pub(crate) view: &'v View<'t>,
    pub(crate) engine: &'a mut Engine<'v, 't>,
    pub(crate) model: Model,
    pub(crate) effort: Effort,
    pub(crate) stop: &'a Stop,
    pub(crate) answers: &'a mut Answers,
    /// Groups that have a witness, and the number of this window.
    pub(crate) settled: &'a Settled,
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
        self.answers.done[kind as usize] += 1;
    }

    /// Decides a candidate of a group.
    pub(crate) fn ask(&mut self, goal: Goal, key: Key) {
        self.answers.done[BugKind::of(&goal) as usize] += 1;
        if let Some(group) = self.answers.groups.get_mut(&key) {
            if group.asked_since >= ENOUGH {
                group.exact = false;
                self.answers.spared += 1;
                return;
            }
            group.asked_since += 1;
        }
        match self.engine.decide(&goal, self.effort) {
            Verdict::Feasible(witness) => match self.answers.groups.get_mut(&key) {
                Some(group) => group.absorb(Group::new(goal, Flags::default(), None)),
                None => {
                    // A witness that an earlier window has too would not be shown.
                    let claimed = self.settled.claim(&key, self.window);
                    if !claimed || self.passes(&goal, &witness) {
                        let group = Group::new(goal, Flags::default(), claimed.then_some(witness));
                        self.answers.groups.insert(key, group);
                    }
                }
            },
            Verdict::Infeasible => {}
            Verdict::Unknown(_) => self.undecided(goal),
        }
    }

    /// Keeps what a sweep found, with a witness for each group: that of its first instance, unless an earlier window has one.
    pub(crate) fn keep(&mut self, gathered: Gathered) {
        let mut groups: Vec<(Key, Group)> = gathered.0.into_iter().collect();
        groups.sort_by(|a, b| a.1.goal.cmp(&b.1.goal));
        for (key, mut group) in groups {
            if self.settled.claim(&key, self.window) {
                // By an engine of its own: which windows make witnesses depends on timing, and what the window's engine
                // learns must not.
                match Engine::new(self.view).decide(&group.goal, self.effort) {
                    Verdict::Feasible(witness) if self.passes(&group.goal, &witness) => group.witness = Some(witness),
                    Verdict::Feasible(_) => continue,
                    Verdict::Infeasible => {
                        self.answers.rejected.push(format!("{:?} is feasible and then it is not", group.goal));
                        continue;
                    }
                    Verdict::Unknown(_) => {
                        self.undecided(group.goal);
                        continue;
                    }
                }
            }
            self.answers.groups.insert(key, group);
        }
    }

    /// Counts candidates that a sweep has done with; those that it did not even look at were settled by clocks.
    pub(crate) fn swept(&mut self, kind: BugKind, candidates: u128, examined: u64) {
        let candidates = u64::try_from(candidates).unwrap_or(u64::MAX);
        self.answers.done[kind as usize] += candidates;
        self.engine.note_filtered(candidates.saturating_sub(examined));
    }

    /// Whether the checker accepts a witness.
    pub(crate) fn passes(&mut self, goal: &Goal, witness: &Schedule) -> bool {
        match self.facts.checker.check(self.model, goal, witness) {
            Ok(()) => true,
            Err(why) => {
                self.answers.rejected.push(format!("witness of {goal:?} in {}: {why}", self.model));
                false
            }
        }
    }

    /// Notes a candidate that was not decided.
    pub(crate) fn undecided(&mut self, goal: Goal) {
        self.answers.undecided.push(goal);
    }
}
