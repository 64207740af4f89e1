//! Where threads could wait for ever, by a filter that is never wrong about what it leaves out.
//!
//! A place at which a thread can wait keeps something from others: the locks that it holds there, and all that it has yet to do. A place at
//! which it waits for what no such place of another thread keeps from it is none, and is left out; then others may be none any more. In most programs nobody waits
//! with a lock in hand, and nothing is left.

use crate::facts::Facts;
use portent_trace::{EventId, LockId, Mode, Op, SemId, ThreadId, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

/// How often places are gone through.
const ROUNDS: usize = 64;
/// How many places, times operations of semaphores, are looked at for what semaphores could count.
const PATIENCE: usize = 1 << 22;

/// The operations of a thread on a semaphore: what each adds.
type Uses = Vec<(EventId, i64)>;

/// The events at which a thread could wait for ever, though nobody waits in a cycle of locks, in order.
pub(super) fn candidates(facts: &Facts<'_>) -> Vec<EventId> {
    let mut places = Places::of(facts);
    for _ in 0..ROUNDS {
        if !places.leave_out() {
            break;
        }
    }
    let trace = facts.trace;
    let left: FxHashSet<LockId> = places.left_held.iter().flatten().map(|(lock, _)| *lock).collect();
    let mut asked: Vec<EventId> = places.of.iter().flatten().copied().collect();
    asked.retain(|&event| match trace.op(event) {
        // Others are in cycles of locks, and in nothing else.
        Op::Acquire(lock, _) => left.contains(&lock),
        // Who is not started waits for nothing.
        Op::Receive(_) => facts.steps.program(trace.thread(event)).first() != Some(&event),
        _ => true,
    });
    asked.sort_unstable();
    asked
}

struct Places<'a, 't> {
    facts: &'a Facts<'t>,
    /// By thread, in program order.
    of: Vec<Vec<EventId>>,
    /// The locks that each thread holds where the trace ends.
    left_held: Vec<Vec<(LockId, Mode)>>,
    uses: FxHashMap<SemId, Vec<(ThreadId, Uses)>>,
}

/// What the places that are left keep from others.
struct Kept {
    locks: FxHashMap<LockId, FxHashSet<(ThreadId, Mode)>>,
    /// The first place of each thread.
    first: Vec<Option<EventId>>,
    /// The least that each thread can have added to each semaphore.
    least: FxHashMap<SemId, Vec<(ThreadId, i64)>>,
}

/// Whether there is something that a thread can wait for at an event.
fn can_wait(trace: &Trace, event: EventId) -> bool {
    match trace.op(event) {
        Op::Acquire(..) => !trace.tries(event),
        Op::Wake(_) => trace.pairing_of_wake(event).is_some(),
        Op::Receive(_) | Op::Wait(_) => true,
        _ => false,
    }
}

impl<'a, 't> Places<'a, 't> {
    fn of(facts: &'a Facts<'t>) -> Self {
        let trace = facts.trace;
        let mut places = Places {
            facts,
            of: vec![Vec::new(); trace.threads()],
            left_held: vec![Vec::new(); trace.threads()],
            uses: FxHashMap::default(),
        };
        for event in trace.events() {
            let held = &mut places.left_held[event.thread.index()];
            match event.op {
                Op::Acquire(lock, mode) => held.push((lock, mode)),
                Op::Release(lock, mode) => held.retain(|one| *one != (lock, mode)),
                Op::Post(semaphore) | Op::Wait(semaphore) => {
                    let added = if matches!(event.op, Op::Post(_)) { 1 } else { -1 };
                    let of = places.uses.entry(semaphore).or_default();
                    match of.iter_mut().find(|(thread, _)| *thread == event.thread) {
                        Some((_, uses)) => uses.push((event.id, added)),
                        None => of.push((event.thread, vec![(event.id, added)])),
                    }
                }
                _ => {}
            }
            if can_wait(trace, event.id) {
                places.of[event.thread.index()].push(event.id);
            }
        }
        places
    }

    /// Leaves out places at which nothing that is kept can be missing; whether there were any.
    fn leave_out(&mut self) -> bool {
        let kept = self.kept();
        let mut of = std::mem::take(&mut self.of);
        let before: usize = of.iter().map(Vec::len).sum();
        of.iter_mut().for_each(|events| events.retain(|&event| self.may_miss(&kept, event)));
        self.of = of;
        before > self.of.iter().map(Vec::len).sum()
    }

    fn kept(&self) -> Kept {
        let facts = self.facts;
        let mut locks: FxHashMap<LockId, FxHashSet<(ThreadId, Mode)>> = FxHashMap::default();
        for (thread, events) in self.of.iter().enumerate() {
            let thread = ThreadId::new(thread);
            let sets: FxHashSet<u32> = events.iter().map(|&event| facts.held_set(event)).collect();
            let held = sets.iter().flat_map(|&set| facts.set(set)).chain(&self.left_held[thread.index()]);
            for &(lock, mode) in held {
                locks.entry(lock).or_default().insert((thread, mode));
            }
        }
        let first = self.of.iter().map(|events| events.first().copied()).collect();
        let mut least = FxHashMap::default();
        let cost = |(_, of): (&SemId, &Vec<(ThreadId, Uses)>)| {
            of.iter().map(|(thread, uses)| uses.len() + self.of[thread.index()].len()).sum::<usize>()
        };
        if self.uses.iter().map(cost).sum::<usize>() <= PATIENCE {
            for (&semaphore, of) in &self.uses {
                let each = of.iter().map(|(thread, uses)| (*thread, least_at(&self.of[thread.index()], uses)));
                least.insert(semaphore, each.collect());
            }
        }
        Kept { locks, first, least }
    }

    /// Whether a thread may find missing what it waits for, wherever the others are.
    fn may_miss(&self, kept: &Kept, event: EventId) -> bool {
        let trace = self.facts.trace;
        let thread = trace.thread(event);
        let stops_before = |other: EventId| kept.first[trace.thread(other).index()].is_some_and(|first| first <= other);
        match trace.op(event) {
            Op::Acquire(lock, mode) => kept.locks.get(&lock).is_some_and(|holders| {
                holders.iter().any(|(holder, held)| *holder != thread && held.conflicts_with(mode))
            }),
            Op::Receive(token) => {
                trace.senders(token).iter().any(|&send| trace.thread(send) != thread && stops_before(send))
            }
            // If the notify has come, the wake-up is lost, and told as that.
            Op::Wake(_) => trace.pairing_of_wake(event).is_some_and(|pairing| {
                let notify = trace.pairings()[pairing.index()].notify;
                trace.thread(notify) != thread && stops_before(notify)
            }),
            Op::Wait(semaphore) => {
                let Some(others) = kept.least.get(&semaphore) else { return true };
                let own = self.uses[&semaphore].iter().find(|(user, _)| *user == thread);
                let own = own.map_or(0, |(_, uses)| share(uses, event));
                let initial = i64::try_from(trace.initial_count(semaphore)).unwrap_or(i64::MAX / 2);
                let others = others.iter().filter(|(other, _)| *other != thread).map(|(_, least)| least);
                initial.saturating_add(own).saturating_add(others.sum::<i64>()) <= 0
            }
            _ => false,
        }
    }
}

/// What a thread has added to a semaphore before an event.
fn share(uses: &Uses, event: EventId) -> i64 {
    uses[..uses.partition_point(|(use_, _)| *use_ < event)].iter().map(|(_, added)| added).sum()
}

/// The least that a thread has added at one of these events, or at its end.
fn least_at(events: &[EventId], uses: &Uses) -> i64 {
    let mut at = events.iter().peekable();
    let (mut now, mut least) = (0, i64::MAX);
    for &(event, added) in uses {
        while at.next_if(|&&place| place <= event).is_some() {
            least = least.min(now);
        }
        now += added;
    }
    if at.next().is_some() {
        least = least.min(now);
    }
    least.min(now)
}
