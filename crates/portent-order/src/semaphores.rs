//! Counting semaphores: what their counts force, wherever the events of each thread stop.
//!
//! What a semaphore counts is a function of the positions of the threads: where it begins, and for each thread the posts less the
//! waits that it has made so far, its *share*. A wait needs a count above zero, a failed try a count of zero. So what the threads could have made
//! of it at best, each between the positions where it can be at that moment, decides whether an event is possible at all; and where
//! the best is just enough, each thread must be where its share is that good. With one thread that posts, that is "the
//! n-th wait comes after the n-th post"; with a semaphore that is used as a lock, "one section after the other".

use portent_trace::{EventId, Op, SemId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};
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

/// What is known of the posts of a trace.
///
/// Some come before a wait in every reordering: that is part of must-order (docs/src/internals/semantics.md §1). And
/// first come, first served, each wait has one that let it through: a set of events that has it with each of its waits, and with a failed try all
/// that came before it, can be taken in observed order.
#[derive(Clone, Debug, Default)]
pub struct Posts {
    of: Vec<Vec<EventId>>,
    /// For each semaphore and thread that uses it, the operations.
    uses: Vec<Vec<(Vec<EventId>, Share)>>,
    forced: FxHashMap<EventId, Vec<EventId>>,
    forcing: FxHashSet<EventId>,
    served: FxHashMap<EventId, EventId>,
}

impl Posts {
    /// Those of a trace.
    pub fn of(trace: &Trace) -> Self {
        let mut posts = Posts::default();
        if trace.semaphores() == 0 {
            return posts;
        }
        posts.of = vec![Vec::new(); trace.semaphores()];
        // For each semaphore and thread, its operations; and how many waits were let through by what was there before.
        let mut uses: Vec<Vec<(usize, Vec<EventId>)>> = vec![Vec::new(); trace.semaphores()];
        let mut waits = vec![0u64; trace.semaphores()];
        for event in trace.events() {
            let (Op::Post(s) | Op::Wait(s)) = event.op else { continue };
            if let Op::Post(_) = event.op {
                posts.of[s.index()].push(event.id);
            } else {
                let before = waits[s.index()].checked_sub(trace.initial_count(s));
                let post = before.and_then(|at| posts.of[s.index()].get(at as usize));
                posts.served.extend(post.map(|&post| (event.id, post)));
                waits[s.index()] += 1;
            }
            let (threads, thread) = (&mut uses[s.index()], event.thread.index());
            match threads.iter_mut().find(|(known, _)| *known == thread) {
                Some((_, events)) => events.push(event.id),
                None => threads.push((thread, vec![event.id])),
            }
        }
        for (s, threads) in uses.iter().enumerate() {
            let initial = i64::try_from(trace.initial_count(SemId::new(s))).unwrap_or(i64::MAX);
            let shares = posts.force(trace, initial, threads);
            posts.uses.push(threads.iter().map(|(_, events)| events.clone()).zip(shares).collect());
        }
        posts
    }

    fn force(&mut self, trace: &Trace, initial: i64, threads: &[(usize, Vec<EventId>)]) -> Vec<Share> {
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
                    self.forcing.extend(&posts);
                    self.forced.insert(wait, posts);
                }
            }
        }
        shares
    }

    /// By how much the operations that have happened, of each thread the first ones, have moved the count of a semaphore.
    pub fn moved(&self, semaphore: SemId, has_happened: impl Fn(EventId) -> bool) -> i64 {
        let of =
            |(events, share): &(Vec<EventId>, Share)| share.at(events.partition_point(|&event| has_happened(event)));
        self.uses.get(semaphore.index()).into_iter().flatten().map(of).sum()
    }

    /// Every post of a semaphore, in observed order.
    pub fn of_semaphore(&self, semaphore: SemId) -> &[EventId] {
        self.of.get(semaphore.index()).map_or(&[], Vec::as_slice)
    }
    /// Posts of other threads that come before a wait in every reordering; of each thread, the last.
    #[inline]
    pub fn forced(&self, wait: EventId) -> &[EventId] {
        self.forced.get(&wait).map_or(&[], Vec::as_slice)
    }
    /// Whether a post is forced by some wait.
    #[inline]
    pub fn is_forced(&self, post: EventId) -> bool {
        self.forcing.contains(&post)
    }
    /// The post that let a wait through, first come, first served; `None` if what the semaphore began with did.
    #[inline]
    pub fn served(&self, wait: EventId) -> Option<EventId> {
        self.served.get(&wait).copied()
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
        assert_eq!(share.no_more_around(3), 3..=7);
    }

    #[test]
    fn the_nth_wait_comes_after_the_nth_post_of_the_only_thread_that_posts() {
        let text = "A|post(s)\nB|semw(s)\nA|post(s)\nC|semw(s)\nA|post(s)\nB|semw(s)\n";
        let trace = Trace::from_std(text).unwrap();
        let posts = Posts::of(&trace);
        let before = |wait: usize| posts.forced(EventId::new(wait)).iter().map(|e| e.index()).collect::<Vec<_>>();
        assert_eq!([before(1), before(3), before(5)], [vec![0], vec![0], vec![2]]);
    }

    #[test]
    fn who_may_be_served_by_either_is_forced_by_neither() {
        let trace = Trace::from_std("A|post(s)\nB|post(s)\nC|semw(s)\nC|semw(s)\n").unwrap();
        let posts = Posts::of(&trace);
        assert!(posts.forced(EventId::new(2)).is_empty());
        assert_eq!(posts.forced(EventId::new(3)).len(), 2);
    }
}
