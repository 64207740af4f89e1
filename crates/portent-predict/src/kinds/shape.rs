//! Shapes of witnesses: where the write that a read saw in the trace comes in a witness in which it sees another.

use crate::facts::Facts;
use portent_order::{Model, Schedule, Writer};
use portent_trace::{CondId, EventId, LockId, Mode, Op, Reach, SemId, Sleepers, ThreadId, VarId};
use rustc_hash::FxHashMap;

/// The shapes that Sinha et al. tell apart: a read r of write w, and a challenger c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessType {
    /// c → r → w: the witness can go on to w.
    ReadBeforeWrite,
    /// w → c → r
    Overwritten,
    /// c → r, and w does not happen.
    WithoutWrite,
}

impl WitnessType {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            WitnessType::ReadBeforeWrite => "c-r-w",
            WitnessType::Overwritten => "w-c-r",
            WitnessType::WithoutWrite => "c-r",
        }
    }
}

/// The shape of a witness: where the write that the read saw in the trace comes in it.
pub(super) fn shape(facts: &Facts<'_>, model: Model, read: EventId, witness: &Schedule) -> WitnessType {
    let Writer::Event(seen) = facts.saw(read) else { return WitnessType::Overwritten };
    let trace = facts.trace;
    let mut going_on = GoingOn::new(facts, model);
    for thread in witness.steps() {
        going_on.step(thread);
    }
    if going_on.is_done(seen) {
        return WitnessType::Overwritten;
    }
    // All that `seen` needs comes before it in the trace, and the reading thread goes no further.
    let mut blocked = vec![false; trace.threads()];
    blocked[trace.thread(read).index()] = true;
    for event in (0..=seen.index()).map(EventId::new) {
        let thread = trace.thread(event);
        if !blocked[thread.index()] && !going_on.is_done(event) {
            match going_on.enabled(event) {
                true => going_on.step(thread),
                false => blocked[thread.index()] = true,
            }
        }
    }
    if going_on.is_done(seen) { WitnessType::ReadBeforeWrite } else { WitnessType::WithoutWrite }
}

/// A run after its witness, continued in observed order as far as that goes.
struct GoingOn<'a, 't> {
    facts: &'a Facts<'t>,
    model: Model,
    position: Vec<usize>,
    done: Vec<bool>,
    holders: FxHashMap<LockId, Vec<(ThreadId, Mode)>>,
    memory: FxHashMap<VarId, EventId>,
    /// Who sleeps on conditions, and the last sleep of each thread.
    asleep: FxHashMap<CondId, Sleepers<EventId>>,
    slept: FxHashMap<ThreadId, EventId>,
    /// By how much semaphores have moved from where they began.
    counted: FxHashMap<SemId, i64>,
}

impl<'a, 't> GoingOn<'a, 't> {
    fn new(facts: &'a Facts<'t>, model: Model) -> Self {
        GoingOn {
            facts,
            model,
            position: vec![0; facts.trace.threads()],
            done: vec![false; facts.trace.len()],
            holders: FxHashMap::default(),
            memory: FxHashMap::default(),
            asleep: FxHashMap::default(),
            slept: FxHashMap::default(),
            counted: FxHashMap::default(),
        }
    }

    fn is_done(&self, event: EventId) -> bool {
        self.done[event.index()]
    }

    fn step(&mut self, thread: ThreadId) {
        let trace = self.facts.trace;
        let position = &mut self.position[thread.index()];
        let Some(&event) = self.facts.steps.program(thread).get(*position) else { return };
        *position += 1;
        self.done[event.index()] = true;
        match trace.op(event) {
            Op::Acquire(lock, mode) => self.holders.entry(lock).or_default().push((thread, mode)),
            Op::Release(lock, mode) => {
                if let Some(holders) = self.holders.get_mut(&lock) {
                    holders.retain(|h| *h != (thread, mode));
                }
            }
            Op::Write(x, _) | Op::Update(x, _) => drop(self.memory.insert(x, event)),
            Op::Post(s) => *self.counted.entry(s).or_default() += 1,
            Op::Wait(s) => *self.counted.entry(s).or_default() -= 1,
            Op::Sleep(c) => {
                self.asleep.entry(c).or_default().sleep(event);
                self.slept.insert(thread, event);
            }
            Op::Notify(c, Reach::One) => self.asleep.entry(c).or_default().notify_one(),
            Op::Notify(c, Reach::All) => self.asleep.entry(c).or_default().notify_all(),
            Op::Wake(c) => {
                let (asleep, Some(sleep)) = (self.asleep.entry(c).or_default(), self.slept.remove(&thread)) else {
                    return;
                };
                match trace.pairing_of_wake(event) {
                    Some(_) => asleep.wake(sleep),
                    None => asleep.leave(sleep),
                }
            }
            _ => {}
        }
    }

    fn count(&self, semaphore: SemId) -> i64 {
        let initial = i64::try_from(self.facts.trace.initial_count(semaphore)).unwrap_or(i64::MAX / 2);
        initial + self.counted.get(&semaphore).copied().unwrap_or(0)
    }

    fn enabled(&self, event: EventId) -> bool {
        let trace = self.facts.trace;
        let thread = trace.thread(event);
        let held_by_other = |lock, mode: Mode| {
            let mut holders = self.holders.get(&lock).into_iter().flatten();
            holders.any(|(t, m)| *t != thread && m.conflicts_with(mode))
        };
        match trace.op(event) {
            Op::Acquire(lock, mode) => !held_by_other(lock, mode),
            Op::Busy(lock, mode) => held_by_other(lock, mode),
            Op::Receive(token) => trace.senders(token).iter().all(|&send| self.is_done(send)),
            Op::Wake(c) => self.asleep.get(&c).zip(self.slept.get(&thread)).is_some_and(|(asleep, &sleep)| match trace
                .pairing_of_wake(event)
            {
                Some(_) => asleep.can_wake(sleep),
                None => asleep.can_leave(sleep),
            }),
            Op::Wait(s) => self.count(s) > 0,
            Op::Empty(s) => self.count(s) == 0,
            // Stricter than `values` needs: what is shown to go on does.
            Op::Read(x, _) | Op::Update(x, _) if self.model != Model::Sync => {
                self.memory.get(&x).map_or(Writer::Init, |&w| Writer::Event(w)) == self.facts.saw(event)
            }
            _ => true,
        }
    }
}
