//! Native programs: starting them under the runtime, and turning what they did into traces.
//!
//! ```text
//! examine ─▶ launch (library, plan) ─▶ log_file ─▶ convert (symbols) ─▶ trace + recording
//! ```

pub(crate) mod convert;
pub(crate) mod examine;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod log_file;
pub(crate) mod recording;
mod symbols;
