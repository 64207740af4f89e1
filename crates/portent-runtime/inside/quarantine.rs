//! Freed memory is kept for a while before it may be given out again: what an access after the free sees does
//! not depend on who allocates next, and it is known to be one.
//!
//! The oldest block goes when all of them together are too much. A very large one keeps its addresses but neither its pages
//! nor the right to access them: it would be unmapped natively, and an access faults here as it does there. Only the holder
//! of the token comes here.

use crate::log::note;
use crate::real::Ptr;
use crate::{arena, blocks, record, sys};

/// Bytes that are kept, at most.
const BUDGET: usize = 256 << 20;
/// Blocks from here on keep only their addresses.
const LARGE: usize = BUDGET / 4;
/// What one of these counts as, so that there are not too many mappings.
const LARGE_COUNTS: usize = BUDGET / 1024;
/// What the allocator keeps beside every block.
const HEADER: usize = 16;
const PAGE: usize = 4096;
/// The smallest block counts 32 bytes: so many are never exceeded.
const MOST: usize = BUDGET / 32 + 1;

/// The blocks as a ring, in mapped memory, oldest first.
struct Ring {
    blocks: *mut usize,
    first: usize,
    count: usize,
    bytes: usize,
}

static mut RING: Ring = Ring { blocks: std::ptr::null_mut(), first: 0, count: 0, bytes: 0 };

fn counts(room: usize) -> usize {
    if room >= LARGE { LARGE_COUNTS } else { (room + HEADER).max(32) }
}

/// Pages that lie wholly inside a block.
fn pages(block: usize, room: usize) -> (usize, usize) {
    let start = block.next_multiple_of(PAGE);
    let end = (block + room) / PAGE * PAGE;
    (start, end.saturating_sub(start))
}

/// Keeps a block that was just freed.
pub fn keep(block: Ptr, room: usize) {
    // SAFETY: the holder of the token; the ring is mapped once and has room for what the budget allows.
    unsafe {
        let ring = &mut *&raw mut RING;
        if ring.blocks.is_null() {
            ring.blocks = sys::map_at(RING_AT, MOST * size_of::<usize>(), 3, 0x4022, -1).cast();
            if ring.blocks.is_null() {
                blocks::released(block as usize);
                record::numbers(note::RELEASE, &[block as u64]);
                return blocks::give_back(None, block);
            }
        }
        blocks::freed(block as usize);
        if room >= LARGE {
            let (start, length) = pages(block as usize, room);
            sys::call3(sys::SYS_MADVISE, start, length, MADV_DONTNEED);
            sys::call3(sys::SYS_MPROTECT, start, length, 0);
        }
        *ring.blocks.add((ring.first + ring.count) % MOST) = block as usize;
        ring.count += 1;
        ring.bytes += counts(room);
        while ring.bytes > BUDGET {
            release(ring);
        }
    }
}

const RING_AT: usize = 0x10f0_0000_0000;
const MADV_DONTNEED: usize = 4;
const READ_WRITE: usize = 3;

/// Gives the oldest block back to the allocator.
unsafe fn release(ring: &mut Ring) {
    // SAFETY: the ring is not empty, and its blocks were freed by the program and not given back yet.
    unsafe {
        let block = *ring.blocks.add(ring.first);
        ring.first = (ring.first + 1) % MOST;
        ring.count -= 1;
        let room = blocks::room(block as Ptr);
        ring.bytes -= counts(room);
        if room >= LARGE {
            let (start, length) = pages(block, room);
            sys::call3(sys::SYS_MPROTECT, start, length, READ_WRITE);
        }
        blocks::released(block);
        record::numbers(note::RELEASE, &[block as u64]);
        // Also what its own thread frees: when it leaves here depends on the others.
        blocks::give_back(None, block as Ptr);
        arena::tidy(block as Ptr);
    }
}
