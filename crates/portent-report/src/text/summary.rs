//! The end of the text: what is left out, what is not known, how much was run, and in the last line what came out.

use super::brief;
use crate::level::Level;
use crate::report::{Explored, Process, Report};
use crate::words::{count, counted, cut, line};
use portent_predict::{BugKind, Form, Harm, Incomplete};

/// Entries of each list that are shown, unless all are wanted.
const FEW: usize = 6;

/// All of it: the lines before the last one are at most `FEW` of each sort, unless `whole`.
pub(crate) fn summary(report: &Report, whole: bool) -> String {
    let mut text = String::new();
    for told in &report.properties {
        text.push_str(&format!("property {}: {}\n", line(&told.name), line(&told.sentence)));
        for note in told.notes.iter().take(if whole { usize::MAX } else { 2 }) {
            text.push_str(&format!("  {}\n", line(note)));
        }
    }
    let withheld = &report.withheld;
    if !withheld.known.is_empty() {
        text.push_str(&format!("known from the baseline: {}\n", counted(withheld.known.len() as u64, "finding")));
    }
    if !withheld.suppressed.is_empty() {
        text.push_str(&format!("suppressed: {}\n", counted(withheld.suppressed.len() as u64, "finding")));
    }
    // Properties have said so themselves.
    let open = report.incomplete.iter().filter(|(_, entry)| entry.kind != BugKind::Property);
    list(&mut text, open.map(|(_, entry)| open_line(entry)), "not examined or undecided", whole);
    list(&mut text, report.scope.iter().map(|hole| format!("not covered: {}\n", line(hole))), "not covered", whole);
    let holes = report.processes.iter().flat_map(|one| one.scope.iter().map(move |hole| (one, hole)));
    let holes = holes.map(|(one, hole)| format!("not covered: {}: {}\n", cut(&line(&one.name), 60), line(hole)));
    list(&mut text, holes, "not covered", whole);
    text + &processes(report, whole) + &last_line(report)
}

/// How much of a process was run.
pub(crate) fn ran(process: &Process) -> String {
    process.explored.as_ref().map_or_else(|| "not replayed".to_owned(), |ran| counted(ran.runs, "run"))
}

/// Processes that have a line each, unless all are wanted.
const PROCESSES: usize = 40;

/// A line per process, those with failures first.
fn processes(report: &Report, whole: bool) -> String {
    let mut lines: Vec<(bool, String)> = Vec::new();
    for (at, one) in report.processes.iter().enumerate() {
        let failures = report.failures_of(at);
        let (mark, said) = match failures {
            0 => ("✓", "no failure".to_owned()),
            _ => ("✗", counted(failures, "failure")),
        };
        let ran = ran(one);
        lines.push((failures == 0, format!("{mark} {}: {said}, {ran}\n", cut(&line(&one.name), 80))));
    }
    lines.sort_by_key(|(passed, _)| *passed);
    let mut text = String::new();
    let shown = if whole { lines.len() } else { lines.len().min(PROCESSES) };
    lines[..shown].iter().for_each(|(_, told)| text.push_str(told));
    if shown < lines.len() {
        text.push_str(&format!("… and {} more processes (--json lists them)\n", count((lines.len() - shown) as u64)));
    }
    text
}

/// Lines, and how many more there are.
fn list(text: &mut String, lines: impl Iterator<Item = String>, what: &str, whole: bool) {
    let lines: Vec<String> = lines.collect();
    let shown = if whole { lines.len() } else { lines.len().min(FEW) };
    lines[..shown].iter().for_each(|told| text.push_str(told));
    if shown < lines.len() {
        text.push_str(&format!("{what}: {} more (--json lists them)\n", count((lines.len() - shown) as u64)));
    }
}

/// The first of the observations, if it is that the program prints something else.
pub(crate) fn other_output(report: &Report) -> Option<String> {
    let is_output = Form::Failure(Harm::Output);
    let story = report.of_level(Level::Observation).find(|story| story.finding.bug.form() == is_output)?;
    let decided = story.decided.as_ref().map(|decided| decided.sentence(&report.settings.sources));
    let why = decided.map_or_else(|| line(&story.why), |decided| format!("{} decisive: {decided}", line(&story.why)));
    Some(cut(&format!("○ {}  {}  {why}", story.title(), story.finding.id), 240) + "\n")
}

/// What came out, how much was run for it, how long that took.
fn last_line(report: &Report) -> String {
    let failures = report.count(Level::Failure);
    let observations = report.count(Level::Observation);
    let mut parts = Vec::new();
    let nothing = failures == 0;
    parts.push(match nothing {
        true => format!("✓ no failure: {}", worth(report)),
        false => format!("{}.", counted(failures, "failure")),
    });
    if let (false, Some(explored)) = (nothing, &report.explored) {
        parts.push(run(explored));
    }
    if observations > 0 {
        let how = if report.settings.observations { "" } else { " (--observations)" };
        parts.push(format!("{}{how}.", counted(observations, "observation")));
    }
    if let Some(seconds) = report.seconds {
        parts.push(format!("{seconds:.1} s"));
    }
    parts.join("  ") + "\n"
}

/// How much was run.
fn run(explored: &Explored) -> String {
    let Explored { runs, behaviours, complete, .. } = explored;
    let ran = counted(*runs, "run");
    match (complete, behaviours) {
        (true, _) => format!("{ran}; complete: {}.", all(explored)),
        (false, 0) => format!("{ran}."),
        (false, _) => format!("{ran}, {}; {}.", counted(*behaviours, "behaviour"), untried(explored)),
    }
}

/// That all behaviours were run, and what that rests on.
fn all(explored: &Explored) -> String {
    let were_run = match explored.behaviours {
        1 => "its only behaviour was run".to_owned(),
        behaviours => format!("all {} behaviours were run", count(behaviours)),
    };
    match explored.assumptions.is_empty() {
        true => were_run,
        false => format!("{were_run} ({})", line(&explored.assumptions.join("; "))),
    }
}

/// What is left, or why nobody knows.
fn untried(explored: &Explored) -> String {
    match (explored.left, &explored.unproven[..]) {
        (0, []) => "more may be possible".into(),
        (0, [why]) => format!("more may be possible: {}", cut(&line(why), 120)),
        (0, [why, more @ ..]) => {
            let more = counted(more.len() as u64, "reason");
            format!("more may be possible: {} ({more} more in --json)", cut(&line(why), 120))
        }
        (1, _) => "1 alternative is left".into(),
        (left, _) => format!("{} alternatives are left", count(left)),
    }
}

/// What nothing found is worth: what was run or examined.
fn worth(report: &Report) -> String {
    let input = cut(&line(&report.settings.input), 60);
    match &report.explored {
        Some(explored @ Explored { complete: true, .. }) => format!("{input} was run; complete: {}.", all(explored)),
        Some(explored @ Explored { runs, behaviours, .. }) => {
            let ran = if *behaviours == 0 { counted(*runs, "run") } else { counted(*behaviours, "behaviour") };
            format!("{input} was run; not complete: {ran}, {}.", untried(explored))
        }
        None => {
            let looked = match report.incomplete.is_empty() {
                true => "examined",
                false => "examined, not completely",
            };
            let (events, threads) = (report.size.events, report.size.threads as u64);
            format!("{input} ({} of {}) was {looked}.", counted(events, "event"), counted(threads, "thread"))
        }
    }
}

/// What is said of candidates that were neither shown nor refuted.
fn open_line(entry: &Incomplete) -> String {
    let (kind, status, why) = (entry.kind.name(), entry.status.words(), entry.why.name());
    let more = if entry.at_least { "at least " } else { "" };
    let unit = if entry.groups { "group" } else { "candidate" };
    let what = match &entry.events {
        Some(_) => line(&entry.what),
        None if entry.what.starts_with("branches ") => {
            let rest = entry.what.trim_start_matches("branches ");
            format!("{kind} candidates behind {} {rest}", counted(entry.count, "branch"))
        }
        None if entry.count == 0 => format!("{kind} candidates that could not be told apart"),
        None if entry.what.starts_with("more ") => {
            format!("{more}{} of {kind} candidates", counted(entry.count, &format!("more {unit}")))
        }
        None if entry.groups => format!("{more}{} of {kind} candidates", counted(entry.count, unit)),
        None => format!("{more}{} of kind {kind}", counted(entry.count, unit)),
    };
    format!("{status} ({why}): {what}\n")
}

/// One line per finding, and nothing else.
pub(crate) fn quiet(report: &Report) -> String {
    let shown = report.stories.iter().filter(|s| s.level == Level::Failure || report.settings.observations);
    shown.map(|story| brief::row(report, story) + "\n").collect()
}
