//! Formulas in the engine: an order is executed, and where a condition or an address comes out differently, the reads that
//! it comes from are the reason.
//!
//! docs/src/internals/encoding.md: with concrete inputs every value is a function of which write each read sees. So there is no solver for
//! values: once an order says what reads see, formulas are evaluated, exactly for any width and for floats. What goes wrong
//! is explained by its *cone*: the reads in the formula with the writes they see, the reads in the formulas of those
//! writes, and so on; one of them must see another write. Nothing is laid out beforehand: saturation knows no reads here.

use super::formulas::{Formula, Formulas, Input};
use super::index::{Chain, IndexVec, Node, Place, Source, Variable};
use super::values::Values;
use super::window::Window;
use portent_trace::symbolic::{Evaluated, RecordedReads};
use portent_trace::{EventId, Trace};
use rustc_hash::FxHashSet;

/// What every read of a trace saw, by thread.
pub(crate) fn recorded_reads(trace: &Trace) -> Vec<Vec<(EventId, Option<i64>)>> {
    let mut recorded = RecordedReads::default();
    let mut reads = vec![Vec::new(); trace.threads()];
    for event in trace.events() {
        reads[event.thread.index()].extend(recorded.step(&event).map(|seen| (event.id, seen)));
    }
    reads
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Number(i64),
    /// Not recorded, but what it was in the trace.
    AsTraced,
    Tainted,
}

/// A read and what it sees.
pub(crate) type Sees = (Node, Source);

/// What executing a node may change.
#[derive(Clone, Copy)]
struct Before {
    faults: usize,
    /// Of the node's chain.
    tainted_by: Option<Node>,
    /// Of the variable that it writes.
    last: Option<Source>,
}

/// An order as it is executed. Made once for a window, and restarted for each order.
#[derive(Clone)]
pub(crate) struct Evaluation<'w, 't> {
    w: &'w Window<'t>,
    values: &'w Values,
    formulas: &'w Formulas,
    /// What has been executed.
    done: Vec<(Node, Before)>,
    /// Of reads that have been executed, what they see and what that left; `None` and anything for others.
    sees: IndexVec<Node, Option<Source>>,
    saw: IndexVec<Node, Held>,
    /// Of writes that have been executed, what they left.
    wrote: IndexVec<Node, Held>,
    last: IndexVec<Variable, Source>,
    /// The first read of each chain that sees something else.
    tainted_by: IndexVec<Chain, Option<Node>>,
    /// Events that would not happen as they did.
    faults: Vec<Node>,
}

impl<'w, 't> Evaluation<'w, 't> {
    /// For a window; `None` where there are no formulas.
    pub(crate) fn of(w: &'w Window<'t>) -> Option<Self> {
        let values = w.values.as_deref()?;
        Some(Evaluation {
            w,
            values,
            formulas: values.formulas.as_deref()?,
            done: Vec::new(),
            sees: IndexVec::repeat(None, w.len()),
            saw: IndexVec::repeat(Held::Tainted, w.len()),
            wrote: IndexVec::repeat(Held::Tainted, w.len()),
            last: IndexVec::repeat(Source::Base, w.variables.len()),
            tainted_by: IndexVec::repeat(None, w.chain.len()),
            faults: Vec::new(),
        })
    }

    /// Follows an order that starts with the window.
    pub(crate) fn follow(&mut self, order: impl Iterator<Item = Node>) {
        self.restart();
        order.for_each(|node| self.execute(node));
    }

    pub(crate) fn restart(&mut self) {
        for (node, _) in self.done.drain(..) {
            self.sees[node] = None;
        }
        self.last.fill(Source::Base);
        self.tainted_by.fill(None);
        self.faults.clear();
    }

    pub(crate) fn execute(&mut self, node: Node) {
        let w = self.w;
        let (act, chain) = (w.act[node], w.chain_of[node]);
        let last = act.written().map(|x| self.last[x]);
        self.done.push((node, Before { faults: self.faults.len(), tainted_by: self.tainted_by[chain], last }));
        if let Some(x) = act.read() {
            let source = self.last[x];
            let held = self.held(x, source);
            self.sees[node] = Some(source);
            self.saw[node] = held;
            if self.tainted_by[chain].is_none() && !self.is_same(node, x, source, held) {
                self.tainted_by[chain] = Some(node);
            }
        }
        let mut fault = !self.is_kept(node);
        if let Some(x) = act.written() {
            let recorded = w.trace.value(w.event(node));
            let held = match &self.formulas.written[node] {
                Some(formula) => match (self.evaluate(formula), recorded) {
                    (Some(Held::Number(number)), Some(traced)) => {
                        let of = formula.code.type_of();
                        Held::Number(if of.truncate(number) == of.truncate(traced) { traced } else { number })
                    }
                    (Some(held), _) => held,
                    (None, _) => {
                        fault = true;
                        Held::Tainted
                    }
                },
                None if self.tainted_by[chain].is_some() => Held::Tainted,
                None => recorded.map_or(Held::AsTraced, Held::Number),
            };
            self.wrote[node] = held;
            self.last[x] = Source::Write(node);
        }
        if fault {
            self.faults.push(node);
        }
    }

    /// Executes an event, unless it would not happen as it did, or a later one of its chain, below the place `bound`, if there is one, and settled by
    /// what this one reads. Whether it did.
    pub(crate) fn attempt(&mut self, node: Node, bound: Option<Place>) -> bool {
        let (w, chain) = (self.w, self.w.chain_of[node]);
        let faults = self.faults.len();
        self.execute(node);
        let below = |n: Node| bound.is_none_or(|bound| w.place[n] < bound);
        let is_read = w.act[node].read().is_some();
        let fine = self.faults.len() == faults
            && (!is_read
                || (self.formulas.settles[node].iter().all(|&n| !below(n) || (self.is_kept(n) && self.has_value(n)))
                    && (self.tainted_by[chain] != Some(node) || !self.formulas.until[node].is_some_and(below))));
        if !fine {
            self.take_back();
        }
        fine
    }

    /// Whether an event, if it came next, would not happen as it did.
    pub(crate) fn would_fail(&mut self, node: Node) -> bool {
        let faults = self.faults.len();
        self.execute(node);
        let fails = self.faults.len() > faults;
        self.take_back();
        fails
    }

    /// Takes back the node that was executed last.
    pub(crate) fn take_back(&mut self) {
        let Some((node, before)) = self.done.pop() else { return };
        self.sees[node] = None;
        self.faults.truncate(before.faults);
        self.tainted_by[self.w.chain_of[node]] = before.tainted_by;
        if let (Some(x), Some(last)) = (self.w.act[node].written(), before.last) {
            self.last[x] = last;
        }
    }

    /// An earlier read that, together with this one, settles an event: what it saw may be why this one has to wait.
    pub(crate) fn partner(&self, read: Node) -> Option<Node> {
        let guards = self.formulas.settles[read].iter().flat_map(|&n| &self.formulas.guards[n]);
        guards.flat_map(|(formula, _)| formula.nodes()).filter(|&other| other < read).max()
    }
    /// Whether a read that has been executed does not see what it saw in the trace.
    pub(crate) fn has_changed(&self, read: Node) -> bool {
        let (Some(source), Some(x)) = (self.sees[read], self.w.act[read].read()) else { return false };
        !self.is_same(read, x, source, self.saw[read])
    }
    /// Reads that changed, and with them what a write left.
    pub(crate) fn blame(&self, write: Node, blamed: &mut Vec<Node>) {
        let before = blamed.len();
        let mut next = vec![write];
        while let Some(write) = next.pop() {
            let Some(formula) = &self.formulas.written[write] else { continue };
            for read in formula.nodes().filter(|&read| self.has_changed(read)) {
                if blamed.len() < before + 8 && !blamed.contains(&read) {
                    blamed.push(read);
                    next.extend(self.sees[read].and_then(Source::node));
                }
            }
        }
    }
    /// What a read saw.
    pub(crate) fn saw(&self, read: Node) -> Held {
        self.saw[read]
    }
    /// What a read would see if it came next.
    pub(crate) fn would_see(&self, x: Variable) -> Held {
        self.held(x, self.last[x])
    }
    /// Whether a read, if it came next, would see what it saw in the trace.
    pub(crate) fn would_see_the_same(&self, read: Node, x: Variable) -> bool {
        let source = self.last[x];
        self.is_same(read, x, source, self.held(x, source))
    }
    /// Whether a read sees what it saw in the trace.
    fn is_same(&self, read: Node, x: Variable, source: Source, held: Held) -> bool {
        let observed = Some(source) == self.values.observed[read];
        match held {
            Held::Number(number) => {
                self.values.expects(read) == Some(number)
                    || (observed && self.values.traced(self.w, x, source) == Some(number))
            }
            Held::AsTraced => observed,
            Held::Tainted => false,
        }
    }

    /// Whether the conditions of an event, whose inputs have been executed, come out as in the trace.
    fn is_kept(&self, node: Node) -> bool {
        let guards = &self.formulas.guards[node];
        let chain = self.w.chain_of[node];
        let untold = self.formulas.untold[node] && self.tainted_by[chain].is_some();
        !untold && guards.iter().all(|(formula, value)| self.evaluate(formula) == Some(Held::Number(*value)))
    }

    /// Whether what an event writes, if anything, has a value.
    fn has_value(&self, node: Node) -> bool {
        self.formulas.written[node].as_ref().is_none_or(|formula| self.evaluate(formula).is_some())
    }

    /// What a variable holds after a write.
    fn held(&self, x: Variable, source: Source) -> Held {
        match source {
            Source::Base => self.values.traced(self.w, x, source).map_or(Held::AsTraced, Held::Number),
            Source::Write(writer) => self.wrote[writer],
        }
    }

    /// What a read that is part of a formula saw.
    fn number(&self, input: Input) -> Option<i64> {
        match input {
            Input::Before(recorded) => recorded,
            Input::Node(node) => match self.saw[node] {
                Held::Number(number) if self.sees[node].is_some() => Some(number),
                _ => None,
            },
        }
    }

    fn evaluate(&self, formula: &Formula) -> Option<Held> {
        match formula.code.outcome(|at| self.number(formula.inputs[at])) {
            Evaluated::Number(number) => Some(Held::Number(number)),
            Evaluated::Unknown => Some(Held::Tainted),
            Evaluated::Nothing => None,
        }
    }

    pub(crate) fn faults(&self) -> &[Node] {
        &self.faults
    }
    /// The last write of a variable.
    pub(crate) fn last_write(&self, variable: Variable) -> Source {
        self.last[variable]
    }

    /// Whether the last write of a variable leaves a value that is known, and not this one where that is known.
    pub(crate) fn differs(&self, x: Variable, from: Option<i64>) -> bool {
        match self.held(x, self.last[x]) {
            Held::Number(number) => Some(number) != from,
            Held::AsTraced => true,
            Held::Tainted => false,
        }
    }

    /// Why an event went as it did: what reads saw. As long as they see the same, it goes the same.
    pub(crate) fn why(&self, node: Node) -> Vec<Sees> {
        let mut cone = Cone::default();
        let guards = self.formulas.guards[node].iter().map(|(formula, _)| formula);
        for formula in guards.chain(&self.formulas.written[node]) {
            cone.reads.extend(formula.nodes());
        }
        if self.formulas.untold[node] {
            self.add_before(&mut cone, node);
        }
        self.close(cone)
    }

    /// Why a write left what it did.
    pub(crate) fn why_written(&self, source: Source) -> Vec<Sees> {
        let cone = Cone { writes: source.node().into_iter().collect(), ..Cone::default() };
        self.close(cone)
    }

    /// The reads that decide whether a chain is tainted before a node: one is enough if it has, otherwise all.
    fn add_before(&self, cone: &mut Cone, node: Node) {
        let chain = self.w.chain_of[node];
        match self.tainted_by[chain] {
            Some(first) if first <= node => cone.reads.push(first),
            _ => {
                let before = self.w.chain[chain].before(self.w.place[node].next());
                cone.reads.extend(before.iter().copied().filter(|&n| self.w.act[n].read().is_some()));
            }
        }
    }

    fn close(&self, mut cone: Cone) -> Vec<Sees> {
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut sees = Vec::new();
        loop {
            while let Some(read) = cone.reads.pop() {
                if let Some(source) = self.sees[read]
                    && seen.insert(read)
                {
                    sees.push((read, source));
                    cone.writes.extend(source.node());
                }
            }
            let Some(write) = cone.writes.pop() else { return sees };
            if !cone.done.insert(write) {
                continue;
            }
            match &self.formulas.written[write] {
                Some(formula) => cone.reads.extend(formula.nodes()),
                None => self.add_before(&mut cone, write),
            }
        }
    }
}

#[derive(Default)]
struct Cone {
    reads: Vec<Node>,
    writes: Vec<Node>,
    done: FxHashSet<Node>,
}

impl Window<'_> {
    /// Whether formulas decide if an event happens.
    pub(super) fn is_guarded(&self, node: Node) -> bool {
        let formulas = self.values.as_ref().and_then(|values| values.formulas.as_deref());
        formulas.is_some_and(|formulas| {
            !formulas.guards[node].is_empty() || formulas.written[node].is_some() || formulas.untold[node]
        })
    }

    /// Every write that a read could see, whatever its value.
    pub(super) fn any_sources(&self, read: Node) -> Vec<Source> {
        let Some(x) = self.act[read].read() else { return Vec::new() };
        let (own, past) = (self.chain_of[read], self.past_of(read));
        let mut sources = Vec::new();
        let mut from_base = true;
        for list in &self.variables[x].writes {
            let chain = list.chain;
            let bound = if chain == own { self.place[read] } else { past[chain] };
            let first = list.nodes.partition_point(|&n| self.place[n] < bound);
            if let Some(at) = first.checked_sub(1) {
                from_base = false;
                sources.push(Source::Write(list.nodes[at]));
            }
            if chain != own {
                let after = |n: Node| self.past_of(n)[own] > self.place[read];
                sources.extend(list.nodes[first..].iter().copied().take_while(|&n| !after(n)).map(Source::Write));
            }
        }
        if from_base {
            sources.push(Source::Base);
        }
        sources
    }
}
