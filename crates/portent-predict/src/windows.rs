//! Windows of a trace, spread over threads, each examined by an engine of its own.
//!
//! Windows are made one after the other, examined in any order, and merged in theirs: results do not depend on the
//! number of threads.

use crate::asking::{Answers, Asker, Open, Window};
use crate::bug::BugKind;
use crate::examination::{Examination, Pass};
use crate::happens_before::{Hindsight, Rear};
use crate::kinds;
use portent_order::engine::{Engine, Tiers, View};
use portent_order::{Goal, Model, Verdict};
use portent_trace::EventId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

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

struct Queue<'q, 't, V> {
    views: V,
    tasks: std::slice::Iter<'q, Task>,
    rear: Option<Rear<'t>>,
    next: usize,
}

/// Examines the windows, whose starts must not go back. The result is how many of them it came to.
pub(crate) fn sweep(examination: &mut Examination<'_, '_>, tasks: &[Task], open: &Open) -> usize {
    if tasks.is_empty() {
        return 0;
    }
    let here = &*examination;
    let (facts, model) = (here.facts, here.options.model);
    let has = |kind| here.options.kinds.contains(&kind) && open.wants_kind(kind);
    let queue = Mutex::new(Queue {
        views: View::spans(facts.trace, model, tasks.iter().map(|task| task.span.clone())),
        tasks: tasks.iter(),
        rear: has(BugKind::Race).then(|| Rear::new(facts.trace)),
        next: here.next_window(),
    });
    let gathered: Mutex<BTreeMap<usize, (Answers, Tiers)>> = Mutex::default();
    let work = || {
        while here.stop.why().is_none() {
            let (number, task, view, hindsight): (usize, &Task, View<'_>, Option<Hindsight>) = {
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
            let ordered = hindsight.map(|hb| move |first, second| hb.ordered(facts.trace, first, second));
            let ordered = ordered.as_ref().map(|ordered| ordered as &dyn Fn(EventId, EventId) -> bool);
            let window = Window { facts, span, fresh: task.fresh, ordered };
            let mut engine = Engine::new(&view).reusing(here.options.reuse);
            let mut answers = Answers::default();
            let mut asker = Asker {
                facts,
                view: &view,
                engine: &mut engine,
                model,
                effort: here.effort(),
                stop: here.stop,
                answers: &mut answers,
                settled: &here.settled,
                window: number,
                open,
            };
            kinds::ALL.iter().filter(|kind| has(kind.kind)).for_each(|kind| (kind.examine)(&window, &mut asker));
            let tiers = engine.tiers();
            gathered.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(number, (answers, tiers));
            if let Some(progress) = here.control.progress {
                progress(end as u64, facts.trace.len() as u64);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..here.options.jobs.min(tasks.len()) {
            scope.spawn(work);
        }
        work();
    });
    let gathered = gathered.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let done = gathered.len();
    examination.add_windows(tasks.len(), gathered);
    done
}

/// A trace that fits one window is examined there, completely.
pub(crate) struct Whole;

impl<'a, 't> Pass<'a, 't> for Whole {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let span = 0..examination.facts.trace.len();
        let examined = sweep(examination, &[Task { span, fresh: 0 }], &Open::all());
        let stats = &mut examination.prediction.stats;
        (stats.windows, stats.windows_in_all) = (examined as u64, 1);
    }
}

/// In `values`: what is left is looked for in windows that cover the trace, unless it was asked of the whole trace. What they do
/// not show stays undecided.
pub(crate) struct Remaining;

impl<'a, 't> Pass<'a, 't> for Remaining {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        let open = examination.still_open();
        if examination.options.model != Model::Values || examination.is_asked_as_a_whole() || open.is_empty() {
            return;
        }
        let groups = &examination.board.groups;
        let open = Open::groups(open.iter().map(|&g| (groups[g].kind, groups[g].key.clone())));
        let tasks = windows(examination.facts.trace.len(), examination.options.window);
        sweep(examination, &tasks, &open);
        // What a window could not decide is a group that stays open.
        examination.forget_undecided();
        ask_around(examination);
    }
}

/// Looks for what is left in longer windows around an instance of each group.
fn ask_around(examination: &mut Examination<'_, '_>) {
    if examination.stop.why().is_some() {
        return;
    }
    let (facts, len) = (examination.facts, 2 * examination.options.window);
    let mut around: Vec<(Range<usize>, Goal)> = Vec::new();
    for g in examination.still_open() {
        let Some(goal) = examination.board.groups[g].instances.first() else { continue };
        let inputs = kinds::places(facts, goal).into_iter().filter_map(|place| place.event);
        let ends: Vec<usize> = inputs.map(|input| facts.trace.lowered(input).start).collect();
        let (Some(&low), Some(&high)) = (ends.iter().min(), ends.iter().max()) else { continue };
        if high - low < len {
            let end = (high + 1 + (len - (high - low)) / 8).min(facts.trace.len());
            around.push((end.saturating_sub(len)..end, goal.clone()));
        }
    }
    around.sort_by_key(|(span, goal)| (span.start, goal.clone()));
    let views = View::spans(facts.trace, examination.options.model, around.iter().map(|(span, _)| span.clone()));
    let mut found = Vec::new();
    for (view, (_, goal)) in views.zip(&around).take_while(|_| examination.stop.why().is_none()) {
        let mut engine = Engine::new(&view);
        if let Verdict::Feasible(schedule) = engine.decide(goal, examination.effort()) {
            found.push((goal.clone(), schedule));
        }
        examination.prediction.stats.tiers.add(&engine.tiers());
    }
    examination.adopt(found);
}
