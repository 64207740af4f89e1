//! `portent record` where there is nothing to record: what it refuses, and what it says then. Real recordings are in
//! tests/native.

use crate::Session;
use insta::assert_snapshot;
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn executable(scratch: &Scratch, name: &str) {
    std::fs::set_permissions(scratch.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn programs_that_cannot_be_started_are_refused_with_3() {
    let scratch = Scratch::with("source.c", "int main;").and("text", "no program").and("bank", "here");
    executable(&scratch, "text");
    executable(&scratch, "bank");
    std::fs::create_dir(scratch.path("folder")).unwrap();
    let lines = ["./nonesuch", "nonesuch", "bank", "./source.c", "./folder", "./text"];
    let sessions: String = lines.iter().map(|program| scratch.session(&format!("record -- {program}"))).collect();
    assert_snapshot!("record_not_started", sessions.replace(&*scratch.directory().to_string_lossy(), "HERE"));
}

#[test]
fn the_trace_must_be_a_portent_file_that_can_be_written() {
    let scratch = Scratch::with("program", "#!/bin/sh\necho it ran\n");
    executable(&scratch, "program");
    assert_snapshot!("record_output", scratch.session("record -o a.std -- ./program"));
    for output in ["-", "nonesuch/a.portent"] {
        let session = scratch.session(&format!("record -o {output} -- ./program"));
        assert!(session.ends_with("--- exit 2\n") && !session.contains("it ran"), "{session}");
    }
    assert!(scratch.session("record").ends_with("--- exit 2\n"));
}

#[test]
fn what_runs_without_instrumentation_runs_and_leaves_no_trace() {
    let scratch = Scratch::with("program", "#!/bin/sh\ncat; echo \"$1\"; exit 7\n")
        .and("plain.c", "int main(void) { return 7; }");
    executable(&scratch, "program");
    let finished = scratch.run("record -- ./program word", b"from standard input\n");
    assert_eq!(finished.out(), "from standard input\nword\n");
    let said = &finished.stderr;
    assert!(said.contains("started no program with instrumentation") && said.contains("portent cc"), "{said}");
    assert_eq!(finished.code(), Some(2));
    let compiled = Command::new("gcc").current_dir(scratch.directory()).args(["plain.c", "-o", "plain"]).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return skipped("programs without instrumentation", "no gcc on this machine");
    }
    let session = scratch.session("record -- ./plain");
    assert!(session.contains("plain is built without instrumentation"), "{session}");
    assert!(session.ends_with("--- exit 2\n"), "{session}");
    let static_program = ["-static", "plain.c", "-o", "static"];
    if Command::new("gcc").current_dir(scratch.directory()).args(static_program).status().unwrap().success() {
        let session = scratch.session("record -- ./static");
        assert!(session.contains("is linked statically: no runtime can be loaded into it"), "{session}");
    }
    let left = scratch.names();
    assert!(left.iter().all(|name| !name.contains("portent")), "{left:?}");
}
