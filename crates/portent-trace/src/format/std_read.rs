//! Reading STD text (docs/src/reference/std-format.md): one event per line, `thread|op(object)|location|value`.
//!
//! Streams through one buffer: memory depends on the names in the file, not on its length, and a line longer than
//! [`LINE_LIMIT`] is an error rather than an allocation.

use crate::error::{Position, Problem, TraceError};
use crate::event::{ReadOrder, UpdateOrder, WriteOrder};
use crate::ids::{LocId, ThreadId};
use crate::input::{BatchPlace, InputBatch, InputEvent, InputOp, InputSource, Progress};
use crate::names::{Names, ObjectClass};
use crate::symbolic::Formulas;
use memchr::memchr;
use std::io::Read;

/// The longest line that is read.
pub const LINE_LIMIT: usize = 64 * 1024;
const BUFFER: usize = 1024 * 1024;

/// A source of the events in STD text.
pub struct StdReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// What is read and not yet parsed: `buffer[start..end]`.
    start: usize,
    end: usize,
    at_end: bool,
    names: Names,
    /// Name and number of the thread of the last event; empty before the first.
    last_thread: (Vec<u8>, u32),
    /// Lines parsed so far.
    lines: u64,
    /// Events parsed so far.
    events: u64,
    bytes: u64,
    total: Option<u64>,
    /// An error behind the events of the batch that was returned last: those are to be judged first.
    failed: Option<TraceError>,
    formulas: Option<Box<Formulas>>,
}

impl<R: Read> StdReader<R> {
    /// Reads events from `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            at_end: false,
            names: Names::default(),
            last_thread: (Vec::new(), 0),
            lines: 0,
            events: 0,
            bytes: 0,
            total: None,
            failed: None,
            formulas: None,
        }
    }

    /// Tells how many bytes there are, for progress.
    #[must_use]
    pub fn with_size(mut self, bytes: Option<u64>) -> Self {
        self.total = bytes;
        self
    }

    /// The next line as a range of the buffer, without its end; `None` at the end of the input.
    #[inline]
    fn next_line(&mut self) -> Result<Option<(usize, usize)>, TraceError> {
        loop {
            let window = &self.buffer[self.start..self.end];
            if let Some(len) = memchr(b'\n', &window[..window.len().min(LINE_LIMIT + 1)]) {
                let line = (self.start, self.start + len);
                self.start += len + 1;
                return Ok(Some(line));
            }
            if window.len() > LINE_LIMIT {
                let position = Position::Line(self.lines + 1);
                return Err(TraceError::at(position, Problem::LineTooLong { limit: LINE_LIMIT }));
            }
            if self.at_end {
                let line = (self.start, self.end);
                self.start = self.end;
                return Ok((line.0 < line.1).then_some(line));
            }
            self.refill()?;
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let read = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(TraceError::at(Position::Line(self.lines + 1), error)),
                Ok(read) => break read,
            }
        };
        self.at_end = read == 0;
        self.end += read;
        self.bytes += read as u64;
        Ok(())
    }

    fn fill(&mut self, batch: &mut InputBatch) -> Result<(), TraceError> {
        let mut skipped = 0u32;
        let mut skips = Vec::new();
        let first_line = self.lines + 1;
        let result = loop {
            if batch.len() >= InputBatch::TARGET {
                break Ok(());
            }
            let (from, to) = match self.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            self.lines += 1;
            let line = self.buffer[from..to].trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                if let Some(directive) = line.strip_prefix(b"#!") {
                    let last = (self.events + batch.len() as u64).checked_sub(1).and_then(|n| u32::try_from(n).ok());
                    if let Err(problem) = self.formulas.get_or_insert_default().directive(directive, last) {
                        break Err(TraceError::at(Position::Line(self.lines), problem));
                    }
                }
                skipped += 1;
                continue;
            }
            match parse_line(&mut self.names, &mut self.last_thread, line, self.lines) {
                Ok(event) => {
                    if skipped > 0 {
                        skips.push((batch.len() as u32, std::mem::take(&mut skipped)));
                    }
                    batch.push(event);
                }
                Err(problem) => break Err(TraceError::at(Position::Line(self.lines), problem)),
            }
        };
        self.events += batch.len() as u64;
        batch.place = BatchPlace::Lines { first: first_line, skips };
        result
    }
}

impl<R: Read> InputSource for StdReader<R> {
    fn next_batch(&mut self, batch: &mut InputBatch) -> Result<bool, TraceError> {
        batch.restart(self.events, BatchPlace::Memory);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        match self.fill(batch) {
            Err(error) if batch.is_empty() => Err(error),
            Err(error) => {
                self.failed = Some(error);
                Ok(true)
            }
            Ok(()) => Ok(!batch.is_empty()),
        }
    }
    fn names(&self) -> &Names {
        &self.names
    }
    fn take_names(&mut self) -> Names {
        std::mem::take(&mut self.names)
    }
    fn take_formulas(&mut self) -> Result<Option<Formulas>, TraceError> {
        Ok(self
            .formulas
            .take()
            .map(|formulas| *formulas)
            .filter(|formulas| !formulas.of.is_empty() || !formulas.sides.is_empty()))
    }
    fn progress(&self) -> Progress {
        Progress { done: self.bytes, total: self.total }
    }
}

fn lossy(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(80)];
    String::from_utf8_lossy(shown).into_owned()
}

/// Parses one line. `last` is the name and number of the thread of the line before it: mostly it is the same.
fn parse_line(names: &mut Names, last: &mut (Vec<u8>, u32), line: &[u8], number: u64) -> Result<InputEvent, Problem> {
    let Some(bar) = find(b'|', line) else { return Err(Problem::MissingField { found: lossy(line) }) };
    let thread = line[..bar].trim_ascii_end();
    let rest = &line[bar + 1..];
    if thread.is_empty() {
        return Err(Problem::EmptyName { what: "thread" });
    }
    let (call, rest) = split_field(rest);
    let (location, rest) = split_field(rest.unwrap_or_default());
    let (value, rest) = split_field(rest.unwrap_or_default());
    if rest.is_some() {
        return Err(Problem::TooManyFields);
    }
    let (op, object) = parse_call(names, call)?;
    let thread = match last {
        (text, id) if text == thread => *id,
        last => {
            last.1 = names.intern(ObjectClass::Thread, thread)?;
            thread.clone_into(&mut last.0);
            last.1
        }
    };
    let loc = match location {
        [] => line_location(names, number)?,
        text => names.intern_location(text)?,
    };
    let value = if value.is_empty() { None } else { Some(parse_value(value)?) };
    Ok(InputEvent { thread: ThreadId(thread), op, object, value, loc })
}

/// Where a byte first stands in a text that is short: eight bytes at a time, which beats a call into a search made for
/// long ones.
#[inline]
fn find(byte: u8, text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let find_in = |word: &[u8; 8]| {
        let differs = u64::from_le_bytes(*word) ^ (ONES * u64::from(byte));
        // The highest bit of every byte that does not differ, and perhaps of later ones.
        let equal = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
        (equal != 0).then(|| equal.trailing_zeros() as usize / 8)
    };
    let Some(last) = text.last_chunk::<8>() else { return text.iter().position(|&found| found == byte) };
    for (i, word) in text.as_chunks::<8>().0.iter().enumerate() {
        if let Some(at) = find_in(word) {
            return Some(8 * i + at);
        }
    }
    // Overlaps what was looked at already, where it is not.
    find_in(last).map(|at| text.len() - 8 + at)
}

/// A field without surrounding blanks, and what follows its bar, if there is one.
#[inline]
fn split_field(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match find(b'|', text) {
        Some(bar) => (text[..bar].trim_ascii(), Some(&text[bar + 1..])),
        None => (text.trim_ascii(), None),
    }
}

fn line_location(names: &mut Names, line: u64) -> Result<LocId, Problem> {
    match LocId::from_number(line) {
        Some(loc) => Ok(loc),
        None => names.intern_location(line.to_string().as_bytes()),
    }
}

/// An operation and its object: `w(x)`.
#[inline]
pub(crate) fn parse_call(names: &mut Names, call: &[u8]) -> Result<(InputOp, u32), Problem> {
    let (op, argument) = match call.iter().position(|&byte| byte == b'(') {
        None => (call, None),
        Some(open) => match &call[open + 1..] {
            [argument @ .., b')'] => (&call[..open], Some(argument.trim_ascii())),
            _ => return Err(Problem::BadArgument { found: lossy(call) }),
        },
    };
    let op = match op {
        b"r" => InputOp::Read(ReadOrder::Plain),
        b"w" => InputOp::Write(WriteOrder::Plain),
        b"acq" => InputOp::Acquire,
        b"rel" => InputOp::Release,
        other => parse_rare_op(other)?,
    };
    let class = op.class();
    match (class, argument) {
        (ObjectClass::None, _) => Ok((op, 0)),
        (ObjectClass::Block, argument) => Ok((op, names.intern(class, argument.unwrap_or_default())?)),
        (_, None) => Err(Problem::BadArgument { found: lossy(call) }),
        (_, Some([])) => Err(Problem::EmptyName { what: class.what() }),
        (_, Some(name)) => Ok((op, names.intern(class, name)?)),
    }
}

#[cold]
fn parse_rare_op(op: &[u8]) -> Result<InputOp, Problem> {
    let Some(dot) = find(b'.', op) else {
        return InputOp::from_text(op).ok_or_else(|| Problem::UnknownOp { op: lossy(op) });
    };
    let order = &op[dot + 1..];
    let known = match &op[..dot] {
        b"r" => match order {
            b"rlx" => Some(InputOp::Read(ReadOrder::Relaxed)),
            b"con" => Some(InputOp::Read(ReadOrder::Consume)),
            b"acq" => Some(InputOp::Read(ReadOrder::Acquire)),
            b"sc" => Some(InputOp::Read(ReadOrder::SeqCst)),
            _ => None,
        },
        b"w" => match order {
            b"rlx" => Some(InputOp::Write(WriteOrder::Relaxed)),
            b"rel" => Some(InputOp::Write(WriteOrder::Release)),
            b"sc" => Some(InputOp::Write(WriteOrder::SeqCst)),
            _ => None,
        },
        b"u" => match order {
            b"rlx" => Some(InputOp::Update(UpdateOrder::Relaxed)),
            b"con" => Some(InputOp::Update(UpdateOrder::Consume)),
            b"acq" => Some(InputOp::Update(UpdateOrder::Acquire)),
            b"rel" => Some(InputOp::Update(UpdateOrder::Release)),
            b"ar" => Some(InputOp::Update(UpdateOrder::AcqRel)),
            b"sc" => Some(InputOp::Update(UpdateOrder::SeqCst)),
            _ => None,
        },
        _ => return Err(Problem::UnknownOp { op: lossy(op) }),
    };
    known.ok_or_else(|| Problem::BadOrder { op: lossy(op) })
}

/// The order suffix of an access in STD text; empty for plain accesses and for sequentially consistent updates.
pub(super) fn order_suffix(op: InputOp) -> &'static str {
    match op {
        InputOp::Read(ReadOrder::Relaxed) | InputOp::Write(WriteOrder::Relaxed) => ".rlx",
        InputOp::Update(UpdateOrder::Relaxed) => ".rlx",
        InputOp::Read(ReadOrder::Consume) | InputOp::Update(UpdateOrder::Consume) => ".con",
        InputOp::Read(ReadOrder::Acquire) | InputOp::Update(UpdateOrder::Acquire) => ".acq",
        InputOp::Write(WriteOrder::Release) | InputOp::Update(UpdateOrder::Release) => ".rel",
        InputOp::Update(UpdateOrder::AcqRel) => ".ar",
        InputOp::Read(ReadOrder::SeqCst) | InputOp::Write(WriteOrder::SeqCst) => ".sc",
        _ => "",
    }
}

fn parse_value(text: &[u8]) -> Result<i64, Problem> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let magnitude = digits.iter().try_fold(0i64, |value, digit| {
        // Counted downwards: the smallest value has no positive twin.
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_sub(digit)
    });
    let value = magnitude
        .filter(|_| !digits.is_empty())
        .and_then(|value| if negative { Some(value) } else { value.checked_neg() });
    value.ok_or_else(|| Problem::BadValue { found: lossy(text) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Malformed;
    use crate::trace::Trace;

    fn error(text: &str) -> String {
        Trace::from_std(text).unwrap_err().to_string()
    }

    fn events(text: &str) -> Vec<InputEvent> {
        let mut reader = StdReader::new(text.as_bytes());
        let mut batch = InputBatch::default();
        let mut all = Vec::new();
        while reader.next_batch(&mut batch).unwrap() {
            all.extend(batch.iter());
        }
        all
    }

    #[test]
    fn the_four_fields_are_read() {
        let all = events(
            "# a comment\n\nT1|w(x)|12|5\r\n T2 | r.acq( y ) | a.c:3 | -7 \nT1|begin|1\nT1|branch|2\nT1|end()|\n",
        );
        assert_eq!(all.len(), 5);
        assert_eq!((all[0].op, all[0].value), (InputOp::Write(WriteOrder::Plain), Some(5)));
        assert_eq!((all[1].op, all[1].value), (InputOp::Read(ReadOrder::Acquire), Some(-7)));
        assert_eq!(all[4].loc, LocId::from_number(7).unwrap(), "a missing location is the line number");
    }

    #[test]
    fn values_reach_both_ends_of_their_range_and_no_further() {
        assert_eq!(parse_value(b"-9223372036854775808").unwrap(), i64::MIN);
        assert_eq!(parse_value(b"9223372036854775807").unwrap(), i64::MAX);
        for bad in ["9223372036854775808", "-9223372036854775809", "-", "1e3", "99999999999999999999999"] {
            assert!(parse_value(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_lines_are_reported_with_their_line() {
        assert_eq!(error("T1|w(x)|1\nnonsense\n"), "line 2: expected thread|op(object)|location, found \"nonsense\"");
        assert!(error("T1|frob(x)|1\n").starts_with("line 1: unknown operation \"frob\""));
        assert!(error("T1|r.rel(x)|1\n").contains("expected an order that this access can have"));
        assert!(error("T1|w(x|1\n").contains("expected op(object)"));
        assert!(error("T1|w()|1\n").contains("the variable has no name"));
        assert!(error("|w(x)|1\n").contains("the thread has no name"));
        assert!(error("T1|w(x)|1|2|3\n").contains("at most four fields"));
        assert!(error("T1|w(x)|1|1x\n").contains("is not a value"));
    }

    #[test]
    fn an_offence_before_a_bad_line_is_reported_first() {
        let found = Trace::from_std("T1|rel(l)|1\nnonsense\n").unwrap_err();
        assert!(matches!(found.problem, Problem::Malformed(Malformed::NotHeld { .. })), "{found}");
        assert_eq!(found.position, Position::Event { index: 0, line: Some(1), byte: None });
    }

    #[test]
    fn a_long_line_is_an_error_not_an_allocation() {
        let endless = std::io::repeat(b'x').take(10 << 20);
        let found = StdReader::new(endless).next_batch(&mut InputBatch::default()).unwrap_err();
        assert!(matches!(found.problem, Problem::LineTooLong { .. }));
        let longest = format!("T1|w({})|1\n", "x".repeat(LINE_LIMIT - 9));
        assert_eq!(events(&longest).len(), 1);
    }

    #[test]
    fn bad_utf8_is_an_error_unless_it_is_in_a_comment() {
        let mut reader = StdReader::new(&b"# \xff\nT1|w(\xff)|1\n"[..]);
        let found = reader.next_batch(&mut InputBatch::default()).unwrap_err();
        assert_eq!(found.position, Position::Line(2));
        assert!(matches!(found.problem, Problem::BadUtf8));
    }

    #[test]
    fn a_byte_is_found_wherever_it_stands() {
        for len in 0..40 {
            for at in 0..len {
                let mut text = vec![b'|' + 1; len];
                text[at..].fill(b'|');
                assert_eq!(find(b'|', &text), Some(at));
                text[at..].fill(b'|' - 1);
                assert_eq!(find(b'|', &text), None);
            }
        }
    }

    #[test]
    fn the_last_line_may_lack_its_end() {
        assert_eq!(events("T1|w(x)|1\nT1|w(x)|2").len(), 2);
    }
}
