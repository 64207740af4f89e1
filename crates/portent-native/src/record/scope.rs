//! What a run does not cover, as far as its recording and the files of its program tell.
//!
//! Code without instrumentation is found by what compilers leave: a library that asks for no runtime, and for gcc the options that it
//! notes with each source file in the debug information. What clang compiled without instrumentation into a program that
//! otherwise has it is not found.

use super::recording::Recording;
use crate::run::examine;
use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};
use portent_explore::Run;
use portent_runtime::log::input;
use portent_trace::{is_user_file, without_address};
use std::borrow::Cow;
use std::path::Path;

/// How the sentence begins that is said of such programs.
const ONE_THREAD: &str = "only one thread ran";
/// Names of files that a sentence has room for.
const NAMED: usize = 3;

/// What was not covered, in sentences.
pub fn not_covered(run: &Run) -> Vec<String> {
    let Ok(recording) = Recording::parse(&run.recording) else { return Vec::new() };
    let mut holes = Vec::new();
    if recording.family.len() == 1 && recording.events > 0 {
        holes.push(format!("{ONE_THREAD}: there are no other interleavings"));
    }
    let (mut libraries, mut sources) = (Vec::new(), Vec::new());
    for module in &recording.modules {
        let path = Path::new(&module.path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_users(path) {
            continue;
        }
        match examine::asks_for_runtime(path) {
            Some(true) => sources.extend(uninstrumented_sources(path)),
            Some(false) => libraries.push(name),
            None => {}
        }
    }
    if !libraries.is_empty() {
        let has = if libraries.len() == 1 { "has" } else { "have" };
        holes.push(format!("{} {has} no instrumentation: what runs there is not seen", some_of(&libraries)));
    }
    sources.sort();
    sources.dedup();
    if !sources.is_empty() {
        let was = if sources.len() == 1 { "was" } else { "were" };
        let names = some_of(&sources);
        holes.push(format!("{names} {was} compiled without instrumentation: what runs there is not seen"));
    }
    if let Some(outside) = outside(&recording) {
        holes.push(outside);
    }
    holes
}

/// What the program learned from outside, and where.
fn outside(recording: &Recording) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for (what, _) in &recording.outside {
        if told.contains(&what.as_str()) {
            continue;
        }
        told.push(what);
        let same = recording.outside.iter().filter(|(other, _)| other == what);
        let mut places: Vec<String> = same.map(|(_, place)| place.clone()).filter(|place| !place.is_empty()).collect();
        // Of libraries without lines, only which one.
        let lines = places.iter().any(|place| without_address(place) == place);
        places.retain(|place| !lines || without_address(place) == place);
        places.iter_mut().for_each(|place| *place = without_address(place).to_owned());
        places.dedup();
        parts.push(match places.is_empty() {
            true => what.clone(),
            false => format!("{what} {} {}", if lines { "at" } else { "in" }, some_of(&places)),
        });
    }
    let signals = recording.answers.iter().flatten().any(|answer| answer.0 == input::SIGNAL);
    parts.extend(signals.then(|| "takes signals".to_owned()));
    let last = parts.pop()?;
    let all = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
    Some(format!("{all}: what the program does when it is told something else was not tried"))
}

/// Whether a module is the user's own.
fn is_users(path: &Path) -> bool {
    let (name, whole) = (path.file_name().unwrap_or_default().to_string_lossy(), path.to_string_lossy());
    let ours = name.starts_with("libportent_runtime") || name.starts_with("libtsan");
    // The kernel's own has no file.
    !ours && is_user_file(&whole) && !whole.starts_with("/lib") && path.is_absolute()
}

/// What other runs may do that cannot be predicted from this one, beside what its events show, in sentences.
pub(super) fn unexplored(run: &Run) -> Vec<String> {
    let Ok(recording) = Recording::parse(&run.recording) else {
        return vec!["how it was recorded is not known".into()];
    };
    let mut why = not_covered(run);
    why.retain(|hole| !hole.starts_with(ONE_THREAD));
    if recording.answers.iter().flatten().any(|answer| answer.0 == input::PROCESS) {
        why.push("asks for numbers of processes or threads, which are others in each run".into());
    }
    let modules = recording.modules.iter().map(|module| Path::new(&module.path)).filter(|path| is_users(path));
    // Also where this run does not call it: others may.
    why.extend(modules.flat_map(examine::unseen).map(str::to_owned));
    why
}

fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let mut text = names[..names.len() - more].join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// The user's source files in a program or library that gcc compiled without `-fsanitize=thread`.
fn uninstrumented_sources(path: &Path) -> Vec<String> {
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let section = file.section_by_name(id.name());
        Ok(section.and_then(|section| section.uncompressed_data().ok()).unwrap_or_default())
    };
    let Ok(sections) = gimli::DwarfSections::load(load) else { return Vec::new() };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut found = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        // What is damaged tells nothing.
        let told = || {
            let unit = dwarf.unit(header).ok()?;
            let mut entries = unit.entries();
            let entry = entries.next_dfs().ok()??;
            let text = |name| {
                let value = entry.attr_value(name)?;
                Some(dwarf.attr_string(&unit, value).ok()?.to_string_lossy().into_owned())
            };
            let producer = text(gimli::DW_AT_producer)?;
            let name = text(gimli::DW_AT_name)?;
            let whole = text(gimli::DW_AT_comp_dir).map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"));
            let whole = if name.starts_with('/') { name.clone() } else { whole };
            let plain = producer.starts_with("GNU C") && !producer.contains("-fsanitize=thread");
            (plain && is_user_file(&whole)).then_some(name)
        };
        found.extend(told());
    }
    found
}
