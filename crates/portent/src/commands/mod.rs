//! One module per command: each gets its arguments and returns its exit status, or why it failed.

pub(crate) mod cc;
#[cfg(target_os = "linux")]
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
#[cfg(target_os = "linux")]
pub(crate) mod demo;
pub(crate) mod generate;
pub(crate) mod knobs;
pub(crate) mod man;
pub(crate) mod predict;
#[cfg(target_os = "linux")]
pub(crate) mod record;
#[cfg(target_os = "linux")]
mod record_text;
#[cfg(target_os = "linux")]
pub(crate) mod replay;
pub(crate) mod stats;
mod stats_text;
pub(crate) mod validate;

use crate::failure::Failure;
use crate::terminal::printable;
use std::io::Write;

/// Writes results to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_as_it_is(&printable(text))
}

/// Writes results that may hold colours, and names only as [`printable`] text, to standard output.
pub(crate) fn print_as_it_is(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
