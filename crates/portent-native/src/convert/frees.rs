//! Which write frees memory: the runtime records a plain write of the whole block and, when it is done with it, a note.
//!
//! Between the two the same thread may write what was in the block (locks that go with it), and other threads may run. So the last
//! few writes of each thread are kept. One that is not among them stays a write: still a race with whoever uses the block, only
//! not called what it is.

use portent_runtime::log::{LogEvent, op};

/// Writes of a thread that are kept.
const KEPT: usize = 16;

/// The last writes of each thread.
#[derive(Default)]
pub(super) struct Frees {
    /// Address and number of the event; by thread, the oldest is overwritten.
    recent: Vec<[(u64, u64); KEPT]>,
    next: Vec<usize>,
}

impl Frees {
    /// A thread does something.
    #[inline]
    pub(super) fn event(&mut self, thread: u32, event: &LogEvent, index: u64) {
        if event.op != op::WRITE {
            return;
        }
        let thread = thread as usize;
        if thread >= self.recent.len() {
            self.recent.resize(thread + 1, [(0, u64::MAX); KEPT]);
            self.next.resize(thread + 1, 0);
        }
        let next = &mut self.next[thread];
        self.recent[thread][*next] = (event.address, index);
        *next = (*next + 1) % KEPT;
    }

    /// The event by which a thread freed the block at an address.
    pub(super) fn freed(&self, thread: u32, address: u64) -> Option<u64> {
        let writes =
            self.recent.get(thread as usize)?.iter().filter(|(at, index)| *at == address && *index != u64::MAX);
        writes.map(|&(_, index)| index).max()
    }
}
