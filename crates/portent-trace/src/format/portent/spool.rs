//! Input that cannot seek, such as a pipe: copied into a temporary file without a name, as long as it looks like a trace.

use super::bad_chunk;
use super::frame::{CHUNK_HEADER, ChunkHeader, FILE_HEADER, MAGIC, NoHeader, Trailer, check_file_header};
use crate::error::{Position, Problem, TraceError};
use std::fs::File;
use std::io::{Read, Write};

/// How many zero bytes after the last chunk are looked at, to tell a torn end from a hole.
const ZEROS: u64 = 64 << 20;

/// Copies a `.portent` stream, chunk by chunk; garbage ends it at once, before it fills the disk.
pub(in crate::format) fn spool(mut input: impl Read, salvage: bool) -> Result<File, TraceError> {
    let mut file = tempfile::tempfile()?;
    let mut header = [0; FILE_HEADER];
    let read = read_full(&mut input, &mut header)?;
    if read < FILE_HEADER && header[..read.min(8)] != MAGIC[..read.min(8)] {
        let found = header[..read.min(8)].to_vec();
        return Err(TraceError::at(Position::Byte(0), Problem::BadMagic { found }));
    }
    if read == FILE_HEADER {
        check_file_header(&header).map_err(|problem| TraceError::at(Position::Byte(0), problem))?;
    }
    file.write_all(&header[..read])?;
    let mut offset = read as u64;
    let mut bytes = [0; CHUNK_HEADER];
    loop {
        let read = read_full(&mut input, &mut bytes)?;
        file.write_all(&bytes[..read])?;
        if read < CHUNK_HEADER || Trailer::parse(&bytes).is_some() {
            return Ok(file);
        }
        let refused = match ChunkHeader::parse(&bytes) {
            Ok(header) => {
                let stored = u64::from(header.stored);
                if std::io::copy(&mut input.by_ref().take(stored), &mut file)? < stored {
                    return Ok(file);
                }
                offset += header.total_len();
                continue;
            }
            Err(NoHeader::Refused(detail)) => detail,
            Err(NoHeader::Torn) if only_zeros(&bytes, &mut input)? => return Ok(file),
            Err(NoHeader::Torn) => "what follows is no chunk".into(),
        };
        return if salvage { Ok(file) } else { Err(bad_chunk(offset, "next", refused)) };
    }
}

fn only_zeros(start: &[u8], input: &mut impl Read) -> Result<bool, TraceError> {
    let mut rest = input.take(ZEROS);
    let mut buffer = vec![0; 1 << 16];
    if start.iter().any(|&byte| byte != 0) {
        return Ok(false);
    }
    loop {
        match read_full(&mut rest, &mut buffer)? {
            0 => return Ok(true),
            read if buffer[..read].iter().any(|&byte| byte != 0) => return Ok(false),
            _ => {}
        }
    }
}

/// Fills `buffer` as far as the input goes.
pub(in crate::format) fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
