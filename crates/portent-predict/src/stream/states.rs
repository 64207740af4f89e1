//! Lock states, interned: which locks a thread holds, and for each of them which locks it took since. Steps are
//! remembered, so that a lock operation costs a look-up.
//!
//! The second part is the acquisition history of Kahlon, Ivančić and Gupta, which Farzan et al. use for atomicity. Here
//! it is only a filter (docs/src/internals/semantics.md §4), so nothing is assumed of how locks nest: if T has held `k` since before U took
//! `m`, then U cannot have taken `k` since. Two states exclude each other if they hold a lock in conflicting modes, or if
//! each took, since, what the other one holds.
//!
//! Deviations that only ever let more through: a history keeps its [`HISTORY`] smallest locks, and beyond [`STATES`]
//! states histories are no longer told apart.

use portent_trace::{LockId, Mode};
use rustc_hash::FxHashMap;

/// A lock and how it is held or taken.
pub(super) type Hold = u64;
/// An interned state.
pub(super) type State = u32;
/// No lock is held.
pub(super) const FREE: State = 0;

/// The longest history that is kept.
const HISTORY: usize = 16;
/// How many states have histories.
const STATES: usize = 1 << 16;

/// A lock taken in a mode.
#[inline]
pub(super) fn hold(lock: LockId, mode: Mode) -> Hold {
    (lock.index() as u64) << 1 | u64::from(mode == Mode::Shared)
}

/// Whether two threads cannot both hold these.
#[inline]
pub(super) fn conflict(a: Hold, b: Hold) -> bool {
    a >> 1 == b >> 1 && a & b & 1 == 0
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Holding {
    hold: Hold,
    /// What was taken since, sorted.
    since: Vec<Hold>,
}

/// Every state met so far, and what is known of them.
#[derive(Debug)]
pub(super) struct States {
    /// By lock.
    all: Vec<Vec<Holding>>,
    known: FxHashMap<Vec<Holding>, State>,
    /// Where a step leads: a hold, taken or (lowest bit set) released.
    steps: FxHashMap<(State, u64), State>,
    masks: Vec<Mask>,
}

/// Locks as bits, several to a bit: enough to see that two states have nothing to do with each other.
#[derive(Clone, Copy, Debug, Default)]
struct Mask {
    held: u64,
    since: u64,
}

impl Mask {
    fn of(holdings: &[Holding]) -> Self {
        let bit = |hold: Hold| 1u64 << ((hold >> 1) % 64);
        holdings.iter().fold(Mask::default(), |mask, holding| Mask {
            held: mask.held | bit(holding.hold),
            since: holding.since.iter().fold(mask.since, |since, &taken| since | bit(taken)),
        })
    }
}

impl States {
    pub(super) fn new() -> Self {
        let known = FxHashMap::from_iter([(Vec::new(), FREE)]);
        States { all: vec![Vec::new()], known, steps: FxHashMap::default(), masks: vec![Mask::default()] }
    }
    /// Whether two states hold the same locks.
    pub(super) fn same_locks(&self, a: State, b: State) -> bool {
        let (one, two) = (&self.all[a as usize], &self.all[b as usize]);
        one.len() == two.len() && one.iter().zip(two).all(|(x, y)| x.hold == y.hold)
    }
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
    /// The locks held.
    pub(super) fn held(&self, state: State) -> impl Iterator<Item = Hold> + '_ {
        self.all[state as usize].iter().map(|holding| holding.hold)
    }

    /// The state after taking a lock.
    pub(super) fn acquire(&mut self, state: State, taken: Hold) -> State {
        if let Some(&next) = self.steps.get(&(state, taken << 1)) {
            return next;
        }
        let mut holdings = self.all[state as usize].clone();
        let plain = self.all.len() >= STATES;
        for holding in &mut holdings {
            match holding.since.binary_search(&taken) {
                _ if plain => holding.since.clear(),
                Err(at) => {
                    holding.since.insert(at, taken);
                    holding.since.truncate(HISTORY);
                }
                Ok(_) => {}
            }
        }
        let at = holdings.partition_point(|holding| holding.hold < taken);
        holdings.insert(at, Holding { hold: taken, since: Vec::new() });
        self.step(state, taken << 1, holdings)
    }

    /// The state after giving a lock back.
    pub(super) fn release(&mut self, state: State, given: Hold) -> State {
        if let Some(&next) = self.steps.get(&(state, given << 1 | 1)) {
            return next;
        }
        let mut holdings = self.all[state as usize].clone();
        holdings.retain(|holding| holding.hold != given);
        self.step(state, given << 1 | 1, holdings)
    }

    fn step(&mut self, from: State, by: u64, to: Vec<Holding>) -> State {
        let next = match self.known.get(&to) {
            Some(&state) => state,
            None => {
                let state = self.all.len() as State;
                self.masks.push(Mask::of(&to));
                self.all.push(to.clone());
                self.known.insert(to, state);
                state
            }
        };
        self.steps.insert((from, by), next);
        next
    }

    /// Whether two threads can be in these states at the same time, as far as locks tell.
    pub(super) fn compatible(&self, a: State, b: State) -> bool {
        let (x, y) = (self.masks[a as usize], self.masks[b as usize]);
        if x.held & y.held == 0 && (x.since & y.held == 0 || y.since & x.held == 0) {
            return true;
        }
        let (one, two) = (&self.all[a as usize], &self.all[b as usize]);
        let took = |since: &[Hold], held: Hold| since.iter().any(|&taken| conflict(taken, held));
        let apart =
            |x: &Holding, y: &Holding| conflict(x.hold, y.hold) || (took(&x.since, y.hold) && took(&y.since, x.hold));
        !one.iter().any(|x| two.iter().any(|y| apart(x, y)))
    }

    /// Whether everything that is compatible with `large` is compatible with `small`.
    pub(super) fn within(&self, small: State, large: State) -> bool {
        let (x, y) = (self.masks[small as usize], self.masks[large as usize]);
        if x.held & !y.held != 0 || x.since & !y.since != 0 {
            return false;
        }
        let mut rest = self.all[large as usize].iter();
        small == large
            || self.all[small as usize].iter().all(|x| {
                let same = rest.by_ref().find(|y| y.hold == x.hold);
                same.is_some_and(|y| x.since.iter().all(|taken| y.since.binary_search(taken).is_ok()))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclusive(lock: usize) -> Hold {
        hold(LockId::new(lock), Mode::Exclusive)
    }

    #[test]
    fn states_exclude_each_other_by_common_locks_and_by_crossed_histories() {
        let mut states = States::new();
        let (a, b) = (exclusive(0), exclusive(1));
        let holds_a = states.acquire(FREE, a);
        let holds_b = states.acquire(FREE, b);
        let mut a_then_b = states.acquire(holds_a, b);
        assert!(!states.compatible(a_then_b, holds_b));
        a_then_b = states.release(a_then_b, b);
        assert_ne!(a_then_b, holds_a, "the history stays");
        let b_then_a = states.acquire(holds_b, a);
        let b_then_a = states.release(b_then_a, a);
        assert!(states.compatible(a_then_b, holds_b));
        assert!(!states.compatible(a_then_b, b_then_a));
        assert!(states.within(holds_a, a_then_b) && !states.within(a_then_b, holds_a));
        assert!(states.within(FREE, holds_b) && !states.within(holds_b, holds_a));
        assert_eq!(states.release(a_then_b, a), FREE);
    }

    #[test]
    fn readers_of_a_lock_do_not_exclude_each_other() {
        let mut states = States::new();
        let reader = states.acquire(FREE, hold(LockId::new(0), Mode::Shared));
        let writer = states.acquire(FREE, exclusive(0));
        assert!(states.compatible(reader, reader));
        assert!(!states.compatible(reader, writer));
    }
}
