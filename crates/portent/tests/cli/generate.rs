//! `gen`.

use crate::Session;
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;

#[test]
fn a_small_trace_is_the_same_every_time_and_well_formed() {
    let scratch = Scratch::new();
    let line = "gen --threads 3 --events 40 --variables 3 --locks 2 --seed 7";
    let text = scratch.ok(line);
    assert_eq!(text, scratch.ok(line));
    assert_snapshot!("gen_small", text);
    let checked = scratch.session_with("validate -", text);
    assert!(checked.ends_with("--- exit 0\n"), "{checked}");
}

#[test]
fn the_ending_of_the_output_chooses_its_format() {
    let scratch = Scratch::new();
    let text = scratch.ok("gen --events 5000 --seed 2");
    scratch.ok("gen --events 5000 --seed 2 -o a.portent");
    scratch.ok("gen --events 5000 --seed 2 -o a.std");
    scratch.ok("gen --events 5000 --seed 2 --format std -o a.log");
    assert_eq!(scratch.read("a.std"), text);
    assert_eq!(scratch.read("a.log"), text);
    assert_eq!(scratch.ok("convert a.portent -"), text);
}

#[test]
fn another_seed_makes_another_trace() {
    let scratch = Scratch::new();
    assert_ne!(scratch.ok("gen --events 500 --seed 1"), scratch.ok("gen --events 500 --seed 2"));
}

#[test]
fn presets_are_listed_and_an_unknown_one_is_refused() {
    let scratch = Scratch::new();
    assert_snapshot!("gen_presets", scratch.session("gen --list-presets"));
    assert_snapshot!("gen_unknown_preset", scratch.session("gen --preset nonsense --seed 1"));
}

#[test]
fn impossible_settings_are_refused() {
    assert_snapshot!("gen_impossible", Scratch::new().session("gen --threads 0"));
}

#[test]
fn symbolic_traces_have_formulas_in_every_format() {
    let scratch = Scratch::new();
    let line = "gen --symbolic --threads 3 --events 40 --variables 3 --locks 2 --seed 7";
    let text = scratch.ok(line);
    assert_eq!(text, scratch.ok(line));
    assert_snapshot!("gen_symbolic", text);
    for of in ["--preset elevator-small --symbolic", "--events 100000 --symbolic --updates 0.1"] {
        scratch.ok(&format!("gen {of} -o a.portent"));
        scratch.ok(&format!("gen {of} -o a.std"));
        scratch.ok("validate a.portent a.std");
        scratch.ok("convert a.std b.portent");
        // The long one was written with its formulas in parts, which are one part after converting.
        assert_eq!(scratch.ok("convert b.portent -"), scratch.ok("convert a.portent -"), "{of}");
    }
    scratch.ok("gen --symbolic --events 300 --unguarded 0.5 -o small.std");
    let predicted = scratch.session("predict small.std --model values --kind race");
    assert!(predicted.contains("--- exit 1"), "{predicted}");
}

#[test]
fn branches_of_symbolic_traces_are_as_asked() {
    let scratch = Scratch::new();
    let branches = |line: &str| scratch.ok(&format!("gen --events 20000 {line}")).matches("|branch|").count();
    assert_eq!(branches(""), 0);
    assert!((2_200..2_900).contains(&branches("--symbolic")), "{}", branches("--symbolic"));
    assert_eq!(branches("--symbolic --branches 0"), 0);
    assert!((950..1_050).contains(&branches("--symbolic --branches 0.05")));
    assert!(branches("--read-branches 0.9") > 5_000);
}
