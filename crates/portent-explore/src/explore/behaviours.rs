//! All behaviours of a small program, with a proof where there is one: the search of `portent-search` over recorded runs.
//!
//! A run gives the local history of each thread: its operations with place, object and what they saw. Everything here errs on one
//! side: what is not known to be explored exactly ends the proof ([`Behaviours::unproven`]), and so does what is not the same in
//! two runs though it should be (an address that depends on who came first at the allocator). Threads are known by who started
//! them, and as the how many-th.

use super::operations::{Before, FAILS, Shown, of_class, place, rounds_differ, shown, stands};
use super::{Behaviours, Event, Explorer, Extent, Options, Phase, SavedSearch, Subject, counters, once, spinning};
use crate::error::Error;
use crate::outcome::{self, SpinKind};
use crate::program::{Plan, Policy};
use crate::run::Run;
use crate::schedule::Schedule;
use portent_order::engine::Effort;
use portent_search::{End, History, Incomplete, SoFar, Step, stuck_cuts};
use portent_trace::{
    FunctionBlocks, InputEvent, InputOp, ObjectClass, SYSTEM_CALLS, StackColumn, TELLING_CALLS, ThreadId, WriteOrder,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
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
/// Where more than so many times as many alternatives are left as there were runs, the search does not come to its end soon.
const STILL_GROWING: usize = 2;
/// Where so many times as many are, a quarter of the runs shows that.
const FAR_OUT_OF_REACH: usize = 200;
/// After this time, too, a search ends that does not come to its end soon: nobody waits longer for a small program, unless asked to.
const SOON: Duration = Duration::from_millis(500);
/// How often a search that goes on is kept.
const KEPT_EVERY: Duration = Duration::from_secs(10);

impl Explorer<'_> {
    /// Searches for all behaviours, if the recorded run is small; once.
    pub(super) fn behaviours(&mut self) -> Result<(), Error> {
        let Some(first) = self.first.clone().filter(|_| !std::mem::replace(&mut self.searched, true)) else {
            return Ok(());
        };
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
        let sleeps = first.run.events.iter().any(|event| matches!(event.op, InputOp::Sleep | InputOp::SemaphoreWait));
        let options = portent_search::Options {
            // Where threads spin, what is behind many rounds differs from what is behind few in nothing but that.
            varied: sleeps,
            deadline: Some(Instant::now() + self.left() - self.left() / RESERVE),
            first_twice: true,
            goals: if everything { usize::MAX } else { MOST_GOALS },
            seed: self.seed(1),
            confirmed: MOST_STUCK,
            ..portent_search::Options::default()
        };
        let earlier = self.options.resume.as_ref().map(SavedSearch::plans).unwrap_or_default();
        let mut subject = Recorded {
            earlier: earlier.len(),
            exact: true,
            longest: most * LONGER,
            share: Instant::now() + self.left() / SHARE,
            soon: Instant::now() + self.patience(SOON),
            saved: SavedSearch::default(),
            kept: Instant::now(),
            failed: None,
            sleeps,
            explorer: self,
            first,
            made: Vec::new(),
            numbers: FxHashMap::default(),
            spins: BTreeSet::new(),
            counters: counters::Kinds::default(),
            granted: BTreeSet::new(),
        };
        // States in which nobody can go on are no behaviours of their own where a run goes on beyond them: each is run, too.
        let mut stuck = Vec::new();
        let mut all_stuck = true;
        let mut watch = |visit: portent_search::Visit<'_, '_, '_>| {
            if visit.is_over {
                let effort = Effort { deadline: options.deadline, ..Effort::default() };
                match stuck_cuts(visit.run, visit.spins, visit.engine, MOST_COMBINATIONS, effort) {
                    Some(cuts) => {
                        let new = |cut: &[usize]| !ends_at(visit.run, cut) && !visit.is_confirmed(cut);
                        stuck.extend(cuts.into_iter().filter(|(cut, _)| new(cut)).map(|(_, found)| {
                            let plan = |schedule| visit.run.plan(visit.made, schedule, 0);
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
        let (spins, granted) = (std::mem::take(&mut subject.spins), std::mem::take(&mut subject.granted));
        let left = |why: &Incomplete| match why {
            Incomplete::Budget(left) => *left as u64,
            _ => 0,
        };
        self.exploration.behaviours = Some(Behaviours {
            seen: explored.behaviours as u64,
            spins,
            granted,
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
        Incomplete::Parts => "accesses of different sizes overlap".into(),
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
    /// Whether threads of the first run sleep until somebody wakes them.
    sleeps: bool,
    /// Variables that are counted and that nobody looks at, as the first run says.
    counters: counters::Kinds,
    /// What a proof rests on, beside loops that only look.
    granted: BTreeSet<&'static str>,
    /// Runs of an earlier search.
    earlier: usize,
    /// Runs with more events are not searched through.
    longest: usize,
    /// Whether all runs so far can be explored exactly.
    exact: bool,
    /// When the search has had its share, where it proves nothing.
    share: Instant,
    /// When it ends where a proof is not near.
    soon: Instant,
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
            Extent::Worthwhile if !provable || failures > 0 => new >= few || Instant::now() > self.soon,
            Extent::WithinTime if !provable || failures > 0 => new >= few || Instant::now() > self.share,
            // On a slow machine, too, half of the runs are made.
            Extent::Worthwhile if new >= few || new >= few / 2 && Instant::now() > self.soon => {
                left > STILL_GROWING * runs
            }
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

impl Recorded<'_, '_> {
    /// Makes a run that was planned.
    fn make(&mut self, plan: &portent_search::Plan) -> Result<Run, Error> {
        let schedule = self.made[plan.like.unwrap_or(0)].schedule(&plan.turns);
        self.follow(plan, &schedule)
    }

    fn follow(&mut self, plan: &portent_search::Plan, schedule: &Schedule) -> Result<Run, Error> {
        let run = self.explorer.program.run(&Plan {
            // Who sleeps is woken in the same order again and again where nobody is interrupted. Elsewhere the shortest way on is
            // as good as any, and where threads spin, chance would make rounds of it that differ for nothing.
            policy: if self.sleeps { Policy::Random } else { Policy::Stay },
            seed: plan.seed,
            schedule: Some(schedule),
            like: Some(&self.first.run),
            limit: Some(self.explorer.limit()),
            silent: true,
            parks: true,
        })?;
        self.explorer.count(Phase::Searched);
        let first = Arc::clone(&self.first);
        // What the others did after a failure is no part of it.
        match run.failed_after() {
            Some(events) => self.explorer.watch(&run.until(events), &first, false),
            None => self.explorer.watch(&run, &first, false),
        }
        Ok(run)
    }

    /// The histories of a run, of which so many events of each thread were planned.
    fn told(&mut self, whole: &Run, planned: &FxHashMap<u32, u64>) -> Result<portent_search::Run, Error> {
        let shortened = spinning::shorten(whole, planned);
        let run = shortened.as_ref().unwrap_or(whole);
        let flagged = once::with_flags(run);
        let run = flagged.as_ref().map_or(run, |(run, _)| run);
        let begun = begin_with_initial(run);
        let (run, first) = begun.as_ref().map_or((run, 0), |(run, first)| (run, *first));
        if run.events.len() > self.longest {
            self.made.push(Made { threads: Vec::new() });
            return Ok(portent_search::Run {
                trace: run.trace(FunctionBlocks::None)?,
                threads: Vec::new(),
                too_long: true,
                followed: false,
                spins: Vec::new(),
                in_parts: Vec::new(),
                inexact: Vec::new(),
            });
        }
        let original = run;
        if self.made.is_empty() && !run.outcome.unused.is_empty() {
            self.counters = counters::of(run, &run.trace(FunctionBlocks::None)?);
        }
        let looked_at = match self.counters.is_empty() {
            true => counters::Kinds::default(),
            false => counters::looked_at(run, &run.trace(FunctionBlocks::None)?, &self.counters),
        };
        // The run as the search sees it: without counters, and which of its events stand for one of those that were recorded.
        let (counted, quiet) = counters::without(run, &self.counters).unzip();
        let (run, quiet) = (counted.as_ref().unwrap_or(run), quiet.unwrap_or_default());
        let spelled = flagged.as_ref().map(|(_, flags)| once::spell(run, flags));
        let seen = spelled.as_ref().map_or(run, |spelled| &spelled.run);
        let stand_for = |at: usize| spelled.as_ref().map_or(at..at + 1, |spelled| spelled.of(at));
        let trace = seen.trace(FunctionBlocks::None)?;
        let mut inexact: BTreeSet<String> = run.outcome.warnings.iter().cloned().collect();
        if self.made.is_empty() {
            // The same for all runs, and it takes a while.
            inexact.extend(self.explorer.program.unexplored(whole));
        }
        inexact.extend(looked_at.iter().map(|kind| format!("{kind} may be looked at while others count it up")));
        if run.outcome.signals {
            inexact.insert("signals could come at other times".into());
        }
        inexact.extend(run.outcome.spins.iter().filter_map(doubt));
        if spelled.as_ref().is_some_and(|spelled| spelled.again) {
            inexact.insert("something that runs once was made anew".into());
        }
        if rounds_differ(seen, &trace) {
            inexact.insert(
                "more threads use a barrier than meet there at a time: who meets whom is not looked for".into(),
            );
        }
        let has = |op: InputOp| run.events.iter().any(|event| event.op == op);
        self.granted.extend(has(InputOp::Arrive).then_some(Behaviours::BARRIERS));
        let sleeps = if run.outcome.spurious { Behaviours::NOTIFIED_OR_ONCE } else { Behaviours::NOTIFIED };
        self.granted.extend(has(InputOp::Sleep).then_some(sleeps));
        let known = self.threads_of(run, &mut inexact);
        let count = 1 + self.numbers.values().copied().max().unwrap_or(0);
        let mut histories: Vec<Option<History>> = (0..count).map(|_| None).collect();
        let mut made: Vec<Option<(u32, Vec<u64>)>> = vec![None; count];
        let mut executed: FxHashMap<ThreadId, u64> = FxHashMap::default();
        let mut before = Before::default();
        let ended = self.ended(run);
        let by_itself = |thread: ThreadId| {
            run.events.iter().any(|event| event.thread == thread && event.op == InputOp::WakeByItself)
        };
        let parked = &run.outcome.parked;
        if parked.iter().any(|other| other.place != parked[0].place) {
            // It ends by one of them.
            inexact.insert("two threads failed in one run, each in its own way".into());
        }
        // All who are not done are told.
        let stuck = |thread: ThreadId| {
            if parked.iter().any(|parked| parked.thread as usize == thread.index()) {
                return Some(End::Failed(FAILS));
            }
            let stuck = run.outcome.deadlock.as_ref().or_else(|| (!parked.is_empty()).then_some(&run.outcome.left))?;
            Some(
                stuck
                    .iter()
                    .find(|stuck| stuck.thread as usize == thread.index())
                    .map_or(End::Done, |s| stands(s.waits, run.outcome.spurious && !by_itself(thread))),
            )
        };
        for (&thread, &number) in &known {
            let end = if ended.contains(&thread) { End::Done } else { stuck(thread).unwrap_or(End::Cut) };
            histories[number] = Some(History { thread, steps: Vec::new(), end, born: None });
            made[number] = Some((thread.index() as u32, Vec::new()));
        }
        let mut places = FxHashMap::default();
        let mut did = vec![None; run.events.len()];
        let mut called = BTreeSet::new();
        let mut in_parts = Vec::new();
        for (at, event) in run.events.iter().enumerate() {
            if at < first {
                shown(seen, &trace, stand_for(at).start, 0, &known, &mut before).ok();
                continue;
            }
            let events = executed.entry(event.thread).or_default();
            *events += 1;
            let Some(&number) = known.get(&event.thread) else { continue };
            if event.op == InputOp::Send {
                match run.names.name(ObjectClass::Token, event.object) {
                    TELLING_CALLS => continue,
                    SYSTEM_CALLS => {
                        // It matters what it gave only if the thread does something after it.
                        called.insert(number);
                        continue;
                    }
                    _ => {}
                }
            }
            let place = place(run, at, &mut places);
            for part in stand_for(at) {
                let shown = match quiet.contains(&at) {
                    true => Ok(counters::step(original, &trace, (at, part), place)),
                    false => shown(seen, &trace, part, place, &known, &mut before),
                };
                match shown {
                    Ok(Some(Shown { operation, observes, seen, event, parts })) => {
                        in_parts.extend(parts);
                        if called.contains(&number) {
                            inexact.insert(format!("another outcome of {} is not looked for", of_class(InputOp::Send)));
                        }
                        did[at] = Some((operation, seen));
                        // Where a thread has done nothing yet, only this says that it is there.
                        let child = run.events[at].op == InputOp::Fork;
                        let child = child.then(|| known.get(&ThreadId::new(run.events[at].object as usize)));
                        if let Some(Some(history)) = child.flatten().and_then(|&child| histories.get_mut(child)) {
                            history.born = Some(event);
                        }
                        if let (Some(history), Some((_, after))) = (&mut histories[number], &mut made[number]) {
                            history.steps.push(Step { operation, observes, seen, event });
                            history.born = None;
                            after.push(*events);
                        }
                    }
                    Ok(None) => {}
                    Err(why) => drop(inexact.insert(why)),
                }
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
            in_parts,
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
        let mut ended: BTreeSet<ThreadId> =
            run.outcome.ended.iter().map(|&thread| ThreadId::new(thread as usize)).collect();
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
    let (names, mut outcome) = (run.names.clone(), run.outcome.clone());
    outcome.unused.iter_mut().for_each(|(at, _)| *at += count as u32);
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
