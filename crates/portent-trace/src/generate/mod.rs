//! Trace generators: large configurable traces shaped like real programs, and tiny dense ones for tests.

mod random;
mod tiny;

pub use tiny::{TinyShape, tiny, tiny_events, tiny_std};

#[cfg(test)]
mod tests;
