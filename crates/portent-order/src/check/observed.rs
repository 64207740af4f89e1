//! The observed order as something to begin with: what holds after its first so many events, without executing them again.
//!
//! Most witnesses begin as the run did, for millions of events. What a replay has to know after these is what they did to the
//! few objects that come up afterwards: who wrote a variable last, who holds a lock. So the events that change objects are
//! listed by object, once, with what was so after every [`KEPT`]th of them; from there it is a few events to any place. Nothing here
//! takes the observed order on trust: it is executed once, and what is not executed is in [`Observed::new`].

use super::asleep::Asleep;
use super::replay::Replay;
use super::{Checker, Rejected};
use crate::read_rule::ReadRule;
use portent_trace::{EventId, Mode, Op, ThreadId};

/// Of how many events of an object one has its state kept.
const KEPT: usize = 32;

/// What the observed order does to each object.
pub(super) struct Observed {
    /// The events that change each object, ascending: those of object x are `events[first[x]..first[x + 1]]`.
    first: Vec<u32>,
    events: Vec<u32>,
    holders: Kept<Vec<(ThreadId, Mode)>>,
    counts: Kept<u64>,
    asleep: Kept<Asleep>,
    /// How many events can be executed, reads aside, and why the next one cannot.
    executes: (usize, Option<String>),
}

/// The states of some objects, by object: after none of their events, after [`KEPT`], after twice as many …
struct Kept<T>(Vec<Vec<T>>);

impl<T: Clone> Kept<T> {
    fn of(states: impl Iterator<Item = T>) -> Self {
        Kept(states.map(|state| vec![state]).collect())
    }
    /// Notes what is so after an object's event number `done`.
    fn note(&mut self, object: usize, done: usize, state: impl FnOnce() -> T) {
        if done == self.0[object].len() * KEPT {
            self.0[object].push(state());
        }
    }
}

/// An object that events change, for a number: variables, tokens, locks, semaphores, conditions.
#[derive(Clone, Copy)]
pub(super) enum Object {
    Variable(usize),
    Token(usize),
    Lock(usize),
    Semaphore(usize),
    Condition(usize),
}

impl Object {
    /// The object that an operation changes. What reads or waits only changes nothing but where its thread is.
    fn of(op: Op) -> Option<Object> {
        match op {
            Op::Write(x, _) | Op::Update(x, _) => Some(Object::Variable(x.index())),
            Op::Send(token) => Some(Object::Token(token.index())),
            Op::Acquire(lock, _) | Op::Release(lock, _) => Some(Object::Lock(lock.index())),
            Op::Post(s) | Op::Wait(s) => Some(Object::Semaphore(s.index())),
            Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => Some(Object::Condition(c.index())),
            _ => None,
        }
    }
    fn number(self, checker: &Checker<'_>) -> usize {
        let trace = checker.trace;
        let (variables, tokens) = (trace.variables(), trace.tokens());
        match self {
            Object::Variable(x) => x,
            Object::Token(token) => variables + token,
            Object::Lock(lock) => variables + tokens + lock,
            Object::Semaphore(s) => variables + tokens + trace.locks() + s,
            Object::Condition(c) => variables + tokens + trace.locks() + trace.semaphores() + c,
        }
    }
}

impl Observed {
    /// Executes the observed order, but for its accesses: each reads what it saw, which is how [`Checker::new`] has it, so that no
    /// rule refuses one but [`ReadRule::SameFormulas`].
    pub(super) fn new(checker: &Checker<'_>) -> Self {
        let trace = checker.trace;
        let all = trace.variables() + trace.tokens() + trace.locks() + trace.semaphores() + trace.conditions();
        let object = |op| Object::of(op).map(|object| object.number(checker));
        let mut first = vec![0u32; all + 1];
        trace.events().filter_map(|event| object(event.op)).for_each(|object| first[object + 1] += 1);
        (0..all).for_each(|object| first[object + 1] += first[object]);
        let mut next = first.clone();
        let mut events = vec![0; first[all] as usize];
        let mut replay = Replay::new(checker, ReadRule::AnyWrite);
        let mut observed = Observed {
            holders: Kept::of((0..trace.locks()).map(|_| Vec::new())),
            counts: Kept::of((0..trace.semaphores()).map(|s| replay.count(s))),
            asleep: Kept::of((0..trace.conditions()).map(|_| Asleep::default())),
            first: Vec::new(),
            events: Vec::new(),
            executes: (trace.len(), None),
        };
        for event in trace.events() {
            if let Some(object) = object(event.op) {
                events[next[object] as usize] = event.id.index() as u32;
                next[object] += 1;
            }
            if event.op.variable().is_none() && observed.executes.1.is_none() {
                let done = replay.blocked(event.id).map_or(Ok(()), Err);
                let done = done.and_then(|()| replay.take_effect(event.id, event.id.index() as u64));
                if let Err(why) = done {
                    observed.executes = (event.id.index(), Some(why));
                    continue;
                }
                let Some(object) = Object::of(event.op) else { continue };
                let number = object.number(checker);
                let done = (next[number] - first[number]) as usize;
                match object {
                    Object::Lock(lock) => observed.holders.note(lock, done, || replay.holders(lock).into_owned()),
                    Object::Semaphore(s) => observed.counts.note(s, done, || replay.count(s)),
                    Object::Condition(c) => observed.asleep.note(c, done, || replay.asleep(c).into_owned()),
                    Object::Variable(_) | Object::Token(_) => {}
                }
            }
        }
        (observed.first, observed.events) = (first, events);
        observed
    }

    /// The events among the first `end` that change an object, in order.
    pub(super) fn changes(&self, checker: &Checker<'_>, object: Object, end: usize) -> &[u32] {
        let number = object.number(checker);
        let own = &self.events[self.first[number] as usize..self.first[number + 1] as usize];
        &own[..own.partition_point(|&event| (event as usize) < end)]
    }
    pub(super) fn holders(&self, checker: &Checker<'_>, lock: usize, end: usize) -> Vec<(ThreadId, Mode)> {
        let mut holders = self.state(&self.holders, checker, (lock, Object::Lock(lock)), end);
        holders.1.iter().for_each(|&event| Replay::hold(checker, &mut holders.0, EventId::new(event as usize)));
        holders.0
    }
    pub(super) fn count(&self, checker: &Checker<'_>, semaphore: usize, end: usize) -> u64 {
        let (count, then) = self.state(&self.counts, checker, (semaphore, Object::Semaphore(semaphore)), end);
        let posts = |&&event: &&u32| matches!(checker.trace.op(EventId::new(event as usize)), Op::Post(_));
        let posts = then.iter().filter(posts).count() as u64;
        (count + posts).saturating_sub(then.len() as u64 - posts)
    }
    pub(super) fn asleep(&self, checker: &Checker<'_>, condition: usize, end: usize) -> Asleep {
        let (mut asleep, then) = self.state(&self.asleep, checker, (condition, Object::Condition(condition)), end);
        for event in then.iter().map(|&event| EventId::new(event as usize)) {
            let trace = checker.trace;
            match trace.op(event) {
                Op::Sleep(_) => asleep.sleeping.push((event, event.index() as u64)),
                Op::Notify(_, reach) => asleep.notify(reach, event.index() as u64),
                _ => {
                    if let Some(sleep) = checker.slept(trace.thread(event), event.index()) {
                        asleep.end(sleep, trace.pairing_of_wake(event).is_some());
                    }
                }
            }
        }
        asleep
    }

    /// The last kept state of an object before event number `end`, and its events from there.
    fn state<T: Clone>(
        &self,
        kept: &Kept<T>,
        checker: &Checker<'_>,
        (index, object): (usize, Object),
        end: usize,
    ) -> (T, &[u32]) {
        let changes = self.changes(checker, object, end);
        let states = &kept.0[index];
        let at = (changes.len() / KEPT).min(states.len() - 1);
        (states[at].clone(), &changes[at * KEPT..])
    }
}

impl Checker<'_> {
    /// What the observed order does, worked out when it is first asked for.
    pub(super) fn observed(&self) -> &Observed {
        self.observed.get_or_init(|| Observed::new(self))
    }

    /// How many events of the observed order can be executed, and why the next one cannot.
    pub(super) fn observed_until(&self, rule: ReadRule) -> (usize, Option<Rejected>) {
        let (until, why) = if rule == ReadRule::SameFormulas {
            let by_formulas = self.by_formulas.get_or_init(|| {
                let mut replay = Replay::new(self, rule);
                for event in (0..self.trace.len()).map(EventId::new) {
                    if let Err(why) = replay.execute(self.trace.thread(event), None, event.index() as u64) {
                        return (event.index(), Some(why));
                    }
                }
                (self.trace.len(), None)
            });
            by_formulas.clone()
        } else {
            self.observed().executes.clone()
        };
        (until, why.map(|why| Rejected { step: until as u64, why }))
    }

    /// The sleep from which a thread has not gone on yet when event number `end` is next.
    pub(super) fn slept(&self, thread: ThreadId, end: usize) -> Option<EventId> {
        let program = &self.program[thread.index()];
        let done = &program[..program.partition_point(|event| event.index() < end)];
        let sleeps = |event: &&EventId| matches!(self.trace.op(**event), Op::Sleep(_) | Op::Wake(_));
        done.iter().rev().find(sleeps).copied().filter(|&event| matches!(self.trace.op(event), Op::Sleep(_)))
    }
}
