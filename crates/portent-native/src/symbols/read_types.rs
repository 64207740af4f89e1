//! Types out of debug information, each read when somebody needs it, and once.

use super::types::{Meaning, Member, Shape, Type, TypeId, Types};
use super::units::{Debug, Entry, EntryAt, Value, children};
use rustc_hash::FxHashMap;

/// The types that were read.
#[derive(Debug, Default)]
pub(super) struct TypeReader {
    pub(super) types: Types,
    known: FxHashMap<EntryAt, TypeId>,
}

/// Deeper nesting than this is not believed.
const DEPTH: u32 = 64;

/// Whether a class of the standard library is another container to its users: what is in it has no name for them.
fn is_adapter(name: &str) -> bool {
    ["queue<", "stack<", "priority_queue<"].iter().any(|start| name.starts_with(start))
}

/// So many bit-fields are all named.
const MOST_BITS: usize = 5;

/// A member that has some bits of a place.
struct BitField {
    name: String,
    /// The first bit, counted from the beginning of the object, and the one behind the last.
    from: u64,
    to: u64,
    /// How many bytes a variable of its type has.
    room: u64,
}

impl TypeReader {
    /// The type that an attribute of a unit's entry names.
    pub(super) fn named_by(&mut self, debug: &Debug, unit: u32, value: Value) -> Option<TypeId> {
        self.type_at(debug, debug.referred(unit, value)?, DEPTH)
    }

    /// The type that an entry is.
    pub(super) fn of_entry(&mut self, debug: &Debug, at: EntryAt) -> Option<TypeId> {
        self.type_at(debug, at, DEPTH)
    }

    /// A pointer to something, by what people call it.
    pub(super) fn pointer(&mut self, name: &str) -> TypeId {
        self.types.add(Type { size: 8, name: Some(name.to_owned()), shape: Shape::Scalar(Meaning::Pointer) })
    }

    /// The type of a variable, which may stand at its declaration.
    pub(super) fn of_variable(&mut self, debug: &Debug, at: EntryAt) -> Option<TypeId> {
        let (unit, value) = debug.inherited(at, gimli::DW_AT_type)?;
        self.named_by(debug, unit, value)
    }

    fn type_at(&mut self, debug: &Debug, at: EntryAt, depth: u32) -> Option<TypeId> {
        if let Some(&known) = self.known.get(&at) {
            return Some(known);
        }
        let entry = debug.entry(at)?;
        // First a place for it: a file in which types contain themselves comes to an end, too.
        let id = self.types.add(Type { size: 0, name: None, shape: Shape::Scalar(Meaning::Bits) });
        self.known.insert(at, id);
        let ty = self.type_of(debug, at, &entry, depth.checked_sub(1)?)?;
        self.types.set(id, ty);
        Some(id)
    }

    fn type_of(&mut self, debug: &Debug, at: EntryAt, entry: &Entry, depth: u32) -> Option<Type> {
        let name = debug.name(at);
        let own_size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|size| size.udata_value());
        let inner = |reader: &mut Self| {
            let to = debug.referred(at.unit, entry.attr_value(gimli::DW_AT_type)?)?;
            reader.type_at(debug, to, depth)
        };
        let (size, shape) = match entry.tag() {
            gimli::DW_TAG_base_type => {
                let signed = matches!(
                    entry.attr_value(gimli::DW_AT_encoding),
                    Some(Value::Encoding(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char))
                );
                (own_size?, Shape::Scalar(if signed { Meaning::Signed } else { Meaning::Bits }))
            }
            gimli::DW_TAG_enumeration_type => match inner(self) {
                Some(id) => (own_size.unwrap_or(self.types.get(id).size), Shape::Alias(id)),
                None => (own_size?, Shape::Scalar(Meaning::Bits)),
            },
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                (own_size.unwrap_or(8), Shape::Scalar(Meaning::Pointer))
            }
            gimli::DW_TAG_ptr_to_member_type => (own_size.unwrap_or(8), Shape::Scalar(Meaning::Bits)),
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_restrict_type => {
                let id = inner(self)?;
                (self.types.get(id).size, Shape::Alias(id))
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let mut members = self.members(debug, at, depth);
                if name.as_deref().is_some_and(is_adapter) {
                    let is_inside = |member: &&mut Member| member.name == "c" && self.is_container(member.ty);
                    members.iter_mut().filter(is_inside).for_each(|member| member.name.clear());
                }
                (own_size.unwrap_or(0), Shape::Record(members))
            }
            gimli::DW_TAG_array_type => {
                let element = inner(self)?;
                return Some(self.array(debug, at, element, own_size, name));
            }
            _ => (own_size?, Shape::Scalar(Meaning::Bits)),
        };
        Some(Type { size, name, shape })
    }

    fn is_container(&self, ty: TypeId) -> bool {
        let name = self.types.get(ty).name.as_deref().unwrap_or_default();
        ["deque<", "vector<", "list<"].iter().any(|start| name.starts_with(start))
    }

    fn members(&mut self, debug: &Debug, at: EntryAt, depth: u32) -> Vec<Member> {
        let mut members = Vec::new();
        let mut bits = Vec::new();
        let below = debug.unit(at.unit).map(|unit| children(unit, at.offset)).unwrap_or_default();
        for child in below {
            let is_member = matches!(child.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance);
            if !is_member || child.has_attr(gimli::DW_AT_external) {
                continue;
            }
            if child.has_attr(gimli::DW_AT_bit_size) {
                bits.extend(self.bit_field(debug, at.unit, &child, depth));
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
            let ty = child.attr_value(gimli::DW_AT_type).and_then(|to| debug.referred(at.unit, to));
            let Some(ty) = ty.and_then(|to| self.type_at(debug, to, depth)) else { continue };
            let is_base = child.tag() == gimli::DW_TAG_inheritance;
            let name = child.attr_value(gimli::DW_AT_name).filter(|_| !is_base);
            let name = name.and_then(|name| debug.text(at.unit, name)).unwrap_or_default();
            members.push(Member { name, offset, ty });
        }
        let whole = debug.entry(at).and_then(|entry| entry.attr_value(gimli::DW_AT_byte_size)?.udata_value());
        self.units_of_bits(bits, whole.unwrap_or(u64::MAX), &mut members);
        members
    }

    /// A member that has some bits of its bytes.
    fn bit_field(&mut self, debug: &Debug, unit: u32, child: &Entry, depth: u32) -> Option<BitField> {
        let number = |name| child.attr_value(name).and_then(|value| value.udata_value());
        let ty = debug.referred(unit, child.attr_value(gimli::DW_AT_type)?)?;
        let ty = self.type_at(debug, ty, depth)?;
        let (room, bits) = (self.types.get(ty).size.max(1), number(gimli::DW_AT_bit_size)?);
        let from = match number(gimli::DW_AT_data_bit_offset) {
            Some(from) => from,
            // As it was before DWARF 4: from the highest bit of a number downwards.
            None => {
                let room = number(gimli::DW_AT_byte_size).unwrap_or(room);
                let below = room.checked_mul(8)?.checked_sub(number(gimli::DW_AT_bit_offset)?.checked_add(bits)?)?;
                number(gimli::DW_AT_data_member_location)?.checked_mul(8)?.checked_add(below)?
            }
        };
        let name = debug.text(unit, child.attr_value(gimli::DW_AT_name)?)?;
        Some(BitField { name, from, to: from.checked_add(bits)?, room })
    }

    /// Bit-fields beside each other are one place of memory to the language and to the machine: a write of one writes all. It
    /// is called by all of them.
    fn units_of_bits(&mut self, bits: Vec<BitField>, whole: u64, members: &mut Vec<Member>) {
        let mut units: Vec<(u64, u64, Vec<BitField>)> = Vec::new();
        for field in bits {
            let (first, last) = (field.from / 8, field.to.div_ceil(8));
            match units.last_mut().filter(|(_, end, _)| first < *end) {
                Some(unit) => {
                    unit.1 = unit.1.max(last);
                    unit.2.push(field);
                }
                None => units.push((first, last, vec![field])),
            }
        }
        for (start, end, fields) in units {
            // Compilers also access what is unused behind them, up to the next member.
            let next = members.iter().map(|member| member.offset).filter(|&offset| offset >= end).min();
            let room = fields.iter().map(|field| field.room).max().unwrap_or(1);
            let rounded = end.checked_next_multiple_of(room).unwrap_or(end);
            let end = rounded.min(next.unwrap_or(whole)).max(end);
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let name = match &names[..] {
                [first, .., last] if names.len() > MOST_BITS => format!("{first}|…|{last}"),
                names => names.join("|"),
            };
            let size = end.saturating_sub(start);
            let ty = self.types.add(Type { size, name: None, shape: Shape::Scalar(Meaning::Bits) });
            members.push(Member { name, offset: start, ty });
        }
    }

    /// An array of arrays, for as many dimensions as there are.
    fn array(
        &mut self,
        debug: &Debug,
        at: EntryAt,
        element: TypeId,
        own_size: Option<u64>,
        name: Option<String>,
    ) -> Type {
        let count = |range: &Entry| {
            let number = |at| range.attr_value(at).and_then(|value| value.udata_value());
            number(gimli::DW_AT_count).or_else(|| number(gimli::DW_AT_upper_bound)?.checked_add(1)).unwrap_or(0)
        };
        let below = debug.unit(at.unit).map(|unit| children(unit, at.offset)).unwrap_or_default();
        let ranges = below.iter().filter(|child| child.tag() == gimli::DW_TAG_subrange_type);
        let counts: Vec<u64> = ranges.map(count).collect();
        let mut element = element;
        for &count in counts.iter().skip(1).rev() {
            let size = self.types.get(element).size.saturating_mul(count);
            element = self.types.add(Type { size, name: None, shape: Shape::Array { element } });
        }
        let size = self.types.get(element).size.saturating_mul(counts.first().copied().unwrap_or(0));
        Type { size: own_size.unwrap_or(size), name, shape: Shape::Array { element } }
    }
}
