//! What reports call things, in programs of the kind that people write: containers, futures, coroutines, thread-locals.
//!
//! The programs of tests/programs/special/names each say in a comment what the racy object may be called, as
//! `// portent: object PATTERN | PATTERN`, with `*` for any text.

use crate::{PORTENT, left_out};
use portent_testing::command::{LIMIT, NOTHING, run};
use portent_testing::parallel::each;
use portent_testing::programs;
use portent_testing::scratch::Scratch;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What nobody may read in a report for people: addresses, insides of libraries, symbols, the runtime.
const STRANGE: [&str; 12] = [
    "0x",
    "stack(",
    "heap(",
    "_M_",
    "__gthread",
    "_ZN",
    "/usr/include",
    "bits/",
    "portent_runtime",
    " of libstdc++",
    " of libc",
    "vtable for",
];

fn all() -> Vec<PathBuf> {
    let directory = programs::directory().join("special/names");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|end| end == "cpp" || end == "c");
    let mut files: Vec<PathBuf> = files.filter(is_source).collect();
    files.sort();
    files
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len()).filter(|&at| text.is_char_boundary(at)).any(|at| matches(rest, &text[at..]))
        }),
    }
}

#[test]
fn reports_call_things_as_the_source_does() {
    if left_out("names") {
        return;
    }
    each(&all(), |path| path.display().to_string(), |path| check(path));
}

fn check(path: &Path) -> Result<(), String> {
    let source = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let wanted =
        source.lines().find_map(|line| line.strip_prefix("// portent: object ")).ok_or("it expects nothing")?;
    let scratch = Scratch::new();
    let binary = scratch.path("program");
    let mut build = PORTENT.command();
    let is_c = path.extension().is_some_and(|end| end == "c");
    let compiler = if is_c { &["cc", "-pthread"][..] } else { &["c++", "-std=c++20"] };
    build.args(compiler).arg("-g").arg(path).arg("-o").arg(&binary);
    let built = run(&mut build, scratch.directory(), NOTHING, LIMIT);
    if !built.exited_with(0) {
        return Err(built.describe());
    }
    let mut command = PORTENT.command();
    command.args(["check", "--json", "found.json", "--junit", "found.xml", "--"]).arg(&binary);
    let checked = run(&mut command, scratch.directory(), NOTHING, LIMIT);
    if !checked.exited_with(1) {
        return Err(checked.describe());
    }
    let text = |name: &str| std::fs::read_to_string(scratch.path(name)).unwrap_or_default();
    let json: Value = serde_json::from_str(&text("found.json")).map_err(|error| error.to_string())?;
    let failures = || json["findings"].as_array().into_iter().flatten().filter(|one| one["level"] == "failure");
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for failure in failures() {
        let first = failure["places"][0]["file"].as_str().unwrap_or_default();
        if !first.ends_with(&file) {
            return Err(format!("{} is told at {first}", failure["id"]));
        }
    }
    // What a failed assertion is about, only what decides says.
    let about = |one: &'_ Value| [&one["object"], &one["decisive"]["operation"]["object"]].map(Value::clone);
    let objects: Vec<Value> = failures().flat_map(about).collect();
    let objects: Vec<&str> = objects.iter().filter_map(Value::as_str).filter(|object| !object.is_empty()).collect();
    if !objects.iter().any(|object| wanted.split(" | ").any(|pattern| matches(pattern, object))) {
        return Err(format!("no failure is about {wanted}, but about {objects:?}"));
    }
    // Why a replay did not go as an observation needs it is told in the words of the recording.
    let junit: String = text("found.xml")
        .split("<system-out>")
        .map(|part| part.rsplit("</system-out>").next().unwrap_or(part))
        .collect();
    for (what, told) in [("text", checked.told()), ("JUnit", junit), ("JSON", objects.join("\n"))] {
        for strange in STRANGE {
            if let Some(line) = told.lines().find(|line| line.contains(strange)) {
                return Err(format!("the {what} says {strange}: {line}"));
            }
        }
    }
    Ok(())
}
