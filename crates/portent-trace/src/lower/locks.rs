//! Locks: exclusion, re-entrancy, shared holding, failed tries, and the lock inside a once.
//!
//! Only the outermost acquire and release of a (thread, lock, mode) become kernel events. Exclusive and shared holding
//! are counted apart, so a thread may hold both (a writer that takes its own read lock before it lets go).

use super::{Incoming, Lowering, grown};
use crate::error::{Malformed, Problem};
use crate::event::{Meaning, Mode, Op};
use crate::ids::{LockId, ThreadId, TokenId};
use crate::names::ObjectClass;

#[derive(Clone, Copy, Debug)]
struct Holding {
    thread: ThreadId,
    depth: u32,
    since: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LockState {
    exclusive: Option<Holding>,
    shared: Vec<Holding>,
    /// Depths at which waiting threads will take the lock back.
    released_at: Vec<(ThreadId, u32)>,
    /// Sent by the initialiser, for locks that are the guard of a once.
    once: Option<TokenId>,
}

impl LockState {
    /// Somebody other than `thread` whose holding excludes `mode`.
    fn other_holder(&self, thread: ThreadId, mode: Mode) -> Option<Holding> {
        let shared = self.shared.iter().filter(|_| mode == Mode::Exclusive);
        self.exclusive.iter().chain(shared).find(|holding| holding.thread != thread).copied()
    }

    fn holding(&mut self, thread: ThreadId, mode: Mode) -> Option<&mut Holding> {
        match mode {
            Mode::Exclusive => self.exclusive.as_mut().filter(|holding| holding.thread == thread),
            Mode::Shared => self.shared.iter_mut().find(|holding| holding.thread == thread),
        }
    }

    fn put(&mut self, holding: Holding, mode: Mode) {
        match mode {
            Mode::Exclusive => self.exclusive = Some(holding),
            Mode::Shared => self.shared.push(holding),
        }
    }

    fn drop_holding(&mut self, thread: ThreadId, mode: Mode) {
        match mode {
            Mode::Exclusive => self.exclusive = None,
            Mode::Shared => self.shared.retain(|holding| holding.thread != thread),
        }
    }
}

fn lock_of(incoming: &Incoming<'_>) -> LockId {
    LockId(incoming.event.object)
}

fn not_held(incoming: &Incoming<'_>, state: &LockState) -> Problem {
    let holder = state.other_holder(incoming.event.thread, Mode::Exclusive);
    let holder = holder.map(|holding| incoming.names.thread(holding.thread).to_owned());
    Malformed::NotHeld { thread: incoming.thread_name(), lock: incoming.object_name(), holder }.into()
}

impl Lowering {
    fn lock(&mut self, incoming: &Incoming<'_>) -> Result<&mut LockState, Problem> {
        grown(&mut self.locks, incoming, ObjectClass::Lock)
    }

    pub(super) fn acquire(&mut self, incoming: &mut Incoming<'_>, mode: Mode) -> Result<(), Problem> {
        self.acquire_at(incoming, mode, 1)
    }

    /// An acquire that does not wait: in a deadlock its thread can hold the lock, but never stand before it.
    pub(super) fn try_acquire(&mut self, incoming: &mut Incoming<'_>, mode: Mode) -> Result<(), Problem> {
        let before = self.events;
        self.acquire(incoming, mode)?;
        if self.events > before {
            incoming.out.last_tries();
        }
        Ok(())
    }

    fn acquire_at(&mut self, incoming: &mut Incoming<'_>, mode: Mode, depth: u32) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        let state = self.lock(incoming)?;
        if let Some(other) = state.other_holder(thread, mode) {
            let (lock, holder) = (incoming.object_name(), incoming.names.thread(other.thread).to_owned());
            return Err(Malformed::LockHeld {
                thread: incoming.thread_name(),
                lock,
                holder,
                since: other.since.into(),
            }
            .into());
        }
        if let Some(holding) = state.holding(thread, mode) {
            holding.depth = holding.depth.saturating_add(depth);
            self.skip(incoming);
            return Ok(());
        }
        state.put(Holding { thread, depth, since: incoming.origin }, mode);
        self.emit(incoming, Op::Acquire(lock_of(incoming), mode)).map(drop)
    }

    pub(super) fn release(&mut self, incoming: &mut Incoming<'_>, mode: Mode) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        let state = self.lock(incoming)?;
        let Some(holding) = state.holding(thread, mode) else { return Err(not_held(incoming, state)) };
        holding.depth -= 1;
        if holding.depth > 0 {
            self.skip(incoming);
            return Ok(());
        }
        state.drop_holding(thread, mode);
        self.emit(incoming, Op::Release(lock_of(incoming), mode)).map(drop)
    }

    /// Waiting gives a monitor back at all levels at once.
    pub(super) fn release_all(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        let state = self.lock(incoming)?;
        let Some(&mut Holding { depth, .. }) = state.holding(thread, Mode::Exclusive) else {
            return Err(not_held(incoming, state));
        };
        state.drop_holding(thread, Mode::Exclusive);
        state.released_at.push((thread, depth));
        self.emit(incoming, Op::Release(lock_of(incoming), Mode::Exclusive)).map(drop)
    }

    pub(super) fn acquire_all(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        let state = self.lock(incoming)?;
        let Some(at) = state.released_at.iter().rposition(|(waiter, _)| *waiter == thread) else {
            return Err(
                Malformed::NothingToTakeBack { thread: incoming.thread_name(), lock: incoming.object_name() }.into()
            );
        };
        let (_, depth) = state.released_at.swap_remove(at);
        self.acquire_at(incoming, Mode::Exclusive, depth)
    }

    pub(super) fn busy(&mut self, incoming: &mut Incoming<'_>, mode: Mode) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        if self.lock(incoming)?.other_holder(thread, mode).is_none() {
            return Err(Malformed::NotBusy { thread: incoming.thread_name(), lock: incoming.object_name() }.into());
        }
        self.emit(incoming, Op::Busy(lock_of(incoming), mode)).map(drop)
    }

    /// The initialiser is done: it says so, then lets go.
    pub(super) fn once_end(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        let state = self.lock(incoming)?;
        if state.holding(thread, Mode::Exclusive).is_none() {
            return Err(not_held(incoming, state));
        }
        let done = state.once;
        let token = match done {
            Some(token) => {
                let token = format!("once {} (token {})", incoming.object_name(), token.0);
                return Err(Malformed::SentTooLate { thread: incoming.thread_name(), token }.into());
            }
            None => self.fresh_token(incoming, Meaning::Once(lock_of(incoming)))?,
        };
        self.lock(incoming)?.once = Some(token);
        self.emit(incoming, Op::Send(token))?;
        self.release(incoming, Mode::Exclusive)
    }

    /// A call that finds the once already run: it goes through the lock, which shows a deadlock with the initialiser,
    /// and then needs the initialiser to be done.
    pub(super) fn once_pass(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let Some(token) = self.lock(incoming)?.once else {
            let token = format!("once {}", incoming.object_name());
            return Err(Malformed::NotSent { thread: incoming.thread_name(), token }.into());
        };
        self.acquire(incoming, Mode::Exclusive)?;
        self.release(incoming, Mode::Exclusive)?;
        self.emit(incoming, Op::Receive(token)).map(drop)
    }
}

/// A lock that a thread holds where the trace stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldLock {
    /// The lock.
    pub lock: LockId,
    /// Who holds it.
    pub thread: ThreadId,
    /// How.
    pub mode: Mode,
    /// The input event that took it.
    pub since: u32,
}

impl Lowering {
    /// The locks that are held now, by lock.
    pub fn held_locks(&self) -> impl Iterator<Item = HeldLock> + '_ {
        self.locks.iter().enumerate().flat_map(|(lock, state)| {
            let exclusive = state.exclusive.iter().map(|holding| (holding, Mode::Exclusive));
            let shared = state.shared.iter().map(|holding| (holding, Mode::Shared));
            exclusive.chain(shared).map(move |(holding, mode)| {
                // The table is indexed by lock ids, so its indices are some.
                HeldLock { lock: LockId(lock as u32), thread: holding.thread, mode, since: holding.since }
            })
        })
    }
}
