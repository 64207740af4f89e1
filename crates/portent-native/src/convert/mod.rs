//! From a recording to a trace: every recorded event becomes exactly one input event, in the same order.
//!
//! | module | what it knows |
//! |---|---|
//! | `survey` | the first pass: threads, modules, and everything the runtime said besides events |
//! | `areas`, `pages`, `memory` | which variable an access is, and whether its value can be right |
//! | `locals` | variables on stacks |
//! | `pointers`, `owners` | what variables that hold addresses point to; which of them own it |
//! | `locks`, `sync` | the rules that a trace has to keep, so that readers never refuse one |
//! | `sites`, `groups` | where an event is; which events of a line are one finding |
//! | `faults` | what the program did to memory and objects that were no longer its own, and how it died |
//! | `benign` | memory of which the program says that accesses may race |
//! | `oddities` | what had to be left out or changed for that |
//! | `live` | recordings that grow while they are converted |
//! | `deadlock` | who waited for whom when nobody could move |
//!
//! What it costs is in ARCHITECTURE.md. The memory of the second pass, here, grows with the program's memory and with
//! the number of names, not with the number of events.

mod areas;
mod benign;
mod context;
mod deadlock;
mod faults;
mod groups;
mod live;
mod locals;
mod locks;
mod memory;
mod oddities;
mod owners;
mod pages;
mod pointers;
mod sites;
pub mod survey;
mod sync;

#[cfg(test)]
mod tests;

pub use deadlock::{Holder, Waiting};
pub use faults::Misdeeds;
pub use live::Live;
pub use oddities::{Odd, Oddities};

use crate::run::log_file::LogFile;
use crate::symbols::{Allocating, Meaning, Module, OwnLine, SourcePlace, Symbols};
use areas::Area;
use benign::Benign;
use context::EventContext;
use faults::Faults;
use groups::Groups;
use locals::Calls;
use memory::Memory;
use oddities::Oddity;
use owners::Owners;
use pages::{KnownVariable, Seen};
use portent_explore::{Counting, Parked, Spin, SpinKind};
use portent_runtime::log::{CallFrame, Damaged, LogEvent, ReaderTables, Record, allocated, call, note, op, spins};
use portent_trace::format::TraceSink;
use portent_trace::{
    BatchPlace, InputBatch, InputEvent, InputOp, LocId, Names, Object, ObjectClass, ObjectName, Problem, Progress,
    SYSTEM_CALLS, StackId, TELLING_CALLS, ThreadId, TraceError, WriteOrder, is_user_place,
};
use rustc_hash::{FxHashMap, FxHashSet};
use sites::{OpenCall, Site, Sites};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use survey::{Survey, numbers};
use sync::Sync;

/// A recording that has become a trace.
pub struct Converted {
    /// What the first pass found.
    pub survey: Survey,
    /// Names of everything, by the trace's numbers.
    pub names: Names,
    /// What addresses are called.
    pub symbols: Symbols,
    /// What had to be left out.
    pub oddities: Oddities,
    /// Who waited for whom, if nobody could move.
    pub deadlock: Option<Vec<Waiting>>,
    /// Threads that failed while the process went on, and whom they left behind.
    pub parked: Vec<Parked>,
    /// See `parked`.
    pub left: Vec<Waiting>,
    /// Where threads waited in loops that only look.
    pub spins: Vec<Spin>,
    /// What global variables held before the first write, where that came before any read.
    pub initial: Vec<(u32, i64)>,
    /// Updates whose results the program does not look at, for small runs.
    pub unused: Vec<(u32, Counting)>,
    /// What tells variables from others in all runs, for small ones.
    pub identities: Vec<u64>,
    /// What the program did to memory and objects, and how it died.
    pub misdeeds: Misdeeds,
    /// Where the threads of a schedule's goal were when it was reached, in the program's own code.
    pub goal_places: Vec<String>,
}

thread_local! {
    /// What recordings are read with: large, and nearly empty after a short one.
    static TABLES: Cell<Option<ReaderTables>> = const { Cell::new(None) };
}

/// What one run of a program tells about the next: the names of places in its code, as long as the same code is at the same addresses.
#[derive(Clone, Default)]
pub struct Known(Option<Arc<KnownCode>>);

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sites = self.0.as_ref().map_or(0, |code| code.sites.len());
        f.debug_struct("Known").field("sites", &sites).finish()
    }
}

struct KnownCode {
    modules: Vec<Module>,
    names: Names,
    sites: Arc<FxHashMap<u64, Site>>,
}

/// Writes the events of a recording to `sink`, which the caller finishes. Paths are told relative to `directory`. What is `known` of the
/// program's code saves time, and is found out by the first run.
pub fn convert(
    file: &LogFile,
    directory: &Path,
    known: &mut Known,
    sink: &mut dyn TraceSink,
    mut progress: impl FnMut(Progress),
) -> Result<Converted, TraceError> {
    let survey = Survey::of(file, |done| progress(Progress { done: done / 4, total: None }));
    let total = Some(survey.bytes);
    let mut converter = Converter::new(survey, directory, known)?;
    converter.benign = Benign::of(file, &converter.survey);
    let mut reader = file.reader(TABLES.take().unwrap_or_else(ReaderTables::new));
    let mut records = file.records();
    let mut batch = InputBatch::default();
    let mut at = Position::default();
    while at.index < converter.survey.events || (reader.offset() as u64) < converter.survey.bytes {
        let record = records.at(reader.offset()).and_then(|bytes| reader.next_record(bytes));
        match record {
            // Nobody should write to it any more.
            Ok(Some(Record::Note(note::SWITCH, _))) if reader.thread() >= converter.survey.threads.len() => {
                converter.survey.damage = Some(changed(reader.offset()));
                break;
            }
            Ok(Some(record)) => {
                // Before the next event, not after the last: a note may still say something about that.
                if batch.len() >= InputBatch::TARGET && matches!(record, Record::Event(_)) {
                    sink.write(&converter.names, &batch)?;
                    batch.restart(at.index, BatchPlace::Memory);
                    progress(Progress { done: reader.offset() as u64, total });
                }
                converter.take(record, reader.thread() as u32, &mut at, &mut batch).map_err(TraceError::whole)?;
            }
            Ok(None) => break,
            Err(damage) => {
                converter.survey.damage = Some(damage);
                break;
            }
        }
    }
    let index = at.index;
    TABLES.set(Some(reader.into_tables()));
    converter.settle_owners(index).map_err(TraceError::whole)?;
    sink.write(&converter.names, &batch)?;
    // Damage inside an event is seen only now.
    converter.survey.events = index;
    let identities = if index < SMALL { converter.memory.identities() } else { Vec::new() };
    let Converter {
        survey,
        names,
        symbols,
        sites,
        oddities,
        deadlock,
        parked,
        left,
        spins,
        initial,
        unused,
        faults,
        goal_places,
        ..
    } = converter;
    if known.0.is_none() {
        let code = sites.into_known().map(|sites| (Arc::new(sites), names.places(), survey.modules.clone()));
        known.0 = code.map(|(sites, names, modules)| Arc::new(KnownCode { modules, names, sites }));
    }
    let misdeeds = faults.finish();
    Ok(Converted {
        survey,
        names,
        symbols,
        oddities,
        deadlock,
        parked,
        left,
        spins,
        initial,
        unused,
        identities,
        misdeeds,
        goal_places,
    })
}

/// A recording is read twice, and was not the same.
fn changed(offset: usize) -> Damaged {
    Damaged { offset, what: "it was written to while it was read" }
}

/// A trace has room for so many call stacks, and for one more every few events; recursion that needs more is shortened.
/// A stack costs the file about five bytes, so this keeps them below a fifth of a byte per event.
const STACKS: u64 = 1 << 12;
const EVENTS_PER_STACK: u64 = 32;
/// Runs with fewer events are compared with others event by event.
const SMALL: u64 = 1 << 16;

struct Converter {
    survey: Survey,
    names: Names,
    symbols: Symbols,
    sites: Sites,
    groups: Groups,
    memory: Memory,
    sync: Sync,
    oddities: Oddities,
    /// Open calls of each thread.
    frames: Vec<Vec<OpenCall>>,
    /// Where each thread was last seen: a program counter.
    positions: Vec<u64>,
    faults: Faults,
    benign: Benign,
    /// How often each thread has asked that its accesses be ignored.
    ignoring: Vec<u32>,
    deadlock: Option<Vec<Waiting>>,
    parked: Vec<Parked>,
    left: Vec<Waiting>,
    spins: Vec<Spin>,
    initial: Vec<(u32, i64)>,
    unused: Vec<(u32, Counting)>,
    /// Variables that were accessed.
    met: FxHashSet<u32>,
    goal_places: Vec<String>,
    /// The region of what each pointer was last seen to point to, by the pointer and the address.
    pointed: FxHashMap<(u32, i64), u32>,
    owners: Owners,
    /// What the block is called that the next event begins.
    block: String,
    /// What events wrote of which another value was recorded, by their numbers, from the next event on.
    copied: VecDeque<(u64, u64)>,
}

/// Where a conversion is.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// The number of the next event.
    index: u64,
    /// Whose the last one was.
    thread: Option<u32>,
    /// The address that it wrote.
    written: Option<u64>,
}

impl Converter {
    fn new(mut survey: Survey, directory: &Path, known: &Known) -> Result<Converter, TraceError> {
        let copied = std::mem::take(&mut survey.copied).into_iter().collect();
        let known = known.0.as_deref().filter(|known| known.modules == survey.modules);
        let mut names = known.map_or_else(Names::default, |known| known.names.clone());
        let sites = known
            .map_or_else(|| Sites::new(survey.events), |known| Sites::after(survey.events, Arc::clone(&known.sites)));
        for thread in 0..survey.threads.len() {
            let name = ObjectName::of(survey.thread_object(thread));
            names.intern_object(ObjectClass::Thread, &name).map_err(TraceError::whole)?;
        }
        let mut symbols = Symbols::new(directory);
        let mut memory = Memory::new(survey.threads.len());
        // A library's constructors run before it can be noted, so what comes later is there from the start, unless
        // something else is.
        for module in &survey.modules {
            if !symbols.is_occupied(module.start, module.end) && symbols.load(module) {
                memory.load(module);
            }
        }
        let threads = survey.threads.len();
        let frames = vec![Vec::new(); threads];
        let (positions, faults) = (vec![0; survey.threads.len()], Faults::default());
        let (sync, oddities) = (Sync::default(), Oddities::default());
        Ok(Converter {
            survey,
            names,
            symbols,
            sites,
            groups: Groups::default(),
            memory,
            sync,
            oddities,
            frames,
            positions,
            faults,
            benign: Benign::default(),
            ignoring: vec![0; threads],
            deadlock: None,
            parked: Vec::new(),
            left: Vec::new(),
            spins: Vec::new(),
            initial: Vec::new(),
            unused: Vec::new(),
            met: FxHashSet::default(),
            goal_places: Vec::new(),
            pointed: FxHashMap::default(),
            owners: Owners::default(),
            block: String::new(),
            copied,
        })
    }

    /// Converts a record of a thread; an event goes into the batch.
    #[inline(always)]
    fn take(
        &mut self,
        record: Record<'_>,
        running: u32,
        at: &mut Position,
        batch: &mut InputBatch,
    ) -> Result<(), Problem> {
        match record {
            Record::Event(event) => {
                if at.thread != Some(running) {
                    at.thread = Some(running);
                    self.sync.runs(running);
                }
                let address = event.address;
                let (event, stack) = self.event(running, at.index, &event)?;
                at.written = matches!(event.op, InputOp::Write(WriteOrder::Plain)).then_some(address);
                batch.push_in(event, stack);
                at.index += 1;
            }
            Record::Note(kind, payload) => {
                let ends = match kind {
                    note::FREE => Some(InputOp::Free),
                    note::DESTROY => Some(InputOp::Destroy),
                    _ => None,
                };
                let mut index = at.index;
                if let Some(op) = ends.filter(|_| at.written == Some(numbers::<1>(payload)[0]))
                    && let Some(last) = batch.len().checked_sub(1)
                {
                    batch.ends(last, op);
                    // An object that cannot end before the program does is destroyed without an event.
                    index -= u64::from(op == InputOp::Destroy);
                }
                self.note(kind, payload, running, index);
            }
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, thread: u32, index: u64, event: &LogEvent) -> Result<(InputEvent, Option<StackId>), Problem> {
        let room = STACKS + index / EVENTS_PER_STACK;
        if event.op == op::CALL {
            self.call(thread, room, event)?;
        }
        self.positions[thread as usize] = event.pc;
        let innermost = self.frames[thread as usize].last();
        let (line, stack) = self.sites.event(event.pc, innermost, room, &self.symbols, &mut self.names)?;
        let copied;
        let due = self.copied.front().is_some_and(|&(copy, _)| copy <= index);
        let event = match due.then(|| self.copied.pop_front()).flatten() {
            Some((copy, value)) if copy == index && event.op == op::WRITE => {
                copied = LogEvent { value: Some(value), ..*event };
                &copied
            }
            _ => event,
        };
        let (op, object, value) = if event.op < op::ACCESSES {
            // Also what is not to be looked at, so that it is known what is in memory.
            let access = self.access(thread, index, event, line)?;
            if self.ignoring[thread as usize] > 0 || self.benign.covers(event, index) {
                self.nothing()?
            } else {
                access
            }
        } else {
            self.synchronise(thread, index, event, line)?
        };
        if event.op >= op::UPDATE && op.is_access() && index < SMALL {
            self.unused.extend(self.symbols.unused(event.pc).map(|counting| (index as u32, counting)));
        }
        let loc = self.groups.get(line, op.class(), object, &mut self.names)?;
        Ok((InputEvent { thread: ThreadId::new(thread as usize), op, object, value, loc }, stack))
    }

    /// In place of an access that the program wants nobody to look at.
    #[cold]
    fn nothing(&mut self) -> Result<(InputOp, u32, Option<i64>), Problem> {
        Ok((InputOp::Send, self.names.intern(ObjectClass::Token, b"nobody")?, None))
    }

    /// A function begins: what it does, from this event to its return, it does in one more call.
    fn call(&mut self, thread: u32, room: u64, event: &LogEvent) -> Result<(), Problem> {
        let frames = &mut self.frames[thread as usize];
        let LogEvent { pc, address: caller, .. } = *event;
        let asked = self.positions[thread as usize];
        let call = self.sites.call(pc, caller, asked, frames.last(), room, &self.symbols, &mut self.names)?;
        let frame = event.value.map_or_else(CallFrame::default, CallFrame::of_value);
        frames.push(OpenCall { frame, ..call });
        Ok(())
    }

    #[inline]
    fn access(
        &mut self,
        thread: u32,
        index: u64,
        event: &LogEvent,
        at: LocId,
    ) -> Result<(InputOp, u32, Option<i64>), Problem> {
        let LogEvent { address, size, .. } = *event;
        // The first pass has looked at every operation.
        let op = InputOp::from_code(event.op).unwrap_or(InputOp::Branch);
        let known = match self.memory.pages.known(address, size) {
            Some(known) => known,
            None if size == 0 => return Ok((op, self.no_bytes(thread)?, None)),
            None => {
                let calls = Calls { open: &self.frames, positions: &self.positions };
                let (known, freed) = self.memory.find(address, size, calls, &self.symbols, &mut self.names)?;
                // The use of an object, which is told as that by what is done to it.
                let is_object = size == 1 && event.value.is_none();
                if let Some(area) = freed.filter(|_| !is_object) {
                    self.used_after_free(thread, index, event, area);
                }
                if self.met.insert(known.variable) && event.op >= op::WRITE && !known.on_stack {
                    let zeroed = || self.memory.is_zeroed(address, size).then_some(0);
                    let value = self.symbols.initial(address, size).or_else(zeroed);
                    self.initial.extend(value.map(|value| (known.variable, extended(value, size, known.meaning))));
                }
                known
            }
        };
        let pages = &mut self.memory.pages;
        let KnownVariable { variable, overruns, meaning, on_stack } = known;
        let is_read = event.op < op::WRITE;
        if overruns {
            // Part of it lies in somebody else's memory, where the trace does not show it.
            if !is_read {
                pages.doubt(address, size.into());
            }
            return Ok((op, variable, None));
        }
        let mut told = None;
        match event.value {
            Some(value) if is_read => {
                if pages.read(address, size, value) == Seen::Expected {
                    told = Some(value);
                } else if !on_stack {
                    // A stack is used by everybody, and most of that needs no instrumentation.
                    self.oddities.add(Oddity::StrangeRead, at);
                }
            }
            Some(value) => {
                pages.write(address, size, value);
                told = Some(value);
            }
            None if is_read => {}
            None => pages.write_unknown(address, size.into()),
        }
        let told = told.map(|value| extended(value, size, meaning));
        if meaning == Meaning::Pointer {
            // Whoever wrote it: libraries link the nodes of trees and lists.
            if let Some(value) = event.value {
                self.owners.holds(variable, value as i64, &mut self.memory.areas);
            }
            if let Some(value) = told.filter(|_| !on_stack) {
                self.points(index, variable, value)?;
            }
        }
        Ok((op, variable, told))
    }

    /// An access of nothing: a variable that no other thread has.
    #[cold]
    fn no_bytes(&mut self, thread: u32) -> Result<u32, Problem> {
        let nothing = Object::Nothing { thread: ThreadId::new(thread as usize) };
        self.names.intern_object(ObjectClass::Variable, &ObjectName::of(nothing))
    }

    fn synchronise(
        &mut self,
        thread: u32,
        index: u64,
        event: &LogEvent,
        at: LocId,
    ) -> Result<(InputOp, u32, Option<i64>), Problem> {
        let LogEvent { pc, address, value, .. } = *event;
        let op = InputOp::from_code(event.op).unwrap_or(InputOp::Branch);
        match op {
            InputOp::Call => {
                return Ok((op, self.sites.function(pc, &self.symbols, &mut self.names)?, None));
            }
            InputOp::Return => {
                let function = match self.frames[thread as usize].pop() {
                    Some(frame) => {
                        self.positions[thread as usize] = frame.caller;
                        self.memory.returned(thread, self.frames[thread as usize].len());
                        frame.function
                    }
                    None => self.sites.function(pc, &self.symbols, &mut self.names)?,
                };
                return Ok((op, function, None));
            }
            // The return of a system call. Branches are not recorded, and a trace with some of them would say that there are
            // no others.
            InputOp::Branch => {
                let name = if address == call::TELLS as u64 { TELLING_CALLS } else { SYSTEM_CALLS };
                return Ok((InputOp::Send, self.names.intern(ObjectClass::Token, name.as_bytes())?, None));
            }
            InputOp::FenceAcquire | InputOp::FenceRelease | InputOp::Fence => return Ok((op, 0, None)),
            _ => {}
        }
        let class = op.class();
        let declares = matches!(op, InputOp::HappensBefore | InputOp::HappensAfter);
        if (matches!(class, ObjectClass::Lock | ObjectClass::Condition | ObjectClass::Semaphore | ObjectClass::Barrier)
            && op != InputOp::Await)
            || declares
        {
            let area = self.settled(address);
            let key = (class, area.region, address - area.base);
            // An address that order is declared at need not be anybody's.
            if area.freed.is_some() && !declares {
                self.object_used_after_free(thread, index, event, area);
            }
            if !self.sync.knows(key) {
                let sync = &mut self.sync;
                self.memory.named(address, &self.symbols, &mut self.names, |names, name| sync.add(key, name, names))?;
            }
            let mut context = EventContext { thread, index, at, names: &mut self.names, oddities: &mut self.oddities };
            return self.sync.step(op, key, value, &mut context);
        }
        let child = value.and_then(|child| u32::try_from(child).ok());
        let child = child.filter(|&child| (child as usize) < self.survey.threads.len());
        let block = match op {
            // What the program calls it, or the function that it begins in.
            InputOp::Begin if self.block.is_empty() => self.symbols.place(pc).outer.clone().unwrap_or_default(),
            InputOp::Begin => std::mem::take(&mut self.block),
            _ => String::new(),
        };
        let mut context = EventContext { thread, index, at, names: &mut self.names, oddities: &mut self.oddities };
        let (op, object) = match op {
            InputOp::Fork => self.sync.fork(child, &mut context)?,
            InputOp::Join => {
                let joined = child.map(|child| &self.survey.threads[child as usize]);
                let last = joined.filter(|joined| joined.events > 0).map(|joined| joined.last);
                self.sync.join(child, last, &mut context)?
            }
            InputOp::Send => self.sync.send(address, value.unwrap_or(0), &mut context)?,
            InputOp::Receive => self.sync.receive(address, value.unwrap_or(0), &mut context)?,
            InputOp::Begin => self.sync.begin(&block, &mut context)?,
            InputOp::End => self.sync.end(&mut context)?,
            _ => context.nothing(Some(Oddity::Unknown))?,
        };
        Ok((op, object, None))
    }

    fn note(&mut self, kind: u16, payload: &[u8], running: u32, index: u64) {
        match kind {
            note::THREAD => {
                let [thread, _, _, _, start, end] = numbers(payload);
                self.memory.stack(thread, start, end);
            }
            note::IGNORE => {
                if let Some(depth) = self.ignoring.get_mut(running as usize) {
                    *depth = if payload == [1] { *depth + 1 } else { depth.saturating_sub(1) };
                }
            }
            note::BLOCK => self.block = String::from_utf8_lossy(payload).into_owned(),
            note::ALLOCATE => {
                let [address, size, pc, kind] = numbers(payload);
                let (site, by) = self.allocation_site(running, pc);
                let made = self.at_site(running, site, index);
                self.memory.allocate(address, size, made, by, kind == allocated::ZEROED);
                self.owners.allocated(address);
            }
            note::NAMED => {
                let [address, size] = numbers(payload);
                let name = String::from_utf8_lossy(payload.get(16..).unwrap_or_default()).into_owned();
                self.memory.keeps(address, size, name);
            }
            note::MODULE => {
                let [bias, start, end] = numbers(payload);
                let path = String::from_utf8_lossy(payload.get(24..).unwrap_or_default());
                let path = path.trim_end_matches(['\0', '\n']).to_owned();
                let module = Module { bias, start, end, path };
                if start < end && self.symbols.load(&module) {
                    self.memory.load(&module);
                    self.sites.forget();
                }
            }
            note::GOAL => {
                let rows = payload.chunks_exact(48).map(numbers);
                let places = rows.map(|[thread, _, _, _, pc, _]: [u64; 6]| self.own_place(thread as u32, pc));
                self.goal_places = places.collect();
            }
            note::SPINS => {
                let [pc, what, events, iteration] = numbers(payload);
                let place = self.own_place(running, pc);
                let kind = match what {
                    spins::WAITS => SpinKind::Waits,
                    spins::COUNTS => SpinKind::Counts,
                    _ => SpinKind::Plain,
                };
                self.spins.push(Spin { thread: running, events, iteration, kind, place });
            }
            note::DEADLOCK => self.deadlock = Some(payload.chunks_exact(32).map(|row| self.waiting(row)).collect()),
            note::PARKED => {
                let place = self.own_place(running, numbers::<1>(payload)[0]);
                self.parked.push(Parked { thread: running, events: u32::try_from(index).unwrap_or(u32::MAX), place });
            }
            note::LEFT => self.left_behind(payload),
            _ => self.fault_note(kind, payload, running, index),
        }
    }

    /// Where memory is allocated, as the program sees it: the innermost place that is not in a system's library, and by which
    /// calls.
    fn allocation_site(&mut self, thread: u32, pc: u64) -> (u32, Allocating) {
        /// Deeper than libraries call each other before they call `malloc`.
        const DEPTH: usize = 24;
        let frames = self.frames.get(thread as usize).map_or(&[][..], |frames| frames);
        let callers = frames.iter().rev().take(DEPTH).map(|frame| frame.caller);
        // Code without instrumentation was called just behind where the thread was last seen.
        let position = self.positions.get(thread as usize).copied().filter(|&position| position != 0);
        let mut called = pc;
        // The innermost function is open itself, and so its caller is the first of those.
        let inside = 1 + usize::from(position.is_some());
        for (at, own) in std::iter::once(pc).chain(position).chain(callers.clone()).enumerate() {
            if let Some(site) = self.sites.allocation(own, &self.symbols, &mut self.memory) {
                let outer = callers.clone().nth((at + 1).saturating_sub(inside)).unwrap_or(own);
                return (site, Allocating { pc, called, own, outer });
            }
            called = own;
        }
        let place = self.symbols.place(pc);
        let SourcePlace { text, function, source, .. } = &*place;
        let function = function.clone().unwrap_or_default();
        let line = OwnLine { text: text.clone(), function, source: source.clone() };
        (self.memory.site(line), Allocating { pc, called: pc, own: pc, outer: pc })
    }

    /// Whose memory an address is now.
    fn settled(&mut self, address: u64) -> Area {
        let calls = Calls { open: &self.frames, positions: &self.positions };
        self.memory.settle(address, calls, &self.symbols, &self.names).0
    }

    /// What a lock or the like that no event has touched is called.
    fn object_name(&mut self, address: u64) -> Option<String> {
        self.settled(address);
        let Converter { memory, symbols, names, .. } = self;
        memory.named(address, symbols, names, |names, name| Ok(names.describe(&name))).ok()
    }

    /// Who was there when a failure ended the process. Who waits to end it has done all it had to do.
    fn left_behind(&mut self, payload: &[u8]) {
        for row in payload.chunks_exact(32) {
            let [thread, pending, ..]: [u64; 4] = numbers(row);
            let has_failed = self.parked.iter().any(|parked| u64::from(parked.thread) == thread);
            if pending != u64::from(op::EXIT) {
                let waiting = self.waiting(row);
                self.left.push(waiting);
            } else if let Some(thread) = self.survey.threads.get_mut(thread as usize)
                && !has_failed
            {
                thread.ended = true;
            }
        }
    }

    /// One thread of a deadlock.
    fn waiting(&mut self, row: &[u8]) -> Waiting {
        let [thread, pending, address, pc] = numbers(row);
        let place = self.symbols.place(pc);
        let code = u16::try_from(pending).unwrap_or(u16::MAX);
        let mut holders = Vec::new();
        let class = InputOp::from_code(code).map(InputOp::class);
        let number =
            class.filter(|class| matches!(class, ObjectClass::Lock | ObjectClass::Condition | ObjectClass::Semaphore));
        let number = number.and_then(|class| {
            let area = self.settled(address);
            self.sync.at((class, area.region, address - area.base))
        });
        let object = match class {
            Some(ObjectClass::Lock) => {
                let area = self.settled(address);
                match self.sync.lock(area.region, address - area.base) {
                    Some(lock) => {
                        let others =
                            lock.holders().filter(|holding| u64::from(holding.thread) != thread || code == op::ACQUIRE);
                        holders.extend(others.map(|holding| Holder {
                            name: self.survey.thread_name(holding.thread as usize),
                            location: own_text(&self.names, holding.at),
                        }));
                        Some(self.names.name(ObjectClass::Lock, lock.first).to_owned())
                    }
                    None => self.object_name(address),
                }
            }
            Some(ObjectClass::Thread) if address < self.survey.threads.len() as u64 => {
                Some(self.survey.thread_name(address as usize))
            }
            Some(ObjectClass::Condition | ObjectClass::Semaphore | ObjectClass::Barrier | ObjectClass::Token) => {
                self.object_name(address)
            }
            Some(ObjectClass::Variable) => self.object_name(address),
            _ => None,
        };
        let name = self.survey.thread_name(thread as usize);
        let location = self.own_place(thread as u32, pc);
        // The function of a line that is somebody else's tells nothing.
        let function = place.function.clone().filter(|_| location == place.text);
        Waiting { thread, name, pending, object, number, location, function, holders }
    }
}

/// A place, if it is in the program's own code; a line of a library's header tells nobody anything.
fn own_text(names: &Names, at: LocId) -> String {
    let location = names.location(at);
    if is_user_place(&location) { location.to_string() } else { String::new() }
}

/// A value of so many bytes as a number.
fn extended(value: u64, size: u32, meaning: Meaning) -> i64 {
    let unused = if meaning == Meaning::Signed { 64u32.saturating_sub(8 * size) & 63 } else { 0 };
    ((value << unused) as i64) >> unused
}
