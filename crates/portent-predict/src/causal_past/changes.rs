//! Every read that could see another write, and every final value that could be another, as far as the clocks tell.

use super::Causal;
use super::audit::{Audited, MOST, within};
use crate::asking::Key;
use crate::kinds;
use portent_order::{Goal, Writer};
use portent_trace::VarId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Groups of reads that could see another write, and of final values that could be another.
pub(crate) type Changes = Vec<(Key, Audited)>;

impl Causal<'_, '_> {
    /// Every read that could see another write, and every final value that could be another, as far as the clocks tell; `None` if
    /// told to stop.
    pub(crate) fn changes(&self, stop: &dyn Fn() -> bool) -> Option<Changes> {
        let (facts, trace) = (self.facts, self.facts.trace);
        let mut found: FxHashMap<Key, Audited> = FxHashMap::default();
        let mut add = |goal: Goal| found.entry(kinds::key(facts, &goal)).or_default().add(goal);
        let by_place = self.writes.by_place(facts);
        let mut full: FxHashSet<[u32; 3]> = FxHashSet::default();
        let mut counts: FxHashMap<[u32; 3], usize> = FxHashMap::default();
        let mut position = vec![0u32; trace.threads()];
        let mut needs = vec![0u32; trace.threads()];
        for event in trace.events() {
            if event.id.index().is_multiple_of(1 << 12) && stop() {
                return None;
            }
            let t = event.thread.index();
            let place = position[t];
            position[t] += 1;
            let Some(x) = event.op.variable().filter(|_| event.op.reads()) else { continue };
            let lists = &by_place[x.index()];
            if lists.is_empty() {
                continue;
            }
            let saw = facts.saw(event.id);
            needs.fill(0);
            self.clocks.join(&mut needs, t, place);
            if saw != Writer::Init && !self.is_overwritten(x, Writer::Init, &needs) {
                add(Goal::Nondeterminism { read: event.id, challenger: Writer::Init });
            }
            let place_of = |writer: Writer| match writer {
                Writer::Init => u32::MAX,
                Writer::Event(w) => trace.event(w).loc.to_bits(),
            };
            let (here, seen) = (event.loc.to_bits(), place_of(saw));
            for ((u, all), places) in self.writes.of_variable(x).zip(lists) {
                // What a thread writes is overwritten by what it writes next, if that must have happened.
                let last = all.partition_point(|&at| at < needs[u]).checked_sub(1).map(|at| all[at]);
                let low = last.unwrap_or(0);
                let end = if u == t { place } else { self.clocks.without(u, t, place) };
                if within(all, low, end).is_empty() {
                    continue;
                }
                for (loc, list) in places {
                    let group = [here, seen, loc.to_bits()];
                    if full.contains(&group) {
                        continue;
                    }
                    for &at in within(list, low, end) {
                        let challenger = Writer::Event(self.program(u)[at as usize]);
                        if challenger == saw || (at < needs[u] && self.is_overwritten(x, challenger, &needs)) {
                            continue;
                        }
                        add(Goal::Nondeterminism { read: event.id, challenger });
                        let count = counts.entry(group).or_default();
                        *count += 1;
                        if *count > MOST {
                            full.insert(group);
                            break;
                        }
                    }
                }
            }
        }
        let ends: Vec<u32> = (0..self.threads()).map(|t| self.program(t).len() as u32).collect();
        for x in (0..trace.variables()).map(VarId::new) {
            for (t, places) in self.writes.of_variable(x) {
                // Only the last write of a thread can be the last of all.
                let Some(&last) = places.last() else { continue };
                let challenger = self.program(t)[last as usize];
                if facts.last_write(x) != Some(challenger) && !self.is_overwritten(x, Writer::Event(challenger), &ends)
                {
                    add(Goal::FinalValue { variable: x, challenger });
                }
            }
        }
        let mut changes: Changes = found.into_iter().collect();
        for (_, audited) in &mut changes {
            audited.sort(|goal| self.distance(goal));
        }
        changes.sort_by(|a, b| a.1.instances.first().cmp(&b.1.instances.first()).then_with(|| a.0.cmp(&b.0)));
        Some(changes)
    }
}
