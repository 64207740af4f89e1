//! Who sleeps where, while a plan is made: each wait that may last at the same time as another has its own slot.

use super::plan::Plan;
use portent_trace::CondId;
use rustc_hash::FxHashMap;

#[derive(Debug, Default)]
pub(super) struct Slots {
    conditions: FxHashMap<CondId, u32>,
    /// By thread and condition: a slot, and whether a wait in it has not ended so far.
    of: FxHashMap<(u32, CondId), (u32, bool)>,
}

impl Slots {
    /// The number of a condition.
    pub(super) fn condition(&mut self, plan: &mut Plan, condition: CondId) -> u32 {
        *self.conditions.entry(condition).or_insert_with(|| {
            plan.conditions += 1;
            plan.conditions - 1
        })
    }

    /// The slot of a wait that begins.
    pub(super) fn sleep(&mut self, plan: &mut Plan, thread: u32, condition: CondId) -> u32 {
        let number = self.condition(plan, condition);
        let fresh = plan.slots.len() as u32;
        let (slot, lasts) = self.of.entry((thread, condition)).or_insert((fresh, false));
        // The one before never ended: it keeps its slot.
        if std::mem::replace(lasts, true) {
            *slot = fresh;
        }
        if *slot == fresh {
            plan.slots.push(number);
        }
        *slot
    }

    /// The slot of a wait that ends.
    pub(super) fn wake(&mut self, plan: &mut Plan, thread: u32, condition: CondId) -> u32 {
        if !self.of.contains_key(&(thread, condition)) {
            self.sleep(plan, thread, condition);
        }
        let (slot, lasts) = self.of.entry((thread, condition)).or_default();
        *lasts = false;
        *slot
    }
}
