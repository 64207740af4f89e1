//! A window of a trace, laid out for the engine: chains of events, scopes of locks, writers and readers.
//!
//! A window starts from the observed prefix (every event before it has happened, in observed order), which keeps it
//! sound, and forgets what comes after it: a trace may stop anywhere. Within it everything is exact. [`super::layout`]
//! makes it, [`super::cuts`] says which sets of its events can be taken in observed order.

use super::counts::Counter;
use super::index::{
    Chain, Condition, Dense, Id, IndexVec, Lock, Node, OpenSet, Place, ScopeId, Semaphore, Source, Variable, WaitId,
    ids,
};
use super::rows::{Cut, Row, Rows};
use super::sleeps::{Wait, Waiting};
use super::values::Values;
use crate::goal::Writer;
use crate::read_rule::ReadRule;
use portent_trace::{EventId, LockId, Mode, Reach, SemId, Trace, VarId};
use rustc_hash::FxHashMap;

/// What the engine needs to know of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Read(Variable),
    Write(Variable),
    Update(Variable),
    Acquire(ScopeId),
    Release(ScopeId),
    Busy(Lock, Mode),
    Sleep(WaitId),
    Notify(Condition, Reach),
    /// Goes on because a notify has woken it.
    Wake(WaitId),
    /// Goes on by itself.
    Leave(WaitId),
    Post(Semaphore),
    Wait(Semaphore),
    /// A failed try.
    Empty(Semaphore),
    Other,
}

impl Act {
    #[inline]
    pub(crate) fn written(self) -> Option<Variable> {
        match self {
            Act::Write(x) | Act::Update(x) => Some(x),
            _ => None,
        }
    }
    /// The same, if what it reads does not matter.
    pub(super) fn without_reading(self) -> Act {
        match self {
            Act::Update(x) => Act::Write(x),
            Act::Read(_) => Act::Other,
            other => other,
        }
    }
    #[inline]
    pub(crate) fn read(self) -> Option<Variable> {
        match self {
            Act::Read(x) | Act::Update(x) => Some(x),
            _ => None,
        }
    }
}

/// An update that may read anything, in one step or in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Freed {
    /// What reads.
    pub read: Node,
    /// What writes: the same, or a later event of the thread; or the last event that the thread still makes.
    pub last: Node,
}

/// A critical section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub lock: Lock,
    pub mode: Mode,
    pub chain: Chain,
    /// `None`: held when the window starts.
    pub acquire: Option<Node>,
    /// `None`: held when the window ends.
    pub release: Option<Node>,
}

/// Nodes of one chain, ascending.
#[derive(Clone, Debug)]
pub(crate) struct InChain {
    pub chain: Chain,
    pub nodes: Vec<Node>,
}

/// The scopes of a lock in one chain and one mode, in program order; they do not overlap.
#[derive(Clone, Debug)]
pub(crate) struct ScopesInChain {
    pub chain: Chain,
    pub mode: Mode,
    pub scopes: Vec<ScopeId>,
}

/// The accesses of a variable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accesses {
    pub all: Vec<InChain>,
    pub writes: Vec<InChain>,
    /// Reads of what the variable holds when the window starts.
    pub base_readers: Vec<Node>,
}

#[derive(Clone, Debug)]
pub(crate) struct Window<'t> {
    pub trace: &'t Trace,
    /// What kept reads may see.
    pub rule: ReadRule,
    /// First event.
    pub first: usize,
    /// The events, where they are not simply those from the first on; ascending.
    pub(super) chosen: Option<IndexVec<Node, EventId>>,
    /// Whether no event comes after it.
    pub(super) ends: bool,
    /// Whether it has only what holds wherever it was cut: see [`super::Slice`].
    pub relaxed: bool,
    /// How many events of the observed order schedules begin with.
    pub prefix: usize,
    pub chain_of: IndexVec<Node, Chain>,
    pub place: IndexVec<Node, Place>,
    pub chain: IndexVec<Chain, IndexVec<Place, Node>>,
    pub act: IndexVec<Node, Act>,
    /// What each read must see; `None` for what does not read, and for what has a choice.
    pub saw: IndexVec<Node, Option<Source>>,
    /// Kept reads of each write, ascending.
    pub readers: FxHashMap<Node, Vec<Node>>,
    pub variables: IndexVec<Variable, Accesses>,
    pub(super) variable_of: FxHashMap<VarId, Variable>,
    pub(super) base_writer: IndexVec<Variable, Writer>,
    pub scopes: IndexVec<ScopeId, Scope>,
    pub locks: IndexVec<Lock, Vec<ScopesInChain>>,
    pub(super) lock_of: FxHashMap<LockId, Lock>,
    /// Order that holds in every reordering beside program order: (before, after), sorted by after.
    pub hard: Vec<(Node, Node)>,
    pub waits: IndexVec<WaitId, Wait>,
    /// The conditions that matter here.
    pub conditions: IndexVec<Condition, Waiting>,
    /// The semaphores whose counts matter here.
    pub counters: IndexVec<Semaphore, Counter>,
    pub(super) semaphore_of: FxHashMap<SemId, Semaphore>,
    /// For each chain and place, the scopes open before it; shared between places.
    pub(super) open_at: IndexVec<Chain, IndexVec<Place, OpenSet>>,
    pub(super) open_sets: IndexVec<OpenSet, Vec<ScopeId>>,
    /// For each chain and place, the last place up to it at which no lock is held.
    pub(super) free_at: IndexVec<Chain, IndexVec<Place, Option<Place>>>,
    /// Whether there are failed tries.
    pub(super) tries: bool,
    /// Failed tries whose holder is here: the node, and a scope that held the lock when it was observed.
    pub busy: Vec<(Node, ScopeId)>,
    /// For each node, its past: itself, and what comes before it in every reordering.
    pub past: Rows,
    /// Where values are compared.
    pub values: Option<Box<Values>>,
}

impl<'t> Window<'t> {
    /// How many events there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.chain_of.len()
    }
    /// Every node, in observed order.
    #[inline]
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = Node> + Clone + use<> {
        self.chain_of.ids()
    }
    /// The nodes from one on.
    #[inline]
    pub(crate) fn nodes_from(&self, first: Node) -> impl DoubleEndedIterator<Item = Node> + Clone + use<> {
        ids(first.index()..self.len())
    }
    /// Every chain.
    #[inline]
    pub(crate) fn chains(&self) -> impl DoubleEndedIterator<Item = Chain> + Clone + use<> {
        self.chain.ids()
    }
    /// The set of nothing.
    pub(crate) fn nothing(&self) -> Cut {
        Cut::empty(self.chain.len())
    }
    /// The set of everything.
    pub(crate) fn everything(&self) -> Cut {
        self.chain.iter().map(|chain| chain.end()).collect()
    }
    /// Whether a set contains a node.
    #[inline]
    pub(crate) fn is_in(&self, cut: &Cut, node: Node) -> bool {
        self.place[node] < cut[self.chain_of[node]]
    }
    /// Whether no event comes after the window.
    pub(crate) fn reaches_the_end(&self) -> bool {
        self.ends
    }
    /// The event of a node.
    #[inline]
    pub(crate) fn event(&self, node: Node) -> EventId {
        match &self.chosen {
            None => EventId::new(self.first + node.index()),
            Some(events) => events[node],
        }
    }
    /// The number that an event has among the window's, if it is not before them.
    pub(super) fn local(&self, event: EventId) -> Option<Node> {
        let at = match &self.chosen {
            None => event.index().checked_sub(self.first)?,
            Some(events) => events.binary_search(&event).ok()?,
        };
        Some(Node::new(at))
    }
    /// The node of an event, if it is in the window.
    #[inline]
    pub(crate) fn node(&self, event: EventId) -> Option<Node> {
        self.local(event).filter(|&node| node < self.chain_of.end())
    }
    /// The first node that is not before an event, for windows of consecutive events.
    pub(crate) fn node_from(&self, event: EventId) -> Node {
        Node::new(event.index().saturating_sub(self.first))
    }
    /// What comes before a node in every reordering, and the node.
    #[inline]
    pub(crate) fn past_of(&self, node: Node) -> Row<'_> {
        self.past.row(node)
    }
    /// The event before a node in its chain.
    #[inline]
    pub(crate) fn before(&self, node: Node) -> Option<Node> {
        let place = self.place[node].previous()?;
        Some(self.chain[self.chain_of[node]][place])
    }
    /// The scopes open in a chain before one of its places.
    #[inline]
    pub(crate) fn open_before(&self, chain: Chain, place: Place) -> &[ScopeId] {
        let at = &self.open_at[chain];
        let set = at.get(place).or(at.last()).copied().unwrap_or(OpenSet::EMPTY);
        &self.open_sets[set]
    }
    /// Whether a scope has begun before a place of its chain.
    #[inline]
    pub(crate) fn begins_before(&self, scope: ScopeId, place: Place) -> bool {
        self.scopes[scope].acquire.is_none_or(|acquire| self.place[acquire] < place)
    }
    /// Whether a scope is still open at a place of its chain, if it has begun.
    #[inline]
    pub(crate) fn is_open_at(&self, scope: &Scope, place: Place) -> bool {
        scope.release.is_none_or(|release| self.place[release] >= place)
    }
    /// Whether an event that is not here comes before some that the window has of its thread.
    pub(crate) fn precedes_its_thread(&self, event: EventId) -> bool {
        let chain = &self.chain[Chain::new(self.trace.thread(event).index())];
        chain.last().is_some_and(|&last| event < self.event(last))
    }
    /// The variables of the trace and what they are here.
    pub(super) fn variables_by_number(&self) -> Vec<(VarId, Variable)> {
        self.variable_of.iter().map(|(&global, &local)| (global, local)).collect()
    }
    pub(crate) fn variable_index(&self, global: VarId) -> Option<Variable> {
        self.variable_of.get(&global).copied()
    }
    /// What a variable holds when the window starts.
    pub(crate) fn base_writer(&self, variable: Variable) -> Writer {
        self.base_writer[variable]
    }
    /// The writes of a variable.
    pub(crate) fn writes_of(&self, variable: Variable) -> impl Iterator<Item = Node> + '_ {
        self.variables[variable].writes.iter().flat_map(|list| &list.nodes).copied()
    }

    /// The last event of a thread that has made a write and then released each lock that it held there.
    pub(crate) fn end_of_update(&self, write: Node) -> Option<Node> {
        let chain = self.chain_of[write];
        let mut releases = self.open_before(chain, self.place[write]).iter().map(|&scope| self.scopes[scope].release);
        // What is not released here is held to the end.
        releases.try_fold(write, |last, release| Some(last.max(release?))).or_else(|| self.chain[chain].last().copied())
    }

    /// This window with an update turned into a plain write, in one step or in two: for goals that let it read anything.
    pub(crate) fn freeing(&self, update: Freed) -> Self {
        let mut freed = self.clone();
        if freed.values.is_some() {
            freed.free_source(update);
            return freed;
        }
        let update = update.read;
        if let Some(x) = freed.act[update].read() {
            freed.act[update] = freed.act[update].without_reading();
            match freed.saw[update].take() {
                None => {}
                Some(Source::Base) => freed.variables[x].base_readers.retain(|&n| n != update),
                Some(Source::Write(writer)) => {
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
