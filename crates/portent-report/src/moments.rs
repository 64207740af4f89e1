//! The two orders of a finding cut down to the moments that matter, in words.

use crate::lookup::{Value, action, deed};
use crate::place;
use crate::relevance::Relevance;
use crate::report::{At, Report, Story, ToldTrace};
use crate::scene::{Scene, Sequence, State};
use portent_trace::{EventId, Op, ThreadId};

/// One event of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Who.
    pub thread: String,
    /// The number of the input event.
    pub number: u32,
    /// What is done to what.
    pub what: String,
    /// The same in a sentence about the thread, in words that programmers use.
    pub deed: String,
    /// The value read or written in this order, where it is known.
    pub value: Option<Value>,
    /// Where in the source.
    pub at: At,
    /// Why it is shown.
    pub relevance: Relevance,
    /// Whether it happens.
    pub state: State,
    /// How many events before it are not shown.
    pub folded: u64,
    /// Whether another thread ran since the moment before it.
    pub switched: bool,
}

/// Both orders of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// What was recorded.
    pub observed: Vec<Moment>,
    /// What breaks; empty if the bug is in the observed order itself.
    pub breaking: Vec<Moment>,
}

impl Report {
    /// The two orders of a finding, cut down to what matters.
    pub fn orders(&self, story: &Story) -> Orders {
        let run = &self.runs[story.run];
        let scene = Scene::of(run, story);
        Orders {
            observed: moments(run, &scene, &scene.observed, false),
            breaking: moments(run, &scene, &scene.breaking, true),
        }
    }
}

/// An order being cut down.
struct Cut<'a> {
    run: &'a ToldTrace,
    scene: &'a Scene,
    breaking: bool,
    moments: Vec<Moment>,
    /// Events since the last moment, as far as the program performed them.
    folded: u64,
    /// Whether threads switched since then.
    switched: bool,
    last: Option<ThreadId>,
    /// The input event that was passed last: all that it became is one event to the user.
    input: Option<u32>,
}

fn moments(run: &ToldTrace, scene: &Scene, order: &Sequence, breaking: bool) -> Vec<Moment> {
    let mut cut =
        Cut { run, scene, breaking, moments: Vec::new(), folded: 0, switched: false, last: None, input: None };
    let mut next = 0;
    for &(position, event) in &order.lead {
        cut.skip(position - next);
        cut.pass(event, State::Done);
        next = position + 1;
    }
    cut.skip(order.before.saturating_sub(next));
    order.events.iter().for_each(|&event| cut.pass(event, State::Done));
    order.pending.iter().for_each(|&(event, state)| cut.pass(event, state));
    cut.moments
}

impl Cut<'_> {
    /// Events that are not even looked at.
    fn skip(&mut self, events: u64) {
        self.folded += events;
        if events > 0 {
            self.last = None;
        }
    }

    fn pass(&mut self, event: EventId, state: State) {
        let trace = &*self.run.trace;
        let told = trace.event(event);
        self.switched |= state == State::Done && self.last.is_some_and(|last| last != told.thread);
        self.last = Some(told.thread);
        let number = trace.input_index(event);
        let performed = self.run.lookup.is_performed(trace, event);
        let first_part = !performed || self.input != Some(number);
        if performed {
            self.input = Some(number);
        }
        let Some(&relevance) = self.scene.relevant.get(&event) else {
            self.folded += u64::from(performed && first_part);
            return;
        };
        let (what, deed) = match (state, told.op) {
            (State::Waits, Op::Acquire(lock, _)) => twice(format!("waits for {}", trace.names().lock(lock))),
            (State::Never, Op::Wake(condition)) => {
                twice(format!("never wakes from {}", trace.names().condition(condition)))
            }
            _ => (action(trace, &self.run.lookup, event), deed(trace, &self.run.lookup, event)),
        };
        let again = |last: &Moment| last.number == number && last.what == what && last.state == state;
        if !first_part && self.folded == 0 && self.moments.last().is_some_and(again) {
            return;
        }
        let value = if self.breaking { self.scene.breaking_value(trace, event) } else { told.value };
        self.moments.push(Moment {
            thread: trace.names().thread(told.thread).to_owned(),
            number,
            what,
            deed,
            // What an access that has not happened would read is open.
            value: value
                .filter(|_| told.op.variable().is_some() && !(state == State::Next && told.op.reads()))
                .map(|value| Value::of(trace, event, value)),
            at: place::of_event_or_start(trace, &self.run.lookup, event),
            relevance,
            state,
            folded: std::mem::take(&mut self.folded),
            switched: std::mem::take(&mut self.switched) && state == State::Done,
        });
    }
}

fn twice(text: String) -> (String, String) {
    (text.clone(), text)
}
