//! The simulated program: threads, memory, locks and the rest, and the steps that change them.
//!
//! Every method here makes one step that is possible now and emits its event, so whatever the policy (`policy`, `memory`)
//! asks for, the trace is well-formed.
//!
//! The **debt** is the number of events still needed to end the program properly and to touch everything that was asked for.
//! Whoever starts something adds to it, whoever finishes something pays. The policy starts nothing that the events left
//! over (the *slack*) cannot pay for, which is why traces have exactly the length asked for.

use super::computing::Computing;
use super::config::{Config, Start};
use super::memory::Memory;
use super::plan::Plan;
use super::random::Random;
use super::sites::Sites;
use crate::ids::ThreadId;
use crate::input::{InputBatch, InputEvent, InputOp};

pub(super) const NOBODY: u32 = u32::MAX;

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Notify,
    TimeOut,
    /// A notify that has come already.
    Now,
}

/// What a thread can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Not forked yet.
    Unborn,
    /// Whatever it likes.
    Free,
    /// Release its lock, then sleep on this condition.
    Sleeping(u32, Until),
    /// Nothing, until the condition is notified.
    Asleep,
    /// Wake up on this condition: by time-out, or by a notify.
    TimedSleep(u32),
    Notified(u32),
    /// Take its lock back.
    Retaking,
    /// Nothing, until the barrier's round is full.
    Parked(u32),
    /// Leave the barrier.
    Departing(u32),
    /// Nothing ever more.
    Finished,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) lock: u32,
    pub(super) shared: bool,
    pub(super) depth: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) life: Life,
    /// Position in the list of runnable threads.
    at: u32,
    pub(super) ran: bool,
    /// Locks held, oldest first.
    pub(super) held: Vec<Held>,
    /// The lock that a waiting thread will take back.
    pub(super) retake: Held,
    /// Accesses before the next release.
    pub(super) section_left: u32,
    /// The condition that it takes a lock for.
    pub(super) intent: Option<u32>,
    /// It branches next, on what it has just read.
    pub(super) branches_next: bool,
    /// Functions it is in.
    pub(super) calls: Vec<u32>,
    pub(super) once: Option<u32>,
    pub(super) block: Option<u32>,
    /// Own events before the next begin or end.
    pub(super) block_clock: u64,
    /// Children not yet forked, and forked but not yet joined: from the first to before the last.
    pub(super) unforked: (u32, u32),
    pub(super) unjoined: (u32, u32),
    /// Own variables offered to the program so far, and own variables known to be touched.
    pub(super) local_cursor: u32,
    pub(super) local_touched: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) owner: u32,
    pub(super) readers: u32,
    taken: bool,
}

/// A barrier round that fills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) barrier: u32,
    pub(super) missing: u32,
}

/// How far a once object, a latch or a token has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Fresh,
    Begun,
    Done,
}

#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) config: Config,
    pub(super) random: Random,
    pub(super) plan: Plan,
    pub(super) memory: Memory,
    /// What threads compute, in symbolic traces.
    pub(super) computing: Option<Computing>,
    pub(super) sites: Sites,
    pub(super) out: InputBatch,
    pub(super) emitted: u64,
    pub(super) debt: u64,
    pub(super) threads: Vec<Thread>,
    pub(super) runnable: Vec<u32>,
    /// Threads born and not finished, and how many of them wait at a barrier.
    pub(super) living: u32,
    pub(super) parked: u32,
    pub(super) locks: Vec<Lock>,
    pub(super) untaken: u32,
    pub(super) blocks_left: u64,
    /// Who sleeps until notified, on what, longest first.
    pub(super) sleepers: Vec<(u32, u32)>,
    pub(super) round: Option<Round>,
    /// Count of each semaphore, once it is set.
    pub(super) semaphores: Vec<Option<u32>>,
    pub(super) latches: Vec<Phase>,
    pub(super) tokens: Vec<Phase>,
    pub(super) onces: Vec<Phase>,
}

impl Machine {
    pub(super) fn new(config: Config, sites: Sites) -> Self {
        let n = config.threads;
        let children = |t: u32| match config.start {
            Start::Unforked => (0, 0),
            Start::Flat if t == 0 => (1, n),
            Start::Flat => (0, 0),
            Start::Tree => ((2 * t + 1).min(n), (2 * t + 3).min(n)),
        };
        let idle = Held { lock: 0, shared: false, depth: 0 };
        let thread = |t: u32| Thread {
            life: Life::Unborn,
            at: 0,
            ran: false,
            held: Vec::with_capacity(config.nesting as usize + 1),
            retake: idle,
            section_left: 0,
            intent: None,
            branches_next: false,
            calls: Vec::new(),
            once: None,
            block: None,
            block_clock: 0,
            unforked: children(t),
            unjoined: children(t),
            local_cursor: 0,
            local_touched: 0,
        };
        let lock = Lock { owner: NOBODY, readers: 0, taken: false };
        let mut machine = Self {
            random: Random::new(config.seed),
            plan: Plan::new(&config),
            memory: Memory::new(&config),
            computing: config.symbolic.then(|| Computing::new(n, config.variables)),
            sites,
            out: InputBatch::default(),
            emitted: 0,
            debt: config.fewest_events(),
            threads: (0..n).map(thread).collect(),
            runnable: Vec::with_capacity(n as usize),
            living: 0,
            parked: 0,
            locks: vec![lock; config.locks as usize],
            untaken: config.locks,
            blocks_left: config.blocks,
            sleepers: Vec::new(),
            round: None,
            semaphores: vec![None; config.semaphores as usize],
            latches: vec![Phase::Fresh; config.latches as usize],
            tokens: vec![Phase::Fresh; config.tokens as usize],
            onces: vec![Phase::Fresh; config.once as usize],
            config,
        };
        let born = if machine.config.start == Start::Unforked { n } else { 1 };
        (0..born).for_each(|t| machine.be_born(t));
        machine
    }

    /// Events that nobody needs for anything yet.
    #[inline]
    pub(super) fn slack(&self) -> u64 {
        if self.config.truncated { u64::MAX } else { self.config.events - self.emitted - self.debt }
    }

    /// Threads that wait for nobody to notify them or to come to a barrier. At least one always does.
    pub(super) fn awake(&self) -> u32 {
        self.living - self.parked - self.sleepers.len() as u32
    }

    #[inline]
    pub(super) fn emit_value(&mut self, t: u32, op: InputOp, object: u32, value: Option<i64>) -> bool {
        let bits = self.random.bits();
        let loc = self.sites.pick(op, object, bits);
        // A branch names nothing; its number only chose the site.
        let object = if op == InputOp::Branch { 0 } else { object };
        self.out.push(InputEvent { thread: ThreadId(t), op, object, value, loc });
        self.emitted += 1;
        let thread = &mut self.threads[t as usize];
        thread.block_clock = thread.block_clock.saturating_sub(1);
        if !thread.ran {
            thread.ran = true;
            self.debt -= 1;
        }
        true
    }

    #[inline]
    pub(super) fn emit(&mut self, t: u32, op: InputOp, object: u32) -> bool {
        self.emit_value(t, op, object, None)
    }

    pub(super) fn branch(&mut self, t: u32) -> bool {
        if std::mem::take(&mut self.threads[t as usize].branches_next) {
            self.debt -= 1;
        }
        if let Some(computing) = &mut self.computing {
            computing.branch(&mut self.random, t, self.emitted);
        }
        self.emit(t, InputOp::Branch, self.emitted as u32 % 64)
    }

    fn be_born(&mut self, t: u32) {
        let per_thread = self.config.events / u64::from(self.config.threads);
        // Not all at once: the first blocks begin anywhere in the first stretch.
        let spread = per_thread.min(self.config.events / (2 * self.config.blocks + 2));
        self.threads[t as usize].block_clock = self.random.below_wide(spread + 1);
        self.living += 1;
        self.set_runnable(t);
        self.threads[t as usize].life = Life::Free;
    }

    pub(super) fn set_runnable(&mut self, t: u32) {
        self.threads[t as usize].at = self.runnable.len() as u32;
        self.runnable.push(t);
    }

    pub(super) fn stop_running(&mut self, t: u32) {
        let at = self.threads[t as usize].at as usize;
        self.runnable.swap_remove(at);
        if let Some(&moved) = self.runnable.get(at) {
            self.threads[moved as usize].at = at as u32;
        }
    }

    pub(super) fn finish(&mut self, t: u32) {
        self.threads[t as usize].life = Life::Finished;
        self.living -= 1;
        self.stop_running(t);
    }

    pub(super) fn fork(&mut self, t: u32) -> bool {
        let child = self.threads[t as usize].unforked.0;
        self.threads[t as usize].unforked.0 += 1;
        self.debt -= 1;
        self.be_born(child);
        self.emit(t, InputOp::Fork, child)
    }

    /// Joins the next child, if it is finished.
    pub(super) fn join(&mut self, t: u32) -> bool {
        let child = self.threads[t as usize].unjoined.0;
        if self.threads[child as usize].life != Life::Finished {
            return false;
        }
        self.threads[t as usize].unjoined.0 += 1;
        self.debt -= 1;
        self.emit(t, InputOp::Join, child)
    }

    /// Whether the thread, which does not hold the lock, can take it.
    #[inline]
    pub(super) fn is_free(&self, lock: u32, shared: bool) -> bool {
        let lock = &self.locks[lock as usize];
        lock.owner == NOBODY && (shared || lock.readers == 0)
    }

    #[inline]
    pub(super) fn is_untaken(&self, lock: u32) -> bool {
        !self.locks[lock as usize].taken
    }

    pub(super) fn hold(&mut self, t: u32, held: Held) {
        let lock = &mut self.locks[held.lock as usize];
        match held.shared {
            true => lock.readers += 1,
            false => lock.owner = t,
        }
        self.threads[t as usize].held.push(held);
    }

    pub(super) fn let_go(&mut self, held: Held) {
        let lock = &mut self.locks[held.lock as usize];
        match held.shared {
            true => lock.readers -= 1,
            false => lock.owner = NOBODY,
        }
    }

    /// Takes a free lock.
    pub(super) fn acquire(&mut self, t: u32, lock: u32, shared: bool) -> bool {
        let state = &mut self.locks[lock as usize];
        self.debt += 1;
        if !state.taken {
            state.taken = true;
            self.untaken -= 1;
            self.debt -= 2;
        }
        self.hold(t, Held { lock, shared, depth: 1 });
        self.threads[t as usize].section_left = self.random.around(self.config.section.into()) as u32;
        self.emit(t, if shared { InputOp::AcquireShared } else { InputOp::Acquire }, lock)
    }

    /// Takes a held lock once more.
    pub(super) fn reacquire(&mut self, t: u32, at: usize) -> bool {
        let held = &mut self.threads[t as usize].held[at];
        held.depth += 1;
        let Held { lock, shared, .. } = *held;
        self.debt += 1;
        self.emit(t, if shared { InputOp::AcquireShared } else { InputOp::Acquire }, lock)
    }

    /// Releases one level of the `at`-th lock held.
    pub(super) fn release(&mut self, t: u32, at: usize) -> bool {
        let held = &mut self.threads[t as usize].held[at];
        held.depth -= 1;
        let now = *held;
        if now.depth == 0 {
            self.threads[t as usize].held.remove(at);
            self.let_go(now);
        }
        self.debt -= 1;
        self.threads[t as usize].section_left = self.random.below(self.config.section / 2 + 1);
        self.emit(t, if now.shared { InputOp::ReleaseShared } else { InputOp::Release }, now.lock)
    }
}
