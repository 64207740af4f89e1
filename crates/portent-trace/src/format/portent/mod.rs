//! The `.portent` trace format, version 2 (docs/src/reference/trace-format.md): chunked, compressed, seekable, crash-safe.
//!
//! A file is a header, a sequence of chunks that each carry their own checksums, an index and a trailer. Every events
//! chunk can be decoded on its own once the definitions (names) before it are known. A writer that dies leaves a file
//! without index and trailer, whose whole chunks are still read.
//!
//! | module | what it knows |
//! |---|---|
//! | `frame` | file header, chunk headers, trailer |
//! | `bits`, `column` | how a column of numbers is stored |
//! | `encode`, `decode` | the payload of an events chunk |
//! | `definitions`, `described` | the payload of a definitions chunk: names; what they stand for, and call stacks |
//! | `map` | where the chunks of a file are: from the index, or by looking for them |
//! | `reader`, `writer` | files |
//! | `attach` | optional chunks |
//! | `spool` | input that cannot seek |

mod attach;
mod bits;
mod column;
mod decode;
mod definitions;
mod described;
mod encode;
mod frame;
mod map;
mod reader;
mod spool;
mod writer;

pub use attach::{FORMULAS, RECORDING, attachments};
pub use frame::{MAGIC, VERSION};
pub use reader::PortentReader;
pub(super) use spool::{read_full, spool};
pub use writer::PortentWriter;

use crate::error::{Position, Problem, TraceError};

fn bad_chunk(offset: u64, what: &'static str, detail: impl Into<String>) -> TraceError {
    TraceError::at(Position::Byte(offset), Problem::BadChunk { what, detail: detail.into() })
}
