//! The simulated program behind a tiny trace: every step it makes is one that a real program could make then.

use super::TinyShape;
use crate::event::{READ_ORDERS, ReadOrder, UPDATE_ORDERS, WRITE_ORDERS, WriteOrder};
use crate::generate::random::Random;
use crate::ids::{LocId, ThreadId};
use crate::input::{InputEvent, InputOp};

pub(super) const TOKENS: usize = 2;
pub(super) const SEMAPHORES: usize = 2;
pub(super) const BLOCKS: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Nobody forked it yet, and somebody will have to.
    Unborn,
    /// Forked; it has not run.
    Forked,
    Running,
    /// About to release the lock it waits with.
    Sleeping(u32),
    /// Waits on the condition of this lock; whether a notify came.
    Asleep(u32, bool),
    /// About to take its lock back.
    Woken(u32),
    Joined,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Held {
    lock: u32,
    shared: bool,
}

struct Thread {
    life: Life,
    /// Every acquire not yet released, oldest first; a lock taken twice is here twice.
    held: Vec<Held>,
    block: Option<u32>,
    /// At the barrier; whether it may leave.
    gathered: Option<bool>,
}

pub(super) struct World<'a> {
    shape: &'a TinyShape,
    random: Random,
    threads: Vec<Thread>,
    memory: [i64; 8],
    /// Per token: sent, received.
    tokens: [(bool, bool); TOKENS],
    /// Whether somebody has counted the latch down.
    counted_down: bool,
    /// Count of each semaphore.
    semaphores: [u32; SEMAPHORES],
    pub(super) events: Vec<InputEvent>,
    /// Kernel events that the input events become.
    kernel: u32,
    /// Where to stop.
    target: u32,
    /// How often, out of eight, the thread that ran runs on: whole critical sections in a row, or none.
    steady: u32,
    /// How often, out of four, a thread takes a lock before it touches anything.
    careful: u32,
}

impl<'a> World<'a> {
    pub(super) fn new(seed: u64, shape: &'a TinyShape) -> Self {
        let mut random = Random::new(seed);
        let count = 2 + random.below(shape.threads.clamp(2, 8) - 1);
        let threads = (0..count).map(|t| {
            let unborn = shape.fork_join && t > 0 && random.below(3) < 2;
            Thread {
                life: if unborn { Life::Unborn } else { Life::Running },
                held: Vec::new(),
                block: None,
                gathered: None,
            }
        });
        let threads = threads.collect();
        let most = shape.events.clamp(2, 1_000);
        let target = most / 2 + random.below(most / 2 + 1);
        let events = Vec::with_capacity(most as usize);
        let (steady, careful) = (random.below(8), (2 * random.below(4)).min(4));
        let (tokens, semaphores) = Default::default();
        let memory = [0; 8];
        let mut world = Self {
            shape,
            random,
            threads,
            memory,
            tokens,
            counted_down: false,
            semaphores,
            events,
            kernel: 0,
            target,
            steady,
            careful,
        };
        if shape.semaphores {
            world.fill_semaphores();
        }
        world
    }

    pub(super) fn run(&mut self) {
        let mut idle = 0;
        let mut running = 0;
        while self.kernel + self.debt() < self.target && idle < 200 {
            if idle > 0 || self.random.below(8) >= self.steady {
                running = self.random.below(self.threads.len() as u32) as usize;
            }
            let t = running;
            // The dearest step is a wait: five events until it is over.
            let room = self.target - self.kernel - self.debt();
            idle = if self.step(t, room) { 0 } else { idle + 1 };
        }
        if !self.shape.open_scopes {
            while (0..self.threads.len()).any(|t| self.close(t)) {}
        }
    }

    /// Events still needed to close everything; none where the trace may stop anywhere.
    fn debt(&self) -> u32 {
        if self.shape.open_scopes {
            return 0;
        }
        let of = |thread: &Thread| {
            let life = match thread.life {
                Life::Sleeping(_) => 4,
                Life::Asleep(..) if self.shape.bare_waits => 1,
                Life::Asleep(..) => 3,
                Life::Woken(_) => 2,
                Life::Forked => 1,
                _ => 0,
            };
            life + thread.held.len() as u32 + u32::from(thread.block.is_some())
        };
        self.threads.iter().map(of).sum()
    }

    fn emit(&mut self, t: usize, op: InputOp, object: u32, value: Option<i64>) -> bool {
        if self.threads[t].life == Life::Forked {
            self.threads[t].life = Life::Running;
            self.kernel += 1;
        }
        let loc = LocId::from_number(self.events.len() as u64 + 1).unwrap_or(LocId::from_bits(0));
        self.events.push(InputEvent { thread: ThreadId(t as u32), op, object, value, loc });
        self.kernel += 1;
        true
    }

    /// Whether another thread's holding excludes taking the lock.
    fn excluded(&self, t: usize, lock: u32, shared: bool) -> bool {
        let excludes = |held: &Held| held.lock == lock && !(held.shared && shared);
        self.threads.iter().enumerate().any(|(other, thread)| other != t && thread.held.iter().any(excludes))
    }

    fn take(&mut self, t: usize, lock: u32, shared: bool) -> bool {
        self.threads[t].held.push(Held { lock, shared });
        let tries = self.shape.busy && self.random.one_in(3);
        let op = match (tries, shared) {
            (false, false) => InputOp::Acquire,
            (false, true) => InputOp::AcquireShared,
            (true, false) => InputOp::TryAcquire,
            (true, true) => InputOp::TryAcquireShared,
        };
        self.emit(t, op, lock, None)
    }

    fn release(&mut self, t: usize) -> bool {
        let held = self.threads[t].held.len() as u32;
        if held == 0 {
            return false;
        }
        let at = if self.shape.hand_over_hand { self.random.below(held) } else { held - 1 };
        let Held { lock, shared } = self.threads[t].held.remove(at as usize);
        self.emit(t, if shared { InputOp::ReleaseShared } else { InputOp::Release }, lock, None)
    }

    /// One step of the thread, if it can make one that leaves room for what it has to close.
    fn step(&mut self, t: usize, room: u32) -> bool {
        match self.threads[t].life {
            Life::Unborn | Life::Joined => return false,
            Life::Sleeping(_) | Life::Woken(_) => return self.close(t),
            Life::Asleep(_, notified) => return (notified || self.random.one_in(8)) && self.close(t),
            // Its first event also receives the token of its fork.
            Life::Forked if self.shape.open_scopes && room < 2 => return false,
            Life::Forked | Life::Running => {}
        }
        if let Some(free) = self.threads[t].gathered {
            return free && self.leave_barrier(t);
        }
        if self.shape.gatherings && self.random.one_in(4) {
            return self.gather(t);
        }
        if self.shape.blocks && self.threads[t].block.is_none() && self.random.one_in(3) {
            return self.block(t, room);
        }
        if self.shape.semaphores && self.random.one_in(2) {
            return self.semaphore(t);
        }
        if self.shape.lock_heavy && self.random.below(3) < 2 {
            if self.threads[t].held.is_empty() && self.random.one_in(2) {
                return self.nest(t, room);
            }
            // Two steps in and one out: nests of locks, taken in any order.
            return if self.random.below(3) < 2 { self.acquire(t, room) } else { self.release(t) };
        }
        if self.shape.wait_heavy && self.random.below(3) < 2 {
            return match self.shape.bare_waits {
                true if self.random.one_in(2) => self.sleep(t, room),
                true => self.notify(t),
                false => self.step_around_a_wait(t, room),
            };
        }
        let unguarded = self.shape.locks > 0 && self.threads[t].held.is_empty();
        match self.random.below(16) {
            0..=5 if unguarded && self.random.below(4) < self.careful => self.acquire(t, room),
            0..=5 => self.access(t),
            6..=8 => self.acquire(t, room),
            9..=10 => self.release(t),
            11 => self.shape.busy && self.fail_to_take(t),
            12 if self.random.one_in(2) => self.shape.fork_join && self.fork_or_join(t, room),
            12 => self.shape.tokens && self.token(t),
            13 => self.shape.conditions && self.sleep(t, room),
            14 if self.random.one_in(2) => self.shape.blocks && self.block(t, room),
            14 => self.shape.branches && self.emit(t, InputOp::Branch, 0, None),
            _ => self.shape.conditions && self.notify(t),
        }
    }

    fn step_around_a_wait(&mut self, t: usize, room: u32) -> bool {
        match self.threads[t].held.len() {
            0 if self.random.one_in(2) => self.acquire(t, room),
            1 if self.random.one_in(2) => self.sleep(t, room),
            _ => self.notify(t),
        }
    }

    fn access(&mut self, t: usize) -> bool {
        if self.shape.fences && self.kernel + self.debt() + 1 < self.target && self.random.one_in(3) {
            let fence = [InputOp::FenceAcquire, InputOp::FenceRelease, InputOp::Fence][self.random.below(3) as usize];
            self.emit(t, fence, 0, None);
        }
        let x = self.random.below(self.shape.variables.clamp(1, 8));
        let atomic = self.shape.atomics && self.random.one_in(3);
        let order = self.random.below(16) as usize;
        let write = i64::from(self.random.below(3));
        let cell = &mut self.memory[x as usize];
        let op = match self.random.below(8) {
            0 if self.shape.updates => InputOp::Update(UPDATE_ORDERS[order % UPDATE_ORDERS.len()]),
            0..=3 if atomic => InputOp::Read(READ_ORDERS[1 + order % (READ_ORDERS.len() - 1)]),
            0..=3 => InputOp::Read(ReadOrder::Plain),
            _ if atomic => InputOp::Write(WRITE_ORDERS[1 + order % (WRITE_ORDERS.len() - 1)]),
            _ => InputOp::Write(WriteOrder::Plain),
        };
        if !matches!(op, InputOp::Read(_)) {
            *cell = write;
        }
        let value = self.shape.values.then_some(*cell);
        let forgotten = self.shape.forgetful && self.random.one_in(5);
        self.emit(t, op, x, value.filter(|_| !forgotten));
        let room = self.kernel + self.debt() < self.target;
        if self.shape.branch_heavy && room && !matches!(op, InputOp::Write(_)) && self.random.one_in(2) {
            self.emit(t, InputOp::Branch, 0, None);
        }
        true
    }

    fn acquire(&mut self, t: usize, room: u32) -> bool {
        if self.shape.locks == 0 || room < 2 {
            return false;
        }
        let gate = self.shape.gate && self.threads[t].held.is_empty() && self.random.one_in(2);
        let lock = if gate { 0 } else { self.random.below(self.shape.locks) };
        let shared = self.shape.shared_locks && self.random.one_in(2);
        let mine = self.threads[t].held.iter().find(|held| held.lock == lock).copied();
        match mine {
            // Taken again as it is held: changing the mode in between is no lock's business.
            Some(held) => {
                let deep = self.threads[t].held.len() >= 4;
                self.shape.reentrant && !deep && self.take(t, lock, held.shared)
            }
            None => !self.excluded(t, lock, shared) && self.take(t, lock, shared),
        }
    }

    /// Takes two locks, one inside the other, and sometimes the gate around them, all at once.
    fn nest(&mut self, t: usize, room: u32) -> bool {
        let first = self.random.below(self.shape.locks);
        let second = (first + 1 + self.random.below(self.shape.locks.max(2) - 1)) % self.shape.locks;
        let gate = (self.shape.gate && self.random.one_in(2)).then_some(0);
        let mut wanted: Vec<u32> = gate.into_iter().chain([first, second]).collect();
        wanted.dedup();
        let free = |&lock: &u32| !self.excluded(t, lock, false);
        let distinct = (1..wanted.len()).all(|i| !wanted[..i].contains(&wanted[i]));
        if room < 2 * wanted.len() as u32 || !distinct || !wanted.iter().all(free) {
            return false;
        }
        wanted.into_iter().all(|lock| self.take(t, lock, false))
    }

    fn fail_to_take(&mut self, t: usize) -> bool {
        let lock = self.random.below(self.shape.locks);
        let shared = self.shape.shared_locks && self.random.one_in(2);
        let op = if shared { InputOp::BusyShared } else { InputOp::Busy };
        self.excluded(t, lock, shared) && self.emit(t, op, lock, None)
    }

    fn fork_or_join(&mut self, t: usize, room: u32) -> bool {
        let other = self.random.below(self.threads.len() as u32) as usize;
        let idle = self.threads[other].held.is_empty() && self.threads[other].block.is_none();
        match self.threads[other].life {
            Life::Unborn if room >= 2 => {
                self.threads[other].life = Life::Forked;
                self.emit(t, InputOp::Fork, other as u32, None)
            }
            // Joining is rare and mostly late: a joined thread adds nothing more.
            Life::Running if other != t && idle && (2..8).contains(&room) => {
                self.threads[other].life = Life::Joined;
                self.kernel += 1;
                self.emit(t, InputOp::Join, other as u32, None)
            }
            _ => false,
        }
    }

    /// Sets where the semaphores begin: mostly where somebody has to post first. That is no kernel event.
    fn fill_semaphores(&mut self) {
        for s in 0..SEMAPHORES {
            let count = self.random.below(4).saturating_sub(1);
            if count > 0 || self.random.one_in(2) {
                self.semaphores[s] = count;
                let event = InputEvent {
                    thread: ThreadId(0),
                    op: InputOp::SemaphoreInit,
                    object: s as u32,
                    value: Some(count.into()),
                    loc: LocId::from_number(self.events.len() as u64 + 1).unwrap_or(LocId::from_bits(0)),
                };
                self.events.push(event);
            }
        }
    }

    /// Waits where it can, fails to where it cannot, and posts; mostly the first semaphore.
    fn semaphore(&mut self, t: usize) -> bool {
        let s = usize::from(self.random.one_in(4));
        let count = self.semaphores[s];
        if self.random.below(5) < 2 {
            self.semaphores[s] = count + 1;
            return self.emit(t, InputOp::Post, s as u32, None);
        }
        match count {
            0 => self.random.one_in(4) && self.emit(t, InputOp::SemaphoreBusy, s as u32, None),
            _ => {
                self.semaphores[s] = count - 1;
                self.emit(t, InputOp::SemaphoreWait, s as u32, None)
            }
        }
    }

    /// Comes to a barrier where two meet, or to a latch.
    fn gather(&mut self, t: usize) -> bool {
        if self.random.one_in(3) {
            let passes = self.counted_down && self.random.one_in(2);
            self.counted_down = true;
            return self.emit(t, if passes { InputOp::LatchWait } else { InputOp::CountDown }, 0, None);
        }
        let other = self.threads.iter().position(|thread| thread.gathered == Some(false));
        if let Some(other) = other {
            self.threads[other].gathered = Some(true);
        }
        self.threads[t].gathered = Some(other.is_some());
        self.emit(t, InputOp::Arrive, 0, None)
    }

    fn leave_barrier(&mut self, t: usize) -> bool {
        self.threads[t].gathered = None;
        self.emit(t, InputOp::Depart, 0, None)
    }

    fn token(&mut self, t: usize) -> bool {
        let k = self.random.below(TOKENS as u32);
        let (sent, received) = self.tokens[k as usize];
        if sent && (received || self.random.one_in(2)) {
            self.tokens[k as usize].1 = true;
            return self.emit(t, InputOp::Receive, k, None);
        }
        self.tokens[k as usize].0 = true;
        self.emit(t, InputOp::Send, k, None)
    }

    fn sleep(&mut self, t: usize, room: u32) -> bool {
        if self.shape.bare_waits {
            return self.sleep_without_a_lock(t, room);
        }
        // Waiting with one lock held, once: a sleeper that keeps others could never be woken in some orders.
        let [Held { lock, shared: false }] = self.threads[t].held[..] else { return false };
        let others = self.threads.iter().filter(|thread| matches!(thread.life, Life::Running | Life::Woken(_))).count();
        if room < 5 || others < 2 {
            return false;
        }
        self.threads[t].life = Life::Sleeping(lock);
        self.emit(t, InputOp::Sleep, lock, None)
    }

    fn sleep_without_a_lock(&mut self, t: usize, room: u32) -> bool {
        let others = self.threads.iter().filter(|thread| thread.life == Life::Running).count();
        if room < 2 || others < 2 || !self.threads[t].held.is_empty() {
            return false;
        }
        let condition = self.random.below(self.shape.locks);
        self.emit(t, InputOp::Sleep, condition, None);
        // What it sends now, another receives before it notifies: that notify cannot come too early.
        if let Some(k) = self.tokens.iter().position(|token| !token.0)
            && self.shape.tokens
            && room > 2
            && self.random.below(3) < 2
        {
            self.tokens[k].0 = true;
            self.emit(t, InputOp::Send, k as u32, None);
        }
        self.threads[t].life = Life::Asleep(condition, false);
        true
    }

    fn notify(&mut self, t: usize) -> bool {
        if self.shape.locks == 0 {
            return false;
        }
        let sleeping = self.threads.iter().find_map(|thread| match thread.life {
            Life::Asleep(lock, false) => Some(lock),
            _ => None,
        });
        let lock = match sleeping {
            Some(lock) if !self.random.one_in(4) => lock,
            _ if self.random.one_in(4) => self.random.below(self.shape.locks),
            _ => return false,
        };
        if let Some(k) = self.tokens.iter().position(|token| *token == (true, false))
            && self.shape.bare_waits
            && self.random.below(3) < 2
        {
            self.tokens[k].1 = true;
            return self.emit(t, InputOp::Receive, k as u32, None);
        }
        let all = self.random.one_in(3);
        for thread in &mut self.threads {
            if thread.life == Life::Asleep(lock, false) {
                thread.life = Life::Asleep(lock, true);
                if !all {
                    break;
                }
            }
        }
        self.emit(t, if all { InputOp::NotifyAll } else { InputOp::Notify }, lock, None)
    }

    fn block(&mut self, t: usize, room: u32) -> bool {
        match self.threads[t].block.take() {
            Some(block) => self.emit(t, InputOp::End, block, None),
            None if room < 2 => false,
            None => {
                let block = self.random.below(BLOCKS);
                self.threads[t].block = Some(block);
                self.emit(t, InputOp::Begin, block, None)
            }
        }
    }

    /// The next step towards a thread that holds nothing and sleeps nowhere.
    fn close(&mut self, t: usize) -> bool {
        let life = self.threads[t].life;
        match life {
            Life::Sleeping(lock) => {
                self.threads[t].held.clear();
                self.threads[t].life = Life::Asleep(lock, false);
                self.emit(t, InputOp::Release, lock, None)
            }
            Life::Asleep(lock, notified) => {
                self.threads[t].life = if self.shape.bare_waits { Life::Running } else { Life::Woken(lock) };
                self.emit(t, if notified { InputOp::Wake } else { InputOp::TimeOut }, lock, None)
            }
            Life::Woken(lock) if self.excluded(t, lock, false) => false,
            Life::Woken(lock) => {
                self.threads[t].life = Life::Running;
                self.take(t, lock, false)
            }
            Life::Running | Life::Forked if self.release(t) => true,
            Life::Running | Life::Forked => match self.threads[t].block.take() {
                Some(block) => self.emit(t, InputOp::End, block, None),
                None => false,
            },
            Life::Unborn | Life::Joined => false,
        }
    }
}
