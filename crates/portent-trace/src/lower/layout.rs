//! Which variables engines see: byte ranges that no access cuts.
//!
//! An access wider than another, or straddling it, becomes one event per part, so that every event touches exactly one
//! variable and two accesses overlap exactly when they share one. Splitting needs all ranges beforehand; a source whose
//! variables are byte ranges defines them before its first batch.

use crate::error::{Position, Problem, TraceError};
use crate::ids::{Id, VarId};
use crate::names::{ByteRange, Names, ObjectClass};
use crate::objects::{ObjectName, byte_range_text};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which part of its variable a kernel variable is.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// A named variable that contains the part.
    variable: u32,
    offset: u64,
    len: u32,
    /// Whether the part is that whole variable.
    whole: bool,
}

/// From named variables to the parts that engines see.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Parts of named variable `v`: `part_ids[start[v]..start[v + 1]]`; both empty when every variable is its own part.
    start: Vec<u32>,
    part_ids: Vec<VarId>,
    parts: Vec<Part>,
}

impl Layout {
    /// Cuts the variables of a trace into parts.
    pub fn of(names: &Names) -> Result<Layout, TraceError> {
        if !names.has_ranges() {
            return Ok(Layout::default());
        }
        let variables = names.count(ObjectClass::Variable) as u32;
        let mut ranges: Vec<(ByteRange, u32)> = Vec::new();
        let mut parts = Vec::new();
        let mut parts_of: Vec<(u32, u32)> = vec![(0, 0); variables as usize];
        for v in 0..variables {
            match names.range(v) {
                Some(range) => {
                    check_range(names, v, range)?;
                    ranges.push((range, v));
                }
                None => {
                    parts_of[v as usize] = (parts.len() as u32, parts.len() as u32 + 1);
                    parts.push(Part { variable: v, offset: 0, len: 0, whole: true });
                }
            }
        }
        ranges.sort();
        for region in ranges.chunk_by(|a, b| a.0.region == b.0.region) {
            cut_region(region, &mut parts, &mut parts_of)?;
        }
        let mut start = vec![0u32];
        let mut part_ids = Vec::new();
        for (from, to) in parts_of {
            part_ids.extend((from..to).map(VarId));
            start.push(part_ids.len() as u32);
        }
        Ok(Layout { start, part_ids, parts })
    }

    /// Whether every variable is its own only part.
    #[inline]
    pub(crate) fn is_identity(&self) -> bool {
        self.start.is_empty()
    }

    /// The parts of a named variable, in address order, with their byte offset and length within it.
    pub(crate) fn split<'a>(&'a self, names: &'a Names, variable: u32) -> impl Iterator<Item = (VarId, u64, u32)> + 'a {
        let v = variable as usize;
        let ids = &self.part_ids[self.start[v] as usize..self.start[v + 1] as usize];
        let base = names.range(variable).map_or(0, |range| range.start);
        ids.iter().map(move |&id| {
            let part = self.parts[id.index()];
            let owner_base = names.range(part.variable).map_or(0, |range| range.start);
            (id, owner_base + part.offset - base, part.len)
        })
    }

    /// Whether `variable` has more than one part.
    pub fn is_split(&self, variable: u32) -> bool {
        !self.is_identity() && self.start[variable as usize + 1] - self.start[variable as usize] > 1
    }

    /// How many kernel variables there are.
    pub(crate) fn parts(&self, names: &Names) -> usize {
        if self.is_identity() { names.count(ObjectClass::Variable) } else { self.parts.len() }
    }

    /// The name of a kernel variable.
    pub(crate) fn part_name<'a>(&self, names: &'a Names, id: VarId) -> Cow<'a, str> {
        if self.is_identity() {
            return names.called(ObjectClass::Variable, id.0);
        }
        let part = self.parts[id.index()];
        let name = names.called(ObjectClass::Variable, part.variable);
        if part.whole { name } else { byte_range_text(&name, part.offset, part.len).into() }
    }
    /// What the variable that contains a kernel variable stands for.
    pub(crate) fn part_object<'a>(&self, names: &'a Names, id: VarId) -> ObjectName<'a> {
        names.object(ObjectClass::Variable, self.variable_of(id))
    }
    /// The variable that contains a kernel variable, by its number in the names.
    pub(crate) fn variable_of(&self, id: VarId) -> u32 {
        if self.is_identity() { id.0 } else { self.parts[id.index()].variable }
    }
}

fn check_range(names: &Names, variable: u32, range: ByteRange) -> Result<(), TraceError> {
    if range.len > 0 && range.start.checked_add(u64::from(range.len)).is_some() {
        return Ok(());
    }
    let name = names.name(ObjectClass::Variable, variable);
    let detail = format!("variable {name:?} has the impossible byte range {} + {}", range.start, range.len);
    Err(TraceError::at(Position::Whole, Problem::BadChunk { what: "definitions", detail }))
}

/// Cuts the sorted ranges of one region at every border of any of them.
fn cut_region(
    region: &[(ByteRange, u32)],
    parts: &mut Vec<Part>,
    parts_of: &mut [(u32, u32)],
) -> Result<(), TraceError> {
    let end_of = |range: &ByteRange| range.start + u64::from(range.len);
    let mut cuts: Vec<u64> = region.iter().flat_map(|(range, _)| [range.start, end_of(range)]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let slot = |at: u64| cuts.partition_point(|&cut| cut < at);
    // For each elementary interval, the smallest range that covers it names it best. `None`: a gap nobody accesses.
    let mut owner: Vec<Option<usize>> = Vec::with_capacity(cuts.len() - 1);
    let mut covering = BinaryHeap::new();
    let mut next = 0;
    for &from in &cuts[..cuts.len() - 1] {
        while next < region.len() && region[next].0.start == from {
            covering.push(Reverse((region[next].0.len, region[next].1, next)));
            next += 1;
        }
        while covering.peek().is_some_and(|Reverse((.., i))| end_of(&region[*i].0) <= from) {
            covering.pop();
        }
        owner.push(covering.peek().map(|Reverse((.., i))| *i));
    }
    let mut id_of_slot = vec![0u32; owner.len() + 1];
    for (s, owner) in owner.iter().enumerate() {
        id_of_slot[s] = parts.len() as u32;
        let Some(i) = *owner else { continue };
        let (range, variable) = region[i];
        let len = (cuts[s + 1] - cuts[s]) as u32;
        let too_many = Problem::TooMany { what: VarId::WHAT, limit: VarId::MAX_INDEX as u64 + 1 };
        VarId::from_index(parts.len()).ok_or_else(|| TraceError::whole(too_many))?;
        parts.push(Part { variable, offset: cuts[s] - range.start, len, whole: len == range.len });
    }
    id_of_slot[owner.len()] = parts.len() as u32;
    for (range, variable) in region {
        parts_of[*variable as usize] = (id_of_slot[slot(range.start)], id_of_slot[slot(end_of(range))]);
    }
    Ok(())
}

/// The bytes `offset..offset + len` of a little-endian value `whole_len` bytes wide, if they are known.
pub(crate) fn value_part(value: Option<i64>, whole_len: u32, offset: u64, len: u32) -> Option<i64> {
    let value = value?;
    if offset == 0 && len == whole_len {
        return Some(value);
    }
    if whole_len > 8 || len > 8 || offset >= 8 {
        return None;
    }
    Some(low_bytes((value as u64 >> (8 * offset)) as i64, len))
}

/// The low `len` bytes of a value, without sign: how values of one part are compared, whoever accessed it.
pub(crate) fn low_bytes(value: i64, len: u32) -> i64 {
    if len >= 8 { value } else { value & ((1 << (8 * len)) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ranges: &[(&str, u32, u64, u32)]) -> Names {
        let mut names = Names::default();
        for &(name, region, start, len) in ranges {
            names.intern_range(name.as_bytes(), ByteRange { region, start, len }).unwrap();
        }
        names
    }

    fn split(layout: &Layout, names: &Names, variable: u32) -> Vec<(String, u64, u32)> {
        let parts = layout.split(names, variable);
        parts.map(|(id, offset, len)| (layout.part_name(names, id).into_owned(), offset, len)).collect()
    }

    #[test]
    fn disjoint_ranges_stay_whole() {
        let names = names(&[("a", 0, 0, 4), ("b", 0, 4, 4), ("c", 1, 0, 4)]);
        let layout = Layout::of(&names).unwrap();
        assert_eq!(layout.parts(&names), 3);
        assert_eq!(split(&layout, &names, 1), [("b".into(), 0, 4)]);
        assert!(!layout.is_split(1));
    }

    #[test]
    fn a_wide_access_is_cut_at_the_borders_of_narrow_ones() {
        let names = names(&[("wide", 0, 0, 8), ("low", 0, 0, 4), ("byte", 0, 6, 1)]);
        let layout = Layout::of(&names).unwrap();
        let parts: Vec<_> = split(&layout, &names, 0);
        assert_eq!(
            parts,
            [("low".into(), 0, 4), ("wide[4..6]".into(), 4, 2), ("byte".into(), 6, 1), ("wide[7..8]".into(), 7, 1)]
        );
        assert_eq!(split(&layout, &names, 1), [("low".into(), 0, 4)]);
    }

    #[test]
    fn straddling_accesses_share_exactly_the_common_part() {
        let names = names(&[("a", 0, 0, 4), ("b", 0, 2, 4)]);
        let layout = Layout::of(&names).unwrap();
        let ids = |v| layout.split(&names, v).map(|(id, ..)| id).collect::<Vec<_>>();
        assert_eq!((ids(0).len(), ids(1).len()), (2, 2));
        assert_eq!(ids(0)[1], ids(1)[0]);
    }

    #[test]
    fn gaps_between_ranges_are_no_variables() {
        let names = names(&[("a", 0, 0, 4), ("b", 0, 100, 4)]);
        assert_eq!(Layout::of(&names).unwrap().parts(&names), 2);
    }

    #[test]
    fn parts_get_their_bytes_of_the_value() {
        assert_eq!(value_part(Some(0x1122_3344), 4, 0, 2), Some(0x3344));
        assert_eq!(value_part(Some(0x1122_3344), 4, 2, 2), Some(0x1122));
        assert_eq!(value_part(Some(-1), 8, 4, 4), Some(0xffff_ffff));
        assert_eq!(value_part(Some(-1), 4, 0, 4), Some(-1));
        assert_eq!(value_part(Some(5), 16, 0, 4), None);
        assert_eq!(value_part(None, 4, 0, 4), None);
    }

    #[test]
    fn impossible_ranges_are_refused() {
        assert!(Layout::of(&names(&[("a", 0, u64::MAX, 4)])).is_err());
        assert!(Layout::of(&names(&[("a", 0, 0, 0)])).is_err());
    }
}
