//! Accesses that only relaxed atomics order: every pair of places, not only the last accesses.
//!
//! A detector that keeps the last access of each thread ([`super::detect`]) says of every variable whether it races, but
//! not where: what comes later at another place replaces what came before. Here nothing is replaced.
//!
//! Let `b` be an access, and `a` an earlier one of another thread. Along that thread, what is ordered before `b` is a
//! beginning of it: a shorter one by happens-before, a longer one with the reads-from of relaxed atomics added. The pairs
//! wanted are those whose `a` lies between the two ends. Both ends only ever move on. So when a thread comes to a place
//! again, only what the longer beginning has gained since is new.
//!
//! State, for variables that two threads access, one of them plainly and one writing:
//! - per thread, its accesses: 20 bytes each, but for those at a place and time that the one before had as well. Nothing is
//!   dropped, so nothing is missed;
//! - per thread, class (plain or atomic, read or write) and place, how far it has looked into each other thread.
//!
//! Time: an access is looked at once by every place of another thread that comes after it, between the two ends only.

use super::clocks::{Clocks, is_weak};
use super::detect::{Unordered, Who};
use portent_trace::{EventId, LocId, Trace, VarId};
use rustc_hash::FxHashMap;

/// An access, and when its thread made it, in both orders.
#[derive(Clone, Copy)]
struct Access {
    event: u32,
    who: Who,
    place: LocId,
    time: u32,
    relaxed_time: u32,
}

/// The accesses of a variable.
#[derive(Default)]
struct Accesses {
    /// In program order.
    by_thread: Vec<(usize, Vec<Access>)>,
    /// How far a thread has looked at a place, and back from there into every other thread.
    looked: FxHashMap<(Who, LocId), Looked>,
}

#[derive(Default)]
struct Looked {
    /// How much the thread had learnt then.
    learnt: u32,
    /// The longer end, in each thread.
    upto: Vec<(usize, u32)>,
}

/// For every pair of places with accesses that happens-before leaves unordered and the reads-from of relaxed atomics orders,
/// one such pair of accesses, and how many were seen; and whether these are all, or it was told to stop.
pub(crate) fn ordered_by_relaxed_atomics(trace: &Trace, stop: &dyn Fn() -> bool) -> (Vec<(Unordered, u64)>, bool) {
    if !(0..trace.len()).any(|event| is_weak(trace.op(EventId::new(event)))) {
        return (Vec::new(), true);
    }
    let mut complete = true;
    let mut variables: Vec<Option<Box<Accesses>>> =
        is_shared(trace).into_iter().map(|is| is.then(Box::default)).collect();
    let mut found: FxHashMap<(LocId, LocId), (Unordered, u64)> = FxHashMap::default();
    let (mut strict, mut relaxed) = (Clocks::new(trace, false), Clocks::new(trace, true));
    // Moves on whenever a thread may have learnt something, or come to another time of its own; 0 is before everything.
    let mut learnt = vec![1u32; trace.threads()];
    for id in (0..trace.len()).map(EventId::new) {
        if id.index() & 0xfff == 0xfff && stop() {
            complete = false;
            break;
        }
        let (op, thread) = (trace.op(id), trace.thread(id));
        let t = thread.index();
        let more = [strict.arrive_at(trace, id, op), relaxed.arrive_at(trace, id, op)];
        learnt[t] += u32::from(more.contains(&true));
        if let Some(accesses) = op.variable().and_then(|x| variables[x.index()].as_mut()) {
            let (clock, relaxed_clock) = (strict.of(thread), relaxed.of(thread));
            let (who, place) = (Who::new(thread, op), trace.event(id).loc);
            let access =
                Access { event: id.index() as u32, who, place, time: clock[t], relaxed_time: relaxed_clock[t] };
            accesses.look_back(access, learnt[t], clock, relaxed_clock, |first| {
                let race = Unordered { first: EventId::new(first.event as usize), second: id, relaxed_only: true };
                found.entry((first.place.min(place), first.place.max(place))).or_insert((race, 0)).1 += 1;
            });
            accesses.add(access);
        }
        let more = [strict.leave_at(trace, id, op), relaxed.leave_at(trace, id, op)];
        learnt[t] += u32::from(more.contains(&true));
    }
    let mut found: Vec<(Unordered, u64)> = found.into_values().collect();
    found.sort_unstable_by_key(|(race, _)| (race.second, race.first));
    (found, complete)
}

impl Accesses {
    fn add(&mut self, access: Access) {
        let thread = access.who.thread();
        let same = |last: &Access| {
            (last.who, last.place) == (access.who, access.place)
                && (last.time, last.relaxed_time) == (access.time, access.relaxed_time)
        };
        match self.by_thread.iter_mut().find(|(t, _)| *t == thread) {
            Some((_, accesses)) if accesses.last().is_some_and(same) => {}
            Some((_, accesses)) => accesses.push(access),
            None => self.by_thread.push((thread, vec![access])),
        }
    }

    /// The accesses of others that an access comes after by relaxed atomics only, but for those that were seen from its place.
    fn look_back(
        &mut self,
        access: Access,
        learnt: u32,
        clock: &[u32],
        relaxed: &[u32],
        mut report: impl FnMut(&Access),
    ) {
        let looked = self.looked.entry((access.who, access.place)).or_default();
        if std::mem::replace(&mut looked.learnt, learnt) == learnt {
            return;
        }
        for (thread, accesses) in self.by_thread.iter().filter(|(t, _)| clock[*t] < relaxed[*t]) {
            let known = looked.upto.iter_mut().find(|(t, _)| t == thread);
            let upto = relaxed[*thread];
            let seen = match known {
                Some((_, seen)) => std::mem::replace(seen, upto),
                None => {
                    looked.upto.push((*thread, upto));
                    0
                }
            };
            if seen < upto {
                let new = accesses.partition_point(|a| a.relaxed_time <= seen || a.time <= clock[*thread]);
                let between = accesses[new..].iter().take_while(|a| a.relaxed_time <= upto);
                between.filter(|a| a.who.races_with(access.who)).for_each(&mut report);
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
