//! Programs that can be run under a plan: what a front end implements.

use crate::error::Error;
use crate::run::Run;
use crate::schedule::Schedule;
use std::collections::BTreeMap;
use std::time::Duration;

/// A program that can be run under a plan, whatever it is written in.
///
/// What the loop relies on:
/// - one thread runs at a time, so that the order of events and their values are what happened;
/// - threads have the same numbers in every run that is alike so far, and are called `T0`, `T1`, … or `T1:name`;
/// - a thread that is given `n` events of a schedule executes `n` events of the trace, no more and no fewer;
/// - a run that is [`like`](Plan::like) another gets the same answers from the system, as far as it asks the same.
pub trait Program {
    /// Runs it once, to its end or until the plan stops it.
    ///
    /// # Errors
    /// When it could not be started, or nothing could be recorded. How the program itself failed is in the run.
    fn run(&self, plan: &Plan<'_>) -> Result<Run, Error>;

    /// Runs it once for each plan, in order, and tells what it did, until all are done or `ran` says to stop. At most one run
    /// at a time is under way; a front end may begin the next while the last is still looked at. How long a run may take is
    /// asked when it begins. Of a run that did not fail, in which each thread did and saw, from the same threads, what it did and saw in
    /// one that was told before, a front end may tell nothing but that it was made.
    ///
    /// # Errors
    /// As [`Program::run`]: the rest is then left out.
    fn run_each(
        &self,
        plans: &[Plan<'_>],
        limit: &(dyn Fn() -> Duration + Sync),
        ran: &mut dyn FnMut(Option<Run>) -> bool,
    ) -> Result<(), Error> {
        for plan in plans {
            if !ran(Some(self.run(&Plan { limit: Some(limit()), ..plan.clone() })?)) {
                break;
            }
        }
        Ok(())
    }

    /// What a run did that its events do not show to be a choice: why other runs may do what nobody can predict from them, in words.
    fn unexplored(&self, _run: &Run) -> Vec<String> {
        Vec::new()
    }

    /// Variables that properties may name before a run touches them: their names, and where each is declared.
    fn declarations(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}

/// Who runs when, how long, and what the system answers.
#[derive(Clone, Debug, Default)]
pub struct Plan<'a> {
    /// Who runs next where no schedule says so.
    pub policy: Policy,
    /// What chance starts from, where the policy takes one.
    pub seed: u64,
    /// Who executes how many events first, and what to look for then.
    pub schedule: Option<&'a Schedule>,
    /// An earlier run: the same threads, and the same answers of the system, as far as the program asks for them.
    pub like: Option<&'a Run>,
    /// A program that runs longer hangs, and is stopped.
    pub limit: Option<Duration>,
    /// What the program writes is not shown.
    pub silent: bool,
    /// Where a thread fails, the others go on as far as they can before the program ends by that ([`Outcome::parked`]).
    ///
    /// [`Outcome::parked`]: crate::Outcome::parked
    pub parks: bool,
}

/// Who runs next, where nothing else decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Whoever runs, as long as it can.
    #[default]
    Stay,
    /// Each in turn.
    RoundRobin,
    /// By chance.
    Random,
    /// By priorities that change at a few points (Burckhardt et al.).
    Pct(Pct),
    /// By priorities, whenever somebody has to wait; nobody is interrupted.
    Priority,
}

/// Burckhardt et al., *A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs*: threads get priorities by chance, whoever
/// has the highest of those that can go on does, and at `depth - 1` steps, by chance, the thread that is next goes behind all others.
/// A bug that needs `depth` orders between steps is met with a probability of at least 1 / (n k^(depth - 1)), of n threads and k steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pct {
    /// How deep the bugs are that it looks for.
    pub depth: u32,
    /// How many steps a run has, at most, if there is no earlier run that says so.
    pub steps: u64,
}

impl Pct {
    /// The depth, unless said otherwise.
    pub const DEPTH: u32 = 3;
    /// The steps, unless said otherwise.
    pub const STEPS: u64 = 10_000;
}

impl Default for Pct {
    fn default() -> Self {
        Pct { depth: Self::DEPTH, steps: Self::STEPS }
    }
}
