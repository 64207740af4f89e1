//! A run of a program: its events, their names, and how it ended.

use crate::error::Error;
use crate::outcome::Outcome;
use crate::schedule::Schedule;
use portent_trace::format::{self, Dialect, Format, OpenOptions, RECORDING, TraceSink};
use portent_trace::{
    EventList, FunctionBlocks, InputBatch, InputEvent, InputSource, Layout, Names, ObjectClass, Trace, TraceError,
};
use std::collections::HashSet;
use std::path::Path;

/// One run of a program.
#[derive(Clone, Debug)]
pub struct Run {
    /// What happened, in order. Call stacks are not kept: no front end records any yet.
    pub events: Vec<InputEvent>,
    /// What the things in the events are called.
    pub names: Names,
    /// How it ended.
    pub outcome: Outcome,
    /// How it was recorded, in the front end's own form: what running the program in the same way again takes. It is kept
    /// with the trace.
    pub recording: Vec<u8>,
}

impl Run {
    /// The run whose events are in a trace file; how it ended and was recorded, the front end knows.
    pub fn load(path: &Path, outcome: Outcome, recording: Vec<u8>) -> Result<Run, Error> {
        let mut source = format::open(path, OpenOptions::default())?;
        let mut events = Vec::new();
        let mut batch = InputBatch::default();
        let mut read = || -> Result<Names, TraceError> {
            while source.next_batch(&mut batch)? {
                events.extend(batch.iter());
            }
            Ok(source.take_names())
        };
        let names = read().map_err(|error| error.in_input(&path.display().to_string()))?;
        Ok(Run { events, names, outcome, recording })
    }

    /// Writes it as a `.portent` file, with how it was recorded.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let mut sink = format::create(path, Format::Portent, Dialect::Portent, Layout::default())?;
        let mut source = EventList::of(&self.names, &self.events);
        let mut batch = InputBatch::default();
        while source.next_batch(&mut batch)? {
            sink.write(&self.names, &batch)?;
        }
        sink.attach(RECORDING, &self.recording)?;
        sink.finish()?;
        Ok(())
    }

    /// The run as a trace that can be examined.
    pub fn trace(&self, functions: FunctionBlocks) -> Result<Trace, TraceError> {
        Trace::from_input_watched(&mut EventList::of(&self.names, &self.events), functions, |_| ())
    }

    /// The schedule of the whole run.
    pub fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::default();
        for event in &self.events {
            schedule.push(event.thread.index() as u32, 1);
        }
        schedule
    }

    /// What the run does, as operations of threads at places: what is new in another run is told by what is not among them.
    pub(crate) fn behaviour(&self) -> HashSet<(u32, u16, String)> {
        let mut seen = HashSet::new();
        let mut known = HashSet::new();
        for event in &self.events {
            if known.insert((event.thread, event.op, event.loc)) {
                let place = self.names.location(event.loc).to_string();
                seen.insert((event.thread.index() as u32, event.op.code(), place));
            }
        }
        seen
    }

    /// An event in words, as far as a reader of a report needs it.
    pub(crate) fn describe(&self, event: &InputEvent) -> String {
        let thread = self.names.thread(event.thread);
        let object = match event.op.class() {
            ObjectClass::None => String::new(),
            class => format!("({})", self.names.name(class, event.object)),
        };
        let place = self.names.location(event.loc);
        let function = place.function.map(|name| format!(" in {name}")).unwrap_or_default();
        format!("{thread}: {}{object} at {place}{function}", event.op.text())
    }
}

/// A sink that keeps all events, for runs that are examined at once.
#[derive(Debug, Default)]
pub struct EventSink(pub Vec<InputEvent>);

impl TraceSink for EventSink {
    fn write(&mut self, _names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        self.0.extend(batch.iter());
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        Ok(Vec::new())
    }
}
