//! What is not known: candidates that were neither shown nor refuted, and why.

use crate::bug::{BugKind, Place};
use portent_order::Unknown;
use portent_trace::Names;

/// Why something was not examined, or not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// Time or search effort ran out.
    Budget,
    /// It needs more than one question of a longer trace may take.
    Window(Limit),
    /// The user stopped it.
    Interrupted,
    /// A level of the lattice was too wide.
    Width,
    /// A value that decides is not in the trace.
    Values,
    /// Branches that were not taken the other way: more than are tried.
    Branches,
}

impl Why {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Why::Budget => "budget",
            Why::Window(_) => "window",
            Why::Interrupted => "interrupted",
            Why::Width => "width",
            Why::Values => "values",
            Why::Branches => "branches",
        }
    }

    /// The order of the reports: limits of one question are not told apart.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Why::Budget => 0,
            Why::Window(_) => 1,
            Why::Interrupted => 2,
            Why::Width => 3,
            Why::Values => 4,
            Why::Branches => 5,
        }
    }
}

/// What one question may take, and what there was not enough of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Events of the trace that are looked at.
    Reach,
    /// Instances of a group that are asked about.
    Tries,
    /// Steps of the search.
    Effort,
}

impl Limit {
    /// Why the engine did not decide.
    pub(crate) fn of(why: Unknown) -> Limit {
        match why {
            Unknown::Window | Unknown::Values => Limit::Reach,
            Unknown::Conflicts | Unknown::Deadline | Unknown::Stalled => Limit::Effort,
        }
    }
}

/// What is known of candidates that were neither shown nor refuted.
///
/// *Refuted* is a word for proofs that hold for the whole trace; see docs/src/explanation/limits.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// They were asked about, and there was no answer within the bounds.
    Undecided,
    /// They were not asked about.
    NotExamined,
}

impl Status {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Undecided => "undecided",
            Status::NotExamined => "not_examined",
        }
    }
    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Status::Undecided => "undecided",
            Status::NotExamined => "not examined",
        }
    }
}

/// Candidates whose verdict is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Of which kind.
    pub kind: BugKind,
    /// What is known of them.
    pub status: Status,
    /// The input events, if it is one candidate.
    pub events: Option<Vec<u32>>,
    /// How many candidates, or groups of candidates.
    pub count: u64,
    /// Whether `count` counts groups of candidates at the same places.
    pub groups: bool,
    /// Whether there may be more than `count`.
    pub at_least: bool,
    /// Why.
    pub why: Why,
    /// In words.
    pub what: String,
}

impl Incomplete {
    /// The entry for one candidate, by its places.
    pub(crate) fn at(kind: BugKind, places: &[Place], names: &Names, status: Status, why: Why) -> Incomplete {
        let text = |p: &Place| {
            p.location.map_or_else(|| format!("{} {}", p.op, p.object), |loc| names.location(loc).to_string())
        };
        let texts: Vec<String> = places.iter().map(text).collect();
        Incomplete {
            kind,
            status,
            events: Some(places.iter().filter_map(|p| p.event).collect()),
            count: 1,
            groups: false,
            at_least: false,
            why,
            what: format!("{} at {}", kind.name(), texts.join(" / ")),
        }
    }

    /// The entry for many of them.
    pub(crate) fn many(kind: BugKind, status: Status, count: u64, why: Why, what: String) -> Incomplete {
        Incomplete { kind, status, events: None, count, groups: false, at_least: false, why, what }
    }
}
