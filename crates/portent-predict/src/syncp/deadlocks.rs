//! Deadlocks: cycles of acquires whose common past can be closed without any of them.
//!
//! Acquires are classed by thread, locks held, lock wanted and source location. A cycle of classes in which each wants
//! what the next one holds, and no two hold locks that exclude each other, is one pattern. The acquires of each class are
//! gone through in order: what the closure swallows is passed for good, as later acquires of the other classes
//! swallow it too. What remains when nothing is swallowed is a deadlock.

use super::Wanted;
use super::history::{History, Ideal};
use super::past::Past;
use portent_order::Goal;
use portent_trace::{EventId, LocId, LockId, Mode, Op, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many steps the enumeration of cycles may take.
pub(super) const PATIENCE: u64 = 1_000_000;

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
        if history_is_bare(&past.history, held) {
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
            let mut locks: Vec<LockId> = history.set(class.held).iter().map(|(lock, _)| *lock).collect();
            locks.dedup();
            locks.into_iter().for_each(|lock| holders.entry(lock).or_default().push(i as u32));
        }
        let mut walk = Walk {
            acquires: self,
            history,
            wanted,
            holders,
            path: Vec::new(),
            left: PATIENCE,
            settled: FxHashSet::default(),
            found: Found { found: Vec::new(), closures: 0, complete: true },
        };
        for start in 0..self.classes.len() as u32 {
            walk.path.push(start);
            walk.extend();
            walk.path.pop();
        }
        walk.found
    }
}

fn history_is_bare(history: &History, held: u32) -> bool {
    history.set(held).is_empty()
}

struct Walk<'a> {
    acquires: &'a Acquires,
    history: &'a History,
    wanted: &'a Wanted<'a>,
    holders: FxHashMap<LockId, Vec<u32>>,
    path: Vec<u32>,
    left: u64,
    /// Cycles of locations that need no further look.
    settled: FxHashSet<Vec<LocId>>,
    found: Found,
}

impl Walk<'_> {
    fn class(&self, index: u32) -> &Class {
        &self.acquires.classes[index as usize]
    }

    /// Every cycle that starts with the path, whose first class is its lowest.
    fn extend(&mut self) {
        if self.left == 0 || (self.left & 0x3ff == 0 && (self.wanted.stop)()) {
            self.left = 0;
            self.found.complete = false;
            return;
        }
        self.left -= 1;
        let (start, end) = (self.path[0], self.path[self.path.len() - 1]);
        if self.path.len() > 1 && self.class(end).waits_for(self.history, self.class(start)) {
            self.examine();
        }
        let lock = self.class(end).wanted.0;
        let holders = self.holders.get(&lock).map_or(0, Vec::len);
        for i in 0..holders {
            let next = self.holders[&lock][i];
            let class = *self.class(next);
            let fits = next > start
                && self.class(end).waits_for(self.history, &class)
                && self.path.iter().all(|&p| {
                    let other = self.class(p);
                    other.thread != class.thread && !self.history.exclude_each_other(other.held, class.held)
                });
            if fits {
                self.path.push(next);
                self.extend();
                self.path.pop();
            }
        }
    }

    /// Looks for a deadlock of the classes on the path.
    fn examine(&mut self) {
        let mut locs: Vec<LocId> = self.path.iter().map(|&class| self.class(class).loc).collect();
        crate::key::rotate_to_least(&mut locs);
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
        loop {
            self.found.closures += 1;
            self.history.close(&mut ideal, |_| false);
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
            if !swallowed {
                break;
            }
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
