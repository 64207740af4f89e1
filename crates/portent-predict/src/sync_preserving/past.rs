//! The closure of every thread's past, moved along the trace.
//!
//! Plain accesses of variables that no other thread touches cost nothing: a thread's own component is known from the number
//! of its event and is filled in where a closure is used.

use super::history::{History, Ideal, NONE};
use portent_order::{Model, Posts};
use portent_trace::{CondId, EventId, Op, SemId, ThreadId, Trace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known beforehand: which variables and locks need attention.
pub(super) struct Survey {
    /// The number of a variable among the shared ones: touched by two threads, and written.
    shared: Vec<u32>,
    pub(super) shared_count: usize,
    /// Locks that some failed try names.
    tried: Vec<bool>,
}

impl Survey {
    pub(super) fn of(trace: &Trace) -> Self {
        const WRITTEN: u32 = 1 << 31;
        const MANY: u32 = 1 << 30;
        // Who touches a variable (plus one), or MANY; and WRITTEN.
        let mut touched = vec![0u32; trace.variables()];
        let mut tried = vec![false; trace.locks()];
        for event in (0..trace.len()).map(EventId::new) {
            match trace.op(event) {
                op @ (Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _)) => {
                    let by = &mut touched[x.index()];
                    let me = trace.thread(event).index() as u32 + 1;
                    let before = *by & !WRITTEN;
                    let who = if before == 0 || before == me { me } else { MANY };
                    *by = who | (*by & WRITTEN) | if op.writes() { WRITTEN } else { 0 };
                }
                Op::Busy(lock, _) => tried[lock.index()] = true,
                _ => {}
            }
        }
        let mut shared_count = 0;
        for by in &mut touched {
            *by = if *by == MANY | WRITTEN {
                shared_count += 1;
                shared_count - 1
            } else {
                NONE
            };
        }
        Survey { shared: touched, shared_count: shared_count as usize, tried }
    }
    /// The number of a variable among the shared ones.
    #[inline]
    fn shared(&self, variable: VarId) -> Option<usize> {
        let shared = self.shared[variable.index()];
        (shared != NONE).then_some(shared as usize)
    }
}

/// A write that a read may see: its event, its thread, its closure.
#[derive(Clone, Copy)]
struct Written {
    event: u32,
    thread: ThreadId,
    clock: u32,
}

/// One thread's past.
struct Front {
    ideal: Ideal,
    /// Where the closure was saved, if it has not changed since.
    saved: u32,
}

/// An access of a shared variable, about to happen.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) event: EventId,
    pub(super) op: Op,
    pub(super) thread: ThreadId,
    /// The number of its variable among the shared ones.
    pub(super) variable: usize,
}

pub(super) struct Past<'s> {
    model: Model,
    survey: &'s Survey,
    pub(super) history: History,
    fronts: Vec<Front>,
    /// The last write of each shared variable.
    last: Vec<Option<Written>>,
    /// Closures of sends, notifies, and operations on semaphores.
    sent: FxHashMap<EventId, u32>,
    posts: Posts,
    /// For each semaphore, the last operation of each thread.
    counted: FxHashMap<SemId, FxHashMap<ThreadId, EventId>>,
    /// Conditions on which somebody wakes by itself, and the last that each thread did to them.
    timed: FxHashSet<CondId>,
    slept: FxHashMap<CondId, FxHashMap<ThreadId, EventId>>,
    /// Who sleeps on one of them, and whom a notify could have woken since.
    asleep: FxHashMap<ThreadId, CondId>,
    notified: FxHashSet<ThreadId>,
    /// Open scopes of each lock, in the order of their acquires.
    holders: Vec<Vec<u32>>,
    closures: u64,
}

impl<'s> Past<'s> {
    pub(super) fn new(trace: &Trace, model: Model, survey: &'s Survey) -> Self {
        let threads = trace.threads();
        Past {
            model,
            survey,
            history: History::new(threads, trace.locks()),
            fronts: (0..threads).map(|_| Front { ideal: Ideal::new(threads), saved: NONE }).collect(),
            last: vec![None; survey.shared_count],
            sent: FxHashMap::default(),
            posts: Posts::of(trace),
            counted: FxHashMap::default(),
            timed: if trace.conditions() > 0 { timed(trace) } else { FxHashSet::default() },
            slept: FxHashMap::default(),
            asleep: FxHashMap::default(),
            notified: FxHashSet::default(),
            holders: vec![Vec::new(); trace.locks()],
            closures: 0,
        }
    }

    /// The closure of a thread's past; its own component may lag behind.
    pub(super) fn ideal(&self, thread: ThreadId) -> &Ideal {
        &self.fronts[thread.index()].ideal
    }
    /// The same, kept for later.
    pub(super) fn saved(&mut self, thread: ThreadId) -> u32 {
        let front = &mut self.fronts[thread.index()];
        if front.saved == NONE {
            front.saved = self.history.save(&front.ideal.clock);
        }
        front.saved
    }

    /// Adds the closure of an earlier event, of another thread, to what `event` of `thread` needs.
    fn need(&mut self, thread: ThreadId, event: EventId, from: Written) {
        let front = &mut self.fronts[thread.index()];
        if from.event < front.ideal.clock[from.thread.index()] || from.thread == thread {
            return;
        }
        front.ideal.raise(thread, event.index() as u32);
        self.history.join(&mut front.ideal, from.clock, from.thread, from.event + 1);
        self.history.close(&mut front.ideal, |_| false);
        front.saved = NONE;
        self.closures += 1;
    }
    fn need_sent(&mut self, trace: &Trace, thread: ThreadId, event: EventId, sender: EventId) {
        // Every send and every notify that woke somebody was noted when it came by.
        let Some(&clock) = self.sent.get(&sender) else { return };
        self.need(thread, event, Written { event: sender.index() as u32, thread: trace.thread(sender), clock });
    }

    /// Goes through the trace; tells of accesses of shared variables and of acquires just before they happen. `false` if
    /// it was stopped.
    pub(super) fn walk(
        &mut self,
        trace: &Trace,
        stop: &dyn Fn() -> bool,
        mut access: impl FnMut(&mut Self, Access),
        mut acquire: impl FnMut(&mut Self, EventId),
    ) -> bool {
        for event in (0..trace.len()).map(EventId::new) {
            if event.index() & 0xffff == 0 && stop() {
                return false;
            }
            let op = trace.op(event);
            match op {
                Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => {
                    if let Some(variable) = self.survey.shared(x) {
                        let thread = trace.thread(event);
                        access(self, Access { event, op, thread, variable });
                        self.access(event, op, thread, variable);
                    }
                }
                Op::Acquire(lock, mode) => {
                    acquire(self, event);
                    let thread = trace.thread(event);
                    let id = event.index() as u32;
                    let saved = if self.survey.tried[lock.index()] { self.saved(thread) } else { NONE };
                    let scope = self.history.acquire(thread, lock, mode, id, saved);
                    self.holders[lock.index()].push(scope);
                    let front = &mut self.fronts[thread.index()];
                    front.ideal.raise(thread, id + 1);
                    let history = &self.history;
                    let must_end = |&open: &u32| {
                        let open = history.scope(open);
                        open.lock == lock && open.thread != thread && open.mode.conflicts_with(mode)
                    };
                    if front.ideal.open.iter().any(must_end) {
                        history.close(&mut front.ideal, |_| false);
                        front.saved = NONE;
                        self.closures += 1;
                        // An acquire needs what its scope's order needs: a failed try that wants it wants that too.
                        if saved != NONE {
                            let saved = self.saved(thread);
                            self.history.amend(scope, saved);
                        }
                    }
                }
                Op::Release(lock, mode) => {
                    let thread = trace.thread(event);
                    let saved = self.saved(thread);
                    let holders = &mut self.holders[lock.index()];
                    let history = &mut self.history;
                    let mine = holders.iter().position(|&scope| {
                        let scope = history.scope(scope);
                        scope.thread == thread && scope.mode == mode
                    });
                    if let Some(mine) = mine {
                        history.release(holders.remove(mine), event.index() as u32, saved);
                    }
                }
                Op::Busy(lock, mode) => {
                    let thread = trace.thread(event);
                    let holder = self.holders[lock.index()].iter().find(|&&scope| {
                        let scope = self.history.scope(scope);
                        scope.thread != thread && scope.mode.conflicts_with(mode)
                    });
                    if let Some(&holder) = holder {
                        let (clock, acquire) = self.history.acquired(holder);
                        let holder = self.history.scope(holder).thread;
                        self.need(thread, event, Written { event: acquire, thread: holder, clock });
                    }
                }
                Op::Send(_) => {
                    let saved = self.saved(trace.thread(event));
                    self.sent.insert(event, saved);
                }
                Op::Sleep(c) | Op::Notify(c, _) if self.timed.contains(&c) => self.note_condition(trace, event, c),
                Op::Notify(..) if !trace.woken_by(event).is_empty() => {
                    let saved = self.saved(trace.thread(event));
                    self.sent.insert(event, saved);
                }
                Op::Receive(token) => {
                    for &sender in trace.senders(token) {
                        self.need_sent(trace, trace.thread(event), event, sender);
                    }
                }
                Op::Post(s) | Op::Wait(s) | Op::Empty(s) => self.count(trace, event, op, s),
                Op::Wake(c) => {
                    // The sleep is the thread's own. Who woke by itself after a notify needs all that was done before: it is why that did not wake it.
                    let needed: Vec<EventId> = match trace.pairing_of_wake(event) {
                        Some(k) => vec![trace.pairings()[k.index()].notify],
                        None if self.notified.remove(&trace.thread(event)) => {
                            self.slept.get(&c).into_iter().flat_map(|last| last.values().copied()).collect()
                        }
                        None => Vec::new(),
                    };
                    needed.into_iter().for_each(|before| self.need_sent(trace, trace.thread(event), event, before));
                    if self.timed.contains(&c) {
                        self.note_condition(trace, event, c);
                    }
                }
                _ => {}
            }
        }
        true
    }

    /// Notes what was done to a condition on which somebody wakes by itself.
    fn note_condition(&mut self, trace: &Trace, event: EventId, condition: CondId) {
        let thread = trace.thread(event);
        let saved = self.saved(thread);
        self.sent.insert(event, saved);
        match trace.op(event) {
            Op::Sleep(_) => drop(self.asleep.insert(thread, condition)),
            Op::Notify(..) => {
                let asleep = self.asleep.iter().filter(|(_, on)| **on == condition);
                self.notified.extend(asleep.map(|(&sleeper, _)| sleeper));
            }
            _ => {
                self.asleep.remove(&thread);
                self.notified.remove(&thread);
            }
        }
        self.slept.entry(condition).or_default().insert(thread, event);
    }

    /// A wait needs the post that let it through, and a failed try all that came before it.
    fn count(&mut self, trace: &Trace, event: EventId, op: Op, semaphore: SemId) {
        let thread = trace.thread(event);
        let needed: Vec<EventId> = match op {
            Op::Wait(_) => self.posts.served(event).into_iter().collect(),
            Op::Empty(_) => self.counted.get(&semaphore).into_iter().flat_map(|last| last.values().copied()).collect(),
            _ => Vec::new(),
        };
        needed.into_iter().for_each(|needed| self.need_sent(trace, thread, event, needed));
        if !matches!(op, Op::Empty(_)) {
            let saved = self.saved(thread);
            self.sent.insert(event, saved);
            self.counted.entry(semaphore).or_default().insert(thread, event);
        }
    }

    fn access(&mut self, event: EventId, op: Op, thread: ThreadId, variable: usize) {
        if op.reads()
            && self.model == Model::Reads
            && let Some(writer) = self.last[variable]
        {
            self.need(thread, event, writer);
        }
        if op.writes() && self.model == Model::Reads {
            let clock = self.saved(thread);
            self.last[variable] = Some(Written { event: event.index() as u32, thread, clock });
        }
    }

    /// What remains useful, the number of closures made and the bytes held.
    pub(super) fn finish(self) -> (History, u64, usize) {
        let fronts = self.fronts.len() * self.fronts.len() * 8;
        let bytes = self.history.bytes() + fronts + self.last.len() * size_of::<Written>() + self.sent.capacity() * 9;
        (self.history, self.closures, bytes + 4 * self.survey.shared.len())
    }
}

/// Conditions on which somebody wakes by itself.
fn timed(trace: &Trace) -> FxHashSet<CondId> {
    let wakes = trace.events().filter(|event| trace.pairing_of_wake(event.id).is_none());
    let conditions = wakes.filter_map(|event| match event.op {
        Op::Wake(condition) => Some(condition),
        _ => None,
    });
    conditions.collect()
}
