//! Plain accesses and function entry and exit: the calls that compilers put before every access.
//!
//! They come *before* the access, which the program itself performs. A read is loaded here; a write is read back when
//! the thread next enters the runtime, before anybody else can run.
//!
//! Of a copy, `*a = *b`, gcc announces the write, then the read, and copies after that. So what is written where a read of as many
//! bytes follows is looked at once more after the read.

use crate::entry::entry;
use crate::log::{CallFrame, op};
use crate::state::{self, FRAMES, Pending, Thread, UnreadWrite, plain};
use crate::{init, record, sched};

/// Waits for the thread's turn, if its events are used up.
#[inline(always)]
pub fn turn(me: &mut Thread, op: u16, address: usize, size: usize, pc: usize) {
    if me.events >= me.stop {
        sched::ask(me, Pending { op, address, size, pc, ..Pending::default() });
    }
}

#[inline(always)]
pub fn read(me: &mut Thread, op: u16, address: usize, size: usize, pc: usize) {
    let may_copy = me.last_write == (me.events, size);
    turn(me, op, address, size, pc);
    record::access(me, op, address, size, record::load(address, size), pc);
    if may_copy && me.unread.size == 0 {
        // `unread` still says where that was.
        let at = me.unread.address;
        if let Some(value) = record::load(at, size) {
            me.unread = UnreadWrite { pc: value as usize, address: at, size: size | UnreadWrite::PERHAPS_COPIED, op };
        }
    }
}

#[inline(always)]
pub fn write(me: &mut Thread, op: u16, address: usize, size: usize, pc: usize) {
    turn(me, op, address, size, pc);
    me.unread = UnreadWrite { pc, address, size, op };
}

/// A write of at most `most` bytes whose length is that of the C string that is there afterwards.
pub fn write_text(me: &mut Thread, address: usize, most: usize, pc: usize) {
    if most > 0 {
        turn(me, op::WRITE, address, 1, pc);
        me.unread = UnreadWrite { pc, address, size: most | UnreadWrite::TEXT, op: op::WRITE };
    }
}

/// Where the program called the library that does something at `pc`; `pc` itself if that is in the program, or nothing better is known.
///
/// Libraries do not tell when they are called. But the stack pointer of a function is the same wherever it calls others, unless they
/// get arguments on the stack: the return address is right below it.
pub fn caller(me: &mut Thread, pc: usize) -> usize {
    /// Stacks of libraries are not so deep.
    const FAR: usize = 1 << 16;
    if init::is_in_program(pc) {
        return pc;
    }
    let here = &raw const pc as usize;
    for _ in 0..me.depth.min(FRAMES) {
        let stack = me.frames[(me.depth - 1) % FRAMES];
        if stack > here {
            let near = stack - here < FAR;
            let found = near.then(|| record::load(stack - size_of::<usize>(), size_of::<usize>())).flatten();
            return found.map(|found| found as usize).filter(|&found| init::is_in_program(found)).unwrap_or(pc);
        }
        // It has been left by an exception.
        me.depth -= 1;
    }
    pc
}

macro_rules! accesses {
    ($($size:literal: $read:ident $write:ident;)*) => {
        $(
            pub extern "C-unwind" fn $read(address: usize, pc: usize) {
                if let Some(me) = state::enter() {
                    read(me, op::READ, address, $size, pc);
                    state::leave_before_access(me);
                }
            }
            pub extern "C-unwind" fn $write(address: usize, pc: usize) {
                if let Some(me) = state::enter() {
                    write(me, op::WRITE, address, $size, pc);
                    state::leave_before_access(me);
                }
            }
        )*
    };
}

accesses! {
    1: read1 write1;
    2: read2 write2;
    4: read4 write4;
    8: read8 write8;
    16: read16 write16;
}

macro_rules! read_writes {
    ($($size:literal: $name:ident;)*) => {
        $(
            pub extern "C-unwind" fn $name(address: usize, pc: usize) {
                if let Some(me) = state::enter() {
                    read(me, op::READ, address, $size, pc);
                    write(me, op::WRITE, address, $size, pc);
                    state::leave_before_access(me);
                }
            }
        )*
    };
}

read_writes! {
    1: read_write1;
    2: read_write2;
    4: read_write4;
    8: read_write8;
    16: read_write16;
}

pub extern "C-unwind" fn read_range(address: usize, size: usize, pc: usize) {
    if size > 0
        && let Some(me) = state::enter()
    {
        read(me, op::READ, address, size, pc);
        state::leave_before_access(me);
    }
}

pub extern "C-unwind" fn write_range(address: usize, size: usize, pc: usize) {
    if size > 0
        && let Some(me) = state::enter()
    {
        write(me, op::WRITE, address, size, pc);
        state::leave_before_access(me);
    }
}

/// A virtual table pointer is about to be set; setting it to what it is changes nothing and is no event.
pub extern "C-unwind" fn vptr_update(address: usize, new: usize, pc: usize) {
    if let Some(me) = state::enter() {
        if record::load(address, 8) != Some(new as u64) {
            write(me, op::WRITE, address, 8, pc);
        }
        state::leave_before_access(me);
    }
}

/// Where the frame is whose function returns to `caller`. The frame pointer is one if the return address is beside it; what
/// is compiled without has anything there.
#[inline(always)]
fn call_frame(caller: usize, stack: usize, pointer: usize) -> CallFrame {
    /// Functions with larger frames count as having no frame pointer.
    const FAR: usize = 8 << 16;
    let above = pointer.wrapping_sub(stack);
    let is_frame = above < FAR && above & 7 == 0 && record::load(pointer + 8, 8) == Some(caller as u64);
    CallFrame { stack: stack as u64, pointer: if is_frame { (above / 8) as u16 } else { 0 } }
}

pub extern "C-unwind" fn function_entry(caller: usize, pc: usize, stack: usize, pointer: usize) {
    if let Some(me) = state::enter() {
        if me.events >= me.stop {
            sched::ask(me, plain(op::CALL, caller, pc));
        }
        record::valued(me, op::CALL, caller, call_frame(caller, stack, pointer).value(), pc);
        me.frames[me.depth % FRAMES] = stack;
        me.depth += 1;
        state::leave(me);
    }
}

pub extern "C-unwind" fn function_exit(pc: usize) {
    if let Some(me) = state::enter() {
        if me.events >= me.stop {
            sched::ask(me, plain(op::RETURN, 0, pc));
        }
        record::plain(me, op::RETURN, 0, pc);
        me.depth = me.depth.saturating_sub(1);
        state::leave(me);
    }
}

entry! {
    __tsan_read1(1) => read1;
    __tsan_read2(1) => read2;
    __tsan_read4(1) => read4;
    __tsan_read8(1) => read8;
    __tsan_read16(1) => read16;
    __tsan_write1(1) => write1;
    __tsan_write2(1) => write2;
    __tsan_write4(1) => write4;
    __tsan_write8(1) => write8;
    __tsan_write16(1) => write16;
    __tsan_unaligned_read2(1) => read2;
    __tsan_unaligned_read4(1) => read4;
    __tsan_unaligned_read8(1) => read8;
    __tsan_unaligned_read16(1) => read16;
    __tsan_unaligned_write2(1) => write2;
    __tsan_unaligned_write4(1) => write4;
    __tsan_unaligned_write8(1) => write8;
    __tsan_unaligned_write16(1) => write16;
    __tsan_volatile_read1(1) => read1;
    __tsan_volatile_read2(1) => read2;
    __tsan_volatile_read4(1) => read4;
    __tsan_volatile_read8(1) => read8;
    __tsan_volatile_read16(1) => read16;
    __tsan_volatile_write1(1) => write1;
    __tsan_volatile_write2(1) => write2;
    __tsan_volatile_write4(1) => write4;
    __tsan_volatile_write8(1) => write8;
    __tsan_volatile_write16(1) => write16;
    __tsan_unaligned_volatile_read2(1) => read2;
    __tsan_unaligned_volatile_read4(1) => read4;
    __tsan_unaligned_volatile_read8(1) => read8;
    __tsan_unaligned_volatile_read16(1) => read16;
    __tsan_unaligned_volatile_write2(1) => write2;
    __tsan_unaligned_volatile_write4(1) => write4;
    __tsan_unaligned_volatile_write8(1) => write8;
    __tsan_unaligned_volatile_write16(1) => write16;
    __tsan_read_write1(1) => read_write1;
    __tsan_read_write2(1) => read_write2;
    __tsan_read_write4(1) => read_write4;
    __tsan_read_write8(1) => read_write8;
    __tsan_read_write16(1) => read_write16;
    __tsan_unaligned_read_write2(1) => read_write2;
    __tsan_unaligned_read_write4(1) => read_write4;
    __tsan_unaligned_read_write8(1) => read_write8;
    __tsan_unaligned_read_write16(1) => read_write16;
    __tsan_read1_pc(1) => read1;
    __tsan_read2_pc(1) => read2;
    __tsan_read4_pc(1) => read4;
    __tsan_read8_pc(1) => read8;
    __tsan_read16_pc(1) => read16;
    __tsan_write1_pc(1) => write1;
    __tsan_write2_pc(1) => write2;
    __tsan_write4_pc(1) => write4;
    __tsan_write8_pc(1) => write8;
    __tsan_write16_pc(1) => write16;
    __tsan_read_range(2) => read_range;
    __tsan_write_range(2) => write_range;
    __tsan_vptr_update(2) => vptr_update;
    __tsan_vptr_read(1) => read8;
    __tsan_func_entry(frame) => function_entry;
    __tsan_func_exit(0) => function_exit;
    __tsan_read_range_pc(2) => read_range;
    __tsan_write_range_pc(2) => write_range;
}
