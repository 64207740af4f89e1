//! A run that is examined: recorded, or replayed and found to behave in a new way.

use super::recording::Recording;
use crate::convert;
use crate::error::Error;
use crate::replay::{Replay, Run};
use crate::run::examine::{self, Nature};
use crate::run::launch::{self, Target};
use crate::run::log_file::LogFile;
use portent_runtime::plan::Plan;
use portent_trace::format::{self, Dialect, Format, RECORDING};
use portent_trace::{FunctionBlocks, InputBatch, InputSource, Layout, Names, Progress, Trace, TraceError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A run with everything that predicting and replaying needs.
pub struct Subject {
    pub run: Run,
    pub recording: Recording,
    pub trace: Arc<Trace>,
    /// Where it is kept.
    pub path: PathBuf,
    /// How the run itself went wrong, if it did.
    pub failed: Vec<String>,
    /// The signal by which somebody ended it, if so.
    pub ended_by: Option<i32>,
}

impl Subject {
    /// Runs the program once. `None` in place of the trace's path keeps nothing.
    pub fn record(
        target: &Target,
        plan: &Plan,
        limit: Duration,
        nature: Nature,
        path: PathBuf,
        functions: FunctionBlocks,
    ) -> Result<Subject, Error> {
        let outcome = launch::run_limited(target, plan, Some(limit))?;
        let log = LogFile::open(&outcome.log())?;
        if !log.is_claimed() {
            return Err(examine::not_instrumented(&target.program, nature));
        }
        let mut run = Run::default();
        let mut converted = convert::convert(&log, &target.directory, &mut run, |_| ())?;
        run.names = std::mem::take(&mut converted.names);
        let recording = Recording::new(target, plan, &outcome, &converted);
        let mut failed = Vec::new();
        if outcome.timed_out {
            failed.push("the program did not end in time and was stopped".into());
        }
        failed.extend(recording.assertion.iter().map(|text| format!("assertion failed: {text}")));
        failed.extend(recording.deadlock.iter().flatten().map(convert::Waiting::sentence));
        if let (Some(fatal), []) = (converted.survey.fatal, &failed[..]) {
            failed.push(format!("signal {} at {}", fatal.signal, converted.symbols.place(fatal.pc).text));
        }
        let ended_by = outcome.status.signal().filter(|signal| [SIGINT, SIGTERM, SIGHUP, SIGQUIT].contains(signal));
        Ok(Subject { ended_by, ..Self::new(run, recording, path, failed, functions)? })
    }

    /// A replay that did something new.
    pub fn of_replay(replay: Replay, path: PathBuf, functions: FunctionBlocks) -> Result<Subject, Error> {
        Self::new(replay.run, replay.recording, path, Vec::new(), functions)
    }

    fn new(
        run: Run,
        recording: Recording,
        path: PathBuf,
        failed: Vec<String>,
        functions: FunctionBlocks,
    ) -> Result<Subject, Error> {
        let trace =
            trace_of(&run, functions).map_err(|error| Error::Trace(error.in_input(&path.display().to_string())))?;
        Ok(Subject { trace: Arc::new(trace), run, recording, path, failed, ended_by: None })
    }

    /// Writes the trace, with how it was recorded.
    pub fn save(&self) -> Result<(), Error> {
        let mut sink = format::create(&self.path, Format::Portent, Dialect::Portent, Layout::default())?;
        let mut source = Source { run: &self.run, at: 0 };
        let mut batch = InputBatch::default();
        while source.next_batch(&mut batch)? {
            sink.write(&self.run.names, &batch)?;
        }
        sink.attach(RECORDING, &self.recording.to_json()?)?;
        sink.finish()?;
        Ok(())
    }

    /// What the run does, as operations at places: what is new in another run is told by what is not among them.
    pub fn behaviour(run: &Run) -> HashSet<(u16, String)> {
        let mut seen = HashSet::new();
        let mut known = HashSet::new();
        for event in &run.events {
            if known.insert((event.op, event.loc)) {
                seen.insert((event.op.code(), run.names.location(event.loc).to_string()));
            }
        }
        seen
    }
}

/// A run as a trace.
pub fn trace_of(run: &Run, functions: FunctionBlocks) -> Result<Trace, TraceError> {
    Trace::from_input_watched(&mut Source { run, at: 0 }, functions, |_| ())
}

/// A path beside another, for the run number `number` of a round.
pub fn path_of_round(path: &Path, round: u32, number: usize) -> PathBuf {
    path.with_extension(format!("round{round}-{number}.portent"))
}

/// A run as a source of events.
struct Source<'a> {
    run: &'a Run,
    at: usize,
}

impl InputSource for Source<'_> {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        batch.restart(self.at as u64, portent_trace::BatchPlace::Memory);
        let end = (self.at + InputBatch::TARGET).min(self.run.events.len());
        for event in &self.run.events[self.at..end] {
            batch.push(*event);
        }
        self.at = end;
        Ok(!batch.is_empty())
    }
    fn names(&self) -> &Names {
        &self.run.names
    }
    fn take_names(&mut self) -> Names {
        self.run.names.clone()
    }
    fn progress(&self) -> Progress {
        Progress { done: self.at as u64, total: Some(self.run.events.len() as u64) }
    }
}
