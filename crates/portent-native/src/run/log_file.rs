//! The recording of a run as a file: mapped, so that its length does not matter.

use portent_runtime::log::{Header, LogReader, LogScanner, MAGIC, RECORDS_AT, ReaderTables, state};
use portent_trace::TraceError;
use std::fs::File;
use std::io::{Error, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A recording that a program has written, or is going to.
pub struct LogFile {
    bytes: memmap2::Mmap,
    header: Header,
}

/// Makes an empty recording for a program to claim.
pub fn create(path: &Path) -> Result<(), TraceError> {
    let make = || {
        let mut file = File::create(path)?;
        file.write_all(&MAGIC)?;
        file.set_len(RECORDS_AT as u64)?;
        file.seek(SeekFrom::Start(0))
    };
    make().map(drop).map_err(|error| TraceError::whole(error).in_input(&path.display().to_string()))
}

/// Makes one in memory that has room for so many bytes, of whatever was there.
pub(super) fn create_in_memory(memory: &File, room: u64) -> Result<(), Error> {
    memory.set_len(0)?;
    memory.set_len(room)?;
    memory.write_all_at(&MAGIC, 0)
}

/// Makes a recording that no program can claim: every process then leaves its own.
pub fn create_taken(path: &Path) -> Result<(), TraceError> {
    /// Where the header has the process that claimed it.
    const PID_AT: u64 = 8;
    create(path)?;
    let take = || {
        let mut file = File::options().write(true).open(path)?;
        file.seek(SeekFrom::Start(PID_AT))?;
        file.write_all(&u32::MAX.to_le_bytes())
    };
    take().map_err(|error| TraceError::whole(error).in_input(&path.display().to_string()))
}

impl LogFile {
    /// Opens a recording whose program has ended.
    pub fn open(path: &Path) -> Result<LogFile, TraceError> {
        Self::map(path).map_err(|error| TraceError::whole(error).in_input(&path.display().to_string()))
    }

    fn map(path: &Path) -> Result<LogFile, Error> {
        Self::of(&File::open(path)?)
    }

    /// The recording that a file holds whose program has ended.
    pub(super) fn of(file: &File) -> Result<LogFile, Error> {
        #[allow(unsafe_code)]
        // SAFETY: the file is one that only this session uses, and its program has ended. Were it cut short by
        // somebody else all the same, reading it would end this process with a signal, not with wrong data.
        let bytes = unsafe { memmap2::Mmap::map(file)? };
        let header = header(&bytes).ok_or_else(|| Error::new(ErrorKind::InvalidData, "this is not a recording"))?;
        // Both passes go from the first byte to the last. A system that does not want to know is no problem.
        let _ = bytes.advise(memmap2::Advice::Sequential);
        Ok(LogFile { bytes, header })
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
    /// Goes over its records, from the first.
    pub fn scanner(&self) -> LogScanner<'_> {
        LogScanner::new(&self.bytes[RECORDS_AT..])
    }
    /// Reads its records, from the first, with the tables of an earlier reader.
    pub fn reader(&self, tables: ReaderTables) -> LogReader<'_> {
        LogReader::reusing(&self.bytes[RECORDS_AT..], tables)
    }
}

/// The fields of a header, in their places.
pub(super) fn header(bytes: &[u8]) -> Option<Header> {
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let wide = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let whole = bytes.len() >= RECORDS_AT && bytes.starts_with(&MAGIC);
    whole.then_some(Header {
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
