//! A finding as it is told by default: what and where, what happened, the few events that explain it, how to see it again.

use super::Look;
use super::frames;
use super::lines::lines;
use super::paint::{Ink, paint};
use crate::deciding::verb;
use crate::level::Level;
use crate::place;
use crate::report::{Report, Story, Verdict};
use crate::source::Sources;
use crate::threads::Begun;
use crate::words::{cut, function, line, short, title, wrapped};
use portent_predict::{Failure, Role};

/// Width of the labels.
const LABEL: usize = 11;
/// Lines of prose, and of what the program said.
const PROSE: usize = 4;
const SAID: usize = 4;
/// Lines about threads.
const THREADS: usize = 3;

/// The whole block.
///
/// `first`: it is the first of its page, and says what else a replay can do.
pub(crate) fn block(report: &Report, story: &Story, look: &Look, first: bool) -> String {
    let mut page = Page { text: heading(report, story, look) + "\n", look };
    let nearer = |text: &str| place::nearer(&report.settings.sources, &story.places, text);
    page.prose(&nearer(&story.why));
    page.reason(story);
    page.text.push_str(&lines(report, story, look));
    page.threads(report, story);
    page.decisive(report, story);
    match story.finding.bug.failure() {
        Some(failure) => page.failure(report, story, failure),
        None => {
            if let Some(showed) = story.replayed.as_ref().and_then(|replayed| replayed.showed.as_ref()) {
                page.say("seen as", &line(&nearer(showed)), 2);
            }
            if let Some(site) = &story.allocated {
                page.say("memory", &format!("allocated at {}", line(&nearer(site))), 1);
            }
        }
    }
    let names = report.processes_of(story);
    if let Some((_, others)) = names.split_first().filter(|(_, others)| !others.is_empty()) {
        page.say("also in", &line(&others.join(", ")), 2);
    }
    page.replay(story, first);
    page.text
}

/// The line above what a process showed.
pub(crate) fn process(report: &Report, at: usize, look: &Look) -> String {
    let name = report.processes.get(at).map_or("", |one| one.name.as_str());
    let name = cut(&line(name), look.width.min(Look::WIDEST).saturating_sub(6).max(20));
    format!("── {} ──\n", paint(look.colours, Ink::Heading, &name))
}

/// An observation: what and where, why it may matter, how to see it.
pub(crate) fn observation(report: &Report, story: &Story, look: &Look) -> String {
    let mut page = Page { text: heading(report, story, look) + "\n", look };
    page.prose(&story.why);
    page.reason(story);
    page.decisive(report, story);
    page.replay(story, false);
    page.text
}

/// One line: what and where, id, how sure.
pub(crate) fn heading(report: &Report, story: &Story, look: &Look) -> String {
    let width = look.width.min(Look::WIDEST);
    let right = format!("{}   {}", story.finding.id, story.sure());
    let places = places(report, story);
    let gap = if places.is_empty() { "" } else { "  " };
    // Names give way before the rest does.
    let taken = 2 + gap.len() + places.chars().count() + 3 + right.chars().count();
    let what = title(&line(&story.what()), width.saturating_sub(taken).max(30));
    let left = what.chars().count() + 2 + gap.len() + places.chars().count();
    let space = width.saturating_sub(left + right.chars().count()).max(3);
    let (mark, ink) = match story.level {
        Level::Failure => ("✗", Ink::Goal),
        Level::Observation => ("○", Ink::Label),
    };
    format!(
        "{} {}{gap}{places}{}{}",
        paint(look.colours, ink, mark),
        paint(look.colours, Ink::Heading, &what),
        " ".repeat(space),
        paint(look.colours, Ink::Dim, &right)
    )
}

fn places(report: &Report, story: &Story) -> String {
    /// More places than these are in the lines below.
    const SHOWN: usize = 3;
    let lines = story.lines(&report.settings.sources);
    let more = if lines.len() > SHOWN { ", …" } else { "" };
    lines[..lines.len().min(SHOWN)].join(", ") + more
}

/// For lists: id, what, where, how sure.
pub(crate) fn row(report: &Report, story: &Story) -> String {
    let processes = report.processes_of(story).first().map_or_else(String::new, |name| cut(&line(name), 60));
    let parts =
        [story.finding.id.clone(), title(&line(&story.what()), 60), places(report, story), story.sure(), processes];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
}

/// Text that grows.
struct Page<'a> {
    text: String,
    look: &'a Look,
}

impl Page<'_> {
    fn prose(&mut self, words: &str) {
        let room = self.look.width.clamp(12, Look::WIDEST);
        for told in at_most(wrapped(words, room - 2), PROSE) {
            self.text.push_str(format!("  {told}").trim_end());
            self.text.push('\n');
        }
    }

    /// Why it is no alarm though it was predicted.
    fn reason(&mut self, story: &Story) {
        if let Verdict::Unconfirmed(Some(why)) = &story.verdict {
            self.say("not seen", &line(why), 2);
        }
    }

    fn say(&mut self, label: &str, words: &str, most: usize) {
        let room = self.look.width.min(Look::WIDEST).saturating_sub(2 + LABEL);
        self.list(label, &at_most(wrapped(words, room.saturating_sub(2)), most));
    }

    /// Lines as they are.
    fn list(&mut self, label: &str, lines: &[String]) {
        for (at, told) in lines.iter().enumerate() {
            let label = format!("{:<LABEL$}", if at == 0 { label } else { "" });
            self.text.push_str(format!("  {}{told}", paint(self.look.colours, Ink::Label, &label)).trim_end());
            self.text.push('\n');
        }
    }

    /// Who the threads are: what the program calls them, what they run, and the line that started them.
    fn threads(&mut self, report: &Report, story: &Story) {
        let room = self.look.width.min(Look::WIDEST).saturating_sub(2 + LABEL);
        let told = at_most(begun(&report.settings.sources, &story.threads), THREADS);
        self.list("threads", &told.iter().map(|told| cut(told, room)).collect::<Vec<_>>());
    }

    fn decisive(&mut self, report: &Report, story: &Story) {
        if let Some(decided) = &story.decided {
            self.say("decisive", &decided.sentence(&report.settings.sources), 3);
        }
    }

    fn failure(&mut self, report: &Report, story: &Story, failure: &Failure) {
        let sources = &report.settings.sources;
        let room = self.look.width.min(Look::WIDEST).saturating_sub(2 + LABEL);
        let stack = story.places.first().map(|spot| frames::stack(sources, &spot.stack)).unwrap_or_default();
        self.list("stack", &stack.iter().map(|told| cut(told, room)).collect::<Vec<_>>());
        // What decides has a line of its own.
        let others = story.places.iter().skip(1).filter(|spot| !matches!(spot.role, Role::Decisive | Role::Because));
        for spot in others.take(SAID) {
            let label = verb(failure.harm, spot.role).or(spot.thread.as_deref()).unwrap_or("also");
            if let Some(chain) = frames::chain(sources, &spot.stack) {
                self.list(&short(&line(label), LABEL - 1), &[cut(&chain, room)]);
            }
        }
        self.list("stderr", &said(failure).iter().map(|told| cut(told, room)).collect::<Vec<_>>());
    }

    fn replay(&mut self, story: &Story, first: bool) {
        if let Some(command) = &story.command {
            // Commands are copied: never wrapped.
            let mut command = line(command);
            const HINT: &str = "        (--debugger gdb stops just before it)";
            if first && 2 + LABEL + command.chars().count() + HINT.len() <= self.look.width.min(Look::WIDEST) {
                command.push_str(HINT);
            }
            self.list("replay", &[command]);
        }
    }
}

/// A line for the threads that one line of the source started to run one function, and so on.
pub(crate) fn begun(sources: &Sources, threads: &[Begun]) -> Vec<String> {
    let mut lines: Vec<(Vec<String>, String)> = Vec::new();
    for one in threads.iter().filter(|one| one.is_known()) {
        let Some(at) = &one.started else { continue };
        let runs = one.routine.as_ref().map(|routine| format!("{}  ", function(routine))).unwrap_or_default();
        let by = at.function.as_ref().map(|name| format!(" in {}", function(name))).unwrap_or_default();
        let told = format!("{runs}started at {}{by}", place::written(sources, at));
        let name = line(&one.thread);
        match lines.iter_mut().find(|(_, other)| *other == told) {
            Some((names, _)) => names.push(name),
            None => lines.push((vec![name], told)),
        }
    }
    lines.into_iter().map(|(names, told)| format!("{}  {told}", names.join(", "))).collect()
}

/// The first lines, and a sign that there are more.
fn at_most(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            last.push_str(" …");
        }
    }
    lines
}

/// The last lines of what the program said, but for those that the message repeats.
fn said(failure: &Failure) -> Vec<String> {
    let message = line(&failure.message);
    let known = |told: &String| message.contains(told.as_str()) || told.contains(message.as_str());
    let lines = failure.stderr.lines().map(|told| line(told.trim_end())).filter(|told| !told.trim().is_empty());
    let mut lines: Vec<String> = lines.filter(|told| message.is_empty() || !known(told)).collect();
    lines.split_off(lines.len().saturating_sub(SAID))
}
