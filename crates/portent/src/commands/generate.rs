//! `portent gen`: a well-formed synthetic trace from a seed.

use super::print;
use crate::args::GenArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::terminal::{self, Bar, Unit};
use crate::traces::{self, FormatName, is_standard, output_format};
use portent_trace::format::{Dialect, FORMULAS, TraceSink};
use portent_trace::generate::{Config, ConfigError, Generator, PRESETS};
use portent_trace::{InputBatch, InputSource, Layout};
use std::path::Path;

impl GenArgs {
    /// The settings they ask for.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.preset {
            None => Config::default(),
            Some(name) => Config::preset(name).ok_or_else(|| unknown_preset(name))?,
        };
        self.knobs.turn(&mut config);
        config.seed = self.seed;
        Ok(config)
    }
}

/// Writes the trace that the arguments ask for.
pub(crate) fn run(args: &GenArgs) -> Result<ExitCode, Failure> {
    if args.list_presets {
        return list_presets();
    }
    let events = write(args.config()?, &args.output, args.format)?;
    if !is_standard(&args.output) {
        print(&format!("{}: {} written\n", args.output.display(), counted(events, "event")))?;
    }
    Ok(ExitCode::NothingFound)
}

/// Generates a trace into a file, or onto standard output for `-`; gives the number of events.
pub(crate) fn write(config: Config, path: &Path, format: Option<FormatName>) -> Result<u64, Failure> {
    let format = output_format(path, format)?;
    let mut source = Generator::new(config).map_err(impossible)?;
    let mut bar = Bar::new("generating", Unit::Events);
    let layout = Layout::of(source.names())?;
    let mut output = traces::create(path, format, Dialect::Portent, layout)?;
    let mut batch = InputBatch::default();
    let mut events = 0;
    while source.next_batch(&mut batch)? {
        events += batch.len() as u64;
        output.write(source.names(), &batch).map_err(traces::write_error)?;
        if events % FORMULAS_OF == 0 {
            attach_formulas(&mut source, &mut *output)?;
        }
        bar.update(source.progress());
    }
    attach_formulas(&mut source, &mut *output)?;
    drop(bar);
    for note in output.finish().map_err(traces::write_error)? {
        terminal::message("note", &note);
    }
    Ok(events)
}

/// Formulas are written with every so many events, and held no longer: as many as a chunk of a `.portent` file has, which they
/// would otherwise cut short.
const FORMULAS_OF: u64 = 65_536;

fn attach_formulas(source: &mut Generator, output: &mut dyn TraceSink) -> Result<(), Failure> {
    match source.take_formulas()? {
        Some(formulas) => output.attach(FORMULAS, formulas.to_text().as_bytes()).map_err(traces::write_error),
        None => Ok(()),
    }
}

fn impossible(error: ConfigError) -> Failure {
    let flag = error.knob.replace('_', "-");
    let message = format!("--{flag}: {} given; expected {}", error.given, error.allowed);
    Failure::usage(message, "`portent gen --help` lists every setting")
}

fn unknown_preset(name: &str) -> Failure {
    let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    let message = format!("there is no preset {name:?}; expected one of {}", names.join(", "));
    Failure::usage(message, "`portent gen --list-presets` says what they are like")
}

fn list_presets() -> Result<ExitCode, Failure> {
    let width = PRESETS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = PRESETS.iter().map(|(name, about)| format!("{name:<width$}  {about}\n")).collect();
    print(&lines.concat())?;
    Ok(ExitCode::NothingFound)
}
