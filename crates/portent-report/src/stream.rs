//! Documents on their way out: written row by row as they are made, so that what they take does not grow with them.

use serde::{Serialize, Serializer};
use std::io::{self, BufWriter, Write};

/// Rows that are made when they are written.
pub(crate) struct Rows<F>(pub(crate) F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Rows<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Writes a document for people and machines, with a line end.
pub(crate) fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut out = Escaped { out: BufWriter::new(out), held: false };
    serde_json::to_writer_pretty(&mut out, document)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The same, of a document that is shown as it is: characters that are not seen themselves are written out in the texts.
pub(crate) fn write_shown(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut json = Vec::new();
    write(document, &mut json)?;
    let json = String::from_utf8(json).map_err(io::Error::other)?;
    let mut rest = &json[..];
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| crate::words::is_hidden(*c)) {
        out.write_all(&rest.as_bytes()[..at])?;
        write!(out, "\\\\u{{{:x}}}", u32::from(c))?;
        rest = &rest[at + c.len_utf8()..];
    }
    out.write_all(rest.as_bytes())
}

/// Writes JSON that is safe to show: see [`Escaped`].
pub(crate) fn write_escaped(json: &str, out: &mut dyn Write) -> io::Result<()> {
    Escaped { out, held: false }.write_all(json.as_bytes())
}

/// What is written, as text.
pub(crate) fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<String, serde_json::Error> {
    let mut text = Vec::new();
    write(&mut text).map_err(serde_json::Error::io)?;
    String::from_utf8(text).map_err(|error| serde_json::Error::io(io::Error::other(error)))
}

/// JSON that is safe to show: the control characters that JSON itself lets through, as JSON escapes. They are one byte, or two that
/// begin with [`LEAD`], which begins others, too.
struct Escaped<W> {
    out: W,
    /// Whether such a byte was the last one, and is not written yet.
    held: bool,
}

const LEAD: u8 = 0xc2;

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let escapes = if self.held { matches!(byte, 0x80..=0x9f) } else { byte == 0x7f };
            if self.held && !escapes {
                self.out.write_all(&[LEAD])?;
                plain = at;
            }
            self.held = byte == LEAD;
            if escapes || self.held {
                self.out.write_all(&bytes[plain..at])?;
                plain = at + 1;
            }
            if escapes {
                write!(self.out, "\\u{byte:04x}")?;
            }
        }
        self.out.write_all(&bytes[plain..])?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_wherever_a_piece_ends() {
        for (given, safe) in [
            ("a\u{9b}b", "a\\u009bb"),
            ("\u{7f}\u{80}\u{9f}", "\\u007f\\u0080\\u009f"),
            ("£\u{a0}é\u{85}£", "£\u{a0}é\\u0085£"),
            ("plain", "plain"),
        ] {
            for cut in 0..=given.len() {
                let mut out = Escaped { out: Vec::new(), held: false };
                out.write_all(&given.as_bytes()[..cut]).unwrap();
                out.write_all(&given.as_bytes()[cut..]).unwrap();
                assert_eq!(String::from_utf8(out.out).unwrap(), safe, "{given:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn characters_that_are_not_seen_are_written_out() {
        let shown = text(|out| write_shown(&"a\u{202e}b", out)).unwrap();
        assert_eq!(shown, "\"a\\\\u{202e}b\"\n");
    }

    #[test]
    fn rows_are_made_one_after_the_other() {
        let document = serde_json::json!([1, 2, 3]);
        let rows = text(|out| write(&Rows(|| 1..=3), out)).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&rows).unwrap(), document);
        assert!(rows.ends_with("]\n"));
    }
}
