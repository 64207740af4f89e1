//! Condition variables. The C library's own are never waited on: sleeping and waking are the scheduler's.
//!
//! A wait is four events: sleep, release of the mutex, wake, acquire of the mutex; each is a point where others may run. A
//! signal leaves a *permit* that any thread asleep at that time may use, so that the schedule decides who wakes, as it may
//! in reality. A broadcast marks everybody who sleeps.
//!
//! Conditions shared with other processes are the exception: they are waited on in the kernel, and as nobody can tell who
//! notified, their waits are recorded as ended by time.

use crate::answers::Deadline;
use crate::entry::entry;
use crate::log::op;
use crate::mutex;
use crate::real::{self, Ptr};
use crate::state::{self, BY_ITSELF, Life, Pending, Thread, Wait};
use crate::{objects, record, sched, sys, waits};

/// A signal that nobody has used yet: condition, and when it was sent.
#[derive(Clone, Copy)]
struct Permit {
    condition: usize,
    sent: u64,
}

/// There are never more permits than threads asleep.
const MOST: usize = crate::log::MAX_THREADS;
static mut PERMITS: [Permit; MOST] = [Permit { condition: 0, sent: 0 }; MOST];
static mut COUNT: usize = 0;

/// Forgets them, in a forked child.
///
/// # Safety
/// Called by the only thread of its process, which is not recorded.
pub unsafe fn forget() {
    // SAFETY: nobody else runs.
    unsafe { COUNT = 0 };
}

/// The permits there are. Only the holder of the token comes here.
fn permits() -> &'static mut [Permit] {
    // SAFETY: the holder of the token, one at a time, and never two of these at once.
    unsafe { &mut (&mut *&raw mut PERMITS)[..COUNT] }
}

/// Whether a thread that fell asleep at `slept` could use a permit.
pub fn has_permit(condition: usize, slept: u64) -> bool {
    permits().iter().any(|permit| permit.condition == condition && permit.sent > slept)
}

fn use_permit(condition: usize, slept: u64) {
    let list = permits();
    if let Some(at) = list.iter().position(|permit| permit.condition == condition && permit.sent > slept) {
        // The earliest, as the trace pairs them; the order of the rest stays.
        list.copy_within(at + 1.., at);
        // SAFETY: the holder of the token.
        unsafe { COUNT -= 1 };
    }
}

/// Drops permits that no sleeper is left to use: they would count against signals to come.
fn drop_unusable(condition: usize) {
    let list = permits();
    let (mut kept, mut usable) = (0, 0);
    for at in 0..list.len() {
        let permit = list[at];
        if permit.condition == condition {
            if sleepers(condition).filter(|one| one.slept < permit.sent).count() <= usable {
                continue;
            }
            usable += 1;
        }
        list[kept] = permit;
        kept += 1;
    }
    // SAFETY: the holder of the token.
    unsafe { COUNT = kept };
}

/// Those asleep on a condition and not woken yet.
fn sleepers(condition: usize) -> impl Iterator<Item = &'static mut Thread> {
    // SAFETY: the holder of the token; waiting threads do not touch their state.
    let living = unsafe { (*sched::peek()).living() };
    living.filter(move |one| is_asleep(one, condition))
}

/// Whether a thread sleeps on the condition: from its `slp` on, also while it still has to give its mutex back.
fn is_asleep(one: &Thread, condition: usize) -> bool {
    one.life != Life::Done && one.asleep_on == condition && !one.notified
}

fn now() -> u64 {
    // SAFETY: the holder of the token.
    unsafe {
        let scheduler = sched::peek();
        (*scheduler).clock += 1;
        (*scheduler).clock
    }
}

/// Waits on a condition with a mutex; 0 or ETIMEDOUT.
pub fn wait(me: &mut Thread, condition: usize, lock: usize, deadline: Deadline, pc: usize) -> i32 {
    objects::about_to_use(me, condition, pc);
    objects::about_to_use(me, lock, pc);
    sched::before(me, state::plain(op::SLEEP, condition, pc));
    uses(condition, pc);
    record::plain(me, op::SLEEP, condition, pc);
    if is_shared(condition) {
        return wait_in_kernel(me, condition, lock, deadline, pc);
    }
    me.slept = now();
    me.notified = false;
    me.asleep_on = condition;
    let result = mutex::unlock_as(me, op::RELEASE_ALL, lock, pc);
    if result != 0 {
        // Not its mutex: nothing to wait with. The sleep ends by itself.
        me.asleep_on = 0;
        drop_unusable(condition);
        record::plain(me, op::TIME_OUT, condition, pc);
        return result;
    }
    let timed = deadline.virtual_time() != 0;
    // SAFETY: the holder of the token. Once is enough: who waits in a loop could be woken so for ever.
    let by_itself = !timed && !me.woke_by_itself && unsafe { (*sched::peek()).spurious };
    let pending = Pending {
        op: op::WAKE,
        address: condition,
        size: 0,
        pc,
        wait: Wait::Condition(condition),
        deadline: if by_itself { BY_ITSELF } else { deadline.virtual_time() },
    };
    sched::before(me, pending);
    // Who is cancelled leaves the signal to the others.
    let by_signal = !me.notified && !me.is_cancelled() && has_permit(condition, me.slept);
    let woken = me.notified || by_signal;
    if by_signal {
        use_permit(condition, me.slept);
    }
    me.asleep_on = 0;
    me.notified = false;
    if !by_signal {
        drop_unusable(condition);
    }
    let ended = match (woken, timed) {
        (true, false) => op::WAKE,
        (true, true) => op::WAKE_IN_TIME,
        // Who is cancelled leaves, as if its time were up.
        (false, false) if by_itself && !me.is_cancelled() => op::WAKE_BY_ITSELF,
        (false, _) => op::TIME_OUT,
    };
    me.woke_by_itself |= ended == op::WAKE_BY_ITSELF;
    record::plain(me, ended, condition, pc);
    let result = mutex::lock_as(me, op::ACQUIRE_ALL, lock, Deadline::NEVER, pc);
    match result {
        0 if ended == op::TIME_OUT && !me.is_cancelled() => sys::ETIMEDOUT,
        _ => result,
    }
}

/// Told by a thread that uses a condition, before it does. One that was destroyed has bit 2 of glibc's `__wrefs`.
fn uses(condition: usize, pc: usize) {
    // SAFETY: the program's condition variable.
    if unsafe { *((condition + 36) as *const u32) & 4 != 0 } {
        objects::used_after(condition, "condition", pc);
    }
}

/// Whether other processes may use it: bit 0 of glibc's `__wrefs`, the word at byte 36.
fn is_shared(condition: usize) -> bool {
    // SAFETY: the program's condition variable.
    unsafe { *((condition + 36) as *const u32) & 1 != 0 }
}

/// The same where another process may be the one that notifies. The real function gives the mutex back and takes it.
fn wait_in_kernel(me: &mut Thread, condition: usize, lock: usize, deadline: Deadline, pc: usize) -> i32 {
    sched::before(me, state::plain(op::RELEASE_ALL, lock, pc));
    record::plain(me, op::RELEASE_ALL, lock, pc);
    // SAFETY: the program's objects.
    let result = waits::away(me, pc, || unsafe {
        match deadline.absolute() {
            Some(until) => real::pthread_cond_clockwait(condition as Ptr, lock as Ptr, 0, (&raw const until) as Ptr),
            None => real::pthread_cond_wait(condition as Ptr, lock as Ptr),
        }
    });
    record::plain(me, op::TIME_OUT, condition, pc);
    record::plain(me, op::ACQUIRE_ALL, lock, pc);
    result
}

pub fn signal(me: &mut Thread, condition: usize, pc: usize) {
    objects::about_to_use(me, condition, pc);
    sched::before(me, state::plain(op::NOTIFY, condition, pc));
    uses(condition, pc);
    record::plain(me, op::NOTIFY, condition, pc);
    if is_shared(condition) {
        // SAFETY: the program's condition variable.
        unsafe { real::pthread_cond_signal(condition as Ptr) };
        return;
    }
    let asleep = sleepers(condition).count();
    let sent = permits().iter().filter(|permit| permit.condition == condition).count();
    // SAFETY: the holder of the token.
    unsafe {
        if asleep > sent && COUNT < MOST {
            (*&raw mut PERMITS)[COUNT] = Permit { condition, sent: now() };
            COUNT += 1;
        }
    }
}

pub fn broadcast(me: &mut Thread, condition: usize, pc: usize) {
    objects::about_to_use(me, condition, pc);
    sched::before(me, state::plain(op::NOTIFY_ALL, condition, pc));
    uses(condition, pc);
    record::plain(me, op::NOTIFY_ALL, condition, pc);
    if is_shared(condition) {
        // SAFETY: the program's condition variable.
        unsafe { real::pthread_cond_broadcast(condition as Ptr) };
        return;
    }
    sleepers(condition).for_each(|one| one.notified = true);
    // Who was to wake by a signal is woken by this.
    let list = permits();
    let mut kept = 0;
    for at in 0..list.len() {
        if list[at].condition != condition {
            list[kept] = list[at];
            kept += 1;
        }
    }
    // SAFETY: the holder of the token.
    unsafe { COUNT = kept };
}

/// Ends a wait that a cancellation ended: does not return then.
fn finish(me: &mut Thread, result: i32) -> i32 {
    let cancelled = me.is_cancelled();
    state::leave(me);
    if cancelled {
        // SAFETY: a cancellation point of the C library, with no frame of ours that has to be cleaned up.
        unsafe { real::pthread_testcancel() };
    }
    result
}

pub unsafe extern "C-unwind" fn cond_wait(condition: usize, lock: usize, pc: usize) -> i32 {
    let Some(me) = state::enter() else {
        // SAFETY: passed on.
        return unsafe { real::pthread_cond_wait(condition as Ptr, lock as Ptr) };
    };
    let result = wait(me, condition, lock, Deadline::NEVER, pc);
    finish(me, result)
}

pub unsafe extern "C-unwind" fn cond_timedwait(
    condition: usize,
    lock: usize,
    until: *const sys::Timespec,
    pc: usize,
) -> i32 {
    let Some(me) = state::enter() else {
        // SAFETY: passed on.
        return unsafe { real::pthread_cond_timedwait(condition as Ptr, lock as Ptr, until as Ptr) };
    };
    // Which clock the condition uses is in its flags: bit 1 of the word at byte 36 (glibc's `__wrefs`) says monotonic.
    // SAFETY: the program's condition variable.
    let clock = i32::from(unsafe { *((condition + 36) as *const u32) } & 2 != 0);
    let result = wait(me, condition, lock, Deadline::at(clock, until), pc);
    finish(me, result)
}

pub unsafe extern "C-unwind" fn cond_clockwait(
    condition: usize,
    lock: usize,
    clock: i32,
    until: *const sys::Timespec,
    pc: usize,
) -> i32 {
    let Some(me) = state::enter() else {
        // SAFETY: passed on.
        return unsafe { real::pthread_cond_clockwait(condition as Ptr, lock as Ptr, clock, until as Ptr) };
    };
    let result = wait(me, condition, lock, Deadline::at(clock, until), pc);
    finish(me, result)
}

pub unsafe extern "C-unwind" fn cond_signal(condition: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_cond_signal(condition as Ptr) } };
    signal(me, condition, pc);
    state::leave(me);
    0
}

pub unsafe extern "C-unwind" fn cond_broadcast(condition: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_cond_broadcast(condition as Ptr) } };
    broadcast(me, condition, pc);
    state::leave(me);
    0
}

/// A condition may be destroyed as soon as nobody sleeps on it who has not been notified: those may still have to wake.
pub unsafe extern "C-unwind" fn cond_destroy(condition: usize, pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        objects::about_to_destroy(me, condition, pc);
        uses(condition, pc);
        objects::destroyed(me, condition, "condition", None, pc);
        state::leave(me);
    }
    // SAFETY: passed on.
    unsafe { real::pthread_cond_destroy(condition as Ptr) }
}

entry! {
    pthread_cond_destroy(1) => cond_destroy;
    pthread_cond_wait(2) => cond_wait;
    pthread_cond_timedwait(3) => cond_timedwait;
    pthread_cond_clockwait(4) => cond_clockwait;
    pthread_cond_signal(1) => cond_signal;
    pthread_cond_broadcast(1) => cond_broadcast;
}
