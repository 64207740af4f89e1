//! Tiny, dense traces for testing engines against brute force.
//!
//! A handful of threads crowd onto very few variables and locks, so that for most goals both answers are common: many
//! reorderings exist and many are ruled out. Every event has a location of its own.

mod world;

use crate::format::{Dialect, StdWriter};
use crate::input::{InputBatch, InputEvent};
use crate::list::EventList;
use crate::lower::Layout;
use crate::names::{Names, ObjectClass};
use crate::trace::Trace;
use world::{BLOCKS, SEMAPHORES, TOKENS, World};

/// What tiny traces are made of: limits, and a switch per feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TinyShape {
    /// What the shape is called in test output.
    pub name: &'static str,
    /// At most this many threads, 2 to 8.
    pub threads: u32,
    /// At most this many kernel events, 2 to 1,000; at least half of them.
    pub events: u32,
    /// Variables, 1 to 8.
    pub variables: u32,
    /// Locks, 0 to 8.
    pub locks: u32,
    /// Mostly locks, deeply nested: for deadlocks.
    pub lock_heavy: bool,
    /// Mostly waiting and notifying: for lost wake-ups.
    pub wait_heavy: bool,
    /// Threads wait without a lock: two events a wait, so that several fit, on one condition.
    pub bare_waits: bool,
    /// Half of the outermost locks taken are the first one: a gate that may keep the others from deadlocking.
    pub gate: bool,
    /// The trace may stop anywhere, with locks held, blocks open and threads asleep.
    pub open_scopes: bool,
    /// Locks are released in any order, not only the last one first.
    pub hand_over_hand: bool,
    /// A held lock is sometimes taken once more.
    pub reentrant: bool,
    /// `acqs` and `rels`.
    pub shared_locks: bool,
    /// `busy`, and `busys` where locks are shared.
    pub busy: bool,
    /// Some threads are forked and joined.
    pub fork_join: bool,
    /// `snd` and `rcv`.
    pub tokens: bool,
    /// `arr` and `dep` of a barrier for two, `cdn` and `lwt`: a quarter of what happens; needs open scopes.
    pub gatherings: bool,
    /// `post`, `semw`, `semf`, and `semi` before them: half of what happens.
    pub semaphores: bool,
    /// `slp`, `ntf`, `nta`, `wak`, `tmo`; needs a lock.
    pub conditions: bool,
    /// `begin` and `end`.
    pub blocks: bool,
    /// `u`.
    pub updates: bool,
    /// Some accesses are atomic.
    pub atomics: bool,
    /// `facq`, `frel`, `fence`.
    pub fences: bool,
    /// `branch`.
    pub branches: bool,
    /// Half of the reads are followed by a `branch`.
    pub branch_heavy: bool,
    /// Accesses carry values, few different ones.
    pub values: bool,
    /// Some of them do not.
    pub forgetful: bool,
}

impl TinyShape {
    /// Accesses only: the base of every other shape.
    pub const PLAIN: TinyShape = TinyShape {
        name: "plain",
        threads: 3,
        events: 12,
        variables: 2,
        locks: 0,
        lock_heavy: false,
        wait_heavy: false,
        bare_waits: false,
        gate: false,
        open_scopes: false,
        hand_over_hand: false,
        reentrant: false,
        shared_locks: false,
        busy: false,
        fork_join: false,
        tokens: false,
        gatherings: false,
        semaphores: false,
        conditions: false,
        blocks: false,
        updates: false,
        atomics: false,
        fences: false,
        branches: false,
        branch_heavy: false,
        values: false,
        forgetful: false,
    };

    /// Every feature at once.
    pub const EVERYTHING: TinyShape = TinyShape {
        name: "everything",
        threads: 4,
        events: 16,
        variables: 2,
        locks: 2,
        lock_heavy: false,
        wait_heavy: false,
        bare_waits: false,
        gate: false,
        open_scopes: true,
        hand_over_hand: true,
        reentrant: true,
        shared_locks: true,
        busy: true,
        fork_join: true,
        tokens: true,
        gatherings: false,
        semaphores: true,
        conditions: true,
        blocks: true,
        updates: true,
        atomics: true,
        fences: false,
        branches: true,
        branch_heavy: false,
        values: true,
        forgetful: false,
    };

    /// Threads that meet at a barrier and a latch, with locks in hand.
    pub const GATHERINGS: TinyShape = TinyShape {
        name: "gatherings",
        gatherings: true,
        threads: 4,
        events: 14,
        locks: 2,
        open_scopes: true,
        shared_locks: true,
        ..TinyShape::PLAIN
    };

    /// The variants that engines are tested on.
    pub fn all() -> impl Iterator<Item = TinyShape> {
        let plain = TinyShape::PLAIN;
        let locks = TinyShape { name: "locks", locks: 2, ..plain.clone() };
        let open = TinyShape { name: "open-scopes", open_scopes: true, ..locks.clone() };
        [
            plain.clone(),
            locks.clone(),
            TinyShape { name: "two-threads", threads: 2, locks: 3, hand_over_hand: true, ..locks.clone() },
            open.clone(),
            TinyShape { name: "hand-over-hand", hand_over_hand: true, locks: 3, ..open.clone() },
            TinyShape { name: "reentrant", reentrant: true, ..open.clone() },
            TinyShape { name: "shared-locks", shared_locks: true, ..open.clone() },
            TinyShape { name: "busy", shared_locks: true, busy: true, locks: 1, ..open.clone() },
            TinyShape { name: "one-lock", locks: 1, variables: 1, ..locks.clone() },
            TinyShape { name: "nests", lock_heavy: true, locks: 3, variables: 1, events: 16, ..locks.clone() },
            TinyShape { name: "nests-of-two", lock_heavy: true, threads: 2, events: 18, locks: 3, ..open.clone() },
            TinyShape { name: "two-nested", lock_heavy: true, locks: 2, variables: 1, events: 16, ..locks.clone() },
            TinyShape { name: "gated", lock_heavy: true, gate: true, locks: 3, events: 18, ..locks.clone() },
            TinyShape { name: "waits", wait_heavy: true, conditions: true, locks: 1, events: 16, ..locks.clone() },
            TinyShape { name: "waits-open", wait_heavy: true, conditions: true, locks: 2, events: 16, ..open.clone() },
            TinyShape {
                name: "bare-waits",
                wait_heavy: true,
                bare_waits: true,
                conditions: true,
                tokens: true,
                locks: 1,
                events: 12,
                ..open.clone()
            },
            TinyShape {
                name: "bare-waits-values",
                wait_heavy: true,
                bare_waits: true,
                conditions: true,
                tokens: true,
                branches: true,
                values: true,
                variables: 1,
                locks: 1,
                events: 12,
                ..open.clone()
            },
            TinyShape {
                name: "nests-forked",
                lock_heavy: true,
                fork_join: true,
                tokens: true,
                events: 16,
                ..open.clone()
            },
            TinyShape {
                name: "nests-shared",
                lock_heavy: true,
                shared_locks: true,
                busy: true,
                hand_over_hand: true,
                threads: 4,
                events: 16,
                ..open.clone()
            },
            TinyShape { name: "fork-join", fork_join: true, threads: 4, events: 14, ..locks.clone() },
            TinyShape { name: "tokens", fork_join: true, tokens: true, ..open.clone() },
            TinyShape { name: "conditions", conditions: true, events: 14, ..locks.clone() },
            TinyShape { name: "conditions-open", conditions: true, locks: 1, variables: 1, ..open.clone() },
            TinyShape { name: "blocks", blocks: true, variables: 1, events: 14, ..open.clone() },
            TinyShape {
                name: "guarded-blocks",
                blocks: true,
                variables: 1,
                locks: 1,
                events: 16,
                threads: 2,
                ..locks.clone()
            },
            TinyShape { name: "atomics", updates: true, atomics: true, values: true, branches: true, ..open.clone() },
            TinyShape { name: "fences", updates: true, atomics: true, fences: true, events: 14, ..open.clone() },
            TinyShape { name: "values", values: true, ..plain.clone() },
            TinyShape { name: "values-locks", values: true, updates: true, variables: 1, events: 14, ..open.clone() },
            TinyShape {
                name: "branches",
                branches: true,
                branch_heavy: true,
                values: true,
                events: 14,
                ..plain.clone()
            },
            TinyShape {
                name: "branches-locks",
                branches: true,
                branch_heavy: true,
                values: true,
                updates: true,
                events: 16,
                ..open.clone()
            },
            TinyShape {
                name: "blocks-values",
                blocks: true,
                values: true,
                updates: true,
                variables: 1,
                events: 14,
                ..open.clone()
            },
            TinyShape {
                name: "blocks-branches",
                blocks: true,
                branches: true,
                branch_heavy: true,
                values: true,
                forgetful: true,
                updates: true,
                events: 16,
                ..plain.clone()
            },
            TinyShape {
                name: "forgetful",
                values: true,
                forgetful: true,
                updates: true,
                fork_join: true,
                tokens: true,
                ..open.clone()
            },
            TinyShape {
                name: "nests-branches",
                lock_heavy: true,
                branches: true,
                branch_heavy: true,
                values: true,
                events: 16,
                ..open.clone()
            },
            TinyShape {
                name: "waits-branches",
                wait_heavy: true,
                conditions: true,
                branches: true,
                branch_heavy: true,
                values: true,
                locks: 1,
                events: 16,
                ..open.clone()
            },
            TinyShape {
                name: "waits-values",
                wait_heavy: true,
                conditions: true,
                values: true,
                locks: 1,
                events: 16,
                ..open.clone()
            },
            TinyShape { name: "semaphores", semaphores: true, ..plain.clone() },
            TinyShape { name: "semaphores-crowd", semaphores: true, threads: 4, variables: 1, ..plain.clone() },
            TinyShape {
                name: "semaphores-blocks",
                semaphores: true,
                blocks: true,
                variables: 1,
                events: 14,
                ..open.clone()
            },
            TinyShape {
                name: "semaphores-nests",
                semaphores: true,
                lock_heavy: true,
                locks: 2,
                events: 16,
                ..open.clone()
            },
            TinyShape {
                name: "semaphores-forked",
                semaphores: true,
                fork_join: true,
                busy: true,
                threads: 4,
                events: 14,
                ..open.clone()
            },
            TinyShape {
                name: "semaphores-waits",
                semaphores: true,
                wait_heavy: true,
                bare_waits: true,
                conditions: true,
                locks: 1,
                variables: 1,
                ..open.clone()
            },
            TinyShape {
                name: "semaphores-values",
                semaphores: true,
                values: true,
                updates: true,
                blocks: true,
                conditions: true,
                lock_heavy: true,
                variables: 1,
                events: 14,
                ..open.clone()
            },
            TinyShape {
                name: "semaphores-branches",
                semaphores: true,
                values: true,
                branches: true,
                branch_heavy: true,
                blocks: true,
                conditions: true,
                variables: 1,
                events: 14,
                ..open.clone()
            },
            TinyShape::EVERYTHING,
        ]
        .into_iter()
    }
}

/// The tiny trace of this shape and seed.
pub fn tiny(seed: u64, shape: &TinyShape) -> Trace {
    let (names, events) = tiny_events(seed, shape);
    match Trace::from_input(&mut EventList::new(names, events)) {
        Ok(trace) => trace,
        Err(error) => unreachable!("tiny trace {seed} of shape {} is not well-formed: {error}", shape.name),
    }
}

/// The same trace as STD text.
pub fn tiny_std(seed: u64, shape: &TinyShape) -> String {
    let (names, events) = tiny_events(seed, shape);
    let mut batch = InputBatch::default();
    events.into_iter().for_each(|event| batch.push(event));
    let mut text = Vec::new();
    let written = StdWriter::new(&mut text, Dialect::Portent, Layout::default()).write(&names, &batch);
    debug_assert!(written.is_ok(), "writing to memory does not fail");
    String::from_utf8_lossy(&text).into_owned()
}

/// The same trace as input events, with their names.
pub fn tiny_events(seed: u64, shape: &TinyShape) -> (Names, Vec<InputEvent>) {
    let mut world = World::new(seed, shape);
    world.run();
    (names(shape), world.events)
}

fn names(shape: &TinyShape) -> Names {
    let mut names = Names::default();
    let mut intern = |class, prefix: &str, count: u32| {
        for i in 0..count {
            // Short ASCII names, a handful of them: none can be refused.
            let _ = names.intern(class, format!("{prefix}{i}").as_bytes());
        }
    };
    intern(ObjectClass::Thread, "T", shape.threads);
    intern(ObjectClass::Variable, "x", shape.variables);
    intern(ObjectClass::Lock, "l", shape.locks);
    if shape.conditions {
        intern(ObjectClass::Condition, "c", shape.locks);
    }
    if shape.semaphores {
        intern(ObjectClass::Semaphore, "s", SEMAPHORES as u32);
    }
    if shape.tokens {
        intern(ObjectClass::Token, "k", TOKENS as u32);
    }
    if shape.gatherings {
        intern(ObjectClass::Barrier, "b", 1);
        intern(ObjectClass::Latch, "f", 1);
    }
    if shape.blocks {
        intern(ObjectClass::Block, "b", BLOCKS);
    }
    names
}
