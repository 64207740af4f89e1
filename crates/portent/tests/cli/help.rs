//! Help pages, and how bad usage ends.

use crate::Session;
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;

#[test]
fn the_help_pages() {
    let scratch = Scratch::new();
    assert_snapshot!("help", scratch.session("--help"));
    assert_snapshot!("help_short", scratch.session("-h"));
    for command in
        ["demo", "validate", "stats", "convert", "gen", "predict", "record", "replay", "check", "completions", "man"]
    {
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

#[test]
fn completions_know_every_command_in_every_shell() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let finished = scratch.run(&format!("completions {shell}"), b"");
        let script = finished.out();
        assert!(finished.exited_with(0) && finished.stderr.is_empty(), "{}", finished.describe());
        for command in ["check", "predict", "completions"] {
            assert!(script.contains(command), "the script for {shell} does not know {command}");
        }
    }
}

#[test]
fn a_manual_page_for_every_command() {
    let scratch = Scratch::new();
    let unversioned = |page: String| page.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_snapshot!("man", unversioned(scratch.session("man")));
    assert_snapshot!("man_pages", scratch.session("man --output pages"));
    let mut names: Vec<String> = std::fs::read_dir(scratch.path("pages"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_snapshot!("man_names", names.join("\n"));
    assert_snapshot!("man_replay", unversioned(scratch.read("pages/portent-replay.1")));
}

#[test]
fn manual_pages_that_cannot_be_written_are_an_error() {
    let scratch = Scratch::with("file", "");
    assert_snapshot!("man_unwritable", scratch.session("man --output file"));
}
