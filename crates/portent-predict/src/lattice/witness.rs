//! From a way through the lattice to a schedule that is as close to the observed run as its reorderings of one kind are.
//!
//! The way says who ran; everything that ran at once is made again. Then all pairs of events whose order could matter keep
//! theirs, events that the last one does not need are left out, and the rest comes in the observed order.

use super::explore::Violation;
use super::slice::Slice;
use super::state::Cut;
use portent_spec::Monitor;
use portent_trace::{EventId, Op, Trace};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The events of a way, in the order in which the lattice runs them.
pub(super) fn events(slice: &Slice, monitor: &dyn Monitor, way: &[usize], violation: &Violation) -> Vec<EventId> {
    let plan = &slice.plan;
    let mut done = vec![0usize; slice.program.len()];
    let mut events: Vec<EventId> = Vec::new();
    let mut cut = Cut::start(plan, monitor);
    // What is no step runs as soon as the step before it has.
    let flush = |t: usize, position: u32, done: &mut Vec<usize>, events: &mut Vec<EventId>, number: Option<usize>| {
        let program = &slice.program[t][..slice.needed[t] as usize];
        let stop = number.and_then(|number| plan.step(number, position)).map(|step| step.event);
        while let Some(&event) = program.get(done[t]).filter(|event| stop != Some(**event)) {
            events.push(event);
            done[t] += 1;
        }
    };
    let number: FxHashMap<usize, usize> = slice.threads.iter().enumerate().map(|(at, &t)| (t, at)).collect();
    for t in 0..slice.program.len() {
        flush(t, 0, &mut done, &mut events, number.get(&t).copied());
    }
    let run = |thread: usize, cut: &Cut, done: &mut Vec<usize>, events: &mut Vec<EventId>, last: bool| {
        let t = slice.threads[thread];
        events.push(slice.program[t][done[t]]);
        done[t] += 1;
        if !last {
            flush(t, cut.positions[thread], done, events, Some(thread));
        }
    };
    let settle = |cut: &mut Cut, done: &mut Vec<usize>, events: &mut Vec<EventId>| {
        let mut ran = Vec::new();
        cut.settle(plan, |t| ran.push(t));
        let mut positions: Vec<u32> = cut.positions.clone();
        ran.iter().for_each(|&t| positions[t] -= 1);
        let mut shadow = Cut { positions, ..Cut::default() };
        for t in ran {
            shadow.positions[t] += 1;
            run(t, &shadow, done, events, false);
        }
    };
    settle(&mut cut, &mut done, &mut events);
    for (at, &thread) in way.iter().enumerate() {
        let Some(step) = cut.next(plan, thread) else { break };
        // What can be kept is: nothing else would have been a step of this way.
        let kept = cut.enabled(plan, thread, step);
        if kept {
            cut.advance(plan, thread, step);
        } else {
            cut.stop(plan, thread, step);
        }
        let last = at + 1 == way.len() && violation.event.is_some();
        run(thread, &cut, &mut done, &mut events, last || !kept);
        if !last {
            settle(&mut cut, &mut done, &mut events);
        }
    }
    events
}

/// The same run closer to the observed one: events whose order could matter keep it, the others come in observed order.
/// Unless `complete`, events that the last one does not need are left out.
pub(super) fn closest(
    trace: &Trace,
    events: &[EventId],
    sees: &dyn Fn(EventId) -> bool,
    complete: bool,
) -> Vec<EventId> {
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); events.len()];
    let mut of_thread: FxHashMap<usize, u32> = FxHashMap::default();
    let mut of_lock: FxHashMap<usize, u32> = FxHashMap::default();
    let mut of_condition: FxHashMap<usize, u32> = FxHashMap::default();
    let mut of_semaphore: FxHashMap<usize, u32> = FxHashMap::default();
    let mut sends: FxHashMap<usize, Vec<u32>> = FxHashMap::default();
    let mut writes: FxHashMap<usize, u32> = FxHashMap::default();
    let mut reads: FxHashMap<usize, Vec<u32>> = FxHashMap::default();
    let mut seen: Option<u32> = None;
    for (at, &event) in events.iter().enumerate() {
        let at = at as u32;
        let needs = &mut before[at as usize];
        needs.extend(of_thread.insert(trace.thread(event).index(), at));
        match trace.op(event) {
            Op::Acquire(lock, _) | Op::Release(lock, _) | Op::Busy(lock, _) => {
                needs.extend(of_lock.insert(lock.index(), at));
            }
            Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => needs.extend(of_condition.insert(c.index(), at)),
            Op::Post(s) | Op::Wait(s) | Op::Empty(s) => needs.extend(of_semaphore.insert(s.index(), at)),
            Op::Send(token) => sends.entry(token.index()).or_default().push(at),
            Op::Receive(token) => needs.extend(sends.get(&token.index()).into_iter().flatten()),
            op => {
                if let Some(x) = op.variable() {
                    needs.extend(writes.get(&x.index()));
                    if op.writes() {
                        needs.extend(reads.remove(&x.index()).into_iter().flatten());
                        writes.insert(x.index(), at);
                    } else {
                        reads.entry(x.index()).or_default().push(at);
                    }
                }
            }
        }
        if sees(event) {
            needs.extend(seen.replace(at));
        }
    }
    let mut wanted = vec![complete; events.len()];
    if let Some(last) = wanted.last_mut() {
        *last = true;
    }
    for at in (0..events.len()).rev().filter(|_| !complete) {
        if wanted[at] {
            before[at].iter().for_each(|&other| wanted[other as usize] = true);
        }
    }
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); events.len()];
    let mut missing = vec![0u32; events.len()];
    let mut ready = BinaryHeap::new();
    for at in (0..events.len()).filter(|&at| wanted[at]) {
        before[at].sort_unstable();
        before[at].dedup();
        missing[at] = before[at].len() as u32;
        before[at].iter().for_each(|&other| after[other as usize].push(at as u32));
        if missing[at] == 0 {
            ready.push(Reverse((events[at], at as u32)));
        }
    }
    let mut order = Vec::with_capacity(events.len());
    while let Some(Reverse((event, at))) = ready.pop() {
        order.push(event);
        for &next in &after[at as usize] {
            missing[next as usize] -= 1;
            if missing[next as usize] == 0 {
                ready.push(Reverse((events[next as usize], next)));
            }
        }
    }
    order
}
