//! Processes of a session that have no runtime, and so say nothing of themselves.
//!
//! They are seen by looking at the system's list every few milliseconds while the session's first program runs. One that is
//! gone before anybody looks is missed, so what is found is the least that there was.

use super::launch::SESSION;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(2);

/// Somebody who looks.
pub(super) struct Watch {
    done: Arc<AtomicBool>,
    looks: Option<JoinHandle<BTreeMap<i32, PathBuf>>>,
}

impl Watch {
    /// Begins to look for processes of a session, which has none yet.
    pub(super) fn new(session: &Path) -> std::io::Result<Watch> {
        let (session, done) = (session.to_owned(), Arc::new(AtomicBool::new(false)));
        let others: BTreeSet<i32> = processes().collect();
        let is_done = Arc::clone(&done);
        let looks = std::thread::Builder::new().name("watch".into()).spawn(move || {
            let mut seen = BTreeMap::new();
            while !is_done.load(Ordering::Relaxed) {
                look(&session, &others, &mut seen);
                std::thread::sleep(PAUSE);
            }
            seen
        })?;
        Ok(Watch { done, looks: Some(looks) })
    }

    /// The processes that were seen, and the program that each ran last.
    pub(super) fn finish(mut self) -> BTreeMap<i32, PathBuf> {
        self.done.store(true, Ordering::Relaxed);
        self.looks.take().and_then(|looks| looks.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn look(session: &Path, others: &BTreeSet<i32>, seen: &mut BTreeMap<i32, PathBuf>) {
    for process in processes().filter(|process| !others.contains(process)) {
        if !seen.contains_key(&process) && !is_of(process, session) {
            continue;
        }
        // A process that has ended and is not waited for has no program any more.
        if let Ok(program) = std::fs::read_link(format!("/proc/{process}/exe")) {
            seen.insert(process, program);
        }
    }
}

/// Whether a process belongs to a session.
pub(super) fn is_of(process: i32, session: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|line| {
        let value = line.strip_prefix(SESSION.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| value.ends_with(session.as_os_str().as_bytes()))
    })
}
