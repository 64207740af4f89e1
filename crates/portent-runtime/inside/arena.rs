//! Memory of recorded threads: each has an arena of its own, at addresses that follow from its number.
//!
//! What a thread is given depends only on what it has asked for itself, not on who came first at the allocator. So addresses are the
//! same in all runs in which a thread does the same, and two schedules do not differ by them.
//!
//! A block is as the C library makes them: a word with its size, then what the program gets, at a multiple of 16; it has as much room. An
//! arena grows; nothing is given out again before what was freed has left the quarantine ([`crate::quarantine`]), and then only by the
//! thread that had allocated it. Where there is no room left, the C library allocates.
//!
//! | state | who touches it |
//! |---|---|
//! | `next`, `end`, `lists`, `made` | the arena's thread |
//! | `returned`, `back` | everybody |
//! | all of it | the holder of the token, when the thread is done and has no block left |

use crate::log::MAX_THREADS;
use crate::real::Ptr;
use crate::state::{Life, thread};
use crate::sys;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Where arenas are: far from where the kernel puts the program's own maps.
const ARENAS_AT: usize = 0x3000_0000_0000;
/// The room of an arena: the first threads have much, so that all of them have some. So many threads, and the room of each.
const ROOMS: [(usize, usize); 3] = [(16, 1 << 38), (1008, 1 << 32), (MAX_THREADS - 1024, 1 << 30)];
/// An arena grows by as much as it has, within these bounds.
const STEPS: (usize, usize) = (256 << 10, 64 << 20);
/// An arena that is so large looks at what was given back before it grows.
const REUSES_FROM: usize = 64 << 20;
/// The pages of blocks from here on go back to the system at once.
const LARGE: usize = 128 << 10;
/// Larger ones are the C library's business.
const LARGEST: usize = 1 << 37;
/// The word before each block.
const HEADER: usize = 8;
const SMALLEST: usize = 32;
const GRAIN: usize = 16;
const PAGE: usize = 4096;
/// Blocks up to here have lists of their own for every size.
const EXACT: usize = 1024;
/// Others share lists: so many for each doubling.
const SHARE_BITS: u32 = 3;
const LISTS: usize = EXACT / GRAIN + 1 + ((38 - 10) << SHARE_BITS);
/// What the word before a block says is its size and, above that, a mark by which it is seen that it was not overwritten.
const SIZE_BITS: u32 = 48;

const PRIVATE_ANONYMOUS: usize = 0x22;
const NO_RESERVE: usize = 0x4000;
/// `MAP_FIXED_NOREPLACE`; older kernels take the address as a wish.
const HERE: usize = 0x10_0000;
const READ_WRITE: usize = 3;
const MADV_DONTNEED: usize = 4;

/// At the beginning of its own memory.
#[repr(C)]
struct Arena {
    /// Where the next new block's word goes, at the earliest: 8 more than a multiple of 16.
    next: usize,
    /// Where the memory ends that is mapped.
    end: usize,
    /// Blocks that were given out, and that were given back.
    made: usize,
    back: AtomicUsize,
    /// Blocks that others gave back, each with the address of the next in its first word.
    returned: AtomicUsize,
    /// Blocks that can be given out again, by size.
    lists: [usize; LISTS],
    /// Others look at it while its thread runs: with this, the compiler does not take a `&mut Arena` for the only way to it.
    shared: std::marker::PhantomPinned,
}

/// The arenas, by the numbers of threads: where they are does not change.
static ARENAS: [AtomicPtr<Arena>; MAX_THREADS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_THREADS];

/// Where a thread's arena begins, and its room.
fn place(mut id: usize) -> (usize, usize) {
    let mut at = ARENAS_AT;
    for (threads, room) in ROOMS {
        if id < threads {
            return (at + id * room, room);
        }
        id -= threads;
        at += threads * room;
    }
    (at, 0)
}

/// Whose arena an address is in.
fn owner(address: usize) -> Option<usize> {
    let mut offset = address.checked_sub(ARENAS_AT)?;
    let mut before = 0;
    for (threads, room) in ROOMS {
        if offset < threads * room {
            return Some(before + offset / room);
        }
        offset -= threads * room;
        before += threads;
    }
    None
}

/// Whether an address is in an arena.
#[inline(always)]
pub fn contains(address: usize) -> bool {
    const END: usize = ARENAS_AT + ROOMS[0].0 * ROOMS[0].1 + ROOMS[1].0 * ROOMS[1].1 + ROOMS[2].0 * ROOMS[2].1;
    (ARENAS_AT..END).contains(&address)
}

/// The list of blocks of a size, and the size of all blocks on it.
fn list(size: usize) -> (usize, usize) {
    if size <= EXACT {
        return (size / GRAIN, size);
    }
    let doubling = (size - 1).ilog2();
    let step = 1 << (doubling - SHARE_BITS);
    let nth = (size - (1 << doubling)).div_ceil(step);
    let before = ((doubling as usize - 10) << SHARE_BITS) + EXACT / GRAIN;
    (before + nth, (1 << doubling) + nth * step)
}

/// The mark of an address.
fn mark(block: usize) -> usize {
    (block >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> SIZE_BITS << SIZE_BITS
}

fn set_size(block: usize, size: usize) {
    // SAFETY: the word before a block that is about to be given out.
    unsafe { *((block - HEADER) as *mut usize) = size | mark(block) };
}

/// The size of a block, its word included; `None` if something wrote over that.
fn size_of_block(block: usize) -> Option<usize> {
    // SAFETY: the word before a block of an arena.
    let size = unsafe { *((block - HEADER) as *const usize) } ^ mark(block);
    ((SMALLEST..1 << SIZE_BITS).contains(&size) && size.is_multiple_of(GRAIN)).then_some(size)
}

/// The room of a block of an arena, for the program; `None` if something wrote over the word before it.
pub fn room(block: usize) -> Option<usize> {
    Some(size_of_block(block)? - HEADER)
}

/// Memory at a place of its own; false if there is none.
fn map(at: usize, length: usize) -> bool {
    // SAFETY: nothing that is mapped is replaced.
    unsafe {
        let got = sys::map_at(at, length, READ_WRITE, PRIVATE_ANONYMOUS | NO_RESERVE | HERE, -1);
        if got as usize == at {
            return true;
        }
        if !got.is_null() {
            sys::call3(sys::SYS_MUNMAP, got as usize, length, 0);
        }
    }
    false
}

#[cold]
fn make(id: usize) -> *mut Arena {
    let (at, _) = place(id);
    if id >= MAX_THREADS || !map(at, STEPS.0) {
        return std::ptr::null_mut();
    }
    let arena = at as *mut Arena;
    // SAFETY: zeroed memory of the arena's thread, which is the one that runs.
    unsafe {
        (*arena).next = first(at);
        (*arena).end = at + STEPS.0;
    }
    ARENAS[id].store(arena, Ordering::Release);
    arena
}

/// Where the first block's word goes.
fn first(at: usize) -> usize {
    (at + size_of::<Arena>()).next_multiple_of(GRAIN) + HEADER
}

/// Maps more, up to an address at least.
#[cold]
fn grow(arena: &mut Arena, to: usize) -> bool {
    let at = &raw const *arena as usize;
    let (_, room) = place(owner(at).unwrap_or(MAX_THREADS));
    let needed = to.saturating_sub(arena.end).next_multiple_of(PAGE);
    let step = (arena.end - at).clamp(STEPS.0, STEPS.1).max(needed).min((at + room).saturating_sub(arena.end));
    if step < needed || !map(arena.end, step) {
        return false;
    }
    arena.end += step;
    true
}

/// Memory for a thread, which is the one that runs: where, and whether it is all zero. `None`: the C library is to be asked.
pub fn allocate(id: u32, align: usize, size: usize) -> Option<(Ptr, bool)> {
    let id = id as usize;
    if size > LARGEST || align > LARGEST || !align.is_power_of_two() {
        return None;
    }
    let mut arena = ARENAS.get(id)?.load(Ordering::Relaxed);
    if arena.is_null() {
        arena = make(id);
    }
    // SAFETY: null, or the arena of the thread that runs. Others use only what is atomic.
    let arena = unsafe { arena.as_mut() }?;
    let size = (size + HEADER).next_multiple_of(GRAIN).max(SMALLEST);
    let (list, whole) = list(size);
    arena.made += 1;
    if align <= GRAIN
        && let Some(block) = arena.again(list)
    {
        set_size(block, size);
        return Some((block as Ptr, false));
    }
    loop {
        let block = (arena.next + HEADER).next_multiple_of(align.max(GRAIN));
        let next = block - HEADER + whole;
        if next <= arena.end {
            arena.next = next;
            set_size(block, size);
            return Some((block as Ptr, true));
        }
        if arena.end - (&raw const *arena as usize) >= REUSES_FROM
            && arena.take_back()
            && align <= GRAIN
            && let Some(block) = arena.again(list)
        {
            set_size(block, size);
            return Some((block as Ptr, false));
        }
        if !grow(arena, next) {
            arena.made -= 1;
            return None;
        }
    }
}

impl Arena {
    /// A block that was given back.
    #[inline(always)]
    fn again(&mut self, list: usize) -> Option<usize> {
        let block = self.lists[list];
        if block == 0 {
            return None;
        }
        // SAFETY: the first word of a block that nobody has is the next one.
        self.lists[list] = unsafe { *(block as *const usize) };
        Some(block)
    }

    fn put(&mut self, block: usize) {
        let Some(size) = size_of_block(block) else { return };
        let (list, _) = list(size);
        // SAFETY: a block that nobody has.
        unsafe { *(block as *mut usize) = self.lists[list] };
        self.lists[list] = block;
    }

    /// Sorts what others gave back; whether there was any.
    fn take_back(&mut self) -> bool {
        let mut block = self.returned.swap(0, Ordering::Acquire);
        let any = block != 0;
        while block != 0 {
            // SAFETY: as in `again`.
            let next = unsafe { *(block as *const usize) };
            self.put(block);
            block = next;
        }
        any
    }
}

/// Gives a block of an arena back. `me`: the thread that runs, if it is one with an arena.
pub fn give_back(me: Option<u32>, block: Ptr) {
    let block = block as usize;
    let (Some(id), Some(size)) = (owner(block), size_of_block(block)) else { return };
    let arena = ARENAS[id].load(Ordering::Acquire);
    if arena.is_null() {
        return;
    }
    if size >= LARGE {
        let start = (block + HEADER).next_multiple_of(PAGE);
        let end = (block - HEADER + size) / PAGE * PAGE;
        // SAFETY: pages inside a block that nobody has.
        unsafe { sys::call3(sys::SYS_MADVISE, start, end.saturating_sub(start), MADV_DONTNEED) };
    }
    // SAFETY: an arena is never unmapped; see the table above.
    unsafe {
        if me == Some(id as u32) {
            (*arena).put(block);
        } else {
            let returned = &(*arena).returned;
            let mut first = returned.load(Ordering::Relaxed);
            loop {
                *(block as *mut usize) = first;
                match returned.compare_exchange_weak(first, block, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => break,
                    Err(now) => first = now,
                }
            }
        }
        (*arena).back.fetch_add(1, Ordering::AcqRel);
    }
}

/// Gives the memory of a thread's arena back to the system, if the thread is done and has no block left in it. Called by the
/// holder of the token, after a block there was given back.
pub fn tidy(block: Ptr) {
    let Some(id) = owner(block as usize) else { return };
    let arena = ARENAS[id].load(Ordering::Acquire);
    // SAFETY: threads of the table; nobody else uses the arena of a thread that is done and has no block in it.
    unsafe {
        if arena.is_null() || (*thread(id as u32)).life != Life::Done {
            return;
        }
        let arena = &mut *arena;
        if arena.made != arena.back.load(Ordering::Acquire) {
            return;
        }
        let at = &raw const *arena as usize;
        // What is left of the first page is not zero.
        arena.next = at + PAGE + HEADER;
        arena.returned.store(0, Ordering::Relaxed);
        arena.lists.fill(0);
        sys::call3(sys::SYS_MADVISE, at + PAGE, arena.end - at - PAGE, MADV_DONTNEED);
    }
}
