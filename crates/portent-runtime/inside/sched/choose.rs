//! Choosing where no plan does: by policy, by time, and at the end of the process.

use super::{FIRST_LOWEST, LONG, PATIENCE, Scheduler};
use crate::log::op;
use crate::plan::policy;
use crate::readiness::{self, Source};
use crate::state::{BY_ITSELF, Life, Thread, Wait, thread};
use crate::{answers, sys};

impl Scheduler {
    pub(super) fn draw(&mut self) -> u64 {
        // xorshift64*: small, and good enough to choose threads.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(super) fn by_policy(&mut self, asking: u32) -> Option<u32> {
        if self.exiting && self.exit_events == 0 && self.exit_is_held() {
            return None;
        }
        let mut chosen: Option<&mut Thread> = None;
        let mut seen = 0;
        let asker = thread(asking.min(crate::log::MAX_THREADS as u32 - 1));
        // SAFETY: a thread of the table, or one that does not exist, whose flags are zero.
        let yields = asking != u32::MAX && unsafe { std::mem::take(&mut (*asker).yielded) };
        let sleeps = self.policy == policy::PCT && asking != u32::MAX && {
            // Whoever sleeps expects others to go on meanwhile; nothing says that they do.
            // SAFETY: as above.
            let sleeps = unsafe { (*asker).pending.wait == Wait::Sleep };
            sleeps && self.draw().is_multiple_of(2)
        };
        if self.policy == policy::PCT && asking != u32::MAX && (yields || sleeps || self.has_run_for_long(asker)) {
            // From here on everybody else goes first.
            self.lowest -= 1;
            // SAFETY: as above.
            unsafe { (*asker).priority = self.lowest };
        }
        let stays = matches!(self.policy, policy::STAY | policy::PRIORITY) && asking != u32::MAX && !yields;
        if self.policy == policy::PRIORITY && yields {
            self.lowest -= 1;
            // SAFETY: as above.
            unsafe { (*asker).priority = self.lowest };
        }
        let mut now = None;
        for one in self.living() {
            if one.life != Life::Waiting {
                continue;
            }
            if !self.possible(one, &one.pending) {
                // Its time may have come while the others only spin.
                let skipped = self.skipped;
                let late = |now: &mut Option<i64>| {
                    *now.get_or_insert_with(|| answers::now_with(skipped)) - one.pending.deadline
                };
                let at_once = yields || (self.policy == policy::STAY && one.pending.wait == Wait::Sleep);
                let due = |now: &mut Option<i64>| late(now) >= if at_once { 0 } else { LONG };
                if one.pending.deadline == 0 || !(self.ends_early(one) || due(&mut now)) {
                    continue;
                }
            }
            if stays && one.id == asking && one.events < one.until {
                return Some(asking);
            }
            seen += 1;
            let better = match (self.policy, &chosen) {
                (_, None) => true,
                (policy::RANDOM, _) => self.draw().is_multiple_of(seen),
                (policy::PCT | policy::PRIORITY, Some(best)) => one.priority > best.priority,
                // Round robin: the first after the asker in the list, else the first of all.
                (_, Some(best)) => {
                    let after = |id: u32| if id > asking { id } else { id.wrapping_add(1 << 20) };
                    after(one.id) < after(best.id)
                }
            };
            if better {
                chosen = Some(one);
            }
        }
        let mut chosen = chosen?;
        if self.policy == policy::PCT {
            chosen = self.after_changes(chosen);
        }
        if !self.possible(chosen, &chosen.pending) {
            if self.policy == policy::PRIORITY && self.draw().is_multiple_of(8) {
                self.lowest -= 1;
                chosen.priority = self.lowest;
            }
            self.time_out(chosen);
        }
        let span = match self.policy {
            policy::STAY | policy::PRIORITY => PATIENCE,
            policy::ROUND_ROBIN => 100,
            policy::RANDOM => 1 + self.draw() % self.span,
            _ => self.strict_span(chosen),
        };
        chosen.allow(chosen.events + span);
        if self.exiting {
            self.exit_events = self.exit_events.saturating_sub(span);
        }
        Some(chosen.id)
    }

    /// Events of all threads so far.
    fn executed(&self) -> u64 {
        // SAFETY: threads of the table, under the lock.
        (0..self.count).map(|id| unsafe { (*thread(id)).events }).sum()
    }

    /// Draws the points at which priorities change: each of `length` events is as likely as any other.
    pub(super) fn draw_changes(&mut self, depth: u64, length: u64) {
        self.length = length.max(1);
        self.change_count = depth.saturating_sub(1).min(self.changes.len() as u64) as usize;
        for at in 0..self.change_count {
            self.changes[at] = [self.draw() % self.length, at as u64];
        }
        self.changes[..self.change_count].sort_unstable();
    }

    /// The thread with the highest priority of those that can go on, after the changes that fall before this event: whoever is about to
    /// execute it goes behind all whose priority has not changed.
    fn after_changes<'t>(&mut self, first: &'t mut Thread) -> &'t mut Thread {
        let mut chosen = first;
        let executed = self.executed();
        while self.changed < self.change_count && self.changes[self.changed][0] <= executed {
            // Which of them is the lowest has nothing to do with which comes first.
            chosen.priority = FIRST_LOWEST + self.changes[self.changed][1];
            self.changed += 1;
            let possible = self.living().filter(|one| one.life == Life::Waiting && self.possible(one, &one.pending));
            let Some(best) = possible.max_by_key(|one| one.priority) else { break };
            if best.priority > chosen.priority {
                chosen = best;
            }
        }
        chosen
    }

    /// How long a thread goes on by its priority: until the next change, or until somebody before whom it goes only because they
    /// cannot go on may be able to.
    fn strict_span(&mut self, chosen: &Thread) -> u64 {
        let executed = self.executed();
        if executed >= self.length {
            // The run is longer than it was known to be: from here on nobody waits for ever.
            return 1 + self.draw() % 2000;
        }
        let mut ahead = self.living().filter(|one| one.id != chosen.id && one.priority > chosen.priority);
        // An access makes nothing possible but what waits for a change.
        if chosen.pending.op >= op::ACCESSES || ahead.any(|one| one.pending.wait == Wait::Change) {
            return 1;
        }
        let next = self.changes[..self.change_count].get(self.changed).map_or(self.length, |change| change[0]);
        (next.min(self.length).max(executed + 1) - executed).min(if self.exiting { 2000 } else { PATIENCE })
    }

    /// Whether the run is longer than it was known to be, and the thread has spent its turn.
    fn has_run_for_long(&self, asker: *mut Thread) -> bool {
        // SAFETY: a thread of the table. Who has had no turn yet has not spent it.
        let is_spent = unsafe { (*asker).until > 0 && (*asker).events >= (*asker).until };
        is_spent && self.executed() >= self.length
    }

    /// Whether a wait that time ends is over before the others are done. By default it is not; but nothing says how fast the
    /// others are, so all other policies try it now and then: seldom, so that whoever polls does not keep them from going on,
    /// and time-outs more seldom than sleeps, as programs are made to go on after a sleep.
    fn ends_early(&mut self, who: &Thread) -> bool {
        let one_in = match (self.policy, who.pending.wait) {
            (policy::STAY, _) => return false,
            // Asked only where somebody waits or has to. Whoever polls does not stay the first for long.
            (policy::PRIORITY, Wait::Sleep) => return true,
            // It is asked seldom.
            (policy::ROUND_ROBIN, Wait::Sleep) => 2,
            (policy::ROUND_ROBIN, _) | (_, Wait::Sleep) => 8,
            _ => 64,
        };
        self.draw().is_multiple_of(one_in)
    }

    /// A thread whose call others than this process may make possible: it waits in the kernel.
    pub(super) fn by_outside(&mut self) -> Option<u32> {
        // When the program has come to its end, nobody waits for the outside any more.
        let at_end = self.away == 0 && self.exiting && self.exit_is_held() && !sys::has_children();
        let least = if at_end { Source::InFlight } else { Source::Outside };
        let waits = |one: &&mut Thread| {
            let in_call = one.life == Life::Waiting && one.pending.wait == Wait::Ready;
            in_call && (self.away > 0 || readiness::source(one, self.alone) >= least)
        };
        let found = self.living().find(waits)?;
        found.goes_outside = true;
        found.allow(found.events);
        Some(found.id)
    }

    /// The earliest of the waits that time ends; the virtual clocks move on to it.
    pub(super) fn by_time(&mut self) -> Option<u32> {
        let timed = |one: &&mut Thread| one.life == Life::Waiting && !matches!(one.pending.deadline, 0 | BY_ITSELF);
        let first = self.living().filter(timed).min_by_key(|one| one.pending.deadline)?;
        let ahead = first.pending.deadline - answers::now_with(self.skipped);
        if self.away > 0 && ahead > 0 && !self.all_wait_for_each_other() {
            return None;
        }
        if self.exiting && self.exit_is_held() {
            if self.exit_waits == 0 {
                return None;
            }
            self.exit_waits -= 1;
        }
        self.time_out(first);
        first.allow(first.events + PATIENCE);
        Some(first.id)
    }

    pub(super) fn time_out(&mut self, who: &mut Thread) {
        if who.pending.deadline != BY_ITSELF {
            let ahead = who.pending.deadline - answers::now_with(self.skipped);
            self.skipped += ahead.max(0);
        }
        who.timed_out = true;
    }

    /// Whether somebody waits to end the process. Afterwards, while destructors of static objects run, others may have to go
    /// on, for as long as it takes.
    pub(super) fn exit_is_held(&self) -> bool {
        self.living().any(|one| one.life == Life::Waiting && one.pending.wait == Wait::Exit)
    }

    /// Whether a thread that waits for the token could have it.
    pub fn somebody_can_go_on(&self) -> bool {
        self.living().any(|one| one.life == Life::Waiting && self.possible(one, &one.pending))
    }

    /// Whoever waits to end the process; who has failed, before others.
    pub(super) fn by_exit(&mut self) -> Option<u32> {
        let waits = |one: &&mut Thread| one.life == Life::Waiting && one.pending.wait == Wait::Exit;
        let one = self.living().filter(waits).max_by_key(|one| (one.has_failed, std::cmp::Reverse(one.id)))?;
        one.allow(u64::MAX);
        Some(one.id)
    }
}
