//! `portent validate`: is a trace well formed?

use super::{print, stats_text};
use crate::args::ValidateArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::terminal::{Bar, Unit};
use crate::traces::Input;
use portent_trace::stats::Summary;
use std::path::Path;

/// Checks every trace, also after one that is malformed.
pub(crate) fn run(args: &ValidateArgs) -> Result<ExitCode, Failure> {
    let mut code = ExitCode::NothingFound;
    for path in &args.traces {
        match validate(path) {
            Ok(report) => print(&report)?,
            Err(failure) => code = failure.report(),
        }
    }
    Ok(code)
}

fn validate(path: &Path) -> Result<String, Failure> {
    let mut input = Input::open(path, false)?;
    let name = input.name().to_owned();
    let mut bar = Bar::new(format!("validating {name}"), Unit::Bytes);
    let summary = input.named(|source| Summary::collect(source, |progress| bar.update(progress)))?;
    drop(bar);
    match &summary.missing {
        Some(missing) => Err(Failure::Truncated { input: name, missing: missing.clone() }),
        None => Ok(report(&name, &summary)),
    }
}

/// One line for a well-formed trace, and a note for everything that is unfinished at its end.
pub(crate) fn report(name: &str, summary: &Summary) -> String {
    let mut text = format!(
        "{name}: well formed: {}, {}, {}, {}\n",
        counted(summary.events, "event"),
        counted(summary.threads as u64, "thread"),
        counted(summary.variables as u64, "variable"),
        counted(summary.locks as u64, "lock"),
    );
    if !summary.held_at_end.is_empty() {
        text.push_str(&format!("  note: locks still held at the end: {}\n", stats_text::held(&summary.held_at_end)));
    }
    if !summary.open_blocks.is_empty() {
        text.push_str(&format!("  note: open blocks: {}\n", stats_text::open(&summary.open_blocks)));
    }
    text
}
