//! Putting a set of events into an order, observed order first: either a schedule, or what stands in its way.
//!
//! Runs the events below a cut as the rules of SEMANTICS §2 allow, always the one that came first in the trace, within a
//! given partial order. Two steps are never taken because nothing could follow them: a write that would take a value
//! away from a kept read still to come, and an acquire of a lock that will not be released while others still want it.

use super::symbolic::Course;
use super::values::Sight;
use super::window::{Act, BASE, NONE, Node, Window};
use crate::goal::Model;
use portent_trace::Mode;
use rustc_hash::FxHashMap;

/// A partial order on the nodes of a window: for each node and chain, how many events of the chain come before it.
pub(crate) struct Order<'a> {
    pub rows: &'a [u32],
    /// Length of a row; at least the number of chains.
    pub stride: usize,
}

impl Order<'_> {
    #[inline]
    fn row(&self, node: Node) -> &[u32] {
        &self.rows[node as usize * self.stride..][..self.stride]
    }
}

/// Why an event could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Obstacle {
    /// Two scopes of one lock are not ordered.
    Scopes(u32, u32),
    /// A kept read, the write it is to see, and another write of its variable are not ordered.
    FromRead(Node, u32, Node),
    /// A failed try found nobody holding the lock.
    Busy(Node),
    /// In `values`: a read that matters does not see what it expects.
    Changed(Node),
    /// In `values`: a write is relied on, and this read before it does not see what it expects.
    Spoiled(Node, Node),
}

/// In `values`: what reads that have a choice are to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    saw: FxHashMap<Node, u32>,
    readers: FxHashMap<u32, Vec<Node>>,
    base_readers: FxHashMap<u32, Vec<Node>>,
}

impl Chosen {
    pub(crate) fn clear(&mut self) {
        self.saw.clear();
        self.readers.clear();
        self.base_readers.clear();
    }
    /// The read is to see the write (or [`BASE`]), unless it has something to see already.
    pub(crate) fn choose(&mut self, w: &Window<'_>, read: Node, writer: u32) {
        let Some(x) = w.act[read as usize].read() else { return };
        if w.saw[read as usize] != NONE || self.saw.contains_key(&read) {
            return;
        }
        self.saw.insert(read, writer);
        match writer {
            BASE => self.base_readers.entry(x).or_default().push(read),
            writer => self.readers.entry(writer).or_default().push(read),
        }
    }
}

/// How many obstacles are worth finding at once.
const ENOUGH: usize = 256;

#[derive(Clone, Default)]
pub(crate) struct Simulator {
    position: Vec<u32>,
    /// Per lock: the scopes held now.
    held: Vec<Vec<u32>>,
    /// Per lock: exclusive and shared scopes still to be taken.
    left: Vec<[u32; 2]>,
    /// Per variable: the last write, and how many kept reads still wait for its value.
    last: Vec<u32>,
    waiting: Vec<u32>,
    order: Vec<Node>,
    obstacles: Vec<Obstacle>,
    /// Used by the next run.
    pub chosen: Chosen,
}

impl Simulator {
    /// What a read is to see; [`NONE`] if anything.
    #[inline]
    fn saw(&self, w: &Window<'_>, node: Node) -> u32 {
        match w.saw[node as usize] {
            NONE if w.values.is_some() => self.chosen.saw.get(&node).copied().unwrap_or(NONE),
            writer => writer,
        }
    }
    /// The reads that are to see a write (or [`BASE`]) of a variable.
    fn readers<'a>(&'a self, w: &'a Window<'_>, x: u32, writer: u32) -> impl Iterator<Item = Node> + 'a {
        let (fixed, chosen) = match writer {
            BASE => (Some(&w.variables[x as usize].base_readers), self.chosen.base_readers.get(&x)),
            writer => (w.readers.get(&writer), self.chosen.readers.get(&writer)),
        };
        fixed.into_iter().chain(chosen).flatten().copied()
    }

    /// Orders everything from `floor` (a lock-free cut, or nothing) to `cut`; `Err` lists obstacles, none of which is
    /// settled by `order`.
    ///
    /// Gives up at the first state where nothing can go on, unless `obstinate`: then it takes an event all the same and goes
    /// on, to find many obstacles at once.
    ///
    /// On success, [`Simulator::order`] is the schedule and [`Simulator::last_write`] the final state.
    pub(crate) fn run(
        &mut self,
        w: &Window<'_>,
        order: &Order<'_>,
        floor: &[u32],
        cut: &[u32],
        obstinate: bool,
    ) -> Result<(), &[Obstacle]> {
        self.reset(w, floor, cut);
        let total: u32 = cut[..w.chains].iter().sum::<u32>() - floor.iter().sum::<u32>();
        self.follow_the_trace(w, order, floor, cut);
        while (self.order.len() as u32) < total {
            let mut best = NONE;
            for chain in 0..w.chains {
                if self.position[chain] < cut[chain] {
                    let node = w.chain[chain][self.position[chain] as usize];
                    if node < best && self.is_ready(w, order, node) && self.obstacle(w, cut, node).is_none() {
                        best = node;
                    }
                }
            }
            if best == NONE {
                best = self.collect_obstacles(w, order, cut);
                if !obstinate || best == NONE || self.obstacles.len() > ENOUGH {
                    return Err(&self.obstacles);
                }
            }
            self.take(w, cut, best);
        }
        if self.obstacles.is_empty() { Ok(()) } else { Err(&self.obstacles) }
    }

    /// Takes events in observed order as long as that works: what the general loop would do, without asking every chain.
    fn follow_the_trace(&mut self, w: &Window<'_>, order: &Order<'_>, floor: &[u32], cut: &[u32]) {
        let starts = w.chain.iter().zip(floor).filter_map(|(chain, &at)| chain.get(at as usize));
        let first = starts.min().copied().unwrap_or(0);
        for node in first..w.len() as u32 {
            let (chain, place) = (w.chain_of[node as usize] as usize, w.place[node as usize]);
            if place < floor[chain] || place >= cut[chain] {
                continue;
            }
            if !self.is_ready(w, order, node) || self.obstacle(w, cut, node).is_some() {
                return;
            }
            self.take(w, cut, node);
        }
    }

    /// The events in the order they were taken.
    pub(crate) fn order(&self) -> &[Node] {
        &self.order
    }
    /// How many events of a chain have happened.
    pub(super) fn position(&self, chain: usize) -> u32 {
        self.position[chain]
    }
    /// The last write of a variable, or [`BASE`].
    pub(crate) fn last_write(&self, variable: u32) -> u32 {
        self.last[variable as usize]
    }
    /// The scopes of a lock held at the end.
    pub(crate) fn held(&self, lock: u32) -> &[u32] {
        &self.held[lock as usize]
    }

    fn reset(&mut self, w: &Window<'_>, floor: &[u32], cut: &[u32]) {
        self.order.clear();
        self.obstacles.clear();
        self.position.clear();
        self.position.extend_from_slice(floor);
        self.held.iter_mut().for_each(Vec::clear);
        self.held.resize(w.locks.len(), Vec::new());
        self.left.clear();
        self.left.resize(w.locks.len(), [0; 2]);
        for (lock, lists) in w.locks.iter().enumerate() {
            for list in lists {
                let begun = |bound: u32| {
                    list.scopes.partition_point(|&s| {
                        let acquire = w.scopes[s as usize].acquire;
                        acquire == NONE || w.place[acquire as usize] < bound
                    }) as u32
                };
                let (before, after) = (begun(floor[list.chain as usize]), begun(cut[list.chain as usize]));
                self.left[lock][list.mode as usize] += after - before;
                // At a floor above 0 nothing is held; at 0 only what was held before the window.
                if let Some(&first) = list.scopes.first()
                    && w.scopes[first as usize].acquire == NONE
                    && floor[list.chain as usize] == 0
                {
                    self.held[lock].push(first);
                }
            }
        }
        self.last.clear();
        self.last.resize(w.variables.len(), BASE);
        self.waiting.clear();
        match w.model {
            // What counts as last above the floor is enough: the goal's writes are above it.
            Model::Sync => self.waiting.resize(w.variables.len(), 0),
            Model::Reads | Model::Values => {
                for x in 0..w.variables.len() as u32 {
                    let waiting = self.readers(w, x, BASE).filter(|&read| is_inside(w, cut, read)).count();
                    self.waiting.push(waiting as u32);
                }
            }
        }
    }

    /// Whether everything ordered before the node has happened.
    #[inline]
    fn is_ready(&self, w: &Window<'_>, order: &Order<'_>, node: Node) -> bool {
        let own = w.chain_of[node as usize] as usize;
        let row = order.row(node);
        (0..w.chains).all(|chain| chain == own || row[chain] <= self.position[chain])
    }

    /// What keeps a ready node from happening now.
    fn obstacle(&self, w: &Window<'_>, cut: &[u32], node: Node) -> Option<Obstacle> {
        let act = w.act[node as usize];
        match act {
            Act::Read(x) | Act::Update(x) if self.saw(w, node) != NONE => {
                let (last, saw) = (self.last[x as usize], self.saw(w, node));
                if last != saw {
                    // Ready, so its writer has happened: somebody has overwritten it.
                    return Some(Obstacle::FromRead(node, saw, last));
                }
                if let Act::Update(_) = act
                    && self.waiting[x as usize] > 1
                {
                    return self
                        .pending_reader(w, cut, x, node)
                        .map(|b| Obstacle::FromRead(b, self.last[x as usize], node));
                }
                None
            }
            Act::Write(x) | Act::Update(x) if self.waiting[x as usize] > 0 => {
                self.pending_reader(w, cut, x, node).map(|b| Obstacle::FromRead(b, self.last[x as usize], node))
            }
            Act::Acquire(scope) => self.lock_obstacle(w, cut, scope),
            Act::Busy(lock, mode) => {
                let chain = w.chain_of[node as usize];
                let holds =
                    |s: &u32| w.scopes[*s as usize].chain != chain && w.scopes[*s as usize].mode.conflicts_with(mode);
                (!self.held[lock as usize].iter().any(holds)).then_some(Obstacle::Busy(node))
            }
            Act::Wake(wait) => {
                // Its notify has happened; order wants its sleep before that.
                debug_assert!(w.waits[wait as usize].wake == node);
                None
            }
            _ => None,
        }
    }

    fn pending_reader(&self, w: &Window<'_>, cut: &[u32], x: u32, not: Node) -> Option<Node> {
        let last = self.last[x as usize];
        self.readers(w, x, last).find(|&b| b != not && is_inside(w, cut, b) && !self.has_happened(w, b))
    }

    pub(super) fn has_happened(&self, w: &Window<'_>, node: Node) -> bool {
        w.place[node as usize] < self.position[w.chain_of[node as usize] as usize]
    }

    fn lock_obstacle(&self, w: &Window<'_>, cut: &[u32], id: u32) -> Option<Obstacle> {
        let scope = w.scopes[id as usize];
        let in_the_way = |s: &&u32| {
            let other = w.scopes[**s as usize];
            other.chain != scope.chain && other.mode.conflicts_with(scope.mode)
        };
        if let Some(&holder) = self.held[scope.lock as usize].iter().find(in_the_way) {
            return Some(Obstacle::Scopes(holder, id));
        }
        let stays_open = scope.release == NONE || !is_inside(w, cut, scope.release);
        let left = self.left[scope.lock as usize];
        let rivals = match scope.mode {
            Mode::Exclusive => left[0] + left[1] > 1,
            Mode::Shared => left[0] > 0,
        };
        if !(stays_open && rivals) {
            return None;
        }
        let lists =
            w.locks[scope.lock as usize].iter().filter(|l| l.chain != scope.chain && l.mode.conflicts_with(scope.mode));
        let to_come = lists.flat_map(|l| &l.scopes).find(|&&s| {
            let acquire = w.scopes[s as usize].acquire;
            acquire != NONE && is_inside(w, cut, acquire) && !self.has_happened(w, acquire)
        });
        to_come.map(|&other| Obstacle::Scopes(id, other))
    }

    fn take(&mut self, w: &Window<'_>, cut: &[u32], node: Node) {
        let act = w.act[node as usize];
        if let Some(x) = act.read()
            && self.last[x as usize] == self.saw(w, node)
        {
            self.waiting[x as usize] -= 1;
        }
        self.step(w, node);
        match act {
            Act::Write(x) | Act::Update(x) => {
                let waiting = self.readers(w, x, node).filter(|&read| is_inside(w, cut, read)).count();
                self.waiting[x as usize] = waiting as u32;
            }
            Act::Acquire(id) => {
                let scope = w.scopes[id as usize];
                self.left[scope.lock as usize][scope.mode as usize] -= 1;
            }
            _ => {}
        }
    }

    /// Whether a node may happen now as far as what it reads is concerned, whatever may follow.
    pub(super) fn keeps_read(&self, w: &Window<'_>, course: Option<&mut Course<'_, '_>>, node: Node) -> bool {
        if let Some(course) = course.filter(|_| w.is_guarded(node)) {
            return !course.would_fail(node);
        }
        let branches = w.values.as_deref().filter(|values| values.branches);
        match w.act[node as usize] {
            _ if let Some(values) = branches => {
                let own = w.chain_of[node as usize] as usize;
                !w.is_branch(node) || !Sight::along(w, values, self.order.iter().copied()).is_spoiled(own)
            }
            Act::Read(x) | Act::Update(x) => match &w.values {
                Some(values) => values.is_as_good(w, node, self.last[x as usize]),
                None => w.saw[node as usize] == NONE || self.last[x as usize] == w.saw[node as usize],
            },
            _ => true,
        }
    }

    pub(super) fn step(&mut self, w: &Window<'_>, node: Node) {
        self.position[w.chain_of[node as usize] as usize] += 1;
        self.order.push(node);
        match w.act[node as usize] {
            Act::Write(x) | Act::Update(x) => self.last[x as usize] = node,
            Act::Acquire(id) => self.held[w.scopes[id as usize].lock as usize].push(id),
            Act::Release(id) => self.held[w.scopes[id as usize].lock as usize].retain(|&s| s != id),
            _ => {}
        }
    }

    /// Notes what keeps the ready events from happening; the first of them.
    #[cold]
    fn collect_obstacles(&mut self, w: &Window<'_>, order: &Order<'_>, cut: &[u32]) -> Node {
        let mut first = NONE;
        for chain in 0..w.chains {
            if self.position[chain] < cut[chain] {
                let node = w.chain[chain][self.position[chain] as usize];
                if self.is_ready(w, order, node) {
                    self.obstacles.extend(self.obstacle(w, cut, node));
                    first = first.min(node);
                }
            }
        }
        first
    }
}

#[inline]
fn is_inside(w: &Window<'_>, cut: &[u32], node: Node) -> bool {
    w.place[node as usize] < cut[w.chain_of[node as usize] as usize]
}
