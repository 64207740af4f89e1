//! Atomicity violations: a remote access between two accesses of one atomic block that it conflicts with (Farzan et al.).
//!
//! All pairs of a block, not only neighbours, and all five unserialisable patterns: WRW, RWR, RWW, WWR, WWW.

use crate::ask::Asker;
use crate::finding::Flags;
use crate::pane::Pane;
use portent_order::Goal;
use portent_trace::{EventId, Trace, VarId};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Asks about every triple that the window owns.
pub(crate) fn examine(pane: &Pane<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let (facts, trace) = (pane.facts, pane.facts.trace);
    let accesses = pane.accesses();
    let mut blocks: FxHashMap<(u32, VarId), Vec<EventId>> = FxHashMap::default();
    let mut seconds: Vec<(EventId, (u32, VarId))> = Vec::new();
    for event in pane.events() {
        let (Some(x), Some(block)) = (trace.op(event).variable(), facts.block(event)) else { continue };
        blocks.entry((block, x)).or_default().push(event);
        seconds.push((event, (block, x)));
    }
    for (second, key) in seconds {
        let mine = &blocks[&key];
        for &first in mine.iter().take_while(|&&e| e < second) {
            for &remote in &accesses[&key.1] {
                let stranger = trace.thread(remote) != trace.thread(second);
                let op = trace.op(remote);
                let conflicts = op.conflicts_with(trace.op(first)) && op.conflicts_with(trace.op(second));
                if !stranger || !conflicts || !pane.owns(second.max(remote)) {
                    continue;
                }
                if asker.stopped().is_some() {
                    return;
                }
                asker.ask(Goal::Atomicity { first, remote, second }, |_| Flags::default());
            }
        }
    }
}

/// The accesses of a triple as letters; an update counts as a write.
pub(crate) fn pattern(trace: &Trace, first: EventId, remote: EventId, second: EventId) -> &'static str {
    let writes = |e| trace.op(e).writes();
    match (writes(first), writes(remote), writes(second)) {
        (true, false, true) => "WRW",
        (false, true, false) => "RWR",
        (false, true, true) => "RWW",
        (true, true, false) => "WWR",
        // A read in the middle conflicts only with writes around it.
        _ => "WWW",
    }
}

#[derive(Default, Clone, Copy)]
struct Counts {
    all: u64,
    writes: u64,
}

impl Counts {
    fn add(&mut self, writes: bool) {
        self.all += 1;
        self.writes += u64::from(writes);
    }
}

/// How many candidate triples lie within a range of events.
pub(crate) fn count(pane: &Pane<'_, '_>, range: Range<usize>) -> u128 {
    let (facts, trace) = (pane.facts, pane.facts.trace);
    let mut everyone: FxHashMap<VarId, Counts> = FxHashMap::default();
    let mut by_thread: FxHashMap<(VarId, usize), Counts> = FxHashMap::default();
    let mut by_block: FxHashMap<(VarId, u32), (usize, Counts)> = FxHashMap::default();
    for event in range.map(EventId::new) {
        let op = trace.op(event);
        let Some(x) = op.variable() else { continue };
        let thread = trace.thread(event).index();
        everyone.entry(x).or_default().add(op.writes());
        by_thread.entry((x, thread)).or_default().add(op.writes());
        if let Some(block) = facts.block(event) {
            by_block.entry((x, block)).or_insert((thread, Counts::default())).1.add(op.writes());
        }
    }
    let pairs = |n: u64| u128::from(n) * u128::from(n.saturating_sub(1)) / 2;
    let mut triples = 0;
    for (&(x, _), &(thread, mine)) in &by_block {
        let (all, own) = (everyone[&x], by_thread[&(x, thread)]);
        let writes = all.writes - own.writes;
        let reads = (all.all - own.all) - writes;
        triples += pairs(mine.all) * u128::from(writes) + pairs(mine.writes) * u128::from(reads);
    }
    triples
}
