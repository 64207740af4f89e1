//! Places in the program that were looked up before, and the call stacks that end there.
//!
//! Debug information is asked once per program counter. An event then costs one look into a table: where its place is and
//! which stack it has are kept by its program counter and the innermost call that has not returned.

use super::memory::Memory;
use crate::symbols::{Inlined, SourcePlace, Symbols};
use portent_runtime::log::CallFrame;
use portent_trace::{Frame, LocId, Names, ObjectClass, Problem, StackId, UserPlaces};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Places that are kept at hand, at most and at least: as many as there are events, if that is between.
const RECENT: std::ops::RangeInclusive<u64> = 1 << 8..=1 << 12;

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenCall {
    /// The function that was called.
    pub(super) function: u32,
    /// Where it begins.
    pub(super) entry: LocId,
    /// Where it was called.
    pub(super) caller: u64,
    /// The calls up to and with this one.
    pub(super) stack: Option<StackId>,
    /// A program counter in the function.
    pub(super) pc: u64,
    /// Where its locals are; all zero where that was not recorded.
    pub(super) frame: CallFrame,
}

/// A place that was met, in the calls in which it was met.
#[derive(Clone, Copy)]
struct Recent {
    pc: u64,
    within: Option<StackId>,
    location: LocId,
    stack: Option<StackId>,
    /// The same for events there, once there was one: the user's line that they belong to.
    event: Option<(LocId, Option<StackId>)>,
}

/// What is known about a program counter.
#[derive(Clone, Debug)]
pub(super) struct Site {
    location: LocId,
    /// The function as the machine sees it.
    function: u32,
    /// The functions that were inlined there, the outermost first.
    inlined: Box<[Frame]>,
    in_runtime: bool,
}

/// What is known about program counters.
pub(super) struct Sites {
    /// Those met last; a program counter is never zero.
    recent: Box<[Recent]>,
    known: FxHashMap<u64, Site>,
    /// What was known before, from an earlier run.
    before: Option<Arc<FxHashMap<u64, Site>>>,
    users: UserPlaces,
    /// Allocation sites; none for places in libraries.
    allocations: FxHashMap<u64, Option<u32>>,
    /// Whether the same addresses have been different code.
    changed: bool,
}

impl Sites {
    /// For a recording of so many events.
    pub(super) fn new(events: u64) -> Sites {
        let nothing = Recent { pc: 0, within: None, location: LocId::from_bits(0), stack: None, event: None };
        let count = events.clamp(*RECENT.start(), *RECENT.end()).next_power_of_two();
        Sites {
            recent: vec![nothing; count as usize].into(),
            known: FxHashMap::default(),
            before: None,
            users: UserPlaces::default(),
            allocations: FxHashMap::default(),
            changed: false,
        }
    }

    /// The same, where an earlier run has met most of them.
    pub(super) fn after(events: u64, before: Arc<FxHashMap<u64, Site>>) -> Sites {
        Sites { before: Some(before), ..Sites::new(events) }
    }

    /// Other code is at some addresses now.
    pub(super) fn forget(&mut self) {
        *self = Sites { changed: true, ..Sites::new(self.recent.len() as u64) };
    }

    /// What runs of the same code can begin with; nothing if code came and went.
    pub(super) fn into_known(self) -> Option<FxHashMap<u64, Site>> {
        (!self.changed && self.before.is_none()).then_some(self.known)
    }

    /// The location of a call that returns to `pc`, and the stack there, where `innermost` is the last call that has not
    /// returned. `room` is how many stacks there may be before recursion is told shortened.
    #[inline]
    pub(super) fn get(
        &mut self,
        pc: u64,
        innermost: Option<&OpenCall>,
        room: u64,
        symbols: &Symbols,
        names: &mut Names,
    ) -> Result<(LocId, Option<StackId>), Problem> {
        let slot = self.recent(pc, innermost, room, symbols, names)?;
        Ok((self.recent[slot].location, self.recent[slot].stack))
    }

    /// The line that an event at `pc` belongs to, and its stack: for what happens in a library, the innermost line of the user's
    /// that led there.
    #[inline]
    pub(super) fn event(
        &mut self,
        pc: u64,
        innermost: Option<&OpenCall>,
        room: u64,
        symbols: &Symbols,
        names: &mut Names,
    ) -> Result<(LocId, Option<StackId>), Problem> {
        let slot = self.recent(pc, innermost, room, symbols, names)?;
        let Sites { recent, users, .. } = self;
        let known = &mut recent[slot];
        Ok(*known.event.get_or_insert_with(|| names.told_by_user_line(known.location, known.stack, users)))
    }

    /// Where among the places at hand it is.
    #[inline]
    fn recent(
        &mut self,
        pc: u64,
        innermost: Option<&OpenCall>,
        room: u64,
        symbols: &Symbols,
        names: &mut Names,
    ) -> Result<usize, Problem> {
        let within = innermost.and_then(|call| call.stack);
        let mixed = pc ^ within.map_or(0, |stack| (stack.index() as u64 + 1) << 32);
        let slot = (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize & (self.recent.len() - 1);
        let known = &self.recent[slot];
        if known.pc != pc || known.within != within || pc == 0 {
            let (location, stack) = self.look_up(pc, innermost, room, symbols, names)?;
            self.recent[slot] = Recent { pc, within, location, stack, event: None };
        }
        Ok(slot)
    }

    #[cold]
    fn look_up(
        &mut self,
        pc: u64,
        innermost: Option<&OpenCall>,
        room: u64,
        symbols: &Symbols,
        names: &mut Names,
    ) -> Result<(LocId, Option<StackId>), Problem> {
        let site = self.site(pc, symbols, names)?;
        let mut stack = innermost.and_then(|call| call.stack);
        // Code without instrumentation says nothing when it is called. It was called somewhere in the innermost function
        // that did say so, of which the beginning is known. The runtime's own events are nowhere.
        if let Some(call) = innermost.filter(|call| call.function != site.function && pc != 0) {
            stack = deeper(stack, Frame { function: site.function, call: call.entry }, room, names);
        }
        for &frame in &site.inlined {
            stack = deeper(stack, frame, room, names);
        }
        Ok((site.location, stack))
    }

    fn site(&mut self, pc: u64, symbols: &Symbols, names: &mut Names) -> Result<&Site, Problem> {
        if let Some(site) = self.before.as_deref().and_then(|before| before.get(&pc)) {
            return Ok(site);
        }
        #[allow(
            clippy::map_entry,
            reason = "a place that cannot be named must leave no trace, and entries cannot fail"
        )]
        if !self.known.contains_key(&pc) {
            let site = Site::of(&symbols.place(pc), names)?;
            self.known.insert(pc, site);
        }
        Ok(&self.known[&pc])
    }

    /// A call of the function at `pc` from where `caller` says: its function, where that begins, and its stack. Who is
    /// called by the runtime was called by what asked the runtime, at `asked`.
    #[allow(clippy::too_many_arguments, reason = "what is known of a call comes from as many sides")]
    pub(super) fn call(
        &mut self,
        pc: u64,
        caller: u64,
        asked: u64,
        innermost: Option<&OpenCall>,
        room: u64,
        symbols: &Symbols,
        names: &mut Names,
    ) -> Result<OpenCall, Problem> {
        let caller = if self.site(caller, symbols, names)?.in_runtime { asked } else { caller };
        let (call, within) = self.get(caller, innermost, room, symbols, names)?;
        let &Site { location: entry, function, .. } = self.site(pc, symbols, names)?;
        let stack = deeper(within, Frame { function, call }, room, names);
        Ok(OpenCall { function, entry, caller, stack, pc, frame: CallFrame::default() })
    }

    /// The function that contains `pc`, as the machine sees it.
    pub(super) fn function(&mut self, pc: u64, symbols: &Symbols, names: &mut Names) -> Result<u32, Problem> {
        Ok(self.site(pc, symbols, names)?.function)
    }

    /// The allocation site of a call that returns to `pc`, unless that is in a library.
    pub(super) fn allocation(&mut self, pc: u64, symbols: &Symbols, memory: &mut Memory) -> Option<u32> {
        let site = || symbols.place(pc).own.clone().map(|line| memory.site(line));
        *self.allocations.entry(pc).or_insert_with(site)
    }
}

impl Site {
    fn of(place: &SourcePlace, names: &mut Names) -> Result<Site, Problem> {
        let mut located = |text: &str, function: &Option<String>, source: &str| {
            names.intern_source_location(text, function.as_deref().unwrap_or_default(), source)
        };
        let location = located(&place.text, &place.function, &place.source)?;
        let calls = place.inlined.iter().map(|Inlined { call, caller, source, .. }| located(call, caller, source));
        let calls = calls.collect::<Result<Vec<LocId>, Problem>>()?;
        let mut inlined = Vec::with_capacity(calls.len());
        for (Inlined { function, .. }, call) in place.inlined.iter().zip(calls).rev() {
            inlined.push(Frame { function: names.intern(ObjectClass::Function, function.as_bytes())?, call });
        }
        let function = names.intern(ObjectClass::Function, place.outer.as_ref().unwrap_or(&place.text).as_bytes())?;
        Ok(Site { location, function, inlined: inlined.into(), in_runtime: place.in_runtime })
    }
}

/// The stack in which `frame` was called from `outer`.
///
/// Recursion makes more stacks than a trace should hold: beyond `room`, a call that is already among those around it leads
/// back to that one. What is beyond all limits has no stack.
fn deeper(outer: Option<StackId>, frame: Frame, room: u64, names: &mut Names) -> Option<StackId> {
    /// A recursion over more functions than this is not looked for.
    const CYCLE: usize = 64;
    let stacks = names.stacks();
    if let Some(known) = stacks.lookup(outer, frame) {
        return Some(known);
    }
    if stacks.len() as u64 >= room {
        let around = std::iter::successors(outer, |&stack| stacks.parent(stack)).take(CYCLE);
        if let Some(again) = around.into_iter().find(|&stack| stacks.frame(stack) == frame) {
            return Some(again);
        }
    }
    names.stacks_mut().intern(outer, frame).ok()
}
