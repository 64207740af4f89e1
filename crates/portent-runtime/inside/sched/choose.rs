//! Choosing where no plan does: by policy, by time, and at the end of the process.

use super::{LONG, PATIENCE, Scheduler};
use crate::answers;
use crate::plan::policy;
use crate::state::{Life, Thread, Wait, thread};

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
        if self.policy == policy::PCT && asking != u32::MAX && (yields || self.is_change_point(asker)) {
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
        let chosen = chosen?;
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
            policy::PCT if self.changes > 0 => 1 + self.draw() % (4 * self.span),
            _ => 1 + self.draw() % 2000,
        };
        chosen.allow(chosen.events + span);
        if self.exiting {
            self.exit_events = self.exit_events.saturating_sub(span);
        }
        Some(chosen.id)
    }

    /// Whether priorities change here: twice soon after the beginning (bugs of depth 3, in short programs), then seldom.
    fn is_change_point(&mut self, asker: *mut Thread) -> bool {
        // SAFETY: a thread of the table. Who has had no turn yet has not spent it.
        let is_spent = unsafe { (*asker).until > 0 && (*asker).events >= (*asker).until };
        if is_spent && self.changes > 0 {
            self.changes -= 1;
            return true;
        }
        self.draw().is_multiple_of(64)
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

    /// The earliest of the waits that time ends; the virtual clocks move on to it.
    pub(super) fn by_time(&mut self) -> Option<u32> {
        let timed = |one: &&mut Thread| one.life == Life::Waiting && one.pending.deadline != 0;
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
        let ahead = who.pending.deadline - answers::now_with(self.skipped);
        self.skipped += ahead.max(0);
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

    pub(super) fn by_exit(&mut self) -> Option<u32> {
        let one = self.living().find(|one| one.life == Life::Waiting && one.pending.wait == Wait::Exit)?;
        one.allow(u64::MAX);
        Some(one.id)
    }
}
