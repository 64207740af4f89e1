//! A search for all behaviours as it is kept, to go on with it later: who ran when, in each of its runs.
//!
//! Nothing that the runs showed is kept. They are made again, so that what is known always follows from what the program does
//! now; that takes a fraction of the time in which they were found. What is kept of the first run is a mark by which it is seen
//! that the program still does the same.

use portent_search::{Plan, Run};
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};
use std::hash::BuildHasher;

/// A search for all behaviours, as far as it got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSearch {
    /// What the first run did.
    first: String,
    /// The plans of all runs after it.
    runs: Vec<SavedRun>,
}

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedRun {
    /// The run whose operations are counted, by its number.
    like: usize,
    seed: u64,
    /// Threads by their numbers, each with how many operations it executes, one after the other.
    turns: Vec<(usize, usize)>,
}

impl SavedSearch {
    /// How many runs it has made.
    pub fn runs(&self) -> usize {
        self.runs.len() + usize::from(!self.first.is_empty())
    }

    /// Whether it can be one: each run is like one before it.
    pub fn is_sound(&self) -> bool {
        let all = self.runs.iter().flat_map(|run| &run.turns).map(|(_, times)| times);
        !self.first.is_empty()
            && self.runs.iter().enumerate().all(|(at, run)| run.like <= at)
            && all.copied().try_fold(0_usize, usize::checked_add).is_some_and(|turns| turns < 1 << 32)
    }

    /// Notes a run; the first by what it did.
    pub(super) fn add(&mut self, plan: &Plan, run: &Run) {
        match plan.like {
            None => self.first = mark(run),
            Some(like) => {
                let mut turns: Vec<(usize, usize)> = Vec::new();
                for &turn in &plan.turns {
                    match turns.last_mut() {
                        Some((thread, times)) if *thread == turn => *times += 1,
                        _ => turns.push((turn, 1)),
                    }
                }
                self.runs.push(SavedRun { like, seed: plan.seed, turns });
            }
        }
    }

    /// Whether the program still does what it did first.
    pub(super) fn begins_like(&self, run: &Run) -> bool {
        self.first == mark(run)
    }

    /// The plans of all runs, the first included.
    pub(super) fn plans(&self) -> Vec<Plan> {
        let turns =
            |run: &SavedRun| run.turns.iter().flat_map(|&(thread, times)| std::iter::repeat_n(thread, times)).collect();
        let plan = |run: &SavedRun| Plan { like: Some(run.like), seed: run.seed, turns: turns(run), ..Plan::default() };
        std::iter::once(Plan::default()).chain(self.runs.iter().map(plan)).collect()
    }
}

/// What the threads of a run did, whatever they saw: values may be addresses.
fn mark(run: &Run) -> String {
    let done = run.threads.iter().map(|history| {
        let steps = history.iter().flat_map(|history| &history.steps).map(|step| step.operation);
        steps.map(|operation| (operation.place, operation.kind, operation.object)).collect::<Vec<_>>()
    });
    format!("{:016x}", FxBuildHasher.hash_one(done.collect::<Vec<_>>()))
}
