//! Tier 3: conflict-driven search over order literals, observed order first; one solver for all questions of a window.
//!
//! The encoding of docs/src/internals/encoding.md: a node Z is the cut, the goal is made of assumptions only, and every constraint binds only
//! inside the witness, so what is learnt for one question holds for all. Clauses are made *on demand*: the solver's order
//! is put to the test by the simulator, and only constraints that stand in its way become clauses. Hot variables would
//! need cubically many of them beforehand; hardly any are ever asked for.

use super::Effort;
use super::index::{Chain, Node, Place, ScopeId, Source, Variable};
use super::simulate::Obstacle;
use super::symbolic::Evaluation;
use super::target::{Finds, Free, Target};
use super::theory::{OrderTheory, Simulated};
use super::window::{Act, Window};
use crate::goal::Unknown;
use crate::read_rule::ReadRule;
use batsat::{Callbacks, Lit, Solver, SolverInterface, SolverOpts, Var, lbool};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::rc::Rc;

/// How many decisions cost as much effort as a conflict. Where there are formulas, every order that is proposed is decided
/// anew and hardly ever runs into conflicts: there each decision counts.
const DECISIONS: u64 = 8;

#[derive(Default)]
struct Gauge {
    /// Conflicts, and what costs as much.
    conflicts: Cell<u64>,
    decisions: Cell<u64>,
    /// How many decisions count as one conflict.
    price: u64,
    limit: Cell<u64>,
    effort: Cell<Option<Effort>>,
}

impl Gauge {
    fn spent(&self) -> Option<Unknown> {
        if self.conflicts.get() > self.limit.get() {
            return Some(Unknown::Conflicts);
        }
        self.effort.get().is_some_and(|effort| effort.is_over()).then_some(Unknown::Deadline)
    }
}

struct Watcher(Rc<Gauge>);

impl Callbacks for Watcher {
    fn on_new_clause(&mut self, _: &[Lit], kind: batsat::ClauseKind) {
        if !matches!(kind, batsat::ClauseKind::Axiom) {
            self.0.conflicts.set(self.0.conflicts.get() + 1);
        }
    }
    /// The solver asks before every decision.
    fn stop(&self) -> bool {
        self.0.decisions.set(self.0.decisions.get() + 1);
        if self.0.decisions.get().is_multiple_of(self.0.price) {
            self.0.conflicts.set(self.0.conflicts.get() + 1);
        }
        self.0.spent().is_some()
    }
}

/// Something true, something false, or something to be decided.
#[derive(Clone, Copy)]
enum Decided {
    Always,
    Never,
    Open(Lit),
}

/// A constraint that has become clauses, so that none is made twice.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Made {
    Obstacle(Obstacle),
    Last(Variable, Source, Node),
    /// One of these orders, for an event that needs it.
    Needs(Node, Vec<(Node, Node)>),
    /// One of these orders, where nobody is to go on, for a chain that is there.
    MustWait(Chain, Place, Vec<(Node, Node)>),
    /// One of these orders, where something is to be found after the set.
    Finds(Finds, Vec<(Node, Node)>),
}

/// Whether it refuses an order that obeys all rules.
pub(super) type Judge<'a> = &'a mut dyn FnMut(&mut Search<'_, '_>, &[Node]) -> bool;

pub(crate) enum Found {
    /// The events of the witness, in order.
    Order(Vec<Node>),
    Impossible,
    Unknown(Unknown),
}

pub(crate) struct Search<'w, 't> {
    pub(super) w: &'w Window<'t>,
    solver: Solver<Watcher>,
    gauge: Rc<Gauge>,
    pub(super) theory: OrderTheory<'w, 't>,
    pairs: FxHashMap<(Node, Node), Lit>,
    pub(super) made: FxHashSet<Made>,
    /// "This write is the last of its variable", by variable and write.
    last: FxHashMap<(Variable, Source), Lit>,
    /// "Nobody can go on after the set."
    pub(super) stuck: Option<Lit>,
    /// "This scope is open at the cut".
    pub(super) open: FxHashMap<ScopeId, Lit>,
    /// In `values`: "this read sees what it expects", "this is what this read sees", "all reads before this
    /// write see what they expect".
    pub(super) kept: FxHashMap<Node, Lit>,
    pub(super) sources: FxHashMap<(Source, Node), Lit>,
    pub(super) trusted: FxHashMap<Node, Lit>,
    /// Where there are formulas: reads that have a literal for each write they could see; "what this read (or the
    /// variable, at the end) sees changes by this write".
    pub(super) chosen: FxHashSet<Node>,
    pub(super) changes: FxHashMap<(Option<Node>, Option<Source>), Lit>,
    pub(super) possible: FxHashMap<Node, Lit>,
    /// Events whose conditions on a single read have become clauses.
    pub(super) ruled_out: FxHashSet<Node>,
    pub(super) evaluation: Option<Evaluation<'w, 't>>,
    /// "One of these events has happened", "this lock is free after the set".
    contained: FxHashMap<Vec<Node>, Lit>,
    free: FxHashMap<Free, Lit>,
    /// "This is found after the set."
    finds: FxHashMap<Finds, Lit>,
}

impl<'w, 't> Search<'w, 't> {
    pub(crate) fn new(w: &'w Window<'t>) -> Self {
        let price = if w.trace.symbols().is_some() { 1 } else { DECISIONS };
        let gauge = Rc::new(Gauge { price, ..Gauge::default() });
        let mut search = Search {
            w,
            solver: Solver::new(SolverOpts::default(), Watcher(gauge.clone())),
            gauge,
            theory: OrderTheory::new(w),
            pairs: FxHashMap::default(),
            made: FxHashSet::default(),
            last: FxHashMap::default(),
            stuck: None,
            open: FxHashMap::default(),
            kept: FxHashMap::default(),
            sources: FxHashMap::default(),
            trusted: FxHashMap::default(),
            chosen: FxHashSet::default(),
            changes: FxHashMap::default(),
            possible: FxHashMap::default(),
            ruled_out: FxHashSet::default(),
            evaluation: Evaluation::of(w),
            contained: FxHashMap::default(),
            free: FxHashMap::default(),
            finds: FxHashMap::default(),
        };
        let z = search.theory.z();
        for wait in w.waits.iter() {
            if let (Some(sleep), Some(only), Some(wake)) = (wait.sleep, wait.only, wait.wake) {
                search.clause(&[(z, wake), (sleep, only)], &[]);
            }
        }
        search
    }

    pub(crate) fn decisions(&self) -> u64 {
        self.solver.num_decisions()
    }
    pub(crate) fn conflicts(&self) -> u64 {
        self.solver.num_conflicts()
    }
    pub(crate) fn clauses(&self) -> u64 {
        self.solver.num_clauses()
    }

    fn before(&mut self, a: Node, b: Node) -> Decided {
        if a == b || self.theory.is_hard(b, a) {
            return Decided::Never;
        }
        if self.theory.is_hard(a, b) {
            return Decided::Always;
        }
        let key = (a.min(b), a.max(b));
        let z = self.theory.z();
        let lit = match self.pairs.get(&key) {
            Some(&lit) => lit,
            None => {
                // The solver tries false first: there lies the observed order, and for Z the smaller witness.
                let var = self.solver.new_var_default();
                let (from, to) = if key.1 == z { key } else { (key.1, key.0) };
                self.theory.watch(var, from, to);
                let lit = if from == key.0 { Lit::new(var, true) } else { Lit::new(var, false) };
                self.pairs.insert(key, lit);
                lit
            }
        };
        Decided::Open(if a == key.0 { lit } else { !lit })
    }

    /// Counts effort that the solver does not see.
    pub(super) fn spend(&self, conflicts: u64) {
        self.gauge.conflicts.set(self.gauge.conflicts.get() + conflicts);
    }

    pub(super) fn fresh(&mut self) -> Lit {
        let var: Var = self.solver.new_var_default();
        Lit::new(var, true)
    }

    /// Adds the clause "one of these orders, or one of these literals".
    pub(super) fn clause(&mut self, orders: &[(Node, Node)], lits: &[Lit]) {
        let mut clause = lits.to_vec();
        for &(a, b) in orders {
            match self.before(a, b) {
                Decided::Always => return,
                Decided::Never => {}
                Decided::Open(lit) => clause.push(lit),
            }
        }
        self.solver.add_clause_reuse(&mut clause);
    }

    /// A witness of the target, or the news that there is none.
    pub(crate) fn solve(&mut self, target: &Target, limits: Effort) -> Found {
        self.solve_judged(target, limits, None)
    }

    /// The same, where a judge may refuse orders: it then adds clauses against them that bind where its literal holds.
    pub(super) fn solve_judged(&mut self, target: &Target, limits: Effort, judge: Option<(Lit, Judge<'_>)>) -> Found {
        self.gauge.limit.set(self.gauge.conflicts.get() + limits.conflicts);
        self.gauge.effort.set(Some(limits));
        let Some(mut assumptions) = self.assumptions(target) else { return Found::Impossible };
        assumptions.extend(judge.as_ref().map(|(goal, _)| *goal));
        let mut refuses = judge.map(|(_, refuses)| refuses);
        loop {
            self.theory.simulated = Simulated::NotYet;
            let result = self.solver.solve_limited_th(&mut self.theory, &assumptions);
            if result == lbool::FALSE {
                return Found::Impossible;
            }
            let spent = self.gauge.spent();
            if result != lbool::TRUE || spent.is_some() {
                return Found::Unknown(spent.unwrap_or(Unknown::Stalled));
            }
            match std::mem::take(&mut self.theory.simulated) {
                Simulated::Order(order) => {
                    match self.faults(target, &order) {
                        Some(true) => continue,
                        Some(false) => return Found::Unknown(Unknown::Stalled),
                        None => {}
                    }
                    if let Some(order) = self.get_stuck(target) {
                        return Found::Order(order);
                    }
                    if !self.refine_goal(target) && !refuses.as_mut().is_some_and(|refuses| refuses(self, &order)) {
                        return Found::Order(order);
                    }
                }
                Simulated::Obstacles(obstacles) => {
                    if !self.make_new(obstacles) {
                        return Found::Unknown(Unknown::Stalled);
                    }
                }
                Simulated::NotYet => return Found::Unknown(Unknown::Stalled),
            }
        }
    }

    fn assumptions(&mut self, target: &Target) -> Option<Vec<Lit>> {
        let z = self.theory.z();
        let mut orders = target.edges.clone();
        for chain in self.w.chains() {
            if let Some(last) = target.cut[chain].previous() {
                orders.push((self.w.chain[chain][last], z));
            }
            if let Some(&stop) = self.w.chain[chain].get(target.stop[chain]) {
                orders.push((z, stop));
            }
        }
        let mut assumptions = Vec::new();
        for (a, b) in orders {
            match self.before(a, b) {
                Decided::Always => {}
                Decided::Never => return None,
                Decided::Open(lit) => assumptions.push(lit),
            }
        }
        if let Some(key) = target.last {
            let lit = match self.last.get(&key) {
                Some(&lit) => lit,
                None => {
                    let lit = self.fresh();
                    if let Some(trusted) = self.is_trusted(key.1) {
                        self.clause(&[], &[!lit, trusted]);
                    }
                    lit
                }
            };
            self.last.insert(key, lit);
            assumptions.push(lit);
            if self.w.rule == ReadRule::SameFormulas {
                assumptions.push(self.changes(target));
            }
        }
        for &node in target.next.iter().filter(|&&node| self.w.is_guarded(node)) {
            assumptions.push(self.is_possible(node));
        }
        assumptions.extend(target.one_of.iter().map(|events| self.is_contained(events)));
        assumptions.extend(target.free.map(|free| self.is_free(free)));
        for &finds in &target.finds {
            let lit = self.finds.get(&finds).copied().unwrap_or_else(|| self.fresh());
            self.finds.insert(finds, lit);
            assumptions.push(lit);
        }
        if target.stuck.is_some() {
            assumptions.push(self.is_stuck());
        }
        Some(assumptions)
    }

    /// "One of these events has happened."
    fn is_contained(&mut self, events: &[Node]) -> Lit {
        if let Some(&lit) = self.contained.get(events) {
            return lit;
        }
        let (lit, z) = (self.fresh(), self.theory.z());
        let orders: Vec<(Node, Node)> = events.iter().map(|&event| (event, z)).collect();
        self.clause(&orders, &[!lit]);
        self.contained.insert(events.to_vec(), lit);
        lit
    }

    /// "No other chain holds this lock after the set."
    fn is_free(&mut self, free: Free) -> Lit {
        if let Some(&lit) = self.free.get(&free) {
            return lit;
        }
        let (w, lit, z) = (self.w, self.fresh(), self.theory.z());
        for scope in free.rivals(w).map(|scope| w.scopes[scope]) {
            let not_yet = scope.acquire.map(|acquire| (z, acquire));
            let over = scope.release.map(|release| (release, z));
            let orders: Vec<(Node, Node)> = not_yet.into_iter().chain(over).collect();
            self.clause(&orders, &[!lit]);
        }
        self.free.insert(free, lit);
        lit
    }

    /// Makes clauses of the obstacles that are none yet; whether there are any.
    pub(super) fn make_new(&mut self, obstacles: Vec<Obstacle>) -> bool {
        let simulator = self.theory.simulator();
        let made = |obstacle: Obstacle| match obstacle {
            Obstacle::Needs(node, number) => Made::Needs(node, simulator.elsewhere(number).to_vec()),
            obstacle => Made::Obstacle(obstacle),
        };
        let new = obstacles.into_iter().filter(|&o| self.made.insert(made(o))).collect::<Vec<_>>();
        debug_assert!(!new.is_empty(), "what is wrong with an order is no clause yet");
        new.iter().for_each(|&obstacle| self.make(obstacle));
        !new.is_empty()
    }

    fn make(&mut self, obstacle: Obstacle) {
        let (w, z) = (self.w, self.theory.z());
        match obstacle {
            Obstacle::Scopes(one, two) => {
                let (one, two) = (w.scopes[one], w.scopes[two]);
                let mut orders = Vec::new();
                for (a, b) in [(one, two), (two, one)] {
                    orders.extend(a.acquire.map(|acquire| (z, acquire)));
                    orders.extend(a.release.zip(b.acquire));
                }
                self.clause(&orders, &[]);
            }
            Obstacle::FromRead(read, source, rival) => {
                let mut orders = vec![(read, rival)];
                orders.extend(source.node().map(|writer| (rival, writer)));
                match self.sources.get(&(source, read)) {
                    Some(&sees) => self.clause(&orders, &[!sees]),
                    None => {
                        orders.push((z, read));
                        self.clause(&orders, &[]);
                    }
                }
            }
            Obstacle::NotWritten(_) => debug_assert!(false, "the order has what a read is to see before it"),
            Obstacle::Needs(node, number) => {
                let mut orders = self.theory.simulator().elsewhere(number).to_vec();
                orders.push((z, node));
                self.clause(&orders, &[]);
            }
            Obstacle::Changed(read) => self.must_keep(read),
            Obstacle::Tainted(write, read) => self.must_keep_before(write, read),
            Obstacle::Busy(node) => {
                let Act::Busy(lock, mode) = w.act[node] else { return };
                let mut holders = Vec::new();
                for list in &w.locks[lock] {
                    if list.chain != w.chain_of[node] && list.mode.conflicts_with(mode) {
                        for &scope in &list.scopes {
                            let scope = w.scopes[scope];
                            let held = self.fresh();
                            if let Some(acquire) = scope.acquire {
                                self.clause(&[(acquire, node)], &[!held]);
                            }
                            if let Some(release) = scope.release {
                                self.clause(&[(node, release)], &[!held]);
                            }
                            holders.push(held);
                        }
                    }
                }
                self.clause(&[(z, node)], &holders);
            }
        }
    }

    /// Holds an order that obeys all rules against the goal; adds what is missing and says so.
    fn refine_goal(&mut self, target: &Target) -> bool {
        let z = self.theory.z();
        let mut refined = false;
        if let Some((x, last)) = target.last {
            let found = self.theory.simulator().last_write(x);
            if found != last {
                let goal = self.last[&(x, last)];
                // What must be last has happened, so there is a last write.
                if let Source::Write(found) = found
                    && self.made.insert(Made::Last(x, last, found))
                {
                    let mut orders = vec![(z, found)];
                    orders.extend(last.node().map(|last| (found, last)));
                    self.clause(&orders, &[!goal]);
                }
                refined = true;
            }
        }
        for &finds in &target.finds {
            if self.theory.simulator().finds(self.w, finds) {
                continue;
            }
            let orders = self.theory.simulator().to_find(self.w, finds, z);
            if self.made.insert(Made::Finds(finds, orders.clone())) {
                let goal = self.finds[&finds];
                self.clause(&orders, &[!goal]);
            }
            refined = true;
        }
        if target.stuck.is_some() {
            refined |= self.refine_stuck();
        }
        refined
    }
}
