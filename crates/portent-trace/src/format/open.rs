//! Opening a trace of any format: what the file begins with decides, then its ending.

use super::portent::{MAGIC, PortentReader, read_full, spool};
use super::{Format, StdReader};
use crate::error::{Position, Problem, TraceError};
use crate::input::{InputBatch, InputSource, Progress};
use crate::names::Names;
use crate::symbolic::Formulas;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// How to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Read a damaged `.portent` file up to the damage instead of refusing it; [`InputSource::missing`] then says what
    /// was not read.
    pub salvage: bool,
}

/// How many bytes are looked at to recognise a format.
const SNIFFED: usize = 4096;

/// Opens the trace in a file.
pub fn open(path: &Path, options: OpenOptions) -> Result<Box<dyn InputSource>, TraceError> {
    let name = path.display().to_string();
    open_file(path, options, &name).map_err(|error| error.in_input(&name))
}

/// Opens the trace on standard input.
pub fn open_stdin(options: OpenOptions) -> Result<Box<dyn InputSource>, TraceError> {
    open_stream(std::io::stdin(), "standard input", options)
}

/// Opens the trace in a stream that cannot seek. A `.portent` stream is copied into a temporary file first.
pub fn open_stream(
    input: impl Read + 'static,
    name: &str,
    options: OpenOptions,
) -> Result<Box<dyn InputSource>, TraceError> {
    stream(input, None, name, options).map_err(|error| error.in_input(name))
}

fn open_file(path: &Path, options: OpenOptions, name: &str) -> Result<Box<dyn InputSource>, TraceError> {
    if path.metadata()?.is_dir() {
        return Err(TraceError::whole(Problem::Directory));
    }
    let mut file = File::open(path)?;
    let ending = Format::from_path(path);
    if !file.metadata()?.is_file() {
        return stream(file, ending.ok(), name, options);
    }
    let mut start = vec![0; SNIFFED];
    let read = read_full(&mut file, &mut start)?;
    file.seek(SeekFrom::Start(0))?;
    let size = file.metadata()?.len();
    match recognise(&start[..read], ending.ok(), name)? {
        Format::Portent => Ok(named(PortentReader::open(file, options.salvage)?, name)),
        _ => Ok(named(StdReader::new(file).with_size(Some(size)), name)),
    }
}

fn stream(
    mut input: impl Read + 'static,
    ending: Option<Format>,
    name: &str,
    options: OpenOptions,
) -> Result<Box<dyn InputSource>, TraceError> {
    // No more than the magic is waited for: a text may come slowly, and be short.
    let mut start = vec![0; MAGIC.len()];
    let read = read_full(&mut input, &mut start)?;
    start.truncate(read);
    let format = match recognise(&start, ending, name) {
        // Too little was seen to judge by; a line that is no event will say so itself.
        Err(TraceError { problem: Problem::UnknownFormat(_), .. }) => Format::Std,
        other => other?,
    };
    let whole = Cursor::new(start).chain(input);
    match format {
        Format::Portent => {
            let file = spool(whole, options.salvage)?;
            Ok(named(PortentReader::open(file, options.salvage)?, name))
        }
        _ => Ok(named(StdReader::new(whole), name)),
    }
}

/// The format of a file that begins so.
fn recognise(start: &[u8], ending: Option<Format>, name: &str) -> Result<Format, TraceError> {
    if start.is_empty() {
        return Err(TraceError::whole(Problem::Empty));
    }
    if start.starts_with(&MAGIC) {
        return Ok(Format::Portent);
    }
    if start.starts_with(b"PAR1") || ending == Some(Format::Parquet) {
        return Err(TraceError::whole(Problem::WriteOnly("Parquet")));
    }
    match ending {
        // Cut off inside the magic: the reader says so.
        Some(Format::Portent) if MAGIC.starts_with(start) => Ok(Format::Portent),
        Some(Format::Portent) => {
            let found = start[..start.len().min(MAGIC.len())].to_vec();
            Err(TraceError::at(Position::Byte(0), Problem::BadMagic { found }))
        }
        Some(_) => Ok(Format::Std),
        None if looks_like_std(start) => Ok(Format::Std),
        None => Err(TraceError::whole(Problem::UnknownFormat(name.to_owned()))),
    }
}

/// Whether the first line that is no comment has fields.
fn looks_like_std(start: &[u8]) -> bool {
    let mut lines = start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    !start.contains(&0) && first.is_none_or(|line| line.contains(&b'|'))
}

fn named(source: impl InputSource + 'static, name: &str) -> Box<dyn InputSource> {
    Box::new(Named { source, name: name.to_owned() })
}

/// A source whose errors say which input they are about.
struct Named<S> {
    source: S,
    name: String,
}

impl<S: InputSource> InputSource for Named<S> {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        self.source.next_batch(batch).map_err(|error| error.in_input(&self.name))
    }
    fn names(&self) -> &Names {
        self.source.names()
    }
    fn take_names(&mut self) -> Names {
        self.source.take_names()
    }
    fn progress(&self) -> Progress {
        self.source.progress()
    }
    fn expected_events(&self) -> Option<u64> {
        self.source.expected_events()
    }
    fn missing(&self) -> Option<String> {
        self.source.missing()
    }
    fn take_formulas(&mut self) -> Result<Option<Formulas>, TraceError> {
        self.source.take_formulas().map_err(|error| error.in_input(&self.name))
    }
}
