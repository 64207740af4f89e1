//! Where a replay does something else than the run it is like.

use super::{Script, Wanted};
use crate::outcome::{End, NotFollowed};
use crate::run::Run;
use portent_trace::{InputEvent, InputOp, LocId, Names, ObjectClass};
use std::collections::HashMap;
use std::fmt;

impl Script<'_> {
    /// The events that the schedule asks for, as numbers of the recording's, in order; shorter if the recording has fewer.
    pub(super) fn expected(&self) -> Vec<u32> {
        let mut of_thread: HashMap<u32, Vec<u32>> = HashMap::new();
        for (number, event) in self.original.events.iter().enumerate() {
            of_thread.entry(event.thread.index() as u32).or_default().push(number as u32);
        }
        let mut done: HashMap<u32, usize> = HashMap::new();
        let mut expected = Vec::new();
        for &(thread, events) in &self.schedule.steps {
            let from = done.entry(thread).or_default();
            let all = of_thread.get(&thread).map_or(&[][..], Vec::as_slice);
            let to = from.saturating_add(events as usize).min(all.len());
            expected.extend_from_slice(&all[(*from).min(to)..to]);
            *from = to;
        }
        expected
    }

    /// Accesses of the schedule, which was followed, that had another value than in the recording: the last of them, as what
    /// matters is at its end.
    pub(super) fn other_values(&self, run: &Run) -> Vec<(u32, Option<i64>)> {
        const MOST: usize = 4096;
        let differs = |(&number, now): (&u32, &InputEvent)| {
            let before = &self.original.events[number as usize];
            (before.op.is_access() && before.value != now.value).then_some((number, now.value))
        };
        let expected = self.expected();
        let mut values: Vec<_> = expected.iter().zip(&run.events).filter_map(differs).collect();
        values.drain(..values.len().saturating_sub(MOST));
        values
    }

    /// Where the program did something else than in the recording, within the schedule.
    pub(super) fn divergence(&self, run: &Run) -> Option<Divergence> {
        let exact = self.wanted == Wanted::Same;
        let mut same = Same::new(&self.original.names, &run.names);
        let expected = self.expected();
        let differs = |(at, &number): (usize, &u32)| {
            let before = &self.original.events[number as usize];
            !run.events.get(at).is_some_and(|now| same.events(before, now, exact))
        };
        let at = expected.iter().enumerate().position(differs);
        // More than was recorded, where nothing else differs.
        let went_on = exact && run.events.len() > expected.len() && self.original.outcome.end != End::Signal(9);
        let event = at.or_else(|| went_on.then_some(expected.len()))?;
        let before = expected.get(event).map(|&number| &self.original.events[number as usize]);
        let now = run.events.get(event);
        let step = self.step_of(event);
        Some(Divergence {
            event,
            step,
            thread: before.or(now).map_or(0, |event| event.thread.index() as u32),
            expected: before.map(|event| self.original.did(event, exact)),
            came: now.map(|event| run.did(event, exact)),
            not_followed: run.outcome.not_followed.clone(),
        })
    }

    /// The step of the schedule that an event belongs to.
    fn step_of(&self, event: usize) -> usize {
        let mut done = 0;
        let ends = self.schedule.steps.iter().map(|(_, events)| {
            done += *events as usize;
            done
        });
        ends.take_while(|end| *end <= event).count()
    }
}

/// Where a replay did something else than the run it is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The number of the event, from 0.
    pub event: usize,
    /// The step of the schedule that it belongs to, from 0.
    pub step: usize,
    /// Whose turn it was.
    pub thread: u32,
    /// What the recorded run had there; `None` if it had ended.
    pub expected: Option<Did>,
    /// What the program did instead; `None` if it did nothing more.
    pub came: Option<Did>,
    /// Why the schedule could not be followed, where it could not.
    pub not_followed: Option<NotFollowed>,
}

/// An operation of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Did {
    /// Whose.
    pub thread: u32,
    /// What.
    pub op: InputOp,
    /// On what, if on anything.
    pub object: Option<String>,
    /// Where.
    pub place: String,
    /// What was read or written, where that is compared.
    pub value: Option<i64>,
    /// All of it in words.
    pub text: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Divergence { event, step, expected, came, not_followed, .. } = self;
        match (expected, came) {
            (Some(expected), Some(came)) => {
                write!(f, "event {event} (step {step}): expected {}; the program did {}", expected.text, came.text)?;
            }
            (Some(expected), None) => {
                write!(f, "event {event} (step {step}): expected {}; the program did nothing more", expected.text)?;
            }
            (None, Some(came)) => write!(f, "after all {event} recorded events the program went on: {}", came.text)?,
            (None, None) => write!(f, "event {event}")?,
        }
        match not_followed {
            Some(why) => write!(f, " ({})", why.sentence()),
            None => Ok(()),
        }
    }
}

impl Run {
    /// An event in words, with its value if that matters.
    pub(super) fn describe_with(&self, event: &InputEvent, value: bool) -> String {
        match event.value {
            Some(known) if value => format!("{} with value {known}", self.describe(event)),
            _ => self.describe(event),
        }
    }

    fn did(&self, event: &InputEvent, exact: bool) -> Did {
        let class = event.op.class();
        Did {
            thread: event.thread.index() as u32,
            op: event.op,
            object: (class != ObjectClass::None).then(|| self.names.name(class, event.object).to_string()),
            place: self.names.location(event.loc).to_string(),
            value: event.value.filter(|_| exact),
            text: self.describe_with(event, exact),
        }
    }
}

/// Whether things of two runs are the same, by their names, each looked at once.
struct Same<'a> {
    names: [&'a Names; 2],
    locations: HashMap<(LocId, LocId), bool>,
    objects: HashMap<(ObjectClass, u32, u32), bool>,
}

impl<'a> Same<'a> {
    fn new(before: &'a Names, now: &'a Names) -> Self {
        Self { names: [before, now], locations: HashMap::new(), objects: HashMap::new() }
    }

    /// Whether two events are the same: thread, operation and place, and if `exact` object and value.
    fn events(&mut self, before: &InputEvent, now: &InputEvent, exact: bool) -> bool {
        // An exchange that fails is a read where the other is an update: the same operation, with another outcome.
        let same_op = before.op == now.op || (!exact && before.op.is_access() && now.op.is_access());
        same_op
            && before.thread == now.thread
            && self.place(before.loc, now.loc)
            && (!exact || (before.value == now.value && self.object(before, now)))
    }

    fn place(&mut self, before: LocId, now: LocId) -> bool {
        let [a, b] = self.names;
        *self.locations.entry((before, now)).or_insert_with(|| a.location(before).is_place(&b.location(now)))
    }

    fn object(&mut self, before: &InputEvent, now: &InputEvent) -> bool {
        let class = before.op.class();
        let [a, b] = self.names;
        class == ObjectClass::None
            || *self
                .objects
                .entry((class, before.object, now.object))
                .or_insert_with(|| a.name(class, before.object) == b.name(class, now.object))
    }
}
