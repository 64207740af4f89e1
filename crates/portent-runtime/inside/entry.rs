//! How entry points get the return address: naked functions that put it into the next argument register and jump on.

/// Defines the C symbol `$name` with a number of arguments, passed on to `$target` with the return address behind them.
macro_rules! entry {
    ($($name:ident ( $count:tt ) => $target:ident;)*) => {
        $(
            // In a scope of its own, so that a symbol and what it stands for may have the same name.
            const _: () = {
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name() {
                    // Debuggers unwind through it while they step into it.
                    std::arch::naked_asm!(".cfi_startproc", crate::entry::entry!(@$count), "jmp {}", ".cfi_endproc", sym self::$target);
                }
            };
        )*
    };
    (@0) => { "mov rdi, [rsp]" };
    (@1) => { "mov rsi, [rsp]" };
    (@2) => { "mov rdx, [rsp]" };
    (@3) => { "mov rcx, [rsp]" };
    (@4) => { "mov r8, [rsp]" };
    (@5) => { "mov r9, [rsp]" };
    // One argument; the return address, then the stack and frame pointers of the caller.
    (@frame) => { "mov rsi, [rsp]\nlea rdx, [rsp + 8]\nmov rcx, rbp" };
}
pub(crate) use entry;
