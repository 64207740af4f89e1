//! `portent check`: record, predict, replay, report.
//!
//! A program with instrumentation is explored itself; what it starts, and what a driver such as `ctest` or a script starts, is
//! explored process by process (`tree`).

use super::tree::{self, Tree};
use super::{exploring, recover};
use crate::args::CheckArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::reports::{self, Filters};
use crate::runs::Home;
use crate::searches::Search;
use crate::terminal;
use portent_explore::{Exploration, Extent, Options, Properties, Stop};
use portent_native::record::NativeProgram;
use portent_native::run::examine::{self, Build, Nature};
use portent_native::run::launch::Invocation;
use portent_report::{Report, RunStats, Settings, run_stats};
use std::time::{Duration, Instant};

/// Checks the program, and says by the exit status what came out.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let filters = Filters::read(&args.report)?;
    if let Some(path) = &args.output {
        reports::writable(path)?;
        reports::is_for_runs(path)?;
    }
    let started = Instant::now();
    let mut options = options(args)?;
    let mut program = program(args)?;
    recover::tell();
    let tree = Tree::new()?;
    program.invocation.processes = Some(tree.path().to_owned());
    let build = Build::of(&program.invocation.program);
    let search = Search::of(&program);
    options.resume = search.earlier(args)?;
    let home = match &args.output {
        Some(path) => Home::named(path),
        None => Home::next(&program.invocation.program)?,
    };
    let words = args.program.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let settings = args.report.settings(&args.search, words.clone(), home.trace());
    let settings = Settings { same_output: args.same_output, kinds: options.search.kinds.clone(), ..settings };
    let mut report = Report::new(settings);
    let mut explorations = Vec::new();
    if program.nature == Nature::Instrumented {
        explorations.push(itself(&program, &options, &home, &search, &mut report)?);
    } else {
        tree.drive(&program, Duration::from_secs_f64(args.timeout) * tree::RUNS_OF_A_DRIVER)?;
    }
    let again = |budget| options_within(args, budget);
    let checking = tree::Checking { tree: &tree, program: &program, name: &words, home: &home, options: &again };
    explorations.extend(checking.all(&mut report, started, args.search.budget.is_some())?);
    home.tidy();
    if Build::of(&program.invocation.program) != build {
        let name = program.invocation.program.display();
        let text = format!("{name} was built anew while it was checked: what is told may be of either build");
        terminal::message("warning", &text);
        terminal::message("help", "check it again");
    }
    if let Some(why) = program.server.as_ref().and_then(|server| server.unused()).filter(|_| args.report.verbose) {
        terminal::message("note", &format!("runs took longer than they have to, each was started: {why}"));
    }
    filters.apply(&mut report);
    report.stats = args.stats.then(|| RunStats {
        strategy: args.strategy.name(),
        seed: args.seed,
        phases: exploring::phases(&explorations),
        behaviours: explorations.iter().map(|one| one.reached.behaviours.len() as u64).sum(),
        reads_from: explorations.iter().map(|one| one.reached.reads_from.len() as u64).sum(),
    });
    report.seconds = Some(started.elapsed().as_secs_f64());
    args.report.write(&report)?;
    if args.stats && !args.report.takes_standard_output() {
        terminal::print(&run_stats::table(&report))?;
    }
    let not_replayed: usize = explorations.iter().map(|one| one.not_replayed).sum();
    if not_replayed > 0 {
        let (why, advice) = match explorations.iter().find_map(|one| one.stopped) {
            Some(Stop::Interrupted) => ("interrupted", ""),
            Some(Stop::OutOfRuns) => ("the runs are used up", "; --runs gives it more"),
            Some(Stop::OutOfTime) | None => ("out of time", "; --budget gives it more"),
        };
        let text = format!("{why}: {} not replayed{advice}", counted(not_replayed as u64, "finding"));
        terminal::message("warning", &text);
    }
    let errors = explorations.iter().any(|one| !one.errors.is_empty());
    Ok(reports::status(&report, errors, args.search.strict))
}

/// Explores the program that was named.
fn itself(
    program: &NativeProgram,
    options: &Options,
    home: &Home,
    search: &Search,
    report: &mut Report,
) -> Result<Exploration, Failure> {
    let (path, shown) = (home.trace(), home.shown());
    let target = exploring::Target { path, shown, search: Some(search), process: None, once: false };
    let (exploration, warnings) = exploring::explore(program, options, &target, report)?;
    home.publish();
    report.scope = warnings;
    report.explored = Some(exploring::explored(&exploration));
    Ok(exploration)
}

fn options(args: &CheckArgs) -> Result<Options, Failure> {
    options_within(args, None)
}

/// The same, with so much time.
fn options_within(args: &CheckArgs, budget: Option<Duration>) -> Result<Options, Failure> {
    let mut search = args.search.options()?;
    search.budget = budget.or(search.budget);
    let chosen = args.search.clone();
    Ok(Options {
        properties: args.search.spec.as_deref().map(Properties::read).transpose()?,
        models: args.model.map_or(Options::MODELS.to_vec(), |name| vec![name.model()]),
        width: args.search.width,
        functions: Box::new(move || chosen.functions()),
        recordings: args.recordings.get(),
        strategy: args.strategy.strategy(args.pct_depth),
        extent: match args.runs {
            _ if args.exhaustive => Extent::Everything,
            Some(runs) => Extent::Runs(runs.get()),
            // Who says how long it may take wants it to.
            None if args.resume || args.search.budget.is_some() => Extent::WithinTime,
            None => Extent::Worthwhile,
        },
        seed: args.seed,
        count_reached: args.stats,
        resume: None,
        rounds: args.rounds.get(),
        times: args.times,
        neighbours: args.tries,
        quick_observations: args.search.kind.is_empty(),
        budget: match search.budget {
            None if args.exhaustive => Duration::MAX,
            given => given.unwrap_or(Options::BUDGET),
        },
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
    invocation.aside = args.report.takes_standard_output();
    invocation.input = match &args.stdin {
        None => None,
        Some(input) => {
            let help = "--stdin names a file that the program reads in every run";
            let found = std::path::absolute(input).and_then(|path| path.metadata().map(|_| path));
            Some(found.map_err(|error| Failure::usage(format!("{}: {error}", input.display()), help))?)
        }
    };
    let mut program = NativeProgram::new(invocation, nature).for_many_runs();
    program.spurious = args.spurious_wakeups;
    Ok(program)
}
