//! What is left out, by arithmetic: how many candidates the windows hold and how many fit in none.

use crate::facts::Facts;
use crate::finding::{BugKind, Incomplete, Why};
use crate::pane::Pane;
use crate::{atomicity, deadlock, nondeterminism, race};

/// The spans of the windows, as the engine cuts them.
pub(crate) fn spans(events: usize, window: usize) -> Vec<std::ops::Range<usize>> {
    let len = window.max(2);
    let mut spans = Vec::new();
    let mut first = 0;
    loop {
        spans.push(first..(first + len).min(events));
        if first + len >= events {
            return spans;
        }
        first += len / 2;
    }
}

/// How many candidates of a kind the windows hold, and how many fit in none.
pub(crate) struct Left {
    pub(crate) inside: u128,
    pub(crate) outside: u128,
    /// Whether all were counted.
    pub(crate) exact: bool,
}

impl Left {
    pub(crate) fn of(facts: &Facts<'_>, kind: BugKind, window: usize) -> Left {
        let whole = Pane::whole(facts);
        let all = 0..facts.trace.len();
        let mut exact = true;
        let mut count = |pane: &Pane<'_, '_>, range: std::ops::Range<usize>| match kind {
            BugKind::Race => race::count(pane, range),
            BugKind::Deadlock => {
                let (cycles, complete) = deadlock::count(pane, range);
                exact &= complete;
                cycles
            }
            BugKind::Atomicity => atomicity::count(pane, range),
            BugKind::Nondeterminism => nondeterminism::count_pairs(pane, range),
            BugKind::Property => 0,
        };
        let mut inside = 0u128;
        let mut fresh = 0;
        for span in spans(facts.trace.len(), window) {
            let pane = Pane { facts, fresh, span: span.clone(), hindsight: None };
            fresh = span.end;
            let both = count(&pane, span.clone()).saturating_sub(count(&pane, pane.stale()));
            inside += both
                + match kind {
                    BugKind::Deadlock => deadlock::count_waits(&pane),
                    BugKind::Nondeterminism => nondeterminism::count_single(&pane),
                    _ => 0,
                };
        }
        let total = count(&whole, all)
            + match kind {
                BugKind::Deadlock => facts.trace.pairings().len() as u128,
                BugKind::Nondeterminism => nondeterminism::count_single_everywhere(facts),
                _ => 0,
            };
        Left { inside, outside: total.saturating_sub(inside), exact }
    }

    pub(crate) fn entry(&self, kind: BugKind, count: u128, why: Why) -> Incomplete {
        let what = match why {
            Why::Window => format!("{} candidates whose events fit in no window", kind.name()),
            Why::Budget | Why::Width | Why::Values | Why::Branches => {
                format!("{} candidates not examined within the budget", kind.name())
            }
            Why::Interrupted => format!("{} candidates not examined before the interruption", kind.name()),
        };
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        Incomplete { kind, events: None, count, groups: false, at_least: !self.exact, why, what }
    }
}
