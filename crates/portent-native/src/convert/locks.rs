//! Locks as the trace's readers will see them: who holds what.
//!
//! The rules are those of the lowering in portent-trace. A lock that breaks them, because somebody else gave it back or
//! took it while it was held, is *handed over* from then on: its releases and acquires become tokens that keep the recorded
//! order. That is less than a lock (other orders are not explored), and never wrong.

use super::context::EventContext;
use super::oddities::Oddity;
use portent_trace::{Apart, InputOp, LocId, LockId, Mode, Object, ObjectClass, ObjectName, Problem};

/// A thread that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) thread: u32,
    pub(crate) mode: Mode,
    /// Where it took the lock.
    pub(crate) at: LocId,
    depth: u32,
}

/// A lock, or the guard of a once.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    pub(super) id: u32,
    /// The first one in its place, which has the name that it was found under.
    pub(super) first: u32,
    instances: u32,
    exclusive: Option<Holding>,
    shared: Vec<Holding>,
    /// Depths at which waiting threads will take it back.
    released_at: Vec<(u32, u32)>,
    once_done: bool,
    handed_over: Option<Handing>,
}

/// A lock whose recorded order is all that is kept.
#[derive(Clone, Debug, Default)]
struct Handing {
    /// The token of the last release, and whether somebody has received it.
    token: Option<(u32, bool)>,
    tokens: u32,
}

impl Lock {
    pub(super) fn new(id: u32) -> Lock {
        Lock { id, first: id, instances: 1, ..Lock::default() }
    }

    /// Who holds it.
    pub(super) fn holders(&self) -> impl Iterator<Item = Holding> + '_ {
        self.exclusive.iter().chain(&self.shared).copied()
    }

    pub(super) fn is_held(&self) -> bool {
        self.exclusive.is_some() || !self.shared.is_empty()
    }

    fn others_exclude(&self, thread: u32, mode: Mode) -> bool {
        let shared = self.shared.iter().filter(|_| mode == Mode::Exclusive);
        self.exclusive.iter().chain(shared).any(|holding| holding.thread != thread)
    }

    fn holding(&mut self, thread: u32, mode: Mode) -> Option<&mut Holding> {
        match mode {
            Mode::Exclusive => self.exclusive.as_mut().filter(|holding| holding.thread == thread),
            Mode::Shared => self.shared.iter_mut().find(|holding| holding.thread == thread),
        }
    }

    fn acquire(&mut self, thread: u32, mode: Mode, depth: u32, at: LocId) -> bool {
        if self.others_exclude(thread, mode) {
            return false;
        }
        if let Some(holding) = self.holding(thread, mode) {
            holding.depth = holding.depth.saturating_add(depth);
            return true;
        }
        let holding = Holding { thread, mode, at, depth };
        match mode {
            Mode::Exclusive => self.exclusive = Some(holding),
            Mode::Shared => self.shared.push(holding),
        }
        true
    }

    fn release(&mut self, thread: u32, mode: Mode) -> bool {
        let Some(holding) = self.holding(thread, mode) else { return false };
        holding.depth -= 1;
        if holding.depth == 0 {
            self.drop_holding(thread, mode);
        }
        true
    }

    fn drop_holding(&mut self, thread: u32, mode: Mode) {
        match mode {
            Mode::Exclusive => self.exclusive = None,
            Mode::Shared => self.shared.retain(|holding| holding.thread != thread),
        }
    }

    fn release_all(&mut self, thread: u32) -> bool {
        let Some(&mut Holding { depth, .. }) = self.holding(thread, Mode::Exclusive) else { return false };
        self.drop_holding(thread, Mode::Exclusive);
        self.released_at.push((thread, depth));
        true
    }

    fn acquire_all(&mut self, thread: u32, at: LocId) -> bool {
        let Some(waiting) = self.released_at.iter().rposition(|(waiter, _)| *waiter == thread) else { return false };
        if self.others_exclude(thread, Mode::Exclusive) {
            return false;
        }
        let (_, depth) = self.released_at.swap_remove(waiting);
        self.acquire(thread, Mode::Exclusive, depth, at)
    }

    /// The operation and object that stand for `op` in the trace.
    pub(super) fn step(&mut self, op: InputOp, context: &mut EventContext<'_>) -> Result<(InputOp, u32), Problem> {
        use InputOp::*;
        let (thread, at) = (context.thread, context.at);
        if op == OnceBegin && self.once_done && self.exclusive.is_none() {
            // Initialised again: another once at the same place.
            self.instances += 1;
            let id = context.names.intern_again(ObjectClass::Lock, self.first, self.instances)?;
            *self = Lock { id, first: self.first, instances: self.instances, ..Lock::default() };
        }
        if self.handed_over.is_some() {
            return self.hand_over(op, context);
        }
        let fits = match op {
            Acquire | TryAcquire | OnceBegin => self.acquire(thread, Mode::Exclusive, 1, at),
            AcquireShared | TryAcquireShared => self.acquire(thread, Mode::Shared, 1, at),
            Release => self.release(thread, Mode::Exclusive),
            ReleaseShared => self.release(thread, Mode::Shared),
            ReleaseAll => self.release_all(thread),
            AcquireAll => self.acquire_all(thread, at),
            // A try can fail because the thread itself holds the lock. That orders nothing.
            Busy if !self.others_exclude(thread, Mode::Exclusive) => return context.nothing(None),
            BusyShared if !self.others_exclude(thread, Mode::Shared) => return context.nothing(None),
            OnceEnd if self.once_done || self.holding(thread, Mode::Exclusive).is_none() => {
                return context.nothing(Some(Oddity::Once));
            }
            OnceEnd => {
                self.once_done = true;
                self.release(thread, Mode::Exclusive)
            }
            OncePass if !self.once_done || self.others_exclude(thread, Mode::Exclusive) => {
                return context.nothing(Some(Oddity::Once));
            }
            _ => true,
        };
        if fits {
            return Ok((op, self.id));
        }
        context.odd(Oddity::HandedOver);
        self.handed_over = Some(Handing::default());
        self.hand_over(op, context)
    }

    fn hand_over(&mut self, op: InputOp, context: &mut EventContext<'_>) -> Result<(InputOp, u32), Problem> {
        use InputOp::*;
        let Some(handing) = &mut self.handed_over else { return context.nothing(None) };
        match op {
            Release | ReleaseShared | ReleaseAll | OnceEnd => {
                let token = match handing.token {
                    Some((token, false)) => token,
                    _ => {
                        handing.tokens += 1;
                        let handover = Object::Handover { lock: LockId::new(self.first as usize) };
                        let apart = Apart { again: handing.tokens, ..Apart::default() };
                        let name = ObjectName { apart, ..ObjectName::of(handover) };
                        context.names.intern_object(ObjectClass::Token, &name)?
                    }
                };
                handing.token = Some((token, false));
                Ok((Send, token))
            }
            Acquire | AcquireShared | TryAcquire | TryAcquireShared | AcquireAll | OnceBegin | OncePass => {
                match &mut handing.token {
                    Some((token, received)) => {
                        *received = true;
                        Ok((Receive, *token))
                    }
                    None => context.nothing(None),
                }
            }
            _ => context.nothing(None),
        }
    }
}
