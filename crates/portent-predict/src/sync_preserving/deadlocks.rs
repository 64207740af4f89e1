//! Deadlocks: cycles of acquires whose common past can be closed without any of them.
//!
//! Acquires are classed by thread, locks held, lock wanted and source location. A cycle of classes in which each wants
//! what the next one holds, and no two hold locks that exclude each other, is one pattern. The acquires of each class are
//! gone through in order: what the closure swallows is passed for good, as later acquires of the other classes
//! swallow it too. What remains when nothing is swallowed is a deadlock.
//!
//! Cycles are enumerated by length, the short ones first, along paths that can still lead back: per set of held locks, how
//! many more acquires it takes at least from wanting a lock to waiting for that set. In a program that orders its locks
//! no class can lead back to itself, and nothing is enumerated. Where cycles are many, effort bounded in proportion
//! to the acquires is spent on them.

use super::Wanted;
use super::history::{History, Ideal};
use super::past::Past;
use portent_order::Goal;
use portent_trace::{EventId, LocId, LockId, Mode, Op, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// How many steps the search may take, besides some per acquire.
pub(super) const PATIENCE: u64 = 1_000_000;
/// How many more per acquire.
const PER_ACQUIRE: u64 = 16;
/// How many steps a closure counts for.
const PER_CLOSURE: u64 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Class {
    thread: ThreadId,
    /// The set of locks held.
    held: u32,
    wanted: (LockId, Mode),
    loc: LocId,
}

impl Class {
    fn waits_for(&self, history: &History, other: &Class) -> bool {
        let (lock, mode) = self.wanted;
        history.set(other.held).iter().any(|&(l, m)| l == lock && m.conflicts_with(mode))
    }
}

/// An acquire and the closure of its thread's past.
#[derive(Clone, Copy)]
struct Site {
    event: u32,
    clock: u32,
}

/// The acquires of a trace, made while a lock was held.
#[derive(Default)]
pub(super) struct Acquires {
    index: FxHashMap<Class, u32>,
    classes: Vec<Class>,
    sites: Vec<Vec<Site>>,
}

/// Deadlocks with the closed sets that show them.
pub(super) struct Found {
    pub(super) found: Vec<(Goal, Box<[u32]>)>,
    pub(super) closures: u64,
    pub(super) complete: bool,
}

impl Acquires {
    /// Keeps an acquire that is about to happen.
    pub(super) fn note(&mut self, trace: &Trace, past: &mut Past<'_>, acquire: EventId) {
        let event = trace.event(acquire);
        let held = past.history.held(event.thread);
        let Op::Acquire(lock, mode) = event.op else { return };
        if past.history.set(held).is_empty() || event.tries {
            return;
        }
        let class = Class { thread: event.thread, held, wanted: (lock, mode), loc: event.loc };
        let (classes, sites) = (&mut self.classes, &mut self.sites);
        let slot = *self.index.entry(class).or_insert_with(|| {
            classes.push(class);
            sites.push(Vec::new());
            classes.len() as u32 - 1
        });
        let clock = past.saved(event.thread);
        self.sites[slot as usize].push(Site { event: acquire.index() as u32, clock });
    }

    pub(super) fn bytes(&self) -> usize {
        let sites: usize = self.sites.iter().map(Vec::capacity).sum();
        sites * size_of::<Site>() + self.classes.capacity() * 2 * size_of::<Class>()
    }

    /// Goes through all cycles of classes.
    pub(super) fn search(&self, history: &History, wanted: &Wanted<'_>) -> Found {
        let mut holders: FxHashMap<LockId, Vec<u32>> = FxHashMap::default();
        for (i, class) in self.classes.iter().enumerate() {
            for lock in locks(history, class.held) {
                holders.entry(lock).or_default().push(i as u32);
            }
        }
        let sites: usize = self.sites.iter().map(Vec::len).sum();
        let mut walk = Walk {
            acquires: self,
            history,
            wanted,
            holders,
            path: Vec::new(),
            left: PATIENCE + PER_ACQUIRE * sites as u64,
            unasked: 0,
            settled: FxHashSet::default(),
            found: Found { found: Vec::new(), closures: 0, complete: true },
        };
        let back = self.ways_back(history);
        // Those that lead back at all, with the length of the shortest cycle of locks.
        let mut starts: Vec<(u32, u32)> = Vec::new();
        for (i, class) in self.classes.iter().enumerate() {
            if let Some(&hops) = back[&class.held].get(&class.wanted.0) {
                starts.push((i as u32, hops));
            }
        }
        for length in 2..=history.threads() as u32 {
            for &(start, _) in starts.iter().filter(|(_, shortest)| *shortest <= length) {
                walk.path.push(start);
                walk.extend(&back[&self.classes[start as usize].held], length);
                walk.path.pop();
                if walk.left == 0 {
                    return walk.found;
                }
            }
        }
        walk.found
    }

    /// Per set of held locks: how many acquires it takes from wanting a lock to wanting one of the set.
    fn ways_back(&self, history: &History) -> FxHashMap<u32, FxHashMap<LockId, u32>> {
        // For each lock wanted, the locks held meanwhile.
        let mut held_for: FxHashMap<LockId, FxHashSet<LockId>> = FxHashMap::default();
        for class in &self.classes {
            held_for.entry(class.wanted.0).or_default().extend(locks(history, class.held));
        }
        let mut back: FxHashMap<u32, FxHashMap<LockId, u32>> = FxHashMap::default();
        for class in &self.classes {
            back.entry(class.held).or_insert_with(|| {
                let mut hops: FxHashMap<LockId, u32> = locks(history, class.held).map(|lock| (lock, 1)).collect();
                let mut queue: VecDeque<LockId> = hops.keys().copied().collect();
                while let Some(lock) = queue.pop_front() {
                    let next = hops[&lock] + 1;
                    for &held in held_for.get(&lock).into_iter().flatten() {
                        hops.entry(held).or_insert_with(|| {
                            queue.push_back(held);
                            next
                        });
                    }
                }
                hops
            });
        }
        back
    }
}

/// The locks of a set, each once.
fn locks(history: &History, set: u32) -> impl Iterator<Item = LockId> {
    let held = history.set(set);
    let first = |i: usize| i == 0 || held[i - 1].0 != held[i].0;
    held.iter().enumerate().filter(move |(i, _)| first(*i)).map(|(_, (lock, _))| *lock)
}

struct Walk<'a> {
    acquires: &'a Acquires,
    history: &'a History,
    wanted: &'a Wanted<'a>,
    holders: FxHashMap<LockId, Vec<u32>>,
    path: Vec<u32>,
    /// Steps left, and steps since somebody was asked whether to stop.
    left: u64,
    unasked: u64,
    /// Cycles of locations that need no further look.
    settled: FxHashSet<Vec<LocId>>,
    found: Found,
}

impl Walk<'_> {
    fn class(&self, index: u32) -> &Class {
        &self.acquires.classes[index as usize]
    }
    fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        self.unasked += steps;
        if self.unasked >= 4096 {
            self.unasked = 0;
            if (self.wanted.stop)() {
                self.left = 0;
            }
        }
        self.found.complete &= self.left > 0;
    }

    /// Every cycle of that length that starts with the path, whose first class is its lowest; `back` says how far each
    /// lock is from those that the first class holds.
    fn extend(&mut self, back: &FxHashMap<LockId, u32>, length: u32) {
        let (start, end) = (self.path[0], self.path[self.path.len() - 1]);
        let missing = length - self.path.len() as u32;
        if missing == 0 {
            if self.class(end).waits_for(self.history, self.class(start)) {
                self.examine();
            }
            return;
        }
        let lock = self.class(end).wanted.0;
        let holders = self.holders.get(&lock).map_or(0, Vec::len);
        // Passing over a class is cheap, not free.
        self.spend(holders as u64 / 16);
        for i in 0..holders {
            let next = self.holders[&lock][i];
            let class = *self.class(next);
            if next <= start || back.get(&class.wanted.0).is_none_or(|&hops| hops > missing) {
                continue;
            }
            self.spend(1);
            if self.left == 0 {
                return;
            }
            let fits = self.class(end).waits_for(self.history, &class)
                && self.path.iter().all(|&p| {
                    let other = self.class(p);
                    other.thread != class.thread && !self.history.exclude_each_other(other.held, class.held)
                });
            if fits {
                self.path.push(next);
                self.extend(back, length);
                self.path.pop();
            }
        }
    }

    /// Looks for a deadlock of the classes on the path.
    fn examine(&mut self) {
        let mut locs: Vec<LocId> = self.path.iter().map(|&class| self.class(class).loc).collect();
        crate::asking::rotate_to_least(&mut locs);
        if self.settled.contains(&locs) {
            return;
        }
        let lists: Vec<(ThreadId, &[Site])> = self
            .path
            .iter()
            .map(|&class| (self.class(class).thread, self.acquires.sites[class as usize].as_slice()))
            .collect();
        let mut at = vec![0; lists.len()];
        let mut ideal = Ideal::new(self.history.threads());
        for (thread, sites) in &lists {
            self.history.join(&mut ideal, sites[0].clock, *thread, sites[0].event);
        }
        let mut closed = false;
        loop {
            let mut swallowed = false;
            for (i, (thread, sites)) in lists.iter().enumerate() {
                let contained = ideal.clock[thread.index()];
                if sites[at[i]].event < contained {
                    at[i] += sites[at[i]..].partition_point(|site| site.event < contained);
                    let Some(next) = sites.get(at[i]) else { return };
                    self.history.join(&mut ideal, next.clock, *thread, next.event);
                    swallowed = true;
                }
            }
            self.spend(lists.len() as u64);
            if self.left == 0 {
                return;
            }
            // What the pasts alone swallow needs no closure.
            if swallowed {
                closed = false;
                continue;
            }
            if closed {
                break;
            }
            self.found.closures += 1;
            self.spend(PER_CLOSURE);
            self.history.close(&mut ideal, |_| false);
            closed = true;
        }
        let mut waiting: Vec<EventId> =
            lists.iter().zip(&at).map(|((_, sites), &at)| EventId::new(sites[at].event as usize)).collect();
        let lowest = (0..waiting.len()).min_by_key(|&i| waiting[i]).unwrap_or(0);
        waiting.rotate_left(lowest);
        self.settled.insert(locs);
        let goal = Goal::Deadlock { waiting };
        if !(self.wanted.known)(&goal) {
            self.found.found.push((goal, ideal.clock.into()));
        }
    }
}
