//! What is left out, by arithmetic: how many candidates the windows hold and how many fit in none.

use crate::bug::BugKind;
use crate::facts::Facts;
use crate::finding::{Incomplete, Status, Why};
use crate::pane::Pane;
use crate::{atomicity, deadlock, nondeterminism, race};

/// How many candidates of a kind a trace has.
pub(crate) struct Left {
    pub(crate) all: u128,
    /// Whether all were counted.
    pub(crate) exact: bool,
}

impl Left {
    pub(crate) fn of(facts: &Facts<'_>, kind: BugKind) -> Left {
        let (whole, range) = (Pane::whole(facts), 0..facts.trace.len());
        let (all, exact) = match kind {
            BugKind::Race => (race::count(&whole, range), true),
            BugKind::Deadlock => {
                let (cycles, complete) = deadlock::count(&whole, range);
                (cycles + deadlock::count_waits(&whole), complete)
            }
            BugKind::Atomicity => (atomicity::count(&whole, range), true),
            BugKind::Nondeterminism => {
                (nondeterminism::count_pairs(&whole, range) + nondeterminism::count_single(&whole), true)
            }
            BugKind::Property => (0, true),
        };
        Left { all, exact }
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
        Incomplete {
            kind,
            status: Status::NotExamined,
            events: None,
            count,
            groups: false,
            at_least: !self.exact,
            why,
            what,
        }
    }
}
