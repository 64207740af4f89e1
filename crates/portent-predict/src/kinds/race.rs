//! Races: conflicting accesses of different threads, not both atomic, that can be next at the same time.

use crate::asking::{Asker, Flags, Gathered, Key, Window};
use crate::bug::{BugKind, Form, Place, Role, Severity, Words};
use crate::facts::Facts;
use portent_order::Goal;
use portent_trace::{Ending, EventId, Op, Trace, VarId};
use rustc_hash::FxHashMap;
use std::ops::Range;

pub(super) const WORDS: Words = Words {
    title: "data race",
    rule: "race",
    identifier: "DataRace",
    meaning: "Two threads can access the same memory at the same time, and at least one of them writes, \
              without a common lock or atomic operation that orders them. In C and C++ this is undefined \
              behaviour.",
    severity: Severity::Error,
};

pub(super) const USE_AFTER_FREE: Words = Words {
    title: "possible use after free",
    rule: "race-with-free",
    identifier: "PossibleUseAfterFree",
    meaning: "A thread can free memory while another one uses it, or before: nothing orders the two.",
    severity: Severity::Error,
};
pub(super) const DOUBLE_FREE: Words = Words {
    title: "possible double free",
    rule: "race-of-frees",
    identifier: "PossibleDoubleFree",
    meaning: "Two threads can free the same memory: nothing orders them, and nothing keeps either from doing it.",
    severity: Severity::Error,
};

pub(super) const DESTROYED_IN_USE: Words = Words {
    title: "possible use after destruction",
    rule: "race-with-destruction",
    identifier: "PossiblyDestroyedInUse",
    meaning: "A thread can destroy a lock, a condition or the like, or close a descriptor, while another one uses it, or \
              before: nothing orders the two.",
    severity: Severity::Error,
};

/// Which side of a race frees the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frees {
    /// The access that was observed first.
    First,
    /// The other.
    Second,
    /// Both.
    Both,
    /// One of them destroys an object.
    Destroys,
}

/// Which of two accesses frees the memory, if one does.
pub(crate) fn frees(trace: &Trace, first: EventId, second: EventId) -> Option<Frees> {
    match (trace.ends(first), trace.ends(second)) {
        (None, None) => None,
        (Some(Ending::Object), _) | (_, Some(Ending::Object)) => Some(Frees::Destroys),
        (Some(Ending::Memory), None) => Some(Frees::First),
        (None, Some(Ending::Memory)) => Some(Frees::Second),
        (Some(Ending::Memory), Some(Ending::Memory)) => Some(Frees::Both),
    }
}

/// The source locations, whichever comes first.
pub(crate) fn key(trace: &Trace, first: EventId, second: EventId) -> Key {
    let (a, b) = (Key::at(trace, first), Key::at(trace, second));
    Key::new(Form::Race, [a.min(b), a.max(b), Key::NOTHING])
}

/// Finds all races that the window owns, in one sweep of the engine.
pub(super) fn examine(window: &Window<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let (trace, stop, open) = (window.facts.trace, asker.stop, asker.open);
    let mut found = Gathered::default();
    let mut undecided = Vec::new();
    let before = asker.engine.tiers().queries;
    let finished = asker.engine.answer_races(
        EventId::new(window.fresh),
        asker.effort,
        &|| stop.why().is_some(),
        &mut |first, second| open.wants(|| key(trace, first, second)),
        &mut |first, second, feasible| {
            let goal = Goal::Race { first, second };
            if feasible == Some(true) {
                let beyond_hb = window.ordered.is_some_and(|ordered| ordered(first, second));
                found.add(key(trace, first, second), goal, Flags { beyond_hb, ..Flags::default() });
            } else {
                undecided.push(goal);
            }
        },
    );
    let examined = asker.engine.tiers().queries - before;
    let owned = count(window.facts, window.span.clone()) - count(window.facts, window.stale());
    asker.swept(BugKind::Race, if finished { owned } else { examined.into() }, examined);
    undecided.into_iter().for_each(|goal| asker.undecided(goal));
    asker.keep(found);
}

/// The two accesses.
pub(crate) fn places(trace: &Trace, first: EventId, second: EventId) -> [Place; 2] {
    [Place::of_event(trace, Role::First, first), Place::of_event(trace, Role::Second, second)]
}

/// Accesses of one variable: plain reads, plain writes, atomic reads, atomic writes.
#[derive(Clone, Copy, Default)]
struct Classes([u64; 4]);

impl Classes {
    fn add(&mut self, op: Op) {
        self.0[2 * usize::from(op.is_atomic()) + usize::from(op.writes())] += 1;
    }
    /// Pairs that conflict and are not both atomic.
    fn pairs(&self) -> u128 {
        let [plain_reads, plain_writes, atomic_reads, atomic_writes] = self.0.map(u128::from);
        plain_writes * plain_writes.saturating_sub(1) / 2
            + plain_writes * (plain_reads + atomic_reads + atomic_writes)
            + plain_reads * atomic_writes
    }
}

/// How many candidate pairs lie within a range of events.
pub(super) fn count(facts: &Facts<'_>, range: Range<usize>) -> u128 {
    let trace = facts.trace;
    let mut all: FxHashMap<VarId, Classes> = FxHashMap::default();
    let mut by_thread: FxHashMap<(VarId, usize), Classes> = FxHashMap::default();
    for event in range.map(EventId::new) {
        let op = trace.op(event);
        if let Some(x) = op.variable() {
            all.entry(x).or_default().add(op);
            by_thread.entry((x, trace.thread(event).index())).or_default().add(op);
        }
    }
    let within_threads: u128 = by_thread.values().map(Classes::pairs).sum();
    all.values().map(Classes::pairs).sum::<u128>() - within_threads
}
