//! Events inside libraries: the line of the user's own code that they are told by.

use crate::{PORTENT, left_out};
use portent_testing::command::{LIMIT, NOTHING, run};
use portent_testing::programs::{self, read};
use portent_testing::scratch::Scratch;
use std::collections::BTreeSet;

/// The lines of a source, by the comment at their end.
fn line(source: &str, tag: &str) -> u32 {
    let comment = format!("// {tag}");
    let at = source.lines().position(|line| line.ends_with(&comment));
    at.unwrap_or_else(|| panic!("no line says {tag}")) as u32 + 1
}

#[test]
fn what_libraries_do_is_told_by_the_users_line() {
    if left_out("stacks") {
        return;
    }
    let source_path = programs::directory().join("special/places.cpp");
    let source = std::fs::read_to_string(&source_path).unwrap();
    for level in ["-O0", "-O1"] {
        let scratch = Scratch::new();
        let (binary, trace) = (scratch.path("places"), scratch.path("places.portent"));
        let mut build = PORTENT.command();
        build.args(["c++", level, "-g"]).arg(&source_path).arg("-o").arg(&binary);
        let built = run(&mut build, scratch.directory(), NOTHING, LIMIT);
        assert!(built.exited_with(0), "{}", built.describe());
        let mut record = PORTENT.command();
        record.args(["record", "-o"]).arg(&trace).arg("--").arg(&binary);
        let recorded = run(&mut record, scratch.directory(), NOTHING, LIMIT);
        assert!(recorded.exited_with(0), "{}", recorded.describe());
        let contents = read(&trace).unwrap();
        // Where the events of a thread with an operation on such objects are.
        let lines = |thread: &str, op: &str, object: &str| -> BTreeSet<u32> {
            let wanted = |&event: &usize| contents.is(event, thread, op, object);
            (0..contents.events.len()).filter(wanted).map(|event| contents.user_line(event).unwrap_or(0)).collect()
        };
        let expect = |thread: &str, op: &str, object: &str, tags: &[&str]| {
            let expected: BTreeSet<u32> = tags.iter().map(|tag| line(&source, tag)).collect();
            assert_eq!(lines(thread, op, object), expected, "{level}: {thread} {op}({object}) is at {tags:?}");
        };
        expect("T0", "fork", "T1", &["thread"]);
        expect("T0", "fork", "T2", &["lambda"]);
        expect("T0", "fork", "T3", &["async"]);
        expect("T0", "join", "T1", &["join waiter"]);
        expect("T0", "join", "T2", &["join user"]);
        expect("T2", "acq", "other", &["lock"]);
        expect("T2", "rel", "other", &["unlock"]);
        expect("T2", "acq", "guard", &["lock_guard"]);
        expect("T1", "acq", "guard", &["unique_lock"]);
        expect("T1", "slp", "ready", &["wait"]);
        expect("T1", "wak", "ready", &["wait"]);
        expect("T0", "nta", "ready", &["notify"]);
        for access in ["r", "w"] {
            expect("T2", access, "numbers*", &["vector"]);
            expect("T2", access, "queue*", &["deque"]);
            expect("T2", access, "table*", &["map"]);
            expect("T2", access, "body", &["lambda"]);
            expect("T3", access, "queue*", if access == "r" { &["async"] } else { &[] });
        }
        let freed = lines("T0", "free", "*");
        assert!(freed.contains(&line(&source, "reset")), "{level}: memory is freed at reset(): {freed:?}");
        // Of code that says nothing of its calls only the function is known that called it.
        let text = (0..contents.events.len()).filter(|&event| contents.is(event, "T2", "w", "std::string's text*"));
        let places: BTreeSet<String> = text.filter_map(|event| contents.user_function(event)).collect();
        assert!(places.iter().all(|function| function.contains("use_containers")), "{level}: {places:?}");
    }
}
