//! What programs tell ThreadSanitizer about themselves means the same here: a program that its annotations keep apart is clean,
//! and the same program without them races.

use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run};
use portent_testing::parallel::each;
use portent_testing::programs::{Builder, Program, read};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Each a way of `annotations`: the annotations, and what races without them.
const WAYS: [(&str, &str); 15] = [
    ("release", "data race on data"),
    ("happens", "data race on data"),
    ("mutex", "data race on data"),
    ("try", "data race on data"),
    ("read", "data race on data"),
    ("rwlock", "data race on data"),
    ("benign", "data race on data"),
    ("sized", "data race on"),
    ("ignore", "data race on data"),
    ("thread", "data race on data"),
    ("barrier", "data race on data"),
    ("fibers", "data race on data"),
    ("unaligned", "data race on bytes"),
    ("external", "data race on data"),
    ("syscall", "data race on bytes"),
];

const CHECK: [&str; 4] = ["check", "--kind", "race", "--observations"];

fn portent(words: &[&str], binary: &Path, arguments: &[&str], scratch: &Scratch) -> Finished {
    let mut command = PORTENT.command();
    command.args(words).arg("--").arg(binary).args(arguments);
    run(&mut command, scratch.directory(), NOTHING, LIMIT)
}

#[test]
fn what_annotations_keep_apart_does_not_race_and_does_without_them() {
    if left_out("annotations") {
        return;
    }
    let built = build(&Program::named("special/annotations.c"), Builder::Portent).unwrap();
    each(
        &WAYS,
        |(way, _)| (*way).to_owned(),
        |(way, race)| {
            let scratch = Scratch::new();
            let apart = portent(&CHECK, &built.binary, &[way], &scratch);
            if !apart.exited_with(0) || !apart.out().starts_with("done\n") || apart.out().contains("data race") {
                return Err(format!("the annotations keep the threads apart\n{}", apart.describe()));
            }
            let racy = portent(&CHECK, &built.binary, &[way, "without"], &scratch);
            if racy.out().contains(race) { Ok(()) } else { Err(format!("there is a race\n{}", racy.describe())) }
        },
    );
}

#[test]
fn annotated_locks_taken_in_two_orders_deadlock_in_a_replay() {
    if left_out("annotated locks") {
        return;
    }
    let built = build(&Program::named("special/annotations.c"), Builder::Portent).unwrap();
    let scratch = Scratch::new();
    let wrong = portent(&["check"], &built.binary, &["deadlock"], &scratch);
    assert!(wrong.exited_with(1), "{}", wrong.describe());
    for word in ["deadlock", "word", "second_word"] {
        assert!(wrong.out().contains(word), "{word}\n{}", wrong.describe());
    }
    let right = portent(&["check"], &built.binary, &["deadlock", "without"], &scratch);
    assert!(right.exited_with(0), "{}", right.describe());
}

#[test]
fn annotated_locks_are_one_event_each_and_their_own_code_is_none() {
    if left_out("events of annotated locks") {
        return;
    }
    let built = build(&Program::named("special/annotations.c"), Builder::Portent).unwrap();
    let scratch = Scratch::new();
    let trace = scratch.path("run.portent");
    let words = ["record", "--sched", "random", "--seed", "3", "-o", trace.to_str().unwrap()];
    let recorded = portent(&words, &built.binary, &["mutex"], &scratch);
    assert!(recorded.exited_with(0), "{}", recorded.describe());
    let contents = read(&trace).unwrap();
    let count = |op: &str, object: &str| {
        (0..contents.events.len())
            .filter(|&event| ["T1", "T2"].iter().any(|thread| contents.is(event, thread, op, object)))
            .count()
    };
    assert_eq!((count("acq", "word"), count("rel", "word")), (6, 6));
    assert_eq!((count("u.acq", "word"), count("w.rel", "word"), count("r.rlx", "word")), (0, 0, 0));
    let replayed = run(PORTENT.command().args(["replay"]).arg(&trace), scratch.directory(), NOTHING, LIMIT);
    assert!(replayed.exited_with(0), "{}", replayed.describe());
}

#[test]
fn fibers_and_threads_have_the_names_that_annotations_give_them() {
    if left_out("names by annotations") {
        return;
    }
    let built = build(&Program::named("special/annotations.c"), Builder::Portent).unwrap();
    for (way, name) in [("fibers", "a fiber"), ("name", "the one that writes")] {
        let scratch = Scratch::new();
        let trace = scratch.path("run.portent");
        let recorded = portent(&["record", "-o", trace.to_str().unwrap()], &built.binary, &[way], &scratch);
        assert!(recorded.exited_with(0), "{}", recorded.describe());
        let contents = read(&trace).unwrap();
        assert!(
            contents.has("thread", &format!("*{name}*")),
            "{name}: {:?}",
            contents.named("thread").collect::<Vec<_>>()
        );
        let replayed = run(PORTENT.command().args(["replay"]).arg(&trace), scratch.directory(), NOTHING, LIMIT);
        assert!(replayed.exited_with(0), "{way}\n{}", replayed.describe());
    }
}

/// Whatever links with ThreadSanitizer's library links with ours.
#[test]
fn every_function_of_the_sanitizers_interface_is_there() {
    if left_out("the sanitizer's interface") {
        return;
    }
    let libraries = [("gcc", "libtsan.so"), ("clang", "libclang_rt.tsan-x86_64.so")];
    let theirs: Vec<String> = libraries
        .iter()
        .filter_map(|(compiler, library)| {
            let said = Command::new(compiler).arg(format!("-print-file-name={library}")).output().ok()?;
            Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())
        })
        .filter(|path| Path::new(path).is_absolute())
        .collect();
    if theirs.is_empty() {
        return skipped("the sanitizer's interface", "neither gcc nor clang has ThreadSanitizer's library");
    }
    let built = build(&Program::named("special/annotations.c"), Builder::Portent).unwrap();
    let maps = Command::new("ldd").arg(&built.binary).output().unwrap();
    let maps = String::from_utf8_lossy(&maps.stdout).into_owned();
    let ours = maps.split_whitespace().find(|word| word.starts_with('/') && word.contains("portent"));
    let ours = ours.unwrap_or_else(|| panic!("{maps}")).to_owned();
    let symbols = |library: &str| -> BTreeSet<String> {
        let output = Command::new("nm").args(["-D", "--defined-only", library]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect()
    };
    let ours = symbols(&ours);
    let theirs: BTreeSet<String> = theirs.iter().flat_map(|library| symbols(library)).collect();
    assert!(theirs.len() > 1000 && ours.len() > 300, "{} {}", theirs.len(), ours.len());
    let wanted = |name: &&String| {
        let interface = ["Annotate", "WTFAnnotate", "__tsan_", "__sanitizer_", "RunningOnValgrind", "ValgrindSlowdown"];
        // What programs may define.
        let defined_by_programs =
            ["__sanitizer_weak_hook", "__tsan_default_", "__tsan_on_report", "__tsan_test_only_on"];
        let others =
            ["__tsan_symbolize_external", "__sanitizer_free_hook", "__sanitizer_malloc_hook", "__sanitizer_on_print"];
        interface.iter().any(|prefix| name.starts_with(prefix))
            && !defined_by_programs.iter().chain(&others).any(|prefix| name.starts_with(prefix))
    };
    let missing: Vec<&String> = theirs.iter().filter(wanted).filter(|name| !ours.contains(*name)).collect();
    assert!(missing.is_empty(), "not defined: {missing:?}");
}
