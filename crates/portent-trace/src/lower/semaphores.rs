//! Counting semaphores: each operation is one of the kernel's, and the count is kept only to refuse what cannot have been.
//!
//! Which post lets a wait through is nothing that a run decides: every reordering in which the count suffices is one.

use super::{Incoming, Lowering, grown};
use crate::error::{Malformed, Problem};
use crate::event::Op;
use crate::ids::SemId;
use crate::names::ObjectClass;

#[derive(Clone, Debug, Default)]
pub(super) struct Semaphore {
    count: u64,
    used: bool,
}

impl Lowering {
    /// The state of the event's semaphore, from now on in use.
    fn semaphore(&mut self, incoming: &Incoming<'_>) -> Result<&mut Semaphore, Problem> {
        let state = grown(&mut self.semaphores, incoming, ObjectClass::Semaphore)?;
        state.used = true;
        Ok(state)
    }

    pub(super) fn semaphore_init(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let count = incoming.event.value.and_then(|value| u64::try_from(value).ok());
        let used = grown(&mut self.semaphores, incoming, ObjectClass::Semaphore)?.used;
        let (Some(count), false) = (count, used) else {
            return Err(Malformed::BadSemaphoreCount { semaphore: incoming.object_name() }.into());
        };
        self.semaphore(incoming)?.count = count;
        incoming.out.counts.push((semaphore(incoming), count));
        self.skip(incoming);
        Ok(())
    }

    pub(super) fn post(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = self.semaphore(incoming)?;
        // More than any program counts.
        state.count = state.count.saturating_add(1);
        self.emit(incoming, Op::Post(semaphore(incoming))).map(drop)
    }

    pub(super) fn semaphore_wait(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let state = self.semaphore(incoming)?;
        let Some(left) = state.count.checked_sub(1) else {
            let (thread, semaphore) = (incoming.thread_name(), incoming.object_name());
            return Err(Malformed::SemaphoreEmpty { thread, semaphore }.into());
        };
        state.count = left;
        self.emit(incoming, Op::Wait(semaphore(incoming))).map(drop)
    }

    pub(super) fn semaphore_busy(&mut self, incoming: &mut Incoming<'_>) -> Result<(), Problem> {
        let count = self.semaphore(incoming)?.count;
        if count > 0 {
            let (thread, semaphore) = (incoming.thread_name(), incoming.object_name());
            return Err(Malformed::SemaphoreNotEmpty { thread, semaphore, count }.into());
        }
        self.emit(incoming, Op::Empty(semaphore(incoming))).map(drop)
    }
}

/// The semaphore an event names.
fn semaphore(incoming: &Incoming<'_>) -> SemId {
    SemId(incoming.event.object)
}
