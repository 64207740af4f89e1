//! Native programs: building them so that they can be recorded, running them under a plan, and turning what they did into
//! traces.
//!
//! ```text
//! build (compiler, request, response, flags): the compiler, with instrumentation and the runtime added
//! run (examine ─▶ launch: descriptors, family, library, log_file, output) ─▶ convert (symbols) ─▶ record: events, names, outcome, recording
//! ```
//!
//! What `convert` and `record` read from the files of a program, `files` keeps for the next run. `private`: directories that nobody else may
//! have prepared.
//!
//! [`NativeProgram`](record::NativeProgram) is the one recorder: it runs a program under a plan and writes what it did to any
//! sink. It is a [`Program`](portent_explore::Program), so that the loop and its replays work on it.
//!
//! Recording needs Linux; on other systems there is only [`build`], which says so.

// The exceptions: mapping a program's file, in files.rs, descriptors by their numbers, in run/descriptors.rs, and
// what happens between `fork` and `exec`, in run/launch.rs.
#![deny(unsafe_code)]

pub mod build;
#[cfg(target_os = "linux")]
pub mod convert;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod files;
mod private;
#[cfg(target_os = "linux")]
pub mod record;
pub mod run;
#[cfg(target_os = "linux")]
pub mod symbols;
#[cfg(target_os = "linux")]
mod text;

use portent_explore::Error;
