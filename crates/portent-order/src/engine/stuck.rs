//! Stuck threads in the search: states in which nobody can ever go on, and one thread waits at the event that the goal names; and
//! lost wake-ups, which are the same with a notify that came already.
//!
//! docs/src/internals/semantics.md §3. Where the order stops, every thread must be through, or wait for a lock, a token, a semaphore or a notify:
//! what `sync` forbids, in every model. A thread before a read that it cannot keep, or a branch that would go the other way, does not wait.
//!
//! None of that is encoded beforehand. An order that obeys all rules is first run on as far as it goes; if the goal is not reached
//! then, whoever does not wait becomes a clause that binds where the goal's literal holds. Who waits where is not the goal's business, so all
//! goals of a window share the literal and what was learnt under it.

use super::Engine;
use super::counts::Need;
use super::index::{Chain, Id, Lock, Node, Place, ScopeId, Semaphore, WaitId};
use super::search::{Made, Search};
use super::simulate::Simulator;
use super::sleeps::Wait;
use super::symbolic::Evaluation;
use super::target::Target;
use super::window::{Act, Window};
use batsat::Lit;
use portent_trace::{Mode, Op, ThreadId, TokenId};

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
enum Wants {
    Lock(Lock, Mode),
    Notify(WaitId),
    Count(Semaphore),
    Token(TokenId),
    /// Something that no reordering gives.
    Nothing,
    /// It waits for nothing: it goes on, in this way or another.
    GoesOn,
}

impl Wants {
    /// At a node. A thread does not wait at a try: it would fail, and the thread goes on; nor where it wakes by itself.
    fn at(w: &Window<'_>, node: Node) -> Self {
        if w.trace.tries(w.event(node)) {
            return Wants::GoesOn;
        }
        match w.act[node] {
            Act::Acquire(id) => Wants::Lock(w.scopes[id].lock, w.scopes[id].mode),
            Act::Wake(wait) => Wants::Notify(wait),
            Act::Wait(semaphore) => Wants::Count(semaphore),
            _ => match w.trace.op(w.event(node)) {
                Op::Receive(token) => Wants::Token(token),
                _ => Wants::GoesOn,
            },
        }
    }

    /// Behind the last event of a chain; `None` if it is through.
    fn at_the_end(w: &Window<'_>, chain: Chain) -> Option<Self> {
        Some(match w.trace.pending(ThreadId::new(chain.index()))? {
            // What nobody here does anything with is as it was before, and nobody knows how that was.
            Op::Acquire(lock, mode) => w.lock_of.get(&lock).map_or(Wants::GoesOn, |&lock| Wants::Lock(lock, mode)),
            Op::Wait(semaphore) => match w.semaphore_of.get(&semaphore) {
                Some(&semaphore) => Wants::Count(semaphore),
                None if w.first == 0 && w.trace.initial_count(semaphore) == 0 => Wants::Nothing,
                None => Wants::GoesOn,
            },
            Op::Receive(token) => Wants::Token(token),
            Op::Wake(_) => {
                let last = w.waits.entries().rfind(|(_, wait)| wait.chain == chain);
                last.filter(|(_, wait)| wait.wake.is_none()).map_or(Wants::GoesOn, |(wait, _)| Wants::Notify(wait))
            }
            _ => Wants::Nothing,
        })
    }

    /// Where a chain stands; `None` if it is through.
    fn of(w: &Window<'_>, chain: Chain, place: Place) -> Option<Self> {
        match w.chain[chain].get(place) {
            Some(&next) => Some(Wants::at(w, next)),
            None => Wants::at_the_end(w, chain),
        }
    }
}

/// Whether it depends on what others do if a node can be executed.
fn is_conditional(w: &Window<'_>, node: Node) -> bool {
    let is_receive = || matches!(w.trace.op(w.event(node)), Op::Receive(_));
    matches!(w.act[node], Act::Acquire(_) | Act::Busy(..) | Act::Wait(_) | Act::Empty(_))
        || matches!(w.act[node], Act::Wake(_) | Act::Leave(_))
        || is_receive()
}

/// The sends that a receive waits for.
fn senders<'a>(w: &'a Window<'_>, token: TokenId) -> impl Iterator<Item = Node> + 'a {
    w.trace.senders(token).iter().filter_map(|&sender| w.node(sender))
}

impl Engine<'_, '_> {
    /// A guess, before the search: everybody runs on as far as that goes, but nobody lets the one go on who is to wait, once it does. What the
    /// target needs is closed.
    pub(super) fn guess_stuck(&mut self, target: &Target) -> Option<Vec<Node>> {
        let (w, waiting) = (self.window, target.stuck?);
        let mut trial = self.run_closed()?;
        trial.exhaust(w, waiting, true).then(|| trial.order().to_vec())
    }

    /// Another, for a wake-up that is lost: everybody else runs as far as that goes, and then the sleeper sleeps. The closure is as it was
    /// before.
    pub(super) fn guess_late(&mut self, target: &Target) -> Option<Vec<Node>> {
        let (w, wake) = (self.window, target.stuck?);
        let Act::Wake(wait) = w.act[wake] else { return None };
        let Wait { sleep, notify, .. } = w.waits[wait];
        let sleep = sleep?;
        let mut awake = Target::new(w);
        awake.cut.join(w.past_of(notify.filter(|&notify| w.is_in(&target.cut, notify))?));
        if let Some(before) = w.before(sleep) {
            awake.cut.join(w.past_of(before));
        }
        let mark = self.saturation.mark();
        let trial = self.saturation.close(&awake).ok().and_then(|()| self.run_closed());
        self.saturation.undo(&mark);
        let mut trial = trial?;
        trial.exhaust(w, wake, false);
        if trial.has_happened(w, sleep) {
            return None; // Its notify comes after it in any case.
        }
        let chain = &w.chain[w.chain_of[sleep]];
        for &node in chain.between(w.place[sleep]..w.place[wake]) {
            // Sleeping and giving back the lock is always possible.
            if is_conditional(w, node) || w.act[node].read().is_some() {
                return None;
            }
            trial.step(w, node);
        }
        trial.exhaust(w, wake, true).then(|| trial.order().to_vec())
    }

    /// What is closed, run in observed order as far as the closure allows.
    fn run_closed(&mut self) -> Option<Simulator> {
        let w = self.window;
        self.simulator.run(w, self.saturation.clock(), &w.nothing(), self.saturation.cut(), false).ok()?;
        Some(self.simulator.clone())
    }
}

impl Search<'_, '_> {
    /// The order, run on until nobody can go on, if everybody waits then.
    pub(super) fn get_stuck(&mut self, target: &Target) -> Option<Vec<Node>> {
        let waiting = target.stuck?;
        let mut trial = self.theory.simulator().clone();
        trial.exhaust(self.w, waiting, true).then(|| trial.order().to_vec())
    }

    /// "Nobody can go on after the set."
    pub(super) fn is_stuck(&mut self) -> Lit {
        let lit = self.stuck.unwrap_or_else(|| self.fresh());
        *self.stuck.insert(lit)
    }

    /// Whoever can go on after an order becomes a clause; whether anybody can.
    pub(super) fn refine_stuck(&mut self) -> bool {
        let w = self.w;
        let mut refined = false;
        for chain in w.chains() {
            let at = self.theory.simulator().position(chain);
            let Some(wants) = Wants::of(w, chain, at) else { continue };
            if !self.theory.simulator().is_kept_waiting(w, chain, wants) {
                refined = true;
                self.must_wait(chain, at, wants);
            }
        }
        refined
    }

    /// A chain is not just there, or it has to wait: one of these orders, or one of these reasons.
    fn must_wait(&mut self, chain: Chain, at: Place, wants: Wants) {
        let (w, z, goal) = (self.w, self.theory.z(), self.is_stuck());
        let next = w.chain[chain].get(at).copied();
        let last = at.previous().map(|last| w.chain[chain][last]);
        let mut orders: Vec<(Node, Node)> = next.map(|next| (next, z)).into_iter().collect();
        orders.extend(last.map(|last| (z, last)));
        let mut reasons = vec![!goal];
        match wants {
            Wants::Lock(lock, mode) => {
                let lists = w.locks[lock].iter().filter(|list| list.chain != chain && list.mode.conflicts_with(mode));
                let all: Vec<ScopeId> = lists.flat_map(|list| list.scopes.iter().copied()).collect();
                if self.made.insert(Made::MustWait(chain, at, Vec::new())) {
                    reasons.extend(all.into_iter().map(|scope| self.is_open(scope)));
                    self.clause(&orders, &reasons);
                }
                return;
            }
            Wants::Notify(wait) => orders.extend(self.theory.simulator().why_awake(w, wait, z)),
            Wants::Count(semaphore) => {
                let positions = self.theory.simulator().positions();
                orders.extend(w.counters[semaphore].elsewhere(w, Need::Zero, positions, chain, z));
            }
            Wants::Token(token) => orders.extend(senders(w, token).map(|sender| (z, sender))),
            Wants::Nothing => return,
            Wants::GoesOn => {
                // It goes on to where it could wait at all.
                let rest = next.map_or(&[][..], |_| w.chain[chain].from(at));
                let goes_on = |node: &&Node| matches!(Wants::at(w, **node), Wants::GoesOn);
                if let Some(&last) = rest.iter().take_while(goes_on).last() {
                    orders[0] = (last, z);
                }
            }
        }
        if self.made.insert(Made::MustWait(chain, at, orders.clone())) {
            self.clause(&orders, &reasons);
        }
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
    /// After [`Simulator::run`]: lets every chain but that of `waiting` run on as far as it can, observed order first, past the cut,
    /// but if it is to be `kept` waiting, never over what could end that. Whether all of them wait then, or are through.
    fn exhaust(&mut self, w: &Window<'_>, waiting: Node, kept: bool) -> bool {
        let still = w.chain_of[waiting];
        let wants = Wants::at(w, waiting);
        let mut evaluation = Evaluation::of(w);
        if let Some(evaluation) = &mut evaluation {
            evaluation.follow(self.order().iter().copied());
        }
        loop {
            let next = |chain: Chain| w.chain[chain].get(self.position(chain)).copied();
            let others = w.chains().filter(|&chain| chain != still).filter_map(next);
            let mut best: Option<Node> = None;
            for node in others {
                if best.is_none_or(|best| node < best)
                    && !(kept && self.could_end(w, still, wants, node))
                    && !self.is_impossible(w, node)
                    && self.keeps_read(w, evaluation.as_mut(), node)
                {
                    best = Some(node);
                }
            }
            let Some(best) = best else {
                return w.chains().all(|chain| {
                    let wants = Wants::of(w, chain, self.position(chain));
                    wants.is_none_or(|wants| self.is_kept_waiting(w, chain, wants))
                });
            };
            self.step(w, best);
            if let Some(evaluation) = &mut evaluation {
                evaluation.execute(best);
            }
        }
    }

    /// Whether a node would let a chain go on that waits now.
    fn could_end(&self, w: &Window<'_>, chain: Chain, wants: Wants, node: Node) -> bool {
        match (wants, w.act[node]) {
            (Wants::Notify(wait), Act::Notify(..)) => self.asleep.could_wake_after(w, node, wait),
            (Wants::Lock(lock, _), Act::Release(scope)) => {
                w.scopes[scope].lock == lock && self.is_kept_waiting(w, chain, wants)
            }
            (Wants::Count(semaphore), Act::Post(posted)) => {
                posted == semaphore && self.is_kept_waiting(w, chain, wants)
            }
            (Wants::Token(token), Act::Other) => {
                let mut unsent = senders(w, token).filter(|&sender| !self.has_happened(w, sender));
                unsent.next() == Some(node) && unsent.next().is_none()
            }
            _ => false,
        }
    }

    /// Whether a chain that waits for something has to wait on.
    fn is_kept_waiting(&self, w: &Window<'_>, chain: Chain, wants: Wants) -> bool {
        match wants {
            Wants::Lock(lock, mode) => self.is_held_against(w, chain, lock, mode),
            Wants::Notify(wait) => !self.asleep.can_wake(w, wait),
            Wants::Count(semaphore) => !self.has_count(semaphore, Need::AboveZero),
            Wants::Token(token) => senders(w, token).any(|sender| !self.has_happened(w, sender)),
            Wants::Nothing => true,
            Wants::GoesOn => false,
        }
    }

    fn is_held_against(&self, w: &Window<'_>, chain: Chain, lock: Lock, mode: Mode) -> bool {
        self.held(lock).iter().any(|&s| w.scopes[s].chain != chain && w.scopes[s].mode.conflicts_with(mode))
    }

    /// Whether a node that is next in its chain cannot happen, reads aside.
    fn is_impossible(&self, w: &Window<'_>, node: Node) -> bool {
        let chain = w.chain_of[node];
        match w.act[node] {
            Act::Acquire(id) => self.is_held_against(w, chain, w.scopes[id].lock, w.scopes[id].mode),
            Act::Busy(lock, mode) => !self.is_held_against(w, chain, lock, mode),
            Act::Leave(_) => !self.asleep.allows(w, node),
            act if let Some((semaphore, need)) = act.needs_count() => !self.has_count(semaphore, need),
            _ => !matches!(Wants::at(w, node), Wants::GoesOn) && self.is_kept_waiting(w, chain, Wants::at(w, node)),
        }
    }
}
