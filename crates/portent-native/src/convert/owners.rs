//! Which variable owns allocated memory, so that people are told `accounts[3].balance` and not the line that allocated it.
//!
//! A variable that debug information says is a pointer, and that was seen to hold the beginning of a block, is a holder of
//! it. Members of containers and smart pointers own what they hold, other pointers may just look at it: so the owner is the
//! only container or smart pointer outside of stacks, or else the only one on a stack, or else the only pointer. Where there
//! are several of the best kind, or where one let go of a block that somebody still has, nobody knows, and the block keeps the
//! name of the line that allocated it.

use super::Converter;
use super::areas::{Areas, Owner};
use portent_trace::{
    ApartBy, Local, Names, Object, ObjectClass, ObjectName, Owned, Problem, Through, own_parts, plain_function,
    site_text, which_of,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A trace has room for so many owners, and for one more every few events.
const OWNERS: u64 = 1 << 10;
const EVENTS_PER_OWNER: u64 = 128;

/// Objects that own each other are followed so far.
const DEPTH: u32 = 5;

/// What `std::make_shared` has before the object that its pointers point to.
const SHARED: u64 = 16;

/// A variable that held the beginning of a block.
#[derive(Clone, Copy, Debug)]
struct Holder {
    variable: u32,
    /// It held something else while the block was still there.
    left: bool,
    /// It points so far behind the beginning.
    offset: u64,
}

/// Who held what.
#[derive(Default)]
pub(super) struct Owners {
    /// Where blocks begin, or began.
    bases: FxHashSet<u64>,
    /// By variable: the address that it was last seen to hold, and the region of the block there.
    last: Vec<(i64, u32)>,
    held: FxHashMap<u32, Vec<Holder>>,
}

impl Owners {
    pub(super) fn allocated(&mut self, address: u64) {
        self.bases.insert(address);
    }

    /// A pointer was seen to hold an address.
    #[inline]
    pub(super) fn holds(&mut self, variable: u32, value: i64, areas: &mut Areas) {
        let at = variable as usize;
        if self.last.get(at).is_some_and(|&(last, _)| last == value) {
            return;
        }
        let address = value as u64;
        let is_base = self.bases.contains(&address) || self.bases.contains(&address.wrapping_sub(SHARED));
        if is_base || self.last.get(at).is_some_and(|&(_, region)| region != 0) {
            self.changed(variable, value, areas);
        }
    }

    #[cold]
    fn changed(&mut self, variable: u32, value: i64, areas: &mut Areas) {
        let at = variable as usize;
        if self.last.len() <= at {
            self.last.resize(at + 1, (0, 0));
        }
        let (before, region) = self.last[at];
        if region != 0 {
            let area = areas.at(before as u64);
            if area.region == region
                && area.freed.is_none()
                && let Some(holders) = self.held.get_mut(&region)
            {
                holders.iter_mut().filter(|holder| holder.variable == variable).for_each(|holder| holder.left = true);
            }
        }
        let area = areas.at(value as u64);
        let offset = (value as u64).wrapping_sub(area.base);
        let holds =
            matches!(area.owner, Owner::Allocation { .. }) && area.freed.is_none() && [0, SHARED].contains(&offset);
        self.last[at] = (value, if holds { area.region } else { 0 });
        if holds {
            let holders = self.held.entry(area.region).or_default();
            match holders.iter_mut().find(|holder| holder.variable == variable) {
                Some(_) => {}
                None => holders.push(Holder { variable, left: false, offset }),
            }
        }
    }
}

/// What is known of an owner, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    owner: String,
    behind: String,
    through: Through,
}

/// How good a holder is, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Container,
    LocalContainer,
    Pointer,
    LocalPointer,
}

impl Converter {
    /// Tells the trace who owns what, as far as that has turned out.
    pub(super) fn settle_owners(&mut self, events: u64) -> Result<(), Problem> {
        // A name in each block: all of a block have the same owner.
        let mut named: FxHashMap<u32, (ObjectClass, u32)> = FxHashMap::default();
        let of_sync = self.sync.named().map(|((class, region, _), id)| (region, (class, id)));
        let of_memory = self.memory.variables().map(|(range, id)| (range.region, (ObjectClass::Variable, id)));
        for (region, name) in of_sync.chain(of_memory).filter(|(region, _)| self.owners.held.contains_key(region)) {
            let one = named.entry(region).or_insert(name);
            *one = (*one).min(name);
        }
        let mut blocks: Vec<(u32, (ObjectClass, u32))> = named.iter().map(|(&region, &name)| (region, name)).collect();
        blocks.sort_unstable();
        blocks.truncate((OWNERS + events / EVENTS_PER_OWNER) as usize);
        let search = Search { owners: &self.owners, names: &self.names, named: &named };
        let found = blocks.iter().filter_map(|&(region, name)| Some((name, search.owner(region, DEPTH)?)));
        let found: Vec<_> = found.collect();
        for ((class, id), Found { owner, behind, through }) in found {
            let several = is_several(&self.names.object(class, id));
            self.names.own(class, id, &Owned { owner: &owner, behind: &behind, through, several })?;
        }
        Ok(())
    }
}

fn is_several(name: &ObjectName<'_>) -> bool {
    matches!(name.object, Object::Heap { type_name: Some(name), .. } if name.ends_with("[]"))
}

/// Looks for owners, when everything is known.
struct Search<'a> {
    owners: &'a Owners,
    names: &'a Names,
    named: &'a FxHashMap<u32, (ObjectClass, u32)>,
}

impl Search<'_> {
    /// The owner of a block, if there is only one.
    fn owner(&self, region: u32, depth: u32) -> Option<Found> {
        let depth = depth.checked_sub(1)?;
        let &(class, id) = self.named.get(&region)?;
        let block = self.names.object(class, id);
        let Object::Heap { site, .. } = block.object else { return None };
        let made_in = self.names.location(site).function.map(plain_function);
        let holders = self.owners.held.get(&region)?;
        let ranked = |holder: &Holder| {
            let name = self.names.object(ObjectClass::Variable, holder.variable);
            rank(&name, holder, made_in.as_deref()).map(|rank| (rank, *holder))
        };
        let ranked: Vec<(Rank, Holder)> = holders.iter().filter_map(ranked).collect();
        let best = ranked.iter().map(|(rank, _)| *rank).min()?;
        let of_best = ranked.iter().filter(|(rank, _)| *rank == best).map(|(_, holder)| holder);
        let mut owner: Option<Found> = None;
        let mut has_it = false;
        // A container has several pointers into its memory, some of which move.
        for holder in of_best {
            let text = self.text(holder, region, &block, depth)?;
            if owner.as_ref().is_some_and(|owner| !is_same(owner, &text)) {
                return None;
            }
            has_it |= !holder.left;
            owner = Some(owner.filter(|owner| owner.through <= text.through).unwrap_or(text));
        }
        owner.filter(|_| has_it)
    }

    /// What a block is called by one who holds it.
    fn text(&self, holder: &Holder, region: u32, block: &ObjectName<'_>, depth: u32) -> Option<Found> {
        let name = self.names.object(ObjectClass::Variable, holder.variable);
        let (own, inside) = own_parts(name.path);
        let through = through(inside, holder.offset, is_several(block));
        let (owner, mut behind) = match name.object {
            Object::Global { name } => (format!("{name}{own}"), String::new()),
            Object::Stack { local: Some(Local { function, name }), .. } => {
                let call = if function.ends_with(['}', ')']) { "" } else { "()" };
                (format!("{name}{own}"), format!(" in {function}{call}"))
            }
            Object::Heap { type_name, site, ordinal } => {
                let around = self.names.range(holder.variable)?.region;
                let above = if around == region { None } else { self.owner(around, depth) };
                match above {
                    // What a node of a container leads to is in the same container.
                    Some(above) if own.is_empty() && name.offset > 0 || own.is_empty() && !inside.is_empty() => {
                        return Some(Found { through: Through::Element, ..above });
                    }
                    Some(Found { owner, behind, through }) => {
                        let several = is_several(&name);
                        let above = Owned { owner: &owner, behind: &behind, through, several };
                        if through != Through::Pointer {
                            return None;
                        }
                        (above.part(own, 0), behind.clone())
                    }
                    None => {
                        // A plain pointer to one of a kind is a link as likely as not; an array is somebody's.
                        let owns = !inside.is_empty() || is_several(block);
                        let member = own.strip_prefix('.').filter(|_| owns)?;
                        let (type_name, site) = (type_name?, site_text(self.names, site));
                        let which = which_of(ordinal.into());
                        let behind = format!(" of {type_name} from {site}{which}");
                        (format!("{type_name}::{member}"), behind)
                    }
                }
            }
            _ => return None,
        };
        if let ApartBy::Nth(n) = name.apart.by {
            behind.push_str(&which_of(n));
        }
        Some(Found { owner, behind, through })
    }
}

fn is_same(one: &Found, other: &Found) -> bool {
    (&one.owner, &one.behind) == (&other.owner, &other.behind)
}

/// What a variable is to the block that it points to; nothing, if it is none of the author's, or an iterator.
fn rank(name: &ObjectName<'_>, holder: &Holder, made_in: Option<&str>) -> Option<Rank> {
    /// Members of iterators.
    const LOOKS: [&str; 6] = ["_M_current", "_M_cur", "_M_node", "_M_first", "_M_last", "_M_str"];
    let (_, inside) = own_parts(name.path);
    let first = inside.split('.').nth(1).unwrap_or_default();
    // The base of what `std::make_shared` makes is the count of its owners.
    if LOOKS.contains(&first) || (holder.offset == SHARED && !["_M_ptr", "ptr"].contains(&first)) {
        return None;
    }
    let owns = !inside.is_empty();
    match name.object {
        Object::Global { .. } | Object::Heap { .. } => Some(if owns { Rank::Container } else { Rank::Pointer }),
        Object::Stack { local: Some(Local { function, name }), .. } => {
            let is_own =
                !name.is_empty() && !name.starts_with("__") && name != "this" && !function.starts_with("std::");
            // Others are given pointers, to look at what they point to.
            let is_maker = made_in == Some(&*plain_function(function));
            match owns {
                true => is_own.then_some(Rank::LocalContainer),
                false => (is_own && is_maker).then_some(Rank::LocalPointer),
            }
        }
        _ => None,
    }
}

/// How the block is reached, by the member that holds it.
fn through(inside: &str, offset: u64, several: bool) -> Through {
    let last = inside.rsplit('.').next().unwrap_or_default();
    match last {
        "" | "_M_head_impl" | "_M_ptr" | "pointer" => Through::Pointer,
        "_M_pi" if offset == 0 => Through::Pointer,
        "_M_p" if inside.contains("_M_dataplus") => Through::Text,
        "_M_start" | "_M_finish" | "_M_end_of_storage" if several => Through::Pointer,
        "_M_buckets" | "_M_map" => Through::Inside,
        _ => Through::Element,
    }
}
