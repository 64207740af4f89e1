//! Properties: what the lattice found, checked, in words.
//!
//! A finding is a property and the source location of the event that breaks it, with the schedule that deviates least
//! from the observed run. Each schedule is replayed by the independent checker, and the run it gives is judged by the
//! reference semantics, before anybody sees it. In `reads`, the last executed read of each thread may see any write.

mod explain;
mod final_values;
mod telling;

use crate::answers::name_findings;
use crate::asking::Flags;
use crate::bug::{BugKind, Place, Role};
use crate::facts::Facts;
use crate::finding::{Evidence, Finding, Witness};
use crate::kinds::{Bug, PropertyTold, PropertyVerdict};
use crate::lattice::{Bounds, Broken, explore, whole, whole_seen};
use crate::prediction::Prediction;
use crate::request::{Control, Stop};
use crate::undecided::{Incomplete, Status, Why};
use explain::{checked, explain};
use final_values::Ending;
use portent_order::Model;
use portent_order::engine::Effort;
use portent_spec::{Bound, Compiled};
use portent_trace::{EventId, LocId, Trace};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use telling::{refused, tell};

/// How to look for violations.
#[derive(Clone, Copy, Debug)]
pub struct PropertyOptions {
    /// What reads must see.
    pub model: Model,
    /// Cuts per level, at most.
    pub width: usize,
    /// Stop after this long.
    pub budget: Option<Duration>,
    /// Count runs and cuts if the whole lattice has at most so many states.
    pub count: usize,
    /// Also look at complete runs in which reads see other values, for properties on final values.
    pub values: bool,
}

impl PropertyOptions {
    /// States of a lattice that is counted, at most.
    pub const COUNT: usize = 100_000;
    /// The usual options in a model. The lattice knows nothing of values that change: in place of `values` it is explored
    /// in `reads`, whose reorderings are some of those of `values`, and final values are left to the order engine.
    pub fn of(model: Model) -> Self {
        let values = model == Model::Values;
        let model = if values { Model::Reads } else { model };
        PropertyOptions { model, width: Bounds::WIDTH, budget: None, count: Self::COUNT, values }
    }
}

/// Whether some reordering of the trace breaks a property.
pub fn check_properties(
    trace: &Trace,
    properties: &[Bound],
    options: &PropertyOptions,
    control: &Control<'_>,
) -> Prediction {
    let started = Instant::now();
    let whole = Stop::new(control.interrupt, options.budget.and_then(|budget| started.checked_add(budget)));
    let Some(facts) = Facts::until(trace, &|| whole.why().is_some()) else {
        return Prediction::not_examined(&[BugKind::Property], whole.why().unwrap_or(Why::Budget));
    };
    let mut prediction = Prediction::default();
    let mut counts = Counts { trace, model: options.model, most: options.count, without_reads: None };
    for (at, bound) in properties.iter().enumerate() {
        // What is left of the time, shared by the properties that are left.
        let left = options.budget.map(|budget| budget.saturating_sub(started.elapsed()));
        let share = left.map(|left| left / (properties.len() - at) as u32);
        let stop = Stop::new(control.interrupt, share.and_then(|share| Instant::now().checked_add(share)));
        let mut monitor = match Compiled::new(bound) {
            Ok(monitor) => monitor,
            Err(why) => {
                prediction.properties.push(refused(bound, options.model, why.to_string()));
                prediction.incomplete.push(incomplete(1, Why::Budget, why.to_string()));
                continue;
            }
        };
        let bounds = Bounds { model: options.model, width: options.width, unreduced: false };
        let mut explored = explore(trace, &mut monitor, &bounds, &|_| stop.why());
        let broken = std::mem::take(&mut explored.broken);
        let unknown = explored.unknown.as_ref().map(|state| monitor.unknown_values(state).join(", "));
        let mut found = findings(&facts, bound, options.model, broken, &mut prediction.errors);
        let mut told = tell(trace, bound, options.model, !found.is_empty(), explored, counts.of(bound), unknown);
        if options.values && found.is_empty() {
            let effort = Effort { deadline: stop.deadline, interrupt: stop.interrupt, ..Effort::default() };
            found = look_at_values(&facts, bound, effort, &mut told, &mut prediction.errors);
        }
        match told.verdict {
            PropertyVerdict::Incomplete => {
                let why = told.explored.stopped.map_or(Why::Width, |(why, _)| why);
                let what = format!("property {}: {}", bound.property.name, told.sentence);
                prediction.incomplete.push(incomplete(told.explored.dropped.max(1), why, what));
                prediction.partial = prediction.partial.or(told.explored.stopped.map(|(why, _)| why));
            }
            PropertyVerdict::Unknown => {
                let what = format!("property {}: {}", bound.property.name, told.sentence);
                prediction.incomplete.push(incomplete(1, Why::Values, what));
            }
            _ => {}
        }
        prediction.findings.extend(found);
        prediction.properties.push(told);
    }
    name_findings(trace, &mut prediction.findings);
    prediction.stats.time = started.elapsed();
    prediction
}

/// How many reorderings and cuts of them a trace has, for different properties.
struct Counts<'t> {
    trace: &'t Trace,
    model: Model,
    /// States of a lattice that is counted, at most.
    most: usize,
    /// For properties that see no reads: the same for all of them.
    without_reads: Option<Option<(Option<u128>, u64)>>,
}

impl Counts<'_> {
    fn of(&mut self, bound: &Bound) -> Option<(Option<u128>, u64)> {
        let sees_reads = || self.trace.events().any(|event| event.op.reads() && bound.sees(&event));
        if self.model == Model::Reads && self.trace.len() < self.most && sees_reads() {
            let counted = whole_seen(self.trace, self.model, &|event| bound.sees(event), self.most);
            return counted.map(|whole| (whole.runs, whole.cuts() as u64));
        }
        *self.without_reads.get_or_insert_with(|| {
            let counted = whole(self.trace, self.model, self.most);
            counted.map(|whole| (whole.runs, whole.cuts() as u64))
        })
    }
}

/// Looks for complete runs that end badly because of values that change, and says what came of it.
fn look_at_values(
    facts: &Facts<'_>,
    bound: &Bound,
    effort: Effort,
    told: &mut PropertyTold,
    errors: &mut Vec<String>,
) -> Vec<Finding> {
    match final_values::look(facts, bound, effort) {
        Ending::Unasked => {
            told.notes.push(
                "explored in the model reads: values that change are looked at for `final` on values only".into(),
            );
        }
        Ending::Good => {
            told.model = Model::Values;
            told.sentence.push_str("; also where reads see other values");
        }
        Ending::Open(why) => {
            told.verdict = PropertyVerdict::Incomplete;
            told.sentence =
                format!("no violation found; runs in which reads see other values were not all examined ({why})");
        }
        Ending::Bad(way) => {
            let found = findings(facts, bound, Model::Values, vec![way], errors);
            if !found.is_empty() {
                told.model = Model::Values;
                told.verdict = PropertyVerdict::Broken;
                told.sentence = "can be broken, where reads see other values".into();
            }
            return found;
        }
    }
    Vec::new()
}

fn incomplete(count: u64, why: Why, what: String) -> Incomplete {
    let (kind, status, events) = (BugKind::Property, Status::Undecided, Some(Vec::new()));
    Incomplete { kind, status, events, count, groups: false, at_least: false, why, what }
}

/// Ways to break a property as findings: one for each source location, the least deviation first.
fn findings(
    facts: &Facts<'_>,
    bound: &Bound,
    model: Model,
    broken: Vec<Broken>,
    errors: &mut Vec<String>,
) -> Vec<Finding> {
    let trace = facts.trace;
    let mut groups: BTreeMap<Option<LocId>, usize> = BTreeMap::new();
    let mut found: Vec<Finding> = Vec::new();
    for way in broken {
        let location = way.event.map(|event| trace.event(event).loc);
        if let Some(&known) = groups.get(&location) {
            found[known].instances += 1;
            continue;
        }
        let run = match checked(facts, bound, model, &way) {
            Ok(run) => run,
            Err(why) => {
                errors.push(format!("witness against property {} in {model}: {why}", bound.property.name));
                continue;
            }
        };
        groups.insert(location, found.len());
        let place = match way.event {
            Some(event) => Place::of_event(trace, Role::Violation, event),
            None => {
                let object = bound.watched.iter().map(|watched| watched.name.as_str()).collect::<Vec<_>>().join(", ");
                Place::of_value(Role::Violation, "final", object)
            }
        };
        let read_anew = run.iter().filter(|done| done.changed.is_some()).map(|done| done.event.id);
        let through: Vec<EventId> = way.event.into_iter().chain(read_anew).collect();
        let steps = match way.event {
            Some(_) => facts.steps.convert_run_through(trace, &way.schedule, &through),
            None => facts.steps.convert_run(trace, &way.schedule),
        };
        found.push(Finding {
            id: String::new(),
            bug: Bug::Property { at: place, violated: explain(trace, bound, &way, &run) },
            evidence: if way.deviation == 0 { Evidence::Observed } else { Evidence::Predicted },
            model: Some(model),
            object: bound.property.name.clone(),
            instances: 1,
            instances_exact: true,
            flags: Flags::default(),
            witness: Some(Witness { schedule: way.schedule.clone(), steps }),
            other_branch: None,
        });
    }
    found
}
