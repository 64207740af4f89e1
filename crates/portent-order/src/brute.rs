//! The oracle: decides goals by enumerating reorderings. Exact, slow, and as close to SEMANTICS §2 and §3 as code can be.
//!
//! Good for about 14 events and 4 threads. States are memoised on what the future depends on: the position of every
//! thread, the last write of every variable, for every wait whether its notify came after its sleep, and two bits of
//! goal progress. Nothing here is shared with the engines or with the checker.
//!
//! # `values`, exactly
//! SEMANTICS §2 for traces without expressions, with the rule of Huang et al. (maximal causality) for what a thread wrote
//! after it read something else. A read *expects* its recorded value; an update, which records what it wrote, the value
//! of the write that it saw. The value of INIT is what the reads that saw it recorded, if they all recorded the same. A
//! read *sees the same* if the last write is the one it saw in the trace, or if both values are known and equal.
//! - A trace without any `branch`: a read is enabled only if it sees the same (every event counts as a branch). A read
//!   without a value thus keeps its writer. Free reads are as in `reads`; what a free update writes when it did not see
//!   the same is nothing that a kept read may see.
//! - A trace with a `branch` somewhere: every read is enabled, but one that does not see the same, or sees a spoiled
//!   write, *spoils* its thread. What a spoiled thread writes is spoiled, because it may depend on what was read, and a
//!   spoiled thread does not execute a `branch`. (Such traces are to record a branch, too, where an address depends on a
//!   read.) Free reads need no rule of their own.
//! - A trace with formulas: as one with branches, but a write with a formula writes what that comes out as, and an event
//!   with a condition or an address happens only if that comes out as in the trace (which is all that a branch with a
//!   formula needs). A formula over a spoiled value is spoiled; one without a value (a division by zero) does not happen.
//!   Of an `if`, the arm that is not taken is no part of that.
//! - Nondeterminism and final values: the write seen must not be spoiled, and is no other value if both are known and
//!   equal. A value that was not recorded thus counts as another one, a spoiled one never.
//! - Lost wake-ups: who waits is the same as in `sync`.

use crate::goal::{Goal, Kind, Model, Schedule, Writer};
use portent_trace::symbolic::{Evaluated, ExprId, Symbols};
use portent_trace::{EventId, LockId, Mode, Op, PairingId, Reach, ThreadId, Trace, VarId};
use std::collections::{BTreeSet, HashSet};

/// A reordering that reaches the goal, or `None` if there is none.
pub fn decide(trace: &Trace, model: Model, goal: &Goal) -> Option<Schedule> {
    let oracle = Oracle::new(trace, model);
    let read_too = match goal {
        Goal::Nondeterminism { read, .. } => Some(trace.thread(*read)),
        _ => None,
    };
    let path = oracle.search(&Target::Goal(goal))?;
    Some(path.into_iter().chain(read_too).collect())
}

/// The shapes that Sinha et al. tell apart: a read `r` of write `w`, and a challenger `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessType {
    /// c → r → w
    ReadBeforeWrite,
    /// w → c → r
    Overwritten,
    /// c → r, and w does not happen
    WithoutWrite,
}

/// Whether a reordering of that shape exists in which the read, last of its thread, does not see `w`.
pub fn has_witness_type(trace: &Trace, model: Model, read: EventId, challenger: Writer, shape: WitnessType) -> bool {
    if challenger == Writer::Init && shape == WitnessType::Overwritten {
        return false; // Nothing comes before INIT.
    }
    Oracle::new(trace, model).search(&Target::Shape { read, challenger, shape }).is_some()
}

/// Every complete reordering, as event sequences in lexicographic order. Only for very small traces.
pub fn complete_runs(trace: &Trace, model: Model) -> Vec<Vec<EventId>> {
    let mut runs: Vec<Vec<EventId>> =
        words(trace, model).into_iter().filter(|word| word.len() == trace.len()).collect();
    runs.sort();
    runs
}

/// How many reorderings there are, complete or not. Only for very small traces.
pub fn count_prefixes(trace: &Trace, model: Model) -> usize {
    words(trace, model).len()
}

/// How many different position vectors lie on complete reorderings.
pub fn count_cuts(trace: &Trace, model: Model) -> usize {
    let mut cuts = BTreeSet::new();
    for run in complete_runs(trace, model) {
        let mut position = vec![0; trace.threads()];
        cuts.insert(position.clone());
        for event in run {
            position[trace.thread(event).index()] += 1;
            cuts.insert(position.clone());
        }
    }
    cuts.len()
}

/// Whether some reordering ends, before every thread has, in a state where nothing is enabled.
pub fn gets_stuck(trace: &Trace, model: Model) -> bool {
    Oracle::new(trace, model).search(&Target::Stuck).is_some()
}

/// The longest reorderings: those that cannot go on, complete or not; `None` if there are more than `most`.
pub fn longest_reorderings(trace: &Trace, model: Model, most: usize) -> Option<Vec<Vec<EventId>>> {
    let mut words = Vec::new();
    each_reordering(trace, model, |word, goes_on| {
        if !goes_on {
            words.push(word);
        }
        words.len() <= most
    });
    (words.len() <= most).then_some(words)
}

fn words(trace: &Trace, model: Model) -> Vec<Vec<EventId>> {
    let mut words = Vec::new();
    each_reordering(trace, model, |word, _| {
        words.push(word);
        true
    });
    words
}

/// A reordering for a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What is executed.
    pub events: Vec<EventId>,
    /// Which of these events read another write than in the trace: each is the last of its thread.
    pub changed: Vec<EventId>,
    /// Whether every thread has run all its events or stopped at a changed read.
    pub ends: bool,
}

/// The longest reorderings in which, in `reads`, the last executed read of each thread may see any write, if it is one of
/// those that may change; `None` if there are more than `most`. What a changed update writes is nothing that a kept read
/// may see.
pub fn longest_for_property(
    trace: &Trace,
    model: Model,
    may_change: &dyn Fn(EventId) -> bool,
    most: usize,
) -> Option<Vec<Word>> {
    let oracle = Oracle::new(trace, model);
    let mut words = Vec::new();
    let mut stack = vec![(oracle.start(), Word { events: Vec::new(), changed: Vec::new(), ends: false })];
    while let Some((state, mut word)) = stack.pop() {
        let before = stack.len();
        let stopped = |t: usize| word.changed.iter().any(|&event| trace.thread(event).index() == t);
        word.ends = (0..oracle.program.len()).all(|t| stopped(t) || state.position[t] == oracle.program[t].len());
        for thread in (0..oracle.program.len()).filter(|&t| !stopped(t)) {
            let Some(&event) = oracle.program[thread].get(state.position[thread]) else { continue };
            if !oracle.possible(&state, event) {
                continue;
            }
            // The last write of a variable is unknown if a changed update made it.
            let unknown = |x: VarId| matches!(state.last[x.index()], Writer::Event(e) if word.changed.contains(&e));
            let reads_unknown = trace.op(event).reads() && trace.op(event).variable().is_some_and(unknown);
            let kept = oracle.keeps_read(&state, event) && !(model == Model::Reads && reads_unknown);
            if kept || (model == Model::Reads && may_change(event)) {
                let mut longer = word.clone();
                longer.events.push(event);
                longer.changed.extend((!kept).then_some(event));
                stack.push((oracle.after(&state, event), longer));
            }
        }
        if stack.len() == before {
            words.push(word);
        }
        if words.len() > most {
            return None;
        }
    }
    Some(words)
}

/// Visits every reordering, and says whether it can go on, as long as the visitor wants more.
fn each_reordering(trace: &Trace, model: Model, mut visit: impl FnMut(Vec<EventId>, bool) -> bool) {
    let oracle = Oracle::new(trace, model);
    let mut stack = vec![(oracle.start(), Vec::new())];
    while let Some((state, word)) = stack.pop() {
        let before = stack.len();
        for thread in 0..oracle.program.len() {
            let Some(&event) = oracle.program[thread].get(state.position[thread]) else { continue };
            if oracle.possible(&state, event) && oracle.keeps_read(&state, event) {
                let mut longer = word.clone();
                longer.push(event);
                stack.push((oracle.after(&state, event), longer));
            }
        }
        if !visit(word, stack.len() > before) {
            return;
        }
    }
}

/// Every goal of a kind that the trace poses, feasible or not, in order.
pub fn candidates(trace: &Trace, kind: Kind) -> Vec<Goal> {
    let oracle = Oracle::new(trace, Model::Sync);
    let events: Vec<EventId> = trace.events().map(|e| e.id).collect();
    let conflict =
        |a: EventId, b: EventId| trace.thread(a) != trace.thread(b) && trace.op(a).conflicts_with(trace.op(b));
    let mut goals = Vec::new();
    match kind {
        Kind::Race => {
            for (i, &first) in events.iter().enumerate() {
                for &second in &events[i + 1..] {
                    let atomic = trace.op(first).is_atomic() && trace.op(second).is_atomic();
                    if conflict(first, second) && !atomic {
                        goals.push(Goal::Race { first, second });
                    }
                }
            }
        }
        Kind::Nondeterminism => {
            for &read in events.iter().filter(|&&e| trace.op(e).reads()) {
                let writes = events.iter().filter(|&&c| {
                    c != read && trace.op(c).writes() && trace.op(c).variable() == trace.op(read).variable()
                });
                for challenger in std::iter::once(Writer::Init).chain(writes.map(|&c| Writer::Event(c))) {
                    if oracle.saw[read.index()] != challenger {
                        goals.push(Goal::Nondeterminism { read, challenger });
                    }
                }
            }
        }
        Kind::FinalValue => {
            for variable in (0..trace.variables()).map(VarId::new) {
                let writes =
                    events.iter().filter(|&&e| trace.op(e).writes() && trace.op(e).variable() == Some(variable));
                let mut writes: Vec<EventId> = writes.copied().collect();
                writes.pop();
                goals.extend(writes.into_iter().map(|challenger| Goal::FinalValue { variable, challenger }));
            }
        }
        Kind::Atomicity => {
            for &first in &events {
                for &remote in events.iter().filter(|&&f| conflict(first, f)) {
                    for &second in events.iter().filter(|&&e| e > first && conflict(remote, e)) {
                        let block = oracle.block[first.index()];
                        let one_block = block.is_some() && block == oracle.block[second.index()];
                        if trace.thread(first) == trace.thread(second) && one_block {
                            goals.push(Goal::Atomicity { first, remote, second });
                        }
                    }
                }
            }
        }
        Kind::Deadlock => {
            for &first in &events {
                oracle.cycles(&mut vec![first], &mut goals);
            }
        }
        Kind::LostWakeup => {
            goals.extend((0..trace.pairings().len()).map(|k| Goal::LostWakeup { pairing: PairingId::new(k) }));
        }
    }
    goals
}

enum Target<'g> {
    Goal(&'g Goal),
    Shape { read: EventId, challenger: Writer, shape: WitnessType },
    Stuck,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    position: Vec<usize>,
    last: Vec<Writer>,
    /// In `values`: variables whose last write is spoiled, and threads that are.
    spoiled: (Vec<bool>, Vec<bool>),
    /// Where there are formulas: what variables hold, and what the reads of each thread saw.
    holds: Vec<Held>,
    seen: Vec<Vec<Held>>,
    /// For each wait: its notify came after its sleep.
    notified: Vec<bool>,
    /// The remote access of an atomicity goal saw something else, so its thread has stopped.
    remote_stopped: bool,
    /// Since the sleep of a lost wake-up goal, a notify ran that would have woken it.
    disturbed: bool,
}

/// What a variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Held {
    Number(i64),
    /// Whatever this write wrote in the trace.
    AsTraced(Writer),
    Spoiled,
}

struct Oracle<'t> {
    trace: &'t Trace,
    model: Model,
    program: Vec<Vec<EventId>>,
    /// Position of each event in its thread.
    rank: Vec<usize>,
    /// The write each reading event saw; meaningless for others.
    saw: Vec<Writer>,
    /// Whether there is a branch, or a formula.
    branches: bool,
    /// The values of the variables' initial writes, where known.
    initial: Vec<Option<i64>>,
    /// The outermost begin around each event.
    block: Vec<Option<EventId>>,
    /// Locks a thread holds before each of its positions.
    held: Vec<Vec<Vec<(LockId, Mode)>>>,
}

impl<'t> Oracle<'t> {
    fn new(trace: &'t Trace, model: Model) -> Self {
        let threads = trace.threads();
        let mut oracle = Oracle {
            trace,
            model,
            program: vec![Vec::new(); threads],
            rank: Vec::new(),
            saw: Vec::new(),
            branches: trace.symbols().is_some() || trace.events().any(|e| e.op == Op::Branch),
            initial: Vec::new(),
            block: Vec::new(),
            held: vec![vec![Vec::new()]; threads],
        };
        let mut last = vec![Writer::Init; trace.variables()];
        let mut open = vec![None; threads];
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

    /// What a write of the variable wrote, where known.
    fn written(&self, variable: VarId, writer: Writer) -> Option<i64> {
        match writer {
            Writer::Init => self.initial[variable.index()],
            Writer::Event(e) => self.trace.value(e),
        }
    }

    /// Whether the writer's value is known to be the one that the read expects.
    fn is_expected(&self, read: EventId, writer: Writer) -> bool {
        let expected = match self.trace.op(read) {
            Op::Read(..) => self.trace.value(read),
            Op::Update(x, _) => self.written(x, self.saw[read.index()]),
            _ => None,
        };
        let written = self.trace.op(read).variable().and_then(|x| self.written(x, writer));
        expected.is_some() && expected == written
    }

    /// What a write left behind in the trace.
    fn traced(&self, x: VarId, writer: Writer) -> Held {
        self.written(x, writer).map_or(Held::AsTraced(writer), Held::Number)
    }

    /// What an expression over a thread's reads comes out as: a number, spoiled, or nothing.
    fn evaluate(&self, symbols: &Symbols, expr: ExprId, seen: &[Held]) -> Option<Held> {
        let number = |read: u32| match seen[read as usize] {
            Held::Number(number) => Some(number),
            _ => None,
        };
        match symbols.dag().outcome(expr, &number) {
            Evaluated::Number(number) => Some(Held::Number(number)),
            Evaluated::Unknown => Some(Held::Spoiled),
            Evaluated::Nothing => None,
        }
    }

    /// What the thread of an event has read once its reading part is done.
    fn seen_by(&self, state: &State, event: EventId) -> Vec<Held> {
        let mut seen = state.seen[self.trace.thread(event).index()].clone();
        if let Op::Read(x, _) | Op::Update(x, _) = self.trace.op(event) {
            seen.push(state.holds[x.index()]);
        }
        seen
    }

    /// Whether conditions and addresses come out as in the trace, and what is written comes out at all.
    fn goes_the_same_way(&self, symbols: &Symbols, state: &State, event: EventId) -> bool {
        let seen = self.seen_by(state, event);
        let guards = symbols.guards(event);
        let kept = |&(expr, value): &(ExprId, i64)| self.evaluate(symbols, expr, &seen) == Some(Held::Number(value));
        let untold = self.trace.op(event) == Op::Branch && guards.is_empty();
        guards.iter().all(kept)
            && !(untold && state.spoiled.1[self.trace.thread(event).index()])
            && symbols.written(event).is_none_or(|expr| self.evaluate(symbols, expr, &seen).is_some())
    }

    /// Whether formulas, if there are any, let a goal's event happen.
    fn is_told(&self, state: &State, event: EventId) -> bool {
        let symbols = self.trace.symbols().filter(|_| self.model == Model::Values);
        symbols.is_none_or(|symbols| self.goes_the_same_way(symbols, state, event))
    }

    /// What a write or update leaves behind.
    fn leaves(&self, symbols: &Symbols, event: EventId, seen: &[Held], spoiled: bool) -> Held {
        let recorded = self.trace.value(event);
        match (symbols.written(event), spoiled) {
            (Some(expr), _) => match (self.evaluate(symbols, expr, seen), recorded) {
                // Written by fewer bits than recorded, it is still the same.
                (Some(Held::Number(number)), Some(traced)) => {
                    let of = symbols.dag().type_of(expr);
                    Held::Number(if of.truncate(number) == of.truncate(traced) { traced } else { number })
                }
                (held, _) => held.unwrap_or(Held::Spoiled),
            },
            (None, true) => Held::Spoiled,
            (None, false) => recorded.map_or(Held::AsTraced(Writer::Event(event)), Held::Number),
        }
    }

    /// Whether a read that sees the challenger is known to see the value it expects.
    fn sees_its_value(&self, state: &State, read: EventId, challenger: Writer) -> bool {
        let (Some(_), Some(x)) = (self.trace.symbols(), self.trace.op(read).variable()) else {
            return self.is_expected(read, challenger);
        };
        let expected = match self.trace.op(read) {
            Op::Read(..) => self.trace.value(read),
            _ => self.written(x, self.saw[read.index()]),
        };
        matches!(state.holds[x.index()], Held::Number(number) if Some(number) == expected)
    }

    /// Whether a read sees what makes its thread go on as in the trace.
    fn sees_as_good(&self, state: &State, read: EventId) -> bool {
        let Some(x) = self.trace.op(read).variable() else { return true };
        let last = state.last[x.index()];
        if self.trace.symbols().is_some() {
            let saw = self.saw[read.index()];
            let (held, traced) = (state.holds[x.index()], self.traced(x, saw));
            let expected = match self.trace.op(read) {
                Op::Read(..) => self.trace.value(read).map(Held::Number),
                _ => Some(traced).filter(|held| matches!(held, Held::Number(_))),
            };
            return Some(held) == expected || (last == saw && held == traced);
        }
        !state.spoiled.0[x.index()] && (last == self.saw[read.index()] || self.is_expected(read, last))
    }

    fn start(&self) -> State {
        State {
            position: vec![0; self.program.len()],
            last: vec![Writer::Init; self.trace.variables()],
            spoiled: (vec![false; self.trace.variables()], vec![false; self.program.len()]),
            holds: match (self.model, self.trace.symbols()) {
                (Model::Values, Some(_)) => {
                    (0..self.trace.variables()).map(|x| self.traced(VarId::new(x), Writer::Init)).collect()
                }
                _ => Vec::new(),
            },
            seen: match (self.model, self.trace.symbols()) {
                (Model::Values, Some(_)) => vec![Vec::new(); self.program.len()],
                _ => Vec::new(),
            },
            notified: vec![false; self.trace.pairings().len()],
            remote_stopped: false,
            disturbed: false,
        }
    }

    fn done(&self, state: &State, event: EventId) -> bool {
        self.rank[event.index()] < state.position[self.trace.thread(event).index()]
    }

    fn next(&self, state: &State, event: EventId) -> bool {
        self.rank[event.index()] == state.position[self.trace.thread(event).index()]
    }

    fn complete(&self, state: &State) -> bool {
        (0..self.program.len()).all(|t| state.position[t] == self.program[t].len())
    }

    /// Whether a thread has run all its events or cannot go on.
    fn stuck(&self, state: &State, thread: usize) -> bool {
        let next = self.program[thread].get(state.position[thread]);
        next.is_none_or(|&e| !(self.possible(state, e) && self.keeps_read(state, e)))
    }

    /// Whether a thread has run all its events or waits for a lock, a token or a notify. One that stands before a read that
    /// it cannot keep, or a branch that would go the other way, does not wait: it would go on, with another value.
    fn waits(&self, state: &State, thread: usize) -> bool {
        let next = self.program[thread].get(state.position[thread]);
        next.is_none_or(|&e| !self.possible(state, e))
    }

    /// Whether another thread holds the lock in a mode that excludes `mode`.
    fn held_by_other(&self, state: &State, thread: ThreadId, lock: LockId, mode: Mode) -> bool {
        (0..self.program.len()).filter(|&t| t != thread.index()).any(|t| {
            let held = &self.held[t][state.position[t]];
            held.iter().any(|&(l, m)| l == lock && m.conflicts_with(mode))
        })
    }

    /// Enabled, reads aside.
    fn possible(&self, state: &State, event: EventId) -> bool {
        let thread = self.trace.thread(event);
        match self.trace.op(event) {
            Op::Acquire(lock, mode) => !self.held_by_other(state, thread, lock, mode),
            Op::Busy(lock, mode) => self.held_by_other(state, thread, lock, mode),
            Op::Receive(token) => self.trace.senders(token).iter().all(|&send| self.done(state, send)),
            Op::Wake(_) => self.trace.pairing_of_wake(event).is_none_or(|k| state.notified[k.index()]),
            _ => true,
        }
    }

    /// Whether the event, if it reads, reads what the model wants.
    fn keeps_read(&self, state: &State, event: EventId) -> bool {
        match self.model {
            Model::Sync => true,
            Model::Reads => self.sees_the_same(state, event),
            Model::Values if let Some(symbols) = self.trace.symbols() => self.goes_the_same_way(symbols, state, event),
            Model::Values if self.branches => {
                self.trace.op(event) != Op::Branch || !state.spoiled.1[self.trace.thread(event).index()]
            }
            Model::Values => !self.trace.op(event).reads() || self.sees_as_good(state, event),
        }
    }

    fn sees_the_same(&self, state: &State, event: EventId) -> bool {
        match self.trace.op(event) {
            Op::Read(x, _) | Op::Update(x, _) => state.last[x.index()] == self.saw[event.index()],
            _ => true,
        }
    }

    /// The state after an event, goal progress aside.
    fn after(&self, state: &State, event: EventId) -> State {
        let mut after = state.clone();
        let thread = self.trace.thread(event).index();
        after.position[thread] += 1;
        if self.model == Model::Values {
            after.spoiled.1[thread] |= self.trace.op(event).reads() && !self.sees_as_good(state, event);
            if let Op::Write(x, _) | Op::Update(x, _) = self.trace.op(event) {
                after.spoiled.0[x.index()] = after.spoiled.1[thread];
            }
            if let Some(symbols) = self.trace.symbols() {
                let seen = self.seen_by(state, event);
                if let Op::Write(x, _) | Op::Update(x, _) = self.trace.op(event) {
                    let held = self.leaves(symbols, event, &seen, after.spoiled.1[thread]);
                    after.holds[x.index()] = held;
                    after.spoiled.0[x.index()] = held == Held::Spoiled;
                }
                after.seen[thread] = seen;
            }
        }
        match self.trace.op(event) {
            Op::Write(x, _) | Op::Update(x, _) => after.last[x.index()] = Writer::Event(event),
            Op::Notify(..) => {
                for &k in self.trace.woken_by(event) {
                    after.notified[k.index()] = self.done(state, self.trace.pairings()[k.index()].sleep);
                }
            }
            _ => {}
        }
        after
    }

    /// The state after an event if it is possible, allowed by the model and no dead end for the target.
    fn step(&self, state: &State, event: EventId, target: &Target<'_>) -> Option<State> {
        if !self.possible(state, event) {
            return None;
        }
        match *target {
            Target::Goal(&Goal::Atomicity { first, remote, second }) => {
                let thread = self.trace.thread(event);
                if thread == self.trace.thread(remote) && state.remote_stopped {
                    return None;
                }
                let in_order = match event {
                    e if e == remote => self.done(state, first) && !self.done(state, second),
                    e if e == second => self.done(state, remote),
                    _ => true,
                };
                // Where branches are recorded no read needs to be free.
                let recorded = self.model == Model::Values && self.branches;
                let free = !recorded && (event == remote || event == second);
                if !in_order || !(free || self.keeps_read(state, event)) {
                    return None;
                }
                let mut after = self.after(state, event);
                after.remote_stopped |= event == remote && !self.keeps_read(state, event);
                Some(after)
            }
            Target::Goal(&Goal::LostWakeup { pairing }) => {
                let pairing = self.trace.pairings()[pairing.index()];
                if !self.keeps_read(state, event) || (event == pairing.sleep && !self.done(state, pairing.notify)) {
                    return None;
                }
                let mut after = self.after(state, event);
                if let Op::Notify(condition, reach) = self.trace.op(event) {
                    let wakes_another = reach == Reach::One
                        && self.trace.woken_by(event).iter().any(|k| {
                            let other = self.trace.pairings()[k.index()].sleep;
                            self.trace.thread(other) != self.trace.thread(pairing.sleep) && self.done(state, other)
                        });
                    after.disturbed |=
                        condition == pairing.condition && self.done(state, pairing.sleep) && !wakes_another;
                }
                Some(after)
            }
            Target::Shape { read, challenger, shape } => {
                let w = self.saw[read.index()];
                let happened = |x: Writer| matches!(x, Writer::Event(e) if self.done(state, e)) || x == Writer::Init;
                let allowed = if event == read {
                    happened(challenger) && !self.sees_the_same(state, read)
                } else if self.trace.thread(event) == self.trace.thread(read) && self.done(state, read) {
                    false
                } else if Writer::Event(event) == w {
                    match shape {
                        WitnessType::ReadBeforeWrite => self.done(state, read),
                        WitnessType::Overwritten => true,
                        WitnessType::WithoutWrite => false,
                    }
                } else {
                    let early = Writer::Event(event) == challenger && shape == WitnessType::Overwritten && !happened(w);
                    !early
                };
                (allowed && (event == read || self.keeps_read(state, event))).then(|| self.after(state, event))
            }
            Target::Goal(_) | Target::Stuck => self.keeps_read(state, event).then(|| self.after(state, event)),
        }
    }

    fn reached(&self, state: &State, target: &Target<'_>) -> bool {
        match *target {
            Target::Goal(&Goal::Race { first, second }) => {
                [first, second].iter().all(|&e| self.next(state, e) && self.is_told(state, e))
            }
            Target::Goal(&Goal::Nondeterminism { read, challenger }) => {
                let Some(x) = self.trace.op(read).variable() else { return false };
                self.next(state, read)
                    && self.is_told(state, read)
                    && state.last[x.index()] == challenger
                    && !(self.model == Model::Values
                        && (state.spoiled.0[x.index()] || self.sees_its_value(state, read, challenger)))
            }
            Target::Stuck => !self.complete(state) && (0..self.program.len()).all(|t| self.stuck(state, t)),
            Target::Goal(&Goal::FinalValue { variable, challenger }) => {
                let mut writes = self.trace.events().filter(|e| e.op.writes() && e.op.variable() == Some(variable));
                let (seen, other) = (writes.next_back().and_then(|e| e.value), self.trace.value(challenger));
                let other = match (self.model, self.trace.symbols()) {
                    (Model::Values, Some(_)) => match state.holds[variable.index()] {
                        Held::Number(number) => Some(number),
                        _ => None,
                    },
                    _ => other,
                };
                let same = state.spoiled.0[variable.index()] || (seen.is_some() && seen == other);
                self.complete(state)
                    && state.last[variable.index()] == Writer::Event(challenger)
                    && !(self.model == Model::Values && same)
            }
            Target::Goal(&Goal::Atomicity { second, .. }) => self.done(state, second),
            Target::Goal(Goal::Deadlock { waiting }) => {
                waiting.iter().all(|&e| self.next(state, e)) && self.is_cycle(waiting)
            }
            Target::Goal(&Goal::LostWakeup { pairing }) => {
                let pairing = self.trace.pairings()[pairing.index()];
                let sleeper = self.trace.thread(pairing.sleep).index();
                let others_wait = (0..self.program.len()).all(|t| t == sleeper || self.waits(state, t));
                self.next(state, pairing.wake) && !state.disturbed && others_wait
            }
            Target::Shape { read, shape, .. } => {
                let written = match self.saw[read.index()] {
                    Writer::Init => shape != WitnessType::ReadBeforeWrite,
                    Writer::Event(w) => self.done(state, w) == (shape != WitnessType::WithoutWrite),
                };
                let init_is_not_left_out = self.saw[read.index()] != Writer::Init || shape != WitnessType::WithoutWrite;
                self.done(state, read) && written && init_is_not_left_out
            }
        }
    }

    /// Each acquire waits for a lock that the thread of the next one holds at its own acquire.
    fn is_cycle(&self, waiting: &[EventId]) -> bool {
        (0..waiting.len()).all(|i| self.waits_for(waiting[i], waiting[(i + 1) % waiting.len()]))
    }

    fn waits_for(&self, acquire: EventId, holder: EventId) -> bool {
        let Op::Acquire(lock, mode) = self.trace.op(acquire) else { return false };
        let held = &self.held[self.trace.thread(holder).index()][self.rank[holder.index()]];
        held.iter().any(|&(l, m)| l == lock && m.conflicts_with(mode))
    }

    /// Every cycle that starts with `path`, whose first event is its lowest.
    fn cycles(&self, path: &mut Vec<EventId>, goals: &mut Vec<Goal>) {
        let (first, last) = (path[0], path[path.len() - 1]);
        if path.len() > 1 && self.waits_for(last, first) {
            goals.push(Goal::Deadlock { waiting: path.clone() });
        }
        for event in self.trace.events().filter(|e| e.id > first && matches!(e.op, Op::Acquire(..))) {
            let new_thread = path.iter().all(|&e| self.trace.thread(e) != event.thread);
            if new_thread && self.waits_for(last, event.id) {
                path.push(event.id);
                self.cycles(path, goals);
                path.pop();
            }
        }
    }

    /// A path to a state that reaches the target: depth first, every state once.
    fn search(&self, target: &Target<'_>) -> Option<Vec<ThreadId>> {
        let mut seen = HashSet::new();
        let mut path = Vec::new();
        self.visit(self.start(), target, &mut seen, &mut path).then_some(path)
    }

    fn visit(&self, state: State, target: &Target<'_>, seen: &mut HashSet<State>, path: &mut Vec<ThreadId>) -> bool {
        if self.reached(&state, target) {
            return true;
        }
        if seen.contains(&state) {
            return false;
        }
        for thread in 0..self.program.len() {
            let Some(&event) = self.program[thread].get(state.position[thread]) else { continue };
            if let Some(after) = self.step(&state, event, target) {
                path.push(ThreadId::new(thread));
                if self.visit(after, target, seen, path) {
                    return true;
                }
                path.pop();
            }
        }
        seen.insert(state);
        false
    }
}
