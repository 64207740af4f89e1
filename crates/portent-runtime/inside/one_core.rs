//! A run that nobody watches stays on the core where it begins.
//!
//! One thread runs at a time, so other cores are of no use to it, and handing the token to a thread that sleeps on another core
//! takes several times as long: that core has to be interrupted or woken. The plan says whether a run does so.
//!
//! The program does not see it: it is told the cores that it would have, and once it chooses cores itself, only its own choice
//! counts. Processes that it starts have all cores again, but for those that the C library starts by itself (`popen`, `system`).

use crate::real::{Ptr, Real};
use crate::{sched, state, sys};

/// Sets of cores, as far as kernels go.
const MOST: usize = 1024;
type Cores = [u8; MOST];

/// The cores that it had, and how many bytes the kernel has for them; 0: it has these still.
static mut BEFORE: (Cores, usize) = ([0; MOST], 0);
/// The core that it stays on.
static mut OWN: usize = 0;

fn stays() -> bool {
    // SAFETY: changed by the holder of the token only; at worst a call of another thread is told what was so a moment ago.
    unsafe { BEFORE.1 > 0 }
}

fn set(thread: u32, cores: *const u8, size: usize) -> bool {
    // SAFETY: so many bytes are readable.
    unsafe { sys::call3(sys::SYS_SCHED_SETAFFINITY, thread as usize, size, cores as usize) == 0 }
}

fn own_core() -> Cores {
    let mut cores = [0; MOST];
    // SAFETY: set before there are threads, and below the number of bits.
    unsafe { cores[OWN / 8] = 1 << (OWN % 8) };
    cores
}

/// From here on, the process stays where it is.
///
/// # Safety
/// Called once, before there are threads.
pub unsafe fn stay() {
    // SAFETY: nobody else runs; the kernel fills what it is given.
    unsafe {
        let before = &mut *&raw mut BEFORE;
        let mut core = 0u32;
        let size = sys::call3(sys::SYS_SCHED_GETAFFINITY, 0, MOST, before.0.as_mut_ptr() as usize);
        let told = sys::call3(sys::SYS_GETCPU, &raw mut core as usize, 0, 0);
        OWN = core as usize;
        if size > 0 && told == 0 && OWN < 8 * size as usize && set(0, own_core().as_ptr(), size as usize) {
            before.1 = size as usize;
        }
    }
}

/// In a forked child, which is a process like others.
pub fn in_child() {
    if stays() {
        has_all_cores();
        // SAFETY: a child has one thread.
        unsafe { BEFORE.1 = 0 };
    }
}

/// The thread has the cores that it had.
fn has_all_cores() {
    // SAFETY: not changed while it counts.
    set(0, unsafe { (&raw const BEFORE.0).cast() }, unsafe { BEFORE.1 });
}

/// Does what starts a process: that has what the thread has that starts it.
pub fn with_all_cores<T>(work: impl FnOnce() -> T) -> T {
    if !stays() {
        return work();
    }
    has_all_cores();
    let done = work();
    if stays() {
        // SAFETY: as above.
        set(0, own_core().as_ptr(), unsafe { BEFORE.1 });
    }
    done
}

/// The program chooses cores: threads have all of them, until it says something else.
fn give_up() {
    if !stays() {
        return;
    }
    let me = state::enter();
    let scheduler = sched::lock();
    // SAFETY: as in `with_all_cores`, under the lock.
    unsafe {
        for one in scheduler.living() {
            set(one.tid, (&raw const BEFORE.0).cast(), BEFORE.1);
        }
        BEFORE.1 = 0;
    }
    drop(scheduler);
    if let Some(me) = me {
        state::leave(me);
    }
}

/// What the kernel says of a thread of this process, as if it had not been told to stay.
unsafe fn tell(size: usize, cores: *mut u8) {
    // SAFETY: the program's memory, which the kernel has just filled up to its own size, and the C library behind that.
    unsafe {
        let told = std::slice::from_raw_parts_mut(cores, size.min(MOST));
        let own = own_core();
        let is_own = told.iter().zip(&own).all(|(told, own)| told == own);
        if stays() && is_own {
            let before = &*&raw const BEFORE;
            for (at, told) in told.iter_mut().enumerate() {
                *told = if at < before.1 { before.0[at] } else { 0 };
            }
        }
    }
}

macro_rules! forwarded {
    ($name:literal $version:literal ($($argument:ident : $type:ty),*)) => {{
        #[unsafe(link_section = "portent_real")]
        static REAL: Real = Real::versioned($name, $version);
        type Function = unsafe extern "C-unwind" fn($($type),*) -> i32;
        // SAFETY: the C library's function, with its own arguments.
        unsafe { std::mem::transmute::<Ptr, Function>(REAL.required())($($argument),*) }
    }};
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sched_getaffinity(process: i32, size: usize, cores: *mut u8) -> i32 {
    let result = forwarded!(b"sched_getaffinity\0" b"GLIBC_2.3.4\0" (process: i32, size: usize, cores: *mut u8));
    if result == 0 && (process == 0 || sys::thread_exists(sys::getpid(), process as u32)) {
        // SAFETY: filled just now.
        unsafe { tell(size, cores) };
    }
    result
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_getaffinity_np(thread: usize, size: usize, cores: *mut u8) -> i32 {
    let result = forwarded!(b"pthread_getaffinity_np\0" b"GLIBC_2.32\0" (thread: usize, size: usize, cores: *mut u8));
    if result == 0 {
        // SAFETY: as above.
        unsafe { tell(size, cores) };
    }
    result
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sched_setaffinity(process: i32, size: usize, cores: *const u8) -> i32 {
    give_up();
    forwarded!(b"sched_setaffinity\0" b"GLIBC_2.3.4\0" (process: i32, size: usize, cores: *const u8))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_setaffinity_np(thread: usize, size: usize, cores: *const u8) -> i32 {
    give_up();
    forwarded!(b"pthread_setaffinity_np\0" b"GLIBC_2.34\0" (thread: usize, size: usize, cores: *const u8))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_attr_setaffinity_np(attributes: Ptr, size: usize, cores: *const u8) -> i32 {
    give_up();
    forwarded!(b"pthread_attr_setaffinity_np\0" b"GLIBC_2.32\0" (attributes: Ptr, size: usize, cores: *const u8))
}
