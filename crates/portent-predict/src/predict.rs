//! Prediction: the trace cut into windows, the windows spread over threads, the answers put together.
//!
//! Windows are made one after the other, examined in any order, and merged in theirs: results do not depend on the
//! number of threads. What is left out is counted, never enumerated: candidates that fit in no window are the
//! candidates of the trace less those of the windows.

use crate::ask::{Asker, Group, Outcome};
use crate::facts::Facts;
use crate::finding::{
    BugKind, Evidence, Finding, Flags, Form, Incomplete, Key, MayRead, Role, Why, Witness, WitnessType, event_place,
    name_findings, places,
};
use crate::hb::{self, Hindsight, Rear};
use crate::pane::Pane;
use crate::{atomicity, deadlock, nondeterminism, race};
use portent_order::engine::{Effort, Engine, Tiers, View};
use portent_order::{Goal, Model};
use portent_trace::{LocId, Op, Trace};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What to predict, and with how much effort.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which kinds of bug.
    pub kinds: Vec<BugKind>,
    /// What reads in a reordering must see.
    pub model: Model,
    /// Events per window.
    pub window: usize,
    /// Stop after this long.
    pub budget: Option<Duration>,
    /// Threads to use.
    pub jobs: usize,
    /// Conflicts of the search that one candidate may cost.
    pub conflicts: u64,
}

impl Options {
    /// Events per window, unless told otherwise.
    pub const WINDOW: usize = 10_000;
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kinds: BugKind::ALL.to_vec(),
            model: Model::Reads,
            window: Self::WINDOW,
            budget: None,
            jobs: 1,
            conflicts: Effort::default().conflicts,
        }
    }
}

/// How the caller watches and stops a prediction.
#[derive(Clone, Copy, Default)]
pub struct Control<'a> {
    /// Set it to stop early with what is known by then.
    pub interrupt: Option<&'a AtomicBool>,
    /// Told how many events are done, of how many.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// What the prediction cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// What the engine's tiers did.
    pub tiers: Tiers,
    /// Windows examined.
    pub windows: u64,
    /// Windows the trace has.
    pub windows_in_all: u64,
    /// Candidates decided or dismissed.
    pub candidates: u64,
    /// Of these, not asked about because their group had enough instances.
    pub spared: u64,
    /// How long it took.
    pub time: Duration,
}

/// What was found, and what is not known.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// The bugs, in order of kind and place.
    pub findings: Vec<Finding>,
    /// What was not examined or not decided.
    pub incomplete: Vec<Incomplete>,
    /// Why it stopped before the end, if it did.
    pub partial: Option<Why>,
    /// Where the values of reads may come from, by source location.
    pub may_read: Vec<MayRead>,
    /// Errors of the engine itself: witnesses that the checker refused. They are not among the findings.
    pub errors: Vec<String>,
    /// What it cost.
    pub stats: Stats,
}

/// When to stop.
pub(crate) struct Stop<'a> {
    interrupt: Option<&'a AtomicBool>,
    deadline: Option<Instant>,
    over: AtomicBool,
}

impl Stop<'_> {
    /// Why to stop, if so.
    pub(crate) fn why(&self) -> Option<Why> {
        if self.interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Some(Why::Interrupted);
        }
        let deadline = self.deadline?;
        if self.over.load(Ordering::Relaxed) {
            return Some(Why::Budget);
        }
        let over = Instant::now() >= deadline;
        self.over.store(over, Ordering::Relaxed);
        over.then_some(Why::Budget)
    }
}

/// Groups that have a witness, with the first window that found it.
#[derive(Default)]
pub(crate) struct Known(Mutex<FxHashMap<Key, usize>>);

impl Known {
    /// Whether `window` should make a witness of the group: no earlier one has.
    pub(crate) fn claim(&self, key: &Key, window: usize) -> bool {
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match known.get_mut(key) {
            Some(first) if *first < window => false,
            Some(first) => {
                *first = window;
                true
            }
            None => {
                known.insert(key.clone(), window);
                true
            }
        }
    }
}

/// The windows of a trace, made on demand.
struct Windows<'t, I> {
    views: I,
    rear: Option<Rear<'t>>,
    index: usize,
    end: usize,
}

struct Opened<'t> {
    index: usize,
    view: View<'t>,
    fresh: usize,
    hindsight: Option<Hindsight>,
}

impl<'t, I: Iterator<Item = View<'t>>> Windows<'t, I> {
    fn next(&mut self) -> Option<Opened<'t>> {
        let view = self.views.next()?;
        let span = view.span();
        let fresh = std::mem::replace(&mut self.end, span.first + span.len);
        let hindsight = self.rear.as_mut().map(|rear| rear.window(span.first..span.first + span.len));
        self.index += 1;
        Some(Opened { index: self.index - 1, view, fresh, hindsight })
    }
}

/// The spans of the windows, as the engine cuts them.
fn spans(events: usize, window: usize) -> Vec<std::ops::Range<usize>> {
    let len = window.max(2);
    let mut spans = Vec::new();
    let mut first = 0;
    loop {
        spans.push(first..(first + len).min(events));
        if first + len >= events {
            return spans;
        }
        first += len / 2;
    }
}

/// Predicts what other interleavings of the run contain.
pub fn predict(trace: &Trace, options: &Options, control: &Control<'_>) -> Prediction {
    let started = Instant::now();
    let deadline = options.budget.and_then(|budget| started.checked_add(budget));
    let stop = Stop { interrupt: control.interrupt, deadline, over: AtomicBool::new(false) };
    let facts = Facts::new(trace);
    let has = |kind| options.kinds.contains(&kind);
    let windows = Mutex::new(Windows {
        views: View::windows(trace, options.model, options.window),
        rear: has(BugKind::Race).then(|| Rear::new(trace)),
        index: 0,
        end: 0,
    });
    let known = Known::default();
    let gathered: Mutex<BTreeMap<usize, (Outcome, Tiers)>> = Mutex::default();
    let effort = Effort { conflicts: options.conflicts, deadline };
    let work = || {
        while stop.why().is_none() {
            let opened = windows.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            let Some(Opened { index, view, fresh, hindsight }) = opened else { return };
            let span = view.span();
            let span = span.first..span.first + span.len;
            let end = span.end;
            let pane = Pane { facts: &facts, span, fresh, hindsight: hindsight.as_ref() };
            let mut engine = Engine::new(&view);
            let mut outcome = Outcome::default();
            let mut asker = Asker {
                facts: &facts,
                engine: &mut engine,
                model: options.model,
                effort,
                stop: &stop,
                outcome: &mut outcome,
                known: &known,
                window: index,
            };
            for kind in BugKind::ALL.into_iter().filter(|&kind| has(kind)) {
                match kind {
                    BugKind::Race => race::examine(&pane, &mut asker),
                    BugKind::Deadlock => deadlock::examine(&pane, &mut asker),
                    BugKind::Atomicity => atomicity::examine(&pane, &mut asker),
                    BugKind::Nondeterminism => nondeterminism::examine(&pane, &mut asker),
                }
            }
            let tiers = engine.tiers();
            gathered.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(index, (outcome, tiers));
            if let Some(progress) = control.progress {
                progress(end as u64, trace.len() as u64);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.jobs.max(1) {
            scope.spawn(work);
        }
        work();
    });
    let gathered = gathered.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut prediction = Prediction::default();
    let (groups, done) = merge(gathered, &mut prediction);
    prediction.stats.windows_in_all = spans(trace.len(), options.window).len() as u64;
    let unfinished = prediction.stats.windows < prediction.stats.windows_in_all;
    let mut cut_short = None;
    for kind in BugKind::ALL.into_iter().filter(|&kind| has(kind)) {
        let left = Left::of(&facts, kind, options.window);
        let missed = left.inside.saturating_sub(u128::from(done[kind as usize]));
        if missed > 0 {
            let why = stop.why().unwrap_or(Why::Budget);
            cut_short = cut_short.or(stop.why());
            prediction.incomplete.push(left.entry(kind, missed, why));
        }
        if left.outside > 0 || !left.exact {
            prediction.incomplete.push(left.entry(kind, left.outside, Why::Window));
        }
    }
    prediction.partial = cut_short.or_else(|| stop.why().filter(|_| unfinished));
    prediction.incomplete.sort_by_key(|entry| (entry.kind, entry.why, entry.events.is_none()));
    prediction.findings = findings(&facts, options.model, groups, &mut prediction.errors);
    if has(BugKind::Race) {
        let relaxed = relaxed_races(&facts, options.model, &prediction.findings);
        prediction.findings.extend(relaxed);
    }
    sort_and_name(trace, &mut prediction.findings);
    if has(BugKind::Nondeterminism) {
        prediction.may_read = may_read(&prediction.findings);
    }
    prediction.stats.candidates = done.iter().sum();
    prediction.stats.time = started.elapsed();
    prediction
}

/// Puts the windows' outcomes together, in order.
fn merge(
    gathered: BTreeMap<usize, (Outcome, Tiers)>,
    prediction: &mut Prediction,
) -> (FxHashMap<Key, Group>, [u64; 4]) {
    /// Undecided candidates are listed one by one up to this many of a kind.
    const LISTED: usize = 100;
    let mut groups: FxHashMap<Key, Group> = FxHashMap::default();
    let mut done = [0; 4];
    let mut more = [0u64; 4];
    let mut listed = [0usize; 4];
    for (_, (outcome, tiers)) in gathered {
        prediction.stats.windows += 1;
        prediction.stats.tiers.add(&tiers);
        prediction.stats.spared += outcome.spared;
        prediction.errors.extend(outcome.rejected);
        done.iter_mut().zip(outcome.done).for_each(|(all, one)| *all += one);
        for undecided in outcome.undecided {
            let k = undecided.kind as usize;
            listed[k] += 1;
            if listed[k] > LISTED {
                more[k] += 1;
                continue;
            }
            prediction.incomplete.push(Incomplete {
                kind: undecided.kind,
                events: Some(undecided.events),
                count: 1,
                at_least: false,
                why: Why::Budget,
                what: undecided.what,
            });
        }
        for (key, group) in outcome.groups {
            match groups.entry(key) {
                std::collections::hash_map::Entry::Occupied(mut earlier) => earlier.get_mut().absorb(group),
                std::collections::hash_map::Entry::Vacant(slot) => drop(slot.insert(group)),
            }
        }
    }
    for kind in BugKind::ALL.into_iter().filter(|&kind| more[kind as usize] > 0) {
        let what = format!("more {} candidates that were not decided", kind.name());
        let count = more[kind as usize];
        prediction.incomplete.push(Incomplete { kind, events: None, count, at_least: false, why: Why::Budget, what });
    }
    (groups, done)
}

/// How many candidates of a kind the windows hold, and how many fit in none.
struct Left {
    inside: u128,
    outside: u128,
    /// Whether all were counted.
    exact: bool,
}

impl Left {
    fn of(facts: &Facts<'_>, kind: BugKind, window: usize) -> Left {
        let whole = Pane::whole(facts);
        let all = 0..facts.trace.len();
        let mut exact = true;
        let mut count = |pane: &Pane<'_, '_>, range: std::ops::Range<usize>| match kind {
            BugKind::Race => race::count(pane, range),
            BugKind::Deadlock => {
                let (cycles, complete) = deadlock::count(pane, range);
                exact &= complete;
                cycles
            }
            BugKind::Atomicity => atomicity::count(pane, range),
            BugKind::Nondeterminism => nondeterminism::count_pairs(pane, range),
        };
        let mut inside = 0u128;
        let mut fresh = 0;
        for span in spans(facts.trace.len(), window) {
            let pane = Pane { facts, fresh, span: span.clone(), hindsight: None };
            fresh = span.end;
            let both = count(&pane, span.clone()).saturating_sub(count(&pane, pane.stale()));
            inside += both
                + match kind {
                    BugKind::Deadlock => deadlock::count_waits(&pane),
                    BugKind::Nondeterminism => nondeterminism::count_single(&pane),
                    _ => 0,
                };
        }
        let total = count(&whole, all)
            + match kind {
                BugKind::Deadlock => facts.trace.pairings().len() as u128,
                BugKind::Nondeterminism => nondeterminism::count_single_everywhere(facts),
                _ => 0,
            };
        Left { inside, outside: total.saturating_sub(inside), exact }
    }

    fn entry(&self, kind: BugKind, count: u128, why: Why) -> Incomplete {
        let what = match why {
            Why::Window => format!("{} candidates whose events fit in no window", kind.name()),
            Why::Budget => format!("{} candidates not examined within the budget", kind.name()),
            Why::Interrupted => format!("{} candidates not examined before the interruption", kind.name()),
        };
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        Incomplete { kind, events: None, count, at_least: !self.exact, why, what }
    }
}

/// Groups as findings, without ids.
fn findings(facts: &Facts<'_>, model: Model, groups: FxHashMap<Key, Group>, errors: &mut Vec<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, group) in groups {
        let Group { instances, exact, flags, goal, witness, .. } = group;
        let Some(schedule) = witness else {
            // The window that was to make it ran out of budget, or its witness was refused.
            errors.push(format!("{goal:?} was found feasible in {model}, but there is no witness of it"));
            continue;
        };
        let places = places(facts, &goal);
        let kind = BugKind::of(&goal);
        let form = match goal {
            Goal::Deadlock { .. } => Some(Form::Cycle),
            Goal::LostWakeup { .. } => Some(Form::LostWakeup),
            _ => None,
        };
        let pattern = match goal {
            Goal::Atomicity { first, remote, second } => Some(atomicity::pattern(facts.trace, first, remote, second)),
            _ => None,
        };
        let witness_type = match goal {
            Goal::Nondeterminism { read, .. } => Some(nondeterminism::shape(facts, model, read, &schedule)),
            Goal::FinalValue { .. } => Some(WitnessType::Overwritten),
            _ => None,
        };
        let steps = facts.steps.convert(facts.trace, &goal, &schedule);
        let mut objects: Vec<&str> = places.iter().map(|place| place.object.as_str()).collect();
        objects.dedup();
        found.push(Finding {
            id: String::new(),
            kind,
            form,
            evidence: Evidence::Predicted,
            model: Some(model),
            object: objects.join(", "),
            places,
            instances,
            instances_exact: exact,
            flags,
            witness_type,
            pattern,
            goal: Some(goal),
            witness: Some(Witness { schedule, steps }),
        });
    }
    found
}

/// In the order of the reports, with ids.
fn sort_and_name(trace: &Trace, findings: &mut [Finding]) {
    findings.sort_by_cached_key(|finding| {
        let events: Vec<Option<u32>> = finding.places.iter().map(|place| place.event).collect();
        (finding.kind, finding.form, events, finding.object.clone())
    });
    name_findings(trace, findings);
}

/// Races of the observed order that nothing but relaxed atomics orders, where no race was predicted.
fn relaxed_races(facts: &Facts<'_>, model: Model, known: &[Finding]) -> Vec<Finding> {
    let is_relaxed = |op: Op| match op {
        Op::Read(_, order) => order == portent_trace::ReadOrder::Relaxed,
        Op::Write(_, order) => order == portent_trace::WriteOrder::Relaxed,
        Op::Update(_, order) => order != portent_trace::UpdateOrder::SeqCst,
        _ => false,
    };
    if !facts.trace.events().any(|event| is_relaxed(event.op)) {
        return Vec::new();
    }
    let keys: BTreeSet<Key> = known.iter().filter_map(|f| f.goal.as_ref()).map(|goal| Key::of(facts, goal)).collect();
    let mut races = observed_races(facts.trace, Some(model), |race| race.relaxed_only);
    races.retain(|(key, _)| !keys.contains(key));
    races.into_iter().map(|(_, finding)| finding).collect()
}

/// What a happens-before detector reports, grouped.
fn observed_races(trace: &Trace, model: Option<Model>, wanted: impl Fn(&hb::Unordered) -> bool) -> Vec<(Key, Finding)> {
    let mut groups: BTreeMap<Key, Finding> = BTreeMap::new();
    hb::detect(trace, |race| {
        if !wanted(&race) {
            return;
        }
        let flags = Flags { relaxed_only: race.relaxed_only, ..Flags::default() };
        let group = groups.entry(Key::race(trace, race.first, race.second));
        let finding = group.or_insert_with(|| {
            let places =
                vec![event_place(trace, Role::First, race.first), event_place(trace, Role::Second, race.second)];
            Finding {
                id: String::new(),
                kind: BugKind::Race,
                form: None,
                evidence: Evidence::Observed,
                model,
                object: places[0].object.clone(),
                places,
                instances: 0,
                instances_exact: true,
                flags,
                witness_type: None,
                pattern: None,
                goal: None,
                witness: None,
            }
        });
        finding.instances += 1;
        finding.flags = finding.flags.and(flags);
    });
    // The detector keeps the last access of each thread only: it does not claim to count every pair.
    groups.values_mut().for_each(|finding| finding.instances_exact = false);
    groups.into_iter().collect()
}

/// The races that a happens-before detector reports on the observed order, for comparison.
pub fn by_happens_before(trace: &Trace) -> Prediction {
    let started = Instant::now();
    let mut findings: Vec<Finding> = observed_races(trace, None, |_| true).into_iter().map(|(_, race)| race).collect();
    sort_and_name(trace, &mut findings);
    let stats = Stats { time: started.elapsed(), ..Stats::default() };
    Prediction { findings, stats, ..Prediction::default() }
}

/// For each read location, where its values come from and could come from.
fn may_read(findings: &[Finding]) -> Vec<MayRead> {
    let mut from: BTreeMap<LocId, (BTreeSet<LocId>, bool)> = BTreeMap::new();
    for finding in findings.iter().filter(|f| f.kind == BugKind::Nondeterminism) {
        let [read, sources @ ..] = finding.places.as_slice() else { continue };
        let Some(read) = read.location else { continue };
        let (locations, initial) = from.entry(read).or_default();
        for source in sources {
            match source.location {
                Some(location) => drop(locations.insert(location)),
                None => *initial = true,
            }
        }
    }
    let rows = from.into_iter();
    rows.map(|(read, (from, initial))| MayRead { read, from: from.into_iter().collect(), initial }).collect()
}
