//! One module per command: each gets its arguments and returns its exit status, or why it failed.

pub(crate) mod cc;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod generate;
pub(crate) mod knobs;
pub(crate) mod predict;
mod predict_json;
mod predict_text;
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
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(printable(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// JSON that is safe to show: the control characters that JSON itself lets through, as JSON escapes.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => text.push(c),
        }
    }
    text
}
