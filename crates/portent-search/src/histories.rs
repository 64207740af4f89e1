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
    /// Adds a run: the nodes of each thread, from the root to its end. Nothing is added if a thread is not deterministic.
    pub(crate) fn add(&mut self, run: &Run) -> Result<Vec<Vec<Node>>, NotDeterministic> {
        for (thread, history) in run.threads.iter().enumerate() {
            if let Some(history) = history {
                self.fits(thread, history)?;
            }
        }
        let number = self.runs;
        self.runs += 1;
        let paths = run.threads.iter().enumerate().map(|(thread, history)| match history {
            Some(history) => self.insert(thread, history, number),
            None => vec![self.root(thread)],
        });
        Ok(paths.collect())
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

    /// Whether a history agrees with all that is known.
    fn fits(&self, thread: usize, history: &History) -> Result<(), NotDeterministic> {
        let Some(mut node) = self.roots.get(thread).copied() else { return Ok(()) };
        for after in 0..=history.steps.len() {
            let entry = &self.entries[node.0 as usize];
            let next = history.next(after);
            if entry.next != Next::Unknown && next != Next::Unknown && entry.next != next {
                return Err(NotDeterministic { thread, after });
            }
            let child = history.steps.get(after).and_then(|step| entry.children.get(&step.seen));
            let Some(&child) = child else { break };
            node = child;
        }
        Ok(())
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
            (None, End::Failed(operation) | End::Waits { operation, .. }) => Next::Operation(operation),
            (None, End::Cut) => Next::Unknown,
        }
    }
}
