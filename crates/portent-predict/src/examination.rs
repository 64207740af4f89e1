//! One examination of a trace: what is asked, what is known of the trace, and what passes have found so far.

use crate::asking::{Answers, Flags, Group, Key, Settled};
use crate::board::{Board, State};
use crate::bug::BugKind;
use crate::facts::Facts;
use crate::happens_before;
use crate::kinds;
use crate::prediction::Prediction;
use crate::request::{Control, Options, Stop};
use portent_order::engine::{Effort, Tiers};
use portent_order::{Goal, Model, Schedule};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Events of a trace that `values` looks at as a whole, and of one in which formulas are executed.
const WHOLE: [usize; 2] = [20_000, 2_000];

/// A way of deciding. It finds what it can, and leaves the rest to the passes after it.
pub(crate) trait Pass<'a, 't> {
    /// Does what can be done this way.
    fn run(&mut self, examination: &mut Examination<'a, 't>);
}

/// A goal with a schedule that reaches it, and how many more of its group are known to be feasible.
pub(crate) struct Found {
    pub(crate) goal: Goal,
    pub(crate) schedule: Schedule,
    pub(crate) instances: u64,
    /// Whether that is all of them.
    pub(crate) exact: bool,
}

impl Found {
    pub(crate) fn new(goal: Goal, schedule: Schedule) -> Self {
        Found { goal, schedule, instances: 1, exact: true }
    }
}

/// What all passes share.
pub(crate) struct Examination<'a, 't> {
    pub(crate) facts: &'a Facts<'t>,
    pub(crate) options: &'a Options,
    pub(crate) control: &'a Control<'a>,
    pub(crate) stop: &'a Stop,
    pub(crate) settled: Settled,
    /// Windows, and passes that found something, so far.
    next: usize,
    /// What came out of each, in order.
    answers: BTreeMap<usize, (Answers, Tiers)>,
    /// The groups of candidates of a trace that fits no window.
    pub(crate) board: Board,
    /// What is told in the end.
    pub(crate) prediction: Prediction,
}

impl<'a, 't> Examination<'a, 't> {
    pub(crate) fn new(facts: &'a Facts<'t>, options: &'a Options, control: &'a Control<'a>, stop: &'a Stop) -> Self {
        Examination {
            facts,
            options,
            control,
            stop,
            settled: Settled::default(),
            next: 0,
            answers: BTreeMap::new(),
            board: Board::default(),
            prediction: Prediction::default(),
        }
    }

    /// Whether a kind is looked for.
    pub(crate) fn wants(&self, kind: BugKind) -> bool {
        self.options.kinds.contains(&kind)
    }

    /// Whether the trace fits one window.
    pub(crate) fn fits(&self) -> bool {
        self.facts.trace.len() <= self.options.window.max(2)
    }

    /// Whether a trace longer than a window is asked about as a whole all the same, where only that is exact.
    pub(crate) fn is_asked_as_a_whole(&self) -> bool {
        let most = match (self.options.model, self.facts.trace.symbols()) {
            (Model::Values, Some(_)) => self.options.reach.min(WHOLE[1]),
            (Model::Values, None) => self.options.reach.min(WHOLE[0]),
            _ => self.options.reach,
        };
        self.facts.trace.len() <= most
    }

    /// How much one question may cost.
    pub(crate) fn effort(&self) -> Effort {
        Effort { conflicts: self.options.conflicts, deadline: self.stop.deadline, interrupt: self.stop.interrupt }
    }

    /// The number of the next window.
    pub(crate) fn next_window(&self) -> usize {
        self.next
    }

    /// Takes in what windows answered, by their numbers.
    pub(crate) fn add_windows(&mut self, windows: usize, answers: BTreeMap<usize, (Answers, Tiers)>) {
        self.next += windows;
        self.answers.extend(answers);
    }

    /// Takes out all answers, in order.
    pub(crate) fn take_answers(&mut self) -> impl Iterator<Item = (Answers, Tiers)> + use<> {
        std::mem::take(&mut self.answers).into_values()
    }

    /// Leaves out what windows could not decide.
    pub(crate) fn forget_undecided(&mut self) {
        self.answers.values_mut().for_each(|(answers, _)| answers.undecided.clear());
    }

    /// Takes in what a pass found: goals with schedules that reach them. Each is checked first.
    pub(crate) fn adopt(&mut self, found: Vec<(Goal, Schedule)>) {
        let mut rejected = Vec::new();
        let mut checked = Vec::new();
        for (goal, schedule) in found {
            match self.facts.checker.check(self.options.model, &goal, &schedule) {
                Ok(()) => checked.push((goal, schedule)),
                Err(why) => rejected.push(format!("witness of {goal:?} in {}: {why}", self.options.model)),
            }
        }
        self.take(checked, rejected);
    }

    /// The same for goals with instances that are known already.
    pub(crate) fn adopt_counted(&mut self, found: Vec<Found>) {
        let model = self.options.model;
        let mut answers = Answers::default();
        for Found { goal, schedule, instances, exact } in found {
            match self.facts.checker.check(model, &goal, &schedule) {
                Ok(()) => {
                    answers.done[BugKind::of(&goal) as usize] += 1;
                    let (key, flags) = (kinds::key(self.facts, &goal), kinds::flags(self.facts, &goal));
                    let group = Group { instances, exact, ..Group::new(goal, flags, Some(schedule)) };
                    answers.groups.insert(key, group);
                }
                Err(why) => answers.rejected.push(format!("witness of {goal:?} in {model}: {why}")),
            }
        }
        self.answers.insert(self.next, (answers, Tiers::default()));
        self.next += 1;
    }

    /// The same, of groups that were made already, each with a witness; those of equal keys are one.
    pub(crate) fn adopt_groups(&mut self, found: Vec<(Key, Group)>) {
        let model = self.options.model;
        let mut answers = Answers::default();
        for (key, group) in found {
            let Some(schedule) = &group.witness else { continue };
            match self.facts.checker.check(model, &group.goal, schedule) {
                Ok(()) => drop(answers.groups.entry(key).or_insert(group)),
                Err(why) => answers.rejected.push(format!("witness of {:?} in {model}: {why}", group.goal)),
            }
        }
        self.answers.insert(self.next, (answers, Tiers::default()));
        self.next += 1;
    }

    /// Takes in goals with schedules that the checker has accepted, and complaints about others.
    pub(crate) fn take(&mut self, found: Vec<(Goal, Schedule)>, rejected: Vec<String>) {
        let mut answers = Answers { rejected, ..Answers::default() };
        let races = found.iter().filter_map(|(goal, _)| match *goal {
            Goal::Race { first, second } => Some((first, second)),
            _ => None,
        });
        let beyond_hb = happens_before::ordered(self.facts.trace, &races.collect::<Vec<_>>());
        for (goal, schedule) in found {
            let beyond_hb = matches!(goal, Goal::Race { first, second } if beyond_hb.contains(&(first, second)));
            let (key, flags) = (kinds::key(self.facts, &goal), Flags { beyond_hb, ..kinds::flags(self.facts, &goal) });
            answers.done[BugKind::of(&goal) as usize] += 1;
            answers.groups.entry(key).or_insert_with(|| Group::new(goal, flags, Some(schedule)));
        }
        self.answers.insert(self.next, (answers, Tiers::default()));
        self.next += 1;
    }

    /// The groups that have a finding.
    pub(crate) fn found(&self) -> FxHashSet<Key> {
        self.answers.values().flat_map(|(answers, _)| answers.groups.keys().cloned()).collect()
    }

    /// Groups on the board that are neither found nor refuted.
    pub(crate) fn still_open(&self) -> Vec<usize> {
        let (found, groups) = (self.found(), &self.board.groups);
        let open = |g: &usize| groups[*g].state != State::Refuted && !found.contains(&groups[*g].key);
        (0..groups.len()).filter(open).collect()
    }
}
