//! Native programs: building them so that they can be recorded, starting them under the runtime, and turning what they
//! did into traces.
//!
//! ```text
//! compiler (request, flags, response)
//! examine ─▶ launch (library, plan) ─▶ log_file ─▶ convert (symbols) ─▶ trace + recording
//! recording + schedule (finding) ─▶ replay (launch, convert) ─▶ what was seen
//! ```

pub(crate) mod compiler;
#[cfg(target_os = "linux")]
pub(crate) mod convert;
#[cfg(target_os = "linux")]
pub(crate) mod examine;
#[cfg(target_os = "linux")]
pub(crate) mod finding;
pub(crate) mod flags;
#[cfg(target_os = "linux")]
pub(crate) mod launch;
pub(crate) mod library;
#[cfg(target_os = "linux")]
pub(crate) mod log_file;
#[cfg(target_os = "linux")]
pub(crate) mod recording;
#[cfg(target_os = "linux")]
pub(crate) mod replay;
mod request;
mod response;
#[cfg(target_os = "linux")]
pub(crate) mod schedule;
#[cfg(target_os = "linux")]
pub(crate) mod subject;
#[cfg(target_os = "linux")]
mod symbols;
#[cfg(target_os = "linux")]
pub(crate) use symbols::declarations;
