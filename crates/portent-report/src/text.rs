//! Findings as text for people: the story of each, a summary, and what is not known.

mod brief;
mod columns;
mod frames;
mod lines;
mod paint;
mod story;
mod summary;

pub(crate) use brief::begun;
pub(crate) use summary::ran;

use crate::level::Level;
use crate::report::{Report, Story};
use crate::words::{count, line};
use portent_predict::{BugKind, Stats};

/// Failures that are told in a line each have room for at least so many.
const ROWS: usize = 12;
/// Observations that are listed.
const OBSERVATIONS: usize = 200;

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
    /// The longest page, in lines, unless more is asked for: two screens.
    pub const LINES: usize = 90;
    /// The widest page that is easy to read.
    pub const WIDEST: usize = 120;
    /// Below this width the two orders stand below each other.
    pub(crate) const NARROW: usize = 76;
}

/// One finding, told in full.
pub fn story(report: &Report, story: &Story, look: &Look) -> String {
    match story.finding.bug.failure() {
        Some(_) => brief::block(report, story, look, false),
        None => story::block(report, story, look, true),
    }
}

/// One finding, told as in the page.
pub fn brief(report: &Report, story: &Story, look: &Look) -> String {
    brief::block(report, story, look, true)
}

/// What the marks in the two orders mean.
pub fn legend(look: &Look) -> String {
    let legend = ["● the finding's own events", "⇄ another thread runs", "⋮ events that do not matter here"];
    legend.join(if look.width < 86 { "\n" } else { "   " }) + "\n"
}

/// The findings, the worst first, and the summary: by default never longer than [`Look::LINES`] lines.
///
/// The first failures are told in short blocks, as many as fit; the others in a line each, as many as fit.
pub fn page(report: &Report, look: &Look) -> String {
    if report.settings.quiet {
        return summary::quiet(report);
    }
    if report.settings.detailed {
        return detailed(report, look);
    }
    let end = ending(report, look);
    let room = Look::LINES.saturating_sub(if report.settings.observations { 12 } else { end.lines().count() });
    let failures = by_process(report);
    let mut text = String::new();
    let mut used = 0;
    let mut told = 0;
    let mut process = None;
    for (at, story) in failures.iter().enumerate().take(look.stories) {
        let mut block = brief::block(report, story, look, at == 0);
        if let Some(of) = story.processes.first().filter(|of| process != Some(**of)) {
            process = Some(*of);
            block.insert_str(0, &brief::process(report, *of, look));
        }
        let rest = failures.len() - at - 1;
        // A blank line follows; the rest is to have a few lines, too.
        let wanted = used + block.lines().count() + 1 + rest.min(ROWS);
        if at > 0 && wanted > room {
            break;
        }
        used += block.lines().count() + 1;
        told = at + 1;
        text.push_str(&block);
        text.push('\n');
    }
    let rest = &failures[told..];
    if !rest.is_empty() {
        let room = room.saturating_sub(used + 2).max(1);
        let shown = if rest.len() > room { room - 1 } else { rest.len() };
        for story in &rest[..shown] {
            text.push_str(&format!("✗ {}\n", brief::row(report, story)));
        }
        if shown < rest.len() {
            let more = count((rest.len() - shown) as u64);
            text.push_str(&format!("… and {more} more failures: --json or --html has all of them\n"));
        }
        text.push('\n');
    }
    text + &end
}

/// The failures: the worst first, and then what else its process showed.
fn by_process(report: &Report) -> Vec<&Story> {
    let mut failures: Vec<&Story> = report.of_level(Level::Failure).collect();
    let mut order: Vec<Option<usize>> = Vec::new();
    for story in &failures {
        let process = story.processes.first().copied();
        if !order.contains(&process) {
            order.push(process);
        }
    }
    failures.sort_by_key(|story| order.iter().position(|process| *process == story.processes.first().copied()));
    failures
}

/// Observations, what reads may see where that was asked for, and the summary.
fn ending(report: &Report, look: &Look) -> String {
    let mut text = String::new();
    if report.settings.observations {
        let mut observations = report.of_level(Level::Observation);
        for story in observations.by_ref().take(OBSERVATIONS) {
            text.push_str(&brief::observation(report, story, look));
            text.push('\n');
        }
        let more = observations.count() as u64;
        if more > 0 {
            text.push_str(&format!("… and {} more observations: --json has all of them\n\n", count(more)));
        }
    } else if let Some(told) = summary::other_output(report) {
        text.push_str(&told);
    }
    if report.settings.observations || report.settings.asked.contains(&BugKind::Nondeterminism) {
        text.push_str(&reads_from(report, if report.settings.observations { OBSERVATIONS } else { ROWS }));
    }
    text + &summary::summary(report, false)
}

/// For each read, the writes whose values it may see.
fn reads_from(report: &Report, most: usize) -> String {
    if report.reads_from.is_empty() {
        return String::new();
    }
    let mut text = String::from("what reads may see: the value written at, or the initial one\n");
    for row in report.reads_from.iter().take(most) {
        let mut from: Vec<String> = row.from.iter().map(|text| line(text)).collect();
        from.extend(row.initial.then(|| "the initial value".to_owned()));
        text.push_str(&format!("  {} ← {}\n", line(&row.read), from.join(", ")));
    }
    if report.reads_from.len() > most {
        text.push_str(&format!("  … and {} more (--json)\n", count((report.reads_from.len() - most) as u64)));
    }
    text + "\n"
}

/// Everything at length: both orders of each finding side by side.
///
/// A value that can differ often differs because of a bug that has been told: such findings are told in a line each, below
/// the first one on the same object.
fn detailed(report: &Report, look: &Look) -> String {
    let mut text = String::new();
    let leaders: Vec<usize> = (0..report.stories.len()).map(|at| leader(&report.stories, at)).collect();
    let told = (0..leaders.len()).filter(|&at| leaders[at] == at);
    for (number, at) in told.clone().enumerate() {
        let story = &report.stories[at];
        text.push_str(&match story.finding.bug.failure() {
            Some(_) => brief::block(report, story, look, false),
            None => story::block(report, story, look, number < look.stories),
        });
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
    text + &reads_from(report, usize::MAX) + &summary::summary(report, true)
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

/// What is left out, what is not known, how much was run, and in the last line what came out.
pub fn summary(report: &Report) -> String {
    summary::summary(report, true)
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
        ("questions that reused", count(tiers.reused)),
        ("pairs settled by reuse", count(tiers.implied)),
        ("time", format!("{:.3} s", stats.time.as_secs_f64())),
    ]);
    if stats.unshared > 0 {
        rows.insert(0, ("events nobody contends for", count(stats.unshared)));
    }
    if stats.windows_in_all > 0 {
        rows.insert(0, ("windows", format!("{} of {}", count(stats.windows), count(stats.windows_in_all))));
    }
    rows.iter().map(|(name, value)| format!("{name:<28} {value:>14}\n")).collect()
}
