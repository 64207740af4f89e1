//! All questions "could this read see that write?" of a window at once.
//!
//! Nondeterminism asks them by the hundred thousand, so the closure is not built anew for each: it is swept along. For
//! the reads of one thread, in program order, what must have happened before the read only grows, and so does its
//! closure; for one read and the writes of another thread, likewise, and what was added for them is undone before the
//! next read. Two facts settle most questions without touching the closure: of the writes that have happened only the
//! last of each thread can be seen, and once a write is impossible because of what comes with it, all later ones of its
//! thread are.

use super::target::Target;
use super::window::{BASE, NONE, Node};
use super::{Effort, Engine, Settled};
use crate::goal::Writer;
use portent_trace::EventId;
use std::time::Instant;

/// How many questions a window posed, and how many were left when the time was up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Pairs of a read and another write of its variable, or the initial value.
    pub questions: u64,
    /// Those not looked at because the deadline passed.
    pub unanswered: u64,
}

impl Engine<'_, '_> {
    /// Answers, for every read of the window and every other write of its variable (and what it held before the window),
    /// whether the read could see it. Calls back with `Some(true)` for yes and `None` for "not decided in the budget"; all
    /// others are infeasible.
    pub fn answer_reads(
        &mut self,
        effort: Effort,
        answer: &mut dyn FnMut(EventId, Writer, Option<bool>),
    ) -> Answered {
        let w = self.window;
        let mut answered = Answered::default();
        let observed = self.observed_writers();
        let writes: Vec<u64> = w.variables.iter().map(|x| x.writes.iter().map(|l| l.nodes.len() as u64).sum()).collect();
        for chain in 0..w.chains {
            let clean = self.saturation.mark();
            for &read in &w.chain[chain] {
                let Some(x) = w.act[read as usize].read() else { continue };
                let own = u64::from(w.act[read as usize].written().is_some());
                // The writes and the initial value, without the one it saw and without itself.
                let questions = writes[x as usize] - own;
                answered.questions += questions;
                if questions == 0 {
                    continue;
                }
                if effort.deadline.is_some_and(|end| Instant::now() > end) {
                    answered.unanswered += questions;
                    continue;
                }
                self.tiers.queries += questions;
                let before = self.tiers.settled();
                self.answer_read(read, x, observed[read as usize], effort, answer);
                self.tiers.filtered += questions - (self.tiers.settled() - before);
            }
            self.saturation.undo(&clean);
        }
        answered
    }

    /// The write that each node's variable held before it, a node or [`BASE`].
    fn observed_writers(&self) -> Vec<u32> {
        let w = self.window;
        let mut last = vec![BASE; w.variables.len()];
        (0..w.len())
            .map(|node| {
                let act = w.act[node];
                let writer = act.read().map_or(NONE, |x| last[x as usize]);
                if let Some(x) = act.written() {
                    last[x as usize] = node as u32;
                }
                writer
            })
            .collect()
    }

    /// The questions of one read. The saturation holds the pasts of earlier reads of the chain, and will hold this one's.
    fn answer_read(
        &mut self,
        read: Node,
        x: u32,
        observed: u32,
        effort: Effort,
        answer: &mut dyn FnMut(EventId, Writer, Option<bool>),
    ) {
        let w = self.window;
        let (own_chain, own_place) = (w.chain_of[read as usize] as usize, w.place[read as usize]);
        if let Some(before) = w.before(read)
            && self.saturation.grow(w.past_of(before)).is_err()
        {
            debug_assert!(false, "what has happened before a read was observed so");
            return;
        }
        let mut tell = |writer: u32, settled: Settled| {
            let event = |node: Node| EventId::new(w.first + node as usize);
            let writer = if writer == BASE { w.base_writer(x) } else { Writer::Event(event(writer)) };
            match settled {
                Settled::Order { .. } => answer(event(read), writer, Some(true)),
                Settled::OutOfBudget => answer(event(read), writer, None),
                Settled::Impossible => {}
            }
        };
        let mut target = Target::new(w);
        target.stop[own_chain] = own_place;
        target.tail = vec![read];
        let happened: Vec<Node> = w.last_writes(x, self.saturation.cut()).collect();
        // Of what has happened, only the last write of each chain can be seen, and only if no other must come after it.
        let seen_now: Vec<u32> = if happened.is_empty() {
            vec![BASE]
        } else {
            let last = |c: &Node| happened.iter().all(|&d| !self.saturation.is_before(*c, d));
            happened.iter().copied().filter(last).collect()
        };
        for writer in seen_now.into_iter().filter(|&c| c != observed) {
            let mark = self.saturation.mark();
            target.cut.copy_from_slice(self.saturation.cut());
            target.last = Some((x, writer));
            let settled = self.settle_from(&mark, &target, effort);
            tell(writer, settled);
        }
        // What has not happened comes with all of its own past.
        for list in w.variables[x as usize].writes.iter().filter(|list| list.chain as usize != own_chain) {
            let mark = self.saturation.mark();
            let first = list.nodes.partition_point(|&c| w.place[c as usize] < self.saturation.cut()[list.chain as usize]);
            for &writer in &list.nodes[first..] {
                if w.past_of(writer)[own_chain] > own_place || self.saturation.grow(w.past_of(writer)).is_err() {
                    break;
                }
                if writer == observed {
                    continue;
                }
                let inner = self.saturation.mark();
                target.cut.copy_from_slice(self.saturation.cut());
                target.last = Some((x, writer));
                let settled = self.settle_from(&inner, &target, effort);
                tell(writer, settled);
            }
            self.saturation.undo(&mark);
        }
    }
}
