//! Accesses that only relaxed atomics order: every pair of places, not only the last accesses.
//!
//! A detector that keeps the last access of each thread ([`super::detect`]) says of every variable whether it races, but
//! not where: what comes later at another place replaces what came before. Here each place of each thread keeps its own.
//!
//! Let `b` be an access, and `a` an earlier one of another thread. Along that thread, what is ordered before `b` is a
//! beginning of it, a shorter one by happens-before, a longer one with the reads-from of relaxed atomics added. The pairs
//! wanted are those whose `a` lies between the two ends. So the accesses of one thread at one place, with their times in
//! both orders, are enough, and the first of them past the shorter end tells whether there is any.
//!
//! State, for variables that two threads access, one of them plainly and one writing: per thread, class (plain or atomic,
//! read or write) and place, the accesses at different times, 12 bytes each: less than the trace itself. Nothing is ever
//! dropped, so nothing is missed. A place that is come to again at the same time as before costs a look-up.

use super::clocks::{Clocks, is_weak};
use super::detect::{Unordered, Who};
use portent_trace::{EventId, LocId, Trace, VarId};
use rustc_hash::FxHashMap;

/// An access, and when its thread made it, in both orders.
#[derive(Clone, Copy)]
struct Access {
    event: u32,
    time: u32,
    relaxed_time: u32,
}

/// The accesses of a variable by one thread, in one way, at one place; the first at each time.
struct Line {
    who: Who,
    accesses: Vec<Access>,
    /// How much its thread had learnt at the last of them.
    learnt: u32,
}

/// The lines of a variable: of each thread that accessed it, and by thread, class and place.
#[derive(Default)]
struct Lines {
    by_thread: Vec<(usize, Vec<u32>)>,
    lines: Vec<Line>,
    known: FxHashMap<(Who, LocId), u32>,
}

/// Reports pairs of accesses that happens-before leaves unordered and the reads-from of relaxed atomics orders: for every pair
/// of places that has some, at least one.
pub(crate) fn ordered_by_relaxed_atomics(trace: &Trace, mut report: impl FnMut(Unordered)) {
    if !(0..trace.len()).any(|event| is_weak(trace.op(EventId::new(event)))) {
        return;
    }
    let mut variables: Vec<Option<Box<Lines>>> = is_shared(trace).into_iter().map(|is| is.then(Box::default)).collect();
    let (mut strict, mut relaxed) = (Clocks::new(trace, false), Clocks::new(trace, true));
    // Moves on whenever a thread may have learnt something, or come to another time of its own.
    let mut learnt = vec![0u32; trace.threads()];
    for id in (0..trace.len()).map(EventId::new) {
        let (op, thread) = (trace.op(id), trace.thread(id));
        let t = thread.index();
        let more = [strict.arrive_at(trace, id, op), relaxed.arrive_at(trace, id, op)];
        learnt[t] += u32::from(more.contains(&true));
        if let Some(lines) = op.variable().and_then(|x| variables[x.index()].as_mut()) {
            let (clock, relaxed_clock) = (strict.of(thread), relaxed.of(thread));
            let access = Access { event: id.index() as u32, time: clock[t], relaxed_time: relaxed_clock[t] };
            if lines.add(Who::new(thread, op), trace.event(id).loc, access, learnt[t]) {
                lines.look_back(Who::new(thread, op), id, clock, relaxed_clock, &mut report);
            }
        }
        let more = [strict.leave_at(trace, id, op), relaxed.leave_at(trace, id, op)];
        learnt[t] += u32::from(more.contains(&true));
    }
}

impl Lines {
    /// Adds an access; `false` if its line has one by a thread that knew the same: what the one raced with, the other does.
    fn add(&mut self, who: Who, place: LocId, access: Access, learnt: u32) -> bool {
        let next = self.lines.len() as u32;
        let line = *self.known.entry((who, place)).or_insert(next);
        if line == next {
            self.lines.push(Line { who, accesses: vec![access], learnt });
            match self.by_thread.iter_mut().find(|(thread, _)| *thread == who.thread()) {
                Some((_, lines)) => lines.push(line),
                None => self.by_thread.push((who.thread(), vec![line])),
            }
            return true;
        }
        let line = &mut self.lines[line as usize];
        let same = |last: &Access| last.time == access.time && last.relaxed_time == access.relaxed_time;
        if !line.accesses.last().is_some_and(same) {
            line.accesses.push(access);
        }
        std::mem::replace(&mut line.learnt, learnt) != learnt
    }

    /// Reports the accesses of others that an access comes after by relaxed atomics only, one for each line.
    fn look_back(&self, who: Who, event: EventId, clock: &[u32], relaxed: &[u32], report: &mut impl FnMut(Unordered)) {
        for (thread, lines) in self.by_thread.iter().filter(|(t, _)| clock[*t] < relaxed[*t]) {
            let (after, upto) = (clock[*thread], relaxed[*thread]);
            for line in lines.iter().map(|&line| &self.lines[line as usize]).filter(|line| line.who.races_with(who)) {
                let first = line.accesses.partition_point(|access| access.time <= after);
                if let Some(access) = line.accesses.get(first).filter(|access| access.relaxed_time <= upto) {
                    report(Unordered { first: EventId::new(access.event as usize), second: event, relaxed_only: true });
                }
            }
        }
    }
}

/// Which variables have accesses that could be such a pair.
fn is_shared(trace: &Trace) -> Vec<bool> {
    #[derive(Clone, Default)]
    struct Seen {
        by: Option<usize>,
        by_others: bool,
        written: bool,
        plain: bool,
    }
    let mut seen = vec![Seen::default(); trace.variables()];
    for event in (0..trace.len()).map(EventId::new) {
        let op = trace.op(event);
        let Some(x) = op.variable().map(VarId::index) else { continue };
        let thread = trace.thread(event).index();
        let seen = &mut seen[x];
        seen.by_others |= *seen.by.get_or_insert(thread) != thread;
        seen.written |= op.writes();
        seen.plain |= !op.is_atomic();
    }
    seen.into_iter().map(|seen| seen.by_others && seen.written && seen.plain).collect()
}
