//! The runtime that Portent loads into a program, as seen from the command: the library itself, embedded, and the two
//! formats that both sides share.
//!
//! - [`log`]: what the runtime writes while a program runs: the recording.
//! - [`plan`]: what the command tells the runtime: how to schedule, and what to look for.
//!
//! The library's own sources are in `inside/`; build.rs compiles them, with nothing but rustc, into a shared library.
//! They include these two modules by path, so that both sides always agree. Nothing here prints, and nothing here needs
//! a crate beyond std.

pub mod log;
pub mod plan;

/// The runtime, as the bytes of a shared library for Linux on x86-64; empty on other systems.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libportent_runtime.so"));

/// A hash of [`LIBRARY`], in hexadecimal: a name for it. It finds accidents, not attacks: compare contents.
pub static LIBRARY_HASH: &str = env!("PORTENT_RUNTIME_HASH");
