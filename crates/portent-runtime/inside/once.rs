//! Things that are initialised once: `pthread_once`, and the guards of C++'s static variables.
//!
//! The initialiser runs between two events; who comes while it runs waits; who comes later passes. The object's own
//! memory says whether it has been done, as the C library and compilers expect it to.

use crate::entry::entry;
use crate::log::op;
use crate::real::{self, Ptr, Real};
use crate::state::{self, Pending, Thread, Wait};
use crate::{record, sched, sys};

const MOST: usize = 256;
/// Initialisers that run now; 0 is a free place.
static mut RUNNING: [usize; MOST] = [0; MOST];

/// Forgets them, in a forked child.
///
/// # Safety
/// Called by the only thread of its process, which is not recorded.
pub unsafe fn forget() {
    // SAFETY: nobody else runs.
    unsafe { RUNNING = [0; MOST] };
}

fn running() -> &'static mut [usize; MOST] {
    // SAFETY: the holder of the token, and never two of these at once.
    unsafe { &mut *&raw mut RUNNING }
}

pub fn in_progress(at: usize) -> bool {
    running().contains(&at)
}

fn start(at: usize) {
    if let Some(place) = running().iter_mut().find(|place| **place == 0) {
        *place = at;
    } else {
        sys::say(&[
            "portent: more initialisers run at the same time than a recording can hold: the program is ended\n",
        ]);
        sys::kill_process()
    }
}

fn stop(at: usize) {
    if let Some(place) = running().iter_mut().find(|place| **place == at) {
        *place = 0;
    }
}

/// Waits until nobody initialises it; whether it has been done. Records which of the two it is.
fn enter_once(me: &mut Thread, at: usize, pc: usize, done: impl Fn() -> bool) -> bool {
    sched::before(me, Pending { op: op::ONCE_BEGIN, address: at, pc, wait: Wait::Once(at), ..Pending::default() });
    if done() {
        record::plain(me, op::ONCE_PASS, at, pc);
        return true;
    }
    record::plain(me, op::ONCE_BEGIN, at, pc);
    start(at);
    false
}

fn end_once(me: &mut Thread, at: usize, pc: usize) {
    sched::before(me, state::plain(op::ONCE_END, at, pc));
    record::plain(me, op::ONCE_END, at, pc);
    stop(at);
}

/// Ends an initialiser however it is left: by return, exception or cancellation.
struct Ending {
    at: usize,
    pc: usize,
    done: bool,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(me) = state::enter() {
            // SAFETY: the program's once object.
            unsafe { std::sync::atomic::AtomicI32::from_ptr(self.at as *mut i32) }
                .store(if self.done { ONCE_DONE } else { 0 }, std::sync::atomic::Ordering::SeqCst);
            if self.done {
                end_once(me, self.at, self.pc);
            } else {
                // It was left: the lock that the once is, is given back.
                record::plain(me, op::RELEASE, self.at, self.pc);
                stop(self.at);
            }
            state::leave(me);
        }
    }
}

/// glibc's value of a `pthread_once_t` whose initialiser has run.
const ONCE_DONE: i32 = 2;

pub unsafe extern "C-unwind" fn once(at: usize, routine: extern "C-unwind" fn(), pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_once(at as Ptr, routine as Ptr) } };
    // SAFETY: the program's once object.
    let done = enter_once(me, at, pc, || unsafe { *(at as *const i32) == ONCE_DONE });
    state::leave(me);
    if !done {
        let mut ending = Ending { at, pc, done: false };
        routine();
        ending.done = true;
    }
    0
}

/// Whether a guard's variable is initialised: its first byte.
fn guard_done(at: usize) -> bool {
    // SAFETY: the program's guard.
    unsafe { *(at as *const u8) != 0 }
}

fn real_guard(which: &'static Real, at: usize) -> i32 {
    // SAFETY: libstdc++ defines the function with this type.
    unsafe { std::mem::transmute::<Ptr, unsafe extern "C" fn(usize) -> i32>(which.required())(at) }
}

#[unsafe(link_section = "portent_real")]
static ACQUIRE: Real = Real::new(b"__cxa_guard_acquire\0");
#[unsafe(link_section = "portent_real")]
static RELEASE: Real = Real::new(b"__cxa_guard_release\0");
#[unsafe(link_section = "portent_real")]
static ABORT: Real = Real::new(b"__cxa_guard_abort\0");

pub unsafe extern "C-unwind" fn guard_acquire(at: usize, pc: usize) -> i32 {
    let Some(me) = state::enter() else { return real_guard(&ACQUIRE, at) };
    let done = enter_once(me, at, pc, || guard_done(at));
    state::leave(me);
    i32::from(!done)
}

pub unsafe extern "C-unwind" fn guard_release(at: usize, pc: usize) {
    let Some(me) = state::enter() else {
        real_guard(&RELEASE, at);
        return;
    };
    // The compiler's fast path reads the guard atomically: the write it sees belongs into the recording.
    let op = op::WRITE + 2;
    sched::before(me, Pending { op, address: at, size: 1, pc, ..Pending::default() });
    // SAFETY: the program's guard.
    unsafe { *(at as *mut u8) = 1 };
    record::access(me, op, at, 1, Some(1), pc);
    end_once(me, at, pc);
    state::leave(me);
}

pub unsafe extern "C-unwind" fn guard_abort(at: usize, pc: usize) {
    let Some(me) = state::enter() else {
        real_guard(&ABORT, at);
        return;
    };
    record::plain(me, op::RELEASE, at, pc);
    stop(at);
    state::leave(me);
}

entry! {
    pthread_once(2) => once;
    __cxa_guard_acquire(1) => guard_acquire;
    __cxa_guard_release(1) => guard_release;
    __cxa_guard_abort(1) => guard_abort;
}
