//! `portent check`: record, predict, replay, report.
//!
//! The loop itself is `portent-explore`'s. Here are its options, what the terminal shows of it, and where runs and findings
//! are left for `portent replay`.

use crate::args::CheckArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::interrupt::{self, INTERRUPTED};
use crate::reports::{self, Filters};
use crate::terminal::{self, Bar, Unit};
use portent_explore::{Answer, Error, Event, Examined, Exploration, Observer, Options, Properties, Run, RunId, Stop};
use portent_native::record::NativeProgram;
use portent_native::run::examine;
use portent_native::run::launch::Invocation;
use portent_order::Model;
use portent_predict::BugKind;
use portent_report::{Explored, Extras, Report, Settings, json};
use portent_trace::{Progress, TraceError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Checks the program, and says by the exit status what came out.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let filters = Filters::read(&args.report)?;
    let started = Instant::now();
    let options = options(args)?;
    let program = program(args)?;
    let path = args.output.clone().unwrap_or_else(|| beside(&program));
    let words = args.program.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let settings = Settings { same_output: args.same_output, ..args.report.settings(&args.search, words, &path) };
    let (mut report, exploration) = check(&program, &options, &path, settings)?;
    filters.apply(&mut report);
    report.seconds = Some(started.elapsed().as_secs_f64());
    args.report.write(&report)?;
    if exploration.not_replayed > 0 {
        let (why, advice) = match exploration.stopped {
            Some(Stop::Interrupted) => ("interrupted", ""),
            _ => ("out of time", "; --budget gives it more"),
        };
        let text = format!("{why}: {} not replayed{advice}", counted(exploration.not_replayed as u64, "finding"));
        terminal::message("warning", &text);
    }
    Ok(reports::status(&report, !exploration.errors.is_empty(), args.search.strict))
}

/// Explores a program, shows how that goes on, and leaves its runs at `path` and beside it; what there is to report.
pub(crate) fn check(
    program: &NativeProgram,
    options: &Options,
    path: &Path,
    settings: Settings,
) -> Result<(Report, Exploration), Failure> {
    let kinds = &options.search.kinds;
    let settings = Settings { kinds: kinds.clone(), ..settings };
    let mut screen = Screen { path, kinds, bar: None, ended_by: Vec::new(), warnings: Vec::new() };
    let mut exploration = portent_explore::explore(program, options, &INTERRUPTED, &mut screen)?;
    let mut report = Report::new(settings);
    keep_failures(&exploration, kinds, path)?;
    for examined in exploration.failures.drain(..).chain(exploration.examined.drain(..)) {
        let path = path_of(path, examined.run);
        add(&mut report, examined, &path);
    }
    // What is said while it works also stands in every report.
    report.scope = screen.warnings;
    report.explored = Some(Explored { runs: exploration.runs, ..Explored::default() });
    Ok((report, exploration))
}

/// Leaves the failures with the findings of the runs that they can be replayed from.
fn keep_failures(exploration: &Exploration, kinds: &[BugKind], path: &Path) -> Result<(), Failure> {
    let runs: BTreeSet<RunId> = exploration.failures.iter().map(|examined| examined.run).collect();
    for run in runs {
        let of_run = exploration.failures.iter().chain(&exploration.examined).filter(|examined| examined.run == run);
        save_findings(&path_of(path, run), kinds, of_run)?;
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
        add(&mut report, examined.clone(), path);
    }
    let text = json::document(&report).map_err(|error| TraceError::whole(std::io::Error::from(error)))?;
    let path = reports::findings_beside(path);
    std::fs::write(&path, text).map_err(|error| {
        Error::refused(format!("{}: {error}", path.display()), "findings are left beside the trace: see --output")
    })
}

/// Where the run of a program is left, unless said otherwise.
pub(crate) fn beside(program: &NativeProgram) -> PathBuf {
    let mut name = program.invocation.program.file_name().unwrap_or_default().to_owned();
    name.push(".portent");
    name.into()
}

fn options(args: &CheckArgs) -> Result<Options, Failure> {
    let search = args.search.options()?;
    let chosen = args.search.clone();
    Ok(Options {
        properties: args.search.spec.as_deref().map(Properties::read).transpose()?,
        models: args.model.map_or(Options::MODELS.to_vec(), |name| vec![name.model()]),
        width: args.search.width,
        functions: Box::new(move || chosen.functions()),
        runs: args.runs.get(),
        rounds: args.rounds.get(),
        times: args.times,
        neighbours: args.tries,
        quick_observations: args.search.kind.is_empty(),
        budget: search.budget.unwrap_or(Options::BUDGET),
        timeout: Duration::from_secs_f64(args.timeout),
        search,
    })
}

fn program(args: &CheckArgs) -> Result<NativeProgram, Failure> {
    let Some(program) = args.program.first() else {
        return Err(Failure::usage("no program is given", "name it after `--`: portent check -- ./program"));
    };
    let path = examine::find(program, &std::env::current_dir().unwrap_or_default())?;
    let nature = examine::examine(&path)?;
    let mut invocation = Invocation::here(path, args.program.clone())?;
    invocation.input = match &args.stdin {
        None => None,
        Some(input) => {
            let help = "--stdin names a file that the program reads in every run";
            let found = std::path::absolute(input).and_then(|path| path.metadata().map(|_| path));
            Some(found.map_err(|error| Failure::usage(format!("{}: {error}", input.display()), help))?)
        }
    };
    Ok(NativeProgram::new(invocation, nature))
}

/// Where a run is left: the first at the path itself, others beside it.
fn path_of(path: &Path, run: RunId) -> PathBuf {
    match run {
        RunId { round: 1, number: 0 } => path.to_owned(),
        RunId { round, number } => path.with_extension(format!("round{round}-{number}.portent")),
    }
}

/// Adds all that a run told to a report; the run is, or would be, at `path`.
fn add(report: &mut Report, examined: Examined, path: &Path) {
    for Answer { model, prediction, replays } in examined.answers {
        let command = format!("portent replay {} --finding", path.display());
        let extras = Extras { round: Some(examined.run.round), replays, replay: Some(command) };
        report.add(examined.trace.clone(), model, prediction, &extras);
    }
}

/// What the terminal shows of the loop, and where its runs are left.
struct Screen<'a> {
    path: &'a Path,
    kinds: &'a [BugKind],
    bar: Option<Bar>,
    /// Signals by which somebody ended them.
    ended_by: Vec<i32>,
    /// What could not be recorded as it should be.
    warnings: Vec<String>,
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

impl Observer for Screen<'_> {
    fn see(&mut self, event: Event<'_>) {
        match event {
            Event::RunRecorded { recorded, .. } => {
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
            Event::Settling { done, total } if done < total => {
                self.progress(|| "shortening schedules".into(), Unit::Findings, done, total);
            }
            Event::Replayed { .. } | Event::Tried { .. } | Event::Settling { .. } => self.bar = None,
            _ => {}
        }
    }

    fn keep(&mut self, run: &Run, examined: &Examined) -> Result<(), Error> {
        let path = path_of(self.path, examined.run);
        run.save(&path)?;
        save_findings(&path, self.kinds, [examined])
    }
}
