//! Sets of events that are closed along chains, and clocks: such a set per node.
//!
//! A set is one place per chain, the first that is not in it. A clock's row is what comes before a node, and the node. Rows
//! grow along chains, so "the first event of a chain after this one" is a binary search.

use super::index::{Chain, Dense, Id, IndexVec, Node, Place};
use std::ops::Index;

/// A set of events: of each chain, those before a place.
pub(crate) type Cut = IndexVec<Chain, Place>;

impl Cut {
    /// The set with nothing in it.
    pub(crate) fn empty(chains: usize) -> Self {
        Cut::repeat(Place::START, chains)
    }
    #[inline]
    pub(crate) fn row(&self) -> Row<'_> {
        Row(self)
    }
    /// Makes it another set.
    #[inline]
    pub(crate) fn copy(&mut self, other: Row<'_>) {
        self.copy_from(other.0);
    }
    /// Adds what another set has.
    #[inline]
    pub(crate) fn join(&mut self, other: Row<'_>) {
        join(self, other.0);
    }
    /// How many events are in it.
    pub(crate) fn total(&self) -> usize {
        self.iter().map(|place| place.index()).sum()
    }
}

/// A set of events, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a>(&'a [Place]);

impl<'a> Row<'a> {
    #[inline]
    pub(crate) fn iter(self) -> std::slice::Iter<'a, Place> {
        self.0.iter()
    }
    /// Whether another set contains it.
    #[inline]
    pub(crate) fn is_within(self, other: &Cut) -> bool {
        self.0.iter().zip(other.iter()).all(|(mine, theirs)| mine <= theirs)
    }
}

impl Index<Chain> for Row<'_> {
    type Output = Place;
    #[inline]
    fn index(&self, chain: Chain) -> &Place {
        &self.0[chain.index()]
    }
}

/// A row for each node; what is raised can be undone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    /// Length of a row; at least the number of chains.
    stride: usize,
    cells: Vec<Place>,
    /// Cells that were raised, and what they were.
    trail: Vec<(u32, Place)>,
}

/// How much was raised by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raised(usize);

impl Rows {
    /// No rows yet, for so many nodes and chains.
    pub(crate) fn with_capacity(nodes: usize, chains: usize) -> Self {
        Rows { stride: chains, cells: Vec::with_capacity(nodes * chains), trail: Vec::new() }
    }
    /// These rows with another chain and another node, which knows of itself alone and of which nobody knows.
    pub(crate) fn with_cut(&self) -> Self {
        let nodes = self.cells.len().checked_div(self.stride).unwrap_or(0);
        let mut wider = Rows::with_capacity(nodes + 1, self.stride + 1);
        for row in self.cells.chunks_exact(self.stride.max(1)) {
            wider.cells.extend_from_slice(row);
            wider.cells.push(Place::START);
        }
        wider.cells.resize(wider.cells.len() + self.stride, Place::START);
        wider.cells.push(Place::START.next());
        wider
    }
    /// Appends the row of a node: what comes with the nodes before it, and itself.
    pub(crate) fn push(&mut self, before: impl Iterator<Item = Node>, chain: Chain, place: Place) {
        let start = self.cells.len();
        self.cells.resize(start + self.stride, Place::START);
        let (done, row) = self.cells.split_at_mut(start);
        for node in before {
            join(row, &done[node.index() * self.stride..][..self.stride]);
        }
        row[chain.index()] = place.next();
    }

    #[inline]
    pub(crate) fn row(&self, node: Node) -> Row<'_> {
        Row(self.slice(node))
    }
    #[inline]
    fn slice(&self, node: Node) -> &[Place] {
        &self.cells[node.index() * self.stride..][..self.stride]
    }
    #[inline]
    pub(crate) fn at(&self, node: Node, chain: Chain) -> Place {
        self.cells[node.index() * self.stride + chain.index()]
    }

    /// Adds to the row of a node; whether that changed it. Says what grew: the chain, from where and to where.
    #[inline]
    pub(crate) fn raise(&mut self, node: Node, row: &Cut, mut grew: impl FnMut(Chain, Place, Place)) -> bool {
        let start = node.index() * self.stride;
        let mut changed = false;
        for (at, (have, &want)) in self.cells[start..start + self.stride].iter_mut().zip(row.iter()).enumerate() {
            if *have < want {
                self.trail.push(((start + at) as u32, *have));
                grew(Chain::new(at), *have, want);
                *have = want;
                changed = true;
            }
        }
        changed
    }
    pub(crate) fn raised(&self) -> Raised {
        Raised(self.trail.len())
    }
    /// Makes the rows what they were by then.
    pub(crate) fn undo(&mut self, raised: Raised) {
        for (at, old) in self.trail.drain(raised.0..).rev() {
            self.cells[at as usize] = old;
        }
    }
}

#[inline]
fn join(row: &mut [Place], other: &[Place]) {
    for (a, b) in row.iter_mut().zip(other) {
        *a = (*a).max(*b);
    }
}
