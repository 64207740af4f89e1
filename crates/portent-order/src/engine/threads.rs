//! The threads of a window while a guess executes them: how far they are, what they hold, and what can happen next.
//!
//! An event happens only if docs/src/internals/semantics.md §2 lets it, and looks one step ahead: a read waits until what it would see lets the
//! conditions that it settles come out as in the trace; a lock that is to stay held is taken when nobody else needs
//! it any more, and any other only if the thread, alone, would come to no read that waits; a write that is to be the last
//! of its variable waits for the others. The latter two are caution, and given up when nothing else can happen.

use super::index::{Chain, IndexVec, Lock, Node, Place, ScopeId, Semaphore, Source, Variable};
use super::rows::Cut;
use super::sleeps::Asleep;
use super::symbolic::Evaluation;
use super::target::Target;
use super::window::{Act, Window};
use portent_trace::Mode;

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caution {
    /// What leads to nothing that has to wait.
    Full,
    /// Locks, also where a read behind them will have to wait.
    Locks,
    /// Reads of threads that the target does not need, though these will get no further than to the end of their scopes.
    Reads,
}

impl Caution {
    pub(super) const LESS_AND_LESS: [Caution; 3] = [Caution::Full, Caution::Locks, Caution::Reads];
}

/// How many events of a scope are looked at before its lock is taken.
const AHEAD: usize = 32;

#[derive(Clone)]
pub(super) struct Threads<'w, 't> {
    w: &'w Window<'t>,
    pub evaluation: Evaluation<'w, 't>,
    pub position: Cut,
    pub order: Vec<Node>,
    /// The scopes held now.
    held: IndexVec<Lock, Vec<ScopeId>>,
    /// What the semaphores count.
    counts: IndexVec<Semaphore, i64>,
    /// Who sleeps on the conditions, and who did before each event that was done to one.
    asleep: Asleep,
    slept: Vec<Asleep>,
    /// The variable, and what it holds, that the next event of a chain does not want to see.
    pub refused: IndexVec<Chain, Option<(Variable, Source)>>,
    /// Whether the next event of a chain will never happen.
    pub over: IndexVec<Chain, bool>,
}

impl<'w, 't> Threads<'w, 't> {
    pub(super) fn new(w: &'w Window<'t>, evaluation: Evaluation<'w, 't>) -> Self {
        let mut held: IndexVec<Lock, Vec<ScopeId>> = IndexVec::repeat(Vec::new(), w.locks.len());
        for (id, scope) in w.scopes.entries().filter(|(_, scope)| scope.acquire.is_none()) {
            held[scope.lock].push(id);
        }
        Threads {
            w,
            evaluation,
            position: w.nothing(),
            order: Vec::new(),
            held,
            counts: w.counters.iter().map(|counter| counter.base).collect(),
            asleep: Asleep::start(w),
            slept: Vec::new(),
            refused: IndexVec::repeat(None, w.chain.len()),
            over: IndexVec::repeat(false, w.chain.len()),
        }
    }

    /// Takes events back until so many are left.
    pub(super) fn back_to(&mut self, kept: usize) {
        while self.order.len() > kept {
            let Some(node) = self.order.pop() else { break };
            self.evaluation.take_back();
            self.position[self.w.chain_of[node]] = self.w.place[node];
            match self.w.act[node] {
                Act::Acquire(id) => self.give_back(id),
                Act::Release(id) => self.held[self.w.scopes[id].lock].push(id),
                Act::Post(s) => self.counts[s] -= 1,
                Act::Wait(s) => self.counts[s] += 1,
                Act::Sleep(_) | Act::Notify(..) | Act::Wake(_) | Act::Leave(_) => {
                    self.asleep = self.slept.pop().unwrap_or_default();
                }
                _ => {}
            }
        }
        self.reconsider();
    }
    /// Forgets who waits for what.
    fn reconsider(&mut self) {
        self.refused.fill(None);
        self.over.fill(false);
    }

    /// Takes events that are known to be possible.
    pub(super) fn redo(&mut self, events: &[Node]) {
        for &node in events {
            self.evaluation.execute(node);
            self.note(node);
        }
        self.reconsider();
    }

    /// Takes what can be taken of an order.
    pub(super) fn follow(&mut self, target: &Target, order: &[Node]) {
        for &node in order {
            let (chain, place) = (self.w.chain_of[node], self.w.place[node]);
            if place == self.position[chain] && place < target.stop[chain] && !self.over[chain] {
                let _ = Caution::LESS_AND_LESS.iter().any(|&caution| self.take(target, node, caution));
            }
        }
        self.reconsider();
    }

    /// Whether a node, the next of its chain, can happen now, and has.
    pub(super) fn take(&mut self, target: &Target, node: Node, caution: Caution) -> bool {
        let (w, act, chain) = (self.w, self.w.act[node], self.w.chain_of[node]);
        let place = self.position[chain];
        let possible = match caution {
            Caution::Full => self.refused[chain].is_none_or(|(x, last)| self.evaluation.last_write(x) != last),
            Caution::Locks => matches!(act, Act::Acquire(_)),
            Caution::Reads => {
                act.read().is_some() && place >= target.cut[chain] && target.stop[chain] == w.chain[chain].end()
            }
        };
        if !possible || !self.is_ready(target, node) || !self.is_free(target, node) || !self.is_in_time(target, node) {
            return false;
        }
        if let (Caution::Full, Act::Acquire(id)) = (caution, act)
            && let Some(x) = self.would_wait(target, node, id)
        {
            self.refused[chain] = Some((x, self.evaluation.last_write(x)));
            return false;
        }
        let bound = match caution {
            Caution::Reads => {
                // To the end of its scopes: without end if one of them has none.
                let mut ends = w.open_before(chain, place).iter().map(|&s| w.scopes[s].release);
                ends.try_fold(Place::START, |bound, end| Some(bound.max(w.place[end?])))
            }
            _ => Some(bound(w, target, chain)),
        };
        if !self.evaluation.attempt(node, bound) {
            match act.read() {
                Some(x) => self.refused[chain] = Some((x, self.evaluation.last_write(x))),
                None => self.over[chain] = true,
            }
            return false;
        }
        self.refused[chain] = None;
        self.note(node);
        true
    }

    fn note(&mut self, node: Node) {
        self.position[self.w.chain_of[node]] = self.w.place[node].next();
        match self.w.act[node] {
            Act::Acquire(id) => self.held[self.w.scopes[id].lock].push(id),
            Act::Release(id) => self.give_back(id),
            Act::Post(s) => self.counts[s] += 1,
            Act::Wait(s) => self.counts[s] -= 1,
            Act::Sleep(_) | Act::Notify(..) | Act::Wake(_) | Act::Leave(_) => {
                self.slept.push(self.asleep.clone());
                self.asleep.note(self.w, node);
            }
            _ => {}
        }
        self.order.push(node);
    }
    fn give_back(&mut self, id: ScopeId) {
        self.held[self.w.scopes[id].lock].retain(|&s| s != id);
    }

    fn has_happened(&self, node: Node) -> bool {
        self.w.is_in(&self.position, node)
    }

    /// Whether what must come before a node has happened.
    fn is_ready(&self, target: &Target, node: Node) -> bool {
        let (past, own) = (self.w.past_of(node), self.w.chain_of[node]);
        self.w.chains().all(|chain| chain == own || past[chain] <= self.position[chain])
            && target.edges.iter().all(|&(before, after)| after != node || self.has_happened(before))
    }

    /// Whether locks and waits allow a node.
    fn is_free(&self, target: &Target, node: Node) -> bool {
        let (w, chain) = (self.w, self.w.chain_of[node]);
        let held_against = |lock: Lock, mode: Mode| {
            self.held[lock].iter().any(|&s| {
                let scope = w.scopes[s];
                scope.chain != chain && scope.mode.conflicts_with(mode)
            })
        };
        match w.act[node] {
            Act::Acquire(id) => {
                let scope = w.scopes[id];
                let stays_open = w.is_open_at(&scope, target.stop[chain]);
                !held_against(scope.lock, scope.mode) && (!stays_open || !self.is_wanted(target, id))
            }
            Act::Busy(lock, mode) => held_against(lock, mode),
            Act::Wait(_) | Act::Empty(_) => {
                w.act[node].needs_count().is_none_or(|(s, need)| need.is_met(self.counts[s]))
            }
            Act::Wake(_) | Act::Leave(_) => self.asleep.allows(w, node),
            _ => true,
        }
    }

    /// Whether another thread still has to take the lock of a scope on the way to the target.
    fn is_wanted(&self, target: &Target, id: ScopeId) -> bool {
        let (w, scope) = (self.w, self.w.scopes[id]);
        let lists = w.locks[scope.lock].iter();
        let rivals = lists.filter(|l| l.chain != scope.chain && l.mode.conflicts_with(scope.mode));
        rivals.flat_map(|list| &list.scopes).any(|&s| {
            w.scopes[s].acquire.is_some_and(|acquire| w.is_in(&target.cut, acquire) && !self.has_happened(acquire))
        })
    }

    /// Whether a node may come now, if a write is to be the last of its variable.
    fn is_in_time(&self, target: &Target, node: Node) -> bool {
        let w = self.w;
        let (Some((x, last)), Some(y)) = (target.last, w.act[node].written()) else { return true };
        if x != y {
            return true;
        }
        if Source::Write(node) != last {
            return last != Source::Base && self.evaluation.last_write(x) != last;
        }
        let own = w.chain_of[node];
        let others = w.variables[x].writes.iter().filter(|list| list.chain != own);
        !others.flat_map(|list| &list.nodes).any(|&d| w.is_in(&target.cut, d) && !self.has_happened(d))
    }

    /// Whether a thread, alone and from this scope's acquire on, would come to a read that waits: its variable.
    fn would_wait(&mut self, target: &Target, acquire: Node, id: ScopeId) -> Option<Variable> {
        let (w, scope) = (self.w, self.w.scopes[id]);
        let chain = scope.chain;
        let stop = target.stop[chain];
        let end = scope.release.map_or(stop, |release| stop.min(w.place[release]));
        let bound = Some(bound(w, target, chain));
        let mut taken = 0;
        let mut waits = None;
        for &node in w.chain[chain].between(w.place[acquire]..end).iter().take(AHEAD) {
            if !self.is_ready(target, node) || !self.is_free(target, node) {
                break;
            }
            if !self.evaluation.attempt(node, bound) {
                waits = w.act[node].read();
                break;
            }
            taken += 1;
        }
        (0..taken).for_each(|_| self.evaluation.take_back());
        waits
    }
}

/// Up to which place the conditions of a chain have to come out as in the trace.
fn bound(w: &Window<'_>, target: &Target, chain: Chain) -> Place {
    let is_next = target.next.iter().any(|&next| w.chain_of[next] == chain);
    if is_next { target.stop[chain].next() } else { target.stop[chain] }
}
