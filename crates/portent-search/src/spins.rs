//! Loops that only look: what is known of them.
//!
//! An iteration that changes nothing and leaves its thread as it was is as good as none. So a thread whose next operation would complete
//! one that is equal to the one before waits until it can see something else: whoever makes runs sees to that, and takes back what
//! a thread did that went round more often ([`Run::spins`] says which iterations there are); and nobody asks whether it could do so.
//! **Why nothing is lost**: of any run, the run without the second of two such iterations is a run, too, and ends in the same state.
//! In a run without any, a thread that waits so goes on with another outcome.

use crate::subject::{Operation, Run, Seen, Step};
use rustc_hash::{FxBuildHasher, FxHashSet};
use std::collections::BTreeSet;
use std::hash::BuildHasher;

/// Iterations that change nothing, wherever one begins with them.
#[derive(Debug, Default)]
pub struct Spins {
    known: FxHashSet<(usize, u64)>,
    lengths: BTreeSet<usize>,
}

impl Spins {
    /// Takes in what a run shows.
    pub(crate) fn learn(&mut self, run: &Run) {
        for iteration in run.spins.iter().filter(|iteration| !iteration.is_empty()) {
            let hashes = iteration.iter().map(|&(operation, seen)| hash(operation, seen));
            self.known.insert((iteration.len(), sum(hashes)));
            self.lengths.insert(iteration.len());
        }
    }

    /// Whether an operation with this outcome would complete an iteration equal to the one before.
    pub(crate) fn completes(&self, before: &[Step], operation: Operation, seen: Seen) -> bool {
        self.lengths.iter().any(|&length| self.completes_one(before, length, operation, seen))
    }

    /// What the operation sees as long as the thread spins, and how long an iteration is; `None` if it does not.
    pub(crate) fn sees(&self, before: &[Step], operation: Operation) -> Option<(Seen, usize)> {
        self.lengths.iter().find_map(|&length| {
            let seen = before.get(before.len().checked_sub(length)?)?.seen;
            self.completes_one(before, length, operation, seen).then_some((seen, length))
        })
    }

    fn completes_one(&self, before: &[Step], length: usize, operation: Operation, seen: Seen) -> bool {
        let Some(first) = (before.len() + 1).checked_sub(2 * length) else { return false };
        let (one, rest) = before[first..].split_at(length);
        let known = || self.known.contains(&(length, sum(one.iter().map(|step| hash(step.operation, step.seen)))));
        let same = |(a, b): (&Step, &Step)| (a.operation, a.seen) == (b.operation, b.seen);
        let last = one[length - 1];
        (last.operation, last.seen) == (operation, seen) && one.iter().zip(rest).all(same) && known()
    }
}

fn hash(operation: Operation, seen: Seen) -> u64 {
    FxBuildHasher.hash_one((operation, seen))
}

/// The same for every place to begin with.
fn sum(hashes: impl Iterator<Item = u64>) -> u64 {
    hashes.fold(0, u64::wrapping_add)
}
