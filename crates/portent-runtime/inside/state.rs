//! What the runtime knows of a thread, and how it finds the thread it runs in.

use crate::log::{self, ThreadRow, Trail, op};
use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst, compiler_fence};

/// What must hold before a waiting thread's operation is possible. Looked at by the scheduler, without side effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wait {
    /// Always possible.
    #[default]
    Nothing,
    /// A `pthread_mutex_t` here is free.
    Mutex(usize),
    /// A `pthread_spinlock_t`.
    Spin(usize),
    /// A `pthread_rwlock_t`, for reading.
    RwRead(usize),
    /// The same, for writing.
    RwWrite(usize),
    /// A notify of this condition, after the thread's sleep.
    Condition(usize),
    /// A wake of this futex word, after the thread's sleep.
    Futex(usize),
    /// The thread has ended.
    Join(u32),
    /// A `sem_t` with a count above 0.
    Semaphore(usize),
    /// An annotated lock, for reading: nobody else has it for writing.
    AnnotatedRead(usize),
    /// The same, for writing: nobody else has it.
    AnnotatedWrite(usize),
    /// A read-write lock that prefers writers, of which one came first.
    RwReadBehind(usize),
    /// The round of this barrier that the thread arrived at is over.
    Barrier(usize),
    /// The initialiser of this once (or guard) has ended, one way or the other.
    Once(usize),
    /// Time: like everything with a deadline, possible when nothing else is.
    Sleep,
    /// Something that the iteration of a loop looks at changes ([`crate::spin`]).
    Change,
    /// A system call would not block: what it waits for is in [`Thread::asks`].
    Ready,
    /// Everybody else has finished or is stuck.
    Exit,
}

/// The operation that a thread is about to execute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    pub op: u16,
    pub address: usize,
    pub size: usize,
    pub pc: usize,
    pub wait: Wait,
    /// Virtual time at which it happens anyway; 0 if never, [`BY_ITSELF`] if at any time or never.
    pub deadline: i64,
}

/// The deadline of a wait that no time ends, but a plan or chance may.
pub const BY_ITSELF: i64 = i64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Life {
    #[default]
    Unused = 0,
    /// Has the token.
    Running = 1,
    /// Waits for the token, with `pending` filled in.
    Waiting = 2,
    /// In a system call, without the token.
    Away = 3,
    Done = 4,
    /// A fiber that does not run: another one does in its place.
    Parked = 5,
}

/// A plain write whose value is read back when the thread next enters the runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnreadWrite {
    pub pc: usize,
    pub address: usize,
    /// 0: there is none. [`UnreadWrite::TEXT`] set: a C string, of at most so many bytes.
    pub size: usize,
    pub op: u16,
}

impl UnreadWrite {
    /// The length of what is written is that of the C string found there afterwards.
    pub const TEXT: usize = 1 << 63;
    /// Nothing is unread, but the token was taken away: see [`crate::sched::regain`].
    pub const TOKEN_LOST: usize = 1 << 62;
    /// It is recorded; but if something else is found there now than `pc`, the last two events were a copy.
    pub const PERHAPS_COPIED: usize = 1 << 61;
}

#[repr(C, align(128))]
#[derive(Default)]
pub struct Thread {
    /// 1 inside the runtime: whatever calls it then (a signal handler, the C library) is passed straight on.
    pub inside: u32,
    pub id: u32,
    /// It begins a parallel region of OpenMP: threads that it makes are of the team, and wait in its library.
    pub starts_team: bool,
    /// Where the stack pointer is in the functions it is in ([`crate::access::caller`]), and how many these are.
    pub frames: [usize; FRAMES],
    pub depth: usize,
    /// It waits in OpenMP's library for work, as it does until the process ends.
    pub is_spare: bool,
    /// Barriers of its team that it has passed.
    pub barriers: u64,
    /// It has failed, and will end the process.
    pub has_failed: bool,
    /// Events executed.
    pub events: u64,
    /// When `events` reaches this, the scheduler is asked: `until`, or earlier if the plan has a signal for it or it is watched.
    pub stop: u64,
    /// When `events` reaches this, its turn is over.
    pub until: u64,
    /// The plan's next signal for it: after how many events, which, and whether it comes while the thread waits.
    pub signal_at: u64,
    pub signal_planned: u32,
    pub signal_waits: bool,
    /// Whether another process sent it.
    pub signal_foreign: bool,
    /// For a debugger: it stops before its event of this number, plus one; 0 nowhere. Or where it next gets its turn.
    pub break_after: u64,
    pub stops: bool,
    /// Next answer of the plan to look at for signals.
    pub signal_answer: usize,
    pub unread: UnreadWrite,
    /// How many events there were when a write was last read back, and how many bytes that wrote: see [`crate::access`].
    pub last_write: (u64, usize),
    /// The size of the unread write, while [`UnreadWrite::TOKEN_LOST`] stands in its place and nobody has recorded it.
    pub put_aside: usize,
    /// Events of it that the plan's steps have had so far.
    pub planned: u64,
    /// For the recording.
    pub trail: Trail,
    pub life: Life,
    /// Whether it has the token (`sched::turn`). The thread sleeps on this word.
    pub turn: AtomicU32,
    pub pending: Pending,
    /// Set by whoever grants: the operation happens because its deadline has passed.
    pub timed_out: bool,
    /// What its system call waits for.
    pub asks: crate::readiness::Question,
    /// Set by whoever grants: the call is not possible, and the thread is to wait in the kernel, for others than this process.
    pub goes_outside: bool,
    /// A cancellation is on its way.
    pub cancelled: bool,
    /// The program does not want it yet.
    pub cancel_disabled: bool,
    /// The program wants it anywhere, not only at cancellation points.
    pub cancel_anywhere: bool,
    /// It waits in a system call, outside the scheduler: a handler may take the token and run.
    pub in_call: bool,
    /// A handler that ran in the call wants it to end with EINTR.
    pub call_broken: bool,
    /// It has just been waiting for something, which handlers that run now interrupt.
    pub waited: bool,
    /// A handler ran while it waited, and the wait ends with EINTR.
    pub interrupted: bool,
    /// For conditions and futexes: when it fell asleep, and whether it was notified by name (broadcast, futex wake).
    pub slept: u64,
    pub asleep_on: usize,
    /// For futexes: the word it fell asleep on, and which wakes it waits for.
    pub fell_asleep_on: usize,
    pub bits: u32,
    pub notified: bool,
    /// A wait of its on a condition has ended by itself: no other does.
    pub woke_by_itself: bool,
    /// For barriers: the round it arrived at.
    pub round: u64,
    /// What it has looked at since it last changed something.
    pub spins: crate::spin::Spins,
    /// The last atomic read, to notice spinning that is not only looking.
    pub same: (usize, usize, u64),
    pub same_times: u32,
    /// Its turn was taken away: it let others run on purpose (spinning, `sched_yield`) or slept in the kernel.
    pub yielded: bool,
    pub priority: u64,
    pub parent: u32,
    pub child_number: u32,
    pub children: u32,
    pub tid: u32,
    pub pthread: usize,
    /// Where its stack ends.
    pub stack_end: usize,
    pub detached: bool,
    /// The signal mask that it begins with.
    pub mask: u64,
    pub routine: usize,
    pub argument: usize,
    /// Where the program called what calls `malloc` or `free` for it (`operator new`, `strdup`).
    pub allocation_pc: usize,
    /// And which kind of allocation or free that is.
    pub allocation_family: crate::blocks::Family,
    /// Where it last threw an exception, and of which type (a `std::type_info`).
    pub thrown: (usize, usize),
    /// Where the program had called what threw it, the innermost first, then zeros.
    pub thrown_by: [usize; crate::throw::CALLS],
    /// The descriptor that the system call it is in works on, plus one; 0: none.
    pub descriptor: usize,
    /// Where libstdc++ was asked to start or join a thread, and where on the stack that was.
    pub asked: (usize, usize),
    /// How deep it is in the code of annotated locks: atomic operations there are how the lock is made, and no events.
    pub quiet: u32,
    /// How often it has waited for others without an event, and how many events it had then.
    pub idle: (u64, u32),
    /// How often the program asked that its synchronisation be ignored.
    pub ignores_order: u32,
    /// Next answer of the plan to look at, for this thread.
    pub answer: usize,
    /// Signals put off until the thread leaves the runtime.
    pub signals: u64,
    /// Those of them that another process sent.
    pub foreign: u64,
    /// Signals that came while a plan was followed and had not let them happen.
    pub withheld: AtomicU64,
    /// Others hold pointers to this while its thread runs: with this, the compiler does not take a `&mut Thread` for the
    /// only way to it.
    pub shared: std::marker::PhantomPinned,
    /// Neighbours in the list of those not done; 0 is none, otherwise id + 1.
    pub next_live: u32,
    pub previous_live: u32,
}

/// The innermost calls of a thread that are known.
pub const FRAMES: usize = 32;

const MOST: usize = log::MAX_THREADS;

/// The threads, by number. In zeroed memory of the library: pages that are never touched cost nothing.
struct Table(std::cell::UnsafeCell<std::mem::MaybeUninit<[Thread; MOST]>>);
// SAFETY: see the state inventory in lib.rs: the token and the scheduler's lock keep threads apart.
unsafe impl Sync for Table {}
static THREADS: Table = Table(std::cell::UnsafeCell::new(std::mem::MaybeUninit::zeroed()));

/// The thread with this number.
#[inline(always)]
pub fn thread(id: u32) -> *mut Thread {
    debug_assert!((id as usize) < MOST);
    THREADS.0.get().cast::<Thread>().wrapping_add(id as usize)
}

// The running thread's own `Thread`, in static thread-local storage of the initial-exec kind: two instructions to read,
// no call, no allocation. Rust's `thread_local!` would call `__tls_get_addr` and register destructors.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 8",
    ".hidden portent_self",
    ".type portent_self,@object",
    ".size portent_self,8",
    "portent_self:",
    ".zero 8",
    // What the registers were that calls keep, and the stack pointer, when the thread last called what may be part of a loop that only
    // looks (entry.rs).
    ".hidden portent_registers",
    ".type portent_registers,@object",
    ".size portent_registers,56",
    "portent_registers:",
    ".zero 56",
    ".popsection",
);

/// The current thread's state; null while nothing is recorded or the thread is not known.
#[inline(always)]
pub fn current() -> *mut Thread {
    let found: *mut Thread;
    // SAFETY: reads this thread's copy of portent_self.
    unsafe {
        asm!("mov {0}, qword ptr [rip + portent_self@GOTTPOFF]", "mov {0}, qword ptr fs:[{0}]", out(reg) found,
             options(nostack, preserves_flags, readonly));
    }
    found
}

/// The registers that calls keep, and last the stack pointer, when this thread last called what may be part of a loop that only looks.
pub fn registers() -> [usize; 7] {
    let at: usize;
    let base: usize;
    // SAFETY: this thread's copy of portent_registers; the first word of thread-local storage holds its own address.
    unsafe {
        asm!("mov {0}, qword ptr [rip + portent_registers@GOTTPOFF]", "mov {1}, qword ptr fs:[0]", out(reg) at, out(reg) base,
             options(nostack, preserves_flags, readonly));
        *(base.wrapping_add(at) as *const [usize; 7])
    }
}

/// Makes `thread` the current thread's state.
pub fn set_current(thread: *mut Thread) {
    // SAFETY: writes this thread's copy of portent_self.
    unsafe {
        asm!("mov {0}, qword ptr [rip + portent_self@GOTTPOFF]", "mov qword ptr fs:[{0}], {1}", out(reg) _,
             in(reg) thread, options(nostack, preserves_flags));
    }
}

/// Enters the runtime; `None` if nothing is to be recorded: not recording, an unknown thread, or already inside.
#[inline(always)]
pub fn enter() -> Option<&'static mut Thread> {
    let thread = current();
    // SAFETY: `current` is null or this thread's own state, which lives for ever and which only this thread uses while
    // it runs; `inside` keeps a second reference from being made by a nested call.
    unsafe {
        if thread.is_null() || (*thread).inside != 0 {
            return None;
        }
        (*thread).inside = 1;
        // In this order for signal handlers of this thread, and for `sched::take_away`.
        compiler_fence(SeqCst);
        let thread = &mut *thread;
        if thread.unread.size != 0 {
            crate::record::read_back(thread);
        }
        if thread.signals != 0 {
            thread.inside = 0;
            crate::signals::deliver(thread);
            thread.inside = 1;
        }
        Some(thread)
    }
}

/// Leaves it before an access that the program performs itself: handlers that were put off wait for the next entry, so that
/// they do not come between what is recorded of the access and the access.
#[inline(always)]
pub fn leave_before_access(thread: &mut Thread) {
    thread.inside = 0;
}

/// Leaves it again, and runs the signal handlers that were put off.
#[inline(always)]
pub fn leave(thread: &mut Thread) {
    compiler_fence(SeqCst);
    thread.inside = 0;
    compiler_fence(SeqCst);
    // Not between the announcement of a write and the write.
    if thread.signals != 0 && thread.unread.size == 0 {
        crate::signals::deliver(thread);
    }
}

impl Thread {
    /// Gives it a turn that lasts until it has executed so many events in all.
    pub fn allow(&mut self, until: u64) {
        self.until = until;
        self.stop = if self.spins.watched { 0 } else { self.turn_ends().min(self.spins.check_at) };
    }
    /// When `events` reaches this, its turn is over or something is to happen.
    pub fn turn_ends(&self) -> u64 {
        let end = if self.signal_at >= self.events { self.until.min(self.signal_at) } else { self.until };
        if self.break_after > self.events { end.min(self.break_after - 1) } else { end }
    }
    /// Whether it waits for a system call to become possible.
    pub fn is_in_call(&self) -> bool {
        self.life == Life::Away || (self.life == Life::Waiting && self.pending.wait == Wait::Ready)
    }
    /// Whether waits at cancellation points end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled && !self.cancel_disabled
    }
    /// Publishes what the thread is about to do, for whoever reads the recording after a crash.
    pub fn publish(&self) {
        let row = crate::record::row(self.id);
        if row.is_null() {
            return;
        }
        let Pending { op, address, size, pc, .. } = self.pending;
        // SAFETY: the row of this thread in the mapped recording.
        unsafe {
            *row = ThreadRow {
                life: self.life as u32,
                pending: u32::from(if self.life == Life::Waiting { op } else { 0 }),
                address: address as u64,
                size: size as u64,
                pc: pc as u64,
                events: self.events,
                tid: u64::from(self.tid),
                spare: [0; 2],
            };
        }
    }
}

/// An operation that is always possible.
pub fn plain(op: u16, address: usize, pc: usize) -> Pending {
    Pending { op, address, pc, ..Pending::default() }
}

/// The pending operation of a thread that has not reached its first event.
pub fn not_started() -> Pending {
    Pending { op: op::START, ..Pending::default() }
}
