//! The kinds of bug, one file each: its candidates, its goals, which of them are one finding, its events and their roles,
//! and its words.
//!
//! To add a kind that is looked for in reorderings: a file here, its place in [`ALL`], and its arm in [`Bug`] and in the
//! functions beside it. One that is *seen* in runs instead (a crash, a failed assertion, a use after free: `failure`) needs
//! no candidates: `BugKind`, `Form` and [`Bug`] get a variant, and the compiler names the few places that must tell it.
//!
//! Consumers match on [`Bug`] where a kind is told in its own way, and ask its methods for everything else.

mod atomicity;
mod deadlock;
mod failure;
mod lost_update;
mod nondeterminism;
mod property;
mod race;
mod shape;

pub use atomicity::Pattern;
pub use deadlock::Deadlock;
pub use failure::{Deciding, Failure, StackFrame};
pub(crate) use lost_update::{LostUpdates, candidates as lost_updates};
pub use nondeterminism::Nondeterminism;
pub use property::{PropertyTold, PropertyVerdict, Violated};
pub use race::Frees;
pub(crate) use race::{frees as race_frees, key as race_key, places as race_places};
pub use shape::WitnessType;

use crate::asking::{Asker, Flags, Key, Window};
use crate::bug::{BugKind, Form, Place, Role, Words};
use crate::circle::circle;
use crate::facts::Facts;
use portent_order::{Goal, Model, Schedule};
use portent_trace::EventId;

/// A kind that is looked for in windows.
pub(crate) struct Kind {
    pub(crate) kind: BugKind,
    /// Asks about every candidate that a window owns.
    pub(crate) examine: fn(&Window<'_, '_>, &mut Asker<'_, '_, '_>),
    /// How many candidates a trace has, and whether all of them were counted.
    pub(crate) count: fn(&Facts<'_>) -> (u128, bool),
}

/// Every kind that is looked for in windows, in the order of [`BugKind::ALL`]; lost updates have a pass of their own.
pub(crate) const ALL: [Kind; 4] = [
    Kind {
        kind: BugKind::Race,
        examine: race::examine,
        count: |facts| (race::count(facts, 0..facts.trace.len()), true),
    },
    Kind { kind: BugKind::Deadlock, examine: deadlock::examine, count: deadlock::count },
    Kind {
        kind: BugKind::Atomicity,
        examine: atomicity::examine,
        count: |facts| (atomicity::count(facts, 0..facts.trace.len()), true),
    },
    Kind {
        kind: BugKind::Nondeterminism,
        examine: nondeterminism::examine,
        count: |facts| (nondeterminism::count(facts), true),
    },
];

impl Form {
    /// What it is called and what it means.
    pub fn words(self) -> &'static Words {
        match self {
            Form::PossibleUseAfterFree => &race::USE_AFTER_FREE,
            Form::PossibleDoubleFree => &race::DOUBLE_FREE,
            Form::PossiblyDestroyedInUse => &race::DESTROYED_IN_USE,
            Form::Race => &race::WORDS,
            Form::Cycle => &deadlock::CYCLE,
            Form::LostWakeup => &deadlock::LOST_WAKEUP,
            Form::Stuck => &deadlock::STUCK,
            Form::LostUpdate => &lost_update::WORDS,
            Form::Atomicity => &atomicity::WORDS,
            Form::Nondeterminism => &nondeterminism::WORDS,
            Form::Property => &property::WORDS,
            Form::Failure(harm) => failure::words(harm),
        }
    }
}

/// The group of a goal: goals with the same key are instances of one finding.
pub(crate) fn key(facts: &Facts<'_>, goal: &Goal) -> Key {
    match *goal {
        Goal::Race { first, second } => race::key(facts.trace, first, second),
        Goal::Nondeterminism { read, challenger } => nondeterminism::read_key(facts, read, challenger),
        Goal::FinalValue { variable, challenger } => nondeterminism::final_key(facts, variable, challenger),
        Goal::Atomicity { first, remote, second } => atomicity::key(facts.trace, first, remote, second),
        Goal::Deadlock { ref waiting } => deadlock::cycle_key(facts.trace, waiting),
        Goal::LostWakeup { pairing } => deadlock::wakeup_key(facts.trace, pairing),
        Goal::Stuck { waiting } => Key::of_places(Form::Stuck, vec![Key::at(facts.trace, waiting)]),
        Goal::LostUpdate { first, remote, second, .. } => lost_update::key(facts.trace, first, remote, second),
    }
}

/// What is worth knowing about a goal, but for what happens-before says of races.
pub(crate) fn flags(facts: &Facts<'_>, goal: &Goal) -> Flags {
    match *goal {
        Goal::Nondeterminism { read, challenger } => nondeterminism::read_flags(facts, read, challenger),
        Goal::FinalValue { variable, challenger } => nondeterminism::final_flags(facts, variable, challenger),
        _ => Flags::default(),
    }
}

/// The events of a goal, in the order of the reports.
pub(crate) fn places(facts: &Facts<'_>, goal: &Goal) -> Vec<Place> {
    match *goal {
        Goal::Race { first, second } => race::places(facts.trace, first, second).into(),
        Goal::Nondeterminism { read, challenger } => nondeterminism::read_places(facts, read, challenger).into(),
        Goal::FinalValue { variable, challenger } => nondeterminism::final_places(facts, variable, challenger).into(),
        Goal::Atomicity { first, remote, second } => atomicity::places(facts.trace, first, remote, second).into(),
        Goal::Deadlock { ref waiting } => deadlock::wait_places(facts.trace, waiting),
        Goal::LostWakeup { pairing } => deadlock::wakeup_places(facts.trace, pairing).into(),
        Goal::Stuck { waiting } => deadlock::stuck_places(facts.trace, &[waiting]),
        Goal::LostUpdate { first, remote, second, .. } => atomicity::places(facts.trace, first, remote, second).into(),
    }
}

/// What a goal is once a schedule reaches it.
pub(crate) fn bug(facts: &Facts<'_>, model: Model, goal: &Goal, witness: &Schedule) -> Bug {
    let trace = facts.trace;
    match *goal {
        Goal::Race { first, second } => {
            let frees = race::frees(trace, first, second);
            let [first, second] = race::places(trace, first, second);
            Bug::Race { first, second, frees }
        }
        Goal::Nondeterminism { read, challenger } => {
            let shape = shape::shape(facts, model, goal, read, witness);
            let [read, writer, challenger] = nondeterminism::read_places(facts, read, challenger);
            Bug::Nondeterminism(Nondeterminism::Read { read, writer, challenger, shape })
        }
        Goal::FinalValue { variable, challenger } => {
            let [end, writer, challenger] = nondeterminism::final_places(facts, variable, challenger);
            Bug::Nondeterminism(Nondeterminism::FinalValue { variable, end, writer, challenger })
        }
        Goal::Atomicity { first, remote, second } => {
            let pattern = Pattern::of(trace, first, remote, second);
            let declared = facts.is_declared(first);
            let [first, remote, second] = atomicity::places(trace, first, remote, second);
            Bug::Atomicity { first, remote, second, pattern, declared }
        }
        Goal::Deadlock { ref waiting } => {
            Bug::Deadlock(Deadlock::Cycle { waits: deadlock::wait_places(trace, waiting) })
        }
        Goal::LostWakeup { pairing } => {
            let [waiting, notify] = deadlock::wakeup_places(trace, pairing);
            Bug::Deadlock(Deadlock::LostWakeup { waiting, notify, pairing })
        }
        Goal::Stuck { waiting } => {
            let waits = circle(facts, witness, waiting).waits;
            Bug::Deadlock(Deadlock::Stuck { waits: deadlock::stuck_places(trace, &waits) })
        }
        Goal::LostUpdate { first, read, remote, second } => {
            let read = Place::of_event(trace, Role::Read, read);
            let [first, remote, second] = atomicity::places(trace, first, remote, second);
            Bug::LostUpdate { first, remote, second, read }
        }
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
        /// Which of them frees the memory, if one does.
        frees: Option<Frees>,
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
        /// Whether the block was declared: marked in the source, or chosen by the user. Otherwise it is a function, of which
        /// nobody said that it is meant to be atomic.
        declared: bool,
    },
    /// A write that is overwritten by a thread that had not seen it.
    LostUpdate {
        /// What the overwriting thread read.
        first: Place,
        /// The write that is lost.
        remote: Place,
        /// The write that overwrites it.
        second: Place,
        /// What the thread of the lost write read before it; the same event if that is an atomic update. Not among the places.
        read: Place,
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
    /// What a run did that nobody wants.
    Failure(Box<Failure>),
}

/// The places of a bug, borrowed as the bug is.
macro_rules! places {
    ($bug:expr) => {
        match $bug {
            Bug::Race { first, second, .. } => vec![first, second],
            Bug::Deadlock(Deadlock::Cycle { waits } | Deadlock::Stuck { waits }) => waits.into_iter().collect(),
            Bug::Deadlock(Deadlock::LostWakeup { waiting, notify, .. }) => vec![waiting, notify],
            Bug::Atomicity { first, remote, second, .. } | Bug::LostUpdate { first, remote, second, .. } => {
                vec![first, remote, second]
            }
            Bug::Nondeterminism(
                Nondeterminism::Read { read, writer, challenger, .. }
                | Nondeterminism::FinalValue { end: read, writer, challenger, .. },
            ) => vec![read, writer, challenger],
            Bug::Property { at, .. } => vec![at],
            // Boxed, and so not borrowed as the others are.
            Bug::Failure(_) => Vec::new(),
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
            Bug::LostUpdate { .. } => BugKind::LostUpdate,
            Bug::Property { .. } => BugKind::Property,
            Bug::Failure(_) => BugKind::Failure,
        }
    }

    /// What it is called.
    pub fn form(&self) -> Form {
        match self {
            Bug::Race { frees: None, .. } => Form::Race,
            Bug::Race { frees: Some(Frees::Both), .. } => Form::PossibleDoubleFree,
            Bug::Race { frees: Some(Frees::Destroys), .. } => Form::PossiblyDestroyedInUse,
            Bug::Race { .. } => Form::PossibleUseAfterFree,
            Bug::Deadlock(Deadlock::Cycle { .. }) => Form::Cycle,
            Bug::Deadlock(Deadlock::LostWakeup { .. }) => Form::LostWakeup,
            Bug::Deadlock(Deadlock::Stuck { .. }) => Form::Stuck,
            Bug::Atomicity { .. } => Form::Atomicity,
            Bug::Nondeterminism(_) => Form::Nondeterminism,
            Bug::LostUpdate { .. } => Form::LostUpdate,
            Bug::Property { .. } => Form::Property,
            Bug::Failure(failed) => Form::Failure(failed.harm),
        }
    }

    /// Its events, in the order of the reports.
    pub fn places(&self) -> Vec<&Place> {
        match self {
            Bug::Failure(failed) => std::iter::once(&failed.at).chain(&failed.others).collect(),
            other => places!(other),
        }
    }

    /// The same, to change them.
    pub(crate) fn places_mut(&mut self) -> Vec<&mut Place> {
        match self {
            Bug::Failure(failed) => std::iter::once(&mut failed.at).chain(&mut failed.others).collect(),
            other => places!(other),
        }
    }

    /// The kernel events of its places, and of what else it is about, to number them anew.
    pub(crate) fn kernel_events_mut(&mut self) -> Vec<&mut EventId> {
        let places: Vec<&mut Place> = match self {
            Bug::LostUpdate { first, remote, second, read } => vec![first, remote, second, read],
            other => other.places_mut(),
        };
        places.into_iter().filter_map(|place| place.kernel.as_mut()).collect()
    }

    /// What a schedule must reach to show it; `None` if no goal says that.
    pub fn goal(&self) -> Option<Goal> {
        Some(match self {
            Bug::Race { first, second, .. } => Goal::Race { first: first.kernel?, second: second.kernel? },
            Bug::LostUpdate { first, remote, second, read } => Goal::LostUpdate {
                first: first.kernel?,
                read: read.kernel?,
                remote: remote.kernel?,
                second: second.kernel?,
            },
            Bug::Deadlock(Deadlock::Cycle { waits }) => {
                Goal::Deadlock { waiting: waits.iter().map(|wait| wait.kernel).collect::<Option<_>>()? }
            }
            Bug::Deadlock(Deadlock::LostWakeup { pairing, .. }) => Goal::LostWakeup { pairing: *pairing },
            Bug::Deadlock(Deadlock::Stuck { waits }) => Goal::Stuck { waiting: waits.first()?.kernel? },
            Bug::Atomicity { first, remote, second, .. } => {
                Goal::Atomicity { first: first.kernel?, remote: remote.kernel?, second: second.kernel? }
            }
            Bug::Nondeterminism(Nondeterminism::Read { read, challenger, .. }) => {
                Goal::Nondeterminism { read: read.kernel?, challenger: challenger.writer() }
            }
            Bug::Nondeterminism(Nondeterminism::FinalValue { variable, challenger, .. }) => {
                Goal::FinalValue { variable: *variable, challenger: challenger.kernel? }
            }
            Bug::Property { .. } | Bug::Failure(_) => return None,
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

    /// The failure, where it is one.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Bug::Failure(failed) => Some(failed),
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
