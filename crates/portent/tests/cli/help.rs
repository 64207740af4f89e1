//! Help pages, and how bad usage ends.

use crate::{Place, read};
use insta::assert_snapshot;

#[test]
fn the_help_pages() {
    let place = Place::new();
    assert_snapshot!("help", place.session("--help"));
    assert_snapshot!("help_short", place.session("-h"));
    for command in
        ["demo", "validate", "stats", "convert", "gen", "predict", "record", "replay", "check", "completions", "man"]
    {
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

#[test]
fn completions_know_every_command_in_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = place.command(&format!("completions {shell}")).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{shell}");
        for command in ["check", "predict", "completions"] {
            assert!(script.contains(command), "the script for {shell} does not know {command}");
        }
    }
}

#[test]
fn a_manual_page_for_every_command() {
    let place = Place::new();
    let unversioned = |page: String| page.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_snapshot!("man", unversioned(place.session("man")));
    assert_snapshot!("man_pages", place.session("man --output pages"));
    let mut names: Vec<String> = std::fs::read_dir(place.path("pages"))
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_snapshot!("man_names", names.join("\n"));
    assert_snapshot!("man_replay", unversioned(read(&place.path("pages/portent-replay.1"))));
}

#[test]
fn manual_pages_that_cannot_be_written_are_an_error() {
    let place = Place::new();
    std::fs::write(place.path("file"), "").unwrap();
    assert_snapshot!("man_unwritable", place.session("man --output file"));
}
