//! The board: groups of candidates of a trace that fits no window, and what has become of each.
//!
//! A group is **confirmed** if it has a finding and **refuted** if each of its instances is. If an instance was asked about
//! and is neither, or if there are more than are looked at, it is **undecided**; if time ran out before, it was **not
//! examined**. These two are counted and shown.

use crate::asking::Key;
use crate::bug::BugKind;
use crate::prediction::Streamed;
use crate::undecided::Limit;
use portent_order::Goal;
use portent_trace::LocId;
use std::time::Instant;

/// Instances at the same places that no filter could refute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// One of the instances.
    pub goal: Goal,
    /// Source locations: race, the lower first; atomicity e1, f, e2; deadlock, the cycle from its least rotation; lost
    /// wake-up wake, notify, sleep.
    pub places: Vec<LocId>,
}

/// What is known of a group that has no finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It was not asked about.
    Open,
    /// Every instance is impossible.
    Refuted,
    /// It was asked about in vain, for lack of that.
    Undecided(Limit),
}

/// Candidates at the same places.
pub(crate) struct OpenGroup {
    pub(crate) candidate: Candidate,
    pub(crate) kind: BugKind,
    pub(crate) key: Key,
    /// Instances to ask about, the best first.
    pub(crate) instances: Vec<Goal>,
    /// Whether there may be other instances.
    pub(crate) more: bool,
    pub(crate) state: State,
}

impl OpenGroup {
    pub(crate) fn new(candidate: Candidate, key: Key) -> Self {
        let kind = BugKind::of(&candidate.goal);
        OpenGroup { candidate, kind, key, instances: Vec::new(), more: true, state: State::Open }
    }
}

/// All groups.
#[derive(Default)]
pub(crate) struct Board {
    pub(crate) groups: Vec<OpenGroup>,
    /// For each kind, whether the groups are all there are.
    pub(crate) complete: [bool; BugKind::ALL.len()],
    pub(crate) streamed: Streamed,
    /// Since when its groups are asked about.
    pub(crate) asked_since: Option<Instant>,
}
