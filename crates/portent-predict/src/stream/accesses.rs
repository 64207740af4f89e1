//! Accesses as they stream by: races and atomicity violations (Farzan et al. phases I and II; iPA's lock histories).
//!
//! # State
//! | | key | holds |
//! |---|---|---|
//! | [`Local`] | thread, variable | what its accesses were last recorded with, by place; the first access of the current block, by place |
//! | [`Lone`] | variable, place, operation, lock state | the last time of each thread |
//! | [`Pair`] | variable, two places, lock state between | for each thread, the time of its last e2 |
//!
//! `Lone` is the papers' R and W, `Pair` their WW and AA. Nothing is kept per event.
//!
//! # Why the last one is enough
//! Must-order agrees with the observed order. So of the earlier accesses of a thread with the same lock state, the last
//! one is unordered with the one that comes now if any is; e2 must not come before f, so the last e2 serves every later
//! f; f must not come before e1, so the last f serves every later pair, best from the earliest e1 of the block. What is
//! compared is thus exact in must-order, without segments in the key: they only say when there is something new to
//! compare. (The prototype has segments in the key because it compares at the end.)
//!
//! # Deviations
//! Which state the block's thread is in when f happens is free between e1 and e2: any state met there counts, the least
//! ones are kept, and must-order is not asked of that state (lets more through). Of a thread's accesses from one place
//! only ⊆-least lock states are kept; a larger one counts as the least one seen again (lets more through: the paper's
//! lists are for one point in time, and so is their order).
//! Candidates are per place, so keys have places, and a key that gave a candidate with another is not compared with it again.

use super::clocks::{Clock, Clocks, at};
use super::states::{FREE, State, States};
use super::thread_state::ThreadState;
use crate::facts::Touch;
use portent_trace::{EventId, LocId, Op};
use rustc_hash::FxHashMap;

/// Places of one thread at one variable, beyond which no more are told apart.
const PLACES: usize = 256;
/// Keys of one variable, beyond which no more are compared.
const KEYS: usize = 4_096;

/// What was last recorded of a thread's accesses of a variable from one place: enough to see that nothing is new.
#[derive(Clone, Copy, Debug)]
struct Entry {
    place: LocId,
    touch: Touch,
    /// When there was nothing new: the era, and how many first accesses the block had.
    era: u32,
    firsts: u32,
    /// Lock state and segment.
    state: State,
    segment: u32,
    /// Block and number of first accesses for which every state between was [`FREE`], in the same segment.
    settled: (u32, u32),
}

/// All that was recorded of them.
#[derive(Debug, Default)]
struct Record {
    lone: Least,
    /// By entry of the first access: states between.
    pairs: Vec<Least>,
}

/// The ⊆-least lock states, with the last segment of each.
type Least = Vec<(State, u32)>;

/// Notes a state. If a state that is not larger is known, that one stands for it. The result is what has to be compared:
/// nothing if its segment is known.
fn least_of(states: &States, least: &mut Least, state: State, segment: u32) -> Option<State> {
    let known = least.iter().position(|&(s, _)| s == state);
    if let Some(at) = known.or_else(|| least.iter().position(|&(s, _)| states.within(s, state))) {
        let (least, last) = &mut least[at];
        let new = std::mem::replace(last, segment) != segment;
        return new.then_some(*least);
    }
    least.retain(|&(s, _)| !states.within(state, s));
    least.push((state, segment));
    Some(state)
}

#[derive(Debug)]
struct First {
    entry: u16,
    event: u32,
    clock: Clock,
}

#[derive(Debug)]
struct Local {
    entries: Vec<Entry>,
    records: Vec<Record>,
    block: u32,
    firsts: Vec<First>,
}

/// The last of a thread.
#[derive(Clone, Copy, Debug)]
struct Last {
    thread: u32,
    time: u32,
    first: u32,
    event: u32,
}

fn renew(lasts: &mut Vec<Last>, last: Last) {
    match lasts.iter_mut().find(|known| known.thread == last.thread) {
        Some(known) => *known = last,
        None => lasts.push(last),
    }
}

#[derive(Debug)]
struct Lone {
    place: LocId,
    touch: Touch,
    state: State,
    lasts: Vec<Last>,
    /// Keys that locks do not exclude and that have given no candidate yet.
    partners: Vec<u16>,
    around: Vec<u16>,
}

#[derive(Debug)]
struct Pair {
    places: [LocId; 2],
    both_write: bool,
    state: State,
    lasts: Vec<Last>,
    /// Remote accesses that locks do not exclude and that have given no candidate yet.
    remotes: Vec<u16>,
}

#[derive(Debug, Default)]
struct Variable {
    lone: Vec<Lone>,
    pairs: Vec<Pair>,
    lone_index: FxHashMap<(LocId, Touch, State), u16>,
    pair_index: FxHashMap<([LocId; 2], bool, State), u16>,
}

/// Candidates by places, each with the first instance that was met.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The lower place first.
    pub(super) races: FxHashMap<[LocId; 2], [EventId; 2]>,
    /// e1, f, e2.
    pub(super) violations: FxHashMap<[LocId; 3], [EventId; 3]>,
}

/// What one access knows of its surroundings.
pub(super) struct Around<'a> {
    pub(super) thread: usize,
    pub(super) thread_state: &'a mut ThreadState,
    pub(super) clocks: &'a mut Clocks,
    pub(super) states: &'a States,
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) races: bool,
    pub(super) violations: bool,
}

/// All accesses so far.
#[derive(Debug)]
pub(super) struct Accesses {
    wanted: Wanted,
    variables: Vec<Variable>,
    locals: Vec<Local>,
    index: FxHashMap<u64, u32>,
    pub(super) found: Found,
    /// Accesses from places, or with keys, beyond what is told apart.
    pub(super) dropped: u64,
    least: Vec<State>,
}

impl Accesses {
    pub(super) fn new(wanted: Wanted) -> Self {
        Accesses {
            wanted,
            variables: Vec::new(),
            locals: Vec::new(),
            index: FxHashMap::default(),
            found: Found::default(),
            dropped: 0,
            least: Vec::new(),
        }
    }
    /// How many keys there are.
    pub(super) fn keys(&self) -> u64 {
        self.variables.iter().map(|x| (x.lone.len() + x.pairs.len()) as u64).sum()
    }

    /// An access of variable `x`.
    #[inline]
    pub(super) fn access(&mut self, around: &mut Around<'_>, x: usize, op: Op, place: LocId, event: EventId) {
        let touch = Touch::of(op);
        let slot = &mut around.thread_state.cache[x % ThreadState::CACHE];
        let local = if slot.0 == x as u32 {
            slot.1 as usize
        } else {
            let next = self.locals.len() as u32;
            let local = *self.index.entry((around.thread as u64) << 32 | x as u64).or_insert(next);
            if local == next {
                self.locals.push(Local { entries: Vec::new(), records: Vec::new(), block: 0, firsts: Vec::new() });
            }
            *slot = (x as u32, local);
            local as usize
        };
        let mine = &mut self.locals[local];
        let firsts = mine.firsts.len() as u32;
        let Some(at) = mine.entries.iter().position(|entry| entry.place == place && entry.touch == touch) else {
            return self.meet(around, local, x, (place, touch), event);
        };
        let (now, entry) = (&around.thread_state, &mut mine.entries[at]);
        if entry.era == now.era && entry.firsts == firsts {
            return;
        }
        let settled = now.block == 0 || !self.wanted.violations || entry.settled == (now.block, firsts);
        if settled && entry.state == now.locks && entry.segment == around.clocks.segment(around.thread) {
            (entry.era, entry.firsts) = (now.era, firsts);
            return;
        }
        self.renew(around, local, at, x, event);
    }

    /// The first access of a thread from a place.
    #[cold]
    fn meet(
        &mut self,
        around: &mut Around<'_>,
        local: usize,
        x: usize,
        (place, touch): (LocId, Touch),
        event: EventId,
    ) {
        let entries = &mut self.locals[local].entries;
        if entries.len() >= PLACES {
            self.dropped += 1;
            return;
        }
        entries.push(Entry { place, touch, era: 0, firsts: 0, state: State::MAX, segment: 0, settled: (0, 0) });
        let at = entries.len() - 1;
        self.locals[local].records.push(Record::default());
        self.renew(around, local, at, x, event);
    }

    /// An access with another lock state, in another segment, or in a block that is not settled.
    fn renew(&mut self, around: &mut Around<'_>, local: usize, at: usize, x: usize, event: EventId) {
        if self.variables.len() <= x {
            self.variables.resize_with(x + 1, Variable::default);
        }
        let (state, segment) = (around.thread_state.locks, around.clocks.segment(around.thread));
        let lone = &mut self.locals[local].records[at].lone;
        if let Some(least) = least_of(around.states, lone, state, segment) {
            let entry = &self.locals[local].entries[at];
            self.record_lone(around, x, (entry.place, entry.touch, least), event);
        }
        let mut firsts = self.locals[local].firsts.len() as u32;
        if self.wanted.violations && around.thread_state.block != 0 {
            firsts = self.in_block(around, local, at, x, event);
        }
        let entry = &mut self.locals[local].entries[at];
        (entry.era, entry.firsts) = (around.thread_state.era, firsts);
        (entry.state, entry.segment) = (state, segment);
    }

    /// Pairs with the first accesses of the block; the result is how many these were.
    fn in_block(&mut self, around: &mut Around<'_>, local: usize, at: usize, x: usize, event: EventId) -> u32 {
        let Around { thread, thread_state, clocks, states } = around;
        let mine = &mut self.locals[local];
        if mine.block != thread_state.block {
            mine.block = thread_state.block;
            mine.firsts.clear();
        }
        let segment = clocks.segment(*thread);
        let now = (thread_state.block, mine.firsts.len() as u32);
        if mine.entries[at].settled != now || mine.entries[at].segment != segment {
            let mut all_free = true;
            let mut least = std::mem::take(&mut self.least);
            for i in 0..self.locals[local].firsts.len() {
                let mine = &mut self.locals[local];
                let (first, since) = (mine.firsts[i].entry, mine.firsts[i].event);
                thread_state.between(states, since, &mut least);
                all_free &= least[..] == [FREE];
                let places = [mine.entries[first as usize].place, mine.entries[at].place];
                let both_write = mine.entries[first as usize].touch.writes() && mine.entries[at].touch.writes();
                for &state in &least {
                    let pairs = &mut self.locals[local].records[at].pairs;
                    if pairs.len() <= first as usize {
                        pairs.resize_with(first as usize + 1, Vec::new);
                    }
                    let Some(state) = least_of(states, &mut pairs[first as usize], state, segment) else { continue };
                    let last = Last {
                        thread: *thread as u32,
                        time: clocks.time(*thread),
                        first: since,
                        event: event.index() as u32,
                    };
                    let since = self.locals[local].firsts[i].clock.clone();
                    self.record_pair(states, x, (places, both_write, state), last, &since);
                }
            }
            self.least = least;
            self.locals[local].entries[at].settled = if all_free { now } else { (0, 0) };
        }
        let mine = &mut self.locals[local];
        if !mine.firsts.iter().any(|first| first.entry as usize == at) {
            mine.firsts.push(First { entry: at as u16, event: event.index() as u32, clock: clocks.share(*thread) });
        }
        now.1
    }

    /// A thread accesses a variable with a key for the first time in its segment: what is it unordered with?
    fn record_lone(&mut self, around: &mut Around<'_>, x: usize, key: (LocId, Touch, State), event: EventId) {
        let Some(k) = self.lone_key(around.states, x, key) else { return };
        let (thread, clock) = (around.thread as u32, around.clocks.of(around.thread));
        let last = Last { thread, time: around.clocks.time(around.thread), first: 0, event: event.index() as u32 };
        let Variable { lone, pairs, .. } = &mut self.variables[x];
        let unordered = |last: &&Last| last.thread != thread && last.time > at(clock, last.thread as usize);
        let mut partners = std::mem::take(&mut lone[k as usize].partners);
        partners.retain(|&p| {
            let other = &lone[p as usize];
            let Some(earlier) = other.lasts.iter().find(unordered) else { return true };
            let (a, b) = (other.place, key.0);
            let events = [EventId::new(earlier.event as usize), event];
            self.found.races.entry([a.min(b), a.max(b)]).or_insert(events);
            false
        });
        let mut around = std::mem::take(&mut lone[k as usize].around);
        around.retain(|&p| {
            let pair = &pairs[p as usize];
            let Some(earlier) = pair.lasts.iter().find(unordered) else { return true };
            let events = [earlier.first, event.index() as u32, earlier.event].map(|e| EventId::new(e as usize));
            self.found.violations.entry([pair.places[0], key.0, pair.places[1]]).or_insert(events);
            false
        });
        let mine = &mut lone[k as usize];
        (mine.partners, mine.around) = (partners, around);
        renew(&mut mine.lasts, last);
    }

    /// A thread's block accesses a variable twice: which accesses of others could come between?
    fn record_pair(&mut self, states: &States, x: usize, key: ([LocId; 2], bool, State), last: Last, since: &[u32]) {
        let Some(k) = self.pair_key(states, x, key) else { return };
        let Variable { lone, pairs, .. } = &mut self.variables[x];
        let pair = &mut pairs[k as usize];
        renew(&mut pair.lasts, last);
        let unordered =
            |remote: &&Last| remote.thread != last.thread && remote.time > at(since, remote.thread as usize);
        pair.remotes.retain(|&f| {
            let remote = &lone[f as usize];
            let Some(earlier) = remote.lasts.iter().find(unordered) else { return true };
            let events = [last.first, earlier.event, last.event].map(|e| EventId::new(e as usize));
            self.found.violations.entry([key.0[0], remote.place, key.0[1]]).or_insert(events);
            false
        });
    }

    fn lone_key(&mut self, states: &States, x: usize, key: (LocId, Touch, State)) -> Option<u16> {
        let Variable { lone, pairs, lone_index, .. } = &mut self.variables[x];
        if let Some(&k) = lone_index.get(&key) {
            return Some(k);
        }
        if lone.len() >= KEYS {
            self.dropped += 1;
            return None;
        }
        let k = lone.len() as u16;
        lone_index.insert(key, k);
        let (place, touch, state) = key;
        let mut mine = Lone { place, touch, state, lasts: Vec::new(), partners: Vec::new(), around: Vec::new() };
        if self.wanted.races {
            for (p, other) in lone.iter_mut().enumerate() {
                let places = [place.min(other.place), place.max(other.place)];
                if touch.races_with(other.touch)
                    && !self.found.races.contains_key(&places)
                    && states.compatible(state, other.state)
                {
                    mine.partners.push(p as u16);
                    other.partners.push(k);
                }
            }
            if touch.races_with(touch) && states.compatible(state, state) {
                mine.partners.push(k);
            }
        }
        for (p, pair) in pairs.iter_mut().enumerate() {
            let places = [pair.places[0], place, pair.places[1]];
            if (touch.writes() || pair.both_write)
                && !self.found.violations.contains_key(&places)
                && states.compatible(state, pair.state)
            {
                mine.around.push(p as u16);
                pair.remotes.push(k);
            }
        }
        lone.push(mine);
        Some(k)
    }

    fn pair_key(&mut self, states: &States, x: usize, key: ([LocId; 2], bool, State)) -> Option<u16> {
        let Variable { lone, pairs, pair_index, .. } = &mut self.variables[x];
        if let Some(&k) = pair_index.get(&key) {
            return Some(k);
        }
        if pairs.len() >= KEYS {
            self.dropped += 1;
            return None;
        }
        let k = pairs.len() as u16;
        pair_index.insert(key, k);
        let (places, both_write, state) = key;
        let mut mine = Pair { places, both_write, state, lasts: Vec::new(), remotes: Vec::new() };
        for (f, remote) in lone.iter_mut().enumerate() {
            let group = [places[0], remote.place, places[1]];
            if (remote.touch.writes() || both_write)
                && !self.found.violations.contains_key(&group)
                && states.compatible(state, remote.state)
            {
                mine.remotes.push(f as u16);
                remote.around.push(k);
            }
        }
        pairs.push(mine);
        Some(k)
    }
}
