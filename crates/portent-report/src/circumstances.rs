//! Under which circumstances a finding's events happened in the recorded run: locks held, writes seen, blocks entered.
//! One pass over the trace for all findings.

use crate::lookup::once_of;
use portent_trace::{EventId, LockId, Mode, Op, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) lock: LockId,
    pub(crate) mode: Mode,
    /// The acquire.
    pub(crate) since: EventId,
    /// Whether it is what a thread holds while it does something once, which nobody calls a lock.
    pub(crate) is_once: bool,
}

/// What held just before one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Circumstance {
    /// The locks its thread held.
    pub(crate) held: Vec<Held>,
    /// The last write of its variable.
    pub(crate) saw: Option<EventId>,
    /// The begin of the outermost block around it.
    pub(crate) block: Option<EventId>,
}

/// The circumstances of the events of findings.
#[derive(Debug, Default)]
pub(crate) struct Circumstances(FxHashMap<EventId, Circumstance>);

impl Circumstances {
    /// Looks at the trace once for all these events.
    pub(crate) fn gather(trace: &Trace, events: impl Iterator<Item = EventId>) -> Self {
        let mut of: FxHashMap<EventId, Circumstance> = events.map(|event| (event, Circumstance::default())).collect();
        let last = of.keys().copied().max();
        let mut written: Vec<Option<EventId>> = vec![None; trace.variables()];
        let mut held: Vec<Vec<Held>> = vec![Vec::new(); trace.threads()];
        let mut block: Vec<Option<EventId>> = vec![None; trace.threads()];
        for event in trace.events().take(last.map_or(0, |last| last.index() + 1)) {
            let t = event.thread.index();
            if let Some(circumstance) = of.get_mut(&event.id) {
                circumstance.held.clone_from(&held[t]);
                circumstance.saw = event.op.variable().and_then(|x| written[x.index()]);
                circumstance.block = block[t];
            }
            match event.op {
                Op::Write(x, _) | Op::Update(x, _) => written[x.index()] = Some(event.id),
                Op::Acquire(lock, mode) => held[t].push(Held { lock, mode, since: event.id, is_once: false }),
                Op::Release(lock, mode) => held[t].retain(|h| (h.lock, h.mode) != (lock, mode)),
                Op::Begin(_) => block[t] = Some(event.id),
                Op::End(_) => block[t] = None,
                _ => {}
            }
        }
        let onces: FxHashSet<LockId> = trace.events().filter_map(|event| once_of(trace, event.op)).collect();
        let held = of.values_mut().flat_map(|circumstance| &mut circumstance.held);
        held.for_each(|held| held.is_once = onces.contains(&held.lock));
        Circumstances(of)
    }
    /// The circumstances of an event that was asked for.
    pub(crate) fn of(&self, event: EventId) -> Circumstance {
        self.0.get(&event).cloned().unwrap_or_default()
    }
}
