//! The linear-time tier: candidates in one pass over the events, in bounded memory, for traces that fit no window.
//!
//! Papers: Farzan, Madhusudan and Sorrentino (meta-analysis for atomicity), corrected as SEMANTICS §4 and §6 say; Ganai
//! (iPA) for races by time-stamped lock histories. What they call a result is a **candidate** here: filters never lose
//! a bug, but let impossible ones through, so each group of candidates is then confirmed by the order engine
//! (`confirm`), by seeking back into the trace.
//!
//! # State
//! | module | per | what |
//! |---|---|---|
//! | `states` | set of locks with histories | interned once; steps and comparisons remembered |
//! | `clocks` | thread; token and notify in flight | must-order |
//! | `accesses` | thread and variable; variable, place and lock state | who accessed it last |
//! | `cycles` | thread, lock wanted, lock state and place | acquires under locks |
//!
//! Memory follows from the program (threads, variables, places, lock states), not from the number of events. Where a
//! program has too many of these, some are not told apart; that is counted in [`Figures::dropped`].

mod accesses;
mod clocks;
mod confirm;
mod cycles;
mod happened;
mod instances;
mod spots;
mod standing;
mod states;

pub use confirm::Streamed;
pub(crate) use confirm::Tier;
pub(crate) use standing::Touch;

use crate::bug::BugKind;
use accesses::{Accesses, Around, Wanted};
use clocks::{Clocks, Early};
use cycles::Cycles;
use portent_order::Goal;
use portent_trace::{Batch, Event, EventSource, LocId, Op, Pairing, PairingId, Trace, TraceError};
use rustc_hash::FxHashMap;
use standing::Standing;
use states::{FREE, States, hold};
use std::time::{Duration, Instant};

/// What a pass over the events did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Kernel events.
    pub events: u64,
    /// Different sets of held locks with their histories.
    pub lock_states: u64,
    /// Different combinations of variable, places and lock state, and of acquires.
    pub keys: u64,
    /// Groups of candidates, by [`BugKind`].
    pub groups: [u64; 4],
    /// What was not told apart for lack of room, and may hide candidates.
    pub dropped: u64,
    /// How long it took.
    pub time: Duration,
}

/// Instances at the same places that no filter could refute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// One of the instances.
    pub goal: Goal,
    /// Source locations: race, the lower first; atomicity e1, f, e2; deadlock, the cycle from its least rotation; lost
    /// wake-up wake, notify, sleep.
    pub places: Vec<LocId>,
}

/// What a pass over the events found.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Every group, sorted by kind and instance.
    pub groups: Vec<Candidate>,
    /// For each kind, whether the groups are all that the filters let through.
    pub complete: [bool; 4],
    /// What it cost.
    pub figures: Figures,
}

/// Finds the candidates of these kinds in what a source yields, keeping none of its events.
pub fn candidates(source: &mut dyn EventSource, kinds: &[BugKind]) -> Result<Candidates, TraceError> {
    let mut pass = Pass::new(kinds);
    let mut batch = Batch::default();
    while source.next_batch(&mut batch)? {
        let mut ended = batch.pairings().iter().peekable();
        for event in batch.iter() {
            pass.event(event, ended.next_if(|pairing| pairing.wake == event.id));
        }
    }
    Ok(pass.finish())
}

/// Finds the candidates of these kinds in a trace.
pub fn candidates_of(trace: &Trace, kinds: &[BugKind]) -> Candidates {
    candidates_until(trace, kinds, &|| false)
}

/// The same, until told to stop: then the candidates are not complete.
fn candidates_until(trace: &Trace, kinds: &[BugKind], stop: &dyn Fn() -> bool) -> Candidates {
    let mut pass = Pass::new(kinds);
    let mut ended = trace.pairings().iter().peekable();
    let mut stopped = false;
    for event in trace.events() {
        if event.id.index() % (1 << 16) == 0 && stop() {
            stopped = true;
            break;
        }
        pass.event(event, ended.next_if(|pairing| pairing.wake == event.id));
    }
    let mut candidates = pass.finish();
    if stopped {
        candidates.complete = [false; 4];
    }
    candidates
}

/// One pass, event by event.
struct Pass {
    started: Instant,
    events: u64,
    states: States,
    clocks: Clocks,
    threads: Vec<Standing>,
    accesses: Option<Accesses>,
    cycles: Option<Cycles>,
    /// By places: wakes, notifies, sleeps. The last one: what happens at the end decides whether others are stuck.
    early: FxHashMap<[LocId; 3], PairingId>,
    pairings: usize,
}

impl Pass {
    fn new(kinds: &[BugKind]) -> Self {
        let has = |kind| kinds.contains(&kind);
        let wanted = Wanted { races: has(BugKind::Race), violations: has(BugKind::Atomicity) };
        Pass {
            started: Instant::now(),
            events: 0,
            states: States::new(),
            clocks: Clocks::default(),
            threads: Vec::new(),
            accesses: (wanted.races || wanted.violations).then(|| Accesses::new(wanted)),
            cycles: has(BugKind::Deadlock).then(Cycles::default),
            early: FxHashMap::default(),
            pairings: 0,
        }
    }

    #[inline]
    fn event(&mut self, event: Event, pairing: Option<&Pairing>) {
        let thread = event.thread.index();
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Standing::new);
            self.clocks.meet(thread);
        }
        self.events += 1;
        match event.op {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => {
                if let Some(accesses) = &mut self.accesses {
                    let standing = &mut self.threads[thread];
                    let mut around = Around { thread, standing, clocks: &mut self.clocks, states: &self.states };
                    accesses.access(&mut around, x.index(), event.op, event.loc, event.id);
                }
            }
            _ => self.other(event, pairing),
        }
    }

    fn other(&mut self, event: Event, pairing: Option<&Pairing>) {
        let thread = event.thread.index();
        let standing = &mut self.threads[thread];
        let now = event.id.index() as u32;
        match event.op {
            Op::Acquire(lock, mode) => {
                let (state, taken) = (standing.state, hold(lock, mode));
                if let (Some(cycles), true) = (&mut self.cycles, state != FREE) {
                    let time = self.clocks.time(thread);
                    let clock = || self.clocks.share(thread);
                    cycles.acquire(&self.states, (thread, state, taken), event.loc, event.id, time, clock);
                }
                standing.enter(self.states.acquire(state, taken), now);
            }
            Op::Release(lock, mode) => standing.enter(self.states.release(standing.state, hold(lock, mode)), now),
            Op::Begin(_) => standing.begin(),
            Op::End(_) => standing.end(),
            Op::Send(_) | Op::Receive(_) | Op::Sleep(_) | Op::Notify(..) | Op::Wake(_) => {
                standing.synchronise();
                if let Some(Early { places, .. }) = self.clocks.step(event, pairing) {
                    self.early.insert(places, PairingId::new(self.pairings));
                }
                self.pairings += usize::from(pairing.is_some());
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Candidates {
        let mut groups = Vec::new();
        let mut complete = [true; 4];
        let mut figures = Figures { events: self.events, ..Figures::default() };
        if let Some(accesses) = &mut self.accesses {
            let found = std::mem::take(&mut accesses.found);
            groups.extend(found.races.into_iter().map(|(places, [first, second])| Candidate {
                goal: Goal::Race { first, second },
                places: places.into(),
            }));
            groups.extend(found.violations.into_iter().map(|(places, [first, remote, second])| Candidate {
                goal: Goal::Atomicity { first, remote, second },
                places: places.into(),
            }));
            figures.keys += accesses.keys();
            figures.dropped += accesses.dropped;
            complete[BugKind::Race as usize] = accesses.dropped == 0;
            complete[BugKind::Atomicity as usize] = accesses.dropped == 0;
        }
        if let Some(cycles) = &self.cycles {
            let all = cycles.enumerate(&self.states);
            complete[BugKind::Deadlock as usize] = all.complete && cycles.dropped == 0;
            let cycle = |(places, waiting)| Candidate { goal: Goal::Deadlock { waiting }, places };
            groups.extend(all.cycles.into_iter().map(cycle));
            let wait = |(places, pairing): ([LocId; 3], _)| Candidate {
                goal: Goal::LostWakeup { pairing },
                places: places.into(),
            };
            groups.extend(self.early.into_iter().map(wait));
            figures.keys += cycles.len() as u64;
            figures.dropped += cycles.dropped;
        }
        groups.sort_unstable();
        for group in &groups {
            figures.groups[BugKind::of(&group.goal) as usize] += 1;
        }
        figures.lock_states = self.states.len() as u64;
        figures.time = self.started.elapsed();
        Candidates { groups, complete, figures }
    }
}
