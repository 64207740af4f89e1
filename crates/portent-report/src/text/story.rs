//! One finding: what and where, with source; the two orders; why it is a bug; how to see it again.

use super::Look;
use super::columns;
use super::paint::{Ink, paint};
use crate::report::{Report, Spot, Story, Verdict};
use crate::source::caret;
use crate::words::{count, counted, line, short, wrapped};

/// How many steps of a witness are shown.
const STEPS: usize = 12;
/// Width of the labels at the end of a story.
const LABEL: usize = 9;

/// The text of a finding.
pub(crate) fn block(report: &Report, story: &Story, look: &Look, full: bool) -> String {
    let mut text = heading(story, look);
    let rows: Vec<[String; 4]> = story.places.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    for (place, row) in story.places.iter().zip(&rows) {
        let cell = |column: usize| format!("{:<width$}", row[column], width = width(column));
        text.push_str(format!("  {}  {}  {}  {}", cell(0), cell(1), cell(2), row[3]).trim_end());
        text.push('\n');
        if full {
            text.push_str(&snippet(report, place, look));
        }
    }
    if full {
        let orders = report.orders(story);
        // One event on its own tells nothing that its place has not told.
        if orders.observed.len() > 1 {
            text.push_str(&format!("\n{}\n", columns::orders(&orders, look)));
        }
    }
    let mut say = |label: &str, words: &str| {
        let room = look.width.min(Look::WIDEST).saturating_sub(2 + LABEL);
        for (at, line) in wrapped(words, room).into_iter().enumerate() {
            let label = format!("{:<LABEL$}", if at == 0 { label } else { "" });
            text.push_str(format!("  {}{line}", paint(look.colours, Ink::Label, &label)).trim_end());
            text.push('\n');
        }
    };
    say("why", &story.why);
    if let Some(site) = &story.allocated {
        say("memory", &format!("allocated at {}", line(site)));
    }
    if full {
        say("tsan", &format!("ThreadSanitizer {}", story.tsan.sentence(&story.finding, story.round)));
    }
    if let Some(replayed) = &story.replayed {
        let showed = replayed.showed.as_ref().map_or_else(String::new, |showed| format!(": {}", line(showed)));
        say("replayed", &format!("seen in {} of {}{showed}", replayed.hits, counted(u64::from(replayed.runs), "run")));
    }
    if let Verdict::Unconfirmed(Some(why)) = &story.verdict {
        say("diverged", &line(why));
    }
    if let Some(witness) = &story.finding.witness {
        say("witness", &steps(report, story, witness));
    }
    if let Some(command) = &story.command {
        // Commands are copied: never wrapped.
        let label = format!("{:<LABEL$}", "replay");
        text.push_str(&format!("  {}{}\n", paint(look.colours, Ink::Label, &label), line(command)));
    }
    text
}

/// Findings on the object of a story that has been told, in short.
pub(crate) fn followers<'a>(leader: &Story, led: impl Iterator<Item = &'a Story>, look: &Look) -> String {
    let title = format!("values of {} that can differ, too", line(&leader.finding.object));
    let mut text = String::new();
    for story in led {
        if text.is_empty() {
            text = format!("  {}\n", paint(look.colours, Ink::Label, &title));
        }
        let room = look.width.min(Look::WIDEST).saturating_sub(6);
        let words = format!("{}  {} ({})", story.finding.id, story.why, story.verdict.name());
        for (at, words) in wrapped(&words, room).into_iter().enumerate() {
            text.push_str(&format!("    {}{words}\n", if at == 0 { "" } else { "  " }));
        }
    }
    text
}

fn heading(story: &Story, look: &Look) -> String {
    let finding = &story.finding;
    let mut notes = Vec::new();
    if story.verdict != Verdict::Predicted {
        notes.push(story.verdict.name().to_owned());
    }
    notes.push(counted(finding.instances, "instance"));
    if !finding.instances_exact {
        notes.last_mut().into_iter().for_each(|note| *note = format!("at least {note}"));
    }
    notes.extend(story.round.map(|round| format!("round {round}")));
    notes.extend(finding.flags.names().map(str::to_owned));
    notes.extend(finding.bug.pattern().map(|pattern| pattern.name().to_owned()));
    format!(
        "{}  {} ({})\n",
        paint(look.colours, Ink::Goal, &finding.id),
        paint(look.colours, Ink::Heading, &format!("{} on {}", story.title(), line(&finding.object))),
        notes.join(", ")
    )
}

fn row(place: &Spot) -> [String; 4] {
    let value = place.value.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
    let what = format!("{} {}{value}", place.op, line(&place.object));
    let who = place.thread.as_deref().map_or_else(String::new, line);
    let Some(at) = &place.at else { return [place.role.name().into(), who, what, String::new()] };
    let function = at.function.as_deref().map_or_else(String::new, |f| format!(" in {}", line(f)));
    let event = place.event.map_or_else(String::new, |event| format!(" (event {event})"));
    [place.role.name().into(), who, what, format!("at {}{function}{event}", line(&at.text))]
}

/// The line of source at a place, with carets; nothing where there is no source.
fn snippet(report: &Report, place: &Spot, look: &Look) -> String {
    let Some((Some(file), Some(number))) = place.at.as_ref().map(|at| (at.file.as_deref(), at.line)) else {
        return String::new();
    };
    let Some(source) = report.settings.sources.line(file, number) else { return String::new() };
    let source = line(&source);
    let (start, len) = caret(&source, &place.object);
    let digits = number.to_string();
    let margin = " ".repeat(digits.len());
    let room = look.width.min(Look::WIDEST).saturating_sub(9 + digits.len());
    // A line that is too long loses its end; carets beyond it would point at nothing.
    let shown = if source.chars().count() > room { short_end(&source, room) } else { source };
    let carets = "^".repeat(len.min(room.saturating_sub(start)));
    let bar = paint(look.colours, Ink::Dim, "│");
    let mut text = format!("      {} {bar} {}\n", paint(look.colours, Ink::Dim, &digits), shown.trim_end());
    if !carets.is_empty() {
        let carets = paint(look.colours, Ink::Goal, &carets);
        text.push_str(&format!("      {margin} {bar} {}{carets}\n", " ".repeat(start)));
    }
    text
}

fn short_end(text: &str, room: usize) -> String {
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

fn steps(report: &Report, story: &Story, witness: &portent_predict::Witness) -> String {
    let names = report.runs[story.run].trace.names();
    let name = |step: &portent_predict::Step| {
        format!("{} {}", short(&line(names.thread(step.thread)), 28), count(step.events))
    };
    let (observed, then) = (witness.steps.as_observed, &witness.steps.then);
    let mut steps: Vec<String> = then.iter().rev().take(STEPS).rev().map(name).collect();
    if then.len() > STEPS {
        steps.insert(0, "…".into());
    } else if observed > 0 {
        steps.insert(0, format!("{} as in the run", counted(observed, "event")));
    }
    let shape = story.finding.bug.witness_type().map_or_else(String::new, |shape| format!(", {}", shape.name()));
    let list = if steps.is_empty() { String::new() } else { format!(": {}", steps.join(", ")) };
    let (events, switches) = (counted(witness.events(), "event"), counted(witness.switches() as u64, "switch"));
    format!("{events}, {switches}{shape}{list}")
}
