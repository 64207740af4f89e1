//! Runs that did what an earlier one did: nothing can be learnt from them, so they never become traces.
//!
//! Two runs are the same here if each thread did the same, saw the same, and saw it from the same writers: they differ in the order
//! of what does not depend on each other. That is seen from the recording itself, at a fraction of what a trace costs.

use crate::run::launch::Ended;
use crate::run::log_file::LogFile;
use portent_explore::End;
use portent_runtime::log::{LogEvent, ReaderTables, Record, note, op};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Recordings with more bytes than this are not compared: such runs hardly ever repeat one.
const LONGEST: usize = 1 << 19;
/// Memory is told apart by words of so many bytes,
const WORD: u64 = 8;
/// and of wide accesses so many count.
const MOST_WORDS: u64 = 64;

/// What runs did, as hashes.
#[derive(Debug, Default)]
pub(super) struct Repeats(Mutex<FxHashSet<u64>>);

impl Repeats {
    /// Whether a run did what an earlier one did that was shown to this. Runs that failed are never the same.
    pub(super) fn has(&self, ended: &Ended) -> bool {
        if ended.timed_out || !matches!(ended.end(), End::Status(_)) {
            return false;
        }
        let Some(did) = did(&ended.log) else { return false };
        let mut whole = FxHasher::default();
        (did, ended.status.code(), &ended.output.stdout, &ended.output.stderr).hash(&mut whole);
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(whole.finish())
    }
}

/// What the threads of a run did; `None` if that is not looked at.
fn did(log: &LogFile) -> Option<u64> {
    let (mut reader, mut records) = (log.reader(ReaderTables::new()), log.records());
    let mut threads: Vec<(FxHasher, u64)> = Vec::new();
    // Who wrote a word last: the thread, and which of its events that was.
    let mut writers: FxHashMap<u64, (usize, u64)> = FxHashMap::default();
    loop {
        if reader.offset() > LONGEST {
            return None;
        }
        let record = records.at(reader.offset()).and_then(|bytes| reader.next_record(bytes)).ok()?;
        let thread = reader.thread();
        if thread >= threads.len() {
            threads.resize_with(thread + 1, Default::default);
        }
        let Some(record) = record else { break };
        let (hash, events) = &mut threads[thread];
        match record {
            Record::Event(LogEvent { op, pc, address, size, value }) => {
                *events += 1;
                (op, pc, address, size, value).hash(hash);
                if op < op::ACCESSES {
                    let words = address / WORD..=address.saturating_add(u64::from(size).saturating_sub(1)) / WORD;
                    for word in words.take(MOST_WORDS as usize) {
                        if !(op::WRITE..op::UPDATE).contains(&op) {
                            writers.get(&word).hash(hash);
                        }
                        if op >= op::WRITE {
                            writers.insert(word, (thread, *events));
                        }
                    }
                }
            }
            Record::Note(note::DEADLOCK | note::FATAL | note::FAULT | note::ABORTED | note::FULL, _) => return None,
            // Where the plan was, and who ran when, are no part of what was done.
            Record::Note(note::SWITCH | note::GOAL | note::DIVERGED | note::PLAN_DONE, _) => {}
            // The kernel's number of the thread differs from run to run.
            Record::Note(note::THREAD, payload) => (note::THREAD, payload.get(..24), payload.get(32..)).hash(hash),
            Record::Note(kind, payload) => (kind, payload).hash(hash),
        }
    }
    let mut whole = FxHasher::default();
    threads.iter().for_each(|(hash, events)| (hash.finish(), events).hash(&mut whole));
    Some(whole.finish())
}
