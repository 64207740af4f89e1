//! Races: pairs of accesses whose common past can be closed without either of them.
//!
//! Per shared variable, the accesses so far are kept by thread, kind and source location, in order. A later access of
//! another thread goes along each list that conflicts: what its closure swallows is passed for good, as far as its
//! thread is concerned; the first access that is not swallowed races. That pair of locations is then settled.

use super::history::{History, Ideal};
use super::past::{Access, Past, Survey};
use portent_order::Goal;
use portent_trace::{EventId, LocId, Op, ThreadId, Trace};
use rustc_hash::FxHashSet;

/// How many source locations of one variable, thread and kind of access have a list of their own.
pub(super) const PLACES: usize = 64;

/// An access that may still race with later ones: the latest of those that nothing separates.
#[derive(Clone, Copy)]
struct Entry {
    event: u32,
    /// The closure of its thread's past.
    clock: u32,
    /// How many acquires and releases its thread had made.
    moment: u32,
}

/// Accesses of one thread, kind and source location.
struct List {
    thread: ThreadId,
    /// Of any access in the list: whether it writes and whether it is atomic.
    op: Op,
    /// `None` for the list of all locations that have none of their own.
    loc: Option<LocId>,
    entries: Vec<Entry>,
    /// Per thread that came by: entries with lower numbers are passed.
    passed: Vec<(ThreadId, u32)>,
    /// The turn of the variable when an access of this list last looked for races.
    looked: u32,
}

impl List {
    fn conflicts_with(&self, thread: ThreadId, op: Op) -> bool {
        self.thread != thread && (self.op.writes() || op.writes()) && !(self.op.is_atomic() && op.is_atomic())
    }
    fn passed(&mut self, by: ThreadId) -> &mut u32 {
        let at = self.passed.iter().position(|(thread, _)| *thread == by).unwrap_or_else(|| {
            self.passed.push((by, 0));
            self.passed.len() - 1
        });
        &mut self.passed[at].1
    }
}

#[derive(Default)]
struct Variable {
    lists: Vec<List>,
    /// Who came last, and how often another thread came than before.
    last: Option<ThreadId>,
    turn: u32,
}

#[derive(Default)]
pub(super) struct Races {
    variables: Vec<Variable>,
    /// Pairs of locations that need no further look.
    settled: FxHashSet<(LocId, LocId)>,
    /// With the closed set that shows each.
    pub(super) found: Vec<(Goal, Box<[u32]>)>,
    pub(super) closures: u64,
    pub(super) complete: bool,
    scratch: Ideal,
}

impl Races {
    pub(super) fn new(survey: &Survey) -> Self {
        let variables = (0..survey.shared_count).map(|_| Variable::default()).collect();
        Races { variables, complete: true, ..Races::default() }
    }

    /// Looks for races of an access with earlier ones, and keeps it for later ones.
    pub(super) fn visit(
        &mut self,
        trace: &Trace,
        past: &mut Past<'_>,
        access: Access,
        known: &dyn Fn(&Goal) -> bool,
    ) {
        let Access { event, op, thread, variable } = access;
        let loc = trace.event(event).loc;
        let Self { variables, settled, found, closures, complete, scratch } = self;
        let state = &mut variables[variable];
        if state.last != Some(thread) {
            state.last = Some(thread);
            state.turn += 1;
        }
        let own = own_list(state, thread, op, loc, complete);
        // Nobody else came since an access of this list last looked.
        if state.lists[own].looked != state.turn {
            let look = Look { trace, past, event, op, thread, loc, known };
            if scratch.clock.is_empty() {
                *scratch = Ideal::new(past.history.threads());
            }
            for list in &mut state.lists {
                if list.conflicts_with(thread, op) {
                    look.along(list, settled, found, closures, scratch);
                }
            }
            // The list of many locations has to look each time.
            if state.lists[own].loc.is_some() {
                state.lists[own].looked = state.turn;
            }
        }
        let entry = Entry {
            event: event.index() as u32,
            clock: past.saved(thread),
            moment: past.history.moment(thread),
        };
        let list = &mut state.lists[own];
        match list.entries.last_mut() {
            // What races with the earlier of two accesses that nothing separates races with the later one too.
            Some(last) if list.loc.is_some() && (last.clock, last.moment) == (entry.clock, entry.moment) => {
                last.event = entry.event;
            }
            _ => list.entries.push(entry),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let lists = self.variables.iter().flat_map(|variable| &variable.lists);
        let held = lists.map(|list| {
            size_of::<List>()
                + list.entries.capacity() * size_of::<Entry>()
                + list.passed.capacity() * size_of::<(ThreadId, u32)>()
        });
        held.sum::<usize>() + self.variables.len() * size_of::<Variable>()
    }
}

/// The list that an access belongs to.
fn own_list(state: &mut Variable, thread: ThreadId, op: Op, loc: LocId, complete: &mut bool) -> usize {
    let alike = |list: &List| {
        list.thread == thread && (list.op.writes(), list.op.is_atomic()) == (op.writes(), op.is_atomic())
    };
    if let Some(found) = state.lists.iter().position(|list| alike(list) && list.loc == Some(loc)) {
        return found;
    }
    let crowded = state.lists.iter().filter(|list| alike(list)).count() >= PLACES;
    if crowded {
        *complete = false;
        if let Some(found) = state.lists.iter().position(|list| alike(list) && list.loc.is_none()) {
            return found;
        }
    }
    let loc = (!crowded).then_some(loc);
    state.lists.push(List { thread, op, loc, entries: Vec::new(), passed: Vec::new(), looked: 0 });
    state.lists.len() - 1
}

/// An access that looks for races.
struct Look<'a, 's> {
    trace: &'a Trace,
    past: &'a Past<'s>,
    event: EventId,
    op: Op,
    thread: ThreadId,
    loc: LocId,
    known: &'a dyn Fn(&Goal) -> bool,
}

impl Look<'_, '_> {
    fn along(
        &self,
        list: &mut List,
        settled: &mut FxHashSet<(LocId, LocId)>,
        found: &mut Vec<(Goal, Box<[u32]>)>,
        closures: &mut u64,
        scratch: &mut Ideal,
    ) {
        let other = list.thread;
        let mut passed = *list.passed(self.thread);
        if list.entries.last().is_none_or(|last| last.event < passed) {
            return;
        }
        let pair = |loc: LocId| (loc.min(self.loc), loc.max(self.loc));
        if list.loc.is_some_and(|loc| settled.contains(&pair(loc))) {
            return;
        }
        let history: &History = &self.past.history;
        let held = history.held(self.thread);
        let past = self.past.ideal(self.thread);
        passed = passed.max(past.clock[other.index()]);
        let mut at = list.entries.partition_point(|entry| entry.event < passed);
        while let Some(&Entry { event, clock, moment }) = list.entries.get(at) {
            if !history.exclude_each_other(history.held_at(other, moment), held) {
                scratch.copy(past);
                scratch.raise(self.thread, self.event.index() as u32);
                history.join(scratch, clock, other, event);
                *closures += 1;
                if history.close(scratch, |clock| clock[other.index()] > event) && scratch.clock[other.index()] <= event
                {
                    let first = EventId::new(event as usize);
                    if settled.insert(pair(self.trace.event(first).loc)) {
                        let goal = Goal::Race { first, second: self.event };
                        debug_assert!(self.trace.op(first).conflicts_with(self.op));
                        if !(self.known)(&goal) {
                            found.push((goal, scratch.clock.as_slice().into()));
                        }
                    }
                    break;
                }
            }
            passed = event + 1;
            at += 1;
        }
        *list.passed(self.thread) = passed;
    }
}
