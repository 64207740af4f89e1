//! Memory of which the program says that accesses may race (`AnnotateBenignRace`).
//!
//! It says so once, perhaps after the first accesses: so the notes of the recording are read on their own before the events are
//! converted, if there is such memory at all. What is said holds for as long as the memory is what it is: from its allocation
//! to its end, or always, for globals and stacks.
//!
//! An access counts if it lies inside such memory, or is a small one that touches it, as an `int` does of whose address the
//! program has spoken. Freeing a whole block is no access of the counter in it.

use super::survey::{Survey, numbers};
use crate::run::log_file::LogFile;
use portent_runtime::log::{LogEvent, Scanned, note};
use rustc_hash::FxHashMap;

/// As large as what a compiler accesses at once.
const SMALL: u64 = 16;
const PAGE: u32 = 12;
/// A recording that speaks of more is damaged.
const LARGEST: u64 = 1 << 30;

/// Memory that may be raced for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
    /// The events between which it is what it is.
    from: u64,
    until: u64,
}

/// All such memory, by the pages that it touches.
#[derive(Debug, Default)]
pub(super) struct Benign {
    pages: FxHashMap<u64, Vec<Span>>,
}

impl Benign {
    /// What a recording says.
    pub(super) fn of(file: &LogFile, survey: &Survey) -> Benign {
        let mut found = Benign::default();
        if !survey.has_benign {
            return found;
        }
        let (mut scanner, mut records) = (file.scanner(), file.records());
        let (mut index, mut spans) = (0, Vec::new());
        // Where each block begins: its end, and since when.
        let mut blocks: std::collections::BTreeMap<u64, (u64, u64)> = std::collections::BTreeMap::new();
        while index <= survey.events {
            match records.at(scanner.offset()).and_then(|bytes| scanner.next_record(bytes)) {
                Ok(Some(Scanned::Event(_))) => index += 1,
                Ok(Some(Scanned::Note(note::ALLOCATE, payload))) => {
                    let [address, size] = numbers(payload);
                    blocks.insert(address, (address.saturating_add(size), index));
                }
                Ok(Some(Scanned::Note(note::FREE, payload))) => {
                    let [address] = numbers(payload);
                    let Some((end, _)) = blocks.remove(&address) else { continue };
                    let inside = |span: &&mut Span| (address..end).contains(&span.start) && span.until == u64::MAX;
                    spans.iter_mut().filter(inside).for_each(|span: &mut Span| span.until = index);
                }
                Ok(Some(Scanned::Note(note::BENIGN, payload))) => {
                    let [start, size] = numbers(payload);
                    let block = blocks.range(..=start).next_back().filter(|(_, block)| start < block.0);
                    let from = block.map_or(0, |(_, block)| block.1);
                    let span = Span { start, end: start.saturating_add(size.clamp(1, LARGEST)), from, until: u64::MAX };
                    if !spans.contains(&span) {
                        spans.push(span);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        for span in spans {
            for page in span.start >> PAGE..=(span.end - 1) >> PAGE {
                found.pages.entry(page).or_default().push(span);
            }
        }
        found
    }

    /// Takes in what is said while the program runs: from now on, and of what comes, all accesses may race, until something else is there.
    pub(super) fn declare(&mut self, start: u64, size: u64) {
        let end = start.saturating_add(size.clamp(1, LARGEST));
        let span = Span { start, end, from: 0, until: u64::MAX };
        for page in start >> PAGE..=(end - 1) >> PAGE {
            let spans = self.pages.entry(page).or_default();
            if !spans.contains(&span) {
                spans.push(span);
            }
        }
    }

    /// Something else is there from this event on.
    pub(super) fn end(&mut self, start: u64, size: u64, index: u64) {
        if self.pages.is_empty() {
            return;
        }
        let end = start.saturating_add(size.min(LARGEST));
        for page in start >> PAGE..=end.saturating_sub(1).max(start) >> PAGE {
            let spans = self.pages.get_mut(&page).into_iter().flatten();
            spans
                .filter(|span| start < span.end && span.start < end)
                .for_each(|span| span.until = span.until.min(index));
        }
    }

    /// Whether an access, the event of this number, is of such memory.
    #[inline]
    pub(super) fn covers(&self, event: &LogEvent, index: u64) -> bool {
        !self.pages.is_empty() && self.covers_access(event.address, event.size.into(), index)
    }

    fn covers_access(&self, address: u64, size: u64, index: u64) -> bool {
        let end = address.saturating_add(size);
        let pages = [address >> PAGE, end.saturating_sub(1) >> PAGE];
        pages.iter().filter_map(|page| self.pages.get(page)).flatten().any(|span| {
            let inside = span.start <= address && end <= span.end;
            let touches = size <= SMALL && address < span.end && span.start < end;
            (inside || touches) && (span.from..span.until).contains(&index)
        })
    }
}
