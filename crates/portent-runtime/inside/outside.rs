//! Where a program learns what nobody in it decides: the time, random numbers, what comes over the network. Each place is noted once,
//! so that a report can say where it depends on more than its schedule.
//!
//! Only the holder of the token comes here.

use crate::log::{message, note};
use crate::{record, sys};

const SLOTS: usize = 256;
/// More places than a report names.
const MOST: usize = 64;

static mut SEEN: [usize; SLOTS] = [0; SLOTS];
static mut TOLD: usize = 0;

/// What a place does.
#[derive(Clone, Copy)]
pub enum Outside {
    Time,
    Random,
    Network,
}

/// Whether a place has not been looked at for this before.
fn is_new(what: Outside, pc: usize) -> bool {
    let place = (pc << 2 | what as usize).wrapping_add(1);
    let slot = place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - SLOTS.trailing_zeros());
    // SAFETY: the holder of the token.
    unsafe {
        let new = SEEN[slot] != place && TOLD < MOST;
        SEEN[slot] = place;
        new
    }
}

fn tell(what: Outside, pc: usize) {
    let text: &[u8] = match what {
        Outside::Time => b"reads the clock",
        Outside::Random => b"draws random numbers",
        Outside::Network => message::FROM_NETWORK.as_bytes(),
    };
    // SAFETY: the holder of the token.
    unsafe { TOLD += 1 };
    record::told(note::MESSAGE, &[message::OUTSIDE, pc as u64], text);
}

/// The program learns it there.
pub fn learned(what: Outside, pc: usize) {
    if is_new(what, pc) {
        tell(what, pc);
    }
}

/// The program has received something from a descriptor: from the network, if it leads to another process by an internet protocol.
pub fn received(fd: usize, pc: usize) {
    if is_new(Outside::Network, pc) && leads_elsewhere(fd) {
        tell(Outside::Network, pc);
    }
}

/// Bytes of an internet address with its port, and how many of them count.
type Address = ([u8; 32], usize);

fn address(call: i64, fd: usize) -> Option<Address> {
    const INTERNET: [u8; 2] = [2, 10];
    let (mut bytes, mut length) = ([0u8; 32], 32u32);
    // SAFETY: the kernel fills the address and its length.
    let result = unsafe { sys::call3(call, fd, bytes.as_mut_ptr() as usize, &raw mut length as usize) };
    let count = match bytes[0] {
        2 => 8,
        _ => 28,
    };
    // Of version 6 the part between port and address is a label of the sender's.
    bytes[4..8].iter_mut().filter(|_| count == 28).for_each(|byte| *byte = 0);
    (result == 0 && INTERNET.contains(&bytes[0])).then_some((bytes, count))
}

/// An end of a connection that this process has had: where it is, where it leads, and its descriptor.
type End = (Address, Address, usize);

/// The latest ones.
const MOST_ENDS: usize = 64;
static mut ENDS: [Option<End>; MOST_ENDS] = [None; MOST_ENDS];
static mut NEXT: usize = 0;
/// Connections made and not accepted yet.
static mut TO_COME: u32 = 0;

/// A socket of this process has been connected, or is a connection that was accepted. Its other end is in this process, too, if
/// that is one day found to lead here, even where this one is closed by then.
fn is_end(fd: usize) -> bool {
    let (Some(own), Some(peer)) = (address(sys::SYS_GETSOCKNAME, fd), address(sys::SYS_GETPEERNAME, fd)) else {
        return false;
    };
    // SAFETY: the holder of the token.
    unsafe {
        ENDS[NEXT % MOST_ENDS] = Some((own, peer, fd));
        NEXT += 1;
    }
    true
}

/// A socket of this process has been connected.
pub fn connected(fd: usize) {
    const SO_TYPE: usize = 3;
    const STREAM: i32 = 1;
    if is_end(fd) && option(fd, SO_TYPE) == STREAM {
        // SAFETY: the holder of the token.
        unsafe { TO_COME += 1 };
    }
}

/// A connection was accepted there: from another process, perhaps.
pub fn accepted(connection: usize, pc: usize) {
    let from_internet = is_end(connection);
    let here = match other_end(connection) {
        OtherEnd::Elsewhere => false,
        OtherEnd::Here | OtherEnd::InFlight | OtherEnd::Anybody => true,
    };
    if here && from_internet {
        // SAFETY: the holder of the token.
        unsafe { TO_COME = TO_COME.saturating_sub(1) };
    }
    if !here && is_new(Outside::Network, pc) {
        tell(Outside::Network, pc);
    }
}

/// Whether there are connections that were made in this process and are to be accepted.
pub fn connections_to_come() -> bool {
    // SAFETY: under the scheduler's lock.
    unsafe { TO_COME > 0 }
}

/// Who may be at the other end of a socket.
pub enum OtherEnd {
    /// This process alone.
    Here,
    Elsewhere,
    /// This process, and something is on its way: it was sent, or the other end was closed.
    InFlight,
    /// Whoever connects to it, or sends to it.
    Anybody,
}

/// Who is at the other end of a socket.
pub fn other_end(fd: usize) -> OtherEnd {
    const LOCAL: i32 = 1;
    match option(fd, SO_DOMAIN) {
        _ if option(fd, SO_ACCEPTCONN) == 1 => OtherEnd::Anybody,
        // The creator of a pair, or the process that connected or accepted.
        LOCAL => match option(fd, SO_PEERCRED) {
            0 => OtherEnd::Anybody,
            process if process == sys::getpid() as i32 => OtherEnd::Here,
            _ => OtherEnd::Elsewhere,
        },
        _ => match peer(fd) {
            Peer::Elsewhere => OtherEnd::Elsewhere,
            // Nobody sends there before it is accepted.
            Peer::ToCome => OtherEnd::Here,
            Peer::Open(end) if bytes_on_their_way(end) == 0 => OtherEnd::Here,
            Peer::Open(_) | Peer::Closed => OtherEnd::InFlight,
        },
    }
}

/// What was sent there and has not been received by the system at the other end; its end counts as a byte.
fn bytes_on_their_way(fd: usize) -> i32 {
    const SIOCOUTQ: usize = 0x5411;
    let mut found = 0i32;
    // SAFETY: the kernel fills the number.
    unsafe { sys::call3(sys::SYS_IOCTL, fd, SIOCOUTQ, &raw mut found as usize) };
    found
}

const SO_DOMAIN: usize = 39;
const SO_ACCEPTCONN: usize = 30;
const SO_PEERCRED: usize = 17;

/// The first number of an option of a socket; -1 if it has none.
pub fn option(fd: usize, which: usize) -> i32 {
    const SOL_SOCKET: usize = 1;
    let (mut value, mut length) = ([-1i32; 4], 16u32);
    // SAFETY: the kernel fills the value and its length.
    unsafe {
        let (value, length) = (value.as_mut_ptr() as usize, &raw mut length as usize);
        sys::call(sys::SYS_GETSOCKOPT, fd, SOL_SOCKET, which, value, length, 0);
    }
    value[0]
}

/// An option of a socket that is a time, in nanoseconds; `None` if it is not set.
pub fn time_option(fd: usize, which: usize) -> Option<i64> {
    const SOL_SOCKET: usize = 1;
    let (mut time, mut length) = ([0i64; 2], 16u32);
    // SAFETY: the kernel fills seconds and microseconds, and the length.
    unsafe {
        let (time, length) = (time.as_mut_ptr() as usize, &raw mut length as usize);
        sys::call(sys::SYS_GETSOCKOPT, fd, SOL_SOCKET, which, time, length, 0);
    }
    let nanos = time[0].saturating_mul(1_000_000_000).saturating_add(time[1] * 1000);
    (nanos > 0).then_some(nanos)
}

/// The other end of a connection.
enum Peer {
    Elsewhere,
    /// A connection that a socket of this process has yet to accept.
    ToCome,
    /// A socket of this process.
    Open(usize),
    /// It was one.
    Closed,
}

/// Whether no socket that this process has, or has had, is what a socket is connected to.
fn leads_elsewhere(fd: usize) -> bool {
    match address(sys::SYS_GETPEERNAME, fd) {
        // What comes before somebody here accepts the connection comes from another process that has: a child has the same listener.
        Some(_) => matches!(peer(fd), Peer::Elsewhere | Peer::ToCome),
        // Whoever sends to it without a connection.
        None => address(sys::SYS_GETSOCKNAME, fd).is_some(),
    }
}

fn peer(fd: usize) -> Peer {
    const DESCRIPTORS: usize = 1024;
    let (Some(own), Some(peer)) = (address(sys::SYS_GETSOCKNAME, fd), address(sys::SYS_GETPEERNAME, fd)) else {
        return Peer::Elsewhere;
    };
    let same = |a: &Address, b: &Address| a.1 == b.1 && a.0[..a.1] == b.0[..b.1];
    // Both ways: a socket that only listens there is not what it is connected to.
    let is_peer = |other: usize| {
        address(sys::SYS_GETSOCKNAME, other).is_some_and(|found| same(&found, &peer))
            && address(sys::SYS_GETPEERNAME, other).is_some_and(|found| same(&found, &own))
    };
    // SAFETY: the holder of the token.
    let ends = unsafe { &*(&raw const ENDS) };
    match ends.iter().flatten().find(|(at, leads, _)| same(at, &peer) && same(leads, &own)) {
        Some(&(.., end)) if is_peer(end) => Peer::Open(end),
        Some(_) => Peer::Closed,
        None if connections_to_come() && (0..DESCRIPTORS).any(|other| listens(other, &peer)) => Peer::ToCome,
        None => (0..DESCRIPTORS).find(|&other| is_peer(other)).map_or(Peer::Elsewhere, Peer::Open),
    }
}

/// Whether a socket accepts connections there, or at any address of the machine.
fn listens(fd: usize, at: &Address) -> bool {
    /// Behind the family, before the address.
    const PORT: std::ops::Range<usize> = 2..4;
    option(fd, SO_ACCEPTCONN) == 1
        && address(sys::SYS_GETSOCKNAME, fd).is_some_and(|(own, count)| {
            let (any, same) = (own[4..count].iter().all(|byte| *byte == 0), own[..count] == at.0[..at.1]);
            own[PORT] == at.0[PORT] && (any || same)
        })
}
