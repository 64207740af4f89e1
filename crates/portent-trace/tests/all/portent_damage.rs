//! Files that were cut off or damaged: a prefix is recovered, and nothing false is ever read.

use crate::common::*;
use portent_trace::{InputEvent, Position, Problem, StackId};

const CHUNK: usize = 10;

fn small() -> (Vec<InputEvent>, Vec<u8>) {
    let (names, events) = from_std(&small_std());
    let bytes = to_portent(&names, &events, CHUNK);
    (events, bytes)
}

/// Events with their call stacks, and a file with every kind of definition.
fn recorded() -> (Vec<(InputEvent, Option<StackId>)>, Vec<u8>) {
    let Recorded { names, events, stacks } = small_recorded();
    let bytes = to_portent_in(&names, &events, &stacks, CHUNK);
    (events.into_iter().zip(stacks).collect(), bytes)
}

fn with_stacks(read: &Read) -> Vec<(InputEvent, Option<StackId>)> {
    read.events.iter().copied().zip(read.stacks.iter().copied()).collect()
}

#[test]
fn a_recorded_file_cut_at_any_byte_gives_its_whole_chunks_with_their_stacks() {
    let (events, bytes) = recorded();
    let mut best = 0;
    for len in 1..bytes.len() {
        let read = from_portent(&bytes[..len]).unwrap_or_else(|error| panic!("cut at {len}: {error}"));
        assert!(read.events.len() >= best && read.missing.is_some(), "cut at {len}");
        best = read.events.len();
        assert_eq!(with_stacks(&read), events[..best], "cut at {len}");
    }
    assert_eq!(best, events.len());
}

#[test]
fn a_flipped_byte_in_a_recorded_file_is_noticed_wherever_it_is() {
    let (events, bytes) = recorded();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x81;
        for salvage in [false, true] {
            if let Ok(read) = from_portent_with(&flipped, salvage) {
                assert_eq!(with_stacks(&read), events[..read.events.len()], "byte {at}");
                assert!(read.missing.is_some(), "byte {at} went unnoticed");
            }
        }
    }
}

#[test]
fn a_file_cut_at_any_byte_gives_its_whole_chunks_and_says_what_is_missing() {
    let (events, bytes) = small();
    let mut best = 0;
    for len in 1..bytes.len() {
        let read = from_portent(&bytes[..len]).unwrap_or_else(|error| panic!("cut at {len}: {error}"));
        assert_eq!(read.events, events[..read.events.len()], "cut at {len}");
        assert!(read.events.len() >= best, "cut at {len}: a longer file gave fewer events");
        assert!(read.events.len().is_multiple_of(CHUNK) || read.events.len() == events.len());
        best = read.events.len();
        let missing = read.missing.expect("something is missing");
        assert!(missing.contains(&format!("{best} ")), "{missing}");
        assert_eq!(read.expected, None);
    }
    assert_eq!(best, events.len());
    assert!(matches!(from_portent(&[]).err().unwrap().problem, Problem::Empty));
}

#[test]
fn a_tail_of_zeros_counts_as_cut_off() {
    let (events, bytes) = small();
    for len in 16..bytes.len() {
        let mut zeroed = bytes.clone();
        zeroed[len..].fill(0);
        let cut = from_portent(&bytes[..len]).unwrap();
        let read = from_portent(&zeroed).unwrap_or_else(|error| panic!("zeros from {len}: {error}"));
        assert_eq!(read.events, events[..read.events.len()], "zeros from {len}");
        // The bytes that are gone may have been zeros, so the chunk they cut may be whole.
        assert!(read.events.len() >= cut.events.len());
        assert!(read.missing.is_some() || zeroed == bytes);
    }
}

#[test]
fn a_cut_file_says_how_much_is_lost_and_where() {
    let (_, bytes) = small();
    let missing = from_portent(&bytes[..bytes.len() * 2 / 3]).unwrap().missing.unwrap();
    assert!(missing.starts_with("the file is cut off: the last "), "{missing}");
    assert!(missing.contains("from byte") && missing.contains("no index"), "{missing}");
}

#[test]
fn a_flipped_byte_is_noticed_wherever_it_is() {
    let (events, bytes) = small();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut flipped = bytes.clone();
            flipped[at] ^= flip;
            for salvage in [false, true] {
                if let Ok(read) = from_portent_with(&flipped, salvage) {
                    assert_eq!(read.events, events[..read.events.len()], "byte {at}");
                    assert!(read.missing.is_some(), "byte {at} went unnoticed");
                    assert!(salvage || read.events.len() == events.len(), "byte {at} lost events without an error");
                }
            }
        }
    }
}

#[test]
fn a_flipped_byte_in_a_cut_file_is_noticed_too() {
    let (events, bytes) = small();
    let cut = &bytes[..bytes.len() - 200];
    for at in 0..cut.len() {
        let mut flipped = cut.to_vec();
        flipped[at] ^= 0x10;
        if let Ok(read) = from_portent(&flipped) {
            assert_eq!(read.events, events[..read.events.len()], "byte {at}");
            assert!(read.missing.is_some());
        }
    }
}

#[test]
fn damage_in_the_middle_is_an_error_with_its_byte_and_can_be_salvaged() {
    let (events, bytes) = small();
    let chunks: Vec<usize> = memchr::memmem::find_iter(&bytes, b"PtCk").collect();
    let third_events_chunk = chunks[3];
    let mut damaged = bytes.clone();
    damaged[third_events_chunk + 40] ^= 1;
    let error = from_portent(&damaged).err().unwrap();
    assert_eq!(error.position, Position::Byte(third_events_chunk as u64), "{error}");
    assert!(matches!(error.problem, Problem::Checksum { what: "events" }), "{error}");
    assert!(error.help().unwrap().contains("--salvage"));
    let read = from_portent_with(&damaged, true).unwrap();
    assert_eq!(read.events, events[..2 * CHUNK]);
    let missing = read.missing.unwrap();
    assert!(missing.contains(&format!("from byte {third_events_chunk}")), "{missing}");
    assert!(missing.contains(&format!("20 of {} events", events.len())), "{missing}");
}

#[test]
fn what_follows_the_end_is_not_read_but_mentioned() {
    let (events, bytes) = small();
    let read = from_portent(&[&bytes[..], b"more"].concat()).unwrap();
    assert_eq!(read.events, events);
    assert!(read.missing.unwrap().contains("4 more bytes follow"));
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let (_, bytes) = small();
    let mut newer = bytes.clone();
    newer[8] = 3;
    let crc = crc32fast::hash(&newer[..12]);
    newer[12..16].copy_from_slice(&crc.to_le_bytes());
    let error = from_portent(&newer).err().unwrap();
    assert!(matches!(error.problem, Problem::BadVersion { found: 3, supported: 2 }), "{error}");
    let error = from_portent(b"T1|w(x)|1\nT1|w(x)|1\n").err().unwrap();
    assert!(matches!(error.problem, Problem::BadMagic { .. }), "{error}");
}

/// With right checksums only the contents can be wrong; they are checked too.
#[test]
fn forged_payloads_never_panic() {
    for bytes in [small().1, recorded().1] {
        let chunks: Vec<usize> = memchr::memmem::find_iter(&bytes, b"PtCk").collect();
        for &chunk in &chunks[..3] {
            let stored = u32::from_le_bytes(bytes[chunk + 12..chunk + 16].try_into().unwrap()) as usize;
            let fields = (chunk + 4..chunk + 28).chain(chunk + 36..chunk + 36 + stored);
            for at in fields {
                for value in [0, 1, 2, 3, 0x10, 0x7f, 0xff, bytes[at].wrapping_add(1)] {
                    let forged = forge(&bytes, chunk, stored, |forged| forged[at] = value);
                    for salvage in [false, true] {
                        drop(from_portent_with(&forged, salvage));
                        drop(from_portent_with(&forged[..forged.len() - 5], salvage));
                    }
                }
            }
        }
    }
}

/// The file with something changed in a chunk, and checksums that fit.
fn forge(bytes: &[u8], chunk: usize, stored: usize, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    change(&mut forged);
    let payload_crc = crc32fast::hash(&forged[chunk + 36..chunk + 36 + stored]);
    forged[chunk + 28..chunk + 32].copy_from_slice(&payload_crc.to_le_bytes());
    let header_crc = crc32fast::hash(&forged[chunk..chunk + 32]);
    forged[chunk + 32..chunk + 36].copy_from_slice(&header_crc.to_le_bytes());
    forged
}
