//! Runs without the rounds that threads went in loops that only look, beyond the first: what the search wants to see
//! (portent-search, [`portent_search::Run::spins`]). Such a round changes nothing and leaves its thread as it was, so what is left is a
//! run that the program could have made.

use crate::outcome::{Spin, SpinKind};
use crate::run::Run;
use portent_trace::{InputEvent, StackColumn};
use rustc_hash::FxHashMap;

/// The events of each thread, by their numbers in the run.
pub(super) type ByThread = FxHashMap<u32, Vec<usize>>;

pub(super) fn by_thread(run: &Run) -> ByThread {
    let mut own = ByThread::default();
    for (at, event) in run.events.iter().enumerate() {
        own.entry(event.thread.index() as u32).or_default().push(at);
    }
    own
}

/// Spins of a run that are known to leave their threads as they were.
pub(super) fn pure(run: &Run) -> impl Iterator<Item = &Spin> {
    run.outcome.spins.iter().filter(|spin| spin.kind == SpinKind::Waits && spin.iteration > 0)
}

/// The run without what threads did over again before they waited; `None` if there is nothing of the kind. Of each thread, as many
/// events as were planned stay. Where threads spin is told in events of the new run.
pub(super) fn shorten(run: &Run, planned: &FxHashMap<u32, u64>) -> Option<Run> {
    let own = by_thread(run);
    let mut gone = vec![false; run.events.len()];
    let mut spins = run.outcome.spins.clone();
    for spin in &mut spins {
        let Some(own) = own.get(&spin.thread) else { continue };
        let (before, period) = (&own[..own.len().min(spin.events as usize)], spin.iteration as usize);
        let mut left: Vec<usize> = before.iter().copied().filter(|&at| !gone[at]).collect();
        if spin.kind == SpinKind::Waits && period > 0 {
            let kept = planned.get(&spin.thread).copied().unwrap_or(0) as usize;
            while left.len() >= (2 * period).max(kept + period) && goes_round(run, &left, period) {
                left.drain(left.len() - period..).for_each(|at| gone[at] = true);
            }
        }
        spin.events = left.len() as u64;
    }
    if !gone.contains(&true) {
        return None;
    }
    let (mut events, mut stacks) = (Vec::new(), StackColumn::default());
    for (at, event) in run.events.iter().enumerate().filter(|&(at, _)| !gone[at]) {
        if let Some(stack) = run.stacks.get(at) {
            stacks.set(events.len(), stack);
        }
        events.push(*event);
    }
    let mut left = run.outcome.unused.iter().peekable();
    let (mut unused, mut now) = (Vec::new(), 0);
    for (at, gone) in gone.iter().enumerate() {
        let here = left.next_if(|(event, _)| *event as usize == at);
        unused.extend(here.filter(|_| !gone).map(|(_, counting)| (now, *counting)));
        now += u32::from(!gone);
    }
    let outcome = crate::Outcome { spins, unused, ..run.outcome.clone() };
    Some(Run { events, stacks, names: run.names.clone(), outcome, recording: Vec::new() })
}

/// Whether the last events of a thread are the same as those before them.
fn goes_round(run: &Run, own: &[usize], period: usize) -> bool {
    let does = |&at: &usize| {
        let InputEvent { op, object, value, loc, .. } = run.events[at];
        (op, object, value, loc)
    };
    let (before, last) = own.split_at(own.len() - period);
    before[before.len() - period..].iter().map(does).eq(last.iter().map(does))
}
