//! Exploring one program: the loop of `portent-explore`, what the terminal shows of it, and the runs and findings that it leaves
//! for `portent replay`.
//!
//! Which programs are explored, and what comes of the report, is for the commands: `check` and `demo`.

use crate::failure::Failure;
use crate::figures::counted;
use crate::interrupt::{self, INTERRUPTED};
use crate::reports;
use crate::searches::Search;
use crate::terminal::{self, Bar, Unit};
use portent_explore::{
    Answer, Error, Event, Examined, Exploration, Observer, Options, Phase, Program, Run, RunId, SavedSearch,
};
use portent_native::record::not_covered;
use portent_order::Model;
use portent_predict::BugKind;
use portent_report::{Explored, Extras, Report, Settings, json};
use portent_trace::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the runs of a program are left, and how its findings are told.
pub(crate) struct Target<'a> {
    /// The recorded run; the others are beside it.
    pub(crate) path: &'a Path,
    /// What a command names to replay a finding: for each run its own file if nothing is said here.
    pub(crate) shown: Option<&'a Path>,
    /// How its search for all behaviours is left beside the recorded run, if it is.
    pub(crate) search: Option<&'a Search>,
    /// Which of the report's processes it is, where there are several.
    pub(crate) process: Option<usize>,
    /// It cannot be run again: no command replays its findings.
    pub(crate) once: bool,
}

/// Explores a program, shows how that goes on, and leaves its runs at `path` and beside it; what there is to report.
pub(crate) fn check(
    program: &dyn Program,
    options: &Options,
    path: &Path,
    settings: Settings,
) -> Result<(Report, Exploration), Failure> {
    let mut report = Report::new(Settings { kinds: options.search.kinds.clone(), ..settings });
    let target = Target { path, shown: None, search: None, process: None, once: false };
    let (exploration, warnings) = explore(program, options, &target, &mut report)?;
    report.scope = warnings;
    report.explored = Some(explored(&exploration));
    Ok((report, exploration))
}

/// How much of what a program can do was run.
pub(crate) fn explored(exploration: &Exploration) -> Explored {
    let runs = exploration.runs;
    match &exploration.behaviours {
        None => Explored { runs, ..Explored::default() },
        Some(behaviours) => {
            let complete = behaviours.are_all();
            let assumptions = if complete { behaviours.assumptions() } else { Vec::new() };
            let unproven = behaviours.unproven.clone();
            Explored { runs, behaviours: behaviours.seen, complete, left: behaviours.left, assumptions, unproven }
        }
    }
}

/// What the runs of all explorations were made for, and how many there were.
pub(crate) fn phases(explorations: &[Exploration]) -> Vec<(&'static str, u64)> {
    let mut phases: BTreeMap<Phase, u64> = BTreeMap::new();
    for (phase, runs) in explorations.iter().flat_map(|one| &one.phases) {
        *phases.entry(*phase).or_default() += runs;
    }
    phases.into_iter().map(|(phase, runs)| (phase.name(), runs)).collect()
}

/// Explores a program and adds what comes out to a report; what could not be recorded as it should be is returned as well.
pub(crate) fn explore(
    program: &dyn Program,
    options: &Options,
    target: &Target<'_>,
    report: &mut Report,
) -> Result<(Exploration, Vec<String>), Failure> {
    let kinds = &options.search.kinds;
    let mut screen = Screen {
        target,
        kinds,
        kept: BTreeSet::new(),
        bar: None,
        ended_by: Vec::new(),
        warnings: Vec::new(),
        holes: Vec::new(),
    };
    let exploration = portent_explore::explore(program, options, &INTERRUPTED, &mut screen)?;
    let mut warnings = [screen.warnings, screen.holes].concat();
    if exploration.cut_short > 0 {
        let runs = counted(exploration.cut_short, "run");
        warnings.push(format!("what was recorded of {runs} is cut short: that nothing was found there says little"));
        report.cut_short += exploration.cut_short;
    }
    keep_failures(&exploration, kinds, target)?;
    for examined in exploration.failures.iter().chain(&exploration.examined) {
        add(report, examined.clone(), target);
    }
    Ok((exploration, warnings))
}

/// Leaves the failures with the findings of the runs that they can be replayed from.
fn keep_failures(exploration: &Exploration, kinds: &[BugKind], target: &Target<'_>) -> Result<(), Failure> {
    let runs: BTreeSet<RunId> = exploration.failures.iter().map(|examined| examined.run).collect();
    for run in runs {
        let of_run = exploration.failures.iter().chain(&exploration.examined).filter(|examined| examined.run == run);
        save_findings(&path_of(target.path, run), kinds, of_run)?;
    }
    Ok(())
}

/// Leaves findings beside the trace that they can be replayed from.
fn save_findings<'a>(
    path: &Path,
    kinds: &[BugKind],
    examined: impl IntoIterator<Item = &'a Examined>,
) -> Result<(), Error> {
    let mut report = Report::new(Settings { kinds: kinds.to_vec(), ..Settings::default() });
    for examined in examined {
        add(
            &mut report,
            examined.clone(),
            &Target { path, shown: Some(path), search: None, process: None, once: false },
        );
    }
    let path = reports::findings_beside(path);
    reports::save_file(&path, |out| json::write(&report, out)).map_err(|error| {
        Error::refused(format!("{}: {error}", path.display()), "findings are left beside the trace: see --output")
    })
}

/// Where a run is left: the first at the path itself, others beside it.
fn path_of(path: &Path, run: RunId) -> PathBuf {
    match run {
        RunId { round: 1, number: 0 } => path.to_owned(),
        RunId { round, number } => path.with_extension(format!("round{round}-{number}.portent")),
    }
}

/// Adds all that a run told to a report.
fn add(report: &mut Report, examined: Examined, target: &Target<'_>) {
    let own = path_of(target.path, examined.run);
    let command = format!("portent replay {} --finding", reports::quoted(target.shown.unwrap_or(&own)));
    let replay = (!target.once).then_some(command);
    for Answer { model, prediction, replays } in examined.answers {
        let round = Some(examined.run.round);
        let extras = Extras { round, replays, replay: replay.clone(), process: target.process };
        report.add(examined.trace.clone(), model, prediction, &extras);
    }
}

/// What the terminal shows of the loop, and where its runs are left.
struct Screen<'a> {
    target: &'a Target<'a>,
    kinds: &'a [BugKind],
    /// Recorded runs that are in their files already.
    kept: BTreeSet<RunId>,
    bar: Option<Bar>,
    /// Signals by which somebody ended them.
    ended_by: Vec<i32>,
    /// What could not be recorded as it should be.
    warnings: Vec<String>,
    /// What the first run does not cover.
    holes: Vec<String>,
}

impl Screen<'_> {
    /// Says by what the recorded runs were ended.
    fn tell_interruptions(&mut self) {
        for signal in self.ended_by.drain(..) {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            let text = format!("{name} ended the recorded run; what it did until then is examined");
            terminal::message("interrupted", &text);
        }
    }

    /// Says what could not be recorded as it should be, each once.
    fn tell_warnings(&mut self, warnings: &[String]) {
        for warning in warnings {
            if !self.warnings.contains(warning) {
                terminal::message("warning", warning);
                self.warnings.push(warning.clone());
            }
        }
    }

    fn progress(&mut self, label: impl FnOnce() -> String, unit: Unit, done: u64, total: u64) {
        self.bar.get_or_insert_with(|| Bar::new(label(), unit)).update(Progress { done, total: Some(total) });
    }
}

fn predicting(round: u32, model: Model) -> String {
    match round {
        1 => format!("predicting ({})", model.name()),
        _ => format!("predicting ({}, round {round})", model.name()),
    }
}

/// How far a search is.
fn searching(runs: u64, behaviours: u64, left: u64, failures: u64) -> String {
    let failures = if failures == 0 { "no failure".to_owned() } else { counted(failures, "failure") };
    let left = counted(left, "alternative");
    format!("exploring: {}, {}, {left} left, {failures}", counted(runs, "run"), counted(behaviours, "behaviour"))
}

impl Observer for Screen<'_> {
    fn see(&mut self, event: Event<'_>) {
        match event {
            Event::RunRecorded { run, recorded } => {
                if run == (RunId { round: 1, number: 0 }) {
                    self.holes = not_covered(recorded);
                }
                self.ended_by.extend(recorded.outcome.interrupted_by());
                self.tell_warnings(&recorded.outcome.warnings);
            }
            Event::Predicting { run, model, done, total } => {
                if self.bar.is_none() {
                    self.tell_interruptions();
                    // Until now Ctrl-C has been for the program that is recorded.
                    interrupt::listen();
                }
                self.progress(|| predicting(run.round, model), Unit::Events, done, total);
            }
            Event::Predicted { prediction, .. } => {
                self.bar = None;
                for error in &prediction.errors {
                    terminal::message("error", &format!("internal: {error}"));
                    terminal::message("help", "this is a bug in portent: please report it with the trace");
                }
            }
            Event::Replaying { done, total, .. } => {
                self.progress(|| "replaying".into(), Unit::Findings, done, total);
            }
            Event::Trying { done, total, .. } => {
                self.progress(|| "trying other schedules".into(), Unit::Runs, done, total);
            }
            Event::Searching { runs, behaviours, left, failures } => {
                let bar = self.bar.get_or_insert_with(|| Bar::new("exploring", Unit::Behaviours));
                bar.tell(|| searching(runs, behaviours, left, failures));
            }
            Event::Settling { done, total } if done < total => {
                self.progress(|| "shortening schedules".into(), Unit::Findings, done, total);
            }
            Event::Replayed { .. } | Event::Tried { .. } | Event::Searched | Event::Settling { .. } => self.bar = None,
            _ => {}
        }
    }

    fn keep(&mut self, run: &Run, examined: &Examined) -> Result<(), Error> {
        let path = path_of(self.target.path, examined.run);
        if !self.kept.contains(&examined.run) {
            run.save(&path)?;
        }
        save_findings(&path, self.kinds, [examined])
    }

    fn keep_run(&mut self, id: RunId, run: &Run) -> Result<(), Error> {
        self.kept.insert(id);
        run.save(&path_of(self.target.path, id))
    }

    fn keep_search(&mut self, search: &SavedSearch) -> Result<(), Error> {
        self.target.search.map_or(Ok(()), |searches| searches.save(self.target.path, search))
    }
}
