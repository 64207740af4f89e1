//! The lattice against the oracle and the reference semantics: random traces, random properties, both models, both ways.
//!
//! The oracle lets *every* read that is the last of its thread see any write, in `reads`; the lattice only those that the
//! property sees.

use portent_order::brute::{self, Word};
use portent_order::{Checker, Executed, Model};
use portent_predict::lattice::{Bounds, explore, follow, whole_seen};
use portent_spec::generate::{random_property, random_read_property};
use portent_spec::{Assume, Bound, Compiled, Ruling, Scope, evaluate_changed, parse};
use portent_testing::traces::from_std;
use portent_trace::generate::{TinyShape, tiny, tiny_std};
use portent_trace::{Event, EventId, EventList, Lowered, Names, Trace};
use std::collections::{BTreeSet, HashSet};

/// Longest reorderings of one trace, at most.
const MOST: usize = 400;

#[derive(Default, Debug)]
struct Count {
    pairs: u64,
    broken: u64,
    unknown: u64,
    skipped: u64,
    /// Broken by an event only where a read sees another write.
    by_changed_reads: u64,
    /// How many reorderings there are was compared too.
    counted: u64,
}

/// What a run does to a property, by definition.
fn judge(trace: &Trace, bound: &Bound, word: &Word) -> Ruling {
    let events: Vec<Event> = word.events.iter().map(|&event| trace.event(event)).collect();
    let complete = events.len() == trace.len() && word.changed.is_empty();
    evaluate_changed(bound, &events, &|at| word.changed.contains(&word.events[at]), complete, Assume::Zero)
}

/// A replayed witness.
fn word_of(executed: &[Executed]) -> Word {
    let changed = executed.iter().filter(|done| done.changed.is_some()).map(|done| done.event);
    Word { events: executed.iter().map(|done| done.event).collect(), changed: changed.collect(), ends: false }
}

/// By definition: which events can be the first to break the property, and whether a value that is not known decides.
fn truth(trace: &Trace, bound: &Bound, words: &[Word]) -> (BTreeSet<Option<EventId>>, bool) {
    let mut broken = BTreeSet::new();
    let mut unknown = false;
    // Words that the property cannot tell apart are judged once.
    let mut judged: HashSet<(Vec<(EventId, bool)>, bool)> = HashSet::new();
    for word in words {
        let seen = word.events.iter().filter(|&&event| bound.sees(&trace.event(event)));
        let seen = seen.map(|event| (*event, word.changed.contains(event))).collect();
        if !judged.insert((seen, word.events.len() == trace.len() && word.changed.is_empty())) {
            continue;
        }
        match judge(trace, bound, word) {
            Ruling::Broken(at) => drop(broken.insert(word.events.get(at).copied())),
            Ruling::Unknown(_) => unknown = true,
            Ruling::Holds => {}
        }
    }
    (broken, unknown)
}

fn compare(trace: &Trace, model: Model, words: &[Word], source: &str, story: &str, count: &mut Count) {
    let file = parse(source).unwrap_or_else(|wrong| panic!("{}\n{story}", wrong.render("p", source)));
    let Ok(bound) = Bound::all(&file, &Scope::of(trace)) else {
        panic!("names of the trace are not found\n{source}\n{story}");
    };
    let bound = &bound[0];
    let Ok(mut monitor) = Compiled::new(bound) else {
        count.skipped += 1;
        return;
    };
    let (expected, unknown) = truth(trace, bound, words);
    let checker = Checker::new(trace);
    for unreduced in [false, true] {
        let bounds = Bounds { unreduced, ..Bounds::of(model) };
        let explored = explore(trace, &mut monitor, &bounds, &|_| None);
        assert!(explored.is_complete());
        let found: BTreeSet<Option<EventId>> = explored.broken.iter().map(|broken| broken.event).collect();
        assert_eq!(found, expected, "unreduced {unreduced}, {model}\n{source}\n{story}");
        assert!(explored.unknown.is_some() || !unknown, "unknown is known? {unreduced}, {model}\n{source}\n{story}");
        for broken in &explored.broken {
            let executed = checker
                .replay_for_property(model, &broken.schedule)
                .unwrap_or_else(|why| panic!("witness: {why}, {unreduced}, {model}\n{source}\n{story}"));
            let word = word_of(&executed);
            assert_eq!(word.events, broken.events);
            let at = broken.event.map_or(executed.len(), |_| executed.len() - 1);
            let outcome = judge(trace, bound, &word);
            assert_eq!(outcome, Ruling::Broken(at), "witness {executed:?}, {unreduced}, {model}\n{source}\n{story}");
        }
    }
    if !expected.is_empty() {
        let kept: Vec<Word> = words.iter().filter(|word| word.changed.is_empty()).cloned().collect();
        count.by_changed_reads += u64::from(truth(trace, bound, &kept).0.is_empty());
    }
    // How many reorderings there are for this property, and cuts on them: only reads that it sees change. (Not for every
    // pair: there are eight properties for each trace.)
    let may_change = |event: EventId| bound.sees(&trace.event(event));
    if count.pairs.is_multiple_of(3)
        && let Some(words) = brute::longest_for_property(trace, model, &may_change, MOST)
    {
        let ends: Vec<&Word> = words.iter().filter(|word| word.ends).collect();
        let mut cuts = BTreeSet::new();
        for word in &ends {
            let mut position = vec![0; trace.threads()];
            cuts.insert(position.clone());
            for &event in &word.events {
                position[trace.thread(event).index()] += 1;
                cuts.insert(position.clone());
            }
        }
        let counted = whole_seen(trace, model, &|event| bound.sees(event), 100_000).unwrap();
        let found = (counted.runs, counted.cuts());
        assert_eq!(found, (Some(ends.len() as u128), cuts.len()), "{model}\n{source}\n{story}");
        count.counted += 1;
    }
    count.pairs += 1;
    count.broken += u64::from(!expected.is_empty());
    count.unknown += u64::from(unknown);
}

/// Properties of a trace, by number.
type Properties = fn(u64, &Names) -> String;

fn run(pairs: u64, first_seed: u64) {
    std::thread::scope(|scope| {
        for model in [Model::Sync, Model::Reads] {
            scope.spawn(move || run_in(model, pairs, first_seed, random_property));
        }
    });
}

fn run_in(model: Model, pairs: u64, first_seed: u64, properties: Properties) -> Count {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    let mut count = Count::default();
    let mut seed = first_seed;
    while count.pairs < pairs {
        seed += 1;
        let mut shape = shapes[(seed % shapes.len() as u64) as usize].clone();
        shape.events = shape.events.min(6 + (seed / 7 % 5) as u32);
        // Values mostly; without them most comparisons are unknown.
        shape.values = !seed.is_multiple_of(5);
        let trace = tiny(seed, &shape);
        let Some(words) = brute::longest_for_property(&trace, model, &|_| true, MOST) else {
            count.skipped += 1;
            continue;
        };
        for property in 0..8 {
            let source = properties(seed * 16 + property, trace.names());
            let story = tiny_std(seed, &shape);
            compare(&trace, model, &words, &source, &story, &mut count);
        }
    }
    println!("{model:5}: {count:?}");
    assert!(count.broken * 10 > count.pairs && count.broken * 10 < count.pairs * 9, "{count:?}");
    assert!(count.unknown * 50 > count.pairs, "{count:?}");
    assert!(count.counted * 4 > count.pairs, "{count:?}");
    count
}

#[test]
fn lattice_and_oracle_agree_on_random_properties_of_random_traces() {
    run(pairs(10_000), 1);
}

/// How many pairs to compare, unless `PORTENT_PAIRS` says so.
fn pairs(usually: u64) -> u64 {
    std::env::var("PORTENT_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(usually)
}

#[test]
fn a_property_about_what_a_read_sees_held_because_every_read_was_kept() {
    let count = run_in(Model::Reads, pairs(40_000), 1 << 20, random_read_property);
    assert!(count.by_changed_reads * 200 > count.pairs, "{count:?}");
}

#[test]
#[ignore = "a nightly-style run: a million pairs per model"]
fn lattice_and_oracle_agree_on_a_million_pairs() {
    run(1_000_000, 1 << 32);
    run_in(Model::Reads, 1_000_000, 1 << 33, random_read_property);
}

/// The events of a trace, a few at a time.
fn slowly(text: &str, batch: usize) -> Lowered<EventList<'static>> {
    let (names, events) = from_std(text);
    Lowered::new(EventList::new(names, events).in_batches_of(batch))
}

#[test]
fn following_a_source_gives_the_same_and_forgets_what_is_behind() {
    let shapes: Vec<TinyShape> = TinyShape::all().collect();
    let (mut pairs, mut found, mut skipped, mut changed) = (0, 0, 0, 0);
    for seed in 1..1500u64 {
        let mut shape = shapes[(seed % shapes.len() as u64) as usize].clone();
        shape.events = shape.events.min(10);
        shape.values = true;
        // Names get their numbers in the order of the text.
        let text = tiny_std(seed, &shape);
        let trace = Trace::from_std(&text).unwrap();
        let source = match seed % 2 {
            0 => random_property(seed, trace.names()),
            _ => random_read_property(seed, trace.names()),
        };
        let file = parse(&source).unwrap();
        let bound = &Bound::all(&file, &Scope::of(&trace)).unwrap()[0];
        let Ok(mut monitor) = Compiled::new(bound) else { continue };
        let checker = Checker::new(&trace);
        for model in [Model::Sync, Model::Reads] {
            let bounds = Bounds { unreduced: true, ..Bounds::of(model) };
            let whole = explore(&trace, &mut monitor, &bounds, &|_| None);
            let expected: BTreeSet<Option<EventId>> = whole.broken.iter().map(|broken| broken.event).collect();
            let mut events = slowly(&text, 1 + (seed % 3) as usize);
            let followed = follow(&mut events, &mut monitor, &bounds).unwrap();
            if followed.explored.dropped > 0 {
                skipped += 1;
                continue;
            }
            let broken: BTreeSet<Option<EventId>> = followed.broken.iter().map(|(event, _)| *event).collect();
            assert_eq!(broken, expected, "seed {seed} {model}\n{source}\n{text}");
            for (event, schedule) in &followed.broken {
                let run = checker
                    .replay_for_property(model, schedule)
                    .unwrap_or_else(|why| panic!("{why}: seed {seed}\n{source}\n{text}"));
                let run = word_of(&run);
                assert!(event.is_none() || run.events.last().copied() == *event, "seed {seed}");
                let at = event.map_or(run.events.len(), |_| run.events.len() - 1);
                let outcome = judge(&trace, bound, &run);
                assert_eq!(outcome, Ruling::Broken(at), "seed {seed} {model}\n{source}\n{text}");
                changed += usize::from(!run.changed.is_empty());
            }
            pairs += 1;
            found += broken.len();
        }
    }
    println!("{pairs} pairs, {found} ways, {changed} by changed reads, {skipped} not followed");
    assert!(pairs > 2000 && found > 400 && changed > 20, "{pairs} {found} {skipped} {changed}");
}

/// Two threads that meet again and again, and `first` in between: whatever came before a meeting can be forgotten.
fn meetings(first: impl Fn(&str, usize) -> String) -> String {
    let mut text = String::from("T0|fork(T1)|1\n");
    for round in 0..2000 {
        for thread in ["T0", "T1"] {
            let first = first(thread, round);
            text.push_str(&format!("{first}{thread}|w(x{thread})|2|{round}\n{thread}|snd(a{round}{thread})|3\n"));
        }
        text.push_str(&format!("T0|rcv(a{round}T1)|4\nT1|rcv(a{round}T0)|5\n"));
    }
    text
}

fn is_followed_in_little_memory(text: &str, source: &str) {
    let trace = Trace::from_std(text).unwrap();
    let bound = &Bound::all(&parse(source).unwrap(), &Scope::of(&trace)).unwrap()[0];
    let mut monitor = Compiled::new(bound).unwrap();
    let mut events = slowly(text, 64);
    let followed = follow(&mut events, &mut monitor, &Bounds::of(Model::Reads)).unwrap();
    assert!(followed.broken.is_empty() && followed.explored.dropped == 0);
    assert!(followed.explored.steps > 5000 && followed.most_steps < 400, "{} steps held", followed.most_steps);
}

#[test]
fn a_long_source_is_followed_in_little_memory() {
    let text = meetings(|_, _| String::new());
    is_followed_in_little_memory(&text, "property p: always (xT0 - xT1 < 2 & xT1 - xT0 < 2)");
}

#[test]
fn who_stops_at_a_changed_read_does_not_keep_the_steps_of_a_long_source() {
    // T1 reads what T0 writes in the same round, or stops there; T0 cannot go on without it for long.
    let text = meetings(|thread, round| if thread == "T1" { format!("T1|r(xT0)|6|{round}\n") } else { String::new() });
    is_followed_in_little_memory(&text, "property p: always (once read(xT0) -> xT0 - xT1 < 3 & xT1 - xT0 < 3)");
    is_followed_in_little_memory(&text, "property p: always (prev read(xT0) -> prev xT0 >= 0)");
}
