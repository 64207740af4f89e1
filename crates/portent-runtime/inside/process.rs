//! The process: its end, its children, its mappings.

use crate::entry::entry;
use crate::log::{self, call, message, note, op};
use crate::real::{self, Ptr, Real};
use crate::state::{self, Pending, Thread, Wait};
use crate::{answers, blocking, channels, family, one_core, record, sched, signals, sys, throw};

/// Holds the end of the process until every other thread has finished or is stuck: many bugs sit in threads that main
/// does not wait for.
fn hold_exit(status: i32, pc: usize, hold: bool) {
    if hold {
        crate::sanitizer::on_finalize();
    }
    let Some(me) = state::enter() else { return };
    if hold {
        sched::lock().exiting = true;
        sched::ask(me, Pending { op: op::EXIT, pc, wait: Wait::Exit, ..Pending::default() });
    }
    if hold {
        record::plain(me, op::BRANCH, call::TELLS, pc);
    }
    record::numbers(note::EXIT, &[status as u32 as u64]);
    ended();
    // What runs from here on, destructors of static objects and the like, runs undisturbed.
    me.allow(u64::MAX);
    state::leave(me);
}

/// A thread fails, and what is to be said of that is in the recording. Where the plan says so, the others go on first, as far as they
/// can: in truth, too, they may be as far when it fails, and what they do then is worth a look.
pub fn park(pc: usize) {
    // SAFETY: set before there are threads.
    if !unsafe { (*sched::peek()).parks } {
        return;
    }
    let Some(me) = state::enter() else { return };
    me.has_failed = true;
    record::numbers(note::PARKED, &[pc as u64]);
    sched::lock().exiting = true;
    sched::ask(me, Pending { op: op::EXIT, pc, wait: Wait::Exit, ..Pending::default() });
    sched::lock().tell_who_waits(note::LEFT, me.id);
    me.allow(u64::MAX);
    state::leave(me);
}

/// When all that runs at the end has run: threads that can go on do so now. In truth they would, until the process is gone, with
/// what the destructors of static objects have left.
unsafe extern "C" fn hold_the_very_end(_: Ptr) {
    let Some(me) = state::enter() else { return };
    let goes_on = {
        let mut scheduler = sched::lock();
        scheduler.has_no_more_events(me);
        scheduler.exiting && scheduler.somebody_can_go_on()
    };
    if goes_on {
        sched::ask(me, Pending { op: op::EXIT, wait: Wait::Exit, ..Pending::default() });
    }
    me.allow(u64::MAX);
    state::leave(me);
}

/// Says in the recording that the program ended in an orderly way.
pub fn ended() {
    // SAFETY: the header is mapped while threads run.
    unsafe { (*record::header()).state = log::state::ENDED };
}

macro_rules! ends {
    ($($name:ident $real:literal $hold:literal;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name(status: i32, pc: usize) -> ! {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($real);
                hold_exit(status, pc, $hold);
                // SAFETY: the C library's function, which does not return.
                unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn(i32) -> !>(REAL.required())(status) }
            }
        )*
    };
}

ends! {
    exit b"exit\0" true;
    quick_exit b"quick_exit\0" true;
    exit_now b"_exit\0" false;
    exit_now_c99 b"_Exit\0" false;
}

pub unsafe extern "C-unwind" fn abort(pc: usize) -> ! {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"abort\0");
    throw::told();
    tell(message::ABORT, pc, b"abort");
    park(pc);
    // SAFETY: the C library's function, which does not return.
    unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn() -> !>(REAL.required())() }
}

/// Notes something about the program's own doing.
fn tell(kind: u64, pc: usize, text: &[u8]) {
    if let Some(me) = state::enter() {
        record::told(note::MESSAGE, &[kind, pc as u64], text);
        state::leave(me);
    }
}

pub unsafe extern "C-unwind" fn assert_fail(
    what: *const i8,
    file: *const i8,
    line: u32,
    function: *const i8,
    pc: usize,
) -> ! {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"__assert_fail\0");
    let size = record::text_size(what as usize, 4096) - 1;
    // SAFETY: the text that the program passes, up to its end.
    tell(message::ASSERTION, pc, unsafe { std::slice::from_raw_parts(what.cast(), size) });
    park(pc);
    // How the C library puts its message together is nobody's doing here. The thread does not come back.
    if signals::abort_is_the_end()
        && let Some(me) = state::enter()
    {
        me.has_failed = true;
    }
    type Fail = extern "C-unwind" fn(*const i8, *const i8, u32, *const i8) -> !;
    // SAFETY: the C library's function, which does not return.
    unsafe { std::mem::transmute::<Ptr, Fail>(REAL.required())(what, file, line, function) }
}

/// The real `main`, while the runtime stands in for it.
static mut MAIN: usize = 0;

type Main = unsafe extern "C-unwind" fn(i32, *mut *mut i8, *mut *mut i8) -> i32;

unsafe extern "C-unwind" fn main(count: i32, arguments: *mut *mut i8, environment: *mut *mut i8) -> i32 {
    // SAFETY: the program's main, with what it expects.
    let status = unsafe { std::mem::transmute::<usize, Main>(MAIN)(count, arguments, environment) };
    hold_exit(status, 0, true);
    status
}

/// Stands in for `main`, to see it return before anything is torn down.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __libc_start_main(
    main_routine: usize,
    count: i32,
    arguments: Ptr,
    init: Ptr,
    fini: Ptr,
    loader_fini: Ptr,
    stack_end: Ptr,
) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::versioned(b"__libc_start_main\0", b"GLIBC_2.34\0");
    #[unsafe(link_section = "portent_real")]
    static AT_EXIT: Real = Real::new(b"__cxa_atexit\0");
    type Start = unsafe extern "C-unwind" fn(Main, i32, Ptr, Ptr, Ptr, Ptr, Ptr) -> i32;
    type AtExit = unsafe extern "C" fn(unsafe extern "C" fn(Ptr), Ptr, Ptr) -> i32;
    // SAFETY: the C library's functions; `main` stands in for the program's. What is registered first is called last.
    unsafe {
        MAIN = main_routine;
        let at_exit = std::mem::transmute::<Ptr, AtExit>(AT_EXIT.required());
        at_exit(hold_the_very_end, std::ptr::null_mut(), std::ptr::null_mut());
        std::mem::transmute::<Ptr, Start>(REAL.required())(main, count, arguments, init, fini, loader_fini, stack_end)
    }
}

/// Process numbers as the program was told them, and as they are: they differ in a replay.
static mut NUMBERS: [(i32, i32); 256] = [(0, 0); 256];
static mut LAST: usize = 0;

/// Notes what the program was told. Only the holder of the token comes here.
pub fn remember(shown: i32, real: i32) {
    if shown == real {
        return;
    }
    // SAFETY: the holder of the token.
    unsafe {
        LAST = (LAST + 1) % 256;
        NUMBERS[LAST] = (shown, real);
    }
}

/// The process that the program means.
pub fn real_number(shown: i32) -> i32 {
    // SAFETY: only read; at worst a number that is just being replaced.
    unsafe { (*&raw const NUMBERS).iter().find(|entry| entry.0 == shown && shown > 0).map_or(shown, |entry| entry.1) }
}

fn shown_number(real: i32) -> i32 {
    // SAFETY: as above.
    unsafe { (*&raw const NUMBERS).iter().find(|entry| entry.1 == real && real > 0).map_or(real, |entry| entry.0) }
}

/// A child has one thread, and runs unrecorded while it does: the first thing it does, whoever forked.
extern "C" fn in_child() {
    state::set_current(std::ptr::null_mut());
    one_core::in_child();
    family::in_child();
}

/// Called once, before the program can have handlers of its own that run in a child.
pub unsafe fn prepare() {
    // SAFETY: a handler of the right type, in a library that is never unloaded.
    unsafe {
        let none = std::ptr::null_mut();
        real::__register_atfork(none, none, in_child as *const () as Ptr, none);
    }
}

/// Also `vfork`: a child that shared our memory would write into our recording. Handlers of the program that run before
/// and after are part of it and recorded.
pub unsafe extern "C-unwind" fn fork(pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"fork\0");
    if let Some(me) = state::enter() {
        channels::receive(me, channels::AT_FORK, pc);
        state::leave(me);
    }
    family::forks();
    // SAFETY: the C library's function.
    made(unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn() -> i32>(REAL.required())() })
}

/// What `pthread_atfork` calls: its handlers run after it, whoever forks.
pub unsafe extern "C-unwind" fn register_atfork(prepare: Ptr, parent: Ptr, child: Ptr, module: Ptr, pc: usize) -> i32 {
    if let Some(me) = state::enter() {
        channels::send(me, channels::AT_FORK, pc);
        state::leave(me);
    }
    // SAFETY: the C library's function, with its own arguments.
    unsafe { real::__register_atfork(prepare, parent, child, module) }
}

/// The same without handlers, which takes ours along.
pub unsafe extern "C-unwind" fn fork_bare(_pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"_Fork\0");
    family::forks();
    // SAFETY: the C library's function.
    let child = unsafe { std::mem::transmute::<Ptr, extern "C-unwind" fn() -> i32>(REAL.required())() };
    if child == 0 {
        in_child();
    }
    made(child)
}

/// What the program is told about a child.
fn made(child: i32) -> i32 {
    if child > 0
        && let Some(me) = state::enter()
    {
        let shown = child_made(me, child);
        state::leave(me);
        return shown;
    }
    child
}

fn child_made(me: &mut Thread, real: i32) -> i32 {
    // SAFETY: the header is mapped while threads run.
    unsafe { (*record::header()).children += 1 };
    let shown = answers::process_number(me, real);
    remember(shown, real);
    shown
}

type Spawn = unsafe extern "C-unwind" fn(*mut i32, Ptr, Ptr, Ptr, Ptr, Ptr) -> i32;

unsafe fn spawned(which: &'static Real, pid: *mut i32, arguments: [Ptr; 5]) -> i32 {
    let mut child = 0;
    let [path, actions, attributes, argv, environment] = arguments;
    // SAFETY: the C library's function, with its own arguments; all registers are used, so the site is not known.
    unsafe {
        let spawn = std::mem::transmute::<Ptr, Spawn>(which.required());
        let result = one_core::with_all_cores(|| spawn(&raw mut child, path, actions, attributes, argv, environment));
        if result == 0 {
            if let Some(me) = state::enter() {
                child = child_made(me, child);
                state::leave(me);
            }
            if !pid.is_null() {
                *pid = child;
            }
        }
        result
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn(
    pid: *mut i32,
    path: Ptr,
    actions: Ptr,
    attributes: Ptr,
    argv: Ptr,
    environment: Ptr,
) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::versioned(b"posix_spawn\0", b"GLIBC_2.15\0");
    // SAFETY: passed on.
    unsafe { spawned(&REAL, pid, [path, actions, attributes, argv, environment]) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawnp(
    pid: *mut i32,
    file: Ptr,
    actions: Ptr,
    attributes: Ptr,
    argv: Ptr,
    environment: Ptr,
) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::versioned(b"posix_spawnp\0", b"GLIBC_2.15\0");
    // SAFETY: passed on.
    unsafe { spawned(&REAL, pid, [file, actions, attributes, argv, environment]) }
}

pub unsafe extern "C-unwind" fn wait4(pid: i32, status: *mut i32, options: i32, usage: Ptr, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"wait4\0");
    type Wait4 = unsafe extern "C-unwind" fn(i32, *mut i32, i32, Ptr) -> i32;
    // SAFETY: the C library's function, with its own arguments.
    let real =
        || unsafe { std::mem::transmute::<Ptr, Wait4>(REAL.required())(real_number(pid), status, options, usage) };
    let Some(me) = state::enter() else { return real() };
    let found = blocking::plain_call(me, pc, || real() as isize);
    state::leave(me);
    shown_number(found as i32)
}

pub unsafe extern "C-unwind" fn waitid(kind: i32, id: i32, information: *mut i32, options: i32, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"waitid\0");
    const PROCESS: i32 = 1;
    type WaitId = unsafe extern "C-unwind" fn(i32, i32, *mut i32, i32) -> i32;
    let wanted = if kind == PROCESS { real_number(id) } else { id };
    // SAFETY: the C library's function, with its own arguments.
    let real = || unsafe { std::mem::transmute::<Ptr, WaitId>(REAL.required())(kind, wanted, information, options) };
    let Some(me) = state::enter() else { return real() };
    let result = blocking::plain_call(me, pc, || real() as isize) as i32;
    if result == 0 && !information.is_null() {
        // SAFETY: the call has filled it: signal, error, code, padding, and the process's number.
        unsafe { *information.add(4) = shown_number(*information.add(4)) };
    }
    state::leave(me);
    result
}

pub unsafe extern "C-unwind" fn waitpid(pid: i32, status: *mut i32, options: i32, pc: usize) -> i32 {
    // SAFETY: passed on.
    unsafe { wait4(pid, status, options, std::ptr::null_mut(), pc) }
}

pub unsafe extern "C-unwind" fn wait(status: *mut i32, pc: usize) -> i32 {
    // SAFETY: passed on.
    unsafe { wait4(-1, status, 0, std::ptr::null_mut(), pc) }
}

/// Whether a thread of this process sleeps in the kernel, by its state in /proc.
pub fn sleeps_in_kernel(tid: u32) -> bool {
    let mut text = [0u8; 256];
    let text = about_thread(tid, b"/stat\0", &mut text);
    let after_name = text.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 2);
    matches!(text.get(after_name), Some(b'S' | b'D'))
}

/// Whether a thread of this process is blocked in a system call whose first argument is this descriptor (plus one), or in `poll`,
/// as which waiting for it is done.
pub fn is_blocked_on(tid: u32, descriptor: usize) -> bool {
    let mut text = [0u8; 256];
    // The call and its arguments, or "running".
    let mut words = about_thread(tid, b"/syscall\0", &mut text).split(|&byte| byte == b' ');
    let number = words.next().unwrap_or_default();
    let first = words.next().and_then(|word| word.strip_prefix(b"0x"));
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as usize;
    let value = first.map(|digits| digits.iter().fold(0, |so_far, byte| so_far << 4 | digit(byte)));
    let on_it = number == b"7" || value.is_some_and(|value| value.wrapping_add(1) == descriptor);
    number.first().is_some_and(u8::is_ascii_digit) && on_it
}

/// Whether an address is in memory that other processes may write to.
pub fn is_shared_memory(address: usize) -> bool {
    // SAFETY: a path that ends with a zero; a descriptor of our own, closed below.
    let file = unsafe { sys::call3(sys::SYS_OPEN, c"/proc/self/maps".as_ptr() as usize, 0o2000000, 0) };
    if file < 0 {
        return true;
    }
    let (mut numbers, mut column, mut found) = ([0usize; 2], 0, false);
    let mut text = [0u8; 1024];
    loop {
        // SAFETY: the buffer is ours.
        let size = unsafe { sys::call3(sys::SYS_READ, file as usize, text.as_mut_ptr() as usize, text.len()) };
        if size <= 0 {
            break;
        }
        // "start-end rwxs offset …"
        for &byte in &text[..size as usize] {
            match (column, byte) {
                (_, b'\n') => (numbers, column) = ([0; 2], 0),
                (0, b'-') | (1, b' ') => column += 1,
                (0 | 1, digit) => {
                    let digit = char::from(digit).to_digit(16).unwrap_or(0) as usize;
                    numbers[column] = numbers[column] << 4 | digit;
                }
                (2..=5, letter) => {
                    found |= column == 5 && letter == b's' && (numbers[0]..numbers[1]).contains(&address);
                    column += 1;
                }
                _ => {}
            }
        }
    }
    // SAFETY: as above.
    unsafe { sys::call3(sys::SYS_CLOSE, file as usize, 0, 0) };
    found
}

/// What /proc says of a thread.
fn about_thread<'a>(tid: u32, file: &[u8], text: &'a mut [u8]) -> &'a [u8] {
    const BEFORE: &[u8] = b"/proc/self/task/";
    let mut path = [0u8; 40];
    path[..BEFORE.len()].copy_from_slice(BEFORE);
    let end = BEFORE.len() + digits(tid, &mut path[BEFORE.len()..]);
    path[end..][..file.len()].copy_from_slice(file);
    let filled = sys::read_file(&path[..end + file.len()], text);
    &text[..filled]
}

/// Writes a number as text, without leading zeroes, which the kernel does not take; how many digits it has.
pub fn digits(number: u32, out: &mut [u8]) -> usize {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    for (at, digit) in out[..digits].iter_mut().enumerate() {
        *digit = b'0' + (number / 10u32.pow((digits - 1 - at) as u32) % 10) as u8;
    }
    digits
}

/// The signals that wait for a thread of this process to take them, its own and those of the process.
pub fn waiting_signals(tid: u32) -> u64 {
    let mut text = [0u8; 2048];
    let lines = about_thread(tid, b"/status\0", &mut text).split(|&byte| byte == b'\n');
    let sets = lines.filter_map(|line| line.strip_prefix(b"SigPnd:\t").or(line.strip_prefix(b"ShdPnd:\t")));
    sets.fold(0, |so_far, set| so_far | hex(set).map_or(0, |found| found.0 as u64))
}

/// The mapping that an address lies in, from /proc/self/maps.
pub fn mapping(address: usize) -> Option<(usize, usize)> {
    described(address).map(|(low, high, _)| (low, high))
}

/// Whether an address lies in memory that is shared with other processes, or could be.
pub fn is_mapped_shared(address: usize) -> bool {
    described(address).is_some_and(|(.., shared)| shared)
}

fn described(address: usize) -> Option<(usize, usize, bool)> {
    asked(address).unwrap_or_else(|| read(address))
}

/// The same from the kernel itself, for one address only; none if it is too old for that.
fn asked(address: usize) -> Option<Option<(usize, usize, bool)>> {
    /// `PROCMAP_QUERY`, with a `struct procmap_query`.
    const QUERY: usize = 0xc068_6611;
    const SHARED: u64 = 8;
    // Its size, flags, the address; then the mapping's start, end and flags, and more that is not asked for.
    let mut query = [0u64; 13];
    (query[0], query[2]) = (size_of_val(&query) as u64, address as u64);
    // SAFETY: the path ends with a zero; the kernel reads and fills as many bytes as it is told.
    let result = unsafe {
        let fd = sys::call3(sys::SYS_OPEN, c"/proc/self/maps".as_ptr() as usize, 0o2000000, 0);
        if fd < 0 {
            return None;
        }
        let result = sys::call3(sys::SYS_IOCTL, fd as usize, QUERY, &raw mut query as usize);
        sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0);
        result
    };
    match result {
        0 => Some(Some((query[3] as usize, query[4] as usize, query[5] & SHARED != 0))),
        error if error == -(sys::ENOENT as isize) => Some(None),
        _ => None,
    }
}

/// The same from the text for people.
fn read(address: usize) -> Option<(usize, usize, bool)> {
    static mut TEXT: [u8; 1 << 18] = [0; 1 << 18];
    // SAFETY: only the holder of the token comes here.
    let text = unsafe { &mut *&raw mut TEXT };
    let filled = sys::read_file(b"/proc/self/maps\0", text);
    text[..filled].split(|&byte| byte == b'\n').find_map(|line| {
        let (low, used) = hex(line)?;
        let rest = line.get(used + 1..)?;
        let (high, used) = hex(rest)?;
        // A space, and the rights: `rw-s`.
        let shared = rest.get(used + 4) == Some(&b's');
        (low..high).contains(&address).then_some((low, high, shared))
    })
}

fn hex(text: &[u8]) -> Option<(usize, usize)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let value = text[..digits]
        .iter()
        .try_fold(0usize, |sum, &digit| Some(sum << 4 | (digit as char).to_digit(16)? as usize))?;
    (digits > 0).then_some((value, digits))
}

/// The kernel's number of the thread that a debugger is to show, for which it looks after a trap.
#[unsafe(no_mangle)]
pub static mut portent_shown: u32 = 0;

/// Stops in the debugger, if there is one: some thread of the program waits for good, and is to be shown.
pub fn trap(shown: u32) {
    // SAFETY: a word that only debuggers read; SIGTRAP to this thread.
    unsafe {
        (&raw mut portent_shown).write_volatile(shown);
        sys::call3(sys::SYS_TGKILL, sys::getpid() as usize, sys::gettid() as usize, 5);
    }
}

/// A thread is about to go on in the program, at this address: a debugger that wants to stop there has its breakpoint here.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn portent_stop(_pc: usize) {
    std::arch::naked_asm!(".cfi_startproc", "ret", ".cfi_endproc");
}

/// Tells a debugger, if there is one, that this thread goes on at an address.
pub fn stop(pc: usize) {
    // SAFETY: does nothing.
    unsafe { portent_stop(pc) };
}

entry! {
    exit(1) => exit;
    quick_exit(1) => quick_exit;
    _exit(1) => exit_now;
    _Exit(1) => exit_now_c99;
    abort(0) => abort;
    fork(0) => fork;
    __register_atfork(4) => register_atfork;
    vfork(0) => fork;
    _Fork(0) => fork_bare;
    wait(1) => wait;
    waitid(4) => waitid;
    waitpid(3) => waitpid;
    wait4(4) => wait4;
    __assert_fail(4) => assert_fail;
}
