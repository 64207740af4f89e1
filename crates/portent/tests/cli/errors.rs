//! Inputs that are no traces: each says which input, where, what was expected, and exits with 2.

use crate::{BANK, Session};
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;

#[test]
fn a_directory() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("folder")).unwrap();
    assert_snapshot!("error_directory", scratch.session("stats folder"));
}

#[test]
fn a_file_that_is_not_there() {
    assert_snapshot!("error_missing_file", Scratch::new().session("validate nowhere.std"));
}

#[test]
fn an_empty_file_and_an_empty_standard_input() {
    let scratch = Scratch::with("empty.std", "").and("empty.portent", "");
    assert_snapshot!("error_empty_file", scratch.session("validate empty.std empty.portent"));
    assert_snapshot!("error_empty_stdin", scratch.session("validate -"));
}

#[test]
fn a_name_that_is_not_utf8() {
    let scratch = Scratch::with("latin1.std", b"T1|w(x)|1\nT1|w(caf\xe9)|2\n");
    assert_snapshot!("error_utf8", scratch.session("stats latin1.std"));
}

#[test]
fn a_number_that_overflows() {
    let scratch = Scratch::with("big.std", "T1|w(x)|1|9223372036854775808\n");
    assert_snapshot!("error_overflow", scratch.session("validate big.std"));
}

#[test]
fn a_file_that_is_something_else() {
    let scratch = Scratch::with("image.portent", b"\x89PNG\r\n\x1a\n0000000000000000");
    assert_snapshot!("error_magic", scratch.session("validate image.portent"));
}

#[test]
fn an_output_whose_ending_says_nothing() {
    let scratch = Scratch::with("bank.std", BANK);
    assert_snapshot!("error_ending", scratch.session("convert bank.std bank.xyz"));
    assert!(!scratch.path("bank.xyz").exists());
}

#[test]
fn an_output_that_cannot_be_created() {
    let scratch = Scratch::with("bank.std", BANK);
    assert_snapshot!("error_output", scratch.session("convert bank.std no/such/folder/bank.std"));
}

#[test]
fn an_input_that_fails_leaves_an_older_output_as_it_was() {
    let late = format!("{}nonsense\n", "T1|w(x)|1\n".repeat(50_000));
    let scratch = Scratch::with("bad.std", "nonsense\n").and("late.std", late).and("out.std", "precious\n");
    for line in ["convert bad.std out.std", "convert late.std out.std", "convert nowhere.std out.std"] {
        assert_eq!(scratch.status(line), Some(2), "{line}");
        assert_eq!(scratch.read("out.std"), "precious\n", "{line}");
    }
    assert_eq!(scratch.names().len(), 3, "unfinished files are cleared away");
}

#[test]
fn a_misspelt_option_before_the_program_is_no_program() {
    let scratch = Scratch::new();
    for command in ["check", "record"] {
        let wrong = if command == "check" { "--jsn" } else { "--shed" };
        let session = scratch.session(&format!("{command} {wrong} x ./program"));
        let right = if command == "check" { "'--json'" } else { "'--sched'" };
        assert!(session.contains(&format!("unexpected argument '{wrong}'")), "{session}");
        assert!(session.contains("a similar argument exists") && session.contains(right), "{session}");
        assert!(session.ends_with("--- exit 2\n"), "{session}");
    }
    let session = scratch.session("check --kind raze ./program");
    assert!(session.contains("a similar value exists: 'race'") && session.ends_with("--- exit 2\n"), "{session}");
}

#[test]
fn an_option_behind_the_program_is_the_programs_and_that_is_said() {
    let scratch = Scratch::new();
    let behind = scratch.session("check ./nonesuch --json x.json");
    assert!(behind.contains("warning: --json stands behind the program, which gets it"), "{behind}");
    let meant = scratch.session("check -- ./nonesuch --json x.json");
    assert!(!meant.contains("stands behind") && meant.contains("nonesuch: there is no such file"), "{meant}");
}
