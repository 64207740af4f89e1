//! Functions of the C library that read or write the program's memory: recorded as accesses of whole ranges.
//!
//! Only what is commonly used on shared memory. Everything else of the C library is not seen; a read that finds what an
//! unseen write left loses its value when the recording is converted.

use crate::entry::entry;
use crate::log::op;
use crate::real::{Ptr, Real};
use crate::state;
use crate::{access, answers, blocking, record, streams, sys};

/// Records a read and then a write, each of a range that may be empty.
pub fn touch(read: (usize, usize), write: (usize, usize), pc: usize) {
    if let Some(me) = state::enter() {
        let pc = access::caller(me, pc);
        if read.1 > 0 {
            access::read(me, op::READ, read.0, read.1, pc);
        }
        if write.1 > 0 {
            access::write(me, op::WRITE, write.0, write.1, pc);
        }
        state::leave(me);
    }
}

pub const NONE: (usize, usize) = (0, 0);

/// Bytes of a C string with its end; at most `most`.
pub fn text(at: usize, most: usize) -> (usize, usize) {
    if most == 0 || state::current().is_null() { (at, 0) } else { (at, record::text_size(at, most)) }
}

pub const ALL: usize = 1 << 40;

pub unsafe extern "C-unwind" fn memcpy(to: *mut u8, from: *const u8, size: usize, pc: usize) -> *mut u8 {
    touch((from as usize, size), (to as usize, size), pc);
    // SAFETY: as the caller's memcpy.
    unsafe { sys::copy_up(to, from, size) };
    to
}

pub unsafe extern "C-unwind" fn mempcpy(to: *mut u8, from: *const u8, size: usize, pc: usize) -> *mut u8 {
    // SAFETY: as the caller's mempcpy.
    unsafe { memcpy(to, from, size, pc).wrapping_add(size) }
}

pub unsafe extern "C-unwind" fn memmove(to: *mut u8, from: *const u8, size: usize, pc: usize) -> *mut u8 {
    touch((from as usize, size), (to as usize, size), pc);
    // SAFETY: as the caller's memmove.
    unsafe {
        if (to as usize).wrapping_sub(from as usize) >= size {
            sys::copy_up(to, from, size);
        } else {
            sys::copy_down(to, from, size);
        }
    }
    to
}

pub unsafe extern "C-unwind" fn memset(to: *mut u8, byte: i32, size: usize, pc: usize) -> *mut u8 {
    touch(NONE, (to as usize, size), pc);
    // SAFETY: as the caller's memset.
    unsafe { sys::fill(to, byte as u8, size) };
    to
}

/// Functions that are recorded and then passed on: `$before` gives what is read and what is written.
macro_rules! passed_on {
    (|$pc:ident| $($name:ident($($arg:ident),*) $symbol:literal: $before:expr;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* $pc: usize) -> usize {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                let (read, write): ((usize, usize), (usize, usize)) = $before;
                touch(read, write, $pc);
                type Function = unsafe extern "C-unwind" fn($(passed_on!(@ $arg)),*) -> usize;
                // SAFETY: the C library's function, with its own arguments.
                unsafe { std::mem::transmute::<Ptr, Function>(REAL.required())($($arg),*) }
            }
        )*
    };
    (@ $arg:ident) => { usize };
}

passed_on! {
    |pc|
    strlen(s) b"strlen\0": (text(s, ALL), NONE);
    strnlen(s, n) b"strnlen\0": (text(s, n), NONE);
    strcpy(to, from) b"strcpy\0": { let from = text(from, ALL); (from, (to, from.1)) };
    stpcpy(to, from) b"stpcpy\0": { let from = text(from, ALL); (from, (to, from.1)) };
    strncpy(to, from, n) b"strncpy\0": (text(from, n), (to, n));
    strchr(s, c) b"strchr\0": (text(s, ALL), NONE);
    strrchr(s, c) b"strrchr\0": (text(s, ALL), NONE);
    atoi(s) b"atoi\0": (text(s, ALL), NONE);
    atol(s) b"atol\0": (text(s, ALL), NONE);
    strtol(s, end, base) b"strtol\0": (text(s, ALL), NONE);
    strtoul(s, end, base) b"strtoul\0": (text(s, ALL), NONE);
    puts(s) b"puts\0": (text(s, ALL), NONE);
    fputs(s, file) b"fputs\0": { streams::used(file, pc); (text(s, ALL), NONE) };
    fwrite(from, size, n, file) b"fwrite\0": { streams::used(file, pc); ((from, size.wrapping_mul(n)), NONE) };
    memchr(s, c, n) b"memchr\0": ((s, n), NONE);
}

/// Two texts or ranges that are read.
fn touch_two(a: (usize, usize), b: (usize, usize), pc: usize) {
    touch(a, NONE, pc);
    touch(b, NONE, pc);
}

pub unsafe extern "C-unwind" fn strcmp(a: usize, b: usize, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"strcmp\0");
    touch_two(text(a, ALL), text(b, ALL), pc);
    // SAFETY: the C library's function.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(usize, usize) -> i32>(REAL.required())(a, b) }
}

pub unsafe extern "C-unwind" fn strncmp(a: usize, b: usize, n: usize, pc: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"strncmp\0");
    touch_two(text(a, n), text(b, n), pc);
    // SAFETY: the C library's function.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(usize, usize, usize) -> i32>(REAL.required())(a, b, n) }
}

pub unsafe extern "C-unwind" fn memcmp(a: *const u8, b: *const u8, n: usize, pc: usize) -> i32 {
    touch_two((a as usize, n), (b as usize, n), pc);
    let mut at = 0;
    while at < n {
        // SAFETY: as the caller's memcmp. Volatile, so that this does not become a call of memcmp.
        let (x, y) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
        at += 1;
    }
    0
}

pub unsafe extern "C-unwind" fn strcat(to: usize, from: usize, pc: usize) -> usize {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"strcat\0");
    let (there, added) = (text(to, ALL), text(from, ALL));
    touch_two(there, added, pc);
    touch(NONE, (to + there.1.saturating_sub(1), added.1), pc);
    // SAFETY: the C library's function.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(usize, usize) -> usize>(REAL.required())(to, from) }
}

pub unsafe extern "C-unwind" fn strncat(to: usize, from: usize, n: usize, pc: usize) -> usize {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"strncat\0");
    let (there, added) = (text(to, ALL), text(from, n));
    touch_two(there, added, pc);
    touch(NONE, (to + there.1.saturating_sub(1), added.1), pc);
    // SAFETY: the C library's function.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(usize, usize, usize) -> usize>(REAL.required())(to, from, n) }
}

pub unsafe extern "C-unwind" fn bzero(to: *mut u8, size: usize, pc: usize) {
    // SAFETY: as the caller's bzero.
    unsafe { memset(to, 0, size, pc) };
}

/// Reads and writes the elements it sorts; the comparisons are the program's own and recorded as such.
pub unsafe extern "C-unwind" fn qsort(base: usize, count: usize, size: usize, compare: usize, pc: usize) {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"qsort\0");
    let all = (base, count.wrapping_mul(size));
    touch(all, NONE, pc);
    // SAFETY: the C library's function.
    unsafe {
        std::mem::transmute::<Ptr, extern "C-unwind" fn(usize, usize, usize, usize)>(REAL.required())(
            base, count, size, compare,
        )
    };
    touch(NONE, all, pc);
}

pub unsafe extern "C-unwind" fn fread(to: usize, size: usize, count: usize, file: usize, pc: usize) -> usize {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"fread\0");
    // SAFETY: the C library's function.
    let got = blocking::from_stream(file, pc, || unsafe {
        std::mem::transmute::<Ptr, extern "C-unwind" fn(usize, usize, usize, usize) -> usize>(REAL.required())(
            to, size, count, file,
        )
    });
    let bytes = got.wrapping_mul(size);
    if bytes > 0
        && blocking::is_device(blocking::descriptor(file))
        && let Some(me) = state::enter()
    {
        // SAFETY: the call has filled so many bytes.
        answers::from_device(me, unsafe { std::slice::from_raw_parts_mut(to as *mut u8, bytes) }, pc);
        state::leave(me);
    }
    touch(NONE, (to, bytes), pc);
    got
}

pub unsafe extern "C-unwind" fn fgets(to: usize, most: i32, file: usize, pc: usize) -> usize {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"fgets\0");
    // SAFETY: the C library's function.
    let got = blocking::from_stream(file, pc, || unsafe {
        std::mem::transmute::<Ptr, extern "C-unwind" fn(usize, i32, usize) -> usize>(REAL.required())(to, most, file)
    });
    if got != 0 {
        touch(NONE, text(to, most.max(0) as usize), pc);
    }
    got
}

/// Before a function that writes a text of at most `most` bytes.
extern "C" fn text_is_written(to: usize, most: usize, pc: usize) {
    if let Some(me) = state::enter() {
        access::write_text(me, to, most, pc);
        state::leave(me);
    }
}

#[unsafe(link_section = "portent_real")]
static SNPRINTF: Real = Real::new(b"snprintf\0");
#[unsafe(link_section = "portent_real")]
static SPRINTF: Real = Real::new(b"sprintf\0");
#[unsafe(link_section = "portent_real")]
static FPRINTF: Real = Real::new(b"fprintf\0");

extern "C" fn before_snprintf(to: usize, most: usize, pc: usize) -> Ptr {
    text_is_written(to, most, pc);
    SNPRINTF.required()
}
extern "C" fn before_fprintf(file: usize, _format: usize, pc: usize) -> Ptr {
    streams::used(file, pc);
    FPRINTF.required()
}
extern "C" fn before_sprintf(to: usize, _format: usize, pc: usize) -> Ptr {
    text_is_written(to, ALL, pc);
    SPRINTF.required()
}

/// A variadic function: every argument register is kept, `$before` is called with the first two and the return address, and
/// the function that it returns is jumped to.
macro_rules! variadic {
    ($($name:ident => $before:ident;)*) => {
        $(
            const _: () = {
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name() {
                    std::arch::naked_asm!(
                        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                        "sub rsp, 128",
                        "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
                        "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
                        "mov rdx, [rsp + 184]",
                        "call {before}",
                        "mov r11, rax",
                        "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
                        "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]", "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
                        "add rsp, 128",
                        "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                        "jmp r11",
                        before = sym self::$before,
                    );
                }
            };
        )*
    };
}

variadic! {
    snprintf => before_snprintf;
    sprintf => before_sprintf;
    fprintf => before_fprintf;
}

entry! {
    memcpy(3) => memcpy;
    mempcpy(3) => mempcpy;
    memmove(3) => memmove;
    memset(3) => memset;
    __tsan_memcpy(3) => memcpy;
    __tsan_memmove(3) => memmove;
    __tsan_memset(3) => memset;
    memcmp(3) => memcmp;
    bcmp(3) => memcmp;
    bzero(2) => bzero;
    strncat(3) => strncat;
    memchr(3) => memchr;
    strlen(1) => strlen;
    strnlen(2) => strnlen;
    strcpy(2) => strcpy;
    stpcpy(2) => stpcpy;
    strncpy(3) => strncpy;
    strcat(2) => strcat;
    strcmp(2) => strcmp;
    strncmp(3) => strncmp;
    strchr(2) => strchr;
    strrchr(2) => strrchr;
    atoi(1) => atoi;
    atol(1) => atol;
    strtol(3) => strtol;
    strtoul(3) => strtoul;
    puts(1) => puts;
    fputs(2) => fputs;
    fwrite(4) => fwrite;
    fread(4) => fread;
    fgets(3) => fgets;
    qsort(4) => qsort;
}
