//! Happens-before of the observed order, as a detector that watches the run sees it (FastTrack, Flanagan and Freund).
//!
//! Order comes from program order, locks (read-write locks included), tokens, notify → wake, and release/acquire
//! atomics: an acquiring read joins what the release sequence it reads from has released; a relaxed update continues
//! that sequence, any other write that does not release ends it. Consume counts as acquire, as compilers treat it. Fences
//! count as the language says. Times are FastTrack's epochs: a thread's own time moves on when it releases.
//!
//! Deviation: the last access of each thread and class (plain or atomic, read or write) is kept until a plain write
//! comes after it, not only the last write, so that more racing pairs of locations are named.
//!
//! Beside it runs the same relation with the reads-from of relaxed atomics added: pairs that only the latter orders are
//! the `relaxed_only` races of docs/src/internals/semantics.md §1. `relaxed` names every pair of places that has such a pair.

mod clocks;
mod detect;
mod hindsight;
mod relaxed;
#[cfg(test)]
mod tests;

pub use clocks::Clocks;
pub use detect::{Unordered, detect};
pub(crate) use hindsight::{Hindsight, Rear, ordered};
pub(crate) use relaxed::ordered_by_relaxed_atomics;
