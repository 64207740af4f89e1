//! Exceptions that nobody catches: where they were thrown.
//!
//! A throw only leaves its place with its thread. If the thread calls `abort` while an exception is being handled, which is
//! what `std::terminate` comes to, the place and the type are noted; whether it was uncaught, or the program aborts while it
//! handles one, shows in who called `abort`.
//!
//! What a library throws for the program (an empty `std::function` that is called, `vector::at`, a promise that is kept twice) is
//! told by the calls of the program that led there. They are taken from the stack when it is thrown: they will have been left
//! when somebody asks, and libraries do not tell when they are called.

use crate::log::note;
use crate::real::{Ptr, Real};
use crate::{init, record, state};

#[unsafe(link_section = "portent_real")]
static THROW: Real = Real::new(b"__cxa_throw\0");

/// Calls of the program that are remembered of a throw.
pub const CALLS: usize = 8;

/// `_Unwind_Reason_Code`: go on, and no further.
const GO_ON: i32 = 0;
const ENOUGH: i32 = 4;

unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(each: extern "C-unwind" fn(Ptr, Ptr) -> i32, argument: Ptr) -> i32;
    fn _Unwind_GetIP(context: Ptr) -> usize;
}

/// Where the program called what threw, the innermost first.
struct Calls {
    all: [usize; CALLS],
    count: usize,
    /// Frames that were looked at.
    looked: usize,
}

extern "C-unwind" fn each_frame(context: Ptr, argument: Ptr) -> i32 {
    /// Deeper than libraries call each other before they throw, with what the program has around.
    const DEEPEST: usize = 64;
    let calls = argument.cast::<Calls>();
    // SAFETY: the unwinder passes its context and what it was given.
    unsafe {
        let pc = _Unwind_GetIP(context);
        (*calls).looked += 1;
        if init::is_in_program(pc) {
            (*calls).all[(*calls).count] = pc;
            (*calls).count += 1;
        }
        if (*calls).count == CALLS || (*calls).looked == DEEPEST { ENOUGH } else { GO_ON }
    }
}

/// Before an exception is thrown: what throws it.
extern "C" fn before_throw(_object: usize, type_information: usize, pc: usize) -> Ptr {
    let me = state::current();
    if !me.is_null() {
        let mut calls = Calls { all: [0; CALLS], count: 0, looked: 0 };
        // SAFETY: this thread's own state. The unwinder may call what is interposed, which is nothing of the program's.
        unsafe {
            let outside = std::mem::replace(&mut (*me).inside, 1);
            _Unwind_Backtrace(each_frame, (&raw mut calls).cast());
            (*me).inside = outside;
            (*me).thrown = (pc, type_information);
            (*me).thrown_by = calls.all;
        }
    }
    THROW.required()
}

/// Jumped to, so that no frame of ours lies between the throw and who catches it.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __cxa_throw() {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rdi",
        ".cfi_adjust_cfa_offset 8",
        "push rsi",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "mov rdx, [rsp + 24]",
        "call {before}",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rsi",
        ".cfi_adjust_cfa_offset -8",
        "pop rdi",
        ".cfi_adjust_cfa_offset -8",
        "jmp rax",
        ".cfi_endproc",
        before = sym before_throw,
    );
}

/// Before the program aborts: the exception that it has at hand, if that is the one this thread threw last.
pub fn told() {
    #[unsafe(link_section = "portent_real")]
    static CURRENT: Real = Real::new(b"__cxa_current_exception_type\0");
    type Current = extern "C" fn() -> usize;
    if CURRENT.address().is_null() {
        return;
    }
    let Some(me) = state::enter() else { return };
    // SAFETY: libstdc++'s function; it looks at this thread's own exceptions.
    let current = unsafe { std::mem::transmute::<Ptr, Current>(CURRENT.address())() };
    let (pc, thrown) = me.thrown;
    if current != 0
        && current == thrown
        && let Some(name) = record::load(thrown + 8, 8)
    {
        // The name is the second word of a `std::type_info`.
        let size = record::text_size(name as usize, 4096) - 1;
        // SAFETY: a text of the program's, up to its end.
        let name = unsafe { std::slice::from_raw_parts(name as *const u8, size) };
        let by = me.thrown_by.map(|pc| pc as u64);
        record::numbers(note::THROWN_BY, &by);
        record::told(note::THROWN, &[pc as u64], name);
    }
    state::leave(me);
}
