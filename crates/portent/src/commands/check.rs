//! `portent check`: record, predict, replay, report.
//!
//! Round 1 examines the recorded runs. Every prediction is replayed, and a replayed run is a run like any other: where it
//! did something that no run before it did, the next round examines it too, so that bugs behind branches that the recorded
//! run did not take are reached.
//!
//! The default model of a prediction is `reads`, which has no false alarms. What the optimistic `sync` model adds is
//! replayed as well, and told only when a replay shows it.

use super::predict::{interrupted, watched};
use crate::args::CheckArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::reports::{self, Filters};
use crate::spec::{Spec, merge};
use crate::terminal::{self, Bar, Unit};
use portent_native::record::recorder::{Subject, path_of_round};
use portent_native::replay::finding::Finding as Replayable;
use portent_native::replay::{Replay, Script};
use portent_native::run::examine;
use portent_native::run::launch::Target;
use portent_order::Model;
use portent_predict::{
    Bug, BugKind, Control, Finding, Nondeterminism, Options, Place, Prediction, PropertyOptions, check_properties,
};
use portent_report::{Extras, Replayed, Report, Settings, json};
use portent_runtime::plan::{Plan, policy};
use portent_trace::{Progress, Trace};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long all predictions and all replays may take, unless --budget says otherwise.
const BUDGET: Duration = crate::args::defaults::BUDGET;
/// Replays with new behaviour that one round examines.
const NEW_RUNS: usize = 8;

/// Checks the program, and says by the exit status what came out.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let filters = Filters::read(&args.report)?;
    let started = Instant::now();
    let (check, failed) = check(args, false)?;
    check.finish(filters, failed, started)
}

/// Checks the program, whose output goes nowhere; what there is to report, and whether a recorded run failed.
pub(crate) fn silently(args: &CheckArgs) -> Result<(Report, bool), Failure> {
    let (check, failed) = check(args, true)?;
    Ok((check.report, failed))
}

fn check(args: &CheckArgs, silent: bool) -> Result<(Check<'_>, bool), Failure> {
    let options = args.search.options()?;
    let spec = args.search.spec.as_deref().map(Spec::read).transpose()?;
    let models = match args.model {
        None => vec![Model::Reads, Model::Sync],
        Some(name) => vec![name.model()],
    };
    let (mut target, nature) = target(args)?;
    target.silent = silent;
    let path = output(args, &target.program);
    let settings = Settings {
        input: args.program.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
        kinds: options.kinds.clone(),
        sources: args.report.sources(&path),
        replay: None,
    };
    let program = target.program.clone();
    let deadline = Instant::now() + options.budget.unwrap_or(BUDGET);
    let mut check = Check {
        args,
        options,
        models,
        target,
        report: Report::new(settings),
        deadline,
        behaviour: HashSet::new(),
        confirmed: HashSet::new(),
        errors: false,
        not_replayed: 0,
        declared: match spec {
            Some(_) => portent_native::declarations(&program),
            None => BTreeMap::new(),
        },
        spec,
    };
    let mut subjects = Vec::new();
    for number in 0..args.runs.get() {
        let path = if number == 0 { path.clone() } else { path_of_round(&path, 1, number as usize) };
        let plan = match number {
            0 => Plan::default(),
            seed => Plan { policy: policy::RANDOM, seed: seed.into(), ..Plan::default() },
        };
        let limit = Duration::from_secs_f64(args.timeout);
        let subject = Subject::record(&check.target, &plan, limit, nature, path, args.search.functions())?;
        subjects.push(subject);
    }
    let failed = check.tell_failures(&subjects);
    for round in 1..=args.rounds.get() {
        let mut next = Vec::new();
        for subject in &subjects {
            next.extend(check.examine(subject, round, round < args.rounds.get())?);
        }
        if next.is_empty() {
            break;
        }
        subjects = check.new_subjects(next, &path, round + 1)?;
    }
    Ok((check, failed))
}

fn target(args: &CheckArgs) -> Result<(Target, examine::Nature), Failure> {
    let Some(program) = args.program.first() else {
        return Err(Failure::usage("no program is given", "name it after `--`: portent check -- ./program"));
    };
    let path = examine::find(program, &std::env::current_dir().unwrap_or_default())?;
    let nature = examine::examine(&path)?;
    let mut target = Target::here(path, args.program.clone())?;
    target.input = match &args.stdin {
        None => None,
        Some(input) => {
            let help = "--stdin names a file that the program reads in every run";
            let found = std::path::absolute(input).and_then(|path| path.metadata().map(|_| path));
            Some(found.map_err(|error| Failure::usage(format!("{}: {error}", input.display()), help))?)
        }
    };
    Ok((target, nature))
}

fn output(args: &CheckArgs, program: &Path) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        let mut name = program.file_name().unwrap_or_default().to_owned();
        name.push(".portent");
        name.into()
    })
}

struct Check<'a> {
    args: &'a CheckArgs,
    options: Options,
    models: Vec<Model>,
    target: Target,
    report: Report,
    deadline: Instant,
    /// What all runs that were or will be examined do.
    behaviour: HashSet<(u16, String)>,
    /// Ids of findings that a replay has shown.
    confirmed: HashSet<String>,
    errors: bool,
    not_replayed: usize,
    spec: Option<Spec>,
    /// Where variables are declared.
    declared: BTreeMap<String, String>,
}

impl Check<'_> {
    /// Says how the recorded runs themselves went wrong; whether one did.
    fn tell_failures(&self, subjects: &[Subject]) -> bool {
        for failed in subjects.iter().flat_map(|subject| &subject.failed) {
            terminal::message("observed", &format!("the recorded run failed: {failed}"));
        }
        for signal in subjects.iter().filter_map(|subject| subject.ended_by) {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            let text = format!("{name} ended the recorded run; what it did until then is examined");
            terminal::message("interrupted", &text);
        }
        subjects.iter().any(|subject| !subject.failed.is_empty())
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Predicts from a run, replays what was predicted, and reports it; the replays that did something new.
    fn examine(&mut self, subject: &Subject, round: u32, explore: bool) -> Result<Vec<Replay>, Failure> {
        self.behaviour.extend(Subject::behaviour(&subject.run));
        let mut new = Vec::new();
        let mut own = Report::new(Settings { kinds: self.options.kinds.clone(), ..Settings::default() });
        let mut kept = false;
        for (at, model) in self.models.clone().into_iter().enumerate() {
            let mut prediction = self.predict(subject, model, round)?;
            // What the optimistic model adds must be shown to be told.
            let must_show = at > 0;
            if must_show {
                let known: HashSet<&str> = own.stories.iter().map(|story| story.finding.id.as_str()).collect();
                prediction.findings.retain(|finding| !known.contains(finding.id.as_str()));
                prediction.incomplete.clear();
                prediction.partial = None;
                prediction.may_read.clear();
            }
            if round > 1 {
                prediction.findings.retain(|finding| !self.is_reverse(&subject.trace, finding));
            }
            let (replays, fresh) = self.replay(subject, &prediction, explore, must_show)?;
            new.extend(fresh);
            if must_show {
                prediction.findings.retain(|finding| replays.get(&finding.id).is_some_and(|told| told.hits > 0));
                let names: HashSet<&str> = prediction
                    .findings
                    .iter()
                    .filter_map(|finding| finding.bug.violated())
                    .map(|violated| &*violated.name)
                    .collect();
                prediction.properties.retain(|told| names.contains(told.name.as_str()));
            }
            if round > 1 {
                // The first run that shows something tells it best.
                prediction.findings.retain(|finding| {
                    let known = self.report.stories.iter().any(|story| story.finding.id == finding.id);
                    !known || replays.get(&finding.id).is_some_and(|told| told.hits > 0)
                });
            }
            kept |= !prediction.findings.is_empty();
            let command = format!("portent replay {} --finding", subject.path.display());
            let extras = Extras { round: Some(round), replays, replay: Some(command) };
            own.add(subject.trace.clone(), model, prediction.clone(), &extras);
            self.report.add(subject.trace.clone(), model, prediction, &extras);
        }
        if kept || round == 1 {
            subject.save()?;
            let path = super::replay::beside(&subject.path);
            let text = json::document(&own).map_err(std::io::Error::from)?;
            std::fs::write(&path, text).map_err(|error| {
                Failure::usage(
                    format!("{}: {error}", path.display()),
                    "findings are left beside the trace: see --output",
                )
            })?;
        }
        Ok(new)
    }

    fn predict(&mut self, subject: &Subject, model: Model, round: u32) -> Result<Prediction, Failure> {
        let mut options = self.options.clone();
        options.model = model;
        // Half of what is left for each step keeps something for replays and later rounds.
        options.budget = Some(self.left() / 2);
        let name = match round {
            1 => format!("({})", model.name()),
            _ => format!("({}, round {round})", model.name()),
        };
        let mut prediction = watched(&subject.trace, &options, &name);
        let bound = self.spec.as_ref().map(|spec| spec.bind(&subject.trace, &self.declared));
        match bound {
            Some(Ok(properties)) => {
                let bounds = PropertyOptions {
                    width: self.args.search.width,
                    budget: Some(self.left() / 2),
                    ..PropertyOptions::of(model)
                };
                merge(&mut prediction, check_properties(&subject.trace, &properties, &bounds, &Control::default()));
            }
            Some(Err(wrong)) if round == 1 => return Err(wrong),
            // A replay that went another way may not even touch what the property is about.
            Some(Err(_)) | None => {}
        }
        for error in &prediction.errors {
            terminal::message("error", &format!("internal: {error}"));
            terminal::message("help", "this is a bug in portent: please report it with the trace");
            self.errors = true;
        }
        Ok(prediction)
    }

    /// Replays every finding; what was seen, and the replays that did something new.
    fn replay(
        &mut self,
        subject: &Subject,
        prediction: &Prediction,
        explore: bool,
        optimistic: bool,
    ) -> Result<(BTreeMap<String, Replayed>, Vec<Replay>), Failure> {
        let mut told = BTreeMap::new();
        let mut new = Vec::new();
        let mut bar = Bar::new("replaying", Unit::Findings);
        for (done, finding) in prediction.findings.iter().enumerate() {
            bar.update(Progress { done: done as u64, total: Some(prediction.findings.len() as u64) });
            if finding.witness.is_none() || self.args.times == 0 || self.confirmed.contains(&finding.id) {
                continue;
            }
            if self.left().is_zero() || interrupted() {
                self.not_replayed += usize::from(!optimistic);
                continue;
            }
            let (schedule, wanted) = Replayable::of(&subject.trace, finding).script(&subject.run)?;
            let mut target = self.target.clone();
            target.silent = true;
            let limit = Some(Duration::from_secs_f64(self.args.timeout).min(self.left() + Duration::from_secs(1)));
            let script = Script {
                recording: &subject.recording,
                original: &subject.run,
                target,
                schedule,
                wanted,
                limit,
                trap: false,
            };
            let mut replayed = Replayed::default();
            for _ in 0..self.args.times {
                let replay = script.run()?;
                replayed.runs += 1;
                replayed.hits += u32::from(replay.hit);
                if replay.hit && replayed.showed.is_none() {
                    let failed = replay.failed.iter().filter(|text| !replay.evidence.contains(text));
                    let said: Vec<_> = replay.evidence.iter().chain(failed).cloned().collect();
                    replayed.showed = (!said.is_empty()).then(|| said.join("; "));
                }
                replayed.diverged = replayed.diverged.or_else(|| replay.diverged.clone());
                let is_new = explore && new.len() < NEW_RUNS && self.is_new(&replay);
                let missed = !replay.hit;
                if is_new {
                    self.behaviour.extend(Subject::behaviour(&replay.run));
                    new.push(replay);
                }
                // A schedule is followed the same way every time: what was not seen will not be.
                if missed {
                    break;
                }
            }
            if replayed.hits > 0 {
                self.confirmed.insert(finding.id.clone());
                // One that was seen has nothing to explain.
                replayed.diverged = None;
            }
            told.insert(finding.id.clone(), replayed);
        }
        Ok((told, new))
    }

    /// Whether a finding only leads back: a read that saw one write and could see another was told before, from a run in
    /// which it saw the other.
    fn is_reverse(&self, trace: &Trace, finding: &Finding) -> bool {
        let Bug::Nondeterminism(
            Nondeterminism::Read { read, writer, challenger, .. }
            | Nondeterminism::FinalValue { end: read, writer, challenger, .. },
        ) = &finding.bug
        else {
            return false;
        };
        let at = |place: &Place| place.location.map(|at| trace.names().location(at).to_string());
        let reverse: Vec<Option<String>> = [read, challenger, writer].map(at).into();
        self.report.stories.iter().any(|story| {
            let told = story.places.iter().map(|spot| spot.at.as_ref().map(|at| at.text.clone()));
            story.finding.kind() == BugKind::Nondeterminism
                && story.finding.object == finding.object
                && told.eq(reverse.iter().cloned())
        })
    }

    /// Whether a replay did something that no run before it did.
    fn is_new(&self, replay: &Replay) -> bool {
        Subject::behaviour(&replay.run).iter().any(|what| !self.behaviour.contains(what))
    }

    fn new_subjects(&self, replays: Vec<Replay>, path: &Path, round: u32) -> Result<Vec<Subject>, Failure> {
        let subject = |(number, replay)| {
            Subject::of_replay(replay, path_of_round(path, round, number), self.args.search.functions())
        };
        Ok((1..).zip(replays).map(subject).collect::<Result<_, _>>()?)
    }

    fn finish(mut self, filters: Filters, failed: bool, started: Instant) -> Result<ExitCode, Failure> {
        filters.apply(&mut self.report);
        self.args.report.write(&self.report)?;
        if self.not_replayed > 0 {
            let why = if interrupted() { "interrupted" } else { "out of time" };
            let advice = if interrupted() { "" } else { "; --budget gives it more" };
            let text = format!("{why}: {} not replayed{advice}", counted(self.not_replayed as u64, "finding"));
            terminal::message("warning", &text);
        }
        terminal::message("checked", &format!("in {:.1} s", started.elapsed().as_secs_f64()));
        let status = reports::status(&self.report, self.errors, self.args.search.strict);
        Ok(if failed { ExitCode::Findings } else { status })
    }
}
