//! `portent record` where there is nothing to record: what it refuses, and what it says then. Real recordings are in
//! tests/native.

use crate::Place;
use insta::assert_snapshot;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn executable(place: &Place, name: &str) {
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn programs_that_cannot_be_started_are_refused_with_3() {
    let place = Place::with("source.c", "int main;").and("text", "no program").and("bank", "here");
    executable(&place, "text");
    executable(&place, "bank");
    std::fs::create_dir(place.path("folder")).unwrap();
    let lines = ["./nonesuch", "nonesuch", "bank", "./source.c", "./folder", "./text"];
    let sessions: String = lines.iter().map(|program| place.session(&format!("record -- {program}"))).collect();
    assert_snapshot!("record_not_started", sessions.replace(&*place.dir.path().to_string_lossy(), "HERE"));
}

#[test]
fn the_trace_must_be_a_portent_file_that_can_be_written() {
    let place = Place::with("program", "#!/bin/sh\necho it ran\n");
    executable(&place, "program");
    assert_snapshot!("record_output", place.session("record -o a.std -- ./program"));
    for output in ["-", "nonesuch/a.portent"] {
        let session = place.session(&format!("record -o {output} -- ./program"));
        assert!(session.ends_with("--- exit 2\n") && !session.contains("it ran"), "{session}");
    }
    assert!(place.session("record").ends_with("--- exit 2\n"));
}

#[test]
fn what_runs_without_instrumentation_runs_and_leaves_no_trace() {
    let place =
        Place::with("program", "#!/bin/sh\ncat; echo \"$1\"; exit 7\n").and("plain.c", "int main(void) { return 7; }");
    executable(&place, "program");
    let mut command = place.command("record -- ./program word");
    let output = command.write_stdin("from standard input\n").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "from standard input\nword\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("started no program with instrumentation") && said.contains("portent cc"), "{said}");
    assert_eq!(output.status.code(), Some(2));
    let compiled = Command::new("gcc").current_dir(place.dir.path()).args(["plain.c", "-o", "plain"]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no gcc on this machine");
        return;
    }
    let session = place.session("record -- ./plain");
    assert!(session.contains("plain is built without instrumentation"), "{session}");
    assert!(session.ends_with("--- exit 2\n"), "{session}");
    let static_program = ["-static", "plain.c", "-o", "static"];
    if Command::new("gcc").current_dir(place.dir.path()).args(static_program).status().unwrap().success() {
        let session = place.session("record -- ./static");
        assert!(session.contains("is linked statically: no runtime can be loaded into it"), "{session}");
    }
    let left: Vec<_> = std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("portent")), "{left:?}");
}
