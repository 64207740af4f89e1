//! What the runs of a check were made for, and how many it took until each failure was seen: a table, and JSON.

use crate::level::Level;
use crate::report::{Report, RunStats};
use crate::words::count;
use serde::Serialize;
use std::collections::BTreeMap;

/// As JSON.
#[derive(Serialize)]
pub(crate) struct StatsJson<'a> {
    strategy: &'static str,
    seed: u64,
    /// Runs by what they were made for.
    runs: BTreeMap<&'static str, u64>,
    /// Runs that differ in what some thread does or reads, or from where.
    behaviours: u64,
    /// Pairs of a thread at a place that read what a thread at a place wrote.
    reads_from: u64,
    /// How many runs it took until the first failure was seen; null if none was.
    first_failure: Option<u64>,
    failures: Vec<FirstJson<'a>>,
}

/// A failure, and how many runs it took until it was seen.
#[derive(Serialize)]
struct FirstJson<'a> {
    id: &'a str,
    kind: &'static str,
    first_run: u64,
}

/// Failures that were seen, with the run that showed each first; the earliest first.
fn firsts(report: &Report) -> Vec<FirstJson<'_>> {
    let seen = report.of_level(Level::Failure).filter_map(|story| {
        let first_run = story.replayed.as_ref()?.first_run?;
        Some(FirstJson { id: &story.finding.id, kind: story.finding.kind().name(), first_run })
    });
    let mut seen: Vec<FirstJson<'_>> = seen.collect();
    seen.sort_by_key(|first| first.first_run);
    seen
}

pub(crate) fn json(report: &Report) -> Option<StatsJson<'_>> {
    let RunStats { strategy, seed, ref phases, behaviours, reads_from } = *report.stats.as_ref()?;
    let failures = firsts(report);
    let first_failure = failures.first().map(|first| first.first_run);
    let runs = phases.iter().copied().collect();
    Some(StatsJson { strategy, seed, runs, behaviours, reads_from, first_failure, failures })
}

/// As a table; empty if it is not to be told.
pub fn table(report: &Report) -> String {
    let Some(RunStats { strategy, seed, phases, behaviours, reads_from }) = &report.stats else { return String::new() };
    let failures = firsts(report);
    let row = |name: &str, value: &str| format!("{name:<28} {value:>14}\n");
    let mut text = row("strategy", strategy) + &row("seed", &seed.to_string());
    text += &row("runs", &count(phases.iter().map(|(_, runs)| runs).sum()));
    for (name, runs) in phases {
        text += &row(&format!("  {name}"), &count(*runs));
    }
    text += &row("runs that differ", &count(*behaviours));
    text += &row("reads-from pairs", &count(*reads_from));
    let first = failures.first().map_or_else(|| "none seen".to_owned(), |first| count(first.first_run));
    text += &row("runs to the first failure", &first);
    for first in &failures {
        text += &row(&format!("  {}", first.id), &count(first.first_run));
    }
    text
}
