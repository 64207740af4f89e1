//! Atomicity violations: a remote access between two accesses of one atomic block that it conflicts with (Farzan et al.).
//!
//! All pairs of a block, not only neighbours, and all five unserialisable patterns. To add one, add it to [`Pattern`].

use crate::asking::{Asker, Flags, Gathered, Key, Window};
use crate::bug::{BugKind, Form, Place, Role, Severity, Words};
use crate::facts::Facts;
use portent_order::Goal;
use portent_order::engine::Triple;
use portent_trace::{EventId, Trace, VarId};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ops::Range;

pub(super) const WORDS: Words = Words {
    title: "atomicity violation",
    rule: "atomicity",
    identifier: "AtomicityViolation",
    meaning: "An access of another thread can come between two accesses that belong together, in a way that \
              no serial order explains.",
    severity: Severity::Warning,
};

/// What the accesses of an atomicity violation do, in the order of the witness; an update counts as a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Pattern {
    WriteReadWrite,
    ReadWriteRead,
    ReadWriteWrite,
    WriteWriteRead,
    WriteWriteWrite,
}

impl Pattern {
    /// The pattern of three accesses.
    pub(super) fn of(trace: &Trace, first: EventId, remote: EventId, second: EventId) -> Pattern {
        let writes = |event| trace.op(event).writes();
        match (writes(first), writes(remote), writes(second)) {
            (true, false, true) => Pattern::WriteReadWrite,
            (false, true, false) => Pattern::ReadWriteRead,
            (false, true, true) => Pattern::ReadWriteWrite,
            (true, true, false) => Pattern::WriteWriteRead,
            // A read in the middle conflicts only with writes around it.
            _ => Pattern::WriteWriteWrite,
        }
    }
    /// The accesses as letters.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::WriteReadWrite => "WRW",
            Pattern::ReadWriteRead => "RWR",
            Pattern::ReadWriteWrite => "RWW",
            Pattern::WriteWriteRead => "WWR",
            Pattern::WriteWriteWrite => "WWW",
        }
    }
    /// What comes of it, in a sentence: `owner` has the block, `other` comes in between, `object` is what they access.
    pub fn consequence(self, owner: &str, other: &str, object: &str) -> String {
        match self {
            Pattern::ReadWriteRead => format!("The two reads of one block then see different values of {object}."),
            Pattern::ReadWriteWrite => format!(
                "{owner} then overwrites what {other} wrote, by a value that knows nothing of it: an update is lost."
            ),
            Pattern::WriteReadWrite => format!("{other} then reads a value that {owner} had not finished with."),
            Pattern::WriteWriteRead => {
                format!("{owner} then reads back what {other} wrote, not what it wrote itself.")
            }
            Pattern::WriteWriteWrite => format!("What {other} wrote then disappears in the middle of {owner}'s block."),
        }
    }
}

/// The source locations of the three.
pub(super) fn key(trace: &Trace, first: EventId, remote: EventId, second: EventId) -> Key {
    Key::new(Form::Atomicity, [first, remote, second].map(|event| Key::at(trace, event)))
}

/// Finds the violations that the window owns, in one sweep of the engine.
pub(super) fn examine(window: &Window<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let (facts, trace, stop, open) = (window.facts, window.facts.trace, asker.stop, asker.open);
    let found = RefCell::new(Gathered::default());
    let mut undecided = Vec::new();
    let mut spared = 0;
    let before = asker.engine.tiers().queries;
    let goal = |(first, remote, second): Triple| Goal::Atomicity { first, remote, second };
    let key = |(first, remote, second): Triple| key(trace, first, remote, second);
    let finished = asker.engine.answer_atomicity(
        EventId::new(window.fresh),
        &|event| facts.block(event),
        asker.effort,
        &|| stop.why().is_some(),
        &mut |triple| {
            if !open.wants(|| key(triple)) {
                return false;
            }
            let enough = found.borrow_mut().has_enough(&key(triple));
            spared += u64::from(enough);
            !enough
        },
        &mut |triple, feasible| match feasible {
            Some(true) => found.borrow_mut().add(key(triple), goal(triple), Flags::default()),
            _ => undecided.push(goal(triple)),
        },
    );
    let examined = asker.engine.tiers().queries - before;
    let owned = count(facts, window.span.clone()) - count(facts, window.stale());
    let done = if finished { owned } else { u128::from(examined + spared) };
    asker.swept(BugKind::Atomicity, done, examined + spared);
    asker.answers.spared += spared;
    undecided.into_iter().for_each(|goal| asker.undecided(goal));
    asker.keep(found.into_inner());
}

/// The three accesses.
pub(super) fn places(trace: &Trace, first: EventId, remote: EventId, second: EventId) -> [Place; 3] {
    let place = |role, event| Place::of_event(trace, role, event);
    [place(Role::First, first), place(Role::Remote, remote), place(Role::Second, second)]
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
pub(super) fn count(facts: &Facts<'_>, range: Range<usize>) -> u128 {
    let trace = facts.trace;
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
