//! Native programs: how they are built so that they can be recorded, and where the runtime they load is kept.

pub(crate) mod compiler;
pub(crate) mod flags;
pub(crate) mod library;
mod request;
mod response;
