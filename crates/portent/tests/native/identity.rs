//! What a bug is recognised by: not by line numbers, directories or options of the compiler, and never taken for another.

use crate::{PORTENT, left_out};
use portent_testing::command::{LIMIT, NOTHING, run, there_is};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Two threads that append to a vector and count, both without a lock.
const ONE_BUG: &str = r#"#include <thread>
#include <vector>

std::vector<int> left, right;
int hits;

static void append(std::vector<int>& to)
{
    to.push_back(3);
}

static void first()
{
    left.push_back(1);
}

static void count()
{
    ++hits;
}

static void work()
{
    first();
    count();
}

int main()
{
    std::thread other(work);
    work();
    other.join();
    append(right);
}
"#;

/// Something goes wrong in the recorded run: memory is used after it was freed.
const FAILURE: &str = r#"#include <thread>

int main()
{
    int* number = new int(1);
    std::thread other([number] { delete number; });
    other.join();
    *number = 2;
}
"#;

/// A program somewhere, and how it was built.
#[derive(Clone, Copy)]
struct Setting<'a> {
    /// Where its source is, below the scratch directory.
    sources: &'a str,
    /// Where it is built, and called from.
    build: &'a str,
    level: &'a str,
    /// What compiles it; the first that there is, if nothing is said.
    compiler: Option<&'a str>,
    /// It is C, not C++.
    c: bool,
}

const USUAL: Setting<'_> = Setting { sources: "project", build: "project", level: "-O1", compiler: None, c: false };

impl Setting<'_> {
    fn build(&self, scratch: &Scratch, source: &str) {
        let file = if self.c { "bug.c" } else { "bug.cpp" };
        scratch.write(&format!("{}/{file}", self.sources), source);
        scratch.write(&format!("{}/empty", self.build), "");
        let mut compile = PORTENT.command();
        let (driver, variable) = if self.c { ("cc", "PORTENT_CC") } else { ("c++", "PORTENT_CXX") };
        compile.args([driver, self.level, "-g", "-pthread"]).arg(scratch.path(self.sources).join(file));
        compile.args(["-o", "bug"]).envs(self.compiler.map(|compiler| (variable, compiler)));
        succeed(&mut compile, &scratch.path(self.build));
    }

    /// The findings of a kind, by what they are about, with their ids.
    fn findings(&self, source: &str, kind: &str) -> BTreeMap<String, BTreeSet<String>> {
        let scratch = Scratch::new();
        self.record(&scratch, source);
        ids(&predicted(&scratch.path(self.build), kind, &[]))
    }

    fn record(&self, scratch: &Scratch, source: &str) {
        self.build(scratch, source);
        let mut record = PORTENT.command();
        record.args(["record", "-o", "bug.portent", "--", "./bug"]);
        succeed(&mut record, &scratch.path(self.build));
    }
}

fn succeed(command: &mut std::process::Command, directory: &Path) {
    let finished = run(command, directory, NOTHING, LIMIT);
    assert!(finished.exited_with(0), "{}", finished.describe());
}

/// What is predicted from a recorded trace.
fn predicted(directory: &Path, kind: &str, options: &[&str]) -> Vec<Value> {
    let mut predict = PORTENT.command();
    predict.args(["predict", "bug.portent", "--kind", kind, "--json", "found.json"]).args(options);
    let finished = run(&mut predict, directory, NOTHING, LIMIT);
    assert!(finished.code().is_some_and(|code| code < 2), "{}", finished.describe());
    findings_in(&directory.join("found.json"))
}

fn findings_in(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["findings"].as_array().unwrap().clone()
}

/// Ids by the first name in what a finding is about: `left` for `left (finish)`.
fn ids(findings: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for finding in findings {
        let text = |key: &str| finding[key].as_str().unwrap();
        let object = text("object").split(['.', '(', ':']).next().unwrap_or_default().trim_end();
        let ids = all.entry(object.to_owned()).or_default();
        assert!(ids.insert(text("id").to_owned()), "two findings are called {}", text("id"));
    }
    all
}

#[test]
fn ids_survive_what_does_not_change_the_bug() {
    if left_out("ids that survive") {
        return;
    }
    let usual = USUAL.findings(ONE_BUG, "race");
    assert_eq!(usual["left"].len(), 1, "one call is one finding, however much goes wrong in it: {usual:?}");
    assert_eq!(usual["hits"].len(), 1, "{usual:?}");
    let above = ONE_BUG.replace("std::vector<int> left", "// A remark,\n// in two lines.\nstd::vector<int> left");
    assert_eq!(USUAL.findings(&above, "race"), usual, "lines were added above");
    let indented = ONE_BUG.replace("    left.push_back(1);", "\tleft.push_back(1); // why not");
    assert_ne!(indented, ONE_BUG);
    assert_eq!(USUAL.findings(&indented, "race"), usual, "it was indented and remarked");
    let elsewhere = Setting { sources: "elsewhere/src", build: "elsewhere/src", ..USUAL };
    assert_eq!(elsewhere.findings(ONE_BUG, "race"), usual, "another working directory");
    let apart = Setting { sources: "project/src", build: "out/debug", ..USUAL };
    assert_eq!(apart.findings(ONE_BUG, "race"), usual, "another build directory");
    let plain = Setting { level: "-O0", ..USUAL };
    assert_eq!(plain.findings(ONE_BUG, "race"), usual, "without optimisation");
    let edited = USUAL.findings(&ONE_BUG.replace("++hits", "hits += 2"), "race");
    assert_eq!(edited["left"], usual["left"]);
    assert_ne!(edited["hits"], usual["hits"], "another line");
}

/// What two threads do to a list, an array, a counter and a variable of `main`, without a lock.
const IN_C: &str = r#"#include <pthread.h>
#include <stdlib.h>

struct node {
    int value;
    struct node *next;
};
static struct node *list;
static int hits;
static struct {
    long balance;
    char name[8];
} accounts[3];

static void push(int value)
{
    struct node *n = malloc(sizeof *n);
    n->value = value;
    n->next = list;
    list = n;
}

static void *work(void *arg)
{
    int *total = arg;
    push(1);
    hits++;
    accounts[1].balance += 2;
    *total += 2;
    return NULL;
}

int main(void)
{
    int total = 0;
    pthread_t other;
    pthread_create(&other, NULL, work, &total);
    work(&total);
    pthread_join(other, NULL);
    return total > 100;
}
"#;

/// The same in C++, with a local that a lambda captures.
const IN_CXX: &str = r#"#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Account {
    long balance = 0;
    std::string owner;
};
std::vector<int> left;
std::map<int, Account> accounts;

static void work(int* total)
{
    left.push_back(1);
    accounts[3].balance += 3;
    *total += 2;
}

int main()
{
    accounts[3];
    int total = 0;
    auto shared = std::make_shared<Account>();
    std::thread other([&] {
        work(&total);
        shared->balance++;
    });
    work(&total);
    shared->balance++;
    other.join();
    return total > 100;
}
"#;

#[test]
fn every_compiler_and_level_gives_the_same_ids() {
    if left_out("ids with several compilers") {
        return;
    }
    for (c, source, first) in [(true, IN_C, "gcc"), (false, IN_CXX, "g++")] {
        let settings = Setting { c, compiler: Some(first), ..USUAL };
        let wanted = settings.findings(source, "race");
        assert!(wanted.len() >= 4, "{wanted:?}");
        let above = source.replacen("static void", "// A remark.\nstatic void", 1);
        let mut tried = 0;
        for version in ["", "-14", "-15", "-16", "-17", "-18", "-19"] {
            let compiler = format!("{}{version}", if c { "clang" } else { "clang++" });
            if !there_is(&compiler) {
                continue;
            }
            tried += 1;
            for level in ["-O0", "-O1", "-O2"] {
                let setting = Setting { compiler: Some(&compiler), level, sources: "src", build: "out", ..settings };
                let (mut found, mut wanted) = (setting.findings(&above, "race"), wanted.clone());
                // clang 14 does not say where some variables are that others point to; later ones do.
                if found.remove("a local of main").is_some() {
                    assert!(version != "-19", "{compiler} {level}");
                    wanted.remove("total in main");
                }
                assert_eq!(found, wanted, "{compiler} {level}");
            }
        }
        if tried == 0 {
            skipped("ids with clang", "no clang on this machine");
        }
        let optimised = Setting { level: "-O2", ..settings };
        assert_eq!(optimised.findings(source, "race"), wanted, "{first} -O2");
    }
}

#[test]
fn a_trace_has_the_ids_that_its_program_has_even_where_the_source_is_not() {
    if left_out("ids of traces") {
        return;
    }
    let scratch = Scratch::new();
    USUAL.record(&scratch, ONE_BUG);
    let project = scratch.path("project");
    let here = ids(&predicted(&project, "race", &[]));
    std::fs::remove_file(project.join("bug.cpp")).unwrap();
    let moved = scratch.path("moved");
    std::fs::rename(&project, &moved).unwrap();
    assert_eq!(ids(&predicted(&moved, "race", &[])), here);
    // What was recorded without the source is recognised by what is left: where it is, by its function.
    let mut record = PORTENT.command();
    record.args(["record", "-o", "bug.portent", "--", "./bug"]);
    succeed(&mut record, &moved);
    let unread = ids(&predicted(&moved, "race", &[]));
    assert_eq!(unread.keys().collect::<Vec<_>>(), here.keys().collect::<Vec<_>>());
    assert_ne!(unread["hits"], here["hits"]);
}

#[test]
fn a_second_bug_at_the_same_line_of_a_library_is_another_one() {
    if left_out("a second bug") {
        return;
    }
    let scratch = Scratch::new();
    USUAL.record(&scratch, ONE_BUG);
    let project = scratch.path("project");
    let before = ids(&predicted(&project, "race", &[]));
    std::fs::rename(project.join("found.json"), scratch.path("base.json")).unwrap();
    // Above the old one, so that it is met first.
    let second = ONE_BUG.replace("    first();", "    right.push_back(2);\n    first();");
    USUAL.record(&scratch, &second);
    let after = ids(&predicted(&project, "race", &[]));
    assert_eq!(after["left"], before["left"], "the old one is still called so");
    assert_eq!(after["right"].len(), 1, "{after:?}");
    assert!(after["right"].is_disjoint(&before["left"]));
    let new = ids(&predicted(&project, "race", &["--baseline", "../base.json"]));
    assert_eq!(new.get("right"), after.get("right"), "a baseline hides nothing that is new");
    assert_eq!(new.get("left"), None, "and all that is known");
    scratch.write("project/known.txt", "kind=race function=first object=left\n");
    let rest = ids(&predicted(&project, "race", &["--suppress", "known.txt"]));
    assert_eq!((rest.get("left"), rest.get("right")), (None, after.get("right")), "rules name functions and objects");
}

#[test]
fn one_line_for_two_objects_is_two_bugs_and_for_many_of_a_kind_one() {
    if left_out("one line, two objects") {
        return;
    }
    let both = ONE_BUG.replace("    first();", "    append(left);\n    append(right);");
    let found = USUAL.findings(&both, "race");
    assert_eq!((found["left"].len(), found["right"].len()), (1, 1), "{found:?}");
    assert_ne!(found["left"], found["right"]);
    let many = ONE_BUG.replace("int hits;", "int hits[8];").replace("++hits;", "for (int& hit : hits) ++hit;");
    let found = USUAL.findings(&many, "race");
    let races: Vec<_> = found.iter().filter(|(object, _)| object.starts_with("hits")).collect();
    assert_eq!(races.len(), 1, "{found:?}");
    assert_eq!(races[0].1.len(), 1, "{found:?}");
}

#[test]
fn failures_are_recognised_too() {
    if left_out("ids of failures") {
        return;
    }
    let failure = |setting: &Setting<'_>, source: &str| {
        let scratch = Scratch::new();
        setting.build(&scratch, source);
        let mut check = PORTENT.command();
        check.args(["check", "--budget", "10", "--json", "found.json", "--", "./bug"]);
        let finished = run(&mut check, &scratch.path(setting.build), NOTHING, LIMIT);
        assert!(finished.exited_with(1), "{}", finished.describe());
        let found = findings_in(&scratch.path(setting.build).join("found.json"));
        let of_form =
            |form: &str| found.iter().filter(|one| one["form"] == form).map(|one| one["id"].clone()).collect();
        let ids: Vec<Value> = of_form("use_after_free");
        assert_eq!(ids.len(), 1, "{}", finished.describe());
        ids
    };
    let usual = failure(&USUAL, FAILURE);
    let above = FAILURE.replace("int main", "// A remark.\nint main");
    let apart = Setting { sources: "src", build: "out", level: "-O0", ..USUAL };
    assert_eq!(failure(&apart, &above), usual);
    let elsewhere = FAILURE.replace("{ delete number; }", "{\n        delete number;\n    }");
    assert_ne!(failure(&USUAL, &elsewhere), usual, "it is freed by another line");
}
