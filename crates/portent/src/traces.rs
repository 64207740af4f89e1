//! The traces that commands read and write: files or the standard streams, named in every message.

use crate::failure::Failure;
use crate::terminal::{self, Unit};
use portent_trace::format::{Dialect, StdReader, StdWriter};
use portent_trace::{InputBatch, InputSource, Layout, Names, Problem, TraceError};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// A trace format, as `--format` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FormatName {
    /// RAPID's text format, with Portent's extensions
    Std,
    /// Portent's own format: compact, seekable, crash-safe
    Portent,
    /// Tables for data tools (write only)
    Parquet,
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The format an output is to have: what was asked for, else what its ending says.
pub(crate) fn output_format(path: &Path, asked: Option<FormatName>) -> Result<FormatName, Failure> {
    if is_standard(path) {
        return match asked {
            None | Some(FormatName::Std) => Ok(FormatName::Std),
            Some(_) => Err(Failure::usage(
                "only STD text can be written to standard output",
                "name a file: the other formats are finished by going back to their beginning",
            )),
        };
    }
    if let Some(format) = asked {
        return Ok(format);
    }
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("std" | "txt") => Ok(FormatName::Std),
        Some("portent") => Ok(FormatName::Portent),
        Some("parquet") => Ok(FormatName::Parquet),
        _ => Err(Failure::Trace(TraceError::whole(Problem::UnknownFormat(path.display().to_string())))),
    }
}

/// A trace being read.
pub(crate) struct Input {
    name: String,
    source: Box<dyn InputSource>,
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, _salvage: bool) -> Result<Input, Failure> {
        let name = if is_standard(path) { "standard input".into() } else { path.display().to_string() };
        let source: Box<dyn InputSource> = if is_standard(path) {
            Box::new(StdReader::new(std::io::stdin()))
        } else {
            Box::new(StdReader::new(std::fs::File::open(path).map_err(|e| TraceError::from(e).in_input(&name))?))
        };
        Ok(Input { name, source })
    }
    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
    /// What its progress counts.
    pub(crate) fn unit(&self) -> Unit {
        Unit::Bytes
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
    /// Says what a truncated input lost, once it is at its end.
    pub(crate) fn warn_if_truncated(&self) {
        if let Some(missing) = self.source.missing() {
            terminal::message("warning", &format!("{}: {missing}", self.name));
        }
    }
}

/// A trace being written. A file appears under its name only when it is complete.
pub(crate) struct Output {
    name: String,
    sink: StdWriter<Box<dyn Write>>,
    /// The unfinished file and the name it is to have; `None` for streams and devices.
    pending: Option<(TempPath, PathBuf)>,
}

impl Output {
    /// Starts a file, or STD text on standard output for `-`.
    pub(crate) fn create(
        path: &Path,
        _format: FormatName,
        dialect: Dialect,
        layout: Layout,
    ) -> Result<Output, Failure> {
        let name = if is_standard(path) { "standard output".into() } else { path.display().to_string() };
        let sink = StdWriter::new(Box::new(BufWriter::new(std::io::stdout())) as Box<dyn Write>, dialect, layout);
        Ok(Output { name, sink, pending: None })
    }
    /// Writes the events of a batch.
    pub(crate) fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), Failure> {
        self.sink.write(names, batch).map_err(|error| named(error, &self.name))
    }
    /// Completes the trace; says what the format could not hold.
    pub(crate) fn finish(self, _names: &Names) -> Result<Vec<String>, Failure> {
        let notes = self.sink.finish().map_err(|error| named(error, &self.name))?;
        if let Some((unfinished, path)) = self.pending {
            unfinished.persist(path).map_err(|error| named(error.error.into(), &self.name))?;
        }
        Ok(notes)
    }
}

/// An error of an output: whatever file it happened in, the user knows it by this name.
fn named(mut error: TraceError, name: &str) -> Failure {
    error.input = Some(name.to_owned());
    Failure::Trace(error)
}
