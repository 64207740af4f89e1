//! The processes of a session: who they are, as they said themselves, and which of them are still there.
//!
//! Each process with the runtime leaves a description, and all but the first a recording, in the directory that a session names
//! `processes` (inside/family.rs of the runtime). What has no runtime is not seen here.

use super::launch::{Invocation, LIBRARIES, LIBRARY_LENGTH, SESSION, stretched};
use super::library;
use super::log_file::LogFile;
use super::watch;
use crate::Error;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use portent_trace::TraceError;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A process of a session.
#[derive(Clone, Debug)]
pub struct Member {
    /// The system's number of it, and which of the programs that ran under that number it is.
    pub id: (u64, u64),
    /// Its recording, unless that is the session's own.
    pub log: Option<PathBuf>,
    /// It was made by `fork` and has not become another program since.
    pub forked: bool,
    /// Which of its program's forked children it is; the program itself is 1.
    pub lineage: u64,
    /// The process that began as the program it runs.
    origin: (u64, u64),
    program: PathBuf,
    arguments: Vec<OsString>,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// What its standard input is, as the system names it.
    input: OsString,
    since: SystemTime,
}

/// The processes that left a description in a directory, in the order in which they began.
pub fn members(directory: &Path) -> Result<Vec<Member>, Error> {
    let failed = |error| Error::Trace(TraceError::whole(error).in_input(&directory.display().to_string()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "about") {
            found.extend(Member::read(&path));
        }
    }
    found.sort_by_key(|member| (member.since, member.id));
    Ok(found)
}

impl Member {
    /// A description; `None` for one that is not whole, because its process died while it wrote it.
    fn read(path: &Path) -> Option<Member> {
        let bytes = std::fs::read(path).ok()?;
        let mut sections: [Vec<u8>; 256] = std::array::from_fn(|_| Vec::new());
        let mut rest = &bytes[..];
        while let [tag, a, b, c, d, after @ ..] = rest {
            let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            sections[usize::from(*tag)].extend_from_slice(after.get(..length)?);
            rest = &after[length..];
        }
        let mut take = |tag: u8| std::mem::take(&mut sections[usize::from(tag)]);
        let numbers = take(b'n');
        let number = |at: usize| Some(u64::from_le_bytes(*numbers.as_chunks::<8>().0.get(at)?));
        let name = path.file_stem()?.to_str()?;
        let (pid, which) = name.split_once('.')?;
        let log = path.with_extension("");
        let words = |bytes: Vec<u8>| -> Vec<OsString> {
            let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
            bytes.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
        };
        let variable = |line: OsString| {
            let at = line.as_bytes().iter().position(|byte| *byte == b'=')?;
            let (name, value) = line.as_bytes().split_at(at);
            Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(&value[1..]).to_owned()))
        };
        Some(Member {
            id: (pid.parse().ok()?, which.parse().ok()?),
            log: log.is_file().then_some(log),
            forked: number(0)? != 0,
            lineage: number(1)?,
            origin: (number(3)?, number(4)?),
            program: OsString::from_vec(take(b'x')).into(),
            directory: OsString::from_vec(take(b'w')).into(),
            input: OsString::from_vec(take(b'i')),
            arguments: words(take(b'a')),
            environment: words(take(b'e')).into_iter().filter_map(variable).collect(),
            since: path.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH),
        })
    }

    /// Its recording, where it left one.
    pub fn recording(&self) -> Result<Option<LogFile>, Error> {
        Ok(self.log.as_deref().map(LogFile::open).transpose()?)
    }

    /// What to start to have it once more, on its own: its program, and for a forked child the program that forked it.
    pub fn invocation(&self, all: &[Member]) -> Result<Invocation, Error> {
        let of = all.iter().find(|other| self.forked && other.id == self.origin).unwrap_or(self);
        let mut environment: Vec<_> = of.environment.iter().filter(|(name, _)| name != SESSION).cloned().collect();
        let ours = stretched(&library::directory()?, LIBRARY_LENGTH);
        for (name, value) in &mut environment {
            if let Some(rest) = value.as_bytes().strip_prefix(ours.as_bytes()).filter(|_| name == LIBRARIES) {
                *value = OsStr::from_bytes(rest.strip_prefix(b":").unwrap_or(rest)).to_owned();
            }
        }
        environment.retain(|(name, value)| name != LIBRARIES || !value.is_empty());
        Ok(Invocation {
            program: of.program.clone(),
            arguments: of.arguments.clone(),
            directory: of.directory.clone(),
            environment,
            bare: false,
            outlives: false,
            input: of.readable_input(),
            wrapper: Vec::new(),
            silent: true,
            aside: false,
            descriptors: Some(Vec::new()),
            lineage: if self.forked { self.lineage } else { 0 },
            processes: None,
            drives: false,
        })
    }

    /// What it can read again: a file, or nothing in place of what somebody wrote to it. A terminal, or what Portent itself
    /// reads, it gets anyway.
    fn readable_input(&self) -> Option<PathBuf> {
        let path = PathBuf::from(&self.input);
        let same = std::fs::read_link("/proc/self/fd/0").is_ok_and(|ours| ours == path);
        if same || path.starts_with("/dev/pts") || self.input.is_empty() {
            return None;
        }
        Some(if path.is_file() { path } else { "/dev/null".into() })
    }

    /// What people call it: its command line, the program as seen from `directory`.
    pub fn name(&self, directory: &Path) -> String {
        let own = self.program.strip_prefix(directory).unwrap_or(&self.program);
        let mut words = vec![own.display().to_string()];
        words.extend(self.arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()));
        words.join(" ")
    }

    /// Its program, and what it was called with behind its name.
    pub fn command(&self) -> (&Path, &[OsString]) {
        (&self.program, self.arguments.get(1..).unwrap_or_default())
    }

    /// Whether it is the same program, called in the same way, as another one.
    pub fn repeats(&self, other: &Member) -> bool {
        // What shells and `make` count or note for themselves says nothing about the program.
        let matters = |(name, _): &&(OsString, OsString)| {
            !["_", "SHLVL", "OLDPWD", "PPID", SESSION].iter().any(|known| *name == *known)
        };
        let alike = |a: &Member, b: &Member| {
            a.program == b.program && a.arguments == b.arguments && a.directory == b.directory && a.input == b.input
        };
        self.forked == other.forked
            && self.lineage == other.lineage
            && alike(self, other)
            && self.environment.iter().filter(matters).eq(other.environment.iter().filter(matters))
    }

    /// The program's file name, for names of files.
    pub fn file_name(&self) -> OsString {
        self.program.file_name().map_or_else(|| "program".into(), OsStr::to_owned)
    }
}

/// Where it is noted which processes had to be ended, among their recordings.
const ENDED: &str = "ended";

/// Notes processes that were still there after the program that started them, and had to be ended.
pub(super) fn note_ended(directory: &Path, processes: &[u64]) -> std::io::Result<()> {
    if processes.is_empty() {
        return Ok(());
    }
    let mut text = std::fs::read_to_string(directory.join(ENDED)).unwrap_or_default();
    processes.iter().for_each(|process| text.push_str(&format!("{process}\n")));
    std::fs::write(directory.join(ENDED), text)
}

/// Whether a process never ended by itself, as daemons do not: it was still there after the program that started it.
pub fn was_ended(directory: &Path, process: u64) -> bool {
    let text = std::fs::read_to_string(directory.join(ENDED)).unwrap_or_default();
    text.lines().any(|line| line.parse() == Ok(process))
}

/// Where it is noted which processes were seen, with their programs.
const SEEN: &str = "seen";

/// Notes processes that somebody saw, apart from the first.
pub(super) fn note_seen(directory: &Path, seen: &BTreeMap<i32, PathBuf>, first: i32) -> std::io::Result<()> {
    let mut text = Vec::new();
    for (process, program) in seen.iter().filter(|(process, _)| **process != first) {
        text.extend_from_slice(format!("{process} ").as_bytes());
        text.extend_from_slice(program.as_os_str().as_bytes());
        text.push(0);
    }
    std::fs::write(directory.join(SEEN), text)
}

/// The programs of processes that were seen and have no runtime, one for each process.
pub fn without_runtime(directory: &Path, members: &[Member]) -> Vec<PathBuf> {
    let noted = std::fs::read(directory.join(SEEN)).unwrap_or_default();
    let seen = noted.split(|byte| *byte == 0).filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let process: u64 = std::str::from_utf8(&line[..at]).ok()?.parse().ok()?;
        Some((process, PathBuf::from(OsStr::from_bytes(&line[at + 1..]))))
    });
    // What has said who it is may have become another program since, but only a child that was forked does that at once.
    let is_known = |process: u64, program: &Path| {
        members.iter().any(|member| member.id.0 == process && (!member.forked || member.program == program))
    };
    seen.filter(|(process, program)| !is_known(*process, program)).map(|(_, program)| program).collect()
}

/// The processes of a session that are still there.
fn alive(session: &Path) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|pid| watch::is_of(*pid, session)).map(Pid::from_raw).collect()
}

/// Whether a process of a session is still there.
pub(super) fn is_alive(session: &Path) -> bool {
    !alive(session).is_empty()
}

/// Ends the processes of a session at once. Their numbers.
pub(super) fn end_now(session: &Path) -> Vec<Pid> {
    let there = alive(session);
    for pid in &there {
        // It was of this session a moment ago.
        let _ = signal::kill(*pid, Signal::SIGKILL);
    }
    there
}

/// Waits until no process of a session is left but its fork server, but not longer than so; then ends those that are. Their
/// numbers.
pub(super) fn wait_for_rest(session: &Path, server: Option<Pid>, patience: Duration) -> Vec<u64> {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_millis(1);
    let alive = || {
        let mut all = alive(session);
        all.retain(|pid| Some(*pid) != server);
        all
    };
    let mut left = alive();
    while !left.is_empty() && Instant::now() < deadline {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
        left = alive();
    }
    for (signal, time) in [(Signal::SIGTERM, 200), (Signal::SIGKILL, 1000)] {
        let deadline = Instant::now() + Duration::from_millis(time);
        let mut there = alive();
        for pid in &there {
            // It was of this session a moment ago.
            let _ = signal::kill(*pid, signal);
        }
        while !there.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            there = alive();
        }
    }
    left.iter().map(|pid| pid.as_raw() as u64).collect()
}
