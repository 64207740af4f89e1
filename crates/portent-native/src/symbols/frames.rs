//! Variables on stacks, out of the debug information of the functions that declare them.
//!
//! Only variables that stand at a fixed distance from a register of the frame ([`CallFrame`]) are here; those in registers are
//! never accessed by others, and arrays of variable length are left out. clang forgets from -O1 on where variables are that
//! others have the address of: of those only the names and sizes are known.

use super::types::{Meaning, Part, TypeId};
use super::units::{Debug, Entry, EntryAt, Next, Slice, Span, Unit, contains, is_class, single, walk};
use gimli::{AttributeValue, Operation, UnitOffset};
use portent_runtime::log::CallFrame;
use std::rc::Rc;

/// What is on the frame of a function.
pub struct FrameLayout {
    code: Vec<Span>,
    variables: Vec<Variable>,
    lost: Vec<Lost>,
    debug: Rc<Debug>,
}

/// A variable of which nobody knows where it is: not in a register, as far as anybody says.
#[derive(Debug)]
struct Lost {
    /// Debug information has nothing at all about it, not even values: it may as well be nowhere.
    vanished: bool,
    name: String,
    function: Option<String>,
    size: u64,
    ty: TypeId,
}

/// A variable on the frame.
#[derive(Debug)]
struct Variable {
    name: String,
    /// The function that declares it, if that was inlined here.
    function: Option<String>,
    places: Vec<Place>,
    size: u64,
    ty: Option<TypeId>,
    /// Where it is visible, innermost scope, and how many scopes are around that.
    scope: Vec<Span>,
    depth: usize,
    /// Whether another variable has some of its bytes.
    shared: bool,
}

/// Where a variable is, and for which part of the code; everywhere, if that is empty.
#[derive(Clone, Copy, Debug)]
struct Place {
    code: Span,
    base: Base,
    offset: i64,
}

/// What places on a frame are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// Where the stack was before the call.
    Caller,
    FramePointer,
    StackPointer,
}

impl Base {
    fn address(self, frame: CallFrame) -> Option<u64> {
        match self {
            // The return address and the caller's frame pointer lie between.
            Base::Caller => frame.frame_pointer()?.checked_add(16),
            Base::FramePointer => frame.frame_pointer(),
            Base::StackPointer => Some(frame.stack),
        }
    }
}

/// A variable that was found on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundLocal {
    /// Its number on the frame.
    pub number: u32,
    /// Where it begins.
    pub start: u64,
    /// The address behind its end.
    pub end: u64,
    /// Whether others have its place when it is not visible.
    pub shared: bool,
}

/// A part of a variable on a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalPart {
    /// Members and indices on the way to it.
    pub path: String,
    /// Bytes behind that.
    pub offset: u64,
    /// What its bytes stand for.
    pub meaning: Meaning,
    /// Of bytes that no variable is known to have: the only one that they can be, by its number.
    pub lost: Option<u32>,
}

impl FrameLayout {
    /// What `len` bytes are that no variable is known to have, if they can be only one.
    pub fn lost_part(&self, len: u64) -> Option<LocalPart> {
        let only = |vanished: bool| {
            let is_it = |(_, lost): &(usize, &Lost)| lost.size == len && lost.vanished == vanished;
            let mut fitting = self.lost.iter().enumerate().filter(is_it);
            let first = fitting.next()?;
            Some(first).filter(|_| fitting.next().is_none())
        };
        let has_values = self.lost.iter().any(|lost| lost.size == len && !lost.vanished);
        let (number, lost) = only(!has_values).filter(|_| len > 0)?;
        let Part { meaning, .. } = self.debug.types.borrow().types.part(lost.ty, 0, len);
        Some(LocalPart { meaning, lost: Some(number as u32), ..LocalPart::default() })
    }

    /// The name of one of those, and the function that declares it, if that was inlined.
    pub fn lost_name(&self, number: u32) -> (&str, Option<&str>) {
        self.lost.get(number as usize).map_or(("?", None), |lost| (&lost.name, lost.function.as_deref()))
    }

    /// The variable that holds an address on a frame, when its function is at `pc`.
    pub fn find(&self, frame: CallFrame, pc: u64, address: u64) -> Option<FoundLocal> {
        let inside = self.code.is_empty() || contains(&self.code, pc);
        let found = self.variables.iter().enumerate().filter_map(|(number, variable)| {
            let visible = inside && (variable.scope.is_empty() || contains(&variable.scope, pc));
            let start = variable.start(frame, pc, inside)?;
            let end = start.checked_add(variable.size)?;
            let here = (start..end).contains(&address);
            let found = FoundLocal { number: number as u32, start, end, shared: variable.shared };
            here.then_some((visible, variable.depth, found))
        });
        // Variables of blocks that are never open at once share a place. Where nobody knows which is, the outermost is best.
        let rank = |&(visible, depth, _): &(bool, usize, FoundLocal)| match visible {
            true => (1, depth),
            false => (0, usize::MAX - depth),
        };
        found.max_by_key(rank).map(|(.., found)| found)
    }

    /// A variable's name, and the function that declares it, if that was inlined.
    pub fn name(&self, number: u32) -> (&str, Option<&str>) {
        self.variables.get(number as usize).map_or(("?", None), |v| (&v.name, v.function.as_deref()))
    }

    /// The bytes around an address that are no variable's: from where to where, and `frame`'s own at most.
    pub fn gap(&self, frame: CallFrame, address: u64) -> (u64, u64) {
        let mut gap = (frame.stack, Base::Caller.address(frame).unwrap_or(address + 1));
        for variable in &self.variables {
            for place in &variable.places {
                let Some(base) = place.base.address(frame) else { continue };
                let start = base.wrapping_add(place.offset as u64);
                let end = start.saturating_add(variable.size);
                if end <= address {
                    gap.0 = gap.0.max(end);
                } else if start > address {
                    gap.1 = gap.1.min(start);
                }
            }
        }
        gap
    }

    /// Which part of a variable `len` bytes from an offset on are.
    pub fn part(&self, number: u32, offset: u64, len: u64) -> LocalPart {
        let ty = self.variables.get(number as usize).and_then(|variable| variable.ty);
        let Some(ty) = ty else { return LocalPart { offset, ..LocalPart::default() } };
        let Part { path, offset, meaning } = self.debug.types.borrow().types.part(ty, offset, len);
        LocalPart { path, offset, meaning, lost: None }
    }

    /// Which part of a variable a lock or the like at an offset is.
    pub fn object(&self, number: u32, offset: u64) -> LocalPart {
        let ty = self.variables.get(number as usize).and_then(|variable| variable.ty);
        match ty.and_then(|ty| self.debug.types.borrow().types.object(ty, offset)) {
            Some(path) => LocalPart { path, ..LocalPart::default() },
            None => self.part(number, offset, 1),
        }
    }
}

impl Variable {
    fn of(debug: &Debug, at: EntryAt, frame_base: Option<Base>, scopes: &[Scope]) -> Option<Variable> {
        let places = places(debug, at, frame_base);
        if places.is_empty() {
            return None;
        }
        let name = debug.own_or_origin_name(at)?;
        let mut reader = debug.types.borrow_mut();
        let ty = reader.of_variable(debug, at);
        let size = ty.map_or(0, |ty| reader.types.get(ty).size).max(1);
        let inner = scopes.last();
        let scope = inner.map(|scope| scope.code.clone()).unwrap_or_default();
        let function = inner.and_then(|scope| scope.function.clone());
        Some(Variable { name, function, places, size, ty, scope, depth: scopes.len(), shared: false })
    }
    fn end(&self, place: &Place) -> i64 {
        place.offset.saturating_add_unsigned(self.size)
    }
    fn start(&self, frame: CallFrame, pc: u64, inside: bool) -> Option<u64> {
        let valid = |place: &&Place| inside && (place.code == (0, 0) || contains(&[place.code], pc));
        let place = self.places.iter().find(valid).or(self.places.first())?;
        Some(place.base.address(frame)?.wrapping_add(place.offset as u64))
    }
}

impl Lost {
    fn of(debug: &Debug, at: EntryAt, scopes: &[Scope]) -> Option<Lost> {
        let vanished = is_nowhere(debug, at);
        if !vanished && is_somewhere(debug, at) {
            return None;
        }
        // Nothing can point to what compilers make for themselves.
        let name = debug.own_or_origin_name(at).filter(|name| name != "this" && !name.starts_with("__"))?;
        let mut reader = debug.types.borrow_mut();
        let ty = reader.of_variable(debug, at)?;
        let size = reader.types.get(ty).size;
        let function = scopes.last().and_then(|scope| scope.function.clone());
        // Nobody asks for those of a library's function that was inlined.
        let is_librarys =
            function.as_deref().is_some_and(|name| name.starts_with("std::") || name.starts_with("__gnu"));
        (size > 0 && !is_librarys).then_some(Lost { vanished, name, function, size, ty })
    }
}

/// Whether nothing is known of a variable, neither where it is nor what it holds.
fn is_nowhere(debug: &Debug, at: EntryAt) -> bool {
    let has = |name| debug.inherited(at, name).is_some();
    // A parameter that nobody uses stays in its register.
    let is_variable = debug.entry(at).is_some_and(|entry| entry.tag() == gimli::DW_TAG_variable);
    is_variable && !has(gimli::DW_AT_location) && !has(gimli::DW_AT_const_value)
}

/// Whether a variable is in a register, in memory or nowhere for part of the code; not so if all that is known are values.
fn is_somewhere(debug: &Debug, at: EntryAt) -> bool {
    let Some((unit, entry)) = debug.unit(at.unit).zip(debug.entry(at)) else { return true };
    let is_value = |expression: gimli::Expression<Slice>| {
        let mut operations = expression.operations(unit.encoding());
        let mut value = false;
        while let Ok(Some(operation)) = operations.next() {
            match operation {
                Operation::UnsignedConstant { .. } | Operation::SignedConstant { .. } => {}
                Operation::StackValue | Operation::ImplicitValue { .. } => value = true,
                _ => return false,
            }
        }
        value
    };
    match entry.attr_value(gimli::DW_AT_location) {
        // What was optimised away for good.
        None => true,
        Some(AttributeValue::Exprloc(expression)) => !is_value(expression),
        Some(value) => match debug.dwarf.attr_locations(unit, value) {
            Ok(Some(mut list)) => {
                let mut somewhere = false;
                while let Ok(Some(item)) = list.next() {
                    somewhere |= !is_value(item.data);
                }
                somewhere
            }
            _ => true,
        },
    }
}

/// A block, or a function that was inlined, around what is being read.
struct Scope {
    depth: isize,
    code: Vec<Span>,
    function: Option<String>,
}

impl FrameLayout {
    /// What is on the frame of a function.
    pub(super) fn of(debug: &Rc<Debug>, function: EntryAt) -> Option<FrameLayout> {
        let unit = debug.unit(function.unit)?;
        let entry = debug.entry(function)?;
        let frame_base = frame_base(unit, &entry);
        let code = debug.code_of(unit, &entry);
        let mut scopes: Vec<Scope> = Vec::new();
        let (mut variables, mut lost) = (Vec::new(), Vec::new());
        walk(unit, Some(function.offset), |met| {
            if met.offset == function.offset {
                return Next::Inside;
            }
            if met.depth <= 0 {
                return Next::Stop;
            }
            while scopes.last().is_some_and(|scope| scope.depth >= met.depth) {
                scopes.pop();
            }
            let at = EntryAt { offset: met.offset, ..function };
            match met.tag() {
                gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine => {
                    let is_inlined = met.tag() == gimli::DW_TAG_inlined_subroutine;
                    let around = scopes.last().and_then(|scope| scope.function.clone());
                    let function = if is_inlined { debug.function_name(at) } else { around };
                    let code = unit.entry(UnitOffset(met.offset)).map(|entry| debug.code_of(unit, &entry));
                    scopes.push(Scope { depth: met.depth, code: code.unwrap_or_default(), function });
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    match Variable::of(debug, at, frame_base, &scopes) {
                        Some(variable) => variables.push(variable),
                        None => lost.extend(Lost::of(debug, at, &scopes)),
                    }
                }
                tag if is_class(tag) => return Next::Behind,
                _ => {}
            }
            Next::Inside
        });
        let overlap = |a: &Variable, b: &Variable| {
            a.places.iter().any(|at| {
                let same_bytes = |other: &Place| {
                    let (from, to) = (at.offset.max(other.offset), a.end(at).min(b.end(other)));
                    at.base == other.base && from < to
                };
                b.places.iter().any(same_bytes)
            })
        };
        for at in 0..variables.len() {
            let shared = (0..variables.len()).any(|other| other != at && overlap(&variables[at], &variables[other]));
            variables[at].shared = shared;
        }
        Some(FrameLayout { code, variables, lost, debug: Rc::clone(debug) })
    }
}

/// What the places of a function's variables are counted from.
fn frame_base(unit: &Unit, entry: &Entry) -> Option<Base> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_frame_base)? else { return None };
    match single(unit.encoding(), expression)? {
        Operation::CallFrameCFA => Some(Base::Caller),
        Operation::Register { register } => of_register(register),
        _ => None,
    }
}

fn of_register(register: gimli::Register) -> Option<Base> {
    match register {
        gimli::X86_64::RBP => Some(Base::FramePointer),
        gimli::X86_64::RSP => Some(Base::StackPointer),
        _ => None,
    }
}

/// Where a variable is, as far as that is on the frame.
fn places(debug: &Debug, at: EntryAt, frame_base: Option<Base>) -> Vec<Place> {
    let mut found = Vec::new();
    let Some((unit, entry)) = debug.unit(at.unit).zip(debug.entry(at)) else { return found };
    let place = |code, expression: gimli::Expression<Slice>| {
        let (base, offset) = match single(unit.encoding(), expression)? {
            Operation::FrameOffset { offset } => (frame_base?, offset),
            Operation::RegisterOffset { register, offset, .. } => (of_register(register)?, offset),
            _ => return None,
        };
        Some(Place { code, base, offset })
    };
    match entry.attr_value(gimli::DW_AT_location) {
        None => {}
        Some(AttributeValue::Exprloc(expression)) => found.extend(place((0, 0), expression)),
        Some(value) => {
            if let Ok(Some(mut list)) = debug.dwarf.attr_locations(unit, value) {
                while let Ok(Some(item)) = list.next() {
                    found.extend(place((item.range.begin, item.range.end), item.data));
                }
            }
        }
    }
    found
}
