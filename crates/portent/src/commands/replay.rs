//! `portent replay`: runs a recorded program again, as a schedule says, until the finding is seen.

use super::print;
use crate::args::{DebuggerName, ReplayArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::{count, counted};
use crate::{reports, runs, terminal};
use portent_explore::replay::{Findings, Replay, Script, Wanted};
use portent_explore::{Policy, Run, Schedule, ScheduleGoal};
use portent_native::record::{NativeProgram, Recording};
use portent_native::run::examine;
use portent_native::run::launch::Invocation;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Replays, and says what was seen.
pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let located = args.finding.as_ref().filter(|_| args.findings.is_none());
    let located = located.and_then(|id| runs::locate(&args.trace, id));
    if let (None, Some(id), true) = (&located, &args.finding, runs::run_in(&args.trace).is_dir()) {
        let message = format!("{}: nobody there knows a finding {id}", args.trace.display());
        return Err(Failure::usage(message, "the report of the check names the ids, and --json lists them"));
    }
    let (trace, findings) = located.unwrap_or_else(|| {
        let trace = runs::run_in(&args.trace);
        let real = trace.canonicalize().unwrap_or_else(|_| trace.clone());
        let findings = args.findings.clone().unwrap_or_else(|| reports::findings_beside(&real));
        (trace, findings)
    });
    let Some(recording) = Recording::load(&trace)? else {
        return Err(Failure::usage(
            format!("{}: does not say which program it was recorded from", trace.display()),
            "only traces that `portent record` wrote can be replayed",
        ));
    };
    super::recover::tell();
    let trusted = trusted(args, &trace, &recording)?;
    let original = recording.run(&trace)?;
    let Asked { name, schedule, wanted, decisive } = what(args, &findings, &original)?;
    let program = program(args, &recording, trusted, decisive)?;
    if args.program.is_empty() {
        for (path, why) in recording.changed() {
            terminal::message("warning", &format!("{} {why}: the replay may take another path", path.display()));
        }
    }
    let limit = args.debugger.is_none().then(|| Duration::from_secs_f64(args.timeout));
    let script = Script {
        program: &program,
        original: &original,
        schedule,
        wanted,
        policy: Policy::Stay,
        seed: 0,
        limit,
        silent: args.times.get() > 1,
    };
    let mut tally = Tally::default();
    for _ in 0..args.times.get() {
        tally.add(script.run()?);
    }
    let shown = tally.hits == tally.runs;
    print(&tally.text(&name, &script.wanted, &script))?;
    Ok(match script.wanted {
        Wanted::Same if shown => ExitCode::NothingFound,
        Wanted::Same => ExitCode::Findings,
        _ if tally.hits > 0 => ExitCode::Findings,
        _ => ExitCode::NothingFound,
    })
}

/// What to replay: its name, its schedule, what is to be seen, and the event that decides.
struct Asked {
    name: String,
    schedule: Schedule,
    wanted: Wanted,
    decisive: Option<(u32, u32)>,
}

fn what(args: &ReplayArgs, findings: &Path, original: &Run) -> Result<Asked, Failure> {
    if let Some(id) = &args.finding {
        let finding = Findings::load(findings)?.get(id)?;
        let (schedule, wanted) = finding.script(original)?;
        return Ok(Asked { name: id.clone(), schedule, wanted, decisive: finding.decisive() });
    }
    if let Some(path) = &args.schedule {
        let name = path.display().to_string();
        let help = "`portent replay --help` says how a schedule is written";
        let text = std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("{name}: {error}"), help))?;
        let schedule = Schedule::parse(&text, &name)?;
        let wanted = match schedule.goal {
            ScheduleGoal::None => Wanted::Anything,
            ScheduleGoal::Race(_) => Wanted::Race,
            ScheduleGoal::Deadlock(_) => Wanted::Deadlock,
        };
        return Ok(Asked { name, schedule, wanted, decisive: None });
    }
    let name = "the recorded schedule".into();
    Ok(Asked { name, schedule: original.schedule(), wanted: Wanted::Same, decisive: None })
}

/// Whether what the trace says may be run: says what that is, and why it may. An error if it may not.
fn trusted(args: &ReplayArgs, trace: &Path, recording: &Recording) -> Result<bool, Failure> {
    let ours = recording.is_ours();
    let name = trace.display();
    if !args.program.is_empty() && !ours && !args.trust {
        let text = format!(
            "{name}: it is not known who recorded it: `{}` is run here, in this environment and directory, and not in those of the trace",
            reports::words(&args.program)
        );
        terminal::message("note", &text);
        return Ok(false);
    }
    let invocation = recording.invocation();
    let mut what = reports::words(&invocation.arguments);
    if invocation.arguments.first().is_none_or(|first| invocation.program.as_os_str() != first.as_os_str()) {
        what = format!("{} as `{what}`", reports::quoted(&invocation.program));
    } else {
        what = format!("`{what}`");
    }
    what.push_str(&format!(" in {}", reports::quoted(&invocation.directory)));
    for (variable, value) in &invocation.environment {
        // What makes the loader load something else.
        if variable.as_encoded_bytes().starts_with(b"LD_") && !value.is_empty() {
            what.push_str(&format!(", {}={}", variable.to_string_lossy(), reports::quoted(Path::new(value))));
        }
    }
    if !ours && !args.trust {
        return Err(Failure::usage(
            format!("{name}: it is not known who recorded it. A replay would run {what}"),
            "if that is what you want: --trust; or name the program yourself: `portent replay TRACE … -- PROGRAM ARGUMENTS`",
        ));
    }
    if args.program.is_empty() {
        let why = if ours { "recorded by this user on this machine" } else { "because of --trust" };
        terminal::message("runs", &format!("{what} ({why})"));
    }
    let missing = recording.missing_environment();
    if !missing.is_empty() {
        let text = format!(
            "not in the trace, and not set here as they were: {}; if the program reads them, the replay may differ",
            missing.join(", ")
        );
        terminal::message("note", &text);
    }
    Ok(true)
}

/// The program, as it was recorded or as the command line says. Of a trace that is not trusted nothing is used but its schedule.
fn program(
    args: &ReplayArgs,
    recording: &Recording,
    trusted: bool,
    stop: Option<(u32, u32)>,
) -> Result<NativeProgram, Failure> {
    let mut invocation = recording.invocation();
    if !trusted {
        let here = Invocation::here(invocation.program, Vec::new())?;
        invocation = Invocation { lineage: invocation.lineage, ..here };
    }
    if let Some(program) = args.program.first() {
        invocation.program = examine::find(program, &std::env::current_dir().unwrap_or_default())?;
        invocation.arguments = args.program.clone();
    }
    let nature = examine::examine(&invocation.program)?;
    if let Some(DebuggerName::Gdb) = args.debugger {
        let arrive = format!("python exec({GDB:?})");
        let words = ["gdb", "-q", "-ex", &arrive, "-ex", "python portent_run()", "--args"];
        invocation.wrapper = words.map(OsString::from).to_vec();
        let stops = if stop.is_some() { "at the operation that decides" } else { "where the schedule ends" };
        terminal::message("gdb", &format!("stops {stops}; `thread apply all backtrace` shows where every thread is"));
    }
    let mut program = NativeProgram::new(invocation, nature);
    (program.trap, program.stop) = (args.debugger.is_some(), stop);
    Ok(program)
}

/// What gdb does to stop in the program's own code, and not in the runtime that holds its threads there.
///
/// The runtime tells where a thread will go on, and a breakpoint there stops it, so that stepping begins in the program. Of a thread
/// that waits for good, the innermost frame of the program's own is selected.
const GDB: &str = include_str!("replay/stop.py");

/// What several replays showed.
#[derive(Default)]
struct Tally {
    runs: u32,
    hits: u32,
    evidence: Vec<String>,
    events: usize,
    /// How the program failed, and how often so.
    failures: BTreeMap<String, u32>,
    /// Where replays diverged, and how often there.
    diverged: BTreeMap<String, u32>,
}

impl Tally {
    fn add(&mut self, replay: Replay) {
        self.runs += 1;
        self.hits += u32::from(replay.hit);
        self.events = replay.run.events.len();
        if replay.hit && self.evidence.is_empty() {
            self.evidence = replay.evidence;
        }
        for (place, told) in [(&mut self.failures, replay.failed), (&mut self.diverged, replay.diverged)] {
            if let Some(told) = told {
                *place.entry(told).or_default() += 1;
            }
        }
    }

    fn text(&self, name: &str, wanted: &Wanted, script: &Script<'_>) -> String {
        let of = format!("{} of {}", count(self.hits.into()), counted(self.runs.into(), "replay"));
        let mut text = match wanted {
            Wanted::Same if self.hits == self.runs => {
                format!("identical in {of}: {}\n", counted(self.events as u64, "event"))
            }
            Wanted::Same => format!("{name}: identical in {of}\n"),
            Wanted::Anything => format!("{name}: replayed {}\n", counted(self.runs.into(), "time")),
            _ if self.hits > 0 => format!("{name}: shown in {of}\n"),
            _ => format!("{name}: not shown in {}\n", counted(self.runs.into(), "replay")),
        };
        // What was to be seen may be the failure itself, which is told below, by its name.
        let told_below = |line: &str| self.failures.keys().any(|told| told.ends_with(line));
        for line in self.evidence.iter().filter(|line| !told_below(line)) {
            text.push_str(&format!("  {line}\n"));
        }
        let times = |times: u32| if self.runs == 1 { String::new() } else { format!(" ({times} of {})", self.runs) };
        for (told, often) in &self.failures {
            text.push_str(&format!("  the program failed: {told}{}\n", times(*often)));
        }
        for (told, often) in &self.diverged {
            text.push_str(&format!("  diverged{}: {told}\n", times(*often)));
        }
        if self.hits == 0 && self.diverged.is_empty() && !matches!(wanted, Wanted::Same | Wanted::Anything) {
            let events: u64 = script.schedule.steps.iter().map(|step| step.1).sum();
            text.push_str(&format!(
                "  all {} of the schedule were executed as predicted, without the effect\n",
                counted(events, "event")
            ));
        }
        text
    }
}
