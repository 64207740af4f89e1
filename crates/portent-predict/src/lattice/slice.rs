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
//!    other.
//! 4. **Protected.** A write of a variable that every access holds a common lock for may run at once: while its thread has
//!    the lock nobody else can tell, and a thread that never goes on keeps everybody else out for ever.

use super::plan::{Deed, Notified, Ordinal, Plan, Step};
use portent_order::Model;
use portent_spec::{Letter, Monitor};
use portent_trace::{EventId, LockId, Mode, Op, Trace, VarId};
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

/// Facts about the trace that all reductions need.
struct Facts<'t> {
    trace: &'t Trace,
    model: Model,
    program: Vec<Vec<EventId>>,
    /// Position of each event in its thread.
    rank: Vec<u32>,
    /// The write that each reading event saw, plus one.
    saw: Vec<u32>,
    /// The release of each acquire, plus one.
    release: FxHashMap<EventId, EventId>,
    acquires: Vec<Vec<EventId>>,
}

impl<'t> Facts<'t> {
    fn new(trace: &'t Trace, model: Model) -> Self {
        let mut facts = Facts {
            trace,
            model,
            program: vec![Vec::new(); trace.threads()],
            rank: Vec::with_capacity(trace.len()),
            saw: vec![0; trace.len()],
            release: FxHashMap::default(),
            acquires: vec![Vec::new(); trace.locks()],
        };
        let mut last = vec![0u32; trace.variables()];
        let mut open: FxHashMap<(usize, LockId, Mode), EventId> = FxHashMap::default();
        for event in trace.events() {
            let program = &mut facts.program[event.thread.index()];
            facts.rank.push(program.len() as u32);
            program.push(event.id);
            if let Some(x) = event.op.variable() {
                facts.saw[event.id.index()] = last[x.index()];
                if event.op.writes() {
                    last[x.index()] = event.id.index() as u32 + 1;
                }
            }
            match event.op {
                Op::Acquire(lock, mode) => {
                    facts.acquires[lock.index()].push(event.id);
                    open.insert((event.thread.index(), lock, mode), event.id);
                }
                Op::Release(lock, mode) => {
                    if let Some(acquire) = open.remove(&(event.thread.index(), lock, mode)) {
                        facts.release.insert(acquire, event.id);
                    }
                }
                _ => {}
            }
        }
        facts
    }

    /// The write that a kept read must see; `None` for other events, and for the initial value.
    fn writer(&self, event: EventId) -> Option<EventId> {
        let kept = self.model == Model::Reads && self.trace.op(event).reads();
        (kept && self.saw[event.index()] > 0).then(|| EventId::new(self.saw[event.index()] as usize - 1))
    }

    /// How many events of each thread the visible ones need.
    fn past(&self, visible: &[bool]) -> Vec<u32> {
        let trace = self.trace;
        let mut needed = vec![0u32; self.program.len()];
        let mut done = vec![0u32; self.program.len()];
        let mut tried = vec![false; trace.locks()];
        let need = |event: EventId, needed: &mut Vec<u32>| {
            let t = trace.thread(event).index();
            needed[t] = needed[t].max(self.rank[event.index()] + 1);
        };
        for (t, program) in self.program.iter().enumerate() {
            let last = program.iter().rposition(|event| visible[event.index()]);
            needed[t] = last.map_or(0, |at| at as u32 + 1);
        }
        while let Some(t) = (0..needed.len()).find(|&t| done[t] < needed[t]) {
            let event = self.program[t][done[t] as usize];
            done[t] += 1;
            if let Some(writer) = self.writer(event) {
                need(writer, &mut needed);
            }
            match trace.op(event) {
                Op::Receive(token) => trace.senders(token).iter().for_each(|&send| need(send, &mut needed)),
                Op::Wake(_) => {
                    if let Some(k) = trace.pairing_of_wake(event) {
                        let pairing = trace.pairings()[k.index()];
                        need(pairing.sleep, &mut needed);
                        need(pairing.notify, &mut needed);
                    }
                }
                Op::Acquire(..) => {
                    if let Some(&release) = self.release.get(&event) {
                        need(release, &mut needed);
                    }
                }
                Op::Busy(lock, _) if !tried[lock.index()] => {
                    tried[lock.index()] = true;
                    self.acquires[lock.index()].iter().for_each(|&acquire| need(acquire, &mut needed));
                }
                _ => {}
            }
        }
        needed
    }
}

/// How a variable or lock constrains the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Not at all.
    None,
    /// A read waits for its writer.
    Ordered,
    /// What it holds is part of the state.
    Tracked,
    /// So is this, but nobody can tell when exactly it is written.
    Protected,
}

/// What is found out about variables and locks in one pass along the observed order.
struct Roles {
    variables: Vec<Role>,
    locks: Vec<bool>,
    tried: Vec<bool>,
}

/// What the pass knows about a variable.
#[derive(Clone, Default)]
struct Access {
    thread: Option<u32>,
    shared: bool,
    writes: u32,
    kept_reads: u32,
    ordered: bool,
    write: Option<(u32, u32)>,
    clock: Option<Box<[u32]>>,
    /// Who has read what it holds now, and where.
    readers: Vec<(u32, u32)>,
    /// Locks that every access so far held; `None` before the first.
    guards: Option<Vec<(LockId, Mode)>>,
}

/// Accesses of a lock, likewise.
#[derive(Clone, Default)]
struct Use {
    thread: Option<u32>,
    shared: bool,
    ordered: bool,
    /// Releases since and including the last exclusive one; `None` where a scope is open.
    exclusive: Option<(u32, u32)>,
    readers: Vec<(u32, u32)>,
    /// Whose scope has no release.
    open: Vec<u32>,
}

impl Roles {
    fn of(facts: &Facts<'_>, needed: &[u32]) -> Roles {
        let trace = facts.trace;
        let threads = facts.program.len();
        let mut clocks = vec![vec![0u32; threads].into_boxed_slice(); threads];
        let mut tokens: FxHashMap<usize, Box<[u32]>> = FxHashMap::default();
        let mut notifies: FxHashMap<EventId, Box<[u32]>> = FxHashMap::default();
        let mut variables = vec![Access { ordered: true, ..Access::default() }; trace.variables()];
        let mut locks = vec![Use { ordered: true, ..Use::default() }; trace.locks()];
        let mut tried = vec![false; trace.locks()];
        let mut held: Vec<Vec<(LockId, Mode)>> = vec![Vec::new(); threads];
        let join = |clock: &mut [u32], other: &[u32]| clock.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).max(*b));
        let is_after = |clock: &[u32], (t, rank): (u32, u32)| clock[t as usize] > rank;
        for event in trace.events() {
            let (t, rank) = (event.thread.index(), facts.rank[event.id.index()]);
            if rank >= needed[t] {
                continue;
            }
            clocks[t][t] = rank + 1;
            match event.op {
                Op::Send(token) => {
                    let sent = tokens.entry(token.index()).or_insert_with(|| vec![0; threads].into());
                    join(sent, &clocks[t]);
                }
                Op::Receive(token) => {
                    if let Some(sent) = tokens.get(&token.index()) {
                        join(&mut clocks[t], sent);
                    }
                }
                Op::Notify(..) if !trace.woken_by(event.id).is_empty() => {
                    notifies.insert(event.id, clocks[t].clone());
                }
                Op::Wake(_) => {
                    if let Some(k) = trace.pairing_of_wake(event.id)
                        && let Some(notified) = notifies.get(&trace.pairings()[k.index()].notify)
                    {
                        join(&mut clocks[t], notified);
                    }
                }
                Op::Acquire(lock, mode) => {
                    let seen = &mut locks[lock.index()];
                    seen.shared |= seen.thread.is_some_and(|other| other != t as u32);
                    seen.thread = Some(t as u32);
                    let clock = &clocks[t];
                    seen.ordered &= seen.exclusive.is_none_or(|release| is_after(clock, release));
                    if mode == Mode::Exclusive {
                        seen.ordered &= seen.readers.iter().all(|&release| is_after(clock, release));
                    }
                    match facts.release.get(&event.id).map(|release| (t as u32, facts.rank[release.index()])) {
                        Some(release) if mode == Mode::Exclusive => {
                            seen.exclusive = Some(release);
                            seen.readers.clear();
                        }
                        Some(release) => {
                            // Two shared holders exclude nobody from each other.
                            seen.readers.push(release);
                        }
                        // Nobody can come after it, in any order.
                        None => seen.open.push(t as u32),
                    }
                    held[t].push((lock, mode));
                }
                Op::Release(lock, mode) => held[t].retain(|h| *h != (lock, mode)),
                Op::Busy(lock, _) => tried[lock.index()] = true,
                Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) if facts.model == Model::Reads => {
                    let seen = &mut variables[x.index()];
                    seen.shared |= seen.thread.is_some_and(|other| other != t as u32);
                    seen.thread = Some(t as u32);
                    let guards = seen.guards.get_or_insert_with(|| held[t].clone());
                    let writes = event.op.writes();
                    guards.retain(|(lock, mode)| {
                        held[t]
                            .iter()
                            .any(|(l, m)| l == lock && !(writes && (*m == Mode::Shared || *mode == Mode::Shared)))
                    });
                    if event.op.reads() {
                        seen.kept_reads += 1;
                        if let Some(clock) = &seen.clock {
                            join(&mut clocks[t], clock);
                        }
                    }
                    if writes {
                        seen.writes += 1;
                        let clock = &clocks[t];
                        seen.ordered &= seen.write.is_none_or(|write| is_after(clock, write));
                        seen.ordered &= seen.readers.iter().all(|&read| is_after(clock, read));
                        seen.readers.clear();
                        seen.write = Some((t as u32, rank));
                        seen.clock = Some(clocks[t].clone());
                    } else {
                        match seen.readers.iter_mut().find(|(reader, _)| *reader == t as u32) {
                            Some(reader) => reader.1 = rank,
                            None => seen.readers.push((t as u32, rank)),
                        }
                    }
                }
                _ => {}
            }
        }
        let variables = variables.into_iter().map(|seen| match seen {
            Access { shared: false, .. } | Access { writes: 0, .. } | Access { kept_reads: 0, .. } => Role::None,
            Access { ordered: true, .. } => Role::Ordered,
            Access { guards: Some(guards), .. } if !guards.is_empty() => Role::Protected,
            _ => Role::Tracked,
        });
        let locks = locks.into_iter().zip(&tried).map(|(seen, &tried)| {
            // An open scope of a lock that others take must stay the last one.
            let ordered = seen.ordered && seen.open.is_empty();
            tried || (seen.shared && !ordered)
        });
        Roles { variables: variables.collect(), locks: locks.collect(), tried }
    }

    /// No reduction: everything that can constrain does.
    fn everything(trace: &Trace, model: Model) -> Roles {
        let role = if model == Model::Reads { Role::Tracked } else { Role::None };
        let tried = trace.events().filter_map(|event| match event.op {
            Op::Busy(lock, _) => Some(lock.index()),
            _ => None,
        });
        let mut named = vec![false; trace.locks()];
        tried.for_each(|lock| named[lock] = true);
        Roles { variables: vec![role; trace.variables()], locks: vec![true; trace.locks()], tried: named }
    }
}

/// Cuts a trace down to what a monitor can see.
pub(super) fn slice(trace: &Trace, model: Model, monitor: &mut dyn Monitor, detail: Detail) -> Slice {
    let facts = Facts::new(trace, model);
    let letters: Vec<Option<Letter>> = trace.events().map(|event| monitor.letter(&event)).collect();
    let visible: Vec<bool> = letters.iter().map(Option::is_some).collect();
    let whole = detail == Detail::Everything || monitor.cares_about_end();
    let needed: Vec<u32> = match whole {
        true => facts.program.iter().map(|program| program.len() as u32).collect(),
        false => facts.past(&visible),
    };
    let roles = match detail {
        Detail::Everything => Roles::everything(trace, model),
        Detail::Sliced => Roles::of(&facts, &needed),
    };
    let visible = visible.iter().filter(|seen| **seen).count() as u64;
    let (plan, threads) = Builder::new(&facts, &roles, &needed, &letters, detail).build();
    Slice { plan, threads, needed, program: facts.program, visible }
}

/// Makes steps of events.
struct Builder<'a, 't> {
    facts: &'a Facts<'t>,
    roles: &'a Roles,
    needed: &'a [u32],
    letters: &'a [Option<Letter>],
    detail: Detail,
    plan: Plan,
    /// For each event of the slice, how many steps its thread has up to and including it.
    steps_at: Vec<Vec<u32>>,
    slot_of: FxHashMap<VarId, u32>,
    ordinal: FxHashMap<EventId, Ordinal>,
    lock_of: FxHashMap<LockId, u32>,
}

impl<'a, 't> Builder<'a, 't> {
    fn new(
        facts: &'a Facts<'t>,
        roles: &'a Roles,
        needed: &'a [u32],
        letters: &'a [Option<Letter>],
        detail: Detail,
    ) -> Self {
        let steps_at = needed.iter().map(|&needed| Vec::with_capacity(needed as usize)).collect();
        Builder {
            facts,
            roles,
            needed,
            letters,
            detail,
            plan: Plan::default(),
            steps_at,
            slot_of: FxHashMap::default(),
            ordinal: FxHashMap::default(),
            lock_of: FxHashMap::default(),
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
            Op::Sleep(_) => {
                trace.pairings().iter().any(|pairing| pairing.sleep == event && self.in_slice(pairing.wake))
            }
            Op::Notify(..) => trace.woken_by(event).iter().any(|k| self.in_slice(trace.pairings()[k.index()].wake)),
            Op::Wake(_) => trace.pairing_of_wake(event).is_some(),
            _ => false,
        }
    }

    fn build(mut self) -> (Plan, Vec<usize>) {
        let trace = self.facts.trace;
        let sleeps: FxHashMap<EventId, EventId> =
            trace.pairings().iter().map(|pairing| (pairing.sleep, pairing.wake)).collect();
        // Which events are steps, and how many steps each thread has at each of its events.
        let mut is_step: Vec<Vec<bool>> = Vec::new();
        for (t, &needed) in self.needed.iter().enumerate() {
            let mut count = 0;
            let mut flags = Vec::with_capacity(needed as usize);
            for &event in &self.facts.program[t][..needed as usize] {
                let matters = match trace.op(event) {
                    // Looked up instead of searched.
                    Op::Sleep(_) if self.detail == Detail::Sliced && self.letters[event.index()].is_none() => {
                        sleeps.get(&event).is_some_and(|&wake| self.in_slice(wake))
                    }
                    _ => self.matters(event),
                };
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
                let step = self.step(event, number[t], position, &number, &mut held_now, sleeps.contains_key(&event));
                steps.push(step);
                let next = self.plan.sets.len() as u32;
                let set = *known_sets.entry(held_now.clone()).or_insert(next);
                if set == next {
                    self.plan.sets.push(held_now.clone());
                }
                held.push(set);
            }
            self.plan.steps.push(steps);
            self.plan.held.push(held);
        }
        self.plan.base = vec![0; threads.len()];
        self.plan.tried = vec![false; self.lock_of.len()];
        for (lock, &slot) in &self.lock_of {
            self.plan.tried[slot as usize] = self.roles.tried[lock.index()];
        }
        (self.plan, threads)
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
        sleeps: bool,
    ) -> Step {
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
        let deed = match trace.op(event) {
            Op::Acquire(l, mode) if self.roles.locks[l.index()] => Deed::Acquire { lock: lock(l), mode },
            Op::Release(l, mode) if self.roles.locks[l.index()] => Deed::Release { lock: lock(l), mode },
            Op::Busy(l, mode) => Deed::Busy { lock: lock(l), mode },
            Op::Read(x, _) if self.is_tracked(x) => Deed::Read { variable: self.slot_of[&x], from: from(self) },
            Op::Write(x, _) if self.is_tracked(x) => {
                Deed::Write { variable: self.slot_of[&x], ordinal: self.ordinal[&event] }
            }
            Op::Update(x, _) if self.is_tracked(x) => {
                Deed::Update { variable: self.slot_of[&x], from: from(self), ordinal: self.ordinal[&event] }
            }
            Op::Sleep(_) if sleeps => Deed::Sleep,
            Op::Notify(..) => {
                let first = self.plan.notifies.len() as u32;
                for k in trace.woken_by(event) {
                    let sleep = trace.pairings()[k.index()].sleep;
                    let t = trace.thread(sleep).index();
                    // A sleeper that is not part of the slice need not be woken.
                    if self.in_slice(trace.pairings()[k.index()].wake) {
                        let asleep = self.steps_at[t][self.facts.rank[sleep.index()] as usize];
                        self.plan.notifies.push(Notified { thread: number[t], asleep });
                    }
                }
                Deed::Notify { first, count: self.plan.notifies.len() as u32 - first }
            }
            Op::Wake(_) if trace.pairing_of_wake(event).is_some() => Deed::Wake,
            _ => Deed::Pass,
        };
        match deed {
            Deed::Read { variable, from } | Deed::Update { variable, from, .. } => {
                let readers = &mut self.plan.readers[variable as usize][from as usize];
                match readers.iter_mut().find(|(reader, _)| *reader == thread) {
                    Some(reader) => reader.1 = position,
                    None => readers.push((thread, position)),
                }
            }
            Deed::Acquire { lock, mode } => {
                held.push((lock, mode));
                held.sort_unstable();
            }
            Deed::Release { lock, mode } => held.retain(|h| *h != (lock, mode)),
            _ => {}
        }
        let letter = self.letters[event.index()];
        let protected = trace.op(event).variable().is_some_and(|x| self.role(x) == Role::Protected);
        let harmless = match deed {
            Deed::Pass | Deed::Read { .. } | Deed::Wake => true,
            Deed::Write { .. } | Deed::Update { .. } => protected,
            Deed::Release { .. } => {
                let Op::Release(l, _) = trace.op(event) else { return self.never(event) };
                !self.roles.tried[l.index()]
            }
            Deed::Acquire { .. } | Deed::Busy { .. } | Deed::Sleep | Deed::Notify { .. } => false,
        };
        let at_once = self.detail == Detail::Sliced && letter.is_none() && harmless;
        Step { event, deed, letter, at_once, needs, before: 0 }
    }

    /// A release step of an event that is no release: cannot be.
    fn never(&self, event: EventId) -> Step {
        Step { event, deed: Deed::Pass, letter: None, at_once: false, needs: (0, 0), before: 0 }
    }
}
