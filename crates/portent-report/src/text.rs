//! Findings as text for people: the story of each, a summary, and what is not known.

mod columns;
mod paint;
mod story;

use crate::report::{Report, Story};
use crate::words::{count, counted, line};
use portent_predict::{BugKind, Stats, Why};

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
pub fn page(report: &Report, look: &Look) -> String {
    let mut text = String::new();
    for (at, story) in report.stories.iter().enumerate() {
        text.push_str(&story::block(report, story, look, at < look.stories));
        text.push('\n');
    }
    if report.stories.len() > look.stories {
        let rest = report.stories.len() - look.stories;
        text.push_str(&format!("the last {} are told in short: --html tells them all\n\n", count(rest as u64)));
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

/// What the prediction cost, as a table.
pub fn stats(stats: &Stats) -> String {
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
