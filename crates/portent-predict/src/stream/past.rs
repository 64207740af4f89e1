//! What must have happened before an event, as positions of threads, moved along a trace.
//!
//! In `sync` that is must-order; in `reads` also the writers of kept reads (SEMANTICS §4: the causal past). An event in
//! the past of what comes just before another one can never be next together with it, so this filter is exact where it
//! says no, for pairs at any distance.

use portent_order::Model;
use portent_trace::{Event, EventId, Op, TokenId, Trace};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many events of each thread.
pub(super) type Cut = Arc<[u32]>;

/// What an event passes on: everything before its thread's event number `position`, and that of others.
#[derive(Clone, Debug)]
struct Passed {
    thread: usize,
    position: u32,
    cut: Cut,
}

struct Thread {
    /// Of other threads; its own entry means nothing.
    cut: Vec<u32>,
    shared: Option<Cut>,
    position: u32,
}

pub(super) struct Past<'t> {
    trace: &'t Trace,
    reads: bool,
    /// Whether a notify comes after the sleeps it ended: so for cuts.
    sleeps_first: bool,
    threads: Vec<Thread>,
    tokens: FxHashMap<TokenId, Vec<Passed>>,
    waits: FxHashMap<EventId, Passed>,
    writers: Vec<Option<Passed>>,
}

impl<'t> Past<'t> {
    pub(super) fn new(trace: &'t Trace, model: Model) -> Self {
        let threads = trace.threads();
        let reads = model == Model::Reads;
        Past {
            trace,
            reads,
            sleeps_first: false,
            threads: (0..threads).map(|_| Thread { cut: vec![0; threads], shared: None, position: 0 }).collect(),
            tokens: FxHashMap::default(),
            waits: FxHashMap::default(),
            writers: if reads { vec![None; trace.variables()] } else { Vec::new() },
        }
    }
    /// Must-order with sleeps before the notifies that ended them.
    pub(super) fn for_cuts(trace: &'t Trace) -> Self {
        Past { sleeps_first: true, ..Past::new(trace, Model::Sync) }
    }

    /// How many events a thread has done.
    #[inline]
    pub(super) fn position(&self, thread: usize) -> u32 {
        self.threads[thread].position
    }
    /// How many events of `other` are in the past of where `thread` is now.
    #[inline]
    pub(super) fn of(&self, thread: usize, other: usize) -> u32 {
        self.threads[thread].cut[other]
    }
    /// The past of where `thread` is now, to keep; its own entry means nothing.
    pub(super) fn share(&mut self, thread: usize) -> Cut {
        let thread = &mut self.threads[thread];
        thread.shared.get_or_insert_with(|| thread.cut.as_slice().into()).clone()
    }

    fn join(&mut self, thread: usize, passed: &Passed) -> bool {
        let mine = &mut self.threads[thread];
        if passed.thread == thread || mine.cut[passed.thread] >= passed.position {
            return false;
        }
        mine.cut.iter_mut().zip(passed.cut.iter()).for_each(|(a, b)| *a = (*a).max(*b));
        mine.cut[passed.thread] = mine.cut[passed.thread].max(passed.position);
        mine.shared = None;
        true
    }

    /// What comes to an event from elsewhere. Whether that changed the past of its thread.
    #[inline]
    pub(super) fn arrive(&mut self, event: Event) -> bool {
        let t = event.thread.index();
        match event.op {
            Op::Read(x, _) | Op::Update(x, _) if self.reads => {
                let Some(writer) = &self.writers[x.index()] else { return false };
                if writer.thread == t || self.threads[t].cut[writer.thread] >= writer.position {
                    return false;
                }
                let writer = writer.clone();
                self.join(t, &writer)
            }
            Op::Receive(token) => {
                let sent = self.tokens.get(&token).cloned().unwrap_or_default();
                sent.iter().fold(false, |changed, passed| self.join(t, passed) | changed)
            }
            Op::Wake(_) => {
                let pairing = self.trace.pairing_of_wake(event.id).map(|k| self.trace.pairings()[k.index()]);
                let notified = pairing.and_then(|pairing| self.waits.get(&pairing.notify).cloned());
                notified.is_some_and(|passed| self.join(t, &passed))
            }
            Op::Notify(..) if self.sleeps_first => {
                let pairings = self.trace.woken_by(event.id).iter().map(|k| self.trace.pairings()[k.index()]);
                let slept: Vec<Passed> = pairings.filter_map(|p| self.waits.get(&p.sleep).cloned()).collect();
                slept.iter().fold(false, |changed, passed| self.join(t, passed) | changed)
            }
            _ => false,
        }
    }

    /// The event has happened.
    #[inline]
    pub(super) fn leave(&mut self, event: Event) {
        let t = event.thread.index();
        self.threads[t].position += 1;
        match event.op {
            Op::Write(x, _) | Op::Update(x, _) if self.reads => {
                let passed = self.passed(t);
                self.writers[x.index()] = Some(passed);
            }
            Op::Send(token) => {
                let passed = self.passed(t);
                self.tokens.entry(token).or_default().push(passed);
            }
            Op::Sleep(_) if self.sleeps_first => {
                let passed = self.passed(t);
                self.waits.insert(event.id, passed);
            }
            Op::Notify(..) if !self.trace.woken_by(event.id).is_empty() => {
                let passed = self.passed(t);
                self.waits.insert(event.id, passed);
            }
            _ => {}
        }
    }

    fn passed(&mut self, thread: usize) -> Passed {
        Passed { thread, position: self.threads[thread].position, cut: self.share(thread) }
    }
}
