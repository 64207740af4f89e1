//! What could go wrong: the bugs that other interleavings of one recorded run contain.
//!
//! One module per kind of bug; each turns a window of a trace into goals, asks `portent-order` whether a reordering
//! reaches them, and groups what is feasible by source location. [`predict`](predict()) cuts the trace into windows, spreads them over
//! threads and puts the answers together, the same way whatever the number of threads. Races and deadlocks further apart
//! than a window are looked for by [`syncp`], over the whole trace. Nothing is dropped silently: what was not examined or
//! not decided is in [`Prediction::incomplete`].
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

mod ask;
mod atomicity;
mod bug;
mod causal;
mod combine;
mod deadlock;
mod facts;
mod far;
mod final_values;
mod finding;
pub mod hb;
mod key;
pub mod lattice;
mod left;
mod nondeterminism;
mod observed;
mod other_branch;
mod pane;
mod predict;
mod property;
mod race;
mod spread;
mod steps;
pub mod stream;
mod sweep;
pub mod syncp;
mod whole;

pub use bug::{
    Bug, BugKind, Deadlock, Form, Nondeterminism, Pattern, Place, Role, Severity, Violated, WitnessType, Words,
};
pub use finding::{Decisive, Evidence, Finding, Flags, Incomplete, MayRead, OtherBranch, Status, Why, Witness};
pub use observed::by_happens_before;
pub use predict::{Control, Options, Prediction, Stats, predict};
pub use property::{PropertyOptions, PropertyTold, PropertyVerdict, check_properties};
pub use steps::{InputSteps, Step};
