//! What every kind of bug has: a name, and events with their roles. What only one kind has is in `kinds`.

use portent_order::{Goal, Writer};
use portent_trace::{EventId, LocId, Op, ThreadId, Trace};

/// The kinds of bug that can be asked for.
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

/// What a bug is called: its kind, with lost wake-ups told from cycles. Reports list findings in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Form {
    Race,
    /// A deadlock: threads wait for each other's locks.
    Cycle,
    /// A deadlock: a notify comes before the sleep it should end.
    LostWakeup,
    Atomicity,
    Nondeterminism,
    Property,
}

/// How bad it is if it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// A bug in every program.
    Error,
    /// A bug unless the program is meant to be so.
    Warning,
    /// Worth knowing.
    Note,
}

/// What a form of bug is called, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// In sentences.
    pub title: &'static str,
    /// As a rule that is switched on and off.
    pub rule: &'static str,
    /// As the name of a rule, without blanks.
    pub identifier: &'static str,
    /// What it means for a program, in sentences.
    pub meaning: &'static str,
    /// How bad it is.
    pub severity: Severity,
}

impl Form {
    /// Every form.
    pub const ALL: [Form; 6] =
        [Form::Race, Form::Cycle, Form::LostWakeup, Form::Atomicity, Form::Nondeterminism, Form::Property];

    /// The form's name in ids, and in reports where it says more than the kind.
    pub fn name(self) -> &'static str {
        match self {
            Form::Race => "race",
            Form::Cycle => "cycle",
            Form::LostWakeup => "lost_wakeup",
            Form::Atomicity => "atomicity",
            Form::Nondeterminism => "nondeterminism",
            Form::Property => "property",
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
    /// The kernel event; `None` for initial and final values.
    pub kernel: Option<EventId>,
    /// What is done: the name of an operation, `initial` or `final`.
    pub op: &'static str,
    /// To what.
    pub object: String,
    /// Where in the source.
    pub location: Option<LocId>,
}

impl Place {
    /// The place of an event.
    pub(crate) fn of_event(trace: &Trace, role: Role, id: EventId) -> Place {
        let event = trace.event(id);
        Place {
            role,
            thread: Some(event.thread),
            event: Some(trace.input_index(id)),
            kernel: Some(id),
            op: event.op.name(),
            object: object_name(trace, event.op),
            location: Some(event.loc),
        }
    }
    /// What something holds when nobody has written to it, or when everybody is done: `op` says which.
    pub(crate) fn of_value(role: Role, op: &'static str, object: String) -> Place {
        Place { role, thread: None, event: None, kernel: None, op, object, location: None }
    }
    pub(crate) fn writer(&self) -> Writer {
        self.kernel.map_or(Writer::Init, Writer::Event)
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
