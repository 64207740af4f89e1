//! Variables on stacks: which one an address is, while the calls that made them have not returned.
//!
//! A variable keeps its identity as long as its function is called in the same place of the stack, one call after the other:
//! calls are many, and what one leaves behind the next finds. What another function has there is something else. After its
//! function has returned, memory is still that variable until somebody else has it, so that an access which comes too late
//! is called what the program meant.
//!
//! Bytes of a frame that no variable has are a local of its function without a name: temporaries, and variables of which
//! debug information does not say where they are (clang's does not for many from -O1 on), unless there is only one of the size. So is all of the frame of a function
//! without debug information. Frames of code without instrumentation are not known; what lies there is the stack, and nothing
//! else.

use super::areas::{Area, Owner};
use super::memory::{Memory, REACH};
use super::sites::OpenCall;
use crate::symbols::{FrameLayout, LocalPart, Symbols};
use portent_trace::{Local, Names, Object, ObjectClass, ObjectName, ThreadId, short_function};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// What bytes of a frame are called that are no variable's as far as anybody knows.
const NAMELESS: &str = "";

/// The calls of all threads that have not returned.
#[derive(Clone, Copy)]
pub(super) struct Calls<'a> {
    pub(super) open: &'a [Vec<OpenCall>],
    /// Where each thread was last seen: a program counter.
    pub(super) positions: &'a [u64],
}

/// A variable, in one place of one stack.
struct Known {
    layout: Option<Rc<FrameLayout>>,
    /// Its number on the frame; none for temporaries.
    number: Option<u32>,
    name: String,
    function: String,
    /// The region that it has in the trace.
    region: u32,
}

/// All variables on stacks that were met.
#[derive(Default)]
pub(super) struct Locals {
    list: Vec<Known>,
    index: FxHashMap<(u32, usize, Option<u32>, u64), u32>,
    layouts: FxHashMap<u64, Option<(Rc<FrameLayout>, u64)>>,
    /// By thread: its stack.
    stacks: Vec<(u64, u64)>,
    /// By thread and open call: what was remembered about bytes of its frame.
    touched: Vec<Vec<Vec<(u64, u32)>>>,
}

/// How long what was found out about an address on a stack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Until something else is told.
    Always,
    /// Until this call of this thread returns.
    UntilReturn { thread: u32, depth: usize },
    /// For this access.
    Once,
}

impl Locals {
    /// Other code is at some addresses now.
    pub(super) fn forget(&mut self) {
        self.layouts.clear();
    }

    pub(super) fn stack(&mut self, thread: u32, start: u64, end: u64) {
        let thread = thread as usize;
        if self.stacks.len() <= thread {
            self.stacks.resize(thread + 1, (0, 0));
            self.touched.resize(thread + 1, Vec::new());
        }
        self.stacks[thread] = (start, end);
    }

    /// Something was remembered about bytes of a frame.
    pub(super) fn touch(&mut self, thread: u32, depth: usize, address: u64, size: u32) {
        let Some(touched) = self.touched.get_mut(thread as usize) else { return };
        if touched.len() <= depth {
            touched.resize(depth + 1, Vec::new());
        }
        touched[depth].push((address, size));
    }

    fn layout(&mut self, pc: u64, symbols: &Symbols) -> Option<(Rc<FrameLayout>, u64)> {
        self.layouts.entry(pc).or_insert_with(|| symbols.frame(pc.wrapping_sub(1))).clone()
    }

    /// What some bytes of a variable are called, and whether they are an integer with a sign. For `len` 0: the lock or the
    /// like that begins there.
    pub(super) fn part(&self, local: u32, offset: u64, len: u64) -> LocalPart {
        let known = &self.list[local as usize];
        let nameless = || LocalPart { offset, ..LocalPart::default() };
        match (&known.layout, known.number) {
            (Some(layout), Some(number)) if len == 0 => layout.object(number, offset),
            (Some(layout), Some(number)) => layout.part(number, offset, len),
            (Some(layout), None) => layout.lost_part(len).unwrap_or_else(nameless),
            (None, _) => nameless(),
        }
    }

    /// What a part of a variable is to the trace.
    pub(super) fn name<'a>(&'a self, thread: u32, local: u32, part: &'a LocalPart) -> ObjectName<'a> {
        let known = &self.list[local as usize];
        let lost = part.lost.zip(known.layout.as_ref()).map(|(lost, layout)| layout.lost_name(lost));
        let (name, inlined) = lost.unwrap_or((&known.name, None));
        let local = Local { function: inlined.unwrap_or(&known.function), name };
        let object = Object::Stack { thread: ThreadId::new(thread as usize), local: Some(local) };
        ObjectName { path: &part.path, ..ObjectName::at(object, part.offset) }
    }
}

/// The call whose frame an address is on: the outermost of those whose stack pointer is below it.
fn holder(open: &[OpenCall], address: u64, (low, high): (u64, u64)) -> Option<usize> {
    let mut found = None;
    if !(low..high).contains(&address) {
        return None;
    }
    // From the innermost outwards, which is where most addresses are.
    for (depth, call) in open.iter().enumerate().rev() {
        let stack = call.frame.stack;
        if (low..=address).contains(&stack) {
            found = Some(depth);
        } else if (low..high).contains(&stack) {
            break;
        }
    }
    found
}

impl Memory {
    /// Whose memory an address is. If it is on a stack, the variable there takes its place.
    pub(super) fn settle(&mut self, address: u64, calls: Calls<'_>, symbols: &Symbols, names: &Names) -> (Area, Holds) {
        let area = self.areas.at(address);
        let (Owner::Stack { thread } | Owner::Local { thread, .. }) = area.owner else { return (area, Holds::Always) };
        let open = calls.open.get(thread as usize).map_or(&[][..], Vec::as_slice);
        if open.is_empty() {
            return (area, Holds::Always);
        }
        let (low, high) = self.locals.stacks.get(thread as usize).copied().unwrap_or_default();
        let Some(depth) = holder(open, address, (low, high)) else { return (area, Holds::Once) };
        let call = &open[depth];
        let layout = self.locals.layout(call.pc, symbols);
        let behind = open.get(depth + 1).map_or(calls.positions[thread as usize], |inner| inner.caller);
        let found = layout.as_ref().and_then(|(layout, bias)| {
            let pc = behind.wrapping_sub(1).wrapping_sub(*bias);
            layout.find(call.frame, pc, address)
        });
        let (start, end, number) = match found {
            Some(found) => (found.start, found.end, Some(found.number)),
            None => {
                // Of a function without debug information everything up to the frame of its caller.
                let whole = || (call.frame.stack, depth.checked_sub(1).map_or(high, |outer| open[outer].frame.stack));
                let (start, end) = layout.as_ref().map_or_else(whole, |(layout, _)| layout.gap(call.frame, address));
                if !(start..end).contains(&address) {
                    // Between the frames of functions that are known.
                    return (area, Holds::Once);
                }
                (start, end, None)
            }
        };
        let (start, end) = (start.max(low), end.min(high));
        let layout = layout.map(|(layout, _)| layout);
        let which = layout.as_ref().map_or(call.pc as usize, |layout| Rc::as_ptr(layout) as usize);
        let key = (thread, which, number, start);
        let known = self.locals.index.get(&key).copied();
        let local = known.unwrap_or(self.locals.list.len() as u32);
        let owner = Owner::Local { thread, local };
        let held =
            if found.is_some_and(|found| found.shared) { Holds::Once } else { Holds::UntilReturn { thread, depth } };
        if area.owner == owner {
            return (area, held);
        }
        let region = known.map(|local| self.locals.list[local as usize].region);
        if self.areas.take_again(start, end, owner, region) {
            self.pages.forget_before(start, REACH);
        }
        let region = self.areas.at(start).region;
        if known.is_some() {
            self.pages.distrust(start, end - start);
        } else {
            self.pages.renew(start, end - start);
            let known = layout.as_ref().zip(number).map(|(layout, number)| layout.name(number));
            let (name, inlined) = known.unwrap_or((NAMELESS, None));
            let outer = || short_function(names.name(ObjectClass::Function, call.function));
            let function = inlined.map_or_else(outer, str::to_owned);
            self.locals.index.insert(key, local);
            let name = name.to_owned();
            self.locals.list.push(Known { layout, number, name, function, region });
        }
        (self.areas.at(address), held)
    }

    /// The innermost call of a thread has returned; `depth` others have not.
    #[inline]
    pub(super) fn returned(&mut self, thread: u32, depth: usize) {
        let touched = self.locals.touched.get_mut(thread as usize).and_then(|touched| touched.get_mut(depth));
        for (address, size) in touched.into_iter().flat_map(|touched| touched.drain(..)) {
            self.pages.forget(address, size.into());
        }
    }
}
