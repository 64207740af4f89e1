//! `portent predict`: the bugs that other interleavings of a recorded run contain.

use super::drawing::draw;
use super::print;
use crate::args::{EngineName, PredictArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::count;
use crate::interrupt::{self, INTERRUPTED};
use crate::reports::{self, Filters};
use crate::terminal::{self, Bar, Unit};
use crate::traces::Input;
use portent_explore::{Properties, Request};
use portent_predict::{BugKind, Control, Options, Prediction, PropertyOptions, Why, by_happens_before, by_locksets};
use portent_report::{Extras, Report, Settings, text};
use portent_trace::{Progress, Trace};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Predicts, prints and says by the exit status what came out.
pub(crate) fn run(args: &PredictArgs) -> Result<ExitCode, Failure> {
    interrupt::listen();
    let mut options = options(args)?;
    let deadline = options.budget.and_then(|budget| Instant::now().checked_add(budget));
    let left = || deadline.map(|end| end.saturating_duration_since(Instant::now()));
    let why_to_stop = || match left() {
        _ if INTERRUPTED.load(Ordering::Relaxed) => Some(Why::Interrupted),
        left => left.filter(Duration::is_zero).map(|_| Why::Budget),
    };
    let filters = Filters::read(&args.report)?;
    for path in [&args.dot, &args.svg].into_iter().flatten() {
        reports::writable(path)?;
    }
    let spec = args.search.spec.as_deref().map(Properties::read).transpose()?;
    let mut input = Input::open(&args.trace, false)?;
    let mut bar = Bar::new(format!("reading {}", input.name()), Unit::Bytes);
    let goes_on = |progress| {
        bar.update(progress);
        why_to_stop().is_none()
    };
    let (trace, complete) = input.named(|source| Trace::from_input_until(source, args.search.functions(), goes_on))?;
    drop(bar);
    let mut cut_short = false;
    match complete {
        true => cut_short = input.warn_if_truncated(),
        false => {
            let read = count(trace.input_len());
            terminal::message("warning", &format!("{}: only its first {read} events were read", input.name()));
        }
    }
    let cut = why_recording_is_cut(args);
    if let Some(why) = &cut {
        terminal::message("warning", &format!("{}: {why}", input.name()));
    }
    if args.search.window.is_none() {
        options.window = Options::window_for(&trace, options.model);
    }
    let properties = match &spec {
        Some(_) if !complete => Vec::new(),
        None => Vec::new(),
        Some(spec) => spec.bind(&trace, &declarations(args))?,
    };
    let request = Request { options: &options, properties: &properties, width: args.search.width, budget: &left };
    let prediction = match args.engine {
        _ if !complete => Prediction::not_examined(&options.kinds, why_to_stop().unwrap_or(Why::Budget)),
        EngineName::Hb => by_happens_before(&trace),
        EngineName::Lockset => by_locksets(&trace),
        EngineName::Order => watched(&trace, &request, input.name()),
    };
    if spec.is_some() && complete {
        draw(args, &trace, &properties, PropertyOptions::of(options.model).model, &prediction)?;
    }
    for error in &prediction.errors {
        terminal::message("error", &format!("internal: {error}"));
        terminal::message("help", "this is a bug in portent: please report it with the trace");
    }
    let errors = !prediction.errors.is_empty();
    let table = args.stats.then(|| text::stats(&prediction.stats));
    let mut report = Report::new(Settings {
        kinds: options.kinds,
        replay: replay_command(args),
        ..args.report.settings(&args.search, input.name().to_owned(), &args.trace)
    });
    report.add(Arc::new(trace), options.model, prediction, &Extras::default());
    report.cut_short = u64::from(cut_short || cut.is_some());
    report.scope.extend(cut);
    filters.apply(&mut report);
    args.report.write(&report)?;
    if let Some(table) = table {
        if args.report.takes_standard_output() { eprint!("{table}") } else { print(&format!("\n{table}"))? }
    }
    if let Some(why) = report.partial {
        let text = match why {
            Why::Interrupted => "interrupted: this is what is known so far",
            _ => "out of time: this is what is known so far; --budget gives it more",
        };
        terminal::message("warning", &format!("partial: {text}"));
    }
    Ok(reports::status(&report, errors, args.search.strict))
}

/// The command that replays a finding, up to its id: for recordings whose findings are written to a file.
#[cfg(target_os = "linux")]
fn replay_command(args: &PredictArgs) -> Option<String> {
    use crate::traces::is_standard;
    let findings = args.report.json.as_deref().filter(|path| !is_standard(path))?;
    // A trace that cannot say how it was recorded has been read all the same.
    portent_native::record::Recording::load(&args.trace).ok()??;
    let mut command = format!("portent replay {}", reports::quoted(&args.trace));
    if findings != reports::findings_beside(&args.trace) {
        command.push_str(&format!(" --findings {}", reports::quoted(findings)));
    }
    Some(command + " --finding")
}

#[cfg(not(target_os = "linux"))]
fn replay_command(_: &PredictArgs) -> Option<String> {
    None
}

/// Why not all of the run is in the trace, if its recorder knew.
#[cfg(target_os = "linux")]
fn why_recording_is_cut(args: &PredictArgs) -> Option<String> {
    portent_native::record::Recording::load(&args.trace).ok().flatten()?.cut
}

#[cfg(not(target_os = "linux"))]
fn why_recording_is_cut(_: &PredictArgs) -> Option<String> {
    None
}

/// Where the variables of a recorded program are declared.
#[cfg(target_os = "linux")]
fn declarations(args: &PredictArgs) -> std::collections::BTreeMap<String, String> {
    let recording = portent_native::record::Recording::load(&args.trace).ok().flatten();
    recording
        .map(|recording| portent_native::symbols::declarations(&recording.invocation().program))
        .unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn declarations(_: &PredictArgs) -> std::collections::BTreeMap<String, String> {
    Default::default()
}

fn options(args: &PredictArgs) -> Result<Options, Failure> {
    let mut options = args.search.options()?;
    options.model = args.model.model();
    options.reuse = !args.no_reuse;
    if let name @ ("hb" | "lockset") = args.engine.name() {
        if args.search.spec.is_some() {
            let help = "leave out --spec, or --engine";
            return Err(Failure::usage(format!("--engine {name} does not check properties"), help));
        }
        if !options.kinds.contains(&BugKind::Race) {
            let help = "leave out --kind, or add race to it";
            return Err(Failure::usage(format!("--engine {name} finds races only"), help));
        }
        options.kinds = vec![BugKind::Race];
    }
    Ok(options)
}

/// Predicts with a progress bar, until done or interrupted.
pub(super) fn watched(trace: &Trace, request: &Request<'_>, name: &str) -> Prediction {
    let bar = Mutex::new(Bar::new(format!("predicting {name}"), Unit::Events));
    let progress = |done, total| {
        if let Ok(mut bar) = bar.lock() {
            bar.update(Progress { done, total: Some(total) });
        }
    };
    portent_explore::predict(trace, request, &Control { interrupt: Some(&INTERRUPTED), progress: Some(&progress) })
}

impl EngineName {
    fn name(self) -> &'static str {
        match self {
            EngineName::Order => "order",
            EngineName::Hb => "hb",
            EngineName::Lockset => "lockset",
        }
    }
}
