//! Threads: they start after their fork and end before their join.
//!
//! A fork sends a token that the child receives before its first event; a join receives a token that the child sends
//! after its last. Both tokens are events of the child, made when its first event, or the join, is met.

use super::blocks::Blocks;
use super::{Incoming, Lowering, check_defined};
use crate::error::{Malformed, Problem};
use crate::event::{Meaning, Op};
use crate::ids::{BlockId, CondId, EventId, ThreadId, TokenId};
use crate::names::ObjectClass;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Life {
    /// Not seen yet, and nobody forked it: its first event starts it.
    #[default]
    Unknown,
    /// Forked; its first event receives the token.
    Forked(TokenId),
    Running,
    /// Ended: somebody joined it at this input event.
    Joined(u32),
}

#[derive(Clone, Debug, Default)]
pub(super) struct ThreadState {
    life: Life,
    pub(super) blocks: Blocks,
    /// The last sleep, until its wake.
    pub(super) asleep: Option<(CondId, EventId)>,
}

impl Lowering {
    #[inline]
    pub(super) fn is_running(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.index()).is_some_and(|state| state.life == Life::Running)
    }

    /// Brings the stepping thread to life, or says why it may not run.
    #[cold]
    pub(super) fn start_thread(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let thread = incoming.event.thread;
        if thread.index() >= incoming.names.count(ObjectClass::Thread) {
            return Err(super::undefined(ObjectClass::Thread, thread.0));
        }
        if let Life::Joined(joined) = self.thread(thread).life {
            return Err(Malformed::RunsAfterJoin { thread: incoming.thread_name(), joined: joined.into() }.into());
        }
        self.start(incoming, thread)
    }

    fn start(&mut self, incoming: &mut Incoming<'_>, thread: ThreadId) -> Result<(), Problem> {
        if let Life::Forked(token) = self.thread(thread).life {
            self.emit_as(incoming, thread, Op::Receive(token), None)?;
        }
        self.thread(thread).life = Life::Running;
        Ok(())
    }

    fn thread(&mut self, thread: ThreadId) -> &mut ThreadState {
        if thread.index() >= self.threads.len() {
            self.threads.resize(thread.index() + 1, ThreadState::default());
        }
        &mut self.threads[thread.index()]
    }

    fn child(&self, incoming: &Incoming<'_>) -> Result<ThreadId, Problem> {
        check_defined(incoming, ObjectClass::Thread)?;
        Ok(ThreadId(incoming.event.object))
    }

    pub(super) fn fork(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let child = self.child(incoming)?;
        let life = self.thread(child).life;
        if life != Life::Unknown {
            let started = !matches!(life, Life::Forked(_));
            let (thread, child) = (incoming.thread_name(), incoming.object_name());
            return Err(Malformed::ForkedTwice { thread, child, started }.into());
        }
        let token = self.fresh_token(incoming, Meaning::Fork(child))?;
        self.emit(incoming, Op::Send(token))?;
        self.thread(child).life = Life::Forked(token);
        Ok(())
    }

    pub(super) fn join(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let child = self.child(incoming)?;
        if child == incoming.event.thread {
            return Err(Malformed::JoinsItself { thread: incoming.thread_name() }.into());
        }
        if matches!(self.thread(child).life, Life::Unknown | Life::Forked(_)) {
            // It never ran, but its fork still comes before its join.
            self.start(incoming, child)?;
        }
        let token = self.fresh_token(incoming, Meaning::Join(child))?;
        self.emit_as(incoming, child, Op::Send(token), None)?;
        self.emit(incoming, Op::Receive(token))?;
        self.thread(child).life = Life::Joined(incoming.origin);
        Ok(())
    }
}

impl Lowering {
    /// The atomic blocks that are open now, the outermost of each thread, by thread.
    pub fn open_blocks(&self) -> impl Iterator<Item = (ThreadId, BlockId)> + '_ {
        let outermost = |(thread, state): (usize, &ThreadState)| {
            // The table is indexed by thread ids, so its indices are some.
            state.blocks.outermost().map(|block| (ThreadId(thread as u32), block))
        };
        self.threads.iter().enumerate().filter_map(outermost)
    }
}
