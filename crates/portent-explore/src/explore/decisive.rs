//! The decisive operation: where a run that fails and its nearest run that passes first see something different.
//!
//! The two agree up to a switch. From there on each thread is compared with itself: the first operation of the failing thread
//! whose outcome differs (the value that it read, the lock that it got or did not get) is what led it astray. If its own
//! operations all agree, the first of any thread. If nothing differs but the order, the switch itself is what decides.

use crate::run::Run;
use portent_predict::{Deciding, Place, Role};
use portent_trace::{InputEvent, InputOp, ObjectClass, Trace, is_user_file};
use std::collections::HashMap;

/// What decides between a run that fails, and its trace, and one that passes; `failing` is the thread that fails.
pub(super) fn decisive(fails: &Run, trace: &Trace, passes: &Run, failing: u32) -> Option<Deciding> {
    let threads = fails.events.iter().map(|event| event.thread.index() + 1).max().unwrap_or(0);
    let runs = [fails, passes].map(|run| Told { run, writers: last_writers(run) });
    let differences: Vec<[usize; 2]> = (0..threads).filter_map(|thread| difference(&runs, thread)).collect();
    let [failing_run, passing_run] = &runs;
    let of_failing = |at: &&[usize; 2]| fails.events[at[0]].thread.index() == failing as usize;
    let chosen = differences.iter().find(of_failing).or_else(|| differences.iter().min());
    match chosen {
        Some(&[at, before]) => {
            let writer = failing_run.writers[at];
            Some(Deciding {
                operation: Place::of_input(trace, Role::Decisive, &fails.events[at], at as u32),
                because: writer.map(|w| Place::of_input(trace, Role::Because, &fails.events[w], w as u32)),
                fails: outcome(fails, at, writer),
                passes: outcome(passes, before, passing_run.writers[before]),
            })
        }
        None => switch(fails, trace, passes),
    }
}

/// A run, and for each event the last write before it of what it accesses.
struct Told<'a> {
    run: &'a Run,
    writers: Vec<Option<usize>>,
}

/// The first operation of a thread that both runs execute, and whose outcome differs: its place in each run.
fn difference([failing, passing]: &[Told<'_>; 2], thread: usize) -> Option<[usize; 2]> {
    let (fails, passes) = (failing.run, passing.run);
    let of = |run: &Run| -> Vec<usize> {
        (0..run.events.len()).filter(|&at| run.events[at].thread.index() == thread).collect()
    };
    for (here, there) in of(fails).into_iter().zip(of(passes)) {
        let (a, b) = (&fails.events[here], &passes.events[there]);
        let place = |run: &'_ Run, at: usize| run.names.innermost(run.events[at].loc, run.stacks.get(at));
        let (at, other) = (fails.names.location(place(fails, here)), passes.names.location(place(passes, there)));
        let same_place = at.is_place(&other);
        if a.op == b.op && same_place {
            let reads = matches!(a.op, InputOp::Read(_) | InputOp::Update(_));
            // What a thread wrote itself (addresses of its own blocks, mostly) follows from something before.
            let foreign = |told: &Told<'_>, at: usize| {
                told.writers[at].is_none_or(|writer| told.run.events[writer].thread.index() != thread)
            };
            if reads && a.value != b.value && (foreign(failing, here) || foreign(passing, there)) {
                return Some([here, there]);
            }
            continue;
        }
        // The same operation with another outcome: a try that failed, an exchange that did nothing, a wait that timed out.
        let outcomes = a.op.is_access() && b.op.is_access() || is_tried(a.op) && is_tried(b.op);
        // Elsewhere the thread has gone another way: what led it there was not recorded as different.
        return (same_place && outcomes).then_some([here, there]);
    }
    None
}

fn is_tried(op: InputOp) -> bool {
    matches!(
        op,
        InputOp::Acquire
            | InputOp::AcquireShared
            | InputOp::TryAcquire
            | InputOp::TryAcquireShared
            | InputOp::Busy
            | InputOp::BusyShared
            | InputOp::SemaphoreWait
            | InputOp::SemaphoreTry
            | InputOp::SemaphoreBusy
            | InputOp::Wake
            | InputOp::WakeInTime
            | InputOp::TimeOut
            | InputOp::WakeByItself
    )
}

/// For each event, the last write before it of what it accesses.
fn last_writers(run: &Run) -> Vec<Option<usize>> {
    let mut last: HashMap<u32, usize> = HashMap::new();
    let of_event = |(at, event): (usize, &InputEvent)| {
        if !event.op.is_access() {
            return None;
        }
        let before = last.get(&event.object).copied();
        if !matches!(event.op, InputOp::Read(_)) {
            last.insert(event.object, at);
        }
        before
    };
    run.events.iter().enumerate().map(of_event).collect()
}

/// What an operation saw, in words.
fn outcome(run: &Run, at: usize, writer: Option<usize>) -> String {
    let event = &run.events[at];
    if !event.op.is_access() {
        return match event.op {
            InputOp::Busy | InputOp::BusyShared | InputOp::SemaphoreBusy => "does not get it".into(),
            InputOp::TimeOut => "times out".into(),
            InputOp::WakeByItself => "wakes without a notify".into(),
            InputOp::Wake | InputOp::WakeInTime => "is woken".into(),
            _ => "gets it".into(),
        };
    }
    let object = run.names.called(ObjectClass::Variable, event.object);
    // Addresses tell nobody anything.
    let value = event.value.filter(|value| (-(1 << 40)..1 << 40).contains(value));
    let value = value.map_or_else(String::new, |value| format!(" = {value}"));
    match writer {
        Some(writer) => {
            let by = &run.events[writer];
            let frames = run.stack(writer);
            let own = frames.iter().find(|frame| frame.user).map_or(by.loc, |frame| frame.location);
            let (thread, place) = (run.names.thread(by.thread), run.names.location(own));
            let at =
                if place.file.is_some_and(|file| !is_user_file(file)) { String::new() } else { format!(" at {place}") };
            format!("sees {object}{value}, written by {thread}{at}")
        }
        None => format!("sees {object}{value}, as it was at first"),
    }
}

/// The switch by which two runs differ, where nobody saw anything else.
fn switch(fails: &Run, trace: &Trace, passes: &Run) -> Option<Deciding> {
    let parts = |at: &usize| {
        let [a, b] = [fails, passes].map(|run| run.events.get(*at).map(|event| event.thread));
        a != b
    };
    let at = (1..fails.events.len()).find(parts)?;
    let (before, after) = (at - 1, &fails.events[at]);
    let other = passes.events.get(at)?;
    let stood = passes.names.location(other.loc);
    let name = |run: &Run, event: &InputEvent| run.names.thread(event.thread).to_owned();
    Some(Deciding {
        operation: Place::of_input(trace, Role::Decisive, &fails.events[before], before as u32),
        because: Some(Place::of_input(trace, Role::Because, after, at as u32)),
        fails: format!("{} goes on next", name(fails, after)),
        passes: format!("{} goes on, at {stood}", name(passes, other)),
    })
}
