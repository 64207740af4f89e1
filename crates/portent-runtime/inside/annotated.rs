//! Locks that the program makes itself and annotates: `__tsan_mutex_*`, `AnnotateRWLock*`.
//!
//! Such a lock is a lock like any other. Whoever is about to take it waits here until its annotations say that it is free, so
//! that who waits for whom is known, and a schedule can decide who comes first; then the program's own code takes it. Between
//! *pre* and *post* that code is not looked at: its plain accesses are left out of the trace by the conversion, and its atomic
//! operations are no events ([`crate::atomics`]). Other calls that it makes (futexes, a mutex inside) keep their own meaning.
//!
//! `AnnotateRWLock*` say only what has happened: there the program's code waits by itself, and stays part of the recording.
//!
//! What is kept: who holds which lock, and the flags of those that have any. Annotations that contradict each other (a lock that
//! is given back by somebody else) end in the conversion, as with every lock.

use crate::entry::entry;
use crate::log::{note, op};
use crate::semaphore::Objects;
use crate::state::{self, Pending, Thread, Wait};
use crate::{objects, record, sched};

/// Flags of ThreadSanitizer's interface.
mod flag {
    pub const LINKER_INIT: u32 = 1;
    pub const WRITE_REENTRANT: u32 = 1 << 1;
    pub const READ_REENTRANT: u32 = 1 << 2;
    pub const READ_LOCK: u32 = 1 << 3;
    pub const TRY_LOCK: u32 = 1 << 4;
    pub const TRY_LOCK_FAILED: u32 = 1 << 5;
    pub const RECURSIVE_LOCK: u32 = 1 << 6;
    pub const RECURSIVE_UNLOCK: u32 = 1 << 7;
    pub const NOT_STATIC: u32 = 1 << 8;
    /// Those that say what a lock is, and are remembered.
    pub const LASTING: u32 = LINKER_INIT | WRITE_REENTRANT | READ_REENTRANT | NOT_STATIC;
}

/// Locks that are held or have lasting flags: who has it (plus one) and the flags above that; how often; how many read.
static mut LOCKS: Objects<16384> = Objects::new();

/// A lock as the table has it.
#[derive(Clone, Copy, Default)]
struct Lock {
    owner: u32,
    flags: u32,
    depth: u64,
    readers: u64,
}

fn find(at: usize) -> Lock {
    // SAFETY: the holder of the token.
    let found = unsafe { (*&raw const LOCKS).find(at) };
    found.map_or(Lock::default(), |[owner, depth, readers]| Lock {
        owner: owner as u32,
        flags: (owner >> 32) as u32,
        depth,
        readers,
    })
}

fn keep(at: usize, Lock { owner, flags, depth, readers }: Lock) {
    // SAFETY: the holder of the token.
    let table = unsafe { &mut *&raw mut LOCKS };
    if owner == 0 && readers == 0 && flags == 0 {
        return table.remove(at);
    }
    *table.get(at) = [u64::from(owner) | u64::from(flags) << 32, depth, readers];
}

/// Whether a thread could take a lock for reading now.
pub fn can_read(at: usize, who: &Thread) -> bool {
    let lock = find(at);
    lock.owner == 0 || (lock.owner == who.id + 1 && lock.flags & (flag::READ_REENTRANT | flag::WRITE_REENTRANT) != 0)
}

/// Whether a thread could take a lock for writing now.
pub fn can_write(at: usize, who: &Thread) -> bool {
    let lock = find(at);
    let again = lock.owner == who.id + 1 && lock.flags & flag::WRITE_REENTRANT != 0;
    again || (lock.owner == 0 && lock.readers == 0)
}

fn remember(at: usize, flags: u32) {
    let known = find(at);
    if flags & flag::LASTING & !known.flags != 0 {
        keep(at, Lock { flags: known.flags | flags & flag::LASTING, ..known });
    }
}

/// From here on the thread is in code that is not looked at.
fn hide(me: &mut Thread) {
    me.quiet += 1;
    record::note(note::IGNORE, &[&[1]]);
}

fn show(me: &mut Thread) {
    if me.quiet > 0 {
        me.quiet -= 1;
        record::note(note::IGNORE, &[&[0]]);
    }
}

/// The thread has taken a lock, so many times at once.
fn taken(me: &mut Thread, at: usize, reads: bool, times: u64) {
    let lock = find(at);
    let depth = if lock.owner == me.id + 1 { lock.depth + times } else { times };
    match reads {
        true => keep(at, Lock { readers: lock.readers + 1, ..lock }),
        false => keep(at, Lock { owner: me.id + 1, depth, ..lock }),
    }
}

/// The thread gives a lock back, once or altogether; how often it had it.
fn given_back(me: &Thread, at: usize, reads: bool, all: bool) -> u64 {
    let lock = find(at);
    if reads {
        keep(at, Lock { readers: lock.readers.saturating_sub(1), ..lock });
        return 1;
    }
    let left = if all || lock.owner != me.id + 1 { 0 } else { lock.depth.saturating_sub(1) };
    let owner = if left == 0 { 0 } else { lock.owner };
    keep(at, Lock { owner, depth: left, ..lock });
    lock.depth.max(1)
}

pub extern "C-unwind" fn create(at: usize, flags: u32, _pc: usize) {
    if let Some(me) = state::enter() {
        // A new lock: what was there before is gone.
        keep(at, Lock { flags: flags & flag::LASTING, ..Lock::default() });
        state::leave(me);
    }
}

pub extern "C-unwind" fn destroy(at: usize, flags: u32, pc: usize) {
    if let Some(me) = state::enter() {
        let lock = find(at);
        // Static locks are destroyed while others still use them, and nothing comes of it.
        let lasts = (flags | lock.flags) & flag::LINKER_INIT != 0
            || (flags & flag::NOT_STATIC != 0 && lock.flags & flag::NOT_STATIC == 0);
        if !lasts {
            let holder = if lock.owner != 0 { Some(lock.owner) } else { (lock.readers > 0).then_some(0) };
            objects::destroyed(me, at, "lock", holder, pc);
            keep(at, Lock::default());
        }
        state::leave(me);
    }
}

fn taking(reads: bool, tries: bool) -> u16 {
    match (reads, tries) {
        (false, false) => op::ACQUIRE,
        (false, true) => op::TRY_ACQUIRE,
        (true, false) => op::ACQUIRE_SHARED,
        (true, true) => op::TRY_ACQUIRE_SHARED,
    }
}

pub extern "C-unwind" fn pre_lock(at: usize, flags: u32, pc: usize) {
    let Some(me) = state::enter() else { return };
    remember(at, flags);
    let reads = flags & flag::READ_LOCK != 0;
    let tries = flags & flag::TRY_LOCK != 0;
    let op = taking(reads, tries);
    let wait = match (tries, reads) {
        (true, _) => Wait::Nothing,
        (false, true) => Wait::AnnotatedRead(at),
        (false, false) => Wait::AnnotatedWrite(at),
    };
    sched::before(me, Pending { op, address: at, pc, wait, ..Pending::default() });
    hide(me);
    state::leave(me);
}

pub extern "C-unwind" fn post_lock(at: usize, flags: u32, recursion: i32, pc: usize) {
    let Some(me) = state::enter() else { return };
    show(me);
    let reads = flags & flag::READ_LOCK != 0;
    let again = flags & flag::RECURSIVE_LOCK != 0 && recursion > 0;
    // No turn is asked for: the thread had it before it took the lock, and nothing may come between.
    let op = match (flags & flag::TRY_LOCK_FAILED != 0, reads) {
        (true, true) => op::BUSY_SHARED,
        (true, false) => op::BUSY,
        (false, false) if again => op::ACQUIRE_ALL,
        (false, _) => taking(reads, flags & flag::TRY_LOCK != 0),
    };
    if flags & flag::TRY_LOCK_FAILED == 0 {
        remember(at, flags);
        taken(me, at, reads, if again { recursion as u64 } else { 1 });
    }
    record::plain(me, op, at, pc);
    state::leave(me);
}

pub extern "C-unwind" fn pre_unlock(at: usize, flags: u32, pc: usize) -> i32 {
    let Some(me) = state::enter() else { return 0 };
    let (reads, all) = (flags & flag::READ_LOCK != 0, flags & flag::RECURSIVE_UNLOCK != 0);
    let levels = release(me, at, reads, all, pc);
    hide(me);
    state::leave(me);
    if all { levels as i32 } else { 0 }
}

/// Takes a lock of which nothing but this is made: [`crate::openmp`]'s.
pub fn take(me: &mut Thread, at: usize, nests: bool, pc: usize) {
    remember(at, if nests { flag::WRITE_REENTRANT } else { 0 });
    let wait = Wait::AnnotatedWrite(at);
    sched::before(me, Pending { op: op::ACQUIRE, address: at, pc, wait, ..Pending::default() });
    taken(me, at, false, 1);
    record::plain(me, op::ACQUIRE, at, pc);
}

/// The same, if it is free; how often the thread has it then.
pub fn try_to_take(me: &mut Thread, at: usize, nests: bool, pc: usize) -> u64 {
    remember(at, if nests { flag::WRITE_REENTRANT } else { 0 });
    sched::before(me, state::plain(op::TRY_ACQUIRE, at, pc));
    if !can_write(at, me) {
        record::plain(me, op::BUSY, at, pc);
        return 0;
    }
    taken(me, at, false, 1);
    record::plain(me, op::TRY_ACQUIRE, at, pc);
    find(at).depth
}

/// Gives such a lock back, once.
pub fn give_back(me: &mut Thread, at: usize, pc: usize) {
    release(me, at, false, false, pc);
}

fn release(me: &mut Thread, at: usize, reads: bool, all: bool, pc: usize) -> u64 {
    let op = match (reads, all) {
        (true, _) => op::RELEASE_SHARED,
        (false, true) => op::RELEASE_ALL,
        (false, false) => op::RELEASE,
    };
    sched::before(me, state::plain(op, at, pc));
    let levels = given_back(me, at, reads, all);
    record::plain(me, op, at, pc);
    levels
}

/// The end of unlocking and signalling, and the beginning of something else in between.
pub extern "C-unwind" fn shown(_at: usize, _flags: u32, _pc: usize) {
    if let Some(me) = state::enter() {
        show(me);
        state::leave(me);
    }
}

/// The beginning of signalling, and the end of something else in between.
pub extern "C-unwind" fn hidden(_at: usize, _flags: u32, _pc: usize) {
    if let Some(me) = state::enter() {
        hide(me);
        state::leave(me);
    }
}

/// A lock was taken, as its own code saw to.
pub fn acquired(at: usize, reads: bool, times: u64, pc: usize) {
    let Some(me) = state::enter() else { return };
    let op = match (reads, times) {
        (true, _) => op::ACQUIRE_SHARED,
        (false, 1) => op::ACQUIRE,
        (false, _) => op::ACQUIRE_ALL,
    };
    sched::before(me, state::plain(op, at, pc));
    taken(me, at, reads, times);
    record::plain(me, op, at, pc);
    state::leave(me);
}

/// A lock is about to be given back; how often its thread had it.
pub fn released(at: usize, reads: bool, all: bool, pc: usize) -> u64 {
    let Some(me) = state::enter() else { return 0 };
    let levels = release(me, at, reads, all, pc);
    state::leave(me);
    levels
}

// Behind a file and a line, as all annotations of this family.
pub extern "C-unwind" fn rw_create(_file: usize, _line: i32, at: usize, pc: usize) {
    create(at, flag::WRITE_REENTRANT, pc);
}

pub extern "C-unwind" fn rw_create_static(_file: usize, _line: i32, at: usize, pc: usize) {
    create(at, flag::WRITE_REENTRANT | flag::LINKER_INIT, pc);
}

pub extern "C-unwind" fn rw_destroy(_file: usize, _line: i32, at: usize, pc: usize) {
    destroy(at, 0, pc);
}

pub extern "C-unwind" fn rw_acquired(_file: usize, _line: i32, at: usize, writes: usize, pc: usize) {
    acquired(at, writes == 0, 1, pc);
}

pub extern "C-unwind" fn rw_released(_file: usize, _line: i32, at: usize, writes: usize, pc: usize) {
    released(at, writes == 0, false, pc);
}

entry! {
    __tsan_mutex_create(2) => create;
    __tsan_mutex_destroy(2) => destroy;
    __tsan_mutex_pre_lock(2) => pre_lock;
    __tsan_mutex_post_lock(3) => post_lock;
    __tsan_mutex_pre_unlock(2) => pre_unlock;
    __tsan_mutex_post_unlock(2) => shown;
    __tsan_mutex_pre_signal(2) => hidden;
    __tsan_mutex_post_signal(2) => shown;
    __tsan_mutex_pre_divert(2) => shown;
    __tsan_mutex_post_divert(2) => hidden;
    AnnotateRWLockCreate(3) => rw_create;
    AnnotateRWLockCreateStatic(3) => rw_create_static;
    AnnotateRWLockDestroy(3) => rw_destroy;
    AnnotateRWLockAcquired(4) => rw_acquired;
    AnnotateRWLockReleased(4) => rw_released;
}
