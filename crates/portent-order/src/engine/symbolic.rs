//! Formulas in the engine: an order is executed, and where a condition or an address comes out differently, the reads that
//! it comes from are the reason.
//!
//! SOLVER.md: with concrete inputs every value is a function of which write each read sees. So there is no solver for
//! values: once an order says what reads see, formulas are evaluated, exactly for any width and for floats. What goes wrong
//! is explained by its *cone*: the reads in the formula with the writes they see, the reads in the formulas of those
//! writes, and so on; one of them must see another write. Nothing is laid out beforehand: saturation knows no reads here.

use super::values::Values;
use super::window::{BASE, Node, Window};
use portent_trace::symbolic::{ExprId, Symbols};
use portent_trace::{EventId, Op, Trace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// What every read of a trace saw, by thread.
pub(crate) fn recorded_reads(trace: &Trace) -> Vec<Vec<(EventId, Option<i64>)>> {
    let mut memory: FxHashMap<VarId, Option<i64>> = FxHashMap::default();
    let mut reads = vec![Vec::new(); trace.threads()];
    for event in trace.events() {
        match event.op {
            Op::Read(..) => reads[event.thread.index()].push((event.id, event.value)),
            Op::Update(x, _) => reads[event.thread.index()].push((event.id, memory.get(&x).copied().flatten())),
            _ => {}
        }
        if let Op::Write(x, _) | Op::Update(x, _) = event.op {
            memory.insert(x, event.value);
        }
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

/// An order as it is executed.
pub(crate) struct Course<'w, 't> {
    w: &'w Window<'t>,
    values: &'w Values,
    symbols: &'t Symbols,
    /// The reads of each chain in the window, in order, with what they see.
    reads: Vec<Vec<(Node, Held)>>,
    sees: FxHashMap<Node, u32>,
    wrote: FxHashMap<Node, Held>,
    last: Vec<u32>,
    /// The first read of each chain that sees something else.
    astray: Vec<Option<Node>>,
    /// Events that would not happen as they did.
    faults: Vec<Node>,
}

impl<'w, 't> Course<'w, 't> {
    /// Follows an order that starts with the window; `None` where there are no formulas.
    pub(crate) fn along(w: &'w Window<'t>, order: impl Iterator<Item = Node>) -> Option<Self> {
        let (values, symbols) = (w.values.as_deref()?, w.trace.symbols()?);
        let mut course = Course {
            w,
            values,
            symbols,
            reads: vec![Vec::new(); w.chains],
            sees: FxHashMap::default(),
            wrote: FxHashMap::default(),
            last: vec![BASE; w.variables.len()],
            astray: vec![None; w.chains],
            faults: Vec::new(),
        };
        order.for_each(|node| course.execute(node));
        Some(course)
    }

    pub(crate) fn execute(&mut self, node: Node) {
        let (w, event) = (self.w, EventId::new(self.w.first + node as usize));
        let (act, chain) = (w.act[node as usize], w.chain_of[node as usize] as usize);
        if let Some(x) = act.read() {
            let writer = self.last[x as usize];
            let held = self.held(x, writer);
            self.sees.insert(node, writer);
            self.reads[chain].push((node, held));
            let same = match held {
                Held::Number(number) => {
                    self.values.expects(node) == Some(number)
                        || (writer == self.values.observed[node as usize]
                            && self.values.traced(w, x, writer) == Some(number))
                }
                Held::AsTraced => writer == self.values.observed[node as usize],
                Held::Spoiled => false,
            };
            if !same && self.astray[chain].is_none() {
                self.astray[chain] = Some(node);
            }
        }
        let guards = self.symbols.guards(event);
        let kept = guards.iter().all(|&(expr, value)| self.evaluate(expr, chain) == Some(Held::Number(value)));
        let untold = guards.is_empty() && w.trace.op(event) == Op::Branch && self.astray[chain].is_some();
        let mut fault = !kept || untold;
        if let Some(x) = act.written() {
            let recorded = w.trace.value(event);
            let held = match self.symbols.written(event) {
                Some(expr) => match (self.evaluate(expr, chain), recorded) {
                    (Some(Held::Number(number)), Some(traced)) => {
                        let of = self.symbols.dag().type_of(expr);
                        Held::Number(if of.truncate(number) == of.truncate(traced) { traced } else { number })
                    }
                    (Some(held), _) => held,
                    (None, _) => {
                        fault = true;
                        Held::Spoiled
                    }
                },
                None if self.astray[chain].is_some() => Held::Spoiled,
                None => recorded.map_or(Held::AsTraced, Held::Number),
            };
            self.wrote.insert(node, held);
            self.last[x as usize] = node;
        }
        if fault {
            self.faults.push(node);
        }
    }

    /// What a variable holds after a write.
    fn held(&self, x: u32, writer: u32) -> Held {
        match self.wrote.get(&writer) {
            Some(&held) => held,
            None => self.values.traced(self.w, x, writer).map_or(Held::AsTraced, Held::Number),
        }
    }

    /// What the thread's read of a number saw.
    fn number(&self, chain: usize, read: u32) -> Option<i64> {
        match self.place_of_read(chain, read) {
            Ok(at) => match self.reads[chain].get(at)?.1 {
                Held::Number(number) => Some(number),
                _ => None,
            },
            Err(recorded) => recorded,
        }
    }

    /// Where a read stands among those of the window, or what it saw before it.
    fn place_of_read(&self, chain: usize, read: u32) -> Result<usize, Option<i64>> {
        let before = &self.values.reads_before[chain];
        match (read as usize).checked_sub(before.len()) {
            Some(at) => Ok(at),
            None => Err(before[read as usize]),
        }
    }

    fn evaluate(&self, expr: ExprId, chain: usize) -> Option<Held> {
        let dag = self.symbols.dag();
        if dag.reads(expr).into_iter().any(|read| self.number(chain, read).is_none()) {
            return Some(Held::Spoiled);
        }
        dag.evaluate(expr, &|read| self.number(chain, read)).map(Held::Number)
    }

    pub(crate) fn faults(&self) -> &[Node] {
        &self.faults
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
        let chain = self.w.chain_of[node as usize] as usize;
        let event = EventId::new(self.w.first + node as usize);
        let mut cone = Cone::default();
        let guards = self.symbols.guards(event);
        for expr in guards.iter().map(|&(expr, _)| expr).chain(self.symbols.written(event)) {
            self.add_reads_of(&mut cone, expr, chain);
        }
        if guards.is_empty() && self.w.trace.op(event) == Op::Branch {
            self.add_before(&mut cone, node);
        }
        self.close(cone)
    }

    /// Why a write left what it did.
    pub(crate) fn why_written(&self, write: u32) -> Vec<Sees> {
        let cone = Cone { writes: vec![write], ..Cone::default() };
        self.close(cone)
    }

    fn add_reads_of(&self, cone: &mut Cone, expr: ExprId, chain: usize) {
        for read in self.symbols.dag().reads(expr) {
            if let Ok(at) = self.place_of_read(chain, read)
                && let Some(&(node, _)) = self.reads[chain].get(at)
            {
                cone.reads.push(node);
            }
        }
    }

    /// The reads that decide whether a chain has gone astray before a node: one is enough if it has, otherwise all.
    fn add_before(&self, cone: &mut Cone, node: Node) {
        let chain = self.w.chain_of[node as usize] as usize;
        match self.astray[chain] {
            Some(first) if first <= node => cone.reads.push(first),
            _ => cone.reads.extend(self.reads[chain].iter().map(|&(read, _)| read).filter(|&read| read <= node)),
        }
    }

    fn close(&self, mut cone: Cone) -> Vec<Sees> {
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut sees = Vec::new();
        loop {
            while let Some(read) = cone.reads.pop() {
                if seen.insert(read)
                    && let Some(&writer) = self.sees.get(&read)
                {
                    sees.push((read, writer));
                    cone.writes.push(writer);
                }
            }
            let Some(write) = cone.writes.pop() else { return sees };
            if write == BASE || !cone.done.insert(write) {
                continue;
            }
            match self.symbols.written(EventId::new(self.w.first + write as usize)) {
                Some(expr) => self.add_reads_of(&mut cone, expr, self.w.chain_of[write as usize] as usize),
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
        let event = EventId::new(self.first + node as usize);
        let formulas = |symbols: &Symbols| {
            !symbols.guards(event).is_empty() || symbols.written(event).is_some() || self.trace.op(event) == Op::Branch
        };
        self.values.is_some() && self.trace.symbols().is_some_and(formulas)
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
