//! What is known from the runs so far: what they do, and what was told of them.

use crate::run::Run;
use portent_predict::{BugKind, Finding, Place};
use portent_trace::Trace;
use std::collections::HashSet;

/// What is known from the runs so far.
#[derive(Default)]
pub(super) struct History {
    /// What all runs that were or will be examined do: operations at places.
    behaviour: HashSet<(u16, String)>,
    /// Ids of findings that were told.
    findings: HashSet<String>,
    /// Reads that could see another write: the object, and the places of read, writer and challenger.
    reads: HashSet<(String, Vec<Option<String>>)>,
}

impl History {
    /// From now on, nothing that this run does is new.
    pub(super) fn runs_like(&mut self, run: &Run) {
        self.behaviour.extend(run.behaviour());
    }

    /// Whether a run does something that no run before it did.
    pub(super) fn is_new(&self, run: &Run) -> bool {
        run.behaviour().iter().any(|what| !self.behaviour.contains(what))
    }

    /// Findings were told.
    pub(super) fn tell(&mut self, trace: &Trace, findings: &[Finding]) {
        for finding in findings {
            self.findings.insert(finding.id.clone());
            if finding.kind == BugKind::Nondeterminism {
                let places = finding.places.iter().map(|place| location(trace, place)).collect();
                self.reads.insert((finding.object.clone(), places));
            }
        }
    }

    /// Whether a finding was told before.
    pub(super) fn has(&self, finding: &Finding) -> bool {
        self.findings.contains(&finding.id)
    }

    /// Whether a finding only leads back: a read that saw one write and could see another was told before, from a run in
    /// which it saw the other.
    pub(super) fn is_reverse(&self, trace: &Trace, finding: &Finding) -> bool {
        let [read, writer, challenger] = &finding.places[..] else { return false };
        let reverse = [read, challenger, writer].map(|place| location(trace, place)).into();
        finding.kind == BugKind::Nondeterminism && self.reads.contains(&(finding.object.clone(), reverse))
    }
}

fn location(trace: &Trace, place: &Place) -> Option<String> {
    place.location.map(|at| trace.names().location(at).to_string())
}
