//! Findings: what is reported about a bug.

use crate::asking::Flags;
use crate::bug::{BugKind, Place};
use crate::kinds::Bug;
use crate::steps::Steps;
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

/// A schedule that shows a finding, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Kernel steps, for replay and for checking again.
    pub schedule: Schedule,
    /// The same in input events.
    pub steps: Steps,
}

impl Witness {
    /// How many input events it executes.
    pub fn events(&self) -> u64 {
        self.steps.events()
    }
    /// How often one thread makes way for another.
    pub fn switches(&self) -> usize {
        self.steps.switches()
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
    /// The id of a failure: by what is the same whenever it is seen, told from those that are taken.
    pub fn failure_id(identity: &str, is_taken: impl Fn(&str) -> bool) -> String {
        id(BugKind::Failure, [identity], is_taken)
    }
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

/// A kind and a hash of texts; longer, then numbered, where that is taken.
pub(crate) fn id<'a>(
    kind: BugKind,
    texts: impl IntoIterator<Item = &'a str>,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in texts.into_iter().flat_map(|text| text.bytes().chain([0x1e])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let (kind, digits) = (kind.document_name(), format!("{hash:016x}"));
    let longer = (6..=16).map(|n| format!("{kind}-{}", &digits[..n]));
    // Sixteen digits taken: places that look the same in text.
    let numbered = (2..).map(|again: u32| format!("{kind}-{digits}-{again}"));
    longer.chain(numbered).find(|id| !is_taken(id)).unwrap_or_default()
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
