//! What `portent record` says when the program has ended.

use crate::figures::{count, counted};
use portent_explore::{Fault, FaultKind};
use portent_native::convert::{Converted, Odd};
use portent_native::record::Finished;
use portent_predict::{Form, Harm};
use portent_runtime::log::message;
use portent_trace::Names;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

/// All that there is to tell.
pub(super) struct Summary<'a> {
    pub(super) output: &'a Path,
    pub(super) finished: &'a Finished<'a>,
    pub(super) converted: &'a Converted,
}

/// Messages, each with its label: what was recorded, what happened, what is missing.
pub(super) fn lines(summary: &Summary<'_>, converting: Duration) -> Vec<(&'static str, String)> {
    let Summary { output, finished: Finished { ended, .. }, converted } = *summary;
    let survey = &converted.survey;
    let mut lines = vec![(
        "recorded",
        format!(
            "{}: {} of {}, {}{}; ran {:.2} s, written in {:.2} s",
            output.display(),
            counted(survey.events, "event"),
            counted(survey.threads.len() as u64, "thread"),
            switches(ended.log.header().switches),
            size(output, survey.events),
            ended.elapsed.as_secs_f64(),
            converting.as_secs_f64(),
        ),
    )];
    lines.extend(happened(converted, ended.status.signal()));
    if let Some(damage) = survey.damage {
        let text = format!(
            "the recording is damaged at byte {}: {}; the {} before it are in the trace",
            count(damage.offset as u64),
            damage.what,
            counted(survey.events, "event")
        );
        lines.push(("warning", text));
    }
    if survey.damage.is_none()
        && let Some(text) = survey.cut_in_words()
    {
        lines.push(("warning", text));
        lines.push(("help", "recordings are made in TMPDIR: set it to a directory with more room".into()));
    }
    if ended.log.header().unrecorded > 0 {
        let events = counted(ended.log.header().unrecorded.into(), "event");
        lines.push(("warning", format!("{events} are missing: their place in the trace is not known")));
    }
    if ended.randomised {
        let text = "address randomisation could not be switched off: a replay may see other addresses";
        lines.push(("warning", text.into()));
    }
    lines.extend(converted.oddities.iter().map(|odd| told(&odd, &converted.names)));
    if survey.threads.len() == 1 && survey.events > 0 {
        lines.push(("note", "only one thread ran: there is nothing to predict from this trace".into()));
    }
    lines
}

/// Something that the recording says and the trace cannot.
fn told(odd: &Odd, names: &Names) -> (&'static str, String) {
    let label = if odd.is_harmless { "note" } else { "warning" };
    let first = if odd.count == 1 { "" } else { "first " };
    (label, format!("{} {}; {first}at {}", count(odd.count), odd.text, names.location(odd.at)))
}

/// What happened to the program: deadlocks, assertions, signals, and what the runtime had to say.
fn happened(converted: &Converted, signal: Option<i32>) -> Vec<(&'static str, String)> {
    let survey = &converted.survey;
    let mut lines = Vec::new();
    if let Some(waiting) = &converted.deadlock {
        let threads: String = waiting.iter().map(|thread| format!("\n  {}", thread.sentence())).collect();
        lines.push(("deadlock", format!("no thread can go on:{threads}")));
    }
    lines.extend(converted.misdeeds.faults.iter().map(|fault| ("failure", fault_text(fault, converted))));
    let mut told: Vec<String> = Vec::new();
    for message in &survey.messages {
        let place = converted.symbols.place(message.pc);
        let thread = survey.thread_name(message.thread);
        let (label, text) = match message.kind {
            message::ASSERTION => ("assertion", format!("{thread} failed at {place}: {}", message.text)),
            message::ABORT => ("abort", format!("{thread} called abort at {place}")),
            _ if message.pc == 0 => ("warning", message.text.clone()),
            _ => ("warning", format!("{}, at {place}", message.text)),
        };
        if !told.contains(&text) {
            told.push(text.clone());
            lines.push((label, text));
        }
    }
    if let Some(fatal) = survey.fatal {
        let signal = signal_name(fatal.signal as i32);
        // The address of the instruction itself, where other places are behind their call.
        let place = converted.symbols.place(fatal.pc.wrapping_add(1));
        let thread = survey.thread_name(fatal.thread);
        lines.push(("signal", format!("{signal} in {thread} at {place}, address {:#x}", fatal.address)));
    } else if let (Some(signal), true) = (signal, converted.deadlock.is_none() && told.is_empty()) {
        lines.push(("signal", format!("{} ended the program", signal_name(signal))));
    }
    lines
}

/// What a thread did to memory or an object that was no longer there, and where that was made and ended.
fn fault_text(fault: &Fault, converted: &Converted) -> String {
    let Fault { kind, at, object, detail, made, ended } = fault;
    let (harm, end) = match kind {
        FaultKind::UseAfterFree => (Harm::UseAfterFree, "freed"),
        FaultKind::DoubleFree => (Harm::DoubleFree, "freed"),
        FaultKind::BadFree => (Harm::BadFree, "freed"),
        FaultKind::DestroyedInUse | FaultKind::UsedAfterDestroy => (Harm::DestroyedInUse, "destroyed"),
        FaultKind::ClosedInUse => (Harm::ClosedInUse, "closed"),
    };
    let title = Form::Failure(harm).words().title;
    let mut text =
        format!("{title}: {object}, by {} at {}", converted.survey.thread_name(at.thread as usize), at.place);
    if !detail.is_empty() {
        text.push_str(&format!(" ({detail})"));
    }
    for (word, moment) in [("made", made), (end, ended)] {
        if let Some(moment) = moment {
            let thread = converted.survey.thread_name(moment.thread as usize);
            text.push_str(&format!("; {word} by {thread} at {}", moment.place));
        }
    }
    text
}

fn signal_name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

fn switches(switches: u64) -> String {
    if switches == 1 { "1 switch".into() } else { format!("{} switches", count(switches)) }
}

/// How large the trace is; what it says about the run as a whole would make a short one look worse than it is.
fn size(output: &Path, events: u64) -> String {
    match output.metadata() {
        Ok(found) if events >= 10_000 => format!(", {:.1} bytes per event", found.len() as f64 / events as f64),
        Ok(found) => format!(", {} KB", count(found.len().div_ceil(1000))),
        Err(_) => String::new(),
    }
}
