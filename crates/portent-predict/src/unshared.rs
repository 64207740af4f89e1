//! What is left out before anything is looked at: accesses of variables for which no two threads ever contend.
//!
//! Most of what a program does is to memory that only one thread touches, or that is handed over: made by one thread, used by
//! another that was started later, read again after a join. Such accesses decide nothing, so engines and passes get a trace
//! without them ([`Trace::without`]), and what they find is told in events of the whole trace (`restored`).
//!
//! # What is left out, and why nothing is lost
//! Variables are followed along the trace, each access in turn. `x` is left out if, at each access, this holds:
//! - **owned**: the accesses so far were made by one thread after the other, each of which took over after the last access of the one
//!   before it, in must-order (forks and joins; the rest of must-order is not looked at, which leaves less out);
//! - or **read**: all accesses since some point read, and each comes after the last write before that point, in must-order.
//!
//! So all writes of `x` are in one order in every reordering, as they are in the trace, and each read has the write that it saw
//! before it and all later ones after it. For each goal of docs/src/internals/semantics.md §3 and each model:
//! - *a reordering of the events that are left* becomes one of the whole trace when each access of `x` is put before the next event of
//!   its thread that is left: it is always enabled. In `reads` it sees the write that it saw; in `sync` it sees what it likes.
//!   *A reordering of the whole trace* stays one when accesses of `x` are taken out: they enable nothing.
//! - **race**: two conflicting accesses of `x` are ordered by must-order, so they are never both next. **Nondeterminism**: a read sees the
//!   same write, whatever happens, and the last write is the same.
//! - **atomicity**, **lost update**: an access f between e1 and e2 of a thread, with all three in must-order, would do; that takes a thread that
//!   gives `x` away and gets it back within one block. A variable is kept if a thread takes it over while it is in a block that began before
//!   the owner before it took over. An update does not go across a fork or a join.
//! - **deadlock, lost wake-up, stuck**: who is next at an access of `x` can go on.
//!
//! In `values`, a thread that has read something else is tainted, and with it what it writes. Where one thread only touches `x`, what it reads
//! there taints nobody who is not tainted already; where `x` is handed over, it could. So there only variables of one thread are left
//! out; where formulas say what is written, none; and where every read must see the same (no branches are recorded) but a
//! lost update may change what one read sees, none that is read after it was written: such a read would see what a tainted thread wrote.
//! Branches matter in `values` only.
//!
//! What is *said* about accesses that are left may depend on others: what a place of the source does to some variable is evidence for
//! what it does to another (lost updates). So that pass looks at the whole trace for evidence.
//!
//! State: 24 bytes per variable, a clock per thread and unfinished fork or join, while this looks; then 8 bytes per stretch of events that are left.

use crate::bug::BugKind;
use crate::request::Options;
use crate::steps::InputSteps;
use portent_order::{Model, Recorded};
use portent_trace::{EventId, Meaning, Op, Selection, TokenId, Trace, VarId};
use rustc_hash::FxHashMap;

/// Less than one in so many events is not worth it.
const WORTH: usize = 8;

/// Which variables count as unshared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Those of one thread, and those that are handed over.
    HandedOver,
    /// Those of one thread.
    OneThread,
    /// Those of one thread that never reads what it wrote.
    NeverReadBack,
}

/// What is known of a variable so far.
#[derive(Clone, Copy)]
struct Known {
    /// Who accessed it last, while it is owned.
    owner: u32,
    /// How many events of that thread came up to the last access.
    last: u32,
    /// The last write: thread, and how many of its events came up to it.
    writer: u32,
    written: u32,
    /// The event at which the last owner took over.
    since: u32,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Untouched,
    Owned,
    Read,
    Shared,
}

const NOBODY: u32 = u32::MAX;
const UNTOUCHED: Known =
    Known { owner: NOBODY, last: 0, writer: NOBODY, written: 0, since: 0, phase: Phase::Untouched };

/// One pass over the events of a trace.
struct Scan {
    rule: Rule,
    variables: Vec<Known>,
    /// How many events each thread has done.
    position: Vec<u32>,
    /// What must have happened before where each thread is.
    clocks: Vec<Vec<u32>>,
    tokens: FxHashMap<TokenId, Vec<u32>>,
    /// The event at which the block of each thread began, plus one; zero outside every block.
    block: Vec<u32>,
}

impl Scan {
    fn over(trace: &Trace, rule: Rule, stop: &dyn Fn() -> bool) -> Option<Self> {
        let threads = trace.threads();
        // Without forks there is nothing to hand over by, and clocks of very many threads would be large.
        let clocks = if rule == Rule::HandedOver { vec![vec![0; threads]; threads] } else { Vec::new() };
        let mut scan = Scan {
            rule,
            variables: vec![UNTOUCHED; trace.variables()],
            position: vec![0; threads],
            clocks,
            tokens: FxHashMap::default(),
            block: vec![0; threads],
        };
        for at in 0..trace.len() {
            if at.is_multiple_of(1 << 16) && stop() {
                return None;
            }
            let event = EventId::new(at);
            let t = trace.thread(event).index();
            scan.position[t] += 1;
            match trace.op(event) {
                op @ (Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _)) => scan.access(at, t, x, op),
                Op::Begin(_) => scan.block[t] = at as u32 + 1,
                Op::End(_) => scan.block[t] = 0,
                Op::Send(token) if scan.orders(trace, token) => {
                    let mut clock = scan.clocks[t].clone();
                    clock[t] = scan.position[t];
                    let sent = scan.tokens.entry(token).or_insert_with(|| vec![0; threads]);
                    join(sent, &clock);
                }
                Op::Receive(token) if scan.orders(trace, token) => {
                    if let Some(sent) = scan.tokens.get(&token) {
                        join(&mut scan.clocks[t], sent);
                    }
                }
                _ => {}
            }
        }
        Some(scan)
    }

    fn orders(&self, trace: &Trace, token: TokenId) -> bool {
        self.rule == Rule::HandedOver && matches!(trace.meaning(token), Meaning::Fork(_) | Meaning::Join(_))
    }

    #[inline]
    fn access(&mut self, at: usize, t: usize, x: VarId, op: Op) {
        let (me, now) = (t as u32, self.position[t]);
        let known = &mut self.variables[x.index()];
        match known.phase {
            Phase::Shared => return,
            Phase::Untouched => {
                *known = Known { owner: me, last: now, since: at as u32, phase: Phase::Owned, ..UNTOUCHED };
            }
            Phase::Owned if known.owner == me => {
                if self.rule == Rule::NeverReadBack && op.reads() && known.writer != NOBODY {
                    known.phase = Phase::Shared;
                    return;
                }
                known.last = now;
            }
            _ if self.rule != Rule::HandedOver => {
                known.phase = Phase::Shared;
                return;
            }
            Phase::Owned | Phase::Read => {
                let comes_after = |thread: u32, done: u32| {
                    thread == NOBODY || thread == me || self.clocks[t][thread as usize] >= done
                };
                // A block that began before the last owner took over may have accesses on both sides of it.
                let is_apart = self.block[t] == 0 || self.block[t] > known.since;
                if !is_apart {
                    known.phase = Phase::Shared;
                    return;
                }
                if known.phase == Phase::Owned && comes_after(known.owner, known.last) {
                    (known.owner, known.last, known.since) = (me, now, at as u32);
                } else if !op.writes() && comes_after(known.writer, known.written) {
                    known.phase = Phase::Read;
                } else {
                    known.phase = Phase::Shared;
                    return;
                }
            }
        }
        if op.writes() {
            (known.writer, known.written) = (me, now);
        }
    }
}

fn join(clock: &mut [u32], other: &[u32]) {
    clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
}

/// A trace, and what is left of it without the accesses of unshared variables.
pub(crate) struct Unshared<'t> {
    pub(crate) whole: &'t Trace,
    pub(crate) selection: Selection,
    /// Which variables are left out.
    dropped: Vec<bool>,
}

impl<'t> Unshared<'t> {
    /// What there is to leave out of a trace; `None` if that is little, or if told to stop.
    pub(crate) fn of(trace: &'t Trace, options: &Options, stop: &dyn Fn() -> bool) -> Option<Self> {
        let values = options.model == Model::Values;
        let rule = match Recorded::of(trace) {
            _ if !values => Rule::HandedOver,
            Recorded::Formulas => return None,
            Recorded::Branches => Rule::OneThread,
            Recorded::Values if options.kinds.contains(&BugKind::LostUpdate) => Rule::NeverReadBack,
            Recorded::Values => Rule::OneThread,
        };
        let known = Scan::over(trace, rule, stop)?.variables;
        let dropped: Vec<bool> = known.into_iter().map(|known| known.phase != Phase::Shared).collect();
        let drops = |x: VarId| dropped[x.index()];
        let is_dropped = |event: usize| match trace.op(EventId::new(event)) {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => drops(x),
            Op::Branch => !values,
            _ => false,
        };
        let count = (0..trace.len()).filter(|&event| is_dropped(event)).count();
        if count == 0 || count < trace.len() / WORTH {
            return None;
        }
        let selection = trace.without(&drops, !values);
        Some(Unshared { whole: trace, selection, dropped })
    }

    /// Whether the accesses of a variable are left out.
    #[inline]
    pub(crate) fn drops(&self, x: VarId) -> bool {
        self.dropped[x.index()]
    }

    /// Steps in input events: those of which nothing is left go along with the next event of their thread.
    pub(crate) fn steps(&self) -> InputSteps {
        InputSteps::with_skipped(&self.selection.trace, self.selection.skipped_inputs(self.whole))
    }
}
