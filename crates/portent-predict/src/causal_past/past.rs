//! What must have happened before an event, as positions of threads, moved along a trace.
//!
//! In `sync` that is must-order; in `reads` also the writers of kept reads (docs/src/internals/semantics.md §4: the causal past). An event in
//! the past of what comes just before another one can never be next together with it, so this filter is exact where it
//! says no, for pairs at any distance.

use portent_order::{Model, Naps, Posts};
use portent_trace::{CondId, Event, EventId, Op, TokenId, Trace};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many events of each thread.
pub(crate) type Cut = Arc<[u32]>;

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

pub(crate) struct Past<'t> {
    trace: &'t Trace,
    reads: bool,
    threads: Vec<Thread>,
    tokens: FxHashMap<TokenId, Vec<Passed>>,
    /// By notify, and by post, that some wait forces.
    waits: FxHashMap<EventId, Passed>,
    posts: Posts,
    naps: Naps,
    /// Whether a wait comes after the post that let it through, and a wake after the notify, and not only after those that they always come after.
    served: bool,
    /// For each condition, what each thread did last to it, where that is asked for.
    slept: FxHashMap<CondId, FxHashMap<usize, Passed>>,
    writers: Vec<Option<Passed>>,
}

impl<'t> Past<'t> {
    pub(crate) fn new(trace: &'t Trace, model: Model) -> Self {
        let threads = trace.threads();
        let reads = model == Model::Reads;
        Past {
            trace,
            reads,
            threads: (0..threads).map(|_| Thread { cut: vec![0; threads], shared: None, position: 0 }).collect(),
            tokens: FxHashMap::default(),
            waits: FxHashMap::default(),
            posts: Posts::of(trace),
            naps: Naps::of(trace),
            served: false,
            slept: FxHashMap::default(),
            writers: if reads { vec![None; trace.variables()] } else { Vec::new() },
        }
    }

    /// The same, where a wait also comes after the post that let it through, and a wake after the notify, as it was observed.
    pub(crate) fn as_served(trace: &'t Trace, model: Model) -> Self {
        Past { served: true, ..Self::new(trace, model) }
    }

    /// How many events a thread has done.
    #[inline]
    pub(crate) fn position(&self, thread: usize) -> u32 {
        self.threads[thread].position
    }
    /// How many events of `other` are in the past of where `thread` is now.
    #[inline]
    pub(crate) fn of(&self, thread: usize, other: usize) -> u32 {
        self.threads[thread].cut[other]
    }
    /// The past of where `thread` is now; its own entry means nothing.
    #[inline]
    pub(crate) fn now(&self, thread: usize) -> &[u32] {
        &self.threads[thread].cut
    }
    /// The same, to keep; its own entry means nothing.
    pub(crate) fn share(&mut self, thread: usize) -> Cut {
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
    pub(crate) fn arrive(&mut self, event: Event) -> bool {
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
            Op::Wait(_) => {
                let served = self.posts.served(event.id).filter(|_| self.served);
                let posts = self.posts.forced(event.id).iter().copied().chain(served);
                let passed: Vec<Passed> = posts.filter_map(|post| self.waits.get(&post).cloned()).collect();
                passed.iter().fold(false, |changed, passed| self.join(t, passed) | changed)
            }
            Op::Wake(c) => {
                let pairing = self.trace.pairing_of_wake(event.id).map(|k| self.trace.pairings()[k.index()]);
                let served = pairing.filter(|_| self.served).map(|pairing| pairing.notify);
                let notifies = self.naps.forced(event.id).into_iter().chain(served);
                let mut passed: Vec<Passed> = notifies.filter_map(|notify| self.waits.get(&notify).cloned()).collect();
                if self.served && pairing.is_none() {
                    // All that was done to the condition before: it is why no notify woke it.
                    passed.extend(self.slept.get(&c).into_iter().flat_map(|threads| threads.values().cloned()));
                }
                passed.iter().fold(false, |changed, passed| self.join(t, passed) | changed)
            }
            _ => false,
        }
    }

    /// The event has happened.
    #[inline]
    pub(crate) fn leave(&mut self, event: Event) {
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
            Op::Post(_) if self.served || self.posts.is_forced(event.id) => {
                let passed = self.passed(t);
                self.waits.insert(event.id, passed);
            }
            Op::Notify(..) if !self.served && self.naps.is_forced(event.id) => {
                let passed = self.passed(t);
                self.waits.insert(event.id, passed);
            }
            Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) if self.served => {
                let passed = self.passed(t);
                self.slept.entry(c).or_default().insert(t, passed.clone());
                if let Op::Notify(..) = event.op {
                    self.waits.insert(event.id, passed);
                }
            }
            _ => {}
        }
    }

    fn passed(&mut self, thread: usize) -> Passed {
        Passed { thread, position: self.threads[thread].position, cut: self.share(thread) }
    }
}
