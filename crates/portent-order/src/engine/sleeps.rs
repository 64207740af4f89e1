//! Conditions of a window: who sleeps there, whom notifies can have woken, and what that forces.
//!
//! Whom a notify wakes is nothing that an order decides. Whether some choice allows an order is a question of matching, in two halves
//! that do not depend on each other (Mendelsohn and Dulmage): each wait that a notify ended needs one of its own from between its sleep and its
//! wake; and each notify that came while somebody slept needs a sleeper who did not wake by itself. A notify-all serves everybody.
//! Permits ([`Sleepers`]) find where that fails, and [`super::matching`] says why.

use super::index::{Chain, Condition, IndexVec, Node, Place, WaitId};
use super::layout::list_in_chain;
use super::rows::Cut;
use super::saturate::{Cycle, Saturation};
use super::target::Target;
use super::window::{Act, InChain, Window};
use portent_trace::{Reach, Sleepers};
use rustc_hash::FxHashMap;

/// A wait on a condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub condition: Condition,
    pub chain: Chain,
    /// `None`: before the window.
    pub sleep: Option<Node>,
    /// The notify that ended it when it was observed, if it is here.
    pub notify: Option<Node>,
    /// `None`: after the window, or never.
    pub wake: Option<Node>,
    /// Whether it ended without a notify.
    pub by_itself: bool,
    /// The only notify that can end it.
    pub only: Option<Node>,
    /// Whether nobody else can be asleep meanwhile.
    pub alone: bool,
}

/// All that is done to a condition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    /// Who sleeps when the window starts.
    pub base: Sleepers<WaitId>,
    pub(super) waits: Vec<WaitId>,
    pub(super) notifies: Vec<InChain>,
    /// Waits that ended by themselves.
    has_time_outs: bool,
}

impl Act {
    /// Whether it does something to a condition.
    pub(super) fn is_of_condition(self) -> bool {
        matches!(self, Act::Sleep(_) | Act::Notify(..) | Act::Wake(_) | Act::Leave(_))
    }
    pub(super) fn reach(self) -> Option<Reach> {
        match self {
            Act::Notify(_, reach) => Some(reach),
            _ => None,
        }
    }
}

/// Who sleeps on the conditions of a window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asleep {
    on: IndexVec<Condition, Sleepers<WaitId>>,
}

impl Asleep {
    pub(crate) fn start(w: &Window<'_>) -> Self {
        Asleep { on: w.conditions.iter().map(|waiting| waiting.base.clone()).collect() }
    }
    /// Whether a node is possible, as far as conditions go.
    #[inline]
    pub(crate) fn allows(&self, w: &Window<'_>, node: Node) -> bool {
        match w.act[node] {
            Act::Wake(_) if w.relaxed => true,
            Act::Wake(wait) => self.can_wake(w, wait),
            Act::Leave(wait) => self.on[w.waits[wait].condition].can_leave(wait),
            _ => true,
        }
    }
    /// Whether a notify can have ended a wait.
    pub(crate) fn can_wake(&self, w: &Window<'_>, wait: WaitId) -> bool {
        self.on[w.waits[wait].condition].can_wake(wait)
    }
    /// Whether none need have.
    pub(crate) fn can_leave(&self, w: &Window<'_>, wait: WaitId) -> bool {
        self.on[w.waits[wait].condition].can_leave(wait)
    }
    /// Whether it could after this node.
    pub(crate) fn could_wake_after(&self, w: &Window<'_>, node: Node, wait: WaitId) -> bool {
        match w.act[node] {
            Act::Notify(condition, _) if condition == w.waits[wait].condition => {
                let mut after = self.clone();
                after.note(w, node);
                after.can_wake(w, wait)
            }
            _ => false,
        }
    }
    /// A node happens.
    pub(crate) fn note(&mut self, w: &Window<'_>, node: Node) {
        match w.act[node] {
            Act::Sleep(wait) => self.on[w.waits[wait].condition].sleep(wait),
            Act::Notify(condition, Reach::One) => self.on[condition].notify_one(),
            Act::Notify(condition, Reach::All) => self.on[condition].notify_all(),
            // What is not possible was told, and is over all the same.
            Act::Wake(wait) | Act::Leave(wait) if !self.allows(w, node) => {
                let on = &mut self.on[w.waits[wait].condition];
                on.wake(wait);
                on.leave(wait);
            }
            Act::Wake(_) if w.relaxed => {}
            Act::Wake(wait) => self.on[w.waits[wait].condition].wake(wait),
            Act::Leave(wait) => self.on[w.waits[wait].condition].leave(wait),
            _ => {}
        }
    }
}

impl Window<'_> {
    /// Lays out who waits for whom, once all events are there.
    pub(super) fn add_conditions(&mut self) {
        for node in self.nodes() {
            if let Act::Notify(condition, _) = self.act[node] {
                list_in_chain(&mut self.conditions[condition].notifies, self.chain_of[node], node);
            }
        }
        for id in self.waits.ids() {
            let wait = self.waits[id];
            let of = &mut self.conditions[wait.condition];
            of.waits.push(id);
            of.has_time_outs |= wait.by_itself;
        }
        let mut forced = Vec::new();
        for waiting in self.conditions.iter() {
            // How many waits there are of each chain, and how many that do not end.
            let mut of_chain: FxHashMap<Chain, usize> = FxHashMap::default();
            waiting.waits.iter().for_each(|&id| *of_chain.entry(self.waits[id].chain).or_default() += 1);
            let endless = waiting.waits.iter().filter(|&&id| self.waits[id].wake.is_none()).count();
            let mut woken: FxHashMap<Chain, usize> = FxHashMap::default();
            for &id in &waiting.waits {
                let wait = &mut self.waits[id];
                let endless_others = endless - usize::from(wait.wake.is_none());
                wait.alone = of_chain[&wait.chain] == waiting.waits.len() && endless_others == 0;
                let Some(wake) = wait.wake.filter(|_| !wait.by_itself && !waiting.base.can_wake(id)) else { continue };
                let number = woken.entry(wait.chain).or_default();
                *number += 1;
                let mut lists = waiting.notifies.iter().filter(|list| list.chain != wait.chain);
                let (Some(list), None) = (lists.next(), lists.next()) else { continue };
                if let [only] = list.nodes[..] {
                    wait.only = Some(only);
                }
                forced.extend(list.nodes.get(*number - 1).map(|&notify| (notify, wake)));
            }
        }
        // In a slice, what is forced may lie in the wrong order: then it is left to saturation and search.
        self.hard.extend(forced.into_iter().filter(|(before, after)| before < after));
    }

    /// Whether what is done to conditions below a cut is possible in observed order.
    pub(super) fn conditions_project(&self, cut: &Cut) -> bool {
        if self.conditions.is_empty() {
            return true;
        }
        let mut asleep = Asleep::start(self);
        self.nodes().filter(|&node| self.act[node].is_of_condition() && self.is_in(cut, node)).all(|node| {
            let possible = asleep.allows(self, node);
            asleep.note(self, node);
            possible
        })
    }

    /// The first place of a chain from which on it does something to a condition.
    pub(super) fn before_waiting(&self, chain: Chain) -> Place {
        let first = self.chain[chain].iter().find(|&&node| self.act[node].is_of_condition());
        first.map_or(self.chain[chain].end(), |&node| self.place[node])
    }
}

impl Saturation<'_, '_> {
    /// What wakes need of notifies: where only one chain can have one, that is there. Whether the set had to grow, or its order.
    pub(super) fn rouse(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let mut changed = false;
        for waiting in w.conditions.iter() {
            for &id in &waiting.waits {
                let wait = w.waits[id];
                let Some(wake) = wait.wake.filter(|&wake| !wait.by_itself && self.contains(wake)) else { continue };
                if waiting.base.can_wake(id) {
                    continue;
                }
                let mut found: Option<&[Node]> = None;
                let mut several = false;
                for list in waiting.notifies.iter().filter(|list| list.chain != wait.chain) {
                    let can = self.can_notify(&list.nodes, wait.sleep, wake, target);
                    if !can.is_empty() {
                        several |= found.is_some();
                        found = Some(can);
                    }
                }
                let Some(&[first, ref later @ ..]) = found else { return Err(Cycle) };
                if several {
                    continue;
                }
                if !self.contains(first) {
                    self.grow(w.past_of(first))?;
                    changed = true;
                }
                changed |= !self.is_before(first, wake);
                self.add(first, wake)?;
                let last = later.last().copied().unwrap_or(first);
                if let (Some(sleep), true) = (wait.sleep, self.contains(last)) {
                    changed |= !self.is_before(sleep, last);
                    self.add(sleep, last)?;
                }
            }
        }
        Ok(changed)
    }

    /// Which of a chain's notifies can come between a sleep and its wake, for all that is known.
    fn can_notify<'n>(&self, nodes: &'n [Node], sleep: Option<Node>, wake: Node, target: &Target) -> &'n [Node] {
        let w = self.w;
        let too_early = |node: Node| sleep.is_some_and(|sleep| self.contains(node) && self.is_before(node, sleep));
        let from = nodes.partition_point(|&node| too_early(node));
        let in_time = |node: Node| {
            if self.contains(node) {
                !self.is_before(wake, node)
            } else {
                let past = w.past_of(node);
                past.is_within(&target.stop) && past[w.chain_of[wake]] <= w.place[wake]
            }
        };
        let to = from + nodes[from..].partition_point(|&node| in_time(node));
        &nodes[from..to]
    }

    /// Lets those notify who did, when they did, and leaves those asleep whom others were woken instead of. A choice: on a cycle, nothing is
    /// proven.
    pub(super) fn assume_observed_notifies(&mut self, target: &Target) -> Result<(), Cycle> {
        let w = self.w;
        self.grow_by(target, |set, grown| {
            for wait in w.waits.iter() {
                if wait.wake.is_some_and(|wake| set.contains(wake)) {
                    wait.notify.into_iter().for_each(|notify| grown.join(w.past_of(notify)));
                }
                // A notify has woken whom it woke, at least where somebody must not be woken.
                if let (Some(notify), Some(sleep)) = (wait.notify, wait.sleep)
                    && w.conditions[wait.condition].has_time_outs
                    && set.contains(notify)
                {
                    grown.join(w.past_of(sleep));
                }
            }
        })?;
        for wait in w.waits.iter() {
            let Some(wake) = wait.wake.filter(|&wake| self.contains(wake)) else { continue };
            if let Some(notify) = wait.notify {
                self.add(notify, wake)?;
                if let Some(sleep) = wait.sleep {
                    self.add(sleep, notify)?;
                }
            }
            if wait.by_itself {
                self.assume_observed_around(*wait, wake)?;
            }
        }
        self.fixpoint(target)
    }

    /// Puts all that is done to a condition, around a wait that ended by itself, where it was.
    fn assume_observed_around(&mut self, wait: Wait, wake: Node) -> Result<(), Cycle> {
        let w = self.w;
        let of = &w.conditions[wait.condition];
        let others = of.waits.iter().map(|&id| w.waits[id]).filter(|other| other.chain != wait.chain);
        let nodes = others.flat_map(|other| [other.sleep, other.wake]).flatten();
        let notifies = of.notifies.iter().filter(|list| list.chain != wait.chain);
        let mut nodes: Vec<Node> = nodes.chain(notifies.flat_map(|list| list.nodes.iter().copied())).collect();
        nodes.retain(|&node| self.contains(node));
        for node in nodes {
            for own in wait.sleep.into_iter().chain([wake]) {
                self.add(node.min(own), node.max(own))?;
            }
        }
        Ok(())
    }
}
