//! All questions "could this read see that write?" of a window at once.
//!
//! Nondeterminism asks them by the hundred thousand, so the closure is not built anew for each: it is swept along. For
//! the reads of one thread, in program order, what must have happened before the read only grows, and so does its
//! closure; for one read and the writes of another thread, likewise, and what was added for them is undone before the
//! next read. Two facts settle most questions without touching the closure: of the writes that have happened only the
//! last of each thread can be seen, and once a write is impossible because of what comes with it, all later ones of its
//! thread are.

use super::index::{IndexVec, Node, Source, Variable};
use super::target::Target;
use super::window::Accesses;
use super::{Effort, Engine, Settled};
use crate::goal::{Unknown, Writer};
use portent_trace::EventId;

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
        let from = w.node_from(from);
        // All writes of each variable, and those from `from` on.
        let count = |x: &Accesses, from: Node| -> u64 {
            x.writes.iter().map(|l| (l.nodes.len() - l.nodes.partition_point(|&n| n < from)) as u64).sum()
        };
        let counts = w.variables.iter().map(|x| (count(x, Node::FIRST), count(x, from)));
        let writes: IndexVec<Variable, (u64, u64)> = counts.collect();
        for chain in w.chains() {
            let clean = self.saturation.mark();
            for &read in w.chain[chain].iter() {
                let Some(x) = w.act[read].read() else { continue };
                let own = u64::from(w.act[read].written().is_some());
                let questions = match read >= from {
                    // The writes and the initial value, without the one it saw and without itself.
                    true => writes[x].0 - own,
                    // What it saw, and itself, lie before `from`, and so does the start of the window.
                    false => writes[x].1,
                };
                answered.questions += questions;
                if questions == 0 {
                    continue;
                }
                if stop() || effort.is_over() {
                    answered.unanswered += questions;
                    continue;
                }
                self.tiers.queries += questions;
                let before = self.tiers.settled();
                let earliest = if read >= from { Node::FIRST } else { from };
                self.answer_read((read, x, observed[read]), earliest, effort, answer);
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
        if self.saturation.grow(target.cut.row()).is_err() {
            debug_assert!(false, "the whole window was observed so");
            self.saturation.undo(&clean);
            return true;
        }
        let mut finished = true;
        'all: for x in w.variables.ids() {
            let last: Vec<Node> = w.last_writes(x, &target.cut).collect();
            let questions: u64 = w.variables[x].writes.iter().map(|l| l.nodes.len() as u64).sum();
            let before = self.tiers.settled();
            let Some(&observed) = last.iter().max() else { continue };
            for &writer in last.iter().filter(|&&c| c != observed && !w.ends_the_same(observed, c)) {
                if stop() || effort.is_over() {
                    finished = false;
                    break 'all;
                }
                if last.iter().any(|&d| self.saturation.is_before(writer, d)) {
                    continue;
                }
                let mark = self.saturation.mark();
                target.last = Some((x, Source::Write(writer)));
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

    /// What each read saw.
    fn observed_writers(&self) -> IndexVec<Node, Option<Source>> {
        let w = self.window;
        let mut last: IndexVec<Variable, Source> = IndexVec::repeat(Source::Base, w.variables.len());
        let saw = w.act.entries().map(|(node, act)| {
            let source = act.read().map(|x| last[x]);
            if let Some(x) = act.written() {
                last[x] = Source::Write(node);
            }
            source
        });
        saw.collect()
    }

    /// The questions of one read, its variable and what it saw, about writes from `earliest` on. The saturation holds the
    /// pasts of earlier reads of the chain, and will hold this one's.
    fn answer_read(
        &mut self,
        (read, x, observed): (Node, Variable, Option<Source>),
        earliest: Node,
        effort: Effort,
        answer: &mut dyn FnMut(EventId, Writer, Option<bool>),
    ) {
        let w = self.window;
        let (own_chain, own_place) = (w.chain_of[read], w.place[read]);
        if let Some(before) = w.before(read)
            && self.saturation.grow(w.past_of(before)).is_err()
        {
            debug_assert!(false, "what has happened before a read was observed so");
            return;
        }
        let mut tell = |source: Source, settled: Settled| {
            let event = |node: Node| w.event(node);
            let writer = match source {
                Source::Base => w.base_writer(x),
                Source::Write(write) => Writer::Event(event(write)),
            };
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
        let seen_now: Vec<Source> = if happened.is_empty() {
            vec![Source::Base]
        } else {
            let last = |c: &Node| happened.iter().all(|&d| !self.saturation.is_before(*c, d));
            happened.iter().copied().filter(last).map(Source::Write).collect()
        };
        // What has happened came before the read in the trace, too.
        let is_asked = |c: Source| Some(c) != observed && earliest == Node::FIRST && !w.is_no_change(read, c);
        for source in seen_now.into_iter().filter(|&c| is_asked(c)) {
            let mark = self.saturation.mark();
            target.cut.copy_from_slice(self.saturation.cut());
            target.last = Some((x, source));
            let settled = self.project(&target).unwrap_or_else(|| self.settle_from(&mark, &target, effort));
            tell(source, settled);
        }
        // What has not happened comes with all of its own past.
        for list in w.variables[x].writes.iter().filter(|list| list.chain != own_chain) {
            let mark = self.saturation.mark();
            let first = list.nodes.partition_point(|&c| w.place[c] < self.saturation.cut()[list.chain]);
            for &writer in &list.nodes[first..] {
                if w.past_of(writer)[own_chain] > own_place {
                    break;
                }
                let source = Source::Write(writer);
                if Some(source) == observed || writer < earliest || w.is_no_change(read, source) {
                    continue;
                }
                // Everything up to the writer before it is below the cut, or part of this one's past.
                target.cut.copy_from_slice(self.saturation.cut());
                target.cut.join(w.past_of(writer));
                target.last = Some((x, source));
                // A read may have as many questions as there are writes, and each may take as long as the trace is.
                if effort.is_over() {
                    tell(source, Settled::Unknown(Unknown::Deadline));
                    continue;
                }
                let settled = match self.project(&target) {
                    Some(settled) => settled,
                    None if self.saturation.grow(target.cut.row()).is_err() => break,
                    None => {
                        let inner = self.saturation.mark();
                        self.settle_from(&inner, &target, effort)
                    }
                };
                tell(source, settled);
            }
            self.saturation.undo(&mark);
        }
    }
}
