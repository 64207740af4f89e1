//! What every kind of bug has: a name, and events with their roles. What only one kind has is in `kinds`.

use portent_order::{Goal, Writer};
use portent_trace::{EventId, InputEvent, LocId, Op, ThreadId, Trace};

/// The kinds of bug that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum BugKind {
    Race,
    Deadlock,
    Atomicity,
    Nondeterminism,
    LostUpdate,
    Property,
    /// Seen in a run, never predicted.
    Failure,
}

impl BugKind {
    /// Every kind that needs no property file.
    pub const ALL: [BugKind; 5] =
        [BugKind::Race, BugKind::Deadlock, BugKind::Atomicity, BugKind::Nondeterminism, BugKind::LostUpdate];
    /// The kind's name on the command line and in text.
    pub fn name(self) -> &'static str {
        match self {
            BugKind::Race => "race",
            BugKind::Deadlock => "deadlock",
            BugKind::Atomicity => "atomicity",
            BugKind::Nondeterminism => "nondeterminism",
            BugKind::LostUpdate => "lost_update",
            BugKind::Property => "property",
            BugKind::Failure => "failure",
        }
    }
    /// The kind in documents and ids: a lost update is a failure there, and its form says which.
    pub fn document_name(self) -> &'static str {
        match self {
            BugKind::LostUpdate => BugKind::Failure.name(),
            other => other.name(),
        }
    }
    /// The kind that a goal belongs to.
    pub fn of(goal: &Goal) -> BugKind {
        match goal {
            Goal::Race { .. } => BugKind::Race,
            Goal::Nondeterminism { .. } | Goal::FinalValue { .. } => BugKind::Nondeterminism,
            Goal::Atomicity { .. } => BugKind::Atomicity,
            Goal::Deadlock { .. } | Goal::LostWakeup { .. } | Goal::Stuck { .. } => BugKind::Deadlock,
            Goal::LostUpdate { .. } => BugKind::LostUpdate,
        }
    }
}

/// How a program fails. Reports list failures in this order: what names the cause comes before what is only its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Harm {
    /// An access to memory that was freed.
    UseAfterFree,
    /// Memory freed a second time.
    DoubleFree,
    /// Memory freed in a way that does not fit how it was allocated.
    BadFree,
    /// A mutex, condition or the like destroyed while it was in use, or used afterwards.
    DestroyedInUse,
    /// An assertion that failed.
    Assertion,
    /// An exception that nobody caught.
    Exception,
    /// A fatal signal.
    Crash,
    /// The program gave up by itself.
    Abort,
    /// Nobody can move.
    DeadlockReached,
    /// A descriptor closed while it was in use, or used afterwards.
    ClosedInUse,
    /// It did not end in time.
    Hang,
    /// It ended with another status than success.
    Exit,
    /// It printed something else than the recorded run.
    Output,
}

impl Harm {
    /// Every one, in order.
    pub const ALL: [Harm; 13] = [
        Harm::UseAfterFree,
        Harm::DoubleFree,
        Harm::BadFree,
        Harm::DestroyedInUse,
        Harm::Assertion,
        Harm::Exception,
        Harm::Crash,
        Harm::Abort,
        Harm::DeadlockReached,
        Harm::ClosedInUse,
        Harm::Hang,
        Harm::Exit,
        Harm::Output,
    ];

    /// The form's name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Harm::UseAfterFree => "use_after_free",
            Harm::DoubleFree => "double_free",
            Harm::BadFree => "bad_free",
            Harm::DestroyedInUse => "destroyed_in_use",
            Harm::Assertion => "assertion",
            Harm::Exception => "exception",
            Harm::Crash => "crash",
            Harm::Abort => "abort",
            Harm::DeadlockReached => "deadlock_reached",
            Harm::ClosedInUse => "closed_in_use",
            Harm::Hang => "hang",
            Harm::Exit => "exit",
            Harm::Output => "output",
        }
    }
}

/// What a bug is called: its kind, with lost wake-ups told from cycles, and how a program fails. Reports list findings in this
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Form {
    Failure(Harm),
    /// A race in which one side frees the memory.
    PossibleUseAfterFree,
    /// A race in which both sides free the memory.
    PossibleDoubleFree,
    /// A race in which one side destroys what the other uses.
    PossiblyDestroyedInUse,
    Race,
    /// A deadlock: threads wait for each other's locks.
    Cycle,
    /// A deadlock: a notify comes before the sleep it should end.
    LostWakeup,
    /// Any other deadlock: threads wait for what nobody can do any more.
    Stuck,
    LostUpdate,
    Property,
    Atomicity,
    Nondeterminism,
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
    pub fn all() -> impl Iterator<Item = Form> {
        let predicted = [
            Form::PossibleUseAfterFree,
            Form::PossibleDoubleFree,
            Form::PossiblyDestroyedInUse,
            Form::Race,
            Form::Cycle,
            Form::LostWakeup,
            Form::Stuck,
            Form::LostUpdate,
            Form::Property,
            Form::Atomicity,
            Form::Nondeterminism,
        ];
        Harm::ALL.into_iter().map(Form::Failure).chain(predicted)
    }

    /// Whether a prediction of this form that comes true is a failure of that form.
    pub fn comes_true_as(self, failure: Form) -> bool {
        use Harm::{BadFree, ClosedInUse, DestroyedInUse, DoubleFree, UseAfterFree};
        match self {
            Form::PossibleUseAfterFree => matches!(failure, Form::Failure(UseAfterFree | DestroyedInUse)),
            Form::PossibleDoubleFree => matches!(failure, Form::Failure(DoubleFree | BadFree)),
            Form::PossiblyDestroyedInUse => matches!(failure, Form::Failure(DestroyedInUse | ClosedInUse)),
            _ => false,
        }
    }

    /// The form's name in ids, and in reports where it says more than the kind.
    pub fn name(self) -> &'static str {
        match self {
            Form::PossibleUseAfterFree => Harm::UseAfterFree.name(),
            Form::PossibleDoubleFree => Harm::DoubleFree.name(),
            Form::PossiblyDestroyedInUse => Harm::DestroyedInUse.name(),
            Form::Race => "race",
            Form::Cycle => "cycle",
            Form::LostWakeup => "lost_wakeup",
            Form::Stuck => "stuck",
            Form::LostUpdate => "lost_update",
            Form::Atomicity => "atomicity",
            Form::Nondeterminism => "nondeterminism",
            Form::Property => "property",
            Form::Failure(harm) => harm.name(),
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
    Failure,
    Made,
    Ended,
    Decisive,
    Because,
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
            Role::Failure => "failure",
            Role::Made => "made",
            Role::Ended => "ended",
            Role::Decisive => "decisive",
            Role::Because => "because",
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
    /// The place of an input event, whether or not an operation of the kernel came of it.
    pub fn of_input(trace: &Trace, role: Role, event: &InputEvent, number: u32) -> Place {
        let mut kernel = 0..trace.len();
        while !kernel.is_empty() {
            let middle = kernel.start + kernel.len() / 2;
            if trace.input_index(EventId::new(middle)) < number {
                kernel.start = middle + 1;
            } else {
                kernel.end = middle;
            }
        }
        let first = (kernel.start < trace.len()).then(|| EventId::new(kernel.start));
        match first.filter(|&id| trace.input_index(id) == number) {
            Some(id) => Place::of_event(trace, role, id),
            None => Place {
                thread: Some(event.thread),
                event: Some(number),
                location: Some(event.loc),
                ..Place::of_value(role, event.op.text(), String::new())
            },
        }
    }
    /// What has no event.
    pub fn nowhere(role: Role) -> Place {
        Place::of_value(role, "", String::new())
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
        Op::Acquire(l, _) | Op::Release(l, _) | Op::Busy(l, _) => trace.names().lock(l).into_owned(),
        Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => trace.names().condition(c).into_owned(),
        Op::Post(s) | Op::Wait(s) | Op::Empty(s) => trace.names().semaphore(s).into_owned(),
        Op::Begin(b) | Op::End(b) => trace.names().block(b).into_owned(),
        Op::Send(_) | Op::Receive(_) | Op::Branch | Op::Fence(_) => String::new(),
    }
}
