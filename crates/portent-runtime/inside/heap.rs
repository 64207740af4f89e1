//! Allocation. Recorded threads have memory of their own ([`crate::arena`]); all others have the C library's. The runtime notes where and
//! from where, so that heap objects have names and a freed and reused address is a new variable.
//!
//! Freeing is recorded as a write of the whole block: an access that can come after it is a race with it. The block itself
//! is kept for a while ([`crate::quarantine`]). What is freed twice, or is no block, ends the program, as the C library would;
//! what is freed by what does not belong to how it was allocated is noted and freed.

use crate::blocks::{self, Block, Family, room};
use crate::entry::entry;
use crate::log::{allocated, fault, note, op};
use crate::real::{Ptr, Real};
use crate::state::{self, Thread};
use crate::{access, arena, objects, process, quarantine, record, signals, sys};

pub unsafe extern "C-unwind" fn usable_size(block: Ptr, _pc: usize) -> usize {
    room(block)
}

/// Whether `new` and `delete` are what they seem: a program that defines some of them itself may mix them as it likes.
static mut OPERATORS_ARE_OURS: bool = false;

/// Called once, before there are threads.
pub unsafe fn prepare() {
    const DEFAULT: Ptr = std::ptr::null_mut();
    // SAFETY: names that end with a zero; nobody else runs yet.
    unsafe {
        OPERATORS_ARE_OURS = [c"_Znwm", c"_Znam", c"_ZdlPv", c"_ZdaPv"]
            .iter()
            .all(|name| signals::is_ours(sys::dlsym(DEFAULT, name.as_ptr()) as usize));
    }
}

/// What a thread allocates for, and from where.
fn asked_for(me: &Thread, pc: usize) -> (usize, Family) {
    if me.allocation_pc != 0 { (me.allocation_pc, me.allocation_family) } else { (pc, Family::Malloc) }
}

fn made(me: &mut Thread, block: Ptr, size: usize, pc: usize) {
    noted(me, block, size, pc, allocated::HEAP);
}

fn noted(me: &mut Thread, block: Ptr, size: usize, pc: usize, kind: u64) {
    if !block.is_null() {
        let (pc, family) = asked_for(me, pc);
        let pc = access::caller(me, pc);
        blocks::allocated(block as usize, family);
        record::numbers(note::ALLOCATE, &[block as u64, size as u64, pc as u64, kind]);
    }
}

/// A block that was allocated unseen: by a thread that is not recorded, or inside a function of the C library that the
/// runtime called.
fn made_unseen(block: Ptr) -> Ptr {
    if !block.is_null() && !record::header().is_null() {
        blocks::allocated(block as usize, Family::Unknown);
    }
    block
}

/// After a function that allocates inside the runtime's own call of it: the program's from now on.
pub fn made_inside(me: &mut Thread, block: usize, pc: usize) {
    if blocks::at(block) == Block::Live(Family::Unknown) {
        made(me, block as Ptr, room(block as Ptr), pc);
    }
}

/// Memory for the thread that runs, recorded or not.
fn allocate(align: usize, size: usize) -> Ptr {
    if let Some((block, _)) = own(align, size) {
        return block;
    }
    // SAFETY: the C library's allocator.
    unsafe { if align <= GRAIN { sys::__libc_malloc(size) } else { sys::__libc_memalign(align, size) } }
}

/// The same, where the program says how it is to be aligned.
fn allocate_aligned(align: usize, size: usize) -> Ptr {
    // What is no alignment is for the C library to judge.
    if align.is_power_of_two() && align > GRAIN {
        return allocate(align, size);
    }
    // SAFETY: the C library's allocator.
    if align.is_power_of_two() { allocate(GRAIN, size) } else { unsafe { sys::__libc_memalign(align, size) } }
}

/// The same, all zero.
fn allocate_zeroed(count: usize, size: usize) -> Ptr {
    if let Some(bytes) = count.checked_mul(size)
        && let Some((block, is_zero)) = own(GRAIN, bytes)
    {
        if !is_zero {
            // SAFETY: a block of at least so many bytes.
            unsafe { sys::fill(block.cast(), 0, bytes) };
        }
        return block;
    }
    // SAFETY: the C library's allocator.
    unsafe { sys::__libc_calloc(count, size) }
}

/// From the arena of the thread that runs, if it has one.
#[inline(always)]
fn own(align: usize, size: usize) -> Option<(Ptr, bool)> {
    let me = state::current();
    if me.is_null() {
        return None;
    }
    // SAFETY: this thread's own state.
    arena::allocate(unsafe { (*me).id }, align, size)
}

/// The alignment of every block.
const GRAIN: usize = 16;

unsafe fn free_unseen(block: Ptr) {
    if !record::header().is_null() {
        if blocks::at(block as usize) == Block::Freed {
            sys::say(&[DOUBLE_FREE]);
            // SAFETY: does not return.
            unsafe { process::abort(0) };
        }
        blocks::forgotten(block as usize);
    }
    let me = state::current();
    // SAFETY: this thread's own state, if it is recorded; what the program frees.
    unsafe { blocks::give_back((!me.is_null()).then(|| (*me).id), block) };
}

const DOUBLE_FREE: &str = "free(): double free detected\n";
const INVALID_POINTER: &str = "free(): invalid pointer\n";
const INVALID_SIZE: &str = "free(): invalid size\n";

/// Why no block can begin at an address where none is known to; `None` for one that may be from before the recording.
fn impossible(block: Ptr) -> Option<&'static str> {
    let address = block as usize;
    if !address.is_multiple_of(16) {
        return Some("no block begins at such an address");
    }
    if let Some(before) = blocks::before(address)
        && matches!(blocks::at(before), Block::Live(_) | Block::Freed)
        && address - before < room(before as Ptr)
    {
        return Some("the address is inside a block");
    }
    if arena::contains(address) {
        return Some("no block begins there");
    }
    let local = 0u8;
    let stack = process::mapping(&raw const local as usize);
    stack.is_some_and(|(low, high)| (low..high).contains(&address)).then_some("the address is on the stack")
}

/// Bytes of a block that is to be freed, as far as it is one.
fn bytes(block: Ptr) -> usize {
    match blocks::at(block as usize) {
        Block::Live(_) | Block::Freed => room(block),
        Block::Unknown if impossible(block).is_none() && record::load(block as usize - 8, 8).is_some() => room(block),
        _ => 1,
    }
}

/// Frees a block, in the thread's turn. Leaves the runtime.
unsafe fn give_back(me: &mut Thread, block: Ptr, pc: usize) {
    let (pc, family) = asked_for(me, pc);
    let size = bytes(block);
    // Others may run before this returns: what the block is, is looked at afterwards.
    access::write(me, op::WRITE, block as usize, size.max(1), pc);
    match blocks::at(block as usize) {
        Block::Live(_) if arena::contains(block as usize) && arena::room(block as usize).is_none() => {
            // Somebody wrote over the memory just before it.
            me.unread.size = 0;
            // SAFETY: does not return.
            unsafe { die(me, pc, INVALID_SIZE) }
        }
        Block::Live(allocated) => {
            let mismatch = allocated != family && allocated != Family::Unknown;
            // SAFETY: set once.
            if mismatch && unsafe { OPERATORS_ARE_OURS } {
                let parts = ["allocated by ", allocated.allocates(), ", freed by ", family.frees()];
                objects::fault_told(fault::BAD_FREE, block as usize, pc, 0, &parts);
            }
            objects::freed(me, block as usize, size, pc);
            record::read_back(me);
            record::numbers(note::FREE, &[block as u64, pc as u64, 0]);
            quarantine::keep(block, size);
            state::leave(me);
        }
        Block::Freed | Block::Released => {
            me.unread.size = 0;
            objects::fault_told(fault::DOUBLE_FREE, block as usize, pc, 0, &[]);
            // SAFETY: does not return.
            unsafe { die(me, pc, DOUBLE_FREE) }
        }
        Block::Unknown => {
            if let Some(why) = impossible(block) {
                me.unread.size = 0;
                objects::fault_told(fault::BAD_FREE, block as usize, pc, 0, &[why]);
                // SAFETY: does not return.
                unsafe { die(me, pc, INVALID_POINTER) }
            }
            record::read_back(me);
            record::numbers(note::FREE, &[block as u64, pc as u64, 1]);
            // Left first: if it is no block, the C library ends the program in there.
            state::leave(me);
            // SAFETY: the C library's allocator.
            unsafe { sys::__libc_free(block) };
        }
    }
}

/// Ends the program as the C library would.
unsafe fn die(me: &mut Thread, pc: usize, text: &str) -> ! {
    sys::say(&[text]);
    state::leave(me);
    // SAFETY: the program's own end.
    unsafe { process::abort(pc) }
}

pub unsafe extern "C-unwind" fn malloc(size: usize, pc: usize) -> Ptr {
    let Some(me) = state::enter() else { return made_unseen(allocate(GRAIN, size)) };
    let block = allocate(GRAIN, size);
    made(me, block, size, pc);
    state::leave(me);
    block
}

pub unsafe extern "C-unwind" fn calloc(count: usize, size: usize, pc: usize) -> Ptr {
    let Some(me) = state::enter() else { return made_unseen(allocate_zeroed(count, size)) };
    let block = allocate_zeroed(count, size);
    noted(me, block, count.wrapping_mul(size), pc, allocated::ZEROED);
    state::leave(me);
    block
}

/// Always a new block: the old one's variables and the new one's stay apart.
pub unsafe extern "C-unwind" fn realloc(old: Ptr, size: usize, pc: usize) -> Ptr {
    let Some(me) = state::enter() else {
        // SAFETY: the C library's allocator; the old block is given to it.
        return unsafe { realloc_unseen(old, size) };
    };
    // SAFETY: as above; both blocks have at least so many bytes.
    unsafe {
        let block = if size == 0 && !old.is_null() { std::ptr::null_mut() } else { allocate(GRAIN, size) };
        made(me, block, size, pc);
        if old.is_null() || (block.is_null() && size > 0) {
            state::leave(me);
            return block;
        }
        let kept = bytes(old).min(size);
        if kept > 0 {
            access::read(me, op::READ, old as usize, kept, pc);
            access::write(me, op::WRITE, block as usize, kept, pc);
            sys::copy_up(block.cast(), old.cast(), kept);
            record::read_back(me);
        }
        give_back(me, old, pc);
        block
    }
}

unsafe fn realloc_unseen(old: Ptr, size: usize) -> Ptr {
    if arena::contains(old as usize) {
        let block = if size == 0 { std::ptr::null_mut() } else { made_unseen(allocate(GRAIN, size)) };
        if !block.is_null() || size == 0 {
            // SAFETY: both blocks have at least so many bytes; the old one is given back.
            unsafe {
                if !block.is_null() {
                    sys::copy_up(block.cast(), old.cast(), room(old).min(size));
                }
                free_unseen(old);
            }
        }
        return block;
    }
    if record::header().is_null() {
        // SAFETY: passed on.
        return unsafe { sys::__libc_realloc(old, size) };
    }
    // SAFETY: the C library's allocator; both blocks have at least so many bytes.
    unsafe {
        if !old.is_null() && blocks::at(old as usize) == Block::Freed {
            free_unseen(old);
        }
        let block = sys::__libc_realloc(old, size);
        if !old.is_null() && (!block.is_null() || size == 0) {
            blocks::forgotten(old as usize);
        }
        made_unseen(block)
    }
}

pub unsafe extern "C-unwind" fn reallocarray(old: Ptr, count: usize, size: usize, pc: usize) -> Ptr {
    match count.checked_mul(size) {
        // SAFETY: passed on.
        Some(size) => unsafe { realloc(old, size, pc) },
        None => {
            sys::fail(sys::ENOMEM);
            std::ptr::null_mut()
        }
    }
}

pub unsafe extern "C-unwind" fn free(block: Ptr, pc: usize) {
    if block.is_null() {
        return;
    }
    // SAFETY: what the program frees.
    unsafe {
        match state::enter() {
            Some(me) => give_back(me, block, pc),
            None => free_unseen(block),
        }
    }
}

pub unsafe extern "C-unwind" fn memalign(align: usize, size: usize, pc: usize) -> Ptr {
    let Some(me) = state::enter() else { return made_unseen(allocate_aligned(align, size)) };
    let block = allocate_aligned(align, size);
    made(me, block, size, pc);
    state::leave(me);
    block
}

pub unsafe extern "C-unwind" fn posix_memalign(out: *mut Ptr, align: usize, size: usize, pc: usize) -> i32 {
    if !align.is_power_of_two() || align < size_of::<Ptr>() {
        return sys::EINVAL;
    }
    // SAFETY: passed on.
    let block = unsafe { memalign(align, size, pc) };
    if block.is_null() {
        return sys::ENOMEM;
    }
    // SAFETY: the program's place for the result.
    unsafe { *out = block };
    0
}

pub unsafe extern "C-unwind" fn valloc(size: usize, pc: usize) -> Ptr {
    // SAFETY: passed on.
    unsafe { memalign(4096, size, pc) }
}

pub unsafe extern "C-unwind" fn pvalloc(size: usize, pc: usize) -> Ptr {
    // SAFETY: passed on.
    unsafe { valloc(size.saturating_add(4095) & !4095, pc) }
}

/// Lets `malloc` and `free`, which a function of another library calls, name the caller of that function.
pub fn on_behalf<T>(pc: usize, family: Family, work: impl FnOnce() -> T) -> T {
    /// Puts things back as they were, also when `new` throws.
    struct Behalf(*mut Thread, usize, Family);
    impl Drop for Behalf {
        fn drop(&mut self) {
            // SAFETY: this thread's own state.
            unsafe { ((*self.0).allocation_pc, (*self.0).allocation_family) = (self.1, self.2) };
        }
    }
    let me = state::current();
    if me.is_null() {
        return work();
    }
    // SAFETY: this thread's own state.
    let before = unsafe { ((*me).allocation_pc, (*me).allocation_family) };
    // `new[]` calls `new`: who called the outer one is what counts. But a function of the C library may call back.
    if before.0 != 0 && (before.1 != Family::Malloc || family == Family::Malloc) {
        return work();
    }
    // SAFETY: as above.
    unsafe { ((*me).allocation_pc, (*me).allocation_family) = (pc, family) };
    let _behalf = Behalf(me, before.0, before.1);
    work()
}

macro_rules! operators {
    ($($name:ident($($arg:ident),*) $($result:ty)?, $family:ident $symbol:literal;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* pc: usize) $(-> $result)? {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                type Operator = unsafe extern "C-unwind" fn($(operators!(@ $arg)),*) $(-> $result)?;
                // SAFETY: libstdc++'s operator, with its own arguments.
                on_behalf(pc, Family::$family, || unsafe {
                    std::mem::transmute::<Ptr, Operator>(REAL.required())($($arg),*)
                })
            }
        )*
    };
    (@ $arg:ident) => { usize };
}

operators! {
    new(size) Ptr, New b"_Znwm\0";
    new_array(size) Ptr, NewArray b"_Znam\0";
    new_nothrow(size, tag) Ptr, New b"_ZnwmRKSt9nothrow_t\0";
    new_array_nothrow(size, tag) Ptr, NewArray b"_ZnamRKSt9nothrow_t\0";
    new_aligned(size, align) Ptr, New b"_ZnwmSt11align_val_t\0";
    new_array_aligned(size, align) Ptr, NewArray b"_ZnamSt11align_val_t\0";
    delete(block), New b"_ZdlPv\0";
    delete_array(block), NewArray b"_ZdaPv\0";
    delete_sized(block, size), New b"_ZdlPvm\0";
    delete_array_sized(block, size), NewArray b"_ZdaPvm\0";
    delete_aligned(block, align), New b"_ZdlPvSt11align_val_t\0";
    delete_array_aligned(block, align), NewArray b"_ZdaPvSt11align_val_t\0";
    delete_sized_aligned(block, size, align), New b"_ZdlPvmSt11align_val_t\0";
    delete_array_sized_aligned(block, size, align), NewArray b"_ZdaPvmSt11align_val_t\0";
    new_aligned_nothrow(size, align, tag) Ptr, New b"_ZnwmSt11align_val_tRKSt9nothrow_t\0";
    new_array_aligned_nothrow(size, align, tag) Ptr, NewArray b"_ZnamSt11align_val_tRKSt9nothrow_t\0";
    delete_nothrow(block, tag), New b"_ZdlPvRKSt9nothrow_t\0";
    delete_array_nothrow(block, tag), NewArray b"_ZdaPvRKSt9nothrow_t\0";
    delete_aligned_nothrow(block, align, tag), New b"_ZdlPvSt11align_val_tRKSt9nothrow_t\0";
    delete_array_aligned_nothrow(block, align, tag), NewArray b"_ZdaPvSt11align_val_tRKSt9nothrow_t\0";
}

entry! {
    malloc(1) => malloc;
    calloc(2) => calloc;
    realloc(2) => realloc;
    reallocarray(3) => reallocarray;
    free(1) => free;
    cfree(1) => free;
    memalign(2) => memalign;
    aligned_alloc(2) => memalign;
    posix_memalign(3) => posix_memalign;
    valloc(1) => valloc;
    pvalloc(1) => pvalloc;
    malloc_usable_size(1) => usable_size;
    _Znwm(1) => new;
    _Znam(1) => new_array;
    _ZnwmRKSt9nothrow_t(2) => new_nothrow;
    _ZnamRKSt9nothrow_t(2) => new_array_nothrow;
    _ZnwmSt11align_val_t(2) => new_aligned;
    _ZnamSt11align_val_t(2) => new_array_aligned;
    _ZdlPv(1) => delete;
    _ZdaPv(1) => delete_array;
    _ZdlPvm(2) => delete_sized;
    _ZdaPvm(2) => delete_array_sized;
    _ZdlPvSt11align_val_t(2) => delete_aligned;
    _ZdaPvSt11align_val_t(2) => delete_array_aligned;
    _ZdlPvmSt11align_val_t(3) => delete_sized_aligned;
    _ZdaPvmSt11align_val_t(3) => delete_array_sized_aligned;
    _ZnwmSt11align_val_tRKSt9nothrow_t(3) => new_aligned_nothrow;
    _ZnamSt11align_val_tRKSt9nothrow_t(3) => new_array_aligned_nothrow;
    _ZdlPvRKSt9nothrow_t(2) => delete_nothrow;
    _ZdaPvRKSt9nothrow_t(2) => delete_array_nothrow;
    _ZdlPvSt11align_val_tRKSt9nothrow_t(3) => delete_aligned_nothrow;
    _ZdaPvSt11align_val_tRKSt9nothrow_t(3) => delete_array_aligned_nothrow;
}
