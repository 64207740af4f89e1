//! Variables on stacks, out of the debug information of the functions that declare them.
//!
//! Nothing is read before somebody asks about a function: then the entries of its unit are looked through once, and those of
//! the function are kept. Only variables that stand at a fixed distance from a register of the frame ([`CallFrame`]) are
//! here; those in registers are never accessed by others, and arrays of variable length are left out.

use super::dwarf::{self, Reader, Slice, Unit};
use super::heap::TypeIndex;
use super::types::{Part, TypeId, Types};
use gimli::{AttributeValue, EndianSlice, LittleEndian, Operation, UnitOffset};
use portent_runtime::log::CallFrame;
use portent_trace::short_function;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// Addresses from the first to before the second.
type Span = (u64, u64);
type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;

/// What was found out before, mostly by the number of a unit.
type Cache<K, T> = RefCell<FxHashMap<K, T>>;

/// The functions of a module, with what is on their frames.
pub(super) struct Locals {
    sections: gimli::DwarfSections<Vec<u8>>,
    /// Where each unit begins.
    units: Vec<usize>,
    /// Code of units, in order.
    spans: Vec<(Span, u32)>,
    /// Functions of a unit: their code, and their entry.
    indices: Cache<u32, Rc<[(Span, usize)]>>,
    known: Cache<(u32, usize), Option<Rc<FrameLayout>>>,
    types: Cache<u32, Rc<TypeIndex>>,
    lambdas: Cache<u32, Rc<FxHashMap<usize, String>>>,
    globals: Cache<u32, Rc<NameIndex>>,
}

/// Where something of a name is.
pub(super) type NameIndex = FxHashMap<String, usize>;

/// What is on the frame of a function.
#[derive(Debug)]
pub struct FrameLayout {
    code: Vec<Span>,
    variables: Vec<Variable>,
    types: Types,
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
    /// Whether it is an integer with a sign.
    pub signed: bool,
}

impl FrameLayout {
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
        let Part { path, offset, signed } = self.types.part(ty, offset, len);
        LocalPart { path, offset, signed }
    }

    /// Which part of a variable a lock or the like at an offset is.
    pub fn object(&self, number: u32, offset: u64) -> LocalPart {
        let ty = self.variables.get(number as usize).and_then(|variable| variable.ty);
        match ty.and_then(|ty| self.types.object(ty, offset)) {
            Some(path) => LocalPart { path, ..LocalPart::default() },
            None => self.part(number, offset, 1),
        }
    }
}

impl Variable {
    fn end(&self, place: &Place) -> i64 {
        place.offset.saturating_add_unsigned(self.size)
    }
    fn start(&self, frame: CallFrame, pc: u64, inside: bool) -> Option<u64> {
        let valid = |place: &&Place| inside && (place.code == (0, 0) || contains(&[place.code], pc));
        let place = self.places.iter().find(valid).or(self.places.first())?;
        Some(place.base.address(frame)?.wrapping_add(place.offset as u64))
    }
}

fn contains(spans: &[Span], pc: u64) -> bool {
    spans.iter().any(|&(from, to)| (from..to).contains(&pc))
}

impl Locals {
    /// The functions of a file; none if it cannot be read.
    pub(super) fn of(path: &Path) -> Option<Locals> {
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let sections = dwarf::sections(&file).ok()?;
        let (mut units, mut spans) = (Vec::new(), Vec::new());
        {
            let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                let Some(start) = header.debug_info_offset() else { continue };
                let Ok(unit) = dwarf.unit(header) else { continue };
                let number = units.len() as u32;
                units.push(start.0);
                let Ok(mut ranges) = dwarf.unit_ranges(&unit) else { continue };
                while let Ok(Some(range)) = ranges.next() {
                    spans.push(((range.begin, range.end), number));
                }
            }
        }
        spans.sort_unstable();
        let (indices, known, types, lambdas, globals) = Default::default();
        Some(Locals { sections, units, spans, indices, known, types, lambdas, globals })
    }

    /// What is on the frame of the function that contains `pc`, by the addresses of the file.
    pub(super) fn frame(&self, pc: u64) -> Option<Rc<FrameLayout>> {
        let number = self.unit_of(pc)?;
        let dwarf = self.sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        let offset = self.function(&dwarf, number, pc)?;
        let key = (number, offset);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let unit = self.unit(&dwarf, number)?;
        let start = self.units[number as usize];
        let layout = read_frame(&dwarf, start, unit, UnitOffset(offset)).map(Rc::new);
        self.known.borrow_mut().insert(key, layout.clone());
        layout
    }

    fn unit_of(&self, pc: u64) -> Option<u32> {
        let after = self.spans.partition_point(|((from, _), _)| *from <= pc);
        let &(span, number) = self.spans.get(after.checked_sub(1)?)?;
        contains(&[span], pc).then_some(number)
    }

    /// Gives somebody the unit that contains `pc`, as the only one of a list with where each begins, and its number here.
    pub(super) fn with_unit<T>(
        &self,
        pc: u64,
        ask: impl for<'a> FnOnce(&'a gimli::Dwarf<Slice<'a>>, &'a [(usize, Unit<'a>)], u32) -> Option<T>,
    ) -> Option<T> {
        let number = self.unit_of(pc)?;
        let dwarf = self.sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        let units = [(self.units[number as usize], self.unit(&dwarf, number)?)];
        ask(&dwarf, &units, number)
    }

    /// The entry of the function of a unit that contains `pc`.
    pub(super) fn function(&self, dwarf: &gimli::Dwarf<Slice<'_>>, number: u32, pc: u64) -> Option<usize> {
        let index = self.index(dwarf, number)?;
        index.iter().find(|(span, _)| contains(&[*span], pc)).map(|&(_, offset)| offset)
    }

    /// The named types of a unit.
    pub(super) fn types(&self, dwarf: &gimli::Dwarf<Slice<'_>>, unit: &Unit<'_>, number: u32) -> Rc<TypeIndex> {
        if let Some(known) = self.types.borrow().get(&number) {
            return Rc::clone(known);
        }
        let found = Rc::new(named_types(dwarf, unit));
        self.types.borrow_mut().insert(number, Rc::clone(&found));
        found
    }

    /// The variables of a unit that no function has, by name.
    pub(super) fn globals(&self, dwarf: &gimli::Dwarf<Slice<'_>>, unit: &Unit<'_>, number: u32) -> Rc<NameIndex> {
        if let Some(known) = self.globals.borrow().get(&number) {
            return Rc::clone(known);
        }
        let (reader, mut found) = (Reader::new(dwarf), NameIndex::default());
        let mut cursor = unit.entries();
        while let Ok(Some(entry)) = cursor.next_dfs() {
            if entry.tag() == gimli::DW_TAG_variable
                && entry.depth() <= 2
                && let Some(name) = reader.own_or_origin_name(unit, entry)
            {
                found.entry(name).or_insert(entry.offset().0);
            }
        }
        let found = Rc::new(found);
        self.globals.borrow_mut().insert(number, Rc::clone(&found));
        found
    }

    /// What the functions are called that were inlined at `pc`, the innermost first, as far as they are lambdas: debug
    /// information gives the operator that calls one no more than that name.
    pub(super) fn inlined_lambdas(&self, pc: u64) -> Vec<Option<String>> {
        let found = self.with_unit(pc, |dwarf, units, number| {
            let unit = &units[0].1;
            let mut cursor = unit.entries_at_offset(UnitOffset(self.function(dwarf, number, pc)?)).ok()?;
            let top = cursor.next_dfs().ok()??.depth();
            let lambdas = self.lambdas(dwarf, unit, number);
            let mut chain = Vec::new();
            while let Ok(Some(entry)) = cursor.next_dfs() {
                if entry.depth() <= top {
                    break;
                }
                let inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
                if inlined && contains(&code_of(dwarf, unit, entry), pc) {
                    chain.push(operator_of(unit, entry, &lambdas));
                }
            }
            chain.reverse();
            Some(chain)
        });
        found.unwrap_or_default()
    }

    /// The names of a unit's lambdas, by where the operators that call them are declared.
    fn lambdas(&self, dwarf: &gimli::Dwarf<Slice<'_>>, unit: &Unit<'_>, number: u32) -> Rc<FxHashMap<usize, String>> {
        if let Some(known) = self.lambdas.borrow().get(&number) {
            return Rc::clone(known);
        }
        let found = Rc::new(named_lambdas(dwarf, unit));
        self.lambdas.borrow_mut().insert(number, Rc::clone(&found));
        found
    }

    fn unit<'a>(&self, dwarf: &gimli::Dwarf<Slice<'a>>, number: u32) -> Option<Unit<'a>> {
        let start = *self.units.get(number as usize)?;
        let header = dwarf.debug_info.header_from_offset(gimli::DebugInfoOffset(start)).ok()?;
        dwarf.unit(header).ok()
    }

    /// The functions of a unit.
    fn index(&self, dwarf: &gimli::Dwarf<Slice<'_>>, number: u32) -> Option<Rc<[(Span, usize)]>> {
        if let Some(known) = self.indices.borrow().get(&number) {
            return Some(Rc::clone(known));
        }
        let unit = self.unit(dwarf, number)?;
        let mut found = Vec::new();
        let mut cursor = unit.entries();
        // What was read before the damage is right.
        while let Ok(Some(entry)) = cursor.next_dfs() {
            if entry.tag() == gimli::DW_TAG_subprogram {
                found.extend(code_of(dwarf, &unit, entry).into_iter().map(|span| (span, entry.offset().0)));
            }
        }
        let found: Rc<[(Span, usize)]> = found.into();
        self.indices.borrow_mut().insert(number, Rc::clone(&found));
        Some(found)
    }
}

/// The lambda whose operator an inlined copy is.
fn operator_of(unit: &Unit<'_>, entry: &Entry<'_>, lambdas: &FxHashMap<usize, String>) -> Option<String> {
    let mut at = dwarf::referred(entry)?;
    // The copy refers to the abstract function, and that to its declaration in the class.
    for _ in 0..4 {
        if let Some(name) = lambdas.get(&at.0) {
            return Some(name.clone());
        }
        at = dwarf::referred(&unit.entry(at).ok()?)?;
    }
    None
}

/// The operators of the classes that stand for lambdas, with the names that symbols give them: numbered in the order of the
/// source, those with the same parameters in one function from 1. Such a class has no name, and lies in a function.
fn named_lambdas(dwarf: &gimli::Dwarf<Slice<'_>>, unit: &Unit<'_>) -> FxHashMap<usize, String> {
    let reader = Reader::new(dwarf);
    // Functions and nameless classes around what is being read.
    let mut scopes: Vec<(isize, Option<String>)> = Vec::new();
    // Function, parameters, line and column, operator.
    let mut found: Vec<(String, String, (u64, u64), usize)> = Vec::new();
    let mut cursor = unit.entries();
    while let Ok(Some(entry)) = cursor.next_dfs() {
        let depth = entry.depth();
        while scopes.last().is_some_and(|(open, _)| *open >= depth) {
            scopes.pop();
        }
        match entry.tag() {
            gimli::DW_TAG_subprogram => {
                let in_lambda = matches!(scopes.last(), Some((open, None)) if *open == depth - 1);
                if in_lambda && reader.name(unit, entry).as_deref() == Some("operator()") {
                    let around = scopes.iter().rev().find_map(|(_, function)| function.clone()).unwrap_or_default();
                    let number = |at| entry.attr_value(at).and_then(|value| value.udata_value()).unwrap_or(0);
                    let at = (number(gimli::DW_AT_decl_line), number(gimli::DW_AT_decl_column));
                    found.push((around, parameters(&reader, unit, entry), at, entry.offset().0));
                } else {
                    scopes.push((depth, Some(function_name(&reader, unit, entry).unwrap_or_default())));
                }
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type
                if !scopes.is_empty() && !entry.has_attr(gimli::DW_AT_name) =>
            {
                scopes.push((depth, None));
            }
            _ => {}
        }
    }
    found.sort();
    let mut names = FxHashMap::default();
    for same in found.chunk_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1)) {
        for (at, (function, parameters, _, operator)) in same.iter().enumerate() {
            let lambda = format!("{function}::{{lambda({parameters})#{}}}", at + 1);
            names.insert(*operator, format!("{lambda}::operator()({parameters}) const"));
        }
    }
    names
}

/// The types of a function's parameters, but for the object that it is called on.
fn parameters<'a>(reader: &Reader<'a>, unit: &Unit<'a>, function: &Entry<'a>) -> String {
    let of_function = dwarf::children(unit, function).into_iter();
    let given = of_function
        .filter(|child| child.tag() == gimli::DW_TAG_formal_parameter && !child.has_attr(gimli::DW_AT_artificial));
    given.map(|child| type_text(reader, unit, &child, 8)).collect::<Vec<_>>().join(", ")
}

/// What the type of something is called.
fn type_text<'a>(reader: &Reader<'a>, unit: &Unit<'a>, entry: &Entry<'a>, depth: u32) -> String {
    let ty = match entry.attr_value(gimli::DW_AT_type) {
        Some(AttributeValue::UnitRef(offset)) if depth > 0 => unit.entry(offset).ok(),
        _ => None,
    };
    let Some(ty) = ty else { return "void".to_owned() };
    let inner = || type_text(reader, unit, &ty, depth - 1);
    match ty.tag() {
        gimli::DW_TAG_pointer_type => inner() + "*",
        gimli::DW_TAG_reference_type => inner() + "&",
        gimli::DW_TAG_rvalue_reference_type => inner() + "&&",
        gimli::DW_TAG_const_type => inner() + " const",
        _ => reader.name(unit, &ty).unwrap_or_else(|| "?".to_owned()),
    }
}

/// Types that have a name and a size, by the last part of the name.
fn named_types(dwarf: &gimli::Dwarf<Slice<'_>>, unit: &Unit<'_>) -> TypeIndex {
    let reader = Reader::new(dwarf);
    let mut found = TypeIndex::default();
    let mut scopes: Vec<(isize, String)> = Vec::new();
    let mut cursor = unit.entries();
    while let Ok(Some(entry)) = cursor.next_dfs() {
        let depth = entry.depth();
        while scopes.last().is_some_and(|(open, _)| *open >= depth) {
            scopes.pop();
        }
        let is_scope = match entry.tag() {
            gimli::DW_TAG_namespace => true,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => true,
            gimli::DW_TAG_base_type | gimli::DW_TAG_typedef | gimli::DW_TAG_enumeration_type => false,
            _ => continue,
        };
        let Some(name) = reader.name(unit, entry) else { continue };
        let scope: String = scopes.iter().map(|(_, scope)| format!("{scope}::")).collect();
        let size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|size| size.udata_value());
        // A typedef has the size of what it names, which is found out when it is asked for.
        let size = if entry.tag() == gimli::DW_TAG_typedef { Some(1) } else { size };
        if let Some(size) = size.filter(|_| !entry.has_attr(gimli::DW_AT_declaration)) {
            found.entry(name.clone()).or_default().push((entry.offset().0, size, format!("{scope}{name}")));
        }
        if is_scope {
            scopes.push((depth, name));
        }
    }
    found
}

/// The code of a function or block.
fn code_of<'a>(dwarf: &gimli::Dwarf<Slice<'a>>, unit: &Unit<'a>, entry: &Entry<'a>) -> Vec<Span> {
    let mut spans = Vec::new();
    if let Ok(mut ranges) = dwarf.die_ranges(unit, entry) {
        while let Ok(Some(range)) = ranges.next() {
            if range.begin < range.end && range.begin != 0 {
                spans.push((range.begin, range.end));
            }
        }
    }
    spans
}

/// A block, or a function that was inlined, around what is being read.
struct Scope {
    depth: isize,
    code: Vec<Span>,
    function: Option<String>,
}

fn read_frame<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    start: usize,
    unit: Unit<'a>,
    function: UnitOffset,
) -> Option<FrameLayout> {
    let units = [(start, unit)];
    let unit = &units[0].1;
    let mut reader = Reader::new(dwarf);
    let mut cursor = unit.entries_at_offset(function).ok()?;
    let entry = cursor.next_dfs().ok()??;
    let frame_base = frame_base(unit, entry);
    let top = entry.depth();
    let code = code_of(dwarf, unit, entry);
    let mut scopes: Vec<Scope> = Vec::new();
    let mut variables = Vec::new();
    while let Ok(Some(entry)) = cursor.next_dfs() {
        let depth = entry.depth();
        if depth <= top {
            break;
        }
        while scopes.last().is_some_and(|scope| scope.depth >= depth) {
            scopes.pop();
        }
        match entry.tag() {
            gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine => {
                let is_inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
                let around = scopes.last().and_then(|scope| scope.function.clone());
                let function = if is_inlined { function_name(&reader, unit, entry) } else { around };
                scopes.push(Scope { depth, code: code_of(dwarf, unit, entry), function });
            }
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                let places = places(dwarf, unit, entry, frame_base);
                if places.is_empty() {
                    continue;
                }
                let Some(name) = reader.own_or_origin_name(unit, entry) else { continue };
                let ty = reader.variable_type(&units, 0, entry);
                let size = ty.map_or(0, |ty| reader.types.get(ty).size).max(1);
                let inner = scopes.last();
                let scope = inner.map(|scope| scope.code.clone()).unwrap_or_default();
                let function = inner.and_then(|scope| scope.function.clone());
                variables.push(Variable {
                    name,
                    function,
                    places,
                    size,
                    ty,
                    scope,
                    depth: scopes.len(),
                    shared: false,
                });
            }
            _ => {}
        }
    }
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
    Some(FrameLayout { code, variables, types: reader.types })
}

/// What a function is called, by the symbol that its declaration names.
fn function_name<'a>(reader: &Reader<'a>, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<String> {
    let mut entry = entry.clone();
    let mut name = None;
    // An inlined copy refers to the abstract function, and that to its declaration in a class.
    for _ in 0..4 {
        let linkage = entry.attr_value(gimli::DW_AT_linkage_name).and_then(|value| reader.text(unit, value));
        if let Some(symbol) = linkage {
            return Some(short_function(&addr2line::demangle_auto(symbol.into(), None)));
        }
        name = name.or_else(|| reader.name(unit, &entry));
        let Some(next) = dwarf::referred(&entry).and_then(|offset| unit.entry(offset).ok()) else { break };
        entry = next;
    }
    name
}

/// What the places of a function's variables are counted from.
fn frame_base(unit: &Unit<'_>, entry: &Entry<'_>) -> Option<Base> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_frame_base)? else { return None };
    match single(unit, expression)? {
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

/// The operation of an expression that has only one.
fn single<'a>(unit: &Unit<'a>, expression: gimli::Expression<Slice<'a>>) -> Option<Operation<Slice<'a>>> {
    let mut operations = expression.operations(unit.encoding());
    let first = operations.next().ok()??;
    operations.next().ok()?.is_none().then_some(first)
}

/// Where a variable is, as far as that is on the frame.
fn places<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    unit: &Unit<'a>,
    entry: &Entry<'a>,
    frame_base: Option<Base>,
) -> Vec<Place> {
    let place = |code, expression| {
        let (base, offset) = match single(unit, expression)? {
            Operation::FrameOffset { offset } => (frame_base?, offset),
            Operation::RegisterOffset { register, offset, .. } => (of_register(register)?, offset),
            _ => return None,
        };
        Some(Place { code, base, offset })
    };
    let mut found = Vec::new();
    match entry.attr_value(gimli::DW_AT_location) {
        None => {}
        Some(AttributeValue::Exprloc(expression)) => found.extend(place((0, 0), expression)),
        Some(value) => {
            if let Ok(Some(mut list)) = dwarf.attr_locations(unit, value) {
                while let Ok(Some(item)) = list.next() {
                    found.extend(place((item.range.begin, item.range.end), item.data));
                }
            }
        }
    }
    found
}
