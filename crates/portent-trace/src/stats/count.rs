//! The counting behind [`Stats`].
//!
//! State: one [`ThreadCount`] per thread, one [`Sharing`] and a few counters per lock and per variable, one bit per
//! location. Counters of one object have 32 bits because no trace has more events than that.

use super::{Accesses, BUSIEST, Blocks, LockStats, OpCount, StackStats, Stats, Summary, ThreadStats, VariableStats};
use crate::event::{Mode, Op};
use crate::ids::{LocId, ThreadId, VarId};
use crate::input::{InputBatch, InputOp};
use crate::lower::Layout;
use crate::names::{Names, ObjectClass};
use crate::trace::Batch;
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Clone, Default)]
struct ThreadCount {
    events: u64,
    accesses: u64,
    acquisitions: u64,
    span: Option<(u64, u64)>,
    /// Locks it holds now.
    holds: usize,
    /// Atomic blocks it is in now.
    blocks: u32,
    /// Its number of events when the outermost of them began.
    block_start: u64,
}

/// Which threads used an object: most objects are used by few of the first threads, and a thread that uses one uses it
/// again at once, so the set behind the mask is rarely touched.
#[derive(Clone, Copy, Default)]
struct Sharing {
    /// The first 64 threads.
    mask: u64,
    /// How many of the others.
    beyond: u32,
}

impl Sharing {
    fn add(&mut self, others: &mut FxHashSet<(u32, u32)>, object: usize, thread: ThreadId) {
        if thread.index() < 64 {
            self.mask |= 1 << thread.index();
        } else if others.insert((object as u32, thread.index() as u32)) {
            self.beyond += 1;
        }
    }
    fn threads(self) -> u64 {
        u64::from(self.mask.count_ones()) + u64::from(self.beyond)
    }
}

#[derive(Clone, Copy, Default)]
struct LockCount {
    acquisitions: u32,
    shared: u32,
    failed_tries: u32,
    contended: u32,
    /// Who took it last.
    last: Option<ThreadId>,
    sharing: Sharing,
}

#[derive(Clone, Copy, Default)]
struct VariableCount {
    reads: u32,
    writes: u32,
    updates: u32,
    /// Reads and updates before the first write: those saw the initial value.
    initial: u32,
    sharing: Sharing,
}

impl VariableCount {
    fn accesses(&self) -> u64 {
        u64::from(self.reads) + u64::from(self.writes) + u64::from(self.updates)
    }
    /// Each read saw one of the writes, unless it saw the initial value, and an update is no other write than itself.
    fn pairs(&self) -> u64 {
        let writes = u64::from(self.writes) + u64::from(self.updates);
        let (reads, updates) = (u64::from(self.reads), u64::from(self.updates));
        let others = reads.saturating_mul(writes).saturating_add(updates.saturating_mul(writes.saturating_sub(1)));
        others.saturating_sub(reads + updates - u64::from(self.initial))
    }
    fn read(&mut self) {
        self.initial += u32::from(self.writes == 0 && self.updates == 0);
    }
}

/// Locations seen, one bit each, in pages: dense where lines are numbered, small where there are few.
#[derive(Default)]
struct Locations {
    pages: FxHashMap<u32, Box<[u64; 64]>>,
    count: u64,
    last: Option<LocId>,
}

impl Locations {
    #[inline]
    fn add(&mut self, loc: LocId) {
        if self.last == Some(loc) {
            return;
        }
        self.last = Some(loc);
        let bits = loc.to_bits();
        let page = self.pages.entry(bits >> 12).or_insert_with(|| Box::new([0; 64]));
        let (word, bit) = (&mut page[(bits >> 6 & 63) as usize], 1u64 << (bits & 63));
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
    }
}

/// Counters of everything, while a trace streams past.
pub(super) struct Counts {
    /// Events by kind of operation, which is its code without memory order.
    ops: [u64; 64],
    accesses: Accesses,
    threads: Vec<ThreadCount>,
    locks: Vec<LockCount>,
    lock_users: FxHashSet<(u32, u32)>,
    variables: Vec<VariableCount>,
    variable_users: FxHashSet<(u32, u32)>,
    locations: Locations,
    nesting: Vec<u64>,
    blocks: Blocks,
    with_stack: u64,
    /// The thread of the last event, and how many events it has done in a row.
    run: Option<(ThreadId, u64)>,
    switches: u64,
    runs: Vec<u64>,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            ops: [0; 64],
            accesses: Accesses::default(),
            threads: Vec::new(),
            locks: Vec::new(),
            lock_users: FxHashSet::default(),
            variables: Vec::new(),
            variable_users: FxHashSet::default(),
            locations: Locations::default(),
            nesting: Vec::new(),
            blocks: Blocks::default(),
            with_stack: 0,
            run: None,
            switches: 0,
            runs: Vec::new(),
        }
    }
}

fn slot<T: Clone + Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        table.resize(index + 1, T::default());
    }
    &mut table[index]
}

fn stacks(names: &Names, events: u64) -> Option<StackStats> {
    let stacks = names.stacks();
    // A stack comes after the one that it was called from.
    let mut depths: Vec<u64> = Vec::with_capacity(stacks.len());
    for stack in stacks.ids() {
        depths.push(1 + stacks.parent(stack).map_or(0, |parent| depths[parent.index()]));
    }
    let deepest = depths.iter().copied().max()?;
    Some(StackStats { count: depths.len() as u64, deepest, events })
}

impl Counts {
    /// Counts a batch that was lowered without offence.
    pub(super) fn add(&mut self, names: &Names, input: &InputBatch, kernel: &Batch) {
        self.with_stack += input.stacks().count();
        let threads = names.count(ObjectClass::Thread);
        if self.threads.len() < threads {
            self.threads.resize(threads, ThreadCount::default());
        }
        self.add_input(input);
        self.add_kernel(kernel);
    }

    fn add_input(&mut self, input: &InputBatch) {
        for (i, event) in input.iter().enumerate() {
            let number = input.first + i as u64;
            self.ops[usize::from(event.op.code() >> 3)] += 1;
            self.locations.add(event.loc);
            let thread = &mut self.threads[event.thread.index()];
            thread.events += 1;
            thread.span = Some((thread.span.map_or(number, |(first, _)| first), number));
            match event.op {
                InputOp::Read(order) => {
                    self.accesses.reads += 1;
                    self.accesses.atomic += u64::from(order != crate::ReadOrder::Plain);
                }
                InputOp::Write(order) => {
                    self.accesses.writes += 1;
                    self.accesses.atomic += u64::from(order != crate::WriteOrder::Plain);
                }
                InputOp::Update(_) => {
                    self.accesses.updates += 1;
                    self.accesses.atomic += 1;
                }
                InputOp::Begin => {
                    thread.blocks += 1;
                    if thread.blocks == 1 {
                        self.blocks.count += 1;
                        thread.block_start = thread.events;
                    }
                }
                InputOp::End => {
                    thread.blocks = thread.blocks.saturating_sub(1);
                    if thread.blocks == 0 {
                        self.blocks.longest = self.blocks.longest.max(thread.events - 1 - thread.block_start);
                    }
                }
                _ => {}
            }
            if event.op.is_access() {
                thread.accesses += 1;
                self.accesses.with_value += u64::from(event.value.is_some());
            }
            match &mut self.run {
                Some((running, length)) if *running == event.thread => *length += 1,
                _ => {
                    self.switches += u64::from(self.run.is_some());
                    self.end_run();
                    self.run = Some((event.thread, 1));
                }
            }
        }
    }

    fn end_run(&mut self) {
        if let Some((_, length)) = self.run.take() {
            *slot(&mut self.runs, length.ilog2() as usize) += 1;
        }
    }

    fn add_kernel(&mut self, kernel: &Batch) {
        for event in kernel.iter() {
            match event.op {
                Op::Read(x, _) => {
                    let count = self.variable(x, event.thread);
                    count.read();
                    count.reads += 1;
                }
                Op::Write(x, _) => self.variable(x, event.thread).writes += 1,
                Op::Update(x, _) => {
                    let count = self.variable(x, event.thread);
                    count.read();
                    count.updates += 1;
                }
                Op::Acquire(lock, mode) => {
                    let thread = &mut self.threads[event.thread.index()];
                    thread.acquisitions += 1;
                    *slot(&mut self.nesting, thread.holds) += 1;
                    thread.holds += 1;
                    let count = slot(&mut self.locks, lock.index());
                    count.acquisitions += 1;
                    count.shared += u32::from(mode == Mode::Shared);
                    count.contended += u32::from(count.last.is_some_and(|last| last != event.thread));
                    count.last = Some(event.thread);
                    count.sharing.add(&mut self.lock_users, lock.index(), event.thread);
                }
                Op::Release(..) => {
                    let holds = &mut self.threads[event.thread.index()].holds;
                    *holds = holds.saturating_sub(1);
                }
                Op::Busy(lock, _) => {
                    let count = slot(&mut self.locks, lock.index());
                    count.failed_tries += 1;
                    count.sharing.add(&mut self.lock_users, lock.index(), event.thread);
                }
                _ => {}
            }
        }
    }

    #[inline]
    fn variable(&mut self, variable: VarId, thread: ThreadId) -> &mut VariableCount {
        let count = slot(&mut self.variables, variable.index());
        count.sharing.add(&mut self.variable_users, variable.index(), thread);
        count
    }

    /// The statistics of the whole trace.
    pub(super) fn finish(mut self, summary: Summary, names: &Names, layout: &Layout) -> Stats {
        self.end_run();
        let mut ops: Vec<OpCount> = Vec::new();
        for (kind, &count) in self.ops.iter().enumerate().filter(|(_, count)| **count > 0) {
            // Order 0 exists for every kind.
            if let Some(op) = InputOp::from_code((kind << 3) as u16) {
                ops.push(OpCount { op: op.text(), count });
            }
        }
        ops.sort_by(|a, b| b.count.cmp(&a.count).then(a.op.cmp(b.op)));
        let threads = self.threads.iter().zip(names.table(ObjectClass::Thread).iter());
        let mut per_thread: Vec<ThreadStats> = threads
            .map(|(count, name)| ThreadStats {
                name: name.to_owned(),
                events: count.events,
                accesses: count.accesses,
                acquisitions: count.acquisitions,
                first: count.span.map(|(first, _)| first),
                last: count.span.map(|(_, last)| last),
            })
            .collect();
        per_thread.sort_by_key(|thread| thread.first.unwrap_or(u64::MAX));
        Stats {
            locations: self.locations.count,
            ops,
            accesses: self.accesses,
            per_thread,
            per_lock: self.per_lock(names),
            shared_variables: self.variables.iter().filter(|count| count.sharing.threads() > 1).count() as u64,
            busiest_variables: self.busiest(names, layout),
            read_write_pairs: self.variables.iter().fold(0, |sum: u64, count| sum.saturating_add(count.pairs())),
            nesting: self.nesting,
            blocks: self.blocks,
            stacks: stacks(names, self.with_stack),
            switches: self.switches,
            runs: self.runs,
            summary,
        }
    }

    fn per_lock(&self, names: &Names) -> Vec<LockStats> {
        let locks = self.locks.iter().zip(names.table(ObjectClass::Lock).iter());
        let used = locks.filter(|(count, _)| count.sharing.threads() > 0);
        let mut stats: Vec<LockStats> = used
            .map(|(count, name)| LockStats {
                name: name.to_owned(),
                acquisitions: count.acquisitions.into(),
                shared: count.shared.into(),
                failed_tries: count.failed_tries.into(),
                threads: count.sharing.threads(),
                contended: count.contended.into(),
            })
            .collect();
        stats.sort_by_key(|lock| std::cmp::Reverse(lock.acquisitions));
        stats
    }

    fn busiest(&self, names: &Names, layout: &Layout) -> Vec<VariableStats> {
        let mut ids: Vec<usize> = (0..self.variables.len()).filter(|&x| self.variables[x].accesses() > 0).collect();
        let key = |x: &usize| (std::cmp::Reverse(self.variables[*x].accesses()), *x);
        if ids.len() > BUSIEST {
            ids.select_nth_unstable_by_key(BUSIEST, key);
            ids.truncate(BUSIEST);
        }
        ids.sort_by_key(key);
        let stats = ids.into_iter().map(|x| {
            let count = &self.variables[x];
            VariableStats {
                name: layout.part_name(names, VarId::new(x)).into_owned(),
                reads: count.reads.into(),
                writes: count.writes.into(),
                updates: count.updates.into(),
                threads: count.sharing.threads(),
            }
        });
        stats.collect()
    }
}
