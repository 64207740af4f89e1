//! The answer to a request: what was found, what is not known, and what it cost.

use crate::bug::BugKind;
use crate::finding::{Finding, MayRead};
use crate::kinds::PropertyTold;
use crate::undecided::{Incomplete, Status, Why};
use portent_order::Goal;
use portent_order::engine::Tiers;
use std::time::Duration;

/// What a pass over the events did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Kernel events.
    pub events: u64,
    /// Different sets of held locks with their histories.
    pub lock_states: u64,
    /// Different combinations of variable, places and lock state, and of acquires.
    pub keys: u64,
    /// Groups of candidates, by [`BugKind`](crate::BugKind).
    pub groups: [u64; BugKind::ALL.len()],
    /// What was not told apart for lack of room, and may hide candidates.
    pub dropped: u64,
    /// How long it took.
    pub time: Duration,
}

/// What the streaming tier did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streamed {
    /// What the pass over the events did.
    pub figures: Figures,
    /// Groups of candidates that the order engine found feasible.
    pub confirmed: u64,
    /// Groups that are proven to be impossible.
    pub refuted: u64,
    /// Groups that were asked about and are neither.
    pub undecided: u64,
    /// Groups that were not asked about, for lack of time.
    pub not_examined: u64,
    /// Questions about instances.
    pub asked: u64,
    /// How long finding instances and asking about them took.
    pub time: Duration,
}

/// What the prediction cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// What the engine's tiers did.
    pub tiers: Tiers,
    /// Events that were left out, since no two threads contend for what they access.
    pub unshared: u64,
    /// Windows examined.
    pub windows: u64,
    /// Windows the trace has.
    pub windows_in_all: u64,
    /// Candidates decided or dismissed.
    pub candidates: u64,
    /// Of these, not asked about because their group had enough instances.
    pub spared: u64,
    /// What the streaming tier did, for traces longer than a window.
    pub streamed: Option<Streamed>,
    /// How long it took.
    pub time: Duration,
}

impl Prediction {
    /// What there is to say where there was no time to look at anything.
    pub fn not_examined(kinds: &[BugKind], why: Why) -> Prediction {
        let when = if why == Why::Interrupted { "before the interruption" } else { "within the budget" };
        let entry = |&kind: &BugKind| {
            let what = format!("{} candidates not examined {when}", kind.name());
            Incomplete { at_least: true, ..Incomplete::many(kind, Status::NotExamined, 0, why, what) }
        };
        let incomplete = kinds.iter().map(entry).collect();
        Prediction { incomplete, partial: Some(why), ..Prediction::default() }
    }
}

/// What was found, and what is not known.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// The bugs, in order of kind and place.
    pub findings: Vec<Finding>,
    /// What was not examined or not decided.
    pub incomplete: Vec<Incomplete>,
    /// An instance of each group of a trace longer than a window that `incomplete` counts.
    pub open: Vec<Goal>,
    /// Why it stopped before the end, if it did.
    pub partial: Option<Why>,
    /// Where the values of reads may come from, by source location.
    pub may_read: Vec<MayRead>,
    /// What came of each property.
    pub properties: Vec<PropertyTold>,
    /// Errors of the engine itself: witnesses that the checker refused. They are not among the findings.
    pub errors: Vec<String>,
    /// What it cost.
    pub stats: Stats,
}
