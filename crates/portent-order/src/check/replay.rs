//! A schedule as it is replayed: what may happen, and what it changes.

use super::asleep::Asleep;
use super::{Checker, ensure};
use crate::goal::{Goal, Writer};
use crate::read_rule::ReadRule;
use portent_trace::{EventId, Mode, Op, Pairing, SemId, ThreadId, VarId};
use std::collections::HashMap;

/// The state of a replay.
pub(super) struct Replay<'c, 't> {
    pub(super) checker: &'c Checker<'t>,
    pub(super) rule: ReadRule,
    pub(super) position: Vec<usize>,
    /// The steps at which the goal's accesses were executed.
    pub(super) when: HashMap<EventId, u64>,
    /// The last write of each variable.
    pub(super) memory: Vec<Writer>,
    /// Where values are compared: threads that read something else, and variables they wrote since.
    pub(super) tainted_threads: Vec<bool>,
    pub(super) tainted_variables: Vec<bool>,
    /// Where there are formulas: the numbers in variables that differ from what their writes wrote in the trace, and all that
    /// threads have read; `None` is a number that is not known.
    pub(super) contents: HashMap<VarId, Option<i64>>,
    pub(super) values_read: Vec<Vec<Option<i64>>>,
    pub(super) holders: Vec<Vec<(ThreadId, Mode)>>,
    /// What the semaphores count.
    pub(super) counts: Vec<u64>,
    /// Who sleeps on the conditions.
    pub(super) asleep: Vec<Asleep>,
    /// The last sleep of each thread.
    pub(super) slept: Vec<Option<EventId>>,
    /// How many sends of each token were executed.
    pub(super) sent: Vec<usize>,
    pub(super) stopped: Vec<bool>,
    /// Whether the read of an update in two steps saw something else: its thread stops after its write.
    pub(super) changed: bool,
    /// And released the locks that it held there: what is left of them.
    pub(super) to_release: Vec<(usize, Mode)>,
    /// Whether the last read of each thread may see any write, and which variables such an update wrote last.
    pub(super) last_reads_free: bool,
    pub(super) unknown: Vec<bool>,
}

impl<'c, 't> Replay<'c, 't> {
    pub(super) fn new(checker: &'c Checker<'t>, rule: ReadRule) -> Self {
        Replay {
            checker,
            rule,
            position: vec![0; checker.program.len()],
            when: HashMap::new(),
            memory: vec![Writer::Init; checker.trace.variables()],
            tainted_threads: vec![false; checker.program.len()],
            tainted_variables: vec![false; checker.trace.variables()],
            contents: HashMap::new(),
            values_read: vec![Vec::new(); checker.program.len()],
            holders: vec![Vec::new(); checker.trace.locks()],
            counts: (0..checker.trace.semaphores()).map(|s| checker.trace.initial_count(SemId::new(s))).collect(),
            asleep: vec![Asleep::default(); checker.trace.conditions()],
            slept: vec![None; checker.program.len()],
            sent: vec![0; checker.trace.tokens()],
            stopped: vec![false; checker.program.len()],
            changed: false,
            to_release: Vec::new(),
            last_reads_free: false,
            unknown: vec![false; checker.trace.variables()],
        }
    }
    pub(super) fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.checker.program[thread.index()].get(self.position[thread.index()]).copied()
    }
    pub(super) fn pairing(&self, index: usize) -> Pairing {
        self.checker.trace.pairings()[index]
    }

    /// Why the event cannot happen now, reads aside; `None` if it can.
    pub(super) fn blocked(&self, event: EventId) -> Option<String> {
        let trace = self.checker.trace;
        let thread = trace.thread(event);
        let held = |lock: usize, mode: Mode| {
            self.holders[lock].iter().any(|(holder, holding)| *holder != thread && holding.conflicts_with(mode))
        };
        match trace.op(event) {
            Op::Acquire(lock, mode) => held(lock.index(), mode).then(|| "the lock is held by another thread".into()),
            Op::Busy(lock, mode) => (!held(lock.index(), mode)).then(|| "no other thread holds the lock".into()),
            Op::Receive(token) => {
                (self.sent[token.index()] < trace.senders(token).len()).then(|| "its token is not sent".into())
            }
            Op::Wake(condition) => {
                let (asleep, sleep) = (&self.asleep[condition.index()], self.slept[thread.index()]?);
                match trace.pairing_of_wake(event) {
                    Some(_) => (!asleep.can_be_woken(sleep)).then(|| "it is not notified".into()),
                    None => (!asleep.can_be_left(sleep)).then(|| "a notify has woken it".into()),
                }
            }
            Op::Wait(s) => (self.counts[s.index()] == 0).then(|| "the semaphore is at zero".into()),
            Op::Empty(s) => (self.counts[s.index()] > 0).then(|| "the semaphore is not at zero".into()),
            _ => None,
        }
    }

    /// Why the event cannot read what it would read now; `None` if it can.
    pub(super) fn misread(&self, event: EventId) -> Option<String> {
        let op = self.checker.trace.op(event);
        match self.rule {
            ReadRule::AnyWrite => None,
            ReadRule::SameFormulas => self.other_way(event),
            ReadRule::SameBranches => {
                let tainted = self.tainted_threads[self.checker.trace.thread(event).index()];
                (matches!(op, Op::Branch) && tainted).then(|| "its thread has read something else".into())
            }
            _ if !op.reads() => None,
            ReadRule::ObservedWrite => {
                let x = op.variable()?.index();
                let other = self.memory[x] != self.checker.saw[event.index()] || self.unknown[x];
                other.then(|| "it would read another write".into())
            }
            ReadRule::SameValue => self.reads_anew(event).then(|| "it would read another value".into()),
        }
    }

    pub(super) fn execute(&mut self, thread: ThreadId, goal: Option<&Goal>, step: u64) -> Result<(), String> {
        let known = thread.index() < self.position.len();
        let event = known.then(|| self.next(thread)).flatten().ok_or("the thread has no further event")?;
        ensure(!self.stopped[thread.index()], "the thread stopped at a changed read")?;
        if let Some(why) = self.blocked(event) {
            return Err(why);
        }
        if let Some(why) = self.misread(event) {
            let free = self.rule.frees_reads()
                && match goal {
                    Some(Goal::Nondeterminism { read, .. }) => event == *read,
                    Some(Goal::Atomicity { remote, second, .. }) => event == *remote || event == *second,
                    Some(Goal::LostUpdate { read, .. }) => event == *read,
                    _ => self.last_reads_free,
                };
            ensure(free, &why)?;
            self.stopped[thread.index()] |= !matches!(goal, Some(Goal::LostUpdate { .. }));
            self.changed |= matches!(goal, Some(Goal::LostUpdate { .. }));
        }
        if let Some(&Goal::Nondeterminism { read, challenger }) = goal
            && event == read
        {
            let variable = self.checker.trace.op(read).variable().ok_or("the event does not read")?;
            ensure(self.memory[variable.index()] == challenger, "the read does not see the challenger")?;
            if self.rule.compares_values() {
                ensure(!self.tainted_variables[variable.index()], "the challenger may have written another value")?;
                let same = match self.contents.get(&variable) {
                    Some(_) => !self.reads_anew(read),
                    None => self.checker.same_value(read, challenger),
                };
                ensure(!same, "the challenger wrote the same value")?;
            }
        }
        if self.rule.compares_values() {
            let op = self.checker.trace.op(event);
            self.tainted_threads[thread.index()] |= op.reads() && self.reads_anew(event);
            if let (true, Some(x)) = (op.writes(), op.variable()) {
                self.tainted_variables[x.index()] = self.tainted_threads[thread.index()];
            }
            self.note(event);
        }
        match self.checker.trace.op(event) {
            Op::Write(x, _) | Op::Update(x, _) => {
                self.memory[x.index()] = Writer::Event(event);
                self.unknown[x.index()] = self.last_reads_free && self.stopped[thread.index()];
            }
            Op::Acquire(lock, mode) => self.holders[lock.index()].push((thread, mode)),
            Op::Release(lock, mode) => self.holders[lock.index()].retain(|h| *h != (thread, mode)),
            Op::Send(token) => self.sent[token.index()] += 1,
            Op::Post(s) => self.counts[s.index()] += 1,
            Op::Wait(s) => self.counts[s.index()] -= 1,
            Op::Sleep(condition) => {
                self.asleep[condition.index()].sleeping.push((event, step));
                self.slept[thread.index()] = Some(event);
            }
            Op::Notify(condition, reach) => self.asleep[condition.index()].notify(reach, step),
            Op::Wake(condition) => {
                let sleep = self.slept[thread.index()].take().ok_or("the thread does not sleep")?;
                self.asleep[condition.index()].end(sleep, self.checker.trace.pairing_of_wake(event).is_some());
            }
            _ => {}
        }
        if let Some(&(Goal::Atomicity { first, remote, second } | Goal::LostUpdate { first, remote, second, .. })) =
            goal
            && [first, remote, second].contains(&event)
        {
            self.when.insert(event, step);
        }
        self.position[thread.index()] += 1;
        if let (Some(&Goal::LostUpdate { remote, .. }), true) = (goal, self.changed)
            && thread == self.checker.trace.thread(remote)
        {
            // Once it has read something else, all that the thread still does is its update, and releasing what it holds there.
            if event == remote {
                let held = |(lock, holders): (usize, &Vec<(ThreadId, Mode)>)| {
                    holders.iter().filter(|(t, _)| *t == thread).map(move |&(_, mode)| (lock, mode)).collect::<Vec<_>>()
                };
                self.to_release = self.holders.iter().enumerate().flat_map(held).collect();
            }
            if let Op::Release(lock, mode) = self.checker.trace.op(event) {
                self.to_release.retain(|held| *held != (lock.index(), mode));
            }
            self.stopped[thread.index()] |= event >= remote && self.to_release.is_empty();
        }
        Ok(())
    }
}
