//! `validate` and `stats`.

use crate::{BANK, Session};
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;

#[test]
fn a_well_formed_trace_is_one_line_and_notes_on_what_is_unfinished() {
    let scratch = Scratch::with("bank.std", BANK).and("done.std", "T1|acq(l)|1\nT1|rel(l)|2\n");
    assert_snapshot!("validate_unfinished", scratch.session("validate bank.std"));
    assert_snapshot!("validate_several", scratch.session("validate done.std bank.std"));
    assert_snapshot!("validate_stdin", scratch.session_with("validate -", BANK));
}

#[test]
fn the_first_offence_is_reported_with_its_line() {
    let scratch = Scratch::with("taken.std", "# two threads, one lock\n\nT1|acq(l)|1\nT2|acq(l)|2\nT2|nonsense|3\n");
    assert_snapshot!("validate_lock_taken", scratch.session("validate taken.std"));
}

#[test]
fn a_malformed_trace_does_not_hide_the_others() {
    let scratch = Scratch::with("bad.std", "T1|rel(l)|1\n").and("good.std", "T1|w(x)|1\n");
    assert_snapshot!("validate_bad_then_good", scratch.session("validate bad.std good.std"));
}

#[test]
fn a_formula_that_the_events_contradict_is_an_offence() {
    let text = "T1|r(x)|1|3\nT1|w(y)|2|5\n#!= (add r0 1)\n";
    let scratch = Scratch::with("wrong.std", text).and("right.std", text.replace("|5", "|4"));
    scratch.ok("convert wrong.std wrong.portent");
    assert_snapshot!("validate_formulas", scratch.session("validate wrong.std wrong.portent right.std"));
    assert_snapshot!("validate_formulas_stdin", scratch.session_with("validate -", text));
}

#[test]
fn statistics_as_text_and_as_json() {
    let scratch = Scratch::with("bank.std", BANK);
    assert_snapshot!("stats_text", scratch.session("stats bank.std"));
    let json = scratch.session("stats --json bank.std");
    assert_snapshot!("stats_json", json);
}

#[test]
fn json_is_json_and_lists_every_thread_and_lock() {
    let mut text = String::new();
    for i in 0..40 {
        text.push_str(&format!("T{i}|acq(l{i})|1\nT{i}|w(x{i})|2\nT{i}|rel(l{i})|3\n"));
    }
    let scratch = Scratch::with("many.std", text);
    let document: serde_json::Value = serde_json::from_str(&scratch.ok("stats --json many.std")).unwrap();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["per_thread"].as_array().unwrap().len(), 40);
    assert_eq!(document["per_lock"].as_array().unwrap().len(), 40);
    assert_eq!(document["busiest_variables"].as_array().unwrap().len(), 10);
    assert_snapshot!("stats_many", scratch.session("stats many.std"));
}

#[test]
fn names_in_a_trace_cannot_drive_the_terminal() {
    let scratch = Scratch::with("evil.std", "T\x1b[2J|acq(l\x07\u{7f}\u{9b}2J)|1\n");
    for line in ["validate evil.std", "stats evil.std", "stats --json evil.std"] {
        assert!(!scratch.session(line).contains(['\x1b', '\x07', '\u{7f}', '\u{9b}']), "{line}");
    }
    let document: serde_json::Value = serde_json::from_str(&scratch.ok("stats --json evil.std")).unwrap();
    assert_eq!(document["per_lock"][0]["name"], "l\x07\u{7f}\u{9b}2J");
}
