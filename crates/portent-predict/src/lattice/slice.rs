//! The slice of a trace that a property can see: which events, and which of their constraints, matter to it.
//!
//! Four reductions, each of which keeps every sequence of visible events that some reordering has:
//! 1. **Past.** Only events that visible ones need: program order, writers of kept reads, tokens, sleep and notify of a
//!    wake, the release of each acquired lock, all holders that a failed try may have seen. (If the property cares about
//!    the end of complete runs, everything.)
//! 2. **Nothing to decide.** Variables of one thread, never written or never read; locks of one thread; sleeps and
//!    notifies without a wake.
//! 3. **Ordered.** A variable whose every write comes, by program order, tokens and kept reads, after the write before it
//!    and all its readers: a read then only has to wait for its writer. Likewise a lock whose scopes come one after the
//!    other. Not a variable with a read that the property sees.
//! 4. **Protected.** A write of a variable that every access holds a common lock for may run at once: while its thread has
//!    the lock nobody else can tell, and a thread that never goes on keeps everybody else out for ever.
//!
//! All four hold beside changed reads ([`super::state`]), because each of those is the last event of its thread and nobody
//! may see what it writes: whatever else is executed has, by program order, tokens, notifies and writers of its reads, only
//! kept events before it, so "comes after" means what it did. A changed read itself comes after the events of its own
//! thread only, which is why no variable of such a read is *ordered*. If it is *protected*, the read has the lock too. If
//! the read saw a write outside the *past* of what is visible, leaving that out makes it a kept read, which the property
//! cannot tell from a changed one; nor an update, since all writes of a variable it compares are visible.

use super::plan::{Action, Counter, Move, Ordinal, Plan};
use super::roles::{Facts, Role, Roles};
use super::slots::Slots;
use portent_order::Model;
use portent_spec::{Letter, Monitor};
use portent_trace::{EventId, LockId, Mode, Op, SemId, Trace, VarId};
use rustc_hash::FxHashMap;

/// A plan, and how to get back from it to the trace.
pub(super) struct Slice {
    pub(super) plan: Plan,
    /// The trace's thread of each thread of the plan.
    pub(super) threads: Vec<usize>,
    /// How many events of each thread of the trace are in the slice.
    pub(super) needed: Vec<u32>,
    /// The events of each thread of the trace.
    pub(super) program: Vec<Vec<EventId>>,
    /// Visible events.
    pub(super) visible: u64,
}

/// How much to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// As much as possible.
    Sliced,
    /// Nothing: every event is a step that may run or wait.
    Everything,
}

/// Cuts a trace down to what a monitor can see.
pub(super) fn slice(trace: &Trace, model: Model, monitor: &mut dyn Monitor, detail: Detail) -> Slice {
    let facts = Facts::new(trace, model);
    let mut letters: Vec<Option<Letter>> = Vec::with_capacity(trace.len());
    // Reads that may see another write, as the last step of their thread.
    let mut changed: FxHashMap<EventId, Letter> = FxHashMap::default();
    let mut may_change = vec![false; trace.variables()];
    for event in trace.events() {
        let letter = monitor.letter(&event);
        letters.push(letter);
        if letter.is_some()
            && event.op.reads()
            && facts.rule.frees_last_reads()
            && let (Some(x), Some(letter)) = (event.op.variable(), monitor.changed_letter(&event))
        {
            changed.insert(event.id, letter);
            may_change[x.index()] = true;
        }
    }
    let visible: Vec<bool> = letters.iter().map(Option::is_some).collect();
    let whole = detail == Detail::Everything || monitor.cares_about_end();
    let needed: Vec<u32> = match whole {
        true => facts.program.iter().map(|program| program.len() as u32).collect(),
        false => facts.past(&visible),
    };
    let roles = match detail {
        Detail::Everything => Roles::everything(trace, facts.rule),
        Detail::Sliced => Roles::of(&facts, &needed, &may_change),
    };
    let visible = visible.iter().filter(|seen| **seen).count() as u64;
    let (plan, threads) = Builder::new(&facts, &roles, &needed, &letters, &changed, detail).build();
    Slice { plan, threads, needed, program: facts.program, visible }
}

/// Who needs something of a semaphore in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waiters {
    #[default]
    Nobody,
    /// One thread waits: it takes nothing away from others.
    One(usize),
    Many,
    /// Somebody saw that there is nothing.
    Tried,
}

/// Makes steps of events.
struct Builder<'a, 't> {
    facts: &'a Facts<'t>,
    roles: &'a Roles,
    needed: &'a [u32],
    letters: &'a [Option<Letter>],
    changed: &'a FxHashMap<EventId, Letter>,
    detail: Detail,
    plan: Plan,
    /// For each event of the slice, how many steps its thread has up to and including it.
    steps_at: Vec<Vec<u32>>,
    slot_of: FxHashMap<VarId, u32>,
    ordinal: FxHashMap<EventId, Ordinal>,
    lock_of: FxHashMap<LockId, u32>,
    semaphore_of: FxHashMap<SemId, u32>,
    waiters: Vec<Waiters>,
    /// For each condition, whether somebody wakes on it in the slice.
    woken: Vec<bool>,
    slots: Slots,
}

impl<'a, 't> Builder<'a, 't> {
    fn new(
        facts: &'a Facts<'t>,
        roles: &'a Roles,
        needed: &'a [u32],
        letters: &'a [Option<Letter>],
        changed: &'a FxHashMap<EventId, Letter>,
        detail: Detail,
    ) -> Self {
        let steps_at = needed.iter().map(|&needed| Vec::with_capacity(needed as usize)).collect();
        Builder {
            facts,
            roles,
            needed,
            letters,
            changed,
            detail,
            plan: Plan::default(),
            steps_at,
            slot_of: FxHashMap::default(),
            ordinal: FxHashMap::default(),
            lock_of: FxHashMap::default(),
            semaphore_of: FxHashMap::default(),
            waiters: waiters(facts, needed),
            woken: woken(facts, needed),
            slots: Slots::default(),
        }
    }

    fn role(&self, x: VarId) -> Role {
        self.roles.variables[x.index()]
    }
    fn is_tracked(&self, x: VarId) -> bool {
        matches!(self.role(x), Role::Tracked | Role::Protected)
    }
    fn in_slice(&self, event: EventId) -> bool {
        self.facts.rank[event.index()] < self.needed[self.facts.trace.thread(event).index()]
    }

    /// The events that an event waits for, beside those of its own thread.
    fn waits_for(&self, event: EventId) -> Vec<EventId> {
        let trace = self.facts.trace;
        match trace.op(event) {
            Op::Receive(token) => trace.senders(token).to_vec(),
            Op::Read(x, _) | Op::Update(x, _) if self.role(x) == Role::Ordered => {
                self.facts.writer(event).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether an event is a step, given that nobody sees it.
    fn matters(&self, event: EventId) -> bool {
        let trace = self.facts.trace;
        let t = trace.thread(event);
        if self.detail == Detail::Everything || self.letters[event.index()].is_some() {
            return true;
        }
        if self.waits_for(event).iter().any(|&other| trace.thread(other) != t) {
            return true;
        }
        match trace.op(event) {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => self.is_tracked(x),
            Op::Acquire(lock, _) | Op::Release(lock, _) | Op::Busy(lock, _) => self.roles.locks[lock.index()],
            Op::Post(s) | Op::Wait(s) | Op::Empty(s) => self.waiters[s.index()] != Waiters::Nobody,
            Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => self.woken[c.index()],
            _ => false,
        }
    }

    fn build(mut self) -> (Plan, Vec<usize>) {
        // Which events are steps, and how many steps each thread has at each of its events.
        let mut is_step: Vec<Vec<bool>> = Vec::new();
        for (t, &needed) in self.needed.iter().enumerate() {
            let mut count = 0;
            let mut flags = Vec::with_capacity(needed as usize);
            for &event in &self.facts.program[t][..needed as usize] {
                let matters = self.matters(event);
                count += u32::from(matters);
                flags.push(matters);
                self.steps_at[t].push(count);
            }
            is_step.push(flags);
        }
        let threads: Vec<usize> =
            (0..self.needed.len()).filter(|&t| self.steps_at[t].last().is_some_and(|&n| n > 0)).collect();
        let mut number = vec![u32::MAX; self.needed.len()];
        threads.iter().enumerate().for_each(|(at, &t)| number[t] = at as u32);
        self.number_writes();
        let mut known_sets: FxHashMap<Vec<(u32, Mode)>, u32> = FxHashMap::default();
        known_sets.insert(Vec::new(), 0);
        self.plan.sets.push(Vec::new());
        for &t in &threads {
            let mut steps = Vec::new();
            let mut held_now: Vec<(u32, Mode)> = Vec::new();
            let mut held = vec![0];
            let events = self.facts.program[t][..self.needed[t] as usize].to_vec();
            for (event, _) in events.into_iter().zip(&is_step[t]).filter(|(_, is)| **is) {
                let position = steps.len() as u32;
                let step = self.step(event, number[t], position, &number, &mut held_now);
                steps.push(step);
                let next = self.plan.sets.len() as u32;
                let set = *known_sets.entry(held_now.clone()).or_insert(next);
                if set == next {
                    self.plan.sets.push(held_now.clone());
                }
                held.push(set);
            }
            self.plan.stops.push(steps.iter().any(|step: &Move| step.changed.is_some()));
            self.plan.moves.push(steps);
            self.plan.held.push(held);
        }
        self.plan.base = vec![0; threads.len()];
        self.plan.tried = vec![false; self.lock_of.len()];
        for (lock, &slot) in &self.lock_of {
            self.plan.tried[slot as usize] = self.roles.tried[lock.index()];
        }
        (self.plan, threads)
    }

    /// The number of a semaphore's counter.
    fn counter(&mut self, semaphore: SemId) -> u32 {
        let next = self.plan.counters.len() as u32;
        let number = *self.semaphore_of.entry(semaphore).or_insert(next);
        if number == next {
            let initial = i64::try_from(self.facts.trace.initial_count(semaphore)).unwrap_or(i64::MAX / 2);
            self.plan.counters.push(Counter { initial, ..Counter::default() });
        }
        number
    }

    /// Numbers the writes of every tracked variable.
    fn number_writes(&mut self) {
        for event in self.facts.trace.events() {
            let Some(x) = event.op.variable() else { continue };
            if !self.is_tracked(x) || !self.in_slice(event.id) {
                continue;
            }
            let next = self.slot_of.len() as u32;
            let slot = *self.slot_of.entry(x).or_insert(next);
            if slot == next {
                self.plan.readers.push(vec![Vec::new()]);
            }
            if event.op.writes() {
                let writes = &mut self.plan.readers[slot as usize];
                self.ordinal.insert(event.id, writes.len() as Ordinal);
                writes.push(Vec::new());
            }
        }
    }

    fn step(
        &mut self,
        event: EventId,
        thread: u32,
        position: u32,
        number: &[u32],
        held: &mut Vec<(u32, Mode)>,
    ) -> Move {
        let trace = self.facts.trace;
        let first = self.plan.needs.len() as u32;
        for other in self.waits_for(event) {
            let t = trace.thread(other).index();
            if number[t] != thread && number[t] != u32::MAX {
                let done = self.steps_at[t][self.facts.rank[other.index()] as usize];
                if done > 0 {
                    self.plan.needs.push((number[t], done));
                }
            }
        }
        let needs = (first, self.plan.needs.len() as u32);
        let from = |builder: &Self| match builder.facts.writer(event) {
            Some(writer) => builder.ordinal[&writer],
            None => 0,
        };
        let mut lock = |lock: LockId| {
            let next = self.lock_of.len() as u32;
            *self.lock_of.entry(lock).or_insert(next)
        };
        let action = match trace.op(event) {
            Op::Acquire(l, mode) if self.roles.locks[l.index()] => Action::Acquire { lock: lock(l), mode },
            Op::Release(l, mode) if self.roles.locks[l.index()] => Action::Release { lock: lock(l), mode },
            Op::Busy(l, mode) => Action::Busy { lock: lock(l), mode },
            Op::Read(x, _) if self.is_tracked(x) => Action::Read { variable: self.slot_of[&x], from: from(self) },
            Op::Write(x, _) if self.is_tracked(x) => {
                Action::Write { variable: self.slot_of[&x], ordinal: self.ordinal[&event] }
            }
            Op::Update(x, _) if self.is_tracked(x) => {
                Action::Update { variable: self.slot_of[&x], from: from(self), ordinal: self.ordinal[&event] }
            }
            Op::Post(s) => Action::Post { semaphore: self.counter(s) },
            Op::Wait(s) => Action::Wait { semaphore: self.counter(s) },
            Op::Empty(s) => Action::Empty { semaphore: self.counter(s) },
            Op::Sleep(c) if self.woken[c.index()] => {
                Action::Sleep { slot: self.slots.sleep(&mut self.plan, thread, c) }
            }
            Op::Notify(c, reach) if self.woken[c.index()] => {
                Action::Notify { condition: self.slots.condition(&mut self.plan, c), reach }
            }
            Op::Wake(c) => {
                let slot = self.slots.wake(&mut self.plan, thread, c);
                if trace.pairing_of_wake(event).is_some() { Action::Wake { slot } } else { Action::Leave { slot } }
            }
            _ => Action::Pass,
        };
        match action {
            Action::Read { variable, from } | Action::Update { variable, from, .. } => {
                let readers = &mut self.plan.readers[variable as usize][from as usize];
                match readers.iter_mut().find(|(reader, _)| *reader == thread) {
                    Some(reader) => reader.1 = position,
                    None => readers.push((thread, position)),
                }
            }
            Action::Acquire { lock, mode } => {
                held.push((lock, mode));
                held.sort_unstable();
            }
            Action::Release { lock, mode } => held.retain(|h| *h != (lock, mode)),
            Action::Post { semaphore } => self.plan.counters[semaphore as usize].add(thread, position, 1),
            Action::Wait { semaphore } => self.plan.counters[semaphore as usize].add(thread, position, -1),
            _ => {}
        }
        let letter = self.letters[event.index()];
        let protected = trace.op(event).variable().is_some_and(|x| self.role(x) == Role::Protected);
        let harmless = match action {
            Action::Pass | Action::Read { .. } => true,
            // Where nobody else sleeps, it takes nothing away.
            Action::Wake { .. } => matches!(trace.op(event), Op::Wake(c) if self.facts.naps.is_alone(c)),
            Action::Write { .. } | Action::Update { .. } => protected,
            Action::Release { .. } => !matches!(trace.op(event), Op::Release(l, _) if self.roles.tried[l.index()]),
            Action::Post { .. } => !matches!(trace.op(event), Op::Post(s) if self.waiters[s.index()] == Waiters::Tried),
            Action::Wait { .. } => {
                matches!(trace.op(event), Op::Wait(s) if matches!(self.waiters[s.index()], Waiters::One(_)))
            }
            Action::Acquire { .. }
            | Action::Busy { .. }
            | Action::Empty { .. }
            | Action::Sleep { .. }
            | Action::Leave { .. }
            | Action::Notify { .. } => false,
        };
        let at_once = self.detail == Detail::Sliced && letter.is_none() && harmless;
        let reads = matches!(action, Action::Read { .. } | Action::Update { .. });
        let changed = self.changed.get(&event).copied().filter(|_| reads);
        Move { event, action, letter, changed, at_once, needs, before: 0 }
    }
}

/// Who needs something of each semaphore in a slice.
fn waiters(facts: &Facts<'_>, needed: &[u32]) -> Vec<Waiters> {
    let mut waiters = vec![Waiters::Nobody; facts.trace.semaphores()];
    if waiters.is_empty() {
        return waiters;
    }
    for (t, (program, &needed)) in facts.program.iter().zip(needed).enumerate() {
        for &event in &program[..needed as usize] {
            match facts.trace.op(event) {
                Op::Empty(s) => waiters[s.index()] = Waiters::Tried,
                Op::Wait(s) => {
                    let known = &mut waiters[s.index()];
                    *known = match *known {
                        Waiters::Nobody => Waiters::One(t),
                        Waiters::One(other) if other != t => Waiters::Many,
                        same => same,
                    };
                }
                _ => {}
            }
        }
    }
    waiters
}

/// On which conditions somebody wakes in a slice.
fn woken(facts: &Facts<'_>, needed: &[u32]) -> Vec<bool> {
    let mut woken = vec![false; facts.trace.conditions()];
    if woken.is_empty() {
        return woken;
    }
    for (program, &needed) in facts.program.iter().zip(needed) {
        for &event in &program[..needed as usize] {
            if let Op::Wake(c) = facts.trace.op(event) {
                woken[c.index()] = true;
            }
        }
    }
    woken
}
