//! The few events of a finding that explain it, in the order of the run that breaks: a line each, the whole never long.
//!
//! Left of each line, `…` says that something is left out before it, and `⇄` that another thread takes over there.

use super::Look;
use super::paint::{Ink, paint};
use crate::deciding::verb;
use crate::lookup::GOES_ON;
use crate::moments::Moment;
use crate::place;
use crate::relevance::Relevance;
use crate::report::{At, Report, Spot, Story};
use crate::scene::State;
use crate::words::{cut, function, line, short};
use portent_predict::{Failure, Harm, Role};
use portent_trace::is_user_file;

/// Lines for a failure, and for what was predicted.
const FAILURE: usize = 8;
const PREDICTED: usize = 12;
/// Threads of a deadlock that are told one by one.
const STUCK: usize = 4;
/// Widest columns.
const NAME: usize = 12;
const FUNCTION: usize = 24;
const PLACE: usize = 28;
/// Source is shown where so much room is left for it.
const SOURCE: usize = 14;
/// What is done pushes the source out if it is wider.
const WHAT: usize = 48;

/// One line, before it has a width.
struct Line {
    thread: String,
    at: Option<At>,
    what: String,
    note: String,
    /// Whether it is an event that the finding is about.
    own: bool,
    /// Whether something is left out before it.
    gap: bool,
}

/// The events that explain a finding.
pub(crate) fn lines(report: &Report, story: &Story, look: &Look) -> String {
    let orders = report.orders(story);
    let told = match story.finding.bug.failure() {
        Some(failure) => of_failure(story, failure, orders.observed),
        None => of_prediction(if orders.breaking.is_empty() { orders.observed } else { orders.breaking }),
    };
    // One event on its own tells nothing that the headline has not told.
    if told.len() > 1 { drawn(report, &told, look) } else { String::new() }
}

fn of_failure(story: &Story, failure: &Failure, moments: Vec<Moment>) -> Vec<Line> {
    let endings = endings(story, failure);
    let failing = if endings.is_empty() { failure.at.event } else { None };
    let decisive = failure.decisive.as_ref().and_then(|deciding| deciding.operation.event);
    let mut lines: Vec<Line> = few(moments, FAILURE.saturating_sub(endings.len()))
        .into_iter()
        .map(|moment| {
            let number = Some(moment.number);
            let spot = story.places.iter().find(|spot| spot.event == number);
            let note = match spot.and_then(|spot| verb(failure.harm, spot.role)) {
                _ if number == failing => format!("← {}", story.title()),
                _ if number == decisive => "← decides".into(),
                Some(verb) => format!("← {verb}"),
                None => String::new(),
            };
            let told = Line { note, ..of_moment(moment) };
            // Where a place has a stack, that knows the user's line.
            let at = spot.filter(|spot| !spot.stack.is_empty() && endings.is_empty()).and_then(place::of_spot);
            Line { at: at.or(told.at), ..told }
        })
        .collect();
    lines.extend(endings);
    lines
}

/// What is no event of the run, but its end: the thread that fails, or the threads that wait.
fn endings(story: &Story, failure: &Failure) -> Vec<Line> {
    let ending = |spot: &Spot, what: String| Line {
        thread: spot.thread.clone().unwrap_or_default(),
        at: place::of_spot(spot),
        what,
        note: String::new(),
        own: true,
        gap: false,
    };
    let waits = |spot: &Spot| match spot.object.as_str() {
        "" => ending(spot, "waits for ever".into()),
        object => ending(spot, format!("waits for {object}")),
    };
    let what = match failure.harm {
        Harm::Hang if story.places.iter().all(|spot| spot.role != Role::Waiting) => "has not ended in time",
        Harm::DeadlockReached | Harm::Hang => {
            let stuck = story.places.iter().filter(|spot| matches!(spot.role, Role::Failure | Role::Waiting));
            return stuck.take(STUCK).map(waits).collect();
        }
        // What fails is an event of the run, if it was recorded.
        Harm::UseAfterFree | Harm::DoubleFree | Harm::BadFree | Harm::DestroyedInUse | Harm::ClosedInUse
            if failure.at.kernel.is_some() =>
        {
            return Vec::new();
        }
        Harm::Assertion => "the assertion fails",
        Harm::Exception => "throws what nobody catches",
        Harm::Crash => "crashes",
        Harm::Abort => "aborts",
        Harm::Exit => "exits",
        // Where a program prints is not known.
        Harm::Output => return Vec::new(),
        Harm::UseAfterFree | Harm::DoubleFree | Harm::BadFree | Harm::DestroyedInUse | Harm::ClosedInUse => {
            story.title()
        }
    };
    story.places.first().map(|spot| ending(spot, what.to_owned())).into_iter().collect()
}

fn of_prediction(moments: Vec<Moment>) -> Vec<Line> {
    let at_once = moments.iter().filter(|moment| moment.state == State::Next).count() > 1;
    let note = |moment: &Moment| if at_once && moment.state == State::Next { "← at once" } else { "" };
    few(telling(moments), PREDICTED)
        .into_iter()
        .map(|moment| Line { note: note(&moment).into(), ..of_moment(moment) })
        .collect()
}

fn of_moment(moment: Moment) -> Line {
    // Addresses tell nobody anything.
    let value = moment.value.filter(|value| value.is_telling() && moment.deed != GOES_ON);
    let value = value.map_or_else(String::new, |value| format!(" = {value}"));
    let what = match moment.state {
        State::Next => format!("is about to {}{value}", moment.what),
        State::Done | State::Waits | State::Never => format!("{}{value}", moment.deed),
    };
    let own = matches!(moment.relevance, Relevance::Goal(_));
    Line { thread: moment.thread, at: Some(moment.at), what, note: String::new(), own, gap: moment.folded > 0 }
}

/// Without what says nothing: entering and leaving blocks, threads started by one that has no part in the finding, and what is in
/// libraries and nowhere in the user's code.
fn telling(moments: Vec<Moment>) -> Vec<Moment> {
    let is_goal = |moment: &Moment| matches!(moment.relevance, Relevance::Goal(_));
    let own: Vec<String> = moments.iter().filter(|moment| is_goal(moment)).map(|m| m.thread.clone()).collect();
    let mut kept: Vec<Moment> = Vec::with_capacity(moments.len());
    let mut folded = 0;
    for moment in moments {
        let block = moment.what.starts_with("begin block") || moment.what.starts_with("end block");
        let fork = moment.relevance == Relevance::Fork && !own.contains(&moment.thread);
        // What a library does on its own account, before or after the user's code.
        let foreign =
            moment.at.file.as_deref().is_some_and(|file| !is_user_file(file)) || is_librarys_data(&moment.what);
        if !is_goal(&moment) && (block || fork || foreign) {
            folded += moment.folded + u64::from(fork || foreign);
        } else {
            kept.push(Moment { folded: moment.folded + std::mem::take(&mut folded), ..moment });
        }
    }
    kept
}

/// Whether a text is about data that a library keeps to itself, which has no name.
fn is_librarys_data(text: &str) -> bool {
    text.split_once(" data of ").is_some_and(|(_, name)| name.contains(".so"))
}

/// At most so many moments: those that matter least, and of these the earliest, are left out.
fn few(mut moments: Vec<Moment>, most: usize) -> Vec<Moment> {
    let weight = |moment: &Moment| match moment.relevance {
        Relevance::Goal(_) => 0,
        Relevance::Writer | Relevance::Branch => 1,
        Relevance::Lock => 2,
        Relevance::Switch | Relevance::Meeting => 3,
        Relevance::Fork => 4,
    };
    while moments.len() > most.max(1) {
        let heaviest = moments.iter().map(weight).max();
        let Some(at) = moments.iter().position(|moment| Some(weight(moment)) == heaviest) else { break };
        moments.remove(at);
        if let Some(next) = moments.get_mut(at) {
            next.folded += 1;
        }
    }
    moments
}

fn drawn(report: &Report, lines: &[Line], look: &Look) -> String {
    let sources = &report.settings.sources;
    let rows: Vec<[String; 3]> = lines
        .iter()
        .map(|told| {
            let at = told.at.as_ref();
            let called = at.and_then(|at| at.function.as_deref()).map(function).unwrap_or_default();
            let place = at.map(|at| place::written(sources, at)).unwrap_or_default();
            // A path loses its directories before it loses anything else.
            let place = match place.rsplit_once('/') {
                Some((_, base)) if place.chars().count() > PLACE => base.to_owned(),
                _ => place,
            };
            [short(&line(&told.thread), NAME), short(&called, FUNCTION), short(&place, PLACE)]
        })
        .collect();
    let widths = [0, 1, 2].map(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0));
    let mut threads: Vec<&str> = Vec::new();
    // Source stands in a column of its own, unless something long would push it out.
    let told_width = |told: &Line| {
        let note = if told.note.is_empty() { 0 } else { told.note.chars().count() + 2 };
        line(&told.what).chars().count() + note
    };
    let column = lines.iter().map(told_width).max().unwrap_or(0).min(WHAT);
    let mut text = String::new();
    for (i, (told, row)) in lines.iter().zip(&rows).enumerate() {
        if !threads.contains(&told.thread.as_str()) {
            threads.push(&told.thread);
        }
        let number = threads.iter().position(|name| *name == told.thread).unwrap_or(0);
        let gap = if told.gap && i > 0 { "…" } else { " " };
        let switched = if i > 0 && lines[i - 1].thread != told.thread { "⇄" } else { " " };
        let mut used = 5;
        let mut shown = format!("  {gap}{switched} ");
        for (column, ink) in [(0, Ink::Thread(number)), (1, Ink::Plain), (2, Ink::Dim)] {
            if widths[column] > 0 {
                let cell = format!("{:<width$}  ", row[column], width = widths[column]);
                used += cell.chars().count();
                shown.push_str(&paint(look.colours, ink, &cell));
            }
        }
        let room = look.width.min(Look::WIDEST).saturating_sub(used).max(24);
        let what = cut(&line(&told.what), room);
        let mut taken = what.chars().count();
        shown.push_str(&paint(look.colours, if told.own { Ink::Goal } else { Ink::Plain }, &what));
        if !told.note.is_empty() && taken + told.note.chars().count() + 2 <= room {
            taken += told.note.chars().count() + 2;
            shown.push_str(&format!("  {}", paint(look.colours, Ink::Label, &told.note)));
        }
        let source = told.at.as_ref().and_then(|at| sources.line(at.file.as_deref()?, at.line?)).unwrap_or_default();
        let source = line(source.trim());
        let padding = column.saturating_sub(taken) + 2;
        let room = room.saturating_sub(taken + padding + 2);
        if !source.is_empty() && room >= SOURCE {
            let source = format!("{}│ {}", " ".repeat(padding), cut(&source, room));
            shown.push_str(&paint(look.colours, Ink::Dim, &source));
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}
