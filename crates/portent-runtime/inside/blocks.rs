//! What the program has allocated: for every address that a block begins at, whether it is in use or was freed, and by
//! what it was allocated.
//!
//! One byte for every 16 bytes of memory, in pieces that are mapped when memory there is first allocated. Bytes are
//! written whole, so threads without the token (inside a call of the C library that allocates) may mark blocks too.
//! Blocks from before the recording are not known here: about these, nothing is ever said.

use crate::real::{Ptr, Real};
use crate::{arena, sys};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// Bytes of memory for one byte here: the alignment of every block.
const GRAIN: usize = 16;
/// Memory is looked at in pieces of so many bits of address.
const PIECE_BITS: usize = 28;
const PIECES: usize = 1 << (47 - PIECE_BITS);
const PIECE: usize = (1 << PIECE_BITS) / GRAIN;
/// Where the pieces of this table go, if that is free: far from where the kernel puts the program's own maps.
const TABLE_AT: usize = 0x1100_0000_0000;

/// In untouched zero pages until it is used.
static TABLE: [AtomicPtr<AtomicU8>; PIECES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; PIECES];

/// How a block was allocated, or is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Family {
    /// `malloc` and its kin; `free`.
    #[default]
    Malloc = 0,
    /// `new`; `delete`.
    New = 1,
    /// `new[]`; `delete[]`.
    NewArray = 2,
    /// It was not seen.
    Unknown = 3,
}

impl Family {
    /// What allocates so.
    pub fn allocates(self) -> &'static str {
        match self {
            Family::Malloc => "malloc",
            Family::New => "new",
            Family::NewArray => "new[]",
            Family::Unknown => "?",
        }
    }
    /// What frees so.
    pub fn frees(self) -> &'static str {
        match self {
            Family::Malloc => "free",
            Family::New => "delete",
            Family::NewArray => "delete[]",
            Family::Unknown => "?",
        }
    }
}

/// What is known about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// No block that is known begins there.
    Unknown,
    /// One that is in use.
    Live(Family),
    /// One that was freed. The C library does not have it back yet.
    Freed,
    /// One that was freed, and no other has begun there since.
    Released,
}

/// Below: one more than the family of a block that is in use.
const FREED: u8 = 5;
const RELEASED: u8 = 6;

/// The cell of an address.
fn cell(at: usize, make: bool) -> Option<&'static AtomicU8> {
    let slot = TABLE.get(at >> PIECE_BITS)?;
    let mut piece = slot.load(Ordering::Acquire);
    if piece.is_null() {
        if !make {
            return None;
        }
        piece = make_piece(slot, at >> PIECE_BITS)?;
    }
    // SAFETY: a piece has a byte for every grain of its part of memory, and is never unmapped.
    Some(unsafe { &*piece.add((at & ((1 << PIECE_BITS) - 1)) / GRAIN) })
}

#[cold]
fn make_piece(slot: &AtomicPtr<AtomicU8>, number: usize) -> Option<*mut AtomicU8> {
    // SAFETY: private memory of our own, without swap reserved.
    let piece = unsafe { sys::map_at(TABLE_AT + number * PIECE, PIECE, 3, 0x4022, -1) }.cast::<AtomicU8>();
    if piece.is_null() {
        return None;
    }
    let nobody = std::ptr::null_mut();
    match slot.compare_exchange(nobody, piece, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(piece),
        // Somebody else was faster; ours is a little address space, lost.
        Err(theirs) => Some(theirs),
    }
}

/// What begins at an address.
pub fn at(address: usize) -> Block {
    if !address.is_multiple_of(GRAIN) {
        return Block::Unknown;
    }
    match cell(address, false).map_or(0, |cell| cell.load(Ordering::Relaxed)) {
        1 => Block::Live(Family::Malloc),
        2 => Block::Live(Family::New),
        3 => Block::Live(Family::NewArray),
        4 => Block::Live(Family::Unknown),
        FREED => Block::Freed,
        RELEASED => Block::Released,
        _ => Block::Unknown,
    }
}

fn set(address: usize, to: u8) {
    if let Some(cell) = cell(address, to != 0) {
        cell.store(to, Ordering::Relaxed);
    }
}

/// A block begins here.
pub fn allocated(address: usize, family: Family) {
    set(address, family as u8 + 1);
}

/// The block here was freed, and waits to be given back.
pub fn freed(address: usize) {
    set(address, FREED);
}

/// The block here was given back to the C library.
pub fn released(address: usize) {
    set(address, RELEASED);
}

/// The block here went a way that is not recorded.
pub fn forgotten(address: usize) {
    set(address, 0);
}

/// The last address before this one at which something known begins, looking a bounded way back.
pub fn before(address: usize) -> Option<usize> {
    /// 16 MiB of memory.
    const MOST: usize = 1 << 20;
    let start = address / GRAIN * GRAIN;
    (0..MOST)
        .map_while(|steps| start.checked_sub(steps * GRAIN))
        .map_while(|at| Some((at, cell(at, false)?)))
        .find(|(_, cell)| cell.load(Ordering::Relaxed) != 0)
        .map(|(at, _)| at)
}

/// The room of a block, as the C library's own allocator says if it is not the runtime's: another one that the program is linked
/// with defines the same name, but our blocks are not its.
pub fn room(block: Ptr) -> usize {
    if arena::contains(block as usize) {
        // What is written over is noticed when the block is freed.
        return arena::room(block as usize).unwrap_or(0);
    }
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::of_c_library(b"malloc_usable_size\0");
    // SAFETY: the C library's function, for one of its blocks.
    unsafe { std::mem::transmute::<Ptr, unsafe extern "C" fn(Ptr) -> usize>(REAL.required())(block) }
}

/// Gives a block that the program has freed back to where it came from. `me`: the thread that runs, if it is recorded.
///
/// # Safety
/// It is a block, and nobody has it any more.
pub unsafe fn give_back(me: Option<u32>, block: Ptr) {
    if arena::contains(block as usize) {
        arena::give_back(me, block);
    } else {
        // SAFETY: as the caller says.
        unsafe { sys::__libc_free(block) };
    }
}
