//! `portent stats`: what is in a trace.

use super::{print, stats_text};
use crate::args::StatsArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::terminal::{Bar, Unit};
use crate::traces::Input;
use portent_report::words::escaped_json;
use portent_trace::stats::Stats;
use serde::Serialize;

/// What `--json` prints. A field is added, never changed, without a new schema number.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    input: &'a str,
    #[serde(flatten)]
    stats: &'a Stats,
}

/// Describes one trace.
pub(crate) fn run(args: &StatsArgs) -> Result<ExitCode, Failure> {
    let mut input = Input::open(&args.trace, false)?;
    let name = input.name().to_owned();
    let mut bar = Bar::new(format!("reading {name}"), Unit::Bytes);
    let stats = input.named(|source| Stats::collect(source, |progress| bar.update(progress)))?;
    drop(bar);
    input.warn_if_truncated();
    if args.json {
        let document = Document { schema: 1, input: &name, stats: &stats };
        let text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?;
        print(&(escaped_json(&text) + "\n"))?;
    } else {
        print(&stats_text::page(&name, &stats))?;
    }
    Ok(ExitCode::NothingFound)
}
