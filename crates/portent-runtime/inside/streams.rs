//! Streams of the C library (`FILE`) that one thread closes while another uses them, or before.
//!
//! Each call locks its stream, so two of them do not race. But `fclose` frees the stream: to use it is a read of that memory,
//! which no more needs to be in any order than the memory's own accesses do. The three standard streams are never freed.
//! What is read and written is told by [`crate::libc_memory`] and [`crate::blocking`].

use crate::entry::entry;
use crate::objects;
use crate::real::{Ptr, Real};
use crate::state;

/// A stream is about to be used.
pub fn used(file: usize, pc: usize) {
    if file != 0
        && let Some(me) = state::enter()
    {
        objects::about_to_use(me, file, pc);
        state::leave(me);
    }
}

/// Functions that are passed on: `$file` among their arguments is the stream.
macro_rules! on_streams {
    ($($name:ident($($arg:ident),*) on $file:ident;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* pc: usize) -> usize {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new(concat!(stringify!($name), "\0").as_bytes());
                used($file, pc);
                type Function = unsafe extern "C-unwind" fn($(on_streams!(@type $arg)),*) -> usize;
                // SAFETY: the C library's function, with its own arguments.
                unsafe { std::mem::transmute::<Ptr, Function>(REAL.required())($($arg),*) }
            }
        )*
    };
    (@type $arg:ident) => { usize };
}

on_streams! {
    fputc(byte, file) on file;
    putc(byte, file) on file;
    vfprintf(file, format, arguments) on file;
    fseek(file, offset, whence) on file;
    fseeko(file, offset, whence) on file;
    ftell(file) on file;
    ftello(file) on file;
    rewind(file) on file;
    feof(file) on file;
    ferror(file) on file;
    clearerr(file) on file;
    ungetc(byte, file) on file;
    setvbuf(file, buffer, mode, size) on file;
}

entry! {
    fputc(2) => fputc;
    putc(2) => putc;
    vfprintf(3) => vfprintf;
    fseek(3) => fseek;
    fseeko(3) => fseeko;
    ftell(1) => ftell;
    ftello(1) => ftello;
    rewind(1) => rewind;
    feof(1) => feof;
    ferror(1) => ferror;
    clearerr(1) => clearerr;
    ungetc(2) => ungetc;
    setvbuf(4) => setvbuf;
}
