//! What must have happened before any position of any thread, kept for looking up: vector clocks of the whole trace.
//!
//! A thread's past changes only where something arrives from elsewhere, so only those moments are kept, a row of positions
//! each. They are exact where they say that one event comes after another, at any distance: what they refute is refuted.

use super::past::Past;
use portent_order::Model;
use portent_trace::Trace;

/// The changes of one thread's past.
#[derive(Default)]
struct Changes {
    /// Positions at which something arrived, ascending.
    at: Vec<u32>,
    /// A row of positions for each.
    rows: Vec<u32>,
}

/// The past of every position of every thread.
pub(crate) struct Clocks {
    width: usize,
    threads: Vec<Changes>,
}

impl Clocks {
    /// The clocks of must-order, in `reads` with the writers of kept reads; `None` if told to stop.
    pub(crate) fn new(trace: &Trace, model: Model, stop: &dyn Fn() -> bool) -> Option<Self> {
        Self::along(trace, Past::new(trace, model), stop)
    }
    /// The same, where a wait also comes after the post that let it through: what can be taken in observed order.
    pub(crate) fn as_served(trace: &Trace, model: Model, stop: &dyn Fn() -> bool) -> Option<Self> {
        Self::along(trace, Past::as_served(trace, model), stop)
    }

    fn along(trace: &Trace, mut past: Past<'_>, stop: &dyn Fn() -> bool) -> Option<Self> {
        let width = trace.threads();
        let mut threads: Vec<Changes> = (0..width).map(|_| Changes::default()).collect();
        for event in trace.events() {
            if event.id.index().is_multiple_of(1 << 16) && stop() {
                return None;
            }
            let t = event.thread.index();
            if past.arrive(event) {
                threads[t].at.push(past.position(t));
                threads[t].rows.extend_from_slice(past.now(t));
            }
            past.leave(event);
        }
        Some(Clocks { width, threads })
    }

    /// What must have happened before the first `count` events of a thread have; its own entry means nothing.
    #[inline]
    fn row(&self, thread: usize, count: u32) -> Option<&[u32]> {
        let changes = &self.threads[thread];
        let last = changes.at.partition_point(|&at| at < count).checked_sub(1)?;
        Some(&changes.rows[last * self.width..][..self.width])
    }

    /// How many events of `other` must have happened before the first `count` events of `thread` have.
    #[inline]
    pub(crate) fn past(&self, thread: usize, count: u32, other: usize) -> u32 {
        self.row(thread, count).map_or(0, |row| row[other])
    }

    /// Adds the first `count` events of a thread and their past to a cut.
    pub(crate) fn join(&self, cut: &mut [u32], thread: usize, count: u32) {
        if count > cut[thread] {
            let own = count;
            if let Some(row) = self.row(thread, count) {
                cut.iter_mut()
                    .zip(row)
                    .enumerate()
                    .filter(|(t, _)| *t != thread)
                    .for_each(|(_, (a, b))| *a = (*a).max(*b));
            }
            cut[thread] = own;
        }
    }

    /// How many events of `thread` can happen before event number `position` of `other` has.
    pub(crate) fn without(&self, thread: usize, other: usize, position: u32) -> u32 {
        let changes = &self.threads[thread];
        let (mut low, mut high) = (0, changes.at.len());
        while low < high {
            let middle = (low + high) / 2;
            if changes.rows[middle * self.width + other] > position {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        changes.at.get(low).copied().unwrap_or(u32::MAX)
    }
}
