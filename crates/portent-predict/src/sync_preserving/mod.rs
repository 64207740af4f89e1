//! Sync-preserving races and deadlocks, over the whole trace at once and in time linear in its length.
//!
//! After Mathur, Pavlogiannis and Viswanathan, "Optimal prediction of synchronization-preserving races" (POPL 2021), and
//! Tunç, Mathur, Pavlogiannis and Viswanathan, "Sound dynamic deadlock prediction in linear time" (PLDI 2023). A
//! reordering is *sync-preserving* if the critical sections of every lock that it contains come in the observed order.
//!
//! **Idea.** Call a set of events *closed* if it contains, with every event, all that the event needs (program order,
//! tokens, the notify of a wake, the writer of a read), and the release of every critical section after which it contains
//! another, conflicting one of the same lock. A closed set, executed in the observed order, is a reordering; and the
//! events of a sync-preserving reordering are closed. So a set of events can be *next* together iff the least closed set
//! that contains everything before them contains none of them. Closures only grow along program order: an access
//! that the closure of a pair swallows is lost for every later access of the other thread, so each is looked at
//! once per other thread, and the same holds for each acquire of a cycle.
//!
//! | file | what it does |
//! |---|---|
//! | history.rs | scopes of locks so far, closures (`Ideal`) |
//! | past.rs | the closure of every thread's past, moved along the trace event by event |
//! | races.rs | pairs of accesses, by variable, thread and location |
//! | deadlocks.rs | cycles of classes of acquires, one closure per cycle |
//! | witness.rs | closed sets as schedules |
//! | pass.rs | the sweep in a prediction |
//!
//! **Beyond the papers.** Closures are kept closed per thread instead of being computed from timestamps for each pair, and
//! a release brings its own closure along, so that a pair mostly needs one look at the locks held at its frontier. Accesses that
//! nothing separates count as one, the latest. Read-write locks: two shared scopes do not conflict. Tokens and conditions are
//! needs. So are semaphores: a wait needs the post that let it through, first come, first served, a failed try whatever came before it. A failed try needs the acquire of *its holder*: of the scopes that conflicted with it in the observed order, the
//! one acquired first. In `sync` reads need nothing. Locations: a race is looked for per pair of source locations, not
//! per variable.
//!
//! **What is missed.** Reorderings that swap critical sections, by definition: the window engine looks for those. Of one
//! variable, thread and kind of access, locations beyond the first `PLACES` (races.rs) share a list, in which an access that
//! races hides those after it. Cycles beyond `PATIENCE` (deadlocks.rs), races beyond `MOST` (races.rs) and witnesses
//! beyond `STEPS` events in all. [`Sweep::complete`] says so.

mod deadlocks;
mod history;
mod pass;
mod past;
mod races;
mod witness;

pub(crate) use pass::SyncPreserving;

use portent_order::{Goal, Model, Schedule};
use portent_trace::Trace;

/// How many events all witnesses together may have: making and checking them takes about a minute per billion.
const STEPS: u64 = 1 << 32;

/// What to look for.
pub struct Wanted<'a> {
    /// What reads must see. In `sync` more reorderings count.
    pub model: Model,
    /// Whether to look for races.
    pub races: bool,
    /// Whether to look for deadlocks.
    pub deadlocks: bool,
    /// Whether a goal's source locations are settled already, so that nothing at them need be found again.
    pub known: &'a dyn Fn(&Goal) -> bool,
    /// Whether to stop early.
    pub stop: &'a dyn Fn() -> bool,
}

/// What was found, and what it took.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// One goal per pair (race) or cycle (deadlock) of source locations, each with a schedule, not yet checked.
    pub found: Vec<(Goal, Schedule)>,
    /// Whether everything sync-preserving was found, at the grain of source locations.
    pub complete: bool,
    /// Closures of more than one thread's past.
    pub closures: u64,
    /// Bytes held at the end, beside the trace.
    pub bytes: usize,
}

/// Finds sync-preserving races and deadlocks.
pub fn sweep(trace: &Trace, wanted: &Wanted<'_>) -> Sweep {
    let survey = past::Survey::of(trace);
    let mut past = past::Past::new(trace, wanted.model, &survey);
    let mut races = races::Races::new(&survey, trace.threads());
    let mut cycles = deadlocks::Acquires::default();
    let mut complete = past.walk(
        trace,
        wanted.stop,
        |past, access| {
            if wanted.races {
                races.visit(trace, past, access, wanted.known);
            }
        },
        |past, acquire| {
            if wanted.deadlocks {
                cycles.note(trace, past, acquire);
            }
        },
    );
    complete &= races.complete;
    let (history, mut closures, mut bytes) = past.finish();
    closures += races.closures;
    bytes += races.bytes() + cycles.bytes();
    let mut ideals = races.found;
    if wanted.deadlocks {
        let found = cycles.search(&history, wanted);
        complete &= found.complete;
        closures += found.closures;
        ideals.extend(found.found);
    }
    let witnesses = witness::Witnesses::new(trace, &history);
    let mut found = Vec::with_capacity(ideals.len());
    let mut steps = 0;
    for (goal, clock) in ideals {
        if (wanted.stop)() || steps > STEPS {
            complete = false;
            break;
        }
        let schedule = witnesses.schedule(&goal, &clock);
        steps += schedule.len();
        found.push((goal, schedule));
    }
    Sweep { found, complete, closures, bytes }
}
