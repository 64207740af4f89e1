//! Threads: their beginning, their end, and waiting for it.
//!
//! A new thread waits for the token before it does anything. Its routine is jumped to, not called, so that no frame of
//! the runtime is on its stack when it exits or is cancelled. Its end is a destructor of thread-specific data that puts
//! itself off until all others have run.
//!
//! An asynchronous cancellation happens where its thread next leaves the runtime; not in code without instrumentation.

use crate::answers::Deadline;
use crate::entry::entry;
use crate::log::{note, op};
use crate::real::{self, Ptr, Real};
use crate::state::{self, Life, Pending, Thread, Wait, thread};
use crate::{answers, family, record, sched, signals, sys};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rounds of destructors that the C library makes.
const ROUNDS: usize = 4;
static mut KEY: u32 = u32::MAX;

/// Makes the key whose destructor ends threads. Called once, before there are threads.
pub unsafe fn prepare() {
    // SAFETY: a destructor of the type that the C library expects.
    unsafe { real::pthread_key_create(&raw mut KEY, key_destructor as *const () as Ptr) };
}

/// Arms the destructor for the current thread.
pub fn arm() {
    // SAFETY: the key exists.
    unsafe { real::pthread_setspecific(KEY, ROUNDS as *const _) };
}

extern "C" fn key_destructor(rounds: Ptr) {
    let rounds = rounds as usize;
    if rounds > 1 {
        // SAFETY: the key exists.
        unsafe { real::pthread_setspecific(KEY, (rounds - 1) as *const _) };
        return;
    }
    if let Some(me) = state::enter() {
        // Handlers of the program must not run without a thread that they belong to.
        sys::set_signal_mask(sys::EVERY_SIGNAL);
        record::numbers(note::THREAD_END, &[u64::from(me.id)]);
        state::set_current(std::ptr::null_mut());
        sched::end(me);
    }
}

/// Where threads start: waits for the first turn, then jumps into the program's routine with its argument.
#[unsafe(naked)]
unsafe extern "C" fn start() {
    std::arch::naked_asm!(
        "sub rsp, 8",
        "mov rsi, rsp",
        "call {begin}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        begin = sym begin,
    );
}

#[repr(C)]
struct Start {
    routine: usize,
    argument: usize,
}

extern "C" fn begin(me: &'static mut Thread, stack: usize) -> Start {
    me.stack_end = stack;
    state::set_current(me);
    let mask = sys::set_signal_mask(me.mask);
    if mask != sys::EVERY_SIGNAL {
        // The program's own, given with the attributes.
        sys::set_signal_mask(mask);
    }
    me.tid = sys::gettid();
    sched::first_turn(me);
    let (low, high) = stack_of_current();
    let told = [u64::from(me.id), u64::from(me.parent), u64::from(me.child_number), u64::from(me.tid), low, high];
    record::numbers(note::THREAD, &told);
    arm();
    me.publish();
    // SAFETY: threads of the table live for ever.
    if unsafe { (*thread(me.parent)).starts_team } {
        sched::let_go(me);
    }
    state::leave(me);
    Start { routine: me.routine, argument: me.argument }
}

/// The bounds of the current thread's stack, from what the kernel says about the mapping that a local lies in.
fn stack_of_current() -> (u64, u64) {
    let local = 0u8;
    let here = &raw const local as usize;
    crate::process::mapping(here)
        .map_or((here as u64 - (1 << 16), here as u64 + 4096), |(low, high)| (low as u64, high as u64))
}

/// Makes main the first thread.
pub fn adopt_main() {
    let me = thread(0);
    // SAFETY: the first thread, before there are others.
    let me = unsafe { &mut *me };
    me.tid = sys::gettid();
    me.inside = 1;
    // SAFETY: no arguments.
    me.pthread = unsafe { real::pthread_self() };
    me.life = Life::Running;
    answers::next_signal(me);
    {
        let mut scheduler = sched::lock();
        scheduler.count = 1;
        scheduler.holder = 1;
        scheduler.link(0);
    }
    let (low, high) = stack_of_current();
    me.stack_end = high as usize;
    record::numbers(note::THREAD, &[0, 0, 0, u64::from(me.tid), low, high]);
    state::set_current(me);
    me.publish();
    // SAFETY: the header is mapped.
    unsafe { (*record::header()).threads = 1 };
    // The first event asks the scheduler, which begins the plan.
    state::leave(me);
}

/// `std::thread::join()` and what its constructors call are in libstdc++: the place in the program is where they were called.
///
/// The entry is only remembered, nothing is left to clean up: the calls may throw, and joining may end the thread.
fn asked(pc: usize) {
    let here = &raw const pc as usize;
    if let Some(me) = state::enter() {
        me.asked = (pc, here);
        state::leave(me);
    }
}

/// The place of a call that may come from libstdc++: where that was called, if it was just before.
fn place(me: &mut Thread, pc: usize) -> usize {
    /// The frames between hold a few words; where an exception ended an earlier call, the stack is elsewhere by now.
    const NEAR: usize = 2048;
    let here = &raw const pc as usize;
    let (asked, at) = std::mem::take(&mut me.asked);
    if asked != 0 && at.abs_diff(here) < NEAR { asked } else { pc }
}

pub unsafe extern "C-unwind" fn std_start(this: Ptr, state: Ptr, depend: Ptr, pc: usize) {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real =
        Real::new(b"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE\0");
    asked(pc);
    // SAFETY: libstdc++'s function; a `unique_ptr` is passed by reference.
    unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn(Ptr, Ptr, Ptr)>(REAL.required())(this, state, depend) }
}

pub unsafe extern "C-unwind" fn std_join(this: Ptr, pc: usize) {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"_ZNSt6thread4joinEv\0");
    asked(pc);
    // SAFETY: libstdc++'s function.
    unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn(Ptr)>(REAL.required())(this) }
}

pub unsafe extern "C-unwind" fn create(
    out: *mut usize,
    attributes: Ptr,
    routine: usize,
    argument: usize,
    pc: usize,
) -> i32 {
    let Some(me) = state::enter().or_else(|| if family::begins_in_child() { state::enter() } else { None }) else {
        // SAFETY: passed on.
        return unsafe { real::pthread_create(out, attributes, routine as Ptr, argument as Ptr) };
    };
    let pc = place(me, pc);
    sched::before(me, state::plain(op::FORK, 0, pc));
    let number = sched::lock().number(me.id, me.children);
    let Some(id) = number else {
        sys::say(&["portent: too many threads for one recording\n"]);
        state::leave(me);
        return sys::EAGAIN;
    };
    // SAFETY: a thread of the table that nobody uses yet.
    let child = unsafe { &mut *thread(id) };
    child.id = id;
    child.inside = 1;
    child.parent = me.id;
    child.child_number = me.children;
    child.routine = routine;
    child.argument = argument;
    child.pending = state::not_started();
    // Here and not when the thread begins: whoever gives it its first turn looks at it, perhaps before that.
    answers::next_signal(child);
    let mut made = 0;
    // Until the new thread knows itself, no handler may run there.
    child.mask = sys::set_signal_mask(sys::EVERY_SIGNAL);
    let mask = child.mask;
    // SAFETY: `start` takes the child's state as its argument.
    let result =
        unsafe { real::pthread_create(&raw mut made, attributes, start as *const () as Ptr, (&raw mut *child).cast()) };
    sys::set_signal_mask(mask);
    if result == 0 {
        child.pthread = made;
        // SAFETY: the caller's place for the result.
        unsafe { *out = made };
        child.detached = is_detached(attributes);
        me.children += 1;
        let mut scheduler = sched::lock();
        child.life = Life::Waiting;
        scheduler.link(id);
        // SAFETY: the header is mapped.
        unsafe { (*record::header()).threads = scheduler.count };
        drop(scheduler);
        record::valued(me, op::FORK, 0, u64::from(id), pc);
        // Its place in the family, also if it never gets to run; what belongs to its stack follows when it does.
        record::numbers(note::THREAD, &[u64::from(id), u64::from(me.id), u64::from(child.child_number), 0, 0, 0]);
    }
    if me.starts_team {
        sched::let_go(me);
    }
    state::leave(me);
    result
}

fn is_detached(attributes: Ptr) -> bool {
    // glibc's `pthread_attr_t`: flags are the third word (bytes 8 to 11), bit 0 says detached.
    // SAFETY: null or the program's attributes.
    !attributes.is_null() && unsafe { *attributes.cast::<u32>().add(2) } & 1 != 0
}

/// The thread that a `pthread_t` stands for, which may have stood for others that are gone.
pub fn find(pthread: usize) -> Option<u32> {
    // SAFETY: the holder of the token looks at threads of the table.
    let count = unsafe { (*sched::peek()).count };
    // SAFETY: as above.
    (0..count).rev().find(|&id| unsafe {
        let one = &*thread(id);
        let gone = one.life == Life::Unused || (one.life == Life::Done && one.detached);
        one.pthread == pthread && !gone
    })
}

/// Waits for a thread's end; then the real join, which waits only until it has left the kernel.
pub fn join(me: &mut Thread, pthread: usize, result: *mut Ptr, deadline: Deadline, pc: usize) -> i32 {
    let Some(id) = find(pthread) else {
        // SAFETY: passed on: the C library says what is wrong with it.
        return unsafe { real::pthread_join(pthread, result) };
    };
    if id == me.id {
        return sys::EDEADLK;
    }
    let wait = Wait::Join(id);
    sched::before(
        me,
        Pending { op: op::JOIN, address: id as usize, size: 0, pc, wait, deadline: deadline.virtual_time() },
    );
    // SAFETY: a thread of the table.
    if unsafe { (*thread(id)).life } != Life::Done {
        // An event: where the wait ended without a result belongs to the schedule.
        record::plain(me, op::BRANCH, 0, pc);
        return if me.is_cancelled() { sys::EINTR } else { sys::ETIMEDOUT };
    }
    // SAFETY: passed on; the thread has ended.
    let joined = unsafe { real::pthread_join(pthread, result) };
    if joined == 0 {
        // SAFETY: a thread of the table that has ended: its `pthread_t` may be used again.
        unsafe { (*thread(id)).pthread = 0 };
        record::valued(me, op::JOIN, 0, u64::from(id), pc);
    }
    joined
}

fn finish(me: &mut Thread, result: i32) -> i32 {
    let cancelled = me.is_cancelled();
    state::leave(me);
    if cancelled && result != 0 {
        // SAFETY: a cancellation point, with no frame of ours that has to be cleaned up.
        unsafe { real::pthread_testcancel() };
    }
    result
}

pub unsafe extern "C-unwind" fn join_entry(pthread: usize, result: *mut Ptr, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_join(pthread, result) } };
    let pc = place(me, pc);
    let joined = join(me, pthread, result, Deadline::NEVER, pc);
    finish(me, joined)
}

pub unsafe extern "C-unwind" fn tryjoin(pthread: usize, result: *mut Ptr, pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_tryjoin_np(pthread, result) } };
    // SAFETY: a thread of the table.
    let ended = find(pthread).is_none_or(|id| unsafe { (*thread(id)).life == Life::Done });
    let joined = if ended { join(me, pthread, result, Deadline::NEVER, pc) } else { sys::EBUSY };
    sched::yield_turn(me);
    state::leave(me);
    joined
}

pub unsafe extern "C-unwind" fn timedjoin(
    pthread: usize,
    result: *mut Ptr,
    until: *const sys::Timespec,
    pc: usize,
) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_timedjoin_np(pthread, result, until as Ptr) } };
    let joined = join(me, pthread, result, Deadline::at(0, until), pc);
    finish(me, joined)
}

pub unsafe extern "C-unwind" fn detach(pthread: usize, _pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        if let Some(id) = find(pthread) {
            // SAFETY: a thread of the table.
            unsafe { (*thread(id)).detached = true };
        }
        state::leave(me);
    }
    // SAFETY: passed on.
    unsafe { real::pthread_detach(pthread) }
}

pub unsafe extern "C-unwind" fn setname(pthread: usize, name: *const i8, _pc: usize) -> i32 {
    // SAFETY: passed on.
    let result = unsafe { real::pthread_setname_np(pthread, name) };
    if result == 0
        && let Some(me) = state::enter()
    {
        if let Some(id) = find(pthread) {
            let size = record::text_size(name as usize, 16) - 1;
            // SAFETY: the name that the C library has just read.
            record::told(note::THREAD_NAME, &[u64::from(id)], unsafe { std::slice::from_raw_parts(name.cast(), size) });
        }
        state::leave(me);
    }
    result
}

/// Also the way to a thread's name.
pub unsafe extern "C-unwind" fn prctl(option: i32, a: usize, b: usize, c: usize, d: usize, _pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"prctl\0");
    const SET_NAME: i32 = 15;
    type Control = unsafe extern "C-unwind" fn(i32, usize, usize, usize, usize) -> i32;
    // SAFETY: the C library's function; what the program did not pass is whatever was in the registers, as with any
    // variadic call.
    let result = unsafe { std::mem::transmute::<Ptr, Control>(REAL.required())(option, a, b, c, d) };
    if result == 0
        && option == SET_NAME
        && let Some(me) = state::enter()
    {
        let size = record::text_size(a, 16) - 1;
        // SAFETY: the name that the kernel has just read.
        record::told(note::THREAD_NAME, &[u64::from(me.id)], unsafe {
            std::slice::from_raw_parts(a as *const u8, size)
        });
        state::leave(me);
    }
    result
}

/// The target's waits at cancellation points end; the C library does the rest there.
pub unsafe extern "C-unwind" fn cancel(pthread: usize, _pc: usize) -> i32 {
    // SAFETY: passed on.
    let result = unsafe { real::pthread_cancel(pthread) };
    if let Some(me) = state::enter() {
        if let Some(id) = find(pthread) {
            // SAFETY: a thread of the table; it waits, or is in a system call.
            let target = unsafe { &mut *thread(id) };
            target.cancelled = true;
            note_asynchronous(target);
        }
        state::leave(me);
    }
    result
}

pub unsafe extern "C-unwind" fn setcancelstate(new: i32, old: *mut i32, _pc: usize) -> i32 {
    // SAFETY: passed on.
    let result = unsafe { real::pthread_setcancelstate(new, old) };
    if result == 0
        && let Some(me) = state::enter()
    {
        me.cancel_disabled = new != 0;
        note_asynchronous(me);
        state::leave(me);
    }
    result
}

/// A thread that may be cancelled anywhere is cancelled where it next leaves the runtime.
fn note_asynchronous(target: &mut Thread) {
    if target.is_cancelled() && target.cancel_anywhere {
        // SAFETY: a field of a thread of the table, which a signal handler of that thread may change at the same time.
        let waiting = unsafe { AtomicU64::from_ptr(&raw mut target.signals) };
        waiting.fetch_or(signals::bit(signals::CANCEL), Ordering::SeqCst);
    }
}

/// For the C library every thread that is recorded is cancelled at cancellation points only: anywhere else it could be
/// in the middle of the runtime.
pub unsafe extern "C-unwind" fn setcanceltype(new: i32, old: *mut i32, _pc: usize) -> i32 {
    // SAFETY: passed on.
    let Some(me) = state::enter() else { return unsafe { real::pthread_setcanceltype(new, old) } };
    let known = matches!(new, 0 | 1);
    if known {
        if !old.is_null() {
            // SAFETY: the program's place for the result.
            unsafe { *old = i32::from(me.cancel_anywhere) };
        }
        me.cancel_anywhere = new == 1;
        note_asynchronous(me);
    }
    state::leave(me);
    if known { 0 } else { sys::EINVAL }
}

entry! {
    pthread_setcancelstate(2) => setcancelstate;
    pthread_setcanceltype(2) => setcanceltype;
    pthread_create(4) => create;
    pthread_join(2) => join_entry;
    pthread_tryjoin_np(2) => tryjoin;
    pthread_timedjoin_np(3) => timedjoin;
    pthread_detach(1) => detach;
    prctl(5) => prctl;
    pthread_setname_np(2) => setname;
    pthread_cancel(1) => cancel;
    _ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(3) => std_start;
    _ZNSt6thread4joinEv(1) => std_join;
}
