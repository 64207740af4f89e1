//! System calls that may block: the token is given away meanwhile.
//!
//! What threads tell each other through pipes, sockets and event counters orders them: every write sends a token, and a
//! read receives all tokens sent on its channel since the last read. A pipe is known by its inode; all sockets are taken
//! for one channel, which orders more than is needed and never less.

use crate::entry::entry;
use crate::log::op;
use crate::real::{Ptr, Real};
use crate::state::{self, Thread};
use crate::{access, record, sched, sys};

const MOST: usize = 1024;

/// A channel: its key, messages sent, messages received.
#[derive(Clone, Copy)]
struct Channel {
    key: u64,
    sent: u64,
    received: u64,
}

static mut CHANNELS: [Channel; MOST] = [Channel { key: 0, sent: 0, received: 0 }; MOST];

/// The channel behind a file descriptor; none for files and terminals, which order nothing.
fn channel(fd: usize) -> Option<&'static mut Channel> {
    const KIND: u32 = 0o170_000;
    let mut status = [0u64; 18];
    // SAFETY: the kernel fills the status: device, inode, links, mode, …
    if unsafe { sys::call3(sys::SYS_FSTAT, fd, status.as_mut_ptr() as usize, 0) } != 0 {
        return None;
    }
    let key = match status[3] as u32 & KIND {
        0o010_000 => status[1] << 2 | 1,
        0o140_000 => 2,
        // Event counters, timers and the like have no kind; their descriptors are not usually duplicated.
        0 => (fd as u64) << 2 | 3,
        _ => return None,
    };
    // SAFETY: the holder of the token, and never two of these at once.
    let channels = unsafe { &mut *&raw mut CHANNELS };
    let at = channels.iter().position(|channel| channel.key == key || channel.key == 0)?;
    channels[at].key = key;
    Some(&mut channels[at])
}

/// Before something is sent.
fn sends(me: &mut Thread, fd: usize, pc: usize) {
    if let Some(channel) = channel(fd) {
        let (key, number) = (channel.key, channel.sent);
        channel.sent += 1;
        sched::before(me, state::plain(op::SEND, key as usize, pc));
        record::valued(me, op::SEND, key as usize, number, pc);
    }
}

/// After something was received.
fn received(me: &mut Thread, fd: usize, pc: usize) {
    while let Some(channel) = channel(fd)
        && channel.received < channel.sent
    {
        let (key, number) = (channel.key, channel.received);
        channel.received += 1;
        sched::before(me, state::plain(op::RECEIVE, key as usize, pc));
        record::valued(me, op::RECEIVE, key as usize, number, pc);
    }
}

/// Does `work` without the token; `errno` stays as `work` left it.
fn away<T>(me: &mut Thread, pc: usize, work: impl FnOnce() -> T) -> T {
    sched::go_away(me, pc);
    let back = Back(me);
    let result = work();
    // SAFETY: this thread's errno.
    let error = unsafe { *sys::__errno_location() };
    sched::come_back(back.0);
    std::mem::forget(back);
    // SAFETY: as above.
    unsafe { *sys::__errno_location() = error };
    result
}

/// Takes the token again when a call is left by cancellation: what follows, clean-up handlers, belongs to the program.
struct Back<'a>(&'a mut Thread);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        sched::come_back(self.0);
        state::leave(self.0);
    }
}

/// What a call does to the program's memory and to channels.
#[derive(Clone, Copy)]
enum Does {
    Nothing,
    /// Reads the buffer (argument 1, of the size in argument 2) and sends on the descriptor.
    Sends,
    /// Fills the buffer and receives from the descriptor.
    Receives,
    /// Receives from any channel: it waits for descriptors to become ready.
    Polls,
}

macro_rules! calls {
    ($($name:ident($($arg:ident),*) $symbol:literal $does:ident;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* pc: usize) -> isize {
                static REAL: Real = Real::new($symbol);
                type Call = unsafe extern "C-unwind" fn($(calls!(@type $arg)),*) -> isize;
                // SAFETY: the C library's function, with its own arguments.
                let real = || unsafe { std::mem::transmute::<Ptr, Call>(REAL.required())($($arg),*) };
                let Some(me) = state::enter() else { return real() };
                let arguments: [usize; 3] = calls!(@first $($arg),*);
                let result = perform(me, Does::$does, arguments, pc, real);
                state::leave(me);
                result
            }
        )*
    };
    (@type $arg:ident) => { usize };
    (@first) => { [0; 3] };
    (@first $a:ident) => { [$a, 0, 0] };
    (@first $a:ident, $b:ident) => { [$a, $b, 0] };
    (@first $a:ident, $b:ident, $c:ident $(, $more:ident)*) => { [$a, $b, $c] };
}

fn perform(
    me: &mut Thread,
    does: Does,
    [fd, buffer, size]: [usize; 3],
    pc: usize,
    real: impl FnOnce() -> isize,
) -> isize {
    if let Does::Sends = does {
        if size > 0 && buffer != 0 {
            access::read(me, op::READ, buffer, size, pc);
        }
        sends(me, fd, pc);
    }
    let result = away(me, pc, real);
    if (result as i32) < 0 {
        return result;
    }
    match does {
        Does::Receives => {
            received(me, fd, pc);
            if result > 0 && buffer != 0 {
                access::write(me, op::WRITE, buffer, (result as usize).min(size), pc);
            }
        }
        Does::Polls => receive_everything(me, pc),
        _ => {}
    }
    result
}

/// After a wait for any of several descriptors.
fn receive_everything(me: &mut Thread, pc: usize) {
    // SAFETY: the holder of the token.
    let channels = unsafe { &mut *&raw mut CHANNELS };
    for channel in channels.iter_mut().take_while(|channel| channel.key != 0) {
        while channel.received < channel.sent {
            sched::before(me, state::plain(op::RECEIVE, channel.key as usize, pc));
            record::valued(me, op::RECEIVE, channel.key as usize, channel.received, pc);
            channel.received += 1;
        }
    }
}

calls! {
    read(fd, buffer, size) b"read\0" Receives;
    write(fd, buffer, size) b"write\0" Sends;
    recv(fd, buffer, size, flags) b"recv\0" Receives;
    send(fd, buffer, size, flags) b"send\0" Sends;
    recvmsg(fd, message, flags) b"recvmsg\0" Polls;
    sendmsg(fd, message, flags) b"sendmsg\0" Nothing;
    accept(fd, address, size) b"accept\0" Polls;
    accept4(fd, address, size, flags) b"accept4\0" Polls;
    connect(fd, address, size) b"connect\0" Nothing;
    poll(fds, count, time) b"poll\0" Polls;
    ppoll(fds, count, time, mask) b"ppoll\0" Polls;
    select(count, reads, writes, errors, time) b"select\0" Polls;
    epoll_wait(fd, events, count, time) b"epoll_wait\0" Polls;
    epoll_pwait(fd, events, count, time, mask) b"epoll_pwait\0" Polls;
    eventfd_read(fd, value) b"eventfd_read\0" Polls;
    wait(status) b"wait\0" Nothing;
    waitpid(pid, status, options) b"waitpid\0" Nothing;
    waitid(kind, id, information, options) b"waitid\0" Nothing;
    wait4(pid, status, options, usage) b"wait4\0" Nothing;
    system(command) b"system\0" Nothing;
    pause() b"pause\0" Nothing;
    sigwait(set, signal) b"sigwait\0" Nothing;
    sigwaitinfo(set, information) b"sigwaitinfo\0" Nothing;
    sigsuspend(set) b"sigsuspend\0" Nothing;
    flock(fd, operation) b"flock\0" Nothing;
    getline(line, size, file) b"getline\0" Nothing;
    getchar() b"getchar\0" Nothing;
    fgetc(file) b"fgetc\0" Nothing;
    tcdrain(fd) b"tcdrain\0" Nothing;
    msgrcv(queue, message, size, kind) b"msgrcv\0" Polls;
    semop(set, operations, count) b"semop\0" Polls;
}

/// Whether a raw system call may block: reads, writes, polls, waits and sleeps that go past the C library's functions.
pub fn may_block(n: i64) -> bool {
    matches!(n, 0 | 1 | 7 | 17..=20 | 23 | 34 | 35 | 42..=47 | 61 | 65 | 70 | 73 | 128 | 130 | 202 | 220 | 230 | 232 | 247 | 270 | 271 | 281 | 288)
}

entry! {
    read(3) => read;
    write(3) => write;
    recv(4) => recv;
    send(4) => send;
    recvmsg(3) => recvmsg;
    sendmsg(3) => sendmsg;
    accept(3) => accept;
    accept4(4) => accept4;
    connect(3) => connect;
    poll(3) => poll;
    ppoll(4) => ppoll;
    select(5) => select;
    epoll_wait(4) => epoll_wait;
    epoll_pwait(5) => epoll_pwait;
    eventfd_read(2) => eventfd_read;
    wait(1) => wait;
    waitpid(3) => waitpid;
    waitid(4) => waitid;
    wait4(4) => wait4;
    system(1) => system;
    pause(0) => pause;
    sigwait(2) => sigwait;
    sigwaitinfo(2) => sigwaitinfo;
    sigsuspend(1) => sigsuspend;
    flock(2) => flock;
    getline(3) => getline;
    getchar(0) => getchar;
    fgetc(1) => fgetc;
    tcdrain(1) => tcdrain;
    msgrcv(4) => msgrcv;
    semop(3) => semop;
}
