//! The streaming pass: candidates of races, deadlocks and violations of atomicity, in time and memory.
//!
//! Every row is a process of its own, so that its peak memory is its own. Times are CPU time of one thread: what a quiet
//! machine would show as time passed.
//!
//! `cargo bench -p portent-predict --bench stream [-- presets | events | threads | extra]`

use portent_predict::{BugKind, happens_before, stream};
use portent_trace::format::{self, Dialect, Format, OpenOptions};
use portent_trace::generate::{Config, Generator};
use portent_trace::{EventSource, InputBatch, InputSource, Layout, Lowered, Trace};
use std::error::Error;
use std::path::{Path, PathBuf};

type Fallible<T> = Result<T, Box<dyn Error>>;

const KINDS: [BugKind; 3] = [BugKind::Race, BugKind::Deadlock, BugKind::Atomicity];

/// CPU time of this process, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// The most memory this process ever had, in megabytes.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = cpu();
    let result = work();
    (result, cpu() - before)
}

fn open(path: &Path) -> Fallible<Lowered<Box<dyn InputSource>>> {
    Ok(Lowered::new(format::open(path, OpenOptions::default())?))
}

/// Only reads and lowers.
fn drain(source: &mut dyn EventSource) -> Fallible<()> {
    stream::candidates(source, &[])?;
    Ok(())
}

fn config(preset: &str, events: Option<u64>, threads: Option<u32>) -> Fallible<Config> {
    let mut config = Config::preset(preset).ok_or("no such preset")?;
    if let Some(events) = events {
        config.blocks = (config.blocks * events).div_ceil(config.events);
        config.events = events;
    }
    config.threads = threads.unwrap_or(config.threads);
    Ok(config)
}

fn write(config: Config, path: &Path) -> Fallible<()> {
    let mut source = Generator::new(config)?;
    let mut sink = format::create(path, Format::Portent, Dialect::Portent, Layout::of(source.names())?)?;
    let mut batch = InputBatch::default();
    while source.next_batch(&mut batch)? {
        sink.write(source.names(), &batch)?;
    }
    sink.finish()?;
    Ok(())
}

/// A row of its own process: reading alone, then everything.
fn row(name: &str, rest: &[String]) -> Fallible<()> {
    let (found, alone, all) = match rest {
        [path] => {
            let (read, alone) = timed(|| -> Fallible<()> { drain(&mut open(Path::new(path))?) });
            read?;
            let (found, all) =
                timed(|| -> Fallible<_> { Ok(stream::candidates(&mut open(Path::new(path))?, &KINDS)?) });
            (found?, alone, all)
        }
        [preset, events, threads] => {
            let shape = || config(preset, events.parse().ok(), threads.parse().ok());
            let (read, alone) = timed(|| -> Fallible<()> { drain(&mut Lowered::new(Generator::new(shape()?)?)) });
            read?;
            let mut source = Lowered::new(Generator::new(shape()?)?);
            let (found, all) = timed(|| stream::candidates(&mut source, &KINDS));
            (found?, alone, all)
        }
        _ => return Err("what row?".into()),
    };
    let (figures, events) = (found.figures, found.figures.events as f64);
    println!(
        "| {name} | {:.1} M | {:.3} s | {:.3} s | {:.0} ns | {} / {} / {} | {} | {:.0} MB |",
        events / 1e6,
        alone,
        all,
        (all - alone) / events * 1e9,
        figures.groups[0],
        figures.groups[1],
        figures.groups[2],
        figures.keys,
        peak()
    );
    Ok(())
}

/// Happens-before and locksets, and the candidates on top of them, on the same trace in memory.
fn extra(path: &Path) -> Fallible<()> {
    let mut source = format::open(path, OpenOptions::default())?;
    let (trace, reading) = timed(|| Trace::from_input(&mut *source));
    let trace = trace?;
    let mut races = 0u64;
    let ((), watching) = timed(|| happens_before::detect(&trace, |_| races += 1));
    let (_, candidates) = timed(|| stream::candidates_of(&trace, &KINDS));
    println!("| read, lower, validate | {reading:.2} s |");
    println!("| happens-before ({races} pairs reported) | {watching:.2} s |");
    println!("| candidates: locksets and histories, atomicity, deadlocks, races | {candidates:.2} s |");
    println!("\nextra cost over reading and happens-before: {:.0} %", 100.0 * candidates / (reading + watching));
    Ok(())
}

fn spawn(arguments: &[&str]) -> Fallible<()> {
    let status = std::process::Command::new(std::env::current_exe()?).args(arguments).status()?;
    if status.success() { Ok(()) } else { Err(format!("row {arguments:?} failed").into()) }
}

fn header(title: &str) {
    println!(
        "\n## {title}\n\n| | events | source alone | with candidates | per event | groups: races / deadlocks / violations | keys | peak memory |"
    );
    println!("|---|---|---|---|---|---|---|---|");
}

fn file(folder: &Path, preset: &str, times: u64) -> Fallible<PathBuf> {
    let path = folder.join(format!("{preset}-{times}.portent"));
    let events = Config::preset(preset).ok_or("no such preset")?.events * times;
    write(config(preset, Some(events), None)?, &path)?;
    Ok(path)
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [first, name, rest @ ..] = &arguments[..]
        && first == "row"
    {
        return row(name, rest);
    }
    let wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|a| a == part);
    let folder = std::env::temp_dir().join(format!("portent-bench-stream-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    if wanted("presets") {
        header("Presets, from .portent files (goals: tsp 1.5 s, elevator 0.1 s; 300 MB)");
        for (preset, times) in [("tsp", 1), ("tsp", 4), ("elevator", 1), ("elevator", 100)] {
            let path = file(&folder, preset, times)?;
            let name = if times == 1 { preset.to_owned() } else { format!("{preset}, {times} times as long") };
            spawn(&["row", &name, &path.to_string_lossy()])?;
        }
    }
    if wanted("events") {
        header("Growth in events (tsp shape, straight from the generator)");
        for millions in [1, 3, 10, 30, 100] {
            spawn(&["row", &format!("{millions} M"), "tsp", &format!("{}", millions * 1_000_000u64), ""])?;
        }
    }
    if wanted("threads") {
        header("Growth in threads (tsp shape, 5 M events)");
        for threads in ["2", "4", "8", "16", "32", "64", "128"] {
            spawn(&["row", &format!("{threads} threads"), "tsp", "5000000", threads])?;
        }
    }
    if wanted("extra") {
        println!("\n## On top of happens-before (tsp, in memory)\n\n| | CPU time |\n|---|---|");
        extra(&file(&folder, "tsp", 1)?)?;
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
