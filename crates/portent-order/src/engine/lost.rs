//! Lost wake-ups in the search: a sleeper whom no notify has woken, though its own came, and whom nothing wakes any more.
//!
//! docs/src/internals/semantics.md §3. Two things must hold where the order stops. No notify that ran after the sleep can have woken the sleeper.
//! And every other thread is through, or waits for a lock, a token, a semaphore or a notify: what `sync` forbids, in every
//! model. A thread before a read that it cannot keep, or a branch that would go the other way, does not wait.
//!
//! Neither is encoded beforehand. An order that obeys all rules is first run on as far as it goes; if the goal is not reached
//! then, each of the two that fails becomes a clause that binds where the goal's literal holds.

use super::Engine;
use super::counts::Need;
use super::index::{Chain, Lock, Node, ScopeId, WaitId};
use super::search::{Made, Search};
use super::simulate::Simulator;
use super::sleeps::Wait;
use super::symbolic::Evaluation;
use super::target::Target;
use super::window::{Act, Window};
use batsat::Lit;
use portent_trace::{Mode, Op};
use rustc_hash::FxHashMap;

/// Whether a thread can have to wait at a node. At a try it does not: it would fail, and the thread goes on; nor where it wakes by itself.
fn can_wait(w: &Window<'_>, node: Node) -> bool {
    is_conditional(w, node) && !w.trace.tries(w.event(node)) && !matches!(w.act[node], Act::Leave(_))
}

/// Whether it depends on what others do if a node can be executed.
fn is_conditional(w: &Window<'_>, node: Node) -> bool {
    let is_receive = || matches!(w.trace.op(w.event(node)), Op::Receive(_));
    matches!(w.act[node], Act::Acquire(_) | Act::Busy(..) | Act::Wait(_) | Act::Empty(_))
        || matches!(w.act[node], Act::Wake(_) | Act::Leave(_))
        || is_receive()
}

/// The sends that a receive waits for.
fn senders<'a>(w: &'a Window<'_>, node: Node) -> impl Iterator<Item = Node> + 'a {
    let token = match w.trace.op(w.event(node)) {
        Op::Receive(token) => Some(token),
        _ => None,
    };
    token.into_iter().flat_map(|token| w.trace.senders(token)).filter_map(|&sender| w.node(sender))
}

impl Engine<'_, '_> {
    /// A guess, before the search: the sleeper sleeps as soon as its notify has come, and then everybody runs on. What the
    /// target needs is closed.
    pub(super) fn guess_lost(&mut self, target: &Target) -> Option<Vec<Node>> {
        let (w, lost) = (self.window, target.lost?);
        let mut trial = self.run_closed()?;
        trial.exhaust(w, lost, true).then(|| trial.order().to_vec())
    }

    /// Another: everybody else runs as far as that goes, and then the sleeper sleeps. The closure is as it was before.
    pub(super) fn guess_late(&mut self, target: &Target) -> Option<Vec<Node>> {
        let (w, lost) = (self.window, target.lost?);
        let Wait { sleep, notify, wake, .. } = w.waits[lost];
        let (sleep, wake) = (sleep?, wake?);
        let mut awake = Target::new(w);
        awake.cut.join(w.past_of(notify?));
        if let Some(before) = w.before(sleep) {
            awake.cut.join(w.past_of(before));
        }
        let mark = self.saturation.mark();
        let trial = self.saturation.close(&awake).ok().and_then(|()| self.run_closed());
        self.saturation.undo(&mark);
        let mut trial = trial?;
        trial.exhaust(w, lost, false);
        let chain = &w.chain[w.chain_of[sleep]];
        for &node in chain.between(w.place[sleep]..w.place[wake]) {
            // Sleeping and giving back the lock is always possible.
            if is_conditional(w, node) || w.act[node].read().is_some() {
                return None;
            }
            trial.step(w, node);
        }
        trial.exhaust(w, lost, true).then(|| trial.order().to_vec())
    }

    /// What is closed, run in observed order as far as the closure allows.
    fn run_closed(&mut self) -> Option<Simulator> {
        let w = self.window;
        self.simulator.run(w, self.saturation.clock(), &w.nothing(), self.saturation.cut(), false).ok()?;
        Some(self.simulator.clone())
    }
}

impl Search<'_, '_> {
    /// The order, run on until nobody can go on, if the sleeper is still asleep then.
    pub(super) fn stay_asleep(&mut self, target: &Target) -> Option<Vec<Node>> {
        let lost = target.lost?;
        let mut trial = self.theory.simulator().clone();
        trial.exhaust(self.w, lost, true).then(|| trial.order().to_vec())
    }

    /// What keeps an order from losing a wake-up becomes clauses; whether there is anything.
    pub(super) fn refine_lost(&mut self, wait: WaitId, order: &[Node]) -> bool {
        let (w, z) = (self.w, self.theory.z());
        let goal = self.lost[&wait];
        let mut refined = false;
        if self.theory.simulator().asleep.can_wake(w, wait) {
            refined = true;
            let orders = self.theory.simulator().why_awake(w, wait, z);
            if self.made.insert(Made::Needs(Some(wait), z, orders.clone())) {
                self.clause(&orders, &[!goal]);
            }
        }
        let mut step = FxHashMap::default();
        let mut cut = w.nothing();
        for (i, &node) in order.iter().enumerate() {
            step.insert(node, i);
            cut[w.chain_of[node]] = w.place[node].next();
        }
        let sleeper = w.waits[wait].chain;
        for chain in w.chains().filter(|&chain| chain != sleeper) {
            let Some(&next) = w.chain[chain].get(cut[chain]) else { continue };
            // It goes on, or has stopped before, or waits: one of these orders, or one of these reasons.
            let mut orders = vec![(next, z)];
            orders.extend(w.before(next).map(|before| (z, before)));
            if !can_wait(w, next) {
                // It goes on to where it could wait at all.
                let rest = w.chain[chain].from(cut[chain]);
                let last = rest.iter().take_while(|&&node| !can_wait(w, node)).last().copied().unwrap_or(next);
                orders[0] = (last, z);
                refined = true;
                if self.made.insert(Made::CanGoOn(wait, next, None)) {
                    self.clause(&orders, &[!goal]);
                }
                continue;
            }
            let mut reasons = Vec::new();
            let mut holder = None;
            let waits = match w.act[next] {
                Act::Acquire(id) => {
                    let scope = w.scopes[id];
                    let rivals = |s: &ScopeId| {
                        let other = w.scopes[*s];
                        other.chain != scope.chain && other.mode.conflicts_with(scope.mode)
                    };
                    let held = self.theory.simulator().held(scope.lock).iter().any(rivals);
                    if !held {
                        let lists = w.locks[scope.lock].iter();
                        let all: Vec<ScopeId> = lists.flat_map(|l| l.scopes.iter().copied()).filter(rivals).collect();
                        reasons.extend(all.into_iter().map(|s| self.is_open(s)));
                    }
                    held
                }
                Act::Busy(lock, mode) => {
                    let held = self.theory.simulator().held(lock).iter().copied();
                    let mut others = held.filter(|&s| {
                        let other = w.scopes[s];
                        other.chain != chain && other.mode.conflicts_with(mode)
                    });
                    if let Some(scope) = others.next() {
                        holder = Some(scope);
                        let scope = w.scopes[scope];
                        orders.extend(scope.acquire.map(|acquire| (z, acquire)));
                        orders.extend(scope.release.map(|release| (release, z)));
                    }
                    holder.is_none()
                }
                Act::Wake(other) => {
                    if self.theory.simulator().asleep.can_wake(w, other) {
                        orders.extend(self.theory.simulator().why_awake(w, other, z));
                        refined = true;
                        if self.made.insert(Made::Needs(Some(wait), next, orders.clone())) {
                            self.clause(&orders, &[!goal]);
                        }
                    }
                    continue;
                }
                act if let Some((semaphore, need)) = act.needs_count() => {
                    let met = self.theory.simulator().has_count(semaphore, need);
                    if met {
                        // The count would have to be another where the order stops.
                        let other = match need {
                            Need::AboveZero => Need::Zero,
                            Need::Zero => Need::AboveZero,
                        };
                        let positions = self.theory.simulator().positions();
                        orders.extend(w.counters[semaphore].elsewhere(w, other, positions, chain, z));
                        refined = true;
                        if self.made.insert(Made::Needs(Some(wait), next, orders.clone())) {
                            self.clause(&orders, &[!goal]);
                        }
                    }
                    continue;
                }
                _ => {
                    orders.extend(senders(w, next).map(|sender| (z, sender)));
                    senders(w, next).any(|sender| !step.contains_key(&sender))
                }
            };
            if !waits {
                refined = true;
                if self.made.insert(Made::CanGoOn(wait, next, holder)) {
                    reasons.push(!goal);
                    self.clause(&orders, &reasons);
                }
            }
        }
        refined
    }

    /// "This scope is open at the cut", as a literal that implies it.
    fn is_open(&mut self, scope: ScopeId) -> Lit {
        if let Some(&lit) = self.open.get(&scope) {
            return lit;
        }
        let z = self.theory.z();
        let lit = self.fresh();
        self.open.insert(scope, lit);
        let scope = self.w.scopes[scope];
        if let Some(acquire) = scope.acquire {
            self.clause(&[(acquire, z)], &[!lit]);
        }
        if let Some(release) = scope.release {
            self.clause(&[(z, release)], &[!lit]);
        }
        lit
    }
}

impl Simulator {
    /// After [`Simulator::run`]: lets every chain but the sleeper's run on as far as it can, observed order first, past the cut,
    /// but once it is `asleep` never over a notify that could end that. Whether all of them wait then, or are through, and it still sleeps.
    fn exhaust(&mut self, w: &Window<'_>, lost: WaitId, asleep: bool) -> bool {
        let still = w.waits[lost].chain;
        let mut evaluation = Evaluation::of(w);
        if let Some(evaluation) = &mut evaluation {
            evaluation.follow(self.order().iter().copied());
        }
        loop {
            let next = |chain: Chain| w.chain[chain].get(self.position(chain)).copied();
            let mut others = w.chains().filter(|&chain| chain != still).filter_map(next);
            let mut best: Option<Node> = None;
            for node in others.clone() {
                if best.is_none_or(|best| node < best)
                    && !(asleep && self.asleep.could_wake_after(w, node, lost))
                    && !self.waits(w, node)
                    && self.keeps_read(w, evaluation.as_mut(), node)
                {
                    best = Some(node);
                }
            }
            let Some(best) = best else {
                let all_wait = others.all(|node| can_wait(w, node) && self.waits(w, node));
                return all_wait && !self.asleep.can_wake(w, lost);
            };
            self.step(w, best);
            if let Some(evaluation) = &mut evaluation {
                evaluation.execute(best);
            }
        }
    }

    /// Whether a node that is next in its chain waits for a lock, a token or a notify.
    fn waits(&self, w: &Window<'_>, node: Node) -> bool {
        let held_against = |lock: Lock, mode: Mode| {
            self.held(lock).iter().any(|&s| {
                let scope = w.scopes[s];
                scope.chain != w.chain_of[node] && scope.mode.conflicts_with(mode)
            })
        };
        match w.act[node] {
            Act::Acquire(id) => held_against(w.scopes[id].lock, w.scopes[id].mode),
            Act::Busy(lock, mode) => !held_against(lock, mode),
            Act::Wake(_) | Act::Leave(_) => !self.asleep.allows(w, node),
            act if let Some((semaphore, need)) = act.needs_count() => !self.has_count(semaphore, need),
            _ => senders(w, node).any(|sender| !self.has_happened(w, sender)),
        }
    }
}
