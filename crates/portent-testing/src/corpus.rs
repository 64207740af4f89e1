//! The traces of `tests/corpus` with their answers.
//!
//! A file lists in `[answers.MODEL]` every feasible goal of every kind; all other candidates are infeasible. What it says in
//! `[[expect]]` and its siblings was known beforehand, from a paper or by hand, and must agree.

use portent_order::{Goal, Kind, Writer};
use portent_trace::{EventId, Trace};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A goal by the numbers of its input events: race (first, second), nondeterminism (read, challenger or -1), final
/// (challenger), atomicity (first, remote, second), deadlock (acquires), lost wake-up (notify, wake).
pub type Tuple = Vec<i64>;

/// The feasible goals of a trace, by kind.
pub type Answers = BTreeMap<String, Vec<Tuple>>;

/// A trace of the corpus and all that its file says about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // The names are those of the files.
pub struct Case {
    /// The name of its file, without the ending.
    #[serde(skip)]
    pub name: String,
    /// Where its file is.
    #[serde(skip)]
    pub path: PathBuf,
    pub source: String,
    pub story: Option<String>,
    /// How printed algorithms differ from the truth.
    #[serde(default)]
    pub history: Vec<String>,
    /// Which defect of a paper the trace shows.
    pub defect: Option<String>,
    /// The trace as STD text.
    #[serde(rename = "trace")]
    pub text: String,
    /// No reordering gets stuck before every thread has ended.
    pub deadlock_free: Option<bool>,
    /// Every thread releases its locks in the reverse order of taking them.
    pub nested: Option<bool>,
    #[serde(default)]
    pub expect: Vec<Expect>,
    #[serde(default)]
    pub expect_none: Vec<ExpectNone>,
    #[serde(default)]
    pub expect_exactly: Vec<ExpectExactly>,
    #[serde(default)]
    pub witness_type: Vec<ExpectType>,
    pub lattice: Option<Lattice>,
    /// By the name of the model.
    #[serde(default)]
    pub answers: BTreeMap<String, Answers>,
}

/// One goal is feasible, or not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Expect {
    pub model: String,
    pub kind: String,
    pub events: Tuple,
    pub feasible: bool,
}

/// No goal of a kind is feasible.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ExpectNone {
    pub model: String,
    pub kind: String,
}

/// These goals of a kind are feasible, and no others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ExpectExactly {
    pub model: String,
    pub kind: String,
    pub feasible: Vec<Tuple>,
}

/// There is a witness of a shape, or none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ExpectType {
    pub read: i64,
    pub challenger: i64,
    pub shape: String,
    pub feasible: bool,
}

/// Counts in the `reads` model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lattice {
    /// Complete reorderings.
    pub runs: usize,
    /// Different position vectors on them.
    pub cuts: usize,
    /// Reorderings, complete or not.
    pub prefixes: usize,
    /// The complete reorderings.
    pub complete: Option<Vec<Vec<i64>>>,
}

impl Case {
    /// The trace.
    pub fn trace(&self) -> Trace {
        Trace::from_std(&self.text).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// Every trace of the corpus, by name.
pub fn cases() -> Vec<Case> {
    let entries = std::fs::read_dir(crate::repository().join("tests/corpus")).expect("the corpus is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the corpus can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    assert!(paths.len() >= 60, "the corpus has only {} files", paths.len());
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Case {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let case: Case = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    Case { name, path, ..case }
}

/// What a kind is called in the files.
pub fn kind_key(kind: Kind) -> &'static str {
    match kind {
        Kind::Race => "race",
        Kind::Nondeterminism => "nondeterminism",
        Kind::FinalValue => "final",
        Kind::Atomicity => "atomicity",
        Kind::Deadlock => "deadlock",
        Kind::LostWakeup => "lost_wakeup",
        Kind::LostUpdate => "lost_update",
        Kind::Stuck => "stuck",
    }
}

/// A goal as the files write it.
pub fn tuple(trace: &Trace, goal: &Goal) -> Tuple {
    let input = |event: EventId| i64::from(trace.input_index(event));
    match goal {
        Goal::Race { first, second } => vec![input(*first), input(*second)],
        Goal::Nondeterminism { read, challenger: Writer::Init } => vec![input(*read), -1],
        Goal::Nondeterminism { read, challenger: Writer::Event(c) } => vec![input(*read), input(*c)],
        Goal::FinalValue { challenger, .. } => vec![input(*challenger)],
        Goal::Atomicity { first, remote, second } => vec![input(*first), input(*remote), input(*second)],
        Goal::LostUpdate { first, read, remote, second } => [first, read, remote, second].map(|e| input(*e)).into(),
        Goal::Deadlock { waiting } => waiting.iter().map(|&e| input(e)).collect(),
        Goal::Stuck { waiting } => vec![input(*waiting)],
        Goal::LostWakeup { pairing } => {
            let pairing = trace.pairings()[pairing.index()];
            vec![input(pairing.notify), input(pairing.wake)]
        }
    }
}
