//! Tier 2: saturation. Closes a set of events under everything that its order must satisfy.
//!
//! Sinha et al.'s witness graph, corrected (SEMANTICS §4): works on the past of the goal's events and nothing else; for
//! each kept read b of write a and any other write d of the variable, d < a or b < d; for two scopes of one lock, one's
//! release before the other's acquire. Whenever one side is impossible the other is added, until a cycle (the goal is
//! infeasible) or a fixpoint. A scope whose release is outside the set must be last on its lock, or the set grows by its
//! release; growth that is *forced* happens here, growth that is a choice is left to the search.
//!
//! State: `clock`, the closure, one row per event (only rows of events in the set are meaningful; the others hold the
//! past); `cut`, the set; `trail`, what to undo. Rows grow along chains, so "the first event of a chain after v" is a
//! binary search, and only the nearest write or scope of each chain has to be looked at.

use super::target::Target;
use super::window::{Act, BASE, NONE, Node, Window, join};

/// The order contradicts itself: no reordering.
#[derive(Debug)]
pub(crate) struct Cycle;

pub(crate) struct Saturation<'w, 't> {
    w: &'w Window<'t>,
    clock: Vec<u32>,
    cut: Vec<u32>,
    trail: Vec<(u32, u32)>,
    /// Nodes whose rows have changed and whose rules are to be looked at again.
    queue: Vec<Node>,
    queued: Vec<bool>,
    scratch: Vec<u32>,
}

pub(crate) struct Mark {
    trail: usize,
    cut: Vec<u32>,
}

impl<'w, 't> Saturation<'w, 't> {
    pub(crate) fn new(w: &'w Window<'t>) -> Self {
        Saturation {
            w,
            clock: w.past.clone(),
            cut: vec![0; w.chains],
            trail: Vec::new(),
            queue: Vec::new(),
            queued: vec![false; w.len()],
            scratch: Vec::new(),
        }
    }
    pub(crate) fn clock(&self) -> &[u32] {
        &self.clock
    }
    pub(crate) fn cut(&self) -> &[u32] {
        &self.cut
    }
    pub(crate) fn mark(&self) -> Mark {
        Mark { trail: self.trail.len(), cut: self.cut.clone() }
    }
    pub(crate) fn undo(&mut self, mark: &Mark) {
        for (at, old) in self.trail.drain(mark.trail..).rev() {
            self.clock[at as usize] = old;
        }
        self.cut.copy_from_slice(&mark.cut);
        for node in self.queue.drain(..) {
            self.queued[node as usize] = false;
        }
    }

    #[inline]
    fn at(&self, node: Node, chain: u32) -> u32 {
        self.clock[node as usize * self.w.chains + chain as usize]
    }
    /// Whether `before` is ordered before `after`.
    #[inline]
    pub(crate) fn is_before(&self, before: Node, after: Node) -> bool {
        before != after && self.at(after, self.w.chain_of[before as usize]) > self.w.place[before as usize]
    }
    #[inline]
    fn contains(&self, node: Node) -> bool {
        self.w.place[node as usize] < self.cut[self.w.chain_of[node as usize] as usize]
    }
    fn set(&mut self, at: usize, value: u32) {
        self.trail.push((at as u32, self.clock[at]));
        self.clock[at] = value;
    }
    fn enqueue(&mut self, node: Node) {
        if !std::mem::replace(&mut self.queued[node as usize], true) {
            self.queue.push(node);
        }
    }

    /// Adds everything below `cut` (closed under the past) and what follows from it.
    pub(crate) fn grow(&mut self, cut: &[u32]) -> Result<(), Cycle> {
        let mut fresh: Vec<Node> = Vec::new();
        for ((have, &want), chain) in self.cut.iter_mut().zip(cut).zip(&self.w.chain) {
            if want > *have {
                fresh.extend(&chain[*have as usize..want as usize]);
                *have = want;
            }
        }
        fresh.sort_unstable();
        for &node in &fresh {
            self.activate(node);
        }
        // Taken from the end: the earliest first, since what it changes is looked at again behind it anyway.
        for &node in fresh.iter().rev() {
            if !matches!(self.w.act[node as usize], Act::Other) {
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
        let k = self.w.chains;
        let mut row = std::mem::take(&mut self.scratch);
        row.clear();
        row.extend_from_slice(&self.clock[node as usize * k..][..k]);
        if let Some(before) = self.w.before(node) {
            join(&mut row, &self.clock[before as usize * k..][..k]);
        }
        let first = self.w.hard.partition_point(|&(_, after)| after < node);
        for &(before, after) in &self.w.hard[first..] {
            if after != node {
                break;
            }
            join(&mut row, &self.clock[before as usize * k..][..k]);
        }
        let own = self.w.chain_of[node as usize] as usize;
        row[own] = self.w.place[node as usize] + 1;
        for (chain, &value) in row.iter().enumerate() {
            if self.clock[node as usize * k + chain] != value {
                self.set(node as usize * k + chain, value);
            }
        }
        self.scratch = row;
    }

    /// What a new event means for events that are already there.
    fn meet(&mut self, node: Node) -> Result<(), Cycle> {
        match self.w.act[node as usize] {
            Act::Read(x) | Act::Update(x) if self.w.saw[node as usize] != NONE => self.meet_read(node, x)?,
            Act::Release(scope) => self.meet_release(node, scope)?,
            Act::Wake(wait) => {
                let wait = self.w.waits[wait as usize];
                if wait.sleep != NONE && wait.notify != NONE {
                    self.add(wait.sleep, wait.notify)?;
                }
            }
            _ => {}
        }
        if let Some(x) = self.w.act[node as usize].written() {
            let w = self.w;
            for &reader in &w.variables[x as usize].base_readers {
                if reader != node && self.contains(reader) {
                    self.add(reader, node)?;
                }
            }
        }
        Ok(())
    }

    /// A kept read comes before every write that comes after its writer.
    fn meet_read(&mut self, read: Node, x: u32) -> Result<(), Cycle> {
        let w = self.w;
        let writer = w.saw[read as usize];
        for list in &w.variables[x as usize].writes {
            let bound = self.cut[list.chain as usize];
            let inside = list.nodes.partition_point(|&n| w.place[n as usize] < bound);
            let after = |n: Node| writer == BASE || self.is_before(writer, n);
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
    fn meet_release(&mut self, release: Node, id: u32) -> Result<(), Cycle> {
        let w = self.w;
        let scope = w.scopes[id as usize];
        for list in &w.locks[scope.lock as usize] {
            if list.chain == scope.chain || !list.mode.conflicts_with(scope.mode) {
                continue;
            }
            let inside = self.closed(list.chain, &list.scopes);
            let begins_before =
                |s: u32| scope.acquire == NONE || self.is_before(scope.acquire, w.scopes[s as usize].release);
            let at = list.scopes[..inside].partition_point(|&s| !begins_before(s));
            if let Some(&other) = list.scopes[..inside].get(at) {
                self.add_to_scope(release, other)?;
            }
        }
        Ok(())
    }

    /// How many scopes of a chain's list are closed in the set.
    fn closed(&self, chain: u32, scopes: &[u32]) -> usize {
        let bound = self.cut[chain as usize];
        scopes.partition_point(|&s| {
            let release = self.w.scopes[s as usize].release;
            release != NONE && self.w.place[release as usize] < bound
        })
    }

    fn add_to_scope(&mut self, release: Node, later: u32) -> Result<(), Cycle> {
        match self.w.scopes[later as usize].acquire {
            NONE => Err(Cycle), // Held since before the window: nothing of it can come first.
            acquire => self.add(release, acquire),
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
        let (w, k) = (self.w, self.w.chains);
        let mut row = std::mem::take(&mut self.scratch);
        row.clear();
        row.extend_from_slice(&self.clock[before as usize * k..][..k]);
        let (chain, place) = (w.chain_of[after as usize], w.place[after as usize]);
        for t in 0..k {
            let nodes = &w.chain[t][..self.cut[t] as usize];
            let start = if t == chain as usize {
                place as usize
            } else {
                nodes.partition_point(|&n| self.clock[n as usize * k + chain as usize] <= place)
            };
            for &node in &nodes[start.min(nodes.len())..] {
                let mut changed = false;
                for (u, &value) in row.iter().enumerate() {
                    let at = node as usize * k + u;
                    if self.clock[at] < value {
                        self.set(at, value);
                        changed = true;
                    }
                }
                if !changed {
                    break; // Rows grow along the chain.
                }
                if !matches!(w.act[node as usize], Act::Other) {
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
            self.queued[node as usize] = false;
            let act = self.w.act[node as usize];
            if let (Some(x), true) = (act.read(), self.w.saw[node as usize] != NONE) {
                self.check_read(node, x)?;
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
    fn check_read(&mut self, read: Node, x: u32) -> Result<(), Cycle> {
        let w = self.w;
        let writer = w.saw[read as usize];
        for list in &w.variables[x as usize].writes {
            let mut before = list.nodes.partition_point(|&n| w.place[n as usize] < self.at(read, list.chain));
            if before > 0 && list.nodes[before - 1] == read {
                before -= 1;
            }
            let Some(&rival) = before.checked_sub(1).and_then(|at| list.nodes.get(at)) else { continue };
            if writer == BASE {
                return Err(Cycle);
            }
            if rival != writer {
                self.add(rival, writer)?;
            }
        }
        Ok(())
    }

    /// Every kept read of a write before this one comes before this one.
    fn check_write(&mut self, write: Node, x: u32) -> Result<(), Cycle> {
        let w = self.w;
        for list in &w.variables[x as usize].writes {
            let mut before = list.nodes.partition_point(|&n| w.place[n as usize] < self.at(write, list.chain));
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
    fn check_release(&mut self, release: Node, id: u32) -> Result<(), Cycle> {
        let w = self.w;
        let scope = w.scopes[id as usize];
        for list in &w.locks[scope.lock as usize] {
            if list.chain == scope.chain || !list.mode.conflicts_with(scope.mode) {
                continue;
            }
            let bound = self.at(release, list.chain);
            let began = list.scopes.partition_point(|&s| {
                let acquire = w.scopes[s as usize].acquire;
                acquire == NONE || w.place[acquire as usize] < bound
            });
            let Some(&other) = began.checked_sub(1).and_then(|at| list.scopes.get(at)) else { continue };
            let other_release = w.scopes[other as usize].release;
            if other_release != NONE && self.contains(other_release) {
                self.add_to_scope(other_release, id)?;
            } else if began > 1 {
                // The last one is still open; the one before it is over, and counts.
                self.add_to_scope(w.scopes[list.scopes[began - 2] as usize].release, id)?;
            }
        }
        Ok(())
    }

    /// Closes `target` under all rules, growing the set where open scopes force it.
    ///
    /// Call on a set that contains nothing the target does not need.
    pub(crate) fn close(&mut self, target: &Target) -> Result<(), Cycle> {
        if target.is_contradictory() {
            return Err(Cycle);
        }
        self.grow(&target.cut)?;
        for &(before, after) in &target.edges {
            self.add(before, after)?;
        }
        self.fixpoint(target)
    }

    /// Applies the rules, the goal's wish for a last write and forced growth until nothing changes.
    fn fixpoint(&mut self, target: &Target) -> Result<(), Cycle> {
        loop {
            if let Some((x, last)) = target.last {
                let others: Vec<Node> = self.w.last_writes(x, &self.cut).filter(|&d| d != last).collect();
                for other in others {
                    if last == BASE {
                        return Err(Cycle);
                    }
                    self.add(other, last)?;
                }
            }
            self.saturate()?;
            if !self.grow_open(target)? {
                return Ok(());
            }
        }
    }

    /// Lets the threads run on to the releases of the scopes that are open in the set, where the target allows it; whether
    /// there were any. A choice: on a cycle, nothing is proven.
    pub(crate) fn close_open_scopes(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let mut grown = self.cut.clone();
        for chain in 0..w.chains {
            for &id in w.open_before(chain, self.cut[chain]) {
                let release = w.scopes[id as usize].release;
                if release != NONE && w.past_of(release).iter().zip(&target.stop).all(|(past, stop)| past <= stop) {
                    join(&mut grown, w.past_of(release));
                }
            }
        }
        if grown == self.cut {
            return Ok(false);
        }
        self.grow(&grown)?;
        self.fixpoint(target)?;
        Ok(true)
    }

    /// In `values`: lets the writers happen that the reads of the set saw, where the target allows it; whether there were any.
    /// A choice: on a cycle, nothing is proven.
    pub(crate) fn assume_observed_writers(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let Some(values) = &w.values else { return Ok(false) };
        let mut grown = self.cut.clone();
        for chain in 0..w.chains {
            if let Some(last) = self.cut[chain].checked_sub(1) {
                join(&mut grown, values.seen_past_of(w, w.chain[chain][last as usize]));
            }
        }
        if grown == self.cut || grown.iter().zip(&target.stop).any(|(cut, stop)| cut > stop) {
            return Ok(false);
        }
        self.grow(&grown)?;
        self.fixpoint(target)?;
        Ok(true)
    }

    /// Puts every failed try into the scope that it was observed in, which may make the set grow. A choice: on a cycle,
    /// nothing is proven.
    pub(crate) fn assume_observed_holders(&mut self, target: &Target) -> Result<(), Cycle> {
        let w = self.w;
        if w.busy.is_empty() {
            return Ok(());
        }
        loop {
            let mut grown = self.cut.clone();
            for &(node, holder) in &w.busy {
                let acquire = w.scopes[holder as usize].acquire;
                if acquire != NONE && self.contains(node) {
                    join(&mut grown, w.past_of(acquire));
                }
            }
            if grown.iter().zip(&target.stop).any(|(cut, stop)| cut > stop) {
                return Err(Cycle);
            }
            if grown == self.cut {
                break;
            }
            self.grow(&grown)?;
            self.fixpoint(target)?;
        }
        for &(node, holder) in &w.busy {
            if !self.contains(node) {
                continue;
            }
            let scope = w.scopes[holder as usize];
            if scope.acquire != NONE {
                self.add(scope.acquire, node)?;
            }
            if scope.release != NONE && self.contains(scope.release) {
                self.add(node, scope.release)?;
            }
        }
        self.fixpoint(target)
    }

    /// Open scopes: whether the set had to grow.
    fn grow_open(&mut self, target: &Target) -> Result<bool, Cycle> {
        let w = self.w;
        let mut grown = self.cut.clone();
        let mut edges = Vec::new();
        for chain in 0..w.chains {
            for &id in w.open_before(chain, self.cut[chain]) {
                let scope = w.scopes[id as usize];
                let stays = scope.release == NONE || w.place[scope.release as usize] >= target.stop[chain];
                for list in &w.locks[scope.lock as usize] {
                    if list.chain as usize == chain || !list.mode.conflicts_with(scope.mode) {
                        continue;
                    }
                    let Some((rival, open)) = self.last_scope(list.chain, &list.scopes) else { continue };
                    let rival_scope = w.scopes[rival as usize];
                    let rival_stays = open
                        && (rival_scope.release == NONE
                            || w.place[rival_scope.release as usize] >= target.stop[list.chain as usize]);
                    let rival_end = if open { rival_scope.acquire } else { rival_scope.release };
                    // A rival held since before the window and still open cannot come after anything.
                    let first =
                        scope.acquire == NONE || (rival_end != NONE && self.is_before(scope.acquire, rival_end));
                    if first || rival_stays {
                        if stays {
                            return Err(Cycle);
                        }
                        join(&mut grown, w.past_of(scope.release));
                    } else if stays {
                        // It is last on its lock: every scope of the rival that is over comes before it.
                        let over = self.closed(list.chain, &list.scopes);
                        if let Some(at) = over.checked_sub(1) {
                            edges.push((w.scopes[list.scopes[at] as usize].release, scope.acquire));
                        }
                    }
                }
            }
        }
        if grown.iter().zip(&target.stop).any(|(cut, stop)| cut > stop) {
            return Err(Cycle);
        }
        let mut changed = grown != self.cut;
        if changed {
            self.grow(&grown)?;
        }
        for (before, after) in edges {
            if !self.is_before(before, after) {
                self.add(before, after)?;
                changed = true;
            }
        }
        Ok(changed)
    }

    /// The last scope of a list that has begun in the set, and whether it is still open.
    fn last_scope(&self, chain: u32, scopes: &[u32]) -> Option<(u32, bool)> {
        let bound = self.cut[chain as usize];
        let begun = scopes.partition_point(|&s| {
            let acquire = self.w.scopes[s as usize].acquire;
            acquire == NONE || self.w.place[acquire as usize] < bound
        });
        let id = scopes[begun.checked_sub(1)?];
        let release = self.w.scopes[id as usize].release;
        Some((id, release == NONE || !self.contains(release)))
    }
}
