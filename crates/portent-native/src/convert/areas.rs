//! Who owns which addresses at the moment: modules, allocations, stacks.
//!
//! An area that is freed stays where it is until something else takes its place: an access after the free is still an
//! access of that memory. What takes part of an area leaves the rest of it what it was.

use std::collections::BTreeMap;

/// Something that a thread did: who, by the number of the event, and where (a site of [`super::memory`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct When {
    pub(super) thread: u32,
    pub(super) event: u32,
    pub(super) site: u32,
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nobody's that is known.
    Unknown,
    /// Global variables of a module.
    Module,
    /// Memory that was allocated, the so many-eth time at its site, by a call of [`super::memory`]'s list.
    Allocation { made: When, instance: u32, call: u32 },
    /// The stack of a thread.
    Stack { thread: u32 },
    /// A library's, which says what it is called, by its number in [`super::memory`].
    Library { name: u32 },
    /// A variable on the stack of a thread, by its number in [`super::locals`].
    Local { thread: u32, local: u32 },
}

/// Memory that keeps its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) owner: Owner,
    /// The number of its region in the trace.
    pub(super) region: u32,
    /// What offsets in the region are counted from.
    pub(super) base: u64,
    /// Where the owner's memory ended when it was made.
    pub(super) limit: u64,
    /// Where this part of it ends.
    pub(super) end: u64,
    /// Where it was freed, while nobody else can have got it.
    pub(super) freed: Option<When>,
}

/// The region of all memory whose owner is not known.
const UNKNOWN: u32 = 0;
/// An area that nobody has accessed yet has no number: most allocations never need one.
const NOT_YET: u32 = u32::MAX;

/// The address space.
#[derive(Debug)]
pub(super) struct Areas {
    by_start: BTreeMap<u64, Area>,
    /// What offsets in each region are counted from.
    bases: Vec<u64>,
}

impl Areas {
    pub(super) fn new() -> Areas {
        Areas { by_start: BTreeMap::new(), bases: vec![0] }
    }

    /// Gives the addresses from `start` to `end` to an owner. Whether that cut something off that begins before.
    pub(super) fn take(&mut self, start: u64, end: u64, owner: Owner) -> bool {
        let end = end.max(start.saturating_add(1));
        let mut cut = false;
        if let Some((&before, &area)) = self.by_start.range(..start).next_back()
            && area.end > start
        {
            let area = self.numbered(before, area);
            self.by_start.insert(before, Area { end: start, ..area });
            if area.end > end {
                self.by_start.insert(end, area);
            }
            cut = true;
        }
        while let Some((&inside, &area)) = self.by_start.range(start..end).next() {
            if area.end > end {
                let area = self.numbered(inside, area);
                self.by_start.insert(end, area);
            }
            self.by_start.remove(&inside);
        }
        self.by_start.insert(start, Area { owner, region: NOT_YET, base: start, limit: end, end, freed: None });
        cut
    }

    /// Like [`Areas::take`], with the number that an area there had before, if it had one.
    pub(super) fn take_again(&mut self, start: u64, end: u64, owner: Owner, region: Option<u32>) -> bool {
        let cut = self.take(start, end, owner);
        if let (Some(region), Some(area)) = (region, self.by_start.get_mut(&start)) {
            area.region = region;
        }
        cut
    }

    /// The area of an address, which has a number from now on.
    pub(super) fn at(&mut self, address: u64) -> Area {
        match self.by_start.range(..=address).next_back() {
            Some((&start, &area)) if address < area.end => self.numbered(start, area),
            _ => {
                let end = self.by_start.range(address..).next().map_or(u64::MAX, |(&start, _)| start);
                Area { owner: Owner::Unknown, region: UNKNOWN, base: 0, limit: u64::MAX, end, freed: None }
            }
        }
    }

    /// The allocation that begins at an address is freed; as it is now, if there is one.
    pub(super) fn free(&mut self, address: u64, when: When) -> Option<Area> {
        let area = self.by_start.get_mut(&address)?;
        if !matches!(area.owner, Owner::Allocation { .. }) || area.base != address {
            return None;
        }
        area.freed = Some(when);
        let area = *area;
        Some(self.numbered(address, area))
    }

    /// Somebody else can get what was freed there.
    pub(super) fn release(&mut self, address: u64) {
        if let Some(area) = self.by_start.get_mut(&address) {
            area.freed = None;
        }
    }

    /// What offsets in a region are counted from.
    pub(super) fn base(&self, region: u32) -> u64 {
        self.bases.get(region as usize).copied().unwrap_or_default()
    }

    fn numbered(&mut self, start: u64, area: Area) -> Area {
        if area.region != NOT_YET {
            return area;
        }
        let area = Area { region: self.bases.len() as u32, ..area };
        self.bases.push(area.base);
        self.by_start.insert(start, area);
        area
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(instance: u32) -> Owner {
        Owner::Allocation { made: When::default(), instance, call: 0 }
    }

    #[test]
    fn reused_memory_is_another_region_and_the_rest_stays_what_it_was() {
        let mut areas = Areas::new();
        areas.take(0x1000, 0x2000, heap(1));
        let first = areas.at(0x1800);
        assert!(areas.take(0x1400, 0x1500, heap(2)));
        let second = areas.at(0x1400);
        assert_ne!(first.region, second.region);
        assert_eq!((second.base, second.end), (0x1400, 0x1500));
        for (address, end) in [(0x13ff, 0x1400), (0x1500, 0x2000)] {
            let rest = areas.at(address);
            assert_eq!((rest.region, rest.base, rest.end), (first.region, 0x1000, end));
        }
        assert!(!areas.take(0x1000, 0x2000, heap(3)));
        assert_eq!(areas.at(0x1400).owner, heap(3));
    }

    #[test]
    fn what_nobody_owns_is_one_region() {
        let mut areas = Areas::new();
        areas.take(0x1000, 0x1000, heap(1));
        assert_eq!(areas.at(0x1000).owner, heap(1), "an allocation of no bytes has an address all the same");
        let (low, high) = (areas.at(0xfff), areas.at(0x1001));
        assert_eq!((low.owner, low.end), (Owner::Unknown, 0x1000));
        assert_eq!((high.region, high.end), (low.region, u64::MAX));
    }
}
