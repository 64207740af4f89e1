//! How fast traces are made, written, read and lowered, and how much room they take.
//!
//! `cargo bench -p portent-trace [-- --events N --repeat N --preset NAME --values SHARE]`. Every rate is the best of
//! the repetitions, on one core, with the files in memory, so that the numbers are Portent's and not the disk's. The
//! goals stand beside the numbers; nothing is asserted, because a busy machine proves nothing.

use portent_trace::format::{Dialect, PortentReader, PortentWriter, StdReader, StdWriter};
use portent_trace::generate::{Config, Generator};
use portent_trace::{Batch, EventSource, InputBatch, InputSource, Layout, Lowered, Names, Trace};
use std::fs::File;
use std::hint::black_box;
use std::io::{Cursor, Write};
use std::process::Command;
use std::time::{Duration, Instant};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

struct Options {
    preset: String,
    events: u64,
    repeat: u32,
    values: Option<f64>,
}

impl Options {
    /// From the command line; `cargo bench` adds `--bench`, which means nothing here.
    fn parse() -> Fallible<Options> {
        let mut options = Options { preset: "tsp".into(), events: 10_000_000, repeat: 5, values: None };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name}: expected a value"))?;
            match name.as_str() {
                "--preset" => options.preset = value,
                "--events" => options.events = value.parse()?,
                "--repeat" => options.repeat = value.parse::<u32>()?.max(1),
                "--values" => options.values = Some(value.parse()?),
                _ => return Err(format!("{name}: expected --preset, --events, --repeat or --values").into()),
            }
        }
        Ok(options)
    }

    fn generator(&self) -> Fallible<Generator> {
        let preset = Config::preset(&self.preset).ok_or_else(|| format!("{}: no such preset", self.preset))?;
        let values = self.values.unwrap_or(preset.values);
        // Cut short where it is shorter than the preset: the shape stays, the end is missing.
        let truncated = preset.truncated || self.events < preset.events;
        Ok(Generator::new(Config { events: self.events, truncated, values, ..preset })?)
    }
}

struct Bench {
    events: u64,
    repeat: u32,
}

impl Bench {
    /// Times `work` and prints its rate; returns what it last made.
    fn rate<T>(&self, what: &str, goal: Option<f64>, mut work: impl FnMut() -> Fallible<T>) -> Fallible<T> {
        let mut best = Duration::MAX;
        let mut made = None;
        for _ in 0..self.repeat {
            // What the last repetition made is gone before the clock starts.
            drop(made.take());
            let start = Instant::now();
            let result = black_box(work()?);
            best = best.min(start.elapsed());
            made = Some(result);
        }
        let per_event = best.as_nanos() as f64 / self.events as f64;
        print!("{what:44} {:8.1} M events/s {per_event:8.1} ns/event", 1000.0 / per_event);
        match goal {
            Some(goal) => println!("   goal {goal:>4} M events/s: {}", verdict(1000.0 / per_event >= goal)),
            None => println!(),
        }
        made.ok_or_else(|| "nothing was timed".into())
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn size(what: &str, bytes_per_event: f64, goal: Option<f64>) {
    print!("{what:44} {bytes_per_event:8.2} bytes/event");
    match goal {
        Some(goal) => println!("{:22}goal {goal:>4} bytes/event: {}", "", verdict(bytes_per_event <= goal)),
        None => println!(),
    }
}

/// Every batch of a source.
fn drain(mut source: impl InputSource) -> Fallible<u64> {
    let mut batch = InputBatch::default();
    let mut events = 0;
    while source.next_batch(&mut batch)? {
        events += batch.len() as u64;
        black_box(&batch);
    }
    Ok(events)
}

/// Lowers and validates a source without keeping its events.
fn stream(source: impl InputSource) -> Fallible<u64> {
    let mut lowered = Lowered::new(source);
    let mut batch = Batch::default();
    while lowered.next_batch(&mut batch)? {
        black_box(&batch);
    }
    Ok(lowered.events())
}

fn write_std(names: &Names, batches: &[InputBatch], out: Vec<u8>) -> Fallible<Vec<u8>> {
    let mut out = Cursor::new(out);
    let mut writer = StdWriter::new(&mut out, Dialect::Portent, Layout::of(names)?);
    for batch in batches {
        writer.write(names, batch)?;
    }
    writer.finish()?;
    Ok(out.into_inner())
}

fn write_portent(names: &Names, batches: &[InputBatch], out: Vec<u8>) -> Fallible<Vec<u8>> {
    let mut out = Cursor::new(out);
    let mut writer = PortentWriter::new(&mut out)?;
    for batch in batches {
        writer.write(names, batch)?;
    }
    writer.finish()?;
    Ok(out.into_inner())
}

/// What is in memory of this process, and the most that ever was, in bytes; `None` where there is no `/proc`.
fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// By how much building the trace in a file grows a fresh process: what stays, and the peak.
fn resident_growth(portent: &[u8]) -> Fallible<Option<(u64, u64)>> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(portent)?;
    let child = Command::new(std::env::current_exe()?).arg(RESIDENT).arg(file.path()).output()?;
    let text = String::from_utf8(child.stdout)?;
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(kept), Some(peak)) => Ok(Some((kept?, peak?))),
        _ => Ok(None),
    }
}

/// The child's side of [`resident_growth`].
fn print_resident_growth(path: &str) -> Fallible<()> {
    let mut source = PortentReader::open(File::open(path)?, false)?;
    let before = resident();
    let trace = Trace::from_input(&mut source)?;
    if let (Some((before, _)), Some((after, peak))) = (before, resident()) {
        println!("{} {}", after - before, peak - before);
    }
    drop(trace);
    Ok(())
}

/// As the first argument: measure memory instead.
const RESIDENT: &str = "--resident";

fn main() -> Fallible<()> {
    if let Some(path) = std::env::args().skip_while(|argument| argument != RESIDENT).nth(1) {
        return print_resident_growth(&path);
    }
    let options = Options::parse()?;
    let bench = Bench { events: options.events, repeat: options.repeat };
    println!("{} events, shape {}, best of {}", options.events, options.preset, options.repeat);

    bench.rate("generate", None, || drain(options.generator()?))?;
    let mut source = options.generator()?;
    let (mut batches, mut batch) = (Vec::new(), InputBatch::default());
    while source.next_batch(&mut batch)? {
        batches.push(std::mem::take(&mut batch));
    }
    let names = source.take_names();

    // Writers reuse one buffer: growing it is the caller's business.
    let mut spare = Vec::with_capacity(64 * options.events as usize);
    let std = bench.rate("write STD", None, || {
        spare.clear();
        spare = write_std(&names, &batches, std::mem::take(&mut spare))?;
        Ok(spare.len())
    })?;
    let std = spare[..std].to_vec();
    let portent = bench.rate("write .portent", None, || {
        spare.clear();
        spare = write_portent(&names, &batches, std::mem::take(&mut spare))?;
        Ok(spare.len())
    })?;
    let portent = spare[..portent].to_vec();
    drop((spare, batches));

    bench.rate("read STD: parse", Some(10.0), || drain(StdReader::new(&std[..])))?;
    bench.rate("read STD: parse, lower, validate, build", None, || {
        Ok(Trace::from_input(&mut StdReader::new(&std[..]))?)
    })?;
    let open = || PortentReader::open(Cursor::new(&portent[..]), false);
    bench.rate("read .portent: decode", None, || drain(open()?))?;
    bench.rate("read .portent: decode, lower, validate", Some(40.0), || stream(open()?))?;

    let build = || Ok(Trace::from_input(&mut open()?)?);
    let trace = bench.rate("read .portent: decode, lower, validate, build", Some(40.0), build)?;

    let per_event = |bytes: u64| bytes as f64 / options.events as f64;
    size("STD on disk", per_event(std.len() as u64), None);
    size(".portent on disk", per_event(portent.len() as u64), Some(6.0));
    size("trace in memory", trace.bytes_per_event(), Some(24.0));
    match resident_growth(&portent)? {
        Some((kept, peak)) => {
            size("resident memory that the trace adds", per_event(kept), Some(24.0));
            size("peak while it is built", per_event(peak), Some(24.0));
        }
        None => println!("resident memory: there is no /proc here to ask"),
    }
    Ok(())
}
