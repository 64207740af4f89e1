//! Waiting for a program: the signals that are meant for it, its end, and the time that it may take.

use super::output::Files;
use crate::Error;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use portent_trace::TraceError;
use rustix::process::WaitOptions;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// A program that runs, as a child of this process.
pub(super) enum Process {
    /// It was started.
    Started(Child),
    /// A fork server made it.
    Copied(Pid),
}

impl Process {
    fn pid(&self) -> Pid {
        match self {
            Process::Started(child) => Pid::from_raw(child.id() as i32),
            Process::Copied(pid) => *pid,
        }
    }

    fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        match self {
            Process::Started(child) => child.try_wait(),
            Process::Copied(pid) => wait_for(*pid, WaitOptions::NOHANG),
        }
    }

    /// Waits until it ends.
    pub(super) fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match self {
            Process::Started(child) => child.wait(),
            Process::Copied(pid) => loop {
                match wait_for(*pid, WaitOptions::empty()) {
                    Ok(Some(status)) => return Ok(status),
                    Ok(None) => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            },
        }
    }
}

/// How a child of this process ended that the standard library does not know, if it has.
fn wait_for(pid: Pid, options: WaitOptions) -> std::io::Result<Option<ExitStatus>> {
    let ended = rustix::process::waitpid(rustix::process::Pid::from_raw(pid.as_raw()), options)?;
    Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
}

/// Signals to this process while a program runs: those that are the program's, and the one that says that it has ended.
pub(super) struct Forwarding {
    signals: SignalDelivery<UnixStream, SignalOnly>,
}

/// How a program ended.
#[derive(Clone, Copy)]
pub(super) struct Followed {
    pub(super) status: ExitStatus,
    /// It had to be stopped.
    pub(super) timed_out: bool,
    /// Somebody asked this process to end meanwhile.
    pub(super) asked_to_end: bool,
}

/// Does something while signals that would end this process are caught.
pub(super) fn with_signals<T>(work: impl FnOnce(&mut Forwarding) -> Result<T, Error>) -> Result<T, Error> {
    let listen = || {
        let (read, write) = UnixStream::pair()?;
        SignalDelivery::with_pipe(read, write, SignalOnly, [SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    };
    let signals = listen().map_err(|error| Error::Trace(TraceError::whole(error).in_input("signals")))?;
    work(&mut Forwarding { signals })
}

/// How long to wait, at most, for the system to say that the program has ended before looking: should this process have
/// been started with that signal blocked, nobody says so.
const PATIENCE: Duration = Duration::from_millis(100);

impl Forwarding {
    /// Waits for the program, passes signals on to it and shows what it writes meanwhile; stops it after `limit`.
    pub(super) fn follow(
        &mut self,
        mut program: Process,
        limit: Option<Duration>,
        mut files: Option<&mut Files>,
    ) -> std::io::Result<Followed> {
        let pid = program.pid();
        // A limit that no clock reaches is none.
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        // What is written at once is shown soon; what is written for long, in larger pieces.
        let mut pause = Duration::from_millis(1);
        let mut asked_to_end = false;
        loop {
            if let Some(status) = program.try_wait()? {
                // The terminal may have told both at once.
                asked_to_end |= self.forward(None);
                return Ok(Followed { status, timed_out: false, asked_to_end });
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                // It has not been waited for, so the number is still its own.
                signal::kill(pid, Signal::SIGKILL)?;
                return Ok(Followed { status: program.wait()?, timed_out: true, asked_to_end });
            }
            let mut patience = left.unwrap_or(PATIENCE).min(PATIENCE);
            if let Some(files) = &mut files {
                files.keep_up();
                patience = patience.min(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            self.wait(patience)?;
            asked_to_end |= self.forward(Some(pid));
        }
    }

    /// Waits until a signal comes, but not longer than so.
    fn wait(&self, patience: Duration) -> std::io::Result<()> {
        let milliseconds = u16::try_from(patience.as_millis()).unwrap_or(u16::MAX).max(1);
        let mut told = [PollFd::new(self.signals.get_read().as_fd(), PollFlags::POLLIN)];
        match poll(&mut told, PollTimeout::from(milliseconds)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Passes on the signals that came, if the program is still there; whether there were any.
    fn forward(&mut self, pid: Option<Pid>) -> bool {
        let mut any = false;
        for number in self.signals.pending().filter(|number| *number != SIGCHLD) {
            any = true;
            // The terminal sends its signals to everybody who is in the foreground, the program included.
            let is_everybodys = number != SIGTERM && in_foreground();
            if let (false, Ok(signal), Some(pid)) = (is_everybodys, Signal::try_from(number), pid) {
                // The program has not been waited for, so the number is still its own.
                let _ = signal::kill(pid, signal);
            }
        }
        any
    }
}

/// Whether this process and what it starts are what the terminal's keys reach.
fn in_foreground() -> bool {
    let Ok(terminal) = File::open("/dev/tty") else { return false };
    nix::unistd::tcgetpgrp(&terminal).is_ok_and(|group| group == nix::unistd::getpgrp())
}
