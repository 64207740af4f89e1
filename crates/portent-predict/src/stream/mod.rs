//! The linear-time tier: candidates in one pass over the events, in bounded memory, for traces that fit no window.
//!
//! Papers: Farzan, Madhusudan and Sorrentino (meta-analysis for atomicity), corrected as docs/src/internals/semantics.md §4 and §6 say; Ganai
//! (iPA) for races by time-stamped lock histories. What they call a result is a **candidate** here: filters never lose
//! a bug, but let impossible ones through, so each group of candidates is put on the board, and asked about by other passes;
//! `instances` seeks back into the trace for the best instance of each.
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
mod cycles;
mod groups_at;
mod happened;
mod instances;
mod pass;
mod states;
mod thread_state;

pub use crate::board::Candidate;
pub use crate::prediction::{Figures, Streamed};
pub(crate) use pass::{BestInstances, Streaming, best_of};

use crate::bug::BugKind;
use accesses::{Accesses, Around, Wanted};
use clocks::{Clocks, Early};
use cycles::Cycles;
use portent_order::Goal;
use portent_trace::{Batch, Event, EventSource, LocId, Op, Pairing, PairingId, Trace, TraceError};
use rustc_hash::FxHashMap;
use states::{FREE, States, hold};
use std::time::Instant;
use thread_state::ThreadState;

/// What a pass over the events found.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Every group, sorted by kind and instance.
    pub groups: Vec<Candidate>,
    /// For each kind, whether the groups are all that the filters let through.
    pub complete: [bool; BugKind::ALL.len()],
    /// What it cost.
    pub figures: Figures,
}

/// Finds the candidates of these kinds in what a source yields, keeping none of its events.
pub fn candidates(source: &mut dyn EventSource, kinds: &[BugKind]) -> Result<Candidates, TraceError> {
    let mut pass = Scan::new(kinds);
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
    let mut pass = Scan::new(kinds);
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
        candidates.complete = [false; BugKind::ALL.len()];
    }
    candidates
}

/// One pass, event by event.
struct Scan {
    started: Instant,
    events: u64,
    states: States,
    clocks: Clocks,
    threads: Vec<ThreadState>,
    accesses: Option<Accesses>,
    cycles: Option<Cycles>,
    /// By places: wakes, notifies, sleeps. The last one: what happens at the end decides whether others are stuck.
    early: FxHashMap<[LocId; 3], PairingId>,
    pairings: usize,
}

impl Scan {
    fn new(kinds: &[BugKind]) -> Self {
        let has = |kind| kinds.contains(&kind);
        let wanted = Wanted { races: has(BugKind::Race), violations: has(BugKind::Atomicity) };
        Scan {
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
            self.threads.resize_with(thread + 1, ThreadState::new);
            self.clocks.meet(thread);
        }
        self.events += 1;
        match event.op {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => {
                if let Some(accesses) = &mut self.accesses {
                    let thread_state = &mut self.threads[thread];
                    let mut around = Around { thread, thread_state, clocks: &mut self.clocks, states: &self.states };
                    accesses.access(&mut around, x.index(), event.op, event.loc, event.id);
                }
            }
            _ => self.other(event, pairing),
        }
    }

    fn other(&mut self, event: Event, pairing: Option<&Pairing>) {
        let thread = event.thread.index();
        let state = &mut self.threads[thread];
        let now = event.id.index() as u32;
        match event.op {
            Op::Acquire(lock, mode) => {
                let (locks, taken) = (state.locks, hold(lock, mode));
                if let (Some(cycles), true) = (&mut self.cycles, locks != FREE && !event.tries) {
                    let time = self.clocks.time(thread);
                    let clock = || self.clocks.share(thread);
                    cycles.acquire(&self.states, (thread, locks, taken), event.loc, event.id, time, clock);
                }
                state.enter(self.states.acquire(locks, taken), now);
            }
            Op::Release(lock, mode) => state.enter(self.states.release(state.locks, hold(lock, mode)), now),
            Op::Begin(_) => state.begin(),
            Op::End(_) => state.end(),
            Op::Post(_) | Op::Wait(_) | Op::Empty(_) => {
                state.synchronise();
                self.clocks.count(thread);
            }
            Op::Send(_) | Op::Receive(_) | Op::Sleep(_) | Op::Notify(..) | Op::Wake(_) => {
                state.synchronise();
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
        let mut complete = [true; BugKind::ALL.len()];
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
