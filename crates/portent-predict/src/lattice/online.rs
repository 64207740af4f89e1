//! The lattice while events arrive: levels are finished as soon as they can be, and what is behind them is forgotten.
//!
//! A level is finished only when the next event of every live thread is known; a thread is live from the moment the
//! source knows its name. Nothing is sliced, as what the future needs is not known: what every variable holds is kept
//! for ever (an atomic set that looks complete may have another read: docs/src/internals/semantics.md §6), and every event that could constrain
//! another is a step. Who stops at a changed read ([`super::state`]) is waited for no longer. What cannot be followed: an `ntf` that turns out to be a `wai`'s, and threads that begin late without a
//! fork, which should have been there from the start; the answer is then incomplete.

use super::explore::Explorer;
use super::plan::{Action, Counter, Move, Plan, WHO};
use super::slots::Slots;
use super::{Bounds, Explored};
use portent_order::{Model, ReadRule, Recorded, Schedule};
use portent_spec::Monitor;
use portent_trace::{Batch, Event, EventId, EventSource, Mode, ObjectClass, Op, SemId, ThreadId, TraceError};
use rustc_hash::{FxHashMap, FxHashSet};

/// What following a source gave.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// The numbers; ways to break the property are in `broken`.
    pub explored: Explored,
    /// For each event that can break the property, a schedule, the least deviation first.
    pub broken: Vec<(Option<EventId>, Schedule)>,
    /// Steps that were held at the same time, at most.
    pub most_steps: usize,
}

/// Follows a source to its end.
pub fn follow(
    source: &mut dyn EventSource,
    monitor: &mut dyn Monitor,
    bounds: &Bounds,
) -> Result<Followed, TraceError> {
    let mut follower = Follower::new(bounds.model);
    let mut explorer = Explorer::new(&follower.plan, monitor, bounds.width);
    let mut batch = Batch::default();
    let mut followed = Followed::default();
    loop {
        let more = source.next_batch(&mut batch)?;
        let known = source.names().count(ObjectClass::Thread);
        follower.take(&batch, known, monitor);
        explorer.make_room(&follower.plan, monitor.words());
        followed.most_steps = followed.most_steps.max(follower.plan.moves.iter().map(Vec::len).sum());
        let complete_ends = !more && monitor.cares_about_end();
        while !explorer.is_done() {
            let plan = &follower.plan;
            let is_known = |t: usize, position: u32| !more || plan.step(t, position).is_some();
            if !explorer.can_go_on(plan, &is_known) {
                break;
            }
            explorer.advance(plan, monitor, complete_ends);
            follower.started = true;
        }
        follower.forget(&explorer.behind(follower.plan.threads()));
        if !more {
            break;
        }
    }
    let mut violations: Vec<_> = explorer.violations.values().copied().collect();
    violations.sort_by_key(|violation| (violation.cost, violation.event.is_none(), violation.event));
    for violation in violations {
        let mut schedule = Schedule::default();
        let mut done = vec![0u32; follower.plan.threads()];
        for code in explorer.way(&violation) {
            let (thread, before) = (code & ((1 << WHO) - 1), code >> WHO);
            (0..=before).for_each(|_| schedule.push(ThreadId::new(thread)));
            done[thread] += before as u32 + 1;
        }
        if violation.event.is_none() {
            // What comes after the last steps of each thread.
            for (thread, &all) in follower.events.iter().enumerate() {
                (done[thread]..all).for_each(|_| schedule.push(ThreadId::new(thread)));
            }
        }
        followed.broken.push((violation.event, schedule));
    }
    let tally = &explorer.tally;
    followed.explored = Explored {
        cuts: tally.cuts,
        levels: tally.levels,
        widest: tally.widest,
        dropped: tally.dropped + follower.late,
        incomplete_from: if follower.late > 0 { Some(0) } else { tally.incomplete_from },
        unknown: tally.unknown.then(|| tally.unknown_state.clone()),
        visible: follower.visible,
        steps: follower.steps,
        bytes: tally.bytes,
        bytes_per_cut: tally.per_cut,
        ..Explored::default()
    };
    Ok(followed)
}

/// The plan as it grows.
struct Follower {
    plan: Plan,
    rule: ReadRule,
    /// Events of each thread so far, and those since its last step.
    events: Vec<u32>,
    idle: Vec<u32>,
    held: Vec<Vec<(u32, Mode)>>,
    sets: FxHashMap<Vec<(u32, Mode)>, u32>,
    /// For each variable, the number of its last write.
    writes: Vec<u32>,
    sends: FxHashMap<usize, Vec<(u32, u32)>>,
    slots: Slots,
    started: bool,
    late: u64,
    visible: u64,
    steps: u64,
}

impl Follower {
    fn new(model: Model) -> Self {
        let plan = Plan { sets: vec![Vec::new()], open_ended: true, ..Plan::default() };
        Follower {
            plan,
            rule: model.read_rule(Recorded::default()),
            events: Vec::new(),
            idle: Vec::new(),
            held: Vec::new(),
            sets: FxHashMap::from_iter([(Vec::new(), 0)]),
            writes: Vec::new(),
            sends: FxHashMap::default(),
            slots: Slots::default(),
            started: false,
            late: 0,
            visible: 0,
            steps: 0,
        }
    }

    fn take(&mut self, batch: &Batch, threads: usize, monitor: &mut dyn Monitor) {
        while self.plan.moves.len() < threads.min(1 << WHO) {
            self.plan.moves.push(Vec::new());
            self.plan.base.push(0);
            self.plan.stops.push(false);
            self.plan.held.push(vec![0]);
            self.events.push(0);
            self.idle.push(0);
            self.held.push(Vec::new());
        }
        // More threads than a way can name: nothing of theirs is followed.
        self.late += u64::from(threads > 1 << WHO);
        self.late += batch.corrections().len() as u64;
        // A wake without a pairing was a time-out.
        let paired: FxHashSet<EventId> = batch.pairings().iter().map(|pairing| pairing.wake).collect();
        for &(semaphore, count) in batch.initial_counts() {
            self.counter(semaphore).initial = i64::try_from(count).unwrap_or(i64::MAX / 2);
        }
        let followed = self.plan.moves.len();
        for event in batch.iter().filter(|event| event.thread.index() < followed) {
            self.event(&event, paired.contains(&event.id), monitor);
        }
    }

    fn counter(&mut self, semaphore: SemId) -> &mut Counter {
        let known = self.plan.counters.len().max(semaphore.index() + 1);
        self.plan.counters.resize(known, Counter::default());
        &mut self.plan.counters[semaphore.index()]
    }

    fn event(&mut self, event: &Event, is_paired: bool, monitor: &mut dyn Monitor) {
        let t = event.thread.index();
        let late = self.events[t] == 0 && self.started && !matches!(event.op, Op::Receive(_));
        self.late += u64::from(late);
        self.events[t] += 1;
        let letter = monitor.letter(event);
        self.visible += u64::from(letter.is_some());
        let position = self.plan.end(t);
        let needs_from = self.plan.needs.len() as u32;
        let memory = self.rule == ReadRule::ObservedWrite;
        if let Some(x) = event.op.variable().filter(|_| memory) {
            let variables = self.writes.len().max(x.index() + 1);
            self.writes.resize(variables, 0);
            self.plan.readers.resize(variables, Vec::new());
        }
        let mut lock = |lock: usize| {
            let known = self.plan.tried.len().max(lock + 1);
            self.plan.tried.resize(known, true);
            lock as u32
        };
        let action = match event.op {
            Op::Read(x, _) if memory => Action::Read { variable: x.index() as u32, from: self.writes[x.index()] },
            Op::Write(x, _) | Op::Update(x, _) if memory => {
                let last = &mut self.writes[x.index()];
                let from = *last;
                *last += 1;
                match event.op.reads() {
                    true => Action::Update { variable: x.index() as u32, from, ordinal: *last },
                    false => Action::Write { variable: x.index() as u32, ordinal: *last },
                }
            }
            Op::Acquire(l, mode) => Action::Acquire { lock: lock(l.index()), mode },
            Op::Release(l, mode) => Action::Release { lock: lock(l.index()), mode },
            Op::Busy(l, mode) => Action::Busy { lock: lock(l.index()), mode },
            Op::Receive(token) => {
                let sends = self.sends.get(&token.index()).map_or(&[][..], Vec::as_slice);
                self.plan.needs.extend(sends.iter().filter(|(sender, _)| *sender != t as u32));
                Action::Pass
            }
            Op::Post(s) => {
                self.counter(s).add(t as u32, position, 1);
                Action::Post { semaphore: s.index() as u32 }
            }
            Op::Wait(s) => {
                self.counter(s).add(t as u32, position, -1);
                Action::Wait { semaphore: s.index() as u32 }
            }
            Op::Empty(s) => {
                self.counter(s);
                Action::Empty { semaphore: s.index() as u32 }
            }
            Op::Sleep(c) => Action::Sleep { slot: self.slots.sleep(&mut self.plan, t as u32, c) },
            Op::Notify(c, reach) => Action::Notify { condition: self.slots.condition(&mut self.plan, c), reach },
            Op::Wake(c) => {
                let slot = self.slots.wake(&mut self.plan, t as u32, c);
                if is_paired { Action::Wake { slot } } else { Action::Leave { slot } }
            }
            _ => Action::Pass,
        };
        // Others wait for sends: they must be told where they happen.
        let waited_for = matches!(event.op, Op::Send(_)) || self.plan.needs.len() as u32 > needs_from;
        let nothing = matches!(action, Action::Pass) && letter.is_none() && !waited_for;
        // A way's code has room for so many.
        let is_step = !nothing || self.idle[t] >= (1 << (32 - WHO)) - 1;
        if let Op::Send(token) = event.op {
            self.sends.entry(token.index()).or_default().push((t as u32, position + 1));
        }
        if !is_step {
            self.idle[t] += 1;
            return;
        }
        self.steps += 1;
        let needs = (needs_from, self.plan.needs.len() as u32);
        let before = std::mem::take(&mut self.idle[t]);
        // What a read sees that the monitor sees may be another write: see `super::state`.
        let reads = matches!(action, Action::Read { .. } | Action::Update { .. });
        let changed = letter.filter(|_| reads).and_then(|_| monitor.changed_letter(event));
        self.plan.stops[t] |= changed.is_some();
        self.plan.moves[t].push(Move { event: event.id, action, letter, changed, at_once: false, needs, before });
        let held = &mut self.held[t];
        match action {
            Action::Acquire { lock, mode } => {
                held.push((lock, mode));
                held.sort_unstable();
            }
            Action::Release { lock, mode } => held.retain(|h| *h != (lock, mode)),
            _ => {}
        }
        let next = self.plan.sets.len() as u32;
        let set = *self.sets.entry(held.clone()).or_insert(next);
        if set == next {
            self.plan.sets.push(held.clone());
        }
        self.plan.held[t].push(set);
    }

    /// Forgets the steps that every cut has behind it.
    fn forget(&mut self, least: &[u32]) {
        for (t, &least) in least.iter().enumerate().filter(|(_, least)| **least != u32::MAX) {
            let done = (least - self.plan.base[t]) as usize;
            self.plan.moves[t].drain(..done);
            self.plan.held[t].drain(..done);
            self.plan.base[t] = least;
        }
        let base = &self.plan.base;
        self.plan.counters.iter_mut().for_each(|counter| counter.forget(base));
    }
}
