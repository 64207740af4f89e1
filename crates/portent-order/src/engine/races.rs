//! All races of a window at once: the sweep of [`super::reads`], for pairs of accesses that are both next.
//!
//! For the accesses of one thread, in program order, what must have happened before them only grows; for one of them and
//! the accesses of another thread, likewise. Of those, the ones that must have happened before it are passed over, and
//! from the first one on that needs it to have happened, all are impossible.

use super::index::{Node, Variable};
use super::target::Target;
use super::window::Act;
use super::{Effort, Engine, Settled};
use portent_trace::{EventId, Op};

impl Engine<'_, '_> {
    /// Answers, for every two conflicting accesses of the window that are not both atomic, whether they race. Calls back, the
    /// earlier event first, with `Some(true)` for yes and `None` for "not decided in the budget"; all others are infeasible.
    ///
    /// Only pairs whose later event is `from` or after it count, and of these only those that are `wanted`. Between accesses it asks `stop` whether to go on; the result
    /// says whether it came to the end.
    pub fn answer_races(
        &mut self,
        from: EventId,
        effort: Effort,
        stop: &dyn Fn() -> bool,
        wanted: &mut dyn FnMut(EventId, EventId) -> bool,
        answer: &mut dyn FnMut(EventId, EventId, Option<bool>),
    ) -> bool {
        let w = self.window;
        let from = w.node_from(from);
        for chain in w.chains() {
            let clean = self.saturation.mark();
            for &access in w.chain[chain].iter() {
                let (Act::Read(x) | Act::Write(x) | Act::Update(x)) = w.act[access] else { continue };
                // Each pair once, from the lower chain.
                if w.variables[x].all.iter().all(|list| list.chain <= chain) {
                    continue;
                }
                if stop() || effort.is_over() {
                    self.saturation.undo(&clean);
                    return false;
                }
                self.races_of(access, x, from, effort, wanted, answer);
            }
            self.saturation.undo(&clean);
        }
        true
    }

    #[allow(clippy::too_many_arguments)] // One question and its two callbacks.
    fn races_of(
        &mut self,
        access: Node,
        x: Variable,
        from: Node,
        effort: Effort,
        wanted: &mut dyn FnMut(EventId, EventId) -> bool,
        answer: &mut dyn FnMut(EventId, EventId, Option<bool>),
    ) {
        let w = self.window;
        let event = |node: Node| w.event(node);
        let op = |node: Node| -> Op { w.trace.op(event(node)) };
        let (chain, place, mine) = (w.chain_of[access], w.place[access], op(access));
        if self.reuse
            && let Some(before) = w.before(access)
            && self.saturation.grow(w.past_of(before)).is_err()
        {
            debug_assert!(false, "what has happened before an access was observed so");
            return;
        }
        for list in w.variables[x].all.iter().filter(|list| list.chain > chain) {
            let mark = self.saturation.mark();
            let other = list.chain;
            let happened = self.saturation.cut()[other];
            let first = list.nodes.partition_point(|&b| w.place[b] < happened);
            for (at, &partner) in list.nodes.iter().enumerate().skip(first) {
                let before = w.before(partner);
                if before.is_some_and(|before| w.past_of(before)[chain] > place) {
                    break;
                }
                let theirs = op(partner);
                let racy = mine.conflicts_with(theirs) && !(mine.is_atomic() && theirs.is_atomic());
                let (one, two) = (access.min(partner), access.max(partner));
                if !racy || two < from || !wanted(event(one), event(two)) {
                    continue;
                }
                let mut target = Target::new(w);
                target.next = vec![access, partner];
                target.stop[chain] = place;
                target.stop[other] = w.place[partner];
                target.cut.copy_from_slice(self.saturation.cut());
                for before in before.into_iter().chain(w.before(access).filter(|_| !self.reuse)) {
                    target.cut.join(w.past_of(before));
                }
                self.tiers.queries += 1;
                let settled = if self.share_a_lock(&target) {
                    self.tiers.filtered += 1;
                    Settled::Impossible
                } else if let Some(settled) = self.project(&target) {
                    settled
                } else if !self.reuse {
                    self.settle_anew(&target, effort)
                } else if self.saturation.grow(target.cut.row()).is_err() {
                    self.tiers.saturated += 1;
                    self.tiers.implied += (list.nodes.len() - at - 1) as u64;
                    break;
                } else {
                    let inner = self.saturation.mark();
                    self.settle_from(&inner, &target, effort)
                };
                match settled {
                    Settled::Order { .. } => answer(event(one), event(two), Some(true)),
                    Settled::Unknown(_) => answer(event(one), event(two), None),
                    Settled::Impossible => {}
                }
            }
            self.saturation.undo(&mark);
        }
    }
}
