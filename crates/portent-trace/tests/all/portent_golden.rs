//! Files of every version that must load for ever. Never rewrite them: add new ones.

use crate::common::*;

const TRACE: &[u8] = include_bytes!("../golden/v1.portent");
const TWIN: &str = include_str!("../golden/v1.std");
const CUT: &[u8] = include_bytes!("../golden/v1-cut.portent");

const RECORDED: &[u8] = include_bytes!("../golden/v2.portent");
const RECORDED_TWIN: &str = include_str!("../golden/v2.txt");
const RECORDED_CUT: &[u8] = include_bytes!("../golden/v2-cut.portent");

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

/// Everything that a file of version 2 holds, in words.
fn in_words(read: &Read) -> String {
    let names = contents(&read.names).join("\n");
    let stacks: Vec<String> = read.stacks.iter().map(|stack| format!("{stack:?}")).collect();
    format!("{}{names}\n{}\n", to_std(&read.names, &read.events), stacks.join("\n"))
}

#[test]
fn the_golden_file_of_version_2_loads_to_the_objects_and_stacks_of_its_twin() {
    assert_eq!((RECORDED[8], TRACE[8]), (2, 1), "each is of its version");
    let read = from_portent(RECORDED).unwrap();
    assert_eq!(in_words(&read), RECORDED_TWIN);
    assert_eq!((read.missing, read.expected), (None, Some(59)));
    assert_eq!(to_portent_in(&read.names, &read.events, &read.stacks, 10), RECORDED, "written as it was");
}

#[test]
fn the_cut_golden_file_of_version_2_loads_to_the_start_of_it() {
    let (read, whole) = (from_portent(RECORDED_CUT).unwrap(), from_portent(RECORDED).unwrap());
    assert_eq!(read.events, whole.events[..30]);
    assert_eq!(read.stacks, whole.stacks[..30]);
    assert!(read.missing.unwrap().starts_with("the file is cut off: the last 100 bytes"));
}

/// Makes the files of this version; for the next version only.
#[test]
#[ignore = "writes the golden files"]
fn write_golden_files() {
    let Recorded { names, events, stacks } = small_recorded();
    let bytes = to_portent_in(&names, &events, &stacks, 10);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let last = memchr::memmem::find_iter(&bytes, b"PtCk").nth(4).unwrap();
    std::fs::write(format!("{folder}/v2.portent"), &bytes).unwrap();
    std::fs::write(format!("{folder}/v2.txt"), in_words(&from_portent(&bytes).unwrap())).unwrap();
    std::fs::write(format!("{folder}/v2-cut.portent"), &bytes[..last + 100]).unwrap();
}
