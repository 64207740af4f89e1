//! All behaviours of a small program, with a proof where there is one: the search of `portent-search` over recorded runs.
//!
//! A run gives the local history of each thread: its operations with place, object and what they saw. Everything here errs on one
//! side: what is not known to be explored exactly ends the proof ([`Behaviours::unproven`]), and so does what is not the same in
//! two runs though it should be (an address that depends on who came first at the allocator). Threads are known by who started
//! them, and as the how many-th.

use super::{Behaviours, Event, Explorer, Extent, Options, Phase, SavedSearch, Subject, spinning};
use crate::error::Error;
use crate::outcome::{self, SpinKind};
use crate::program::{Plan, Policy};
use crate::run::Run;
use crate::schedule::Schedule;
use portent_order::engine::Effort;
use portent_search::{End, History, Incomplete, Observes, Operation, Seen, SoFar, Step, Writes, stuck_cuts};
use portent_trace::{
    EventId, FunctionBlocks, InputEvent, InputOp, LocId, ObjectClass, Op, ReadOrder, SYSTEM_CALLS, StackColumn,
    ThreadId, Trace, WriteOrder,
};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Runs with more events are not searched through.
const MOST_EVENTS: usize = 1_000;
/// So many times as many are, if somebody asked for the search.
const WHERE_ASKED: usize = 10;
/// Runs that became so many times as long as that, mostly because a thread spins, are looked at for failures, and not searched
/// through.
const LONGER: usize = 2;
/// Questions that are kept, at most.
const MOST_GOALS: usize = 200_000;
/// Combinations of places at which threads can wait that are looked at in a run, at most.
const MOST_COMBINATIONS: usize = 20_000;
/// States in which nobody can go on that are run, at most.
const MOST_STUCK: usize = 16;
/// Runs of the search where there can be no proof, at most: other ways to look for failures are as good there.
const WITHOUT_PROOF: usize = 24;
/// Where there is no proof any more, the search takes one part of so many of the time that was left,
const SHARE: u32 = 24;
/// and where there may be one, all but one part of so many: failures are run again afterwards.
const RESERVE: u32 = 8;
/// Where so many times as many alternatives are left as there were runs, there are more behaviours than anybody waits for.
const OUT_OF_REACH: usize = 40;
/// Where so many times as many are, a quarter of the runs shows that.
const FAR_OUT_OF_REACH: usize = 200;
/// How often a search that goes on is kept.
const KEPT_EVERY: Duration = Duration::from_secs(10);

impl Explorer<'_> {
    /// Searches for all behaviours, if the recorded run is small.
    pub(super) fn behaviours(&mut self) -> Result<(), Error> {
        let Some(first) = self.first.clone() else { return Ok(()) };
        // Where nothing is to be tried, nothing is.
        if self.tries == 0 || self.out_of_time() {
            return Ok(());
        }
        let most = if self.options.extent.goes_on_after_failures() { MOST_EVENTS * WHERE_ASKED } else { MOST_EVENTS };
        if first.run.events.len() > most {
            let why = format!("the recorded run has more than the {most} events that are searched through");
            self.exploration.behaviours = Some(Behaviours { unproven: vec![why], ..Behaviours::default() });
            return Ok(());
        }
        let everything = self.options.extent == Extent::Everything;
        let options = portent_search::Options {
            deadline: Some(Instant::now() + self.left() - self.left() / RESERVE),
            first_twice: true,
            goals: if everything { usize::MAX } else { MOST_GOALS },
            seed: self.seed(1),
            ..portent_search::Options::default()
        };
        let earlier = self.options.resume.as_ref().map(SavedSearch::plans).unwrap_or_default();
        let mut subject = Recorded {
            earlier: earlier.len(),
            exact: true,
            longest: most * LONGER,
            share: Instant::now() + self.left() / SHARE,
            saved: SavedSearch::default(),
            kept: Instant::now(),
            failed: None,
            explorer: self,
            first,
            made: Vec::new(),
            numbers: FxHashMap::default(),
            spins: BTreeSet::new(),
        };
        // States in which nobody can go on are no behaviours of their own where a run goes on beyond them: each is run, too.
        let mut stuck = Vec::new();
        let mut all_stuck = true;
        let mut watch = |visit: portent_search::Visit<'_, '_, '_>| {
            if visit.is_over {
                let effort = Effort { deadline: options.deadline, ..Effort::default() };
                match stuck_cuts(visit.run, visit.spins, visit.engine, MOST_COMBINATIONS, effort) {
                    Some(cuts) => {
                        stuck.extend(cuts.into_iter().filter(|(cut, _)| !ends_at(visit.run, cut)).map(|(_, found)| {
                            let plan = |schedule| {
                                let turns = visit.run.turns(&schedule);
                                portent_search::Plan { like: Some(visit.made), schedule, turns, seed: 0 }
                            };
                            (found.spins, found.schedules.into_iter().map(plan).collect::<Vec<_>>())
                        }));
                    }
                    None => all_stuck = false,
                }
                return ControlFlow::Continue(());
            }
            ControlFlow::Continue(())
        };
        let explored = portent_search::resume(&mut subject, &options, &earlier, &mut watch);
        subject.explorer.observer.see(Event::Searched);
        subject.keep();
        if let Some(error) = subject.failed.take() {
            return Err(error);
        }
        let mut explored = explored?;
        let most_stuck = if everything { usize::MAX } else { MOST_STUCK };
        if !all_stuck || stuck.len() > most_stuck {
            explored
                .incomplete
                .insert(Incomplete::Inexact("states in which nobody can go on were not all looked for".into()));
        }
        for (spins, plans) in stuck.iter().take(most_stuck) {
            let mut hangs = false;
            for plan in plans {
                hangs |= subject.make(plan)?.outcome.deadlock.is_some();
            }
            if *spins && !hangs {
                explored
                    .incomplete
                    .insert(Incomplete::Inexact("whether threads can spin for ever is not decided".into()));
            }
        }
        let spins = std::mem::take(&mut subject.spins);
        let left = |why: &Incomplete| match why {
            Incomplete::Budget(left) => *left as u64,
            _ => 0,
        };
        self.exploration.behaviours = Some(Behaviours {
            seen: explored.behaviours as u64,
            spins,
            left: explored.incomplete.iter().map(left).max().unwrap_or(0),
            unproven: explored.incomplete.iter().map(sentence).collect(),
        });
        Ok(())
    }
}

/// Whether a run ends with a cut.
fn ends_at(run: &portent_search::Run, cut: &[usize]) -> bool {
    let steps = |history: &Option<History>| history.as_ref().map_or(0, |history| history.steps.len());
    run.threads.iter().zip(cut).all(|(history, &at)| steps(history) == at)
}

/// Why nothing is proven, in words.
fn sentence(why: &Incomplete) -> String {
    match why {
        Incomplete::Budget(_) => "the time or the number of runs was used up".into(),
        Incomplete::NotDeterministic(thread) => {
            format!("T{thread} does not always do the same after the same past (addresses, time and the like differ)")
        }
        Incomplete::NotFollowed => "a run did not go where it should have gone".into(),
        Incomplete::Stopped => "a run ended before all its threads had ended".into(),
        Incomplete::TooLong => {
            "a run was too long to be searched through: a thread may wait for another in a loop".into()
        }
        Incomplete::Undecided(why) => format!("a question was not decided ({why})"),
        Incomplete::UnknownValues => {
            "what a variable holds at first, or what was read or written, is not always known".into()
        }
        Incomplete::Inexact(why) => why.clone(),
    }
}

/// Recorded runs of a program, for the search.
struct Recorded<'e, 'a> {
    explorer: &'e mut Explorer<'a>,
    first: Arc<Subject>,
    made: Vec<Made>,
    /// Threads, by who started them and as the how many-th.
    numbers: FxHashMap<(usize, u32), usize>,
    /// Where threads waited in loops that only look.
    spins: BTreeSet<String>,
    /// Runs of an earlier search.
    earlier: usize,
    /// Runs with more events are not searched through.
    longest: usize,
    /// Whether all runs so far can be explored exactly.
    exact: bool,
    /// When the search has had its share, where it proves nothing.
    share: Instant,
    /// The runs so far, to go on from them later, and when they were last kept.
    saved: SavedSearch,
    kept: Instant,
    /// Why they could not be.
    failed: Option<Error>,
}

/// A run that was made: for each thread by its number, what it is called in schedules, and how many events it has executed after each
/// of its operations.
struct Made {
    threads: Vec<Option<(u32, Vec<u64>)>>,
}

impl portent_search::Subject for Recorded<'_, '_> {
    type Error = Error;

    fn run(&mut self, plan: &portent_search::Plan) -> Result<portent_search::Run, Error> {
        let Some(like) = plan.like else {
            let first = Arc::clone(&self.first);
            let told = self.told(&first.run, &FxHashMap::default())?;
            if self.explorer.options.resume.as_ref().is_some_and(|earlier| !earlier.begins_like(&told)) {
                return Err(not_the_same());
            }
            self.saved.add(plan, &told);
            self.exact = told.inexact.is_empty();
            return Ok(told);
        };
        let schedule = self.made[like].schedule(&plan.turns);
        let run = self.follow(plan, &schedule)?;
        let first = Arc::clone(&self.first);
        // The last one planned is to do what no run has done.
        let last = plan.turns.last().and_then(|&turn| Some(self.made[like].threads.get(turn)?.as_ref()?.0));
        let mut planned: FxHashMap<u32, u64> = FxHashMap::default();
        for (thread, events) in &schedule.steps {
            *planned.entry(*thread).or_default() += events;
        }
        if let Some(events) = last.and_then(|thread| planned.get_mut(&thread)) {
            *events = events.saturating_sub(1);
        }
        let told = self.told(&run, &planned)?;
        self.saved.add(plan, &told);
        self.exact &= told.inexact.is_empty();
        if told.inexact.is_empty() && !told.too_long {
            self.explorer.consider(run, &first.run, &mut Vec::new(), 0);
        }
        Ok(told)
    }

    fn goes_on(&mut self, so_far: SoFar) -> ControlFlow<()> {
        let SoFar { runs, behaviours, left, provable, .. } = so_far;
        let failures = self.explorer.failures();
        self.explorer.observer.see(Event::Searching {
            runs: runs as u64,
            behaviours: behaviours as u64,
            left: left as u64,
            failures,
        });
        if self.kept.elapsed() > KEPT_EVERY {
            self.keep();
        }
        // Where nothing can be proven any more, other ways to look for failures are as good.
        let new = runs.saturating_sub(self.earlier.max(1));
        let few = if self.exact { 1 + self.explorer.options.neighbours * Options::TRIES } else { WITHOUT_PROOF };
        let enough = match self.explorer.options.extent {
            Extent::Worthwhile | Extent::WithinTime if !provable || failures > 0 => {
                new >= few || Instant::now() > self.share
            }
            Extent::Worthwhile if new >= few || Instant::now() > self.share => left > OUT_OF_REACH * runs,
            Extent::Worthwhile => new >= few / 4 && left > FAR_OUT_OF_REACH * runs,
            Extent::WithinTime | Extent::Everything => false,
            Extent::Runs(_) => self.explorer.runs_left() == 0,
        };
        let interrupted = self.explorer.interrupt.load(Ordering::Relaxed);
        if enough || interrupted || self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The program did something else first than when the search began.
fn not_the_same() -> Error {
    Error::refused(
        "the search cannot be gone on with: the recorded run is not the one that it began with",
        "does the program depend on time, on files or on its environment? without --resume the search begins anew",
    )
}

impl Recorded<'_, '_> {
    /// Keeps the runs so far.
    fn keep(&mut self) {
        self.kept = Instant::now();
        self.failed = self.explorer.observer.keep_search(&self.saved).err();
    }
}

impl Made {
    /// Turns of threads as a schedule of events.
    fn schedule(&self, turns: &[usize]) -> Schedule {
        let mut schedule = Schedule::default();
        let mut done: Vec<(usize, u64)> = vec![(0, 0); self.threads.len()];
        for (at, &turn) in turns.iter().enumerate() {
            let Some(Some((thread, after))) = self.threads.get(turn) else { continue };
            let (steps, events) = &mut done[turn];
            *steps += 1;
            // The operation that is to do something else is executed, and nothing behind it. What a thread does after its last
            // operation is its own business, but others may wait for its end.
            let goes_on = at + 1 == turns.len() || *steps + 1 < after.len();
            let Some(&to) = after.get(if goes_on { *steps - 1 } else { *steps }) else { continue };
            schedule.push(*thread, to - *events);
            *events = to;
        }
        schedule
    }
}

/// An operation that a trace shows.
struct Shown {
    operation: Operation,
    observes: Observes,
    seen: Seen,
    event: EventId,
}

impl Recorded<'_, '_> {
    /// Makes a run that was planned.
    fn make(&mut self, plan: &portent_search::Plan) -> Result<Run, Error> {
        let schedule = self.made[plan.like.unwrap_or(0)].schedule(&plan.turns);
        self.follow(plan, &schedule)
    }

    fn follow(&mut self, plan: &portent_search::Plan, schedule: &Schedule) -> Result<Run, Error> {
        let run = self.explorer.program.run(&Plan {
            policy: Policy::Stay,
            seed: plan.seed,
            schedule: Some(schedule),
            like: Some(&self.first.run),
            limit: Some(self.explorer.limit()),
            silent: true,
        })?;
        self.explorer.count(Phase::Searched);
        let first = Arc::clone(&self.first);
        self.explorer.watch(&run, &first, false);
        Ok(run)
    }

    /// The histories of a run, of which so many events of each thread were planned.
    fn told(&mut self, whole: &Run, planned: &FxHashMap<u32, u64>) -> Result<portent_search::Run, Error> {
        let shortened = spinning::shorten(whole, planned);
        let begun = begin_with_initial(shortened.as_ref().unwrap_or(whole));
        let (run, first) =
            begun.as_ref().map_or((shortened.as_ref().unwrap_or(whole), 0), |(run, first)| (run, *first));
        let trace = run.trace(FunctionBlocks::None)?;
        if run.events.len() > self.longest {
            self.made.push(Made { threads: Vec::new() });
            return Ok(portent_search::Run {
                trace,
                threads: Vec::new(),
                too_long: true,
                followed: false,
                spins: Vec::new(),
                inexact: Vec::new(),
            });
        }
        let mut inexact: BTreeSet<String> = run.outcome.warnings.iter().cloned().collect();
        if self.made.is_empty() {
            // The same for all runs, and it takes a while.
            inexact.extend(self.explorer.program.unexplored(whole));
        }
        if run.outcome.signals {
            inexact.insert("signals could come at other times".into());
        }
        inexact.extend(run.outcome.spins.iter().filter_map(doubt));
        let known = self.threads_of(run, &mut inexact);
        let count = 1 + self.numbers.values().copied().max().unwrap_or(0);
        let mut histories: Vec<Option<History>> = (0..count).map(|_| None).collect();
        let mut made: Vec<Option<(u32, Vec<u64>)>> = vec![None; count];
        let mut executed: FxHashMap<ThreadId, u64> = FxHashMap::default();
        let mut memory: FxHashMap<usize, Option<i64>> = FxHashMap::default();
        let ended = self.ended(run);
        for (&thread, &number) in &known {
            let end = if ended.contains(&thread) { End::Done } else { End::Cut };
            histories[number] = Some(History { thread, steps: Vec::new(), end, born: None });
            made[number] = Some((thread.index() as u32, Vec::new()));
        }
        let mut places = FxHashMap::default();
        let mut did = vec![None; run.events.len()];
        let mut called = BTreeSet::new();
        for (at, event) in run.events.iter().enumerate() {
            if at < first {
                shown(run, &trace, at, 0, &known, &mut memory).ok();
                continue;
            }
            let events = executed.entry(event.thread).or_default();
            *events += 1;
            let Some(&number) = known.get(&event.thread) else { continue };
            if event.op == InputOp::Send && run.names.name(ObjectClass::Token, event.object) == SYSTEM_CALLS {
                // It matters what it gave only if the thread does something after it.
                called.insert(number);
                continue;
            }
            let place = place(run, at, &mut places);
            let shown = shown(run, &trace, at, place, &known, &mut memory);
            match shown {
                Ok(Some(Shown { operation, observes, seen, event })) => {
                    if called.contains(&number) {
                        inexact.insert(format!("another outcome of {} is not looked for", of_class(InputOp::Send)));
                    }
                    did[at] = Some((operation, seen));
                    if let (Some(history), Some((_, after))) = (&mut histories[number], &mut made[number]) {
                        history.steps.push(Step { operation, observes, seen, event });
                        after.push(*events);
                    }
                }
                Ok(None) => {}
                Err(why) => drop(inexact.insert(why)),
            }
        }
        for (thread, after) in made.iter_mut().flatten() {
            // What comes after the last operation belongs to it.
            let all = executed.get(&ThreadId::new(*thread as usize)).copied().unwrap_or(0);
            after.push(all);
        }
        self.made.push(Made { threads: made });
        let followed = run.outcome.not_followed.is_none();
        let own = spinning::by_thread(run);
        let mut spins = Vec::new();
        for spin in spinning::pure(run) {
            self.spins.insert(spin.place.clone());
            let more = if run.events.first().is_some_and(|event| event.thread.index() as u32 == spin.thread) {
                first
            } else {
                0
            };
            let own = own.get(&spin.thread).map_or(&[][..], |own| &own[..own.len().min(spin.events as usize + more)]);
            let iteration = &own[own.len().saturating_sub(spin.iteration as usize)..];
            spins.push(iteration.iter().filter_map(|&at| did[at]).collect());
        }
        Ok(portent_search::Run {
            trace,
            threads: histories,
            too_long: false,
            followed,
            spins,
            inexact: inexact.into_iter().collect(),
        })
    }

    /// The numbers of a run's threads, which are the same in all runs.
    fn threads_of(&mut self, run: &Run, inexact: &mut BTreeSet<String>) -> FxHashMap<ThreadId, usize> {
        let mut known: FxHashMap<ThreadId, usize> = FxHashMap::default();
        known.extend(run.events.first().map(|event| (event.thread, 0)));
        let mut started: FxHashMap<usize, u32> = FxHashMap::default();
        for event in &run.events {
            let Some(&number) = known.get(&event.thread) else {
                inexact.insert("a thread was started by what is not seen".into());
                continue;
            };
            if event.op == InputOp::Fork {
                let nth = started.entry(number).or_default();
                *nth += 1;
                let next = self.numbers.len() + 1;
                let child = *self.numbers.entry((number, *nth)).or_insert(next);
                known.insert(ThreadId::new(event.object as usize), child);
            }
        }
        known
    }

    /// The threads that ran to their ends, as far as the run shows that.
    fn ended(&self, run: &Run) -> BTreeSet<ThreadId> {
        let whole = matches!(run.outcome.end, outcome::End::Status(_))
            && !run.outcome.timed_out
            && run.outcome.deadlock.is_none()
            && run.outcome.crash.is_none();
        let mut ended = BTreeSet::new();
        if whole {
            ended.extend(run.events.first().map(|event| event.thread));
            let joins = run.events.iter().filter(|event| event.op == InputOp::Join);
            ended.extend(joins.map(|event| ThreadId::new(event.object as usize)));
        }
        ended
    }
}

/// The run with writes, by its first thread and before everything else, of what variables held at first; and how many these are. `None`
/// if nothing is known of that but what was read.
fn begin_with_initial(run: &Run) -> Option<(Run, usize)> {
    let first = run.events.first()?;
    let write = |&(object, value): &(u32, i64)| InputEvent {
        op: InputOp::Write(WriteOrder::Plain),
        object,
        value: Some(value),
        ..*first
    };
    let mut events: Vec<InputEvent> = run.outcome.initial.iter().map(write).collect();
    let count = events.len();
    events.extend(&run.events);
    let mut stacks = StackColumn::default();
    stacks.append(count, &run.stacks, 0..run.events.len());
    let (names, outcome) = (run.names.clone(), run.outcome.clone());
    (count > 0).then_some((Run { events, stacks, names, outcome, recording: Vec::new() }, count))
}

/// Why a loop that only looks may do more than that.
fn doubt(spin: &outcome::Spin) -> Option<String> {
    match spin.kind {
        SpinKind::Waits => None,
        SpinKind::Plain => Some(format!("whether the loop at {} only waits is not known", spin.place)),
        SpinKind::Counts => Some(format!("the loop at {} counts its rounds", spin.place)),
    }
}

/// A place in the code, the same in all runs: the user's line, and what of a library is executed there.
fn place(run: &Run, at: usize, places: &mut FxHashMap<(LocId, LocId), u64>) -> u64 {
    let own = run.events[at].loc;
    let innermost = run.names.innermost(own, run.stacks.get(at));
    *places.entry((own, innermost)).or_insert_with(|| {
        let text = |at: LocId| run.names.location(at).to_string();
        FxBuildHasher.hash_one((text(own), text(innermost)))
    })
}

/// The name of an object without its number: which of several it is depends on who came first.
fn kind_of(name: &str) -> String {
    let name = name.split('#').next().unwrap_or_default();
    let numbered = name.rfind(" (").filter(|_| name.ends_with(')'));
    numbered.map_or(name, |at| &name[..at]).to_owned()
}

/// What an event is to the search: an operation, nothing, or the reason why what else could happen there is not known.
fn shown(
    run: &Run,
    trace: &Trace,
    at: usize,
    place: u64,
    known: &FxHashMap<ThreadId, usize>,
    memory: &mut FxHashMap<usize, Option<i64>>,
) -> Result<Option<Shown>, String> {
    let InputEvent { thread, op, object, value, .. } = run.events[at];
    let mut own = trace.lowered(at as u32).map(EventId::new).filter(|&event| trace.thread(event) == thread);
    let name = |class: ObjectClass| FxBuildHasher.hash_one(kind_of(run.names.name(class, object)));
    let whose = || known.get(&ThreadId::new(object as usize)).copied().unwrap_or(usize::MAX) as u64;
    let operation = |kind: u32, object: u64, operand: i64| Operation { place, kind, object, operand };
    let simple = |kind: u32, object: u64, event: Option<EventId>| {
        // An acquire of what the thread holds already is no event of the kernel, and its own business.
        let (operation, observes, seen) = (operation(kind, object, 0), Observes::Nothing, Seen::Nothing);
        Ok(event.map(|event| Shown { operation, observes, seen, event }))
    };
    match op {
        op if op.is_access() => {
            let accesses: Vec<EventId> = own.filter(|&event| trace.op(event).variable().is_some()).collect();
            let Some(&event) = accesses.last() else { return Ok(None) };
            // Of something that is written in parts, the last counts; of what is read in parts, each would have an outcome.
            if accesses.len() > 1 && accesses.iter().any(|&event| trace.op(event).reads()) {
                return Err("accesses of different sizes overlap".into());
            }
            let kernel = trace.op(event);
            let x = kernel.variable().map_or(usize::MAX, |x| x.index());
            let held = memory.get(&x).copied().flatten();
            // A compare-exchange is a read if it fails and an update if not: the same operation.
            let (kind, operand, old) = match kernel {
                Op::Read(_, ReadOrder::Plain) => (0, 0, value),
                Op::Read(..) => (1, 0, value),
                Op::Update(..) => (1, 0, held),
                _ => (2, value.unwrap_or(i64::MIN), None),
            };
            if kernel.writes() {
                memory.insert(x, trace.value(event));
            } else if value.is_some() {
                memory.insert(x, value);
            }
            let observes = if kernel.reads() { Observes::Value(Writes::Always) } else { Observes::Nothing };
            let seen = if kernel.reads() { Seen::Value(old.unwrap_or(i64::MIN)) } else { Seen::Nothing };
            let operation = operation(kind, name(ObjectClass::Variable), operand);
            Ok(Some(Shown { operation, observes, seen, event }))
        }
        InputOp::Acquire => simple(3, name(ObjectClass::Lock), own.find(|&e| matches!(trace.op(e), Op::Acquire(..)))),
        InputOp::AcquireShared => {
            simple(4, name(ObjectClass::Lock), own.find(|&e| matches!(trace.op(e), Op::Acquire(..))))
        }
        InputOp::Release | InputOp::ReleaseShared => {
            simple(5, name(ObjectClass::Lock), own.find(|&e| matches!(trace.op(e), Op::Release(..))))
        }
        InputOp::Fork => simple(6, whose(), own.find(|&e| matches!(trace.op(e), Op::Send(_)))),
        InputOp::Join => simple(7, whose(), own.rfind(|&e| matches!(trace.op(e), Op::Receive(_)))),
        InputOp::Call | InputOp::Return | InputOp::Begin | InputOp::End => Ok(None),
        InputOp::FenceAcquire | InputOp::FenceRelease | InputOp::Fence => Ok(None),
        op => Err(format!("another outcome of {} is not looked for", of_class(op))),
    }
}

/// What an operation is about, in words.
fn of_class(op: InputOp) -> &'static str {
    match op {
        InputOp::Busy | InputOp::BusyShared => "tries to lock",
        InputOp::Branch | InputOp::Send | InputOp::Receive => "system calls",
        _ => match op.class() {
            ObjectClass::Lock => "calls that run once",
            ObjectClass::Condition => "waits on conditions",
            ObjectClass::Semaphore => "waits on semaphores",
            ObjectClass::Latch => "waits for latches and futures",
            ObjectClass::Barrier => "waits at barriers",
            _ => "declared orders",
        },
    }
}
