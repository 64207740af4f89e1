//! What the tests of several crates share. Nothing that is shipped depends on it.
//!
//! | module | what is in it |
//! |---|---|
//! | [`traces`] | random tiny traces by seed, and what a failing test says of one |
//! | [`parallel`] | a test's items spread over all cores |
//! | [`goals`] | what the oracle and the trace itself say of goals |
//! | [`dice`] | numbers by chance, the same for a seed everywhere |
//! | [`corpus`] | the traces of `tests/corpus` with their answers |
//! | [`scratch`] | a directory for one test |
//! | [`command`] | a command with a time limit, and what came of it |
//! | [`modules`] | which modules of a crate name which, and cycles among them |
//! | [`programs`] | the C and C++ programs of `tests/programs`, what is expected of them, and building them once |
//! | [`twins`] | the pairs of `tests/twins`: a program with a bug, and what must be said of it; the same program without |
//!
//! Everything panics on failure: a test has nobody else to tell.

#![forbid(unsafe_code)]

pub mod command;
pub mod corpus;
pub mod dice;
pub mod goals;
pub mod modules;
pub mod parallel;
pub mod programs;
pub mod scratch;
pub mod traces;
pub mod twins;

use std::path::PathBuf;

/// The root of the repository.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Says on standard error that a test checks nothing here. Not by `eprintln!`, which tests that pass keep to themselves.
pub fn skipped(test: &str, why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "SKIPPED: {test}: {why}");
}
