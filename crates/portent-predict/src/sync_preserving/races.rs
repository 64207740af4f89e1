//! Races: pairs of accesses whose common past can be closed without either of them.
//!
//! Per shared variable, the accesses so far are kept by thread, kind and source location, in order. A later access of
//! another thread goes along each list that conflicts: what its closure swallows is passed for good, as far as its
//! thread is concerned; the first access that is not swallowed races. That pair of locations is then settled.
//!
//! Most looks find nothing new, so what they need lies in arrays of their own: the last access of each list (`Head`), how
//! far each thread has passed it, and, per list, which others it is settled with.

use super::history::Ideal;
use super::past::{Access, Past, Survey};
use portent_order::Goal;
use portent_trace::{EventId, LocId, Op, ThreadId, Trace};
use rustc_hash::FxHashSet;

/// How many source locations of one variable, thread and kind of access have a list of their own.
pub(super) const PLACES: usize = 64;

/// How many races are reported at most: more are of a trace without source locations.
const MOST: usize = 20_000;

/// An access that may still race with later ones: the latest of those that nothing separates.
#[derive(Clone, Copy)]
struct Entry {
    event: u32,
    /// The closure of its thread's past.
    clock: u32,
    /// How many acquires and releases its thread had made.
    moment: u32,
}

/// What accesses have in common that share a list.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    thread: ThreadId,
    writes: bool,
    atomic: bool,
}

impl Kind {
    fn of(thread: ThreadId, op: Op) -> Self {
        Kind { thread, writes: op.writes(), atomic: op.is_atomic() }
    }
    #[inline]
    fn may_race_with(self, other: Kind) -> bool {
        self.thread != other.thread && (self.writes | other.writes) && !(self.atomic & other.atomic)
    }
}

/// Accesses of one thread, kind and source location: what every look looks at.
#[derive(Clone, Copy)]
struct Head {
    newest: u32,
    kind: Kind,
    /// `None` for the list of all locations that have none of their own.
    loc: Option<LocId>,
}

/// The rest of a list.
#[derive(Default)]
struct Body {
    entries: Vec<Entry>,
    /// The turn of the variable when an access of this list last looked for races, and that access.
    looked: (u32, u32),
    /// Lists whose location is settled with this one's, as bits.
    settled: Vec<u64>,
}

/// What is kept of one variable.
#[derive(Default)]
struct Variable {
    heads: Vec<Head>,
    bodies: Vec<Body>,
    /// Per thread that came by, and list: entries with lower numbers are passed.
    passed: Vec<(ThreadId, Vec<u32>)>,
    /// Who came last, and how often another thread came than before.
    last: Option<ThreadId>,
    turn: u32,
}

impl Variable {
    /// The list that an access belongs to.
    fn own_list(&mut self, kind: Kind, loc: LocId, complete: &mut bool) -> usize {
        if let Some(found) = self.heads.iter().position(|head| head.loc == Some(loc) && head.kind == kind) {
            return found;
        }
        let crowded = self.heads.iter().filter(|head| head.kind == kind).count() >= PLACES;
        if crowded {
            *complete = false;
            if let Some(found) = self.heads.iter().position(|head| head.loc.is_none() && head.kind == kind) {
                return found;
            }
        }
        self.heads.push(Head { newest: 0, kind, loc: (!crowded).then_some(loc) });
        self.bodies.push(Body::default());
        self.heads.len() - 1
    }

    /// How far a thread has passed each list.
    fn passed(&mut self, by: ThreadId) -> usize {
        let at = self.passed.iter().position(|(thread, _)| *thread == by).unwrap_or_else(|| {
            self.passed.push((by, Vec::new()));
            self.passed.len() - 1
        });
        self.passed[at].1.resize(self.heads.len(), 0);
        at
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
    pub(super) fn new(survey: &Survey, threads: usize) -> Self {
        let variables = (0..survey.shared_count).map(|_| Variable::default()).collect();
        Races { variables, complete: true, scratch: Ideal::new(threads), ..Races::default() }
    }

    /// Looks for races of an access with earlier ones and keeps it for later ones.
    pub(super) fn visit(&mut self, trace: &Trace, past: &mut Past<'_>, access: Access, known: &dyn Fn(&Goal) -> bool) {
        if self.found.len() >= MOST {
            self.complete = false;
            return;
        }
        let Access { event, op, thread, variable } = access;
        let look = Look { trace, event, kind: Kind::of(thread, op), loc: trace.event(event).loc, known };
        let state = &mut self.variables[variable];
        if state.last != Some(thread) {
            state.last = Some(thread);
            state.turn += 1;
        }
        let own = state.own_list(look.kind, look.loc, &mut self.complete);
        let (turn, looked) = state.bodies[own].looked;
        // Otherwise nobody else came since an access of this list last looked.
        if turn != state.turn {
            let by = state.passed(thread);
            for other in 0..state.heads.len() {
                let state = &self.variables[variable];
                // What was there at the last look is passed or settled.
                let head = state.heads[other];
                let fresh = head.newest >= looked.max(state.passed[by].1[other]);
                if fresh && head.kind.may_race_with(look.kind) && !is_set(&state.bodies[own].settled, other) {
                    self.look_along(variable, own, other, by, &look, past);
                }
            }
        }
        let entry =
            Entry { event: event.index() as u32, clock: past.saved(thread), moment: past.history.moment(thread) };
        let state = &mut self.variables[variable];
        let (head, body) = (&mut state.heads[own], &mut state.bodies[own]);
        head.newest = entry.event;
        // The list of many locations has to look each time.
        if head.loc.is_some() {
            body.looked = (state.turn, entry.event);
        }
        match body.entries.last_mut() {
            // What races with the earlier of two accesses that nothing separates races with the later one too.
            Some(last) if head.loc.is_some() && (last.clock, last.moment) == (entry.clock, entry.moment) => {
                last.event = entry.event;
            }
            _ => body.entries.push(entry),
        }
    }

    /// Goes along a list until an access races.
    fn look_along(&mut self, variable: usize, own: usize, other: usize, by: usize, look: &Look<'_>, past: &Past<'_>) {
        let state = &mut self.variables[variable];
        let Head { kind, loc, .. } = state.heads[other];
        // Accesses in the lists of many locations are settled one by one.
        let settles = loc.is_some() && state.heads[own].loc.is_some();
        if loc.is_some_and(|loc| self.settled.contains(&look.pair(loc))) {
            if settles {
                set(&mut state.bodies[own].settled, other);
            }
            return;
        }
        let history = &past.history;
        let (me, theirs) = (look.kind.thread, kind.thread.index());
        let held = history.held(me);
        let mine = past.ideal(me);
        let mut passed = state.passed[by].1[other].max(mine.clock[theirs]);
        let entries = &state.bodies[other].entries;
        let mut at = entries.partition_point(|entry| entry.event < passed);
        let mut races = false;
        while let Some(&Entry { event, clock, moment }) = entries.get(at) {
            if !history.exclude_each_other(history.held_at(kind.thread, moment), held) {
                self.closures += 1;
                self.scratch.copy(mine);
                self.scratch.raise(me, look.event.index() as u32);
                history.join(&mut self.scratch, clock, kind.thread, event);
                let swallowed = |clock: &[u32]| clock[theirs] > event;
                if history.close(&mut self.scratch, swallowed) && !swallowed(&self.scratch.clock) {
                    let first = EventId::new(event as usize);
                    if self.settled.insert(look.pair(look.trace.event(first).loc)) {
                        let goal = Goal::Race { first, second: look.event };
                        if !(look.known)(&goal) {
                            self.found.push((goal, self.scratch.clock.as_slice().into()));
                        }
                    }
                    races = true;
                    break;
                }
            }
            passed = event + 1;
            at += 1;
        }
        state.passed[by].1[other] = passed;
        if races && settles {
            set(&mut state.bodies[own].settled, other);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let of_body = |body: &Body| {
            size_of::<Body>() + body.entries.capacity() * size_of::<Entry>() + 8 * body.settled.capacity()
        };
        let of_variable = |variable: &Variable| {
            let passed = variable.passed.iter().map(|(_, passed)| 32 + 4 * passed.capacity());
            let bodies = variable.bodies.iter().map(of_body);
            variable.heads.capacity() * size_of::<Head>() + passed.sum::<usize>() + bodies.sum::<usize>()
        };
        let variables = self.variables.iter().map(of_variable);
        variables.sum::<usize>() + self.variables.len() * size_of::<Variable>()
    }
}

/// An access that looks for races.
struct Look<'a> {
    trace: &'a Trace,
    event: EventId,
    kind: Kind,
    loc: LocId,
    known: &'a dyn Fn(&Goal) -> bool,
}

impl Look<'_> {
    fn pair(&self, loc: LocId) -> (LocId, LocId) {
        (loc.min(self.loc), loc.max(self.loc))
    }
}

fn is_set(bits: &[u64], bit: usize) -> bool {
    bits.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

fn set(bits: &mut Vec<u64>, bit: usize) {
    if bits.len() <= bit / 64 {
        bits.resize(bit / 64 + 1, 0);
    }
    bits[bit / 64] |= 1 << (bit % 64);
}
