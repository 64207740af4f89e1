//! What can be wrong with an input: which input, where, what was expected, what to do.

use std::fmt;

/// Where in an input something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The input as a whole.
    Whole,
    /// A line of a text format, from 1.
    Line(u64),
    /// A byte offset of a binary format, from 0.
    Byte(u64),
    /// An event, numbered from 0 as the input lists them, and the line or the byte of the chunk it stands in.
    Event {
        /// The event's number.
        index: u64,
        /// Its line, in a text format.
        line: Option<u64>,
        /// The first byte of its chunk, in a binary format.
        byte: Option<u64>,
    },
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Position::Whole => Ok(()),
            Position::Line(line) => write!(f, "line {line}: "),
            Position::Byte(byte) => write!(f, "byte {byte}: "),
            Position::Event { index, line: Some(line), .. } => write!(f, "line {line} (event {index}): "),
            Position::Event { index, byte: Some(byte), .. } => write!(f, "event {index} (chunk at byte {byte}): "),
            Position::Event { index, .. } => write!(f, "event {index}: "),
        }
    }
}

/// One documented variant per way an input can be wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The operating system could not read or write it.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A directory where a file was expected.
    #[error("this is a directory; expected a trace file")]
    Directory,
    /// A file with no bytes at all.
    #[error("the file is empty; expected a trace")]
    Empty,
    /// Neither a known ending nor a known beginning.
    #[error("cannot tell the format of {0}; expected the ending .std, .portent or .parquet")]
    UnknownFormat(String),
    /// A format that can only be written.
    #[error("{0} files can be written but not read")]
    WriteOnly(&'static str),
    /// A format this build was made without.
    #[error("this portent was built without {0} support")]
    NotBuilt(&'static str),

    /// A formula of a symbolic trace that cannot be read, or that contradicts the events.
    #[error("bad formula: {0}")]
    Formula(String),
    /// A name or a line that is not UTF-8.
    #[error("a name is not valid UTF-8")]
    BadUtf8,
    /// A line longer than any real one.
    #[error("the line is longer than {limit} bytes; expected thread|op(object)|location")]
    LineTooLong {
        /// The longest line that is read.
        limit: usize,
    },
    /// A line without its second field.
    #[error("expected thread|op(object)|location, found {found:?}")]
    MissingField {
        /// The line.
        found: String,
    },
    /// More fields than the format has.
    #[error("expected at most four fields (thread|op(object)|location|value), found more")]
    TooManyFields,
    /// A name that is empty.
    #[error("the {what} has no name; expected non-blank text")]
    EmptyName {
        /// What is unnamed.
        what: &'static str,
    },
    /// A location with the character that separates a location from its function inside Portent.
    #[error("the location {found:?} contains the control character U+001F; expected text without it")]
    ControlInLocation {
        /// The location.
        found: String,
    },
    /// An operation nobody knows.
    #[error(
        "unknown operation {op:?}; expected one of r w u acq rel fork join begin end branch or Portent's extensions"
    )]
    UnknownOp {
        /// The operation, as written.
        op: String,
    },
    /// A memory order that the access cannot have.
    #[error(
        "{op:?}: expected an order that this access can have (r: rlx con acq sc; w: rlx rel sc; u: rlx con acq rel ar sc)"
    )]
    BadOrder {
        /// The operation, as written.
        op: String,
    },
    /// An operation that is not `name(object)`.
    #[error("{found:?}: expected op(object)")]
    BadArgument {
        /// The field, as written.
        found: String,
    },
    /// A value that is not a 64-bit integer.
    #[error("{found:?} is not a value; expected a whole number from -9223372036854775808 to 9223372036854775807")]
    BadValue {
        /// The field, as written.
        found: String,
    },

    /// The file does not start like a `.portent` file.
    #[error("this is not a .portent file: it starts with {found:02x?}; expected the letters PORTENT")]
    BadMagic {
        /// The first bytes.
        found: Vec<u8>,
    },
    /// A newer file, or a damaged version number.
    #[error("format version {found} is not known here; expected {supported}")]
    BadVersion {
        /// The version in the file.
        found: u16,
        /// The version this build reads.
        supported: u16,
    },
    /// A chunk whose contents do not match its checksum.
    #[error("the {what} chunk is damaged: its checksum does not match its contents")]
    Checksum {
        /// The kind of chunk.
        what: &'static str,
    },
    /// A chunk whose contents contradict themselves.
    #[error("the {what} chunk is damaged: {detail}")]
    BadChunk {
        /// The kind of chunk.
        what: &'static str,
        /// What does not fit.
        detail: String,
    },
    /// A name longer than the format holds.
    #[error("a name is longer than {limit} bytes; expected at most that many")]
    NameTooLong {
        /// The longest name that is written.
        limit: usize,
    },
    /// The same variable name with two byte ranges.
    #[error("variable {name:?} is defined twice with different byte ranges")]
    RangeChanged {
        /// The variable.
        name: String,
    },

    /// More objects than ids can number.
    #[error("more than {limit} {what}s; expected at most that many")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many are possible.
        limit: u64,
    },
    /// A well-formedness rule of docs/src/internals/semantics.md §1 is broken.
    #[error("{0}")]
    Malformed(#[from] Malformed),
}

/// The rules of a well-formed trace, one variant per way to break them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Mutual exclusion is broken.
    #[error(
        "thread {thread} acquires lock {lock}, which thread {holder} has held since event {since}; expected its release first"
    )]
    #[allow(missing_docs)]
    LockHeld { thread: String, lock: String, holder: String, since: u64 },
    /// A release by somebody who does not hold the lock (in that mode).
    #[error("thread {thread} releases lock {lock}, which it does not hold{}; expected its acquire first", held_by(.holder))]
    #[allow(missing_docs)]
    NotHeld { thread: String, lock: String, holder: Option<String> },
    /// A failed try-lock that had no reason to fail.
    #[error("thread {thread} fails to take lock {lock}, which no other thread holds; expected a conflicting holder")]
    #[allow(missing_docs)]
    NotBusy { thread: String, lock: String },
    /// `acqa` without `rela`.
    #[error(
        "thread {thread} takes lock {lock} back at all levels without having released it so; expected rela({lock}) first"
    )]
    #[allow(missing_docs)]
    NothingToTakeBack { thread: String, lock: String },
    /// A token received before it was sent.
    #[error("thread {thread} receives {token}, which nobody has sent yet; expected the send first")]
    #[allow(missing_docs)]
    NotSent { thread: String, token: String },
    /// A token sent after it was received.
    #[error("thread {thread} sends {token}, which was already received; a receive waits for every send of its token")]
    #[allow(missing_docs)]
    SentTooLate { thread: String, token: String },
    /// A thread that is forked after it started, or twice.
    #[error("thread {thread} forks {child}, which {}; expected a fork before the thread's first event", if *.started { "has already run" } else { "was already forked" })]
    #[allow(missing_docs)]
    ForkedTwice { thread: String, child: String, started: bool },
    /// A thread that goes on after somebody joined it.
    #[error("thread {thread} goes on after it was joined at event {joined}; expected no event of a joined thread")]
    #[allow(missing_docs)]
    RunsAfterJoin { thread: String, joined: u64 },
    /// A thread that joins itself.
    #[error("thread {thread} joins itself; expected another thread")]
    #[allow(missing_docs)]
    JoinsItself { thread: String },
    /// An end without a begin.
    #[error("thread {thread} ends an atomic block that it did not begin; expected begin({block}) first")]
    #[allow(missing_docs)]
    EndWithoutBegin { thread: String, block: String },
    /// An end of another block than the innermost open one.
    #[error("thread {thread} ends block {found:?} while {expected:?} is the innermost open one")]
    #[allow(missing_docs)]
    WrongEnd { thread: String, found: String, expected: String },
    /// A read that saw something else than what was last written.
    #[error("thread {thread} reads {found} from {variable}, which holds {expected}; expected the value last written")]
    #[allow(missing_docs)]
    WrongValue { thread: String, variable: String, found: i64, expected: i64 },
    /// A wake-up without a sleep.
    #[error("thread {thread} wakes on condition {condition} without sleeping on it; expected slp({condition}) first")]
    #[allow(missing_docs)]
    WakeWithoutSleep { thread: String, condition: String },
    /// One name used as a condition and as a token.
    #[error("{name} is used with {}, but {} before: an ntf is a token if its name is used with wai, else a notify", if *.now_token { "wai (a token)" } else { "slp, wak or nta (a condition)" }, if *.now_token { "with slp, wak or nta" } else { "with wai" })]
    #[allow(missing_docs)]
    MixedUse { name: String, now_token: bool },
    /// A semaphore wait that nothing allowed.
    #[error(
        "thread {thread} passes semaphore {semaphore}, whose count is 0; expected a post or an initial count (semi) first"
    )]
    #[allow(missing_docs)]
    SemaphoreEmpty { thread: String, semaphore: String },
    /// A failed semaphore try that had no reason to fail.
    #[error("thread {thread} fails to pass semaphore {semaphore}, whose count is {count}; expected 0")]
    #[allow(missing_docs)]
    SemaphoreNotEmpty { thread: String, semaphore: String, count: u64 },
    /// An initial count that is missing, negative or late.
    #[error(
        "semaphore {semaphore}: expected its initial count as the value of semi, not negative, before any other use"
    )]
    #[allow(missing_docs)]
    BadSemaphoreCount { semaphore: String },
    /// A barrier departure without an arrival.
    #[error("thread {thread} leaves barrier {barrier} without having arrived; expected arr({barrier}) first")]
    #[allow(missing_docs)]
    DepartWithoutArrive { thread: String, barrier: String },
    /// An event names a thread or object the input never defined.
    #[error("an event refers to {what} number {id}, which is not defined")]
    #[allow(missing_docs)]
    Undefined { what: &'static str, id: u32 },
}

fn held_by(holder: &Option<String>) -> String {
    holder.as_ref().map(|holder| format!(" (thread {holder} does)")).unwrap_or_default()
}

/// An input that could not be used.
#[derive(Debug)]
pub struct TraceError {
    /// Which input: a path, or `standard input`.
    pub input: Option<String>,
    /// Where in it.
    pub position: Position,
    /// What is wrong and what was expected.
    pub problem: Problem,
}

impl TraceError {
    /// An error of the input as a whole.
    pub fn whole(problem: impl Into<Problem>) -> Self {
        Self { input: None, position: Position::Whole, problem: problem.into() }
    }
    /// An error at a place.
    pub fn at(position: Position, problem: impl Into<Problem>) -> Self {
        Self { input: None, position, problem: problem.into() }
    }
    /// The same error, naming the input unless it is already named.
    #[must_use]
    pub fn in_input(mut self, input: &str) -> Self {
        self.input.get_or_insert_with(|| input.to_owned());
        self
    }
    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match &self.problem {
            Problem::Malformed(_) => {
                "the trace is not one that a program can have made: an event is missing, or events are out of order"
            }
            Problem::UnknownOp { .. } | Problem::BadArgument { .. } | Problem::MissingField { .. } => {
                "the operations and fields of the STD format are listed in docs/src/reference/std-format.md"
            }
            Problem::BadVersion { .. } => {
                "it was written by a newer portent: update this one, or convert the file there"
            }
            Problem::Checksum { .. } | Problem::BadChunk { .. } => {
                "the chunks before the damage are intact: `portent convert --salvage IN OUT` keeps their events"
            }
            Problem::BadMagic { .. } => "is it an STD text file? Then give it the ending .std",
            Problem::NotBuilt(_) => "rebuild with `cargo install --features parquet`",
            _ => return None,
        })
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(input) = &self.input {
            write!(f, "{input}: ")?;
        }
        write!(f, "{}{}", self.position, self.problem)
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for TraceError {
    fn from(error: std::io::Error) -> Self {
        Self::whole(error)
    }
}
