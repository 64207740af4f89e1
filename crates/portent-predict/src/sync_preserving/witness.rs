//! Closed sets as schedules: their events in the observed order.
//!
//! The least closed set of a goal leaves out whatever it does not need, from the first event on. A witness should rather
//! be close to the observed order: everything before some event is added, as late a one as possible of a few, as
//! long as the set can be closed again without the goal's events.

use super::history::{History, Ideal};
use portent_order::{Goal, Schedule};
use portent_trace::{EventId, Trace};

/// How far before the goal's first event the first cut is tried that is not right before it; then twice as far, and so on.
const BACK: usize = 64;

pub(super) struct Witnesses<'t> {
    trace: &'t Trace,
    history: &'t History,
}

impl<'t> Witnesses<'t> {
    pub(super) fn new(trace: &'t Trace, history: &'t History) -> Self {
        Witnesses { trace, history }
    }

    /// The schedule of a closed set that shows a goal.
    pub(super) fn schedule(&self, goal: &Goal, clock: &[u32]) -> Schedule {
        let trace = self.trace;
        let stops: Vec<EventId> = match goal {
            Goal::Race { first, second } => vec![*first, *second],
            Goal::Deadlock { waiting } => waiting.clone(),
            _ => Vec::new(),
        };
        let earliest = stops.iter().map(|event| event.index()).min().unwrap_or(0);
        let (mut cut, mut back) = (earliest, BACK);
        let mut ideal = Ideal::new(self.history.threads());
        loop {
            ideal.clock.clear();
            ideal.clock.extend(clock.iter().map(|&bound| bound.max(cut as u32)));
            let swallows = |clock: &[u32]| stops.iter().any(|&e| clock[trace.thread(e).index()] > e.index() as u32);
            if cut == 0 || (self.history.close(&mut ideal, swallows) && !swallows(&ideal.clock)) {
                break;
            }
            ideal = Ideal::new(self.history.threads());
            cut = earliest.saturating_sub(back);
            back *= 2;
        }
        let mut schedule = Schedule::as_observed(cut);
        let end = ideal.clock.iter().copied().max().unwrap_or(0).min(trace.len() as u32);
        for event in cut..end as usize {
            let thread = trace.thread(EventId::new(event));
            if (event as u32) < ideal.clock[thread.index()] {
                schedule.push(thread);
            }
        }
        schedule
    }
}
