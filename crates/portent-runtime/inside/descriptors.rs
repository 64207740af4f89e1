//! Descriptors that one thread closes while another uses them, or before.
//!
//! Only `close` and the calls of [`crate::blocking`] are seen. A descriptor that is used after somebody else has closed it,
//! and that means another file by then, is not told.

use crate::log::{self, fault, note};
use crate::objects::{self, fault_told};
use crate::state::{self, Thread};
use crate::{channels, connections, record, sched, sys};

/// Descriptors from here on are not looked at.
const MOST: usize = log::DESCRIPTORS_EACH as usize;
/// Who closed each last, plus one. Only the holder of the token comes here.
static mut CLOSED: [u32; MOST] = [0; MOST];

/// Forgets them, in a forked child.
///
/// # Safety
/// Called by the only thread of its process, which is not recorded.
pub unsafe fn forget() {
    // SAFETY: nobody else runs.
    unsafe { CLOSED = [0; MOST] };
}
const F_GETFD: usize = 1;

/// Whether a call takes its descriptor first.
fn takes_descriptor(call: &str) -> bool {
    let others = ["poll", "ppoll", "select", "pselect", "system", "pause", "msgrcv", "semop", "getline", "getdelim"];
    let streams = ["getchar", "fgetc", "getc", "sigwait", "sigwaitinfo", "sigtimedwait", "sigsuspend"];
    !others.contains(&call) && !streams.contains(&call)
}

/// How often each was closed: the next file behind the same number is another one.
static mut CLOSES: [u32; MOST] = [0; MOST];

/// What a descriptor is to the trace, if it leads to a pipe, a socket or the like of the program's own: something that a use
/// reads, and that closing destroys.
fn object(descriptor: usize) -> Option<usize> {
    // SAFETY: the holder of the token.
    let closes = || unsafe { CLOSES[descriptor] } as usize;
    (descriptor < MOST && channels::of(descriptor).is_some())
        .then(|| log::DESCRIPTORS as usize + (closes() * MOST + descriptor))
}

/// Before a call that may block.
#[inline(always)]
pub fn begins(me: &mut Thread, call: &str, first: usize, pc: usize) {
    me.descriptor = if takes_descriptor(call) { first.wrapping_add(1) } else { 0 };
    if takes_descriptor(call)
        && call != "close"
        && let Some(object) = object(first)
    {
        objects::about_to_use(me, object, pc);
    }
}

/// After it.
#[inline]
pub fn ends(me: &mut Thread, result: i32, pc: usize) {
    let descriptor = std::mem::take(&mut me.descriptor);
    // SAFETY: this thread's errno.
    if result < 0 && descriptor != 0 && unsafe { *sys::__errno_location() } == sys::EBADF {
        failed(me, descriptor - 1, pc);
    }
}

/// A call has failed because its descriptor is none, or not open for that.
#[cold]
fn failed(me: &Thread, descriptor: usize, pc: usize) {
    // SAFETY: the holder of the token; a question about the descriptor.
    unsafe {
        let is_open = sys::call3(sys::SYS_FCNTL, descriptor, F_GETFD, 0) >= 0;
        let closed_by = if descriptor < MOST { CLOSED[descriptor] } else { 0 };
        if !is_open && closed_by != 0 && closed_by != me.id + 1 {
            fault_told(fault::CLOSED_IN_USE, descriptor, pc, closed_by, &["used after another thread closed it"]);
        }
    }
}

/// Before a descriptor is closed.
pub fn closing(descriptor: usize, pc: usize) {
    let Some(me) = state::enter() else { return };
    if let Some(object) = object(descriptor) {
        objects::about_to_destroy(me, object, pc);
        record::numbers(note::DESTROY, &[object as u64, pc as u64]);
        // SAFETY: the holder of the token.
        unsafe { CLOSES[descriptor] += 1 };
    }
    // SAFETY: the holder of the token looks at threads that are away.
    let mut living = unsafe { (*sched::peek()).living() };
    let user = living.find(|one| one.is_in_call() && one.descriptor == descriptor.wrapping_add(1));
    if let Some(user) = user.filter(|user| user.id != me.id) {
        let text = ["closed while another thread waits in a call on it"];
        fault_told(fault::CLOSED_IN_USE, descriptor, pc, user.id + 1, &text);
    }
    state::leave(me);
}

/// After it was closed.
pub fn closed(descriptor: usize, pc: usize) {
    if descriptor >= MOST {
        return;
    }
    let Some(me) = state::enter() else { return };
    connections::closed(descriptor);
    // SAFETY: the holder of the token.
    unsafe { CLOSED[descriptor] = me.id + 1 };
    record::numbers(note::CLOSE, &[descriptor as u64, pc as u64]);
    state::leave(me);
}
