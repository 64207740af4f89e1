//! The fork server of a program: one process of it that has been started, and of which each run is a copy.
//!
//! Starting a program, loading and linking it takes milliseconds; a copy of a process that has done so takes a fraction of one.
//! What happens inside is in inside/server.rs of the runtime. A run that a server made is like one that was started, event for
//! event. Where that cannot be, programs are started as ever: nobody has to know which it was.
//!
//! | it is not used | because |
//! |---|---|
//! | for the recorded run, under a debugger, for a forked child, where output is shown | these need a process of their own, or are few |
//! | if libraries have threads, children, shared memory or files before the program begins, or know the process's number | a copy would not have these, or share them |
//! | if something was printed or read before that | every run has to |
//! | after the program's file has changed | the copy would be of the old one |
//! | after a run that recorded more than is kept in memory | it would not be all |
//! | where the system lacks something, or the process could not be started | |

use super::descriptors;
use super::follow::Process;
use super::launch::{self, Invocation};
use super::output::Files;
use super::session::{self, Lent, Places};
use super::{family, library, owner};
use crate::files::FileState;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use portent_runtime::plan::{Plan, SERVES, unfit};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read, Seek};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// The descriptor at which a server waits for orders: out of the way of the program's own.
const ORDERS: RawFd = 899;
/// How long a program may take until it serves, at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// The fork server of a program, from the first run that can be one of its copies on.
#[derive(Debug, Default)]
pub struct ForkServer {
    state: Mutex<State>,
    runs: AtomicU64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    NotTried,
    Serving(Box<Serving>),
    /// Programs are started; why.
    Unused(String),
}

/// A server that waits for orders.
#[derive(Debug)]
struct Serving {
    orders: UnixStream,
    process: Child,
    invocation: Invocation,
    program: FileState,
    randomised: bool,
    /// It was told to make a run, and has not answered.
    owes_answer: bool,
    places: Places,
    // Last: what writes there is gone by then.
    directory: TempDir,
}

/// A run that a server made.
pub(super) struct Copied {
    pub(super) process: Process,
    pub(super) randomised: bool,
}

impl ForkServer {
    /// Runs that it has made.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Why programs are started instead; `None` if they are not, or if nothing was tried yet.
    pub fn unused(&self) -> Option<String> {
        match &*self.lock() {
            State::Unused(why) => Some(why.clone()),
            State::NotTried | State::Serving(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for a run that a server makes; `None` if there can be no server for it.
    pub(super) fn session(&self, invocation: &Invocation, plan: &Plan, limit: Option<Duration>) -> Option<Lent> {
        if !suits(invocation, plan) {
            return None;
        }
        let mut state = self.lock();
        if matches!(*state, State::NotTried) {
            *state = match Serving::start(invocation, limit.unwrap_or(PATIENCE).min(PATIENCE)) {
                Ok(serving) => State::Serving(Box::new(serving)),
                Err(why) => State::Unused(why),
            };
        }
        let State::Serving(serving) = &*state else { return None };
        let wrong = match FileState::of(&invocation.program) {
            Some(now) if now == serving.program => None,
            _ => Some("the program has been built anew"),
        };
        if let Some(why) = wrong {
            *state = State::Unused(why.into());
            return None;
        }
        if serving.invocation != *invocation {
            return None;
        }
        serving.places.lend().ok()
    }

    /// Has a run made, in a session that it has lent; `None` if that failed, and will every time.
    pub(super) fn start(&self, session: &Lent, files: &Files) -> Option<Copied> {
        let mut state = self.lock();
        let State::Serving(serving) = &mut *state else { return None };
        match serving.order(session, files) {
            Ok(copied) => {
                self.runs.fetch_add(1, Ordering::Relaxed);
                Some(copied)
            }
            Err(error) => {
                *state = State::Unused(format!("the fork server failed: {error}"));
                None
            }
        }
    }

    /// From here on, programs are started; why.
    pub(super) fn give_up(&self, why: &str) {
        *self.lock() = State::Unused(why.into());
    }

    /// Waits for the processes of a run that are left, but not longer than so; then ends them. Their numbers.
    pub(super) fn wait_for_rest(&self, patience: Duration) -> Vec<u64> {
        match &*self.lock() {
            State::Serving(serving) => family::wait_for_rest(serving.directory.path(), Some(serving.pid()), patience),
            State::NotTried | State::Unused(_) => Vec::new(),
        }
    }
}

impl Serving {
    fn start(invocation: &Invocation, limit: Duration) -> Result<Serving, String> {
        let wanted = invocation.descriptors.as_deref().ok_or("it is not known which descriptors it inherits")?;
        if wanted.contains(&ORDERS) {
            return Err(format!("the program inherits descriptor {ORDERS}"));
        }
        let program = FileState::of(&invocation.program).ok_or("the program is gone")?;
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let directory = session::directory(invocation).map_err(|error| said(&error))?;
        owner::own(directory.path(), None).map_err(|error| said(&error))?;
        let plan = Plan { serve: ORDERS as u64, ..Plan::default() };
        session::write_plan(&directory.path().join("plan"), &plan).map_err(|error| said(&error))?;
        let libraries = library::directory().map_err(|error| said(&error))?;
        let mut command = invocation.command(directory.path(), &libraries).map_err(|error| said(&error))?;
        let mut input = match &invocation.input {
            Some(path) => Some(File::open(path).map_err(|error| said(&error))?),
            None => None,
        };
        if let Some(input) = &input {
            command.stdin(input.try_clone().map_err(|error| said(&error))?);
        }
        let files = Files::new(directory.path(), None).map_err(|error| said(&error))?;
        files.connect(&mut command).map_err(|error| said(&error))?;
        let (orders, theirs) = UnixStream::pair().map_err(|error| said(&error))?;
        descriptors::hand_over(&mut command, theirs.into(), ORDERS);
        let (process, randomised) = launch::start(&mut command).map_err(|error| said(&error))?;
        // The other end is the program's alone.
        drop(command);
        let invocation = invocation.clone();
        let (owes_answer, places) = (false, Places::default());
        let serving = Serving { orders, process, invocation, program, randomised, owes_answer, places, directory };
        serving.wait_until_ready(limit)?;
        serving.fits()?;
        if !files.is_untouched() {
            return Err("something is printed before the program begins".into());
        }
        if input.as_mut().is_some_and(|input| input.stream_position().is_ok_and(|at| at > 0)) {
            return Err("something is read before the program begins".into());
        }
        Ok(serving)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id() as i32)
    }

    /// Waits until the program has come to where it serves.
    fn wait_until_ready(&self, limit: Duration) -> Result<(), String> {
        let mut words = [0; 16];
        self.listen(&mut words, limit)
            .map_err(|error| format!("the program did not come to its beginning: {error}"))?;
        let [first, reason] = [&words[..8], &words[8..]].map(number);
        match (first, reason) {
            (SERVES, 0) => Ok(()),
            (SERVES, unfit::NO_THREAD_NUMBER) => {
                Err("the system does not tell where threads keep their numbers".into())
            }
            (SERVES, unfit::KNOWS_ITS_NUMBER) => {
                Err("something asks for the process's number before the program begins".into())
            }
            _ => Err("what waits for orders is no fork server".into()),
        }
    }

    /// Reads all of an answer, if it comes in time.
    fn listen(&self, words: &mut [u8], limit: Duration) -> std::io::Result<()> {
        let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX);
        loop {
            match poll(&mut [PollFd::new(self.orders.as_fd(), PollFlags::POLLIN)], timeout) {
                Ok(0) => return Err(std::io::ErrorKind::TimedOut.into()),
                Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return (&self.orders).read_exact(words),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether copies of it have all that it has, and share nothing but what programs that are started share.
    fn fits(&self) -> Result<(), String> {
        let about = Path::new("/proc").join(self.process.id().to_string());
        let unknown = |error: std::io::Error| format!("the system does not tell about the program: {error}");
        let names = |what: &str| -> Result<Vec<String>, String> {
            let entries = std::fs::read_dir(about.join(what)).map_err(unknown)?;
            Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
        };
        if names("task")?.len() > 1 {
            return Err("something makes threads before the program begins".into());
        }
        let children = about.join("task").join(self.process.id().to_string()).join("children");
        // Not every system tells that.
        if std::fs::read_to_string(children).is_ok_and(|text| !text.trim().is_empty()) {
            return Err("something starts processes before the program begins".into());
        }
        let inherited = self.invocation.descriptors.as_deref().unwrap_or_default();
        let known = |fd: &RawFd| *fd <= 2 || *fd == ORDERS || inherited.contains(fd);
        if let Some(fd) = names("fd")?.iter().filter_map(|name| name.parse().ok()).find(|fd| !known(fd)) {
            return Err(format!("something opens a file before the program begins, descriptor {fd}"));
        }
        let maps = std::fs::read_to_string(about.join("maps")).map_err(unknown)?;
        let is_shared = |line: &str| line.split(' ').nth(1).is_some_and(|rights| rights.ends_with('s'));
        match maps.lines().any(is_shared) {
            true => Err("something maps shared memory before the program begins".into()),
            false => Ok(()),
        }
    }

    /// Has a run made.
    fn order(&mut self, session: &Lent, files: &Files) -> std::io::Result<Copied> {
        let input = self.invocation.input.as_ref().map(File::open).transpose()?;
        let ([plan, log], [stdout, stderr]) = (session.for_program(), files.for_program());
        let mut given: Vec<BorrowedFd<'_>> = [plan, log, stdout, stderr].map(File::as_fd).into();
        given.extend(input.as_ref().map(File::as_fd));
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut along = SendAncillaryBuffer::new(&mut room);
        along.push(SendAncillaryMessage::ScmRights(&given));
        self.owes_answer = true;
        sendmsg(&self.orders, &[IoSlice::new(&[0])], &mut along, SendFlags::NOSIGNAL)?;
        let mut word = [0; 8];
        self.listen(&mut word, PATIENCE)?;
        self.owes_answer = false;
        match number(&word) as i64 {
            pid @ 1.. => {
                let process = Process::Copied(Pid::from_raw(pid as i32));
                Ok(Copied { process, randomised: self.randomised })
            }
            error => Err(std::io::Error::from_raw_os_error(-error as i32)),
        }
    }
}

impl Drop for Serving {
    /// Nothing of it stays: not the process, and not a run that it may have made without saying so.
    fn drop(&mut self) {
        // It has not been waited for, so the number is still its own.
        let _ = signal::kill(self.pid(), Signal::SIGKILL);
        let _ = self.process.wait();
        if self.owes_answer {
            for pid in family::end_now(self.directory.path()) {
                // Should it be no child of this process, there is nothing to wait for.
                let _ = Process::Copied(pid).wait();
            }
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |so_far, byte| so_far << 8 | u64::from(*byte))
}

/// Whether a run can be made by a server at all.
fn suits(invocation: &Invocation, plan: &Plan) -> bool {
    let Invocation { wrapper, lineage, drives, .. } = invocation;
    wrapper.is_empty() && *lineage == 0 && !drives && plan.lineage == 0 && !plan.trap && plan.stop.is_none()
}
