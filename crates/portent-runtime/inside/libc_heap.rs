//! Functions of the C library that allocate what the program frees.
//!
//! They call `malloc` themselves, which the runtime sees, but from inside the C library: here they are given the program's
//! place. Those that read a stream do it without the token, and allocate unseen; what came out is noted afterwards. What
//! a stream of `open_memstream` allocates while it is written to is named after who writes.

use crate::blocks::Family;
use crate::entry::entry;
use crate::heap::{made_inside, on_behalf};
use crate::libc_memory::{ALL, NONE, text, touch};
use crate::real::{Ptr, Real};
use crate::{blocking, state, streams};

/// Functions that are passed on, after `$read` was read.
macro_rules! allocating {
    ($($name:ident($($arg:ident),*) $symbol:literal $($version:literal)?: $read:expr;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* pc: usize) -> usize {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::versioned($symbol, allocating!(@version $($version)?));
                let read: (usize, usize) = $read;
                touch(read, NONE, pc);
                type Function = unsafe extern "C-unwind" fn($(allocating!(@ $arg)),*) -> usize;
                // SAFETY: the C library's function, with its own arguments.
                on_behalf(pc, Family::Malloc, || unsafe {
                    std::mem::transmute::<Ptr, Function>(REAL.required())($($arg),*)
                })
            }
        )*
    };
    (@version) => { b"" };
    (@version $version:literal) => { $version };
    (@ $arg:ident) => { usize };
}

allocating! {
    strdup(s) b"strdup\0": text(s, ALL);
    strndup(s, n) b"strndup\0": text(s, n);
    wcsdup(s) b"wcsdup\0": NONE;
    vasprintf(out, format, arguments) b"vasprintf\0": NONE;
    vasprintf_checked(out, flag, format, arguments) b"__vasprintf_chk\0": NONE;
    realpath(path, resolved) b"realpath\0" b"GLIBC_2.3\0": NONE;
    realpath_checked(path, resolved, size) b"__realpath_chk\0": NONE;
    canonicalize_file_name(path) b"canonicalize_file_name\0": NONE;
    getcwd(buffer, size) b"getcwd\0": NONE;
    get_current_dir_name() b"get_current_dir_name\0": NONE;
    scandir(path, list, select, compare) b"scandir\0": NONE;
    scandir64(path, list, select, compare) b"scandir64\0": NONE;
    open_memstream(buffer, size) b"open_memstream\0": NONE;
    tempnam(directory, prefix) b"tempnam\0": NONE;
}

/// After a line was read into a buffer that the C library makes, or makes larger.
fn line_is_read(line: *const usize, pc: usize) {
    if let Some(me) = state::enter() {
        // SAFETY: the call has just filled the program's variable.
        made_inside(me, unsafe { *line }, pc);
        state::leave(me);
    }
}

pub unsafe extern "C-unwind" fn getline(line: usize, size: usize, file: usize, pc: usize) -> isize {
    streams::used(file, pc);
    // SAFETY: passed on.
    let result = unsafe { blocking::getline(line, size, file, pc) };
    line_is_read(line as *const usize, pc);
    result
}

pub unsafe extern "C-unwind" fn getdelim(line: usize, size: usize, end: usize, file: usize, pc: usize) -> isize {
    // SAFETY: passed on.
    let result = unsafe { blocking::getdelim(line, size, end, file, pc) };
    line_is_read(line as *const usize, pc);
    result
}

/// Variadic functions: the arguments become a `va_list`, as the ABI lays it out, and `$target` takes that instead, as its
/// argument in `$list`, and the return address in `$pc`. `$named` is how many bytes of registers the named arguments take.
macro_rules! variadic {
    ($($name:ident $named:literal $list:literal $pc:literal => $target:ident;)*) => {
        $(
            const _: () = {
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name() {
                    std::arch::naked_asm!(
                        "push rbp", "mov rbp, rsp", "sub rsp, 208",
                        "mov [rsp], rdi", "mov [rsp + 8], rsi", "mov [rsp + 16], rdx",
                        "mov [rsp + 24], rcx", "mov [rsp + 32], r8", "mov [rsp + 40], r9",
                        "movups [rsp + 48], xmm0", "movups [rsp + 64], xmm1", "movups [rsp + 80], xmm2",
                        "movups [rsp + 96], xmm3", "movups [rsp + 112], xmm4", "movups [rsp + 128], xmm5",
                        "movups [rsp + 144], xmm6", "movups [rsp + 160], xmm7",
                        concat!("mov dword ptr [rsp + 176], ", $named), "mov dword ptr [rsp + 180], 48",
                        "lea rax, [rbp + 16]", "mov [rsp + 184], rax", "mov [rsp + 192], rsp",
                        concat!("lea ", $list, ", [rsp + 176]"), concat!("mov ", $pc, ", [rbp + 8]"),
                        "call {target}",
                        "mov rsp, rbp", "pop rbp", "ret",
                        target = sym self::$target,
                    );
                }
            };
        )*
    };
}

variadic! {
    asprintf "16" "rdx" "rcx" => vasprintf;
    __asprintf_chk "24" "rcx" "r8" => vasprintf_checked;
}

entry! {
    strdup(1) => strdup;
    __strdup(1) => strdup;
    strndup(2) => strndup;
    wcsdup(1) => wcsdup;
    vasprintf(3) => vasprintf;
    __vasprintf_chk(4) => vasprintf_checked;
    realpath(2) => realpath;
    __realpath_chk(3) => realpath_checked;
    canonicalize_file_name(1) => canonicalize_file_name;
    getcwd(2) => getcwd;
    get_current_dir_name(0) => get_current_dir_name;
    scandir(4) => scandir;
    scandir64(4) => scandir64;
    open_memstream(2) => open_memstream;
    tempnam(2) => tempnam;
    getline(3) => getline;
    getdelim(4) => getdelim;
    __getdelim(4) => getdelim;
}
