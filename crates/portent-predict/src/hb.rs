//! Happens-before of the observed order, as a detector that watches the run sees it (FastTrack, Flanagan and Freund).
//!
//! Order comes from program order, locks (read-write locks included), tokens, notify → wake, and release/acquire
//! atomics: an acquiring read joins what the release sequence it reads from has released; a relaxed update continues
//! that sequence, any other write that does not release ends it. Consume counts as acquire, as compilers treat it; fences
//! are not recorded. Times are FastTrack's epochs: a thread's own time moves on when it releases.
//!
//! Deviation: the last access of each thread and class (plain or atomic, read or write) is kept until a plain write
//! comes after it, not only the last write, so that more racing pairs of locations are named.
//!
//! Beside it runs the same relation with the reads-from of relaxed atomics added: pairs that only the latter orders are
//! the `relaxed_only` races of SEMANTICS §1.

use portent_trace::{EventId, Mode, Op, PairingId, ReadOrder, ThreadId, Trace, UpdateOrder, WriteOrder};
use rustc_hash::FxHashMap;
use std::sync::Arc;

type Clock = Vec<u32>;

fn join(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

/// Whether an access acquires, and whether it releases.
fn orders(op: Op) -> (bool, bool) {
    match op {
        Op::Read(_, order) => (matches!(order, ReadOrder::Consume | ReadOrder::Acquire | ReadOrder::SeqCst), false),
        Op::Write(_, order) => (false, matches!(order, WriteOrder::Release | WriteOrder::SeqCst)),
        Op::Update(_, order) => (
            !matches!(order, UpdateOrder::Relaxed | UpdateOrder::Release),
            matches!(order, UpdateOrder::Release | UpdateOrder::AcqRel | UpdateOrder::SeqCst),
        ),
        _ => (false, false),
    }
}

/// Clocks of threads, locks, tokens, notifies and atomics, moved along the trace event by event.
pub struct Clocks {
    /// Whether every atomic counts as acquire and release.
    relaxed_too: bool,
    threads: Vec<Clock>,
    /// Released exclusively, released shared.
    locks: FxHashMap<usize, (Clock, Clock)>,
    tokens: FxHashMap<usize, Clock>,
    notifies: FxHashMap<EventId, Clock>,
    atomics: FxHashMap<usize, Clock>,
}

impl Clocks {
    /// The clocks before a trace; with `relaxed_too`, reads-from of relaxed atomics orders as well.
    pub fn new(trace: &Trace, relaxed_too: bool) -> Self {
        let threads = (0..trace.threads())
            .map(|t| {
                let mut clock = vec![0; trace.threads()];
                clock[t] = 1;
                clock
            })
            .collect();
        Clocks {
            relaxed_too,
            threads,
            locks: FxHashMap::default(),
            tokens: FxHashMap::default(),
            notifies: FxHashMap::default(),
            atomics: FxHashMap::default(),
        }
    }
    /// The clock of a thread.
    pub fn of(&self, thread: ThreadId) -> &[u32] {
        &self.threads[thread.index()]
    }

    /// What comes to an event from elsewhere: call before [`Clocks::leave`]. Whether the thread's clock may have changed.
    pub fn arrive(&mut self, trace: &Trace, event: EventId) -> bool {
        let op = trace.op(event);
        let clock = &mut self.threads[trace.thread(event).index()];
        match op {
            Op::Acquire(l, mode) => {
                let Some((exclusive, shared)) = self.locks.get(&l.index()) else { return false };
                join(clock, exclusive);
                if mode == Mode::Exclusive {
                    join(clock, shared);
                }
            }
            Op::Receive(k) => match self.tokens.get(&k.index()) {
                Some(sent) => join(clock, sent),
                None => return false,
            },
            Op::Wake(_) => {
                let Some(k) = trace.pairing_of_wake(event) else { return false };
                let notify = trace.pairings()[k.index()].notify;
                let Some(notified) = self.notifies.get(&notify) else { return false };
                join(clock, notified);
                let last: Option<PairingId> = trace.woken_by(notify).iter().copied().max();
                if last == Some(k) {
                    self.notifies.remove(&notify);
                }
            }
            Op::Read(x, _) | Op::Update(x, _) if op.is_atomic() => {
                if !(orders(op).0 || self.relaxed_too) {
                    return false;
                }
                match self.atomics.get(&x.index()) {
                    Some(released) => join(clock, released),
                    None => return false,
                }
            }
            _ => return false,
        }
        true
    }

    /// What an event passes on. Whether the thread's time moved on.
    pub fn leave(&mut self, trace: &Trace, event: EventId) -> bool {
        let op = trace.op(event);
        let t = trace.thread(event).index();
        let clock = &self.threads[t];
        match op {
            Op::Release(l, mode) => {
                let (exclusive, shared) = self.locks.entry(l.index()).or_default();
                join(if mode == Mode::Exclusive { exclusive } else { shared }, clock);
            }
            Op::Send(k) => join(self.tokens.entry(k.index()).or_default(), clock),
            Op::Notify(..) if !trace.woken_by(event).is_empty() => drop(self.notifies.insert(event, clock.clone())),
            Op::Write(x, _) | Op::Update(x, _) => {
                let update = matches!(op, Op::Update(..));
                let releases = orders(op).1 || (self.relaxed_too && op.is_atomic());
                match (releases, update) {
                    (true, true) => join(self.atomics.entry(x.index()).or_default(), clock),
                    (true, false) => drop(self.atomics.insert(x.index(), clock.clone())),
                    (false, true) => return false,
                    (false, false) => {
                        self.atomics.remove(&x.index());
                        return false;
                    }
                }
            }
            _ => return false,
        }
        self.threads[t][t] += 1;
        true
    }
}

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

/// A pair of accesses that happens-before leaves unordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unordered {
    /// The earlier access.
    pub first: EventId,
    /// The later access.
    pub second: EventId,
    /// Whether reads-from of relaxed atomics would order them.
    pub relaxed_only: bool,
}

/// The last access of a thread and class.
struct Epoch {
    event: EventId,
    op: Op,
    thread: ThreadId,
    time: u32,
    relaxed_time: u32,
}

/// Watches the trace once and reports races as a happens-before detector does.
pub fn detect(trace: &Trace, mut report: impl FnMut(Unordered)) {
    let mut strict = Clocks::new(trace, false);
    let mut relaxed = Clocks::new(trace, true);
    let mut last: FxHashMap<usize, Vec<Epoch>> = FxHashMap::default();
    for event in trace.events() {
        let id = event.id;
        strict.arrive(trace, id);
        relaxed.arrive(trace, id);
        if let Some(x) = event.op.variable() {
            let (clock, relaxed_clock) = (strict.of(event.thread), relaxed.of(event.thread));
            let epochs = last.entry(x.index()).or_default();
            for e in epochs.iter().filter(|e| e.thread != event.thread) {
                let racy = e.op.conflicts_with(event.op) && !(e.op.is_atomic() && event.op.is_atomic());
                if racy && e.time > clock[e.thread.index()] {
                    let relaxed_only = e.relaxed_time <= relaxed_clock[e.thread.index()];
                    report(Unordered { first: e.event, second: id, relaxed_only });
                }
            }
            let same = |e: &Epoch| {
                e.thread == event.thread
                    && (e.op.writes(), e.op.is_atomic()) == (event.op.writes(), event.op.is_atomic())
            };
            // What races with an access ordered before a plain write races with that write too.
            let covers = event.op.writes() && !event.op.is_atomic();
            let covered = |e: &Epoch| covers && e.time <= clock[e.thread.index()];
            epochs.retain(|e| !(same(e) || covered(e)));
            let t = event.thread.index();
            let (time, relaxed_time) = (clock[t], relaxed_clock[t]);
            epochs.push(Epoch { event: id, op: event.op, thread: event.thread, time, relaxed_time });
        }
        strict.leave(trace, id);
        relaxed.leave(trace, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portent_trace::generate::{TinyShape, tiny, tiny_std};

    /// Happens-before by its definition: a graph over events, and reachability.
    #[allow(clippy::needless_range_loop)] // A matrix is indexed.
    fn reachable(trace: &Trace, relaxed_too: bool) -> Vec<Vec<bool>> {
        let n = trace.len();
        let mut reach = vec![vec![false; n]; n];
        let op = |i: usize| trace.op(EventId::new(i));
        for b in 0..n {
            for a in 0..b {
                let (ea, eb) = (EventId::new(a), EventId::new(b));
                let edge = trace.thread(ea) == trace.thread(eb)
                    || match (op(a), op(b)) {
                        (Op::Release(l, m), Op::Acquire(k, o)) => l == k && m.conflicts_with(o),
                        (Op::Send(k), Op::Receive(j)) => k == j,
                        (Op::Notify(..), Op::Wake(_)) => {
                            trace.pairing_of_wake(eb).is_some_and(|k| trace.pairings()[k.index()].notify == ea)
                        }
                        (w, r) if w.is_atomic() && r.is_atomic() && w.writes() && r.reads() => {
                            let through = (a + 1..b).filter(|&c| op(c).writes() && op(c).variable() == w.variable());
                            let unbroken = through.into_iter().all(|c| matches!(op(c), Op::Update(..)));
                            let (releases, acquires) = (orders(w).1 || relaxed_too, orders(r).0 || relaxed_too);
                            w.variable() == r.variable() && unbroken && releases && acquires
                        }
                        _ => false,
                    };
                if edge {
                    reach[a][b] = true;
                }
            }
        }
        for k in 0..n {
            for a in 0..k {
                if reach[a][k] {
                    for b in k..n {
                        reach[a][b] |= reach[k][b];
                    }
                }
            }
        }
        reach
    }

    #[test]
    fn clocks_and_reachability_agree_on_every_pair_of_events_of_random_traces() {
        let shapes: Vec<TinyShape> = TinyShape::all().collect();
        for seed in 0..4_000u64 {
            let shape = &shapes[seed as usize % shapes.len()];
            let trace = tiny(seed, shape);
            let story = || tiny_std(seed, shape);
            let strict = reachable(&trace, false);
            let relaxed = reachable(&trace, true);
            let hindsight = Rear::new(&trace).window(0..trace.len());
            let mut racy = std::collections::BTreeSet::new();
            for b in (0..trace.len()).map(EventId::new) {
                for a in (0..b.index()).map(EventId::new) {
                    let truth = strict[a.index()][b.index()];
                    assert_eq!(hindsight.ordered(&trace, a, b), truth, "{a:?} {b:?}\n{}", story());
                    let (x, y) = (trace.op(a), trace.op(b));
                    if !truth && x.conflicts_with(y) && !(x.is_atomic() && y.is_atomic()) {
                        racy.insert(x.variable());
                    }
                }
            }
            let mut reported = std::collections::BTreeSet::new();
            detect(&trace, |race| {
                let (a, b) = (race.first.index(), race.second.index());
                assert!(!strict[a][b], "reported though ordered: {race:?}\n{}", story());
                assert_eq!(race.relaxed_only, relaxed[a][b], "{race:?}\n{}", story());
                reported.insert(trace.op(race.first).variable());
            });
            assert_eq!(reported, racy, "variables with a race\n{}", story());
        }
    }

    #[test]
    fn a_window_sees_the_same_as_the_whole() {
        let trace = tiny(7, &TinyShape::EVERYTHING);
        let whole = Rear::new(&trace).window(0..trace.len());
        let mut rear = Rear::new(&trace);
        let mut start = 0;
        while start + 2 < trace.len() {
            let span = start..(start + 5).min(trace.len());
            let part = rear.window(span.clone());
            for b in span.clone().map(EventId::new) {
                for a in (span.start..b.index()).map(EventId::new) {
                    assert_eq!(part.ordered(&trace, a, b), whole.ordered(&trace, a, b));
                }
            }
            start += 2;
        }
    }

    #[test]
    fn a_relaxed_flag_orders_nothing_and_a_released_one_does() {
        let races = |std: &str| {
            let mut found = Vec::new();
            detect(&Trace::from_std(std).unwrap(), |race| found.push(race.relaxed_only));
            found
        };
        assert_eq!(races("T1|w(x)\nT1|w.rlx(f)\nT2|r.rlx(f)\nT2|r(x)\n"), [true]);
        assert_eq!(races("T1|w(x)\nT1|w.rel(f)\nT2|r.acq(f)\nT2|r(x)\n"), [] as [bool; 0]);
        assert_eq!(races("T1|w(x)\nT1|w.rel(f)\nT3|u.rlx(f)\nT2|r.acq(f)\nT2|r(x)\n"), [] as [bool; 0]);
        assert_eq!(races("T1|w(x)\nT1|w.rel(f)\nT3|w.rlx(f)\nT2|r.acq(f)\nT2|r(x)\n"), [false]);
    }
}
