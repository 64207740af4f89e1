//! Counters that nobody looks at: variables that several threads count up without looking at the result. Who counted first, nobody ever
//! knows; asked for what each update could have seen, n threads would have n! behaviours.
//!
//! For the search, accesses of such a variable are operations from which nobody learns anything new: each access that is not an update
//! of the kind must be ordered against all updates by starts and joins of threads, so what it sees follows from what the threads before
//! it did. Which variables these are is said by the first run. If that is not so in a later run, nothing is proven.

use super::operations::{Shown, identity, kind_of};
use crate::outcome::Counting;
use crate::run::Run;
use portent_search::{Observes, Operation, Seen};
use portent_trace::{EventId, InputEvent, InputOp, ObjectClass, ThreadId, Trace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// What variables are called, without the number of those that several have in common.
pub(super) type Kinds = FxHashSet<String>;

/// What an access is to such a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Counts(Counting),
    Reads,
    Writes,
}

/// An access: the number of its event, whose it is, and what.
type At = (usize, ThreadId, Access);

/// The events of each thread by their order, as far as starts and joins of threads order them.
struct Order {
    /// For each event, how many events of each thread are before it.
    before: Vec<Vec<u32>>,
    /// The number of each event among those of its thread, from 1.
    nth: Vec<u32>,
}

impl Order {
    fn of(events: &[InputEvent]) -> Order {
        let threads = events.iter().map(|event| event.thread.index() + 1).max().unwrap_or(0);
        let mut now = vec![vec![0u32; threads]; threads];
        let (mut before, mut nth) = (Vec::with_capacity(events.len()), Vec::with_capacity(events.len()));
        for event in events {
            let (own, other) = (event.thread.index(), event.object as usize);
            if event.op == InputOp::Join && other < threads {
                let joined = now[other].clone();
                now[own].iter_mut().zip(joined).for_each(|(own, joined)| *own = (*own).max(joined));
            }
            before.push(now[own].clone());
            now[own][own] += 1;
            nth.push(now[own][own]);
            if event.op == InputOp::Fork && other < threads && other != own {
                let started = now[own].clone();
                now[other].iter_mut().zip(started).for_each(|(other, started)| *other = (*other).max(started));
            }
        }
        Order { before, nth }
    }

    /// Whether one of two events always comes before the other.
    fn is_fixed(&self, (one, thread, _): At, (other, other_thread, _): At) -> bool {
        let (first, second, whose) = if one < other { (one, other, thread) } else { (other, one, other_thread) };
        self.before[second][whose.index()] >= self.nth[first]
    }
}

/// The accesses of the variables of these kinds, by the parts that engines see, with the kinds of variables that have each part.
fn accesses(run: &Run, trace: &Trace) -> FxHashMap<VarId, (Vec<At>, FxHashSet<u32>)> {
    let counts: FxHashMap<u32, Counting> = run.outcome.unused.iter().copied().collect();
    let mut found: FxHashMap<VarId, (Vec<At>, FxHashSet<u32>)> = FxHashMap::default();
    for (at, event) in run.events.iter().enumerate().filter(|(_, event)| event.op.is_access()) {
        for part in trace.lowered(at as u32) {
            let part = EventId::new(part);
            let (op, thread) = (trace.op(part), trace.thread(part));
            let Some(variable) = op.variable().filter(|_| thread == event.thread) else { continue };
            let access = match counts.get(&(at as u32)) {
                Some(&counting) => Access::Counts(counting),
                None if op.writes() => Access::Writes,
                None => Access::Reads,
            };
            let (accesses, objects) = found.entry(variable).or_default();
            accesses.push((at, thread, access));
            objects.insert(event.object);
        }
    }
    found
}

/// Whether all that can happen to a variable is that it is counted, in whatever order.
fn only_counts(accesses: &[At], order: &Order) -> bool {
    accesses.iter().enumerate().all(|(at, &one)| {
        accesses[..at]
            .iter()
            .all(|&other| one.2 == other.2 && one.2 != Access::Writes || one.1 == other.1 || order.is_fixed(one, other))
    })
}

fn kind_of_variable(run: &Run, object: u32) -> String {
    kind_of(run.names.name(ObjectClass::Variable, object))
}

/// The kinds of variables of a run that are counted and that nobody looks at.
pub(super) fn of(run: &Run, trace: &Trace) -> Kinds {
    if run.outcome.unused.is_empty() {
        return Kinds::default();
    }
    let counted = run.outcome.unused.iter().map(|&(at, _)| kind_of_variable(run, run.events[at as usize].object));
    let mut kinds: Kinds = counted.collect();
    let looked_at = looked_at(run, trace, &kinds);
    kinds.retain(|kind| !looked_at.contains(kind));
    kinds
}

/// Those of some kinds of variables that somebody looks at in a run while others count.
pub(super) fn looked_at(run: &Run, trace: &Trace, kinds: &Kinds) -> Kinds {
    let mut found = Kinds::default();
    if kinds.is_empty() {
        return found;
    }
    let order = Order::of(&run.events);
    for (accesses, objects) in accesses(run, trace).values() {
        let of: Vec<String> = objects.iter().map(|&object| kind_of_variable(run, object)).collect();
        let all = of.iter().all(|kind| kinds.contains(kind));
        if of.iter().any(|kind| kinds.contains(kind)) && !(all && only_counts(accesses, &order)) {
            found.extend(of);
        }
    }
    found
}

/// The run in which accesses of these variables are events that nobody waits for; and which events these are.
pub(super) fn without(run: &Run, kinds: &Kinds) -> Option<(Run, FxHashSet<usize>)> {
    if kinds.is_empty() {
        return None;
    }
    let mut names = run.names.clone();
    let nobody = names.intern(ObjectClass::Token, b"nobody").ok()?;
    let (mut events, mut quiet) = (run.events.clone(), FxHashSet::default());
    for (at, event) in events.iter_mut().enumerate().filter(|(_, event)| event.op.is_access()) {
        if kinds.contains(&kind_of_variable(run, event.object)) {
            (event.op, event.object, event.value) = (InputOp::Send, nobody, None);
            quiet.insert(at);
        }
    }
    let (stacks, outcome) = (run.stacks.clone(), run.outcome.clone());
    Some((Run { events, stacks, names, outcome, recording: Vec::new() }, quiet))
}

/// What an access of such a variable is to the search. `trace`: of the run without them, in which it is the event `part`.
pub(super) fn step(run: &Run, trace: &Trace, (at, part): (usize, usize), place: u64) -> Option<Shown> {
    /// Kinds of operations, beside those of [`super::operations`].
    const COUNTS: u32 = 32;
    let InputEvent { op, object, value, .. } = run.events[at];
    let event = trace.lowered(part as u32).map(EventId::new).next()?;
    let is_read = matches!(op, InputOp::Read(_));
    let is_write = matches!(op, InputOp::Write(_));
    let operation = Operation {
        place,
        kind: COUNTS + u32::from(is_read) + 2 * u32::from(is_write),
        object: identity(run, object),
        operand: value.filter(|_| is_write).unwrap_or_default(),
    };
    let seen = if is_read { Seen::Value(value.unwrap_or(i64::MIN)) } else { Seen::Nothing };
    Some(Shown { operation, observes: Observes::Nothing, seen, event, parts: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{End, Outcome};
    use portent_trace::{FunctionBlocks, Names, ReadOrder, StackColumn, UpdateOrder};

    /// A run of these events: thread, operation and the number of the variable or thread.
    fn run(did: &[(usize, InputOp, u32)], unused: &[u32]) -> Run {
        let mut names = Names::default();
        for name in ["main", "T1", "T2"] {
            names.intern(ObjectClass::Thread, name.as_bytes()).unwrap();
        }
        names.intern(ObjectClass::Variable, b"hits").unwrap();
        let loc = names.intern_location(b"a.c:1").unwrap();
        let events = did.iter().map(|&(thread, op, object)| {
            let thread = ThreadId::new(thread);
            InputEvent { thread, op, object, value: None, loc }
        });
        let unused = unused.iter().map(|&at| (at, Counting::Adds)).collect();
        let outcome = Outcome { unused, ..Outcome::ended(End::Status(0)) };
        Run { events: events.collect(), stacks: StackColumn::default(), names, outcome, recording: Vec::new() }
    }

    fn is_counter(did: &[(usize, InputOp, u32)], unused: &[u32]) -> bool {
        let run = run(did, unused);
        let trace = run.trace(FunctionBlocks::None).unwrap();
        !of(&run, &trace).is_empty()
    }

    const FORK: InputOp = InputOp::Fork;
    const JOIN: InputOp = InputOp::Join;
    const ADD: InputOp = InputOp::Update(UpdateOrder::Relaxed);
    const READ: InputOp = InputOp::Read(ReadOrder::Relaxed);

    #[test]
    fn what_is_read_after_all_threads_were_joined_is_a_counter() {
        let all = [(0, FORK, 1), (0, FORK, 2), (1, ADD, 0), (2, ADD, 0), (0, JOIN, 1), (0, JOIN, 2), (0, READ, 0)];
        assert!(is_counter(&all, &[2, 3]));
        assert!(!is_counter(&all, &[2]), "the result of one is looked at");
    }

    #[test]
    fn what_is_read_while_a_thread_may_still_count_is_none() {
        let all = [(0, FORK, 1), (0, FORK, 2), (1, ADD, 0), (2, ADD, 0), (0, JOIN, 1), (0, READ, 0), (0, JOIN, 2)];
        assert!(!is_counter(&all, &[2, 3]));
    }

    #[test]
    fn what_is_read_before_the_threads_start_is_a_counter() {
        assert!(is_counter(&[(0, READ, 0), (0, FORK, 1), (0, ADD, 0), (1, ADD, 0)], &[2, 3]));
        assert!(!is_counter(&[(0, FORK, 1), (0, READ, 0), (1, ADD, 0)], &[2]));
    }
}
