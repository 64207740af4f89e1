//! Blocks that the program marks as atomic: what the macros of `portent.h` call, where this runtime is there to be called.
//!
//! A mark is an event like any other, so that counts in schedules are the same with and without somebody who looks at it. What a
//! block is called stands in a note before the event that begins it. Marks that do not match are made to by the conversion.

use crate::entry::entry;
use crate::log::{note, op};
use crate::state::{self, plain};
use crate::{record, sched};

/// Longer names are cut.
const LONGEST: usize = 200;

pub extern "C-unwind" fn begin(name: usize, pc: usize) {
    mark(op::BEGIN, name, pc);
}

pub extern "C-unwind" fn end(_name: usize, pc: usize) {
    mark(op::END, 0, pc);
}

fn mark(op: u16, name: usize, pc: usize) {
    if let Some(me) = state::enter() {
        if me.events >= me.stop {
            sched::ask(me, plain(op, 0, pc));
        }
        if name != 0 {
            let size = record::text_size(name, LONGEST);
            let mut text = [0; LONGEST];
            // Byte by byte: what is no string must not fault here.
            for (at, byte) in text[..size].iter_mut().enumerate() {
                *byte = record::load(name + at, 1).unwrap_or(0) as u8;
            }
            let end = text[..size].iter().position(|&byte| byte == 0).unwrap_or(size);
            record::note(note::BLOCK, &[&text[..end]]);
        }
        record::plain(me, op, 0, pc);
        state::leave(me);
    }
}

entry! {
    portent_mark_begin(1) => begin;
    portent_mark_end(1) => end;
}
