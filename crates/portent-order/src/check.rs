//! The independent checker: replays a schedule against the rules of SEMANTICS §2 and §3, one step at a time.
//!
//! No finding leaves Portent without passing it, so it is short, linear, and shares no code with the engines, not even
//! reads-from or lock ownership: it works both out for itself from the trace. The rules of `values` are those written
//! down in [`crate::brute`].

use crate::goal::{Goal, Model, Schedule, Writer};
use portent_trace::symbolic::Evaluated;
use portent_trace::{EventId, Mode, Op, Pairing, Reach, ThreadId, Trace, VarId};
use std::collections::HashMap;

/// Why a schedule is no witness: the step (from 0; the length of the schedule for its end) and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Where in the schedule.
    pub step: u64,
    /// What is wrong there.
    pub why: String,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "step {}: {}", self.step, self.why)
    }
}

impl std::error::Error for Rejected {}

/// Checks one schedule; see [`Checker`] for many schedules of one trace.
pub fn check(trace: &Trace, model: Model, goal: &Goal, witness: &Schedule) -> Result<(), Rejected> {
    Checker::new(trace).check(model, goal, witness)
}

/// What an access reads and writes in a reordering, where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The access.
    pub event: EventId,
    /// What it reads.
    pub read: Option<i64>,
    /// What it writes.
    pub written: Option<i64>,
}

/// An event of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The event.
    pub event: EventId,
    /// If it reads, and sees another write than in the trace: which. It is the last of its thread.
    pub changed: Option<Writer>,
}

/// What the checker knows of a trace before it sees a schedule.
pub struct Checker<'t> {
    trace: &'t Trace,
    /// The events of each thread, in program order.
    program: Vec<Vec<EventId>>,
    /// The write before each access of its variable: what it saw, if it reads.
    saw: Vec<Writer>,
    /// The last write of each variable.
    last: Vec<Writer>,
    /// What variables held before their first write, as reads of it recorded; `None` if they differ or recorded nothing.
    before: Vec<Option<i64>>,
    branches: bool,
}

/// The state of a replay.
struct Replay<'c, 't> {
    checker: &'c Checker<'t>,
    model: Model,
    position: Vec<usize>,
    /// The steps at which sleeps, notifies and the goal's accesses were executed.
    when: HashMap<EventId, u64>,
    /// The last write of each variable.
    memory: Vec<Writer>,
    /// In `values`: threads that read something else, and variables they wrote since.
    astray: Vec<bool>,
    doubtful: Vec<bool>,
    /// Where there are formulas: the numbers in variables that differ from what their writes wrote in the trace, and all that
    /// threads have read; `None` is a number that is not known.
    contents: HashMap<usize, Option<i64>>,
    diary: Vec<Vec<Option<i64>>>,
    holders: Vec<Vec<(ThreadId, Mode)>>,
    /// How many sends of each token were executed.
    sent: Vec<usize>,
    stopped: Vec<bool>,
    /// Whether the last read of each thread may see any write, and which variables such an update wrote last.
    last_reads_free: bool,
    unknown: Vec<bool>,
}

impl<'t> Checker<'t> {
    /// Prepares to check schedules of a trace.
    pub fn new(trace: &'t Trace) -> Self {
        let mut program = vec![Vec::new(); trace.threads()];
        let mut saw = Vec::with_capacity(trace.len());
        let mut last = vec![Writer::Init; trace.variables()];
        let mut before = vec![(None, false); trace.variables()];
        let mut branches = trace.symbols().is_some();
        for event in trace.events() {
            branches |= matches!(event.op, Op::Branch);
            if let (Op::Read(x, _), Some(value)) = (event.op, event.value)
                && last[x.index()] == Writer::Init
            {
                let (known, differs) = &mut before[x.index()];
                *differs |= known.replace(value).is_some_and(|other| other != value);
            }
            program[event.thread.index()].push(event.id);
            saw.push(event.op.variable().map_or(Writer::Init, |x| last[x.index()]));
            if let (true, Some(x)) = (event.op.writes(), event.op.variable()) {
                last[x.index()] = Writer::Event(event.id);
            }
        }
        let before = before.into_iter().map(|(value, differs)| value.filter(|_| !differs)).collect();
        Checker { trace, program, saw, last, before, branches }
    }

    /// Whether `witness` is a reordering of the trace in `model` that reaches `goal`.
    pub fn check(&self, model: Model, goal: &Goal, witness: &Schedule) -> Result<(), Rejected> {
        self.is_a_goal(goal).map_err(|why| Rejected { step: 0, why: format!("not a goal: {why}") })?;
        let mut replay = Replay::new(self, model);
        let mut step = 0;
        for thread in witness.steps() {
            replay.execute(thread, Some(goal), step).map_err(|why| Rejected { step, why })?;
            step += 1;
        }
        replay.reached(goal).map_err(|why| Rejected { step, why })
    }

    /// Whether the observed order, up to their last event, reaches each of these goals: one replay for all. Only violations
    /// of atomicity can be reached so and still be news; everything else is refused.
    pub fn check_observed(&self, model: Model, goals: &[Goal]) -> Vec<Result<(), Rejected>> {
        let mut replay = Replay::new(self, model);
        let ends = goals.iter().filter_map(|goal| match goal {
            Goal::Atomicity { second, .. } => Some(second.index() + 1),
            _ => None,
        });
        let end = ends.max().unwrap_or(0).min(self.trace.len());
        let mut step = 0;
        let mut failed = None;
        while failed.is_none() && (step as usize) < end {
            let event = EventId::new(step as usize);
            let next = replay.next(self.trace.thread(event)) == Some(event);
            let done =
                ensure(next, "not the next event").and_then(|()| replay.execute(self.trace.thread(event), None, step));
            failed = done.err().map(|why| Rejected { step, why });
            step += 1;
        }
        let reached = |goal: &Goal| {
            if let Some(failed) = &failed {
                return Err(failed.clone());
            }
            let refuse = |why: String| Rejected { step, why };
            self.is_a_goal(goal).map_err(|why| refuse(format!("not a goal: {why}")))?;
            let Goal::Atomicity { first, remote, second } = *goal else { return Err(refuse("not asked here".into())) };
            // Each event was executed at the step of its number.
            ensure(first < remote && remote < second, "the remote access is not between the two").map_err(refuse)
        };
        goals.iter().map(reached).collect()
    }

    /// The events that a schedule executes, if it is a reordering of the trace in `model` in which no read is free.
    pub fn replay(&self, model: Model, schedule: &Schedule) -> Result<Vec<EventId>, Rejected> {
        let mut replay = Replay::new(self, model);
        let mut events = Vec::new();
        for thread in schedule.steps() {
            let step = events.len() as u64;
            events.extend((thread.index() < self.program.len()).then(|| replay.next(thread)).flatten());
            replay.execute(thread, None, step).map_err(|why| Rejected { step, why })?;
        }
        Ok(events)
    }

    /// The events that a schedule executes, if it is a reordering of the trace in `model` for a property: in `reads`, the
    /// last executed read of each thread may see any write. What an update then writes no kept read may see.
    pub fn replay_for_property(&self, model: Model, schedule: &Schedule) -> Result<Vec<Executed>, Rejected> {
        let mut replay = Replay { last_reads_free: model == Model::Reads, ..Replay::new(self, model) };
        let mut executed = Vec::new();
        for (step, thread) in (0..).zip(schedule.steps()) {
            let event = (thread.index() < self.program.len()).then(|| replay.next(thread)).flatten();
            let sees = event.and_then(|event| self.trace.op(event).variable()).map(|x| replay.memory[x.index()]);
            replay.execute(thread, None, step).map_err(|why| Rejected { step, why })?;
            let changed = sees.filter(|_| replay.stopped[thread.index()]);
            executed.extend(event.map(|event| Executed { event, changed }));
        }
        Ok(executed)
    }

    /// What the accesses of a reordering in `values` read and write, in its order.
    pub fn numbers(&self, schedule: &Schedule) -> Result<Vec<Numbers>, Rejected> {
        let mut replay = Replay::new(self, Model::Values);
        let mut all = Vec::new();
        for (step, thread) in (0..).zip(schedule.steps()) {
            let next = (thread.index() < self.program.len()).then(|| replay.next(thread)).flatten();
            let access = next.and_then(|event| Some((event, self.trace.op(event), self.trace.op(event).variable()?)));
            let known = |replay: &Replay<'_, '_>, x: VarId| replay.content(x).filter(|_| !replay.doubtful[x.index()]);
            let read = access.filter(|(_, op, _)| op.reads()).and_then(|(.., x)| known(&replay, x));
            replay.execute(thread, None, step).map_err(|why| Rejected { step, why })?;
            if let Some((event, op, x)) = access {
                let written = if op.writes() { known(&replay, x) } else { None };
                all.push(Numbers { event, read, written });
            }
        }
        Ok(all)
    }

    /// Whether the goal's events are of the right kind at all.
    fn is_a_goal(&self, goal: &Goal) -> Result<(), String> {
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
                ensure(waiting.iter().all(|&e| matches!(op(e), Op::Acquire(..))), "not all are acquires")
            }
            Goal::LostWakeup { pairing } => ensure(pairing.index() < self.trace.pairings().len(), "no such wait"),
        }
    }

    /// What a write of a variable left behind in the trace, where known.
    fn value_of(&self, x: VarId, writer: Writer) -> Option<i64> {
        match writer {
            Writer::Init => self.before[x.index()],
            Writer::Event(write) => self.trace.value(write),
        }
    }

    /// Whether a write is known to have the value that a read saw in the trace.
    fn same_value(&self, read: EventId, writer: Writer) -> bool {
        let Some(x) = self.trace.op(read).variable() else { return false };
        let value = |writer| self.value_of(x, writer);
        // What an update recorded is what it wrote.
        let seen = if self.trace.op(read).writes() { value(self.saw[read.index()]) } else { self.trace.value(read) };
        seen.is_some_and(|seen| value(writer) == Some(seen))
    }

    fn in_one_block(&self, first: EventId, second: EventId) -> bool {
        let program = &self.program[self.trace.thread(first).index()];
        let at = |event: EventId| program.partition_point(|&e| e < event);
        let mark = |e: &EventId| matches!(self.trace.op(*e), Op::Begin(_) | Op::End(_));
        let opened = program[..at(first)].iter().rev().find(|e| mark(e));
        opened.is_some_and(|&e| matches!(self.trace.op(e), Op::Begin(_)))
            && !program[at(first)..at(second)].iter().any(mark)
    }
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

impl<'c, 't> Replay<'c, 't> {
    fn new(checker: &'c Checker<'t>, model: Model) -> Self {
        Replay {
            checker,
            model,
            position: vec![0; checker.program.len()],
            when: HashMap::new(),
            memory: vec![Writer::Init; checker.trace.variables()],
            astray: vec![false; checker.program.len()],
            doubtful: vec![false; checker.trace.variables()],
            contents: HashMap::new(),
            diary: vec![Vec::new(); checker.program.len()],
            holders: vec![Vec::new(); checker.trace.locks()],
            sent: vec![0; checker.trace.tokens()],
            stopped: vec![false; checker.program.len()],
            last_reads_free: false,
            unknown: vec![false; checker.trace.variables()],
        }
    }
    fn next(&self, thread: ThreadId) -> Option<EventId> {
        self.checker.program[thread.index()].get(self.position[thread.index()]).copied()
    }
    fn pairing(&self, index: usize) -> Pairing {
        self.checker.trace.pairings()[index]
    }

    /// Why the event cannot happen now, reads aside; `None` if it can.
    fn blocked(&self, event: EventId) -> Option<String> {
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
            Op::Wake(_) => {
                let pairing = self.pairing(trace.pairing_of_wake(event)?.index());
                let order = (self.when.get(&pairing.sleep), self.when.get(&pairing.notify));
                (!matches!(order, (Some(sleep), Some(notify)) if sleep < notify)).then(|| "it is not notified".into())
            }
            _ => None,
        }
    }

    /// Why the event cannot read what it would read now; `None` if it can.
    fn misread(&self, event: EventId) -> Option<String> {
        let op = self.checker.trace.op(event);
        match self.model {
            Model::Sync => None,
            Model::Values if self.checker.trace.symbols().is_some() => self.other_way(event),
            Model::Values if self.checker.branches => {
                let astray = self.astray[self.checker.trace.thread(event).index()];
                (matches!(op, Op::Branch) && astray).then(|| "its thread has read something else".into())
            }
            _ if !op.reads() => None,
            Model::Reads => {
                let x = op.variable()?.index();
                let other = self.memory[x] != self.checker.saw[event.index()] || self.unknown[x];
                other.then(|| "it would read another write".into())
            }
            Model::Values => self.reads_anew(event).then(|| "it would read another value".into()),
        }
    }

    /// The number a variable holds now, where known.
    fn content(&self, x: VarId) -> Option<i64> {
        match self.contents.get(&x.index()) {
            Some(&number) => number,
            None => self.checker.value_of(x, self.memory[x.index()]),
        }
    }

    /// What the thread of an event has read, this event included.
    fn diary_with(&self, event: EventId) -> Vec<Option<i64>> {
        let mut diary = self.diary[self.checker.trace.thread(event).index()].clone();
        let op = self.checker.trace.op(event);
        if let (true, Some(x)) = (op.reads(), op.variable()) {
            diary.push(self.content(x));
        }
        diary
    }

    /// Why an event would not happen as it did, by its formulas; `None` if it would.
    fn other_way(&self, event: EventId) -> Option<String> {
        let trace = self.checker.trace;
        let symbols = trace.symbols()?;
        let diary = self.diary_with(event);
        let read = |number: u32| diary.get(number as usize).copied().flatten();
        for &(expr, value) in symbols.guards(event) {
            if symbols.dag().evaluate(expr, &read) != Some(value) {
                return Some("its condition or address would be another".into());
            }
        }
        if trace.op(event) == Op::Branch && symbols.guards(event).is_empty() && self.astray[trace.thread(event).index()]
        {
            return Some("its thread has read something else".into());
        }
        let expr = symbols.written(event)?;
        let nothing = symbols.dag().outcome(expr, &read) == Evaluated::Nothing;
        nothing.then(|| "what it writes would have no value".into())
    }

    /// Keeps what an event reads and writes, where there are formulas.
    fn note(&mut self, event: EventId) {
        let trace = self.checker.trace;
        let Some(symbols) = trace.symbols() else { return };
        let thread = trace.thread(event).index();
        let diary = self.diary_with(event);
        if let (true, Some(x)) = (trace.op(event).writes(), trace.op(event).variable()) {
            let number = match symbols.written(event) {
                None => None,
                Some(expr) => {
                    let number = symbols.dag().evaluate(expr, &|n| diary.get(n as usize).copied().flatten());
                    let of = symbols.dag().type_of(expr);
                    let same = |number: i64| trace.value(event).filter(|v| of.truncate(*v) == of.truncate(number));
                    number.map(|number| same(number).unwrap_or(number))
                }
            };
            let as_traced = symbols.written(event).is_none() && !self.astray[thread];
            if as_traced || (number.is_some() && number == trace.value(event)) {
                self.contents.remove(&x.index());
            } else {
                self.contents.insert(x.index(), number);
            }
            self.doubtful[x.index()] = !as_traced && number.is_none();
        }
        self.diary[thread] = diary;
    }

    /// Whether a read would now see what may be another value than in the trace.
    fn reads_anew(&self, read: EventId) -> bool {
        let Some(x) = self.checker.trace.op(read).variable() else { return false };
        let now = self.memory[x.index()];
        if let Some(&number) = self.contents.get(&x.index()) {
            let read_whole = !self.checker.trace.op(read).writes();
            let seen = if read_whole {
                self.checker.trace.value(read)
            } else {
                self.checker.value_of(x, self.checker.saw[read.index()])
            };
            return number.is_none() || number != seen;
        }
        let same = now == self.checker.saw[read.index()] || self.checker.same_value(read, now);
        !same || self.doubtful[x.index()]
    }

    fn execute(&mut self, thread: ThreadId, goal: Option<&Goal>, step: u64) -> Result<(), String> {
        let known = thread.index() < self.position.len();
        let event = known.then(|| self.next(thread)).flatten().ok_or("the thread has no further event")?;
        ensure(!self.stopped[thread.index()], "the thread stopped at a changed read")?;
        if let Some(why) = self.blocked(event) {
            return Err(why);
        }
        if let Some(why) = self.misread(event) {
            let recorded = self.model == Model::Values && self.checker.branches;
            let free = !recorded
                && match goal {
                    Some(Goal::Nondeterminism { read, .. }) => event == *read,
                    Some(Goal::Atomicity { remote, second, .. }) => event == *remote || event == *second,
                    _ => self.last_reads_free,
                };
            ensure(free, &why)?;
            self.stopped[thread.index()] = true;
        }
        if let Some(&Goal::Nondeterminism { read, challenger }) = goal
            && event == read
        {
            let variable = self.checker.trace.op(read).variable().ok_or("the event does not read")?;
            ensure(self.memory[variable.index()] == challenger, "the read does not see the challenger")?;
            if self.model == Model::Values {
                ensure(!self.doubtful[variable.index()], "the challenger may have written another value")?;
                let same = match self.contents.get(&variable.index()) {
                    Some(_) => !self.reads_anew(read),
                    None => self.checker.same_value(read, challenger),
                };
                ensure(!same, "the challenger wrote the same value")?;
            }
        }
        if self.model == Model::Values {
            let op = self.checker.trace.op(event);
            self.astray[thread.index()] |= op.reads() && self.reads_anew(event);
            if let (true, Some(x)) = (op.writes(), op.variable()) {
                self.doubtful[x.index()] = self.astray[thread.index()];
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
            Op::Sleep(_) | Op::Notify(..) => drop(self.when.insert(event, step)),
            _ => {}
        }
        if let Some(&Goal::Atomicity { first, remote, second }) = goal
            && [first, remote, second].contains(&event)
        {
            self.when.insert(event, step);
        }
        self.position[thread.index()] += 1;
        Ok(())
    }

    /// Whether the goal is reached after the last step.
    fn reached(&self, goal: &Goal) -> Result<(), String> {
        let trace = self.checker.trace;
        let is_next = |event: EventId| self.next(trace.thread(event)) == Some(event);
        match *goal {
            Goal::Race { first, second } => {
                ensure(is_next(first) && is_next(second), "the two are not both next")?;
                let symbolic = self.model == Model::Values && trace.symbols().is_some();
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
                ensure(self.memory[variable.index()] == Writer::Event(challenger), "another write is the last")?;
                let Writer::Event(last) = self.checker.last[variable.index()] else { return Ok(()) };
                let (held, holds) = (trace.value(last), self.content(variable));
                let same = self.doubtful[variable.index()] || (held.is_some() && held == holds);
                ensure(self.model != Model::Values || !same, "the variable may hold the same value")
            }
            Goal::Atomicity { first, remote, second } => {
                let when = [first, remote, second].map(|event| self.when.get(&event));
                let [Some(a), Some(f), Some(b)] = when else { return Err("not all three were executed".into()) };
                ensure(a < f && f < b, "the remote access is not between the two")
            }
            Goal::Deadlock { ref waiting } => {
                for (i, &event) in waiting.iter().enumerate() {
                    let holder = trace.thread(waiting[(i + 1) % waiting.len()]);
                    let Op::Acquire(lock, mode) = trace.op(event) else { return Err("not an acquire".into()) };
                    let mut holdings = self.holders[lock.index()].iter();
                    ensure(is_next(event), "a thread of the cycle is not at its acquire")?;
                    ensure(
                        holdings.any(|(t, m)| *t == holder && m.conflicts_with(mode)),
                        "a lock of the cycle is not held by the next thread",
                    )?;
                }
                Ok(())
            }
            Goal::LostWakeup { pairing } => self.lost(self.pairing(pairing.index())),
        }
    }

    fn lost(&self, Pairing { condition, sleep, notify, wake }: Pairing) -> Result<(), String> {
        let trace = self.checker.trace;
        let (Some(slept), Some(notified)) = (self.when.get(&sleep), self.when.get(&notify)) else {
            return Err("its sleep or its notify was not executed".into());
        };
        ensure(notified < slept, "the notify did not come too early")?;
        let sleeper = trace.thread(sleep);
        ensure(self.next(sleeper) == Some(wake), "the sleeper is not at its wake")?;
        for (&event, when) in self.when.iter().filter(|(_, when)| *when > slept) {
            let Op::Notify(on, reach) = trace.op(event) else { continue };
            ensure(
                on != condition || (reach == Reach::One && self.takes_another(event, *when, sleeper)),
                "another notify would wake it",
            )?;
        }
        // Not before a read that it may not keep: from there it would go on, with another value.
        let waits = |t: ThreadId| self.next(t).is_none_or(|e| self.blocked(e).is_some());
        ensure(trace.thread_ids().all(|t| t == sleeper || waits(t)), "another thread can go on")
    }

    /// Whether the one whom a notify woke in the trace was asleep when it was executed, and is of another thread.
    fn takes_another(&self, notify: EventId, executed: u64, sleeper: ThreadId) -> bool {
        self.checker.trace.woken_by(notify).iter().any(|k| {
            let sleep = self.pairing(k.index()).sleep;
            let slept = self.when.get(&sleep);
            slept.is_some_and(|&slept| slept < executed) && self.checker.trace.thread(sleep) != sleeper
        })
    }
}
