//! The rest of the sanitizers' interface: what a program may ask a sanitizer for that Portent is not.
//!
//! Reports, symbols, coverage and statistics of an allocator are not kept inside the program: these functions answer as a
//! sanitizer does that has nothing to say. Barriers of ThreadSanitizer's own tests are barriers ([`crate::semaphore`]). Hooks that
//! the program defines are called when recording begins and when the program calls `exit`. The hooks around system calls are in
//! [`crate::syscall_hooks`].

use crate::entry::entry;
use crate::real::{Ptr, Real};
use crate::{semaphore, state, sys};
use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

global_asm!(".weak __tsan_on_initialize", ".weak __tsan_on_finalize");

/// Calls the program's hook for the beginning, if it has one.
pub fn on_initialize() {
    let hook: usize;
    // SAFETY: reads the address of a weak symbol, which is zero if nobody defines it.
    unsafe {
        asm!("mov {0}, qword ptr [rip + __tsan_on_initialize@GOTPCREL]", out(reg) hook, options(nostack, readonly));
        if hook != 0 {
            std::mem::transmute::<usize, extern "C-unwind" fn()>(hook)();
        }
    }
}

/// Calls the program's hook for the end, if it has one. What was found is not known yet, and changes no exit status.
pub fn on_finalize() {
    static CALLED: AtomicBool = AtomicBool::new(false);
    if CALLED.swap(true, Ordering::SeqCst) {
        return;
    }
    let hook: usize;
    // SAFETY: as above.
    unsafe {
        asm!("mov {0}, qword ptr [rip + __tsan_on_finalize@GOTPCREL]", out(reg) hook, options(nostack, readonly));
        if hook != 0 {
            std::mem::transmute::<usize, extern "C-unwind" fn(i32) -> i32>(hook)(0);
        }
    }
}

pub extern "C-unwind" fn nothing() -> usize {
    0
}

/// Whether the caller is the first to die.
pub extern "C-unwind" fn acquire_crash_state(_pc: usize) -> i32 {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    i32::from(!TAKEN.swap(true, Ordering::SeqCst))
}

/// Every container is as it should be.
pub extern "C-unwind" fn yes() -> i32 {
    1
}

pub unsafe extern "C-unwind" fn allocated_size(block: Ptr, _pc: usize) -> usize {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"malloc_usable_size\0");
    // SAFETY: the C library's function, with the program's block.
    unsafe { std::mem::transmute::<Ptr, extern "C" fn(Ptr) -> usize>(REAL.required())(block) }
}

pub extern "C-unwind" fn owns(block: usize, _pc: usize) -> i32 {
    i32::from(block != 0)
}

pub extern "C-unwind" fn estimated_size(size: usize, _pc: usize) -> usize {
    size
}

/// Nothing has a symbol: an empty list of texts.
pub unsafe extern "C-unwind" fn symbolize(_at: usize, _format: usize, out: *mut u8, size: usize, _pc: usize) {
    if size > 0 {
        // SAFETY: the program's buffer, of that size.
        unsafe { *out = 0 };
    }
}

/// What an address is: nobody knows.
pub unsafe extern "C-unwind" fn locate(
    _at: usize,
    name: *mut u8,
    size: usize,
    region: *mut usize,
    region_size: *mut usize,
    _pc: usize,
) -> *const i8 {
    // SAFETY: places for results that the program passes, or null.
    unsafe {
        if size > 0 && !name.is_null() {
            *name = 0;
        }
        for place in [region, region_size] {
            if !place.is_null() {
                *place = 0;
            }
        }
    }
    c"".as_ptr()
}

/// A barrier of ThreadSanitizer's own tests: a word. Without a recording, threads needed and threads that have come.
pub unsafe extern "C-unwind" fn barrier_init(at: *mut u64, count: u32, _pc: usize) {
    // SAFETY: the program's word.
    unsafe { at.write(u64::from(count) << 32) };
    if let Some(me) = state::enter() {
        semaphore::make_barrier(at as usize, count);
        state::leave(me);
    }
}

pub unsafe extern "C-unwind" fn barrier_wait(at: *mut u64, pc: usize) {
    if let Some(me) = state::enter() {
        semaphore::pass_barrier(me, at as usize, pc);
        return state::leave(me);
    }
    // SAFETY: the program's word.
    let word = unsafe { AtomicU64::from_ptr(at) };
    let before = word.fetch_add(1, Ordering::SeqCst);
    let (count, come) = ((before >> 32).max(1), before & u64::from(u32::MAX));
    let full = (come / count + 1) * count;
    while word.load(Ordering::SeqCst) & u64::from(u32::MAX) < full {
        // SAFETY: no arguments.
        unsafe { sys::call3(sys::SYS_SCHED_YIELD, 0, 0, 0) };
    }
}

entry! {
    __tsan_testonly_barrier_init(2) => barrier_init;
    __tsan_testonly_barrier_wait(1) => barrier_wait;
    __sanitizer_acquire_crash_state(0) => acquire_crash_state;
    __sanitizer_verify_contiguous_container(0) => yes;
    __sanitizer_get_allocated_size(1) => allocated_size;
    __sanitizer_get_ownership(1) => owns;
    __sanitizer_get_estimated_allocated_size(1) => estimated_size;
    __sanitizer_symbolize_pc(4) => symbolize;
    __sanitizer_symbolize_global(4) => symbolize;
    __tsan_locate_address(5) => locate;
}

entry! {
    __tsan_testonly_shadow_stack_current_size(0) => nothing;
    __tsan_get_current_report(0) => nothing;
    __tsan_get_report_data(0) => nothing;
    __tsan_get_report_tag(0) => nothing;
    __tsan_get_report_stack(0) => nothing;
    __tsan_get_report_mop(0) => nothing;
    __tsan_get_report_loc(0) => nothing;
    __tsan_get_report_loc_object_type(0) => nothing;
    __tsan_get_report_mutex(0) => nothing;
    __tsan_get_report_thread(0) => nothing;
    __tsan_get_report_unique_tid(0) => nothing;
    __tsan_get_alloc_stack(0) => nothing;
    __sanitizer_set_report_path(0) => nothing;
    __sanitizer_set_report_fd(0) => nothing;
    __sanitizer_get_report_path(0) => nothing;
    __sanitizer_sandbox_on_notify(0) => nothing;
    __sanitizer_report_error_summary(0) => nothing;
    __sanitizer_set_death_callback(0) => nothing;
    __sanitizer_print_stack_trace(0) => nothing;
    __sanitizer_print_memory_profile(0) => nothing;
    __sanitizer_get_module_and_offset_for_pc(0) => nothing;
    __sanitizer_annotate_contiguous_container(0) => nothing;
    __sanitizer_annotate_double_ended_contiguous_container(0) => nothing;
    __sanitizer_contiguous_container_find_bad_address(0) => nothing;
    __sanitizer_start_switch_fiber(0) => nothing;
    __sanitizer_finish_switch_fiber(0) => nothing;
    __sanitizer_install_malloc_and_free_hooks(0) => nothing;
    __sanitizer_get_current_allocated_bytes(0) => nothing;
    __sanitizer_get_heap_size(0) => nothing;
    __sanitizer_get_free_bytes(0) => nothing;
    __sanitizer_get_unmapped_bytes(0) => nothing;
    __sanitizer_purge_allocator(0) => nothing;
    __sanitizer_dump_coverage(0) => nothing;
    __sanitizer_dump_trace_pc_guard_coverage(0) => nothing;
    __sanitizer_cov_dump(0) => nothing;
    __sanitizer_cov_reset(0) => nothing;
    __sanitizer_cov_pcs_init(0) => nothing;
    __sanitizer_cov_8bit_counters_init(0) => nothing;
    __sanitizer_cov_bool_flag_init(0) => nothing;
    __sanitizer_cov_trace_pc(0) => nothing;
    __sanitizer_cov_trace_pc_guard(0) => nothing;
    __sanitizer_cov_trace_pc_guard_init(0) => nothing;
    __sanitizer_cov_trace_pc_indir(0) => nothing;
    __sanitizer_cov_trace_cmp(0) => nothing;
    __sanitizer_cov_trace_cmp1(0) => nothing;
    __sanitizer_cov_trace_cmp2(0) => nothing;
    __sanitizer_cov_trace_cmp4(0) => nothing;
    __sanitizer_cov_trace_cmp8(0) => nothing;
    __sanitizer_cov_trace_const_cmp1(0) => nothing;
    __sanitizer_cov_trace_const_cmp2(0) => nothing;
    __sanitizer_cov_trace_const_cmp4(0) => nothing;
    __sanitizer_cov_trace_const_cmp8(0) => nothing;
    __sanitizer_cov_trace_div4(0) => nothing;
    __sanitizer_cov_trace_div8(0) => nothing;
    __sanitizer_cov_trace_gep(0) => nothing;
    __sanitizer_cov_trace_switch(0) => nothing;
}
