//! `portent validate`: is a trace well formed?

use super::{print, stats_text};
use crate::args::ValidateArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::terminal::{Bar, Unit};
use crate::traces::Input;
use portent_trace::Trace;
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
    if let Some(missing) = summary.missing {
        return Err(Failure::Truncated { input: name, missing });
    }
    let mut text = report(&name, &summary);
    if input.named(|source| source.take_formulas())?.is_some() && !are_formulas_fine(path)? {
        text.push_str("  note: formulas are checked in files only\n");
    }
    Ok(text)
}

/// Holds formulas against the events, which takes the whole trace; `false` if that cannot be read once more.
fn are_formulas_fine(path: &Path) -> Result<bool, Failure> {
    if !path.is_file() {
        return Ok(false);
    }
    Input::open(path, false)?.named(Trace::from_input)?;
    Ok(true)
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
