//! Happens-before against its definition, and the detector against a plain one.

use super::clocks::orders;
use super::{Rear, detect, ordered};
use portent_trace::generate::{TinyShape, tiny, tiny_std};
use portent_trace::{EventId, Op, Trace};

/// Happens-before by its definition: a graph over events, and reachability.
#[allow(clippy::needless_range_loop)] // A matrix is indexed.
fn reachable(trace: &Trace, relaxed_too: bool) -> Vec<Vec<bool>> {
    let n = trace.len();
    let mut reach = vec![vec![false; n]; n];
    let op = |i: usize| trace.op(EventId::new(i));
    for b in 0..n {
        for a in 0..b {
            let (ea, eb) = (EventId::new(a), EventId::new(b));
            let edge = trace.thread(ea) == trace.thread(eb)
                || match (op(a), op(b)) {
                    (Op::Release(l, m), Op::Acquire(k, o)) => l == k && m.conflicts_with(o),
                    (Op::Send(k), Op::Receive(j)) => k == j,
                    (Op::Post(s), Op::Wait(r)) => s == r,
                    (Op::Notify(..), Op::Wake(_)) => {
                        trace.pairing_of_wake(eb).is_some_and(|k| trace.pairings()[k.index()].notify == ea)
                    }
                    (w, r) if w.is_atomic() && r.is_atomic() && w.writes() && r.reads() => {
                        let through = (a + 1..b).filter(|&c| op(c).writes() && op(c).variable() == w.variable());
                        let unbroken = through.into_iter().all(|c| matches!(op(c), Op::Update(..)));
                        let (releases, acquires) = (orders(w).1 || relaxed_too, orders(r).0 || relaxed_too);
                        w.variable() == r.variable() && unbroken && releases && acquires
                    }
                    _ => false,
                };
            if edge {
                reach[a][b] = true;
            }
        }
    }
    let through_fences = |w: usize, r: usize| {
        let between = (w + 1..r).filter(|&c| op(c).writes() && op(c).variable() == op(w).variable());
        let unbroken = between.into_iter().all(|c| matches!(op(c), Op::Update(..)));
        let atomic = op(w).is_atomic() && op(r).is_atomic() && op(w).writes() && op(r).reads();
        atomic && unbroken && op(w).variable() == op(r).variable()
    };
    let thread = |i: usize| trace.thread(EventId::new(i));
    for (w, r) in (0..n).flat_map(|r| (0..r).map(move |w| (w, r))).filter(|&(w, r)| through_fences(w, r)) {
        for a in (0..=w).filter(|&a| thread(a) == thread(w)) {
            let from = if a == w { orders(op(w)).1 } else { matches!(op(a), Op::Fence(order) if order.releases()) };
            for b in (r..n).filter(|&b| thread(b) == thread(r)) {
                let to = if b == r { orders(op(r)).0 } else { matches!(op(b), Op::Fence(order) if order.acquires()) };
                reach[a][b] |= from && to;
            }
        }
    }
    for k in 0..n {
        for a in 0..k {
            if reach[a][k] {
                for b in k..n {
                    reach[a][b] |= reach[k][b];
                }
            }
        }
    }
    reach
}

#[test]
fn clocks_and_reachability_agree_on_every_pair_of_events_of_random_traces() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    for seed in 0..4_000u64 {
        let shape = &shapes[seed as usize % shapes.len()];
        let trace = tiny(seed, shape);
        let story = || tiny_std(seed, shape);
        let strict = reachable(&trace, false);
        let relaxed = reachable(&trace, true);
        let hindsight = Rear::new(&trace).window(0..trace.len());
        let mut racy = std::collections::BTreeSet::new();
        for b in (0..trace.len()).map(EventId::new) {
            for a in (0..b.index()).map(EventId::new) {
                let truth = strict[a.index()][b.index()];
                assert_eq!(hindsight.ordered(&trace, a, b), truth, "{a:?} {b:?}\n{}", story());
                let (x, y) = (trace.op(a), trace.op(b));
                if !truth && x.conflicts_with(y) && !(x.is_atomic() && y.is_atomic()) {
                    racy.insert(x.variable());
                }
            }
        }
        let mut reported = std::collections::BTreeSet::new();
        detect(&trace, |race| {
            let (a, b) = (race.first.index(), race.second.index());
            assert!(!strict[a][b], "reported though ordered: {race:?}\n{}", story());
            assert_eq!(race.relaxed_only, relaxed[a][b], "{race:?}\n{}", story());
            reported.insert(trace.op(race.first).variable());
        });
        assert_eq!(reported, racy, "variables with a race\n{}", story());
    }
}

#[test]
fn a_window_sees_the_same_as_the_whole() {
    let trace = tiny(7, &TinyShape::EVERYTHING);
    let whole = Rear::new(&trace).window(0..trace.len());
    let mut rear = Rear::new(&trace);
    let mut start = 0;
    while start + 2 < trace.len() {
        let span = start..(start + 5).min(trace.len());
        let part = rear.window(span.clone());
        for b in span.clone().map(EventId::new) {
            for a in (span.start..b.index()).map(EventId::new) {
                assert_eq!(part.ordered(&trace, a, b), whole.ordered(&trace, a, b));
            }
        }
        start += 2;
    }
}

#[test]
fn a_relaxed_flag_orders_nothing_and_a_released_one_does() {
    let races = |std: &str| {
        let mut found = Vec::new();
        detect(&Trace::from_std(std).unwrap(), |race| found.push(race.relaxed_only));
        found
    };
    assert_eq!(races("T1|w(x)\nT1|w.rlx(f)\nT2|r.rlx(f)\nT2|r(x)\n"), [true]);
    assert_eq!(races("T1|w(x)\nT1|w.rel(f)\nT2|r.acq(f)\nT2|r(x)\n"), [] as [bool; 0]);
    assert_eq!(races("T1|w(x)\nT1|w.rel(f)\nT3|u.rlx(f)\nT2|r.acq(f)\nT2|r(x)\n"), [] as [bool; 0]);
    assert_eq!(races("T1|w(x)\nT1|w.rel(f)\nT3|w.rlx(f)\nT2|r.acq(f)\nT2|r(x)\n"), [false]);
}

/// The detector by its definition: the last access of each thread and class, until a plain write comes after it.
fn detected(trace: &Trace) -> Vec<(EventId, EventId, bool)> {
    let (strict, relaxed) = (reachable(trace, false), reachable(trace, true));
    let mut last: Vec<Vec<EventId>> = vec![Vec::new(); trace.variables()];
    let mut reports = Vec::new();
    for event in trace.events() {
        let Some(x) = event.op.variable() else { continue };
        let ordered = |a: EventId| trace.thread(a) == event.thread || strict[a.index()][event.id.index()];
        for &e in &last[x.index()] {
            let both_atomic = trace.op(e).is_atomic() && event.op.is_atomic();
            if !ordered(e) && trace.op(e).conflicts_with(event.op) && !both_atomic {
                reports.push((e, event.id, relaxed[e.index()][event.id.index()]));
            }
        }
        let class = |op: Op| (op.writes(), op.is_atomic());
        let same = |e: EventId| trace.thread(e) == event.thread && class(trace.op(e)) == class(event.op);
        let covers = class(event.op) == (true, false);
        last[x.index()].retain(|&e| !(same(e) || (covers && ordered(e))));
        last[x.index()].push(event.id);
    }
    reports
}

#[test]
fn the_detector_reports_what_its_definition_says_in_the_same_order() {
    let mut shapes: Vec<TinyShape> = TinyShape::all().collect();
    shapes.push(TinyShape { name: "long", events: 60, threads: 8, variables: 3, locks: 3, ..TinyShape::EVERYTHING });
    shapes.push(TinyShape { name: "long-plain", events: 60, threads: 6, variables: 2, ..TinyShape::PLAIN });
    let mut reports = 0;
    for seed in 0..6_000u64 {
        let shape = &shapes[seed as usize % shapes.len()];
        let trace = tiny(seed, shape);
        let mut found = Vec::new();
        detect(&trace, |race| found.push((race.first, race.second, race.relaxed_only)));
        assert_eq!(found, detected(&trace), "{}", tiny_std(seed, shape));
        reports += found.len();
    }
    assert!(reports > 10_000, "{reports}");
}

#[test]
fn pairs_far_apart_are_ordered_as_in_a_window() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    for seed in 0..1_000u64 {
        let trace = tiny(seed, &shapes[seed as usize % shapes.len()]);
        let whole = Rear::new(&trace).window(0..trace.len());
        let all = |b: usize| (0..b).map(move |a| (EventId::new(a), EventId::new(b)));
        let pairs: Vec<(EventId, EventId)> = (0..trace.len()).flat_map(all).collect();
        let found = ordered(&trace, &pairs);
        assert!(pairs.iter().all(|pair| found.contains(pair) == whole.ordered(&trace, pair.0, pair.1)));
    }
}
