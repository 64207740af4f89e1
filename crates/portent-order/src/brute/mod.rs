//! The oracle: decides goals by enumerating reorderings. Exact, slow, and as close to docs/src/internals/semantics.md §2 and §3
//! as code can be.
//!
//! Good for about 14 events and 4 threads. States are memoised on what the future depends on: the position of every
//! thread, the last write of every variable, for every condition whom its notifies may have woken, and a bit of
//! goal progress. Nothing here is shared with the engines or with the checker, but the names of the rules for reads
//! ([`crate::ReadRule`]).
//!
//! Where values are compared, who waits for a lock, a token, a semaphore or a notify is the same as in `sync`.

mod candidates;
mod divergence;
mod enumerate;
mod oracle;
mod search;
mod values;

pub use candidates::candidates;
pub use divergence::{divergences, diverges};
pub use enumerate::{Word, complete_runs, count_cuts, count_prefixes, longest_for_property, longest_reorderings};

use crate::goal::{Goal, Model, Schedule, Writer};
use oracle::Oracle;
use portent_trace::{EventId, Trace};
use search::Wanted;

/// A reordering that reaches the goal, or `None` if there is none.
pub fn decide(trace: &Trace, model: Model, goal: &Goal) -> Option<Schedule> {
    let oracle = Oracle::new(trace, model);
    let read_too = match goal {
        Goal::Nondeterminism { read, .. } => Some(trace.thread(*read)),
        _ => None,
    };
    let path = oracle.search(&Wanted::Goal(goal))?;
    Some(path.into_iter().chain(read_too).collect())
}

/// The shapes that Sinha et al. tell apart: a read `r` of write `w`, and a challenger `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessType {
    /// c → r → w
    ReadBeforeWrite,
    /// w → c → r
    Overwritten,
    /// c → r, and w does not happen
    WithoutWrite,
}

/// Whether a reordering of that shape exists in which the read, last of its thread, does not see `w`.
pub fn has_witness_type(trace: &Trace, model: Model, read: EventId, challenger: Writer, shape: WitnessType) -> bool {
    if challenger == Writer::Init && shape == WitnessType::Overwritten {
        return false; // Nothing comes before INIT.
    }
    Oracle::new(trace, model).search(&Wanted::Shape { read, challenger, shape }).is_some()
}

/// Whether some reordering ends, before every thread has, in a state where nothing is enabled.
pub fn gets_stuck(trace: &Trace, model: Model) -> bool {
    Oracle::new(trace, model).search(&Wanted::Stuck).is_some()
}
