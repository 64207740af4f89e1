//! Formulas in the engine: an order is executed, and where a condition or an address comes out differently, the reads that
//! it comes from are the reason.
//!
//! SOLVER.md: with concrete inputs every value is a function of which write each read sees. So there is no solver for
//! values: once an order says what reads see, formulas are evaluated, exactly for any width and for floats. What goes wrong
//! is explained by its *cone*: the reads in the formula with the writes they see, the reads in the formulas of those
//! writes, and so on; one of them must see another write. Nothing is laid out beforehand: saturation knows no reads here.

use super::formulas::{Formula, Formulas, Input};
use super::values::Values;
use super::window::{BASE, NONE, Node, Window};
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
    Spoiled,
}

/// A read and the write (or [`BASE`]) that it sees.
pub(crate) type Sees = (Node, u32);

/// What executing a node may change.
#[derive(Clone, Copy)]
struct Before {
    faults: u32,
    /// Of the node's chain.
    astray: Node,
    /// Of the variable that it writes.
    last: u32,
}

/// An order as it is executed. Made once for a window, and restarted for each order.
#[derive(Clone)]
pub(crate) struct Course<'w, 't> {
    w: &'w Window<'t>,
    values: &'w Values,
    formulas: &'w Formulas,
    /// What has been executed.
    done: Vec<(Node, Before)>,
    /// Of reads that have been executed, the write they see and what that left; [`NONE`] and anything for others.
    sees: Vec<u32>,
    saw: Vec<Held>,
    /// Of writes that have been executed, what they left.
    wrote: Vec<Held>,
    last: Vec<u32>,
    /// The first read of each chain that sees something else, or [`NONE`].
    astray: Vec<Node>,
    /// Events that would not happen as they did.
    faults: Vec<Node>,
}

impl<'w, 't> Course<'w, 't> {
    /// For a window; `None` where there are no formulas.
    pub(crate) fn of(w: &'w Window<'t>) -> Option<Self> {
        let values = w.values.as_deref()?;
        Some(Course {
            w,
            values,
            formulas: values.formulas.as_deref()?,
            done: Vec::new(),
            sees: vec![NONE; w.len()],
            saw: vec![Held::Spoiled; w.len()],
            wrote: vec![Held::Spoiled; w.len()],
            last: vec![BASE; w.variables.len()],
            astray: vec![NONE; w.chains],
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
            self.sees[node as usize] = NONE;
        }
        self.last.fill(BASE);
        self.astray.fill(NONE);
        self.faults.clear();
    }

    pub(crate) fn execute(&mut self, node: Node) {
        let (w, at) = (self.w, node as usize);
        let (act, chain) = (w.act[at], w.chain_of[at] as usize);
        let last = act.written().map_or(NONE, |x| self.last[x as usize]);
        self.done.push((node, Before { faults: self.faults.len() as u32, astray: self.astray[chain], last }));
        if let Some(x) = act.read() {
            let writer = self.last[x as usize];
            let held = self.held(x, writer);
            self.sees[at] = writer;
            self.saw[at] = held;
            if self.astray[chain] == NONE && !self.is_same(node, x, writer, held) {
                self.astray[chain] = node;
            }
        }
        let mut fault = !self.is_kept(node);
        if let Some(x) = act.written() {
            let recorded = w.trace.value(w.event(node));
            let held = match &self.formulas.written[at] {
                Some(formula) => match (self.evaluate(formula), recorded) {
                    (Some(Held::Number(number)), Some(traced)) => {
                        let of = formula.code.type_of();
                        Held::Number(if of.truncate(number) == of.truncate(traced) { traced } else { number })
                    }
                    (Some(held), _) => held,
                    (None, _) => {
                        fault = true;
                        Held::Spoiled
                    }
                },
                None if self.astray[chain] != NONE => Held::Spoiled,
                None => recorded.map_or(Held::AsTraced, Held::Number),
            };
            self.wrote[at] = held;
            self.last[x as usize] = node;
        }
        if fault {
            self.faults.push(node);
        }
    }

    /// Executes an event, unless it would not happen as it did, or a later one of its chain, below the place `bound` and settled by
    /// what this one reads. Whether it did.
    pub(crate) fn attempt(&mut self, node: Node, bound: u32) -> bool {
        let (w, chain) = (self.w, self.w.chain_of[node as usize] as usize);
        let faults = self.faults.len();
        self.execute(node);
        let below = |n: Node| n != NONE && w.place[n as usize] < bound;
        let is_read = w.act[node as usize].read().is_some();
        let fine = self.faults.len() == faults
            && (!is_read
                || (self.formulas.settles[node as usize]
                    .iter()
                    .all(|&n| !below(n) || (self.is_kept(n) && self.has_value(n)))
                    && (self.astray[chain] != node || !below(self.formulas.until[node as usize]))));
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
        self.sees[node as usize] = NONE;
        self.faults.truncate(before.faults as usize);
        self.astray[self.w.chain_of[node as usize] as usize] = before.astray;
        if let Some(x) = self.w.act[node as usize].written() {
            self.last[x as usize] = before.last;
        }
    }

    /// An earlier read that, together with this one, settles an event: what it saw may be why this one has to wait.
    pub(crate) fn partner(&self, read: Node) -> Option<Node> {
        let guards = self.formulas.settles[read as usize].iter().flat_map(|&n| &self.formulas.guards[n as usize]);
        guards.flat_map(|(formula, _)| formula.nodes()).filter(|&other| other < read).max()
    }
    /// Whether a read that has been executed does not see what it saw in the trace.
    pub(crate) fn has_changed(&self, read: Node) -> bool {
        let (writer, x) = (self.sees[read as usize], self.w.act[read as usize].read());
        writer != NONE && x.is_some_and(|x| !self.is_same(read, x, writer, self.saw[read as usize]))
    }
    /// Reads that changed, and with them what a write left.
    pub(crate) fn blame(&self, write: Node, blamed: &mut Vec<Node>) {
        let before = blamed.len();
        let mut next = vec![write];
        while let Some(write) = next.pop() {
            let Some(formula) = &self.formulas.written[write as usize] else { continue };
            for read in formula.nodes().filter(|&read| self.has_changed(read)) {
                if blamed.len() < before + 8 && !blamed.contains(&read) {
                    blamed.push(read);
                    next.extend(Some(self.sees[read as usize]).filter(|&writer| writer != BASE));
                }
            }
        }
    }
    /// What a read saw.
    pub(crate) fn saw(&self, read: Node) -> Held {
        self.saw[read as usize]
    }
    /// What a read would see if it came next.
    pub(crate) fn would_see(&self, x: u32) -> Held {
        self.held(x, self.last[x as usize])
    }
    /// Whether a read, if it came next, would see what it saw in the trace.
    pub(crate) fn would_see_the_same(&self, read: Node, x: u32) -> bool {
        let writer = self.last[x as usize];
        self.is_same(read, x, writer, self.held(x, writer))
    }
    /// Whether a read sees what it saw in the trace.
    fn is_same(&self, read: Node, x: u32, writer: u32, held: Held) -> bool {
        let observed = writer == self.values.observed[read as usize];
        match held {
            Held::Number(number) => {
                self.values.expects(read) == Some(number)
                    || (observed && self.values.traced(self.w, x, writer) == Some(number))
            }
            Held::AsTraced => observed,
            Held::Spoiled => false,
        }
    }

    /// Whether the conditions of an event, whose inputs have been executed, come out as in the trace.
    fn is_kept(&self, node: Node) -> bool {
        let guards = &self.formulas.guards[node as usize];
        let chain = self.w.chain_of[node as usize] as usize;
        let untold = self.formulas.untold[node as usize] && self.astray[chain] != NONE;
        !untold && guards.iter().all(|(formula, value)| self.evaluate(formula) == Some(Held::Number(*value)))
    }

    /// Whether what an event writes, if anything, has a value.
    fn has_value(&self, node: Node) -> bool {
        self.formulas.written[node as usize].as_ref().is_none_or(|formula| self.evaluate(formula).is_some())
    }

    /// What a variable holds after a write.
    fn held(&self, x: u32, writer: u32) -> Held {
        match writer {
            BASE => self.values.traced(self.w, x, writer).map_or(Held::AsTraced, Held::Number),
            writer => self.wrote[writer as usize],
        }
    }

    /// What a read that is part of a formula saw.
    fn number(&self, input: Input) -> Option<i64> {
        match input {
            Input::Before(recorded) => recorded,
            Input::Node(node) => match self.saw[node as usize] {
                Held::Number(number) if self.sees[node as usize] != NONE => Some(number),
                _ => None,
            },
        }
    }

    fn evaluate(&self, formula: &Formula) -> Option<Held> {
        match formula.code.outcome(|at| self.number(formula.inputs[at])) {
            Evaluated::Number(number) => Some(Held::Number(number)),
            Evaluated::Unknown => Some(Held::Spoiled),
            Evaluated::Nothing => None,
        }
    }

    pub(crate) fn faults(&self) -> &[Node] {
        &self.faults
    }
    /// The last write of a variable, or [`BASE`].
    pub(crate) fn last_write(&self, variable: u32) -> u32 {
        self.last[variable as usize]
    }

    /// Whether the last write of a variable leaves a value that is known, and not this one where that is known.
    pub(crate) fn differs(&self, x: u32, from: Option<i64>) -> bool {
        match self.held(x, self.last[x as usize]) {
            Held::Number(number) => Some(number) != from,
            Held::AsTraced => true,
            Held::Spoiled => false,
        }
    }

    /// Why an event went as it did: what reads saw. As long as they see the same, it goes the same.
    pub(crate) fn why(&self, node: Node) -> Vec<Sees> {
        let mut cone = Cone::default();
        let guards = self.formulas.guards[node as usize].iter().map(|(formula, _)| formula);
        for formula in guards.chain(&self.formulas.written[node as usize]) {
            cone.reads.extend(formula.nodes());
        }
        if self.formulas.untold[node as usize] {
            self.add_before(&mut cone, node);
        }
        self.close(cone)
    }

    /// Why a write left what it did.
    pub(crate) fn why_written(&self, write: u32) -> Vec<Sees> {
        let cone = Cone { writes: vec![write], ..Cone::default() };
        self.close(cone)
    }

    /// The reads that decide whether a chain has gone astray before a node: one is enough if it has, otherwise all.
    fn add_before(&self, cone: &mut Cone, node: Node) {
        let chain = self.w.chain_of[node as usize] as usize;
        match self.astray[chain] {
            first if first <= node => cone.reads.push(first),
            _ => {
                let before = &self.w.chain[chain][..=self.w.place[node as usize] as usize];
                cone.reads.extend(before.iter().copied().filter(|&n| self.w.act[n as usize].read().is_some()));
            }
        }
    }

    fn close(&self, mut cone: Cone) -> Vec<Sees> {
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut sees = Vec::new();
        loop {
            while let Some(read) = cone.reads.pop() {
                let writer = self.sees[read as usize];
                if writer != NONE && seen.insert(read) {
                    sees.push((read, writer));
                    cone.writes.push(writer);
                }
            }
            let Some(write) = cone.writes.pop() else { return sees };
            if write == BASE || !cone.done.insert(write) {
                continue;
            }
            match &self.formulas.written[write as usize] {
                Some(formula) => cone.reads.extend(formula.nodes()),
                None => self.add_before(&mut cone, write),
            }
        }
    }
}

#[derive(Default)]
struct Cone {
    reads: Vec<Node>,
    writes: Vec<u32>,
    done: FxHashSet<u32>,
}

impl Window<'_> {
    /// Whether formulas decide if an event happens.
    pub(super) fn is_guarded(&self, node: Node) -> bool {
        let formulas = self.values.as_ref().and_then(|values| values.formulas.as_deref());
        formulas.is_some_and(|formulas| {
            let at = node as usize;
            !formulas.guards[at].is_empty() || formulas.written[at].is_some() || formulas.untold[at]
        })
    }

    /// Every write that a read could see, whatever its value.
    pub(super) fn any_sources(&self, read: Node) -> Vec<u32> {
        let Some(x) = self.act[read as usize].read() else { return Vec::new() };
        let (own, past) = (self.chain_of[read as usize] as usize, self.past_of(read));
        let mut sources = Vec::new();
        let mut from_base = true;
        for list in &self.variables[x as usize].writes {
            let chain = list.chain as usize;
            let bound = if chain == own { self.place[read as usize] } else { past[chain] };
            let first = list.nodes.partition_point(|&n| self.place[n as usize] < bound);
            if let Some(at) = first.checked_sub(1) {
                from_base = false;
                sources.push(list.nodes[at]);
            }
            if chain != own {
                let after = |n: Node| self.past_of(n)[own] > self.place[read as usize];
                sources.extend(list.nodes[first..].iter().copied().take_while(|&n| !after(n)));
            }
        }
        if from_base {
            sources.push(BASE);
        }
        sources
    }
}
