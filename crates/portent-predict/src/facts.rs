//! What every kind of bug needs to know of a trace: writers, blocks, held locks. Built once, in one pass.

use crate::steps::InputSteps;
use crate::unshared::Unshared;
use portent_order::{Checker, Writer};
use portent_trace::{EventId, LockId, Mode, Op, Trace, VarId};
use rustc_hash::FxHashMap;

/// Facts about a trace.
pub(crate) struct Facts<'t> {
    pub(crate) trace: &'t Trace,
    /// What the trace was selected from, if it is not the whole.
    pub(crate) unshared: Option<&'t Unshared<'t>>,
    pub(crate) checker: Checker<'t>,
    pub(crate) steps: InputSteps,
    /// The write before each access of its variable; meaningless for other events.
    saw: Vec<u32>,
    /// The outermost begin around each event, plus one; zero outside every block.
    block: Vec<u32>,
    /// The set of locks held before each event.
    held: Vec<u32>,
    sets: Vec<Vec<(LockId, Mode)>>,
    /// First and last write of each variable.
    bounds: Vec<Option<(EventId, EventId)>>,
}

const INIT: u32 = u32::MAX;

impl<'t> Facts<'t> {
    /// Facts about a whole trace.
    pub(crate) fn new(trace: &'t Trace) -> Self {
        // Nothing stops it.
        Self::until(trace, &|| false).unwrap_or_else(|| unreachable!("nobody stops"))
    }

    /// The same; `None` if told to stop.
    pub(crate) fn until(trace: &'t Trace, stop: &dyn Fn() -> bool) -> Option<Self> {
        Self::of(trace, None, stop)
    }

    /// Facts about what is left of a trace without what no two threads contend for; `None` if told to stop.
    pub(crate) fn of_shared(unshared: &'t Unshared<'t>, stop: &dyn Fn() -> bool) -> Option<Self> {
        Self::of(&unshared.selection.trace, Some(unshared), stop)
    }

    fn of(trace: &'t Trace, unshared: Option<&'t Unshared<'t>>, stop: &dyn Fn() -> bool) -> Option<Self> {
        let checker = Checker::until(trace, stop)?;
        let mut facts = Facts {
            trace,
            unshared,
            checker,
            steps: unshared.map_or_else(|| InputSteps::new(trace), Unshared::steps),
            saw: Vec::with_capacity(trace.len()),
            block: Vec::with_capacity(trace.len()),
            held: Vec::with_capacity(trace.len()),
            sets: vec![Vec::new()],
            bounds: vec![None; trace.variables()],
        };
        let mut known: FxHashMap<Vec<(LockId, Mode)>, u32> = FxHashMap::default();
        known.insert(Vec::new(), 0);
        let mut open = vec![0u32; trace.threads()];
        let mut now = vec![0u32; trace.threads()];
        for event in trace.events() {
            if event.id.index() & 0xffff == 0xffff && stop() {
                return None;
            }
            let (id, t) = (event.id, event.thread.index());
            let bounds = event.op.variable().map(|x| &mut facts.bounds[x.index()]);
            facts.saw.push(bounds.as_ref().and_then(|b| **b).map_or(INIT, |(_, last)| last.index() as u32));
            if let (Some(bounds), true) = (bounds, event.op.writes()) {
                *bounds = Some((bounds.map_or(id, |(first, _)| first), id));
            }
            facts.held.push(now[t]);
            let changed = match event.op {
                Op::Begin(_) => {
                    open[t] = id.index() as u32 + 1;
                    None
                }
                Op::End(_) => {
                    open[t] = 0;
                    None
                }
                Op::Acquire(lock, mode) => {
                    let mut set = facts.sets[now[t] as usize].clone();
                    set.push((lock, mode));
                    set.sort_unstable();
                    Some(set)
                }
                Op::Release(lock, mode) => {
                    let mut set = facts.sets[now[t] as usize].clone();
                    set.retain(|held| *held != (lock, mode));
                    Some(set)
                }
                _ => None,
            };
            facts.block.push(open[t]);
            if let Some(set) = changed {
                now[t] = *known.entry(set).or_insert_with_key(|set| {
                    facts.sets.push(set.clone());
                    facts.sets.len() as u32 - 1
                });
            }
        }
        Some(facts)
    }

    /// The trace that this one was selected from, or itself.
    pub(crate) fn whole(&self) -> &'t Trace {
        self.unshared.map_or(self.trace, |unshared| unshared.whole)
    }
    /// The write that was last before an access: what it saw, if it reads.
    pub(crate) fn saw(&self, access: EventId) -> Writer {
        match self.saw[access.index()] {
            INIT => Writer::Init,
            event => Writer::Event(EventId::new(event as usize)),
        }
    }
    /// The write that a variable ends with.
    pub(crate) fn last_write(&self, x: VarId) -> Option<EventId> {
        self.bounds[x.index()].map(|(_, last)| last)
    }
    /// Whether a variable still has its initial value when event number `at` is next.
    pub(crate) fn is_initial(&self, x: VarId, at: usize) -> bool {
        self.bounds[x.index()].is_none_or(|(first, _)| first.index() >= at)
    }
    /// The block around an event, as a number; `None` outside every block.
    pub(crate) fn block(&self, event: EventId) -> Option<u32> {
        Some(self.block[event.index()]).filter(|&block| block != 0)
    }
    /// Whether the block around an event was declared: marked in the trace, or a function that the user chose.
    pub(crate) fn is_declared(&self, event: EventId) -> bool {
        let begin = self.block(event).map(|begin| self.trace.op(EventId::new(begin as usize - 1)));
        matches!(begin, Some(Op::Begin(block)) if self.trace.is_declared(block))
    }
    /// The locks that the thread of an event holds just before it.
    pub(crate) fn held(&self, event: EventId) -> &[(LockId, Mode)] {
        &self.sets[self.held[event.index()] as usize]
    }
    /// The number of that set of locks: equal numbers, equal sets.
    pub(crate) fn held_set(&self, event: EventId) -> u32 {
        self.held[event.index()]
    }
    /// The locks of a set.
    pub(crate) fn set(&self, set: u32) -> &[(LockId, Mode)] {
        &self.sets[set as usize]
    }
    /// Whether two sets have a lock in common, at least one of them exclusively.
    pub(crate) fn sets_conflict(&self, one: u32, other: u32) -> bool {
        conflict(self.set(one), self.set(other))
    }
    /// The same of some locks and a set.
    pub(crate) fn conflicts_with_set(&self, locks: &[(LockId, Mode)], set: u32) -> bool {
        conflict(locks, self.set(set))
    }
    /// Whether the two events' threads hold a common lock, at least one of them exclusively.
    pub(crate) fn share_a_lock(&self, a: EventId, b: EventId) -> bool {
        conflict(self.held(a), self.held(b))
    }
}

fn conflict(one: &[(LockId, Mode)], other: &[(LockId, Mode)]) -> bool {
    one.iter().any(|(l, m)| other.iter().any(|(k, n)| l == k && m.conflicts_with(*n)))
}

/// What matters of an operation: whether it writes, whether it is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Touch(u8);

impl Touch {
    #[inline]
    pub(crate) fn of(op: Op) -> Self {
        Touch(u8::from(op.writes()) | u8::from(op.is_atomic()) << 1)
    }
    #[inline]
    pub(crate) fn writes(self) -> bool {
        self.0 & 1 != 0
    }
    pub(crate) fn races_with(self, other: Touch) -> bool {
        (self.0 | other.0) & 1 != 0 && self.0 & other.0 & 2 == 0
    }
}
