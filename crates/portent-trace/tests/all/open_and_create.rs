//! Opening traces of any format by path or stream, and creating them without harming older files.

use crate::common::*;
use portent_trace::format::{Dialect, Format, OpenOptions, create, create_on, open, open_stream};
use portent_trace::{InputSource, Layout, Problem, TraceError};
use std::io::{Cursor, Read};
use std::path::Path;

fn problem(result: Result<Box<dyn InputSource>, TraceError>, name: &str) -> Problem {
    let error = result.err().expect("an error");
    assert_eq!(error.input.as_deref(), Some(name));
    error.problem
}

fn write(path: &Path, format: Format, text: &str) {
    let (names, events) = from_std(text);
    let mut sink = create(path, format, Dialect::Portent, Layout::default()).unwrap();
    sink.write(&names, &batch_of(&events)).unwrap();
    assert!(sink.finish().unwrap().is_empty());
}

#[test]
fn the_beginning_of_a_file_counts_more_than_its_ending() {
    let folder = tempfile::tempdir().unwrap();
    let text = small_std();
    for (name, format) in [("a.portent", Format::Portent), ("b.std", Format::Portent), ("c.std", Format::Std)] {
        let path = folder.path().join(name);
        write(&path, format, &text);
        let mut source = open(&path, OpenOptions::default()).unwrap();
        assert_eq!(drain(&mut *source).0.len(), text.lines().count(), "{name}");
        assert_eq!(source.expected_events().is_some(), format == Format::Portent);
    }
    let plain = folder.path().join("no-ending");
    std::fs::write(&plain, &text).unwrap();
    assert!(open(&plain, OpenOptions::default()).is_ok());
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason_and_the_name_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, contents: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        problem(open(&path, OpenOptions::default()), &path.display().to_string())
    };
    assert!(matches!(at("empty.std", b""), Problem::Empty));
    assert!(matches!(at("a.portent", b"T1|w(x)|1\n"), Problem::BadMagic { .. }));
    assert!(matches!(at("a.parquet", b"PAR1...."), Problem::WriteOnly("Parquet")));
    assert!(matches!(at("a.bin", &[0, 1, 2, 3]), Problem::UnknownFormat(_)));
    let name = folder.path().display().to_string();
    assert!(matches!(problem(open(folder.path(), OpenOptions::default()), &name), Problem::Directory));
    let nowhere = folder.path().join("nowhere.std");
    let name = nowhere.display().to_string();
    assert!(matches!(problem(open(&nowhere, OpenOptions::default()), &name), Problem::Io(_)));
}

#[test]
fn errors_behind_the_first_batch_carry_the_name_too() {
    let mut source = open_stream(&b"T1|w(x)|1\nnonsense\n"[..], "standard input", OpenOptions::default()).unwrap();
    let (events, result) = drain(&mut *source);
    assert_eq!(events.len(), 1);
    assert!(result.unwrap_err().to_string().starts_with("standard input: line 2: "));
}

#[test]
fn a_portent_stream_is_read_like_a_file_also_when_it_is_cut() {
    let (names, events) = from_std(&small_std());
    let bytes = to_portent(&names, &events, 10);
    for len in 9..=bytes.len() {
        let stream = Cursor::new(bytes[..len].to_vec());
        let mut source = open_stream(stream, "standard input", OpenOptions::default()).unwrap();
        let (found, result) = drain(&mut *source);
        result.unwrap();
        assert_eq!(found, from_portent(&bytes[..len]).unwrap().events, "cut at {len}");
        assert_eq!(source.missing().is_none(), len == bytes.len());
    }
}

#[test]
fn an_endless_stream_of_garbage_is_refused_at_once() {
    let (names, events) = from_std(&small_std());
    let bytes = to_portent(&names, &events, 10);
    let start = bytes[..bytes.len() / 2].to_vec();
    let chunk = memchr::memmem::rfind(&start, b"PtCk").unwrap();
    let stream = Cursor::new(start[..chunk].to_vec()).chain(std::io::repeat(7));
    let error = open_stream(stream, "standard input", OpenOptions::default()).err().unwrap();
    assert!(matches!(error.problem, Problem::BadChunk { .. }), "{error}");
    let stream = Cursor::new(start[..chunk].to_vec()).chain(std::io::repeat(7));
    let mut source = open_stream(stream, "standard input", OpenOptions { salvage: true }).unwrap();
    let (found, result) = drain(&mut *source);
    result.unwrap();
    assert_eq!(found, events[..found.len()]);
    assert!(source.missing().is_some());
}

#[test]
fn a_file_that_is_not_finished_leaves_the_old_one_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.portent");
    write(&path, Format::Portent, "T1|w(x)|1\n");
    let before = std::fs::read(&path).unwrap();
    let (names, events) = from_std(&small_std());
    let mut sink = create(&path, Format::Portent, Dialect::Portent, Layout::default()).unwrap();
    sink.write(&names, &batch_of(&events)).unwrap();
    drop(sink);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_ending_of_an_output_decides_its_format() {
    assert_eq!(Format::from_path(Path::new("a/b.STD")).unwrap(), Format::Std);
    assert_eq!(Format::from_path(Path::new("b.portent")).unwrap(), Format::Portent);
    assert!(matches!(Format::from_path(Path::new("b.json")).unwrap_err().problem, Problem::UnknownFormat(_)));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_a_build_with_parquet() {
    let sink = create_on(Box::new(Shared::default()), Format::Parquet, Dialect::Portent, Layout::default());
    assert!(matches!(sink.err().unwrap().problem, Problem::NotBuilt("Parquet")));
}

#[cfg(unix)]
#[test]
fn devices_are_written_to_and_not_replaced() {
    let sink = create(Path::new("/dev/null"), Format::Std, Dialect::Portent, Layout::default()).unwrap();
    sink.finish().unwrap();
    let mut sink = create_on(Box::new(Shared::default()), Format::Std, Dialect::Rapid, Layout::default()).unwrap();
    let (names, events) = from_std("T1|w(x)|1|5\n");
    sink.write(&names, &batch_of(&events)).unwrap();
    assert_eq!(sink.finish().unwrap(), ["1 values dropped"]);
}
