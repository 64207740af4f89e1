//! A recording that grows, converted piece by piece, as its bytes come.
//!
//! What the first pass over a whole recording finds out ([`Survey`]) is found out as far as the recording goes. So some things are known later
//! than they would be: what a thread is called in the end, which memory may be raced for before the program says so, who owns what was
//! allocated. Operations, threads, objects and values are those of the whole conversion. The last few events are held back, since a note may still say
//! something about them.
//!
//! State: what a [`Converter`] has, and the bytes of the events that are held back.

use super::survey::{Survey, numbers};
use super::{Converter, Known, Position};
use portent_runtime::log::{LogReader, LogScanner, ReaderTables, Record, Scanned, note};
use portent_trace::{BatchPlace, InputBatch, Names, Object, ObjectClass, ObjectName, Problem, TraceError};
use std::collections::VecDeque;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// So many events are held back: a copy is noted after the event behind it.
const HELD_BACK: usize = 3;

/// A conversion that goes on.
pub struct Live {
    converter: Converter,
    scanner: LogScanner,
    reader: LogReader,
    /// Bytes that were not converted yet, where among all bytes they begin, and where among all the last events begin.
    bytes: Vec<u8>,
    begin: usize,
    last: VecDeque<usize>,
    modules: usize,
    at: Position,
}

impl Live {
    /// Begins, before the first record. Paths are told relative to `directory`.
    pub fn new(directory: &Path) -> Result<Live, TraceError> {
        // As for a run of many events: places are looked up in a table of that size.
        let mut survey = Survey { events: 1 << 20, ..Survey::default() };
        survey.thread(0);
        let mut converter = Converter::new(survey, directory, &Known::default())?;
        converter.survey.events = 0;
        Ok(Live {
            converter,
            scanner: LogScanner::default(),
            reader: LogReader::new(ReaderTables::new()),
            bytes: Vec::new(),
            begin: 0,
            last: VecDeque::new(),
            modules: 0,
            at: Position::default(),
        })
    }

    /// The names so far.
    pub fn names(&self) -> &Names {
        &self.converter.names
    }

    /// Takes in whole records, the ones that come next, and gives the events that are ready to `each`, in batches. `is_end`: there will be no more.
    pub fn feed(
        &mut self,
        records: &[u8],
        is_end: bool,
        each: &mut dyn FnMut(&Names, &InputBatch),
    ) -> Result<(), TraceError> {
        self.bytes.extend_from_slice(records);
        self.scan()?;
        let ready = match self.last.front() {
            Some(&first) if !is_end => first - self.begin,
            _ => self.bytes.len(),
        };
        self.meet().map_err(TraceError::whole)?;
        let bytes = std::mem::take(&mut self.bytes);
        let done = self.convert(&bytes[..ready], each);
        self.bytes = bytes;
        self.bytes.drain(..ready);
        self.begin += ready;
        done
    }

    /// The first pass, over what is new.
    fn scan(&mut self) -> Result<(), TraceError> {
        loop {
            let start = self.scanner.offset();
            let record = match self.scanner.next_record(&self.bytes[start - self.begin..]) {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(()),
                Err(damage) => return Err(damaged(damage.what)),
            };
            let survey = &mut self.converter.survey;
            let running = self.scanner.thread();
            survey.take(record, running).map_err(damaged)?;
            match record {
                Scanned::Event(_) => {
                    self.last.push_back(start);
                    if self.last.len() > HELD_BACK {
                        self.last.pop_front();
                    }
                }
                Scanned::Note(note::BENIGN, payload) => {
                    let [start, size] = numbers(payload);
                    self.converter.benign.declare(start, size);
                }
                Scanned::Note(note::ALLOCATE, payload) => {
                    let [start, size] = numbers(payload);
                    self.converter.benign.end(start, size, survey.events);
                }
                Scanned::Note(note::INPUT | note::SIGNAL, _) => {
                    // For replays, whose answers come from the whole conversion.
                    survey.thread(running as u64).answers.clear();
                }
                Scanned::Note(note::MESSAGE, _) => survey.messages.clear(),
                Scanned::Note(..) => {}
            }
            let copied = std::mem::take(&mut survey.copied);
            self.converter.copied.extend(copied);
        }
    }

    /// Makes room for threads and modules that the first pass has met.
    fn meet(&mut self) -> Result<(), Problem> {
        let Converter { survey, names, symbols, memory, frames, positions, ignoring, .. } = &mut self.converter;
        let threads = survey.threads.len();
        for thread in names.count(ObjectClass::Thread)..threads {
            // By its number: it can still get a name.
            let object = Object::Thread { number: thread as u32, name: None, start: None };
            names.intern_object(ObjectClass::Thread, &ObjectName::of(object))?;
        }
        frames.resize_with(threads.max(frames.len()), Vec::new);
        positions.resize(threads.max(positions.len()), 0);
        ignoring.resize(threads.max(ignoring.len()), 0);
        memory.meet(threads);
        for module in &survey.modules[self.modules..] {
            if !symbols.is_occupied(module.start, module.end) && symbols.load(module) {
                memory.load(module);
            }
        }
        self.modules = survey.modules.len();
        Ok(())
    }

    /// The second pass.
    fn convert(&mut self, bytes: &[u8], each: &mut dyn FnMut(&Names, &InputBatch)) -> Result<(), TraceError> {
        let mut batch = InputBatch::default();
        batch.restart(self.at.index, BatchPlace::Memory);
        let mut done = Ok(());
        loop {
            let record = match self.reader.next_record(&bytes[self.reader.offset() - self.begin..]) {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(damage) => {
                    done = Err(damaged(damage.what));
                    break;
                }
            };
            if batch.len() >= InputBatch::TARGET && matches!(record, Record::Event(_)) {
                each(&self.converter.names, &batch);
                batch.restart(self.at.index, BatchPlace::Memory);
            }
            let running = self.reader.thread() as u32;
            if let Err(problem) = self.converter.take(record, running, &mut self.at, &mut batch) {
                done = Err(TraceError::whole(problem));
                break;
            }
        }
        if !batch.is_empty() {
            each(&self.converter.names, &batch);
        }
        // What only the end of a run is told with does not pile up.
        let Converter { spins, parked, initial, unused, goal_places, .. } = &mut self.converter;
        spins.clear();
        parked.clear();
        initial.clear();
        unused.clear();
        goal_places.clear();
        done
    }
}

fn damaged(what: &str) -> TraceError {
    TraceError::whole(Error::new(ErrorKind::InvalidData, format!("the recording is damaged: {what}")))
}
