//! What the loop tells while it works, and what it returns.

use super::saved::SavedSearch;
use crate::error::Error;
use crate::replay::Replay;
use crate::run::Run;
use portent_order::Model;
use portent_predict::{Finding, Prediction};
use portent_trace::Trace;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Which of all runs: those of round 1 are recorded, later ones are replays that did something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId {
    /// The round in which it is examined, from 1.
    pub round: u32,
    /// Which run of the round: from 0 in the first round, from 1 in others.
    pub number: usize,
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "run {} of round {}", self.number, self.round)
    }
}

/// Something that happened in the loop.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The program is started, to be recorded.
    RunStarted {
        /// Which run this becomes.
        run: RunId,
    },
    /// It has ended. How it failed by itself, if it did, is in its outcome.
    RunRecorded {
        /// Which run it is.
        run: RunId,
        /// What it did.
        recorded: &'a Run,
    },
    /// Predicting from a run: often, also from other threads.
    Predicting {
        /// The run.
        run: RunId,
        /// In which model.
        model: Model,
        /// Events that are done; 0 at first.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// What was predicted from a run in a model.
    Predicted {
        /// The run.
        run: RunId,
        /// In which model.
        model: Model,
        /// What was found, before replays.
        prediction: &'a Prediction,
    },
    /// Findings are being replayed.
    Replaying {
        /// The run that they were predicted from.
        run: RunId,
        /// Findings that are done; 0 at first.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// A finding was replayed once.
    ReplaySeen {
        /// The run that it was predicted from.
        run: RunId,
        /// What was to be seen.
        finding: &'a Finding,
        /// What was seen.
        replay: &'a Replay,
    },
    /// A finding was seen for the first time.
    Confirmed {
        /// The run that it was predicted from.
        run: RunId,
        /// The finding.
        finding: &'a Finding,
    },
    /// All findings of a run in a model were replayed, or there was no time for it.
    Replayed {
        /// The run that they were predicted from.
        run: RunId,
        /// In which model.
        model: Model,
    },
    /// Runs next to an examined one are tried.
    Trying {
        /// The examined run.
        run: RunId,
        /// Runs that are done; 0 at first.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// They all were, or there was no time for it.
    Tried {
        /// The examined run.
        run: RunId,
    },
    /// All behaviours are searched for: often.
    Searching {
        /// Runs of the search.
        runs: u64,
        /// Behaviours among them.
        behaviours: u64,
        /// Alternatives that were not looked at yet.
        left: u64,
        /// Failures that runs have shown so far.
        failures: u64,
    },
    /// The search is over.
    Searched,
    /// Failures are run again, to find the shortest schedule that leads to each.
    Settling {
        /// Failures that are done; 0 at first.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// Everything about a run is known.
    RunExamined {
        /// What is known.
        examined: &'a Examined,
    },
    /// All runs of a round are examined.
    RoundDone {
        /// Which round.
        round: u32,
        /// Replays that did something new: the next round examines them, if there is one.
        new: usize,
    },
    /// Nothing more will happen.
    Done {
        /// What is known.
        exploration: &'a Exploration,
    },
}

/// Who is told of events, as they happen.
///
/// A closure will do where nothing has to be kept.
pub trait Observer: Send {
    /// Is told of an event.
    fn see(&mut self, event: Event<'_>);

    /// Keeps a run whose findings are to be replayed later: a run of the first round, or one with findings of its own.
    ///
    /// # Errors
    /// When it could not be kept; that ends the loop.
    fn keep(&mut self, _run: &Run, _examined: &Examined) -> Result<(), Error> {
        Ok(())
    }

    /// Keeps a recorded run, which [`Observer::keep`] will be called for once it was examined.
    ///
    /// # Errors
    /// When it could not be kept; that ends the loop.
    fn keep_run(&mut self, _id: RunId, _run: &Run) -> Result<(), Error> {
        Ok(())
    }

    /// Keeps a search, to go on with it later: now and then, and when it ends.
    ///
    /// # Errors
    /// When it could not be kept; that ends the loop.
    fn keep_search(&mut self, _search: &SavedSearch) -> Result<(), Error> {
        Ok(())
    }
}

impl<F: FnMut(Event<'_>) + Send> Observer for F {
    fn see(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// What replays of one finding showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How often it was replayed.
    pub runs: u32,
    /// How often the bug was seen.
    pub hits: u32,
    /// The how many-th run of all was the first to show it, if one did.
    pub first_run: Option<u64>,
    /// Where and why a replay left the schedule, in words, if one did.
    pub diverged: Option<String>,
    /// What was seen: the crash, the failed assertion, the value, who waited for whom. In words.
    pub showed: Option<String>,
    /// What accesses read or wrote in the first replay that showed it, where that is not what they did in the recorded run; by
    /// the number of the event.
    pub values: BTreeMap<u32, Option<i64>>,
}

/// What a run told in one model.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The model.
    pub model: Model,
    /// What was predicted, without what only the optimistic model said and no replay showed, and without what was told before.
    pub prediction: Prediction,
    /// What replays showed, by the id of the finding.
    pub replays: BTreeMap<String, Replayed>,
}

/// A run that was examined.
#[derive(Clone, Debug)]
pub struct Examined {
    /// Which run.
    pub run: RunId,
    /// The run as a trace, which findings name the events of.
    pub trace: Arc<Trace>,
    /// What it told in each model, in their order.
    pub answers: Vec<Answer>,
}

/// Why the loop left something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was told to stop.
    Interrupted,
    /// Its time was over.
    OutOfTime,
    /// It has made all runs that it was to make.
    OutOfRuns,
}

/// What a run is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// To be recorded.
    Recorded,
    /// To see whether what was predicted happens.
    Replayed,
    /// To see what happens after one switch more, or by chance.
    Tried,
    /// To find all behaviours.
    Searched,
    /// Under a policy, where nothing else is asked for.
    ByChance,
    /// To make sure of a failure, and to make its schedule short.
    Settled,
}

impl Phase {
    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Recorded => "recorded",
            Phase::Replayed => "replays of predictions",
            Phase::Tried => "other schedules",
            Phase::Searched => "search for behaviours",
            Phase::ByChance => "by chance",
            Phase::Settled => "failures run again",
        }
    }
}

/// What came of exploring a program.
#[derive(Debug, Default)]
pub struct Exploration {
    /// Every run that was examined, in order.
    pub examined: Vec<Examined>,
    /// Failures that runs showed, each with the trace of a run that failed so. The run that is named is the one that it can be
    /// replayed from.
    pub failures: Vec<Examined>,
    /// How often the program was run.
    pub runs: u64,
    /// What for.
    pub phases: BTreeMap<Phase, u64>,
    /// What they reached, where that is counted.
    pub reached: Reached,
    /// How many behaviours the program has, where that was looked for.
    pub behaviours: Option<Behaviours>,
    /// Findings that there was no time to replay.
    pub not_replayed: usize,
    /// Runs whose recording is cut short: nothing is known of what the program did then.
    pub cut_short: u64,
    /// Why something was left out, if something was.
    pub stopped: Option<Stop>,
    /// What went wrong inside the predictors, in words: bugs of Portent.
    pub errors: Vec<String>,
}

/// What runs reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Runs that differ in what some thread does or reads, or from where, as hashes.
    pub behaviours: HashSet<u64>,
    /// Pairs of a thread that read somewhere what another, or itself, wrote somewhere, as hashes.
    pub reads_from: HashSet<u64>,
}

impl Exploration {
    /// How often the program was run to see what it does, not to make sure of what it did.
    pub fn looked(&self) -> u64 {
        self.runs - self.phases.get(&Phase::Settled).copied().unwrap_or(0)
    }
}

/// How many behaviours a program has, and whether these are all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviours {
    /// Those that were run.
    pub seen: u64,
    /// Alternatives that are known and were not tried.
    pub left: u64,
    /// Where threads waited in loops that only look: rounds of these that change nothing are left out.
    pub spins: BTreeSet<String>,
    /// What else the proof rests on, in words.
    pub granted: BTreeSet<&'static str>,
    /// Why there may be more, in words; empty if these are all.
    pub unproven: Vec<String>,
}

impl Behaviours {
    /// How the assumption begins that is made of loops that only look: a round that sees the same changes nothing.
    pub const SPIN_LOOPS: &'static str = "spin loops at ";

    /// Who comes last at a barrier, and is told so, is not looked for.
    pub const BARRIERS: &'static str = "it does not matter whom a barrier tells that it came last";

    /// Waits on conditions may end by themselves, which is tried only where somebody asks for it.
    pub const NOTIFIED: &'static str = "who waits on a condition is woken by notifies only";
    /// Once for each thread: who waits in a loop could be woken so for ever.
    pub const NOTIFIED_OR_ONCE: &'static str = "who waits on a condition is woken by notifies, and once by itself";

    /// What completeness rests on.
    pub fn assumptions(&self) -> Vec<String> {
        let always = ["this input", "sequential consistency", "each thread is a function of what it reads"];
        let spins: Vec<&str> = self.spins.iter().map(String::as_str).collect();
        let spins = (!spins.is_empty()).then(|| format!("{}{}", Self::SPIN_LOOPS, spins.join(", ")));
        let granted = self.granted.iter().copied();
        always.into_iter().chain(granted).map(str::to_owned).chain(spins).collect()
    }

    /// Whether these are all.
    pub fn are_all(&self) -> bool {
        self.seen > 0 && self.unproven.is_empty()
    }
}
