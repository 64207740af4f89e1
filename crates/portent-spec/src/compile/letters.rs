//! What events mean to a compiled monitor: which conditions on one event hold, and which variable gets which value.

use super::values::Values;
use super::{Field, Packing, TooLarge};
use crate::ast::EventAtom;
use crate::bind::Bound;
use crate::monitor::Letter;
use portent_trace::Event;
use rustc_hash::FxHashMap;

/// Different conditions on one event in one property, at most.
const MOST: usize = 64;
/// Who accessed, plus one, and how: the bits of a race's memory.
const ACCESS_BITS: u32 = 24;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Meaning {
    /// Which conditions hold; those on races are not among them.
    pub(super) events: u64,
    /// The variable that is written, and the class of its value.
    pub(super) change: Option<(u32, u32)>,
    /// For each race condition, the access: thread + 1, whether it writes, whether it is atomic; 0 for none.
    accesses: Vec<u32>,
}

#[derive(Default)]
pub(super) struct Letters {
    atoms: Vec<EventAtom>,
    /// The conditions on races, by the number of their bit, and what they remember.
    races: Vec<(u8, EventAtom, Field)>,
    letters: Vec<Meaning>,
    known: FxHashMap<Meaning, u32>,
}

impl Letters {
    /// The bit of a condition.
    pub(super) fn atom(&mut self, atom: EventAtom) -> Result<u8, TooLarge> {
        if let Some(known) = self.atoms.iter().position(|known| *known == atom) {
            return Ok(known as u8);
        }
        if self.atoms.len() == MOST {
            return Err(TooLarge(format!("the property has more than {MOST} different events: split it into several")));
        }
        let bit = self.atoms.len() as u8;
        self.atoms.push(atom);
        if let EventAtom::Race(_) = atom {
            self.races.push((bit, atom, Field::default()));
        }
        Ok(bit)
    }

    pub(super) fn pack(&mut self, packing: &mut Packing) {
        for (_, _, field) in &mut self.races {
            *field = packing.field(ACCESS_BITS);
        }
    }

    /// The letter of an event that makes this change: the number of a watched variable, and the value if it is known.
    pub(super) fn letter(
        &mut self,
        bound: &Bound,
        event: &Event,
        change: Option<(usize, Option<i64>)>,
        values: &mut Values,
    ) -> Letter {
        let mut events = 0;
        for (bit, &atom) in self.atoms.iter().enumerate() {
            if !matches!(atom, EventAtom::Race(_)) && bound.holds(atom, event) {
                events |= 1 << bit;
            }
        }
        let access = |atom: EventAtom| {
            let how = u32::from(event.op.writes()) | u32::from(event.op.is_atomic()) << 1;
            if bound.holds(atom, event) { (event.thread.index() as u32 + 1) << 2 | how } else { 0 }
        };
        let meaning = Meaning {
            events,
            change: change.map(|(slot, value)| (slot as u32, values.class(slot, value))),
            accesses: self.races.iter().map(|(_, atom, _)| access(*atom)).collect(),
        };
        let letters = &mut self.letters;
        Letter(*self.known.entry(meaning).or_insert_with_key(|meaning| {
            letters.push(meaning.clone());
            letters.len() as u32 - 1
        }))
    }

    #[inline]
    pub(super) fn get(&self, letter: Letter) -> &Meaning {
        &self.letters[letter.0 as usize]
    }

    /// The bits of the race conditions that hold now.
    #[inline]
    pub(super) fn races(&self, state: &[u64], letter: &Meaning) -> u64 {
        let mut bits = 0;
        for ((bit, _, field), &now) in self.races.iter().zip(&letter.accesses) {
            let before = field.get(state) as u32;
            let conflict = before != 0 && now != 0 && before >> 2 != now >> 2 && (before | now) & 1 != 0;
            bits |= u64::from(conflict && before & now & 2 == 0) << bit;
        }
        bits
    }

    #[inline]
    pub(super) fn keep(&self, state: &mut [u64], letter: &Meaning) {
        for ((_, _, field), &now) in self.races.iter().zip(&letter.accesses) {
            field.set(state, u64::from(now));
        }
    }
}
