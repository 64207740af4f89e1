//! Whether a schedule leads to where a run can leave the trace.

use super::replay::Replay;
use super::{Checker, Rejected, ensure};
use crate::divergence::{At, Divergence, Outcome};
use crate::goal::{Model, Schedule};
use crate::read_rule::ReadRule;
use portent_trace::{Op, ThreadId};

impl Checker<'_> {
    /// Whether after `witness`, a reordering of the trace in `model`, the operation is next and can have the outcome.
    pub fn check_divergence(&self, model: Model, question: &Divergence, witness: &Schedule) -> Result<(), Rejected> {
        let rule = self.rule(model);
        let exact = matches!(rule, ReadRule::SameValue | ReadRule::ObservedWrite);
        ensure(exact, "kept reads need not see the same").map_err(|why| Rejected { step: 0, why })?;
        let mut replay = Replay::new(self, rule);
        let mut step = 0;
        for thread in witness.steps(self.trace) {
            replay.execute(thread, None, step).map_err(|why| Rejected { step, why })?;
            step += 1;
        }
        replay.diverges(question).map_err(|why| Rejected { step, why })
    }
}

impl Replay<'_, '_> {
    fn diverges(&self, question: &Divergence) -> Result<(), String> {
        let trace = self.checker.trace;
        let (thread, op) = match question.at {
            At::Event(event) => (trace.thread(event), trace.op(event)),
            At::End(thread, op) => (thread, op),
        };
        let there = |at: &At| match *at {
            At::Event(event) => self.next(trace.thread(event)) == Some(event),
            At::End(thread, _) => self.next(thread).is_none(),
        };
        ensure(there(&question.at), "the thread is not at the operation")?;
        ensure(question.meanwhile.iter().all(there), "another thread is not at its operation")?;
        for one_of in &question.contain_one_of {
            let happened = |&event: &portent_trace::EventId| {
                let program = &self.checker.program[trace.thread(event).index()];
                program[..self.position[trace.thread(event).index()]].contains(&event)
            };
            ensure(one_of.iter().any(happened), "of some events that the cut must contain, it contains none")?;
        }
        for thread in &question.asleep {
            let slept = self.slept(*thread);
            let conditions = trace.conditions();
            let woken = |sleep| (0..conditions).any(|condition| self.asleep(condition).can_be_woken(sleep));
            ensure(slept.is_some_and(|sleep| !woken(sleep)), "another thread does not sleep, or may be woken")?;
        }
        match question.outcome {
            Outcome::Sees(value) => {
                let x = op.variable().filter(|_| op.reads()).ok_or("the operation does not read")?;
                ensure(self.content(x) == Some(value), "it would see another value")
            }
            Outcome::SeesWrite(writer) => {
                let x = op.variable().filter(|_| op.reads()).ok_or("the operation does not read")?;
                ensure(self.memory(x) == writer, "it would see another write")
            }
            Outcome::Goes => self.lets(thread, op),
            Outcome::Fails => match op {
                Op::Wait(s) | Op::Empty(s) => ensure(self.count(s.index()) == 0, "the semaphore is not at zero"),
                Op::Wake(c) => {
                    let sleep = self.slept(thread).ok_or("the thread does not sleep")?;
                    ensure(self.asleep(c.index()).can_be_left(sleep), "a notify has woken it")
                }
                _ => ensure(self.is_held(thread, op), "no other thread holds the lock"),
            },
            Outcome::Any => Ok(()),
        }
    }

    /// Whether a thread that is at an operation could do it now.
    pub(super) fn lets(&self, thread: ThreadId, op: Op) -> Result<(), String> {
        let trace = self.checker.trace;
        match op {
            Op::Acquire(..) | Op::Busy(..) => ensure(!self.is_held(thread, op), "the lock is held"),
            Op::Receive(token) => {
                ensure(self.sent(token.index()) == trace.senders(token).len(), "its token is not sent")
            }
            Op::Wait(s) | Op::Empty(s) => ensure(self.count(s.index()) > 0, "the semaphore is at zero"),
            Op::Wake(c) => {
                let sleep = self.slept(thread).ok_or("the thread does not sleep")?;
                ensure(self.asleep(c.index()).can_be_woken(sleep), "it is not notified")
            }
            _ => Err("the operation does not wait".into()),
        }
    }

    /// Whether another thread holds the lock of an acquire, or of a try, in a mode that excludes it.
    fn is_held(&self, thread: ThreadId, op: Op) -> bool {
        let (Op::Acquire(lock, mode) | Op::Busy(lock, mode)) = op else { return false };
        self.holders(lock.index()).iter().any(|(holder, held)| *holder != thread && held.conflicts_with(mode))
    }
}
