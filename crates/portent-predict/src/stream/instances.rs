//! Instances of candidate groups, found by seeking back into the trace: which events to ask the engine about.
//!
//! One more pass, this time for the groups that are still open only, and with the past of the model that is asked for
//! (`past`). For each group it keeps the best instance, near ones first; it stops early when every group has one that is good
//! enough. A group without any is impossible in that model: the past is exact where
//! it says no, and so are common locks.

use super::groups_at::{Best, GroupsAt, Offer, Rank};
use crate::board::Candidate;
use crate::causal_past::{Cut, Past};
use crate::facts::{Facts, Touch};
use portent_order::{Goal, Model};
use portent_trace::{Event, EventId, LocId, Op, VarId};
use rustc_hash::FxHashMap;

/// Between how many events groups that have enough are left out of the search.
const PRUNE: usize = 1 << 12;
/// Cycles looked at for one acquire.
const CYCLES: usize = 64;

/// Accesses or acquires of one thread with the same operation and locks.
struct Class {
    thread: usize,
    touch: Touch,
    held: u32,
    /// Position and event.
    last: (u32, EventId),
}

/// Notes the latest of its class, and moves the class to the front: who is looking for near ones can stop early.
fn note(classes: &mut Vec<Class>, class: Class) {
    let same = |c: &Class| (c.thread, c.touch, c.held) == (class.thread, class.touch, class.held);
    match classes.iter().position(same) {
        Some(at) => {
            classes[at].last = class.last;
            classes[..=at].rotate_right(1);
        }
        None => classes.insert(0, class),
    }
}

/// The accesses of a block from one place that write, or that only read.
struct Firsts {
    place: LocId,
    writes: bool,
    earliest: (EventId, Cut),
    latest: (EventId, Cut),
    /// The latest one before the thread last held no lock.
    parted: Option<(EventId, Cut)>,
}

/// Pairs of one thread. Which of them write is the same for all.
struct Pairs {
    thread: usize,
    writes: [bool; 2],
    /// Of the last pair: position of e2, e1s, e2.
    last: (u32, [EventId; 2], EventId),
}

struct Search<'a, 't> {
    facts: &'a Facts<'t>,
    groups: &'a [Candidate],
    found: Vec<Best>,
    open: usize,
    /// Whether distance does not matter.
    anywhere: bool,
    near: usize,
    past: Past<'t>,
    accesses: FxHashMap<(VarId, LocId), Vec<Class>>,
    acquires: FxHashMap<(LocId, Op), Vec<Class>>,
    /// What was acquired at a place: nearly always one lock.
    wanted_at: FxHashMap<LocId, Vec<Op>>,
    blocks: FxHashMap<(usize, VarId), (u32, Vec<Firsts>)>,
    pairs: FxHashMap<(VarId, LocId, LocId), Vec<Pairs>>,
    /// When each thread last held no lock: the acquire that ended it.
    last_free: Vec<EventId>,
}

/// The best instance of each group, in a model. `stop` ends the search early: what is not found then is not known.
pub(super) fn best_instances(
    facts: &Facts<'_>,
    model: Model,
    groups: &[Candidate],
    near: usize,
    stop: &dyn Fn() -> bool,
) -> Option<Vec<Best>> {
    let trace = facts.trace;
    let found = vec![Best::default(); groups.len()];
    let mut index = GroupsAt::of(groups, &found);
    let mut searched = groups.len();
    let mut search = Search {
        facts,
        groups,
        found,
        open: groups.len(),
        // The first one that comes will do.
        anywhere: model == Model::Sync,
        near,
        past: Past::new(trace, model),
        accesses: FxHashMap::default(),
        acquires: FxHashMap::default(),
        wanted_at: FxHashMap::default(),
        blocks: FxHashMap::default(),
        pairs: FxHashMap::default(),
        last_free: vec![EventId::new(0); trace.threads()],
    };
    for event in trace.events() {
        if event.id.index().is_multiple_of(PRUNE) {
            if stop() {
                return None;
            }
            if search.open < searched {
                searched = search.open;
                index = GroupsAt::of(groups, &search.found);
            }
        }
        match event.op {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => {
                search.access_before(&index, event, x);
                search.past.arrive(event);
                search.access_after(&index, event, x);
            }
            Op::Acquire(..) => {
                search.acquire(&index, event);
                if facts.held(event.id).is_empty() {
                    search.last_free[event.thread.index()] = event.id;
                }
            }
            _ => drop(search.past.arrive(event)),
        }
        search.past.leave(event);
        if search.open == 0 {
            break;
        }
    }
    Some(search.found)
}

impl Search<'_, '_> {
    fn rank(&self, goal: &Goal, (low, high): (EventId, EventId)) -> Rank {
        let distance = high.index() - low.index();
        match goal {
            Goal::Atomicity { first, remote, second } if first < remote && remote < second => {
                Rank::Observed(high.index())
            }
            _ if self.anywhere || distance <= self.near => Rank::Near(high.index()),
            _ => Rank::Far(distance),
        }
    }

    /// Whether a group can still do with an instance whose earliest event is this, now that `now` comes.
    #[inline]
    fn wants(&self, g: usize, low: EventId, now: EventId) -> bool {
        match self.found[g].kept {
            Some((Rank::Far(distance), _)) => now.index() - low.index() < distance,
            _ => true,
        }
    }

    fn offer(&mut self, Offer { group, goal, span }: Offer) {
        let rank = self.rank(&goal, span);
        let best = &mut self.found[group];
        if best.kept.as_ref().is_some_and(|(known, _)| *known <= rank) {
            return;
        }
        best.kept = Some((rank, goal));
        if !best.full && !matches!(rank, Rank::Far(_)) {
            best.full = true;
            self.open -= 1;
        }
    }

    /// As the later access of a race, and as a remote access after a pair.
    fn access_before(&mut self, index: &GroupsAt, event: Event, x: VarId) {
        let (facts, t, loc) = (self.facts, event.thread.index(), event.loc);
        let mut offers = Vec::new();
        for &(partner, group) in index.races.get(&loc).into_iter().flatten() {
            if self.found[group].full {
                continue;
            }
            for class in self.accesses.get(&(x, partner)).into_iter().flatten() {
                let (position, first) = class.last;
                if !self.wants(group, first, event.id) {
                    break;
                }
                if class.thread == t
                    || position < self.past.of(t, class.thread)
                    || !class.touch.races_with(Touch::of(event.op))
                    || facts.share_a_lock(first, event.id)
                {
                    continue;
                }
                let goal = Goal::Race { first, second: event.id };
                offers.push(Offer { group, goal, span: (first, event.id) });
            }
        }
        for &(one, two, group) in index.remotes.get(&loc).into_iter().flatten() {
            if self.found[group].full {
                continue;
            }
            for pairs in self.pairs.get(&(x, one, two)).into_iter().flatten() {
                let (position, firsts, second) = pairs.last;
                if !self.wants(group, second, event.id) {
                    break;
                }
                if pairs.thread == t || position < self.past.of(t, pairs.thread) {
                    continue;
                }
                for (i, &first) in firsts.iter().enumerate() {
                    let remote = event.id;
                    if conflicting(facts, first, remote, second) && (i == 0 || first != firsts[0]) {
                        let goal = Goal::Atomicity { first, remote, second };
                        offers.push(Offer { group, goal, span: (first, remote) });
                    }
                }
            }
        }
        offers.into_iter().for_each(|offer| self.offer(offer));
    }

    /// As the second access of a block, and as what later events find.
    fn access_after(&mut self, index: &GroupsAt, event: Event, x: VarId) {
        let (facts, t, loc) = (self.facts, event.thread.index(), event.loc);
        let Some(block) = facts.block(event.id) else {
            return self.remember(index, event, x);
        };
        let is_second = index.seconds.contains_key(&loc);
        let is_first = index.firsts.contains_key(&loc);
        if is_second || is_first {
            let mut mine = self.blocks.remove(&(t, x)).unwrap_or_default();
            if mine.0 != block {
                mine = (block, Vec::new());
            }
            let free = facts.held(event.id).is_empty();
            if is_second {
                self.second(index, event, x, &mine.1, free);
            }
            if is_first {
                let now = (event.id, self.past.share(t));
                let writes = event.op.writes();
                match mine.1.iter_mut().find(|firsts| firsts.place == loc && firsts.writes == writes) {
                    Some(firsts) => {
                        if firsts.latest.0 < self.last_free[t] || free {
                            firsts.parted = Some(firsts.latest.clone());
                        }
                        firsts.latest = now;
                    }
                    None => {
                        mine.1.push(Firsts { place: loc, writes, earliest: now.clone(), latest: now, parted: None });
                    }
                }
            }
            self.blocks.insert((t, x), mine);
        }
        self.remember(index, event, x);
    }

    fn second(&mut self, index: &GroupsAt, event: Event, x: VarId, blocks: &[Firsts], free: bool) {
        let (facts, t, second) = (self.facts, event.thread.index(), event.id);
        let mut offers = Vec::new();
        for &(one, remote_place, group) in index.seconds.get(&event.loc).into_iter().flatten() {
            if self.found[group].full {
                continue;
            }
            for firsts in blocks.iter().filter(|firsts| firsts.place == one) {
                let (latest, earliest) = (&firsts.latest, &firsts.earliest);
                let apart = free || latest.0 < self.last_free[t];
                let parted = if apart { latest } else { firsts.parted.as_ref().unwrap_or(earliest) };
                for class in self.accesses.get(&(x, remote_place)).into_iter().flatten() {
                    let (last, remote) = class.last;
                    if !self.wants(group, remote, second) {
                        break;
                    }
                    if class.thread == t || !conflicting(facts, earliest.0, remote, second) {
                        continue;
                    }
                    for (first, cut) in [parted, latest, earliest] {
                        if remote > *first || last >= cut[class.thread] {
                            let goal = Goal::Atomicity { first: *first, remote, second };
                            offers.push(Offer { group, goal, span: (remote.min(*first), second) });
                        }
                    }
                }
                let writes = [firsts.writes, event.op.writes()];
                let lists = self.pairs.entry((x, one, event.loc)).or_default();
                let last = (self.past.position(t), [parted.0, latest.0], second);
                match lists.iter().position(|pairs| pairs.thread == t && pairs.writes == writes) {
                    Some(at) => {
                        lists[at].last = last;
                        lists[..=at].rotate_right(1);
                    }
                    None => lists.insert(0, Pairs { thread: t, writes, last }),
                }
            }
        }
        offers.into_iter().for_each(|offer| self.offer(offer));
    }

    fn remember(&mut self, index: &GroupsAt, event: Event, x: VarId) {
        if !index.races.contains_key(&event.loc) && !index.remotes.contains_key(&event.loc) {
            return;
        }
        let (thread, touch) = (event.thread.index(), Touch::of(event.op));
        let (held, last) = (self.facts.held_set(event.id), (self.past.position(thread), event.id));
        let classes = self.accesses.entry((x, event.loc)).or_default();
        note(classes, Class { thread, touch, held, last });
    }

    fn acquire(&mut self, index: &GroupsAt, event: Event) {
        let Some(groups) = index.cycles.get(&event.loc) else { return };
        let t = event.thread.index();
        if self.facts.held(event.id).is_empty() || event.tries {
            return;
        }
        let (mut offers, mut given_up) = (Vec::new(), Vec::new());
        for &g in groups {
            if self.found[g].full {
                continue;
            }
            let places = &self.groups[g].places;
            for at in (0..places.len()).filter(|&i| places[i] == event.loc) {
                let mut chosen = vec![event.id];
                let mut left = CYCLES;
                self.around(places, at, &mut chosen, &mut left, g, &mut offers);
                given_up.extend((left == 0).then_some(g));
            }
        }
        offers.into_iter().for_each(|offer| self.offer(offer));
        given_up.into_iter().for_each(|g: usize| self.found[g].given_up = true);
        let (held, last) = (self.facts.held_set(event.id), (self.past.position(t), event.id));
        let ops = self.wanted_at.entry(event.loc).or_default();
        if !ops.contains(&event.op) {
            ops.push(event.op);
        }
        let classes = self.acquires.entry((event.loc, event.op)).or_default();
        note(classes, Class { thread: t, touch: Touch::of(event.op), held, last });
    }

    /// Cycles that end with the acquire that comes now, `chosen[0]`, at place `at`.
    fn around(
        &self,
        places: &[LocId],
        at: usize,
        chosen: &mut Vec<EventId>,
        left: &mut usize,
        group: usize,
        offers: &mut Vec<Offer>,
    ) {
        let (facts, trace) = (self.facts, self.facts.trace);
        let (now, end) = (chosen[0], chosen[chosen.len() - 1]);
        let waits_for = |one: EventId, other: EventId| match trace.op(one) {
            Op::Acquire(lock, mode) => facts.held(other).iter().any(|(l, m)| *l == lock && m.conflicts_with(mode)),
            _ => false,
        };
        if *left == 0 {
            return;
        }
        if chosen.len() == places.len() {
            *left -= 1;
            if waits_for(end, now) {
                let mut waiting = chosen.clone();
                let lowest = (0..waiting.len()).min_by_key(|&i| waiting[i]).unwrap_or(0);
                waiting.rotate_left(lowest);
                let low = waiting[0];
                offers.push(Offer { group, goal: Goal::Deadlock { waiting }, span: (low, now) });
            }
            return;
        }
        let t = trace.thread(now).index();
        let place = places[(at + chosen.len()) % places.len()];
        let ops = self.wanted_at.get(&place).into_iter().flatten();
        for class in ops.filter_map(|&op| self.acquires.get(&(place, op))).flatten() {
            let (position, event) = class.last;
            let fits = chosen.iter().all(|&c| trace.thread(c).index() != class.thread && !facts.share_a_lock(c, event));
            if fits && position >= self.past.of(t, class.thread) && waits_for(end, event) {
                chosen.push(event);
                self.around(places, at, chosen, left, group, offers);
                chosen.pop();
            }
        }
    }
}

/// Whether f conflicts with both accesses of a block.
fn conflicting(facts: &Facts<'_>, first: EventId, remote: EventId, second: EventId) -> bool {
    let op = |e| facts.trace.op(e);
    op(remote).conflicts_with(op(first)) && op(remote).conflicts_with(op(second))
}
