//! Findings as text for people: the story of each, a summary, and what is not known.

mod columns;
mod paint;
mod story;

use crate::report::{Report, Story};
use crate::words::{count, counted, line};
use portent_predict::{BugKind, Incomplete, Stats};

/// How the text is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Characters per line that can be filled.
    pub width: usize,
    /// Whether to use colours.
    pub colours: bool,
    /// So many findings are told in full, the others in short.
    pub stories: usize,
}

impl Default for Look {
    fn default() -> Self {
        Look { width: 100, colours: false, stories: 20 }
    }
}

impl Look {
    /// The widest page that is easy to read.
    pub const WIDEST: usize = 120;
    /// Below this width the two orders stand below each other.
    pub(crate) const NARROW: usize = 76;
}

/// One finding, told in full.
pub fn story(report: &Report, story: &Story, look: &Look) -> String {
    story::block(report, story, look, true)
}

/// What the marks in the two orders mean.
pub fn legend(look: &Look) -> String {
    let legend = ["● the finding's own events", "⇄ another thread runs", "⋮ events that do not matter here"];
    legend.join(if look.width < 86 { "\n" } else { "   " }) + "\n"
}

/// All findings, the summary, and what was not examined.
///
/// A value that can differ often differs because of a bug that has been told: such findings are told in a line each, below
/// the first one on the same object.
pub fn page(report: &Report, look: &Look) -> String {
    let mut text = String::new();
    let leaders: Vec<usize> = (0..report.stories.len()).map(|at| leader(&report.stories, at)).collect();
    let told = (0..leaders.len()).filter(|&at| leaders[at] == at);
    for (number, at) in told.clone().enumerate() {
        let story = &report.stories[at];
        text.push_str(&story::block(report, story, look, number < look.stories));
        let led = (at + 1..leaders.len()).filter(|&other| leaders[other] == at).map(|other| &report.stories[other]);
        text.push_str(&story::followers(story, led, look));
        text.push('\n');
    }
    let rest = told.count().saturating_sub(look.stories);
    if rest > 0 {
        text.push_str(&format!("the last {} are shown in brief: --html shows them in full\n\n", count(rest as u64)));
    }
    if report.stories.iter().take(look.stories).any(|story| story.finding.witness.is_some()) {
        text.push_str(&format!("{}\n", legend(look)));
    }
    if !report.reads_from.is_empty() {
        text.push_str("where reads may take their values from\n");
        for row in &report.reads_from {
            let mut from: Vec<String> = row.from.iter().map(|text| line(text)).collect();
            from.extend(row.initial.then(|| "the initial value".to_owned()));
            text.push_str(&format!("  {} ← {}\n", line(&row.read), from.join(", ")));
        }
        text.push('\n');
    }
    text + &summary(report)
}

/// The story with which another one is told: itself, or the first on the same object if it is about values that differ.
fn leader(stories: &[Story], at: usize) -> usize {
    let story = &stories[at].finding;
    let leads = |other: &Story| {
        other.finding.object == story.object
            && matches!(other.finding.kind(), BugKind::Race | BugKind::Atomicity | BugKind::Nondeterminism)
    };
    match story.kind() {
        BugKind::Nondeterminism => stories[..at].iter().position(leads).unwrap_or(at),
        _ => at,
    }
}

/// One line per kind, then what is withheld and what was not examined.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    for &kind in report.settings.kinds.iter().filter(|kind| **kind != BugKind::Property) {
        let (number, instances, exact) = report.counts(kind);
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
    for told in &report.properties {
        text.push_str(&format!("property {}: {}\n", line(&told.name), line(&told.sentence)));
        for note in &told.notes {
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
    for (_, entry) in report.incomplete.iter().filter(|(_, entry)| entry.kind != BugKind::Property) {
        text.push_str(&open_line(entry));
    }
    text
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

/// What the prediction cost, as a table.
pub fn stats(stats: &Stats) -> String {
    let tiers = &stats.tiers;
    let mut rows = Vec::new();
    if let Some(streamed) = &stats.streamed {
        let figures = &streamed.figures;
        let seconds = |time: std::time::Duration| format!("{:.3} s", time.as_secs_f64());
        rows.extend([
            ("events streamed", count(figures.events)),
            ("  lock states", count(figures.lock_states)),
            ("  keys", count(figures.keys)),
            ("  not told apart", count(figures.dropped)),
            ("  time", seconds(figures.time)),
            ("candidate groups", count(figures.groups.iter().sum())),
            ("  confirmed", count(streamed.confirmed)),
            ("  refuted", count(streamed.refuted)),
            ("  undecided", count(streamed.undecided)),
            ("  not examined", count(streamed.not_examined)),
            ("  questions", count(streamed.asked)),
            ("  time", seconds(streamed.time)),
        ]);
    }
    rows.extend([
        ("candidates", count(stats.candidates)),
        ("  spared, group has enough", count(stats.spared)),
        ("queries", count(tiers.queries)),
        ("  settled by filters", count(tiers.filtered)),
        ("  settled by saturation", count(tiers.saturated)),
        ("  settled by observed order", count(tiers.observed)),
        ("  settled by executing", count(tiers.guessed)),
        ("  settled by search", count(tiers.searched)),
        ("  not settled", count(tiers.unknown)),
        ("decisions", count(tiers.decisions)),
        ("conflicts", count(tiers.conflicts)),
        ("clauses reused", count(tiers.clauses)),
        ("time", format!("{:.3} s", stats.time.as_secs_f64())),
    ]);
    if stats.windows_in_all > 0 {
        rows.insert(0, ("windows", format!("{} of {}", count(stats.windows), count(stats.windows_in_all))));
    }
    rows.iter().map(|(name, value)| format!("{name:<28} {value:>14}\n")).collect()
}
