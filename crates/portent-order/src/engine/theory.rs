//! Order as a theory for the SAT solver: literals are edges, assigned ones must not form a cycle.
//!
//! The nodes are the events of a window and Z, the cut: an event is in the witness iff it is before Z. Each node has a
//! row with, per chain, how many events come before it; rows grow along chains, so that the first successor of a node in
//! a chain is a binary search and a cycle test is one look-up. Every literal that becomes implied is propagated, and
//! explained only when the solver asks, by a path over the edges that were there at the time.

use super::index::{Chain, Dense, EdgeId, Id, IndexVec, Node, Place, Source};
use super::rows::{Cut, Raised, Rows};
use super::simulate::{Obstacle, Simulator};
use super::window::Window;
use batsat::{Lit, Theory, TheoryArg, Var, lbool};
use std::ops::Range;

struct Edge {
    from: Node,
    to: Node,
    lit: Lit,
}

/// What the solver's model came to when it was put into an order.
#[derive(Debug, Default)]
pub(crate) enum Simulated {
    #[default]
    NotYet,
    /// This order of the events works.
    Order(Vec<Node>),
    /// It does not, and these are the reasons.
    Obstacles(Vec<Obstacle>),
}

/// What there was when the solver made a decision.
#[derive(Clone, Copy)]
struct Level {
    rows: Raised,
    edges: EdgeId,
    seen: usize,
}

pub(crate) struct OrderTheory<'w, 't> {
    w: &'w Window<'t>,
    /// The cut: a node behind all events, alone in a chain of its own.
    z: Node,
    z_chain: Chain,
    rows: Rows,
    /// For each variable, the edge that its positive literal stands for; `None` for other variables.
    edge_of: IndexVec<Var, Option<(Node, Node)>>,
    /// Literals that hold once an event, by chain and place, comes before this node; sorted.
    incoming: IndexVec<Node, Vec<(Chain, Place, Lit)>>,
    fresh: Vec<Var>,
    edges: IndexVec<EdgeId, Edge>,
    /// Edges by chain of their target: place of the target, and the edge.
    into_chain: IndexVec<Chain, Vec<(Place, EdgeId)>>,
    levels: Vec<Level>,
    /// How much of the solver's trail has been seen.
    seen: usize,
    /// For each variable, the first edge that was not there when the theory propagated it.
    when: IndexVec<Var, EdgeId>,
    explanation: Vec<Lit>,
    /// What has grown since literals were last looked at: node, chain, and from where to where.
    grown: Vec<(Node, Chain, Range<Place>)>,
    scratch: Cut,
    simulator: Simulator,
    /// In `values`: literals that choose what a read is to see.
    pub choices: Vec<(Lit, Source, Node)>,
    pub simulated: Simulated,
}

impl<'w, 't> OrderTheory<'w, 't> {
    pub(crate) fn new(w: &'w Window<'t>) -> Self {
        OrderTheory {
            w,
            z: w.chain_of.end(),
            z_chain: w.chain.end(),
            rows: w.past.with_cut(),
            edge_of: IndexVec::default(),
            incoming: IndexVec::repeat(Vec::new(), w.len() + 1),
            fresh: Vec::new(),
            edges: IndexVec::default(),
            into_chain: IndexVec::repeat(Vec::new(), w.chain.len() + 1),
            levels: Vec::new(),
            seen: 0,
            when: IndexVec::default(),
            explanation: Vec::new(),
            grown: Vec::new(),
            scratch: Cut::default(),
            simulator: Simulator::default(),
            choices: Vec::new(),
            simulated: Simulated::NotYet,
        }
    }

    /// The node of the cut.
    pub(crate) fn z(&self) -> Node {
        self.z
    }
    /// The simulator, in the state of the last order that worked.
    pub(crate) fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// Lets `var` stand for `from` before `to` when true, and for the opposite when false.
    pub(crate) fn watch(&mut self, var: Var, from: Node, to: Node) {
        self.edge_of.reach(var, None);
        self.when.reach(var, EdgeId::new(0));
        self.edge_of[var] = Some((from, to));
        for (before, after, holds) in [(from, to, true), (to, from, false)] {
            let (chain, place) = (self.chain_of(before), self.place(before));
            let literals = &mut self.incoming[after];
            let at = literals.partition_point(|&(c, p, _)| (c, p) < (chain, place));
            literals.insert(at, (chain, place, Lit::new(var, holds)));
        }
        self.fresh.push(var);
    }

    #[inline]
    fn chain_of(&self, node: Node) -> Chain {
        if node == self.z { self.z_chain } else { self.w.chain_of[node] }
    }
    #[inline]
    fn place(&self, node: Node) -> Place {
        if node == self.z { Place::START } else { self.w.place[node] }
    }
    /// Whether `before` comes before `after` in what is assigned so far.
    #[inline]
    pub(crate) fn is_before(&self, before: Node, after: Node) -> bool {
        before != after && self.rows.at(after, self.chain_of(before)) > self.place(before)
    }
    /// Whether that holds in every reordering.
    pub(crate) fn is_hard(&self, before: Node, after: Node) -> bool {
        let z = self.z();
        before != z
            && after != z
            && before != after
            && self.w.past_of(after)[self.chain_of(before)] > self.place(before)
    }

    fn edge(&self, lit: Lit) -> Option<(Node, Node)> {
        let (from, to) = (*self.edge_of.get(lit.var())?)?;
        Some(if lit.sign() { (from, to) } else { (to, from) })
    }

    fn insert(&mut self, from: Node, to: Node, lit: Lit) {
        let mut row = std::mem::take(&mut self.scratch);
        row.copy(self.rows.row(from));
        let (chain, place) = (self.chain_of(to), self.place(to));
        let edge = self.edges.push(Edge { from, to, lit });
        self.into_chain[chain].push((place, edge));
        let single = [self.z];
        for other in self.into_chain.ids() {
            let nodes: &[Node] = if other == self.z_chain { &single } else { &self.w.chain[other] };
            let start = if other == chain {
                place.index()
            } else {
                nodes.partition_point(|&n| self.rows.at(n, chain) <= place)
            };
            for &node in &nodes[start..] {
                let watched = !self.incoming[node].is_empty();
                let changed = self.rows.raise(node, &row, |chain, from, to| {
                    if watched {
                        self.grown.push((node, chain, from..to));
                    }
                });
                if !changed {
                    break;
                }
            }
        }
        self.scratch = row;
    }

    /// Literals of a path from `from` to `to` over the edges before `time`, into `explanation`.
    fn explain(&mut self, from: Node, to: Node, time: EdgeId) {
        self.explanation.clear();
        let (chain, place) = (self.chain_of(from), self.place(from));
        // Backwards from `to`: what its past reaches without any edge, then over one edge, and so on.
        let mut reached = Cut::empty(self.into_chain.len());
        let mut found: Vec<(EdgeId, Option<usize>)> = Vec::new(); // Edge, and where in `found` the path goes on.
        let mut base = reached.clone();
        let mut next = 0;
        let mut node = to;
        let mut via = None;
        loop {
            if node == self.z {
                base.fill(Place::START);
                base[self.z_chain] = Place::START.next();
            } else {
                base.copy(self.w.past_of(node));
                base.push(Place::START);
            }
            if base[chain] > place {
                break;
            }
            for (other, edges) in self.into_chain.entries() {
                let (from, to) = (reached[other], base[other]);
                if to > from {
                    let new = edges.iter().filter(|&&(at, edge)| at >= from && at < to && edge < time);
                    found.extend(new.map(|&(_, edge)| (edge, via)));
                    reached[other] = to;
                }
            }
            let Some(&(edge, _)) = found.get(next) else {
                debug_assert!(false, "an implied literal has a path");
                return;
            };
            node = self.edges[edge].from;
            via = Some(next);
            next += 1;
        }
        while let Some(&(edge, onwards)) = via.and_then(|via| found.get(via)) {
            self.explanation.push(self.edges[edge].lit);
            via = onwards;
        }
    }

    /// Propagates the literals that hold by what has grown.
    fn propagate_grown(&mut self, acts: &mut TheoryArg<'_>) -> bool {
        let mut fine = true;
        'grown: for (node, chain, places) in self.grown.drain(..) {
            let literals = &self.incoming[node];
            let first = literals.partition_point(|&(c, p, _)| (c, p) < (chain, places.start));
            for &(c, place, lit) in &literals[first..] {
                if c != chain || place >= places.end {
                    break;
                }
                if acts.value(lit.var()) == lbool::UNDEF {
                    self.when[lit.var()] = self.edges.end();
                    if !acts.propagate(lit) {
                        fine = false;
                        break 'grown;
                    }
                }
            }
        }
        fine
    }

    /// Propagates new literals that hold already.
    fn propagate_fresh(&mut self, acts: &mut TheoryArg<'_>) -> bool {
        for var in std::mem::take(&mut self.fresh) {
            let Some((from, to)) = self.edge_of[var] else { continue };
            let lit = Lit::new(var, self.is_before(from, to));
            if (lit.sign() || self.is_before(to, from)) && acts.value(var) == lbool::UNDEF {
                self.when[var] = self.edges.end();
                if !acts.propagate(lit) {
                    return false;
                }
            }
        }
        true
    }
}

impl Theory for OrderTheory<'_, '_> {
    fn final_check(&mut self, acts: &mut TheoryArg<'_>) {
        self.partial_check(acts);
        if !acts.is_ok() {
            return;
        }
        let mut cut = Cut::default();
        cut.copy(self.rows.row(self.z));
        cut.pop(); // Its own chain.
        self.simulator.chosen.clear();
        for &(lit, source, read) in &self.choices {
            let value = acts.value(lit.var());
            if value == if lit.sign() { lbool::TRUE } else { lbool::FALSE } {
                self.simulator.chosen.choose(self.w, read, source);
            }
        }
        self.simulated = match self.simulator.run(self.w, &self.rows, &self.w.nothing(), &cut, true) {
            Ok(()) => Simulated::Order(self.simulator.order().to_vec()),
            Err(obstacles) => Simulated::Obstacles(obstacles.to_vec()),
        };
    }

    fn create_level(&mut self) {
        let (rows, edges, seen) = (self.rows.raised(), self.edges.end(), self.seen);
        self.levels.push(Level { rows, edges, seen });
    }

    fn pop_levels(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        let Level { rows, edges, seen } = self.levels[self.levels.len() - n];
        self.levels.truncate(self.levels.len() - n);
        self.rows.undo(rows);
        while self.edges.end() > edges {
            if let Some(edge) = self.edges.pop() {
                let chain = self.chain_of(edge.to);
                self.into_chain[chain].pop();
            }
        }
        self.seen = self.seen.min(seen);
        self.grown.clear();
    }

    fn n_levels(&self) -> usize {
        self.levels.len()
    }

    fn partial_check(&mut self, acts: &mut TheoryArg<'_>) {
        if !self.propagate_fresh(acts) {
            return;
        }
        while self.seen < acts.model().len() {
            let lit = acts.model()[self.seen];
            self.seen += 1;
            let Some((from, to)) = self.edge(lit) else { continue };
            if self.is_before(from, to) {
                continue;
            }
            if self.is_before(to, from) {
                self.explain(to, from, self.edges.end());
                let mut clause: Vec<Lit> = self.explanation.iter().map(|&l| !l).collect();
                clause.push(!lit);
                acts.raise_conflict(&clause, false);
                return;
            }
            self.insert(from, to, lit);
            if !self.propagate_grown(acts) {
                return;
            }
        }
    }

    fn explain_propagation(&mut self, p: Lit) -> &[Lit] {
        if let Some((from, to)) = self.edge(p) {
            let time = self.when[p.var()];
            self.explain(from, to, time);
        }
        &self.explanation
    }
}
