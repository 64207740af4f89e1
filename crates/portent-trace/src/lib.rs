//! What happened: the events of one run of a multithreaded program.
//!
//! A front end's *input events* ([`InputEvent`], read from a file or made by the generator) are lowered to a small kernel
//! of operations ([`Op`]) by [`Lowering`], which also checks that they are well-formed. Engines see only the kernel: as
//! an immutable [`Trace`], or batch by batch through an [`EventSource`].
//!
//! ```
//! use portent_trace::{Op, Trace};
//!
//! let trace = Trace::from_std("T1|fork(T2)|1\nT1|w(x)|2|7\nT2|r(x)|3|7\n")?;
//! assert_eq!(trace.len(), 4, "the fork became a token that T2 receives first");
//! assert!(matches!(trace.events().next().unwrap().op, Op::Send(_)));
//!
//! let broken = Trace::from_std("T1|acq(m)|1\nT2|acq(m)|2\n").unwrap_err();
//! assert_eq!(
//!     broken.to_string(),
//!     "line 2 (event 1): thread T2 acquires lock m, which thread T1 has held since event 0; expected its release first"
//! );
//! # Ok::<(), portent_trace::TraceError>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod event;
pub mod format;
pub mod generate;
mod ids;
mod input;
mod list;
mod lower;
mod names;
mod objects;
mod places;
mod short;
mod sleepers;
mod source;
mod stacks;
pub mod stats;
pub mod symbolic;
mod trace;

pub use error::{Malformed, Position, Problem, TraceError};
pub use event::{Ending, Event, FenceOrder, Meaning, Mode, Op, Reach, ReadOrder, UpdateOrder, WriteOrder};
pub use ids::{BlockId, CondId, EventId, Id, LocId, LockId, PairingId, SemId, StackId, ThreadId, TokenId, VarId};
pub use input::{
    BatchPlace, InputBatch, InputEvent, InputOp, InputSource, Progress, SYSTEM_CALLS, TELLING_CALLS, is_system_call,
};
pub use list::EventList;
pub use lower::{FunctionBlocks, HeldLock, Layout, Lowered, Lowering};
pub use names::{ByteRange, Location, NameTable, Names, ObjectClass};
pub use objects::{
    Apart, ApartBy, Local, Object, ObjectName, Owned, Through, own_parts, own_path, site_text, which_of,
};
pub use places::{StackFrame, UserPlaces, is_user_file, is_user_place, plain_function, user_frame, without_address};
pub use short::{short_function, told_function};
pub use sleepers::Sleepers;
pub use source::{is_source_file, line_identity, source_lines};
pub use stacks::{Frame, StackColumn, Stacks};
pub use trace::{Batch, EventSource, Pairing, Selection, Trace};
