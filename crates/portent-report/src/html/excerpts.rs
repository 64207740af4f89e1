//! The parts of source files that the page shows: some lines around every place.

use crate::source::Sources;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Lines shown before and after a place.
const AROUND: u32 = 12;
/// Characters of source in a page.
const LARGEST: usize = 4_000_000;

/// What the page knows of a file.
#[derive(Serialize)]
pub(super) struct File {
    name: String,
    /// Stretches of lines: the number of the first, and the texts.
    parts: Vec<(u32, Vec<String>)>,
}

/// Lines that are wanted, by file.
pub(super) struct Excerpts<'s> {
    sources: &'s Sources,
    wanted: BTreeMap<String, BTreeSet<u32>>,
}

impl<'s> Excerpts<'s> {
    pub(super) fn new(sources: &'s Sources) -> Self {
        Excerpts { sources, wanted: BTreeMap::new() }
    }
    pub(super) fn want(&mut self, file: &str, line: u32) {
        if let Some(lines) = self.wanted.get_mut(file) {
            lines.insert(line);
        } else {
            self.wanted.insert(file.to_owned(), BTreeSet::from([line]));
        }
    }
    /// The files that were found.
    pub(super) fn into_files(self) -> Vec<File> {
        let mut room = LARGEST;
        let mut files = Vec::new();
        for (name, wanted) in self.wanted {
            let Some(lines) = self.sources.lines(&name) else { continue };
            let mut parts: Vec<(u32, Vec<String>)> = Vec::new();
            for line in wanted {
                let last = lines.len().min(line.saturating_add(AROUND) as usize) as u32;
                let next = parts.last().map_or(1, |(first, texts)| first + texts.len() as u32);
                let first = line.saturating_sub(AROUND).max(1);
                if first > next || parts.is_empty() {
                    parts.push((first.max(next), Vec::new()));
                }
                let Some((from, texts)) = parts.last_mut() else { continue };
                for number in *from + texts.len() as u32..=last {
                    let text = &lines[number as usize - 1];
                    room = room.saturating_sub(text.len());
                    if room > 0 {
                        texts.push(text.clone());
                    }
                }
            }
            parts.retain(|(_, texts)| !texts.is_empty());
            files.push(File { name, parts });
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portent_testing::scratch::Scratch;

    #[test]
    fn stretches_that_touch_are_one_and_the_end_of_the_file_is_respected() {
        let scratch = Scratch::with("a.c", (1..=100).map(|n| format!("line {n}\n")).collect::<String>());
        let sources = Sources::below([scratch.directory().to_owned()]);
        let mut excerpts = Excerpts::new(&sources);
        [5, 20, 70, 98, 4000].into_iter().for_each(|line| excerpts.want("a.c", line));
        excerpts.want("missing.c", 1);
        let files = excerpts.into_files();
        assert_eq!(files.len(), 1);
        let spans: Vec<(u32, usize)> = files[0].parts.iter().map(|(first, texts)| (*first, texts.len())).collect();
        assert_eq!(spans, [(1, 32), (58, 25), (86, 15)]);
        assert_eq!(files[0].parts[1].1[0], "line 58");
    }
}
