//! Which variable an access is, which object a lock is, and what they are called.
//!
//! A variable is a byte range of a region; a region is one object that keeps its identity (see [`super::areas`]). Names
//! say what a reader of a report can use: the global and its member, where memory was allocated and the how-manieth time,
//! whose stack it is. One name stands for one range: where two would get the same, the later one gets more.

use super::areas::{Area, Areas, Owner};
use super::pages::{KnownVariable, Pages};
use crate::symbols::{Module, Symbols};
use portent_trace::{ByteRange, Names, ObjectClass, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

/// A place where memory is allocated.
#[derive(Debug)]
struct Site {
    text: String,
    instances: u32,
}

/// The memory of the program.
pub(super) struct Memory {
    areas: Areas,
    pub(super) pages: Pages,
    variables: FxHashMap<ByteRange, (u32, bool)>,
    sites: Vec<Site>,
    site_of: FxHashMap<String, u32>,
    /// Pages on which memory without an owner was accessed.
    unowned: FxHashSet<u64>,
    thread_names: Vec<String>,
}

/// Accesses longer than this are never remembered, so none that begins further away can be wrong.
const REACH: u64 = 4096;

impl Memory {
    pub(super) fn new(thread_names: Vec<String>) -> Memory {
        Memory {
            areas: Areas::new(),
            pages: Pages::new(),
            variables: FxHashMap::default(),
            sites: Vec::new(),
            site_of: FxHashMap::default(),
            unowned: FxHashSet::default(),
            thread_names,
        }
    }

    pub(super) fn load(&mut self, module: &Module) {
        self.take(module.start, module.end, Owner::Module);
    }
    pub(super) fn stack(&mut self, thread: u64, start: u64, end: u64) {
        if start < end {
            self.take(start, end, Owner::Stack { thread: thread as u32 });
        }
    }

    /// The number of an allocation site, by what it is called.
    pub(super) fn site(&mut self, text: &str) -> u32 {
        if let Some(&site) = self.site_of.get(text) {
            return site;
        }
        let site = self.sites.len() as u32;
        self.sites.push(Site { text: text.to_owned(), instances: 0 });
        self.site_of.insert(text.to_owned(), site);
        site
    }

    pub(super) fn allocate(&mut self, address: u64, size: u64, site: u32) {
        let instances = &mut self.sites[site as usize].instances;
        *instances += 1;
        let owner = Owner::Allocation { site, instance: *instances };
        self.take(address, address.saturating_add(size), owner);
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

    /// The variable that an access of `size` bytes at `address` is, looked up the slow way.
    #[cold]
    pub(super) fn find(
        &mut self,
        address: u64,
        size: u32,
        symbols: &Symbols,
        names: &mut Names,
    ) -> Result<KnownVariable, Problem> {
        let area = self.areas.at(address);
        if area.owner == Owner::Unknown {
            self.unowned.insert(address >> 12);
        }
        let start = address - area.base;
        // The very end of the address space: nothing can be there, and no range may go beyond.
        let len = u64::from(size).min(u64::MAX - start).max(1) as u32;
        let range = ByteRange { region: area.region, start, len };
        let (variable, signed) = match self.variables.get(&range) {
            Some(&known) => known,
            None => {
                let (name, signed) = self.name(address, u64::from(len), area, symbols);
                let name = free_name(names, name, range, address);
                let variable = names.intern_range(name.as_bytes(), range)?;
                self.variables.insert(range, (variable, signed));
                (variable, signed)
            }
        };
        let overruns = area.end - address < u64::from(size);
        let on_stack = matches!(area.owner, Owner::Stack { .. });
        let known = KnownVariable { variable, overruns, signed, on_stack };
        self.pages.remember(address, size, known);
        Ok(known)
    }

    /// Which object an address is: its region and where it is in that.
    pub(super) fn object(&mut self, address: u64) -> (u32, u64) {
        let area = self.areas.at(address);
        (area.region, address - area.base)
    }

    /// What a lock or the like at an address is called.
    pub(super) fn object_name(&mut self, address: u64, symbols: &Symbols) -> String {
        let area = self.areas.at(address);
        match area.owner {
            Owner::Module => symbols.object(address).unwrap_or_else(|| format!("{address:#x}")),
            _ => self.name(address, 1, area, symbols).0,
        }
    }

    fn name(&self, address: u64, len: u64, area: Area, symbols: &Symbols) -> (String, bool) {
        let offset = address - area.base;
        let plus = if offset > 0 { format!("+{offset}") } else { String::new() };
        match area.owner {
            Owner::Unknown => (format!("memory {address:#x}"), false),
            Owner::Module => match symbols.datum(address, len) {
                Some(datum) => (datum.name, datum.signed),
                None => (format!("memory {address:#x}"), false),
            },
            Owner::Allocation { site, instance } => {
                (format!("heap({})#{instance}{plus}", self.sites[site as usize].text), false)
            }
            Owner::Stack { thread } => {
                let name = self.thread_names.get(thread as usize).map_or("?", |name| name);
                // Counted from where the stack begins to grow: the same in every run.
                (format!("stack({name})+{}", area.limit.saturating_sub(address)), false)
            }
        }
    }
}

/// A name that no other range has.
fn free_name(names: &Names, name: String, range: ByteRange, address: u64) -> String {
    let table = names.table(ObjectClass::Variable);
    let Some(taken) = table.lookup(name.as_bytes()) else { return name };
    let other = names.range(taken);
    let same_start = other.is_some_and(|other| (other.region, other.start) == (range.region, range.start));
    let longer = if same_start { format!("{name}:{}", range.len) } else { format!("{name}@{address:#x}") };
    if table.lookup(longer.as_bytes()).is_none() {
        return longer;
    }
    let longest = format!("{name}@{address:#x}:{}", range.len);
    match table.lookup(longest.as_bytes()) {
        None => longest,
        // Memory that belonged to somebody else before; the number of the region is new.
        Some(_) => format!("{longest}#{}", range.region),
    }
}
