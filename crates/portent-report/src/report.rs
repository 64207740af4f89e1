//! The report: everything that is said about a set of findings, before it has a form. Every output consumes it.

use crate::baseline::Baseline;
use crate::circumstances::Circumstances;
use crate::deciding::Decided;
use crate::level::Level;
use crate::lookup::{Lookup, Value, goal_events};
use crate::source::Sources;
use crate::suppress::Suppressions;
use crate::threads::{self, Begun};
use crate::words::{self, counted};
use crate::{deciding, place, tsan, why};
use portent_order::Model;
use portent_predict::{
    BugKind, Evidence, Finding, Form, Incomplete, MayRead, Place, Prediction, PropertyTold, PropertyVerdict, Role,
    StackFrame, Why,
};
use portent_trace::{EventId, LocId, Object, ObjectClass, ObjectName, Trace, without_address};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub use crate::tsan::Tsan;
pub use portent_explore::Replayed;

/// Where findings come from and how they can be seen again.
#[derive(Debug, Default)]
pub struct Settings {
    /// What the input is called: the trace, or the program and its arguments.
    pub input: String,
    /// The kinds of bug that were looked for.
    pub kinds: Vec<BugKind>,
    /// Where source text is found.
    pub sources: Sources,
    /// The command line that replays a finding, up to its id: `portent replay run.portent --finding`. `None` if the trace
    /// is not a recording.
    pub replay: Option<String>,
    /// The kinds that were asked for by name: what is otherwise an observation is then a failure.
    pub asked: Vec<BugKind>,
    /// Whether a run that prints something else has failed.
    pub same_output: bool,
    /// Whether the text tells each finding at length, with both orders side by side.
    pub detailed: bool,
    /// Whether the text lists observations, too.
    pub observations: bool,
    /// Whether the text is a line per finding and nothing else.
    pub quiet: bool,
}

/// What the runs of a check were made for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// How they were chosen.
    pub strategy: &'static str,
    /// What chance started from.
    pub seed: u64,
    /// Each purpose in a few words, with its runs, in the order of a check.
    pub phases: Vec<(&'static str, u64)>,
    /// Runs that differ in what some thread does or reads, or from where.
    pub behaviours: u64,
    /// Pairs of a thread at a place that read what a thread at a place wrote.
    pub reads_from: u64,
}

/// How much of what a program can do was run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Runs, recorded and replayed.
    pub runs: u64,
    /// Behaviours among them: runs that differ in more than the order of independent operations.
    pub behaviours: u64,
    /// Whether these are all there are.
    pub complete: bool,
    /// Alternatives that are known and were not tried.
    pub left: u64,
    /// What completeness rests on.
    pub assumptions: Vec<String>,
    /// Why it is not known whether these are all, where that was looked for.
    pub unproven: Vec<String>,
}

/// A process that was checked, where there are several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// What it is called: the program and its arguments.
    pub name: String,
    /// Sizes of its first trace.
    pub size: TraceSize,
    /// How much of what it can do was run; `None` if it could only be looked at.
    pub explored: Option<Explored>,
    /// What was not covered of it, in sentences.
    pub scope: Vec<String>,
}

/// What is known about a prediction beside the trace.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// The round in which the trace was analysed, from 1.
    pub round: Option<u32>,
    /// What replays showed, by the id of the finding.
    pub replays: BTreeMap<String, Replayed>,
    /// The command line that replays a finding of this trace, up to its id, where it is not the report's.
    pub replay: Option<String>,
    /// Which of the report's processes it is about, where there are several.
    pub process: Option<usize>,
}

/// How sure a finding is, after replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It happened in the recorded run.
    Observed,
    /// A witness was checked against the trace; not replayed.
    Predicted,
    /// Seen in a replay.
    Confirmed,
    /// Replayed and not seen; where and why the replay left the schedule, as far as that is known.
    Unconfirmed(Option<String>),
}

impl Verdict {
    /// The word in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Observed => "observed",
            Verdict::Predicted => "predicted",
            Verdict::Confirmed => "confirmed",
            Verdict::Unconfirmed(_) => "unconfirmed",
        }
    }
    /// The most certain first.
    fn rank(&self) -> u8 {
        match self {
            Verdict::Confirmed => 0,
            Verdict::Observed => 1,
            Verdict::Predicted => 2,
            Verdict::Unconfirmed(_) => 3,
        }
    }
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The location's text, as in the input.
    pub text: String,
    /// The file, where the text names one.
    pub file: Option<String>,
    /// The line, where the text names one.
    pub line: Option<u32>,
    /// The function, where it was recorded.
    pub function: Option<String>,
}

impl At {
    pub(crate) fn of(trace: &Trace, loc: LocId) -> At {
        let location = trace.names().location(loc);
        At {
            text: location.to_string(),
            file: location.file.map(str::to_owned),
            line: location.line,
            function: location.function.map(str::to_owned),
        }
    }
}

/// An event of a finding, or the initial or final value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// What it has to do with the finding.
    pub role: Role,
    /// Who; nobody for initial and final values.
    pub thread: Option<String>,
    /// The number of the input event; `None` for initial and final values.
    pub event: Option<u32>,
    /// What is done: the name of an operation, `initial` or `final`.
    pub op: &'static str,
    /// To what.
    pub object: String,
    /// The value that was read or written in the recorded run, where it is known.
    pub value: Option<Value>,
    /// Where in the source.
    pub at: Option<At>,
    /// The calls that led there, innermost first, where they are known.
    pub stack: Vec<StackFrame>,
}

/// A finding with everything that is told about it.
#[derive(Debug)]
pub struct Story {
    /// What was predicted.
    pub finding: Finding,
    /// How sure it is.
    pub verdict: Verdict,
    /// Whether it is an alarm.
    pub level: Level,
    /// The operation that decides, for failures of which a run that passes is known.
    pub decided: Option<Decided>,
    /// Its places, with names.
    pub places: Vec<Spot>,
    /// Its threads, and where they come from.
    pub threads: Vec<Begun>,
    /// Where the object was allocated, where its name tells.
    pub allocated: Option<String>,
    /// Why it is a bug, in sentences.
    pub why: String,
    /// Whether ThreadSanitizer would have seen it in the recorded run.
    pub tsan: Tsan,
    /// What replays showed.
    pub replayed: Option<Replayed>,
    /// The round in which it appeared.
    pub round: Option<u32>,
    /// The command line that replays it.
    pub command: Option<String>,
    /// The report's processes that showed it, the one that it is told of first; none where there is only one.
    pub processes: Vec<usize>,
    pub(crate) run: usize,
    pub(crate) goals: Vec<(Role, EventId)>,
}

impl Story {
    /// The kind in words, telling lost wake-ups from lock cycles.
    pub fn title(&self) -> &'static str {
        self.finding.bug.form().words().title
    }
    /// The most certain first; that a program fails by itself is the surest.
    fn rank(&self) -> u8 {
        match self.verdict {
            Verdict::Observed if self.finding.bug.failure().is_some() => 0,
            _ => 1 + self.verdict.rank(),
        }
    }
    /// What it is, in a few words: `data race on hits`, `abort in consumer()`.
    pub fn what(&self) -> String {
        if self.finding.bug.failure().is_none() {
            return format!("{} on {}", self.title(), self.finding.object);
        }
        match self.places.first().and_then(place::of_spot).and_then(|at| at.function) {
            Some(function) => format!("{} in {}", self.title(), words::function(&function)),
            None => self.title().to_owned(),
        }
    }
    /// The lines of the source it is about, each once; for a failure, where it failed.
    pub(crate) fn lines(&self, sources: &Sources) -> Vec<String> {
        let telling = if self.finding.bug.failure().is_some() { 1 } else { self.places.len() };
        let mut lines: Vec<String> = Vec::new();
        for at in self.places.iter().take(telling).filter_map(place::of_spot) {
            let text = place::written(sources, &at);
            // A place that nobody knows says nothing.
            if !text.is_empty() && text != "?" && !lines.contains(&text) {
                lines.push(text);
            }
        }
        lines
    }
    /// How sure it is, in a few words.
    pub(crate) fn sure(&self) -> String {
        let runs = self.replayed.as_ref().map_or(0, |replayed| replayed.runs);
        let seen = self.replayed.as_ref().filter(|replayed| replayed.hits > 0);
        let seen = seen.map(|replayed| format!("{} of {}", replayed.hits, counted(u64::from(runs), "replay")));
        match (&self.verdict, seen) {
            (Verdict::Observed, Some(seen)) => format!("in the recorded run, {seen}"),
            (Verdict::Observed, None) => "in the recorded run".into(),
            (_, Some(seen)) => seen,
            // It is not predicted that a program fails: some run did.
            (Verdict::Unconfirmed(_), None) if self.finding.bug.failure().is_some() => {
                format!("seen once, not in {}", counted(u64::from(runs), "replay"))
            }
            (_, None) if self.finding.bug.failure().is_some() => "seen once".into(),
            (Verdict::Unconfirmed(_), None) => format!("not seen in {}", counted(u64::from(runs), "replay")),
            (Verdict::Confirmed | Verdict::Predicted, None) => "predicted".into(),
        }
    }
}

/// A trace that findings come from, with what is told of its events.
#[derive(Debug)]
pub(crate) struct ToldTrace {
    pub(crate) trace: Arc<Trace>,
    pub(crate) lookup: Lookup,
    pub(crate) circumstances: Circumstances,
}

/// Sizes of what was analysed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSize {
    /// Input events.
    pub events: u64,
    /// Threads.
    pub threads: usize,
    /// Variables.
    pub variables: usize,
    /// Locks.
    pub locks: usize,
}

/// Where the values of a read location may come from, with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced {
    /// The read.
    pub read: String,
    /// The writes it saw or could see.
    pub from: Vec<String>,
    /// Whether the initial value is among them.
    pub initial: bool,
}

/// Findings that are not reported, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Ids that a rule suppresses.
    pub suppressed: Vec<String>,
    /// Ids that the baseline knows.
    pub known: Vec<String>,
}

/// What all outputs are made of.
#[derive(Debug, Default)]
pub struct Report {
    /// Where findings come from.
    pub settings: Settings,
    /// The first trace's sizes.
    pub size: TraceSize,
    /// The findings, in order of kind and place.
    pub stories: Vec<Story>,
    /// What was not examined or not decided, with the model.
    pub incomplete: Vec<(Model, Incomplete)>,
    /// Why the search stopped before its end, if it did.
    pub partial: Option<Why>,
    /// Runs whose recording is cut short, so that nothing is known of what the program did then.
    pub cut_short: u64,
    /// What came of each property, in order.
    pub properties: Vec<PropertyTold>,
    /// Where the values of reads may come from.
    pub reads_from: Vec<Sourced>,
    /// What is not reported.
    pub withheld: Withheld,
    /// How much of what the program can do was run, where it was run at all.
    pub explored: Option<Explored>,
    /// What its runs were made for, if that is to be told.
    pub stats: Option<RunStats>,
    /// What was not covered, in sentences.
    pub scope: Vec<String>,
    /// The processes that findings are about, if there are several.
    pub processes: Vec<Process>,
    /// How long it took, in seconds, where that is to be told.
    pub seconds: Option<f64>,
    pub(crate) runs: Vec<ToldTrace>,
}

impl Report {
    /// A report without findings.
    pub fn new(settings: Settings) -> Report {
        Report { settings, ..Report::default() }
    }

    /// Adds what was predicted from one trace in one model.
    ///
    /// Of findings with the same id, the first of the most certain ones stays, with the earliest round.
    pub fn add(&mut self, trace: Arc<Trace>, model: Model, prediction: Prediction, extras: &Extras) {
        if self.runs.is_empty() && self.size == TraceSize::default() {
            self.size = TraceSize {
                events: trace.input_len(),
                threads: trace.threads(),
                variables: trace.names().count(ObjectClass::Variable),
                locks: trace.locks(),
            };
        }
        self.partial = self.partial.or(prediction.partial);
        self.incomplete.extend(prediction.incomplete.into_iter().map(|entry| (model, entry)));
        for told in prediction.properties {
            // What an earlier run or model said stays, unless this one is worse.
            match self.properties.iter_mut().find(|known| known.name == told.name) {
                Some(known) if known.verdict == PropertyVerdict::Broken || told.verdict != PropertyVerdict::Broken => {}
                Some(known) => *known = told,
                None => self.properties.push(told),
            }
        }
        for row in &prediction.may_read {
            let row = sourced(&trace, row);
            if !self.reads_from.contains(&row) {
                self.reads_from.push(row);
            }
        }
        let (here, mut elsewhere): (Vec<Finding>, Vec<Finding>) =
            prediction.findings.into_iter().partition(|finding| finding.other_branch.is_none());
        self.tell(trace, here, extras);
        // Each branch that goes the other way is a trace of its own.
        while let Some(other) = elsewhere.first().and_then(|finding| Some(finding.other_branch.as_ref()?.trace.clone()))
        {
            let is_of = |finding: &mut Finding| {
                finding.other_branch.as_ref().is_some_and(|branch| Arc::ptr_eq(&branch.trace, &other))
            };
            let of_branch: Vec<Finding> = elsewhere.extract_if(.., is_of).collect();
            self.tell(other, of_branch, extras);
        }
        // Stable: of what is equally bad and sure, findings of earlier rounds come first, each round's in the order of the
        // trace.
        self.say_once();
        self.stories.sort_by_key(|story| (story.level, story.finding.bug.form(), story.rank()));
    }

    fn tell(&mut self, trace: Arc<Trace>, findings: Vec<Finding>, extras: &Extras) {
        if findings.is_empty() {
            return;
        }
        let goals: Vec<_> = findings.iter().map(|finding| goal_events(&trace, finding)).collect();
        let circumstances = Circumstances::gather(&trace, goals.iter().flatten().map(|(_, event)| *event));
        let racy = tsan::racy_variables(&trace, &findings);
        let run = ToldTrace { lookup: Lookup::new(&trace), trace, circumstances };
        // Ids are unique within a prediction.
        let earlier: HashMap<String, usize> =
            self.stories.iter().enumerate().map(|(at, story)| (story.finding.id.clone(), at)).collect();
        for (finding, goals) in findings.into_iter().zip(goals) {
            let story = self.story(&run, finding, goals, &racy, extras);
            match earlier.get(&story.finding.id).map(|&at| &mut self.stories[at]) {
                Some(known) if story.rank() < known.rank() => {
                    let (round, tsan) = (known.round, known.tsan);
                    let also: Vec<usize> =
                        known.processes.iter().copied().filter(|one| !story.processes.contains(one)).collect();
                    *known = Story { round, tsan, processes: [story.processes, also].concat(), ..story };
                }
                Some(known) => {
                    let also = story.processes.into_iter().filter(|one| !known.processes.contains(one));
                    known.processes.extend(also.collect::<Vec<_>>());
                }
                None => self.stories.push(story),
            }
        }
        self.runs.push(run);
    }

    fn story(
        &self,
        run: &ToldTrace,
        finding: Finding,
        goals: Vec<(Role, EventId)>,
        racy: &tsan::Racy,
        extras: &Extras,
    ) -> Story {
        let trace = &*run.trace;
        let failure = finding.bug.failure();
        let stacks = failure.map_or(&[][..], |failure| &failure.stacks);
        let mut places: Vec<Spot> = finding.places().into_iter().map(|place| Spot::of(trace, place)).collect();
        for (spot, stack) in places.iter_mut().zip(stacks) {
            spot.stack.clone_from(stack);
        }
        for (spot, place) in places.iter_mut().zip(finding.places()) {
            spot.lead_to_user(trace, &run.lookup, place);
        }
        let spot = |place: &Place| {
            let mut spot = Spot::of(trace, place);
            spot.lead_to_user(trace, &run.lookup, place);
            spot
        };
        let decided = failure.and_then(|failure| failure.decisive.as_ref()).map(|deciding| Decided {
            operation: spot(&deciding.operation),
            because: deciding.because.as_ref().map(spot),
            fails: deciding.fails.clone(),
            passes: deciding.passes.clone(),
        });
        let replayed = extras.replays.get(&finding.id).cloned();
        let verdict = match (&replayed, finding.evidence) {
            // A program that fails by itself needs no schedule for it.
            (_, Evidence::Observed) if failure.is_some() => Verdict::Observed,
            (Some(Replayed { hits: 1.., .. }), _) => Verdict::Confirmed,
            (_, Evidence::Observed) => Verdict::Observed,
            (Some(Replayed { runs: 1.., diverged, .. }), _) => Verdict::Unconfirmed(diverged.clone()),
            _ => Verdict::Predicted,
        };
        // A run that goes another way than the recording cannot be replayed from it.
        let replayable = (finding.witness.is_some() || failure.is_some()) && finding.other_branch.is_none();
        let command = extras.replay.as_ref().or(self.settings.replay.as_ref()).filter(|_| replayable);
        let why = match failure {
            Some(failure) => deciding::sentences(&self.settings.sources, failure, &places),
            None => why::sentences(trace, &run.circumstances, &finding, &places, &goals),
        };
        let threads = threads::of_events(trace, &run.lookup, goals.iter().map(|(_, event)| *event));
        Story {
            why,
            threads,
            level: Level::of(&self.settings, &finding, &verdict),
            decided,
            tsan: tsan::verdict(trace, &finding, racy, extras.round),
            allocated: allocation_site(trace, &finding),
            command: command.map(|command| format!("{command} {}", finding.id)),
            verdict,
            places,
            replayed,
            round: extras.round,
            processes: extras.process.into_iter().collect(),
            run: self.runs.len(),
            goals,
            finding,
        }
    }

    /// What could happen and did happen is told once, as a failure: that memory is used after it was freed, say, needs no other
    /// finding that says it could be.
    fn say_once(&mut self) {
        let lines = |story: &Story| -> Vec<String> {
            story
                .places
                .iter()
                .filter_map(place::of_spot)
                .map(|at| place::written(&self.settings.sources, &at))
                .collect()
        };
        let happened: Vec<(Form, Vec<String>)> = self
            .stories
            .iter()
            .filter(|story| story.finding.bug.failure().is_some())
            .map(|story| (story.finding.bug.form(), lines(story)))
            .collect();
        let said = |story: &Story| {
            let told = lines(story);
            let covers = |(form, lines): &(Form, Vec<String>)| {
                story.finding.bug.form().comes_true_as(*form) && told.iter().all(|line| lines.contains(line))
            };
            happened.iter().any(covers)
        };
        let said: Vec<bool> = self.stories.iter().map(said).collect();
        for (story, _) in self.stories.iter_mut().zip(said).filter(|(_, said)| *said) {
            story.level = Level::Observation;
        }
    }

    /// Takes out what a rule suppresses or the baseline knows.
    pub fn withhold(&mut self, suppressions: Option<&mut Suppressions>, baseline: Option<&Baseline>) {
        let mut suppressions = suppressions;
        let withheld = &mut self.withheld;
        self.stories.retain(|story| {
            let id = &story.finding.id;
            if suppressions.as_mut().is_some_and(|rules| rules.apply(story)) {
                withheld.suppressed.push(id.clone());
                false
            } else if baseline.is_some_and(|baseline| baseline.knows(id)) {
                withheld.known.push(id.clone());
                false
            } else {
                true
            }
        });
    }

    /// The findings of a level, in order.
    pub fn of_level(&self, level: Level) -> impl Iterator<Item = &Story> {
        self.stories.iter().filter(move |story| story.level == level)
    }

    /// How many findings of a level are reported.
    pub fn count(&self, level: Level) -> u64 {
        self.of_level(level).count() as u64
    }

    /// Whether there is anything that is an alarm: what the exit status says.
    pub fn has_failures(&self) -> bool {
        self.of_level(Level::Failure).next().is_some()
    }

    /// How many failures a process showed.
    pub fn failures_of(&self, process: usize) -> u64 {
        self.of_level(Level::Failure).filter(|story| story.processes.contains(&process)).count() as u64
    }

    /// What the processes are called that showed a finding, where there are several.
    pub(crate) fn processes_of(&self, story: &Story) -> Vec<&str> {
        story.processes.iter().filter_map(|&at| self.processes.get(at)).map(|one| one.name.as_str()).collect()
    }

    /// How many findings of a kind are reported, how many instances they have, and whether that is all of them.
    pub fn counts(&self, kind: BugKind) -> (u64, u64, bool) {
        let of_kind = self.stories.iter().filter(|story| story.finding.kind() == kind);
        of_kind.fold((0, 0, true), |(findings, instances, exact), story| {
            (findings + 1, instances + story.finding.instances, exact && story.finding.instances_exact)
        })
    }
}

impl Spot {
    fn of(trace: &Trace, place: &Place) -> Spot {
        Spot {
            role: place.role,
            thread: place.thread.map(|thread| trace.names().thread(thread).to_owned()),
            event: place.event,
            op: place.op,
            object: place.object.clone(),
            value: crate::lookup::recorded(place).and_then(|event| Some(Value::of(trace, event, trace.value(event)?))),
            at: place.location.map(|loc| At::of(trace, loc)),
            stack: place.kernel.map(|event| frames(trace, event)).unwrap_or_default(),
        }
    }

    /// Of a thread that is in libraries only, before or after the user's function, the user's line that started it is what there
    /// is to look at.
    fn lead_to_user(&mut self, trace: &Trace, lookup: &Lookup, place: &Place) {
        if self.stack.is_empty() || self.stack.iter().any(|frame| frame.user) {
            return;
        }
        let thread = place.thread.filter(|thread| thread.index() < trace.threads());
        let start = thread.and_then(|thread| lookup.fork_of(trace, thread)).map(|fork| frames(trace, fork));
        let start = start.into_iter().flatten().find(|frame| frame.user);
        if let Some(frame) = start {
            let frame = StackFrame { function: place::started_in(&frame.function), ..frame };
            self.at = Some(place::of_frame(&frame));
            self.stack.push(frame);
        }
    }
}

/// The call stack of an event, as far as the trace has it.
fn frames(trace: &Trace, event: EventId) -> Vec<StackFrame> {
    trace.stack(event).map_or_else(Vec::new, |_| {
        trace.stack_of(event).iter().map(|frame| StackFrame::of(trace.names(), frame)).collect()
    })
}

fn sourced(trace: &Trace, row: &MayRead) -> Sourced {
    let text = |loc: LocId| trace.names().location(loc).to_string();
    Sourced { read: text(row.read), from: row.from.iter().map(|&loc| text(loc)).collect(), initial: row.initial }
}

/// Where the first of a finding's objects that was allocated was allocated.
fn allocation_site(trace: &Trace, finding: &Finding) -> Option<String> {
    let names = trace.names();
    let events = finding.places().into_iter().filter_map(crate::lookup::recorded);
    let site = events.filter_map(|event| trace.object(trace.op(event))).find_map(|name| name.allocated_at(names));
    // A finding without events has its text.
    site.or_else(|| ObjectName::of(Object::Named(&finding.object)).allocated_at(names))
        .map(|site| without_address(&site.to_string()).to_owned())
}
