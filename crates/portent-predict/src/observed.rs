//! Races of the observed order itself: what a happens-before detector reports, as findings; and what a lockset detector reports.

use crate::answers::sort_and_name;
use crate::asking::{Flags, Key};
use crate::bug::BugKind;
use crate::examination::{Examination, Pass};
use crate::facts::{Facts, Touch};
use crate::finding::{Evidence, Finding};
use crate::happens_before::{Unordered, detect, ordered_by_relaxed_atomics};
use crate::kinds::{self, Bug, race_frees, race_key, race_places};
use crate::prediction::{Prediction, Stats};
use crate::undecided::{Incomplete, Status, Why};
use portent_order::Model;
use portent_trace::{EventId, LocId, ThreadId, Trace, VarId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Races of the observed order that nothing but relaxed atomics orders, where no race was predicted.
pub(crate) struct RelaxedRaces;

impl<'a, 't> Pass<'a, 't> for RelaxedRaces {
    fn run(&mut self, examination: &mut Examination<'a, 't>) {
        if !examination.wants(BugKind::Race) {
            return;
        }
        let (facts, model, stop) = (examination.facts, examination.options.model, examination.stop);
        let (races, complete) = ordered_by_relaxed_atomics(facts.trace, &|| stop.why().is_some());
        if !complete {
            let why = stop.why().unwrap_or(Why::Budget);
            let what = "races that nothing but relaxed atomics orders that were not looked for".to_owned();
            let entry = Incomplete::many(BugKind::Race, Status::NotExamined, 0, why, what);
            examination.prediction.incomplete.push(Incomplete { at_least: true, ..entry });
            examination.prediction.partial = examination.prediction.partial.or(stop.why());
        }
        let findings = &mut examination.prediction.findings;
        let goals = findings.iter().filter_map(Finding::goal);
        let known: BTreeSet<Key> = goals.map(|goal| kinds::key(facts, &goal)).collect();
        let unknown =
            races.into_iter().filter(|(race, _)| !known.contains(&race_key(facts.trace, race.first, race.second)));
        findings.extend(unknown.map(|(race, instances)| observed(facts.trace, Some(model), race, instances)));
    }
}

/// A race of the observed order as a finding.
fn observed(trace: &Trace, model: Option<Model>, race: Unordered, instances: u64) -> Finding {
    let [first, second] = race_places(trace, race.first, race.second);
    Finding {
        id: String::new(),
        evidence: Evidence::Observed,
        model,
        object: first.object.clone(),
        instances,
        // A detector does not keep every access: it does not claim to count every pair.
        instances_exact: false,
        flags: Flags { relaxed_only: race.relaxed_only, ..Flags::default() },
        witness: None,
        other_branch: None,
        bug: Bug::Race { first, second, frees: race_frees(trace, race.first, race.second) },
    }
}

/// The races that a happens-before detector reports on the observed order, for comparison.
pub fn by_happens_before(trace: &Trace) -> Prediction {
    let started = Instant::now();
    let mut groups: BTreeMap<Key, Finding> = BTreeMap::new();
    detect(trace, |race| {
        let group = groups.entry(race_key(trace, race.first, race.second));
        let finding = group.or_insert_with(|| observed(trace, None, race, 0));
        finding.instances += 1;
        finding.flags.relaxed_only &= race.relaxed_only;
    });
    let mut findings: Vec<Finding> = groups.into_values().collect();
    sort_and_name(trace, &mut findings);
    let candidates = findings.iter().map(|finding| finding.instances).sum();
    let stats = Stats { time: started.elapsed(), candidates, ..Stats::default() };
    Prediction { findings, stats, ..Prediction::default() }
}

/// Accesses of a variable by one thread, at one place, under the same locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Class {
    thread: ThreadId,
    touch: Touch,
    held: u32,
    place: LocId,
}

/// What a lockset detector reports, for comparison: conflicting accesses of different threads without a common lock, whatever else
/// orders them. Most of that can never happen at once.
pub fn by_locksets(trace: &Trace) -> Prediction {
    let started = Instant::now();
    let facts = Facts::new(trace);
    // In the order in which they were met: the first access of each, and how many there are.
    let mut classes: Vec<Vec<(Class, EventId, u64)>> = vec![Vec::new(); trace.variables()];
    let mut known: FxHashMap<(VarId, Class), usize> = FxHashMap::default();
    for event in trace.events() {
        let Some(x) = event.op.variable() else { continue };
        let (held, touch) = (facts.held_set(event.id), Touch::of(event.op));
        let class = Class { thread: event.thread, touch, held, place: event.loc };
        let of = &mut classes[x.index()];
        let at = *known.entry((x, class)).or_insert(of.len());
        match of.get_mut(at) {
            Some((.., count)) => *count += 1,
            None => of.push((class, event.id, 1)),
        }
    }
    let mut groups: BTreeMap<Key, Finding> = BTreeMap::new();
    for of in &classes {
        for (at, (one, first, count)) in of.iter().enumerate() {
            for (other, second, others) in &of[at + 1..] {
                let races = one.thread != other.thread
                    && one.touch.races_with(other.touch)
                    && !facts.sets_conflict(one.held, other.held);
                if races {
                    let race = Unordered { first: *first, second: *second, relaxed_only: false };
                    let group = groups.entry(race_key(trace, race.first, race.second));
                    let finding = group.or_insert_with(|| Finding {
                        evidence: Evidence::Predicted,
                        instances_exact: true,
                        ..observed(trace, None, race, 0)
                    });
                    finding.instances = finding.instances.saturating_add(count.saturating_mul(*others));
                }
            }
        }
    }
    let mut findings: Vec<Finding> = groups.into_values().collect();
    sort_and_name(trace, &mut findings);
    let candidates = findings.iter().map(|finding| finding.instances).sum();
    let stats = Stats { time: started.elapsed(), candidates, ..Stats::default() };
    Prediction { findings, stats, ..Prediction::default() }
}
