//! From candidates to findings: which instances of a group are asked about, in which windows, and what stays open.
//!
//! 1. What was observed. Then, in `sync`, the first instances of each group, from a lock-free cut, at any distance and
//!    exact (`cuts`); in `reads`, near instances, packed into windows; one round per instance, so that the answers do not
//!    depend on the number of threads.
//! 2. (In `predict`:) the windows that cover the trace, for groups that are still open.
//! 3. In `reads`, far instances of what is open then: in the observed order of what they need (`project`), and in larger
//!    windows, up to [`STRETCH`] times as long.
//!
//! A group is settled if it has a finding, if no instance passes the filters of its model, or if all its instances fit
//! in windows that were examined. All others are counted and shown.

use super::cuts::{Cuts, Decided};
use super::instances::collect;
use super::project::{observed, project};
use super::spots::{Fit, Instances};
use super::{Candidate, Figures, candidates_until};
use crate::facts::Facts;
use crate::finding::{BugKind, Incomplete, Why};
use crate::key::Key;
use crate::left::spans;
use crate::sweep::{Open, Sweeper, Task};
use portent_order::{Goal, Model};
use portent_trace::EventId;
use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};

/// Instances that are asked about of a group whose first one is impossible.
const TRIED: usize = 4;
/// How much longer than other windows those for far instances may be.
const STRETCH: usize = 2;

/// What the streaming tier did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streamed {
    /// What the pass over the events did.
    pub figures: Figures,
    /// Groups of candidates that the order engine found feasible.
    pub confirmed: u64,
    /// Groups that turned out to be impossible.
    pub refuted: u64,
    /// Groups that are neither.
    pub open: u64,
    /// How long finding instances and asking about them took, windows that cover the trace aside.
    pub time: Duration,
}

struct Group {
    candidate: Candidate,
    kind: BugKind,
    key: Key,
    instances: Instances,
    refuted: bool,
}

/// The streaming tier of a prediction, from its pass over the events to its last question.
pub(crate) struct Tier {
    groups: Vec<Group>,
    complete: [bool; 4],
    streamed: Streamed,
}

/// The first and the last event of a goal.
fn extent(facts: &Facts<'_>, goal: &Goal) -> (EventId, EventId) {
    let of = |events: &[EventId]| {
        let low = events.iter().copied().min().unwrap_or(EventId::new(0));
        (low, events.iter().copied().max().unwrap_or(low))
    };
    match *goal {
        Goal::Race { first, second } => of(&[first, second]),
        Goal::Atomicity { first, remote, second } => of(&[first, remote, second]),
        Goal::Deadlock { ref waiting } => of(waiting),
        Goal::LostWakeup { pairing } => {
            let pairing = facts.trace.pairings()[pairing.index()];
            of(&[pairing.sleep, pairing.notify, pairing.wake])
        }
        Goal::Nondeterminism { read, .. } => (read, read),
        Goal::FinalValue { challenger, .. } => (challenger, challenger),
    }
}

/// Windows of at most `len` events for the goals, each with as many of them as it holds; goals too long for one are left out.
fn pack(facts: &Facts<'_>, goals: Vec<Goal>, len: usize, margin: usize) -> Vec<Task> {
    let mut all: Vec<(usize, usize, Goal)> = goals
        .into_iter()
        .map(|goal| (extent(facts, &goal), goal))
        .map(|((low, high), goal)| (low.index(), high.index() + 1, goal))
        .filter(|(low, end, _)| end - low + margin <= len)
        .collect();
    all.sort_unstable();
    let mut tasks: Vec<Task> = Vec::new();
    for (low, end, goal) in all {
        let end = (end + margin).min(facts.trace.len());
        match tasks.last_mut() {
            Some(Task { span, goals: Some(goals), .. }) if end <= span.start + len && low >= span.start => {
                span.end = span.end.max(end);
                goals.push(goal);
            }
            _ => {
                let start = low.saturating_sub(margin).min(end.saturating_sub(1)).max(end.saturating_sub(len));
                tasks.push(Task { span: start..end, fresh: start, goals: Some(vec![goal]) });
            }
        }
    }
    tasks
}

impl Tier {
    /// Passes over the trace and asks about near instances.
    pub(crate) fn start(sweeper: &mut Sweeper<'_, '_>) -> Self {
        let started = Instant::now();
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
            let instances = Instances::unknown();
            tier.groups.push(Group { candidate, kind, key, instances, refuted: false });
        }
        tier.note_far_waits(facts, sweeper.options.window);
        // Most groups are settled by the first instance: it need not be looked for in the whole trace.
        for wanted in [1, TRIED] {
            tier.seek(sweeper, wanted);
            tier.show_observed(sweeper);
            match sweeper.options.model {
                Model::Sync => tier.ask_from_cuts(sweeper),
                Model::Reads | Model::Values => {
                    for round in 0..wanted {
                        tier.round(sweeper, round, sweeper.options.window.max(2), sweeper.options.window / 8);
                    }
                }
            }
        }
        tier.streamed.time = started.elapsed().saturating_sub(tier.streamed.figures.time);
        tier
    }

    /// Groups that are neither found nor refuted.
    fn still_open(&self, sweeper: &Sweeper<'_, '_>) -> Vec<usize> {
        let found = sweeper.found();
        (0..self.groups.len()).filter(|&g| !self.groups[g].refuted && !found.contains(&self.groups[g].key)).collect()
    }

    /// Looks for instances of the groups that are still open.
    fn seek(&mut self, sweeper: &Sweeper<'_, '_>, wanted: usize) {
        let facts = sweeper.facts;
        let fit = Fit { len: sweeper.options.window.max(2), events: facts.trace.len() };
        let is_wait = |group: &Group| matches!(group.candidate.goal, Goal::LostWakeup { .. });
        let mut open = self.still_open(sweeper);
        open.retain(|&g| !is_wait(&self.groups[g]));
        let candidates: Vec<Candidate> = open.iter().map(|&g| self.groups[g].candidate.clone()).collect();
        if candidates.is_empty() {
            return;
        }
        let stop = || sweeper.stop.why().is_some();
        let Some(instances) = collect(facts, sweeper.options.model, &candidates, fit, wanted, &stop) else { return };
        for (g, instances) in open.into_iter().zip(instances) {
            self.groups[g].refuted = instances.is_empty();
            self.groups[g].instances = instances;
        }
    }

    /// Waits are examined in the last window only: others are far.
    fn note_far_waits(&mut self, facts: &Facts<'_>, window: usize) {
        let last = spans(facts.trace.len(), window).pop().map_or(0, |span| span.start);
        let mut far: FxHashSet<Key> = FxHashSet::default();
        for (k, pairing) in facts.trace.pairings().iter().enumerate() {
            if pairing.sleep.index() < last || pairing.notify.index() < last {
                far.insert(Key::of(facts, &Goal::LostWakeup { pairing: portent_trace::PairingId::new(k) }));
            }
        }
        for group in self.groups.iter_mut().filter(|g| matches!(g.candidate.goal, Goal::LostWakeup { .. })) {
            group.instances.far = far.contains(&group.key);
        }
    }

    /// Asks about one instance of each group that is still open.
    fn round(&mut self, sweeper: &mut Sweeper<'_, '_>, round: usize, len: usize, margin: usize) {
        let open = self.still_open(sweeper);
        let instance = |&g: &usize| self.groups[g].instances.goals().nth(round).cloned();
        let goals: Vec<Goal> = open.iter().filter_map(instance).collect();
        let tasks = pack(sweeper.facts, goals, len, margin);
        sweeper.sweep(&tasks, &Open::all());
    }

    /// What is worth asking about in the windows that cover the trace.
    pub(crate) fn open(&self, sweeper: &Sweeper<'_, '_>) -> Open {
        let open = self.still_open(sweeper);
        Open::groups(open.iter().map(|&g| (self.groups[g].kind, self.groups[g].key.clone())))
    }

    /// Asks about far instances; then what is not settled is shown. `examined`: whether all windows were.
    pub(crate) fn finish(mut self, sweeper: &mut Sweeper<'_, '_>, examined: bool) -> (Streamed, Vec<Incomplete>) {
        let started = Instant::now();
        if sweeper.options.model != Model::Sync {
            self.guess(sweeper);
            let window = sweeper.options.window.max(2);
            // Large windows are slow: one try.
            self.round(sweeper, 0, STRETCH * window, window / 8);
        }
        let found = sweeper.found();
        let mut open = [0u64; 4];
        for group in &self.groups {
            if found.contains(&group.key) {
                self.streamed.confirmed += 1;
            } else if group.refuted || (examined && !group.instances.far) {
                self.streamed.refuted += 1;
            } else {
                open[group.kind as usize] += 1;
                self.streamed.open += 1;
            }
        }
        let why = sweeper.stop.why().unwrap_or(Why::Window);
        let kinds = BugKind::ALL.into_iter().filter(|&kind| kind != BugKind::Nondeterminism);
        let asked = kinds.filter(|kind| sweeper.options.kinds.contains(kind));
        let shown = asked.filter(|&kind| open[kind as usize] > 0 || !self.complete[kind as usize]);
        let incomplete = shown.map(|kind| Incomplete {
            kind,
            events: None,
            count: open[kind as usize],
            groups: true,
            at_least: !self.complete[kind as usize],
            why,
            what: format!("groups of {} candidates that were neither shown nor ruled out", kind.name()),
        });
        let incomplete = incomplete.collect();
        self.streamed.time += started.elapsed();
        (self.streamed, incomplete)
    }

    /// Violations that happened need no engine.
    fn show_observed(&mut self, sweeper: &mut Sweeper<'_, '_>) {
        let open = self.still_open(sweeper);
        let best = |&g: &usize| self.groups[g].instances.goals().next().cloned();
        let found = observed(sweeper.facts, sweeper.options.model, open.iter().filter_map(best).collect());
        sweeper.take(found, Vec::new());
    }

    /// Tries the observed order of what the instances need.
    fn guess(&mut self, sweeper: &mut Sweeper<'_, '_>) {
        let stop = || sweeper.stop.why().is_some();
        for round in 0..TRIED {
            let open = self.still_open(sweeper);
            let instance = |&g: &usize| self.groups[g].instances.goals().nth(round).cloned();
            let goals: Vec<Goal> = open.iter().filter_map(instance).collect();
            if goals.is_empty() || stop() {
                return;
            }
            let schedules = project(sweeper.facts, sweeper.options.model, &goals, &stop);
            let found = goals.into_iter().zip(schedules).filter_map(|(goal, schedule)| Some((goal, schedule?)));
            let found = found.collect();
            sweeper.take(found, Vec::new());
        }
    }

    fn ask_from_cuts(&mut self, sweeper: &mut Sweeper<'_, '_>) {
        let open = self.still_open(sweeper);
        if open.is_empty() {
            return;
        }
        let Some(cuts) = Cuts::new(sweeper.facts) else { return };
        let mut shown = Vec::new();
        for g in open {
            for goal in self.groups[g].instances.goals() {
                if sweeper.stop.why().is_some() {
                    break;
                }
                if let Decided::Feasible(schedule) = cuts.decide(goal, sweeper.effort()) {
                    shown.push((goal.clone(), schedule));
                    break;
                }
            }
        }
        sweeper.adopt(shown);
    }
}
