//! `portent demo`: everything that works today, on traces made for the occasion.

use super::{generate, print, stats_text, validate};
use crate::args::{Arguments, Command, DemoArgs};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::count;
use crate::terminal::{Bar, Unit};
use crate::traces::Input;
use clap::Parser;
use portent_predict::{Control, Options, predict};
use portent_report::{Extras, Report, Settings, text};
use portent_trace::generate::Config;
use portent_trace::stats::Stats;
use portent_trace::{Trace, TraceError};
use std::path::Path;
use std::time::{Duration, Instant};

/// The command that makes the trace, shown to the user and run as it stands.
const MAKE: &str = "portent gen --seed 7 --events 200000 --threads 8 --variables 400 --locks 16 \
    --values 1 --updates 0.05 --atomic 0.1 --blocks 2000 --shared 0.1 --busy 0.002 \
    --conditions 4 --waits 0.02 --barriers 1 --barrier-events 0.005 --semaphores 2 --semaphore-events 0.01 \
    --locations named";

/// A run in which nothing went wrong: a withdrawal and an audit, one after the other, each under the lock, with the log
/// written before and after. Other interleavings of the same run are not so lucky.
const STORY: &str = "\
main|fork(teller)|bank.c:40
main|w(log)|bank.c:41
main|acq(account)|bank.c:10
main|r(balance)|bank.c:11|100
main|w(balance)|bank.c:12|70
main|rel(account)|bank.c:13
teller|acq(account)|bank.c:20
teller|w(audit)|bank.c:21
teller|rel(account)|bank.c:22
teller|w(log)|bank.c:23
";

/// Makes, validates and describes a trace, and predicts from another.
pub(crate) fn run(_: &DemoArgs) -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir().map_err(|error| TraceError::whole(error).in_input("temporary directory"))?;
    let path = folder.path().join("demo.portent");

    print("Portent cannot record programs yet, so this demo works on synthetic runs.\n\n")?;
    let started = Instant::now();
    let events = generate::write(demo_config()?, &path, None)?;
    let size = path.metadata().map_err(|error| TraceError::whole(error).in_input("demo.portent"))?.len();
    print(&format!(
        "1. {}\n     -o demo.portent\n   {} events of 8 threads with locks, conditions, barriers and semaphores, \
         made from a seed\n   and written to a temporary file: {} KB, {:.1} bytes per event, {}.\n\n",
        wrapped(MAKE),
        count(events),
        count(size.div_ceil(1000)),
        size as f64 / events.max(1) as f64,
        seconds(started.elapsed()),
    ))?;

    let started = Instant::now();
    let stats = describe(&path)?;
    let report = validate::report("demo.portent", &stats.summary);
    print(&format!("2. portent validate demo.portent\n   {}", report.replace('\n', "\n   ").trim_end()))?;
    print(&format!(
        "\n   Locks exclude each other, threads run only while they exist, reads see what was last written: {}.\n\n",
        seconds(started.elapsed())
    ))?;
    print(&format!("3. portent stats demo.portent\n{}\n", indented(&stats_text::page("demo.portent", &stats))))?;
    let trace = Trace::from_std(STORY)?;
    let Options { kinds, model, .. } = Options::default();
    let prediction = predict(&trace, &Options::default(), &Control::default());
    let mut report = Report::new(Settings { input: "story.std".into(), kinds, ..Settings::default() });
    report.add(trace.into(), model, prediction, &Extras::default());
    print(&format!(
        "4. portent predict story.std\n   The ten events of story.std, of a run in which nothing went wrong:\n{}\n{}\n",
        indented(&indented(STORY)),
        indented(&text::page(&report, &text::Look::default())),
    ))?;
    print(
        "The two writes of the log were far apart, with a lock taken in between, and a happens-before detector stays silent\n\
         (`beyond_hb`); had the teller been first at the lock, they would have met. The same commands work on your own traces\n\
         in RAPID's STD text. What comes next: recording C and C++ programs, and replaying what was predicted.\n",
    )?;
    Ok(ExitCode::NothingFound)
}

/// The settings behind [`MAKE`].
fn demo_config() -> Result<Config, Failure> {
    let parsed = Arguments::try_parse_from(MAKE.split_whitespace());
    match parsed.map(|arguments| arguments.command) {
        Ok(Command::Gen(args)) => args.config(),
        _ => Err(Failure::usage("the demo's own command line does not parse", "this is a bug in portent: report it")),
    }
}

fn describe(path: &Path) -> Result<Stats, Failure> {
    let mut input = Input::open(path, false)?;
    let mut bar = Bar::new("validating demo.portent", Unit::Bytes);
    input.named(|source| Stats::collect(source, |progress| bar.update(progress)))
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("   {line}\n") }).collect()
}

/// A long command line in lines of at most 96 characters.
fn wrapped(command: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in command.split(" --") {
        let word = if text.is_empty() { word.to_owned() } else { format!(" --{word}") };
        if column + word.len() > 96 {
            text.push_str(" \\\n    ");
            column = 4;
        }
        column += word.len();
        text.push_str(&word);
    }
    text + " \\"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_that_is_shown_is_one_that_works() {
        let config = demo_config().unwrap();
        assert_eq!((config.events, config.threads), (200_000, 8));
        config.check().unwrap();
    }
}
