//! Predicting while a run goes on: segment by segment, in memory that does not grow with the run.
//!
//! A segment is so many events, and the next one begins in the middle of it. It becomes a trace of its own (`cut`), which begins where the
//! run was then (`carried`), and is examined like any other ([`predict`]). What is found has a witness that begins with all events
//! before the segment as they were observed, so **it holds whatever the run does later**: it is told at once.
//!
//! What only the whole run can tell is left to whoever looks at that: bugs whose events are further apart than a segment, or whose
//! reorderings begin before it; threads that wait for ever and final values, which need the end.
//!
//! State: a segment of events, and what the run has behind it.

mod carried;
mod cut;

use crate::finding::Finding;
use crate::predict::predict;
use crate::request::{Control, Options};
use carried::{Carried, Kept};
use cut::{Cut, cut};
use portent_order::{Goal, Writer};
use portent_trace::{FunctionBlocks, InputBatch, Names, Trace, TraceError};
use std::sync::Arc;

/// Says which functions are atomic blocks, for each segment anew.
type Blocks = Box<dyn Fn() -> FunctionBlocks + Send>;

/// A run that is followed.
pub struct Online {
    options: Options,
    functions: Blocks,
    length: usize,
    behind: Carried,
    /// Events from the beginning of the segment on.
    ahead: Vec<Kept>,
    /// How many of them were examined.
    examined: usize,
    passed_over: u64,
}

/// What a segment showed.
pub struct Look {
    /// The segment, with what leads to it.
    pub trace: Arc<Trace>,
    /// What it contains, whatever comes later. Events are the trace's; schedules are those of the run.
    pub findings: Vec<Finding>,
    /// Errors of the engine itself.
    pub errors: Vec<String>,
    /// How many events of the trace lead to the segment.
    lead: u32,
    /// How many events the run has before the segment.
    before: u64,
}

impl Look {
    /// Whether the segment begins where the run does.
    pub fn begins_the_run(&self) -> bool {
        self.before == 0
    }
    /// The number that an input event of the segment's trace has in the run.
    pub fn in_run(&self, event: u32) -> u64 {
        self.before + u64::from(event.saturating_sub(self.lead))
    }
}

impl Online {
    /// Events of a segment, unless told otherwise.
    pub const LENGTH: usize = 1 << 16;

    /// Follows a run from its first event, in segments of so many.
    pub fn new(options: Options, functions: Blocks, length: usize) -> Self {
        let (behind, ahead) = (Carried::default(), Vec::new());
        Online { options, functions, length: length.max(2), behind, ahead, examined: 0, passed_over: 0 }
    }

    /// Takes in what happened next.
    pub fn take(&mut self, batch: &InputBatch) {
        self.ahead.extend(batch.iter().enumerate().map(|(at, event)| Kept { event, stack: batch.stack(at) }));
    }

    /// Events that were taken in.
    pub fn events(&self) -> u64 {
        self.behind.events + self.ahead.len() as u64
    }
    /// Events that were taken in and not examined yet.
    pub fn waiting(&self) -> usize {
        self.ahead.len() - self.examined
    }
    /// Whether there is a whole segment.
    pub fn is_full(&self) -> bool {
        self.ahead.len() >= self.length
    }
    /// Events that were never examined, and will not be.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Examines the segment, or what there is of it; after a whole one, the next begins in its middle.
    pub fn look(&mut self, names: &Names, control: &Control<'_>) -> Result<Look, TraceError> {
        let there = self.ahead.len().min(self.length);
        let made = cut(names, &self.behind, &self.ahead[..there], (self.functions)());
        let before = self.behind.events;
        self.examined = there;
        if there == self.length {
            self.go_on();
        }
        let Cut { trace, lead } = made?;
        let mut prediction = predict(&trace, &self.options, control);
        let count = lead.len() as u32;
        prediction.findings.retain(|finding| is_certain(finding, count, before > 0));
        for witness in prediction.findings.iter_mut().filter_map(|finding| finding.witness.as_mut()) {
            witness.steps = witness.steps.behind(&lead, before);
        }
        let (findings, errors) = (prediction.findings, prediction.errors);
        Ok(Look { trace: Arc::new(trace), findings, errors, lead: count, before })
    }

    /// Goes past a whole segment without looking at it.
    pub fn pass_over(&mut self) {
        if self.is_full() {
            let next = self.length / 2;
            self.passed_over += next.saturating_sub(self.examined) as u64;
            self.examined = self.examined.max(next);
            self.go_on();
        }
    }

    fn go_on(&mut self) {
        let next = self.length / 2;
        self.ahead.drain(..next).for_each(|kept| self.behind.pass(kept));
        self.examined -= next;
    }
}

/// Whether a finding of a segment is one of every run that begins so.
fn is_certain(finding: &Finding, lead: u32, has_past: bool) -> bool {
    let ends = |goal: Goal| match goal {
        Goal::LostWakeup { .. } | Goal::Stuck { .. } | Goal::FinalValue { .. } => false,
        // What is initial here was written before.
        Goal::Nondeterminism { challenger, .. } => challenger != Writer::Init || !has_past,
        _ => true,
    };
    let places = finding.places();
    finding.goal().is_none_or(ends) && places.iter().all(|place| place.event.map_or(!has_past, |event| event >= lead))
}
