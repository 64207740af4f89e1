//! The lattice of reorderings: every run that a trace stands for, watched by a monitor (Sen, Roşu and Agha, corrected).
//!
//! [`explore`] answers whether some reordering, complete or not, breaks a property, and by which schedule. What is
//! exact: the answer is that of enumerating all reorderings, unless a level had to be narrowed, which is said. Deviations
//! from the paper, which is wrong in places (docs/src/internals/semantics.md §6): what a variable holds is part of a cut instead of counters of
//! atomic sets; reads of initial values are kept; locks are locks, not variables; prefixes that no complete run has are
//! explored too; so are, in `reads`, those in which the last executed read of a thread, if the property sees it, sees
//! another write (`state`). Values that a trace does not carry are unknown, and so is then the answer.

pub mod draw;
mod explore;
mod online;
mod plan;
mod roles;
mod slice;
mod slots;
mod state;
mod whole;
mod witness;

use crate::undecided::Why;
use explore::Explorer;
use portent_order::{Model, Schedule};
use portent_spec::Monitor;
use portent_trace::{EventId, Trace};
use slice::{Detail, slice};

pub use online::{Followed, follow};
pub use whole::{Edge, Node, Whole, whole, whole_seen};

/// How to explore.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What reads must see.
    pub model: Model,
    /// Cuts per level, at most.
    pub width: usize,
    /// Look at every event of every thread, without reduction: for comparison.
    pub unreduced: bool,
}

impl Bounds {
    /// Cuts per level, unless told otherwise.
    pub const WIDTH: usize = 1_000_000;
    /// The usual bounds in a model.
    pub fn of(model: Model) -> Self {
        Bounds { model, width: Self::WIDTH, unreduced: false }
    }
}

/// A reordering that breaks a property.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The event that breaks it, the last of the schedule; `None` if it is the end of a complete run.
    pub event: Option<EventId>,
    /// Who runs.
    pub schedule: Schedule,
    /// The events of the schedule.
    pub events: Vec<EventId>,
    /// How many steps ran ahead of an earlier one of the observed run: 0 if that run breaks the property itself.
    pub deviation: u32,
}

/// What exploring gave.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// One way for each event that can break the property, the least deviation first.
    pub broken: Vec<Broken>,
    /// Cuts examined, after slicing.
    pub cuts: u64,
    /// Levels examined.
    pub levels: u64,
    /// The most cuts in a level.
    pub widest: u64,
    /// Cuts left out.
    pub dropped: u64,
    /// The first level with cuts left out.
    pub incomplete_from: Option<u64>,
    /// Why it stopped before the end, and at which level.
    pub stopped: Option<(Why, u64)>,
    /// Whether an unknown value decided somewhere, and a state of the monitor there.
    pub unknown: Option<Vec<u64>>,
    /// Events that the monitor sees.
    pub visible: u64,
    /// Steps that were left after slicing, of all threads.
    pub steps: u64,
    /// Memory of levels and links at the most.
    pub bytes: u64,
    /// Bytes per cut of the widest level, with its index and its link.
    pub bytes_per_cut: f64,
}

impl Explored {
    /// Whether every reordering was examined.
    pub fn is_complete(&self) -> bool {
        self.dropped == 0 && self.stopped.is_none()
    }
}

/// Explores every reordering of a trace with a monitor. `stop` is asked now and then.
pub fn explore(
    trace: &Trace,
    monitor: &mut dyn Monitor,
    bounds: &Bounds,
    stop: &dyn Fn(u64) -> Option<Why>,
) -> Explored {
    let detail = if bounds.unreduced { Detail::Everything } else { Detail::Sliced };
    let slice = slice(trace, bounds.model, monitor, detail);
    let mut seen = vec![false; trace.len()];
    slice.plan.moves.iter().flatten().filter(|step| step.letter.is_some()).for_each(|s| seen[s.event.index()] = true);
    let monitor = &*monitor;
    let complete_ends = monitor.cares_about_end();
    let mut explorer = Explorer::new(&slice.plan, monitor, bounds.width);
    let mut explored = Explored {
        visible: slice.visible,
        steps: slice.plan.moves.iter().map(|steps| steps.len() as u64).sum(),
        ..Explored::default()
    };
    let mut next_look = 0;
    while !explorer.is_done() {
        if explorer.tally.cuts >= next_look {
            next_look = explorer.tally.cuts + 10_000;
            if let Some(why) = stop(explorer.level()) {
                explored.stopped = Some((why, explorer.level()));
                break;
            }
        }
        explorer.advance(&slice.plan, monitor, complete_ends);
    }
    let mut violations: Vec<_> = explorer.violations.values().copied().collect();
    violations.sort_by_key(|violation| (violation.cost, violation.event.is_none(), violation.event));
    for violation in violations {
        let way = explorer.way(&violation);
        let events = witness::events(&slice, monitor, &way, &violation);
        let events = witness::closest(trace, &events, &|event| seen[event.index()], violation.event.is_none());
        let schedule = events.iter().map(|&event| trace.thread(event)).collect();
        let deviation = ahead(trace, &events);
        explored.broken.push(Broken { event: violation.event, schedule, events, deviation });
    }
    explored.broken.sort_by_key(|broken| (broken.deviation, broken.event.is_none(), broken.event));
    let tally = &explorer.tally;
    explored.cuts = tally.cuts;
    explored.levels = tally.levels;
    explored.widest = tally.widest;
    explored.dropped = tally.dropped;
    explored.incomplete_from = tally.incomplete_from;
    explored.bytes = tally.bytes;
    explored.bytes_per_cut = tally.per_cut;
    explored.unknown = tally.unknown.then(|| tally.unknown_state.clone());
    explored
}

/// How many events run before one that came earlier in the observed run.
fn ahead(trace: &Trace, events: &[EventId]) -> u32 {
    let mut next = 0;
    let mut done = vec![false; trace.len()];
    let mut count = 0;
    for &event in events {
        while next < done.len() && done[next] {
            next += 1;
        }
        count += u32::from(event.index() != next);
        done[event.index()] = true;
    }
    count
}
