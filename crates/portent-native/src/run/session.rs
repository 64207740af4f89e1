//! Sessions: where the plan, the recording and the output of a run are, while it runs and is looked at.
//!
//! A program that is started has a directory for them. A run that a fork server makes has memory: files cost it more time than the
//! run itself, and wait for disks that others keep busy.

use super::launch::{Invocation, io};
use super::log_file::{self, LogFile};
use super::output::Files;
use crate::Error;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use portent_runtime::plan::Plan;
use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// What a run has while it is looked at; it goes when that is over.
#[allow(dead_code, reason = "it goes when it is dropped")]
pub(super) enum Session {
    /// The directory of a program that was started.
    Own(TempDir),
    /// Memory of a fork server's run.
    Lent(Lent),
}

/// A recording in memory is at most so long; longer ones go to a disk.
const ROOM: u64 = 64 << 20;

/// How long it can be here: the limit for files holds for memory, too, and going beyond it would end this process.
fn room() -> u64 {
    getrlimit(Resource::RLIMIT_FSIZE).map_or(ROOM, |(limit, _)| limit.min(ROOM))
}

/// Memory for a run.
#[derive(Debug)]
struct Memory {
    plan: File,
    log: File,
    stdout: File,
    stderr: File,
}

/// Memory of a fork server that no run uses. It is gone with the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<Vec<Arc<Memory>>>>);

/// Memory that the next run gets when this one has been looked at.
pub(super) struct Lent {
    memory: Arc<Memory>,
    places: Places,
    /// Somebody may still write to it.
    spoiled: bool,
}

/// Leaves an empty recording in a session's directory, and the plan. The recording stays open, whatever the program puts in its place.
pub(super) fn begin(session: &TempDir, plan: &Plan, taken: bool) -> Result<File, Error> {
    let [log_at, plan_at] = ["log", "plan"].map(|name| session.path().join(name));
    let log = match taken {
        true => log_file::create_taken(&log_at)?,
        false => log_file::create(&log_at)?,
    };
    write_plan(&plan_at, plan).map_err(|error| io(error, &plan_at))?;
    Ok(log)
}

/// Writes a plan into a session's directory.
pub(super) fn write_plan(path: &Path, plan: &Plan) -> std::io::Result<()> {
    log_file::new_file(path)?.write_all_at(&plan.to_bytes(), 0)
}

/// A directory on the file system where the recorded run had its own.
pub(super) fn directory(invocation: &Invocation) -> Result<TempDir, Error> {
    let make = |place: &Path| {
        let mut builder = tempfile::Builder::new();
        // What a program does and prints is nobody else's business.
        builder.prefix("portent-").rand_bytes(8).permissions(Permissions::from_mode(0o700)).tempdir_in(place)
    };
    let recorded = invocation.environment.iter().find(|(name, value)| name == "TMPDIR" && !value.is_empty());
    let recorded = recorded.map_or_else(|| PathBuf::from("/tmp"), |(_, value)| PathBuf::from(value));
    let here = std::env::temp_dir();
    make(&recorded).or_else(|_| make(&here)).map_err(|error| io(error, &here))
}

impl Memory {
    fn new() -> std::io::Result<Memory> {
        let make = |name: &str| Ok::<_, std::io::Error>(File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?));
        Ok(Memory { plan: make("plan")?, log: make("log")?, stdout: make("stdout")?, stderr: make("stderr")? })
    }
}

impl Places {
    /// Memory that no run uses, or new memory.
    pub(super) fn lend(&self) -> std::io::Result<Lent> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let memory = free.map_or_else(|| Memory::new().map(Arc::new), Ok)?;
        Ok(Lent { memory, places: self.clone(), spoiled: false })
    }
}

impl Lent {
    /// Leaves an empty recording there, and the plan.
    pub(super) fn begin(&self, plan: &Plan) -> std::io::Result<()> {
        log_file::create_in_memory(&self.memory.log, room())?;
        let bytes = plan.to_bytes();
        self.memory.plan.set_len(bytes.len() as u64)?;
        self.memory.plan.write_all_at(&bytes, 0)
    }

    /// Empty files for what the program writes.
    pub(super) fn files(&self) -> std::io::Result<Files> {
        Files::in_memory([&self.memory.stdout, &self.memory.stderr])
    }

    /// The plan and the recording, for the program.
    pub(super) fn for_program(&self) -> [&File; 2] {
        [&self.memory.plan, &self.memory.log]
    }

    /// The recording of a run that is over.
    pub(super) fn log(&self) -> std::io::Result<LogFile> {
        LogFile::of(self.memory.log.try_clone()?)
    }

    /// Processes of the run may be left that write to it: no other run gets it.
    pub(super) fn spoil(&mut self) {
        self.spoiled = true;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.spoiled {
            self.places.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&self.memory));
        }
    }
}
