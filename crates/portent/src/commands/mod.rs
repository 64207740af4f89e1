//! One module per command: each gets its arguments and returns its exit status, or why it failed.

pub(crate) mod cc;
#[cfg(target_os = "linux")]
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
#[cfg(target_os = "linux")]
pub(crate) mod demo;
mod drawing;
#[cfg(target_os = "linux")]
mod exploring;
pub(crate) mod generate;
pub(crate) mod man;
pub(crate) mod predict;
#[cfg(target_os = "linux")]
pub(crate) mod record;
#[cfg(target_os = "linux")]
mod record_text;
#[cfg(target_os = "linux")]
pub(crate) mod recover;
#[cfg(target_os = "linux")]
pub(crate) mod replay;
pub(crate) mod spec;
pub(crate) mod stats;
mod stats_text;
#[cfg(target_os = "linux")]
mod suites;
#[cfg(target_os = "linux")]
mod tree;
pub(crate) mod validate;
#[cfg(target_os = "linux")]
pub(crate) mod watch;
#[cfg(target_os = "linux")]
mod watching;

pub(crate) use crate::terminal::{print, print_as_it_is};
