//! Lost updates: a thread reads a variable and writes it, and an update of another thread comes in between and is overwritten.
//!
//! An **update** is a read and the next access of its thread to the variable, a write, with nothing between them at which the
//! thread waits for others or starts one (locks are fine: an update may be split over two sections); or an atomic update. Two
//! of different threads make a candidate if both have **evidence** that what is written follows from what was read. Without
//! it, `flag = true` after looking at `flag` would be an update, and it is not: nothing is lost if two threads set it.
//!
//! | evidence, where values are recorded and differ | why |
//! |---|---|
//! | two updates at the same two places read different values and wrote different ones | a constant would not |
//! | one update at its places, and one elsewhere, change the variable by the same small number | counting up and down |
//! | both at the same line, unless it always wrote the same | `x++`, `x += y` |
//! | a formula of the written value that has the read in it | recorded so |
//!
//! Where values are not recorded, only updates within one block that the trace declares count. A compare-and-swap loses
//! nothing, so what overwrites is a plain write. What is missed: a compare-and-swap that is lost, if its loop reads the variable
//! first (in `reads` that read is kept); updates with an access of the variable between read and write;
//! those of which each place shows one value only; and what [`SAMPLE`] and its siblings leave out, which is said.

use crate::asking::Key;
use crate::bug::{Form, Severity, Words};
use crate::facts::Facts;
use crate::unshared::Unshared;
use portent_order::Goal;
use portent_trace::{EventId, LocId, LockId, Meaning, Mode, Op, ThreadId, Trace, VarId, is_system_call};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

pub(super) const WORDS: Words = Words {
    title: "lost update",
    rule: "lost_update",
    identifier: "LostUpdate",
    meaning: "A thread reads a variable and writes back what follows from it, and what another thread wrote in between is \
              gone, although both ran to the end. Hold one lock from the read to the write, or use an atomic update.",
    severity: Severity::Error,
};

/// Instances of one update that are looked at, of those at the same places under the same locks.
const SAMPLE: usize = 256;
/// Updates before it, and after it, that each is held against.
const NEAR: usize = 8;
/// Candidates of a group.
const INSTANCES: usize = 64;
/// Pairs of places of one variable.
const PAIRS: usize = 4_096;
/// By how much a variable may be counted up or down.
const SMALL: i64 = 1 << 16;

/// The source locations of the three.
pub(super) fn key(trace: &Trace, first: EventId, remote: EventId, second: EventId) -> Key {
    Key::new(Form::LostUpdate, [first, remote, second].map(|event| Key::at(trace, event)))
}

/// Candidates at the same places.
pub(crate) struct LostUpdates {
    /// Those whose events are nearest to each other.
    pub(crate) goals: Vec<Goal>,
    /// Whether there are others.
    pub(crate) more: bool,
}

/// Every group of candidates that locks do not refute, in order. `is_ordered` tells which of them must-order refutes.
pub(crate) fn candidates(facts: &Facts<'_>, is_ordered: &dyn Fn(&Goal) -> bool) -> Vec<LostUpdates> {
    let updates = Updates::of(facts);
    let mut groups: BTreeMap<Key, (Vec<(u32, Goal)>, bool)> = BTreeMap::new();
    for classes in updates.by_variable.values() {
        let overwriting: Vec<&Class> = classes.iter().filter(|class| !class.is_atomic && class.has_evidence).collect();
        let lost: Vec<&Class> = classes.iter().filter(|class| class.has_evidence).collect();
        let pairs = overwriting.iter().flat_map(|own| lost.iter().map(move |other| (*own, *other)));
        let open = pairs.filter(|(own, other)| !updates.is_excluded(facts, own, other));
        for (pair, (own, other)) in open.enumerate() {
            if own.thread == other.thread {
                continue;
            }
            let places = [own.places[0], other.places[1], own.places[1]].map(|loc| u64::from(loc.to_bits()));
            let (goals, more) = groups.entry(Key::new(Form::LostUpdate, places)).or_default();
            *more |= pair >= PAIRS;
            if pair < PAIRS {
                *more |= own.near(other, |goal, apart| {
                    if !is_ordered(&goal) {
                        goals.push((apart, goal));
                    }
                });
            }
        }
    }
    let groups = groups.into_iter().filter(|(_, (goals, more))| !goals.is_empty() || *more);
    let nearest = |(_, (mut goals, more)): (Key, (Vec<(u32, Goal)>, bool))| {
        goals.sort();
        let more = more || goals.len() > INSTANCES;
        goals.truncate(INSTANCES);
        LostUpdates { goals: goals.into_iter().map(|(_, goal)| goal).collect(), more }
    };
    groups.map(nearest).filter(|group| !group.goals.is_empty()).collect()
}

/// An update, in one step or in two.
#[derive(Clone, Copy)]
struct Update {
    read: EventId,
    write: EventId,
}

/// Thread, places as they are told and as they are, locks held throughout and at the write, and whether it is atomic.
type ClassKey = (ThreadId, [[LocId; 2]; 2], u32, u32, bool);

/// Updates of one thread and variable at the same places, under the same locks.
struct Class {
    thread: ThreadId,
    places: [LocId; 2],
    /// Held from the read to the write.
    throughout: u32,
    /// Held at the write.
    held: u32,
    is_atomic: bool,
    has_evidence: bool,
    updates: Vec<Update>,
}

impl Class {
    /// Tells of the updates of another class that are nearest to each of this one; whether there are others.
    fn near(&self, other: &Class, mut tell: impl FnMut(Goal, u32)) -> bool {
        let step = self.updates.len().div_ceil(SAMPLE);
        let mut more = step > 1;
        for own in self.updates.iter().step_by(step) {
            let at = other.updates.partition_point(|update| update.write < own.write);
            let near = at.saturating_sub(NEAR)..(at + NEAR).min(other.updates.len());
            more |= near.len() < other.updates.len();
            for Update { read, write } in &other.updates[near] {
                let goal = Goal::LostUpdate { first: own.read, read: *read, remote: *write, second: own.write };
                tell(goal, own.write.index().abs_diff(write.index()) as u32);
            }
        }
        more
    }
}

/// What updates at two places read and wrote.
#[derive(Default)]
struct Shown {
    /// Some of the different (read, written).
    values: Vec<(i64, i64)>,
    instances: u64,
    /// A formula says so, or a block that was declared where there are no values.
    told: bool,
}

impl Shown {
    const KEPT: usize = 8;

    fn add(&mut self, values: Option<(i64, i64)>, told: bool) {
        self.instances += 1;
        self.told |= told;
        if let Some(values) = values
            && self.values.len() < Shown::KEPT
            && !self.values.contains(&values)
        {
            self.values.push(values);
        }
    }
    /// Two of them read different values and wrote different ones.
    fn varies(&self) -> bool {
        self.values.iter().any(|a| self.values.iter().any(|b| a.0 != b.0 && a.1 != b.1))
    }
}

/// Whether one update changes a variable by the same small number as another, up or down, and the two are not just a flag that
/// is set and reset.
fn counts_like((read, written): (i64, i64), other: (i64, i64)) -> bool {
    let (by, others) = (written.wrapping_sub(read), other.1.wrapping_sub(other.0));
    let small = (1..=SMALL).contains(&by.unsigned_abs().try_into().unwrap_or(i64::MAX));
    let flag = [read, written, other.0, other.1].iter().all(|value| matches!(value, 0 | 1));
    small && !flag && read != other.0 && written != other.1 && (by == others || by == others.wrapping_neg())
}

/// All updates of a trace, of variables that more than one thread updates.
struct Updates {
    by_variable: BTreeMap<VarId, Vec<Class>>,
    /// Sets of locks held throughout.
    sets: Vec<Vec<(LockId, Mode)>>,
}

/// An update as the pass over the events sees it.
struct Found {
    x: VarId,
    thread: ThreadId,
    update: Update,
    throughout: u32,
}

impl Updates {
    fn of(facts: &Facts<'_>) -> Updates {
        let mut scan = Scan::new(facts);
        scan.go(|x| facts.unshared.is_none_or(|unshared| !unshared.drops(x)));
        if let Some(unshared) = facts.unshared {
            scan.look_for_evidence(unshared);
        }
        let trace = facts.trace;
        let Scan { found, shown, sets, .. } = scan;
        let mut evidence: FxHashMap<(VarId, [LocId; 2]), bool> = FxHashMap::default();
        let mut of_variable: FxHashMap<VarId, Vec<[LocId; 2]>> = FxHashMap::default();
        shown.keys().for_each(|&(x, places)| of_variable.entry(x).or_default().push(places));
        // The same places may update many variables: what they do to one tells of all.
        let mut at_places: FxHashMap<[LocId; 2], bool> = FxHashMap::default();
        for (&(_, places), shown) in &shown {
            *at_places.entry(places).or_default() |= shown.varies();
        }
        for (&(x, places), mine) in &shown {
            let others = of_variable[&x].iter().filter(|other| **other != places).map(|&other| &shown[&(x, other)]);
            let single = mine.values.len() == 1;
            let counts =
                || single && others.flat_map(|other| &other.values).any(|other| counts_like(mine.values[0], *other));
            let in_line = || {
                let flag = |(read, written): &(i64, i64)| matches!(read, 0 | 1) && matches!(written, 0 | 1);
                let constant = mine.instances > 1 && single;
                same_line(trace, places) && !mine.values.is_empty() && !constant && !mine.values.iter().all(flag)
            };
            let has = mine.told || at_places[&places] || counts() || in_line();
            evidence.insert((x, places), has);
        }
        let mut classes: BTreeMap<VarId, FxHashMap<ClassKey, Class>> = BTreeMap::new();
        for Found { x, thread, update, throughout } in found {
            let inside = [update.read, update.write].map(|event| trace.innermost(event));
            let places = [update.read, update.write].map(|event| trace.event(event).loc);
            let is_atomic = trace.op(update.write).reads();
            let held = facts.held_set(update.write);
            let class = classes.entry(x).or_default().entry((thread, [places, inside], throughout, held, is_atomic));
            let has_evidence = is_atomic || evidence.get(&(x, inside)).copied().unwrap_or(false);
            let class = class.or_insert_with(|| Class {
                thread,
                places,
                throughout,
                held,
                is_atomic,
                has_evidence,
                updates: Vec::new(),
            });
            class.updates.push(update);
        }
        let shared = |classes: &FxHashMap<_, Class>| {
            let mut threads = classes.values().map(|class| class.thread);
            let first = threads.next();
            threads.any(|thread| Some(thread) != first)
        };
        let in_order = |classes: FxHashMap<_, Class>| {
            let mut classes: Vec<Class> = classes.into_values().collect();
            classes.sort_by_key(|class| class.updates[0].write);
            classes
        };
        let by_variable = classes.into_iter().filter(|(_, classes)| shared(classes));
        Updates { by_variable: by_variable.map(|(x, classes)| (x, in_order(classes))).collect(), sets }
    }

    /// Whether a lock keeps the one's write from coming between the other's read and write.
    fn is_excluded(&self, facts: &Facts<'_>, own: &Class, other: &Class) -> bool {
        facts.conflicts_with_set(&self.sets[own.throughout as usize], other.held)
    }
}

/// Whether two places are one line.
fn same_line(trace: &Trace, [one, other]: [LocId; 2]) -> bool {
    let line = |loc| {
        let location = trace.names().location(loc);
        (location.file.map(str::to_owned), location.line)
    };
    one == other || (line(one).1.is_some() && line(one) == line(other))
}

/// Passes over the events of the whole trace: what is found is told in those that are left of it.
struct Scan<'t> {
    trace: &'t Trace,
    unshared: Option<&'t Unshared<'t>>,
    /// The last access of each thread to each variable that is not followed by a wait.
    last: FxHashMap<(ThreadId, VarId), Last>,
    /// How often each thread has waited, and how many reads it has made.
    waits: Vec<u64>,
    reads: Vec<u32>,
    /// The block that each thread is in, by its number, and whether it was declared.
    block: Vec<Option<(u32, bool)>>,
    /// The locks that each thread holds, and since when.
    held: Vec<Vec<(LockId, Mode, EventId)>>,
    known: FxHashMap<Vec<(LockId, Mode)>, u32>,
    sets: Vec<Vec<(LockId, Mode)>>,
    found: Vec<Found>,
    shown: FxHashMap<(VarId, [LocId; 2]), Shown>,
}

/// An access of a thread.
#[derive(Clone, Copy)]
struct Last {
    event: EventId,
    /// Which of the thread's reads it is, if it is one.
    number: u32,
    /// How often the thread had waited.
    waits: u64,
    block: Option<(u32, bool)>,
}

impl<'t> Scan<'t> {
    fn new(facts: &Facts<'t>) -> Self {
        let threads = facts.trace.threads();
        Scan {
            trace: facts.whole(),
            unshared: facts.unshared,
            last: FxHashMap::default(),
            waits: vec![0; threads],
            reads: vec![0; threads],
            block: vec![None; threads],
            held: vec![Vec::new(); threads],
            known: FxHashMap::default(),
            sets: Vec::new(),
            found: Vec::new(),
            shown: FxHashMap::default(),
        }
    }

    /// Goes along the trace, and looks at some of the variables.
    fn go(&mut self, wants: impl Fn(VarId) -> bool) {
        for id in (0..self.trace.len()).map(EventId::new) {
            self.event(id, &wants);
        }
    }

    /// What is done at the places of the updates that were found to variables that nobody contends for: it tells of these, too.
    fn look_for_evidence(&mut self, unshared: &Unshared<'_>) {
        let trace = self.trace;
        let mut places: FxHashSet<LocId> = FxHashSet::default();
        for update in self.found.iter().map(|found| found.update).filter(|update| update.read != update.write) {
            let whole = [update.read, update.write].map(|event| unshared.selection.original(event));
            places.extend(whole.map(|event| trace.innermost(event)));
        }
        if places.is_empty() {
            return;
        }
        let mut tells = vec![false; trace.variables()];
        for id in (0..trace.len()).map(EventId::new) {
            if let Some(x) = trace.op(id).variable()
                && unshared.drops(x)
                && !tells[x.index()]
                && trace.value(id).is_some()
                && places.contains(&trace.innermost(id))
            {
                tells[x.index()] = true;
            }
        }
        if tells.contains(&true) {
            let threads = self.held.len();
            (self.waits, self.reads, self.block) = (vec![0; threads], vec![0; threads], vec![None; threads]);
            (self.held, self.last) = (vec![Vec::new(); threads], FxHashMap::default());
            self.go(|x| tells[x.index()]);
        }
    }

    fn event(&mut self, id: EventId, wants: &impl Fn(VarId) -> bool) {
        let (op, thread) = (self.trace.op(id), self.trace.thread(id));
        let t = thread.index();
        match op {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => {
                let number = self.reads[t];
                self.reads[t] += u32::from(op.reads());
                if wants(x) {
                    self.access(id, op, thread, x, number);
                }
            }
            Op::Acquire(lock, mode) => self.held[t].push((lock, mode, id)),
            Op::Release(lock, mode) => self.held[t].retain(|held| (held.0, held.1) != (lock, mode)),
            Op::Receive(_) | Op::Wait(_) | Op::Sleep(_) | Op::Wake(_) => self.waits[t] += 1,
            Op::Send(token) => self.waits[t] += u64::from(self.waits_at(token)),
            Op::Begin(block) => self.block[t] = Some((id.index() as u32, self.trace.is_declared(block))),
            Op::End(_) => self.block[t] = None,
            Op::Busy(..) | Op::Post(_) | Op::Empty(_) | Op::Notify(..) | Op::Branch | Op::Fence(_) => {}
        }
    }

    /// Whether a thread that sends a token starts another one, or comes back from the system.
    fn waits_at(&self, token: portent_trace::TokenId) -> bool {
        match self.trace.meaning(token) {
            Meaning::Fork(_) => true,
            Meaning::Named(name) => is_system_call(self.trace.names().name(portent_trace::ObjectClass::Token, name)),
            _ => false,
        }
    }

    fn access(&mut self, id: EventId, op: Op, thread: ThreadId, x: VarId, number: u32) {
        let t = thread.index();
        let waits = self.waits[t];
        let now = Last { event: id, number, waits, block: self.block[t] };
        let before = self.last.insert((thread, x), now);
        if op.reads() && op.writes() {
            let throughout = self.set(Vec::new());
            self.find(x, thread, Update { read: id, write: id }, throughout);
        }
        let Some(before) = before else { return };
        if op.reads() || before.waits != waits || !self.trace.op(before.event).reads() {
            return;
        }
        let locks = self.held[t].iter().filter(|held| held.2 < before.event).map(|held| (held.0, held.1));
        let locks = locks.collect();
        let throughout = self.set(locks);
        self.show(x, before, now);
        self.find(x, thread, Update { read: before.event, write: id }, throughout);
    }

    /// Keeps an update, unless nobody contends for the variable.
    fn find(&mut self, x: VarId, thread: ThreadId, update: Update, throughout: u32) {
        let left = |event: EventId| self.unshared.map_or(Some(event), |unshared| unshared.selection.find(event));
        if let (Some(read), Some(write)) = (left(update.read), left(update.write)) {
            self.found.push(Found { x, thread, update: Update { read, write }, throughout });
        }
    }

    fn set(&mut self, mut locks: Vec<(LockId, Mode)>) -> u32 {
        locks.sort_unstable();
        if let Some(&known) = self.known.get(&locks) {
            return known;
        }
        let number = self.sets.len() as u32;
        self.sets.push(locks.clone());
        self.known.insert(locks, number);
        number
    }

    /// Notes what there is to say for an update.
    fn show(&mut self, x: VarId, read: Last, write: Last) {
        let trace = self.trace;
        // What an update recorded is what it wrote, which is what the variable then held.
        let values = trace.value(read.event).zip(trace.value(write.event));
        let told = match values {
            Some((read, written)) if read == written => return,
            Some(_) => {
                let formula = trace.symbols().and_then(|symbols| Some((symbols, symbols.written(write.event)?)));
                formula.is_some_and(|(symbols, written)| symbols.dag().reads(written).contains(&read.number))
            }
            None => read.block == write.block && matches!(read.block, Some((_, true))),
        };
        let places = [read.event, write.event].map(|event| trace.innermost(event));
        self.shown.entry((x, places)).or_default().add(values, told);
    }
}
