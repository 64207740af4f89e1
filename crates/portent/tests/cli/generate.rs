//! `gen`.

use crate::{Place, read};
use insta::assert_snapshot;

#[test]
fn a_small_trace_is_the_same_every_time_and_well_formed() {
    let place = Place::new();
    let line = "gen --threads 3 --events 40 --variables 3 --locks 2 --seed 7";
    let text = place.ok(line);
    assert_eq!(text, place.ok(line));
    assert_snapshot!("gen_small", text);
    let checked = place.session_with("validate -", text);
    assert!(checked.ends_with("--- exit 0\n"), "{checked}");
}

#[test]
fn the_ending_of_the_output_chooses_its_format() {
    let place = Place::new();
    let text = place.ok("gen --events 5000 --seed 2");
    place.ok("gen --events 5000 --seed 2 -o a.portent");
    place.ok("gen --events 5000 --seed 2 -o a.std");
    place.ok("gen --events 5000 --seed 2 --format std -o a.log");
    assert_eq!(read(&place.path("a.std")), text);
    assert_eq!(read(&place.path("a.log")), text);
    assert_eq!(place.ok("convert a.portent -"), text);
}

#[test]
fn another_seed_makes_another_trace() {
    let place = Place::new();
    assert_ne!(place.ok("gen --events 500 --seed 1"), place.ok("gen --events 500 --seed 2"));
}

#[test]
fn presets_are_listed_and_an_unknown_one_is_refused() {
    let place = Place::new();
    assert_snapshot!("gen_presets", place.session("gen --list-presets"));
    assert_snapshot!("gen_unknown_preset", place.session("gen --preset nonsense --seed 1"));
}

#[test]
fn impossible_settings_are_refused() {
    assert_snapshot!("gen_impossible", Place::new().session("gen --threads 0"));
}

#[test]
fn symbolic_traces_have_formulas_in_every_format() {
    let place = Place::new();
    let line = "gen --symbolic --threads 3 --events 40 --variables 3 --locks 2 --seed 7";
    let text = place.ok(line);
    assert_eq!(text, place.ok(line));
    assert_snapshot!("gen_symbolic", text);
    for of in ["--preset elevator-small --symbolic", "--events 100000 --symbolic --updates 0.1"] {
        place.ok(&format!("gen {of} -o a.portent"));
        place.ok(&format!("gen {of} -o a.std"));
        place.ok("validate a.portent a.std");
        place.ok("convert a.std b.portent");
        // The long one was written with its formulas in parts, which are one part after converting.
        assert_eq!(place.ok("convert b.portent -"), place.ok("convert a.portent -"), "{of}");
    }
    place.ok("gen --symbolic --events 300 --unguarded 0.5 -o small.std");
    let predicted = place.session("predict small.std --model values --kind race");
    assert!(predicted.contains("--- exit 1"), "{predicted}");
}

#[test]
fn branches_of_symbolic_traces_are_as_asked() {
    let place = Place::new();
    let branches = |line: &str| place.ok(&format!("gen --events 20000 {line}")).matches("|branch|").count();
    assert_eq!(branches(""), 0);
    assert!((2_200..2_900).contains(&branches("--symbolic")), "{}", branches("--symbolic"));
    assert_eq!(branches("--symbolic --branches 0"), 0);
    assert!((950..1_050).contains(&branches("--symbolic --branches 0.05")));
    assert!(branches("--read-branches 0.9") > 5_000);
}
