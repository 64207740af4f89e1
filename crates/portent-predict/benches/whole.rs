//! The whole of a prediction, on presets or files: CPU time, memory, and what stays undecided.
//!
//! Every row is a process of its own, so that its time and its peak memory are its own. With `--against PORTENT` each trace is also
//! given to another build's command, in the same run, and the ratio of CPU times is printed. With `--rapid JAR` (the jar of RAPID, a
//! predictor of the literature, with `java` on the path) each trace is written as STD text and given to RAPID's engines that do
//! comparable work: happens-before, WCP (races) and Aerodrome (atomicity, of the observed run only).
//!
//! `cargo bench -p portent-predict --bench whole [-- --against PORTENT] [--rapid JAR] [--kinds KIND,…] [--model MODEL] [--events N] [PRESET|FILE…]`

use portent_order::Model;
use portent_predict::{BugKind, Control, Options, predict};
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

/// Options that rows are given.
#[derive(Clone, Default)]
struct Asked {
    kinds: Option<String>,
    model: Option<String>,
    events: Option<u64>,
}

impl Asked {
    fn options(&self) -> Fallible<Options> {
        let mut options = Options::default();
        if let Some(kinds) = &self.kinds {
            let named = |name: &str| BugKind::ALL.into_iter().find(|kind| kind.name() == name);
            options.kinds = kinds.split(',').map(named).collect::<Option<_>>().ok_or("no such kind")?;
        }
        if let Some(model) = &self.model {
            options.model = Model::ALL.into_iter().find(|known| known.name() == model).ok_or("no such model")?;
        }
        Ok(options)
    }
    /// The same for the command line of another build.
    fn flags(&self) -> Vec<String> {
        let kinds = self.kinds.iter().flat_map(|kinds| ["--kind".to_owned(), kinds.clone()]);
        kinds.chain(self.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()])).collect()
    }
}

fn write(preset: &str, events: Option<u64>, path: &Path, as_text: bool) -> Fallible<()> {
    let mut config = Config::preset(preset).ok_or("no such preset")?;
    if let Some(events) = events {
        config.blocks = (config.blocks * events).div_ceil(config.events);
        config.events = events;
    }
    let mut source: Box<dyn InputSource> = Box::new(Generator::new(config)?);
    copy(&mut *source, path, as_text)
}

fn copy(source: &mut dyn InputSource, path: &Path, as_text: bool) -> Fallible<()> {
    let (format, dialect) = if as_text { (Format::Std, Dialect::Rapid) } else { (Format::Portent, Dialect::Portent) };
    let mut sink = format::create(path, format, dialect, Layout::of(source.names())?)?;
    let mut batch = InputBatch::default();
    while source.next_batch(&mut batch)? {
        sink.write(source.names(), &batch)?;
    }
    sink.finish()?;
    Ok(())
}

/// One row, in a process of its own: the trace, kinds, model.
fn row(path: &str, asked: &Asked) -> Fallible<()> {
    let trace = Trace::from_input(&mut *format::open(Path::new(path), OpenOptions::default())?)?;
    let read = cpu();
    let told = predict(&trace, &asked.options()?, &Control::default());
    let took = cpu() - read;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB").trim().to_owned();
    let groups: u64 = told.stats.streamed.map_or(0, |streamed| streamed.figures.groups.iter().sum());
    let open: u64 = told.incomplete.iter().map(|entry| entry.count).sum();
    print!(
        "{took:.2} s predicting {} events, {} of them left out, {} findings, {groups} groups, {open} open, peak {peak}",
        trace.len(),
        told.stats.unshared,
        told.findings.len()
    );
    Ok(())
}

/// CPU time of this process, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// RAPID's engines on the same trace.
fn rapid(jar: &str, trace: &Path, folder: &Path) -> Fallible<String> {
    let text = folder.join("rapid.std");
    copy(&mut *format::open(trace, OpenOptions::default())?, &text, true)?;
    let mut told = String::new();
    for (name, class) in [("HB", "HB"), ("WCP", "WCP"), ("Aerodrome", "Aerodrome")] {
        let mut java = Command::new("java");
        java.arg("-Xmx16g").arg("-classpath").arg(jar).arg(class).args(["-f", "std", "-p"]).arg(&text);
        let (_, time) = timed(&mut java)?;
        told.push_str(&format!("; RAPID {name} {time:.2} s"));
    }
    Ok(told)
}

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut against, mut jar, mut of_row, mut presets) = (None, None, None, Vec::new());
    let mut asked = Asked::default();
    while let Some(argument) = arguments.next() {
        let mut next = || arguments.next().ok_or(format!("{argument} needs something"));
        match argument.as_str() {
            "--row" => of_row = Some(next()?),
            "--against" => against = Some(next()?),
            "--rapid" => jar = Some(next()?),
            "--kinds" => asked.kinds = Some(next()?),
            "--model" => asked.model = Some(next()?),
            "--events" => asked.events = Some(next()?.parse()?),
            _ => presets.push(argument),
        }
    }
    if let Some(path) = of_row {
        return row(&path, &asked);
    }
    if presets.is_empty() {
        let large = |name: &&str| matches!(*name, "tsp" | "tsp-large" | "tsp-medium" | "compressor");
        presets = PRESETS.iter().map(|preset| preset.0).filter(|name| !large(name)).map(str::to_owned).collect();
    }
    let folder = std::env::temp_dir().join(format!("portent-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    for preset in presets {
        let mut path = folder.join(format!("{preset}.portent"));
        if Path::new(&preset).exists() {
            path = preset.clone().into();
        } else {
            write(&preset, asked.events, &path, false)?;
        }
        let flags = asked.flags();
        let own = asked.kinds.iter().flat_map(|kinds| ["--kinds", kinds]);
        let own: Vec<&str> = own.chain(asked.model.iter().flat_map(|model| ["--model", model])).collect();
        let (text, time) = timed(Command::new(std::env::current_exe()?).arg("--row").arg(&path).args(own))?;
        print!("{preset:<16} {time:>7.2} s  {text}");
        if let Some(other) = &against {
            let (_, before) = timed(Command::new(other).arg("predict").arg(&path).args(["--jobs", "1"]).args(flags))?;
            print!("; the other {before:.2} s ({:.2} ×)", time / before.max(0.01));
        }
        if let Some(jar) = &jar {
            print!("{}", rapid(jar, &path, &folder)?);
        }
        println!();
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
