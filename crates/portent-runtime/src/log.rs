//! The recording: what the runtime writes into a mapped file while the program runs.
//!
//! ```text
//! header (4,096 bytes) | thread table | records …
//! ```
//!
//! One thread runs at a time, so there is one stream of records, in the order in which things happened. A record is an
//! *event* (exactly one input event of the trace) or a *note* (everything else: who runs now, allocations, modules, …).
//!
//! **Every event has the same form.** A 16-bit header, then only what could not be foretold:
//!
//! | bits | what |
//! |---|---|
//! | 0–8 | operation: the code that the trace format gives it (kind · 8 + memory order) |
//! | 9–11 | size: 0 no value; 1, 2, 3, 4: an access of 1, 2, 4, 8 bytes with its value; 5 access of 16 bytes, no value; 6 access of any size, no value |
//! | 12 | the site is the one that followed the thread's last site before |
//! | 13–14 | address: 0 as far from the site's last address as that was from the one before; 1 `i8` from the last; 2 `i32` from the last; 3 absolute `u64` |
//! | 15 | the value is what was last seen at the address |
//!
//! Then, if the site was not foretold, a `u16`: its slot in the table of sites, or [`NEW_SITE`] and the program counter as
//! `u64`; then the address; then for size 6 the size as `u32`; then the value, in as many bytes as the access has (8 for
//! operations that are no accesses). A `ret` has no address. Both sides keep the same two tables: sites by a hash of their
//! program counter, and values by a hash of their address. A typical event takes 2 to 7 bytes.
//!
//! The value of a `call` is a [`CallFrame`]: where the function's locals are. It is foretold if the frame has the form and the
//! distance from the frame of the thread's last call that it had before at the site; with size 2 it is only the distance, in
//! units of 16 bytes.
//!
//! A note has an operation from [`note::FIRST`] on and no other bits; a `u32` length and that many bytes follow.
//!
//! **Whatever happens, the recording is whole up to its last record.** Unwritten space is zero, no header is zero, and a
//! header is written after the rest of its record: the stream ends at the first header that is zero.

/// Descriptors are objects too: the number of a descriptor, plus [`DESCRIPTORS_EACH`] for each time it was closed, counted from
/// here, where no memory can be.
pub const DESCRIPTORS: u64 = 0xFD00_0000_0000_0000;
/// So many descriptors are told apart.
pub const DESCRIPTORS_EACH: u64 = 4096;

/// First bytes of a recording.
pub const MAGIC: [u8; 8] = *b"PORTLOG4";
/// Where the thread table begins.
pub const THREADS_AT: usize = 4096;
/// How many threads a program can have over its life.
pub const MAX_THREADS: usize = 1 << 14;
/// Where the records begin.
pub const RECORDS_AT: usize = THREADS_AT + MAX_THREADS * size_of::<ThreadRow>();
/// No record that is no note is longer.
pub const MAX_EVENT: usize = 40;
/// Instead of a slot: the site is new to its slot, and its program counter follows.
pub const NEW_SITE: u16 = u16::MAX;

const SITE_BITS: u32 = 14;
const VALUE_BITS: u32 = 17;
const SITE_FORETOLD: u16 = 1 << 12;
const VALUE_FORETOLD: u16 = 1 << 15;
const SIZE_SHIFT: u32 = 9;
const ADDRESS_SHIFT: u32 = 13;
const OP_MASK: u16 = 511;

/// Operations, with the codes of the trace format (`InputOp::code` in portent-trace; a test holds them together).
#[allow(missing_docs)]
pub mod op {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 8;
    pub const UPDATE: u16 = 16;
    /// Operations below this are accesses.
    pub const ACCESSES: u16 = 24;
    pub const ACQUIRE: u16 = 3 << 3;
    pub const RELEASE: u16 = 4 << 3;
    pub const ACQUIRE_SHARED: u16 = 5 << 3;
    pub const RELEASE_SHARED: u16 = 6 << 3;
    pub const BUSY: u16 = 7 << 3;
    pub const BUSY_SHARED: u16 = 8 << 3;
    pub const RELEASE_ALL: u16 = 9 << 3;
    pub const ACQUIRE_ALL: u16 = 10 << 3;
    pub const FORK: u16 = 11 << 3;
    pub const JOIN: u16 = 12 << 3;
    pub const SEND: u16 = 13 << 3;
    pub const RECEIVE: u16 = 14 << 3;
    pub const SLEEP: u16 = 15 << 3;
    pub const NOTIFY: u16 = 16 << 3;
    pub const NOTIFY_ALL: u16 = 17 << 3;
    pub const WAKE: u16 = 18 << 3;
    pub const TIME_OUT: u16 = 19 << 3;
    pub const SEMAPHORE_INIT: u16 = 21 << 3;
    pub const POST: u16 = 22 << 3;
    pub const SEMAPHORE_WAIT: u16 = 23 << 3;
    pub const SEMAPHORE_BUSY: u16 = 24 << 3;
    pub const ARRIVE: u16 = 27 << 3;
    pub const DEPART: u16 = 28 << 3;
    pub const ONCE_BEGIN: u16 = 29 << 3;
    pub const ONCE_END: u16 = 30 << 3;
    pub const ONCE_PASS: u16 = 31 << 3;
    pub const BEGIN: u16 = 32 << 3;
    pub const END: u16 = 33 << 3;
    /// A blocking system call has returned, or the process ends: a point of the schedule, and nothing else.
    pub const BRANCH: u16 = 34 << 3;
    pub const CALL: u16 = 35 << 3;
    pub const RETURN: u16 = 36 << 3;
    /// The program declares that what the thread has done comes before every later [`HAPPENS_AFTER`] of the address.
    pub const HAPPENS_BEFORE: u16 = 40 << 3;
    pub const HAPPENS_AFTER: u16 = 41 << 3;
    /// A try, or a wait with a time limit, that took a lock.
    pub const TRY_ACQUIRE: u16 = 42 << 3;
    pub const TRY_ACQUIRE_SHARED: u16 = 43 << 3;
    /// A try, or a wait with a time limit, that passed a semaphore.
    pub const SEMAPHORE_TRY: u16 = 44 << 3;
    /// A notify ended a wait on a condition that had a time limit.
    pub const WAKE_IN_TIME: u16 = 45 << 3;
    /// A wait on a condition that had no time limit ended by itself ([`crate::plan::Header::spurious`]).
    pub const WAKE_BY_ITSELF: u16 = 53 << 3;
    pub const FENCE_ACQUIRE: u16 = 47 << 3;
    pub const FENCE_RELEASE: u16 = 48 << 3;
    pub const FENCE: u16 = 49 << 3;
    /// Only ever pending, never recorded: the thread is about to end a wait that is no event (a sleep, a system call).
    pub const RESUME: u16 = 50 << 3;
    /// Only ever pending: the thread wants to end the process.
    pub const EXIT: u16 = 51 << 3;
    /// Only ever pending: the thread has not reached its first event.
    pub const START: u16 = 52 << 3;
}

/// What the return of a system call ([`op::BRANCH`]) is; in place of an address.
pub mod call {
    /// What it gave may depend on what others did before.
    pub const ANY: usize = 0;
    /// Nothing that a thread sees depends on it: a sleep, a write to a file or to standard output, the end of the process.
    pub const TELLS: usize = 1;
}

/// Notes: records that are no events. Numbers are `u64` unless said otherwise; texts are UTF-8 and end the note.
pub mod note {
    /// Notes have operations from here on.
    pub const FIRST: u16 = 56 << 3;
    /// `u32` thread: records from here on are its.
    pub const SWITCH: u16 = FIRST;
    /// thread, parent, which child of the parent (from 0), kernel's thread id, start of its stack, end of its stack. (Main:
    /// parent is itself.) Twice for most threads: when it is made, the last three zero, and when it begins to run.
    pub const THREAD: u16 = FIRST + 1;
    /// thread, text: its name, as the program set it.
    pub const THREAD_NAME: u16 = FIRST + 2;
    /// thread: it has ended.
    pub const THREAD_END: u16 = FIRST + 3;
    /// address, size, program counter, kind ([`super::allocated`]): memory was allocated.
    pub const ALLOCATE: u16 = FIRST + 4;
    /// address, program counter, 1 if the block is not known to the runtime or 0: what was allocated there is free. If accesses
    /// there are recorded, the write that stands for freeing comes just before.
    pub const FREE: u16 = FIRST + 5;
    /// load bias, start, end, text: a module with its path, mapped there.
    pub const MODULE: u16 = FIRST + 6;
    /// kind ([`super::input`]), then the bytes of the answer: the thread asked the system something whose answer must be the same in a replay.
    pub const INPUT: u16 = FIRST + 7;
    /// kind ([`super::message`]), program counter, text.
    pub const MESSAGE: u16 = FIRST + 8;
    /// Nobody can move. Then for each thread that is not done: thread, pending operation, address, program counter.
    pub const DEADLOCK: u16 = FIRST + 9;
    /// The plan's steps are done, and its goal is examined. Then for each thread of the goal, in its order: thread,
    /// pending operation, address, size, program counter, whether it is enabled (1 or 0).
    pub const GOAL: u16 = FIRST + 10;
    /// step of the plan, thread, events of it left, why ([`super::diverged`]), the thread's pending operation, address, program counter: the plan could not be followed, and the program runs freely from here on.
    pub const DIVERGED: u16 = FIRST + 11;
    /// status: the program called exit or returned from main.
    pub const EXIT: u16 = FIRST + 12;
    /// The disk is full: nothing after this is recorded.
    pub const FULL: u16 = FIRST + 13;
    /// signal, address: a fatal signal that the program does not handle, at program counter (third number).
    pub const FATAL: u16 = FIRST + 14;
    /// signal, events of the thread so far, 1 if the thread waited (in a system call, for its turn) or 0: its handler runs.
    pub const SIGNAL: u16 = FIRST + 16;
    /// How many steps of the plan have been done when its end was reached.
    pub const PLAN_DONE: u16 = FIRST + 15;
    /// address: what was freed there can be given out again from here on.
    pub const RELEASE: u16 = FIRST + 17;
    /// kind ([`super::fault`]), address (or descriptor), program counter, the other thread plus one (0: none), text: memory or an
    /// object was used wrongly.
    pub const FAULT: u16 = FIRST + 18;
    /// address, program counter: a mutex, condition and the like was destroyed.
    pub const DESTROY: u16 = FIRST + 19;
    /// descriptor, program counter: it was closed.
    pub const CLOSE: u16 = FIRST + 20;
    /// program counter: SIGABRT ends the program, in this thread. Where it was called is in a message, if the program did.
    pub const ABORTED: u16 = FIRST + 21;
    /// program counter, text: the exception that `abort` was called with was thrown there; its type as the compiler encodes it.
    pub const THROWN: u16 = FIRST + 22;
    /// program counter: the thread fails here. The process goes on without it, and ends by that when no other thread can go on.
    pub const PARKED: u16 = FIRST + 26;
    /// As for [`DEADLOCK`], of those that were left when a failure ended the process that had waited for the others.
    pub const LEFT: u16 = FIRST + 27;
    /// One byte: 1, the thread's accesses are not to be looked at from here on, or 0, they are again. Nests.
    pub const IGNORE: u16 = FIRST + 32;
    /// address, size: the program declares that accesses there, as long as that memory is what it is, may race.
    pub const BENIGN: u16 = FIRST + 33;
    /// program counter, what ([`super::spins`]), events of the thread so far, events of an iteration: the thread spins there.
    pub const SPINS: u16 = FIRST + 25;
    /// text: what the block is called that the thread's next event begins.
    pub const BLOCK: u16 = FIRST + 24;
    /// program counters, the innermost first, then zeros: calls of the program that led to what the next [`THROWN`] tells.
    pub const THROWN_BY: u16 = FIRST + 42;
    /// address, size, text: what is there, for the program's whole life, is called so.
    pub const NAMED: u16 = FIRST + 41;
    /// value: what the thread's last event but one wrote. It had not been written yet when that was recorded: gcc announces
    /// both halves of a copy, `*a = *b`, before it copies.
    pub const COPIED: u16 = FIRST + 40;
}

/// What kind of memory a [`note::ALLOCATE`] is about.
pub mod allocated {
    /// What is there is not known.
    pub const HEAP: u64 = 0;
    /// All of it is zero.
    pub const ZEROED: u64 = 2;
}

/// What an [`note::INPUT`] answers.
#[allow(missing_docs)]
pub mod input {
    pub const TIME: u64 = 0;
    pub const RANDOM: u64 = 1;
    pub const PROCESS: u64 = 2;
    /// Bytes of a [`super::note::SIGNAL`].
    pub const SIGNAL: u64 = 3;
}

/// What a [`note::MESSAGE`] tells.
pub mod message {
    /// An assertion failed; the text is what the C library prints.
    pub const ASSERTION: u64 = 0;
    /// `abort` was called.
    pub const ABORT: u64 = 1;
    /// Something the runtime cannot order or record; the text says what.
    pub const WARNING: u64 = 2;
    /// The program learns something that comes from outside, there; the text says what it does. Once for each place.
    pub const OUTSIDE: u64 = 3;
    /// The text of those about what came from other processes.
    pub const FROM_NETWORK: &str = "receives from the network";
}

/// What a [`note::SPINS`] tells.
pub mod spins {
    /// The thread has seen the same and is as it was an iteration ago, and waits until what it looks at changes.
    pub const WAITS: u64 = 0;
    /// The same of a loop that does nothing but plain reads: whether the thread is as it was is not known.
    pub const PLAIN: u64 = 1;
    /// The loop has turned out to count its rounds.
    pub const COUNTS: u64 = 2;
}

/// What a [`note::FAULT`] tells.
#[allow(missing_docs)]
pub mod fault {
    pub const DOUBLE_FREE: u64 = 0;
    pub const BAD_FREE: u64 = 1;
    pub const DESTROYED_IN_USE: u64 = 2;
    pub const USED_AFTER_DESTROY: u64 = 3;
    pub const CLOSED_IN_USE: u64 = 4;
}

/// Why a plan could not be followed.
pub mod diverged {
    /// The thread does not exist.
    pub const NO_THREAD: u64 = 0;
    /// The thread has ended.
    pub const ENDED: u64 = 1;
    /// The thread's next operation is not possible now.
    pub const NOT_ENABLED: u64 = 2;
}

/// State of a recording, in [`Header::state`].
pub mod state {
    /// Nobody has claimed it: no instrumented program ran.
    pub const UNCLAIMED: u32 = 0;
    /// A program writes it, or died while it did.
    pub const RUNNING: u32 = 1;
    /// The program ended in an orderly way.
    pub const ENDED: u32 = 2;
    /// Nobody could move; the runtime stopped the program.
    pub const DEADLOCK: u32 = 3;
}

/// The first bytes of a recording.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// [`MAGIC`], written by the command that makes the file.
    pub magic: [u8; 8],
    /// The process that claimed the recording.
    pub pid: u32,
    /// See [`state`].
    pub state: u32,
    /// Threads so far.
    pub threads: u32,
    /// Events whose place in the schedule was lost: the program ran on without recording, or outside the token.
    pub unrecorded: u32,
    /// Bytes of the file that are allocated.
    pub allocated: u64,
    /// Switches from one thread to another so far.
    pub switches: u64,
    /// Processes that it has made so far.
    pub children: u64,
    /// 1: there was no room for all of it.
    pub full: u64,
}

/// One line of the thread table: what a thread was doing when it last gave the token away.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadRow {
    /// 0 unused, 1 running, 2 waiting for its turn or until its operation is possible, 3 in a system call, 4 done, 5 a fiber that does not run.
    pub life: u32,
    /// Its next operation, see [`op`]; valid while it waits.
    pub pending: u32,
    /// Object or address of that.
    pub address: u64,
    /// Size, for an access.
    pub size: u64,
    /// Where in the program.
    pub pc: u64,
    /// Events it has executed.
    pub events: u64,
    /// The kernel's id of it.
    pub tid: u64,
    /// Reserved.
    pub spare: [u64; 2],
}

/// An event as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// Operation code.
    pub op: u16,
    /// Program counter of the call into the runtime: the return address, so just behind the access.
    pub pc: u64,
    /// Address of the variable or object; for `call` the caller's return address; 0 for `ret`.
    pub address: u64,
    /// Bytes of an access; 0 for other operations.
    pub size: u32,
    /// The value, where it is known; zero-extended. Of a call: its [`CallFrame`].
    pub value: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct Site {
    pc: u64,
    last: u64,
    stride: u64,
    /// The slot of the site that came after it in its thread, the last time.
    next: u16,
    /// For calls: [`CallFrame::pointer`], and how far the frame was from that of the call before, in units of 16 bytes.
    pointer: u16,
    distance: i16,
}

/// Where the frame of a called function is, just behind its beginning: two registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFrame {
    /// The stack pointer, a multiple of 16.
    pub stack: u64,
    /// How far the frame pointer is above, in units of 8 bytes; 0 where the function has none.
    pub pointer: u16,
}

impl CallFrame {
    const UNIT: u32 = 4;
    const STACK_BITS: u32 = 48;

    /// As the value of an event.
    #[inline(always)]
    pub fn value(self) -> u64 {
        (self.stack >> Self::UNIT) & ((1 << Self::STACK_BITS) - 1) | u64::from(self.pointer) << Self::STACK_BITS
    }
    /// From the value of an event.
    #[inline(always)]
    pub fn of_value(value: u64) -> CallFrame {
        let stack = (value & ((1 << Self::STACK_BITS) - 1)) << Self::UNIT;
        CallFrame { stack, pointer: (value >> Self::STACK_BITS) as u16 }
    }
    /// The frame pointer, where the function has one.
    pub fn frame_pointer(self) -> Option<u64> {
        (self.pointer != 0).then(|| self.stack.wrapping_add(8 * u64::from(self.pointer)))
    }
}

/// What both sides know about a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trail {
    /// The slot of its last site.
    pub site: u16,
    /// The stack pointer at its last call.
    pub stack: u64,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    address: u64,
    value: u64,
}

/// What both sides know: sites and the values last seen. About 2.5 MiB; all zero at the start, so it can lie in
/// zeroed memory.
pub struct Tables {
    sites: [Site; 1 << SITE_BITS],
    values: [Seen; 1 << VALUE_BITS],
}

impl Tables {
    /// Tables in which nothing has been seen.
    #[allow(clippy::new_without_default, reason = "far too large to be made by accident")]
    pub const fn new() -> Self {
        const SITE: Site = Site { pc: 0, last: 0, stride: 0, next: 0, pointer: 0, distance: 0 };
        const SEEN: Seen = Seen { address: 0, value: 0 };
        Self { sites: [SITE; 1 << SITE_BITS], values: [SEEN; 1 << VALUE_BITS] }
    }
    /// The same on the heap, without passing over the stack.
    pub fn boxed() -> Box<Self> {
        // SAFETY: the all-zero pattern is a value of every field, all of which are integers.
        unsafe { Box::<Self>::new_zeroed().assume_init() }
    }
    /// The place of a thread's last event, unless another one has taken its slot since.
    pub fn last_place(&self, last: u16) -> u64 {
        self.sites[last as usize].pc
    }
    #[inline(always)]
    fn seen(&mut self, address: u64) -> &mut Seen {
        &mut self.values[value_slot(address)]
    }
}

/// A slot of a table for a number: near numbers are on the same page of the table, so that a short run touches few. `PAGE` is how
/// many bits a slot has within a page, of `BITS`; numbers that differ in the lowest `UNIT` bits only share a slot.
#[inline(always)]
fn slot<const BITS: u32, const PAGE: u32, const UNIT: u32>(number: u64) -> usize {
    let hash = (number >> (PAGE + UNIT)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let within = (number >> UNIT) ^ (hash >> 16);
    let page = (hash >> (64 - (BITS - PAGE))) as usize;
    page << PAGE | (within & ((1 << PAGE) - 1)) as usize
}

#[inline(always)]
fn value_slot(address: u64) -> usize {
    // Words of four bytes have slots of their own.
    slot::<VALUE_BITS, 8, 2>(address)
}

#[inline(always)]
fn site_slot(pc: u64) -> u16 {
    // So close to each other are two calls hardly ever.
    slot::<SITE_BITS, 7, 3>(pc) as u16
}

/// The size bits of a header.
#[inline(always)]
fn size_code(event: &LogEvent) -> u16 {
    if event.op >= op::ACCESSES {
        return if event.value.is_some() { 4 } else { 0 };
    }
    match (event.size, event.value.is_some()) {
        (1, true) => 1,
        (2, true) => 2,
        (4, true) => 3,
        (8, true) => 4,
        (16, _) => 5,
        _ => 6,
    }
}

/// Writes an event at `out` and returns where the next record goes. `trail` is what is known of its thread.
///
/// # Safety
/// `out` points to at least [`MAX_EVENT`] writable bytes that are all zero.
#[inline(always)]
pub unsafe fn write_event(tables: &mut Tables, trail: &mut Trail, out: *mut u8, event: &LogEvent) -> *mut u8 {
    let size = size_code(event);
    let mut header = event.op | size << SIZE_SHIFT;
    // SAFETY: at most 2 + 2 + 8 + 8 + 4 + 8 = 32 bytes are written, all within MAX_EVENT.
    unsafe {
        let mut at = out.add(2);
        let slot = site_slot(event.pc);
        let before = &mut tables.sites[trail.site as usize];
        let foretold = before.next == slot;
        before.next = slot;
        trail.site = slot;
        let site = &mut tables.sites[slot as usize];
        if site.pc == event.pc {
            if foretold {
                header |= SITE_FORETOLD;
            } else {
                at.cast::<u16>().write_unaligned(slot);
                at = at.add(2);
            }
        } else {
            at.cast::<u16>().write_unaligned(NEW_SITE);
            at.add(2).cast::<u64>().write_unaligned(event.pc);
            at = at.add(10);
            *site = Site { pc: event.pc, next: site.next, ..Site::default() };
        }
        if event.op != op::RETURN {
            let delta = event.address.wrapping_sub(site.last);
            if delta != site.stride {
                let signed = delta as i64;
                if signed as i8 as i64 == signed {
                    header |= 1 << ADDRESS_SHIFT;
                    at.write(delta as u8);
                    at = at.add(1);
                } else if signed as i32 as i64 == signed {
                    header |= 2 << ADDRESS_SHIFT;
                    at.cast::<u32>().write_unaligned(delta as u32);
                    at = at.add(4);
                } else {
                    header |= 3 << ADDRESS_SHIFT;
                    at.cast::<u64>().write_unaligned(event.address);
                    at = at.add(8);
                }
                site.stride = delta;
            }
            site.last = event.address;
        }
        if size == 6 {
            at.cast::<u32>().write_unaligned(event.size);
            at = at.add(4);
        }
        if let (op::CALL, Some(value)) = (event.op, event.value) {
            let frame = CallFrame::of_value(value);
            let distance = (frame.stack.wrapping_sub(trail.stack) as i64) >> CallFrame::UNIT;
            trail.stack = frame.stack;
            let near = distance as i16;
            let fits = frame.pointer == site.pointer && i64::from(near) == distance;
            if fits && near == site.distance {
                header |= VALUE_FORETOLD;
            } else if fits {
                header = header & !(7 << SIZE_SHIFT) | 2 << SIZE_SHIFT;
                at.cast::<i16>().write_unaligned(near);
                at = at.add(2);
            } else {
                at.cast::<u64>().write_unaligned(value);
                at = at.add(8);
            }
            (site.pointer, site.distance) = (frame.pointer, near);
        } else if let Some(value) = event.value
            && size <= 4
        {
            let seen = tables.seen(event.address);
            if seen.address == event.address && seen.value == value {
                header |= VALUE_FORETOLD;
            } else {
                *seen = Seen { address: event.address, value };
                at.cast::<u64>().write_unaligned(value);
                // Bytes beyond the value's own are zero again, as unwritten space must be: values are zero-extended.
                at = at.add(1 << (size - 1));
            }
        }
        seal(out, header);
        at
    }
}

/// Writes the header of a record whose rest is written: last, and in one instruction, so that whoever kills the program
/// never leaves half a record.
///
/// # Safety
/// `out` points to two writable bytes.
#[inline(always)]
unsafe fn seal(out: *mut u8, header: u16) {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::Release);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a plain store of two bytes, which need not be aligned.
    unsafe {
        std::arch::asm!("mov word ptr [{}], {:x}", in(reg) out, in(reg) header, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: two writable bytes.
    unsafe {
        out.cast::<u16>().write_unaligned(header);
    }
}

/// Writes a note at `out` and returns where the next record goes.
///
/// # Safety
/// `out` points to at least `8 + payload` writable bytes that are all zero, `payload` being the sum of the parts' lengths.
pub unsafe fn write_note(out: *mut u8, note: u16, parts: &[&[u8]]) -> *mut u8 {
    // SAFETY: the caller gives room for the header, the length and all parts.
    unsafe {
        let mut at = out.add(6);
        let mut length = 0u32;
        for part in parts {
            for (i, &byte) in part.iter().enumerate() {
                // Volatile, so that this never becomes a call of `memcpy`, which the runtime itself defines.
                at.add(i).write_volatile(byte);
            }
            at = at.add(part.len());
            length += part.len() as u32;
        }
        out.add(2).cast::<u32>().write_unaligned(length);
        seal(out, note);
        at
    }
}

/// A record, as read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// An event of the thread that the last [`note::SWITCH`] named.
    Event(LogEvent),
    /// A note with its payload.
    Note(u16, &'a [u8]),
}

/// Why reading stopped before a header of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Where, counted from the first record.
    pub offset: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// The tables of a reader, for one recording after the other: of those that a short one touched, only those are set back.
pub struct ReaderTables {
    tables: Box<Tables>,
    sites: Vec<u16>,
    values: Vec<u32>,
}

impl ReaderTables {
    /// When so many places were touched, setting all of them back takes no longer.
    const MOST: usize = 1 << 15;

    /// Tables in which nothing has been seen.
    #[allow(clippy::new_without_default, reason = "far too large to be made by accident")]
    pub fn new() -> Self {
        Self { tables: Tables::boxed(), sites: Vec::new(), values: Vec::new() }
    }

    /// The same, of tables that another recording was read with.
    fn cleared(mut self) -> Self {
        if self.sites.len() >= Self::MOST || self.values.len() >= Self::MOST {
            return Self::new();
        }
        // Where threads begin.
        self.tables.sites[0] = Site::default();
        for slot in self.sites.drain(..) {
            self.tables.sites[slot as usize] = Site::default();
        }
        for slot in self.values.drain(..) {
            self.tables.values[slot as usize] = Seen::default();
        }
        self
    }
}

/// Reads the records of a recording, piece by piece: whoever calls it holds what comes next.
pub struct LogReader {
    at: usize,
    tables: Box<Tables>,
    /// Slots of the tables that were touched, as far as they are counted.
    touched_sites: Vec<u16>,
    touched_values: Vec<u32>,
    /// What is known of each thread.
    trails: Vec<Trail>,
    thread: usize,
}

impl LogReader {
    /// Begins at the first record, with the tables of an earlier reader.
    pub fn new(tables: ReaderTables) -> Self {
        let ReaderTables { tables, sites: touched_sites, values: touched_values } = tables.cleared();
        Self { at: 0, tables, touched_sites, touched_values, trails: vec![Trail::default()], thread: 0 }
    }
    /// Its tables, for another one.
    pub fn into_tables(self) -> ReaderTables {
        ReaderTables { tables: self.tables, sites: self.touched_sites, values: self.touched_values }
    }
    /// Bytes read so far.
    pub fn offset(&self) -> usize {
        self.at
    }
    /// The thread whose events are being read.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// The next record, with which `bytes` begin; `None` where the recording ends. All of the record must be there.
    #[inline]
    pub fn next_record<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Record<'a>>, Damaged> {
        let Some((header, mut rest)) =
            bytes.split_first_chunk().map(|(header, rest)| (u16::from_le_bytes(*header), rest))
        else {
            return Ok(None);
        };
        if header == 0 {
            return Ok(None);
        }
        let record =
            if header & OP_MASK >= note::FIRST { self.note(header, &mut rest) } else { self.event(header, &mut rest) };
        match record {
            Ok(record) => {
                self.at += bytes.len() - rest.len();
                Ok(Some(record))
            }
            Err(what) => Err(Damaged { offset: self.at, what }),
        }
    }

    fn note<'a>(&mut self, header: u16, rest: &mut &'a [u8]) -> Result<Record<'a>, &'static str> {
        let length = u32::from_le_bytes(take(rest)?) as usize;
        let (payload, after) = rest.split_at_checked(length).ok_or("a note goes beyond the end")?;
        *rest = after;
        if header == note::SWITCH {
            let thread = payload.try_into().map(u32::from_le_bytes).map_err(|_| "a switch names no thread")? as usize;
            if thread >= MAX_THREADS {
                return Err("a switch names an impossible thread");
            }
            if thread >= self.trails.len() {
                self.trails.resize(thread + 1, Trail::default());
            }
            self.thread = thread;
        }
        Ok(Record::Note(header, payload))
    }

    #[inline]
    fn event(&mut self, header: u16, rest: &mut &[u8]) -> Result<Record<'static>, &'static str> {
        let op = header & OP_MASK;
        let before = &mut self.tables.sites[self.trails[self.thread].site as usize];
        let slot = if header & SITE_FORETOLD != 0 {
            before.next
        } else {
            let slot = u16::from_le_bytes(take(rest)?);
            let slot = if slot == NEW_SITE {
                let pc = u64::from_le_bytes(take(rest)?);
                let slot = site_slot(pc);
                let site = &mut self.tables.sites[slot as usize];
                *site = Site { pc, next: site.next, ..Site::default() };
                slot
            } else {
                slot
            };
            if slot as usize >= self.tables.sites.len() {
                return Err("an event names an impossible site");
            }
            self.tables.sites[self.trails[self.thread].site as usize].next = slot;
            if self.touched_sites.len() < ReaderTables::MOST {
                self.touched_sites.push(slot);
            }
            slot
        };
        self.trails[self.thread].site = slot;
        let mut site = self.tables.sites[slot as usize];
        let mut address = 0;
        if op != op::RETURN {
            let mode = header >> ADDRESS_SHIFT & 3;
            let delta = match mode {
                0 => site.stride,
                1 => take::<1>(rest)?[0] as i8 as u64,
                2 => u32::from_le_bytes(take(rest)?) as i32 as u64,
                _ => u64::from_le_bytes(take(rest)?).wrapping_sub(site.last),
            };
            address = site.last.wrapping_add(delta);
            (site.last, site.stride) = (address, delta);
            self.tables.sites[slot as usize] = site;
        }
        let code = header >> SIZE_SHIFT & 7;
        let mut size = match code {
            0 => 0,
            1..=5 => 1 << (code - 1),
            6 => u32::from_le_bytes(take(rest)?),
            _ => return Err("an event has an impossible size"),
        };
        let mut value = None;
        if op == op::CALL && (1..=4).contains(&code) {
            value = Some(self.call_frame(slot, code, header & VALUE_FORETOLD != 0, rest)?.value());
        } else if (1..=4).contains(&code) {
            let foretold = header & VALUE_FORETOLD != 0;
            let explicit = match code {
                _ if foretold => 0,
                1 => u64::from(take::<1>(rest)?[0]),
                2 => u64::from(u16::from_le_bytes(take(rest)?)),
                3 => u64::from(u32::from_le_bytes(take(rest)?)),
                _ => u64::from_le_bytes(take(rest)?),
            };
            let slot = value_slot(address);
            let seen = &mut self.tables.values[slot];
            if !foretold {
                *seen = Seen { address, value: explicit };
                if self.touched_values.len() < ReaderTables::MOST {
                    self.touched_values.push(slot as u32);
                }
            }
            value = Some(seen.value);
        }
        if op >= op::ACCESSES {
            size = 0;
        }
        Ok(Record::Event(LogEvent { op, pc: site.pc, address, size, value }))
    }

    /// The value of a call at a site.
    #[inline]
    fn call_frame(
        &mut self,
        slot: u16,
        code: u16,
        foretold: bool,
        rest: &mut &[u8],
    ) -> Result<CallFrame, &'static str> {
        let mut explicit = None;
        if !foretold {
            explicit = Some(match code {
                2 => i64::from(i16::from_le_bytes(take(rest)?)) as u64,
                4 => u64::from_le_bytes(take(rest)?),
                _ => return Err("a call has an impossible size"),
            });
        }
        let trail = &mut self.trails[self.thread];
        let site = &mut self.tables.sites[slot as usize];
        let near = |distance: u64| trail.stack.wrapping_add(distance << CallFrame::UNIT);
        let frame = match explicit {
            None => CallFrame { stack: near(i64::from(site.distance) as u64), pointer: site.pointer },
            Some(distance) if code == 2 => CallFrame { stack: near(distance), pointer: site.pointer },
            Some(value) => CallFrame::of_value(value),
        };
        let distance = ((frame.stack.wrapping_sub(trail.stack) as i64) >> CallFrame::UNIT) as i16;
        trail.stack = frame.stack;
        (site.pointer, site.distance) = (frame.pointer, distance);
        Ok(frame)
    }
}

#[inline]
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (bytes, after) = rest.split_first_chunk().ok_or("a record goes beyond the end")?;
    *rest = after;
    Ok(*bytes)
}

/// How many bytes the record takes that begins here, as far as that is seen at once: a note says it, and no event is longer than
/// [`MAX_EVENT`].
#[inline]
pub fn room(bytes: &[u8]) -> usize {
    match bytes {
        [low, high, a, b, c, d, ..] if u16::from_le_bytes([*low, *high]) & OP_MASK >= note::FIRST => {
            (u32::from_le_bytes([*a, *b, *c, *d]) as usize).saturating_add(6)
        }
        _ => MAX_EVENT,
    }
}

/// A record, as far as a [`LogScanner`] looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned<'a> {
    /// An event with this operation.
    Event(u16),
    /// A note with its payload.
    Note(u16, &'a [u8]),
}

/// Goes from record to record without working out what is in events: several times as fast as a [`LogReader`].
#[derive(Default)]
pub struct LogScanner {
    at: usize,
    thread: usize,
}

impl LogScanner {
    /// Bytes passed so far.
    pub fn offset(&self) -> usize {
        self.at
    }
    /// The thread whose events are being passed.
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// The next record, with which `rest` begins; `None` where the recording ends. All of the record must be there.
    #[inline]
    pub fn next_record<'a>(&mut self, rest: &'a [u8]) -> Result<Option<Scanned<'a>>, Damaged> {
        let start = self.at;
        let header = match rest {
            [low, high, ..] => u16::from_le_bytes([*low, *high]),
            _ => 0,
        };
        if header == 0 {
            return Ok(None);
        }
        let damaged = |what| Damaged { offset: start, what };
        let op = header & OP_MASK;
        if op >= note::FIRST {
            let length = rest.get(2..6).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
            let length = length.ok_or(damaged("a record goes beyond the end"))? as usize;
            let payload =
                rest.get(6..).and_then(|rest| rest.get(..length)).ok_or(damaged("a note goes beyond the end"))?;
            if header == note::SWITCH {
                let thread =
                    payload.try_into().map(u32::from_le_bytes).map_err(|_| damaged("a switch names no thread"))?;
                if thread as usize >= MAX_THREADS {
                    return Err(damaged("a switch names an impossible thread"));
                }
                self.thread = thread as usize;
            }
            self.at += 6 + length;
            return Ok(Some(Scanned::Note(header, payload)));
        }
        let mut length = 2;
        if header & SITE_FORETOLD == 0 {
            length += if rest.get(2..4) == Some(&NEW_SITE.to_le_bytes()) { 10 } else { 2 };
        }
        if op != op::RETURN {
            length += [0, 1, 4, 8][usize::from(header >> ADDRESS_SHIFT & 3)];
        }
        let size = usize::from(header >> SIZE_SHIFT & 7);
        let foretold = header & VALUE_FORETOLD != 0;
        length += match size {
            1..=4 if !foretold => 1 << (size - 1),
            6 => 4,
            7 => return Err(damaged("an event has an impossible size")),
            _ => 0,
        };
        if length > rest.len() {
            return Err(damaged("a record goes beyond the end"));
        }
        self.at += length;
        Ok(Some(Scanned::Event(op)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes as the runtime does, for any mixture of threads, and returns the bytes.
    fn written(events: &[(u32, LogEvent)]) -> Vec<u8> {
        let mut tables = Tables::boxed();
        let mut trails = [Trail::default(); 8];
        let mut bytes = vec![0u8; events.len() * (MAX_EVENT + 16) + 64];
        let mut out = bytes.as_mut_ptr();
        let mut running = 0;
        for (thread, event) in events {
            // SAFETY: the buffer has room for every event and a note before it.
            unsafe {
                if *thread != running {
                    out = write_note(out, note::SWITCH, &[&thread.to_le_bytes()]);
                    running = *thread;
                }
                out = write_event(&mut tables, &mut trails[*thread as usize], out, event);
            }
        }
        let length = out as usize - bytes.as_ptr() as usize;
        bytes.truncate(length + 2);
        bytes
    }

    fn read(bytes: &[u8]) -> Vec<(u32, LogEvent)> {
        let mut reader = LogReader::new(ReaderTables::new());
        let mut events = Vec::new();
        while let Some(record) = reader.next_record(&bytes[reader.offset()..]).unwrap() {
            if let Record::Event(event) = record {
                events.push((reader.thread() as u32, event));
            }
        }
        events
    }

    /// A few thousand events of every form, from a small generator.
    fn mixture() -> Vec<(u32, LogEvent)> {
        let mut state = 7u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut thread = 0;
        (0..5000)
            .map(|i| {
                if next(20) == 0 {
                    thread = next(5) as u32;
                }
                let pc = 0x40_0000 + next(40) * 7;
                let all = [op::READ, op::WRITE, op::UPDATE + 5, op::ACQUIRE, op::RETURN, op::FORK, op::CALL];
                let op = all[next(7) as usize];
                let address = match next(4) {
                    0 => 0x60_0000 + i * 8,
                    1 => 0x7fff_0000_0000 + next(1 << 40),
                    _ => 0x60_0000 + next(64) * 8,
                };
                let (size, value) = match op {
                    op::FORK => (0, Some(next(9))),
                    op::CALL if next(4) > 0 => {
                        let far = [3, 300, 1 << 24][next(3) as usize];
                        let stack = 0x7fff_0000_0000 - 16 * next(far);
                        (0, Some(CallFrame { stack, pointer: next(2) as u16 * 9 }.value()))
                    }
                    op if op >= op::ACCESSES => (0, None),
                    _ => match next(7) {
                        0 => (16, None),
                        1 => (next(1 << 20) as u32 + 1, None),
                        n => {
                            let size = [1, 2, 4, 8, 8][n as usize - 2];
                            let value = next(3) * next(u64::MAX >> 33) * 0x1_0000_0001;
                            (size, Some(if size == 8 { value } else { value & ((1 << (8 * size)) - 1) }))
                        }
                    },
                };
                let address = if op == op::RETURN { 0 } else { address };
                (thread, LogEvent { op, pc, address, size, value })
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let events = mixture();
        assert_eq!(read(&written(&events)), events);
    }

    #[test]
    fn a_recording_cut_anywhere_gives_its_events_up_to_there() {
        let events = mixture()[..300].to_vec();
        let bytes = written(&events);
        for cut in 0..bytes.len() {
            let mut reader = LogReader::new(ReaderTables::new());
            let mut read = 0;
            while let Ok(Some(record)) = reader.next_record(&bytes[reader.offset()..cut]) {
                if let Record::Event(event) = record {
                    assert_eq!(event, events[read].1);
                    read += 1;
                }
            }
        }
    }

    #[test]
    fn scanning_goes_from_record_to_record_as_reading_does() {
        let bytes = written(&mixture());
        for cut in [bytes.len(), bytes.len() - 3, 1234, 1235, 1236] {
            let (mut reader, mut scanner) = (LogReader::new(ReaderTables::new()), LogScanner::default());
            loop {
                let read = reader.next_record(&bytes[reader.offset()..cut]);
                let scanned = match scanner.next_record(&bytes[scanner.offset()..cut]) {
                    Ok(Some(Scanned::Note(kind, payload))) => Ok(Some(Record::Note(kind, payload))),
                    Ok(Some(Scanned::Event(op))) => match read {
                        Ok(Some(Record::Event(event))) if event.op == op => read,
                        _ => panic!("{read:?} is no {op}"),
                    },
                    Ok(None) => Ok(None),
                    Err(damaged) => Err(damaged),
                };
                assert_eq!(scanned.map_err(|d| d.offset), read.map_err(|d| d.offset));
                if !matches!(read, Ok(Some(_))) {
                    break;
                }
                assert_eq!((reader.offset(), reader.thread()), (scanner.offset(), scanner.thread()));
            }
        }
    }

    #[test]
    fn flipped_bits_never_panic() {
        let bytes = written(&mixture()[..500]);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                let mut reader = LogReader::new(ReaderTables::new());
                while let Ok(Some(_)) = reader.next_record(&bytes[reader.offset()..]) {}
                let mut scanner = LogScanner::default();
                while let Ok(Some(_)) = scanner.next_record(&bytes[scanner.offset()..]) {}
            }
        }
    }

    /// The calls of a function that calls itself twice, with their returns.
    fn tree(depth: u64, frames: bool, into: &mut Vec<(u32, LogEvent)>) {
        let stack = 0x7fff_0000_0000 - 48 * depth;
        let value = frames.then(|| CallFrame { stack, pointer: 4 }.value());
        for caller in 0..2 {
            into.push((0, LogEvent { op: op::CALL, pc: 0x1000, address: 0x2000 + caller, size: 0, value }));
            if depth < 10 {
                tree(depth + 1, frames, into);
            }
            into.push((0, LogEvent { op: op::RETURN, pc: 0x1010, address: 0, size: 0, value: None }));
        }
    }

    #[test]
    fn frames_take_no_room_in_loops_and_less_than_a_byte_per_event_in_recursion_that_does_nothing_else() {
        let call = |i: u64, frames: bool| {
            let (pc, below) = if i.is_multiple_of(2) { (0x1000, 0) } else { (0x1100, 64) };
            let frame = CallFrame { stack: 0x7fff_0000_0000 - below, pointer: 4 };
            let value = frames.then(|| frame.value());
            (0, LogEvent { op: op::CALL, pc, address: 0x2000, size: 0, value })
        };
        let calls = |frames| (0..10_000).map(|i| call(i, frames)).collect::<Vec<_>>();
        let growth = written(&calls(true)).len() - written(&calls(false)).len();
        assert!(growth < 64, "{growth}");
        let [mut with, mut without] = [Vec::new(), Vec::new()];
        tree(0, true, &mut with);
        tree(0, false, &mut without);
        let growth = written(&with).len() - written(&without).len();
        assert!(growth < with.len(), "{growth} bytes for {} events", with.len());
    }

    #[test]
    fn a_loop_over_an_array_takes_two_bytes_for_each_read_of_known_values() {
        let read = |i: u64| LogEvent { op: op::READ, pc: 0x1000, address: 0x2000 + 8 * i, size: 8, value: Some(0) };
        let write = |i: u64| LogEvent { op: op::WRITE, pc: 0x1010, ..read(i) };
        let zeroes: Vec<_> = (0..1000).map(|i| (0, write(i))).collect();
        let both: Vec<_> = zeroes.iter().copied().chain((0..1000).map(|i| (0, read(i)))).collect();
        let growth = written(&both).len() - written(&zeroes).len();
        assert!(growth < 2 * 1000 + 100, "{growth}");
    }
}
