//! What is known from the runs so far: what they do, and what was told of them.

use crate::run::{Behaviour, Run};
use portent_predict::{Bug, Finding, FindingNames, Nondeterminism, Place};
use portent_trace::Trace;
use std::collections::HashSet;

/// What is known from the runs so far.
#[derive(Default)]
pub(super) struct History {
    /// What all runs that were or will be gone on from do.
    known: Behaviour,
    /// What findings of all runs are called.
    names: FindingNames,
    /// Ids of findings that were told.
    findings: HashSet<String>,
    /// Reads and final values that could come from another write, and from which they came.
    choices: HashSet<Choice>,
}

/// What is new in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    /// A thread does something somewhere that it did not do there before.
    Behaviour,
    /// It only reads from where it did not read before.
    Reads,
    /// Nothing.
    None,
}

/// A read or a final value, the write that it came from, and one that it could come from, by their places.
#[derive(PartialEq, Eq, Hash)]
struct Choice {
    object: String,
    read: Option<String>,
    writer: Option<String>,
    challenger: Option<String>,
}

impl Choice {
    fn of(trace: &Trace, finding: &Finding) -> Option<Choice> {
        let Bug::Nondeterminism(
            Nondeterminism::Read { read, writer, challenger, .. }
            | Nondeterminism::FinalValue { end: read, writer, challenger, .. },
        ) = &finding.bug
        else {
            return None;
        };
        let at = |place: &Place| place.location.map(|at| trace.names().location(at).to_string());
        let object = finding.object.clone();
        Some(Choice { object, read: at(read), writer: at(writer), challenger: at(challenger) })
    }
}

impl History {
    /// From now on, nothing that this run does is new.
    pub(super) fn runs_like(&mut self, run: &Run) {
        self.knows(run.behaviour());
    }

    /// The same, by its behaviour.
    pub(super) fn knows(&mut self, Behaviour { does, reads }: Behaviour) {
        self.known.does.extend(does);
        self.known.reads.extend(reads);
    }

    /// What a run does that no run before it did.
    pub(super) fn novelty(&self, Behaviour { does, reads }: &Behaviour) -> Novelty {
        if !does.is_subset(&self.known.does) {
            Novelty::Behaviour
        } else if !reads.is_subset(&self.known.reads) {
            Novelty::Reads
        } else {
            Novelty::None
        }
    }

    /// Calls the findings of a run as they were called in runs before, and new ones as none was called.
    pub(super) fn name(&mut self, trace: &Trace, findings: &mut [Finding]) {
        self.names.name(trace, findings);
    }

    /// Findings were told.
    pub(super) fn tell(&mut self, trace: &Trace, findings: &[Finding]) {
        self.findings.extend(findings.iter().map(|finding| finding.id.clone()));
        self.choices.extend(findings.iter().filter_map(|finding| Choice::of(trace, finding)));
    }

    /// Whether a finding was told before.
    pub(super) fn has(&self, finding: &Finding) -> bool {
        self.findings.contains(&finding.id)
    }

    /// Whether a finding only leads back: a read that saw one write and could see another was told before, from a run in
    /// which it saw the other.
    pub(super) fn is_reverse(&self, trace: &Trace, finding: &Finding) -> bool {
        let Some(Choice { object, read, writer, challenger }) = Choice::of(trace, finding) else { return false };
        self.choices.contains(&Choice { object, read, writer: challenger, challenger: writer })
    }
}
