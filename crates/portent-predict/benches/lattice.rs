//! How fast the lattice is, and how it grows: cuts per second, bytes per cut, and what slicing saves.
//!
//! `cargo bench -p portent-predict --bench lattice`. Goals are printed beside numbers; nothing is asserted.

use portent_order::Model;
use portent_predict::lattice::{Bounds, Explored, explore};
use portent_spec::{Bound, Compiled, Scope, parse};
use portent_trace::Trace;
use std::fmt::Write;
use std::time::Instant;

fn run(trace: &Trace, source: &str, bounds: &Bounds) -> (Explored, f64) {
    let file = parse(source).unwrap_or_else(|wrong| panic!("{}", wrong.render("bench", source)));
    let bound = &Bound::all(&file, &Scope::of(trace)).unwrap_or_else(|wrong| panic!("{wrong:?}"))[0];
    let mut best = f64::MAX;
    let mut explored = Explored::default();
    for _ in 0..3 {
        let mut monitor = Compiled::new(bound).expect("a small property");
        let (started, worked) = (Instant::now(), processor_time());
        explored = explore(trace, &mut monitor, bounds, &|_| None);
        // On a machine that others use, what the processor did for us is what counts.
        let wall = started.elapsed().as_secs_f64();
        let own = processor_time().zip(worked).map(|(now, then)| now - then).filter(|own| *own > 0.2);
        best = best.min(own.unwrap_or(wall));
    }
    (explored, best)
}

/// Seconds that processors have worked for this process, in hundredths.
fn processor_time() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / 100.0)
}

/// Threads that each write a variable of their own, and nothing orders them.
fn free(threads: usize, writes: usize) -> Trace {
    let mut text = String::new();
    for i in 0..writes {
        for t in 0..threads {
            let _ = writeln!(text, "T{t}|w(x{t})|1|{i}");
        }
    }
    Trace::from_std(&text).expect("well formed")
}

/// Threads that count under locks and take values from each other, all of it visible.
fn busy(threads: usize, rounds: usize) -> Trace {
    let mut text = String::new();
    for i in 0..rounds {
        for t in 0..threads {
            let _ =
                write!(text, "T{t}|acq(l{})|1\nT{t}|w(y)|2|{i}\nT{t}|rel(l{})|3\nT{t}|w(x{t})|4|{i}\n", i % 2, i % 2);
        }
    }
    Trace::from_std(&text).expect("well formed")
}

/// Mostly private work, now and then a shared counter under its lock, rarely a variable of the property.
fn light_sharing(threads: u64, events: usize) -> Trace {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut text = String::new();
    let mut counters = [0u64; 16];
    let (mut made, mut seen) = (0, 0);
    while made < events {
        let t = below(threads);
        match below(1000) {
            0..30 => {
                let c = below(16) as usize;
                let old = counters[c];
                counters[c] += 1;
                let _ = write!(
                    text,
                    "T{t}|acq(m{c})|1\nT{t}|r(c{c})|2|{old}\nT{t}|w(c{c})|3|{}\nT{t}|rel(m{c})|4\n",
                    old + 1
                );
                made += 4;
            }
            30 if seen < events / 500 => {
                let x = if t % 2 == 0 { "p" } else { "q" };
                let _ = writeln!(text, "T{t}|w({x})|5|{}", seen % 7);
                made += 1;
                seen += 1;
            }
            _ => {
                let (op, v) = if below(3) == 0 { ("w", below(5)) } else { ("r", below(5)) };
                let _ = writeln!(text, "T{t}|{op}(private{t}_{v})|6");
                made += 1;
            }
        }
    }
    Trace::from_std(&text).expect("well formed")
}

fn row(name: &str, events: usize, (explored, seconds): (Explored, f64)) {
    println!(
        "{name:<34} {events:>9} {:>9} {:>9} {:>11} {:>9} {:>10.3} {:>9.2}",
        explored.visible,
        explored.steps,
        explored.cuts,
        explored.widest,
        seconds,
        explored.cuts as f64 / seconds / 1e6
    );
}

fn main() {
    let reads = Bounds::of(Model::Reads);
    println!(
        "{:<34} {:>9} {:>9} {:>9} {:>11} {:>9} {:>10} {:>9}",
        "lattice", "events", "visible", "steps", "cuts", "widest", "seconds", "M cuts/s"
    );
    println!("raw speed, 4 threads (goal: 2 M cuts per second and core, 64 bytes per cut)");
    let trace = free(4, 36);
    let result = run(&trace, "property p: always (x0 + x1 < 1000 | x2 + x3 < 1000)", &reads);
    let per_cut = result.0.bytes_per_cut;
    row("  values of 4 variables", trace.len(), result);
    let result = run(&trace, "property p: never (write(x0) & (x0 == 50))", &reads);
    row("  one variable, the rest sliced away", trace.len(), result);
    let trace = free(4, 30);
    let result = run(&trace, "property p: always (once x3 == 1 | x0 < 100 & x1 < 100 & x2 < 100)", &reads);
    let per_small_cut = result.0.bytes_per_cut;
    row("  a formula that looks back", trace.len(), result);
    let trace = busy(4, 10);
    let result = run(
        &trace,
        "property p: always (x0 < 100 & x1 < 100 & x2 < 100 & x3 < 100)",
        &Bounds { unreduced: true, ..reads },
    );
    row("  locks, nothing sliced", trace.len(), result);
    let result = run(&trace, "property p: always (x0 < 100 & x1 < 100 & x2 < 100 & x3 < 100)", &reads);
    row("  locks, sliced", trace.len(), result);
    println!(
        "  memory per cut of the widest level, with its index and the 8 bytes that it leaves behind: {per_cut:.0} bytes where \
         4 values are state, {per_small_cut:.0} for the formula"
    );
    let source = "property p: always (p < 10 & q < 10 | once p == 6)";
    println!("growth with length, 8 threads, light sharing, 2 variables (goal: 100 K events in seconds)");
    for events in [25_000, 50_000, 100_000, 200_000, 400_000] {
        let trace = light_sharing(8, events);
        row("  length", trace.len(), run(&trace, source, &reads));
    }
    println!("growth with threads, 100 K events, light sharing, 2 variables");
    for threads in [2, 4, 8, 16, 32] {
        let trace = light_sharing(threads, 100_000);
        row(&format!("  {threads} threads"), trace.len(), run(&trace, source, &reads));
    }
}
