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
    /// Of any access in the list: whether it writes and whether it is atomic.
    op: Op,
    /// `None` for the list of all locations that have none of their own.
    loc: Option<LocId>,
    entries: Vec<Entry>,
    /// Per group of the variable: entries with lower numbers are passed by its thread.
    passed: Vec<u32>,
    /// The turn of the variable when an access of this list last looked for races, and that access.
    looked: (u32, u32),
}

impl List {
    fn conflicts_with(&self, op: Op) -> bool {
        (self.op.writes() || op.writes()) && !(self.op.is_atomic() && op.is_atomic())
    }
    fn newest(&self) -> u32 {
        self.entries.last().map_or(0, |entry| entry.event)
    }
}

/// What is kept of one variable.
#[derive(Default)]
struct Variable {
    /// The threads that came by, the last access of each, and their lists.
    threads: Vec<ThreadId>,
    newest: Vec<u32>,
    lists: Vec<Vec<List>>,
    /// Who came last, and how often another thread came than before.
    last: Option<ThreadId>,
    turn: u32,
}

impl Variable {
    /// The place of a thread and, among its lists, of the one that an access belongs to.
    fn own_list(&mut self, thread: ThreadId, op: Op, loc: LocId, complete: &mut bool) -> (usize, usize) {
        let group = self.threads.iter().position(|&t| t == thread).unwrap_or_else(|| {
            self.threads.push(thread);
            self.newest.push(0);
            self.lists.push(Vec::new());
            self.threads.len() - 1
        });
        let lists = &mut self.lists[group];
        let alike = |list: &List| (list.op.writes(), list.op.is_atomic()) == (op.writes(), op.is_atomic());
        if let Some(found) = lists.iter().position(|list| list.loc == Some(loc) && alike(list)) {
            return (group, found);
        }
        let crowded = lists.iter().filter(|list| alike(list)).count() >= PLACES;
        if crowded {
            *complete = false;
            if let Some(found) = lists.iter().position(|list| alike(list) && list.loc.is_none()) {
                return (group, found);
            }
        }
        let loc = (!crowded).then_some(loc);
        lists.push(List { op, loc, entries: Vec::new(), passed: Vec::new(), looked: (0, 0) });
        (group, lists.len() - 1)
    }
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

    /// Looks for races of an access with earlier ones and keeps it for later ones.
    pub(super) fn visit(&mut self, trace: &Trace, past: &mut Past<'_>, access: Access, known: &dyn Fn(&Goal) -> bool) {
        let Access { event, op, thread, variable } = access;
        let loc = trace.event(event).loc;
        let Self { variables, settled, found, closures, complete, scratch } = self;
        let state = &mut variables[variable];
        if state.last != Some(thread) {
            state.last = Some(thread);
            state.turn += 1;
        }
        let (group, own) = state.own_list(thread, op, loc, complete);
        let id = event.index() as u32;
        let (turn, looked) = state.lists[group][own].looked;
        // Otherwise nobody else came since an access of this list last looked.
        if turn != state.turn {
            let look = Look { trace, past, event, thread, group, loc, known };
            if scratch.clock.is_empty() {
                *scratch = Ideal::new(past.history.threads());
            }
            for other in 0..state.threads.len() {
                // What was there at the last look is passed or settled.
                if other == group || state.newest[other] < looked {
                    continue;
                }
                for list in &mut state.lists[other] {
                    if list.newest() >= looked && list.conflicts_with(op) {
                        look.along(list, state.threads[other], settled, found, closures, scratch);
                    }
                }
            }
        }
        let entry = Entry { event: id, clock: past.saved(thread), moment: past.history.moment(thread) };
        state.newest[group] = id;
        let list = &mut state.lists[group][own];
        // The list of many locations has to look each time.
        if list.loc.is_some() {
            list.looked = (state.turn, id);
        }
        match list.entries.last_mut() {
            // What races with the earlier of two accesses that nothing separates races with the later one too.
            Some(last) if list.loc.is_some() && (last.clock, last.moment) == (entry.clock, entry.moment) => {
                last.event = entry.event;
            }
            _ => list.entries.push(entry),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let lists = self.variables.iter().flat_map(|variable| variable.lists.iter().flatten());
        let held = lists
            .map(|list| size_of::<List>() + list.entries.capacity() * size_of::<Entry>() + list.passed.capacity() * 4);
        let groups = self.variables.iter().map(|variable| variable.threads.len() * (8 + size_of::<Vec<List>>()));
        held.sum::<usize>() + groups.sum::<usize>() + self.variables.len() * size_of::<Variable>()
    }
}

/// An access that looks for races.
struct Look<'a, 's> {
    trace: &'a Trace,
    past: &'a Past<'s>,
    event: EventId,
    thread: ThreadId,
    /// The place of its thread among those of the variable.
    group: usize,
    loc: LocId,
    known: &'a dyn Fn(&Goal) -> bool,
}

impl Look<'_, '_> {
    fn along(
        &self,
        list: &mut List,
        other: ThreadId,
        settled: &mut FxHashSet<(LocId, LocId)>,
        found: &mut Vec<(Goal, Box<[u32]>)>,
        closures: &mut u64,
        scratch: &mut Ideal,
    ) {
        if list.passed.len() <= self.group {
            list.passed.resize(self.group + 1, 0);
        }
        let mut passed = list.passed[self.group];
        if list.newest() < passed {
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
        list.passed[self.group] = passed;
    }
}
