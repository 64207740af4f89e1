//! Values of compared variables as small numbers: values that no comparison tells apart have the same.

use super::{Field, Packing, TooLarge};
use crate::ast::{Expr, Relation};
use crate::bind::Bound;
use rustc_hash::FxHashMap;

/// Comparisons of one property, at most.
const MOST: usize = 64;

/// `a relation b`, with variables by their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    left: Expr,
    relation: Relation,
    right: Expr,
    /// The slots in it, without repetition.
    slots: Vec<usize>,
    /// From name to slot.
    slot_of: Vec<(usize, usize)>,
}

impl Comparison {
    pub(super) fn new(bound: &Bound, left: &Expr, relation: Relation, right: &Expr) -> Self {
        let mut names = Vec::new();
        left.variables(&mut names);
        right.variables(&mut names);
        let slot_of: Vec<(usize, usize)> =
            names.into_iter().filter_map(|name| Some((name, bound.slot(name)?))).collect();
        let mut slots: Vec<usize> = slot_of.iter().map(|(_, slot)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        Comparison { left: left.clone(), relation, right: right.clone(), slots, slot_of }
    }

    fn holds(&self, value: &impl Fn(usize) -> Option<i64>) -> Option<bool> {
        let of_name = |name: usize| {
            let slot = self.slot_of.iter().find(|(known, _)| *known == name)?.1;
            value(slot)
        };
        let (a, b) = (number(&self.left, &of_name)?, number(&self.right, &of_name)?);
        Some(match self.relation {
            Relation::Equal => a == b,
            Relation::Different => a != b,
            Relation::Less => a < b,
            Relation::LessOrEqual => a <= b,
            Relation::Greater => a > b,
            Relation::GreaterOrEqual => a >= b,
        })
    }
}

/// The value of an expression; `None` if a value is not known, or does not fit, or by division by zero.
fn number(expr: &Expr, value: &impl Fn(usize) -> Option<i64>) -> Option<i64> {
    let two = |a: &Expr, b: &Expr| Some((number(a, value)?, number(b, value)?));
    match expr {
        Expr::Number(number) => Some(*number),
        Expr::Variable(name) => value(*name),
        Expr::Negate(a) => number(a, value)?.checked_neg(),
        Expr::Add(a, b) => two(a, b).and_then(|(a, b)| a.checked_add(b)),
        Expr::Subtract(a, b) => two(a, b).and_then(|(a, b)| a.checked_sub(b)),
        Expr::Multiply(a, b) => two(a, b).and_then(|(a, b)| a.checked_mul(b)),
        Expr::Divide(a, b) => two(a, b).and_then(|(a, b)| a.checked_div(b)),
        Expr::Remainder(a, b) => two(a, b).and_then(|(a, b)| (b != 0).then(|| a.wrapping_rem(b))),
    }
}

/// Values of one variable that are the same to the property.
#[derive(Clone, Debug)]
struct Class {
    /// A value of the class; `None` for "not known".
    value: Option<i64>,
    /// Which of the comparisons with this variable alone hold, and which do not.
    yes: u64,
    no: u64,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    initial: i64,
    /// Some comparison involves another variable too: every value is a class of its own.
    exact: bool,
    /// Comparisons that involve this variable and no other.
    alone: u64,
    classes: Vec<Class>,
    /// From (value or not known, or which comparisons hold) to class.
    known: FxHashMap<(Option<i64>, u64, u64), u32>,
    field: Field,
}

pub(super) struct Values {
    comparisons: Vec<Comparison>,
    slots: Vec<Slot>,
}

impl Values {
    pub(super) fn new(bound: &Bound) -> Self {
        let slots = bound.watched.iter().map(|watched| Slot { initial: watched.initial, ..Slot::default() });
        Values { comparisons: Vec::new(), slots: slots.collect() }
    }

    /// The number of a comparison.
    pub(super) fn comparison(&mut self, comparison: Comparison) -> Result<u8, TooLarge> {
        if let Some(known) = self.comparisons.iter().position(|known| *known == comparison) {
            return Ok(known as u8);
        }
        if self.comparisons.len() == MOST {
            return Err(TooLarge(format!(
                "the property has more than {MOST} different comparisons: split it into several"
            )));
        }
        let at = self.comparisons.len();
        match comparison.slots[..] {
            [alone] => self.slots[alone].alone |= 1 << at,
            _ => comparison.slots.iter().for_each(|&slot| self.slots[slot].exact = true),
        }
        self.comparisons.push(comparison);
        Ok(at as u8)
    }

    /// Called once all comparisons are known.
    pub(super) fn pack(&mut self, packing: &mut Packing) {
        for slot in 0..self.slots.len() {
            let Slot { exact, alone, initial, .. } = self.slots[slot];
            // Seven comparisons make at most 128 classes, "not known" and the initial one.
            let bits = if exact || alone.count_ones() > 7 { 32 } else { 8 };
            self.slots[slot].field = packing.field(bits);
            let first = self.class(slot, Some(initial));
            debug_assert_eq!(first, 0);
        }
    }

    /// The class of a value.
    pub(super) fn class(&mut self, slot: usize, value: Option<i64>) -> u32 {
        let (mut yes, mut no) = (0, 0);
        for (at, comparison) in self.comparisons.iter().enumerate() {
            if self.slots[slot].alone >> at & 1 != 0 {
                match comparison.holds(&|_| value) {
                    Some(true) => yes |= 1 << at,
                    Some(false) => no |= 1 << at,
                    None => {}
                }
            }
        }
        let Slot { exact, classes, known, .. } = &mut self.slots[slot];
        // Not known is told apart from a value that cannot be computed with, for messages.
        let key = (if *exact || value.is_none() { value } else { Some(0) }, yes, no);
        *known.entry(key).or_insert_with(|| {
            classes.push(Class { value, yes, no });
            classes.len() as u32 - 1
        })
    }

    #[inline]
    pub(super) fn set(&self, slot: u32, state: &mut [u64], class: u32) {
        self.slots[slot as usize].field.set(state, u64::from(class));
    }

    fn class_in<'a>(&'a self, slot: usize, state: &[u64]) -> &'a Class {
        let slot = &self.slots[slot];
        &slot.classes[slot.field.get(state) as usize]
    }

    pub(super) fn is_unknown(&self, slot: usize, state: &[u64]) -> bool {
        self.class_in(slot, state).value.is_none()
    }

    /// Whether a comparison holds, as far as that is known.
    #[inline]
    pub(super) fn compare(&self, which: u8, state: &[u64]) -> Option<bool> {
        let comparison = &self.comparisons[which as usize];
        if let [slot] = comparison.slots[..] {
            let class = self.class_in(slot, state);
            return match (class.yes >> which & 1, class.no >> which & 1) {
                (0, 0) => None,
                (yes, _) => Some(yes != 0),
            };
        }
        comparison.holds(&|slot| self.class_in(slot, state).value)
    }
}
