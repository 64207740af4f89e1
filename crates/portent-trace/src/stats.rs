//! What is in a trace, counted in one streaming pass.
//!
//! [`Summary`] is what validation leaves behind; [`Stats`] counts per operation, thread, lock and variable as well. Both
//! lower everything they read, so a trace that has statistics is well-formed. State is kept per thread, lock, variable
//! and source location, never per event.
//!
//! Events, threads and blocks are counted as the input lists them; locks and variables as engines see them: only the
//! outermost acquire of a re-entrant lock counts, and a wide access counts once for each part.

mod count;

use crate::error::TraceError;
use crate::event::Mode;
use crate::input::{InputBatch, InputSource, Progress};
use crate::lower::{Layout, Lowering};
use crate::names::{Names, ObjectClass};
use crate::trace::Batch;
use serde::Serialize;

/// How many variables [`Stats::busiest_variables`] lists.
pub const BUSIEST: usize = 10;

/// A lock still held where the trace stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StillHeld {
    /// The lock.
    pub lock: String,
    /// The thread that holds it.
    pub thread: String,
    /// Whether it holds it shared.
    pub shared: bool,
    /// The event that took it.
    pub since: u32,
}

/// An atomic block still open where the trace stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StillOpen {
    /// The thread inside it.
    pub thread: String,
    /// Its name; empty when it has none.
    pub block: String,
}

/// What a validated trace consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Input events.
    pub events: u64,
    /// Kernel events they were lowered to.
    pub kernel_events: u64,
    /// Threads, including those that were forked and never ran.
    pub threads: usize,
    /// Variables as engines see them.
    pub variables: usize,
    /// Locks, including the guards of once objects.
    pub locks: usize,
    /// Locks held at the end.
    pub held_at_end: Vec<StillHeld>,
    /// Atomic blocks open at the end, the outermost of each thread.
    pub open_blocks: Vec<StillOpen>,
    /// What a damaged input lost; the rest describes what could be read.
    pub missing: Option<String>,
}

impl Summary {
    /// Reads everything a source has and checks that it is well-formed.
    pub fn collect(source: &mut dyn InputSource, on_progress: impl FnMut(Progress)) -> Result<Summary, TraceError> {
        Ok(pass(source, on_progress, |_, _, _| {})?.0)
    }
}

/// How often an operation occurs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpCount {
    /// The operation as STD text writes it, without memory order.
    pub op: &'static str,
    /// How many events.
    pub count: u64,
}

/// The memory accesses of a trace, as the input lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accesses {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Atomic updates: a read and a write in one.
    pub updates: u64,
    /// Those of all three that are atomic.
    pub atomic: u64,
    /// Those of all three whose value is known.
    pub with_value: u64,
}

impl Accesses {
    /// Accesses of every kind.
    pub fn total(&self) -> u64 {
        self.reads + self.writes + self.updates
    }
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadStats {
    /// Its name.
    pub name: String,
    /// Its events.
    pub events: u64,
    /// Those that are memory accesses.
    pub accesses: u64,
    /// How often it took a lock that it did not hold already.
    pub acquisitions: u64,
    /// Its first event; `None` if it has none.
    pub first: Option<u64>,
    /// Its last event.
    pub last: Option<u64>,
}

/// One lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockStats {
    /// Its name.
    pub name: String,
    /// How often a thread took it, shared or not, that did not hold it so already.
    pub acquisitions: u64,
    /// Those that were shared.
    pub shared: u64,
    /// Failed tries to take it.
    pub failed_tries: u64,
    /// How many threads took it or tried to.
    pub threads: u64,
    /// How often it was taken by another thread than the time before.
    pub contended: u64,
}

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VariableStats {
    /// Its name; a part of a wider access says which bytes it is.
    pub name: String,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Atomic updates.
    pub updates: u64,
    /// How many threads accessed it.
    pub threads: u64,
}

impl VariableStats {
    /// Accesses of every kind.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes + self.updates
    }
}

/// The outermost atomic blocks of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Blocks {
    /// How many were begun.
    pub count: u64,
    /// The most events that one holds, its own begin and end not counted.
    pub longest: u64,
}

/// The call stacks of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackStats {
    /// How many different ones there are.
    pub count: u64,
    /// The most calls that one holds.
    pub deepest: u64,
    /// How many events have one.
    pub events: u64,
}

/// Everything `portent stats` knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Sizes, and what is unfinished at the end.
    #[serde(flatten)]
    pub summary: Summary,
    /// Source locations that events name.
    pub locations: u64,
    /// Every operation that occurs, the most frequent first.
    pub ops: Vec<OpCount>,
    /// Memory accesses.
    pub accesses: Accesses,
    /// Every thread, in the order of their first events.
    pub per_thread: Vec<ThreadStats>,
    /// Every lock that was used, the most taken first.
    pub per_lock: Vec<LockStats>,
    /// Variables accessed by more than one thread.
    pub shared_variables: u64,
    /// The variables with the most accesses, at most [`BUSIEST`].
    pub busiest_variables: Vec<VariableStats>,
    /// Pairs of a read and a write of its variable other than the one it saw; initial values are no writes here.
    pub read_write_pairs: u64,
    /// How often a thread took a lock while holding `i` others, for each `i` up to the deepest nesting.
    pub nesting: Vec<u64>,
    /// Atomic blocks.
    pub blocks: Blocks,
    /// Call stacks, if the trace has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stacks: Option<StackStats>,
    /// How often the next event is of another thread.
    pub switches: u64,
    /// How many runs between switches have a length from 2^i to 2^(i+1) - 1 events, for each `i` up to the longest.
    pub runs: Vec<u64>,
}

impl Stats {
    /// Reads, validates and counts everything a source has.
    ///
    /// ```
    /// use portent_trace::{format::StdReader, stats::Stats};
    ///
    /// let text = "T1|acq(l)|1\nT1|w(x)|2\nT1|rel(l)|3\nT2|acq(l)|4\nT2|r(x)|5\n";
    /// let stats = Stats::collect(&mut StdReader::new(text.as_bytes()), |_| {})?;
    /// assert_eq!((stats.summary.events, stats.switches), (5, 1));
    /// assert_eq!(stats.per_lock[0].contended, 1);
    /// assert_eq!(stats.summary.held_at_end[0].thread, "T2");
    /// # Ok::<(), portent_trace::TraceError>(())
    /// ```
    pub fn collect(source: &mut dyn InputSource, on_progress: impl FnMut(Progress)) -> Result<Stats, TraceError> {
        let mut counts = count::Counts::default();
        let (summary, layout) = pass(source, on_progress, |names, input, kernel| counts.add(names, input, kernel))?;
        Ok(counts.finish(summary, source.names(), &layout))
    }

    /// The most locks a thread held at once.
    pub fn deepest_nesting(&self) -> usize {
        self.nesting.len()
    }
}

/// Lowers everything a source has, showing each batch of input events with its kernel events to `visit`.
fn pass(
    source: &mut dyn InputSource,
    mut on_progress: impl FnMut(Progress),
    mut visit: impl FnMut(&Names, &InputBatch, &Batch),
) -> Result<(Summary, Layout), TraceError> {
    let mut lowering = Lowering::new(Layout::of(source.names())?);
    let (mut input, mut kernel) = (InputBatch::default(), Batch::default());
    while source.next_batch(&mut input)? {
        kernel.restart(u32::try_from(lowering.events()).unwrap_or(u32::MAX));
        lowering.lower(source.names(), &input, &mut kernel)?;
        visit(source.names(), &input, &kernel);
        on_progress(source.progress());
    }
    let names = source.names();
    let held = lowering.held_locks().map(|held| StillHeld {
        lock: names.lock(held.lock).into_owned(),
        thread: names.thread(held.thread).to_owned(),
        shared: held.mode == Mode::Shared,
        since: held.since,
    });
    let open = lowering.open_blocks().map(|(thread, block)| StillOpen {
        thread: names.thread(thread).to_owned(),
        block: names.block(block).into_owned(),
    });
    let mut summary = Summary {
        events: lowering.inputs(),
        kernel_events: lowering.events(),
        threads: names.count(ObjectClass::Thread),
        variables: 0,
        locks: names.count(ObjectClass::Lock),
        held_at_end: held.collect(),
        open_blocks: open.collect(),
        missing: source.missing(),
    };
    let layout = lowering.into_layout();
    summary.variables = layout.parts(names);
    Ok((summary, layout))
}

#[cfg(test)]
mod tests;
