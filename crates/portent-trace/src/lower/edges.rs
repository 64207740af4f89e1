//! Order that a program declares (`hb`, `ha`): whoever comes after does so after everything that was declared before.
//!
//! This is the meaning that annotations of race detectors have: `hb(k)` adds what its thread has done to what is known at k,
//! and `ha(k)` takes over all that is known there, also what others took over earlier. Who declares first among several is not
//! ordered. Nothing is refused: an `ha` before any `hb` orders nothing.
//!
//! A thread's last token at k stands for its earlier ones, so an `ha` receives at most one per other thread, and only those
//! that are new since the thread's last `ha(k)`.

use super::{Incoming, Lowering, grown};
use crate::error::Problem;
use crate::event::{Meaning, Op};
use crate::ids::{ThreadId, TokenId};
use crate::names::ObjectClass;

#[derive(Clone, Debug, Default)]
pub(super) struct DeclaredOrder {
    /// What is sent until somebody receives it.
    open: Option<TokenId>,
    /// The last that each thread has sent.
    sent: Vec<(ThreadId, TokenId)>,
    /// The youngest token when each thread last received. Tokens are numbered as they are made.
    received: Vec<(ThreadId, TokenId)>,
}

impl DeclaredOrder {
    /// What a thread has not received yet, oldest first.
    fn news(&self, thread: ThreadId) -> Vec<TokenId> {
        let upto = self.received.iter().find(|(who, _)| *who == thread).map(|(_, token)| *token);
        let others = self.sent.iter().filter(|(who, _)| *who != thread);
        let mut news: Vec<TokenId> = others.map(|(_, token)| *token).filter(|&token| Some(token) > upto).collect();
        news.sort_unstable();
        news.dedup();
        news
    }
}

fn note(list: &mut Vec<(ThreadId, TokenId)>, thread: ThreadId, token: TokenId) {
    match list.iter_mut().find(|(who, _)| *who == thread) {
        Some((_, last)) => *last = token,
        None => list.push((thread, token)),
    }
}

impl Lowering {
    pub(super) fn happens_before(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let open = grown(&mut self.declared, incoming, ObjectClass::Token)?.open;
        let token = match open {
            Some(token) => token,
            None => self.fresh_token(incoming, Meaning::Named(incoming.event.object))?,
        };
        let state = &mut self.declared[incoming.event.object as usize];
        state.open = Some(token);
        note(&mut state.sent, incoming.event.thread, token);
        self.emit(incoming, Op::Send(token)).map(drop)
    }

    pub(super) fn happens_after(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        let state = grown(&mut self.declared, incoming, ObjectClass::Token)?;
        let news = state.news(thread);
        let Some(&youngest) = news.last() else {
            self.skip(incoming);
            return Ok(());
        };
        // What has been received cannot be sent again.
        state.open = state.open.filter(|&open| open > youngest);
        note(&mut state.received, thread, youngest);
        news.into_iter().try_for_each(|token| self.emit(incoming, Op::Receive(token)).map(drop))
    }
}
