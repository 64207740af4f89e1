//! The lattice, level by level (Sen et al., §6, corrected: docs/src/internals/semantics.md §4 and §6).
//!
//! A level holds the cuts with the same number of steps. Cuts are made by running one thread of a cut one step further and
//! then everything that loses nothing when it runs at once. A read that the monitor sees may also run where it sees another
//! write; its thread then stops for good ([`super::state`]). Cuts that are equal in all that the future depends on are
//! one, and keep the way that deviates least from the observed order. Levels that are done are forgotten but for one link
//! per cut, and links that lead nowhere any more are swept out.

use super::plan::{Action, Plan};
use super::state::{Cut, Layout};
use hashbrown::HashTable;
use portent_spec::{Judgement, Letter, Monitor};
use portent_trace::EventId;
use rustc_hash::FxHasher;
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher;

/// A way to a cut: the one before it and the thread that ran.
#[derive(Clone, Copy)]
struct Link {
    from: u32,
    thread: u32,
}

const ROOT: u32 = u32::MAX;

/// The cuts of a level, packed, each followed by a word of (cost, thread) and link.
#[derive(Default)]
struct Level {
    rows: Vec<u64>,
    cuts: u32,
    index: HashTable<u32>,
    /// The cut of the observed run, if it is in this level.
    observed: Option<u32>,
}

/// A way that breaks the property.
#[derive(Clone, Copy, Debug)]
pub(super) struct Violation {
    /// The event that breaks it; `None` for the end of a complete run.
    pub(super) event: Option<EventId>,
    /// How many steps ran ahead of an earlier one.
    pub(super) cost: u32,
    link: u32,
    thread: Option<u32>,
}

/// What exploring gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Cuts examined.
    pub(super) cuts: u64,
    /// Levels done.
    pub(super) levels: u64,
    /// The widest level.
    pub(super) widest: u64,
    /// Cuts left out because their level was too wide.
    pub(super) dropped: u64,
    /// The first level that is not complete.
    pub(super) incomplete_from: Option<u64>,
    /// Bytes of the largest level with its index, and of all links, at their largest.
    pub(super) bytes: u64,
    /// Bytes per cut of the widest level, its index and the link it leaves behind included.
    pub(super) per_cut: f64,
    /// Whether an unknown value decided somewhere.
    pub(super) unknown: bool,
    /// A monitor state in which that was so.
    pub(super) unknown_state: Vec<u64>,
}

/// The walk through the lattice.
pub(super) struct Explorer {
    layout: Layout,
    levels: VecDeque<Option<Box<Level>>>,
    /// The level at the front.
    first: u64,
    links: Vec<Link>,
    sweep_at: usize,
    #[allow(clippy::vec_box)] // Levels move between here and the queue as they are.
    spare: Vec<Box<Level>>,
    width: usize,
    /// The cheapest violation by the event that breaks the property.
    pub(super) violations: BTreeMap<Option<EventId>, Violation>,
    pub(super) tally: Tally,
    cut: Cut,
    next: Cut,
    row: Vec<u64>,
    memo: Memo,
}

/// What is behind a cut's own words: cost and thread in one word, link and nothing in another.
const BEHIND: usize = 2;

impl Explorer {
    pub(super) fn new(plan: &Plan, monitor: &dyn Monitor, width: usize) -> Explorer {
        let layout = Layout::of(plan, monitor.words());
        let mut start = Cut::start(plan, monitor);
        let mut explorer = Explorer {
            row: vec![0; layout.words],
            layout,
            levels: VecDeque::new(),
            first: 0,
            links: Vec::new(),
            sweep_at: 1 << 16,
            spare: Vec::new(),
            width: width.max(1),
            violations: BTreeMap::new(),
            tally: Tally::default(),
            cut: start.clone(),
            next: start.clone(),
            memo: Memo::new(monitor.words()),
        };
        if !plan.open_ended {
            start.settle(plan, |_| ());
        }
        explorer.next.copy_from(&start);
        explorer.insert(plan, ROOT, 0, 0, true);
        explorer
    }

    /// Puts `self.next` into its level, or its way into the cut that is there already.
    fn insert(&mut self, plan: &Plan, from: u32, thread: u32, cost: u32, observed: bool) {
        let level = (self.next.level() - self.first) as usize;
        while self.levels.len() <= level {
            self.levels.push_back(None);
        }
        let spare = &mut self.spare;
        let level = self.levels[level].get_or_insert_with(|| spare.pop().unwrap_or_default());
        self.layout.pack(plan, &self.next, &mut self.row);
        let (words, stride) = (self.layout.words, self.layout.words + BEHIND);
        let Level { rows, cuts, index, observed: seen } = &mut **level;
        let hash = hash(&self.row);
        let found = index.find(hash, |&at| rows[at as usize * stride..][..words] == self.row[..]).copied();
        let at = match found {
            Some(at) => {
                let behind = &mut rows[at as usize * stride + words..][..BEHIND];
                if u64::from(cost) < behind[0] >> 32 {
                    behind[0] = u64::from(cost) << 32 | u64::from(thread);
                    behind[1] = u64::from(from);
                }
                at
            }
            None => {
                let at = *cuts;
                if rows.len() + stride > rows.capacity() {
                    // By a quarter: doubling would leave up to half of the memory unused.
                    rows.reserve_exact((rows.len() / 4).max(64 * stride));
                }
                rows.extend_from_slice(&self.row);
                rows.push(u64::from(cost) << 32 | u64::from(thread));
                rows.push(u64::from(from));
                *cuts += 1;
                index.insert_unique(hash, at, |&at| self::hash(&rows[at as usize * stride..][..words]));
                at
            }
        };
        if observed {
            *seen = Some(at);
        }
    }

    /// Whether every level is done.
    pub(super) fn is_done(&self) -> bool {
        self.levels.iter().all(Option::is_none)
    }
    /// The level that comes next.
    pub(super) fn level(&self) -> u64 {
        self.first
    }

    /// Where each thread stands at least, in all cuts that are left.
    pub(super) fn behind(&mut self, threads: usize) -> Vec<u32> {
        let mut least = vec![u32::MAX; threads];
        let (words, stride) = (self.layout.words, self.layout.words + BEHIND);
        for level in self.levels.iter().flatten() {
            for row in level.rows.chunks_exact(stride) {
                self.layout.unpack(&row[..words], &mut self.cut);
                // Who has stopped needs none of its steps any more.
                let going = (0..threads).filter(|&t| !self.cut.is_stopped(t));
                going.for_each(|t| least[t] = least[t].min(self.cut.positions[t]));
            }
        }
        least
    }

    /// Makes room for threads and variables that were not there before.
    pub(super) fn make_room(&mut self, plan: &Plan, monitor_words: usize) {
        let (threads, variables) = (self.cut.positions.len(), self.cut.memory.len());
        let waits = (plan.slots.len(), plan.conditions as usize);
        if (threads, variables, self.layout.stopping) == (plan.threads(), plan.readers.len(), plan.stopping())
            && self.layout.waits() == waits
        {
            return;
        }
        let wider = Layout::of(plan, monitor_words);
        let old = std::mem::replace(&mut self.layout, wider);
        let (words, stride) = (old.words, old.words + BEHIND);
        let levels = std::mem::take(&mut self.levels);
        let mut small = self.cut.clone();
        for cut in [&mut self.cut, &mut self.next] {
            cut.positions.resize(plan.threads(), 0);
            cut.asleep.resize(plan.conditions as usize, portent_trace::Sleepers::default());
            cut.memory.resize(plan.readers.len(), 0);
            cut.stopped.resize(plan.room_for_stops(), 0);
        }
        self.row.resize(self.layout.words, 0);
        for level in levels.into_iter().flatten() {
            for (at, row) in level.rows.chunks_exact(stride).enumerate() {
                old.unpack(&row[..words], &mut small);
                let start = |known: &[u32], all: &mut Vec<u32>| {
                    all.fill(0);
                    all[..known.len()].copy_from_slice(known);
                };
                start(&small.positions, &mut self.next.positions);
                start(&small.memory, &mut self.next.memory);
                start(&small.stopped, &mut self.next.stopped);
                self.next.asleep.fill(portent_trace::Sleepers::default());
                self.next.asleep[..small.asleep.len()].clone_from_slice(&small.asleep);
                self.next.monitor.copy_from_slice(&small.monitor);
                let (behind, from) = (row[words], row[words + 1]);
                self.insert(plan, from as u32, behind as u32, (behind >> 32) as u32, level.observed == Some(at as u32));
            }
        }
        while self.levels.front().is_some_and(Option::is_none) && self.levels.len() > 1 {
            self.levels.pop_front();
            self.first += 1;
        }
    }

    /// Whether the next step of every thread is known in all cuts of the next level.
    pub(super) fn can_go_on(&mut self, plan: &Plan, known: &dyn Fn(usize, u32) -> bool) -> bool {
        let Some(Some(level)) = self.levels.front() else { return !self.is_done() };
        let (words, stride) = (self.layout.words, self.layout.words + BEHIND);
        for row in level.rows.chunks_exact(stride) {
            self.layout.unpack(&row[..words], &mut self.cut);
            if !(0..plan.threads()).all(|t| self.cut.is_stopped(t) || known(t, self.cut.positions[t])) {
                return false;
            }
        }
        true
    }

    /// Examines the next level.
    pub(super) fn advance(&mut self, plan: &Plan, monitor: &dyn Monitor, complete_ends: bool) {
        let Some(level) = self.levels.pop_front() else { return };
        let number = self.first;
        self.first += 1;
        let Some(mut level) = level else { return };
        let (words, stride) = (self.layout.words, self.layout.words + BEHIND);
        let kept = self.narrow(&level, number);
        let kept = kept.as_deref();
        let count = kept.map_or(level.cuts as usize, <[u32]>::len);
        self.tally.cuts += count as u64;
        self.tally.levels += 1;
        self.tally.widest = self.tally.widest.max(count as u64);
        for i in 0..count {
            let at = kept.map_or(i as u32, |kept| kept[i]);
            let row = &level.rows[at as usize * stride..][..stride];
            self.layout.unpack(&row[..words], &mut self.cut);
            let cost = (row[words] >> 32) as u32;
            let link = self.links.len() as u32;
            self.links.push(Link { from: row[words + 1] as u32, thread: row[words] as u32 });
            self.expand(plan, monitor, link, cost, level.observed == Some(at), complete_ends);
        }
        let own = level.rows.capacity() * 8 + level.index.allocation_size();
        let link = std::mem::size_of::<Link>();
        if count as u64 == self.tally.widest {
            self.tally.per_cut = own as f64 / count.max(1) as f64 + link as f64;
        }
        let bytes = own + self.links.capacity() * link;
        self.tally.bytes = self.tally.bytes.max(bytes as u64);
        level.rows.clear();
        level.index.clear();
        level.cuts = 0;
        level.observed = None;
        if self.spare.len() < 8 {
            self.spare.push(level);
        }
        if self.links.len() > self.sweep_at {
            self.sweep();
        }
    }

    /// The cuts to keep if a level has too many: the observed run's, and those that deviate least.
    fn narrow(&mut self, level: &Level, number: u64) -> Option<Vec<u32>> {
        let (words, stride) = (self.layout.words, self.layout.words + BEHIND);
        let too_many = (level.cuts as usize).checked_sub(self.width).filter(|&more| more > 0)?;
        let mut all: Vec<(bool, u32, u32)> = (0..level.cuts)
            .map(|at| (level.observed != Some(at), (level.rows[at as usize * stride + words] >> 32) as u32, at))
            .collect();
        all.sort_unstable();
        all.truncate(self.width);
        self.tally.dropped += too_many as u64;
        self.tally.incomplete_from.get_or_insert(number);
        let mut kept: Vec<u32> = all.into_iter().map(|(_, _, at)| at).collect();
        kept.sort_unstable();
        Some(kept)
    }

    /// Makes the cuts after `self.cut`.
    fn expand(
        &mut self,
        plan: &Plan,
        monitor: &dyn Monitor,
        link: u32,
        cost: u32,
        observed: bool,
        complete_ends: bool,
    ) {
        if complete_ends && self.cut.is_complete(plan) {
            match monitor.finish(&self.cut.monitor) {
                Judgement::Bad => self.violated(Violation { event: None, cost, link, thread: None }),
                Judgement::Unknown => self.is_unknown(),
                Judgement::Good => {}
            }
        }
        // Who is next in the observed order, of all and of those who can go on.
        let mut earliest = [(u32::MAX, usize::MAX); 2];
        let mut soonest: Option<(EventId, usize)> = None;
        let threads = plan.threads();
        for t in 0..threads {
            let Some(step) = self.cut.next(plan, t) else { continue };
            let event = step.event.index() as u32;
            if event < earliest[0].0 {
                earliest[1] = earliest[0];
                earliest[0] = (event, t);
            } else if event < earliest[1].0 {
                earliest[1] = (event, t);
            }
            if observed
                && soonest.is_none_or(|(first, _)| step.event < first)
                && self.cut.enabled(plan, t, step)
                && !self.cut.too_early(plan, t, step)
            {
                soonest = Some((step.event, t));
            }
        }
        for t in 0..threads {
            let Some(step) = self.cut.next(plan, t) else { continue };
            let kept = self.cut.enabled(plan, t, step);
            let letter = if kept { step.letter } else { self.cut.changed(plan, step) };
            if kept && self.cut.too_early(plan, t, step) || !kept && letter.is_none() {
                continue;
            }
            self.next.copy_from(&self.cut);
            let event = step.event;
            let ahead = earliest[0].1 != t && earliest[0].0 < event.index() as u32;
            let cost = cost + u32::from(ahead);
            if kept {
                self.next.advance(plan, t, step);
            } else {
                self.next.stop(plan, t, step);
            }
            let judgement = match letter {
                Some(letter) => self.memo.step(monitor, &mut self.next.monitor, letter),
                None => Judgement::Good,
            };
            match judgement {
                Judgement::Bad => {
                    self.violated(Violation { event: Some(event), cost, link, thread: Some(plan.code(t, step)) });
                    continue;
                }
                Judgement::Unknown => {
                    self.tally.unknown_state.clone_from(&self.next.monitor);
                    self.tally.unknown = true;
                }
                Judgement::Good => {}
            }
            // A changed read that leaves the monitor as it was leads nowhere that its thread, had it stopped before the
            // read, would not be. (An update leaves an unknown value behind.)
            if !kept && !matches!(step.action, Action::Update { .. }) && self.next.monitor == self.cut.monitor {
                continue;
            }
            if !plan.open_ended {
                self.next.settle(plan, |_| ());
            }
            let code = plan.code(t, step);
            self.insert(plan, link, code, cost, kept && observed && soonest.is_some_and(|(_, first)| first == t));
        }
    }

    fn is_unknown(&mut self) {
        self.tally.unknown = true;
        self.tally.unknown_state.clone_from(&self.cut.monitor);
    }

    fn violated(&mut self, violation: Violation) {
        let known = self.violations.entry(violation.event).or_insert(violation);
        if violation.cost < known.cost {
            *known = violation;
        }
    }

    /// Drops links that lead to no cut that is left.
    fn sweep(&mut self) {
        let stride = self.layout.words + BEHIND;
        let mut needed = vec![false; self.links.len()];
        let mut need = |link: u64| {
            if (link as usize) < needed.len() {
                needed[link as usize] = true;
            }
        };
        for level in self.levels.iter().flatten() {
            level.rows.chunks_exact(stride).for_each(|row| need(row[stride - 1]));
        }
        self.violations.values().for_each(|violation| need(u64::from(violation.link)));
        for at in (0..self.links.len()).rev() {
            let from = self.links[at].from;
            if needed[at] && from != ROOT {
                needed[from as usize] = true;
            }
        }
        let mut moved = vec![ROOT; self.links.len()];
        let mut kept = 0;
        for at in 0..self.links.len() {
            if needed[at] {
                let Link { from, thread } = self.links[at];
                let from = if from == ROOT { ROOT } else { moved[from as usize] };
                moved[at] = kept as u32;
                self.links[kept] = Link { from, thread };
                kept += 1;
            }
        }
        self.links.truncate(kept);
        for level in self.levels.iter_mut().flatten() {
            level.rows.chunks_exact_mut(stride).for_each(|row| {
                if row[stride - 1] != u64::from(ROOT) {
                    row[stride - 1] = u64::from(moved[row[stride - 1] as usize]);
                }
            });
        }
        self.violations.values_mut().for_each(|violation| violation.link = moved[violation.link as usize]);
        self.sweep_at = (kept * 2).max(1 << 16);
    }

    /// Who ran, one after the other, to break the property: codes of the plan's threads.
    pub(super) fn way(&self, violation: &Violation) -> Vec<usize> {
        let mut threads: Vec<usize> = violation.thread.map(|code| code as usize).into_iter().collect();
        let mut at = violation.link;
        while at != ROOT {
            let Link { from, thread } = self.links[at as usize];
            if from != ROOT {
                threads.push(thread as usize);
            }
            at = from;
        }
        threads.reverse();
        threads
    }
}

/// What monitors with small states did before: most steps of a level are those of its neighbours.
struct Memo {
    steps: Vec<Option<Remembered>>,
}

#[derive(Clone, Copy)]
struct Remembered {
    from: [u64; 2],
    letter: Letter,
    to: [u64; 2],
    judgement: Judgement,
}

impl Memo {
    const BITS: u32 = 12;

    fn new(words: usize) -> Memo {
        Memo { steps: vec![None; if words <= 2 { 1 << Self::BITS } else { 0 }] }
    }

    #[inline]
    fn step(&mut self, monitor: &dyn Monitor, state: &mut [u64], letter: Letter) -> Judgement {
        if self.steps.is_empty() {
            return monitor.step(state, letter);
        }
        let mut from = [u64::from(letter.0) << 32, 0];
        from[..state.len()].copy_from_slice(state);
        let mixed = (from[0] ^ from[1].rotate_left(29) ^ u64::from(letter.0) << 17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut self.steps[(mixed >> (64 - Self::BITS)) as usize];
        if let Some(known) = slot
            && known.from == from
            && known.letter == letter
        {
            state.copy_from_slice(&known.to[..state.len()]);
            return known.judgement;
        }
        let judgement = monitor.step(state, letter);
        let mut to = [0; 2];
        to[..state.len()].copy_from_slice(state);
        *slot = Some(Remembered { from, letter, to, judgement });
        judgement
    }
}

#[inline]
fn hash(row: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    for &word in row {
        hasher.write_u64(word);
    }
    hasher.finish()
}
