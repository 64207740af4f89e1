//! A cut, spread out for walking and packed for keeping.
//!
//! State (SEMANTICS §4): the position of every thread; for each tracked variable, which write it holds, as long as somebody
//! will read that; for each sleeping thread, whether its notify came after its sleep; and the monitor's state. Packed, each
//! takes as many bits as it can ever need.

use super::plan::{Deed, Plan, Step, UNREAD};
use portent_spec::Monitor;
use portent_trace::Mode;

/// A cut, spread out.
#[derive(Clone, Debug, Default)]
pub(super) struct Cut {
    pub(super) positions: Vec<u32>,
    /// Which write each variable holds.
    pub(super) memory: Vec<u32>,
    /// For each thread, whether it was notified while it slept.
    pub(super) notified: Vec<bool>,
    pub(super) monitor: Vec<u64>,
}

impl Cut {
    pub(super) fn start(plan: &Plan, monitor: &dyn Monitor) -> Cut {
        let mut state = vec![0; monitor.words()];
        monitor.start(&mut state);
        Cut {
            positions: vec![0; plan.threads()],
            memory: vec![0; plan.readers.len()],
            notified: vec![false; plan.threads()],
            monitor: state,
        }
    }
    pub(super) fn copy_from(&mut self, other: &Cut) {
        self.positions.copy_from_slice(&other.positions);
        self.memory.copy_from_slice(&other.memory);
        self.notified.copy_from_slice(&other.notified);
        self.monitor.copy_from_slice(&other.monitor);
    }
    /// How many steps were made: every cut belongs to one level.
    pub(super) fn level(&self) -> u64 {
        self.positions.iter().map(|&p| u64::from(p)).sum()
    }
    pub(super) fn is_complete(&self, plan: &Plan) -> bool {
        (0..plan.threads()).all(|t| self.positions[t] == plan.end(t))
    }

    /// Whether another thread keeps `thread` from the lock.
    #[inline]
    fn is_held(&self, plan: &Plan, thread: usize, lock: u32, mode: Mode) -> bool {
        (0..self.positions.len()).any(|t| {
            t != thread && plan.held(t, self.positions[t]).iter().any(|&(l, m)| l == lock && m.conflicts_with(mode))
        })
    }
    #[inline]
    fn has(&self, plan: &Plan, step: &Step) -> bool {
        plan.needs(step).iter().all(|&(t, done)| self.positions[t as usize] >= done)
    }

    /// Whether a thread can make its next step.
    #[inline]
    pub(super) fn enabled(&self, plan: &Plan, thread: usize, step: &Step) -> bool {
        let possible = match step.deed {
            Deed::Pass | Deed::Write { .. } | Deed::Release { .. } | Deed::Sleep | Deed::Notify { .. } => true,
            Deed::Read { variable, from } | Deed::Update { variable, from, .. } => {
                self.memory[variable as usize] == from
            }
            Deed::Acquire { lock, mode } => !self.is_held(plan, thread, lock, mode),
            Deed::Busy { lock, mode } => self.is_held(plan, thread, lock, mode),
            Deed::Wake => self.notified[thread],
        };
        possible && self.has(plan, step)
    }

    /// Makes a step, monitor aside.
    #[inline]
    pub(super) fn advance(&mut self, plan: &Plan, thread: usize, step: &Step) {
        match step.deed {
            Deed::Write { variable, ordinal } | Deed::Update { variable, ordinal, .. } => {
                self.memory[variable as usize] = ordinal;
            }
            Deed::Sleep | Deed::Wake => self.notified[thread] = false,
            Deed::Notify { first, count } => {
                for notified in &plan.notifies[first as usize..(first + count) as usize] {
                    if self.positions[notified.thread as usize] >= notified.asleep {
                        self.notified[notified.thread as usize] = true;
                    }
                }
            }
            _ => {}
        }
        self.positions[thread] += 1;
    }

    /// Makes all steps that lose nothing when they are made at once, telling which threads made them.
    pub(super) fn settle(&mut self, plan: &Plan, mut tell: impl FnMut(usize)) {
        loop {
            let mut moved = false;
            for t in 0..self.positions.len() {
                while let Some(step) = plan.step(t, self.positions[t]) {
                    if step.at_once && self.enabled(plan, t, step) {
                        self.advance(plan, t, step);
                        tell(t);
                        moved = true;
                        continue;
                    }
                    let Deed::Acquire { .. } = step.deed else { break };
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
            let harmless = match step.deed {
                Deed::Acquire { lock, .. } => !plan.tried[lock as usize],
                Deed::Release { .. } | Deed::Read { .. } | Deed::Pass => step.at_once,
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
    pub(super) fn too_early(&self, plan: &Plan, thread: usize, step: &Step) -> bool {
        if plan.open_ended || !matches!(step.deed, Deed::Acquire { .. }) || step.letter.is_some() {
            return false;
        }
        let mut at = self.positions[thread];
        loop {
            let Some(step) = plan.step(thread, at) else { return false };
            if step.letter.is_some() {
                return false;
            }
            match step.deed {
                Deed::Acquire { lock, .. } if !plan.tried[lock as usize] => {}
                Deed::Pass if step.at_once => {
                    if !self.has(plan, step) {
                        return true;
                    }
                }
                Deed::Read { variable, from } | Deed::Update { variable, from, .. } => {
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
    notified: Vec<Bits>,
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
        let sleeps: Vec<bool> =
            plan.steps.iter().map(|steps| steps.iter().any(|step| step.deed == Deed::Sleep)).collect();
        let notified = sleeps
            .iter()
            .map(|&sleeps| if sleeps || plan.open_ended { take(1) } else { Bits { word: 0, shift: 0, mask: 0 } });
        let notified = notified.collect();
        let words = word as usize + 1;
        Layout { positions, memory, notified, words: words + monitor_words, monitor: words }
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
            let awaited = holds != UNREAD && plan.is_awaited(x, holds, &cut.positions);
            // All ones stand for "nobody will read it".
            put(bits, if awaited { u64::from(holds) } else { u64::MAX });
        }
        for (bits, &notified) in self.notified.iter().zip(&cut.notified) {
            put(bits, u64::from(notified));
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
        for (bits, notified) in self.notified.iter().zip(&mut cut.notified) {
            *notified = get(bits) != 0;
        }
        cut.monitor.copy_from_slice(&row[self.monitor..self.words]);
    }
}
