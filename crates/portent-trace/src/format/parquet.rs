//! Writing Parquet, for data tools: one row per input event, names spelled out.
//!
//! Uses the column writers of the `parquet` crate directly; strings are dictionary-coded there, so repeated names cost
//! little.

use super::TraceSink;
use crate::error::{Problem, TraceError};
use crate::format::std_read::order_suffix;
use crate::input::{InputBatch, InputEvent};
use crate::names::{Names, ObjectClass};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

const SCHEMA: &str = "message trace {
    required int64 event;
    required binary thread (utf8);
    required binary op (utf8);
    optional binary object (utf8);
    optional int64 value;
    required binary location (utf8);
    optional binary file (utf8);
    optional int64 line;
    optional binary function (utf8);
}";

/// Rows per row group.
const GROUP: usize = 1 << 20;

/// Writes a Parquet file.
pub struct ParquetWriter<W: Write + Send> {
    out: SerializedFileWriter<W>,
    rows: Rows,
    /// Rows in whole groups.
    written: u64,
    /// Events whose call stack has no column.
    without_stack: u64,
}

/// The rows of the group that fills. Strings are shared: one allocation per name and group.
#[derive(Default)]
struct Rows {
    thread: Vec<ByteArray>,
    op: Vec<ByteArray>,
    object: Vec<Option<ByteArray>>,
    value: Vec<Option<i64>>,
    location: Vec<ByteArray>,
    file: Vec<Option<ByteArray>>,
    line: Vec<Option<i64>>,
    function: Vec<Option<ByteArray>>,
    names: HashMap<(ObjectClass, u32), ByteArray>,
    ops: HashMap<u16, ByteArray>,
    locations: HashMap<u32, LocationCells>,
}

#[derive(Clone)]
struct LocationCells {
    text: ByteArray,
    file: Option<ByteArray>,
    line: Option<i64>,
    function: Option<ByteArray>,
}

fn failed(error: ParquetError) -> TraceError {
    TraceError::whole(Problem::Io(std::io::Error::other(error)))
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file.
    pub fn new(out: W) -> Result<Self, TraceError> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(failed)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let out = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(failed)?;
        Ok(Self { out, rows: Rows::default(), written: 0, without_stack: 0 })
    }

    /// Writes the events of a batch.
    pub fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        for event in batch.iter() {
            self.rows.push(names, event);
            if self.rows.op.len() == GROUP {
                self.flush_group()?;
            }
        }
        self.without_stack += batch.stacks().count();
        Ok(())
    }

    /// Ends the file, and says what was dropped. Every event has its row.
    pub fn finish(mut self) -> Result<Vec<String>, TraceError> {
        self.flush_group()?;
        self.out.close().map_err(failed)?;
        let note = format!("{} events written without their call stack", self.without_stack);
        Ok(if self.without_stack > 0 { vec![note] } else { Vec::new() })
    }

    fn flush_group(&mut self) -> Result<(), TraceError> {
        let rows = std::mem::take(&mut self.rows);
        let count = rows.op.len();
        if count == 0 {
            return Ok(());
        }
        let numbers: Vec<i64> = (self.written..).take(count).map(|event| event as i64).collect();
        let mut group = self.out.next_row_group().map_err(failed)?;
        required::<Int64Type, W>(&mut group, &numbers)?;
        required::<ByteArrayType, W>(&mut group, &rows.thread)?;
        required::<ByteArrayType, W>(&mut group, &rows.op)?;
        optional::<ByteArrayType, W>(&mut group, rows.object)?;
        optional::<Int64Type, W>(&mut group, rows.value)?;
        required::<ByteArrayType, W>(&mut group, &rows.location)?;
        optional::<ByteArrayType, W>(&mut group, rows.file)?;
        optional::<Int64Type, W>(&mut group, rows.line)?;
        optional::<ByteArrayType, W>(&mut group, rows.function)?;
        group.close().map_err(failed)?;
        self.written += count as u64;
        Ok(())
    }
}

fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), TraceError> {
    let missing = || failed(ParquetError::General("the schema has too few columns".into()));
    let mut column = group.next_column().map_err(failed)?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None).map_err(failed)?;
    column.close().map_err(failed)
}

fn required<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), TraceError> {
    column::<T, W>(group, values, None)
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<Option<T::T>>,
) -> Result<(), TraceError> {
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column::<T, W>(group, &values, Some(&levels))
}

impl Rows {
    fn push(&mut self, names: &Names, event: InputEvent) {
        let thread = self.name(names, ObjectClass::Thread, event.thread.0);
        self.thread.push(thread);
        let op = self.ops.entry(event.op.code());
        self.op.push(op.or_insert_with(|| text(format!("{}{}", event.op.text(), order_suffix(event.op)))).clone());
        let object = match event.op.class() {
            ObjectClass::None => None,
            class => Some(self.name(names, class, event.object)),
        };
        self.object.push(object);
        self.value.push(event.value);
        let location = self.locations.entry(event.loc.to_bits()).or_insert_with(|| {
            let found = names.location(event.loc);
            LocationCells {
                text: text(found.to_string()),
                file: found.file.map(text),
                line: found.line.map(i64::from),
                function: found.function.map(text),
            }
        });
        self.location.push(location.text.clone());
        self.file.push(location.file.clone());
        self.line.push(location.line);
        self.function.push(location.function.clone());
    }

    fn name(&mut self, names: &Names, class: ObjectClass, id: u32) -> ByteArray {
        self.names.entry((class, id)).or_insert_with(|| text(names.name(class, id))).clone()
    }
}

fn text(text: impl Into<String>) -> ByteArray {
    ByteArray::from(text.into().into_bytes())
}

impl<W: Write + Send> TraceSink for ParquetWriter<W> {
    fn write(&mut self, names: &Names, batch: &InputBatch) -> Result<(), TraceError> {
        ParquetWriter::write(self, names, batch)
    }
    fn finish(self: Box<Self>) -> Result<Vec<String>, TraceError> {
        ParquetWriter::finish(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::StdReader;
    use crate::input::InputSource;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn a_parquet_file_has_one_row_per_event_with_its_names() {
        let mut source = StdReader::new(&b"T1|w.rel(x)|bank.c:9|-5\nT2|branch|7\nT2|acq(l)|here\n"[..]);
        let mut batch = InputBatch::default();
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = ParquetWriter::new(file.try_clone().unwrap()).unwrap();
        while source.next_batch(&mut batch).unwrap() {
            writer.write(source.names(), &batch).unwrap();
        }
        assert!(writer.finish().unwrap().is_empty());
        std::io::Seek::rewind(&mut file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len(), 3);
        let text = |row: usize, column: usize| rows[row].get_string(column).ok().cloned();
        assert_eq!((rows[0].get_long(0).unwrap(), rows[2].get_long(0).unwrap()), (0, 2));
        assert_eq!((text(0, 1), text(0, 2), text(0, 3)), (Some("T1".into()), Some("w.rel".into()), Some("x".into())));
        assert_eq!((rows[0].get_long(4).ok(), rows[1].get_long(4).ok()), (Some(-5), None));
        assert_eq!((text(0, 5), text(0, 6)), (Some("bank.c:9".into()), Some("bank.c".into())));
        assert_eq!((rows[0].get_long(7).ok(), text(0, 8)), (Some(9), None));
        assert_eq!((text(1, 2), text(1, 3), text(1, 5)), (Some("branch".into()), None, Some("7".into())));
        assert_eq!((text(2, 3), text(2, 6)), (Some("l".into()), None));
    }
}
