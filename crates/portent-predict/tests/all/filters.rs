//! The filters of the streaming pass never lose: whatever the oracle finds feasible is among the candidates, with every
//! event at a place of its own and with places shared, from a trace and from a source.

use portent_order::{Goal, Kind, Model, brute};
use portent_predict::{BugKind, stream};
use portent_trace::generate::{TinyShape, tiny_events};
use portent_trace::{EventId, EventList, LocId, Lowered, Trace};
use std::collections::BTreeSet;

const KINDS: [BugKind; 3] = [BugKind::Race, BugKind::Atomicity, BugKind::Deadlock];

/// A random trace, whose places are numbered modulo `places`.
fn source(seed: u64, shape: &TinyShape, places: u64) -> EventList<'static> {
    let (names, mut events) = tiny_events(seed, shape);
    for (i, event) in events.iter_mut().enumerate() {
        event.loc = LocId::from_number(i as u64 % places).unwrap();
    }
    EventList::new(names, events)
}

/// The places of a goal, as candidates have them.
fn places(trace: &Trace, goal: &Goal) -> Vec<LocId> {
    let at = |e: &EventId| trace.event(*e).loc;
    match goal {
        Goal::Race { first, second } => vec![at(first).min(at(second)), at(first).max(at(second))],
        Goal::Atomicity { first, remote, second } => vec![at(first), at(remote), at(second)],
        Goal::Deadlock { waiting } => {
            let cycle: Vec<LocId> = waiting.iter().map(at).collect();
            let rotations = (0..cycle.len()).map(|by| [&cycle[by..], &cycle[..by]].concat());
            rotations.min().unwrap_or_default()
        }
        Goal::LostWakeup { pairing } => {
            let pairing = trace.pairings()[pairing.index()];
            vec![at(&pairing.wake), at(&pairing.notify), at(&pairing.sleep)]
        }
        _ => Vec::new(),
    }
}

#[test]
fn whatever_is_feasible_in_sync_is_a_candidate() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    let (mut feasible, mut refuted) = (0u64, 0u64);
    for seed in 0..40_000u64 {
        let shape = &shapes[seed as usize % shapes.len()];
        let spread = [u64::MAX, 5, 2][seed as usize / shapes.len() % 3];
        let trace = Trace::from_input(&mut source(seed, shape, spread)).unwrap();
        let found = stream::candidates_of(&trace, &KINDS);
        assert_eq!((found.complete, found.figures.dropped), ([true; BugKind::ALL.len()], 0));
        let streamed = stream::candidates(&mut Lowered::new(source(seed, shape, spread)), &KINDS).unwrap();
        let story = || format!("seed {seed}, {}, {spread} places\n{:?}", shape.name, tiny_events(seed, shape).1);
        let groups: BTreeSet<(Kind, Vec<LocId>)> =
            found.groups.iter().map(|group| (group.goal.kind(), group.places.clone())).collect();
        assert_eq!(groups.len(), found.groups.len());
        let from_source: BTreeSet<_> = streamed.groups.iter().map(|g| (g.goal.kind(), g.places.clone())).collect();
        // A notify that turns out to be a token is known from the start in a trace only.
        assert!(groups.is_subset(&from_source), "{}", story());
        for group in &found.groups {
            assert_eq!(places(&trace, &group.goal), group.places, "{}", story());
        }
        for kind in [Kind::Race, Kind::Atomicity, Kind::Deadlock, Kind::LostWakeup] {
            for goal in brute::candidates(&trace, kind) {
                let candidate = groups.contains(&(kind, places(&trace, &goal)));
                let reachable = brute::decide(&trace, Model::Sync, &goal).is_some();
                assert!(candidate || !reachable, "lost {goal:?}: {}", story());
                feasible += u64::from(reachable);
                refuted += u64::from(!candidate);
            }
        }
    }
    assert!(feasible > 50_000 && refuted > 3_000, "{feasible} feasible, {refuted} refuted by filters");
}
