//! Who runs: the token, what is possible, and how the next thread is chosen.
//!
//! Every thread that waits has published its next operation; the scheduler picks among those that are possible. Picking
//! the running thread again costs nothing; a switch costs two futex calls. Where the plan has steps, they decide; where it
//! has none (left), a policy does.
//!
//! Time is virtual where a thread waits for it: a sleep or a time-out happens when nothing else can, the earliest first,
//! and the clocks that the program sees move on by as much ([`crate::answers`]). A plan may let it happen earlier, and
//! policies that choose by chance or in turn do so now and then. While a thread is away in a system call, the
//! others' time-outs take their real time. A wait whose time has really passed also ends when the others only spin: at once
//! when one of them yields (a sleep, also when one has run for long), after a second in any case.
//!
//! A thread that only looks at things in a loop waits until one of them changes ([`crate::spin`]).
//!
//! Nobody possible, nobody away, no time to wait for: that is a deadlock. It is noted, and the process ends.

mod choose;
mod follow;

use crate::log::{note, op};
use crate::plan::policy;
use crate::state::{Life, Pending, Thread, UnreadWrite, Wait, thread};
use crate::{answers, channels, condition, once, process, readiness, record, semaphore, signals, spin, sys};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};

/// Events before the scheduler looks again whether somebody else should run, where the policy prefers to stay: a thread
/// that spins on a plain variable lets the others go on so.
const PATIENCE: u64 = 50_000;
/// How long a thread waits for the token before it looks whether the holder is stuck in the kernel, in nanoseconds.
const SUSPICION: i64 = 100_000_000;
/// After this time without an event the holder loses the token even if it computes, in nanoseconds.
const LONG: i64 = 1_000_000_000;

/// For PCT: changes of priority, at most.
pub const MOST_CHANGES: usize = 63;
/// For PCT: whoever yields is put behind all others from here downwards; the changes of priority are between that and the
/// priorities that threads begin with.
const FIRST_LOWEST: u64 = 1 << 62;

/// Everything under the scheduler's lock.
pub struct Scheduler {
    /// Who has the token: id + 1, or 0 if all are away.
    pub holder: u32,
    /// The thread whose records are being written.
    recording: u32,
    pub count: u32,
    /// First and last of those not done: id + 1.
    first: u32,
    last: u32,
    /// How many are away in system calls.
    pub away: u32,
    /// Counts sleeps and notifies, to tell which came first.
    pub clock: u64,
    /// Time that was skipped, in nanoseconds: what virtual clocks add to the real one.
    pub skipped: i64,
    random: u64,
    /// How long the random policy lets a thread run, at most.
    span: u64,
    /// For PCT: before which events of all threads the priority of whoever is next changes, the earliest first, and to which.
    changes: [[u64; 2]; MOST_CHANGES],
    /// How many of them there are, and how many have been.
    change_count: usize,
    changed: usize,
    /// For PCT: after so many events of all threads it need not be strict any more.
    length: u64,
    policy: u64,
    /// Steps of the plan, in mapped memory.
    steps: *const [u64; 2],
    step_count: usize,
    step: usize,
    /// Events of the current step that have been granted already; the step is over when its thread has executed them.
    granted: bool,
    pub following: bool,
    goal: u64,
    goal_threads: *const u64,
    goal_count: usize,
    goal_seen: bool,
    /// After a race: who goes on first, each one event; id + 1.
    order_after: [u32; 2],
    family: *const [u64; 2],
    family_count: usize,
    trap: bool,
    /// Whether the plan says that nobody outside of this process connected to it, sent to it, or signalled it.
    alone: bool,
    /// Whether the plan lets waits on conditions end by themselves.
    pub spurious: bool,
    /// Whether the plan has threads that fail wait for the others.
    pub parks: bool,
    /// For a debugger: whoever runs next stops when it goes on; or this thread, plus one, before the event of this number.
    stop_next: bool,
    stop_at: [u64; 2],
    /// A thread that has ended but may still be leaving the kernel: the next holder waits for that.
    leaving: u32,
    /// While the process wants to exit: events and timed waits that the other threads may still have.
    exit_events: u64,
    exit_waits: u64,
    /// What was found when somebody looked around: the holder and its events, and since when it has been so.
    watched: (usize, u64),
    watched_since: i64,
    pub exiting: bool,
    /// Whoever is away has been so for long.
    impatient: bool,
    /// Who is about to enter the kernel; id + 1.
    departing: u32,
    /// For PCT: priorities are handed out downwards from here when a thread is put behind all others.
    lowest: u64,
    pub pid: u32,
}

const NEW: Scheduler = Scheduler {
    holder: 0,
    recording: 0,
    count: 0,
    first: 0,
    last: 0,
    away: 0,
    clock: 0,
    skipped: 0,
    random: 1,
    span: 100,
    changes: [[0; 2]; MOST_CHANGES],
    change_count: 0,
    changed: 0,
    length: 0,
    policy: 0,
    steps: std::ptr::null(),
    step_count: 0,
    step: 0,
    granted: false,
    following: false,
    goal: 0,
    goal_threads: std::ptr::null(),
    goal_count: 0,
    goal_seen: false,
    order_after: [0; 2],
    family: std::ptr::null(),
    family_count: 0,
    trap: false,
    alone: false,
    spurious: false,
    parks: false,
    stop_next: false,
    stop_at: [0; 2],
    leaving: 0,
    exit_events: 3_000_000,
    exit_waits: 1000,
    watched: (0, 0),
    watched_since: 0,
    exiting: false,
    impatient: false,
    departing: 0,
    lowest: FIRST_LOWEST,
    pid: 0,
};

static mut SCHEDULER: Scheduler = NEW;

/// Forgets all threads, in a forked child, which has none of them. Time goes on.
///
/// # Safety
/// Called by the only thread of its process, which is not recorded.
pub unsafe fn forget() {
    // SAFETY: nobody else runs; zeroes are a thread that is not used.
    unsafe {
        for id in 0..SCHEDULER.count {
            sys::fill(thread(id).cast(), 0, size_of::<Thread>());
        }
        SCHEDULER = Scheduler { skipped: SCHEDULER.skipped, ..NEW };
        spin::start_anew();
    }
    // Another thread may have held it.
    LOCK.store(0, Ordering::SeqCst);
}

static LOCK: AtomicU32 = AtomicU32::new(0);

/// The scheduler, locked. Never held while a thread of the program runs.
pub struct Locked(&'static mut Scheduler);

impl std::ops::Deref for Locked {
    type Target = Scheduler;
    fn deref(&self) -> &Scheduler {
        self.0
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Scheduler {
        self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if LOCK.swap(0, Ordering::Release) == 2 {
            sys::futex_wake(LOCK.as_ptr());
        }
    }
}

/// Locks the scheduler: the usual three-state futex lock.
pub fn lock() -> Locked {
    if LOCK.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        while LOCK.swap(2, Ordering::Acquire) != 0 {
            sys::futex_wait(LOCK.as_ptr(), 2, -1);
        }
    }
    // SAFETY: the lock is ours, so this is the only reference.
    Locked(unsafe { &mut *&raw mut SCHEDULER })
}

/// Looks at the scheduler as the holder of the token does, who alone changes what it looks at.
pub fn peek() -> *mut Scheduler {
    &raw mut SCHEDULER
}

/// Asks for the token before an event that may not be possible, or because the thread's events are used up. Returns when
/// the thread has the token and its operation is possible (or timed out, see `timed_out`, or cancelled).
#[cold]
#[inline(never)]
pub fn ask(me: &mut Thread, pending: Pending) {
    if me.events >= me.spins.check_at {
        spin::check(me, &pending);
    }
    let goes_on = me.events < me.turn_ends()
        && me.signals == 0
        && pending.wait == Wait::Nothing
        && !(pending.op >= op::ACCESSES && eager());
    if !goes_on {
        wait(me, pending);
    }
    if me.spins.watched {
        spin::watch(me, &pending);
    }
}

/// Waits for the token and until the operation is possible.
pub fn wait(me: &mut Thread, pending: Pending) {
    me.timed_out = false;
    me.interrupted = false;
    me.waited = false;
    me.goes_outside = false;
    loop {
        if me.break_after == me.events + 1 {
            me.break_after = 0;
            me.allow(me.until);
            process::stop(pending.pc);
            // SAFETY: as below.
            if me.events < me.stop && me.signals == 0 && unsafe { (*peek()).allows(me, &pending) } {
                return;
            }
        }
        if me.signal_at == me.events {
            signals::inject(me, pending.wait != Wait::Nothing);
            // SAFETY: the holder of the token looks at objects that only holders change.
            if me.events < me.until && me.signals == 0 && unsafe { (*peek()).allows(me, &pending) } {
                return;
            }
        }
        // Handlers that ran in between had operations of their own.
        me.pending = pending;
        me.timed_out = false;
        let scheduler = lock();
        me.life = Life::Waiting;
        me.publish();
        hand_over(scheduler, me.id);
        wait_for_turn(me);
        // SAFETY: the holder of the token looks at objects that only holders change.
        if me.signals == 0 || me.timed_out || me.goes_outside || unsafe { (*peek()).allows(me, &pending) } {
            return;
        }
        // The turn is for handlers of signals that came while it waited; then it waits on, or has been interrupted.
        me.inside = 0;
        me.waited = true;
        let restarts = signals::deliver(me);
        me.waited = false;
        me.inside = 1;
        let ends = match pending.wait {
            Wait::Sleep => true,
            Wait::Semaphore(_) | Wait::Futex(_) => !restarts,
            Wait::Ready => !restarts || me.asks.is_always_interrupted(),
            _ => false,
        };
        if ends {
            me.interrupted = true;
            return;
        }
    }
}

/// Before an event: goes on if the thread may and can, else asks.
#[inline(always)]
pub fn before(me: &mut Thread, pending: Pending) {
    me.timed_out = false;
    // A signal that waits for its handler makes nothing possible here: `ask` runs the handler, and then waits.
    // SAFETY: the holder of the token looks at objects that only holders change.
    let busy = pending.wait != Wait::Nothing && !unsafe { (*peek()).allows(me, &pending) };
    if me.events >= me.stop || busy || (pending.op >= op::ACCESSES && eager()) {
        ask(me, pending);
    }
}

/// Whether the policy wants to be asked at every operation that is no access.
#[inline(always)]
fn eager() -> bool {
    // SAFETY: set before there are threads, except `following`, which only the holder changes.
    unsafe { (*peek()).policy >= policy::RANDOM && !(*peek()).following }
}

/// A new thread waits for its first turn.
pub fn first_turn(me: &mut Thread) {
    wait_for_turn(me);
}

/// The token goes away while the thread is in a system call (or whatever else may take long).
pub fn go_away(me: &mut Thread, pc: usize) {
    spin::forget(me);
    loop {
        me.pending = Pending { op: op::RESUME, pc, ..Pending::default() };
        let mut scheduler = lock();
        me.life = Life::Away;
        scheduler.departing = me.id + 1;
        scheduler.away += 1;
        me.publish();
        hand_over(scheduler, u32::MAX);
        me.in_call = true;
        compiler_fence(Ordering::SeqCst);
        if me.signals == 0 {
            return;
        }
        // They came before `in_call` was set, so they were put off; but the call may never return.
        come_back(me);
        me.inside = 0;
        signals::deliver(me);
        me.inside = 1;
    }
}

/// The thread goes into code of a library that may wait, and call the runtime while it does: others run meanwhile, and it waits for
/// its turn when it next comes here.
pub fn let_go(me: &mut Thread) {
    go_away(me, 0);
    me.in_call = false;
    me.unread.size = UnreadWrite::TOKEN_LOST;
}

/// Back from it: waits for the token.
pub fn come_back(me: &mut Thread) {
    me.in_call = false;
    me.is_spare = false;
    let mut scheduler = lock();
    scheduler.away -= 1;
    me.life = Life::Waiting;
    me.timed_out = false;
    if scheduler.holder == 0 {
        hand_over(scheduler, me.id);
    } else {
        drop(scheduler);
    }
    wait_for_turn(me);
}

/// A thread ends: it leaves the list, and the token goes to somebody else.
pub fn end(me: &mut Thread) {
    let mut scheduler = lock();
    me.life = Life::Done;
    me.publish();
    scheduler.unlink(me.id);
    scheduler.leaving = me.tid;
    hand_over(scheduler, u32::MAX);
}

/// Gives the others a chance before the next event.
pub fn yield_turn(me: &mut Thread) {
    // SAFETY: the holder of the token. A plan knows nothing of patience.
    if !unsafe { (*peek()).following } {
        me.allow(me.events);
        me.yielded = true;
    }
}

/// The thread goes on as another fiber: that has the token, and this one is not chosen until somebody goes on as it.
pub fn pass_on(me: &mut Thread, next: &mut Thread) {
    let mut scheduler = lock();
    me.life = Life::Parked;
    me.pending = Pending { op: op::RESUME, ..Pending::default() };
    me.publish();
    scheduler.unlink(me.id);
    next.tid = me.tid;
    scheduler.link(next.id);
    scheduler.grant(next.id);
    // Its first event asks who runs next.
    next.allow(next.events);
}

/// How often a thread may do something that is no event, while a plan is followed or nobody knows whether it waits, before
/// others run all the same.
pub const UNSEEN: u32 = 2000;

/// A thread does something that is no event and may be a sign of waiting for others: code that is not seen spins, or yields.
/// After so many times in a row, others run before it goes on.
#[inline]
pub fn idle(me: &mut Thread, times: u32, pc: usize) {
    me.idle = if me.idle.0 == me.events { (me.events, me.idle.1 + 1) } else { (me.events, 1) };
    // SAFETY: the holder of the token.
    let following = unsafe { (*peek()).following };
    if me.idle.1 >= if following { UNSEEN } else { times } {
        make_way(me, pc);
    }
}

#[cold]
#[inline(never)]
fn make_way(me: &mut Thread, pc: usize) {
    me.idle.1 = 0;
    let mut scheduler = lock();
    if scheduler.following {
        // The plan lets nobody else run before this thread has had an event, which it will not have.
        scheduler.give_up();
    }
    drop(scheduler);
    me.allow(me.events);
    me.yielded = true;
    ask(me, Pending { op: op::RESUME, pc, ..Pending::default() });
}

/// What `Thread::turn` says, when it is not 0.
mod turn {
    /// The thread has the token.
    pub const YOURS: u32 = 1;
    /// It sleeps on that word, and has to be woken.
    pub const ASLEEP: u32 = 2;
}

/// Chooses who runs next and wakes it, unless that is `asking` itself. The lock is given back first: whoever is woken
/// would often find it taken.
fn hand_over(mut scheduler: Locked, asking: u32) {
    let next = scheduler.choose(asking);
    (scheduler.impatient, scheduler.departing) = (false, 0);
    let Some(next) = next else {
        scheduler.holder = 0;
        return;
    };
    scheduler.grant(next);
    // SAFETY: a thread of the table, which lives for ever.
    let word = unsafe { &(*thread(next)).turn };
    let sleeps = word.swap(turn::YOURS, Ordering::AcqRel) == turn::ASLEEP;
    drop(scheduler);
    if sleeps {
        sys::futex_wake(word.as_ptr());
    }
}

fn wait_for_turn(me: &mut Thread) {
    // Whoever gives the turn need not wake those that are still on their way to sleep.
    while me.turn.compare_exchange(0, turn::ASLEEP, Ordering::Acquire, Ordering::Acquire) != Err(turn::YOURS) {
        let patience = match me.pending.deadline {
            0 => SUSPICION,
            deadline => (deadline - answers::now()).clamp(1_000_000, SUSPICION),
        };
        match sys::futex_wait(me.turn.as_ptr(), turn::ASLEEP, patience) {
            error if error == -sys::ETIMEDOUT => look_around(me),
            error if error == -sys::EINTR && me.signals != 0 => {
                let scheduler = lock();
                if scheduler.holder == 0 && me.turn.load(Ordering::Acquire) != turn::YOURS {
                    hand_over(scheduler, u32::MAX);
                }
            }
            _ => {}
        }
    }
    me.turn.store(0, Ordering::Relaxed);
    // SAFETY: the holder of the token.
    let leaving = unsafe { std::mem::take(&mut (*peek()).leaving) };
    // SAFETY: set once. The first thread stays in the kernel as long as the process.
    if leaving != 0 && leaving != me.tid && leaving != unsafe { (*peek()).pid } {
        // What a thread does after its end (its malloc caches, its stack) must come before what we do.
        // SAFETY: set once.
        let pid = unsafe { (*peek()).pid };
        // It may hang in a destructor of the program's that ran after ours: then we do not wait for ever.
        let since = sys::clock(1);
        while sys::thread_exists(pid, leaving) && sys::clock(1) - since < LONG {
            // SAFETY: no arguments.
            unsafe { sys::call3(sys::SYS_SCHED_YIELD, 0, 0, 0) };
        }
    }
    if std::mem::take(&mut me.stops) {
        // A thread that begins has no place yet but its routine.
        process::stop(if me.pending.pc == 0 { me.routine } else { me.pending.pc });
    }
}

/// A thread has waited for long: perhaps its time has come, or the holder does not need the token.
#[cold]
fn look_around(me: &mut Thread) {
    let mut scheduler = lock();
    if me.turn.load(Ordering::Acquire) == turn::YOURS {
        return;
    }
    if scheduler.holder == 0 {
        // Somebody is away for good, as far as we know: operations with a deadline happen when it has passed, and the
        // process may end.
        // The thread of the plan's step is in a system call that does not return. If it sleeps there, whoever should wake it is
        // most likely one of those who wait for it here.
        let unchanged = scheduler.unchanged_for(std::ptr::null_mut());
        if scheduler.following
            && unchanged >= 3 * SUSPICION
            && (unchanged >= 5 * LONG || scheduler.step_sleeps_in_kernel())
        {
            scheduler.give_up();
        }
        scheduler.impatient = scheduler.unchanged_for(std::ptr::null_mut()) >= SUSPICION / 2;
        hand_over(scheduler, u32::MAX);
        return;
    }
    let holder = thread(scheduler.holder - 1);
    let unchanged = scheduler.unchanged_for(holder);
    // SAFETY: threads of the table live for ever.
    let asleep = unchanged >= SUSPICION && unsafe { (*holder).inside == 0 && process::sleeps_in_kernel((*holder).tid) };
    // SAFETY: as above.
    if (asleep || unchanged >= LONG) && unsafe { take_away(&mut scheduler, &mut *holder) } {
        hand_over(scheduler, u32::MAX);
    }
}

/// Takes the token from a thread that has not entered the runtime for long: it sleeps in a system call that the runtime
/// does not know, or computes in code without instrumentation. From here on it counts as away; when it next enters the
/// runtime it waits for the token ([`regain`]). Whether it has lost it.
///
/// # Safety
/// Under the scheduler's lock; `holder` has the token.
unsafe fn take_away(scheduler: &mut Scheduler, holder: &mut Thread) -> bool {
    // SAFETY: fields of a thread of the table, which its thread may change at the same time.
    let inside = || unsafe { std::ptr::read_volatile(&raw const holder.inside) } != 0;
    if inside() || holder.life != Life::Running {
        return false;
    }
    // SAFETY: as above.
    let size = unsafe { AtomicUsize::from_ptr(&raw mut holder.unread.size) };
    let unread = size.swap(UnreadWrite::TOKEN_LOST, Ordering::SeqCst);
    if unread != UnreadWrite::TOKEN_LOST {
        holder.put_aside = unread;
    }
    // It may be entering the runtime this very moment. After this barrier either we see that, or it sees what we wrote.
    sys::barrier_everywhere();
    if inside() || size.load(Ordering::SeqCst) != UnreadWrite::TOKEN_LOST {
        // It was faster, and keeps the token. If it has seen what we wrote, or sees it later, `regain` finds out, and
        // what was put aside is still to be recorded: had it recorded that itself, it would have cleared the size after us.
        return false;
    }
    let UnreadWrite { pc, address, op, .. } = holder.unread;
    let unread = UnreadWrite { pc, address, op, size: std::mem::take(&mut holder.put_aside) };
    if unread.size != 0 {
        record::written(holder, unread);
    }
    holder.life = Life::Away;
    holder.pending = Pending { op: op::RESUME, ..Pending::default() };
    scheduler.away += 1;
    let text = b"a thread was long in code that is not instrumented, or in a system call that Portent does not know; others went on";
    record::told(note::MESSAGE, &[crate::log::message::WARNING, 0], text);
    true
}

/// The token was taken from a running thread, by [`look_around`]: it waits for it before it goes on.
#[cold]
#[inline(never)]
pub fn regain(me: &mut Thread) {
    let scheduler = lock();
    let lost = me.life != Life::Running;
    me.unread.size = if lost { 0 } else { std::mem::take(&mut me.put_aside) };
    drop(scheduler);
    if lost {
        come_back(me);
    } else if me.unread.size != 0 {
        record::read_back(me);
    }
}

impl Scheduler {
    /// A number for a new thread: as the plan knows it by its place in the family, or the next free one.
    pub fn number(&mut self, parent: u32, child: u32) -> Option<u32> {
        for id in 1..self.family_count {
            // SAFETY: the family table has so many lines.
            if unsafe { *self.family.add(id) } == [u64::from(parent), u64::from(child)] {
                self.count = self.count.max(id as u32 + 1);
                return Some(id as u32);
            }
        }
        let id = self.count.max(self.family_count as u32);
        if id as usize >= crate::log::MAX_THREADS {
            return None;
        }
        self.count = id + 1;
        Some(id)
    }

    /// Puts a new thread into the list of those not done.
    pub fn link(&mut self, id: u32) {
        // SAFETY: threads of the table; the list is under the lock.
        unsafe {
            let new = &mut *thread(id);
            new.previous_live = self.last;
            new.next_live = 0;
            match self.last {
                0 => self.first = id + 1,
                last => (*thread(last - 1)).next_live = id + 1,
            }
            self.last = id + 1;
            new.priority = self.draw() | 1 << 63;
        }
    }

    pub fn unlink(&mut self, id: u32) {
        // SAFETY: as in `link`.
        unsafe {
            let (previous, next) = ((*thread(id)).previous_live, (*thread(id)).next_live);
            match previous {
                0 => self.first = next,
                previous => (*thread(previous - 1)).next_live = next,
            }
            match next {
                0 => self.last = previous,
                next => (*thread(next - 1)).previous_live = previous,
            }
        }
    }

    /// Those not done, oldest first.
    pub fn living(&self) -> impl Iterator<Item = &'static mut Thread> + use<> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            // SAFETY: threads of the table, under the lock; the caller holds no other reference to the ones it uses.
            let found = (at != 0).then(|| unsafe { &mut *thread(at - 1) })?;
            at = found.next_live;
            Some(found)
        })
    }

    /// Whether an operation could happen now. No side effects.
    pub fn possible(&self, who: &Thread, pending: &Pending) -> bool {
        who.signals != 0 || self.allows(who, pending)
    }

    /// The same, handlers of signals aside.
    pub fn allows(&self, who: &Thread, pending: &Pending) -> bool {
        if who.is_cancelled()
            && matches!(
                pending.wait,
                Wait::Condition(_) | Wait::Join(_) | Wait::Semaphore(_) | Wait::Sleep | Wait::Ready
            )
        {
            return true;
        }
        match pending.wait {
            Wait::Nothing => true,
            Wait::Mutex(at) => crate::mutex::is_free(at, who),
            Wait::Spin(at) => crate::mutex::spin_is_free(at),
            Wait::RwRead(at) => crate::rwlock::can_read(at),
            Wait::RwReadBehind(at) => crate::rwlock::can_read_behind(at),
            Wait::RwWrite(at) => crate::rwlock::can_write(at),
            Wait::AnnotatedRead(at) => crate::annotated::can_read(at, who),
            Wait::AnnotatedWrite(at) => crate::annotated::can_write(at, who),
            Wait::Condition(at) => who.notified || condition::has_permit(at, who.slept),
            Wait::Futex(_) => who.notified,
            // SAFETY: threads of the table live for ever.
            Wait::Join(id) => unsafe { (*thread(id)).life == Life::Done },
            Wait::Semaphore(at) => semaphore::count(at) > 0,
            Wait::Barrier(at) => semaphore::round(at) > who.round,
            Wait::Once(at) => !once::in_progress(at),
            Wait::Change => self.has_changed(who),
            Wait::Ready => readiness::is_ready(who),
            Wait::Sleep | Wait::Exit => false,
        }
    }

    /// The next thread, with its `timed_out` set; `None` if all are away. A deadlock ends the process.
    fn choose(&mut self, asking: u32) -> Option<u32> {
        if self.following
            && let Some(next) = self.follow_plan()
        {
            return next;
        }
        let found = self.after_goal().or_else(|| self.by_policy(asking));
        let found = found.or_else(|| self.by_outside()).or_else(|| self.by_time());
        if found.is_some() {
            return found;
        }
        if (self.away == 0 || self.impatient || self.all_are_spare())
            && let Some(next) = self.by_exit()
        {
            return Some(next);
        }
        if (self.away > 0 && !self.all_wait_for_each_other()) || self.waits_for_signals() {
            return None;
        }
        if let Some(next) = self.by_spinning() {
            return Some(next);
        }
        if self.first == 0 {
            // The last thread ends; the C library ends the process.
            process::ended();
            return None;
        }
        self.deadlock()
    }

    /// How long, in nanoseconds, a thread has had the token without an event, or (null) nobody has had it, as far as
    /// those who looked around know.
    fn unchanged_for(&mut self, holder: *mut Thread) -> i64 {
        // SAFETY: a thread of the table; the number is only compared.
        let events = if holder.is_null() { 0 } else { unsafe { std::ptr::read_volatile(&raw const (*holder).events) } };
        let now = sys::clock(1);
        if self.watched != (holder as usize, events) {
            self.watched = (holder as usize, events);
            self.watched_since = now;
        }
        now - self.watched_since
    }

    /// Whether whoever is away waits for work that nobody is there to give: the process may end.
    fn all_are_spare(&self) -> bool {
        self.living().filter(|one| one.life == Life::Away).all(|one| one.is_spare)
    }

    /// Whether whoever is away waits for other threads of this process, all of which wait here.
    fn all_wait_for_each_other(&self) -> bool {
        let mut away = self.living().filter(|one| one.life == Life::Away);
        !signals::has_handlers() && away.all(|one| self.is_stuck(one))
    }

    /// Whether a thread that is away waits for what only threads that wait here could do.
    fn is_stuck(&self, one: &Thread) -> bool {
        // What it waits for must still be missing after it began to wait: otherwise it may just not have come back yet.
        let waits = self.departing == one.id + 1 || process::is_blocked_on(one.tid, one.descriptor);
        waits && channels::is_stuck(one.descriptor)
    }

    /// Whether a signal from outside may still change things: for a while, if the program handles any.
    fn waits_for_signals(&mut self) -> bool {
        signals::has_handlers() && self.unchanged_for(std::ptr::null_mut()) < LONG
    }

    fn grant(&mut self, id: u32) {
        // SAFETY: a thread of the table, under the lock.
        let next = unsafe { &mut *thread(id) };
        next.life = Life::Running;
        next.stops |= std::mem::take(&mut self.stop_next);
        if self.stop_at[0] == u64::from(id) + 1 {
            // Events have one number among all: those of the others do not change while this one runs.
            // SAFETY: threads of the table, under the lock.
            let others = (0..self.count).filter(|&other| other != id).map(|other| unsafe { (*thread(other)).events });
            let before: u64 = others.sum();
            if let Some(own) = self.stop_at[1].checked_sub(before).filter(|&own| own >= next.events) {
                next.break_after = own + 1;
                next.allow(next.until);
            }
        }
        self.watched = (usize::MAX, 0);
        self.holder = id + 1;
        if self.recording != id {
            self.recording = id;
            record::note(note::SWITCH, &[&id.to_le_bytes()]);
            // SAFETY: the header is mapped while threads run.
            unsafe { (*record::header()).switches += 1 };
        }
    }

    /// Notes what everybody who is not done waits for, but for one thread.
    pub fn tell_who_waits(&self, kind: u16, but: u32) {
        let mut told = [0u64; 4 * 64];
        let mut filled = 0;
        for one in self.living().filter(|one| one.id != but).take(64) {
            let Pending { op, address, pc, .. } = one.pending;
            told[filled..filled + 4].copy_from_slice(&[u64::from(one.id), u64::from(op), address as u64, pc as u64]);
            filled += 4;
            one.publish();
        }
        record::numbers(kind, &told[..filled]);
    }

    fn deadlock(&mut self) -> ! {
        self.tell_who_waits(note::DEADLOCK, u32::MAX);
        // SAFETY: the header is mapped while threads run.
        unsafe { (*record::header()).state = crate::log::state::DEADLOCK };
        if self.trap {
            let first = self.living().find(|one| one.pending.op < op::FORK).or_else(|| self.living().next());
            process::trap(first.map_or(0, |one| one.tid));
        }
        sys::kill_process()
    }
}
