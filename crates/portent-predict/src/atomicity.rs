//! Atomicity violations: a remote access between two accesses of one atomic block that it conflicts with (Farzan et al.).
//!
//! All pairs of a block, not only neighbours, and all five unserialisable patterns: WRW, RWR, RWW, WWR, WWW.

use crate::ask::{Asker, Gathered};
use crate::bug::{Bug, BugKind, Pattern, Place, Role};
use crate::finding::Flags;
use crate::pane::Pane;
use portent_order::Goal;
use portent_order::engine::Triple;
use portent_trace::{EventId, Trace, VarId};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ops::Range;

/// Finds the violations that the window owns, in one sweep of the engine.
pub(crate) fn examine(pane: &Pane<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let (facts, stop, open) = (pane.facts, asker.stop, asker.open);
    let found = RefCell::new(Gathered::default());
    let mut undecided = Vec::new();
    let mut spared = 0;
    let before = asker.engine.tiers().queries;
    let goal = |(first, remote, second): Triple| Goal::Atomicity { first, remote, second };
    let finished = asker.engine.answer_atomicity(
        EventId::new(pane.fresh),
        &|event| facts.block(event),
        asker.effort,
        &|| stop.why().is_some(),
        &mut |triple| {
            if !open.wants(facts, &goal(triple)) {
                return false;
            }
            let enough = found.borrow_mut().has_enough(facts, &goal(triple));
            spared += u64::from(enough);
            !enough
        },
        &mut |triple, feasible| match feasible {
            Some(true) => found.borrow_mut().add(facts, goal(triple), Flags::default()),
            _ => undecided.push(goal(triple)),
        },
    );
    let examined = asker.engine.tiers().queries - before;
    let owned = count(pane, pane.span.clone()) - count(pane, pane.stale());
    let done = if finished { owned } else { u128::from(examined + spared) };
    asker.swept(BugKind::Atomicity, done, examined + spared);
    asker.outcome.spared += spared;
    undecided.iter().for_each(|goal| asker.undecided(goal));
    asker.keep(found.into_inner());
}

/// The three accesses.
pub(crate) fn places(trace: &Trace, first: EventId, remote: EventId, second: EventId) -> [Place; 3] {
    let place = |role, event| Place::of_event(trace, role, event);
    [place(Role::First, first), place(Role::Remote, remote), place(Role::Second, second)]
}

/// A violation by three accesses.
pub(crate) fn bug(trace: &Trace, first: EventId, remote: EventId, second: EventId) -> Bug {
    let writes = |event| trace.op(event).writes();
    let pattern = Pattern::of(writes(first), writes(remote), writes(second));
    let [first, remote, second] = places(trace, first, remote, second);
    Bug::Atomicity { first, remote, second, pattern }
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
