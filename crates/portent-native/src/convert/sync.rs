//! Synchronisation as the trace's readers will see it: every event that is no access, made to fit.
//!
//! Mirrors the rules of the lowering in portent-trace for threads, tokens, conditions, semaphores, barriers and blocks;
//! locks are next door. What breaks a rule is counted as an [`Oddity`] and becomes a send that nobody receives. What begins
//! anew at the same address (a semaphore that is initialised again) becomes a new object.

use super::context::EventContext;
use super::locks::{Holding, Lock};
use super::oddities::Oddity;
use portent_trace::{Apart, InputOp, Names, Object, ObjectClass, ObjectName, Problem};
use rustc_hash::FxHashMap;

/// Where an object is: its class, its region and its place there.
pub(super) type Key = (ObjectClass, u32, u64);

#[derive(Debug)]
struct Semaphore {
    id: u32,
    /// The first one in its place.
    first: u32,
    instances: u32,
    count: u64,
    used: bool,
}

#[derive(Debug, Default)]
struct Barrier {
    id: u32,
    inside: Vec<u32>,
}

#[derive(Debug)]
struct Token {
    id: u32,
    sent: bool,
    received: bool,
    instances: u32,
}

/// What is known about a thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// It was forked, has run or was joined.
    known: bool,
    asleep_on: Option<u32>,
    blocks: Vec<u32>,
}

/// All synchronisation objects.
#[derive(Debug, Default)]
pub(super) struct Sync {
    index: FxHashMap<Key, usize>,
    locks: Vec<Lock>,
    /// Region and place of each lock, and which of them somebody holds.
    places: Vec<(u32, u64)>,
    held: Vec<usize>,
    conditions: Vec<u32>,
    semaphores: Vec<Semaphore>,
    barriers: Vec<Barrier>,
    /// Places at which the program declares order.
    declared: Vec<u32>,
    tokens: FxHashMap<(u64, u64), Token>,
    threads: Vec<Thread>,
}

impl Sync {
    /// The lock at a place, if an event was there before.
    pub(super) fn lock(&self, region: u32, offset: u64) -> Option<&Lock> {
        self.index.get(&(ObjectClass::Lock, region, offset)).map(|&at| &self.locks[at])
    }
    /// The number of what is now at a place, if an event was there before.
    pub(super) fn at(&self, key: Key) -> Option<u32> {
        let at = *self.index.get(&key)?;
        Some(match key.0 {
            ObjectClass::Lock => self.locks[at].id,
            ObjectClass::Condition => self.conditions[at],
            ObjectClass::Semaphore => self.semaphores[at].id,
            ObjectClass::Token => self.declared[at],
            _ => self.barriers[at].id,
        })
    }
    /// Who holds a lock in a region, and where that is.
    pub(super) fn held_in(&self, region: u32) -> impl Iterator<Item = (Holding, u64)> + '_ {
        let inside = self.held.iter().filter(move |&&at| self.places[at].0 == region);
        inside.flat_map(move |&at| self.locks[at].holders().map(move |holding| (holding, self.places[at].1)))
    }
    /// Every object that has a place, with its number.
    pub(super) fn named(&self) -> impl Iterator<Item = (Key, u32)> + '_ {
        self.index.iter().map(|(&key, &at)| {
            let id = match key.0 {
                ObjectClass::Lock => self.locks[at].first,
                ObjectClass::Condition => self.conditions[at],
                ObjectClass::Semaphore => self.semaphores[at].first,
                ObjectClass::Token => self.declared[at],
                _ => self.barriers[at].id,
            };
            (key, id)
        })
    }
    /// Whether an object is known, so that it needs no name.
    pub(super) fn knows(&self, key: Key) -> bool {
        self.index.contains_key(&key)
    }

    /// A new object of one of the classes that have an address.
    pub(super) fn add(&mut self, key: Key, name: ObjectName<'_>, names: &mut Names) -> Result<(), Problem> {
        let class = key.0;
        let id = names.new_object(class, name)?;
        let at = match class {
            ObjectClass::Lock => {
                self.locks.push(Lock::new(id));
                self.places.push((key.1, key.2));
                self.locks.len()
            }
            ObjectClass::Condition => {
                self.conditions.push(id);
                self.conditions.len()
            }
            ObjectClass::Semaphore => {
                self.semaphores.push(Semaphore { id, first: id, instances: 1, count: 0, used: false });
                self.semaphores.len()
            }
            ObjectClass::Token => {
                self.declared.push(id);
                self.declared.len()
            }
            _ => {
                self.barriers.push(Barrier { id, inside: Vec::new() });
                self.barriers.len()
            }
        };
        self.index.insert(key, at - 1);
        Ok(())
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        let thread = thread as usize;
        if thread >= self.threads.len() {
            self.threads.resize(thread + 1, Thread::default());
        }
        &mut self.threads[thread]
    }

    /// A thread has an event: it can no longer be forked.
    pub(super) fn runs(&mut self, thread: u32) {
        self.thread(thread).known = true;
    }

    /// An operation on an object that was added. The value is the count of a semaphore.
    pub(super) fn step(
        &mut self,
        op: InputOp,
        key: Key,
        value: Option<u64>,
        context: &mut EventContext<'_>,
    ) -> Result<(InputOp, u32, Option<i64>), Problem> {
        let at = self.index[&key];
        let (op, object) = match key.0 {
            ObjectClass::Lock => {
                let lock = &mut self.locks[at];
                let was_held = lock.is_held();
                let step = lock.step(op, context)?;
                match (was_held, lock.is_held()) {
                    (false, true) => self.held.push(at),
                    // Most often one of the last that were taken.
                    (true, false) => {
                        let found = self.held.iter().rposition(|&held| held == at);
                        found.map(|found| self.held.swap_remove(found));
                    }
                    _ => {}
                }
                step
            }
            ObjectClass::Condition => {
                let condition = self.conditions[at];
                let asleep = &mut self.thread(context.thread).asleep_on;
                if op == InputOp::Sleep {
                    *asleep = Some(condition);
                }
                let wakes =
                    matches!(op, InputOp::Wake | InputOp::WakeInTime | InputOp::TimeOut | InputOp::WakeByItself);
                if wakes && asleep.take_if(|slept_on| *slept_on == condition).is_none() {
                    let (op, object) = context.nothing(Some(Oddity::Wake))?;
                    return Ok((op, object, None));
                }
                (op, condition)
            }
            ObjectClass::Semaphore => return self.semaphores[at].step(op, value, context),
            ObjectClass::Token => (op, self.declared[at]),
            _ => {
                let barrier = &mut self.barriers[at];
                let inside = barrier.inside.iter().position(|&thread| thread == context.thread);
                match (op, inside) {
                    (InputOp::Arrive, _) => barrier.inside.push(context.thread),
                    (_, Some(at)) => drop(barrier.inside.swap_remove(at)),
                    (_, None) => {
                        let (op, object) = context.nothing(Some(Oddity::Barrier))?;
                        return Ok((op, object, None));
                    }
                }
                (op, barrier.id)
            }
        };
        Ok((op, object, None))
    }

    pub(super) fn fork(
        &mut self,
        child: Option<u32>,
        context: &mut EventContext<'_>,
    ) -> Result<(InputOp, u32), Problem> {
        match child {
            Some(child) if !self.thread(child).known => {
                self.thread(child).known = true;
                Ok((InputOp::Fork, child))
            }
            _ => context.nothing(Some(Oddity::Fork)),
        }
    }

    /// A join of a thread whose last event has this number, if it has one.
    pub(super) fn join(
        &mut self,
        child: Option<u32>,
        last: Option<u64>,
        context: &mut EventContext<'_>,
    ) -> Result<(InputOp, u32), Problem> {
        match child {
            Some(child) if child != context.thread && last.is_none_or(|last| last < context.index) => {
                self.thread(child).known = true;
                Ok((InputOp::Join, child))
            }
            _ => context.nothing(Some(Oddity::Join)),
        }
    }

    pub(super) fn send(
        &mut self,
        address: u64,
        value: u64,
        context: &mut EventContext<'_>,
    ) -> Result<(InputOp, u32), Problem> {
        let instances = match self.tokens.get_mut(&(address, value)) {
            Some(token) if !token.received => {
                token.sent = true;
                return Ok((InputOp::Send, token.id));
            }
            // Everybody who received it did so before: this is another one.
            Some(token) => token.instances + 1,
            None => 1,
        };
        let message = Object::Message { channel: address, number: value };
        let apart = Apart { again: if instances > 1 { instances } else { 0 }, ..Apart::default() };
        let name = ObjectName { apart, ..ObjectName::of(message) };
        let id = context.names.intern_object(ObjectClass::Token, &name)?;
        self.tokens.insert((address, value), Token { id, sent: true, received: false, instances });
        Ok((InputOp::Send, id))
    }

    pub(super) fn receive(
        &mut self,
        address: u64,
        value: u64,
        context: &mut EventContext<'_>,
    ) -> Result<(InputOp, u32), Problem> {
        match self.tokens.get_mut(&(address, value)) {
            Some(token) if token.sent => {
                token.received = true;
                Ok((InputOp::Receive, token.id))
            }
            _ => context.nothing(Some(Oddity::Token)),
        }
    }

    pub(super) fn begin(&mut self, name: &str, context: &mut EventContext<'_>) -> Result<(InputOp, u32), Problem> {
        let block = context.names.intern(ObjectClass::Block, name.as_bytes())?;
        self.thread(context.thread).blocks.push(block);
        Ok((InputOp::Begin, block))
    }

    pub(super) fn end(&mut self, context: &mut EventContext<'_>) -> Result<(InputOp, u32), Problem> {
        match self.thread(context.thread).blocks.pop() {
            Some(block) => Ok((InputOp::End, block)),
            None => context.nothing(Some(Oddity::Block)),
        }
    }
}

impl Semaphore {
    fn step(
        &mut self,
        op: InputOp,
        value: Option<u64>,
        context: &mut EventContext<'_>,
    ) -> Result<(InputOp, u32, Option<i64>), Problem> {
        let mut told = None;
        let fits = match op {
            InputOp::SemaphoreInit => {
                told = value.and_then(|count| i64::try_from(count).ok());
                if self.used && told.is_some() {
                    self.instances += 1;
                    self.id = context.names.intern_again(ObjectClass::Semaphore, self.first, self.instances)?;
                }
                self.count = value.filter(|_| told.is_some()).unwrap_or(self.count);
                told.is_some()
            }
            InputOp::Post => {
                self.count += 1;
                true
            }
            InputOp::SemaphoreWait | InputOp::SemaphoreTry if self.count > 0 => {
                self.count -= 1;
                true
            }
            InputOp::SemaphoreWait | InputOp::SemaphoreTry => false,
            _ => self.count == 0,
        };
        if !fits {
            let (op, object) = context.nothing(Some(Oddity::Semaphore))?;
            return Ok((op, object, None));
        }
        self.used = true;
        Ok((op, self.id, told))
    }
}
