//! The traces that commands read and write: files or the standard streams, named in every message.

use crate::failure::Failure;
use crate::terminal;
use portent_trace::format::{self, Dialect, Format, OpenOptions, TraceSink};
use portent_trace::{InputSource, Layout, TraceError};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A trace format, as `--format` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FormatName {
    /// RAPID's text format, with Portent's extensions
    Std,
    /// Portent's own format: compact, seekable, crash-safe
    Portent,
    /// Tables for data tools; can be written, not read
    Parquet,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Std => Format::Std,
            FormatName::Portent => Format::Portent,
            FormatName::Parquet => Format::Parquet,
        }
    }
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The format an output is to have: what was asked for, else what its ending says, else text.
pub(crate) fn output_format(path: &Path, asked: Option<FormatName>) -> Result<Format, Failure> {
    match asked {
        Some(format) => Ok(format.into()),
        None if is_standard(path) => Ok(Format::Std),
        None => Ok(Format::from_path(path)?),
    }
}

/// Starts a trace file, or a trace on standard output for `-`.
pub(crate) fn create(
    path: &Path,
    format: Format,
    dialect: Dialect,
    layout: Layout,
) -> Result<Box<dyn TraceSink>, Failure> {
    let sink = if is_standard(path) {
        let out = Box::new(std::io::stdout());
        format::create_on(out, format, dialect, layout)
    } else {
        format::create(path, format, dialect, layout)
    };
    sink.map_err(write_error)
}

/// Why an output could not be written; files name themselves.
pub(crate) fn write_error(error: TraceError) -> Failure {
    Failure::Trace(error.in_input("standard output"))
}

/// A trace being read.
pub(crate) struct Input {
    name: String,
    /// Where it is, if it is a file.
    path: Option<PathBuf>,
    source: Box<dyn InputSource>,
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, salvage: bool) -> Result<Input, Failure> {
        let options = OpenOptions { salvage };
        Ok(if is_standard(path) {
            Input { name: "standard input".into(), path: None, source: format::open_stdin(options)? }
        } else {
            let source = format::open(path, options)?;
            Input { name: path.display().to_string(), path: Some(path.to_owned()), source }
        })
    }
    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
    pub(crate) fn source(&self) -> &dyn InputSource {
        &*self.source
    }
    /// Works on the source; errors name the input.
    pub(crate) fn named<T>(
        &mut self,
        work: impl FnOnce(&mut dyn InputSource) -> Result<T, TraceError>,
    ) -> Result<T, Failure> {
        work(&mut *self.source).map_err(|error| Failure::Trace(error.in_input(&self.name)))
    }
    /// What is attached to the trace, such as how it was recorded. Only files in the `.portent` format have such things.
    pub(crate) fn attachments(&self) -> BTreeMap<u8, Vec<u8>> {
        let file = self.path.as_ref().and_then(|path| File::open(path).ok());
        file.and_then(|file| format::attachments(file).ok()).unwrap_or_default()
    }
    /// Says what a truncated input lost, once it is at its end; whether it lost something.
    pub(crate) fn warn_if_truncated(&self) -> bool {
        let missing = self.source.missing();
        if let Some(missing) = &missing {
            terminal::message("warning", &format!("{}: {missing}", self.name));
        }
        missing.is_some()
    }
}
