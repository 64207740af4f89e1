//! The detector: the last accesses of every variable as epochs.
//!
//! State per variable, one cache line: up to two epochs in place, more on the heap; and whether the access before raced
//! with none of them. An access like the one before it then races with none either, whatever its thread has learnt since,
//! and replaces it without a look at the others.

use super::clocks::{Clocks, is_weak};
use portent_trace::{EventId, Op, ThreadId, Trace};

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

/// Who accesses, and how.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Who(u32);

impl Who {
    const WRITES: u32 = 1;
    const ATOMIC: u32 = 2;

    #[inline]
    pub(super) fn new(thread: ThreadId, op: Op) -> Self {
        let class = if op.writes() { Self::WRITES } else { 0 } | if op.is_atomic() { Self::ATOMIC } else { 0 };
        Who((thread.index() as u32) << 2 | class)
    }
    #[inline]
    pub(super) fn thread(self) -> usize {
        (self.0 >> 2) as usize
    }
    /// Whether two accesses of one variable race unless they are ordered.
    #[inline]
    pub(super) fn races_with(self, other: Who) -> bool {
        self.thread() != other.thread()
            && (self.0 | other.0) & Self::WRITES != 0
            && self.0 & other.0 & Self::ATOMIC == 0
    }
    #[inline]
    fn is_plain_write(self) -> bool {
        self.0 & (Self::WRITES | Self::ATOMIC) == Self::WRITES
    }
}

/// The last access of a thread and class.
#[derive(Clone, Copy, Default)]
struct Epoch {
    event: u32,
    who: Who,
    time: u32,
    relaxed_time: u32,
}

const INLINE: usize = 2;

#[derive(Clone, Default)]
struct Variable {
    few: [Epoch; INLINE],
    /// All of them, once there were more than fit in place.
    many: Vec<Epoch>,
    len: u32,
    /// Whether the last access raced with nothing.
    quiet: bool,
}

impl Variable {
    #[inline]
    fn epochs(&mut self) -> &mut [Epoch] {
        let len = self.len as usize;
        if self.many.is_empty() { &mut self.few[..len] } else { &mut self.many[..len] }
    }
    /// Keeps the first `len` and adds one.
    #[inline]
    fn cut_and_push(&mut self, len: usize, epoch: Epoch) {
        self.len = len as u32 + 1;
        if self.many.is_empty() {
            if len < INLINE {
                self.few[len] = epoch;
                return;
            }
            self.many.extend_from_slice(&self.few);
        }
        self.many.truncate(len);
        self.many.push(epoch);
    }
}

/// Watches the trace once and reports races as a happens-before detector does.
pub fn detect(trace: &Trace, report: impl FnMut(Unordered)) {
    // Without weak atomics the relation with relaxed reads-from is the same.
    if (0..trace.len()).any(|event| is_weak(trace.op(EventId::new(event)))) {
        watch::<true>(trace, report);
    } else {
        watch::<false>(trace, report);
    }
}

fn watch<const WEAK: bool>(trace: &Trace, mut report: impl FnMut(Unordered)) {
    let mut strict = Clocks::new(trace, false);
    let mut relaxed = Clocks::new(trace, true);
    let mut variables = vec![Variable::default(); trace.variables()];
    for id in (0..trace.len()).map(EventId::new) {
        let op = trace.op(id);
        strict.arrive_at(trace, id, op);
        if WEAK {
            relaxed.arrive_at(trace, id, op);
        }
        if let Some(x) = op.variable() {
            let thread = trace.thread(id);
            let t = thread.index();
            let who = Who::new(thread, op);
            let clock = strict.of(thread);
            let relaxed_clock = if WEAK { relaxed.of(thread) } else { clock };
            let epoch = Epoch { event: id.index() as u32, who, time: clock[t], relaxed_time: relaxed_clock[t] };
            let variable = &mut variables[x.index()];
            let quiet = variable.quiet;
            match variable.epochs().last_mut() {
                Some(last) if last.who == who && quiet => *last = epoch,
                _ => visit(variable, epoch, clock, relaxed_clock, &mut report),
            }
        }
        strict.leave_at(trace, id, op);
        if WEAK {
            relaxed.leave_at(trace, id, op);
        }
    }
}

fn visit(
    variable: &mut Variable,
    epoch: Epoch,
    clock: &[u32],
    relaxed_clock: &[u32],
    report: &mut impl FnMut(Unordered),
) {
    let mut quiet = true;
    let mut kept = 0;
    // What races with an access ordered before a plain write races with that write too.
    let covers = epoch.who.is_plain_write();
    let epochs = variable.epochs();
    for i in 0..epochs.len() {
        let e = epochs[i];
        let ordered = e.time <= clock[e.who.thread()];
        if !ordered && e.who.races_with(epoch.who) {
            quiet = false;
            report(Unordered {
                first: EventId::new(e.event as usize),
                second: EventId::new(epoch.event as usize),
                relaxed_only: e.relaxed_time <= relaxed_clock[e.who.thread()],
            });
        }
        if !(e.who == epoch.who || (covers && ordered)) {
            epochs[kept] = e;
            kept += 1;
        }
    }
    variable.quiet = quiet;
    variable.cut_and_push(kept, epoch);
}
