//! Writing `.portent` files: a stream of chunks, each flushed when it is full, so that a crash loses at most the last.

use super::attach::FIRST_KIND;
use super::decode::ObjectLimits;
use super::definitions::Written;
use super::encode::encode;
use super::frame::{
    CHUNK_HEADER, ChunkHeader, FILE_HEADER, INDEX_ENTRY, IndexEntry, Kind, MAX_EVENTS, MAX_PAYLOAD, MAX_RATIO, Trailer,
    file_header,
};
use crate::error::{Malformed, Problem, TraceError};
use crate::format::TraceSink;
use crate::ids::{Id, StackId};
use crate::input::{BatchPlace, HAS_VALUE, InputBatch, THREAD_SHIFT};
use crate::names::{Names, ObjectClass};
use std::io::Write;

/// Definitions are put into a chunk of their own when they are longer than this.
const DEFINITIONS_BUFFER: usize = 1 << 20;

/// Writes a `.portent` file.
///
/// A variable that is a byte range must have its range when its name is first written.
pub struct PortentWriter<W: Write> {
    out: W,
    offset: u64,
    chunk_events: usize,
    /// Events of the chunk that fills.
    pending: InputBatch,
    /// Sections that events in `pending` may need.
    definitions: Vec<u8>,
    written: Written,
    entries: Vec<IndexEntry>,
    /// Events in whole chunks.
    events: u64,
}

impl<W: Write> PortentWriter<W> {
    /// Starts a file.
    pub fn new(mut out: W) -> Result<Self, TraceError> {
        out.write_all(&file_header())?;
        Ok(Self {
            out,
            offset: FILE_HEADER as u64,
            chunk_events: MAX_EVENTS,
            pending: InputBatch::default(),
            definitions: Vec::new(),
            written: Written::default(),
            entries: Vec::new(),
            events: 0,
        })
    }

    /// Puts at most `events` events into a chunk (from 1 to 65,536): less is lost in a crash, and the file is larger.
    #[must_use]
    pub fn with_chunk_events(mut self, events: usize) -> Self {
        self.chunk_events = events.clamp(1, MAX_EVENTS);
        self
    }

    /// Writes the events of a batch.
    pub fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        if self.written.is_behind(names) {
            self.define(names)?;
        }
        if let Some((i, what, id)) = self.first_undefined(names, batch) {
            return Err(TraceError::at(batch.position(i), Malformed::Undefined { what, id }));
        }
        let mut done = 0;
        while done < batch.len() {
            let room = self.chunk_events - self.pending.len();
            let next = batch.len().min(done + room);
            self.pending.append(batch, done..next);
            done = next;
            if self.pending.len() >= self.chunk_events {
                self.flush_events()?;
            }
        }
        Ok(())
    }

    /// The first event that refers to something without a name: which it is, and to what.
    fn first_undefined(&self, names: &Names, batch: &InputBatch) -> Option<(usize, &'static str, u32)> {
        let limits = ObjectLimits::of(names);
        let (threads, locations) = (names.count(ObjectClass::Thread), names.location_table().len());
        let run = batch.columns();
        let fine = |i: usize| {
            let meta = run.meta[i];
            let location = run.loc[i].table_index().unwrap_or(0);
            (meta >> THREAD_SHIFT) < threads as u32
                && run.object[i] < limits.of_operation(meta & (HAS_VALUE - 1))
                && (location < locations || run.loc[i].number().is_some())
        };
        let unknown_stack = batch.stacks().numbers().iter().position(|&stack| stack as usize > names.stacks().len());
        let unnamed = (0..run.len()).find(|&i| !fine(i));
        let i = match (unnamed, unknown_stack) {
            (None, Some(i)) => return Some((i, StackId::WHAT, batch.stacks().numbers()[i] - 1)),
            (unnamed, _) => unnamed?,
        };
        let event = batch.get(i);
        let class = event.op.class();
        Some(if event.thread.index() >= threads {
            (i, ObjectClass::Thread.what(), event.thread.0)
        } else if event.object >= limits.of_operation(event.op.code().into()) {
            (i, class.what(), event.object)
        } else {
            (i, "location", event.loc.to_bits())
        })
    }

    /// Puts something about the trace as a whole into the file: an optional chunk of this kind (128 to 255), or several
    /// if it is long. What is attached under one kind is read back as one.
    pub fn attach(&mut self, kind: u8, bytes: &[u8]) -> Result<(), TraceError> {
        let kind = Kind::Optional(kind.max(FIRST_KIND));
        // Chunks are numbered by the events before them, so those come first.
        self.flush_events()?;
        self.write_chunk(kind, 0, &bytes[..bytes.len().min(MAX_PAYLOAD)])?;
        for part in bytes.chunks(MAX_PAYLOAD).skip(1) {
            self.write_chunk(kind, 0, part)?;
        }
        Ok(())
    }

    /// Ends the file with its index. Nothing is ever dropped, so there is nothing to say.
    pub fn finish(mut self) -> Result<Vec<String>, TraceError> {
        self.flush_events()?;
        let trailer = Trailer { index: self.offset, events: self.events, chunks: self.entries.len() as u32 };
        let entries = std::mem::take(&mut self.entries);
        for part in entries.chunks(MAX_PAYLOAD / INDEX_ENTRY) {
            let payload: Vec<u8> = part.iter().flat_map(|entry| entry.to_bytes()).collect();
            self.write_chunk(Kind::Index, 0, &payload)?;
        }
        self.out.write_all(&trailer.to_bytes())?;
        self.out.flush()?;
        Ok(Vec::new())
    }

    fn define(&mut self, names: &Names) -> Result<(), TraceError> {
        let mut written = std::mem::take(&mut self.written);
        let result = written.write_new(names, |section| {
            self.definitions.extend(section);
            if self.definitions.len() > DEFINITIONS_BUFFER { self.flush_definitions() } else { Ok(()) }
        });
        self.written = written;
        result
    }

    fn flush_definitions(&mut self) -> Result<(), TraceError> {
        if self.definitions.is_empty() {
            return Ok(());
        }
        let mut payload = std::mem::take(&mut self.definitions);
        self.write_chunk(Kind::Definitions, 0, &payload)?;
        payload.clear();
        self.definitions = payload;
        Ok(())
    }

    fn flush_events(&mut self) -> Result<(), TraceError> {
        self.flush_definitions()?;
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut payload = Vec::new();
        encode(&self.pending, &mut payload);
        self.write_chunk(Kind::Events, self.pending.len() as u32, &payload)?;
        self.pending.restart(0, BatchPlace::Memory);
        Ok(())
    }

    fn write_chunk(&mut self, kind: Kind, events: u32, raw: &[u8]) -> Result<(), TraceError> {
        let mut compressed = Vec::new();
        // The columns of events are already as small as they get.
        if kind != Kind::Events {
            compressed = lz4_flex::block::compress(raw);
        }
        let shrinks = compressed.len() < raw.len() / 20 * 19 && raw.len() <= compressed.len() * MAX_RATIO;
        let use_compressed = kind != Kind::Events && shrinks;
        let stored = if use_compressed { &compressed[..] } else { raw };
        if raw.len() > MAX_PAYLOAD {
            return Err(TraceError::whole(Problem::TooMany { what: "byte of a chunk", limit: MAX_PAYLOAD as u64 }));
        }
        let header = ChunkHeader {
            kind,
            compressed: use_compressed,
            events,
            first: self.events,
            stored: stored.len() as u32,
            raw: raw.len() as u32,
            payload_crc: crc32fast::hash(stored),
        };
        // One write for the whole chunk: a crash between two would tear it.
        let mut chunk = Vec::with_capacity(CHUNK_HEADER + stored.len());
        chunk.extend(header.to_bytes());
        chunk.extend(stored);
        self.out.write_all(&chunk)?;
        self.out.flush()?;
        if kind != Kind::Index {
            self.entries.push(IndexEntry { offset: self.offset, first: self.events, events, kind });
        }
        self.offset += chunk.len() as u64;
        self.events += u64::from(events);
        Ok(())
    }
}

impl<W: Write> TraceSink for PortentWriter<W> {
    fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        PortentWriter::write(self, names, batch)
    }
    fn attach(&mut self, kind: u8, bytes: &[u8]) -> Result<(), TraceError> {
        PortentWriter::attach(self, kind, bytes)
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        PortentWriter::finish(*self)
    }
}
