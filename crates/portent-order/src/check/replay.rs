//! A schedule as it is replayed: what may happen, and what it changes.

use super::asleep::Asleep;
use super::observed::{Object, Observed};
use super::{Checker, ensure};
use crate::goal::{Goal, Writer};
use crate::read_rule::ReadRule;
use portent_trace::{CondId, EventId, Mode, Op, Pairing, SemId, ThreadId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::HashMap;

/// The state of a replay.
///
/// Of objects it has what its own steps have changed; what they are otherwise, they are after the part of the observed order that it
/// begins after.
pub(super) struct Replay<'c, 't> {
    pub(super) checker: &'c Checker<'t>,
    pub(super) rule: ReadRule,
    /// How many events of the observed order have happened before its first step.
    pub(super) begun: usize,
    pub(super) position: Vec<usize>,
    /// The steps at which the goal's accesses were executed.
    pub(super) when: HashMap<EventId, u64>,
    /// The last write of each variable.
    memory: FxHashMap<usize, Writer>,
    /// Where values are compared: threads that read something else, and variables they wrote since.
    pub(super) tainted_threads: Vec<bool>,
    pub(super) tainted_variables: FxHashSet<usize>,
    /// Where there are formulas: the numbers in variables that differ from what their writes wrote in the trace, and all that
    /// threads have read; `None` is a number that is not known.
    pub(super) contents: HashMap<VarId, Option<i64>>,
    pub(super) values_read: Vec<Vec<Option<i64>>>,
    holders: FxHashMap<usize, Vec<(ThreadId, Mode)>>,
    /// What the semaphores count.
    counts: FxHashMap<usize, u64>,
    /// Who sleeps on the conditions.
    asleep: FxHashMap<usize, Asleep>,
    /// The last sleep of each thread, if it has not gone on from it.
    slept: FxHashMap<usize, Option<EventId>>,
    /// How many sends of each token were executed.
    sent: FxHashMap<usize, usize>,
    pub(super) stopped: Vec<bool>,
    /// Whether the read of an update in two steps saw something else: its thread stops after its write.
    pub(super) changed: bool,
    /// And released the locks that it held there: what is left of them.
    pub(super) to_release: Vec<(usize, Mode)>,
    /// Whether the last read of each thread may see any write, and which variables such an update wrote last.
    pub(super) last_reads_free: bool,
    pub(super) unknown: FxHashSet<usize>,
}

impl<'c, 't> Replay<'c, 't> {
    pub(super) fn new(checker: &'c Checker<'t>, rule: ReadRule) -> Self {
        Replay {
            checker,
            rule,
            begun: 0,
            position: vec![0; checker.program.len()],
            when: HashMap::new(),
            memory: FxHashMap::default(),
            tainted_threads: vec![false; checker.program.len()],
            tainted_variables: FxHashSet::default(),
            contents: HashMap::new(),
            values_read: vec![Vec::new(); checker.program.len()],
            holders: FxHashMap::default(),
            counts: FxHashMap::default(),
            asleep: FxHashMap::default(),
            slept: FxHashMap::default(),
            sent: FxHashMap::default(),
            stopped: vec![false; checker.program.len()],
            changed: false,
            to_release: Vec::new(),
            last_reads_free: false,
            unknown: FxHashSet::default(),
        }
    }
    /// After the first `begun` events of the observed order, which can be executed and have not been the goal's read.
    pub(super) fn after(checker: &'c Checker<'t>, rule: ReadRule, goal: &Goal, begun: usize) -> Self {
        let mut replay = Replay { begun, ..Replay::new(checker, rule) };
        for (position, program) in replay.position.iter_mut().zip(&checker.program) {
            *position = program.partition_point(|event| event.index() < begun);
        }
        if let Some(accesses) = timed(goal) {
            let done = accesses.into_iter().filter(|event| event.index() < begun);
            replay.when.extend(done.map(|event| (event, event.index() as u64)));
        }
        replay
    }
    pub(super) fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.checker.program[thread.index()].get(self.position[thread.index()]).copied()
    }
    pub(super) fn pairing(&self, index: usize) -> Pairing {
        self.checker.trace.pairings()[index]
    }

    /// What an object was when the first step was next; `None` if nothing had happened.
    fn before<T>(&self, what: impl FnOnce(&Observed) -> T) -> Option<T> {
        (self.begun > 0).then(|| what(self.checker.observed()))
    }
    pub(super) fn memory(&self, x: VarId) -> Writer {
        let observed = || {
            let object = Object::Variable(x.index());
            let last = self.before(|observed| observed.changes(self.checker, object, self.begun).last().copied());
            last.flatten().map_or(Writer::Init, |write| Writer::Event(EventId::new(write as usize)))
        };
        self.memory.get(&x.index()).copied().unwrap_or_else(observed)
    }
    pub(super) fn holders(&self, lock: usize) -> Cow<'_, [(ThreadId, Mode)]> {
        match self.holders.get(&lock) {
            Some(holders) => Cow::Borrowed(holders),
            None => Cow::Owned(self.holders_before(lock)),
        }
    }
    fn holders_before(&self, lock: usize) -> Vec<(ThreadId, Mode)> {
        self.before(|observed| observed.holders(self.checker, lock, self.begun)).unwrap_or_default()
    }
    pub(super) fn count(&self, semaphore: usize) -> u64 {
        let initial = || self.checker.trace.initial_count(SemId::new(semaphore));
        let observed = || self.before(|observed| observed.count(self.checker, semaphore, self.begun));
        self.counts.get(&semaphore).copied().or_else(observed).unwrap_or_else(initial)
    }
    pub(super) fn asleep(&self, condition: usize) -> Cow<'_, Asleep> {
        match self.asleep.get(&condition) {
            Some(asleep) => Cow::Borrowed(asleep),
            None => Cow::Owned(self.asleep_before(condition)),
        }
    }
    fn asleep_before(&self, condition: usize) -> Asleep {
        self.before(|observed| observed.asleep(self.checker, condition, self.begun)).unwrap_or_default()
    }
    pub(super) fn slept(&self, thread: ThreadId) -> Option<EventId> {
        let observed = || self.checker.slept(thread, self.begun);
        self.slept.get(&thread.index()).copied().unwrap_or_else(observed)
    }
    pub(super) fn sent(&self, token: usize) -> usize {
        let observed =
            || self.before(|observed| observed.changes(self.checker, Object::Token(token), self.begun).len());
        self.sent.get(&token).copied().or_else(observed).unwrap_or(0)
    }
    /// Who holds a lock after an acquire or release of it.
    pub(super) fn hold(checker: &Checker<'_>, holders: &mut Vec<(ThreadId, Mode)>, event: EventId) {
        let thread = checker.trace.thread(event);
        match checker.trace.op(event) {
            Op::Acquire(_, mode) => holders.push((thread, mode)),
            Op::Release(_, mode) => holders.retain(|held| *held != (thread, mode)),
            _ => {}
        }
    }

    /// Why the event cannot happen now, reads aside; `None` if it can.
    pub(super) fn blocked(&self, event: EventId) -> Option<String> {
        let trace = self.checker.trace;
        let thread = trace.thread(event);
        let held = |lock: usize, mode: Mode| {
            self.holders(lock).iter().any(|(holder, holding)| *holder != thread && holding.conflicts_with(mode))
        };
        match trace.op(event) {
            Op::Acquire(lock, mode) => held(lock.index(), mode).then(|| "the lock is held by another thread".into()),
            Op::Busy(lock, mode) => (!held(lock.index(), mode)).then(|| "no other thread holds the lock".into()),
            Op::Receive(token) => {
                (self.sent(token.index()) < trace.senders(token).len()).then(|| "its token is not sent".into())
            }
            Op::Wake(condition) => {
                let (asleep, sleep) = (self.asleep(condition.index()), self.slept(thread)?);
                match trace.pairing_of_wake(event) {
                    Some(_) => (!asleep.can_be_woken(sleep)).then(|| "it is not notified".into()),
                    None => (!asleep.can_be_left(sleep)).then(|| "a notify has woken it".into()),
                }
            }
            Op::Wait(s) => (self.count(s.index()) == 0).then(|| "the semaphore is at zero".into()),
            Op::Empty(s) => (self.count(s.index()) > 0).then(|| "the semaphore is not at zero".into()),
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
                let x = op.variable()?;
                let other = self.memory(x) != self.checker.saw[event.index()] || self.unknown.contains(&x.index());
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
            ensure(self.memory(variable) == challenger, "the read does not see the challenger")?;
            if self.rule.compares_values() {
                ensure(
                    !self.tainted_variables.contains(&variable.index()),
                    "the challenger may have written another value",
                )?;
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
                self.taint(x, self.tainted_threads[thread.index()]);
            }
            self.note(event);
        }
        self.take_effect(event, step)?;
        if goal.and_then(timed).is_some_and(|accesses| accesses.contains(&event)) {
            self.when.insert(event, step);
        }
        self.position[thread.index()] += 1;
        if let (Some(&Goal::LostUpdate { remote, .. }), true) = (goal, self.changed)
            && thread == self.checker.trace.thread(remote)
        {
            // Once it has read something else, all that the thread still does is its update, and releasing what it holds there.
            if event == remote {
                let held = |lock: usize| {
                    let own: Vec<_> = self
                        .holders(lock)
                        .iter()
                        .filter(|(t, _)| *t == thread)
                        .map(|&(_, mode)| (lock, mode))
                        .collect();
                    own
                };
                self.to_release = (0..self.checker.trace.locks()).flat_map(held).collect();
            }
            if let Op::Release(lock, mode) = self.checker.trace.op(event) {
                self.to_release.retain(|held| *held != (lock.index(), mode));
            }
            self.stopped[thread.index()] |= event >= remote && self.to_release.is_empty();
        }
        Ok(())
    }

    /// Does to the objects what an event that can happen does to them.
    pub(super) fn take_effect(&mut self, event: EventId, step: u64) -> Result<(), String> {
        let trace = self.checker.trace;
        let thread = trace.thread(event);
        match trace.op(event) {
            Op::Write(x, _) | Op::Update(x, _) => {
                self.memory.insert(x.index(), Writer::Event(event));
                if self.last_reads_free && self.stopped[thread.index()] {
                    self.unknown.insert(x.index());
                } else {
                    self.unknown.remove(&x.index());
                }
            }
            Op::Acquire(lock, _) | Op::Release(lock, _) => {
                if !self.holders.contains_key(&lock.index()) {
                    self.holders.insert(lock.index(), self.holders_before(lock.index()));
                }
                let holders = self.holders.entry(lock.index()).or_default();
                Replay::hold(self.checker, holders, event);
            }
            Op::Send(token) => drop(self.sent.insert(token.index(), self.sent(token.index()) + 1)),
            Op::Post(s) => drop(self.counts.insert(s.index(), self.count(s.index()) + 1)),
            Op::Wait(s) => drop(self.counts.insert(s.index(), self.count(s.index()).saturating_sub(1))),
            Op::Sleep(condition) => {
                self.change_sleepers(condition, |asleep| asleep.sleeping.push((event, step)));
                self.slept.insert(thread.index(), Some(event));
            }
            Op::Notify(condition, reach) => self.change_sleepers(condition, |asleep| asleep.notify(reach, step)),
            Op::Wake(condition) => {
                let sleep = self.slept(thread).ok_or("the thread does not sleep")?;
                self.slept.insert(thread.index(), None);
                let notified = trace.pairing_of_wake(event).is_some();
                self.change_sleepers(condition, |asleep| asleep.end(sleep, notified));
            }
            _ => {}
        }
        Ok(())
    }

    fn change_sleepers(&mut self, condition: CondId, change: impl FnOnce(&mut Asleep)) {
        if !self.asleep.contains_key(&condition.index()) {
            self.asleep.insert(condition.index(), self.asleep_before(condition.index()));
        }
        change(self.asleep.entry(condition.index()).or_default());
    }

    /// Whether what a variable holds may depend on something else that was read.
    pub(super) fn taint(&mut self, x: VarId, tainted: bool) {
        if tainted {
            self.tainted_variables.insert(x.index());
        } else {
            self.tainted_variables.remove(&x.index());
        }
    }
}

/// The accesses of a goal whose order counts.
fn timed(goal: &Goal) -> Option<[EventId; 3]> {
    match *goal {
        Goal::Atomicity { first, remote, second } | Goal::LostUpdate { first, remote, second, .. } => {
            Some([first, remote, second])
        }
        _ => None,
    }
}
