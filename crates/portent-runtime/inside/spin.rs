//! Spinning: a thread that looks at the same things again and again waits until one of them changes.
//!
//! **The rule.** An iteration is *pure* if it changes nothing that others see: reads, updates that leave what was there, tries that
//! fail, calls, fences, sleeps, yields, writes of the thread's own stack. An operation that would complete a pure iteration equal to
//! the one before it (the same places, objects and outcomes) does not happen until something that the iteration looks at is
//! other than it was. That is a property of the state, so that it is the same in every run that gets there. A plan is
//! followed as it is; the rule goes on where the plan ends.
//!
//! **When iterations are equal.** They did the same at the same places, saw the same, and the thread is as it was: the registers that
//! calls keep and the stack are the same at each ([`state`]). So a loop that counts its rounds is no spinning. This is looked at only where
//! everything else is equal, which takes one iteration more. What is not looked at: more than a few kilobytes of stack, and memory
//! that code without instrumentation writes. So when nobody else can go on, spinners do ([`Scheduler::by_spinning`]), one
//! after the other: whoever leaves its loop though nothing has changed was counting, and the rule is not used there any more in this
//! run; whoever does not is stuck for good.
//!
//! **What it costs.** Atomic reads, tries and yields note what they saw in a small buffer. Plain accesses note nothing: only
//! where a thread seems to spin with something in between, it is *watched* ([`watch`]): it then asks the scheduler before each event.
//! Loops of plain reads alone (of `volatile` variables) are found when their turn is over, and after many rounds: their registers are
//! not known.

use crate::log::{note, op, spins};
use crate::sched::{self, Scheduler};
use crate::state::{Life, Pending, Thread, Wait};
use crate::{process, record, state};

/// Looks that are kept: two iterations of half as many.
const KEPT: usize = 64;
/// Places that are remembered to notice spinning with something in between.
const SUSPECTS: usize = 8;
/// Equal iterations before a loop counts as one that spins, if it has nothing but plain reads: most of those only compute.
const PLAIN_ROUNDS: u32 = 200;
/// Looks of a spinner that goes on because nobody else can, before it counts as stuck.
const LAST_LOOKS: u32 = 20_000;
/// Events of a thread after which it is watched for a while, if it then reads.
const CHECK: u64 = 5_000;
/// Looks of a thread that is watched and does not spin, before it is not watched any more.
const LONG_ENOUGH: u32 = 4 * KEPT as u32;
/// Of the stack, so many bytes count as the state of a thread.
const WINDOW: usize = 4096;
/// Writes so far above the runtime's own frame are to the thread's own stack.
const STACK: usize = 64 << 10;
/// Places that are known to count, at most.
const PLACES: usize = 32;

/// Something that a thread did that changes nothing, and what it saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    pub op: u16,
    pub pc: usize,
    pub address: usize,
    /// Bytes; 0 where no memory is looked at.
    pub size: usize,
    pub value: u64,
    /// For tries: when they would not fail.
    pub until: Wait,
    /// Whether an event follows.
    is_event: bool,
    /// What the thread was like; 0 if nobody looked.
    state: u64,
}

impl PartialEq for Look {
    /// Whether both did and saw the same.
    fn eq(&self, other: &Look) -> bool {
        (self.pc, self.address, self.value, self.op) == (other.pc, other.address, other.value, other.op)
    }
}

impl Look {
    /// A read, or an update that leaves what is there.
    pub fn sees(op: u16, address: usize, size: usize, value: u64, pc: usize) -> Self {
        Look { op, pc, address, size, value, ..Look::default() }
    }
    /// A call, a fence, a sleep, a yield.
    pub fn at(op: u16, pc: usize) -> Self {
        Look { op, pc, ..Look::default() }
    }
    /// A try that fails.
    pub fn fails(op: u16, address: usize, until: Wait, pc: usize) -> Self {
        Look { op, pc, address, until, ..Look::default() }
    }
    /// Whether others can change what it sees.
    fn sees_others(&self) -> bool {
        self.until != Wait::Nothing || (self.size > 0 && self.op & !7 != op::WRITE)
    }
    /// Whether it is something that loops which compute do not do.
    fn is_sign(&self) -> bool {
        self.op != op::READ && !matches!(self.op, op::WRITE | op::CALL | op::RETURN)
    }
    /// Whether it would see something else now.
    fn is_changed(&self, scheduler: &Scheduler, who: &Thread) -> bool {
        match self.until {
            Wait::Nothing => self.sees_others() && record::load(self.address, self.size) != Some(self.value),
            wait => scheduler.allows(who, &Pending { wait, ..Pending::default() }),
        }
    }
}

/// What a thread has looked at since it last changed something.
pub struct Spins {
    looks: [Look; KEPT],
    filled: usize,
    /// Events that the thread has when nothing came after the last look.
    follows: u64,
    /// It asks the scheduler before each event.
    pub watched: bool,
    /// When it has had so many events, it is watched if it reads.
    pub check_at: u64,
    /// Looks of places that were not followed by the next look at once.
    suspects: [(usize, usize, u64); SUSPECTS],
    /// So often a suspect is met before the thread is watched; and how often one was.
    patience: u32,
    doubts: u32,
    /// Looks since it is watched.
    looked: u32,
    /// Looks in a row that each completed an equal iteration.
    rounds: u32,
    /// The length of the iteration that it waits with, and the place in it where it looks at something.
    period: usize,
    place: usize,
    /// Counts looks and what makes them forgotten; how many there were when it began to wait. A signal handler that runs meanwhile
    /// has looks of its own.
    moves: u32,
    held: u32,
    /// Looks that it may still have because nobody else can go on; it had them all.
    freed: u32,
    stays: bool,
}

impl Default for Spins {
    fn default() -> Self {
        Spins {
            looks: [Look::default(); KEPT],
            filled: 0,
            follows: 0,
            watched: false,
            check_at: 0,
            suspects: [(0, 0, 0); SUSPECTS],
            patience: 0,
            doubts: 0,
            rounds: 0,
            period: 0,
            place: 0,
            looked: 0,
            moves: 0,
            held: 0,
            freed: 0,
            stays: false,
        }
    }
}

impl Spins {
    /// The iteration that ends with the last look.
    fn iteration(&self, period: usize) -> &[Look] {
        &self.looks[self.filled - period..self.filled]
    }
    /// Whether the last look completes an iteration equal to the one before: how long it is.
    fn completes(&self) -> Option<usize> {
        let looks = &self.looks[..self.filled];
        let last = looks.last()?;
        (1..=self.filled / 2).find(|&period| {
            let (before, iteration) = looks.split_at(self.filled - period);
            before[before.len() - 1] == *last && before.ends_with(iteration) && iteration.iter().any(Look::sees_others)
        })
    }
    fn push(&mut self, look: Look) {
        if self.filled == KEPT {
            self.looks.copy_within(KEPT / 2.., 0);
            self.filled = KEPT / 2;
        }
        self.looks[self.filled] = look;
        self.filled += 1;
        self.moves = self.moves.wrapping_add(1);
    }
}

/// Places at which the rule is not used any more.
static mut COUNTING: [usize; PLACES] = [0; PLACES];

/// Forgets them, in a forked child.
///
/// # Safety
/// Called by the only thread of its process.
pub unsafe fn start_anew() {
    // SAFETY: nobody else runs.
    unsafe { COUNTING = [0; PLACES] };
}

/// Adds a place: whether it is new.
fn add(places: &mut [usize; PLACES], pc: usize) -> bool {
    match places.iter_mut().find(|place| **place == pc || **place == 0) {
        Some(place) if *place == 0 => {
            *place = pc;
            true
        }
        _ => false,
    }
}

/// The thread is about to do something that changes nothing: `look` says what it will see. Returns when that is allowed. An
/// event follows, unless `is_event` is false.
#[inline]
pub fn look(me: &mut Thread, look: Look, is_event: bool) {
    if me.spins.follows != me.events {
        gap(me, &look);
    }
    me.spins.push(Look { is_event, ..look });
    me.spins.follows = me.events + u64::from(is_event);
    match me.spins.completes() {
        Some(period) => hold(me, period),
        None if me.spins.freed > 0 => counts(me),
        None => {
            me.spins.rounds = 0;
            me.spins.looked += 1;
            if me.spins.watched && me.spins.looked > LONG_ENOUGH {
                me.spins.watched = false;
                me.allow(me.until);
            }
        }
    }
}

/// Between the last look and this one something happened that is no look.
fn gap(me: &mut Thread, look: &Look) {
    forget(me);
    let spins = &mut me.spins;
    let sight = (look.pc, look.address, look.value);
    let suspect = &mut spins.suspects[(look.pc ^ (look.pc >> 4)) % SUSPECTS];
    if *suspect != sight {
        *suspect = sight;
        return;
    }
    spins.doubts += 1;
    if spins.doubts > spins.patience {
        spins.doubts = 0;
        // Unless it spins, not so soon again.
        spins.patience = (2 * spins.patience + 1).min(1 << 16);
        start_watching(me);
    }
}

/// The thread has done something else: what it saw before is no iteration of a loop that only looks.
#[inline]
pub fn forget(me: &mut Thread) {
    if me.spins.freed > 0 {
        counts(me);
    }
    (me.spins.filled, me.spins.rounds) = (0, 0);
    me.spins.moves = me.spins.moves.wrapping_add(1);
    if me.spins.watched {
        me.spins.watched = false;
        me.allow(me.until);
    }
}

/// A thread has run for long without anything that would have shown it to wait: it is watched if it is about to read.
pub fn check(me: &mut Thread, pending: &Pending) {
    me.spins.check_at = me.events + CHECK;
    if pending.op == op::READ && !me.spins.watched {
        start_watching(me);
    } else {
        me.allow(me.until);
    }
}

/// From here on it is watched.
fn start_watching(me: &mut Thread) {
    (me.spins.watched, me.spins.looked) = (true, 0);
    me.allow(me.until);
}

/// A watched thread is about to have an event. Atomic operations, tries and sleeps look for themselves.
#[cold]
#[inline(never)]
pub fn watch(me: &mut Thread, pending: &Pending) {
    let Pending { op, address, size, pc, .. } = *pending;
    let here = (&raw const op) as usize;
    match op {
        op::READ => match record::load(address, size) {
            Some(value) => look(me, Look::sees(op, address, size, value, pc), true),
            None => forget(me),
        },
        op::CALL | op::RETURN | op::FENCE | op::FENCE_ACQUIRE | op::FENCE_RELEASE => look(me, Look::at(op, pc), true),
        // What it writes there is part of its state.
        op::WRITE if address.wrapping_sub(here) < STACK => look(me, Look::sees(op, address, size, 0, pc), true),
        op::RESUME | op::TRY_ACQUIRE | op::TRY_ACQUIRE_SHARED | op::SEMAPHORE_WAIT | op::SEMAPHORE_TRY => {}
        op if op < op::ACCESSES && op != op::WRITE => {}
        _ => forget(me),
    }
}

/// The last look completes an iteration equal to the one before: the thread waits until something that it looks at changes.
#[cold]
#[inline(never)]
fn hold(me: &mut Thread, period: usize) {
    me.spins.rounds += 1;
    if me.spins.iteration(period).iter().any(Look::is_sign) {
        if !is_as_it_was(me, period) {
            return;
        }
    } else if me.spins.rounds < PLAIN_ROUNDS * period as u32 {
        return;
    }
    // SAFETY: the holder of the token.
    let (scheduler, counting) = unsafe { (&*sched::peek(), &*&raw const COUNTING) };
    let Some(&at) = me.spins.iteration(period).iter().rev().find(|look| look.sees_others()) else { return };
    if scheduler.following || counting.contains(&at.pc) || is_changed(me, period, scheduler) {
        return;
    }
    if me.spins.freed > 0 {
        me.spins.freed -= 1;
        if me.spins.freed > 0 {
            return;
        }
        me.spins.stays = !process::is_shared_memory(at.address);
    }
    let events = me.spins.iteration(period).iter().filter(|look| look.is_event).count();
    let kind = if me.spins.iteration(period).iter().any(Look::is_sign) { spins::WAITS } else { spins::PLAIN };
    record::numbers(note::SPINS, &[at.pc as u64, kind, me.events, events as u64]);
    (me.spins.period, me.spins.place, me.spins.held) = (period, at.pc, me.spins.moves);
    let Look { op, pc, address, size, .. } = at;
    sched::wait(me, Pending { op, address, size, pc, wait: Wait::Change, deadline: 0 });
    me.spins.stays = false;
    // What it sees now, or does, is another iteration.
    if me.spins.freed == 0 {
        (me.spins.filled, me.spins.rounds, me.spins.patience) = (0, 0, 0);
    }
}

/// Whether the thread is as it was an iteration ago. Only the last look can tell, if it is a sign.
fn is_as_it_was(me: &mut Thread, period: usize) -> bool {
    let last = me.spins.filled - 1;
    if !me.spins.looks[last].is_sign() {
        return false;
    }
    me.spins.looks[last].state = state(me);
    me.spins.looks[last].state == me.spins.looks[last - period].state
}

/// What the thread is like that called the runtime: the registers that calls keep, and the stack, as a number that is not 0.
fn state(me: &Thread) -> u64 {
    let registers = state::registers();
    let stack = registers[6];
    let end = me.stack_end.max(stack).min(stack + WINDOW);
    let words = (stack..end).step_by(8).map(|at| record::load(at, 8).unwrap_or(0));
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    registers.iter().map(|&register| register as u64).chain(words).fold(1, mix) | 1
}

/// Whether something that the iteration looks at is other than it was.
fn is_changed(me: &Thread, period: usize, scheduler: &Scheduler) -> bool {
    me.spins.iteration(period).iter().any(|look| look.is_changed(scheduler, me))
}

/// A spinner that went on because nobody else could does something else.
#[cold]
fn counts(me: &mut Thread) {
    me.spins.freed = 0;
    let pc = me.spins.place;
    // SAFETY: the holder of the token.
    if add(unsafe { &mut *&raw mut COUNTING }, pc) {
        record::numbers(note::SPINS, &[pc as u64, spins::COUNTS, me.events, 0]);
    }
}

impl Scheduler {
    /// For a thread that waits for something to change.
    pub fn has_changed(&self, who: &Thread) -> bool {
        who.spins.moves != who.spins.held || is_changed(who, who.spins.period, self)
    }

    /// Nobody can go on: a spinner does, to see whether it only spins.
    pub(crate) fn by_spinning(&mut self) -> Option<u32> {
        let waits = |one: &&mut Thread| one.life == Life::Waiting && one.pending.wait == Wait::Change;
        let one = self.living().find(|one| waits(one) && !one.spins.stays)?;
        one.spins.freed = LAST_LOOKS;
        one.allow(one.events + u64::from(LAST_LOOKS));
        Some(one.id)
    }
}
