//! What an engine looks at: windows and slices of a trace, laid out.

use super::layout::Prefix;
use super::slice::Slice;
use super::window::Window;
use crate::goal::Model;
use portent_trace::Trace;
use std::ops::Range;

/// The events of a trace that an engine looks at.
#[derive(Clone, Debug)]
pub struct Span {
    /// First event.
    pub first: usize,
    /// How many.
    pub len: usize,
}

/// A window of a trace, prepared for an [`Engine`](super::Engine).
pub struct View<'t> {
    pub(super) window: Window<'t>,
}

impl<'t> View<'t> {
    /// The whole trace as one window.
    pub fn whole(trace: &'t Trace, model: Model) -> Self {
        View { window: Window::open(trace, &Prefix::of(trace, model), trace.len()) }
    }
    /// The windows of `len` events that overlap by half and cover the trace.
    pub fn windows(trace: &'t Trace, model: Model, len: usize) -> impl Iterator<Item = View<'t>> {
        let len = len.max(2);
        let mut next = Some(0);
        let spans = std::iter::from_fn(move || {
            let first = next?;
            next = (first + len < trace.len()).then_some(first + len / 2);
            Some(first..first + len)
        });
        Self::spans(trace, model, spans)
    }
    /// The windows of these spans of events; their starts must not go back.
    pub fn spans(
        trace: &'t Trace,
        model: Model,
        spans: impl Iterator<Item = Range<usize>>,
    ) -> impl Iterator<Item = View<'t>> {
        let mut prefix = Prefix::of(trace, model);
        spans.map(move |span| {
            debug_assert!(span.start >= prefix.done, "spans go forward");
            prefix.advance(trace, span.start.min(trace.len()));
            View { window: Window::open(trace, &prefix, span.end.saturating_sub(span.start)) }
        })
    }
    /// The events of a slice, in `reads` or `sync`. Schedules begin where the slice does.
    pub fn slice(trace: &'t Trace, model: Model, slice: &Slice<'_>) -> Self {
        View { window: Window::of(trace, model, slice) }
    }
    /// The events it covers.
    pub fn span(&self) -> Span {
        Span { first: self.window.first, len: self.window.len() }
    }
}
