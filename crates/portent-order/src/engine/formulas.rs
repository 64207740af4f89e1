//! The formulas of a window, laid out by node and compiled: which reads they are over, and which read settles which event.

use super::index::{Chain, IndexVec, Node};
use super::window::Window;
use portent_trace::Op;
use portent_trace::symbolic::{Compiled, ExprId, Symbols};

/// A read that a formula is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// It is in the window.
    Node(Node),
    /// It came before, and saw this, if it is known.
    Before(Option<i64>),
}

#[derive(Clone, Debug)]
pub(crate) struct Formula {
    pub code: Compiled,
    /// As the code's reads.
    pub inputs: Vec<Input>,
}

impl Formula {
    /// The reads of the window that it is over.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        self.inputs.iter().filter_map(|input| match *input {
            Input::Node(node) => Some(node),
            Input::Before(_) => None,
        })
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Formulas {
    /// What each node writes.
    pub written: IndexVec<Node, Option<Formula>>,
    /// What must come out as in the trace for a node to happen.
    pub guards: IndexVec<Node, Vec<(Formula, i64)>>,
    /// Branches without a condition: every read before them decides.
    pub untold: IndexVec<Node, bool>,
    /// For each read, the nodes that may not happen, and of which it is the last input.
    pub settles: IndexVec<Node, Vec<Node>>,
    /// For each read, the first branch without a condition behind it.
    pub until: IndexVec<Node, Option<Node>>,
}

impl Formulas {
    /// `before` is what each chain's reads saw before the window.
    pub(crate) fn of(w: &Window<'_>, symbols: &Symbols, before: &IndexVec<Chain, Vec<Option<i64>>>) -> Self {
        let n = w.len();
        let mut formulas = Formulas {
            written: IndexVec::repeat(None, n),
            guards: IndexVec::repeat(Vec::new(), n),
            untold: IndexVec::repeat(false, n),
            settles: IndexVec::repeat(Vec::new(), n),
            until: IndexVec::repeat(None, n),
        };
        for (chain, nodes) in w.chain.entries() {
            let is_read = |node: &Node| w.act[*node].read().is_some();
            let reads: Vec<Node> = nodes.iter().copied().filter(is_read).collect();
            let compile = |expr: ExprId| {
                let code = symbols.dag().compile(expr);
                let input = |number: usize| match number.checked_sub(before[chain].len()) {
                    // Formulas name only reads that the thread has made.
                    Some(at) => reads.get(at).map_or(Input::Before(None), |&node| Input::Node(node)),
                    None => Input::Before(before[chain][number]),
                };
                let inputs = code.reads().iter().map(|&number| input(number as usize)).collect();
                Formula { code, inputs }
            };
            let mut untold = None;
            for &node in nodes.iter().rev() {
                let event = w.event(node);
                formulas.written[node] = symbols.written(event).map(compile);
                formulas.guards[node] = symbols.guards(event).iter().map(|&(e, value)| (compile(e), value)).collect();
                if formulas.guards[node].is_empty() && w.trace.op(event) == Op::Branch {
                    formulas.untold[node] = true;
                    untold = Some(node);
                }
                formulas.until[node] = untold;
                let guards = formulas.guards[node].iter().map(|(formula, _)| formula);
                let partial = formulas.written[node].as_ref().filter(|formula| formula.code.is_partial());
                if let Some(last) = guards.chain(partial).flat_map(Formula::nodes).max() {
                    formulas.settles[last].push(node);
                }
            }
        }
        formulas
    }
}
