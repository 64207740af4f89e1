//! Prediction: the trace cut into windows, the windows spread over threads, the answers put together.
//!
//! Windows are made one after the other, examined in any order, and merged in theirs: results do not depend on the
//! number of threads. What is left out is counted, never enumerated: candidates that fit in no window are the
//! candidates of the trace less those of the windows.

use crate::ask::{Asker, Group, Outcome};
use crate::facts::Facts;
use crate::finding::{BugKind, Evidence, Finding, Form, Incomplete, MayRead, Why, Witness, WitnessType, places};
use crate::hb::{Hindsight, Rear};
use crate::key::{Key, name_findings};
use crate::left::{Left, spans};
use crate::observed::relaxed_races;
use crate::pane::Pane;
use crate::property::PropertyTold;
use crate::{atomicity, deadlock, nondeterminism, race};
use portent_order::engine::{Effort, Engine, Tiers, View};
use portent_order::{Goal, Model};
use portent_trace::{LocId, Trace};
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
    /// What came of each property.
    pub properties: Vec<PropertyTold>,
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

impl<'a> Stop<'a> {
    pub(crate) fn new(interrupt: Option<&'a AtomicBool>, deadline: Option<Instant>) -> Self {
        Stop { interrupt, deadline, over: AtomicBool::new(false) }
    }
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

/// Predicts what other interleavings of the run contain.
pub fn predict(trace: &Trace, options: &Options, control: &Control<'_>) -> Prediction {
    let started = Instant::now();
    let deadline = options.budget.and_then(|budget| started.checked_add(budget));
    let stop = Stop::new(control.interrupt, deadline);
    let facts = Facts::new(trace);
    let has = |kind| options.kinds.contains(&kind);
    let windows = Mutex::new(Windows {
        views: View::windows(trace, options.model, options.window),
        rear: has(BugKind::Race).then(|| Rear::new(trace)),
        index: 0,
        end: 0,
    });
    let windows_in_all = spans(trace.len(), options.window).len();
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
                view: &view,
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
                    // Examined by the lattice, on the whole trace.
                    BugKind::Property => {}
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
        for _ in 1..options.jobs.min(windows_in_all) {
            scope.spawn(work);
        }
        work();
    });
    let gathered = gathered.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut prediction = Prediction::default();
    let (groups, done) = merge(gathered, &mut prediction);
    prediction.stats.windows_in_all = windows_in_all as u64;
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
    prediction.findings = findings(&facts, options.model, groups, &mut prediction.incomplete);
    prediction.incomplete.sort_by_key(|entry| (entry.kind, entry.why, entry.events.is_none(), entry.events.clone()));
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

/// Groups as findings, without ids.
fn findings(
    facts: &Facts<'_>,
    model: Model,
    groups: FxHashMap<Key, Group>,
    incomplete: &mut Vec<Incomplete>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, group) in groups {
        let Group { instances, exact, flags, goal, witness, .. } = group;
        let Some(schedule) = witness else {
            // The window that was to make it ran out of budget, or its witness was refused, which is said elsewhere.
            incomplete.push(Incomplete {
                kind: BugKind::of(&goal),
                events: Some(places(facts, &goal).iter().filter_map(|place| place.event).collect()),
                count: instances,
                at_least: !exact,
                why: Why::Budget,
                what: format!("{} that is feasible, but whose witness was not made", BugKind::of(&goal).name()),
            });
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
            property: None,
        });
    }
    found
}

/// In the order of the reports, with ids.
pub(crate) fn sort_and_name(trace: &Trace, findings: &mut [Finding]) {
    findings.sort_by_cached_key(|finding| {
        let events: Vec<Option<u32>> = finding.places.iter().map(|place| place.event).collect();
        (finding.kind, finding.form, events, finding.object.clone())
    });
    name_findings(trace, findings);
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
