//! Sessions: the directory with the plan, the recording and the output of a run, while it runs and is looked at.

use super::launch::{Invocation, io};
use super::log_file;
use crate::Error;
use portent_runtime::plan::Plan;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// The directory of a run.
pub(super) enum Session {
    /// For one run.
    Own(TempDir),
    /// One of a fork server's, which the next run gets when this one has been looked at.
    Lent(Lent),
}

/// Directories of a fork server that nobody uses. They are gone with the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<Vec<PathBuf>>>);

pub(super) struct Lent {
    path: PathBuf,
    places: Places,
    /// Somebody may still write to what is in it.
    spoiled: bool,
}

impl Session {
    /// A directory for a run of its own.
    pub(super) fn new(invocation: &Invocation) -> Result<Session, Error> {
        directory(invocation).map(Session::Own)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        match self {
            Session::Own(directory) => directory.path(),
            Session::Lent(lent) => &lent.path,
        }
    }

    /// Where the recording is.
    pub(super) fn log(&self) -> PathBuf {
        self.path().join("log")
    }

    /// Where the plan is.
    pub(super) fn plan(&self) -> PathBuf {
        self.path().join("plan")
    }

    /// Leaves an empty recording there, and the plan.
    pub(super) fn begin(&self, plan: &Plan, taken: bool) -> Result<(), Error> {
        match taken {
            true => log_file::create_taken(&self.log())?,
            false => log_file::create(&self.log())?,
        }
        std::fs::write(self.plan(), plan.to_bytes()).map_err(|error| io(error, &self.plan()))
    }

    /// Processes of the run may be left that write to what is in it: no other run gets it.
    pub(super) fn spoil(&mut self) {
        if let Session::Lent(lent) = self {
            lent.spoiled = true;
        }
    }
}

/// A directory on the file system where the recorded run had its own: where a mapping of the recording goes depends on that.
pub(super) fn directory(invocation: &Invocation) -> Result<TempDir, Error> {
    let make = |place: &Path| tempfile::Builder::new().prefix("portent-").rand_bytes(8).tempdir_in(place);
    let recorded = invocation.environment.iter().find(|(name, value)| name == "TMPDIR" && !value.is_empty());
    let recorded = recorded.map_or_else(|| PathBuf::from("/tmp"), |(_, value)| PathBuf::from(value));
    let here = std::env::temp_dir();
    make(&recorded).or_else(|_| make(&here)).map_err(|error| io(error, &here))
}

impl Places {
    /// A directory below that of a fork server.
    pub(super) fn lend(&self, below: &Path) -> std::io::Result<Session> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let path = match free {
            Some(path) => path,
            None => tempfile::Builder::new().prefix("run-").tempdir_in(below)?.keep(),
        };
        Ok(Session::Lent(Lent { path, places: self.clone(), spoiled: false }))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.spoiled {
            // What is left of it goes with the server's own directory.
            let _ = std::fs::remove_dir_all(&self.path);
            return;
        }
        let path = std::mem::take(&mut self.path);
        self.places.0.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}
