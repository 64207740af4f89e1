//! The streaming pass: groups of candidates onto the board, with the best instance of each; and what was observed.

use super::candidates_until;
use super::happened::observed;
use super::instances::best_instances;
use crate::board::{Board, Candidate, OpenGroup, State};
use crate::examination::{Examination, Pass};
use crate::facts::Facts;
use crate::kinds;
use crate::prediction::Streamed;
use portent_order::{Goal, Model};
use std::time::Instant;

/// Events between which instances are as good as any: what a question costs grows much faster than its distance, and the first
/// slices that questions are asked of are so long.
const NEAR: usize = 256;

/// Names every group of candidates that there can be at all.
pub(crate) struct Streaming;

impl<'a, 't> Pass<'a, 't> for Streaming {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let facts = examination.facts;
        let stop = || examination.stop.why().is_some();
        let found = candidates_until(facts.trace, &examination.options.kinds, &stop);
        let group = |candidate: Candidate| {
            let key = kinds::key(facts, &candidate.goal);
            OpenGroup::new(candidate, key)
        };
        examination.board = Board {
            groups: found.groups.into_iter().map(group).collect(),
            complete: found.complete,
            streamed: Streamed { figures: found.figures, ..Streamed::default() },
            asked_since: Some(Instant::now()),
        };
    }
}

/// Looks for the best instance of each group, and shows those that happened.
pub(crate) struct BestInstances;

impl<'a, 't> Pass<'a, 't> for BestInstances {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        seek(examination);
        // Violations that happened need no engine.
        let open = examination.still_open();
        let best = |&g: &usize| examination.board.groups[g].instances.first().cloned();
        let best: Vec<Goal> = open.iter().filter_map(best).collect();
        let found = observed(examination.facts, examination.options.model, best);
        examination.take(found, Vec::new());
    }
}

/// The best instance of each candidate in a model, where there is one; `None` if told to stop.
pub(crate) fn best_of(
    facts: &Facts<'_>,
    model: Model,
    candidates: &[Candidate],
    near: usize,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<Option<Goal>>> {
    let best = best_instances(facts, model, candidates, near, stop)?;
    Some(best.iter().map(|best| best.goal().cloned()).collect())
}

fn seek(examination: &mut Examination<'_, '_>) {
    let groups = &examination.board.groups;
    let is_wait = |g: usize| matches!(groups[g].candidate.goal, Goal::LostWakeup { .. });
    let open: Vec<usize> = (0..groups.len()).filter(|&g| !is_wait(g)).collect();
    let candidates: Vec<Candidate> = open.iter().map(|&g| groups[g].candidate.clone()).collect();
    let stop = || examination.stop.why().is_some();
    let near = NEAR.min(examination.options.window.max(2) / 2);
    let found = best_instances(examination.facts, examination.options.model, &candidates, near, &stop);
    let Some(found) = found else { return };
    for (g, best) in open.into_iter().zip(found) {
        let group = &mut examination.board.groups[g];
        group.state = if best.is_none() { State::Refuted } else { State::Open };
        group.instances = best.goal().cloned().into_iter().collect();
    }
}
