//! What people see of findings: a story in the terminal, JSON and SARIF and JUnit for machines, one HTML page.
//!
//! A [`Report`] is made of traces and what was predicted from them, with what replays showed if there were any. Every output
//! consumes the report and has no analysis of its own. Nothing here prints or exits: outputs are strings, or are written to what
//! they are given, finding by finding.
//!
//! ```
//! use portent_order::Model;
//! use portent_predict::{Control, Options, predict};
//! use portent_report::{Extras, Report, Settings, text};
//! use portent_trace::Trace;
//!
//! let trace = Trace::from_std("T1|w(x)|a.c:1\nT2|r(x)|a.c:9\n")?;
//! let options = Options::default();
//! let prediction = predict(&trace, &options, &Control::default());
//! let mut report = Report::new(Settings { input: "run.std".into(), kinds: options.kinds, ..Settings::default() });
//! report.add(trace.into(), Model::Reads, prediction, &Extras::default());
//! let page = text::page(&report, &text::Look::default());
//! assert!(page.contains("data race on x"));
//! # Ok::<(), portent_trace::TraceError>(())
//! ```

#![forbid(unsafe_code)]

pub mod baseline;
mod circumstances;
mod deciding;
pub mod html;
pub mod json;
pub mod junit;
mod level;
mod lookup;
mod moments;
mod place;
mod relevance;
mod report;
pub mod run_stats;
pub mod sarif;
mod scene;
pub mod source;
mod stream;
pub mod suppress;
pub mod text;
mod threads;
mod tsan;
mod why;
pub mod words;

pub use deciding::Decided;
pub use level::Level;
pub use lookup::Value;
pub use moments::{Moment, Orders};
pub use relevance::Relevance;
pub use report::{
    At, Explored, Extras, Process, Replayed, Report, RunStats, Settings, Sourced, Spot, Story, TraceSize, Tsan,
    Verdict, Withheld,
};
pub use scene::State;
pub use threads::Begun;
