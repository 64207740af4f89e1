//! Little programs: a language of locks, tries, atomics, accesses, branches and loops, and what can happen in them.
//!
//! `machine` is what instructions do, `runner` runs a program under a plan, as a [`portent_search::Subject`]; `truth` visits every state
//! there is and knows nothing of traces or engines; `generate` makes programs by chance.

pub(crate) mod generate;
pub(crate) mod machine;
pub(crate) mod runner;
pub(crate) mod truth;
