//! The `values` model in a window: which writes a read may see, and whether an order keeps to it.
//!
//! The rules are [`ReadRule`]'s; the encoding, in docs/src/internals/encoding.md. For each read that matters there is a choice of
//! *sources*, the writes of an equal value. Where all but one are impossible (program order and tokens alone say so), the
//! read is laid out like a kept read of `reads`, and everything that holds there holds here. All other choices are left
//! open by saturation, so that what it refutes is refuted whatever is chosen, and made by the search.
//!
//! In a trace with branches a read matters once a branch behind it is executed, or once a read that matters sees a write
//! behind it. No read is then laid out as kept; a read whose source is certain puts that before its branch.

use super::formulas::Formulas;
use super::index::{Chain, IndexVec, Node, Source, Variable};
use super::layout::list_in_chain;
use super::rows::{Cut, Row, Rows};
use super::simulate::Obstacle;
use super::symbolic::recorded_reads;
use super::window::{Act, Freed, InChain, Window};
use crate::goal::Writer;
use crate::read_rule::{ReadRule, Recorded};
use portent_trace::{EventId, Op, Trace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// What windows of a trace need to know of the whole of it.
#[derive(Debug)]
pub(crate) struct TraceValues {
    pub recorded: Recorded,
    /// What variables held before their first write, where reads of it recorded that; `None` where they contradict each other.
    initial: FxHashMap<VarId, Option<i64>>,
    /// Where there are formulas: what each thread's reads saw.
    reads: Vec<Vec<(EventId, Option<i64>)>>,
}

impl TraceValues {
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut written = vec![false; trace.variables()];
        let reads = if trace.symbols().is_some() { recorded_reads(trace) } else { Vec::new() };
        let formulas = trace.symbols().is_some();
        let recorded = if formulas { Recorded::Formulas } else { Recorded::Values };
        let mut values = TraceValues { recorded, initial: FxHashMap::default(), reads };
        for event in trace.events() {
            match event.op {
                Op::Branch if !formulas => values.recorded = Recorded::Branches,
                Op::Write(x, _) | Op::Update(x, _) => written[x.index()] = true,
                Op::Read(x, _) if !written[x.index()] && event.value.is_some() => {
                    let known = values.initial.entry(x).or_insert(event.value);
                    if *known != event.value {
                        *known = None;
                    }
                }
                _ => {}
            }
        }
        values
    }
}

/// The values of a window.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// What each read saw in the trace; `None` for what does not read.
    pub observed: IndexVec<Node, Option<Source>>,
    /// The node that makes a read matter when it is executed: itself, or the branch behind it, if there is one.
    pub until: IndexVec<Node, Option<Node>>,
    expected: IndexVec<Node, Option<i64>>,
    /// What each variable holds when the window starts.
    base: IndexVec<Variable, Option<i64>>,
    /// The writes of a variable and value.
    by_value: FxHashMap<(Variable, i64), Vec<InChain>>,
    /// The past of each node if every read keeps its writer.
    seen_past: Rows,
    /// Order that holds in every reordering whatever reads see.
    must: Vec<(Node, Node)>,
    /// Where there are some.
    pub formulas: Option<Box<Formulas>>,
    /// An update that may read anything, and its chain. Nobody knows what its thread writes from its read on.
    freed: Option<(Freed, Chain)>,
}

impl Values {
    /// Whether a read sees what it expects from a source, if that is not tainted.
    #[inline]
    pub(crate) fn is_as_good(&self, w: &Window<'_>, read: Node, source: Source) -> bool {
        !self.is_freed(w, source) && (Some(source) == self.observed[read] || self.is_equal(w, read, source))
    }

    #[inline]
    fn is_freed(&self, w: &Window<'_>, source: Source) -> bool {
        let (Some((freed, chain)), Source::Write(write)) = (self.freed, source) else { return false };
        freed.read <= write && write <= freed.last && w.chain_of[write] == chain
    }

    /// Whether a write is known to have the value that a read saw.
    pub(crate) fn is_equal(&self, w: &Window<'_>, read: Node, source: Source) -> bool {
        let Some(x) = w.act[read].read() else { return false };
        let expected = self.expected[read];
        expected.is_some() && expected == self.traced(w, x, source)
    }

    /// Whether a source leaves what it left in the trace, or nothing that is known.
    pub(super) fn writes_as_traced(&self, source: Source) -> bool {
        let formula = self.formulas.as_ref().zip(source.node());
        let formula = formula.and_then(|(formulas, write)| formulas.written[write].as_ref());
        formula.is_none_or(|formula| formula.nodes().next().is_none())
    }

    /// The value that a read had in the trace.
    pub(crate) fn expects(&self, read: Node) -> Option<i64> {
        self.expected[read]
    }
    /// The value that a variable had in the trace after a write, or before the window.
    pub(crate) fn traced(&self, w: &Window<'_>, x: Variable, source: Source) -> Option<i64> {
        match source {
            Source::Base => self.base[x],
            Source::Write(node) => w.trace.value(w.event(node)),
        }
    }

    /// What comes before a node if every read keeps its writer.
    pub(crate) fn seen_past_of(&self, node: Node) -> Row<'_> {
        self.seen_past.row(node)
    }
}

impl<'t> Window<'t> {
    /// Works out the values of a new window.
    pub(crate) fn add_values(&mut self, whole: &TraceValues) {
        let (trace, first) = (self.trace, self.first);
        let mut last: IndexVec<Variable, Source> = IndexVec::repeat(Source::Base, self.variables.len());
        let mut observed: IndexVec<Node, Option<Source>> = IndexVec::with_capacity(self.len());
        let mut by_value: FxHashMap<(Variable, i64), Vec<InChain>> = FxHashMap::default();
        for node in self.nodes() {
            observed.push(self.act[node].read().map(|x| last[x]));
            if let Some(x) = self.act[node].written() {
                last[x] = Source::Write(node);
                if let Some(value) = trace.value(self.event(node)) {
                    list_in_chain(by_value.entry((x, value)).or_default(), self.chain_of[node], node);
                }
            }
        }
        let mut base = IndexVec::repeat(None, self.variables.len());
        for (global, local) in self.variables_by_number() {
            base[local] = match self.base_writer(local) {
                Writer::Init => whole.initial.get(&global).copied().flatten(),
                Writer::Event(write) => trace.value(write),
            };
        }
        let expected = self.nodes().map(|node| match (self.act[node], observed[node]) {
            (Act::Read(_), _) => trace.value(self.event(node)),
            // What an update recorded is what it wrote.
            (Act::Update(x), Some(Source::Base)) => base[x],
            (Act::Update(_), Some(Source::Write(writer))) => trace.value(self.event(writer)),
            _ => None,
        });
        let expected = expected.collect();
        let mut until = IndexVec::repeat(None, self.len());
        for chain in self.chain.iter() {
            let mut branch = None;
            for &node in chain.iter().rev() {
                if self.is_branch(node) {
                    branch = Some(node);
                }
                if self.act[node].read().is_some() {
                    until[node] = if self.rule == ReadRule::SameBranches { branch } else { Some(node) };
                }
            }
        }
        let must = self.hard.clone();
        self.hard.extend(observed.entries().filter_map(|(node, source)| Some(((*source)?.node()?, node))));
        self.compute_past();
        let seen_past = std::mem::take(&mut self.past);
        let before = |reads: &Vec<(EventId, Option<i64>)>| {
            reads.iter().take_while(|(read, _)| read.index() < first).map(|&(_, value)| value).collect()
        };
        let reads_before: IndexVec<Chain, Vec<Option<i64>>> = whole.reads.iter().map(before).collect();
        let formulas = trace.symbols().map(|symbols| Box::new(Formulas::of(self, symbols, &reads_before)));
        let values = Values { observed, until, expected, base, by_value, seen_past, must, formulas, freed: None };
        self.values = Some(Box::new(values));
        self.fix_sources();
    }

    /// Lays out the reads whose source is certain like kept reads; all others are choices.
    fn fix_sources(&mut self) {
        let Some(values) = self.values.take() else { return };
        self.hard.clone_from(&values.must);
        self.compute_past();
        if self.rule == ReadRule::SameFormulas {
            self.values = Some(values);
            return; // Any write may come to have the value that a read wants.
        }
        // Each source that is certain makes pasts larger, and others certain.
        for _ in 0..2 {
            let mut hard = values.must.clone();
            self.saw.fill(None);
            self.readers.clear();
            self.variables.iter_mut().for_each(|x| x.base_readers.clear());
            for read in self.nodes() {
                let (Some(until), Some(x)) = (values.until[read], self.act[read].read()) else { continue };
                let &[source] = self.some_sources(&values, read, x, Some(2)).as_slice() else { continue };
                if Some(source) != values.observed[read] {
                    continue; // What it saw is an update that is free: too rare to lay out against the observed order.
                }
                hard.extend(source.node().map(|source| (source, until)));
                if self.rule.taints() {
                    continue;
                }
                self.saw[read] = Some(source);
                match source {
                    Source::Base => self.variables[x].base_readers.push(read),
                    Source::Write(source) => self.readers.entry(source).or_default().push(read),
                }
            }
            self.hard = hard;
            self.compute_past();
        }
        self.values = Some(values);
    }

    /// This window with an update that counts as a plain write.
    pub(crate) fn free_source(&mut self, update: Freed) {
        let chain = self.chain_of[update.read];
        if let Some(values) = &mut self.values {
            values.until[update.read] = None;
            values.observed[update.read] = None;
            values.freed = Some((update, chain));
            self.act[update.read] = self.act[update.read].without_reading();
            self.fix_sources();
        }
    }

    /// The writes of an equal value that a read could see.
    pub(crate) fn sources(&self, values: &Values, read: Node) -> Vec<Source> {
        self.act[read].read().map_or_else(Vec::new, |x| self.some_sources(values, read, x, None))
    }

    /// All of them, or `enough`, the observed one first.
    fn some_sources(&self, values: &Values, read: Node, x: Variable, enough: Option<usize>) -> Vec<Source> {
        let observed = values.observed[read];
        let mut sources: Vec<Source> = observed.into_iter().filter(|&source| !values.is_freed(self, source)).collect();
        let (own, past) = (self.chain_of[read], self.past_of(read));
        let above = |list: &InChain| {
            // An update is in its own past, and is not what it sees.
            let bound = if list.chain == own { self.place[read] } else { past[list.chain] };
            list.nodes.partition_point(|&n| self.place[n] < bound)
        };
        if observed != Some(Source::Base)
            && values.is_equal(self, read, Source::Base)
            && self.variables[x].writes.iter().all(|list| above(list) == 0)
        {
            sources.push(Source::Base);
        }
        let Some(expected) = values.expected[read] else { return sources };
        for list in values.by_value.get(&(x, expected)).into_iter().flatten() {
            let chain = list.chain;
            let all = self.variables[x].writes.iter().find(|all| all.chain == list.chain);
            // Of those before the read, only the last of the chain.
            let last = all.and_then(|all| above(all).checked_sub(1).map(|at| all.nodes[at]));
            let first = above(list);
            let before = first.checked_sub(1).map(|at| list.nodes[at]).filter(|&n| Some(n) == last);
            let mut later: &[Node] = &[];
            if chain != own {
                let rest = &list.nodes[first..];
                later = &rest[..rest.partition_point(|&n| self.past_of(n)[own] <= self.place[read])];
            }
            for &write in before.iter().chain(later).filter(|&&write| write != read) {
                let source = Source::Write(write);
                if Some(source) == observed || values.is_freed(self, source) {
                    continue;
                }
                if enough.is_some_and(|enough| sources.len() >= enough) {
                    return sources;
                }
                sources.push(source);
            }
        }
        sources
    }

    /// Whether a write of the variable is known to have another's value, so that seeing it instead changes nothing.
    pub(crate) fn is_no_change(&self, read: Node, source: Source) -> bool {
        let equal = |values: &Values| values.is_equal(self, read, source) && values.writes_as_traced(source);
        self.values.as_deref().is_some_and(equal)
    }
    /// Likewise for the last write of a variable.
    pub(crate) fn ends_the_same(&self, observed: Node, writer: Node) -> bool {
        let value = |node: Node| self.trace.value(self.event(node));
        let certain = self.values.as_deref().is_some_and(|values| values.writes_as_traced(Source::Write(writer)));
        certain && value(observed).is_some() && value(observed) == value(writer)
    }
    pub(crate) fn is_branch(&self, node: Node) -> bool {
        self.trace.op(self.event(node)) == Op::Branch
    }
}

/// What every read of an order sees.
pub(crate) struct Sight<'v> {
    values: &'v Values,
    /// For each read, what it sees.
    sees: FxHashMap<Node, Source>,
    /// For each chain, its reads that do not see what they expect, in order.
    bad: IndexVec<Chain, Vec<Node>>,
}

impl<'v> Sight<'v> {
    /// Follows an order that starts with the window.
    pub(crate) fn along(w: &Window<'_>, values: &'v Values, order: impl Iterator<Item = Node>) -> Self {
        let mut last: IndexVec<Variable, Source> = IndexVec::repeat(Source::Base, w.variables.len());
        let mut tainted: FxHashSet<Node> = FxHashSet::default();
        let bad = IndexVec::repeat(Vec::new(), w.chain.len());
        let mut sight = Sight { values, sees: FxHashMap::default(), bad };
        for node in order {
            let (act, chain) = (w.act[node], w.chain_of[node]);
            if let Some(x) = act.read() {
                let source = last[x];
                sight.sees.insert(node, source);
                if !values.is_as_good(w, node, source) || source.node().is_some_and(|node| tainted.contains(&node)) {
                    sight.bad[chain].push(node);
                }
            }
            if let Some(x) = act.written() {
                last[x] = Source::Write(node);
                if w.rule.taints() && !sight.bad[chain].is_empty() {
                    tainted.insert(node);
                }
            }
        }
        sight
    }

    /// Whether a chain has read something else.
    pub(crate) fn is_tainted(&self, chain: Chain) -> bool {
        !self.bad[chain].is_empty()
    }

    /// What is wrong with the order, whose events are those below `cut`: reads that matter and do not see what they expect.
    /// `relied` is a write that must not be tainted.
    pub(crate) fn faults(&self, w: &Window<'_>, cut: &Cut, relied: Option<Node>) -> Vec<Obstacle> {
        let mut faults = Vec::new();
        let mut matter: Vec<Node> = Vec::new();
        for bad in self.bad.iter() {
            for &read in bad {
                if self.values.until[read].is_some_and(|until| w.is_in(cut, until)) {
                    faults.push(Obstacle::Changed(read));
                    matter.push(read);
                }
            }
        }
        if !w.rule.taints() {
            return faults;
        }
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut relied: Vec<Node> = relied.into_iter().collect();
        loop {
            for read in matter.drain(..) {
                match self.sees.get(&read) {
                    Some(&source) if self.values.is_as_good(w, read, source) => relied.extend(source.node()),
                    _ => {}
                }
            }
            let Some(write) = relied.pop() else { return faults };
            if !seen.insert(write) {
                continue;
            }
            for &read in &self.bad[w.chain_of[write]] {
                if read < write || (read == write && w.act[write].read().is_some()) {
                    faults.push(Obstacle::Tainted(write, read));
                    matter.push(read);
                }
            }
        }
    }
}
