//! A run of a program: its events, their names, and how it ended.

use crate::error::Error;
use crate::outcome::Outcome;
use crate::schedule::Schedule;
use portent_trace::format::{self, Dialect, Format, OpenOptions, RECORDING, TraceSink};
use portent_trace::{
    EventList, FunctionBlocks, InputBatch, InputEvent, InputOp, InputSource, Layout, LocId, Names, ObjectClass,
    StackColumn, StackFrame, Trace, TraceError, is_user_place, told_function, user_frame, without_address,
};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasher;
use std::path::Path;

/// One run of a program.
#[derive(Clone, Debug)]
pub struct Run {
    /// What happened, in order.
    pub events: Vec<InputEvent>,
    /// The call stack of each event, as far as the front end knows them.
    pub stacks: StackColumn,
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
        let mut kept = EventSink::default();
        let mut batch = InputBatch::default();
        let mut read = || -> Result<Names, TraceError> {
            while source.next_batch(&mut batch)? {
                kept.keep(&batch);
            }
            Ok(source.take_names())
        };
        let names = read().map_err(|error| error.in_input(&path.display().to_string()))?;
        let EventSink { events, stacks } = kept;
        Ok(Run { events, stacks, names, outcome, recording })
    }

    /// Writes it as a `.portent` file, with how it was recorded.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let mut sink = format::create(path, Format::Portent, Dialect::Portent, Layout::default())?;
        let mut source = self.source();
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
        Trace::from_input_watched(&mut self.source(), functions, |_| ())
    }

    fn source(&self) -> EventList<'_> {
        EventList::of(&self.names, &self.events).with_stacks(&self.stacks)
    }

    /// The places on the way to an event, the innermost first: its own, then that of each call that led there. Empty if
    /// there is no such event.
    pub fn stack(&self, event: usize) -> Vec<StackFrame> {
        let Some(at) = self.events.get(event).map(|event| event.loc) else { return Vec::new() };
        self.names.stack_frames(at, self.stacks.get(event))
    }

    /// Where in [`Run::stack`] the innermost place in the user's own code is, if there is one.
    pub fn user_place(&self, event: usize) -> Option<usize> {
        user_frame(&self.stack(event))
    }

    /// After how many events the thread failed by which it ended, if others went on then.
    pub(crate) fn failed_after(&self) -> Option<usize> {
        let who = self.outcome.crash.as_ref()?.thread?;
        self.outcome.parked.iter().find(|parked| parked.thread == who).map(|parked| parked.events as usize)
    }

    /// The run as if it had ended after so many events.
    pub(crate) fn until(&self, events: usize) -> Run {
        let events = events.min(self.events.len());
        let mut stacks = StackColumn::default();
        stacks.append(0, &self.stacks, 0..events);
        Run { events: self.events[..events].to_vec(), stacks, ..self.clone() }
    }

    /// The schedule of the whole run.
    pub fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::default();
        for event in &self.events {
            schedule.push(event.thread.index() as u32, 1);
        }
        schedule
    }

    /// What the run does, as hashes. What is new in another run is told by what is not among them.
    pub(crate) fn behaviour(&self) -> Behaviour {
        let mut places: FxHashMap<LocId, u64> = FxHashMap::default();
        let mut place = |at: LocId| {
            *places.entry(at).or_insert_with(|| FxBuildHasher.hash_one(self.names.location(at).to_string()))
        };
        let mut found = Behaviour::default();
        let mut writers: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
        for (number, event) in self.events.iter().enumerate() {
            let at = place(self.names.innermost(event.loc, self.stacks.get(number)));
            let thread = event.thread.index() as u32;
            found.does.insert(FxBuildHasher.hash_one((thread, event.op, at)));
            if !event.op.is_access() {
                continue;
            }
            if !matches!(event.op, InputOp::Write(_) | InputOp::Free | InputOp::Destroy) {
                let writer = writers.get(&event.object).filter(|(writer, _)| *writer != thread);
                found.reads.insert(FxBuildHasher.hash_one((thread, at, writer)));
            }
            if !matches!(event.op, InputOp::Read(_)) {
                writers.insert(event.object, (thread, at));
            }
        }
        found
    }

    /// What all threads do and read, as one hash, and which threads read where what which others wrote where: to count what runs
    /// reach.
    pub(crate) fn reached(&self) -> (u64, HashSet<u64>) {
        let mut places: FxHashMap<LocId, u64> = FxHashMap::default();
        let mut threads: BTreeMap<u32, u64> = BTreeMap::new();
        let mut writers: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
        let mut pairs = HashSet::new();
        for (number, event) in self.events.iter().enumerate() {
            let at = self.names.innermost(event.loc, self.stacks.get(number));
            let at = *places.entry(at).or_insert_with(|| FxBuildHasher.hash_one(self.names.location(at).to_string()));
            let reads =
                event.op.is_access() && !matches!(event.op, InputOp::Write(_) | InputOp::Free | InputOp::Destroy);
            let thread = event.thread.index() as u32;
            let saw = writers.get(&event.object).copied().filter(|_| reads);
            if reads {
                pairs.insert(FxBuildHasher.hash_one((thread, at, saw)));
            }
            if event.op.is_access() && !matches!(event.op, InputOp::Read(_)) {
                writers.insert(event.object, (thread, at));
            }
            // Addresses differ where nothing else does.
            let value = event.value.filter(|value| reads && value.unsigned_abs() < 1 << 24);
            let past = threads.entry(thread).or_default();
            *past = FxBuildHasher.hash_one((*past, event.op, at, saw, value));
        }
        (FxBuildHasher.hash_one(threads), pairs)
    }

    /// An event in words, as far as a reader of a report needs it.
    pub(crate) fn describe(&self, event: &InputEvent) -> String {
        let thread = self.names.thread(event.thread);
        let object = match event.op.class() {
            ObjectClass::None => String::new(),
            ObjectClass::Function => {
                format!("({})", told_function(self.names.name(ObjectClass::Function, event.object)))
            }
            class => format!("({})", self.names.called(class, event.object)),
        };
        let place = self.names.location(event.loc);
        // Where in a library it is says nothing to whoever called it.
        let at = match is_user_place(&place) || place.file.is_none() {
            true => {
                let function = place.function.map(|name| format!(" in {}", told_function(name))).unwrap_or_default();
                format!("at {}{function}", without_address(&place.to_string()))
            }
            false => "in a library".to_owned(),
        };
        format!("{thread}: {}{object} {at}", event.op.text())
    }
}

/// What a run does, hashed; by what is rarer first.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// Operations of threads at places.
    pub(crate) does: FxHashSet<u64>,
    /// Which reads saw what was written where.
    pub(crate) reads: FxHashSet<u64>,
}

/// A sink that keeps all events, for runs that are examined at once.
#[derive(Debug, Default)]
pub struct EventSink {
    /// The events.
    pub events: Vec<InputEvent>,
    /// Their call stacks.
    pub stacks: StackColumn,
}

impl EventSink {
    fn keep(&mut self, batch: &InputBatch) {
        self.stacks.append(self.events.len(), batch.stacks(), 0..batch.len());
        self.events.extend(batch.iter());
    }
}

impl TraceSink for EventSink {
    fn write(&mut self, _names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        self.keep(batch);
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        Ok(Vec::new())
    }
}
