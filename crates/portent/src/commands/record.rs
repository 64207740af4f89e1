//! `portent record`: one run of a program, as a trace.

use super::record_text::{self, Summary};
use super::recover;
use super::tree::Tree;
use crate::args::{PolicyName, RecordArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::interrupt::{self, INTERRUPTED};
use crate::terminal::{self, Bar, Unit};
use crate::{reports, traces};
use portent_explore::{Pct, Plan, Policy};
use portent_native::record::{Finished, NativeProgram, Recorded, run_of};
use portent_native::run::examine::{self, Nature};
use portent_native::run::family;
use portent_native::run::launch::{self, Invocation};
use portent_trace::format::{Dialect, Format, RECORDING, TraceSink};
use portent_trace::{InputBatch, Layout, Names, TraceError};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Runs the program, writes the trace, and ends as the program did.
pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let Some(program) = args.program.first() else {
        return Err(Failure::usage("no program is given", "name it after `--`: portent record -- ./program"));
    };
    let directory = std::env::current_dir().unwrap_or_default();
    let path = examine::find(program, &directory)?;
    let nature = examine::examine(&path)?;
    let output = output(args, &path)?;
    reports::is_for_runs(&output)?;
    // A link that a check has made to its own run, which is to stay as it is.
    if output.is_symlink() {
        let _ = std::fs::remove_file(&output);
    }
    // An output that cannot be written is told before the program runs, not after. Nothing is left of the attempt.
    drop(create(&output)?);
    if nature == Nature::Plain {
        let text = format!(
            "{} itself is not instrumented: what it starts is recorded, if that is instrumented",
            path.display()
        );
        terminal::message("warning", &text);
    }
    recover::tell();
    let tree = Tree::new()?;
    let mut program = NativeProgram::new(Invocation::here(path, args.program.clone())?, nature);
    program.spurious = args.spurious_wakeups;
    (program.invocation.bare, program.invocation.outlives) = (args.no_environment, args.outlive);
    program.invocation.processes = Some(tree.path().to_owned());
    let finished = program.start(&Plan { policy: policy(args), seed: args.seed, ..Plan::default() })?;
    let started = Instant::now();
    interrupt::listen();
    let recorded = match write(&finished, &output) {
        Ok(recorded) => recorded,
        Err(failure) => {
            // What was recorded stays where it is: nothing is lost but the time.
            std::mem::forget(finished);
            terminal::message(
                "note",
                "the recording is kept: `portent recover` makes a trace of it, in the directory where it is called",
            );
            if INTERRUPTED.load(Ordering::Relaxed) {
                return Ok(ExitCode::Program(130));
            }
            return Err(failure);
        }
    };
    let summary = Summary { output: &output, finished: &finished, converted: &recorded.converted };
    for (label, text) in record_text::lines(&summary, started.elapsed()) {
        terminal::message(label, &text);
    }
    others(&tree, &program.invocation, &output)?;
    let status = finished.ended.status;
    // The recording, which can be large, goes away before this process does.
    drop(finished);
    if recorded.converted.deadlock.is_some() {
        return Ok(ExitCode::Findings);
    }
    if let Some(signal) = status.signal() {
        launch::die_of(signal);
    }
    Ok(ExitCode::Program(status.code().unwrap_or(1) as u8))
}

/// Writes a trace for every other process with threads, beside the first.
fn others(tree: &Tree, invocation: &Invocation, output: &Path) -> Result<(), Failure> {
    let members = family::members(tree.path())?;
    let with_threads = members.iter().filter_map(|member| Some((member, member.recording().transpose()?)));
    let mut number = 1;
    for (member, log) in with_threads {
        let log = log?;
        if log.header().threads < 2 {
            continue;
        }
        number += 1;
        let mut ending = OsString::from(format!("{number}-"));
        ending.push(member.file_name());
        ending.push(".portent");
        let path = output.with_extension(ending);
        let run = run_of(&log, &member.invocation(&members)?)?;
        run.save(&path)?;
        let text = format!(
            "{}: {} of {}, by {}",
            path.display(),
            counted(run.events.len() as u64, "event"),
            counted(log.header().threads.into(), "thread"),
            member.name(&invocation.directory)
        );
        terminal::message("recorded", &text);
    }
    Ok(())
}

fn policy(args: &RecordArgs) -> Policy {
    match args.sched {
        None => Policy::Stay,
        Some(PolicyName::Rr) => Policy::RoundRobin,
        Some(PolicyName::Random) => Policy::Random,
        Some(PolicyName::Pct) => Policy::Pct(Pct { depth: args.pct_depth.get().into(), steps: args.pct_steps.get() }),
        Some(PolicyName::Priority) => Policy::Priority,
    }
}

/// Where the trace goes.
fn output(args: &RecordArgs, program: &Path) -> Result<PathBuf, Failure> {
    match &args.output {
        Some(path) if !traces::is_standard(path) && matches!(Format::from_path(path), Ok(Format::Portent)) => {
            Ok(path.clone())
        }
        Some(path) => Err(Failure::usage(
            format!("{}: a recording is written as a .portent file", path.display()),
            "give it the ending .portent; `portent convert` turns it into other formats",
        )),
        None => {
            let mut name = program.file_name().map_or_else(|| OsString::from("program"), OsString::from);
            name.push(".portent");
            Ok(name.into())
        }
    }
}

fn create(output: &Path) -> Result<Box<dyn TraceSink>, Failure> {
    traces::create(output, Format::Portent, Dialect::Portent, Layout::default())
}

/// A trace that is written until somebody asks to end.
struct Interruptible(Box<dyn TraceSink>);

impl TraceSink for Interruptible {
    fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(TraceError::whole(std::io::Error::from(std::io::ErrorKind::Interrupted)));
        }
        self.0.write(names, batch)
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        self.0.finish()
    }
}

/// Turns the recording into a trace that says how it was made.
pub(super) fn write(finished: &Finished<'_>, output: &Path) -> Result<Recorded, Failure> {
    let mut bar = Bar::new(format!("writing {}", output.display()), Unit::Bytes);
    let mut sink = Interruptible(create(output)?);
    let recorded = finished.write(&mut sink, |progress| bar.update(progress))?;
    drop(bar);
    let Interruptible(mut sink) = sink;
    sink.attach(RECORDING, &recorded.recording.to_json()?)?;
    sink.finish()?;
    Ok(recorded)
}
