//! The recording of a program that still runs, read as it grows.
//!
//! Nothing is mapped: whoever cuts the file short makes reading fail, and nothing else. The program writes a record's header last. What is
//! read at once is older at its beginning than at its end or the other way round, so whatever the headers say is there is
//! read once more: by then all of it has been written.

use super::log_file;
use crate::Error;
use portent_runtime::log::{LogScanner, RECORDS_AT};
use portent_trace::TraceError;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are read at once, unless a record is longer.
const PIECE: usize = 1 << 20;

/// A recording that grows.
pub struct Tail {
    file: File,
    path: PathBuf,
    /// Bytes of records that were read.
    done: u64,
    bytes: Vec<u8>,
    room: usize,
    is_behind: bool,
}

impl Tail {
    /// Opens a recording, which need not have begun.
    pub fn open(path: &Path) -> Result<Tail, Error> {
        let open = || {
            // As for a whole recording: no link is followed, and a FIFO in its place is not waited for.
            let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
            let file = File::options().read(true).custom_flags(flags).open(path)?;
            let mut head = vec![0; RECORDS_AT];
            let there = read_at(&file, &mut head, 0)?;
            let whole = log_file::header(&head[..there]).is_some();
            let what = "this is no recording of this version of Portent, or one that was cut short";
            if whole { Ok(file) } else { Err(std::io::Error::new(ErrorKind::InvalidData, what)) }
        };
        let file = open().map_err(|error| failed(error, path))?;
        Ok(Tail { file, path: path.to_owned(), done: 0, bytes: Vec::new(), room: PIECE, is_behind: false })
    }

    /// The records that are new, whole ones; none if there are none now.
    pub fn read(&mut self) -> Result<&[u8], Error> {
        self.next().map_err(|error| failed(error, &self.path))?;
        Ok(&self.bytes)
    }

    /// Whether there was more than was read.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    fn next(&mut self) -> std::io::Result<()> {
        let from = RECORDS_AT as u64 + self.done;
        loop {
            self.bytes.resize(self.room, 0);
            let there = read_at(&self.file, &mut self.bytes, from)?;
            if there == 0 && self.file.metadata()?.len() < from {
                return Err(std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the recording was cut short while it was read",
                ));
            }
            let whole = whole_records(&self.bytes[..there]);
            // A record may be longer than all that was read.
            if whole == 0 && there == self.room && self.bytes[..2] != [0, 0] {
                self.room *= 2;
                continue;
            }
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            let again = read_at(&self.file, &mut self.bytes[..whole], from)?;
            let whole = whole_records(&self.bytes[..again]);
            self.is_behind = there == self.room && whole > self.room / 2;
            self.bytes.truncate(whole);
            self.done += whole as u64;
            self.room = PIECE;
            return Ok(());
        }
    }
}

/// How many of these bytes are whole records.
fn whole_records(bytes: &[u8]) -> usize {
    let mut scanner = LogScanner::default();
    while let Ok(Some(_)) = scanner.next_record(&bytes[scanner.offset()..]) {}
    scanner.offset()
}

fn read_at(file: &File, bytes: &mut [u8], from: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], from + done as u64) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn failed(error: std::io::Error, path: &Path) -> Error {
    Error::Trace(TraceError::whole(error).in_input(&path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use portent_runtime::log::{note, write_note};
    use std::io::Write;

    fn record(payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 8 + payload.len()];
        #[allow(unsafe_code)]
        // SAFETY: there is the room that a note needs, all zero.
        let end = unsafe { write_note(bytes.as_mut_ptr(), note::MESSAGE, &[payload]) };
        bytes.truncate(end as usize - bytes.as_ptr() as usize);
        bytes
    }

    #[test]
    fn whole_records_are_read_as_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        log_file::create(&path).unwrap();
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(tail.read().unwrap(), b"");
        let mut file = File::options().append(true).open(&path).unwrap();
        let long = record(&vec![7; 3 * PIECE]);
        let (first, half) = (record(b"one"), &long[..100]);
        file.write_all(&first).unwrap();
        file.write_all(half).unwrap();
        assert_eq!(tail.read().unwrap(), first);
        assert_eq!(tail.read().unwrap(), b"", "half a record is none");
        file.write_all(&long[100..]).unwrap();
        assert_eq!(tail.read().unwrap(), long);
        assert!(!tail.is_behind());
    }

    #[test]
    fn what_is_cut_short_or_no_recording_is_an_error_and_no_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, b"PORTLOG1").unwrap();
        let error = Tail::open(&path).err().unwrap().to_string();
        assert!(error.contains("no recording of this version"), "{error}");
        std::fs::remove_file(&path).unwrap();
        log_file::create(&path).unwrap();
        let mut tail = Tail::open(&path).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(&record(b"one")).unwrap();
        tail.read().unwrap();
        File::options().write(true).open(&path).unwrap().set_len(10).unwrap();
        assert!(tail.read().err().unwrap().to_string().contains("cut short while it was read"));
    }
}
