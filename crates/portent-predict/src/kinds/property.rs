//! Properties: what the user says must not happen, and how a run breaks it. `properties` looks for such runs.

use crate::bug::{Severity, Words};
use crate::lattice::Explored;
use portent_order::Model;
use portent_trace::EventId;

pub(super) const WORDS: Words = Words {
    title: "property violation",
    rule: "property",
    identifier: "PropertyViolation",
    meaning: "Some schedule of the threads breaks a property that was stated about values or events.",
    severity: Severity::Error,
};

/// A property that a run breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violated {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub text: String,
    /// How the run breaks it, in sentences: which values, at which step, in which thread.
    pub explanation: String,
    /// The property as a file of its own, with the initial values it was given.
    pub source: String,
    /// What the property saw last before it was broken, in the order of the witness.
    pub saw: Vec<EventId>,
    /// Whether the violation rests on initial values that nothing in the trace shows.
    pub assumes: Vec<String>,
}

/// What came of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyVerdict {
    /// Every reordering was examined, and none breaks it.
    Holds,
    /// Some reordering breaks it.
    Broken,
    /// None was found, but not all were examined.
    Incomplete,
    /// A value that the trace does not carry decides.
    Unknown,
}

impl PropertyVerdict {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            PropertyVerdict::Holds => "holds",
            PropertyVerdict::Broken => "violated",
            PropertyVerdict::Incomplete => "incomplete",
            PropertyVerdict::Unknown => "unknown",
        }
    }
}

/// What there is to say about a property of one trace.
#[derive(Clone, Debug)]
pub struct PropertyTold {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub text: String,
    /// In which model.
    pub model: Model,
    /// What came of it.
    pub verdict: PropertyVerdict,
    /// In a sentence, without the name.
    pub sentence: String,
    /// Assumptions, and what was not known.
    pub notes: Vec<String>,
    /// Reorderings of the trace in which every thread does all it did or, in `reads`, stops at a read that the property
    /// sees and that sees another write; where they could be counted.
    pub runs: Option<u128>,
    /// Cuts of these reorderings, where they could be counted.
    pub cuts: Option<u64>,
    /// What exploring cost and left out.
    pub explored: Explored,
}
