//! Findings as text for people: a short block each, a summary, and what is not known.

use crate::figures::{count, counted};
use crate::terminal::printable;
use portent_predict::{BugKind, Finding, Form, Place, Prediction, Stats, Why};
use portent_trace::{LocId, Trace};

/// How many steps of a witness are shown.
const STEPS: usize = 12;

/// All findings, the summary, and what was not examined.
pub(crate) fn page(trace: &Trace, kinds: &[BugKind], prediction: &Prediction) -> String {
    let mut text = String::new();
    for finding in &prediction.findings {
        text.push_str(&block(trace, finding));
        text.push('\n');
    }
    if !prediction.may_read.is_empty() {
        text.push_str("where reads may take their values from\n");
        for row in &prediction.may_read {
            let mut from: Vec<String> = row.from.iter().map(|&loc| location(trace, loc)).collect();
            from.extend(row.initial.then(|| "the initial value".to_owned()));
            text.push_str(&format!("  {} ← {}\n", location(trace, row.read), from.join(", ")));
        }
        text.push('\n');
    }
    for &kind in kinds {
        let found = prediction.findings.iter().filter(|f| f.kind == kind);
        let number = found.clone().count() as u64;
        let instances: u64 = found.clone().map(|f| f.instances).sum();
        let exact = found.clone().all(|f| f.instances_exact);
        text.push_str(&match number {
            0 => format!("{}: nothing found\n", kind.name()),
            _ => format!(
                "{}: {}, {}{}\n",
                kind.name(),
                counted(number, "finding"),
                if exact { "" } else { "at least " },
                counted(instances, "instance")
            ),
        });
    }
    for entry in &prediction.incomplete {
        let more = if entry.at_least { "at least " } else { "" };
        let number = format!("{more}{}", counted(entry.count, "candidate"));
        text.push_str(&match (&entry.events, entry.why) {
            (Some(_), why) => format!("not decided ({}): {}\n", why.name(), line(&entry.what)),
            (None, Why::Window) => {
                format!("not examined (window): {number} of kind {} whose events fit in no window\n", entry.kind.name())
            }
            (None, why) => format!("not examined ({}): {number} of kind {}\n", why.name(), entry.kind.name()),
        });
    }
    text
}

/// One finding.
fn block(trace: &Trace, finding: &Finding) -> String {
    let mut notes = vec![counted(finding.instances, "instance")];
    if !finding.instances_exact {
        notes[0] = format!("at least {}", notes[0]);
    }
    notes.extend(finding.flags.names().map(str::to_owned));
    let mut text = format!(
        "{}  {} on {} ({})\n",
        finding.id,
        match finding.form {
            Some(Form::LostWakeup) => "lost wake-up",
            _ => finding.kind.name(),
        },
        line(&finding.object),
        notes.join(", ")
    );
    let rows: Vec<[String; 4]> = finding.places.iter().map(|place| row(trace, place)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for row in &rows {
        let cell = |column: usize| format!("{:<width$}", row[column], width = width(column));
        text.push_str(format!("  {}  {}  {}  {}", cell(0), cell(1), cell(2), row[3]).trim_end());
        text.push('\n');
    }
    text.push_str(&format!("  {}\n", story(trace, finding)));
    if let Some(witness) = &finding.witness {
        let mut steps: Vec<String> = witness
            .steps
            .iter()
            .rev()
            .take(STEPS)
            .rev()
            .map(|step| format!("{} {}", line(trace.names().thread(step.thread)), count(step.events)))
            .collect();
        if witness.steps.len() > STEPS {
            steps.insert(0, "…".into());
        }
        let shape = finding.witness_type.map_or(String::new(), |shape| format!(" ({})", shape.name()));
        text.push_str(&format!(
            "  witness{shape}: {}, {}{}{}\n",
            counted(witness.events(), "event"),
            counted_with(witness.switches() as u64, "switch", "switches"),
            if steps.is_empty() { "" } else { ": " },
            steps.join(", ")
        ));
    }
    text
}

fn counted_with(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Text from the trace on one line.
fn line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

fn location(trace: &Trace, loc: LocId) -> String {
    line(&trace.names().location(loc).to_string())
}

fn thread(trace: &Trace, place: &Place) -> String {
    place.thread.map_or_else(String::new, |thread| line(trace.names().thread(thread)))
}

fn row(trace: &Trace, place: &Place) -> [String; 4] {
    let what = format!("{} {}", place.op, line(&place.object));
    let who = thread(trace, place);
    let Some(loc) = place.location else { return [place.role.name().into(), who, what, String::new()] };
    let function = trace.names().location(loc).function.map_or(String::new(), |f| format!(" in {}", line(f)));
    let event = place.event.map_or(String::new(), |event| format!(" (event {event})"));
    [place.role.name().into(), who, what, format!("at {}{function}{event}", location(trace, loc))]
}

/// How it breaks, in a sentence.
fn story(trace: &Trace, finding: &Finding) -> String {
    let who = |i: usize| finding.places.get(i).map_or_else(String::new, |place| thread(trace, place));
    let source = |i: usize| match finding.places.get(i) {
        Some(Place { location: Some(loc), .. }) => format!("what {} wrote at {}", who(i), location(trace, *loc)),
        _ => "the initial value".into(),
    };
    match finding.kind {
        BugKind::Race if finding.flags.relaxed_only => {
            format!("only a relaxed atomic comes between {} and {}: the language leaves them unordered", who(0), who(1))
        }
        BugKind::Race if finding.witness.is_none() => {
            format!("nothing in the recorded run orders {} before {}", who(0), who(1))
        }
        BugKind::Race => format!("{} and {} can be about to do this at the same time", who(0), who(1)),
        BugKind::Atomicity => format!(
            "{}'s {} can come between the two accesses of {}'s atomic block ({})",
            who(1),
            finding.places.get(1).map_or("access", |place| place.op),
            who(0),
            finding.pattern.unwrap_or("")
        ),
        BugKind::Nondeterminism => match finding.places.first() {
            Some(read) if read.event.is_none() => {
                format!("{} can end with {} instead of {}", line(&read.object), source(2), source(1))
            }
            _ => format!("{} can read {} instead of {}", who(0), source(2), source(1)),
        },
        BugKind::Deadlock if finding.form == Some(Form::LostWakeup) => {
            format!("{}'s notify can come before {} sleeps, which then nobody wakes", who(1), who(0))
        }
        BugKind::Deadlock => {
            let ring: Vec<String> = (0..finding.places.len()).map(who).collect();
            format!("{} and {} again: each waits for a lock that the next one holds", ring.join(", "), who(0))
        }
    }
}

/// What the prediction cost, as a table.
pub(crate) fn stats(stats: &Stats) -> String {
    let tiers = &stats.tiers;
    let rows = [
        ("windows", format!("{} of {}", count(stats.windows), count(stats.windows_in_all))),
        ("candidates", count(stats.candidates)),
        ("  spared, group has enough", count(stats.spared)),
        ("queries", count(tiers.queries)),
        ("  settled by filters", count(tiers.filtered)),
        ("  settled by saturation", count(tiers.saturated)),
        ("  settled by observed order", count(tiers.observed)),
        ("  settled by search", count(tiers.searched)),
        ("  not settled", count(tiers.unknown)),
        ("decisions", count(tiers.decisions)),
        ("conflicts", count(tiers.conflicts)),
        ("clauses reused", count(tiers.clauses)),
        ("time", format!("{:.3} s", stats.time.as_secs_f64())),
    ];
    rows.iter().map(|(name, value)| format!("{name:<28} {value:>14}\n")).collect()
}
