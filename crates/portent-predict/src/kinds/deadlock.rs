//! Deadlocks: cycles of threads that each hold what another wants, of any length, and lost wake-ups; what is left has a pass of its own
//! ([`crate::stuck`]).
//!
//! Acquires are classed by (thread, a lock held, the lock wanted). Cycles of classes are few and are enumerated once;
//! the candidates are the ways to pick one acquire from each class. What was wanted decides which held lock counts, so
//! each tuple of events belongs to exactly one cycle of classes, and the number of candidates is a sum of products.

use crate::asking::{Asker, Key, Window};
use crate::bug::{BugKind, Form, Place, Role, Severity, Words};
use crate::facts::Facts;
use portent_order::Goal;
use portent_trace::{EventId, LockId, Meaning, Mode, ObjectClass, Op, PairingId, ThreadId, Trace};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// How many steps the enumeration of cycles may take, in one window.
const PATIENCE: u64 = 200_000;
/// How many candidates of one cycle of classes are looked at, in one window.
const TUPLES: u64 = 100_000;

pub(super) const CYCLE: Words = Words {
    title: "deadlock",
    rule: "deadlock",
    identifier: "Deadlock",
    meaning: "Threads can wait for each other's locks in a cycle. Take locks in the same order everywhere.",
    severity: Severity::Error,
};
pub(super) const LOST_WAKEUP: Words = Words {
    title: "lost wake-up",
    rule: "lost_wakeup",
    identifier: "LostWakeup",
    meaning: "A notify can come before the sleep that it should end, and nobody else sends one. Change and \
              test the condition under the lock that the wait releases.",
    severity: Severity::Error,
};

pub(super) const STUCK: Words = Words {
    title: "deadlock",
    rule: "stuck",
    identifier: "Stuck",
    meaning: "Threads can wait for ever for what only they could do: for a thread to end, at a semaphore, a barrier or a condition, often \
              with a lock that another needs. Wait without locks that others need, and acquire in the same order everywhere.",
    severity: Severity::Error,
};

/// The forms of deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deadlock {
    /// Threads wait for each other's locks.
    Cycle {
        /// The acquires at which they wait, each for a lock that the next one's thread holds.
        waits: Vec<Place>,
    },
    /// Threads wait for each other, not only for locks; or for what nobody does any more.
    Stuck {
        /// Where they wait, in the order of the trace.
        waits: Vec<Place>,
    },
    /// A notify comes before the sleep it should end.
    LostWakeup {
        /// The wake that never comes.
        waiting: Place,
        /// The notify that is lost.
        notify: Place,
        /// Which sleep, notify and wake of the trace these are.
        pairing: PairingId,
    },
}

/// The source locations of a cycle, whichever comes first.
pub(super) fn cycle_key(trace: &Trace, waiting: &[EventId]) -> Key {
    Key::of_cycle(waiting.iter().map(|&event| Key::at(trace, event)).collect())
}

/// The source locations of a wake, its notify and its sleep.
pub(super) fn wakeup_key(trace: &Trace, pairing: PairingId) -> Key {
    let pairing = trace.pairings()[pairing.index()];
    Key::new(Form::LostWakeup, [pairing.wake, pairing.notify, pairing.sleep].map(|event| Key::at(trace, event)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Class {
    thread: ThreadId,
    held: (LockId, Mode),
    wanted: (LockId, Mode),
}

impl Class {
    fn waits_for(&self, other: &Class) -> bool {
        self.wanted.0 == other.held.0 && self.wanted.1.conflicts_with(other.held.1)
    }
}

/// The acquires of a range of events by class, and the cycles of classes.
struct Cycles {
    events: Vec<Vec<EventId>>,
    cycles: Vec<Vec<usize>>,
    /// Whether that is all of them.
    complete: bool,
}

impl Cycles {
    fn of(facts: &Facts<'_>, range: Range<usize>) -> Self {
        let mut index: FxHashMap<Class, usize> = FxHashMap::default();
        let mut classes: Vec<Class> = Vec::new();
        let mut events: Vec<Vec<EventId>> = Vec::new();
        for event in range.map(EventId::new) {
            let Op::Acquire(lock, mode) = facts.trace.op(event) else { continue };
            if facts.trace.tries(event) {
                continue;
            }
            let held = facts.held(event);
            for &(l, m) in held {
                // Held both ways: the exclusive holding is the one that excludes more.
                if m == Mode::Shared && held.contains(&(l, Mode::Exclusive)) {
                    continue;
                }
                let class = Class { thread: facts.trace.thread(event), held: (l, m), wanted: (lock, mode) };
                let slot = *index.entry(class).or_insert_with(|| {
                    classes.push(class);
                    events.push(Vec::new());
                    classes.len() - 1
                });
                events[slot].push(event);
            }
        }
        let mut holders: FxHashMap<LockId, Vec<usize>> = FxHashMap::default();
        for (i, class) in classes.iter().enumerate() {
            holders.entry(class.held.0).or_default().push(i);
        }
        let mut walk =
            Walk { classes: &classes, holders: &holders, path: Vec::new(), cycles: Vec::new(), left: PATIENCE };
        for start in 0..classes.len() {
            walk.path.push(start);
            walk.extend();
            walk.path.pop();
        }
        let (cycles, complete) = (walk.cycles, walk.left > 0);
        Cycles { events, cycles, complete }
    }
}

struct Walk<'a> {
    classes: &'a [Class],
    holders: &'a FxHashMap<LockId, Vec<usize>>,
    path: Vec<usize>,
    cycles: Vec<Vec<usize>>,
    left: u64,
}

impl Walk<'_> {
    /// Every cycle that starts with the path, whose first class is its lowest.
    fn extend(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let (start, end) = (self.path[0], self.path[self.path.len() - 1]);
        if self.path.len() > 1 && self.classes[end].waits_for(&self.classes[start]) {
            self.cycles.push(self.path.clone());
        }
        let holders = self.holders;
        for &next in holders.get(&self.classes[end].wanted.0).into_iter().flatten() {
            let class = &self.classes[next];
            let new_thread = self.path.iter().all(|&p| self.classes[p].thread != class.thread);
            if next > start && new_thread && self.classes[end].waits_for(class) {
                self.path.push(next);
                self.extend();
                self.path.pop();
            }
        }
    }
}

/// Asks about every cycle and every wait that the window owns.
pub(super) fn examine(window: &Window<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let cycles = Cycles::of(window.facts, window.span.clone());
    for cycle in &cycles.cycles {
        let lists: Vec<&[EventId]> = cycle.iter().map(|&class| cycles.events[class].as_slice()).collect();
        let mut left = TUPLES;
        let mut chosen = Vec::new();
        if !pick(window, &lists, &mut chosen, &mut left, asker) {
            return;
        }
    }
    for pairing in waits(window) {
        if asker.stopped().is_some() {
            return;
        }
        let key = wakeup_key(window.facts.trace, pairing);
        if asker.open.wants(|| key.clone()) {
            asker.ask(Goal::LostWakeup { pairing }, key);
        }
    }
}

/// Asks about every choice of one event from each list; `false` when stopped.
fn pick(
    window: &Window<'_, '_>,
    lists: &[&[EventId]],
    chosen: &mut Vec<EventId>,
    left: &mut u64,
    asker: &mut Asker<'_, '_, '_>,
) -> bool {
    let Some((list, rest)) = lists.split_first() else {
        if !chosen.iter().any(|&e| window.owns(e)) {
            return true;
        }
        if asker.stopped().is_some() {
            return false;
        }
        *left -= 1;
        let gate = |(i, &a): (usize, &EventId)| chosen[i + 1..].iter().any(|&b| window.facts.share_a_lock(a, b));
        if chosen.iter().enumerate().any(gate) {
            asker.dismiss(BugKind::Deadlock);
            return true;
        }
        let mut waiting = chosen.clone();
        let lowest = (0..waiting.len()).min_by_key(|&i| waiting[i]).unwrap_or(0);
        waiting.rotate_left(lowest);
        let key = cycle_key(window.facts.trace, &waiting);
        if asker.open.wants(|| key.clone()) {
            asker.ask(Goal::Deadlock { waiting }, key);
        }
        return true;
    };
    for &event in *list {
        if *left == 0 {
            return true;
        }
        chosen.push(event);
        let on = pick(window, rest, chosen, left, asker);
        chosen.pop();
        if !on {
            return false;
        }
    }
    true
}

/// The waits of the window. Whether the other threads are stuck depends on everything up to the end of the trace, so
/// only the last window has any.
fn waits(window: &Window<'_, '_>) -> Vec<PairingId> {
    let pairings = if window.is_last() { window.facts.trace.pairings() } else { &[] };
    let start = window.span.start;
    let inside = pairings.iter().enumerate().filter(|(_, p)| p.sleep.index() >= start && p.notify.index() >= start);
    inside.map(|(k, _)| PairingId::new(k)).collect()
}

/// The acquires of a cycle.
pub(super) fn wait_places(trace: &Trace, waiting: &[EventId]) -> Vec<Place> {
    waiting.iter().map(|&event| Place::of_event(trace, Role::Waiting, event)).collect()
}

/// Where threads wait, whatever for.
pub(super) fn stuck_places(trace: &Trace, waiting: &[EventId]) -> Vec<Place> {
    let names = trace.names();
    let mut places = wait_places(trace, waiting);
    for (place, &event) in places.iter_mut().zip(waiting) {
        let Op::Receive(token) = trace.op(event) else { continue };
        let (op, object) = match trace.meaning(token) {
            Meaning::Join(thread) => ("join", names.thread(thread).to_owned()),
            Meaning::Barrier(barrier) => ("barrier wait", names.called(ObjectClass::Barrier, barrier).into_owned()),
            Meaning::Latch(latch) => ("latch wait", names.called(ObjectClass::Latch, latch).into_owned()),
            Meaning::Once(once) => ("once", names.lock(once).into_owned()),
            Meaning::Notify(condition) => ("wait", names.condition(condition).into_owned()),
            Meaning::Fork(_) | Meaning::Named(_) => continue,
        };
        (place.op, place.object) = (op, object);
    }
    places
}

/// The wake that never comes, and the notify that is lost.
pub(super) fn wakeup_places(trace: &Trace, pairing: PairingId) -> [Place; 2] {
    let pairing = trace.pairings()[pairing.index()];
    [Place::of_event(trace, Role::Waiting, pairing.wake), Place::of_event(trace, Role::Notify, pairing.notify)]
}

/// How many cycles of acquires lie within a range of events, and whether that is all of them.
fn count_cycles(facts: &Facts<'_>, range: Range<usize>) -> (u128, bool) {
    let cycles = Cycles::of(facts, range);
    let choices = |cycle: &Vec<usize>| {
        cycle.iter().fold(1u128, |product, &class| product.saturating_mul(cycles.events[class].len() as u128))
    };
    (cycles.cycles.iter().map(choices).fold(0, u128::saturating_add), cycles.complete)
}

/// How many cycles and waits a trace has, and whether that is all of them.
pub(super) fn count(facts: &Facts<'_>) -> (u128, bool) {
    let (cycles, complete) = count_cycles(facts, 0..facts.trace.len());
    (cycles + waits(&Window::whole(facts)).len() as u128, complete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portent_order::{Kind, brute};
    use portent_trace::generate::{TinyShape, tiny};

    #[test]
    fn the_sum_of_products_is_the_number_of_cycles() {
        let shapes: Vec<TinyShape> = TinyShape::all().filter(|shape| shape.locks > 0).collect();
        for seed in 0..2_000u64 {
            let trace = tiny(seed, &shapes[seed as usize % shapes.len()]);
            let facts = Facts::new(&trace);
            let candidates = brute::candidates(&trace, Kind::Deadlock).len() as u128;
            assert_eq!(count_cycles(&facts, 0..trace.len()), (candidates, true), "seed {seed}");
        }
    }
}
