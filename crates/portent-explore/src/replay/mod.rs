//! Running a program again, as a schedule says, and seeing what comes of it.
//!
//! The runtime enforces the schedule and records the run; everything else is done here, afterwards, on the two runs: where
//! the program did something else than in the recording, what the reads that matter saw, how it ended. A finding counts as
//! shown only if it was *seen*:
//!
//! | kind | seen when the schedule was followed and |
//! |---|---|
//! | race | both threads stood at their conflicting accesses at once |
//! | deadlock | every thread of the cycle stood at a lock that it could not get; a lost wake-up: the sleeper slept, and nobody could move |
//! | atomicity, lost update | the three events happened in the predicted order |
//! | nondeterminism | the events happened in the predicted order, and the read saw another value, or the program failed |
//! | failure | the program failed in that way, there |
//! | final value | the last write of the variable left another value |
//! | property | the property's monitor, on the replayed run, says that it is broken |

mod compare;
mod finding;
mod seen;
mod wanted;

pub use compare::{Did, Divergence};
pub use finding::{Finding, Findings};
pub use wanted::Wanted;

use crate::error::Error;
use crate::failure::Failed;
use crate::program::{Plan, Policy, Program};
use crate::run::Run;
use crate::schedule::Schedule;
use portent_predict::Form;
use std::collections::HashSet;
use std::time::Duration;

/// What to replay, however often.
pub struct Script<'a> {
    /// The program.
    pub program: &'a dyn Program,
    /// The run that it is like, up to the schedule.
    pub original: &'a Run,
    /// Who executes how many events.
    pub schedule: Schedule,
    /// What is to be seen.
    pub wanted: Wanted,
    /// Who goes on when the schedule is done.
    pub policy: Policy,
    /// What chance starts from, where the policy takes one.
    pub seed: u64,
    /// After this time the program hangs.
    pub limit: Option<Duration>,
    /// What the program writes goes nowhere.
    pub silent: bool,
}

/// One replay.
#[derive(Debug)]
pub struct Replay {
    /// Whether what was wanted was seen.
    pub hit: bool,
    /// What was seen, or why not, in sentences.
    pub evidence: Vec<String>,
    /// Where it was seen: events of the recorded run that had another value in this one, and which.
    pub values: Vec<(u32, Option<i64>)>,
    /// Where the program did something else than the schedule says.
    pub diverged: Option<String>,
    /// The same as data.
    pub divergence: Option<Divergence>,
    /// How the program failed, if it did and the recorded run did not fail so.
    pub failed: Option<String>,
    /// The run, which can be examined like any other.
    pub run: Run,
}

impl Script<'_> {
    /// Runs it once.
    pub fn run(&self) -> Result<Replay, Error> {
        let plan = Plan {
            policy: self.policy,
            seed: self.seed,
            schedule: Some(&self.schedule),
            like: Some(self.original),
            limit: self.limit,
            silent: self.silent,
            parks: false,
        };
        let run = self.program.run(&plan)?;
        let before: HashSet<String> = self.original.failures().iter().map(Failed::identity).collect();
        let failures = run.failures();
        let failed = failures.iter().find(|failed| !before.contains(&failed.identity()));
        let failed = failed.map(|failed| format!("{}: {}", Form::Failure(failed.harm).words().title, failed.message));
        // A failure is not about where the run that it was first seen in went: whatever leads there will do.
        let is_failure = matches!(self.wanted, Wanted::Failure { .. });
        let divergence = self.divergence(&run).filter(|_| !is_failure);
        let diverged = divergence.as_ref().map(Divergence::to_string);
        let (evidence, values) = (Vec::new(), Vec::new());
        let mut replay = Replay { hit: false, evidence, values, diverged, divergence, failed, run };
        (replay.hit, replay.evidence) = self.seen(&replay);
        if replay.hit && !is_failure && replay.diverged.is_none() {
            replay.values = self.other_values(&replay.run);
        }
        Ok(replay)
    }
}
