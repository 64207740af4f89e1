//! All atomicity violations of a window at once: the sweep of [`super::reads`], for a block's later access and remote ones.
//!
//! For the later accesses of one thread's blocks, in program order, what must have happened before them only grows; for
//! one of them and the remote accesses of another thread, likewise. The earlier accesses of the block differ only in one
//! edge, so the closure is shared by all of them.

use super::index::{Node, Variable};
use super::target::Target;
use super::window::Act;
use super::{Effort, Engine, Settled};
use crate::goal::{Goal, Verdict};
use portent_trace::EventId;

/// Three accesses: a block's earlier one, the remote one, the block's later one.
pub type Triple = (EventId, EventId, EventId);

impl Engine<'_, '_> {
    /// Answers, for every remote access that conflicts with two accesses of one block, whether it can come between them.
    /// `block` tells the block of an event. Calls back with `Some(true)` for yes and `None` for "not decided in the budget";
    /// all others are infeasible.
    ///
    /// Only triples whose last event in the trace is `from` or after it count, and of these only those that are `wanted`.
    /// Between accesses it asks `stop` whether to go on; the result says whether it came to the end.
    pub fn answer_atomicity(
        &mut self,
        from: EventId,
        block: &dyn Fn(EventId) -> Option<u32>,
        effort: Effort,
        stop: &dyn Fn() -> bool,
        wanted: &mut dyn FnMut(Triple) -> bool,
        answer: &mut dyn FnMut(Triple, Option<bool>),
    ) -> bool {
        let w = self.window;
        let from = w.node_from(from);
        let event = |node: Node| w.event(node);
        for chain in w.chains() {
            let clean = self.saturation.mark();
            for &second in w.chain[chain].iter() {
                let (Act::Read(x) | Act::Write(x) | Act::Update(x)) = w.act[second] else { continue };
                let Some(mine) = block(event(second)) else { continue };
                let lists = &w.variables[x].all;
                let Some(own) = lists.iter().find(|list| list.chain == chain) else { continue };
                if lists.len() == 1 {
                    continue;
                }
                let earlier = &own.nodes[..own.nodes.partition_point(|&n| n < second)];
                let start = earlier.iter().rposition(|&n| block(event(n)) != Some(mine)).map_or(0, |at| at + 1);
                let firsts = &earlier[start..];
                if firsts.is_empty() {
                    continue;
                }
                if stop() || effort.is_over() {
                    self.saturation.undo(&clean);
                    return false;
                }
                self.violations_of(second, firsts, x, from, effort, wanted, answer);
            }
            self.saturation.undo(&clean);
        }
        true
    }

    #[allow(clippy::too_many_arguments)] // One question and its two callbacks.
    fn violations_of(
        &mut self,
        second: Node,
        firsts: &[Node],
        x: Variable,
        from: Node,
        effort: Effort,
        wanted: &mut dyn FnMut(Triple) -> bool,
        answer: &mut dyn FnMut(Triple, Option<bool>),
    ) {
        let w = self.window;
        let event = |node: Node| w.event(node);
        let op = |node: Node| w.trace.op(event(node));
        let (chain, place) = (w.chain_of[second], w.place[second]);
        if let Some(before) = w.before(second)
            && self.saturation.grow(w.past_of(before)).is_err()
        {
            debug_assert!(false, "what has happened before an access was observed so");
            return;
        }
        for list in w.variables[x].all.iter().filter(|list| list.chain != chain) {
            let mark = self.saturation.mark();
            // What must come before the first of the earlier accesses comes between none of them and the later one, unless
            // it is an update: what it read may be the reason, and it may read something else.
            let start = list.nodes.partition_point(|&f| self.saturation.is_before(f, firsts[0]));
            // Whether the set can still grow by the next remote access; once not, only its free variant is left.
            let mut growing = true;
            for (at, &remote) in list.nodes.iter().enumerate() {
                if at < start && !matches!(w.act[remote], Act::Update(_)) {
                    continue;
                }
                let before = w.before(remote);
                if before.is_some_and(|before| w.past_of(before)[chain] > place) {
                    break;
                }
                if !op(remote).conflicts_with(op(second)) {
                    continue;
                }
                let chosen = |&first: &Node, wanted: &mut dyn FnMut(Triple) -> bool| {
                    op(remote).conflicts_with(op(first))
                        && second.max(remote) >= from
                        && wanted((event(first), event(remote), event(second)))
                };
                let chosen: Vec<Node> = firsts.iter().filter(|first| chosen(first, wanted)).copied().collect();
                if chosen.is_empty() {
                    continue;
                }
                let kept = at >= start && w.past_of(remote)[chain] <= place;
                growing = growing && (!kept || self.saturation.grow(w.past_of(remote)).is_ok());
                for &first in &chosen {
                    self.tiers.queries += 1;
                    let mut settled = Settled::Impossible;
                    if kept && growing {
                        let mut target = Target::new(w);
                        target.stop[chain] = place;
                        target.cut.copy_from_slice(self.saturation.cut());
                        target.edges = vec![(first, remote)];
                        target.next = vec![second];
                        settled = match self.project(&target) {
                            Some(settled) => settled,
                            None if self.saturation.is_before(remote, first) => {
                                self.tiers.filtered += 1;
                                Settled::Impossible
                            }
                            None => {
                                let inner = self.saturation.mark();
                                self.settle_from(&inner, &target, effort)
                            }
                        };
                    } else {
                        self.tiers.filtered += 1;
                    }
                    let triple = (event(first), event(remote), event(second));
                    match settled {
                        Settled::Order { .. } => answer(triple, Some(true)),
                        Settled::Unknown(_) => answer(triple, None),
                        Settled::Impossible => self.try_free(triple, (remote, second), effort, answer),
                    }
                }
            }
            self.saturation.undo(&mark);
        }
    }

    /// In `reads`, a remote access that reads may see another write, and is then the last of its thread.
    fn try_free(
        &mut self,
        triple: Triple,
        (remote, second): (Node, Node),
        effort: Effort,
        answer: &mut dyn FnMut(Triple, Option<bool>),
    ) {
        let w = self.window;
        let (first_event, remote_event, second_event) = triple;
        match w.act[remote] {
            Act::Read(_) if w.rule.frees_reads() => {
                let mut target = Target::new(w);
                for node in [remote, second] {
                    if let Some(before) = w.before(node) {
                        target.cut.join(w.past_of(before));
                    }
                    target.stop[w.chain_of[node]] = w.place[node];
                }
                match self.settle_alone(&target, effort) {
                    Settled::Order { .. } => answer(triple, Some(true)),
                    Settled::Unknown(_) => answer(triple, None),
                    Settled::Impossible => {}
                }
            }
            Act::Update(_) if w.rule.frees_reads() => {
                let goal = Goal::Atomicity { first: first_event, remote: remote_event, second: second_event };
                let mut apart = Engine::on(w);
                match apart.decide(&goal, effort) {
                    Verdict::Feasible(_) => answer(triple, Some(true)),
                    Verdict::Unknown(_) => answer(triple, None),
                    Verdict::Infeasible => {}
                }
            }
            _ => {}
        }
    }

    /// Settles a target that does not contain what the sweep holds: filters here, the rest from the beginning.
    fn settle_alone(&mut self, target: &Target, effort: Effort) -> Settled {
        if target.is_contradictory() || self.share_a_lock(target) {
            return Settled::Impossible;
        }
        if let Some(settled) = self.project(target) {
            return settled;
        }
        Engine::on(self.window).settle(target, effort)
    }
}
