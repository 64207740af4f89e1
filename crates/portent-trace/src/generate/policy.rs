//! What threads decide to do: who runs next, and which possible step it takes.
//!
//! While there is slack, kinds of events are drawn from the plan without replacement. Once there is none, threads only finish
//! what is begun and touch what must still be touched (*draining*), until nothing is left.

use super::machine::{Held, Life, Machine, NOBODY, Until};
use super::objects::{call_or_return, end_once, open_round, use_latch, use_once, use_semaphore, use_token};
use super::plan::Kind;
use super::random::Chance;
use crate::input::InputOp;

/// How deep re-entrant acquires and calls go.
pub(super) const DEPTH: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct Policy {
    current: u32,
    switch: Chance,
    hand_over_hand: Chance,
    reentrant: Chance,
    shared: Chance,
    notify_all: Chance,
    time_outs: Chance,
}

impl Policy {
    pub(super) fn new(machine: &Machine) -> Self {
        let config = &machine.config;
        Self {
            current: 0,
            switch: Chance::of(1.0 / f64::from(config.quantum)),
            hand_over_hand: Chance::of(config.hand_over_hand),
            reentrant: Chance::of(config.reentrant),
            shared: Chance::of(config.shared),
            notify_all: Chance::of(config.notify_all),
            time_outs: Chance::of(config.time_outs),
        }
    }

    /// One event of some thread; false if no thread can make one, which only happens at the end.
    pub(super) fn step(&mut self, m: &mut Machine) -> bool {
        if !m.random.chance(self.switch) && self.act(m, self.current, true) {
            return true;
        }
        let start = m.random.below(m.runnable.len() as u32) as usize;
        loop {
            let living = m.living;
            // Sleepers with a time-out are patient in the first round and not in the second.
            if self.step_any(m, start, true) || self.step_any(m, start, false) {
                return true;
            }
            // Threads that finished made no event, but let those that join them go on.
            if m.living == living {
                return false;
            }
        }
    }

    /// One event of the first runnable thread, from the `start`-th on, that can make one.
    fn step_any(&mut self, m: &mut Machine, start: usize, patient: bool) -> bool {
        for at in start..start + m.runnable.len() {
            let t = m.runnable[at % m.runnable.len()];
            if self.act(m, t, patient) {
                self.current = t;
                return true;
            }
        }
        false
    }

    /// One event of the thread, if it can make one now.
    #[inline]
    fn act(&mut self, m: &mut Machine, t: u32, patient: bool) -> bool {
        match m.threads[t as usize].life {
            Life::Free => self.act_freely(m, t),
            Life::Sleeping(condition, until) => m.release_to_sleep(t, condition, until),
            Life::TimedSleep(_) if patient && !m.random.one_in(4) => false,
            Life::TimedSleep(condition) => m.wake(t, InputOp::TimeOut, condition),
            Life::Notified(condition) => m.wake(t, InputOp::Wake, condition),
            Life::Retaking => m.retake(t),
            Life::Departing(barrier) => m.depart(t, barrier),
            Life::Unborn | Life::Asleep | Life::Parked(_) | Life::Finished => false,
        }
    }

    fn act_freely(&mut self, m: &mut Machine, t: u32) -> bool {
        let thread = &m.threads[t as usize];
        if thread.branches_next {
            return m.branch(t);
        }
        let slack = m.slack();
        let holds = !thread.held.is_empty();
        let forks = thread.unforked.0 < thread.unforked.1;
        // A flat start forks everybody at once; in a tree, children come now and then.
        if forks && (m.config.start == super::Start::Flat || slack == 0 || m.random.one_in(4)) {
            return m.fork(t);
        }
        if slack == 0 {
            return self.drain(m, t);
        }
        let thread = &m.threads[t as usize];
        if holds && thread.section_left == 0 && thread.intent.is_none() {
            return self.release(m, t);
        }
        if thread.block_clock == 0 && !holds && (thread.block.is_some() || m.blocks_left > 0) {
            return self.turn_block(m, t);
        }
        if let Some(condition) = thread.intent {
            m.threads[t as usize].intent = None;
            if self.sleep(m, t, condition) {
                return true;
            }
        }
        if m.threads[t as usize].once.is_some() && m.random.one_in(4) {
            return end_once(m, t);
        }
        if m.round.is_some() && !holds && m.random.one_in(4) && may_park(m) {
            return m.arrive(t);
        }
        if !m.sleepers.is_empty() && m.awake() == 1 {
            return self.notify(m, t);
        }
        self.draw(m, t)
    }

    /// Draws what to do from what is left of the plan.
    #[inline]
    fn draw(&mut self, m: &mut Machine, t: u32) -> bool {
        let depth = m.threads[t as usize].held.len() as u32;
        let (accesses, acquires) = (m.plan.accesses, m.plan.acquires);
        let (access, acquire) = match depth {
            // So that what is left for critical sections fits into them.
            0 => (accesses.saturating_sub(acquires * u64::from(m.config.section)), acquires),
            _ if depth < m.config.nesting => (accesses, acquires / 4),
            _ => (accesses, 0),
        };
        let drawn = m.random.below_wide(access + acquire + m.plan.left);
        if drawn < access {
            return m.access(t);
        }
        if drawn < access + acquire {
            // A thread that holds nothing waits for a lock: whoever holds it can always go on.
            return self.acquire(m, t) || ((depth > 0 || m.slack() < 2) && m.access(t));
        }
        if m.plan.left == 0 {
            return m.access(t);
        }
        let kind = m.plan.kind(drawn - access - acquire);
        if self.perform(m, t, kind) {
            m.plan.spend(kind);
            return true;
        }
        m.access(t)
    }

    fn perform(&mut self, m: &mut Machine, t: u32, kind: Kind) -> bool {
        match kind {
            Kind::Branch => m.branch(t),
            Kind::Call => call_or_return(m, t),
            Kind::Busy => self.fail_to_take(m, t),
            Kind::Wait => self.wait(m, t),
            Kind::Notify => self.notify(m, t),
            Kind::Semaphore => use_semaphore(m, t),
            Kind::Latch => use_latch(m, t),
            Kind::Token => use_token(m, t),
            Kind::Once => use_once(m, t),
            Kind::Barrier => open_round(m, t),
        }
    }

    fn acquire(&mut self, m: &mut Machine, t: u32) -> bool {
        let held = &m.threads[t as usize].held;
        if let Some(top) = held.last()
            && top.depth < DEPTH
            && m.slack() >= 2
            && m.random.chance(self.reentrant)
        {
            m.plan.acquires = m.plan.acquires.saturating_sub(1);
            return m.reacquire(t, m.threads[t as usize].held.len() - 1);
        }
        let shared = m.random.chance(self.shared);
        for _ in 0..3 {
            let mut lock = if m.untaken > 0 && m.random.one_in(3) {
                let start = m.random.below(m.config.locks);
                (start..m.config.locks).chain(0..start).take(64).find(|lock| m.is_untaken(*lock)).unwrap_or(start)
            } else {
                m.favourite_lock()
            };
            let held = &m.threads[t as usize].held;
            if m.config.ordered_locks
                && let Some(highest) = held.iter().map(|held| held.lock).max()
                && lock <= highest
            {
                lock = highest + 1 + m.random.below(m.config.locks - 1 - highest);
                if lock >= m.config.locks {
                    return false;
                }
            }
            if self.take(m, t, lock, shared) {
                return true;
            }
        }
        false
    }

    fn take(&mut self, m: &mut Machine, t: u32, lock: u32, shared: bool) -> bool {
        let mine = m.threads[t as usize].held.iter().any(|held| held.lock == lock);
        let affordable = m.is_untaken(lock) || m.slack() >= 2;
        if mine || !affordable || !m.is_free(lock, shared) {
            return false;
        }
        m.plan.acquires = m.plan.acquires.saturating_sub(1);
        m.acquire(t, lock, shared)
    }

    fn release(&mut self, m: &mut Machine, t: u32) -> bool {
        let last = m.threads[t as usize].held.len() - 1;
        let oldest = last > 0 && m.random.chance(self.hand_over_hand);
        m.release(t, if oldest { 0 } else { last })
    }

    /// A failed try at a lock that some other thread really holds.
    fn fail_to_take(&mut self, m: &mut Machine, t: u32) -> bool {
        let other = m.random.below(m.config.threads);
        let Some(&Held { lock, shared, .. }) = m.threads[other as usize].held.last() else { return false };
        let try_shared = !shared && m.random.chance(self.shared);
        let owner = m.locks[lock as usize].owner;
        if other == t || (owner == NOBODY && !shared) {
            return false;
        }
        m.emit(t, if try_shared { InputOp::BusyShared } else { InputOp::Busy }, lock)
    }

    /// Begins a wait, taking the condition's lock first if need be.
    fn wait(&mut self, m: &mut Machine, t: u32) -> bool {
        let conditions = m.config.conditions;
        let condition = match m.threads[t as usize].held[..] {
            [] => m.random.below(conditions),
            // A condition of the lock it holds, if there is one.
            [Held { lock, .. }] if lock < conditions => {
                lock + m.config.locks * m.random.below((conditions - lock).div_ceil(m.config.locks))
            }
            _ => return false,
        };
        if m.awake() < 2 || m.slack() < 7 {
            return false;
        }
        if !m.threads[t as usize].held.is_empty() {
            return self.sleep(m, t, condition);
        }
        // The plan counts the wait when it is asked for; giving up later is rare.
        let taken = self.take(m, t, condition % m.config.locks, false);
        m.threads[t as usize].intent = taken.then_some(condition);
        taken
    }

    fn sleep(&mut self, m: &mut Machine, t: u32, condition: u32) -> bool {
        let lock = condition % m.config.locks;
        let ready = matches!(m.threads[t as usize].held[..], [held] if held.lock == lock && !held.shared);
        if !ready || m.awake() < 2 || m.slack() < 5 {
            return false;
        }
        let timed = m.random.chance(self.time_outs);
        m.sleep(t, condition, if timed { Until::TimeOut } else { Until::Notify })
    }

    /// Notifies somebody; rarely nobody, as real programs do.
    fn notify(&mut self, m: &mut Machine, t: u32) -> bool {
        let condition = match m.sleepers.len() as u32 {
            0 if m.random.one_in(16) => m.random.below(m.config.conditions),
            0 => return false,
            sleepers => m.sleepers[m.random.below(sleepers) as usize].1,
        };
        let all = m.random.chance(self.notify_all);
        m.notify(t, condition, all)
    }

    /// Ends the block the thread is in, or begins one.
    fn turn_block(&mut self, m: &mut Machine, t: u32) -> bool {
        let config = &m.config;
        let blocks = m.blocks_left.max(1);
        let left = (config.events - m.emitted) as f64;
        let share = config.block_share;
        // Events of the thread until the next turn, such that the blocks left fill their share of the events left.
        let inside = left * share / blocks as f64;
        let outside = left * (1.0 - share) / blocks as f64;
        let most = left * 0.8 / f64::from(config.threads);
        let ends = m.threads[t as usize].block.is_some();
        let mean = if ends { outside } else { inside }.min(most);
        m.threads[t as usize].block_clock = m.random.around(mean as u64);
        turn_block(m, t)
    }

    /// The next step towards the end of the program; finishes the thread if there is none left for it.
    fn drain(&mut self, m: &mut Machine, t: u32) -> bool {
        let thread = &mut m.threads[t as usize];
        thread.intent = None;
        if !thread.held.is_empty() {
            return self.release(m, t);
        }
        if thread.once.is_some() {
            return end_once(m, t);
        }
        if let Some(function) = thread.calls.pop() {
            m.debt -= 1;
            return m.emit(t, InputOp::Return, function);
        }
        if !m.sleepers.is_empty() {
            let condition = m.sleepers[0].1;
            return m.notify(t, condition, false);
        }
        if m.round.is_some() && may_park(m) {
            return m.arrive(t);
        }
        if m.threads[t as usize].block.is_none() && m.blocks_left > 0 {
            return turn_block(m, t);
        }
        if m.access_untouched(t) {
            return true;
        }
        if m.untaken > 0
            && let Some(lock) = (0..m.config.locks).find(|lock| m.is_untaken(*lock))
        {
            return m.acquire(t, lock, false);
        }
        if m.threads[t as usize].block.is_some() {
            return turn_block(m, t);
        }
        if !m.threads[t as usize].ran {
            return m.access(t);
        }
        let (next, end) = m.threads[t as usize].unjoined;
        if next < end {
            return m.join(t);
        }
        if t > 0 {
            m.finish(t);
        }
        false
    }
}

/// Whether a thread may wait at the barrier: somebody must be left to let the sleepers go on.
fn may_park(m: &Machine) -> bool {
    m.awake() > 1 || m.round.is_some_and(|round| round.missing == 1)
}

fn turn_block(m: &mut Machine, t: u32) -> bool {
    m.debt -= 1;
    if let Some(block) = m.threads[t as usize].block.take() {
        return m.emit(t, InputOp::End, block);
    }
    m.blocks_left -= 1;
    let block = m.random.below(super::block_names(&m.config));
    m.threads[t as usize].block = Some(block);
    m.emit(t, InputOp::Begin, block)
}
