//! The pairs of programs in `tests/twins`: one with a bug that a check must name first, and its fixed twin, of which it must
//! say nothing. tests/twins/README.md describes the files. What is done with them is for the tests of the command.

use crate::programs::Program;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Ends a line of the buggy twin that belongs to the bug.
const MARK: &str = "// BUG";

/// One of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// With the bug.
    Buggy,
    /// Without.
    Fixed,
}

/// What the first finding may be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct First {
    /// Its kind.
    pub kind: String,
    /// One of these forms; any, if there are none.
    #[serde(default)]
    pub form: Vec<String>,
    /// Texts of source lines, one of which is among its places; if there are none, the marked lines.
    #[serde(default)]
    pub line: Vec<String>,
}

/// What `twin.toml` says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    bug: String,
    language: Language,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    natively: String,
    missed: Option<String>,
    first: Vec<First>,
}

/// What a pair is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Language {
    #[serde(rename = "c")]
    C,
    /// With the threads of the C standard.
    #[serde(rename = "c11")]
    C11,
    #[serde(rename = "c++")]
    Cxx,
}

/// A pair of programs.
#[derive(Clone, Debug)]
pub struct Twin {
    /// Its directory.
    pub name: String,
    /// What is wrong with the buggy one, in a sentence.
    pub bug: String,
    /// What both are started with.
    pub arguments: Vec<String>,
    /// What both are checked with, beyond the defaults.
    pub options: Vec<String>,
    /// How often the bug was seen in runs without Portent.
    pub natively: String,
    /// Why the bug is not found yet, where it is not.
    pub missed: Option<String>,
    /// What the first finding may be: one of these.
    pub first: Vec<First>,
    /// Whether it uses the threads of the C standard.
    pub is_c11: bool,
    folder: PathBuf,
    ending: &'static str,
}

/// Where the pairs are.
pub fn directory() -> PathBuf {
    crate::repository().join("tests/twins")
}

impl Twin {
    /// Every pair whose name contains a word of PORTENT_TWINS, if that is set, by name.
    pub fn all() -> Vec<Twin> {
        let wanted = std::env::var("PORTENT_TWINS").unwrap_or_default();
        let wanted: Vec<&str> = wanted.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let mut twins: Vec<Twin> = std::fs::read_dir(directory())
            .expect("tests/twins can be listed")
            .map(|entry| entry.expect("tests/twins can be listed").path())
            .filter(|path| path.is_dir())
            .map(Twin::read)
            .filter(|twin| wanted.is_empty() || wanted.iter().any(|word| twin.name.contains(word)))
            .collect();
        twins.sort_by(|a, b| a.name.cmp(&b.name));
        twins
    }

    fn read(folder: PathBuf) -> Twin {
        let file = folder.join("twin.toml");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let said: Description = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let name = folder.file_name().expect("a directory has a name").to_string_lossy().into_owned();
        let ending = if said.language == Language::Cxx { "cpp" } else { "c" };
        let is_c11 = said.language == Language::C11;
        let Description { bug, arguments, options, natively, missed, first, .. } = said;
        Twin { name, bug, arguments, options, natively, missed, first, is_c11, folder, ending }
    }

    /// The name of one's source file.
    pub fn file(&self, side: Side) -> String {
        let stem = match side {
            Side::Buggy => "buggy",
            Side::Fixed => "fixed",
        };
        format!("{stem}.{}", self.ending)
    }

    /// One's source.
    fn source(&self, side: Side) -> String {
        let path = self.folder.join(self.file(side));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// One of them, to be built.
    pub fn program(&self, side: Side) -> Program {
        let file = self.file(side);
        let stem = file.split_once('.').map_or(file.as_str(), |(stem, _)| stem);
        Program::new(format!("{}-{stem}", self.name), self.folder.join(&file))
    }

    /// The lines of the buggy one, from 1, of which one must be among the places of this finding.
    pub fn lines(&self, first: &First) -> BTreeSet<u64> {
        let is_meant = |line: &str| {
            if first.line.is_empty() {
                line.trim_end().ends_with(MARK)
            } else {
                first.line.iter().any(|text| line.contains(text))
            }
        };
        let source = self.source(Side::Buggy);
        (1..).zip(source.lines()).filter(|(_, line)| is_meant(line)).map(|(number, _)| number).collect()
    }
}

#[test]
fn every_pair_is_complete_and_says_where_its_bug_is() {
    let twins = Twin::all();
    let mut wrong = Vec::new();
    for twin in &twins {
        let mut complain = |what: &str| wrong.push(format!("{}: {what}", twin.name));
        if !twin.bug.ends_with('.') {
            complain("bug should be a sentence");
        }
        if twin.first.is_empty() {
            complain("nothing says what must be found");
        }
        if twin.first.iter().any(|first| twin.lines(first).is_empty()) {
            complain("no line is marked, or no line has the text");
        }
        if twin.source(Side::Fixed).contains(MARK) {
            complain("the fixed one has marks of a bug");
        }
        if twin.source(Side::Fixed) == twin.source(Side::Buggy) {
            complain("nothing is fixed");
        }
        if !twin.natively.contains(" of ") {
            complain("natively should be \"N of M\"");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(twins.len() >= 34 || std::env::var_os("PORTENT_TWINS").is_some(), "only {} pairs", twins.len());
}
