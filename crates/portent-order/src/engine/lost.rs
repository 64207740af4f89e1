//! Lost wake-ups in the search: a sleeper whose notify came too early, and whom nothing wakes any more.
//!
//! SEMANTICS §3. Two things must hold where the order stops. No notify that ran after the sleep would have woken the sleeper
//! ([`Disturbs`]). And every other thread is through, or waits for a lock, a token or a notify: what `sync` forbids, in every
//! model. A thread before a read that it cannot keep, or a branch that would go the other way, does not wait.
//!
//! Neither is encoded beforehand. An order that obeys all rules is first run on as far as it goes; if the goal is not reached
//! then, each of the two that fails becomes a clause that binds where the goal's literal holds.

use super::Engine;
use super::search::{Made, Search};
use super::simulate::{Order, Simulator};
use super::symbolic::Course;
use super::target::Target;
use super::window::{Act, NONE, Node, Wait, Window, join};
use batsat::Lit;
use portent_trace::{Mode, Op, Reach};
use rustc_hash::FxHashMap;

/// Whether a notify that runs after a sleep would end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbs {
    /// It is on another condition, or somebody else sleeps whom it wakes.
    Never,
    /// It wakes everybody, or nobody else whom it could wake is asleep.
    Always,
    /// It wakes somebody else once this sleep has happened.
    Before(Node),
}

fn disturbs(w: &Window<'_>, node: Node, sleep: Node) -> Disturbs {
    let (Op::Notify(on, reach), Op::Sleep(condition)) = (w.trace.op(w.event(node)), w.trace.op(w.event(sleep))) else {
        return Disturbs::Never;
    };
    if on != condition {
        return Disturbs::Never;
    }
    let woken = w.trace.woken_by(w.event(node)).iter().map(|k| w.trace.pairings()[k.index()].sleep);
    let mut others = woken.filter(|&other| w.trace.thread(other) != w.trace.thread(w.event(sleep)));
    match others.next().filter(|_| reach == Reach::One) {
        None => Disturbs::Always,
        // The notify is in the window: a sleep that is not was before it.
        Some(other) => w.node(other).map_or(Disturbs::Never, Disturbs::Before),
    }
}

/// Whether a thread can have to wait at a node.
fn can_wait(w: &Window<'_>, node: Node) -> bool {
    let is_receive = || matches!(w.trace.op(w.event(node)), Op::Receive(_));
    matches!(w.act[node as usize], Act::Acquire(_) | Act::Busy(..) | Act::Wake(_)) || is_receive()
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
        let w = self.window;
        let Wait { sleep, .. } = w.waits[target.lost? as usize];
        let mut trial = self.run_closed()?;
        let disturbed = is_disturbed(w, trial.order(), sleep).next().is_some();
        (!disturbed && trial.exhaust(w, sleep, true)).then(|| trial.order().to_vec())
    }

    /// Another: everybody else runs as far as that goes, and then the sleeper sleeps. The closure is as it was before.
    pub(super) fn guess_late(&mut self, target: &Target) -> Option<Vec<Node>> {
        let w = self.window;
        let Wait { sleep, notify, wake } = w.waits[target.lost? as usize];
        let mut awake = Target::new(w);
        join(&mut awake.cut, w.past_of(notify));
        if let Some(before) = w.before(sleep) {
            join(&mut awake.cut, w.past_of(before));
        }
        let mark = self.saturation.mark();
        let trial = self.saturation.close(&awake).ok().and_then(|()| self.run_closed());
        self.saturation.undo(&mark);
        let mut trial = trial?;
        trial.exhaust(w, sleep, false);
        let chain = &w.chain[w.chain_of[sleep as usize] as usize];
        let places = w.place[sleep as usize] as usize..w.place[wake as usize] as usize;
        for &node in &chain[places] {
            // Sleeping and giving back the lock is always possible.
            if can_wait(w, node) || w.act[node as usize].read().is_some() {
                return None;
            }
            trial.step(w, node);
        }
        trial.exhaust(w, sleep, true).then(|| trial.order().to_vec())
    }

    /// What is closed, run in observed order as far as the closure allows.
    fn run_closed(&mut self) -> Option<Simulator> {
        let w = self.window;
        let rows = Order { rows: self.saturation.clock(), stride: w.chains };
        self.simulator.run(w, &rows, &vec![0; w.chains], self.saturation.cut(), false).ok()?;
        Some(self.simulator.clone())
    }
}

impl Search<'_, '_> {
    /// The order, run on until nobody can go on, if the sleeper is still asleep then.
    pub(super) fn stay_asleep(&mut self, target: &Target, order: &[Node]) -> Option<Vec<Node>> {
        let w = self.w;
        let lost = w.waits[target.lost? as usize];
        let mut trial = self.theory.simulator().clone();
        let disturbed = is_disturbed(w, order, lost.sleep).next().is_some();
        (!disturbed && trial.exhaust(w, lost.sleep, true)).then(|| trial.order().to_vec())
    }

    /// What keeps an order from losing a wake-up becomes clauses; whether there is anything.
    pub(super) fn refine_lost(&mut self, wait: u32, order: &[Node]) -> bool {
        let (w, z) = (self.w, self.theory.z());
        let goal = self.lost[&wait];
        let lost = w.waits[wait as usize];
        let mut refined = false;
        for (node, harmless_after) in is_disturbed(w, order, lost.sleep) {
            refined = true;
            if self.made.insert(Made::Disturbed(wait, node)) {
                let mut orders = vec![(z, node), (node, lost.sleep)];
                orders.extend(harmless_after.map(|other| (other, node)));
                self.clause(&orders, &[!goal]);
            }
        }
        let mut step = FxHashMap::default();
        let mut cut = vec![0; w.chains];
        for (i, &node) in order.iter().enumerate() {
            step.insert(node, i);
            cut[w.chain_of[node as usize] as usize] += 1;
        }
        let sleeper = w.chain_of[lost.sleep as usize] as usize;
        for chain in (0..w.chains).filter(|&chain| chain != sleeper) {
            let Some(&next) = w.chain[chain].get(cut[chain] as usize) else { continue };
            // It goes on, or has stopped before, or waits: one of these orders, or one of these reasons.
            let mut orders = vec![(next, z)];
            orders.extend(w.before(next).map(|before| (z, before)));
            if !can_wait(w, next) {
                // It goes on to where it could wait at all.
                let rest = &w.chain[chain][cut[chain] as usize..];
                let last = rest.iter().take_while(|&&node| !can_wait(w, node)).last().copied().unwrap_or(next);
                orders[0] = (last, z);
                refined = true;
                if self.made.insert(Made::CanGoOn(wait, next, NONE)) {
                    self.clause(&orders, &[!goal]);
                }
                continue;
            }
            let mut reasons = Vec::new();
            let mut holder = NONE;
            let waits = match w.act[next as usize] {
                Act::Acquire(id) => {
                    let scope = w.scopes[id as usize];
                    let rivals = |s: &u32| {
                        let other = w.scopes[*s as usize];
                        other.chain != scope.chain && other.mode.conflicts_with(scope.mode)
                    };
                    let held = self.theory.simulator().held(scope.lock).iter().any(rivals);
                    if !held {
                        let lists = w.locks[scope.lock as usize].iter();
                        let all: Vec<u32> = lists.flat_map(|l| l.scopes.iter().copied()).filter(rivals).collect();
                        reasons.extend(all.into_iter().map(|s| self.is_open(s)));
                    }
                    held
                }
                Act::Busy(lock, mode) => {
                    let held = self.theory.simulator().held(lock).iter().copied();
                    let mut others = held.filter(|&s| {
                        let other = w.scopes[s as usize];
                        other.chain as usize != chain && other.mode.conflicts_with(mode)
                    });
                    if let Some(scope) = others.next() {
                        holder = scope;
                        let scope = w.scopes[scope as usize];
                        orders.extend((scope.acquire != NONE).then_some((z, scope.acquire)));
                        orders.extend((scope.release != NONE).then_some((scope.release, z)));
                    }
                    holder == NONE
                }
                Act::Wake(k) => {
                    let Wait { sleep, notify, .. } = w.waits[k as usize];
                    if notify != NONE {
                        orders.push((z, notify));
                        orders.extend((sleep != NONE).then_some((notify, sleep)));
                    }
                    !is_notified(w, &step, k)
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
    fn is_open(&mut self, scope: u32) -> Lit {
        if let Some(&lit) = self.open.get(&scope) {
            return lit;
        }
        let z = self.theory.z();
        let lit = self.fresh();
        self.open.insert(scope, lit);
        let scope = self.w.scopes[scope as usize];
        if scope.acquire != NONE {
            self.clause(&[(scope.acquire, z)], &[!lit]);
        }
        if scope.release != NONE {
            self.clause(&[(z, scope.release)], &[!lit]);
        }
        lit
    }
}

/// The notifies of an order that come after a sleep and would end it; with the sleep, if there is one, that would make each of
/// them harmless if it came before.
fn is_disturbed<'a>(
    w: &'a Window<'_>,
    order: &'a [Node],
    sleep: Node,
) -> impl Iterator<Item = (Node, Option<Node>)> + 'a {
    let slept = order.iter().position(|&node| node == sleep).unwrap_or(order.len());
    (slept..order.len()).filter_map(move |at| match disturbs(w, order[at], sleep) {
        Disturbs::Never => None,
        Disturbs::Always => Some((order[at], None)),
        Disturbs::Before(other) => (!order[..at].contains(&other)).then_some((order[at], Some(other))),
    })
}

/// Whether the notify of a wait came after its sleep.
fn is_notified(w: &Window<'_>, step: &FxHashMap<Node, usize>, wait: u32) -> bool {
    let Wait { sleep, notify, .. } = w.waits[wait as usize];
    notify == NONE || step.get(&notify).is_some_and(|n| sleep == NONE || step.get(&sleep).is_some_and(|s| s < n))
}

impl Simulator {
    /// After [`Simulator::run`]: lets every chain but the sleeper's run on as far as it can, observed order first, past the cut,
    /// but once it is `asleep` never over a notify that would end that. Whether all of them wait then, or are through.
    fn exhaust(&mut self, w: &Window<'_>, sleep: Node, asleep: bool) -> bool {
        let still = w.chain_of[sleep as usize] as usize;
        let mut step: FxHashMap<Node, usize> = FxHashMap::default();
        for (i, &node) in self.order().iter().enumerate() {
            if matches!(w.act[node as usize], Act::Sleep | Act::Notify) {
                step.insert(node, i);
            }
        }
        let mut course = Course::of(w);
        if let Some(course) = &mut course {
            course.follow(self.order().iter().copied());
        }
        loop {
            let next = |chain: usize| w.chain[chain].get(self.position(chain) as usize).copied();
            let mut others = (0..w.chains).filter(|&chain| chain != still).filter_map(next);
            let mut best = NONE;
            for node in others.clone() {
                let avoided = match disturbs(w, node, sleep) {
                    _ if !asleep => false,
                    Disturbs::Never => false,
                    Disturbs::Always => true,
                    Disturbs::Before(other) => !step.contains_key(&other),
                };
                if node < best && !avoided && !self.waits(w, &step, node) && self.keeps_read(w, course.as_mut(), node) {
                    best = node;
                }
            }
            if best == NONE {
                return others.all(|node| self.waits(w, &step, node));
            }
            if matches!(w.act[best as usize], Act::Sleep | Act::Notify) {
                step.insert(best, self.order().len());
            }
            self.step(w, best);
            if let Some(course) = &mut course {
                course.execute(best);
            }
        }
    }

    /// Whether a node that is next in its chain waits for a lock, a token or a notify.
    fn waits(&self, w: &Window<'_>, step: &FxHashMap<Node, usize>, node: Node) -> bool {
        let held_against = |lock: u32, mode: Mode| {
            self.held(lock).iter().any(|&s| {
                let scope = w.scopes[s as usize];
                scope.chain != w.chain_of[node as usize] && scope.mode.conflicts_with(mode)
            })
        };
        match w.act[node as usize] {
            Act::Acquire(id) => held_against(w.scopes[id as usize].lock, w.scopes[id as usize].mode),
            Act::Busy(lock, mode) => !held_against(lock, mode),
            Act::Wake(wait) => !is_notified(w, step, wait),
            _ => senders(w, node).any(|sender| !self.has_happened(w, sender)),
        }
    }
}
