//! Trace files: STD text in and out, `.portent` in and out, Parquet out.

mod std_read;
mod std_write;

pub use std_read::{LINE_LIMIT, StdReader};
pub use std_write::{Dialect, StdWriter};
