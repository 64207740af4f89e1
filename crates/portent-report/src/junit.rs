//! Findings as JUnit XML, for CI systems that show test results: a suite per kind, a failed case per failure. Of several
//! processes, a suite per process.
//!
//! An observation is a case that passed, with what there is to say as its output. A kind without findings is one case that passed; what was not examined or not decided is a skipped case.

use crate::level::Level;
use crate::report::{Report, Story, Verdict};
use crate::{deciding, place};
use portent_order::Model;
use portent_predict::{BugKind, Incomplete};

/// The whole document, with a line end.
pub fn document(report: &Report) -> String {
    let suites = if report.processes.is_empty() { of_kinds(report) } else { of_processes(report) };
    let sum = |i: usize| suites.iter().map(|(_, counts)| counts[i]).sum::<usize>();
    let body: String = suites.iter().map(|(text, _)| text.as_str()).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"portent\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n{body}</testsuites>\n",
        sum(0),
        sum(1),
        sum(2)
    )
}

/// A suite per process; what two of them showed is in both. What was not examined is in the last.
fn of_processes(report: &Report) -> Vec<(String, [usize; 3])> {
    let of = |at: usize| report.stories.iter().filter(|story| story.processes.contains(&at)).collect::<Vec<_>>();
    let mut suites: Vec<_> = report
        .processes
        .iter()
        .enumerate()
        .map(|(at, one)| suite(report, &one.name, "failure", &of(at), &[]))
        .collect();
    let open: Vec<_> = report.incomplete.iter().collect();
    if !open.is_empty() {
        suites.push(suite(report, "portent", "failure", &[], &open));
    }
    suites
}

fn of_kinds(report: &Report) -> Vec<(String, [usize; 3])> {
    let mut kinds: Vec<BugKind> = report.settings.kinds.clone();
    kinds.extend(report.stories.iter().map(|story| story.finding.kind()));
    kinds.extend(report.incomplete.iter().map(|(_, entry)| entry.kind));
    kinds.sort_unstable();
    kinds.dedup();
    let of_kind = |kind: BugKind| {
        let stories: Vec<&Story> = report.stories.iter().filter(|story| story.finding.kind() == kind).collect();
        let open: Vec<_> = report.incomplete.iter().filter(|(_, entry)| entry.kind == kind).collect();
        let name = kind.name();
        suite(report, &format!("portent.{name}"), name, &stories, &open)
    };
    kinds.into_iter().map(of_kind).collect()
}

/// A suite, with the numbers of cases, failures and skipped cases; `what` was looked for.
fn suite(
    report: &Report,
    name: &str,
    what: &str,
    stories: &[&Story],
    open: &[&(Model, Incomplete)],
) -> (String, [usize; 3]) {
    let name = attribute(name);
    let mut cases = String::new();
    for story in stories {
        let said = match story.level {
            Level::Failure => format!(
                "<failure message=\"{}\" type=\"{}\">{}</failure>",
                attribute(&message(report, story)),
                attribute(story.verdict.name()),
                content(&body(report, story))
            ),
            // Worth knowing, but nothing that fails.
            Level::Observation => format!("<system-out>{}</system-out>", content(&body(report, story))),
        };
        cases.push_str(&format!(
            "    <testcase classname=\"{name}\" name=\"{}\"{}>\n      {said}\n    </testcase>\n",
            attribute(&format!("{} {}", story.finding.id, headline(report, story))),
            file_and_line(report, story),
        ));
    }
    let mut skipped = 0;
    for (model, entry) in open {
        skipped += 1;
        let unit = if entry.groups { "groups" } else { "candidates" };
        cases.push_str(&format!(
            "    <testcase classname=\"{name}\" name=\"{}\">\n      <skipped message=\"{}\"/>\n    </testcase>\n",
            attribute(&format!("{} {skipped}: {}", entry.status.words(), entry.what)),
            attribute(&format!(
                "{} ({}, model {}, {} {unit})",
                entry.what,
                entry.why.name(),
                model.name(),
                entry.count
            ))
        ));
    }
    let failures = stories.iter().filter(|story| story.level == Level::Failure).count();
    // Observations of a process are no verdict on it.
    let passed = skipped == 0 && (stories.is_empty() || (failures == 0 && !report.processes.is_empty()));
    if passed {
        cases.push_str(&format!("    <testcase classname=\"{name}\" name=\"no {what} found\"/>\n"));
    }
    let tests = stories.len() + skipped + usize::from(passed);
    let text = format!(
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n{cases}  </testsuite>\n",
    );
    (text, [tests, failures, skipped])
}

/// What and where, in a line.
fn headline(report: &Report, story: &Story) -> String {
    match story.lines(&report.settings.sources) {
        lines if lines.is_empty() => story.what(),
        lines => format!("{} ({})", story.what(), lines.join(", ")),
    }
}

/// What happened, and what decided.
fn message(report: &Report, story: &Story) -> String {
    match &story.decided {
        Some(decided) => format!("{} Decisive: {}", story.why, decided.sentence(&report.settings.sources)),
        None => story.why.clone(),
    }
}

fn file_and_line(report: &Report, story: &Story) -> String {
    let at = story.places.iter().filter_map(place::of_spot).find(|at| at.file.is_some());
    let Some((Some(file), Some(line))) = at.map(|at| (at.file, at.line)) else { return String::new() };
    format!(" file=\"{}\" line=\"{line}\"", attribute(&report.settings.sources.relative(&file)))
}

/// The story in lines.
fn body(report: &Report, story: &Story) -> String {
    let mut text = format!("{} ({})\n", headline(report, story), story.verdict.name());
    for spot in &story.places {
        let who = spot.thread.as_deref().map_or_else(String::new, |thread| format!(" {thread}"));
        let at = deciding::at(&report.settings.sources, spot);
        text.push_str(&format!("{}:{who} {} {}{at}\n", spot.role.name(), spot.op, spot.object));
        for (at, frame) in spot.stack.iter().enumerate().filter(|(_, frame)| frame.user) {
            text.push_str(&format!("  #{at} {}\n", place::full(&report.settings.sources, &place::of_frame(frame))));
        }
    }
    text.push_str(&format!("{}\n", message(report, story)));
    if let Verdict::Unconfirmed(Some(why)) = &story.verdict {
        text.push_str(&format!("not seen in replays: {why}\n"));
    }
    if let Some(failure) = story.finding.bug.failure().filter(|failure| !failure.stderr.is_empty()) {
        text.push_str(&format!("standard error:\n{}\n", failure.stderr.trim_end()));
    }
    if let Some(command) = &story.command {
        text.push_str(&format!("replay: {command}\n"));
    }
    text
}

/// Text between tags. Characters that XML cannot hold at all are replaced.
fn content(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c if crate::words::is_hidden(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    safe
}

/// Text in an attribute: line ends would be lost, so they are written out.
fn attribute(text: &str) -> String {
    content(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(content("a<b>&\"\u{1b}"), "a&lt;b&gt;&amp;&quot;\u{fffd}");
        assert_eq!(attribute("a\nb"), "a&#10;b");
    }
}
