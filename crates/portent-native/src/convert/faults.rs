//! What the program did to memory and objects that were no longer its own, and how it died.
//!
//! An access of a freed block shows here, because every access is looked up in [`super::memory`]; so does an operation on a
//! lock in one, and a lock that is held when its memory is freed. What cannot be seen in events, the runtime has noted:
//! frees of what is no block, objects and descriptors that end while they are used.
//!
//! Freed memory counts as freed until the runtime gives it back to the C library; from then on nothing is said about it.

use super::Converter;
use super::areas::{Area, Owner, When};
use super::survey::numbers;
use portent_explore::{Crash, Fault, FaultKind, Moment, Thrown};
use portent_runtime::log::{LogEvent, fault, message, note, op};
use portent_trace::InputOp;
use rustc_hash::{FxHashMap, FxHashSet};

/// More than a person reads, and few enough to keep.
const MOST: usize = 300;
const SIGABRT: i32 = 6;

/// What was found out about a run that went wrong.
#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Fault>,
    told: FxHashSet<(FaultKind, String)>,
    /// Where objects, by their address, and descriptors ended last.
    destroyed: FxHashMap<u64, When>,
    closed: FxHashMap<u64, When>,
    /// The last free of something that the runtime does not know: thread, number of the next event, address, program counter.
    doubtful_free: Option<(u32, u64, u64, u64)>,
    /// What a thread said before it died: the thread, and where.
    said: Option<(u32, u64)>,
    thrown: Option<(u32, Thrown)>,
    /// The innermost place of the program's own on the way to what is thrown next.
    thrown_by: Option<u64>,
    crash: Option<Crash>,
    outside: Vec<(String, String)>,
}

/// The same, when all is read.
#[derive(Debug, Default)]
pub struct Misdeeds {
    /// In order; of those of one kind in one place only the first.
    pub faults: Vec<Fault>,
    /// The signal of its own making that ended the program.
    pub crash: Option<Crash>,
    /// The exception that nobody caught.
    pub thrown: Option<Thrown>,
    /// What it learned from outside: what it does, and where.
    pub outside: Vec<(String, String)>,
}

impl Faults {
    /// What is known at the end.
    pub(super) fn finish(self) -> Misdeeds {
        let Faults { list, crash, thrown, outside, .. } = self;
        let died = crash.as_ref().and_then(|crash| (crash.signal == SIGABRT).then_some(crash.thread?));
        let thrown = thrown.filter(|(thread, _)| died == Some(*thread)).map(|(_, thrown)| thrown);
        Misdeeds { faults: list, crash, thrown, outside }
    }

    fn add(&mut self, fault: Fault) {
        if self.list.len() < MOST && self.told.insert((fault.kind, fault.at.place.clone())) {
            self.list.push(fault);
        }
    }
}

fn event_number(index: u64) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn of_bytes(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

impl Converter {
    /// Something about frees, faults and the end of the program.
    pub(super) fn fault_note(&mut self, kind: u16, payload: &[u8], thread: u32, index: u64) {
        match kind {
            note::FREE => self.freed(payload, thread, index),
            note::RELEASE => {
                let [address] = numbers(payload);
                self.memory.release(address);
            }
            note::DESTROY => {
                let [address, pc] = numbers(payload);
                let when = self.when(thread, pc, index);
                self.faults.destroyed.insert(address, when);
            }
            note::CLOSE => {
                let [descriptor, pc] = numbers(payload);
                let when = self.when(thread, pc, index);
                self.faults.closed.insert(descriptor, when);
            }
            note::FAULT => self.fault(payload, thread, index),
            note::MESSAGE => {
                let [kind, pc] = numbers(payload);
                if matches!(kind, message::ABORT | message::ASSERTION) {
                    self.faults.said = Some((thread, pc));
                    self.own_place(thread, pc);
                }
                if kind == message::OUTSIDE {
                    let told = String::from_utf8_lossy(payload.get(16..).unwrap_or_default()).into_owned();
                    let told = (told.trim_end_matches('\0').to_owned(), self.own_place(thread, pc));
                    if self.faults.outside.len() < MOST && !self.faults.outside.contains(&told) {
                        self.faults.outside.push(told);
                    }
                }
            }
            note::THROWN_BY => {
                let calls = payload.chunks_exact(8).map(|bytes| numbers::<1>(bytes)[0]).filter(|&pc| pc != 0);
                self.faults.thrown_by = calls.into_iter().find(|&pc| self.symbols.place(pc).own.is_some());
            }
            note::THROWN => {
                let [pc] = numbers(payload);
                let pc = self.faults.thrown_by.take().unwrap_or(pc);
                let encoded = String::from_utf8_lossy(payload.get(8..).unwrap_or_default());
                let type_name = type_name(encoded.trim_end_matches('\0'));
                let place = self.own_place(thread, pc);
                self.faults.thrown = Some((thread, Thrown { thread, place, type_name }));
            }
            note::ABORTED => {
                let [pc] = numbers(payload);
                let said = self.faults.said.filter(|(who, _)| *who == thread).map(|(_, pc)| pc);
                if said.is_none_or(|pc| self.symbols.place(pc).own.is_some()) {
                    // The program itself called it, or the C library: an exception that is being handled is not what ended it.
                    self.faults.thrown = None;
                }
                let thrown = self.faults.thrown.as_ref().map(|(_, thrown)| thrown.place.clone());
                let place = thrown.unwrap_or_else(|| self.place_of_death(thread, said.unwrap_or(pc)));
                self.died(thread, index, SIGABRT, None, place);
            }
            note::FATAL => {
                let [signal, address, pc] = numbers(payload);
                // The instruction itself, where other places are behind their call.
                let place = self.place_of_death(thread, pc.wrapping_add(1));
                self.died(thread, index, signal as i32, Some(address), place);
            }
            _ => {}
        }
    }

    fn died(&mut self, thread: u32, index: u64, signal: i32, address: Option<u64>, place: String) {
        if let Some((freeing, then, address, pc)) = self.faults.doubtful_free.take()
            && (freeing, then) == (thread, index)
        {
            let detail = "the C library does not know it".to_owned();
            self.bad_free(thread, index.saturating_sub(1), address, pc, detail);
        }
        self.faults.crash = Some(Crash { signal, place, thread: Some(thread), address });
    }

    fn bad_free(&mut self, thread: u32, index: u64, address: u64, pc: u64, detail: String) {
        let at = self.moment(thread, pc, index);
        let object = self.object_name(address).unwrap_or_default();
        let area = self.memory.area(address);
        let made = self.made(area);
        self.faults.add(Fault { kind: FaultKind::BadFree, at, object, detail, made, ended: None });
    }

    /// A block was freed; the write that stands for it was the event before.
    fn freed(&mut self, payload: &[u8], thread: u32, index: u64) {
        let [address, pc, unknown] = numbers(payload);
        if unknown != 0 {
            self.faults.doubtful_free = Some((thread, index, address, pc));
            return;
        }
        let when = self.when(thread, pc, index.saturating_sub(1));
        let Some(area) = self.memory.free(address, when) else { return };
        // Its own lock is the freeing thread's business: nobody else is kept waiting by that.
        let held = self.sync.held_in(area.region).find(|(holding, _)| holding.thread != thread);
        if let Some((holding, offset)) = held {
            let at = self.told(when);
            let object = self.object_name(area.base + offset).unwrap_or_default();
            let holder = self.survey.thread_name(holding.thread as usize);
            let detail =
                format!("freed while {holder} holds the lock in it, taken at {}", self.names.location(holding.at));
            let (made, ended) = (self.made(area), Some(at.clone()));
            self.faults.add(Fault { kind: FaultKind::DestroyedInUse, at, object, detail, made, ended });
        }
    }

    /// An access of memory that was freed.
    #[cold]
    pub(super) fn used_after_free(&mut self, thread: u32, index: u64, event: &LogEvent, area: Area) {
        let verb = match event.op {
            op if op < op::WRITE => "read",
            op if op < op::UPDATE => "write",
            _ => "atomic update",
        };
        let into = event.address - area.base;
        let size = area.limit - area.base;
        let part = if into == 0 { "at the start of".to_owned() } else { format!("{} into", of_bytes(into)) };
        let detail = format!("{verb} of {}, {part} a block of {size}", of_bytes(event.size.into()));
        self.ended_fault(FaultKind::UseAfterFree, (thread, index, event.pc), area.base, area, detail);
    }

    /// An operation on a lock or the like in memory that was freed.
    #[cold]
    pub(super) fn object_used_after_free(&mut self, thread: u32, index: u64, event: &LogEvent, area: Area) {
        let op = InputOp::from_code(event.op).unwrap_or(InputOp::Branch);
        let late = matches!(
            op,
            InputOp::Wake | InputOp::WakeInTime | InputOp::TimeOut | InputOp::WakeByItself | InputOp::Depart
        );
        // Those who are woken need not touch what they slept on; futexes, which have no place, are addresses and nothing else.
        if late || event.pc == 0 {
            return;
        }
        let detail = "its memory was freed".to_owned();
        self.ended_fault(FaultKind::UsedAfterDestroy, (thread, index, event.pc), event.address, area, detail);
    }

    fn ended_fault(&mut self, kind: FaultKind, by: (u32, u64, u64), address: u64, area: Area, detail: String) {
        let (thread, index, pc) = by;
        let at = self.moment(thread, pc, index);
        let object = self.object_name(address).unwrap_or_default();
        let made = self.made(area);
        let ended = area.freed.map(|when| self.told(when));
        self.faults.add(Fault { kind, at, object, detail, made, ended });
    }

    /// A fault that the runtime has seen.
    fn fault(&mut self, payload: &[u8], thread: u32, index: u64) {
        let [kind, address, pc, other] = numbers(payload);
        let text = String::from_utf8_lossy(payload.get(32..).unwrap_or_default()).into_owned();
        let kind = match kind {
            fault::DOUBLE_FREE => FaultKind::DoubleFree,
            fault::BAD_FREE => return self.bad_free(thread, index, address, pc, text),
            fault::DESTROYED_IN_USE => FaultKind::DestroyedInUse,
            fault::USED_AFTER_DESTROY => FaultKind::UsedAfterDestroy,
            _ => FaultKind::ClosedInUse,
        };
        let at = self.moment(thread, pc, index);
        let mut detail = text;
        let other = other.checked_sub(1).and_then(|other| u32::try_from(other).ok()).filter(|&other| other != thread);
        if let (Some(other), FaultKind::DestroyedInUse | FaultKind::ClosedInUse) = (other, kind) {
            let name = self.survey.thread_name(other as usize);
            let place = self.place_of_death(other, 0);
            detail.push_str(&format!(" ({name}, last seen at {place})"));
        }
        if kind == FaultKind::ClosedInUse {
            let ended = self.faults.closed.get(&address).copied().map(|when| self.told(when));
            let object = format!("descriptor {address}");
            return self.faults.add(Fault { kind, at, object, detail, made: None, ended });
        }
        let area = self.memory.area(address);
        let ended = match kind {
            FaultKind::DoubleFree => area.freed,
            FaultKind::UsedAfterDestroy => self.faults.destroyed.get(&address).copied(),
            _ => None,
        };
        let ended = ended.map(|when| self.told(when)).or((kind == FaultKind::DestroyedInUse).then(|| at.clone()));
        let object = self.object_name(address).unwrap_or_default();
        let made = self.made(area);
        self.faults.add(Fault { kind, at, object, detail, made, ended });
    }

    /// Something that a thread does at a place, by the number of the event.
    pub(super) fn when(&mut self, thread: u32, pc: u64, index: u64) -> When {
        let (site, _) = self.allocation_site(thread, pc);
        self.at_site(thread, site, index)
    }

    pub(super) fn at_site(&self, thread: u32, site: u32, index: u64) -> When {
        When { thread, event: event_number(index), site }
    }

    /// The same in words.
    fn told(&mut self, When { thread, event, site }: When) -> Moment {
        Moment { thread, event, place: self.site_text(site) }
    }

    fn moment(&mut self, thread: u32, pc: u64, index: u64) -> Moment {
        let when = self.when(thread, pc, index);
        self.told(when)
    }

    fn made(&mut self, area: Area) -> Option<Moment> {
        match area.owner {
            Owner::Allocation { made, .. } => Some(self.told(made)),
            _ => None,
        }
    }

    /// A place as the program's author knows it: the innermost one that is not in a system's library.
    pub(super) fn own_place(&mut self, thread: u32, pc: u64) -> String {
        let (site, _) = self.allocation_site(thread, pc);
        self.site_text(site)
    }

    /// A place as text. The trace knows it from now on, so that whoever has the text finds what stands there.
    fn site_text(&mut self, site: u32) -> String {
        // A trace that is full of places does without.
        let _ = self.memory.location(site, &mut self.names);
        self.memory.site_text(site).to_owned()
    }

    /// Where a thread is that has gone into a library and not come back: there, if that is the program's own code, or where
    /// it was last seen in that.
    fn place_of_death(&mut self, thread: u32, pc: u64) -> String {
        let last = self.positions.get(thread as usize).copied().unwrap_or(0);
        match [pc, last].into_iter().find_map(|pc| self.symbols.place(pc).own.clone()) {
            Some(line) => {
                let site = self.memory.site(line);
                self.site_text(site)
            }
            None => self.own_place(thread, if pc == 0 { last } else { pc }),
        }
    }
}

/// The name of a C++ type that the compiler has encoded.
fn type_name(encoded: &str) -> String {
    let symbol = format!("_ZTI{encoded}");
    let told = addr2line::demangle_auto(symbol.as_str().into(), None);
    told.strip_prefix("typeinfo for ").unwrap_or(encoded).to_owned()
}
