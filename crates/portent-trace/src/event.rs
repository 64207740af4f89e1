//! The kernel: the few operations that engines know (docs/src/internals/semantics.md §1).
//!
//! Everything a front end records is lowered to these by [`crate::lower`], so no engine ever has to know what a
//! barrier is. Types forbid nonsense: a load cannot carry `Release`, an update is always atomic.

use crate::ids::{BlockId, CondId, EventId, LocId, LockId, SemId, ThreadId, TokenId, VarId};

/// How a read touches memory: plainly, or atomically with an order a load may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReadOrder {
    /// Not atomic: races with any conflicting access of another thread.
    Plain,
    /// `memory_order_relaxed`.
    Relaxed,
    /// `memory_order_consume`.
    Consume,
    /// `memory_order_acquire`.
    Acquire,
    /// `memory_order_seq_cst`.
    SeqCst,
}

/// How a write touches memory: plainly, or atomically with an order a store may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WriteOrder {
    /// Not atomic: races with any conflicting access of another thread.
    Plain,
    /// `memory_order_relaxed`.
    Relaxed,
    /// `memory_order_release`.
    Release,
    /// `memory_order_seq_cst`.
    SeqCst,
}

/// The memory order of an atomic read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UpdateOrder {
    /// `memory_order_relaxed`.
    Relaxed,
    /// `memory_order_consume`.
    Consume,
    /// `memory_order_acquire`.
    Acquire,
    /// `memory_order_release`.
    Release,
    /// `memory_order_acq_rel`.
    AcqRel,
    /// `memory_order_seq_cst`; what a bare `u(x)` means.
    SeqCst,
}

/// What a fence does to the atomic accesses around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FenceOrder {
    /// What the thread's earlier atomic reads saw is acquired here.
    Acquire,
    /// What was done before is released by the thread's later atomic writes.
    Release,
    /// Both; sequentially consistent fences, too, as every order of events is.
    AcqRel,
}

impl FenceOrder {
    /// Whether it acquires.
    pub fn acquires(self) -> bool {
        self != FenceOrder::Release
    }
    /// Whether it releases.
    pub fn releases(self) -> bool {
        self != FenceOrder::Acquire
    }
}

/// What is no more after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Memory that is given back.
    Memory,
    /// A lock, a condition or the like.
    Object,
}

/// Exclusive or shared holding of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// A mutex, or the writer's side of a read-write lock.
    Exclusive,
    /// The reader's side of a read-write lock.
    Shared,
}

impl Mode {
    /// Whether one thread holding in `self` keeps another from acquiring in `other`.
    pub fn conflicts_with(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// Whether a notify wakes one sleeper or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// `signal`, `notify`, `notify_one`.
    One,
    /// `broadcast`, `notifyAll`, `notify_all`.
    All,
}

/// What an ordering token stands for, for those who tell users about it; objects are numbers in the table of their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// A thread starts after its fork.
    Fork(ThreadId),
    /// A thread has ended before its join.
    Join(ThreadId),
    /// A token of the input's own.
    Named(u32),
    /// A notify that is a token, because its name is used with `wai`.
    Notify(CondId),
    /// A latch that is counted down, or a future that is set.
    Latch(u32),
    /// A round of a barrier.
    Barrier(u32),
    /// A once whose initialiser has run.
    Once(LockId),
}

/// A kernel operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `r x`
    Read(VarId, ReadOrder),
    /// `w x`
    Write(VarId, WriteOrder),
    /// `u x`: reads, then writes, in one step.
    Update(VarId, UpdateOrder),
    /// `acq l`, `acqs l`
    Acquire(LockId, Mode),
    /// `rel l`, `rels l`
    Release(LockId, Mode),
    /// `busy l`, `busys l`: a failed try-lock; saw a conflicting holder.
    Busy(LockId, Mode),
    /// `snd k`
    Send(TokenId),
    /// `rcv k`: possible once every `snd k` of the trace has happened.
    Receive(TokenId),
    /// `slp c`: starts to wait on a condition.
    Sleep(CondId),
    /// `ntf c`
    Notify(CondId, Reach),
    /// `wake c`: if a notify woke it, [`crate::Trace::pairing_of_wake`] says which.
    Wake(CondId),
    /// `post s`: adds one to the count of a semaphore.
    Post(SemId),
    /// `semw s`: takes one from the count, which must not be zero. Whose post that was nobody can tell.
    Wait(SemId),
    /// `semf s`: a failed try to take one; saw a count of zero.
    Empty(SemId),
    /// `begin b`: the outermost begin of an atomic block.
    Begin(BlockId),
    /// `end b`
    End(BlockId),
    /// Control flow after this point may depend on every earlier read of the thread.
    Branch,
    /// A fence. Always possible, and nothing changes: only the language's happens-before knows it.
    Fence(FenceOrder),
}

impl Op {
    /// The variable this event touches, if it is an access.
    #[inline]
    pub fn variable(self) -> Option<VarId> {
        match self {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => Some(x),
            _ => None,
        }
    }
    /// Whether this event reads a variable (updates do).
    #[inline]
    pub fn reads(self) -> bool {
        matches!(self, Op::Read(..) | Op::Update(..))
    }
    /// Whether this event writes a variable (updates do).
    #[inline]
    pub fn writes(self) -> bool {
        matches!(self, Op::Write(..) | Op::Update(..))
    }
    /// Whether this is an atomic access.
    #[inline]
    pub fn is_atomic(self) -> bool {
        match self {
            Op::Read(_, order) => order != ReadOrder::Plain,
            Op::Write(_, order) => order != WriteOrder::Plain,
            Op::Update(..) => true,
            _ => false,
        }
    }
    /// Whether the two operations access one variable and at least one of them writes it.
    #[inline]
    pub fn conflicts_with(self, other: Op) -> bool {
        match (self.variable(), other.variable()) {
            (Some(x), Some(y)) => x == y && (self.writes() || other.writes()),
            _ => false,
        }
    }

    /// The short name used in texts about kernel events.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read(..) => "read",
            Op::Write(..) => "write",
            Op::Update(..) => "update",
            Op::Acquire(_, Mode::Exclusive) => "acquire",
            Op::Acquire(_, Mode::Shared) => "acquire shared",
            Op::Release(_, Mode::Exclusive) => "release",
            Op::Release(_, Mode::Shared) => "release shared",
            Op::Busy(_, Mode::Exclusive) => "failed try",
            Op::Busy(_, Mode::Shared) => "failed shared try",
            Op::Send(_) => "send",
            Op::Receive(_) => "receive",
            Op::Sleep(_) => "sleep",
            Op::Notify(_, Reach::One) => "notify",
            Op::Notify(_, Reach::All) => "notify all",
            Op::Wake(_) => "wake",
            Op::Post(_) => "post",
            Op::Wait(_) => "semaphore wait",
            Op::Empty(_) => "failed semaphore try",
            Op::Begin(_) => "begin",
            Op::End(_) => "end",
            Op::Branch => "branch",
            Op::Fence(FenceOrder::Acquire) => "acquire fence",
            Op::Fence(FenceOrder::Release) => "release fence",
            Op::Fence(FenceOrder::AcqRel) => "fence",
        }
    }

    /// The operation as (code, object), for columns. The code has eight bits: five of kind, three of order.
    #[inline]
    pub(crate) fn pack(self) -> (u8, u32) {
        match self {
            Op::Read(x, o) => (o as u8, x.0),
            Op::Write(x, o) => (1 << 3 | o as u8, x.0),
            Op::Update(x, o) => (2 << 3 | o as u8, x.0),
            Op::Acquire(l, m) => (3 << 3 | m as u8, l.0),
            Op::Release(l, m) => (4 << 3 | m as u8, l.0),
            Op::Busy(l, m) => (5 << 3 | m as u8, l.0),
            Op::Send(k) => (6 << 3, k.0),
            Op::Receive(k) => (7 << 3, k.0),
            Op::Sleep(c) => (8 << 3, c.0),
            Op::Notify(c, r) => (9 << 3 | r as u8, c.0),
            Op::Wake(c) => (10 << 3, c.0),
            Op::Begin(b) => (11 << 3, b.0),
            Op::End(b) => (12 << 3, b.0),
            Op::Branch => (13 << 3, 0),
            Op::Post(s) => (14 << 3, s.0),
            Op::Wait(s) => (15 << 3, s.0),
            Op::Empty(s) => (16 << 3, s.0),
            Op::Fence(o) => (17 << 3 | o as u8, 0),
        }
    }

    /// The inverse of [`Op::pack`]; codes come from `pack` only.
    #[inline]
    pub(crate) fn unpack(code: u8, object: u32) -> Op {
        let low = code & 7;
        let mode = if low & 1 == 0 { Mode::Exclusive } else { Mode::Shared };
        match code >> 3 {
            0 => Op::Read(VarId(object), READ_ORDERS[low as usize % READ_ORDERS.len()]),
            1 => Op::Write(VarId(object), WRITE_ORDERS[low as usize % WRITE_ORDERS.len()]),
            2 => Op::Update(VarId(object), UPDATE_ORDERS[low as usize % UPDATE_ORDERS.len()]),
            3 => Op::Acquire(LockId(object), mode),
            4 => Op::Release(LockId(object), mode),
            5 => Op::Busy(LockId(object), mode),
            6 => Op::Send(TokenId(object)),
            7 => Op::Receive(TokenId(object)),
            8 => Op::Sleep(CondId(object)),
            9 => Op::Notify(CondId(object), if low == 0 { Reach::One } else { Reach::All }),
            10 => Op::Wake(CondId(object)),
            11 => Op::Begin(BlockId(object)),
            12 => Op::End(BlockId(object)),
            14 => Op::Post(SemId(object)),
            15 => Op::Wait(SemId(object)),
            16 => Op::Empty(SemId(object)),
            17 => Op::Fence(FENCE_ORDERS[low as usize % FENCE_ORDERS.len()]),
            _ => Op::Branch,
        }
    }
}

/// In the code of an acquire: it is a try.
pub(crate) const TRIES: u8 = 2;
/// The code of an acquire, and the bits of it that say how.
pub(crate) const ACQUIRES: u8 = 3 << 3;
pub(crate) const TRIED_MODES: u8 = TRIES | 1;

pub(crate) const READ_ORDERS: [ReadOrder; 5] =
    [ReadOrder::Plain, ReadOrder::Relaxed, ReadOrder::Consume, ReadOrder::Acquire, ReadOrder::SeqCst];
pub(crate) const WRITE_ORDERS: [WriteOrder; 4] =
    [WriteOrder::Plain, WriteOrder::Relaxed, WriteOrder::Release, WriteOrder::SeqCst];
pub(crate) const FENCE_ORDERS: [FenceOrder; 3] = [FenceOrder::Acquire, FenceOrder::Release, FenceOrder::AcqRel];
pub(crate) const UPDATE_ORDERS: [UpdateOrder; 6] = [
    UpdateOrder::Relaxed,
    UpdateOrder::Consume,
    UpdateOrder::Acquire,
    UpdateOrder::Release,
    UpdateOrder::AcqRel,
    UpdateOrder::SeqCst,
];

/// One kernel event, unpacked from its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in the trace.
    pub id: EventId,
    /// Who did it.
    pub thread: ThreadId,
    /// What it did.
    pub op: Op,
    /// The value read (of a read) or written (of a write or an update), where it is known.
    pub value: Option<i64>,
    /// Where in the source.
    pub loc: LocId,
    /// Of an acquire: its thread does not wait there for ever, it only tries ([`crate::Trace::tries`]).
    pub tries: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_survives_packing() {
        let mut ops = vec![Op::Branch, Op::Send(TokenId(3)), Op::Receive(TokenId(3)), Op::Sleep(CondId(1))];
        ops.extend([Op::Wake(CondId(1)), Op::Begin(BlockId(9)), Op::End(BlockId(9))]);
        ops.extend([Op::Post(SemId(4)), Op::Wait(SemId(4)), Op::Empty(SemId(4))]);
        ops.extend([Op::Notify(CondId(1), Reach::One), Op::Notify(CondId(1), Reach::All)]);
        ops.extend(READ_ORDERS.map(|o| Op::Read(VarId(5), o)));
        ops.extend(WRITE_ORDERS.map(|o| Op::Write(VarId(5), o)));
        ops.extend(FENCE_ORDERS.map(Op::Fence));
        ops.extend(UPDATE_ORDERS.map(|o| Op::Update(VarId(5), o)));
        for mode in [Mode::Exclusive, Mode::Shared] {
            ops.extend([Op::Acquire(LockId(2), mode), Op::Release(LockId(2), mode), Op::Busy(LockId(2), mode)]);
        }
        for op in ops {
            let (code, object) = op.pack();
            assert_eq!(Op::unpack(code, object), op);
        }
    }

    #[test]
    fn an_update_conflicts_with_reads_and_writes_alike() {
        let update = Op::Update(VarId(0), UpdateOrder::SeqCst);
        assert!(update.conflicts_with(Op::Read(VarId(0), ReadOrder::Plain)));
        assert!(update.conflicts_with(Op::Write(VarId(0), WriteOrder::Plain)));
        assert!(update.conflicts_with(update));
        assert!(!update.conflicts_with(Op::Write(VarId(1), WriteOrder::Plain)));
        assert!(!Op::Read(VarId(0), ReadOrder::Plain).conflicts_with(Op::Read(VarId(0), ReadOrder::Plain)));
    }
}
