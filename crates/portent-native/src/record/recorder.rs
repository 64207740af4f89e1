//! The recorder: a program runs under a plan, and what it did goes to a sink.

use super::recording::Recording;
use super::repeats::Repeats;
use super::scope;
use crate::Error;
use crate::convert::survey::{AtGoal, Diverged, Thread};
use crate::convert::{self, Converted, Known, Waiting};
use crate::run::examine::{self, Nature};
use crate::run::launch::{self, Ended, Invocation, Running};
use crate::run::log_file::LogFile;
use crate::run::output::Streams;
use crate::run::server::ForkServer;
use crate::symbols;
use portent_explore::{
    self as explore, End, EventSink, NotFollowed, Outcome, Output, Pct, Plan, Policy, Program, Run, ScheduleGoal,
    WhyNotFollowed,
};
use portent_runtime::log::{diverged, input, message};
use portent_runtime::plan::{self, goal, policy};
use portent_trace::format::TraceSink;
use portent_trace::{InputOp, Progress};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// A program that can be run under the runtime.
#[derive(Clone, Debug)]
pub struct NativeProgram {
    /// What to run, with what, and where.
    pub invocation: Invocation,
    /// What it is: explains why nothing was recorded.
    pub nature: Nature,
    /// Stop for the debugger where the goal of a schedule is reached.
    pub trap: bool,
    /// Stop before this event instead: its thread, and its number among the events of all.
    pub stop: Option<(u32, u32)>,
    /// Whether waits on conditions may end by themselves, where a schedule or chance says so. Runs that are like one in which they could
    /// may do so, too.
    pub spurious: bool,
    /// What makes runs that are like an earlier one and whose output is not shown; without it, each is started.
    pub server: Option<Arc<ForkServer>>,
    /// What its runs did, so that none becomes a trace that did what an earlier one did; without it, all become traces.
    repeats: Option<Arc<Repeats>>,
    /// What its runs have told about its code.
    known: Arc<Mutex<Known>>,
}

/// A run that is over, and not yet a trace.
pub struct Finished<'a> {
    invocation: &'a Invocation,
    plan: plan::Plan,
    streams: Streams,
    known: &'a Mutex<Known>,
    /// How it ended.
    pub ended: Ended,
}

/// A run that has become a trace.
pub struct Recorded {
    /// What the conversion found out.
    pub converted: Converted,
    /// How it was recorded.
    pub recording: Recording,
}

impl NativeProgram {
    /// A program, examined.
    pub fn new(invocation: Invocation, nature: Nature) -> NativeProgram {
        NativeProgram {
            invocation,
            nature,
            trap: false,
            stop: None,
            spurious: false,
            server: None,
            repeats: None,
            known: Arc::default(),
        }
    }

    /// The same, for many runs: those that are like an earlier one are made by a fork server, where there can be one, and of those that
    /// did the same only one becomes a trace.
    pub fn for_many_runs(self) -> NativeProgram {
        NativeProgram { server: Some(Arc::default()), repeats: Some(Arc::default()), ..self }
    }

    /// Runs it as the plan says, until it ends. Its output goes where Portent's own goes.
    pub fn start(&self, plan: &Plan<'_>) -> Result<Finished<'_>, Error> {
        self.start_with(plan, self.recorded(plan)?.as_ref(), Streams::Inherited)
    }

    /// The same; `seen` is told about the program when it has been started.
    pub fn start_seen(&self, plan: &Plan<'_>, seen: &mut dyn FnMut(Running)) -> Result<Finished<'_>, Error> {
        let (low, streams) = (self.plan(plan, None), Streams::Inherited);
        let ended = launch::run_seen(&self.invocation, &low, streams, plan.limit, self.processes(plan), seen)?;
        if !ended.log.is_claimed() {
            return Err(examine::not_instrumented(&self.invocation.program, self.nature));
        }
        Ok(Finished { invocation: &self.invocation, plan: low, streams, known: &self.known, ended })
    }

    /// How the run that a plan is to be like was recorded.
    fn recorded(&self, plan: &Plan<'_>) -> Result<Option<Recording>, Error> {
        Ok(plan.like.map(|run| Recording::parse(&run.recording)).transpose()?)
    }

    /// Where the output goes: it is kept, unless a debugger needs the terminal, or the recorded run had it (or whatever it
    /// was) and users are to see the output of this one.
    fn streams(&self, plan: &Plan<'_>, recorded: Option<&Recording>) -> Streams {
        let shown = !plan.silent && !self.invocation.silent;
        let inherited = shown && recorded.is_some_and(|recorded| !recorded.output_kept);
        if inherited || !self.invocation.wrapper.is_empty() { Streams::Inherited } else { Streams::Kept { shown } }
    }

    fn start_with(
        &self,
        plan: &Plan<'_>,
        recorded: Option<&Recording>,
        streams: Streams,
    ) -> Result<Finished<'_>, Error> {
        let low = self.plan(plan, recorded);
        let ended = match self.copied(plan, &low, streams)? {
            Some(ended) => ended,
            None => launch::run(&self.invocation, &low, streams, plan.limit, self.processes(plan))?,
        };
        if !ended.log.is_claimed() {
            let program = &self.invocation.program;
            if plan.like.is_none() {
                return Err(examine::not_instrumented(program, self.nature));
            }
            let help = "is the program still built with `portent cc`, or with -fsanitize=thread?";
            return Err(Error::refused(format!("{}: did not run under Portent", program.display()), help));
        }
        Ok(Finished { invocation: &self.invocation, plan: low, streams, known: &self.known, ended })
    }

    /// The run of a fork server, if there can be one for it.
    fn copied(&self, plan: &Plan<'_>, low: &plan::Plan, streams: Streams) -> Result<Option<Ended>, Error> {
        match &self.server {
            Some(server) if plan.like.is_some() && streams == (Streams::Kept { shown: false }) => {
                launch::run_copy(server, &self.invocation, low, plan.limit)
            }
            _ => Ok(None),
        }
    }

    /// Where other processes leave their recordings: once, when nothing is known yet.
    fn processes(&self, plan: &Plan<'_>) -> Option<&Path> {
        self.invocation.processes.as_deref().filter(|_| plan.like.is_none() && self.invocation.lineage == 0)
    }

    /// A plan as the runtime knows it.
    fn plan(&self, plan: &Plan<'_>, recorded: Option<&Recording>) -> plan::Plan {
        let mut low = match recorded {
            None => plan::Plan { seed: plan.seed, ..plan::Plan::default() },
            Some(recorded) => recorded.plan(),
        };
        low.policy = match plan.policy {
            Policy::Stay => policy::STAY,
            Policy::RoundRobin => policy::ROUND_ROBIN,
            Policy::Random => policy::RANDOM,
            Policy::Pct(_) => policy::PCT,
            Policy::Priority => policy::PRIORITY,
        };
        if plan.policy != Policy::Stay {
            low.seed = plan.seed;
        }
        if let Policy::Pct(Pct { depth, steps }) = plan.policy {
            low.depth = depth.into();
            low.length = plan.like.map_or(steps, |like| like.events.len() as u64);
        }
        low.trap = self.trap;
        low.alone = recorded.is_some_and(Recording::talks_to_itself);
        low.spurious |= self.spurious;
        low.parks = plan.parks;
        low.one_core = plan.like.is_some() && plan.silent;
        low.lineage = self.invocation.lineage;
        low.stop = self.stop.map(|(thread, event)| (thread.into(), event.into()));
        if let Some(schedule) = plan.schedule {
            let number = |thread: &u32| u64::from(*thread);
            low.steps = schedule.steps.iter().map(|(thread, events)| (number(thread), *events)).collect();
            (low.goal, low.goal_threads) = match &schedule.goal {
                ScheduleGoal::None => (goal::NONE, Vec::new()),
                ScheduleGoal::Race(threads) => (goal::RACE, threads.iter().map(number).collect()),
                ScheduleGoal::Deadlock(threads) => (goal::DEADLOCK, threads.iter().map(number).collect()),
            };
        }
        low
    }
}

impl Program for NativeProgram {
    fn unexplored(&self, run: &Run) -> Vec<String> {
        scope::unexplored(run)
    }

    fn run(&self, plan: &Plan<'_>) -> Result<Run, Error> {
        let recorded = self.recorded(plan)?;
        self.start_with(plan, recorded.as_ref(), self.streams(plan, recorded.as_ref()))?.run()
    }

    fn run_each(
        &self,
        plans: &[Plan<'_>],
        limit: &(dyn Fn() -> Duration + Sync),
        ran: &mut dyn FnMut(Option<Run>) -> bool,
    ) -> Result<(), Error> {
        // The program runs on another thread, while what it did the last time becomes a trace on this one, which knows its
        // files. Nothing is handed over before it is asked for, so that there is never more than one run too many.
        std::thread::scope(|scope| {
            let (sender, finished) = mpsc::sync_channel(0);
            scope.spawn(move || {
                for plan in plans {
                    let plan = Plan { limit: Some(limit()), ..plan.clone() };
                    let start = || {
                        let recorded = self.recorded(&plan)?;
                        self.start_with(&plan, recorded.as_ref(), self.streams(&plan, recorded.as_ref()))
                    };
                    let started = start();
                    let failed = started.is_err();
                    // Nobody wants it any more, or cannot have it.
                    if sender.send(started).is_err() || failed {
                        break;
                    }
                }
            });
            for finished in finished {
                let finished = finished?;
                let repeats = self.repeats.as_ref().is_some_and(|repeats| repeats.has(&finished.ended));
                if !ran(if repeats { None } else { Some(finished.run()?) }) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn declarations(&self) -> BTreeMap<String, String> {
        symbols::declarations(&self.invocation.program)
    }
}

impl Finished<'_> {
    /// The run, with its events.
    fn run(&self) -> Result<Run, Error> {
        let mut sink = EventSink::default();
        let mut recorded = self.write(&mut sink, |_| ())?;
        let outcome = Outcome {
            asked_to_end: self.ended.asked_to_end,
            ..recorded.outcome(self.ended.timed_out, &self.ended.output)
        };
        let names = std::mem::take(&mut recorded.converted.names);
        let EventSink { events, stacks } = sink;
        Ok(Run { events, stacks, names, outcome, recording: recorded.recording.to_json()? })
    }

    /// Writes the events to a sink, which the caller finishes.
    pub fn write(&self, sink: &mut dyn TraceSink, progress: impl FnMut(Progress)) -> Result<Recorded, Error> {
        let shared = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = shared().clone();
        let converted = convert::convert(&self.ended.log, &self.invocation.directory, &mut known, sink, progress)?;
        *shared() = known;
        let end = if self.invocation.lineage == 0 { self.ended.end() } else { end_of(&converted) };
        let recording = Recording::new(self.invocation, self.streams, &self.plan, end, &converted);
        Ok(Recorded { converted, recording })
    }
}

/// How a process ended that this one did not wait for, as far as its recording tells.
fn end_of(converted: &Converted) -> End {
    const KILL: i32 = 9;
    const TERMINATE: i32 = 15;
    match (&converted.misdeeds.crash, &converted.deadlock, converted.survey.exit) {
        (Some(crash), ..) => End::Signal(crash.signal),
        (None, Some(_), _) => End::Signal(KILL),
        (None, None, Some(status)) => End::Status((status & 0xff) as i32),
        // Somebody else ended it.
        (None, None, None) => End::Signal(TERMINATE),
    }
}

/// The run that a process of another program's tree left, as if it had been started so.
pub fn run_of(log: &LogFile, invocation: &Invocation) -> Result<Run, Error> {
    let mut sink = EventSink::default();
    let converted = convert::convert(log, &invocation.directory, &mut Known::default(), &mut sink, |_| ())?;
    let streams = Streams::Kept { shown: false };
    let recording = Recording::new(invocation, streams, &plan::Plan::default(), end_of(&converted), &converted);
    let mut recorded = Recorded { converted, recording };
    // Nobody knows who ended a process that did not end by itself: whoever started it, as a rule.
    let outcome = Outcome { asked_to_end: true, ..recorded.outcome(false, &Output::default()) };
    let names = std::mem::take(&mut recorded.converted.names);
    let EventSink { events, stacks } = sink;
    Ok(Run { events, stacks, names, outcome, recording: recorded.recording.to_json()? })
}

impl Recorded {
    /// How the run ended, in the terms of all front ends.
    fn outcome(&self, timed_out: bool, output: &Output) -> Outcome {
        let Converted { survey, symbols, names, deadlock, left, spins, initial, misdeeds, goal_places, .. } =
            &self.converted;
        let place = |pc: u64| symbols.place(pc).text.clone();
        let assertion = survey.messages.iter().find(|said| said.kind == message::ASSERTION);
        let at_goal = |(at, one): (usize, &AtGoal)| explore::AtGoal {
            thread: one.thread as u32,
            op: u16::try_from(one.pending).ok().and_then(InputOp::from_code),
            memory: one.address..one.address.saturating_add(one.size),
            object: symbols.object(one.address).map(|datum| names.describe(&datum.name())),
            place: goal_places.get(at).cloned().unwrap_or_else(|| place(one.pc)),
            enabled: one.enabled,
        };
        let not_possible = |told: &Diverged| {
            let op = u16::try_from(told.pending).ok().and_then(InputOp::from_code);
            let object = match op {
                Some(InputOp::Join) => Some(format!("T{}", told.address)),
                _ => symbols.object(told.address).map(|datum| names.describe(&datum.name())),
            };
            WhyNotFollowed::NotPossible { op, object, place: place(told.pc) }
        };
        let not_followed = |told: Diverged| NotFollowed {
            step: told.step,
            thread: told.thread as u32,
            why: match told.why {
                diverged::NO_THREAD => WhyNotFollowed::NoThread,
                diverged::ENDED => WhyNotFollowed::Ended { left: told.left },
                _ => not_possible(&told),
            },
        };
        let ended = |(at, thread): (usize, &Thread)| thread.ended.then_some(at as u32);
        Outcome {
            end: self.recording.end,
            timed_out,
            // In the C library's words, which say where: what is recorded last may be the C library's own doing.
            assertion: assertion.map(|said| format!("{}: Assertion `{}' failed.", place(said.pc), said.text)),
            crash: misdeeds.crash.clone(),
            thrown: misdeeds.thrown.clone(),
            ended: survey.threads.iter().enumerate().filter_map(ended).collect(),
            parked: self.converted.parked.clone(),
            left: left.iter().map(Waiting::stuck).collect(),
            deadlock: deadlock.as_ref().map(|all| all.iter().map(Waiting::stuck).collect()),
            spins: spins.clone(),
            initial: initial.clone(),
            unused: self.converted.unused.clone(),
            identities: self.converted.identities.clone(),
            spurious: self.recording.scheduling.spurious,
            at_goal: survey.goal.as_ref().map(|all| all.iter().enumerate().map(at_goal).collect()),
            not_followed: survey.diverged.map(not_followed),
            faults: misdeeds.faults.clone(),
            output: output.clone(),
            signals: survey.threads.iter().any(|thread| thread.answers.iter().any(|(kind, _)| *kind == input::SIGNAL)),
            warnings: survey.warnings(),
            asked_to_end: false,
            cut: survey.cut(),
        }
    }
}
