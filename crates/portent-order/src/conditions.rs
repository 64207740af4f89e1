//! Conditions: what is known of the waits of a trace, whoever wakes whom.
//!
//! A notify wakes any who sleeps, so hardly anything is fixed ([`Sleepers`]). But each wait of a thread takes a notify of another
//! thread while it lasts, and its waits last one after the other: where only one other thread ever notifies, the
//! n-th wake of a thread comes after the n-th notify.

use portent_trace::{CondId, EventId, Op, Reach, Sleepers, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known of the waits of a trace.
#[derive(Clone, Debug, Default)]
pub struct Naps {
    /// For each condition, what is done to it, in observed order.
    of: Vec<Vec<EventId>>,
    /// For each condition, after how many of these nobody sleeps.
    quiet: Vec<Vec<usize>>,
    /// For each condition and thread, which of these are its.
    threads: Vec<Vec<(ThreadId, Vec<usize>)>>,
    /// For each wake, its sleep.
    slept: FxHashMap<EventId, EventId>,
    forced: FxHashMap<EventId, EventId>,
    forcing: FxHashSet<EventId>,
    only: FxHashMap<EventId, EventId>,
    /// For each condition, whether only one thread ever sleeps on it, and always wakes.
    alone: Vec<bool>,
}

impl Naps {
    /// Those of a trace.
    pub fn of(trace: &Trace) -> Self {
        let mut naps = Naps::default();
        if trace.conditions() == 0 {
            return naps;
        }
        naps.of = vec![Vec::new(); trace.conditions()];
        let mut asleep = vec![None; trace.threads()];
        for event in trace.events() {
            let (Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c)) = event.op else { continue };
            naps.of[c.index()].push(event.id);
            match event.op {
                Op::Sleep(_) => asleep[event.thread.index()] = Some(event.id),
                Op::Wake(_) => naps.slept.extend(asleep[event.thread.index()].take().map(|sleep| (event.id, sleep))),
                _ => {}
            }
        }
        let all = std::mem::take(&mut naps.of);
        for events in &all {
            naps.note(trace, events);
        }
        naps.of = all;
        naps
    }

    /// What is known of one condition, from all that is done to it.
    fn note(&mut self, trace: &Trace, events: &[EventId]) {
        let (mut state, mut quiet) = (Sleepers::default(), vec![0]);
        for (at, &event) in events.iter().enumerate() {
            self.apply(trace, &mut state, event);
            if state.is_empty() {
                quiet.push(at + 1);
            }
        }
        self.quiet.push(quiet);
        self.threads.push(by_thread(events.iter().enumerate().map(|(at, &event)| (trace.thread(event), at))));
        let of = |is: fn(Op) -> bool| events.iter().copied().filter(move |&event| is(trace.op(event)));
        let sleeps: Vec<EventId> = of(|op| matches!(op, Op::Sleep(_))).collect();
        let wakes: Vec<EventId> = of(|op| matches!(op, Op::Wake(_))).collect();
        let notifies = by_thread(of(|op| matches!(op, Op::Notify(..))).map(|notify| (trace.thread(notify), notify)));
        let first = sleeps.first().map(|&sleep| trace.thread(sleep));
        let one = sleeps.iter().all(|&sleep| Some(trace.thread(sleep)) == first);
        self.alone.push(one && sleeps.len() == wakes.len());
        let mut woken: FxHashMap<usize, usize> = FxHashMap::default();
        for wake in wakes.into_iter().filter(|&wake| trace.pairing_of_wake(wake).is_some()) {
            let thread = trace.thread(wake);
            let number = woken.entry(thread.index()).or_default();
            *number += 1;
            let mut others = notifies.iter().filter(|(notifier, _)| *notifier != thread).map(|(_, list)| list);
            let (Some(list), None) = (others.next(), others.next()) else { continue };
            if let [only] = list[..] {
                self.only.insert(wake, only);
            }
            if let Some(&notify) = list.get(*number - 1) {
                self.forced.insert(wake, notify);
                self.forcing.insert(notify);
            }
        }
    }

    /// Lets an event happen to those who sleep on its condition.
    fn apply(&self, trace: &Trace, state: &mut Sleepers<EventId>, event: EventId) {
        let slept = || self.slept.get(&event).copied();
        match trace.op(event) {
            Op::Sleep(_) => state.sleep(event),
            Op::Notify(_, Reach::One) => state.notify_one(),
            Op::Notify(_, Reach::All) => state.notify_all(),
            Op::Wake(_) if trace.pairing_of_wake(event).is_some() => slept().into_iter().for_each(|s| state.wake(s)),
            Op::Wake(_) => slept().into_iter().for_each(|s| state.leave(s)),
            _ => {}
        }
    }

    /// Who sleeps on a condition after the events that have happened, of each thread the first ones, in observed order.
    pub fn asleep(
        &self,
        trace: &Trace,
        condition: CondId,
        has_happened: impl Fn(EventId) -> bool,
    ) -> Sleepers<EventId> {
        let mut state = Sleepers::default();
        let Some(events) = self.of.get(condition.index()) else { return state };
        let (mut missing, mut end) = (events.len(), 0);
        for (_, places) in &self.threads[condition.index()] {
            let done = places.partition_point(|&at| has_happened(events[at]));
            missing = places.get(done).map_or(missing, |&at| missing.min(at));
            end = done.checked_sub(1).map_or(end, |last| end.max(places[last] + 1));
        }
        // From the last moment on at which nobody slept and up to which everything has happened.
        let quiet = &self.quiet[condition.index()];
        let from = quiet[quiet.partition_point(|&at| at <= missing) - 1];
        for &event in events[..end].iter().skip(from).filter(|&&event| has_happened(event)) {
            self.apply(trace, &mut state, event);
        }
        state
    }

    /// What is done to a condition, in observed order.
    pub fn of_condition(&self, condition: CondId) -> &[EventId] {
        self.of.get(condition.index()).map_or(&[], Vec::as_slice)
    }
    /// The sleep that a wake ends.
    #[inline]
    pub fn slept(&self, wake: EventId) -> Option<EventId> {
        self.slept.get(&wake).copied()
    }
    /// A notify that comes before a wake in every reordering.
    #[inline]
    pub fn forced(&self, wake: EventId) -> Option<EventId> {
        self.forced.get(&wake).copied()
    }
    /// Whether a notify is forced by some wake.
    #[inline]
    pub fn is_forced(&self, notify: EventId) -> bool {
        self.forcing.contains(&notify)
    }
    /// The notify of a wake, if no other thread has another.
    #[inline]
    pub fn only(&self, wake: EventId) -> Option<EventId> {
        self.only.get(&wake).copied()
    }
    /// Whether only one thread ever sleeps on a condition, and always wakes: who sleeps there is woken by any notify.
    pub fn is_alone(&self, condition: CondId) -> bool {
        self.alone.get(condition.index()).copied().unwrap_or(false)
    }
}

fn by_thread<T>(of: impl Iterator<Item = (ThreadId, T)>) -> Vec<(ThreadId, Vec<T>)> {
    let mut lists: Vec<(ThreadId, Vec<T>)> = Vec::new();
    for (thread, one) in of {
        match lists.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, list)) => list.push(one),
            None => lists.push((thread, vec![one])),
        }
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_wake_comes_after_the_nth_notify_of_the_only_thread_that_notifies() {
        let text = "T|slp(c)\nU|ntf(c)\nT|wak(c)\nT|slp(c)\nU|ntf(c)\nT|wak(c)\nV|w(x)\n";
        let trace = Trace::from_std(text).unwrap();
        let naps = Naps::of(&trace);
        assert_eq!([2, 5].map(|wake| naps.forced(EventId::new(wake)).unwrap().index()), [1, 4]);
        let two = Trace::from_std(&text.replace("V|w(x)", "V|nta(c)")).unwrap();
        assert_eq!(Naps::of(&two).forced(EventId::new(2)), None);
    }

    #[test]
    fn who_sleeps_is_a_question_of_what_has_happened() {
        let text = "T|slp(c)\nU|ntf(c)\nT|wak(c)\nT|slp(c)\nV|slp(c)\nU|ntf(c)\nT|wak(c)\nV|tmo(c)\n";
        let trace = Trace::from_std(text).unwrap();
        let naps = Naps::of(&trace);
        let asleep = |upto: usize| naps.asleep(&trace, CondId::new(0), |event| event.index() < upto);
        assert!(asleep(3).is_empty() && asleep(8).is_empty());
        let both = asleep(6);
        assert!(both.can_wake(EventId::new(3)) && both.can_wake(EventId::new(4)));
        assert!(asleep(7).can_leave(EventId::new(4)));
    }
}
