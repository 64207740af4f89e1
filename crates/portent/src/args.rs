//! The command line: every command and flag, defined once, with its help.

use crate::exit;
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

mod knobs;

use knobs::Knobs;
use portent_predict::Options;

/// Finds the concurrency bugs that other interleavings of one recorded run contain, and makes them happen.
///
/// Build a program with `portent cc`, then check it with `portent check`: one run is recorded, the bugs of its other
/// interleavings are predicted, and every prediction is replayed. The other commands do one step at a time, and predict
/// from traces of other tools.
#[derive(Debug, Parser)]
#[command(name = "portent", version, max_term_width = 100, propagate_version = false)]
#[command(after_long_help = examples_and_statuses(TOP))]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the command line does where it is not told otherwise. Other defaults are those of the libraries.
pub(crate) mod defaults {
    use portent_explore::Options;
    use std::num::NonZeroU32;
    use std::time::Duration;

    /// `check`: how often the program is run and recorded.
    pub(crate) const RECORDINGS: NonZeroU32 = NonZeroU32::new(Options::RECORDINGS).unwrap();
    /// `check`: how deep behaviour that only replays show is followed.
    pub(crate) const ROUNDS: NonZeroU32 = NonZeroU32::new(Options::ROUNDS).unwrap();
    /// `check`: how many neighbours of each examined run are tried.
    pub(crate) const TRIES: usize = Options::NEIGHBOURS;
    /// `check`: how often each finding is replayed.
    pub(crate) const REPLAYS: u32 = Options::TIMES;
    /// `check`: how long all predictions and all replays may take.
    pub(crate) const BUDGET: Duration = Options::BUDGET;
    /// `check`, `replay`: seconds after which a run hangs.
    pub(crate) const TIMEOUT: f64 = Options::TIMEOUT.as_secs() as f64;
}

/// The whole command line, with every default that only libraries know.
pub(crate) fn command_line() -> clap::Command {
    let knobs: BTreeMap<&str, String> = Knobs::defaults().into_iter().collect();
    Arguments::command().mut_subcommands(|command| match command.get_name() {
        "check" => with_budget(command, &defaults::BUDGET.as_secs().to_string()),
        "predict" | "watch" => with_budget(command, "no limit"),
        "gen" => command.mut_args(|arg| match knobs.get(arg.get_id().as_str()) {
            Some(default) if !default.is_empty() => with_default(arg, default),
            _ => arg,
        }),
        _ => command,
    })
}

fn with_budget(command: clap::Command, default: &str) -> clap::Command {
    command.mut_args(|arg| if arg.get_id() == "budget" { with_default(arg, default) } else { arg })
}

/// A default that clap does not fill in, shown as if it did.
fn with_default(arg: clap::Arg, default: &str) -> clap::Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} [default: {default}]"))
}

const TOP: &str = "  portent demo                          see what it finds in small programs
  make CC=\"portent cc\"                  build a program so that it can be recorded
  portent check -- ./program            find its bugs, and see each of them happen
  portent predict run.portent           predict from a trace
  portent gen --seed 1 -o a.portent     make a synthetic trace
  portent convert a.portent a.std       turn it into text";

fn record_examples() -> String {
    "Examples:\n  portent record -- ./bank 4\n  portent record -o run.portent --sched random --seed 7 -- ./bank 4\n  \
     portent record -- ./bank 4 && portent predict bank.portent\n\n\
     Exit status:\n  that of the program, or the signal that ended it; besides:\n  \
     1  the program came to a deadlock\n  2  bad usage, or nothing was recorded\n  \
     3  the program could not be started"
        .to_owned()
}

fn examples_and_statuses(examples: &str) -> String {
    format!("Examples:\n{examples}\n\n{}", exit::HELP)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build and check small C programs with one bug each, and tell the story of every bug found.
    ///
    /// Eight bug patterns, and five clean twins in which there is nothing to find, are built with the system's C compiler
    /// (gcc, cc or clang, or what PORTENT_CC names) and checked as `portent check` does. This takes a few seconds, and
    /// nothing is left behind unless --keep says where. Exits with 0 if every program came out as it should, else with 1.
    #[command(after_long_help = examples_and_statuses("  portent demo\n  portent demo --keep examples"))]
    Demo(DemoArgs),

    /// The C compiler, with instrumentation: use it as CC in any build.
    ///
    /// All arguments go to gcc, or to the compiler that PORTENT_CC names; so do --help and --version.
    #[command(disable_help_flag = true)]
    Cc(CompilerArgs),

    /// The C++ compiler, with instrumentation: use it as CXX in any build.
    ///
    /// All arguments go to g++, or to the compiler that PORTENT_CXX names; so do --help and --version.
    #[command(disable_help_flag = true, name = "c++")]
    Cxx(CompilerArgs),

    /// Find the bugs in other interleavings of a program, and show them: record, predict, replay, report.
    ///
    /// The program is run once and recorded. What could go wrong in other interleavings of that run is predicted, every
    /// prediction is replayed, and runs that differ by one switch between threads are tried. Then every other behaviour is
    /// looked for, until all were run, which is a proof, or as far as it is worth it: the last line says which, and --runs or
    /// --exhaustive go further. Every run is looked at for failures: crashes, failed assertions, hangs, memory that is used after it was freed and the like. Failures decide the
    /// exit status; observations, such as values that depend on who comes first, are counted, and listed with --observations.
    /// The program must be built with `portent cc`, or with -fsanitize=thread. Runs and findings
    /// stay in PROGRAM.checks in the current directory, for `portent replay`. The program's own output is shown for the
    /// recorded runs only. A driver such as `ctest`, `make check` or a script may stand in the program's place: each program
    /// with instrumentation that it starts is checked by itself.
    #[command(after_long_help = examples_and_statuses(
        "  portent check ./server --selftest\n  portent check --html report.html --budget 300 -- ./stress 4\n  \
         portent check --recordings 5 --suppress known.txt --sarif findings.sarif -- ./tests\n  \
         portent check --exhaustive -- ./tests/queue\n  portent check --junit results.xml -- ctest"))]
    Check(Box<CheckArgs>),

    /// Predict the bugs of a program while it runs, for programs that do not end.
    ///
    /// The program is recorded, and what could go wrong in other interleavings is predicted as it goes on: each bug is told as soon as it is
    /// certain, whatever the program does later. Stop it (Ctrl-C, SIGTERM; the program gets the signal) or let it end: then the whole run
    /// is examined, and the report is that of `portent predict` on its trace. Bugs whose operations are far apart, lost
    /// wake-ups and properties of long runs are told then. Trace and findings stay in PROGRAM.checks, for `portent replay`, if
    /// there is a finding.
    #[command(after_long_help = examples_and_statuses(
        "  portent watch -- ./server --port 8080\n  portent watch --kind race,deadlock --keep -- ./server\n  \
         portent watch --on-violation stop -- ./soak\n  \
         portent watch --on-violation 'exec=logger \"$PORTENT_WHAT\"' -- ./server"))]
    Watch(Box<WatchArgs>),

    /// Run a program and record what its threads do.
    ///
    /// The program must be built with instrumentation (`portent cc`, or any compiler with -fsanitize=thread that does not
    /// link a runtime of its own). One thread runs at a time, so the trace has the exact order and every value. Input and
    /// output of the program are its own; Portent's messages go to standard error. Exits as the program did, or with 1 if
    /// the program came to a deadlock.
    #[command(after_long_help = record_examples())]
    Record(RecordArgs),

    /// Predict the bugs that other interleavings of a recorded run contain.
    ///
    /// Races, deadlocks, lost updates, atomicity violations and nondeterminism, each with a schedule that shows it and that
    /// was checked against the trace. The last two are observations, which do not decide the exit status unless --kind or
    /// --atomic asks for them. In a long trace, each question is asked of the events that it depends on; what is not decided
    /// that way, or not examined in time, is counted and shown. Ctrl-C shows what is known so far.
    #[command(after_long_help = examples_and_statuses(
        "  portent predict run.std\n  portent predict run.portent --kind race,deadlock --json findings.json\n  \
         portent predict run.portent --model sync --budget 60 --stats\n  \
         portent predict run.portent --html findings.html --sarif findings.sarif --suppress known.txt\n  \
         portent predict run.std --spec landing.spec --svg lattice.svg"))]
    Predict(Box<PredictArgs>),

    /// Run a recorded program again under a given schedule, and see what happens.
    ///
    /// With --finding, the schedule is the finding's own, and the finding counts as shown only if it was seen: both
    /// threads at their racing accesses at once, every thread of the deadlock waiting, another value read. With
    /// --schedule, it is a text file with one `THREAD EVENTS` on each line, such as `T1 12`, and optionally `goal race T1 T2`
    /// or `goal deadlock T1 T2` at its end. With neither, the recorded run itself is repeated and compared event by event.
    /// Exits with 1 if the finding was shown (or the recorded run could not be repeated), else with 0.
    #[command(after_long_help = examples_and_statuses(
        "  portent replay run.portent\n  portent replay run.portent --finding race-7c1f0a --times 100\n  \
         portent replay run.portent --finding race-7c1f0a --debugger gdb"))]
    Replay(ReplayArgs),

    /// Make traces of recordings whose recorder was killed.
    ///
    /// A recording is made in a directory of its own, in the one for temporary files; only when the program has ended, a trace is
    /// written. Should portent itself be killed before that, the program ends with it (`record --outlive` lets it go on), and
    /// what was recorded by then stays there. The next command says so, and this one writes it to PROGRAM.recovered-N.portent.
    #[command(after_long_help = examples_and_statuses("  portent recover --list\n  portent recover"))]
    Recover(RecoverArgs),

    /// Check that traces are well formed.
    ///
    /// Prints one line for each trace, or the first thing that is wrong with it: which input, where, what was expected. A
    /// truncated .portent file counts as malformed here.
    #[command(after_long_help = examples_and_statuses(
        "  portent validate run.portent\n  portent validate old/*.std\n  zcat run.std.gz | portent validate -"))]
    Validate(ValidateArgs),

    /// Describe what is in a trace.
    ///
    /// Operations, threads, locks, the busiest variables, nesting, and how often threads alternate. The trace is
    /// validated on the way and never held in memory. A truncated .portent file is described as far as it goes, with a
    /// warning.
    #[command(after_long_help = examples_and_statuses(
        "  portent stats run.portent\n  portent stats --json run.std | jq .per_lock\n  portent gen | portent stats -"))]
    Stats(StatsArgs),

    /// Convert a trace to another format.
    ///
    /// The format of OUT follows its ending: .std (text), .portent (compact, seekable) or .parquet (tables, in builds
    /// that have it). The format of IN is recognised by its contents. Events are copied as they are: `portent validate`
    /// says whether they make sense. What the new format cannot hold is dropped, with a note.
    #[command(after_long_help = examples_and_statuses(
        "  portent convert run.std run.portent\n  portent convert run.portent - | less\n  \
         portent convert --rapid run.portent for-rapid.std\n  portent convert --salvage damaged.portent rest.portent"))]
    Convert(ConvertArgs),

    /// Make a well-formed synthetic trace from a seed.
    ///
    /// The same seed and settings make the same trace, on every machine. Without -o the trace is written to standard
    /// output as STD text.
    #[command(after_long_help = examples_and_statuses(
        "  portent gen --seed 7 | head\n  portent gen --list-presets\n  \
         portent gen --threads 16 --events 1000000 --seed 7 -o big.portent"))]
    Gen(Box<GenArgs>),

    /// Draw the monitors of properties: what they remember, and which events lead where.
    ///
    /// Without --dot and --svg it says how many states each has. Values are tried around the numbers that stand in the property.
    #[command(after_long_help = examples_and_statuses(
        "  portent spec landing.spec\n  portent spec landing.spec --dot - | dot -Tpdf > landing.pdf\n  \
         portent spec landing.spec --svg landing.svg"))]
    Spec(SpecArgs),

    /// Print a script that completes portent's commands and options in a shell.
    #[command(after_long_help = examples_and_statuses(
        "  portent completions bash > ~/.local/share/bash-completion/completions/portent\n  \
         portent completions zsh > ~/.zfunc/_portent\n  portent completions fish > ~/.config/fish/completions/portent.fish"))]
    Completions(CompletionsArgs),

    /// Print portent's manual page, or write those of all commands to a directory.
    #[command(after_long_help = examples_and_statuses(
        "  portent man | man -l -\n  portent man --output ~/.local/share/man/man1"))]
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that runs the script.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct SpecArgs {
    /// The file of properties.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Draw the monitors for Graphviz, one graph for each property; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
    /// Draw the monitor as SVG; the file must have one property.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for portent and one for each command to this directory, which is made if it does not exist.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Whatever the compiler is given. Read before clap sees it, which would keep a `--` for itself.
#[derive(Debug, Args)]
pub(crate) struct CompilerArgs {
    /// Arguments of the compiler.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the programs, their recorded runs and findings, and an HTML report of each in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

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
pub(crate) struct GenArgs {
    /// Start from these settings (see --list-presets); other flags change them.
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// List the presets and what they are like.
    #[arg(long, conflicts_with_all = ["preset", "output", "format"])]
    pub(crate) list_presets: bool,
    /// Where all randomness comes from: the same seed makes the same trace.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The file to write; `-` is standard output, as STD text.
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) output: PathBuf,
    /// The format of the file, whatever its ending.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) format: Option<crate::traces::FormatName>,
    #[command(flatten)]
    pub(crate) knobs: Knobs,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// The trace to examine; `-` is standard input.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// What reads in another interleaving must see.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = ModelName::Reads)]
    pub(crate) model: ModelName,
    /// Print what the prediction cost: questions, how they were settled, time.
    #[arg(long)]
    pub(crate) stats: bool,
    /// How to look for bugs.
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineName::Order)]
    pub(crate) engine: EngineName,
    /// Ask every question of a window anew, without what earlier ones found out: for comparison; it finds the same.
    #[arg(long)]
    pub(crate) no_reuse: bool,
    /// Draw the lattice of a small trace, for Graphviz: the observed run bold, the violating path red.
    #[arg(long, value_name = "FILE", requires = "spec")]
    pub(crate) dot: Option<PathBuf>,
    /// Draw it as SVG.
    #[arg(long, value_name = "FILE", requires = "spec")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

/// What to look for and how hard: the same for `predict` and `check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SearchArgs {
    /// Which kinds of bug to look for, separated by commas; those that are named here decide the exit status, atomicity and
    /// nondeterminism included [default: all; property only with --spec].
    #[arg(long, value_name = "KINDS", value_enum, value_delimiter = ',')]
    pub(crate) kind: Vec<KindName>,
    #[arg(long, value_name = "N", value_parser = window, help = format!(
        "Examine a trace of up to this many events as a whole [default: {}; {} in the model values, where the trace has formulas]",
        Options::WINDOW, Options::SYMBOLIC_WINDOW))]
    pub(crate) window: Option<usize>,
    /// How many events one question about a longer trace may look at.
    #[arg(long, value_name = "N", default_value_t = Options::REACH, value_parser = window)]
    pub(crate) reach: usize,
    /// Stop after this many seconds, with what is known by then.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) budget: Option<f64>,
    /// Threads to use [default: one per core].
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<std::num::NonZeroU16>,
    /// Which functions are atomic blocks: a regular expression on their names [default: all but main and the functions
    /// that threads start in].
    #[arg(long, value_name = "REGEX")]
    pub(crate) atomic: Option<regex::Regex>,
    /// Exit with 4 if no failure was found but the search was incomplete.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Look for schedules that break the properties in FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) spec: Option<PathBuf>,
    /// How many cuts to keep per level of the lattice on which properties are checked; the observed run is always kept.
    #[arg(long, value_name = "N", default_value_t = portent_predict::lattice::Bounds::WIDTH, value_parser = width, requires = "spec")]
    pub(crate) width: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The program and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub(crate) program: Vec<OsString>,
    /// Where to keep the recorded run, for replays, over what is there [default: a new directory in PROGRAM.checks, and
    /// PROGRAM.portent as a link to it].
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: Option<PathBuf>,
    /// Run the program at most this often to look for failures, and do not stop before that unless all behaviours were run;
    /// what makes sure of failures and shortens their schedules comes on top.
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<std::num::NonZeroU64>,
    /// Search until all behaviours were run, without a limit of time or runs; Ctrl-C ends it, --resume goes on with it.
    #[arg(long, conflicts_with_all = ["runs", "budget"])]
    pub(crate) exhaustive: bool,
    /// Go on with the search of the last check of this program, which was stopped or has used up its time or its runs.
    #[arg(long)]
    pub(crate) resume: bool,
    /// How to choose runs; with pct and random nothing is predicted, and the first failure ends it unless --runs is given.
    #[arg(long, value_name = "STRATEGY", value_enum, default_value_t = StrategyName::Explore)]
    pub(crate) strategy: StrategyName,
    /// What chance starts from: the same seed gives the same runs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// With --strategy pct: how many orders between operations a bug may need.
    #[arg(long, value_name = "N", default_value = "3", value_parser = depth)]
    pub(crate) pct_depth: std::num::NonZeroU8,
    /// How often to record the program: first as `record` does, then under random schedules.
    #[arg(long, value_name = "N", default_value_t = defaults::RECORDINGS)]
    pub(crate) recordings: std::num::NonZeroU32,
    /// How deep to follow behaviour that only replays show.
    #[arg(long, value_name = "N", default_value_t = defaults::ROUNDS)]
    pub(crate) rounds: std::num::NonZeroU32,
    /// How often to replay each finding; with 0, findings stay `predicted`.
    #[arg(long, value_name = "N", default_value_t = defaults::REPLAYS)]
    pub(crate) times: u32,
    /// How many other schedules to try around each run that is examined, for failures that nothing predicts.
    #[arg(long, value_name = "N", default_value_t = defaults::TRIES)]
    pub(crate) tries: usize,
    /// A schedule after which the program prints something else than in the recorded run (other lines, not only in another
    /// order) is a failure.
    #[arg(long)]
    pub(crate) same_output: bool,
    /// Waits on conditions may also end without a notify, as POSIX and C++ allow: runs in which they do, once for each thread, are
    /// searched for, and made by chance.
    #[arg(long)]
    pub(crate) spurious_wakeups: bool,
    /// What the program reads as standard input, in every run.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Stop a run that takes longer than this: it hangs.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults::TIMEOUT, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// What reads in another interleaving must see [default: reads, and also sync, of which only what a replay shows is
    /// reported].
    #[arg(long, value_name = "MODEL", value_enum)]
    pub(crate) model: Option<ModelName>,
    /// Print what the runs were made for, and which of them was the first to show each failure.
    #[arg(long)]
    pub(crate) stats: bool,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// What reads in another interleaving must see.
    #[arg(long, value_name = "MODEL", value_enum, default_value_t = ModelName::Reads)]
    pub(crate) model: ModelName,
    /// What to do when a bug is found: log (tell it), stop (end the program by SIGTERM), signal=SIG (send it a signal), exec=CMD (run a
    /// shell's command, which finds PORTENT_FINDING, PORTENT_WHAT and PORTENT_PID in its environment).
    #[arg(long, value_name = "ACTION", default_value = "log", value_parser = crate::reaction::parse)]
    pub(crate) on_violation: crate::reaction::Reaction,
    /// What to do when the program is faster than the analysis: spill (leave what happens on disk, and examine it later) or
    /// sample (pass over what happened meanwhile, until the end).
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = LagName::Spill)]
    pub(crate) lag: LagName,
    /// Keep the trace also where nothing was found.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where to leave the trace, a .portent file [default: a directory of its own in PROGRAM.checks].
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArgs,
    /// The program and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub(crate) program: Vec<OsString>,
}

/// What to do when the program is faster than the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LagName {
    Spill,
    Sample,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Where to write the trace, a .portent file [default: PROGRAM.portent in the current directory].
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: Option<PathBuf>,
    /// Who runs when [default: each thread as long as it can].
    #[arg(long, value_name = "POLICY", value_enum)]
    pub(crate) sched: Option<PolicyName>,
    /// For the policies that choose at random: the same seed gives the same run.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// With --sched pct: how many orders between operations a bug may need. One less are the points at which priorities change.
    #[arg(long, value_name = "N", default_value = "3", value_parser = depth)]
    pub(crate) pct_depth: std::num::NonZeroU8,
    /// With --sched pct: how many events all threads execute, at most. The points are spread over so many.
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) pct_steps: std::num::NonZeroU64,
    /// With --sched: waits on conditions may also end without a notify, by chance.
    #[arg(long, requires = "sched")]
    pub(crate) spurious_wakeups: bool,
    /// Let the program go on if portent itself is killed; otherwise it ends with it.
    #[arg(long)]
    pub(crate) outlive: bool,
    /// Write hardly anything of the environment into the trace: no more than loader, C library and OpenMP look at. Secrets (by their
    /// names) are never written.
    #[arg(long)]
    pub(crate) no_environment: bool,
    /// The program and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub(crate) program: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Only list what there is.
    #[arg(long, conflicts_with = "discard")]
    pub(crate) list: bool,
    /// Remove it instead of making traces.
    #[arg(long)]
    pub(crate) discard: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The trace, as `portent record` wrote it.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// The finding to show.
    #[arg(long, value_name = "ID", conflicts_with = "schedule")]
    pub(crate) finding: Option<String>,
    /// The findings, as `portent predict --json` wrote them [default: TRACE with the ending .findings.json].
    #[arg(long, value_name = "FILE", requires = "finding")]
    pub(crate) findings: Option<PathBuf>,
    /// A schedule to follow.
    #[arg(long, value_name = "FILE")]
    pub(crate) schedule: Option<PathBuf>,
    /// How often to replay it; the program's output is shown only if it is once.
    #[arg(long, value_name = "N", default_value_t = std::num::NonZeroU32::MIN)]
    pub(crate) times: std::num::NonZeroU32,
    /// Run the program in a debugger, and stop where the schedule ends.
    #[arg(long, value_name = "DEBUGGER", value_enum)]
    pub(crate) debugger: Option<DebuggerName>,
    /// Stop a run that takes longer than this: it hangs.
    #[arg(long, value_name = "SECONDS", default_value_t = defaults::TIMEOUT, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Run what the trace says although it is not known who recorded it. Without this, only traces that this user recorded on this
    /// machine are replayed by themselves; others need the program on the command line.
    #[arg(long)]
    pub(crate) trust: bool,
    /// A program and arguments to use instead of the recorded ones.
    #[arg(value_name = "PROGRAM", last = true)]
    pub(crate) program: Vec<OsString>,
}

/// How deep a bug may be: priorities change at one point less, and the runtime has room for so many.
fn depth(text: &str) -> Result<std::num::NonZeroU8, String> {
    text.parse()
        .ok()
        .filter(|depth: &std::num::NonZeroU8| depth.get() <= 64)
        .ok_or("expected a number from 1 to 64".into())
}

/// A debugger, as `--debugger` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DebuggerName {
    /// The GNU debugger
    Gdb,
}

/// A time that is longer than none.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds < 1e9 => Ok(seconds),
        _ => Err("expected a number of seconds, more than 0".into()),
    }
}

/// How `check` chooses runs, as `--strategy` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StrategyName {
    /// What was predicted, then behaviours that no run has shown
    Explore,
    /// Random priorities that change at a few random points of the run, in every run (Burckhardt et al.)
    Pct,
    /// A random choice at every synchronisation event, in every run
    Random,
}

impl StrategyName {
    /// The strategy.
    pub(crate) fn strategy(self, pct_depth: std::num::NonZeroU8) -> portent_explore::Strategy {
        use portent_explore::{Pct, Policy, Strategy};
        match self {
            StrategyName::Explore => Strategy::Explore,
            StrategyName::Pct => {
                Strategy::ByChance(Policy::Pct(Pct { depth: pct_depth.get().into(), ..Pct::default() }))
            }
            StrategyName::Random => Strategy::ByChance(Policy::Random),
        }
    }

    /// What it is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            StrategyName::Explore => "explore",
            StrategyName::Pct => "pct",
            StrategyName::Random => "random",
        }
    }
}

/// A scheduling policy, as `--sched` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PolicyName {
    /// In turn, a hundred events each
    Rr,
    /// A random choice at every synchronisation event
    Random,
    /// Random priorities that change at a few random points of the run (Burckhardt et al.)
    Pct,
    /// Random priorities that count whenever somebody has to wait
    Priority,
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
    /// List observations, too: what is true and may matter, but is no alarm.
    #[arg(long)]
    pub(crate) observations: bool,
    /// Tell each finding at length, with the observed and the breaking order side by side.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// A line per finding, and nothing else.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Leave out findings that the rules in FILE suppress.
    #[arg(long, value_name = "FILE")]
    pub(crate) suppress: Option<PathBuf>,
    /// Leave out findings that are in an earlier --json report.
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
    /// Accesses that can come between two accesses of an atomic block
    Atomicity,
    /// Reads and final values that could come from another write
    Nondeterminism,
    /// Writes that are overwritten by a thread that had not seen them
    #[value(name = "lost_update")]
    LostUpdate,
    /// Schedules that break a property of --spec
    Property,
}

impl KindName {
    /// The kind of bug.
    pub(crate) fn bug_kind(self) -> portent_predict::BugKind {
        use portent_predict::BugKind;
        match self {
            KindName::Race => BugKind::Race,
            KindName::Deadlock => BugKind::Deadlock,
            KindName::Atomicity => BugKind::Atomicity,
            KindName::Nondeterminism => BugKind::Nondeterminism,
            KindName::LostUpdate => BugKind::LostUpdate,
            KindName::Property => BugKind::Property,
        }
    }
}

/// A model, as `--model` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModelName {
    /// The write that they saw in the trace: no false alarms
    Reads,
    /// Anything: finds more, and may predict what the program cannot do
    Sync,
    /// Any write of the same value, and anything where no branch follows: no false alarms, and finds more than `reads`
    Values,
}

/// An engine, as `--engine` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EngineName {
    /// Exact, over all reorderings of a window
    Order,
    /// A happens-before race detector on the observed order, for comparison
    Hb,
    /// A lockset race detector: conflicting accesses without a common lock, for comparison; most can never race
    Lockset,
}

/// A level keeps at least the observed run.
fn width(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(cuts) if cuts >= 1 => Ok(cuts),
        _ => Err("expected a number of cuts, at least 1".into()),
    }
}

/// A window needs room for two events.
fn window(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(events) if events >= 2 => Ok(events),
        _ => Err("expected a number of events, at least 2".into()),
    }
}
