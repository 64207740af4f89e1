//! Every instance of a group that the clocks of the whole trace and common locks do not refute.
//!
//! One pass notes where the places of the groups are met; then, for each pair of threads, the clocks say between which
//! positions events are unordered, by binary search. A group without an instance is refuted; one with more than
//! [`MOST`] is not listed to its end, and says so.
//!
//! Of the violations of atomicity that differ only in their first access, the earliest stands for all: where a later one
//! happens before the remote access, so does it.

use super::Causal;
use crate::board::Candidate;
use crate::facts::Touch;
use crate::kinds;
use portent_order::{Goal, Writer};
use portent_trace::{EventId, LocId, LockId, Mode, Op, PairingId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Instances that are listed of a group.
pub(super) const MOST: usize = 64;
/// Choices of acquires that are looked at for a group of deadlocks.
const PATIENCE: u32 = 100_000;

/// The instances of a group that are not refuted yet, those whose events are near each other first.
#[derive(Default)]
pub(crate) struct Audited {
    pub(crate) instances: Vec<Goal>,
    /// Whether there may be more.
    pub(crate) cut_short: bool,
}

impl Audited {
    fn is_full(&self) -> bool {
        self.cut_short
    }
    pub(super) fn add(&mut self, goal: Goal) {
        if self.instances.len() < MOST {
            self.instances.push(goal);
        } else {
            self.cut_short = true;
        }
    }
    pub(super) fn sort(&mut self, span: impl Fn(&Goal) -> usize) {
        self.instances.sort_by_cached_key(|goal| (span(goal), goal.clone()));
    }
}

/// Events of one thread with the same operation and locks, by position.
struct Class {
    thread: usize,
    op: Op,
    touch: Touch,
    held: u32,
    places: Vec<u32>,
}

/// A first and a second access of one block.
struct Pair {
    thread: usize,
    first: u32,
    second: u32,
    /// Whether they write.
    writes: [bool; 2],
    /// Locks held all the time between them.
    kept: Vec<(LockId, Mode)>,
}

/// The first accesses of the block that a thread is in.
#[derive(Default)]
struct Block {
    number: u32,
    /// Place, whether it writes, position, event.
    firsts: Vec<(LocId, bool, u32, EventId)>,
}

/// Where the places of groups are met.
#[derive(Default)]
pub(crate) struct Audit {
    accesses: FxHashMap<(LocId, VarId), Vec<Class>>,
    /// The variables accessed at a place.
    variables: FxHashMap<LocId, Vec<VarId>>,
    acquires: FxHashMap<LocId, Vec<Class>>,
    pairs: FxHashMap<(LocId, LocId, VarId), Vec<Pair>>,
}

fn note(classes: &mut Vec<Class>, thread: usize, op: Op, held: u32, place: u32) {
    let touch = Touch::of(op);
    let alike = |c: &Class| c.op == op || op.variable().is_some();
    let same = |c: &&mut Class| (c.thread, c.touch, c.held) == (thread, touch, held) && alike(c);
    match classes.iter_mut().rev().find(same) {
        Some(class) => class.places.push(place),
        None => classes.push(Class { thread, op, touch, held, places: vec![place] }),
    }
}

impl Audit {
    /// Notes where the places of these groups are met; `None` if told to stop.
    pub(crate) fn of(causal: &Causal<'_, '_>, groups: &[&Candidate], stop: &dyn Fn() -> bool) -> Option<Self> {
        let (facts, trace) = (causal.facts, causal.facts.trace);
        let mut wanted: FxHashSet<LocId> = FxHashSet::default();
        let mut cycles: FxHashSet<LocId> = FxHashSet::default();
        let mut firsts: FxHashSet<LocId> = FxHashSet::default();
        let mut seconds: FxHashMap<LocId, FxHashSet<LocId>> = FxHashMap::default();
        for group in groups {
            match (&group.goal, &group.places[..]) {
                (Goal::Race { .. }, places) => wanted.extend(places),
                (Goal::Atomicity { .. }, &[first, remote, second]) => {
                    wanted.insert(remote);
                    firsts.insert(first);
                    seconds.entry(second).or_default().insert(first);
                }
                (Goal::Deadlock { .. }, places) => cycles.extend(places),
                _ => {}
            }
        }
        let mut audit = Audit::default();
        let mut position = vec![0u32; trace.threads()];
        let mut holding: Vec<Vec<(LockId, Mode, EventId)>> = vec![Vec::new(); trace.threads()];
        let mut blocks: FxHashMap<(usize, VarId), Block> = FxHashMap::default();
        for event in trace.events() {
            if event.id.index().is_multiple_of(1 << 16) && stop() {
                return None;
            }
            let (t, loc) = (event.thread.index(), event.loc);
            let place = position[t];
            position[t] += 1;
            match event.op {
                Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => {
                    if wanted.contains(&loc) {
                        let classes = audit.accesses.entry((loc, x)).or_insert_with(|| {
                            audit.variables.entry(loc).or_default().push(x);
                            Vec::new()
                        });
                        note(classes, t, event.op, facts.held_set(event.id), place);
                    }
                    let Some(number) = facts.block(event.id) else { continue };
                    let (is_first, befores) = (firsts.contains(&loc), seconds.get(&loc));
                    if !is_first && befores.is_none() {
                        continue;
                    }
                    let block = blocks.entry((t, x)).or_default();
                    if block.number != number {
                        *block = Block { number, firsts: Vec::new() };
                    }
                    for &(one, writes, first, since) in block.firsts.iter() {
                        if befores.is_some_and(|befores| befores.contains(&one)) {
                            let kept = holding[t].iter().filter(|(_, _, acquire)| *acquire < since);
                            let kept = kept.map(|&(lock, mode, _)| (lock, mode)).collect();
                            let pair =
                                Pair { thread: t, first, second: place, writes: [writes, event.op.writes()], kept };
                            audit.pairs.entry((one, loc, x)).or_default().push(pair);
                        }
                    }
                    let known =
                        block.firsts.iter().any(|(one, writes, ..)| *one == loc && *writes == event.op.writes());
                    if is_first && !known {
                        block.firsts.push((loc, event.op.writes(), place, event.id));
                    }
                }
                Op::Acquire(lock, mode) => {
                    if cycles.contains(&loc) && !holding[t].is_empty() && !event.tries {
                        note(audit.acquires.entry(loc).or_default(), t, event.op, facts.held_set(event.id), place);
                    }
                    holding[t].push((lock, mode, event.id));
                }
                Op::Release(lock, mode) => holding[t].retain(|(l, m, _)| (*l, *m) != (lock, mode)),
                _ => {}
            }
        }
        Some(audit)
    }

    /// The instances of a group.
    pub(crate) fn instances(&self, causal: &Causal<'_, '_>, group: &Candidate) -> Audited {
        let mut found = Audited::default();
        match (&group.goal, &group.places[..]) {
            (Goal::Race { .. }, &[one, two]) => self.races(causal, one, two, &mut found),
            (Goal::Atomicity { .. }, &[first, remote, second]) => {
                self.violations(causal, first, remote, second, &mut found);
            }
            (Goal::Deadlock { .. }, places) => {
                let mut search = Cycles { audit: self, causal, places, chosen: Vec::new(), left: PATIENCE };
                search.extend(&mut found);
                found.cut_short |= search.left == 0;
            }
            (Goal::LostWakeup { .. }, _) => {
                let key = kinds::key(causal.facts, &group.goal);
                for k in 0..causal.facts.trace.pairings().len() {
                    let goal = Goal::LostWakeup { pairing: PairingId::new(k) };
                    if kinds::key(causal.facts, &goal) == key {
                        found.add(goal);
                    }
                }
            }
            _ => found.cut_short = true,
        }
        found.sort(|goal| causal.distance(goal));
        found
    }

    fn races(&self, causal: &Causal<'_, '_>, one: LocId, two: LocId, found: &mut Audited) {
        for &x in self.variables.get(&one).into_iter().flatten() {
            let (ones, twos) = (self.accesses.get(&(one, x)), self.accesses.get(&(two, x)));
            for a in ones.into_iter().flatten() {
                for b in twos.into_iter().flatten() {
                    // At one place, each pair of threads comes twice.
                    if a.thread == b.thread || (one == two && a.thread > b.thread) || !a.touch.races_with(b.touch) {
                        continue;
                    }
                    if causal.facts.sets_conflict(a.held, b.held) {
                        continue;
                    }
                    for &place in &a.places {
                        let low = causal.clocks.past(a.thread, place, b.thread);
                        // It may be next itself when the other has not happened.
                        let end = causal.clocks.without(b.thread, a.thread, place).saturating_add(1);
                        let event = causal.program(a.thread)[place as usize];
                        for &other in within(&b.places, low, end) {
                            let other = causal.program(b.thread)[other as usize];
                            found.add(Goal::Race { first: event.min(other), second: event.max(other) });
                            if found.is_full() {
                                return;
                            }
                        }
                    }
                }
            }
        }
    }

    fn violations(&self, causal: &Causal<'_, '_>, one: LocId, remote: LocId, two: LocId, found: &mut Audited) {
        for &x in self.variables.get(&remote).into_iter().flatten() {
            for pair in self.pairs.get(&(one, two, x)).into_iter().flatten() {
                for class in self.accesses.get(&(remote, x)).into_iter().flatten() {
                    let writes = class.touch.writes();
                    let conflicts = writes || pair.writes == [true, true];
                    if class.thread == pair.thread
                        || !conflicts
                        || causal.facts.conflicts_with_set(&pair.kept, class.held)
                    {
                        continue;
                    }
                    let low = causal.clocks.past(pair.thread, pair.first + 1, class.thread);
                    // What it saw may change: only what its thread read before counts.
                    let end = causal.clocks.without(class.thread, pair.thread, pair.second).saturating_add(1);
                    let at = |place: u32| causal.program(pair.thread)[place as usize];
                    for &place in within(&class.places, low, end) {
                        let remote = causal.program(class.thread)[place as usize];
                        found.add(Goal::Atomicity { first: at(pair.first), remote, second: at(pair.second) });
                        if found.is_full() {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// The places from `low` on and below `end`.
pub(super) fn within(places: &[u32], low: u32, end: u32) -> &[u32] {
    let from = places.partition_point(|&place| place < low);
    let to = places.partition_point(|&place| place < end);
    &places[from..to.max(from)]
}

/// Cycles of acquires at given places.
struct Cycles<'a, 'c, 't> {
    audit: &'a Audit,
    causal: &'a Causal<'c, 't>,
    places: &'a [LocId],
    /// Class and position of those chosen so far.
    chosen: Vec<(&'a Class, u32)>,
    left: u32,
}

impl Cycles<'_, '_, '_> {
    /// Whether what one wants is what the other holds.
    fn waits_for(&self, one: &Class, other: &Class) -> bool {
        match one.op {
            Op::Acquire(lock, mode) => {
                self.causal.facts.set(other.held).iter().any(|(l, m)| *l == lock && m.conflicts_with(mode))
            }
            _ => false,
        }
    }

    fn extend(&mut self, found: &mut Audited) {
        let (facts, clocks) = (self.causal.facts, &self.causal.clocks);
        let audit = self.audit;
        let last = self.chosen.len() + 1 == self.places.len();
        for class in audit.acquires.get(&self.places[self.chosen.len()]).into_iter().flatten() {
            let fits =
                self.chosen.iter().all(|(c, _)| c.thread != class.thread && !facts.sets_conflict(c.held, class.held));
            let follows = self.chosen.last().is_none_or(|(before, _)| self.waits_for(before, class));
            let closes = !last || self.chosen.first().is_none_or(|(first, _)| self.waits_for(class, first));
            if !fits || !follows || !closes {
                continue;
            }
            let (mut low, mut end) = (0, u32::MAX);
            for (c, place) in &self.chosen {
                low = low.max(clocks.past(c.thread, *place, class.thread));
                end = end.min(clocks.without(class.thread, c.thread, *place).saturating_add(1));
            }
            for &place in within(&class.places, low, end) {
                if found.is_full() || self.left == 0 {
                    return;
                }
                self.left -= 1;
                self.chosen.push((class, place));
                if last {
                    let event = |(class, place): &(&Class, u32)| self.causal.program(class.thread)[*place as usize];
                    let mut waiting: Vec<EventId> = self.chosen.iter().map(event).collect();
                    let lowest = (0..waiting.len()).min_by_key(|&i| waiting[i]).unwrap_or(0);
                    waiting.rotate_left(lowest);
                    let goal = Goal::Deadlock { waiting };
                    // A cycle whose places repeat is met once for each rotation.
                    if !found.instances.contains(&goal) {
                        found.add(goal);
                    }
                } else {
                    self.extend(found);
                }
                self.chosen.pop();
            }
        }
    }
}

impl Causal<'_, '_> {
    /// From the first to the last event of a goal.
    pub(super) fn distance(&self, goal: &Goal) -> usize {
        let spread = |events: &[EventId]| {
            let (low, high) = (events.iter().min(), events.iter().max());
            high.zip(low).map_or(0, |(high, low)| high.index() - low.index())
        };
        match *goal {
            Goal::Race { first, second } => spread(&[first, second]),
            Goal::Atomicity { first, remote, second } => spread(&[first, remote, second]),
            Goal::LostUpdate { first, read, remote, second } => spread(&[first, read, remote, second]),
            Goal::Deadlock { ref waiting } => spread(waiting),
            Goal::Stuck { waiting } => self.facts.trace.len() - waiting.index(),
            Goal::Nondeterminism { read, challenger: Writer::Event(c) } => spread(&[read, c]),
            Goal::Nondeterminism { read, challenger: Writer::Init } => read.index(),
            Goal::FinalValue { challenger, .. } => self.facts.trace.len() - challenger.index(),
            Goal::LostWakeup { pairing } => {
                let pairing = self.facts.trace.pairings()[pairing.index()];
                spread(&[pairing.sleep, pairing.notify, pairing.wake])
            }
        }
    }
}
