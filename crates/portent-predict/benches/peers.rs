//! How fast the passes over whole traces are: happens-before, and sync-preserving races and deadlocks. Prints rates; asserts
//! nothing.
//!
//! `cargo bench -p portent-predict --bench peers [-- NAME]` runs the parts whose name contains NAME.

use portent_order::{Checker, Goal, Model, Schedule};
use portent_predict::sync_preserving::{Wanted, sweep};
use portent_predict::{by_happens_before, happens_before};
use portent_trace::Trace;
use portent_trace::generate::{Config, Generator};
use std::time::{Duration, Instant};

fn generate(config: Config) -> Trace {
    let mut generator = Generator::new(config).unwrap_or_else(|error| panic!("{error}"));
    Trace::from_input(&mut generator).unwrap_or_else(|error| panic!("{error}"))
}

/// The shape of a preset, with that many events; where it says how many of them are of a kind, as large a share.
fn shape(name: &str, events: Option<u64>) -> Trace {
    let preset = Config::preset(name).unwrap_or_else(|| panic!("{name}: no such preset"));
    let events = events.unwrap_or(preset.events);
    let scaled = |count: Option<u64>| count.map(|count| count * events / preset.events);
    generate(Config {
        truncated: preset.truncated || events < preset.events,
        accesses: scaled(preset.accesses),
        lock_events: scaled(preset.lock_events),
        wait_events: scaled(preset.wait_events),
        events,
        ..preset
    })
}

/// Peak memory of this process so far, in MB.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Time on the processor where the system tells it, so that a busy machine counts less; the time of day elsewhere.
fn now(since: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn best<T>(repeat: usize, mut work: impl FnMut() -> T) -> (Duration, T) {
    let since = Instant::now();
    let mut best = Duration::MAX;
    let mut made = None;
    for _ in 0..repeat {
        drop(made.take());
        let (start, begun) = (now(since), Instant::now());
        let result = work();
        let wall = begun.elapsed();
        let busy = now(since) - start;
        // The system counts in steps of some milliseconds.
        best = best.min(if busy > Duration::from_millis(30) { busy } else { wall });
        made = Some(result);
    }
    (best, made.expect("at least one repetition"))
}

fn rate(events: usize, time: Duration) -> String {
    let per_event = time.as_nanos() as f64 / events.max(1) as f64;
    format!("{:7.1} M events/s {per_event:7.1} ns/event", 1000.0 / per_event)
}

fn passes(what: &str, trace: &Trace) {
    let events = trace.len();
    let (time, races) = best(5, || {
        let mut races = 0u64;
        happens_before::detect(trace, |_| races += 1);
        races
    });
    println!("{what:12} {:24} {} {races} pairs; goal 15 M events/s", "hb: detector", rate(events, time));
    let (time, found) = best(5, || by_happens_before(trace).findings.len());
    println!("{what:12} {:24} {} {found} findings", "hb: findings", rate(events, time));
    for (model, races, deadlocks) in [
        (Model::Reads, true, true),
        (Model::Reads, true, false),
        (Model::Reads, false, true),
        (Model::Sync, true, true),
    ] {
        let (time, swept) =
            best(2, || sweep(trace, &Wanted { model, races, deadlocks, known: &|_| true, stop: &|| false }));
        let kinds = [("races", races), ("deadlocks", deadlocks)];
        let kinds: Vec<&str> = kinds.into_iter().filter_map(|(name, on)| on.then_some(name)).collect();
        println!(
            "{what:12} {:24} {} {} closures, {:.1} bytes/event{}",
            format!("{model}: {}", kinds.join(", ")),
            rate(events, time),
            swept.closures,
            swept.bytes as f64 / events.max(1) as f64,
            if swept.complete { "" } else { ", incomplete" },
        );
    }
}

/// Everything that is found, with its witness, checked.
fn witnesses(what: &str, trace: &Trace) {
    let wanted = Wanted { model: Model::Reads, races: true, deadlocks: true, known: &|_| false, stop: &|| false };
    let (time, swept) = best(1, || sweep(trace, &wanted));
    let checker = Checker::new(trace);
    let (check, refused) = best(1, || {
        let refused = |(goal, witness): &&(Goal, Schedule)| checker.check(Model::Reads, goal, witness).is_err();
        swept.found.iter().filter(refused).count()
    });
    let deadlocks = swept.found.iter().filter(|(goal, _)| matches!(goal, Goal::Deadlock { .. })).count();
    println!(
        "{what:12} {:24} {} races, {deadlocks} deadlocks, {:.2?} with witnesses, {check:.2?} to check them, {refused} refused",
        "reads: witnesses",
        swept.found.len() - deadlocks,
        time,
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    for (preset, events) in [
        ("tsp", Some(10_000_000)),
        ("thrift", None),
        ("thrift", Some(2_000_000)),
        ("daisy", Some(2_000_000)),
        ("elevator", None),
    ] {
        let what = events.map_or(preset.to_owned(), |events| format!("{preset}-{}M", events / 1_000_000));
        if runs(&what) {
            let trace = shape(preset, events);
            passes(&what, &trace);
            witnesses(&what, &trace);
        }
    }
    for events in [1_000_000, 2_000_000, 5_000_000, 10_000_000] {
        let what = format!("growth-{}M", events / 1_000_000);
        if runs(&what) {
            let config = Config { threads: 8, variables: 2_000, locks: 40, events, ..Config::default() };
            let trace = generate(config);
            passes(&what, &trace);
            witnesses(&what, &trace);
        }
    }
    for threads in [2, 8, 32, 128] {
        let what = format!("threads-{threads}");
        if runs(&what) {
            let config = Config { threads, variables: 2_000, locks: 40, events: 1_000_000, ..Config::default() };
            passes(&what, &generate(config));
        }
    }
    println!("peak memory {:.0} MB", peak_memory());
}
