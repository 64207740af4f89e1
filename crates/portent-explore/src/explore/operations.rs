//! What a recorded event is to the search for all behaviours: an operation with its outcome, nothing, or the reason why what else could
//! happen there is not known.

use crate::run::Run;
use portent_search::{End, Observes, Operation, Seen, Writes};
use portent_trace::{
    CondId, EventId, InputEvent, InputOp, LocId, LockId, Mode, ObjectClass, Op, ReadOrder, SemId, ThreadId, Trace,
};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::hash::BuildHasher;

/// An operation that a trace shows.
pub(super) struct Shown {
    pub(super) operation: Operation,
    pub(super) observes: Observes,
    pub(super) seen: Seen,
    pub(super) event: EventId,
    /// The events of a read in parts: none of them may be able to see anything else.
    pub(super) parts: Vec<EventId>,
}

/// That a thread fails, as the last thing it does.
pub(super) const FAILS: Operation = Operation { place: 0, kind: 23, object: 0, operand: 0 };

/// What is known of a run from the events before one.
#[derive(Default)]
pub(super) struct Before {
    /// What variables hold.
    memory: FxHashMap<usize, Option<i64>>,
    /// Threads that woke by themselves, which happens once.
    woke: FxHashSet<ThreadId>,
}

/// A place in the code, the same in all runs: the user's line, and what of a library is executed there.
pub(super) fn place(run: &Run, at: usize, places: &mut FxHashMap<(LocId, LocId), u64>) -> u64 {
    let own = run.events[at].loc;
    let innermost = run.names.innermost(own, run.stacks.get(at));
    *places.entry((own, innermost)).or_insert_with(|| {
        let text = |at: LocId| run.names.location(at).to_string();
        FxBuildHasher.hash_one((text(own), text(innermost)))
    })
}

/// The name of an object without its number: which of several it is depends on who came first.
pub(super) fn kind_of(name: &str) -> String {
    let name = name.split('#').next().unwrap_or_default();
    let numbered = name.rfind(" (").filter(|_| name.ends_with(')'));
    numbered.map_or(name, |at| &name[..at]).to_owned()
}

/// What tells a variable from others, in all runs.
pub(super) fn identity(run: &Run, object: u32) -> u64 {
    // What it is called may depend on what else the run did with it.
    let known = run.outcome.identities.get(object as usize).copied().filter(|&identity| identity != 0);
    known.unwrap_or_else(|| FxBuildHasher.hash_one(kind_of(run.names.name(ObjectClass::Variable, object))))
}

/// What an event is to the search: an operation, nothing, or the reason why what else could happen there is not known.
pub(super) fn shown(
    run: &Run,
    trace: &Trace,
    at: usize,
    place: u64,
    known: &FxHashMap<ThreadId, usize>,
    before: &mut Before,
) -> Result<Option<Shown>, String> {
    let InputEvent { thread, op, object, value, .. } = run.events[at];
    let mut own = trace.lowered(at as u32).map(EventId::new).filter(|&event| trace.thread(event) == thread);
    let name = |class: ObjectClass| FxBuildHasher.hash_one(kind_of(run.names.name(class, object)));
    let whose = || known.get(&ThreadId::new(object as usize)).copied().unwrap_or(usize::MAX) as u64;
    let operation = |kind: u32, object: u64, operand: i64| Operation { place, kind, object, operand };
    let simple = |kind: u32, object: u64, event: Option<EventId>| {
        // An acquire of what the thread holds already is no event of the kernel, and its own business.
        let (operation, observes, seen) = (operation(kind, object, 0), Observes::Nothing, Seen::Nothing);
        Ok(event.map(|event| Shown { operation, observes, seen, event, parts: Vec::new() }))
    };
    // It learns whether it got what it tried for.
    let tries = |kind: u32, object: u64, event: Option<EventId>| {
        use InputOp::*;
        let fails = matches!(op, Busy | BusyShared | SemaphoreBusy | TimeOut | WakeByItself);
        let observes = if matches!(op, Wake | WakeByItself) { Observes::Wakes } else { Observes::Try };
        let (operation, seen) = (operation(kind, object, 0), if fails { Seen::Busy } else { Seen::Taken });
        Ok(event.map(|event| Shown { operation, observes, seen, event, parts: Vec::new() }))
    };
    let of_lock = |&event: &EventId| matches!(trace.op(event), Op::Acquire(..) | Op::Release(..) | Op::Busy(..));
    match op {
        op if op.is_access() => {
            let accesses: Vec<EventId> = own.filter(|&event| trace.op(event).variable().is_some()).collect();
            let Some(&event) = accesses.last() else { return Ok(None) };
            let kernel = trace.op(event);
            // Of something that is written in parts, the last counts; of what is read in parts, each would have an outcome.
            let parts = if accesses.len() > 1 && kernel.reads() { accesses.clone() } else { Vec::new() };
            if kernel.reads() && kernel.writes() && !parts.is_empty() {
                return Err("accesses of different sizes overlap".into());
            }
            let x = kernel.variable().map_or(usize::MAX, |x| x.index());
            let held = before.memory.get(&x).copied().flatten();
            // A compare-exchange is a read if it fails and an update if not: the same operation.
            let (kind, operand, old) = match kernel {
                Op::Read(_, ReadOrder::Plain) => (0, 0, value),
                Op::Read(..) => (1, 0, value),
                Op::Update(..) => (1, 0, held),
                // Of a copy the write comes first, and what is written is what the read sees.
                _ if is_read(next_of_thread(run, at)) => (2, 0, None),
                _ => (2, value.unwrap_or(i64::MIN), None),
            };
            if kernel.writes() {
                let parts = accesses.iter().filter_map(|&event| Some((trace.op(event).variable()?.index(), event)));
                before.memory.extend(parts.map(|(x, event)| (x, trace.value(event))));
            } else if value.is_some() && parts.is_empty() {
                before.memory.insert(x, value);
            }
            let learns = kernel.reads() && parts.is_empty();
            let observes = if learns { Observes::Value(Writes::Always) } else { Observes::Nothing };
            let seen = if kernel.reads() { Seen::Value(old.unwrap_or(i64::MIN)) } else { Seen::Nothing };
            let operation = operation(kind, identity(run, object), operand);
            Ok(Some(Shown { operation, observes, seen, event, parts }))
        }
        InputOp::TryAcquire | InputOp::Busy => tries(17, name(ObjectClass::Lock), own.find(of_lock)),
        InputOp::TryAcquireShared | InputOp::BusyShared => tries(18, name(ObjectClass::Lock), own.find(of_lock)),
        InputOp::ReleaseAll => simple(8, name(ObjectClass::Lock), own.find(of_lock)),
        InputOp::AcquireAll => simple(9, name(ObjectClass::Lock), own.find(of_lock)),
        InputOp::Sleep => simple(10, name(ObjectClass::Condition), own.next()),
        InputOp::Notify => simple(11, name(ObjectClass::Condition), own.next()),
        InputOp::NotifyAll => simple(12, name(ObjectClass::Condition), own.next()),
        InputOp::Wake | InputOp::WakeInTime | InputOp::TimeOut | InputOp::WakeByItself => {
            let event = own.find(|&event| matches!(trace.op(event), Op::Wake(_)));
            let was_woken = event.is_some_and(|event| trace.pairing_of_wake(event).is_some());
            match op {
                InputOp::Wake if was_woken && run.outcome.spurious && !before.woke.contains(&thread) => {
                    tries(22, name(ObjectClass::Condition), event)
                }
                InputOp::WakeByItself if !was_woken => {
                    before.woke.insert(thread);
                    tries(22, name(ObjectClass::Condition), event)
                }
                InputOp::Wake if was_woken => simple(13, name(ObjectClass::Condition), event),
                InputOp::WakeInTime if was_woken => tries(14, name(ObjectClass::Condition), event),
                InputOp::TimeOut if !was_woken => tries(14, name(ObjectClass::Condition), event),
                _ => Err("whether a notify ended a wait on a condition is not known".into()),
            }
        }
        InputOp::SemaphoreInit => Ok(None),
        InputOp::Post => simple(15, name(ObjectClass::Semaphore), own.next()),
        InputOp::SemaphoreWait => simple(16, name(ObjectClass::Semaphore), own.next()),
        InputOp::SemaphoreTry | InputOp::SemaphoreBusy => tries(19, name(ObjectClass::Semaphore), own.next()),
        InputOp::Arrive => simple(20, name(ObjectClass::Barrier), own.next()),
        InputOp::Depart => simple(21, name(ObjectClass::Barrier), own.next()),
        InputOp::Acquire => simple(3, name(ObjectClass::Lock), own.find(|&e| matches!(trace.op(e), Op::Acquire(..)))),
        InputOp::AcquireShared => {
            simple(4, name(ObjectClass::Lock), own.find(|&e| matches!(trace.op(e), Op::Acquire(..))))
        }
        InputOp::Release | InputOp::ReleaseShared => {
            simple(5, name(ObjectClass::Lock), own.find(|&e| matches!(trace.op(e), Op::Release(..))))
        }
        InputOp::Fork => simple(6, whose(), own.find(|&e| matches!(trace.op(e), Op::Send(_)))),
        InputOp::Join => simple(7, whose(), own.rfind(|&e| matches!(trace.op(e), Op::Receive(_)))),
        InputOp::Call | InputOp::Return | InputOp::Begin | InputOp::End => Ok(None),
        InputOp::FenceAcquire | InputOp::FenceRelease | InputOp::Fence => Ok(None),
        op => Err(format!("another outcome of {} is not looked for", of_class(op))),
    }
}

fn is_read(op: Option<InputOp>) -> bool {
    matches!(op, Some(InputOp::Read(ReadOrder::Plain)))
}

/// What the thread of an event does next.
fn next_of_thread(run: &Run, at: usize) -> Option<InputOp> {
    let thread = run.events[at].thread;
    run.events[at + 1..].iter().find(|event| event.thread == thread).map(|event| event.op)
}

/// How a thread ended that nobody can help any more: what it waits for, in terms of the trace, and whether it may wake by itself.
pub(super) fn stands(waits: Option<(InputOp, Option<u32>)>, may_wake: bool) -> End {
    let op = match waits {
        Some((InputOp::Acquire | InputOp::AcquireAll | InputOp::OnceBegin, Some(lock))) => {
            Some(Op::Acquire(LockId::new(lock as usize), Mode::Exclusive))
        }
        Some((InputOp::AcquireShared, Some(lock))) => Some(Op::Acquire(LockId::new(lock as usize), Mode::Shared)),
        Some((InputOp::SemaphoreWait, Some(semaphore))) => Some(Op::Wait(SemId::new(semaphore as usize))),
        Some((InputOp::Wake, Some(condition))) => Some(Op::Wake(CondId::new(condition as usize))),
        // Who never ends, and who never comes to a barrier, does not in any reordering.
        Some((InputOp::Join | InputOp::Depart, _)) => None,
        _ => return End::Cut,
    };
    let observes = if may_wake && matches!(op, Some(Op::Wake(_))) { Observes::Wakes } else { Observes::Nothing };
    End::Waits { operation: None, observes, op }
}

/// What an operation is about, in words.
pub(super) fn of_class(op: InputOp) -> &'static str {
    match op {
        InputOp::Branch | InputOp::Send | InputOp::Receive => "system calls",
        _ => match op.class() {
            ObjectClass::Lock => "calls that run once",
            ObjectClass::Latch => "waits for latches and futures",
            _ => "declared orders",
        },
    }
}

/// Whether more threads meet at a barrier than a round of it takes: which of them make a round is then a choice that is not looked for.
pub(super) fn rounds_differ(run: &Run, trace: &Trace) -> bool {
    let mut threads: FxHashMap<u32, BTreeSet<ThreadId>> = FxHashMap::default();
    let mut least: FxHashMap<u32, usize> = FxHashMap::default();
    for (at, event) in run.events.iter().enumerate() {
        match event.op {
            InputOp::Arrive => drop(threads.entry(event.object).or_default().insert(event.thread)),
            InputOp::Depart => {
                for token in trace.lowered(at as u32).map(EventId::new).map(|event| trace.op(event)) {
                    if let Op::Receive(token) = token {
                        let size = trace.senders(token).len();
                        least.entry(event.object).and_modify(|least| *least = size.min(*least)).or_insert(size);
                    }
                }
            }
            _ => {}
        }
    }
    least.iter().any(|(barrier, &least)| threads.get(barrier).is_some_and(|threads| threads.len() > least))
}
