//! What is still to be asked, and in which order.
//!
//! `pair`: the least seen pair of a place in the code and an outcome first, then histories that nobody has seen, then the
//! oldest. Counts are per place, so that threads that run the same code share them. A goal whose pair has been seen meanwhile
//! goes back into the queue when its turn comes.

use crate::histories::{Histories, Node};
use crate::subject::{Operation, Seen};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// "In this run, can this operation have another outcome, in a cut that no run covers?"
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Goal {
    /// The run.
    pub run: usize,
    /// The thread, by its number.
    pub thread: usize,
    /// Which of its operations; the number of them all for what it wanted to do at the end.
    pub at: usize,
    /// The outcome.
    pub seen: Seen,
}

/// The lower, the sooner: how often the pair was seen, whether the history is known, how old it is.
type Rank = (u32, bool, u64);

/// The queue of goals.
#[derive(Debug, Default)]
pub(crate) struct Goals {
    queue: BinaryHeap<Reverse<(Rank, Goal)>>,
    pairs: FxHashMap<(u64, u32, Seen), u32>,
    made: u64,
}

impl Goals {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Notes that a run has shown pairs of a place and an outcome; each counts once per run.
    pub(crate) fn note(&mut self, pairs: impl Iterator<Item = (Operation, Seen)>) {
        let mut pairs: Vec<_> = pairs.map(|(operation, seen)| pair(operation, seen)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        for pair in pairs {
            *self.pairs.entry(pair).or_default() += 1;
        }
    }

    /// Adds a goal about an operation after a history.
    pub(crate) fn push(&mut self, goal: Goal, operation: Operation, node: Node, known: &Histories) {
        self.made += 1;
        self.push_again(goal, self.made, operation, node, known);
    }

    /// Adds a goal that is as old as this.
    pub(crate) fn push_again(&mut self, goal: Goal, age: u64, operation: Operation, node: Node, known: &Histories) {
        let rank = self.rank(goal, operation, node, known, age);
        self.queue.push(Reverse((rank, goal)));
    }

    /// The best goal, and its age; `about` gives the operation of a goal and the history before it.
    pub(crate) fn pop(&mut self, known: &Histories, about: impl Fn(Goal) -> (Operation, Node)) -> Option<(Goal, u64)> {
        loop {
            let Reverse((rank, goal)) = self.queue.pop()?;
            let (operation, node) = about(goal);
            let now = self.rank(goal, operation, node, known, rank.2);
            if now <= rank || self.queue.peek().is_none_or(|Reverse((best, _))| now <= *best) {
                return Some((goal, rank.2));
            }
            self.queue.push(Reverse((now, goal)));
        }
    }

    fn rank(&self, goal: Goal, operation: Operation, node: Node, known: &Histories, age: u64) -> Rank {
        let count = self.pairs.get(&pair(operation, goal.seen)).copied().unwrap_or(0);
        (count, known.through(node, goal.seen).is_some(), age)
    }
}

fn pair(operation: Operation, seen: Seen) -> (u64, u32, Seen) {
    (operation.place, operation.kind, seen)
}
