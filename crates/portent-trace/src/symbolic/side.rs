//! The other side of a branch: a trace in which it goes the other way, and its thread then does something else.
//!
//! What follows the branch in its thread is taken out of the trace, and so is what other threads cannot have done without
//! it: receiving its tokens, waking by its notifies, failing at its locks. A thread that read what is no longer written
//! goes on as far as formulas tell how. The side comes last, so that what could go wrong in it is what could go wrong
//! with an event from there on. The result is a trace like any other, except that its order, in which the branch goes the
//! old way, is no run: engines and the checker decide which of its reorderings are.

use super::{ExprId, Symbols, Type, wrong};
use crate::error::{Problem, TraceError};
use crate::event::{Mode, Op};
use crate::format::parse_call;
use crate::ids::{EventId, LocId, LockId, SemId, ThreadId, VarId};
use crate::input::InputOp;
use crate::names::Names;
use crate::symbolic::SideText;
use crate::trace::{Batch, Pairing, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// An event of a side that was not taken: an access, or taking or giving back a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideEvent {
    /// What it does.
    pub op: Op,
    /// Where in the source.
    pub loc: LocId,
    /// What it writes, where that is known.
    pub written: Option<ExprId>,
    /// Added to the numbers of the reads in that formula.
    pub shift: i64,
}

/// A trace in which a branch goes the other way.
#[derive(Clone, Debug)]
pub struct OtherSide {
    /// The trace. Its events before the branch, and the branch, have the numbers that they had.
    pub trace: Trace,
    /// The number of the first event of the side; all further ones are of the side, too.
    pub first: usize,
}

/// Sides as they are written, with the names of a trace; `Err` says what is wrong, and at which input event.
pub(crate) fn resolve(
    sides: &[(u32, SideText)],
    names: &mut Names,
    whole_variables: bool,
) -> Result<Vec<(u32, SideEvent, bool)>, TraceError> {
    let one = |(input, side): &(u32, SideText)| {
        let at = |problem: Problem| wrong(*input, &problem.to_string());
        let (op, object) = parse_call(names, side.call.as_bytes()).map_err(at)?;
        let op = match op {
            InputOp::Read(order) => Op::Read(VarId(object), order),
            InputOp::Write(order) => Op::Write(VarId(object), order),
            InputOp::Update(order) => Op::Update(VarId(object), order),
            InputOp::Acquire => Op::Acquire(LockId(object), Mode::Exclusive),
            InputOp::AcquireShared => Op::Acquire(LockId(object), Mode::Shared),
            InputOp::Release => Op::Release(LockId(object), Mode::Exclusive),
            InputOp::ReleaseShared => Op::Release(LockId(object), Mode::Shared),
            _ => return Err(wrong(*input, "another side has accesses, acq, rel, acqs and rels only")),
        };
        if op.variable().is_some() && !whole_variables {
            return Err(wrong(*input, "another side needs variables that no access cuts"));
        }
        if side.written.is_some() && !op.writes() {
            return Err(wrong(*input, "only a write or an update of another side has a value"));
        }
        let located = !side.location.is_empty();
        let loc =
            if located { names.intern_location(side.location.as_bytes()).map_err(at)? } else { LocId::from_bits(0) };
        Ok((*input, SideEvent { op, loc, written: side.written, shift: 0 }, located))
    };
    sides.iter().map(one).collect()
}

impl Symbols {
    /// Adds the other side of a branch, each event with its input event. Its thread has made so many reads by then and holds
    /// these locks.
    pub(super) fn add_side(
        &mut self,
        branch: EventId,
        side: Vec<(u32, SideEvent)>,
        mut reads: usize,
        mut held: Vec<(LockId, Mode)>,
    ) -> Result<(), TraceError> {
        for &(input, event) in &side {
            reads += usize::from(event.op.reads());
            let fits = match event.op {
                Op::Acquire(lock, _) => held.iter().all(|(other, _)| *other != lock),
                Op::Release(lock, mode) => held.contains(&(lock, mode)),
                _ => true,
            };
            if !fits {
                let why = "the other side takes a lock that the thread holds, or gives back one that it does not";
                return Err(wrong(input, why));
            }
            if event.written.is_some_and(|expr| self.dag.needs(expr) > reads) {
                return Err(wrong(input, "the other side names a read that the thread has not made"));
            }
            step(&mut held, event.op);
        }
        self.sides.insert(branch, side.into_iter().map(|(_, event)| event).collect());
        Ok(())
    }
}

pub(super) fn step(held: &mut Vec<(LockId, Mode)>, op: Op) {
    match op {
        Op::Acquire(lock, mode) => held.push((lock, mode)),
        Op::Release(lock, mode) => held.retain(|h| *h != (lock, mode)),
        _ => {}
    }
}

/// A trace while it is written again.
struct Rewrite<'t> {
    trace: &'t Trace,
    symbols: &'t Symbols,
    batch: Batch,
    rewritten: Symbols,
    /// The number that each event so far has now.
    now: Vec<Option<EventId>>,
    /// The first event of each thread that is left out.
    ended: Vec<Option<EventId>>,
    /// Threads that have read something that is no longer written.
    diverged: Vec<bool>,
    /// The last write of each variable, as it was and as it is now.
    was: Vec<Option<EventId>>,
    is: Vec<Option<EventId>>,
    initial: Vec<Option<i64>>,
    held: Vec<Vec<(LockId, Mode)>>,
    /// What semaphores that were used count.
    counts: FxHashMap<SemId, u64>,
}

impl Trace {
    /// The trace in which `branch` goes the other way and its thread then does what `side` says, as far as `end`: later
    /// events are left out, and earlier ones while others hold the locks that the side takes. `None` if the branch has no
    /// condition that is true or false, or the locks are never free.
    pub fn other_side(&self, branch: EventId, side: &[SideEvent], end: usize) -> Option<OtherSide> {
        let symbols = self.symbols()?;
        let &[(condition, taken)] = symbols.guards(branch) else { return None };
        if self.op(branch) != Op::Branch || symbols.dag.type_of(condition) != Type::BOOL {
            return None;
        }
        let end = self.last_free(branch, side, end.min(self.len()))?;
        let mut rewrite = Rewrite {
            trace: self,
            symbols,
            batch: Batch::default(),
            rewritten: Symbols { dag: symbols.dag.clone(), ..Symbols::default() },
            now: Vec::with_capacity(end),
            ended: vec![None; self.threads()],
            diverged: vec![false; self.threads()],
            was: vec![None; self.variables()],
            is: vec![None; self.variables()],
            initial: vec![None; self.variables()],
            held: vec![Vec::new(); self.threads()],
            counts: FxHashMap::default(),
        };
        let thread = self.thread(branch);
        for event in (0..end).map(EventId::new) {
            rewrite.copy(event);
            if event == branch {
                rewrite.rewritten.guards.insert(branch, vec![(condition, 1 - taken)]);
                rewrite.ended[thread.index()] = Some(EventId(branch.0 + 1));
            }
        }
        let first = rewrite.batch.len();
        for (i, event) in side.iter().enumerate() {
            let id = EventId::new(first + i);
            if let Some(expr) = event.written {
                rewrite.rewritten.written.insert(id, rewrite.rewritten.dag.shifted(expr, event.shift)?);
            }
            rewrite.batch.push(thread, event.op, None, event.loc, self.input_len() as u32 + i as u32);
        }
        Some(OtherSide { trace: rewrite.finish(end, side.len()), first })
    }

    /// The last place up to `end` at which no other thread holds a lock that the side takes.
    fn last_free(&self, branch: EventId, side: &[SideEvent], end: usize) -> Option<usize> {
        let wanted = |lock: LockId, mode: Mode| {
            side.iter().any(|event| matches!(event.op, Op::Acquire(l, m) if l == lock && m.conflicts_with(mode)))
        };
        let thread = self.thread(branch);
        let mut holders: FxHashSet<(ThreadId, LockId)> = FxHashSet::default();
        let mut free = None;
        for event in (0..end).map(|at| self.event(EventId::new(at))) {
            if event.id > branch && holders.is_empty() {
                free = Some(event.id.index());
            }
            match event.op {
                Op::Acquire(lock, mode) if event.thread != thread && wanted(lock, mode) => {
                    holders.insert((event.thread, lock));
                }
                Op::Release(lock, _) => drop(holders.remove(&(event.thread, lock))),
                _ => {}
            }
        }
        if holders.is_empty() { Some(end.max(branch.index() + 1)) } else { free }
    }
}

impl Rewrite<'_> {
    /// Copies an event, unless its thread cannot have come to it.
    fn copy(&mut self, id: EventId) {
        let event = self.trace.event(id);
        let t = event.thread.index();
        let seen = event.op.variable().map(|x| (x, self.was[x.index()], self.is[x.index()]));
        if let (Op::Read(x, _), Some((_, None, _))) = (event.op, seen) {
            self.initial[x.index()] = event.value;
        }
        if let (Some(x), true) = (event.op.variable(), event.op.writes()) {
            self.was[x.index()] = Some(id);
        }
        let changed = event.op.reads() && seen.is_some_and(|(_, was, is)| was != is);
        let diverged = self.diverged[t] || changed;
        if self.ended[t].is_some() || !self.happens(id, event.op, diverged) {
            self.ended[t].get_or_insert(id);
            self.now.push(None);
            return;
        }
        self.diverged[t] = diverged;
        // Everything that this thread does from here on is told by formulas: what the read had is of no importance.
        let value = match (event.op, seen) {
            (Op::Read(..), Some((x, _, is))) if changed => match is {
                Some(write) => self.trace.value(write),
                None => self.initial[x.index()],
            },
            _ => event.value,
        };
        let now = EventId::new(self.batch.len());
        self.now.push(Some(now));
        self.batch.push(event.thread, event.op, value, event.loc, self.trace.input_index(id));
        if event.tries {
            self.batch.last_tries();
        }
        if let (Some(x), true) = (event.op.variable(), event.op.writes()) {
            self.is[x.index()] = Some(id);
        }
        step(&mut self.held[t], event.op);
        match event.op {
            Op::Post(s) => drop(self.counts.insert(s, self.count(s).saturating_add(1))),
            Op::Wait(s) => drop(self.counts.insert(s, self.count(s).saturating_sub(1))),
            _ => {}
        }
        if let Some(expr) = self.symbols.written(id) {
            self.rewritten.written.insert(now, expr);
        }
        if let Some(guards) = self.symbols.guards.get(&id) {
            self.rewritten.guards.insert(now, guards.clone());
        }
        if let Op::Wake(_) = event.op
            && let Some(pairing) = self.trace.pairing_of_wake(id)
            && let Pairing { condition, sleep, notify, .. } = self.trace.pairings()[pairing.index()]
            && let (Some(sleep), Some(notify)) = (self.now[sleep.index()], self.now[notify.index()])
        {
            self.batch.pairings.push(Pairing { condition, sleep, notify, wake: now });
        }
    }

    fn count(&self, semaphore: SemId) -> u64 {
        self.counts.get(&semaphore).copied().unwrap_or_else(|| self.trace.initial_count(semaphore))
    }

    /// Whether an event can still come, and is still known to be what it was.
    fn happens(&self, id: EventId, op: Op, diverged: bool) -> bool {
        let is_left = |event: EventId| self.now.get(event.index()).is_some_and(Option::is_some);
        match op {
            Op::Wait(s) => self.count(s) > 0,
            Op::Empty(s) => self.count(s) == 0,
            Op::Receive(token) => self.trace.senders(token).iter().all(|&sender| is_left(sender)),
            Op::Wake(_) => self.trace.pairing_of_wake(id).is_none_or(|pairing| {
                let pairing = self.trace.pairings()[pairing.index()];
                is_left(pairing.sleep) && is_left(pairing.notify)
            }),
            Op::Busy(lock, mode) => self.held.iter().enumerate().any(|(other, held)| {
                other != self.trace.thread(id).index() && held.iter().any(|(l, m)| *l == lock && m.conflicts_with(mode))
            }),
            Op::Branch => !diverged || !self.symbols.guards(id).is_empty(),
            Op::Write(..) | Op::Update(..) => !diverged || self.symbols.written(id).is_some(),
            _ => true,
        }
    }

    fn finish(mut self, end: usize, side: usize) -> Trace {
        // Input events that became nothing belong to what their threads did before they ended.
        let last = |thread: ThreadId| self.ended[thread.index()].map_or(end, EventId::index);
        let input = |at: usize| {
            if at < self.trace.len() {
                u64::from(self.trace.input_index(EventId::new(at)))
            } else {
                self.trace.input_len()
            }
        };
        let kept = |&&(skipped, thread): &&(u32, ThreadId)| u64::from(skipped) < input(last(thread));
        self.batch.skipped = self.trace.skipped_inputs().iter().filter(kept).copied().collect();
        self.trace.rewritten(self.batch, side as u64, self.rewritten)
    }
}
