//! What threads tell each other through the system orders them: pipes, sockets, event counters, signals.
//!
//! Whoever sends says so before; whoever receives does so after the last of what each other thread has sent on the channel
//! until then, unless it has received that already. That orders more than is needed where several messages are on their way,
//! and never less, as long as no more than [`SENDERS`] threads send on one channel.
//!
//! A pipe is known by its inode. Of a TCP connection each direction is a channel, known by the addresses of both ends
//! ([`crate::connections`]); all other sockets are one, and so are connections, pipes and event counters when there are too many.
//! Each signal is a channel: installing its handler, starting a timer for it and sending it come before the handler runs.
//! FIFOs that the program opens by name are not known. What the program was started with (its standard output, say) leads
//! elsewhere and orders nothing.
//!
//! Only the holder of the token comes here.

use crate::log::op;
use crate::state::{self, Thread};
use crate::{connections, record, sched, sys};

const MOST: usize = 1024;
const SENDERS: usize = 32;
const READERS: usize = 8;

/// The last message of a thread, or the number up to which it has received; `thread` is its number + 1, or 0.
#[derive(Clone, Copy)]
struct Entry {
    thread: u32,
    number: u64,
}

const NOBODY: Entry = Entry { thread: 0, number: 0 };

/// A channel: its key, messages sent, the last message of every sender, and how far each of the last readers is.
#[derive(Clone, Copy)]
struct Channel {
    key: u64,
    sent: u64,
    senders: [Entry; SENDERS],
    readers: [Entry; READERS],
}

const UNUSED: Channel = Channel { key: 0, sent: 0, senders: [NOBODY; SENDERS], readers: [NOBODY; READERS] };

static mut CHANNELS: [Channel; MOST] = [UNUSED; MOST];
static mut COUNT: usize = FIRST;

/// Forgets them, in a forked child.
///
/// # Safety
/// Called by the only thread of its process, which is not recorded.
pub unsafe fn forget() {
    // SAFETY: nobody else runs.
    unsafe {
        sys::fill((&raw mut CHANNELS).cast(), 0, size_of::<[Channel; MOST]>());
        COUNT = FIRST;
    }
}

/// That of all sockets. Signals have their own numbers.
pub const SOCKETS: usize = 0;
/// Handlers that run when the process forks.
pub const AT_FORK: usize = 65;
/// Those of the program's pipes and event counters begin here.
const FIRST: usize = 66;

const KIND: u32 = 0o170_000;
pub const FIFO: u32 = 0o010_000;
pub const SOCKET: u32 = 0o140_000;
pub const DEVICE: u32 = 0o020_000;

/// Kind and inode of what is behind a descriptor.
pub fn examine(fd: usize) -> (u32, u64) {
    let mut status = [0u64; 18];
    // SAFETY: the kernel fills the status: device, inode, links, mode, …
    let result = unsafe { sys::call3(sys::SYS_FSTAT, fd, status.as_mut_ptr() as usize, 0) };
    if result == 0 { (status[3] as u32 & KIND, status[1]) } else { (u32::MAX, 0) }
}

/// What a channel is known by. Event counters have no inode of their own; their descriptors are not usually duplicated.
fn key(fd: usize) -> u64 {
    match examine(fd) {
        (FIFO, inode) => inode << 1 | 1,
        _ => (fd as u64) << 1,
    }
}

/// The program has made a channel.
pub fn register(fd: usize) {
    // SAFETY: the holder of the token.
    unsafe {
        if COUNT < MOST {
            CHANNELS[COUNT] = Channel { key: key(fd), ..UNUSED };
            COUNT += 1;
        }
    }
}

/// The channel behind a descriptor, the youngest if its key is used again; none where nothing is ordered.
pub fn of(fd: usize) -> Option<usize> {
    // SAFETY: the holder of the token.
    let channels = unsafe { &(&*&raw const CHANNELS)[..COUNT] };
    match examine(fd) {
        (SOCKET, _) if fd > 2 => Some(connections::of(fd).map_or(SOCKETS, |[there, _]| connection(there))),
        (FIFO | 0, _) => {
            let key = key(fd);
            let found = (FIRST..channels.len()).rev().find(|&at| channels[at].key == key);
            // When the table is full, the rest are one channel with the sockets.
            found.or((channels.len() == MOST && fd > 2).then_some(SOCKETS))
        }
        _ => None,
    }
}

/// The channel on which a descriptor receives: of a connection, the other direction.
pub fn of_received(fd: usize) -> Option<usize> {
    match connections::of(fd) {
        Some([_, here]) if fd > 2 => Some(connection(here)),
        _ => of(fd),
    }
}

/// The channel of one direction of a connection, new if nothing was told there yet.
fn connection(key: u64) -> usize {
    /// So many are told apart: whoever polls looks at all of them.
    const CONNECTIONS: usize = 256;
    // SAFETY: the holder of the token.
    unsafe {
        let channels = &(&*&raw const CHANNELS)[..COUNT];
        let found = (FIRST..channels.len()).rev().find(|&at| channels[at].key == key);
        let known = channels[FIRST.min(channels.len())..].iter().filter(|one| one.key & connections::KEY != 0).count();
        if found.is_none() && COUNT < MOST && known < CONNECTIONS {
            CHANNELS[COUNT] = Channel { key, ..UNUSED };
            COUNT += 1;
            return COUNT - 1;
        }
        found.unwrap_or(SOCKETS)
    }
}

/// Whether a call on a descriptor (plus one; 0 for none) would wait for other threads of this process: on a pipe of the program's
/// own that is empty, or full, while there is no other process that could change that.
pub fn is_stuck(descriptor: usize) -> bool {
    let Some(fd) = descriptor.checked_sub(1) else { return false };
    // Whoever asks need not hold the token, and of sockets nothing is known.
    if examine(fd).0 == SOCKET || of(fd).is_none_or(|at| at < FIRST) || sys::has_children() {
        return false;
    }
    // The end that is read has no POLLOUT, the other no POLLIN.
    let mut asked: [u32; 2] = [fd as u32, 1 | 4];
    // SAFETY: one descriptor, no time.
    unsafe { sys::call3(sys::SYS_POLL, asked.as_mut_ptr() as usize, 1, 0) == 0 }
}

/// Before something is sent.
pub fn send(me: &mut Thread, at: usize, pc: usize) {
    sched::before(me, state::plain(op::SEND, at, pc));
    // SAFETY: the holder of the token; looked at only now, as others may have run.
    let channel = unsafe { &mut (*&raw mut CHANNELS)[at] };
    let number = channel.sent;
    channel.sent += 1;
    note(&mut channel.senders, me.id, number);
    record::valued(me, op::SEND, at, number, pc);
}

/// Keeps a thread's number, in place of its last one or of the oldest.
fn note(entries: &mut [Entry], id: u32, number: u64) {
    let own = entries.iter_mut().position(|entry| entry.thread == id + 1 || entry.thread == 0);
    let oldest = || entries.iter().enumerate().min_by_key(|(_, entry)| entry.number).map_or(0, |found| found.0);
    let place = own.unwrap_or_else(oldest);
    entries[place] = Entry { thread: id + 1, number };
}

/// The next message that a thread has not received: the first sender's from this one on.
fn next(at: usize, me: &Thread, sender: usize, upto: u64) -> Option<(usize, u64)> {
    // SAFETY: the holder of the token.
    let senders = unsafe { &(*&raw const CHANNELS)[at].senders };
    (sender..SENDERS).map(|one| (one, senders[one])).find_map(|(one, Entry { thread, number })| {
        (thread != 0 && thread != me.id + 1 && number >= upto).then_some((one, number))
    })
}

/// How far a thread has received what was sent on a channel.
fn received(at: usize, me: &Thread) -> u64 {
    // SAFETY: the holder of the token.
    let readers = unsafe { &(*&raw const CHANNELS)[at].readers };
    readers.iter().find(|entry| entry.thread == me.id + 1).map_or(0, |entry| entry.number)
}

/// Receives what others have sent on a channel. Others may run in between, and send more.
pub fn receive(me: &mut Thread, at: usize, pc: usize) {
    let upto = received(at, me);
    // SAFETY: the holder of the token.
    let sent = unsafe { CHANNELS[at].sent };
    let mut sender = 0;
    while let Some((one, _)) = next(at, me, sender, upto) {
        sched::before(me, state::plain(op::RECEIVE, at, pc));
        if let Some((same, number)) = next(at, me, one, upto)
            && same == one
        {
            record::valued(me, op::RECEIVE, at, number, pc);
        }
        sender = one + 1;
    }
    if sender > 0 {
        // SAFETY: as above.
        note(unsafe { &mut (*&raw mut CHANNELS)[at].readers }, me.id, sent);
    }
}

/// The same where something was received for certain: an event in any case, before which whoever sends may still run.
pub fn receive_later(me: &mut Thread, at: usize, pc: usize) {
    sched::before(me, state::plain(op::RECEIVE, at, pc));
    match next(at, me, 0, received(at, me)) {
        Some((_, number)) => record::valued(me, op::RECEIVE, at, number, pc),
        None => record::plain(me, op::BRANCH, 0, pc),
    }
    let upto = received(at, me);
    let mut sender = next(at, me, 0, upto).map_or(SENDERS, |found| found.0 + 1);
    while let Some((one, number)) = next(at, me, sender, upto) {
        record::valued(me, op::RECEIVE, at, number, pc);
        sender = one + 1;
    }
    // SAFETY: the holder of the token.
    unsafe {
        let sent = CHANNELS[at].sent;
        note(&mut (*&raw mut CHANNELS)[at].readers, me.id, sent);
    }
}

/// After a wait for any of several descriptors.
pub fn receive_everything(me: &mut Thread, pc: usize) {
    receive(me, SOCKETS, pc);
    // SAFETY: the holder of the token.
    for at in FIRST..unsafe { COUNT } {
        receive(me, at, pc);
    }
}
