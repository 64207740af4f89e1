//! Shapes of witnesses: where the write that a read saw in the trace comes in a witness in which it sees another.

use crate::facts::Facts;
use portent_order::{Goal, GoesOn, Model, Schedule, Writer};
use portent_trace::EventId;

/// The shapes that Sinha et al. tell apart: a read r of write w, and a challenger c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessType {
    /// c → r → w: the witness can go on to w.
    ReadBeforeWrite,
    /// w → c → r
    Overwritten,
    /// c → r, and w does not happen.
    WithoutWrite,
}

impl WitnessType {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            WitnessType::ReadBeforeWrite => "c-r-w",
            WitnessType::Overwritten => "w-c-r",
            WitnessType::WithoutWrite => "c-r",
        }
    }
}

/// The shape of a witness: where the write that the read saw in the trace comes in it.
pub(super) fn shape(facts: &Facts<'_>, model: Model, goal: &Goal, read: EventId, witness: &Schedule) -> WitnessType {
    let Writer::Event(seen) = facts.saw(read) else { return WitnessType::Overwritten };
    match facts.checker.goes_on(model, goal, witness, seen) {
        Some(GoesOn::WasThere) => WitnessType::Overwritten,
        Some(GoesOn::GetsThere) => WitnessType::ReadBeforeWrite,
        Some(GoesOn::DoesNot) | None => WitnessType::WithoutWrite,
    }
}
