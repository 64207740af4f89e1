//! Files of version 1 that must load for ever. Never rewrite them: add new ones.

mod common;

use common::*;

const TRACE: &[u8] = include_bytes!("golden/v1.portent");
const TWIN: &str = include_str!("golden/v1.std");
const CUT: &[u8] = include_bytes!("golden/v1-cut.portent");

#[test]
fn the_golden_file_loads_to_the_events_of_its_twin() {
    let read = from_portent(TRACE).unwrap();
    assert_eq!((read.missing, read.expected), (None, Some(44)));
    assert_eq!(to_std(&read.names, &read.events), TWIN);
}

#[test]
fn the_cut_golden_file_loads_to_the_start_of_its_twin() {
    let read = from_portent(CUT).unwrap();
    let text = to_std(&read.names, &read.events);
    assert_eq!(text.lines().count(), 30);
    assert!(TWIN.starts_with(&text));
    assert_eq!(
        read.missing.as_deref(),
        Some(
            "the file is cut off: the last 100 bytes, from byte 748 on, are no whole chunk, and there is no index; 30 \
             events were recovered"
        )
    );
}

/// Makes the files anew; for the next version only.
#[test]
#[ignore = "writes the golden files"]
fn write_golden_files() {
    let (names, events) = from_std(&small_std());
    let bytes = to_portent(&names, &events, 10);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let last = memchr::memmem::find_iter(&bytes, b"PtCk").nth(4).unwrap();
    std::fs::write(format!("{folder}/v1.portent"), &bytes).unwrap();
    std::fs::write(format!("{folder}/v1.std"), to_std(&names, &events)).unwrap();
    std::fs::write(format!("{folder}/v1-cut.portent"), &bytes[..last + 100]).unwrap();
}
