//! Help pages, and how bad usage ends.

use crate::Session;
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;

#[test]
fn the_help_pages() {
    let scratch = Scratch::new();
    assert_snapshot!("help", scratch.session("--help"));
    assert_snapshot!("help_short", scratch.session("-h"));
    for command in ["demo", "validate", "stats", "convert", "gen", "predict", "record", "replay", "check"] {
        assert_snapshot!(format!("help_{command}"), scratch.session(&format!("{command} --help")));
    }
}

#[test]
fn bad_usage_exits_with_2_and_help_with_0() {
    let scratch = Scratch::new();
    for (line, code) in
        [("", 2), ("frobnicate", 2), ("stats", 2), ("stats --frob x", 2), ("--help", 0), ("--version", 0)]
    {
        assert_eq!(scratch.status(line), Some(code), "{line:?}");
    }
}
