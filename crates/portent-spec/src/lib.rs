//! What must not happen: a small language of properties over the values of variables and over events, and the monitors
//! that watch for them.
//!
//! [`parse`](parse()) reads a property file, [`Bound`] ties a property to the names of a trace, [`Compiled`] is its
//! monitor and [`evaluate`](evaluate()) its meaning on one run, by definition. Exploring all reorderings of a trace with a monitor is the
//! lattice of `portent-predict`; any [`Monitor`] will do.
//!
//! ```
//! use portent_spec::{Bound, Scope, parse};
//! use portent_trace::Trace;
//!
//! let trace = Trace::from_std("T1|w(permit)|a.c:1|1\nT1|w(landing)|a.c:2|1\n")?;
//! let file = parse("property ok: always (landing == 1 -> prev permit == 1)").unwrap();
//! assert_eq!(Bound::all(&file, &Scope::of(&trace)).unwrap().len(), 1);
//!
//! let typo = parse("property ok: always (landign == 1 -> prev permit == 1)").unwrap();
//! let wrong = Bound::all(&typo, &Scope::of(&trace)).unwrap_err();
//! assert_eq!(wrong[0].help.as_deref(), Some("did you mean `landing`?"));
//! # Ok::<(), portent_trace::TraceError>(())
//! ```

#![forbid(unsafe_code)]

pub mod ast;
mod bind;
mod compile;
mod diagnostic;
mod evaluate;
pub mod generate;
mod lex;
mod monitor;
mod observed;
mod parse;
mod picture;

pub use ast::{Property, PropertyFile};
pub use bind::{Bound, InitialFrom, Scope, Watched};
pub use compile::{Compiled, TooLarge};
pub use diagnostic::Diagnostic;
pub use evaluate::{Assume, Ruling, evaluate, evaluate_changed};
pub use monitor::{Judgement, Letter, Monitor};
pub use observed::broken_by;
pub use parse::parse;
pub use picture::Picture;
