//! Fibers: several threads of control that one thread of the system runs in turn, as the program tells.
//!
//! Each is a thread of the table, with events of its own. One of those that share a thread of the system runs; the others are
//! *parked*: not in the scheduler's list, so that nobody waits for them or lets them run. Switching passes the token on within the
//! same thread of the system. Unless the program says otherwise, what the fiber did that is left comes before what the other does.
//!
//! A lock belongs to the fiber that took it. A program that makes more fibers than a recording can hold gets ones that do not
//! count: what they do, the thread does that runs them.

use crate::annotate;
use crate::entry::entry;
use crate::log::{MAX_THREADS, note, op};
use crate::state::{self, Life, Thread};
use crate::{answers, record, sched, sys};

/// What is not to be ordered, in the flags of a switch.
const NO_SYNC: u32 = 1;
/// The channel of switches: no address, and above those of pipes and signals.
const SWITCHES: usize = 1 << 20;

/// Stands for a fiber that does not count.
static NONE: u8 = 0;
static mut SWITCHED: u64 = 0;

/// The fiber that a program means: one of the table that is parked.
fn parked(fiber: usize) -> Option<&'static mut Thread> {
    let first = state::thread(0) as usize;
    let id = fiber.checked_sub(first)? / size_of::<Thread>();
    let known = id < MAX_THREADS && state::thread(id as u32) as usize == fiber;
    // SAFETY: a thread of the table; the holder of the token, and nobody else uses one that is parked.
    let fiber = known.then(|| unsafe { &mut *state::thread(id as u32) })?;
    (fiber.life == Life::Parked).then_some(fiber)
}

pub extern "C-unwind" fn get_current(_pc: usize) -> usize {
    let current = state::current();
    if current.is_null() { &raw const NONE as usize } else { current as usize }
}

pub extern "C-unwind" fn create(_flags: u32, pc: usize) -> usize {
    let nobody = &raw const NONE as usize;
    let Some(me) = state::enter() else { return nobody };
    sched::before(me, state::plain(op::FORK, 0, pc));
    let number = sched::lock().number(me.id, me.children);
    let Some(id) = number else {
        sys::say(&[
            "portent: more fibers than a recording can hold: what others do is told of the thread that runs them\n",
        ]);
        state::leave(me);
        return nobody;
    };
    // SAFETY: a thread of the table that nobody uses yet.
    let fiber = unsafe { &mut *state::thread(id) };
    fiber.id = id;
    fiber.parent = me.id;
    fiber.child_number = me.children;
    fiber.pending = state::not_started();
    fiber.life = Life::Parked;
    answers::next_signal(fiber);
    me.children += 1;
    // SAFETY: the header is mapped.
    unsafe { (*record::header()).threads = sched::lock().count };
    record::valued(me, op::FORK, 0, u64::from(id), pc);
    record::numbers(note::THREAD, &[u64::from(id), u64::from(me.id), u64::from(fiber.child_number), 0, 0, 0]);
    state::leave(me);
    fiber as *mut Thread as usize
}

pub extern "C-unwind" fn destroy(fiber: usize, _pc: usize) {
    if let Some(me) = state::enter() {
        if let Some(fiber) = parked(fiber) {
            fiber.life = Life::Done;
            fiber.publish();
            record::numbers(note::THREAD_END, &[u64::from(fiber.id)]);
        }
        state::leave(me);
    }
}

/// Called just before the program goes on with another stack. From here on the calling thread of the system is the fiber.
pub extern "C-unwind" fn switch_to(fiber: usize, flags: u32, pc: usize) {
    let Some(me) = state::enter() else { return };
    let Some(next) = parked(fiber) else { return state::leave(me) };
    let ordered = flags & NO_SYNC == 0;
    let mut number = 0;
    if ordered {
        sched::before(me, state::plain(op::SEND, SWITCHES, pc));
        // SAFETY: the holder of the token.
        unsafe {
            number = SWITCHED;
            SWITCHED += 1;
        }
        record::valued(me, op::SEND, SWITCHES, number, pc);
    }
    next.inside = 1;
    sched::pass_on(me, next);
    state::set_current(next);
    me.inside = 0;
    if ordered {
        sched::before(next, state::plain(op::RECEIVE, SWITCHES, pc));
        record::valued(next, op::RECEIVE, SWITCHES, number, pc);
    }
    state::leave(next);
}

pub extern "C-unwind" fn set_name(fiber: usize, name: usize, _pc: usize) {
    if let Some(me) = state::enter() {
        let own = (me as *const Thread as usize == fiber).then_some(me.id);
        if let Some(id) = own.or_else(|| parked(fiber).map(|fiber| fiber.id)) {
            annotate::set_name(id, name);
        }
        state::leave(me);
    }
}

entry! {
    __tsan_get_current_fiber(0) => get_current;
    __tsan_create_fiber(1) => create;
    __tsan_destroy_fiber(1) => destroy;
    __tsan_switch_to_fiber(2) => switch_to;
    __tsan_set_fiber_name(2) => set_name;
}
