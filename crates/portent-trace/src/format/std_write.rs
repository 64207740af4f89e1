//! Writing STD text: every input operation has a text form, so writing loses nothing but byte ranges, which are split.
//!
//! With [`Dialect::Rapid`] only what RAPID accepts is written, and [`StdWriter::finish`] says what had to be dropped.

use super::TraceSink;
use super::std_read::order_suffix;
use crate::error::TraceError;
use crate::input::{InputBatch, InputEvent, InputOp};
use crate::lower::Layout;
use crate::names::{Names, ObjectClass};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

/// Whose STD text to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Everything Portent knows.
    Portent,
    /// `r w acq rel fork join begin end branch`, three fields, no comments.
    Rapid,
}

/// Writes STD text.
pub struct StdWriter<W: Write> {
    out: W,
    dialect: Dialect,
    layout: Layout,
    /// Room for one line, empty between lines.
    line: Vec<u8>,
    /// What was dropped or changed, with counts.
    notes: BTreeMap<String, u64>,
}

impl<W: Write> StdWriter<W> {
    /// Writes to `out` the events of a trace whose variables are cut so.
    pub fn new(out: W, dialect: Dialect, layout: Layout) -> Self {
        Self { out, dialect, layout, line: Vec::new(), notes: BTreeMap::new() }
    }

    /// Writes the events of a batch.
    pub fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        for event in batch.iter() {
            self.write_event(names, event)?;
        }
        self.note_many("events written without their call stack", batch.stacks().count());
        Ok(())
    }

    /// Ends the text, and says what was dropped or changed: one line per kind, with its count.
    pub fn finish(mut self) -> Result<Vec<String>, TraceError> {
        self.out.flush()?;
        Ok(self.notes.into_iter().map(|(what, count)| format!("{count} {what}")).collect())
    }

    fn note(&mut self, what: impl Into<String>) {
        self.note_many(what, 1);
    }
    fn note_many(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.notes.entry(what.into()).or_default() += count;
        }
    }

    fn write_event(&mut self, names: &Names, event: InputEvent) -> Result<(), TraceError> {
        if self.dialect == Dialect::Rapid {
            return self.write_rapid(names, event);
        }
        let text = event.op.text();
        let suffix = order_suffix(event.op);
        if event.op.is_access() && self.layout.is_split(event.object) {
            self.note("wide accesses written as one event per part");
            let parts: Vec<_> = self.layout.split(names, event.object).collect();
            let width = names.range(event.object).map_or(0, |range| range.len);
            for (part, offset, len) in parts {
                let value = crate::lower::value_part(event.value, width, offset, len);
                let name = self.layout.part_name(names, part).into_owned();
                self.line(names, &InputEvent { value, ..event }, text, suffix, Some(&name))?;
            }
            return Ok(());
        }
        let object = object_name(names, event);
        self.line(names, &event, text, suffix, object)
    }

    fn write_rapid(&mut self, names: &Names, event: InputEvent) -> Result<(), TraceError> {
        let event = InputEvent { value: self.drop_value(event.value), ..event };
        let object = object_name(names, event);
        match event.op {
            InputOp::Read(_) | InputOp::Write(_) => {
                if !order_suffix(event.op).is_empty() {
                    self.note("atomic accesses written as plain ones");
                }
                self.line(names, &event, event.op.text(), "", object)
            }
            InputOp::Free | InputOp::Destroy => {
                self.note("frees written as writes");
                self.line(names, &event, "w", "", object)
            }
            InputOp::Update(_) => {
                self.note("atomic updates written as a read and a write");
                self.line(names, &event, "r", "", object)?;
                self.line(names, &event, "w", "", object)
            }
            InputOp::Acquire | InputOp::Release | InputOp::Fork | InputOp::Join | InputOp::Branch => {
                self.line(names, &event, event.op.text(), "", object)
            }
            InputOp::Begin | InputOp::End => self.line(names, &event, event.op.text(), "", object),
            InputOp::ReleaseAll => self.line(names, &event, "rel", "", object),
            InputOp::AcquireAll | InputOp::TryAcquire => self.line(names, &event, "acq", "", object),
            other => {
                self.note(format!("{} events dropped", other.text()));
                Ok(())
            }
        }
    }

    fn drop_value(&mut self, value: Option<i64>) -> Option<i64> {
        if value.is_some() {
            self.note("values dropped");
        }
        None
    }

    fn line(
        &mut self,
        names: &Names,
        event: &InputEvent,
        op: &str,
        suffix: &str,
        object: Option<&str>,
    ) -> Result<(), TraceError> {
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(self.field(names.thread(event.thread)).as_bytes());
        line.push(b'|');
        line.extend_from_slice(op.as_bytes());
        line.extend_from_slice(suffix.as_bytes());
        if let Some(object) = object {
            line.push(b'(');
            line.extend_from_slice(self.field(object).as_bytes());
            line.push(b')');
        }
        line.push(b'|');
        let place = names.location(event.loc);
        match place.text {
            Some(text) => line.extend_from_slice(self.field(text).as_bytes()),
            None => write!(line, "{place}")?,
        }
        if let Some(value) = event.value {
            write!(line, "|{value}")?;
        }
        line.push(b'\n');
        let result = self.out.write_all(&line);
        line.clear();
        self.line = line;
        Ok(result?)
    }

    /// A name as a field: what would end the field, the line, or be trimmed away is percent-encoded.
    fn field<'n>(&mut self, name: &'n str) -> Cow<'n, str> {
        let bytes = name.as_bytes();
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
        let is_bad = |byte: u8| matches!(byte, b'|' | b'\n' | b'\r');
        let bad_inside = bytes.iter().fold(false, |any, &byte| any | is_bad(byte));
        if !bad_inside && bytes.first() != Some(&b'#') && !edge(bytes.first()) && !edge(bytes.last()) {
            return name.into();
        }
        self.note("names percent-encoded");
        let last = name.chars().count() - 1;
        let mut encoded = String::new();
        for (i, c) in name.chars().enumerate() {
            let blank_edge = (i == 0 || i == last) && c.is_ascii_whitespace();
            if matches!(c, '|' | '\n' | '\r') || blank_edge || (i == 0 && c == '#') {
                encoded.push_str(&format!("%{:02X}", c as u32));
            } else {
                encoded.push(c);
            }
        }
        encoded.into()
    }
}

impl<W: Write> TraceSink for StdWriter<W> {
    fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        StdWriter::write(self, names, batch)
    }
    fn attach(&mut self, kind: u8, bytes: &[u8]) -> Result<(), TraceError> {
        if kind != super::FORMULAS {
            return Ok(());
        }
        // Where accesses were split, events have other numbers than the formulas know.
        if self.dialect == Dialect::Rapid || !self.notes.is_empty() {
            self.note("table of formulas dropped");
            return Ok(());
        }
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            self.out.write_all(b"#!")?;
            self.out.write_all(line)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        StdWriter::finish(*self)
    }
}

fn object_name(names: &Names, event: InputEvent) -> Option<&str> {
    match event.op.class() {
        ObjectClass::None => None,
        class => Some(names.name(class, event.object)),
    }
}
