//! Atomic operations: here the runtime performs them.
//!
//! While recording only the holder of the token runs; they are real atomic instructions all the same, because the same
//! code serves a program that is not recorded.

use crate::entry::entry;
use crate::log::op;
use crate::spin::{self, Look};
use crate::state::{self, Pending, Thread};
use crate::{record, sched};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// Equal reads in a row before a thread counts as spinning, and lets others run.
const SPINS: u32 = 30;

/// C's memory orders to those of the trace format.
fn read_order(order: i32) -> u16 {
    match order & 0x7fff {
        0 => 1,
        1 => 2,
        2 => 3,
        _ => 4,
    }
}
fn write_order(order: i32) -> u16 {
    match order & 0x7fff {
        0 => 1,
        3 | 4 => 2,
        _ => 3,
    }
}
fn update_order(order: i32) -> u16 {
    (order & 0x7fff).clamp(0, 5) as u16
}

#[inline(always)]
fn turn(me: &mut Thread, op: u16, address: usize, size: usize, pc: usize) {
    sched::before(me, Pending { op, address, size, pc, ..Pending::default() });
}

/// Before an operation that leaves what is there: others may have to change it first.
#[inline(always)]
fn look(me: &mut Thread, op: u16, address: usize, size: usize, pc: usize) {
    if let Some(value) = record::load(address, size) {
        spin::look(me, Look::sees(op, address, size, value, pc), true);
    }
}

/// The order that counts: none, where the program wants its synchronisation to be ignored.
#[inline(always)]
fn wanted(me: &Thread, order: i32) -> i32 {
    if me.ignores_order == 0 { order } else { 0 }
}

/// In the code of an annotated lock: the operation is how the lock is made, and no event. The lock is free, as far as its
/// annotations say; where they say too little, the thread waits here for somebody who has to run.
#[cold]
#[inline(never)]
fn quietly<T>(me: &mut Thread, pc: usize, perform: impl FnOnce() -> T) -> T {
    sched::idle(me, sched::UNSEEN, pc);
    let result = perform();
    state::leave(me);
    result
}

/// After an atomic read: a thread that reads the same again and again waits for somebody.
#[inline]
fn note_spin(me: &mut Thread, address: usize, value: u64, pc: usize) {
    if me.same == (address, pc, value) {
        me.same_times += 1;
        if me.same_times >= SPINS {
            me.same_times = 0;
            sched::yield_turn(me);
        }
    } else {
        me.same = (address, pc, value);
        me.same_times = 0;
    }
}

macro_rules! atomics {
    ($($type:ident $atomic:ident: $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident $xor:ident
       $nand:ident $strong:ident $val:ident;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $load(at: *mut $type, order: i32, pc: usize) -> $type {
                // SAFETY: the compiler passes the address of an atomic object.
                let cell = unsafe { $atomic::from_ptr(at) };
                let Some(me) = state::enter() else { return cell.load(SeqCst) };
                if me.quiet > 0 {
                    return quietly(me, pc, || cell.load(SeqCst));
                }
                let op = op::READ + read_order(wanted(me, order));
                turn(me, op, at as usize, size_of::<$type>(), pc);
                look(me, op, at as usize, size_of::<$type>(), pc);
                let value = cell.load(SeqCst);
                record::access(me, op, at as usize, size_of::<$type>(), Some(value as u64), pc);
                note_spin(me, at as usize, value as u64, pc);
                state::leave(me);
                value
            }
            pub unsafe extern "C-unwind" fn $store(at: *mut $type, value: $type, order: i32, pc: usize) {
                // SAFETY: as above.
                let cell = unsafe { $atomic::from_ptr(at) };
                let Some(me) = state::enter() else { return cell.store(value, SeqCst) };
                if me.quiet > 0 {
                    return quietly(me, pc, || cell.store(value, SeqCst));
                }
                let op = op::WRITE + write_order(wanted(me, order));
                turn(me, op, at as usize, size_of::<$type>(), pc);
                cell.store(value, SeqCst);
                record::access(me, op, at as usize, size_of::<$type>(), Some(value as u64), pc);
                state::leave(me);
            }
            atomics!(@update $type $atomic $exchange, |cell: &$atomic, value| cell.swap(value, SeqCst), |_old, value| value);
            atomics!(@update $type $atomic $add, |cell: &$atomic, value| cell.fetch_add(value, SeqCst), |old: $type, value| old.wrapping_add(value));
            atomics!(@update $type $atomic $sub, |cell: &$atomic, value| cell.fetch_sub(value, SeqCst), |old: $type, value| old.wrapping_sub(value));
            atomics!(@update $type $atomic $and, |cell: &$atomic, value| cell.fetch_and(value, SeqCst), |old: $type, value| old & value);
            atomics!(@update $type $atomic $or, |cell: &$atomic, value| cell.fetch_or(value, SeqCst), |old: $type, value| old | value);
            atomics!(@update $type $atomic $xor, |cell: &$atomic, value| cell.fetch_xor(value, SeqCst), |old: $type, value| old ^ value);
            atomics!(@update $type $atomic $nand, |cell: &$atomic, value| cell.fetch_nand(value, SeqCst), |old: $type, value: $type| !(old & value));
            pub unsafe extern "C-unwind" fn $strong(at: *mut $type, expected: *mut $type, new: $type, success: i32, _failure: i32, pc: usize) -> i32 {
                // SAFETY: the compiler passes valid addresses.
                unsafe {
                    let seen = $val(at, *expected, new, success, _failure, pc);
                    let same = seen == *expected;
                    *expected = seen;
                    i32::from(same)
                }
            }
            pub unsafe extern "C-unwind" fn $val(at: *mut $type, expected: $type, new: $type, success: i32, failure: i32, pc: usize) -> $type {
                // SAFETY: as above.
                let cell = unsafe { $atomic::from_ptr(at) };
                let exchange = || cell.compare_exchange(expected, new, SeqCst, SeqCst).unwrap_or_else(|seen| seen);
                let Some(me) = state::enter() else { return exchange() };
                if me.quiet > 0 {
                    return quietly(me, pc, exchange);
                }
                let op = op::UPDATE + update_order(wanted(me, success));
                turn(me, op, at as usize, size_of::<$type>(), pc);
                if cell.load(SeqCst) != expected {
                    look(me, op, at as usize, size_of::<$type>(), pc);
                }
                let seen = exchange();
                if seen == expected {
                    record::access(me, op, at as usize, size_of::<$type>(), Some(new as u64), pc);
                } else {
                    record::access(me, op::READ + read_order(wanted(me, failure)), at as usize, size_of::<$type>(), Some(seen as u64), pc);
                    note_spin(me, at as usize, seen as u64, pc);
                }
                state::leave(me);
                seen
            }
        )*
    };
    (@update $type:ident $atomic:ident $name:ident, $perform:expr, $result:expr) => {
        pub unsafe extern "C-unwind" fn $name(at: *mut $type, value: $type, order: i32, pc: usize) -> $type {
            // SAFETY: the compiler passes the address of an atomic object.
            let cell = unsafe { $atomic::from_ptr(at) };
            let Some(me) = state::enter() else { return $perform(cell, value) };
            if me.quiet > 0 {
                return quietly(me, pc, || $perform(cell, value));
            }
            let op = op::UPDATE + update_order(wanted(me, order));
            turn(me, op, at as usize, size_of::<$type>(), pc);
            let there: $type = cell.load(SeqCst);
            if $result(there, value) == there {
                look(me, op, at as usize, size_of::<$type>(), pc);
            }
            let old: $type = $perform(cell, value);
            let new: $type = $result(old, value);
            record::access(me, op, at as usize, size_of::<$type>(), Some(new as u64), pc);
            state::leave(me);
            old
        }
    };
}

atomics! {
    u8 AtomicU8: load8 store8 exchange8 add8 sub8 and8 or8 xor8 nand8 strong8 val8;
    u16 AtomicU16: load16 store16 exchange16 add16 sub16 and16 or16 xor16 nand16 strong16 val16;
    u32 AtomicU32: load32 store32 exchange32 add32 sub32 and32 or32 xor32 nand32 strong32 val32;
    u64 AtomicU64: load64 store64 exchange64 add64 sub64 and64 or64 xor64 nand64 strong64 val64;
    u128 Atomic128: load128 store128 exchange128 add128 sub128 and128 or128 xor128 nand128 strong128 val128;
}

/// A 16-byte atomic object, through `lock cmpxchg16b`, which stable Rust has no type for.
#[repr(C, align(16))]
struct Atomic128(std::cell::UnsafeCell<u128>);

impl Atomic128 {
    /// # Safety
    /// As the other atomics' `from_ptr`.
    unsafe fn from_ptr<'a>(at: *mut u128) -> &'a Self {
        // SAFETY: the caller vouches for the address.
        unsafe { &*at.cast() }
    }
    fn compare_exchange(
        &self,
        old: u128,
        new: u128,
        _: std::sync::atomic::Ordering,
        _: std::sync::atomic::Ordering,
    ) -> Result<u128, u128> {
        let (mut low, mut high) = (old as u64, (old >> 64) as u64);
        let changed: u8;
        // SAFETY: an aligned 16-byte object; rbx, which the instruction needs, is put back.
        unsafe {
            std::arch::asm!("xchg rbx, rsi", "lock cmpxchg16b [rdi]", "sete r8b", "mov rbx, rsi",
                inout("rsi") new as u64 => _, in("rdi") self.0.get(), out("r8b") changed,
                inout("rax") low, inout("rdx") high, in("rcx") (new >> 64) as u64, options(nostack));
        }
        let seen = u128::from(low) | u128::from(high) << 64;
        if changed != 0 { Ok(seen) } else { Err(seen) }
    }
    fn update(&self, change: impl Fn(u128) -> u128) -> u128 {
        let mut old = 0;
        loop {
            match self.compare_exchange(old, change(old), SeqCst, SeqCst) {
                Ok(seen) => return seen,
                Err(seen) => old = seen,
            }
        }
    }
    fn load(&self, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|old| old)
    }
    fn store(&self, value: u128, _: std::sync::atomic::Ordering) {
        self.update(|_| value);
    }
    fn swap(&self, value: u128, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|_| value)
    }
    fn fetch_add(&self, value: u128, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|old| old.wrapping_add(value))
    }
    fn fetch_sub(&self, value: u128, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|old| old.wrapping_sub(value))
    }
    fn fetch_and(&self, value: u128, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|old| old & value)
    }
    fn fetch_or(&self, value: u128, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|old| old | value)
    }
    fn fetch_xor(&self, value: u128, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|old| old ^ value)
    }
    fn fetch_nand(&self, value: u128, _: std::sync::atomic::Ordering) -> u128 {
        self.update(|old| !(old & value))
    }
}

/// A fence orders nothing where one thread runs at a time. It is an event because the language's order between threads may
/// hang on it.
pub extern "C-unwind" fn thread_fence(order: i32, pc: usize) {
    std::sync::atomic::fence(SeqCst);
    let op = match order & 0x7fff {
        0 => return,
        1 | 2 => op::FENCE_ACQUIRE,
        3 => op::FENCE_RELEASE,
        _ => op::FENCE,
    };
    if let Some(me) = state::enter() {
        if me.quiet == 0 && me.ignores_order == 0 {
            turn(me, op, 0, 0, pc);
            record::plain(me, op, 0, pc);
        }
        state::leave(me);
    }
}

/// Orders a thread and its own signal handlers, which never run in the middle of anything here.
pub extern "C-unwind" fn signal_fence() {
    std::sync::atomic::compiler_fence(SeqCst);
}

entry! {
    looking
    __tsan_atomic8_load(2) => load8;
    __tsan_atomic8_exchange(3) => exchange8;
    __tsan_atomic8_fetch_add(3) => add8;
    __tsan_atomic8_fetch_sub(3) => sub8;
    __tsan_atomic8_fetch_and(3) => and8;
    __tsan_atomic8_fetch_or(3) => or8;
    __tsan_atomic8_fetch_xor(3) => xor8;
    __tsan_atomic8_fetch_nand(3) => nand8;
    __tsan_atomic8_compare_exchange_strong(5) => strong8;
    __tsan_atomic8_compare_exchange_weak(5) => strong8;
    __tsan_atomic8_compare_exchange_val(5) => val8;
    __tsan_atomic16_load(2) => load16;
    __tsan_atomic16_exchange(3) => exchange16;
    __tsan_atomic16_fetch_add(3) => add16;
    __tsan_atomic16_fetch_sub(3) => sub16;
    __tsan_atomic16_fetch_and(3) => and16;
    __tsan_atomic16_fetch_or(3) => or16;
    __tsan_atomic16_fetch_xor(3) => xor16;
    __tsan_atomic16_fetch_nand(3) => nand16;
    __tsan_atomic16_compare_exchange_strong(5) => strong16;
    __tsan_atomic16_compare_exchange_weak(5) => strong16;
    __tsan_atomic16_compare_exchange_val(5) => val16;
    __tsan_atomic32_load(2) => load32;
    __tsan_atomic32_exchange(3) => exchange32;
    __tsan_atomic32_fetch_add(3) => add32;
    __tsan_atomic32_fetch_sub(3) => sub32;
    __tsan_atomic32_fetch_and(3) => and32;
    __tsan_atomic32_fetch_or(3) => or32;
    __tsan_atomic32_fetch_xor(3) => xor32;
    __tsan_atomic32_fetch_nand(3) => nand32;
    __tsan_atomic32_compare_exchange_strong(5) => strong32;
    __tsan_atomic32_compare_exchange_weak(5) => strong32;
    __tsan_atomic32_compare_exchange_val(5) => val32;
    __tsan_atomic64_load(2) => load64;
    __tsan_atomic64_exchange(3) => exchange64;
    __tsan_atomic64_fetch_add(3) => add64;
    __tsan_atomic64_fetch_sub(3) => sub64;
    __tsan_atomic64_fetch_and(3) => and64;
    __tsan_atomic64_fetch_or(3) => or64;
    __tsan_atomic64_fetch_xor(3) => xor64;
    __tsan_atomic64_fetch_nand(3) => nand64;
    __tsan_atomic64_compare_exchange_strong(5) => strong64;
    __tsan_atomic64_compare_exchange_weak(5) => strong64;
    __tsan_atomic64_compare_exchange_val(5) => val64;
}

entry! {
    __tsan_atomic8_store(3) => store8;
    __tsan_atomic16_store(3) => store16;
    __tsan_atomic32_store(3) => store32;
    __tsan_atomic64_store(3) => store64;
    __tsan_atomic_thread_fence(1) => thread_fence;
    __tsan_atomic_signal_fence(0) => signal_fence;
}

// A 16-byte value takes two argument registers, which changes where the return address goes.
entry! {
    __tsan_atomic128_load(2) => load128;
    __tsan_atomic128_store(4) => store128;
    __tsan_atomic128_exchange(4) => exchange128;
    __tsan_atomic128_fetch_add(4) => add128;
    __tsan_atomic128_fetch_sub(4) => sub128;
    __tsan_atomic128_fetch_and(4) => and128;
    __tsan_atomic128_fetch_or(4) => or128;
    __tsan_atomic128_fetch_xor(4) => xor128;
    __tsan_atomic128_fetch_nand(4) => nand128;
}

/// Six argument registers are all used: there is none left for the return address, so the site is unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __tsan_atomic128_compare_exchange_strong(
    at: *mut u128,
    expected: *mut u128,
    new: u128,
    success: i32,
    failure: i32,
) -> i32 {
    // SAFETY: passed on.
    unsafe { strong128(at, expected, new, success, failure, 0) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __tsan_atomic128_compare_exchange_weak(
    at: *mut u128,
    expected: *mut u128,
    new: u128,
    success: i32,
    failure: i32,
) -> i32 {
    // SAFETY: passed on.
    unsafe { strong128(at, expected, new, success, failure, 0) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __tsan_atomic128_compare_exchange_val(
    at: *mut u128,
    expected: u128,
    new: u128,
    success: i32,
    failure: i32,
) -> u128 {
    // SAFETY: passed on.
    unsafe { val128(at, expected, new, success, failure, 0) }
}
