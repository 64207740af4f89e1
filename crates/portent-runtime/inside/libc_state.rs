//! Functions of the C library that keep something between calls, or return memory of the library's own: two threads that use
//! them race, though neither touches anything of the program's.
//!
//! | what | who uses it |
//! |---|---|
//! | `strtok()'s position` | `strtok` |
//! | `localtime()'s result` | `localtime`, `gmtime`, `ctime`; and the program, which reads it |
//! | `asctime()'s result` | `asctime`, `ctime` |
//! | `the environment` | `getenv` reads it, `setenv`, `putenv`, `unsetenv` and `clearenv` write it |
//! | `getpwnam()'s result` and the like | `getpwnam`, `getpwuid`; `getgrnam`, `getgrgid`; `gethostbyname` |
//!
//! Results that can be found before the call, those of times, are accesses of that memory; of what cannot, a word here
//! stands for it. Not looked at: what is thread-local in glibc (`strerror`, `inet_ntoa`), or has a lock there (`rand`).

use crate::entry::entry;
use crate::libc_memory::{NONE, touch};
use crate::log::{note, op};
use crate::real::{Ptr, Real};
use crate::state::{self, Thread};
use crate::{access, record};
use std::sync::atomic::{AtomicBool, Ordering};

/// So large that no value is recorded: what stands for something says nothing.
const WORD: usize = 16;

/// Something of the library's, with the word that stands for it.
struct Kept {
    name: &'static str,
    told: AtomicBool,
    /// Changes with what it stands for. Changed by the holder of the token only.
    word: std::cell::UnsafeCell<[usize; 2]>,
}

// SAFETY: only the holder of the token changes the word.
unsafe impl Sync for Kept {}

impl Kept {
    const fn new(name: &'static str) -> Kept {
        Kept { name, told: AtomicBool::new(false), word: std::cell::UnsafeCell::new([0; 2]) }
    }
    fn address(&self) -> usize {
        self.word.get() as usize
    }
    /// Says, once, what is at an address.
    fn tell(&self, address: usize, size: usize) {
        if !self.told.swap(true, Ordering::Relaxed) {
            record::told(note::NAMED, &[address as u64, size as u64], self.name.as_bytes());
        }
    }
    fn read(&self, me: &mut Thread, pc: usize) {
        self.tell(self.address(), WORD);
        access::read(me, op::READ, self.address(), WORD, pc);
    }
    fn write(&self, me: &mut Thread, pc: usize) {
        self.tell(self.address(), WORD);
        access::write(me, op::WRITE, self.address(), WORD, pc);
    }
    /// Something else is there from now on.
    fn changed(&self) {
        // SAFETY: the holder of the token.
        unsafe { (*self.word.get())[0] += 1 };
    }
}

static STRTOK: Kept = Kept::new("strtok()'s position");
static TIME: Kept = Kept::new("localtime()'s result");
static TIME_TEXT: Kept = Kept::new("asctime()'s result");
static ENVIRONMENT: Kept = Kept::new("the environment");
static USER: Kept = Kept::new("getpwnam()'s result");
static GROUP: Kept = Kept::new("getgrnam()'s result");
static HOST: Kept = Kept::new("gethostbyname()'s result");

/// `struct tm`
const TM: usize = 56;
/// What `asctime` makes of it, for years of four digits.
const TEXT: usize = 26;

/// The C library's function of a name.
macro_rules! real {
    ($name:ident($($arg:ident),*)) => {{
        #[unsafe(link_section = "portent_real")]
        static REAL: Real = Real::new(concat!(stringify!($name), "\0").as_bytes());
        type Function = unsafe extern "C-unwind" fn($(real!(@type $arg)),*) -> usize;
        // SAFETY: the C library's function; its arguments are passed on.
        unsafe { std::mem::transmute::<Ptr, Function>(REAL.required())($($arg),*) }
    }};
    (@type $arg:ident) => { usize };
}

/// Goes on where the last call ended: that is kept here, and `strtok_r` does the work.
pub unsafe extern "C-unwind" fn strtok(text: usize, delimiters: usize, pc: usize) -> usize {
    let me = state::enter();
    let mut position = 0;
    let at = &raw mut position as usize;
    let Some(me) = me else {
        // SAFETY: nobody but this thread is recorded, or nobody at all: as unsafe as the C library's.
        position = unsafe { (*STRTOK.word.get())[0] };
        let token = real!(strtok_r(text, delimiters, at));
        // SAFETY: as above.
        unsafe { (*STRTOK.word.get())[0] = position };
        return token;
    };
    if text == 0 {
        STRTOK.read(me, pc);
        // SAFETY: the holder of the token. What it sees is what is used, whoever comes in between.
        position = unsafe { (*STRTOK.word.get())[0] };
    }
    STRTOK.write(me, pc);
    let token = if text == 0 && position == 0 { 0 } else { real!(strtok_r(text, delimiters, at)) };
    // SAFETY: the holder of the token.
    unsafe { (*STRTOK.word.get())[0] = position };
    state::leave(me);
    token
}

/// Where times are broken down to, in the C library.
fn time_result() -> usize {
    static EPOCH: i64 = 0;
    // What is there is about to be overwritten, or nobody has got it yet.
    static AT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let known = AT.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let epoch = &raw const EPOCH as usize;
    let at = real!(gmtime(epoch));
    AT.store(at, Ordering::Relaxed);
    at
}

fn time_text() -> usize {
    static AT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let known = AT.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let when = [0u64; TM / 8];
    let when = &raw const when as usize;
    let at = real!(asctime(when));
    AT.store(at, Ordering::Relaxed);
    at
}

/// Before times are written to the library's memory.
fn writes_time(me: &mut Thread, breaks_down: bool, as_text: bool, pc: usize) {
    if breaks_down {
        TIME.tell(time_result(), TM);
        access::write(me, op::WRITE, time_result(), TM, pc);
    }
    if as_text {
        TIME_TEXT.tell(time_text(), TEXT);
        access::write(me, op::WRITE, time_text(), TEXT, pc);
    }
}

/// Functions of times that return memory of the library's: how much they read, whether they break a time down there, and
/// whether they write it as text.
macro_rules! times {
    ($($name:ident reads $size:expr, $breaks_down:literal, $as_text:literal;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name(time: usize, pc: usize) -> usize {
                let Some(me) = state::enter() else { return real!($name(time)) };
                access::read(me, op::READ, time, $size, pc);
                writes_time(me, $breaks_down, $as_text, pc);
                let result = real!($name(time));
                state::leave(me);
                result
            }
        )*
    };
}

times! {
    localtime reads 8, true, false;
    gmtime reads 8, true, false;
    ctime reads 8, true, true;
    asctime reads TM, false, true;
}

/// Functions of times that write to the program's memory: what they read, and what they write.
macro_rules! times_there {
    ($($name:ident: $read:expr, $written:expr;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name(time: usize, to: usize, pc: usize) -> usize {
                touch((time, $read), (to, $written), pc);
                real!($name(time, to))
            }
        )*
    };
}

times_there! {
    localtime_r: 8, TM;
    gmtime_r: 8, TM;
    ctime_r: 8, TEXT;
    asctime_r: TM, TEXT;
}

pub unsafe extern "C-unwind" fn mktime(time: usize, pc: usize) -> usize {
    touch((time, TM), (time, TM), pc);
    real!(mktime(time))
}

pub unsafe extern "C-unwind" fn timegm(time: usize, pc: usize) -> usize {
    touch((time, TM), (time, TM), pc);
    real!(timegm(time))
}

pub unsafe extern "C-unwind" fn strftime(to: usize, most: usize, format: usize, time: usize, pc: usize) -> usize {
    touch((time, TM), NONE, pc);
    if let Some(me) = state::enter() {
        access::write_text(me, to, most, pc);
        state::leave(me);
    }
    real!(strftime(to, most, format, time))
}

/// Functions that use something which only a word stands for.
macro_rules! uses {
    ($($name:ident($($arg:ident),*) $how:ident $kept:ident;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* pc: usize) -> usize {
                let Some(me) = state::enter() else { return real!($name($($arg),*)) };
                $kept.$how(me, pc);
                let result = real!($name($($arg),*));
                uses!(@$how $kept);
                state::leave(me);
                result
            }
        )*
    };
    (@read $kept:ident) => {};
    (@write $kept:ident) => { $kept.changed() };
}

uses! {
    getenv(name) read ENVIRONMENT;
    secure_getenv(name) read ENVIRONMENT;
    setenv(name, value, replaces) write ENVIRONMENT;
    putenv(text) write ENVIRONMENT;
    unsetenv(name) write ENVIRONMENT;
    clearenv() write ENVIRONMENT;
    getpwnam(name) write USER;
    getpwuid(id) write USER;
    getgrnam(name) write GROUP;
    getgrgid(id) write GROUP;
    gethostbyname(name) write HOST;
}

entry! {
    strtok(2) => strtok;
    localtime(1) => localtime;
    gmtime(1) => gmtime;
    ctime(1) => ctime;
    asctime(1) => asctime;
    localtime_r(2) => localtime_r;
    gmtime_r(2) => gmtime_r;
    ctime_r(2) => ctime_r;
    asctime_r(2) => asctime_r;
    mktime(1) => mktime;
    timegm(1) => timegm;
    strftime(4) => strftime;
    getenv(1) => getenv;
    secure_getenv(1) => secure_getenv;
    setenv(3) => setenv;
    putenv(1) => putenv;
    unsetenv(1) => unsetenv;
    clearenv(0) => clearenv;
    getpwnam(1) => getpwnam;
    getpwuid(1) => getpwuid;
    getgrnam(1) => getgrnam;
    getgrgid(1) => getgrgid;
    gethostbyname(1) => gethostbyname;
}
