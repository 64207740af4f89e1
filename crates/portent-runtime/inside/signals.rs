//! Signals.
//!
//! Handlers of the program run only where their thread could have an event: while it is inside the runtime (waiting for
//! its turn, or in the middle of a record) they are put off until it leaves. Faults of the runtime's own loads are caught
//! and passed over; faults of the program go to its handler, or are noted and end it as they would have.
//!
//! A handler that was put off runs with the mask it asked for, but is told no more than its signal's number. Handlers set by
//! other means than `sigaction` and `signal` run as they come; inside the runtime nothing of them is recorded.
//!
//! In a replay every signal is handled once. While a plan is followed, it says when handlers run. The program sends itself
//! its own signals (`kill`, timers, ended children) again: each is matched with one of the plan's, whichever comes first.
//! One that the plan did not get to is sent again when the plan ends; from there on its own signals come as they come, and
//! only those that others had sent come from the plan.

use crate::entry::entry;
use crate::log::note;
use crate::real::{self, Ptr};
use crate::state::{self, Thread, UnreadWrite};
use crate::{answers, channels, process, record, sched, sys};
use std::sync::atomic::{AtomicU32, Ordering, fence};

const SIGNALS: usize = 65;
const SIGILL: i32 = 4;
const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGFPE: i32 = 8;
const SIGSEGV: i32 = 11;
const FAULTS: [i32; 4] = [SIGILL, SIGBUS, SIGFPE, SIGSEGV];
const SA_SIGINFO: i32 = 4;
const SA_ONSTACK: i32 = 0x0800_0000;
const SA_RESTART: i32 = 0x1000_0000;
const SA_NODEFER: i32 = 0x4000_0000;
const SA_RESETHAND: i32 = i32::MIN;
/// The C library's own signal for cancellation. Programs never handle it: among the signals that were put off it stands
/// for an asynchronous cancellation.
pub const CANCEL: u32 = 32;

/// A signal's place in sets, the kernel's and `Thread::signals`.
pub const fn bit(signal: u32) -> u64 {
    1 << (signal.wrapping_sub(1) & 63)
}
const RIP: usize = 16;

/// glibc's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: i32,
    restorer: usize,
}

const NONE: Action = Action { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
/// What handlers that were put off get: only the number of the signal is known by then.
static mut SIGNAL_INFORMATION: [u32; 32] = [0; 32];
static mut NO_CONTEXT: [u64; 128] = [0; 128];
/// Signals that the plan has let happen and that are still to come by themselves.
static OWED: [AtomicU32; SIGNALS] = [const { AtomicU32::new(0) }; SIGNALS];
/// What the program asked for.
static mut ASKED: [Action; SIGNALS] = [NONE; SIGNALS];

unsafe extern "C" {
    // The table of loads that may fault, made by `record::load`: pairs of an instruction and where to go on.
    static __start_portent_fix: [usize; 2];
    static __stop_portent_fix: [usize; 2];
}

/// Where to go on after a fault of the runtime's own load; none for any other instruction.
fn continuation(at: usize) -> Option<usize> {
    // SAFETY: the linker puts the table's bounds there.
    let table = unsafe {
        let (start, stop) = (&raw const __start_portent_fix, &raw const __stop_portent_fix);
        std::slice::from_raw_parts(start, stop.offset_from(start) as usize)
    };
    table.iter().find(|entry| entry[0] == at).map(|entry| entry[1])
}

/// Catches faults. Called once, before there are threads.
pub unsafe fn prepare() {
    for signal in FAULTS {
        let mut action = NONE;
        action.handler = fault as *const () as usize;
        action.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        // SAFETY: a handler of the right type; what the program had asked for is kept.
        unsafe { real::sigaction(signal, (&raw mut action).cast(), (&raw mut ASKED[signal as usize]).cast()) };
    }
    let mut action = abort_is_noted();
    // SAFETY: as above. A program that was started with it ignored goes on so.
    unsafe {
        let asked = &raw mut ASKED[SIGABRT as usize];
        real::sigaction(SIGABRT, (&raw mut action).cast(), asked.cast());
        if (*asked).handler == 1 {
            real::sigaction(SIGABRT, asked.cast(), std::ptr::null_mut());
        }
    }
}

/// What stands in for the default action of SIGABRT.
fn abort_is_noted() -> Action {
    let mut action = NONE;
    action.handler = aborted as *const () as usize;
    action.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    action
}

/// Whether the program has no handler of its own that `abort` would call, and that may go on elsewhere.
pub fn abort_is_the_end() -> bool {
    // SAFETY: a word that changes only in `sigaction`.
    unsafe { ASKED[SIGABRT as usize].handler == 0 }
}

/// The program ends itself, or is ended by the C library, which has found something wrong.
unsafe extern "C" fn aborted(signal: i32, _information: *mut u8, context: *mut u8) {
    // SAFETY: the kernel passes a context; the default action ends the process.
    unsafe {
        let me = state::current();
        if !me.is_null() && (*me).has_failed {
            // It stayed inside, so that what it did on the way here is not recorded.
            (*me).inside = 0;
        }
        if let Some(me) = state::enter() {
            record::numbers(note::ABORTED, &[*register(context, RIP) as u64]);
            state::leave(me);
        }
        let mut default = NONE;
        real::sigaction(signal, (&raw mut default).cast(), std::ptr::null_mut());
        sys::call3(sys::SYS_TGKILL, sys::getpid() as usize, sys::gettid() as usize, signal as usize);
    }
}

/// A register of the interrupted code: `ucontext_t` has them from byte 40 on.
unsafe fn register(context: *mut u8, which: usize) -> *mut usize {
    // SAFETY: the kernel passes a context.
    unsafe { context.add(40).cast::<usize>().add(which) }
}

unsafe extern "C" fn fault(signal: i32, information: *mut u8, context: *mut u8) {
    // SAFETY: the kernel passes information and context; ASKED changes only in `sigaction`.
    unsafe {
        let at = register(context, RIP);
        if let Some(next) = continuation(*at) {
            *at = next;
            return;
        }
        let asked = ASKED[signal as usize];
        // Sent by somebody (`raise`, `kill`), not by the processor: it does not come again by itself.
        let sent = information.add(8).cast::<i32>().read_unaligned() <= 0;
        if asked.handler > 1 {
            if asked.flags & SA_RESETHAND != 0 {
                ASKED[signal as usize] = NONE;
            }
            // What the thread wrote last is recorded now: it may be what faulted, and must not again, with the signal blocked.
            if let Some(me) = state::enter() {
                state::leave(me);
            }
            return run_masked(&asked, signal, information, context);
        }
        if sent && asked.handler == 1 {
            return;
        }
        if let Some(me) = state::enter() {
            let address = information.add(16).cast::<u64>().read_unaligned();
            record::numbers(note::FATAL, &[signal as u64, address, *at as u64]);
            // It faults again, without us.
            state::leave(me);
            process::park(*at);
        }
        let mut default = NONE;
        real::sigaction(signal, (&raw mut default).cast(), std::ptr::null_mut());
        if sent {
            sys::call3(sys::SYS_TGKILL, sys::getpid() as usize, sys::gettid() as usize, signal as usize);
        }
    }
}

/// Runs a handler with the signals blocked that the kernel would block, had it called it.
unsafe fn run_masked(asked: &Action, signal: i32, information: *mut u8, context: *mut u8) {
    const BLOCK: usize = 0;
    const SET: usize = 2;
    let own = if asked.flags & SA_NODEFER != 0 { 0 } else { bit(signal as u32) };
    let blocked = asked.mask[0] | own;
    let mut before = 0u64;
    // SAFETY: the kernel reads and fills sets of eight bytes; the caller vouches for the handler's arguments.
    unsafe {
        let (blocked, before) = (&raw const blocked as usize, &raw mut before as usize);
        sys::call(sys::SYS_SIGPROCMASK, BLOCK, blocked, before, 8, 0, 0);
        run(asked, signal, information, context);
        sys::call(sys::SYS_SIGPROCMASK, SET, before, 0, 8, 0, 0);
    }
}

unsafe fn run(asked: &Action, signal: i32, information: *mut u8, context: *mut u8) {
    // SAFETY: the program's handler, with the arguments that it asked for.
    unsafe {
        if asked.flags & SA_SIGINFO != 0 {
            std::mem::transmute::<usize, extern "C-unwind" fn(i32, *mut u8, *mut u8)>(asked.handler)(
                signal,
                information,
                context,
            );
        } else {
            std::mem::transmute::<usize, extern "C-unwind" fn(i32)>(asked.handler)(signal);
        }
    }
}

/// Stands in for every other handler of the program.
unsafe extern "C-unwind" fn handler(signal: i32, information: *mut u8, context: *mut u8) {
    let me = state::current();
    // SAFETY: null or this thread's own state; a signal interrupts the thread itself.
    unsafe {
        let asked = ASKED[signal as usize];
        if asked.handler <= 1 {
            return;
        }
        if me.is_null() {
            return run(&asked, signal, information, context);
        }
        if OWED[signal as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1)).is_ok()
        {
            return;
        }
        if std::ptr::read_volatile(&raw const (*sched::peek()).following) {
            // The plan says when handlers run.
            (*me).withheld.fetch_or(bit(signal as u32), Ordering::SeqCst);
            // Another thread may have ended the plan meanwhile, and looked before there was anything to send.
            fence(Ordering::SeqCst);
            let following = std::ptr::read_volatile(&raw const (*sched::peek()).following);
            if following || !take_withheld(&*me, signal as u32) {
                return;
            }
        }
        let foreign = is_foreign(signal, information);
        let accesses = (*me).inside == 0 && is_before_access(&*me, *register(context, RIP));
        if (*me).inside == 0 && !accesses {
            announce(&mut *me, signal as u64, false, foreign);
            return run(&asked, signal, information, context);
        }
        if !(*me).in_call {
            put_off(&mut *me, signal as u32, foreign);
            return;
        }
        // In a system call: the handler runs now, with the token, and the call goes on or is interrupted, as the kernel does.
        let me = &mut *me;
        let error = *sys::__errno_location();
        sched::come_back(me);
        announce(me, signal as u64, true, foreign);
        me.call_broken |= asked.flags & SA_RESTART == 0;
        me.inside = 0;
        run(&asked, signal, information, context);
        me.inside = 1;
        sched::go_away(me, 0);
        *sys::__errno_location() = error;
    }
}

/// Whether a signal was withheld from a thread; it no longer is.
fn take_withheld(from: &Thread, signal: u32) -> bool {
    from.withheld.fetch_and(!bit(signal), Ordering::SeqCst) & bit(signal) != 0
}

/// Whether somebody else sent a signal: another process, or the terminal. A replay does not get it again by itself.
unsafe fn is_foreign(signal: i32, information: *const u8) -> bool {
    const FROM_PROCESS: [i32; 3] = [0, -1, -6];
    const FROM_KERNEL: i32 = 0x80;
    const FROM_TERMINAL: [i32; 6] = [1, 2, 3, 20, 18, 28];
    // SAFETY: the kernel passes information: signal, error, code, padding, and for these codes the sender.
    let (code, sender) = unsafe {
        (information.add(8).cast::<i32>().read_unaligned(), information.add(16).cast::<u32>().read_unaligned())
    };
    match code {
        FROM_KERNEL => FROM_TERMINAL.contains(&signal),
        _ => FROM_PROCESS.contains(&code) && sender != sys::getpid(),
    }
}

/// The handler runs when the thread leaves the runtime.
fn put_off(me: &mut Thread, signal: u32, foreign: bool) {
    me.signals |= bit(signal);
    me.foreign = if foreign { me.foreign | bit(signal) } else { me.foreign & !bit(signal) };
}

/// Whether a thread may be about to execute the access that it has announced. A write could not be read back yet, and a read
/// would see what the handler writes, although it has been recorded with what was there. Compilers put the access right
/// behind the announcement.
fn is_before_access(me: &Thread, at: usize) -> bool {
    const NEAR_WRITE: usize = 256;
    // Shorter: after the last read a program may spin without an event until a handler has run.
    const NEAR_READ: usize = 32;
    if is_ours(at) || at.wrapping_sub(record::last_place(me)) < NEAR_READ {
        return true;
    }
    match me.unread.size {
        0 | UnreadWrite::TOKEN_LOST => false,
        size if size & UnreadWrite::PERHAPS_COPIED != 0 => false,
        size => size & UnreadWrite::TEXT != 0 || at.wrapping_sub(me.unread.pc) < NEAR_WRITE,
    }
}

/// Whether an instruction is the runtime's: a thread that has left it by its own account may still be returning.
pub fn is_ours(at: usize) -> bool {
    const PROGRAM_HEADER: usize = 56;
    const LOAD: u32 = 1;
    const EXECUTABLE: u32 = 1;
    unsafe extern "C" {
        // The linker's: the header of this library's file, where it is mapped.
        static __ehdr_start: [u8; 64];
    }
    // SAFETY: the header and the program headers are mapped as long as the library; their layout is ELF's.
    unsafe {
        let base = &raw const __ehdr_start as *const u8;
        let first = base.add(base.add(32).cast::<usize>().read());
        let count = base.add(56).cast::<u16>().read();
        (0..usize::from(count)).map(|i| first.add(i * PROGRAM_HEADER)).any(|segment| {
            let kind = segment.cast::<u32>().read();
            let flags = segment.add(4).cast::<u32>().read();
            let start = base as usize + segment.add(16).cast::<usize>().read();
            let length = segment.add(40).cast::<usize>().read();
            kind == LOAD && flags & EXECUTABLE != 0 && at.wrapping_sub(start) < length
        })
    }
}

/// Notes that a handler runs. It comes after whatever installed it, and after whoever sent the signal.
fn announce(me: &mut Thread, signal: u64, waits: bool, foreign: bool) {
    // Not through `enter`: what the thread wrote last is recorded with its next event, and the handler's come after it.
    let before = std::mem::replace(&mut me.inside, 1);
    if me.unread.size != 0 {
        record::read_back(me);
    }
    record::numbers(note::SIGNAL, &[signal, me.events, u64::from(waits) | u64::from(foreign) << 1]);
    channels::receive_later(me, signal as usize, 0);
    me.inside = before;
}

/// Lets the plan's signals happen that are due before the thread's next event. One that came while it waited is left to
/// the wait, if there is one. Whether all handlers that ran want interrupted calls to go on.
pub fn inject(me: &mut Thread, waiting: bool) -> bool {
    let mut restart = true;
    while me.signal_at == me.events {
        let (signal, waits, foreign) = (me.signal_planned, me.signal_waits, me.signal_foreign);
        answers::next_signal(me);
        // SAFETY: the holder of the token looks at what only holders change.
        let following = unsafe { (*sched::peek()).following };
        if !following && !foreign {
            continue;
        }
        if !foreign {
            settle(me, signal);
        }
        put_off(me, signal, foreign);
        if waits && waiting {
            return restart;
        }
        me.inside = 0;
        restart &= deliver(me);
        me.inside = 1;
    }
    me.allow(me.until);
    restart
}

/// The plan lets a signal happen that the program sends itself: the one that it sent is not to happen again.
fn settle(me: &mut Thread, signal: u32) {
    if take_withheld(me, signal) {
        return;
    }
    if !take_blocked(signal) {
        OWED[signal as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes a signal that has been sent and is blocked, if there is one.
fn take_blocked(signal: u32) -> bool {
    let (set, at_once) = (bit(signal), [0u64; 2]);
    // SAFETY: the kernel reads a set and a time of our own.
    unsafe {
        let (set, at_once) = (&raw const set as usize, &raw const at_once as usize);
        sys::call(sys::SYS_SIGTIMEDWAIT, set, 0, at_once, 8, 0, 0) >= 0
    }
}

/// Whoever sends a signal that the plan has let happen has done so by now. Where it is blocked it is taken at once: another one
/// that comes before it is let in would be the same to the kernel.
fn take_owed(signal: u32) {
    let owed = &OWED[signal as usize];
    if owed.load(Ordering::Relaxed) > 0 && take_blocked(signal) {
        // It may have been let in just now, by itself.
        let _ = owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1));
    }
}

/// The plan has ended: signals that it did not let happen come now.
pub fn send_withheld(to: &mut Thread) {
    // After the plan was ended, so that either this or the handler sees the other.
    fence(Ordering::SeqCst);
    let mut withheld = to.withheld.swap(0, Ordering::SeqCst);
    while withheld != 0 {
        let signal = withheld.trailing_zeros() + 1;
        withheld &= !bit(signal);
        // SAFETY: a signal to a thread of this process, whose handler is ours. It may have ended.
        unsafe { sys::call3(sys::SYS_TGKILL, sys::getpid() as usize, to.tid as usize, signal as usize) };
    }
}

/// Runs the handlers that were put off. The thread has left the runtime and has the token.
/// Whether all of them want interrupted calls to go on.
#[cold]
#[inline(never)]
pub fn deliver(me: &mut Thread) -> bool {
    let mut restart = true;
    // SAFETY: this thread's errno: a call that has just set it is not interrupted, as far as the program can tell.
    let error = unsafe { *sys::__errno_location() };
    while me.signals != 0 {
        let signal = me.signals.trailing_zeros() + 1;
        me.signals &= !bit(signal);
        if signal == CANCEL {
            // SAFETY: a cancellation point, with no frame of ours that has to be cleaned up.
            unsafe { real::pthread_testcancel() };
            continue;
        }
        let foreign = me.foreign & bit(signal) != 0;
        announce(me, u64::from(signal), me.life == state::Life::Running && me.waited, foreign);
        take_owed(signal);
        // SAFETY: the program's handler. It gets no information: the kernel's is gone by now.
        unsafe {
            let asked = ASKED[signal as usize];
            if asked.handler > 1 {
                SIGNAL_INFORMATION[0] = signal;
                let information = (&raw mut SIGNAL_INFORMATION).cast();
                run_masked(&asked, signal as i32, information, (&raw mut NO_CONTEXT).cast());
                restart &= asked.flags & SA_RESTART != 0;
            }
        }
    }
    // SAFETY: as above.
    unsafe { *sys::__errno_location() = error };
    restart
}

/// Whether the program handles signals that may come from outside.
pub fn has_handlers() -> bool {
    // SAFETY: only read; changed by `sigaction` alone.
    unsafe { (0..SIGNALS).any(|signal| ASKED[signal].handler > 1 && !FAULTS.contains(&(signal as i32))) }
}

/// Before a signal is sent to this process, or made to be sent later.
pub fn sends(signal: i32, pc: usize) {
    if (1..SIGNALS as i32).contains(&signal)
        && let Some(me) = state::enter()
    {
        channels::send(me, signal as usize, pc);
        state::leave(me);
    }
}

pub unsafe extern "C-unwind" fn sigaction(signal: i32, new: *const Action, old: *mut Action, pc: usize) -> i32 {
    if state::current().is_null() || !(1..SIGNALS as i32).contains(&signal) {
        // SAFETY: passed on.
        return unsafe { real::sigaction(signal, new as Ptr, old.cast()) };
    }
    // SAFETY: the program's structure, which may be null.
    if !new.is_null() && unsafe { (*new).handler } > 1 {
        sends(signal, pc);
    }
    // Inside, so that structures are copied unseen. Handlers themselves may call this, and may come here in the runtime.
    let me = state::enter();
    // SAFETY: the program's structures, which may be null.
    let result = unsafe {
        let before = ASKED[signal as usize];
        let mut result = 0;
        if !new.is_null() && !FAULTS.contains(&signal) {
            let mut action = *new;
            if action.handler > 1 {
                action.handler = handler as *const () as usize;
                action.flags |= SA_SIGINFO;
            } else if action.handler == 0 && signal == SIGABRT {
                action = abort_is_noted();
            }
            result = real::sigaction(signal, (&raw mut action).cast(), std::ptr::null_mut());
        }
        if result == 0 {
            if !old.is_null() {
                *old = before;
            }
            if !new.is_null() {
                ASKED[signal as usize] = *new;
            }
        }
        result
    };
    if let Some(me) = me {
        state::leave(me);
    }
    result
}

pub unsafe extern "C-unwind" fn signal(signal: i32, handler: usize, pc: usize) -> usize {
    let mut new = NONE;
    new.handler = handler;
    new.flags = SA_RESTART;
    let mut old = NONE;
    // SAFETY: structures of our own.
    if unsafe { sigaction(signal, &raw const new, &raw mut old, pc) } == 0 { old.handler } else { usize::MAX }
}

type SendTo = unsafe extern "C-unwind" fn(usize, i32, usize) -> i32;

/// Functions that send a signal (argument 1) to somebody, who may be ourselves.
macro_rules! senders {
    ($($name:ident $real:expr;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name(to: usize, signal: i32, value: usize, pc: usize) -> i32 {
                #[unsafe(link_section = "portent_real")]
                static REAL: real::Real = $real;
                sends(signal, pc);
                // SAFETY: the C library's function, with its own arguments.
                unsafe { std::mem::transmute::<Ptr, SendTo>(REAL.required())(to, signal, value) }
            }
        )*
    };
}

senders! {
    pthread_kill_to real::Real::versioned(b"pthread_kill\0", b"GLIBC_2.34\0");
    pthread_sigqueue real::Real::new(b"pthread_sigqueue\0");
}

pub unsafe extern "C-unwind" fn pthread_kill(to: usize, signal: i32, pc: usize) -> i32 {
    // SAFETY: passed on; it takes no value.
    unsafe { pthread_kill_to(to, signal, 0, pc) }
}

/// To a process, by the number that the program knows.
pub unsafe extern "C-unwind" fn sigqueue(to: i32, signal: i32, value: usize, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: real::Real = real::Real::new(b"sigqueue\0");
    let real = crate::process::real_number(to);
    if real == sys::getpid() as i32 {
        sends(signal, pc);
    }
    // SAFETY: the C library's function, with its own arguments.
    unsafe { std::mem::transmute::<Ptr, SendTo>(REAL.required())(real as usize, signal, value) }
}

entry! {
    pthread_kill(2) => pthread_kill;
    pthread_sigqueue(3) => pthread_sigqueue;
    sigqueue(3) => sigqueue;
    sigaction(3) => sigaction;
    signal(2) => signal;
}
