//! Checking a process tree: every process with instrumentation that a program or a driver (`ctest`, `make check`, a script)
//! started is checked on its own.
//!
//! The driver runs once, and each process leaves its recording. A process with threads is then started again by itself, with its
//! own command line, directory and environment, and explored like a program that was named; for a child that was forked, its
//! program is started, and the child is what is recorded. Where a process ends otherwise than it did in the tree, because it needs
//! what the driver made for it, only what it did there is examined: its findings are predicted and not replayed, and the report
//! says so.

use super::exploring::{self, Target};
use super::suites::Suite;
use crate::failure::Failure;
use crate::figures::count;
use crate::interrupt::INTERRUPTED;
use crate::runs::Home;
use portent_explore::{End, Error, Exploration, Options, Plan, Program, Run};
use portent_native::convert::survey::Survey;
use portent_native::record::{NativeProgram, run_of};
use portent_native::run::examine::{self, Nature};
use portent_native::run::family::{self, Member};
use portent_native::run::launch;
use portent_native::run::log_file::LogFile;
use portent_native::run::output::Streams;
use portent_native::run::owner;
use portent_report::{Explored, Process, Report, TraceSize};
use portent_trace::{ObjectClass, TraceError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A driver runs many programs: so many times as long as one run may take, it may take.
pub(crate) const RUNS_OF_A_DRIVER: u32 = 10;
/// Unless a time is given for all, each process has at least this.
const LEAST: Duration = Duration::from_secs(20);

/// Where the processes of a tree leave their recordings, and how the driver ended.
pub(crate) struct Tree {
    directory: TempDir,
    driven: Mutex<Option<Driven>>,
}

struct Driven {
    end: End,
    timed_out: bool,
}

impl Tree {
    /// An empty one.
    pub(crate) fn new() -> Result<Tree, Failure> {
        let failed = |error| TraceError::whole(error).in_input(&std::env::temp_dir().display().to_string());
        let mut builder = tempfile::Builder::new();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let directory = builder.prefix("portent-tree-").permissions(private).tempdir().map_err(failed)?;
        owner::own(directory.path(), None).map_err(failed)?;
        Ok(Tree { directory, driven: Mutex::new(None) })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a driver, which is not recorded itself; an error if nothing that it started is.
    pub(crate) fn drive(&self, program: &NativeProgram, limit: Duration) -> Result<(), Failure> {
        let ended = launch::drive(&program.invocation, Streams::Kept { shown: true }, Some(limit))?;
        if family::members(self.path())?.is_empty() {
            return Err(examine::not_instrumented(&program.invocation.program, program.nature).into());
        }
        let driven = Driven { end: ended.end(), timed_out: ended.timed_out };
        *lock(&self.driven) = Some(driven);
        Ok(())
    }
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What is needed to check the processes of a tree.
pub(crate) struct Checking<'a> {
    pub(crate) tree: &'a Tree,
    /// What started them.
    pub(crate) program: &'a NativeProgram,
    /// What people call that.
    pub(crate) name: &'a str,
    pub(crate) home: &'a Home,
    /// How to explore, with so much time.
    pub(crate) options: &'a dyn Fn(Option<Duration>) -> Result<Options, Failure>,
}

/// A process that is to be checked.
struct Subject<'a> {
    member: &'a Member,
    log: LogFile,
    name: String,
    /// How often it ran in the same way.
    times: usize,
}

impl Checking<'_> {
    /// Checks each process that left a recording, and adds what comes out to the report. Time that a program which is checked
    /// itself has used counts, where `limited` says that the time is for all.
    pub(crate) fn all(
        &self,
        report: &mut Report,
        started: Instant,
        limited: bool,
    ) -> Result<Vec<Exploration>, Failure> {
        let members = family::members(self.tree.path())?;
        let mut scope = Vec::new();
        let subjects = self.subjects(&members, &mut scope)?;
        let drives = self.program.nature != Nature::Instrumented;
        if drives {
            self.tell_driver(subjects.len(), &mut scope);
        } else if !subjects.is_empty() {
            self.begin_with_itself(report);
        }
        scope.extend(without_instrumentation(&family::without_runtime(self.tree.path(), &members)));
        report.scope.append(&mut scope);
        let mut explorations = Vec::new();
        let total = (self.options)(None)?.budget;
        for (at, subject) in subjects.iter().enumerate() {
            let left = total.saturating_sub(started.elapsed()) / (subjects.len() - at) as u32;
            let budget = if limited { left } else { left.max(LEAST) };
            if INTERRUPTED.load(Ordering::Relaxed) || (limited && left.is_zero()) {
                let why = if limited { "out of time" } else { "interrupted" };
                report.scope.push(format!("{}: not checked ({why})", subject.name));
                continue;
            }
            let options = (self.options)(Some(budget))?;
            explorations.push(self.one(report, &members, subject, at + 1, options)?);
        }
        if drives || !subjects.is_empty() {
            report.explored = Some(explored_in_all(report));
        }
        Ok(explorations)
    }

    /// The processes that are worth it: with threads, or dead. Those that ran in the same way are one.
    fn subjects<'a>(&self, members: &'a [Member], scope: &mut Vec<String>) -> Result<Vec<Subject<'a>>, Failure> {
        let directory = &self.program.invocation.directory;
        let mut subjects: Vec<Subject<'a>> = Vec::new();
        let mut single = 0;
        let suite = Suite::of(&self.program.invocation);
        for member in members {
            let Some(log) = member.recording()? else { continue };
            if let Some(known) = subjects.iter_mut().find(|known| known.member.repeats(member)) {
                known.times += 1;
                continue;
            }
            if log.header().threads < 2 && Survey::of(&log, |_| ()).exit == Some(0) {
                single += 1;
                continue;
            }
            let mut name = member.name(directory);
            if let Some(test) = suite.test_of(member) {
                name = format!("{test} ({name})");
            }
            if member.forked {
                name.push_str(" (forked child)");
            }
            let same = subjects.iter().filter(|known| known.member.forked && known.name.starts_with(&name)).count();
            if same > 0 {
                name.push_str(&format!(" {}", same + 1));
            }
            subjects.push(Subject { member, log, name, times: 1 });
        }
        if single > 0 {
            let what = if single == 1 { "1 process".to_owned() } else { format!("{} processes", count(single)) };
            scope.push(format!("{what} that it started had one thread only: there is nothing to predict from them"));
        }
        Ok(subjects)
    }

    /// What is to be said of what started them and is not recorded.
    fn tell_driver(&self, subjects: usize, scope: &mut Vec<String>) {
        let name = self.program.invocation.program.file_name().unwrap_or_default().to_string_lossy();
        scope.push(match subjects {
            0 => format!("{name} has no instrumentation, and nothing with threads that it started has"),
            _ => format!("{name} has no instrumentation: only what it started and has it is checked"),
        });
        if let Some(driven) = &*lock(&self.tree.driven) {
            if driven.timed_out {
                scope.push(format!("{name} took too long and was stopped: what it had not started by then is missing"));
            } else if driven.end != End::Status(0) {
                let how = match driven.end {
                    End::Status(status) => format!("status {status}"),
                    End::Signal(signal) => format!("signal {signal}"),
                };
                scope.push(format!("{name} itself ended with {how}"));
            }
        }
    }

    /// What the report has so far is of the program that was named.
    fn begin_with_itself(&self, report: &mut Report) {
        let scope = std::mem::take(&mut report.scope);
        let explored = report.explored.clone();
        report.processes.push(Process { name: self.name.to_owned(), size: report.size, explored, scope });
        for story in &mut report.stories {
            story.processes = vec![0];
        }
    }

    /// Checks one process: on its own if it can be run so, else as far as its recording goes.
    fn one(
        &self,
        report: &mut Report,
        members: &[Member],
        subject: &Subject<'_>,
        number: usize,
        options: Options,
    ) -> Result<Exploration, Failure> {
        let invocation = subject.member.invocation(members)?;
        let seen = run_of(&subject.log, &invocation)?;
        let mut process = Process { name: subject.name.clone(), ..Process::default() };
        if subject.times > 1 {
            process.scope.push(format!("it ran {} times in the same way: it was checked once", subject.times));
        }
        let path = self.home.trace_of(number, &subject.member.file_name())?;
        let target = Target {
            search: None,
            path: &path,
            shown: self.home.shown_of_processes(),
            process: Some(report.processes.len()),
            once: false,
        };
        let alone = match self.hindrance(subject) {
            Some(why) => Err(why),
            None => {
                let mut program = NativeProgram::new(invocation, Nature::Instrumented).for_many_runs();
                program.spurious = self.program.spurious;
                let alone = Alone { program: &program, end: seen.outcome.end };
                exploring::explore(&alone, &options, &target, report).map_err(|failure| failure.to_string())
            }
        };
        let (exploration, warnings) = match alone {
            Ok(explored) => {
                process.explored = Some(exploring::explored(&explored.0));
                explored
            }
            Err(why) => {
                process.scope.push(format!("only what it did when {} ran is examined, not replayed: {why}", self.name));
                let options = Options {
                    recordings: 1,
                    rounds: 1,
                    times: 0,
                    neighbours: 0,
                    models: vec![options.models[0]],
                    ..options
                };
                let only = OnlyOnce(Mutex::new(Some(seen)));
                exploring::explore(&only, &options, &Target { once: true, ..target }, report)?
            }
        };
        process.scope.extend(warnings);
        if let Some(examined) = exploration.examined.first() {
            let trace = &examined.trace;
            process.size = TraceSize {
                events: trace.input_len(),
                threads: trace.threads(),
                variables: trace.names().count(ObjectClass::Variable),
                locks: trace.locks(),
            };
        }
        report.processes.push(process);
        Ok(exploration)
    }

    /// Why a process cannot be run on its own, if that is known beforehand.
    fn hindrance(&self, subject: &Subject<'_>) -> Option<String> {
        let ended = family::was_ended(self.tree.path(), subject.member.id.0);
        ended.then(|| "it still ran when that had ended, as daemons do, and was ended then".to_owned())
    }
}

/// What is to be said of processes of these programs, which nobody could look into.
fn without_instrumentation(programs: &[PathBuf]) -> Option<String> {
    /// As many as a sentence bears.
    const NAMED: usize = 6;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for program in programs {
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
        *counts.entry(name.trim_end_matches(" (deleted)").to_owned()).or_default() += 1;
    }
    let word = |(name, &times): (&String, &usize)| if times == 1 { name.clone() } else { format!("{name} ({times})") };
    let mut words: Vec<String> = counts.iter().take(NAMED).map(word).collect();
    if counts.len() > NAMED {
        words.push(format!("{} more", counts.len() - NAMED));
    }
    let (what, have) = match programs.len() {
        0 => return None,
        1 => ("1 process".to_owned(), "has"),
        several => (format!("{} processes", count(several as u64)), "have"),
    };
    Some(format!(
        "at least {what} that it started {have} no instrumentation, and nothing of that is seen: {}",
        words.join(", ")
    ))
}

/// How much of what all processes can do was run.
fn explored_in_all(report: &Report) -> Explored {
    let mut all = Explored { complete: true, ..Explored::default() };
    for process in &report.processes {
        match &process.explored {
            Some(one) => {
                all.runs += one.runs;
                all.behaviours += one.behaviours;
                all.left += one.left;
                all.complete &= one.complete;
                all.assumptions.extend(
                    one.assumptions.iter().filter(|one| !all.assumptions.contains(one)).cloned().collect::<Vec<_>>(),
                );
                all.unproven.extend(one.unproven.iter().cloned());
            }
            None => all.complete = false,
        }
    }
    all.complete &= !report.processes.is_empty();
    all
}

/// A process of a tree that is run by itself: its first run must end as it did there.
struct Alone<'a> {
    program: &'a NativeProgram,
    end: End,
}

impl Program for Alone<'_> {
    fn unexplored(&self, run: &Run) -> Vec<String> {
        self.program.unexplored(run)
    }

    fn run(&self, plan: &Plan<'_>) -> Result<Run, Error> {
        let run = self.program.run(plan)?;
        if plan.like.is_none() && plan.seed == 0 && run.outcome.end != self.end {
            let words = |end: End| match end {
                End::Status(status) => format!("status {status}"),
                End::Signal(signal) => format!("signal {signal}"),
            };
            let (own, there) = (words(run.outcome.end), words(self.end));
            return Err(Error::refused(format!("run by itself it ends with {own}, there with {there}"), ""));
        }
        Ok(run)
    }

    fn run_each(
        &self,
        plans: &[Plan<'_>],
        limit: &(dyn Fn() -> Duration + Sync),
        ran: &mut dyn FnMut(Option<Run>) -> bool,
    ) -> Result<(), Error> {
        self.program.run_each(plans, limit, ran)
    }

    fn declarations(&self) -> BTreeMap<String, String> {
        self.program.declarations()
    }
}

/// A run that cannot be had again.
struct OnlyOnce(Mutex<Option<Run>>);

impl Program for OnlyOnce {
    fn run(&self, _: &Plan<'_>) -> Result<Run, Error> {
        lock(&self.0).take().ok_or_else(|| Error::refused("the process cannot be run on its own", ""))
    }
}
