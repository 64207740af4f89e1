//! What a lattice walks over: for each thread, the steps that matter, each with what it needs and what it does.
//!
//! Events that need nothing and change nothing that anybody cares about are no steps: they happen as soon as they can,
//! which is when the step before them has, unless its thread has stopped there.

use portent_spec::Letter;
use portent_trace::{EventId, Mode, Reach};

/// A write of a variable among its writes: 0 is the initial value.
pub(super) type Ordinal = u32;
/// Nobody will read what the variable holds, or nobody may: a changed update wrote it.
pub(super) const UNREAD: Ordinal = u32::MAX;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing but what the monitor sees, or waiting for what it needs.
    Pass,
    /// Reads a variable, which must hold what that write left.
    Read {
        variable: u32,
        from: Ordinal,
    },
    /// Writes a variable.
    Write {
        variable: u32,
        ordinal: Ordinal,
    },
    /// Reads, then writes.
    Update {
        variable: u32,
        from: Ordinal,
        ordinal: Ordinal,
    },
    Acquire {
        lock: u32,
        mode: Mode,
    },
    Release {
        lock: u32,
        mode: Mode,
    },
    /// Sees the lock held by another thread.
    Busy {
        lock: u32,
        mode: Mode,
    },
    /// Starts a wait on a condition. A thread's waits on one share a slot, as one ends before the next begins; one that never ends has its own.
    Sleep {
        slot: u32,
    },
    /// Wakes one who sleeps on it, or all.
    Notify {
        condition: u32,
        reach: Reach,
    },
    /// Goes on, if a notify can have woken it.
    Wake {
        slot: u32,
    },
    /// Goes on by itself, if no notify must have woken it.
    Leave {
        slot: u32,
    },
    /// Adds to a semaphore.
    Post {
        semaphore: u32,
    },
    /// Takes from it, if there is something.
    Wait {
        semaphore: u32,
    },
    /// Sees that there is nothing.
    Empty {
        semaphore: u32,
    },
}

/// A move: a step of a thread that matters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) event: EventId,
    pub(super) action: Action,
    /// What the monitor sees.
    pub(super) letter: Option<Letter>,
    /// What it sees if this is a read that sees another write, and the last step of its thread; `None` if it cannot be.
    pub(super) changed: Option<Letter>,
    /// Whether running it as soon as it can loses nothing (docs/src/internals/semantics.md §4).
    pub(super) at_once: bool,
    /// What must have happened: a range of [`Plan::needs`].
    pub(super) needs: (u32, u32),
    /// Events before it that are no steps, where the way must tell them: while events arrive.
    pub(super) before: u32,
}

/// Bits of a way's code that say who runs; those above say how many events that are no steps come first.
pub(super) const WHO: u32 = 12;

/// A thread's number among those of the plan, and how many of its steps must be done: up to the event that is needed, or up to
/// the step before it if it is none. It is never a changed read.
pub(super) type Need = (u32, u32);

/// What a semaphore counts, as a function of where the threads stand.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    pub(super) initial: i64,
    /// By thread that uses it: where it stands after each of its posts and waits, and by how much they have moved the count.
    pub(super) shares: Vec<(u32, Vec<(u32, i64)>)>,
}

impl Counter {
    /// A thread moves the count by its step at a position.
    pub(super) fn add(&mut self, thread: u32, position: u32, by: i64) {
        let share = match self.shares.iter().position(|(known, _)| *known == thread) {
            Some(at) => &mut self.shares[at].1,
            None => {
                self.shares.push((thread, Vec::new()));
                let last = self.shares.len() - 1;
                &mut self.shares[last].1
            }
        };
        let before = share.last().map_or(0, |(_, moved)| *moved);
        share.push((position + 1, before + by));
    }
    /// The count with the threads at these positions.
    pub(super) fn count(&self, positions: &[u32]) -> i64 {
        let moved = |(thread, share): &(u32, Vec<(u32, i64)>)| {
            let done = share.partition_point(|(position, _)| *position <= positions[*thread as usize]);
            done.checked_sub(1).map_or(0, |last| share[last].1)
        };
        self.initial + self.shares.iter().map(moved).sum::<i64>()
    }
    /// Forgets what happened before these positions.
    pub(super) fn forget(&mut self, least: &[u32]) {
        for (thread, share) in &mut self.shares {
            let done = share.partition_point(|(position, _)| *position <= least[*thread as usize]);
            share.drain(..done.saturating_sub(1));
        }
    }
}

/// All that a lattice needs to know of a trace.
#[derive(Default)]
pub(super) struct Plan {
    /// Moves by thread; those before `base` are forgotten.
    pub(super) moves: Vec<Vec<Move>>,
    pub(super) base: Vec<u32>,
    pub(super) needs: Vec<Need>,
    /// For each slot of waits, the condition.
    pub(super) slots: Vec<u32>,
    /// How many conditions there are.
    pub(super) conditions: u32,
    /// For each variable and write: the last step of each thread that reads it.
    pub(super) readers: Vec<Vec<Vec<Need>>>,
    /// For each thread and position, the set of locks held: a number in `sets`.
    pub(super) held: Vec<Vec<u32>>,
    pub(super) sets: Vec<Vec<(u32, Mode)>>,
    /// For each thread, whether some step of it may be a changed read.
    pub(super) stops: Vec<bool>,
    /// Locks that some failed try names.
    pub(super) tried: Vec<bool>,
    pub(super) counters: Vec<Counter>,
    /// For each variable, whether the future is not known: what it holds must be remembered.
    pub(super) open_ended: bool,
}

impl Plan {
    pub(super) fn threads(&self) -> usize {
        self.moves.len()
    }
    /// How many threads can stop at a changed read.
    pub(super) fn stopping(&self) -> usize {
        self.stops.iter().filter(|stops| **stops).count()
    }
    /// For how many threads a cut remembers that they have stopped: none, if none can.
    pub(super) fn room_for_stops(&self) -> usize {
        if self.stops.contains(&true) { self.stops.len() } else { 0 }
    }
    /// The step of a thread at a position.
    #[inline]
    pub(super) fn step(&self, thread: usize, position: u32) -> Option<&Move> {
        self.moves[thread].get((position - self.base[thread]) as usize)
    }
    /// How a way tells that a thread made a step.
    #[inline]
    pub(super) fn code(&self, thread: usize, step: &Move) -> u32 {
        thread as u32 | step.before << WHO
    }
    /// How many steps a thread has.
    #[inline]
    pub(super) fn end(&self, thread: usize) -> u32 {
        self.base[thread] + self.moves[thread].len() as u32
    }
    #[inline]
    pub(super) fn held(&self, thread: usize, position: u32) -> &[(u32, Mode)] {
        &self.sets[self.set(thread, position) as usize]
    }
    /// The number of the set of locks that a thread holds at a position.
    #[inline]
    pub(super) fn set(&self, thread: usize, position: u32) -> u32 {
        self.held[thread][(position - self.base[thread]) as usize]
    }
    #[inline]
    pub(super) fn needs(&self, step: &Move) -> &[Need] {
        &self.needs[step.needs.0 as usize..step.needs.1 as usize]
    }
}
