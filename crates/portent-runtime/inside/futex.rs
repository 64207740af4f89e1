//! Raw futexes, through `syscall(2)`: what C++20's semaphores, latches, barriers and `atomic::wait`, and Rust's locks, are made of.
//!
//! A wait compares and sleeps in one step, under the kernel's lock of the word. That lock is in the recording too, so
//! that no reordering puts a wake between the comparison and the sleep:
//! wait = `acq`, atomic read, `slp`, `rel`, … `wak`; wake = `acq`, `ntf` per woken thread, `rel`.

use crate::answers::Deadline;
use crate::log::op;
use crate::real::{Ptr, Real};
use crate::state::{self, Life, Pending, Thread, Wait};
use crate::{blocking, record, sched, sys};

static SYSCALL: Real = Real::new(b"syscall\0");

const WAIT: usize = 0;
const WAKE: usize = 1;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;
const COMMAND: usize = 127;
const CLOCK_REALTIME: usize = 256;
const PRIVATE: usize = 128;

type Call = unsafe extern "C-unwind" fn(i64, usize, usize, usize, usize, usize, usize) -> isize;

/// `syscall(2)`, with the return address: the naked entry saves it where the runtime finds it.
pub unsafe extern "C-unwind" fn system_call(
    n: i64,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    // SAFETY: the C library's function; unused arguments are whatever was in their registers, as with any variadic call.
    let real = || unsafe { std::mem::transmute::<Ptr, Call>(SYSCALL.required())(n, a, b, c, d, e, f) };
    // The return address is not passed on, as all argument registers are used: the site is the thread's last call.
    let Some(me) = state::enter() else { return real() };
    let result = match (n, b & COMMAND) {
        (sys::SYS_FUTEX, WAIT | WAIT_BITSET) if b & PRIVATE != 0 || !is_mapped_shared() => {
            wait(me, a, b, c as u32, d as *const sys::Timespec)
        }
        (sys::SYS_FUTEX, WAKE | WAKE_BITSET) => {
            let woken = wake(me, a, c);
            let elsewhere = real();
            Ok(if woken > 0 { woken as isize } else { elsewhere })
        }
        (sys::SYS_GETTID | sys::SYS_GETPID, _) => Ok(real()),
        _ if blocking::may_block(n) => {
            sched::go_away(me, 0);
            let result = real();
            // SAFETY: this thread's errno, which coming back must not change.
            let error = unsafe { *sys::__errno_location() };
            sched::come_back(me);
            // SAFETY: as above.
            unsafe { *sys::__errno_location() = error };
            Ok(result)
        }
        _ => Ok(real()),
    };
    state::leave(me);
    result.unwrap_or_else(|error| sys::fail(error) as isize)
}

/// Words shared with other processes are rare and cannot be told by looking; they are taken for this process's own.
fn is_mapped_shared() -> bool {
    false
}

fn wait(me: &mut Thread, word: usize, command: usize, expected: u32, time: *const sys::Timespec) -> Result<isize, i32> {
    let deadline = match command & COMMAND {
        _ if time.is_null() => Deadline::NEVER,
        WAIT => Deadline::after(time),
        _ => Deadline::at(i32::from(command & CLOCK_REALTIME == 0), time),
    };
    let pc = 0;
    sched::before(me, state::plain(op::ACQUIRE, word, pc));
    let found = record::load(word, 4);
    record::plain(me, op::ACQUIRE, word, pc);
    record::access(me, op::READ + 4, word, 4, found, pc);
    if found != Some(u64::from(expected)) {
        record::plain(me, op::RELEASE, word, pc);
        return Err(sys::EAGAIN);
    }
    record::plain(me, op::SLEEP, word, pc);
    me.notified = false;
    me.asleep_on = word;
    record::plain(me, op::RELEASE, word, pc);
    sched::before(
        me,
        Pending {
            op: op::WAKE,
            address: word,
            size: 0,
            pc,
            wait: Wait::Futex(word),
            deadline: deadline.virtual_time(),
        },
    );
    let woken = me.notified;
    me.notified = false;
    me.asleep_on = 0;
    record::plain(me, if woken { op::WAKE } else { op::TIME_OUT }, word, pc);
    match woken {
        true => Ok(0),
        false if me.interrupted => Err(sys::EINTR),
        false => Err(sys::ETIMEDOUT),
    }
}

fn wake(me: &mut Thread, word: usize, most: usize) -> usize {
    let pc = 0;
    sched::before(me, state::plain(op::ACQUIRE, word, pc));
    record::plain(me, op::ACQUIRE, word, pc);
    let mut woken = 0;
    // SAFETY: the holder of the token; waiting threads do not touch their state.
    let living = unsafe { (*sched::peek()).living() };
    for one in living {
        if woken < most && one.life == Life::Waiting && one.pending.wait == Wait::Futex(word) && !one.notified {
            one.notified = true;
            woken += 1;
            record::plain(me, op::NOTIFY, word, pc);
        }
    }
    if woken == 0 {
        record::plain(me, op::NOTIFY, word, pc);
    }
    record::plain(me, op::RELEASE, word, pc);
    woken
}

/// `syscall` has seven arguments, the last on the stack, and uses all registers: it is passed on as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(n: i64, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    // SAFETY: passed on.
    unsafe { system_call(n, a, b, c, d, e, f) }
}
