//! What programs tell race detectors about themselves: `Annotate*`, `__tsan_acquire` and the like, with the meaning that
//! ThreadSanitizer gives them. Locks have a module of their own ([`crate::annotated`]).
//!
//! | annotation | here |
//! |---|---|
//! | happens before, happens after; release, acquire | events that order: after is after everything declared before, at the same address |
//! | ignore reads, writes, the thread | a note; the conversion leaves the accesses out. Both sorts are one, as in ThreadSanitizer |
//! | ignore synchronisation | atomic operations order nothing (they are recorded as relaxed), and neither do annotations; locks stay |
//! | benign race | a note; the conversion leaves accesses of that memory out, also earlier ones |
//! | the name of a thread | its name |
//! | accesses that a library tells of (`__tsan_external_*`), unaligned ones | accesses |
//! | Java's interface | locks and order as above; moving and freeing of objects is not followed |
//! | everything else | nothing, as in ThreadSanitizer |

use crate::entry::entry;
use crate::log::{note, op};
use crate::state::{self, Thread};
use crate::{access, annotated, record, sched};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An event that declares order.
pub fn order(op: u16, at: usize, pc: usize) {
    if let Some(me) = state::enter() {
        if me.ignores_order == 0 && me.quiet == 0 {
            sched::before(me, state::plain(op, at, pc));
            record::plain(me, op, at, pc);
        }
        state::leave(me);
    }
}

pub extern "C-unwind" fn release(at: usize, pc: usize) {
    order(op::HAPPENS_BEFORE, at, pc);
}

pub extern "C-unwind" fn acquire(at: usize, pc: usize) {
    order(op::HAPPENS_AFTER, at, pc);
}

pub extern "C-unwind" fn happens_before(_file: usize, _line: i32, at: usize, pc: usize) {
    order(op::HAPPENS_BEFORE, at, pc);
}

pub extern "C-unwind" fn happens_after(_file: usize, _line: i32, at: usize, pc: usize) {
    order(op::HAPPENS_AFTER, at, pc);
}

/// Does something that is no event, as the thread that calls.
fn quietly(what: impl FnOnce(&mut Thread)) {
    if let Some(me) = state::enter() {
        what(me);
        state::leave(me);
    }
}

pub extern "C-unwind" fn ignore_begin(_pc: usize) {
    quietly(|_| record::note(note::IGNORE, &[&[1]]));
}

pub extern "C-unwind" fn ignore_end(_pc: usize) {
    quietly(|_| record::note(note::IGNORE, &[&[0]]));
}

pub extern "C-unwind" fn ignore_order_begin(_pc: usize) {
    quietly(|me| me.ignores_order += 1);
}

pub extern "C-unwind" fn ignore_order_end(_pc: usize) {
    quietly(|me| me.ignores_order = me.ignores_order.saturating_sub(1));
}

pub extern "C-unwind" fn benign(_file: usize, _line: i32, at: usize, _why: usize, _pc: usize) {
    quietly(|_| record::numbers(note::BENIGN, &[at as u64, 1]));
}

pub extern "C-unwind" fn benign_sized(_file: usize, _line: i32, at: usize, size: usize, _why: usize, _pc: usize) {
    quietly(|_| record::numbers(note::BENIGN, &[at as u64, size as u64]));
}

/// Names a thread or a fiber.
pub fn set_name(id: u32, name: usize) {
    /// Longer names are cut.
    const LONGEST: usize = 64;
    let mut text = [0; LONGEST];
    let mut size = 0;
    // Byte by byte: what is no string must not fault here.
    while size < LONGEST
        && let Some(byte) = record::load(name + size, 1).filter(|&byte| byte != 0)
    {
        text[size] = byte as u8;
        size += 1;
    }
    record::told(note::THREAD_NAME, &[u64::from(id)], &text[..size]);
}

pub extern "C-unwind" fn thread_name(_file: usize, _line: i32, name: usize, _pc: usize) {
    quietly(|me| set_name(me.id, name));
}

static TAGS: AtomicUsize = AtomicUsize::new(16);

/// Kinds of external objects have numbers, and no other use here.
pub extern "C-unwind" fn register_tag(_name: usize, _pc: usize) -> usize {
    TAGS.fetch_add(1, Ordering::Relaxed)
}

pub extern "C-unwind" fn external_read(at: usize, caller: usize, _tag: usize, _pc: usize) {
    if let Some(me) = state::enter() {
        access::read(me, op::READ, at, 1, caller);
        state::leave_before_access(me);
    }
}

pub extern "C-unwind" fn external_write(at: usize, caller: usize, _tag: usize, _pc: usize) {
    if let Some(me) = state::enter() {
        access::write(me, op::WRITE, at, 1, caller);
        state::leave_before_access(me);
    }
}

macro_rules! unaligned {
    ($($type:ident: $load:ident $store:ident;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $load(at: *const $type, pc: usize) -> $type {
                if let Some(me) = state::enter() {
                    access::read(me, op::READ, at as usize, size_of::<$type>(), pc);
                    state::leave_before_access(me);
                }
                // SAFETY: the program's address, which it would have read itself.
                unsafe { at.read_unaligned() }
            }
            pub unsafe extern "C-unwind" fn $store(at: *mut $type, value: $type, pc: usize) {
                if let Some(me) = state::enter() {
                    access::write(me, op::WRITE, at as usize, size_of::<$type>(), pc);
                    state::leave_before_access(me);
                }
                // SAFETY: as above.
                unsafe { at.write_unaligned(value) }
            }
        )*
    };
}

unaligned! {
    u16: load16 store16;
    u32: load32 store32;
    u64: load64 store64;
}

pub extern "C-unwind" fn java_lock(at: usize, pc: usize) {
    annotated::acquired(at, false, 1, pc);
}

pub extern "C-unwind" fn java_unlock(at: usize, pc: usize) {
    annotated::released(at, false, false, pc);
}

pub extern "C-unwind" fn java_read_lock(at: usize, pc: usize) {
    annotated::acquired(at, true, 1, pc);
}

pub extern "C-unwind" fn java_read_unlock(at: usize, pc: usize) {
    annotated::released(at, true, false, pc);
}

pub extern "C-unwind" fn java_lock_again(at: usize, times: i32, pc: usize) {
    annotated::acquired(at, false, times.max(1) as u64, pc);
}

pub extern "C-unwind" fn java_unlock_altogether(at: usize, pc: usize) -> i32 {
    annotated::released(at, false, true, pc) as i32
}

pub extern "C-unwind" fn nothing() -> usize {
    0
}

/// What ThreadSanitizer answers: it knows happens-before only, and nothing else that is asked for.
pub unsafe extern "C-unwind" fn query(what: *const i8, _pc: usize) -> *const i8 {
    let asked = b"pure_happens_before\0";
    let same = (0..asked.len()).all(|at| record::load(what as usize + at, 1) == Some(u64::from(asked[at])));
    if same { c"1".as_ptr() } else { c"0".as_ptr() }
}

#[unsafe(no_mangle)]
pub extern "C" fn ValgrindSlowdown() -> f64 {
    10.0
}

entry! {
    __tsan_acquire(1) => acquire;
    __tsan_release(1) => release;
    __tsan_ignore_thread_begin(0) => ignore_begin;
    __tsan_ignore_thread_end(0) => ignore_end;
    AnnotateHappensBefore(3) => happens_before;
    AnnotateHappensAfter(3) => happens_after;
    AnnotateIgnoreReadsBegin(0) => ignore_begin;
    AnnotateIgnoreReadsEnd(0) => ignore_end;
    AnnotateIgnoreWritesBegin(0) => ignore_begin;
    AnnotateIgnoreWritesEnd(0) => ignore_end;
    AnnotateIgnoreSyncBegin(0) => ignore_order_begin;
    AnnotateIgnoreSyncEnd(0) => ignore_order_end;
    AnnotateBenignRace(4) => benign;
    AnnotateBenignRaceSized(5) => benign_sized;
    WTFAnnotateBenignRaceSized(5) => benign_sized;
    AnnotateThreadName(3) => thread_name;
    __tsan_external_register_tag(1) => register_tag;
    __tsan_external_read(3) => external_read;
    __tsan_external_write(3) => external_write;
    __sanitizer_unaligned_load16(1) => load16;
    __sanitizer_unaligned_load32(1) => load32;
    __sanitizer_unaligned_load64(1) => load64;
    __sanitizer_unaligned_store16(2) => store16;
    __sanitizer_unaligned_store32(2) => store32;
    __sanitizer_unaligned_store64(2) => store64;
    __tsan_java_acquire(1) => acquire;
    __tsan_java_release(1) => release;
    __tsan_java_release_store(1) => release;
    __tsan_java_mutex_lock(1) => java_lock;
    __tsan_java_mutex_unlock(1) => java_unlock;
    __tsan_java_mutex_read_lock(1) => java_read_lock;
    __tsan_java_mutex_read_unlock(1) => java_read_unlock;
    __tsan_java_mutex_lock_rec(2) => java_lock_again;
    __tsan_java_mutex_unlock_rec(1) => java_unlock_altogether;
    ThreadSanitizerQuery(1) => query;
}

// No meaning in ThreadSanitizer either; WebKit's order is that of its atomic operations, which are seen.
entry! {
    WTFAnnotateHappensBefore(0) => nothing;
    WTFAnnotateHappensAfter(0) => nothing;
    AnnotateCondVarSignal(0) => nothing;
    AnnotateCondVarSignalAll(0) => nothing;
    AnnotateCondVarWait(0) => nothing;
    AnnotateMutexIsNotPHB(0) => nothing;
    AnnotateMutexIsUsedAsCondVar(0) => nothing;
    AnnotatePCQCreate(0) => nothing;
    AnnotatePCQDestroy(0) => nothing;
    AnnotatePCQGet(0) => nothing;
    AnnotatePCQPut(0) => nothing;
    AnnotateNewMemory(0) => nothing;
    AnnotatePublishMemoryRange(0) => nothing;
    AnnotateUnpublishMemoryRange(0) => nothing;
    AnnotateMemoryIsInitialized(0) => nothing;
    AnnotateMemoryIsUninitialized(0) => nothing;
    AnnotateTraceMemory(0) => nothing;
    AnnotateExpectRace(0) => nothing;
    AnnotateFlushExpectedRaces(0) => nothing;
    AnnotateFlushState(0) => nothing;
    AnnotateEnableRaceDetection(0) => nothing;
    AnnotateNoOp(0) => nothing;
    RunningOnValgrind(0) => nothing;
    __tsan_check_no_mutexes_held(0) => nothing;
    __tsan_flush_memory(0) => nothing;
    __tsan_on_thread_idle(0) => nothing;
    __tsan_external_register_header(0) => nothing;
    __tsan_external_assign_tag(0) => nothing;
    __tsan_java_init(0) => nothing;
    __tsan_java_fini(0) => nothing;
    __tsan_java_alloc(0) => nothing;
    __tsan_java_free(0) => nothing;
    __tsan_java_move(0) => nothing;
    __tsan_java_find(0) => nothing;
    __tsan_java_finalize(0) => nothing;
}
