//! Findings: what is reported about a bug.

use crate::facts::Facts;
use portent_order::{Goal, Model, Schedule, Writer};
use portent_trace::{EventId, LocId, Op, ThreadId, Trace, VarId};
use std::sync::Arc;

/// The kinds of bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum BugKind {
    Race,
    Deadlock,
    Atomicity,
    Nondeterminism,
    Property,
}

impl BugKind {
    /// Every kind that needs no property file.
    pub const ALL: [BugKind; 4] = [BugKind::Race, BugKind::Deadlock, BugKind::Atomicity, BugKind::Nondeterminism];
    /// The kind's name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            BugKind::Race => "race",
            BugKind::Deadlock => "deadlock",
            BugKind::Atomicity => "atomicity",
            BugKind::Nondeterminism => "nondeterminism",
            BugKind::Property => "property",
        }
    }
    /// The kind that a goal belongs to.
    pub fn of(goal: &Goal) -> BugKind {
        match goal {
            Goal::Race { .. } => BugKind::Race,
            Goal::Nondeterminism { .. } | Goal::FinalValue { .. } => BugKind::Nondeterminism,
            Goal::Atomicity { .. } => BugKind::Atomicity,
            Goal::Deadlock { .. } | Goal::LostWakeup { .. } => BugKind::Deadlock,
        }
    }
}

/// The two forms of deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Threads wait for each other's locks.
    Cycle,
    /// A notify comes before the sleep it should end.
    LostWakeup,
}

impl Form {
    /// The form's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Form::Cycle => "cycle",
            Form::LostWakeup => "lost_wakeup",
        }
    }
}

/// What a place has to do with its finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Role {
    First,
    Second,
    Remote,
    Read,
    Writer,
    Challenger,
    Waiting,
    Notify,
    Violation,
}

impl Role {
    /// The role's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::First => "first",
            Role::Second => "second",
            Role::Remote => "remote",
            Role::Read => "read",
            Role::Writer => "writer",
            Role::Challenger => "challenger",
            Role::Waiting => "waiting",
            Role::Notify => "notify",
            Role::Violation => "violation",
        }
    }
}

/// An event of a finding, or the initial or final value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What it has to do with the finding.
    pub role: Role,
    /// Who; nobody for initial and final values.
    pub thread: Option<ThreadId>,
    /// The number of the input event; `None` for initial and final values, and on the other side of a branch.
    pub event: Option<u32>,
    /// What is done: the name of an operation, `initial` or `final`.
    pub op: &'static str,
    /// To what.
    pub object: String,
    /// Where in the source.
    pub location: Option<LocId>,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// It happened in the recorded run.
    Observed,
    /// A witness was checked against the trace.
    Predicted,
}

impl Evidence {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Observed => "observed",
            Evidence::Predicted => "predicted",
        }
    }
}

/// The shapes that Sinha et al. tell apart: a read r of write w, and a challenger c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WitnessType {
    /// c → r → w: the witness can go on to w.
    ReadBeforeWrite,
    /// w → c → r
    Overwritten,
    /// c → r, and w does not happen.
    WithoutWrite,
}

impl WitnessType {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            WitnessType::ReadBeforeWrite => "c-r-w",
            WitnessType::Overwritten => "w-c-r",
            WitnessType::WithoutWrite => "c-r",
        }
    }
}

/// What is worth knowing about all instances of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// A happens-before detector that watched the recorded run would have stayed silent (races).
    pub beyond_hb: bool,
    /// The two accesses are ordered by nothing but relaxed atomics (races).
    pub relaxed_only: bool,
    /// The other value is equal to the one that was read (nondeterminism).
    pub same_value: bool,
    /// Both accesses hold a common lock: the order is open, but not by accident (nondeterminism).
    pub under_lock: bool,
    /// A branch of the recorded run must go the other way first.
    pub needs_other_branch: bool,
}

impl Flags {
    /// The names of the flags that are set.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [
            ("beyond_hb", self.beyond_hb),
            ("relaxed_only", self.relaxed_only),
            ("same_value", self.same_value),
            ("under_lock", self.under_lock),
            ("needs_other_branch", self.needs_other_branch),
        ]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
    }
    /// What holds of both.
    pub(crate) fn and(self, other: Flags) -> Flags {
        Flags {
            beyond_hb: self.beyond_hb && other.beyond_hb,
            relaxed_only: self.relaxed_only && other.relaxed_only,
            same_value: self.same_value && other.same_value,
            under_lock: self.under_lock && other.under_lock,
            needs_other_branch: self.needs_other_branch && other.needs_other_branch,
        }
    }
}

/// A schedule that shows a finding, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Kernel steps, for replay and for checking again.
    pub schedule: Schedule,
    /// The same in input events.
    pub steps: Vec<crate::steps::Step>,
}

impl Witness {
    /// How many input events it executes.
    pub fn events(&self) -> u64 {
        self.steps.iter().map(|step| step.events).sum()
    }
    /// How often one thread makes way for another.
    pub fn switches(&self) -> usize {
        self.steps.len().saturating_sub(1)
    }
}

/// A property that a run breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violated {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub text: String,
    /// How the run breaks it, in sentences: which values, at which step, in which thread.
    pub explanation: String,
    /// The property as a file of its own, with the initial values it was given.
    pub source: String,
    /// What the property saw last before it was broken, in the order of the witness.
    pub saw: Vec<EventId>,
    /// Whether the violation rests on initial values that nothing in the trace shows.
    pub assumes: Vec<String>,
}

/// A bug, with everything that reports say about it.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Kind and hash of the places: the same from run to run.
    pub id: String,
    /// What kind of bug.
    pub kind: BugKind,
    /// Which form, for deadlocks.
    pub form: Option<Form>,
    /// How sure it is.
    pub evidence: Evidence,
    /// In which model it was found; `None` for happens-before findings.
    pub model: Option<Model>,
    /// The variable, lock or condition it is about.
    pub object: String,
    /// The events of its first instance.
    pub places: Vec<Place>,
    /// How many tuples of events at the same source locations were found feasible.
    pub instances: u64,
    /// Whether that is all of them.
    pub instances_exact: bool,
    /// What holds of all instances.
    pub flags: Flags,
    /// The shape of the witness, for nondeterminism.
    pub witness_type: Option<WitnessType>,
    /// The accesses as letters (`RWR`), for atomicity.
    pub pattern: Option<&'static str>,
    /// The goal of its first instance; `None` for happens-before findings.
    pub goal: Option<Goal>,
    /// How to make it happen; none for what was observed, but for properties.
    pub witness: Option<Witness>,
    /// The property, for violations of one.
    pub property: Option<Violated>,
    /// The branch that must go the other way; goal, places and witness are then of its trace.
    pub other_branch: Option<OtherBranch>,
}

/// A branch that a finding needs to go another way than it did, and what makes it.
#[derive(Clone, Debug)]
pub struct OtherBranch {
    /// The trace in which it does. Its events from `first` on are the other side's, and came from no input event.
    pub trace: Arc<Trace>,
    /// The first event of the other side.
    pub first: usize,
    /// The branch, in both traces.
    pub branch: EventId,
    /// Which way it goes now.
    pub outcome: bool,
    /// Where the other side was seen: the input event of another branch. `None` if it was recorded with the branch.
    pub seen: Option<u32>,
    /// What the branch depends on.
    pub reads: Vec<Decisive>,
}

/// A read that a branch depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decisive {
    /// The read.
    pub read: EventId,
    /// What it saw in the trace.
    pub was: Option<i64>,
    /// What it sees now.
    pub is: Option<i64>,
}

/// Why something was not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// Time or search effort ran out.
    Budget,
    /// It needs more of the trace than is looked at for one question.
    Window,
    /// The user stopped it.
    Interrupted,
    /// A level of the lattice was too wide.
    Width,
    /// A value that decides is not in the trace.
    Values,
    /// Branches that were not taken the other way: more than are tried.
    Branches,
}

impl Why {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Why::Budget => "budget",
            Why::Window => "window",
            Why::Interrupted => "interrupted",
            Why::Width => "width",
            Why::Values => "values",
            Why::Branches => "branches",
        }
    }
}

/// What is known of candidates that were neither shown nor refuted.
///
/// *Refuted* is a word for proofs that hold for the whole trace; see docs/src/explanation/limits.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// They were asked about, and there was no answer within the bounds.
    Undecided,
    /// They were not asked about.
    NotExamined,
}

impl Status {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Undecided => "undecided",
            Status::NotExamined => "not_examined",
        }
    }
    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Status::Undecided => "undecided",
            Status::NotExamined => "not examined",
        }
    }
}

/// Candidates whose verdict is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Of which kind.
    pub kind: BugKind,
    /// What is known of them.
    pub status: Status,
    /// The input events, if it is one candidate.
    pub events: Option<Vec<u32>>,
    /// How many candidates, or groups of candidates.
    pub count: u64,
    /// Whether `count` counts groups of candidates at the same places.
    pub groups: bool,
    /// Whether there may be more than `count`.
    pub at_least: bool,
    /// Why.
    pub why: Why,
    /// In words.
    pub what: String,
}

/// Where the value of a read location may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MayRead {
    /// The read.
    pub read: LocId,
    /// The writes it saw or could see.
    pub from: Vec<LocId>,
    /// Whether the initial value is among them.
    pub initial: bool,
}

/// The places of a goal, in the order of the reports.
pub(crate) fn places(facts: &Facts<'_>, goal: &Goal) -> Vec<Place> {
    let trace = facts.trace;
    let event = |role, e| event_place(trace, role, e);
    let value = |role, op, x: VarId| {
        let object = trace.variable_name(x).into_owned();
        Place { role, thread: None, event: None, op, object, location: None }
    };
    let writer = |role, w: Writer, x: VarId| match w {
        Writer::Init => value(role, "initial", x),
        Writer::Event(e) => event(role, e),
    };
    match goal {
        Goal::Race { first, second } => vec![event(Role::First, *first), event(Role::Second, *second)],
        Goal::Nondeterminism { read, challenger } => {
            let mut places = vec![event(Role::Read, *read)];
            if let Some(x) = trace.op(*read).variable() {
                places.push(writer(Role::Writer, facts.saw(*read), x));
                places.push(writer(Role::Challenger, *challenger, x));
            }
            places
        }
        Goal::FinalValue { variable, challenger } => vec![
            value(Role::Read, "final", *variable),
            writer(Role::Writer, facts.last_write(*variable).map_or(Writer::Init, Writer::Event), *variable),
            event(Role::Challenger, *challenger),
        ],
        Goal::Atomicity { first, remote, second } => {
            vec![event(Role::First, *first), event(Role::Remote, *remote), event(Role::Second, *second)]
        }
        Goal::Deadlock { waiting } => waiting.iter().map(|&e| event(Role::Waiting, e)).collect(),
        Goal::LostWakeup { pairing } => {
            let pairing = trace.pairings()[pairing.index()];
            vec![event(Role::Waiting, pairing.wake), event(Role::Notify, pairing.notify)]
        }
    }
}

/// The entry for one candidate, by its places.
pub(crate) fn whereabouts(facts: &Facts<'_>, goal: &Goal, status: Status, why: Why) -> Incomplete {
    let (kind, places, names) = (BugKind::of(goal), places(facts, goal), facts.trace.names());
    let text =
        |p: &Place| p.location.map_or_else(|| format!("{} {}", p.op, p.object), |loc| names.location(loc).to_string());
    let texts: Vec<String> = places.iter().map(text).collect();
    Incomplete {
        kind,
        status,
        events: Some(places.iter().filter_map(|p| p.event).collect()),
        count: 1,
        groups: false,
        at_least: false,
        why,
        what: format!("{} at {}", kind.name(), texts.join(" / ")),
    }
}

/// The place of an event.
pub(crate) fn event_place(trace: &Trace, role: Role, id: EventId) -> Place {
    let event = trace.event(id);
    Place {
        role,
        thread: Some(event.thread),
        event: Some(trace.input_index(id)),
        op: event.op.name(),
        object: object_name(trace, event.op),
        location: Some(event.loc),
    }
}

fn object_name(trace: &Trace, op: Op) -> String {
    match op {
        Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => trace.variable_name(x).into_owned(),
        Op::Acquire(l, _) | Op::Release(l, _) | Op::Busy(l, _) => trace.names().lock(l).to_owned(),
        Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => trace.names().condition(c).to_owned(),
        Op::Begin(b) | Op::End(b) => trace.names().block(b).to_owned(),
        Op::Send(_) | Op::Receive(_) | Op::Branch => String::new(),
    }
}
