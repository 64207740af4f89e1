//! Equal or better than its peers: what other detectors soundly find on a trace is found on the same trace.
//!
//! The peers are written here once more from their definitions, as small and as obviously as possible: relations are matrices,
//! closures are loops until nothing changes.
//!
//! | peer | what it soundly finds |
//! |---|---|
//! | happens-before | the races of the first access that has any |
//! | SHB (Mathur, Kini, Viswanathan 2018) | all its races |
//! | SyncP (Mathur, Pavlogiannis, Viswanathan 2021) | all its races |
//! | WCP (Kini, Mathur, Viswanathan 2017) | if it has a race, there is a race or a deadlock |
//!
//! Where traces have what the papers' have not, the relations order more than they would have to: conflicting atomics keep
//! their order, a failed try comes after the acquire of its holder, or keeps its place on its semaphore.

use portent_order::Model;
use portent_predict::{BugKind, Control, Options, predict};
use portent_testing::corpus::cases;
use portent_testing::traces::Shapes;
use portent_trace::generate::TinyShape;
use portent_trace::{EventId, Op, Trace};
use std::collections::BTreeSet;

type Pairs = BTreeSet<(usize, usize)>;

/// A relation between events, as a matrix; it only ever points forwards in the observed order.
#[derive(Clone, PartialEq)]
struct Relation(Vec<Vec<bool>>);

impl Relation {
    fn new(n: usize, holds: impl Fn(usize, usize) -> bool) -> Self {
        Relation((0..n).map(|a| (0..n).map(|b| a < b && holds(a, b)).collect()).collect())
    }
    fn has(&self, a: usize, b: usize) -> bool {
        self.0[a][b]
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn or(&self, other: impl Fn(usize, usize) -> bool) -> Self {
        Relation::new(self.len(), |a, b| self.has(a, b) || other(a, b))
    }
    fn closed(mut self) -> Self {
        for k in 0..self.len() {
            for a in 0..k {
                if self.0[a][k] {
                    for b in k + 1..self.len() {
                        self.0[a][b] |= self.0[k][b];
                    }
                }
            }
        }
        self
    }
    /// First this relation, then the other.
    fn then(&self, other: &Relation) -> Self {
        Relation::new(self.len(), |a, b| (a..b).any(|k| self.has(a, k) && other.has(k, b)))
    }
}

struct Peers<'t> {
    trace: &'t Trace,
    /// Program order and what the trace itself demands.
    must: Relation,
    /// The writer of each read.
    saw: Vec<Option<usize>>,
}

impl<'t> Peers<'t> {
    fn new(trace: &'t Trace) -> Self {
        let mut last = vec![None; trace.variables()];
        let mut saw = Vec::new();
        for event in trace.events() {
            let x = event.op.variable();
            saw.push(x.filter(|_| event.op.reads()).and_then(|x| last[x.index()]));
            if let (Some(x), true) = (x, event.op.writes()) {
                last[x.index()] = Some(event.id.index());
            }
        }
        let mut peers = Peers { trace, must: Relation::new(trace.len(), |_, _| false), saw };
        let direct = Relation::new(trace.len(), |a, b| {
            let (ea, eb) = (EventId::new(a), EventId::new(b));
            let wakes = || trace.pairing_of_wake(eb).is_some_and(|k| trace.pairings()[k.index()].notify == ea);
            let sends = match (peers.op(a), peers.op(b)) {
                (Op::Send(k), Op::Receive(j)) => k == j,
                (Op::Post(s), Op::Wait(r)) => s == r,
                (Op::Post(s) | Op::Wait(s), Op::Empty(r)) | (Op::Empty(s), Op::Post(r) | Op::Wait(r)) => s == r,
                _ => false,
            };
            peers.thread(a) == peers.thread(b) || sends || wakes() || peers.holder(b) == Some(a)
        });
        peers.must = direct.closed();
        peers
    }
    fn op(&self, event: usize) -> Op {
        self.trace.op(EventId::new(event))
    }
    fn thread(&self, event: usize) -> usize {
        self.trace.thread(EventId::new(event)).index()
    }
    fn len(&self) -> usize {
        self.trace.len()
    }
    /// The release of an acquire.
    fn release(&self, acquire: usize) -> Option<usize> {
        let Op::Acquire(lock, mode) = self.op(acquire) else { return None };
        let mut later = acquire + 1..self.len();
        later.find(|&e| self.thread(e) == self.thread(acquire) && self.op(e) == Op::Release(lock, mode))
    }
    /// The acquire that a failed try ran into.
    fn holder(&self, busy: usize) -> Option<usize> {
        let Op::Busy(lock, mode) = self.op(busy) else { return None };
        (0..busy).find(|&e| {
            let conflicts = matches!(self.op(e), Op::Acquire(l, m) if l == lock && m.conflicts_with(mode));
            conflicts && self.thread(e) != self.thread(busy) && self.release(e).is_none_or(|r| r > busy)
        })
    }
    fn may_race(&self, a: usize, b: usize) -> bool {
        let atomic = self.op(a).is_atomic() && self.op(b).is_atomic();
        self.thread(a) != self.thread(b) && self.op(a).conflicts_with(self.op(b)) && !atomic
    }

    fn happens_before(&self) -> Relation {
        let direct = |a: usize, b: usize| match (self.op(a), self.op(b)) {
            (Op::Release(l, m), Op::Acquire(k, o)) => l == k && m.conflicts_with(o),
            (x, y) => x.conflicts_with(y) && x.is_atomic() && y.is_atomic(),
        };
        self.must.or(direct).closed()
    }
    /// The races of the first access that has any.
    fn hb_races(&self) -> Pairs {
        let order = self.happens_before();
        let racy =
            |b: usize| (0..b).filter(|&a| self.may_race(a, b) && !order.has(a, b)).map(move |a| (a, b)).collect();
        (0..self.len()).map(racy).find(|races: &Pairs| !races.is_empty()).unwrap_or_default()
    }

    /// Races of schedulable happens-before: what an access reads from orders what follows it, not the access itself.
    fn shb_races(&self) -> Pairs {
        let order = self.happens_before().or(|a, b| self.saw[b] == Some(a)).closed();
        let hb = self.happens_before();
        let before = |a: usize, b: usize| {
            let previous = (0..b).rev().find(|&p| self.thread(p) == self.thread(b));
            previous.is_some_and(|p| p == a || order.has(a, p)) || (self.op(b).is_atomic() && hb.has(a, b))
        };
        let pairs = (0..self.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        pairs.filter(|&(a, b)| self.may_race(a, b) && !before(a, b)).collect()
    }

    /// The least set that contains what comes before the two and is closed, by trying every rule on every event.
    fn closure(&self, a: usize, b: usize) -> Vec<bool> {
        let mut set = vec![false; self.len()];
        for goal in [a, b] {
            (0..goal).filter(|&e| self.thread(e) == self.thread(goal)).for_each(|e| set[e] = true);
        }
        loop {
            let before = set.clone();
            for e in (0..self.len()).filter(|&e| before[e]) {
                (0..e).filter(|&d| self.must.has(d, e)).for_each(|d| set[d] = true);
                if let Some(writer) = self.saw[e] {
                    set[writer] = true;
                }
                let Op::Acquire(lock, mode) = self.op(e) else { continue };
                for earlier in (0..e).filter(|&d| before[d] && self.thread(d) != self.thread(e)) {
                    let conflicts =
                        matches!(self.op(earlier), Op::Acquire(l, m) if l == lock && m.conflicts_with(mode));
                    if let (true, Some(release)) = (conflicts, self.release(earlier)) {
                        set[release] = true;
                    }
                }
            }
            if set == before {
                return set;
            }
        }
    }
    fn sync_preserving_races(&self) -> Pairs {
        let pairs = (0..self.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        let races = pairs.filter(|&(a, b)| {
            self.may_race(a, b) && {
                let set = self.closure(a, b);
                !set[a] && !set[b]
            }
        });
        races.collect()
    }

    /// The critical sections around an event, as their acquires.
    fn sections(&self, event: usize) -> Vec<usize> {
        let acquires = (0..=event).filter(|&a| matches!(self.op(a), Op::Acquire(..)));
        let around = |a: &usize| self.thread(*a) == self.thread(event) && self.release(*a).is_none_or(|r| r >= event);
        acquires.filter(around).collect()
    }
    /// Weak causal precedence: (a) a release comes before what conflicts with its section, in a later section of the lock;
    /// (b) releases of sections with ordered events are ordered; (c) closed under happens-before on both sides.
    fn weak_causal_precedence(&self) -> Relation {
        let hb = self.happens_before();
        let inside: Vec<Vec<usize>> = (0..self.len()).map(|e| self.sections(e)).collect();
        let one_lock = |c: usize, d: usize| {
            matches!((self.op(c), self.op(d)), (Op::Acquire(l, m), Op::Acquire(k, o)) if l == k && m.conflicts_with(o))
                && c < d
                && self.thread(c) != self.thread(d)
        };
        let mut wcp = Relation::new(self.len(), |release, e| {
            inside[e].iter().any(|&d| {
                (0..d).any(|c| {
                    let within = |f: usize| f < release && inside[f].contains(&c);
                    self.release(c) == Some(release)
                        && one_lock(c, d)
                        && (c..release).any(|f| within(f) && self.op(f).conflicts_with(self.op(e)))
                })
            })
        });
        loop {
            let sections = wcp.or(|r, s| {
                let section = |release| (0..release).find(|&c| self.release(c) == Some(release));
                let (Some(c), Some(d)) = (section(r), section(s)) else { return false };
                let member = |section: usize, e: usize| inside[e].contains(&section);
                one_lock(c, d) && (c..=r).any(|e| member(c, e) && (d..=s).any(|f| member(d, f) && wcp.has(e, f)))
            });
            let (left, right) = (hb.then(&sections), sections.then(&hb));
            let next = sections.or(|a, b| left.has(a, b) || right.has(a, b));
            if next == wcp {
                return wcp;
            }
            wcp = next;
        }
    }
    fn wcp_races(&self) -> Pairs {
        let order = self.weak_causal_precedence();
        let pairs = (0..self.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        pairs.filter(|&(a, b)| self.may_race(a, b) && !order.has(a, b) && !self.must.has(a, b)).collect()
    }
}

/// The races that are predicted, and how many deadlocks.
fn predicted(trace: &Trace, window: usize) -> (Pairs, usize) {
    let kinds = vec![BugKind::Race, BugKind::Deadlock];
    let options = Options { kinds, model: Model::Reads, window, ..Options::default() };
    let prediction = predict(trace, &options, &Control::default());
    assert_eq!(prediction.errors, [] as [String; 0]);
    let races = prediction.findings.iter().filter_map(|finding| match finding.goal() {
        Some(portent_order::Goal::Race { first, second }) => Some((first.index(), second.index())),
        _ => None,
    });
    let deadlocks = prediction.findings.iter().filter(|finding| finding.kind() == BugKind::Deadlock).count();
    (races.collect(), deadlocks)
}

fn shapes() -> Shapes {
    let longer = TinyShape { name: "longer", events: 28, locks: 3, variables: 3, ..TinyShape::PLAIN };
    let more = [
        longer.clone(),
        TinyShape { open_scopes: true, fork_join: true, threads: 4, ..longer.clone() },
        TinyShape { lock_heavy: true, ..longer },
    ];
    TinyShape::all().chain(more).collect()
}

#[test]
fn every_race_that_hb_shb_and_syncp_soundly_find_is_found_in_one_window_and_across_many() {
    let mut counts = [0usize; 4];
    for tiny in shapes().traces(0..6_000) {
        let peers = Peers::new(&tiny.trace);
        let found = [peers.hb_races(), peers.shb_races(), peers.sync_preserving_races()];
        for window in [Options::WINDOW, 6, 3] {
            let (ours, _) = predicted(&tiny.trace, window);
            for (name, theirs) in ["happens-before", "SHB", "SyncP"].into_iter().zip(&found) {
                let missed: Vec<_> = theirs.difference(&ours).collect();
                assert!(missed.is_empty(), "{name}, window {window}: {missed:?}, {tiny}");
            }
            if window == Options::WINDOW {
                counts[3] += ours.len();
            }
        }
        assert!(found[0].is_subset(&found[1]) && found[1].is_subset(&found[2]), "{tiny}");
        (0..3).for_each(|i| counts[i] += found[i].len());
    }
    // Each finds strictly more than the one before it.
    assert!(counts[0] > 1_000 && counts.windows(2).all(|pair| pair[0] < pair[1]), "{counts:?}");
}

#[test]
fn where_weak_causal_precedence_has_a_race_a_race_or_a_deadlock_is_found() {
    // What the paper's traces have: nested exclusive locks, forks and joins.
    let fits = |shape: &TinyShape| {
        !(shape.hand_over_hand
            || shape.shared_locks
            || shape.busy
            || shape.conditions
            || shape.atomics
            || shape.updates)
    };
    let (mut races, mut firsts, mut beyond_syncp) = (0, 0, 0);
    for tiny in shapes().filter(fits).traces(0..6_000) {
        let peers = Peers::new(&tiny.trace);
        let theirs = peers.wcp_races();
        let Some(&first) = theirs.iter().min_by_key(|(a, b)| (*b, std::cmp::Reverse(*a))) else { continue };
        let (ours, deadlocks) = predicted(&tiny.trace, Options::WINDOW);
        races += 1;
        assert!(!ours.is_empty() || deadlocks > 0, "{theirs:?}, {tiny}");
        firsts += usize::from(ours.contains(&first));
        beyond_syncp +=
            usize::from(theirs.intersection(&ours).any(|pair| !peers.sync_preserving_races().contains(pair)));
        assert!(ours.contains(&first) || deadlocks > 0, "the first race {first:?}, {tiny}");
    }
    assert!(races > 1_000 && firsts * 100 > races * 99 && beyond_syncp > 10, "{races} {firsts} {beyond_syncp}");
}

/// The traces of the corpus made for this, by the beginning of their names: what each peer says of the one pair that
/// matters. SyncP is also asked across windows of three events.
#[test]
fn the_corpus_tells_the_peers_apart() {
    let corpus = cases();
    let read = |start: &str| corpus.iter().find(|case| case.name.starts_with(start)).unwrap().trace();
    // (file, pair, [HB, SHB, WCP, SyncP, predicted])
    let cases = [
        ("p01", (0, 5), [false, false, true, true, true]),
        ("p02", (0, 3), [false, false, true, false, false]),
        ("p02", (1, 2), [true, true, true, true, true]),
        ("p03", (2, 3), [false, true, true, true, true]),
        ("p04", (0, 6), [false, false, false, false, false]),
        ("p05", (0, 5), [false, false, true, true, true]),
        ("p06", (3, 8), [false, false, true, false, false]),
        ("p07", (0, 7), [false, false, false, true, true]),
        ("p08", (1, 5), [false, false, true, false, true]),
        ("p09", (2, 7), [false, false, false, false, true]),
    ];
    for (file, pair, expected) in cases {
        let trace = read(file);
        let peers = Peers::new(&trace);
        let says = [peers.hb_races(), peers.shb_races(), peers.wcp_races(), peers.sync_preserving_races()];
        let mut found: Vec<bool> = says.iter().map(|races| races.contains(&pair)).collect();
        found.push(predicted(&trace, Options::WINDOW).0.contains(&pair));
        assert_eq!(found, expected, "{file} {pair:?}");
        assert!(!found[3] || predicted(&trace, 3).0.contains(&pair), "{file} {pair:?} in small windows");
    }
    for file in ["p10", "p11", "p12", "p13"] {
        assert_eq!(predicted(&read(file), 3).1, predicted(&read(file), Options::WINDOW).1, "{file} in small windows");
    }
}
