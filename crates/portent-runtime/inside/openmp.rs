//! OpenMP, as gcc's library does it: what orders the threads of a team.
//!
//! | in the program | here |
//! |---|---|
//! | a parallel region | what was done before comes before what its threads do, and that before what follows it |
//! | barriers, also those at the end of loops, sections and `copyprivate` | everything before comes before everything after |
//! | critical sections, atomic ones, `omp_lock_t` | locks |
//! | `ordered` | each after the one before |
//!
//! The library itself decides who does what, and waits as it likes: a thread in it lets the others run ([`sched::let_go`]). Barriers of all
//! teams are one, which orders more than is needed where teams are nested. Tasks are not understood: what orders them is missing,
//! and a warning says so when the first is made.

use crate::annotate::order;
use crate::entry::entry;
use crate::log::{message, note, op};
use crate::real::{Ptr, Real};
use crate::state::{self, Thread};
use crate::{annotated, record, sched};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a place in the program's memory stands for where order is declared: the address of a byte of each.
static NAMES: [u8; 5] = [0; 5];
/// Two, of which a team uses one after the other: whoever leaves a barrier late has not come after those who are at the next
/// one already. Nobody is two ahead.
const BARRIERS: usize = 0;
const ORDERED: usize = 2;
const COPY: usize = 3;
const CRITICAL: usize = 4;

fn name(which: usize) -> usize {
    &raw const NAMES[which] as usize
}

/// Says, once, what they are called.
fn tell_names() {
    const TEXTS: [&str; NAMES.len()] =
        ["the team's barrier", "the team's barrier", "omp ordered", "omp copyprivate", "omp critical"];
    static TOLD: AtomicBool = AtomicBool::new(false);
    if let Some(me) = state::enter() {
        if !TOLD.swap(true, Ordering::Relaxed) {
            for (which, text) in TEXTS.iter().enumerate() {
                record::told(note::NAMED, &[name(which) as u64, 1], text.as_bytes());
            }
        }
        state::leave(me);
    }
}

/// A parallel region: what its threads run, on the stack of the one that begins it.
struct Region {
    routine: unsafe extern "C-unwind" fn(Ptr),
    data: Ptr,
    begins: u64,
    ends: u64,
}

/// What each thread of a team runs.
unsafe extern "C-unwind" fn member(region: *const Region) {
    // SAFETY: the region lives until all of its threads have come back from here.
    unsafe {
        let (begins, ends) = (&raw const (*region).begins as usize, &raw const (*region).ends as usize);
        order(op::HAPPENS_AFTER, begins, 0);
        let outer = barriers(0);
        ((*region).routine)((*region).data);
        barriers(outer);
        order(op::HAPPENS_BEFORE, ends, 0);
    }
    if let Some(me) = state::enter() {
        // What it does from here on, waiting for the next region included, is the library's business.
        sched::let_go(me);
        me.is_spare = true;
        state::leave(me);
    }
}

/// How many barriers of its team the thread has passed, which is `now` from here on.
fn barriers(now: u64) -> u64 {
    let Some(me) = state::enter() else { return 0 };
    let before = std::mem::replace(&mut me.barriers, now);
    state::leave(me);
    before
}

/// The thread goes into the library, where it may wait.
fn goes() {
    if let Some(me) = state::enter() {
        sched::let_go(me);
        state::leave(me);
    }
}

/// A parallel region that the library runs with `real`, given what its threads are to run.
unsafe fn region(routine: usize, data: Ptr, pc: usize, real: impl FnOnce(usize, Ptr)) {
    // SAFETY: the outlined body, with its argument.
    let routine = unsafe { std::mem::transmute::<usize, unsafe extern "C-unwind" fn(Ptr)>(routine) };
    let region = Region { routine, data, begins: 0, ends: 0 };
    tell_names();
    order(op::HAPPENS_BEFORE, &raw const region.begins as usize, pc);
    let outer = state::enter().map(|me| {
        let outer = std::mem::replace(&mut me.starts_team, true);
        sched::let_go(me);
        state::leave(me);
        outer
    });
    real(member as *const () as usize, (&raw const region).cast_mut().cast());
    if let (Some(outer), Some(me)) = (outer, state::enter()) {
        me.starts_team = outer;
        state::leave(me);
    }
    order(op::HAPPENS_AFTER, &raw const region.ends as usize, pc);
}

/// Regions: their further arguments, all of which are passed on.
macro_rules! regions {
    ($($name:ident($($argument:ident),*) $symbol:literal;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(routine: usize, data: Ptr, $($argument: usize),*) {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                type Run = unsafe extern "C-unwind" fn(usize, Ptr, $(regions!(@type $argument)),*);
                // SAFETY: libgomp's function, with its own arguments.
                unsafe {
                    region(routine, data, 0, |routine, data| {
                        std::mem::transmute::<Ptr, Run>(REAL.required())(routine, data, $($argument),*);
                    });
                }
            }
        )*
    };
    (@type $argument:ident) => { usize };
}

regions! {
    GOMP_parallel(threads, flags) b"GOMP_parallel\0";
    GOMP_parallel_sections(threads, count, flags) b"GOMP_parallel_sections\0";
    GOMP_parallel_loop_static(threads, start, end, step, chunk, flags) b"GOMP_parallel_loop_static\0";
    GOMP_parallel_loop_dynamic(threads, start, end, step, chunk, flags) b"GOMP_parallel_loop_dynamic\0";
    GOMP_parallel_loop_guided(threads, start, end, step, chunk, flags) b"GOMP_parallel_loop_guided\0";
    GOMP_parallel_loop_runtime(threads, start, end, step, flags) b"GOMP_parallel_loop_runtime\0";
    GOMP_parallel_loop_nonmonotonic_dynamic(threads, start, end, step, chunk, flags) b"GOMP_parallel_loop_nonmonotonic_dynamic\0";
    GOMP_parallel_loop_nonmonotonic_guided(threads, start, end, step, chunk, flags) b"GOMP_parallel_loop_nonmonotonic_guided\0";
    GOMP_parallel_loop_nonmonotonic_runtime(threads, start, end, step, flags) b"GOMP_parallel_loop_nonmonotonic_runtime\0";
    GOMP_parallel_loop_maybe_nonmonotonic_runtime(threads, start, end, step, flags) b"GOMP_parallel_loop_maybe_nonmonotonic_runtime\0";
}

/// Calls of the library with one argument at most, and what comes before and after each.
macro_rules! calls {
    ($($name:ident $symbol:literal: |$argument:ident, $result:ident, $pc:ident| before $before:expr; after $after:expr;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($argument: usize, $pc: usize) -> usize {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                $before;
                // SAFETY: libgomp's function; an argument too many does no harm.
                let $result = unsafe {
                    std::mem::transmute::<Ptr, unsafe extern "C-unwind" fn(usize) -> usize>(REAL.required())($argument)
                };
                $after;
                $result
            }
        )*
    };
}

/// Of a call that there is nothing to say about before, or after.
fn nothing() {}

/// The barrier that the thread comes to next.
fn next_barrier() -> usize {
    let me = state::current();
    // SAFETY: this thread's own state.
    let passed = if me.is_null() { 0 } else { unsafe { (*me).barriers } };
    name(BARRIERS + (passed & 1) as usize)
}

fn arrives(pc: usize) {
    order(op::HAPPENS_BEFORE, next_barrier(), pc);
    goes();
}

fn passes(pc: usize) {
    order(op::HAPPENS_AFTER, next_barrier(), pc);
    let me = state::current();
    if !me.is_null() {
        // SAFETY: this thread's own state.
        unsafe { (*me).barriers += 1 };
    }
}

/// Locks: what the call does, and with which. The library's own lock is not touched while the thread is recorded, or a schedule could
/// not say who comes first.
macro_rules! locks {
    ($($name:ident $symbol:literal: $does:ident |$argument:ident| $lock:expr;)*) => {
        $(
            pub unsafe extern "C-unwind" fn $name($argument: usize, pc: usize) -> usize {
                #[unsafe(link_section = "portent_real")]
                static REAL: Real = Real::new($symbol);
                let Some(me) = state::enter() else {
                    // SAFETY: libgomp's function; an argument too many does no harm.
                    return unsafe {
                        std::mem::transmute::<Ptr, unsafe extern "C-unwind" fn(usize) -> usize>(REAL.required())($argument)
                    };
                };
                let result = $does(me, $lock, pc);
                state::leave(me);
                result
            }
        )*
    };
}

fn take(me: &mut Thread, lock: usize, pc: usize) -> usize {
    annotated::take(me, lock, false, pc);
    0
}
fn take_again(me: &mut Thread, lock: usize, pc: usize) -> usize {
    annotated::take(me, lock, true, pc);
    0
}
fn try_to_take(me: &mut Thread, lock: usize, pc: usize) -> usize {
    annotated::try_to_take(me, lock, false, pc) as usize
}
fn try_to_take_again(me: &mut Thread, lock: usize, pc: usize) -> usize {
    annotated::try_to_take(me, lock, true, pc) as usize
}
fn give_back(me: &mut Thread, lock: usize, pc: usize) -> usize {
    annotated::give_back(me, lock, pc);
    0
}

locks! {
    critical_start b"GOMP_critical_start\0": take |_unused| name(CRITICAL);
    critical_end b"GOMP_critical_end\0": give_back |_unused| name(CRITICAL);
    named_start b"GOMP_critical_name_start\0": take |lock| lock;
    named_end b"GOMP_critical_name_end\0": give_back |lock| lock;
    atomic_start b"GOMP_atomic_start\0": take |_unused| name(CRITICAL);
    atomic_end b"GOMP_atomic_end\0": give_back |_unused| name(CRITICAL);
    set_lock b"omp_set_lock\0": take |lock| lock;
    unset_lock b"omp_unset_lock\0": give_back |lock| lock;
    test_lock b"omp_test_lock\0": try_to_take |lock| lock;
    set_nest_lock b"omp_set_nest_lock\0": take_again |lock| lock;
    unset_nest_lock b"omp_unset_nest_lock\0": give_back |lock| lock;
    test_nest_lock b"omp_test_nest_lock\0": try_to_take_again |lock| lock;
}

calls! {
    barrier b"GOMP_barrier\0": |_argument, result, pc| before arrives(pc); after passes(pc);
    barrier_cancel b"GOMP_barrier_cancel\0": |_argument, result, pc| before arrives(pc); after passes(pc);
    loop_end b"GOMP_loop_end\0": |_argument, result, pc| before arrives(pc); after passes(pc);
    sections_end b"GOMP_sections_end\0": |_argument, result, pc| before arrives(pc); after passes(pc);
    copy_start b"GOMP_single_copy_start\0": |_argument, result, pc| before goes(); after order(op::HAPPENS_AFTER, name(COPY), pc);
    copy_end b"GOMP_single_copy_end\0": |_argument, _result, pc| before { order(op::HAPPENS_BEFORE, name(COPY), pc); goes() }; after nothing();
    ordered_start b"GOMP_ordered_start\0": |_argument, result, pc| before goes(); after order(op::HAPPENS_AFTER, name(ORDERED), pc);
    ordered_end b"GOMP_ordered_end\0": |_argument, result, pc| before order(op::HAPPENS_BEFORE, name(ORDERED), pc); after nothing();
}

/// Says once that tasks are not understood, and passes them on.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn GOMP_task(
    routine: usize,
    data: usize,
    copy: usize,
    size: usize,
    alignment: usize,
    if_clause: usize,
    flags: usize,
    depend: usize,
    priority: usize,
    detach: usize,
) {
    #[unsafe(link_section = "portent_real")]
    static REAL: Real = Real::new(b"GOMP_task\0");
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed)
        && let Some(me) = state::enter()
    {
        let text = b"OpenMP: tasks are not understood; races between them may be false, and what is found in them may not happen again in a replay";
        record::told(note::MESSAGE, &[message::WARNING, 0], text);
        state::leave(me);
    }
    type Task = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize, usize);
    // SAFETY: libgomp's function; what older programs do not pass is not looked at.
    unsafe {
        std::mem::transmute::<Ptr, Task>(REAL.required())(
            routine, data, copy, size, alignment, if_clause, flags, depend, priority, detach,
        );
    }
}

entry! {
    GOMP_barrier(1) => barrier;
    GOMP_barrier_cancel(1) => barrier_cancel;
    GOMP_loop_end(1) => loop_end;
    GOMP_sections_end(1) => sections_end;
    GOMP_single_copy_start(1) => copy_start;
    GOMP_single_copy_end(1) => copy_end;
    GOMP_critical_start(1) => critical_start;
    GOMP_critical_end(1) => critical_end;
    GOMP_critical_name_start(1) => named_start;
    GOMP_critical_name_end(1) => named_end;
    GOMP_atomic_start(1) => atomic_start;
    GOMP_atomic_end(1) => atomic_end;
    GOMP_ordered_start(1) => ordered_start;
    GOMP_ordered_end(1) => ordered_end;
    omp_set_lock(1) => set_lock;
    omp_unset_lock(1) => unset_lock;
    omp_test_lock(1) => test_lock;
    omp_set_nest_lock(1) => set_nest_lock;
    omp_unset_nest_lock(1) => unset_nest_lock;
    omp_test_nest_lock(1) => test_nest_lock;
}
