//! The state of a thread while its accesses stream by: lock state, atomic block, and the states since it last held no lock.

use super::states::{FREE, State, States};

/// Different states in one stretch under locks, beyond which the weakest state stands for all.
const TRAIL: usize = 32;

/// The state of a thread, as far as accesses care.
#[derive(Debug)]
pub(super) struct ThreadState {
    /// Changes with every lock operation, synchronisation and block of the thread.
    pub(super) era: u32,
    /// Held locks and their histories.
    pub(super) locks: State,
    /// Number of the atomic block; 0 outside.
    pub(super) block: u32,
    blocks: u32,
    /// How many events had happened when the thread last held no lock.
    last_free: u32,
    /// States since then, with the last moment of each.
    trail: Vec<(State, u32)>,
    overflown: bool,
    /// Variables met lately.
    pub(super) cache: Vec<(u32, u32)>,
}

impl ThreadState {
    pub(super) const CACHE: usize = 1 << 9;

    pub(super) fn new() -> Self {
        let cache = vec![(u32::MAX, 0); Self::CACHE];
        ThreadState {
            era: 1,
            locks: FREE,
            block: 0,
            blocks: 0,
            last_free: 0,
            trail: Vec::new(),
            overflown: false,
            cache,
        }
    }
    /// After a synchronisation.
    pub(super) fn synchronise(&mut self) {
        self.era += 1;
    }
    /// Another lock state, from event number `now` on.
    pub(super) fn enter(&mut self, state: State, now: u32) {
        if self.locks == FREE {
            self.last_free = now;
            self.trail.clear();
            self.overflown = false;
        } else {
            match self.trail.iter().position(|(known, _)| *known == self.locks) {
                Some(known) => self.trail[known].1 = now,
                None if self.trail.len() < TRAIL => self.trail.push((self.locks, now)),
                None => self.overflown = true,
            }
        }
        self.locks = state;
        self.era += 1;
    }
    pub(super) fn begin(&mut self) {
        self.blocks += 1;
        self.block = self.blocks;
        self.synchronise();
    }
    pub(super) fn end(&mut self) {
        self.block = 0;
        self.synchronise();
    }
    /// The least states that the thread was in after event number `since`, up to now.
    pub(super) fn between(&self, states: &States, since: u32, least: &mut Vec<State>) {
        least.clear();
        if self.locks == FREE || self.last_free > since || self.overflown {
            least.push(FREE);
            return;
        }
        least.push(self.locks);
        for &(state, last) in &self.trail {
            if last > since && !least.iter().any(|&other| states.within(other, state)) {
                least.retain(|&other| !states.within(state, other));
                least.push(state);
            }
        }
    }
}
