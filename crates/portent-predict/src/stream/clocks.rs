//! Must-order as vector clocks: program order and tokens. (Not what the counts of semaphores force: see `Clocks::count`; nor what notifies a wake comes after.) Neither locks nor reads-from (docs/src/internals/semantics.md §1).
//!
//! Times move only where a thread passes something on, so stretches between two synchronisations share one clock: a
//! *segment*. What is forgotten to bound memory (tokens long received, notifies nobody may wake from) only makes the
//! order weaker, and a weaker order lets more candidates through.

use portent_trace::{CondId, Event, EventId, LocId, Op, Pairing, Reach, TokenId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Times by thread; threads that are not there are at zero.
pub(super) type Clock = Arc<[u32]>;

/// Tokens that are kept after they were received once: barriers have many receivers.
const RECEIVED: usize = 4_096;
/// Tokens that are kept though nobody has received them yet.
const UNRECEIVED: usize = 1 << 16;
/// Notifies kept per condition while somebody sleeps.
const NOTIFIES: usize = 1_024;

/// What a clock says of a thread.
#[inline]
pub(super) fn at(clock: &[u32], thread: usize) -> u32 {
    clock.get(thread).copied().unwrap_or(0)
}

#[derive(Debug)]
struct Thread {
    clock: Vec<u32>,
    /// The same, shared; made on demand.
    shared: Option<Clock>,
    segment: u32,
    /// Time and place of the last sleep.
    sleep: Option<(u32, LocId)>,
}

#[derive(Debug)]
struct Notified {
    event: EventId,
    loc: LocId,
    reach: Reach,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Condition {
    asleep: u32,
    notifies: VecDeque<Notified>,
}

/// A wait whose notify could be lost: it comes before the sleep, or wakes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Early {
    /// Its wake.
    pub(super) wake: EventId,
    /// Places of its wake, its notify and its sleep.
    pub(super) places: [LocId; 3],
}

#[derive(Debug)]
struct Token {
    clock: Clock,
    received: bool,
}

#[derive(Debug, Default)]
pub(super) struct Clocks {
    threads: Vec<Thread>,
    tokens: FxHashMap<TokenId, Token>,
    /// Tokens in the order of their first receipt, and in the order of their first send.
    received: VecDeque<TokenId>,
    unreceived: VecDeque<TokenId>,
    conditions: FxHashMap<CondId, Condition>,
}

impl Clocks {
    /// The clock of a thread.
    #[inline]
    pub(super) fn of(&self, thread: usize) -> &[u32] {
        &self.threads[thread].clock
    }
    /// A thread's own time.
    #[inline]
    pub(super) fn time(&self, thread: usize) -> u32 {
        self.threads[thread].clock[thread]
    }
    /// Which stretch between synchronisations a thread is in.
    #[inline]
    pub(super) fn segment(&self, thread: usize) -> u32 {
        self.threads[thread].segment
    }
    /// The clock of a thread, to keep.
    pub(super) fn share(&mut self, thread: usize) -> Clock {
        let thread = &mut self.threads[thread];
        thread.shared.get_or_insert_with(|| thread.clock.as_slice().into()).clone()
    }
    /// Makes room for a thread.
    pub(super) fn meet(&mut self, thread: usize) {
        while self.threads.len() <= thread {
            let mut clock = vec![0; self.threads.len() + 1];
            clock[self.threads.len()] = 1;
            self.threads.push(Thread { clock, shared: None, segment: 0, sleep: None });
        }
    }

    fn join(&mut self, thread: usize, other: &[u32]) {
        let thread = &mut self.threads[thread];
        if thread.clock.len() < other.len() {
            thread.clock.resize(other.len(), 0);
        }
        let mut changed = false;
        for (mine, theirs) in thread.clock.iter_mut().zip(other) {
            changed |= theirs > mine;
            *mine = (*mine).max(*theirs);
        }
        if changed {
            thread.shared = None;
            thread.segment += 1;
        }
    }

    fn tick(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        state.clock[thread] += 1;
        state.shared = None;
        state.segment += 1;
    }

    /// Moves on by an operation on a semaphore. Which posts a wait comes after depends on posts still to come, so it counts as
    /// coming after none.
    pub(super) fn count(&mut self, thread: usize) {
        self.threads[thread].segment += 1;
    }

    /// Moves on by a synchronisation. `pairing` is the wait that a wake ends; the result, whether its notify could be lost. Which notifies a wake
    /// comes after depends on those still to come, so it counts as coming after none.
    pub(super) fn step(&mut self, event: Event, pairing: Option<&Pairing>) -> Option<Early> {
        let t = event.thread.index();
        match event.op {
            Op::Send(token) => {
                let clock = self.share(t);
                self.send(token, clock);
                self.tick(t);
            }
            Op::Receive(token) => {
                if let Some(sent) = self.tokens.get_mut(&token) {
                    let (clock, again) = (sent.clock.clone(), std::mem::replace(&mut sent.received, true));
                    self.join(t, &clock);
                    if !again {
                        self.received.push_back(token);
                        if self.received.len() > RECEIVED {
                            self.received.pop_front().map(|old| self.tokens.remove(&old));
                        }
                    }
                }
            }
            Op::Sleep(condition) => {
                self.conditions.entry(condition).or_default().asleep += 1;
                self.threads[t].sleep = Some((self.time(t), event.loc));
            }
            Op::Notify(condition, reach) if self.conditions.get(&condition).is_some_and(|c| c.asleep > 0) => {
                let clock = self.share(t);
                let notifies = &mut self.conditions.entry(condition).or_default().notifies;
                notifies.push_back(Notified { event: event.id, loc: event.loc, reach, clock });
                if notifies.len() > NOTIFIES {
                    notifies.pop_front();
                }
                self.tick(t);
            }
            Op::Wake(condition) => return self.wake(event, condition, pairing),
            _ => {}
        }
        None
    }

    fn wake(&mut self, event: Event, condition: CondId, pairing: Option<&Pairing>) -> Option<Early> {
        let t = event.thread.index();
        let slept = self.threads[t].sleep.take();
        let mut early = None;
        let state = self.conditions.get_mut(&condition)?;
        state.asleep = state.asleep.saturating_sub(1);
        let nobody = state.asleep == 0;
        if let Some(pairing) = pairing
            && let Some(notified) = state.notifies.iter().find(|n| n.event == pairing.notify)
            && let Some((time, place)) = slept
            && (at(&notified.clock, t) < time || notified.reach == Reach::One)
        {
            early = Some(Early { wake: event.id, places: [event.loc, notified.loc, place] });
        }
        self.threads[t].segment += 1;
        if nobody && let Some(state) = self.conditions.get_mut(&condition) {
            state.notifies.clear();
        }
        early
    }

    fn send(&mut self, token: TokenId, clock: Clock) {
        if let Some(sent) = self.tokens.get_mut(&token) {
            let threads = sent.clock.len().max(clock.len());
            sent.clock = (0..threads).map(|i| at(&sent.clock, i).max(at(&clock, i))).collect();
            return;
        }
        self.tokens.insert(token, Token { clock, received: false });
        self.unreceived.push_back(token);
        if self.unreceived.len() > UNRECEIVED
            && let Some(old) = self.unreceived.pop_front()
            && self.tokens.get(&old).is_some_and(|token| !token.received)
        {
            self.tokens.remove(&old);
        }
    }
}
