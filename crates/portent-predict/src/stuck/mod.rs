//! The pass that looks for stuck threads: deadlocks of every kind that is neither a cycle of locks nor a lost wake-up. A thread waits for
//! another to end under a lock that this one needs, at a semaphore that nobody posts any more, at a barrier that somebody cannot come to.
//!
//! Where the program is stuck depends on where each thread is, up to the end of the trace. So a trace that fits one window is asked as a whole;
//! of a longer one, its end, and then the whole, if that is not too long. What stays open is said.
//!
//! One deadlock is told once: by the threads of it that wait for each other and for nobody else, whoever else waits for them.

mod candidates;

use crate::asking::{Flags, Group, Key};
use crate::bug::{BugKind, Form};
use crate::causal_past::PATIENCE;
use crate::circle::{Circle, circle};
use crate::examination::{Examination, Pass};
use crate::request::Options;
use crate::undecided::{Incomplete, Limit, Status, Why};
use portent_order::engine::{Engine, View};
use portent_order::{Goal, Schedule, Verdict};
use portent_trace::{EventId, LocId, Trace};
use rustc_hash::FxHashMap;

/// Places that are asked of a trace at most: each costs as much as the trace is long.
const PLACES: usize = 64;

/// Looks for stuck threads.
pub(crate) struct Stuck;

/// Candidates at one place.
struct Place {
    waiting: Vec<EventId>,
    state: State,
}

enum State {
    Open,
    /// A deadlock was found, of this form or another.
    Found,
    Refuted,
    Undecided(Limit),
}

impl<'a, 't> Pass<'a, 't> for Stuck {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        if !examination.options.stuck || !examination.wants(BugKind::Deadlock) || examination.stop.why().is_some() {
            return;
        }
        let (trace, options) = (examination.facts.trace, examination.options);
        let mut places: FxHashMap<LocId, Vec<EventId>> = FxHashMap::default();
        for event in candidates::candidates(examination.facts) {
            places.entry(trace.event(event).loc).or_default().push(event);
        }
        if places.is_empty() {
            return;
        }
        let new = |waiting| Place { waiting, state: State::Open };
        let mut places: Vec<Place> = places.into_values().map(new).collect();
        places.sort_by_key(|place| place.waiting[0]);
        let window = options.window.max(2).min(trace.len());
        let whole = examination.is_asked_as_a_whole() || examination.fits();
        for len in [window, trace.len()].into_iter().filter(|&len| len == window || whole) {
            if places.iter().any(|place| !matches!(place.state, State::Found | State::Refuted)) {
                ask(examination, &mut places, len);
            }
            if len == trace.len() {
                break;
            }
        }
        tell(examination, &places);
    }
}

/// Asks the last events of the trace, so many, about what is open.
fn ask(examination: &mut Examination<'_, '_>, places: &mut [Place], len: usize) {
    let (facts, trace) = (examination.facts, examination.facts.trace);
    let first = trace.len() - len;
    let mut views = View::spans(trace, examination.options.model, std::iter::once(first..trace.len()));
    let Some(view) = views.next() else { return };
    // One engine for all: they share what it learns about who can go on.
    let mut engine = Engine::new(&view);
    let mut found: Vec<(Key, Group)> = Vec::new();
    let mut effort = examination.effort();
    if len > Options::WINDOW {
        // Whether everybody else must wait, too, takes long to find out.
        effort.conflicts /= 40;
    }
    let open = places.iter_mut().filter(|place| !matches!(place.state, State::Found | State::Refuted));
    for place in open.take(PLACES) {
        let inside = place.waiting.iter().filter(|event| event.index() >= first);
        let mut left = place.waiting.len() - inside.clone().count();
        let mut limit = Limit::Reach;
        for &waiting in inside {
            if examination.stop.why().is_some() {
                examination.prediction.stats.tiers.add(&engine.tiers());
                keep(examination, found);
                return;
            }
            if left >= PATIENCE {
                limit = Limit::Tries;
                left += 1;
                break;
            }
            match engine.decide(&Goal::Stuck { waiting }, effort) {
                Verdict::Feasible(schedule) => {
                    place.state = State::Found;
                    found.extend(as_group(facts.trace, &circle(facts, &schedule, waiting), schedule));
                    break;
                }
                Verdict::Infeasible if len == trace.len() => {}
                Verdict::Infeasible => left += 1,
                Verdict::Unknown(why) => {
                    left += 1;
                    limit = Limit::of(why);
                }
            }
        }
        if !matches!(place.state, State::Found) {
            place.state = if left == 0 { State::Refuted } else { State::Undecided(limit) };
        }
    }
    examination.prediction.stats.tiers.add(&engine.tiers());
    keep(examination, found);
}

/// A deadlock as a finding, unless it is one of another form.
fn as_group(trace: &Trace, circle: &Circle, schedule: Schedule) -> Option<(Key, Group)> {
    let &waiting = circle.waits.first().filter(|_| !circle.is_another_form)?;
    let mut at: Vec<u64> = circle.waits.iter().map(|&event| Key::at(trace, event)).collect();
    at.sort_unstable();
    at.dedup();
    let group = Group::new(Goal::Stuck { waiting }, Flags::default(), Some(schedule));
    // Other ways to the same places are not asked about.
    Some((Key::of_places(Form::Stuck, at), Group { exact: false, ..group }))
}

/// Takes in deadlocks, each once.
fn keep(examination: &mut Examination<'_, '_>, mut found: Vec<(Key, Group)>) {
    let known = examination.found();
    found.retain(|(key, _)| !known.contains(key));
    examination.adopt_groups(found);
}

/// Says what is not known.
fn tell(examination: &mut Examination<'_, '_>, places: &[Place]) {
    let open = |place: &&Place| matches!(place.state, State::Open);
    let mut entries = Vec::new();
    let count = places.iter().filter(open).count() as u64;
    if count > 0 {
        let why = examination.stop.why().unwrap_or(Why::Budget);
        let what = "places where threads could wait for ever that were not examined".to_owned();
        entries.push(Incomplete::many(BugKind::Deadlock, Status::NotExamined, count, why, what));
    }
    let limits = places.iter().filter_map(|place| match place.state {
        State::Undecided(limit) => Some(limit),
        _ => None,
    });
    let limits: Vec<Limit> = limits.collect();
    if let Some(&limit) = limits.first() {
        let what = "places where threads could wait for ever, neither shown nor refuted".to_owned();
        let count = limits.len() as u64;
        entries.push(Incomplete::many(BugKind::Deadlock, Status::Undecided, count, Why::Window(limit), what));
    }
    let entries = entries.into_iter().map(|entry| Incomplete { groups: true, ..entry });
    examination.prediction.incomplete.extend(entries);
}
