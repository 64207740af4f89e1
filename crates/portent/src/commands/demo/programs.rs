//! The bundled programs: each is a bug pattern with what must be found in it, or a clean twin in which nothing may be found.

use portent_order::Model;
use portent_predict::BugKind;
use portent_report::{Report, Story, Verdict};

/// A small C program. Its first comment is its title and a story of two lines.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) bug: Option<Bug>,
    /// The property that it is checked for, a file beside it.
    pub(crate) spec: Option<&'static str>,
}

/// What must be found: confirmed by replays, in this model, and not before this round.
pub(crate) struct Bug {
    kind: BugKind,
    /// In words, as [`Story::title`] has it.
    title: &'static str,
    model: Model,
    round: u32,
}

macro_rules! program {
    ($name:literal, $bug:expr) => {
        program!($name, $bug, None)
    };
    ($name:literal, $bug:expr, $spec:expr) => {
        Program { name: $name, source: include_str!(concat!("../../../demo/", $name, ".c")), bug: $bug, spec: $spec }
    };
}

const LANDING: Option<&str> = Some(include_str!("../../../demo/landing.spec"));

const fn bug(kind: BugKind, title: &'static str, model: Model, round: u32) -> Option<Bug> {
    Some(Bug { kind, title, model, round })
}

/// All of them, the bugs first.
pub(crate) const PROGRAMS: [Program; 13] = [
    program!("hidden_race", bug(BugKind::Race, "data race", Model::Reads, 1)),
    program!("split_update", bug(BugKind::Atomicity, "atomicity violation", Model::Sync, 1)),
    program!("three_way_deadlock", bug(BugKind::Deadlock, "deadlock", Model::Reads, 1)),
    program!("lost_wakeup", bug(BugKind::Deadlock, "lost wake-up", Model::Reads, 1)),
    program!("early_publication", bug(BugKind::Race, "data race", Model::Reads, 1)),
    program!("last_bid", bug(BugKind::Nondeterminism, "nondeterminism", Model::Reads, 1)),
    program!("behind_a_branch", bug(BugKind::Race, "data race", Model::Reads, 2)),
    program!("landing", bug(BugKind::Property, "property violation", Model::Reads, 1), LANDING),
    program!("clean_handover", None),
    program!("clean_lock_order", None),
    program!("clean_meeting", None),
    program!("clean_bids", None),
    program!("clean_landing", None, LANDING),
];

impl Program {
    /// What it is, in a line.
    pub(crate) fn title(&self) -> &'static str {
        self.comment().next().unwrap_or(self.name)
    }

    /// Its story.
    pub(crate) fn story(&self) -> impl Iterator<Item = &'static str> {
        self.comment().skip(1)
    }

    fn comment(&self) -> impl Iterator<Item = &'static str> {
        let lines = self.source.lines().take_while(|line| !line.contains("*/"));
        lines.map(|line| line.trim_start_matches(['/', '*', ' ']))
    }
}

impl Bug {
    /// The finding that shows it.
    pub(crate) fn shown<'a>(&self, report: &'a Report) -> Option<&'a Story> {
        report.stories.iter().find(|story| {
            story.finding.kind() == self.kind
                && story.title() == self.title
                && story.verdict == Verdict::Confirmed
                && story.finding.model == Some(self.model)
                && story.round == Some(self.round)
        })
    }

    /// In words.
    pub(crate) fn title(&self) -> &'static str {
        self.title
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_title_and_a_story_of_two_lines_that_fit() {
        for program in PROGRAMS {
            let story: Vec<_> = program.story().collect();
            assert_eq!(story.len(), 2, "{}", program.name);
            assert!(story.iter().chain([&program.title()]).all(|line| line.len() <= 97), "{}", program.name);
            assert_eq!(program.title().starts_with("Clean twin of "), program.bug.is_none(), "{}", program.name);
        }
    }
}
