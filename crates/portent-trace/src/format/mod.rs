//! Trace files: STD text in and out, `.portent` in and out, Parquet out.
//!
//! [`open`] and [`open_stdin`] read a trace of any format; [`create`] writes one. The formats are specified in
//! docs/src/reference/std-format.md and docs/src/reference/trace-format.md.

mod create;
mod open;
#[cfg(feature = "parquet")]
mod parquet;
mod portent;
mod std_read;
mod std_write;

pub use self::portent::{FORMULAS, MAGIC, PortentReader, PortentWriter, RECORDING, VERSION, attachments};
pub use create::{TraceSink, create, create_on, open_without_waiting};
pub use open::{OpenOptions, open, open_stdin, open_stream};
#[cfg(feature = "parquet")]
pub use parquet::ParquetWriter;
pub(crate) use std_read::parse_call;
pub use std_read::{LINE_LIMIT, StdReader};
pub use std_write::{Dialect, StdWriter};

use crate::error::{Problem, TraceError};
use std::path::Path;

/// The formats of trace files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RAPID's text format, with Portent's extensions: `.std`.
    Std,
    /// Portent's own: `.portent`.
    Portent,
    /// For data tools, only written: `.parquet`.
    Parquet,
}

impl Format {
    /// The format that the ending of a path stands for.
    pub fn from_path(path: &Path) -> Result<Format, TraceError> {
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("std" | "txt") => Ok(Format::Std),
            Some("portent") => Ok(Format::Portent),
            Some("parquet") => Ok(Format::Parquet),
            _ => Err(TraceError::whole(Problem::UnknownFormat(path.display().to_string()))),
        }
    }
}
