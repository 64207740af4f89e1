//! The command line: every command and flag, defined once, with its help.

use crate::exit;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use crate::commands::generate::GenArgs;

const PLANNED: &str = "\
Planned, not built yet: check, record, replay, cc, c++.";

/// Predicts the concurrency bugs that other interleavings of one recorded run contain.
///
/// Today it works on traces: it makes, validates, describes and converts them, and predicts the bugs of other
/// interleavings. Recording and replaying programs come next.
#[derive(Debug, Parser)]
#[command(name = "portent", version, max_term_width = 100, propagate_version = false)]
#[command(after_help = PLANNED, after_long_help = const_format_top())]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn const_format_top() -> String {
    format!(
        "Examples:\n  portent demo                          see what works today\n  \
         portent gen --seed 1 -o a.portent     make a trace\n  \
         portent validate a.portent            is it well formed?\n  \
         portent stats a.portent               what is in it?\n  \
         portent predict a.portent             which bugs do other interleavings contain?\n  \
         portent convert a.portent a.std       as text\n\n{}\n\n{PLANNED}",
        exit::HELP
    )
}

fn after(examples: &str) -> String {
    format!("Examples:\n{examples}\n\n{}", exit::HELP)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make, validate and describe a trace, and predict from another: what works today, in a few seconds.
    ///
    /// Generates a synthetic run of about 200,000 events with locks, condition variables and barriers, writes it to a
    /// temporary .portent file, validates that, and prints its statistics. Nothing is left behind.
    #[command(after_long_help = after("  portent demo"))]
    Demo(DemoArgs),

    /// Check that traces are well formed.
    ///
    /// Prints one line for each trace, or the first offence: which input, where, what was expected. A truncated .portent
    /// file counts as an offence here.
    #[command(after_long_help = after(
        "  portent validate run.portent\n  portent validate old/*.std\n  zcat run.std.gz | portent validate -"))]
    Validate(ValidateArgs),

    /// Describe what is in a trace.
    ///
    /// Operations, threads, locks, the busiest variables, nesting, and how often threads alternate. The trace is
    /// validated on the way and never held in memory. A truncated .portent file is described as far as it goes, with a
    /// warning.
    #[command(after_long_help = after(
        "  portent stats run.portent\n  portent stats --json run.std | jq .per_lock\n  portent gen | portent stats -"))]
    Stats(StatsArgs),

    /// Convert a trace to another format.
    ///
    /// The format of OUT follows its ending: .std (text), .portent (compact, seekable) or .parquet (tables, in builds
    /// that have it). The format of IN is recognised by its contents. Events are copied as they are: `portent validate`
    /// says whether they make sense. What the new format cannot hold is dropped, and that is said.
    #[command(after_long_help = after(
        "  portent convert run.std run.portent\n  portent convert run.portent - | less\n  \
         portent convert --rapid run.portent for-rapid.std\n  portent convert --salvage damaged.portent rest.portent"))]
    Convert(ConvertArgs),

    /// Make a well-formed synthetic trace from a seed.
    ///
    /// The same seed and settings make the same trace, on every machine. Without -o the trace is written to standard
    /// output as STD text.
    #[command(after_long_help = after(
        "  portent gen --seed 7 | head\n  portent gen --list-presets\n  \
         portent gen --threads 16 --events 1000000 --seed 7 -o big.portent"))]
    Gen(Box<GenArgs>),

    /// Predict the bugs that other interleavings of a recorded run contain.
    ///
    /// Races, deadlocks, atomicity violations and nondeterminism, each with a schedule that shows it and that was checked
    /// against the trace. A long trace is examined in overlapping windows; what fits in none, or was not decided in
    /// time, is counted and shown. Ctrl-C shows what is known so far.
    #[command(after_long_help = after(
        "  portent predict run.std\n  portent predict run.portent --kind race,deadlock --json findings.json\n  \
         portent predict run.portent --model sync --budget 60 --stats\n  \
         portent predict run.portent --html findings.html --sarif findings.sarif --suppress known.txt"))]
    Predict(Box<PredictArgs>),

    #[command(hide = true, disable_help_flag = true)]
    Check(Later),
    #[command(hide = true, disable_help_flag = true)]
    Record(Later),
    #[command(hide = true, disable_help_flag = true)]
    Replay(Later),
    #[command(hide = true, disable_help_flag = true)]
    Cc(Later),
    #[command(hide = true, disable_help_flag = true, name = "c++")]
    Cxx(Later),
}

/// Whatever a command that is not built yet is given.
#[derive(Debug, Args)]
pub(crate) struct Later {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub(crate) _arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Traces to check; `-` is standard input.
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// The trace to describe; `-` is standard input.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Print JSON, with every thread and lock.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The trace to convert; `-` is standard input.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// Where to write it; `-` is standard output, as STD text unless --format says otherwise.
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Write only what RAPID accepts, and say what had to be dropped (STD text only).
    #[arg(long)]
    pub(crate) rapid: bool,
    /// Read a damaged .portent file up to the damage instead of refusing it.
    #[arg(long)]
    pub(crate) salvage: bool,
    /// The format of OUT, whatever its ending.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<crate::traces::FormatName>,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// The trace to examine; `-` is standard input.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Which kinds of bug to look for [default: all].
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub(crate) kind: Vec<KindName>,
    /// What reads in another interleaving must see.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = ModelName::Reads)]
    pub(crate) model: ModelName,
    /// Events per window.
    #[arg(long, value_name = "N", default_value_t = portent_predict::Options::WINDOW, value_parser = window)]
    pub(crate) window: usize,
    /// Stop after this many seconds, with what is known by then.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) budget: Option<f64>,
    /// Threads to use [default: one per core].
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroU16>,
    /// Print what it cost: questions, how they were settled, time.
    #[arg(long)]
    pub(crate) stats: bool,
    /// How to look for bugs.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineName::Order)]
    pub(crate) engine: EngineName,
    /// Exit with 4 if nothing was found but not everything was examined.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    #[arg(long, hide = true)]
    pub(crate) spec: Option<OsString>,
    #[arg(long, hide = true)]
    pub(crate) atomic: Option<OsString>,
}

/// What is reported, and where it is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct ReportArgs {
    /// Write findings as JSON; `-` is standard output, instead of the text.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write findings as SARIF 2.1.0, for code scanning.
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write findings as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write findings as one HTML page, with source and schedules.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Leave out findings that the rules in FILE suppress.
    #[arg(long, value_name = "FILE")]
    pub(crate) suppress: Option<PathBuf>,
    /// Leave out findings that an earlier --json report has.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Look for source files below DIR, after the working directory; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
}

/// A kind of bug, as `--kind` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KindName {
    /// Conflicting accesses that can happen at the same time
    Race,
    /// Lock cycles and lost wake-ups
    Deadlock,
    /// Accesses that can come between two of an atomic block
    Atomicity,
    /// Reads and final values that could come from another write
    Nondeterminism,
    #[value(hide = true)]
    Property,
}

impl KindName {
    /// The kind, if it can be predicted today.
    pub(crate) fn bug_kind(self) -> Option<portent_predict::BugKind> {
        use portent_predict::BugKind;
        match self {
            KindName::Race => Some(BugKind::Race),
            KindName::Deadlock => Some(BugKind::Deadlock),
            KindName::Atomicity => Some(BugKind::Atomicity),
            KindName::Nondeterminism => Some(BugKind::Nondeterminism),
            KindName::Property => None,
        }
    }
}

/// A model, as `--model` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModelName {
    /// The write they saw in the trace: no false alarms
    Reads,
    /// Anything: finds more, and may predict what the program cannot do
    Sync,
    #[value(hide = true)]
    Values,
}

/// An engine, as `--engine` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EngineName {
    /// Exact, over all reorderings of a window
    Order,
    /// A happens-before race detector on the observed order, for comparison
    Hb,
}

/// A window needs room for two events.
fn window(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(events) if events >= 2 => Ok(events),
        _ => Err("expected a number of events, at least 2".into()),
    }
}
