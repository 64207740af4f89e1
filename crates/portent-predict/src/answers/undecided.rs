//! What must be said of what is not known: candidates that were not examined, and groups that stay open.

use crate::board::State;
use crate::bug::BugKind;
use crate::examination::Examination;
use crate::facts::Facts;
use crate::kinds;
use crate::undecided::{Incomplete, Limit, Status, Why};
use portent_order::Goal;

/// Undecided groups of a kind that are shown one by one.
const LISTED: usize = 20;

/// The entry for one candidate that was asked about without an answer.
pub(super) fn undecided(facts: &Facts<'_>, goal: &Goal, why: Why) -> Incomplete {
    let (places, names) = (kinds::places(facts, goal), facts.trace.names());
    Incomplete::at(BugKind::of(goal), &places, names, Status::Undecided, why)
}

/// Of a trace that fits a window: the candidates that were not come to, by arithmetic.
pub(super) fn of_window(examination: &mut Examination<'_, '_>, done: &[u64; BugKind::ALL.len()]) {
    let (stopped, wanted) = (examination.stop.why(), &examination.options.kinds);
    for kind in kinds::ALL.iter().filter(|kind| wanted.contains(&kind.kind)) {
        let (all, exact) = (kind.count)(examination.facts);
        let missed = all.saturating_sub(u128::from(done[kind.kind as usize]));
        if missed == 0 && exact {
            continue;
        }
        let why = stopped.unwrap_or(Why::Budget);
        let when = if why == Why::Interrupted { "before the interruption" } else { "within the budget" };
        let what = format!("{} candidates not examined {when}", kind.kind.name());
        let count = u64::try_from(missed).unwrap_or(u64::MAX);
        let prediction = &mut examination.prediction;
        prediction.partial = prediction.partial.or(stopped);
        prediction.incomplete.push(Incomplete {
            at_least: !exact,
            ..Incomplete::many(kind.kind, Status::NotExamined, count, why, what)
        });
    }
}

/// Of a longer trace: the groups on the board that are neither shown nor refuted.
pub(super) fn of_board(examination: &mut Examination<'_, '_>) {
    let found = examination.found();
    let board = &mut examination.board;
    let mut undecided: Vec<(Goal, Limit)> = Vec::new();
    let mut not_examined: Vec<Goal> = Vec::new();
    for group in &board.groups {
        let instance = || group.instances.first().unwrap_or(&group.candidate.goal).clone();
        match group.state {
            _ if found.contains(&group.key) => board.streamed.confirmed += 1,
            State::Refuted => board.streamed.refuted += 1,
            State::Undecided(limit) => undecided.push((instance(), limit)),
            State::Open => not_examined.push(instance()),
        }
    }
    board.streamed.undecided = undecided.len() as u64;
    board.streamed.not_examined = not_examined.len() as u64;
    board.streamed.time = board.asked_since.map_or_else(Default::default, |since| since.elapsed());
    let why = examination.stop.why();
    let mut incomplete = Vec::new();
    for kind in BugKind::ALL.into_iter().filter(|&kind| examination.wants(kind)) {
        let mut of_kind = undecided.iter().filter(|(goal, _)| BugKind::of(goal) == kind);
        for (goal, limit) in of_kind.by_ref().take(LISTED) {
            let entry = self::undecided(examination.facts, goal, Why::Window(*limit));
            incomplete.push(Incomplete { groups: true, ..entry });
        }
        let groups = |status, count, why, what: String| Incomplete {
            groups: true,
            ..Incomplete::many(kind, status, count, why, what)
        };
        let mut limits = of_kind.map(|(_, limit)| *limit);
        if let Some(limit) = limits.next() {
            let what = format!("more groups of {} candidates that were neither shown nor refuted", kind.name());
            let count = 1 + limits.count() as u64;
            incomplete.push(groups(Status::Undecided, count, Why::Window(limit), what));
        }
        let left = not_examined.iter().filter(|goal| BugKind::of(goal) == kind).count() as u64;
        let all = examination.board.complete[kind as usize];
        if left > 0 || !all {
            let not_told = if all { "" } else { " or not told apart" };
            let what = format!("groups of {} candidates that were not examined{not_told}", kind.name());
            let why = why.unwrap_or(Why::Window(Limit::Tries));
            incomplete.push(Incomplete { at_least: !all, ..groups(Status::NotExamined, left, why, what) });
        }
    }
    let prediction = &mut examination.prediction;
    prediction.partial = prediction.partial.or(why.filter(|_| !incomplete.is_empty()));
    prediction.incomplete.extend(incomplete);
    prediction.open.extend(undecided.into_iter().map(|(goal, _)| goal).chain(not_examined));
    prediction.stats.streamed = Some(examination.board.streamed);
}
