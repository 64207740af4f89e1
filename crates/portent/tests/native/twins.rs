//! Every pair of tests/twins under `portent check` as a newcomer runs it: of the buggy one the bug is the first thing told,
//! and nothing is held against the fixed one. All that is wrong comes as one table; `cargo test -p portent --test native twins
//! -- --nocapture` prints the whole table, with the seconds that each check took.
//!
//! Only the exit status, the first finding, the length of the report and the names in it are looked at, these in every
//! format: how findings are worded, explained and replayed is for other tests.

use crate::{PORTENT, build, left_out};
use portent_testing::command::{Finished, LIMIT, NOTHING, run, there_is};
use portent_testing::parallel::{each, each_seed};
use portent_testing::programs::Builder;
use portent_testing::scratch::Scratch;
use portent_testing::twins::{First, Side, Twin};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

/// Two screens.
const MOST_LINES: usize = 100;

/// A check that takes longer than this is of no use to anybody.
const PATIENCE: Duration = Duration::from_secs(120);

/// A line of the table.
struct Row {
    name: String,
    side: Side,
    wanted: String,
    got: String,
    seconds: f64,
    good: bool,
}

#[test]
fn twins_of_which_one_is_buggy_are_told_apart_and_the_bug_comes_first() {
    if left_out("twins") {
        return;
    }
    let twins = Twin::all();
    assert!(!twins.is_empty(), "there is no pair of that name in tests/twins");
    let checks: Vec<(&Twin, Side)> =
        twins.iter().flat_map(|twin| [Side::Buggy, Side::Fixed].map(|side| (twin, side))).collect();
    let rows = each_seed(0..checks.len() as u64, |at| {
        let (twin, side) = checks[at as usize];
        check(twin, side)
    });
    println!("{}", table(rows.iter()));
    let wrong = rows.iter().filter(|row| !row.good).count();
    let summary = format!("{wrong} of {} checks are wrong", rows.len());
    assert!(wrong == 0, "{summary}\n{}", table(rows.iter().filter(|row| !row.good)));
}

/// Builds one of a pair as users do and checks it with the defaults.
fn check(twin: &Twin, side: Side) -> Row {
    let wanted = match side {
        Side::Buggy if twin.missed.is_some() => "nothing yet".to_owned(),
        Side::Buggy => twin.first.iter().map(|first| describe_wanted(twin, first)).collect::<Vec<_>>().join(" or "),
        Side::Fixed => "exit 0".into(),
    };
    let row = |got: String, seconds, good| Row { name: twin.name.clone(), side, wanted, got, seconds, good };
    let program = twin.program(side);
    let built = match build(&program, Builder::Portent) {
        Ok(built) => built,
        Err(error) => return row(error, 0.0, false),
    };
    let scratch = Scratch::new();
    let mut command = PORTENT.command();
    command.arg("check").args(FORMATS.iter().flat_map(|(option, file)| [option, file])).args(&twin.options).arg("--");
    command.arg(&built.binary).args(&twin.arguments);
    let start = Instant::now();
    let finished = run(&mut command, scratch.directory(), NOTHING, PATIENCE);
    let seconds = start.elapsed().as_secs_f64();
    let json = std::fs::read(scratch.path("found.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let verdict = match side {
        // Known to be missed: said aloud, and an error as soon as it is not, so that the note goes.
        Side::Buggy if twin.missed.is_some() => match judge_buggy(twin, &finished, json.as_ref()) {
            Ok(()) => Err("is found now: take `missed` out of its twin.toml".into()),
            Err(_) => {
                println!("NOT FOUND: {}: {}", twin.name, twin.missed.as_deref().unwrap_or_default());
                Ok(())
            }
        },
        Side::Buggy => judge_buggy(twin, &finished, json.as_ref()),
        Side::Fixed => judge_fixed(&finished, json.as_ref()),
    };
    let mut got = describe_got(&finished, json.as_ref());
    let mut complaints: Vec<String> = verdict.err().into_iter().collect();
    complaints.extend(json.as_ref().and_then(|json| strange_names(json, &twin.file(side)).err()));
    complaints.extend(strange_words(&finished.told(), &scratch, &twin.file(side)).err());
    let lines = finished.told().lines().count();
    if lines > MOST_LINES {
        complaints.push(format!("{lines} lines are too long a report"));
    }
    if !complaints.is_empty() {
        let _ = write!(got, " [{}]", complaints.join("; "));
    }
    row(got, seconds, complaints.is_empty())
}

type Verdict = Result<(), String>;

fn judge_buggy(twin: &Twin, finished: &Finished, json: Option<&Value>) -> Verdict {
    if !finished.exited_with(1) {
        return Err("should exit 1".into());
    }
    let found = json.and_then(first_finding).ok_or("there is no finding in the JSON")?;
    if level(found) != Some("failure") {
        return Err("the first finding is no failure".into());
    }
    let kind = text(found, "kind").unwrap_or("?");
    let of_kind: Vec<&First> = twin.first.iter().filter(|first| first.kind == kind).collect();
    if of_kind.is_empty() {
        return Err("wrong kind".into());
    }
    let has_form = |first: &&&First| {
        first.form.is_empty() || text(found, "form").is_some_and(|form| first.form.iter().any(|wanted| wanted == form))
    };
    let of_form: Vec<&&First> = of_kind.iter().filter(has_form).collect();
    if of_form.is_empty() {
        return Err("wrong form".into());
    }
    let lines = user_lines(found, &twin.file(Side::Buggy));
    let is_there = |first: &&&First| {
        let wanted = twin.lines(first);
        lines.iter().any(|line| wanted.contains(line))
    };
    if of_form.iter().any(is_there) { Ok(()) } else { Err("wrong line".into()) }
}

fn judge_fixed(finished: &Finished, json: Option<&Value>) -> Verdict {
    if !finished.exited_with(0) {
        return Err("should exit 0".into());
    }
    let findings = json.and_then(|json| json["findings"].as_array()).ok_or("there is no JSON")?;
    let alarm = findings.iter().any(|finding| level(finding) == Some("failure"));
    if alarm { Err("nothing may be held against it".into()) } else { Ok(()) }
}

/// What nobody may read in a report.
const RUNTIME: &str = "portent_runtime";

/// Whether every finding sends its reader to the program's own source first, and calls what it is about by names of it.
fn strange_names(json: &Value, file: &str) -> Verdict {
    let mut strange: Vec<String> = Vec::new();
    for finding in json["findings"].as_array().into_iter().flatten() {
        let id = text(finding, "id").unwrap_or("?");
        let places = finding["places"].as_array().map_or(&[][..], Vec::as_slice);
        // Initial and final values are nowhere.
        let first = places.iter().position(|place| text(place, "location").is_some());
        let own = first.is_none_or(|at| {
            let stack = finding["stacks"].get(at).and_then(Value::as_array);
            line_in(&places[at], file).or_else(|| innermost(stack?, file)).is_some()
        });
        // The C library may find a broken heap when the thread has left the program's own code for good.
        let none = text(finding, "form") == Some("abort")
            && finding["stacks"][0].as_array().is_some_and(|stack| stack.iter().all(|frame| frame["user"] == false));
        if !own && !none {
            strange.push(format!("{id} is not in the source"));
        }
        let objects = places.iter().filter_map(|place| text(place, "object")).chain(text(finding, "object"));
        let mut nameless: Vec<&str> = objects.filter(|object| is_nameless(object)).collect();
        nameless.dedup();
        strange.extend(nameless.iter().map(|object| format!("{id} is about {object:?}")));
        let names_runtime = ["places", "stacks", "threads", "why", "object"]
            .iter()
            .any(|field| finding[field].to_string().contains(RUNTIME));
        if names_runtime {
            strange.push(format!("{id} names the runtime"));
        }
    }
    if strange.is_empty() { Ok(()) } else { Err(strange.join(", ")) }
}

/// Every format of a report, and the file that it goes to.
const FORMATS: [(&str, &str); 4] =
    [("--json", "found.json"), ("--sarif", "found.sarif"), ("--html", "found.html"), ("--junit", "found.xml")];

/// What stands in no format of any report: addresses, the runtime, symbols, places on stacks, libraries' own members and files.
const STRANGE: [&str; 8] = ["0x", RUNTIME, "stack(", "heap(", "_ZN", "_M_", "__gthread", "/usr/include"];

/// Whether nothing in any format is strange to who wrote the program, and each sends its reader to the program's own source.
fn strange_words(told: &str, scratch: &Scratch, file: &str) -> Verdict {
    let read = |name: &str| std::fs::read_to_string(scratch.path(name)).map_err(|error| format!("{name}: {error}"));
    let parsed = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
    let (junit, html) = (read("found.xml")?, read("found.html")?);
    let data = html.split_once("id=\"data\"").and_then(|(_, rest)| rest.split_once('>')).unwrap_or_default().1;
    let data = parsed(data.split_once("</script>").unwrap_or_default().0)?;
    let (json, sarif) = (parsed(&read("found.json")?)?, parsed(&read("found.sarif")?)?);
    let mut strange = Vec::new();
    for (format, document) in [("JSON", &json), ("SARIF", &sarif), ("HTML", &data)] {
        texts(document, &mut |text| {
            strange.extend(strange_in(text).map(|sign| format!("{format} says {sign}: {text}")))
        });
    }
    for (format, text) in [("text", told), ("JUnit", &*junit)] {
        strange.extend(text.lines().filter_map(|line| Some(format!("{format} says {}: {line}", strange_in(line)?))));
    }
    for result in sarif["runs"][0]["results"].as_array().into_iter().flatten() {
        let at = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        if !at.as_str().is_some_and(|uri| uri.ends_with(file)) {
            strange.push(format!("SARIF sends its reader to {at}"));
        }
    }
    let cases = junit.split(" file=\"").skip(1).filter_map(|rest| rest.split('"').next());
    strange.extend(cases.filter(|at| !at.ends_with(file)).map(|at| format!("JUnit sends its reader to {at}")));
    strange.truncate(3);
    if strange.is_empty() { Ok(()) } else { Err(strange.join("; ")) }
}

fn strange_in(text: &str) -> Option<&'static str> {
    // What a library itself says when it throws.
    let text = text.replace("_M_range_check", "");
    STRANGE.into_iter().find(|sign| text.contains(sign))
}

/// Every text that a reader is told, but for the frames of libraries, which stacks keep for who looks there, what the program
/// printed, and pieces of source.
fn texts(document: &Value, tell: &mut impl FnMut(&str)) {
    match document {
        Value::String(text) => tell(text),
        Value::Array(all) => all.iter().for_each(|one| texts(one, tell)),
        Value::Object(members) => {
            let told = |name: &str| !["stacks", "stderr", "files", "places", "rules"].contains(&name);
            members.iter().filter(|(name, _)| told(name)).for_each(|(_, one)| texts(one, tell));
            // Places of findings are told; those of all events of a page are a table.
            let places = members.get("places").and_then(Value::as_array).into_iter().flatten();
            places.filter(|place| place.is_object()).for_each(|place| texts(place, tell));
            frames(members.get("stacks"), tell);
        }
        _ => {}
    }
}

/// The functions of stacks, of which addresses and the runtime's are still strange.
fn frames(stacks: Option<&Value>, tell: &mut impl FnMut(&str)) {
    let text = stacks.map(Value::to_string).unwrap_or_default();
    for sign in ["0x", RUNTIME, "_ZN"] {
        if let Some(at) = text.find(sign) {
            tell(&text[at..].chars().take(60).collect::<String>());
        }
    }
}

/// Whether a name is none of the source: an address, a place on some stack, bytes of a module.
fn is_nameless(object: &str) -> bool {
    ["0x", "stack(", "heap(", ".so.", "a local of", "the stack of"].iter().any(|sign| object.contains(sign))
}

fn first_finding(json: &Value) -> Option<&Value> {
    json["findings"].as_array()?.first()
}

fn text<'a>(finding: &'a Value, field: &str) -> Option<&'a str> {
    finding[field].as_str()
}

/// How bad it is. Before schema 2 nothing said so: then the kind does.
fn level(finding: &Value) -> Option<&str> {
    text(finding, "level").or_else(|| match text(finding, "kind")? {
        "failure" | "race" | "deadlock" | "property" => Some("failure"),
        _ => Some("observation"),
    })
}

/// The user's line of each place of a finding: its own, if that is in the program's file, or else that of the innermost
/// frame which is (an access inside a container belongs to the line that called it).
fn user_lines(finding: &Value, file: &str) -> Vec<u64> {
    // A finding has a stack for each of its places, in their order.
    let of_place = |(at, place): (usize, &Value)| {
        let stack = finding["stacks"].get(at).and_then(Value::as_array);
        line_in(place, file).or_else(|| innermost(stack?, file))
    };
    let places = finding["places"].as_array().map_or(&[][..], Vec::as_slice);
    places.iter().enumerate().filter_map(of_place).collect()
}

fn innermost(stack: &[Value], file: &str) -> Option<u64> {
    stack.iter().find_map(|frame| line_in(frame, file))
}

/// The line that a place or frame names, if it is in this file.
fn line_in(place: &Value, file: &str) -> Option<u64> {
    let named = text(place, "file")?;
    let same = named.rsplit('/').next() == Some(file);
    same.then(|| place["line"].as_u64()).flatten()
}

fn describe_wanted(twin: &Twin, first: &First) -> String {
    let lines = twin.lines(first).iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let form = if first.form.is_empty() { String::new() } else { format!(" ({})", first.form.join(", ")) };
    format!("{}{form} :{lines}", first.kind)
}

/// The exit status, and the first finding in a few words.
fn describe_got(finished: &Finished, json: Option<&Value>) -> String {
    let mut got = finished.ending();
    let Some(json) = json else {
        let said = finished.stderr.lines().next().unwrap_or("nothing");
        let _ = write!(got, ", no JSON; said: {said}");
        return got;
    };
    match first_finding(json) {
        None => got.push_str(", no findings"),
        Some(found) => {
            let count = json["findings"].as_array().map_or(0, Vec::len);
            let (kind, verdict) = (text(found, "kind").unwrap_or("?"), text(found, "verdict").unwrap_or("?"));
            let form = text(found, "form").map(|form| format!(" ({form})")).unwrap_or_default();
            let places: Vec<String> = found["places"].as_array().into_iter().flatten().map(spot).collect();
            let object = text(found, "object").unwrap_or("");
            let _ = write!(got, ", 1st of {count}: {kind}{form} {verdict} {object} at {}", places.join(" "));
        }
    }
    got
}

fn spot(place: &Value) -> String {
    let file = text(place, "file").and_then(|file| file.rsplit('/').next()).unwrap_or("?");
    place["line"].as_u64().map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

fn table<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let mut out = String::new();
    for Row { name, side, wanted, got, seconds, good } in rows {
        let (mark, side) =
            (if *good { "ok   " } else { "WRONG" }, if *side == Side::Buggy { "buggy" } else { "fixed" });
        let _ = writeln!(out, "{mark} {name:20} {side} {seconds:6.1} s  wanted {wanted}\n{:38}got    {got}", "");
    }
    out
}

/// The programs themselves: fixed is fixed, by many runs and by the compiler's own tool.
#[test]
#[ignore = "checks the programs themselves, which rarely change"]
fn fixed_twins_pass_natively_and_under_thread_sanitizer() {
    if left_out("twins, natively") {
        return;
    }
    let runs: Vec<(Twin, Builder)> = Twin::all()
        .into_iter()
        .flat_map(|twin| [(twin.clone(), Builder::Plain), (twin, Builder::ThreadSanitizer)])
        // The sanitizer of gcc 12 crashes in the threads of C11.
        .filter(|(twin, builder)| !(twin.is_c11 && *builder == Builder::ThreadSanitizer))
        .collect();
    each(
        &runs,
        |(twin, builder)| format!("{} {builder:?}", twin.name),
        |(twin, builder)| {
            let (built, scratch) = (build(&twin.program(Side::Fixed), *builder)?, Scratch::new());
            for _ in 0..200 {
                // The sanitizer does not bear every layout of memory.
                let mut command = Command::new(if there_is("setarch") { "setarch" } else { "env" });
                if there_is("setarch") {
                    command.arg("-R");
                }
                command.arg(&built.binary).args(&twin.arguments);
                let finished = run(&mut command, scratch.directory(), NOTHING, LIMIT);
                if !finished.exited_with(0) {
                    return Err(finished.describe());
                }
            }
            Ok(())
        },
    );
}
