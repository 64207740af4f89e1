//! All tests of the crate from the outside, in one program: it is linked once, and the longest tests share the cores.

mod agreement;
mod corpus;
mod divergences;
mod laws;
mod lost_updates;
mod lost_wakeups;
mod oracle;
mod other_side;
mod prefixes;
mod smt;
mod stuck;
mod symbolic;
