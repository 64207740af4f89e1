//! Findings as JSON, schema 1. A field is added, never changed, without a new schema number.

use super::escaped;
use crate::failure::Failure;
use portent_order::Model;
use portent_predict::{Finding, Incomplete, MayRead, Place, Prediction};
use portent_trace::{LocId, ObjectClass, Trace};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    trace: TraceJson,
    findings: Vec<FindingJson<'a>>,
    incomplete: Vec<IncompleteJson<'a>>,
    /// Why the search stopped before its end; `null` if it did not.
    partial: Option<&'static str>,
    /// For each read location, where its values may come from.
    reads_from: Vec<MayReadJson>,
}

#[derive(Serialize)]
struct TraceJson {
    events: u64,
    threads: usize,
    variables: usize,
    locks: usize,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    id: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'static str>,
    verdict: &'static str,
    model: &'static str,
    object: &'a str,
    instances: u64,
    instances_exact: bool,
    flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'static str>,
    places: Vec<PlaceJson<'a>>,
    witness: Option<WitnessJson<'a>>,
}

#[derive(Serialize)]
struct PlaceJson<'a> {
    role: &'static str,
    thread: Option<&'a str>,
    event: Option<u32>,
    op: &'static str,
    object: &'a str,
    location: Option<String>,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct WitnessJson<'a> {
    events: u64,
    switches: usize,
    steps: Vec<(&'a str, u64)>,
}

#[derive(Serialize)]
struct IncompleteJson<'a> {
    kind: &'static str,
    model: &'static str,
    events: Option<&'a [u32]>,
    count: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
    why: &'static str,
    what: &'a str,
}

#[derive(Serialize)]
struct MayReadJson {
    location: String,
    from: Vec<String>,
    initial: bool,
}

/// The whole document, with a line end.
pub(crate) fn document(trace: &Trace, model: Model, prediction: &Prediction) -> Result<String, Failure> {
    let document = Document {
        schema: 1,
        trace: TraceJson {
            events: trace.input_len(),
            threads: trace.threads(),
            variables: trace.names().count(ObjectClass::Variable),
            locks: trace.locks(),
        },
        findings: prediction.findings.iter().map(|f| finding(trace, f)).collect(),
        incomplete: prediction.incomplete.iter().map(|entry| incomplete(model, entry)).collect(),
        partial: prediction.partial.map(|why| why.name()),
        reads_from: prediction.may_read.iter().map(|row| may_read(trace, row)).collect(),
    };
    let text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?;
    Ok(escaped(&text) + "\n")
}

fn finding<'a>(trace: &'a Trace, finding: &'a Finding) -> FindingJson<'a> {
    FindingJson {
        id: &finding.id,
        kind: finding.kind.name(),
        form: finding.form.map(|form| form.name()),
        verdict: finding.evidence.name(),
        model: finding.model.map_or("hb", Model::name),
        object: &finding.object,
        instances: finding.instances,
        instances_exact: finding.instances_exact,
        flags: finding.flags.names().collect(),
        witness_type: finding.witness_type.map(|shape| shape.name()),
        pattern: finding.pattern,
        places: finding.places.iter().map(|p| place(trace, p)).collect(),
        witness: finding.witness.as_ref().map(|witness| WitnessJson {
            events: witness.events(),
            switches: witness.switches(),
            steps: witness.steps.iter().map(|step| (trace.names().thread(step.thread), step.events)).collect(),
        }),
    }
}

fn place<'a>(trace: &'a Trace, place: &'a Place) -> PlaceJson<'a> {
    let location = place.location.map(|loc| trace.names().location(loc));
    PlaceJson {
        role: place.role.name(),
        thread: place.thread.map(|thread| trace.names().thread(thread)),
        event: place.event,
        op: place.op,
        object: &place.object,
        location: location.map(|l| l.to_string()),
        file: location.and_then(|l| l.file),
        line: location.and_then(|l| l.line),
        function: location.and_then(|l| l.function),
    }
}

fn incomplete(model: Model, entry: &Incomplete) -> IncompleteJson<'_> {
    IncompleteJson {
        kind: entry.kind.name(),
        model: model.name(),
        events: entry.events.as_deref(),
        count: entry.count,
        at_least: entry.at_least,
        why: entry.why.name(),
        what: &entry.what,
    }
}

fn may_read(trace: &Trace, row: &MayRead) -> MayReadJson {
    let text = |loc: LocId| trace.names().location(loc).to_string();
    MayReadJson {
        location: text(row.read),
        from: row.from.iter().map(|&loc| text(loc)).collect(),
        initial: row.initial,
    }
}
