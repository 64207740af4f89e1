//! Reading `.portent` files. Every byte may be hostile: lengths are bounded before anything is allocated, ids are checked
//! against the names, and nothing that is read can cause a panic.

use super::decode::{EventChunk, ObjectLimits};
use super::frame::{FILE_HEADER, MAGIC, check_file_header};
use super::map::{self, ChunkMap, Input, Loss};
use super::{attach, bad_chunk};
use crate::error::{Position, Problem, TraceError};
use crate::input::{BatchPlace, InputBatch, InputSource, Progress};
use crate::names::Names;
use crate::symbolic::Formulas;
use std::io::{Read, Seek};

/// A source of the events in a `.portent` file.
///
/// A file that was not closed is read up to its last whole chunk, and [`InputSource::missing`] says what it lost. A
/// damaged chunk with whole chunks after it is an error, or with `salvage` the end of what is read.
pub struct PortentReader<R> {
    input: Input<R>,
    map: ChunkMap,
    names: Names,
    limits: ObjectLimits,
    salvage: bool,
    /// Index in the map of the chunk to be read next.
    next: usize,
    chunk: EventChunk,
    /// Events that can be read, as far as is known.
    recovered: u64,
}

impl<R: Read + Seek> PortentReader<R> {
    /// Opens a file: checks its header, finds its chunks and reads all its names.
    pub fn open(input: R, salvage: bool) -> Result<Self, TraceError> {
        let mut input = Input::new(input)?;
        let mut names = Names::default();
        let mut header = [0; FILE_HEADER];
        let read = input.read_at(0, &mut header)?;
        let map = if read == 0 {
            return Err(TraceError::whole(Problem::Empty));
        } else if read == FILE_HEADER {
            let version = check_file_header(&header);
            input.version = version.map_err(|problem| TraceError::at(Position::Byte(0), problem))?;
            map::find(&mut input, &mut names, salvage)?
        } else if header[..read.min(8)] == MAGIC[..read.min(8)] {
            ChunkMap { loss: Some(Loss::InHeader), ..ChunkMap::default() }
        } else {
            let found = header[..read.min(8)].to_vec();
            return Err(TraceError::at(Position::Byte(0), Problem::BadMagic { found }));
        };
        let recovered = map.chunks.last().map_or(0, |chunk| chunk.first + u64::from(chunk.events));
        let limits = ObjectLimits::of(&names);
        Ok(Self { input, map, names, limits, salvage, next: 0, chunk: EventChunk::default(), recovered })
    }

    /// Goes to event number `event`, with which the next batch then begins; past the last event, to the end.
    pub fn seek_to_event(&mut self, event: u64) -> Result<(), TraceError> {
        self.chunk.clear();
        self.next = self.map.chunks.partition_point(|chunk| chunk.first + u64::from(chunk.events) <= event);
        let Some(&chunk) = self.map.chunks.get(self.next) else { return Ok(()) };
        if !self.load_next()? {
            return Ok(());
        }
        // Events before it in its chunk have to be decoded: later ones build on them.
        let mut passed = InputBatch::default();
        let mut before = event.saturating_sub(chunk.first) as usize;
        while before > 0 && self.chunk.remaining() > 0 {
            let count = before.min(InputBatch::TARGET);
            self.decode(count, &mut passed)?;
            before -= count;
        }
        Ok(())
    }

    /// Loads the next chunk; `false` if there is none.
    fn load_next(&mut self) -> Result<bool, TraceError> {
        let Some(&entry) = self.map.chunks.get(self.next) else { return Ok(false) };
        let result = self.load(entry);
        match result {
            Ok(()) => {
                self.next += 1;
                Ok(true)
            }
            Err(error) => {
                self.recovered = entry.first;
                self.stop(error, entry.offset)?;
                Ok(false)
            }
        }
    }

    fn load(&mut self, entry: super::frame::IndexEntry) -> Result<(), TraceError> {
        let header = map::indexed_header(&mut self.input, entry)?;
        self.input.read_payload(entry.offset, header)?;
        if header.compressed {
            return Err(bad_chunk(entry.offset, "events", "it is compressed as a whole"));
        }
        self.chunk
            .load(&self.input.payload, entry.events as usize, &self.names, &self.limits, self.input.version)
            .map_err(|fault| bad_chunk(entry.offset, "events", fault))?;
        (self.chunk.offset, self.chunk.first) = (entry.offset, entry.first);
        Ok(())
    }

    /// Ends reading at the chunk at `offset`: quietly if it is the torn end of the file or is to be salvaged.
    fn stop(&mut self, error: TraceError, offset: u64) -> Result<(), TraceError> {
        let next = self.map.chunks.partition_point(|chunk| chunk.offset <= offset);
        let is_last = next == self.map.chunks.len()
            && self.map.torn_from.is_some_and(|end| {
                self.input
                    .header(offset)
                    .is_ok_and(|header| header.is_ok_and(|header| offset + header.total_len() == end))
            });
        self.map.chunks.truncate(next - 1);
        self.next = self.map.chunks.len();
        self.chunk.clear();
        let torn = is_last && matches!(error.problem, Problem::Checksum { .. });
        let loss = if torn { Loss::Torn(offset) } else { map::damage(error, offset, self.salvage)? };
        self.map.loss = Some(loss);
        Ok(())
    }

    fn decode(&mut self, limit: usize, batch: &mut InputBatch) -> Result<bool, TraceError> {
        match self.chunk.next(limit, batch) {
            Ok(()) => Ok(true),
            Err(fault) => {
                batch.restart(self.chunk.first, BatchPlace::Memory);
                self.recovered = self.chunk.next_event();
                let offset = self.chunk.offset;
                self.stop(bad_chunk(offset, "events", fault), offset)?;
                Ok(false)
            }
        }
    }
}

impl<R: Read + Seek> InputSource for PortentReader<R> {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        batch.restart(self.recovered, BatchPlace::Memory);
        if self.chunk.remaining() == 0 && !self.load_next()? {
            return Ok(false);
        }
        self.decode(InputBatch::TARGET, batch)
    }
    fn names(&self) -> &Names {
        &self.names
    }
    fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }
    fn take_formulas(&mut self) -> Result<Option<Formulas>, TraceError> {
        if matches!(self.map.loss, Some(Loss::InHeader)) {
            return Ok(None);
        }
        // Formulas that are damaged are none: engines then go by values.
        let found = attach::find(&mut self.input, |kind| kind == attach::FORMULAS).unwrap_or_default();
        let Some(text) = found.get(&attach::FORMULAS) else { return Ok(None) };
        Formulas::from_text(text).map(Some).map_err(TraceError::whole)
    }
    fn progress(&self) -> Progress {
        let done = self.map.chunks.get(self.next).map_or(self.input.len, |chunk| chunk.offset);
        Progress { done, total: Some(self.input.len) }
    }
    fn expected_events(&self) -> Option<u64> {
        self.map.promised
    }
    fn missing(&self) -> Option<String> {
        let (events, len) = (self.recovered, self.input.len);
        Some(match self.map.loss.as_ref()? {
            Loss::InHeader => {
                format!(
                    "the file ends after {len} bytes, inside its header; there is no index; 0 events were recovered"
                )
            }
            Loss::NotClosed => format!(
                "the file was not closed: it ends at byte {len} without an index; {events} events were recovered, and \
                 later ones may be missing"
            ),
            Loss::Torn(offset) => format!(
                "the file is cut off: the last {} bytes, from byte {offset} on, are no whole chunk, and there is no \
                 index; {events} events were recovered",
                len - offset
            ),
            Loss::Damaged(offset, what) => {
                let promised = match self.map.promised {
                    Some(promised) => format!(" of {promised}"),
                    None => String::new(),
                };
                format!(
                    "the last {} bytes, from byte {offset} on, were not read: {what}; {events}{promised} events were \
                     recovered",
                    len - offset
                )
            }
            Loss::NoIndex(offset) => format!(
                "the index at byte {offset} is damaged or incomplete, {} bytes in all; no event is missing: all \
                 {events} were recovered",
                len - offset
            ),
            Loss::Extra(end) => format!(
                "the trace ends at byte {end}, but {} more bytes follow, which were not read; {events} events were \
                 recovered",
                len - end
            ),
        })
    }
}
