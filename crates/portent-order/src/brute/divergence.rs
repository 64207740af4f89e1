//! Where a run can leave a trace, by enumeration.

use super::oracle::{Oracle, State};
use super::search::Wanted;
use crate::divergence::{At, Divergence, Outcome};
use crate::goal::{Model, Schedule};
use crate::read_rule::ReadRule;
use portent_trace::{CondId, EventId, Op, ThreadId, Trace};

/// A reordering after which the operation is next and can have the outcome, or `None` if there is none. In a model that lets
/// kept reads see something else, there is none.
pub fn diverges(trace: &Trace, model: Model, question: &Divergence) -> Option<Schedule> {
    let oracle = Oracle::new(trace, model);
    if !matches!(oracle.rule, ReadRule::SameValue | ReadRule::ObservedWrite) {
        return None;
    }
    Some(oracle.search(&Wanted::Divergence(question))?.into_iter().collect())
}

/// Every operation of the trace that has an outcome, with every other outcome that it could have, feasible or not.
pub fn divergences(trace: &Trace) -> Vec<Divergence> {
    let oracle = Oracle::new(trace, Model::Values);
    let mut all = Vec::new();
    for event in trace.events() {
        let at = At::Event(event.id);
        if let (true, Some(x)) = (event.op.reads(), event.op.variable()) {
            let writers = oracle.writers(x);
            let mut values: Vec<i64> = writers.iter().filter_map(|&writer| oracle.written(x, writer)).collect();
            values.sort();
            values.dedup();
            all.extend(values.into_iter().map(|value| Divergence::new(at, Outcome::Sees(value))));
            all.extend(writers.into_iter().map(|writer| Divergence::new(at, Outcome::SeesWrite(writer))));
        }
        all.push(Divergence::new(at, Outcome::Any));
        match event.op {
            Op::Acquire(..) | Op::Wait(_) => all.push(Divergence::new(at, Outcome::Fails)),
            Op::Busy(..) | Op::Receive(_) | Op::Empty(_) => all.push(Divergence::new(at, Outcome::Goes)),
            Op::Wake(_) => all.extend([Outcome::Goes, Outcome::Fails].map(|outcome| Divergence::new(at, outcome))),
            _ => {}
        }
    }
    all
}

impl Oracle<'_> {
    fn writers(&self, x: portent_trace::VarId) -> Vec<crate::goal::Writer> {
        let writes = self.trace.events().filter(|e| e.op.writes() && e.op.variable() == Some(x));
        let writes = writes.map(|e| crate::goal::Writer::Event(e.id));
        std::iter::once(crate::goal::Writer::Init).chain(writes).collect()
    }

    pub(super) fn is_divergence(&self, state: &State, question: &Divergence) -> bool {
        let next = |at: &At| match *at {
            At::Event(event) => self.next(state, event),
            At::End(thread, _) => state.position[thread.index()] == self.program[thread.index()].len(),
        };
        let (thread, op) = match question.at {
            At::Event(event) => (self.trace.thread(event), self.trace.op(event)),
            At::End(thread, op) => (thread, op),
        };
        let there = next(&question.at) && question.meanwhile.iter().all(next);
        let contains = |events: &Vec<EventId>| events.iter().any(|&event| self.done(state, event));
        let asleep = |thread: &ThreadId| {
            let slept = self.lasts(state, *thread);
            slept.is_some_and(|(condition, sleep)| !self.sleeps(state, condition, sleep, false))
        };
        there
            && question.asleep.iter().all(asleep)
            && question.contain_one_of.iter().all(contains)
            && self.can_have(state, thread, op, question.outcome)
    }

    pub(super) fn can_have(&self, state: &State, thread: ThreadId, op: Op, outcome: Outcome) -> bool {
        match (outcome, op) {
            (Outcome::Any, _) => true,
            (Outcome::Sees(value), Op::Read(x, _) | Op::Update(x, _)) => {
                self.written(x, state.last[x.index()]) == Some(value)
            }
            (Outcome::SeesWrite(writer), Op::Read(x, _) | Op::Update(x, _)) => state.last[x.index()] == writer,
            (Outcome::Goes, Op::Acquire(lock, mode) | Op::Busy(lock, mode)) => {
                !self.held_by_other(state, thread, lock, mode)
            }
            (Outcome::Goes, Op::Receive(token)) => self.trace.senders(token).iter().all(|&send| self.done(state, send)),
            (Outcome::Fails, Op::Acquire(lock, mode) | Op::Busy(lock, mode)) => {
                self.held_by_other(state, thread, lock, mode)
            }
            (Outcome::Goes, Op::Wait(semaphore) | Op::Empty(semaphore)) => self.count(state, semaphore) > 0,
            (Outcome::Fails, Op::Wait(semaphore) | Op::Empty(semaphore)) => self.count(state, semaphore) == 0,
            (Outcome::Goes | Outcome::Fails, Op::Wake(condition)) => {
                let slept = self.lasts(state, thread).filter(|(on, _)| *on == condition);
                slept.is_some_and(|(_, sleep)| self.sleeps(state, condition, sleep, outcome == Outcome::Fails))
            }
            _ => false,
        }
    }

    /// The sleep that a thread has not come back from.
    fn lasts(&self, state: &State, thread: ThreadId) -> Option<(CondId, EventId)> {
        let done = &self.program[thread.index()][..state.position[thread.index()]];
        let last = done.iter().rfind(|&&event| matches!(self.trace.op(event), Op::Sleep(_) | Op::Wake(_)))?;
        match self.trace.op(*last) {
            Op::Sleep(condition) => Some((condition, *last)),
            _ => None,
        }
    }
}
