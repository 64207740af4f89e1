//! Reads that could see something else, over all runs so far: which of them is worth a run next.
//!
//! What a thread does next depends on what it has done and read before. So what is asked of every run is: which of its reads could
//! see another write, everything before it in its thread being as it was (the engine knows, exactly, and has the schedule)? A
//! run that makes it see that write goes another way there, and is asked the same. What some run showed already (the same thread
//! with the same past reads the same) is not run again; of the others, what was seen least anywhere at that line comes first.
//!
//! What this does not do: prove that nothing is left. One schedule per read and write is tried, not every combination.

use crate::run::Run;
use crate::schedule::Schedule;
use portent_order::engine::{Effort, Engine, View};
use portent_order::{Goal, Model, Verdict, Writer};
use portent_predict::InputSteps;
use portent_trace::{EventId, InputOp, LocId, Trace};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How long the questions about one run may take.
const PATIENCE: Duration = Duration::from_millis(300);
/// Questions that are kept, at most: more are never asked anyway.
const MOST: usize = 20_000;

/// A read of a run that could see another write.
struct Question<S> {
    of: Arc<S>,
    read: EventId,
    challenger: Writer,
    /// The thread's past, and what it would read.
    past: u64,
    /// The lines of both, and the value.
    pair: u64,
}

/// All such reads of all runs.
pub(super) struct Outcomes<S> {
    /// Pasts of threads that some run showed.
    seen: FxHashSet<u64>,
    /// How often a pair of lines was seen.
    pairs: FxHashMap<u64, u32>,
    /// What could be tried, the oldest first.
    open: Vec<Question<S>>,
    /// Their pasts: each is asked once.
    asked: FxHashSet<u64>,
}

impl<S> Default for Outcomes<S> {
    fn default() -> Self {
        Outcomes {
            seen: FxHashSet::default(),
            pairs: FxHashMap::default(),
            open: Vec::new(),
            asked: FxHashSet::default(),
        }
    }
}

impl<S: AsRef<Trace>> Outcomes<S> {
    /// Whether a thread of this run read something that none with its past has read before; from now on that is known.
    pub(super) fn visit(&mut self, run: &Run) -> bool {
        let accesses = Accesses::of(run);
        let mut new = false;
        for read in accesses.reads.values() {
            new |= self.seen.insert(read.past_with(read.saw));
            *self.pairs.entry(read.pair_with(read.saw)).or_default() += 1;
        }
        new
    }

    /// Asks which reads of a run could see something else.
    pub(super) fn ask(&mut self, of: &Arc<S>, run: &Run, until: Instant, interrupt: &'static AtomicBool) {
        let trace: &Trace = (**of).as_ref();
        let accesses = Accesses::of(run);
        let until = until.min(Instant::now() + PATIENCE);
        let view = View::whole(trace, Model::Reads);
        let effort = Effort { deadline: Some(until), interrupt: Some(interrupt), ..Effort::default() };
        Engine::new(&view).answer_reads(EventId::new(0), effort, &|| false, &mut |read, challenger, feasible| {
            let input = |event: EventId| trace.input_index(event) as usize;
            let Some(known) = accesses.reads.get(&input(read)).filter(|_| feasible == Some(true)) else { return };
            let written = match challenger {
                Writer::Init => Written::default(),
                Writer::Event(event) => accesses.writes.get(&input(event)).copied().unwrap_or_default(),
            };
            let (past, pair) = (known.past_with(written), known.pair_with(written));
            if self.open.len() < MOST && !self.seen.contains(&past) && self.asked.insert(past) {
                self.open.push(Question { of: Arc::clone(of), read, challenger, past, pair });
            }
        });
    }

    /// The next that is worth a run: the run that it is about, and the schedule that leads there.
    pub(super) fn next(&mut self) -> Option<(Arc<S>, Schedule)> {
        loop {
            self.open.retain(|question| !self.seen.contains(&question.past));
            let times = |question: &Question<S>| self.pairs.get(&question.pair).copied().unwrap_or(0);
            let best = (0..self.open.len()).min_by_key(|&at| (times(&self.open[at]), at))?;
            let question = self.open.remove(best);
            // However it goes, it is not tried again.
            self.seen.insert(question.past);
            *self.pairs.entry(question.pair).or_default() += 1;
            if let Some(schedule) = question.schedule() {
                return Some((question.of, schedule));
            }
        }
    }
}

impl<S: AsRef<Trace>> Question<S> {
    fn schedule(&self) -> Option<Schedule> {
        let trace: &Trace = (*self.of).as_ref();
        let goal = Goal::Nondeterminism { read: self.read, challenger: self.challenger };
        let view = View::whole(trace, Model::Reads);
        let effort = Effort { deadline: Some(Instant::now() + PATIENCE), ..Effort::default() };
        let Verdict::Feasible(found) = Engine::new(&view).decide(&goal, effort) else { return None };
        let mut schedule = Schedule::default();
        for step in InputSteps::new(trace).convert(trace, &goal, &found).in_full(trace) {
            schedule.push(step.thread.index() as u32, step.events);
        }
        Some(schedule)
    }
}

/// A write, as it is the same in other runs.
#[derive(Clone, Copy, Default)]
struct Written {
    /// Its line.
    place: u64,
    /// Who wrote, and the how many-th time there.
    who: u64,
    value: Option<i64>,
}

/// A read, as it is the same in other runs.
struct Read {
    place: u64,
    /// All that its thread did before.
    past: u64,
    saw: Written,
}

impl Read {
    fn past_with(&self, written: Written) -> u64 {
        FxBuildHasher.hash_one((self.past, self.place, written.who, written.value))
    }
    fn pair_with(&self, written: Written) -> u64 {
        FxBuildHasher.hash_one((self.place, written.place, written.value))
    }
}

/// Reads and writes of a run, by event.
#[derive(Default)]
struct Accesses {
    reads: FxHashMap<usize, Read>,
    writes: FxHashMap<usize, Written>,
}

impl Accesses {
    fn of(run: &Run) -> Accesses {
        let mut places: FxHashMap<(LocId, LocId), u64> = FxHashMap::default();
        let mut found = Accesses::default();
        let mut pasts: FxHashMap<u32, u64> = FxHashMap::default();
        let mut times: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        let mut last: FxHashMap<u32, Written> = FxHashMap::default();
        for (at, event) in run.events.iter().enumerate() {
            let thread = event.thread.index() as u32;
            // The user's line, and what of a library is executed there.
            let own = event.loc;
            let innermost = run.names.innermost(own, run.stacks.get(at));
            let place = *places.entry((own, innermost)).or_insert_with(|| {
                let text = |at: LocId| run.names.location(at).to_string();
                FxBuildHasher.hash_one((text(own), text(innermost)))
            });
            let past = pasts.entry(thread).or_insert(u64::from(thread));
            *past = FxBuildHasher.hash_one((*past, event.op, place));
            if !event.op.is_access() {
                continue;
            }
            if !matches!(event.op, InputOp::Write(_) | InputOp::Free | InputOp::Destroy) {
                let saw = last.get(&event.object).copied().unwrap_or_default();
                let read = Read { place, past: *past, saw };
                *past = read.past_with(saw);
                found.reads.insert(at, read);
            }
            if !matches!(event.op, InputOp::Read(_)) {
                let time = times.entry((thread, place)).or_default();
                *time += 1;
                // Addresses differ from run to run; other values tell outcomes apart.
                let value = event.value.filter(|value| value.unsigned_abs() < 1 << 24);
                let written = Written { place, who: FxBuildHasher.hash_one((thread, place, *time)), value };
                found.writes.insert(at, written);
                last.insert(event.object, written);
            }
        }
        found
    }
}
