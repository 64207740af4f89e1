//! All tests of the crate from the outside, in one program: it is linked once, and the longest tests share the cores.

mod behaviour;
mod defects;
mod engines;
mod filters;
mod final_values;
mod frees;
mod lattice;
mod law;
mod lost_updates;
mod online;
mod oracle;
mod other_branch;
mod other_instances;
mod peers;
mod reference;
mod relaxed;
mod steps;
mod stuck;
mod sync_preserving;
mod unshared;
mod worked;
