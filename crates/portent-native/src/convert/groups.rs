//! Which events of a line are one finding: those about objects of one kind.
//!
//! A helper that is called for two containers, or a line that runs for many variables, is as many bugs as there are kinds of
//! object that it is called for. Engines group by location, so each kind has a location of its own there. An event costs
//! two looks into tables; texts are made once per object, and once per line and kind.

use portent_trace::{LocId, Names, ObjectClass, Problem};
use rustc_hash::FxHashMap;

const RECENT: usize = 1 << 10;
/// What has no kind.
const NONE: u32 = 1;
/// The first of the kinds.
const FIRST: u32 = 2;

/// Locations by line and kind of object.
pub(super) struct Groups {
    /// The kind of each object, by class and number; 0 for those that were not looked at.
    kinds: [Vec<u32>; ObjectClass::ALL.len()],
    texts: FxHashMap<String, u32>,
    names: Vec<String>,
    recent: Box<[(LocId, u32, LocId); RECENT]>,
    known: FxHashMap<(LocId, u32), LocId>,
}

impl Default for Groups {
    fn default() -> Self {
        let nothing = (LocId::from_bits(0), 0, LocId::from_bits(0));
        Groups {
            kinds: Default::default(),
            texts: FxHashMap::default(),
            names: Vec::new(),
            recent: Box::new([nothing; RECENT]),
            known: FxHashMap::default(),
        }
    }
}

impl Groups {
    /// The location of an event on an object of a class, at a line.
    #[inline]
    pub(super) fn get(
        &mut self,
        line: LocId,
        class: ObjectClass,
        object: u32,
        names: &mut Names,
    ) -> Result<LocId, Problem> {
        let kinds = match class {
            ObjectClass::Variable
            | ObjectClass::Lock
            | ObjectClass::Condition
            | ObjectClass::Semaphore
            | ObjectClass::Barrier => &self.kinds[class as usize - 1],
            _ => return Ok(line),
        };
        let kind = match kinds.get(object as usize) {
            Some(&kind) if kind != 0 => kind,
            _ => self.kind(class, object, names),
        };
        if kind == NONE {
            return Ok(line);
        }
        let mixed = (u64::from(line.to_bits()) << 32 | u64::from(kind)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = (mixed >> 54) as usize % RECENT;
        let recent = &mut self.recent[slot];
        if (recent.0, recent.1) != (line, kind) {
            let at = match self.known.get(&(line, kind)) {
                Some(&at) => at,
                None => names.intern_location_about(line, &self.names[(kind - FIRST) as usize])?,
            };
            self.known.insert((line, kind), at);
            *recent = (line, kind, at);
        }
        Ok(recent.2)
    }

    #[cold]
    fn kind(&mut self, class: ObjectClass, object: u32, names: &Names) -> u32 {
        let kind = names.kind_of_object(&names.object(class, object)).map_or(NONE, |text| {
            let next = self.names.len() as u32 + FIRST;
            *self.texts.entry(text).or_insert_with_key(|text| {
                self.names.push(text.clone());
                next
            })
        });
        let kinds = &mut self.kinds[class as usize - 1];
        if kinds.len() <= object as usize {
            kinds.resize(object as usize + 1, 0);
        }
        kinds[object as usize] = kind;
        kind
    }
}
