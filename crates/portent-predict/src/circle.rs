//! Who waits for whom where a schedule ends, and which threads of those are the deadlock.

use crate::facts::Facts;
use portent_order::Schedule;
use portent_trace::{EventId, LockId, Mode, Op, ThreadId};

/// Threads that wait for each other and for nobody else, and what explains that.
pub(crate) struct Circle {
    /// Where they wait, in the order of the trace.
    pub(crate) waits: Vec<EventId>,
    /// Whether it is a cycle of locks, or has a wake-up that is lost: other forms of deadlock, which are looked for by themselves.
    pub(crate) is_another_form: bool,
}

struct State<'a, 't> {
    facts: &'a Facts<'t>,
    position: Vec<usize>,
}

/// The threads that keep the one of `waiting` from going on, where a schedule ends and everybody waits: those of them that wait for each
/// other only.
pub(crate) fn circle(facts: &Facts<'_>, schedule: &Schedule, waiting: EventId) -> Circle {
    let state = State { facts, position: facts.steps.positions(schedule) };
    let mut at = state.reaches(facts.trace.thread(waiting));
    let mut least = at.clone();
    // Whom one can reach only becomes less; where it does not any more, all of them wait for each other.
    for &thread in &at {
        let from = state.reaches(thread);
        if from.len() < least.len() {
            least = from;
        }
    }
    at.clone_from(&least);
    let mut waits: Vec<EventId> = at.iter().filter_map(|&thread| state.next(thread)).collect();
    // Who is not started yet does not wait.
    waits.retain(|&event| state.position[facts.trace.thread(event).index()] > 0 || !is_start(facts, event));
    waits.sort_unstable();
    let locks_only = waits.len() > 1 && waits.iter().all(|&e| matches!(facts.trace.op(e), Op::Acquire(..)));
    let lost = |&event: &EventId| {
        facts.trace.pairing_of_wake(event).is_some_and(|pairing| {
            let notify = facts.trace.pairings()[pairing.index()].notify;
            let own = facts.steps.program(facts.trace.thread(notify));
            own[..state.position[facts.trace.thread(notify).index()]].last().is_some_and(|&last| last >= notify)
        })
    };
    Circle { is_another_form: locks_only || waits.iter().any(lost), waits }
}

/// Whether an event is where its thread begins, once it is started.
fn is_start(facts: &Facts<'_>, event: EventId) -> bool {
    let first = facts.steps.program(facts.trace.thread(event)).first();
    matches!(facts.trace.op(event), Op::Receive(_)) && first == Some(&event)
}

impl State<'_, '_> {
    fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.facts.steps.program(thread).get(self.position[thread.index()]).copied()
    }

    /// The locks that a thread holds.
    fn held(&self, thread: ThreadId) -> Vec<(LockId, Mode)> {
        let (trace, program) = (self.facts.trace, self.facts.steps.program(thread));
        if let Some(&next) = program.get(self.position[thread.index()]) {
            return self.facts.held(next).to_vec();
        }
        let Some(&last) = program.last() else { return Vec::new() };
        let mut held = self.facts.held(last).to_vec();
        match trace.op(last) {
            Op::Acquire(lock, mode) => held.push((lock, mode)),
            Op::Release(lock, mode) => held.retain(|one| *one != (lock, mode)),
            _ => {}
        }
        held
    }

    /// Whether a thread has such an operation still before it.
    fn has_left(&self, thread: ThreadId, is: impl Fn(Op) -> bool) -> bool {
        let left = self.facts.steps.program(thread).get(self.position[thread.index()]..);
        left.into_iter().flatten().any(|&event| is(self.facts.trace.op(event)))
    }

    /// The threads that wait, too, of which one would have to go on for this one to.
    fn waits_for(&self, thread: ThreadId) -> Vec<ThreadId> {
        let trace = self.facts.trace;
        let Some(op) = self.next(thread).map(|next| trace.op(next)).or_else(|| trace.pending(thread)) else {
            return Vec::new();
        };
        let waits = |other: &ThreadId| self.next(*other).is_some() || trace.pending(*other).is_some();
        let mut others: Vec<ThreadId> = trace.thread_ids().filter(|other| *other != thread).filter(waits).collect();
        others.retain(|&other| match op {
            Op::Acquire(lock, mode) => {
                self.held(other).iter().any(|&(held, how)| held == lock && how.conflicts_with(mode))
            }
            Op::Receive(token) => {
                let unsent = |send: &&EventId| self.next(other).is_some_and(|next| **send >= next);
                trace.senders(token).iter().filter(|&&send| trace.thread(send) == other).any(|send| unsent(&send))
            }
            Op::Wait(semaphore) => self.has_left(other, |op| op == Op::Post(semaphore)),
            Op::Wake(condition) => self.has_left(other, |op| matches!(op, Op::Notify(on, _) if on == condition)),
            _ => false,
        });
        others
    }

    /// A thread, and all that it waits for, directly or not.
    fn reaches(&self, thread: ThreadId) -> Vec<ThreadId> {
        let mut all = vec![thread];
        let mut at = 0;
        while let Some(&next) = all.get(at) {
            for other in self.waits_for(next) {
                if !all.contains(&other) {
                    all.push(other);
                }
            }
            at += 1;
        }
        all
    }
}
