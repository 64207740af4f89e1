//! Nondeterminism: reads, and final values, that could come from another write (Sinha et al.).
//!
//! Every read is asked about every other write of its variable in the window, and about the initial value where the
//! window still starts with it. The paper's witness and choice graphs are the engine's business; its witness types are
//! derived from the witness. Instances are counted exactly.

use crate::ask::{Asker, Gathered};
use crate::bug::{Bug, BugKind, Nondeterminism, Place, Role, WitnessType};
use crate::facts::Facts;
use crate::finding::Flags;
use crate::pane::Pane;
use portent_order::{Goal, Model, Schedule, Writer};
use portent_trace::{EventId, LockId, Mode, Op, PairingId, ThreadId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Asks about every read, in one sweep of the engine, and about every final value that the window owns.
pub(crate) fn examine(pane: &Pane<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let (facts, trace, stop) = (pane.facts, pane.facts.trace, asker.stop);
    let mut found = Gathered::default();
    let mut undecided = Vec::new();
    let answered = asker.engine.answer_reads(
        EventId::new(pane.fresh),
        asker.effort,
        &|| stop.why().is_some(),
        &mut |read, challenger, feasible| {
            let goal = Goal::Nondeterminism { read, challenger };
            let asked = match challenger {
                // What a variable holds when the window starts stands for all that came before; only INIT is known to be it.
                Writer::Event(c) => c.index() >= pane.span.start,
                Writer::Init => trace.op(read).variable().is_some_and(|x| asks_about_initial(pane, read, x)),
            };
            match (asked, feasible) {
                (false, _) => {}
                (true, Some(true)) => {
                    let flags = flags(facts, &goal);
                    found.add(facts, goal, flags);
                }
                (true, _) => undecided.push(goal),
            }
        },
    );
    if answered.unanswered == 0 {
        let owned = count_pairs(pane, pane.span.clone()) - count_pairs(pane, pane.stale()) + count_initial(pane);
        asker.outcome.done[BugKind::Nondeterminism as usize] += u64::try_from(owned).unwrap_or(u64::MAX);
    }
    if pane.is_last() {
        let finished =
            asker.engine.answer_finals(asker.effort, &|| stop.why().is_some(), &mut |challenger, feasible| {
                let Some(variable) = trace.op(challenger).variable() else { return };
                let goal = Goal::FinalValue { variable, challenger };
                if feasible == Some(true) {
                    let flags = flags(facts, &goal);
                    found.add(facts, goal, flags);
                } else {
                    undecided.push(goal);
                }
            });
        if finished {
            let finals = count_single(pane) - count_initial(pane);
            asker.outcome.done[BugKind::Nondeterminism as usize] += u64::try_from(finals).unwrap_or(u64::MAX);
        }
    }
    undecided.iter().for_each(|goal| asker.undecided(goal));
    asker.keep(found);
}

/// Whether the window asks if a read could see the initial value: it must own the read and still start with that value.
fn asks_about_initial(pane: &Pane<'_, '_>, read: EventId, x: VarId) -> bool {
    pane.owns(read) && pane.facts.saw(read) != Writer::Init && pane.facts.is_initial(x, pane.span.start)
}

/// What is worth knowing about a changed value; nothing for other goals.
pub(crate) fn flags(facts: &Facts<'_>, goal: &Goal) -> Flags {
    let trace = facts.trace;
    let value = |w: Writer| match w {
        Writer::Init => None,
        Writer::Event(e) => trace.value(e),
    };
    let (seen, other, under_lock) = match *goal {
        Goal::Nondeterminism { read, challenger } => {
            let together = matches!(challenger, Writer::Event(c) if facts.share_a_lock(read, c));
            // An update's own value is what it wrote, so what it saw is its writer's.
            let seen = value(facts.saw(read)).or_else(|| trace.value(read).filter(|_| !trace.op(read).writes()));
            (seen, value(challenger), together)
        }
        Goal::FinalValue { variable, challenger } => {
            let last = facts.last_write(variable);
            let together = last.is_some_and(|last| facts.share_a_lock(last, challenger));
            (last.and_then(|e| trace.value(e)), trace.value(challenger), together)
        }
        _ => (None, None, false),
    };
    Flags { same_value: seen.is_some() && seen == other, under_lock, ..Flags::default() }
}

fn writer_place(facts: &Facts<'_>, role: Role, writer: Writer, variable: &str) -> Place {
    match writer {
        Writer::Init => Place::of_value(role, "initial", variable.to_owned()),
        Writer::Event(event) => Place::of_event(facts.trace, role, event),
    }
}

/// A read, the write that it saw, and the one that it could see.
pub(crate) fn read_places(facts: &Facts<'_>, read: EventId, challenger: Writer) -> [Place; 3] {
    let saw = facts.saw(read);
    let read = Place::of_event(facts.trace, Role::Read, read);
    let writer = writer_place(facts, Role::Writer, saw, &read.object);
    let challenger = writer_place(facts, Role::Challenger, challenger, &read.object);
    [read, writer, challenger]
}

/// A read that could see another write.
pub(crate) fn changed_read(facts: &Facts<'_>, read: EventId, challenger: Writer, shape: WitnessType) -> Bug {
    let [read, writer, challenger] = read_places(facts, read, challenger);
    Bug::Nondeterminism(Nondeterminism::Read { read, writer, challenger, shape })
}

/// The end of a variable, the write that was last, and the one that could be.
pub(crate) fn final_places(facts: &Facts<'_>, variable: VarId, challenger: EventId) -> [Place; 3] {
    let last = facts.last_write(variable).map_or(Writer::Init, Writer::Event);
    let end = Place::of_value(Role::Read, "final", facts.trace.variable_name(variable).into_owned());
    let writer = writer_place(facts, Role::Writer, last, &end.object);
    [end, writer, Place::of_event(facts.trace, Role::Challenger, challenger)]
}

/// A final value that could be another.
pub(crate) fn changed_end(facts: &Facts<'_>, variable: VarId, challenger: EventId) -> Bug {
    let [end, writer, challenger] = final_places(facts, variable, challenger);
    Bug::Nondeterminism(Nondeterminism::FinalValue { variable, end, writer, challenger })
}

/// How many questions about two events lie within a range of events.
pub(crate) fn count_pairs(pane: &Pane<'_, '_>, range: Range<usize>) -> u128 {
    let (facts, trace) = (pane.facts, pane.facts.trace);
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
fn count_initial(pane: &Pane<'_, '_>) -> u128 {
    let trace = pane.facts.trace;
    let asks = |&event: &EventId| {
        let op = trace.op(event);
        op.reads() && op.variable().is_some_and(|x| asks_about_initial(pane, event, x))
    };
    pane.events().filter(asks).count() as u128
}

/// How many questions about one event a window owns: initial and final values.
pub(crate) fn count_single(pane: &Pane<'_, '_>) -> u128 {
    let trace = pane.facts.trace;
    let ends = |&event: &EventId| {
        let op = trace.op(event);
        op.writes() && op.variable().is_some_and(|x| pane.facts.last_write(x) != Some(event))
    };
    let finals = if pane.is_last() { pane.events().filter(ends).count() as u128 } else { 0 };
    count_initial(pane) + finals
}

/// The shape of a witness: where the write that the read saw in the trace comes in it.
pub(crate) fn shape(facts: &Facts<'_>, model: Model, read: EventId, witness: &Schedule) -> WitnessType {
    let Writer::Event(seen) = facts.saw(read) else { return WitnessType::Overwritten };
    let trace = facts.trace;
    let mut going_on = GoingOn::new(facts, model);
    for thread in witness.steps() {
        going_on.step(thread);
    }
    if going_on.is_done(seen) {
        return WitnessType::Overwritten;
    }
    // All that `seen` needs comes before it in the trace, and the reading thread goes no further.
    let mut blocked = vec![false; trace.threads()];
    blocked[trace.thread(read).index()] = true;
    for event in (0..=seen.index()).map(EventId::new) {
        let thread = trace.thread(event);
        if !blocked[thread.index()] && !going_on.is_done(event) {
            match going_on.enabled(event) {
                true => going_on.step(thread),
                false => blocked[thread.index()] = true,
            }
        }
    }
    if going_on.is_done(seen) { WitnessType::ReadBeforeWrite } else { WitnessType::WithoutWrite }
}

/// A run after its witness, continued in observed order as far as that goes.
struct GoingOn<'a, 't> {
    facts: &'a Facts<'t>,
    model: Model,
    position: Vec<usize>,
    done: Vec<bool>,
    holders: FxHashMap<LockId, Vec<(ThreadId, Mode)>>,
    memory: FxHashMap<VarId, EventId>,
    notified: FxHashSet<PairingId>,
}

impl<'a, 't> GoingOn<'a, 't> {
    fn new(facts: &'a Facts<'t>, model: Model) -> Self {
        GoingOn {
            facts,
            model,
            position: vec![0; facts.trace.threads()],
            done: vec![false; facts.trace.len()],
            holders: FxHashMap::default(),
            memory: FxHashMap::default(),
            notified: FxHashSet::default(),
        }
    }

    fn is_done(&self, event: EventId) -> bool {
        self.done[event.index()]
    }

    fn step(&mut self, thread: ThreadId) {
        let trace = self.facts.trace;
        let position = &mut self.position[thread.index()];
        let Some(&event) = self.facts.steps.program(thread).get(*position) else { return };
        *position += 1;
        self.done[event.index()] = true;
        match trace.op(event) {
            Op::Acquire(lock, mode) => self.holders.entry(lock).or_default().push((thread, mode)),
            Op::Release(lock, mode) => {
                if let Some(holders) = self.holders.get_mut(&lock) {
                    holders.retain(|h| *h != (thread, mode));
                }
            }
            Op::Write(x, _) | Op::Update(x, _) => drop(self.memory.insert(x, event)),
            Op::Notify(..) => {
                for &k in trace.woken_by(event) {
                    if self.done[trace.pairings()[k.index()].sleep.index()] {
                        self.notified.insert(k);
                    }
                }
            }
            _ => {}
        }
    }

    fn enabled(&self, event: EventId) -> bool {
        let trace = self.facts.trace;
        let thread = trace.thread(event);
        let held_by_other = |lock, mode: Mode| {
            let mut holders = self.holders.get(&lock).into_iter().flatten();
            holders.any(|(t, m)| *t != thread && m.conflicts_with(mode))
        };
        match trace.op(event) {
            Op::Acquire(lock, mode) => !held_by_other(lock, mode),
            Op::Busy(lock, mode) => held_by_other(lock, mode),
            Op::Receive(token) => trace.senders(token).iter().all(|&send| self.is_done(send)),
            Op::Wake(_) => trace.pairing_of_wake(event).is_none_or(|k| self.notified.contains(&k)),
            // Stricter than `values` needs: what is shown to go on does.
            Op::Read(x, _) | Op::Update(x, _) if self.model != Model::Sync => {
                self.memory.get(&x).map_or(Writer::Init, |&w| Writer::Event(w)) == self.facts.saw(event)
            }
            _ => true,
        }
    }
}
