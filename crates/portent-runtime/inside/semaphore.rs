//! Semaphores and barriers.
//!
//! A semaphore's count is the C library's own. Barriers are the runtime's: arriving and leaving are events, and the real
//! barrier is never waited at. What is shared with other processes is waited for in the kernel; what they do to it is not
//! in the recording.
//!
//! Tables have room for 4096 semaphores and 4096 barriers at a time (until they are destroyed, or initialised again). More
//! end the program, with a message.

use crate::answers::Deadline;
use crate::entry::entry;
use crate::log::op;
use crate::objects::{self, Mark};
use crate::real::{self, Ptr};
use crate::spin::{self, Look};
use crate::state::{self, Pending, Thread, Wait};
use crate::{record, sched, sys, waits};

/// The count of a semaphore.
pub fn count(at: usize) -> i32 {
    let mut value = 0;
    // SAFETY: the program's semaphore.
    unsafe { real::sem_getvalue(at as Ptr, &raw mut value) };
    value
}

/// The key of an entry that was removed: others may lie behind it.
const REMOVED: usize = 1;

/// A table from addresses to small numbers, for objects that the runtime models itself.
pub struct Objects<const N: usize> {
    keys: [usize; N],
    values: [[u64; 3]; N],
}

impl<const N: usize> Objects<N> {
    pub const fn new() -> Self {
        Self { keys: [0; N], values: [[0; 3]; N] }
    }
    /// The entry of an address; new ones are zero.
    pub fn get(&mut self, key: usize) -> &mut [u64; 3] {
        let mut free = None;
        for at in Self::places(key) {
            if self.keys[at] == key {
                return &mut self.values[at];
            }
            if self.keys[at] <= REMOVED {
                free = free.or(Some(at));
                if self.keys[at] == 0 {
                    break;
                }
            }
        }
        let Some(at) = free else {
            sys::say(&[
                "portent: the program has more semaphores, barriers or annotated locks at a time than a recording can hold: it is ended\n",
            ]);
            sys::kill_process()
        };
        self.keys[at] = key;
        self.values[at] = [0; 3];
        &mut self.values[at]
    }
    /// What is known of an address.
    pub fn find(&self, key: usize) -> Option<[u64; 3]> {
        let mut filled = Self::places(key).take_while(|&at| self.keys[at] != 0);
        filled.find(|&at| self.keys[at] == key).map(|at| self.values[at])
    }
    /// Forgets an address.
    pub fn remove(&mut self, key: usize) {
        let place = Self::places(key).take_while(|&at| self.keys[at] != 0).find(|&at| self.keys[at] == key);
        let Some(mut at) = place else { return };
        self.keys[at] = REMOVED;
        // Behind it nothing lies that would be looked for across it: then it need not be remembered.
        while self.keys[at] == REMOVED && self.keys[(at + 1) % N] == 0 {
            self.keys[at] = 0;
            at = (at + N - 1) % N;
        }
    }
    fn places(key: usize) -> impl Iterator<Item = usize> {
        let start = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (0..N).map(move |i| (start + i) % N)
    }
}

/// Semaphores whose initial count has been recorded.
static mut SEMAPHORES: Objects<4096> = Objects::new();
/// Barriers: how many threads it needs, how many have arrived, rounds over.
static mut BARRIERS: Objects<4096> = Objects::new();

/// Forgets them, in a forked child.
///
/// # Safety
/// Called by the only thread of its process, which is not recorded.
pub unsafe fn forget_all() {
    // SAFETY: nobody else runs.
    unsafe {
        sys::fill((&raw mut SEMAPHORES).cast(), 0, size_of::<Objects<4096>>());
        sys::fill((&raw mut BARRIERS).cast(), 0, size_of::<Objects<4096>>());
    }
}

const NEEDED: usize = 0;
const ARRIVED: usize = 1;
const ROUNDS: usize = 2;

fn barrier(at: usize) -> &'static mut [u64; 3] {
    // SAFETY: the holder of the token, and never two of these at once.
    unsafe { (*&raw mut BARRIERS).get(at) }
}

/// Rounds of a barrier that are over.
pub fn round(at: usize) -> u64 {
    barrier(at)[ROUNDS]
}

/// Words of a semaphore and of a barrier that the C library does not use.
const SEMAPHORE_MARK: Mark = Mark(16);
const BARRIER_MARK: Mark = Mark(24);

/// Told by a thread that uses a semaphore, before it does.
fn uses(at: usize, pc: usize) {
    if SEMAPHORE_MARK.is_set(at) {
        objects::used_after(at, "semaphore", pc);
    }
}

/// Records the initial count of a semaphore that is met for the first time (one from `sem_open`, say).
fn introduce(me: &mut Thread, at: usize, pc: usize) {
    // SAFETY: the holder of the token, and never two of these at once.
    let known = || unsafe { &mut (*&raw mut SEMAPHORES).get(at)[0] };
    if *known() == 0 {
        sched::before(me, state::plain(op::SEMAPHORE_INIT, at, pc));
        // Somebody else may have met it meanwhile.
        if std::mem::replace(known(), 1) == 0 {
            record::valued(me, op::SEMAPHORE_INIT, at, count(at).max(0) as u64, pc);
        }
    }
}

/// Whether other processes may use it: glibc's `sem_t` says so in its third word.
fn is_shared(at: usize) -> bool {
    // SAFETY: the program's semaphore.
    unsafe { *((at + 8) as *const u32) != 0 }
}

fn pass(me: &mut Thread, at: usize, deadline: Deadline, pc: usize) -> i32 {
    introduce(me, at, pc);
    // With a time limit, nobody waits there for ever.
    let passes = if deadline.virtual_time() == 0 { op::SEMAPHORE_WAIT } else { op::SEMAPHORE_TRY };
    if is_shared(at) {
        sched::before(me, state::plain(passes, at, pc));
        // SAFETY: the program's semaphore.
        if unsafe { real::sem_trywait(at as Ptr) } == 0 {
            record::plain(me, passes, at, pc);
            return 0;
        }
        // SAFETY: as above.
        let result = waits::away(me, pc, || unsafe {
            match deadline.absolute() {
                Some(until) => real::sem_timedwait(at as Ptr, (&raw const until) as Ptr),
                None => real::sem_wait(at as Ptr),
            }
        });
        record::plain(me, if result == 0 { passes } else { op::SEMAPHORE_BUSY }, at, pc);
        return result;
    }
    objects::about_to_use(me, at, pc);
    let wait = Wait::Semaphore(at);
    sched::before(me, Pending { op: passes, address: at, size: 0, pc, wait, deadline: deadline.virtual_time() });
    uses(at, pc);
    // SAFETY: the program's semaphore.
    if unsafe { real::sem_trywait(at as Ptr) } != 0 {
        record::plain(me, op::SEMAPHORE_BUSY, at, pc);
        return sys::fail(if me.is_cancelled() || me.interrupted { sys::EINTR } else { sys::ETIMEDOUT });
    }
    record::plain(me, passes, at, pc);
    0
}

fn finish(me: &mut Thread, result: i32) -> i32 {
    let cancelled = me.is_cancelled();
    state::leave(me);
    if cancelled && result != 0 {
        // SAFETY: a cancellation point, with no frame of ours that has to be cleaned up.
        unsafe { real::pthread_testcancel() };
    }
    result
}

pub unsafe extern "C-unwind" fn sem_init(at: usize, shared: i32, value: u32, pc: usize) -> i32 {
    // SAFETY: passed on.
    let result = unsafe { real::sem_init(at as Ptr, shared, value) };
    if result == 0
        && let Some(me) = state::enter()
    {
        sched::before(me, state::plain(op::SEMAPHORE_INIT, at, pc));
        record::valued(me, op::SEMAPHORE_INIT, at, u64::from(value), pc);
        // SAFETY: the holder of the token.
        unsafe { (*&raw mut SEMAPHORES).get(at)[0] = 1 };
        SEMAPHORE_MARK.clear(at);
        state::leave(me);
    }
    result
}

fn forget(at: usize) {
    if let Some(me) = state::enter() {
        // SAFETY: the holder of the token.
        unsafe { (*&raw mut SEMAPHORES).remove(at) };
        state::leave(me);
    }
}

pub unsafe extern "C-unwind" fn sem_destroy(at: usize, pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        objects::about_to_destroy(me, at, pc);
        uses(at, pc);
        objects::destroyed(me, at, "semaphore", None, pc);
        if !is_shared(at) {
            SEMAPHORE_MARK.set(at);
        }
        state::leave(me);
    }
    // SAFETY: passed on.
    let result = unsafe { real::sem_destroy(at as Ptr) };
    if result == 0 {
        forget(at);
    }
    result
}

pub unsafe extern "C-unwind" fn sem_close(at: usize, _pc: usize) -> i32 {
    // SAFETY: passed on.
    let result = unsafe { real::sem_close(at as Ptr) };
    // Opened twice, it is still there.
    if result == 0 && record::load(at, 4).is_none() {
        forget(at);
    }
    result
}

pub unsafe extern "C-unwind" fn sem_wait(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::sem_wait(at as Ptr) } };
    let result = pass(me, at, Deadline::NEVER, pc);
    finish(me, result)
}

pub unsafe extern "C-unwind" fn sem_timedwait(at: usize, until: *const sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::sem_timedwait(at as Ptr, until as Ptr) } };
    let result = pass(me, at, Deadline::at(0, until), pc);
    finish(me, result)
}

pub unsafe extern "C-unwind" fn sem_clockwait(at: usize, clock: i32, until: *const sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::sem_clockwait(at as Ptr, clock, until as Ptr) } };
    let result = pass(me, at, Deadline::at(clock, until), pc);
    finish(me, result)
}

pub unsafe extern "C-unwind" fn sem_trywait(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::sem_trywait(at as Ptr) } };
    introduce(me, at, pc);
    objects::about_to_use(me, at, pc);
    sched::before(me, state::plain(op::SEMAPHORE_TRY, at, pc));
    if count(at) == 0 {
        spin::look(me, Look::fails(op::SEMAPHORE_BUSY, at, Wait::Semaphore(at), pc), true);
    }
    uses(at, pc);
    // SAFETY: the program's semaphore.
    let result = unsafe { real::sem_trywait(at as Ptr) };
    record::plain(me, if result == 0 { op::SEMAPHORE_TRY } else { op::SEMAPHORE_BUSY }, at, pc);
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn sem_post(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::sem_post(at as Ptr) } };
    introduce(me, at, pc);
    objects::about_to_use(me, at, pc);
    sched::before(me, state::plain(op::POST, at, pc));
    uses(at, pc);
    record::plain(me, op::POST, at, pc);
    // SAFETY: the program's semaphore.
    let result = unsafe { real::sem_post(at as Ptr) };
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn barrier_init(at: usize, attributes: Ptr, count: u32, _pc: usize) -> i32 {
    // SAFETY: passed on.
    let result = unsafe { real::pthread_barrier_init(at as Ptr, attributes, count) };
    if result == 0
        && let Some(me) = state::enter()
    {
        BARRIER_MARK.clear(at);
        let state = barrier(at);
        state[NEEDED] = u64::from(count);
        state[ARRIVED] = 0;
        state::leave(me);
    }
    result
}

pub unsafe extern "C-unwind" fn barrier_destroy(at: usize, pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        objects::about_to_destroy(me, at, pc);
        if BARRIER_MARK.is_set(at) {
            objects::used_after(at, "barrier", pc);
        }
        objects::destroyed(me, at, "barrier", None, pc);
        if !is_shared_barrier(at) {
            BARRIER_MARK.set(at);
        }
        state::leave(me);
    }
    // SAFETY: passed on; nobody waits at the real one.
    let result = unsafe { real::pthread_barrier_destroy(at as Ptr) };
    if result == 0
        && let Some(me) = state::enter()
    {
        // SAFETY: the holder of the token. Some may still have to leave it.
        let used = unsafe { (*sched::peek()).living().any(|one| one.pending.wait == Wait::Barrier(at)) };
        if !used {
            // SAFETY: as above.
            unsafe { (*&raw mut BARRIERS).remove(at) };
        }
        state::leave(me);
    }
    result
}

/// Whether other processes may use it: the fourth word says so.
fn is_shared_barrier(at: usize) -> bool {
    // SAFETY: the program's barrier.
    unsafe { *((at + 12) as *const u32) != 0 }
}

pub unsafe extern "C-unwind" fn barrier_wait(at: usize, pc: usize) -> i32 {
    const SERIAL_THREAD: i32 = -1;
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_barrier_wait(at as Ptr) } };
    let is_destroyed = BARRIER_MARK.is_set(at);
    if barrier(at)[NEEDED] == 0 {
        // Made before recording began: glibc keeps the count in the third word.
        // SAFETY: the program's barrier.
        barrier(at)[NEEDED] = u64::from(unsafe { *((at + 8) as *const u32) });
    }
    objects::about_to_use(me, at, pc);
    sched::before(me, state::plain(op::ARRIVE, at, pc));
    if is_destroyed || BARRIER_MARK.is_set(at) {
        objects::used_after(at, "barrier", pc);
    }
    record::plain(me, op::ARRIVE, at, pc);
    if is_shared_barrier(at) {
        // SAFETY: the program's barrier.
        let result = waits::away(me, pc, || unsafe { real::pthread_barrier_wait(at as Ptr) });
        record::plain(me, op::DEPART, at, pc);
        state::leave(me);
        return result;
    }
    let last = wait_at_barrier(me, at, pc);
    state::leave(me);
    if last { SERIAL_THREAD } else { 0 }
}

/// After a thread's arrival: waits until all have come; whether it is the last.
fn wait_at_barrier(me: &mut Thread, at: usize, pc: usize) -> bool {
    let state = barrier(at);
    me.round = state[ROUNDS];
    state[ARRIVED] += 1;
    let last = state[ARRIVED] >= state[NEEDED];
    if last {
        state[ARRIVED] = 0;
        state[ROUNDS] += 1;
    }
    let wait = Wait::Barrier(at);
    sched::before(me, Pending { op: op::DEPART, address: at, pc, wait, ..Pending::default() });
    record::plain(me, op::DEPART, at, pc);
    last
}

/// A barrier that is no object of the C library.
pub fn make_barrier(at: usize, count: u32) {
    let state = barrier(at);
    state[NEEDED] = u64::from(count);
    state[ARRIVED] = 0;
}

/// Arrives at such a barrier and waits for the others.
pub fn pass_barrier(me: &mut Thread, at: usize, pc: usize) {
    sched::before(me, state::plain(op::ARRIVE, at, pc));
    record::plain(me, op::ARRIVE, at, pc);
    wait_at_barrier(me, at, pc);
}

entry! {
    sem_init(3) => sem_init;
    sem_wait(1) => sem_wait;
    sem_timedwait(2) => sem_timedwait;
    sem_clockwait(3) => sem_clockwait;
    sem_post(1) => sem_post;
    pthread_barrier_init(3) => barrier_init;
    sem_destroy(1) => sem_destroy;
    sem_close(1) => sem_close;
    pthread_barrier_destroy(1) => barrier_destroy;
    pthread_barrier_wait(1) => barrier_wait;
}

entry! {
    looking
    sem_trywait(1) => sem_trywait;
}
