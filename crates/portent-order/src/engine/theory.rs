//! Order as a theory for the SAT solver: literals are edges, assigned ones must not form a cycle.
//!
//! The nodes are the events of a window and Z, the cut: an event is in the witness iff it is before Z. Each node has a
//! row with, per chain, how many events come before it; rows grow along chains, so that the first successor of a node in
//! a chain is a binary search and a cycle test is one look-up. Every literal that becomes implied is propagated, and
//! explained only when the solver asks, by a path over the edges that were there at the time.

use super::simulate::{Obstacle, Order, Simulator};
use super::window::{Node, Window};
use batsat::{Lit, Theory, TheoryArg, Var, lbool};
use std::ops::Range;

struct Edge {
    from: Node,
    to: Node,
    lit: Lit,
}

/// What the solver's model came to when it was put into an order.
#[derive(Debug, Default)]
pub(crate) enum Outcome {
    #[default]
    None,
    /// This order of the events works.
    Order(Vec<Node>),
    /// It does not, and these are the reasons.
    Obstacles(Vec<Obstacle>),
}

pub(crate) struct OrderTheory<'w, 't> {
    w: &'w Window<'t>,
    /// Events, and then Z.
    nodes: usize,
    /// Chains of the window, and then that of Z.
    k: usize,
    rows: Vec<u32>,
    /// For each variable, the edge that its positive literal stands for; `None` for other variables.
    edge_of: Vec<Option<(Node, Node)>>,
    /// Literals that hold once an event, by chain and place, comes before this node; sorted.
    incoming: Vec<Vec<(u32, u32, Lit)>>,
    fresh: Vec<Var>,
    edges: Vec<Edge>,
    /// Edges by chain of their target: (place of the target, index of the edge).
    into_chain: Vec<Vec<(u32, u32)>>,
    trail: Vec<(u32, u32)>,
    levels: Vec<(usize, usize, usize)>,
    /// How much of the solver's trail has been seen.
    seen: usize,
    /// For each variable, how many edges there were when the theory propagated it.
    when: Vec<u32>,
    explanation: Vec<Lit>,
    /// What has grown since literals were last looked at: node, chain, and from where to where.
    grown: Vec<(Node, u32, Range<u32>)>,
    scratch: Vec<u32>,
    simulator: Simulator,
    /// In `values`: literals that choose a write for a read to see.
    pub choices: Vec<(Lit, u32, Node)>,
    pub outcome: Outcome,
}

impl<'w, 't> OrderTheory<'w, 't> {
    pub(crate) fn new(w: &'w Window<'t>) -> Self {
        let (n, chains) = (w.len(), w.chains);
        let k = chains + 1;
        let mut rows = vec![0; (n + 1) * k];
        for node in 0..n {
            rows[node * k..node * k + chains].copy_from_slice(w.past_of(node as u32));
        }
        rows[n * k + chains] = 1;
        OrderTheory {
            w,
            nodes: n + 1,
            k,
            rows,
            edge_of: Vec::new(),
            incoming: vec![Vec::new(); n + 1],
            fresh: Vec::new(),
            edges: Vec::new(),
            into_chain: vec![Vec::new(); k],
            trail: Vec::new(),
            levels: Vec::new(),
            seen: 0,
            when: Vec::new(),
            explanation: Vec::new(),
            grown: Vec::new(),
            scratch: Vec::new(),
            simulator: Simulator::default(),
            choices: Vec::new(),
            outcome: Outcome::None,
        }
    }

    /// The node of the cut.
    pub(crate) fn z(&self) -> Node {
        self.nodes as u32 - 1
    }
    /// The simulator, in the state of the last order that worked.
    pub(crate) fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// Lets `var` stand for `from` before `to` when true, and for the opposite when false.
    pub(crate) fn watch(&mut self, var: Var, from: Node, to: Node) {
        let at = var.idx() as usize;
        if self.edge_of.len() <= at {
            self.edge_of.resize(at + 1, None);
            self.when.resize(at + 1, 0);
        }
        self.edge_of[at] = Some((from, to));
        for (before, after, holds) in [(from, to, true), (to, from, false)] {
            let (chain, place) = (self.chain_of(before) as u32, self.place(before));
            let literals = &mut self.incoming[after as usize];
            let at = literals.partition_point(|&(c, p, _)| (c, p) < (chain, place));
            literals.insert(at, (chain, place, Lit::new(var, holds)));
        }
        self.fresh.push(var);
    }

    #[inline]
    fn chain_of(&self, node: Node) -> usize {
        if node == self.z() { self.k - 1 } else { self.w.chain_of[node as usize] as usize }
    }
    #[inline]
    fn place(&self, node: Node) -> u32 {
        if node == self.z() { 0 } else { self.w.place[node as usize] }
    }
    /// Whether `before` comes before `after` in what is assigned so far.
    #[inline]
    pub(crate) fn is_before(&self, before: Node, after: Node) -> bool {
        before != after && self.rows[after as usize * self.k + self.chain_of(before)] > self.place(before)
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
        let (from, to) = (*self.edge_of.get(lit.var().idx() as usize)?)?;
        Some(if lit.sign() { (from, to) } else { (to, from) })
    }

    fn insert(&mut self, from: Node, to: Node, lit: Lit) {
        let k = self.k;
        let mut row = std::mem::take(&mut self.scratch);
        row.clear();
        row.extend_from_slice(&self.rows[from as usize * k..][..k]);
        let (chain, place) = (self.chain_of(to), self.place(to));
        self.into_chain[chain].push((place, self.edges.len() as u32));
        self.edges.push(Edge { from, to, lit });
        for t in 0..k {
            let single = [self.z()];
            let nodes: &[Node] = if t == k - 1 { &single } else { &self.w.chain[t] };
            let start = if t == chain {
                place as usize
            } else {
                nodes.partition_point(|&n| self.rows[n as usize * k + chain] <= place)
            };
            for &node in &nodes[start..] {
                let mut changed = false;
                let watched = !self.incoming[node as usize].is_empty();
                let start = node as usize * k;
                for (u, (have, &value)) in self.rows[start..start + k].iter_mut().zip(&row).enumerate() {
                    if *have < value {
                        self.trail.push(((start + u) as u32, *have));
                        if watched {
                            self.grown.push((node, u as u32, *have..value));
                        }
                        *have = value;
                        changed = true;
                    }
                }
                if !changed {
                    break;
                }
            }
        }
        self.scratch = row;
    }

    /// Literals of a path from `from` to `to` over the first `time` edges, into `explanation`.
    fn explain(&mut self, from: Node, to: Node, time: usize) {
        self.explanation.clear();
        let k = self.k;
        let (chain, place) = (self.chain_of(from), self.place(from));
        // Backwards from `to`: what its past reaches without any edge, then over one edge, and so on.
        let mut reached = vec![0u32; k];
        let mut found: Vec<(u32, usize)> = Vec::new(); // Edge, and where in `found` the path goes on.
        let mut base = vec![0u32; k];
        let mut next = 0;
        let mut node = to;
        let mut via = usize::MAX;
        loop {
            base.fill(0);
            if node == self.z() {
                base[k - 1] = 1;
            } else {
                base[..k - 1].copy_from_slice(self.w.past_of(node));
            }
            if base[chain] > place {
                break;
            }
            for t in 0..k {
                if base[t] > reached[t] {
                    for &(at, edge) in &self.into_chain[t] {
                        if at >= reached[t] && at < base[t] && (edge as usize) < time {
                            found.push((edge, via));
                        }
                    }
                    reached[t] = base[t];
                }
            }
            let Some(&(edge, _)) = found.get(next) else {
                debug_assert!(false, "an implied literal has a path");
                return;
            };
            node = self.edges[edge as usize].from;
            via = next;
            next += 1;
        }
        while let Some(&(edge, onwards)) = found.get(via) {
            self.explanation.push(self.edges[edge as usize].lit);
            via = onwards;
        }
    }

    /// Propagates the literals that hold by what has grown.
    fn propagate_grown(&mut self, acts: &mut TheoryArg<'_>) -> bool {
        let mut fine = true;
        'grown: for (node, chain, places) in self.grown.drain(..) {
            let literals = &self.incoming[node as usize];
            let first = literals.partition_point(|&(c, p, _)| (c, p) < (chain, places.start));
            for &(c, place, lit) in &literals[first..] {
                if c != chain || place >= places.end {
                    break;
                }
                if acts.value(lit.var()) == lbool::UNDEF {
                    self.when[lit.var().idx() as usize] = self.edges.len() as u32;
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
            let Some((from, to)) = self.edge_of[var.idx() as usize] else { continue };
            let lit = Lit::new(var, self.is_before(from, to));
            if (lit.sign() || self.is_before(to, from)) && acts.value(var) == lbool::UNDEF {
                self.when[var.idx() as usize] = self.edges.len() as u32;
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
        let cut = self.rows[self.z() as usize * self.k..][..self.k - 1].to_vec();
        self.simulator.chosen.clear();
        for &(lit, writer, read) in &self.choices {
            let value = acts.value(lit.var());
            if value == if lit.sign() { lbool::TRUE } else { lbool::FALSE } {
                self.simulator.chosen.choose(self.w, read, writer);
            }
        }
        let order = Order { rows: &self.rows, stride: self.k };
        self.outcome = match self.simulator.run(self.w, &order, &vec![0; self.k - 1], &cut, true) {
            Ok(()) => Outcome::Order(self.simulator.order().to_vec()),
            Err(obstacles) => Outcome::Obstacles(obstacles.to_vec()),
        };
    }

    fn create_level(&mut self) {
        self.levels.push((self.trail.len(), self.edges.len(), self.seen));
    }

    fn pop_levels(&mut self, n: usize) {
        if n == 0 {
            return;
        }
        let (trail, edges, seen) = self.levels[self.levels.len() - n];
        self.levels.truncate(self.levels.len() - n);
        for (at, old) in self.trail.drain(trail..).rev() {
            self.rows[at as usize] = old;
        }
        while self.edges.len() > edges {
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
                self.explain(to, from, self.edges.len());
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
            let time = self.when[p.var().idx() as usize] as usize;
            self.explain(from, to, time);
        }
        &self.explanation
    }
}
