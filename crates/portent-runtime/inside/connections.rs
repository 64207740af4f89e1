//! TCP connections within the program: which direction of which connection a socket sends on, and which it receives from.
//!
//! Both ends say the same two addresses, the other way round. So the one's way there is the other's way here. What was once
//! known of a descriptor is kept until that is closed: a connection that was cut off has no peer any more, and whoever finds
//! that out is still behind whoever cut it.

use crate::sys;

/// In every key, so that it is none of a pipe or an event counter.
pub const KEY: u64 = 1 << 63;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SOL_SOCKET: usize = 1;
const SO_TYPE: usize = 3;
const SOCK_STREAM: i32 = 1;

/// Descriptors from here on are looked up each time.
const MOST: usize = crate::log::DESCRIPTORS_EACH as usize;
/// What was last known of each: the keys of the ways there and here, or zeros.
static mut KNOWN: [[u64; 2]; MOST] = [[0; 2]; MOST];

/// An address: 16 bytes as in version 6, those of version 4 as they are mapped there; and a port.
type Address = [u8; 18];

/// The keys of a connection's two directions, from this end there and from there here; none for what is no connection.
pub fn of(fd: usize) -> Option<[u64; 2]> {
    let keys = match (is_stream(fd), address(fd, sys::SYS_GETSOCKNAME), address(fd, sys::SYS_GETPEERNAME)) {
        (true, Some(own), Some(peer)) => Some([key(&own, &peer), key(&peer, &own)]),
        (true, Some(_), None) => known(fd).filter(|keys| keys[0] != 0),
        _ => None,
    };
    if let Some(keys) = keys.filter(|_| fd < MOST) {
        // SAFETY: the holder of the token.
        unsafe { KNOWN[fd] = keys };
    }
    keys
}

fn known(fd: usize) -> Option<[u64; 2]> {
    // SAFETY: the holder of the token.
    (fd < MOST).then(|| unsafe { KNOWN[fd] })
}

/// The descriptor is closed: the next file behind it is another one.
pub fn closed(fd: usize) {
    if fd < MOST {
        // SAFETY: the holder of the token.
        unsafe { KNOWN[fd] = [0; 2] };
    }
}

fn is_stream(fd: usize) -> bool {
    let (mut kind, mut size) = (0i32, size_of::<i32>() as u32);
    // SAFETY: the kernel fills the number.
    let result = unsafe {
        sys::call(sys::SYS_GETSOCKOPT, fd, SOL_SOCKET, SO_TYPE, &raw mut kind as usize, &raw mut size as usize, 0)
    };
    result == 0 && kind == SOCK_STREAM
}

/// What a question about a socket answers, if that is an address of the internet.
fn address(fd: usize, question: i64) -> Option<Address> {
    let mut bytes = [0u8; 128];
    let mut size = bytes.len() as u32;
    // SAFETY: the kernel fills the buffer, as much as there is room.
    let result = unsafe { sys::call3(question, fd, bytes.as_mut_ptr() as usize, &raw mut size as usize) };
    if result != 0 {
        return None;
    }
    let mut address = [0; 18];
    address[16..].copy_from_slice(&bytes[2..4]);
    match u16::from_ne_bytes([bytes[0], bytes[1]]) {
        AF_INET => {
            address[10..12].fill(0xff);
            address[12..16].copy_from_slice(&bytes[4..8]);
        }
        AF_INET6 => address[..16].copy_from_slice(&bytes[8..24]),
        _ => return None,
    }
    Some(address)
}

/// FNV-1a of both.
fn key(from: &Address, to: &Address) -> u64 {
    let mixed = from
        .iter()
        .chain(to)
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    mixed | KEY
}
