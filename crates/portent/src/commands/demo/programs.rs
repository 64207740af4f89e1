//! The bundled programs: each is a bug pattern with what must be found in it, or a clean twin in which nothing may be found.

use portent_predict::{Form, Harm};
use portent_report::{Level, Report, Story, Verdict};

/// A small C program. Its first comment is its title and a story of two lines.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) bug: Option<Bug>,
    pub(crate) check: Check,
}

/// How it is checked, if not as every program is.
pub(crate) enum Check {
    Plain,
    /// For a property, a file beside it.
    Spec(&'static str),
    /// It has to print the same in every run.
    SameOutput,
}

/// What must be found, as a failure, and confirmed by replays.
pub(crate) struct Bug {
    form: Form,
    /// Not before this round.
    round: u32,
}

macro_rules! program {
    ($name:literal, $bug:expr) => {
        program!($name, $bug, Check::Plain)
    };
    ($name:literal, $bug:expr, $check:expr) => {
        Program { name: $name, source: include_str!(concat!("../../../demo/", $name, ".c")), bug: $bug, check: $check }
    };
}

const LANDING: Check = Check::Spec(include_str!("../../../demo/landing.spec"));

const fn bug(form: Form) -> Option<Bug> {
    Some(Bug { form, round: 1 })
}

/// All of them, the bugs first.
pub(crate) const PROGRAMS: [Program; 17] = [
    program!("closed_connection", bug(Form::Failure(Harm::UseAfterFree))),
    program!("empty_queue", bug(Form::Failure(Harm::Abort))),
    program!("hidden_race", bug(Form::Race)),
    program!("split_update", bug(Form::LostUpdate)),
    program!("three_way_deadlock", bug(Form::Cycle)),
    program!("lost_wakeup", bug(Form::LostWakeup)),
    program!("early_publication", bug(Form::Failure(Harm::Assertion))),
    program!("last_bid", bug(Form::Failure(Harm::Output)), Check::SameOutput),
    program!("behind_a_branch", Some(Bug { form: Form::Race, round: 2 })),
    program!("landing", bug(Form::Property), LANDING),
    program!("clean_connection", None),
    program!("clean_queue", None),
    program!("clean_handover", None),
    program!("clean_lock_order", None),
    program!("clean_meeting", None),
    program!("clean_bids", None, Check::SameOutput),
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
        report.of_level(Level::Failure).find(|story| {
            story.finding.bug.form() == self.form
                && story.verdict == Verdict::Confirmed
                && story.round.is_none_or(|round| round == self.round)
        })
    }

    /// In words.
    pub(crate) fn title(&self) -> &'static str {
        self.form.words().title
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
