//! Writing the recording. Only the holder of the token comes here.

use crate::log::{self, Header, LogEvent, MAX_EVENT, RECORDS_AT, THREADS_AT, Tables, ThreadRow, note, op};
use crate::state::{Thread, UnreadWrite};
use crate::sys;
use std::arch::asm;

/// Room that the file has at first. Most runs of a check need no more, and what a file system sets aside it has to free again.
const FIRST_STEP: usize = 512 << 10;
/// Room the file grows by, at most: as much as it has, up to this.
const STEP: usize = 64 << 20;
/// Kept free at the end, for the last notes after the disk is full.
const RESERVE: usize = 64 << 10;
/// How much address space is set aside for the recording,
const SPAN: usize = 1 << 40;
/// and where, if that is free: far from where the kernel puts the program's own maps, whose addresses must not depend on what
/// kind of file the recording is.
const LOG_AT: usize = 0x2000_0000_0000;

/// Pages of the mapping are not read before they are touched.
const MADV_RANDOM: usize = 1;

struct Log {
    base: *mut u8,
    /// Bytes that are mapped there.
    span: usize,
    cursor: *mut u8,
    /// The cursor must stay below: [`RESERVE`] before the end of what is allocated.
    limit: *mut u8,
    allocated: usize,
    fd: isize,
    /// It is memory of this size, not a file that grows; 0 if it is a file.
    memory: usize,
    on: bool,
    tables: Tables,
}

static mut LOG: Log = Log {
    base: std::ptr::null_mut(),
    span: 0,
    cursor: std::ptr::null_mut(),
    limit: std::ptr::null_mut(),
    allocated: 0,
    fd: 0,
    memory: 0,
    on: false,
    tables: Tables::new(),
};

/// The recording's header; null while there is none.
pub fn header() -> *mut Header {
    // SAFETY: a plain read of a pointer that is set once, before there are threads.
    unsafe { LOG.base.cast() }
}

/// A thread's line in the thread table; null while there is no recording.
pub fn row(thread: u32) -> *mut ThreadRow {
    // SAFETY: the table is mapped, and thread numbers are below MAX_THREADS.
    unsafe {
        if LOG.base.is_null() {
            return std::ptr::null_mut();
        }
        LOG.base.add(THREADS_AT).cast::<ThreadRow>().add(thread as usize)
    }
}

/// Maps the recording `fd` and claims it; false if another process has, or if it is no recording.
///
/// # Safety
/// Called once, before there are threads.
pub unsafe fn open(fd: isize) -> bool {
    // SAFETY: as the caller says.
    unsafe { open_sized(fd, 0) }
}

/// The same, of a recording in memory: all of it is there to be written.
///
/// # Safety
/// As [`open`].
pub unsafe fn open_memory(fd: isize) -> bool {
    let mut status = [0u64; 18];
    // SAFETY: the kernel fills `status`; as the caller says.
    unsafe {
        sys::call3(sys::SYS_FSTAT, fd as usize, status.as_mut_ptr() as usize, 0);
        open_sized(fd, status[6] as usize)
    }
}

unsafe fn open_sized(fd: isize, memory: usize) -> bool {
    // SAFETY: the file is ours alone once claimed; nothing beyond `allocated` is touched.
    unsafe {
        let mut base: *mut u8 = std::ptr::null_mut();
        let mut span = SPAN * 2;
        while base.is_null() && span > 1 << 30 {
            span /= 2;
            // Readable and writable, shared, no swap reserved.
            base = sys::map_at(LOG_AT, span, 3, 0x4001, fd);
        }
        if base.is_null() {
            sys::say(&["portent: cannot map the recording: no address space\n"]);
            return false;
        }
        if memory == 0 {
            // A file system that reads ahead would fill megabytes with zeros for a run that writes a few pages. Where it does
            // not listen, that only takes longer.
            sys::call3(sys::SYS_MADVISE, base as usize, RECORDS_AT + FIRST_STEP, MADV_RANDOM);
        }
        let header = base.cast::<Header>();
        let claimed = std::sync::atomic::AtomicU32::from_ptr(&raw mut (*header).pid);
        let order = std::sync::atomic::Ordering::SeqCst;
        if (*header).magic != log::MAGIC || claimed.compare_exchange(0, sys::getpid(), order, order).is_err() {
            sys::call3(sys::SYS_MUNMAP, base as usize, span, 0);
            return false;
        }
        LOG.base = base;
        LOG.span = span;
        LOG.cursor = base.add(RECORDS_AT);
        LOG.limit = LOG.cursor;
        LOG.allocated = RECORDS_AT;
        LOG.fd = fd;
        LOG.memory = memory;
        LOG.on = true;
        (*header).state = log::state::RUNNING;
        grow();
        LOG.on
    }
}

/// Lets go of the recording that a forked child has from its parent; whether there was one.
///
/// # Safety
/// Called by the only thread of its process, which is not recorded.
pub unsafe fn forget() -> bool {
    // SAFETY: nobody else runs; the mapping is this process's own, the file stays.
    unsafe {
        if LOG.base.is_null() {
            return false;
        }
        sys::call3(sys::SYS_MUNMAP, LOG.base as usize, LOG.span, 0);
        sys::call3(sys::SYS_CLOSE, LOG.fd as usize, 0, 0);
        LOG.base = std::ptr::null_mut();
        LOG.on = false;
        // As they are at the start: readers begin so.
        sys::fill((&raw mut LOG.tables).cast(), 0, size_of::<Tables>());
    }
    true
}

/// Makes room for more, or stops recording when there is none.
#[cold]
#[inline(never)]
fn grow() {
    // SAFETY: the holder of the token; the mapping spans far more than is allocated.
    unsafe {
        if !LOG.on {
            return;
        }
        let mut step = (LOG.allocated - RECORDS_AT).clamp(FIRST_STEP, STEP);
        loop {
            if room(step) {
                break;
            }
            step /= 2;
            if step < 4 * RESERVE {
                LOG.limit = LOG.base.add(LOG.allocated);
                if LOG.cursor.add(64) < LOG.limit {
                    note(note::FULL, &[]);
                }
                LOG.on = false;
                (*header()).full = 1;
                if LOG.memory == 0 {
                    sys::say(&[
                        "portent: no room left for the recording (a full disk, or `ulimit -f`): the rest of the run is not recorded\n",
                    ]);
                }
                return;
            }
        }
        LOG.allocated += step;
        LOG.limit = LOG.base.add(LOG.allocated - RESERVE);
        (*header()).allocated = LOG.allocated as u64;
    }
}

/// Whether there is room for so many bytes more.
unsafe fn room(step: usize) -> bool {
    // SAFETY: the holder of the token; our own file.
    unsafe {
        if LOG.memory > 0 {
            return LOG.allocated + step <= LOG.memory;
        }
        // Going beyond the limit for files would end the program, and not only fail.
        const FILE_SIZE: usize = 1;
        let mut limits = [u64::MAX; 2];
        sys::call(sys::SYS_PRLIMIT, 0, FILE_SIZE, 0, limits.as_mut_ptr() as usize, 0, 0);
        if (LOG.allocated + step) as u64 > limits[0] {
            return false;
        }
        sys::call(sys::SYS_FALLOCATE, LOG.fd as usize, 0, LOG.allocated, step, 0, 0) == 0
    }
}

/// Writes an event of `thread`, and counts it.
#[inline(always)]
pub fn event(thread: &mut Thread, event: &LogEvent) {
    thread.events += 1;
    // SAFETY: the holder of the token; below the limit there is room for RESERVE bytes.
    unsafe {
        let log = &mut *&raw mut LOG;
        if log.cursor >= log.limit {
            grow();
        }
        if log.on {
            log.cursor = log::write_event(&mut log.tables, &mut thread.trail, log.cursor, event);
        }
    }
}

/// Where in the program a thread had its last event, as far as that is still known. For its own signal handlers, which may
/// interrupt a record: then the answer may be old.
pub fn last_place(thread: &Thread) -> usize {
    // SAFETY: only read.
    unsafe { (*&raw const LOG).tables.last_place(thread.trail.site) as usize }
}

/// An event that is no access.
pub fn plain(thread: &mut Thread, op: u16, address: usize, pc: usize) {
    event(thread, &LogEvent { op, pc: pc as u64, address: address as u64, size: 0, value: None });
}

/// The same with a value.
pub fn valued(thread: &mut Thread, op: u16, address: usize, value: u64, pc: usize) {
    event(thread, &LogEvent { op, pc: pc as u64, address: address as u64, size: 0, value: Some(value) });
}

/// Writes a note.
pub fn note(kind: u16, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    // SAFETY: the holder of the token; the loop makes room for all of it.
    unsafe {
        let log = &mut *&raw mut LOG;
        while log.on && log.cursor.wrapping_add(length + MAX_EVENT) >= log.limit {
            let before = log.limit;
            grow();
            if log.limit == before {
                return;
            }
        }
        if log.on {
            log.cursor = log::write_note(log.cursor, kind, parts);
        }
    }
}

/// A note of numbers.
pub fn numbers(kind: u16, numbers: &[u64]) {
    // SAFETY: numbers are readable as bytes.
    note(kind, &[unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }]);
}

/// A note of numbers and a text.
pub fn told(kind: u16, numbers: &[u64], text: &[u8]) {
    // SAFETY: numbers are readable as bytes.
    note(kind, &[unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }, text]);
}

/// Loads the bytes at an address that may not be readable; `None` if it is not, or for sizes that have no value.
///
/// The load stands in the table `portent_fix`: when it faults, the handler of [`crate::signals`] goes on behind it.
#[inline(always)]
pub fn load(address: usize, size: usize) -> Option<u64> {
    let mut value: u64 = 0;
    let mut ok: u64;
    macro_rules! load {
        ($instruction:literal) => {
            // SAFETY: a fault is caught; otherwise it only reads.
            unsafe {
                asm!(
                    "xor {ok:e}, {ok:e}",
                    concat!("2: ", $instruction),
                    "mov {ok:e}, 1",
                    "3:",
                    ".pushsection portent_fix,\"awR\",@progbits",
                    ".quad 2b, 3b",
                    ".popsection",
                    ok = out(reg) ok, value = inout(reg) value, at = in(reg) address, options(nostack, readonly)
                )
            }
        };
    }
    match size {
        1 => load!("movzx {value:e}, byte ptr [{at}]"),
        2 => load!("movzx {value:e}, word ptr [{at}]"),
        4 => load!("mov {value:e}, dword ptr [{at}]"),
        8 => load!("mov {value}, qword ptr [{at}]"),
        _ => return None,
    }
    (ok != 0).then_some(value)
}

/// Records the write that the thread has executed since it left the runtime.
#[inline(always)]
pub fn read_back(thread: &mut Thread) {
    let unread = thread.unread;
    if unread.size == UnreadWrite::TOKEN_LOST {
        return crate::sched::regain(thread);
    }
    thread.unread.size = 0;
    written(thread, unread);
}

/// Records a write that the thread has executed.
#[inline(always)]
pub fn written(thread: &mut Thread, UnreadWrite { pc, address, mut size, op }: UnreadWrite) {
    if size & (UnreadWrite::TEXT | UnreadWrite::PERHAPS_COPIED) != 0 {
        if size & UnreadWrite::PERHAPS_COPIED != 0 {
            return copied(address, size & !UnreadWrite::PERHAPS_COPIED, pc as u64);
        }
        size = text_size(address, size & !UnreadWrite::TEXT);
    }
    let value = load(address, size);
    thread.last_write = (thread.events + 1, size);
    event(thread, &LogEvent { op, pc: pc as u64, address: address as u64, size: size as u32, value });
}

/// A write was recorded, and then a read, with which it was perhaps announced: notes what it wrote, if that came only after both.
#[cold]
fn copied(address: usize, size: usize, before: u64) {
    if let Some(value) = load(address, size).filter(|&value| value != before) {
        numbers(note::COPIED, &[value]);
    }
}

/// Bytes of the C string at an address, its end included, at most `most`.
pub fn text_size(address: usize, most: usize) -> usize {
    let mut size = 0;
    while size < most {
        size += 1;
        if load(address.wrapping_add(size - 1), 1).unwrap_or(0) == 0 {
            break;
        }
    }
    size.max(1)
}

/// Writes an access whose value is known now.
#[inline(always)]
pub fn access(thread: &mut Thread, op: u16, address: usize, size: usize, value: Option<u64>, pc: usize) {
    debug_assert!(op < op::ACCESSES);
    event(thread, &LogEvent { op, pc: pc as u64, address: address as u64, size: size as u32, value });
}
