//! The kernel trace: columns of events, immutable once built, well-formed by construction.
//!
//! Memory per event: 12 bytes (operation, thread, object, location) and 4 more where the trace has values. Values that do
//! not fit 31 bits cost another 8, and so does every place where lowering made more or fewer events than there were (a
//! fork, an inner acquire, a wide access). Call stacks, where the trace has them, cost 4 bytes per input event.

use crate::error::{Problem, TraceError};
use crate::event::{ACQUIRES, Ending, Event, Meaning, Op, TRIED_MODES, TRIES};
use crate::ids::{BlockId, CondId, EventId, Id, LocId, LockId, PairingId, SemId, StackId, ThreadId, TokenId, VarId};
use crate::input::{AccessRun, InputSource, Progress, THREAD_SHIFT};
use crate::lower::{FunctionBlocks, Layout, Lowering};
use crate::names::{Names, ObjectClass};
use crate::objects::{Object, ObjectName};
use crate::places::{StackFrame, is_user_place, user_frame};
use crate::stacks::StackColumn;
use crate::symbolic::Symbols;
use crate::symbolic::side::resolve;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

mod selection;

pub use selection::Selection;

/// A wait that a notify ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The condition waited on.
    pub condition: CondId,
    /// Where the waiting began.
    pub sleep: EventId,
    /// What ended it.
    pub notify: EventId,
    /// Where the sleeper went on.
    pub wake: EventId,
}

/// Values, four bytes each as long as they are small, none at all as long as there are none.
#[derive(Clone, Debug, Default)]
struct Values {
    /// Small values as they are; [`Values::NONE`]; or, above it, an index into `large`.
    packed: Vec<u32>,
    large: Vec<i64>,
}

impl Values {
    const NONE: u32 = (1 << 31) - 1;

    #[inline]
    fn push(&mut self, at: usize, value: Option<i64>) {
        match value {
            None if self.packed.is_empty() => {}
            None => self.packed.push(Self::NONE),
            Some(value) => {
                if self.packed.len() < at {
                    self.packed.resize(at, Self::NONE);
                }
                if (0..i64::from(Self::NONE)).contains(&value) {
                    self.packed.push(value as u32);
                } else {
                    self.packed.push(1 << 31 | self.large.len() as u32);
                    self.large.push(value);
                }
            }
        }
    }
    #[inline]
    fn get(&self, at: usize) -> Option<i64> {
        match *self.packed.get(at)? {
            Self::NONE => None,
            small if small < Self::NONE => Some(i64::from(small)),
            large => self.large.get((large & Self::NONE) as usize).copied(),
        }
    }
}

/// Kernel events in columns.
#[derive(Clone, Debug, Default)]
struct Columns {
    /// Operation code (8 bits) and thread (24 bits).
    meta: Vec<u32>,
    object: Vec<u32>,
    loc: Vec<LocId>,
    values: Values,
    origins: Origins,
}

/// Which input event each event came from: runs, because neighbours mostly come from neighbours.
#[derive(Clone, Debug, Default)]
struct Origins {
    /// Where a run starts (an event) and the input event that one came from; each later one came from the next.
    runs: Vec<(u32, u32)>,
    /// The input event that continues the last run.
    next: u32,
}

impl Origins {
    /// Notes that `count` events from number `at` on came from input events from `origin` on, one from each.
    #[inline]
    fn push(&mut self, at: usize, origin: u32, count: u32) {
        if at == 0 || origin != self.next {
            self.runs.push((at as u32, origin));
        }
        self.next = origin.wrapping_add(count);
    }
    /// The input event that event `at` came from; 0 if there is no such event.
    #[inline]
    fn get(&self, at: usize) -> u32 {
        let after = self.runs.partition_point(|(start, _)| *start as usize <= at);
        after.checked_sub(1).map_or(0, |last| self.runs[last].1 + (at as u32 - self.runs[last].0))
    }
    /// The same of event after event, at the cost of one comparison each.
    fn from(&self, at: usize) -> Walk<'_> {
        let after = self.runs.partition_point(|(start, _)| *start as usize <= at);
        Walk { runs: &self.runs, run: after.saturating_sub(1), at: at as u32 }
    }
    /// How many of `len` events came from input events before `bound`.
    fn before(&self, bound: u32, len: usize) -> usize {
        let after = self.runs.partition_point(|(_, origin)| *origin < bound);
        let Some(&(start, origin)) = after.checked_sub(1).and_then(|last| self.runs.get(last)) else { return 0 };
        let end = self.runs.get(after).map_or(len, |(start, _)| *start as usize);
        end.min(start as usize + (bound - origin) as usize)
    }
}

/// A walk along the origins of events, one after the other.
struct Walk<'a> {
    runs: &'a [(u32, u32)],
    run: usize,
    at: u32,
}

impl Iterator for Walk<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.runs.get(self.run + 1).is_some_and(|next| next.0 <= self.at) {
            self.run += 1;
        }
        let origin = self.runs.get(self.run).map_or(0, |run| run.1 + (self.at - run.0));
        self.at += 1;
        Some(origin)
    }
}

impl Columns {
    #[inline]
    fn push(&mut self, thread: ThreadId, op: Op, value: Option<i64>, loc: LocId, origin: u32) {
        let at = self.meta.len();
        let (code, object) = op.pack();
        self.origins.push(at, origin, 1);
        self.meta.push(u32::from(code) | thread.0 << 8);
        self.object.push(object);
        self.loc.push(loc);
        self.values.push(at, value);
    }
    /// Appends accesses that keep their objects, the first of which came from input event `origin`, each from its own.
    fn push_accesses(&mut self, run: &AccessRun<'_>, origin: u32) {
        let at = self.meta.len();
        if run.len() > 0 {
            self.origins.push(at, origin, run.len() as u32);
        }
        // The codes of accesses are the same before and after lowering.
        self.meta.extend(run.meta.iter().map(|meta| (meta & 0xff) | (meta >> THREAD_SHIFT << 8)));
        self.object.extend_from_slice(run.object);
        self.loc.extend_from_slice(run.loc);
        if run.has_values() {
            run.values().enumerate().for_each(|(i, value)| self.values.push(at + i, value));
        } else if !self.values.packed.is_empty() {
            self.values.packed.resize(at + run.len(), Values::NONE);
        }
    }
    /// Whether an event is an acquire that only tries.
    #[inline]
    fn tries(&self, at: usize) -> bool {
        let code = self.meta[at] as u8;
        code & !TRIED_MODES == ACQUIRES && code & TRIES != 0
    }
    #[inline]
    fn op(&self, at: usize) -> Op {
        Op::unpack(self.meta[at] as u8, self.object[at])
    }
    #[inline]
    fn thread(&self, at: usize) -> ThreadId {
        ThreadId(self.meta[at] >> 8)
    }
    fn clear(&mut self) {
        self.meta.clear();
        self.object.clear();
        self.loc.clear();
        self.values.packed.clear();
        self.values.large.clear();
        self.origins.runs.clear();
    }
    fn reserve(&mut self, events: usize) {
        self.meta.reserve_exact(events);
        self.object.reserve_exact(events);
        self.loc.reserve_exact(events);
    }
    /// How many bytes the columns hold.
    fn bytes(&self) -> usize {
        4 * (self.meta.len() + self.object.len() + self.loc.len() + self.values.packed.len())
            + 8 * (self.values.large.len() + self.origins.runs.len())
    }
}

/// A run of consecutive kernel events, as streaming engines see them.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    first: u32,
    columns: Columns,
    /// Waits that ended in this batch.
    pub(crate) pairings: Vec<Pairing>,
    /// Events, perhaps of earlier batches, that turn out to be something else: an `ntf` whose name is used with `wai`.
    pub(crate) corrections: Vec<(EventId, Op)>,
    /// Input events that have no kernel event (inner re-entrant acquires, calls), with their thread.
    pub(crate) skipped: Vec<(u32, ThreadId)>,
    /// What the tokens that first occur in this batch stand for.
    pub(crate) meanings: Vec<Meaning>,
    /// Input events after which something is no more, ascending.
    pub(crate) endings: Vec<(u32, Ending)>,
    /// Semaphores that do not begin at zero, and where they do.
    pub(crate) counts: Vec<(SemId, u64)>,
}

impl Batch {
    /// Empties the batch for the events from number `first` on.
    pub(crate) fn restart(&mut self, first: u32) {
        self.first = first;
        self.columns.clear();
        self.pairings.clear();
        self.corrections.clear();
        self.skipped.clear();
        self.meanings.clear();
        self.endings.clear();
        self.counts.clear();
    }
    /// Appends an event, which came from input event `origin`.
    #[inline]
    pub(crate) fn push(&mut self, thread: ThreadId, op: Op, value: Option<i64>, loc: LocId, origin: u32) {
        self.columns.push(thread, op, value, loc, origin);
    }
    /// Says of the last event, an acquire, that it only tried.
    pub(crate) fn last_tries(&mut self) {
        if let Some(meta) = self.columns.meta.last_mut() {
            *meta |= u32::from(TRIES);
        }
    }
    /// Appends accesses that keep their objects, the first of which came from input event `origin`, each from its own.
    pub(crate) fn push_accesses(&mut self, run: &AccessRun<'_>, origin: u32) {
        self.columns.push_accesses(run, origin);
    }
    /// How many events it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.columns.meta.len()
    }
    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The `i`-th event of the batch.
    #[inline]
    pub fn get(&self, i: usize) -> Event {
        Event {
            id: EventId(self.first + i as u32),
            thread: self.columns.thread(i),
            op: self.columns.op(i),
            value: self.columns.values.get(i),
            loc: self.columns.loc[i],
            tries: self.columns.tries(i),
        }
    }
    /// The events of the batch.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event> {
        (0..self.len()).map(|i| self.get(i))
    }
    /// The number of the input event that the `i`-th event came from.
    #[inline]
    pub fn input_index(&self, i: usize) -> u32 {
        self.columns.origins.get(i)
    }
    /// The waits that a notify ended and whose wake is in this batch.
    pub fn pairings(&self) -> &[Pairing] {
        &self.pairings
    }
    /// Events, perhaps of earlier batches, that turn out to be something else.
    ///
    /// Only an `ntf` whose name is later used with `wai` does that: it becomes a [`Op::Send`].
    pub fn corrections(&self) -> &[(EventId, Op)] {
        &self.corrections
    }
    /// Semaphores that do not begin at zero, and where they do: told before, or with, their first operation.
    pub fn initial_counts(&self) -> &[(SemId, u64)] {
        &self.counts
    }
}

/// Kernel events, batch by batch, so that streaming engines never hold the trace.
pub trait EventSource {
    /// Replaces the contents of `batch` by the next events; `false` at the end, with an empty batch.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, TraceError>;
    /// The names so far.
    fn names(&self) -> &Names;
}

/// A whole kernel trace: immutable, and well-formed because lowering refuses everything else.
#[derive(Clone, Debug)]
pub struct Trace {
    batch: Batch,
    /// Shared with traces of the same run that have other events, as are layout and stacks.
    names: Arc<Names>,
    layout: Arc<Layout>,
    inputs: u64,
    tokens: usize,
    /// Senders of each token: `senders[sender_start[k]..sender_start[k + 1]]`.
    sender_start: Vec<u32>,
    senders: Vec<EventId>,
    /// Indices into the pairings, sorted by notify.
    by_notify: Vec<PairingId>,
    symbols: Option<Box<Symbols>>,
    /// By input event.
    stacks: Arc<StackColumn>,
    /// Whether functions that are blocks were chosen to be.
    functions_are_declared: bool,
    /// What threads wait for where the trace ends.
    pending: BTreeMap<ThreadId, Op>,
}

impl Trace {
    /// Reads, lowers and validates everything a source has.
    pub fn from_input(source: &mut dyn InputSource) -> Result<Trace, TraceError> {
        Self::from_input_watched(source, FunctionBlocks::None, |_| {})
    }

    /// Like [`Trace::from_input`], with functions as atomic blocks, telling how far it has come.
    pub fn from_input_watched(
        source: &mut dyn InputSource,
        functions: FunctionBlocks,
        mut on_progress: impl FnMut(Progress),
    ) -> Result<Trace, TraceError> {
        let read = Self::from_input_until(source, functions, |progress| {
            on_progress(progress);
            true
        });
        Ok(read?.0)
    }

    /// Like [`Trace::from_input_watched`], as far as it is told to go on: the trace of the events until then, and whether these are all.
    pub fn from_input_until(
        source: &mut dyn InputSource,
        functions: FunctionBlocks,
        mut goes_on: impl FnMut(Progress) -> bool,
    ) -> Result<(Trace, bool), TraceError> {
        let functions_are_declared = matches!(functions, FunctionBlocks::Chosen(_));
        let mut lowering = Lowering::new(Layout::of(source.names())?).with_functions(functions);
        let mut input = crate::InputBatch::default();
        let mut batch = Batch::default();
        if let Some(expected) = source.expected_events() {
            // A damaged count must not reserve more than the events can fill. Forks and joins make a few more events.
            let expected = expected.min(1 << 27) as usize;
            batch.columns.reserve(expected + expected / 64);
        }
        let mut stacks = StackColumn::default();
        let (mut complete, mut stopped) = (true, false);
        while source.next_batch(&mut input)? {
            // Who was told to stop at the end has read all.
            if stopped {
                complete = false;
                break;
            }
            stacks.append(lowering.inputs() as usize, input.stacks(), 0..input.len());
            lowering.lower(source.names(), &input, &mut batch)?;
            stopped = !goes_on(source.progress());
        }
        let inputs = lowering.inputs();
        let tokens = lowering.tokens();
        let mut trace =
            Self::assemble(batch, source.take_names().into(), lowering.into_layout().into(), inputs, tokens);
        trace.stacks = Arc::new(stacks);
        trace.functions_are_declared = functions_are_declared;
        // Formulas are about all events.
        let formulas = if complete { source.take_formulas()? } else { None };
        if let Some(formulas) = formulas {
            let sides = resolve(&formulas.sides, Arc::make_mut(&mut trace.names), trace.layout.is_identity())?;
            trace.symbols = Some(Box::new(Symbols::bind(formulas, sides, &trace)?));
        }
        Ok((trace, complete))
    }

    /// A trace of the same names with other events, of which the last `added` came from no input event.
    pub(crate) fn rewritten(&self, mut batch: Batch, added: u64, symbols: Symbols) -> Trace {
        batch.meanings.clone_from(&self.batch.meanings);
        batch.endings.clone_from(&self.batch.endings);
        batch.counts.clone_from(&self.batch.counts);
        let (names, layout) = (self.names.clone(), self.layout.clone());
        let mut trace = Self::assemble(batch, names, layout, self.inputs + added, self.tokens);
        trace.symbols = Some(Box::new(symbols));
        // Events keep the numbers of their input events, and those that are added have none.
        trace.stacks.clone_from(&self.stacks);
        trace.functions_are_declared = self.functions_are_declared;
        trace.pending.clone_from(&self.pending);
        trace
    }

    /// Parses STD text; for tests, examples and small tools.
    pub fn from_std(text: &str) -> Result<Trace, TraceError> {
        Self::from_input(&mut crate::format::StdReader::new(text.as_bytes()))
    }

    fn assemble(mut batch: Batch, names: Arc<Names>, layout: Arc<Layout>, inputs: u64, tokens: usize) -> Trace {
        for (event, op) in std::mem::take(&mut batch.corrections) {
            let (code, object) = op.pack();
            let meta = &mut batch.columns.meta[event.index()];
            *meta = *meta & !0xff | u32::from(code);
            batch.columns.object[event.index()] = object;
        }
        let mut sender_start = vec![0u32; tokens + 1];
        let (send, _) = Op::Send(TokenId(0)).pack();
        let metas = batch.columns.meta.iter().enumerate().filter(|(_, meta)| **meta as u8 == send);
        let sends: Vec<(EventId, TokenId)> =
            metas.map(|(i, _)| (EventId(i as u32), TokenId(batch.columns.object[i]))).collect();
        for (_, token) in &sends {
            sender_start[token.index() + 1] += 1;
        }
        for k in 0..tokens {
            sender_start[k + 1] += sender_start[k];
        }
        let mut next = sender_start.clone();
        let mut senders = vec![EventId(0); sender_start[tokens] as usize];
        for (event, token) in sends {
            senders[next[token.index()] as usize] = event;
            next[token.index()] += 1;
        }
        batch.counts.sort_unstable();
        let mut by_notify: Vec<PairingId> = (0..batch.pairings.len()).map(PairingId::new).collect();
        by_notify.sort_by_key(|p| (batch.pairings[p.index()].notify, *p));
        let mut pending = BTreeMap::new();
        for event in (0..batch.len()).map(|i| batch.get(i)) {
            match event.op {
                Op::Sleep(condition) => drop(pending.insert(event.thread, Op::Wake(condition))),
                Op::Wake(_) => drop(pending.remove(&event.thread)),
                _ => {}
            }
        }
        Trace {
            batch,
            names,
            layout,
            inputs,
            tokens,
            sender_start,
            senders,
            by_notify,
            symbols: None,
            stacks: Arc::default(),
            functions_are_declared: false,
            pending,
        }
    }

    /// The same trace, where it is known what some threads waited for when it ended, for ever.
    pub fn with_pending(mut self, pending: impl IntoIterator<Item = (ThreadId, Op)>) -> Trace {
        self.pending.extend(pending);
        self
    }
    /// What a thread waits for where the trace ends: to be woken, if it sleeps there, and else what is known of it. `None` if it is through.
    pub fn pending(&self, thread: ThreadId) -> Option<Op> {
        self.pending.get(&thread).copied()
    }

    /// What an event ends, if it does: nobody may use it afterwards.
    pub fn ends(&self, id: EventId) -> Option<Ending> {
        let endings = &self.batch.endings;
        if endings.is_empty() {
            return None;
        }
        endings.binary_search_by_key(&self.input_index(id), |ending| ending.0).ok().map(|at| endings[at].1)
    }
    /// Whether somebody said that a block is atomic: it is marked, or a function that was chosen. Otherwise it is a function,
    /// taken for a block because most are meant to be.
    pub fn is_declared(&self, block: BlockId) -> bool {
        block.function().is_none() || self.functions_are_declared
    }
    /// The formulas, if the trace has any.
    pub fn symbols(&self) -> Option<&Symbols> {
        self.symbols.as_deref()
    }
    /// How many kernel events there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.batch.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }
    /// How many input events it came from.
    pub fn input_len(&self) -> u64 {
        self.inputs
    }
    /// One event.
    #[inline]
    pub fn event(&self, id: EventId) -> Event {
        self.batch.get(id.index())
    }
    /// What an event did.
    #[inline]
    pub fn op(&self, id: EventId) -> Op {
        self.batch.columns.op(id.index())
    }
    /// Whether an event is an acquire at which nobody waits for ever: a try, or a wait with a time limit, that succeeded. Where the
    /// lock is held it fails, and its thread goes on, in a way that the trace does not know.
    #[inline]
    pub fn tries(&self, id: EventId) -> bool {
        self.batch.columns.tries(id.index())
    }
    /// Who did an event.
    #[inline]
    pub fn thread(&self, id: EventId) -> ThreadId {
        self.batch.columns.thread(id.index())
    }
    /// The value of an event, where it is known.
    #[inline]
    pub fn value(&self, id: EventId) -> Option<i64> {
        self.batch.columns.values.get(id.index())
    }
    /// Every event, in observed order.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event> + DoubleEndedIterator {
        (0..self.len()).map(|i| self.batch.get(i))
    }
    /// The number of the input event that an event came from. Never decreases along the trace.
    #[inline]
    pub fn input_index(&self, id: EventId) -> u32 {
        self.batch.input_index(id.index())
    }
    /// The same of the events from one on, in order, without end: for who goes along the whole trace.
    pub fn input_indices(&self, from: EventId) -> impl Iterator<Item = u32> {
        self.batch.columns.origins.from(from.index())
    }
    /// The kernel events that an input event became; empty if it became none.
    ///
    /// Among them may be events of other threads: a join also ends the joined thread.
    pub fn lowered(&self, input: u32) -> std::ops::Range<usize> {
        let at = |bound: u32| self.batch.columns.origins.before(bound, self.len());
        at(input)..at(input.saturating_add(1))
    }
    /// The input events that became no kernel event, in input order, with their threads.
    pub fn skipped_inputs(&self) -> &[(u32, ThreadId)] {
        &self.batch.skipped
    }

    /// Every send of a token, in observed order.
    pub fn senders(&self, token: TokenId) -> &[EventId] {
        let k = token.index();
        &self.senders[self.sender_start[k] as usize..self.sender_start[k + 1] as usize]
    }
    /// The waits that a notify ended, in the order of their wakes.
    pub fn pairings(&self) -> &[Pairing] {
        &self.batch.pairings
    }
    /// The wait that this wake ends; `None` if it woke by time-out or spuriously.
    pub fn pairing_of_wake(&self, wake: EventId) -> Option<PairingId> {
        self.batch.pairings.binary_search_by_key(&wake, |p| p.wake).ok().map(PairingId::new)
    }
    /// The waits that this notify ended.
    pub fn woken_by(&self, notify: EventId) -> &[PairingId] {
        let of = |p: &PairingId| self.batch.pairings[p.index()].notify;
        let start = self.by_notify.partition_point(|p| of(p) < notify);
        let end = self.by_notify.partition_point(|p| of(p) <= notify);
        &self.by_notify[start..end]
    }

    /// The names of everything.
    pub fn names(&self) -> &Names {
        &self.names
    }
    /// The name of a variable; a part of a wider access says which bytes it is.
    pub fn variable_name(&self, variable: VarId) -> Cow<'_, str> {
        self.layout.part_name(&self.names, variable)
    }
    /// The name of the whole block that a variable lies in, if it was allocated; else its own.
    pub fn whole_name(&self, variable: VarId) -> Cow<'_, str> {
        self.names.called_whole(ObjectClass::Variable, self.layout.variable_of(variable))
    }
    /// What the variable is, or is a part of.
    pub fn variable_object(&self, variable: VarId) -> ObjectName<'_> {
        self.layout.part_object(&self.names, variable)
    }
    /// What a value of a variable that holds addresses pointed to.
    pub fn pointee(&self, variable: VarId, value: i64) -> Option<&str> {
        self.names.pointee(self.layout.variable_of(variable), value)
    }
    /// What the variable, lock, condition or semaphore of an operation is; `None` for operations without one.
    pub fn object(&self, op: Op) -> Option<ObjectName<'_>> {
        let (class, id) = match op {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => return Some(self.variable_object(x)),
            Op::Acquire(l, _) | Op::Release(l, _) | Op::Busy(l, _) => (ObjectClass::Lock, l.0),
            Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => (ObjectClass::Condition, c.0),
            Op::Post(s) | Op::Wait(s) | Op::Empty(s) => (ObjectClass::Semaphore, s.0),
            Op::Begin(_) | Op::End(_) | Op::Send(_) | Op::Receive(_) | Op::Branch | Op::Fence(_) => return None,
        };
        Some(self.names.object(class, id))
    }
    /// Whether what an operation is done to has no name that its author would know it by: bytes of a stack, of a module or of a
    /// library's own memory.
    pub fn is_nameless(&self, op: Op) -> bool {
        match self.object(op).map(|name| name.object) {
            Some(Object::Stack { local, .. }) => local.is_none_or(|local| local.name.is_empty()),
            Some(Object::Module { .. } | Object::Unnamed { .. }) => true,
            Some(Object::Memory { address }) => address >= 1 << 12,
            Some(Object::Heap { site, .. }) => !is_user_place(&self.names.location(site)),
            _ => false,
        }
    }
    /// The call stack in which an event happened, one of [`Names::stacks`], if it is known.
    pub fn stack(&self, id: EventId) -> Option<StackId> {
        self.stacks.get(self.input_index(id) as usize)
    }
    /// The places on the way to an event, the innermost first: its own, then that of each call that led there.
    pub fn stack_of(&self, id: EventId) -> Vec<StackFrame> {
        self.names.stack_frames(self.batch.columns.loc[id.index()], self.stack(id))
    }
    /// The place of an event itself, which for an event in a library is not the line that it is told by.
    pub fn innermost(&self, id: EventId) -> LocId {
        self.names.innermost(self.batch.columns.loc[id.index()], self.stack(id))
    }
    /// Where in [`Trace::stack_of`] the innermost place in the user's own code is, if there is one.
    pub fn user_place(&self, id: EventId) -> Option<usize> {
        user_frame(&self.stack_of(id))
    }
    /// The variables that an access of the memory called `name` touches: several where other accesses cut it.
    pub fn variables_named(&self, name: &str) -> Vec<VarId> {
        let named = self.names.table(ObjectClass::Variable).lookup(name.as_bytes());
        let called = || {
            (0..self.names.count(ObjectClass::Variable) as u32)
                .find(|&id| self.names.called(ObjectClass::Variable, id) == name)
        };
        let Some(variable) = named.or_else(called) else { return Vec::new() };
        if self.layout.is_identity() {
            return vec![VarId(variable)];
        }
        self.layout.split(&self.names, variable).map(|(part, ..)| part).collect()
    }
    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.names.count(ObjectClass::Thread)
    }
    /// How many variables there are.
    pub fn variables(&self) -> usize {
        self.layout.parts(&self.names)
    }
    /// How many locks there are.
    pub fn locks(&self) -> usize {
        self.names.count(ObjectClass::Lock)
    }
    /// How many conditions there are.
    pub fn conditions(&self) -> usize {
        self.names.count(ObjectClass::Condition)
    }
    /// How many semaphores there are.
    pub fn semaphores(&self) -> usize {
        self.names.count(ObjectClass::Semaphore)
    }
    /// Where a semaphore begins to count.
    pub fn initial_count(&self, semaphore: SemId) -> u64 {
        let counts = &self.batch.counts;
        counts.binary_search_by_key(&semaphore, |(named, _)| *named).map_or(0, |at| counts[at].1)
    }
    /// What a token stands for.
    pub fn meaning(&self, token: TokenId) -> Meaning {
        self.batch.meanings[token.index()]
    }
    /// How many tokens there are.
    pub fn tokens(&self) -> usize {
        self.tokens
    }
    /// Every thread.
    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> {
        (0..self.threads()).map(ThreadId::new)
    }
    /// Every lock.
    pub fn lock_ids(&self) -> impl Iterator<Item = LockId> {
        (0..self.locks()).map(LockId::new)
    }
    /// Bytes held per event, without names and the tables of tokens and waits.
    pub fn bytes_per_event(&self) -> f64 {
        (self.batch.columns.bytes() + self.stacks.bytes()) as f64 / self.len().max(1) as f64
    }
}

/// The next kernel event number, or the error that there are too many.
#[inline]
pub(crate) fn checked_event(next: u64) -> Result<EventId, Problem> {
    usize::try_from(next)
        .ok()
        .and_then(EventId::from_index)
        .ok_or(Problem::TooMany { what: EventId::WHAT, limit: EventId::MAX_INDEX as u64 + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_size_are_kept() {
        let mut values = Values::default();
        let all = [None, None, Some(0), Some(-1), None, Some((1 << 31) - 2), Some((1 << 31) - 1), Some(i64::MIN)];
        for (at, value) in all.into_iter().enumerate() {
            values.push(at, value);
        }
        assert_eq!(std::array::from_fn(|at| values.get(at)), all);
        assert_eq!(values.get(99), None);
    }

    #[test]
    fn a_trace_without_values_and_forks_costs_twelve_bytes_per_event() {
        let trace = Trace::from_std("T1|w(x)|1\nT2|r(x)|2\nT1|acq(l)|3\nT1|rel(l)|4\n").unwrap();
        assert_eq!(trace.bytes_per_event(), 12.0 + 8.0 / 4.0, "and eight bytes for the whole trace");
        assert_eq!(trace.input_index(EventId(3)), 3);
        assert_eq!(trace.lowered(2), 2..3);
    }

    #[test]
    fn lowered_events_know_their_input_and_back() {
        let trace = Trace::from_std("T1|fork(T2)|1\nT2|acq(l)|2\nT2|acq(l)|3\nT2|rel(l)|4\nT2|w(x)|5\n").unwrap();
        let inputs: Vec<u32> = (0..trace.len()).map(|i| trace.input_index(EventId(i as u32))).collect();
        assert_eq!(inputs, [0, 1, 1, 4]);
        assert_eq!(trace.lowered(1), 1..3);
        assert!(trace.lowered(2).is_empty());
        assert_eq!((trace.lowered(0), trace.lowered(4), trace.lowered(9)), (0..1, 3..4, 4..4));
        assert_eq!(trace.skipped_inputs().iter().map(|s| s.0).collect::<Vec<_>>(), [2, 3]);
    }
}
