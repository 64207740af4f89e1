//! A window: a stretch of the trace, and which tuples of its events are this window's to examine.
//!
//! Windows overlap. A tuple belongs to the first window that contains all its events: to this one, if the window before
//! does not contain its last event. So a window owns exactly the tuples whose last event is `fresh` or later.

use crate::facts::Facts;
use portent_trace::EventId;
use std::ops::Range;

/// A stretch of the trace that is examined at once.
pub(crate) struct Window<'a, 't> {
    pub(crate) facts: &'a Facts<'t>,
    /// Events of the window.
    pub(crate) span: Range<usize>,
    /// First event that the window before does not contain.
    pub(crate) fresh: usize,
    /// Whether happens-before of the observed order orders two accesses; for races.
    pub(crate) ordered: Option<&'a dyn Fn(EventId, EventId) -> bool>,
}

impl<'a, 't> Window<'a, 't> {
    /// Everything as one window.
    pub(crate) fn whole(facts: &'a Facts<'t>) -> Self {
        Window { facts, span: 0..facts.trace.len(), fresh: 0, ordered: None }
    }
    /// The events of the window.
    pub(crate) fn events(&self) -> impl DoubleEndedIterator<Item = EventId> + use<> {
        self.span.clone().map(EventId::new)
    }
    /// The events that the window before contains too.
    pub(crate) fn stale(&self) -> Range<usize> {
        self.span.start..self.fresh.clamp(self.span.start, self.span.end)
    }
    /// Whether the tuple with this last event is examined here.
    #[inline]
    pub(crate) fn owns(&self, last: EventId) -> bool {
        last.index() >= self.fresh
    }
    /// Whether the window reaches the end of the trace.
    pub(crate) fn is_last(&self) -> bool {
        self.span.end == self.facts.trace.len()
    }
}
