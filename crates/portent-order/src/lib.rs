//! What could happen: the reorderings of a trace, the goals they may reach, and proof of either.
//!
//! A [`Goal`] is what a bug looks like in a reordering (SEMANTICS §3); a [`Schedule`] that reaches it is a witness.
//! [`check`](check()) decides whether a schedule is one, and shares nothing with any engine. [`brute`] decides small traces by
//! enumeration and is the oracle that every engine is tested against.

#![forbid(unsafe_code)]

pub mod brute;
mod check;
pub mod engine;
mod goal;

pub use check::{Checker, Executed, Numbers, Rejected, check};
pub use goal::{Goal, Kind, Model, Run, Schedule, Unknown, Verdict, Writer};
