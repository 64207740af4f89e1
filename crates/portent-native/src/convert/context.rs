//! What deciding about one event needs besides the event: where it is, the names so far, and what is odd about it.

use super::oddities::{Oddities, Oddity};
use portent_trace::{InputOp, LocId, Names, ObjectClass, Problem};

/// An event on its way into the trace.
pub(super) struct EventContext<'a> {
    pub(super) thread: u32,
    /// Its number.
    pub(super) index: u64,
    pub(super) at: LocId,
    pub(super) names: &'a mut Names,
    pub(super) oddities: &'a mut Oddities,
}

impl EventContext<'_> {
    pub(super) fn odd(&mut self, oddity: Oddity) {
        self.oddities.add(oddity, self.at);
    }
    /// An event that orders nothing.
    pub(super) fn nothing(&mut self, oddity: Option<Oddity>) -> Result<(InputOp, u32), Problem> {
        if let Some(oddity) = oddity {
            self.odd(oddity);
        }
        Ok((InputOp::Send, self.names.intern(ObjectClass::Token, b"nobody")?))
    }
}
