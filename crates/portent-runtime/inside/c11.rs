//! C11 threads. In glibc they are POSIX threads with other names and results.

use crate::entry::entry;
use crate::real::{Ptr, Real};
use crate::{condition, mutex, once, state, sys, threads};

const SUCCESS: i32 = 0;
const BUSY: i32 = 1;
const ERROR: i32 = 2;
const NO_MEMORY: i32 = 3;
const TIMED_OUT: i32 = 4;

fn result(error: i32) -> i32 {
    match error {
        0 => SUCCESS,
        sys::EBUSY => BUSY,
        sys::ENOMEM | sys::EAGAIN => NO_MEMORY,
        sys::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

macro_rules! real {
    ($name:literal, $type:ty) => {{
        #[unsafe(link_section = "portent_real")]
        static REAL: Real = Real::new($name);
        // SAFETY: the C library defines the function with this type.
        unsafe { std::mem::transmute::<Ptr, $type>(REAL.required()) }
    }};
}

/// A C11 routine returns an `int`; where POSIX wants a pointer, the same register holds it.
pub unsafe extern "C-unwind" fn create(out: *mut usize, routine: usize, argument: usize, pc: usize) -> i32 {
    if state::current().is_null() {
        return real!(b"thrd_create\0", extern "C-unwind" fn(*mut usize, usize, usize) -> i32)(out, routine, argument);
    }
    // SAFETY: passed on.
    result(unsafe { threads::create(out, std::ptr::null_mut(), routine, argument, pc) })
}

pub unsafe extern "C-unwind" fn join(thread: usize, out: *mut i32, pc: usize) -> i32 {
    if state::current().is_null() {
        return real!(b"thrd_join\0", extern "C-unwind" fn(usize, *mut i32) -> i32)(thread, out);
    }
    let mut value = std::ptr::null_mut();
    // SAFETY: passed on.
    let joined = unsafe { threads::join_entry(thread, &raw mut value, pc) };
    if joined == 0 && !out.is_null() {
        // SAFETY: the program's place for the result.
        unsafe { *out = value as usize as i32 };
    }
    result(joined)
}

pub unsafe extern "C-unwind" fn detach(thread: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    result(unsafe { threads::detach(thread, pc) })
}

pub unsafe extern "C-unwind" fn lock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on: an `mtx_t` is a `pthread_mutex_t`.
    result(unsafe { mutex::lock(at, pc) })
}

pub unsafe extern "C-unwind" fn try_lock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    result(unsafe { mutex::trylock(at, pc) })
}

pub unsafe extern "C-unwind" fn timed_lock(at: usize, until: *const sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    result(unsafe { mutex::timedlock(at, until, pc) })
}

pub unsafe extern "C-unwind" fn unlock(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    result(unsafe { mutex::unlock(at, pc) })
}

pub unsafe extern "C-unwind" fn wait(at: usize, lock: usize, pc: usize) -> i32 {
    // SAFETY: passed on: a `cnd_t` is a `pthread_cond_t`.
    result(unsafe { condition::cond_wait(at, lock, pc) })
}

pub unsafe extern "C-unwind" fn timed_wait(at: usize, lock: usize, until: *const sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    result(unsafe { condition::cond_timedwait(at, lock, until, pc) })
}

pub unsafe extern "C-unwind" fn signal(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    result(unsafe { condition::cond_signal(at, pc) })
}

pub unsafe extern "C-unwind" fn broadcast(at: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    result(unsafe { condition::cond_broadcast(at, pc) })
}

pub unsafe extern "C-unwind" fn destroy_mutex(at: usize, pc: usize) {
    // SAFETY: passed on.
    unsafe { mutex::destroy(at, pc) };
}

pub unsafe extern "C-unwind" fn destroy_condition(at: usize, pc: usize) {
    // SAFETY: passed on.
    unsafe { condition::cond_destroy(at, pc) };
}

pub unsafe extern "C-unwind" fn call_once(at: usize, routine: extern "C-unwind" fn(), pc: usize) {
    // SAFETY: passed on: a `once_flag` is a `pthread_once_t`.
    unsafe { once::once(at, routine, pc) };
}

pub unsafe extern "C-unwind" fn sleep(time: *const sys::Timespec, left: *mut sys::Timespec, pc: usize) -> i32 {
    // SAFETY: passed on.
    unsafe { crate::answers::nanosleep(time, left, pc) }
}

entry! {
    thrd_create(3) => create;
    thrd_join(2) => join;
    thrd_detach(1) => detach;
    mtx_lock(1) => lock;
    mtx_timedlock(2) => timed_lock;
    mtx_unlock(1) => unlock;
    mtx_destroy(1) => destroy_mutex;
    cnd_wait(2) => wait;
    cnd_timedwait(3) => timed_wait;
    cnd_signal(1) => signal;
    cnd_broadcast(1) => broadcast;
    cnd_destroy(1) => destroy_condition;
    call_once(2) => call_once;
}

entry! {
    looking
    thrd_sleep(2) => sleep;
    mtx_trylock(1) => try_lock;
}
