//! Answers: what passes found and left open, put together.
//!
//! | file | what it makes |
//! |---|---|
//! | groups.rs | groups of all windows and passes as one; findings of them |
//! | whole.rs | witnesses in which wide accesses are in one piece |
//! | undecided.rs | what must be said of candidates and groups that are not known |
//! | ids.rs order.rs | what findings are called, and in which order they come |

mod groups;
mod ids;
mod order;
mod undecided;
mod whole;

pub(crate) use groups::{findings, merge};
pub use ids::FindingNames;
pub(crate) use ids::name_findings;
pub(crate) use order::sort_and_name;

use crate::asking::Key;
use crate::bug::BugKind;
use crate::examination::Examination;
use crate::prediction::Prediction;
use order::may_read;
use rustc_hash::FxHashSet;

/// Makes findings of what the passes so far have found, and says what they left open. The groups that have a finding.
pub(crate) fn settle(examination: &mut Examination<'_, '_>) -> FxHashSet<Key> {
    let fits = examination.fits();
    if !fits {
        undecided::of_board(examination);
    }
    let (mut groups, done) = merge(examination);
    if fits {
        undecided::of_window(examination, &done);
    } else {
        // A group that has a finding is not asked about again.
        groups.values_mut().for_each(|group| group.exact = false);
    }
    let known = groups.keys().cloned().collect();
    let (facts, model) = (examination.facts, examination.options.model);
    let prediction = &mut examination.prediction;
    prediction.stats.candidates = done.iter().sum();
    let stopper = examination.stop;
    let stop = || stopper.why().is_some();
    prediction.findings = findings(facts, model, groups, &mut prediction.incomplete, &stop);
    known
}

/// Puts everything into the order of the reports, with names.
pub(crate) fn finish(examination: Examination<'_, '_>) -> Prediction {
    let wants_reads = examination.wants(BugKind::Nondeterminism);
    let trace = examination.facts.trace;
    let mut prediction = examination.prediction;
    prediction.incomplete.sort_by_key(|entry| {
        (entry.kind, entry.status, entry.why.rank(), entry.events.is_none(), entry.events.clone())
    });
    sort_and_name(trace, &mut prediction.findings);
    if wants_reads {
        prediction.may_read = may_read(&prediction.findings);
    }
    prediction
}
