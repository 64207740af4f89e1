//! The threads of a window while a guess executes them: how far they are, what they hold, and what can happen next.
//!
//! An event happens only if SEMANTICS §2 lets it, and looks one step ahead: a read waits until what it would see lets the
//! conditions that it settles come out as in the trace; a lock that is to stay held is taken when nobody else needs
//! it any more, and any other only if the thread, alone, would come to no read that waits; a write that is to be the last
//! of its variable waits for the others. The latter two are caution, and given up when nothing else can happen.

use super::symbolic::Course;
use super::target::Target;
use super::window::{Act, BASE, NONE, Node, Window};
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
pub(super) struct Stage<'w, 't> {
    w: &'w Window<'t>,
    pub course: Course<'w, 't>,
    pub position: Vec<u32>,
    pub order: Vec<Node>,
    /// Per lock: the scopes held now.
    held: Vec<Vec<u32>>,
    /// When each sleep and notify happened.
    step: Vec<u32>,
    /// Per chain: the variable and the write of it that its next event does not want to see; [`NONE`] if there is none.
    pub refused: Vec<(u32, u32)>,
    /// Chains whose next event will never happen.
    pub over: Vec<bool>,
}

impl<'w, 't> Stage<'w, 't> {
    pub(super) fn new(w: &'w Window<'t>, course: Course<'w, 't>) -> Self {
        let mut held = vec![Vec::new(); w.locks.len()];
        for (id, scope) in w.scopes.iter().enumerate().filter(|(_, scope)| scope.acquire == NONE) {
            held[scope.lock as usize].push(id as u32);
        }
        Stage {
            w,
            course,
            position: vec![0; w.chains],
            order: Vec::new(),
            held,
            step: vec![NONE; w.len()],
            refused: vec![(NONE, NONE); w.chains],
            over: vec![false; w.chains],
        }
    }

    /// Takes events back until so many are left.
    pub(super) fn back_to(&mut self, kept: usize) {
        while self.order.len() > kept {
            let Some(node) = self.order.pop() else { break };
            self.course.take_back();
            self.position[self.w.chain_of[node as usize] as usize] -= 1;
            match self.w.act[node as usize] {
                Act::Acquire(id) => self.give_back(id),
                Act::Release(id) => self.held[self.w.scopes[id as usize].lock as usize].push(id),
                Act::Sleep | Act::Notify => self.step[node as usize] = NONE,
                _ => {}
            }
        }
        self.reconsider();
    }
    /// Forgets who waits for what.
    fn reconsider(&mut self) {
        self.refused.fill((NONE, NONE));
        self.over.fill(false);
    }

    /// Takes events that are known to be possible.
    pub(super) fn redo(&mut self, events: &[Node]) {
        for &node in events {
            self.course.execute(node);
            self.note(node);
        }
        self.reconsider();
    }

    /// Takes what can be taken of an order.
    pub(super) fn follow(&mut self, target: &Target, order: &[Node]) {
        for &node in order {
            let (chain, place) = (self.w.chain_of[node as usize] as usize, self.w.place[node as usize]);
            if place == self.position[chain] && place < target.stop[chain] && !self.over[chain] {
                let _ = Caution::LESS_AND_LESS.iter().any(|&caution| self.take(target, node, caution));
            }
        }
        self.reconsider();
    }

    /// Whether a node, the next of its chain, can happen now, and has.
    pub(super) fn take(&mut self, target: &Target, node: Node, caution: Caution) -> bool {
        let (w, act, chain) = (self.w, self.w.act[node as usize], self.w.chain_of[node as usize] as usize);
        let place = self.position[chain];
        let (x, last) = self.refused[chain];
        let possible = match caution {
            Caution::Full => x == NONE || self.course.last_write(x) != last,
            Caution::Locks => matches!(act, Act::Acquire(_)),
            Caution::Reads => {
                act.read().is_some() && place >= target.cut[chain] && target.stop[chain] == w.chain[chain].len() as u32
            }
        };
        if !possible || !self.is_ready(target, node) || !self.is_free(target, node) || !self.is_in_time(target, node) {
            return false;
        }
        if let (Caution::Full, Act::Acquire(id)) = (caution, act)
            && let Some(x) = self.would_wait(target, id)
        {
            self.refused[chain] = (x, self.course.last_write(x));
            return false;
        }
        let bound = match caution {
            Caution::Reads => {
                let releases = w.open_before(chain, place).iter().map(|&s| w.scopes[s as usize].release);
                releases.map(|n| if n == NONE { NONE } else { w.place[n as usize] }).max().unwrap_or(0)
            }
            _ => bound(w, target, chain),
        };
        if !self.course.attempt(node, bound) {
            match act.read() {
                Some(x) => self.refused[chain] = (x, self.course.last_write(x)),
                None => self.over[chain] = true,
            }
            return false;
        }
        self.refused[chain] = (NONE, NONE);
        self.note(node);
        true
    }

    fn note(&mut self, node: Node) {
        self.position[self.w.chain_of[node as usize] as usize] += 1;
        match self.w.act[node as usize] {
            Act::Acquire(id) => self.held[self.w.scopes[id as usize].lock as usize].push(id),
            Act::Release(id) => self.give_back(id),
            Act::Sleep | Act::Notify => self.step[node as usize] = self.order.len() as u32,
            _ => {}
        }
        self.order.push(node);
    }
    fn give_back(&mut self, id: u32) {
        self.held[self.w.scopes[id as usize].lock as usize].retain(|&s| s != id);
    }

    fn has_happened(&self, node: Node) -> bool {
        self.w.place[node as usize] < self.position[self.w.chain_of[node as usize] as usize]
    }

    /// Whether what must come before a node has happened.
    fn is_ready(&self, target: &Target, node: Node) -> bool {
        let (past, own) = (self.w.past_of(node), self.w.chain_of[node as usize] as usize);
        (0..self.w.chains).all(|chain| chain == own || past[chain] <= self.position[chain])
            && target.edges.iter().all(|&(before, after)| after != node || self.has_happened(before))
    }

    /// Whether locks and waits allow a node.
    fn is_free(&self, target: &Target, node: Node) -> bool {
        let (w, chain) = (self.w, self.w.chain_of[node as usize] as usize);
        let held_against = |lock: u32, mode: Mode| {
            self.held[lock as usize].iter().any(|&s| {
                let scope = w.scopes[s as usize];
                scope.chain as usize != chain && scope.mode.conflicts_with(mode)
            })
        };
        match w.act[node as usize] {
            Act::Acquire(id) => {
                let scope = w.scopes[id as usize];
                let stays_open = scope.release == NONE || w.place[scope.release as usize] >= target.stop[chain];
                !held_against(scope.lock, scope.mode) && (!stays_open || !self.is_wanted(target, id))
            }
            Act::Busy(lock, mode) => held_against(lock, mode),
            Act::Wake(wait) => {
                let wait = w.waits[wait as usize];
                let happened = |n: Node| self.step[n as usize];
                wait.sleep == NONE || wait.notify == NONE || happened(wait.sleep) < happened(wait.notify)
            }
            _ => true,
        }
    }

    /// Whether another thread still has to take the lock of a scope on the way to the target.
    fn is_wanted(&self, target: &Target, id: u32) -> bool {
        let (w, scope) = (self.w, self.w.scopes[id as usize]);
        let lists = w.locks[scope.lock as usize].iter();
        let rivals = lists.filter(|l| l.chain != scope.chain && l.mode.conflicts_with(scope.mode));
        rivals.flat_map(|list| &list.scopes).any(|&s| {
            let acquire = w.scopes[s as usize].acquire;
            acquire != NONE && is_below(w, &target.cut, acquire) && !self.has_happened(acquire)
        })
    }

    /// Whether a node may come now, if a write is to be the last of its variable.
    fn is_in_time(&self, target: &Target, node: Node) -> bool {
        let w = self.w;
        let (Some((x, last)), Some(y)) = (target.last, w.act[node as usize].written()) else { return true };
        if x != y {
            return true;
        }
        if node != last {
            return last != BASE && self.course.last_write(x) != last;
        }
        let own = w.chain_of[node as usize];
        let others = w.variables[x as usize].writes.iter().filter(|list| list.chain != own);
        !others.flat_map(|list| &list.nodes).any(|&d| is_below(w, &target.cut, d) && !self.has_happened(d))
    }

    /// Whether a thread, alone and from this scope's acquire on, would come to a read that waits: its variable.
    fn would_wait(&mut self, target: &Target, id: u32) -> Option<u32> {
        let (w, scope) = (self.w, self.w.scopes[id as usize]);
        let chain = scope.chain as usize;
        let from = w.place[scope.acquire as usize] as usize;
        let release = if scope.release == NONE { NONE } else { w.place[scope.release as usize] };
        let bound = bound(w, target, chain);
        let mut taken = 0;
        let mut waits = None;
        for &node in w.chain[chain][from..target.stop[chain].min(release) as usize].iter().take(AHEAD) {
            if !self.is_ready(target, node) || !self.is_free(target, node) {
                break;
            }
            if !self.course.attempt(node, bound) {
                waits = w.act[node as usize].read();
                break;
            }
            taken += 1;
        }
        (0..taken).for_each(|_| self.course.take_back());
        waits
    }
}

/// Up to which place the conditions of a chain have to come out as in the trace.
fn bound(w: &Window<'_>, target: &Target, chain: usize) -> u32 {
    let is_next = target.next.iter().any(|&next| w.chain_of[next as usize] as usize == chain);
    target.stop[chain] + u32::from(is_next)
}

fn is_below(w: &Window<'_>, cut: &[u32], node: Node) -> bool {
    w.place[node as usize] < cut[w.chain_of[node as usize] as usize]
}
