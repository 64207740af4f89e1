//! Input events in memory.

use crate::error::TraceError;
use crate::input::{BatchPlace, InputBatch, InputEvent, InputSource, Progress};
use crate::names::Names;

/// Input events that are all there already.
#[derive(Clone, Debug)]
pub struct EventList {
    names: Names,
    events: Vec<InputEvent>,
    at: usize,
    batch: usize,
}

impl EventList {
    /// Events and the names that they refer to.
    pub fn new(names: Names, events: Vec<InputEvent>) -> Self {
        Self { names, events, at: 0, batch: InputBatch::TARGET }
    }
    /// Hands out so many events at a time, at least one, instead of the usual number.
    pub fn in_batches_of(self, events: usize) -> Self {
        Self { batch: events.max(1), ..self }
    }
}

impl InputSource for EventList {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        batch.restart(self.at as u64, BatchPlace::Memory);
        let end = (self.at + self.batch).min(self.events.len());
        self.events[self.at..end].iter().for_each(|event| batch.push(*event));
        self.at = end;
        Ok(!batch.is_empty())
    }
    fn names(&self) -> &Names {
        &self.names
    }
    fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }
    fn progress(&self) -> Progress {
        Progress { done: self.at as u64, total: Some(self.events.len() as u64) }
    }
}
