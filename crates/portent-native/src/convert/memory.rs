//! Which variable an access is, and which object a lock is.
//!
//! A variable is a byte range of a region; a region is one object that keeps its identity (see [`super::areas`]). Names
//! say what a reader of a report can use: the global and its member, where memory was allocated and which of the allocations
//! there it is, whose stack it is ([`ObjectName`]). What that is called is not decided here.

use super::areas::{Area, Areas, Owner, When};
use super::locals::{Calls, Holds, Locals};
use super::pages::{KnownVariable, Pages};
use crate::symbols::{Allocating, HeapType, LocalPart, Meaning, Module, OwnLine, Symbols};
use portent_runtime::log;
use portent_trace::{Apart, ByteRange, LocId, Names, Object, ObjectName, Problem, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// A place where memory is allocated.
#[derive(Debug)]
struct Site {
    line: OwnLine,
    /// Known once somebody names memory that was allocated there: most allocations never need a name.
    location: Option<LocId>,
    instances: u32,
}

/// The memory of the program.
pub(super) struct Memory {
    pub(super) areas: Areas,
    pub(super) pages: Pages,
    pub(super) locals: Locals,
    variables: FxHashMap<ByteRange, (u32, Meaning)>,
    sites: Vec<Site>,
    site_of: FxHashMap<String, u32>,
    /// Calls that allocate.
    calls: Vec<Allocating>,
    call_of: FxHashMap<Allocating, u32>,
    /// What they make, by their number and how much of it.
    types: FxHashMap<(u32, u64), Rc<HeapType>>,
    /// Pages on which memory without an owner was accessed.
    unowned: FxHashSet<u64>,
    /// Allocations that were zero at first, by their addresses.
    zeroed: FxHashSet<u64>,
    /// Where stacks begin and end.
    stacks: Vec<(u64, u64)>,
    /// What libraries call what they keep.
    kept: Vec<String>,
    threads: usize,
}

/// What a descriptor is called, and which file behind its number it is, if an address stands for one.
fn descriptor(address: u64) -> Option<(String, u32)> {
    let number = address.checked_sub(log::DESCRIPTORS)?;
    // What a null pointer with something taken from it leads to is at the very end: nobody closed so many.
    let closed = u32::try_from(number / log::DESCRIPTORS_EACH).ok()?;
    let again = if closed > 0 { closed.saturating_add(1) } else { 0 };
    Some((format!("descriptor {}", number % log::DESCRIPTORS_EACH), again))
}

/// Accesses longer than this are never remembered, so none that begins further away can be wrong.
pub(super) const REACH: u64 = 4096;

impl Memory {
    /// The memory of a program with so many threads.
    pub(super) fn new(threads: usize) -> Memory {
        Memory {
            areas: Areas::new(),
            pages: Pages::new(),
            locals: Locals::default(),
            variables: FxHashMap::default(),
            sites: Vec::new(),
            site_of: FxHashMap::default(),
            calls: Vec::new(),
            call_of: FxHashMap::default(),
            types: FxHashMap::default(),
            unowned: FxHashSet::default(),
            zeroed: FxHashSet::default(),
            stacks: Vec::new(),
            kept: Vec::new(),
            threads,
        }
    }

    /// There are so many threads now.
    pub(super) fn meet(&mut self, threads: usize) {
        self.threads = self.threads.max(threads);
    }

    pub(super) fn load(&mut self, module: &Module) {
        self.take(module.start, module.end, Owner::Module);
        self.locals.forget();
    }
    pub(super) fn stack(&mut self, thread: u64, start: u64, end: u64) {
        if start < end && thread < self.threads as u64 {
            self.take(start, end, Owner::Stack { thread: thread as u32 });
            self.locals.stack(thread as u32, start, end);
            self.stacks.push((start, end));
        }
    }

    /// What a library keeps at an address has a name.
    pub(super) fn keeps(&mut self, address: u64, size: u64, name: String) {
        let owner = Owner::Library { name: self.kept.len() as u32 };
        self.kept.push(name);
        self.take(address, address.saturating_add(size), owner);
    }

    /// The number of an allocation site, by what it is called.
    pub(super) fn site(&mut self, line: OwnLine) -> u32 {
        if let Some(&site) = self.site_of.get(&line.text) {
            return site;
        }
        let site = self.sites.len() as u32;
        self.site_of.insert(line.text.clone(), site);
        self.sites.push(Site { line, location: None, instances: 0 });
        site
    }

    /// What a site is called.
    pub(super) fn site_text(&self, site: u32) -> &str {
        &self.sites[site as usize].line.text
    }

    /// Memory was allocated.
    pub(super) fn allocate(&mut self, address: u64, size: u64, made: When, by: Allocating, zeroed: bool) {
        let instances = &mut self.sites[made.site as usize].instances;
        *instances += 1;
        let next = self.calls.len() as u32;
        let call = *self.call_of.entry(by).or_insert(next);
        if call == next {
            self.calls.push(by);
        }
        let owner = Owner::Allocation { made, instance: *instances, call };
        self.take(address, address.saturating_add(size), owner);
        if zeroed {
            self.zeroed.insert(address);
        } else {
            self.zeroed.remove(&address);
        }
    }

    /// Whether memory was all zero when it was allocated; of so many bytes, which have a value.
    pub(super) fn is_zeroed(&mut self, address: u64, size: u32) -> bool {
        let area = self.areas.at(address);
        let is_allocated = matches!(area.owner, Owner::Allocation { .. }) && area.freed.is_none();
        is_allocated && size <= 8 && self.zeroed.contains(&area.base)
    }

    /// What was allocated at an address is freed; as it is now, if something was.
    pub(super) fn free(&mut self, address: u64, when: When) -> Option<Area> {
        let area = self.areas.free(address, when)?;
        // Accesses from here on are looked up again, and found out.
        self.pages.forget(address, area.end - address);
        Some(area)
    }

    /// Somebody else can get what was freed at an address.
    pub(super) fn release(&mut self, address: u64) {
        self.areas.release(address);
    }

    /// Whose memory an address is.
    pub(super) fn area(&mut self, address: u64) -> Area {
        self.areas.at(address)
    }

    fn take(&mut self, start: u64, end: u64, owner: Owner) {
        let end = end.max(start.saturating_add(1));
        let pages = (start.saturating_sub(REACH) >> 12)..=(end >> 12);
        let was_unowned = !self.unowned.is_empty()
            && if pages.end() - pages.start() > self.unowned.len() as u64 {
                self.unowned.iter().any(|page| pages.contains(page))
            } else {
                pages.clone().any(|page| self.unowned.contains(&page))
            };
        if self.areas.take(start, end, owner) || was_unowned {
            self.pages.forget_before(start, REACH);
        }
        self.pages.renew(start, end - start);
    }

    /// The variable that an access of `size` bytes at `address` is, looked up the slow way; and its memory, if that was freed.
    #[cold]
    pub(super) fn find(
        &mut self,
        address: u64,
        size: u32,
        calls: Calls<'_>,
        symbols: &Symbols,
        names: &mut Names,
    ) -> Result<(KnownVariable, Option<Area>), Problem> {
        let (area, holds) = self.settle(address, calls, symbols, names);
        if area.owner == Owner::Unknown {
            self.unowned.insert(address >> 12);
        }
        let start = address - area.base;
        // The very end of the address space: nothing can be there, and no range may go beyond.
        let len = u64::from(size).min(u64::MAX - start).max(1) as u32;
        let range = ByteRange { region: area.region, start, len };
        let (variable, meaning) = match self.variables.get(&range) {
            Some(&known) => known,
            None => {
                let datum = match area.owner {
                    Owner::Module => symbols.datum(address, u64::from(len)),
                    _ => None,
                };
                let (variable, meaning) = match (&datum, area.owner) {
                    (Some(datum), _) => (names.intern_memory(datum.name(), range)?, datum.meaning),
                    (None, Owner::Local { thread, local }) => {
                        let part = self.locals.part(local, start, u64::from(len));
                        let name = self.locals.name(thread, local, &part);
                        (names.intern_memory(name, range)?, part.meaning)
                    }
                    (None, Owner::Allocation { made, instance, call }) => {
                        let site = self.location(made.site, names)?;
                        let ty = self.heap_type(call, area.limit - area.base, symbols);
                        let part = ty.part(start, u64::from(len));
                        let name = heap_name(ty, site, instance, &part);
                        (names.intern_memory(name, range)?, part.meaning)
                    }
                    (None, Owner::Library { name }) => {
                        let object = Object::Named(&self.kept[name as usize]);
                        (names.intern_memory(ObjectName::at(object, start), range)?, Meaning::Bits)
                    }
                    (None, _) => {
                        let descriptor = descriptor(address);
                        let name = match &descriptor {
                            Some((text, again)) => {
                                let apart = Apart { again: *again, ..Apart::default() };
                                ObjectName { apart, ..ObjectName::of(Object::Named(text)) }
                            }
                            None => self.name(address, area),
                        };
                        (names.intern_memory(name, range)?, Meaning::Bits)
                    }
                };
                self.variables.insert(range, (variable, meaning));
                (variable, meaning)
            }
        };
        let overruns = area.end - address < u64::from(size);
        let on_stack = matches!(area.owner, Owner::Stack { .. } | Owner::Local { .. });
        let known = KnownVariable { variable, overruns, meaning, on_stack };
        if area.freed.is_some() {
            return Ok((known, Some(area)));
        }
        if let Holds::UntilReturn { thread, depth } = holds {
            self.locals.touch(thread, depth, address, size);
        }
        if holds != Holds::Once {
            self.pages.remember(address, size, known);
        }
        Ok((known, None))
    }

    /// What tells each variable from others, by its number, in all runs in which its threads do the same: its address, or how far it is
    /// from where its stack begins to grow.
    pub(super) fn identities(&self) -> Vec<u64> {
        /// No address is so high.
        const ON_A_STACK: u64 = 1 << 63;
        let mut identities = Vec::new();
        for (range, variable) in self.variables() {
            let address = self.areas.base(range.region).wrapping_add(range.start);
            let stack = self.stacks.iter().rev().find(|&&(start, end)| (start..end).contains(&address));
            let identity = stack.map_or(address, |&(_, end)| ON_A_STACK | (end - address));
            if identities.len() <= variable as usize {
                identities.resize(variable as usize + 1, 0);
            }
            identities[variable as usize] = identity;
        }
        identities
    }

    /// Every variable that has a name.
    pub(super) fn variables(&self) -> impl Iterator<Item = (ByteRange, u32)> + '_ {
        self.variables.iter().map(|(range, (variable, _))| (*range, *variable))
    }

    /// What a lock or the like at an address is, told to somebody who names it.
    pub(super) fn named<T>(
        &mut self,
        address: u64,
        symbols: &Symbols,
        names: &mut Names,
        tell: impl FnOnce(&mut Names, ObjectName<'_>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let area = self.areas.at(address);
        if let Owner::Local { thread, local } = area.owner {
            let part = self.locals.part(local, address - area.base, 0);
            return tell(names, self.locals.name(thread, local, &part));
        }
        if let Owner::Allocation { made, instance, call } = area.owner {
            let site = self.location(made.site, names)?;
            let ty = self.heap_type(call, area.limit - area.base, symbols);
            let part = ty.object(address - area.base);
            return tell(names, heap_name(ty, site, instance, &part));
        }
        if let Owner::Library { name } = area.owner {
            return tell(names, ObjectName::at(Object::Named(&self.kept[name as usize]), address - area.base));
        }
        if area.owner != Owner::Module {
            let name = self.name(address, area);
            return tell(names, name);
        }
        match symbols.object(address) {
            Some(datum) => tell(names, datum.name()),
            None => tell(names, ObjectName::of(Object::Unnamed { address })),
        }
    }

    /// What is called by its address or place, for want of anything better.
    fn name(&self, address: u64, area: Area) -> ObjectName<'static> {
        match area.owner {
            Owner::Stack { thread } => {
                let object = Object::Stack { thread: ThreadId::new(thread as usize), local: None };
                // Counted from where the stack begins to grow: the same in every run.
                ObjectName::at(object, area.limit.saturating_sub(address))
            }
            _ => ObjectName::of(Object::Memory { address }),
        }
    }

    /// What so many bytes are that a call allocates.
    fn heap_type(&mut self, call: u32, size: u64, symbols: &Symbols) -> &HeapType {
        let by = self.calls[call as usize];
        self.types.entry((call, size)).or_insert_with(|| symbols.heap_type(by, size))
    }

    /// A site as a location of the trace.
    pub(super) fn location(&mut self, site: u32, names: &mut Names) -> Result<LocId, Problem> {
        let site = &mut self.sites[site as usize];
        let location = match site.location {
            Some(location) => location,
            None => {
                let OwnLine { text, function, source } = &site.line;
                names.intern_source_location(text, function, source)?
            }
        };
        site.location = Some(location);
        Ok(location)
    }
}

/// A part of a block, to the trace.
fn heap_name<'a>(ty: &'a HeapType, site: LocId, ordinal: u32, part: &'a LocalPart) -> ObjectName<'a> {
    let object = Object::Heap { type_name: Some(&ty.name), site, ordinal };
    ObjectName { path: &part.path, ..ObjectName::at(object, part.offset) }
}
