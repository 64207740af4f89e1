//! Happens-before within windows, and between given pairs of events.

use super::Clocks;
use portent_trace::{EventId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A stretch of the trace with the clock of every event, stored once per change.
struct Stretch {
    first: usize,
    /// For each event, which of the clocks is its own.
    clock: Vec<u32>,
    clocks: Vec<Box<[u32]>>,
}

/// Happens-before within a window.
#[derive(Clone, Default)]
pub(crate) struct Hindsight {
    stretches: Vec<Arc<Stretch>>,
}

impl Hindsight {
    fn clock(&self, event: EventId) -> Option<&[u32]> {
        let at = self.stretches.partition_point(|s| s.first <= event.index()).checked_sub(1)?;
        let stretch = &self.stretches[at];
        Some(&stretch.clocks[*stretch.clock.get(event.index() - stretch.first)? as usize])
    }
    /// Whether the earlier of two events of the window happens before the later one.
    pub(crate) fn ordered(&self, trace: &Trace, first: EventId, second: EventId) -> bool {
        let t = trace.thread(first).index();
        match (self.clock(first), self.clock(second)) {
            (Some(a), Some(b)) => a[t] <= b[t],
            _ => false,
        }
    }
}

/// Makes the hindsight of one window after the other.
pub(crate) struct Rear<'t> {
    trace: &'t Trace,
    clocks: Clocks,
    done: usize,
    kept: Hindsight,
}

impl<'t> Rear<'t> {
    pub(crate) fn new(trace: &'t Trace) -> Self {
        Rear { trace, clocks: Clocks::new(trace, false), done: 0, kept: Hindsight::default() }
    }
    /// The hindsight of the window `span`; spans must not go back.
    pub(crate) fn window(&mut self, span: std::ops::Range<usize>) -> Hindsight {
        let trace = self.trace;
        let mut stretch = Stretch { first: self.done, clock: Vec::new(), clocks: Vec::new() };
        let mut current: Vec<Option<u32>> = vec![None; trace.threads()];
        for event in (self.done..span.end).map(EventId::new) {
            let thread = trace.thread(event);
            if self.clocks.arrive(trace, event) {
                current[thread.index()] = None;
            }
            let slot = *current[thread.index()].get_or_insert_with(|| {
                stretch.clocks.push(self.clocks.of(thread).into());
                stretch.clocks.len() as u32 - 1
            });
            stretch.clock.push(slot);
            if self.clocks.leave(trace, event) {
                current[thread.index()] = None;
            }
        }
        self.done = self.done.max(span.end);
        self.kept.stretches.retain(|s| s.first + s.clock.len() > span.start);
        self.kept.stretches.push(Arc::new(stretch));
        self.kept.clone()
    }
}

/// Which of the pairs happens-before orders, the earlier event first, in one pass over the trace.
pub(crate) fn ordered(trace: &Trace, pairs: &[(EventId, EventId)]) -> FxHashSet<(EventId, EventId)> {
    let Some(end) = pairs.iter().map(|(_, second)| second.index()).max() else { return FxHashSet::default() };
    let mut seconds: FxHashMap<EventId, Vec<EventId>> = FxHashMap::default();
    // The time of each first event in its own thread.
    let mut times: FxHashMap<EventId, u32> = FxHashMap::default();
    for &(first, second) in pairs {
        seconds.entry(second).or_default().push(first);
        times.insert(first, 0);
    }
    let mut ordered = FxHashSet::default();
    let mut clocks = Clocks::new(trace, false);
    for event in (0..=end).map(EventId::new) {
        clocks.arrive(trace, event);
        let thread = trace.thread(event);
        if let Some(time) = times.get_mut(&event) {
            *time = clocks.of(thread)[thread.index()];
        }
        for &first in seconds.get(&event).into_iter().flatten() {
            if times[&first] <= clocks.of(thread)[trace.thread(first).index()] {
                ordered.insert((first, event));
            }
        }
        clocks.leave(trace, event);
    }
    ordered
}
