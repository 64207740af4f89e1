//! A formula as a list of nodes, each after its operands, evaluated from front to back with two bits per node.

use super::letters::Letters;
use super::values::{Comparison, Values};
use super::{Field, Packing, TooLarge};
use crate::ast::Formula;
use crate::bind::Bound;
use rustc_hash::FxHashMap;

/// Nodes of one formula, at most: the bits of two words.
const MOST: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Constant(bool),
    /// A bit of the letter.
    Event(u8),
    Compare(u8),
    Not(u8),
    And(u8, u8),
    Or(u8, u8),
    Iff(u8, u8),
    /// Operand, and which bit of the moment before.
    Prev(u8, u8),
    Start(u8, u8),
    End(u8, u8),
    Once(u8, u8),
    Historically(u8, u8),
    Since(u8, u8, u8),
    Interval(u8, u8, u8),
}

/// What each node is: true, false, or, with neither bit, unknown.
#[derive(Clone, Copy, Default)]
pub(super) struct Truth {
    yes: u64,
    no: u64,
}

impl Truth {
    #[inline]
    pub(super) fn yes(self, node: u8) -> bool {
        self.yes >> node & 1 != 0
    }
    #[inline]
    pub(super) fn no(self, node: u8) -> bool {
        self.no >> node & 1 != 0
    }
    #[inline]
    fn bits(self, node: u8) -> (u64, u64) {
        (self.yes >> node & 1, self.no >> node & 1)
    }
}

/// All nodes, and where what they need from the moment before is kept.
#[derive(Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    known: FxHashMap<Node, u8>,
    /// The nodes whose truth is kept, by the number of their bit.
    kept: Vec<u8>,
    kept_yes: Field,
    kept_no: Field,
}

impl Nodes {
    fn insert(&mut self, node: Node) -> Result<u8, TooLarge> {
        if let Some(&known) = self.known.get(&node) {
            return Ok(known);
        }
        if self.nodes.len() == MOST {
            return Err(TooLarge(format!(
                "the property has more than {MOST} different subformulas: split it into several"
            )));
        }
        self.nodes.push(node);
        let at = self.nodes.len() as u8 - 1;
        self.known.insert(node, at);
        Ok(at)
    }

    /// The bit that keeps the truth of a node.
    fn bit(&mut self, node: u8) -> u8 {
        match self.kept.iter().position(|&kept| kept == node) {
            Some(at) => at as u8,
            None => {
                self.kept.push(node);
                self.kept.len() as u8 - 1
            }
        }
    }

    pub(super) fn add(
        &mut self,
        formula: &Formula,
        bound: &Bound,
        letters: &mut Letters,
        values: &mut Values,
    ) -> Result<u8, TooLarge> {
        let mut sub = |formula: &Formula, nodes: &mut Nodes| nodes.add(formula, bound, letters, values);
        let node = match formula {
            Formula::Constant(truth) => Node::Constant(*truth),
            Formula::Event(atom) => Node::Event(letters.atom(*atom)?),
            Formula::Compare(a, relation, b) => {
                Node::Compare(values.comparison(Comparison::new(bound, a, *relation, b))?)
            }
            Formula::Not(a) => Node::Not(sub(a, self)?),
            Formula::And(a, b) => Node::And(sub(a, self)?, sub(b, self)?),
            Formula::Or(a, b) => Node::Or(sub(a, self)?, sub(b, self)?),
            Formula::Implies(a, b) => {
                let a = sub(a, self)?;
                let not = self.insert(Node::Not(a))?;
                let mut sub = |formula: &Formula, nodes: &mut Nodes| nodes.add(formula, bound, letters, values);
                Node::Or(not, sub(b, self)?)
            }
            Formula::Iff(a, b) => Node::Iff(sub(a, self)?, sub(b, self)?),
            Formula::Prev(a) | Formula::Start(a) | Formula::End(a) => {
                let a = sub(a, self)?;
                let bit = self.bit(a);
                match formula {
                    Formula::Prev(_) => Node::Prev(a, bit),
                    Formula::Start(_) => Node::Start(a, bit),
                    _ => Node::End(a, bit),
                }
            }
            Formula::Once(_) | Formula::Historically(_) | Formula::Since(..) | Formula::Interval(..) => {
                return self.add_recursive(formula, bound, letters, values);
            }
        };
        self.insert(node)
    }

    /// Operators that need their own truth at the moment before.
    fn add_recursive(
        &mut self,
        formula: &Formula,
        bound: &Bound,
        letters: &mut Letters,
        values: &mut Values,
    ) -> Result<u8, TooLarge> {
        let mut sub = |formula: &Formula, nodes: &mut Nodes| nodes.add(formula, bound, letters, values);
        let (a, b) = match formula {
            Formula::Once(a) | Formula::Historically(a) => (sub(a, self)?, 0),
            Formula::Since(a, b) | Formula::Interval(a, b) => (sub(a, self)?, sub(b, self)?),
            other => return self.add(other, bound, letters, values),
        };
        let make = |bit: u8| match formula {
            Formula::Once(_) => Node::Once(a, bit),
            Formula::Historically(_) => Node::Historically(a, bit),
            Formula::Since(..) => Node::Since(a, b, bit),
            _ => Node::Interval(a, b, bit),
        };
        // Known if it is there with any bit.
        let known = (0..self.kept.len() as u8).find_map(|bit| self.known.get(&make(bit)).copied());
        if let Some(known) = known {
            return Ok(known);
        }
        let bit = self.kept.len() as u8;
        self.kept.push(self.nodes.len() as u8);
        self.insert(make(bit))
    }

    /// The node of a formula that was added before.
    pub(super) fn find(
        &mut self,
        formula: &Formula,
        bound: &Bound,
        letters: &mut Letters,
        values: &mut Values,
    ) -> Option<u8> {
        self.add(formula, bound, letters, values).ok()
    }

    pub(super) fn pack(&mut self, packing: &mut Packing) {
        let bits = self.kept.len() as u32;
        if bits > 0 {
            self.kept_yes = packing.field(bits);
            self.kept_no = packing.field(bits);
        }
    }

    /// The truth of every node. `events` are the bits of the letter, `None` before the first event.
    #[inline]
    pub(super) fn evaluate(&self, state: &[u64], events: Option<u64>, values: &Values, first: bool) -> Truth {
        let (before_yes, before_no) = match (first, self.kept.is_empty()) {
            (false, false) => (self.kept_yes.get(state), self.kept_no.get(state)),
            _ => (0, 0),
        };
        let events = events.unwrap_or(0);
        let mut truth = Truth::default();
        for (at, node) in self.nodes.iter().enumerate() {
            let before = |bit: u8| (before_yes >> bit & 1, before_no >> bit & 1);
            let (yes, no) = match *node {
                Node::Constant(is) => (u64::from(is), u64::from(!is)),
                Node::Event(bit) => (events >> bit & 1, !events >> bit & 1),
                Node::Compare(which) => match values.compare(which, state) {
                    Some(true) => (1, 0),
                    Some(false) => (0, 1),
                    None => (0, 0),
                },
                Node::Not(a) => {
                    let (yes, no) = truth.bits(a);
                    (no, yes)
                }
                Node::And(a, b) => {
                    let (a, b) = (truth.bits(a), truth.bits(b));
                    (a.0 & b.0, a.1 | b.1)
                }
                Node::Or(a, b) => {
                    let (a, b) = (truth.bits(a), truth.bits(b));
                    (a.0 | b.0, a.1 & b.1)
                }
                Node::Iff(a, b) => {
                    let (a, b) = (truth.bits(a), truth.bits(b));
                    (a.0 & b.0 | a.1 & b.1, a.0 & b.1 | a.1 & b.0)
                }
                Node::Prev(..) | Node::Start(..) | Node::End(..) if first => (0, 1),
                Node::Prev(_, bit) => before(bit),
                Node::Start(a, bit) => {
                    let (now, before) = (truth.bits(a), before(bit));
                    (now.0 & before.1, now.1 | before.0)
                }
                Node::End(a, bit) => {
                    let (now, before) = (truth.bits(a), before(bit));
                    (now.1 & before.0, now.0 | before.1)
                }
                Node::Once(a, bit) => {
                    let (now, before) = (truth.bits(a), if first { (0, 1) } else { before(bit) });
                    (now.0 | before.0, now.1 & before.1)
                }
                Node::Historically(a, bit) => {
                    let (now, before) = (truth.bits(a), if first { (1, 0) } else { before(bit) });
                    (now.0 & before.0, now.1 | before.1)
                }
                Node::Since(a, b, bit) => {
                    let (a, b, before) = (truth.bits(a), truth.bits(b), if first { (0, 1) } else { before(bit) });
                    (b.0 | a.0 & before.0, b.1 & (a.1 | before.1))
                }
                Node::Interval(p, q, bit) => {
                    let (p, q, before) = (truth.bits(p), truth.bits(q), if first { (0, 1) } else { before(bit) });
                    (q.1 & (p.0 | before.0), q.0 | p.1 & before.1)
                }
            };
            truth.yes |= yes << at;
            truth.no |= no << at;
        }
        truth
    }

    /// Keeps what the next moment needs.
    #[inline]
    pub(super) fn keep(&self, state: &mut [u64], truth: Truth) {
        if self.kept.is_empty() {
            return;
        }
        let (mut yes, mut no) = (0, 0);
        for (bit, &node) in self.kept.iter().enumerate() {
            let (is, is_not) = truth.bits(node);
            yes |= is << bit;
            no |= is_not << bit;
        }
        self.kept_yes.set(state, yes);
        self.kept_no.set(state, no);
    }
}
