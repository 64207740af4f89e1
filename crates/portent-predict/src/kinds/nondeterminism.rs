//! Nondeterminism: reads, and final values, that could come from another write (Sinha et al.).
//!
//! Every read is asked about every other write of its variable in the window, and about the initial value where the
//! window still starts with it. The paper's witness and choice graphs are the engine's business; its witness types are
//! derived from the witness. Instances are counted exactly.

use super::shape::WitnessType;
use crate::asking::{Asker, Flags, Gathered, Key, Window};
use crate::bug::{BugKind, Form, Place, Role, Severity, Words};
use crate::facts::Facts;
use portent_order::{Goal, Writer};
use portent_trace::{EventId, Trace, VarId};
use rustc_hash::FxHashMap;
use std::ops::Range;

pub(super) const WORDS: Words = Words {
    title: "nondeterminism",
    rule: "nondeterminism",
    identifier: "Nondeterminism",
    meaning: "A read, or the final value of a variable, depends on which thread comes first.",
    severity: Severity::Note,
};

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

/// Keys of final values begin here: beyond every source location.
const FINAL: u64 = 1 << 40;

fn key_of(trace: &Trace, writer: Writer) -> u64 {
    match writer {
        Writer::Init => Key::NOTHING,
        Writer::Event(event) => Key::at(trace, event),
    }
}

/// The source locations of a read, of what it saw and of what it could see.
pub(super) fn read_key(facts: &Facts<'_>, read: EventId, challenger: Writer) -> Key {
    let trace = facts.trace;
    let head = [Key::at(trace, read), key_of(trace, facts.saw(read)), key_of(trace, challenger)];
    Key::new(Form::Nondeterminism, head)
}

/// A variable, and the source locations of its last write and of what could be that.
pub(super) fn final_key(facts: &Facts<'_>, variable: VarId, challenger: EventId) -> Key {
    let last = facts.last_write(variable).map_or(Key::NOTHING, |event| Key::at(facts.trace, event));
    Key::new(Form::Nondeterminism, [FINAL + variable.index() as u64, last, Key::at(facts.trace, challenger)])
}

/// Asks about every read, in one sweep of the engine, and about every final value that the window owns.
pub(super) fn examine(window: &Window<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let (facts, trace, stop) = (window.facts, window.facts.trace, asker.stop);
    let mut found = Gathered::default();
    let mut undecided = Vec::new();
    let answered = asker.engine.answer_reads(
        EventId::new(window.fresh),
        asker.effort,
        &|| stop.why().is_some(),
        &mut |read, challenger, feasible| {
            let goal = Goal::Nondeterminism { read, challenger };
            let asked = match challenger {
                // What a variable holds when the window starts stands for all that came before; only INIT is known to be it.
                Writer::Event(c) => c.index() >= window.span.start,
                Writer::Init => trace.op(read).variable().is_some_and(|x| asks_about_initial(window, read, x)),
            };
            match (asked, feasible) {
                (false, _) => {}
                (true, Some(true)) => {
                    found.add(read_key(facts, read, challenger), goal, read_flags(facts, read, challenger));
                }
                (true, _) => undecided.push(goal),
            }
        },
    );
    if answered.unanswered == 0 {
        let owned =
            count_pairs(facts, window.span.clone()) - count_pairs(facts, window.stale()) + count_initial(window);
        asker.answers.done[BugKind::Nondeterminism as usize] += u64::try_from(owned).unwrap_or(u64::MAX);
    }
    if window.is_last() {
        let finished =
            asker.engine.answer_finals(asker.effort, &|| stop.why().is_some(), &mut |challenger, feasible| {
                let Some(variable) = trace.op(challenger).variable() else { return };
                let goal = Goal::FinalValue { variable, challenger };
                if feasible == Some(true) {
                    let flags = final_flags(facts, variable, challenger);
                    found.add(final_key(facts, variable, challenger), goal, flags);
                } else {
                    undecided.push(goal);
                }
            });
        if finished {
            let finals = count_single(window) - count_initial(window);
            asker.answers.done[BugKind::Nondeterminism as usize] += u64::try_from(finals).unwrap_or(u64::MAX);
        }
    }
    undecided.into_iter().for_each(|goal| asker.undecided(goal));
    asker.keep(found);
}

/// Whether the window asks if a read could see the initial value: it must own the read and still start with that value.
fn asks_about_initial(window: &Window<'_, '_>, read: EventId, x: VarId) -> bool {
    window.owns(read) && window.facts.saw(read) != Writer::Init && window.facts.is_initial(x, window.span.start)
}

/// What is worth knowing about a read that changes.
pub(super) fn read_flags(facts: &Facts<'_>, read: EventId, challenger: Writer) -> Flags {
    let trace = facts.trace;
    let value = |writer: Writer| match writer {
        Writer::Init => None,
        Writer::Event(event) => trace.value(event),
    };
    let under_lock = matches!(challenger, Writer::Event(c) if facts.share_a_lock(read, c));
    // An update's own value is what it wrote, so what it saw is its writer's.
    let seen = value(facts.saw(read)).or_else(|| trace.value(read).filter(|_| !trace.op(read).writes()));
    Flags { same_value: seen.is_some() && seen == value(challenger), under_lock, ..Flags::default() }
}

/// What is worth knowing about a final value that changes.
pub(super) fn final_flags(facts: &Facts<'_>, variable: VarId, challenger: EventId) -> Flags {
    let last = facts.last_write(variable);
    let under_lock = last.is_some_and(|last| facts.share_a_lock(last, challenger));
    let seen = last.and_then(|event| facts.trace.value(event));
    Flags { same_value: seen.is_some() && seen == facts.trace.value(challenger), under_lock, ..Flags::default() }
}

fn writer_place(facts: &Facts<'_>, role: Role, writer: Writer, variable: &str) -> Place {
    match writer {
        Writer::Init => Place::of_value(role, "initial", variable.to_owned()),
        Writer::Event(event) => Place::of_event(facts.trace, role, event),
    }
}

/// A read, the write that it saw, and the one that it could see.
pub(super) fn read_places(facts: &Facts<'_>, read: EventId, challenger: Writer) -> [Place; 3] {
    let saw = facts.saw(read);
    let read = Place::of_event(facts.trace, Role::Read, read);
    let writer = writer_place(facts, Role::Writer, saw, &read.object);
    let challenger = writer_place(facts, Role::Challenger, challenger, &read.object);
    [read, writer, challenger]
}

/// The end of a variable, the write that was last, and the one that could be.
pub(super) fn final_places(facts: &Facts<'_>, variable: VarId, challenger: EventId) -> [Place; 3] {
    let last = facts.last_write(variable).map_or(Writer::Init, Writer::Event);
    let end = Place::of_value(Role::Read, "final", facts.trace.variable_name(variable).into_owned());
    let writer = writer_place(facts, Role::Writer, last, &end.object);
    [end, writer, Place::of_event(facts.trace, Role::Challenger, challenger)]
}

/// How many questions about two events lie within a range of events.
fn count_pairs(facts: &Facts<'_>, range: Range<usize>) -> u128 {
    let trace = facts.trace;
    let mut writes: FxHashMap<VarId, u64> = FxHashMap::default();
    for event in range.clone().map(EventId::new).filter(|&e| trace.op(e).writes()) {
        if let Some(x) = trace.op(event).variable() {
            *writes.entry(x).or_default() += 1;
        }
    }
    let mut pairs = 0u128;
    for read in range.clone().map(EventId::new).filter(|&e| trace.op(e).reads()) {
        let Some(x) = trace.op(read).variable() else { continue };
        let itself = u64::from(trace.op(read).writes());
        let seen = u64::from(matches!(facts.saw(read), Writer::Event(w) if w.index() >= range.start));
        pairs += u128::from(writes.get(&x).copied().unwrap_or(0) - itself - seen);
    }
    pairs
}

/// How many questions about initial values a window owns.
fn count_initial(window: &Window<'_, '_>) -> u128 {
    let trace = window.facts.trace;
    let asks = |&event: &EventId| {
        let op = trace.op(event);
        op.reads() && op.variable().is_some_and(|x| asks_about_initial(window, event, x))
    };
    window.events().filter(asks).count() as u128
}

/// How many questions about one event a window owns: initial and final values.
fn count_single(window: &Window<'_, '_>) -> u128 {
    let trace = window.facts.trace;
    let ends = |&event: &EventId| {
        let op = trace.op(event);
        op.writes() && op.variable().is_some_and(|x| window.facts.last_write(x) != Some(event))
    };
    let finals = if window.is_last() { window.events().filter(ends).count() as u128 } else { 0 };
    count_initial(window) + finals
}

/// How many questions a trace has.
pub(super) fn count(facts: &Facts<'_>) -> u128 {
    count_pairs(facts, 0..facts.trace.len()) + count_single(&Window::whole(facts))
}
