//! Vector clocks of the observed order.

use portent_trace::{EventId, Mode, Op, PairingId, ReadOrder, ThreadId, Trace, UpdateOrder, WriteOrder};
use rustc_hash::FxHashMap;

type Clock = Vec<u32>;

fn join(clock: &mut [u32], other: &[u32]) {
    clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

/// Joins into a clock that is empty as long as nothing was.
fn join_in(clock: &mut Clock, other: &[u32]) {
    if clock.is_empty() {
        clock.extend_from_slice(other);
    } else {
        join(clock, other);
    }
}

/// Whether an access acquires, and whether it releases.
#[inline]
pub(super) fn orders(op: Op) -> (bool, bool) {
    match op {
        Op::Read(_, order) => (matches!(order, ReadOrder::Consume | ReadOrder::Acquire | ReadOrder::SeqCst), false),
        Op::Write(_, order) => (false, matches!(order, WriteOrder::Release | WriteOrder::SeqCst)),
        Op::Update(_, order) => (
            !matches!(order, UpdateOrder::Relaxed | UpdateOrder::Release),
            matches!(order, UpdateOrder::Release | UpdateOrder::AcqRel | UpdateOrder::SeqCst),
        ),
        _ => (false, false),
    }
}

/// Whether an atomic access is weaker than acquire, release or both, as far as it could have them.
#[inline]
pub(super) fn is_weak(op: Op) -> bool {
    let (acquires, releases) = orders(op);
    op.is_atomic() && ((op.reads() && !acquires) || (op.writes() && !releases))
}

/// What a lock passes on.
#[derive(Clone, Default)]
struct Released {
    exclusive: Clock,
    shared: Clock,
    /// The thread that released it exclusively, if nobody released it since: it has nothing to learn from the lock.
    last: Option<ThreadId>,
}

/// What fences do to a thread (C++ [atomics.fences]): an atomic write that does not release passes on what the last release fence
/// before it released; what atomic reads that do not acquire have seen is acquired at the next acquire fence.
#[derive(Clone, Default)]
struct Fenced {
    released: Clock,
    seen: Clock,
}

/// Clocks of threads, locks, tokens, semaphores, notifies and atomics, moved along the trace event by event.
pub struct Clocks {
    /// Whether every atomic counts as acquire and release.
    relaxed_too: bool,
    threads: Vec<Clock>,
    locks: Vec<Released>,
    tokens: FxHashMap<usize, Clock>,
    /// By semaphore: whoever passes it comes after every earlier post, since each adds to the same count.
    posts: FxHashMap<usize, Clock>,
    notifies: FxHashMap<EventId, Clock>,
    atomics: FxHashMap<usize, Clock>,
    /// By thread; empty if the trace has no fence, or if every atomic orders without.
    fences: Vec<Fenced>,
}

impl Clocks {
    /// The clocks before a trace; with `relaxed_too`, reads-from of relaxed atomics orders as well.
    pub fn new(trace: &Trace, relaxed_too: bool) -> Self {
        let threads = (0..trace.threads())
            .map(|t| {
                let mut clock = vec![0; trace.threads()];
                clock[t] = 1;
                clock
            })
            .collect();
        let has_fences = !relaxed_too && trace.events().any(|event| matches!(event.op, Op::Fence(_)));
        Clocks {
            relaxed_too,
            threads,
            locks: vec![Released::default(); trace.locks()],
            tokens: FxHashMap::default(),
            posts: FxHashMap::default(),
            notifies: FxHashMap::default(),
            atomics: FxHashMap::default(),
            fences: if has_fences { vec![Fenced::default(); trace.threads()] } else { Vec::new() },
        }
    }
    /// The clock of a thread.
    #[inline]
    pub fn of(&self, thread: ThreadId) -> &[u32] {
        &self.threads[thread.index()]
    }

    /// What comes to an event from elsewhere: call before [`Clocks::leave`]. Whether the thread's clock may have changed.
    #[inline]
    pub fn arrive(&mut self, trace: &Trace, event: EventId) -> bool {
        self.arrive_at(trace, event, trace.op(event))
    }
    /// The same, where the operation is at hand.
    #[inline]
    pub(super) fn arrive_at(&mut self, trace: &Trace, event: EventId, op: Op) -> bool {
        match op {
            Op::Write(..) | Op::Branch => false,
            op @ (Op::Read(..) | Op::Update(..)) if !op.is_atomic() || self.atomics.is_empty() => false,
            op => self.arrive_from_elsewhere(trace, event, op),
        }
    }

    fn arrive_from_elsewhere(&mut self, trace: &Trace, event: EventId, op: Op) -> bool {
        let thread = trace.thread(event);
        let clock = &mut self.threads[thread.index()];
        match op {
            Op::Acquire(l, mode) => {
                let released = &self.locks[l.index()];
                if released.last == Some(thread) {
                    return false;
                }
                join(clock, &released.exclusive);
                if mode == Mode::Exclusive {
                    join(clock, &released.shared);
                }
            }
            Op::Receive(k) => match self.tokens.get(&k.index()) {
                Some(sent) => join(clock, sent),
                None => return false,
            },
            Op::Wait(s) => match self.posts.get(&s.index()) {
                Some(posted) => join(clock, posted),
                None => return false,
            },
            Op::Wake(_) => {
                let Some(k) = trace.pairing_of_wake(event) else { return false };
                let notify = trace.pairings()[k.index()].notify;
                let Some(notified) = self.notifies.get(&notify) else { return false };
                join(clock, notified);
                let last: Option<PairingId> = trace.woken_by(notify).iter().copied().max();
                if last == Some(k) {
                    self.notifies.remove(&notify);
                }
            }
            Op::Read(x, _) | Op::Update(x, _) if op.is_atomic() => {
                let Some(released) = self.atomics.get(&x.index()) else { return false };
                if orders(op).0 || self.relaxed_too {
                    join(clock, released);
                } else {
                    if let Some(fenced) = self.fences.get_mut(thread.index()) {
                        join_in(&mut fenced.seen, released);
                    }
                    return false;
                }
            }
            Op::Fence(order) if order.acquires() => match self.fences.get(thread.index()) {
                Some(fenced) if !fenced.seen.is_empty() => join(clock, &fenced.seen),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// What an event passes on. Whether the thread's time moved on.
    #[inline]
    pub fn leave(&mut self, trace: &Trace, event: EventId) -> bool {
        self.leave_at(trace, event, trace.op(event))
    }
    /// The same, where the operation is at hand.
    #[inline]
    pub(super) fn leave_at(&mut self, trace: &Trace, event: EventId, op: Op) -> bool {
        match op {
            Op::Read(..) | Op::Acquire(..) | Op::Branch => false,
            op @ Op::Write(..) if !op.is_atomic() && self.atomics.is_empty() => false,
            op => self.pass_on(trace, event, op),
        }
    }

    fn pass_on(&mut self, trace: &Trace, event: EventId, op: Op) -> bool {
        let thread = trace.thread(event);
        let t = thread.index();
        let clock = &self.threads[t];
        match op {
            Op::Release(l, mode) => {
                let released = &mut self.locks[l.index()];
                if mode == Mode::Exclusive {
                    join_in(&mut released.exclusive, clock);
                    released.last = Some(thread);
                } else {
                    join_in(&mut released.shared, clock);
                    released.last = None;
                }
            }
            Op::Send(k) => join_in(self.tokens.entry(k.index()).or_default(), clock),
            Op::Post(s) => join_in(self.posts.entry(s.index()).or_default(), clock),
            Op::Notify(..) if !trace.woken_by(event).is_empty() => drop(self.notifies.insert(event, clock.clone())),
            Op::Write(x, _) | Op::Update(x, _) => {
                let update = matches!(op, Op::Update(..));
                let releases = orders(op).1 || (self.relaxed_too && op.is_atomic());
                let fenced = self.fences.get(t).map(|fenced| &fenced.released).filter(|released| !released.is_empty());
                if let (Some(released), false, true) = (fenced, releases, op.is_atomic()) {
                    if update {
                        join_in(self.atomics.entry(x.index()).or_default(), released);
                    } else {
                        self.atomics.insert(x.index(), released.clone());
                    }
                    return false;
                }
                match (releases, update) {
                    (true, true) => join_in(self.atomics.entry(x.index()).or_default(), clock),
                    (true, false) => drop(self.atomics.insert(x.index(), clock.clone())),
                    (false, true) => return false,
                    (false, false) => {
                        self.atomics.remove(&x.index());
                        return false;
                    }
                }
            }
            // Also where every atomic orders without it: times of the two orders are compared.
            Op::Fence(order) if order.releases() => {
                if let Some(fenced) = self.fences.get_mut(t) {
                    fenced.released.clone_from(clock);
                }
            }
            _ => return false,
        }
        self.threads[t][t] += 1;
        true
    }
}
