//! Counting semaphores: what their counts force, wherever the events of each thread stop.
//!
//! What a semaphore counts is a function of the positions of the threads: where it begins, and for each thread the posts less the
//! waits that it has made so far, its *share*. A wait needs a count above zero, a failed try a count of zero. So what the threads could have made
//! of it at best, each between the positions where it can be at that moment, decides whether an event is possible at all; and where
//! the best is just enough, each thread must be where its share is that good. With one thread that posts, that is "the
//! n-th wait comes after the n-th post"; with a semaphore that is used as a lock, "one section after the other".

use portent_trace::{EventId, Op, SemId, Trace};
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

/// How what one thread has done to a semaphore moves its count: after each of its operations, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// Posts less waits, after so many of the operations.
    after: Vec<i64>,
    /// The largest in each stretch of two, of four, of eight, and so on.
    most: Vec<Vec<i64>>,
}

impl Share {
    /// Of operations that each add that much.
    pub(crate) fn of(steps: impl Iterator<Item = i64>) -> Self {
        let mut after = vec![0];
        let mut now = 0;
        after.extend(steps.map(|step| {
            now += step;
            now
        }));
        let mut most: Vec<Vec<i64>> = Vec::new();
        let mut width = 1;
        while 2 * width <= after.len() {
            let row = most.last().unwrap_or(&after);
            most.push((0..=after.len() - 2 * width).map(|at| row[at].max(row[at + width])).collect());
            width *= 2;
        }
        Share { after, most }
    }
    /// After so many operations.
    pub(crate) fn at(&self, done: usize) -> i64 {
        self.after[done]
    }
    /// The largest after any of so many.
    pub(crate) fn most(&self, done: &RangeInclusive<usize>) -> i64 {
        let (first, last) = (*done.start(), *done.end());
        debug_assert!(first <= last && last < self.after.len(), "positions of the thread");
        let level = (last + 1 - first).ilog2() as usize;
        match level.checked_sub(1) {
            None => self.after[first],
            Some(row) => self.most[row][first].max(self.most[row][last + 1 - (1 << level)]),
        }
    }
    /// The part of a range outside of which it is less than that.
    pub(crate) fn at_least(&self, needed: i64, done: &RangeInclusive<usize>) -> RangeInclusive<usize> {
        let (from, to) = (*done.start(), *done.end());
        let first = self.first_from(from, to, needed).unwrap_or(to);
        let last = self.last_upto(from, to, needed).unwrap_or(from);
        first..=last
    }
    /// The stretch around a place in which it is never more than there.
    pub(crate) fn no_more_around(&self, done: usize) -> RangeInclusive<usize> {
        let more = self.after[done] + 1;
        let end = self.after.len() - 1;
        let first = self.last_upto(0, done, more).map_or(0, |at| at + 1);
        let last = self.first_from(done, end, more).map_or(end, |at| at - 1);
        first..=last
    }
    /// The first place of a stretch where it is at least that.
    fn first_from(&self, from: usize, to: usize, needed: i64) -> Option<usize> {
        let (mut low, mut high) = (from, to + 1);
        while low < high {
            let middle = (low + high) / 2;
            if self.most(&(from..=middle)) >= needed {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(low).filter(|&at| at <= to)
    }
    /// The last one.
    fn last_upto(&self, from: usize, to: usize, needed: i64) -> Option<usize> {
        // How many places of the stretch, from its end on, are too small.
        let (mut low, mut high) = (0, to + 1 - from);
        while low < high {
            let middle = (low + high) / 2;
            if self.most(&(to - middle..=to)) >= needed {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        (low < to + 1 - from).then(|| to - low)
    }
}

/// Posts that come before a wait in every reordering, by wait: must-order (docs/src/internals/semantics.md §1).
#[derive(Clone, Debug, Default)]
pub struct ForcedPosts {
    before: FxHashMap<EventId, Vec<EventId>>,
}

impl ForcedPosts {
    /// Those of a trace.
    pub fn of(trace: &Trace) -> Self {
        let mut forced = ForcedPosts::default();
        if trace.semaphores() == 0 {
            return forced;
        }
        // For each semaphore and thread, its operations.
        let mut uses: Vec<Vec<(usize, Vec<EventId>)>> = vec![Vec::new(); trace.semaphores()];
        for event in trace.events() {
            if let Op::Post(s) | Op::Wait(s) = event.op {
                let (threads, thread) = (&mut uses[s.index()], event.thread.index());
                match threads.iter_mut().find(|(known, _)| *known == thread) {
                    Some((_, events)) => events.push(event.id),
                    None => threads.push((thread, vec![event.id])),
                }
            }
        }
        for (s, threads) in uses.iter().enumerate() {
            let initial = i64::try_from(trace.initial_count(SemId::new(s))).unwrap_or(i64::MAX);
            forced.add(trace, initial, threads);
        }
        forced
    }

    fn add(&mut self, trace: &Trace, initial: i64, threads: &[(usize, Vec<EventId>)]) {
        let step = |&event: &EventId| if matches!(trace.op(event), Op::Post(_)) { 1 } else { -1 };
        let shares: Vec<Share> = threads.iter().map(|(_, events)| Share::of(events.iter().map(step))).collect();
        let whole = |i: usize| 0..=threads[i].1.len();
        let best: Vec<i64> = shares.iter().enumerate().map(|(i, share)| share.most(&whole(i))).collect();
        let all: i64 = best.iter().sum();
        for (i, (_, events)) in threads.iter().enumerate() {
            let waits = events.iter().enumerate().filter(|(_, event)| matches!(trace.op(**event), Op::Wait(_)));
            for (done, &wait) in waits {
                // What is left if every other thread is where its share is largest.
                let slack = initial.saturating_add(shares[i].at(done) + all - best[i] - 1);
                let mut posts = Vec::new();
                for (j, (_, others)) in threads.iter().enumerate().filter(|(j, _)| *j != i) {
                    if best[j] > slack {
                        let first = *shares[j].at_least(best[j] - slack, &whole(j)).start();
                        posts.extend(first.checked_sub(1).map(|at| others[at]));
                    }
                }
                if !posts.is_empty() {
                    self.before.insert(wait, posts);
                }
            }
        }
    }

    /// Posts of other threads that come before a wait in every reordering; of each thread, the last.
    #[inline]
    pub fn before(&self, wait: EventId) -> &[EventId] {
        self.before.get(&wait).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_share_of_any_stretch_is_found() {
        let share = Share::of([1, 1, -1, -1, -1, 1, 1, 1, -1].into_iter());
        let plain = |from: usize, to: usize| (from..=to).map(|at| share.at(at)).max().unwrap();
        for from in 0..10 {
            for to in from..10 {
                assert_eq!(share.most(&(from..=to)), plain(from, to), "{from} to {to}");
            }
        }
        assert_eq!(share.at_least(1, &(3..=9)), 3..=9);
        assert_eq!(share.at_least(1, &(4..=7)), 7..=7);
        assert_eq!(share.no_more_around(3), 3..=6);
    }

    #[test]
    fn the_nth_wait_comes_after_the_nth_post_of_the_only_thread_that_posts() {
        let text = "A|post(s)\nB|semw(s)\nA|post(s)\nC|semw(s)\nA|post(s)\nB|semw(s)\n";
        let trace = Trace::from_std(text).unwrap();
        let forced = ForcedPosts::of(&trace);
        let before = |wait: usize| forced.before(EventId::new(wait)).iter().map(|e| e.index()).collect::<Vec<_>>();
        assert_eq!([before(1), before(3), before(5)], [vec![0], vec![0], vec![2]]);
    }

    #[test]
    fn who_may_be_served_by_either_is_forced_by_neither() {
        let trace = Trace::from_std("A|post(s)\nB|post(s)\nC|semw(s)\nC|semw(s)\n").unwrap();
        let forced = ForcedPosts::of(&trace);
        assert!(forced.before(EventId::new(2)).is_empty());
        assert_eq!(forced.before(EventId::new(3)).len(), 2);
    }
}
