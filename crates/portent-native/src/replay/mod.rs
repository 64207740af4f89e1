//! Running a recorded program again, as a schedule says, and seeing what comes of it.
//!
//! The runtime enforces the schedule and records the run; everything else is done here, afterwards, on the two runs: where
//! the program did something else than in the recording, what the reads that matter saw, how it ended. A finding counts as
//! shown only if it was *seen*:
//!
//! | kind | seen when the schedule was followed and |
//! |---|---|
//! | race | both threads stood at their conflicting accesses at once |
//! | deadlock | every thread of the cycle stood at a lock that it could not get; a lost wake-up: the sleeper slept, and nobody could move |
//! | atomicity, nondeterminism | the events happened in the predicted order, and one of the reads among them saw another value, or the program failed |
//! | final value | the last write of the variable left another value |
//! | property | the property's monitor, on the replayed run, says that it is broken |

pub mod finding;
pub mod schedule;

use crate::convert::{self, Converted};
use crate::error::Error;
use crate::record::recording::{End, Recording};
use crate::run::launch::{self, Target};
use crate::run::log_file::LogFile;
use portent_runtime::log::{diverged, message, op};
use portent_runtime::plan::{goal, policy};
use portent_trace::format::{self, OpenOptions, TraceSink};
use portent_trace::{FunctionBlocks, InputBatch, InputEvent, InputOp, LocId, Names, ObjectClass, TraceError};
use schedule::{Schedule, ScheduleGoal};
use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

/// A run: its events in order, with their names.
#[derive(Default)]
pub struct Run {
    pub events: Vec<InputEvent>,
    pub names: Names,
}

impl Run {
    /// The run that a trace holds.
    pub fn load(path: &Path) -> Result<Run, Error> {
        let mut source = format::open(path, OpenOptions::default())?;
        let mut events = Vec::new();
        let mut batch = InputBatch::default();
        let mut read = || -> Result<Names, TraceError> {
            while source.next_batch(&mut batch)? {
                events.extend(batch.iter());
            }
            Ok(source.take_names())
        };
        let names = read().map_err(|error| error.in_input(&path.display().to_string()))?;
        Ok(Run { events, names })
    }

    /// The schedule of the whole run.
    pub fn schedule(&self) -> Schedule {
        let mut schedule = Schedule::default();
        for event in &self.events {
            schedule.push(event.thread.index() as u32, 1);
        }
        schedule
    }

    /// An event in words, as far as a reader of a report needs it.
    pub fn describe(&self, event: &InputEvent) -> String {
        let thread = self.names.thread(event.thread);
        let object = match event.op.class() {
            ObjectClass::None => String::new(),
            class => format!("({})", self.names.name(class, event.object)),
        };
        let place = self.names.location(event.loc);
        let function = place.function.map(|name| format!(" in {name}")).unwrap_or_default();
        format!("{thread}: {}{object} at {place}{function}", event.op.text())
    }
}

impl TraceSink for Run {
    fn write(&mut self, _names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        self.events.extend(batch.iter());
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        Ok(Vec::new())
    }
}

/// What is to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Every event as in the recording, with every value and object.
    Same,
    /// Whatever happens when the schedule is followed.
    Anything,
    /// Two threads at conflicting accesses.
    Race,
    /// Threads that wait for each other's locks.
    Deadlock,
    /// A thread that sleeps and is never woken.
    LostWakeUp {
        /// Who.
        sleeper: u32,
    },
    /// These events of the recording, each of which may read, in the order of the schedule.
    Values {
        /// Their numbers in the recording.
        events: Vec<u32>,
    },
    /// A run that breaks a property.
    Property {
        /// The property as a file of its own.
        source: String,
    },
    /// The last value of a variable.
    FinalValue {
        /// What the recording calls it.
        object: String,
    },
}

/// One replay.
pub struct Replay {
    /// Whether what was wanted was seen.
    pub hit: bool,
    /// What was seen, or why not, in sentences.
    pub evidence: Vec<String>,
    /// Where the program did something else than the schedule says.
    pub diverged: Option<String>,
    /// How the program failed, if it did and the recorded run did not fail so.
    pub failed: Option<String>,
    /// The run, which is a trace of its own.
    pub run: Run,
    pub recording: Recording,
    pub converted: Converted,
}

/// What to replay, how often it is the same.
pub struct Script<'a> {
    pub recording: &'a Recording,
    pub original: &'a Run,
    pub target: Target,
    pub schedule: Schedule,
    pub wanted: Wanted,
    /// After this time the program hangs.
    pub limit: Option<Duration>,
    /// Stop for the debugger where the goal is reached.
    pub trap: bool,
}

impl Script<'_> {
    /// Runs it once.
    pub fn run(&self) -> Result<Replay, Error> {
        let mut plan = self.recording.plan();
        plan.policy = policy::STAY;
        plan.trap = self.trap;
        plan.steps = self.schedule.steps.iter().map(|&(thread, events)| (u64::from(thread), events)).collect();
        let number = |thread: &u32| u64::from(*thread);
        (plan.goal, plan.goal_threads) = match &self.schedule.goal {
            ScheduleGoal::None => (goal::NONE, Vec::new()),
            ScheduleGoal::Race(threads) => (goal::RACE, threads.iter().map(number).collect()),
            ScheduleGoal::Deadlock(threads) => (goal::DEADLOCK, threads.iter().map(number).collect()),
        };
        let outcome = launch::run_limited(&self.target, &plan, self.limit)?;
        let log = LogFile::open(&outcome.log())?;
        if !log.is_claimed() {
            let help = "is the program still built with `portent cc`, or with -fsanitize=thread?";
            return Err(Error::refused(format!("{}: did not run under Portent", self.target.program.display()), help));
        }
        let mut run = Run::default();
        let mut converted = convert::convert(&log, &self.target.directory, &mut run, |_| ())?;
        run.names = std::mem::take(&mut converted.names);
        let end = match (outcome.status.code(), outcome.status.signal()) {
            (Some(status), _) => End::Status(status),
            (None, signal) => End::Signal(signal.unwrap_or(0)),
        };
        let failed = self.failure(&converted, end, outcome.timed_out);
        let recording = Recording::new(&self.target, &plan, &outcome, &converted);
        let mut replay = Replay { hit: false, evidence: Vec::new(), diverged: None, failed, run, recording, converted };
        replay.diverged = self.divergence(&replay);
        self.judge(&mut replay);
        Ok(replay)
    }

    /// How the program failed where the recorded run did not.
    fn failure(&self, converted: &Converted, end: End, timed_out: bool) -> Option<String> {
        let survey = &converted.survey;
        if timed_out {
            return Some("the program did not end: it was stopped".into());
        }
        if converted.deadlock.is_some() {
            return self
                .recording
                .deadlock
                .is_none()
                .then(|| "the program came to a deadlock: nobody could move".into());
        }
        if let Some(failed) = survey.messages.iter().find(|said| said.kind == message::ASSERTION) {
            let same = self.recording.assertion.as_deref() == Some(&failed.text);
            return (!same).then(|| format!("assertion failed: {}", failed.text));
        }
        if end == self.recording.end {
            return None;
        }
        match end {
            End::Signal(signal) => {
                let place = survey.fatal.map(|fatal| format!(" at {}", converted.symbols.place(fatal.pc).text));
                Some(format!(
                    "the program was ended by signal {signal}{}{}",
                    signal_name(signal),
                    place.unwrap_or_default()
                ))
            }
            End::Status(status) => Some(format!("the program exited with status {status}")),
        }
    }

    /// The events that the schedule asks for, as numbers of the recording's, in order; shorter if the recording has fewer.
    fn expected(&self) -> Vec<u32> {
        let mut of_thread: HashMap<u32, Vec<u32>> = HashMap::new();
        for (number, event) in self.original.events.iter().enumerate() {
            of_thread.entry(event.thread.index() as u32).or_default().push(number as u32);
        }
        let mut done: HashMap<u32, usize> = HashMap::new();
        let mut expected = Vec::new();
        for &(thread, events) in &self.schedule.steps {
            let from = done.entry(thread).or_default();
            let all = of_thread.get(&thread).map_or(&[][..], Vec::as_slice);
            let to = from.saturating_add(events as usize).min(all.len());
            expected.extend_from_slice(&all[(*from).min(to)..to]);
            *from = to;
        }
        expected
    }

    /// Where the program did something else than in the recording, within the schedule.
    fn divergence(&self, replay: &Replay) -> Option<String> {
        let exact = self.wanted == Wanted::Same;
        let mut same = Same::new(&self.original.names, &replay.run.names);
        let expected = self.expected();
        for (at, &number) in expected.iter().enumerate() {
            let before = &self.original.events[number as usize];
            let Some(now) = replay.run.events.get(at) else {
                let stopped = replay.converted.survey.diverged.map(|told| self.why_stopped(&told, replay));
                let next = self.original.describe(before);
                return Some(
                    stopped.unwrap_or_else(|| format!("after {at} events the program had ended; expected {next}")),
                );
            };
            if !same.events(before, now, exact) {
                let (before, now) = (self.original.describe_with(before, exact), replay.run.describe_with(now, exact));
                let why =
                    replay.converted.survey.diverged.map(|told| format!(" ({})", self.why_stopped(&told, replay)));
                return Some(format!(
                    "event {at}: expected {before}; the program did {now}{}",
                    why.unwrap_or_default()
                ));
            }
        }
        if exact && replay.run.events.len() > expected.len() && self.recording.end != End::Signal(9) {
            let more = &replay.run.events[expected.len()];
            return Some(format!(
                "after all {} recorded events the program went on: {}",
                expected.len(),
                replay.run.describe(more)
            ));
        }
        None
    }

    fn why_stopped(&self, told: &convert::survey::Diverged, replay: &Replay) -> String {
        let thread = told.thread;
        let place = replay.converted.symbols.place(told.pc).text;
        match told.why {
            diverged::NO_THREAD => format!("T{thread} does not exist at step {}", told.step),
            diverged::ENDED => format!("T{thread} has ended, {} events before step {} is done", told.left, told.step),
            _ => format!("what T{thread} is about to do at {place} is not possible at step {}", told.step),
        }
    }

    /// Whether what was wanted was seen.
    fn judge(&self, replay: &mut Replay) {
        let followed = replay.diverged.is_none();
        let (hit, evidence) = match &self.wanted {
            Wanted::Same => (followed, Vec::new()),
            Wanted::Anything => (replay.failed.is_some(), Vec::new()),
            Wanted::Race => self.race_seen(replay),
            Wanted::Deadlock => self.deadlock_seen(replay),
            Wanted::LostWakeUp { sleeper } => {
                let waits = |waiting: &&convert::Waiting| {
                    waiting.thread == u64::from(*sleeper) && waiting.pending == u64::from(op::WAKE)
                };
                let found = replay.converted.deadlock.as_ref().and_then(|all| all.iter().find(waits));
                (found.is_some(), found.iter().map(|waiting| waiting.sentence()).collect())
            }
            Wanted::Property { source } => self.property_seen(replay, source),
            Wanted::Values { events } if followed => self.values_seen(replay, events),
            Wanted::FinalValue { object } if followed => self.final_value_seen(replay, object),
            Wanted::Values { .. } | Wanted::FinalValue { .. } => (false, Vec::new()),
        };
        (replay.hit, replay.evidence) = (hit, evidence);
    }

    fn race_seen(&self, replay: &Replay) -> (bool, Vec<String>) {
        let Some([a, b]) = replay.converted.survey.goal.as_deref().and_then(|all| <&[_; 2]>::try_from(all).ok()) else {
            return (false, Vec::new());
        };
        let is_access = |op: u64| op < u64::from(op::ACCESSES);
        let is_write = |op: u64| op >= u64::from(op::WRITE);
        // Plain reads and writes have order 0; read-modify-writes are always atomic.
        let is_plain = |op: u64| op == u64::from(op::READ) || op == u64::from(op::WRITE);
        let overlap = a.address < b.address + b.size && b.address < a.address + a.size;
        let both = is_access(a.pending) && is_access(b.pending);
        let seen = both
            && overlap
            && (is_write(a.pending) || is_write(b.pending))
            && (is_plain(a.pending) || is_plain(b.pending));
        let about = |one: &convert::survey::AtGoal| {
            let what = InputOp::from_code(one.pending as u16).map_or("?", verb);
            // Memory without a symbol is named in the finding; its address would tell nothing.
            let object = replay.converted.symbols.object(one.address);
            let object = object.map(|datum| format!(" {}", replay.converted.names.describe(&datum.name())));
            let object = object.unwrap_or_default();
            format!("T{} is about to {what}{object} at {}", one.thread, replay.converted.symbols.place(one.pc).text)
        };
        (seen, vec![about(a), about(b)])
    }

    fn deadlock_seen(&self, replay: &Replay) -> (bool, Vec<String>) {
        let Some(goal) = &replay.converted.survey.goal else { return (false, Vec::new()) };
        let waits = |one: &convert::survey::AtGoal| {
            let at_lock = [op::ACQUIRE, op::ACQUIRE_SHARED, op::ACQUIRE_ALL].map(u64::from).contains(&one.pending);
            at_lock && !one.enabled
        };
        let evidence = match &replay.converted.deadlock {
            Some(all) => all.iter().map(convert::Waiting::sentence).collect(),
            None => Vec::new(),
        };
        (!goal.is_empty() && goal.iter().all(waits), evidence)
    }

    /// Compares what reads saw: each event stands at the same place of both sequences, as the schedule was followed.
    fn values_seen(&self, replay: &Replay, wanted: &[u32]) -> (bool, Vec<String>) {
        let expected = self.expected();
        let mut evidence = Vec::new();
        let mut comparable = false;
        let mut differs = false;
        for number in wanted {
            let Some(at) = expected.iter().position(|found| found == number) else { return (false, evidence) };
            let (before, now) = (&self.original.events[*number as usize], &replay.run.events[at]);
            if matches!(before.op, InputOp::Write(_)) {
                continue;
            }
            let (Some(was), Some(is)) = (before.value, now.value) else { continue };
            comparable = true;
            if was != is {
                differs = true;
                evidence.push(format!("{} saw {is} instead of {was}", replay.run.describe(now)));
            }
        }
        if let Some(failed) = &replay.failed {
            evidence.push(failed.clone());
        }
        (differs || replay.failed.is_some() || !comparable, evidence)
    }

    /// Whether the replayed run, whatever way it took, breaks the property.
    fn property_seen(&self, replay: &Replay, source: &str) -> (bool, Vec<String>) {
        let complete = replay.converted.deadlock.is_none() && replay.failed.is_none();
        let broken = crate::record::recorder::trace_of(&replay.run, FunctionBlocks::None)
            .map_err(|error| error.to_string())
            .and_then(|trace| portent_spec::broken_by(&trace, source, complete));
        match broken {
            Ok(Some(how)) => (true, vec![how]),
            Ok(None) => (false, Vec::new()),
            Err(why) => (false, vec![why]),
        }
    }

    fn final_value_seen(&self, replay: &Replay, object: &str) -> (bool, Vec<String>) {
        let last = |run: &Run| {
            let is_it = |event: &&InputEvent| {
                matches!(event.op, InputOp::Write(_) | InputOp::Update(_))
                    && run.names.name(ObjectClass::Variable, event.object) == object
            };
            run.events.iter().rev().find(is_it).and_then(|event| event.value)
        };
        match (last(self.original), last(&replay.run)) {
            (Some(was), Some(is)) if was != is => (true, vec![format!("{object} ends as {is} instead of {was}")]),
            _ => (replay.failed.is_some(), replay.failed.iter().cloned().collect()),
        }
    }
}

impl Run {
    fn describe_with(&self, event: &InputEvent, value: bool) -> String {
        match event.value {
            Some(known) if value => format!("{} with value {known}", self.describe(event)),
            _ => self.describe(event),
        }
    }
}

fn verb(op: InputOp) -> &'static str {
    match op {
        InputOp::Read(_) => "read",
        InputOp::Write(_) => "write",
        InputOp::Update(_) => "update",
        _ => op.text(),
    }
}

/// A signal's name behind its number.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic error)",
        11 => " (segmentation fault)",
        _ => "",
    }
}

/// Whether things of two runs are the same, by their names, each looked at once.
struct Same<'a> {
    names: [&'a Names; 2],
    locations: HashMap<(LocId, LocId), bool>,
    objects: HashMap<(ObjectClass, u32, u32), bool>,
}

impl<'a> Same<'a> {
    fn new(before: &'a Names, now: &'a Names) -> Self {
        Self { names: [before, now], locations: HashMap::new(), objects: HashMap::new() }
    }

    /// Whether two events are the same: thread, operation and place, and if `exact` object and value.
    fn events(&mut self, before: &InputEvent, now: &InputEvent, exact: bool) -> bool {
        // An exchange that fails is a read where the other is an update: the same operation, with another outcome.
        let same_op = before.op == now.op || (!exact && before.op.is_access() && now.op.is_access());
        same_op
            && before.thread == now.thread
            && self.place(before.loc, now.loc)
            && (!exact || (before.value == now.value && self.object(before, now)))
    }

    fn place(&mut self, before: LocId, now: LocId) -> bool {
        let [a, b] = self.names;
        *self.locations.entry((before, now)).or_insert_with(|| a.location(before) == b.location(now))
    }

    fn object(&mut self, before: &InputEvent, now: &InputEvent) -> bool {
        let class = before.op.class();
        let [a, b] = self.names;
        class == ObjectClass::None
            || *self
                .objects
                .entry((class, before.object, now.object))
                .or_insert_with(|| a.name(class, before.object) == b.name(class, now.object))
    }
}
