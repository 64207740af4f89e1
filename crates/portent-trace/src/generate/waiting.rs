//! Steps of threads that wait for each other: condition variables and barriers.
//!
//! A thread waits on a condition with that condition's lock only, and arrives at a barrier with none, so whoever is awake
//! can always go on, and with it everybody else.

use super::machine::{Life, Machine, Round, Until};
use crate::input::InputOp;

impl Machine {
    /// Begins to wait on a condition, with exactly its lock held. Costs five events: itself, and four of debt.
    pub(super) fn sleep(&mut self, t: u32, condition: u32, until: Until) -> bool {
        self.debt += 3;
        if until == Until::Notify {
            self.debt += 1;
            self.sleepers.push((t, condition));
        }
        self.threads[t as usize].life = Life::Sleeping(condition, until);
        self.emit(t, InputOp::Sleep, condition)
    }

    /// The second half of going to sleep.
    pub(super) fn release_to_sleep(&mut self, t: u32, condition: u32, until: Until) -> bool {
        let Some(held) = self.threads[t as usize].held.pop() else { return false };
        self.debt -= 1;
        self.let_go(held);
        self.threads[t as usize].retake = held;
        self.threads[t as usize].life = match until {
            Until::Notify => Life::Asleep,
            Until::TimeOut => Life::TimedSleep(condition),
            Until::Now => Life::Notified(condition),
        };
        if until == Until::Notify {
            self.stop_running(t);
        }
        self.emit(t, if held.depth > 1 { InputOp::ReleaseAll } else { InputOp::Release }, held.lock)
    }

    pub(super) fn wake(&mut self, t: u32, op: InputOp, condition: u32) -> bool {
        self.debt -= 1;
        self.threads[t as usize].life = Life::Retaking;
        self.emit(t, op, condition)
    }

    /// Takes the lock back after a wait, if it is free.
    pub(super) fn retake(&mut self, t: u32) -> bool {
        let held = self.threads[t as usize].retake;
        if !self.is_free(held.lock, false) {
            return false;
        }
        self.debt -= 1;
        self.hold(t, held);
        self.threads[t as usize].life = Life::Free;
        self.threads[t as usize].section_left = self.random.around(self.config.section.into()) as u32;
        self.emit(t, if held.depth > 1 { InputOp::AcquireAll } else { InputOp::Acquire }, held.lock)
    }

    pub(super) fn notify(&mut self, t: u32, condition: u32, all: bool) -> bool {
        while let Some(at) = self.sleepers.iter().position(|(_, slept_on)| *slept_on == condition) {
            let (sleeper, _) = self.sleepers.remove(at);
            self.debt -= 1;
            if self.threads[sleeper as usize].life == Life::Asleep {
                self.threads[sleeper as usize].life = Life::Notified(condition);
                self.set_runnable(sleeper);
            } else {
                self.threads[sleeper as usize].life = Life::Sleeping(condition, Until::Now);
            }
            if !all {
                break;
            }
        }
        self.emit(t, if all { InputOp::NotifyAll } else { InputOp::Notify }, condition)
    }

    /// Opens a round of a barrier for all living threads, and arrives. Costs an arrival and a departure for each.
    pub(super) fn open_round(&mut self, t: u32, barrier: u32) -> bool {
        self.debt += 2 * u64::from(self.living);
        self.round = Some(Round { barrier, missing: self.living });
        self.arrive(t)
    }

    /// Arrives at the barrier whose round fills.
    pub(super) fn arrive(&mut self, t: u32) -> bool {
        let Some(round) = &mut self.round else { return false };
        let barrier = round.barrier;
        round.missing -= 1;
        let full = round.missing == 0;
        self.debt -= 1;
        self.threads[t as usize].life = Life::Parked(barrier);
        self.parked += 1;
        self.stop_running(t);
        if full {
            self.parked = 0;
            self.round = None;
            for other in 0..self.config.threads {
                if self.threads[other as usize].life == Life::Parked(barrier) {
                    self.threads[other as usize].life = Life::Departing(barrier);
                    self.set_runnable(other);
                }
            }
        }
        self.emit(t, InputOp::Arrive, barrier)
    }

    pub(super) fn depart(&mut self, t: u32, barrier: u32) -> bool {
        self.debt -= 1;
        self.threads[t as usize].life = Life::Free;
        self.emit(t, InputOp::Depart, barrier)
    }
}
