//! Writing a trace of any format. A file appears under its name only once it is complete.

use super::Format;
use super::portent::PortentWriter;
use super::std_write::{Dialect, StdWriter};
use crate::error::{Problem, TraceError};
use crate::input::InputBatch;
use crate::lower::Layout;
use crate::names::Names;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Takes input events, batch by batch.
pub trait TraceSink {
    /// Writes the events of a batch, whose ids are numbers in `names`. Names may have been added since the last batch.
    fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError>;
    /// Keeps something about the trace as a whole with it (see [`super::PortentWriter::attach`]); formats that cannot
    /// leave it out.
    fn attach(&mut self, _kind: u8, _bytes: &[u8]) -> Result<(), TraceError> {
        Ok(())
    }
    /// Ends the output, and says what was dropped or changed: one line per kind.
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError>;
}

/// Writes a trace to any output. `dialect` and `layout` matter to STD text only.
pub fn create_on(
    out: Box<dyn Write + Send>,
    format: Format,
    dialect: Dialect,
    layout: Layout,
) -> Result<Box<dyn TraceSink>, TraceError> {
    match format {
        Format::Std => Ok(Box::new(StdWriter::new(BufWriter::new(out), dialect, layout))),
        Format::Portent => Ok(Box::new(PortentWriter::new(out)?)),
        #[cfg(feature = "parquet")]
        Format::Parquet => Ok(Box::new(super::ParquetWriter::new(out)?)),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(TraceError::whole(Problem::NotBuilt("Parquet"))),
    }
}

/// Writes a trace to a file.
///
/// It is written beside its place and moved there by [`TraceSink::finish`], so a conversion that fails neither harms an
/// older file nor leaves half of a new one. Devices and pipes are written to directly.
pub fn create(path: &Path, format: Format, dialect: Dialect, layout: Layout) -> Result<Box<dyn TraceSink>, TraceError> {
    let name = path.display().to_string();
    create_file(path, format, dialect, layout, &name).map_err(|error| error.in_input(&name))
}

fn create_file(
    path: &Path,
    format: Format,
    dialect: Dialect,
    layout: Layout,
    name: &str,
) -> Result<Box<dyn TraceSink>, TraceError> {
    let kind = path.metadata().ok().map(|found| found.file_type());
    if kind.is_some_and(|kind| kind.is_dir()) {
        return Err(TraceError::whole(Problem::Directory));
    }
    if kind.is_some_and(|kind| !kind.is_file()) {
        let sink = create_on(Box::new(open_without_waiting(path)?), format, dialect, layout)?;
        return Ok(Box::new(FileSink { sink, target: None, name: name.to_owned() }));
    }
    // A link stays a link: what it points to is replaced.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = temporary(folder)?;
    let sink = create_on(Box::new(file.as_file().try_clone()?), format, dialect, layout)?;
    Ok(Box::new(FileSink { sink, target: Some((file, place)), name: name.to_owned() }))
}

/// Opens what is no file for writing: a pipe that nobody reads is an error, where opening it would wait for ever.
pub fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;
        const NONBLOCK: i32 = 0o4000;
        const NO_SUCH_DEVICE_OR_ADDRESS: i32 = 6;
        let nobody = "nobody reads from this pipe: start the reader first";
        let tried = OpenOptions::new().write(true).custom_flags(NONBLOCK).open(path);
        let _there = tried.map_err(|error| match error.raw_os_error() {
            Some(NO_SUCH_DEVICE_OR_ADDRESS) => std::io::Error::new(std::io::ErrorKind::NotConnected, nobody),
            _ => error,
        })?;
        // Its reader is there as long as `_there` is, so this one does not wait, and its writes do.
        options.open(path)
    }
    #[cfg(not(target_os = "linux"))]
    options.open(path)
}

fn temporary(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".portent-");
    #[cfg(unix)]
    let builder = {
        // Like any new file: the mask of the process decides who may read it.
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        builder.permissions(permissions)
    };
    // The name of the temporary file means nothing to the user: errors are told without it.
    folder.metadata()?;
    builder.tempfile_in(folder).map_err(|error| error.kind().into())
}

struct FileSink {
    sink: Box<dyn TraceSink>,
    /// The file that is written, which goes away unless it is moved, and where to move it.
    target: Option<(NamedTempFile, PathBuf)>,
    name: String,
}

impl TraceSink for FileSink {
    fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        self.sink.write(names, batch).map_err(|error| error.in_input(&self.name))
    }
    fn attach(&mut self, kind: u8, bytes: &[u8]) -> Result<(), TraceError> {
        self.sink.attach(kind, bytes).map_err(|error| error.in_input(&self.name))
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        let Self { sink, target, name } = *self;
        let notes = sink.finish().map_err(|error| error.in_input(&name))?;
        if let Some((file, place)) = target {
            file.persist(place).map_err(|error| TraceError::whole(error.error).in_input(&name))?;
        }
        Ok(notes)
    }
}
