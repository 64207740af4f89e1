//! A finding as far as a replay needs it, and what replaying it means.
//!
//! It was just predicted, or `predict --json` wrote it: both become a [`Finding`] here, and words are read in one place.

use super::wanted::Wanted;
use crate::error::Error;
use crate::run::Run;
use crate::schedule::{Schedule, ScheduleGoal, thread_number};
use portent_predict::{Bug, Deadlock, Nondeterminism};
use portent_trace::{ThreadId, Trace};
use serde::Deserialize;
use std::path::Path;

/// A finding that can be replayed.
#[derive(Debug)]
pub struct Finding {
    id: String,
    sought: Sought,
    /// The threads of its places, by name.
    threads: Vec<String>,
    /// The events of its places.
    events: Vec<u32>,
    /// The schedule that leads to it, if there is one.
    steps: Option<Vec<Part>>,
    /// The operation that decides, in the run that fails: its thread and its event.
    decisive: Option<(String, u32)>,
}

/// A part of a schedule.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Part {
    /// The first so many events, as the run had them.
    AsObserved { as_observed: u64 },
    /// A thread, by name, executes so many events.
    Runs(String, u64),
}

/// What is to be seen.
#[derive(Debug)]
enum Sought {
    /// The threads stand at their conflicting accesses at once.
    Race,
    /// The threads wait for each other.
    Cycle,
    /// These threads wait for ever, whatever for.
    Stuck,
    /// A thread sleeps for ever.
    LostWakeup { sleeper: String },
    /// These events happen in the order of the schedule.
    Order { events: Vec<u32> },
    /// One of these events reads another value.
    Values { events: Vec<u32> },
    /// A variable ends with another value.
    FinalValue { object: String },
    /// A run that breaks this property.
    Property { source: String },
    /// A run that fails so, there.
    Failure { form: String, place: String },
}

/// Findings of a trace, as `predict --json` wrote them.
#[derive(Debug, Deserialize)]
pub struct Findings {
    schema: u32,
    findings: Vec<Row>,
}

/// One of them.
#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    kind: String,
    #[serde(default)]
    form: Option<String>,
    #[serde(default)]
    object: String,
    places: Vec<PlaceRow>,
    witness: Option<WitnessRow>,
    #[serde(default)]
    decisive: Option<DecisiveRow>,
    #[serde(default)]
    property: Option<PropertyRow>,
}

/// What decides that it fails.
#[derive(Debug, Deserialize)]
struct DecisiveRow {
    operation: PlaceRow,
}

/// The property that it breaks.
#[derive(Debug, Deserialize)]
struct PropertyRow {
    /// As a file of its own.
    source: String,
}

/// A place of it.
#[derive(Debug, Deserialize)]
struct PlaceRow {
    role: String,
    thread: Option<String>,
    event: Option<u32>,
    #[serde(default)]
    location: Option<String>,
}

/// The schedule that leads to it.
#[derive(Debug, Deserialize)]
struct WitnessRow {
    steps: Vec<Part>,
}

impl Findings {
    /// Reads a document of schema 1 or 2.
    pub fn load(path: &Path) -> Result<Findings, Error> {
        let name = path.display();
        let help = "write them with `portent predict TRACE --json FILE`, and name the file with --findings";
        let text = std::fs::read_to_string(path).map_err(|error| Error::refused(format!("{name}: {error}"), help))?;
        let found: Findings = serde_json::from_str(&text)
            .map_err(|error| Error::refused(format!("{name}: not a list of findings: {error}"), help))?;
        if !matches!(found.schema, 1 | 2) {
            let message = format!("{name}: findings of schema {}, this Portent reads schemas 1 and 2", found.schema);
            return Err(Error::refused(message, "use the Portent that wrote them"));
        }
        Ok(found)
    }

    /// The one with this id.
    pub fn get(&self, id: &str) -> Result<Finding, Error> {
        let row = self.findings.iter().find(|finding| finding.id == id).ok_or_else(|| {
            let known: Vec<_> = self.findings.iter().map(|finding| finding.id.as_str()).take(20).collect();
            let help = match known.len() {
                0 => "there are no findings in the file".to_owned(),
                _ => format!("there are: {}", known.join(", ")),
            };
            Error::refused(format!("there is no finding {id}"), help)
        })?;
        row.finding()
    }
}

impl Row {
    fn finding(&self) -> Result<Finding, Error> {
        let of_role = |role: &str| self.places.iter().find(|place| place.role == role);
        let event = |role: &str| of_role(role).and_then(|place| place.event);
        let sought = match (self.kind.as_str(), self.form.as_deref()) {
            ("race", _) => Some(Sought::Race),
            ("deadlock", Some("lost_wakeup")) => {
                let sleeper = of_role("waiting").and_then(|place| place.thread.clone());
                sleeper.map(|sleeper| Sought::LostWakeup { sleeper })
            }
            ("deadlock", Some("stuck")) => Some(Sought::Stuck),
            ("deadlock", _) => Some(Sought::Cycle),
            ("nondeterminism", _) if event("read").is_none() => {
                Some(Sought::FinalValue { object: self.object.clone() })
            }
            ("property", _) => {
                self.property.as_ref().map(|property| Sought::Property { source: property.source.clone() })
            }
            ("atomicity", _) | ("failure", Some("lost_update")) => {
                let events = ["first", "remote", "second"].into_iter().filter_map(event).collect();
                Some(Sought::Order { events })
            }
            ("failure", Some(form)) => {
                let place = of_role("failure").and_then(|place| place.location.clone()).unwrap_or_default();
                Some(Sought::Failure { form: form.to_owned(), place })
            }
            _ => {
                let events = ["read"].into_iter().filter_map(event).collect();
                Some(Sought::Values { events })
            }
        };
        Ok(Finding {
            id: self.id.clone(),
            sought: sought.ok_or_else(|| foreign(&self.id))?,
            threads: self.places.iter().filter_map(|place| place.thread.clone()).collect(),
            events: self.places.iter().filter_map(|place| place.event).collect(),
            steps: self.witness.as_ref().map(|witness| witness.steps.clone()),
            decisive: self.decisive.as_ref().and_then(|decisive| {
                let PlaceRow { thread, event, .. } = &decisive.operation;
                Some((thread.clone()?, (*event)?))
            }),
        })
    }
}

fn foreign(id: &str) -> Error {
    Error::refused(
        format!("{id}: its threads are not those of a recorded program"),
        "findings can be replayed from traces that `portent record` wrote",
    )
}

impl Finding {
    /// A finding that was just predicted.
    pub fn of(trace: &Trace, finding: &portent_predict::Finding) -> Finding {
        let name = |thread: ThreadId| trace.names().thread(thread).to_owned();
        let sought = match &finding.bug {
            Bug::Race { .. } => Sought::Race,
            Bug::Deadlock(Deadlock::Cycle { .. }) => Sought::Cycle,
            Bug::Deadlock(Deadlock::Stuck { .. }) => Sought::Stuck,
            Bug::Deadlock(Deadlock::LostWakeup { waiting, .. }) => {
                Sought::LostWakeup { sleeper: waiting.thread.map(name).unwrap_or_default() }
            }
            Bug::Atomicity { first, remote, second, .. } | Bug::LostUpdate { first, remote, second, .. } => {
                Sought::Order { events: [first, remote, second].into_iter().filter_map(|p| p.event).collect() }
            }
            Bug::Nondeterminism(Nondeterminism::Read { read, .. }) => {
                Sought::Values { events: read.event.into_iter().collect() }
            }
            Bug::Nondeterminism(Nondeterminism::FinalValue { .. }) => {
                Sought::FinalValue { object: finding.object.clone() }
            }
            Bug::Property { violated, .. } => Sought::Property { source: violated.source.clone() },
            Bug::Failure(failed) => {
                let at = failed.at.location.map(|at| trace.names().location(at).to_string());
                Sought::Failure { form: failed.harm.name().to_owned(), place: at.unwrap_or_default() }
            }
        };
        let places = finding.places();
        let steps = |witness: &portent_predict::Witness| {
            let then = witness.steps.then.iter().map(|step| Part::Runs(name(step.thread), step.events));
            let observed = Some(witness.steps.as_observed).filter(|&events| events > 0);
            observed.into_iter().map(|as_observed| Part::AsObserved { as_observed }).chain(then).collect()
        };
        Finding {
            id: finding.id.clone(),
            sought,
            threads: places.iter().filter_map(|place| place.thread).map(name).collect(),
            events: places.iter().filter_map(|place| place.event).collect(),
            steps: finding.witness.as_ref().map(steps),
            decisive: finding.bug.failure().and_then(|failure| {
                let operation = &failure.decisive.as_ref()?.operation;
                Some((name(operation.thread?), operation.event?))
            }),
        }
    }

    /// The operation that decides, in the run that the schedule leads to: its thread, and the number of the event.
    pub fn decisive(&self) -> Option<(u32, u32)> {
        let (thread, event) = self.decisive.as_ref()?;
        Some((thread_number(thread)?, *event))
    }

    /// The schedule to enforce and what is to be seen.
    pub fn script(&self, run: &Run) -> Result<(Schedule, Wanted), Error> {
        let Some(steps) = &self.steps else {
            let help = "its evidence is the recorded run itself";
            return Err(Error::refused(format!("{} has no schedule to replay", self.id), help));
        };
        let number = |thread: &String| thread_number(thread).ok_or_else(|| foreign(&self.id));
        let mut schedule = Schedule::default();
        for part in steps {
            match part {
                Part::Runs(thread, events) => schedule.push(number(thread)?, *events),
                Part::AsObserved { as_observed } => {
                    let observed = usize::try_from(*as_observed).ok().and_then(|count| run.events.get(..count));
                    let observed = observed.ok_or_else(|| self.of_another_run())?;
                    observed.iter().for_each(|event| schedule.push(event.thread.index() as u32, 1));
                }
            }
        }
        let threads: Vec<u32> = self.threads.iter().map(number).collect::<Result<_, _>>()?;
        let wanted = match &self.sought {
            Sought::Race => {
                let pair = <[u32; 2]>::try_from(threads).map_err(|_| foreign(&self.id))?;
                schedule.goal = ScheduleGoal::Race(pair);
                Wanted::Race
            }
            Sought::Cycle => {
                schedule.goal = ScheduleGoal::Deadlock(threads);
                Wanted::Deadlock
            }
            Sought::Stuck => Wanted::Stuck { threads },
            Sought::LostWakeup { sleeper } => Wanted::LostWakeUp { sleeper: number(sleeper)? },
            Sought::Values { events } => Wanted::Values { events: events.clone() },
            Sought::Order { events } => Wanted::Order { events: events.clone() },
            // Its events are those of the run that failed, not of this one.
            Sought::Failure { form, place } => {
                return Ok((schedule, Wanted::Failure { form: form.clone(), place: place.clone() }));
            }
            Sought::FinalValue { object } => Wanted::FinalValue { object: object.clone() },
            Sought::Property { source } => Wanted::Property { source: source.clone() },
        };
        let known = run.events.len() as u32;
        if self.events.iter().any(|event| *event >= known) {
            return Err(self.of_another_run());
        }
        Ok((schedule, wanted))
    }

    fn of_another_run(&self) -> Error {
        let help = "findings and trace must be of the same run: predict again";
        Error::refused(format!("{}: names events that the trace does not have", self.id), help)
    }
}
