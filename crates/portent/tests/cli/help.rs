//! Help pages, and how bad usage ends.

use crate::Place;
use insta::assert_snapshot;

#[test]
fn the_help_pages() {
    let place = Place::new();
    assert_snapshot!("help", place.session("--help"));
    assert_snapshot!("help_short", place.session("-h"));
    for command in ["demo", "validate", "stats", "convert", "gen", "predict", "record", "replay", "check"] {
        assert_snapshot!(format!("help_{command}"), place.session(&format!("{command} --help")));
    }
}

#[test]
fn bad_usage_exits_with_2_and_help_with_0() {
    let place = Place::new();
    for (line, code) in
        [("", 2), ("frobnicate", 2), ("stats", 2), ("stats --frob x", 2), ("--help", 0), ("--version", 0)]
    {
        assert_eq!(place.command(line).output().unwrap().status.code(), Some(code), "{line:?}");
    }
}
