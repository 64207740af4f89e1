//! Properties: what the lattice found, checked, in words.
//!
//! A finding is a property and the source location of the event that breaks it, with the schedule that deviates least
//! from the observed run. Each schedule is replayed by the independent checker, and the run it gives is judged by the
//! reference semantics, before anybody sees it. In `reads`, the last executed read of each thread may see any write.

use crate::bug::{Bug, BugKind, Place, Role, Violated};
use crate::facts::Facts;
use crate::final_values::{self, Ending};
use crate::finding::{Evidence, Finding, Flags, Incomplete, Status, Why, Witness};
use crate::key::name_findings;
use crate::lattice::{Bounds, Broken, Explored, explore, whole, whole_seen};
use crate::predict::{Control, Prediction};
use crate::sweep::Stop;
use portent_order::engine::Effort;
use portent_order::{Executed, Model, Writer};
use portent_spec::{Assume, Bound, Compiled, InitialFrom, Ruling, evaluate_changed};
use portent_trace::{Event, EventId, LocId, Op, Trace};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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

/// What came of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyVerdict {
    /// Every reordering was examined, and none breaks it.
    Holds,
    /// Some reordering breaks it.
    Broken,
    /// None was found, but not all were examined.
    Incomplete,
    /// A value that the trace does not carry decides.
    Unknown,
}

impl PropertyVerdict {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            PropertyVerdict::Holds => "holds",
            PropertyVerdict::Broken => "violated",
            PropertyVerdict::Incomplete => "incomplete",
            PropertyVerdict::Unknown => "unknown",
        }
    }
}

/// What there is to say about a property of one trace.
#[derive(Clone, Debug)]
pub struct PropertyTold {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub text: String,
    /// In which model.
    pub model: Model,
    /// What came of it.
    pub verdict: PropertyVerdict,
    /// In a sentence, without the name.
    pub sentence: String,
    /// Assumptions, and what was not known.
    pub notes: Vec<String>,
    /// Reorderings of the trace in which every thread does all it did or, in `reads`, stops at a read that the property
    /// sees and that sees another write; where they could be counted.
    pub runs: Option<u128>,
    /// Cuts of these reorderings, where they could be counted.
    pub cuts: Option<u64>,
    /// What exploring cost and left out.
    pub explored: Explored,
}

/// Whether some reordering of the trace breaks a property.
pub fn check_properties(
    trace: &Trace,
    properties: &[Bound],
    options: &PropertyOptions,
    control: &Control<'_>,
) -> Prediction {
    let started = Instant::now();
    let facts = Facts::new(trace);
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
            let effort = Effort { deadline: stop.deadline, ..Effort::default() };
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

fn refused(bound: &Bound, model: Model, sentence: String) -> PropertyTold {
    PropertyTold {
        name: bound.property.name.clone(),
        text: bound.property.text.clone(),
        model,
        verdict: PropertyVerdict::Incomplete,
        sentence,
        notes: Vec::new(),
        runs: None,
        cuts: None,
        explored: Explored::default(),
    }
}

fn plural(count: u128, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A number in groups of three.
fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn tell(
    trace: &Trace,
    bound: &Bound,
    model: Model,
    is_broken: bool,
    explored: Explored,
    counts: Option<(Option<u128>, u64)>,
    unknown: Option<String>,
) -> PropertyTold {
    let examined = plural(explored.cuts.into(), "cut");
    let verdict = match (is_broken, explored.is_complete(), &unknown) {
        (true, ..) => PropertyVerdict::Broken,
        (false, false, _) => PropertyVerdict::Incomplete,
        (false, true, Some(_)) => PropertyVerdict::Unknown,
        (false, true, None) => PropertyVerdict::Holds,
    };
    let runs = counts.and_then(|(runs, _)| runs);
    let cuts = counts.map(|(_, cuts)| cuts);
    let sentence = match verdict {
        PropertyVerdict::Holds => {
            let all = match runs.filter(|_| cuts.is_some()) {
                Some(1) => "the only reordering".to_owned(),
                Some(runs) => format!("all {} reorderings", grouped(runs)),
                None => "all reorderings".to_owned(),
            };
            let which = match model {
                Model::Reads => "in which every read but a thread's last one keeps its writer",
                _ => "of this run",
            };
            let cuts = cuts.filter(|_| runs.is_some());
            let cuts = cuts.map_or_else(String::new, |cuts| format!("{}, ", plural(cuts.into(), "cut")));
            format!("holds in {all} {which} ({cuts}{examined} examined)")
        }
        PropertyVerdict::Broken if explored.is_complete() => format!("can be broken ({examined} examined)"),
        PropertyVerdict::Broken => format!("can be broken ({examined} examined, not all there are)"),
        PropertyVerdict::Incomplete => {
            let level = explored.incomplete_from.or(explored.stopped.map(|(_, level)| level)).unwrap_or(0);
            let dropped = plural(explored.dropped.into(), "cut");
            let stopped = match explored.stopped {
                Some((Why::Interrupted, level)) => format!(", interrupted at level {}", grouped(level.into())),
                Some((_, level)) => format!(", out of time at level {}", grouped(level.into())),
                None => String::new(),
            };
            let level = grouped(level.into());
            format!(
                "no violation found, incomplete from level {level}, {dropped} dropped{stopped} ({examined} examined)"
            )
        }
        PropertyVerdict::Unknown => {
            let about = unknown.as_deref().filter(|names| !names.is_empty());
            let about = about.map_or_else(|| "a value".to_owned(), |names| format!("the value of {names}"));
            format!("not broken as far as values are known, but {about} is not known somewhere ({examined} examined)")
        }
    };
    let mut notes = Vec::new();
    let assumed: Vec<&str> = bound.assumed().map(|watched| watched.name.as_str()).collect();
    if !assumed.is_empty() {
        let names = assumed.join(", ");
        notes.push(format!(
            "{names}: taken to start at 0, as nothing in the trace tells; `initial NAME = VALUE` settles it"
        ));
    }
    for watched in &bound.watched {
        if let Some(write) = watched.valueless {
            let thread = trace.names().thread(trace.thread(write));
            let event = trace.input_index(write);
            let place = trace.names().location(trace.event(write).loc);
            notes.push(format!(
                "{}: the write by {thread} at {place} (event {event}) carries no value, so it is not known after it",
                watched.name
            ));
        }
    }
    if verdict == PropertyVerdict::Unknown && model == Model::Reads {
        for watched in bound.watched.iter().filter(|watched| watched.valueless.is_none()) {
            let updates = |event: Event| matches!(event.op, Op::Update(x, _) if x == watched.variable);
            if trace.events().any(updates) {
                notes.push(format!(
                    "{}: what an update writes is not known where it sees another write than in the recorded run",
                    watched.name
                ));
            }
        }
    }
    if explored.visible == 0 {
        notes.push("it sees no event of this trace".into());
    }
    PropertyTold {
        name: bound.property.name.clone(),
        text: bound.property.text.clone(),
        model,
        verdict,
        sentence,
        notes,
        runs,
        cuts,
        explored,
    }
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

/// An event of a run that breaks a property, with the value it has there.
#[derive(Clone, Copy)]
struct Done {
    event: Event,
    /// If it reads another write than in the trace: which.
    changed: Option<Writer>,
}

/// What a property's definition says of a run.
fn judged(bound: &Bound, run: &[Done], complete: bool, assume: Assume) -> Ruling {
    let events: Vec<Event> = run.iter().map(|done| done.event).collect();
    evaluate_changed(bound, &events, &|at| run[at].changed.is_some(), complete, assume)
}

/// Replays a way by the checker and judges it by the reference semantics.
fn checked(facts: &Facts<'_>, bound: &Bound, model: Model, way: &Broken) -> Result<Vec<Done>, String> {
    let trace = facts.trace;
    let executed = facts.checker.replay_for_property(model, &way.schedule).map_err(|why| why.to_string())?;
    let unknown = |writer: EventId| executed.iter().any(|done| done.event == writer && done.changed.is_some());
    let done = |&Executed { event, changed }: &Executed| {
        let mut event = trace.event(event);
        match changed {
            None => {}
            // Not what it recorded: what the variable holds, or, for an update, nobody knows what.
            _ if event.op.writes() => event.value = None,
            Some(Writer::Event(writer)) if unknown(writer) => event.value = None,
            Some(Writer::Event(writer)) => {
                event.value = trace.value(writer).or_else(|| bound.written(&trace.event(writer)));
            }
            Some(Writer::Init) => {
                let watched = bound.watched.iter().find(|watched| Some(watched.variable) == event.op.variable());
                event.value = watched.map(|watched| watched.initial);
            }
        }
        Done { event, changed }
    };
    let mut run: Vec<Done> = executed.iter().map(done).collect();
    if model == Model::Values {
        let numbers = facts.checker.numbers(&way.schedule).map_err(|why| why.to_string())?;
        let mut numbers = numbers.iter().peekable();
        for Done { event, .. } in &mut run {
            if let Some(numbers) = numbers.next_if(|numbers| numbers.event == event.id) {
                event.value = if event.op.writes() { numbers.written } else { numbers.read };
            }
        }
    }
    let complete = run.len() == trace.len() && run.iter().all(|done| done.changed.is_none());
    let expected = if way.event.is_some() { run.len() - 1 } else { run.len() };
    match judged(bound, &run, complete, Assume::Zero) {
        Ruling::Broken(at) if at == expected && run.get(at).map(|done| done.event.id) == way.event => Ok(run),
        other => Err(format!("by definition, {other:?}")),
    }
}

/// Which values, at which step, in which thread.
fn explain(trace: &Trace, bound: &Bound, way: &Broken, run: &[Done]) -> Violated {
    let names = trace.names();
    let who = |event: &Event| names.thread(event.thread).to_owned();
    let deed = |event: &Event| {
        let place = Place::of_event(trace, Role::Violation, event.id);
        let value = event.value.map_or_else(String::new, |value| format!(" = {value}"));
        format!("{} {}{value}", place.op, place.object).trim_end().to_owned()
    };
    // What each variable holds, and since when; before the last event and after it.
    let mut holds: Vec<(Option<i64>, Option<Event>)> =
        bound.watched.iter().map(|watched| (Some(watched.initial), None)).collect();
    let state = |holds: &[(Option<i64>, Option<Event>)]| {
        let each = bound.watched.iter().zip(holds).map(|(watched, (value, since))| {
            let value = value.map_or_else(|| "?".to_owned(), |value| value.to_string());
            let since = match (since, watched.from) {
                (Some(event), _) => format!("{} at {}", who(event), names.location(event.loc)),
                (None, InitialFrom::Assumed) => "assumed to start so".to_owned(),
                (None, _) => "as it started".to_owned(),
            };
            format!("{} = {value} ({since})", watched.name)
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let seen: Vec<&Done> = run.iter().filter(|done| bound.sees(&done.event)).collect();
    let mut before = state(&holds);
    for Done { event, changed } in &seen {
        before = state(&holds);
        if event.op.writes()
            && let Some(slot) = bound.watched.iter().position(|w| Some(w.variable) == event.op.variable())
        {
            holds[slot] = (bound.written(event).filter(|_| changed.is_none()), Some(*event));
        }
    }
    let seen: Vec<&Event> = seen.into_iter().map(|done| &done.event).collect();
    let mut text = match (way.event, seen.last()) {
        (Some(_), Some(last)) => {
            let step = format!("Step {} of this order", run.len());
            format!("{step}, {}'s {} at {}, breaks it.", who(last), deed(last), names.location(last.loc))
        }
        _ => format!("The end of this complete order, after {}, breaks it.", plural(run.len() as u128, "step")),
    };
    if !bound.watched.is_empty() {
        if way.event.is_some() {
            text.push_str(&format!(" Before it: {before}. After it: {}.", state(&holds)));
        } else {
            text.push_str(&format!(" At the end: {}.", state(&holds)));
        }
    }
    const LAST: usize = 6;
    let saw: Vec<&Event> = seen.iter().rev().take(LAST).rev().copied().collect();
    let mut told: Vec<String> = saw.iter().map(|event| format!("{} {}", who(event), deed(event))).collect();
    if way.event.is_none() {
        told.push("end".into());
    }
    let more = if seen.len() > LAST { "… → " } else { "" };
    text.push_str(&format!(" What it saw: {more}{}.", told.join(" → ")));
    for Done { event, changed } in run {
        let Some(writer) = changed else { continue };
        let sees = match writer {
            Writer::Init => "the initial value".to_owned(),
            Writer::Event(writer) => {
                let writer = trace.event(*writer);
                format!("what {} wrote at {}", who(&writer), names.location(writer.loc))
            }
        };
        let place = Place::of_event(trace, Role::Violation, event.id);
        let what = format!("{}'s {} {} at {}", who(event), place.op, place.object, names.location(event.loc));
        text.push_str(&format!(
            " {what} sees {sees}, not what it saw in the recorded run: {} stops there, as what it does next is not known.",
            who(event)
        ));
    }
    let complete = way.event.is_none();
    let assumes: Vec<String> = match judged(bound, run, complete, Assume::Nothing) {
        Ruling::Broken(_) => Vec::new(),
        _ => bound.assumed().map(|watched| watched.name.clone()).collect(),
    };
    if !assumes.is_empty() {
        text.push_str(&format!(" This rests on {} starting at 0, which the trace does not show.", assumes.join(", ")));
    }
    let saw: Vec<EventId> = saw.iter().map(|event| event.id).collect();
    let declared = bound.watched.iter().filter(|watched| watched.from == InitialFrom::Declared);
    let initial: String = declared.map(|one| format!("initial \"{}\" = {};\n", one.name, one.initial)).collect();
    let (name, says) = (bound.property.name.clone(), bound.property.text.clone());
    let source = format!("{initial}property {name}: {says}\n");
    Violated { name, text: says, explanation: text, source, saw, assumes }
}
