//! Laying out a window: from events of a trace to chains, scopes, readers and pasts, in one pass.

use super::index::{
    Chain, Condition, Dense, IndexVec, Lock, Node, OpenSet, Place, ScopeId, Semaphore, Source, Variable, WaitId, ids,
};
use super::rows::Rows;
use super::sleeps::{Wait, Waiting};
use super::slice::Slice;
use super::values::TraceValues;
use super::window::{Accesses, Act, InChain, Scope, ScopesInChain, Window};
use crate::conditions::Naps;
use crate::goal::{Model, Writer};
use crate::read_rule::{ReadRule, Recorded};
use portent_trace::{CondId, EventId, LockId, Mode, Op, Reach, SemId, Sleepers, ThreadId, Trace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The state of the trace between two windows, carried along so that opening a window costs its own length only.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    /// Events done.
    pub done: usize,
    held: FxHashSet<(ThreadId, LockId, Mode)>,
    last_write: FxHashMap<VarId, EventId>,
    /// By how much posts and waits have moved the counts of semaphores.
    counted: FxHashMap<SemId, i64>,
    /// Who sleeps on conditions, and where each thread does.
    asleep: FxHashMap<CondId, Sleepers<EventId>>,
    slept: FxHashMap<ThreadId, EventId>,
    rule: ReadRule,
    /// Where values are compared.
    values: Option<Arc<TraceValues>>,
}

impl Prefix {
    /// The empty prefix of a trace, for windows in a model.
    pub(crate) fn of(trace: &Trace, model: Model) -> Self {
        let values = (model == Model::Values).then(|| Arc::new(TraceValues::of(trace)));
        let recorded = values.as_ref().map_or_else(Recorded::default, |values| values.recorded);
        Prefix { values, ..Prefix::starting(0, model.read_rule(recorded)) }
    }
    fn starting(done: usize, rule: ReadRule) -> Self {
        Prefix {
            done,
            held: FxHashSet::default(),
            last_write: FxHashMap::default(),
            counted: FxHashMap::default(),
            asleep: FxHashMap::default(),
            slept: FxHashMap::default(),
            rule,
            values: None,
        }
    }
    /// Moves on to event `to`.
    pub(crate) fn advance(&mut self, trace: &Trace, to: usize) {
        for i in self.done..to {
            let event = EventId::new(i);
            let thread = trace.thread(event);
            match trace.op(event) {
                Op::Acquire(l, m) => drop(self.held.insert((thread, l, m))),
                Op::Release(l, m) => drop(self.held.remove(&(thread, l, m))),
                Op::Write(x, _) | Op::Update(x, _) => drop(self.last_write.insert(x, event)),
                Op::Post(s) => *self.counted.entry(s).or_default() += 1,
                Op::Wait(s) => *self.counted.entry(s).or_default() -= 1,
                Op::Sleep(c) => {
                    self.asleep.entry(c).or_default().sleep(event);
                    self.slept.insert(thread, event);
                }
                Op::Notify(c, Reach::One) => self.asleep.entry(c).or_default().notify_one(),
                Op::Notify(c, Reach::All) => self.asleep.entry(c).or_default().notify_all(),
                Op::Wake(c) => {
                    if let Some(sleep) = self.slept.remove(&thread) {
                        let asleep = self.asleep.entry(c).or_default();
                        match trace.pairing_of_wake(event) {
                            Some(_) => asleep.wake(sleep),
                            None => asleep.leave(sleep),
                        }
                    }
                }
                _ => {}
            }
        }
        self.done = self.done.max(to);
    }
}

impl<'t> Window<'t> {
    /// The window of `len` events after the prefix.
    pub(crate) fn open(trace: &'t Trace, prefix: &Prefix, len: usize) -> Self {
        let first = prefix.done;
        let len = len.min(trace.len() - first);
        Self::lay_out(trace, prefix, len, None)
    }

    /// The window of the events of a slice, in [`Model::Reads`] or [`Model::Sync`].
    pub(crate) fn of(trace: &'t Trace, model: Model, slice: &Slice<'_>) -> Self {
        debug_assert!(model != Model::Values, "what values mean is only known of consecutive events");
        let first = slice.events.first().map_or(trace.len(), |event| event.index());
        let held = slice.held.iter().copied().collect();
        let prefix = Prefix { held, ..Prefix::starting(first, model.read_rule(Recorded::default())) };
        Self::lay_out(trace, &prefix, slice.events.len(), Some(slice))
    }

    fn lay_out(trace: &'t Trace, prefix: &Prefix, len: usize, slice: Option<&Slice<'_>>) -> Self {
        let first = prefix.done;
        let chains = trace.threads();
        let mut w = Window {
            trace,
            rule: prefix.rule,
            first,
            chosen: slice.map(|slice| slice.events.clone().into()),
            ends: slice.is_none() && first + len == trace.len(),
            relaxed: slice.is_some_and(|slice| slice.relaxed.is_some()),
            prefix: if slice.is_some() { 0 } else { first },
            chain_of: IndexVec::with_capacity(len),
            place: IndexVec::with_capacity(len),
            chain: IndexVec::repeat(IndexVec::default(), chains),
            act: IndexVec::with_capacity(len),
            saw: IndexVec::repeat(None, len),
            readers: FxHashMap::default(),
            variables: IndexVec::default(),
            variable_of: FxHashMap::default(),
            base_writer: IndexVec::default(),
            scopes: IndexVec::default(),
            locks: IndexVec::default(),
            lock_of: FxHashMap::default(),
            hard: Vec::new(),
            waits: IndexVec::default(),
            conditions: IndexVec::default(),
            counters: IndexVec::default(),
            semaphore_of: FxHashMap::default(),
            open_at: IndexVec::repeat(IndexVec::default(), chains),
            open_sets: vec![Vec::new()].into(), // The empty one.
            free_at: IndexVec::default(),
            tries: false,
            busy: Vec::new(),
            past: Rows::default(),
            values: None,
        };
        w.fill(prefix, len, slice);
        if let Some((slice, relaxed)) = slice.and_then(|slice| Some((slice, slice.relaxed.as_ref()?))) {
            w.free_base_readers(slice, relaxed);
            let known = relaxed.orders.iter().filter_map(|&(a, b)| Some((w.local(a)?, w.local(b)?)));
            let known: Vec<(Node, Node)> = known.collect();
            w.hard.extend(known);
        }
        w.free_at = w.open_at.iter().map(last_free).collect();
        match &prefix.values {
            Some(whole) => w.add_values(whole),
            None => w.compute_past(),
        }
        w
    }

    fn fill(&mut self, prefix: &Prefix, len: usize, slice: Option<&Slice<'_>>) {
        let trace = self.trace;
        let loose = slice.map(|slice| slice.loose(trace)).unwrap_or_default();
        let base = |x: VarId| match slice {
            Some(slice) => (slice.base)(x),
            None => prefix.last_write.get(&x).map_or(Writer::Init, |&w| Writer::Event(w)),
        };
        let mut open: IndexVec<Chain, Vec<ScopeId>> = IndexVec::repeat(Vec::new(), self.chain.len());
        let mut held: Vec<_> = prefix.held.iter().copied().collect();
        held.sort_unstable();
        for (thread, lock, mode) in held {
            let chain = Chain::new(thread.index());
            let scope = self.new_scope(lock, mode, chain, None);
            open[chain].push(scope);
        }
        let mut last: IndexVec<Variable, Source> = IndexVec::default();
        let mut counted = Counted::default();
        let mut sleeping = Sleeping::default();
        let asleep = |c: CondId| match slice {
            Some(slice) => slice.naps.asleep(trace, c, |event| (slice.below)(event)),
            None => prefix.asleep.get(&c).cloned().unwrap_or_default(),
        };
        for node in ids(0..len) {
            let event = self.event(node);
            let chain = Chain::new(trace.thread(event).index());
            self.chain_of.push(chain);
            let place = self.chain[chain].push(node);
            self.place.push(place);
            let set = self.intern_open(chain, &open[chain]);
            self.open_at[chain].push(set);
            let act = match trace.op(event) {
                Op::Read(x, _) => Act::Read(self.variable(&base, x, &mut last)),
                Op::Write(x, _) => Act::Write(self.variable(&base, x, &mut last)),
                Op::Update(x, _) => Act::Update(self.variable(&base, x, &mut last)),
                Op::Acquire(..) if loose.contains(&event) => Act::Other,
                Op::Acquire(l, mode) => {
                    let scope = self.new_scope(l, mode, chain, Some(node));
                    open[chain].push(scope);
                    Act::Acquire(scope)
                }
                Op::Release(l, mode) => {
                    let lock = self.lock(l);
                    let is_this = |&s: &ScopeId| self.scopes[s].lock == lock && self.scopes[s].mode == mode;
                    let at = open[chain].iter().rposition(is_this);
                    match at.map(|at| open[chain].remove(at)) {
                        Some(scope) => {
                            self.scopes[scope].release = Some(node);
                            Act::Release(scope)
                        }
                        // Traces are well-formed and the prefix knows what is held; only a relaxed slice does not tell.
                        None => Act::Other,
                    }
                }
                Op::Busy(..) if self.relaxed => Act::Other,
                Op::Busy(l, mode) => {
                    let lock = self.lock(l);
                    let others = open.entries().filter(|(other, _)| *other != chain).flat_map(|(_, open)| open);
                    let holder = others.copied().find(|&s| {
                        let scope = self.scopes[s];
                        scope.lock == lock && scope.mode.conflicts_with(mode)
                    });
                    self.busy.extend(holder.map(|holder| (node, holder)));
                    self.tries = true;
                    Act::Busy(lock, mode)
                }
                Op::Receive(token) => {
                    let inside = trace.senders(token).iter().filter_map(|&sender| self.local(sender));
                    let edges: Vec<(Node, Node)> = inside.map(|sender| (sender, node)).collect();
                    self.hard.extend(edges);
                    Act::Other
                }
                Op::Wait(_) if let Some(relaxed) = slice.and_then(|slice| slice.relaxed.as_ref()) => {
                    let inside = relaxed.posts.forced(event).iter().filter_map(|&post| self.local(post));
                    let edges: Vec<(Node, Node)> = inside.map(|post| (post, node)).collect();
                    self.hard.extend(edges);
                    Act::Other
                }
                Op::Post(_) | Op::Empty(_) if self.relaxed => Act::Other,
                Op::Post(s) => Act::Post(counted.note(s, node)),
                Op::Wait(s) => Act::Wait(counted.note(s, node)),
                Op::Empty(s) => {
                    self.tries = true;
                    Act::Empty(counted.note(s, node))
                }
                Op::Wake(c) if let Some(slice) = slice.filter(|slice| slice.relaxed.is_some()) => {
                    self.relaxed_wake(slice.naps, c, node)
                }
                Op::Sleep(_) | Op::Notify(..) if self.relaxed => Act::Other,
                Op::Sleep(c) => {
                    let condition = sleeping.condition(self, c, &asleep);
                    let wait = self.new_wait(condition, chain);
                    self.waits[wait].sleep = Some(node);
                    sleeping.waits.insert(event, wait);
                    sleeping.last.insert(chain, event);
                    Act::Sleep(wait)
                }
                Op::Notify(c, reach) => Act::Notify(sleeping.condition(self, c, &asleep), reach),
                Op::Wake(c) => {
                    let condition = sleeping.condition(self, c, &asleep);
                    let slept = sleeping.last.remove(&chain).or_else(|| match slice {
                        Some(slice) => slice.naps.slept(event),
                        None => prefix.slept.get(&trace.thread(event)).copied(),
                    });
                    let known = slept.and_then(|sleep| sleeping.waits.get(&sleep).copied());
                    let wait = known.unwrap_or_else(|| self.new_wait(condition, chain));
                    let pairing = trace.pairing_of_wake(event).map(|k| trace.pairings()[k.index()]);
                    self.waits[wait].wake = Some(node);
                    self.waits[wait].by_itself = pairing.is_none();
                    self.waits[wait].notify = pairing.and_then(|pairing| self.local(pairing.notify));
                    if pairing.is_some() { Act::Wake(wait) } else { Act::Leave(wait) }
                }
                Op::Send(_) | Op::Begin(_) | Op::End(_) | Op::Branch | Op::Fence(_) => Act::Other,
            };
            self.act.push(act);
            if let (Some(x), ReadRule::ObservedWrite) = (act.read(), self.rule) {
                let source = match slice {
                    None => Some(last[x]),
                    Some(slice) => self.seen_in(slice, event, node),
                };
                self.saw[node] = source;
                match source {
                    None => {}
                    Some(Source::Base) => self.variables[x].base_readers.push(node),
                    Some(Source::Write(writer)) => {
                        self.readers.entry(writer).or_default().push(node);
                        self.hard.push((writer, node));
                    }
                }
            }
            if let Some(x) = act.written() {
                last[x] = Source::Write(node);
                list_in_chain(&mut self.variables[x].writes, chain, node);
            }
            if let Some(x) = act.read().or(act.written()) {
                list_in_chain(&mut self.variables[x].all, chain, node);
            }
        }
        for (chain, open) in open.entries() {
            let set = self.intern_open(chain, open);
            self.open_at[chain].push(set);
        }
        if !counted.nodes.is_empty() {
            let moved = |s: SemId| match slice {
                Some(slice) => (slice.counted)(s),
                None => prefix.counted.get(&s).copied().unwrap_or(0),
            };
            let base =
                |s: SemId| i64::try_from(trace.initial_count(s)).unwrap_or(i64::MAX / 2).saturating_add(moved(s));
            let bases: Vec<i64> = counted.known.iter().map(|&s| base(s)).collect();
            self.add_counters(&bases, &counted.nodes);
            self.semaphore_of = counted.local;
        }
        if !self.conditions.is_empty() {
            self.add_conditions();
        }
    }

    fn new_wait(&mut self, condition: Condition, chain: Chain) -> WaitId {
        let (sleep, notify, wake, only) = (None, None, None, None);
        self.waits.push(Wait { condition, chain, sleep, notify, wake, by_itself: false, only, alone: false })
    }

    /// A wake, wherever the slice was cut: all that is known is what every reordering has before it.
    fn relaxed_wake(&mut self, naps: &Naps, condition: CondId, node: Node) -> Act {
        let event = self.event(node);
        let Some(pairing) = self.trace.pairing_of_wake(event) else { return Act::Other };
        let local = |window: &Self, event: Option<EventId>| event.and_then(|event| window.local(event));
        let forced = local(self, naps.forced(event)).map(|notify| (notify, node));
        self.hard.extend(forced);
        let id = self.new_wait(Condition::new(0), self.chain_of[node]);
        let wait = Wait {
            sleep: local(self, naps.slept(event)),
            notify: self.local(self.trace.pairings()[pairing.index()].notify),
            wake: Some(node),
            only: local(self, naps.only(event)),
            alone: naps.is_alone(condition),
            ..self.waits[id]
        };
        self.waits[id] = wait;
        Act::Wake(id)
    }

    /// The write that a read of a slice saw; `None` if it is neither in the slice nor below it.
    fn seen_in(&mut self, slice: &Slice<'_>, read: EventId, node: Node) -> Option<Source> {
        let Writer::Event(writer) = (slice.saw)(read) else { return Some(Source::Base) };
        match self.local(writer) {
            Some(writer) => Some(Source::Write(writer)),
            None if (slice.below)(writer) => Some(Source::Base),
            None => {
                // It comes after everything that the slice has of its thread, and so does the read, if it keeps it.
                let chain = Chain::new(self.trace.thread(writer).index());
                self.hard.extend(self.chain[chain].last().map(|&last| (last, node)));
                None
            }
        }
    }

    /// The set of open scopes, shared with the place before when nothing changed.
    fn intern_open(&mut self, chain: Chain, open: &[ScopeId]) -> OpenSet {
        if open.is_empty() {
            return OpenSet::EMPTY;
        }
        match self.open_at[chain].last() {
            Some(&set) if self.open_sets[set] == open => set,
            _ => self.open_sets.push(open.to_vec()),
        }
    }

    fn variable(
        &mut self,
        base: &dyn Fn(VarId) -> Writer,
        global: VarId,
        last: &mut IndexVec<Variable, Source>,
    ) -> Variable {
        *self.variable_of.entry(global).or_insert_with(|| {
            self.base_writer.push(base(global));
            last.push(Source::Base);
            self.variables.push(Accesses::default())
        })
    }

    fn lock(&mut self, global: LockId) -> Lock {
        *self.lock_of.entry(global).or_insert_with(|| self.locks.push(Vec::new()))
    }

    fn new_scope(&mut self, lock: LockId, mode: Mode, chain: Chain, acquire: Option<Node>) -> ScopeId {
        let lock = self.lock(lock);
        let id = self.scopes.push(Scope { lock, mode, chain, acquire, release: None });
        let lists = &mut self.locks[lock];
        match lists.iter_mut().find(|list| list.chain == chain && list.mode == mode) {
            Some(list) => list.scopes.push(id),
            None => lists.push(ScopesInChain { chain, mode, scopes: vec![id] }),
        }
        id
    }

    pub(super) fn compute_past(&mut self) {
        self.hard.sort_unstable_by_key(|&(before, after)| (after, before));
        let mut past = Rows::with_capacity(self.len(), self.chain.len());
        let mut edges = self.hard.iter().copied().peekable();
        for node in self.nodes() {
            let known = std::iter::from_fn(|| edges.next_if(|&(_, after)| after == node).map(|(before, _)| before));
            past.push(self.before(node).into_iter().chain(known), self.chain_of[node], self.place[node]);
        }
        self.past = past;
    }
}

/// Who sleeps where while a window is laid out.
#[derive(Default)]
struct Sleeping {
    local: FxHashMap<CondId, Condition>,
    /// By sleep.
    waits: FxHashMap<EventId, WaitId>,
    /// The last sleep of each chain.
    last: FxHashMap<Chain, EventId>,
}

impl Sleeping {
    /// The number of a condition, with those who sleep on it when the window starts.
    fn condition(
        &mut self,
        w: &mut Window<'_>,
        global: CondId,
        asleep: &dyn Fn(CondId) -> Sleepers<EventId>,
    ) -> Condition {
        if let Some(&known) = self.local.get(&global) {
            return known;
        }
        let condition = w.conditions.push(Waiting::default());
        self.local.insert(global, condition);
        let asleep = asleep(global);
        for &sleep in asleep.line().iter().flatten().chain(asleep.woken()) {
            let wait = w.new_wait(condition, Chain::new(w.trace.thread(sleep).index()));
            self.waits.insert(sleep, wait);
        }
        w.conditions[condition].base = asleep.map(|sleep| self.waits[&sleep]);
        condition
    }
}

/// The semaphores of a window and their operations, in observed order.
#[derive(Default)]
struct Counted {
    known: IndexVec<Semaphore, SemId>,
    local: FxHashMap<SemId, Semaphore>,
    nodes: IndexVec<Semaphore, Vec<Node>>,
}

impl Counted {
    fn note(&mut self, global: SemId, node: Node) -> Semaphore {
        let local = *self.local.entry(global).or_insert_with(|| {
            self.nodes.push(Vec::new());
            self.known.push(global)
        });
        self.nodes[local].push(node);
        local
    }
}

pub(super) fn list_in_chain(lists: &mut Vec<InChain>, chain: Chain, node: Node) {
    match lists.iter_mut().find(|list| list.chain == chain) {
        Some(list) => list.nodes.push(node),
        None => lists.push(InChain { chain, nodes: vec![node] }),
    }
}

fn last_free(open_sets: &IndexVec<Place, OpenSet>) -> IndexVec<Place, Option<Place>> {
    let mut last = None;
    let at = open_sets.entries().map(|(place, &set)| {
        if set == OpenSet::EMPTY {
            last = Some(place);
        }
        last
    });
    at.collect()
}
