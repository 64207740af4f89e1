//! Prediction: the passes over a trace, one after the other, and their answers put together.
//!
//! A trace that fits one window is examined there, completely. Of a longer one, what no two threads contend for is left out
//! first (`unshared`), and then it may fit. If not, the streaming tier goes first: it names
//! every group of races, violations and deadlocks that there can be at all, and asks about the best instance of each on
//! its causal past. Then the sync-preserving sweep looks for races and deadlocks in the whole trace at once; then every
//! instance of what is still open is asked about, and every read that could see another write; in `values`, what `reads` would show is shown.
//! What only the end of the
//! trace can tell is asked there, and what is open then, in `values`, in windows, which show but do not refute. Threads that are
//! stuck in other ways than in cycles of locks come then, and lost updates, of which there are few, last: where there is a race, it is told instead.
//!
//! **The law**: for every kind, model, window and budget, every goal that a reordering of the whole trace reaches has a
//! finding (of its group) or is covered by an entry of [`Prediction::incomplete`]. tests/all/law.rs holds predictions to it.
//!
//! To add a pass, put it into the list here. What it finds by itself it gives to `Examination::adopt`, which checks it: its
//! groups are not asked about again.

use crate::answers::{finish, settle};
use crate::as_reads::AsReads;
use crate::causal_past::{Prepared, Quick, Thorough};
use crate::end_of_trace::EndOfTrace;
use crate::examination::{Examination, Pass};
use crate::facts::Facts;
use crate::lost_updates::LostUpdates;
use crate::observed::RelaxedRaces;
use crate::other_side::{self, OtherSides};
use crate::prediction::Prediction;
use crate::request::{Control, Options, Stop};
use crate::stream::{BestInstances, Streaming};
use crate::stuck::Stuck;
use crate::sync_preserving::SyncPreserving;
use crate::undecided::Why;
use crate::unshared::Unshared;
use crate::windows::{Remaining, Whole};
use portent_trace::Trace;
use std::time::{Duration, Instant};

/// Predicts what other interleavings of the run contain.
pub fn predict(trace: &Trace, options: &Options, control: &Control<'_>) -> Prediction {
    let started = Instant::now();
    let until = |budget: Duration| started.checked_add(budget);
    let whole = Stop::new(control.interrupt, options.budget.and_then(until));
    let stopped = || whole.why().is_some();
    let is_long = trace.len() > options.window.max(2) && !options.unshared;
    let unshared = if is_long { Unshared::of(trace, options, &stopped) } else { None };
    let facts = match &unshared {
        Some(unshared) => Facts::of_shared(unshared, &stopped),
        None => Facts::until(trace, &stopped),
    };
    let Some(facts) = facts else {
        return Prediction::not_examined(&options.kinds, whole.why().unwrap_or(Why::Budget));
    };
    // Findings and reports go through the trace as well: what that takes is kept back.
    let budget = options.budget.map(|budget| budget - started.elapsed().min(budget / 4));
    // A share of the time is for branches that go the other way, if there are any.
    let shared = budget.map(|budget| if other_side::has_any(trace, options) { budget * 4 / 5 } else { budget });
    let stop = Stop::new(control.interrupt, shared.and_then(until));
    let last = Stop::new(control.interrupt, budget.and_then(until));
    let mut prediction = examine(&facts, options, control, (&stop, &last));
    if let Some(unshared) = &unshared {
        unshared.restore(&mut prediction);
        prediction.stats.unshared = unshared.selection.left_out() as u64;
    }
    prediction.stats.time = started.elapsed();
    prediction
}

/// All passes, one after the other. `stop` says when those that look at reorderings end, `last` when all do.
fn examine(facts: &Facts<'_>, options: &Options, control: &Control<'_>, (stop, last): (&Stop, &Stop)) -> Prediction {
    let engines = Prepared::default();
    let mut examination = Examination::new(facts, options, control, stop);

    let in_reorderings: &mut [&mut dyn Pass<'_, '_>] = if examination.fits() {
        &mut [&mut Whole, &mut Stuck, &mut LostUpdates]
    } else {
        &mut [
            &mut Streaming,
            &mut BestInstances,
            &mut Quick(&engines),
            &mut SyncPreserving,
            &mut Thorough(&engines),
            &mut AsReads(&engines),
            &mut EndOfTrace,
            &mut Remaining,
            &mut Stuck,
            &mut LostUpdates,
        ]
    };
    in_reorderings.iter_mut().for_each(|pass| pass.run(&mut examination));
    let known = settle(&mut examination);
    let beyond: &mut [&mut dyn Pass<'_, '_>] = &mut [&mut RelaxedRaces, &mut OtherSides { stop: last, known }];
    beyond.iter_mut().for_each(|pass| pass.run(&mut examination));

    finish(examination)
}
