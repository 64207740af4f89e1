//! Asking about the candidates of one window: one engine, and what came out of it.
//!
//! | file | what it has |
//! |---|---|
//! | window.rs | a stretch of the trace, and which tuples of its events are its own |
//! | key.rs | which instances are one finding |
//! | groups.rs | instances of one finding, gathered |
//! | open.rs | what is still worth asking, and what is settled |
//! | asker.rs | the engine, asked |

mod asker;
mod groups;
mod key;
mod open;
mod window;

pub(crate) use asker::Asker;
pub use groups::Flags;
pub(crate) use groups::{Answers, Gathered, Group};
pub(crate) use key::{Key, rotate_to_least};
pub(crate) use open::{Open, Settled};
pub(crate) use window::Window;
