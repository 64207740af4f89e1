//! The `values` model in a window: which writes a read may see, and whether an order keeps to it.
//!
//! The rules are in [`crate::brute`]; the encoding is SOLVER.md's. For each read that matters there is a choice of
//! *sources*, the writes of an equal value. Where all but one are impossible (program order and tokens alone say so), the
//! read is laid out like a kept read of `reads`, and everything that holds there holds here. All other choices are left
//! open by saturation, so that what it refutes is refuted whatever is chosen, and made by the search.
//!
//! In a trace with branches a read matters once a branch behind it is executed, or once a read that matters sees a write
//! behind it. No read is then laid out as kept; a read whose source is certain puts that before its branch.

use super::formulas::Formulas;
use super::simulate::Obstacle;
use super::symbolic::recorded_reads;
use super::window::{Act, BASE, InChain, NONE, Node, Window, list_in_chain};
use crate::goal::Writer;
use portent_trace::{EventId, Op, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// What windows of a trace need to know of the whole of it.
#[derive(Debug)]
pub(crate) struct TraceValues {
    /// Whether any branch is recorded.
    pub branches: bool,
    /// What variables held before their first write, where reads of it recorded that; `None` where they contradict each other.
    initial: FxHashMap<u32, Option<i64>>,
    /// Where there are formulas: what each thread's reads saw.
    reads: Vec<Vec<(EventId, Option<i64>)>>,
}

impl TraceValues {
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut written = vec![false; trace.variables()];
        let reads = if trace.symbols().is_some() { recorded_reads(trace) } else { Vec::new() };
        let mut values = TraceValues { branches: trace.symbols().is_some(), initial: FxHashMap::default(), reads };
        for event in trace.events() {
            match event.op {
                Op::Branch => values.branches = true,
                Op::Write(x, _) | Op::Update(x, _) => written[x.index()] = true,
                Op::Read(x, _) if !written[x.index()] && event.value.is_some() => {
                    let known = values.initial.entry(x.index() as u32).or_insert(event.value);
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
    /// Whether the trace records branches.
    pub branches: bool,
    /// The write that each read saw in the trace, a node or [`BASE`]; [`NONE`] for what does not read.
    pub observed: Vec<u32>,
    /// The node that makes a read matter when it is executed: itself, or the branch behind it; [`NONE`] if there is none.
    pub until: Vec<Node>,
    expected: Vec<Option<i64>>,
    /// What each variable holds when the window starts.
    base: Vec<Option<i64>>,
    /// The writes of a variable and value.
    by_value: FxHashMap<(u32, i64), Vec<InChain>>,
    /// The past of each node if every read keeps its writer.
    seen_past: Vec<u32>,
    /// Order that holds in every reordering whatever reads see.
    must: Vec<(Node, Node)>,
    /// Where there are some.
    pub formulas: Option<Box<Formulas>>,
    /// An update that may read anything, and of which nobody knows what it writes then.
    freed: Node,
}

/// Whether at least this many sources are wanted, or all.
const ALL: usize = usize::MAX;

impl Values {
    /// Whether a read sees what it expects from a write (or [`BASE`]), if that is not spoiled.
    pub(crate) fn is_as_good(&self, w: &Window<'_>, read: Node, writer: u32) -> bool {
        writer != self.freed && (writer == self.observed[read as usize] || self.is_equal(w, read, writer))
    }

    /// Whether a write is known to have the value that a read saw.
    pub(crate) fn is_equal(&self, w: &Window<'_>, read: Node, writer: u32) -> bool {
        let Some(x) = w.act[read as usize].read() else { return false };
        let expected = self.expected[read as usize];
        expected.is_some() && expected == self.written(w, x, writer)
    }

    /// Whether a write (or [`BASE`]) leaves what it left in the trace, or nothing that is known.
    pub(super) fn writes_as_traced(&self, writer: u32) -> bool {
        let formula = self.formulas.as_ref().and_then(|formulas| formulas.written.get(writer as usize)?.as_ref());
        formula.is_none_or(|formula| formula.nodes().next().is_none())
    }

    /// The value that a read had in the trace.
    pub(crate) fn expects(&self, read: Node) -> Option<i64> {
        self.expected[read as usize]
    }
    /// The value that a write (or [`BASE`]) of a variable had in the trace.
    pub(crate) fn traced(&self, w: &Window<'_>, x: u32, writer: u32) -> Option<i64> {
        self.written(w, x, writer)
    }

    fn written(&self, w: &Window<'_>, x: u32, writer: u32) -> Option<i64> {
        match writer {
            BASE => self.base[x as usize],
            node => w.trace.value(EventId::new(w.first + node as usize)),
        }
    }

    /// How many events of each chain come before a node if every read keeps its writer.
    pub(crate) fn seen_past_of(&self, w: &Window<'_>, node: Node) -> &[u32] {
        &self.seen_past[node as usize * w.chains..][..w.chains]
    }
}

impl<'t> Window<'t> {
    /// Works out the values of a new window.
    pub(crate) fn add_values(&mut self, whole: &TraceValues) {
        let (trace, first) = (self.trace, self.first);
        let event = |node: usize| EventId::new(first + node);
        let mut last = vec![BASE; self.variables.len()];
        let mut observed = Vec::with_capacity(self.len());
        let mut by_value: FxHashMap<(u32, i64), Vec<InChain>> = FxHashMap::default();
        for node in 0..self.len() {
            observed.push(self.act[node].read().map_or(NONE, |x| last[x as usize]));
            if let Some(x) = self.act[node].written() {
                last[x as usize] = node as u32;
                if let Some(value) = trace.value(event(node)) {
                    list_in_chain(by_value.entry((x, value)).or_default(), self.chain_of[node], node as u32);
                }
            }
        }
        let mut base = vec![None; self.variables.len()];
        for (global, local) in self.variables_by_number() {
            base[local as usize] = match self.base_writer(local) {
                Writer::Init => whole.initial.get(&global).copied().flatten(),
                Writer::Event(write) => trace.value(write),
            };
        }
        let expected = (0..self.len()).map(|node| match (self.act[node], observed[node]) {
            (Act::Read(_), _) => trace.value(event(node)),
            // What an update recorded is what it wrote.
            (Act::Update(x), BASE) => base[x as usize],
            (Act::Update(_), writer) => trace.value(event(writer as usize)),
            _ => None,
        });
        let expected = expected.collect();
        let mut until = vec![NONE; self.len()];
        for chain in &self.chain {
            let mut branch = NONE;
            for &node in chain.iter().rev() {
                if trace.op(event(node as usize)) == Op::Branch {
                    branch = node;
                }
                if self.act[node as usize].read().is_some() {
                    let every = !whole.branches || trace.symbols().is_some();
                    until[node as usize] = if every { node } else { branch };
                }
            }
        }
        let must = self.hard.clone();
        self.hard.extend((0..self.len() as u32).filter_map(|node| match observed[node as usize] {
            BASE | NONE => None,
            writer => Some((writer, node)),
        }));
        self.compute_past();
        let seen_past = std::mem::take(&mut self.past);
        let branches = whole.branches;
        let before = |reads: &Vec<(EventId, Option<i64>)>| {
            reads.iter().take_while(|(read, _)| read.index() < first).map(|&(_, value)| value).collect()
        };
        let reads_before: Vec<Vec<Option<i64>>> = whole.reads.iter().map(before).collect();
        let formulas = trace.symbols().map(|symbols| Box::new(Formulas::of(self, symbols, &reads_before)));
        let values =
            Values { branches, observed, until, expected, base, by_value, seen_past, must, formulas, freed: NONE };
        self.values = Some(Box::new(values));
        self.fix_sources();
    }

    /// Lays out the reads whose source is certain like kept reads; all others are choices.
    fn fix_sources(&mut self) {
        let Some(values) = self.values.take() else { return };
        self.hard.clone_from(&values.must);
        self.compute_past();
        if self.trace.symbols().is_some() {
            self.values = Some(values);
            return; // Any write may come to have the value that a read wants.
        }
        // Each source that is certain makes pasts larger, and others certain.
        for _ in 0..2 {
            let mut hard = values.must.clone();
            self.saw.fill(NONE);
            self.readers.clear();
            self.variables.iter_mut().for_each(|x| x.base_readers.clear());
            for read in 0..self.len() as u32 {
                let (until, Some(x)) = (values.until[read as usize], self.act[read as usize].read()) else { continue };
                if until == NONE {
                    continue;
                }
                let &[source] = self.some_sources(&values, read, x, 2).as_slice() else { continue };
                if source != values.observed[read as usize] {
                    continue; // What it saw is an update that is free: too rare to lay out against the observed order.
                }
                if source != BASE {
                    hard.push((source, until));
                }
                if values.branches {
                    continue;
                }
                self.saw[read as usize] = source;
                match source {
                    BASE => self.variables[x as usize].base_readers.push(read),
                    source => self.readers.entry(source).or_default().push(read),
                }
            }
            self.hard = hard;
            self.compute_past();
        }
        self.values = Some(values);
    }

    /// This window with an update that counts as a plain write.
    pub(crate) fn free_source(&mut self, update: Node) {
        if let (Act::Update(x), Some(values)) = (self.act[update as usize], &mut self.values) {
            values.until[update as usize] = NONE;
            values.observed[update as usize] = NONE;
            values.freed = update;
            self.act[update as usize] = Act::Write(x);
            self.fix_sources();
        }
    }

    /// The writes of an equal value that a read could see.
    pub(crate) fn sources(&self, values: &Values, read: Node) -> Vec<u32> {
        self.act[read as usize].read().map_or_else(Vec::new, |x| self.some_sources(values, read, x, ALL))
    }

    /// Up to `enough` of them, the observed one first.
    fn some_sources(&self, values: &Values, read: Node, x: u32, enough: usize) -> Vec<u32> {
        let observed = values.observed[read as usize];
        let mut sources: Vec<u32> = Some(observed).into_iter().filter(|&n| n != values.freed).collect();
        let (own, past) = (self.chain_of[read as usize] as usize, self.past_of(read));
        let above = |list: &InChain| {
            // An update is in its own past, and is not what it sees.
            let bound = if list.chain as usize == own { self.place[read as usize] } else { past[list.chain as usize] };
            list.nodes.partition_point(|&n| self.place[n as usize] < bound)
        };
        if observed != BASE
            && values.is_equal(self, read, BASE)
            && self.variables[x as usize].writes.iter().all(|list| above(list) == 0)
        {
            sources.push(BASE);
        }
        let Some(expected) = values.expected[read as usize] else { return sources };
        for list in values.by_value.get(&(x, expected)).into_iter().flatten() {
            let chain = list.chain as usize;
            let all = self.variables[x as usize].writes.iter().find(|all| all.chain == list.chain);
            // Of those before the read, only the last of the chain.
            let last = all.and_then(|all| above(all).checked_sub(1).map(|at| all.nodes[at]));
            let first = above(list);
            let before = first.checked_sub(1).map(|at| list.nodes[at]).filter(|&n| Some(n) == last);
            let mut later: &[Node] = &[];
            if chain != own {
                let rest = &list.nodes[first..];
                later = &rest[..rest.partition_point(|&n| self.past_of(n)[own] <= self.place[read as usize])];
            }
            for &source in before.iter().chain(later).filter(|&&n| ![observed, read, values.freed].contains(&n)) {
                if sources.len() >= enough {
                    return sources;
                }
                sources.push(source);
            }
        }
        sources
    }

    /// Whether a write of the variable is known to have another's value, so that seeing it instead changes nothing.
    pub(crate) fn is_no_change(&self, read: Node, writer: u32) -> bool {
        let equal = |values: &Values| values.is_equal(self, read, writer) && values.writes_as_traced(writer);
        self.values.as_deref().is_some_and(equal)
    }
    /// Likewise for the last write of a variable.
    pub(crate) fn ends_the_same(&self, observed: Node, writer: Node) -> bool {
        let value = |node: Node| self.trace.value(EventId::new(self.first + node as usize));
        let certain = self.values.as_deref().is_some_and(|values| values.writes_as_traced(writer));
        certain && value(observed).is_some() && value(observed) == value(writer)
    }
    /// Whether a thread stops at a read that sees something else: where it does not, no goal needs to free a read.
    pub(crate) fn stops_at_changed_reads(&self) -> bool {
        match &self.values {
            Some(values) => !values.branches,
            None => self.model != crate::goal::Model::Sync,
        }
    }
    pub(crate) fn is_branch(&self, node: Node) -> bool {
        self.trace.op(EventId::new(self.first + node as usize)) == Op::Branch
    }
}

/// What every read of an order sees.
pub(crate) struct Sight<'v> {
    values: &'v Values,
    /// For each read, the write it sees.
    sees: FxHashMap<Node, u32>,
    /// For each chain, its reads that do not see what they expect, in order.
    bad: Vec<Vec<Node>>,
}

impl<'v> Sight<'v> {
    /// Follows an order that starts with the window.
    pub(crate) fn along(w: &Window<'_>, values: &'v Values, order: impl Iterator<Item = Node>) -> Self {
        let mut last = vec![BASE; w.variables.len()];
        let mut spoiled: FxHashSet<Node> = FxHashSet::default();
        let mut sight = Sight { values, sees: FxHashMap::default(), bad: vec![Vec::new(); w.chains] };
        for node in order {
            let (act, chain) = (w.act[node as usize], w.chain_of[node as usize] as usize);
            if let Some(x) = act.read() {
                let writer = last[x as usize];
                sight.sees.insert(node, writer);
                if !values.is_as_good(w, node, writer) || spoiled.contains(&writer) {
                    sight.bad[chain].push(node);
                }
            }
            if let Some(x) = act.written() {
                last[x as usize] = node;
                if values.branches && !sight.bad[chain].is_empty() {
                    spoiled.insert(node);
                }
            }
        }
        sight
    }

    /// Whether a chain has read something else.
    pub(crate) fn is_spoiled(&self, chain: usize) -> bool {
        !self.bad[chain].is_empty()
    }

    /// What is wrong with the order, whose events are those below `cut`: reads that matter and do not see what they expect.
    /// `relied` is a write that must not be spoiled.
    pub(crate) fn faults(&self, w: &Window<'_>, cut: &[u32], relied: Option<Node>) -> Vec<Obstacle> {
        let inside = |node: Node| w.place[node as usize] < cut[w.chain_of[node as usize] as usize];
        let mut faults = Vec::new();
        let mut matter: Vec<Node> = Vec::new();
        for bad in &self.bad {
            for &read in bad {
                let until = self.values.until[read as usize];
                if until != NONE && inside(until) {
                    faults.push(Obstacle::Changed(read));
                    matter.push(read);
                }
            }
        }
        if !self.values.branches {
            return faults;
        }
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        let mut relied: Vec<Node> = relied.into_iter().collect();
        loop {
            for read in matter.drain(..) {
                match self.sees.get(&read) {
                    Some(&writer) if writer != BASE && self.values.is_as_good(w, read, writer) => relied.push(writer),
                    _ => {}
                }
            }
            let Some(write) = relied.pop() else { return faults };
            if !seen.insert(write) {
                continue;
            }
            for &read in &self.bad[w.chain_of[write as usize] as usize] {
                if read < write || (read == write && w.act[write as usize].read().is_some()) {
                    faults.push(Obstacle::Spoiled(write, read));
                    matter.push(read);
                }
            }
        }
    }
}
