//! Violations of atomicity that happened: the observed order up to their last event shows them, and needs no engine.

use crate::facts::Facts;
use portent_order::{Goal, Model, Schedule};

/// The violations among these goals that happened, with the observed order up to their last event, checked.
pub(super) fn observed(facts: &Facts<'_>, model: Model, mut goals: Vec<Goal>) -> Vec<(Goal, Schedule)> {
    let end = |goal: &Goal| match *goal {
        Goal::Atomicity { first, remote, second } if first < remote && remote < second => Some(second.index() + 1),
        _ => None,
    };
    goals.retain(|goal| end(goal).is_some());
    goals.sort_by_key(end);
    let verdicts = facts.checker.check_observed(model, &goals);
    let mut found = Vec::new();
    for (goal, verdict) in goals.into_iter().zip(verdicts) {
        let (Some(end), Ok(())) = (end(&goal), verdict) else { continue };
        found.push((goal, Schedule::as_observed(end)));
    }
    found
}
