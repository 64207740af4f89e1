//! The critical sections of a trace so far, and closures over them.
//!
//! State: `scopes` one per acquire; `moments` one per acquire and release of each thread, with the scopes open after it (a
//! shared stack: `nodes`) and the set of locks held; `acquires` by lock, thread and mode; `clocks` closures that
//! something may still need, saved once per change. All of it only grows.

use portent_trace::{LockId, Mode, ThreadId};
use rustc_hash::FxHashMap;

/// No scope, no release yet.
pub(super) const NONE: u32 = u32::MAX;

/// A closed set of events, while it is made or for good: per thread, all events with lower numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Ideal {
    pub(super) clock: Vec<u32>,
    /// How many moments of each thread are known to be contained.
    at: Vec<u32>,
    /// Scopes that are open at the end.
    pub(super) open: Vec<u32>,
}

impl Ideal {
    pub(super) fn new(threads: usize) -> Self {
        Ideal { clock: vec![0; threads], at: vec![0; threads], open: Vec::new() }
    }
    /// Becomes a copy of another, without allocating.
    pub(super) fn copy(&mut self, other: &Ideal) {
        self.clock.copy_from_slice(&other.clock);
        self.at.copy_from_slice(&other.at);
    }
    pub(super) fn raise(&mut self, thread: ThreadId, bound: u32) {
        let own = &mut self.clock[thread.index()];
        *own = (*own).max(bound);
    }
}

/// A critical section.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    pub(super) lock: LockId,
    pub(super) mode: Mode,
    pub(super) thread: ThreadId,
    acquire: u32,
    release: u32,
    /// The saved closure of its release; before that of its acquire, if a failed try may want it.
    clock: u32,
}

#[derive(Clone, Copy)]
struct Node {
    scope: u32,
    below: u32,
}

/// What holds after an acquire or a release of a thread.
#[derive(Clone, Copy)]
struct Moment {
    event: u32,
    /// The innermost open scope, as a node.
    top: u32,
    held: u32,
}

/// The acquires of one lock by one thread, exclusive and shared, in order.
struct Taken {
    thread: ThreadId,
    exclusive: Vec<u32>,
    shared: Vec<u32>,
}

#[derive(Default)]
pub(super) struct History {
    threads: usize,
    scopes: Vec<Scope>,
    nodes: Vec<Node>,
    moments: Vec<Vec<Moment>>,
    acquires: Vec<Vec<Taken>>,
    clocks: Vec<u32>,
    sets: Vec<Vec<(LockId, Mode)>>,
    set_index: FxHashMap<Vec<(LockId, Mode)>, u32>,
    /// Sets before and after, per acquire or release, so that known steps cost no allocation.
    steps: FxHashMap<(u32, u32), u32>,
}

impl History {
    pub(super) fn new(threads: usize, locks: usize) -> Self {
        let mut history = History {
            threads,
            moments: (0..threads).map(|_| Vec::new()).collect(),
            acquires: (0..locks).map(|_| Vec::new()).collect(),
            sets: vec![Vec::new()],
            ..History::default()
        };
        history.set_index.insert(Vec::new(), 0);
        history
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }
    pub(super) fn scope(&self, scope: u32) -> &Scope {
        &self.scopes[scope as usize]
    }
    /// How many acquires and releases a thread has made.
    pub(super) fn moment(&self, thread: ThreadId) -> u32 {
        self.moments[thread.index()].len() as u32
    }
    /// The set of locks held after that many acquires and releases.
    pub(super) fn held_at(&self, thread: ThreadId, moment: u32) -> u32 {
        moment.checked_sub(1).map_or(0, |last| self.moments[thread.index()][last as usize].held)
    }
    /// The set of locks that a thread holds now.
    pub(super) fn held(&self, thread: ThreadId) -> u32 {
        self.held_at(thread, self.moment(thread))
    }
    pub(super) fn set(&self, set: u32) -> &[(LockId, Mode)] {
        &self.sets[set as usize]
    }
    /// Whether two sets have a lock in common that at least one holds exclusively.
    pub(super) fn exclude_each_other(&self, a: u32, b: u32) -> bool {
        let other = self.set(b);
        self.set(a).iter().any(|(l, m)| other.iter().any(|(k, n)| l == k && m.conflicts_with(*n)))
    }

    /// Keeps a closure; what it says of its own thread does not count.
    pub(super) fn save(&mut self, clock: &[u32]) -> u32 {
        self.clocks.extend_from_slice(clock);
        (self.clocks.len() / self.threads - 1) as u32
    }
    /// Adds a saved closure of an event of `thread` to an ideal, with that thread's events below `bound`. Whether anything
    /// is new.
    pub(super) fn join(&self, ideal: &mut Ideal, saved: u32, thread: ThreadId, bound: u32) -> bool {
        let from = saved as usize * self.threads;
        let mut grown = false;
        for (mine, &theirs) in ideal.clock.iter_mut().zip(&self.clocks[from..from + self.threads]) {
            grown |= theirs > *mine;
            *mine = (*mine).max(theirs);
        }
        let own = &mut ideal.clock[thread.index()];
        grown |= bound > *own;
        *own = (*own).max(bound);
        grown
    }

    fn step(&mut self, from: u32, scope: &Scope, acquire: bool) -> u32 {
        let code = (scope.lock.index() as u32) << 2 | u32::from(scope.mode == Mode::Shared) << 1 | u32::from(acquire);
        if let Some(&to) = self.steps.get(&(from, code)) {
            return to;
        }
        let mut set = self.sets[from as usize].clone();
        if acquire {
            set.push((scope.lock, scope.mode));
            set.sort_unstable();
        } else {
            set.retain(|held| *held != (scope.lock, scope.mode));
        }
        let sets = &mut self.sets;
        let to = *self.set_index.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            sets.len() as u32 - 1
        });
        self.steps.insert((from, code), to);
        to
    }

    /// Notes an acquire; `saved` is its closure if a failed try may want it.
    pub(super) fn acquire(&mut self, thread: ThreadId, lock: LockId, mode: Mode, event: u32, saved: u32) -> u32 {
        let scope = Scope { lock, mode, thread, acquire: event, release: NONE, clock: saved };
        let index = self.scopes.len() as u32;
        let held = self.step(self.held(thread), &scope, true);
        self.scopes.push(scope);
        let below = self.moments[thread.index()].last().map_or(NONE, |moment| moment.top);
        self.nodes.push(Node { scope: index, below });
        self.moments[thread.index()].push(Moment { event, top: self.nodes.len() as u32 - 1, held });
        let by_thread = &mut self.acquires[lock.index()];
        let slot = by_thread.iter().position(|taken| taken.thread == thread).unwrap_or_else(|| {
            by_thread.push(Taken { thread, exclusive: Vec::new(), shared: Vec::new() });
            by_thread.len() - 1
        });
        match mode {
            Mode::Exclusive => by_thread[slot].exclusive.push(event),
            Mode::Shared => by_thread[slot].shared.push(event),
        }
        index
    }

    /// Notes a release of `scope`, with its saved closure.
    pub(super) fn release(&mut self, scope: u32, event: u32, saved: u32) {
        let it = &mut self.scopes[scope as usize];
        (it.release, it.clock) = (event, saved);
        let it = *it;
        let held = self.step(self.held(it.thread), &it, false);
        // The stack without the scope: what was above it is stacked anew.
        let mut above = Vec::new();
        let mut node = self.moments[it.thread.index()].last().map_or(NONE, |moment| moment.top);
        while node != NONE {
            let Node { scope: open, below } = self.nodes[node as usize];
            node = below;
            if open == scope {
                break;
            }
            above.push(open);
        }
        for &scope in above.iter().rev() {
            self.nodes.push(Node { scope, below: node });
            node = self.nodes.len() as u32 - 1;
        }
        self.moments[it.thread.index()].push(Moment { event, top: node, held });
    }

    /// Replaces the saved closure of an acquire.
    pub(super) fn amend(&mut self, scope: u32, saved: u32) {
        self.scopes[scope as usize].clock = saved;
    }
    /// The saved closure of an acquire whose scope is still open, and its number.
    pub(super) fn acquired(&self, scope: u32) -> (u32, u32) {
        let it = self.scope(scope);
        (it.clock, it.acquire)
    }

    /// Whether the ideal contains a later acquire, by another thread, that conflicts with a scope.
    fn taken_later(&self, scope: &Scope, clock: &[u32]) -> bool {
        let after = |list: &[u32], bound: u32| {
            // The first acquire after the scope's, if it is contained.
            list.last().is_some_and(|&last| last > scope.acquire)
                && list[list.partition_point(|&acquire| acquire <= scope.acquire)] < bound
        };
        self.acquires[scope.lock.index()].iter().any(|taken| {
            let bound = clock[taken.thread.index()];
            bound > scope.acquire
                && taken.thread != scope.thread
                && (after(&taken.exclusive, bound) || (scope.mode == Mode::Exclusive && after(&taken.shared, bound)))
        })
    }

    /// Closes an ideal that is a union of closed ones; `false` if `enough` became true on the way.
    pub(super) fn close(&self, ideal: &mut Ideal, enough: impl Fn(&[u32]) -> bool) -> bool {
        loop {
            let mut grown = false;
            ideal.open.clear();
            for thread in (0..self.threads).map(ThreadId::new) {
                let t = thread.index();
                let moments = &self.moments[t];
                let at = gallop(moments, ideal.at[t], ideal.clock[t]);
                ideal.at[t] = at;
                let mut node = at.checked_sub(1).map_or(NONE, |last| moments[last as usize].top);
                while node != NONE {
                    let Node { scope: index, below } = self.nodes[node as usize];
                    let scope = &self.scopes[index as usize];
                    // A scope that never ends has no conflicting one after it.
                    if scope.release != NONE && self.taken_later(scope, &ideal.clock) {
                        self.join(ideal, scope.clock, thread, scope.release + 1);
                        if enough(&ideal.clock) {
                            return false;
                        }
                        grown = true;
                        break;
                    }
                    ideal.open.push(index);
                    node = below;
                }
            }
            if !grown {
                return true;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let moments: usize = self.moments.iter().map(Vec::capacity).sum();
        let taken = self.acquires.iter().flatten().map(|taken| taken.exclusive.capacity() + taken.shared.capacity());
        self.scopes.capacity() * size_of::<Scope>()
            + self.nodes.capacity() * size_of::<Node>()
            + moments * size_of::<Moment>()
            + 4 * taken.sum::<usize>()
            + 4 * self.clocks.capacity()
    }
}

/// How many moments come before event `bound`, given that at least `from` do.
fn gallop(moments: &[Moment], from: u32, bound: u32) -> u32 {
    let before = |i: usize| moments[i].event < bound;
    let mut low = from as usize;
    if low >= moments.len() || !before(low) {
        return from;
    }
    let mut step = 1;
    while low + step < moments.len() && before(low + step) {
        low += step;
        step *= 2;
    }
    let high = moments.len().min(low + step);
    (low + 1 + moments[low + 1..high].partition_point(|moment| moment.event < bound)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_counts_what_comes_before() {
        let moments: Vec<Moment> =
            [3, 5, 8, 9, 12, 20, 21].into_iter().map(|event| Moment { event, top: NONE, held: 0 }).collect();
        for bound in 0..25 {
            let truth = moments.iter().filter(|moment| moment.event < bound).count() as u32;
            for from in 0..=truth {
                assert_eq!(gallop(&moments, from, bound), truth, "{from} {bound}");
            }
        }
    }
}
