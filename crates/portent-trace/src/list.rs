//! Input events in memory.

use crate::error::TraceError;
use crate::input::{BatchPlace, InputBatch, InputEvent, InputSource, Progress};
use crate::names::Names;
use crate::stacks::StackColumn;
use std::borrow::Cow;

/// Input events that are all there already, its own or somebody else's.
#[derive(Clone, Debug)]
pub struct EventList<'a> {
    names: Cow<'a, Names>,
    events: Cow<'a, [InputEvent]>,
    stacks: Cow<'a, StackColumn>,
    at: usize,
    batch: usize,
}

impl EventList<'static> {
    /// Events and the names that they refer to.
    pub fn new(names: Names, events: Vec<InputEvent>) -> Self {
        let (names, events) = (Cow::Owned(names), Cow::Owned(events));
        Self { names, events, stacks: Cow::Owned(StackColumn::default()), at: 0, batch: InputBatch::TARGET }
    }
}

impl<'a> EventList<'a> {
    /// The same of events that stay where they are.
    pub fn of(names: &'a Names, events: &'a [InputEvent]) -> Self {
        let (names, events) = (Cow::Borrowed(names), Cow::Borrowed(events));
        Self { names, events, stacks: Cow::Owned(StackColumn::default()), at: 0, batch: InputBatch::TARGET }
    }
    /// The same events with their call stacks, which are among the names.
    pub fn with_stacks(self, stacks: &'a StackColumn) -> Self {
        Self { stacks: Cow::Borrowed(stacks), ..self }
    }
    /// Hands out so many events at a time, at least one, instead of the usual number.
    pub fn in_batches_of(self, events: usize) -> Self {
        Self { batch: events.max(1), ..self }
    }
}

impl InputSource for EventList<'_> {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        batch.restart(self.at as u64, BatchPlace::Memory);
        let end = (self.at + self.batch).min(self.events.len());
        self.events[self.at..end].iter().for_each(|event| batch.push(*event));
        batch.stacks_mut().append(0, &self.stacks, self.at..end);
        self.at = end;
        Ok(!batch.is_empty())
    }
    fn names(&self) -> &Names {
        &self.names
    }
    fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names).into_owned()
    }
    fn progress(&self) -> Progress {
        Progress { done: self.at as u64, total: Some(self.events.len() as u64) }
    }
}
