//! A trace without some of its accesses: for engines, where somebody has shown that those accesses decide nothing.
//!
//! What is left has the same names, threads, locks and numbers of input events; only its kernel events are counted anew. So
//! whatever is found in it is told by its input events as if it had been found in the whole trace, and where kernel events
//! themselves are told, [`Selection::original`] says which they are there.
//!
//! Memory: what a trace takes, for the events that are left, and 8 bytes for each stretch of them.

use super::{Batch, Trace};
use crate::event::Op;
use crate::ids::{EventId, ThreadId, VarId};
use std::sync::Arc;

/// Some of the events of a trace, as a trace.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The events that are left.
    pub trace: Trace,
    /// Where a stretch of events that were neighbours begins: here, and in the whole trace.
    runs: Vec<(u32, u32)>,
    /// How many events the whole trace has.
    whole: u32,
}

impl Trace {
    /// The trace without the accesses of some variables, and, if that is said, without branches.
    ///
    /// Formulas are left out: they count the reads of a thread.
    pub fn without(&self, drops: &dyn Fn(VarId) -> bool, branches: bool) -> Selection {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let mut kept = 0u32;
        let mut neighbour = false;
        let whole = self.len();
        for at in 0..whole {
            let keeps = match self.batch.columns.op(at) {
                Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => !drops(x),
                Op::Branch => !branches,
                _ => true,
            };
            if keeps && !neighbour {
                runs.push((kept, at as u32));
            }
            neighbour = keeps;
            kept += u32::from(keeps);
        }
        let mut batch = Batch::default();
        batch.columns.reserve(kept as usize);
        let ends = runs.iter().skip(1).map(|run| run.0).chain([kept]);
        for (&(here, there), end) in runs.iter().zip(ends) {
            let there = there as usize..(there + (end - here)) as usize;
            batch.columns.meta.extend_from_slice(&self.batch.columns.meta[there.clone()]);
            batch.columns.object.extend_from_slice(&self.batch.columns.object[there.clone()]);
            batch.columns.loc.extend_from_slice(&self.batch.columns.loc[there.clone()]);
            let origins = self.batch.columns.origins.from(there.start);
            for ((at, from), origin) in (here as usize..).zip(there).zip(origins) {
                batch.columns.origins.push(at, origin, 1);
                batch.columns.values.push(at, self.batch.columns.values.get(from));
            }
        }
        let here = |event: EventId| find_here(&runs, event);
        batch.pairings = self.batch.pairings.clone();
        for pairing in &mut batch.pairings {
            // No wait is left out.
            for event in [&mut pairing.sleep, &mut pairing.notify, &mut pairing.wake] {
                *event = here(*event).unwrap_or(*event);
            }
        }
        batch.meanings.clone_from(&self.batch.meanings);
        batch.endings.clone_from(&self.batch.endings);
        batch.counts.clone_from(&self.batch.counts);
        let (names, layout) = (Arc::clone(&self.names), Arc::clone(&self.layout));
        let mut trace = Trace::assemble(batch, names, layout, self.inputs, self.tokens);
        trace.stacks = Arc::clone(&self.stacks);
        trace.functions_are_declared = self.functions_are_declared;
        trace.pending.clone_from(&self.pending);
        Selection { trace, runs, whole: whole as u32 }
    }
}

/// The number that an event of the whole trace has among those that are left.
fn find_here(runs: &[(u32, u32)], event: EventId) -> Option<EventId> {
    let run = runs.partition_point(|run| run.1 <= event.0).checked_sub(1)?;
    let (here, there) = runs[run];
    let at = here + (event.0 - there);
    runs.get(run + 1).is_none_or(|next| at < next.0).then_some(EventId(at))
}

impl Selection {
    /// Where an event is in the whole trace.
    pub fn original(&self, event: EventId) -> EventId {
        let after = self.runs.partition_point(|run| run.0 <= event.0);
        after.checked_sub(1).map_or(event, |run| EventId(self.runs[run].1 + (event.0 - self.runs[run].0)))
    }
    /// The event of the selection that an event of the whole trace is, if it was not left out.
    pub fn find(&self, original: EventId) -> Option<EventId> {
        find_here(&self.runs, original).filter(|event| event.index() < self.trace.len())
    }
    /// Every event that was kept, in order: where it is in the whole trace.
    pub fn originals(&self) -> impl Iterator<Item = EventId> + '_ {
        let ends = self.runs.iter().skip(1).map(|run| run.0).chain([self.trace.len() as u32]);
        self.runs.iter().zip(ends).flat_map(|(&(here, there), end)| (there..there + (end - here)).map(EventId))
    }
    /// How many events of the whole trace were left out.
    pub fn left_out(&self) -> usize {
        self.whole as usize - self.trace.len()
    }

    /// The input events that have no kernel event here, in order, with their threads: those that never had one, and those of which
    /// nothing was kept. `whole` is the trace that this is a selection of.
    pub fn skipped_inputs<'a>(&'a self, whole: &'a Trace) -> impl Iterator<Item = (u32, ThreadId)> + 'a {
        let mut never = whole.skipped_inputs().iter().copied().peekable();
        let mut dropped = self.dropped_inputs(whole).peekable();
        std::iter::from_fn(move || match (never.peek(), dropped.peek()) {
            (Some(one), Some(other)) if other.0 < one.0 => dropped.next(),
            (Some(_), _) => never.next(),
            (None, _) => dropped.next(),
        })
    }

    fn dropped_inputs<'a>(&'a self, whole: &'a Trace) -> impl Iterator<Item = (u32, ThreadId)> + 'a {
        let starts = self.runs.iter().map(|run| run.1).chain([self.whole]);
        let ends = std::iter::once(0).chain(self.runs.iter().enumerate().map(|(i, &(here, there))| {
            let end = self.runs.get(i + 1).map_or(self.trace.len() as u32, |next| next.0);
            there + (end - here)
        }));
        // Of an input event of which a part was kept, nothing is dropped.
        let kept_before = |gap: u32| gap.checked_sub(1).map(|at| whole.input_index(EventId(at)));
        let gaps = ends.zip(starts).filter(|(from, to)| from < to);
        gaps.flat_map(move |(from, to)| {
            let before = kept_before(from);
            let after = (to < self.whole).then(|| whole.input_index(EventId(to)));
            let mut last = None;
            (from..to).map(EventId).zip(whole.input_indices(EventId(from))).filter_map(move |(event, input)| {
                let is_new = last.replace(input) != Some(input);
                (is_new && Some(input) != before && Some(input) != after).then(|| (input, whole.thread(event)))
            })
        })
    }

    /// The event after those that came of the same input event as this one and were left out: an event that goes along with another
    /// is done with it.
    pub fn after_parts(&self, whole: &Trace, original: EventId) -> EventId {
        let input = whole.input_index(original);
        let mut next = EventId(original.0 + 1);
        while next.0 < self.whole
            && whole.thread(next) == whole.thread(original)
            && whole.input_index(next) == input
            && find_here(&self.runs, next).is_none()
        {
            next.0 += 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    #[test]
    fn what_is_left_knows_where_it_was() {
        let text = "T1|fork(T2)|1\nT1|w(p)|2|1\nT1|w(x)|3|2\nT2|r(x)|4|2\nT2|r(q)|5\nT1|acq(l)|6\nT1|acq(l)|7\nT1|w(p)|8|-7\nT1|rel(l)|9\n";
        let whole = Trace::from_std(text).unwrap();
        let private = |x: VarId| whole.variable_name(x) != "x";
        let selection = whole.without(&private, false);
        let trace = &selection.trace;
        let ops: Vec<&str> = trace.events().map(|event: Event| event.op.name()).collect();
        assert_eq!(ops.len(), whole.len() - 3);
        assert_eq!(selection.left_out(), 3);
        for (event, original) in trace.events().zip(selection.originals()) {
            assert_eq!(selection.original(event.id), original);
            assert_eq!(selection.find(original), Some(event.id));
            assert_eq!(whole.event(original), Event { id: original, ..event });
            assert_eq!(whole.input_index(original), trace.input_index(event.id));
        }
        let dropped = whole.events().filter(|event| event.op.variable().is_some_and(private));
        assert!(dropped.into_iter().all(|event| selection.find(event.id).is_none()));
        let skipped: Vec<u32> = selection.skipped_inputs(&whole).map(|(input, _)| input).collect();
        assert_eq!(
            skipped,
            [1, 4, 6, 7, 8],
            "two private accesses, an inner acquire, another access, the inner release"
        );
    }

    #[test]
    fn an_input_event_of_which_a_part_is_left_is_not_skipped() {
        // A child's first event comes after a receive, which is part of it.
        let whole = Trace::from_std("T1|fork(T2)|1\nT2|w(p)|2\nT2|w(p)|3\nT1|w(x)|4\nT2|w(x)|5\n").unwrap();
        let selection = whole.without(&|x| whole.variable_name(x) == "p", false);
        let skipped: Vec<u32> = selection.skipped_inputs(&whole).map(|(input, _)| input).collect();
        assert_eq!(skipped, [2]);
        let receive = EventId(1);
        assert_eq!(whole.input_index(receive), 1);
        assert_eq!(selection.after_parts(&whole, receive), EventId(3), "the write goes along with it");
    }
}
