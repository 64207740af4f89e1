//! `portent convert`: a trace in another format.

use super::print;
use crate::args::ConvertArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::figures::counted;
use crate::terminal::{self, Bar, Unit};
use crate::traces::{self, Input, is_standard, output_format};
use portent_trace::format::{Dialect, FORMULAS, Format};
use portent_trace::{InputBatch, Layout};

/// Copies every event of one trace to another.
pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    let format = output_format(&args.output, args.format)?;
    if args.rapid && format != Format::Std {
        let message = "--rapid writes STD text only";
        return Err(Failure::usage(message, "give the output the ending .std, or `-` for standard output"));
    }
    let dialect = if args.rapid { Dialect::Rapid } else { Dialect::Portent };
    let mut input = Input::open(&args.input, args.salvage)?;
    let mut bar = Bar::new(format!("converting {}", input.name()), Unit::Bytes);
    let mut batch = InputBatch::default();
    // The first events are read before anything is created: an input that is no trace leaves no output.
    let mut more = input.named(|source| source.next_batch(&mut batch))?;
    let layout = input.named(|source| Layout::of(source.names()))?;
    let mut output = traces::create(&args.output, format, dialect, layout)?;
    let mut events = 0;
    while more {
        events += batch.len() as u64;
        output.write(input.source().names(), &batch).map_err(traces::write_error)?;
        bar.update(input.source().progress());
        more = input.named(|source| source.next_batch(&mut batch))?;
    }
    drop(bar);
    let formulas = input.named(|source| source.take_formulas())?;
    let mut attachments = input.attachments();
    if let Some(formulas) = formulas {
        attachments.insert(FORMULAS, formulas.to_text().into_bytes());
    }
    for (kind, attached) in attachments {
        output.attach(kind, &attached).map_err(traces::write_error)?;
    }
    let notes = output.finish().map_err(traces::write_error)?;
    input.warn_if_truncated();
    for note in notes {
        terminal::message("note", &note);
    }
    if !is_standard(&args.output) {
        print(&format!("{}: {} written\n", args.output.display(), counted(events, "event")))?;
    }
    Ok(ExitCode::NothingFound)
}
