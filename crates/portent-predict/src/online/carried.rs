//! What a run has behind it when a segment of it begins: locks that are held, calls that are open, who sleeps, who is at a barrier, what
//! semaphores count. As much as there is of that at one moment, however long the run.
//!
//! It is told as events that lead there: each thread's own, all of them before everything in the segment.

use portent_trace::{InputEvent, InputOp, StackId, ThreadId};
use rustc_hash::FxHashMap;

/// An event of the run that still matters, with its calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) event: InputEvent,
    pub(super) stack: Option<StackId>,
}

impl Kept {
    fn with(self, op: InputOp) -> Kept {
        Kept { event: InputEvent { op, ..self.event }, ..self }
    }
}

/// How a lock is held.
#[derive(Clone, Copy, Debug)]
struct Held {
    since: u64,
    depth: u32,
    kept: Kept,
}

#[derive(Clone, Debug, Default)]
struct Condition {
    /// Who sleeps, since when.
    asleep: Vec<(u64, Kept)>,
    /// Notifies that one of them could still take.
    open: Vec<(u64, Kept)>,
}

#[derive(Clone, Debug, Default)]
struct Barrier {
    /// Who has arrived in the round that fills.
    filling: Vec<Kept>,
    /// Who has not left a round that is over.
    leaving: Vec<ThreadId>,
}

/// What a run has behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// Events so far.
    pub(super) events: u64,
    /// Calls and marked blocks of each thread that are open, the outermost first.
    open: FxHashMap<ThreadId, Vec<Kept>>,
    /// By thread, lock and whether it is shared.
    held: FxHashMap<(ThreadId, u32, bool), Held>,
    /// Locks given back at all levels, to be taken back: with how many levels.
    given_back: Vec<(Kept, u32)>,
    conditions: FxHashMap<u32, Condition>,
    asleep_on: FxHashMap<ThreadId, u32>,
    semaphores: FxHashMap<u32, (u64, Kept)>,
    barriers: FxHashMap<u32, Barrier>,
}

impl Carried {
    /// Goes past an event.
    pub(super) fn pass(&mut self, kept: Kept) {
        use InputOp::*;
        let InputEvent { thread, op, object, value, .. } = kept.event;
        self.events += 1;
        let now = self.events;
        match op {
            Acquire | TryAcquire | OnceBegin => self.acquire(kept.with(Acquire), false, 1),
            AcquireShared | TryAcquireShared => self.acquire(kept.with(AcquireShared), true, 1),
            Release | OnceEnd => self.release(thread, object, false),
            ReleaseShared => self.release(thread, object, true),
            ReleaseAll => {
                if let Some(held) = self.held.remove(&(thread, object, false)) {
                    self.given_back.push((held.kept, held.depth));
                }
            }
            AcquireAll => {
                let is_it = |(given, _): &(Kept, u32)| given.event.thread == thread && given.event.object == object;
                if let Some(at) = self.given_back.iter().rposition(is_it) {
                    let (given, depth) = self.given_back.swap_remove(at);
                    self.acquire(given, false, depth);
                }
            }
            Call | Begin => self.open.entry(thread).or_default().push(kept),
            Return | End => {
                let begins = if op == Return { Call } else { Begin };
                if let Some(open) = self.open.get_mut(&thread)
                    && let Some(at) = open.iter().rposition(|kept| kept.event.op == begins)
                {
                    open.remove(at);
                }
            }
            SemaphoreInit => {
                let count = value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0);
                self.semaphores.insert(object, (count, kept));
            }
            Post => {
                let (count, _) = self.semaphores.entry(object).or_insert((0, kept));
                *count = count.saturating_add(1);
            }
            SemaphoreWait | SemaphoreTry => {
                let (count, _) = self.semaphores.entry(object).or_insert((0, kept));
                *count = count.saturating_sub(1);
            }
            Arrive => self.barriers.entry(object).or_default().filling.push(kept),
            Depart => {
                let barrier = self.barriers.entry(object).or_default();
                if barrier.filling.iter().any(|arrived| arrived.event.thread == thread) {
                    barrier.leaving.extend(barrier.filling.drain(..).map(|arrived| arrived.event.thread));
                }
                if let Some(at) = barrier.leaving.iter().position(|who| *who == thread) {
                    barrier.leaving.swap_remove(at);
                }
            }
            Sleep => {
                if let Some(old) = self.asleep_on.insert(thread, object) {
                    self.conditions.entry(old).or_default().wake(thread);
                }
                self.conditions.entry(object).or_default().asleep.push((now, kept));
            }
            Notify | NotifyAll => {
                if let Some(condition) = self.conditions.get_mut(&object) {
                    condition.notify(now, kept);
                }
            }
            Wake | WakeInTime | TimeOut | WakeByItself if self.asleep_on.get(&thread) == Some(&object) => {
                self.asleep_on.remove(&thread);
                let by_notify = matches!(op, Wake | WakeInTime);
                if let Some(condition) = self.conditions.get_mut(&object) {
                    let alone = condition.asleep.len() == 1;
                    let slept = condition.wake(thread);
                    if by_notify || alone {
                        condition.use_up(slept);
                    }
                    condition.prune();
                }
            }
            _ => {}
        }
    }

    fn acquire(&mut self, kept: Kept, shared: bool, depth: u32) {
        let (since, key) = (self.events, (kept.event.thread, kept.event.object, shared));
        self.held.entry(key).or_insert(Held { since, depth: 0, kept }).depth += depth;
    }

    fn release(&mut self, thread: ThreadId, lock: u32, shared: bool) {
        let key = (thread, lock, shared);
        if let Some(held) = self.held.get_mut(&key) {
            held.depth -= 1;
            if held.depth == 0 {
                self.held.remove(&key);
            }
        }
    }

    /// Who has still to leave a round of a barrier that is over.
    pub(super) fn leaving(&self) -> impl Iterator<Item = (ThreadId, u32)> + '_ {
        self.barriers.iter().flat_map(|(&barrier, state)| state.leaving.iter().map(move |&thread| (thread, barrier)))
    }

    /// Events that lead here, in an order in which they can happen.
    pub(super) fn events_that_lead_here(&self) -> Vec<Kept> {
        let mut all: Vec<Kept> = Vec::new();
        let mut semaphores: Vec<_> = self.semaphores.iter().filter(|(_, (count, _))| *count > 0).collect();
        semaphores.sort_unstable_by_key(|(semaphore, _)| **semaphore);
        for (_, (count, kept)) in semaphores {
            let value = Some(i64::try_from(*count).unwrap_or(i64::MAX));
            all.push(Kept { event: InputEvent { op: InputOp::SemaphoreInit, value, ..kept.event }, stack: kept.stack });
        }
        // What is given back again first: somebody else may have it now.
        for (kept, depth) in &self.given_back {
            all.extend(std::iter::repeat_n(*kept, *depth as usize));
            all.push(kept.with(InputOp::ReleaseAll));
        }
        let mut held: Vec<&Held> = self.held.values().collect();
        held.sort_unstable_by_key(|held| held.since);
        let mut arrived: Vec<&Kept> = self.barriers.values().flat_map(|barrier| &barrier.filling).collect();
        arrived.sort_unstable_by_key(|kept| (kept.event.object, kept.event.thread));
        let mut threads: Vec<ThreadId> = self.open.keys().copied().collect();
        threads.extend(held.iter().map(|held| held.kept.event.thread));
        threads.extend(arrived.iter().map(|kept| kept.event.thread));
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            all.extend(self.open.get(&thread).into_iter().flatten());
            for held in held.iter().filter(|held| held.kept.event.thread == thread) {
                all.extend(std::iter::repeat_n(held.kept, held.depth as usize));
            }
            all.extend(arrived.iter().copied().filter(|kept| kept.event.thread == thread));
        }
        let waits = self.conditions.values().flat_map(|condition| condition.asleep.iter().chain(&condition.open));
        let mut waits: Vec<(u64, Kept)> = waits.copied().collect();
        waits.sort_unstable_by_key(|(at, _)| *at);
        all.extend(waits.into_iter().map(|(_, kept)| kept));
        all
    }
}

impl Condition {
    /// Notes a notify, if it can make a difference to who sleeps.
    fn notify(&mut self, now: u64, kept: Kept) {
        let Some(&(last, _)) = self.asleep.last() else { return };
        let since: Vec<InputOp> = self.open.iter().filter(|(at, _)| *at > last).map(|(_, n)| n.event.op).collect();
        let is_one_more = match kept.event.op {
            InputOp::NotifyAll => !since.contains(&InputOp::NotifyAll),
            _ => since.iter().filter(|op| **op == InputOp::Notify).count() < self.asleep.len(),
        };
        if is_one_more {
            self.open.push((now, kept));
        }
    }

    /// Somebody sleeps no more; since when that was so.
    fn wake(&mut self, thread: ThreadId) -> u64 {
        let at = self.asleep.iter().position(|(_, kept)| kept.event.thread == thread);
        at.map_or(u64::MAX, |at| self.asleep.remove(at).0)
    }

    /// The first notify since then has woken somebody.
    fn use_up(&mut self, slept: u64) {
        if let Some(at) = self.open.iter().position(|(at, _)| *at > slept)
            && self.open[at].1.event.op == InputOp::Notify
        {
            self.open.remove(at);
        }
    }

    /// Forgets notifies that nobody who sleeps could take.
    fn prune(&mut self) {
        let first = self.asleep.first().map_or(u64::MAX, |(at, _)| *at);
        self.open.retain(|(at, _)| *at > first);
    }
}
