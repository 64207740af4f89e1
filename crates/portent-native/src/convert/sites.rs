//! Places in the program that were looked up before.

use super::memory::Memory;
use crate::symbols::{SourcePlace, Symbols};
use portent_trace::{LocId, Names, ObjectClass, Problem};
use rustc_hash::FxHashMap;

const RECENT: usize = 1 << 12;

/// What is known about program counters.
pub(super) struct Sites {
    /// Those met last; a program counter is never zero.
    recent: Box<[(u64, LocId); RECENT]>,
    locations: FxHashMap<u64, LocId>,
    functions: FxHashMap<u64, u32>,
    /// Allocation sites; none for places in libraries.
    allocations: FxHashMap<u64, Option<u32>>,
}

impl Sites {
    pub(super) fn new() -> Sites {
        Sites {
            recent: Box::new([(0, LocId::from_bits(0)); RECENT]),
            locations: FxHashMap::default(),
            functions: FxHashMap::default(),
            allocations: FxHashMap::default(),
        }
    }

    /// Other code is at some addresses now.
    pub(super) fn forget(&mut self) {
        *self = Sites::new();
    }

    /// The location of a call that returns to `pc`.
    #[inline]
    pub(super) fn get(&mut self, pc: u64, symbols: &Symbols, names: &mut Names) -> Result<LocId, Problem> {
        let slot = (pc.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize % RECENT;
        let (known, location) = self.recent[slot];
        if known == pc && pc != 0 {
            return Ok(location);
        }
        let location = self.look_up(pc, symbols, names)?;
        self.recent[slot] = (pc, location);
        Ok(location)
    }

    #[cold]
    fn look_up(&mut self, pc: u64, symbols: &Symbols, names: &mut Names) -> Result<LocId, Problem> {
        if let Some(&location) = self.locations.get(&pc) {
            return Ok(location);
        }
        let SourcePlace { text, function, .. } = symbols.place(pc);
        let location = match function {
            Some(function) => names.intern_location_in(&text, &function)?,
            None => names.intern_location(text.as_bytes())?,
        };
        self.locations.insert(pc, location);
        Ok(location)
    }

    /// The function that contains `pc`, as the machine sees it.
    pub(super) fn function(&mut self, pc: u64, symbols: &Symbols, names: &mut Names) -> Result<u32, Problem> {
        if let Some(&function) = self.functions.get(&pc) {
            return Ok(function);
        }
        let place = symbols.place(pc);
        let name = place.outer.unwrap_or(place.text);
        let function = names.intern(ObjectClass::Function, name.as_bytes())?;
        self.functions.insert(pc, function);
        Ok(function)
    }

    /// The allocation site of a call that returns to `pc`, unless that is in a library.
    pub(super) fn allocation(&mut self, pc: u64, symbols: &Symbols, memory: &mut Memory) -> Option<u32> {
        let site = || symbols.place(pc).own.map(|text| memory.site(&text));
        *self.allocations.entry(pc).or_insert_with(site)
    }
}
