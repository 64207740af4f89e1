//! How entry points get the return address: naked functions that put it into the next argument register and jump on.

/// Defines the C symbol `$name` with a number of arguments, passed on to `$target` with the return address behind them.
///
/// With `looking` in front, for calls that may be part of a loop which only looks at things.
macro_rules! entry {
    (looking $($name:ident ( $count:tt ) => $target:ident;)*) => {
        $(
            const _: () = {
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name() {
                    std::arch::naked_asm!(".cfi_startproc", crate::entry::entry!(@registers), crate::entry::entry!(@$count), "jmp {}",
                        ".cfi_endproc", sym self::$target);
                }
            };
        )*
    };
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
    // The registers that calls keep, and the stack pointer, are left where [`crate::spin::state`] finds them.
    (@registers) => {
        "mov rax, qword ptr [rip + portent_registers@GOTTPOFF]
         mov fs:[rax], rbx
         mov fs:[rax + 8], rbp
         mov fs:[rax + 16], r12
         mov fs:[rax + 24], r13
         mov fs:[rax + 32], r14
         mov fs:[rax + 40], r15
         mov fs:[rax + 48], rsp"
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
