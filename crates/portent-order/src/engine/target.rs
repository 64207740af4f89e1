//! Goals as the engine solves them: which events must have happened, where threads must stop, what order is wanted.
//!
//! A goal is a disjunction of targets. Every target asks for a set of events, closed under the past, that contains
//! `cut`, stays below `stop`, and can be ordered so that `edges` hold and `last` is the last write of its variable;
//! then the `tail` happens. (docs/src/internals/encoding.md writes the same with a node Z: what is in the set is before Z.)

use super::counts::Need;
use super::index::{Chain, Lock, Node, Place, ScopeId, Semaphore, Source, Variable, WaitId};
use super::rows::Cut;
use super::window::{Act, Freed, ScopesInChain, Window};
use crate::goal::{Goal, Writer};
use portent_trace::{EventId, Mode, Op, Reach, Trace};

/// A lock that a chain is to find free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Free {
    pub lock: Lock,
    pub mode: Mode,
    pub chain: Chain,
}

impl Free {
    /// The scopes of other chains that exclude it.
    pub(crate) fn rivals<'w>(self, window: &'w Window<'_>) -> impl Iterator<Item = ScopeId> + 'w {
        let excludes = move |list: &&ScopesInChain| list.chain != self.chain && list.mode.conflicts_with(self.mode);
        window.locks[self.lock].iter().filter(excludes).flat_map(|list| list.scopes.iter().copied())
    }
}

/// One way to reach a goal.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What must have happened.
    pub cut: Cut,
    /// What may have happened.
    pub stop: Cut,
    /// Order that the goal wants.
    pub edges: Vec<(Node, Node)>,
    /// Variable, and the write that must be the last of it.
    pub last: Option<(Variable, Source)>,
    /// Events that must be possible after the set.
    pub next: Vec<Node>,
    /// Events that the goal executes at the end, after the set.
    pub tail: Vec<Node>,
    /// An update that may read anything, in one step or in two, and where its thread stops.
    pub freed: Option<Freed>,
    /// A node at which a chain waits for good, as nobody can go on.
    pub stuck: Option<Node>,
    /// Of each of these lists, one event must have happened.
    pub one_of: Vec<Vec<Node>>,
    /// A lock that a chain must be able to take after the set.
    pub free: Option<Free>,
    /// What else a chain must find after the set.
    pub finds: Vec<Finds>,
}

/// What a chain is to find after a set of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Finds {
    /// A semaphore that counts enough, or nothing, when it stands at this place: its own operations count, too.
    Count(Chain, Place, Semaphore, Need),
    /// That a notify can have ended its wait.
    Woken(WaitId),
    /// That none need have.
    Asleep(WaitId),
    /// That none can have.
    Unwoken(WaitId),
}

impl Target {
    pub(crate) fn new(window: &Window<'_>) -> Self {
        let (cut, stop) = (window.nothing(), window.everything());
        Target {
            cut,
            stop,
            edges: Vec::new(),
            last: None,
            next: Vec::new(),
            tail: Vec::new(),
            freed: None,
            stuck: None,
            one_of: Vec::new(),
            free: None,
            finds: Vec::new(),
        }
    }
    /// Everything before `node` has happened, and it has not.
    pub(super) fn at(mut self, window: &Window<'_>, node: Node) -> Self {
        if let Some(before) = window.before(node) {
            self.cut.join(window.past_of(before));
        }
        let chain = window.chain_of[node];
        self.stop[chain] = self.stop[chain].min(window.place[node]);
        self.next.push(node);
        self
    }
    /// `node` has happened.
    pub(super) fn with(mut self, window: &Window<'_>, node: Node) -> Self {
        self.cut.join(window.past_of(node));
        self
    }
    fn edge(mut self, before: Node, after: Node) -> Self {
        self.edges.push((before, after));
        self
    }
    /// Up to where the observed order may be kept: below the events that the goal puts into another order.
    pub(crate) fn cap(&self, window: &Window<'_>) -> Cut {
        let mut cap = self.stop.clone();
        let wanted = self.edges.iter().flat_map(|&(a, b)| [a, b]).chain(self.relied());
        for node in wanted {
            let chain = window.chain_of[node];
            cap[chain] = cap[chain].min(window.place[node]);
        }
        cap
    }
    /// In `values`: the value that the goal's read, or the variable at the end, had in the trace.
    pub(crate) fn value_to_change(&self, window: &Window<'_>) -> Option<i64> {
        let values = window.values.as_deref()?;
        match (self.tail.first(), self.last) {
            (Some(&read), _) => values.expects(read),
            (None, Some((x, _))) => {
                let last = window.writes_of(x).max()?;
                values.traced(window, x, Source::Write(last))
            }
            _ => None,
        }
    }
    /// In `values`: the write whose value the goal is about.
    pub(crate) fn relied(&self) -> Option<Node> {
        self.last.and_then(|(_, last)| last.node())
    }
    /// Whether a set contains what the target wants one of, and leaves free what it wants free.
    pub(crate) fn is_met_by(&self, window: &Window<'_>, cut: &Cut) -> bool {
        let contains = |one_of: &Vec<Node>| one_of.iter().any(|&node| window.is_in(cut, node));
        self.one_of.iter().all(contains)
            && self.free.is_none_or(|free| {
                free.rivals(window).all(|scope| {
                    let (scope, at) = (window.scopes[scope], cut[window.scopes[scope].chain]);
                    let begun = scope.acquire.is_none_or(|acquire| window.place[acquire] < at);
                    !begun || !window.is_open_at(&scope, at)
                })
            })
    }
    /// Whether what must have happened already contains what must not.
    pub(crate) fn is_contradictory(&self) -> bool {
        !self.cut.row().is_within(&self.stop)
    }
}

/// The targets of a goal, all of whose events are in the window; `None` if one is not.
pub(crate) fn targets(window: &Window<'_>, goal: &Goal) -> Option<Vec<Target>> {
    let new = || Target::new(window);
    match *goal {
        Goal::Race { first, second } => {
            let (a, b) = (window.node(first)?, window.node(second)?);
            Some(vec![new().at(window, a).at(window, b)])
        }
        Goal::Nondeterminism { read, challenger } => {
            let r = window.node(read)?;
            let x = window.act[r].read().or(window.act[r].written())?;
            let mut target = new().at(window, r);
            target.last = Some((x, Source::Base));
            if window.base_writer(x) != challenger {
                let Writer::Event(c) = challenger else { return Some(Vec::new()) };
                if c.index() < window.first {
                    return Some(Vec::new()); // Overwritten before the window starts.
                }
                let c = window.node(c)?;
                target = target.with(window, c);
                target.last = Some((x, Source::Write(c)));
            }
            if target.last.is_some_and(|(_, last)| window.is_no_change(r, last)) {
                return Some(Vec::new());
            }
            target.tail = vec![r];
            Some(vec![target])
        }
        Goal::FinalValue { variable, challenger } => {
            if !window.relaxed && !window.reaches_the_end() {
                return None;
            }
            let c = window.node(challenger)?;
            let mut target = new();
            target.cut = target.stop.clone();
            let x = window.variable_index(variable)?;
            if window.last_writes(x, &target.cut).max().is_some_and(|last| window.ends_the_same(last, c)) {
                return Some(Vec::new());
            }
            target.last = Some((x, Source::Write(c)));
            Some(vec![target])
        }
        Goal::Atomicity { first, remote, second } => {
            let (f, e2) = (window.node(remote)?, window.node(second)?);
            // Below the window, it has happened before everything in it.
            let e1 = match window.node(first) {
                None if !window.precedes_its_thread(first) => return None,
                e1 => e1,
            };
            let after_e1 = |target: Target| e1.into_iter().fold(target, |target, e1| target.edge(e1, f));
            let mut kept = after_e1(new().at(window, e2).with(window, f));
            kept.tail = vec![e2];
            let mut all = vec![kept];
            match window.act[f] {
                Act::Read(_) if window.rule.frees_reads() => {
                    let mut free = new().at(window, e2).at(window, f);
                    free.tail = vec![f, e2];
                    all.push(free);
                }
                Act::Update(_) if window.rule.frees_reads() => {
                    let freeing = window.freeing(Freed { read: f, last: f });
                    let mut free = after_e1(new().at(&freeing, e2).with(&freeing, f));
                    free.stop[window.chain_of[f]] = window.place[f].next();
                    free.tail = vec![e2];
                    free.freed = Some(Freed { read: f, last: f });
                    all.push(free);
                }
                _ => {}
            }
            Some(all)
        }
        Goal::LostUpdate { first, read, remote, second } => {
            let (g, f, e2) = (window.node(read)?, window.node(remote)?, window.node(second)?);
            // As above.
            let e1 = match window.node(first) {
                None if !window.precedes_its_thread(first) => return None,
                e1 => e1,
            };
            let after_e1 = |target: Target| e1.into_iter().fold(target, |target, e1| target.edge(e1, f));
            let mut kept = after_e1(new().at(window, e2).with(window, f));
            kept.tail = vec![e2];
            let mut all = vec![kept];
            if window.rule.frees_reads() {
                let freed = Freed { read: g, last: window.end_of_update(f)? };
                let freeing = window.freeing(freed);
                let mut free = after_e1(new().at(&freeing, e2).with(&freeing, f));
                free.stop[window.chain_of[f]] = window.place[freed.last].next();
                free.tail = vec![e2];
                free.freed = Some(freed);
                all.push(free);
            }
            Some(all)
        }
        Goal::Deadlock { ref waiting } => {
            let mut target = new();
            if waiting.iter().any(|&event| window.trace.tries(event)) {
                return Some(Vec::new()); // Nobody waits there.
            }
            for &event in waiting {
                target = target.at(window, window.node(event)?);
            }
            Some(vec![target])
        }
        Goal::LostWakeup { pairing } => {
            if !window.relaxed && !window.reaches_the_end() {
                return None; // Whether the others are stuck depends on events behind the window.
            }
            let pairing = window.trace.pairings()[pairing.index()];
            let (sleep, notify, wake) =
                (window.node(pairing.sleep)?, window.node(pairing.notify)?, window.node(pairing.wake)?);
            let mut target = new().at(window, wake).with(window, notify);
            let Act::Wake(wait) = window.act[wake] else { return None };
            // A notify that finds it asleep wakes it, if that wakes everybody, or there is nobody else.
            let wakes_all = window.trace.op(pairing.notify) == Op::Notify(pairing.condition, Reach::All);
            if wakes_all || window.waits[wait].alone {
                target = target.edge(notify, sleep);
            }
            target.stuck = Some(wake).filter(|_| !window.relaxed);
            Some(vec![target])
        }
        Goal::Stuck { waiting } => {
            if !window.relaxed && !window.reaches_the_end() {
                return None; // As above.
            }
            let node = window.node(waiting)?;
            if !can_wait(window.trace, waiting) {
                return Some(Vec::new());
            }
            let mut target = new().at(window, node);
            target.stuck = Some(node).filter(|_| !window.relaxed);
            Some(vec![target])
        }
    }
}

/// Whether there is something that a thread can wait for at an event.
fn can_wait(trace: &Trace, event: EventId) -> bool {
    match trace.op(event) {
        Op::Acquire(..) => !trace.tries(event),
        Op::Wake(_) => trace.pairing_of_wake(event).is_some(),
        Op::Receive(_) | Op::Wait(_) => true,
        _ => false,
    }
}
