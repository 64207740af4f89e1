//! All tests of the crate from the outside, in one program that is linked once.

mod blocks;
mod common;
mod formulas;
mod fuzz_regressions;
mod open_and_create;
mod portent_damage;
mod portent_golden;
mod portent_roundtrip;
mod readers;
