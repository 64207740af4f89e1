//! The process in its family: recordings of its own for processes that others of the same session have started, and for
//! children that `fork` made.
//!
//! A session has one recording, `log`, which the first process claims. Where the session also has a directory `processes`,
//! every other process with the runtime leaves a recording of its own there, and each, the first included, says who it is:
//! what it was called with and where, which processes it comes from. Without that directory the others run unrecorded.
//!
//! A child that was made by `fork` begins to record when it makes its first thread; before that there is nothing to order, and
//! most children only call `exec`. A plan can be for such a child (`lineage`): then everybody else runs unrecorded, and
//! the child claims `log`.
//!
//! What it does not do: children made by `clone` itself are not known, and of a child nothing from before its first thread is
//! recorded.

use crate::init::{self, PATH};
use crate::{answers, channels, condition, descriptors, once, record, sched, semaphore, signals, state, sys, threads};

/// Which process this is: the same number in every run that forks alike. The process that a program begins as is 1.
static mut LINEAGE: u64 = 1;
/// Children that it has made by `fork`.
static mut FORKS: u64 = 0;
/// It was made by `fork`, and has made no thread since.
static mut YOUNG: bool = false;
/// The process, with its number among those of the same number, that began as a program and that this one was forked from.
static mut ORIGIN: [u64; 2] = [0; 2];

/// Before a fork.
pub fn forks() {
    // SAFETY: the holder of the token; where nothing is recorded, threads that fork at the same time get no number of their own.
    unsafe { FORKS += 1 };
}

/// First thing in a child.
pub fn in_child() {
    // SAFETY: a child has one thread.
    unsafe {
        LINEAGE = LINEAGE.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(FORKS).rotate_left(29) | 1;
        FORKS = 0;
        YOUNG = true;
    }
}

/// A child that was forked makes its first thread: whether it is recorded from here on.
#[cold]
pub fn begins_in_child() -> bool {
    // SAFETY: the only thread of its process; the session's path and plan do not change after the start.
    unsafe {
        if !YOUNG || !state::current().is_null() {
            return false;
        }
        YOUNG = false;
        let Some(plan) = init::plan() else { return false };
        let wanted = plan.header.lineage;
        let own = || if wanted == LINEAGE { init::open(b"/log\0") } else { None };
        let Some(fd) = (if wanted == 0 { own_log(true) } else { own() }) else { return false };
        let was_recorded = record::forget();
        if !record::open(fd) {
            sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0);
            return false;
        }
        sched::forget();
        condition::forget();
        channels::forget();
        descriptors::forget();
        once::forget();
        semaphore::forget_all();
        sched::lock().follow(plan);
        answers::follow(plan);
        if !was_recorded {
            threads::prepare();
            signals::prepare();
        }
        init::modules();
        threads::adopt_main();
        threads::arm();
        true
    }
}

/// Says who this process is, if the session wants to know; its number among those with the same process number.
pub fn describe(forked: bool) -> Option<u64> {
    let mut name = [0u8; PATH];
    for number in 0..100 {
        let end = file_name(&mut name, number)?;
        end_with(&mut name, end, b".about\0");
        // Made now, for writing; never another one's.
        let fd = create(&name);
        if fd == -17 {
            continue;
        }
        if fd < 0 {
            return None;
        }
        // SAFETY: our own file.
        unsafe {
            if !forked {
                ORIGIN = [u64::from(sys::getpid()), number];
            }
            let parent = sys::call3(sys::SYS_GETPPID, 0, 0, 0) as u64;
            let numbers = [u64::from(forked), LINEAGE, parent, ORIGIN[0], ORIGIN[1]];
            section(fd, b'n', std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(&numbers)));
            link(fd, b'x', c"/proc/self/exe");
            link(fd, b'w', c"/proc/self/cwd");
            link(fd, b'i', c"/proc/self/fd/0");
            copy(fd, b'a', c"/proc/self/cmdline");
            copy(fd, b'e', c"/proc/self/environ");
            sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0);
        }
        return Some(number);
    }
    None
}

/// A recording for this process alone, where the session has room for it.
pub fn own_log(forked: bool) -> Option<isize> {
    let number = describe(forked)?;
    let mut name = [0u8; PATH];
    let end = file_name(&mut name, number)?;
    end_with(&mut name, end, b"\0");
    let fd = create(&name);
    if fd < 0 {
        return None;
    }
    // SAFETY: our own file, as long as the thread table and a header need it.
    unsafe {
        let magic = crate::log::MAGIC;
        sys::call3(sys::SYS_WRITE, fd as usize, magic.as_ptr() as usize, magic.len());
        sys::call3(sys::SYS_FTRUNCATE, fd as usize, crate::log::RECORDS_AT, 0);
    }
    Some(init::out_of_the_way(fd))
}

/// `SESSION/processes/PID.NUMBER`, and where it ends.
fn file_name(name: &mut [u8; PATH], number: u64) -> Option<usize> {
    let length = init::session_path(name)?;
    let mut end = end_with(name, length, b"/processes/");
    end = decimal(name, end, u64::from(sys::getpid()));
    end = end_with(name, end, b".");
    Some(decimal(name, end, number))
}

fn end_with(name: &mut [u8; PATH], at: usize, text: &[u8]) -> usize {
    for (to, from) in name[at..].iter_mut().zip(text) {
        *to = *from;
    }
    at + text.len()
}

fn decimal(name: &mut [u8; PATH], at: usize, number: u64) -> usize {
    let mut digits = [0u8; 20];
    let (mut first, mut left) = (digits.len(), number);
    loop {
        first -= 1;
        digits[first] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    end_with(name, at, &digits[first..])
}

fn create(path: &[u8]) -> isize {
    const WRITE_CREATE_NEW_CLOEXEC: usize = 0o2000302;
    // SAFETY: the path ends with a zero.
    unsafe { sys::call3(sys::SYS_OPEN, path.as_ptr() as usize, WRITE_CREATE_NEW_CLOEXEC, 0o600) }
}

/// A tag, a length, and so many bytes. A reader joins sections with the same tag.
fn section(fd: isize, tag: u8, bytes: &[u8]) {
    let length = (bytes.len() as u32).to_le_bytes();
    let head = [tag, length[0], length[1], length[2], length[3]];
    for part in [&head[..], bytes] {
        // SAFETY: readable bytes, to our own file. What is not written is missing, which readers notice.
        unsafe { sys::call3(sys::SYS_WRITE, fd as usize, part.as_ptr() as usize, part.len()) };
    }
}

/// What a symbolic link says.
fn link(fd: isize, tag: u8, path: &std::ffi::CStr) {
    let mut text = [0u8; PATH];
    // SAFETY: the kernel fills the buffer.
    let length = unsafe {
        sys::call3(sys::SYS_READLINK, path.as_ptr() as usize, text.as_mut_ptr() as usize, text.len()).max(0) as usize
    };
    section(fd, tag, &text[..length]);
}

/// All of a file.
fn copy(fd: isize, tag: u8, path: &std::ffi::CStr) {
    let mut buffer = [0u8; 1 << 15];
    // SAFETY: the path ends with a zero; room for what is asked for; our own descriptors.
    unsafe {
        let from = sys::call3(sys::SYS_OPEN, path.as_ptr() as usize, 0o2000000, 0);
        if from < 0 {
            return;
        }
        loop {
            let got = sys::call3(sys::SYS_READ, from as usize, buffer.as_mut_ptr() as usize, buffer.len());
            if got <= 0 {
                break;
            }
            section(fd, tag, &buffer[..got as usize]);
        }
        sys::call3(sys::SYS_CLOSE, from as usize, 0, 0);
    }
}
