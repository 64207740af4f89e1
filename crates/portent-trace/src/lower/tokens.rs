//! Named tokens, and what is *sticky* and lowers to tokens: semaphores, latches, futures, barriers.
//!
//! Each keeps the match that was observed (this post allowed that wait). That is sound; that another post could have
//! served is not explored.

use super::{Incoming, Lowering, grown};
use crate::error::{Malformed, Problem};
use crate::event::{Meaning, Op};
use crate::ids::{ThreadId, TokenId};
use crate::names::ObjectClass;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(super) struct NamedToken {
    id: Option<TokenId>,
    received: bool,
}

/// A counting semaphore. Posts and waits match first-in first-out, after the initial count.
///
/// A failed try keeps its place among the operations: every one since the failed try before it sends `round`, which it
/// receives, and it sends `failed`, which every later one receives.
#[derive(Clone, Debug, Default)]
pub(super) struct Semaphore {
    initial: u64,
    used: bool,
    posts: VecDeque<TokenId>,
    round: Option<TokenId>,
    failed: Option<TokenId>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Latch {
    token: Option<TokenId>,
    /// Somebody got through: later count-downs no longer matter to anybody.
    open: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    /// The round that fills, until the first departure from it.
    filling: Option<TokenId>,
    /// Who has arrived and not yet left, and in which round.
    inside: Vec<(ThreadId, TokenId)>,
}

impl Lowering {
    pub(super) fn send_named(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = grown(&mut self.named_tokens, incoming, ObjectClass::Token)?;
        if state.received {
            let token = format!("token {}", incoming.object_name());
            return Err(Malformed::SentTooLate { thread: incoming.thread_name(), token }.into());
        }
        let token = match state.id {
            Some(token) => token,
            None => self.fresh_token(incoming, Meaning::Named(incoming.event.object))?,
        };
        self.named_tokens[incoming.event.object as usize].id = Some(token);
        self.emit(incoming, Op::Send(token)).map(drop)
    }

    pub(super) fn receive_named(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = grown(&mut self.named_tokens, incoming, ObjectClass::Token)?;
        let Some(token) = state.id else { return Err(not_sent(incoming)) };
        state.received = true;
        self.emit(incoming, Op::Receive(token)).map(drop)
    }

    fn semaphore(&mut self, incoming: &Incoming<'_>) -> Result<&mut Semaphore, Problem> {
        grown(&mut self.semaphores, incoming, ObjectClass::Semaphore)
    }

    pub(super) fn semaphore_init(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let count = incoming.event.value.and_then(|value| u64::try_from(value).ok());
        let state = self.semaphore(incoming)?;
        let (Some(count), false) = (count, state.used) else {
            return Err(Malformed::BadSemaphoreCount { semaphore: incoming.object_name() }.into());
        };
        state.initial = count;
        state.used = true;
        self.skip(incoming);
        Ok(())
    }

    /// Begins an operation on a semaphore: after the last failed try, if there was one.
    fn enter_semaphore(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = self.semaphore(incoming)?;
        state.used = true;
        match state.failed {
            Some(failed) => self.emit(incoming, Op::Receive(failed)).map(drop),
            None => Ok(()),
        }
    }

    /// Ends an operation on a semaphore: before the next failed try, if there will be one.
    fn leave_semaphore(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let round = match self.semaphore(incoming)?.round {
            Some(round) => round,
            None => self.fresh_token(incoming, Meaning::Round(incoming.event.object))?,
        };
        self.semaphore(incoming)?.round = Some(round);
        self.emit(incoming, Op::Send(round)).map(drop)
    }

    pub(super) fn post(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        self.enter_semaphore(incoming)?;
        let token = self.fresh_token(incoming, Meaning::Post(incoming.event.object))?;
        self.semaphore(incoming)?.posts.push_back(token);
        self.emit(incoming, Op::Send(token))?;
        self.leave_semaphore(incoming)
    }

    pub(super) fn semaphore_wait(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        self.enter_semaphore(incoming)?;
        let state = self.semaphore(incoming)?;
        if state.initial > 0 {
            state.initial -= 1;
        } else {
            let Some(token) = state.posts.pop_front() else {
                let (thread, semaphore) = (incoming.thread_name(), incoming.object_name());
                return Err(Malformed::SemaphoreEmpty { thread, semaphore }.into());
            };
            self.emit(incoming, Op::Receive(token))?;
        }
        self.leave_semaphore(incoming)
    }

    pub(super) fn semaphore_busy(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        self.enter_semaphore(incoming)?;
        let state = self.semaphore(incoming)?;
        let count = state.initial.saturating_add(state.posts.len() as u64);
        if count > 0 {
            let (thread, semaphore) = (incoming.thread_name(), incoming.object_name());
            return Err(Malformed::SemaphoreNotEmpty { thread, semaphore, count }.into());
        }
        if let Some(round) = state.round.take() {
            self.emit(incoming, Op::Receive(round))?;
        }
        let failed = self.fresh_token(incoming, Meaning::Failed(incoming.event.object))?;
        self.semaphore(incoming)?.failed = Some(failed);
        self.emit(incoming, Op::Send(failed)).map(drop)
    }

    pub(super) fn count_down(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = grown(&mut self.latches, incoming, ObjectClass::Latch)?;
        let token = match state.token {
            _ if state.open => {
                self.skip(incoming);
                return Ok(());
            }
            Some(token) => token,
            None => self.fresh_token(incoming, Meaning::Latch(incoming.event.object))?,
        };
        self.latches[incoming.event.object as usize].token = Some(token);
        self.emit(incoming, Op::Send(token)).map(drop)
    }

    pub(super) fn latch_wait(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = grown(&mut self.latches, incoming, ObjectClass::Latch)?;
        let Some(token) = state.token else { return Err(not_sent(incoming)) };
        state.open = true;
        self.emit(incoming, Op::Receive(token)).map(drop)
    }

    pub(super) fn arrive(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let filling = grown(&mut self.barriers, incoming, ObjectClass::Barrier)?.filling;
        let round = match filling {
            Some(round) => round,
            None => self.fresh_token(incoming, Meaning::Barrier(incoming.event.object))?,
        };
        let state = &mut self.barriers[incoming.event.object as usize];
        state.filling = Some(round);
        state.inside.push((incoming.event.thread, round));
        self.emit(incoming, Op::Send(round)).map(drop)
    }

    pub(super) fn depart(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = grown(&mut self.barriers, incoming, ObjectClass::Barrier)?;
        let Some(at) = state.inside.iter().position(|(thread, _)| *thread == incoming.event.thread) else {
            let (thread, barrier) = (incoming.thread_name(), incoming.object_name());
            return Err(Malformed::DepartWithoutArrive { thread, barrier }.into());
        };
        let (_, round) = state.inside.swap_remove(at);
        if state.filling == Some(round) {
            state.filling = None;
        }
        self.emit(incoming, Op::Receive(round)).map(drop)
    }
}

fn not_sent(incoming: &Incoming<'_>) -> Problem {
    let token = format!("{} {}", incoming.event.op.class().what(), incoming.object_name());
    Malformed::NotSent { thread: incoming.thread_name(), token }.into()
}
