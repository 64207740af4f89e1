//! Named tokens, and what is *sticky* and lowers to tokens: latches, futures, barriers.
//!
//! Whoever passes a latch has seen every count-down before it, and whoever leaves a barrier everybody of its round: there is
//! no choice in that, so tokens are exact.

use super::{Incoming, Lowering, grown};
use crate::error::{Malformed, Problem};
use crate::event::{Meaning, Op};
use crate::ids::{ThreadId, TokenId};
use crate::names::ObjectClass;

#[derive(Clone, Debug, Default)]
pub(super) struct NamedToken {
    id: Option<TokenId>,
    received: bool,
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
