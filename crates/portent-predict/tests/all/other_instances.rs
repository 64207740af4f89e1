//! Other instances of a finding are instances: brute force reaches each, and each is at the same places.

use portent_order::{Model, brute};
use portent_predict::{BugKind, Control, Options, other_instances, predict};
use portent_trace::generate::{TinyShape, tiny_events};
use portent_trace::{EventList, LocId, Trace};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn options(model: Model) -> Options {
    let kinds = vec![BugKind::Race, BugKind::Deadlock, BugKind::Atomicity, BugKind::LostUpdate];
    Options { kinds, model, ..Options::default() }
}

#[test]
fn the_last_time_round_a_loop_is_another_instance() {
    let round = "T1|w(x)|1\nT1|w(y)|2\n";
    let trace = Trace::from_std(&format!("{}T2|r(x)|9\n", round.repeat(5))).unwrap();
    let found = predict(&trace, &options(Model::Reads), &Control::default()).findings;
    let [race] = &found[..] else { panic!("{found:?}") };
    let events = |finding: &portent_predict::Finding| -> BTreeSet<u32> {
        finding.places().iter().filter_map(|place| place.event).collect()
    };
    let others: Vec<_> = other_instances(&trace, race, 8, soon()).iter().map(events).collect();
    // The read can only be next to the first write, the last or the middle one: what the finding is about is not told again.
    let mut all = others.clone();
    all.push(events(race));
    all.sort();
    assert_eq!(all, [BTreeSet::from([0, 10]), BTreeSet::from([4, 10]), BTreeSet::from([8, 10])]);
    assert_eq!(other_instances(&trace, race, 1, soon()).len(), 1);
}

#[test]
fn brute_force_reaches_every_one() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    let mut seen = 0;
    for seed in 0..600u64 {
        let (names, mut events) = tiny_events(seed, &shapes[seed as usize % shapes.len()]);
        // Few places, so that each is come to several times.
        for (at, event) in events.iter_mut().enumerate() {
            event.loc = LocId::from_number(at as u64 % 3).unwrap();
        }
        let trace = Trace::from_input(&mut EventList::new(names, events)).unwrap();
        for model in Model::ALL {
            for finding in predict(&trace, &options(model), &Control::default()).findings {
                let places = |finding: &portent_predict::Finding| -> Vec<_> {
                    let mut places: Vec<_> = finding.places().iter().map(|place| place.location).collect();
                    places.sort();
                    places
                };
                for other in other_instances(&trace, &finding, 8, soon()) {
                    assert_ne!(other.goal(), finding.goal());
                    assert_eq!((&other.id, places(&other)), (&finding.id, places(&finding)), "seed {seed}");
                    let goal = other.goal().unwrap();
                    assert!(brute::decide(&trace, model, &goal).is_some(), "seed {seed}, {model}: {goal:?}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 100, "{seen}");
}
