//! Whose a session is: what is needed to know that its owner is gone, and to make a trace of what it has recorded by then.
//!
//! Each session's directory has a file `owner`. One whose owner is gone, and of which no process is left, is stale: a recording that
//! somebody wanted is kept until `portent recover` makes a trace of it, everything else goes with the next command.

use super::family;
use super::launch::Invocation;
use super::log_file::{LogFile, new_file};
use crate::text::Text;
use crate::{environment, private};
use portent_trace::TraceError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const NAME: &str = "owner";
/// How names of directories begin that are looked at.
pub const PREFIX: &str = "portent-";
/// No description is longer: environments are not.
const LONGEST: u64 = 8 << 20;

/// What is known of a session.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    /// The process, and when it started: numbers are used again.
    process: u32,
    started: u64,
    /// What tells one run of the system from the next.
    boot: String,
    /// What is recorded, if somebody wants it.
    wanted: Option<Wanted>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Wanted {
    program: Text,
    arguments: Vec<Text>,
    directory: Text,
    environment: Vec<(Text, Text)>,
    input: Option<Text>,
}

/// A recording whose recorder is gone.
#[derive(Debug)]
pub struct Stale {
    /// Where it is.
    pub directory: PathBuf,
    /// What was recorded.
    pub invocation: Invocation,
    /// How long ago it was last written to, in seconds.
    pub age: u64,
}

/// Says in a session's directory that it is this process's.
pub fn own(directory: &Path, wanted: Option<&Invocation>) -> io::Result<()> {
    let text = |text: &std::ffi::OsStr| Text::from(text);
    let wanted = wanted.map(|of| Wanted {
        program: text(of.program.as_os_str()),
        arguments: of.arguments.iter().map(|word| text(word)).collect(),
        directory: text(of.directory.as_os_str()),
        environment: environment::written(&of.environment, of.bare).0,
        input: of.input.as_deref().map(|path| text(path.as_os_str())),
    });
    let process = std::process::id();
    let owner = Owner { process, started: started(process).unwrap_or(0), boot: boot(), wanted };
    let json = serde_json::to_vec(&owner).map_err(io::Error::from)?;
    new_file(&directory.join(NAME))?.write_all_at(&json, 0)
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// When a process started, in ticks of the system; `None` if there is none.
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may have spaces and brackets in it.
    text.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

impl Owner {
    fn read(directory: &Path) -> Option<Owner> {
        let path = directory.join(NAME);
        let found = fs::symlink_metadata(&path).ok()?;
        if !found.is_file() || found.uid() != private::user().ok()? || found.len() > LONGEST {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn is_gone(&self) -> bool {
        self.boot != boot() || started(self.process) != Some(self.started)
    }
}

impl Wanted {
    fn invocation(&self) -> Invocation {
        Invocation {
            program: self.program.to_os().into(),
            arguments: self.arguments.iter().map(Text::to_os).collect(),
            directory: self.directory.to_os().into(),
            environment: self.environment.iter().map(|(name, value)| (name.to_os(), value.to_os())).collect(),
            bare: false,
            outlives: false,
            input: self.input.as_ref().map(|path| path.to_os().into()),
            wrapper: Vec::new(),
            silent: false,
            aside: false,
            descriptors: None,
            lineage: 0,
            processes: None,
            drives: false,
        }
    }
}

/// The recordings of this user whose recorders are gone, the oldest first. What else they have left is removed.
pub fn stale() -> Vec<Stale> {
    let mut found = stale_in(&std::env::temp_dir());
    found.sort_by_key(|one| std::cmp::Reverse(one.age));
    found
}

fn stale_in(place: &Path) -> Vec<Stale> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let directory = entry.path();
        if !entry.file_name().to_string_lossy().starts_with(PREFIX)
            || private::check(&directory, private::Others::Nothing).is_err()
        {
            continue;
        }
        let Some(owner) = Owner::read(&directory).filter(Owner::is_gone) else { continue };
        if family::is_alive(&directory) {
            continue;
        }
        let log = LogFile::open(&directory.join("log"));
        match owner.wanted.filter(|_| log.is_ok_and(|log| log.is_claimed())) {
            Some(wanted) => {
                let age = fs::metadata(directory.join("log")).and_then(|found| found.modified()).ok();
                let age = age.and_then(|time| time.elapsed().ok()).map_or(0, |age| age.as_secs());
                found.push(Stale { invocation: wanted.invocation(), directory, age });
            }
            // Nobody needs it. Should it not go, the next command tries again.
            None => drop(fs::remove_dir_all(&directory)),
        }
    }
    found
}

impl Stale {
    /// What was recorded.
    pub fn log(&self) -> Result<LogFile, TraceError> {
        LogFile::open(&self.directory.join("log"))
    }

    /// Removes it.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_is_not_stale_and_what_is_gone_goes() {
        let place = tempfile::tempdir().unwrap();
        let session = |name: &str| {
            let directory = place.path().join(name);
            private::create(&directory).unwrap();
            own(&directory, None).unwrap();
            directory
        };
        let (ours, gone) = (session("portent-ours"), session("portent-gone"));
        let text = fs::read_to_string(gone.join(NAME)).unwrap();
        let process = std::process::id();
        let text = text.replace(&format!("\"process\":{process}"), "\"process\":4294967295");
        fs::write(gone.join(NAME), text).unwrap();
        assert!(stale_in(place.path()).is_empty());
        assert!(ours.is_dir() && !gone.exists());
    }
}
