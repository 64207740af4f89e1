//! Nondeterminism: reads, and final values, that could come from another write (Sinha et al.).
//!
//! Every read is asked about every other write of its variable in the window, and about the initial value where the
//! window still starts with it. The paper's witness and choice graphs are the engine's business; its witness types are
//! derived from the witness. Instances are counted exactly.

use crate::ask::{Asker, Group};
use crate::facts::Facts;
use crate::finding::{BugKind, Flags, WitnessType};
use crate::key::Key;
use crate::pane::Pane;
use portent_order::{Goal, Model, Schedule, Verdict, Writer};
use portent_trace::{EventId, LockId, Mode, Op, PairingId, ThreadId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Asks about every read and every final value that the window owns.
pub(crate) fn examine(pane: &Pane<'_, '_>, asker: &mut Asker<'_, '_, '_>) {
    let facts = pane.facts;
    let mut groups: FxHashMap<Key, Group> = FxHashMap::default();
    answer_reads(pane, asker, &mut |goal, feasible| {
        if feasible {
            let flags = flags(facts, &goal);
            let later = Group::new(goal, flags, None);
            match groups.entry(Key::of(facts, &later.goal)) {
                std::collections::hash_map::Entry::Occupied(mut group) => {
                    if later.goal < group.get().goal {
                        group.get_mut().goal = later.goal.clone();
                    }
                    group.get_mut().absorb(later);
                }
                std::collections::hash_map::Entry::Vacant(slot) => drop(slot.insert(later)),
            }
        }
    });
    // A witness for each group: that of its first instance. Asked for even where an earlier window has one: what a search
    // learns from one question shapes the next witness, and results must not depend on which window is done first.
    let mut groups: Vec<(Key, Group)> = groups.into_iter().collect();
    groups.sort_by(|a, b| a.1.goal.cmp(&b.1.goal));
    for (key, mut group) in groups {
        match asker.engine.decide(&group.goal, asker.effort) {
            Verdict::Feasible(witness) => {
                if asker.known.claim(&key, asker.window) {
                    if !asker.passes(&group.goal, &witness) {
                        continue;
                    }
                    group.witness = Some(witness);
                }
            }
            Verdict::Infeasible => {
                asker.outcome.rejected.push(format!("{:?} is feasible and then it is not", group.goal));
                continue;
            }
            Verdict::Unknown(_) => {
                asker.undecided(&group.goal);
                continue;
            }
        }
        asker.outcome.groups.insert(key, group);
    }
}

/// Answers every question of the window, without witnesses: the one function to replace by a faster one.
fn answer_reads(pane: &Pane<'_, '_>, asker: &mut Asker<'_, '_, '_>, answer: &mut dyn FnMut(Goal, bool)) {
    for_each_question(pane, &mut |goal| {
        if asker.stopped().is_some() {
            return false;
        }
        asker.dismiss(BugKind::Nondeterminism);
        match asker.engine.decide(&goal, asker.effort) {
            Verdict::Feasible(_) => answer(goal, true),
            Verdict::Infeasible => answer(goal, false),
            Verdict::Unknown(_) => asker.undecided(&goal),
        }
        true
    });
}

/// The questions that the window owns, until `ask` says stop.
fn for_each_question(pane: &Pane<'_, '_>, ask: &mut dyn FnMut(Goal) -> bool) {
    let (facts, trace) = (pane.facts, pane.facts.trace);
    let accesses = pane.accesses();
    for read in pane.events().filter(|&e| trace.op(e).reads()) {
        let Some(x) = trace.op(read).variable() else { continue };
        let saw = facts.saw(read);
        if asks_about_initial(pane, read, x) && !ask(Goal::Nondeterminism { read, challenger: Writer::Init }) {
            return;
        }
        for &c in &accesses[&x] {
            let challenger = Writer::Event(c);
            if c == read || !trace.op(c).writes() || saw == challenger || !pane.owns(c.max(read)) {
                continue;
            }
            if !ask(Goal::Nondeterminism { read, challenger }) {
                return;
            }
        }
    }
    if pane.is_last() {
        let mut variables: Vec<VarId> = accesses.keys().copied().collect();
        variables.sort_unstable();
        for variable in variables {
            let last = facts.last_write(variable);
            for &challenger in accesses[&variable].iter().filter(|&&e| trace.op(e).writes() && Some(e) != last) {
                if !ask(Goal::FinalValue { variable, challenger }) {
                    return;
                }
            }
        }
    }
}

/// Whether the window asks if a read could see the initial value: it must own the read and still start with that value.
fn asks_about_initial(pane: &Pane<'_, '_>, read: EventId, x: VarId) -> bool {
    pane.owns(read) && pane.facts.saw(read) != Writer::Init && pane.facts.is_initial(x, pane.span.start)
}

fn flags(facts: &Facts<'_>, goal: &Goal) -> Flags {
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

/// How many questions about one event a window owns: initial and final values.
pub(crate) fn count_single(pane: &Pane<'_, '_>) -> u128 {
    let trace = pane.facts.trace;
    let mut count = 0;
    for event in pane.events() {
        let op = trace.op(event);
        let Some(x) = op.variable() else { continue };
        count += u128::from(op.reads() && asks_about_initial(pane, event, x));
        count += u128::from(pane.is_last() && op.writes() && pane.facts.last_write(x) != Some(event));
    }
    count
}

/// How many questions about one event the trace poses.
pub(crate) fn count_single_everywhere(facts: &Facts<'_>) -> u128 {
    let trace = facts.trace;
    let mut count = 0;
    for event in trace.events() {
        let Some(x) = event.op.variable() else { continue };
        count += u128::from(event.op.reads() && facts.saw(event.id) != Writer::Init);
        count += u128::from(event.op.writes() && facts.last_write(x) != Some(event.id));
    }
    count
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
            Op::Read(x, _) | Op::Update(x, _) if self.model == Model::Reads => {
                self.memory.get(&x).map_or(Writer::Init, |&w| Writer::Event(w)) == self.facts.saw(event)
            }
            _ => true,
        }
    }
}
