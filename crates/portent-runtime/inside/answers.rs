//! What the program asks the system and what must be answered the same in a replay: time, random numbers, its own number.
//!
//! While recording, answers are real (time plus what was skipped by sleeping in virtual time) and noted. In a replay the
//! plan has them, for each thread in the order in which it asked; when they run out, real ones are given again.

use crate::entry::entry;
use crate::init::MappedPlan;
use crate::log::{call, input, note, op};
use crate::outside::{self, Outside};
use crate::real::{Ptr, Real};
use crate::spin::{self, Look};
use crate::state::{self, Pending, Thread, Wait};
use crate::{process, record, sched, server, sys};

/// Until when an operation waits, in virtual time.
#[derive(Clone, Copy)]
pub struct Deadline {
    /// Virtual monotonic time in nanoseconds; 0 for never.
    at: i64,
}

const REALTIME: i32 = 0;
const MONOTONIC: i32 = 1;

impl Deadline {
    pub const NEVER: Self = Self { at: 0 };

    /// At an absolute time of a clock that the program sees.
    pub fn at(clock: i32, time: *const sys::Timespec) -> Self {
        if time.is_null() {
            return Self::NEVER;
        }
        // SAFETY: the program passes a time.
        let time = unsafe { *time };
        let seen = sys::clock(clock) + skipped();
        Self::after_nanos(time.nanos().saturating_sub(seen))
    }
    /// After a while.
    pub fn after(time: *const sys::Timespec) -> Self {
        // SAFETY: the program passes a time.
        Self::after_nanos(if time.is_null() { 0 } else { unsafe { (*time).nanos() } })
    }
    /// Decades are taken for never: nobody waits for them, and the clocks could not move on by so much again and again.
    pub fn after_nanos(nanos: i64) -> Self {
        const DECADES: i64 = 1_000_000_000_000_000_000;
        Self { at: if nanos >= DECADES { 0 } else { (now() + nanos.max(0)).max(1) } }
    }
    pub fn virtual_time(self) -> i64 {
        self.at
    }
    /// As a time of the kernel's real-time clock, for waiting there.
    pub fn absolute(self) -> Option<sys::Timespec> {
        (self.at != 0).then(|| sys::Timespec::from_nanos(sys::clock(REALTIME) + (self.at - now()).max(0)))
    }
}

fn skipped() -> i64 {
    // SAFETY: changed only under the scheduler's lock by whoever hands the token over; a number.
    unsafe { (*sched::peek()).skipped }
}

/// Virtual monotonic time.
pub fn now() -> i64 {
    now_with(skipped())
}

pub fn now_with(skipped: i64) -> i64 {
    sys::clock(MONOTONIC) + skipped
}

static mut ANSWERS: (*const u64, usize) = (std::ptr::null(), 0);

/// Takes over the plan's answers. Called once, before there are threads.
pub unsafe fn follow(plan: &MappedPlan) {
    // SAFETY: nobody else runs.
    unsafe { ANSWERS = (plan.answers, plan.header.answers as usize) };
}

/// The thread's next answer of a kind from the plan, copied into `out`; whether there was one.
fn planned(me: &mut Thread, kind: u64, out: &mut [u8]) -> bool {
    // SAFETY: the plan's answers: thread, kind, bytes, and that many bytes in whole numbers, until the end.
    unsafe {
        let (words, count) = ANSWERS;
        while me.answer + 3 <= count {
            let (thread, its_kind, bytes) =
                (*words.add(me.answer), *words.add(me.answer + 1), *words.add(me.answer + 2) as usize);
            let data = words.add(me.answer + 3).cast::<u8>();
            me.answer += 3 + bytes.div_ceil(8);
            if thread == u64::from(me.id) && its_kind == kind && me.answer <= count {
                sys::copy_up(out.as_mut_ptr(), data, bytes.min(out.len()));
                return bytes == out.len();
            }
        }
        false
    }
}

/// Finds the plan's next signal for a thread.
pub fn next_signal(me: &mut Thread) {
    me.signal_at = u64::MAX;
    // SAFETY: the plan's answers, as in `planned`.
    unsafe {
        let (words, count) = ANSWERS;
        while me.signal_answer + 3 <= count {
            let at = me.signal_answer;
            me.signal_answer += 3 + (*words.add(at + 2) as usize).div_ceil(8);
            let is_signal = *words.add(at) == u64::from(me.id) && *words.add(at + 1) == input::SIGNAL;
            if is_signal && *words.add(at + 2) == 24 && me.signal_answer <= count {
                me.signal_planned = *words.add(at + 3) as u32;
                me.signal_at = *words.add(at + 4);
                me.signal_waits = *words.add(at + 5) & 1 != 0;
                me.signal_foreign = *words.add(at + 5) & 2 != 0;
                return;
            }
        }
    }
}

/// A process number: in a replay, the recorded one.
pub fn process_number(me: &mut Thread, real: i32) -> i32 {
    let mut bytes = u64::from(real as u32).to_le_bytes();
    answer(me, input::PROCESS, &mut bytes);
    u64::from_le_bytes(bytes) as i32
}

/// What a thread read from a device (random numbers, mostly): the same in a replay.
pub fn from_device(me: &mut Thread, bytes: &mut [u8], pc: usize) {
    outside::learned(Outside::Random, pc);
    answer(me, input::RANDOM, bytes);
}

/// Gives the program an answer: the plan's, or the one already in `out`; and notes it.
fn answer(me: &mut Thread, kind: u64, out: &mut [u8]) {
    spin::forget(me);
    planned(me, kind, out);
    record::note(note::INPUT, &[&kind.to_le_bytes(), out]);
}

fn time_of(me: &mut Thread, clock: i32, pc: usize) -> sys::Timespec {
    answered_time(me, sys::clock(clock) + skipped(), pc)
}

fn answered_time(me: &mut Thread, nanos: i64, pc: usize) -> sys::Timespec {
    outside::learned(Outside::Time, pc);
    let mut nanos = nanos.to_le_bytes();
    answer(me, input::TIME, &mut nanos);
    sys::Timespec::from_nanos(i64::from_le_bytes(nanos))
}

/// Processor time, in microseconds.
pub unsafe extern "C-unwind" fn clock(pc: usize) -> i64 {
    const PROCESS: i32 = 2;
    let nanos = sys::clock(PROCESS);
    let Some(me) = state::enter() else { return nanos / 1000 };
    let time = answered_time(me, nanos, pc);
    state::leave(me);
    time.nanos() / 1000
}

pub unsafe extern "C-unwind" fn timespec_get(out: *mut sys::Timespec, base: i32, pc: usize) -> i32 {
    const UTC: i32 = 1;
    // SAFETY: passed on.
    if base == UTC && unsafe { clock_gettime(REALTIME, out, pc) } == 0 { UTC } else { 0 }
}

#[unsafe(link_section = "portent_real")]
static CLOCK_GETTIME: Real = Real::new(b"clock_gettime\0");

pub unsafe extern "C-unwind" fn clock_gettime(clock: i32, out: *mut sys::Timespec, pc: usize) -> i32 {
    // SAFETY: the C library's function.
    let result = unsafe {
        std::mem::transmute::<Ptr, extern "C" fn(i32, *mut sys::Timespec) -> i32>(CLOCK_GETTIME.required())(clock, out)
    };
    if result == 0
        && let Some(me) = state::enter()
    {
        // Only clocks that go on while a thread sleeps move on when a sleep is skipped.
        let skipped = if matches!(clock, 0 | 1 | 4 | 5 | 6 | 7) { skipped() } else { 0 };
        // SAFETY: the call filled it.
        unsafe { *out = answered_time(me, (*out).nanos() + skipped, pc) };
        state::leave(me);
    }
    result
}

pub unsafe extern "C-unwind" fn gettimeofday(out: *mut sys::Timespec, zone: *mut u64, pc: usize) -> i32 {
    let time = match state::enter() {
        Some(me) => {
            let time = time_of(me, REALTIME, pc);
            state::leave(me);
            time
        }
        None => sys::Timespec::from_nanos(sys::clock(REALTIME)),
    };
    // SAFETY: the program's places for the results, which may be null.
    unsafe {
        if !out.is_null() {
            *out = sys::Timespec { seconds: time.seconds, nanoseconds: time.nanoseconds / 1000 };
        }
        if !zone.is_null() {
            *zone = 0;
        }
    }
    0
}

pub unsafe extern "C-unwind" fn time(out: *mut i64, pc: usize) -> i64 {
    let time = match state::enter() {
        Some(me) => {
            let time = time_of(me, REALTIME, pc);
            state::leave(me);
            time
        }
        None => sys::Timespec::from_nanos(sys::clock(REALTIME)),
    };
    if !out.is_null() {
        // SAFETY: the program's place for the result.
        unsafe { *out = time.seconds };
    }
    time.seconds
}

/// Sleeps in virtual time.
fn sleep_nanos(me: &mut Thread, nanos: i64, pc: usize) {
    let deadline = Deadline::after_nanos(nanos).virtual_time();
    spin::look(me, Look::at(op::RESUME, pc), true);
    sched::ask(me, Pending { op: op::RESUME, address: 0, size: 0, pc, wait: Wait::Sleep, deadline });
    // An event, so that what comes before the next one (an allocation, say) has its place in the schedule.
    record::plain(me, op::BRANCH, call::TELLS, pc);
}

/// Sleeps, if the thread is recorded: `Some(true)` when a signal interrupted it.
fn sleep_entry(nanos: i64, pc: usize) -> Option<bool> {
    let me = state::enter()?;
    sleep_nanos(me, nanos, pc);
    let (cancelled, interrupted) = (me.is_cancelled(), me.interrupted);
    state::leave(me);
    if cancelled {
        // SAFETY: a cancellation point, with no frame of ours that has to be cleaned up.
        unsafe { crate::real::pthread_testcancel() };
    }
    Some(interrupted)
}

pub unsafe extern "C-unwind" fn nanosleep(time: *const sys::Timespec, left: *mut sys::Timespec, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"nanosleep\0");
    // SAFETY: the program passes a time.
    let wanted = unsafe { (*time).nanos() };
    if wanted >= 0
        && let Some(interrupted) = sleep_entry(wanted, pc)
    {
        if interrupted && !left.is_null() {
            // SAFETY: the program's place for what is left: in virtual time, all of it.
            unsafe { *left = *time };
        }
        return if interrupted { sys::fail(sys::EINTR) } else { 0 };
    }
    // SAFETY: passed on.
    unsafe {
        std::mem::transmute::<Ptr, extern "C-unwind" fn(*const sys::Timespec, *mut sys::Timespec) -> i32>(
            REAL.required(),
        )(time, left)
    }
}

pub unsafe extern "C-unwind" fn clock_nanosleep(
    clock: i32,
    flags: i32,
    time: *const sys::Timespec,
    left: *mut sys::Timespec,
    pc: usize,
) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::versioned(b"clock_nanosleep\0", b"GLIBC_2.17\0");
    const ABSOLUTE: i32 = 1;
    // SAFETY: the program passes a time.
    let wanted = unsafe { (*time).nanos() };
    let wanted = if flags & ABSOLUTE != 0 { wanted.saturating_sub(sys::clock(clock) + skipped()) } else { wanted };
    if let Some(interrupted) = sleep_entry(wanted.max(0), pc) {
        return if interrupted { sys::EINTR } else { 0 };
    }
    // SAFETY: passed on.
    unsafe {
        std::mem::transmute::<Ptr, extern "C-unwind" fn(i32, i32, *const sys::Timespec, *mut sys::Timespec) -> i32>(
            REAL.required(),
        )(clock, flags, time, left)
    }
}

pub unsafe extern "C-unwind" fn usleep(micros: u32, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"usleep\0");
    if let Some(interrupted) = sleep_entry(i64::from(micros) * 1000, pc) {
        return if interrupted { sys::fail(sys::EINTR) } else { 0 };
    }
    // SAFETY: passed on.
    unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn(u32) -> i32>(REAL.required())(micros) }
}

pub unsafe extern "C-unwind" fn sleep(seconds: u32, pc: usize) -> u32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"sleep\0");
    if let Some(interrupted) = sleep_entry(i64::from(seconds) * 1_000_000_000, pc) {
        return if interrupted { seconds } else { 0 };
    }
    // SAFETY: passed on.
    unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn(u32) -> u32>(REAL.required())(seconds) }
}

pub unsafe extern "C-unwind" fn sched_yield(pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        spin::look(me, Look::at(op::RESUME, pc), false);
        sched::yield_turn(me);
        // What it waits for may be where no events are: then nobody would ask who runs next.
        sched::idle(me, 3, pc);
        state::leave(me);
    } else {
        // SAFETY: no arguments.
        unsafe { sys::call3(sys::SYS_SCHED_YIELD, 0, 0, 0) };
    }
    0
}

pub unsafe extern "C-unwind" fn getrandom(out: *mut u8, size: usize, flags: u32, pc: usize) -> isize {
    // SAFETY: passed on to the kernel.
    let result = unsafe { sys::call3(sys::SYS_GETRANDOM, out as usize, size, flags as usize) };
    if result < 0 {
        return sys::fail(-result as i32) as isize;
    }
    if let Some(me) = state::enter() {
        outside::learned(Outside::Random, pc);
        // SAFETY: the kernel has filled so many bytes.
        answer(me, input::RANDOM, unsafe { std::slice::from_raw_parts_mut(out, result as usize) });
        state::leave(me);
    }
    result
}

pub unsafe extern "C-unwind" fn getentropy(out: *mut u8, size: usize, pc: usize) -> i32 {
    // SAFETY: passed on.
    if unsafe { getrandom(out, size, 0, pc) } == size as isize { 0 } else { -1 }
}

/// `std::random_device::_M_getval()`: reads the processor's generator without asking the kernel.
pub unsafe extern "C-unwind" fn random_device(device: Ptr, pc: usize) -> u32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"_ZNSt13random_device9_M_getvalEv\0");
    // SAFETY: libstdc++'s function.
    let drawn = unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn(Ptr) -> u32>(REAL.required())(device) };
    let mut bytes = drawn.to_le_bytes();
    if let Some(me) = state::enter() {
        outside::learned(Outside::Random, pc);
        answer(me, input::RANDOM, &mut bytes);
        state::leave(me);
    }
    u32::from_le_bytes(bytes)
}

pub unsafe extern "C-unwind" fn getpid(_pc: usize) -> i32 {
    let real = sys::getpid() as i32;
    let Some(me) = state::enter() else {
        server::number_is_known();
        return real;
    };
    let shown = process_number(me, real);
    process::remember(shown, real);
    state::leave(me);
    shown
}

/// Numbers of the parent and of threads: only ever shown, so the recorded ones do.
fn shown(number: i64) -> i32 {
    // SAFETY: a system call without arguments.
    let real = unsafe { sys::call3(number, 0, 0, 0) } as i32;
    let Some(me) = state::enter() else { return real };
    let shown = process_number(me, real);
    state::leave(me);
    shown
}

pub unsafe extern "C-unwind" fn getppid(_pc: usize) -> i32 {
    shown(sys::SYS_GETPPID)
}

pub unsafe extern "C-unwind" fn gettid(_pc: usize) -> i32 {
    shown(sys::SYS_GETTID)
}

pub unsafe extern "C-unwind" fn kill(pid: i32, signal: i32, pc: usize) -> i32 {
    let real = process::real_number(pid);
    // To this process, or to a group that it may be in.
    if real == sys::getpid() as i32 || real <= 0 {
        crate::signals::sends(signal, pc);
    }
    // SAFETY: passed on to the kernel.
    let result = unsafe { sys::call3(sys::SYS_KILL, real as usize, signal as usize, 0) };
    if result < 0 { sys::fail(-result as i32) } else { 0 }
}

entry! {
    clock_gettime(2) => clock_gettime;
    clock(0) => clock;
    timespec_get(2) => timespec_get;
    gettimeofday(2) => gettimeofday;
    time(1) => time;
    getrandom(3) => getrandom;
    getentropy(2) => getentropy;
    getpid(0) => getpid;
    getppid(0) => getppid;
    gettid(0) => gettid;
    kill(2) => kill;
    _ZNSt13random_device9_M_getvalEv(1) => random_device;
}

entry! {
    looking
    nanosleep(2) => nanosleep;
    clock_nanosleep(4) => clock_nanosleep;
    usleep(1) => usleep;
    sleep(1) => sleep;
    sched_yield(0) => sched_yield;
    thrd_yield(0) => sched_yield;
}
