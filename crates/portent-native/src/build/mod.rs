//! Building programs: the compiler, with instrumentation and the runtime added to what it is asked for.

pub mod compiler;
pub mod flags;
mod request;
mod response;
