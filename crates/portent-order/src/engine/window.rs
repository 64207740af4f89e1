//! A window of a trace, laid out for the engine: chains of events, scopes of locks, writers and readers.
//!
//! A window starts from the observed prefix (every event before it has happened, in observed order), which keeps it
//! sound, and forgets what comes after it: a trace may stop anywhere. Within it everything is exact.

use super::slice::Slice;
use super::values::{TraceValues, Values};
use crate::goal::{Model, Schedule, Writer};
use portent_trace::{EventId, Mode, Op, Trace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// An event of the window, numbered from 0 in observed order.
pub(crate) type Node = u32;
/// No such node.
pub(crate) const NONE: u32 = u32::MAX;
/// The write before the window: what a variable holds when the window starts.
pub(crate) const BASE: u32 = u32::MAX - 1;

/// What the engine needs to know of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Read(u32),
    Write(u32),
    Update(u32),
    Acquire(u32),
    Release(u32),
    Busy(u32, Mode),
    /// Index into the window's waits.
    Wake(u32),
    Sleep,
    Notify,
    Other,
}

impl Act {
    #[inline]
    pub(crate) fn written(self) -> Option<u32> {
        match self {
            Act::Write(x) | Act::Update(x) => Some(x),
            _ => None,
        }
    }
    #[inline]
    pub(crate) fn read(self) -> Option<u32> {
        match self {
            Act::Read(x) | Act::Update(x) => Some(x),
            _ => None,
        }
    }
}

/// A critical section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub lock: u32,
    pub mode: Mode,
    pub chain: u32,
    /// [`NONE`]: held when the window starts.
    pub acquire: Node,
    /// [`NONE`]: held when the window ends.
    pub release: Node,
}

/// Places in one chain, ascending.
#[derive(Clone, Debug)]
pub(crate) struct InChain {
    pub chain: u32,
    pub nodes: Vec<Node>,
}

/// The scopes of a lock in one chain and one mode, in program order; they do not overlap.
#[derive(Clone, Debug)]
pub(crate) struct ScopesInChain {
    pub chain: u32,
    pub mode: Mode,
    pub scopes: Vec<u32>,
}

/// A wait of the window; [`NONE`] where a part of it is outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub sleep: Node,
    pub notify: Node,
    pub wake: Node,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Variable {
    pub accesses: Vec<InChain>,
    pub writes: Vec<InChain>,
    /// Reads of what the variable holds when the window starts.
    pub base_readers: Vec<Node>,
}

/// The state of the trace between two windows, carried along so that opening a window costs its own length only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefix {
    /// Events done.
    pub done: usize,
    /// The observed order up to there.
    schedule: Schedule,
    held: FxHashSet<(u32, u32, bool)>,
    last_write: FxHashMap<u32, EventId>,
    /// For `values`; made when it is missing.
    pub values: Option<Arc<TraceValues>>,
}

impl Prefix {
    /// The empty prefix of a trace, for windows in a model.
    pub(crate) fn of(trace: &Trace, model: Model) -> Self {
        let values = (model == Model::Values).then(|| Arc::new(TraceValues::of(trace)));
        Prefix { values, ..Prefix::default() }
    }
    /// Moves on to event `to`.
    pub(crate) fn advance(&mut self, trace: &Trace, to: usize) {
        for i in self.done..to {
            let event = EventId::new(i);
            self.schedule.push(trace.thread(event));
            let thread = trace.thread(event).index() as u32;
            match trace.op(event) {
                Op::Acquire(l, m) => drop(self.held.insert((thread, l.index() as u32, m == Mode::Shared))),
                Op::Release(l, m) => drop(self.held.remove(&(thread, l.index() as u32, m == Mode::Shared))),
                Op::Write(x, _) | Op::Update(x, _) => drop(self.last_write.insert(x.index() as u32, event)),
                _ => {}
            }
        }
        self.done = self.done.max(to);
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Window<'t> {
    pub trace: &'t Trace,
    pub model: Model,
    /// First event.
    pub first: usize,
    /// The events, where they are not simply those from the first on; ascending.
    chosen: Option<Vec<EventId>>,
    /// Whether no event comes after it.
    ends: bool,
    /// Whether it has only what holds wherever it was cut: see [`Slice`].
    pub relaxed: bool,
    /// The observed order before it.
    pub prefix: Arc<Schedule>,
    pub chains: usize,
    pub chain_of: Vec<u32>,
    pub place: Vec<u32>,
    pub chain: Vec<Vec<Node>>,
    pub act: Vec<Act>,
    /// The write each read must see, a node or [`BASE`]; [`NONE`] for what does not read, for everything in `sync`, and in
    /// `values` for what has a choice.
    pub saw: Vec<u32>,
    /// Kept reads of each write, ascending.
    pub readers: FxHashMap<Node, Vec<Node>>,
    pub variables: Vec<Variable>,
    variable_of: FxHashMap<u32, u32>,
    base_writer: Vec<Writer>,
    pub scopes: Vec<Scope>,
    pub locks: Vec<Vec<ScopesInChain>>,
    lock_of: FxHashMap<u32, u32>,
    /// Order that holds in every reordering beside program order: (before, after), sorted by after.
    pub hard: Vec<(Node, Node)>,
    pub waits: Vec<Wait>,
    /// For each chain and place, the scopes open before it; shared between places.
    open_at: Vec<Vec<u32>>,
    open_sets: Vec<Vec<u32>>,
    /// For each chain and place, the last place up to it at which no lock is held; [`NONE`] if there is none.
    free_at: Vec<Vec<u32>>,
    /// Whether there are failed tries.
    tries: bool,
    /// Failed tries whose holder is here: the node, and a scope that held the lock when it was observed.
    pub busy: Vec<(Node, u32)>,
    /// For each node, how many events of each chain are in its past, itself included: `past[node * chains + chain]`.
    pub past: Vec<u32>,
    /// In `values`.
    pub values: Option<Box<Values>>,
}

impl<'t> Window<'t> {
    /// The window of `len` events after the prefix.
    pub(crate) fn open(trace: &'t Trace, model: Model, prefix: &Prefix, len: usize) -> Self {
        let first = prefix.done;
        let len = len.min(trace.len() - first);
        Self::lay_out(trace, model, prefix, len, None)
    }

    /// The window of the events of a slice, in [`Model::Reads`] or [`Model::Sync`].
    pub(crate) fn of(trace: &'t Trace, model: Model, slice: &Slice<'_>) -> Self {
        debug_assert!(model != Model::Values, "what values mean is only known of consecutive events");
        let first = slice.events.first().map_or(trace.len(), |event| event.index());
        let held =
            slice.held.iter().map(|&(t, l, m)| (t.index() as u32, l.index() as u32, m == Mode::Shared)).collect();
        let prefix = Prefix { done: first, held, ..Prefix::default() };
        Self::lay_out(trace, model, &prefix, slice.events.len(), Some(slice))
    }

    fn lay_out(trace: &'t Trace, model: Model, prefix: &Prefix, len: usize, slice: Option<&Slice<'_>>) -> Self {
        let first = prefix.done;
        let chains = trace.threads();
        let mut w = Window {
            trace,
            model,
            first,
            chosen: slice.map(|slice| slice.events.clone()),
            ends: slice.is_none() && first + len == trace.len(),
            relaxed: slice.is_some_and(|slice| slice.relaxed.is_some()),
            prefix: Arc::new(prefix.schedule.clone()),
            chains,
            chain_of: Vec::with_capacity(len),
            place: Vec::with_capacity(len),
            chain: vec![Vec::new(); chains],
            act: Vec::with_capacity(len),
            saw: vec![NONE; len],
            readers: FxHashMap::default(),
            variables: Vec::new(),
            variable_of: FxHashMap::default(),
            base_writer: Vec::new(),
            scopes: Vec::new(),
            locks: Vec::new(),
            lock_of: FxHashMap::default(),
            hard: Vec::new(),
            waits: Vec::new(),
            open_at: vec![Vec::new(); chains],
            open_sets: vec![Vec::new()],
            free_at: Vec::new(),
            tries: false,
            busy: Vec::new(),
            past: Vec::new(),
            values: None,
        };
        w.fill(prefix, len, slice);
        if let Some((slice, relaxed)) = slice.and_then(|slice| Some((slice, slice.relaxed.as_ref()?))) {
            w.free_base_readers(slice, relaxed);
            let known = relaxed.orders.iter().filter_map(|&(a, b)| Some((w.local(a)?, w.local(b)?)));
            let known: Vec<(Node, Node)> = known.collect();
            w.hard.extend(known);
        }
        w.free_at = w.open_at.iter().map(|sets| last_free(sets)).collect();
        match (model, &prefix.values) {
            (Model::Values, Some(whole)) => w.add_values(whole),
            (Model::Values, None) => w.add_values(&TraceValues::of(trace)),
            _ => w.compute_past(),
        }
        w
    }

    fn fill(&mut self, prefix: &Prefix, len: usize, slice: Option<&Slice<'_>>) {
        let trace = self.trace;
        let loose = slice.map(|slice| slice.loose(trace)).unwrap_or_default();
        let base = |x: u32| match slice {
            Some(slice) => (slice.base)(VarId::new(x as usize)),
            None => prefix.last_write.get(&x).map_or(Writer::Init, |&w| Writer::Event(w)),
        };
        let mut open: Vec<Vec<u32>> = vec![Vec::new(); self.chains];
        let mut held: Vec<_> = prefix.held.iter().copied().collect();
        held.sort_unstable();
        for (thread, lock, shared) in held {
            let mode = if shared { Mode::Shared } else { Mode::Exclusive };
            let scope = self.new_scope(lock, mode, thread, NONE);
            open[thread as usize].push(scope);
        }
        let mut last = Vec::new();
        for node in 0..len as u32 {
            let event = self.event(node);
            let chain = trace.thread(event).index();
            self.chain_of.push(chain as u32);
            self.place.push(self.chain[chain].len() as u32);
            self.chain[chain].push(node);
            let set = self.intern_open(chain, &open[chain]);
            self.open_at[chain].push(set);
            let act = match trace.op(event) {
                Op::Read(x, _) => Act::Read(self.variable(&base, x.index() as u32, &mut last)),
                Op::Write(x, _) => Act::Write(self.variable(&base, x.index() as u32, &mut last)),
                Op::Update(x, _) => Act::Update(self.variable(&base, x.index() as u32, &mut last)),
                Op::Acquire(..) if loose.contains(&event) => Act::Other,
                Op::Acquire(l, mode) => {
                    let scope = self.new_scope(l.index() as u32, mode, chain as u32, node);
                    open[chain].push(scope);
                    Act::Acquire(scope)
                }
                Op::Release(l, mode) => {
                    let lock = self.lock(l.index() as u32);
                    let at = open[chain].iter().rposition(|&s| {
                        let scope = self.scopes[s as usize];
                        scope.lock == lock && scope.mode == mode
                    });
                    match at.map(|at| open[chain].remove(at)) {
                        Some(scope) => {
                            self.scopes[scope as usize].release = node;
                            Act::Release(scope)
                        }
                        // Traces are well-formed and the prefix knows what is held; only a relaxed slice does not tell.
                        None => Act::Other,
                    }
                }
                Op::Busy(..) if self.relaxed => Act::Other,
                Op::Busy(l, mode) => {
                    let lock = self.lock(l.index() as u32);
                    let others =
                        open.iter().enumerate().filter(|(other, _)| *other != chain).flat_map(|(_, open)| open);
                    let holder = others.copied().find(|&s| {
                        let scope = self.scopes[s as usize];
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
                Op::Sleep(_) => Act::Sleep,
                Op::Notify(..) => Act::Notify,
                Op::Wake(_) => match trace.pairing_of_wake(event) {
                    Some(k) => {
                        let pairing = trace.pairings()[k.index()];
                        let local = |e: EventId| self.local(e).unwrap_or(NONE);
                        let wait = Wait { sleep: local(pairing.sleep), notify: local(pairing.notify), wake: node };
                        if wait.notify != NONE {
                            self.hard.push((wait.notify, node));
                        }
                        self.waits.push(wait);
                        Act::Wake(self.waits.len() as u32 - 1)
                    }
                    None => Act::Other,
                },
                Op::Send(_) | Op::Begin(_) | Op::End(_) | Op::Branch => Act::Other,
            };
            self.act.push(act);
            if let (Some(x), Model::Reads) = (act.read(), self.model) {
                let writer = match slice {
                    None => last[x as usize],
                    Some(slice) => self.seen_in(slice, event, node),
                };
                self.saw[node as usize] = writer;
                match writer {
                    NONE => {}
                    BASE => self.variables[x as usize].base_readers.push(node),
                    writer => {
                        self.readers.entry(writer).or_default().push(node);
                        self.hard.push((writer, node));
                    }
                }
            }
            if let Some(x) = act.written() {
                last[x as usize] = node;
                list_in_chain(&mut self.variables[x as usize].writes, chain as u32, node);
            }
            if let Some(x) = act.read().or(act.written()) {
                list_in_chain(&mut self.variables[x as usize].accesses, chain as u32, node);
            }
        }
        for (chain, open) in open.iter().enumerate() {
            let set = self.intern_open(chain, open);
            self.open_at[chain].push(set);
        }
    }

    /// The write that a read of a slice saw: a node, [`BASE`], or [`NONE`] if it is neither in the slice nor below it.
    fn seen_in(&mut self, slice: &Slice<'_>, read: EventId, node: Node) -> u32 {
        let Writer::Event(writer) = (slice.saw)(read) else { return BASE };
        match self.local(writer) {
            Some(writer) => writer,
            None if (slice.below)(writer) => BASE,
            None => {
                // It comes after everything that the slice has of its thread, and so does the read, if it keeps it.
                let chain = self.trace.thread(writer).index();
                self.hard.extend(self.chain[chain].last().map(|&last| (last, node)));
                NONE
            }
        }
    }

    /// The set of open scopes, shared with the place before when nothing changed.
    fn intern_open(&mut self, chain: usize, open: &[u32]) -> u32 {
        if open.is_empty() {
            return 0;
        }
        match self.open_at[chain].last() {
            Some(&set) if self.open_sets[set as usize] == open => set,
            _ => {
                self.open_sets.push(open.to_vec());
                self.open_sets.len() as u32 - 1
            }
        }
    }

    fn variable(&mut self, base: &dyn Fn(u32) -> Writer, global: u32, last: &mut Vec<u32>) -> u32 {
        let next = self.variables.len() as u32;
        *self.variable_of.entry(global).or_insert_with(|| {
            self.variables.push(Variable::default());
            self.base_writer.push(base(global));
            last.push(BASE);
            next
        })
    }

    fn lock(&mut self, global: u32) -> u32 {
        let next = self.locks.len() as u32;
        *self.lock_of.entry(global).or_insert_with(|| {
            self.locks.push(Vec::new());
            next
        })
    }

    fn new_scope(&mut self, lock: u32, mode: Mode, chain: u32, acquire: Node) -> u32 {
        let lock = self.lock(lock);
        let id = self.scopes.len() as u32;
        self.scopes.push(Scope { lock, mode, chain, acquire, release: NONE });
        let lists = &mut self.locks[lock as usize];
        match lists.iter_mut().find(|list| list.chain == chain && list.mode == mode) {
            Some(list) => list.scopes.push(id),
            None => lists.push(ScopesInChain { chain, mode, scopes: vec![id] }),
        }
        id
    }

    pub(super) fn compute_past(&mut self) {
        let k = self.chains;
        self.hard.sort_unstable_by_key(|&(before, after)| (after, before));
        self.past = vec![0; self.len() * k];
        let mut edge = 0;
        for node in 0..self.len() {
            let (chain, place) = (self.chain_of[node] as usize, self.place[node] as usize);
            let (done, rest) = self.past.split_at_mut(node * k);
            let row = &mut rest[..k];
            if place > 0 {
                let before = self.chain[chain][place - 1] as usize;
                row.copy_from_slice(&done[before * k..before * k + k]);
            }
            while edge < self.hard.len() && self.hard[edge].1 as usize == node {
                let before = self.hard[edge].0 as usize;
                join(row, &done[before * k..before * k + k]);
                edge += 1;
            }
            row[chain] = place as u32 + 1;
        }
    }

    /// How many events there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.chain_of.len()
    }
    /// Whether no event comes after the window.
    pub(crate) fn reaches_the_end(&self) -> bool {
        self.ends
    }
    /// The event of a node.
    #[inline]
    pub(crate) fn event(&self, node: Node) -> EventId {
        match &self.chosen {
            None => EventId::new(self.first + node as usize),
            Some(events) => events[node as usize],
        }
    }
    /// The number that an event has among the window's, if it is not before them.
    fn local(&self, event: EventId) -> Option<Node> {
        let node = match &self.chosen {
            None => event.index().checked_sub(self.first)?,
            Some(events) => events.binary_search(&event).ok()?,
        };
        Some(node as Node)
    }
    #[inline]
    pub(crate) fn past_of(&self, node: Node) -> &[u32] {
        &self.past[node as usize * self.chains..][..self.chains]
    }
    /// The event before a node in its chain.
    #[inline]
    pub(crate) fn before(&self, node: Node) -> Option<Node> {
        let place = self.place[node as usize].checked_sub(1)?;
        Some(self.chain[self.chain_of[node as usize] as usize][place as usize])
    }
    /// The scopes open in a chain before one of its places.
    #[inline]
    pub(crate) fn open_before(&self, chain: usize, place: u32) -> &[u32] {
        let at = &self.open_at[chain];
        &self.open_sets[at[(place as usize).min(at.len() - 1)] as usize]
    }
    /// The node of an event, if it is in the window.
    #[inline]
    pub(crate) fn node(&self, event: EventId) -> Option<Node> {
        self.local(event).filter(|&node| (node as usize) < self.len())
    }
    /// Whether an event that is not here comes before some that the window has of its thread.
    pub(crate) fn is_below(&self, event: EventId) -> bool {
        let chain = &self.chain[self.trace.thread(event).index()];
        chain.last().is_some_and(|&last| event < self.event(last))
    }
    /// The variables of the trace and what they are here.
    pub(super) fn variables_by_number(&self) -> Vec<(u32, u32)> {
        self.variable_of.iter().map(|(&global, &local)| (global, local)).collect()
    }
    pub(crate) fn variable_index(&self, global: u32) -> Option<u32> {
        self.variable_of.get(&global).copied()
    }
    /// What a variable holds when the window starts.
    pub(crate) fn base_writer(&self, variable: u32) -> Writer {
        self.base_writer[variable as usize]
    }
    /// The last write of `variable` in each chain below the cut.
    pub(crate) fn last_writes<'a>(&'a self, variable: u32, cut: &'a [u32]) -> impl Iterator<Item = Node> + 'a {
        self.variables[variable as usize].writes.iter().filter_map(|list| {
            let bound = cut[list.chain as usize];
            let count = list.nodes.partition_point(|&n| self.place[n as usize] < bound);
            count.checked_sub(1).map(|at| list.nodes[at])
        })
    }

    /// The last lock-free cut below `cut` and below `cap`, closed under the past: in `sync`, what is reachable at all is
    /// reachable from there, and the cut itself by the observed order (SEMANTICS §4). In `reads` that does not hold.
    pub(crate) fn lock_free_cut(&self, cut: &[u32], cap: &[u32]) -> Vec<u32> {
        let mut floor = vec![0; self.chains];
        // A failed try needs its holder beside it; rare enough to do without a cut.
        if self.model != Model::Sync || self.tries {
            return floor;
        }
        for chain in 0..self.chains {
            floor[chain] = self.free_at[chain][cut[chain].min(cap[chain]) as usize];
            if floor[chain] == NONE {
                return vec![0; self.chains];
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for chain in 0..self.chains {
                while let Some(last) = floor[chain].checked_sub(1) {
                    let node = self.chain[chain][last as usize];
                    if self.past_of(node).iter().zip(&floor).all(|(past, at)| past <= at) {
                        break;
                    }
                    changed = true;
                    floor[chain] = self.free_at[chain][last as usize];
                    if floor[chain] == NONE {
                        return vec![0; self.chains];
                    }
                }
            }
            // A notify below the floor whose sleep is above it would come too early.
            for wait in self.waits.iter().filter(|wait| wait.sleep != NONE && wait.notify != NONE) {
                let below = |n: Node| self.place[n as usize] < floor[self.chain_of[n as usize] as usize];
                if below(wait.notify) && !below(wait.sleep) {
                    let chain = self.chain_of[wait.notify as usize] as usize;
                    changed = true;
                    floor[chain] = self.free_at[chain][self.place[wait.notify as usize] as usize];
                    if floor[chain] == NONE {
                        return vec![0; self.chains];
                    }
                }
            }
        }
        floor
    }

    /// Whether the events below `cut` (closed under the past), taken in observed order, are a reordering.
    ///
    /// They are unless a scope that stays open comes before another of its lock: leaving out events takes no value from a
    /// kept read and no token from a receive. Failed tries are left to others.
    pub(crate) fn projects(&self, cut: &[u32]) -> bool {
        !self.tries
            && (0..self.chains).all(|chain| {
                self.open_before(chain, cut[chain]).iter().all(|&id| {
                    let scope = self.scopes[id as usize];
                    let lists = self.locks[scope.lock as usize].iter();
                    let mut rivals = lists.filter(|l| l.chain as usize != chain && l.mode.conflicts_with(scope.mode));
                    rivals.all(|list| {
                        let bound = cut[list.chain as usize];
                        let begun = list.scopes.partition_point(|&s| {
                            let acquire = self.scopes[s as usize].acquire;
                            acquire == NONE || self.place[acquire as usize] < bound
                        });
                        let last = begun.checked_sub(1).map(|at| self.scopes[list.scopes[at] as usize].acquire);
                        last.is_none_or(|acquire| acquire == NONE || (scope.acquire != NONE && acquire < scope.acquire))
                    })
                })
            })
    }

    /// This window with an update turned into a plain write: for goals that let it read anything.
    pub(crate) fn freeing(&self, update: Node) -> Self {
        let mut freed = self.clone();
        if freed.values.is_some() {
            freed.free_source(update);
            return freed;
        }
        if let Act::Update(x) = freed.act[update as usize] {
            freed.act[update as usize] = Act::Write(x);
            match std::mem::replace(&mut freed.saw[update as usize], NONE) {
                BASE => freed.variables[x as usize].base_readers.retain(|&n| n != update),
                writer => {
                    if let Some(readers) = freed.readers.get_mut(&writer) {
                        readers.retain(|&n| n != update);
                    }
                }
            }
            // What an update comes after beside its own thread is what it saw.
            freed.hard.retain(|&(_, after)| after != update);
            freed.compute_past();
        }
        freed
    }
}

pub(super) fn list_in_chain(lists: &mut Vec<InChain>, chain: u32, node: Node) {
    match lists.iter_mut().find(|list| list.chain == chain) {
        Some(list) => list.nodes.push(node),
        None => lists.push(InChain { chain, nodes: vec![node] }),
    }
}

fn last_free(open_sets: &[u32]) -> Vec<u32> {
    let mut last = NONE;
    let at = open_sets.iter().enumerate().map(|(place, &set)| {
        if set == 0 {
            last = place as u32;
        }
        last
    });
    at.collect()
}

#[inline]
pub(crate) fn join(row: &mut [u32], other: &[u32]) {
    for (a, b) in row.iter_mut().zip(other) {
        *a = (*a).max(*b);
    }
}
