//! What could go wrong: the bugs that other interleavings of one recorded run contain.
//!
//! A request (`request`) names kinds of bug (`kinds`, a file each: candidates, groups, events and words). Ways of deciding
//! are passes, each in a module of its own: `windows`, [`stream`], `causal_past`, [`sync_preserving`], `end_of_trace`,
//! [`happens_before`] (`observed`), `other_side`, and [`lattice`] for properties (`properties`). [`predict`](predict()) has
//! the list of them: each finds what it can and leaves the rest to those after it. `answers` puts together what they found, the
//! same way whatever the number of threads. Nothing is dropped silently: what was not examined or not decided is in
//! [`Prediction::incomplete`].
//!
//! ```
//! use portent_predict::{Control, Options, predict};
//! use portent_trace::Trace;
//!
//! let trace = Trace::from_std("T1|w(x)|a.c:1\nT2|r(x)|a.c:9\n")?;
//! let found = predict(&trace, &Options::default(), &Control::default());
//! assert_eq!(found.findings[0].kind().name(), "race");
//! assert_eq!(found.findings[0].instances, 1);
//! # Ok::<(), portent_trace::TraceError>(())
//! ```

#![forbid(unsafe_code)]

mod answers;
mod as_reads;
mod asking;
mod board;
mod bug;
mod causal_past;
mod circle;
mod end_of_trace;
mod examination;
mod facts;
mod finding;
pub mod happens_before;
mod kinds;
pub mod lattice;
mod lost_updates;
mod observed;
pub mod online;
mod other_instances;
mod other_side;
mod predict;
mod prediction;
mod properties;
mod request;
mod restored;
mod spread;
mod steps;
pub mod stream;
mod stuck;
pub mod sync_preserving;
mod undecided;
mod unshared;
mod windows;

pub use answers::FindingNames;
pub use asking::Flags;
pub use bug::{BugKind, Form, Harm, Place, Role, Severity, Words};
pub use finding::{Decisive, Evidence, Finding, MayRead, OtherBranch, Witness};
pub use kinds::{
    Bug, Deadlock, Deciding, Failure, Frees, Nondeterminism, Pattern, PropertyTold, PropertyVerdict, StackFrame,
    Violated, WitnessType,
};
pub use observed::{by_happens_before, by_locksets};
pub use other_instances::other_instances;
pub use predict::predict;
pub use prediction::{Prediction, Stats};
pub use properties::{PropertyOptions, check_properties};
pub use request::{Control, Options};
pub use steps::{InputSteps, Step, Steps};
pub use undecided::{Incomplete, Limit, Status, Why};
