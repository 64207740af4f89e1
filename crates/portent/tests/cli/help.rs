//! Help pages, and what commands that are not built yet say.

use crate::Place;
use insta::assert_snapshot;

#[test]
fn the_help_pages() {
    let place = Place::new();
    assert_snapshot!("help", place.session("--help"));
    assert_snapshot!("help_short", place.session("-h"));
    for command in ["demo", "validate", "stats", "convert", "gen", "predict", "record"] {
        assert_snapshot!(format!("help_{command}"), place.session(&format!("{command} --help")));
    }
}

#[test]
fn commands_that_are_not_built_yet_say_so_whatever_they_are_given() {
    let place = Place::new();
    assert_snapshot!("not_built", place.session("check --kind race -- ./program --flag"));
    for line in ["check", "check -- ./a"] {
        let output = place.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        let said = String::from_utf8(output.stderr).unwrap();
        let command = line.split(' ').next().unwrap();
        assert!(said.starts_with(&format!("error: portent {command} is not built yet\nhelp: ")), "{said}");
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
