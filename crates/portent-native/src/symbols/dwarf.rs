//! Global variables and their types, out of debug information.
//!
//! Damaged information is used as far as it goes: a unit that cannot be read is left out. Split debug information (`.dwo`)
//! is not looked for; symbols then have to do.

use super::globals::Variable;
use super::types::{Member, Shape, Type, TypeId, Types};
use gimli::{AttributeValue, DebuggingInformationEntry, EndianSlice, LittleEndian, Operation, UnitOffset};
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;
pub(super) type Unit<'a> = gimli::Unit<Slice<'a>>;

/// All variables with a fixed address, and the types they need.
pub(super) fn variables(file: &object::File<'_>) -> (Vec<Variable>, Types) {
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let section = file.section_by_name(id.name());
        Ok(section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default())
    };
    let Ok(sections) = gimli::DwarfSections::load(load) else { return Default::default() };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut reader = Reader::new(&dwarf);
    // Where each unit starts, and the unit.
    let mut units = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let (Some(start), Ok(unit)) = (header.debug_info_offset(), dwarf.unit(header)) {
            units.push((start.0, unit));
        }
    }
    for number in 0..units.len() {
        // What was read before the damage is right.
        let _ = reader.unit(&units, number);
    }
    (reader.found, reader.types)
}

/// The debug information of a file, for those who do without the file.
pub(super) fn sections(file: &object::File<'_>) -> Result<gimli::DwarfSections<Vec<u8>>, gimli::Error> {
    gimli::DwarfSections::load(|id| {
        let section = file.section_by_name(id.name());
        Ok(section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default().into_owned())
    })
}

/// Reads names and types.
pub(super) struct Reader<'a> {
    dwarf: &'a gimli::Dwarf<Slice<'a>>,
    found: Vec<Variable>,
    pub(super) types: Types,
    /// Types met before, by unit and place.
    known: FxHashMap<(usize, usize), TypeId>,
}

/// Deeper nesting than this is not believed.
const DEPTH: u32 = 64;

impl<'a> Reader<'a> {
    pub(super) fn new(dwarf: &'a gimli::Dwarf<Slice<'a>>) -> Reader<'a> {
        Reader { dwarf, found: Vec::new(), types: Types::default(), known: FxHashMap::default() }
    }

    fn unit(&mut self, units: &[(usize, Unit<'a>)], number: usize) -> gimli::Result<()> {
        let unit = &units[number].1;
        let source = unit.name.map(|name| name.to_string_lossy().into_owned());
        let source = source.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
        // Names of the scopes around, with the depth of each.
        let mut scopes: Vec<(isize, String)> = Vec::new();
        // Qualified names of declarations, for definitions that stand elsewhere.
        let mut declared: FxHashMap<UnitOffset, String> = FxHashMap::default();
        let mut cursor = unit.entries();
        while let Some(entry) = cursor.next_dfs()? {
            let depth = entry.depth();
            while scopes.last().is_some_and(|(open, _)| *open >= depth) {
                scopes.pop();
            }
            match entry.tag() {
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => {
                    let anonymous =
                        || if entry.tag() == gimli::DW_TAG_namespace { "(anonymous)" } else { "" }.to_owned();
                    scopes.push((depth, self.name(unit, entry).unwrap_or_else(anonymous)));
                }
                gimli::DW_TAG_subprogram => {
                    let name = self.qualified_name(unit, entry, &scopes, &declared).unwrap_or_else(|| "?".into());
                    scopes.push((depth, format!("{name}()")));
                    if entry.has_attr(gimli::DW_AT_declaration) || entry.has_attr(gimli::DW_AT_inline) {
                        declared.insert(entry.offset(), name);
                    }
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_member => {
                    if let Some(address) = self.address(unit, entry) {
                        let Some(name) = self.qualified_name(unit, entry, &scopes, &declared) else { continue };
                        let ty = self.variable_type(units, number, entry);
                        let size = ty.map_or(0, |ty| self.types.get(ty).size);
                        let line = entry.attr_value(gimli::DW_AT_decl_line).and_then(|line| line.udata_value());
                        self.found.push(Variable { address, size, name, file: source.clone(), line, ty });
                    } else if (entry.has_attr(gimli::DW_AT_external) || entry.has_attr(gimli::DW_AT_declaration))
                        && let Some(name) = self.name(unit, entry)
                    {
                        declared.insert(entry.offset(), qualified(&scopes, &name));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The name of an entry, or of the one that it is a copy of.
    pub(super) fn own_or_origin_name(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<String> {
        self.name(unit, entry).or_else(|| self.name(unit, &unit.entry(referred(entry)?).ok()?))
    }

    pub(super) fn name(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<String> {
        self.text(unit, entry.attr_value(gimli::DW_AT_name)?)
    }

    pub(super) fn text(&self, unit: &Unit<'a>, value: AttributeValue<Slice<'a>>) -> Option<String> {
        self.dwarf.attr_string(unit, value).ok().map(|text| text.to_string_lossy().into_owned())
    }

    /// The name of a function or variable with the scopes around it, or around its declaration.
    fn qualified_name(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'a>,
        scopes: &[(isize, String)],
        declared: &FxHashMap<UnitOffset, String>,
    ) -> Option<String> {
        if let Some(name) = self.name(unit, entry) {
            return Some(qualified(scopes, &name));
        }
        let offset = referred(entry)?;
        if let Some(name) = declared.get(&offset) {
            return Some(name.clone());
        }
        // A copy of an inlined function, whose scopes are around the copy as well.
        Some(qualified(scopes, &self.name(unit, &unit.entry(offset).ok()?)?))
    }

    /// The fixed address of a variable.
    fn address(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<u64> {
        let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location)? else { return None };
        let mut operations = expression.operations(unit.encoding());
        let first = operations.next().ok()??;
        if operations.next().ok()?.is_some() {
            return None;
        }
        match first {
            Operation::Address { address } => Some(address),
            Operation::AddressIndex { index } => self.dwarf.address(unit, index).ok(),
            _ => None,
        }
    }

    /// The type of a variable, which may stand at its declaration.
    pub(super) fn variable_type(
        &mut self,
        units: &[(usize, Unit<'a>)],
        number: usize,
        entry: &Entry<'a>,
    ) -> Option<TypeId> {
        if let Some(value) = entry.attr_value(gimli::DW_AT_type) {
            return self.type_at(units, number, value, DEPTH);
        }
        let declaration = units[number].1.entry(referred(entry)?).ok()?;
        self.type_at(units, number, declaration.attr_value(gimli::DW_AT_type)?, DEPTH)
    }

    /// The type of an entry, or of the one that it is a copy of: where that stands.
    pub(super) fn own_or_origin_type(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> Option<AttributeValue<Slice<'a>>> {
        let own = entry.attr_value(gimli::DW_AT_type);
        own.or_else(|| unit.entry(referred(entry)?).ok()?.attr_value(gimli::DW_AT_type))
    }

    /// A type of the first of some units.
    pub(super) fn first_units_type(
        &mut self,
        units: &[(usize, Unit<'a>)],
        at: AttributeValue<Slice<'a>>,
    ) -> Option<TypeId> {
        self.type_at(units, 0, at, DEPTH)
    }

    fn type_at(
        &mut self,
        units: &[(usize, Unit<'a>)],
        number: usize,
        at: AttributeValue<Slice<'a>>,
        depth: u32,
    ) -> Option<TypeId> {
        let (number, offset) = match at {
            AttributeValue::UnitRef(offset) => (number, offset),
            AttributeValue::DebugInfoRef(offset) => {
                let number = units.partition_point(|(start, _)| *start <= offset.0).checked_sub(1)?;
                (number, UnitOffset(offset.0 - units[number].0))
            }
            _ => return None,
        };
        if let Some(&known) = self.known.get(&(number, offset.0)) {
            return Some(known);
        }
        let entry = units[number].1.entry(offset).ok()?;
        // First a place for it: a file in which types contain themselves comes to an end, too.
        let id = self.types.add(Type { size: 0, name: None, shape: Shape::Scalar { signed: false } });
        self.known.insert((number, offset.0), id);
        let ty = self.type_of(units, number, &entry, depth.checked_sub(1)?)?;
        self.types.set(id, ty);
        Some(id)
    }

    fn type_of(&mut self, units: &[(usize, Unit<'a>)], number: usize, entry: &Entry<'a>, depth: u32) -> Option<Type> {
        let unit = &units[number].1;
        let name = self.name(unit, entry);
        let own_size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|size| size.udata_value());
        let inner = |reader: &mut Self| {
            let at = entry.attr_value(gimli::DW_AT_type)?;
            reader.type_at(units, number, at, depth)
        };
        let (size, shape) = match entry.tag() {
            gimli::DW_TAG_base_type => {
                let encoding = entry.attr_value(gimli::DW_AT_encoding);
                let signed = matches!(
                    encoding,
                    Some(AttributeValue::Encoding(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char))
                );
                (own_size?, Shape::Scalar { signed })
            }
            gimli::DW_TAG_enumeration_type => match inner(self) {
                Some(id) => (own_size.unwrap_or(self.types.get(id).size), Shape::Alias(id)),
                None => (own_size?, Shape::Scalar { signed: false }),
            },
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
            | gimli::DW_TAG_ptr_to_member_type => (own_size.unwrap_or(8), Shape::Scalar { signed: false }),
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_restrict_type => {
                let id = inner(self)?;
                (self.types.get(id).size, Shape::Alias(id))
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                (own_size.unwrap_or(0), Shape::Record(self.members(units, number, entry, depth)))
            }
            gimli::DW_TAG_array_type => {
                let element = inner(self)?;
                return Some(self.array(unit, entry, element, own_size, name));
            }
            _ => (own_size?, Shape::Scalar { signed: false }),
        };
        Some(Type { size, name, shape })
    }

    fn members(&mut self, units: &[(usize, Unit<'a>)], number: usize, entry: &Entry<'a>, depth: u32) -> Vec<Member> {
        let unit = &units[number].1;
        let mut members = Vec::new();
        for child in children(unit, entry) {
            let is_member = matches!(child.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance);
            let is_bits = child.has_attr(gimli::DW_AT_bit_size);
            if !is_member || is_bits || child.has_attr(gimli::DW_AT_external) {
                continue;
            }
            let offset = match child.attr_value(gimli::DW_AT_data_member_location) {
                Some(value) => match value.udata_value() {
                    Some(offset) => offset,
                    // A virtual base: where it is, only the object knows.
                    None => continue,
                },
                None => 0,
            };
            let ty = child.attr_value(gimli::DW_AT_type).and_then(|at| self.type_at(units, number, at, depth));
            let Some(ty) = ty else { continue };
            let is_base = child.tag() == gimli::DW_TAG_inheritance;
            let name = if is_base { None } else { self.name(unit, &child) };
            members.push(Member { name: name.unwrap_or_default(), offset, ty });
        }
        members
    }

    /// An array of arrays, for as many dimensions as there are.
    fn array(
        &mut self,
        unit: &Unit<'a>,
        entry: &Entry<'a>,
        element: TypeId,
        own_size: Option<u64>,
        name: Option<String>,
    ) -> Type {
        let count = |range: &Entry<'a>| {
            let number = |at| range.attr_value(at).and_then(|value| value.udata_value());
            number(gimli::DW_AT_count).or_else(|| number(gimli::DW_AT_upper_bound)?.checked_add(1)).unwrap_or(0)
        };
        let ranges = children(unit, entry).into_iter().filter(|child| child.tag() == gimli::DW_TAG_subrange_type);
        let counts: Vec<u64> = ranges.map(|range| count(&range)).collect();
        let mut element = element;
        for &count in counts.iter().skip(1).rev() {
            let size = self.types.get(element).size.saturating_mul(count);
            element = self.types.add(Type { size, name: None, shape: Shape::Array { element } });
        }
        let size = self.types.get(element).size.saturating_mul(counts.first().copied().unwrap_or(0));
        Type { size: own_size.unwrap_or(size), name, shape: Shape::Array { element } }
    }
}

/// The entries directly below one.
pub(super) fn children<'a>(unit: &Unit<'a>, entry: &Entry<'a>) -> Vec<Entry<'a>> {
    let mut found = Vec::new();
    let Ok(mut tree) = unit.entries_tree(Some(entry.offset())) else { return found };
    let Ok(root) = tree.root() else { return found };
    let mut children = root.children();
    while let Ok(Some(child)) = children.next() {
        found.push(child.entry().clone());
    }
    found
}

/// The entry that declares what this one defines.
pub(super) fn referred(entry: &Entry<'_>) -> Option<UnitOffset> {
    let at = entry.attr_value(gimli::DW_AT_specification).or_else(|| entry.attr_value(gimli::DW_AT_abstract_origin))?;
    match at {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

fn qualified(scopes: &[(isize, String)], name: &str) -> String {
    // A function names itself with its scopes.
    let from = scopes.iter().rposition(|(_, scope)| scope.ends_with("()")).unwrap_or(0);
    let around = scopes[from..].iter().filter(|(_, scope)| !scope.is_empty());
    around.map(|(_, scope)| format!("{scope}::")).collect::<String>() + name
}
