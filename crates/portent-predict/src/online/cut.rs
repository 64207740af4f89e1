//! A segment of a run as a trace of its own: what leads to its beginning, then its events.
//!
//! Everything before the segment stays as it was observed. So the events that lead to its beginning come one after the other, and all
//! of them before the segment's own: tokens order them. What an event of the segment waits for that happened before, it need not
//! wait for: such an event becomes one that does nothing, so that events are counted as in the run.
//!
//! A reordering of such a trace, without what leads there, is one of the run that begins with everything before the segment.

use super::carried::{Carried, Kept};
use portent_trace::{
    EventList, FunctionBlocks, InputEvent, InputOp, Names, ObjectClass, Problem, StackColumn, StackId, ThreadId, Trace,
    TraceError,
};
use rustc_hash::FxHashSet;

/// A segment, as a trace.
pub(super) struct Cut {
    pub(super) trace: Trace,
    /// Who does each of the events that lead to its beginning.
    pub(super) lead: Vec<ThreadId>,
}

/// Makes a trace of a segment.
pub(super) fn cut(
    names: &Names,
    carried: &Carried,
    segment: &[Kept],
    functions: FunctionBlocks,
) -> Result<Cut, TraceError> {
    let mut names = names.clone();
    let (mut events, mut lead) = (Vec::with_capacity(segment.len()), Vec::new());
    if carried.events > 0 {
        let mut parts = Parts::of(carried, segment, &mut names).map_err(TraceError::whole)?;
        events.append(&mut parts.lead);
        lead = events.iter().map(|(event, _): &(InputEvent, _)| event.thread).collect();
        events.extend(segment.iter().map(|kept| (parts.within(kept.event), kept.stack)));
    } else {
        events.extend(segment.iter().map(|kept| (kept.event, kept.stack)));
    }
    let mut stacks = StackColumn::default();
    for (at, (_, stack)) in events.iter().enumerate() {
        if let Some(stack) = *stack {
            stacks.set(at, stack);
        }
    }
    let events: Vec<InputEvent> = events.into_iter().map(|(event, _)| event).collect();
    let mut source = EventList::new(names, events).with_stacks(&stacks);
    let trace = Trace::from_input_watched(&mut source, functions, |_| ())?;
    Ok(Cut { trace, lead })
}

/// What is needed to make events of a segment independent of what was before.
struct Parts {
    lead: Vec<(InputEvent, Option<StackId>)>,
    /// A token that nobody ever sends, or receives.
    nothing: u32,
    /// Threads that the segment starts, or has events of.
    present: FxHashSet<ThreadId>,
    /// Who leaves a round of a barrier that is over.
    leaving: FxHashSet<(ThreadId, u32)>,
    sent: FxHashSet<u32>,
    counted: FxHashSet<u32>,
    notified: FxHashSet<u32>,
    finished: FxHashSet<u32>,
}

impl Parts {
    fn of(carried: &Carried, segment: &[Kept], names: &mut Names) -> Result<Parts, Problem> {
        let nothing = names.intern(ObjectClass::Token, b"before this segment")?;
        let mut present = FxHashSet::default();
        // Who is there from the beginning.
        let mut from_before: Vec<ThreadId> = Vec::new();
        for Kept { event, .. } in segment {
            if present.insert(event.thread) {
                from_before.push(event.thread);
            }
            if event.op == InputOp::Fork {
                present.insert(ThreadId::new(event.object as usize));
            }
        }
        let mut lead = Vec::new();
        let mut links = 0u32;
        let mut link = |names: &mut Names| -> Result<u32, Problem> {
            links += 1;
            names.intern(ObjectClass::Token, format!("before this segment, {links}").as_bytes())
        };
        let along =
            |thread, op, object, like: InputEvent| (InputEvent { thread, op, object, value: None, ..like }, None);
        let mut last: Option<InputEvent> = None;
        for Kept { event, stack } in carried.events_that_lead_here() {
            if let Some(last) = last.filter(|last| last.thread != event.thread) {
                let token = link(names)?;
                lead.push(along(last.thread, InputOp::Send, token, last));
                lead.push(along(event.thread, InputOp::Receive, token, event));
            }
            if present.insert(event.thread) {
                from_before.push(event.thread);
            }
            lead.push((event, stack));
            last = Some(event);
        }
        if let Some(last) = last {
            let token = link(names)?;
            lead.push(along(last.thread, InputOp::Send, token, last));
            let others = from_before.into_iter().filter(|thread| *thread != last.thread);
            lead.extend(others.map(|thread| along(thread, InputOp::Receive, token, last)));
        }
        let (sent, counted, notified, finished) = Default::default();
        let leaving = carried.leaving().collect();
        Ok(Parts { lead, nothing, present, leaving, sent, counted, notified, finished })
    }

    /// An event, in the segment.
    fn within(&mut self, event: InputEvent) -> InputEvent {
        use InputOp::*;
        let InputEvent { thread, op, object, .. } = event;
        let happened_before = match op {
            Send => {
                self.sent.insert(object);
                false
            }
            CountDown => {
                self.counted.insert(object);
                false
            }
            Notify => {
                self.notified.insert(object);
                false
            }
            OnceEnd => {
                self.finished.insert(object);
                false
            }
            Receive => !self.sent.contains(&object),
            LatchWait => !self.counted.contains(&object),
            Await => !self.notified.contains(&object),
            OncePass => !self.finished.contains(&object),
            Depart => self.leaving.remove(&(thread, object)),
            Join => !self.present.contains(&ThreadId::new(object as usize)),
            _ => false,
        };
        match (happened_before, op) {
            (false, _) => event,
            // Where others give way, so does this.
            (true, OncePass) => InputEvent { op: Send, object: self.nothing, value: None, ..event },
            (true, _) => InputEvent { op: HappensAfter, object: self.nothing, value: None, ..event },
        }
    }
}
