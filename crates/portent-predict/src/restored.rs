//! What was found in a selection of a trace, told in events of the whole ([`Unshared`]).

use crate::prediction::Prediction;
use crate::unshared::Unshared;
use portent_order::{Goal, Schedule, Writer};
use portent_trace::{EventId, ThreadId};

impl Unshared<'_> {
    /// Tells a prediction of the selection in events of the whole trace.
    pub(crate) fn restore(&self, prediction: &mut Prediction) {
        let goals = prediction.findings.iter().map(|finding| finding.goal());
        let goals: Vec<Option<Goal>> = goals.collect();
        let schedules = prediction.findings.iter().filter_map(|finding| finding.witness.as_ref());
        let begins: Vec<usize> = schedules.map(|witness| witness.schedule.split().0).collect();
        let expansion = if begins.is_empty() { None } else { Some(Expansion::new(self, begins)) };
        for (finding, goal) in prediction.findings.iter_mut().zip(goals) {
            if let (Some(witness), Some(goal), Some(expansion)) = (&mut finding.witness, goal, &expansion) {
                witness.schedule = expansion.expand(&goal, &witness.schedule);
            }
            finding.bug.kernel_events_mut().into_iter().for_each(|event| *event = self.selection.original(*event));
        }
        prediction.open.iter_mut().for_each(|goal| *goal = self.goal(goal));
    }

    fn goal(&self, goal: &Goal) -> Goal {
        let at = |event: EventId| self.selection.original(event);
        let writer = |writer: Writer| match writer {
            Writer::Init => Writer::Init,
            Writer::Event(event) => Writer::Event(at(event)),
        };
        match *goal {
            Goal::Race { first, second } => Goal::Race { first: at(first), second: at(second) },
            Goal::Nondeterminism { read, challenger } => {
                Goal::Nondeterminism { read: at(read), challenger: writer(challenger) }
            }
            Goal::FinalValue { variable, challenger } => Goal::FinalValue { variable, challenger: at(challenger) },
            Goal::Atomicity { first, remote, second } => {
                Goal::Atomicity { first: at(first), remote: at(remote), second: at(second) }
            }
            Goal::Deadlock { ref waiting } => Goal::Deadlock { waiting: waiting.iter().map(|&e| at(e)).collect() },
            Goal::LostWakeup { pairing } => Goal::LostWakeup { pairing },
            Goal::Stuck { waiting } => Goal::Stuck { waiting: at(waiting) },
            Goal::LostUpdate { first, read, remote, second } => {
                Goal::LostUpdate { first: at(first), read: at(read), remote: at(remote), second: at(second) }
            }
        }
    }
}

/// Schedules of the selection as schedules of the whole trace: every access that was left out comes just before the next event of its
/// thread that was not.
struct Expansion<'a, 't> {
    unshared: &'a Unshared<'t>,
    /// The events of each thread that are left: which of its events in the whole trace each is.
    places: Vec<Vec<u32>>,
    /// The same events, as they are numbered in the selection.
    events: Vec<Vec<EventId>>,
    /// How many events each thread has in the whole trace.
    totals: Vec<u32>,
    /// Where schedules leave the observed order, by the number of events of the selection that come before.
    begins: Vec<(usize, Begin)>,
}

struct Begin {
    /// How many events of the whole trace come before.
    events: usize,
    /// How many events each thread has done, all and those that are left.
    done: Vec<u32>,
    left: Vec<usize>,
}

impl<'a, 't> Expansion<'a, 't> {
    fn new(unshared: &'a Unshared<'t>, mut begins: Vec<usize>) -> Self {
        let (whole, selection) = (unshared.whole, &unshared.selection);
        begins.sort_unstable();
        begins.dedup();
        let threads = whole.threads();
        let (mut places, mut events) = (vec![Vec::new(); threads], vec![Vec::new(); threads]);
        let mut made: Vec<(usize, Begin)> = Vec::with_capacity(begins.len());
        let mut wanted = begins.into_iter().peekable();
        let mut done = vec![0u32; threads];
        let mut kept = selection.originals().zip(selection.trace.events().map(|event| event.id)).peekable();
        let mut so_far = 0;
        for event in (0..=whole.len()).map(EventId::new) {
            let is_kept = kept.next_if(|(original, _)| *original == event);
            // What was left out just before the next event that is left has happened, too.
            if is_kept.is_some() || event.index() == whole.len() {
                while wanted.next_if(|&want| want <= so_far).is_some() {
                    let left = places.iter().map(Vec::len).collect();
                    made.push((so_far, Begin { events: event.index(), done: done.clone(), left }));
                }
            }
            if event.index() == whole.len() {
                break;
            }
            let t = whole.thread(event);
            if let Some((_, here)) = is_kept {
                places[t.index()].push(done[t.index()]);
                events[t.index()].push(here);
                so_far += 1;
            }
            done[t.index()] += 1;
        }
        Expansion { unshared, places, events, totals: done, begins: made }
    }

    fn expand(&self, goal: &Goal, schedule: &Schedule) -> Schedule {
        let selection = &self.unshared.selection;
        let (before, stretches) = schedule.split();
        let Ok(begin) = self.begins.binary_search_by_key(&before, |(at, _)| *at) else {
            return schedule.clone();
        };
        let Begin { events, done, left } = &self.begins[begin].1;
        let (mut done, mut left) = (done.clone(), left.clone());
        let mut expanded = Schedule::as_observed(*events);
        let mut go = |done: &mut Vec<u32>, t: usize, to: u32| {
            expanded.run(ThreadId::new(t), to.saturating_sub(done[t]));
            done[t] = done[t].max(to);
        };
        for stretch in stretches {
            let t = stretch.thread.index();
            left[t] += stretch.steps as usize;
            let Some(last) = left[t].checked_sub(1).and_then(|last| self.events[t].get(last)) else { continue };
            let original = selection.original(*last);
            // What came of the same input event goes along.
            let parts = selection.after_parts(self.unshared.whole, original).index() - original.index();
            go(&mut done, t, self.places[t][left[t] - 1] + parts as u32);
        }
        let next = |t: usize| self.places[t].get(left[t]).copied().unwrap_or(self.totals[t]);
        let threads = |events: &[EventId]| -> Vec<usize> {
            events.iter().map(|&event| selection.trace.thread(event).index()).collect()
        };
        // Who must be next at an event has done all before it.
        let stops = match goal {
            Goal::Race { first, second } => threads(&[*first, *second]),
            Goal::Deadlock { waiting } => threads(waiting),
            Goal::LostWakeup { .. } | Goal::Stuck { .. } | Goal::FinalValue { .. } => (0..self.totals.len()).collect(),
            Goal::Nondeterminism { .. } | Goal::Atomicity { .. } | Goal::LostUpdate { .. } => Vec::new(),
        };
        stops.into_iter().for_each(|t| go(&mut done, t, next(t)));
        expanded
    }
}
