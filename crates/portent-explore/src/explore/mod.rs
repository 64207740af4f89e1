//! Record → predict → replay → next round.
//!
//! Round 1 examines the recorded runs. Every prediction is replayed, and a replayed run is a run like any other: where it
//! did something that no run before it did, the next round examines it too, so that bugs behind branches that the recorded
//! run did not take are reached.
//!
//! Of several models the first is believed. What the others, more optimistic, add is replayed as well, and kept only if a
//! replay shows it.

mod event;
mod history;

pub use event::{Answer, Event, Examined, Exploration, Observer, Replayed, RunId, Stop};

use crate::error::Error;
use crate::program::{Plan, Policy, Program};
use crate::properties::{self, Properties, Request};
use crate::replay::{self, Replay, Script};
use crate::run::Run;
use history::History;
use portent_order::Model;
use portent_predict::{Control, Finding, Prediction};
use portent_trace::{FunctionBlocks, Trace};
use std::collections::{BTreeMap, HashSet};
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
    pub runs: u32,
    /// Rounds, at most.
    pub rounds: u32,
    /// Replays of each finding.
    pub times: u32,
    /// How long everything may take, up to what cannot be interrupted.
    pub budget: Duration,
    /// How long one run of the program may take.
    pub timeout: Duration,
}

impl Options {
    /// Runs that are recorded, unless said otherwise.
    pub const RUNS: u32 = 1;
    /// Rounds, unless said otherwise.
    pub const ROUNDS: u32 = 2;
    /// Replays of each finding, unless said otherwise.
    pub const TIMES: u32 = 3;
    /// The time for one run of the program, unless said otherwise.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
    /// The default model, which has no false alarms, and the optimistic one.
    pub const MODELS: [Model; 2] = [Model::Reads, Model::Sync];
    /// The time for everything, unless said otherwise.
    pub const BUDGET: Duration = Duration::from_secs(120);
    /// Replays with new behaviour that each examined run and model may add to the next round.
    const NEW_RUNS: usize = 8;
}

impl Default for Options {
    fn default() -> Self {
        Options {
            search: portent_predict::Options::default(),
            models: Self::MODELS.to_vec(),
            properties: None,
            width: portent_predict::lattice::Bounds::WIDTH,
            functions: Box::new(|| FunctionBlocks::BelowRoots),
            runs: Self::RUNS,
            rounds: Self::ROUNDS,
            times: Self::TIMES,
            budget: Self::BUDGET,
            timeout: Self::TIMEOUT,
        }
    }
}

/// Longer than anybody waits; clocks can count it.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Explores a program until nothing new comes up, the rounds or the time are over, or `interrupt` is set; what is known then.
///
/// # Errors
/// When the program cannot be run, a property does not fit it, or a run could not be kept.
pub fn explore(
    program: &dyn Program,
    options: &Options,
    interrupt: &AtomicBool,
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
        declared,
        history: History::default(),
        confirmed: HashSet::new(),
        exploration: Exploration::default(),
    };
    explorer.all_rounds()?;
    let Explorer { mut exploration, observer, .. } = explorer;
    let partial = |answer: &Answer| answer.prediction.partial.is_some();
    let is_partial = exploration.not_replayed > 0 || exploration.examined.iter().flat_map(|e| &e.answers).any(partial);
    exploration.stopped =
        is_partial.then(|| if interrupt.load(Ordering::Relaxed) { Stop::Interrupted } else { Stop::OutOfTime });
    observer.see(Event::Done { exploration: &exploration });
    Ok(exploration)
}

/// A run that is to be examined.
struct Subject {
    id: RunId,
    run: Run,
    trace: Arc<Trace>,
}

struct Explorer<'a> {
    program: &'a dyn Program,
    options: &'a Options,
    interrupt: &'a AtomicBool,
    observer: &'a mut dyn Observer,
    deadline: Instant,
    /// Where variables are declared.
    declared: BTreeMap<String, String>,
    history: History,
    /// Ids of findings that a replay has shown.
    confirmed: HashSet<String>,
    exploration: Exploration,
}

impl Explorer<'_> {
    fn all_rounds(&mut self) -> Result<(), Error> {
        let mut subjects = self.record()?;
        self.exploration.failed = subjects.iter().any(|subject| !subject.run.failures().is_empty());
        for round in 1..=self.options.rounds {
            let mut next = Vec::new();
            for subject in subjects {
                next.extend(self.examine(&subject, round < self.options.rounds)?);
            }
            self.observer.see(Event::RoundDone { round, new: next.len() });
            if next.is_empty() {
                break;
            }
            let id = |number| RunId { round: round + 1, number };
            let subject = |(number, replay): (usize, Replay)| self.subject(id(number), replay.run);
            subjects = (1..).zip(next).map(subject).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// The runs of the first round.
    fn record(&mut self) -> Result<Vec<Subject>, Error> {
        let mut subjects = Vec::new();
        for number in 0..self.options.runs {
            let id = RunId { round: 1, number: number as usize };
            let policy = if number == 0 { Policy::Stay } else { Policy::Random };
            let limit = Some(self.options.timeout);
            self.observer.see(Event::RunStarted { run: id });
            let run = self.program.run(&Plan { policy, seed: number.into(), limit, ..Plan::default() })?;
            self.observer.see(Event::RunRecorded { run: id, recorded: &run });
            subjects.push(self.subject(id, run)?);
        }
        Ok(subjects)
    }

    fn subject(&self, id: RunId, run: Run) -> Result<Subject, Error> {
        let trace = run.trace((self.options.functions)()).map_err(|error| error.in_input(&id.to_string()))?;
        Ok(Subject { id, run, trace: Arc::new(trace) })
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Predicts from a run and replays what was predicted; the replays that did something new, if those are wanted.
    fn examine(&mut self, subject: &Subject, explore: bool) -> Result<Vec<Replay>, Error> {
        self.history.runs_like(&subject.run);
        let mut new = Vec::new();
        let mut answers: Vec<Answer> = Vec::new();
        for (at, &model) in self.options.models.iter().enumerate() {
            let mut prediction = self.predict(subject, model)?;
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
            let replays = self.replay(subject, &prediction, must_show, explore, &mut new)?;
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
        self.exploration.examined.push(examined);
        Ok(new)
    }

    fn predict(&mut self, subject: &Subject, model: Model) -> Result<Prediction, Error> {
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
            // Half of what is left for each step keeps something for replays and later rounds.
            let budget = || Some(deadline.saturating_duration_since(Instant::now()) / 2);
            let observer = Mutex::new(&mut *self.observer);
            let progress = |done, total| {
                if let Ok(mut observer) = observer.lock() {
                    observer.see(Event::Predicting { run, model, done, total });
                }
            };
            let options = portent_predict::Options { model, ..self.options.search.clone() };
            let request =
                Request { options: &options, properties: &properties, width: self.options.width, budget: &budget };
            let control = Control { interrupt: Some(self.interrupt), progress: Some(&progress) };
            properties::predict(&subject.trace, &request, &control)
        };
        self.exploration.errors.extend(prediction.errors.iter().cloned());
        self.observer.see(Event::Predicted { run, model, prediction: &prediction });
        Ok(prediction)
    }

    /// Replays every finding: what was seen, by its id. Replays that did something new go to `new`.
    fn replay(
        &mut self,
        subject: &Subject,
        prediction: &Prediction,
        optimistic: bool,
        explore: bool,
        new: &mut Vec<Replay>,
    ) -> Result<BTreeMap<String, Replayed>, Error> {
        let (run, total) = (subject.id, prediction.findings.len() as u64);
        let most = new.len() + if explore { Options::NEW_RUNS } else { 0 };
        let mut told = BTreeMap::new();
        for (done, finding) in (0..).zip(&prediction.findings) {
            self.observer.see(Event::Replaying { run, done, total });
            if finding.witness.is_none() || self.options.times == 0 || self.confirmed.contains(&finding.id) {
                continue;
            }
            if self.left().is_zero() || self.interrupt.load(Ordering::Relaxed) {
                self.exploration.not_replayed += usize::from(!optimistic);
                continue;
            }
            let (schedule, wanted) = replay::Finding::of(&subject.trace, finding).script(&subject.run)?;
            let limit = Some(self.options.timeout.min(self.left() + Duration::from_secs(1)));
            let script =
                Script { program: self.program, original: &subject.run, schedule, wanted, limit, silent: true };
            let mut replayed = Replayed::default();
            for _ in 0..self.options.times {
                let replay = script.run()?;
                self.observer.see(Event::ReplaySeen { run, finding, replay: &replay });
                replayed.add(&replay);
                if replay.hit && self.confirmed.insert(finding.id.clone()) {
                    self.observer.see(Event::Confirmed { run, finding });
                }
                let missed = !replay.hit;
                if new.len() < most && self.history.is_new(&replay.run) {
                    self.history.runs_like(&replay.run);
                    new.push(replay);
                }
                // A schedule is followed the same way every time: what was not seen will not be.
                if missed {
                    break;
                }
            }
            if replayed.hits > 0 {
                // One that was seen has nothing to explain.
                replayed.diverged = None;
            }
            told.insert(finding.id.clone(), replayed);
        }
        Ok(told)
    }
}

/// Leaves out what was not shown, and properties of which that leaves nothing.
fn keep_only(prediction: &mut Prediction, is_shown: impl Fn(&Finding) -> bool) {
    prediction.findings.retain(is_shown);
    let violated = prediction.findings.iter().filter_map(|finding| finding.bug.violated());
    let broken: HashSet<&str> = violated.map(|violated| &*violated.name).collect();
    prediction.properties.retain(|told| broken.contains(told.name.as_str()));
}

impl Replayed {
    /// One more replay.
    fn add(&mut self, replay: &Replay) {
        self.runs += 1;
        self.hits += u32::from(replay.hit);
        if replay.hit && self.showed.is_none() {
            let failed = replay.failed.iter().filter(|text| !replay.evidence.contains(text));
            let said: Vec<_> = replay.evidence.iter().chain(failed).cloned().collect();
            self.showed = (!said.is_empty()).then(|| said.join("; "));
        }
        if self.diverged.is_none() {
            self.diverged.clone_from(&replay.diverged);
        }
    }
}
