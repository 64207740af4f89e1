//! How a trace was recorded: everything that running the same program again needs, kept with the trace as an attachment.

use super::trust;
use crate::Error;
use crate::convert::{Converted, Waiting};
use crate::environment;
use crate::run::examine;
use crate::run::launch::Invocation;
use crate::run::output::Streams;
use crate::symbols::Module;
use crate::text::{Text, from_hex, to_hex};
use portent_explore::{End, Outcome, Run};
use portent_runtime::log::message;
use portent_runtime::plan::{Plan, policy};
use portent_trace::TraceError;
use portent_trace::format::{self, RECORDING};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// How a trace was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The version of Portent.
    pub portent: String,
    /// The program's file, absolute.
    pub program: Text,
    /// What it was called with, its own name first.
    pub arguments: Vec<Text>,
    /// Where it ran.
    pub working_directory: Text,
    /// Its environment, without Portent's own variables and without what is withheld.
    pub environment: Vec<(Text, Text)>,
    /// Variables whose values are not written, with their lengths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<(Text, u64)>,
    /// What vouches for it: a digest of what a replay starts, with the key of the user who recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// The file it read as standard input, if it was given one.
    #[serde(default)]
    pub input: Option<Text>,
    /// Its output went to files of the session, not to where Portent's own goes.
    #[serde(default)]
    pub output_kept: bool,
    /// Descriptors from 3 on that it inherited.
    #[serde(default)]
    pub descriptors: Option<Vec<RawFd>>,
    /// Which of the children that it forked was recorded; 0: the program itself.
    #[serde(default)]
    pub lineage: u64,
    /// Who ran when.
    pub scheduling: Scheduling,
    /// How it ended.
    pub end: End,
    /// Who waited for whom, if nobody could move.
    #[serde(default)]
    pub deadlock: Option<Vec<Waiting>>,
    /// What an assertion that failed said.
    #[serde(default)]
    pub assertion: Option<String>,
    /// What the program learned from outside: what it does, and where.
    #[serde(default)]
    pub outside: Vec<(String, String)>,
    /// For every thread: its parent, and which child of that it is. The main thread is its own parent.
    pub family: Vec<(u64, u64)>,
    /// For every thread: what the system answered, in order.
    pub answers: Vec<Vec<Answer>>,
    /// Everything that was loaded.
    pub modules: Vec<LoadedModule>,
    /// Events in the recording: as many as in the trace.
    pub events: u64,
    /// Why these are not all, in a sentence, if the recording is cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// Who ran next, where nothing else decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// `stay`, `rr`, `random` or `pct`.
    pub policy: String,
    /// What chance started from.
    pub seed: u64,
    /// Whether waits on conditions could end by themselves.
    #[serde(default)]
    pub spurious: bool,
}

/// An answer of the system: its kind, and its bytes in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer(pub u64, pub String);

/// A program or library as it was loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedModule {
    /// Its file.
    pub path: String,
    /// What to subtract from an address to get the one that the file gives.
    pub bias: u64,
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// What tells one build of it from another, if the linker left such a thing.
    pub build_id: Option<String>,
}

/// What scheduling policies are called.
const POLICIES: [(&str, u64); 5] = [
    ("stay", policy::STAY),
    ("rr", policy::ROUND_ROBIN),
    ("random", policy::RANDOM),
    ("pct", policy::PCT),
    ("priority", policy::PRIORITY),
];

impl Scheduling {
    /// The scheduling of a plan.
    pub fn of(plan: &Plan) -> Scheduling {
        let name = POLICIES.iter().find(|(_, code)| *code == plan.policy).map_or("?", |(name, _)| *name);
        Scheduling { policy: name.to_owned(), seed: plan.seed, spurious: plan.spurious }
    }
    /// The policy as plans name it.
    pub fn code(&self) -> u64 {
        POLICIES.iter().find(|(name, _)| *name == self.policy).map_or(policy::STAY, |(_, code)| *code)
    }
}

impl Recording {
    /// What is known when the program has ended and its recording is converted.
    pub fn new(invocation: &Invocation, streams: Streams, plan: &Plan, end: End, converted: &Converted) -> Recording {
        let survey = &converted.survey;
        let text = |text: &OsStr| Text::from(text);
        let assertion = survey.messages.iter().find(|message| message.kind == message::ASSERTION);
        let answer = |(kind, bytes): &(u64, Vec<u8>)| Answer(*kind, to_hex(bytes));
        let (environment, withheld) = environment::written(&invocation.environment, invocation.bare);
        let recording = Recording {
            portent: env!("CARGO_PKG_VERSION").to_owned(),
            program: text(invocation.program.as_os_str()),
            arguments: invocation.arguments.iter().map(|argument| text(argument)).collect(),
            working_directory: text(invocation.directory.as_os_str()),
            environment,
            withheld,
            seal: None,
            input: invocation.input.as_deref().map(|path| text(path.as_os_str())),
            output_kept: streams != Streams::Inherited,
            descriptors: invocation.descriptors.clone(),
            lineage: invocation.lineage,
            scheduling: Scheduling::of(plan),
            end,
            deadlock: converted.deadlock.clone(),
            assertion: assertion.map(|message| message.text.clone()),
            outside: converted.misdeeds.outside.clone(),
            family: survey.threads.iter().enumerate().map(|(i, t)| t.family.unwrap_or((i as u64, 0))).collect(),
            answers: survey.threads.iter().map(|thread| thread.answers.iter().map(answer).collect()).collect(),
            modules: survey.modules.iter().map(LoadedModule::of).collect(),
            events: survey.events,
            cut: survey.cut_in_words(),
        };
        Recording { seal: trust::seal(&recording), ..recording }
    }

    /// Whether it was made by this user on this machine, and says what it said then.
    pub fn is_ours(&self) -> bool {
        trust::is_ours(self)
    }

    /// Variables of the recorded run whose values are not in the trace and not here.
    pub fn missing_environment(&self) -> Vec<String> {
        environment::missing(&self.withheld)
    }

    /// The document that is attached to the trace.
    pub fn to_json(&self) -> Result<Vec<u8>, TraceError> {
        serde_json::to_vec(self).map_err(|error| TraceError::whole(io::Error::from(error)))
    }

    /// How the trace in a file was recorded; `None` if it does not say.
    pub fn load(path: &Path) -> Result<Option<Recording>, Error> {
        let named = |error: TraceError| Error::Trace(error.in_input(&path.display().to_string()));
        let file = File::open(path).map_err(|error| named(error.into()))?;
        let attached = format::attachments(file).map_err(named)?;
        let Some(json) = attached.get(&RECORDING) else { return Ok(None) };
        Self::parse(json).map(Some).map_err(named)
    }

    /// The recording that a document holds.
    pub(super) fn parse(json: &[u8]) -> Result<Recording, TraceError> {
        serde_json::from_slice(json).map_err(|error| {
            let what = format!("how it was recorded cannot be read: {error}");
            io::Error::new(ErrorKind::InvalidData, what).into()
        })
    }

    /// The run that it belongs to, whose events are in the trace.
    pub fn run(&self, trace: &Path) -> Result<Run, Error> {
        let deadlock = self.deadlock.as_ref().map(|all| all.iter().map(Waiting::stuck).collect());
        let assertion = self.assertion.clone();
        let outcome = Outcome { assertion, deadlock, ..Outcome::ended(self.end) };
        Run::load(trace, outcome, self.to_json()?)
    }

    /// What to start, to run the program again as it was.
    pub fn invocation(&self) -> Invocation {
        Invocation {
            program: self.program.to_os().into(),
            arguments: self.arguments.iter().map(Text::to_os).collect(),
            directory: self.working_directory.to_os().into(),
            environment: environment::restored(&self.environment, &self.withheld),
            bare: false,
            outlives: false,
            input: self.input.as_ref().map(|path| path.to_os().into()),
            wrapper: Vec::new(),
            silent: false,
            aside: false,
            descriptors: self.descriptors.clone(),
            lineage: self.lineage,
            processes: None,
            drives: false,
        }
    }

    /// A plan that answers the program as it was answered, and knows its threads. Steps and goal are the caller's.
    pub fn plan(&self) -> Plan {
        let answer = |answer: &Answer| (answer.0, from_hex(&answer.1).unwrap_or_default());
        Plan {
            policy: self.scheduling.code(),
            seed: self.scheduling.seed,
            family: self.family.clone(),
            answers: self.answers.iter().map(|given| given.iter().map(answer).collect()).collect(),
            lineage: self.lineage,
            spurious: self.scheduling.spurious,
            ..Plan::default()
        }
    }

    /// Whether nothing was received from outside of the process, as far as that is known.
    pub fn talks_to_itself(&self) -> bool {
        !self.outside.iter().any(|(what, _)| what == message::FROM_NETWORK)
    }

    /// The modules whose files are not what they were when the program was recorded, with the reason.
    pub fn changed(&self) -> Vec<(PathBuf, &'static str)> {
        let changed = |module: &LoadedModule| {
            let path = PathBuf::from(&module.path);
            let before = module.build_id.as_ref()?;
            match examine::build_id(&path) {
                Some(now) if now == *before => None,
                Some(_) => Some((path, "is another build than the one that was recorded")),
                None => Some((path, "is gone")),
            }
        };
        self.modules.iter().filter_map(changed).collect()
    }
}

impl LoadedModule {
    fn of(module: &Module) -> LoadedModule {
        let &Module { bias, start, end, ref path } = module;
        LoadedModule { path: path.clone(), bias, start, end, build_id: examine::build_id(Path::new(path)) }
    }
}
