//! Two passes over the board: the best instance of each group first, at little cost; then every instance of what is left.

use super::{Answer, Ask, Audit, Audited, Causal, Depth};
use crate::asking::Key;
use crate::board::{Candidate, OpenGroup, State};
use crate::bug::BugKind;
use crate::examination::{Examination, Pass};
use crate::spread::spread;
use crate::undecided::Limit;
use portent_order::engine::Tiers;
use portent_order::{Goal, Model, Schedule, Writer};
use portent_trace::Trace;
use std::cell::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Instances of a group that may stay undecided before no more are asked about.
pub(crate) const PATIENCE: usize = 4;
/// Instances of a group of which short slices are looked at before longer ones.
const TOGETHER: usize = 16;

/// What came of asking about instances of a group.
#[derive(Default)]
struct Asked {
    shown: Option<(Goal, Schedule)>,
    /// Instances that are neither shown nor refuted.
    left: Vec<Goal>,
    /// What the first of them would have needed more of.
    limit: Option<Limit>,
    /// Whether all were asked about.
    finished: bool,
    questions: u64,
    tiers: Tiers,
}

/// The engines of a model that look at causal pasts.
pub(crate) struct Engines<'a, 't> {
    /// Refutes.
    refuting: Causal<'a, 't>,
    /// Shows, where that is another: in `values`, what `reads` can show is a good guess, and what `sync` refutes is refuted.
    showing: Option<Causal<'a, 't>>,
    model: Model,
}

impl<'a, 't> Engines<'a, 't> {
    fn new(examination: &Examination<'a, 't>, stop: &dyn Fn() -> bool) -> Option<Self> {
        let options = examination.options;
        let (facts, model, reach) = (examination.facts, options.model, options.reach);
        let of = |model| Causal::new(facts, model, reach, stop);
        Some(match model {
            Model::Values => Engines { refuting: of(Model::Sync)?, showing: Some(of(Model::Reads)?), model },
            Model::Reads | Model::Sync => Engines { refuting: of(model)?, showing: None, model },
        })
    }

    /// In `values`: those of `reads`.
    pub(crate) fn showing(&self) -> Option<&Causal<'a, 't>> {
        self.showing.as_ref()
    }

    /// Whether a read would see the value it saw: in `values` that is no change, unless formulas say otherwise.
    fn changes_nothing(&self, trace: &Trace, goal: &Goal) -> bool {
        let Goal::Nondeterminism { read, challenger: Writer::Event(c) } = *goal else { return false };
        // What an update saw is not recorded with it.
        let saw = trace.value(read).filter(|_| !trace.op(read).writes());
        self.model == Model::Values && trace.symbols().is_none() && saw.is_some() && saw == trace.value(c)
    }

    /// Asks about instances, until one is shown: those near each other first, and of some at a time first what short slices can tell, since
    /// one long slice costs as much as many short ones.
    fn ask(&self, instances: &[Goal], quick: bool, examination: &Examination<'_, '_>) -> Asked {
        let mut asked = Asked::default();
        for some in instances.chunks(TOGETHER) {
            if asked.left.len() >= PATIENCE {
                return asked;
            }
            let mut open = Vec::new();
            for goal in some {
                if examination.stop.why().is_some() {
                    return asked;
                }
                asked.questions += 1;
                if self.changes_nothing(examination.facts.trace, goal) {
                    continue;
                }
                match self.ask_one(goal, Depth::Near, examination, &mut asked.tiers) {
                    Answer::Shown(schedule) => {
                        asked.shown = Some((goal.clone(), schedule));
                        return asked;
                    }
                    Answer::Refuted => {}
                    Answer::Undecided(limit) => open.push((goal, limit)),
                }
            }
            for (goal, near) in open {
                if examination.stop.why().is_some() || asked.left.len() >= PATIENCE {
                    return asked;
                }
                let answer = match quick {
                    true => Answer::Undecided(near),
                    false => self.ask_one(goal, Depth::Far, examination, &mut asked.tiers),
                };
                match answer {
                    Answer::Shown(schedule) => {
                        asked.shown = Some((goal.clone(), schedule));
                        return asked;
                    }
                    Answer::Refuted => {}
                    Answer::Undecided(limit) => {
                        asked.limit.get_or_insert(limit);
                        asked.left.push(goal.clone());
                    }
                }
            }
        }
        asked.finished = true;
        asked
    }

    fn ask_one(&self, goal: &Goal, depth: Depth, examination: &Examination<'_, '_>, tiers: &mut Tiers) -> Answer {
        let effort = examination.effort();
        let show = self.showing.is_none().then_some(self.model);
        let answer = self.refuting.ask(goal, Ask { refute: true, show, depth, effort }, tiers);
        match (answer, &self.showing) {
            (Answer::Undecided(_), Some(showing)) => {
                showing.ask(goal, Ask { refute: false, show: Some(self.model), depth, effort }, tiers)
            }
            (answer, _) => answer,
        }
    }
}

/// What the engines of `reads` show of lists of instances, the first of each.
pub(crate) fn found_by(
    examination: &mut Examination<'_, '_>,
    engines: &Engines<'_, '_>,
    lists: &[Vec<Goal>],
    ask: Ask,
) -> Vec<(Goal, Schedule)> {
    let Some(reads) = engines.showing() else { return Vec::new() };
    let here = &*examination;
    let asked = spread(here.options.jobs, lists.len(), |at| {
        let mut asked = Asked::default();
        for goal in &lists[at] {
            if here.stop.why().is_some() || asked.left.len() >= PATIENCE {
                break;
            }
            asked.questions += 1;
            match reads.ask(goal, ask, &mut asked.tiers) {
                Answer::Shown(schedule) => {
                    asked.shown = Some((goal.clone(), schedule));
                    break;
                }
                // Impossible in `reads`, which says nothing of `values`.
                Answer::Refuted => {}
                Answer::Undecided(_) => asked.left.push(goal.clone()),
            }
        }
        Some(asked)
    });
    let mut found = Vec::new();
    for asked in asked.into_iter().flatten() {
        examination.board.streamed.asked += asked.questions;
        examination.prediction.stats.tiers.add(&asked.tiers);
        found.extend(asked.shown);
    }
    found
}

/// The engines, made when they are first needed; `None` inside if there was no time to.
pub(crate) type Prepared<'a, 't> = OnceCell<Option<Engines<'a, 't>>>;

/// The best instance of each group, on short slices of its past.
pub(crate) struct Quick<'p, 'a, 't>(pub(crate) &'p Prepared<'a, 't>);

/// Every instance of what is still open that clocks and locks do not refute, near ones first; and every value that may change.
pub(crate) struct Thorough<'p, 'a, 't>(pub(crate) &'p Prepared<'a, 't>);

impl<'a, 't> Pass<'a, 't> for Quick<'_, 'a, 't> {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let changes = examination.wants(BugKind::Nondeterminism);
        if examination.still_open().is_empty() && !changes {
            return;
        }
        let stop = || examination.stop.why().is_some();
        match self.0.get_or_init(|| Engines::new(examination, &stop)) {
            Some(engines) => ask_from(0, examination, engines, true),
            None => examination.board.complete[BugKind::Nondeterminism as usize] = false,
        }
    }
}

impl<'a, 't> Pass<'a, 't> for Thorough<'_, 'a, 't> {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let Some(Some(engines)) = self.0.get() else { return };
        let stopper = examination.stop;
        let stop = || stopper.why().is_some();
        audit(examination, engines, &stop);
        ask_from(0, examination, engines, false);
        if examination.wants(BugKind::Nondeterminism) {
            match engines.refuting.changes(&stop) {
                Some(changes) => add_changes(examination, engines, changes),
                None => examination.board.complete[BugKind::Nondeterminism as usize] = false,
            }
        }
    }
}

/// Asks about the instances of the groups from a number on that are still open.
fn ask_from(first: usize, examination: &mut Examination<'_, '_>, engines: &Engines<'_, '_>, quick: bool) {
    let mut open = examination.still_open();
    open.retain(|&g| g >= first);
    let here = &*examination;
    let done = AtomicU64::new(0);
    let asked = spread(here.options.jobs, open.len(), |at| {
        let asked = engines.ask(&here.board.groups[open[at]].instances, quick, here);
        if let Some(progress) = here.control.progress {
            let events = here.facts.trace.len() as u64;
            progress(events * (done.fetch_add(1, Ordering::Relaxed) + 1) / open.len() as u64, events);
        }
        Some(asked)
    });
    let mut shown = Vec::new();
    for (g, asked) in open.into_iter().zip(asked) {
        let Some(asked) = asked else { continue };
        examination.board.streamed.asked += asked.questions;
        examination.prediction.stats.tiers.add(&asked.tiers);
        let group = &mut examination.board.groups[g];
        let stopped = !asked.finished && asked.left.len() < PATIENCE && asked.shown.is_none();
        let settled = asked.shown.is_some();
        let limit = asked.limit.filter(|_| asked.finished).unwrap_or(Limit::Tries);
        match asked.shown {
            Some(found) => shown.push(found),
            None if asked.finished && asked.left.is_empty() && !group.more => group.state = State::Refuted,
            None if stopped => {}
            None => group.state = State::Undecided(limit),
        }
        if asked.finished && !quick {
            group.instances = asked.left;
        }
        if settled {
            group.instances = Vec::new();
        }
    }
    examination.take(shown, Vec::new());
}

/// Lists every instance of the groups that are still open.
fn audit(examination: &mut Examination<'_, '_>, engines: &Engines<'_, '_>, stop: &(dyn Fn() -> bool + Sync)) {
    let open = examination.still_open();
    if open.is_empty() {
        return;
    }
    let candidates: Vec<&Candidate> = open.iter().map(|&g| &examination.board.groups[g].candidate).collect();
    let Some(audit) = Audit::of(&engines.refuting, &candidates, stop) else { return };
    let audited = spread(examination.options.jobs, open.len(), |at| {
        (!stop()).then(|| audit.instances(&engines.refuting, candidates[at]))
    });
    for (g, audited) in open.into_iter().zip(audited) {
        let Some(Audited { instances, cut_short }) = audited else { continue };
        let group = &mut examination.board.groups[g];
        group.state = if instances.is_empty() && !cut_short { State::Refuted } else { State::Open };
        (group.instances, group.more) = (instances, cut_short);
    }
}

/// Asks about groups of reads and final values that may change.
fn add_changes(examination: &mut Examination<'_, '_>, engines: &Engines<'_, '_>, changes: Vec<(Key, Audited)>) {
    let board = &mut examination.board;
    let before = board.groups.len();
    for (key, Audited { instances, cut_short }) in changes {
        let Some(goal) = instances.first().cloned() else { continue };
        let group = OpenGroup::new(Candidate { goal, places: Vec::new() }, key);
        board.streamed.figures.groups[group.kind as usize] += 1;
        board.groups.push(OpenGroup { instances, more: cut_short, ..group });
    }
    ask_from(before, examination, engines, false);
}
