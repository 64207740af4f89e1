//! What could happen: the reorderings of a trace, the goals they may reach, and proof of either.
//!
//! A [`Goal`] is what a bug looks like in a reordering (docs/src/internals/semantics.md §3); a [`Schedule`] that reaches it is a witness.
//! [`check`](check()) decides whether a schedule is one, and shares nothing with any engine. [`brute`] decides small traces by
//! enumeration and is the oracle that every engine is tested against.

#![forbid(unsafe_code)]

pub mod brute;
mod check;
mod conditions;
mod divergence;
pub mod engine;
mod goal;
mod read_rule;
mod semaphores;

pub use check::{Checker, Executed, GoesOn, Numbers, Rejected, check};
pub use conditions::Naps;
pub use divergence::{At, Divergence, Outcome};
pub use goal::{Goal, Kind, Model, Schedule, Stretch, Unknown, Verdict, Writer};
pub use read_rule::{ReadRule, Recorded};
pub use semaphores::Posts;
