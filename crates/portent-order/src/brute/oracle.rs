//! The rules: the state of a reordering, what may happen in it, and the state after.

use super::values::Held;
use crate::divergence::Outcome;
use crate::goal::{Model, Writer};
use crate::read_rule::{ReadRule, Recorded};
use portent_trace::{CondId, EventId, LockId, Mode, Op, Reach, SemId, ThreadId, Trace, VarId};
use std::collections::{BTreeSet, HashMap};

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) position: Vec<usize>,
    pub(super) last: Vec<Writer>,
    pub(super) tainted: Tainted,
    /// Where there are formulas: what variables hold, and what the reads of each thread saw.
    pub(super) holds: Vec<Held>,
    pub(super) seen: Vec<Vec<Held>>,
    /// For each condition, who may be asleep on it and who woken, for every choice of whom its notifies woke.
    pub(super) asleep: Vec<BTreeSet<Asleep>>,
    /// The remote access of an atomicity goal saw something else, so its thread has stopped; or the read of the remote update of
    /// a lost one, so its thread stops after its write.
    pub(super) remote_stopped: bool,
}

/// The sleeps that are not over yet, if each notify woke somebody in particular.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(super) struct Asleep {
    asleep: BTreeSet<EventId>,
    woken: BTreeSet<EventId>,
}

/// Where values are compared: variables whose last write is tainted, and threads that are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Tainted {
    pub(super) variables: Vec<bool>,
    pub(super) threads: Vec<bool>,
}

pub(super) struct Oracle<'t> {
    pub(super) trace: &'t Trace,
    pub(super) rule: ReadRule,
    pub(super) program: Vec<Vec<EventId>>,
    /// Position of each event in its thread.
    pub(super) rank: Vec<usize>,
    /// The write each reading event saw; meaningless for others.
    pub(super) saw: Vec<Writer>,
    /// The values of the variables' initial writes, where known.
    pub(super) initial: Vec<Option<i64>>,
    /// For each wake, its sleep.
    slept: HashMap<EventId, EventId>,
    /// The outermost begin around each event.
    pub(super) block: Vec<Option<EventId>>,
    /// Locks a thread holds before each of its positions.
    pub(super) held: Vec<Vec<Vec<(LockId, Mode)>>>,
}

impl<'t> Oracle<'t> {
    pub(super) fn new(trace: &'t Trace, model: Model) -> Self {
        let threads = trace.threads();
        let mut oracle = Oracle {
            trace,
            rule: model.read_rule(Recorded::of(trace)),
            program: vec![Vec::new(); threads],
            rank: Vec::new(),
            saw: Vec::new(),
            initial: Vec::new(),
            slept: HashMap::new(),
            block: Vec::new(),
            held: vec![vec![Vec::new()]; threads],
        };
        let mut last = vec![Writer::Init; trace.variables()];
        let mut open = vec![None; threads];
        let mut slept = vec![None; threads];
        for event in trace.events() {
            let t = event.thread.index();
            oracle.rank.push(oracle.program[t].len());
            oracle.program[t].push(event.id);
            oracle.saw.push(event.op.variable().map_or(Writer::Init, |x| last[x.index()]));
            if let (true, Some(x)) = (event.op.writes(), event.op.variable()) {
                last[x.index()] = Writer::Event(event.id);
            }
            match event.op {
                Op::Begin(_) => open[t] = Some(event.id),
                Op::End(_) => open[t] = None,
                Op::Sleep(_) => slept[t] = Some(event.id),
                Op::Wake(_) => oracle.slept.extend(slept[t].map(|sleep| (event.id, sleep))),
                _ => {}
            }
            oracle.block.push(open[t]);
            let mut held = oracle.held[t].last().cloned().unwrap_or_default();
            match event.op {
                Op::Acquire(lock, mode) => held.push((lock, mode)),
                Op::Release(lock, mode) => held.retain(|h| *h != (lock, mode)),
                _ => {}
            }
            oracle.held[t].push(held);
        }
        oracle.initial = (0..trace.variables())
            .map(|x| {
                let reads = trace.events().filter(|e| matches!(e.op, Op::Read(y, _) if y.index() == x));
                let of_init = reads.filter(|e| oracle.saw[e.id.index()] == Writer::Init);
                let recorded: BTreeSet<i64> = of_init.filter_map(|e| e.value).collect();
                if recorded.len() == 1 { recorded.into_iter().next() } else { None }
            })
            .collect();
        oracle
    }

    pub(super) fn start(&self) -> State {
        let (threads, variables) = (self.program.len(), self.trace.variables());
        let formulas = self.rule == ReadRule::SameFormulas;
        let initial = |x| self.traced(VarId::new(x), Writer::Init);
        State {
            position: vec![0; threads],
            last: vec![Writer::Init; variables],
            tainted: Tainted { variables: vec![false; variables], threads: vec![false; threads] },
            holds: if formulas { (0..variables).map(initial).collect() } else { Vec::new() },
            seen: if formulas { vec![Vec::new(); threads] } else { Vec::new() },
            asleep: vec![BTreeSet::from([Asleep::default()]); self.trace.conditions()],
            remote_stopped: false,
        }
    }

    pub(super) fn done(&self, state: &State, event: EventId) -> bool {
        self.rank[event.index()] < state.position[self.trace.thread(event).index()]
    }

    pub(super) fn next(&self, state: &State, event: EventId) -> bool {
        self.rank[event.index()] == state.position[self.trace.thread(event).index()]
    }

    pub(super) fn complete(&self, state: &State) -> bool {
        (0..self.program.len()).all(|t| state.position[t] == self.program[t].len())
    }

    /// Whether a thread has run all its events or cannot go on.
    pub(super) fn stuck(&self, state: &State, thread: usize) -> bool {
        let next = self.program[thread].get(state.position[thread]);
        next.is_none_or(|&e| !(self.possible(state, e) && self.keeps_read(state, e)))
    }

    /// Whether a thread is through or waits for a lock, a token, a semaphore or a notify; also behind all its events, if something is
    /// pending there. One that stands before a read that it cannot keep, a branch that would go the other way, a try that would fail or a
    /// time-out does not wait: it would go on, otherwise.
    pub(super) fn waits(&self, state: &State, thread: usize) -> bool {
        match self.program[thread].get(state.position[thread]) {
            Some(&event) => self.can_wait(event) && !self.possible(state, event),
            None => {
                let thread = ThreadId::new(thread);
                self.trace.pending(thread).is_none_or(|op| !self.can_have(state, thread, op, Outcome::Goes))
            }
        }
    }

    /// Whether there is something that a thread can wait for at an event.
    pub(super) fn can_wait(&self, event: EventId) -> bool {
        match self.trace.op(event) {
            Op::Acquire(..) => !self.trace.tries(event),
            Op::Wake(_) => !self.wakes_by_itself(event),
            Op::Receive(_) | Op::Wait(_) => true,
            _ => false,
        }
    }

    /// Whether an event is a wake without a notify.
    fn wakes_by_itself(&self, event: EventId) -> bool {
        matches!(self.trace.op(event), Op::Wake(_)) && self.trace.pairing_of_wake(event).is_none()
    }

    /// Whether another thread holds the lock in a mode that excludes `mode`.
    pub(super) fn held_by_other(&self, state: &State, thread: ThreadId, lock: LockId, mode: Mode) -> bool {
        (0..self.program.len()).filter(|&t| t != thread.index()).any(|t| {
            let held = &self.held[t][state.position[t]];
            held.iter().any(|&(l, m)| l == lock && m.conflicts_with(mode))
        })
    }

    /// What a semaphore counts: the posts that have happened, less the waits.
    pub(super) fn count(&self, state: &State, semaphore: SemId) -> u64 {
        let happened = |op: Op| {
            let of = |program: &Vec<EventId>, upto: usize| {
                program[..upto].iter().filter(|&&event| self.trace.op(event) == op).count() as u64
            };
            self.program.iter().zip(&state.position).map(|(program, &upto)| of(program, upto)).sum::<u64>()
        };
        self.trace.initial_count(semaphore) + happened(Op::Post(semaphore)) - happened(Op::Wait(semaphore))
    }

    /// Enabled, reads aside.
    pub(super) fn possible(&self, state: &State, event: EventId) -> bool {
        let thread = self.trace.thread(event);
        match self.trace.op(event) {
            Op::Acquire(lock, mode) => !self.held_by_other(state, thread, lock, mode),
            Op::Busy(lock, mode) => self.held_by_other(state, thread, lock, mode),
            Op::Receive(token) => self.trace.senders(token).iter().all(|&send| self.done(state, send)),
            Op::Wake(condition) => !self.woken(&state.asleep[condition.index()], event).is_empty(),
            Op::Wait(semaphore) => self.count(state, semaphore) > 0,
            Op::Empty(semaphore) => self.count(state, semaphore) == 0,
            _ => true,
        }
    }

    /// Whether the rule for reads lets the event happen.
    pub(super) fn keeps_read(&self, state: &State, event: EventId) -> bool {
        match self.rule {
            ReadRule::AnyWrite => true,
            ReadRule::ObservedWrite => self.sees_the_same(state, event),
            ReadRule::SameValue => !self.trace.op(event).reads() || self.sees_as_good(state, event),
            ReadRule::SameBranches => {
                self.trace.op(event) != Op::Branch || !state.tainted.threads[self.trace.thread(event).index()]
            }
            ReadRule::SameFormulas => self.goes_the_same_way(state, event),
        }
    }

    pub(super) fn sees_the_same(&self, state: &State, event: EventId) -> bool {
        match self.trace.op(event) {
            Op::Read(x, _) | Op::Update(x, _) => state.last[x.index()] == self.saw[event.index()],
            _ => true,
        }
    }

    /// The state after an event, goal progress aside.
    pub(super) fn after(&self, state: &State, event: EventId) -> State {
        let mut after = state.clone();
        let thread = self.trace.thread(event).index();
        after.position[thread] += 1;
        if self.rule.compares_values() {
            after.tainted.threads[thread] |= self.trace.op(event).reads() && !self.sees_as_good(state, event);
            if let Op::Write(x, _) | Op::Update(x, _) = self.trace.op(event) {
                after.tainted.variables[x.index()] = after.tainted.threads[thread];
            }
            if let (ReadRule::SameFormulas, Some(symbols)) = (self.rule, self.trace.symbols()) {
                let seen = self.seen_by(state, event);
                if let Op::Write(x, _) | Op::Update(x, _) = self.trace.op(event) {
                    let held = self.leaves(symbols, event, &seen, after.tainted.threads[thread]);
                    after.holds[x.index()] = held;
                    after.tainted.variables[x.index()] = held == Held::Tainted;
                }
                after.seen[thread] = seen;
            }
        }
        match self.trace.op(event) {
            Op::Write(x, _) | Op::Update(x, _) => after.last[x.index()] = Writer::Event(event),
            Op::Sleep(condition) => {
                let choices = std::mem::take(&mut after.asleep[condition.index()]);
                let sleeps = |mut choice: Asleep| {
                    choice.asleep.insert(event);
                    choice
                };
                after.asleep[condition.index()] = choices.into_iter().map(sleeps).collect();
            }
            Op::Notify(condition, reach) => {
                let choices = std::mem::take(&mut after.asleep[condition.index()]);
                after.asleep[condition.index()] = choices.iter().flat_map(|choice| notified(choice, reach)).collect();
            }
            Op::Wake(condition) => {
                after.asleep[condition.index()] = self.woken(&state.asleep[condition.index()], event);
            }
            _ => {}
        }
        after
    }

    /// Whether, for some choice of whom notifies woke, a sleep still lasts; or else, is over.
    pub(super) fn sleeps(&self, state: &State, condition: CondId, sleep: EventId, still: bool) -> bool {
        let mut choices = state.asleep[condition.index()].iter();
        choices.any(|choice| if still { &choice.asleep } else { &choice.woken }.contains(&sleep))
    }

    /// What is left of the choices after a wake: those in which a notify woke its thread, or none did if it woke by itself.
    fn woken(&self, choices: &BTreeSet<Asleep>, wake: EventId) -> BTreeSet<Asleep> {
        let sleep = self.slept[&wake];
        let goes_on = |mut choice: Asleep| {
            let from = if self.wakes_by_itself(wake) { &mut choice.asleep } else { &mut choice.woken };
            from.remove(&sleep).then_some(choice)
        };
        choices.iter().cloned().filter_map(goes_on).collect()
    }
}

/// The choices that a notify has: one of those who are asleep, or all.
fn notified(choice: &Asleep, reach: Reach) -> Vec<Asleep> {
    let wakes = |sleeps: &[EventId]| {
        let mut after = choice.clone();
        after.asleep.retain(|sleep| !sleeps.contains(sleep));
        after.woken.extend(sleeps);
        after
    };
    let asleep: Vec<EventId> = choice.asleep.iter().copied().collect();
    match reach {
        Reach::One if !asleep.is_empty() => asleep.iter().map(|&one| wakes(&[one])).collect(),
        _ => vec![wakes(&asleep)],
    }
}
