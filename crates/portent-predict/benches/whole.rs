//! The whole of a prediction with default options, on every preset: CPU time, memory, and what stays undecided.
//!
//! Every row is a process of its own, so that its time and its peak memory are its own. With `--against PORTENT` each trace is also
//! given to another build's command, in the same run, and the ratio of CPU times is printed.
//!
//! `cargo bench -p portent-predict --bench whole [-- --against PORTENT] [PRESET…]`

use portent_order::Model;
use portent_predict::{Control, Options, predict};
use portent_trace::Trace;
use portent_trace::format::{self, Dialect, Format, OpenOptions};
use portent_trace::generate::{Config, Generator, PRESETS};
use portent_trace::{InputBatch, InputSource, Layout};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// CPU time of the children that have ended, in seconds. The kernel counts in hundredths.
fn of_children() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        text.rsplit(')').next().unwrap_or("").split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    fields.get(13).zip(fields.get(14)).map_or(0.0, |(user, system)| (user + system) / 100.0)
}

fn timed(command: &mut Command) -> Fallible<(String, f64)> {
    let before = of_children();
    let output = command.stderr(Stdio::null()).output()?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), of_children() - before))
}

fn write(preset: &str, path: &Path) -> Fallible<()> {
    let mut source = Generator::new(Config::preset(preset).ok_or("no such preset")?)?;
    let mut sink = format::create(path, Format::Portent, Dialect::Portent, Layout::of(source.names())?)?;
    let mut batch = InputBatch::default();
    while source.next_batch(&mut batch)? {
        sink.write(source.names(), &batch)?;
    }
    sink.finish()?;
    Ok(())
}

/// One row, in a process of its own.
fn row(path: &str) -> Fallible<()> {
    let trace = Trace::from_input(&mut *format::open(Path::new(path), OpenOptions::default())?)?;
    let told = predict(&trace, &Options { model: Model::Reads, ..Options::default() }, &Control::default());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB").trim().to_owned();
    let groups: u64 = told.stats.streamed.map_or(0, |streamed| streamed.figures.groups.iter().sum());
    let open: u64 = told.incomplete.iter().map(|entry| entry.count).sum();
    print!("{} events, {} findings, {groups} groups, {open} open, peak {peak}", trace.len(), told.findings.len());
    Ok(())
}

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench").peekable();
    if arguments.peek().is_some_and(|argument| argument == "--row") {
        return row(&arguments.nth(1).ok_or("--row needs a file")?);
    }
    let (mut against, mut presets) = (None, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--against" => against = Some(arguments.next().ok_or("--against needs a command")?),
            _ => presets.push(argument),
        }
    }
    if presets.is_empty() {
        let large = |name: &&str| matches!(*name, "tsp" | "tsp-large" | "tsp-medium");
        presets = PRESETS.iter().map(|preset| preset.0).filter(|name| !large(name)).map(str::to_owned).collect();
    }
    let folder = std::env::temp_dir().join(format!("portent-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for preset in presets {
        let path = folder.join(format!("{preset}.portent"));
        write(&preset, &path)?;
        let (text, time) = timed(Command::new(std::env::current_exe()?).arg("--row").arg(&path))?;
        print!("{preset:<16} {time:>7.2} s  {text}");
        if let Some(other) = &against {
            let (_, before) = timed(Command::new(other).arg("predict").arg(&path).args(["--jobs", "1"]))?;
            print!("; the other {before:.2} s ({:.2} ×)", time / before.max(0.01));
        }
        println!();
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
