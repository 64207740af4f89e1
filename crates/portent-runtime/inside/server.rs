//! The fork server: a process that has come as far as every run of its program comes, and of which each run is a copy.
//!
//! Starting a program takes milliseconds, most of them spent on loading and linking the same files again. A process whose plan
//! says so stops where it would otherwise begin to record, before the first event and before any code of the program that is
//! instrumented, and waits for orders. For each it makes a copy of itself, which goes on as a run: with the same addresses,
//! descriptors, signals and environment as one that was started, with the standard streams and the recording that came with the
//! order. The copy is a child of whoever started the server (`CLONE_PARENT`), so that its end, its parent and its group are
//! those of a program that was started.
//!
//! An order is one byte, with descriptors: the plan, the recording (both in memory), standard output, standard error and, unless the run is to
//! read what the server would, standard input. The answer is the number of the new process, or a negative error. When whoever
//! gives orders is gone, so is the server.
//!
//! What it does not do: say whether the libraries that were set up before have left what a copy does not have (threads), or
//! what copies would share (open files). Whoever gives orders looks at that.

use crate::plan::{SERVES, unfit};
use crate::sys;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a run gets.
pub struct Order {
    pub plan: isize,
    pub log: isize,
}

/// Whether something asked for the number of this process, outside a recording: it may keep it, and a copy has another.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// Something asked for the number of this process, outside a recording.
pub fn number_is_known() {
    KNOWN.store(true, Ordering::Relaxed);
}

/// Whether a descriptor is where orders come from. It is not for programs that this one starts, and they know of it.
pub fn is_orders(fd: isize) -> bool {
    const KIND: u32 = 0o170000;
    const SOCKET: u32 = 0o140000;
    let mut status = [0u64; 18];
    // SAFETY: the kernel fills `status`; the mode is the fourth word's first half.
    let found = unsafe { sys::call3(sys::SYS_FSTAT, fd as usize, status.as_mut_ptr() as usize, 0) };
    found == 0 && status[3] as u32 & KIND == SOCKET
}

/// Waits for orders. Comes back only in a run.
///
/// # Safety
/// Called once, by the only thread of its process, inside no lock.
pub unsafe fn serve(orders: isize) -> Order {
    const SET_FLAGS: usize = 2;
    const CLOSE_ON_EXEC: usize = 1;
    // SAFETY: our own descriptor.
    unsafe { sys::call3(sys::SYS_FCNTL, orders as usize, SET_FLAGS, CLOSE_ON_EXEC) };
    // Signals to everybody (the keys of a terminal) are for runs.
    let mask = sys::set_signal_mask(u64::MAX);
    let thread = ThreadNumber::find();
    let reason = match &thread {
        None => unfit::NO_THREAD_NUMBER,
        Some(_) if KNOWN.load(Ordering::Relaxed) => unfit::KNOWS_ITS_NUMBER,
        Some(_) => 0,
    };
    say(orders, &[SERVES, reason]);
    let Some(thread) = thread else { end() };
    loop {
        let Some(given) = receive(orders) else { end() };
        // SAFETY: the only thread; the copy goes on from here with a stack of its own.
        match unsafe { thread.copy_process() } {
            0 => {
                // SAFETY: a list of this process, at the same place as in the one it is a copy of; our own descriptor.
                unsafe {
                    sys::call3(sys::SYS_SET_ROBUST_LIST, thread.robust[0], thread.robust[1], 0);
                    sys::call3(sys::SYS_CLOSE, orders as usize, 0, 0);
                    // A run that nobody waits for ends, as one that was started does.
                    sys::call3(sys::SYS_PRCTL, SET_PARENT_DEATH_SIGNAL, KILL, 0);
                }
                let order = given.take_over();
                sys::set_signal_mask(mask);
                return order;
            }
            answer => {
                given.close();
                say(orders, &[answer as u64]);
            }
        }
    }
}

fn say(orders: isize, words: &[u64]) {
    // SAFETY: numbers are readable as bytes. Who does not listen is gone, which the next order says.
    unsafe { sys::call3(sys::SYS_WRITE, orders as usize, words.as_ptr() as usize, size_of_val(words)) };
}

const SET_PARENT_DEATH_SIGNAL: usize = 1;
const KILL: usize = 9;

fn end() -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { sys::call3(sys::SYS_EXIT_GROUP, 0, 0, 0) };
    }
}

/// What the C library keeps of the thread for the kernel, and what a copy has to set right.
struct ThreadNumber {
    /// Where it keeps the thread's number.
    at: usize,
    /// The list of its robust mutexes, and the size of that.
    robust: [usize; 2],
}

impl ThreadNumber {
    fn find() -> Option<ThreadNumber> {
        const GET_TID_ADDRESS: usize = 40;
        let (mut at, mut robust) = (0usize, [0usize; 2]);
        // SAFETY: the kernel fills what it is given.
        unsafe {
            let [list, size] = &mut robust;
            let told = sys::call3(sys::SYS_PRCTL, GET_TID_ADDRESS, &raw mut at as usize, 0);
            let listed = sys::call3(sys::SYS_GET_ROBUST_LIST, 0, &raw mut *list as usize, &raw mut *size as usize);
            // The number is there, or the C library keeps it otherwise than is known here.
            (told == 0 && listed == 0 && at != 0 && *(at as *const u32) == sys::gettid())
                .then_some(ThreadNumber { at, robust })
        }
    }

    /// As `fork`, but a child of this process's own parent.
    unsafe fn copy_process(&self) -> isize {
        const PARENT: usize = 0x8000;
        const CHILD_CLEARTID: usize = 0x0020_0000;
        const CHILD_SETTID: usize = 0x0100_0000;
        const SIGCHLD: usize = 17;
        let flags = PARENT | CHILD_CLEARTID | CHILD_SETTID | SIGCHLD;
        // SAFETY: without a stack of its own the copy goes on with a copy of this one.
        unsafe { sys::call(sys::SYS_CLONE, flags, 0, 0, self.at, 0, 0) }
    }
}

/// Descriptors, at most: see the head of this file.
const MOST: usize = 5;

/// The descriptors that came with an order.
struct Given {
    fds: [i32; MOST],
    count: usize,
}

#[repr(C)]
struct Message {
    name: [usize; 2],
    parts: *mut [usize; 2],
    part_count: usize,
    control: *mut Control,
    control_size: usize,
    flags: i32,
}

/// The header of what comes along, and the descriptors.
#[repr(C, align(8))]
struct Control {
    size: usize,
    kind: [i32; 2],
    fds: [i32; MOST],
}

/// The next order; none if there will be none.
fn receive(orders: isize) -> Option<Given> {
    const CLOSE_ON_EXEC: usize = 0x4000_0000;
    const HEADER: usize = 16;
    let mut byte = 0u8;
    let mut parts = [&raw mut byte as usize, 1];
    let mut control = Control { size: 0, kind: [0; 2], fds: [-1; MOST] };
    let mut message = Message {
        name: [0; 2],
        parts: &raw mut parts,
        part_count: 1,
        control: &raw mut control,
        control_size: size_of::<Control>(),
        flags: 0,
    };
    loop {
        // SAFETY: the kernel fills what the message points to, as far as there is room.
        let got = unsafe { sys::call3(sys::SYS_RECVMSG, orders as usize, &raw mut message as usize, CLOSE_ON_EXEC) };
        if got == -(sys::EINTR as isize) {
            continue;
        }
        let count = control.size.saturating_sub(HEADER) / size_of::<i32>();
        return (got == 1 && (4..=MOST).contains(&count)).then_some(Given { fds: control.fds, count });
    }
}

impl Given {
    /// In a run: the standard streams are what came with the order.
    fn take_over(&self) -> Order {
        let [plan, log, stdout, stderr, stdin] = self.fds;
        for (number, fd) in [(0, stdin), (1, stdout), (2, stderr)].into_iter().filter(|(_, fd)| *fd >= 0) {
            // SAFETY: our own descriptors.
            unsafe {
                sys::call3(sys::SYS_DUP2, fd as usize, number, 0);
                sys::call3(sys::SYS_CLOSE, fd as usize, 0, 0);
            }
        }
        Order { plan: plan as isize, log: log as isize }
    }

    /// In the server: they are the run's.
    fn close(&self) {
        for fd in &self.fds[..self.count] {
            // SAFETY: our own descriptors.
            unsafe { sys::call3(sys::SYS_CLOSE, *fd as usize, 0, 0) };
        }
    }
}
