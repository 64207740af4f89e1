//! What a goal is, and whether a replay has reached it.

use super::replay::Replay;
use super::{Checker, ensure};
use crate::goal::{Goal, Writer};
use crate::read_rule::ReadRule;
use portent_trace::{EventId, Op, Pairing, ThreadId};

impl Checker<'_> {
    /// Whether the goal's events are of the right kind at all.
    pub(super) fn is_a_goal(&self, goal: &Goal) -> Result<(), String> {
        let (op, thread) = (|e| self.trace.op(e), |e| self.trace.thread(e));
        let conflict = |a: EventId, b: EventId| thread(a) != thread(b) && op(a).conflicts_with(op(b));
        match *goal {
            Goal::Race { first, second } => {
                ensure(conflict(first, second), "the two do not conflict")?;
                ensure(!(op(first).is_atomic() && op(second).is_atomic()), "both are atomic")
            }
            Goal::Nondeterminism { read, challenger } => {
                ensure(op(read).reads(), "the event does not read")?;
                ensure(self.saw[read.index()] != challenger, "that is what it saw")?;
                let Writer::Event(c) = challenger else { return Ok(()) };
                ensure(c != read && op(c).writes() && op(c).variable() == op(read).variable(), "no write it could see")
            }
            Goal::FinalValue { variable, challenger } => {
                ensure(
                    op(challenger).writes() && op(challenger).variable() == Some(variable),
                    "no write of the variable",
                )?;
                ensure(self.last[variable.index()] != Writer::Event(challenger), "that is what it held")
            }
            Goal::Atomicity { first, remote, second } => {
                ensure(
                    conflict(first, remote) && conflict(remote, second),
                    "the remote access does not conflict with both",
                )?;
                ensure(thread(first) == thread(second) && first < second, "the block's accesses are not in order")?;
                ensure(self.in_one_block(first, second), "the two are not in one atomic block")
            }
            Goal::Deadlock { ref waiting } => {
                let mut threads: Vec<ThreadId> = waiting.iter().map(|&e| thread(e)).collect();
                threads.sort();
                threads.dedup();
                ensure(waiting.len() > 1 && threads.len() == waiting.len(), "not a cycle of distinct threads")?;
                ensure(waiting.iter().all(|&e| matches!(op(e), Op::Acquire(..))), "not all are acquires")?;
                ensure(!waiting.iter().any(|&e| self.trace.tries(e)), "a try does not wait")
            }
            Goal::LostWakeup { pairing } => ensure(pairing.index() < self.trace.pairings().len(), "no such wait"),
            Goal::Stuck { waiting } => ensure(self.can_wait(waiting), "nobody ever waits there"),
            Goal::LostUpdate { first, read, remote, second } => {
                ensure(thread(first) != thread(remote), "one thread has both updates")?;
                ensure(op(first).variable() == op(remote).variable(), "they update different variables")?;
                ensure(matches!(op(second), Op::Write(..)), "what overwrites is no plain write")?;
                ensure(self.are_an_update(first, second), "the thread that overwrites does not update")?;
                ensure(
                    if read == remote { matches!(op(read), Op::Update(..)) } else { self.are_an_update(read, remote) },
                    "the other thread does not update",
                )
            }
        }
    }

    /// Whether an event is one that can have to wait for others: no try, nothing that a thread does by itself.
    fn can_wait(&self, event: EventId) -> bool {
        match self.trace.op(event) {
            Op::Receive(_) | Op::Wait(_) => true,
            Op::Acquire(..) => !self.trace.tries(event),
            Op::Wake(_) => self.trace.pairing_of_wake(event).is_some(),
            _ => false,
        }
    }

    /// Whether a read and a write are of one thread and one variable, which it does not access in between.
    fn are_an_update(&self, read: EventId, write: EventId) -> bool {
        let op = |e: EventId| self.trace.op(e);
        let thread = self.trace.thread(read);
        let same = read < write && thread == self.trace.thread(write) && op(read).variable() == op(write).variable();
        let program = &self.program[thread.index()];
        let between = |e: &&EventId| **e > read && **e < write;
        same && op(read).reads()
            && op(write).writes()
            && program.iter().filter(between).all(|&e| op(e).variable() != op(read).variable())
    }

    pub(super) fn in_one_block(&self, first: EventId, second: EventId) -> bool {
        let program = &self.program[self.trace.thread(first).index()];
        let at = |event: EventId| program.partition_point(|&e| e < event);
        let mark = |e: &EventId| matches!(self.trace.op(*e), Op::Begin(_) | Op::End(_));
        let opened = program[..at(first)].iter().rev().find(|e| mark(e));
        opened.is_some_and(|&e| matches!(self.trace.op(e), Op::Begin(_)))
            && !program[at(first)..at(second)].iter().any(mark)
    }
}

impl Replay<'_, '_> {
    /// Whether the goal is reached after the last step.
    pub(super) fn reached(&self, goal: &Goal) -> Result<(), String> {
        let trace = self.checker.trace;
        let is_next = |event: EventId| self.next(trace.thread(event)) == Some(event);
        match *goal {
            Goal::Race { first, second } => {
                ensure(is_next(first) && is_next(second), "the two are not both next")?;
                let symbolic = self.rule == ReadRule::SameFormulas;
                let other = [first, second].into_iter().filter(|_| symbolic).find_map(|event| self.other_way(event));
                other.map_or(Ok(()), Err)
            }
            Goal::Nondeterminism { read, .. } => {
                let after = self.position[trace.thread(read).index()];
                let last = self.checker.program[trace.thread(read).index()].get(after.wrapping_sub(1));
                ensure(last == Some(&read), "the read is not the last event of its thread")
            }
            Goal::FinalValue { variable, challenger } => {
                ensure(trace.thread_ids().all(|t| self.next(t).is_none()), "the reordering is not complete")?;
                ensure(self.memory(variable) == Writer::Event(challenger), "another write is the last")?;
                let Writer::Event(last) = self.checker.last[variable.index()] else { return Ok(()) };
                let (held, holds) = (trace.value(last), self.content(variable));
                let same = self.tainted_variables.contains(&variable.index()) || (held.is_some() && held == holds);
                ensure(!self.rule.compares_values() || !same, "the variable may hold the same value")
            }
            Goal::Atomicity { first, remote, second } | Goal::LostUpdate { first, remote, second, .. } => {
                let when = [first, remote, second].map(|event| self.when.get(&event));
                let [Some(a), Some(f), Some(b)] = when else { return Err("not all three were executed".into()) };
                ensure(a < f && f < b, "the remote access is not between the two")
            }
            Goal::Deadlock { ref waiting } => {
                for (i, &event) in waiting.iter().enumerate() {
                    let holder = trace.thread(waiting[(i + 1) % waiting.len()]);
                    let Op::Acquire(lock, mode) = trace.op(event) else { return Err("not an acquire".into()) };
                    let holders = self.holders(lock.index());
                    let mut holdings = holders.iter();
                    ensure(is_next(event), "a thread of the cycle is not at its acquire")?;
                    ensure(
                        holdings.any(|(t, m)| *t == holder && m.conflicts_with(mode)),
                        "a lock of the cycle is not held by the next thread",
                    )?;
                }
                Ok(())
            }
            Goal::LostWakeup { pairing } => self.lost(self.pairing(pairing.index())),
            Goal::Stuck { waiting } => {
                ensure(is_next(waiting), "the thread is not where it is to wait")?;
                let goes_on = |thread: &ThreadId| !self.waits(*thread);
                let other = trace.thread_ids().find(goes_on);
                other.map_or(Ok(()), |thread| Err(format!("thread {} can go on", thread.index())))
            }
        }
    }

    /// Whether a wait never ends though its notify came, and nobody can go on.
    fn lost(&self, Pairing { notify, wake, .. }: Pairing) -> Result<(), String> {
        let trace = self.checker.trace;
        let notifier = trace.thread(notify);
        let executed = &self.checker.program[notifier.index()][..self.position[notifier.index()]];
        ensure(executed.last().is_some_and(|&last| last >= notify), "its notify was not executed")?;
        let sleeper = trace.thread(wake);
        ensure(self.next(sleeper) == Some(wake), "the sleeper is not at its wake")?;
        ensure(self.blocked(wake).is_some(), "a notify would wake it")?;
        ensure(trace.thread_ids().all(|t| self.waits(t)), "another thread can go on")
    }

    /// Whether a thread is through or waits, also behind its last event. Not before a read that it may not keep, nor at a try or a
    /// time-out: from there it would go on, in another way.
    pub(super) fn waits(&self, thread: ThreadId) -> bool {
        match (self.next(thread), self.checker.trace.pending(thread)) {
            (Some(event), _) => self.checker.can_wait(event) && self.blocked(event).is_some(),
            (None, Some(op)) => self.lets(thread, op).is_err(),
            (None, None) => true,
        }
    }
}
