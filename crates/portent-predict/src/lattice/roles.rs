//! Which events the visible ones need, and how variables and locks constrain those: the facts behind slicing.
//!
//! One pass along the observed order, with a clock per thread of what causally came before (program order, tokens, kept
//! reads, notifies): epochs of last accesses are compared with it, so no matrix of clocks is kept.

use portent_order::{Model, Naps, Posts, ReadRule, Recorded};
use portent_trace::{EventId, LockId, Mode, Op, Trace};
use rustc_hash::FxHashMap;

/// Facts about the trace that all reductions need.
pub(super) struct Facts<'t> {
    pub(super) trace: &'t Trace,
    /// In `sync` or `reads`, which do not depend on what is recorded.
    pub(super) rule: ReadRule,
    pub(super) program: Vec<Vec<EventId>>,
    /// Position of each event in its thread.
    pub(super) rank: Vec<u32>,
    /// The write that each reading event saw, plus one.
    saw: Vec<u32>,
    /// The release of each acquire.
    release: FxHashMap<EventId, EventId>,
    acquires: Vec<Vec<EventId>>,
    pub(super) posts: Posts,
    pub(super) naps: Naps,
    /// For each semaphore, its waits.
    waits: Vec<Vec<EventId>>,
}

impl<'t> Facts<'t> {
    pub(super) fn new(trace: &'t Trace, model: Model) -> Self {
        let mut facts = Facts {
            trace,
            rule: model.read_rule(Recorded::default()),
            program: vec![Vec::new(); trace.threads()],
            rank: Vec::with_capacity(trace.len()),
            saw: vec![0; trace.len()],
            release: FxHashMap::default(),
            acquires: vec![Vec::new(); trace.locks()],
            posts: Posts::of(trace),
            naps: Naps::of(trace),
            waits: vec![Vec::new(); trace.semaphores()],
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
                Op::Wait(s) => facts.waits[s.index()].push(event.id),
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
    pub(super) fn writer(&self, event: EventId) -> Option<EventId> {
        let kept = self.rule == ReadRule::ObservedWrite && self.trace.op(event).reads();
        (kept && self.saw[event.index()] > 0).then(|| EventId::new(self.saw[event.index()] as usize - 1))
    }

    /// How many events of each thread the visible ones need.
    pub(super) fn past(&self, visible: &[bool]) -> Vec<u32> {
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
                // Any post may let it through, and any wait may be why there was nothing.
                Op::Wait(s) => self.posts.of_semaphore(s).iter().for_each(|&post| need(post, &mut needed)),
                Op::Empty(s) => {
                    let all = self.posts.of_semaphore(s).iter().chain(&self.waits[s.index()]);
                    all.for_each(|&event| need(event, &mut needed));
                }
                // Any notify may wake it, and who else sleeps there decides whom they wake.
                Op::Wake(c) => self.naps.of_condition(c).iter().for_each(|&event| need(event, &mut needed)),
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
pub(super) enum Role {
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
pub(super) struct Roles {
    pub(super) variables: Vec<Role>,
    /// Which locks can keep anybody waiting.
    pub(super) locks: Vec<bool>,
    /// Which locks a failed try names.
    pub(super) tried: Vec<bool>,
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
    /// `may_change` says which variables have reads that may see another write.
    pub(super) fn of(facts: &Facts<'_>, needed: &[u32], may_change: &[bool]) -> Roles {
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
                Op::Post(_) if facts.posts.is_forced(event.id) => {
                    notifies.insert(event.id, clocks[t].clone());
                }
                Op::Wait(_) => {
                    for post in facts.posts.forced(event.id) {
                        if let Some(posted) = notifies.get(post) {
                            join(&mut clocks[t], posted);
                        }
                    }
                }
                Op::Notify(..) if facts.naps.is_forced(event.id) => {
                    notifies.insert(event.id, clocks[t].clone());
                }
                Op::Wake(_) => {
                    if let Some(notified) = facts.naps.forced(event.id).and_then(|notify| notifies.get(&notify)) {
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
                Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) if facts.rule == ReadRule::ObservedWrite => {
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
        let variables = variables.into_iter().zip(may_change).map(|(seen, &may_change)| match seen {
            Access { shared: false, .. } | Access { writes: 0, .. } | Access { kept_reads: 0, .. } => Role::None,
            Access { ordered: true, .. } if !may_change => Role::Ordered,
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
    pub(super) fn everything(trace: &Trace, rule: ReadRule) -> Roles {
        let role = if rule == ReadRule::ObservedWrite { Role::Tracked } else { Role::None };
        let tried = trace.events().filter_map(|event| match event.op {
            Op::Busy(lock, _) => Some(lock.index()),
            _ => None,
        });
        let mut named = vec![false; trace.locks()];
        tried.for_each(|lock| named[lock] = true);
        Roles { variables: vec![role; trace.variables()], locks: vec![true; trace.locks()], tried: named }
    }
}
