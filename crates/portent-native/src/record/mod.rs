//! Recording programs: one run as events with names, and everything that running it again needs.

mod recorder;
mod recording;
mod repeats;
mod scope;

pub use recorder::{Finished, NativeProgram, Recorded, run_of};
pub use recording::{Answer, LoadedModule, Recording, Scheduling, Text};
pub use scope::not_covered;
