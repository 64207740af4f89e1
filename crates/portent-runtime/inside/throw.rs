//! Exceptions that nobody catches: where they were thrown.
//!
//! A throw only leaves its place with its thread. If the thread calls `abort` while an exception is being handled, which is
//! what `std::terminate` comes to, the place and the type are noted; whether it was uncaught, or the program aborts while it
//! handles one, shows in who called `abort`.

use crate::log::note;
use crate::real::{Ptr, Real};
use crate::{init, record, state};

#[unsafe(link_section = "portent_real")]
static THROW: Real = Real::new(b"__cxa_throw\0");

/// Before an exception is thrown: what throws it.
extern "C" fn before_throw(_object: usize, type_information: usize, pc: usize) -> Ptr {
    let me = state::current();
    if !me.is_null() {
        // SAFETY: this thread's own state.
        unsafe {
            // What a library throws for the program (an empty `std::function` that is called, `vector::at`) is told by where the
            // program was last seen: its calls will have been left when somebody asks.
            let last = record::last_place(&*me);
            let thrower = if !init::is_in_program(pc) && init::is_in_program(last) { last } else { pc };
            (*me).thrown = (thrower, type_information);
        }
    }
    THROW.required()
}

/// Jumped to, so that no frame of ours lies between the throw and who catches it.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn __cxa_throw() {
    std::arch::naked_asm!(
        "push rdi", "push rsi", "push rdx",
        "mov rdx, [rsp + 24]",
        "call {before}",
        "pop rdx", "pop rsi", "pop rdi",
        "jmp rax",
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
        record::told(note::THROWN, &[pc as u64], name);
    }
    state::leave(me);
}
