//! Inputs that are no traces: each says which input, where, what was expected, and exits with 2.

use crate::{BANK, Place};
use insta::assert_snapshot;

#[test]
fn a_directory() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    assert_snapshot!("error_directory", place.session("stats folder"));
}

#[test]
fn a_file_that_is_not_there() {
    assert_snapshot!("error_missing_file", Place::new().session("validate nowhere.std"));
}

#[test]
fn an_empty_file_and_an_empty_standard_input() {
    let place = Place::with("empty.std", "").and("empty.portent", "");
    assert_snapshot!("error_empty_file", place.session("validate empty.std empty.portent"));
    assert_snapshot!("error_empty_stdin", place.session("validate -"));
}

#[test]
fn a_name_that_is_not_utf8() {
    let place = Place::with("latin1.std", b"T1|w(x)|1\nT1|w(caf\xe9)|2\n");
    assert_snapshot!("error_utf8", place.session("stats latin1.std"));
}

#[test]
fn a_number_that_overflows() {
    let place = Place::with("big.std", "T1|w(x)|1|9223372036854775808\n");
    assert_snapshot!("error_overflow", place.session("validate big.std"));
}

#[test]
fn a_file_that_is_something_else() {
    let place = Place::with("image.portent", b"\x89PNG\r\n\x1a\n0000000000000000");
    assert_snapshot!("error_magic", place.session("validate image.portent"));
}

#[test]
fn an_output_whose_ending_says_nothing() {
    let place = Place::with("bank.std", BANK);
    assert_snapshot!("error_ending", place.session("convert bank.std bank.xyz"));
    assert!(!place.path("bank.xyz").exists());
}

#[test]
fn an_output_that_cannot_be_created() {
    let place = Place::with("bank.std", BANK);
    assert_snapshot!("error_output", place.session("convert bank.std no/such/folder/bank.std"));
}

#[test]
fn an_input_that_fails_leaves_an_older_output_as_it_was() {
    let late = format!("{}nonsense\n", "T1|w(x)|1\n".repeat(50_000));
    let place = Place::with("bad.std", "nonsense\n").and("late.std", late).and("out.std", "precious\n");
    for line in ["convert bad.std out.std", "convert late.std out.std", "convert nowhere.std out.std"] {
        assert_eq!(place.command(line).output().unwrap().status.code(), Some(2), "{line}");
        assert_eq!(crate::read(&place.path("out.std")), "precious\n", "{line}");
    }
    assert_eq!(std::fs::read_dir(place.dir.path()).unwrap().count(), 3, "unfinished files are cleared away");
}
