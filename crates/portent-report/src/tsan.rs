//! Whether ThreadSanitizer, watching the recorded run, would have seen a finding: happens-before on the observed order.
//!
//! It keeps only the last few accesses of each address, so that it may in truth miss what is called seen here; what is
//! called silent here it cannot see.

use portent_predict::{Bug, BugKind, Deadlock, Finding, Nondeterminism, Place, happens_before};
use portent_trace::{Trace, VarId};
use rustc_hash::FxHashSet;

/// What ThreadSanitizer would say about the recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tsan {
    /// It reports this bug, or a race on the same variable.
    Reports,
    /// It says nothing.
    Silent,
    /// Its lock-order check may warn of the cycle, without knowing whether it can happen.
    MayWarn,
}

impl Tsan {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Tsan::Reports => "reports",
            Tsan::Silent => "silent",
            Tsan::MayWarn => "may_warn",
        }
    }
    /// In a sentence, about a finding of this round.
    pub(crate) fn sentence(self, finding: &Finding, round: Option<u32>) -> &'static str {
        match (self, finding.kind()) {
            (Tsan::Silent | Tsan::MayWarn, _) if finding.other_branch.is_some() => {
                "would stay silent on this run, in which this code did not run."
            }
            (Tsan::Silent, BugKind::Race) if is_later(round) => {
                "would stay silent on the recorded run, in which this code did not run."
            }
            (Tsan::Reports, BugKind::Race) => "would report this race if it watched this run.",
            (Tsan::Reports, _) => "would report a data race on the same object in this run, not this bug.",
            (Tsan::Silent, BugKind::Race) => {
                "would stay silent on this run: it takes the observed order of locks and atomics for the only one."
            }
            (Tsan::Silent, BugKind::Property) => "does not know the property.",
            (Tsan::Silent, BugKind::Deadlock) => "does not look for lost wake-ups.",
            (Tsan::Silent, _) => "would stay silent: this run has no data race on the object.",
            (Tsan::MayWarn, _) => "may warn of a lock-order inversion; it does not know whether it can happen.",
        }
    }
}

/// The variables on which the observed order has a race.
pub(crate) type Racy = FxHashSet<VarId>;

/// Looks for races of the observed order, if any finding needs to know.
pub(crate) fn racy_variables(trace: &Trace, findings: &[Finding]) -> Racy {
    let mut racy = Racy::default();
    if findings.iter().any(|f| matches!(f.kind(), BugKind::Atomicity | BugKind::Nondeterminism)) {
        happens_before::detect(trace, |race| racy.extend(trace.op(race.first).variable()));
    }
    racy
}

/// What ThreadSanitizer would say about a finding.
///
/// A run of a later round is a replay. Had the recorded run the same race, it would have been found in the first round.
pub(crate) fn verdict(trace: &Trace, finding: &Finding, racy: &Racy, round: Option<u32>) -> Tsan {
    let of = |place: &Place| place.kernel.and_then(|event| trace.op(event).variable());
    let if_racy = |variable: Option<VarId>| match variable.is_some_and(|x| racy.contains(&x)) {
        true => Tsan::Reports,
        false => Tsan::Silent,
    };
    match &finding.bug {
        _ if finding.other_branch.is_some() => Tsan::Silent,
        Bug::Race { .. } if finding.flags.beyond_hb || is_later(round) => Tsan::Silent,
        Bug::Race { .. } => Tsan::Reports,
        Bug::Deadlock(Deadlock::LostWakeup { .. } | Deadlock::Stuck { .. }) => Tsan::Silent,
        Bug::Deadlock(Deadlock::Cycle { .. }) => Tsan::MayWarn,
        Bug::Atomicity { first, .. } | Bug::LostUpdate { first, .. } => if_racy(of(first)),
        Bug::Nondeterminism(Nondeterminism::Read { read, .. }) => if_racy(of(read)),
        Bug::Nondeterminism(Nondeterminism::FinalValue { variable, .. }) => if_racy(Some(*variable)),
        Bug::Property { .. } | Bug::Failure(_) => Tsan::Silent,
    }
}

fn is_later(round: Option<u32>) -> bool {
    round.is_some_and(|round| round > 1)
}
