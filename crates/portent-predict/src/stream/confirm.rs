//! From candidates to findings: which instances of a group are asked about, and what becomes of the group.
//!
//! 1. What was observed, and the best instance of each group, on its causal past (`causal`).
//! 2. (In `predict`:) the sync-preserving sweep.
//! 3. Every instance of what is still open that clocks and locks do not refute (`causal::Audit`), near ones first.
//! 4. What only the end of the trace can tell, and in `values` what is open then, is asked of the trace's last events and of the
//!    whole, if that is not too long; else, in `values`, of windows, which show but do not refute.
//!
//! A group is **confirmed** if it has a finding and **refuted** if each of its instances is. If an instance was asked about
//! and is neither, or if there are more than are looked at, it is **undecided**; if time ran out before, it was **not
//! examined**. These two are counted and shown.

use super::happened::observed;
use super::instances::collect;
use super::{Candidate, Figures, candidates_until};
use crate::bug::BugKind;
use crate::causal::{Answer, Ask, Audit, Audited, Causal};
use crate::finding::{Incomplete, Status, Why, places, whereabouts};
use crate::key::Key;
use crate::predict::Options;
use crate::spread::spread;
use crate::sweep::{Open, Sweeper, windows};
use portent_order::engine::{Engine, Tiers, View};
use portent_order::{Goal, Model, Schedule, Verdict, Writer};
use portent_trace::Trace;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Instances of a group that may stay undecided before no more are asked about.
const PATIENCE: usize = 4;
/// Undecided groups of a kind that are shown one by one.
const LISTED: usize = 20;

/// Events of a trace that `values` looks at as a whole, and of one in which formulas are executed.
const WHOLE: [usize; 2] = [20_000, 2_000];

/// What the streaming tier did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streamed {
    /// What the pass over the events did.
    pub figures: Figures,
    /// Groups of candidates that the order engine found feasible.
    pub confirmed: u64,
    /// Groups that are proven to be impossible.
    pub refuted: u64,
    /// Groups that were asked about and are neither.
    pub undecided: u64,
    /// Groups that were not asked about, for lack of time.
    pub not_examined: u64,
    /// Questions about instances.
    pub asked: u64,
    /// How long finding instances and asking about them took.
    pub time: Duration,
}

/// What is known of a group that has no finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Refuted,
    Undecided,
}

struct Group {
    candidate: Candidate,
    kind: BugKind,
    key: Key,
    instances: Vec<Goal>,
    /// Whether there may be other instances.
    more: bool,
    state: State,
}

/// What came of asking about instances of a group.
struct Asked {
    shown: Option<(Goal, Schedule)>,
    /// Instances that are neither shown nor refuted.
    left: Vec<Goal>,
    /// Whether all were asked about.
    finished: bool,
    questions: u64,
    tiers: Tiers,
}

/// The streaming tier of a prediction, from its pass over the events to its last question.
pub(crate) struct Tier {
    groups: Vec<Group>,
    complete: [bool; 4],
    streamed: Streamed,
}

/// The engines of a model that look at causal pasts.
struct Engines<'a, 't> {
    /// Refutes.
    refuting: Causal<'a, 't>,
    /// Shows, where that is another: in `values`, what `reads` can show is a good guess, and what `sync` refutes is refuted.
    showing: Option<Causal<'a, 't>>,
    model: Model,
}

impl<'a, 't> Engines<'a, 't> {
    fn new(sweeper: &Sweeper<'a, 't>, stop: &dyn Fn() -> bool) -> Option<Self> {
        let (facts, model, reach) = (sweeper.facts, sweeper.options.model, sweeper.options.reach);
        let of = |model| Causal::new(facts, model, reach, stop);
        Some(match model {
            Model::Values => Engines { refuting: of(Model::Sync)?, showing: Some(of(Model::Reads)?), model },
            Model::Reads | Model::Sync => Engines { refuting: of(model)?, showing: None, model },
        })
    }

    /// Whether a read would see the value it saw: in `values` that is no change, unless formulas say otherwise.
    fn changes_nothing(&self, trace: &Trace, goal: &Goal) -> bool {
        let Goal::Nondeterminism { read, challenger: Writer::Event(c) } = *goal else { return false };
        // What an update saw is not recorded with it.
        let saw = trace.value(read).filter(|_| !trace.op(read).writes());
        self.model == Model::Values && trace.symbols().is_none() && saw.is_some() && saw == trace.value(c)
    }

    /// Asks about instances, until one is shown.
    fn ask(&self, instances: &[Goal], quick: bool, sweeper: &Sweeper<'_, '_>) -> Asked {
        let mut asked = Asked { shown: None, left: Vec::new(), finished: false, questions: 0, tiers: Tiers::default() };
        let effort = sweeper.effort();
        for goal in instances {
            if sweeper.stop.why().is_some() || asked.left.len() >= PATIENCE {
                return asked;
            }
            asked.questions += 1;
            if self.changes_nothing(sweeper.facts.trace, goal) {
                continue;
            }
            let show = self.showing.is_none().then_some(self.model);
            let mut answer = self.refuting.ask(goal, Ask { refute: true, show, quick, effort }, &mut asked.tiers);
            if let (Answer::Undecided, Some(showing)) = (&answer, &self.showing) {
                let ask = Ask { refute: false, show: Some(self.model), quick, effort };
                answer = showing.ask(goal, ask, &mut asked.tiers);
            }
            match answer {
                Answer::Shown(schedule) => {
                    asked.shown = Some((goal.clone(), schedule));
                    return asked;
                }
                Answer::Refuted => {}
                Answer::Undecided => asked.left.push(goal.clone()),
            }
        }
        asked.finished = true;
        asked
    }
}

impl Tier {
    /// Passes over the trace for candidates.
    pub(crate) fn start(sweeper: &Sweeper<'_, '_>) -> Self {
        let facts = sweeper.facts;
        let stop = || sweeper.stop.why().is_some();
        let found = candidates_until(facts.trace, &sweeper.options.kinds, &stop);
        let mut tier = Tier {
            groups: Vec::with_capacity(found.groups.len()),
            complete: found.complete,
            streamed: Streamed { figures: found.figures, ..Streamed::default() },
        };
        for candidate in found.groups {
            let (kind, key) = (BugKind::of(&candidate.goal), Key::of(facts, &candidate.goal));
            tier.groups.push(Group { candidate, kind, key, instances: Vec::new(), more: true, state: State::Open });
        }
        tier
    }

    /// Everything there is to ask; `between` adds what other passes find once the best instances have been asked about.
    pub(crate) fn run<'a, 't>(&mut self, sweeper: &mut Sweeper<'a, 't>, between: impl FnOnce(&mut Sweeper<'a, 't>)) {
        let started = Instant::now();
        let stopper = sweeper.stop;
        let stop = || stopper.why().is_some();
        self.seek(sweeper);
        self.show_observed(sweeper);
        let changes = sweeper.options.kinds.contains(&BugKind::Nondeterminism);
        if self.still_open(sweeper).is_empty() && !changes {
            between(sweeper);
        } else if let Some(engines) = Engines::new(sweeper, &stop) {
            self.ask(sweeper, &engines, true);
            between(sweeper);
            self.audit(sweeper, &engines, &stop);
            self.ask(sweeper, &engines, false);
            if changes {
                match engines.refuting.changes(&stop) {
                    Some(changes) => self.add_changes(sweeper, &engines, changes),
                    None => self.complete[BugKind::Nondeterminism as usize] = false,
                }
            }
        } else {
            self.complete[BugKind::Nondeterminism as usize] = false;
        }
        let whole = self.ask_to_the_end(sweeper);
        if sweeper.options.model == Model::Values && !whole {
            self.ask_windows(sweeper);
        }
        self.streamed.time = started.elapsed();
    }

    /// Groups that are neither found nor refuted.
    fn still_open(&self, sweeper: &Sweeper<'_, '_>) -> Vec<usize> {
        let found = sweeper.found();
        let open = |g: &usize| self.groups[*g].state != State::Refuted && !found.contains(&self.groups[*g].key);
        (0..self.groups.len()).filter(open).collect()
    }

    /// Looks for the best instance of each group.
    fn seek(&mut self, sweeper: &Sweeper<'_, '_>) {
        let facts = sweeper.facts;
        let is_wait = |group: &Group| matches!(group.candidate.goal, Goal::LostWakeup { .. });
        let open: Vec<usize> = (0..self.groups.len()).filter(|&g| !is_wait(&self.groups[g])).collect();
        let candidates: Vec<Candidate> = open.iter().map(|&g| self.groups[g].candidate.clone()).collect();
        let stop = || sweeper.stop.why().is_some();
        let near = sweeper.options.window.max(2) / 2;
        let Some(found) = collect(facts, sweeper.options.model, &candidates, near, 1, &stop) else { return };
        for (g, instances) in open.into_iter().zip(found) {
            let group = &mut self.groups[g];
            group.state = if instances.is_empty() { State::Refuted } else { State::Open };
            group.instances = instances.goals().cloned().collect();
        }
    }

    /// Asks about the instances of the groups that are still open.
    fn ask(&mut self, sweeper: &mut Sweeper<'_, '_>, engines: &Engines<'_, '_>, quick: bool) {
        self.ask_from(0, sweeper, engines, quick);
    }

    /// The same, of the groups from a number on.
    fn ask_from(&mut self, first: usize, sweeper: &mut Sweeper<'_, '_>, engines: &Engines<'_, '_>, quick: bool) {
        let mut open = self.still_open(sweeper);
        open.retain(|&g| g >= first);
        let here = &*sweeper;
        let done = AtomicU64::new(0);
        let asked = spread(here.options.jobs, open.len(), |at| {
            let asked = engines.ask(&self.groups[open[at]].instances, quick, here);
            if let Some(progress) = here.control.progress {
                let events = here.facts.trace.len() as u64;
                progress(events * (done.fetch_add(1, Ordering::Relaxed) + 1) / open.len() as u64, events);
            }
            Some(asked)
        });
        let mut shown = Vec::new();
        for (g, asked) in open.into_iter().zip(asked) {
            let Some(asked) = asked else { continue };
            self.streamed.asked += asked.questions;
            sweeper.spent.add(&asked.tiers);
            let group = &mut self.groups[g];
            let stopped = !asked.finished && asked.left.len() < PATIENCE && asked.shown.is_none();
            let settled = asked.shown.is_some();
            match asked.shown {
                Some(found) => shown.push(found),
                None if asked.finished && asked.left.is_empty() && !group.more => group.state = State::Refuted,
                None if stopped => {}
                None => group.state = State::Undecided,
            }
            if asked.finished && !quick {
                group.instances = asked.left;
            }
            if settled {
                group.instances = Vec::new();
            }
        }
        sweeper.take(shown, Vec::new());
    }

    /// Lists every instance of the groups that are still open.
    fn audit(&mut self, sweeper: &Sweeper<'_, '_>, engines: &Engines<'_, '_>, stop: &(dyn Fn() -> bool + Sync)) {
        let open = self.still_open(sweeper);
        if open.is_empty() {
            return;
        }
        let candidates: Vec<&Candidate> = open.iter().map(|&g| &self.groups[g].candidate).collect();
        let Some(audit) = Audit::of(&engines.refuting, &candidates, stop) else { return };
        let audited = spread(sweeper.options.jobs, open.len(), |at| {
            (!stop()).then(|| audit.instances(&engines.refuting, candidates[at]))
        });
        for (g, audited) in open.into_iter().zip(audited) {
            let Some(Audited { instances, cut_short }) = audited else { continue };
            let group = &mut self.groups[g];
            group.state = if instances.is_empty() && !cut_short { State::Refuted } else { State::Open };
            (group.instances, group.more) = (instances, cut_short);
        }
    }

    /// Asks about groups of reads and final values that may change.
    fn add_changes(&mut self, sweeper: &mut Sweeper<'_, '_>, engines: &Engines<'_, '_>, changes: Vec<(Key, Audited)>) {
        let before = self.groups.len();
        for (key, Audited { instances, cut_short }) in changes {
            let Some(goal) = instances.first().cloned() else { continue };
            let (kind, candidate) = (BugKind::of(&goal), Candidate { goal, places: Vec::new() });
            self.streamed.figures.groups[kind as usize] += 1;
            self.groups.push(Group { candidate, kind, key, instances, more: cut_short, state: State::Open });
        }
        self.ask_from(before, sweeper, engines, false);
    }

    /// In `values`: what is left is looked for in windows that cover the trace. What they do not show stays undecided.
    fn ask_windows(&mut self, sweeper: &mut Sweeper<'_, '_>) {
        let open = self.still_open(sweeper);
        if open.is_empty() {
            return;
        }
        let open = Open::groups(open.iter().map(|&g| (self.groups[g].kind, self.groups[g].key.clone())));
        sweeper.sweep(&windows(sweeper.facts.trace.len(), sweeper.options.window), &open);
        // What a window could not decide is a group that stays open.
        sweeper.outcomes.values_mut().for_each(|(outcome, _)| outcome.undecided.clear());
        self.ask_around(sweeper);
    }

    /// The same, in longer windows around an instance of each group that is left.
    fn ask_around(&mut self, sweeper: &mut Sweeper<'_, '_>) {
        let (facts, len) = (sweeper.facts, 2 * sweeper.options.window);
        let events = |goal: &Goal| places(facts, goal).iter().filter_map(|place| place.event).collect::<Vec<u32>>();
        let mut around: Vec<(Range<usize>, Goal)> = Vec::new();
        for goal in self.still_open(sweeper).into_iter().filter_map(|g| self.groups[g].instances.first()) {
            let kernel = |input: &u32| facts.trace.lowered(*input).start;
            let ends = events(goal).iter().map(kernel).collect::<Vec<usize>>();
            let (Some(&low), Some(&high)) = (ends.iter().min(), ends.iter().max()) else { continue };
            if high - low < len {
                let end = (high + 1 + (len - (high - low)) / 8).min(facts.trace.len());
                around.push((end.saturating_sub(len)..end, goal.clone()));
            }
        }
        around.sort_by_key(|(span, goal)| (span.start, goal.clone()));
        let views = View::spans(facts.trace, sweeper.options.model, around.iter().map(|(span, _)| span.clone()));
        let mut found = Vec::new();
        for (view, (_, goal)) in views.zip(&around).take_while(|_| sweeper.stop.why().is_none()) {
            let mut engine = Engine::new(&view);
            if let Verdict::Feasible(schedule) = engine.decide(goal, sweeper.effort()) {
                found.push((goal.clone(), schedule));
            }
            sweeper.spent.add(&engine.tiers());
        }
        sweeper.adopt(found);
    }

    /// Asks the end of the trace what only that can tell: final values, wake-ups that are lost for good, and in `values`
    /// everything that is left. First a window's length of it; then the whole trace, which is exact, if that is not too long.
    /// Whether it came to that.
    fn ask_to_the_end(&mut self, sweeper: &mut Sweeper<'_, '_>) -> bool {
        let (trace, options) = (sweeper.facts.trace, sweeper.options);
        let window = options.window.max(2).min(trace.len());
        let most = match (options.model, trace.symbols()) {
            (Model::Values, Some(_)) => options.reach.min(WHOLE[1]),
            (Model::Values, None) => options.reach.min(WHOLE[0]),
            _ => options.reach,
        };
        let whole = trace.len() <= most;
        for len in [window, trace.len()].into_iter().filter(|&len| len == window || whole) {
            let mut open = self.still_open(sweeper);
            open.retain(|&g| match self.groups[g].candidate.goal {
                Goal::FinalValue { .. } | Goal::LostWakeup { .. } => true,
                _ => options.model == Model::Values,
            });
            let first = trace.len() - len;
            let mut views = View::spans(trace, options.model, std::iter::once(first..trace.len()));
            let Some(view) = Some(&mut views).filter(|_| !open.is_empty()).and_then(Iterator::next) else {
                return whole;
            };
            // One engine for all: they share most of what it learns.
            let mut engine = Engine::new(&view);
            let mut found = Vec::new();
            for g in open {
                let group = &mut self.groups[g];
                let mut left = Vec::new();
                let mut shown = None;
                for goal in &group.instances {
                    if sweeper.stop.why().is_some() {
                        sweeper.adopt(found);
                        return whole;
                    }
                    if left.len() >= PATIENCE {
                        break;
                    }
                    let mut effort = sweeper.effort();
                    if matches!(goal, Goal::LostWakeup { .. }) && len > Options::WINDOW {
                        // Whether everybody else must be stuck takes long to find out.
                        effort.conflicts /= 40;
                    }
                    match engine.decide(goal, effort) {
                        Verdict::Feasible(schedule) => {
                            shown = Some((goal.clone(), schedule));
                            break;
                        }
                        Verdict::Infeasible if first == 0 => {}
                        Verdict::Infeasible | Verdict::Unknown(_) => left.push(goal.clone()),
                    }
                }
                match shown {
                    Some(shown) => found.push(shown),
                    None if left.is_empty() && !group.more => group.state = State::Refuted,
                    None => group.state = State::Undecided,
                }
            }
            sweeper.spent.add(&engine.tiers());
            sweeper.adopt(found);
        }
        whole
    }

    /// What became of the groups, and what must be said about them.
    pub(crate) fn finish(mut self, sweeper: &Sweeper<'_, '_>) -> Told {
        let (facts, found) = (sweeper.facts, sweeper.found());
        let mut undecided: Vec<Goal> = Vec::new();
        let mut not_examined: Vec<Goal> = Vec::new();
        for group in &self.groups {
            let list = match group.state {
                _ if found.contains(&group.key) => {
                    self.streamed.confirmed += 1;
                    continue;
                }
                State::Refuted => {
                    self.streamed.refuted += 1;
                    continue;
                }
                State::Undecided => &mut undecided,
                State::Open => &mut not_examined,
            };
            list.push(group.instances.first().unwrap_or(&group.candidate.goal).clone());
        }
        self.streamed.undecided = undecided.len() as u64;
        self.streamed.not_examined = not_examined.len() as u64;
        let mut incomplete = Vec::new();
        for kind in BugKind::ALL.into_iter().filter(|kind| sweeper.options.kinds.contains(kind)) {
            let of_kind = |goals: &[Goal]| goals.iter().filter(|goal| BugKind::of(goal) == kind).count() as u64;
            let entry = |status, count, at_least, why, what: &str| Incomplete {
                kind,
                status,
                events: None,
                count,
                groups: true,
                at_least,
                why,
                what: what.replace("KIND", kind.name()),
            };
            for goal in undecided.iter().filter(|goal| BugKind::of(goal) == kind).take(LISTED) {
                incomplete
                    .push(Incomplete { groups: true, ..whereabouts(facts, goal, Status::Undecided, Why::Window) });
            }
            let more = of_kind(&undecided).saturating_sub(LISTED as u64);
            if more > 0 {
                let what = "more groups of KIND candidates that were neither shown nor refuted";
                incomplete.push(entry(Status::Undecided, more, false, Why::Window, what));
            }
            let (left, all) = (of_kind(&not_examined), self.complete[kind as usize]);
            let why = sweeper.stop.why();
            if left > 0 || !all {
                let what = match all {
                    true => "groups of KIND candidates that were not examined",
                    false => "groups of KIND candidates that were not examined or not told apart",
                };
                incomplete.push(entry(Status::NotExamined, left, !all, why.unwrap_or(Why::Window), what));
            }
        }
        undecided.append(&mut not_examined);
        Told { streamed: self.streamed, incomplete, open: undecided }
    }

    /// Violations that happened need no engine.
    fn show_observed(&mut self, sweeper: &mut Sweeper<'_, '_>) {
        let open = self.still_open(sweeper);
        let best = |&g: &usize| self.groups[g].instances.first().cloned();
        let found = observed(sweeper.facts, sweeper.options.model, open.iter().filter_map(best).collect());
        sweeper.take(found, Vec::new());
    }
}

/// What the tier has to say at its end.
pub(crate) struct Told {
    pub(crate) streamed: Streamed,
    pub(crate) incomplete: Vec<Incomplete>,
    /// An instance of each group that is neither shown nor refuted.
    pub(crate) open: Vec<Goal>,
}
