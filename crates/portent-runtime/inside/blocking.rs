//! System calls that may block.
//!
//! What is sent and received orders threads: see [`crate::channels`].
//!
//! Where the kernel says whether a call would block ([`crate::readiness`]), its thread waits in the scheduler until it would not, and
//! then the call happens with the token, directly before the event that stands for it: so the kernel sees the calls in the recorded
//! order, and what they return in a replay is what they returned before. A time-out passes in virtual time, like that of a condition.
//! In all other calls the token is given away, and their return is an event, so that the schedule says when it happened.

use crate::blocks::Family;
use crate::channels::{self, DEVICE, FIFO, SOCKET, examine, register};
use crate::entry::entry;
use crate::log::{call, op};
use crate::real::{Ptr, Real};
use crate::state::{self, Thread};
use crate::waits::{self, Call, at_once, away};
use crate::{access, answers, descriptors, heap, outside, record, streams, sys};

const F_GETFL: usize = 3;
/// `recvmsg` is to fill all parts.
const WAITALL: usize = 0x100;

/// Whether a descriptor leads to a device, such as the one for random numbers.
pub fn is_device(fd: i32) -> bool {
    fd > 2 && examine(fd as usize).0 == DEVICE
}

/// Before something is sent.
fn sends(me: &mut Thread, fd: usize, pc: usize) {
    if let Some(at) = channels::of(fd) {
        channels::send(me, at, pc);
    }
}

/// After something was received.
fn received(me: &mut Thread, fd: usize, pc: usize) {
    if let Some(at) = channels::of_received(fd) {
        channels::receive(me, at, pc);
    }
}

/// What a call does to the program's memory and to channels.
#[derive(Clone, Copy)]
enum Does {
    Nothing,
    /// `write`: like `Sends`, with the token where that cannot block.
    Writes,
    /// Reads the buffer (argument 1, of the size in argument 2) and sends on the descriptor.
    Sends,
    /// Sends on the descriptor, from buffers (`iovec`) that are not looked at.
    SendsParts,
    /// The same from a message (argument 1, flags in argument 2).
    SendsMessage,
    /// `eventfd_write`
    SendsCount,
    /// The same, nobody knows how much.
    SendsMany,
    /// `read`: like `Receives`, with the token.
    Reads,
    /// Fills the buffer and receives from the descriptor.
    Receives,
    /// The same for several buffers (`iovec`: argument 1, of the count in argument 2).
    ReceivesParts,
    /// Fills a number from an event counter.
    Counts,
    /// Receives from any channel: it waits for descriptors to become ready, in milliseconds.
    Polls,
    /// The same for `ppoll`.
    PollsExactly,
    /// `select`
    Selects,
    /// `pselect`
    SelectsExactly,
    /// `epoll_wait`
    Awaits,
    /// Receives from any channel, without the token.
    ReceivesAny,
    /// `accept`: the same, and its result is a connection.
    Accepts,
    /// `recvmsg`: the same, and it receives something.
    ReceivesMessage,
    /// Makes a connection that somebody accepts: sends, and receives what was sent before its address was listened on.
    Connects,
    /// `shutdown`, `listen`: what others then see at the other end, they see after it. Does not block.
    Closes,
    /// Takes a signal: its number is the result.
    TakesSignal,
    /// `sigwait`: its number goes to argument 1.
    TakesSignalInto,
}

macro_rules! calls {
    ($($name:ident($($arg:ident),*) $symbol:literal $does:ident;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* pc: usize) -> isize {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                type Call = unsafe extern "C-unwind" fn($(calls!(@type $arg)),*) -> isize;
                // SAFETY: the C library's function, with its own arguments.
                let real = || unsafe { std::mem::transmute::<Ptr, Call>(REAL.required())($($arg),*) };
                let Some(me) = state::enter() else { return real() };
                let arguments = calls!(@all [] $($arg),*);
                descriptors::begins(me, stringify!($name), arguments[0], pc);
                let result = perform(me, Does::$does, arguments, pc, real);
                descriptors::ends(me, result as i32, pc);
                state::leave(me);
                result
            }
        )*
    };
    (@type $arg:ident) => { usize };
    (@all []) => { [0; 6] };
    (@all [] $a:ident) => { [$a, 0, 0, 0, 0, 0] };
    (@all [] $a:ident, $b:ident) => { [$a, $b, 0, 0, 0, 0] };
    (@all [] $a:ident, $b:ident, $c:ident) => { [$a, $b, $c, 0, 0, 0] };
    (@all [] $a:ident, $b:ident, $c:ident, $d:ident) => { [$a, $b, $c, $d, 0, 0] };
    (@all [] $a:ident, $b:ident, $c:ident, $d:ident, $e:ident) => { [$a, $b, $c, $d, $e, 0] };
    (@all [] $a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident) => { [$a, $b, $c, $d, $e, $f] };
}

/// `close`, and who else uses the descriptor.
pub unsafe extern "C-unwind" fn close_watched(fd: usize, pc: usize) -> isize {
    let descriptor = fd as u32 as usize;
    descriptors::closing(descriptor, pc);
    // SAFETY: passed on.
    let result = unsafe { close(fd, pc) };
    if result as i32 == 0 {
        descriptors::closed(descriptor, pc);
    }
    result
}

/// A call that may block and has nothing to do with channels.
pub fn plain_call(me: &mut Thread, pc: usize, real: impl FnOnce() -> isize) -> isize {
    if waits::is_interrupted(me, false, pc) {
        return sys::fail(sys::EINTR) as isize;
    }
    let result = away(me, pc, real);
    waits::returned(me, call::ANY, pc);
    result
}

fn perform(me: &mut Thread, does: Does, arguments: [usize; 6], pc: usize, real: impl Fn() -> isize) -> isize {
    let [fd, buffer, size, ..] = arguments;
    if let Does::Sends | Does::Writes = does
        && size > 0
        && buffer != 0
    {
        access::read(me, op::READ, buffer, size, pc);
    }
    if let Does::Sends | Does::SendsParts | Does::SendsMessage | Does::SendsCount | Does::SendsMany | Does::Writes =
        does
    {
        sends(me, fd, pc);
    }
    if let Does::Connects = does
        && channels::of(fd).is_some()
    {
        channels::send(me, channels::SOCKETS, pc);
    }
    if let Does::Closes = does {
        closes(me, fd, pc);
        return at_once(me, real);
    }
    let result = match does {
        Does::Connects => waits::connect(me, fd, pc, &real),
        _ => waits::perform(me, how(does, &arguments), pc, &real),
    };
    if (result as i32) < 0 {
        return result;
    }
    match does {
        Does::Receives | Does::Reads => {
            if result > 0 && is_device(fd as i32) {
                // SAFETY: the call has filled so many bytes.
                answers::from_device(
                    me,
                    unsafe { std::slice::from_raw_parts_mut(buffer as *mut u8, result as usize) },
                    pc,
                );
            }
            if result > 0 && examine(fd).0 == SOCKET {
                outside::received(fd, pc);
            }
            received(me, fd, pc);
            if result > 0 && buffer != 0 {
                access::write(me, op::WRITE, buffer, (result as usize).min(size), pc);
                record::read_back(me);
            }
        }
        Does::ReceivesParts => {
            if result > 0 {
                outside::received(fd, pc);
            }
            received(me, fd, pc);
            let mut left = result as usize;
            for at in 0..size {
                // SAFETY: the call has read the program's array and filled the buffers.
                let [start, length] = unsafe { *(buffer as *const [usize; 2]).add(at) };
                let filled = length.min(left);
                if filled > 0 {
                    access::write(me, op::WRITE, start, filled, pc);
                    record::read_back(me);
                }
                left -= filled;
            }
        }
        Does::ReceivesMessage => {
            if result > 0 {
                outside::received(fd, pc);
            }
            channels::receive_everything(me, pc);
        }
        Does::Counts => received(me, fd, pc),
        Does::Polls | Does::PollsExactly | Does::Selects | Does::SelectsExactly | Does::Awaits | Does::ReceivesAny => {
            channels::receive_everything(me, pc);
        }
        Does::Accepts => {
            outside::accepted(result as usize, pc);
            // Who connects says so before it is a connection.
            channels::receive(me, channels::SOCKETS, pc);
        }
        Does::Connects => {
            outside::connected(fd);
            // So does who listens.
            channels::receive(me, channels::SOCKETS, pc);
        }
        Does::TakesSignal if result > 0 => took(me, result as i32, pc),
        // SAFETY: the call has put the number there.
        Does::TakesSignalInto if result == 0 => took(me, unsafe { *(buffer as *const i32) }, pc),
        _ => {}
    }
    result
}

/// How a call is made: what it waits for, and for how long.
fn how(does: Does, arguments: &[usize; 6]) -> Call {
    let &[fd, buffer, size, fourth, fifth, sixth] = arguments;
    match does {
        Does::Reads | Does::ReceivesParts | Does::Counts => Call::reads(fd, 0, 0),
        Does::Receives => Call::reads(fd, size, fourth),
        Does::ReceivesMessage if size & WAITALL == 0 => Call::reads(fd, 0, size),
        // The number of the connection must not depend on when the kernel is entered, while others open descriptors.
        Does::Accepts => Call::reads(fd, 0, 0),
        Does::Writes => Call::writes(fd, size, 0, 0),
        Does::Sends => Call::writes(fd, size, fourth, fifth),
        Does::SendsCount => Call::writes(fd, 8, 0, 0),
        // SAFETY: what the program passes to the kernel.
        Does::SendsParts => Call::writes(fd, unsafe { size_of_parts(buffer, size) }, 0, 0),
        // SAFETY: as above.
        Does::SendsMessage => unsafe { of_message(buffer as *const usize) }
            .map_or(Call::AWAY, |(bytes, address)| Call::writes(fd, bytes, size, address)),
        Does::Polls => Call::polls(fd, buffer, size as i32),
        Does::PollsExactly => Call::polls_exactly(fd, buffer, size, fourth),
        Does::Selects => Call::selects(fd, [buffer, size, fourth], fifth, 1000, 0),
        Does::SelectsExactly => Call::selects(fd, [buffer, size, fourth], fifth, 1, sixth),
        Does::Awaits => Call::awaits(fd, fourth as i32, fifth),
        Does::TakesSignal => Call::takes(fd, buffer, 0, size),
        Does::TakesSignalInto => Call::takes(fd, 0, buffer, 0),
        _ => Call::AWAY,
    }
}

/// Bytes in an array of parts.
unsafe fn size_of_parts(parts: usize, count: usize) -> usize {
    const MOST: usize = 1024;
    if parts == 0 {
        return 0;
    }
    // SAFETY: as the caller says.
    (0..count.min(MOST)).map(|at| unsafe { (*(parts as *const [usize; 2]).add(at))[1] }).fold(0, usize::saturating_add)
}

/// Bytes in a message, and its address: name, its length, parts and their number are the first words of a `msghdr`.
unsafe fn of_message(message: *const usize) -> Option<(usize, usize)> {
    // SAFETY: as the caller says.
    (!message.is_null()).then(|| unsafe { (size_of_parts(*message.add(2), *message.add(3)), *message) })
}

/// A signal was taken: whoever sent it has come so far.
fn took(me: &mut Thread, signal: i32, pc: usize) {
    if (1..=64).contains(&signal) {
        channels::receive(me, signal as usize, pc);
    }
}

/// Before a descriptor is closed: whoever reads at the other end sees that.
fn closes(me: &mut Thread, fd: usize, pc: usize) {
    if can_send(fd) {
        sends(me, fd, pc);
    }
}

/// Whether somebody may read at the other end of what a descriptor leads to.
fn can_send(fd: usize) -> bool {
    const ACCESS: usize = 3;
    // SAFETY: a question about the descriptor.
    let flags = unsafe { sys::call3(sys::SYS_FCNTL, fd, F_GETFL, 0) };
    flags >= 0 && flags as usize & ACCESS != 0
}

/// Functions that make channels; `$made` says where the new descriptors are.
macro_rules! makers {
    ($($name:ident($($arg:ident),*) $symbol:literal: |$result:ident| $made:expr;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* _pc: usize) -> i32 {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                type Make = unsafe extern "C-unwind" fn($(makers!(@type $arg)),*) -> i32;
                // SAFETY: the C library's function, with its own arguments.
                let $result = unsafe { std::mem::transmute::<Ptr, Make>(REAL.required())($($arg),*) };
                if $result >= 0 && let Some(me) = state::enter() {
                    register($made as usize);
                    state::leave(me);
                }
                $result
            }
        )*
    };
    (@type $arg:ident) => { usize };
}

makers! {
    // SAFETY: the call has filled the program's array.
    pipe(ends) b"pipe\0": |_result| unsafe { *(ends as *const i32) };
    // SAFETY: as above.
    pipe2(ends, flags) b"pipe2\0": |_result| unsafe { *(ends as *const i32) };
    eventfd(count, flags) b"eventfd\0": |result| result;
}

calls! {
    read(fd, buffer, size) b"read\0" Reads;
    write(fd, buffer, size) b"write\0" Writes;
    recv(fd, buffer, size, flags) b"recv\0" Receives;
    send(fd, buffer, size, flags) b"send\0" Sends;
    readv(fd, parts, count) b"readv\0" ReceivesParts;
    writev(fd, parts, count) b"writev\0" SendsParts;
    recvfrom(fd, buffer, size, flags, address, length) b"recvfrom\0" Receives;
    sendto(fd, buffer, size, flags, address, length) b"sendto\0" Sends;
    recvmsg(fd, message, flags) b"recvmsg\0" ReceivesMessage;
    sendmsg(fd, message, flags) b"sendmsg\0" SendsMessage;
    recvmmsg(fd, messages, count, flags, time) b"recvmmsg\0" ReceivesAny;
    sendmmsg(fd, messages, count, flags) b"sendmmsg\0" SendsMany;
    eventfd_write(fd, value) b"eventfd_write\0" SendsCount;
    accept(fd, address, size) b"accept\0" Accepts;
    accept4(fd, address, size, flags) b"accept4\0" Accepts;
    connect(fd, address, size) b"connect\0" Connects;
    listen(fd, backlog) b"listen\0" Closes;
    close(fd) b"close\0" Closes;
    shutdown(fd, how) b"shutdown\0" Closes;
    poll(fds, count, time) b"poll\0" Polls;
    ppoll(fds, count, time, mask) b"ppoll\0" PollsExactly;
    select(count, reads, writes, errors, time) b"select\0" Selects;
    pselect(count, reads, writes, errors, time, mask) b"pselect\0" SelectsExactly;
    epoll_wait(fd, events, count, time) b"epoll_wait\0" Awaits;
    epoll_pwait(fd, events, count, time, mask) b"epoll_pwait\0" Awaits;
    eventfd_read(fd, value) b"eventfd_read\0" Counts;
    system(command) b"system\0" Nothing;
    pause() b"pause\0" Nothing;
    sigwait(set, signal) b"sigwait\0" TakesSignalInto;
    sigwaitinfo(set, information) b"sigwaitinfo\0" TakesSignal;
    sigtimedwait(set, information, time) b"sigtimedwait\0" TakesSignal;
    sigsuspend(set) b"sigsuspend\0" Nothing;
    flock(fd, operation) b"flock\0" Nothing;
    getline(line, size, file) b"getline\0" Nothing;
    getchar() b"getchar\0" Nothing;
    fgetc(file) b"fgetc\0" Nothing;
    getc(file) b"getc\0" Nothing;
    getdelim(line, size, end, file) b"getdelim\0" Nothing;
    tcdrain(fd) b"tcdrain\0" Nothing;
    msgrcv(queue, message, size, kind) b"msgrcv\0" ReceivesAny;
    semop(set, operations, count) b"semop\0" ReceivesAny;
}

/// Whether a raw system call may block: reads, writes, polls, waits and sleeps that go past the C library's functions.
pub fn may_block(n: i64) -> bool {
    matches!(n, 0 | 1 | 7 | 17..=20 | 23 | 34 | 35 | 42..=47 | 61 | 65 | 70 | 73 | 128 | 130 | 202 | 220 | 230 | 232 | 247 | 270 | 271 | 281 | 288)
}

/// Functions of six arguments: no register is left for the return address, so the site is not known.
macro_rules! six {
    ($($name:ident)*) => {
        $(
            const _: () = {
                #[unsafe(no_mangle)]
                pub unsafe extern "C-unwind" fn $name(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
                    // SAFETY: passed on.
                    unsafe { self::$name(a, b, c, d, e, f, 0) }
                }
            };
        )*
    };
}

six! { recvfrom sendto pselect }

/// Reads from a stream: the token is given away where the other end may take its time, a pipe, a socket, standard input.
pub fn from_stream(file: usize, pc: usize, real: impl FnOnce() -> usize) -> usize {
    streams::used(file, pc);
    let fd = descriptor(file);
    let waits = fd == 0 || (fd > 0 && matches!(examine(fd as usize).0, FIFO | SOCKET));
    match waits.then(state::enter).flatten() {
        None => real(),
        Some(me) => {
            let result = plain_call(me, pc, || real() as isize);
            if fd > 0 {
                received(me, fd as usize, pc);
            }
            state::leave(me);
            result as usize
        }
    }
}

/// Functions that write what a stream has gathered.
macro_rules! flushes {
    ($($name:ident $symbol:literal;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name(file: usize, pc: usize) -> i32 {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                streams::used(file, pc);
                let fd = if file == 0 { -1 } else { descriptor(file) };
                if fd > 2 && let Some(me) = state::enter() {
                    sends(me, fd as usize, pc);
                    state::leave(me);
                }
                // SAFETY: the C library's function, with its own argument. What it frees, the program frees here.
                heap::on_behalf(pc, Family::Malloc, || unsafe {
                    std::mem::transmute::<Ptr, extern "C-unwind" fn(usize) -> i32>(REAL.required())(file)
                })
            }
        )*
    };
}

flushes! {
    fflush b"fflush\0";
    fclose b"fclose\0";
}

/// The descriptor of a stream; negative if it has none.
pub fn descriptor(file: usize) -> i32 {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"fileno\0");
    // SAFETY: the C library's function; this thread's errno, which the question must not change.
    unsafe {
        let error = *sys::__errno_location();
        let fd = std::mem::transmute::<Ptr, extern "C" fn(usize) -> i32>(REAL.required())(file);
        *sys::__errno_location() = error;
        fd
    }
}

entry! {
    pipe(1) => pipe;
    pipe2(2) => pipe2;
    eventfd(2) => eventfd;
    read(3) => read;
    write(3) => write;
    recv(4) => recv;
    send(4) => send;
    readv(3) => readv;
    writev(3) => writev;
    recvmsg(3) => recvmsg;
    sendmsg(3) => sendmsg;
    recvmmsg(5) => recvmmsg;
    sendmmsg(4) => sendmmsg;
    eventfd_write(2) => eventfd_write;
    accept(3) => accept;
    accept4(4) => accept4;
    connect(3) => connect;
    listen(2) => listen;
    close(1) => close_watched;
    shutdown(2) => shutdown;
    poll(3) => poll;
    ppoll(4) => ppoll;
    select(5) => select;
    epoll_wait(4) => epoll_wait;
    epoll_pwait(5) => epoll_pwait;
    eventfd_read(2) => eventfd_read;
    system(1) => system;
    pause(0) => pause;
    sigwait(2) => sigwait;
    sigwaitinfo(2) => sigwaitinfo;
    sigtimedwait(3) => sigtimedwait;
    sigsuspend(1) => sigsuspend;
    flock(2) => flock;
    fflush(1) => fflush;
    fclose(1) => fclose;
    getchar(0) => getchar;
    fgetc(1) => fgetc;
    getc(1) => getc;
    tcdrain(1) => tcdrain;
    msgrcv(4) => msgrcv;
    semop(3) => semop;
}
