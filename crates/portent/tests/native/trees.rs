//! Process trees: drivers that start programs (scripts, make, ctest), children that fork, daemons; where runs are left; and what
//! is refused before the work.

use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run, there_is};
use portent_testing::programs::{self, Builder, Program};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use serde_json::Value;

/// A directory with a program of tests/programs/special in it, built, under its own name.
fn with(program: &str) -> Scratch {
    let built = build(&Program::named(&format!("special/{program}.c")), Builder::Portent).unwrap();
    let scratch = Scratch::new();
    std::fs::copy(&built.binary, scratch.path(program)).unwrap();
    scratch
}

fn portent(scratch: &Scratch, words: &[&str]) -> Finished {
    let mut command = PORTENT.command();
    run(command.args(words).env("PORTENT", PORTENT.program), scratch.directory(), NOTHING, LIMIT)
}

fn json(scratch: &Scratch, name: &str) -> Value {
    serde_json::from_str(&scratch.read(name)).unwrap()
}

fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    value.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

/// What must come of the three cases of special/cases.c, each run by itself: a race in one, nothing in one, one without threads.
/// The first two are called so.
fn three_cases(finished: &Finished, scratch: &Scratch, [racy, locked]: [&str; 2]) {
    assert_eq!(finished.code(), Some(1), "{}", finished.describe());
    let text = finished.out();
    let heading = text.find(&format!("── {racy} ──")).unwrap_or_else(|| panic!("{}", finished.describe()));
    let race = text.find("data race on plain").unwrap_or_else(|| panic!("{}", finished.describe()));
    assert!(heading < race && text.matches("──\n").count() == 1, "{text}");
    assert!(text.contains(&format!("✗ {racy}: 1 failure")), "{text}");
    assert!(text.contains(&format!("✓ {locked}: no failure")), "{text}");
    assert!(text.contains("1 process that it started had one thread only"), "{text}");
    let document = json(scratch, "found.json");
    assert_eq!(texts(&document["processes"], "name"), [racy, locked]);
    let race = document["findings"].as_array().unwrap().iter().find(|one| one["kind"] == "race").unwrap();
    assert_eq!((&race["verdict"], &race["object"]), (&Value::from("confirmed"), &Value::from("plain")));
    assert_eq!(race["processes"], serde_json::json!([racy]));
    let suites = scratch.read("found.xml");
    assert!(suites.contains(&format!("<testsuite name=\"{racy}\" tests=")), "{suites}");
    assert!(suites.contains(&format!("<testcase classname=\"{locked}\" name=\"no failure found\"/>")), "{suites}");
    let page = scratch.read("found.html");
    assert!(page.contains(&format!(r#""processes":["{racy}"]"#)), "the page names the process of the race");
    let sarif = json(scratch, "found.sarif");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().any(|one| one["properties"]["processes"] == race["processes"]), "{sarif}");
    // The command that the report prints shows it again.
    let command = text.lines().find_map(|line| line.trim().strip_prefix("replay     portent ")).unwrap();
    let words: Vec<&str> = command.split("        (").next().unwrap().split_whitespace().collect();
    let replayed = portent(scratch, &words);
    assert!(replayed.code() == Some(1) && replayed.out().contains("shown in 1 of 1"), "{}", replayed.describe());
}

/// The two cases by their command lines, which is all that most drivers know.
const COMMANDS: [&str; 2] = ["cases --filter=racy", "cases --filter=locked"];

const REPORTS: [&str; 8] =
    ["--json", "found.json", "--junit", "found.xml", "--sarif", "found.sarif", "--html", "found.html"];

fn check_driver(scratch: &Scratch, driver: &[&str]) -> Finished {
    portent(scratch, &[&["check"][..], &REPORTS, &["--"], driver].concat())
}

#[test]
fn a_script_that_runs_three_tests_is_reported_test_by_test() {
    if left_out("a script of three tests") {
        return;
    }
    let scratch = with("cases");
    let script = "./cases --filter=racy && ./cases --filter=locked && ./cases --filter=alone";
    let finished = check_driver(&scratch, &["sh", "-c", script]);
    three_cases(&finished, &scratch, COMMANDS);
    assert!(finished.out().contains("sh has no instrumentation"), "{}", finished.describe());
}

#[test]
fn processes_without_instrumentation_are_counted_and_named() {
    if left_out("processes without instrumentation") {
        return;
    }
    let scratch = with("cases");
    let finished =
        portent(&scratch, &["check", "--", "sh", "-c", "sleep 0.3 & sleep 0.3 & ./cases --filter=locked; wait"]);
    let told = "at least 2 processes that it started have no instrumentation, and nothing of that is seen: ";
    let named = finished.out().lines().any(|line| line.split(told).nth(1).is_some_and(|names| names.contains(" (2)")));
    assert!(finished.code() == Some(0) && named, "{}", finished.describe());
    let alone = portent(&scratch, &["check", "--", "./cases", "--filter=locked"]);
    assert!(!alone.out().contains("no instrumentation"), "{}", alone.describe());
}

#[test]
fn make_check_is_reported_test_by_test() {
    if left_out("make check") {
        return;
    }
    if !there_is("make") {
        return skipped("make check", "no make on this machine");
    }
    let scratch = with("cases");
    scratch.write("Makefile", "check:\n\t./cases --filter=racy\n\t./cases --filter=locked\n\t./cases --filter=alone\n");
    three_cases(&check_driver(&scratch, &["make", "-s", "check"]), &scratch, COMMANDS);
}

/// A build of special/cases.c with three tests, by these files and this line of shell.
fn built_by(files: &[(&str, &str)], line: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("cases.c", std::fs::read(programs::directory().join("special/cases.c")).unwrap());
    for (name, text) in files {
        scratch.write(name, text);
    }
    let built = run(PORTENT.command().arg("cc").arg("--version"), scratch.directory(), NOTHING, LIMIT);
    assert_eq!(built.code(), Some(0), "{}", built.describe());
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", line]).env("PORTENT_CACHE", PORTENT.cache());
    let made = run(shell.env("CC", format!("{} cc", PORTENT.program)), scratch.directory(), NOTHING, LIMIT);
    assert_eq!(made.code(), Some(0), "{}", made.describe());
    scratch
}

/// The two cases by the names of their tests.
const TESTS: [&str; 2] = ["racy (build/cases --filter=racy)", "locked (build/cases --filter=locked)"];

const CMAKE: &str = "cmake_minimum_required(VERSION 3.5)\nproject(three C)\nenable_testing()\nfind_package(Threads REQUIRED)\n\
     add_executable(cases cases.c)\ntarget_link_libraries(cases Threads::Threads)\n\
     foreach(name racy locked alone)\n  add_test(NAME ${name} COMMAND cases --filter=${name})\nendforeach()\n";

#[test]
fn ctest_on_a_cmake_project_of_three_tests_is_reported_test_by_test() {
    if left_out("ctest") {
        return;
    }
    if !there_is("cmake") || !there_is("ctest") {
        return skipped("ctest", "no cmake on this machine");
    }
    // The environment may name a compiler of two words, the option wants a list; a link is one word.
    let program = PORTENT.program;
    let option = format!("-DCMAKE_C_COMPILER={program};cc");
    let build = "-S . -B build && cmake --build build";
    let mut ways =
        vec![format!("cmake {build}"), format!("env -u CC cmake '{option}' -DCMAKE_BUILD_TYPE=Debug {build}")];
    if there_is("ninja") {
        let link = format!("ln -s '{program}' portent-cc");
        ways.push(format!("{link} && env -u CC cmake -G Ninja -DCMAKE_C_COMPILER=$PWD/portent-cc {build}"));
    } else {
        skipped("ctest after ninja", "no ninja on this machine");
    }
    for line in ways {
        let scratch = built_by(&[("CMakeLists.txt", CMAKE)], &line);
        three_cases(&check_driver(&scratch, &["ctest", "--test-dir", "build"]), &scratch, TESTS);
    }
}

#[test]
fn meson_test_is_reported_test_by_test() {
    if left_out("meson test") {
        return;
    }
    if !there_is("meson") || !there_is("ninja") {
        return skipped("meson test", "no meson and ninja on this machine");
    }
    let project = "project('three', 'c')\n\
        cases = executable('cases', 'cases.c', dependencies: dependency('threads'))\n\
        foreach name : ['racy', 'locked', 'alone']\n  test(name, cases, args: '--filter=' + name)\nendforeach\n";
    let scratch = built_by(&[("meson.build", project)], "meson setup build && ninja -C build");
    // One after the other: meson runs several at once, and which of them begins first is chance.
    let driver = ["meson", "test", "-C", "build", "--num-processes", "1"];
    three_cases(&check_driver(&scratch, &driver), &scratch, TESTS);
}

/// Programs of a test framework: `main` is the framework's, and a filter chooses the tests.
#[test]
fn filters_of_test_frameworks_choose_what_is_checked() {
    if left_out("test frameworks") {
        return;
    }
    const TESTS_OF_GTEST: &str = "#include <gtest/gtest.h>\n\
        TEST(Queue, Racy) { both(add); EXPECT_EQ(total, 2); }\nTEST(Queue, Locked) { both(add_locked); }\n";
    const TESTS_OF_CATCH: &str = "#define CATCH_CONFIG_MAIN\n#include <catch2/catch.hpp>\n\
        TEST_CASE(\"racy\") { both(add); CHECK(total == 2); }\nTEST_CASE(\"locked\") { both(add_locked); }\n";
    const BODY: &str = "#include <mutex>\n#include <thread>\nstatic int total;\nstatic std::mutex lock;\n\
        static void add() { total++; }\nstatic void add_locked() { std::lock_guard guard(lock); total++; }\n\
        static void both(void (*work)()) { std::thread one(work), two(work); one.join(); two.join(); }\n";
    let frameworks = [
        ("gtest", TESTS_OF_GTEST, &["-lgtest_main", "-lgtest"][..], "--gtest_filter=*Racy", "--gtest_filter=*Locked"),
        ("Catch2", TESTS_OF_CATCH, &[], "racy", "locked"),
    ];
    for (name, tests, libraries, racy, locked) in frameworks {
        let scratch = Scratch::new();
        scratch.write("tests.cpp", format!("{BODY}{tests}"));
        let build = [&["c++", "-std=c++17", "-pthread", "tests.cpp", "-o", "tests"][..], libraries].concat();
        let built = portent(&scratch, &build);
        if built.code() != Some(0) {
            skipped(name, "it is not on this machine");
            continue;
        }
        let found = portent(&scratch, &["check", "--budget", "20", "--json", "found.json", "--", "./tests", racy]);
        assert_eq!(found.code(), Some(1), "{}", found.describe());
        let document = json(&scratch, "found.json");
        let race = document["findings"].as_array().unwrap().iter().find(|one| one["kind"] == "race").cloned();
        let race = race.unwrap_or_else(|| panic!("{}", found.describe()));
        assert_eq!(race["object"], "total", "{name}");
        let quiet = portent(&scratch, &["check", "--budget", "20", "--", "./tests", locked]);
        assert_eq!(quiet.code(), Some(0), "{}", quiet.describe());
    }
}

#[test]
fn a_program_with_a_filter_checks_only_what_it_runs() {
    if left_out("a filter") {
        return;
    }
    let scratch = with("cases");
    let one = portent(&scratch, &["check", "--", "./cases", "--filter=locked"]);
    assert!(one.code() == Some(0) && one.out().contains("no failure"), "{}", one.describe());
    let all = portent(&scratch, &["check", "--", "./cases"]);
    assert!(all.code() == Some(1) && !all.out().contains("──"), "{}", all.describe());
    let single = portent(&scratch, &["check", "--", "./cases", "--filter=alone"]);
    assert!(single.out().contains("only one thread ran"), "{}", single.describe());
}

#[test]
fn a_forked_child_with_threads_is_recorded_and_replayed() {
    if left_out("a forked child") {
        return;
    }
    for words in [&["./forks"][..], &["./forks", "daemon"]] {
        let scratch = with("forks");
        let finished = portent(&scratch, &[&["check", "--json", "found.json", "--"], words].concat());
        assert_eq!(finished.code(), Some(1), "{}", finished.describe());
        let document = json(&scratch, "found.json");
        let race = document["findings"].as_array().unwrap().iter().find(|one| one["kind"] == "race").unwrap();
        assert_eq!((&race["object"], &race["verdict"]), (&Value::from("served"), &Value::from("confirmed")));
        assert!(race["processes"][0].as_str().unwrap().ends_with("(forked child)"), "{race}");
        let replayed = portent(&scratch, &["replay", "forks.checks/1", "--finding", race["id"].as_str().unwrap()]);
        assert!(replayed.out().contains("shown in 1 of 1"), "{}", replayed.describe());
    }
}

#[test]
fn a_daemon_that_never_ends_is_ended_and_what_it_did_is_examined() {
    if left_out("a daemon") {
        return;
    }
    let scratch = with("forks");
    let finished = portent(&scratch, &["check", "--json", "found.json", "--", "sh", "-c", "./forks for-ever"]);
    assert_eq!(finished.code(), Some(1), "{}", finished.describe());
    let document = json(&scratch, "found.json");
    let race = document["findings"].as_array().unwrap().iter().find(|one| one["kind"] == "race").unwrap();
    assert_eq!((&race["object"], &race["verdict"]), (&Value::from("served"), &Value::from("predicted")));
    assert!(finished.out().contains("not replayed: it still ran when that had ended"), "{}", finished.describe());
    let here = scratch.path("forks");
    let running =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().path().join("exe").read_link().ok());
    assert!(!running.into_iter().any(|exe| exe == here), "it still runs");
}

#[test]
fn a_driver_that_starts_nothing_with_instrumentation_is_refused() {
    if left_out("a driver of nothing") {
        return;
    }
    let scratch = Scratch::new();
    let finished = portent(&scratch, &["check", "--", "sh", "-c", "true"]);
    assert_eq!(finished.code(), Some(2), "{}", finished.describe());
    assert!(finished.stderr.contains("nothing was recorded") && finished.stderr.contains("portent cc"));
    assert!(scratch.names().is_empty(), "{:?}", scratch.names());
}

#[test]
fn a_test_that_needs_what_its_driver_made_is_examined_and_not_replayed() {
    if left_out("a driver with files") {
        return;
    }
    let scratch = with("cases");
    // The program is there only while the script runs, so that nobody can start it again.
    let script = "cp cases copied && ./copied --filter=racy; rm copied";
    let finished = portent(&scratch, &["check", "--", "sh", "-c", script]);
    assert_eq!(finished.code(), Some(1), "{}", finished.describe());
    let text = finished.out();
    assert!(text.contains("predicted") && text.contains("only what it did when"), "{text}");
    assert!(!text.contains("portent replay"), "{text}");
}

#[test]
fn a_report_on_standard_output_is_alone_there() {
    if left_out("--json -") {
        return;
    }
    let scratch = with("cases");
    for (option, begin) in [("--json", "{"), ("--sarif", "{"), ("--junit", "<?xml")] {
        let finished = portent(&scratch, &["check", option, "-", "--", "./cases"]);
        assert!(finished.out().starts_with(begin), "{}", finished.describe());
        assert!(!finished.out().contains("racy passed") && finished.stderr.contains("racy passed"));
        if begin == "{" {
            serde_json::from_str::<Value>(&finished.out()).unwrap();
        }
    }
    let driven = portent(&scratch, &["check", "--json", "-", "--", "sh", "-c", "./cases"]);
    serde_json::from_str::<Value>(&driven.out()).unwrap();
}

#[test]
fn bad_output_paths_are_told_before_the_program_runs() {
    if left_out("bad output paths") {
        return;
    }
    let scratch = with("cases");
    for option in ["--json", "--sarif", "--junit", "--html", "-o"] {
        for path in ["nonesuch/x", "."] {
            let finished = portent(&scratch, &["check", option, path, "--", "./cases"]);
            assert_eq!(finished.code(), Some(2), "{}", finished.describe());
            assert!(finished.stderr.contains(path) && finished.out().is_empty(), "{}", finished.describe());
        }
    }
    let twice = portent(&scratch, &["check", "--json", "x", "--sarif", "x", "--", "./cases"]);
    assert!(twice.code() == Some(2) && twice.stderr.contains("same file"), "{}", twice.describe());
    assert_eq!(scratch.names(), ["cases"], "something was left");
}

#[test]
fn a_second_check_overwrites_nothing_and_old_ids_can_be_replayed() {
    if left_out("a second check") {
        return;
    }
    let scratch = with("cases");
    let id = |json: &str| {
        let document = self::json(&scratch, json);
        let race = document["findings"].as_array().unwrap().iter().find(|one| one["kind"] == "race").cloned().unwrap();
        race["id"].as_str().unwrap().to_owned()
    };
    portent(&scratch, &["check", "--json", "first.json", "--", "./cases", "--filter=racy"]);
    let race = id("first.json");
    let now = portent(&scratch, &["replay", "cases.portent", "--finding", &race]);
    assert!(now.code() == Some(1) && !now.stderr.contains("earlier"), "{}", now.describe());
    let second = portent(&scratch, &["check", "--", "./cases", "--filter=locked"]);
    assert_eq!(second.code(), Some(0), "{}", second.describe());
    let old = portent(&scratch, &["replay", "cases.portent", "--finding", &race]);
    assert!(old.code() == Some(1) && old.out().contains("shown in 1 of 1"), "{}", old.describe());
    assert!(old.stderr.contains("of an earlier check: cases.checks/1/run.portent"), "{}", old.describe());
    let unknown = portent(&scratch, &["replay", "cases.portent", "--finding", "race-000000"]);
    assert!(unknown.code() == Some(2) && unknown.stderr.contains("no finding race-000000"), "{}", unknown.describe());
    // A trace that somebody recorded under the name of the link is not replaced, nor is the run behind the link.
    let before = std::fs::read(scratch.path("cases.checks/2/run.portent")).unwrap();
    portent(&scratch, &["record", "--", "./cases", "--filter=racy"]);
    assert_eq!(std::fs::read(scratch.path("cases.checks/2/run.portent")).unwrap(), before);
    let own = std::fs::read(scratch.path("cases.portent")).unwrap();
    let third = portent(&scratch, &["check", "--", "./cases", "--filter=racy"]);
    assert!(third.out().contains("portent replay cases.checks/3/run.portent"), "{}", third.describe());
    assert_eq!(std::fs::read(scratch.path("cases.portent")).unwrap(), own);
}

#[test]
fn record_writes_a_trace_for_every_process_with_threads() {
    if left_out("record of a tree") {
        return;
    }
    let scratch = with("cases");
    let script = "./cases --filter=racy && ./cases --filter=locked";
    let finished = portent(&scratch, &["record", "-o", "run.portent", "--", "sh", "-c", script]);
    assert_eq!(finished.code(), Some(0), "{}", finished.describe());
    assert!(finished.stderr.contains("recorded: run.2-cases.portent: "), "{}", finished.describe());
    for (trace, status) in [("run.portent", 1), ("run.2-cases.portent", 0)] {
        let predicted = portent(&scratch, &["predict", "--kind", "race", trace]);
        assert_eq!(predicted.code(), Some(status), "{}", predicted.describe());
    }
}

#[test]
fn code_without_instrumentation_is_told() {
    if left_out("code without instrumentation") {
        return;
    }
    let scratch = Scratch::with("plain.c", "int counter; void count(void) { counter++; }\n").and(
        "main.c",
        "#include <pthread.h>\nvoid count(void);\nstatic void *run(void *arg) { count(); return arg; }\n\
         int main(void) { pthread_t one; pthread_create(&one, 0, run, 0); count(); pthread_join(one, 0); return 0; }\n",
    );
    let mut shell = std::process::Command::new("sh");
    let line = "gcc -g -c plain.c && \"$PORTENT\" cc -g -c main.c && \"$PORTENT\" cc main.o plain.o -o mixed";
    let built = run(
        shell.args(["-c", line]).env("PORTENT", PORTENT.program).env("PORTENT_CACHE", PORTENT.cache()),
        scratch.directory(),
        NOTHING,
        LIMIT,
    );
    if built.code() != Some(0) {
        return skipped("code without instrumentation", "no gcc on this machine");
    }
    let finished = portent(&scratch, &["check", "--", "./mixed"]);
    assert!(finished.out().contains("plain.c was compiled without instrumentation"), "{}", finished.describe());
    assert!(!finished.out().contains("main.c was"), "{}", finished.describe());
}

#[test]
fn a_daemon_that_never_ends_is_ended_soon_and_what_it_did_until_then_is_examined() {
    if left_out("an endless daemon") {
        return;
    }
    let scratch = with("daemon");
    // Nothing runs into this.
    let finished = portent(&scratch, &["check", "--timeout", "500", "--", "./daemon"]);
    assert!(finished.exited_with(0), "{}", finished.describe());
    assert!(finished.out().contains("as daemons do, and was ended then"), "{}", finished.describe());
    let program = scratch.path("daemon").canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let left = processes.filter(|one| std::fs::read_link(one.path().join("exe")).is_ok_and(|exe| exe == program));
    assert_eq!(left.count(), 0, "nothing is left behind");
}
