//! Where the chunks of a file are: from its index, or, in a file that was not closed, by going from header to header.
//!
//! All definitions are read here, before the first event, because byte ranges must be known beforehand.

use super::bad_chunk;
use super::bits::SLACK;
use super::definitions::{self, BadDefinitions};
use super::frame::{
    CHUNK_HEADER, CHUNK_MAGIC, ChunkHeader, FILE_HEADER, INDEX_ENTRY, IndexEntry, Kind, MAX_EVENTS, NoHeader, TRAILER,
    Trailer, Version,
};
use crate::error::{Position, Problem, TraceError};
use crate::names::Names;
use memchr::memmem;
use std::io::{Read, Seek, SeekFrom};

/// Random access to a file, a chunk at a time.
pub(super) struct Input<R> {
    inner: R,
    pub(super) len: u64,
    /// What its header says.
    pub(super) version: Version,
    stored: Vec<u8>,
    /// The last payload that was read, decompressed, and slack.
    pub(super) payload: Vec<u8>,
}

impl<R: Read + Seek> Input<R> {
    pub(super) fn new(mut inner: R) -> Result<Self, TraceError> {
        let len = inner.seek(SeekFrom::End(0))?;
        Ok(Self { inner, len, version: Version::Two, stored: Vec::new(), payload: Vec::new() })
    }

    /// Fills `buffer` from `offset` on, as far as the file goes; how many bytes that are.
    pub(super) fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let fail = |error| TraceError::at(Position::Byte(offset), Problem::Io(error));
        self.inner.seek(SeekFrom::Start(offset)).map_err(fail)?;
        let mut filled = 0;
        while filled < buffer.len() {
            match self.inner.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fail(error)),
            }
        }
        Ok(filled)
    }

    pub(super) fn header(&mut self, offset: u64) -> Result<Result<ChunkHeader, NoHeader>, TraceError> {
        let mut bytes = [0; CHUNK_HEADER];
        let read = self.read_at(offset, &mut bytes)?;
        Ok(ChunkHeader::parse(&bytes[..read]))
    }

    /// Reads the payload of the chunk at `offset` into `self.payload`.
    pub(super) fn read_payload(&mut self, offset: u64, header: ChunkHeader) -> Result<(), TraceError> {
        let what = header.kind.what();
        let damaged = || TraceError::at(Position::Byte(offset), Problem::Checksum { what });
        if offset.saturating_add(header.total_len()) > self.len {
            return Err(damaged());
        }
        let len = header.stored as usize;
        let mut stored = std::mem::take(&mut self.stored);
        stored.resize(len + SLACK, 0);
        let read = self.read_at(offset + CHUNK_HEADER as u64, &mut stored[..len])?;
        let whole = read == len && crc32fast::hash(&stored[..len]) == header.payload_crc;
        self.stored = stored;
        if !whole {
            return Err(damaged());
        }
        if !header.compressed {
            std::mem::swap(&mut self.stored, &mut self.payload);
            return Ok(());
        }
        let raw = header.raw as usize;
        self.payload.resize(raw + SLACK, 0);
        match lz4_flex::block::decompress_into(&self.stored[..len], &mut self.payload[..raw]) {
            Ok(found) if found == raw => Ok(()),
            _ => Err(bad_chunk(offset, what, "it does not decompress to its length")),
        }
    }

    /// Whether a whole chunk header, or the trailer, stands somewhere from `offset` on.
    fn goes_on(&mut self, mut offset: u64) -> Result<bool, TraceError> {
        if self.trailer()?.is_some() {
            return Ok(true);
        }
        let mut window = vec![0; 1 << 20];
        loop {
            let read = self.read_at(offset, &mut window)?;
            let found = memmem::find_iter(&window[..read], &CHUNK_MAGIC)
                .any(|at| !matches!(ChunkHeader::parse(&window[at..read]), Err(NoHeader::Torn)));
            if found || read < window.len() {
                return Ok(found);
            }
            offset += (read - CHUNK_HEADER) as u64;
        }
    }

    fn trailer(&mut self) -> Result<Option<Trailer>, TraceError> {
        let Some(offset) = self.len.checked_sub(TRAILER as u64).filter(|&offset| offset >= FILE_HEADER as u64) else {
            return Ok(None);
        };
        let mut bytes = [0; TRAILER];
        let read = self.read_at(offset, &mut bytes)?;
        Ok(Trailer::parse(&bytes[..read]))
    }
}

/// What a file lost.
pub(super) enum Loss {
    /// It ends in the middle of the file header.
    InHeader,
    /// It was not closed, but ends with a whole chunk.
    NotClosed,
    /// From here on there is no whole chunk.
    Torn(u64),
    /// Here something is damaged, with whole chunks after it; this was found.
    Damaged(u64, String),
    /// All chunks are there, but the index at the end is not.
    NoIndex(u64),
    /// All is there, and something else follows.
    Extra(u64),
}

/// The chunks of a file.
#[derive(Default)]
pub(super) struct ChunkMap {
    /// Events chunks, in order.
    pub(super) chunks: Vec<IndexEntry>,
    /// How many events the index promises.
    pub(super) promised: Option<u64>,
    pub(super) loss: Option<Loss>,
    /// Where the last whole chunk ends, in a file that was not closed: damage before it is in the middle.
    pub(super) torn_from: Option<u64>,
}

/// Finds the chunks and reads the definitions.
pub(super) fn find<R: Read + Seek>(
    input: &mut Input<R>,
    names: &mut Names,
    salvage: bool,
) -> Result<ChunkMap, TraceError> {
    match index_entries(input)? {
        Some((entries, events)) => from_index(input, names, salvage, entries, events),
        None => by_scanning(input, names, salvage),
    }
}

/// The lines of the index, if there is one and it is consistent.
fn index_entries<R: Read + Seek>(input: &mut Input<R>) -> Result<Option<(Vec<IndexEntry>, u64)>, TraceError> {
    let Some(trailer) = input.trailer()? else { return Ok(None) };
    let end = input.len - TRAILER as u64;
    let mut offset = trailer.index;
    let (mut entries, mut events, mut last) = (Vec::<IndexEntry>::new(), 0u64, 0);
    while offset < end {
        let Ok(header) = input.header(offset)? else { return Ok(None) };
        if header.kind != Kind::Index || input.read_payload(offset, header).is_err() {
            return Ok(None);
        }
        let (lines, rest) = input.payload[..header.raw as usize].as_chunks::<INDEX_ENTRY>();
        if !rest.is_empty() {
            return Ok(None);
        }
        for line in lines {
            let Some(entry) = IndexEntry::parse(line) else { return Ok(None) };
            let in_order = entry.offset > last && entry.offset < trailer.index && entry.first == events;
            if !in_order || entry.events as usize > MAX_EVENTS {
                return Ok(None);
            }
            last = entry.offset;
            events += u64::from(entry.events);
            entries.push(entry);
        }
        offset += header.total_len();
    }
    let whole = offset == end && entries.len() == trailer.chunks as usize && events == trailer.events;
    Ok(whole.then_some((entries, events)))
}

/// Where the optional chunks are, as far as the chunks can be followed.
pub(super) fn optional_chunks<R: Read + Seek>(input: &mut Input<R>) -> Result<Vec<u64>, TraceError> {
    if let Some((entries, _)) = index_entries(input)? {
        let optional = entries.iter().filter(|entry| matches!(entry.kind, Kind::Optional(_)));
        return Ok(optional.map(|entry| entry.offset).collect());
    }
    let (mut found, mut offset) = (Vec::new(), FILE_HEADER as u64);
    while let Ok(header) = input.header(offset)? {
        if matches!(header.kind, Kind::Optional(_)) {
            found.push(offset);
        }
        offset += header.total_len();
    }
    Ok(found)
}

fn from_index<R: Read + Seek>(
    input: &mut Input<R>,
    names: &mut Names,
    salvage: bool,
    mut entries: Vec<IndexEntry>,
    events: u64,
) -> Result<ChunkMap, TraceError> {
    let mut loss = None;
    for i in 0..entries.len() {
        let IndexEntry { offset, kind, .. } = entries[i];
        if kind != Kind::Definitions {
            continue;
        }
        let result =
            indexed_header(input, entries[i]).and_then(|header| read_definitions(input, names, offset, header));
        if let Err(error) = result {
            loss = Some(damage(error, offset, salvage)?);
            entries.truncate(i);
            break;
        }
    }
    entries.retain(|entry| entry.kind == Kind::Events);
    Ok(ChunkMap { chunks: entries, promised: Some(events), loss, torn_from: None })
}

/// The header of a chunk, which must be what the index or the scan said.
pub(super) fn indexed_header<R: Read + Seek>(
    input: &mut Input<R>,
    entry: IndexEntry,
) -> Result<ChunkHeader, TraceError> {
    let IndexEntry { offset, first, events, kind } = entry;
    match input.header(offset)? {
        Ok(header) if (header.kind, header.first, header.events) == (kind, first, events) => Ok(header),
        Ok(_) => Err(bad_chunk(offset, kind.what(), "it is not the chunk that the index describes")),
        Err(NoHeader::Refused(detail)) => Err(bad_chunk(offset, kind.what(), detail)),
        Err(NoHeader::Torn) => Err(TraceError::at(Position::Byte(offset), Problem::Checksum { what: kind.what() })),
    }
}

fn read_definitions<R: Read + Seek>(
    input: &mut Input<R>,
    names: &mut Names,
    offset: u64,
    header: ChunkHeader,
) -> Result<(), TraceError> {
    input.read_payload(offset, header)?;
    definitions::read(&input.payload, names, input.version).map_err(|bad| match bad {
        BadDefinitions::Form(fault) => bad_chunk(offset, "definitions", fault),
        BadDefinitions::Name(problem) => TraceError::at(Position::Byte(offset), problem),
    })
}

/// Damage in the middle: an error, or with `salvage` the end of what is read. Trouble with the device stays an error.
pub(super) fn damage(error: TraceError, offset: u64, salvage: bool) -> Result<Loss, TraceError> {
    if salvage && !matches!(error.problem, Problem::Io(_)) {
        Ok(Loss::Damaged(offset, error.problem.to_string()))
    } else {
        Err(error)
    }
}

fn by_scanning<R: Read + Seek>(input: &mut Input<R>, names: &mut Names, salvage: bool) -> Result<ChunkMap, TraceError> {
    let mut map = ChunkMap::default();
    let mut offset = FILE_HEADER as u64;
    let (mut events, mut index) = (0u64, None);
    let loss = loop {
        if offset == input.len {
            break index.map_or(Loss::NotClosed, Loss::NoIndex);
        }
        let header = match input.header(offset)? {
            Ok(header) if offset + header.total_len() > input.len => {
                break if header.kind == Kind::Index { Loss::NoIndex(offset) } else { Loss::Torn(offset) };
            }
            Ok(header) => header,
            Err(NoHeader::Refused(detail)) => break damage(bad_chunk(offset, "next", detail), offset, salvage)?,
            Err(NoHeader::Torn) => {
                let mut bytes = [0; TRAILER];
                let read = input.read_at(offset, &mut bytes)?;
                if Trailer::parse(&bytes[..read]).is_some() {
                    let end = offset + TRAILER as u64;
                    break if end == input.len { Loss::NoIndex(index.unwrap_or(offset)) } else { Loss::Extra(end) };
                }
                if index.is_some() {
                    // Only the trailer comes after the index: nothing but the way to the index is lost.
                    break Loss::NoIndex(offset);
                }
                if !input.goes_on(offset + 1)? {
                    break Loss::Torn(offset);
                }
                let problem = Problem::Checksum { what: "next" };
                break damage(TraceError::at(Position::Byte(offset), problem), offset, salvage)?;
            }
        };
        let end = offset + header.total_len();
        if header.first != events && header.kind != Kind::Index {
            let detail = format!("it starts at event {}; expected event {events}", header.first);
            break damage(bad_chunk(offset, header.kind.what(), detail), offset, salvage)?;
        }
        match header.kind {
            Kind::Definitions => match read_definitions(input, names, offset, header) {
                Ok(()) => {}
                Err(error) => {
                    let torn = matches!(error.problem, Problem::Checksum { .. }) && !input.goes_on(offset + 1)?;
                    break if torn { Loss::Torn(offset) } else { damage(error, offset, salvage)? };
                }
            },
            Kind::Events => {
                map.chunks.push(IndexEntry { offset, first: header.first, events: header.events, kind: header.kind });
                events = events.saturating_add(u64::from(header.events));
            }
            Kind::Index => index = index.or(Some(offset)),
            Kind::Optional(_) => {}
        }
        map.torn_from = Some(end);
        offset = end;
    };
    if !matches!(loss, Loss::Torn(_) | Loss::NotClosed) {
        map.torn_from = None;
    }
    map.loss = Some(loss);
    Ok(map)
}
