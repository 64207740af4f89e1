//! Running a program under the runtime: its session, its plan, its start and its end.
//!
//! A session is a directory with the recording and the plan, which the runtime finds by `PORTENT_SESSION`. So that a replay
//! sees the same addresses, programs run without address randomisation, and Portent's own part of the environment always
//! has the same size.

use super::follow::{Followed, Process, with_signals};
use super::log_file::LogFile;
use super::output::{Files, Streams};
use super::server::{Copied, ForkServer};
use super::session::{self, Session};
use super::watch::Watch;
use super::{descriptors, family, library, owner};
use crate::Error;
use nix::sys::personality::{self, Persona};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use portent_explore::{End, Output};
use portent_runtime::plan::Plan;
use portent_trace::TraceError;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What to run, with what, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program's file, absolute.
    pub program: PathBuf,
    /// What it is called with, its own name first.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// All of its environment, but for what a session adds.
    pub environment: Vec<(OsString, OsString)>,
    /// Hardly anything of its environment is to be written into a trace.
    pub bare: bool,
    /// It goes on if this process is killed; otherwise it ends with it.
    pub outlives: bool,
    /// What it reads as standard input; Portent's own if nothing is given.
    pub input: Option<PathBuf>,
    /// A command, such as a debugger, that gets program and arguments behind its own and starts it.
    pub wrapper: Vec<OsString>,
    /// Its output is not shown.
    pub silent: bool,
    /// What it writes to standard output is shown on standard error: Portent's own standard output is for a report alone.
    pub aside: bool,
    /// Descriptors from 3 on that it inherits; whatever is there if nothing is known about them.
    pub descriptors: Option<Vec<RawFd>>,
    /// Which of the children that it forks is meant; 0: the program itself.
    pub lineage: u64,
    /// Where every other process of a run that is like no other leaves its recording; nowhere if nothing is said.
    pub processes: Option<PathBuf>,
    /// It is not recorded itself: all that matters is what it starts.
    pub drives: bool,
}

/// A session that is over: how its program ended.
pub struct Ended {
    /// How the program ended.
    pub status: ExitStatus,
    /// How long it ran.
    pub elapsed: Duration,
    /// The system refused to switch address randomisation off: replays will see other addresses.
    pub randomised: bool,
    /// It ran for too long and was stopped.
    pub timed_out: bool,
    /// Somebody asked this process to end while it ran, and it was told.
    pub asked_to_end: bool,
    /// What it wrote, where that was kept.
    pub output: Output,
    /// Processes that were still there after it and had to be ended.
    pub stopped: Vec<u64>,
    /// What it recorded.
    pub log: LogFile,
    // Behind the recording, which lies in it.
    #[allow(dead_code, reason = "it goes when it is dropped")]
    session: Session,
}

impl Ended {
    /// How the program ended.
    pub fn end(&self) -> End {
        match (self.status.code(), self.status.signal()) {
            (Some(status), _) => End::Status(status),
            (None, signal) => End::Signal(signal.unwrap_or(0)),
        }
    }
}

pub(super) const SESSION: &str = "PORTENT_SESSION";
pub(super) const LIBRARIES: &str = "LD_LIBRARY_PATH";
/// How threads of OpenMP's libraries wait for each other. One that spins keeps the others from running, as one thread runs at a
/// time; one that sleeps is noticed.
const WAITING: &str = "OMP_WAIT_POLICY";
/// Paths that a session adds to the environment are made this long, if they are shorter.
const SESSION_LENGTH: usize = 96;
pub(super) const LIBRARY_LENGTH: usize = 160;

impl Invocation {
    /// A program with its arguments, here and now.
    pub fn here(program: PathBuf, arguments: Vec<OsString>) -> Result<Invocation, Error> {
        let directory = std::env::current_dir()
            .map_err(|error| Error::Trace(TraceError::whole(error).in_input("current directory")))?;
        let environment = std::env::vars_os().filter(|(name, _)| name != SESSION).collect();
        Ok(Invocation {
            program,
            arguments,
            directory,
            environment,
            bare: false,
            outlives: false,
            input: None,
            wrapper: Vec::new(),
            silent: false,
            aside: false,
            descriptors: Some(descriptors::inherited()),
            lineage: 0,
            processes: None,
            drives: false,
        })
    }

    pub(super) fn command(&self, session: &Path, libraries: &Path) -> Result<Command, Error> {
        let mut command = match self.wrapper.split_first() {
            Some((wrapper, rest)) => {
                let mut command = Command::new(wrapper);
                command.args(rest).arg(&self.program);
                command
            }
            None => {
                let mut command = Command::new(&self.program);
                if let Some(name) = self.arguments.first() {
                    command.arg0(name);
                }
                command
            }
        };
        command.args(self.arguments.iter().skip(1)).current_dir(&self.directory);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut search = stretched(libraries, LIBRARY_LENGTH);
        if let Some((_, before)) = self.environment.iter().find(|(name, value)| name == LIBRARIES && !value.is_empty())
        {
            search.push(":");
            search.push(before);
        }
        command.env(LIBRARIES, search).env(SESSION, stretched(session, SESSION_LENGTH));
        if !self.environment.iter().any(|(name, _)| name == WAITING) {
            command.env(WAITING, "passive");
        }
        if let Some(input) = &self.input {
            let file = File::open(input).map_err(|error| io(error, input))?;
            command.stdin(Stdio::from(file));
        }
        if let Some(wanted) = &self.descriptors {
            descriptors::hand_down(&mut command, wanted).map_err(|error| io(error, Path::new("/dev/null")))?;
        }
        Ok(command)
    }
}

/// A path that is at least so long and names the same: slashes can be repeated.
pub(super) fn stretched(path: &Path, length: usize) -> OsString {
    let missing = length.saturating_sub(path.as_os_str().len());
    let mut longer = OsString::from("/".repeat(if path.is_absolute() { missing } else { 0 }));
    longer.push(path);
    longer
}

pub(super) fn io(error: std::io::Error, path: &Path) -> Error {
    Error::Trace(TraceError::whole(error).in_input(&path.display().to_string()))
}

/// Processes that a recorded program has started may be there so long after it.
const GRACE: Duration = Duration::from_secs(2);
/// And so long after a program that is run once more, where nobody looks at them.
const SHORT_GRACE: Duration = Duration::from_millis(200);

/// Runs a program under the runtime, as the plan says, until it ends or has run for longer than `limit`. Processes that it
/// started and that are left then are waited for, a while; after that they are ended.
///
/// Signals that ask this process to end go to the program instead; it decides what to do about them.
pub fn run(
    invocation: &Invocation,
    plan: &Plan,
    streams: Streams,
    limit: Option<Duration>,
    processes: Option<&Path>,
) -> Result<Ended, Error> {
    run_seen(invocation, plan, streams, limit, processes, &mut |_| ())
}

/// A program that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its recording, which grows.
    pub log: PathBuf,
    pid: Pid,
}

impl Running {
    /// The system's number of it.
    pub fn process(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }
    /// Sends it a signal, by its number.
    pub fn signal(&self, number: i32) -> std::io::Result<()> {
        let signal = Signal::try_from(number)?;
        Ok(signal::kill(self.pid, signal)?)
    }
}

/// The number of a signal, by its name: `TERM`, `SIGTERM` or `15`.
pub fn signal_named(name: &str) -> Option<i32> {
    let by_name = |name: &str| name.parse::<Signal>().ok();
    let by_number = || name.parse().ok().and_then(|number: i32| Signal::try_from(number).ok());
    by_name(name).or_else(|| by_name(&format!("SIG{name}"))).or_else(by_number).map(|signal| signal as i32)
}

/// The same as [`run`]; `seen` is told about the program when it has been started.
pub fn run_seen(
    invocation: &Invocation,
    plan: &Plan,
    streams: Streams,
    limit: Option<Duration>,
    processes: Option<&Path>,
    seen: &mut dyn FnMut(Running),
) -> Result<Ended, Error> {
    let libraries = library::directory()?;
    let session = session::directory(invocation)?;
    let in_session = |error| io(error, session.path());
    // Of many runs none is worth much; the one that nothing is like yet is.
    let is_first = plan.family.is_empty() && !invocation.drives;
    owner::own(session.path(), is_first.then_some(invocation)).map_err(in_session)?;
    let log = session::begin(&session, plan, invocation.drives)?;
    if let Some(processes) = processes {
        let link = session.path().join("processes");
        std::os::unix::fs::symlink(processes, &link).map_err(|error| io(error, &link))?;
    }
    let mut command = invocation.command(session.path(), &libraries)?;
    if !invocation.outlives {
        ends_with_us(&mut command);
    }
    let mut files = match streams {
        Streams::Inherited => None,
        Streams::Kept { shown } => {
            let files = Files::new(session.path(), shown.then_some(invocation.aside)).map_err(in_session)?;
            files.connect(&mut command).map_err(in_session)?;
            Some(files)
        }
    };
    let watch = processes.map(|_| Watch::new(session.path())).transpose().map_err(in_session)?;
    let started = Instant::now();
    let mut first = 0;
    let (Followed { status, timed_out, asked_to_end }, randomised) = with_signals(|signals| {
        let (child, randomised) = start(&mut command)?;
        first = child.id() as i32;
        seen(Running { log: session.path().join("log"), pid: Pid::from_raw(first) });
        let followed = signals
            .follow(Process::Started(child), limit, files.as_mut())
            .map_err(|error| io(error, &invocation.program))?;
        Ok((followed, randomised))
    })?;
    let others = |patience| family::wait_for_rest(session.path(), None, patience);
    let (stopped, timed_out) = if plan.lineage != 0 {
        // The child may well outlive the program that forked it.
        let left = limit.map_or(Duration::MAX / 4, |limit| limit.saturating_sub(started.elapsed()));
        let stopped = others(left.min(Duration::from_secs(100 * 365 * 24 * 3600)));
        let timed_out = timed_out || !stopped.is_empty();
        (stopped, timed_out)
    } else if let Some(processes) = processes {
        let stopped = others(GRACE);
        family::note_ended(processes, &stopped).map_err(|error| io(error, processes))?;
        let seen = watch.map(Watch::finish).unwrap_or_default();
        family::note_seen(processes, &seen, first).map_err(|error| io(error, processes))?;
        (stopped, timed_out)
    } else if recorded(&log, invocation)?.header().children > 0 {
        (others(SHORT_GRACE), timed_out)
    } else {
        (Vec::new(), timed_out)
    };
    let elapsed = started.elapsed();
    let output = files.map(Files::finish).transpose().map_err(in_session)?.unwrap_or_default();
    let log = recorded(&log, invocation)?;
    let session = Session::Own(session);
    Ok(Ended { status, elapsed, randomised, timed_out, asked_to_end, output, stopped, log, session })
}

/// What a program has recorded.
fn recorded(log: &File, invocation: &Invocation) -> Result<LogFile, Error> {
    log.try_clone().and_then(LogFile::of).map_err(|error| {
        let text = format!("the recording of {} cannot be read: {error}", invocation.program.display());
        Error::refused(
            text,
            "does the program write to files of others, or to descriptors from 900 on? Then it destroys it",
        )
    })
}

/// The same, with output that is not shown, as a copy that a fork server makes; `None` if that cannot be.
pub fn run_copy(
    server: &ForkServer,
    invocation: &Invocation,
    plan: &Plan,
    limit: Option<Duration>,
) -> Result<Option<Ended>, Error> {
    let Some(mut session) = server.session(invocation, plan, limit) else { return Ok(None) };
    let in_memory = |error| io(error, Path::new("memory of a run"));
    session.begin(plan).map_err(in_memory)?;
    let mut files = session.files().map_err(in_memory)?;
    let started = Instant::now();
    let followed = with_signals(|signals| {
        let Some(Copied { process, randomised }) = server.start(&session, &files) else { return Ok(None) };
        let followed =
            signals.follow(process, limit, Some(&mut files)).map_err(|error| io(error, &invocation.program))?;
        Ok(Some((followed, randomised)))
    })?;
    let Some((Followed { status, timed_out, asked_to_end }, randomised)) = followed else { return Ok(None) };
    let log = session.log().map_err(in_memory)?;
    let mut stopped = Vec::new();
    if log.header().children > 0 {
        session.spoil();
        stopped = server.wait_for_rest(SHORT_GRACE);
    }
    if log.is_full() {
        server.give_up("a run records more than is kept in memory");
        return Ok(None);
    }
    let elapsed = started.elapsed();
    let output = files.finish().map_err(in_memory)?;
    let session = Session::Lent(session);
    Ok(Some(Ended { status, elapsed, randomised, timed_out, asked_to_end, output, stopped, log, session }))
}

/// Runs a program for what it starts: every process with the runtime leaves its recording in the invocation's directory for
/// them, the first like the others.
pub fn drive(invocation: &Invocation, streams: Streams, limit: Option<Duration>) -> Result<Ended, Error> {
    let invocation = Invocation { drives: true, ..invocation.clone() };
    run(&invocation, &Plan::default(), streams, limit, invocation.processes.as_deref())
}

/// Makes the program end when this thread does, which waits for it: nobody would record it any more.
fn ends_with_us(command: &mut Command) {
    let us = nix::unistd::getpid();
    #[allow(unsafe_code)]
    // SAFETY: two system calls, which may be made between `fork` and `exec`.
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // It may have been too late.
            if nix::unistd::getppid() == us { Ok(()) } else { Err(ErrorKind::Interrupted.into()) }
        });
    }
}

/// Starts the program without address randomisation; whether the system refused that.
pub(super) fn start(command: &mut Command) -> Result<(Child, bool), Error> {
    // What a thread sets for itself, the processes it starts inherit; nothing else here is touched by it.
    let before = personality::get();
    let refused = match before {
        Ok(persona) => personality::set(persona | Persona::ADDR_NO_RANDOMIZE).is_err(),
        Err(_) => true,
    };
    let child = command.spawn();
    if let Ok(persona) = before {
        // It worked a moment ago; should it not now, only this thread's later children would know.
        let _ = personality::set(persona);
    }
    let child = child.map_err(|error| {
        let what = command.get_program();
        let help = match error.kind() {
            ErrorKind::NotFound if what != OsStr::new("gdb") => {
                "is the path right? A script needs its interpreter, a program its loader"
            }
            ErrorKind::NotFound => "gdb is not installed",
            ErrorKind::PermissionDenied => "you may not run it",
            _ => "can it be started without portent?",
        };
        Error::not_started(format!("{}: {error}", Path::new(what).display()), help)
    })?;
    let path = "/proc/sys/kernel/randomize_va_space";
    let stays = || std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "0");
    Ok((child, refused && !stays()))
}

/// Ends this process by the signal that ended the program. Returns if that does not work.
pub fn die_of(number: i32) {
    // One core dump, the program's, is enough.
    let _ = nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_CORE, 0, 0);
    if signal_hook::low_level::emulate_default_handler(number).is_err()
        && let Ok(signal) = Signal::try_from(number)
    {
        let _ = signal::raise(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretched_path_names_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let long = stretched(folder.path(), 96);
        assert_eq!(long.len(), 96);
        assert_eq!(Path::new(&long).canonicalize().unwrap(), folder.path().canonicalize().unwrap());
        let longer = folder.path().join("x".repeat(200));
        assert_eq!(stretched(&longer, 96), longer.as_os_str());
    }
}
