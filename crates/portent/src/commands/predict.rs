//! `portent predict`: the bugs that other interleavings of a recorded run contain.

use super::print;
use crate::args::{EngineName, PredictArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::reports::{self, Filters};
use crate::spec::{Spec, draw, merge};
use crate::terminal::{self, Bar, Unit};
use crate::traces::Input;
use portent_predict::{
    BugKind, Control, Options, Prediction, PropertyOptions, Why, by_happens_before, check_properties, predict,
};
use portent_report::{Extras, Report, Settings, text};
use portent_trace::{Progress, Trace};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Set by Ctrl-C: stop, and show what is known.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Predicts, prints and says by the exit status what came out.
pub(crate) fn run(args: &PredictArgs) -> Result<ExitCode, Failure> {
    let mut options = options(args)?;
    let filters = Filters::read(&args.report)?;
    let spec = args.search.spec.as_deref().map(Spec::read).transpose()?;
    let mut input = Input::open(&args.trace, false)?;
    let mut bar = Bar::new(format!("reading {}", input.name()), Unit::Bytes);
    let trace = input
        .named(|source| Trace::from_input_watched(source, args.search.functions(), |progress| bar.update(progress)))?;
    drop(bar);
    input.warn_if_truncated();
    if args.search.window.is_none() {
        options.window = Options::window_for(&trace, options.model);
    }
    let properties = match &spec {
        None => Vec::new(),
        Some(spec) => spec.bind(&trace, &declarations(args))?,
    };
    let mut prediction = match args.engine {
        EngineName::Hb => by_happens_before(&trace),
        EngineName::Order => watched(&trace, &options, input.name()),
    };
    let lattice =
        PropertyOptions { width: args.search.width, budget: options.budget, ..PropertyOptions::of(options.model) };
    if spec.is_some() {
        let control = Control { interrupt: Some(&INTERRUPTED), progress: None };
        merge(&mut prediction, check_properties(&trace, &properties, &lattice, &control));
        draw(args, &trace, &properties, lattice.model, &prediction)?;
    }
    for error in &prediction.errors {
        terminal::message("error", &format!("internal: {error}"));
        terminal::message("help", "this is a bug in portent: please report it with the trace");
    }
    let errors = !prediction.errors.is_empty();
    let table = args.stats.then(|| text::stats(&prediction.stats));
    let mut report = Report::new(Settings {
        input: input.name().to_owned(),
        kinds: options.kinds,
        sources: args.report.sources(&args.trace),
        replay: replay_command(args),
    });
    report.add(Arc::new(trace), options.model, prediction, &Extras::default());
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
    portent_native::record::recording::Recording::load(&args.trace).ok()??;
    let mut command = format!("portent replay {}", reports::quoted(&args.trace));
    if findings != super::replay::beside(&args.trace) {
        command.push_str(&format!(" --findings {}", reports::quoted(findings)));
    }
    Some(command + " --finding")
}

#[cfg(not(target_os = "linux"))]
fn replay_command(_: &PredictArgs) -> Option<String> {
    None
}

/// Where the variables of a recorded program are declared.
#[cfg(target_os = "linux")]
fn declarations(args: &PredictArgs) -> std::collections::BTreeMap<String, String> {
    let recording = portent_native::record::recording::Recording::load(&args.trace).ok().flatten();
    recording.map(|recording| portent_native::declarations(&recording.target().program)).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn declarations(_: &PredictArgs) -> std::collections::BTreeMap<String, String> {
    Default::default()
}

fn options(args: &PredictArgs) -> Result<Options, Failure> {
    let mut options = args.search.options()?;
    options.model = args.model.model();
    if args.engine == EngineName::Hb {
        if args.search.spec.is_some() {
            return Err(Failure::usage("--engine hb does not check properties", "leave out --spec, or --engine"));
        }
        if !options.kinds.contains(&BugKind::Race) {
            return Err(Failure::usage("--engine hb finds races only", "leave out --kind, or add race to it"));
        }
        options.kinds = vec![BugKind::Race];
    }
    Ok(options)
}

/// Whether the user has asked to stop.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Predicts with a progress bar, until done or interrupted.
pub(crate) fn watched(trace: &Trace, options: &Options, name: &str) -> Prediction {
    // Without the handler Ctrl-C still ends the command, only without results.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            // Asked twice: the user does not want to wait.
            std::process::exit(130);
        }
    });
    let bar = Mutex::new(Bar::new(format!("predicting {name}"), Unit::Events));
    let progress = |done, total| {
        if let Ok(mut bar) = bar.lock() {
            bar.update(Progress { done, total: Some(total) });
        }
    };
    // Properties are not examined window by window.
    let kinds = options.kinds.iter().copied().filter(|kind| *kind != BugKind::Property).collect();
    let options = Options { kinds, ..options.clone() };
    predict(trace, &options, &Control { interrupt: Some(&INTERRUPTED), progress: Some(&progress) })
}
