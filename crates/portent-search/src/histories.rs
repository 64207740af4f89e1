//! All that is known of the threads: one tree of local histories per thread, and which runs pass through each.
//!
//! A node is a local history. It knows the operation that comes next, since threads are deterministic, and has a child for each
//! outcome of it that a run has shown.

use crate::bits::Bits;
use crate::subject::{End, History, Operation, Run, Seen};
use rustc_hash::FxHashMap;

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Node(u32);

/// What comes after a local history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Operation(Operation),
    /// Nothing: the thread is done.
    Nothing,
    /// No run has gone on from here.
    Unknown,
}

#[derive(Debug)]
struct Entry {
    next: Next,
    children: FxHashMap<Seen, Node>,
    runs: Bits,
}

/// A thread did something else after a history than it did before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotDeterministic {
    pub thread: usize,
    /// After so many operations.
    pub after: usize,
}

/// The trees.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    entries: Vec<Entry>,
    roots: Vec<Node>,
    runs: usize,
}

impl Histories {
    /// Adds a run: the nodes of each thread, from the root to its end; `None` if a run has all of it already. Nothing is added
    /// if a thread is not deterministic.
    pub(crate) fn add(&mut self, run: &Run) -> Result<Option<Vec<Vec<Node>>>, NotDeterministic> {
        if self.is_known(run)? {
            return Ok(None);
        }
        let number = self.runs;
        self.runs += 1;
        let paths = run.threads.iter().enumerate().map(|(thread, history)| match history {
            Some(history) => self.insert(thread, history, number),
            None => vec![self.root(thread)],
        });
        Ok(Some(paths.collect()))
    }

    /// Whether some run has all that a run has.
    pub(crate) fn is_known(&self, run: &Run) -> Result<bool, NotDeterministic> {
        let mut ends = Vec::new();
        for (thread, history) in run.threads.iter().enumerate() {
            if let Some(history) = history {
                ends.push(self.fits(thread, history)?);
            }
        }
        let ends: Option<Vec<Node>> = ends.into_iter().collect();
        Ok(ends.is_some_and(|ends| self.some_run_has(&ends)))
    }

    /// Whether some run passes through all of these.
    fn some_run_has(&self, nodes: &[Node]) -> bool {
        let runs = |node: &Node| &self.entries[node.0 as usize].runs;
        match nodes.split_first() {
            None => self.runs > 0,
            Some((first, rest)) => runs(first).iter().any(|run| rest.iter().all(|node| runs(node).contains(run))),
        }
    }

    /// The runs in which a history goes on with an outcome.
    pub(crate) fn through(&self, node: Node, seen: Seen) -> Option<&Bits> {
        let child = self.entries[node.0 as usize].children.get(&seen)?;
        Some(&self.entries[child.0 as usize].runs)
    }

    fn new_node(&mut self) -> Node {
        self.entries.push(Entry { next: Next::Unknown, children: FxHashMap::default(), runs: Bits::default() });
        Node(self.entries.len() as u32 - 1)
    }

    fn root(&mut self, thread: usize) -> Node {
        while self.roots.len() <= thread {
            let root = self.new_node();
            self.roots.push(root);
        }
        self.roots[thread]
    }

    /// Whether a history agrees with all that is known: its node, if that is there.
    fn fits(&self, thread: usize, history: &History) -> Result<Option<Node>, NotDeterministic> {
        let Some(mut node) = self.roots.get(thread).copied() else { return Ok(None) };
        for after in 0..=history.steps.len() {
            let entry = &self.entries[node.0 as usize];
            let next = history.next(after);
            if entry.next != Next::Unknown && next != Next::Unknown && entry.next != next {
                return Err(NotDeterministic { thread, after });
            }
            let Some(step) = history.steps.get(after) else { break };
            let Some(&child) = entry.children.get(&step.seen) else { return Ok(None) };
            node = child;
        }
        Ok(Some(node))
    }

    fn insert(&mut self, thread: usize, history: &History, run: usize) -> Vec<Node> {
        let mut node = self.root(thread);
        let mut path = Vec::with_capacity(history.steps.len() + 1);
        for after in 0..=history.steps.len() {
            path.push(node);
            let entry = &mut self.entries[node.0 as usize];
            entry.runs.insert(run);
            if entry.next == Next::Unknown {
                entry.next = history.next(after);
            }
            let Some(step) = history.steps.get(after) else { break };
            node = match entry.children.get(&step.seen) {
                Some(&child) => child,
                None => {
                    let child = self.new_node();
                    self.entries[node.0 as usize].children.insert(step.seen, child);
                    child
                }
            };
        }
        path
    }
}

impl History {
    /// What it does after so many operations.
    fn next(&self, after: usize) -> Next {
        match (self.steps.get(after), self.end) {
            (Some(step), _) => Next::Operation(step.operation),
            (None, End::Done) => Next::Nothing,
            (None, End::Failed(operation) | End::Waits { operation: Some(operation), .. }) => {
                Next::Operation(operation)
            }
            (None, End::Cut | End::Waits { operation: None, .. }) => Next::Unknown,
        }
    }
}
