//! Deadlocks from the stream: acquires made while locks are held, by class, and the cycles of classes.
//!
//! A class is a thread, a lock wanted, a lock state and a place. Cycles of distinct threads are enumerated when the
//! stream ends: each waits for a lock that the next one's state holds, the states are pairwise compatible (no gate lock,
//! no crossed histories), and no class lies wholly before another in must-order. The last is a necessary condition for
//! two instances to be unordered, not a sufficient one: what it lets through, the engine decides.
//!
//! Cycles of two threads are enumerated completely; longer ones within [`PATIENCE`] steps, shorter ones first, and it is
//! said when that was not enough.

use super::clocks::{Clock, at};
use super::states::{FREE, Hold, State, States, conflict};
use portent_trace::{EventId, LocId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Classes beyond this many are not told apart.
const CLASSES: usize = 1 << 17;
/// Steps that the enumeration of long cycles may take.
const PATIENCE: u64 = 400_000;
/// The same for cycles of two.
const PAIRS: u64 = 20_000_000;

#[derive(Debug)]
struct Class {
    thread: usize,
    wanted: Hold,
    state: State,
    place: LocId,
    /// The clock of its first acquire.
    first: Clock,
    /// The time of its last, and which event that was.
    time: u32,
    event: EventId,
}

/// The acquires so far.
#[derive(Debug, Default)]
pub(super) struct Cycles {
    classes: Vec<Class>,
    /// The class of a state; those with the same locks and a larger history are of one with a smaller one.
    index: FxHashMap<(u32, State, Hold, LocId), u32>,
    /// Classes by all but the state.
    alike: FxHashMap<(u32, Hold, LocId), Vec<u32>>,
    pub(super) dropped: u64,
}

/// Cycles of places with an instance each, and whether these are all.
pub(super) struct Enumerated {
    pub(super) cycles: Vec<(Vec<LocId>, Vec<EventId>)>,
    pub(super) complete: bool,
}

impl Cycles {
    /// An acquire by a thread that holds locks.
    pub(super) fn acquire(
        &mut self,
        states: &States,
        (thread, state, wanted): (usize, State, Hold),
        place: LocId,
        event: EventId,
        time: u32,
        clock: impl FnOnce() -> Clock,
    ) {
        debug_assert_ne!(state, FREE);
        let key = (thread as u32, state, wanted, place);
        if let Some(&class) = self.index.get(&key) {
            let class = &mut self.classes[class as usize];
            (class.time, class.event) = (time, event);
            return;
        }
        let alike = self.alike.entry((thread as u32, wanted, place)).or_default();
        let covers = |&class: &u32| {
            let other = self.classes[class as usize].state;
            states.within(other, state) && states.same_locks(other, state)
        };
        if let Some(&class) = alike.iter().find(|&class| covers(class)) {
            self.index.insert(key, class);
            let class = &mut self.classes[class as usize];
            (class.time, class.event) = (time, event);
        } else if self.classes.len() >= CLASSES {
            self.dropped += 1;
        } else {
            self.index.insert(key, self.classes.len() as u32);
            alike.push(self.classes.len() as u32);
            self.classes.push(Class { thread, wanted, state, place, first: clock(), time, event });
        }
    }
    /// How many classes there are.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// The cycles of places.
    pub(super) fn enumerate(&self, states: &States) -> Enumerated {
        let mut holders: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (i, class) in self.classes.iter().enumerate() {
            let mut locks: Vec<u64> = states.held(class.state).map(|hold| hold >> 1).collect();
            locks.dedup();
            locks.into_iter().for_each(|lock| holders.entry(lock).or_default().push(i as u32));
        }
        let mut walk = Walk {
            classes: &self.classes,
            holders: &holders,
            states,
            path: Vec::new(),
            known: FxHashSet::default(),
            cycles: Vec::new(),
            longest: 2,
            left: PAIRS,
            cut_off: false,
        };
        walk.all();
        let mut complete = walk.left > 0;
        walk.left = PATIENCE;
        // One length at a time: short cycles are the ones that happen.
        while std::mem::take(&mut walk.cut_off) && walk.left > 0 {
            walk.longest += 1;
            walk.all();
        }
        complete &= walk.left > 0;
        Enumerated { cycles: walk.cycles, complete }
    }
}

struct Walk<'a> {
    classes: &'a [Class],
    holders: &'a FxHashMap<u64, Vec<u32>>,
    states: &'a States,
    path: Vec<u32>,
    /// Cycles of places, each from its least rotation.
    known: FxHashSet<Vec<LocId>>,
    cycles: Vec<(Vec<LocId>, Vec<EventId>)>,
    longest: usize,
    left: u64,
    /// Whether a path was given up for its length.
    cut_off: bool,
}

impl Walk<'_> {
    fn all(&mut self) {
        for start in 0..self.classes.len() as u32 {
            self.path.push(start);
            self.extend();
            self.path.pop();
        }
    }

    fn waits_for(&self, one: u32, other: u32) -> bool {
        let wanted = self.classes[one as usize].wanted;
        self.states.held(self.classes[other as usize].state).any(|hold| conflict(wanted, hold))
    }

    /// Whether two classes can be waiting at the same time.
    fn can_meet(&self, one: u32, other: u32) -> bool {
        let (a, b) = (&self.classes[one as usize], &self.classes[other as usize]);
        let before = |a: &Class, b: &Class| at(&b.first, a.thread) >= a.time;
        a.thread != b.thread && !before(a, b) && !before(b, a) && self.states.compatible(a.state, b.state)
    }

    /// Every cycle of the wanted length that starts with the path, whose first class is its lowest.
    fn extend(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let (start, end) = (self.path[0], self.path[self.path.len() - 1]);
        if self.path.len() == self.longest {
            if self.waits_for(end, start) {
                self.note();
            }
            // Longer cycles go on from here, unless nobody holds what is wanted.
            self.cut_off |= self.holders.contains_key(&(self.classes[end as usize].wanted >> 1));
            return;
        }
        let holders = self.holders;
        for &next in holders.get(&(self.classes[end as usize].wanted >> 1)).into_iter().flatten() {
            if next > start
                && self.waits_for(end, next)
                && (0..self.path.len()).all(|i| self.can_meet(self.path[i], next))
            {
                self.path.push(next);
                self.extend();
                self.path.pop();
            }
        }
    }

    fn note(&mut self) {
        let mut places: Vec<LocId> = self.path.iter().map(|&c| self.classes[c as usize].place).collect();
        crate::asking::rotate_to_least(&mut places);
        if !self.known.contains(&places) {
            self.known.insert(places.clone());
            let mut events: Vec<EventId> = self.path.iter().map(|&c| self.classes[c as usize].event).collect();
            let lowest = (0..events.len()).min_by_key(|&i| events[i]).unwrap_or(0);
            events.rotate_left(lowest);
            self.cycles.push((places, events));
        }
    }
}
