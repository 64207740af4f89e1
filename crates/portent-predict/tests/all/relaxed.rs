//! Accesses that only relaxed atomics order (docs/src/internals/semantics.md §1, memory order), by definition: every pair of every trace.

use portent_order::Model;
use portent_predict::{BugKind, Control, Evidence, Finding, Options, predict};
use portent_testing::traces::with_places;
use portent_trace::generate::{TinyShape, tiny_std};
use portent_trace::{EventId, FenceOrder, Op, ReadOrder, Trace, UpdateOrder, WriteOrder};
use std::collections::BTreeSet;

/// Which reads-from counts as order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadsFrom {
    /// Of atomics, from a release to an acquire.
    ReleaseAcquire,
    /// Of atomics, whatever their order.
    Atomic,
}

fn acquires(op: Op) -> bool {
    match op {
        Op::Read(_, order) => !matches!(order, ReadOrder::Plain | ReadOrder::Relaxed),
        Op::Update(_, order) => !matches!(order, UpdateOrder::Relaxed | UpdateOrder::Release),
        _ => false,
    }
}

fn releases(op: Op) -> bool {
    match op {
        Op::Write(_, order) => !matches!(order, WriteOrder::Plain | WriteOrder::Relaxed),
        Op::Update(_, order) => !matches!(order, UpdateOrder::Relaxed | UpdateOrder::Acquire | UpdateOrder::Consume),
        _ => false,
    }
}

/// Happens-before of the observed order: every direct edge, and then everything that follows.
#[allow(clippy::needless_range_loop)] // A matrix is indexed.
fn happens_before(trace: &Trace, counts: ReadsFrom) -> Vec<Vec<bool>> {
    let n = trace.len();
    let op = |e: usize| trace.op(EventId::new(e));
    let thread = |e: usize| trace.thread(EventId::new(e));
    let mut before = vec![vec![false; n]; n];
    for b in 0..n {
        for a in 0..b {
            let reads_from = || {
                if !op(a).writes() || !op(b).reads() || op(a).variable() != op(b).variable() {
                    return false;
                }
                let mut between = (a + 1..b).filter(|&c| op(c).writes() && op(c).variable() == op(a).variable());
                // Updates in between continue what was released.
                let continued = between.clone().all(|c| matches!(op(c), Op::Update(..)));
                let direct = between.next().is_none() && op(a).is_atomic() && op(b).is_atomic();
                (releases(op(a)) && acquires(op(b)) && continued) || (counts == ReadsFrom::Atomic && direct)
            };
            before[a][b] = thread(a) == thread(b)
                || match (op(a), op(b)) {
                    (Op::Release(l, m), Op::Acquire(k, o)) => l == k && m.conflicts_with(o),
                    (Op::Send(k), Op::Receive(j)) => k == j,
                    (Op::Post(s), Op::Wait(r)) => s == r,
                    (Op::Notify(..), Op::Wake(_)) => {
                        let pairing = trace.pairing_of_wake(EventId::new(b)).map(|k| trace.pairings()[k.index()]);
                        pairing.is_some_and(|pairing| pairing.notify.index() == a)
                    }
                    _ => reads_from(),
                };
        }
    }
    // A fence before a write releases through it, one after a read acquires through it ([atomics.fences]).
    let fences =
        |with: fn(FenceOrder) -> bool| (0..n).filter(move |&e| matches!(op(e), Op::Fence(order) if with(order)));
    for (w, r) in (0..n).flat_map(|r| (0..r).map(move |w| (w, r))) {
        let atomic = op(w).is_atomic() && op(r).is_atomic() && op(w).writes() && op(r).reads();
        let others = |c: usize| op(c).writes() && op(c).variable() == op(w).variable();
        let continued = (w + 1..r).filter(|&c| others(c)).all(|c| matches!(op(c), Op::Update(..)));
        if !atomic || op(w).variable() != op(r).variable() || !continued {
            continue;
        }
        let earlier = fences(FenceOrder::releases).filter(|&f| f < w && thread(f) == thread(w));
        let later: Vec<usize> = fences(FenceOrder::acquires).filter(|&g| r < g && thread(g) == thread(r)).collect();
        for from in earlier.chain(releases(op(w)).then_some(w)) {
            later.iter().copied().chain(acquires(op(r)).then_some(r)).for_each(|to| before[from][to] = true);
        }
    }
    loop {
        let mut new = Vec::new();
        for a in 0..n {
            for b in 0..n {
                if !before[a][b] && (0..n).any(|c| before[a][c] && before[c][b]) {
                    new.push((a, b));
                }
            }
        }
        if new.is_empty() {
            return before;
        }
        new.into_iter().for_each(|(a, b)| before[a][b] = true);
    }
}

type Places = (String, String);

/// The pairs of places with accesses that conflict, are not both atomic, and are ordered by relaxed atomics only.
fn ordered_by_relaxed_atomics(trace: &Trace) -> BTreeSet<Places> {
    let strict = happens_before(trace, ReadsFrom::ReleaseAcquire);
    let relaxed = happens_before(trace, ReadsFrom::Atomic);
    let mut places = BTreeSet::new();
    for b in trace.events() {
        for a in trace.events().take(b.id.index()) {
            let races = a.thread != b.thread && a.op.conflicts_with(b.op) && !(a.op.is_atomic() && b.op.is_atomic());
            let (i, j) = (a.id.index(), b.id.index());
            if races && relaxed[i][j] && !strict[i][j] {
                places.insert(sorted([a.loc, b.loc].map(|loc| trace.names().location(loc).to_string())));
            }
        }
    }
    places
}

fn sorted([one, two]: [String; 2]) -> Places {
    if one <= two { (one, two) } else { (two, one) }
}

fn places(trace: &Trace, finding: &Finding) -> Places {
    sorted([0, 1].map(|at| trace.names().location(finding.places()[at].location.unwrap()).to_string()))
}

/// Holds what is told of a trace against the definition, both ways; how many pairs of places only relaxed atomics order, and
/// how many of these are told as races all the same.
fn compare(text: &str, model: Model) -> [usize; 2] {
    let trace = Trace::from_std(text).unwrap();
    let options = Options { kinds: vec![BugKind::Race], model, ..Options::default() };
    let found = predict(&trace, &options, &Control::default()).findings;
    let (relaxed, races): (Vec<&Finding>, Vec<&Finding>) = found.iter().partition(|finding| finding.flags.relaxed_only);
    assert!(relaxed.iter().all(|f| f.evidence == Evidence::Observed && f.witness.is_none()), "{text}");
    let races: BTreeSet<Places> = races.into_iter().map(|finding| places(&trace, finding)).collect();
    let told: BTreeSet<Places> = relaxed.into_iter().map(|finding| places(&trace, finding)).collect();
    let truth = ordered_by_relaxed_atomics(&trace);
    let expected: BTreeSet<Places> = truth.difference(&races).cloned().collect();
    assert_eq!(told, expected, "told, and by definition, in {model}\n{text}");
    [truth.len(), truth.len() - expected.len()]
}

/// The tiny trace of a seed with only so many places in the source.
fn with_few_places(seed: u64, shape: &TinyShape, places: u64) -> String {
    with_places(&tiny_std(seed, shape), |_, place| (place.parse::<u64>().unwrap() % places + 1).to_string())
}

#[test]
fn every_pair_of_places_that_only_relaxed_atomics_order_is_told_unless_it_races_anyway() {
    let base =
        TinyShape { name: "relaxed", atomics: true, updates: true, variables: 3, events: 16, ..TinyShape::PLAIN };
    let open = TinyShape { locks: 1, open_scopes: true, ..base.clone() };
    let mut shapes: Vec<TinyShape> = TinyShape::all().filter(|shape| shape.atomics).collect();
    shapes.push(TinyShape { events: 30, threads: 4, tokens: true, fork_join: true, ..open.clone() });
    shapes.push(TinyShape { values: true, ..base.clone() });
    shapes.extend([base, open]);
    for model in Model::ALL {
        let mut counts = [0, 0];
        for seed in 0..6_000u64 {
            let shape = &shapes[seed as usize % shapes.len()];
            let few = [64, 64, 6, 3][(seed / 7 % 4) as usize];
            let more = compare(&with_few_places(seed, shape, few), model);
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        }
        println!("{model}: {} pairs of places, {} of them races as well", counts[0], counts[1]);
        let races_often = model == Model::Sync;
        assert!(counts[0] > 500 && (counts[0] - counts[1] > 200 || races_often), "{model}: {counts:?}");
    }
}

/// Longer ones, where a thread comes to the same places again and again and learns more in between.
#[test]
fn places_that_threads_come_to_again_are_not_forgotten() {
    let shape = TinyShape { name: "again", atomics: true, updates: true, variables: 3, ..TinyShape::PLAIN };
    let shape = TinyShape { events: 60, threads: 5, locks: 1, open_scopes: true, ..shape };
    let mut count = 0;
    for seed in 0..400u64 {
        count += compare(&with_few_places(seed, &shape, 12), Model::Reads)[0];
    }
    assert!(count > 300, "{count}");
}

/// Issue 13: T1 writes x at two places, both before it sets the flag. Only the later one was told.
#[test]
fn an_earlier_place_is_told_as_well_as_the_last_one_before_the_flag() {
    let text = "T1|w(x)|1\nT1|w(x)|2\nT1|w.rlx(f)|3\nT2|r.rlx(f)|4\nT2|r(x)|5\n";
    let trace = Trace::from_std(text).unwrap();
    let two: BTreeSet<Places> = [("1", "5"), ("2", "5")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    assert_eq!(ordered_by_relaxed_atomics(&trace), two);
    assert_eq!(compare(text, Model::Reads), [2, 0]);
    // And where T2 writes, which ends what a detector keeps of x.
    let more = format!("{text}T2|w(x)|6\nT2|w.rlx(f)|7\nT3|r.rlx(f)|8\nT3|r(x)|9\n");
    assert_eq!(compare(&more, Model::Reads), [7, 0]);
}
