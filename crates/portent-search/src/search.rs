//! The loop: ask the best goal, run what it found, look at the run, until there are no goals.
//!
//! **Why it is complete.** By induction over a schedule of a cut H = H' + e. H' is covered by some run T. If T goes on with e and that
//! outcome, T covers H. If not, H is a divergence cut of T, and its goal was closed as infeasible with the clauses of all
//! rivals; so a rival covers H. This needs only that threads are deterministic and the engine is exact.
//! **Why no run is wasted.** A run is made only for a cut that none covers.

use crate::goals::{Goal, Goals};
use crate::histories::{Histories, Node};
use crate::rivals;
use crate::shelf::Shelf;
use crate::spins::Spins;
use crate::stuck::stuck_cuts;
use crate::subject::{End, History, Operation, Plan, Run, Seen, SoFar, Subject};
use crate::written::Written;
use portent_order::engine::{Effort, Engine, View};
use portent_order::{At, Divergence, Model, Outcome, Schedule, Unknown, Verdict, Writer};
use portent_trace::EventId;
use rustc_hash::FxHashSet;
use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::time::Instant;

/// Conflicts for questions whose answers are welcome and not needed.
const MOST_CONFLICTS: u64 = 2_000;
/// Combinations of places at which threads can wait that are looked at as soon as a run is there.
const MOST_COMBINATIONS: usize = 2_000;
/// Questions that making a cut larger may take.
const MOST_ENLARGING: usize = 48;

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs at most.
    pub runs: usize,
    /// Goals that are kept at a time, at most.
    pub goals: usize,
    /// When to stop.
    pub deadline: Option<Instant>,
    /// Effort for one question, in conflicts.
    pub effort: u64,
    /// What chance starts from.
    pub seed: u64,
    /// Whether the first run is made twice, to see whether it does the same: not every program is asked for a second run.
    pub first_twice: bool,
    /// Whether every second run begins with as much as possible of the run that it leaves, and not with as little as possible.
    pub varied: bool,
    /// States in which nobody can go on that are run as soon as a run shows that they can be reached, at most.
    pub confirmed: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            runs: usize::MAX,
            goals: 1 << 20,
            deadline: None,
            effort: Effort::default().conflicts,
            seed: 1,
            first_twice: false,
            varied: true,
            confirmed: 0,
        }
    }
}

/// Why nothing is proven.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Incomplete {
    /// The runs or the time were used up; so many questions are left.
    Budget(usize),
    /// A thread, by its number, did not do again what it had done before after the same history.
    NotDeterministic(usize),
    /// A run did not follow its plan.
    NotFollowed,
    /// A run was stopped before its end.
    Stopped,
    /// A run was too long to be looked at.
    TooLong,
    /// The engine did not decide a question.
    Undecided(&'static str),
    /// The value that some operation read or wrote is not known.
    UnknownValues,
    /// A read in several parts could see something else.
    Parts,
    /// The engine keeps something as it was observed.
    Inexact(String),
}

/// What a search came to.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// How many runs were made.
    pub runs: usize,
    /// How many of them showed something new: as many behaviours were seen.
    pub behaviours: usize,
    /// How many questions were asked.
    pub questions: u64,
    /// Why it is no proof; empty if it is one.
    pub incomplete: BTreeSet<Incomplete>,
}

impl Explored {
    /// Whether all behaviours were seen.
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_empty()
    }
}

/// A run that showed a behaviour that none before it showed.
pub struct Visit<'a, 'v, 't> {
    /// Its number among all runs that were made, from 0.
    pub made: usize,
    /// Whether the search is over: every new behaviour is shown once more, with all that is known then.
    pub is_over: bool,
    /// The run.
    pub run: &'t Run,
    /// What is known of loops that only look.
    pub spins: &'a Spins,
    /// An engine for its trace, in `values`.
    pub engine: &'a mut Engine<'v, 't>,
    paths: &'a [Vec<Node>],
    confirmed: &'a FxHashSet<Vec<Node>>,
}

impl Visit<'_, '_, '_> {
    /// Whether a cut of the run, given as a number of operations for each thread, is one in which nobody can go on and which was run to.
    pub fn is_confirmed(&self, cut: &[usize]) -> bool {
        self.confirmed.contains(&nodes(self.paths, cut))
    }
}

/// The local histories of a cut.
fn nodes(paths: &[Vec<Node>], cut: &[usize]) -> Vec<Node> {
    paths.iter().zip(cut).filter_map(|(path, &at)| path.get(at).copied()).collect()
}

/// Searches until every behaviour was seen, the options end it, or `watch`, which is told of every new behaviour, does; and tells it of
/// all once more.
///
/// # Errors
/// When the program could not be run.
pub fn explore<S: Subject>(
    subject: &mut S,
    options: &Options,
    watch: &mut dyn FnMut(Visit<'_, '_, '_>) -> ControlFlow<()>,
) -> Result<Explored, S::Error> {
    resume(subject, options, &[], watch)
}

/// The same, after the runs of an earlier search: their plans in the order in which they were made, from the first on.
///
/// The runs are made again, so that what is known follows from what the program does now. Nothing else is taken from the earlier
/// search: what it closed is asked again, and a run that does something else than it did is a run like any other.
///
/// # Errors
/// When the program could not be run.
pub fn resume<S: Subject>(
    subject: &mut S,
    options: &Options,
    earlier: &[Plan],
    watch: &mut dyn FnMut(Visit<'_, '_, '_>) -> ControlFlow<()>,
) -> Result<Explored, S::Error> {
    let runs = Shelf::default();
    let views = Shelf::default();
    let mut search = Search {
        options,
        runs: &runs,
        views: &views,
        visited: Vec::new(),
        known: Histories::default(),
        goals: Goals::default(),
        spins: Spins::default(),
        predicted: VecDeque::new(),
        stuck: FxHashSet::default(),
        dropped: 0,
        explored: Explored::default(),
    };
    search.explore(subject, earlier, watch)?;
    Ok(search.explored)
}

struct Visited<'v, 't> {
    run: &'t Run,
    /// Its number among all runs that were made.
    made: usize,
    /// The local histories of each thread, from the empty one on.
    paths: Vec<Vec<Node>>,
    engine: Engine<'v, 't>,
}

struct Search<'o, 'v, 't> {
    options: &'o Options,
    runs: &'t Shelf<Run>,
    views: &'v Shelf<View<'t>>,
    visited: Vec<Visited<'v, 't>>,
    known: Histories,
    goals: Goals,
    spins: Spins,
    /// Ways to states in which nobody can go on, and all such states that are known.
    predicted: VecDeque<Plan>,
    stuck: FxHashSet<Vec<Node>>,
    /// Goals that there was no room for.
    dropped: usize,
    explored: Explored,
}

impl Search<'_, '_, '_> {
    fn explore<S: Subject>(
        &mut self,
        subject: &mut S,
        earlier: &[Plan],
        watch: &mut dyn FnMut(Visit<'_, '_, '_>) -> ControlFlow<()>,
    ) -> Result<(), S::Error> {
        let first = Plan { seed: self.options.seed, ..Plan::default() };
        let run = subject.run(&first)?;
        self.explored.runs = 1;
        let mut flow = self.visit(run, watch);
        if self.options.first_twice {
            self.repeat_first(subject)?;
        }
        for plan in earlier.iter().skip(self.explored.runs) {
            if flow.is_break() || self.is_over(subject) {
                break;
            }
            flow = self.make_again(subject, plan, watch)?;
        }
        while flow.is_continue() {
            if !self.predicted.is_empty() && self.is_over(subject) {
                break;
            }
            // What fails comes first.
            if let Some(plan) = self.predicted.pop_front() {
                let run = subject.run(&plan)?;
                self.explored.runs += 1;
                if run.too_long || !run.followed {
                    self.explored.incomplete.insert(Incomplete::NotFollowed);
                } else {
                    flow = self.visit(run, watch);
                }
                continue;
            }
            let Some((goal, age)) = self.next_goal() else { break };
            if self.is_over(subject) {
                self.push_again(goal, age);
                break;
            }
            let Some(schedule) = self.ask(goal) else { continue };
            let plan = self.plan(goal, schedule);
            let run = subject.run(&plan)?;
            self.explored.runs += 1;
            if run.too_long {
                self.explored.incomplete.insert(Incomplete::TooLong);
                continue;
            }
            let shown = run.followed && shows(&run, goal);
            let known = self.visited.len();
            flow = self.visit(run, watch);
            if self.spins_at(goal) {
                continue;
            }
            // A run that did not do what was planned must not be asked for again: it would never end.
            if shown && self.visited.len() > known && self.has_the_cut(goal.run, known, &plan) {
                self.push_again(goal, age);
            } else {
                self.explored.incomplete.insert(Incomplete::NotFollowed);
            }
        }
        self.end(flow.is_break());
        for Visited { run, made, engine, paths } in &mut self.visited {
            let (made, spins, confirmed) = (*made, &self.spins, &self.stuck);
            // There is nothing left to stop.
            let _ = watch(Visit { made, is_over: true, run, spins, engine, paths, confirmed });
        }
        Ok(())
    }

    /// Whether the runs or the time are used up, or the subject has had enough.
    fn is_over<S: Subject>(&mut self, subject: &mut S) -> bool {
        let Explored { runs, behaviours, questions, .. } = self.explored;
        let (left, provable) = (self.goals.len() + self.dropped, self.explored.is_complete());
        let so_far = SoFar { runs, behaviours, questions, left, provable };
        let is_late = self.options.deadline.is_some_and(|end| Instant::now() > end);
        runs >= self.options.runs || is_late || subject.goes_on(so_far).is_break()
    }

    /// Makes a run of an earlier search again.
    fn make_again<S: Subject>(
        &mut self,
        subject: &mut S,
        plan: &Plan,
        watch: &mut dyn FnMut(Visit<'_, '_, '_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, S::Error> {
        let run = subject.run(plan)?;
        self.explored.runs += 1;
        if run.too_long {
            self.explored.incomplete.insert(Incomplete::TooLong);
            return Ok(ControlFlow::Continue(()));
        }
        Ok(self.visit(run, watch))
    }

    /// Says what is left.
    fn end(&mut self, stopped: bool) {
        let left = self.goals.len() + self.dropped;
        if left > 0 || stopped || !self.predicted.is_empty() {
            self.explored.incomplete.insert(Incomplete::Budget(left));
        }
    }

    /// Makes the first run again, which should show nothing new.
    fn repeat_first<S: Subject>(&mut self, subject: &mut S) -> Result<(), S::Error> {
        let Some(first) = self.visited.first().map(|first| first.run) else { return Ok(()) };
        let schedule: Schedule = first.trace.events().map(|event| event.thread).collect();
        let run = subject.run(&first.plan(0, schedule, self.options.seed))?;
        self.explored.runs += 1;
        let why = match self.known.is_known(&run) {
            Ok(true) if run.followed => return Ok(()),
            Ok(true) => Incomplete::NotFollowed,
            Ok(false) => Incomplete::NotDeterministic(0),
            Err(not) => Incomplete::NotDeterministic(not.thread),
        };
        self.explored.incomplete.insert(why);
        Ok(())
    }

    /// Whether a run has all that its plan took from another.
    fn has_the_cut(&self, of: usize, run: usize, plan: &Plan) -> bool {
        let (of, run) = (&self.visited[of].paths, &self.visited[run].paths);
        let mut taken = vec![0; of.len()];
        // The last turn is the operation that has another outcome.
        for &thread in plan.turns.split_last().map_or(&[][..], |(_, before)| before) {
            taken[thread] += 1;
        }
        let same = |thread: usize| {
            let of = &of[thread][..=taken[thread]];
            taken[thread] == 0 || run.get(thread).is_some_and(|path| path.starts_with(of))
        };
        (0..of.len()).all(same)
    }

    /// Takes in a run, if it shows something new, and poses its goals.
    fn visit(&mut self, run: Run, watch: &mut dyn FnMut(Visit<'_, '_, '_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.spins.learn(&run);
        let paths = match self.known.add(&run) {
            Ok(Some(paths)) => paths,
            Ok(None) => return ControlFlow::Continue(()),
            Err(not) => {
                self.explored.incomplete.insert(Incomplete::NotDeterministic(not.thread));
                return ControlFlow::Continue(());
            }
        };
        let (run, rest) = self.runs.put(run);
        self.runs = rest;
        let (view, rest) = self.views.put(View::whole(&run.trace, Model::Values));
        self.views = rest;
        let number = self.visited.len();
        self.explored.behaviours += 1;
        let made = self.explored.runs - 1;
        self.visited.push(Visited { run, made, paths, engine: Engine::new(view) });
        for why in &run.inexact {
            self.explored.incomplete.insert(Incomplete::Inexact(why.clone()));
        }
        let steps = run.threads.iter().flatten().flat_map(|history| &history.steps);
        self.goals.note(steps.map(|step| (step.operation, step.seen)));
        self.pose(number);
        self.predict(number);
        let Visited { engine, paths, .. } = &mut self.visited[number];
        watch(Visit { made, is_over: false, run, spins: &self.spins, engine, paths, confirmed: &self.stuck })
    }

    /// Looks for states in which nobody can go on, and that are new.
    fn predict(&mut self, number: usize) {
        let left = self.options.confirmed.saturating_sub(self.stuck.len());
        let effort = Effort { conflicts: self.options.effort.min(MOST_CONFLICTS), ..self.effort() };
        let Visited { run, made, paths, engine } = &mut self.visited[number];
        if left == 0 {
            return;
        }
        let cuts = stuck_cuts(run, &self.spins, engine, MOST_COMBINATIONS, effort).unwrap_or_default();
        // Whether threads spin for ever is looked at when all loops are known.
        for (cut, found) in cuts.into_iter().filter(|(_, found)| !found.spins).take(left) {
            let ends = (0..paths.len()).all(|thread| cut[thread] + 1 == paths[thread].len());
            let Some(schedule) = found.schedules.into_iter().next() else { continue };
            if self.stuck.insert(nodes(paths, &cut)) && !ends {
                self.predicted.push_back(run.plan(*made, schedule, self.options.seed));
            }
        }
    }

    /// Poses every goal of a run.
    fn pose(&mut self, number: usize) {
        let run = self.visited[number].run;
        let written = Written::of(&run.trace, &run.in_parts);
        let effort = self.effort();
        let engine = &mut self.visited[number].engine;
        let mut sees = |&(read, writer): &(EventId, Writer)| {
            let question = Divergence::new(At::Event(read), Outcome::SeesWrite(writer));
            engine.diverges(&question, effort) != Verdict::Infeasible
        };
        if written.unknown.iter().any(&mut sees) {
            self.explored.incomplete.insert(Incomplete::UnknownValues);
        }
        if written.in_parts.iter().any(&mut sees) {
            self.explored.incomplete.insert(Incomplete::Parts);
        }
        for (thread, history) in run.threads.iter().enumerate() {
            let Some(history) = history else { continue };
            for (at, step) in history.steps.iter().enumerate() {
                for seen in written.others(step.observes, run.trace.op(step.event), Some(step.seen)) {
                    self.push(Goal { run: number, thread, at, seen });
                }
            }
            match history.end {
                End::Waits { observes, op: Some(op), .. } => {
                    for seen in written.others(observes, op, None) {
                        self.push(Goal { run: number, thread, at: history.steps.len(), seen });
                    }
                }
                End::Cut => {
                    self.explored.incomplete.insert(Incomplete::Stopped);
                }
                End::Done | End::Failed(_) | End::Waits { .. } => {}
            }
        }
    }

    fn effort(&self) -> Effort {
        Effort { conflicts: self.options.effort, deadline: self.options.deadline, ..Effort::default() }
    }

    fn push(&mut self, goal: Goal) {
        if self.goals.len() >= self.options.goals {
            self.dropped += 1;
            return;
        }
        let (operation, node) = about(&self.visited, goal);
        self.goals.push(goal, operation, node, &self.known);
    }

    fn push_again(&mut self, goal: Goal, age: u64) {
        let (operation, node) = about(&self.visited, goal);
        self.goals.push_again(goal, age, operation, node, &self.known);
    }

    fn next_goal(&mut self) -> Option<(Goal, u64)> {
        let visited = &self.visited;
        self.goals.pop(&self.known, |goal| about(visited, goal))
    }

    /// Whether all that a goal asks for is one more round of a loop that only looks.
    fn spins_at(&self, goal: Goal) -> bool {
        let history = self.visited[goal.run].run.threads[goal.thread].as_ref();
        history.is_some_and(|history| {
            let operation = history.operation(goal.at);
            operation.is_some_and(|operation| self.spins.completes(&history.steps[..goal.at], operation, goal.seen))
        })
    }

    /// Asks the engine for a cut that no run covers: how to get there, if there is one.
    fn ask(&mut self, goal: Goal) -> Option<Schedule> {
        if self.spins_at(goal) {
            return None;
        }
        let visited = &self.visited[goal.run];
        let history = visited.run.threads[goal.thread].as_ref()?;
        let rivals = self.known.through(visited.paths[goal.thread][goal.at], goal.seen);
        let rivals = rivals.into_iter().flat_map(|runs| runs.iter()).map(|run| &self.visited[run].paths);
        let clauses = rivals::clauses(&visited.paths, goal.thread, rivals)?;
        let event = |&(thread, at): &(usize, usize)| -> Option<EventId> {
            Some(visited.run.threads[thread].as_ref()?.steps.get(at)?.event)
        };
        let mut contain_one_of: Vec<Vec<EventId>> =
            clauses.iter().map(|clause| clause.iter().filter_map(event).collect()).collect();
        let at = match (history.steps.get(goal.at), history.end) {
            (Some(step), _) => At::Event(step.event),
            (None, End::Waits { op: Some(op), .. }) => {
                contain_one_of.extend(history.born.map(|born| vec![born]));
                At::End(history.thread, op)
            }
            _ => return None,
        };
        let outcome = match goal.seen {
            Seen::Value(value) => Outcome::Sees(value),
            Seen::Nothing | Seen::Taken => Outcome::Goes,
            Seen::Busy => Outcome::Fails,
        };
        let question = Divergence { contain_one_of, ..Divergence::new(at, outcome) };
        let effort = self.effort();
        self.explored.questions += 1;
        match self.visited[goal.run].engine.diverges(&question, effort) {
            // Small cuts and large ones find different things; which is better is not known beforehand.
            Verdict::Feasible(schedule) if self.options.varied && self.explored.runs.is_multiple_of(2) => {
                Some(self.enlarged(goal, question, schedule))
            }
            Verdict::Feasible(schedule) => Some(schedule),
            Verdict::Infeasible => None,
            Verdict::Unknown(Unknown::Deadline) => {
                self.explored.incomplete.insert(Incomplete::Budget(self.goals.len() + 1));
                None
            }
            Verdict::Unknown(why) => {
                self.explored.incomplete.insert(Incomplete::Undecided(why.name()));
                None
            }
        }
    }

    /// A way to the same outcome, behind as much of the run as possible: as much of one thread, then of the next, and so on.
    fn enlarged(&mut self, goal: Goal, mut question: Divergence, mut schedule: Schedule) -> Schedule {
        let effort = Effort { conflicts: self.options.effort.min(MOST_CONFLICTS), ..self.effort() };
        let Visited { run, engine, .. } = &mut self.visited[goal.run];
        let threads = run.threads.len();
        let mut questions = MOST_ENLARGING;
        // It begins with another thread each time.
        for thread in (0..threads).map(|nth| (nth + self.explored.runs / 2) % threads).filter(|&u| u != goal.thread) {
            let Some(history) = &run.threads[thread] else { continue };
            let mut most = history.steps.len();
            let mut least = run.turns(&schedule).iter().filter(|&&turn| turn == thread).count();
            // All of it, mostly; else half of it, and so on.
            let mut wanted = most;
            while least < most && questions > 0 {
                questions -= 1;
                self.explored.questions += 1;
                question.contain_one_of.push(vec![history.steps[wanted - 1].event]);
                match engine.diverges(&question, effort) {
                    Verdict::Feasible(found) => (schedule, least) = (found, wanted),
                    Verdict::Infeasible | Verdict::Unknown(_) => {
                        question.contain_one_of.pop();
                        most = wanted - 1;
                    }
                }
                wanted = least + (most - least).div_ceil(2);
            }
        }
        schedule
    }

    /// The plan that leads to a goal.
    fn plan(&self, goal: Goal, schedule: Schedule) -> Plan {
        let Visited { run, made, .. } = self.visited[goal.run];
        let mut plan = run.plan(made, schedule, self.options.seed.wrapping_add(self.explored.runs as u64));
        plan.turns.push(goal.thread);
        plan.seen.push(goal.seen);
        plan
    }
}

/// The operation of a goal, and the history before it.
fn about(visited: &[Visited<'_, '_>], goal: Goal) -> (Operation, Node) {
    let visited = &visited[goal.run];
    let history = visited.run.threads[goal.thread].as_ref();
    let operation = history.and_then(|history| history.operation(goal.at));
    let nowhere = Operation { place: 0, kind: 0, object: 0, operand: 0 };
    (operation.unwrap_or(nowhere), visited.paths[goal.thread][goal.at])
}

/// Whether a run shows what its goal wanted.
fn shows(run: &Run, goal: Goal) -> bool {
    let history = run.threads.get(goal.thread).and_then(|history| history.as_ref());
    history.and_then(|history| history.steps.get(goal.at)).is_some_and(|step| step.seen == goal.seen)
}

impl History {
    /// An operation of the thread, also the one that it waits at.
    pub(crate) fn operation(&self, at: usize) -> Option<Operation> {
        match (self.steps.get(at), self.end) {
            (Some(step), _) => Some(step.operation),
            (None, End::Failed(operation)) => Some(operation),
            (None, End::Waits { operation, .. }) => operation,
            (None, End::Done | End::Cut) => None,
        }
    }
}
