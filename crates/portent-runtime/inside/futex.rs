//! Raw futexes, through `syscall(2)`: what C++20's semaphores, latches, barriers and `atomic::wait`, and Rust's locks, are made of.
//!
//! A wait compares and sleeps in one step, under the kernel's lock of the word. That lock is in the recording too, so
//! that no reordering puts a wake between the comparison and the sleep:
//! wait = `acq`, atomic read, `slp`, `rel`, … `wak`; wake = `acq`, `ntf` per woken thread, `rel`.
//!
//! Words in memory that is shared with other processes are waited for in the kernel, and so are futexes with priority
//! inheritance and those of libraries that make system calls themselves, past `syscall` (libgomp): these order nothing
//! in the recording.

use crate::answers::Deadline;
use crate::log::op;
use crate::real::{Ptr, Real};
use crate::state::{self, Life, Pending, Thread, Wait};
use crate::{blocking, process, record, sched, sys};

#[unsafe(link_section = "portent_real")]
static SYSCALL: Real = Real::new(b"syscall\0");

const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const COMPARE_REQUEUE: usize = 4;
const WAKE_OPERATION: usize = 5;
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
        (sys::SYS_FUTEX, command @ (WAIT | WAIT_BITSET)) if b & PRIVATE != 0 || !process::is_mapped_shared(a) => {
            me.bits = if command == WAIT { u32::MAX } else { f as u32 };
            wait(me, a, b, c as u32, d as *const sys::Timespec)
        }
        (sys::SYS_FUTEX, command @ (WAKE | WAKE_BITSET)) => {
            let woken = wake(me, a, c, if command == WAKE { u32::MAX } else { f as u32 });
            let elsewhere = real();
            Ok(if woken > 0 { woken as isize } else { elsewhere })
        }
        (sys::SYS_FUTEX, command @ (REQUEUE | COMPARE_REQUEUE)) => {
            requeue(me, a, c, d as u32, e, (command == COMPARE_REQUEUE).then_some(f as u32))
        }
        (sys::SYS_FUTEX, WAKE_OPERATION) => wake_after_operation(me, a, c, d, e, f as u32),
        (sys::SYS_GETTID | sys::SYS_GETPID | sys::SYS_GETPPID, _) => {
            Ok(crate::answers::process_number(me, real() as i32) as isize)
        }
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
    me.fell_asleep_on = word;
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
    let wakes = if deadline.virtual_time() == 0 { op::WAKE } else { op::WAKE_IN_TIME };
    record::plain(me, if woken { wakes } else { op::TIME_OUT }, word, pc);
    match woken {
        true => Ok(0),
        false if me.interrupted => Err(sys::EINTR),
        false => Err(sys::ETIMEDOUT),
    }
}

/// Those asleep on a word, also while they run a signal's handler.
fn sleepers(word: usize) -> impl Iterator<Item = &'static mut Thread> {
    // SAFETY: the holder of the token; waiting threads do not touch their state.
    let living = unsafe { (*sched::peek()).living() };
    living.filter(move |one| one.life != Life::Done && one.asleep_on == word && !one.notified)
}

fn wake(me: &mut Thread, word: usize, most: usize, bits: u32) -> usize {
    let pc = 0;
    sched::before(me, state::plain(op::ACQUIRE, word, pc));
    record::plain(me, op::ACQUIRE, word, pc);
    let woken = notify(me, word, most as u32, bits);
    if woken == 0 {
        record::plain(me, op::NOTIFY, word, pc);
    }
    record::plain(me, op::RELEASE, word, pc);
    woken
}

fn notify(me: &mut Thread, word: usize, most: u32, bits: u32) -> usize {
    let mut woken = 0;
    for one in sleepers(word).filter(|one| one.bits & bits != 0).take(most as usize) {
        one.notified = true;
        woken += 1;
        // On the word that it fell asleep on, from which it may have been moved.
        record::plain(me, op::NOTIFY, one.fell_asleep_on, 0);
    }
    woken
}

/// Wakes some, and moves others to another word.
fn requeue(
    me: &mut Thread,
    word: usize,
    most: usize,
    moved: u32,
    to: usize,
    expected: Option<u32>,
) -> Result<isize, i32> {
    let pc = 0;
    sched::before(me, state::plain(op::ACQUIRE, word, pc));
    record::plain(me, op::ACQUIRE, word, pc);
    if let Some(expected) = expected {
        let found = record::load(word, 4);
        record::access(me, op::READ + 4, word, 4, found, pc);
        if found != Some(u64::from(expected)) {
            record::plain(me, op::RELEASE, word, pc);
            return Err(sys::EAGAIN);
        }
    }
    let mut touched = notify(me, word, most as u32, u32::MAX);
    for one in sleepers(word).take(moved as usize) {
        one.asleep_on = to;
        touched += usize::from(expected.is_some());
    }
    record::plain(me, op::RELEASE, word, pc);
    Ok(touched as isize)
}

/// Changes one word, wakes sleepers of another, and those of the first if what it was compares as asked.
fn wake_after_operation(
    me: &mut Thread,
    word: usize,
    most: usize,
    most_there: usize,
    there: usize,
    operation: u32,
) -> Result<isize, i32> {
    // Four bits of operation and of comparison, then two arguments of twelve bits, with their sign.
    let signed = |bits: u32| ((bits << 20) as i32 >> 20) as u32;
    let (argument, compared) = (signed(operation >> 12), signed(operation));
    let argument = if operation >> 31 != 0 { 1 << (argument & 31) } else { argument };
    let access = op::UPDATE + 5;
    sched::before(me, Pending { op: access, address: there, size: 4, ..Pending::default() });
    let Some(old) = record::load(there, 4) else { return Err(sys::EFAULT) };
    let old = old as u32;
    let new = match operation >> 28 & 7 {
        0 => argument,
        1 => old.wrapping_add(argument),
        2 => old | argument,
        3 => old & !argument,
        4 => old ^ argument,
        _ => return Err(sys::ENOSYS),
    };
    // SAFETY: the program's word, which is readable; only the holder of the token changes it.
    unsafe { std::sync::atomic::AtomicU32::from_ptr(there as *mut u32) }
        .store(new, std::sync::atomic::Ordering::SeqCst);
    record::access(me, access, there, 4, Some(u64::from(new)), 0);
    let (old, compared) = (old as i32, compared as i32);
    let too = match operation >> 24 & 15 {
        0 => old == compared,
        1 => old != compared,
        2 => old < compared,
        3 => old <= compared,
        4 => old > compared,
        _ => old >= compared,
    };
    let mut woken = wake(me, word, most, u32::MAX);
    if too {
        woken += wake(me, there, most_there, u32::MAX);
    }
    Ok(woken as isize)
}

/// `syscall` has seven arguments, the last on the stack, and uses all registers: it is passed on as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(n: i64, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    // SAFETY: passed on.
    unsafe { system_call(n, a, b, c, d, e, f) }
}
