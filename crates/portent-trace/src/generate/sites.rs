//! Source locations: each operation on each object has one to three places in the code.
//!
//! Objects far apart share places, as the elements of an array do, so the table stays small however many objects there are.

use crate::error::Problem;
use crate::generate::config::{Config, Locations};
use crate::ids::LocId;
use crate::input::InputOp;
use crate::names::{Names, ObjectClass};

/// Objects that have places of their own; the next ones share theirs.
const OBJECTS: u32 = 64;
const SITES: u32 = 3;
/// Operation codes without memory orders.
const OPS: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Sites {
    /// Per operation: where its places start in `locs`, and for how many objects it has places.
    ops: [(u32, u32); OPS],
    locs: Vec<LocId>,
}

fn row(op: InputOp) -> usize {
    usize::from(op.code() >> 3)
}

impl Sites {
    /// Places for every operation on the objects that `names` has.
    pub(super) fn new(config: &Config, names: &mut Names) -> Result<Self, Problem> {
        let mut sites = Self { ops: [(0, 1); OPS], locs: Vec::new() };
        for op in InputOp::all().filter(|op| op.code() & 7 == 0) {
            let count = match op.class() {
                ObjectClass::None => OBJECTS,
                class => (names.count(class) as u32).min(OBJECTS),
            };
            sites.ops[row(op)] = (sites.locs.len() as u32, count.max(1));
            for object in 0..count {
                for site in 0..SITES {
                    let loc = match config.locations {
                        Locations::Numbers => {
                            let number = 1 + sites.locs.len() as u64;
                            LocId::from_number(number).unwrap_or(LocId::from_bits(0))
                        }
                        Locations::Named => named(names, row(op) as u32, object, site)?,
                    };
                    sites.locs.push(loc);
                }
            }
        }
        Ok(sites)
    }

    /// How many places the operation on the object has: 1 to 3.
    #[inline]
    fn count(op: usize, object: u32) -> u32 {
        // Any fixed mixture will do, as long as neighbours differ.
        1 + (object.wrapping_mul(0x9e37_79b9) >> 13).wrapping_add(op as u32) % SITES
    }

    /// One of the places of the operation on the object, chosen by `bits`.
    #[inline]
    pub(super) fn pick(&self, op: InputOp, object: u32, bits: u32) -> LocId {
        let row = row(op);
        let (start, count) = self.ops[row];
        let object = if object < count { object } else { object % count };
        let site = (u64::from(bits) * u64::from(Self::count(row, object))) >> 32;
        self.locs[(start + object * SITES) as usize + site as usize]
    }
}

/// A place in a function that works on a few neighbouring objects.
fn named(names: &mut Names, op: u32, object: u32, site: u32) -> Result<LocId, Problem> {
    const FILES: [&str; 4] = ["main.c", "queue.c", "worker.c", "cache.c"];
    const VERBS: [&str; 5] = ["init", "update", "lookup", "flush", "process"];
    let function = object / 4;
    let file = FILES[(function % 4) as usize];
    let verb = VERBS[((op + site) % 5) as usize];
    let line = 10 + function * 600 + (object % 4) * 140 + op + site * 40;
    names.intern_location_in(&format!("{file}:{line}"), &format!("{verb}_{function}"))
}
