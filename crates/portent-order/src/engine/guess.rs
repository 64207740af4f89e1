//! Guesses, where there are formulas: the threads are executed by simple rules, and what they do is looked at.
//!
//! In a window with formulas most of what can happen at all happens in many ways, and executing one costs a fraction of
//! proposing an order, holding it against the formulas and learning from it. Simple rules first (the observed order;
//! the threads that the target needs first). Where they get stuck, as much as is possible of an order that answered an
//! earlier question; then from the way that led furthest, some of it taken back, another way at random, or without
//! the value that is why a read has to wait. A guess that gets stuck proves nothing. All of it is the same in every run.

use super::choices::reaches_values;
use super::index::{Id, IndexVec, Node};
use super::symbolic::{Evaluation, Held};
use super::target::Target;
use super::threads::{Caution, Threads};
use super::window::Window;
use std::cmp::Reverse;

/// Which thread goes on when several can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// Threads that the target does not need go on only when no other can.
    needed_first: bool,
    /// When a read goes on that would see another value than in the trace.
    changed: Changed,
    /// Threads in an order that changes every now and then; 0: the one whose next event came first in the trace.
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    LikeOthers,
    AfterOthers,
    AfterAll,
}

const OBSERVED: Rule = Rule { needed_first: false, changed: Changed::LikeOthers, seed: 0 };
const SIMPLE: [Rule; 4] = [
    OBSERVED,
    Rule { changed: Changed::AfterAll, ..OBSERVED },
    Rule { needed_first: true, ..OBSERVED },
    Rule { needed_first: true, changed: Changed::AfterAll, seed: 0 },
];

/// How often all events of the window may be taken for one question.
const ROUNDS: u64 = 10;
/// How many events are taken before threads come in another order.
const SPELL: u64 = 16;
/// How many events are taken back at first when a guess is stuck.
const LEAST_BACK: usize = 16;
/// How many events can be taken back and redone for the price of one that is new.
const REDONE: usize = 8;
/// How many orders are remembered, and how many of them are followed for a question.
const REMEMBERED: usize = 64;
const FOLLOWED: usize = 3;

/// How far the threads are on the way to a target, and with how few events.
type Progress = (usize, Reverse<usize>);

#[derive(Clone)]
pub(crate) struct Guess<'w, 't> {
    w: &'w Window<'t>,
    threads: Threads<'w, 't>,
    /// The order that came furthest.
    best: Vec<Node>,
    /// For each read, what it should rather not see; and whether it should rather see what it saw in the trace.
    avoid: IndexVec<Node, Option<Held>>,
    insist: IndexVec<Node, bool>,
    /// Orders that led somewhere for other questions, and how many there were.
    known: Vec<Vec<Node>>,
    so_far: usize,
    ranked: Vec<((bool, bool, bool, u32), Node)>,
    /// Events still to be taken before it gives up.
    left: u64,
}

impl<'w, 't> Guess<'w, 't> {
    /// For a window; `None` where there are no formulas.
    pub(crate) fn of(w: &'w Window<'t>) -> Option<Self> {
        Some(Guess {
            w,
            threads: Threads::new(w, Evaluation::of(w)?),
            best: Vec::new(),
            avoid: IndexVec::repeat(None, w.len()),
            insist: IndexVec::repeat(false, w.len()),
            known: Vec::new(),
            so_far: 0,
            ranked: Vec::new(),
            left: 0,
        })
    }

    /// An order that reaches the target from the start of the window, if simple rules or orders that it remembers lead there;
    /// here and in [`Guess::insist`], executes at most so many events.
    pub(crate) fn find(&mut self, target: &Target, most: u64) -> Option<&[Node]> {
        self.left = most.min(ROUNDS * self.w.len() as u64);
        self.avoid.fill(None);
        self.insist.fill(false);
        let found = target.stuck.is_none() && (self.by_rules(target) || self.by_memory(target));
        found.then(|| self.remembered())
    }

    /// The same by trial and error, after [`Guess::find`] for the same target.
    pub(crate) fn insist(&mut self, target: &Target) -> Option<&[Node]> {
        if target.stuck.is_some() {
            return None;
        }
        let found = self.wander(target);
        if !found {
            self.threads.back_to(0);
            self.threads.redo(&self.best);
        }
        let order = self.remembered();
        found.then_some(order)
    }

    fn by_rules(&mut self, target: &Target) -> bool {
        SIMPLE.into_iter().any(|rule| {
            self.threads.back_to(0);
            self.run(target, rule)
        })
    }

    /// Follows remembered orders; if none leads to the target, the one that leads furthest is the best.
    fn by_memory(&mut self, target: &Target) -> bool {
        let mut furthest = self.progress(target);
        self.best.clone_from(&self.threads.order);
        for at in self.closest(target) {
            self.threads.back_to(0);
            self.threads.follow(target, &self.known[at]);
            if self.run(target, OBSERVED) {
                return true;
            }
            let progress = self.progress(target);
            if progress > furthest {
                furthest = progress;
                self.best.clone_from(&self.threads.order);
            }
        }
        false
    }

    /// The remembered orders that have most in common with what the target needs.
    fn closest(&self, target: &Target) -> Vec<usize> {
        let w = self.w;
        let in_common = |order: &Vec<Node>| order.iter().filter(|&&node| w.is_in(&target.cut, node)).count();
        let mut ranked: Vec<_> = self.known.iter().enumerate().map(|(at, order)| (in_common(order), at)).collect();
        ranked.sort_unstable();
        ranked.iter().rev().take(FOLLOWED).map(|&(_, at)| at).collect()
    }

    /// The order of the threads, which is remembered.
    fn remembered(&mut self) -> &[Node] {
        match self.known.get_mut(self.so_far % REMEMBERED) {
            Some(oldest) => oldest.clone_from(&self.threads.order),
            None => self.known.push(self.threads.order.clone()),
        }
        self.so_far += 1;
        &self.threads.order
    }

    /// Takes back a part of the best, and tries another way from there; a larger part each time that it leads less far.
    fn wander(&mut self, target: &Target) -> bool {
        self.threads.back_to(0);
        self.threads.redo(&self.best);
        let mut furthest = self.progress(target);
        let mut back = LEAST_BACK;
        for seed in 1.. {
            if self.left == 0 {
                break;
            }
            // Who waits, and for what.
            self.run(target, OBSERVED);
            let blamed = if seed % 3 == 0 { self.blame(target, seed) } else { None };
            let kept = blamed.unwrap_or(self.best.len().saturating_sub(back)).min(self.best.len());
            self.threads.back_to(kept);
            let changed = match seed % 3 {
                0 => Changed::LikeOthers,
                1 => Changed::AfterOthers,
                _ => Changed::AfterAll,
            };
            if self.run(target, Rule { needed_first: seed % 2 == 1, changed, seed }) {
                return true;
            }
            let progress = self.progress(target);
            if progress > furthest || kept == 0 {
                furthest = progress;
                back = LEAST_BACK;
                self.best.clone_from(&self.threads.order);
            } else {
                back *= 2;
                self.threads.back_to(kept);
                self.threads.redo(&self.best[kept..]);
                self.left = self.left.saturating_sub(((self.best.len() - kept) / REDONE) as u64);
            }
            self.left = self.left.saturating_sub(1);
        }
        false
    }

    /// Where to go back to for a thread that waits: to a read that is why, to see something else then.
    fn blame(&mut self, target: &Target, seed: u64) -> Option<usize> {
        let (w, threads) = (self.w, &self.threads);
        let mut blamed: Vec<Node> = Vec::new();
        for chain in w.chains().filter(|&chain| threads.position[chain] < target.cut[chain]) {
            blamed.extend(threads.evaluation.partner(w.chain[chain][threads.position[chain]]));
            if let Some(last) = threads.refused[chain].and_then(|(_, last)| last.node()) {
                threads.evaluation.blame(last, &mut blamed);
            }
        }
        let &read = blamed.get(shuffle(seed, 0, 0) as usize % blamed.len().max(1))?;
        if threads.evaluation.has_changed(read) {
            self.insist[read] = true;
        } else {
            self.avoid[read] = Some(threads.evaluation.saw(read));
        }
        threads.order.iter().rposition(|&node| node == read)
    }

    fn progress(&self, target: &Target) -> Progress {
        let needed = self.threads.position.iter().zip(target.cut.iter()).map(|(at, cut)| at.min(cut).index()).sum();
        (needed, Reverse(self.threads.order.len()))
    }

    /// Goes on until the target is reached, or nothing can happen.
    fn run(&mut self, target: &Target, rule: Rule) -> bool {
        while !target.cut.row().is_within(&self.threads.position) {
            if self.left == 0 || !self.advance(target, rule) {
                return false;
            }
            self.left -= 1;
        }
        let evaluation = &mut self.threads.evaluation;
        target.last.is_none_or(|(x, last)| evaluation.last_write(x) == last)
            && reaches_values(self.w, evaluation, target)
    }

    /// Takes the first event, by the rule, that can happen; whether there is one.
    fn advance(&mut self, target: &Target, rule: Rule) -> bool {
        let (w, threads) = (self.w, &mut self.threads);
        self.ranked.clear();
        let spell = threads.order.len() as u64 / SPELL;
        for chain in w.chains().filter(|&chain| !threads.over[chain]) {
            let place = threads.position[chain];
            if place >= target.stop[chain] {
                continue;
            }
            let node = w.chain[chain][place];
            let helps = rule.needed_first && place >= target.cut[chain];
            let (mut changed, mut last) = (false, false);
            if let Some(x) = w.act[node].read() {
                let insists = self.insist[node];
                changed =
                    (insists || rule.changed != Changed::LikeOthers) && !threads.evaluation.would_see_the_same(node, x);
                last = changed && (insists || rule.changed == Changed::AfterAll)
                    || self.avoid[node].is_some_and(|held| threads.evaluation.would_see(x) == held);
            }
            let turn = if rule.seed == 0 { 0 } else { shuffle(rule.seed, spell, chain.index() as u64) };
            self.ranked.push(((last, helps, changed, turn), node));
        }
        self.ranked.sort_unstable();
        let mut take = |caution| self.ranked.iter().any(|&(_, node)| threads.take(target, node, caution));
        Caution::LESS_AND_LESS.into_iter().any(&mut take)
    }
}

/// A number that looks random.
fn shuffle(seed: u64, spell: u64, chain: u64) -> u32 {
    let mut hash = 0;
    for part in [seed, spell, chain] {
        hash = (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    (hash >> 32) as u32
}
