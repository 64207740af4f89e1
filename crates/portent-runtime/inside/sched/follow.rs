//! Following a plan: its steps, where a run leaves it, and what happens at its goal.

use super::Scheduler;
use crate::log::{diverged, note, op};
use crate::plan::{goal, policy};
use crate::readiness::{self, Source};
use crate::state::{Life, Pending, Thread, Wait, thread};
use crate::{init, process, record, signals, sys};

impl Scheduler {
    /// Takes over the plan. Called once, before there are threads.
    pub fn follow(&mut self, plan: &init::MappedPlan) {
        self.policy = plan.header.policy;
        // Some bugs need many switches within a few lines, others long undisturbed stretches: seeds differ in that, too.
        self.span = 4 << (2 * (plan.header.seed & 3));
        self.random = plan.header.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        if self.policy == policy::PCT {
            // Whoever is there already came before the seed.
            let drawn = self.draw();
            self.living().for_each(|one| one.priority = drawn | 1 << 63);
            self.draw_changes(plan.header.depth, plan.header.length);
        }
        self.steps = plan.steps;
        self.step_count = plan.header.steps as usize;
        self.following = self.step_count > 0;
        self.goal = plan.header.goal;
        self.goal_threads = plan.goal_threads;
        self.goal_count = plan.header.goal_threads as usize;
        self.family = plan.family;
        self.family_count = plan.header.threads as usize;
        self.trap = plan.header.trap != 0;
        self.alone = plan.header.alone != 0;
        self.spurious = plan.header.spurious != 0;
        self.parks = plan.header.parks != 0;
        self.stop_at = plan.header.stop;
        self.pid = sys::getpid();
    }

    /// The thread of the plan's current step, or `Some(None)` if it is away; `None` where the plan has ended.
    pub(super) fn follow_plan(&mut self) -> Option<Option<u32>> {
        loop {
            if self.step >= self.step_count {
                self.finish_plan();
                return None;
            }
            // SAFETY: within the plan's steps.
            let [id, events] = unsafe { *self.steps.add(self.step) };
            let who = thread(id.min(crate::log::MAX_THREADS as u64 - 1) as u32);
            // SAFETY: a thread of the table, under the lock.
            let who = unsafe { &mut *who };
            if !self.granted {
                match who.life {
                    Life::Unused => return self.diverge(diverged::NO_THREAD, events),
                    Life::Done => return self.diverge(diverged::ENDED, events),
                    _ => {}
                }
                // Counted from the beginning: some events follow others at once, so that it may be ahead of the last step.
                who.planned += events;
                if self.exiting {
                    self.exit_events = self.exit_events.saturating_sub(events);
                }
                who.allow(who.planned);
                self.granted = true;
            }
            if who.life == Life::Done && who.events < who.until {
                return self.diverge(diverged::ENDED, who.until - who.events);
            }
            if who.events >= who.until {
                self.step += 1;
                self.granted = false;
                continue;
            }
            return match who.life {
                // Its step does not come to an end unless somebody else goes on.
                Life::Away if self.away == 1 && self.is_stuck(who) => {
                    self.diverge(diverged::NOT_ENABLED, who.until - who.events)
                }
                // It waits for the rest of its team, who go to the library as soon as they are there.
                Life::Away => Some(self.new_in_team()),
                // Another fiber has to go on as it first.
                Life::Parked if self.away > 0 => Some(None),
                Life::Parked => self.diverge(diverged::NOT_ENABLED, who.until - who.events),
                // The plan says when the process ends.
                _ if who.pending.wait == Wait::Exit => Some(Some(who.id)),
                _ if self.possible(who, &who.pending) => Some(Some(who.id)),
                _ if who.pending.wait == Wait::Ready && readiness::source(who, self.alone) > Source::Inside => {
                    who.goes_outside = true;
                    Some(Some(who.id))
                }
                _ if who.pending.deadline != 0 => {
                    self.time_out(who);
                    Some(Some(who.id))
                }
                // Whoever is away may make it possible.
                _ if who.pending.wait == Wait::Ready && self.away > 0 => {
                    who.goes_outside = true;
                    Some(Some(who.id))
                }
                _ if self.away > 0 => Some(None),
                _ => self.diverge(diverged::NOT_ENABLED, who.until - who.events),
            };
        }
    }

    /// A thread of a team that has not begun to run.
    fn new_in_team(&self) -> Option<u32> {
        let is_new = |one: &Thread| one.life == Life::Waiting && one.pending.op == op::START;
        // SAFETY: threads of the table live for ever.
        let in_team = |one: &Thread| unsafe { (*thread(one.parent)).starts_team };
        self.living().find(|one| is_new(one) && in_team(one)).map(|one| one.id)
    }

    /// The thread of the current step does not come.
    pub(super) fn give_up(&mut self) {
        if self.step < self.step_count {
            self.diverge(diverged::NOT_ENABLED, 0);
        }
    }

    /// A thread is at its very end: if the current step wants more of it, there is none.
    pub fn has_no_more_events(&mut self, who: &mut Thread) {
        if !self.following || self.step >= self.step_count {
            return;
        }
        // SAFETY: within the plan's steps.
        let [id, events] = unsafe { *self.steps.add(self.step) };
        if id != u64::from(who.id) {
            return;
        }
        let planned = if self.granted { who.planned } else { who.planned + events };
        match planned.checked_sub(who.events) {
            Some(left @ 1..) => drop(self.diverge(diverged::ENDED, left)),
            _ => who.allow(who.planned),
        }
    }

    /// Whether the current step waits for a system call that does not return: its own thread sleeps in one, or it cannot go on, and
    /// whoever is away sleeps in one.
    pub(super) fn step_sleeps_in_kernel(&self) -> bool {
        if self.step >= self.step_count {
            return false;
        }
        // SAFETY: within the plan's steps; a thread of the table, under the lock.
        let who = unsafe {
            let id = (*self.steps.add(self.step))[0];
            &*thread(id.min(crate::log::MAX_THREADS as u64 - 1) as u32)
        };
        let is_away = |one: &Thread| one.life == Life::Away;
        match is_away(who) {
            true => process::sleeps_in_kernel(who.tid),
            false => self.living().filter(|one| is_away(one)).all(|one| process::sleeps_in_kernel(one.tid)),
        }
    }

    pub(super) fn diverge(&mut self, why: u64, left: u64) -> Option<Option<u32>> {
        // SAFETY: within the plan's steps; thread numbers were bounded.
        let (id, pending) = unsafe {
            let id = (*self.steps.add(self.step))[0];
            (id, (*thread(id.min(crate::log::MAX_THREADS as u64 - 1) as u32)).pending)
        };
        let Pending { op, address, pc, .. } = pending;
        let told = [self.step as u64, id, left, why, u64::from(op), address as u64, pc as u64];
        record::numbers(note::DIVERGED, &told);
        self.following = false;
        self.release_stops();
        None
    }

    /// After the last step every thread of the goal stands before its event: what they are about to do is noted next. Without
    /// a goal, this is where a debugger stops.
    pub(super) fn finish_plan(&mut self) {
        self.following = false;
        self.release_stops();
        record::numbers(note::PLAN_DONE, &[self.step as u64]);
        if self.goal != goal::NONE {
            self.goal_seen = true;
            return;
        }
        if let Some(last) = self.step_count.checked_sub(1) {
            // Whoever the last step let run goes on as long as it can, if that is the policy.
            // SAFETY: within the plan's steps; a thread of the table, under the lock.
            unsafe {
                let id = (*self.steps.add(last))[0];
                let who = &mut *thread(id.min(crate::log::MAX_THREADS as u64 - 1) as u32);
                who.allow(who.events + super::PATIENCE);
            }
        }
        self.stop_next = self.trap && self.stop_at[0] == 0;
    }

    /// Stops of the plan no longer count.
    pub(super) fn release_stops(&mut self) {
        for one in self.living() {
            one.allow(one.events);
            signals::send_withheld(one);
        }
    }

    /// Lets goal threads that have not reached an event run up to it, notes the goal, then in a race lets the second go first.
    pub(super) fn after_goal(&mut self) -> Option<u32> {
        if self.goal_seen {
            // SAFETY: the plan's goal threads.
            let goal: &[u64] = unsafe { std::slice::from_raw_parts(self.goal_threads, self.goal_count) };
            let member = |id: u64| unsafe {
                // SAFETY: a thread of the table, under the lock.
                &mut *thread(id.min(crate::log::MAX_THREADS as u64 - 1) as u32)
            };
            for &id in goal {
                let one = member(id);
                let begins = matches!(one.pending.op, op::START | op::RESUME) && one.pending.wait != Wait::Ready;
                if one.life == Life::Waiting && begins {
                    one.allow(one.events);
                    return Some(one.id);
                }
            }
            self.goal_seen = false;
            let mut told = [0u64; 6 * 16];
            let mut filled = 0;
            for &id in goal.iter().take(16) {
                let one = member(id);
                let Pending { op, address, size, pc, .. } = one.pending;
                let possible = one.life == Life::Waiting && self.possible(one, &one.pending);
                let line = [id, u64::from(op), address as u64, size as u64, pc as u64, u64::from(possible)];
                told[filled..filled + 6].copy_from_slice(&line);
                filled += 6;
            }
            record::numbers(note::GOAL, &told[..filled]);
            if self.goal == goal::RACE && goal.len() == 2 {
                self.order_after = [goal[1] as u32 + 1, goal[0] as u32 + 1];
            }
            if self.trap && self.stop_at[0] == 0 {
                match self.goal {
                    // Nobody of these goes on: shown is where the first one waits.
                    goal::DEADLOCK => {
                        let first = goal.first().map_or(0, |&id| member(id).tid);
                        self.trap = false;
                        process::trap(first);
                    }
                    _ => self.stop_next = true,
                }
            }
        }
        for at in 0..2 {
            let id = std::mem::take(&mut self.order_after[at]);
            if id != 0 {
                // SAFETY: a thread of the table, under the lock.
                let one = unsafe { &mut *thread(id - 1) };
                if one.life == Life::Waiting && self.possible(one, &one.pending) {
                    one.allow(one.events + 1);
                    return Some(one.id);
                }
            }
        }
        None
    }
}
