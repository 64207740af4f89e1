//! What runs showed becomes findings: each failure once, run again with ever shorter schedules, and explained.

use super::cases::{Case, Shortest, Tried, shorten};
use super::decisive::decisive;
use super::printed::Difference;
use super::{Answer, Event, Examined, Explorer, Options, Phase, Replayed, Subject};
use crate::error::Error;
use crate::failure::Failed;
use crate::outcome::Moment;
use crate::program::Plan;
use crate::run::Run;
use crate::said;
use crate::schedule::Schedule;
use portent_order::Model;
use portent_predict::{
    Bug, Deadlock, Evidence, Failure, Finding, Flags, Harm, Place, Prediction, Role, StackFrame, Step, Steps, Witness,
};
use portent_trace::{
    FunctionBlocks, LocId, ThreadId, Trace, TraceError, is_user_file, short_function, without_address,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Runs that making one schedule shorter may take.
const TRIES: u32 = 40;
/// And so long, at most.
const PATIENCE: Duration = Duration::from_secs(5);
/// So long after the end of its time the program is still run to make sure of failures.
const GRACE: Duration = Duration::from_millis(250);
/// Only the first failures are worth that; others are only made sure of.
const SHORTENED: usize = 6;

impl Explorer<'_> {
    /// Looks at a run for failures, and for what it printed.
    pub(super) fn watch(&mut self, run: &Run, like: &Arc<Subject>, observed: bool) {
        if run.outcome.cut.is_some() {
            self.exploration.cut_short += 1;
        }
        if run.outcome.timed_out {
            self.hangs += 1;
            if self.hangs >= Options::HANGS {
                self.tries = 0;
            }
        }
        if self.options.count_reached {
            let (behaviour, reads_from) = run.reached();
            self.exploration.reached.behaviours.insert(behaviour);
            self.exploration.reached.reads_from.extend(reads_from);
        }
        let failures = self.failures_of(run);
        if failures.is_empty() && self.passed.is_none() && !observed && self.has_failed_at_first() {
            self.passed = Some(run.clone());
        }
        for failed in failures {
            self.cases.add(run, failed, like, observed, self.exploration.runs);
        }
    }

    fn has_failed_at_first(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.run.outcome.has_failed())
    }

    /// How a run failed. Printing something else than the first run counts, where nothing else went wrong.
    fn failures_of(&self, run: &Run) -> Vec<Failed> {
        let failures = run.failures();
        let first = self.first.as_ref().filter(|first| !first.run.outcome.has_failed());
        if !failures.is_empty() || run.outcome.has_failed() {
            return failures;
        }
        let difference = first.and_then(|first| Difference::between(&first.run.outcome.output, &run.outcome.output));
        difference
            .map(|difference| Failed::printed(difference.sentence(), difference.shape(), run))
            .into_iter()
            .collect()
    }

    /// Makes findings of all failures.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let cases: Vec<Case<Subject>> = self.cases.take();
        let cases: Vec<_> = cases.into_iter().filter(|case| !self.is_told(&case.failed)).collect();
        let total = cases.len() as u64;
        let mut ids = HashSet::new();
        for (at, case) in cases.into_iter().enumerate() {
            self.observer.see(Event::Settling { done: at as u64, total });
            let tries = match case.failed.harm {
                // Each try takes as long as a hang is waited for.
                Harm::Hang => 3,
                _ if at < SHORTENED => TRIES,
                _ => 1,
            };
            if let Some(examined) = self.settle_one(case, tries, &mut ids)? {
                self.observer.see(Event::RunExamined { examined: &examined });
                self.exploration.failures.push(examined);
            }
        }
        self.observer.see(Event::Settling { done: total, total });
        Ok(())
    }

    /// Whether a deadlock that a run came to is one that was predicted and shown: it is told once, by who waits for what.
    fn is_told(&self, failed: &Failed) -> bool {
        if failed.harm != Harm::DeadlockReached {
            return false;
        }
        let places: HashSet<&str> = std::iter::once(&failed.at)
            .chain(failed.others.iter().map(|(_, at)| at))
            .map(|at| at.place.as_str())
            .collect();
        self.exploration.examined.iter().any(|examined| {
            let names = examined.trace.names();
            let waits_there = |place: &Place| {
                let frames = place.kernel.map(|event| examined.trace.stack_of(event)).unwrap_or_default();
                let own = frames.iter().find(|frame| frame.user).map(|frame| frame.location);
                own.or(place.location).is_some_and(|at| places.contains(names.location(at).to_string().as_str()))
            };
            examined.answers.iter().any(|answer| {
                answer.prediction.findings.iter().any(|finding| {
                    self.confirmed.contains(&finding.id)
                        && match &finding.bug {
                            Bug::Deadlock(Deadlock::Cycle { waits } | Deadlock::Stuck { waits }) => {
                                waits.iter().all(waits_there)
                            }
                            Bug::Deadlock(Deadlock::LostWakeup { waiting, .. }) => waits_there(waiting),
                            _ => false,
                        }
                })
            })
        })
    }

    /// Makes a finding of a failure; `None` if it turns out to be none: output that differs whatever the schedule.
    fn settle_one(
        &mut self,
        case: Case<Subject>,
        tries: u32,
        ids: &mut HashSet<String>,
    ) -> Result<Option<Examined>, Error> {
        // Whatever run it is like, it is best told from the first.
        let mut like = self.first.clone().unwrap_or_else(|| Arc::clone(&case.like));
        let identity = case.failed.identity();
        let mut shortest = self.shorten(&case, &like, &identity, tries);
        if shortest.is_none() && !Arc::ptr_eq(&like, &case.like) {
            like = Arc::clone(&case.like);
            shortest = self.shorten(&case, &like, &identity, tries);
        }
        if case.failed.harm == Harm::Output && shortest.as_ref().is_none_or(|found| found.schedule.steps.is_empty()) {
            // Whether it is the schedule's doing was not found out.
            self.exploration.not_replayed += usize::from(shortest.is_none() && self.is_late());
            return Ok(None);
        }
        let mut replayed = Replayed { first_run: Some(case.first), ..Replayed::default() };
        let (schedule, fails, passes) = match shortest {
            Some(Shortest { schedule, fails, passes }) => {
                replayed.runs = 1;
                replayed.hits = 1;
                (schedule, Some(fails), passes)
            }
            None => (case.schedule.clone(), None, None),
        };
        while replayed.runs < self.options.times && (replayed.hits > 0 || replayed.runs == 0) && !self.is_late() {
            replayed.runs += 1;
            replayed.hits += u32::from(matches!(self.attempt(&schedule, &like, &identity), Tried::Fails(_)));
        }
        replayed.showed = (replayed.hits > 0).then(|| case.failed.message.clone());
        // What happened once and could not be repeated has happened all the same.
        let fails = fails.unwrap_or_else(|| case.run.clone());
        let passes = passes.or_else(|| self.some_passing());
        let examined = self.finding(&case, &like, fails, passes.as_ref(), &schedule, replayed, ids);
        Ok(Some(examined.map_err(|error| Error::from(error.in_input("the run that failed")))?))
    }

    fn shorten(&mut self, case: &Case<Subject>, like: &Arc<Subject>, identity: &str, tries: u32) -> Option<Shortest> {
        let until = Instant::now() + PATIENCE.min(self.left() / 2).max(Duration::from_millis(500));
        let until = until.min(self.deadline + GRACE);
        let mut left = tries.max(1);
        shorten(&case.schedule, |schedule| {
            if left == 0 || Instant::now() >= until || self.interrupt.load(Ordering::Relaxed) {
                return Tried::NoTime;
            }
            left -= 1;
            self.attempt(schedule, like, identity)
        })
    }

    /// Some run that passed.
    fn some_passing(&self) -> Option<Run> {
        let first = self.first.as_ref().map(|first| &first.run).filter(|run| !run.outcome.has_failed());
        first.or(self.passed.as_ref()).cloned()
    }

    /// Runs the program once under a schedule: does it fail in the same way?
    fn attempt(&mut self, schedule: &Schedule, like: &Arc<Subject>, identity: &str) -> Tried {
        let limit = Some(self.limit().max(Duration::from_secs(1)));
        let plan = Plan { schedule: Some(schedule), like: Some(&like.run), limit, silent: true, ..Plan::default() };
        // What cannot be run again cannot be shown again, and is told as that.
        let Ok(run) = self.program.run(&plan) else { return Tried::Other };
        self.count(Phase::Settled);
        let failures = self.failures_of(&run);
        match failures.iter().any(|failed| failed.identity() == identity) {
            true => Tried::Fails(run),
            false if failures.is_empty() => Tried::Passes(run),
            false => Tried::Other,
        }
    }

    /// What is said of a failure. A status says little: test programs print what went wrong.
    fn message(&self, failed: &Failed, fails: &Run) -> String {
        let passed = self.first.as_ref().map(|first| &first.run.outcome).filter(|outcome| !outcome.has_failed());
        let prints = passed
            .filter(|_| failed.harm == Harm::Exit)
            .and_then(|passed| Difference::between(&passed.output, &fails.outcome.output));
        match prints {
            Some(prints) => format!("{}, and {}", failed.message, prints.sentence()),
            None => failed.message.clone(),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "all of it was found out separately, and is told together")]
    fn finding(
        &self,
        case: &Case<Subject>,
        like: &Arc<Subject>,
        mut fails: Run,
        passes: Option<&Run>,
        schedule: &Schedule,
        replayed: Replayed,
        ids: &mut HashSet<String>,
    ) -> Result<Examined, TraceError> {
        let identity = case.failed.identity();
        let again = self.failures_of(&fails).into_iter().find(|failed| failed.identity() == identity);
        let failed = again.unwrap_or_else(|| case.failed.clone());
        let moments: Vec<(Role, Moment)> =
            std::iter::once((Role::Failure, failed.at.clone())).chain(failed.others.iter().cloned()).collect();
        let mut located = Vec::new();
        for (role, moment) in &moments {
            let location = match moment.place.is_empty() {
                true => None,
                false => Some(fails.names.intern_location(moment.place.as_bytes()).map_err(TraceError::whole)?),
            };
            located.push((*role, moment.clone(), location));
        }
        let trace = fails.trace(FunctionBlocks::None)?;
        let mut stacks: Vec<_> = moments.iter().map(|(_, moment)| stack(&fails, moment.event)).collect();
        if matches!(failed.harm, Harm::Assertion | Harm::Exception | Harm::Abort | Harm::Crash) {
            let function = fails.names.location_of_text(&failed.at.place).and_then(|at| at.function);
            let function = function.map(|name| without_address(&short_function(name)).to_owned()).unwrap_or_default();
            stacks[0] = from_place(std::mem::take(&mut stacks[0]), &failed.at.place, &function);
        }
        // Who waits does so for something of its own. Else all is about one object, or about none: the event that a place is told
        // by is only the last or the next one there.
        let own = matches!(failed.harm, Harm::DeadlockReached | Harm::Hang);
        let mut places = located.iter().map(|(role, moment, at)| {
            let place = place(&fails, &trace, *role, moment, *at);
            if own { place } else { Place { object: failed.object.clone(), ..place } }
        });
        let at = places.next().unwrap_or_else(|| Place::nowhere(Role::Failure));
        let mut others: Vec<Place> = places.collect();
        let decisive = passes.and_then(|passes| decisive(&fails, &trace, passes, failed.at.thread));
        // What decides belongs to what happened, and where it fails may be far from it.
        for place in decisive.iter().flat_map(|found| std::iter::once(&found.operation).chain(&found.because)) {
            stacks.push(place.event.map_or_else(Vec::new, |event| stack(&fails, event)));
            others.push(place.clone());
        }
        // A thread that the run did not come to has no name.
        let steps = schedule.steps.iter().filter(|(number, _)| (*number as usize) < trace.threads());
        let witness = Witness {
            schedule: portent_order::Schedule::as_observed(trace.len()),
            steps: Steps::new(
                steps.map(|&(number, events)| Step { thread: ThreadId::new(number as usize), events }).collect(),
            ),
        };
        let id = Finding::failure_id(failed.lasting_identity(), |id| ids.contains(id));
        ids.insert(id.clone());
        let finding = Finding {
            id: id.clone(),
            bug: Bug::Failure(Box::new(Failure {
                harm: failed.harm,
                message: self.message(&failed, &fails),
                at,
                others,
                stacks,
                decisive,
                stderr: said::tail(&fails.outcome.output.stderr, 12, 2000),
            })),
            evidence: if case.observed { Evidence::Observed } else { Evidence::Predicted },
            model: None,
            object: failed.object.clone(),
            instances: case.times,
            instances_exact: false,
            flags: Flags::default(),
            witness: Some(witness),
            other_branch: None,
        };
        let prediction = Prediction { findings: vec![finding], ..Prediction::default() };
        let replays = BTreeMap::from([(id, replayed)]);
        let answers = vec![Answer { model: Model::Reads, prediction, replays }];
        Ok(Examined { run: like.id, trace: Arc::new(trace), answers })
    }
}

/// The place of a moment: the event, where there is one, at the line that the failure names.
fn place(run: &Run, trace: &Trace, role: Role, moment: &Moment, location: Option<LocId>) -> Place {
    match run.events.get(moment.event as usize) {
        Some(event) => {
            let mut place = Place::of_input(trace, role, event, moment.event);
            place.location = location.or(place.location);
            place
        }
        None => Place { location, ..Place::nowhere(role) },
    }
}

/// The stack of a thread that went on after its last event, to a place that is known, and the function there if that is known: what
/// it has returned from since is left out.
fn from_place(mut frames: Vec<StackFrame>, place: &str, function: &str) -> Vec<StackFrame> {
    let Some((file, line)) = place.rsplit_once(':') else { return frames };
    let Ok(line) = line.parse::<u32>() else { return frames };
    let is_there = |frame: &StackFrame| {
        frame.user
            && frame.file == file
            && (function.is_empty() || frame.function.is_empty() || frame.function == function)
    };
    if let Some(at) = frames.iter().position(|frame| is_there(frame) && frame.line == Some(line)) {
        frames.drain(..at);
    } else if let Some(at) = frames.iter().position(is_there) {
        // The same function, most likely, some lines on.
        frames.drain(..at);
        frames[0].line = Some(line);
    } else if !function.is_empty() && is_user_file(file) {
        // It had been inlined, and left no trace but this. The library's place of the event is not on the way there.
        let called_by = frames.iter().position(|frame| frame.user);
        frames.drain(..called_by.unwrap_or(frames.len().min(1)));
        frames.insert(0, StackFrame { function: function.into(), file: file.into(), line: Some(line), user: true });
    }
    frames
}

/// The call stack at an event, innermost first.
fn stack(run: &Run, event: u32) -> Vec<StackFrame> {
    if event as usize >= run.events.len() {
        return Vec::new();
    }
    run.stack(event as usize).iter().map(|frame| StackFrame::of(&run.names, frame)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_an_assertion_starts_where_it_stands_in_the_source() {
        let frame = |function: &str, file: &str, line: u32, user: bool| StackFrame {
            function: function.into(),
            file: file.into(),
            line: Some(line),
            user,
        };
        let returned = vec![frame("get", "bank.c", 17, true), frame("main", "bank.c", 49, true)];
        assert_eq!(from_place(returned.clone(), "bank.c:49", ""), returned[1..]);
        // What was recorded last was inside the C library, called from somewhere in the function.
        let inside = vec![frame("libc.so.6+0x1", "libc.so.6+0x1", 0, false), frame("main", "bank.c", 42, true)];
        assert_eq!(from_place(inside.clone(), "bank.c:49", "main"), [frame("main", "bank.c", 49, true)]);
        // It was in another function, which had been inlined there.
        let inlined = [frame("push", "bank.c", 9, true), frame("main", "bank.c", 42, true)];
        assert_eq!(from_place(inside, "bank.c:9", "push"), inlined);
        assert_eq!(from_place(returned.clone(), "other.c:1", ""), returned);
        assert_eq!(from_place(returned.clone(), "libc.so.6+0x1", ""), returned);
    }
}
