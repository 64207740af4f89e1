//! Recording programs: one run as events with names, and everything that running it again needs.

mod digest;
mod recorder;
mod recording;
mod repeats;
mod scope;
mod trust;

pub use crate::text::Text;
pub use recorder::{Finished, NativeProgram, Recorded, run_of};
pub use recording::{Answer, LoadedModule, Recording, Scheduling};
pub use scope::not_covered;
