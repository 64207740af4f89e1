//! Names of which the C library has several versions, for programs that were linked against ThreadSanitizer's library.
//!
//! Such a program refers to them without a version, because ThreadSanitizer's library defines them. Were they not defined
//! here, the loader would bind the oldest version, whose structures differ. So they are, and jump to the newest.

use crate::real::{Ptr, Real};

macro_rules! forward {
    ($($name:ident $version:literal;)*) => {
        $(
            const _: () = {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::versioned(concat!(stringify!($name), "\0").as_bytes(), concat!("GLIBC_", $version, "\0").as_bytes());
                extern "C" fn find() -> Ptr {
                    REAL.required()
                }
                /// Keeps every argument register, looks the function up, and jumps to it.
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name() {
                    std::arch::naked_asm!(
                        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                        "sub rsp, 16", "movups [rsp], xmm0",
                        "call {find}",
                        "mov r11, rax",
                        "movups xmm0, [rsp]", "add rsp, 16",
                        "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                        "jmp r11",
                        find = sym find,
                    );
                }
            };
        )*
    };
}

forward! {
    pthread_cond_init "2.3.2";
    regexec "2.3.4";
    pthread_attr_getaffinity_np "2.32";
    glob "2.27";
    glob64 "2.27";
    fmemopen "2.22";
    lgamma "2.23";
    lgammaf "2.23";
    lgammal "2.23";
}
