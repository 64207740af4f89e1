//! Findings as JSON, schema 2 (docs/src/reference/findings.schema.json). A field is added, never changed, without a new schema number.
//!
//! Schema 2 is schema 1 and more: what has no level there is a failure or an observation here, failures have stacks and the
//! operation that decides. Findings stand in the order of the text: failures first.

mod steps;

use crate::report::{Explored, Process, Report, Sourced, Spot, Story, TraceSize, Verdict};
use crate::run_stats::{self, StatsJson};
use crate::stream::{self, Rows};
use crate::threads::Begun;
use portent_order::Model;
use portent_predict::{Decisive, Evidence, Form, Incomplete, OtherBranch, PropertyTold};
use portent_trace::Trace;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use steps::{ObservedOrder, StepJson};

#[derive(Serialize)]
struct Document<'a, F, I> {
    schema: u32,
    trace: TraceJson,
    findings: F,
    incomplete: I,
    /// How much of what the program can do was run; left out where it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    explored: Option<ExploredJson<'a>>,
    /// What its runs were made for, and when failures were first seen; left out unless that is to be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<StatsJson<'a>>,
    /// What was not covered, in sentences.
    scope: &'a [String],
    /// The processes that were checked, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<ProcessJson<'a>>,
    /// Why the search stopped before its end; `null` if it did not.
    partial: Option<&'static str>,
    /// Runs whose recording is cut short, where there are any.
    #[serde(skip_serializing_if = "is_none")]
    cut_short: u64,
    /// For each read location, where its values may come from.
    reads_from: Vec<MayReadJson<'a>>,
    /// What came of each property.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<PropertyJson<'a>>,
    /// Ids that rules suppress.
    #[serde(skip_serializing_if = "is_empty")]
    suppressed: &'a [String],
    /// Ids that the baseline knows.
    #[serde(skip_serializing_if = "is_empty")]
    known: &'a [String],
}

fn is_empty(ids: &&[String]) -> bool {
    ids.is_empty()
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct TraceJson {
    events: u64,
    threads: usize,
    variables: usize,
    locks: usize,
}

/// A process that was checked.
#[derive(Serialize)]
struct ProcessJson<'a> {
    name: &'a str,
    trace: TraceJson,
    failures: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    explored: Option<ExploredJson<'a>>,
    scope: &'a [String],
}

#[derive(Serialize)]
struct ExploredJson<'a> {
    runs: u64,
    behaviours: u64,
    complete: bool,
    left: u64,
    assumptions: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unproven: &'a [String],
}

#[derive(Serialize)]
struct FindingJson<'a> {
    id: &'a str,
    level: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'static str>,
    verdict: &'static str,
    model: &'static str,
    object: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocated: Option<&'a str>,
    instances: u64,
    instances_exact: bool,
    flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<u32>,
    /// The processes that showed it, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<&'a str>,
    why: &'a str,
    /// Of failures: what the program said, or what there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decisive: Option<DecidedJson<'a>>,
    tsan: &'static str,
    places: Vec<PlaceJson<'a>>,
    /// The call stack of each place, where some are known: in the order of `places`, innermost frame first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<Vec<FrameJson<'a>>>,
    /// Where the threads of the places come from, where that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    threads: Vec<ThreadJson<'a>>,
    /// Of failures: the end of what the failing run wrote to standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<&'a str>,
    witness: Option<WitnessJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    property: Option<ViolatedJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_branch: Option<BranchJson<'a>>,
}

/// The operation that decides between failing and passing, and its two outcomes.
#[derive(Serialize)]
struct DecidedJson<'a> {
    operation: PlaceJson<'a>,
    because: Option<PlaceJson<'a>>,
    fails: &'a str,
    passes: &'a str,
}

#[derive(Serialize)]
struct FrameJson<'a> {
    function: &'a str,
    file: &'a str,
    line: Option<u32>,
    user: bool,
}

/// A thread: the name that the program gave it, the user's function that it runs, and the line that started it.
#[derive(Serialize)]
struct ThreadJson<'a> {
    thread: &'a str,
    name: Option<&'a str>,
    routine: Option<&'a str>,
    started: Option<StartedJson<'a>>,
}

#[derive(Serialize)]
struct StartedJson<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
}

/// A branch that must go the other way. Events of its other side have numbers from the end of the trace on.
#[derive(Serialize)]
struct BranchJson<'a> {
    thread: &'a str,
    event: u32,
    location: String,
    /// Which way it goes now.
    outcome: bool,
    /// The branch that showed what follows; null if that was recorded with this one.
    seen: Option<u32>,
    reads: Vec<DecisiveJson>,
}

/// A read that a branch depends on.
#[derive(Serialize)]
struct DecisiveJson {
    event: u32,
    object: String,
    was: Option<i64>,
    is: Option<i64>,
}

/// The property that a finding breaks.
#[derive(Serialize)]
struct ViolatedJson<'a> {
    name: &'a str,
    text: &'a str,
    explanation: &'a str,
    /// The property as a file of its own.
    source: &'a str,
    /// Variables whose initial value is taken to be 0, if the violation rests on that.
    #[serde(skip_serializing_if = "is_empty")]
    assumes: &'a [String],
}

/// What came of a property.
#[derive(Serialize)]
struct PropertyJson<'a> {
    name: &'a str,
    text: &'a str,
    model: &'static str,
    verdict: &'static str,
    says: &'a str,
    notes: &'a [String],
    /// Complete reorderings, as text since there may be many; null where they were not counted.
    runs: Option<String>,
    cuts: Option<u64>,
    examined: u64,
    levels: u64,
    dropped: u64,
    incomplete_from: Option<u64>,
}

#[derive(Serialize)]
struct PlaceJson<'a> {
    role: &'static str,
    thread: Option<&'a str>,
    event: Option<u32>,
    op: &'static str,
    object: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<i64>,
    /// What the value points to, if it is an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    points_to: Option<&'a str>,
    location: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct WitnessJson<'a> {
    events: u64,
    switches: usize,
    steps: Vec<StepJson<'a>>,
}

#[derive(Serialize)]
struct ReplayJson<'a> {
    runs: u32,
    hits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    diverged: Option<&'a str>,
    /// Why it was not seen, where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    showed: Option<&'a str>,
}

#[derive(Serialize)]
struct IncompleteJson<'a> {
    kind: &'static str,
    status: &'static str,
    model: &'static str,
    events: Option<&'a [u32]>,
    count: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    groups: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
    why: &'static str,
    what: &'a str,
}

#[derive(Serialize)]
struct MayReadJson<'a> {
    location: &'a str,
    from: &'a [String],
    initial: bool,
}

/// The whole document, with a line end.
pub fn document(report: &Report) -> Result<String, serde_json::Error> {
    stream::text(|out| write(report, out))
}

/// Writes the whole document, one finding after the other.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut orders = BTreeMap::new();
    for story in &report.stories {
        orders.entry(story.run).or_insert_with(|| ObservedOrder::of(&report.runs[story.run].trace));
    }
    let document = Document {
        schema: 2,
        trace: size(&report.size),
        findings: Rows(|| report.stories.iter().map(|story| finding(report, story, &orders[&story.run]))),
        incomplete: Rows(|| report.incomplete.iter().map(|(model, entry)| incomplete(*model, entry))),
        explored: report.explored.as_ref().map(explored),
        stats: run_stats::json(report),
        scope: &report.scope,
        processes: report.processes.iter().enumerate().map(|(at, one)| process(report, at, one)).collect(),
        partial: report.partial.map(|why| why.name()),
        cut_short: report.cut_short,
        reads_from: report.reads_from.iter().map(may_read).collect(),
        properties: report.properties.iter().map(property).collect(),
        suppressed: &report.withheld.suppressed,
        known: &report.withheld.known,
    };
    stream::write(&document, out)
}

fn size(size: &TraceSize) -> TraceJson {
    let TraceSize { events, threads, variables, locks } = *size;
    TraceJson { events, threads, variables, locks }
}

fn explored(explored: &Explored) -> ExploredJson<'_> {
    ExploredJson {
        runs: explored.runs,
        behaviours: explored.behaviours,
        complete: explored.complete,
        left: explored.left,
        assumptions: &explored.assumptions,
        unproven: &explored.unproven,
    }
}

fn process<'a>(report: &Report, at: usize, process: &'a Process) -> ProcessJson<'a> {
    ProcessJson {
        name: &process.name,
        trace: size(&process.size),
        failures: report.failures_of(at),
        explored: process.explored.as_ref().map(explored),
        scope: &process.scope,
    }
}

fn finding<'a>(report: &'a Report, story: &'a Story, observed: &ObservedOrder) -> FindingJson<'a> {
    let trace = &*report.runs[story.run].trace;
    let finding = &story.finding;
    let failure = finding.bug.failure();
    let frames = |spot: &'a Spot| {
        spot.stack
            .iter()
            .map(|frame| FrameJson { function: &frame.function, file: &frame.file, line: frame.line, user: frame.user })
            .collect()
    };
    let has_stacks = story.places.iter().any(|spot| !spot.stack.is_empty());
    FindingJson {
        id: &finding.id,
        level: story.level.name(),
        kind: finding.kind().document_name(),
        form: match finding.bug.form() {
            Form::Race | Form::Atomicity | Form::Nondeterminism | Form::Property => None,
            form => Some(form.name()),
        },
        verdict: story.verdict.name(),
        model: model(story),
        object: &finding.object,
        allocated: story.allocated.as_deref(),
        instances: finding.instances,
        instances_exact: finding.instances_exact,
        flags: finding.flags.names().collect(),
        witness_type: finding.bug.witness_type().map(|shape| shape.name()),
        pattern: finding.bug.pattern().map(|pattern| pattern.name()),
        round: story.round,
        processes: report.processes_of(story),
        why: &story.why,
        message: failure.map(|failure| failure.message.as_str()),
        decisive: story.decided.as_ref().map(|decided| DecidedJson {
            operation: place(&decided.operation),
            because: decided.because.as_ref().map(place),
            fails: &decided.fails,
            passes: &decided.passes,
        }),
        stacks: if has_stacks { story.places.iter().map(frames).collect() } else { Vec::new() },
        threads: story.threads.iter().filter(|begun| begun.is_known()).map(thread).collect(),
        stderr: failure.map(|failure| failure.stderr.as_str()),
        tsan: story.tsan.name(),
        places: story.places.iter().map(place).collect(),
        witness: finding.witness.as_ref().map(|witness| WitnessJson {
            events: witness.events(),
            switches: witness.switches(),
            // What a failure's schedule begins with is another run, and another side of a branch is no event of the input.
            steps: match failure.is_some() || finding.other_branch.is_some() {
                true => ObservedOrder::unknown().steps(trace, &witness.steps),
                false => observed.steps(trace, &witness.steps),
            },
        }),
        replay: story.replayed.as_ref().map(|replayed| ReplayJson {
            runs: replayed.runs,
            hits: replayed.hits,
            diverged: match &story.verdict {
                Verdict::Unconfirmed(why) => why.as_deref(),
                _ => replayed.diverged.as_deref(),
            },
            why: match &story.verdict {
                _ if replayed.hits > 0 => None,
                Verdict::Unconfirmed(Some(why)) => Some(why),
                _ => replayed.diverged.as_deref().or(Some(NOT_SEEN)),
            },
            showed: replayed.showed.as_deref(),
        }),
        property: finding.bug.violated().map(|violated| ViolatedJson {
            name: &violated.name,
            text: &violated.text,
            explanation: &violated.explanation,
            source: &violated.source,
            assumes: &violated.assumes,
        }),
        other_branch: finding.other_branch.as_ref().map(|other| branch(trace, other)),
    }
}

/// What there is to say of replays that followed the schedule and did not show it.
const NOT_SEEN: &str = "the schedule was followed, and it did not show";

/// In which model it was found: failures are seen, not predicted.
pub(crate) fn model(story: &Story) -> &'static str {
    match story.finding.bug {
        portent_predict::Bug::Failure(_) => "none",
        _ => match (story.finding.model, story.finding.evidence) {
            (Some(model), _) => model.name(),
            // What the detectors say that are there for comparison.
            (None, Evidence::Observed) => "hb",
            (None, Evidence::Predicted) => "lockset",
        },
    }
}

fn branch<'a>(trace: &'a Trace, other: &OtherBranch) -> BranchJson<'a> {
    let event = trace.event(other.branch);
    let read = |decisive: &Decisive| DecisiveJson {
        event: trace.input_index(decisive.read),
        object: trace.op(decisive.read).variable().map_or_else(String::new, |x| trace.variable_name(x).into_owned()),
        was: decisive.was,
        is: decisive.is,
    };
    BranchJson {
        thread: trace.names().thread(event.thread),
        event: trace.input_index(other.branch),
        location: trace.names().location(event.loc).to_string(),
        outcome: other.outcome,
        seen: other.seen,
        reads: other.reads.iter().map(read).collect(),
    }
}

fn property(told: &PropertyTold) -> PropertyJson<'_> {
    PropertyJson {
        name: &told.name,
        text: &told.text,
        model: told.model.name(),
        verdict: told.verdict.name(),
        says: &told.sentence,
        notes: &told.notes,
        runs: told.runs.map(|runs| runs.to_string()),
        cuts: told.cuts,
        examined: told.explored.cuts,
        levels: told.explored.levels,
        dropped: told.explored.dropped,
        incomplete_from: told.explored.incomplete_from.or(told.explored.stopped.map(|(_, level)| level)),
    }
}

fn thread(begun: &Begun) -> ThreadJson<'_> {
    ThreadJson {
        thread: &begun.thread,
        name: begun.name.as_deref(),
        routine: begun.routine.as_deref(),
        started: begun.started.as_ref().map(|at| StartedJson {
            file: at.file.as_deref(),
            line: at.line,
            function: at.function.as_deref(),
        }),
    }
}

fn place(place: &Spot) -> PlaceJson<'_> {
    let at = place.at.as_ref();
    PlaceJson {
        role: place.role.name(),
        thread: place.thread.as_deref(),
        event: place.event,
        op: place.op,
        object: &place.object,
        value: place.value.as_ref().map(|value| value.number),
        points_to: place.value.as_ref().and_then(|value| value.points_to.as_deref()),
        location: at.map(|at| at.text.as_str()),
        file: at.and_then(|at| at.file.as_deref()),
        line: at.and_then(|at| at.line),
        function: at.and_then(|at| at.function.as_deref()),
    }
}

fn incomplete(model: Model, entry: &Incomplete) -> IncompleteJson<'_> {
    IncompleteJson {
        kind: entry.kind.name(),
        status: entry.status.name(),
        model: model.name(),
        events: entry.events.as_deref(),
        count: entry.count,
        groups: entry.groups,
        at_least: entry.at_least,
        why: entry.why.name(),
        what: &entry.what,
    }
}

fn may_read(row: &Sourced) -> MayReadJson<'_> {
    MayReadJson { location: &row.read, from: &row.from, initial: row.initial }
}
