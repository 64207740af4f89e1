//! Putting a set of events into an order, observed order first: either a schedule, or what stands in its way.
//!
//! Runs the events below a cut as the rules of docs/src/internals/semantics.md §2 allow, always the one that came first in the trace, within a
//! given partial order. Two steps are never taken because nothing could follow them: a write that would take a value
//! away from a kept read still to come, and an acquire of a lock that will not be released while others still want it.

use super::counts::Need;
use super::index::{Chain, IndexVec, Lock, Node, Place, ScopeId, Semaphore, Source, Variable};
use super::rows::{Cut, Rows};
use super::sleeps::Asleep;
use super::symbolic::Evaluation;
use super::target::Finds;
use super::values::Sight;
use super::window::{Act, Window};
use crate::read_rule::ReadRule;
use portent_trace::Mode;
use rustc_hash::FxHashMap;

/// Why an event could not be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Obstacle {
    /// Two scopes of one lock are not ordered.
    Scopes(ScopeId, ScopeId),
    /// A kept read, the write it is to see, and another write of its variable are not ordered.
    FromRead(Node, Source, Node),
    /// A read is to see a write that has not happened, where the order does not say that it comes first.
    NotWritten(Node),
    /// A failed try found nobody holding the lock.
    Busy(Node),
    /// A semaphore is at zero, or at more than that for a failed try; or a condition does not let it wake so. [`Simulator::elsewhere`] has
    /// orders of that number, of which one would have to hold.
    Needs(Node, u32),
    /// In `values`: a read that matters does not see what it expects.
    Changed(Node),
    /// In `values`: a write is relied on, and this read before it does not see what it expects.
    Tainted(Node, Node),
}

/// In `values`: what reads that have a choice are to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    saw: FxHashMap<Node, Source>,
    readers: FxHashMap<Node, Vec<Node>>,
    base_readers: FxHashMap<Variable, Vec<Node>>,
}

impl Chosen {
    pub(crate) fn clear(&mut self) {
        self.saw.clear();
        self.readers.clear();
        self.base_readers.clear();
    }
    /// The read is to see that, unless it has something to see already.
    pub(crate) fn choose(&mut self, w: &Window<'_>, read: Node, source: Source) {
        let Some(x) = w.act[read].read() else { return };
        if w.saw[read].is_some() || self.saw.contains_key(&read) {
            return;
        }
        self.saw.insert(read, source);
        match source {
            Source::Base => self.base_readers.entry(x).or_default().push(read),
            Source::Write(writer) => self.readers.entry(writer).or_default().push(read),
        }
    }
}

/// How many obstacles are worth finding at once.
const ENOUGH: usize = 256;

/// How many scopes of a lock are still to be taken.
#[derive(Clone, Copy, Default)]
struct Left {
    exclusive: usize,
    shared: usize,
}

impl Left {
    fn of(&mut self, mode: Mode) -> &mut usize {
        match mode {
            Mode::Exclusive => &mut self.exclusive,
            Mode::Shared => &mut self.shared,
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Simulator {
    /// What has happened.
    position: Cut,
    /// The scopes held now.
    held: IndexVec<Lock, Vec<ScopeId>>,
    /// Scopes still to be taken.
    left: IndexVec<Lock, Left>,
    /// What the semaphores count.
    counts: IndexVec<Semaphore, i64>,
    /// Who sleeps on the conditions.
    pub(super) asleep: Asleep,
    /// The last write, and how many kept reads still wait for its value.
    last: IndexVec<Variable, Source>,
    waiting: IndexVec<Variable, usize>,
    order: Vec<Node>,
    obstacles: Vec<Obstacle>,
    /// For each obstacle that is a count or a condition, where other threads would have to be.
    elsewhere: Vec<Vec<(Node, Node)>>,
    /// Used by the next run.
    pub chosen: Chosen,
}

impl Simulator {
    /// What a read is to see; `None` if anything.
    #[inline]
    fn saw(&self, w: &Window<'_>, node: Node) -> Option<Source> {
        match w.saw[node] {
            None if w.values.is_some() => self.chosen.saw.get(&node).copied(),
            source => source,
        }
    }
    /// The reads that are to see what a variable holds.
    fn readers<'a>(&'a self, w: &'a Window<'_>, x: Variable, source: Source) -> impl Iterator<Item = Node> + 'a {
        let (fixed, chosen) = match source {
            Source::Base => (Some(&w.variables[x].base_readers), self.chosen.base_readers.get(&x)),
            Source::Write(writer) => (w.readers.get(&writer), self.chosen.readers.get(&writer)),
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
        order: &Rows,
        floor: &Cut,
        cut: &Cut,
        obstinate: bool,
    ) -> Result<(), &[Obstacle]> {
        self.reset(w, floor, cut);
        let total = cut.total() - floor.total();
        self.follow_the_trace(w, order, floor, cut);
        while self.order.len() < total {
            let mut best: Option<Node> = None;
            for chain in w.chains() {
                if self.position[chain] < cut[chain] {
                    let node = w.chain[chain][self.position[chain]];
                    if best.is_none_or(|best| node < best)
                        && self.is_ready(w, order, node)
                        && self.obstacle(w, cut, node).is_none()
                    {
                        best = Some(node);
                    }
                }
            }
            let next = match best {
                Some(best) => best,
                None => match self.collect_obstacles(w, order, cut) {
                    Some(first) if obstinate && self.obstacles.len() <= ENOUGH => first,
                    _ => return Err(&self.obstacles),
                },
            };
            self.take(w, cut, next);
        }
        if self.obstacles.is_empty() { Ok(()) } else { Err(&self.obstacles) }
    }

    /// Takes events in observed order as long as that works: what the general loop would do, without asking every chain.
    fn follow_the_trace(&mut self, w: &Window<'_>, order: &Rows, floor: &Cut, cut: &Cut) {
        let starts = w.chain.iter().zip(floor.iter()).filter_map(|(chain, &at)| chain.get(at));
        let first = starts.min().copied().unwrap_or(Node::FIRST);
        for node in w.nodes_from(first) {
            let (chain, place) = (w.chain_of[node], w.place[node]);
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
    /// Where a chain goes on.
    pub(super) fn position(&self, chain: Chain) -> Place {
        self.position[chain]
    }
    /// The last write of a variable.
    pub(crate) fn last_write(&self, variable: Variable) -> Source {
        self.last[variable]
    }
    /// The scopes of a lock held at the end.
    pub(crate) fn held(&self, lock: Lock) -> &[ScopeId] {
        &self.held[lock]
    }

    /// Whether a chain finds what it is to find where the order stops.
    pub(super) fn finds(&self, w: &Window<'_>, finds: Finds) -> bool {
        match finds {
            Finds::Count(_, _, semaphore, need) => self.has_count(semaphore, need),
            Finds::Woken(wait) => self.asleep.can_wake(w, wait),
            Finds::Asleep(wait) => self.asleep.can_leave(w, wait),
        }
    }
    /// Orders of which one must hold for it to find that, where it does not.
    pub(super) fn to_find(&self, w: &Window<'_>, finds: Finds, z: Node) -> Vec<(Node, Node)> {
        match finds {
            Finds::Count(chain, _, semaphore, need) => {
                w.counters[semaphore].elsewhere(w, need, &self.position, chain, z)
            }
            Finds::Woken(wait) => self.why_not_woken(w, wait, z),
            Finds::Asleep(wait) => self.why_not_asleep(w, wait, z),
        }
    }
    /// Whether the count of a semaphore lets a node happen.
    #[inline]
    pub(super) fn has_count(&self, semaphore: Semaphore, need: Need) -> bool {
        need.is_met(self.counts[semaphore])
    }
    /// Orders of which one must hold for an obstacle to be none.
    pub(super) fn elsewhere(&self, number: u32) -> &[(Node, Node)] {
        self.elsewhere.get(number as usize).map_or(&[], Vec::as_slice)
    }
    /// Where the chains are.
    pub(super) fn positions(&self) -> &Cut {
        &self.position
    }

    fn reset(&mut self, w: &Window<'_>, floor: &Cut, cut: &Cut) {
        self.order.clear();
        self.obstacles.clear();
        self.elsewhere.clear();
        self.position.copy_from(floor);
        self.held.iter_mut().for_each(Vec::clear);
        self.held.resize(w.locks.len(), Vec::new());
        self.left.refill(Left::default(), w.locks.len());
        for (lock, lists) in w.locks.entries() {
            for list in lists {
                let begun = |bound: Place| list.scopes.partition_point(|&s| w.begins_before(s, bound));
                let (before, after) = (begun(floor[list.chain]), begun(cut[list.chain]));
                *self.left[lock].of(list.mode) += after - before;
                // At a floor above 0 nothing is held; at 0 only what was held before the window.
                if let Some(&first) = list.scopes.first()
                    && w.scopes[first].acquire.is_none()
                    && floor[list.chain] == Place::START
                {
                    self.held[lock].push(first);
                }
            }
        }
        // There is no operation on a semaphore below a floor.
        self.counts = w.counters.iter().map(|counter| counter.base).collect();
        // Nor on a condition.
        if !w.conditions.is_empty() {
            self.asleep = Asleep::start(w);
        }
        self.last.refill(Source::Base, w.variables.len());
        match w.rule {
            // What counts as last above the floor is enough: the goal's writes are above it.
            ReadRule::AnyWrite => self.waiting.refill(0, w.variables.len()),
            _ => {
                let waiting = |x| self.readers(w, x, Source::Base).filter(|&read| w.is_in(cut, read)).count();
                self.waiting = w.variables.ids().map(waiting).collect();
            }
        }
    }

    /// Whether everything ordered before the node has happened.
    #[inline]
    fn is_ready(&self, w: &Window<'_>, order: &Rows, node: Node) -> bool {
        let own = w.chain_of[node];
        let row = order.row(node);
        w.chains().all(|chain| chain == own || row[chain] <= self.position[chain])
    }

    /// What keeps a ready node from happening now.
    fn obstacle(&self, w: &Window<'_>, cut: &Cut, node: Node) -> Option<Obstacle> {
        let act = w.act[node];
        match act {
            Act::Read(x) | Act::Update(x) if let Some(saw) = self.saw(w, node) => {
                match self.last[x] {
                    last if last == saw => {}
                    Source::Base => return Some(Obstacle::NotWritten(node)),
                    Source::Write(last) => return Some(Obstacle::FromRead(node, saw, last)),
                }
                if let Act::Update(_) = act
                    && self.waiting[x] > 1
                {
                    return self.pending_reader(w, cut, x, node).map(|b| Obstacle::FromRead(b, self.last[x], node));
                }
                None
            }
            Act::Write(x) | Act::Update(x) if self.waiting[x] > 0 => {
                self.pending_reader(w, cut, x, node).map(|b| Obstacle::FromRead(b, self.last[x], node))
            }
            Act::Acquire(scope) => self.lock_obstacle(w, cut, scope),
            Act::Busy(lock, mode) => {
                let chain = w.chain_of[node];
                let holds = |&s: &ScopeId| w.scopes[s].chain != chain && w.scopes[s].mode.conflicts_with(mode);
                (!self.held[lock].iter().any(holds)).then_some(Obstacle::Busy(node))
            }
            Act::Wait(_) | Act::Empty(_) => {
                let (semaphore, need) = act.needs_count()?;
                (!self.has_count(semaphore, need)).then_some(Obstacle::Needs(node, 0))
            }
            Act::Wake(_) | Act::Leave(_) => (!self.asleep.allows(w, node)).then_some(Obstacle::Needs(node, 0)),
            _ => None,
        }
    }

    fn pending_reader(&self, w: &Window<'_>, cut: &Cut, x: Variable, not: Node) -> Option<Node> {
        let last = self.last[x];
        self.readers(w, x, last).find(|&b| b != not && w.is_in(cut, b) && !self.has_happened(w, b))
    }

    pub(super) fn has_happened(&self, w: &Window<'_>, node: Node) -> bool {
        w.is_in(&self.position, node)
    }

    fn lock_obstacle(&self, w: &Window<'_>, cut: &Cut, id: ScopeId) -> Option<Obstacle> {
        let scope = w.scopes[id];
        let in_the_way = |s: &&ScopeId| {
            let other = w.scopes[**s];
            other.chain != scope.chain && other.mode.conflicts_with(scope.mode)
        };
        if let Some(&holder) = self.held[scope.lock].iter().find(in_the_way) {
            return Some(Obstacle::Scopes(holder, id));
        }
        let stays_open = w.is_open_at(&scope, cut[scope.chain]);
        let left = self.left[scope.lock];
        let rivals = match scope.mode {
            Mode::Exclusive => left.exclusive + left.shared > 1,
            Mode::Shared => left.exclusive > 0,
        };
        if !(stays_open && rivals) {
            return None;
        }
        let lists = w.locks[scope.lock].iter().filter(|l| l.chain != scope.chain && l.mode.conflicts_with(scope.mode));
        let to_come = lists.flat_map(|l| &l.scopes).find(|&&s| {
            w.scopes[s].acquire.is_some_and(|acquire| w.is_in(cut, acquire) && !self.has_happened(w, acquire))
        });
        to_come.map(|&other| Obstacle::Scopes(id, other))
    }

    fn take(&mut self, w: &Window<'_>, cut: &Cut, node: Node) {
        let act = w.act[node];
        if let Some(x) = act.read()
            && Some(self.last[x]) == self.saw(w, node)
        {
            self.waiting[x] -= 1;
        }
        self.step(w, node);
        match act {
            Act::Write(x) | Act::Update(x) => {
                let readers = self.readers(w, x, Source::Write(node));
                self.waiting[x] = readers.filter(|&read| w.is_in(cut, read)).count();
            }
            Act::Acquire(id) => {
                let scope = w.scopes[id];
                *self.left[scope.lock].of(scope.mode) -= 1;
            }
            _ => {}
        }
    }

    /// Whether a node may happen now as far as what it reads is concerned, whatever may follow.
    pub(super) fn keeps_read(&self, w: &Window<'_>, evaluation: Option<&mut Evaluation<'_, '_>>, node: Node) -> bool {
        if let Some(evaluation) = evaluation.filter(|_| w.is_guarded(node)) {
            return !evaluation.would_fail(node);
        }
        let tainting = w.values.as_deref().filter(|_| w.rule.taints());
        match w.act[node] {
            _ if let Some(values) = tainting => {
                let own = w.chain_of[node];
                !w.is_branch(node) || !Sight::along(w, values, self.order.iter().copied()).is_tainted(own)
            }
            Act::Read(x) | Act::Update(x) => match &w.values {
                Some(values) => values.is_as_good(w, node, self.last[x]),
                None => w.saw[node].is_none_or(|saw| self.last[x] == saw),
            },
            _ => true,
        }
    }

    pub(super) fn step(&mut self, w: &Window<'_>, node: Node) {
        let position = &mut self.position[w.chain_of[node]];
        *position = position.next();
        self.order.push(node);
        match w.act[node] {
            Act::Write(x) | Act::Update(x) => self.last[x] = Source::Write(node),
            Act::Acquire(id) => self.held[w.scopes[id].lock].push(id),
            Act::Release(id) => self.held[w.scopes[id].lock].retain(|&s| s != id),
            Act::Post(s) => self.counts[s] += 1,
            Act::Wait(s) => self.counts[s] -= 1,
            Act::Sleep(_) | Act::Notify(..) | Act::Wake(_) | Act::Leave(_) => self.asleep.note(w, node),
            _ => {}
        }
    }

    /// Notes what keeps the ready events from happening; the first of them.
    #[cold]
    fn collect_obstacles(&mut self, w: &Window<'_>, order: &Rows, cut: &Cut) -> Option<Node> {
        let mut first: Option<Node> = None;
        for chain in w.chains() {
            if self.position[chain] < cut[chain] {
                let node = w.chain[chain][self.position[chain]];
                if self.is_ready(w, order, node) {
                    let mut obstacle = self.obstacle(w, cut, node);
                    if let Some(Obstacle::Needs(_, number)) = &mut obstacle {
                        *number = self.elsewhere.len() as u32;
                        let orders = match w.act[node].needs_count() {
                            Some((semaphore, need)) => {
                                Some(w.counters[semaphore].elsewhere(w, need, &self.position, chain, node))
                            }
                            None => self.not_asleep_so(w, node),
                        };
                        match orders {
                            Some(orders) => self.elsewhere.push(orders),
                            None => obstacle = None,
                        }
                    }
                    self.obstacles.extend(obstacle);
                    first = Some(first.map_or(node, |first| first.min(node)));
                }
            }
        }
        first
    }
}
