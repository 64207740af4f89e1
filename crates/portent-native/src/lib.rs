//! Native programs: building them so that they can be recorded, running them under a plan, and turning what they did into
//! traces.
//!
//! ```text
//! build (compiler, request, flags, response): the compiler, with instrumentation and the runtime added
//! run (examine ─▶ launch, library, log_file) ─▶ convert (symbols) ─▶ record: trace + recording
//! record + schedule (finding) ─▶ replay (run, convert) ─▶ what was seen
//! ```
//!
//! Recording and replaying need Linux; on other systems there is only [`build`], which says so.

// Mapping a file is the one exception, in run/log_file.rs.
#![deny(unsafe_code)]

pub mod build;
#[cfg(target_os = "linux")]
pub mod convert;
mod error;
#[cfg(target_os = "linux")]
pub mod record;
#[cfg(target_os = "linux")]
pub mod replay;
pub mod run;
#[cfg(target_os = "linux")]
pub mod symbols;

pub use error::Error;
#[cfg(target_os = "linux")]
pub use symbols::declarations;
