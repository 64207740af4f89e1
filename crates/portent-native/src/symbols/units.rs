//! The debug information of a file, unit by unit.
//!
//! A large program has a hundred megabytes of it, and a report needs a few kilobytes. So the file is mapped, not read; which
//! unit holds an address is told by a table (`.debug_aranges`), or else by the first entry of each unit; and a unit is looked
//! into when somebody asks about an address in it, in passes that read the attributes of only those entries that they are
//! for. What was found out is kept with the unit.
//!
//! Damaged information is used as far as it goes: what was read before the damage is right. Split debug information (`.dwo`)
//! is not looked for; symbols then have to do.

use super::lambdas;
use super::read_types::TypeReader;
use gimli::{AttributeValue, EndianSlice, LittleEndian, UnitOffset};
use object::{Object as _, ObjectSection as _};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

pub(super) type Slice = EndianSlice<'static, LittleEndian>;
pub(super) type Unit = gimli::Unit<Slice>;
pub(super) type Entry = gimli::DebuggingInformationEntry<Slice>;
pub(super) type Value = AttributeValue<Slice>;

/// Addresses from the first to before the second.
pub(super) type Span = (u64, u64);

/// An entry: the number of its unit, and where in the unit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct EntryAt {
    pub(super) unit: u32,
    pub(super) offset: usize,
}

/// Entries by a name; what it is apart from the scopes around it.
pub(super) type NameIndex = FxHashMap<&'static [u8], Vec<usize>>;

/// The debug information of a file.
pub(super) struct Debug {
    pub(super) dwarf: gimli::Dwarf<Slice>,
    units: Vec<LazyUnit>,
    /// Code of units, in order.
    spans: OnceCell<Vec<(Span, u32)>>,
    /// All types that anybody has needed.
    pub(super) types: RefCell<TypeReader>,
}

/// A unit, and what was found out about it.
struct LazyUnit {
    header: gimli::UnitHeader<Slice>,
    start: usize,
    unit: OnceCell<Option<Unit>>,
    functions: OnceCell<Vec<(Span, usize)>>,
    scopes: OnceCell<Vec<(usize, usize)>>,
    types: OnceCell<NameIndex>,
    globals: OnceCell<NameIndex>,
    lambdas: OnceCell<FxHashMap<usize, String>>,
}

impl LazyUnit {
    fn new(header: gimli::UnitHeader<Slice>, start: usize) -> LazyUnit {
        let (unit, functions, scopes, types, globals, lambdas) = Default::default();
        LazyUnit { header, start, unit, functions, scopes, types, globals, lambdas }
    }
}

impl Debug {
    /// The debug information of a file; none if it has none.
    pub(super) fn of(file: &object::File<'static>) -> Option<Debug> {
        let load = |id: gimli::SectionId| -> Result<Slice, gimli::Error> {
            let section = file.section_by_name(id.name());
            let bytes = match section.and_then(|section| section.uncompressed_data().ok()) {
                Some(Cow::Borrowed(bytes)) => bytes,
                // Kept like the file that it comes from.
                Some(Cow::Owned(bytes)) => Vec::leak(bytes),
                None => &[],
            };
            Ok(EndianSlice::new(bytes, LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.debug_info_offset() else { continue };
            units.push(LazyUnit::new(header, start.0));
        }
        let some = !units.is_empty();
        some.then(|| Debug { dwarf, units, spans: OnceCell::new(), types: RefCell::default() })
    }

    /// A unit, read as far as its first entry.
    pub(super) fn unit(&self, number: u32) -> Option<&Unit> {
        let lazy = self.units.get(number as usize)?;
        lazy.unit.get_or_init(|| self.dwarf.unit(lazy.header).ok()).as_ref()
    }

    pub(super) fn entry(&self, at: EntryAt) -> Option<Entry> {
        self.unit(at.unit)?.entry(UnitOffset(at.offset)).ok()
    }

    /// The unit whose code contains an address.
    pub(super) fn unit_of(&self, pc: u64) -> Option<u32> {
        let spans = self.spans.get_or_init(|| self.read_spans());
        let after = spans.partition_point(|((from, _), _)| *from <= pc);
        let &(span, number) = spans.get(after.checked_sub(1)?)?;
        contains(&[span], pc).then_some(number)
    }

    fn read_spans(&self) -> Vec<(Span, u32)> {
        let mut spans = Vec::new();
        let mut told = vec![false; self.units.len()];
        let mut headers = self.dwarf.debug_aranges.headers();
        while let Ok(Some(header)) = headers.next() {
            let start = header.debug_info_offset().0;
            let Ok(number) = self.units.binary_search_by_key(&start, |unit| unit.start) else { continue };
            let mut entries = header.entries();
            while let Ok(Some(entry)) = entries.next() {
                let range = entry.range();
                spans.push(((range.begin, range.end), number as u32));
                told[number] = true;
            }
        }
        for number in (0..self.units.len()).filter(|&number| !told[number]) {
            let Some(unit) = self.unit(number as u32) else { continue };
            let Ok(mut ranges) = self.dwarf.unit_ranges(unit) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                spans.push(((range.begin, range.end), number as u32));
            }
        }
        // What the linker threw away lies at the beginning of all addresses.
        spans.retain(|((from, to), _)| *from != 0 && from < to);
        spans.sort_unstable();
        spans
    }

    /// The function that contains an address.
    pub(super) fn function(&self, pc: u64) -> Option<EntryAt> {
        let unit = self.unit_of(pc)?;
        let functions = self.units[unit as usize].functions.get_or_init(|| self.read_functions(unit));
        let after = functions.partition_point(|((from, _), _)| *from <= pc);
        let &(span, offset) = functions.get(after.checked_sub(1)?)?;
        contains(&[span], pc).then_some(EntryAt { unit, offset })
    }

    fn read_functions(&self, number: u32) -> Vec<(Span, usize)> {
        let mut found = Vec::new();
        let Some(unit) = self.unit(number) else { return found };
        walk(unit, None, |met| {
            if met.tag() == gimli::DW_TAG_subprogram
                && (met.has(gimli::DW_AT_low_pc) || met.has(gimli::DW_AT_ranges))
                && let Ok(entry) = unit.entry(UnitOffset(met.offset))
            {
                found.extend(self.code_of(unit, &entry).into_iter().map(|span| (span, met.offset)));
            }
            if is_class(met.tag()) { Next::Behind } else { Next::Inside }
        });
        found.sort_unstable();
        found
    }

    /// The code of a function or block.
    pub(super) fn code_of(&self, unit: &Unit, entry: &Entry) -> Vec<Span> {
        let mut spans = Vec::new();
        if let Ok(mut ranges) = self.dwarf.die_ranges(unit, entry) {
            while let Ok(Some(range)) = ranges.next() {
                if range.begin < range.end && range.begin != 0 {
                    spans.push((range.begin, range.end));
                }
            }
        }
        spans
    }

    /// The namespace, class or function around an entry that has a name; none for what is in the file itself.
    pub(super) fn scope_around(&self, at: EntryAt) -> Option<EntryAt> {
        let scopes = self.units.get(at.unit as usize)?.scopes.get_or_init(|| self.read_scopes(at.unit));
        let found = scopes.binary_search_by_key(&at.offset, |(offset, _)| *offset).ok()?;
        Some(EntryAt { offset: scopes[found].1, ..at })
    }

    /// What is in a scope, by where it is; each with its scope.
    fn read_scopes(&self, number: u32) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let Some(unit) = self.unit(number) else { return found };
        let mut open: Vec<(isize, usize)> = Vec::new();
        walk(unit, None, |met| {
            while open.last().is_some_and(|(depth, _)| *depth >= met.depth) {
                open.pop();
            }
            let is_scope =
                is_class(met.tag()) || matches!(met.tag(), gimli::DW_TAG_namespace | gimli::DW_TAG_subprogram);
            if met.has(gimli::DW_AT_name) || is_scope || met.tag() == gimli::DW_TAG_variable {
                found.extend(open.last().map(|(_, scope)| (met.offset, *scope)));
            }
            if is_scope {
                open.push((met.depth, met.offset));
            }
            Next::Inside
        });
        found
    }

    /// The types of a unit that have a name, by the last part of it.
    pub(super) fn named_types(&self, number: u32) -> Option<&NameIndex> {
        let read = || {
            self.read_names(number, |met| {
                let has_size = met.has(gimli::DW_AT_byte_size) || met.tag() == gimli::DW_TAG_typedef;
                let is_type = is_class(met.tag())
                    || matches!(
                        met.tag(),
                        gimli::DW_TAG_base_type | gimli::DW_TAG_typedef | gimli::DW_TAG_enumeration_type
                    );
                is_type && has_size && !met.has(gimli::DW_AT_declaration)
            })
        };
        Some(self.units.get(number as usize)?.types.get_or_init(read))
    }

    /// The variables of a unit that no function has, by name.
    pub(super) fn named_globals(&self, number: u32) -> Option<&NameIndex> {
        let read = || self.read_names(number, |met| met.tag() == gimli::DW_TAG_variable && met.depth <= 2);
        Some(self.units.get(number as usize)?.globals.get_or_init(read))
    }

    fn read_names(&self, number: u32, wanted: impl Fn(&Met<'_>) -> bool) -> NameIndex {
        let mut found = NameIndex::default();
        let Some(unit) = self.unit(number) else { return found };
        walk(unit, None, |met| {
            if wanted(met)
                && met.has(gimli::DW_AT_name)
                && let Ok(entry) = unit.entry(UnitOffset(met.offset))
                && let Some(name) = entry.attr_value(gimli::DW_AT_name)
                && let Ok(name) = self.dwarf.attr_string(unit, name)
            {
                found.entry(name.slice()).or_default().push(met.offset);
            }
            Next::Inside
        });
        found
    }

    /// The names of a unit's lambdas, by where the operators that call them are declared.
    pub(super) fn lambdas(&self, number: u32) -> Option<&FxHashMap<usize, String>> {
        let lazy = self.units.get(number as usize)?;
        Some(lazy.lambdas.get_or_init(|| lambdas::of_unit(self, number)))
    }

    /// The entry that an attribute of a unit's entry refers to.
    pub(super) fn referred(&self, unit: u32, value: Value) -> Option<EntryAt> {
        match value {
            AttributeValue::UnitRef(offset) => Some(EntryAt { unit, offset: offset.0 }),
            AttributeValue::DebugInfoRef(offset) => {
                let number = self.units.partition_point(|unit| unit.start <= offset.0).checked_sub(1)?;
                Some(EntryAt { unit: number as u32, offset: offset.0 - self.units[number].start })
            }
            _ => None,
        }
    }

    /// The entry that declares what this one defines, or that this one is a copy of.
    pub(super) fn origin(&self, unit: u32, entry: &Entry) -> Option<EntryAt> {
        let value = entry.attr_value(gimli::DW_AT_specification);
        self.referred(unit, value.or_else(|| entry.attr_value(gimli::DW_AT_abstract_origin))?)
    }

    /// An attribute of an entry, or of those that it is a copy of; with the number of the unit that has it.
    pub(super) fn inherited(&self, at: EntryAt, name: gimli::DwAt) -> Option<(u32, Value)> {
        let (mut at, mut entry) = (at, self.entry(at)?);
        // A copy refers to the abstract function, and that to its declaration in a class.
        for _ in 0..4 {
            if let Some(value) = entry.attr_value(name) {
                return Some((at.unit, value));
            }
            at = self.origin(at.unit, &entry)?;
            entry = self.entry(at)?;
        }
        None
    }

    /// Every variable with a fixed address.
    ///
    /// This alone looks at entries of all units, because nothing else says which unit defines a variable; it reads no
    /// attributes but those of variables, and goes past classes where the compiler says where they end.
    pub(super) fn fixed_variables(&self) -> Vec<Fixed> {
        let mut found = Vec::new();
        for (number, lazy) in self.units.iter().enumerate() {
            let parsed;
            let abbreviations = match lazy.unit.get() {
                Some(Some(unit)) => &unit.abbreviations,
                _ => match self.dwarf.abbreviations(&lazy.header) {
                    Ok(read) => {
                        parsed = read;
                        &parsed
                    }
                    Err(_) => continue,
                },
            };
            let raw = |offset: Option<usize>| lazy.header.entries_raw(abbreviations, offset.map(UnitOffset));
            walk_raw(raw, None, |met| {
                if matches!(met.tag(), gimli::DW_TAG_variable | gimli::DW_TAG_member)
                    && met.has(gimli::DW_AT_location)
                    && let Ok(entry) = lazy.header.entry(abbreviations, UnitOffset(met.offset))
                {
                    let at = EntryAt { unit: number as u32, offset: met.offset };
                    self.fixed_pieces(at, &entry, &mut found);
                }
                let holds_none = is_class(met.tag()) || met.has(gimli::DW_AT_declaration);
                if holds_none { Next::Behind } else { Next::Inside }
            });
        }
        found
    }

    /// Where a variable is. clang takes variables of a file to pieces, of which it leaves out those that nobody uses.
    fn fixed_pieces(&self, at: EntryAt, entry: &Entry, found: &mut Vec<Fixed>) {
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location) else { return };
        let mut operations = expression.operations(self.units[at.unit as usize].header.encoding());
        let (mut address, mut inside, mut pieces) = (None, 0_u64, Vec::new());
        while let Ok(Some(operation)) = operations.next() {
            match operation {
                gimli::Operation::Address { address: known } if address.is_none() => address = Some(known),
                gimli::Operation::AddressIndex { index } if address.is_none() => {
                    address = self.unit(at.unit).and_then(|unit| self.dwarf.address(unit, index).ok());
                }
                gimli::Operation::Piece { size_in_bits, bit_offset: None } if size_in_bits % 8 == 0 => {
                    let size = size_in_bits / 8;
                    pieces.extend(address.take().map(|address| Fixed { address, at, inside, size: Some(size) }));
                    inside = inside.saturating_add(size);
                }
                // What is computed from an address is no place.
                _ => return,
            }
        }
        pieces.extend(address.filter(|_| inside == 0).map(|address| Fixed { address, at, inside, size: None }));
        found.append(&mut pieces);
    }
}

/// A variable with a fixed address, or a piece of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    pub(super) address: u64,
    pub(super) at: EntryAt,
    /// Where in the variable the piece begins.
    pub(super) inside: u64,
    /// How large the piece is; of a whole variable, its type says that.
    pub(super) size: Option<u64>,
}

/// The operation of an expression that has only one.
pub(super) fn single(
    encoding: gimli::Encoding,
    expression: gimli::Expression<Slice>,
) -> Option<gimli::Operation<Slice>> {
    let mut operations = expression.operations(encoding);
    let first = operations.next().ok()??;
    operations.next().ok()?.is_none().then_some(first)
}

pub(super) fn contains(spans: &[Span], pc: u64) -> bool {
    spans.iter().any(|&(from, to)| (from..to).contains(&pc))
}

pub(super) fn is_class(tag: gimli::DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type)
}

/// An entry that a walk comes by, of which no attribute has been read.
pub(super) struct Met<'a> {
    pub(super) offset: usize,
    pub(super) depth: isize,
    abbreviation: &'a gimli::Abbreviation,
}

impl Met<'_> {
    pub(super) fn tag(&self) -> gimli::DwTag {
        self.abbreviation.tag()
    }
    pub(super) fn has(&self, attribute: gimli::DwAt) -> bool {
        self.abbreviation.attributes().iter().any(|one| one.name() == attribute)
    }
}

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Inside,
    /// Behind everything that is inside, if the compiler says where that is.
    Behind,
    Stop,
}

/// Goes through the entries of a unit, from its first one or from another, in which case it goes on behind what is inside
/// that one.
pub(super) fn walk(unit: &Unit, from: Option<usize>, visit: impl FnMut(&Met<'_>) -> Next) {
    walk_raw(|offset| unit.entries_raw(offset.map(UnitOffset)), from, visit);
}

fn walk_raw<'a>(
    raw_at: impl Fn(Option<usize>) -> gimli::Result<gimli::EntriesRaw<'a, Slice>>,
    from: Option<usize>,
    mut visit: impl FnMut(&Met<'_>) -> Next,
) {
    let Ok(mut raw) = raw_at(from) else { return };
    let mut around = 0;
    while !raw.is_empty() {
        let (offset, depth) = (raw.next_offset().0, around + raw.next_depth());
        let Ok(abbreviation) = raw.read_abbreviation() else { return };
        let Some(abbreviation) = abbreviation else { continue };
        let next = visit(&Met { offset, depth, abbreviation });
        let mut behind = None;
        match next {
            Next::Stop => return,
            Next::Behind if abbreviation.has_children() => {
                for &attribute in abbreviation.attributes() {
                    let Ok(read) = raw.read_attribute(attribute) else { return };
                    if let (gimli::DW_AT_sibling, AttributeValue::UnitRef(at)) = (read.name(), read.value()) {
                        behind = Some(at.0);
                    }
                }
            }
            _ => {
                if raw.skip_attributes(abbreviation.attributes()).is_err() {
                    return;
                }
            }
        }
        if let Some(behind) = behind.filter(|&behind| behind > offset) {
            let Ok(there) = raw_at(Some(behind)) else { return };
            (raw, around) = (there, depth);
        }
    }
}

/// The entries directly below one.
pub(super) fn children(unit: &Unit, at: usize) -> Vec<Entry> {
    let mut found = Vec::new();
    walk(unit, Some(at), |met| match met.depth {
        0 if met.offset == at => Next::Inside,
        1 => {
            found.extend(unit.entry(UnitOffset(met.offset)).ok());
            Next::Behind
        }
        depth if depth <= 0 => Next::Stop,
        _ => Next::Inside,
    });
    found
}
