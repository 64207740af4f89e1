//! Call stacks, interned: a stack is the stack that its innermost function was called from, and that call.
//!
//! Stacks form a tree. Events that share callers share all of it but their own end, so a chain per event costs one number
//! per event and a few for each stack that ever was.

use crate::error::Problem;
use crate::ids::{Id, LocId, StackId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::ops::Range;

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function that was called, by its number among the names of functions.
    pub function: u32,
    /// Where it was called.
    pub call: LocId,
}

/// The call stacks of a trace.
#[derive(Clone, Default)]
pub struct Stacks {
    /// The stack below, counted from 1, or 0 if there is none; and the innermost call.
    all: Vec<(u32, Frame)>,
    index: HashTable<u32>,
}

#[inline]
fn hash(entry: &(u32, Frame)) -> u64 {
    FxBuildHasher.hash_one(entry)
}

impl Stacks {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// The stack that `frame` was called from.
    pub fn parent(&self, stack: StackId) -> Option<StackId> {
        StackId::from_column(self.all[stack.index()].0)
    }
    /// The innermost call of a stack.
    pub fn frame(&self, stack: StackId) -> Frame {
        self.all[stack.index()].1
    }
    /// The calls of a stack, the innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = Frame> + '_ {
        std::iter::successors(Some(stack), |&stack| self.parent(stack)).map(|stack| self.frame(stack))
    }
    /// Every stack, each after the one it was called from.
    pub fn ids(&self) -> impl Iterator<Item = StackId> {
        (0..self.len()).map(StackId::new)
    }

    /// The stack in which `frame` was called from `parent`, if it is known.
    pub fn lookup(&self, parent: Option<StackId>, frame: Frame) -> Option<StackId> {
        let entry = (StackId::to_column(parent), frame);
        self.index.find(hash(&entry), |&other| self.all[other as usize] == entry).copied().map(StackId)
    }

    /// The stack in which `frame` was called from `parent`, new or known.
    ///
    /// # Panics
    /// If there is no such parent.
    pub fn intern(&mut self, parent: Option<StackId>, frame: Frame) -> Result<StackId, Problem> {
        assert!(parent.is_none_or(|parent| parent.index() < self.len()), "a stack is called from one that exists");
        if let Some(known) = self.lookup(parent, frame) {
            return Ok(known);
        }
        let entry = (StackId::to_column(parent), frame);
        let too_many = Problem::TooMany { what: StackId::WHAT, limit: StackId::LIMIT as u64 };
        let id = StackId::from_index(self.len()).ok_or(too_many)?;
        let Self { all, index } = self;
        all.push(entry);
        index.insert_unique(hash(&entry), id.0, |&other| hash(&all[other as usize]));
        Ok(id)
    }
}

/// The stack of each of some events; empty as long as none has one, and shorter than the events when the last have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackColumn(Vec<u32>);

impl StackColumn {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
    /// Says which stack event `at` has, where no later one has any yet.
    pub fn set(&mut self, at: usize, stack: StackId) {
        self.0.resize(at, 0);
        self.0.push(StackId::to_column(Some(stack)));
    }
    /// The stack of event `at`, if it is known.
    pub fn get(&self, at: usize) -> Option<StackId> {
        self.0.get(at).copied().and_then(StackId::from_column)
    }
    /// Appends the stacks of some events of another column, the first of which becomes event `at` here.
    pub fn append(&mut self, at: usize, other: &StackColumn, events: Range<usize>) {
        let end = events.end.min(other.0.len());
        if events.start < end {
            self.0.resize(at, 0);
            self.0.extend_from_slice(&other.0[events.start..end]);
        }
    }
    /// The numbers, 0 for an event without a stack.
    pub(crate) fn numbers(&self) -> &[u32] {
        &self.0
    }
    /// Room for exactly `count` numbers, all of which the caller must then write.
    pub(crate) fn overwrite(&mut self, count: usize) -> &mut [u32] {
        self.0.resize(count, 0);
        &mut self.0
    }
    /// How many events have one.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().filter(|&&number| number != 0).count() as u64
    }
    pub(crate) fn bytes(&self) -> usize {
        4 * self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_costs_nothing_until_an_event_has_a_stack() {
        let (mut column, mut copy) = (StackColumn::default(), StackColumn::default());
        assert_eq!((column.get(3), column.bytes()), (None, 0));
        column.set(2, StackId::new(7));
        assert_eq!((column.get(1), column.get(2), column.get(3)), (None, Some(StackId::new(7)), None));
        copy.append(5, &column, 0..2);
        copy.append(7, &column, 1..9);
        copy.append(20, &column, 3..9);
        assert_eq!((copy.get(7), copy.get(8), copy.count()), (None, Some(StackId::new(7)), 1));
    }

    fn frame(function: u32) -> Frame {
        Frame { function, call: LocId::from_number(10 * u64::from(function)).unwrap() }
    }

    #[test]
    fn stacks_share_their_callers() {
        let mut stacks = Stacks::default();
        let main = stacks.intern(None, frame(0)).unwrap();
        let left = stacks.intern(Some(main), frame(1)).unwrap();
        let right = stacks.intern(Some(main), frame(2)).unwrap();
        assert_eq!(stacks.intern(Some(main), frame(1)).unwrap(), left);
        let again = stacks.intern(Some(right), frame(1)).unwrap();
        assert_eq!(stacks.len(), 4);
        assert_eq!(stacks.frames(again).map(|frame| frame.function).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!((stacks.parent(left), stacks.parent(main)), (Some(main), None));
        assert!(stacks.ids().all(|stack| stacks.parent(stack).is_none_or(|parent| parent < stack)));
    }
}
