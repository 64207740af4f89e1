//! `convert`: between formats, and what truncated or damaged files leave.

use crate::{BANK, Session};
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;

#[test]
fn text_survives_the_way_to_portent_and_back() {
    let scratch = Scratch::with("bank.std", BANK);
    assert_snapshot!("convert", scratch.session("convert bank.std bank.portent"));
    scratch.ok("convert bank.portent back.std");
    assert_eq!(scratch.read("back.std"), BANK);
    assert_eq!(scratch.ok("convert bank.portent -"), BANK);
}

#[test]
fn rapid_gets_what_it_accepts_and_the_rest_is_named() {
    let scratch = Scratch::with("bank.std", BANK);
    assert_snapshot!("convert_rapid", scratch.session("convert --rapid bank.std -"));
    assert_snapshot!("convert_rapid_portent", scratch.session("convert --rapid bank.std bank.portent"));
}

#[test]
fn the_format_can_be_forced_whatever_the_ending() {
    let scratch = Scratch::with("bank.std", BANK);
    scratch.ok("convert --format std bank.std bank.log");
    assert_eq!(scratch.read("bank.log"), BANK);
    scratch.ok("convert --format portent bank.std bank.bin");
    assert!(scratch.ok("validate bank.bin").starts_with("bank.bin: well formed: 15 events"), "recognised by contents");
}

#[test]
fn a_trace_may_be_converted_onto_itself() {
    let scratch = Scratch::with("bank.std", BANK);
    scratch.ok("convert bank.std bank.std");
    assert_eq!(scratch.read("bank.std"), BANK);
}

/// A .portent file with several chunks, cut off inside a late one.
fn truncated() -> Scratch {
    let scratch = Scratch::new();
    scratch.ok("gen --events 60000 --seed 3 -o whole.portent");
    let whole = std::fs::read(scratch.path("whole.portent")).unwrap();
    scratch.and("cut.portent", &whole[..whole.len() * 3 / 4])
}

#[test]
fn a_truncated_file_is_refused_by_validate_and_recovered_by_the_others() {
    let scratch = truncated();
    let refused = scratch.session("validate cut.portent");
    assert!(refused.contains("error: cut.portent: ") && refused.contains("byte"), "{refused}");
    assert!(refused.ends_with("--- exit 2\n"), "{refused}");
    for line in ["stats cut.portent", "convert cut.portent rest.portent"] {
        let recovered = scratch.session(line);
        assert!(recovered.contains("warning: cut.portent: "), "{recovered}");
        assert!(recovered.ends_with("--- exit 0\n"), "{recovered}");
    }
    scratch.ok("validate rest.portent");
    insta::with_settings!({filters => vec![(r"\d+ (bytes|events)", "N $1"), (r"byte \d+", "byte N")]}, {
        assert_snapshot!("validate_truncated", refused);
    });
}

#[test]
fn a_damaged_chunk_stops_convert_unless_it_is_to_salvage() {
    let scratch = Scratch::new();
    scratch.ok("gen --events 60000 --seed 3 -o whole.portent");
    let mut bytes = std::fs::read(scratch.path("whole.portent")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    let scratch = scratch.and("damaged.portent", bytes);
    let refused = scratch.session("convert damaged.portent rest.portent");
    assert!(refused.ends_with("--- exit 2\n") && refused.contains("--salvage"), "{refused}");
    assert!(!scratch.path("rest.portent").exists());
    let salvaged = scratch.session("convert --salvage damaged.portent rest.portent");
    assert!(salvaged.contains("warning: ") && salvaged.ends_with("--- exit 0\n"), "{salvaged}");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_can_be_written_but_not_read() {
    let scratch = Scratch::with("bank.std", BANK);
    scratch.ok("convert bank.std bank.parquet");
    assert!(std::fs::read(scratch.path("bank.parquet")).unwrap().starts_with(b"PAR1"));
    assert_snapshot!("parquet_read", scratch.session("stats bank.parquet"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    let scratch = Scratch::with("bank.std", BANK);
    assert_snapshot!("parquet_not_built", scratch.session("convert bank.std bank.parquet"));
    assert!(!scratch.path("bank.parquet").exists());
}
