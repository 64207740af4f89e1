//! Sweeps: windows of a trace, spread over threads, each examined by an engine of its own.
//!
//! Windows are made one after the other, examined in any order, and merged in theirs: results do not depend on the
//! number of threads.

use crate::ask::{Asker, Group, Outcome};
use crate::bug::BugKind;
use crate::facts::Facts;
use crate::finding::{Flags, Why};
use crate::hb::{self, Hindsight, Rear};
use crate::key::Key;
use crate::pane::Pane;
use crate::predict::{Control, Options};
use crate::{atomicity, deadlock, nondeterminism, race};
use portent_order::engine::{Effort, Engine, Tiers, View};
use portent_order::{Goal, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When to stop.
pub(crate) struct Stop<'a> {
    interrupt: Option<&'a AtomicBool>,
    pub(crate) deadline: Option<Instant>,
    over: AtomicBool,
}

impl<'a> Stop<'a> {
    pub(crate) fn new(interrupt: Option<&'a AtomicBool>, deadline: Option<Instant>) -> Self {
        Stop { interrupt, deadline, over: AtomicBool::new(false) }
    }
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

/// Which candidates are worth asking about.
#[derive(Default)]
pub(crate) struct Open {
    /// Groups that have no finding yet; `None` for everything.
    groups: Option<FxHashSet<Key>>,
    kinds: [bool; 4],
}

impl Open {
    /// Everything.
    pub(crate) fn all() -> Self {
        Open { groups: None, kinds: [true; 4] }
    }
    /// These groups.
    pub(crate) fn groups(keys: impl Iterator<Item = (BugKind, Key)>) -> Self {
        let mut open = Open { groups: Some(FxHashSet::default()), kinds: [false; 4] };
        for (kind, key) in keys {
            open.kinds[kind as usize] = true;
            open.groups.get_or_insert_default().insert(key);
        }
        open
    }
    /// Whether anything of a kind is.
    pub(crate) fn wants_kind(&self, kind: BugKind) -> bool {
        self.kinds[kind as usize]
    }
    /// Whether a candidate is.
    pub(crate) fn wants(&self, facts: &Facts<'_>, goal: &Goal) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(&Key::of(facts, goal)))
    }
}

/// A window, and what to do with it.
pub(crate) struct Task {
    pub(crate) span: Range<usize>,
    /// First event that the window before does not contain.
    pub(crate) fresh: usize,
}

/// Windows of so many events that overlap by half and cover the trace.
pub(crate) fn windows(events: usize, window: usize) -> Vec<Task> {
    let len = window.max(2);
    let mut tasks: Vec<Task> = Vec::new();
    loop {
        let first = tasks.len() * (len / 2);
        let fresh = tasks.last().map_or(0, |before| before.span.end);
        tasks.push(Task { span: first..(first + len).min(events), fresh });
        if first + len >= events {
            return tasks;
        }
    }
}

/// What all sweeps of a prediction share.
pub(crate) struct Sweeper<'a, 't> {
    pub(crate) facts: &'a Facts<'t>,
    pub(crate) options: &'a Options,
    pub(crate) control: &'a Control<'a>,
    pub(crate) stop: &'a Stop<'a>,
    known: Known,
    /// Windows so far.
    next: usize,
    /// What the engine's tiers did outside the windows.
    pub(crate) spent: Tiers,
    /// What came out of each window, in order.
    pub(crate) outcomes: BTreeMap<usize, (Outcome, Tiers)>,
}

struct Queue<'q, 't, V> {
    views: V,
    tasks: std::slice::Iter<'q, Task>,
    rear: Option<Rear<'t>>,
    next: usize,
}

impl<'a, 't> Sweeper<'a, 't> {
    pub(crate) fn new(
        facts: &'a Facts<'t>,
        options: &'a Options,
        control: &'a Control<'a>,
        stop: &'a Stop<'a>,
    ) -> Self {
        let (known, outcomes) = (Known::default(), BTreeMap::new());
        Sweeper { facts, options, control, stop, known, next: 0, spent: Tiers::default(), outcomes }
    }

    /// How much one question may cost.
    pub(crate) fn effort(&self) -> Effort {
        Effort { conflicts: self.options.conflicts, deadline: self.stop.deadline }
    }

    /// Examines the windows, whose starts must not go back. The result is how many of them it came to.
    pub(crate) fn sweep(&mut self, tasks: &[Task], open: &Open) -> usize {
        if tasks.is_empty() {
            return 0;
        }
        let (facts, model) = (self.facts, self.options.model);
        let has = |kind| self.options.kinds.contains(&kind) && open.wants_kind(kind);
        let queue = Mutex::new(Queue {
            views: View::spans(facts.trace, model, tasks.iter().map(|task| task.span.clone())),
            tasks: tasks.iter(),
            rear: has(BugKind::Race).then(|| Rear::new(facts.trace)),
            next: self.next,
        });
        let gathered: Mutex<BTreeMap<usize, (Outcome, Tiers)>> = Mutex::default();
        let work = || {
            while self.stop.why().is_none() {
                let (window, task, view, hindsight): (usize, &Task, View<'t>, Option<Hindsight>) = {
                    let mut queue = queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    let (Some(task), Some(view)) = (queue.tasks.next(), queue.views.next()) else { return };
                    let span = view.span();
                    let hindsight = queue.rear.as_mut().map(|rear| rear.window(span.first..span.first + span.len));
                    queue.next += 1;
                    (queue.next - 1, task, view, hindsight)
                };
                let span = view.span();
                let span = span.first..span.first + span.len;
                let end = span.end;
                let pane = Pane { facts, span, fresh: task.fresh, hindsight: hindsight.as_ref() };
                let mut engine = Engine::new(&view);
                let mut outcome = Outcome::default();
                let mut asker = Asker {
                    facts,
                    view: &view,
                    engine: &mut engine,
                    model,
                    effort: self.effort(),
                    stop: self.stop,
                    outcome: &mut outcome,
                    known: &self.known,
                    window,
                    open,
                };
                BugKind::ALL.into_iter().filter(|&kind| has(kind)).for_each(|kind| match kind {
                    BugKind::Race => race::examine(&pane, &mut asker),
                    BugKind::Deadlock => deadlock::examine(&pane, &mut asker),
                    BugKind::Atomicity => atomicity::examine(&pane, &mut asker),
                    BugKind::Nondeterminism => nondeterminism::examine(&pane, &mut asker),
                    // Examined by the lattice, on the whole trace.
                    BugKind::Property => {}
                });
                let tiers = engine.tiers();
                gathered.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(window, (outcome, tiers));
                if let Some(progress) = self.control.progress {
                    progress(end as u64, facts.trace.len() as u64);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.options.jobs.min(tasks.len()) {
                scope.spawn(work);
            }
            work();
        });
        let gathered = gathered.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let done = gathered.len();
        self.next += tasks.len();
        self.outcomes.extend(gathered);
        done
    }

    /// Takes in what another pass found: goals with schedules that reach them. Each is checked first.
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

    /// Takes in goals with schedules that the checker has accepted, and complaints about others.
    pub(crate) fn take(&mut self, found: Vec<(Goal, Schedule)>, rejected: Vec<String>) {
        let mut outcome = Outcome { rejected, ..Outcome::default() };
        let races = found.iter().filter_map(|(goal, _)| match *goal {
            Goal::Race { first, second } => Some((first, second)),
            _ => None,
        });
        let beyond_hb = hb::ordered(self.facts.trace, &races.collect::<Vec<_>>());
        for (goal, schedule) in found {
            let beyond_hb = matches!(goal, Goal::Race { first, second } if beyond_hb.contains(&(first, second)));
            let (key, flags) =
                (Key::of(self.facts, &goal), Flags { beyond_hb, ..nondeterminism::flags(self.facts, &goal) });
            outcome.done[BugKind::of(&goal) as usize] += 1;
            outcome.groups.entry(key).or_insert_with(|| Group::new(goal, flags, Some(schedule)));
        }
        self.outcomes.insert(self.next, (outcome, Tiers::default()));
        self.next += 1;
    }

    /// The groups that have a finding.
    pub(crate) fn found(&self) -> FxHashSet<Key> {
        self.outcomes.values().flat_map(|(outcome, _)| outcome.groups.keys().cloned()).collect()
    }
}
