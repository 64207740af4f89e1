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
        Outside::Network => b"receives from the network",
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

/// Ends of connections that this process has had: where each is, and where it leads. The latest ones.
const MOST_ENDS: usize = 64;
static mut ENDS: [Option<(Address, Address)>; MOST_ENDS] = [None; MOST_ENDS];
static mut NEXT: usize = 0;

/// A socket of this process has been connected, or is a connection that was accepted. Its other end is in this process, too, if
/// that is one day found to lead here, even where this one is closed by then.
pub fn connected(fd: usize) {
    if let (Some(own), Some(peer)) = (address(sys::SYS_GETSOCKNAME, fd), address(sys::SYS_GETPEERNAME, fd)) {
        // SAFETY: the holder of the token.
        unsafe {
            ENDS[NEXT % MOST_ENDS] = Some((own, peer));
            NEXT += 1;
        }
    }
}

/// Whether no socket that this process has, or has had, is what a socket is connected to.
fn leads_elsewhere(fd: usize) -> bool {
    const DESCRIPTORS: usize = 1024;
    let Some((peer, count)) = address(sys::SYS_GETPEERNAME, fd) else {
        // Whoever sends to it without a connection.
        return address(sys::SYS_GETSOCKNAME, fd).is_some();
    };
    let Some((own, length)) = address(sys::SYS_GETSOCKNAME, fd) else { return true };
    let same = |call: i64, other: usize, wanted: &[u8; 32], count: usize| {
        address(call, other).is_some_and(|(found, length)| length == count && found[..count] == wanted[..count])
    };
    // SAFETY: the holder of the token.
    let ends = unsafe { &*(&raw const ENDS) };
    let is_end = |end: &(Address, Address)| {
        let ((at, at_count), (leads, leads_count)) = (&end.0, &end.1);
        (*at_count, *leads_count) == (count, length) && at[..count] == peer[..count] && leads[..length] == own[..length]
    };
    if ends.iter().flatten().any(is_end) {
        return false;
    }
    // Both ways: a socket that only listens there is not what it is connected to.
    let is_peer = |other: usize| {
        same(sys::SYS_GETSOCKNAME, other, &peer, count) && same(sys::SYS_GETPEERNAME, other, &own, length)
    };
    !(0..DESCRIPTORS).any(is_peer)
}
