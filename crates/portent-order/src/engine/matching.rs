//! Why conditions do not allow an order, or allow too much: orders of which one would have to be another.
//!
//! Whether some choice of whom notifies woke allows an order is a question of matching ([`super::sleeps`]). Where it has come to a wake that is
//! not possible, too few notifies lie within some stretch, or too few sleepers around some notifies (Hall): one of the orders that say so must
//! be another. What is told here holds in every reordering, whatever was taken before.

use super::index::{Chain, Node, WaitId};
use super::simulate::Simulator;
use super::sleeps::Waiting;
use super::window::{Act, Window};
use portent_trace::Reach;
use rustc_hash::FxHashMap;

/// What of a condition is done, and when: what was there before the window comes first.
struct Done<'a> {
    w: &'a Window<'a>,
    of: &'a Waiting,
    step: FxHashMap<Node, i64>,
    /// The notify-alls that have happened, by time.
    alls: Vec<(i64, Node)>,
    now: i64,
}

impl<'a> Done<'a> {
    fn new(w: &'a Window<'_>, of: &'a Waiting, order: &[Node]) -> Self {
        let step = order.iter().zip(1..).filter(|(node, _)| w.act[**node].is_of_condition());
        let step: FxHashMap<Node, i64> = step.map(|(&node, at)| (node, at)).collect();
        let nodes = of.notifies.iter().flat_map(|list| &list.nodes);
        let alls = nodes.filter(|&&node| w.act[node].reach() == Some(Reach::All));
        let mut alls: Vec<(i64, Node)> = alls.filter_map(|&node| Some((*step.get(&node)?, node))).collect();
        alls.sort_unstable();
        Done { w, of, step, alls, now: order.len() as i64 + 1 }
    }
    fn at(&self, node: Node) -> Option<i64> {
        self.step.get(&node).copied()
    }
    fn base_time(&self, place: usize) -> i64 {
        place as i64 - self.of.base.line().len() as i64
    }
    /// When a wait began, if it has and is not known to be woken when the window starts.
    fn start(&self, id: WaitId) -> Option<i64> {
        match self.w.waits[id].sleep {
            Some(sleep) => self.at(sleep),
            None => self.of.base.line().iter().position(|item| *item == Some(id)).map(|at| self.base_time(at)),
        }
    }
    /// When it ended, if it has.
    fn end(&self, id: WaitId) -> Option<i64> {
        self.w.waits[id].wake.and_then(|wake| self.at(wake))
    }
    /// The notify-ones that have happened, and when; `None` for those before the window.
    fn notifies(&self) -> Vec<(Option<Node>, i64)> {
        let permits = self.of.base.line().iter().enumerate().filter(|(_, item)| item.is_none());
        let before = permits.map(|(at, _)| (None, self.base_time(at)));
        let nodes = self.of.notifies.iter().flat_map(|list| &list.nodes);
        let ones = nodes.filter(|&&node| self.w.act[node].reach() == Some(Reach::One));
        before.chain(ones.filter_map(|&node| Some((Some(node), self.at(node)?)))).collect()
    }
    /// The first notify-all between two moments.
    fn all_between(&self, from: i64, to: i64) -> Option<Node> {
        let at = self.alls.partition_point(|(at, _)| *at <= from);
        self.alls.get(at).filter(|(at, _)| *at < to).map(|(_, node)| *node)
    }

    /// Orders of which one must hold so that a notify can have ended a wait whose wake is next.
    fn too_few_notifies(&self, id: WaitId, now: Node) -> Option<Vec<(Node, Node)>> {
        let served = |&(_, start, end): &(WaitId, i64, i64)| self.all_between(start, end).is_some();
        let ended = |&other: &WaitId| {
            let end = if other == id { Some(self.now) } else { self.end(other) };
            Some((other, self.start(other)?, end?)).filter(|_| other == id || !self.w.waits[other].by_itself)
        };
        let mut waits: Vec<(WaitId, i64, i64)> = self.of.waits.iter().filter_map(ended).collect();
        waits.retain(|wait| !served(wait));
        waits.sort_unstable_by_key(|&(_, start, _)| std::cmp::Reverse(start));
        let ones = self.notifies();
        // The shortest stretch up to now that has more waits than notifies.
        let short = (0..waits.len()).find(|&at| {
            let from = waits[at].1;
            at + 1 > ones.iter().filter(|(_, notified)| *notified > from).count()
        })?;
        let (first, from, _) = waits[short];
        if self.all_between(from, self.now).is_some() {
            return None; // Something before is impossible already, and told.
        }
        let mut orders = Vec::new();
        for &(other, ..) in &waits[..=short] {
            let wait = self.w.waits[other];
            orders.extend(wait.sleep.zip(self.w.waits[first].sleep).filter(|_| other != first));
            orders.extend(wait.wake.filter(|_| other != id).map(|wake| (now, wake)));
        }
        for list in &self.of.notifies {
            let done = list.nodes.partition_point(|&node| self.at(node).is_some());
            let before = list.nodes[..done].partition_point(|&node| self.at(node).is_some_and(|at| at < from));
            let last = before.checked_sub(1).map(|at| list.nodes[at]);
            orders.extend(self.w.waits[first].sleep.zip(last));
            orders.extend(list.nodes.get(done).map(|&next| (next, now)));
        }
        Some(orders)
    }

    /// Orders of which one must hold so that no notify need have ended a wait that is about to end by itself.
    fn too_few_sleepers(&self, id: WaitId, now: Node, z: Node) -> Option<Vec<(Node, Node)>> {
        let w = self.w;
        let Some(start) = self.start(id) else { return Some(Vec::new()) };
        let own = w.waits[id];
        if let Some(all) = self.all_between(start, self.now) {
            let mut orders = vec![(now, all)];
            orders.extend(own.sleep.map(|sleep| (all, sleep)));
            return Some(orders);
        }
        let (mut by_itself, mut others) = (Vec::new(), Vec::new());
        for &other in &self.of.waits {
            let Some(start) = self.start(other) else { continue };
            let end = if other == id { Some(self.now) } else { self.end(other) };
            match end {
                Some(end) if other == id || w.waits[other].by_itself => by_itself.push((other, start, end)),
                _ => others.push((other, start, end.unwrap_or(i64::MAX))),
            }
        }
        // Notifies that need another sleeper, each with who woke by itself and could have been woken.
        let needy = |&(node, at): &(Option<Node>, i64)| {
            let around = by_itself.iter().find(|(_, start, end)| *start < at && at < *end);
            around.map(|&(other, ..)| (node, at, other))
        };
        let needy: Vec<(Option<Node>, i64, WaitId)> = self.notifies().iter().filter_map(needy).collect();
        let covers = |&(_, start, end): &(WaitId, i64, i64), at: i64| {
            start < at && at < end && self.all_between(start, at).is_none()
        };
        let mut of: Vec<Option<usize>> = vec![None; others.len()];
        let mut short: Option<(Vec<bool>, Vec<bool>)> = None;
        for from in 0..needy.len() {
            let (mut notifies, mut sleepers) = (vec![false; needy.len()], vec![false; others.len()]);
            let can = |notify: usize, sleeper: usize| covers(&others[sleeper], needy[notify].1);
            if !assign(from, &can, &mut of, &mut notifies, &mut sleepers) {
                short = Some((notifies, sleepers));
                break;
            }
        }
        // Only those count here that certainly woke somebody, for somebody slept who then woke by itself.
        let Some((notifies, sleepers)) = short else { return Some(self.another_order(now)) };
        let needy: Vec<_> = needy.into_iter().zip(notifies).filter(|(_, is)| *is).map(|(one, _)| one).collect();
        let mut orders = Vec::new();
        for &(node, _, other) in &needy {
            let (Some(node), wait) = (node, w.waits[other]) else { continue };
            orders.extend(wait.sleep.map(|sleep| (node, sleep)));
            let end = if other == id { Some(now) } else { wait.wake };
            orders.extend(end.map(|end| (end, node)));
        }
        // Who has woken by itself is no other sleeper.
        orders.extend(
            by_itself
                .iter()
                .filter(|(other, ..)| *other != id)
                .filter_map(|(other, ..)| Some((z, w.waits[*other].wake?))),
        );
        for (sleeper, _) in others.iter().zip(sleepers).filter(|(_, is)| !is) {
            let wait = w.waits[sleeper.0];
            for &(node, at, _) in &needy {
                let Some(node) = node else { continue };
                if sleeper.1 > at {
                    orders.extend(wait.sleep.map(|sleep| (sleep, node)));
                } else if sleeper.2 < at {
                    orders.extend(wait.wake.map(|wake| (node, wake)));
                } else if let Some(all) = self.all_between(sleeper.1, at) {
                    orders.extend(wait.sleep.map(|sleep| (all, sleep)));
                    orders.push((node, all));
                }
            }
        }
        // Who has not slept yet.
        let mut later: FxHashMap<Chain, Node> = FxHashMap::default();
        for &other in &self.of.waits {
            if let (Some(sleep), None) = (w.waits[other].sleep, self.start(other)) {
                let first = later.entry(w.waits[other].chain).or_insert(sleep);
                *first = sleep.min(*first);
            }
        }
        orders.extend(later.values().flat_map(|&sleep| needy.iter().filter_map(move |one| Some((sleep, one.0?)))));
        Some(orders)
    }

    /// Orders of which one must hold so that no notify can have ended a wait that still lasts where the order stops.
    fn enough_notifies(&self, id: WaitId, z: Node) -> Vec<(Node, Node)> {
        let (w, own) = (self.w, self.w.waits[id]);
        let Some(start) = self.start(id) else { return Vec::new() };
        let after = |node: Node| own.sleep.map(|sleep| (node, sleep)).into_iter().chain([(z, node)]);
        if let Some(all) = self.all_between(start, self.now) {
            return after(all).collect();
        }
        let mut orders = Vec::new();
        let ended = |&&other: &&WaitId| other != id && !w.waits[other].by_itself;
        let mut taken = 0;
        for &other in self.of.waits.iter().filter(ended) {
            match self.end(other) {
                Some(end) if end > start => taken += 1,
                Some(_) => {
                    // Another wake could come later, and take one.
                    orders.extend(own.sleep.zip(w.waits[other].wake));
                }
                None => orders.extend(w.waits[other].wake.map(|wake| (wake, z))),
            }
        }
        let later: Vec<(Option<Node>, i64)> = self.notifies().into_iter().filter(|(_, at)| *at > start).collect();
        if later.len() > taken {
            orders.extend(later.iter().take(taken + 1).filter_map(|(node, _)| *node).flat_map(after));
            return orders;
        }
        // Some of those who woke meanwhile were woken before. All that has happened counts.
        self.another_order(z)
    }

    /// Orders of which one must hold if what was done to the condition, up to now, is not to be the same.
    fn another_order(&self, now: Node) -> Vec<(Node, Node)> {
        let mut nodes: Vec<(i64, Node)> = self.step.iter().map(|(&node, &at)| (at, node)).collect();
        nodes.retain(|(_, node)| self.is_here(*node));
        nodes.sort_unstable();
        // In what order it was done up to a moment when nobody slept does not matter.
        let mut asleep = self.of.waits.iter().filter(|&&id| self.w.waits[id].sleep.is_none()).count();
        let mut quiet = 0;
        for (at, (_, node)) in nodes.iter().enumerate() {
            match self.w.act[*node] {
                Act::Sleep(_) => asleep += 1,
                Act::Wake(_) | Act::Leave(_) => asleep -= 1,
                _ => {}
            }
            if asleep == 0 {
                quiet = at + 1;
            }
        }
        let (before, after) = nodes.split_at(quiet);
        let first = after.first().map_or(now, |(_, first)| *first);
        let mut last: FxHashMap<Chain, Node> = FxHashMap::default();
        last.extend(before.iter().map(|(_, node)| (self.w.chain_of[*node], *node)));
        let mut orders: Vec<(Node, Node)> = last.into_values().map(|last| (first, last)).collect();
        orders.sort_unstable();
        orders.extend(after.windows(2).map(|pair| (pair[1].1, pair[0].1)));
        orders.extend(after.last().map(|(_, last)| (now, *last)));
        orders.extend(self.unhappened().into_iter().map(|next| (next, now)));
        orders
    }

    /// Whether a node does something to this condition.
    fn is_here(&self, node: Node) -> bool {
        match self.w.act[node] {
            Act::Notify(..) => self.of.notifies.iter().any(|list| list.nodes.contains(&node)),
            Act::Sleep(wait) | Act::Wake(wait) | Act::Leave(wait) => self.of.waits.contains(&wait),
            _ => false,
        }
    }
    /// What is next to be done to this condition, thread by thread.
    fn unhappened(&self) -> Vec<Node> {
        let waits = self.of.waits.iter().map(|&id| self.w.waits[id]);
        let nodes = waits.flat_map(|wait| [wait.sleep, wait.wake]).flatten();
        let nodes = nodes.chain(self.of.notifies.iter().flat_map(|list| list.nodes.iter().copied()));
        let mut first: FxHashMap<Chain, Node> = FxHashMap::default();
        for node in nodes.filter(|&node| self.at(node).is_none()) {
            let known = first.entry(self.w.chain_of[node]).or_insert(node);
            *known = node.min(*known);
        }
        let mut first: Vec<Node> = first.into_values().collect();
        first.sort_unstable();
        first
    }
}

/// Gives a notify a sleeper, taking it from others who can have another (Kuhn); marks whom it looked at.
fn assign(
    notify: usize,
    can: &dyn Fn(usize, usize) -> bool,
    of: &mut Vec<Option<usize>>,
    notifies: &mut [bool],
    sleepers: &mut [bool],
) -> bool {
    notifies[notify] = true;
    for sleeper in 0..of.len() {
        if sleepers[sleeper] || !can(notify, sleeper) {
            continue;
        }
        sleepers[sleeper] = true;
        if of[sleeper].is_none_or(|other| assign(other, can, of, notifies, sleepers)) {
            of[sleeper] = Some(notify);
            return true;
        }
    }
    false
}

impl Simulator {
    /// Orders of which one must hold for a node that conditions do not allow; `None` if what was taken before is why.
    pub(super) fn not_asleep_so(&self, w: &Window<'_>, node: Node) -> Option<Vec<(Node, Node)>> {
        let (Act::Wake(id) | Act::Leave(id)) = w.act[node] else { return None };
        let done = Done::new(w, &w.conditions[w.waits[id].condition], self.order());
        match w.act[node] {
            Act::Wake(_) if done.start(id).is_none() => Some(Vec::new()), // Nobody knows of its sleep.
            Act::Wake(_) => done.too_few_notifies(id, node),
            // The cut is behind all events.
            _ => done.too_few_sleepers(id, node, w.chain_of.end()),
        }
    }

    /// Orders of which one must hold so that a notify can have ended a wait that lasts where the order stops.
    pub(super) fn why_not_woken(&self, w: &Window<'_>, id: WaitId, z: Node) -> Vec<(Node, Node)> {
        let done = Done::new(w, &w.conditions[w.waits[id].condition], self.order());
        done.too_few_notifies(id, z).unwrap_or_else(|| done.another_order(z))
    }

    /// Orders of which one must hold so that no notify need have ended it.
    pub(super) fn why_not_asleep(&self, w: &Window<'_>, id: WaitId, z: Node) -> Vec<(Node, Node)> {
        let done = Done::new(w, &w.conditions[w.waits[id].condition], self.order());
        done.too_few_sleepers(id, z, z).unwrap_or_else(|| done.another_order(z))
    }

    /// Orders of which one must hold so that a wait lasts where the order stops, though a notify can have ended it.
    pub(super) fn why_awake(&self, w: &Window<'_>, id: WaitId, z: Node) -> Vec<(Node, Node)> {
        Done::new(w, &w.conditions[w.waits[id].condition], self.order()).enough_notifies(id, z)
    }
}
