//! All reorderings of a trace, one by one.

use super::oracle::Oracle;
use crate::goal::{Model, Writer};
use portent_trace::{EventId, Trace, VarId};
use std::collections::BTreeSet;

/// Every complete reordering, as event sequences in lexicographic order. Only for very small traces.
pub fn complete_runs(trace: &Trace, model: Model) -> Vec<Vec<EventId>> {
    let mut runs: Vec<Vec<EventId>> =
        words(trace, model).into_iter().filter(|word| word.len() == trace.len()).collect();
    runs.sort();
    runs
}

/// How many reorderings there are, complete or not. Only for very small traces.
pub fn count_prefixes(trace: &Trace, model: Model) -> usize {
    words(trace, model).len()
}

/// How many different position vectors lie on complete reorderings.
pub fn count_cuts(trace: &Trace, model: Model) -> usize {
    let mut cuts = BTreeSet::new();
    for run in complete_runs(trace, model) {
        let mut position = vec![0; trace.threads()];
        cuts.insert(position.clone());
        for event in run {
            position[trace.thread(event).index()] += 1;
            cuts.insert(position.clone());
        }
    }
    cuts.len()
}

/// The longest reorderings: those that cannot go on, complete or not; `None` if there are more than `most`.
pub fn longest_reorderings(trace: &Trace, model: Model, most: usize) -> Option<Vec<Vec<EventId>>> {
    let mut words = Vec::new();
    each_reordering(trace, model, |word, goes_on| {
        if !goes_on {
            words.push(word);
        }
        words.len() <= most
    });
    (words.len() <= most).then_some(words)
}

fn words(trace: &Trace, model: Model) -> Vec<Vec<EventId>> {
    let mut words = Vec::new();
    each_reordering(trace, model, |word, _| {
        words.push(word);
        true
    });
    words
}

/// A reordering for a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// What is executed.
    pub events: Vec<EventId>,
    /// Which of these events read another write than in the trace: each is the last of its thread.
    pub changed: Vec<EventId>,
    /// Whether every thread has run all its events or stopped at a changed read.
    pub ends: bool,
}

/// The longest reorderings in which, in `reads`, the last executed read of each thread may see any write, if it is one of
/// those that may change; `None` if there are more than `most`. What a changed update writes is nothing that a kept read
/// may see.
pub fn longest_for_property(
    trace: &Trace,
    model: Model,
    may_change: &dyn Fn(EventId) -> bool,
    most: usize,
) -> Option<Vec<Word>> {
    let oracle = Oracle::new(trace, model);
    let mut words = Vec::new();
    let mut stack = vec![(oracle.start(), Word { events: Vec::new(), changed: Vec::new(), ends: false })];
    while let Some((state, mut word)) = stack.pop() {
        let before = stack.len();
        let stopped = |t: usize| word.changed.iter().any(|&event| trace.thread(event).index() == t);
        word.ends = (0..oracle.program.len()).all(|t| stopped(t) || state.position[t] == oracle.program[t].len());
        for thread in (0..oracle.program.len()).filter(|&t| !stopped(t)) {
            let Some(&event) = oracle.program[thread].get(state.position[thread]) else { continue };
            if !oracle.possible(&state, event) {
                continue;
            }
            // The last write of a variable is unknown if a changed update made it.
            let unknown = |x: VarId| matches!(state.last[x.index()], Writer::Event(e) if word.changed.contains(&e));
            let reads_unknown = trace.op(event).reads() && trace.op(event).variable().is_some_and(unknown);
            let frees = oracle.rule.frees_last_reads();
            let kept = oracle.keeps_read(&state, event) && !(frees && reads_unknown);
            if kept || (frees && may_change(event)) {
                let mut longer = word.clone();
                longer.events.push(event);
                longer.changed.extend((!kept).then_some(event));
                stack.push((oracle.after(&state, event), longer));
            }
        }
        if stack.len() == before {
            words.push(word);
        }
        if words.len() > most {
            return None;
        }
    }
    Some(words)
}

/// Visits every reordering, and says whether it can go on, as long as the visitor wants more.
fn each_reordering(trace: &Trace, model: Model, mut visit: impl FnMut(Vec<EventId>, bool) -> bool) {
    let oracle = Oracle::new(trace, model);
    let mut stack = vec![(oracle.start(), Vec::new())];
    while let Some((state, word)) = stack.pop() {
        let before = stack.len();
        for thread in 0..oracle.program.len() {
            let Some(&event) = oracle.program[thread].get(state.position[thread]) else { continue };
            if oracle.possible(&state, event) && oracle.keeps_read(&state, event) {
                let mut longer = word.clone();
                longer.push(event);
                stack.push((oracle.after(&state, event), longer));
            }
        }
        if !visit(word, stack.len() > before) {
            return;
        }
    }
}
