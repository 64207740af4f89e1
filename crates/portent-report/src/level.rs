//! What is an alarm and what is only worth knowing.
//!
//! A failure is what a person calls a bug without being taught a theory: it is told first and decides the exit status. An
//! observation is true and may matter; it is counted, listed on request, and does not decide anything, unless its kind was
//! asked for by name.

use crate::report::{Settings, Verdict};
use portent_predict::{Bug, Finding, Form, Harm};

/// Whether a finding is an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// It decides the exit status.
    Failure,
    /// It is worth knowing.
    Observation,
}

impl Level {
    /// The word in documents.
    pub fn name(self) -> &'static str {
        match self {
            Level::Failure => "failure",
            Level::Observation => "observation",
        }
    }

    /// The level of a finding.
    pub(crate) fn of(settings: &Settings, finding: &Finding, verdict: &Verdict) -> Level {
        // Somebody said that the block is atomic, in the source or on the command line.
        let declared = matches!(finding.bug, Bug::Atomicity { declared: true, .. });
        let asked = settings.asked.contains(&finding.kind());
        let form = finding.bug.form();
        let alarm = match form {
            Form::Failure(Harm::Output) => settings.same_output,
            // Run again in the same order it did end: the machine was slow, perhaps.
            Form::Failure(Harm::Hang) if matches!(verdict, Verdict::Unconfirmed(_)) => false,
            // It was seen once, whatever replays show.
            Form::Failure(_) => true,
            // It did not show where the program was run so: true of the recorded run, but no alarm.
            _ if matches!(verdict, Verdict::Unconfirmed(_)) => false,
            Form::PossibleUseAfterFree | Form::PossibleDoubleFree | Form::PossiblyDestroyedInUse | Form::Race => true,
            Form::Cycle | Form::LostWakeup | Form::Stuck | Form::LostUpdate | Form::Property => true,
            Form::Atomicity => declared || asked,
            Form::Nondeterminism => asked,
        };
        if alarm { Level::Failure } else { Level::Observation }
    }
}
