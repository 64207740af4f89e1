//! Whether a system call would block: the kernel is asked, without waiting.
//!
//! A call that would not block is performed with the token, at once. One that would waits in the scheduler, like a lock, until
//! others have made it possible ([`Wait::Ready`](crate::state::Wait)). So what calls return depends on the schedule alone, as long as
//! the program talks to itself, and a schedule that wants a call which cannot return is known to be impossible at once. Only where
//! nobody else can go on, and somebody outside of the process may make it possible, does a thread really wait in the kernel.

use crate::channels::{self, FIFO, SOCKET, examine};
use crate::outside::{self, OtherEnd};
use crate::state::Thread;
use crate::{process, sys};

pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;
const POLLRDHUP: i16 = 0x2000;
const FIONREAD: usize = 0x541B;
/// Descriptors that `select` can name.
const SELECTED: usize = 1024;

/// What a thread wants to know before its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Question {
    #[default]
    Nothing,
    /// Whether a descriptor is ready for this; a stream that is read, with so many bytes.
    One { fd: i32, events: i16, least: u32 },
    /// Whether an instance of epoll has something to tell.
    Epoll(i32),
    /// The same of the program's array of `pollfd`.
    Many { at: usize, count: usize },
    /// Of the sets of `select`.
    Sets { at: [usize; 3], count: usize },
    /// Whether one of these signals waits to be taken.
    Signals(u64),
}

impl Question {
    /// Whether a handler of a signal ends the call, also one that wants calls to go on.
    pub fn is_always_interrupted(self) -> bool {
        !matches!(self, Question::One { .. } | Question::Nothing)
    }
    /// Whether the call that asks this is waited for by a call of `poll` in its place.
    pub fn is_simple(self) -> bool {
        matches!(self, Question::One { least: 0, .. })
    }
}

/// The kernel's `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PollFd {
    pub fd: i32,
    pub events: i16,
    pub result: i16,
}

/// What `poll` says of a descriptor, at once: 0 if it is not ready.
fn look_at(fd: i32, events: i16) -> i16 {
    let mut asked = PollFd { fd, events, result: 0 };
    // SAFETY: one descriptor, which the kernel fills; no time.
    match unsafe { sys::call3(sys::SYS_POLL, &raw mut asked as usize, 1, 0) } {
        0 => 0,
        // What cannot be asked fails in the call, too.
        result if result < 0 => events,
        _ => asked.result,
    }
}

/// Whether a thread's call would not block.
pub fn is_ready(who: &Thread) -> bool {
    match who.asks {
        Question::Nothing => true,
        Question::One { fd, events, least: 0 } => look_at(fd, events) != 0,
        Question::One { fd, events, least } => match look_at(fd, events | POLLRDHUP) {
            0 => false,
            // There is something, but is there enough? What ended or failed gives no more.
            found if found == events => bytes_in(fd) >= least as usize,
            _ => true,
        },
        Question::Epoll(fd) => look_at(fd, POLLIN) != 0,
        // SAFETY: the program's array, which the kernel fills; no time.
        Question::Many { at, count } => unsafe { sys::call3(sys::SYS_POLL, at, count, 0) != 0 },
        Question::Sets { at, count } => selects(at, count),
        Question::Signals(set) => process::waiting_signals(who.tid) & set != 0,
    }
}

/// Bytes that a read would give.
fn bytes_in(fd: i32) -> usize {
    let mut found = 0i32;
    // SAFETY: the kernel fills the number.
    match unsafe { sys::call3(sys::SYS_IOCTL, fd as usize, FIONREAD, &raw mut found as usize) } {
        0 => usize::try_from(found).unwrap_or(0),
        _ => usize::MAX,
    }
}

/// Whether `select` would return at once; the program's sets stay as they are.
fn selects(at: [usize; 3], count: usize) -> bool {
    let mut sets = [[0u64; SELECTED / 64]; 3];
    let words = count.min(SELECTED).div_ceil(64);
    let mut copies = [0; 3];
    for ((from, to), copy) in at.iter().zip(&mut sets).zip(&mut copies) {
        if *from != 0 {
            // SAFETY: the program's set, which has whole words.
            unsafe { sys::copy_up(to.as_mut_ptr().cast(), *from as *const u8, words * 8) };
            *copy = to.as_mut_ptr() as usize;
        }
    }
    let at_once = [0u64; 2];
    let [reads, writes, errors] = copies;
    // SAFETY: sets and a time of our own.
    unsafe { sys::call(sys::SYS_SELECT, count, reads, writes, errors, &raw const at_once as usize, 0) != 0 }
}

/// Whether `select` can be asked so.
pub fn can_select(count: usize) -> bool {
    count <= SELECTED
}

/// Each descriptor that a thread's call waits for, until `found` says yes.
fn any(question: Question, found: &mut dyn FnMut(i32) -> bool) -> bool {
    match question {
        Question::Nothing | Question::Signals(_) => false,
        Question::One { fd, .. } => found(fd),
        Question::Epoll(fd) => any_in_epoll(fd, found),
        Question::Many { at, count } => (0..count).any(|i| {
            // SAFETY: the program's array, as long as the program says.
            let fd = unsafe { (*(at as *const PollFd).add(i)).fd };
            fd >= 0 && found(fd)
        }),
        Question::Sets { at, count } => (0..count.min(SELECTED)).any(|fd| {
            // SAFETY: the program's sets, which have whole words.
            let is_in = |set: &usize| *set != 0 && unsafe { *(*set as *const u64).add(fd / 64) } >> (fd % 64) & 1 != 0;
            at.iter().any(is_in) && found(fd as i32)
        }),
    }
}

/// The descriptors that an instance of epoll looks at, as /proc says: lines of `tfd: 5 events: …`.
fn any_in_epoll(fd: i32, found: &mut dyn FnMut(i32) -> bool) -> bool {
    const BEFORE: &[u8] = b"/proc/self/fdinfo/";
    let (mut path, mut text) = ([0u8; 40], [0u8; 4096]);
    path[..BEFORE.len()].copy_from_slice(BEFORE);
    let end = BEFORE.len() + process::digits(fd as u32, &mut path[BEFORE.len()..]);
    let filled = sys::read_file(&path[..=end], &mut text);
    if filled == text.len() {
        // More than is read here.
        return true;
    }
    text[..filled].split(|&byte| byte == b'\n').filter_map(|line| line.strip_prefix(b"tfd:")).any(|line| {
        let digits = line.iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
        found(digits.fold(0, |so_far, digit| so_far * 10 + i32::from(digit - b'0')))
    })
}

/// Who may make a call possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Threads of this process alone.
    Inside,
    /// Somebody else, as far as is known.
    Outside,
    /// Somebody has done so already: what was sent has only to arrive.
    InFlight,
}

/// Who may make a thread's call possible. `alone`: nobody else did when the program was recorded.
pub fn source(who: &Thread, alone: bool) -> Source {
    let mut found = Source::Inside;
    match who.asks {
        Question::Nothing => {}
        Question::Signals(_) if !alone => found = Source::Outside,
        Question::Signals(_) => {}
        question => {
            any(question, &mut |fd| {
                found = found.max(source_of(fd as usize, alone));
                false
            });
        }
    }
    if found == Source::InFlight && !arrives(who) {
        found = Source::Inside;
    }
    // Children have what their parent had open.
    if found == Source::Inside && sys::has_children() { Source::Outside } else { found }
}

/// Whether what seems to be on its way comes: what has been received, but is not acknowledged yet, looks the same to its sender (for
/// 40 ms, and more), and nothing takes long that does not leave the machine.
fn arrives(who: &Thread) -> bool {
    const MILLISECONDS: usize = 3;
    let pause = |for_long: usize| {
        // SAFETY: no descriptors, only time.
        unsafe { sys::call3(sys::SYS_POLL, 0, 0, for_long) };
    };
    (0..=MILLISECONDS).any(|nth| {
        pause(nth.min(1));
        is_ready(who)
    })
}

fn source_of(fd: usize, alone: bool) -> Source {
    match examine(fd).0 {
        SOCKET => match outside::other_end(fd) {
            OtherEnd::Here => Source::Inside,
            OtherEnd::Elsewhere => Source::Outside,
            OtherEnd::InFlight => Source::InFlight,
            OtherEnd::Anybody if outside::connections_to_come() => Source::InFlight,
            OtherEnd::Anybody if alone => Source::Inside,
            OtherEnd::Anybody => Source::Outside,
        },
        FIFO | 0 if channels::of(fd).is_some() => Source::Inside,
        // What an instance of epoll looks at, if it is itself looked at, is not asked for.
        _ => Source::Outside,
    }
}
