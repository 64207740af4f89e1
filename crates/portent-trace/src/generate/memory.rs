//! Memory of the simulated program: what variables hold, and which one a thread accesses next.
//!
//! Variables are numbered: first the plain shared ones, then the atomic ones, then those that belong to one thread each
//! (thread t owns every `threads`-th of them). Shared variable x is usually guarded by lock x modulo the number of locks; where
//! there are more locks than variables, lock l guards variable l modulo the number of variables, wrongly thinking it is alone.

use super::config::Config;
use super::machine::Machine;
use super::random::Chance;
use crate::event::{READ_ORDERS, ReadOrder, UPDATE_ORDERS, WRITE_ORDERS, WriteOrder};
use crate::input::InputOp;

#[derive(Clone, Debug)]
pub(super) struct Memory {
    values: Vec<i64>,
    touched: Vec<bool>,
    /// Plain shared variables, and all shared variables.
    plain: u32,
    shared: u32,
    pub(super) hot: u32,
    /// Shared variables below this are touched; per lock, those of its variables.
    cursor: u32,
    cursors: Vec<u32>,
    chances: Chances,
}

#[derive(Clone, Debug)]
struct Chances {
    reads: Chance,
    updates: Chance,
    atomic: Chance,
    values: Chance,
    /// Of reads, if any, that a branch follows.
    branches: Option<Chance>,
    local: Chance,
    unguarded: Chance,
    hot: Chance,
}

impl Memory {
    pub(super) fn new(config: &Config) -> Self {
        let all = config.variables;
        let local = ((f64::from(all) * config.local) as u32).min(all - 1);
        let shared = all - local;
        let atomic_share = (config.atomic + config.updates).min(1.0);
        let atomic = match (f64::from(shared) * atomic_share) as u32 {
            _ if shared < 2 || atomic_share == 0.0 => 0,
            count => count.clamp(1, shared - 1),
        };
        // Given that an access does not read, this is how likely it updates.
        let updates = if config.reads < 1.0 { config.updates / (1.0 - config.reads) } else { 0.0 };
        let chances = Chances {
            reads: Chance::of(config.reads),
            updates: Chance::of(updates),
            atomic: Chance::of(config.atomic),
            values: Chance::of(config.values),
            branches: Some(config.read_branches()).filter(|share| *share > 0.0).map(Chance::of),
            local: Chance::of(config.local),
            unguarded: Chance::of(config.unguarded),
            hot: Chance::of(config.hot),
        };
        let plain = shared - atomic;
        Self {
            values: vec![0; all as usize],
            touched: vec![false; all as usize],
            plain,
            shared,
            hot: config.hot_variables.min(plain),
            cursor: 0,
            cursors: vec![0; config.locks as usize],
            chances,
        }
    }
}

/// How often a random access goes to a variable that nobody touched yet, as long as there are some: once in so many times.
const EXPLORE: u32 = 4;

impl Machine {
    /// The lock that the next critical section should use.
    pub(super) fn favourite_lock(&mut self) -> u32 {
        if self.random.chance(self.memory.chances.hot) {
            self.random.below(self.memory.hot) % self.config.locks
        } else {
            self.random.below(self.config.locks)
        }
    }

    /// The `k`-th variable that belongs to the thread.
    fn own_variable(&self, t: u32, k: u32) -> u32 {
        self.memory.shared + t + k * self.config.threads
    }

    fn own_variables(&self, t: u32) -> u32 {
        let local = self.config.variables - self.memory.shared;
        if t < local { (local - t).div_ceil(self.config.threads) } else { 0 }
    }

    fn pick_own(&mut self, t: u32, owned: u32) -> u32 {
        let next = self.threads[t as usize].local_cursor;
        if next < owned && self.random.one_in(EXPLORE) {
            self.threads[t as usize].local_cursor += 1;
            return self.own_variable(t, next);
        }
        let k = self.random.below(owned);
        self.own_variable(t, k)
    }

    /// A plain variable that this lock guards.
    fn pick_guarded(&mut self, lock: u32) -> u32 {
        let (plain, locks, hot) = (self.memory.plain, self.config.locks, self.memory.hot);
        if plain <= locks {
            return lock % plain;
        }
        let guarded = (plain - lock).div_ceil(locks);
        let next = self.memory.cursors[lock as usize];
        if next < guarded && self.random.one_in(EXPLORE) {
            self.memory.cursors[lock as usize] += 1;
            return lock + next * locks;
        }
        if lock < hot && self.random.chance(self.memory.chances.hot) {
            return lock + self.random.below((hot - lock).div_ceil(locks)) * locks;
        }
        lock + self.random.below(guarded) * locks
    }

    fn pick_plain(&mut self) -> u32 {
        let bound = if self.random.chance(self.memory.chances.hot) { self.memory.hot } else { self.memory.plain };
        self.random.below(bound)
    }

    /// The first shared variable that nobody touched.
    fn untouched_shared(&mut self) -> Option<u32> {
        let memory = &mut self.memory;
        while memory.cursor < memory.shared && memory.touched[memory.cursor as usize] {
            memory.cursor += 1;
        }
        (memory.cursor < memory.shared).then_some(memory.cursor)
    }

    /// Accesses memory as the thread's program would.
    pub(super) fn access(&mut self, t: u32) -> bool {
        self.plan.accesses = self.plan.accesses.saturating_sub(1);
        let owned = self.own_variables(t);
        let held = self.threads[t as usize].held.last().copied();
        let unguarded = self.random.chance(self.memory.chances.unguarded);
        if self.random.chance(self.memory.chances.atomic) {
            return self.access_atomic(t);
        }
        let x = match held {
            Some(_) if owned > 0 && self.random.chance(self.memory.chances.local) => self.pick_own(t, owned),
            Some(held) if !unguarded => self.pick_guarded(held.lock),
            None if !unguarded && owned > 0 => self.pick_own(t, owned),
            _ => self.pick_plain(),
        };
        // Readers of a read-write lock only read, if they keep to the rules.
        let only_reads = held.is_some_and(|held| held.shared) && !unguarded && x < self.memory.shared;
        if only_reads || self.random.chance(self.memory.chances.reads) {
            return self.touch(t, x, InputOp::Read(ReadOrder::Plain));
        }
        if self.random.chance(self.memory.chances.updates) {
            return self.access_updating(t);
        }
        self.touch(t, x, InputOp::Write(WriteOrder::Plain))
    }

    fn pick_atomic(&mut self) -> u32 {
        let (plain, shared) = (self.memory.plain, self.memory.shared);
        if plain < shared { plain + self.random.below(shared - plain) } else { self.pick_plain() }
    }

    /// An atomic read or write; each variable has its own memory order.
    fn access_atomic(&mut self, t: u32) -> bool {
        let x = self.pick_atomic();
        if self.random.chance(self.memory.chances.reads) {
            let order = READ_ORDERS[1 + x as usize % (READ_ORDERS.len() - 1)];
            return self.touch(t, x, InputOp::Read(order));
        }
        if self.random.chance(self.memory.chances.updates) {
            return self.access_updating(t);
        }
        self.touch(t, x, InputOp::Write(WRITE_ORDERS[1 + x as usize % (WRITE_ORDERS.len() - 1)]))
    }

    fn access_updating(&mut self, t: u32) -> bool {
        let x = self.pick_atomic();
        self.touch(t, x, InputOp::Update(UPDATE_ORDERS[x as usize % UPDATE_ORDERS.len()]))
    }

    /// Accesses a variable that has to be touched before the end, and that this thread can touch.
    pub(super) fn access_untouched(&mut self, t: u32) -> bool {
        let owned = self.own_variables(t);
        while self.threads[t as usize].local_touched < owned {
            let x = self.own_variable(t, self.threads[t as usize].local_touched);
            self.threads[t as usize].local_touched += 1;
            if !self.memory.touched[x as usize] {
                return self.touch(t, x, InputOp::Write(WriteOrder::Plain));
            }
        }
        match self.untouched_shared() {
            Some(x) if x >= self.memory.plain => self.touch(t, x, InputOp::Write(WriteOrder::SeqCst)),
            Some(x) => self.touch(t, x, InputOp::Read(ReadOrder::Plain)),
            None => false,
        }
    }

    #[inline]
    fn touch(&mut self, t: u32, x: u32, op: InputOp) -> bool {
        let at = x as usize;
        if !self.memory.touched[at] {
            self.memory.touched[at] = true;
            self.debt -= 1;
        }
        let value = match &mut self.computing {
            Some(computing) => {
                let (random, held, event) = (&mut self.random, &mut self.memory.values[at], self.emitted);
                match op {
                    InputOp::Read(_) => computing.read(t, *held),
                    InputOp::Write(_) => *held = computing.write(random, t, x, event),
                    _ => *held = computing.update(random, t, x, *held, event),
                }
                Some(*held)
            }
            None => {
                match op {
                    InputOp::Read(_) => {}
                    InputOp::Write(_) => self.memory.values[at] = i64::from(self.random.below(16)),
                    _ => self.memory.values[at] = self.memory.values[at].wrapping_add(1),
                }
                self.random.chance(self.memory.chances.values).then_some(self.memory.values[at])
            }
        };
        let thread = &mut self.threads[t as usize];
        thread.section_left = thread.section_left.saturating_sub(1);
        self.emit_value(t, op, x, value);
        if let (InputOp::Read(_), Some(branches)) = (op, self.memory.chances.branches)
            && self.random.chance(branches)
            && self.slack() > 0
        {
            self.threads[t as usize].branches_next = true;
            self.debt += 1;
        }
        true
    }
}
