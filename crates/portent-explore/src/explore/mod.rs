//! Record → predict → replay → next round.
//!
//! Round 1 examines the recorded runs. Every prediction is replayed, and a replayed run is a run like any other: where it
//! did something that no run before it did, the next round examines it too, so that bugs behind branches that the recorded
//! run did not take are reached.
//!
//! Every run is also looked at for failures ([`Run::failures`]), wanted or not: a replay that was to show something else and
//! crashed has found a crash. All behaviours of a small program are searched for (`behaviours`), which may end in a proof. Where
//! it does not, the recorded run is also tried with one switch more (`neighbours`) and by chance, and then, as far as the number of
//! tries goes, what reads of any run could see and have not seen yet is run (`outcomes`); this proves nothing: it is bounded, and
//! does not ask for every combination. In the end each failure is run again with ever shorter schedules (`settle`).
//!
//! Of several models the first is believed. What the others, more optimistic, add is replayed as well, and kept only if a
//! replay shows it.

mod behaviours;
mod cases;
mod confirm;
mod counters;
mod decisive;
mod event;
mod history;
mod neighbours;
mod once;
mod operations;
mod outcomes;
mod printed;
mod saved;
mod settle;
mod spinning;

pub use event::{Answer, Behaviours, Event, Examined, Exploration, Observer, Phase, Reached, Replayed, RunId, Stop};
pub use saved::SavedSearch;

use crate::error::Error;
use crate::program::{Pct, Plan, Policy, Program};
use crate::properties::{self, Properties, Request};
use crate::run::{Behaviour, Run};
use crate::schedule::Schedule;
use cases::Cases;
use history::{History, Novelty};
use outcomes::Outcomes;
use portent_order::Model;
use portent_predict::{BugKind, Control, Finding, Prediction};
use portent_trace::{FunctionBlocks, InputEvent, Trace};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How to explore a program.
pub struct Options {
    /// What to look for, and with which effort. Model and time are set for each prediction.
    pub search: portent_predict::Options,
    /// The models to predict in: the first is believed, what others add must be seen in a replay.
    pub models: Vec<Model>,
    /// Properties to check as well.
    pub properties: Option<Properties>,
    /// Cuts per level of a property's lattice, at most.
    pub width: usize,
    /// Which functions are atomic blocks.
    pub functions: Box<dyn Fn() -> FunctionBlocks>,
    /// Runs that are recorded: the first by itself, the others by chance.
    pub recordings: u32,
    /// How runs are chosen.
    pub strategy: Strategy,
    /// How far the search for all behaviours goes.
    pub extent: Extent,
    /// What chance starts from.
    pub seed: u64,
    /// Whether what runs reach is counted.
    pub count_reached: bool,
    /// A search to go on with.
    pub resume: Option<SavedSearch>,
    /// Rounds, at most.
    pub rounds: u32,
    /// Replays of each finding.
    pub times: u32,
    /// Neighbours of each examined run that are tried, at most.
    pub neighbours: usize,
    /// Whether findings that are no alarm by themselves are replayed until they were seen once only.
    pub quick_observations: bool,
    /// How long everything may take, up to what cannot be interrupted.
    pub budget: Duration,
    /// How long one run of the program may take.
    pub timeout: Duration,
}

/// How runs are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By what could happen and has not: predictions, then behaviours that no run has shown.
    #[default]
    Explore,
    /// By a policy, run after run, and nothing is predicted: for comparison.
    ByChance(Policy),
}

/// How far the search for all behaviours goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// As far as it is worth it: for as long as a proof is in reach, and else for a few runs.
    #[default]
    Worthwhile,
    /// For as long as it may end in a proof, however far that is, within the time.
    WithinTime,
    /// At most so many runs of the program, those that make sure of failures apart.
    Runs(u64),
    /// To its end.
    Everything,
}

impl Extent {
    /// Whether it was said how far to go, so that a failure does not end it.
    fn goes_on_after_failures(self) -> bool {
        matches!(self, Extent::Runs(_) | Extent::Everything)
    }
}

impl Options {
    /// Runs that are recorded, unless said otherwise.
    pub const RECORDINGS: u32 = 1;
    /// Rounds, unless said otherwise.
    pub const ROUNDS: u32 = 2;
    /// Replays of each finding, unless said otherwise.
    pub const TIMES: u32 = 3;
    /// The time for one run of the program, unless said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
    /// The default model, which has no false alarms, and the optimistic one.
    pub const MODELS: [Model; 2] = [Model::Reads, Model::Sync];
    /// The time for everything, unless said otherwise.
    pub const BUDGET: Duration = Duration::from_secs(60);
    /// Neighbours of each examined run that are tried, unless said otherwise.
    pub const NEIGHBOURS: usize = 40;
    /// So many times as many tries there are in all.
    const TRIES: usize = 4;
    /// A run that takes so many times as long as the recorded one hangs,
    const SLOWER: u32 = 30;
    /// unless it takes less than this.
    const SHORT: Duration = Duration::from_secs(2);
    /// After so many runs that hang, no others are tried: each takes long.
    const HANGS: u32 = 3;
    /// Runs that wait for that, at most.
    const WAITING: usize = 48;
    /// Runs with more events are not worth it.
    const WANDERERS: usize = 100_000;
    /// A check that has found nothing by then ends, where a proof is not near and what is most worth a try has been tried,
    const PATIENCE: Duration = Duration::from_millis(750);
    /// unless the machine is so slow, or the program, that so many runs take longer,
    const WORTH_WAITING: u32 = 40;
    /// up to this. One that has found something ends by then, too: what else there is can be looked for when that is mended.
    const MOST_PATIENCE: Duration = Duration::from_secs(4);
    /// Other instances of a finding that are replayed where the first does not show it,
    const INSTANCES: usize = 3;
    /// and how long they may be looked for.
    const ASKING: Duration = Duration::from_millis(500);
    /// Replays with new behaviour that each examined run and model may add to the next round.
    const NEW_RUNS: usize = 8;
}

impl Options {
    /// Tries in all.
    fn tries(&self) -> usize {
        self.neighbours * Options::TRIES
    }

    /// Findings that are no alarm and are replayed, where they need not all be.
    fn observations(&self) -> usize {
        self.neighbours * 3 / 2
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            search: portent_predict::Options::default(),
            models: Self::MODELS.to_vec(),
            properties: None,
            width: portent_predict::lattice::Bounds::WIDTH,
            functions: Box::new(|| FunctionBlocks::BelowRoots),
            recordings: Self::RECORDINGS,
            strategy: Strategy::default(),
            extent: Extent::default(),
            seed: 0,
            count_reached: false,
            resume: None,
            rounds: Self::ROUNDS,
            times: Self::TIMES,
            neighbours: Self::NEIGHBOURS,
            quick_observations: false,
            budget: Self::BUDGET,
            timeout: Self::TIMEOUT,
        }
    }
}

/// The first run that is recorded.
const FIRST: RunId = RunId { round: 1, number: 0 };
/// Longer than anybody waits; clocks can count it.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Explores a program until nothing new comes up, the rounds or the time are over, or `interrupt` is set; what is known then.
///
/// # Errors
/// When the program cannot be run, a property does not fit it, or a run could not be kept.
pub fn explore(
    program: &dyn Program,
    options: &Options,
    interrupt: &'static AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Exploration, Error> {
    let declared = options.properties.as_ref().map(|_| program.declarations()).unwrap_or_default();
    let deadline = Instant::now() + options.budget.min(FOR_EVER);
    let mut explorer = Explorer {
        program,
        options,
        interrupt,
        observer,
        deadline,
        started: Instant::now(),
        declared,
        history: History::default(),
        confirmed: HashSet::new(),
        alarms: 0,
        cases: Cases::default(),
        waiting: [VecDeque::new(), VecDeque::new()],
        observations: options.observations(),
        subjects: Vec::new(),
        outcomes: Outcomes::default(),
        tries: options.tries(),
        recorded: Duration::ZERO,
        hangs: 0,
        first: None,
        searched: false,
        passed: None,
        exploration: Exploration::default(),
    };
    match options.strategy {
        Strategy::Explore => {
            explorer.all_rounds()?;
            explorer.wander()?;
            explorer.use_up_runs()?;
        }
        Strategy::ByChance(policy) => explorer.by_chance(policy)?,
    }
    explorer.settle()?;
    let Explorer { mut exploration, observer, .. } = explorer;
    let partial = |answer: &Answer| answer.prediction.partial.is_some();
    let is_partial = exploration.not_replayed > 0 || exploration.examined.iter().flat_map(|e| &e.answers).any(partial);
    exploration.stopped = is_partial.then(|| match options.extent {
        _ if interrupt.load(Ordering::Relaxed) => Stop::Interrupted,
        Extent::Runs(most) if exploration.looked() >= most => Stop::OutOfRuns,
        _ => Stop::OutOfTime,
    });
    observer.see(Event::Done { exploration: &exploration });
    Ok(exploration)
}

/// How much is looked for in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// All that was asked for.
    Whole,
    /// What is harm by itself.
    HarmOnly,
}

/// A run that is to be examined.
struct Subject {
    id: RunId,
    run: Run,
    /// Up to this event it is like a run whose neighbours were tried.
    from: usize,
    trace: Arc<Trace>,
}

impl AsRef<Trace> for Subject {
    fn as_ref(&self) -> &Trace {
        &self.trace
    }
}

struct Explorer<'a> {
    program: &'a dyn Program,
    options: &'a Options,
    interrupt: &'static AtomicBool,
    observer: &'a mut dyn Observer,
    deadline: Instant,
    started: Instant,
    /// Where variables are declared.
    declared: BTreeMap<String, String>,
    history: History,
    /// Ids of findings that a replay has shown,
    confirmed: HashSet<String>,
    /// and how many of them are alarms by themselves.
    alarms: u64,
    /// Failures that runs showed.
    cases: Cases<Subject>,
    /// Runs in which somebody read what nobody had read before, and those in which a thread did and read all as never before:
    /// their neighbours are worth a try, in this order.
    waiting: [VecDeque<(Run, usize)>; 2],
    /// Runs that were examined, until it is asked what else their reads could see.
    subjects: Vec<Arc<Subject>>,
    /// What reads have seen, and what they could see.
    outcomes: Outcomes<Subject>,
    /// Findings that are no alarm and may still be replayed, where they need not all be.
    observations: usize,
    /// Tries that are left.
    tries: usize,
    /// How long the longest recorded run took.
    recorded: Duration,
    /// Runs that hung.
    hangs: u32,
    /// The first recorded run.
    first: Option<Arc<Subject>>,
    /// Whether all behaviours were searched for.
    searched: bool,
    /// Some run that passed, where the first did not.
    passed: Option<Run>,
    exploration: Exploration,
}

impl Explorer<'_> {
    fn all_rounds(&mut self) -> Result<(), Error> {
        let mut subjects = self.record()?;
        for round in 1..=self.options.rounds {
            let mut next = Vec::new();
            for subject in subjects {
                self.outcomes.visit(&subject.run);
                self.subjects.push(Arc::clone(&subject));
                let explore = round < self.options.rounds;
                next.extend(self.examine(&subject, explore, Depth::Whole)?);
                // Where all behaviours were run, there is nothing else to try.
                if round == 1 && !self.has_all_behaviours() {
                    next.extend(self.at_random(&subject, explore)?);
                    next.extend(self.neighbours(&subject, explore)?);
                }
            }
            self.observer.see(Event::RoundDone { round, new: next.len() });
            if next.is_empty() {
                break;
            }
            let id = |number| RunId { round: round + 1, number };
            let subject = |(number, (run, from)): (usize, (Run, usize))| self.subject(id(number), run, from);
            subjects = (1..).zip(next).map(subject).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Makes reads see what they have not seen yet, as far as the number of tries allows: only what is harm by itself is looked for
    /// in runs that come of it.
    fn wander(&mut self) -> Result<(), Error> {
        let mut beside: VecDeque<Arc<Subject>> = std::mem::take(&mut self.subjects).into();
        for subject in &beside {
            if self.is_late() {
                break;
            }
            self.outcomes.ask(subject, &subject.run, self.deadline, self.interrupt);
        }
        // Neighbours of the recorded runs have been tried.
        beside.retain(|subject| subject.id.round > 1);
        let all = self.has_all_behaviours();
        for number in 1.. {
            if self.tries == 0 || self.out_of_time() || self.has_tried_enough() {
                break;
            }
            if let Some((run, from)) = self.waiting.iter_mut().find_map(VecDeque::pop_front) {
                let subject = self.subject(RunId { round: self.options.rounds + 1, number }, run, from)?;
                self.examine(&subject, false, Depth::HarmOnly)?;
                self.outcomes.ask(&subject, &subject.run, self.deadline, self.interrupt);
                beside.push_back(subject);
            } else if all {
                break;
            } else if let Some((subject, schedule)) = self.outcomes.next() {
                self.try_all(&subject, false, vec![(schedule, Policy::Stay, 0)])?;
            } else if let Some(subject) = beside.pop_front() {
                self.neighbours(&subject, false)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn has_all_behaviours(&self) -> bool {
        self.exploration.behaviours.as_ref().is_some_and(Behaviours::are_all)
    }

    /// A run that may be worth going on from: one that did something new is for the next round, if that is wanted.
    fn consider(&mut self, run: Run, like: &Run, new: &mut Vec<(Run, usize)>, most: usize) {
        let behaviour = run.behaviour();
        self.consider_new(run, behaviour, like, new, most);
    }

    /// The same of a run whose behaviour was looked at.
    fn consider_new(&mut self, run: Run, behaviour: Behaviour, like: &Run, new: &mut Vec<(Run, usize)>, most: usize) {
        let (novelty, has_new_past) = (self.history.novelty(&behaviour), self.outcomes.visit(&run));
        if novelty == Novelty::None && !has_new_past {
            return;
        }
        // Neighbours of what it shares with the other run are tried there.
        let parts = |(a, b): (&InputEvent, &InputEvent)| a.thread != b.thread;
        let from = run.events.iter().zip(&like.events).position(parts).unwrap_or(0);
        if novelty == Novelty::Behaviour && new.len() < most {
            self.history.knows(behaviour);
            new.push((run, from));
            return;
        }
        let waiting = &mut self.waiting[usize::from(novelty == Novelty::None)];
        if waiting.len() < Options::WAITING && run.events.len() < Options::WANDERERS {
            self.history.knows(behaviour);
            waiting.push_back((run, from));
        }
    }

    /// The runs of the first round.
    fn record(&mut self) -> Result<Vec<Arc<Subject>>, Error> {
        let mut subjects = Vec::new();
        for number in 0..self.options.recordings {
            let id = RunId { round: 1, number: number as usize };
            let policy = if number == 0 { Policy::Stay } else { Policy::Random };
            let limit = Some(self.options.timeout);
            self.observer.see(Event::RunStarted { run: id });
            let started = Instant::now();
            let run = self.program.run(&Plan { policy, seed: self.seed(number.into()), limit, ..Plan::default() })?;
            self.recorded = self.recorded.max(started.elapsed());
            self.count(Phase::Recorded);
            self.observer.see(Event::RunRecorded { run: id, recorded: &run });
            // While there is time: what takes long must not be left for the end.
            self.observer.keep_run(id, &run)?;
            let subject = self.subject(id, run, 0)?;
            if subject.run.outcome.signals {
                // Other runs would get signals before they are sent.
                self.tries = 0;
            }
            self.first.get_or_insert_with(|| Arc::clone(&subject));
            self.watch(&subject.run, &subject, true);
            subjects.push(subject);
        }
        Ok(subjects)
    }

    fn subject(&self, id: RunId, run: Run, from: usize) -> Result<Arc<Subject>, Error> {
        let trace = run.trace((self.options.functions)()).map_err(|error| error.in_input(&id.to_string()))?;
        Ok(Arc::new(Subject { id, run, from, trace: Arc::new(trace) }))
    }

    /// Whether no more runs are to be made: the time or the number of runs is used up, or somebody said so.
    fn out_of_time(&self) -> bool {
        self.is_late() || self.runs_left() == 0
    }

    /// Whether the time is over, or somebody said so.
    fn is_late(&self) -> bool {
        self.left().is_zero() || self.interrupt.load(Ordering::Relaxed)
    }

    /// Whether a check has taken as long as it should, unless it was said how far to go.
    fn is_out_of_patience(&self) -> bool {
        let patience = if self.failures() == 0 { self.patience(Options::PATIENCE) } else { Options::MOST_PATIENCE };
        self.options.extent == Extent::Worthwhile && self.started.elapsed() > patience
    }

    /// A time that is right for a small program on a machine that is not busy, for this program on this machine.
    fn patience(&self, quiet: Duration) -> Duration {
        let slow = self.recorded.as_secs_f64() * f64::from(Options::WORTH_WAITING) / Options::PATIENCE.as_secs_f64();
        quiet.mul_f64(slow.max(1.0)).min(Options::MOST_PATIENCE)
    }

    /// Whether other ways to run are not worth their time any more. What is next to the recorded run is tried in any case.
    fn has_tried_enough(&self) -> bool {
        self.tries <= self.options.tries() * 5 / 8 && self.is_out_of_patience()
    }

    /// Failures that were seen so far.
    fn failures(&self) -> u64 {
        self.cases.failures() + self.alarms
    }

    /// How often the program may still be run.
    fn runs_left(&self) -> u64 {
        match self.options.extent {
            Extent::Runs(most) => most.saturating_sub(self.exploration.looked()),
            Extent::Worthwhile | Extent::WithinTime | Extent::Everything => u64::MAX,
        }
    }

    /// The program was run once more.
    fn count(&mut self, phase: Phase) {
        self.exploration.runs += 1;
        *self.exploration.phases.entry(phase).or_default() += 1;
    }

    /// A seed, by its number: other ones for every seed that all start from.
    fn seed(&self, number: u64) -> u64 {
        self.options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number)
    }

    /// Runs the program under a policy, again and again: nothing else.
    fn by_chance(&mut self, policy: Policy) -> Result<(), Error> {
        let Some(subject) = self.record()?.into_iter().next() else { return Ok(()) };
        // Nothing is predicted from it, but other commands know it by what was examined.
        let examined = Examined { run: subject.id, trace: Arc::clone(&subject.trace), answers: Vec::new() };
        self.observer.keep(&subject.run, &examined)?;
        self.exploration.examined.push(examined);
        self.chance_runs(&subject, &|_| policy, 0..u64::MAX, false)
    }

    /// Where it is said how many runs to make, or how long, and nothing better is left to do: by chance, which is cheap. Where such a run
    /// does something new, that is gone on from.
    fn use_up_runs(&mut self) -> Result<(), Error> {
        /// So many by chance, and then those that did something new.
        const AT_A_TIME: u64 = 64;
        let said = matches!(self.options.extent, Extent::Runs(_) | Extent::WithinTime);
        let wanted = said && !self.has_all_behaviours();
        // Other runs would get signals before they are sent, and take long where they hang.
        let fits = |first: &Arc<Subject>| !first.run.outcome.signals && self.hangs < Options::HANGS;
        let Some(first) = self.first.clone().filter(|first| wanted && self.options.neighbours > 0 && fits(first))
        else {
            return Ok(());
        };
        // Bugs differ in what they need: switches in the middle of things, the wrong order of those who wait, or few switches.
        let policy = |nth: u64| match nth % 4 {
            0 => Policy::Priority,
            2 => Policy::Pct(Pct::default()),
            _ => Policy::Random,
        };
        for turn in 0.. {
            let made = turn * AT_A_TIME;
            self.chance_runs(&first, &policy, made..made + AT_A_TIME, true)?;
            if self.has_used_up_runs() {
                break;
            }
            self.tries = self.options.neighbours;
            self.wander()?;
        }
        Ok(())
    }

    /// Whether no run by chance is to be made any more.
    fn has_used_up_runs(&self) -> bool {
        let goes_on = self.failures() == 0 || self.options.extent.goes_on_after_failures();
        self.out_of_time() || !goes_on || self.hangs >= Options::HANGS
    }

    /// Runs the program by chance until it fails or no more runs are to be made; where it is said how many to make, a failure does
    /// not end it.
    fn chance_runs(
        &mut self,
        subject: &Arc<Subject>,
        policy: &dyn Fn(u64) -> Policy,
        which: std::ops::Range<u64>,
        considered: bool,
    ) -> Result<(), Error> {
        /// Runs whose plans are made at a time.
        const AT_A_TIME: u64 = 64;
        let mut made = which.start;
        let goes_on = |explorer: &Self| explorer.failures() == 0 || explorer.options.extent.goes_on_after_failures();
        while made < which.end && !self.out_of_time() && goes_on(self) {
            let number = AT_A_TIME.min(self.runs_left()).min(which.end - made);
            let seed = |nth: u64| self.seed(1 + nth);
            let ways = (made..made + number).map(|nth| (Schedule::default(), policy(nth), seed(nth))).collect();
            made += number;
            self.run_all(subject, ways, Phase::ByChance, &mut |explorer, run| {
                // In large programs nearly every run reads something for the first time: only other code, or who wrote, counts.
                if let Some(run) = run.filter(|_| considered) {
                    let behaviour = run.behaviour();
                    if explorer.history.novelty(&behaviour) != Novelty::None {
                        explorer.consider_new(run, behaviour, &subject.run, &mut Vec::new(), 0);
                    }
                }
                goes_on(explorer)
            })?;
        }
        Ok(())
    }

    /// How long one more run may take.
    fn limit(&self) -> Duration {
        limit(self.longest(), self.deadline)
    }

    /// How long a run may take at all.
    fn longest(&self) -> Duration {
        self.options.timeout.min((self.recorded * Options::SLOWER).max(Options::SHORT))
    }

    /// Runs in which chance decides who goes on; those that did something new, if those are wanted.
    fn at_random(&mut self, subject: &Arc<Subject>, explore: bool) -> Result<Vec<(Run, usize)>, Error> {
        let total = (self.options.neighbours / 2).min(self.tries) as u64;
        // Some bugs need switches in the middle of things, others just the wrong order of those who have to wait.
        let policy = |number: u64| if number.is_multiple_of(2) { Policy::Priority } else { Policy::Random };
        let ways = (0..total).map(|number| (Schedule::default(), policy(number), self.seed(1 + number / 2)));
        self.try_all(subject, explore, ways.collect())
    }

    /// Runs that are next to one that was examined; those that did something new, if those are wanted.
    fn neighbours(&mut self, subject: &Arc<Subject>, explore: bool) -> Result<Vec<(Run, usize)>, Error> {
        let most = self.options.neighbours.min(self.tries);
        let schedules = neighbours::neighbours(&subject.run, subject.from, most);
        self.try_all(subject, explore, schedules.into_iter().map(|schedule| (schedule, Policy::Stay, 0)).collect())
    }

    /// Runs the program in several ways, like a run, and looks at what it does.
    fn try_all(
        &mut self,
        subject: &Arc<Subject>,
        explore: bool,
        ways: Vec<(Schedule, Policy, u64)>,
    ) -> Result<Vec<(Run, usize)>, Error> {
        let mut new = Vec::new();
        let most = if explore { Options::NEW_RUNS } else { 0 };
        // Most of the time is for what was predicted.
        let until = Instant::now() + self.left() / 8;
        self.run_all(subject, ways, Phase::Tried, &mut |explorer, run| {
            explorer.tries = explorer.tries.saturating_sub(1);
            if let Some(run) = run {
                explorer.consider(run, &subject.run, &mut new, most);
            }
            Instant::now() < until && !explorer.has_tried_enough()
        })?;
        Ok(new)
    }

    /// Runs the program in several ways, like a run, and looks at each run for failures, until `ran` does not want another. `ran` is told
    /// of all of them, and shown those that did something else than the ones before.
    fn run_all(
        &mut self,
        subject: &Arc<Subject>,
        ways: Vec<(Schedule, Policy, u64)>,
        phase: Phase,
        ran: &mut dyn FnMut(&mut Self, Option<Run>) -> bool,
    ) -> Result<(), Error> {
        let total = ways.len() as u64;
        if !ways.is_empty() && !self.out_of_time() {
            let like = Some(&subject.run);
            let plans = ways.iter().map(|(schedule, policy, seed)| {
                let (policy, seed, schedule) = (*policy, *seed, Some(schedule));
                Plan { policy, seed, schedule, like, limit: None, silent: true, parks: false }
            });
            let plans: Vec<Plan<'_>> = plans.collect();
            let (program, timeout, deadline) = (self.program, self.longest(), self.deadline);
            let limit = move || limit(timeout, deadline);
            let mut done = 0;
            self.observer.see(Event::Trying { run: subject.id, done, total });
            program.run_each(&plans, &limit, &mut |run| {
                done += 1;
                self.observer.see(Event::Trying { run: subject.id, done, total });
                self.count(phase);
                if let Some(run) = &run {
                    self.watch(run, subject, false);
                }
                ran(self, run) && !self.out_of_time()
            })?;
        }
        self.observer.see(Event::Tried { run: subject.id });
        Ok(())
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Predicts from a run and replays what was predicted; the replays that did something new, if those are wanted.
    fn examine(&mut self, subject: &Arc<Subject>, explore: bool, depth: Depth) -> Result<Vec<(Run, usize)>, Error> {
        self.history.runs_like(&subject.run);
        let mut new = Vec::new();
        let mut answers: Vec<Answer> = Vec::new();
        let models = match depth {
            Depth::Whole => self.options.models.len(),
            Depth::HarmOnly => 1,
        };
        for (at, &model) in self.options.models.iter().take(models).enumerate() {
            // What an optimistic model says of what is no alarm is worth nothing, unless somebody asked for it.
            let little = at > 0 && self.options.quick_observations;
            let mut prediction = self.predict(subject, model, if little { Depth::HarmOnly } else { depth })?;
            self.history.name(&subject.trace, &mut prediction.findings);
            if depth == Depth::HarmOnly {
                // What was not decided there is not what the recorded run left undecided.
                prediction.incomplete.clear();
                prediction.may_read.clear();
            }
            // What the optimistic models add must be shown to be told.
            let must_show = at > 0;
            if must_show {
                let told: HashSet<&str> =
                    answers.iter().flat_map(|a| &a.prediction.findings).map(|finding| finding.id.as_str()).collect();
                prediction.findings.retain(|finding| !told.contains(finding.id.as_str()));
                prediction.incomplete.clear();
                prediction.partial = None;
                prediction.may_read.clear();
            }
            if subject.id.round > 1 {
                prediction.findings.retain(|finding| !self.history.is_reverse(&subject.trace, finding));
            }
            let replays = self.replay(subject, &mut prediction, must_show, explore, &mut new)?;
            self.observer.see(Event::Replayed { run: subject.id, model });
            let is_shown = |finding: &Finding| replays.get(&finding.id).is_some_and(|told| told.hits > 0);
            if must_show {
                keep_only(&mut prediction, is_shown);
            }
            if subject.id.round > 1 {
                // The first run that shows something tells it best.
                prediction.findings.retain(|finding| !self.history.has(finding) || is_shown(finding));
            }
            self.history.tell(&subject.trace, &prediction.findings);
            answers.push(Answer { model, prediction, replays });
        }
        let examined = Examined { run: subject.id, trace: Arc::clone(&subject.trace), answers };
        let has_findings = examined.answers.iter().any(|answer| !answer.prediction.findings.is_empty());
        if has_findings || subject.id.round == 1 {
            self.observer.keep(&subject.run, &examined)?;
        }
        self.observer.see(Event::RunExamined { examined: &examined });
        if has_findings || depth == Depth::Whole {
            self.exploration.examined.push(examined);
        }
        Ok(new)
    }

    fn predict(&mut self, subject: &Subject, model: Model, depth: Depth) -> Result<Prediction, Error> {
        let bound = self.options.properties.as_ref().map(|all| all.bind(&subject.trace, &self.declared));
        let properties = match bound {
            Some(Err(wrong)) if subject.id.round == 1 => return Err(wrong),
            // A replay that went another way may not even touch what the property is about.
            Some(Err(_)) | None => Vec::new(),
            Some(Ok(properties)) => properties,
        };
        let (run, total) = (subject.id, subject.trace.input_len());
        self.observer.see(Event::Predicting { run, model, done: 0, total });
        let prediction = {
            let deadline = self.deadline;
            // Half of what is left for each step keeps something for replays and later rounds; what only a replay makes true is
            // worth less.
            let share = if self.options.models.first() == Some(&model) { 2 } else { 8 };
            let budget = || Some(deadline.saturating_duration_since(Instant::now()) / share);
            let observer = Mutex::new(&mut *self.observer);
            let progress = |done, total| {
                if let Ok(mut observer) = observer.lock() {
                    observer.see(Event::Predicting { run, model, done, total });
                }
            };
            let mut options = portent_predict::Options { model, ..self.options.search.clone() };
            if depth == Depth::HarmOnly {
                options.kinds.retain(|kind| matches!(kind, BugKind::Race | BugKind::Deadlock | BugKind::LostUpdate));
            }
            let request =
                Request { options: &options, properties: &properties, width: self.options.width, budget: &budget };
            let control = Control { interrupt: Some(self.interrupt), progress: Some(&progress) };
            properties::predict(&subject.trace, &request, &control)
        };
        self.exploration.errors.extend(prediction.errors.iter().cloned());
        self.observer.see(Event::Predicted { run, model, prediction: &prediction });
        Ok(prediction)
    }
}

/// How long one run may take that begins now.
fn limit(timeout: Duration, deadline: Instant) -> Duration {
    timeout.min(deadline.saturating_duration_since(Instant::now()) + Duration::from_secs(1))
}

/// Leaves out what was not shown, and properties of which that leaves nothing.
fn keep_only(prediction: &mut Prediction, is_shown: impl Fn(&Finding) -> bool) {
    prediction.findings.retain(is_shown);
    let violated = prediction.findings.iter().filter_map(|finding| finding.bug.violated());
    let broken: HashSet<&str> = violated.map(|violated| &*violated.name).collect();
    prediction.properties.retain(|told| broken.contains(told.name.as_str()));
}
