//! Mutexes and spin locks.
//!
//! Whether a lock is free is read off the program's own object, as glibc lays it out; when it is, the real try-lock
//! takes it. So the program's objects are always right, whoever else looks at them, and the runtime keeps no table.
//! What is special: a normal mutex locked again by its holder is a deadlock, as in reality; a robust mutex whose holder
//! has ended is free; one shared with other processes is waited for in the kernel.

use crate::answers::Deadline;
use crate::entry::entry;
use crate::log::op;
use crate::real::{self, Ptr};
use crate::spin::{self, Look};
use crate::state::{self, Life, Pending, Thread, Wait};
use crate::{objects, record, sched, sys, waits};

/// glibc's `pthread_mutex_t`, as far as it is read.
#[repr(C)]
struct Layout {
    lock: i32,
    count: u32,
    owner: i32,
    users: u32,
    kind: i32,
}

const RECURSIVE: i32 = 1;
const ERROR_CHECK: i32 = 2;
const ROBUST: i32 = 16;
/// With a priority ceiling, which is in the upper bits of the lock word.
const CEILING: i32 = 64;
const CEILING_BITS: i32 = 0xfff8_0000u32 as i32;
const SHARED: i32 = 128;
/// In the lock word of robust and inheriting mutexes: the holder's thread id.
const TID_BITS: i32 = 0x3fff_ffff;

fn layout(at: usize) -> &'static Layout {
    // SAFETY: the program passes the address of a mutex; only read while its thread has the token.
    unsafe { &*(at as *const Layout) }
}

/// Whether `who` could lock the mutex now (or would get an error at once).
pub fn is_free(at: usize, who: &Thread) -> bool {
    let mutex = layout(at);
    if mutex.lock & TID_BITS == 0 {
        return true;
    }
    if mutex.kind & CEILING != 0 && mutex.lock & !CEILING_BITS == 0 {
        return true;
    }
    if mutex.owner == who.tid as i32 {
        return matches!(mutex.kind & 3, RECURSIVE | ERROR_CHECK);
    }
    mutex.kind & (ROBUST | SHARED) != 0 && is_foreign(mutex.owner)
}

/// Whether it was destroyed: the C library gives it an impossible kind.
#[inline]
fn is_destroyed(at: usize) -> bool {
    layout(at).kind == -1
}

/// Told by a thread that uses a mutex, before it does.
#[inline]
fn uses(at: usize, pc: usize) {
    if is_destroyed(at) {
        objects::used_after(at, "mutex", pc);
    }
}

/// Whether the owner of an object is no living thread of this process: it has ended, or is in another process.
pub fn is_foreign(tid: i32) -> bool {
    // SAFETY: the holder of the token looks at threads of the table.
    unsafe { !(*sched::peek()).living().any(|one| one.tid as i32 == tid && one.life != Life::Done) }
}

pub fn spin_is_free(at: usize) -> bool {
    // SAFETY: the program passes the address of a spin lock, an int that is 1 while free.
    unsafe { *(at as *const i32) == 1 }
}

/// Whether other processes may hold it.
fn is_shared(at: usize) -> bool {
    layout(at).kind & SHARED != 0
}

/// Takes a mutex that is free: the real operation, which cannot block for long.
fn take(me: &Thread, at: usize) -> i32 {
    let mutex = layout(at);
    let mine = mutex.owner == me.tid as i32 && mutex.lock & TID_BITS != 0;
    // SAFETY: the program's mutex.
    unsafe {
        if mine || mutex.kind & (ROBUST | SHARED) == ROBUST {
            // Locked again by its holder (counts, or is refused), or perhaps to be inherited from an ended thread.
            real::pthread_mutex_lock(at as Ptr)
        } else {
            real::pthread_mutex_trylock(at as Ptr)
        }
    }
}

/// Locks, waiting as long as it takes or until `deadline`; `op` is `acq`, `try` where there is a deadline, or `acqa` after
/// waiting on a condition.
pub fn lock_as(me: &mut Thread, op: u16, at: usize, deadline: Deadline, pc: usize) -> i32 {
    loop {
        let wait = Wait::Mutex(at);
        sched::before(me, Pending { op, address: at, size: 0, pc, wait, deadline: deadline.virtual_time() });
        uses(at, pc);
        if me.timed_out && !is_free(at, me) {
            record::plain(me, op::BUSY, at, pc);
            return sys::ETIMEDOUT;
        }
        let result = take(me, at);
        match result {
            0 | sys::EOWNERDEAD => {
                record::plain(me, op, at, pc);
                return result;
            }
            sys::EBUSY if is_shared(at) => {
                // Another process has it.
                // SAFETY: the program's mutex.
                let result = waits::away(me, pc, || unsafe {
                    match deadline.absolute() {
                        Some(until) => real::pthread_mutex_timedlock(at as Ptr, (&raw const until) as Ptr),
                        None => real::pthread_mutex_lock(at as Ptr),
                    }
                });
                match result {
                    0 | sys::EOWNERDEAD => record::plain(me, op, at, pc),
                    sys::ETIMEDOUT => record::plain(me, op::BUSY, at, pc),
                    _ => {}
                }
                return result;
            }
            sys::EBUSY => continue,
            _ => return result,
        }
    }
}

/// What a lock with a time limit is: nobody waits there for ever.
fn timed(deadline: Deadline) -> u16 {
    if deadline.virtual_time() == 0 { op::ACQUIRE } else { op::TRY_ACQUIRE }
}

/// Unlocks; `op` is `rel`, or `rela` when it begins to wait on a condition.
pub fn unlock_as(me: &mut Thread, op: u16, at: usize, pc: usize) -> i32 {
    if op == op::RELEASE {
        objects::about_to_use(me, at, pc);
    }
    sched::before(me, state::plain(op, at, pc));
    uses(at, pc);
    // SAFETY: the program's mutex.
    let result = unsafe { real::pthread_mutex_unlock(at as Ptr) };
    if result == 0 {
        record::plain(me, op, at, pc);
    }
    result
}

/// Tries to lock.
pub fn try_lock(me: &mut Thread, at: usize, pc: usize) -> i32 {
    sched::before(me, state::plain(op::TRY_ACQUIRE, at, pc));
    if !is_free(at, me) && layout(at).owner != me.tid as i32 {
        spin::look(me, Look::fails(op::BUSY, at, Wait::Mutex(at), pc), true);
    }
    uses(at, pc);
    let dead_owner =
        layout(at).kind & (ROBUST | SHARED) == ROBUST && layout(at).lock & TID_BITS != 0 && is_free(at, me);
    // SAFETY: the program's mutex. An ended owner may not have left the kernel yet, hence `lock`, which waits for that.
    let result = unsafe {
        if dead_owner { real::pthread_mutex_lock(at as Ptr) } else { real::pthread_mutex_trylock(at as Ptr) }
    };
    match result {
        0 | sys::EOWNERDEAD => record::plain(me, op::TRY_ACQUIRE, at, pc),
        // Its own lock (not recursive): busy because of itself, which no other order changes.
        sys::EBUSY if layout(at).owner != me.tid as i32 => record::plain(me, op::BUSY, at, pc),
        _ => {}
    }
    result
}

pub unsafe extern "C-unwind" fn lock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_mutex_lock(at as Ptr) } };
    let result = lock_as(me, op::ACQUIRE, at, Deadline::NEVER, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn trylock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_mutex_trylock(at as Ptr) } };
    let result = try_lock(me, at, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn timedlock(at: usize, until: *const sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_mutex_timedlock(at as Ptr, until as Ptr) } };
    let deadline = Deadline::at(0, until);
    let result = lock_as(me, timed(deadline), at, deadline, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn clocklock(at: usize, clock: i32, until: *const sys::Timespec, pc: usize) -> i32 {
    let Some(me) = state::enter() else {
        // SAFETY: passed on.
        return unsafe { real::pthread_mutex_clocklock(at as Ptr, clock, until as Ptr) };
    };
    let deadline = Deadline::at(clock, until);
    let result = lock_as(me, timed(deadline), at, deadline, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn unlock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_mutex_unlock(at as Ptr) } };
    let result = unlock_as(me, op::RELEASE, at, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn destroy(at: usize, pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        objects::about_to_destroy(me, at, pc);
        uses(at, pc);
        let mutex = layout(at);
        let is_held = !is_destroyed(at) && mutex.lock & TID_BITS & !CEILING_BITS != 0;
        objects::destroyed(me, at, "mutex", is_held.then(|| objects::holder(mutex.owner)), pc);
        state::leave(me);
    }
    // SAFETY: passed on.
    unsafe { real::pthread_mutex_destroy(at as Ptr) }
}

pub unsafe extern "C-unwind" fn spin_destroy(at: usize, pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        objects::about_to_destroy(me, at, pc);
        objects::destroyed(me, at, "spin lock", (!spin_is_free(at)).then_some(0), pc);
        state::leave(me);
    }
    // SAFETY: passed on.
    unsafe { real::pthread_spin_destroy(at as Ptr) }
}

pub unsafe extern "C-unwind" fn spin_lock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_spin_lock(at as Ptr) } };
    let wait = Wait::Spin(at);
    sched::before(me, Pending { op: op::ACQUIRE, address: at, pc, wait, ..Pending::default() });
    // SAFETY: the program's lock, which is free.
    let result = unsafe { real::pthread_spin_trylock(at as Ptr) };
    record::plain(me, op::ACQUIRE, at, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn spin_trylock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_spin_trylock(at as Ptr) } };
    sched::before(me, state::plain(op::TRY_ACQUIRE, at, pc));
    if !spin_is_free(at) {
        spin::look(me, Look::fails(op::BUSY, at, Wait::Spin(at), pc), true);
    }
    // SAFETY: the program's lock.
    let result = unsafe { real::pthread_spin_trylock(at as Ptr) };
    record::plain(me, if result == 0 { op::TRY_ACQUIRE } else { op::BUSY }, at, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn spin_unlock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_spin_unlock(at as Ptr) } };
    objects::about_to_use(me, at, pc);
    sched::before(me, state::plain(op::RELEASE, at, pc));
    // SAFETY: the program's lock.
    let result = unsafe { real::pthread_spin_unlock(at as Ptr) };
    record::plain(me, op::RELEASE, at, pc);
    state::leave(me);
    result
}

entry! {
    pthread_mutex_lock(1) => lock;
    pthread_mutex_timedlock(2) => timedlock;
    pthread_mutex_clocklock(3) => clocklock;
    pthread_mutex_unlock(1) => unlock;
    pthread_mutex_destroy(1) => destroy;
    __pthread_mutex_lock(1) => lock;
    __pthread_mutex_unlock(1) => unlock;
    pthread_spin_lock(1) => spin_lock;
    pthread_spin_unlock(1) => spin_unlock;
    pthread_spin_destroy(1) => spin_destroy;
}

entry! {
    looking
    pthread_mutex_trylock(1) => trylock;
    pthread_spin_trylock(1) => spin_trylock;
}
