//! What a bug is: its kind, its events, and what else tells one of its kind from another.
//!
//! A kind that differs from the others does so here: what it carries ([`Bug`]), and what it is called ([`Form::words`]).
//! Consumers match on [`Bug`] where a kind is told in its own way, and ask its methods for everything else.
//!
//! To add a kind that is *seen* in runs and not looked for in reorderings (a crash, a failed assertion, a use after free:
//! `failure`), add its variant to [`BugKind`], [`Form`] and [`Bug`]: the compiler then names the few places that must
//! tell it.

use portent_order::{Goal, Writer};
use portent_trace::{EventId, LocId, Op, PairingId, ThreadId, Trace, VarId};

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

    /// What it is called and what it means.
    pub fn words(self) -> &'static Words {
        match self {
            Form::Race => &Words {
                title: "data race",
                rule: "race",
                identifier: "DataRace",
                meaning: "Two threads can access the same memory at the same time, and at least one of them writes, \
                          without a common lock or atomic operation that orders them. In C and C++ this is undefined \
                          behaviour.",
                severity: Severity::Error,
            },
            Form::Cycle => &Words {
                title: "deadlock",
                rule: "deadlock",
                identifier: "Deadlock",
                meaning: "Threads can wait for each other's locks in a cycle. Take locks in the same order everywhere.",
                severity: Severity::Error,
            },
            Form::LostWakeup => &Words {
                title: "lost wake-up",
                rule: "lost_wakeup",
                identifier: "LostWakeup",
                meaning: "A notify can come before the sleep that it should end, and nobody else sends one. Change and \
                          test the condition under the lock that the wait releases.",
                severity: Severity::Error,
            },
            Form::Atomicity => &Words {
                title: "atomicity violation",
                rule: "atomicity",
                identifier: "AtomicityViolation",
                meaning: "An access of another thread can come between two accesses that belong together, in a way that \
                          no serial order explains.",
                severity: Severity::Warning,
            },
            Form::Nondeterminism => &Words {
                title: "nondeterminism",
                rule: "nondeterminism",
                identifier: "Nondeterminism",
                meaning: "A read, or the final value of a variable, depends on which thread comes first.",
                severity: Severity::Note,
            },
            Form::Property => &Words {
                title: "property violation",
                rule: "property",
                identifier: "PropertyViolation",
                meaning: "Some schedule of the threads breaks a property that was stated about values or events.",
                severity: Severity::Error,
            },
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
    fn writer(&self) -> Writer {
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

/// A bug: what there is to know of the events of its first instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Two accesses that can be next at the same time.
    Race {
        /// The one that was observed first.
        first: Place,
        /// The other.
        second: Place,
    },
    /// Threads that wait for ever.
    Deadlock(Deadlock),
    /// An access that comes between two of an atomic block.
    Atomicity {
        /// The block's first access.
        first: Place,
        /// The other thread's.
        remote: Place,
        /// The block's second access.
        second: Place,
        /// What the three do.
        pattern: Pattern,
    },
    /// A value that depends on who comes first.
    Nondeterminism(Nondeterminism),
    /// A property that a run breaks.
    Property {
        /// The event that breaks it, or the end of the run.
        at: Place,
        /// The property, and how.
        violated: Violated,
    },
}

/// The two forms of deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deadlock {
    /// Threads wait for each other's locks.
    Cycle {
        /// The acquires at which they wait, each for a lock that the next one's thread holds.
        waits: Vec<Place>,
    },
    /// A notify comes before the sleep it should end.
    LostWakeup {
        /// The wake that never comes.
        waiting: Place,
        /// The notify that is lost.
        notify: Place,
        /// Which sleep, notify and wake of the trace these are.
        pairing: PairingId,
    },
}

/// What the accesses of an atomicity violation do, in the order of the witness; an update counts as a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Pattern {
    WriteReadWrite,
    ReadWriteRead,
    ReadWriteWrite,
    WriteWriteRead,
    WriteWriteWrite,
}

impl Pattern {
    /// The pattern of three accesses, by whether they write.
    pub(crate) fn of(first: bool, remote: bool, second: bool) -> Pattern {
        match (first, remote, second) {
            (true, false, true) => Pattern::WriteReadWrite,
            (false, true, false) => Pattern::ReadWriteRead,
            (false, true, true) => Pattern::ReadWriteWrite,
            (true, true, false) => Pattern::WriteWriteRead,
            // A read in the middle conflicts only with writes around it.
            _ => Pattern::WriteWriteWrite,
        }
    }
    /// The accesses as letters.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::WriteReadWrite => "WRW",
            Pattern::ReadWriteRead => "RWR",
            Pattern::ReadWriteWrite => "RWW",
            Pattern::WriteWriteRead => "WWR",
            Pattern::WriteWriteWrite => "WWW",
        }
    }
    /// What comes of it, in a sentence: `owner` has the block, `other` comes in between, `object` is what they access.
    pub fn consequence(self, owner: &str, other: &str, object: &str) -> String {
        match self {
            Pattern::ReadWriteRead => format!("The two reads of one block then see different values of {object}."),
            Pattern::ReadWriteWrite => format!(
                "{owner} then overwrites what {other} wrote, by a value that knows nothing of it: an update is lost."
            ),
            Pattern::WriteReadWrite => format!("{other} then reads a value that {owner} had not finished with."),
            Pattern::WriteWriteRead => {
                format!("{owner} then reads back what {other} wrote, not what it wrote itself.")
            }
            Pattern::WriteWriteWrite => format!("What {other} wrote then disappears in the middle of {owner}'s block."),
        }
    }
}

/// The two values that may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nondeterminism {
    /// What a read sees.
    Read {
        /// The read.
        read: Place,
        /// The write that it saw, or the initial value.
        writer: Place,
        /// What it could see instead.
        challenger: Place,
        /// In what shape of witness.
        shape: WitnessType,
    },
    /// What a variable holds at the end.
    FinalValue {
        /// The variable.
        variable: VarId,
        /// Its final value.
        end: Place,
        /// The write that was last, or the initial value.
        writer: Place,
        /// The write that could be last instead.
        challenger: Place,
    },
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

/// The places of a bug, borrowed as the bug is.
macro_rules! places {
    ($bug:expr) => {
        match $bug {
            Bug::Race { first, second } => vec![first, second],
            Bug::Deadlock(Deadlock::Cycle { waits }) => waits.into_iter().collect(),
            Bug::Deadlock(Deadlock::LostWakeup { waiting, notify, .. }) => vec![waiting, notify],
            Bug::Atomicity { first, remote, second, .. } => vec![first, remote, second],
            Bug::Nondeterminism(
                Nondeterminism::Read { read, writer, challenger, .. }
                | Nondeterminism::FinalValue { end: read, writer, challenger, .. },
            ) => vec![read, writer, challenger],
            Bug::Property { at, .. } => vec![at],
        }
    };
}

impl Bug {
    /// What kind of bug.
    pub fn kind(&self) -> BugKind {
        match self {
            Bug::Race { .. } => BugKind::Race,
            Bug::Deadlock(_) => BugKind::Deadlock,
            Bug::Atomicity { .. } => BugKind::Atomicity,
            Bug::Nondeterminism(_) => BugKind::Nondeterminism,
            Bug::Property { .. } => BugKind::Property,
        }
    }

    /// What it is called.
    pub fn form(&self) -> Form {
        match self {
            Bug::Race { .. } => Form::Race,
            Bug::Deadlock(Deadlock::Cycle { .. }) => Form::Cycle,
            Bug::Deadlock(Deadlock::LostWakeup { .. }) => Form::LostWakeup,
            Bug::Atomicity { .. } => Form::Atomicity,
            Bug::Nondeterminism(_) => Form::Nondeterminism,
            Bug::Property { .. } => Form::Property,
        }
    }

    /// Its events, in the order of the reports.
    pub fn places(&self) -> Vec<&Place> {
        places!(self)
    }

    /// The same, to change them.
    pub(crate) fn places_mut(&mut self) -> Vec<&mut Place> {
        places!(self)
    }

    /// What a schedule must reach to show it; `None` if no goal says that.
    pub fn goal(&self) -> Option<Goal> {
        Some(match self {
            Bug::Race { first, second } => Goal::Race { first: first.kernel?, second: second.kernel? },
            Bug::Deadlock(Deadlock::Cycle { waits }) => {
                Goal::Deadlock { waiting: waits.iter().map(|wait| wait.kernel).collect::<Option<_>>()? }
            }
            Bug::Deadlock(Deadlock::LostWakeup { pairing, .. }) => Goal::LostWakeup { pairing: *pairing },
            Bug::Atomicity { first, remote, second, .. } => {
                Goal::Atomicity { first: first.kernel?, remote: remote.kernel?, second: second.kernel? }
            }
            Bug::Nondeterminism(Nondeterminism::Read { read, challenger, .. }) => {
                Goal::Nondeterminism { read: read.kernel?, challenger: challenger.writer() }
            }
            Bug::Nondeterminism(Nondeterminism::FinalValue { variable, challenger, .. }) => {
                Goal::FinalValue { variable: *variable, challenger: challenger.kernel? }
            }
            Bug::Property { .. } => return None,
        })
    }

    /// The accesses as letters, for atomicity.
    pub fn pattern(&self) -> Option<Pattern> {
        match self {
            Bug::Atomicity { pattern, .. } => Some(*pattern),
            _ => None,
        }
    }

    /// The shape of the witness, for nondeterminism.
    pub fn witness_type(&self) -> Option<WitnessType> {
        match self {
            Bug::Nondeterminism(Nondeterminism::Read { shape, .. }) => Some(*shape),
            // Every write has happened by the end.
            Bug::Nondeterminism(Nondeterminism::FinalValue { .. }) => Some(WitnessType::Overwritten),
            _ => None,
        }
    }

    /// The property, for violations of one.
    pub fn violated(&self) -> Option<&Violated> {
        match self {
            Bug::Property { violated, .. } => Some(violated),
            _ => None,
        }
    }
}
