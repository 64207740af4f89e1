//! Prediction: the passes over a trace, one after the other, and their answers put together.
//!
//! A trace that fits one window is examined there, completely. For longer ones the streaming tier goes first: it names
//! every group of races, violations and deadlocks that there can be at all, and asks about the best instance of each on
//! its causal past. Then the sync-preserving sweep looks for races and deadlocks in the whole trace at once; then every
//! instance of what is still open is asked about, and every read that could see another write.
//!
//! **The law**: for every kind, model, window and budget, every goal that a reordering of the whole trace reaches has a
//! finding (of its group) or is covered by an entry of [`Prediction::incomplete`]. tests/law.rs holds predictions to it.
//!
//! To add a pass that finds schedules by itself, give them to [`Sweeper::adopt`] beside `far::add`: it checks them, and
//! their groups are not asked about again.

use crate::bug::BugKind;
use crate::combine::{findings, may_read, merge, sort_and_name};
use crate::facts::Facts;
use crate::far;
use crate::finding::{Finding, Incomplete, MayRead, Why};
use crate::left::Left;
use crate::observed::relaxed_races;
use crate::other_branch;
use crate::property::PropertyTold;
use crate::stream::{Streamed, Tier};
use crate::sweep::{Open, Stop, Sweeper, Task};
use portent_order::engine::{Effort, Tiers};
use portent_order::{Goal, Model};
use portent_trace::Trace;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What to predict, and with how much effort.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which kinds of bug.
    pub kinds: Vec<BugKind>,
    /// What reads in a reordering must see.
    pub model: Model,
    /// A trace of so many events is examined as a whole.
    pub window: usize,
    /// Events that one question about a longer trace may look at.
    pub reach: usize,
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
    /// The same where formulas are executed: what a question costs grows faster with the window.
    pub const SYMBOLIC_WINDOW: usize = 1_000;

    /// Events that one question about a longer trace may look at, unless told otherwise.
    pub const REACH: usize = 100_000;

    /// Events per window that suit a trace.
    pub fn window_for(trace: &Trace, model: Model) -> usize {
        let executed = model == Model::Values && trace.symbols().is_some();
        if executed { Self::SYMBOLIC_WINDOW } else { Self::WINDOW }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kinds: BugKind::ALL.to_vec(),
            model: Model::Reads,
            window: Self::WINDOW,
            reach: Self::REACH,
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
    /// What the streaming tier did, for traces longer than a window.
    pub streamed: Option<Streamed>,
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
    /// An instance of each group of a trace longer than a window that `incomplete` counts.
    pub open: Vec<Goal>,
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

/// Predicts what other interleavings of the run contain.
pub fn predict(trace: &Trace, options: &Options, control: &Control<'_>) -> Prediction {
    let started = Instant::now();
    let until = |budget: Duration| started.checked_add(budget);
    // A share of the time is for branches that go the other way, if there are any.
    let shared =
        options.budget.map(|budget| if other_branch::has_any(trace, options) { budget * 4 / 5 } else { budget });
    let stop = Stop::new(control.interrupt, shared.and_then(until));
    let facts = Facts::new(trace);
    let mut sweeper = Sweeper::new(&facts, options, control, &stop);
    let mut prediction = Prediction::default();
    let fits = trace.len() <= options.window.max(2);
    if fits {
        let span = 0..trace.len();
        let examined = sweeper.sweep(&[Task { span, fresh: 0 }], &Open::all());
        (prediction.stats.windows, prediction.stats.windows_in_all) = (examined as u64, 1);
    } else {
        let mut tier = Tier::start(&sweeper);
        tier.run(&mut sweeper, far::add);
        let told = tier.finish(&sweeper);
        prediction.stats.streamed = Some(told.streamed);
        prediction.partial = stop.why().filter(|_| !told.incomplete.is_empty());
        prediction.incomplete = told.incomplete;
        prediction.open = told.open;
        prediction.stats.tiers.add(&sweeper.spent);
    }
    let (mut groups, done) = merge(std::mem::take(&mut sweeper.outcomes), &mut prediction);
    if fits {
        for kind in BugKind::ALL.into_iter().filter(|kind| options.kinds.contains(kind)) {
            let left = Left::of(&facts, kind);
            let missed = left.all.saturating_sub(u128::from(done[kind as usize]));
            if missed > 0 || !left.exact {
                prediction.partial = prediction.partial.or(stop.why());
                prediction.incomplete.push(left.entry(kind, missed, stop.why().unwrap_or(Why::Budget)));
            }
        }
    } else {
        // A group that has a finding is not asked about again.
        groups.values_mut().for_each(|group| group.exact = false);
    }
    let known = groups.keys().cloned().collect();
    prediction.findings = findings(&facts, options.model, groups, &mut prediction.incomplete);
    if options.kinds.contains(&BugKind::Race) {
        let relaxed = relaxed_races(&facts, options.model, &prediction.findings);
        prediction.findings.extend(relaxed);
    }
    let last = Stop::new(control.interrupt, options.budget.and_then(until));
    other_branch::examine(&facts, options, &last, known, &mut prediction);
    prediction
        .incomplete
        .sort_by_key(|entry| (entry.kind, entry.status, entry.why, entry.events.is_none(), entry.events.clone()));
    sort_and_name(trace, &mut prediction.findings);
    if options.kinds.contains(&BugKind::Nondeterminism) {
        prediction.may_read = may_read(&prediction.findings);
    }
    prediction.stats.candidates = done.iter().sum();
    prediction.stats.time = started.elapsed();
    prediction
}
