//! A finding as `predict --json` wrote it, and what replaying it means.

use super::schedule::{Schedule, ScheduleGoal, thread_number};
use super::wanted::Wanted;
use crate::error::Error;
use crate::run::Run;
use serde::Deserialize;
use std::path::Path;

/// Findings of a trace, as far as a replay needs them.
#[derive(Debug, Deserialize)]
pub struct Findings {
    schema: u32,
    findings: Vec<Finding>,
}

/// One of them.
#[derive(Debug, Deserialize)]
pub struct Finding {
    id: String,
    kind: String,
    #[serde(default)]
    form: Option<String>,
    #[serde(default)]
    object: String,
    places: Vec<Place>,
    witness: Option<Witness>,
    #[serde(default)]
    property: Option<Property>,
}

/// The property that it breaks.
#[derive(Debug, Deserialize)]
struct Property {
    /// As a file of its own.
    source: String,
}

/// A place of it.
#[derive(Debug, Deserialize)]
struct Place {
    role: String,
    thread: Option<String>,
    event: Option<u32>,
}

/// The schedule that leads to it.
#[derive(Debug, Deserialize)]
struct Witness {
    steps: Vec<(String, u64)>,
}

impl Findings {
    /// Reads a document of schema 1.
    pub fn load(path: &Path) -> Result<Findings, Error> {
        let name = path.display();
        let help = "write them with `portent predict TRACE --json FILE`, and name the file with --findings";
        let text = std::fs::read_to_string(path).map_err(|error| Error::refused(format!("{name}: {error}"), help))?;
        let found: Findings = serde_json::from_str(&text)
            .map_err(|error| Error::refused(format!("{name}: not a list of findings: {error}"), help))?;
        if found.schema != 1 {
            let message = format!("{name}: findings of schema {}, this Portent reads schema 1", found.schema);
            return Err(Error::refused(message, "use the Portent that wrote them"));
        }
        Ok(found)
    }

    /// The one with this id.
    pub fn get(&self, id: &str) -> Result<&Finding, Error> {
        self.findings.iter().find(|finding| finding.id == id).ok_or_else(|| {
            let known: Vec<_> = self.findings.iter().map(|finding| finding.id.as_str()).take(20).collect();
            let help = match known.len() {
                0 => "there are no findings in the file".to_owned(),
                _ => format!("there are: {}", known.join(", ")),
            };
            Error::refused(format!("there is no finding {id}"), help)
        })
    }
}

impl Finding {
    /// A finding that was just predicted.
    pub fn of(trace: &portent_trace::Trace, finding: &portent_predict::Finding) -> Finding {
        let name = |thread| trace.names().thread(thread).to_owned();
        let place = |place: &portent_predict::Place| Place {
            role: place.role.name().to_owned(),
            thread: place.thread.map(name),
            event: place.event,
        };
        let steps = |witness: &portent_predict::Witness| {
            witness.steps.iter().map(|step| (name(step.thread), step.events)).collect()
        };
        Finding {
            id: finding.id.clone(),
            kind: finding.kind.name().to_owned(),
            form: finding.form.map(|form| form.name().to_owned()),
            object: finding.object.clone(),
            places: finding.places.iter().map(place).collect(),
            witness: finding.witness.as_ref().map(|witness| Witness { steps: steps(witness) }),
            property: finding.property.as_ref().map(|property| Property { source: property.source.clone() }),
        }
    }

    /// The schedule to enforce and what is to be seen.
    pub fn script(&self, run: &Run) -> Result<(Schedule, Wanted), Error> {
        let Some(witness) = &self.witness else {
            let help = "its evidence is the recorded run itself";
            return Err(Error::refused(format!("{} has no schedule to replay", self.id), help));
        };
        let foreign = || {
            Error::refused(
                format!("{}: its threads are not those of a recorded program", self.id),
                "findings can be replayed from traces that `portent record` wrote",
            )
        };
        let mut schedule = Schedule::default();
        for (thread, events) in &witness.steps {
            schedule.push(thread_number(thread).ok_or_else(foreign)?, *events);
        }
        let threads: Option<Vec<u32>> =
            self.places.iter().filter_map(|place| place.thread.as_deref()).map(thread_number).collect();
        let threads = threads.ok_or_else(foreign)?;
        let event = |role: &str| self.places.iter().find(|place| place.role == role).and_then(|place| place.event);
        let wanted = match (self.kind.as_str(), self.form.as_deref()) {
            ("race", _) => {
                let pair = <[u32; 2]>::try_from(threads).map_err(|_| foreign())?;
                schedule.goal = ScheduleGoal::Race(pair);
                Wanted::Race
            }
            ("deadlock", Some("lost_wakeup")) => {
                let waiting = self.places.iter().find(|place| place.role == "waiting");
                let sleeper = waiting.and_then(|place| place.thread.as_deref()).and_then(thread_number);
                Wanted::LostWakeUp { sleeper: sleeper.ok_or_else(foreign)? }
            }
            ("deadlock", _) => {
                schedule.goal = ScheduleGoal::Deadlock(threads);
                Wanted::Deadlock
            }
            ("nondeterminism", _) if event("read").is_none() => Wanted::FinalValue { object: self.object.clone() },
            ("property", _) => match &self.property {
                Some(property) => Wanted::Property { source: property.source.clone() },
                None => return Err(foreign()),
            },
            _ => {
                let events = ["first", "remote", "second", "read"].into_iter().filter_map(event).collect();
                Wanted::Values { events }
            }
        };
        let known = run.events.len() as u32;
        if self.places.iter().filter_map(|place| place.event).any(|event| event >= known) {
            let help = "findings and trace must be of the same run: predict again";
            return Err(Error::refused(format!("{}: names events that the trace does not have", self.id), help));
        }
        Ok((schedule, wanted))
    }
}
