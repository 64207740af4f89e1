//! Raw system calls, and the few things of the C library that are called directly.
//!
//! Everything here is safe to use while the program holds any lock of the C library, and inside a signal handler.

use std::arch::asm;
use std::ffi::c_void;

pub const SYS_READ: i64 = 0;
pub const SYS_WRITE: i64 = 1;
pub const SYS_OPEN: i64 = 2;
pub const SYS_CLOSE: i64 = 3;
pub const SYS_FSTAT: i64 = 5;
pub const SYS_POLL: i64 = 7;
pub const SYS_MMAP: i64 = 9;
pub const SYS_MPROTECT: i64 = 10;
pub const SYS_MUNMAP: i64 = 11;
pub const SYS_SIGPROCMASK: i64 = 14;
pub const SYS_IOCTL: i64 = 16;
pub const SYS_SELECT: i64 = 23;
pub const SYS_SCHED_YIELD: i64 = 24;
pub const SYS_MADVISE: i64 = 28;
pub const SYS_DUP2: i64 = 33;
pub const SYS_GETPID: i64 = 39;
pub const SYS_RECVMSG: i64 = 47;
pub const SYS_CLONE: i64 = 56;
pub const SYS_KILL: i64 = 62;
pub const SYS_SIGTIMEDWAIT: i64 = 128;
pub const SYS_FCNTL: i64 = 72;
pub const SYS_FTRUNCATE: i64 = 77;
pub const SYS_READLINK: i64 = 89;
pub const SYS_GETPPID: i64 = 110;
pub const SYS_GETSOCKNAME: i64 = 51;
pub const SYS_GETPEERNAME: i64 = 52;
pub const SYS_GETSOCKOPT: i64 = 55;
pub const SYS_PRCTL: i64 = 157;
pub const SYS_GETTID: i64 = 186;
pub const SYS_FUTEX: i64 = 202;
pub const SYS_SCHED_SETAFFINITY: i64 = 203;
pub const SYS_SCHED_GETAFFINITY: i64 = 204;
pub const SYS_CLOCK_GETTIME: i64 = 228;
pub const SYS_EXIT_GROUP: i64 = 231;
pub const SYS_TGKILL: i64 = 234;
pub const SYS_WAITID: i64 = 247;
pub const SYS_SET_ROBUST_LIST: i64 = 273;
pub const SYS_GET_ROBUST_LIST: i64 = 274;
pub const SYS_FALLOCATE: i64 = 285;
pub const SYS_PRLIMIT: i64 = 302;
pub const SYS_GETCPU: i64 = 309;
pub const SYS_GETRANDOM: i64 = 318;
pub const SYS_MEMBARRIER: i64 = 324;

pub const ENOENT: i32 = 2;
pub const EINTR: i32 = 4;
pub const EBADF: i32 = 9;
pub const ECHILD: i32 = 10;
pub const EAGAIN: i32 = 11;
pub const ENOMEM: i32 = 12;
pub const EFAULT: i32 = 14;
pub const EBUSY: i32 = 16;
pub const EINVAL: i32 = 22;
pub const EDEADLK: i32 = 35;
pub const ENOSYS: i32 = 38;
pub const ETIMEDOUT: i32 = 110;
pub const EOWNERDEAD: i32 = 130;

/// A system call with six arguments; negative results are errors.
///
/// # Safety
/// As the system call.
#[inline(always)]
pub unsafe fn call(n: i64, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; it clobbers rcx and r11 only.
    unsafe {
        asm!("syscall", inlateout("rax") n as isize => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
             in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// # Safety
/// As the system call.
pub unsafe fn call3(n: i64, a: usize, b: usize, c: usize) -> isize {
    // SAFETY: the caller vouches for the call.
    unsafe { call(n, a, b, c, 0, 0, 0) }
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Timespec {
    pub seconds: i64,
    pub nanoseconds: i64,
}

impl Timespec {
    pub fn from_nanos(nanos: i64) -> Self {
        Self { seconds: nanos.div_euclid(1_000_000_000), nanoseconds: nanos.rem_euclid(1_000_000_000) }
    }
    pub fn nanos(self) -> i64 {
        self.seconds.saturating_mul(1_000_000_000).saturating_add(self.nanoseconds)
    }
}

/// Waits until `*word != expected`, at most `nanos` (negative: for ever); 0 or a negative error.
pub fn futex_wait(word: *const u32, expected: u32, nanos: i64) -> i32 {
    let time = Timespec::from_nanos(nanos.max(0));
    let time = if nanos < 0 { 0 } else { &raw const time as usize };
    // SAFETY: FUTEX_WAIT | PRIVATE only reads the word and the time.
    unsafe { call(SYS_FUTEX, word as usize, 128, expected as usize, time, 0, 0) as i32 }
}

/// Wakes one waiter.
pub fn futex_wake(word: *const u32) {
    // SAFETY: FUTEX_WAKE | PRIVATE touches nothing.
    unsafe { call3(SYS_FUTEX, word as usize, 129, 1) };
}

/// Whether this process has children, running or not waited for.
pub fn has_children() -> bool {
    const ALL: usize = 0;
    const EXITED_NO_HANG_NO_WAIT: usize = 4 | 1 | 0x0100_0000;
    let mut info = [0u64; 16];
    // SAFETY: the kernel fills `info`; nothing is waited for.
    let result = unsafe { call(SYS_WAITID, ALL, 0, info.as_mut_ptr() as usize, EXITED_NO_HANG_NO_WAIT, 0, 0) };
    result != -(ECHILD as isize)
}

pub fn gettid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call3(SYS_GETTID, 0, 0, 0) as u32 }
}

pub fn getpid() -> u32 {
    // SAFETY: no arguments.
    unsafe { call3(SYS_GETPID, 0, 0, 0) as u32 }
}

/// The kernel's clock, in nanoseconds.
pub fn clock(which: i32) -> i64 {
    let mut time = Timespec::default();
    // SAFETY: the kernel fills `time`.
    unsafe { call3(SYS_CLOCK_GETTIME, which as usize, &raw mut time as usize, 0) };
    time.nanos()
}

/// Whether a thread of this process still exists in the kernel.
pub fn thread_exists(pid: u32, tid: u32) -> bool {
    // SAFETY: signal 0 only asks.
    unsafe { call3(SYS_TGKILL, pid as usize, tid as usize, 0) == 0 }
}

/// A memory barrier on every processor that runs a thread of this process.
pub fn barrier_everywhere() {
    // SAFETY: MEMBARRIER_CMD_GLOBAL changes nothing. Where the kernel lacks it, the window it closes is a few instructions.
    unsafe { call3(SYS_MEMBARRIER, 1, 0, 0) };
}

/// All signals that can be blocked, without the C library's own: that is what it gives a new thread.
pub const EVERY_SIGNAL: u64 = !(1 << (9 - 1) | 1 << (19 - 1) | 1 << (32 - 1) | 1 << (33 - 1));

/// Sets the calling thread's signal mask; what it was.
pub fn set_signal_mask(mask: u64) -> u64 {
    const SET: usize = 2;
    let mut before = 0u64;
    // SAFETY: the kernel reads and fills sets of eight bytes.
    unsafe { call(SYS_SIGPROCMASK, SET, &raw const mask as usize, &raw mut before as usize, 8, 0, 0) };
    before
}

/// Maps memory, at an address if that is free; null if that fails.
///
/// # Safety
/// `fd` must be a file that nobody truncates, or -1.
pub unsafe fn map_at(at: usize, length: usize, protection: usize, flags: usize, fd: isize) -> *mut u8 {
    // SAFETY: without MAP_FIXED a new mapping disturbs nothing.
    let at = unsafe { call(SYS_MMAP, at, length, protection, flags, fd as usize, 0) };
    if at < 0 && at > -4096 { std::ptr::null_mut() } else { at as *mut u8 }
}

/// Reads at most `buffer.len()` bytes of a file; how many, or none if it cannot be read.
pub fn read_file(path: &[u8], buffer: &mut [u8]) -> usize {
    debug_assert_eq!(path.last(), Some(&0));
    // SAFETY: the path ends with a zero, and the buffer has the length that is given.
    unsafe {
        let fd = call3(SYS_OPEN, path.as_ptr() as usize, 0o2000000, 0);
        if fd < 0 {
            return 0;
        }
        let mut filled = 0;
        while filled < buffer.len() {
            let got = call3(SYS_READ, fd as usize, buffer.as_mut_ptr().add(filled) as usize, buffer.len() - filled);
            if got <= 0 {
                break;
            }
            filled += got as usize;
        }
        call3(SYS_CLOSE, fd as usize, 0, 0);
        filled
    }
}

/// Says something on standard error; for what must not be kept to oneself.
pub fn say(parts: &[&str]) {
    for part in parts {
        // SAFETY: a string's bytes are readable.
        unsafe { call3(SYS_WRITE, 2, part.as_ptr() as usize, part.len()) };
    }
}

/// Ends the process at once, without anything of the C library.
pub fn kill_process() -> ! {
    loop {
        // SAFETY: SIGKILL to ourselves.
        unsafe { call3(SYS_KILL, getpid() as usize, 9, 0) };
    }
}

unsafe extern "C" {
    pub fn __errno_location() -> *mut i32;
    pub fn __libc_malloc(size: usize) -> *mut c_void;
    pub fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    pub fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    pub fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    pub fn __libc_free(block: *mut c_void);
    pub fn dlsym(handle: *mut c_void, name: *const i8) -> *mut c_void;
    pub fn dlvsym(handle: *mut c_void, name: *const i8, version: *const i8) -> *mut c_void;
}

/// Sets `errno` and returns -1.
pub fn fail(error: i32) -> i32 {
    // SAFETY: the C library's own location for this thread.
    unsafe { *__errno_location() = error };
    -1
}

/// Copies bytes without calling `memcpy`, which this library defines itself.
///
/// # Safety
/// As `memmove`, for ranges that do not overlap or where `to` is below `from`.
#[inline(always)]
pub unsafe fn copy_up(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: the caller vouches for the ranges; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
             options(nostack, preserves_flags));
    }
}

/// Copies bytes from the last to the first.
///
/// # Safety
/// As `memmove`, where `to` is above `from`.
pub unsafe fn copy_down(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: the caller vouches for the ranges; the direction flag is cleared again.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") count => _,
             inout("rdi") to.wrapping_add(count).wrapping_sub(1) => _,
             inout("rsi") from.wrapping_add(count).wrapping_sub(1) => _, options(nostack));
    }
}

/// Fills bytes without calling `memset`.
///
/// # Safety
/// As `memset`.
#[inline(always)]
pub unsafe fn fill(to: *mut u8, byte: u8, count: usize) {
    // SAFETY: the caller vouches for the range.
    unsafe {
        asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") byte, options(nostack, preserves_flags));
    }
}
