//! Input events: what a front end recorded, before lowering.
//!
//! This is the vocabulary of files and recorders: richer than the kernel (it knows forks, semaphores and re-entrant
//! locks), one event per line of an STD file. Every input event names at most one object. [`crate::lower`] turns a
//! stream of them into kernel events; engines never see this module.

use crate::error::{Position, TraceError};
use crate::event::{READ_ORDERS, ReadOrder, UPDATE_ORDERS, UpdateOrder, WRITE_ORDERS, WriteOrder};
use crate::ids::{LocId, StackId, ThreadId};
use crate::names::{Names, ObjectClass};
use crate::stacks::StackColumn;
use crate::symbolic::Formulas;

macro_rules! simple_ops {
    ($($(#[$doc:meta])* $name:ident = $kind:literal, $class:ident, $text:literal;)*) => {
        /// An operation as recorded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum InputOp {
            /// `r(x)`: read.
            Read(ReadOrder),
            /// `w(x)`: write.
            Write(WriteOrder),
            /// `u(x)`: atomic read-modify-write.
            Update(UpdateOrder),
            $($(#[$doc])* $name,)*
        }

        impl InputOp {
            /// The operations that are no accesses, for tables and tests.
            pub const SIMPLE: &'static [InputOp] = &[$(InputOp::$name),*];

            /// The class of object the operation names.
            #[inline]
            pub fn class(self) -> ObjectClass {
                match self {
                    InputOp::Read(_) | InputOp::Write(_) | InputOp::Update(_) => ObjectClass::Variable,
                    $(InputOp::$name => ObjectClass::$class,)*
                }
            }

            /// The operation in STD text, without order suffix and object.
            pub fn text(self) -> &'static str {
                match self {
                    InputOp::Read(_) => "r",
                    InputOp::Write(_) => "w",
                    InputOp::Update(_) => "u",
                    $(InputOp::$name => $text,)*
                }
            }

            /// The number of the operation in the trace format, below 512: kind times 8 plus memory order.
            #[inline]
            pub fn code(self) -> u16 {
                match self {
                    InputOp::Read(order) => order as u16,
                    InputOp::Write(order) => 8 | order as u16,
                    InputOp::Update(order) => 16 | order as u16,
                    $(InputOp::$name => $kind << 3,)*
                }
            }

            /// The operation with this number, if there is one.
            #[inline]
            pub fn from_code(code: u16) -> Option<Self> {
                let order = (code & 7) as usize;
                match code >> 3 {
                    0 => READ_ORDERS.get(order).copied().map(InputOp::Read),
                    1 => WRITE_ORDERS.get(order).copied().map(InputOp::Write),
                    2 => UPDATE_ORDERS.get(order).copied().map(InputOp::Update),
                    $($kind if order == 0 => Some(InputOp::$name),)*
                    _ => None,
                }
            }

            /// The operation written so in STD text, without suffix and object.
            pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
                $(if text == $text.as_bytes() { return Some(InputOp::$name); })*
                match text {
                    b"r" => Some(InputOp::Read(ReadOrder::Plain)),
                    b"w" => Some(InputOp::Write(WriteOrder::Plain)),
                    b"u" => Some(InputOp::Update(UpdateOrder::SeqCst)),
                    _ => None,
                }
            }
        }
    };
}

// The numbers are part of the trace format (docs/src/reference/trace-format.md): never reuse or change one.
simple_ops! {
    /// `acq(l)`: takes a lock, again if the thread holds it already.
    Acquire = 3, Lock, "acq";
    /// `rel(l)`: gives a lock back, one level of it.
    Release = 4, Lock, "rel";
    /// `acqs(l)`: takes a lock shared.
    AcquireShared = 5, Lock, "acqs";
    /// `rels(l)`
    ReleaseShared = 6, Lock, "rels";
    /// `busy(l)`: a failed try-lock.
    Busy = 7, Lock, "busy";
    /// `busys(l)`: a failed shared try-lock.
    BusyShared = 8, Lock, "busys";
    /// `rela(l)`: gives a lock back at all levels, as waiting on a condition does.
    ReleaseAll = 9, Lock, "rela";
    /// `acqa(l)`: takes it back at the depth it had.
    AcquireAll = 10, Lock, "acqa";
    /// `fork(t)`
    Fork = 11, Thread, "fork";
    /// `join(t)`
    Join = 12, Thread, "join";
    /// `snd(k)`: sends an ordering token.
    Send = 13, Token, "snd";
    /// `rcv(k)`: receives it; every send of it comes first.
    Receive = 14, Token, "rcv";
    /// `slp(c)`: starts to wait on a condition.
    Sleep = 15, Condition, "slp";
    /// `ntf(c)`: notifies one sleeper; a token if its name is used with `wai`.
    Notify = 16, Condition, "ntf";
    /// `nta(c)`: notifies all sleepers.
    NotifyAll = 17, Condition, "nta";
    /// `wak(c)`: wakes by a notify if there is an unused one since the sleep, else spuriously.
    Wake = 18, Condition, "wak";
    /// `tmo(c)`: wakes by time-out or spuriously; uses up no notify.
    TimeOut = 19, Condition, "tmo";
    /// `wai(c)`: receives the token of the latest earlier `ntf(c)`.
    Await = 20, Condition, "wai";
    /// `semi(s)`: initial count of a semaphore, as its value.
    SemaphoreInit = 21, Semaphore, "semi";
    /// `post(s)`
    Post = 22, Semaphore, "post";
    /// `semw(s)`: passes a semaphore.
    SemaphoreWait = 23, Semaphore, "semw";
    /// `semf(s)`: a failed try to pass it.
    SemaphoreBusy = 24, Semaphore, "semf";
    /// `cdn(f)`: counts a latch down, or sets a future.
    CountDown = 25, Latch, "cdn";
    /// `lwt(f)`: passes a latch, or gets a future.
    LatchWait = 26, Latch, "lwt";
    /// `arr(b)`: arrives at a barrier.
    Arrive = 27, Barrier, "arr";
    /// `dep(b)`: leaves a barrier.
    Depart = 28, Barrier, "dep";
    /// `onceb(o)`: begins to run the initialiser of a once.
    OnceBegin = 29, Lock, "onceb";
    /// `oncee(o)`: has run it.
    OnceEnd = 30, Lock, "oncee";
    /// `oncep(o)`: passes a once that another call has run.
    OncePass = 31, Lock, "oncep";
    /// `begin(b)`: begins an atomic block.
    Begin = 32, Block, "begin";
    /// `end(b)`: ends it.
    End = 33, Block, "end";
    /// `branch`: control flow from here on depends on earlier reads.
    Branch = 34, None, "branch";
    /// `call(f)`: enters a function.
    Call = 35, Function, "call";
    /// `ret(f)`: leaves it.
    Return = 36, Function, "ret";
    /// `free(x)`: gives memory back. A write of it after which nobody may use it.
    Free = 37, Variable, "free";
    /// `destroy(x)`: ends a lock, a condition or the like. A write of it after which nobody may use it.
    Destroy = 38, Variable, "destroy";
    /// `hb(k)`: declares that what the thread has done comes before every later `ha(k)`.
    HappensBefore = 40, Token, "hb";
    /// `ha(k)`: declares that what the thread does comes after every earlier `hb(k)`.
    HappensAfter = 41, Token, "ha";
    /// `try(l)`: takes a lock without waiting for it for ever: a try, or a wait with a time limit, that succeeded.
    TryAcquire = 42, Lock, "try";
    /// `trys(l)`: the same, shared.
    TryAcquireShared = 43, Lock, "trys";
    /// `semt(s)`: passes a semaphore without waiting for it for ever: a try, or a wait with a time limit, that succeeded.
    SemaphoreTry = 44, Semaphore, "semt";
    /// `wakt(c)`: wakes by a notify from a wait with a time limit, which `tmo` would have ended.
    WakeInTime = 45, Condition, "wakt";
    /// `spur(c)`: wakes by itself from a wait that has no time limit: spuriously. As `tmo` otherwise.
    WakeByItself = 53, Condition, "spur";
    /// `facq`: an acquire fence, which strengthens the thread's earlier atomic reads.
    FenceAcquire = 47, None, "facq";
    /// `frel`: a release fence, which strengthens its later atomic writes.
    FenceRelease = 48, None, "frel";
    /// `fence`: both, also sequentially consistent.
    Fence = 49, None, "fence";
}

impl InputOp {
    /// Every operation, with every memory order.
    pub fn all() -> impl Iterator<Item = InputOp> {
        (0..512).filter_map(InputOp::from_code)
    }
    /// Whether the operation is a memory access.
    #[inline]
    pub fn is_access(self) -> bool {
        u32::from(self.code()) < ACCESS_CODES || matches!(self, InputOp::Free | InputOp::Destroy)
    }
    /// Whether a thread that does it makes way for others on purpose: it waits for something that is no lock, or starts a thread.
    pub fn gives_way(self) -> bool {
        use InputOp::*;
        matches!(
            self,
            Fork | Join | Receive | HappensAfter | Sleep | Await | SemaphoreWait | LatchWait | Arrive | Depart
        )
    }
}

/// One input event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputEvent {
    /// Who did it.
    pub thread: ThreadId,
    /// What it did.
    pub op: InputOp,
    /// The object, in the name table of the operation's class; 0 where it names none.
    pub object: u32,
    /// The value read or written, where it is known; the initial count of a semaphore.
    pub value: Option<i64>,
    /// Where in the source.
    pub loc: LocId,
}

/// Where the events of a batch stand in their input, for error positions.
#[derive(Clone, Debug, Default)]
pub enum BatchPlace {
    /// Nowhere in particular: made in memory.
    #[default]
    Memory,
    /// Lines of a text: the line of the first event, and for every event after skipped lines (index in the batch,
    /// lines skipped before it).
    Lines {
        /// Line of the first event, had nothing been skipped.
        first: u64,
        /// Skipped lines, by ascending index.
        skips: Vec<(u32, u32)>,
    },
    /// A chunk at this byte of a binary file.
    Chunk(u64),
}

/// A run of consecutive input events in columns.
#[derive(Clone, Debug, Default)]
pub struct InputBatch {
    /// Number of the batch's first event in the input.
    pub first: u64,
    /// Where the batch stands in its input.
    pub place: BatchPlace,
    /// Operation code (9 bits), whether there is a value (1 bit), thread (22 bits).
    meta: Vec<u32>,
    object: Vec<u32>,
    value: Vec<i64>,
    loc: Vec<LocId>,
    stack: StackColumn,
}

/// The token that threads send, and nobody receives, when they come back from a call of the system in which they may have waited.
pub const SYSTEM_CALLS: &str = "system calls";
/// The same for calls that give a thread nothing which depends on others: sleeps, writes to files and to standard output.
pub const TELLING_CALLS: &str = "system calls without an answer";

/// Whether a token is one of these.
pub fn is_system_call(token: &str) -> bool {
    matches!(token, SYSTEM_CALLS | TELLING_CALLS)
}

/// Operations below this code are reads that do not write.
pub(crate) const READ_CODES: u32 = 8;
/// Operations below this code are accesses.
pub(crate) const ACCESS_CODES: u32 = 24;
pub(crate) const HAS_VALUE: u32 = 1 << 9;
pub(crate) const THREAD_SHIFT: u32 = 10;

/// The columns of a batch, all equally long, for decoders that fill them directly.
pub(crate) struct InputColumns<'a> {
    /// Operation code, [`HAS_VALUE`], and the thread from [`THREAD_SHIFT`] on.
    pub(crate) meta: &'a mut [u32],
    pub(crate) object: &'a mut [u32],
    /// Zero where there is no value.
    pub(crate) value: &'a mut [i64],
    pub(crate) loc: &'a mut [LocId],
}

/// How many numbers, from the first on, are `good`. Looks at sixteen at once, without a branch for each.
#[inline]
pub(crate) fn prefix(numbers: &[u32], good: impl Fn(u32) -> bool) -> usize {
    let (blocks, _) = numbers.as_chunks::<16>();
    let all_good = |block: &&[u32; 16]| block.iter().fold(true, |all, &number| all & good(number));
    let whole = 16 * blocks.iter().take_while(all_good).count();
    whole + numbers[whole..].iter().take_while(|&&number| good(number)).count()
}

/// Consecutive events of a batch, in columns of equal length; mostly accesses.
#[derive(Clone, Copy)]
pub(crate) struct AccessRun<'a> {
    /// Operation code, [`HAS_VALUE`], and the thread from [`THREAD_SHIFT`] on.
    pub(crate) meta: &'a [u32],
    pub(crate) object: &'a [u32],
    pub(crate) value: &'a [i64],
    pub(crate) loc: &'a [LocId],
}

impl<'a> AccessRun<'a> {
    pub(crate) fn len(&self) -> usize {
        self.meta.len()
    }
    /// Its first `len` events.
    pub(crate) fn first(self, len: usize) -> AccessRun<'a> {
        AccessRun {
            meta: &self.meta[..len],
            object: &self.object[..len],
            value: &self.value[..len],
            loc: &self.loc[..len],
        }
    }
    /// Whether any of them has a value.
    pub(crate) fn has_values(&self) -> bool {
        self.meta.iter().fold(0, |all, meta| all | meta) & HAS_VALUE != 0
    }
    /// The value of each, where it has one.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = Option<i64>> {
        self.meta.iter().zip(self.value).map(|(&meta, &value)| (meta & HAS_VALUE != 0).then_some(value))
    }
}

impl InputBatch {
    /// How many events sources aim to put into a batch: small enough for the second-level cache.
    pub const TARGET: usize = 8192;

    /// Empties the batch for the events from number `first` on.
    pub fn restart(&mut self, first: u64, place: BatchPlace) {
        self.first = first;
        self.place = place;
        self.meta.clear();
        self.object.clear();
        self.value.clear();
        self.loc.clear();
        self.stack.clear();
    }
    /// Makes room for exactly `count` events from number `first` on, all of which the caller must then write.
    pub(crate) fn overwrite(&mut self, first: u64, place: BatchPlace, count: usize) -> InputColumns<'_> {
        self.first = first;
        self.place = place;
        self.stack.clear();
        self.meta.resize(count, 0);
        self.object.resize(count, 0);
        self.value.resize(count, 0);
        self.loc.resize(count, LocId::from_bits(0));
        InputColumns { meta: &mut self.meta, object: &mut self.object, value: &mut self.value, loc: &mut self.loc }
    }
    /// How many events it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.meta.len()
    }
    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.meta.is_empty()
    }
    /// Appends an event.
    #[inline]
    pub fn push(&mut self, event: InputEvent) {
        let value_bit = if event.value.is_some() { HAS_VALUE } else { 0 };
        self.meta.push(u32::from(event.op.code()) | value_bit | event.thread.0 << THREAD_SHIFT);
        self.object.push(event.object);
        self.value.push(event.value.unwrap_or(0));
        self.loc.push(event.loc);
    }
    /// Says what the `i`-th event really does: what was recorded as a plain write turns out to free, or to destroy.
    pub fn ends(&mut self, i: usize, op: InputOp) {
        debug_assert!(matches!(op, InputOp::Free | InputOp::Destroy));
        let write = u32::from(InputOp::Write(WriteOrder::Plain).code());
        if let Some(meta) = self.meta.get_mut(i).filter(|meta| **meta & (HAS_VALUE - 1) == write) {
            // Nobody may read what it leaves behind, and a value would be the first bytes of it.
            *meta = *meta & !(HAS_VALUE | (HAS_VALUE - 1)) | u32::from(op.code());
        }
    }
    /// Appends an event that was made in these calls.
    pub fn push_in(&mut self, event: InputEvent, stack: Option<StackId>) {
        if let Some(stack) = stack {
            self.stack.set(self.len(), stack);
        }
        self.push(event);
    }
    /// The call stack of the `i`-th event, if it is known.
    pub fn stack(&self, i: usize) -> Option<StackId> {
        self.stack.get(i)
    }
    /// The call stacks of its events.
    pub fn stacks(&self) -> &StackColumn {
        &self.stack
    }
    pub(crate) fn stacks_mut(&mut self) -> &mut StackColumn {
        &mut self.stack
    }
    /// Appends events of another batch.
    pub(crate) fn append(&mut self, other: &InputBatch, events: std::ops::Range<usize>) {
        self.stack.append(self.len(), &other.stack, events.clone());
        self.meta.extend_from_slice(&other.meta[events.clone()]);
        self.object.extend_from_slice(&other.object[events.clone()]);
        self.value.extend_from_slice(&other.value[events.clone()]);
        self.loc.extend_from_slice(&other.loc[events]);
    }
    /// All its events, in columns.
    pub(crate) fn columns(&self) -> AccessRun<'_> {
        AccessRun { meta: &self.meta, object: &self.object, value: &self.value, loc: &self.loc }
    }
    /// The `i`-th event of the batch.
    #[inline]
    pub fn get(&self, i: usize) -> InputEvent {
        let meta = self.meta[i];
        InputEvent {
            thread: ThreadId(meta >> THREAD_SHIFT),
            // Only `push` and checked decoders fill the column, so the code is one that `code` returned.
            op: InputOp::from_code((meta & (HAS_VALUE - 1)) as u16).unwrap_or(InputOp::Branch),
            object: self.object[i],
            value: (meta & HAS_VALUE != 0).then_some(self.value[i]),
            loc: self.loc[i],
        }
    }
    /// The columns of a run of accesses that starts at event `from`: empty if that is no access.
    pub(crate) fn accesses(&self, from: usize) -> AccessRun<'_> {
        let metas = &self.meta[from..];
        let len = prefix(metas, |meta| meta & (HAS_VALUE - 1) < ACCESS_CODES);
        AccessRun {
            meta: &metas[..len],
            object: &self.object[from..from + len],
            value: &self.value[from..from + len],
            loc: &self.loc[from..from + len],
        }
    }
    /// The events of the batch.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = InputEvent> {
        (0..self.len()).map(|i| self.get(i))
    }
    /// The position of the `i`-th event, for error messages.
    pub fn position(&self, i: usize) -> Position {
        let index = self.first + i as u64;
        match &self.place {
            BatchPlace::Memory => Position::Event { index, line: None, byte: None },
            BatchPlace::Chunk(byte) => Position::Event { index, line: None, byte: Some(*byte) },
            BatchPlace::Lines { first, skips } => {
                let skipped: u64 =
                    skips.iter().take_while(|(at, _)| *at as usize <= i).map(|(_, n)| u64::from(*n)).sum();
                Position::Event { index, line: Some(first + i as u64 + skipped), byte: None }
            }
        }
    }
}

/// How far a source has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes (or events, for sources without bytes) done.
    pub done: u64,
    /// Of how many, where that is known.
    pub total: Option<u64>,
}

/// Input events, batch by batch, so that nobody has to hold them all.
pub trait InputSource {
    /// Replaces the contents of `batch` by the next events; `false` at the end, with an empty batch.
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError>;
    /// The names so far. A source whose variables are byte ranges knows all of those before its first batch.
    fn names(&self) -> &Names;
    /// Takes the names out, once the source is at its end.
    fn take_names(&mut self) -> Names;
    /// How far it has come.
    fn progress(&self) -> Progress;
    /// How many events there are, where that is known beforehand.
    fn expected_events(&self) -> Option<u64> {
        None
    }
    /// What a damaged input lost, known once the source is at its end; `None` if nothing.
    fn missing(&self) -> Option<String> {
        None
    }
    /// Takes the formulas out, once the source is at its end; `None` if there are none.
    fn take_formulas(&mut self) -> Result<Option<Formulas>, TraceError> {
        Ok(None)
    }
}

impl<S: InputSource + ?Sized> InputSource for Box<S> {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        (**self).next_batch(batch)
    }
    fn names(&self) -> &Names {
        (**self).names()
    }
    fn take_names(&mut self) -> Names {
        (**self).take_names()
    }
    fn progress(&self) -> Progress {
        (**self).progress()
    }
    fn expected_events(&self) -> Option<u64> {
        (**self).expected_events()
    }
    fn missing(&self) -> Option<String> {
        (**self).missing()
    }
    fn take_formulas(&mut self) -> Result<Option<Formulas>, TraceError> {
        (**self).take_formulas()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_one_code_and_one_text() {
        let mut texts = std::collections::BTreeSet::new();
        for op in InputOp::all() {
            assert_eq!(InputOp::from_code(op.code()), Some(op));
            assert!(op.code() < 512);
            if u32::from(op.code()) >= ACCESS_CODES {
                assert!(texts.insert(op.text()));
                assert_eq!(InputOp::from_text(op.text().as_bytes()), Some(op));
            }
        }
        assert_eq!(texts.len(), InputOp::SIMPLE.len());
    }

    #[test]
    fn a_batch_gives_back_what_was_pushed_and_knows_its_lines() {
        let mut batch = InputBatch::default();
        batch.restart(100, BatchPlace::Lines { first: 7, skips: vec![(1, 2)] });
        for (i, value) in [None, Some(-1), Some(i64::MAX)].into_iter().enumerate() {
            let event = InputEvent {
                thread: ThreadId::new((1 << 22) - 1),
                op: InputOp::Write(WriteOrder::SeqCst),
                object: 3,
                value,
                loc: LocId::from_number(12).unwrap(),
            };
            batch.push(event);
            assert_eq!(batch.get(i), event);
        }
        assert_eq!(batch.position(0), Position::Event { index: 100, line: Some(7), byte: None });
        assert_eq!(batch.position(2), Position::Event { index: 102, line: Some(11), byte: None });
    }
}
