//! How system calls that may block are made: with the token where the kernel says that they would not block, without it otherwise.

use crate::answers::{self, Deadline};
use crate::channels::{self, DEVICE, FIFO, SOCKET, examine};
use crate::log::{call, op};
use crate::readiness::{self, POLLIN, POLLOUT, PollFd, Question};
use crate::real::{self, Ptr, Real};
use crate::state::{self, Pending, Thread, Wait};
use crate::{outside, record, sched, signals, spin, sys};

/// A write of so many bytes into a pipe does not block where there is room at all (PIPE_BUF),
const ATOMIC: usize = 4096;
/// nor one into a socket of so many.
const SOCKET_ROOM: usize = 16 << 10;
const F_GETFL: usize = 3;
const F_SETFL: usize = 4;
const O_NONBLOCK: usize = 0o4000;
const MSG_DONTWAIT: usize = 0x40;
const MSG_WAITALL: usize = 0x100;
const EINPROGRESS: i32 = 115;

/// A call, before it is made.
pub struct Call {
    how: How,
    /// What its event is ([`call`]).
    kind: usize,
}

enum How {
    /// Nobody knows whether it would block.
    Away,
    /// It does not.
    AtOnce,
    Waits(Waits),
}

/// What a call waits for.
#[derive(Clone, Copy)]
struct Waits {
    asks: Question,
    /// For how long; `None`: for ever.
    nanos: Option<i64>,
    /// A set of signals that are blocked meanwhile in place of the others, or null.
    mask: usize,
    /// For calls that take a signal: where its description goes, and where its number.
    takes: [usize; 2],
}

impl Call {
    pub const AWAY: Call = Call { how: How::Away, kind: call::ANY };

    fn at_once() -> Self {
        Call { how: How::AtOnce, kind: call::ANY }
    }

    fn waits(asks: Question, nanos: Option<i64>, mask: usize) -> Self {
        Call { how: How::Waits(Waits { asks, nanos, mask, takes: [0; 2] }), kind: call::ANY }
    }

    /// It reads from a descriptor; with flags, of which some want all of `size` bytes.
    pub fn reads(fd: usize, size: usize, flags: usize) -> Self {
        const STREAM: i32 = 1;
        const SO_TYPE: usize = 3;
        const SO_RCVTIMEO: usize = 20;
        let kind = examine(fd).0;
        if flags & MSG_DONTWAIT != 0 || !matches!(kind, FIFO | SOCKET | DEVICE | 0) || !is_blocking(fd) {
            return Self::at_once();
        }
        let all = flags & MSG_WAITALL != 0 && outside::option(fd, SO_TYPE) == STREAM;
        if all && !(1..=SOCKET_ROOM).contains(&size) {
            return Self::AWAY;
        }
        let asks = Question::One { fd: fd as i32, events: POLLIN, least: if all { size as u32 } else { 0 } };
        Self::waits(asks, (kind == SOCKET).then(|| outside::time_option(fd, SO_RCVTIMEO)).flatten(), 0)
    }

    /// It writes to a descriptor, or sends to whoever the address says.
    pub fn writes(fd: usize, size: usize, flags: usize, address: usize) -> Self {
        const LOCAL: i32 = 1;
        const SO_DOMAIN: usize = 39;
        const SO_SNDTIMEO: usize = 21;
        let kind = examine(fd).0;
        // Nothing that a thread sees depends on it.
        let told = if channels::of(fd).is_none() { call::TELLS } else { call::ANY };
        let most = match kind {
            FIFO | DEVICE => ATOMIC,
            SOCKET | 0 => SOCKET_ROOM,
            _ => usize::MAX,
        };
        // Whether the receiver's queue has room is only known where the two are connected.
        let unknown = address != 0 && outside::option(fd, SO_DOMAIN) == LOCAL;
        let how = match () {
            () if flags & MSG_DONTWAIT != 0 || most == usize::MAX || !is_blocking(fd) => How::AtOnce,
            () if size > most || unknown => How::Away,
            () => {
                let asks = Question::One { fd: fd as i32, events: POLLOUT, least: 0 };
                let nanos = (kind == SOCKET).then(|| outside::time_option(fd, SO_SNDTIMEO)).flatten();
                How::Waits(Waits { asks, nanos, mask: 0, takes: [0; 2] })
            }
        };
        Call { how, kind: told }
    }

    /// `poll`: milliseconds.
    pub fn polls(at: usize, count: usize, time: i32) -> Self {
        Self::until(Question::Many { at, count }, (time >= 0).then(|| i64::from(time) * 1_000_000), 0)
    }

    /// `ppoll`: a `timespec`, and a set of signals.
    pub fn polls_exactly(at: usize, count: usize, time: usize, mask: usize) -> Self {
        // SAFETY: null or the program's time.
        Self::until(Question::Many { at, count }, unsafe { nanos(time, 1) }, mask)
    }

    /// `select` and `pselect`: the second number of the time counts so many nanoseconds.
    pub fn selects(count: usize, at: [usize; 3], time: usize, unit: i64, mask: usize) -> Self {
        if !readiness::can_select(count) {
            return Self::AWAY;
        }
        // SAFETY: null or the program's time.
        Self::until(Question::Sets { at, count }, unsafe { nanos(time, unit) }, mask)
    }

    /// `epoll_wait`: milliseconds, and a set of signals.
    pub fn awaits(fd: usize, time: i32, mask: usize) -> Self {
        Self::until(Question::Epoll(fd as i32), (time >= 0).then(|| i64::from(time) * 1_000_000), mask)
    }

    fn until(asks: Question, nanos: Option<i64>, mask: usize) -> Self {
        if nanos == Some(0) { Self::at_once() } else { Self::waits(asks, nanos, mask) }
    }

    /// `sigwait` and its kin: where the signal's description goes, where its number, and a `timespec`.
    pub fn takes(set: usize, information: usize, number: usize, time: usize) -> Self {
        if set == 0 {
            return Self::AWAY;
        }
        // SAFETY: the program's set of signals, and null or its time.
        let (asks, nanos) = unsafe { (Question::Signals(*(set as *const u64)), nanos(time, 1)) };
        Call { how: How::Waits(Waits { asks, nanos, mask: 0, takes: [information, number] }), kind: call::ANY }
    }
}

/// A time of the program's, in nanoseconds, whose second number counts `unit` of them.
unsafe fn nanos(time: usize, unit: i64) -> Option<i64> {
    // SAFETY: as the caller says.
    (time != 0).then(|| unsafe {
        let [seconds, parts] = *(time as *const [i64; 2]);
        seconds.saturating_mul(1_000_000_000).saturating_add(parts.saturating_mul(unit)).max(0)
    })
}

/// Whether calls on a descriptor block.
fn is_blocking(fd: usize) -> bool {
    // SAFETY: a question about the descriptor.
    unsafe { sys::call3(sys::SYS_FCNTL, fd, F_GETFL, 0) as usize & O_NONBLOCK == 0 }
}

/// Does `work` without the token; `errno` stays as `work` left it.
pub fn away<T>(me: &mut Thread, pc: usize, work: impl FnOnce() -> T) -> T {
    sched::go_away(me, pc);
    let back = Back(me);
    let result = work();
    // SAFETY: this thread's errno.
    let error = unsafe { *sys::__errno_location() };
    sched::come_back(back.0);
    std::mem::forget(back);
    // SAFETY: as above.
    unsafe { *sys::__errno_location() = error };
    result
}

/// Takes the token again when a call is left by cancellation: what follows, clean-up handlers, belongs to the program.
struct Back<'a>(&'a mut Thread);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        sched::come_back(self.0);
        self.0.descriptor = 0;
        state::leave(self.0);
    }
}

/// Does `work`, which does not block, with the token.
pub fn at_once<T>(me: &mut Thread, work: impl FnOnce() -> T) -> T {
    /// Leaves the runtime when a call is left by cancellation.
    struct Leave<'a>(&'a mut Thread);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.descriptor = 0;
            state::leave(self.0);
        }
    }
    let leave = Leave(me);
    let result = work();
    std::mem::forget(leave);
    result
}

/// Lets the plan's signal happen that is due at a call, if there is one; whether it interrupts the call.
pub fn is_interrupted(me: &mut Thread, always: bool, pc: usize) -> bool {
    if me.signal_at != me.events {
        return false;
    }
    let waits = me.signal_waits;
    let restarts = signals::inject(me, false);
    let ends = waits && (!restarts || always);
    if ends {
        returned(me, call::ANY, pc);
    }
    ends
}

/// The return of a call is an event.
pub fn returned(me: &mut Thread, kind: usize, pc: usize) {
    // SAFETY: this thread's errno, which waiting for its turn must not change.
    let error = unsafe { *sys::__errno_location() };
    sched::before(me, state::plain(op::BRANCH, kind, pc));
    record::plain(me, op::BRANCH, kind, pc);
    // SAFETY: as above.
    unsafe { *sys::__errno_location() = error };
}

fn interrupted() -> isize {
    sys::fail(sys::EINTR) as isize
}

/// Makes a call, and records it.
pub fn perform(me: &mut Thread, call: Call, pc: usize, real: &impl Fn() -> isize) -> isize {
    spin::forget(me);
    let Call { how, kind } = call;
    let (always, again) = match &how {
        How::Waits(waits) => (waits.asks.is_always_interrupted(), waits.takes[1] != 0),
        _ => (false, false),
    };
    if is_interrupted(me, always, pc) && !again {
        return interrupted();
    }
    match how {
        How::Away => {
            let result = away(me, pc, real);
            returned(me, kind, pc);
            result
        }
        How::AtOnce => {
            sched::before(me, Pending { op: op::RESUME, pc, ..Pending::default() });
            let result = at_once(me, real);
            record::plain(me, op::BRANCH, kind, pc);
            // SAFETY: this thread's errno.
            if result as i32 == 0 || ((result as i32) < 0 && unsafe { *sys::__errno_location() } == sys::EAGAIN) {
                // It may come again at once, until others have done something.
                sched::yield_turn(me);
            }
            result
        }
        How::Waits(waits) if waits.mask != 0 => {
            // SAFETY: the program's set of signals.
            let before = sys::set_signal_mask(unsafe { *(waits.mask as *const u64) });
            let result = wait(me, &waits, kind, pc, real, Some(before));
            sys::set_signal_mask(before);
            result
        }
        How::Waits(waits) => wait(me, &waits, kind, pc, real, None),
    }
}

/// Waits until a call would not block, and makes it.
fn wait(me: &mut Thread, waits: &Waits, kind: usize, pc: usize, real: &impl Fn() -> isize, mask: Option<u64>) -> isize {
    let deadline = waits.nanos.map_or(Deadline::NEVER, Deadline::after_nanos);
    let result = loop {
        if !may_go_on(me, waits.asks, deadline, pc) {
            if waits.takes[1] != 0 {
                continue;
            }
            let result = interrupted();
            returned(me, kind, pc);
            return result;
        }
        if me.is_cancelled() {
            mask.map(sys::set_signal_mask);
            // SAFETY: a cancellation point; what is on the stack is cleaned up.
            at_once(me, || unsafe { real::pthread_testcancel() });
        }
        if std::mem::take(&mut me.goes_outside) {
            if waits.asks.is_simple() {
                match wait_in_kernel(me, waits.asks, deadline, pc) {
                    true => continue,
                    false => {
                        let result = interrupted();
                        returned(me, kind, pc);
                        return result;
                    }
                }
            }
            let result = away(me, pc, real);
            returned(me, kind, pc);
            return result;
        }
        if me.timed_out {
            break run_out(waits.asks);
        }
        if let Question::Signals(_) = waits.asks {
            match take_signal(waits) {
                // Somebody outside of the scheduler was faster.
                result if result == -(sys::EAGAIN as isize) => continue,
                result => break result,
            }
        }
        break at_once(me, real);
    };
    record::plain(me, op::BRANCH, kind, pc);
    result
}

/// Waits in the scheduler until a call would not block, or has to be given up. `false` if a handler of a signal interrupted it.
fn may_go_on(me: &mut Thread, asks: Question, deadline: Deadline, pc: usize) -> bool {
    me.asks = asks;
    (me.interrupted, me.goes_outside) = (false, false);
    let deadline = deadline.virtual_time();
    sched::before(me, Pending { op: op::RESUME, pc, wait: Wait::Ready, deadline, ..Pending::default() });
    !std::mem::take(&mut me.interrupted)
}

/// Waits, without the token, until one descriptor is ready. `false` if a handler of a signal interrupted it.
fn wait_in_kernel(me: &mut Thread, asks: Question, deadline: Deadline, pc: usize) -> bool {
    #[unsafe(link_section = "portent_real")]
    static POLL: Real = Real::new(b"poll\0");
    type Poll = unsafe extern "C-unwind" fn(*mut PollFd, usize, i32) -> i32;
    let Question::One { fd, events, .. } = asks else { return true };
    let mut question = PollFd { fd, events, result: 0 };
    let time = match deadline.virtual_time() {
        0 => -1,
        at => ((at - answers::now()).max(0) / 1_000_000).min(i64::from(i32::MAX - 1)) as i32 + 1,
    };
    me.call_broken = false;
    // SAFETY: the C library's function, so that the thread can be cancelled in it.
    let wait = || unsafe {
        std::mem::transmute::<Ptr, Poll>(POLL.required())(&raw mut question, 1, time);
    };
    away(me, pc, wait);
    !me.call_broken
}

/// What a call gives whose time is over.
fn run_out(asks: Question) -> isize {
    let at_once = [0u64; 2];
    let result = match asks {
        // SAFETY: the program's array, which the call would have filled.
        Question::Many { at, count } => unsafe { sys::call3(sys::SYS_POLL, at, count, 0) },
        // SAFETY: the program's sets, which the call would have filled; a time of our own.
        Question::Sets { at: [reads, writes, errors], count } => unsafe {
            sys::call(sys::SYS_SELECT, count, reads, writes, errors, &raw const at_once as usize, 0)
        },
        Question::Epoll(_) | Question::Nothing => 0,
        Question::One { .. } | Question::Signals(_) => -(sys::EAGAIN as isize),
    };
    if result < 0 { sys::fail(-result as i32) as isize } else { result }
}

/// Takes a signal that waits; as the C library's functions do, without waiting. EAGAIN, negated, if there is none any more.
fn take_signal(waits: &Waits) -> isize {
    const SENT_TO_THREAD: i32 = -6;
    let Question::Signals(set) = waits.asks else { return 0 };
    let at_once = [0u64; 2];
    let mut information = [0i32; 32];
    // SAFETY: a set, a description and a time of our own.
    let taken = unsafe {
        let (set, filled, time) = (&raw const set as usize, information.as_mut_ptr() as usize, &raw const at_once);
        sys::call(sys::SYS_SIGTIMEDWAIT, set, filled, time as usize, 8, 0, 0)
    };
    if taken < 0 {
        return if taken == -(sys::EAGAIN as isize) { taken } else { sys::fail(-taken as i32) as isize };
    }
    if information[2] == SENT_TO_THREAD {
        information[2] = 0;
    }
    let [told, number] = waits.takes;
    // SAFETY: the program's places for the results, which may be null.
    unsafe {
        if told != 0 {
            sys::copy_up(told as *mut u8, information.as_ptr().cast(), size_of_val(&information));
        }
        if number != 0 {
            *(number as *mut i32) = taken as i32;
            return 0;
        }
    }
    taken
}

/// Connects a socket: on this machine that does not block, as long as there is room among those that wait to be accepted.
pub fn connect(me: &mut Thread, fd: usize, pc: usize, real: &impl Fn() -> isize) -> isize {
    if examine(fd).0 != SOCKET || !is_blocking(fd) {
        return perform(me, Call::at_once(), pc, real);
    }
    spin::forget(me);
    if is_interrupted(me, false, pc) {
        return interrupted();
    }
    sched::before(me, Pending { op: op::RESUME, pc, ..Pending::default() });
    let result = without_blocking(fd, || at_once(me, real));
    // SAFETY: this thread's errno.
    match unsafe { *sys::__errno_location() } {
        EINPROGRESS if (result as i32) < 0 => {
            // It is on its way. When it has come to an end, the same call says which.
            let asks = Question::One { fd: fd as i32, events: POLLOUT, least: 0 };
            let Call { how: How::Waits(waits), kind } = Call::waits(asks, None, 0) else { return result };
            wait(me, &waits, kind, pc, real, None)
        }
        sys::EAGAIN if (result as i32) < 0 => {
            let result = away(me, pc, real);
            returned(me, call::ANY, pc);
            result
        }
        _ => {
            record::plain(me, op::BRANCH, call::ANY, pc);
            result
        }
    }
}

/// Does `work` while calls on a descriptor do not block.
fn without_blocking<T>(fd: usize, work: impl FnOnce() -> T) -> T {
    /// Also when the call is left by cancellation.
    struct Restore(usize, usize);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: the descriptor's own flags.
            unsafe { sys::call3(sys::SYS_FCNTL, self.0, F_SETFL, self.1) };
        }
    }
    // SAFETY: the program's descriptor, which nobody else uses meanwhile.
    let _restore = unsafe {
        let flags = sys::call3(sys::SYS_FCNTL, fd, F_GETFL, 0) as usize;
        sys::call3(sys::SYS_FCNTL, fd, F_SETFL, flags | O_NONBLOCK);
        Restore(fd, flags)
    };
    work()
}
