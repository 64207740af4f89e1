//! `portent watch`: predictions while a program runs, and the whole report when it ends.
//!
//! The program is recorded as by `portent record`. Beside it its recording is followed (`watching`). When it has ended, by itself or
//! because somebody stopped it, the whole run becomes a trace, which is examined as by `portent predict`: that is the report.

use super::watching::{Following, Watched, in_words};
use super::{predict, record, record_text};
use crate::args::WatchArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::interrupt;
use crate::reports::{self, Filters};
use crate::runs::Home;
use crate::terminal;
use crate::traces::Input;
use portent_explore::{Plan, Properties, Request};
use portent_native::record::{Finished, NativeProgram};
use portent_native::run::examine::{self, Nature};
use portent_native::run::launch::{Invocation, Running};
use portent_predict::Options;
use portent_report::{Extras, Report, Settings, json};
use portent_trace::Trace;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Watches the program, and says by the exit status what came out.
pub(crate) fn run(args: &WatchArgs) -> Result<ExitCode, Failure> {
    let filters = Filters::read(&args.report)?;
    let mut options = args.search.options()?;
    options.model = args.model.model();
    let spec = args.search.spec.as_deref().map(Properties::read).transpose()?;
    let Some(program) = args.program.first() else {
        return Err(Failure::usage("no program is given", "name it after `--`: portent watch -- ./program"));
    };
    let directory = std::env::current_dir().unwrap_or_default();
    let path = examine::find(program, &directory)?;
    let nature = examine::examine(&path)?;
    if nature != Nature::Instrumented {
        return Err(examine::not_instrumented(&path, nature).into());
    }
    if let Some(path) = &args.output {
        reports::writable(path)?;
    }
    let home = match &args.output {
        Some(path) => Home::named(path),
        None => Home::next(&path)?,
    };
    let program = NativeProgram::new(Invocation::here(path, args.program.clone())?, nature);
    let beside = Beside { args, options: &options, spec: spec.as_ref(), directory: &directory, trace: home.trace() };
    let (finished, watched) = beside.run(&program)?;
    // Until now Ctrl-C has been for the program.
    interrupt::listen();
    tell_lag(&watched, &finished);
    let deadlocked = save(&finished, home.trace())?;
    drop(finished);
    let (mut report, errors) = examine_whole(args, &mut options, spec.as_ref(), &home)?;
    let found = !report.stories.is_empty();
    if found {
        reports::save_file(&reports::findings_beside(home.trace()), |out| json::write(&report, out))?;
    }
    let missing = watched
        .told
        .iter()
        .filter(|(id, what)| !report.stories.iter().any(|story| story.finding.id == **id || in_words(story) == **what));
    let missing: Vec<String> = missing.map(|(id, what)| format!("{id}  {what}")).collect();
    filters.apply(&mut report);
    args.report.write(&report)?;
    for one in &missing {
        terminal::message("note", &format!("told while the program ran, and not above: {one}"));
    }
    if found || args.keep || args.output.is_some() {
        home.publish();
        terminal::message("kept", &format!("{}", home.shown().unwrap_or(home.trace()).display()));
    } else {
        // Nobody asked for it, and there is nothing to replay.
        let _ = std::fs::remove_file(home.trace());
    }
    home.tidy();
    let status = reports::status(&report, errors || !watched.errors.is_empty(), args.search.strict);
    Ok(if deadlocked || !missing.is_empty() { ExitCode::Findings } else { status })
}

/// What goes on beside the program.
struct Beside<'a> {
    args: &'a WatchArgs,
    options: &'a Options,
    spec: Option<&'a Properties>,
    directory: &'a Path,
    trace: &'a Path,
}

impl Beside<'_> {
    /// Runs the program to its end, and follows it.
    fn run<'p>(&self, program: &'p NativeProgram) -> Result<(Finished<'p>, Watched), Failure> {
        let over = &AtomicBool::new(false);
        let (begun, running) = mpsc::channel::<Running>();
        std::thread::scope(|scope| {
            let follower = scope.spawn(move || match running.recv() {
                Ok(running) => self.following(running, over).follow(),
                // It did not start, which is told elsewhere.
                Err(_) => Ok(Watched::default()),
            });
            let finished = program.start_seen(&Plan::default(), &mut |running| {
                // A follower that is gone harms nobody.
                let _ = begun.send(running);
            });
            over.store(true, Ordering::Release);
            drop(begun);
            let watched = match follower.join() {
                Ok(Ok(watched)) => watched,
                Ok(Err(failure)) => {
                    terminal::message("warning", &format!("the program could not be followed to its end: {failure}"));
                    terminal::message("help", "its whole run is examined now");
                    Watched::default()
                }
                Err(_) => {
                    terminal::message("error", "internal: following the program failed; its whole run is examined now");
                    Watched { errors: vec!["following failed".into()], ..Watched::default() }
                }
            };
            Ok((finished?, watched))
        })
    }

    fn following<'f>(&'f self, running: Running, over: &'f AtomicBool) -> Following<'f> {
        let &Beside { args, options, spec, directory, trace } = self;
        Following { args, options, spec, directory, trace, running, over }
    }
}

/// Says what was not examined while the program ran.
fn tell_lag(watched: &Watched, finished: &Finished<'_>) {
    let all = finished.ended.log.header();
    let mut text = format!("the program ran {:.1} s", finished.ended.elapsed.as_secs_f64());
    text.push_str(&format!("; {} examined meanwhile", counted(watched.examined - watched.passed_over, "event")));
    if watched.passed_over > 0 {
        text.push_str(&format!(", {} passed over", counted(watched.passed_over, "event")));
    }
    if all.unrecorded > 0 {
        text.push_str(&format!(", {} not recorded", counted(all.unrecorded.into(), "event")));
    }
    terminal::message("watched", &(text + "; now the whole run is examined"));
    if let (segments @ 1.., Some(why)) = &watched.refused {
        let text = format!("{} could not be examined while the program ran: {why}", counted(*segments, "segment"));
        terminal::message("note", &text);
    }
    for error in &watched.errors {
        terminal::message("error", &format!("internal: {error}"));
    }
}

/// Leaves the run as a trace; whether it came to a deadlock.
fn save(finished: &Finished<'_>, trace: &Path) -> Result<bool, Failure> {
    let started = Instant::now();
    let recorded = record::write(finished, trace)?;
    let summary = record_text::Summary { output: trace, finished, converted: &recorded.converted };
    for (label, text) in record_text::lines(&summary, started.elapsed()) {
        terminal::message(label, &text);
    }
    Ok(recorded.converted.deadlock.is_some())
}

/// Examines the whole run: the report that `portent predict` gives, and whether there were errors of the engine.
fn examine_whole(
    args: &WatchArgs,
    options: &mut Options,
    spec: Option<&Properties>,
    home: &Home,
) -> Result<(Report, bool), Failure> {
    let mut input = Input::open(home.trace(), false)?;
    let trace = input.named(|source| Trace::from_input_watched(source, args.search.functions(), |_| ()))?;
    if args.search.window.is_none() {
        options.window = Options::window_for(&trace, options.model);
    }
    let declared = portent_native::record::Recording::load(home.trace()).ok().flatten();
    let declared = declared.map(|made| portent_native::symbols::declarations(&made.invocation().program));
    let properties = spec.map(|spec| spec.bind(&trace, &declared.unwrap_or_default())).transpose()?;
    let deadline = options.budget.and_then(|budget| Instant::now().checked_add(budget));
    let left = || deadline.map(|end: Instant| end.saturating_duration_since(Instant::now()));
    let left: &dyn Fn() -> Option<Duration> = &left;
    let properties = properties.unwrap_or_default();
    let request = Request { options, properties: &properties, width: args.search.width, budget: left };
    let prediction = predict::watched(&trace, &request, input.name());
    for error in &prediction.errors {
        terminal::message("error", &format!("internal: {error}"));
        terminal::message("help", "this is a bug in portent: please report it with the trace");
    }
    let errors = !prediction.errors.is_empty();
    let shown = home.shown().unwrap_or(home.trace());
    let words = args.program.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let mut report = Report::new(Settings {
        kinds: options.kinds.clone(),
        replay: Some(format!("portent replay {} --finding", reports::quoted(shown))),
        ..args.report.settings(&args.search, words, home.trace())
    });
    report.add(Arc::new(trace), options.model, prediction, &Extras::default());
    Ok((report, errors))
}
