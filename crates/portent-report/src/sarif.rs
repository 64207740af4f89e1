//! Findings as SARIF 2.1.0, in the subset that code scanning services accept.
//!
//! A rule per form; a result per finding, an error if it is a failure and a note if it is an observation, with the user's line
//! of its first place as location and the others as related locations; call stacks; a code flow for the breaking order and one for
//! the observed order, with a thread flow per thread whose locations are numbered in execution order, and one for the calls that led to each
//! place. Paths are relative to the root of the sources. What was not examined is a notification.

use crate::json::model;
use crate::level::Level;
use crate::moments::Moment;
use crate::place;
use crate::relevance::Relevance;
use crate::report::{At, Report, Spot, Story, Verdict};
use crate::scene::State;
use crate::stream::{self, Rows};
use portent_order::Model;
use portent_predict::{Form, Incomplete, Role, Severity, StackFrame, Words};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};

/// The whole document, with a line end.
pub fn document(report: &Report) -> Result<String, serde_json::Error> {
    stream::text(|out| write(report, out))
}

#[derive(Serialize)]
struct Document<R> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    runs: [R; 1],
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<I, R> {
    automation_details: Value,
    column_kind: &'static str,
    invocations: [I; 1],
    original_uri_base_ids: Value,
    results: R,
    tool: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation<N> {
    execution_successful: bool,
    tool_execution_notifications: N,
}

/// Writes the whole document, one result after the other.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let rules: Vec<Value> = Form::all().map(|form| rule(form.words())).collect();
    let notification = |(model, entry): &(Model, Incomplete)| {
        let text = format!(
            "{}: {} ({}, model {}): {} of kind {}",
            entry.what,
            entry.status.words(),
            entry.why.name(),
            model.name(),
            entry.count,
            entry.kind.name()
        );
        json!({ "level": "warning", "message": { "text": text } })
    };
    let run = Run {
        tool: json!({ "driver": {
            "name": "Portent",
            "version": env!("CARGO_PKG_VERSION"),
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "informationUri": env!("CARGO_PKG_REPOSITORY"),
            "rules": rules,
        }}),
        automation_details: json!({ "id": "portent/" }),
        column_kind: "utf16CodeUnits",
        original_uri_base_ids: json!({ "%SRCROOT%": { "description": { "text": "The root of the source tree." } } }),
        invocations: [Invocation {
            execution_successful: true,
            tool_execution_notifications: Rows(|| report.incomplete.iter().map(notification)),
        }],
        results: Rows(|| report.stories.iter().map(|story| result(report, story))),
    };
    let schema = "https://json.schemastore.org/sarif-2.1.0.json";
    stream::write_shown(&Document { schema, runs: [run], version: "2.1.0" }, out)
}

/// What a form of bug is called, as a rule.
fn rule(words: &Words) -> Value {
    let level = level(words.severity);
    // For services that know errors, warnings and recommendations.
    let severity = if words.severity == Severity::Note { "recommendation" } else { level };
    json!({
        "id": words.rule,
        "name": words.identifier,
        "shortDescription": { "text": capital(words.title) },
        "fullDescription": { "text": words.meaning },
        "help": { "text": words.meaning },
        "defaultConfiguration": { "level": level },
        "properties": {
            "tags": ["concurrency", words.rule],
            "precision": "very-high",
            "problem.severity": severity,
        },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn result(report: &Report, story: &Story) -> Value {
    let finding = &story.finding;
    let form = finding.bug.form();
    let words = form.words();
    let severity = match story.level {
        Level::Observation => Severity::Note,
        Level::Failure => Severity::Error,
    };
    // Initial and final values have no place of their own.
    let mut places: Vec<(String, At)> = story
        .places
        .iter()
        .filter_map(|spot| {
            let who = spot.thread.as_deref().unwrap_or("somebody");
            let text = format!("{}: {who}, {} {}", spot.role.name(), spot.op, spot.object).trim_end().to_owned();
            Some((text, place::of_spot(spot)?))
        })
        .collect();
    if let Some(decided) = &story.decided {
        let spots = [Some(&decided.operation), decided.because.as_ref()];
        places.extend(spots.into_iter().flatten().filter_map(|spot| {
            let who = spot.thread.as_deref().unwrap_or("somebody");
            Some((format!("{}: {who}, {} {}", spot.role.name(), spot.op, spot.object), place::of_spot(spot)?))
        }));
    }
    let first = if places.is_empty() { None } else { Some(places.remove(0)) };
    let location = match &first {
        Some((text, at)) => location(report, at, text),
        None => location(report, &At { text: String::new(), file: None, line: None, function: None }, &finding.object),
    };
    let related: Vec<Value> = places
        .iter()
        .enumerate()
        .map(|(at, (text, place))| {
            let mut related = self::location(report, place, text);
            related["id"] = json!(at + 1);
            related
        })
        .collect();
    let mut message = format!("{}. {}", capital(&story.what()), story.why);
    if let Some(decided) = &story.decided {
        message.push_str(&format!(" Decisive: {}.", decided.sentence(&report.settings.sources)));
    }
    if let Verdict::Unconfirmed(Some(why)) = &story.verdict {
        message.push_str(&format!(" Not seen in replays: {why}."));
    }
    if let Some(showed) = story.replayed.as_ref().and_then(|replayed| replayed.showed.as_ref()) {
        message.push_str(&format!(" A replay showed: {showed}."));
    }
    if let Some(command) = &story.command {
        message.push_str(&format!(" Replay it with: {command}"));
    }
    let orders = report.orders(story);
    let observed = if finding.bug.failure().is_some() { "The run that failed" } else { "Observed order" };
    let flows: Vec<Value> = [("Breaking order", &orders.breaking), (observed, &orders.observed)]
        .into_iter()
        .filter(|(_, moments)| !moments.is_empty())
        .map(|(title, moments)| code_flow(report, title, moments))
        .chain(call_flow(report, story))
        .collect();
    let mut result = json!({
        "ruleId": words.rule,
        "ruleIndex": Form::all().position(|other| other == form),
        "kind": "fail",
        "level": level(severity),
        "message": { "text": message },
        "locations": [location],
        "relatedLocations": related,
        "codeFlows": flows,
        "partialFingerprints": { "portentFindingId/v1": finding.id },
        "properties": {
            "id": finding.id,
            "verdict": story.verdict.name(),
            "level": story.level.name(),
            "model": model(story),
            "object": finding.object,
            "instances": finding.instances,
            "flags": finding.flags.names().collect::<Vec<_>>(),
            "tsan": story.tsan.name(),
        },
    });
    if !story.processes.is_empty() {
        result["properties"]["processes"] = json!(report.processes_of(story));
    }
    let stacks: Vec<Value> = story.places.iter().filter_map(|spot| stack(report, spot)).collect();
    if !stacks.is_empty() {
        result["stacks"] = json!(stacks);
    }
    if let Some(failure) = finding.bug.failure().filter(|failure| !failure.stderr.is_empty()) {
        result["properties"]["stderr"] = json!(failure.stderr);
    }
    result
}

/// The frames of a stack that are the user's: what libraries do in between nobody can change. All of them, where none is.
fn own_frames(spot: &Spot) -> Vec<&StackFrame> {
    let own: Vec<&StackFrame> = spot.stack.iter().filter(|frame| frame.user).collect();
    if own.is_empty() { spot.stack.iter().collect() } else { own }
}

/// The calls that led to a place, where they are known.
fn stack(report: &Report, spot: &Spot) -> Option<Value> {
    let own = own_frames(spot);
    if own.is_empty() {
        return None;
    }
    let frame = |frame: &StackFrame| {
        let at = At { function: None, ..place::of_frame(frame) };
        let mut told = location(report, &at, &frame.function);
        told["logicalLocations"] = json!([{ "fullyQualifiedName": frame.function, "kind": "function" }]);
        json!({ "location": told, "properties": { "user": frame.user } })
    };
    let who = spot.thread.as_deref().unwrap_or("somebody");
    let frames: Vec<Value> = own.into_iter().map(frame).collect();
    Some(json!({ "message": { "text": format!("{}: {who}", spot.role.name()) }, "frames": frames }))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A place as a SARIF location. A place without a file stands in the input: services want a file.
fn location(report: &Report, at: &At, message: &str) -> Value {
    let (uri, line) = match (&at.file, at.line) {
        (Some(file), Some(line)) => (report.settings.sources.relative(file), line.max(1)),
        _ => (report.settings.input.clone(), 1),
    };
    let mut artifact = json!({ "uri": encoded(&uri) });
    if !uri.starts_with('/') {
        artifact["uriBaseId"] = json!("%SRCROOT%");
    }
    let message =
        if at.file.is_none() && !at.text.is_empty() { format!("{message} at {}", at.text) } else { message.into() };
    let mut location = json!({
        "physicalLocation": { "artifactLocation": artifact, "region": { "startLine": line } },
        "message": { "text": message },
    });
    if let Some(function) = &at.function {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": function, "kind": "function" }]);
    }
    location
}

/// A path as a URI: absolute ones with their scheme, everything unusual as percent codes.
fn encoded(path: &str) -> String {
    let mut uri = String::with_capacity(path.len() + 8);
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'+' | b'@' => {
                uri.push(byte as char)
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn code_flow(report: &Report, title: &str, moments: &[Moment]) -> Value {
    let mut threads: Vec<&str> = Vec::new();
    for moment in moments {
        if !threads.contains(&moment.thread.as_str()) {
            threads.push(&moment.thread);
        }
    }
    let flows: Vec<Value> = threads
        .iter()
        .map(|thread| {
            let own = moments.iter().enumerate().filter(|(_, moment)| moment.thread == *thread);
            let locations: Vec<Value> = own.map(|(at, moment)| flow_location(report, at, moment)).collect();
            json!({ "id": thread, "message": { "text": format!("thread {thread}") }, "locations": locations })
        })
        .collect();
    json!({ "message": { "text": title }, "threadFlows": flows })
}

/// The user's calls that led to each place, from the outermost to the place itself.
fn call_flow(report: &Report, story: &Story) -> Option<Value> {
    let flow = |spot: &Spot| {
        let own = own_frames(spot);
        let depth = own.len();
        let step = |(level, frame): (usize, &StackFrame)| {
            let at = At { function: None, ..place::of_frame(frame) };
            let text = match level + 1 == depth {
                true => format!("{}: {} {}", frame.function, spot.op, spot.object).trim_end().to_owned(),
                false => frame.function.clone(),
            };
            json!({
                "location": location(report, &at, &text),
                "nestingLevel": level,
                "importance": if frame.user { "important" } else { "unimportant" },
            })
        };
        let locations: Vec<Value> = own.into_iter().rev().enumerate().map(step).collect();
        let who = spot.thread.as_deref().unwrap_or("somebody");
        json!({ "message": { "text": format!("{}: {who}", spot.role.name()) }, "locations": locations })
    };
    let flows: Vec<Value> = story.places.iter().filter(|spot| !spot.stack.is_empty()).map(flow).collect();
    (!flows.is_empty()).then(|| json!({ "message": { "text": "Calls that lead there" }, "threadFlows": flows }))
}

fn flow_location(report: &Report, at: usize, moment: &Moment) -> Value {
    // Addresses tell nobody anything.
    let value = moment.value.as_ref().filter(|value| value.is_telling());
    let value = value.map_or_else(String::new, |value| format!(" = {value}"));
    let state = match moment.state {
        State::Done | State::Waits | State::Never => "",
        State::Next => "is about to ",
    };
    let switched = if moment.switched { " (another thread ran before)" } else { "" };
    let text = format!("{}. {}: {state}{}{value}{switched}", at + 1, moment.thread, moment.what);
    let (importance, kinds): (&str, &[&str]) = match moment.relevance {
        Relevance::Goal(Role::Waiting) => ("essential", &["acquire", "lock", "danger"]),
        Relevance::Goal(_) => ("essential", &["memory", "danger"]),
        Relevance::Writer => ("important", &["memory", "value"]),
        Relevance::Branch => ("important", &["branch"]),
        Relevance::Lock if moment.what.starts_with("acquire") => ("important", &["acquire", "lock"]),
        Relevance::Lock => ("important", &["release", "lock"]),
        Relevance::Fork | Relevance::Meeting | Relevance::Switch => ("unimportant", &["unknown"]),
    };
    json!({
        "location": location(report, &moment.at, &text),
        "executionOrder": at + 1,
        "importance": importance,
        "kinds": kinds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(encoded("src/a b.c"), "src/a%20b.c");
        assert_eq!(encoded("/usr/x.h"), "file:///usr/x.h");
        assert_eq!(encoded("C:x|y"), "C%3Ax%7Cy");
        assert_eq!(capital("data race"), "Data race");
    }
}
