//! All questions "could this read see that write?" of a window at once.
//!
//! Nondeterminism asks them by the hundred thousand, so the closure is not built anew for each: it is swept along. For
//! the reads of one thread, in program order, what must have happened before the read only grows, and so does its
//! closure; for one read and the writes of another thread, likewise, and what was added for them is undone before the
//! next read. Two facts settle most questions without touching the closure: of the writes that have happened only the
//! last of each thread can be seen, and once a write is impossible because of what comes with it, all later ones of its
//! thread are.

use super::target::Target;
use super::window::{BASE, NONE, Node, Variable, join};
use super::{Effort, Engine, Settled};
use crate::goal::Writer;
use portent_trace::EventId;
use std::time::Instant;

/// How many questions a window posed, and how many were left when the time was up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Pairs of a read and another write of its variable, or the initial value.
    pub questions: u64,
    /// Those not looked at because it was told to stop, or the deadline passed.
    pub unanswered: u64,
}

impl Engine<'_, '_> {
    /// Answers, for every read of the window and every other write of its variable (and what it held before the window),
    /// whether the read could see it. Calls back with `Some(true)` for yes and `None` for "not decided in the budget"; all
    /// others are infeasible.
    ///
    /// Only pairs whose later event is `from` or after it count: of overlapping windows, one is to answer. Between reads it
    /// asks `stop` whether to go on.
    pub fn answer_reads(
        &mut self,
        from: EventId,
        effort: Effort,
        stop: &dyn Fn() -> bool,
        answer: &mut dyn FnMut(EventId, Writer, Option<bool>),
    ) -> Answered {
        let w = self.window;
        let mut answered = Answered::default();
        let observed = self.observed_writers();
        let from = from.index().saturating_sub(w.first) as u32;
        // All writes of each variable, and those from `from` on.
        let count = |x: &Variable, from: Node| -> u64 {
            x.writes.iter().map(|l| (l.nodes.len() - l.nodes.partition_point(|&n| n < from)) as u64).sum()
        };
        let writes: Vec<[u64; 2]> = w.variables.iter().map(|x| [count(x, 0), count(x, from)]).collect();
        for chain in 0..w.chains {
            let clean = self.saturation.mark();
            for &read in &w.chain[chain] {
                let Some(x) = w.act[read as usize].read() else { continue };
                let own = u64::from(w.act[read as usize].written().is_some());
                let questions = match read >= from {
                    // The writes and the initial value, without the one it saw and without itself.
                    true => writes[x as usize][0] - own,
                    // What it saw, and itself, lie before `from`, and so does the start of the window.
                    false => writes[x as usize][1],
                };
                answered.questions += questions;
                if questions == 0 {
                    continue;
                }
                if stop() || effort.deadline.is_some_and(|end| Instant::now() > end) {
                    answered.unanswered += questions;
                    continue;
                }
                self.tiers.queries += questions;
                let before = self.tiers.settled();
                let earliest = if read >= from { 0 } else { from };
                self.answer_read((read, x, observed[read as usize]), earliest, effort, answer);
                self.tiers.filtered += questions - (self.tiers.settled() - before);
            }
            self.saturation.undo(&clean);
        }
        answered
    }

    /// Answers, for every write of the window but the last of its variable, whether it could be the last after all events of
    /// the trace; for a window that reaches the end of the trace. Calls back as [`Engine::answer_reads`] does, and says
    /// whether it came to the end.
    pub fn answer_finals(
        &mut self,
        effort: Effort,
        stop: &dyn Fn() -> bool,
        answer: &mut dyn FnMut(EventId, Option<bool>),
    ) -> bool {
        let w = self.window;
        if !w.reaches_the_end() {
            return false;
        }
        let clean = self.saturation.mark();
        let mut target = Target::new(w);
        target.cut = target.stop.clone();
        // Everything happens, so the closure of everything is shared; if it has no order, nothing has.
        if self.saturation.grow(&target.cut).is_err() {
            debug_assert!(false, "the whole window was observed so");
            self.saturation.undo(&clean);
            return true;
        }
        let mut finished = true;
        'all: for x in 0..w.variables.len() as u32 {
            let last: Vec<Node> = w.last_writes(x, &target.cut).collect();
            let questions: u64 = w.variables[x as usize].writes.iter().map(|l| l.nodes.len() as u64).sum();
            let before = self.tiers.settled();
            let Some(&observed) = last.iter().max() else { continue };
            for &writer in last.iter().filter(|&&c| c != observed && !w.ends_the_same(observed, c)) {
                if stop() || effort.deadline.is_some_and(|end| Instant::now() > end) {
                    finished = false;
                    break 'all;
                }
                if last.iter().any(|&d| self.saturation.is_before(writer, d)) {
                    continue;
                }
                let mark = self.saturation.mark();
                target.last = Some((x, writer));
                let event = w.event(writer);
                match self.settle_from(&mark, &target, effort) {
                    Settled::Order { .. } => answer(event, Some(true)),
                    Settled::Unknown(_) => answer(event, None),
                    Settled::Impossible => {}
                }
            }
            self.tiers.queries += questions - 1;
            self.tiers.filtered += (questions - 1) - (self.tiers.settled() - before);
        }
        self.saturation.undo(&clean);
        finished
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

    /// The questions of one read, its variable and what it saw, about writes from `earliest` on. The saturation holds the
    /// pasts of earlier reads of the chain, and will hold this one's.
    fn answer_read(
        &mut self,
        (read, x, observed): (Node, u32, u32),
        earliest: Node,
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
            let event = |node: Node| w.event(node);
            let writer = if writer == BASE { w.base_writer(x) } else { Writer::Event(event(writer)) };
            match settled {
                Settled::Order { .. } => answer(event(read), writer, Some(true)),
                Settled::Unknown(_) => answer(event(read), writer, None),
                Settled::Impossible => {}
            }
        };
        let mut target = Target::new(w);
        target.stop[own_chain] = own_place;
        target.tail = vec![read];
        target.next = vec![read];
        let happened: Vec<Node> = w.last_writes(x, self.saturation.cut()).collect();
        // Of what has happened, only the last write of each chain can be seen, and only if no other must come after it.
        let seen_now: Vec<u32> = if happened.is_empty() {
            vec![BASE]
        } else {
            let last = |c: &Node| happened.iter().all(|&d| !self.saturation.is_before(*c, d));
            happened.iter().copied().filter(last).collect()
        };
        // What has happened came before the read in the trace, too.
        for writer in seen_now.into_iter().filter(|&c| c != observed && earliest == 0 && !w.is_no_change(read, c)) {
            let mark = self.saturation.mark();
            target.cut.copy_from_slice(self.saturation.cut());
            target.last = Some((x, writer));
            let settled = self.project(&target).unwrap_or_else(|| self.settle_from(&mark, &target, effort));
            tell(writer, settled);
        }
        // What has not happened comes with all of its own past.
        for list in w.variables[x as usize].writes.iter().filter(|list| list.chain as usize != own_chain) {
            let mark = self.saturation.mark();
            let first =
                list.nodes.partition_point(|&c| w.place[c as usize] < self.saturation.cut()[list.chain as usize]);
            for &writer in &list.nodes[first..] {
                if w.past_of(writer)[own_chain] > own_place {
                    break;
                }
                if writer == observed || writer < earliest || w.is_no_change(read, writer) {
                    continue;
                }
                // Everything up to the writer before it is below the cut, or part of this one's past.
                target.cut.copy_from_slice(self.saturation.cut());
                join(&mut target.cut, w.past_of(writer));
                target.last = Some((x, writer));
                let settled = match self.project(&target) {
                    Some(settled) => settled,
                    None if self.saturation.grow(&target.cut).is_err() => break,
                    None => {
                        let inner = self.saturation.mark();
                        self.settle_from(&inner, &target, effort)
                    }
                };
                tell(writer, settled);
            }
            self.saturation.undo(&mark);
        }
    }
}
