//! Read-write locks: like mutexes, the program's own object says whether the lock is free, and one that another process
//! has is waited for in the kernel.
//!
//! A lock that prefers writers (`PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`) keeps readers out while others read and a writer
//! waits: who reads twice can wait for ever. So a writer says that it is there before it takes such a lock, and a reader looks:
//! an update and a read of a word of the lock, which other interleavings order otherwise. Other locks let readers in at any time.

use crate::answers::Deadline;
use crate::entry::entry;
use crate::log::op;
use crate::objects::{self, Mark};
use crate::real::{self, Ptr};
use crate::semaphore::Objects;
use crate::spin::{self, Look};
use crate::state::{self, Pending, Thread, Wait};
use crate::{mutex, record, sched, sys, waits};

/// glibc's `pthread_rwlock_t`, as far as it is read.
#[repr(C)]
struct Layout {
    readers: u32,
    writers: u32,
    phase: u32,
    writers_futex: u32,
    pad: [u32; 2],
    writer: i32,
    shared: i32,
    elision: u64,
    mark: u64,
    kind: u32,
}

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`
const WRITERS_FIRST: u32 = 2;
/// The word of a lock in which the C library keeps how many writers wait: it stands for that here.
const WRITERS: usize = 4;

/// Writers that are there, by their lock.
static mut WAITING: Objects<1024> = Objects::new();

fn waiting(at: usize) -> u64 {
    // SAFETY: the holder of the token.
    unsafe { (*&raw const WAITING).find(at) }.map_or(0, |[count, ..]| count)
}

/// A writer comes to a lock that prefers them, or has got it.
fn tell_writer(me: &mut Thread, at: usize, comes: bool, pc: usize) {
    let pending = Pending { size: 4, ..state::plain(op::UPDATE, at + WRITERS, pc) };
    sched::before(me, pending);
    // SAFETY: the holder of the token.
    let table = unsafe { &mut *&raw mut WAITING };
    let count = &mut table.get(at)[0];
    *count = if comes { *count + 1 } else { count.saturating_sub(1) };
    let count = *count;
    if count == 0 {
        table.remove(at);
    }
    record::access(me, op::UPDATE, at + WRITERS, 4, Some(count), pc);
}

/// A reader looks whether it has to let a writer go first.
fn is_behind_writer(me: &mut Thread, at: usize, pc: usize) -> bool {
    /// A relaxed read: it orders nothing.
    const LOOKS: u16 = op::READ + 1;
    sched::before(me, Pending { size: 4, ..state::plain(LOOKS, at + WRITERS, pc) });
    let count = waiting(at);
    record::access(me, LOOKS, at + WRITERS, 4, Some(count), pc);
    count > 0 && layout(at).readers >> FLAGS != 0
}

fn prefers_writers(at: usize) -> bool {
    layout(at).kind == WRITERS_FIRST && layout(at).shared == 0
}

pub fn can_read_behind(at: usize) -> bool {
    waiting(at) == 0 && can_read(at)
}

/// Bits of `readers` below the number of readers.
const FLAGS: u32 = 3;

fn layout(at: usize) -> &'static Layout {
    // SAFETY: the program passes the address of a lock; only read while its thread has the token.
    unsafe { &*(at as *const Layout) }
}

/// A word of padding, which initialising clears.
const MARK: Mark = Mark(40);

/// Told by a thread that uses a lock, before it does.
fn uses(at: usize, pc: usize) {
    if MARK.is_set(at) {
        objects::used_after(at, "read-write lock", pc);
    }
}

pub fn can_read(at: usize) -> bool {
    layout(at).writer == 0 || is_elsewhere(at)
}

pub fn can_write(at: usize) -> bool {
    (layout(at).writer == 0 && layout(at).readers >> FLAGS == 0) || is_elsewhere(at)
}

/// Whether other processes may have it, as far as the lock says: who reads, it does not. Then it is waited for in the kernel.
fn is_elsewhere(at: usize) -> bool {
    let lock = layout(at);
    lock.shared != 0 && (lock.writer == 0 || mutex::is_foreign(lock.writer))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
}

fn take(me: &mut Thread, at: usize, mode: Mode, deadline: Deadline, pc: usize) -> i32 {
    if layout(at).writer == me.tid as i32 {
        // Its own: the C library refuses at once.
        return sys::EDEADLK;
    }
    let timed = deadline.virtual_time() != 0;
    let prefers_writers = prefers_writers(at);
    if prefers_writers && mode == Mode::Write {
        tell_writer(me, at, true, pc);
    }
    let reads = match mode == Mode::Read && prefers_writers && is_behind_writer(me, at, pc) {
        true => Wait::RwReadBehind(at),
        false => Wait::RwRead(at),
    };
    let (op, wait) = match mode {
        Mode::Read if timed => (op::TRY_ACQUIRE_SHARED, reads),
        Mode::Write if timed => (op::TRY_ACQUIRE, Wait::RwWrite(at)),
        Mode::Read => (op::ACQUIRE_SHARED, reads),
        Mode::Write => (op::ACQUIRE, Wait::RwWrite(at)),
    };
    sched::before(me, Pending { op, address: at, size: 0, pc, wait, deadline: deadline.virtual_time() });
    uses(at, pc);
    let mut result = attempt(at, mode);
    if result == sys::EBUSY && !me.timed_out && layout(at).shared != 0 {
        // SAFETY: the program's lock.
        result = waits::away(me, pc, || unsafe {
            match (mode, deadline.absolute()) {
                (Mode::Read, None) => real::pthread_rwlock_rdlock(at as Ptr),
                (Mode::Write, None) => real::pthread_rwlock_wrlock(at as Ptr),
                (Mode::Read, Some(until)) => real::pthread_rwlock_timedrdlock(at as Ptr, (&raw const until) as Ptr),
                (Mode::Write, Some(until)) => real::pthread_rwlock_timedwrlock(at as Ptr, (&raw const until) as Ptr),
            }
        });
    }
    match result {
        0 => record::plain(me, op, at, pc),
        sys::EBUSY | sys::ETIMEDOUT => {
            record::plain(me, if mode == Mode::Read { op::BUSY_SHARED } else { op::BUSY }, at, pc);
            result = sys::ETIMEDOUT;
        }
        _ => {}
    }
    if prefers_writers && mode == Mode::Write {
        tell_writer(me, at, false, pc);
    }
    result
}

fn attempt(at: usize, mode: Mode) -> i32 {
    // SAFETY: the program's lock.
    unsafe {
        match mode {
            Mode::Read => real::pthread_rwlock_tryrdlock(at as Ptr),
            Mode::Write => real::pthread_rwlock_trywrlock(at as Ptr),
        }
    }
}

fn attempt_once(me: &mut Thread, at: usize, mode: Mode, pc: usize) -> i32 {
    let (taken, busy) = match mode {
        Mode::Read => (op::TRY_ACQUIRE_SHARED, op::BUSY_SHARED),
        Mode::Write => (op::TRY_ACQUIRE, op::BUSY),
    };
    sched::before(me, state::plain(taken, at, pc));
    let own = layout(at).writer == me.tid as i32;
    let (is_free, until) = match mode {
        Mode::Read => (can_read(at), Wait::RwRead(at)),
        Mode::Write => (can_write(at), Wait::RwWrite(at)),
    };
    if !own && !is_free {
        spin::look(me, Look::fails(busy, at, until, pc), true);
    }
    uses(at, pc);
    let result = attempt(at, mode);
    match result {
        0 => record::plain(me, taken, at, pc),
        sys::EBUSY if !own => record::plain(me, busy, at, pc),
        _ => {}
    }
    result
}

pub unsafe extern "C-unwind" fn read_lock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_rwlock_rdlock(at as Ptr) } };
    let result = take(me, at, Mode::Read, Deadline::NEVER, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn write_lock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_rwlock_wrlock(at as Ptr) } };
    let result = take(me, at, Mode::Write, Deadline::NEVER, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn try_read(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_rwlock_tryrdlock(at as Ptr) } };
    let result = attempt_once(me, at, Mode::Read, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn try_write(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_rwlock_trywrlock(at as Ptr) } };
    let result = attempt_once(me, at, Mode::Write, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn timed_read(at: usize, until: *const sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_rwlock_timedrdlock(at as Ptr, until as Ptr) } };
    let result = take(me, at, Mode::Read, Deadline::at(0, until), pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn timed_write(at: usize, until: *const sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_rwlock_timedwrlock(at as Ptr, until as Ptr) } };
    let result = take(me, at, Mode::Write, Deadline::at(0, until), pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn clock_read(at: usize, clock: i32, until: *const sys::Timespec, pc: usize) -> i32 {
    let Some(me) = state::enter() else {
        // SAFETY: passed on.
        return unsafe { real::pthread_rwlock_clockrdlock(at as Ptr, clock, until as Ptr) };
    };
    let result = take(me, at, Mode::Read, Deadline::at(clock, until), pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn clock_write(at: usize, clock: i32, until: *const sys::Timespec, pc: usize) -> i32 {
    let Some(me) = state::enter() else {
        // SAFETY: passed on.
        return unsafe { real::pthread_rwlock_clockwrlock(at as Ptr, clock, until as Ptr) };
    };
    let result = take(me, at, Mode::Write, Deadline::at(clock, until), pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn unlock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_rwlock_unlock(at as Ptr) } };
    let op = if layout(at).writer == me.tid as i32 { op::RELEASE } else { op::RELEASE_SHARED };
    objects::about_to_use(me, at, pc);
    sched::before(me, state::plain(op, at, pc));
    uses(at, pc);
    // SAFETY: the program's lock.
    let result = unsafe { real::pthread_rwlock_unlock(at as Ptr) };
    if result == 0 {
        record::plain(me, op, at, pc);
    }
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn destroy(at: usize, pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        objects::about_to_destroy(me, at, pc);
        uses(at, pc);
        let lock = layout(at);
        let held = match lock.writer {
            0 => (lock.readers >> FLAGS != 0).then_some(0),
            writer => Some(objects::holder(writer)),
        };
        objects::destroyed(me, at, "read-write lock", held, pc);
        if lock.shared == 0 {
            MARK.set(at);
        }
        state::leave(me);
    }
    // SAFETY: passed on.
    unsafe { real::pthread_rwlock_destroy(at as Ptr) }
}

entry! {
    pthread_rwlock_destroy(1) => destroy;
    pthread_rwlock_rdlock(1) => read_lock;
    pthread_rwlock_wrlock(1) => write_lock;
    pthread_rwlock_timedrdlock(2) => timed_read;
    pthread_rwlock_timedwrlock(2) => timed_write;
    pthread_rwlock_clockrdlock(3) => clock_read;
    pthread_rwlock_clockwrlock(3) => clock_write;
    pthread_rwlock_unlock(1) => unlock;
}

entry! {
    looking
    pthread_rwlock_tryrdlock(1) => try_read;
    pthread_rwlock_trywrlock(1) => try_write;
}
