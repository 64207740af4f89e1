//! Tier 2: saturation. Closes a set of events under everything that its order must satisfy.
//!
//! Sinha et al.'s witness graph, corrected (docs/src/internals/semantics.md §4): works on the past of the goal's events and nothing else; for
//! each kept read b of write a and any other write d of the variable, d < a or b < d; for two scopes of one lock, one's
//! release before the other's acquire. Whenever one side is impossible the other is added, until a cycle (the goal is
//! infeasible) or a fixpoint. Scopes that are open where the set ends, and what a target wants beside, are in [`super::close`].
//!
//! State: `clock`, the closure, one row per event (only rows of events in the set are meaningful; the others hold the
//! past), which can be undone; `cut`, the set. Rows grow along chains, so only the nearest write or scope of each chain has
//! to be looked at.

use super::index::{Id, IndexVec, Node, ScopeId, Source, Variable};
use super::rows::{Cut, Raised, Row, Rows};
use super::window::{Act, ScopesInChain, Window};

/// The order contradicts itself: no reordering.
#[derive(Debug)]
pub(crate) struct Cycle;

pub(crate) struct Saturation<'w, 't> {
    pub(super) w: &'w Window<'t>,
    clock: Rows,
    pub(super) cut: Cut,
    /// Nodes whose rows have changed and whose rules are to be looked at again.
    queue: Vec<Node>,
    queued: IndexVec<Node, bool>,
    scratch: Cut,
}

pub(crate) struct Mark {
    raised: Raised,
    cut: Cut,
}

impl<'w, 't> Saturation<'w, 't> {
    pub(crate) fn new(w: &'w Window<'t>) -> Self {
        Saturation {
            w,
            clock: w.past.clone(),
            cut: w.nothing(),
            queue: Vec::new(),
            queued: IndexVec::repeat(false, w.len()),
            scratch: Cut::default(),
        }
    }
    pub(crate) fn clock(&self) -> &Rows {
        &self.clock
    }
    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }
    pub(crate) fn mark(&self) -> Mark {
        Mark { raised: self.clock.raised(), cut: self.cut.clone() }
    }
    pub(crate) fn undo(&mut self, mark: &Mark) {
        self.clock.undo(mark.raised);
        self.cut.copy_from_slice(&mark.cut);
        for node in self.queue.drain(..) {
            self.queued[node] = false;
        }
    }

    /// Whether `before` is ordered before `after`.
    #[inline]
    pub(crate) fn is_before(&self, before: Node, after: Node) -> bool {
        before != after && self.clock.at(after, self.w.chain_of[before]) > self.w.place[before]
    }
    #[inline]
    pub(super) fn contains(&self, node: Node) -> bool {
        self.w.is_in(&self.cut, node)
    }
    fn enqueue(&mut self, node: Node) {
        if !std::mem::replace(&mut self.queued[node], true) {
            self.queue.push(node);
        }
    }

    /// Adds everything below `cut` (closed under the past) and what follows from it.
    pub(crate) fn grow(&mut self, cut: Row<'_>) -> Result<(), Cycle> {
        let mut fresh: Vec<Node> = Vec::new();
        for ((have, &want), chain) in self.cut.iter_mut().zip(cut.iter()).zip(self.w.chain.iter()) {
            if want > *have {
                fresh.extend(chain.between(*have..want));
                *have = want;
            }
        }
        fresh.sort_unstable();
        for &node in &fresh {
            self.activate(node);
        }
        // Taken from the end: the earliest first, since what it changes is looked at again behind it anyway.
        for &node in fresh.iter().rev() {
            if !matches!(self.w.act[node], Act::Other) {
                self.enqueue(node);
            }
        }
        for &node in &fresh {
            self.meet(node)?;
        }
        self.saturate()
    }

    /// Brings the row of a new event up to what its direct predecessors know by now.
    fn activate(&mut self, node: Node) {
        let mut row = std::mem::take(&mut self.scratch);
        row.copy(self.clock.row(node));
        if let Some(before) = self.w.before(node) {
            row.join(self.clock.row(before));
        }
        let first = self.w.hard.partition_point(|&(_, after)| after < node);
        for &(before, after) in &self.w.hard[first..] {
            if after != node {
                break;
            }
            row.join(self.clock.row(before));
        }
        debug_assert!(row[self.w.chain_of[node]] == self.w.place[node].next(), "nobody knows yet what comes after it");
        self.clock.raise(node, &row, |_, _, _| {});
        self.scratch = row;
    }

    /// What a new event means for events that are already there.
    fn meet(&mut self, node: Node) -> Result<(), Cycle> {
        match self.w.act[node] {
            Act::Read(x) | Act::Update(x) => {
                if let Some(source) = self.w.saw[node] {
                    self.meet_read(node, x, source)?;
                }
            }
            Act::Release(scope) => self.meet_release(node, scope)?,
            Act::Wake(wait) => {
                let wait = self.w.waits[wait];
                if let (Some(sleep), Some(only)) = (wait.sleep, wait.only) {
                    self.add(sleep, only)?;
                }
            }
            _ => {}
        }
        if let Some(x) = self.w.act[node].written() {
            let w = self.w;
            for &reader in &w.variables[x].base_readers {
                if reader != node && self.contains(reader) {
                    self.add(reader, node)?;
                }
            }
        }
        Ok(())
    }

    /// A kept read comes before every write that comes after its writer.
    fn meet_read(&mut self, read: Node, x: Variable, source: Source) -> Result<(), Cycle> {
        let w = self.w;
        for list in &w.variables[x].writes {
            let bound = self.cut[list.chain];
            let inside = list.nodes.partition_point(|&n| w.place[n] < bound);
            let after = |n: Node| source.node().is_none_or(|writer| self.is_before(writer, n));
            let mut at = list.nodes[..inside].partition_point(|&n| !after(n));
            if list.nodes[..inside].get(at) == Some(&read) {
                at += 1; // An update is not its own rival.
            }
            if let Some(&rival) = list.nodes[..inside].get(at) {
                self.add(read, rival)?;
            }
        }
        Ok(())
    }

    /// A scope that has become closed comes before every scope that ends after it began.
    fn meet_release(&mut self, release: Node, id: ScopeId) -> Result<(), Cycle> {
        let w = self.w;
        let scope = w.scopes[id];
        for list in &w.locks[scope.lock] {
            if list.chain == scope.chain || !list.mode.conflicts_with(scope.mode) {
                continue;
            }
            let closed = &list.scopes[..self.closed(list)];
            let ends_before = |s: ScopeId| match (w.scopes[s].release, scope.acquire) {
                (Some(end), Some(acquire)) => !self.is_before(acquire, end),
                _ => false,
            };
            let at = closed.partition_point(|&s| ends_before(s));
            if let Some(&other) = closed.get(at) {
                self.add_to_scope(release, other)?;
            }
        }
        Ok(())
    }

    /// How many scopes of a chain's list are closed in the set.
    pub(super) fn closed(&self, list: &ScopesInChain) -> usize {
        let bound = self.cut[list.chain];
        list.scopes.partition_point(|&s| !self.w.is_open_at(&self.w.scopes[s], bound))
    }

    fn add_to_scope(&mut self, release: Node, later: ScopeId) -> Result<(), Cycle> {
        match self.w.scopes[later].acquire {
            None => Err(Cycle), // Held since before the window: nothing of it can come first.
            Some(acquire) => self.add(release, acquire),
        }
    }

    /// Adds an edge and what it implies for rows; rules are looked at by [`Saturation::saturate`].
    pub(crate) fn add(&mut self, before: Node, after: Node) -> Result<(), Cycle> {
        if self.is_before(before, after) {
            return Ok(());
        }
        if before == after || self.is_before(after, before) {
            return Err(Cycle);
        }
        let w = self.w;
        let mut row = std::mem::take(&mut self.scratch);
        row.copy(self.clock.row(before));
        let (chain, place) = (w.chain_of[after], w.place[after]);
        for other in w.chains() {
            let nodes = w.chain[other].before(self.cut[other]);
            let start = if other == chain {
                place.index().min(nodes.len())
            } else {
                nodes.partition_point(|&n| self.clock.at(n, chain) <= place)
            };
            for &node in &nodes[start..] {
                if !self.clock.raise(node, &row, |_, _, _| {}) {
                    break; // Rows grow along the chain.
                }
                if !matches!(w.act[node], Act::Other) {
                    self.enqueue(node);
                }
            }
        }
        self.scratch = row;
        Ok(())
    }

    /// Applies the rules until nothing changes.
    pub(crate) fn saturate(&mut self) -> Result<(), Cycle> {
        while let Some(node) = self.queue.pop() {
            self.queued[node] = false;
            let act = self.w.act[node];
            if let (Some(x), Some(source)) = (act.read(), self.w.saw[node]) {
                self.check_read(node, x, source)?;
            }
            if let Some(x) = act.written() {
                self.check_write(node, x)?;
            }
            if let Act::Release(scope) = act {
                self.check_release(node, scope)?;
            }
        }
        Ok(())
    }

    /// Every other write before a kept read comes before its writer.
    fn check_read(&mut self, read: Node, x: Variable, source: Source) -> Result<(), Cycle> {
        let w = self.w;
        for list in &w.variables[x].writes {
            let mut before = list.nodes.partition_point(|&n| w.place[n] < self.clock.at(read, list.chain));
            if before > 0 && list.nodes[before - 1] == read {
                before -= 1;
            }
            let Some(&rival) = before.checked_sub(1).and_then(|at| list.nodes.get(at)) else { continue };
            let Source::Write(writer) = source else { return Err(Cycle) };
            if rival != writer {
                self.add(rival, writer)?;
            }
        }
        Ok(())
    }

    /// Every kept read of a write before this one comes before this one.
    fn check_write(&mut self, write: Node, x: Variable) -> Result<(), Cycle> {
        let w = self.w;
        for list in &w.variables[x].writes {
            let mut before = list.nodes.partition_point(|&n| w.place[n] < self.clock.at(write, list.chain));
            if before > 0 && list.nodes[before - 1] == write {
                before -= 1;
            }
            let Some(&earlier) = before.checked_sub(1).and_then(|at| list.nodes.get(at)) else { continue };
            for &reader in w.readers.get(&earlier).into_iter().flatten() {
                if reader != write && self.contains(reader) {
                    self.add(reader, write)?;
                }
            }
        }
        Ok(())
    }

    /// Every scope that began before this one ended is over before this one begins.
    fn check_release(&mut self, release: Node, id: ScopeId) -> Result<(), Cycle> {
        let w = self.w;
        let scope = w.scopes[id];
        for list in &w.locks[scope.lock] {
            if list.chain == scope.chain || !list.mode.conflicts_with(scope.mode) {
                continue;
            }
            let bound = self.clock.at(release, list.chain);
            let begun = &list.scopes[..list.scopes.partition_point(|&s| w.begins_before(s, bound))];
            let [earlier @ .., last] = begun else { continue };
            // If the last one is still open, the one before it is over, and counts.
            let end_of = |s: ScopeId| w.scopes[s].release;
            let last = end_of(*last).filter(|&end| self.contains(end));
            if let Some(end) = last.or(earlier.last().and_then(|&s| end_of(s))) {
                self.add_to_scope(end, id)?;
            }
        }
        Ok(())
    }
}
