//! Recording programs: one run as a trace, with everything that running it again needs.

pub mod recorder;
pub mod recording;
