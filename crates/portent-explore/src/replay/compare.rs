//! Where a replay does something else than the run it is like.

use super::{Script, Wanted};
use crate::outcome::{End, NotFollowed};
use crate::run::Run;
use portent_trace::{InputEvent, LocId, Names, ObjectClass};
use std::collections::HashMap;

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

    /// Where the program did something else than in the recording, within the schedule.
    pub(super) fn divergence(&self, run: &Run) -> Option<String> {
        let exact = self.wanted == Wanted::Same;
        let mut same = Same::new(&self.original.names, &run.names);
        let expected = self.expected();
        for (at, &number) in expected.iter().enumerate() {
            let before = &self.original.events[number as usize];
            let Some(now) = run.events.get(at) else {
                let stopped = run.outcome.not_followed.as_ref().map(NotFollowed::sentence);
                let next = self.original.describe(before);
                return Some(
                    stopped.unwrap_or_else(|| format!("after {at} events the program had ended; expected {next}")),
                );
            };
            if !same.events(before, now, exact) {
                let (before, now) = (self.original.describe_with(before, exact), run.describe_with(now, exact));
                let why = run.outcome.not_followed.as_ref().map(|told| format!(" ({})", told.sentence()));
                return Some(format!(
                    "event {at}: expected {before}; the program did {now}{}",
                    why.unwrap_or_default()
                ));
            }
        }
        if exact && run.events.len() > expected.len() && self.original.outcome.end != End::Signal(9) {
            let more = &run.events[expected.len()];
            return Some(format!(
                "after all {} recorded events the program went on: {}",
                expected.len(),
                run.describe(more)
            ));
        }
        None
    }
}

impl Run {
    pub(super) fn describe_with(&self, event: &InputEvent, value: bool) -> String {
        match event.value {
            Some(known) if value => format!("{} with value {known}", self.describe(event)),
            _ => self.describe(event),
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
        *self.locations.entry((before, now)).or_insert_with(|| a.location(before) == b.location(now))
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
