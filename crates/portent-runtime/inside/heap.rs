//! Allocation. The memory is the C library's; the runtime notes where and from where, so that heap objects have names and
//! a freed and reused address is a new variable.
//!
//! Freeing is recorded as a write of the whole block: an access that can come after it is a race with it.

use crate::entry::entry;
use crate::log::{note, op};
use crate::real::{Ptr, Real};
use crate::state::{self, Thread};
use crate::{access, record, sys};

/// The room of a block, as the C library's own allocator says: another one that the program is linked with defines the
/// same name, but our blocks are not its.
fn room(block: Ptr) -> usize {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::of_c_library(b"malloc_usable_size\0");
    // SAFETY: the C library's function, for one of its blocks.
    unsafe { std::mem::transmute::<Ptr, unsafe extern "C" fn(Ptr) -> usize>(REAL.required())(block) }
}

pub unsafe extern "C-unwind" fn usable_size(block: Ptr, _pc: usize) -> usize {
    room(block)
}

fn made(me: &mut Thread, block: Ptr, size: usize, pc: usize) {
    if !block.is_null() {
        let pc = if me.allocation_pc != 0 { me.allocation_pc } else { pc };
        record::numbers(note::ALLOCATE, &[block as u64, size as u64, pc as u64, 0]);
    }
}

fn gone(me: &mut Thread, block: Ptr, pc: usize) {
    let size = room(block);
    let pc = if me.allocation_pc != 0 { me.allocation_pc } else { pc };
    access::write(me, op::WRITE, block as usize, size.max(1), pc);
    record::read_back(me);
    record::numbers(note::FREE, &[block as u64]);
}

pub unsafe extern "C-unwind" fn malloc(size: usize, pc: usize) -> Ptr {
    // SAFETY: the C library's allocator.
    let allocate = || unsafe { sys::__libc_malloc(size) };
    let Some(me) = state::enter() else { return allocate() };
    let block = allocate();
    made(me, block, size, pc);
    state::leave(me);
    block
}

pub unsafe extern "C-unwind" fn calloc(count: usize, size: usize, pc: usize) -> Ptr {
    // SAFETY: the C library's allocator.
    let allocate = || unsafe { sys::__libc_calloc(count, size) };
    let Some(me) = state::enter() else { return allocate() };
    let block = allocate();
    made(me, block, count.wrapping_mul(size), pc);
    state::leave(me);
    block
}

/// Always a new block: the old one's variables and the new one's stay apart.
pub unsafe extern "C-unwind" fn realloc(old: Ptr, size: usize, pc: usize) -> Ptr {
    // SAFETY: the C library's allocator.
    let Some(me) = state::enter() else { return unsafe { sys::__libc_realloc(old, size) } };
    // SAFETY: as above; both blocks have at least so many bytes.
    unsafe {
        let block = if size == 0 && !old.is_null() { std::ptr::null_mut() } else { sys::__libc_malloc(size) };
        made(me, block, size, pc);
        if !old.is_null() && (!block.is_null() || size == 0) {
            let kept = room(old).min(size);
            if kept > 0 {
                access::read(me, op::READ, old as usize, kept, pc);
                access::write(me, op::WRITE, block as usize, kept, pc);
                sys::copy_up(block.cast(), old.cast(), kept);
                record::read_back(me);
            }
            gone(me, old, pc);
            sys::__libc_free(old);
        }
        state::leave(me);
        block
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
    if !block.is_null()
        && let Some(me) = state::enter()
    {
        gone(me, block, pc);
        // SAFETY: the C library's allocator.
        unsafe { sys::__libc_free(block) };
        return state::leave(me);
    }
    // SAFETY: the C library's allocator.
    unsafe { sys::__libc_free(block) };
}

pub unsafe extern "C-unwind" fn memalign(align: usize, size: usize, pc: usize) -> Ptr {
    // SAFETY: the C library's allocator.
    let allocate = || unsafe { sys::__libc_memalign(align, size) };
    let Some(me) = state::enter() else { return allocate() };
    let block = allocate();
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

/// Lets `malloc`, which libstdc++'s `operator new` calls, name the caller of `new`.
fn on_behalf<T>(pc: usize, work: impl FnOnce() -> T) -> T {
    let me = state::current();
    // SAFETY: null or this thread's own state.
    unsafe {
        if !me.is_null() {
            (*me).allocation_pc = pc;
        }
        let result = work();
        if !me.is_null() {
            (*me).allocation_pc = 0;
        }
        result
    }
}

macro_rules! operators {
    ($($name:ident($($arg:ident),*) $($result:ty)?, $symbol:literal;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($($arg: usize,)* pc: usize) $(-> $result)? {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                type Operator = unsafe extern "C-unwind" fn($(operators!(@ $arg)),*) $(-> $result)?;
                // SAFETY: libstdc++'s operator, with its own arguments.
                on_behalf(pc, || unsafe { std::mem::transmute::<Ptr, Operator>(REAL.required())($($arg),*) })
            }
        )*
    };
    (@ $arg:ident) => { usize };
}

operators! {
    new(size) Ptr, b"_Znwm\0";
    new_array(size) Ptr, b"_Znam\0";
    new_nothrow(size, tag) Ptr, b"_ZnwmRKSt9nothrow_t\0";
    new_array_nothrow(size, tag) Ptr, b"_ZnamRKSt9nothrow_t\0";
    new_aligned(size, align) Ptr, b"_ZnwmSt11align_val_t\0";
    new_array_aligned(size, align) Ptr, b"_ZnamSt11align_val_t\0";
    delete(block), b"_ZdlPv\0";
    delete_array(block), b"_ZdaPv\0";
    delete_sized(block, size), b"_ZdlPvm\0";
    delete_array_sized(block, size), b"_ZdaPvm\0";
    delete_aligned(block, align), b"_ZdlPvSt11align_val_t\0";
    delete_array_aligned(block, align), b"_ZdaPvSt11align_val_t\0";
    delete_sized_aligned(block, size, align), b"_ZdlPvmSt11align_val_t\0";
    delete_array_sized_aligned(block, size, align), b"_ZdaPvmSt11align_val_t\0";
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
}
