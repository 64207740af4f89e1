//! Findings: what is reported about a bug.

use crate::bug::{Bug, BugKind, Deadlock, Place};
use crate::facts::Facts;
use crate::{atomicity, deadlock, nondeterminism, race};
use portent_order::{Goal, Model, Schedule};
use portent_trace::{EventId, LocId, Trace};
use std::sync::Arc;

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It happened in the recorded run.
    Observed,
    /// A witness was checked against the trace.
    Predicted,
}

impl Evidence {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Observed => "observed",
            Evidence::Predicted => "predicted",
        }
    }
}

/// What is worth knowing about all instances of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// A happens-before detector that watched the recorded run would have stayed silent (races).
    pub beyond_hb: bool,
    /// The two accesses are ordered by nothing but relaxed atomics (races).
    pub relaxed_only: bool,
    /// The other value is equal to the one that was read (nondeterminism).
    pub same_value: bool,
    /// Both accesses hold a common lock: the order is open, but not by accident (nondeterminism).
    pub under_lock: bool,
    /// A branch of the recorded run must go the other way first.
    pub needs_other_branch: bool,
}

impl Flags {
    /// The names of the flags that are set.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [
            ("beyond_hb", self.beyond_hb),
            ("relaxed_only", self.relaxed_only),
            ("same_value", self.same_value),
            ("under_lock", self.under_lock),
            ("needs_other_branch", self.needs_other_branch),
        ]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
    }
    /// What holds of both.
    pub(crate) fn and(self, other: Flags) -> Flags {
        Flags {
            beyond_hb: self.beyond_hb && other.beyond_hb,
            relaxed_only: self.relaxed_only && other.relaxed_only,
            same_value: self.same_value && other.same_value,
            under_lock: self.under_lock && other.under_lock,
            needs_other_branch: self.needs_other_branch && other.needs_other_branch,
        }
    }
}

/// A schedule that shows a finding, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Kernel steps, for replay and for checking again.
    pub schedule: Schedule,
    /// The same in input events.
    pub steps: Vec<crate::steps::Step>,
}

impl Witness {
    /// How many input events it executes.
    pub fn events(&self) -> u64 {
        self.steps.iter().map(|step| step.events).sum()
    }
    /// How often one thread makes way for another.
    pub fn switches(&self) -> usize {
        self.steps.len().saturating_sub(1)
    }
}

/// A bug, with everything that reports say about it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Kind and hash of the places: the same from run to run.
    pub id: String,
    /// What it is: the events of its first instance, and what its kind says of them.
    pub bug: Bug,
    /// How sure it is.
    pub evidence: Evidence,
    /// In which model it was found; `None` for happens-before findings.
    pub model: Option<Model>,
    /// The variable, lock or condition it is about.
    pub object: String,
    /// How many tuples of events at the same source locations were found feasible.
    pub instances: u64,
    /// Whether that is all of them.
    pub instances_exact: bool,
    /// What holds of all instances.
    pub flags: Flags,
    /// How to make it happen; none for what was observed, but for properties.
    pub witness: Option<Witness>,
    /// The branch that must go the other way; kernel events and witness are then of its trace.
    pub other_branch: Option<OtherBranch>,
}

impl Finding {
    /// What kind of bug.
    pub fn kind(&self) -> BugKind {
        self.bug.kind()
    }
    /// The events of its first instance, in the order of the reports.
    pub fn places(&self) -> Vec<&Place> {
        self.bug.places()
    }
    /// What a schedule must reach to show its first instance; `None` if no goal says that.
    pub fn goal(&self) -> Option<Goal> {
        self.bug.goal()
    }
}

/// A branch that a finding needs to go another way than it did, and what makes it.
#[derive(Clone, Debug)]
pub struct OtherBranch {
    /// The trace in which it does. Its events from `first` on are the other side's, and came from no input event.
    pub trace: Arc<Trace>,
    /// The first event of the other side.
    pub first: usize,
    /// The branch, in both traces.
    pub branch: EventId,
    /// Which way it goes now.
    pub outcome: bool,
    /// Where the other side was seen: the input event of another branch. `None` if it was recorded with the branch.
    pub seen: Option<u32>,
    /// What the branch depends on.
    pub reads: Vec<Decisive>,
}

/// A read that a branch depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decisive {
    /// The read.
    pub read: EventId,
    /// What it saw in the trace.
    pub was: Option<i64>,
    /// What it sees now.
    pub is: Option<i64>,
}

/// Why something was not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// Time or search effort ran out.
    Budget,
    /// It needs more of the trace than is looked at for one question.
    Window,
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
            Why::Window => "window",
            Why::Interrupted => "interrupted",
            Why::Width => "width",
            Why::Values => "values",
            Why::Branches => "branches",
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

/// Where the value of a read location may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MayRead {
    /// The read.
    pub read: LocId,
    /// The writes it saw or could see.
    pub from: Vec<LocId>,
    /// Whether the initial value is among them.
    pub initial: bool,
}

/// The places of a goal, in the order of the reports.
pub(crate) fn places(facts: &Facts<'_>, goal: &Goal) -> Vec<Place> {
    match *goal {
        Goal::Race { first, second } => race::places(facts.trace, first, second).into(),
        Goal::Nondeterminism { read, challenger } => nondeterminism::read_places(facts, read, challenger).into(),
        Goal::FinalValue { variable, challenger } => nondeterminism::final_places(facts, variable, challenger).into(),
        Goal::Atomicity { first, remote, second } => atomicity::places(facts.trace, first, remote, second).into(),
        Goal::Deadlock { ref waiting } => deadlock::wait_places(facts.trace, waiting),
        Goal::LostWakeup { pairing } => deadlock::wakeup_places(facts.trace, pairing).into(),
    }
}

/// What a goal is once a schedule reaches it.
pub(crate) fn bug(facts: &Facts<'_>, model: Model, goal: &Goal, schedule: &Schedule) -> Bug {
    match *goal {
        Goal::Race { first, second } => race::bug(facts.trace, first, second),
        Goal::Nondeterminism { read, challenger } => {
            nondeterminism::changed_read(facts, read, challenger, nondeterminism::shape(facts, model, read, schedule))
        }
        Goal::FinalValue { variable, challenger } => nondeterminism::changed_end(facts, variable, challenger),
        Goal::Atomicity { first, remote, second } => atomicity::bug(facts.trace, first, remote, second),
        Goal::Deadlock { ref waiting } => {
            Bug::Deadlock(Deadlock::Cycle { waits: deadlock::wait_places(facts.trace, waiting) })
        }
        Goal::LostWakeup { pairing } => deadlock::lost_wakeup(facts.trace, pairing),
    }
}

/// The entry for one candidate, by its places.
pub(crate) fn whereabouts(facts: &Facts<'_>, goal: &Goal, status: Status, why: Why) -> Incomplete {
    let (kind, places, names) = (BugKind::of(goal), places(facts, goal), facts.trace.names());
    let text =
        |p: &Place| p.location.map_or_else(|| format!("{} {}", p.op, p.object), |loc| names.location(loc).to_string());
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
