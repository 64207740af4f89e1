//! What the page is given: names once, events in columns once per trace, orders as lists of event numbers.
//!
//! An order is a list in which a number is an event, as the difference from the one before it, and `[n]` stands for n
//! events that are not in the page.

use super::excerpts::Excerpts;
use crate::deciding::act;
use crate::json::model;
use crate::lookup::{FAIL_TO_PASS, PASS, Passage, Value};
use crate::place;
use crate::relevance::Relevance;
use crate::report::{Report, Spot, Story, ToldTrace, Verdict};
use crate::scene::{Scene, Sequence, State};
use crate::source::Sources;
use crate::text::{begun, ran, summary};
use crate::words::function;
use portent_predict::{Role, StackFrame};
use portent_trace::{Ending, EventId, LocId, Op, StackId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeSet;

/// Findings in a page.
pub(super) const FINDINGS: usize = 1_000;
/// Events in a page, of all traces.
pub(super) const EVENTS: usize = 400_000;
/// Places in all orders of a page.
pub(super) const ENTRIES: usize = 2_000_000;

/// What an event does, by the number that the page uses.
const ACTIONS: [&str; 29] = [
    "read",
    "write",
    "update",
    "acquire",
    "release",
    "fail to lock",
    "fork",
    "start",
    "join",
    "end",
    "signal",
    "pass",
    "sleep on",
    "notify",
    "wake from",
    "begin block",
    "end block",
    "branch",
    "post",
    "fail to pass",
    "count down",
    "arrive at",
    "leave",
    "end once",
    "pass once",
    "end a system call",
    "fence",
    "free",
    "destroy",
];

#[derive(Serialize)]
pub(super) struct Data<'a> {
    input: &'a str,
    version: &'static str,
    summary: String,
    /// The processes of a tree: their names, and how much was run of each.
    processes: Vec<(&'a str, String)>,
    /// Findings that are not in the page.
    left_out: usize,
    actions: &'static [&'static str],
    traces: Vec<Events>,
    findings: Vec<FindingData<'a>>,
    files: Vec<super::excerpts::File>,
}

/// The events of one trace that findings need, in columns.
#[derive(Default, Serialize)]
struct Events {
    threads: Vec<String>,
    objects: Vec<String>,
    /// Text, file or nothing, line, function or nothing.
    places: Vec<(String, Option<String>, u32, Option<String>)>,
    number: Vec<u32>,
    thread: Vec<u32>,
    action: Vec<u8>,
    object: Vec<u32>,
    place: Vec<u32>,
    /// As text: scripts lose digits of large numbers.
    value: Vec<Option<String>>,
}

#[derive(Serialize)]
struct FindingData<'a> {
    id: &'a str,
    level: &'static str,
    kind: &'static str,
    /// What it is about: the object, or for a failure the function that fails.
    name: String,
    /// How sure it is, in words.
    sure: String,
    /// Where, as lines of the source.
    lines: Vec<String>,
    /// Of failures: what decides, and what the program said.
    failure: Option<FailureData<'a>>,
    /// Who, in which role, with the frames: text, and whether it is the user's.
    stacks: Vec<(String, Vec<(String, bool)>)>,
    title: &'static str,
    object: &'a str,
    allocated: Option<&'a str>,
    verdict: &'static str,
    diverged: Option<&'a str>,
    replayed: Option<(u32, u32, Option<&'a str>)>,
    round: Option<u32>,
    /// The processes that showed it, where there are several.
    processes: Vec<&'a str>,
    model: &'static str,
    instances: u64,
    exact: bool,
    flags: Vec<&'static str>,
    pattern: Option<&'static str>,
    why: &'a str,
    tsan: String,
    command: Option<&'a str>,
    witness: Option<(u64, usize)>,
    places: Vec<PlaceData<'a>>,
    /// Who its threads are, and where they were started.
    threads: Vec<String>,
    trace: usize,
    observed: Order,
    breaking: Order,
    /// Events that matter, and why.
    matters: Vec<(u32, &'static str)>,
    /// What reads see in the breaking order: the event, or nothing for the initial value.
    sees: Vec<(u32, Option<u32>)>,
    /// By formulas: values in the breaking order that are not those of the run.
    computed: Vec<(u32, Option<String>)>,
}

#[derive(Serialize)]
struct FailureData<'a> {
    decisive: Option<String>,
    stderr: &'a str,
}

#[derive(Serialize)]
struct PlaceData<'a> {
    role: &'static str,
    thread: Option<&'a str>,
    what: String,
    value: Option<String>,
    at: Option<String>,
    function: Option<String>,
    event: Option<u32>,
}

#[derive(Default, Serialize)]
struct Order {
    list: Vec<Entry>,
    pending: Vec<(u32, &'static str)>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Event(i64),
    Gone([u64; 1]),
}

/// An order before events have numbers.
#[derive(Default)]
struct Plan {
    /// Events, or how many are gone.
    items: Vec<Result<EventId, u64>>,
}

impl Plan {
    fn gone(&mut self, events: u64) {
        match self.items.last_mut() {
            _ if events == 0 => {}
            Some(Err(gone)) => *gone += events,
            _ => self.items.push(Err(events)),
        }
    }
    /// Everything that is known of an order, or only what matters in it.
    fn of(run: &ToldTrace, order: &Sequence, scene: &Scene, whole: bool) -> Plan {
        let mut plan = Plan::default();
        let mut next = 0;
        for &(position, event) in &order.lead {
            plan.gone(position - next);
            plan.items.push(Ok(event));
            next = position + 1;
        }
        plan.gone(order.before.saturating_sub(next));
        for &event in order.events.iter().filter(|&&event| run.lookup.is_performed(&run.trace, event)) {
            if whole || scene.relevant.contains_key(&event) {
                plan.items.push(Ok(event));
            } else {
                plan.gone(1);
            }
        }
        plan
    }
    fn events(&self) -> impl Iterator<Item = EventId> {
        self.items.iter().filter_map(|item| item.as_ref().ok().copied())
    }
}

impl<'a> Data<'a> {
    /// The data of a report.
    pub(super) fn of(report: &'a Report) -> Data<'a> {
        let shown = &report.stories[..report.stories.len().min(FINDINGS)];
        let mut wanted: Vec<BTreeSet<EventId>> = vec![BTreeSet::new(); report.runs.len()];
        let mut entries = 0;
        let mut plans = Vec::with_capacity(shown.len());
        for story in shown {
            let run = &report.runs[story.run];
            let scene = Scene::of(run, story);
            let size = scene.observed.events.len() + scene.breaking.events.len();
            let events: usize = wanted.iter().map(BTreeSet::len).sum();
            let whole = entries + size <= ENTRIES && events + size <= EVENTS;
            let [observed, breaking] =
                [&scene.observed, &scene.breaking].map(|order| Plan::of(run, order, &scene, whole));
            entries += observed.items.len() + breaking.items.len();
            let pending = scene.breaking.pending.iter().map(|(event, _)| *event);
            wanted[story.run].extend(observed.events().chain(breaking.events()).chain(pending));
            plans.push((scene, observed, breaking));
        }
        let mut excerpts = Excerpts::new(&report.settings.sources);
        let mut traces = Vec::with_capacity(report.runs.len());
        let mut numbers: Vec<FxHashMap<EventId, u32>> = Vec::with_capacity(report.runs.len());
        for (run, wanted) in report.runs.iter().zip(wanted) {
            numbers.push(wanted.iter().enumerate().map(|(at, &event)| (event, at as u32)).collect());
            traces.push(Events::of(run, &wanted, &report.settings.sources, &mut excerpts));
        }
        let findings = shown
            .iter()
            .zip(&plans)
            .map(|(story, (scene, observed, breaking))| {
                let number = |event: EventId| numbers[story.run].get(&event).copied();
                finding(report, story, scene, observed, breaking, &number)
            })
            .collect();
        Data {
            input: &report.settings.input,
            version: env!("CARGO_PKG_VERSION"),
            summary: summary(report),
            processes: report.processes.iter().map(|one| (one.name.as_str(), ran(one))).collect(),
            left_out: report.stories.len() - shown.len(),
            actions: &ACTIONS,
            traces,
            findings,
            files: excerpts.into_files(),
        }
    }
}

/// The number that the page has for what is done.
fn number_of(verb: &str) -> u8 {
    let action = ACTIONS.iter().position(|action| *action == verb);
    debug_assert!(action.is_some(), "the page has a number for {verb}");
    action.unwrap_or_default() as u8
}

impl Events {
    fn of(run: &ToldTrace, wanted: &BTreeSet<EventId>, sources: &Sources, excerpts: &mut Excerpts<'_>) -> Events {
        let trace = &*run.trace;
        let names = trace.names();
        let threads = trace.thread_ids().map(|thread| names.thread(thread).to_owned()).collect();
        let mut events = Events { threads, ..Events::default() };
        let mut objects: FxHashMap<String, u32> = FxHashMap::default();
        let mut places: FxHashMap<(LocId, Option<StackId>), u32> = FxHashMap::default();
        for &id in wanted {
            let event = trace.event(id);
            let ended = trace.ends(id).zip(event.op.variable()).map(|(ending, x)| match ending {
                Ending::Memory => (number_of("free"), trace.whole_name(x).into_owned()),
                Ending::Object => (number_of("destroy"), trace.variable_name(x).into_owned()),
            });
            let (action, object) = ended.unwrap_or_else(|| match event.op {
                Op::Read(x, _) => (0, trace.variable_name(x).into_owned()),
                Op::Write(x, _) => (1, trace.variable_name(x).into_owned()),
                Op::Update(x, _) => (2, trace.variable_name(x).into_owned()),
                Op::Acquire(l, _) => (3, names.lock(l).into_owned()),
                Op::Release(l, _) => (4, names.lock(l).into_owned()),
                Op::Busy(l, _) => (5, names.lock(l).into_owned()),
                Op::Send(_) | Op::Receive(_) => {
                    let Passage { verb, object } = run.lookup.passage(trace, id);
                    (number_of(verb), object.into_owned())
                }
                Op::Post(s) => (number_of("post"), names.semaphore(s).into_owned()),
                Op::Wait(s) => (number_of(PASS), names.semaphore(s).into_owned()),
                Op::Empty(s) => (number_of(FAIL_TO_PASS), names.semaphore(s).into_owned()),
                Op::Sleep(c) => (12, names.condition(c).into_owned()),
                Op::Notify(c, _) => (13, names.condition(c).into_owned()),
                Op::Wake(c) => (14, names.condition(c).into_owned()),
                Op::Begin(b) => (15, names.block(b).into_owned()),
                Op::End(b) => (16, names.block(b).into_owned()),
                Op::Branch => (17, String::new()),
                Op::Fence(_) => (26, String::new()),
            });
            let fresh = objects.len() as u32;
            let object = *objects.entry(object).or_insert_with_key(|name| {
                events.objects.push(name.clone());
                fresh
            });
            let fresh = places.len() as u32;
            let place = *places.entry((event.loc, trace.stack(id))).or_insert_with(|| {
                // The user's own line; the library that it called says nothing to the user.
                let at = place::of_event_or_start(trace, &run.lookup, id);
                if let (Some(file), Some(line)) = (&at.file, at.line) {
                    excerpts.want(file, line);
                }
                let text = place::written(sources, &at);
                let function = at.function.map(|name| function(&name));
                events.places.push((text, at.file, at.line.unwrap_or(0), function));
                fresh
            });
            events.number.push(trace.input_index(id));
            events.thread.push(event.thread.index() as u32);
            events.action.push(action);
            events.object.push(object);
            events.place.push(place);
            let value = event.value.filter(|_| event.op.variable().is_some());
            let value = value.map(|value| Value::of(trace, id, value)).filter(Value::is_telling);
            events.value.push(value.map(|value| value.to_string()));
        }
        events
    }
}

fn finding<'a>(
    report: &'a Report,
    story: &'a Story,
    scene: &Scene,
    observed: &Plan,
    breaking: &Plan,
    number: &dyn Fn(EventId) -> Option<u32>,
) -> FindingData<'a> {
    let trace = &*report.runs[story.run].trace;
    let sources = &report.settings.sources;
    let finding = &story.finding;
    let failing = story.places.first().and_then(place::of_spot).and_then(|at| at.function);
    let order = |plan: &Plan, pending: &[(EventId, State)]| {
        let mut last = 0;
        let entry = |item: &Result<EventId, u64>| match item {
            Ok(event) => {
                let number = i64::from(number(*event)?);
                Some(Entry::Event(number - std::mem::replace(&mut last, number)))
            }
            Err(gone) => Some(Entry::Gone([*gone])),
        };
        Order {
            list: plan.items.iter().filter_map(entry).collect(),
            pending: pending.iter().filter_map(|&(event, state)| Some((number(event)?, state_name(state)))).collect(),
        }
    };
    FindingData {
        id: &finding.id,
        level: story.level.name(),
        kind: finding.kind().name(),
        name: match (finding.bug.failure(), failing) {
            (Some(_), Some(failing)) => function(&failing),
            _ => finding.object.clone(),
        },
        sure: story.sure(),
        lines: story.lines(sources),
        failure: finding.bug.failure().map(|failure| FailureData {
            decisive: story.decided.as_ref().map(|decided| decided.sentence(sources)),
            stderr: &failure.stderr,
        }),
        stacks: first_decisive(&story.places)
            .filter(|spot| !spot.stack.is_empty())
            .map(|spot| stack(sources, spot))
            .collect(),
        title: story.title(),
        object: &finding.object,
        allocated: story.allocated.as_deref(),
        verdict: story.verdict.name(),
        diverged: match &story.verdict {
            Verdict::Unconfirmed(why) => why.as_deref(),
            _ => None,
        },
        replayed: story.replayed.as_ref().map(|replayed| (replayed.hits, replayed.runs, replayed.showed.as_deref())),
        round: story.round,
        processes: report.processes_of(story),
        model: model(story),
        instances: finding.instances,
        exact: finding.instances_exact,
        flags: finding.flags.names().collect(),
        pattern: finding.bug.pattern().map(|pattern| pattern.name()),
        why: &story.why,
        tsan: format!("ThreadSanitizer {}", story.tsan.sentence(finding, story.round)),
        command: story.command.as_deref(),
        witness: finding.witness.as_ref().map(|witness| (witness.events(), witness.switches())),
        places: first_decisive(&story.places).map(|place| place_data(sources, place, story, number)).collect(),
        threads: begun(sources, &story.threads),
        trace: story.run,
        observed: order(observed, &[]),
        breaking: order(breaking, &scene.breaking.pending),
        matters: scene
            .relevant
            .iter()
            .filter_map(|(&event, &relevance)| Some((number(event)?, relevance_name(relevance))))
            .collect(),
        computed: scene
            .changed(trace)
            .filter_map(|(e, value)| Some((number(e)?, value.map(|v| v.to_string()))))
            .collect(),
        sees: scene.sees.iter().filter_map(|(&read, writer)| Some((number(read)?, writer.and_then(number)))).collect(),
    }
}

/// The places of a finding, what decides before the rest.
fn first_decisive(places: &[Spot]) -> impl Iterator<Item = &Spot> {
    let decides = |spot: &&Spot| matches!(spot.role, Role::Decisive | Role::Because);
    places.iter().filter(decides).chain(places.iter().filter(move |spot| !decides(spot)))
}

fn stack(sources: &Sources, spot: &Spot) -> (String, Vec<(String, bool)>) {
    let who = format!("{} {}", spot.role.name(), spot.thread.as_deref().unwrap_or_default());
    let told = |frame: &StackFrame| (place::full(sources, &place::of_frame(frame)), frame.user);
    (who.trim_end().to_owned(), spot.stack.iter().map(told).collect())
}

fn place_data<'a>(
    sources: &Sources,
    place: &'a Spot,
    story: &Story,
    number: &dyn Fn(EventId) -> Option<u32>,
) -> PlaceData<'a> {
    let at = place::of_spot(place);
    let mut goals = story.goals.iter().filter(|(role, _)| *role == place.role);
    // A deadlock has several places of one role, in the order of its goals.
    let nth = story.places.iter().filter(|p| p.role == place.role).position(|p| std::ptr::eq(p, place)).unwrap_or(0);
    PlaceData {
        role: place.role.name(),
        thread: place.thread.as_deref(),
        what: format!("{} {}", act(place.op), place.object),
        value: place.value.as_ref().filter(|value| value.is_telling()).map(Value::to_string),
        at: at.as_ref().map(|at| place::written(sources, at)),
        function: at.and_then(|at| at.function).map(|name| function(&name)),
        event: place.thread.as_ref().and_then(|_| goals.nth(nth)).and_then(|(_, event)| number(*event)),
    }
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Done => "done",
        State::Next => "next",
        State::Waits => "waits",
        State::Never => "never",
    }
}

fn relevance_name(relevance: Relevance) -> &'static str {
    match relevance {
        Relevance::Goal(role) => role.name(),
        Relevance::Writer => "seen",
        Relevance::Lock => "lock",
        Relevance::Fork => "fork",
        Relevance::Meeting => "meeting",
        Relevance::Switch => "switch",
        Relevance::Branch => "branch",
    }
}
