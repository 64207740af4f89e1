//! Timers that send signals: starting one comes before the handler that runs when it ends.
//!
//! They take real time; sleeps and time-outs, which are virtual, do not move them. Timers that start a thread
//! (`SIGEV_THREAD`) start one that is not recorded.

use crate::entry::entry;
use crate::real::{Ptr, Real};
use crate::signals;
use std::sync::atomic::{AtomicUsize, Ordering};

const SIGALRM: i32 = 14;
/// The signals of real, virtual and profiling timers.
const OF_INTERVALS: [i32; 3] = [SIGALRM, 26, 27];
const MOST: usize = 64;

/// glibc's `struct sigevent`, as far as it is used.
#[repr(C)]
pub struct Event {
    value: usize,
    signal: i32,
}

/// Timers that the program made: which, and their signals. A table that is full forgets the rest.
static TIMERS: [(AtomicUsize, AtomicUsize); MOST] =
    [const { (AtomicUsize::new(usize::MAX), AtomicUsize::new(0)) }; MOST];

pub unsafe extern "C-unwind" fn alarm(seconds: u32, pc: usize) -> u32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"alarm\0");
    signals::sends(if seconds > 0 { SIGALRM } else { 0 }, pc);
    // SAFETY: the C library's function.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(u32) -> u32>(REAL.required())(seconds) }
}

pub unsafe extern "C-unwind" fn ualarm(time: u32, interval: u32, pc: usize) -> u32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"ualarm\0");
    signals::sends(SIGALRM, pc);
    // SAFETY: the C library's function.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(u32, u32) -> u32>(REAL.required())(time, interval) }
}

pub unsafe extern "C-unwind" fn setitimer(which: i32, new: Ptr, old: Ptr, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"setitimer\0");
    signals::sends(OF_INTERVALS.get(which as usize).copied().unwrap_or(0), pc);
    // SAFETY: the C library's function, with its own arguments.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(i32, Ptr, Ptr) -> i32>(REAL.required())(which, new, old) }
}

pub unsafe extern "C-unwind" fn timer_create(clock: i32, event: *const Event, timer: *mut usize, _pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::versioned(b"timer_create\0", b"GLIBC_2.34\0");
    type Create = extern "C" fn(i32, *const Event, *mut usize) -> i32;
    // SAFETY: the C library's function, with its own arguments.
    let result = unsafe { std::mem::transmute::<Ptr, Create>(REAL.required())(clock, event, timer) };
    if result == 0 {
        // SAFETY: the program's structure, or null for the alarm signal; the call has filled the timer's number.
        let (made, signal) = unsafe { (*timer, if event.is_null() { SIGALRM } else { (*event).signal }) };
        let place = TIMERS.iter().find(|entry| {
            let known = entry.0.load(Ordering::Relaxed);
            known == made || known == usize::MAX
        });
        if let Some((which, its)) = place {
            which.store(made, Ordering::Relaxed);
            its.store(signal as usize, Ordering::Relaxed);
        }
    }
    result
}

pub unsafe extern "C-unwind" fn timer_settime(timer: usize, flags: i32, new: Ptr, old: Ptr, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::versioned(b"timer_settime\0", b"GLIBC_2.34\0");
    type Set = extern "C" fn(usize, i32, Ptr, Ptr) -> i32;
    let known = TIMERS.iter().find(|entry| entry.0.load(Ordering::Relaxed) == timer);
    signals::sends(known.map_or(0, |entry| entry.1.load(Ordering::Relaxed) as i32), pc);
    // SAFETY: the C library's function, with its own arguments.
    unsafe { std::mem::transmute::<Ptr, Set>(REAL.required())(timer, flags, new, old) }
}

entry! {
    alarm(1) => alarm;
    ualarm(2) => ualarm;
    setitimer(3) => setitimer;
    timer_create(3) => timer_create;
    timer_settime(4) => timer_settime;
}
