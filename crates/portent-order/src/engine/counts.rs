//! Semaphores of a window: what they count, as a function of where the chains are, and what that forces.
//!
//! Each chain has a *share* in a count ([`crate::semaphores`]). Saturation asks what the shares can be at best when a wait or a
//! failed try happens; the search, once an order has come to one that is not possible, which chain would have to be elsewhere.

use super::index::{Chain, IndexVec, Node, Place, Semaphore};
use super::rows::Cut;
use super::saturate::{Cycle, Saturation};
use super::target::Target;
use super::window::{Act, Window};
use crate::semaphores::Share;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// What one chain does to a semaphore.
#[derive(Clone, Debug)]
pub(crate) struct Uses {
    chain: Chain,
    /// Its posts and waits, in order.
    nodes: Vec<Node>,
    share: Share,
    /// The same with the sign turned.
    turned: Share,
}

/// A semaphore.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter {
    /// What it counts when the window starts.
    pub base: i64,
    uses: Vec<Uses>,
    /// Waits and failed tries, in observed order.
    needy: Vec<Node>,
    /// For each wait, a post that let it through, first come, first served; none where the count did that was there before.
    served: Vec<(Node, Node)>,
    has_tries: bool,
}

/// What an event needs of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    /// That of a wait.
    AboveZero,
    /// That of a failed try.
    Zero,
}

impl Act {
    /// The semaphore whose count an event needs, and what of it.
    #[inline]
    pub(crate) fn needs_count(self) -> Option<(Semaphore, Need)> {
        match self {
            Act::Wait(s) => Some((s, Need::AboveZero)),
            Act::Empty(s) => Some((s, Need::Zero)),
            _ => None,
        }
    }
}

impl Need {
    /// Whether a count is what is needed.
    #[inline]
    pub(crate) fn is_met(self, count: i64) -> bool {
        (count > 0) == (self == Need::AboveZero)
    }
}

impl Uses {
    /// How many of the operations a chain has made at a place.
    fn done(&self, w: &Window<'_>, place: Place) -> usize {
        self.nodes.partition_point(|&node| w.place[node] < place)
    }
    /// The share, such that more of it is better.
    fn towards(&self, need: Need) -> &Share {
        match need {
            Need::AboveZero => &self.share,
            Need::Zero => &self.turned,
        }
    }
}

impl Counter {
    /// From the operations of a semaphore, in observed order.
    fn new(w: &Window<'_>, base: i64, nodes: &[Node]) -> Self {
        let mut counter = Counter { base, ..Counter::default() };
        let mut posts = VecDeque::new();
        let mut left = base;
        for &node in nodes {
            match w.act[node] {
                Act::Post(_) => posts.push_back(node),
                Act::Wait(_) if left > 0 => left -= 1,
                Act::Wait(_) => counter.served.extend(posts.pop_front().map(|post| (node, post))),
                _ => counter.has_tries = true,
            }
            if w.act[node].needs_count().is_some() {
                counter.needy.push(node);
            }
            if !matches!(w.act[node], Act::Empty(_)) {
                let chain = w.chain_of[node];
                match counter.uses.iter_mut().find(|uses| uses.chain == chain) {
                    Some(uses) => uses.nodes.push(node),
                    None => {
                        let (share, turned) = Default::default();
                        counter.uses.push(Uses { chain, nodes: vec![node], share, turned });
                    }
                }
            }
        }
        let step = |&node: &Node| if matches!(w.act[node], Act::Post(_)) { 1 } else { -1 };
        for uses in &mut counter.uses {
            uses.share = Share::of(uses.nodes.iter().map(step));
            uses.turned = Share::of(uses.nodes.iter().map(|node| -step(node)));
        }
        counter
    }

    /// Orders one of which must hold for a count to be another than with the chains at these positions, up for [`Need::AboveZero`],
    /// down for [`Need::Zero`]; as seen by an event (or the cut) that comes just then, in a chain of its own.
    pub(crate) fn elsewhere(
        &self,
        w: &Window<'_>,
        need: Need,
        position: &Cut,
        own: Chain,
        now: Node,
    ) -> Vec<(Node, Node)> {
        let mut orders = Vec::new();
        for uses in self.uses.iter().filter(|uses| uses.chain != own) {
            let around = uses.towards(need).no_more_around(uses.done(w, position[uses.chain]));
            orders.extend(around.start().checked_sub(1).map(|at| (now, uses.nodes[at])));
            orders.extend(uses.nodes.get(*around.end()).map(|&node| (node, now)));
        }
        orders
    }

    /// Whether all its operations below a cut, in observed order, are possible.
    fn projects(&self, w: &Window<'_>, cut: &Cut) -> bool {
        let mut nodes: Vec<Node> = self.uses.iter().flat_map(|uses| uses.nodes.iter().copied()).collect();
        nodes.retain(|&node| w.is_in(cut, node));
        nodes.sort_unstable();
        let mut count = self.base;
        nodes.iter().all(|&node| {
            count += if matches!(w.act[node], Act::Post(_)) { 1 } else { -1 };
            count >= 0
        })
    }
}

impl Window<'_> {
    /// Lays out the semaphores of the window, whose operations these are; `bases` is what they count before it.
    pub(super) fn add_counters(&mut self, bases: &[i64], nodes: &IndexVec<Semaphore, Vec<Node>>) {
        self.counters = nodes.iter().zip(bases).map(|(nodes, &base)| Counter::new(self, base, nodes)).collect();
        let mut forced = Vec::new();
        for counter in self.counters.iter() {
            for &node in &counter.needy {
                let ranges = |uses: &Uses| 0..=uses.nodes.len();
                let bounds = counter.bounds(self, node, ranges).unwrap_or_default();
                forced.extend(bounds.after.into_iter().map(|before| (before, node)));
            }
        }
        // In a window what is forced was observed so. A slice may lack the posts that let its waits through; later ones are then
        // left to saturation and search.
        self.hard.extend(forced.into_iter().filter(|(before, after)| before < after));
    }

    /// Whether the operations on semaphores below a cut are possible in observed order.
    pub(super) fn counts_project(&self, cut: &Cut) -> bool {
        self.counters.iter().all(|counter| counter.projects(self, cut))
    }

    /// The first place of a chain from which on it uses a semaphore.
    pub(super) fn before_counting(&self, chain: Chain) -> Place {
        let uses = self.counters.iter().flat_map(|counter| &counter.uses);
        let first = uses.filter(|uses| uses.chain == chain).filter_map(|uses| uses.nodes.first());
        first.map(|&node| self.place[node]).min().unwrap_or(self.chain[chain].end())
    }
}

/// What must come before and after an event because of a count.
#[derive(Debug, Default)]
struct Bounds {
    after: Vec<Node>,
    before: Vec<Node>,
}

impl Counter {
    /// What the shares force when a node happens, if each chain has made so many of its operations then; `None` if it cannot.
    fn bounds(&self, w: &Window<'_>, node: Node, ranges: impl Fn(&Uses) -> RangeInclusive<usize>) -> Option<Bounds> {
        let (_, need) = w.act[node].needs_count()?;
        let own = w.chain_of[node];
        let others = || self.uses.iter().filter(|uses| uses.chain != own);
        let mine = self.uses.iter().find(|uses| uses.chain == own);
        let mine = mine.map_or(0, |uses| uses.towards(need).at(uses.done(w, w.place[node])));
        let (base, needed) = match need {
            Need::AboveZero => (self.base, 1),
            Need::Zero => (-self.base, 0),
        };
        let best: i64 = others().map(|uses| uses.towards(need).most(&ranges(uses))).sum();
        let slack = base.saturating_add(mine + best - needed);
        if slack < 0 {
            return None;
        }
        let mut bounds = Bounds::default();
        for uses in others() {
            let (share, range) = (uses.towards(need), ranges(uses));
            let good = share.at_least(share.most(&range).saturating_sub(slack), &range);
            if good.start() > range.start() {
                bounds.after.push(uses.nodes[good.start() - 1]);
            }
            if good.end() < range.end() {
                bounds.before.push(uses.nodes[*good.end()]);
            }
        }
        Some(bounds)
    }
}

impl Saturation<'_, '_> {
    /// What counts force in the set; whether it had to grow, or its order.
    pub(super) fn count(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let mut changed = false;
        for counter in w.counters.iter() {
            for &node in &counter.needy {
                if !self.contains(node) {
                    continue;
                }
                let range = |uses: &Uses| {
                    let (from, to) = self.reach_of(uses.chain, node, target);
                    uses.done(w, from)..=uses.done(w, to.max(from))
                };
                let bounds = counter.bounds(w, node, range).ok_or(Cycle)?;
                for before in bounds.after {
                    if !self.contains(before) {
                        if !w.past_of(before).is_within(&target.stop) {
                            return Err(Cycle);
                        }
                        self.grow(w.past_of(before))?;
                    }
                    changed |= !self.is_before(before, node);
                    self.add(before, node)?;
                }
                for after in bounds.before {
                    if self.contains(after) && !self.is_before(node, after) {
                        changed = true;
                        self.add(node, after)?;
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Between which places a chain is when a node of another happens, for all that is known.
    fn reach_of(&self, chain: Chain, node: Node, target: &Target) -> (Place, Place) {
        let w = self.w;
        let (own, place) = (w.chain_of[node], w.place[node]);
        let inside = w.chain[chain].before(self.cut[chain]);
        let after = inside.partition_point(|&other| self.clock().at(other, own) <= place);
        let to = match inside.get(after) {
            Some(&first) => w.place[first],
            None => {
                let outside = w.chain[chain].from(self.cut[chain]);
                let more = outside.partition_point(|&other| w.past_of(other)[own] <= place);
                outside.get(more).map_or(w.chain[chain].end(), |&first| w.place[first])
            }
        };
        (self.clock().at(node, chain), to.min(target.stop[chain]))
    }

    /// Lets those post who let the waits of the set through, and puts failed tries where they were observed, where the target
    /// allows it. A choice: on a cycle, nothing is proven.
    pub(super) fn assume_observed_counts(&mut self, target: &Target) -> Result<(), Cycle> {
        let w = self.w;
        self.grow_by(target, |set, grown| {
            for counter in w.counters.iter() {
                for &(wait, post) in &counter.served {
                    if set.contains(wait) {
                        grown.join(w.past_of(post));
                    }
                }
                let last_try = counter.needy.iter().rev().find(|&&node| set.is_try(node));
                for uses in counter.uses.iter().filter(|_| last_try.is_some()) {
                    let before = uses.nodes.iter().rev().find(|&&node| Some(&node) < last_try);
                    if let Some(&node) = before {
                        grown.join(w.past_of(node));
                    }
                }
            }
        })?;
        for counter in w.counters.iter().filter(|counter| counter.has_tries) {
            let tries: Vec<Node> = counter.needy.iter().copied().filter(|&node| self.is_try(node)).collect();
            let uses = counter.uses.iter().flat_map(|uses| &uses.nodes);
            let inside: Vec<Node> = uses.copied().filter(|&node| self.contains(node)).collect();
            for (failed, node) in tries.iter().flat_map(|&failed| inside.iter().map(move |&node| (failed, node))) {
                self.add(node.min(failed), node.max(failed))?;
            }
        }
        self.fixpoint(target)
    }

    /// Whether a node is a failed try of the set.
    fn is_try(&self, node: Node) -> bool {
        matches!(self.w.act[node], Act::Empty(_)) && self.contains(node)
    }
}
