//! The programs of `portent demo`, end to end: every bug is found as expected, confirmed, and replays every time; nothing is
//! found in the clean twins. And the command itself.

use crate::{PORTENT, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING};
use portent_testing::parallel::each;
use portent_testing::scratch::Scratch;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is to be found where. `name` is that of the program, `object` what the finding is about, if that is to be told.
struct Bug {
    name: &'static str,
    kind: &'static str,
    form: Option<&'static str>,
    object: Option<&'static str>,
    round: u64,
    /// What the replay showed, in part.
    showed: &'static str,
}

const fn bug(name: &'static str, kind: &'static str, object: &'static str, showed: &'static str) -> Bug {
    Bug { name, kind, form: None, object: Some(object), round: 1, showed }
}

const fn failure(name: &'static str, form: &'static str, showed: &'static str) -> Bug {
    Bug { name, kind: "failure", form: Some(form), object: None, round: 1, showed }
}

const BUGS: [Bug; 10] = [
    failure("closed_connection", "use_after_free", "connection from closed_connection.c:38 is used after it was freed"),
    failure("empty_queue", "abort", "abort() was called"),
    bug("hidden_race", "race", "parcels", "T2 is about to read parcels"),
    Bug {
        form: Some("lost_update"),
        ..bug("split_update", "failure", "balance", "T1 writes balance = 70 at split_update.c:21")
    },
    Bug {
        form: Some("cycle"),
        ..bug("three_way_deadlock", "deadlock", "green, blue, red", "T3 waits for lock red at three_way_deadlock.c:14")
    },
    Bug { form: Some("lost_wakeup"), ..bug("lost_wakeup", "deadlock", "bell", "T1 waits to be notified on bell") },
    failure("early_publication", "assertion", "`port == 8080` does not hold"),
    failure("last_bid", "output", "prints `sold for 40` instead of `sold for 50`"),
    bug(
        "landing",
        "property",
        "landing_needs_permit",
        "landing_needs_permit is broken by T2: write landing at landing.c:20: landing = 1, permit = 0",
    ),
    Bug { round: 2, ..bug("behind_a_branch", "race", "turned_away", "T1 is about to write turned_away") },
];

const CLEAN: [&str; 7] = [
    "clean_connection",
    "clean_queue",
    "clean_handover",
    "clean_lock_order",
    "clean_meeting",
    "clean_bids",
    "clean_landing",
];

/// The property file that a program is checked with.
fn spec(name: &str) -> Option<&'static str> {
    name.ends_with("landing").then_some("landing.spec")
}

fn portent(arguments: &[&str]) -> Command {
    let mut command = PORTENT.command();
    command.args(arguments);
    command
}

fn finish(command: &mut Command, directory: &Path) -> Finished {
    portent_testing::command::run(command, directory, NOTHING, LIMIT)
}

/// Runs a line of the command; its exit status, and all that it said.
fn run(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let finished = finish(&mut portent(arguments), directory);
    (finished.code(), finished.told())
}

/// A directory with the program, built.
fn built(name: &str) -> Scratch {
    let scratch = Scratch::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(format!("{name}.c"));
    std::fs::copy(&source, scratch.path(&format!("{name}.c"))).unwrap();
    if let Some(spec) = spec(name) {
        std::fs::copy(source.with_file_name(spec), scratch.path(spec)).unwrap();
    }
    let line = ["cc", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", name, &format!("{name}.c")];
    assert_eq!(run(scratch.directory(), &line), (Some(0), String::new()), "{name} builds without a warning");
    scratch
}

fn findings(path: &Path) -> Vec<Value> {
    let document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    document["findings"].as_array().unwrap().clone()
}

fn check(directory: &Path, name: &str, options: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let program = format!("./{name}");
    let properties: Vec<&str> = spec(name).into_iter().flat_map(|spec| ["--spec", spec]).collect();
    let same: &[&str] = if matches!(name, "last_bid" | "clean_bids") { &["--same-output"] } else { &[] };
    let line = [&["check", "--json", "found.json"], options, same, &properties, &[&program]].concat();
    let (status, text) = run(directory, &line);
    assert!(matches!(status, Some(0 | 1)), "{name}: {status:?}\n{text}");
    (status, findings(&directory.join("found.json")), text)
}

/// How many of these are alarms.
fn failures(found: &[Value]) -> usize {
    found.iter().filter(|finding| finding["level"] == "failure").count()
}

/// The trace whose findings, beside it, have this one.
fn trace_with(directory: &Path, id: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => open.push(path),
                false => found.push(path),
            }
        }
    }
    found.retain(|path| path.to_str().unwrap().ends_with(".findings.json"));
    found.sort();
    let path = found.into_iter().find(|path| findings(path).iter().any(|finding| finding["id"] == id)).unwrap();
    path.to_str().unwrap().replace(".findings.json", ".portent").into()
}

fn is_found_and_replays(bug: &Bug) {
    let name = bug.name;
    let scratch = built(name);
    let (status, found, text) = check(scratch.directory(), name, &[]);
    assert_eq!(status, Some(1), "{name}: {text}");
    let is_it = |finding: &&Value| {
        finding["kind"] == bug.kind
            && finding["form"].as_str() == bug.form
            && bug.object.is_none_or(|object| finding["object"] == object)
            && finding["round"].as_u64().is_none_or(|round| round == bug.round)
            && finding["level"] == "failure"
    };
    let finding = found.iter().find(is_it).unwrap_or_else(|| panic!("{name}: not found as expected\n{text}"));
    assert_eq!(finding["verdict"], "confirmed", "{name}: {text}");
    assert_eq!((&finding["replay"]["runs"], &finding["replay"]["hits"]), (&3.into(), &3.into()), "{name}");
    assert!(finding["replay"]["showed"].as_str().unwrap().contains(bug.showed), "{name}: {}", finding["replay"]);
    let unconfirmed: Vec<_> =
        found.iter().filter(|finding| finding["level"] == "failure" && finding["verdict"] != "confirmed").collect();
    assert!(unconfirmed.is_empty(), "{name}: {unconfirmed:#?}");

    let id = finding["id"].as_str().unwrap();
    let trace = trace_with(scratch.directory(), id);
    let (status, text) =
        run(scratch.directory(), &["replay", trace.to_str().unwrap(), "--finding", id, "--times", "20"]);
    assert_eq!(status, Some(1), "{name}: {text}");
    assert!(text.starts_with(&format!("{id}: shown in 20 of 20 replays\n")), "{name}: {text}");
}

#[test]
fn every_bug_is_found_confirmed_and_replays_20_times_of_20() {
    if !left_out("the bugs of the demo") {
        let holds = |bug: &Bug| {
            is_found_and_replays(bug);
            Ok(())
        };
        each(&BUGS, |bug| bug.name.to_owned(), holds);
    }
}

#[test]
fn nothing_is_found_in_the_clean_twins_whatever_the_recorded_schedule() {
    if left_out("the clean twins of the demo") {
        return;
    }
    for name in CLEAN {
        let scratch = built(name);
        for options in [&[][..], &["--runs", "20"], &["--model", "sync"]] {
            let (status, found, text) = check(scratch.directory(), name, options);
            assert_eq!((status, failures(&found)), (Some(0), 0), "{name} {options:?}: {text}");
            assert!(!text.contains("warning"), "{name} {options:?}: {text}");
        }
    }
}

#[test]
#[ignore = "takes half a minute"]
fn nothing_is_found_in_the_clean_twins_in_50_checks() {
    if left_out("the clean twins of the demo, 50 times") {
        return;
    }
    for name in CLEAN {
        let scratch = built(name);
        for number in 0..50 {
            let (status, found, text) = check(scratch.directory(), name, &[]);
            assert_eq!((status, failures(&found)), (Some(0), 0), "{name}, check {number}: {text}");
        }
    }
}

#[test]
fn happens_before_does_not_see_the_hidden_race_nor_reads_the_split_update() {
    if left_out("what other engines and models see") {
        return;
    }
    let scratch = built("hidden_race");
    check(scratch.directory(), "hidden_race", &[]);
    let (status, text) =
        run(scratch.directory(), &["predict", "--engine", "hb", "--kind", "race", "hidden_race.portent"]);
    assert_eq!(status, Some(0), "{text}");

    let scratch = built("split_update");
    let only = ["--model", "reads", "--kind", "atomicity", "--rounds", "1"];
    let (_, found, text) = check(scratch.directory(), "split_update", &only);
    // That the program fails in a run beside the recorded one is seen in any model.
    assert!(found.iter().all(|finding| finding["kind"] != "atomicity"), "{text}");
}

#[test]
fn the_demo_tells_the_story_of_every_bug_and_leaves_nothing_behind() {
    if left_out("portent demo") {
        return;
    }
    let (here, temporary) = (Scratch::new(), Scratch::new());
    let finished = finish(portent(&["demo"]).env("TMPDIR", temporary.directory()), here.directory());
    let text = finished.told();
    assert_eq!(finished.code(), Some(0), "{text}");
    assert_eq!((here.names(), temporary.names()), (vec![], vec![]));
    // Numbers of events depend a little on the compiler; addresses on the system.
    let filters = [
        (r"in \d+\.\d s\b", "in TIME"),
        (r"\(event \d+\)", "(event N)"),
        (r"⋮ \d+ events? ", "⋮ events "),
        (r"writes open_one = \d+", "writes open_one = ADDRESS"),
    ];
    insta::with_settings!({filters => filters.to_vec()}, {
        insta::assert_snapshot!("demo", text);
    });
}

#[test]
fn what_the_demo_keeps_can_be_looked_at_and_replayed() {
    if left_out("portent demo --keep") {
        return;
    }
    let here = Scratch::new();
    let (status, text) = run(here.directory(), &["demo", "--keep", "kept/here"]);
    assert_eq!(status, Some(0), "{text}");
    let kept = here.path("kept/here");
    for name in BUGS.iter().map(|bug| bug.name).chain(CLEAN) {
        for ending in ["c", "portent", "findings.json", "html"] {
            assert!(kept.join(format!("{name}.{ending}")).exists(), "{name}.{ending}");
        }
    }
    let command =
        |line: &'_ str| Some(line.trim().strip_prefix("replay ")?.trim_start().strip_prefix("portent ")?.to_owned());
    let commands: Vec<String> = text.lines().filter_map(command).collect();
    assert_eq!(commands.len(), BUGS.len(), "{text}");
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let (status, text) = run(&kept, &words);
        assert!(status == Some(1) && text.contains(": shown in 1 of 1 replay\n"), "{command}: {text}");
    }
}

#[test]
fn without_a_compiler_the_demo_says_so() {
    if left_out("portent demo without a compiler") {
        return;
    }
    let here = Scratch::new();
    let finished = finish(portent(&["demo"]).env("PATH", here.directory()), here.directory());
    assert_eq!((finished.code(), finished.out().as_str()), (Some(3), ""));
    let said = finished.stderr;
    assert!(
        said.starts_with("error: no compiler found: none of gcc, cc, clang is on the search path\nhelp: install one"),
        "{said}"
    );
}
