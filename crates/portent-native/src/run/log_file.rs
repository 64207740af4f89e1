//! The recording of a run as a file, read piece by piece, so that its length does not matter.
//!
//! A recorded program can do to this file what it likes: write into it, cut it short, put another one in its place. So it is
//! held open from when it is made, and read, never mapped: what is missing is an error then, and no signal.

use portent_runtime::log::{Damaged, Header, LogReader, LogScanner, MAGIC, RECORDS_AT, ReaderTables, room, state};
use portent_trace::TraceError;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A recording that a program has written, or is going to.
pub struct LogFile {
    file: File,
    /// Its length, or what the header says that it should be if that is more.
    length: u64,
    header: Header,
}

/// Bytes of the header that are looked at.
const HEADER: usize = 64;
/// Where the header has the process that claimed the recording.
const PID_AT: u64 = 8;

/// Opens a file of a session that is not there yet: for this user alone, and never another one that a link names.
pub(super) fn new_file(path: &Path) -> Result<File, Error> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Makes an empty recording for a program to claim.
pub fn create(path: &Path) -> Result<File, TraceError> {
    let make = || {
        let file = new_file(path)?;
        file.set_len(RECORDS_AT as u64)?;
        file.write_all_at(&MAGIC, 0)?;
        Ok(file)
    };
    make().map_err(|error: Error| TraceError::whole(error).in_input(&path.display().to_string()))
}

/// Makes one in memory that has room for so many bytes, of whatever was there.
pub(super) fn create_in_memory(memory: &File, room: u64) -> Result<(), Error> {
    memory.set_len(0)?;
    memory.set_len(room)?;
    memory.write_all_at(&MAGIC, 0)
}

/// Makes a recording that no program can claim: every process then leaves its own.
pub fn create_taken(path: &Path) -> Result<File, TraceError> {
    let file = create(path)?;
    let take = file.write_all_at(&u32::MAX.to_le_bytes(), PID_AT);
    take.map(|()| file).map_err(|error| TraceError::whole(error).in_input(&path.display().to_string()))
}

impl LogFile {
    /// Opens a recording whose program has ended.
    pub fn open(path: &Path) -> Result<LogFile, TraceError> {
        let open = || {
            // A FIFO in its place would be waited for.
            let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
            Self::of(OpenOptions::new().read(true).custom_flags(flags).open(path)?)
        };
        open().map_err(|error| TraceError::whole(error).in_input(&path.display().to_string()))
    }

    /// The recording that a file holds whose program has ended.
    pub(super) fn of(file: File) -> Result<LogFile, Error> {
        let found = file.metadata()?;
        let mut bytes = [0; HEADER];
        let damaged = |_| Error::new(ErrorKind::InvalidData, "this is not a recording, or no longer one");
        if !found.is_file() {
            return Err(damaged(()));
        }
        file.read_exact_at(&mut bytes, 0).map_err(|_| damaged(()))?;
        let header = header(&bytes).filter(|_| found.len() >= RECORDS_AT as u64).ok_or_else(|| damaged(()))?;
        Ok(LogFile { file, length: found.len().max(header.allocated), header })
    }

    /// Its header as the program left it.
    pub fn header(&self) -> &Header {
        &self.header
    }
    /// Whether there was no room for all of it.
    pub fn is_full(&self) -> bool {
        self.header.full != 0
    }
    /// Whether an instrumented program ran at all.
    pub fn is_claimed(&self) -> bool {
        self.header.state != state::UNCLAIMED
    }
    /// Its records from any one on, to be asked for as they are needed.
    pub fn records(&self) -> Records<'_> {
        Records { log: self, bytes: Vec::new(), start: 0, ended: false, failed: None }
    }
    /// Goes over its records, from the first.
    pub fn scanner(&self) -> LogScanner {
        LogScanner::default()
    }
    /// Reads its records, from the first, with the tables of an earlier reader.
    pub fn reader(&self, tables: ReaderTables) -> LogReader {
        LogReader::new(tables)
    }
}

/// The records of a recording: what comes next is in memory.
pub struct Records<'a> {
    log: &'a LogFile,
    bytes: Vec<u8>,
    /// Where the bytes begin, counted from the first record.
    start: usize,
    /// There is nothing behind them;
    ended: bool,
    /// but there should be.
    failed: Option<&'static str>,
}

/// So much is read at first: most runs of a check leave no more.
const FIRST: usize = 16 << 10;
/// And so much at a time, at most.
const MOST: usize = 1 << 20;
/// No note is longer; a recording that says so is damaged.
const LONGEST: usize = 64 << 20;

impl Records<'_> {
    /// The recording from a record on: at least all of this one. Where is counted from the first record, and never goes back.
    #[inline]
    pub fn at(&mut self, offset: usize) -> Result<&[u8], Damaged> {
        let rest = &self.bytes[offset - self.start..];
        if rest.len() < room(rest) {
            self.read_on(offset)?;
        }
        Ok(&self.bytes[offset - self.start..])
    }

    #[cold]
    fn read_on(&mut self, offset: usize) -> Result<(), Damaged> {
        let passed = offset - self.start;
        self.bytes.copy_within(passed.., 0);
        self.bytes.truncate(self.bytes.len() - passed);
        self.start = offset;
        while !self.ended && self.bytes.len() < room(&self.bytes) && room(&self.bytes) <= LONGEST {
            self.read();
        }
        match self.failed {
            // Where the recording ends, nothing is missing.
            Some(what) if self.bytes.len() < room(&self.bytes) && !self.bytes.starts_with(&[0, 0]) => {
                Err(Damaged { offset, what })
            }
            _ => Ok(()),
        }
    }

    /// Reads a piece more.
    fn read(&mut self) {
        let have = self.bytes.len();
        let more = if have + self.start == 0 { FIRST } else { (2 * have).clamp(4 * FIRST, MOST) };
        self.bytes.resize(have + more, 0);
        let at = (RECORDS_AT + self.start + have) as u64;
        let got = loop {
            match self.log.file.read_at(&mut self.bytes[have..], at) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                got => break got,
            }
        };
        self.bytes.truncate(have + got.as_ref().copied().unwrap_or(0));
        self.failed = match got {
            Ok(0) if at < self.log.length => Some("the file ends before the recording does"),
            Ok(_) => None,
            Err(_) => Some("the file can be read no further"),
        };
        self.ended = self.failed.is_some() || matches!(got, Ok(0));
    }
}

/// The fields of a header, in their places.
pub(super) fn header(bytes: &[u8]) -> Option<Header> {
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let wide = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    bytes.starts_with(&MAGIC).then_some(Header {
        magic: MAGIC,
        pid: number(8)?,
        state: number(12)?,
        threads: number(16)?,
        unrecorded: number(20)?,
        allocated: wide(24)?,
        switches: wide(32)?,
        children: wide(40)?,
        full: wide(48)?,
    })
}
