//! A cut, spread out for walking and packed for keeping.
//!
//! State (docs/src/internals/semantics.md §4): the position of every thread, which also says what semaphores count; for each tracked variable, which write it holds, as long as somebody
//! will read that; for each condition, who sleeps there and what its notifies have yet to be used for ([`Sleepers`]); for each thread, whether it has
//! stopped for good at a changed read; and the monitor's state. Packed, each takes as many bits as it can ever need.
//!
//! # Changed reads
//! In `reads`, the last executed read of each thread may see any write (docs/src/internals/semantics.md §3). So a thread whose next step reads,
//! and cannot see the write that it saw in the trace, may make that step all the same, and stops there for good: what it
//! would do next is not known. It keeps its locks. A read changes nothing; what an update then writes is not known, so no
//! kept read may see it.
//!
//! Only steps that the monitor sees are ever made so (`Move::changed`). Where it does not see the event, the thread may as
//! well stop before it: it holds the same locks there, everybody else can do what they could (without an unknown write in
//! memory, rather more), and the monitor sees the same.

use super::plan::{Action, Move, Need, Ordinal, Plan, UNREAD};
use portent_spec::{Letter, Monitor};
use portent_trace::{Mode, Reach, Sleepers};

/// A cut, spread out.
#[derive(Clone, Debug, Default)]
pub(super) struct Cut {
    pub(super) positions: Vec<u32>,
    /// Which write each variable holds.
    pub(super) memory: Vec<u32>,
    /// For each condition, who sleeps on it: slots.
    pub(super) asleep: Vec<Sleepers<u32>>,
    /// For each thread that has stopped at a changed read, the number of the set of locks it holds, plus one; 0 for others.
    /// Empty if no thread can stop so.
    pub(super) stopped: Vec<u32>,
    pub(super) monitor: Vec<u64>,
}

impl Cut {
    pub(super) fn start(plan: &Plan, monitor: &dyn Monitor) -> Cut {
        let mut state = vec![0; monitor.words()];
        monitor.start(&mut state);
        Cut {
            positions: vec![0; plan.threads()],
            memory: vec![0; plan.readers.len()],
            asleep: vec![Sleepers::default(); plan.conditions as usize],
            stopped: vec![0; plan.room_for_stops()],
            monitor: state,
        }
    }
    pub(super) fn copy_from(&mut self, other: &Cut) {
        self.positions.copy_from_slice(&other.positions);
        self.memory.copy_from_slice(&other.memory);
        self.asleep.clone_from_slice(&other.asleep);
        self.stopped.copy_from_slice(&other.stopped);
        self.monitor.copy_from_slice(&other.monitor);
    }
    /// How many steps were made: every cut belongs to one level.
    pub(super) fn level(&self) -> u64 {
        self.positions.iter().map(|&p| u64::from(p)).sum()
    }
    /// Whether every thread has done all it did in the trace, and every read sees what it saw there.
    pub(super) fn is_complete(&self, plan: &Plan) -> bool {
        (0..plan.threads()).all(|t| self.positions[t] == plan.end(t) && !self.is_stopped(t))
    }
    /// Whether a thread has stopped for good, at a changed read.
    #[inline]
    pub(super) fn is_stopped(&self, thread: usize) -> bool {
        self.stopped.get(thread).is_some_and(|&set| set != 0)
    }
    /// The next step of a thread, unless it has none or has stopped.
    #[inline]
    pub(super) fn next<'p>(&self, plan: &'p Plan, thread: usize) -> Option<&'p Move> {
        if self.is_stopped(thread) { None } else { plan.step(thread, self.positions[thread]) }
    }

    /// Whether another thread keeps `thread` from the lock.
    #[inline]
    fn is_held(&self, plan: &Plan, thread: usize, lock: u32, mode: Mode) -> bool {
        let held = |t: usize| match self.stopped.get(t) {
            Some(&set) if set != 0 => &plan.sets[set as usize - 1],
            _ => plan.held(t, self.positions[t]),
        };
        (0..self.positions.len())
            .any(|t| t != thread && held(t).iter().any(|&(l, m)| l == lock && m.conflicts_with(mode)))
    }
    #[inline]
    fn has(&self, plan: &Plan, step: &Move) -> bool {
        step.needs.0 == step.needs.1 || self.has_all(plan.needs(step))
    }
    /// Whether somebody who has not read it yet will read what a write left.
    fn is_awaited(&self, plan: &Plan, variable: usize, ordinal: Ordinal) -> bool {
        let will_read = |&(t, last): &Need| self.positions[t as usize] <= last && !self.is_stopped(t as usize);
        plan.open_ended || plan.readers[variable][ordinal as usize].iter().any(will_read)
    }
    // Apart, as most steps need nothing.
    #[inline(never)]
    fn has_all(&self, needs: &[Need]) -> bool {
        // Who has stopped does not do what comes after its last step and is no step itself.
        let done_by = |t: usize, done: u32| self.positions[t] >= done + u32::from(self.is_stopped(t));
        needs.iter().all(|&(t, done)| done_by(t as usize, done))
    }

    /// Whether a thread can make its next step.
    #[inline]
    pub(super) fn enabled(&self, plan: &Plan, thread: usize, step: &Move) -> bool {
        let possible = match step.action {
            Action::Pass
            | Action::Write { .. }
            | Action::Release { .. }
            | Action::Sleep { .. }
            | Action::Notify { .. }
            | Action::Post { .. } => true,
            Action::Wait { semaphore } => plan.counters[semaphore as usize].count(&self.positions) > 0,
            Action::Empty { semaphore } => plan.counters[semaphore as usize].count(&self.positions) == 0,
            Action::Read { variable, from } | Action::Update { variable, from, .. } => {
                self.memory[variable as usize] == from
            }
            Action::Acquire { lock, mode } => !self.is_held(plan, thread, lock, mode),
            Action::Busy { lock, mode } => self.is_held(plan, thread, lock, mode),
            Action::Wake { slot } => self.asleep[plan.slots[slot as usize] as usize].can_wake(slot),
            Action::Leave { slot } => self.asleep[plan.slots[slot as usize] as usize].can_leave(slot),
        };
        possible && self.has(plan, step)
    }

    /// Makes a step, monitor aside.
    #[inline]
    pub(super) fn advance(&mut self, plan: &Plan, thread: usize, step: &Move) {
        match step.action {
            Action::Write { variable, ordinal } | Action::Update { variable, ordinal, .. } => {
                self.memory[variable as usize] = ordinal;
            }
            Action::Sleep { slot } => self.asleep[plan.slots[slot as usize] as usize].sleep(slot),
            Action::Wake { slot } => self.asleep[plan.slots[slot as usize] as usize].wake(slot),
            Action::Leave { slot } => self.asleep[plan.slots[slot as usize] as usize].leave(slot),
            Action::Notify { condition, reach: Reach::One } => self.asleep[condition as usize].notify_one(),
            Action::Notify { condition, reach: Reach::All } => self.asleep[condition as usize].notify_all(),
            _ => {}
        }
        self.positions[thread] += 1;
    }

    /// If a thread's next step is a read that would see another write, and that the monitor sees: what it sees then.
    #[inline]
    pub(super) fn changed(&self, plan: &Plan, step: &Move) -> Option<Letter> {
        let letter = step.changed?;
        let (Action::Read { variable, from } | Action::Update { variable, from, .. }) = step.action else {
            return None;
        };
        (self.memory[variable as usize] != from && self.has(plan, step)).then_some(letter)
    }

    /// Makes a step that is a changed read, monitor aside: the thread stops.
    #[cold]
    pub(super) fn stop(&mut self, plan: &Plan, thread: usize, step: &Move) {
        if let Action::Update { variable, .. } = step.action {
            self.memory[variable as usize] = UNREAD;
        }
        self.stopped[thread] = plan.set(thread, self.positions[thread]) + 1;
        self.positions[thread] += 1;
    }

    /// Makes all steps that lose nothing when they are made at once, telling which threads made them.
    pub(super) fn settle(&mut self, plan: &Plan, mut tell: impl FnMut(usize)) {
        loop {
            let mut moved = false;
            for t in 0..self.positions.len() {
                while let Some(step) = self.next(plan, t) {
                    if step.at_once && self.enabled(plan, t, step) {
                        self.advance(plan, t, step);
                        tell(t);
                        moved = true;
                        continue;
                    }
                    let Action::Acquire { .. } = step.action else { break };
                    let Some(through) = self.harmless_scope(plan, t) else { break };
                    while self.positions[t] < through {
                        let Some(step) = plan.step(t, self.positions[t]) else { break };
                        self.advance(plan, t, step);
                        tell(t);
                    }
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// If a thread can take a lock, do nothing that anybody could tell, and give it back, all of it now: where it then
    /// stands. Whatever can happen before that can happen after it.
    fn harmless_scope(&self, plan: &Plan, thread: usize) -> Option<u32> {
        const LONGEST: u32 = 64;
        if plan.open_ended {
            return None;
        }
        let from = self.positions[thread];
        let outside = plan.held(thread, from);
        for at in from..from + LONGEST {
            let step = plan.step(thread, at)?;
            let harmless = match step.action {
                Action::Acquire { lock, .. } => !plan.tried[lock as usize],
                Action::Release { .. } | Action::Read { .. } | Action::Pass => step.at_once,
                _ => false,
            };
            if step.letter.is_some() || !harmless || !self.enabled(plan, thread, step) {
                return None;
            }
            if plan.held(thread, at + 1) == outside {
                return Some(at + 1);
            }
        }
        None
    }

    /// Whether a thread had better not take its next lock now: what it does first with it cannot happen yet, and until
    /// it can, having the lock only keeps others out. (An acquire can always be made later, up to what needs it.)
    #[inline]
    pub(super) fn too_early(&self, plan: &Plan, thread: usize, step: &Move) -> bool {
        if plan.open_ended || !matches!(step.action, Action::Acquire { .. }) || step.letter.is_some() {
            return false;
        }
        let mut at = self.positions[thread];
        loop {
            let Some(step) = plan.step(thread, at) else { return false };
            if step.letter.is_some() {
                return false;
            }
            match step.action {
                Action::Acquire { lock, .. } if !plan.tried[lock as usize] => {}
                Action::Pass if step.at_once => {
                    if !self.has(plan, step) {
                        return true;
                    }
                }
                Action::Read { variable, from } | Action::Update { variable, from, .. } => {
                    return self.memory[variable as usize] != from || !self.has(plan, step);
                }
                _ => return false,
            }
            at += 1;
        }
    }
}

/// Where the parts of a cut are in its packed form.
pub(super) struct Layout {
    positions: Vec<Bits>,
    memory: Vec<Bits>,
    /// For each slot, with its condition: 0 if nobody sleeps there, 1 if it is woken for certain, and otherwise two more than the permits before it; and for
    /// each condition, its permits.
    slots: Vec<(Bits, u32)>,
    permits: Vec<Bits>,
    stopped: Vec<Bits>,
    /// How many threads can stop.
    pub(super) stopping: usize,
    /// Words before the monitor's.
    pub(super) words: usize,
    monitor: usize,
}

#[derive(Clone, Copy)]
struct Bits {
    word: u32,
    shift: u32,
    mask: u64,
}

impl Layout {
    /// As few bits as a finished plan needs.
    pub(super) fn of(plan: &Plan, monitor_words: usize) -> Layout {
        let mut word = 0u32;
        let mut used = 0u32;
        let mut take = |most: u64| {
            let bits = if plan.open_ended { 32 } else { (64 - most.leading_zeros()).max(1) };
            if used + bits > 64 {
                word += 1;
                used = 0;
            }
            let field = Bits { word, shift: used, mask: u64::MAX >> (64 - bits) };
            used += bits;
            field
        };
        let positions = (0..plan.threads()).map(|t| take(u64::from(plan.end(t)))).collect();
        // One more, for what nobody will read.
        let memory = plan.readers.iter().map(|writes| take(writes.len() as u64)).collect();
        let nothing = Bits { word: 0, shift: 0, mask: 0 };
        let slots = plan.slots.iter().map(|&of| (take(plan.slots.len() as u64 + 2), of)).collect();
        let permits = (0..plan.conditions).map(|_| take(plan.slots.len() as u64)).collect();
        let room = &plan.stops[..plan.room_for_stops()];
        let stopped = room.iter().map(|&stops| if stops { take(plan.sets.len() as u64) } else { nothing });
        let stopped = stopped.collect();
        let words = word as usize + 1;
        let stopping = plan.stopping();
        Layout { positions, memory, slots, permits, stopped, stopping, words: words + monitor_words, monitor: words }
    }

    /// For how many slots and conditions there is room.
    pub(super) fn waits(&self) -> (usize, usize) {
        (self.slots.len(), self.permits.len())
    }

    #[inline]
    pub(super) fn pack(&self, plan: &Plan, cut: &Cut, row: &mut [u64]) {
        row[..self.monitor].fill(0);
        let mut put = |bits: &Bits, value: u64| row[bits.word as usize] |= (value & bits.mask) << bits.shift;
        for (bits, &position) in self.positions.iter().zip(&cut.positions) {
            put(bits, u64::from(position));
        }
        for (x, bits) in self.memory.iter().enumerate() {
            let holds = cut.memory[x];
            let awaited = holds != UNREAD && cut.is_awaited(plan, x, holds);
            // All ones stand for "nobody will read it".
            put(bits, if awaited { u64::from(holds) } else { u64::MAX });
        }
        for (bits, asleep) in self.permits.iter().zip(&cut.asleep) {
            let mut permits = 0;
            for item in asleep.line() {
                match item {
                    Some(slot) => put(&self.slots[*slot as usize].0, permits + 2),
                    None => permits += 1,
                }
            }
            asleep.woken().iter().for_each(|slot| put(&self.slots[*slot as usize].0, 1));
            put(bits, permits);
        }
        for (bits, &set) in self.stopped.iter().zip(&cut.stopped) {
            put(bits, u64::from(set));
        }
        row[self.monitor..self.words].copy_from_slice(&cut.monitor);
    }

    #[inline]
    pub(super) fn unpack(&self, row: &[u64], cut: &mut Cut) {
        let get = |bits: &Bits| (row[bits.word as usize] >> bits.shift) & bits.mask;
        for (bits, position) in self.positions.iter().zip(&mut cut.positions) {
            *position = get(bits) as u32;
        }
        for (bits, holds) in self.memory.iter().zip(&mut cut.memory) {
            let value = get(bits);
            *holds = if value == bits.mask { UNREAD } else { value as u32 };
        }
        for (condition, (bits, asleep)) in self.permits.iter().zip(&mut cut.asleep).enumerate() {
            let of = self.slots.iter().zip(0u32..).filter(|((_, on), _)| *on as usize == condition);
            let slots = || of.clone().map(|((bits, _), slot)| (slot, get(bits)));
            let line = slots().filter(|(_, holds)| *holds > 1).map(|(slot, holds)| (slot, holds as usize - 2));
            let woken = slots().filter(|(_, holds)| *holds == 1).map(|(slot, _)| slot);
            *asleep = Sleepers::of(line, get(bits) as usize, woken);
        }
        for (bits, set) in self.stopped.iter().zip(&mut cut.stopped) {
            *set = get(bits) as u32;
        }
        cut.monitor.copy_from_slice(&row[self.monitor..self.words]);
    }
}
